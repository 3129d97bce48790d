"""Rows of pictures below each other: the same columns, treated in two or three ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from inferlab.lab.plots.strips import Picture
from inferlab.lab.plots.style import STYLE, finished


def picture_rows(rows: Mapping[str, Sequence[Picture]], columns: Sequence[str],
                 notes: Mapping[str, Sequence[str]], title: str) -> Figure:
    """A grid of pictures, ready to be shown.

    Args:
        rows: row's name -> its pictures, PIL images or arrays (height, width, 3) in [0, 1] or uint8.
        columns: a heading for each picture of a row.
        notes: row's name -> a line under each of its pictures.
        title: the finding.

    Raises:
        ValueError: if a row has not as many pictures and notes as there are columns.
    """
    with plt.style.context(STYLE):
        fig = grid_of(rows, columns, notes)
        fig.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    return finished(fig)


def grid_of(rows: Mapping[str, Sequence[Picture]], columns: Sequence[str],
            notes: Mapping[str, Sequence[str]]) -> Figure:
    """The figure of `picture_rows` without a title; the same arguments and errors."""
    wrong = [name for name, row in rows.items() if not len(row) == len(notes[name]) == len(columns)]
    if wrong:
        raise ValueError(f"{', '.join(wrong)}: each of the {len(columns)} columns needs a picture and a note")
    size = 1.45 * len(columns) + 0.5, 1.75 * len(rows) + 0.4
    fig, axes = plt.subplots(len(rows), len(columns), figsize=size, squeeze=False, layout="constrained")
    for line, (name, row) in zip(axes, rows.items(), strict=True):
        for axis, picture, note in zip(line, row, notes[name], strict=True):
            axis.imshow(picture)
            axis.set_xticks([])
            axis.set_yticks([])
            axis.spines[:].set_visible(False)
            axis.set_xlabel(note, fontsize=9)
        line[0].set_ylabel(name, fontsize=9)
    for axis, heading in zip(axes[0], columns, strict=True):
        axis.set_title(heading, fontsize=9, fontweight="normal", loc="center")
    return fig
