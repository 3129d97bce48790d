"""Makes the diagram and the numbers of the handbook's section on the scheduler loop.

    python handbook/figures/scheduler_loop.py            writes handbook/figures/lab04-levels.svg, prints the numbers
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from diffusers import (
    DDIMScheduler,
    DPMSolverMultistepScheduler,
    EulerDiscreteScheduler,
    FlowMatchEulerDiscreteScheduler,
    HeunDiscreteScheduler,
)

matplotlib.use("svg")
from matplotlib import pyplot as plt

from inferlab.lab.plots.style import save_svg

HERE = Path(__file__).parent
CONFIG = {"beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear"}
"""The noise schedule of Stable Diffusion. The course's bundled pipeline ends its own a little noisier."""

STEPS = 5
CLEAN, NOISE, PREDICTED = 1.0, 0.5, 0.45
"""One latent value, the noise in it, and what a network that is a little off says the noise is."""


def ratio() -> np.ndarray:
    """Noise over signal at each training timestep, sqrt((1 - alphas_cumprod) / alphas_cumprod), shape (1000,)."""
    table = DDIMScheduler(**CONFIG).alphas_cumprod.double().numpy()
    return ((1 - table) / table) ** 0.5


def share(sigma: np.ndarray) -> np.ndarray:
    """A noise-over-signal ratio as the flow-matching sigma: noise / (noise + signal)."""
    return sigma / (1 + sigma)


def visited(scheduler, steps: int = STEPS) -> list[float]:
    """The timesteps of a run, one for each call of the denoiser."""
    scheduler.set_timesteps(steps)
    return [float(t) for t in scheduler.timesteps]


def schedules() -> dict[str, np.ndarray]:
    """Run -> the noise levels at which the denoiser is called, as shares of noise in [0, 1]."""
    table = ratio()

    def levels(timesteps):
        return share(np.interp(timesteps, np.arange(1000), table))

    leading = visited(DDIMScheduler(**CONFIG, timestep_spacing="leading", steps_offset=1))
    runs = {
        "DDIM, leading": levels(leading),
        "the same, strength 0.6": levels(leading[STEPS - int(STEPS * 0.6):]),
        "DDIM, trailing": levels(visited(DDIMScheduler(**CONFIG, timestep_spacing="trailing"))),
        "Heun, trailing": levels(visited(HeunDiscreteScheduler(**CONFIG, timestep_spacing="trailing"))),
    }
    for shift in (1.0, 3.0):
        flow = FlowMatchEulerDiscreteScheduler(shift=shift)
        flow.set_timesteps(STEPS)
        runs[f"flow matching, shift {shift:g}"] = flow.sigmas[:-1].double().numpy()
    return runs


def numbers() -> dict[str, str]:
    """Every number of the handbook's section that is not cited, as it stands in the text."""
    table, runs = ratio(), schedules()
    leading = visited(DDIMScheduler(**CONFIG, timestep_spacing="leading", steps_offset=1))
    trailing = visited(DDIMScheduler(**CONFIG, timestep_spacing="trailing"))
    first = EulerDiscreteScheduler(**CONFIG, timestep_spacing="trailing")
    first.set_timesteps(STEPS)
    low = EulerDiscreteScheduler(**CONFIG, timestep_spacing="leading", steps_offset=1)
    low.set_timesteps(STEPS)
    flow = FlowMatchEulerDiscreteScheduler(shift=3.0)
    flow.set_timesteps(STEPS)
    r, r_next = table[599], table[399]
    s, s_next = share(r), share(r_next)
    state = (1 - s) * CLEAN + s * NOISE
    guess = (state - s * PREDICTED) / (1 - s)
    moved = state + (s_next - s) * (PREDICTED - guess)
    a, p = 1 / (1 + r**2), 1 / (1 + r_next**2)
    x_t = a**0.5 * CLEAN + (1 - a) ** 0.5 * NOISE
    clean = (x_t - (1 - a) ** 0.5 * PREDICTED) / a**0.5
    ddim = p**0.5 * clean + (1 - p) ** 0.5 * PREDICTED
    return {
        "leading": ", ".join(f"{t:.0f}" for t in leading),
        "trailing": ", ".join(f"{t:.0f}" for t in trailing),
        "calls, Heun": str(len(runs["Heun, trailing"])),
        "calls, DPM-Solver++ 2M": str(len(visited(DPMSolverMultistepScheduler(**CONFIG)))),
        "calls, strength 0.6": str(len(runs["the same, strength 0.6"])),
        "init_noise_sigma, from 999": f"{float(first.init_noise_sigma):.1f}",
        "init_noise_sigma, from 801": f"{float(low.init_noise_sigma):.1f}",
        "shift 3 of 0.75": f"{3 * 0.75 / (1 + 2 * 0.75):.1f}",
        "last sigma before 0, shift 3": f"{float(flow.sigmas[-2]):.4f}",
        "shift 3 of 0.001": f"{3 * 0.001 / (1 + 2 * 0.001):.4f}",
        "sigma at 599": f"{s:.4f}",
        "sigma at 399": f"{s_next:.4f}",
        "flow state": f"{state:.4f}",
        "velocity": f"{PREDICTED - guess:.4f}",
        "flow state, next": f"{moved:.4f}",
        "DDIM state": f"{x_t:.4f}",
        "DDIM state, next": f"{ddim:.4f}",
        "flow state, next, as DDIM's": f"{moved / ((1 - s_next) ** 2 + s_next**2) ** 0.5:.4f}",
    }


def draw(path: Path) -> None:
    """One line a run: where on the way from noise to picture the denoiser is asked, and how often."""
    runs = schedules()
    fig, axis = plt.subplots(figsize=(7.2, 3.4))
    for row, (name, levels) in enumerate(runs.items()):
        again = np.isin(np.arange(len(levels)), np.flatnonzero(np.isclose(levels[1:], levels[:-1])) + 1)
        color = "#d55e00" if name.startswith("flow") else "#1b3a5c"
        axis.hlines(row, 1, 0, color="0.88", lw=1, zorder=0)
        axis.plot(levels[~again], np.full((~again).sum(), row), "o", color=color, ms=6)
        axis.plot(levels[again], np.full(again.sum(), row), "o", mfc="none", mec=color, mew=1.4, ms=12)
        axis.text(-0.03, row, f"{len(levels)} calls", ha="left", va="center", fontsize=8.5, color="0.35")
    axis.set(xlabel="share of noise: 1 is pure noise, 0 is the picture", xlim=(1.03, -0.14),
             ylim=(len(runs) - 0.5, -0.6), xticks=np.linspace(1, 0, 6))
    axis.set_yticks(range(len(runs)), list(runs))
    axis.set_title("The timesteps say where the loop asks; the solver says how often", loc="left", fontsize=11, fontweight="bold")
    axis.spines[["top", "right", "left"]].set_visible(False)
    axis.tick_params(axis="y", length=0)
    save_svg(fig, path)


if __name__ == "__main__":
    draw(HERE / "lab04-levels.svg")
    for name, value in numbers().items():
        print(f"{name:30s} {value}")
