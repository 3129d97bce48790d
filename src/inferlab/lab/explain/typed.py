"""Grades typed lines exactly: `shape: (2, 4, 16, 16)`, `calls: 20`, `bytes: 604 KiB`, `dtype: fp16`."""

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase as fnmatch

from .cell import Explanation
from .outcome import Outcome, award, deny, review
from .quantities import Quantity, find_quantities
from .tokens import plain_characters, stem

LONGEST = 200
"""Characters of a typed line."""
CALCULATES = re.compile(r"\d\s*[*×/+]\s*[(\d]|\d\s+[-−]\s*[(\d]|\d\s*x\s*\d|\)\s*[*×/+-]")
WORKING = re.compile(r"(?<=\w)\s+\(=?[\d\s.,*×x/+−-]+\)")
"""A calculation in brackets, behind its result."""
PLAIN = set("number size length the a an of in all total together altogether is are it and exactly".split())
COUNTED = set(
    "unet vae decoder model target draft transformer scheduler call step token row block layer head "
    "byte pass time position place slot exchange stage device request page tile shape torch dtype weight "
    "value score element".split()
)
"""Words that say what is counted, where no unit is given; "20 dozen" and "20 per step" are other numbers."""
NUMBERS = frozenset(("count", "bytes", "ratio"))
MEASURED = NUMBERS | {"percent", "time"}
SHORT_DTYPES = {"half": "float16", "long": "int64", "bool": "torch.bool", "float": "float32"}


def entry_of(line: str, kinds: frozenset[str], label: str, unit: str = "") -> tuple[Quantity | None, str]:
    """The one amount of these kinds in a typed line, None where there is not one; and what is not read.

    The view and the grader read so. `2, 4, 16` or `77 768` on a line of its own is a shape. Of a calculation
    the result behind `=` counts, or the one before its brackets. With a `unit`, no other one is read.
    """
    if len(line) > LONGEST:
        return None, f"{len(line)} characters are too long for one entry"
    line, beside = plain_characters(line), ""
    if kinds & NUMBERS:
        line = WORKING.sub(lambda m: " " if CALCULATES.search(m[0]) else m[0], line)
        before, equals, line = line.rpartition("=")
        beside = re.sub(r"[\d*×/+−-]", " ", before) if CALCULATES.search(before) else before + equals
        if CALCULATES.search(line):
            return None, "no result of the calculation is read"
    if kinds == {"dtype"}:
        line = SHORT_DTYPES.get(line.strip(" .`").casefold(), line)
    every = find_quantities(line)
    found = [one for one in every if one.kind in kinds and not re.search(r"[x×]$|fold$", one.text.casefold())]
    if kinds == {"shape"} and every and all(one.kind == "count" and type(one.value) is int for one in every):
        if not _without(line, every).strip(" ,;x()[]`"):
            found = [Quantity("shape", tuple(one.value for one in every), line, 0, len(line))]
    names = (re.findall(r"[a-z]+(?= ?[=:])", one.text.casefold()) for one in found)
    odd = [several for several in names if "".join(name[0] for name in several) not in ("", "bchw", "nchw")]
    beside += " " + _without(line, found) + " ".join(map(" ".join, odd))
    if len({(one.kind, one.value) for one in found}) != 1:
        return None, f"{len(found) or 'no'} entries are read"
    unknown = _unknown(beside, label.casefold(), unit)
    return found[0], f"“{unknown}” is not read beside {found[0].text}" if unknown else ""


def _without(line: str, found: list[Quantity]) -> str:
    return "".join(c for at, c in enumerate(line) if not any(q.start <= at < q.end for q in found))


def _unknown(text: str, label: str, unit: str) -> str:
    """What of `text` is no word that is known or the label's, nor "per token" where the label asks that."""
    own = label.split("-")
    said = "|".join(map(re.escape, own))
    text = re.sub(rf"\b(?:per|for|in) (?:each |every |one |a )?({said})\b", " ", text, flags=re.IGNORECASE)
    words = re.findall(r"[^\W\d]+|[^\s.,:;`*()\[\]]", text)
    known = PLAIN | {stem(word) for word in own + unit.split()} | (set() if unit else COUNTED)
    return " ".join(word for word in words if stem(word) not in known)


