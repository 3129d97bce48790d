"""Shows a few dozen lines of the installed library's own source, with notes beside the lines they explain."""

from __future__ import annotations

import html
import inspect
import os
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise

MAX_LINES = 60
"""More lines than this are no longer an excerpt."""

STRICT = "INFERLAB_STRICT_SOURCE"
"""CI sets this environment variable to "1": a moved note is then an error in every version of a library."""


class MovedNote(LookupError):
    """A note, or the edge of an excerpt, no longer belongs to exactly one line of the installed source."""


@dataclass(frozen=True)
class SourceLine:
    """One line shown: its number in the library's file, its text, and the note beside it ("" for none)."""

    number: int
    text: str
    note: str = ""


@dataclass(frozen=True)
class SourceView:
    """An annotated excerpt. It displays itself as HTML in a notebook and as text elsewhere.

    Attributes:
        title: the dotted name of what is shown, with the package's version.
        blocks: the excerpts, each a tuple of lines; between two of them something was left out.
        stale: "" when every note was found on its line; otherwise what a reader is told in place of the
            notes.
    """

    title: str
    blocks: tuple[tuple[SourceLine, ...], ...]
    stale: str = ""

    def __repr__(self) -> str:
        return "\n".join(_text_lines(self))

    def _repr_html_(self) -> str:
        return _html(self)


def show_source(
    target: Callable,
    notes: Mapping[str, str],
    *,
    excerpts: Sequence[tuple[str, str]] = (),
    checked: str = "",
) -> SourceView:
    """The source of a function or method as it is installed here, with each note beside its line.

    A line is named by a piece of its own text, which must occur in exactly one line of ``target``. Line
    numbers are never used: they move with every release, and a note that moves with them explains the wrong
    line.

    Args:
        target: a Python function, method or class whose source ``inspect`` can read.
        notes: piece of a line's text -> note on that line, one or two sentences.
        excerpts: ``(first, last)`` pairs, each a piece of the first and of the last line to show, in the
            order of the source; empty shows everything after the docstring.
        checked: the version of the library that the notes were written for.

    Returns:
        A :class:`SourceView`. Where the installed version is not ``checked`` and a note has lost its line,
        the view shows the source without any note and says so: no note is better than a note on the wrong
        line.

    Raises:
        MovedNote: if a note or an edge has lost its line in the very version it was written for, or in any
            version when ``INFERLAB_STRICT_SOURCE`` is "1". The message names the note.
        ValueError: if the excerpts are more than 60 lines or out of order.
    """
    name = f"{target.__module__.split('.')[0]} {_version(target)}"
    title = f"{target.__qualname__}  ({name})"
    lines, first = inspect.getsourcelines(target)
    lines = textwrap.dedent("".join(lines)).splitlines()
    try:
        placed = {_find(lines, piece, f"the note {note[:60]!r}", title): note
                  for piece, note in notes.items()}
        edges = [(_find(lines, start, "the start of an excerpt", title),
                  _find(lines, end, "the end of an excerpt", title)) for start, end in excerpts]
        ranges = edges or [(_body_start(target, lines), len(lines) - 1)]
    except MovedNote as moved:
        if os.environ.get(STRICT) == "1" or _version(target) == checked:
            raise
        stale = (
            f"These notes were written for version {checked}. In {name} this method has changed, so they are "
            f"left out: they could stand beside the wrong lines. ({moved})"
        )
        start = _body_start(target, lines)
        end = min(len(lines), start + MAX_LINES) - 1
        return SourceView(title, (_block(lines, start, end, first, {}),), stale)
    _refuse_odd(ranges, placed, notes)
    return SourceView(title, tuple(_block(lines, a, b, first, placed) for a, b in ranges))


def _version(target: Callable) -> str:
    try:
        return version(target.__module__.split(".")[0])
    except PackageNotFoundError:
        return "unknown version"


def _find(lines: list[str], piece: str, what: str, title: str) -> int:
    """Index of the one line that holds ``piece``."""
    hits = [i for i, line in enumerate(lines) if piece in line]
    if len(hits) != 1:
        how = "on no line" if not hits else f"on {len(hits)} lines"
        raise MovedNote(f"{what} is tied to the text {piece!r}, which is {how} of {title}")
    return hits[0]


