"""Turns what a check found into the report that a learner reads, as text and as HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape

from inferlab.lab.identity import normalize

_MARKS = {"passed": "✓", "failed": "✗", "missing": "○", "review": "?", "broken": "!"}


@dataclass
class Part:
    """One part of a check.

    Attributes:
        name: what the part asks for, in a few words.
        weight: its share of the check's points; a part of weight 0 only looks at the form of an answer.
        fraction: how much of the weight was earned, 0 to 1.
        state: "passed", "failed", "missing", "review" or "broken".
        message: what is wrong, for the learner; empty when nothing is.
        mistake: whether the message names a known mistake.
        evidence: what a decision rests on, for the instructor.
    """

    name: str
    weight: float = 1.0
    fraction: float = 0.0
    state: str = "failed"
    message: str = ""
    mistake: bool = False
    evidence: list[str] = field(default_factory=list)

    @property
    def line(self) -> str:
        """The part's name, and its message if there is one."""
        return f"{self.name}: {self.message}" if self.message else self.name

    @property
    def mark(self) -> str:
        """One character for the state."""
        partly = self.state == "failed" and self.fraction > 0
        return "◐" if partly else _MARKS[self.state]


@dataclass(frozen=True)
class Report:
    """What one check found.

    Attributes:
        name: the check's name.
        points: points earned; `None` where more parts run later.
        maximum: the most points that the check gives.
        parts: the parts that ran.
        later: how many more parts run after the work is handed in.
    """

    name: str
    points: float | None
    maximum: float
    parts: list[Part]
    later: int = 0

    @property
    def form_only(self) -> bool:
        """Whether the parts only look at the form, as the released check of an explanation does."""
        return not any(part.weight for part in self.parts)

    @property
    def passed(self) -> int:
        """How many of the parts that ran passed."""
        return sum(part.state == "passed" for part in self.parts)

    @property
    def headline(self) -> str:
        """One line: `step: 3 of 4 points`, or `step: visible part passed, 2 more parts after you hand in`."""
        complete = self.passed == len(self.parts)
        if self.form_only:
            lacking = "; ".join(part.message or part.name for part in self.parts if part.state != "passed")
            state = "filled in, graded later" if complete else f"not filled in yet: {lacking}"
            return f"{self.name}: {state}"
        if self.points is not None:
            return f"{self.name}: {self.points:g} of {self.maximum:g} points"
        some = f"{self.passed} of {count(len(self.parts), 'visible part')} passed"
        seen = "visible part passed" if complete else some
        return f"{self.name}: {seen}, {count(self.later, 'more part')} after you hand in"

    @property
    def shown(self) -> list[Part]:
        """The parts that are listed below the headline; a form is one line."""
        return [] if self.form_only else self.parts

    def text(self) -> str:
        """The report as plain text: the headline, then a line for each part."""
        return "\n".join([self.headline, *(f"  {part.mark} {part.line}" for part in self.shown)])

    def html(self) -> str:
        """The report as HTML; everything from outside is escaped."""
        rows = "".join(f"<li><span>{part.mark}</span> {_inline(part.name)}"
                       + (f"<br><em>{_inline(part.message)}</em>" if part.message else "") + "</li>"
                       for part in self.shown)
        style = "list-style-type:none;padding-left:1em;margin:0.3em 0"
        below = f'<ul style="{style}">{rows}</ul>' if rows else ""
        return f'<div class="inferlab-check"><strong>{_inline(self.headline)}</strong>{below}</div>'


def total(lab: str, reports: Iterable[Report]) -> str:
    """One line: how many visible parts passed, and how much is graded only after the work is handed in."""
    reports = list(reports)
    coded = [report for report in reports if not report.form_only]
    passed, visible = sum(report.passed for report in coded), sum(len(report.parts) for report in coded)
    later, forms = sum(report.later for report in coded), len(reports) - len(coded)
    more = [count(later, "more part")] * bool(later) + [count(forms, "written answer")] * bool(forms)
    are = "is" if later + forms == 1 else "are"
    return (f"{lab}: {passed} of {count(visible, 'visible part')} passed"
            + (f"; {' and '.join(more)} {are} graded after you hand in" if more else ""))


def count(number: int, noun: str) -> str:
    """`1 part`, `2 parts`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def missing(learner: str, reports: Iterable[Report], expected: Iterable[str]) -> list[str]:
    """What stands between a notebook and a complete hand-in, a line for each thing.

    Args:
        learner: what LEARNER says.
        reports: of the checks that ran.
        expected: names of the checks that the notebook has.
    """
    reports = list(reports)
    lines = [] if normalize(learner) else ["your name or id in LEARNER"]
    lines += [f"{report.name}: {part.name}" + (f" ({part.message})" if part.message else "")
              for report in reports for part in report.parts if part.state in ("missing", "failed")]
    ran = {report.name for report in reports}
    return lines + [f"{name}: its check did not run" for name in sorted(set(expected) - ran)]


def _inline(text: str) -> str:
    """`text` escaped, with what stands between backticks as code."""
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", escape(text))
