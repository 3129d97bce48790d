"""The signal-to-noise ratio of several noise schedules over their timesteps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from inferlab.lab.plots.style import ACCENT, DARK, LINES, MID, STYLE, finished

LOOKS: tuple[tuple[str, dict[str, Any]], ...] = tuple(
    zip((DARK, ACCENT, MID, "0.4", "black"), (*LINES, {"ls": "-", "marker": ""}), strict=True))
FLOOR = 1e-6
"""Where the axis ends: an amplitude of a thousandth."""


def levels_over_t(curves: Mapping[str, torch.Tensor], title: str) -> Figure:
    """One curve a schedule, on a logarithmic axis from 1e-6 to 1e4; a ratio of 0 lies below the axis.

    Args:
        curves: schedule's name -> its signal-to-noise ratio at each timestep, shape (T,); up to five.
        title: the finding.

    Raises:
        ValueError: if there is no curve, or more than five.
    """
    with plt.style.context(STYLE):
        fig, axis = plt.subplots(figsize=(8.4, 3.8))
        draw_levels(axis, curves)
        axis.legend(frameon=False, loc="lower left")
        fig.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
        fig.tight_layout()
    return finished(fig)


def draw_levels(axis: Axes, curves: Mapping[str, torch.Tensor]) -> None:
    """Draw the curves of `levels_over_t` into an axis; the same arguments and errors."""
    if not 1 <= len(curves) <= len(LOOKS):
        raise ValueError(f"1 to {len(LOOKS)} curves, not {len(curves)}")
    for i, ((name, ratio), (color, look)) in enumerate(zip(curves.items(), LOOKS, strict=False)):
        shown = ratio.clamp(min=FLOOR / 100)  # a log axis has no 0: the curve leaves through the floor
        marks = (20 + 25 * i, 150)
        axis.plot(range(len(shown)), shown, color=color, label=name, ms=5, markevery=marks, **look)
    axis.axhline(1.0, color="0.7", lw=0.8, zorder=0)
    axis.set_yscale("log")
    axis.set(xlabel="timestep t", ylabel="signal-to-noise ratio", ylim=(FLOOR, 2e4))
