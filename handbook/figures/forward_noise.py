"""Makes the diagram and the numbers of the handbook's section on forward noise.

    python handbook/figures/forward_noise.py             writes handbook/figures/lab01-levels.svg, prints the numbers
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
import torch
from diffusers import DDPMScheduler

matplotlib.use("svg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from inferlab.lab.kits.pipelines.noise_levels import draw_levels
from inferlab.lab.plots.style import save_svg

HERE = Path(__file__).parent
STABLE = {"beta_schedule": "scaled_linear", "beta_start": 0.00085, "beta_end": 0.012}
SCHEDULES = {
    "linear (DDPM)": {"beta_schedule": "linear"},
    "cosine": {"beta_schedule": "squaredcos_cap_v2"},
    "scaled linear (SD 1.5)": STABLE,
    "zero-terminal": STABLE | {"rescale_betas_zero_snr": True},
}

T = 500
CLEAN, NOISE = 1.0, 0.5
"""One latent value, and the noise that is mixed in at T with the schedule of Stable Diffusion 1.5."""


def tables() -> dict[str, torch.Tensor]:
    """alphas_cumprod of each schedule, shape (1000,), float64."""
    return {name: DDPMScheduler(**config).alphas_cumprod.double() for name, config in SCHEDULES.items()}


def numbers() -> dict[str, str]:
    """Every number of the handbook's section, as it stands in the text."""
    made = tables()
    table = made["scaled linear (SD 1.5)"]
    a, s = float(table[T]) ** 0.5, float(1 - table[T]) ** 0.5
    betas = DDPMScheduler(**STABLE).betas.double()
    walked = 0.0
    for beta in betas[: T + 1]:
        walked = float((1 - beta).sqrt() * walked + beta.sqrt())
    return {
        "alpha_t": f"{a * a:.4f}",
        "weights": f"{a:.3f} and {s:.3f}",
        "x_t": f"{a * CLEAN + s * NOISE:.3f}",
        "ratio": f"{a * a / (s * s):.2f}",
        "sigma": f"{s / (a + s):.3f}",
        "on the line": f"{(a * CLEAN + s * NOISE) / (a + s):.3f}",
        "v": f"{a * NOISE - s * CLEAN:.3f}",
        "u": f"{NOISE - CLEAN:.1f}",
        "weight of one noise walked": f"{walked:.1f}",
        "cosine's ratio at T": f"{made['cosine'][T] / (1 - made['cosine'][T]):.2f}",
        "linear's ratio at T": f"{made['linear (DDPM)'][T] / (1 - made['linear (DDPM)'][T]):.2f}",
        "last weight, Stable Diffusion": f"{float(table[-1]) ** 0.5:.3f}",
        "last weight, linear": f"{float(made['linear (DDPM)'][-1]) ** 0.5:.4f}",
    }


def draw(path: Path) -> None:
    """Two panels: the arc and the line between picture and noise, and the ratio over t for four schedules."""
    fig, (plane, ratios) = plt.subplots(1, 2, figsize=(10, 4.4), width_ratios=(1, 1.25))
    draw_paths(plane, tables()["scaled linear (SD 1.5)"])
    draw_levels(ratios, {name: table / (1 - table) for name, table in tables().items()})
    ratios.legend(frameon=False, loc="lower left", fontsize=9)
    ratios.set_title("Each schedule walks the arc at its own pace", loc="left", fontsize=11, fontweight="bold")
    ratios.spines[["top", "right"]].set_visible(False)
    fig.tight_layout()
    save_svg(fig, path)


def draw_paths(axis: Axes, table: torch.Tensor) -> None:
    """The plane of clean signal and noise: the arc, the line, one ray of equal ratio, and the last t."""
    a, s = float(table[T]) ** 0.5, float(1 - table[T]) ** 0.5
    angle = np.linspace(0, np.pi / 2, 200)
    axis.plot(np.cos(angle), np.sin(angle), color="#1b3a5c", lw=1.6)
    axis.plot([1, 0], [0, 1], color="black", lw=1.6)
    axis.plot([0, 1.12 * a], [0, 1.12 * s], color="#d55e00", lw=1.2, ls="--")
    last = float(table[-1]) ** 0.5, float(1 - table[-1]) ** 0.5
    for x, y in ((a, s), (a / (a + s), s / (a + s)), (1, 0), (0, 1)):
        axis.plot(x, y, "o", color="#1b3a5c", ms=6)
    axis.plot(*last, "D", color="#d55e00", ms=6)
    axis.annotate("picture", (1, 0), xytext=(4, 8), textcoords="offset points")
    axis.annotate("noise", (0, 1), xytext=(-6, 8), textcoords="offset points", ha="right")
    axis.annotate(f"last t of SD 1.5:\n{last[0]:.3f} of the picture left", last, xytext=(0.32, 1.09),
                  arrowprops={"arrowstyle": "-", "color": "0.4"}, color="#d55e00", va="center", fontsize=9)
    axis.annotate(f"t = {T}", (a, s), xytext=(7, 2), textcoords="offset points")
    axis.annotate(r"$\sigma$" + f" = {s / (a + s):.3f}", (a / (a + s), s / (a + s)), xytext=(8, 0),
                  textcoords="offset points")
    axis.text(0.92, 0.55, "diffusion:\nan arc", color="#1b3a5c")
    axis.text(0.46, 0.26, "flow matching:\na line")
    axis.set(xlabel="weight of the picture", ylabel="weight of the noise", xlim=(-0.2, 1.25), ylim=(-0.05, 1.2),
             aspect="equal")
    axis.set_title("On one ray: the same level", loc="left", fontsize=11, fontweight="bold")
    axis.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    draw(HERE / "lab01-levels.svg")
    for name, value in numbers().items():
        print(f"{name:34s} {value}")
