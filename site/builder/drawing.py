"""Plots as SVG, in the site's own colors and letters.

An SVG is as wide as its column: across it everything stands in percent, down it in pixels, so that its
letters have one size on a phone and on a desk, and can be selected.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

MARGIN = 1.5
"""Percent of the width left and right of an axis, so that a mark at its end is whole."""
ROW, TOP, BOTTOM, HEIGHT = 42, 26, 44, 330
"""Pixels: a row with its words above its marks; the legend; the axis; a plot of two axes."""


@dataclass(frozen=True)
class Axis:
    """A scale: what it is of, its ends, the values that are named, and how they are written."""

    title: str
    low: float
    high: float
    ticks: Sequence[float]
    written: str = "{:g}"
    log: bool = True

    def part(self, value: float) -> float:
        """Where a value lies, from 0 to 1."""
        ends = (self.low, self.high, value)
        low, high, at = map(math.log, ends) if self.log else ends
        return (at - low) / (high - low)

    def percent(self, value: float) -> str:
        """The same across an SVG."""
        return f"{MARGIN + (100 - 2 * MARGIN) * self.part(value):.2f}%"


@dataclass(frozen=True)
class Mark:
    """A measured value: of which series, what it is called, the ends of its spread, and its x if it has two
    axes."""

    value: float
    series: int
    name: str
    spread: tuple[float, float] | None = None
    x: float = math.nan


@dataclass(frozen=True)
class Row:
    """A line of a plot: its name, its goal, its values as they are written with their series, and its
    marks."""

    name: str
    goal: float | None = None
    said: list[tuple[int, str]] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)


@dataclass
class Drawing:
    """An SVG's height and parts, in order."""

    height: float
    parts: list[str] = field(default_factory=list)

    def line(self, kind: str, x1: str, y1: float, x2: str, y2: float) -> None:
        """A straight line."""
        self.parts.append(f'<line class="{kind}" x1="{x1}" y1="{y1:.1f}" x2="{x2}" y2="{y2:.1f}"/>')

    def text(self, kind: str, x: str, y: float, words: str, anchor: str = "start") -> None:
        """Words, as HTML."""
        self.parts.append(f'<text class="{kind}" x="{x}" y="{y:.1f}" text-anchor="{anchor}">{words}</text>')

    def mark(self, series: int, name: str, x: str, y: float) -> None:
        """A dot of the first series, a square of the second, a ring of the third."""
        dot = f'<circle cx="{x}" cy="{y:.1f}" r="4.5"/>'
        square = f'<rect x="{x}" y="{y - 4:.1f}" width="8" height="8" transform="translate(-4)"/>'
        shape = square if series == 1 else dot
        self.parts.append(f'<g class="mark series-{series}"><title>{escape(name)}</title>{shape}</g>')

    def across(self, axis: Axis, top: float, bottom: float) -> None:
        """The axis at the bottom, and a line upwards from each of its values; the outermost are written
        inwards."""
        for tick in axis.ticks:
            x, part = axis.percent(tick), axis.part(tick)
            self.line("grid", x, top, x, bottom)
            anchor = "start" if part < 0.02 else "end" if part > 0.98 else "middle"
            self.text("tick", x, bottom + 15, axis.written.format(tick), anchor)
        self.text("title", "100%", bottom + 33, escape(axis.title), "end")

    def legend(self, series: Sequence[str], goal: str = "") -> None:
        """What dot, square and ring stand for, and the upright line."""
        x = 6.0
        for number, name in enumerate(series):
            self.mark(number, name, f"{x:.0f}", 8)
            self.text("tick", f"{x + 9:.0f}", 12, escape(name))
            x += 30 + 6.6 * len(name)
        if goal:
            self.line("goal", f"{x:.0f}", 2, f"{x:.0f}", 14)
            self.text("tick", f"{x + 7:.0f}", 12, goal)

    def svg(self, says: str) -> str:
        """The whole; `says` is for those who do not see it."""
        label = escape(f"A plot. {says} The tables below have its numbers.")
        inside = "\n".join(self.parts)
        return f'<svg role="img" aria-label="{label}" height="{self.height:.0f}">\n{inside}\n</svg>'