def _refuse_odd(ranges: list[tuple[int, int]], placed: dict[int, str], notes: Mapping[str, str]) -> None:
    """Refuse what only an author can mend: excerpts that overlap or are too long, notes outside of them."""
    in_order = all(a <= b for a, b in ranges) and all(x[1] < y[0] for x, y in pairwise(ranges))
    if not in_order:
        raise ValueError("excerpts must follow each other in the order of the source, without overlap")
    shown = sum(b - a + 1 for a, b in ranges)
    if shown > MAX_LINES:
        raise ValueError(f"{shown} lines are no excerpt: show at most {MAX_LINES}, in two or three excerpts")
    hidden = [n for i, n in placed.items() if not any(a <= i <= b for a, b in ranges)]
    if hidden or len(placed) < len(notes):
        raise ValueError("each note needs a line of its own inside an excerpt; "
                         f"look at {hidden or list(notes)}")


def _body_start(target: Callable, lines: list[str]) -> int:
    """Index of the first line after the docstring, or 0 when there is none."""
    docstring = target.__doc__
    if not docstring:
        return 0
    ends = [i for i, line in enumerate(lines) if line.rstrip().endswith(('"""', "'''"))]
    one_line = len(docstring.splitlines()) == 1
    return (ends[0 if one_line else min(1, len(ends) - 1)] + 1) if ends else 0


def _block(lines: list[str], a: int, b: int, first: int, placed: dict[int, str]) -> tuple[SourceLine, ...]:
    """The lines ``a`` to ``b`` with their numbers in the library's file."""
    return tuple(SourceLine(first + i, lines[i], placed.get(i, "")) for i in range(a, b + 1))


def _text_lines(view: SourceView) -> list[str]:
    out = [view.title]
    if view.stale:
        out += textwrap.wrap(view.stale, 100)
    for number, block in enumerate(view.blocks):
        if number:
            out.append("      ...")
        common = _indent(block)
        for line in block:
            out.append(f"{line.number:5d} {line.text[common:]}".rstrip())
            if line.note:
                out += ["      ^ " + part for part in textwrap.wrap(line.note, 92)]
    return out


def _indent(block: tuple[SourceLine, ...]) -> int:
    return min((len(x.text) - len(x.text.lstrip()) for x in block if x.text.strip()), default=0)


# Styles stand on the elements: JupyterLab takes a <style> block out of a notebook that it does not trust yet.
# A note stands beside the lines that follow it, and above them where the page is too narrow for two columns.
_PIECE = "display:flex;flex-wrap:wrap-reverse;align-items:flex-end"
_LINES = "flex:3 1 30em;min-width:0"
_NOTE = "flex:1 1 15em;border-left:3px solid #d55e00;padding:2px 4px 4px 10px;line-height:1.4"
_SPACE = "flex:1 1 15em"
_LINE = "display:flex"
_NOTED = _LINE + ";background:rgba(213,94,0,0.13)"
_NUMBER = ("flex:none;width:3em;text-align:right;padding-right:8px;opacity:0.6;font-size:11.5px;"
           "line-height:1.5")
_CODE = ("flex:1;min-width:0;margin:0;padding:0;white-space:pre-wrap;overflow-wrap:anywhere;font-size:11.5px;"
         "line-height:1.5;background:transparent;color:inherit;border:none")


def _html(view: SourceView) -> str:
    left_out = '<div style="padding-left:2.2em;opacity:0.6">&#8942;</div>'
    blocks = left_out.join(_html_block(block) for block in view.blocks)
    stale = html.escape(view.stale)
    warning = f'<p style="border-left:3px solid #d55e00;padding:4px 10px">{stale}</p>' if stale else ""
    return f'<div style="max-width:75em"><b>{html.escape(view.title)}</b>{warning}{blocks}</div>'


def _html_block(block: tuple[SourceLine, ...]) -> str:
    """An excerpt in pieces, one from each noted line to the next: so a note has room beside its piece."""
    common = _indent(block)
    starts = sorted({0, len(block), *(i for i, line in enumerate(block) if line.note)})
    return "".join(_html_piece(block[a:b], common) for a, b in pairwise(starts))


def _html_piece(piece: tuple[SourceLine, ...], common: int) -> str:
    lines = "".join(
        f'<div style="{_NOTED if line.note else _LINE}"><span style="{_NUMBER}">{line.number}</span>'
        f'<pre style="{_CODE}">{html.escape(line.text[common:]) or " "}</pre></div>' for line in piece)
    note = html.escape(piece[0].note)
    beside = f'<div style="{_NOTE}">{note}</div>' if note else f'<div style="{_SPACE}"></div>'
    return f'<div style="{_PIECE}"><div style="{_LINES}">{lines}</div>{beside}</div>'
