"""Makes the diagram and the numbers of the handbook's section on paged attention.

    python handbook/figures/paged_attention.py            writes handbook/figures/lab15-tables.svg, prints the numbers
"""

from __future__ import annotations

import random
from pathlib import Path

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt
from matplotlib.patches import Rectangle

from inferlab.lab.plots.style import save_svg

HERE = Path(__file__).parent
ROW = 2 * 32 * 8 * 128 * 2
"""Bytes of one position of Llama 3 8B's cache in bfloat16: keys and values, layers, KV heads, head_dim, bytes."""

LIMIT, BUDGET = 8192, 60_000_000_000
PAGE = 4
REQUESTS = {"A": (10, [2, 0, 5]), "B": (11, [2, 0, 6]), "C": (3, [3])}
"""The diagram's requests: positions filled, and block table. A and B share their first two pages."""


def lengths(n: int = 2000) -> list[int]:
    """Requests with 640 positions on average, at most the limit."""
    rng = random.Random(7)
    return [min(LIMIT, int(rng.expovariate(1 / 600)) + 40) for _ in range(n)]


def fits(page: int) -> int:
    """How many of the requests fit into the budget in pages of this size, in their order."""
    blocks, inside = BUDGET // (page * ROW), 0
    for length in lengths():
        blocks -= -(-length // page)
        if blocks < 0:
            return inside
        inside += 1
    return inside


def empty(page: int) -> float:
    """The share of the held positions that hold nothing."""
    return 1 - sum(lengths()) / sum(-(-n // page) * page for n in lengths())


def numbers() -> dict[str, str]:
    """Every number of the handbook's section that is not cited, as it stands in the text."""
    prompt, new, page = 45, 12, 16
    stored = prompt + new - 1
    return {
        "bytes of a position": f"{ROW:,} bytes",
        "mean length": f"{sum(lengths()) / len(lengths()):.0f} positions",
        "reserved, fit": f"{BUDGET // (LIMIT * ROW)} requests",
        "reserved, empty": f"{1 - sum(lengths()) / (LIMIT * len(lengths())):.0%} of",
        "pages of 16, fit": f"{fits(16)} requests",
        "pages of 16, empty": f"{empty(16):.1%}",
        "pages of 256, fit": f"{fits(256)} fit",
        "pages of 256, empty": f"{empty(256):.1%}",
        "stored": f"{stored} positions",
        "blocks at first": f"takes {-(-prompt // page)} blocks",
        "blocks at last": f"ends with {-(-stored // page)} blocks",
        "empty in the last": f"{-(-stored // page) * page - stored} positions empty",
        "position 37": f"page {37 // page}, place {37 % page}",
        "shared, diagram": f"{len({b for _, table in REQUESTS.values() for b in table})} blocks for "
        f"{sum(len(table) for _, table in REQUESTS.values())} pages",
    }


def draw(path: Path) -> None:
    """Three requests, their tables, and the pool: where each page lies, and which blocks have two owners."""
    colors = {"A": "#1b3a5c", "B": "#5b8db8", "C": "#9fc0da"}
    owners = {block: [r for r, (_, table) in REQUESTS.items() if block in table] for block in range(8)}

    def fill(block: int) -> dict[str, str]:
        """A block looks the same in the pool and in each table that names it."""
        if len(owners[block]) > 1:
            return {"facecolor": "#d55e00", "hatch": "//"}
        return {"facecolor": colors[owners[block][0]] if owners[block] else "white"}

    fig, axis = plt.subplots(figsize=(7.4, 3.5))
    for block in range(8):
        x = block * 1.15
        axis.add_patch(Rectangle((x, 0), 1, 0.8, edgecolor="0.4", **fill(block)))
        axis.text(x + 0.5, -0.3, f"block {block}", ha="center", fontsize=8)
        axis.text(x + 0.5, -0.62, f"{len(owners[block])} refs", ha="center", fontsize=7.5, color="0.4")
    for row, (request, (filled, table)) in enumerate(REQUESTS.items()):
        y = 1.75 + 1.05 * (2 - row)
        axis.text(-0.25, y + 0.22, f"{request}: {filled} positions", ha="right", va="center", fontsize=9)
        for k, block in enumerate(table):
            x = k * 1.9
            used = min(PAGE, filled - k * PAGE)
            axis.add_patch(Rectangle((x, y), 1.6, 0.45, facecolor="white", edgecolor="0.4"))
            axis.add_patch(Rectangle((x, y), 1.6 * used / PAGE, 0.45, edgecolor="0.4", **fill(block)))
            axis.text(x, y + 0.63, f"page {k} → {block}", va="center", fontsize=8)
    axis.text(-0.25, 0.4, "the pool", ha="right", va="center", fontsize=9)
    axis.set(xlim=(-2.6, 9.3), ylim=(-0.9, 4.8))
    axis.set_axis_off()
    axis.set_title("The tables know the order; the blocks lie anywhere", loc="left", fontsize=11, fontweight="bold")
    save_svg(fig, path)


if __name__ == "__main__":
    draw(HERE / "lab15-tables.svg")
    for name, value in numbers().items():
        print(f"{name:24s} {value}")
