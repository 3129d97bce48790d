"""The linter's view of an explanation: its form, its numbers, how its sentences were read, and nothing about what is right."""

import html
from collections.abc import Mapping
from dataclasses import dataclass, field

from .cell import COMMON_LABELS, Explanation
from .directions import effects
from .facts import facts_of, stands_in
from .negation import negators
from .quantities import Quantity, find_quantities
from .readback import read_back, subject_of
from .statements import NotRead, Statement
from .words import clean, odd_alphabet, sentences

PROSE = ("state", "axis", "trade-off")
LONGEST = 90
SHORTEST = 5
MOST_SENTENCES = 4
TYPED_WORDS = 12


@dataclass
class FieldView:
    """One field as the linter sees it: its text, its numbers (and whether the trace has them), its remarks, and in a prose
    field what was read in its sentences (`readback.py`)."""

    label: str
    text: str
    numbers: list[tuple[Quantity, bool | None]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    reading: list[Statement] = field(default_factory=list)


@dataclass
class LintReport:
    """The whole cell's view. Shows itself as text or as HTML; `ok` when there is no remark."""

    name: str
    fields: list[FieldView]
    problems: list[str]
    has_trace: bool

    @property
    def ok(self) -> bool:
        return not self.problems and not any(f.remarks for f in self.fields)

    def __repr__(self) -> str:
        lines = [f"explanation `{self.name}`: " + ("the form is complete" if self.ok else "please look again")]
        for f in self.fields:
            numbers = ", ".join(f"{q.text} [{_mark(ok)}]" for q, ok in f.numbers)
            lines.append(f"  {f.label:<10} {len(f.text.split())} words" + (f" · {numbers}" if numbers else ""))
            lines += [f"             ! {r}" for r in f.remarks]
            lines += [f"             {'?' if isinstance(r, NotRead) else 'read as'} {r}" for r in f.reading]
        lines += [f"  ! {p}" for p in self.problems]
        lines.append("  " + self._footer())
        return "\n".join(lines)

    def _footer(self) -> str:
        trace = "Numbers were looked up in your own trace." if self.has_trace else "No trace was found to look numbers up in."
        if any(ok is False for f in self.fields for _, ok in f.numbers):
            trace += " One that you worked out yourself, or took from the question, need not stand there."
        return trace + " This view shows the form and how your sentences are read; it does not know what is right."

    def _repr_html_(self) -> str:
        rows = []
        for f in self.fields:
            numbers = " ".join(
                f"<code style='border:1px solid #8886;border-radius:3px;padding:0 3px'>{html.escape(q.text)}</code>"
                f"&nbsp;<small>{_mark(ok)}</small>" for q, ok in f.numbers)
            remarks = "".join(f"<div>\u26a0 {html.escape(r)}</div>" for r in f.remarks) or "\u2713"
            remarks += "".join(f"<div><small>{'not certain:' if isinstance(r, NotRead) else 'read as'}</small> {html.escape(str(r))}</div>" for r in f.reading)
            rows.append(f"<tr><td style='text-align:left'><b>{html.escape(f.label)}</b></td><td style='text-align:right'>"
                        f"{len(f.text.split())}</td><td style='text-align:left'>{numbers}</td><td style='text-align:left'>{remarks}</td></tr>")
        problems = "".join(f"<div>\u26a0 {html.escape(p)}</div>" for p in self.problems)
        head = "the form is complete" if self.ok else "please look again"
        return (f"<div><b>{html.escape(self.name or 'explanation')}</b>: {head}<table><thead><tr><th style='text-align:left'>field</th>"
                f"<th>words</th><th style='text-align:left'>numbers</th><th style='text-align:left'>form, and how it is read</th></tr></thead><tbody>"
                + "".join(rows) + f"</tbody></table>{problems}<small>{self._footer()}</small></div>")


def _of_the_run(q: Quantity, text: str) -> bool:
    """Whether a number that the trace does not have is meant as one of the run's: not `between two iterations`, not `axis 0`."""
    before = text[:q.start].split()[-1:]
    return not (q.kind == "count" and (q.text.isalpha() or before and before[0].casefold() in ("axis", "axes", "dim", "dimension", "step", "call")))


def _mark(ok: bool | None) -> str:
    return {True: "in your trace", False: "not in your trace", None: "read"}[ok]


def lint(explanation: Explanation, facts: Mapping[str, object] | None = None, labels: tuple[str, ...] | None = None,
         lab_text: str = "") -> LintReport:
    """Look at the form of `explanation`.

    `facts` are those of the learner's own trace (`trace.facts()`), `labels` the fields that the lab asks for
    (None: those that the cell has), `lab_text` the question and the lab's prose, to notice copying.
    """
    from .gates import form_remarks, overlap

    known = tuple(labels) if labels else None
    texts = explanation.fields(known)
    shown = list(known or [label for label in texts if label]) or list(COMMON_LABELS)
    facts = facts_of(facts)
    subject = subject_of("\n".join(text[:600] for label, text in texts.items() if _is_prose(label, text)))
    views = []
    for label in shown:
        text = texts.get(label, "")
        view = FieldView(label, text)
        if not text:
            view.remarks.append("This field is missing." if label not in texts else "This field is empty.")
        else:
            cleaned = clean(text[:4000])
            view.numbers = [(q, ok) for q, ok in ((q, stands_in(q, facts) if facts else None) for q in find_quantities(cleaned)) if ok is not False or _of_the_run(q, cleaned)][:12]
            view.remarks = _remarks(label, text, cleaned)
            if _is_prose(label, text):
                view.remarks += form_remarks(cleaned)
                view.reading = read_back(label if label in PROSE else "state", text, facts, subject)
            share, piece = overlap(cleaned, lab_text) if lab_text else (0.0, "")
            if share >= 0.6:
                view.remarks.append(f"{share:.0%} of this stands in the lab's own text (\u201c{piece[:60]}\u201d); use your own words.")
        views.append(view)
    return LintReport(explanation.name, views, list(explanation.problems), bool(facts))


def _is_prose(label: str, text: str) -> bool:
    """Whether a field is one for sentences: a lab may have such a field of its own, and only its text tells it from a typed line."""
    words = text.split()
    return label in PROSE or label not in COMMON_LABELS and len(words) > TYPED_WORDS and not words[0][0].isdigit()


def _remarks(label: str, text: str, cleaned: str) -> list[str]:
    out = []
    odd = odd_alphabet(text)
    if odd:
        out.append(f"There is {odd}; write in plain English letters.")
    parts = sentences(cleaned)
    words, count = len(cleaned.split()), len(parts)
    if not _is_prose(label, text):
        found = find_quantities(cleaned)
        shapes = {q.value for q in found if q.kind == "shape"}
        several = shapes if label == "shape" else {(q.kind, q.value) for q in found if q.kind in ("count", "bytes", "ratio", "percent", "time")}
        if words > TYPED_WORDS or len(text) > 120:
            out.append("A typed line wants one short entry.")
        elif len(several) > 1 and not any(effects(s) for s in parts):
            out.append(f"There are {len(several)} entries here; a typed line wants one.")
        elif any(negators(s.tokens) for s in parts[:1]):
            out.append("This says what it is not; write only what it is.")
        elif label.endswith(("gain", "cost")) and not any(effects(s) for s in parts):
            out.append("Write a quantity and its direction, like `bandwidth down`.")
        elif label == "shape" and not any(q.kind in ("shape", "count") for q in found):
            out.append("Write a shape, like `(1, 3, 8, 8)`.")
        return out
    if words < SHORTEST:
        out.append("Too short: write one or two full sentences.")
    if words > LONGEST or count > MOST_SENTENCES:
        out.append(f"Too long ({words} words, {count} sentences): one or two sentences are enough.")
    return out
