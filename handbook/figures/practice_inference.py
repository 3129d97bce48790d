"""Makes the diagram and the numbers of the handbook's section on practicing inference.

    python handbook/figures/practice_inference.py      writes handbook/figures/practice-bytes.svg, prints the numbers
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt

from inferlab.lab.plots.style import save_svg

HERE = Path(__file__).parent
WEIGHTS, LAYERS, KV_HEADS, QUERY_HEADS, HEAD = 8_030_000_000, 32, 8, 32, 128
"""Sizes of Llama 3 8B, two bytes a number."""

PEAK, BANDWIDTH = 989e12, 3.35e12
"""One H100 SXM: dense bfloat16 FLOP/s and bytes/s, from NVIDIA's data sheet."""

PROMPT, NEW, CONTEXT, BATCH = 1000, 300, 2000, 16
KEPT, DRAFTED, DRAFT_COST = 0.7, 4, 0.05
RATES = (("baseline", 31), ("continuous batching", 170), ("paged attention", 221), ("int4 weights", 287), ("speculation", 316))
"""An invented ledger: tokens per second after each technique was switched on."""

TOKEN = 2 * LAYERS * KV_HEADS * HEAD * 2
"""Bytes of one position of the cache."""


def read(batch: int, weight: float = 2.0) -> tuple[float, float]:
    """GB of weights and of caches that a decode step reads, for each token that it makes."""
    return WEIGHTS * weight / batch / 1e9, CONTEXT * TOKEN / 1e9


def round_of_speculation() -> float:
    """Expected tokens of one round."""
    return sum(KEPT**k for k in range(DRAFTED + 1))


def steps() -> dict[str, tuple[float, float]]:
    """GB read for each token, weights and caches, as one remedy is added to the next."""
    few = round_of_speculation()
    return {
        "one request": read(1),
        f"batch of {BATCH}": read(BATCH),
        "and int4 weights": read(BATCH, 0.5),
        "and speculation": tuple(part / few for part in read(BATCH, 0.5)),
    }


def numbers() -> dict[str, str]:
    """Every number of the handbook's section that is not cited, as it stands in the text."""
    prefill, step = 2e3 * WEIGHTS * PROMPT / PEAK, 2e3 * WEIGHTS / BANDWIDTH
    total = prefill + (NEW - 1) * step
    bars = {name: sum(parts) for name, parts in steps().items()}
    first, second = bars["one request"], bars[f"batch of {BATCH}"]
    third, last = bars["and int4 weights"], bars["and speculation"]
    tokens = round_of_speculation()
    return {
        "prefill": f"{prefill:.1f} ms",
        "decode step": f"{step:.1f} ms",
        "share of the prompt": f"{prefill / total:.1%}",
        "bytes of a token": f"{TOKEN:,} bytes",
        "with all query heads": f"{TOKEN * QUERY_HEADS // KV_HEADS:,}",
        "passes the weights": f"{2 * WEIGHTS / (BATCH * TOKEN):,.0f} positions",
        "one request, GB": f"{first:.2f} GB",
        "batch, GB": f"{second:.2f} GB",
        "gain of the batch": f"{first / second:.1f} times",
        "int4, GB": f"{third:.2f} GB",
        "gain of int4": f"{second / third:.2f} times",
        "tokens of a round": f"{tokens:.2f} tokens",
        "gain of a round": f"{tokens / (1 + DRAFTED * DRAFT_COST):.2f} times",
        "speculation, GB": f"{last:.2f} GB",
        "the claim": f"{RATES[-1][1] / RATES[0][1]:.1f} times",
        "batching's factor": f"{RATES[1][1] / RATES[0][1]:.2f}",
        "what is left": f"{RATES[-1][1] / RATES[1][1]:.2f}",
    }


def draw(path: Path) -> None:
    """Bytes for each token, split into weights and caches, as one remedy is added to the next."""
    bars = steps()
    fig, axes = plt.subplots(1, 2, figsize=(7.6, 3.0), sharey=True)
    # the batch makes the bars so much smaller that the last three need a scale of their own
    for axis, first, reach, title in zip(axes, (0, 1), (20, 1.6), ("all four", "the last three, enlarged"), strict=True):
        for place, (weights, caches) in list(enumerate(bars.values()))[first:]:
            axis.barh(place, weights, color="#1b3a5c", label="weights" if place == first else None)
            axis.barh(place, caches, left=weights, color="#a9c6de", hatch="///", edgecolor="white", label="caches" if place == first else None)
            axis.text(weights + caches + reach / 60, place, f"{weights + caches:.2f} GB", va="center", fontsize=8.5, color="0.25")
        axis.set(yticks=range(len(bars)), yticklabels=bars, xlim=(0, reach))
        axis.set_title(title, loc="left", fontsize=9.5)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].invert_yaxis()
    axes[0].legend(frameon=False, fontsize=8.5, loc="lower right")
    fig.supxlabel("GB that a decode step reads for each token it makes", fontsize=9.5)
    fig.suptitle("The first remedy takes nearly all; then the caches are half of what is left", x=0.01, ha="left", fontsize=11, fontweight="bold")
    fig.tight_layout()
    save_svg(fig, path)


if __name__ == "__main__":
    draw(HERE / "practice-bytes.svg")
    for name, value in numbers().items():
        print(f"{name:26s} {value}")
