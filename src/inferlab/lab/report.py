"""Turns the parts of a check into the report that a learner reads, as text and as HTML for light and dark pages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

from .identity import normalize

if TYPE_CHECKING:
    from .check import Part

_MARKS = {"passed": "✓", "failed": "✗", "missing": "○", "review": "?", "broken": "!"}


def form_only(parts: list[Part]) -> bool:
    """Whether the parts look at the form alone, as a released check of an explanation does: what it says is graded later."""
    return not any(part.weight for part in parts)


def headline(name: str, points: float, maximum: float, form_only: bool) -> str:
    """One line: `ddim-step: 3 of 4 points`, or for a form `words-state: filled in, graded later`."""
    if form_only:
        return f"{name}: {'filled in, graded later' if points == maximum else 'not filled in yet'}"
    return f"{name}: {points:g} of {maximum:g} points"


def total(lab: str, points: float, maximum: float, later: float) -> str:
    """One line: what the visible checks give, and how many points no visible check can tell."""
    return (f"{lab}: the visible checks give {points:g} of {maximum:g} points"
            + (f"; {later:g} more are graded after you hand in" if later else ""))


def missing(learner: str, parts: dict[str, list[tuple[str, str, str]]], expected: Iterable[str]) -> list[str]:
    """What stands between a notebook and a complete hand-in, a line each.

    Args:
        learner: what LEARNER says.
        parts: name, state and message of every part, by check, of the checks that ran.
        expected: the checks that the notebook has.
    """
    lines = [] if normalize(learner) else ["your name or id in LEARNER"]
    lines += [f"{check}: {name}" + (f" ({message})" if message else "")
              for check, found in parts.items() for name, state, message in found if state in ("missing", "failed")]
    return lines + [f"{check}: its check did not run" for check in sorted(set(expected) - parts.keys())]


def text_report(name: str, points: float, maximum: float, parts: list[Part]) -> str:
    """The report as plain text, one line a part and one more for its message."""
    lines = [headline(name, points, maximum, form_only(parts))]
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
    return (f'<div class="inferlab-check"><strong>{escape(headline(name, points, maximum, form_only(parts)))}</strong>'
            f'<ul style="list-style-type:none;padding-left:1em;margin:0.3em 0">{rows}</ul></div>')


def _inline(text: str) -> str:
    """`text` escaped, with what stands between backticks as code."""
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", escape(text))


def _mark(part: Part) -> str:
    partly = part.state == "failed" and part.fraction > 0
    return "◐" if partly else _MARKS[part.state]
