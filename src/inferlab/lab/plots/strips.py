"""Film strips: a row of pictures, and pictures over a curve."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from .style import ACCENT, DARK, LINES, STYLE, finished

Picture = Image.Image | np.ndarray


def filmstrip(pictures: Sequence[Picture], labels: Sequence[str], title: str = "",
              size: float = 1.5) -> Figure:
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
    with plt.style.context(STYLE):
        fig, axes = plt.subplots(
            1, len(pictures), figsize=(size * len(pictures), size + (0.75 if title else 0.4)), squeeze=False
        )
        for axis, picture, label in zip(axes[0], pictures, labels, strict=True):
            _show(axis, picture, label)
        if title:
            fig.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
        fig.tight_layout()
    return finished(fig)


def pictures_over_curve(
    pictures: dict[float, Picture],
    x: Sequence[float],
    y: Sequence[float],
    *,
    title: str,
    xlabel: str,
    ylabel: str,
) -> Figure:
    """A curve, and over it the pictures that belong to some of its points, in the order of the run.

    Args:
        pictures: x value -> picture; each x value must occur in ``x``.
        x: where the run was, such as timesteps; drawn from the first value on the left to the last on the
            right.
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
    with plt.style.context(STYLE):
        fig = plt.figure(figsize=(8.4, 4.6))
        grid = fig.add_gridspec(2, len(pictures), height_ratios=(1, 1.3), hspace=0.2, wspace=0.08,
                                top=0.86, bottom=0.12, left=0.09, right=0.98)
        for column, (at, picture) in enumerate(pictures.items()):
            _show(fig.add_subplot(grid[0, column]), picture, f"{xlabel.split(' ')[0]} {at:g}")
        axis = fig.add_subplot(grid[1, :])
        # a point at zero lies on the axis: it and its ring are drawn whole
        axis.plot(x, y, color=DARK, ms=3.5, clip_on=False, **LINES[0])
        marked = [float(at) for at in pictures]
        axis.plot(marked, [y[x.index(at)] for at in marked], "o", ms=9, mfc="none", mec=ACCENT, mew=1.8,
                  clip_on=False, zorder=3, label="the pictures above")
        axis.legend(frameon=False, loc="best")
        margin = 0.03 * (x[0] - x[-1])
        axis.set(xlabel=xlabel, ylabel=ylabel, xlim=(x[0] + margin, x[-1] - margin))
        axis.set_ylim(bottom=min(0.0, *y))
        fig.suptitle(title, x=0.09, y=0.97, ha="left", fontsize=11, fontweight="bold")
    return finished(fig)


def _show(axis: Axes, picture: Picture, label: str) -> None:
    axis.imshow(picture)
    axis.set_title(label, fontsize=9, fontweight="normal", loc="center")
    axis.set_axis_off()
