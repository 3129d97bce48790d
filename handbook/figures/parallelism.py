"""Makes the diagram and the numbers of the handbook's section on one model on several devices.

    python handbook/figures/parallelism.py            writes handbook/figures/lab18-splits.svg, prints the numbers
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt
from matplotlib.patches import Rectangle

from inferlab.lab.plots.style import save_svg
from inferlab.models.language import FULL, WEIGHTS

HERE = Path(__file__).parent
RANKS = STAGES = 4


def bubble(stages: int, microbatches: int) -> float:
    """Idle share of a pipeline's forward pass over independent microbatches."""
    return (stages - 1) / (microbatches + stages - 1)


def messages(layers: int, hidden: int, itemsize: int, ranks: int) -> dict[str, int]:
    """Bytes of one decode pass of one user: all-reduce payload, bytes a rank sends in rings, and a pipeline's hand-overs."""
    payload = 2 * layers * hidden * itemsize
    return {"exchanges": 2 * layers, "payload": payload, "sent": 2 * (ranks - 1) * payload // ranks, "hops": (ranks - 1) * hidden * itemsize}


def numbers() -> dict[str, str]:
    """Every computed number of the handbook's section, as it stands in the text."""
    import json

    big = FULL["target"]
    own = json.loads((WEIGHTS / "target" / "config.json").read_text())
    eight = messages(big["num_hidden_layers"], big["hidden_size"], 2, RANKS)
    small = messages(own["num_hidden_layers"], own["hidden_size"], 4, 2)
    return {
        "all-reduces of the bundled model": f"{small['exchanges']} all-reduces",
        "their bytes": f"{small['payload']:,} bytes",
        "all-reduces of the big model": f"{eight['exchanges']} all-reduces",
        "one message": f"{big['hidden_size'] * 2 // 1024} KiB",
        "payload": f"{eight['payload'] // 1024} KiB",
        "sent by each of four ranks": f"{eight['sent'] // 1024} KiB",
        "a pipeline's hand-overs": f"{eight['hops'] // 1024} KiB",
        **{f"bubble of {m}": f"{bubble(STAGES, m):.0%}" for m in (1, 4, 16)},
    }


def draw(path: Path) -> None:
    """Above: the two cuts of a pair and the sum. Below: a pipeline with microbatches, and with one user."""
    fig, (top, below) = plt.subplots(2, 1, figsize=(7.4, 4.9), height_ratios=(1.15, 1))
    colors = ("#5b8db8", "#d55e00")
    for rank, color in enumerate(colors):
        y = 2.9 - 2.9 * rank
        hatch = "" if rank == 0 else "//"
        top.add_patch(Rectangle((0, y), 0.5, 1.6, fc="0.85", ec="#1b3a5c"))
        top.text(0.25, y + 0.8, "x", ha="center", va="center")
        for at, width, height, label in ((1.5, 0.9, 1.6, "A, half of\nthe columns"), (4.4, 1.6, 0.8, "B, half of the rows")):
            top.add_patch(Rectangle((at, y + (1.6 - height) / 2), width, height, fc=color, ec="#1b3a5c", hatch=hatch, alpha=0.75))
            top.text(at + width / 2, y - 0.12, label, ha="center", va="top", fontsize=8)
        top.add_patch(Rectangle((7.2, y), 0.5, 1.6, fc="white", ec=color, lw=2, ls="--", hatch=hatch))
        top.text(7.45, y - 0.12, "partial sum", ha="center", va="top", fontsize=8)
        top.text(-0.2, y + 0.8, f"rank {rank}", ha="right", va="center", fontsize=9)
        for a, b, word in ((0.6, 1.4, ""), (2.5, 4.3, "f"), (6.1, 7.1, "")):
            top.annotate("", (b, y + 0.8), (a, y + 0.8), arrowprops={"arrowstyle": "-|>", "color": "0.3"})
            top.text((a + b) / 2, y + 0.9, word, ha="center", va="bottom", style="italic")
        top.annotate("", (9.1, 2.25), (7.8, y + 0.8), arrowprops={"arrowstyle": "-|>", "color": "#1b3a5c", "lw": 1.6})
    top.text(9.2, 2.25, "all-reduce:\nthe sum, on\nboth ranks", va="center", fontsize=9, fontweight="bold")
    top.set(xlim=(-1.3, 11.2), ylim=(-0.9, 4.7))
    top.set_axis_off()
    top.set_title("Tensor parallel: cut by columns, then by rows, and meet once", loc="left", fontsize=11, fontweight="bold")
    for left, jobs, title in ((0, [1] * 4, "4 microbatches of training"), (9.4, [2], "one user, two tokens")):
        for stage in range(STAGES):
            below.text(left - 0.15, -stage + 0.5, f"stage {stage}" if left == 0 else "", ha="right", va="center", fontsize=8)
        for job, passes in enumerate(jobs):
            for number in range(passes):
                for stage in range(STAGES):
                    tick = job + stage + number * STAGES
                    color = ("#1b3a5c", "#5b8db8", "#9fc0da", "0.75")[job] if len(jobs) > 1 else ("#d55e00", "#f0a35e")[number]
                    below.add_patch(Rectangle((left + tick, -stage + 0.08), 0.94, 0.84, fc=color, ec="white"))
        below.text(left, 1.25, title, fontsize=9)
    below.set(xlim=(-1.6, 18), ylim=(-3.1, 1.8))
    below.set_axis_off()
    below.set_title("Pipeline: microbatches fill the stages, one user cannot", loc="left", fontsize=11, fontweight="bold")
    fig.tight_layout()
    save_svg(fig, path)


if __name__ == "__main__":
    draw(HERE / "lab18-splits.svg")
    for name, value in numbers().items():
        print(f"{name:36s} {value}")
