"""What the `%%explain NAME` cell shows: how each line was read, which is what will be graded."""

import html
import re
from dataclasses import dataclass
from typing import Any

from .cell import Explanation, parse
from .table import NotRead
from .typed import entry_of
from .words import ENTRIES, Words, listed, table_row

NOTE = "This is what will be graded. It does not say whether it is right."
last_explanations: dict[str, Explanation] = {}
"""Explanation name -> what its cell held when it ran last. Grading reads the notebook instead."""


@dataclass
class ReadLine:
    """One line of the view: the field, what was read there or what would help."""

    label: str
    text: str
    read: bool = True


class View:
    """How `explanation` is read by `words`, as text and as HTML; `empty` are the fields without a text."""

    def __init__(self, explanation: Explanation, words: Words) -> None:
        self.name, self.lines, self.empty = explanation.name, list[ReadLine](), list[str]()
        read = words.read(explanation)
        for label, one in words.fields.items():
            text = explanation.get(label, tuple(words.fields))
            if not text:
                self.empty.append(label)
            elif one.entry:
                self.lines.append(_entry(label, text, one.entry, one.unit))
            else:
                self.lines += [ReadLine(label, str(it), not isinstance(it, NotRead)) for it in read[label]]
        self.lines += [ReadLine("", problem, False) for problem in explanation.problems]

    def _footer(self) -> str:
        return (f"Not filled in yet: {', '.join(self.empty)}. " if self.empty else "") + NOTE

    def _labelled(self) -> list[tuple[str, ReadLine]]:
        """Each line with its field's name, where that is not the one above."""
        pairs = zip(["", *(line.label for line in self.lines)], self.lines, strict=False)
        return [("" if one.label == above else one.label, one) for above, one in pairs]

    def __repr__(self) -> str:
        lines = [f"  {label:<10} {'' if one.read else '✗ '}{one.text}" for label, one in self._labelled()]
        return "\n".join([f"explanation `{self.name}`, as it is read", *lines, "  " + self._footer()])

    def _repr_html_(self) -> str:
        mark = "<b style='color:#b35900'>✗ not read</b> "
        rows = (
            table_row(label, ("" if one.read else mark) + html.escape(one.text))
            for label, one in self._labelled()
        )
        return (
            f"<table aria-label='{html.escape(self.name)}, as it is read'>{''.join(rows)}</table>"
            f"<small>{html.escape(self._footer())}</small>"
        )


def _entry(label: str, text: str, kind: str, unit: str) -> ReadLine:
    """A typed line: what was read in it, or an example of what would be."""
    example, kinds = ENTRIES[kind]
    if not kinds:
        return ReadLine(label, text)
    said, odd = entry_of(text, kinds, label, unit)
    if said and not odd:
        return ReadLine(label, said.text)
    return ReadLine(label, f"“{text}”: {odd}; write {kind}, like {example}.", False)


def register(shell: Any) -> None:
    """Add `%%explain` to an IPython shell: it keeps the text for the checks at home, and shows the view."""
    from IPython.display import Markdown, display

    def explain(line: str, body: str | None = None) -> None:
        name = re.sub(r"[^\w.-]", "?", line.strip().split()[0]) if line.strip() else "explanation"
        told = last_explanations[name] = parse(body or "", name=name)
        words = listed.get(name)
        if words is None:
            display(Markdown(f"Run the cell above that lists the words of `{name}`, then this one again."))
        else:
            display(View(told, words))

    shell.register_magic_function(explain, "cell", "explain")
