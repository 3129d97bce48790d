"""Makes the diagram and the numbers of the handbook's section on batching.

    python handbook/figures/batching.py            writes handbook/figures/lab14-intensity.svg, prints the numbers
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("svg")
from matplotlib import pyplot as plt

from inferlab.lab.plots.style import save_svg

HERE = Path(__file__).parent
LLAMA = {"linear": 7_504_658_432, "itemsize": 2, "attention": 4 * 32 * 32 * 128, "cache": 2 * 32 * 8 * 128 * 2}
"""Llama 3 8B in bfloat16: weights in matrix products, and FLOPs and bytes of attention for each position of the context."""

PEAK, BANDWIDTH = 989e12, 3.35e12
"""One H100 SXM: dense bfloat16 FLOP/s and bytes/s, from NVIDIA's data sheet."""

LENGTHS, SLOTS = (4, 12, 3, 10, 5, 2), 3
"""The six requests of the worked example, in new tokens (not those of the lab's run)."""


def intensity(batch, context):
    """FLOPs per byte read of a decode step; works on arrays."""
    flops = batch * (2 * LLAMA["linear"] + LLAMA["attention"] * context)
    return flops / (LLAMA["linear"] * LLAMA["itemsize"] + batch * context * LLAMA["cache"])


def critical(context: int) -> int | None:
    """The smallest batch whose decode step reaches the ridge, or None."""
    ridge = PEAK / BANDWIDTH
    gain = 2 * LLAMA["linear"] + context * (LLAMA["attention"] - ridge * LLAMA["cache"])
    return int(np.ceil(ridge * LLAMA["linear"] * LLAMA["itemsize"] / gain)) if gain > 0 else None


def static() -> list[int]:
    """Requests that get a token in each iteration when groups of `SLOTS` run one after the other."""
    groups = [LENGTHS[at:at + SLOTS] for at in range(0, len(LENGTHS), SLOTS)]
    return [sum(n > k for n in group) for group in groups for k in range(max(group))]


def continuous() -> list[int]:
    """The same when a free slot is filled before the next iteration."""
    waiting, running, rows = list(LENGTHS), [], []
    while waiting or running:
        while waiting and len(running) < SLOTS:
            running.append(waiting.pop(0))
        rows.append(len(running))
        running = [left - 1 for left in running if left > 1]
    return rows


def first_tokens() -> list[int]:
    """The iteration, counted from 1, in which each request gets its first token when a free slot is filled at once."""
    free = [1] * SLOTS
    started = []
    for length in LENGTHS:
        slot = free.index(min(free))
        started.append(free[slot])
        free[slot] += length
    return started


def limit(context: int) -> float:
    """What the intensity goes to when the batch becomes very large."""
    return (2 * LLAMA["linear"] + LLAMA["attention"] * context) / (context * LLAMA["cache"])


def never() -> int:
    """The shortest context with which no batch reaches the ridge."""
    return next(context for context in range(1, 100_000) if critical(context) is None)


def numbers() -> dict[str, str]:
    """Every number of the handbook's section that is not cited, as it stands in the text."""
    one, other = static(), continuous()
    return {
        "weights read in a step": f"{LLAMA['linear'] * LLAMA['itemsize'] / 1e9:.1f} GB",
        "time of that": f"{1e3 * LLAMA['linear'] * LLAMA['itemsize'] / BANDWIDTH:.1f} ms",
        "ridge": f"{PEAK / BANDWIDTH:.0f} FLOPs per byte",
        "intensity at batch 1": f"{intensity(1, 1000):.2f}",
        "intensity at batch 64": f"{intensity(64, 1000):.0f}",
        "critical batch, no context": f"{critical(0)} requests",
        "critical batch, context 200": f"{critical(200)} with 200",
        "limit, context 1000": f"{limit(1000):.0f} at most",
        "context without any": f"{never()} positions",
        "tokens of the six requests": f"{sum(LENGTHS)} tokens",
        "static, iterations": f"{len(one)} iterations",
        "static, occupancy": f"{sum(one) / (len(one) * SLOTS):.0%}",
        "continuous, iterations": f"{len(other)} iterations",
        "first tokens of the last three": "iterations {}, {} and {}".format(*first_tokens()[SLOTS:]),
        "instead of": f"instead of {max(LENGTHS[:SLOTS]) + 1}",
        "continuous, occupancy": f"{sum(other) / (len(other) * SLOTS):.0%}",
    }


def draw(path: Path) -> None:
    """Intensity against batch for four contexts, and the ridge that some of them never reach."""
    batch = np.geomspace(1, 4096, 200)
    fig, axis = plt.subplots(figsize=(7.2, 3.6))
    for context, style, color in ((0, "-", "#1b3a5c"), (200, "--", "#1b3a5c"), (1000, "-.", "#5b8db8"), (8000, ":", "#5b8db8")):
        line = intensity(batch, context)
        axis.plot(batch, line, ls=style, color=color, lw=1.8)
        axis.text(4500, line[-1], f"context {context:,}", va="center", fontsize=8.5, color="0.25")
    axis.axhline(PEAK / BANDWIDTH, color="#d55e00", lw=1.4)
    axis.text(1.1, PEAK / BANDWIDTH * 1.15, "ridge of one H100", fontsize=8.5, color="#d55e00")
    axis.set(xscale="log", yscale="log", xlim=(1, 4096), xlabel="requests in the batch", ylabel="FLOPs per byte of a decode step")
    axis.set_title("The batch shares the weights, not the caches", loc="left", fontsize=11, fontweight="bold")
    axis.spines[["top", "right"]].set_visible(False)
    save_svg(fig, path)


if __name__ == "__main__":
    draw(HERE / "lab14-intensity.svg")
    for name, value in numbers().items():
        print(f"{name:30s} {value}")