def typed(
    explanation: Explanation,
    label: str,
    expected: object,
    mistakes: Mapping[str, object] | None = None,
    *,
    tolerance: float = 0.0,
    unit: str = "",
) -> Outcome:
    """Grade one typed line against what the trace of the re-run says.

    Args:
        explanation, label: the cell as it was parsed, and the field.
        expected: a shape (a tuple of ints, or a list of shapes of which any is right), a number (of bytes,
            where the line gives a unit), or a dtype's name such as "float16".
        mistakes: what is wrong, in words -> the value that says so, in the same forms.
        tolerance: relative, for numbers.
        unit: what alone may stand beside the number: "ticks", where the table has "a number of ticks".

    Returns:
        award when the line says exactly that; deny when it says something else, several things, or is empty;
        review when a word or a sign is not known, beside the value or in its place.

    Raises:
        TypeError: if `expected` is none of these.
    """
    kinds, _, wants = _wanted(expected)
    if not (line := explanation.get(label)):
        return deny(f"`{label}:` is empty.")
    said, odd = entry_of(line, kinds, label, unit)
    if said is None or odd:
        other = said is None and find_quantities(plain_characters(line[:LONGEST]))
        return (deny if other else review)(f"`{label}:` {odd}; it wants {wants}.", (line,))
    if _says(said, expected, tolerance):
        return award(f"`{label}:` {said.text} is what the run shows.", (said.text,))
    told = (why for why, value in (mistakes or {}).items() if _says(said, value, tolerance))
    return deny(f"`{label}:` {next(told, f'{said.text} is not what the run shows.')}", (said.text,))


def named(explanation: Explanation, label: str, names: Mapping[str, str], told: Mapping[str, str]) -> Outcome:
    """Grade typed names by their words alone: a line with another word or too many names is for a person.

    Args:
        names: the words that say each name, `*` for any ending; those of "" say nothing.
        told: why a name is wrong; "" for each that must be said.
    """
    line = plain_characters(explanation.get(label)).casefold().strip(" .`")
    words = re.findall(r"\w+|[^\s.,:;`'*()]", re.sub(r"(?<=\w)-(?=\w)", " ", line))
    ways = [(way, name) for name, them in (*names.items(), ("", "the at in by s")) for way in them.split()]
    said = {next((name for way, name in ways if fnmatch(word, way)), None) for word in words} - {""}
    right = {name for name, why in told.items() if not why}
    wants = f"`{label}:` wants {len(right)} of {', '.join(filter(None, names))}."
    if not words:
        return deny(f"`{label}:` is empty.")
    if None in said or len(said) > len(right):
        return review(wants, (line,))
    if wrong := [told.get(str(name), "another one is right.") for name in names if name in said - right]:
        return deny(f"`{label}:` {' '.join(wrong)}", (line,))
    return award(f"`{label}:` {line} is right.", (line,)) if said == right else deny(wants, (line,))


def _wanted(expected: object) -> tuple[frozenset[str], list, str]:
    """The kinds of amount that a line must hold, the values that are right, and how it is asked for."""
    if isinstance(expected, str) and " " not in expected.strip():
        return (frozenset({"dtype"}), [expected.removeprefix("torch.")], "a dtype such as `float16`")
    if isinstance(expected, Sequence) and not isinstance(expected, str) and expected:
        several = expected if isinstance(expected[0], Sequence) else [expected]
        return (frozenset({"shape"}), [tuple(one) for one in several], "one shape such as `(2, 3)`")
    if isinstance(expected, int | float) and not isinstance(expected, bool):
        return (NUMBERS if isinstance(expected, int) else MEASURED, [expected], "one number")
    raise TypeError(f"expected {expected!r}: give a shape, a number or a dtype's name")


def _says(said: Quantity, expected: object, tolerance: float) -> bool:
    """Whether an amount is one of the `expected`. So few bytes are no size: then a count is asked for."""
    values = _wanted(expected)[1]
    few = said.kind == "bytes" and not tolerance
    return any(said.is_like(one, tolerance) and not (few and one < 1024) for one in values)
