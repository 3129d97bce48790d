"""Makes the diagram and the numbers of the handbook's section on attention kernels, from sizes alone.

    python handbook/figures/attention_kernel.py     writes handbook/figures/lab22-blocks.svg, prints the numbers
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt
from matplotlib.patches import Rectangle

from inferlab.lab.plots.style import ACCENT, DARK, MID, STYLE, save_svg

HERE = Path(__file__).parent
HEADS, KV_HEADS, WIDTH, ITEM, BLOCK = 32, 8, 128, 2, 128
"""One layer of Llama 3 8B in 16 bits, in blocks of 128; the lab's model and block are others."""
GRID, ROW = 6, 4


def layer_bytes(tokens: int) -> tuple[int, int, int]:
    """Bytes of one causal layer: what goes in and out, the naive kernel's, and one pass's."""
    ends, pair = 2 * HEADS * WIDTH * ITEM * tokens, 2 * KV_HEADS * WIDTH * ITEM
    blocks = tokens // BLOCK
    table = HEADS * tokens * tokens * ITEM
    return ends + pair * tokens, ends + pair * tokens + 4 * table, ends + pair * BLOCK * blocks * (blocks + 1) // 2


def numbers() -> dict[str, str]:
    """Every number of the handbook's section, as it stands in the text."""
    ends, naive, one_pass = layer_bytes(8192)
    blocks = 8192 // BLOCK
    kept = blocks * (blocks + 1) // 2
    return {
        "a table of scores": f"{HEADS * 8192 * 8192 * ITEM / 2**30:g} GiB",
        "in and out": f"{ends / 2**20:.0f} MiB",
        "naive": f"{naive / 2**30:.1f} GiB",
        "one pass": f"{one_pass / 2**30:.2f} GiB",
        "how many times": f"{naive / one_pass:.0f} times",
        "blocks with a mask": f"{kept:,} of {blocks * blocks:,}",
        "state": f"{WIDTH + 2} numbers",
        "decode jobs": f"{KV_HEADS} jobs",
        "decode with a split": f"{KV_HEADS * 16} jobs",
    }


def draw(path: Path) -> None:
    """Left, the blocks that a causal kernel reads; right, bytes against tokens."""
    with plt.style.context([STYLE, {"axes.grid": False}]):
        fig, (grid, lines) = plt.subplots(1, 2, figsize=(7.4, 3.2), width_ratios=(1, 1.25))
        for i in range(GRID):
            for j in range(i + 1):
                color = ACCENT if i == ROW else MID if j < i else DARK
                grid.add_patch(Rectangle((j + 0.06, i + 0.06), 0.88, 0.88, color=color))
        grid.annotate("", (ROW + 0.9, ROW + 0.5), (0.1, ROW + 0.5),
                      arrowprops={"arrowstyle": "->", "color": "white", "lw": 1.6})
        grid.text(3.6, 1.5, "skipped", fontsize=9)
        grid.set_xlim(0, GRID)
        grid.set_ylim(GRID, 0)
        grid.set_aspect("equal")
        grid.set_xticks([])
        grid.set_yticks([])
        grid.set_xlabel("blocks of keys")
        grid.set_ylabel("blocks of queries")
        grid.set_title("A row of blocks, one state", fontsize=10)
        tokens = [2**n for n in range(9, 18)]
        made = [layer_bytes(n) for n in tokens]
        for which, label, color, dash in ((1, "naive", MID, "-"), (2, "one pass", ACCENT, "-"),
                                          (0, "in and out", DARK, "--")):
            lines.loglog(tokens, [one[which] for one in made], dash, color=color, label=label)
        lines.minorticks_off()
        lines.set_xlabel("tokens")
        lines.set_ylabel("bytes of one layer")
        lines.legend(frameon=False, fontsize=9)
        lines.set_title("The table costs the bytes", fontsize=10)
        fig.tight_layout()
        save_svg(fig, path, tight=False)


if __name__ == "__main__":
    draw(HERE / "lab22-blocks.svg")
    for name, value in numbers().items():
        print(f"{name:22s} {value}")
