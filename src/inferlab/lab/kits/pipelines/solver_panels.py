"""The same curves against different costs, side by side: which one is best depends on what is counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from inferlab.lab.plots.style import ACCENT, DARK, LINES, MID, STYLE, finished


def curve_panels(
    panels: Mapping[str, Mapping[str, tuple[Sequence[float], Sequence[float]]]],
    *,
    title: str,
    ylabel: str,
) -> Figure:
    """Panels with one logarithmic y axis in common and logarithmic (base 2) x axes of their own.

    Args:
        panels: x axis label -> curve's name -> (x values, y values), all positive; up to four curves a panel.
        title: the finding, over all panels.
        ylabel: name and unit of y.

    Raises:
        ValueError: if there is no panel, a panel has more than four curves, or a curve's x and y differ in
            length.
    """
    if not panels or any(len(curves) > len(LINES) for curves in panels.values()):
        raise ValueError(f"1 or more panels with 1 to {len(LINES)} curves each")
    with plt.style.context(STYLE):
        fig, axes = plt.subplots(1, len(panels), figsize=(4.3 * len(panels), 3.5), sharey=True, squeeze=False)
        for axis, (xlabel, curves) in zip(axes[0], panels.items(), strict=True):
            ticks = sorted({int(value) for x, _ in curves.values() for value in x})
            for (name, (x, y)), style, color in zip(curves.items(), LINES, (DARK, ACCENT, MID, "0.4"),
                                                    strict=False):
                if len(x) != len(y):
                    raise ValueError(f"{name}: {len(x)} x values and {len(y)} y values")
                axis.plot(x, y, color=color, label=name, ms=5, **style)
            axis.set_xscale("log", base=2)
            axis.set_yscale("log")
            axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.yaxis.set_major_formatter("{x:g}")
            axis.set_xticks(ticks, [str(tick) for tick in ticks])
            axis.minorticks_off()
            axis.set_xlabel(xlabel)
        axes[0][0].set_ylabel(ylabel)
        axes[0][-1].legend(frameon=False, loc="lower left")
        fig.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
        fig.tight_layout()
    return finished(fig)
