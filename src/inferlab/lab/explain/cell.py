"""Reads the text of a `%%explain NAME` cell into labelled fields.

The text comes from a notebook that anybody may have edited in any editor, so nothing here raises on odd
input: what cannot be read is left out and said in `problems`.
"""

import re
from dataclasses import dataclass, field

MAX_CELL = 200_000
"""Characters of a cell that are read; the rest is cut and reported."""
MAX_LINES = 300

_MAGIC = re.compile(r"^[ \t]*%%explain(?:[ \t]+([^\s#]+))?[^\n]*(?:\n|$)")
_LABEL = re.compile(
    r"^[ \t]*(?:[-*+>][ \t]*)*[*_`]{0,3}([A-Za-z][A-Za-z0-9]*(?:[ _./\u2010-\u2015-][A-Za-z0-9]+){0,2})"
    r"[ \t]*[*_`]{0,3}[ \t]*"
    r"(?::|\uff1a|=(?!=))[ \t]*[*_`]{0,3}(.*)$"
)
_STEERS = re.compile(r"[^\n\t\x20-\x7e\xa0-\U0010ffff]|[\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Signs that steer a terminal or turn the direction of a text: shown as a sign that is not read."""
_NOTE = re.compile(r"(?:^|(?<=\s))#(?!\d).*")
"""What a learner notes behind a line; "#2" is a number."""
_SAME = {"tradeoff": "trade-off", "trade-offs": "trade-off", "tradeoffs": "trade-off", "trade": "trade-off"}


def canonical(label: str) -> str:
    """The one spelling of a field's name: `Trade off`, `TRADE_OFF` and `tradeoff` are all `trade-off`."""
    name = re.sub(r"[\s_\u2010-\u2015-]+", "-", label.strip().casefold())
    return _SAME.get(name, name)


@dataclass(frozen=True)
class Explanation:
    """One explanation as it was written: `parts` in order of writing, each a (label, text) pair.

    The label of text that stands before any label is "". A label may repeat; `fields` joins its texts.
    """

    name: str
    parts: tuple[tuple[str, str], ...]
    body: str = ""
    problems: tuple[str, ...] = field(default=())
    cut: bool = False
    """Whether something was left out because the cell is too long; `problems` then say what."""

    def fields(self, known: tuple[str, ...] | None = None) -> dict[str, str]:
        """Field name -> text. With `known`, a line such as `result: ...` whose label the lab never asked
        for belongs to the field above it; without, every label counts."""
        wanted = {canonical(k) for k in known} if known is not None else None
        texts, current = dict[str, list[str]](), ""
        for label, text in self.parts:
            if label and (wanted is None or label in wanted):
                current = label
            elif label:
                text = f"{label}: {text}"
            if current:
                texts.setdefault(current, []).append(text)
        return {label: "\n".join(t for t in lines if t).strip() for label, lines in texts.items()}

    def get(self, label: str, known: tuple[str, ...] | None = None) -> str:
        """The text of one field, "" where it is missing or empty."""
        return self.fields(known).get(canonical(label), "")


def parse(text: str, name: str = "") -> Explanation:
    """Read a whole cell (with its `%%explain NAME` line) or its body alone (then `name` says which).

    A label is up to three words at the start of a line, then `:` or `=`; list markers and Markdown emphasis
    around it are ignored. Lines without a label go on with the field above; lines that begin with `#`,
    and what stands behind a `#` at a line's end, are the learner's notes and are left out.
    """
    text = _STEERS.sub("\ufffd", str(text).replace("\r\n", "\n").replace("\r", "\n"))
    sizes = ((len(text), MAX_CELL, "characters"), (text.count("\n"), MAX_LINES, "lines"))
    problems = [
        f"The cell has {many:,} {what}; only the first {most:,} are read."
        for many, most, what in sizes
        if many > most
    ]
    cut = bool(problems)
    text = text[:MAX_CELL].lstrip("\ufeff\n")
    magic = _MAGIC.match(text)
    if magic:
        name = magic.group(1) or name
        text = text[magic.end() :]
    elif text.lstrip().startswith("%%"):
        problems.append("The first line is not `%%explain NAME`.")
    parts: list[tuple[str, list[str]]] = [("", [])]
    for line in text.split("\n")[:MAX_LINES]:
        noted, line = line.lstrip().startswith("#"), _NOTE.sub("", line)
        long = len(line) >= 20_000 and not {":", "="} & set(line[:80])  # such a line is slow to match
        found = None if long else _LABEL.match(line)
        if found:
            parts.append((canonical(found.group(1)), [found.group(2).strip()]))
        elif not noted:  # a learner's own note, or what nbgrader puts around answers
            parts[-1][1].append(line.strip())
    read = tuple((label, "\n".join(lines).strip()) for label, lines in parts)
    if not read[0][1]:
        read = read[1:]
    else:
        problems.append("There is text before the first label; it belongs to no field.")
    labels = [label for label, _ in read if label]
    again = sorted({label for label in labels if labels.count(label) > 1})
    problems += [f"`{label}:` appears more than once; its texts are read together." for label in again]
    return Explanation(name, read, text, tuple(problems), cut)
