"""Makes the diagram and the numbers of the handbook's section on a slow decode, from real runs of the lab's service.

    python handbook/figures/slow_decode.py            writes handbook/figures/lab19-waits.svg, prints the numbers
"""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise
from pathlib import Path

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt

from inferlab.lab.kits.decode.roofline import call_cost
from inferlab.lab.kits.service.attribution import _HATCHES, _SHADES, WAITS, waits
from inferlab.lab.kits.service.text_service import CARD, FAULTS, serve
from inferlab.lab.plots.style import save_svg
from inferlab.models import load_language_model
from inferlab.models.language import FULL, FULL_COMMON

HERE = Path(__file__).parent


@cache
def runs() -> dict:
    """Name -> rows of the service as it should be and with each fault, on the bundled model and the CPU."""
    loaded = load_language_model("bundled", "cpu")
    return {"healthy": serve(*loaded).rows, **{fault: serve(*loaded, fault=fault).rows for fault in FAULTS}}


def claim() -> list[tuple[str, float]]:
    """(name, tokens per byte) of the lab's stack of techniques for a model of Llama-3-8B's size, 16 bits, 2,047 tokens of context."""
    big = {**FULL["target"], **FULL_COMMON}
    weights, cached = call_cost(big, 1, itemsize=2).weight_bytes, call_cost(big, 1, 2047, itemsize=2).cache_read_bytes
    stack = (("alone", 1, weights, 1.0), ("batching", 3, weights, 1.0), ("pages", 5, weights, 1.0), ("8 bits", 5, weights // 2, 1.0),
             ("speculation", 5, weights // 2, 1.25))
    return [(name, batch * tokens / (read + batch * cached)) for name, batch, read, tokens in stack]


def numbers() -> dict[str, str]:
    """Every computed number of the handbook's section, as it stands in the text."""
    rates = [rate for _, rate in claim()]
    factors = [now / before for before, now in pairwise(rates)]
    rows = runs()

    def mean(fault: str) -> float:
        decode = [row["sequences"] for row in rows[fault] if row["kind"] == "decode"]
        return sum(decode) / len(decode)

    def share(fault: str, part: str, whole: str, kinds: tuple) -> float:
        chosen = [row for row in rows[fault] if row["kind"] in kinds]
        return sum(row[part] for row in chosen) / sum(row[whole] for row in chosen)

    def waited(fault: str, part: str, kinds: tuple) -> str:
        parts = waits([row for row in rows[fault] if row["kind"] in kinds], CARD)
        return f"{parts[part] / sum(parts.values()):.0%}"

    return {
        **{f"factor of {name}": f"{factor:.2f}" for (name, _), factor in zip(claim()[1:], factors, strict=True)},
        "claim against one request at a time": f"{math.prod(factors):.1f}",
        "claim against batching": f"{math.prod(factors[1:]):.1f}",
        "weights a step": f"{rows['healthy'][-1]['weight_bytes'] / 1e6:.1f} MB",
        "mean batch, healthy": f"{mean('healthy'):.2f}",
        "mean batch, cache": f"{mean('cache'):.2f}",
        "cache in use, worst case reserved": f"{share('cache', 'cache_used', 'cache_reserved', ('decode',)):.0%}",
        "useful positions, padded to 256": f"{share('padding', 'useful', 'positions', ('prefill', 'decode')):.0%}",
        "arithmetic, healthy": waited("healthy", "arithmetic", ("prefill", "decode")),
        "a decode step's wait for weights": waited("healthy", "weights", ("decode",)),
        "a decode step's wait for the cache": waited("healthy", "cache", ("decode",)),
        "useful positions, healthy": f"{share('healthy', 'useful', 'positions', ('prefill', 'decode')):.0%}",
    }


def draw(path: Path) -> None:
    """Microseconds a token of the service as it should be and with each fault, by what was waited for."""
    fig, axis = plt.subplots(figsize=(7.4, 3.4))
    for height, rows in enumerate(runs().values()):
        left = 0.0
        for part, value in waits(rows, CARD).items():
            axis.barh(height, value / 1e3, left=left, height=0.62, color=_SHADES[part], hatch=_HATCHES.get(part, ""), edgecolor="white",
                      label=part if height == 0 else None)
            left += value / 1e3
    axis.set_yticks(range(len(runs())), list(runs()))
    axis.invert_yaxis()
    axis.set_xlabel("milliseconds a token, counted on the lab's accelerator")
    axis.set_title("One service, six cases: what a token waits for", loc="left", fontsize=11, fontweight="bold")
    axis.legend(frameon=False, ncols=len(WAITS), fontsize=8.5, loc="upper center", bbox_to_anchor=(0.45, -0.2))
    axis.spines[["top", "right"]].set_visible(False)
    save_svg(fig, path)


if __name__ == "__main__":
    draw(HERE / "lab19-waits.svg")
    for name, value in numbers().items():
        print(f"{name:38s} {value}")
