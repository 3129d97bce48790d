"""The labs' pictures: one look, labelled axes, colors that survive grey-scale print."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path

from matplotlib import pyplot as plt
from matplotlib.figure import Figure

DARK, MID, ACCENT = "#1b3a5c", "#5b8db8", "#d55e00"
"""Dark blue, mid blue and orange-red: 23%, 52% and 45% grey, told apart in print by markers and line styles too."""

LINES = ({"ls": "-", "marker": "o"}, {"ls": "--", "marker": "s"}, {"ls": ":", "marker": "^"}, {"ls": "-.", "marker": "D"})
_LOOK = {
    "font.size": 9.5,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "figure.facecolor": "white",
    "figure.dpi": 96,
}


def filmstrip(pictures: Sequence, labels: Sequence[str], title: str = "", size: float = 1.5) -> Figure:
    """A row of pictures with a label over each.

    Args:
        pictures: PIL images, or arrays of shape (height, width, 3) in [0, 1] or uint8.
        labels: one line for each picture.
        title: the finding, over the whole row; may be empty.
        size: width and height of one picture, in inches.

    Raises:
        ValueError: if there are no pictures, or not one label for each.
    """
    if not pictures or len(pictures) != len(labels):
        raise ValueError(f"{len(pictures)} pictures and {len(labels)} labels: each picture needs its label")
    with plt.rc_context(_LOOK):
        fig, axes = plt.subplots(
            1, len(pictures), figsize=(size * len(pictures), size + (0.75 if title else 0.4)), squeeze=False
        )
        for axis, picture, label in zip(axes[0], pictures, labels, strict=True):
            _show(axis, picture, label)
        if title:
            fig.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
        fig.tight_layout()
    return _closed(fig)


def pictures_over_curve(
    pictures: dict,
    x: Sequence[float],
    y: Sequence[float],
    *,
    title: str,
    xlabel: str,
    ylabel: str,
) -> Figure:
    """A curve, and over it the pictures that belong to some of its points, in the order in which a run meets them.

    Args:
        pictures: x value -> picture; each x value must occur in ``x``.
        x: where the run was, such as timesteps; drawn from the first value on the left to the last on the right.
        y: the value at each x.
        title: the finding.
        xlabel: name and unit of x.
        ylabel: name and unit of y.

    Raises:
        ValueError: if x and y differ in length, or a picture belongs to no point.
    """
    x, y = [float(v) for v in x], [float(v) for v in y]
    if len(x) != len(y) or not set(map(float, pictures)) <= set(x):
        raise ValueError("x and y need the same length, and each picture an x value of the curve")
    with plt.rc_context(_LOOK):
        fig = plt.figure(figsize=(8.4, 4.6))
        grid = fig.add_gridspec(
            2, len(pictures), height_ratios=(1, 1.3), hspace=0.2, wspace=0.08, top=0.86, bottom=0.12, left=0.09, right=0.98
        )
        for column, (at, picture) in enumerate(pictures.items()):
            _show(fig.add_subplot(grid[0, column]), picture, f"{xlabel.split(' ')[0]} {at:g}")
        axis = fig.add_subplot(grid[1, :])
        axis.plot(x, y, color=DARK, ms=3.5, **LINES[0])
        marked = [float(at) for at in pictures]
        axis.plot(marked, [y[x.index(at)] for at in marked], "o", ms=9, mfc="none", mec=ACCENT, mew=1.8)
        axis.set(xlabel=xlabel, ylabel=ylabel, xlim=(x[0] + 0.03 * (x[0] - x[-1]), x[-1] - 0.03 * (x[0] - x[-1])))
        axis.set_ylim(bottom=min(0.0, *y))
        fig.suptitle(title, x=0.09, y=0.97, ha="left", fontsize=11, fontweight="bold")
    return _closed(fig)


def _show(axis, picture, label: str) -> None:
    axis.imshow(picture)
    axis.set_title(label, fontsize=9, fontweight="normal", loc="center")
    axis.set_axis_off()


def _closed(fig: Figure) -> Figure:
    """Take the figure out of pyplot's list, so that a notebook shows it once: as the value of its cell."""
    plt.close(fig)
    return fig


def save_svg(fig: Figure, path: Path, *, tight: bool = True) -> None:
    """Write a handbook's diagram to `path`, the same bytes at every run, and close it.

    Text becomes outlines, so that it looks alike without the fonts; neither a date nor a random id is written. `tight` cuts
    the margins to what is drawn. Coordinates are kept to a hundredth of a point.
    """
    drawn = io.StringIO()
    with plt.rc_context({"svg.hashsalt": "inferlab", "svg.fonttype": "path"}):
        fig.savefig(drawn, format="svg", bbox_inches="tight" if tight else None, metadata={"Date": None})
    plt.close(fig)
    path.write_text(compact_svg(drawn.getvalue()), encoding="utf-8")


def compact_svg(text: str) -> str:
    """An SVG of matplotlib's a seventh shorter: coordinates to two decimals (scales as they are), without its layout."""
    def shorter(number: re.Match[str]) -> str:
        return number[0] if number[0].startswith("scale") else f"{float(number[0]):.2f}".rstrip("0").rstrip(".")

    text = re.sub(r"scale\([^)]*\)|-?\d+\.\d{3,}", shorter, text)
    return re.sub(r" ?\n\s*", "\n", text)
