"""What the `%%explain NAME` cell shows: how each line was read, which is what will be graded."""

import html
import re
from dataclasses import dataclass, field
from typing import Any

from .cell import Explanation, parse
from .table import NotRead
from .typed import entries_of
from .words import ENTRIES, Words, words_of

NOTE = "This is what will be graded. It does not say whether it is right."
last_explanations: dict[str, Explanation] = {}
"""Explanation name -> what its cell held when it ran last. Grading reads the notebook instead."""


@dataclass
class ReadLine:
    """One line of the view: the field, what was read there or what would help."""

    label: str
    text: str
    read: bool = True


@dataclass
class View:
    """The view of a whole cell, as text and as HTML."""

    name: str
    lines: list[ReadLine] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether every field is filled in and read."""
        return not self.empty and all(line.read for line in self.lines)

    def _footer(self) -> str:
        return (f"Not filled in yet: {', '.join(self.empty)}. " if self.empty else "") + NOTE

    def _labelled(self) -> list[tuple[str, ReadLine]]:
        """Each line with its field's name, where that is not the one above."""
        above = ["", *(line.label for line in self.lines)]
        pairs = zip(self.lines, above, strict=False)
        return [(one.label if one.label != last else "", one) for one, last in pairs]

    def __repr__(self) -> str:
        lines = [f"  {label:<10} {'' if one.read else '✗ '}{one.text}" for label, one in self._labelled()]
        return "\n".join([f"explanation `{self.name}`, as it is read", *lines, "  " + self._footer()])

    def _repr_html_(self) -> str:
        left, mark = ("style='text-align:left'", "<b style='color:#b35900'>✗ not read</b> ")
        rows = (
            f"<tr><th scope='row' {left}>{html.escape(label)}</th>"
            f"<td {left}>{'' if one.read else mark}{html.escape(one.text)}</td></tr>"
            for label, one in self._labelled()
        )
        return (
            f"<table aria-label='{html.escape(self.name)}, as it is read'>{''.join(rows)}</table>"
            f"<small>{html.escape(self._footer())}</small>"
        )


def view_of(explanation: Explanation, words: Words) -> View:
    """How `explanation` is read by `words`."""
    shown = View(explanation.name)
    read = words.read(explanation)
    for label, one in words.fields.items():
        text = words.text_of(explanation, label)
        if not text:
            shown.empty.append(label)
        elif one.entry:
            shown.lines.append(_entry(label, text, one.entry))
        else:
            shown.lines += [ReadLine(label, str(it), not isinstance(it, NotRead)) for it in read[label]]
    shown.lines += [ReadLine("", problem, False) for problem in explanation.problems]
    return shown


def _entry(label: str, text: str, kind: str) -> ReadLine:
    """A typed line: what was read in it, or an example of what would be."""
    example, kinds = ENTRIES[kind]
    if not kinds:
        return ReadLine(label, text)
    found, beside = entries_of(text, kinds, label)
    if len(found) == 1 and not beside:
        return ReadLine(label, found[0].text)
    read = f"“{beside}” is not read" if len(found) == 1 else f"{len(found) or 'no'} entries read"
    hint = f"{read}; write {kind}, like {example}."
    return ReadLine(label, f"“{text}”: {hint}", False)


def register(shell: Any) -> None:
    """Add `%%explain` to an IPython shell: it keeps the text for the checks at home, and shows the view."""
    from IPython.display import Markdown, display

    def explain(line: str, body: str | None = None) -> None:
        name = re.sub(r"[^\w.-]", "?", line.strip().split()[0]) if line.strip() else "explanation"
        told = last_explanations[name] = parse(body or "", name=name)
        words = words_of(name)
        if words is None:
            display(Markdown(f"Run the cell above that lists the words of `{name}`, then this one again."))
        else:
            display(view_of(told, words))

    shell.register_magic_function(explain, "cell", "explain")
