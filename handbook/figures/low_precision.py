"""Makes the diagram and the numbers of the handbook's section on low precision, from sizes alone.

    python handbook/figures/low_precision.py     writes handbook/figures/lab24-scales.svg, prints the numbers
"""

from __future__ import annotations

import math
from pathlib import Path

import matplotlib
import torch

matplotlib.use("svg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from inferlab.lab.plots.style import ACCENT, DARK, MID, STYLE, save_svg

HERE = Path(__file__).parent
FAST, FASTER, BANDWIDTH = 1000e12, 2000e12, 4e12
"""Operations a second in 16 and in 8 bits, bytes a second: a machine in round numbers."""
ROWS, COLUMNS, PROMPT = 14336, 4096, 4096
"""`up_proj` of Llama 3 8B, and a prompt."""
LARGEST, SMALL = 160.0, 0.04
"""What comes into one layer of the bundled model: the largest number, and the median."""
CHANNELS, OUTLIER = 8, 4


def gain(times: int, m: int, k: int, n: int, left: int, right: int) -> float:
    """Least time in 16 bits over that in these bits, of `times` products (m, k) by (k, n); 16-bit results."""
    def least(a: int, b: int) -> float:
        moved = times * (m * k * a + k * n * b + m * n * 16) / 8
        return max(2 * times * m * k * n / (FASTER if max(a, b) <= 8 else FAST), moved / BANDWIDTH)

    return least(16, 16) / least(left, right)


def numbers() -> dict[str, str]:
    """Every number of the handbook's section, as it stands in the text."""
    scale = LARGEST / 448
    eighth = float(torch.tensor(SMALL / scale).to(torch.float8_e4m3fn)) * scale
    return {
        "step of int8": f"{LARGEST / 127:.2f}",
        "0.04 in FP8": f"{eighth:.4f}",
        "largest product": f"{127 * 127:,}",
        "int32 lasts for": f"{(2**31 - 1) // 127**2:,} products",
        "float32 may be off after": f"{2**24 // 127**2:,} products",
        "decode, W8": f"| decode, one sequence | {gain(1, 1, COLUMNS, ROWS, 16, 8):.2f} "
                      f"| {gain(1, 1, COLUMNS, ROWS, 8, 8):.2f} |",
        "prefill, W8": f"| prefill, 4,096 tokens | {gain(1, PROMPT, COLUMNS, ROWS, 16, 8):.2f} "
                       f"| {gain(1, PROMPT, COLUMNS, ROWS, 8, 8):.2f} |",
        "keys, one": f"{gain(8, 4, 128, PROMPT, 16, 8):.2f} times with one sequence",
        "keys, 512": f"{gain(512 * 8, 4, 128, PROMPT, 16, 8):.2f} times with 512",
    }


def table(axis: Axes, left: float, bottom: float, height: int, shade: float, words: str) -> None:
    """A table with one column of another shade, and a mark at each row, where its scale stands."""
    for columns, alpha in (([c for c in range(CHANNELS) if c != OUTLIER], 0.18), ([OUTLIER], shade)):
        across = [x for column in columns for x in (left + column + 0.45,) * 2 + (math.nan,)]
        axis.plot(across, [bottom, bottom + height, math.nan] * len(columns), color=DARK, alpha=alpha, lw=17,
                  solid_capstyle="butt", clip_on=False)
    axis.plot([left - 0.6] * height, [bottom + row + 0.5 for row in range(height)], "s", color=ACCENT, ms=9,
              clip_on=False)
    axis.text(left + 3.95, bottom + height + 0.25, words, ha="center", fontsize=9)


def draw(path: Path) -> None:
    """Activations and weights before and after smoothing: columns by their size, scales at rows."""
    with plt.style.context([STYLE, {"axes.grid": False}]):
        fig, axis = plt.subplots(figsize=(7.0, 3.0))
        for left, activations, weights in ((0, 1.0, 0.18), (12, 0.4, 0.5)):
            table(axis, left, 5.2, 4, activations, "activations: a row for each token")
            table(axis, left, 0, 3, weights, "weights: a row for each output")
        at = OUTLIER + 0.45
        axis.text(at + 12, 7.0, "÷ f", ha="center", color=DARK, fontsize=11, weight="bold")
        axis.text(at + 12, 1.3, "× f", ha="center", color=DARK, fontsize=11, weight="bold")
        axis.annotate("", (8, -0.7), (0, -0.7), arrowprops={"arrowstyle": "->", "color": MID, "lw": 1.4})
        axis.text(4, -1.6, "the sum runs this way", ha="center", fontsize=9)
        axis.annotate("", (10.7, 4.4), (8.6, 4.4), arrowprops={"arrowstyle": "->", "color": DARK, "lw": 1.4})
        axis.text(16, -1.6, "the same product", ha="center", fontsize=9)
        axis.set_xlim(-1.2, 20.4)
        axis.set_ylim(-2, 10.4)
        axis.axis("off")
        fig.tight_layout()
        save_svg(fig, path, tight=False)


if __name__ == "__main__":
    draw(HERE / "lab24-scales.svg")
    for name, value in numbers().items():
        print(f"{name:26s} {value}")
