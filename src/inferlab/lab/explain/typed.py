"""Grades typed lines exactly: `shape: (2, 4, 16, 16)`, `calls: 20`, `bytes: 604 KiB`, `dtype: fp16`."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase as fnmatch

from .cell import Explanation
from .outcome import Outcome, award, deny, review
from .quantities import Quantity, find_quantities, rounded
from .tokens import stem

LONGEST = 200
"""Characters of a typed line."""
CALCULATES = re.compile(r"\d\s*[*×/+]\s*[(\d]|\d\s+[-−]\s*[(\d]|\d\s*x\s*\d|\)\s*[*×/+-]")
WORKING = re.compile(r"(?<=\w)\s+\(=?[\d\s.,*×x/+−-]+\)")
"""A calculation in brackets, behind its result."""
KNOWN = frozenset(
    "unet vae decoder model target draft transformer scheduler call step token row block layer head byte "
    "pass time position slot exchange stage request page tile shape size torch dtype number weight value "
    "score the a an of in all total together altogether is are it and exactly element length".split()
)
"""Words that say what is counted; "20 dozen", "half of 20" and "20 per step" are other numbers."""
NUMBERS = frozenset(("count", "bytes", "ratio"))
MEASURED = NUMBERS | {"percent", "time"}
SHORT_DTYPES = {"half": "float16", "long": "int64", "bool": "torch.bool", "float": "float32"}


def entries_of(line: str, kinds: frozenset[str], label: str = "") -> tuple[list[Quantity], str]:
    """The different amounts of these kinds in a typed line, and what stands beside them and is not known.

    The view and the grader read so. `2, 4, 16` or `77 768` on a line of its own is a shape. Of a calculation
    the result behind `=` counts, or the one before its brackets.
    """
    line, beside = unicodedata.normalize("NFKC", line), ""
    if kinds & NUMBERS:
        line = WORKING.sub(lambda m: " " if CALCULATES.search(m[0]) else m[0], line)
        before, equals, line = line.rpartition("=")
        beside = re.sub(r"[\d*×/+−-]", " ", before) if CALCULATES.search(before) else before + equals
        if CALCULATES.search(line):
            return [], ""
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
    different = {(one.kind, one.value): one for one in reversed(found)}
    return list(different.values())[::-1], _unknown(beside, label.casefold())


def _without(line: str, found: list[Quantity]) -> str:
    return "".join(c for at, c in enumerate(line) if not any(q.start <= at < q.end for q in found))


def _unknown(text: str, label: str) -> str:
    """What of `text` is no word that is `KNOWN` or the label's, nor "per token" where the label asks that."""
    own = label.split("-")
    said = "|".join(map(re.escape, own))
    text = re.sub(rf"\b(?:per|for|in) (?:each |every |one |a )?({said})\b", " ", text, flags=re.IGNORECASE)
    words = re.findall(r"[^\W\d]+|[^\s.,:;`*()\[\]]", text)
    return " ".join(word for word in words if stem(word) not in KNOWN | set(map(stem, own)))


def typed(explanation: Explanation, label: str, expected: object, *, tolerance: float = 0.0) -> Outcome:
    """Grade one typed line against what the trace of the re-run says.

    Args:
        explanation, label: the cell as it was parsed, and the field.
        expected: a shape (a tuple of ints, or a list of shapes of which any is right), a number (of bytes,
            where the line gives a unit), or a dtype's name such as "float16".
        tolerance: relative, for numbers.

    Returns:
        award when the line says exactly that; deny when it says something else, nothing, or several things;
        review when a word or a sign beside the value is not known.

    Raises:
        TypeError: if `expected` is none of these.
    """
    kinds, right, wants = _wanted(expected)
    line = unicodedata.normalize("NFKC", explanation.get(label)).strip()
    if not line:
        return deny(f"`{label}:` is empty.")
    if len(line) > LONGEST:
        return deny(f"`{label}:` is {len(line)} characters long; it wants one short entry.")
    found, beside = entries_of(line, kinds, label)
    if len(found) != 1:
        many = len(found) or "no"
        return deny(f"`{label}:` has {many} entries that can be read; it wants {wants}.", (line,))
    said = found[0]
    if beside:
        return review(f"`{label}:` “{beside}” is not read beside {said.text}; it wants {wants}.", (line,))
    if any(_is(said, value, tolerance) for value in right):
        return award(f"`{label}:` {said.text} is what the run shows.", (said.text,))
    return deny(f"`{label}:` {said.text} is not what the run shows.", (said.text,))


def named(explanation: Explanation, label: str, names: Mapping[str, str], told: Mapping[str, str]) -> Outcome:
    """Grade a typed name by its words alone: a line with another word or several names is for a person.

    Args:
        names: the words that say each name, `*` for any ending; those of "" say nothing.
        told: why a name is wrong; "" for the one that is right.
    """
    line = unicodedata.normalize("NFKC", explanation.get(label)).casefold()
    words = re.findall(r"\w+|[^\s.,:;`*()]", re.sub(r"(?<=\w)-(?=\w)", " ", line))
    said = {next((n for n in names if any(fnmatch(w, way) for way in names[n].split())), None) for w in words}
    if not words:
        return deny(f"`{label}:` is empty.")
    if len(said - {""}) != 1 or None in said:
        return review(f"`{label}:` wants one of {', '.join(filter(None, names))}.", (line,))
    wrong = told.get(str(*said - {""}), "another one is right.")
    return deny(f"`{label}:` {wrong}", (line,)) if wrong else award(f"`{label}:` {line} is right.", (line,))


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


def _is(said: Quantity, wanted: object, tolerance: float) -> bool:
    if tolerance and isinstance(wanted, int | float) and isinstance(said.value, int | float):
        units = rounded(said.text) if said.kind == "bytes" else (1.0,)
        return any(abs(said.value * unit - wanted) <= tolerance * max(abs(wanted), 1e-12) for unit in units)
    small = said.kind == "bytes" and isinstance(wanted, int | float) and wanted < 1024  # no size: a count
    return said.is_like(wanted) and not small
