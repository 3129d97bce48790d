"""Bytes of weights that several pipelines hold together, each network counted once, and a picture of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from torch.nn import Module

from inferlab.lab.plots.style import ACCENT, DARK, MID, STYLE, finished

if TYPE_CHECKING:
    from diffusers import DiffusionPipeline

LOOKS = ((MID, ""), (DARK, ""), (ACCENT, "//"), ("0.55", ".."))


def held(*pipelines: DiffusionPipeline) -> dict[str, int]:
    """Component -> bytes of the weights that these pipelines hold under its name.

    A weight that several of them hold is one object, and is counted once.
    """
    found: dict[str, int] = {}
    seen: set[int] = set()
    for pipeline in pipelines:
        for name, part in pipeline.components.items():
            if isinstance(part, Module):
                own = [weight for weight in part.parameters() if id(weight) not in seen]
                seen |= {id(weight) for weight in own}
                found[name] = found.get(name, 0) + sum(w.numel() * w.element_size() for w in own)
    return found


def holding_bars(rows: Mapping[str, Mapping[str, int]], title: str) -> Figure:
    """A bar for each moment, made of the bytes of each component.

    Args:
        rows: moment -> component -> bytes; drawn from top to bottom. Up to four components.
        title: the finding.

    Raises:
        ValueError: if there is no moment, or there are more than four components.
    """
    names = list(dict.fromkeys(name for row in rows.values() for name in row))
    if not rows or len(names) > len(LOOKS):
        raise ValueError(f"one moment or more, and up to {len(LOOKS)} components; "
                         f"not {len(rows)} and {len(names)}")
    with plt.style.context(STYLE):
        fig, axis = plt.subplots(figsize=(8.4, 0.9 + 0.42 * len(rows)))
        ends = dict.fromkeys(rows, 0.0)
        for name, (color, hatch) in zip(names, LOOKS, strict=False):
            sizes = [row.get(name, 0) / 1e6 for row in rows.values()]
            axis.barh(list(rows), sizes, left=list(ends.values()), height=0.66, color=color, hatch=hatch,
                      edgecolor="white", lw=0.4, label=name)
            ends = {label: end + size for (label, end), size in zip(ends.items(), sizes, strict=True)}
        for row, end in enumerate(ends.values()):
            axis.annotate(f"{end:.1f}", (end, row), xytext=(4, 0), textcoords="offset points", va="center")
        axis.invert_yaxis()
        axis.set_xlim(0, 1.12 * max(ends.values()))
        axis.set_xlabel("weights held (MB)")
        axis.grid(axis="y", visible=False)
        axis.legend(frameon=False, fontsize=8.5, loc="lower right", ncols=len(names),
                    bbox_to_anchor=(1, 1), borderaxespad=0)
        fig.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
        fig.tight_layout()
    return finished(fig)
