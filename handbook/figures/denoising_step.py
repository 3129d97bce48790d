"""Makes the diagram and the numbers of the handbook's section on one denoising step.

    python handbook/figures/denoising_step.py            writes handbook/figures/lab02-circle.svg, prints the numbers
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from diffusers import DDIMScheduler

matplotlib.use("svg")
from matplotlib import pyplot as plt

from inferlab.lab.plots.style import save_svg

HERE = Path(__file__).parent
CONFIG = {"beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear"}
"""The noise schedule of Stable Diffusion and of the course's bundled pipeline."""

T, STEPS = 501, 10
CLEAN, NOISE, PREDICTED = 1.0, 0.5, 0.45
"""One latent value, the noise in it, and what a network that is a little off says the noise is."""


def alphas() -> np.ndarray:
    """alphas_cumprod of the schedule, shape (1000,), float64."""
    return DDIMScheduler(**CONFIG).alphas_cumprod.double().numpy()


def numbers() -> dict[str, str]:
    """Every number of the handbook's worked example, as it stands in the text."""
    table = alphas()
    a, p = table[T], table[T - 1000 // STEPS]
    signal, sigma = a**0.5, (1 - a) ** 0.5
    x_t = signal * CLEAN + sigma * NOISE
    guess = (x_t - sigma * PREDICTED) / signal
    prev = p**0.5 * guess + (1 - p) ** 0.5 * PREDICTED
    as_velocity = signal * x_t - sigma * PREDICTED
    return {
        "alpha_t": f"{a:.4f}",
        "alpha_prev": f"{p:.4f}",
        "x_t": f"{x_t:.3f}",
        "guess": f"{guess:.3f}",
        "prev": f"{prev:.3f}",
        "misread as sample": f"{PREDICTED:.2f}",
        "misread as velocity": f"{as_velocity:.3f}",
        "alpha_0": f"{table[0]:.5f}",
        "noise left at the last step": f"{(1 - table[0]) ** 0.5:.3f}",
    }


def draw(path: Path) -> None:
    """The plane of clean signal and noise: a step goes from x_t to the guess of x_0 and most of the way back."""
    table = alphas()
    a, p = table[T], table[T - 1000 // STEPS]
    here, there = np.array([a**0.5, (1 - a) ** 0.5]), np.array([p**0.5, (1 - p) ** 0.5])
    fig, axis = plt.subplots(figsize=(5.6, 5.2))
    angle = np.linspace(0, np.pi / 2, 200)
    axis.plot(np.cos(angle), np.sin(angle), color="#1b3a5c", lw=1.2)
    arrow = {"arrowstyle": "-|>", "lw": 1.8, "shrinkA": 0, "shrinkB": 3}
    axis.annotate("", (1, 0), here, arrowprops={**arrow, "color": "#d55e00"})
    axis.annotate("", there, (1, 0), arrowprops={**arrow, "color": "#5b8db8", "ls": "--"})
    tangent = np.array([-here[1], here[0]])
    axis.annotate("", here + 0.33 * tangent, here, arrowprops={**arrow, "color": "0.35", "lw": 1.2})
    for point, name, offset in ((here, r"$x_t$", (8, 4)), (there, r"$x_{prev}$", (8, 2)), ((1, 0), r"$x_0$", (8, -4)),
                                ((0, 1), r"$\epsilon$", (-16, 2))):
        axis.plot(*point, "o", color="#1b3a5c", ms=6)
        axis.annotate(name, point, xytext=offset, textcoords="offset points", fontsize=13)
    axis.annotate(r"velocity $v$", here + 0.33 * tangent, xytext=(-14, 6), textcoords="offset points", ha="right", color="0.35")
    axis.text(0.70, 0.30, "1  jump to the guess", ha="right", color="#d55e00")
    axis.text(0.60, 0.10, "2  mix the noise in again,\n    one level lower", ha="right", color="#35607f")
    axis.set(xlabel=r"share of clean signal, $\sqrt{\bar\alpha}$", ylabel=r"share of noise, $\sqrt{1-\bar\alpha}$",
             xlim=(-0.08, 1.16), ylim=(-0.1, 1.12), aspect="equal")
    axis.set_title("A DDIM step moves along a quarter circle", loc="left", fontsize=11, fontweight="bold")
    axis.spines[["top", "right"]].set_visible(False)
    save_svg(fig, path)


if __name__ == "__main__":
    draw(HERE / "lab02-circle.svg")
    for name, value in numbers().items():
        print(f"{name:28s} {value}")
