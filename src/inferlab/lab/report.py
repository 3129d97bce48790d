"""Turns the parts of a check into the report that a learner reads, as text and as HTML for light and dark pages."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .check import Part

_MARKS = {"passed": "✓", "failed": "✗", "missing": "○", "review": "?", "broken": "!"}


def headline(name: str, points: float, maximum: float) -> str:
    """One line: `ddim-step: 3 of 4 points`."""
    return f"{name}: {points:g} of {maximum:g} points"


def text_report(name: str, points: float, maximum: float, parts: list[Part]) -> str:
    """The report as plain text, one line a part and one more for its message."""
    lines = [headline(name, points, maximum)]
    for part in parts:
        lines.append(f"  {_mark(part)} {part.name}" + (f": {part.message}" if part.message else ""))
    return "\n".join(lines)


def html_report(name: str, points: float, maximum: float, parts: list[Part]) -> str:
    """The report as HTML; everything from outside is escaped."""
    rows = "".join(
        f"<li><span>{_mark(part)}</span> {_inline(part.name)}"
        + (f"<br><em>{_inline(part.message)}</em>" if part.message else "")
        + "</li>"
        for part in parts
    )
    return (f'<div class="inferlab-check"><strong>{escape(headline(name, points, maximum))}</strong>'
            f'<ul style="list-style:none;padding-left:1em;margin:0.3em 0">{rows}</ul></div>')


def _inline(text: str) -> str:
    """`text` escaped, with what stands between backticks as code."""
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", escape(text))


def _mark(part: Part) -> str:
    partly = part.state == "failed" and part.fraction > 0
    return "◐" if partly else _MARKS[part.state]
