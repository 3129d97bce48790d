"""Makes the diagram and the numbers of the handbook's section on quantization.

    python handbook/figures/quantization.py              writes handbook/figures/lab17-grid.svg, prints the numbers
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt

from inferlab.lab.plots.style import save_svg

HERE = Path(__file__).parent
ROW = (0.9, -0.3, 0.5, -0.7, 0.2, 0.6, -0.1, 6.3)
"""The worked example: eight weights, the last one out of proportion."""
LLAMA = {"weights": 8.03e9, "embedding": 128_256 * 4_096, "layers": 32, "kv_heads": 8, "head_dim": 128}
"""Llama 3 8B: its published sizes."""


def restored(row: tuple[float, ...], group: int, bits: int = 4) -> list[float]:
    """The row after absmax quantization in groups of `group`."""
    out, top = [], 2 ** (bits - 1) - 1
    for start in range(0, len(row), group):
        part = row[start:start + group]
        scale = max(abs(w) for w in part) / top
        out += [round(w / scale) * scale for w in part]
    return out


def intensity(tokens: int, bits: int, training: bool) -> float:
    """FLOPs per byte of weights (and, in training, gradients and optimizer) of a step over `tokens` tokens."""
    return 6 * tokens / (bits / 4 + 28) if training else 2 * tokens / (bits / 8)


def cache_gigabytes(tokens: int, bits: float = 16) -> float:
    """Keys and values of `tokens` tokens of Llama 3 8B."""
    return 2 * LLAMA["layers"] * LLAMA["kv_heads"] * LLAMA["head_dim"] * tokens * bits / 8 / 1e9


def numbers() -> dict[str, str]:
    """Every computed number of the handbook's section, as it stands in the text."""
    whole, halves = restored(ROW, 8), restored(ROW, 4)
    return {
        "step of the row": f"{6.3 / 7:.1f}",
        "step of the first half": f"{0.9 / 7:.3f}",
        "restored in one group": ", ".join(f"{w:.1f}" for w in whole[:4]),
        "restored in groups of four": ", ".join(f"{w:.2f}" for w in halves[:4]),
        "bits at 4, 32, 16": f"{4 + 16 / 32:.1f} bits",
        "weights in 16 bits": f"{LLAMA['weights'] * 2 / 1e9:.1f} GB",
        "weights in 4.5 bits, the embedding in 16": f"{((LLAMA['weights'] - LLAMA['embedding']) * 4.5 / 8 + LLAMA['embedding'] * 2) / 1e9:.1f} GB",
        "cache of 64 requests of 4,096": f"{cache_gigabytes(64 * 4096):.1f} GB",
        "the same in 8 bits": f"{cache_gigabytes(64 * 4096, 8):.1f} GB",
        "decode, 16 bits": f"{intensity(1, 16, False):.0f} FLOP per byte",
        "decode, 4 bits": f"{intensity(1, 4, False):.0f} FLOPs per byte",
        "training, 16 bits": f"{round(intensity(8192, 16, True), -1):,.0f} FLOPs per byte",
        "training, 4 bits": f"{round(intensity(8192, 4, True), -1):,.0f} FLOPs per byte",
    }


def draw(path: Path) -> None:
    """The worked row, a line for each weight, on its grid of values: one scale for all, and one for each half."""
    fig, axes = plt.subplots(2, 1, figsize=(7.6, 4.4), sharex=True)
    for axis, group, title in zip(axes, (8, 4), ("one scale for eight weights", "one scale for each four"), strict=True):
        for start in range(0, 8, group):
            part = ROW[start:start + group]
            step, places = max(abs(w) for w in part) / 7, range(start, start + group)
            grid = [step * c for c in range(-7, 8) if step * c > -1.2]
            stored, gap = restored(part, group), float("nan")  # a line with gaps takes fewer bytes than many lines
            axis.plot([x for value in grid for x in (value, value, gap)],
                      [start - 0.45, start + group - 0.55, gap] * len(grid), color="0.7", lw=1, zorder=1)
            axis.plot([x for pair in zip(part, stored, strict=True) for x in (*pair, gap)],
                      [y for place in places for y in (place, place, gap)], color="#d55e00", lw=1.5, zorder=2)
            axis.plot(part, places, "o", ms=5, color="#1b3a5c", zorder=3)
            axis.plot(stored, places, "o", ms=9, mfc="none", mec="#d55e00", mew=1.5, zorder=2)
        axis.set(xlim=(-1.3, 6.6), ylim=(7.7, -0.7), yticks=range(8), yticklabels=[f"{w:g}" for w in ROW])
        axis.tick_params(axis="y", length=0, labelsize=8)
        axis.set_title(title, loc="left", fontsize=10, fontweight="bold")
        axis.spines[["left", "right", "top"]].set_visible(False)
    axes[1].set_xlabel("a line for each weight: dot, its value; ring, what is stored; bars, what could be stored")
    fig.tight_layout()
    save_svg(fig, path)


if __name__ == "__main__":
    draw(HERE / "lab17-grid.svg")
    for name, value in numbers().items():
        print(f"{name:32s} {value}")
