"""The words that an explanation may be composed of, as a lab lists them, and the table that shows them."""

import html
from collections.abc import Mapping
from dataclasses import dataclass

from .cell import Explanation, canonical
from .claims import Claims
from .outcome import Outcome, review
from .reader import read_field
from .table import Entries, Found, Rows
from .tokens import joined_lines
from .typed import MEASURED

ENTRIES: dict[str, tuple[str, frozenset[str]]] = {
    "a shape": ("(1, 3, 8, 8)", frozenset({"shape"})),
    "a number": ("12", MEASURED),
    "bytes": ("3 MiB", frozenset({"bytes", "count"})),
    "a dtype": ("float32", frozenset({"dtype"})),
    "a name": ("unet", frozenset()),
}
"""The kinds of typed lines, each with an example and the kinds of amount that are read in it."""

JOINING = (
    "Join sentences with commas, “and” or “but”; deny one with “does not” or “is not” before its verb, "
    "or a word with “not” before it."
)

listed: dict[str, "Words"] = {}
"""Explanation name -> the words that its lab listed, after their cell ran."""


def table_row(head: str, cell: str) -> str:
    """A row of a table: its head as text, and its cell as HTML."""
    left = "style='text-align:left'"
    return f"<tr><th scope='row' {left}>{html.escape(head)}</th><td {left}>{cell}</td></tr>"


class WordsError(ValueError):
    """A list of words that cannot be read; the message names the line."""


@dataclass
class Field:
    """One field: what it asks, and its rows of words, or the kind of its one entry and its unit."""

    label: str
    asks: str
    entry: str
    rows: Rows
    unit: str = ""


class Words:
    """What the explanation `name` may be composed of.

    `text` has one field a paragraph: `label: what it asks`, then indented rows. `who:` lists who may do
    something, `more:` what may be added to any sentence; every other row is a verb and what may follow it.
    Entries stand between ` / `; other ways to say one follow its `=`. A typed line is `label: a shape`, or
    another kind of `ENTRIES`, maybe with a unit ("a number of ticks") and, after a comma, a question. A `#`
    in an entry takes any amount. A line that is indented deeper goes on with the row above it.

    Raises `WordsError` for text of another form.
    """

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.fields: dict[str, Field] = {}
        self._entries = Entries()  # an entry has the same other ways in every field
        for line in joined_lines(text):
            self._add(line)
        self._entries.complete()
        for one in self.fields.values():
            if not one.entry and not (one.rows.who and one.rows.verbs):
                raise WordsError(f"{name}: `{one.label}` needs a row `who:` and a verb")
        listed[name] = self

    def _add(self, line: str) -> None:
        head, colon, rest = line.partition(":")
        if not colon:
            raise WordsError(f"{self.name}: no `:` in {line.strip()!r}")
        if not line[0].isspace():
            label = canonical(head)
            kind, _, unit = rest.strip().split(",")[0].partition(" of ")
            entry = kind if kind in ENTRIES else ""
            self.fields[label] = Field(label, rest.strip(), entry, Rows(self._entries), unit if entry else "")
            return
        if not self.fields:
            raise WordsError(f"{self.name}: a row before the first field: {line.strip()!r}")
        rows = list(self.fields.values())[-1].rows
        phrases = [self._entries.add(entry) for entry in rest.split(" / ") if entry.strip()]
        if head.strip() in ("who", "more"):
            getattr(rows, head.strip()).extend(phrases)
        else:
            rows.verbs[self._entries.add(head)] = phrases

    # -- reading and grading --------------------------------------------------------------------------------
    def read(self, explanation: Explanation) -> dict[str, Found]:
        """Every field of sentences that is filled in, as it is read, here and by the grader."""
        labels = [label for label, one in self.fields.items() if not one.entry]
        return {label: found for label in labels if (found := self._read_one(explanation, label))}

    def _read_one(self, explanation: Explanation, label: str) -> Found:
        return read_field(explanation.get(label, tuple(self.fields)), self.fields[canonical(label)].rows)

    def grade(
        self, explanation: Explanation, label: str, claims: str, facts: Mapping[str, object] | None = None
    ) -> Outcome:
        """What the statements of a field are worth by the lab's `claims`; `facts` fill their `{name}`s."""
        told = self.claims(label, claims, facts)
        if explanation.cut:
            return review(" ".join(explanation.problems))
        return told.judge(self._read_one(explanation, label))

    def claims(self, label: str, text: str, facts: Mapping[str, object] | None = None) -> Claims:
        """The claims `text` in the words of the field `label`. Raises `ClaimsError` for any other word."""
        return Claims(label, text, self.fields[canonical(label)].rows, facts)

    # -- showing --------------------------------------------------------------------------------------------
    def __repr__(self) -> str:
        lines = [f"words of `{self.name}`"]
        for one in self.fields.values():
            lines.append(f"  {one.label}: {one.asks}")
            lines += [f"    {head:<12} {' / '.join(entries)}" for head, entries in _shown(one)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        parts = []
        for one in (one for one in self.fields.values() if not one.entry):
            asks = f"<b><code>{html.escape(one.label)}:</code></b> {html.escape(one.asks)}"
            parts.append(f"<p style='margin:.8em 0 .2em'>{asks}</p><table>")
            for head, entries in _shown(one):
                whole = (f"<span style='white-space:nowrap'>{html.escape(text)}</span>" for text in entries)
                parts.append(table_row(head, " &nbsp;·&nbsp; ".join(whole)))
            parts.append("</table>")
        return "".join(parts) + f"<small>{html.escape(JOINING)}</small>"


def _shown(one: Field) -> list[tuple[str, list[str]]]:
    """The rows of a table: who, each verb with what may follow it, the verbs that need nothing, additions.

    By the alphabet, so that an author's habit of writing the right entry first gives nothing away.
    """
    verbs = one.rows.verbs.items()
    rows = [
        ("who", one.rows.who),
        *sorted((f"… {verb} …", what) for verb, what in verbs if what),
        ("…", [verb for verb, what in verbs if not what]),
        ("may follow", one.rows.more),
    ]
    return [
        (head, sorted(entries, key=lambda entry: entry.removeprefix("the ").casefold()))
        for head, entries in rows
        if entries
    ]