def rows_plot(says: str, rows: Sequence[Row], axis: Axis, series: Sequence[str], goal: str = "") -> str:
    """A line of marks for each row, its name and values above them.

    Args:
        says: the plot in words.
        rows: from the top.
        axis: of all marks.
        series: what the legend calls each series.
        goal: what it calls the upright lines.
    """
    bottom = TOP + ROW * len(rows)
    drawing = Drawing(bottom + BOTTOM)
    drawing.legend(series, goal)
    drawing.across(axis, TOP, bottom)
    for y, row in zip(range(TOP, bottom, ROW), rows, strict=True):
        drawing.text("name halo", "0", y + 14, escape(row.name))
        said = (f'<tspan class="series-{which}">{escape(text)}</tspan>' for which, text in row.said)
        drawing.text("said halo", "100%", y + 14, " · ".join(said), "end")
        drawing.line("grid", "0", y + 27, "100%", y + 27)
        if row.goal:
            drawing.line("goal", axis.percent(row.goal), y + 19, axis.percent(row.goal), y + 35)
        for mark in row.marks:
            height = y + 27 + 7 * (mark.series - 0.5) * (len(row.marks) == 2)
            if mark.spread:
                low, high = (axis.percent(min(max(end, axis.low), axis.high)) for end in mark.spread)
                drawing.line(f"spread series-{mark.series}", low, height, high, height)
            drawing.mark(mark.series, mark.name, axis.percent(mark.value), height)
    return drawing.svg(says)


@dataclass(frozen=True)
class Words:
    """Words beside a mark or a line of a plot with two axes."""

    x: float
    y: float
    says: str
    anchor: str = "start"


def field_plot(
    says: str,
    marks: Sequence[Mark],
    axes: tuple[Axis, Axis],
    series: Sequence[str],
    lines: Sequence[tuple[str, tuple[float, float], tuple[float, float]]],
    words: Sequence[Words] = (),
) -> str:
    """Marks over two axes.

    Args:
        says: the plot in words.
        marks: each with its x.
        axes: x and y.
        series: what the legend calls each series.
        lines: (class, start, end).
        words: beside them.
    """
    across, upwards = axes
    top, bottom = TOP + 30, HEIGHT - BOTTOM
    drawing = Drawing(HEIGHT)

    def down(value: float) -> float:
        return bottom - (bottom - top) * upwards.part(value)

    drawing.legend(series)
    drawing.across(across, top, bottom)
    drawing.text("title", "0", TOP + 8, escape(upwards.title))
    for tick in upwards.ticks:
        drawing.line("grid", "0", down(tick), "100%", down(tick))
    for kind, start, end in lines:
        drawing.line(kind, across.percent(start[0]), down(start[1]), across.percent(end[0]), down(end[1]))
    for tick in upwards.ticks:
        drawing.text("tick halo", "0", down(tick) - 4, upwards.written.format(tick))
    for mark in marks:
        drawing.mark(mark.series, mark.name, across.percent(mark.x), down(mark.value))
    for word in words:
        drawing.text("name halo", across.percent(word.x), down(word.y), escape(word.says), word.anchor)
    return drawing.svg(says)


def ticks_of(low: float, high: float, steps: Sequence[int] = (1, 2, 5)) -> list[float]:
    """1, 2, 5, 10, 20, ... as far as they lie between `low` and `high`."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [step * 10.0**power for power in powers for step in steps if low <= step * 10.0**power <= high]


def figure(finding: str, drawn: str, svg: str) -> str:
    """A plot below what it shows and what is drawn, as HTML."""
    head = f"<figcaption><b>{escape(finding)}</b> {escape(drawn)}</figcaption>"
    return f'<figure class="plot">\n{head}\n{svg}\n</figure>\n'
