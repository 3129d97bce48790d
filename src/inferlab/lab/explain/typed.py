"""Grades typed lines exactly: `shape: (2, 4, 16, 16)`, `calls: 20`, `dtype: fp16`, `cost: latency up`."""

from .cell import Explanation
from .directions import effects, quantity_table
from .negation import negators
from .outcome import Outcome, award, deny, review
from .phrases import Table
from .quantities import Quantity, find_quantities, rounded
from .words import clean, odd_alphabet, phrase, sentences

MAX_LINE = 200
_SIGNS = {1: "up", -1: "down", 0: "unchanged"}


def typed(explanation: Explanation, label: str, expected: object, *, tolerance: float = 0.0,
          terms: dict[str, str] | None = None) -> Outcome:
    """Grade one typed line against what the trace of the re-run says.

    `expected`: a shape (tuple or list of ints; list several shapes as a list of tuples), a number (bytes, when
    the line gives a unit; `tolerance` is relative), a dtype name such as "float16", or one or several
    directions ("latency down", or ("quality up", "fidelity up"): any of them, and nothing else).
    `terms` names a lab's own quantities: {"unet calls": "unet calls, model calls"}.
    Award when the line says exactly that; deny when it says something else, nothing, or several things;
    review only when a direction line is in words that the engine does not know.
    """
    line = explanation.get(label)
    if not line.strip():
        return deny(f"`{label}:` is empty.")
    if len(line) > MAX_LINE:
        return deny(f"`{label}:` is {len(line)} characters long; it wants one short entry.")
    odd = odd_alphabet(line)
    if odd:
        return deny(f"`{label}:` has {odd}.", (line,))
    text = clean(line)
    if _is_direction(expected):
        return _direction(label, text, (expected,) if isinstance(expected, str) else tuple(expected), terms)
    return _amount(label, text, expected, tolerance)


def _is_direction(expected: object) -> bool:
    if isinstance(expected, str):
        return " " in expected.strip()
    return isinstance(expected, (tuple, list, set, frozenset)) and all(isinstance(e, str) for e in expected) and bool(expected)


def _amount(label: str, text: str, expected: object, tolerance: float) -> Outcome:
    if isinstance(expected, str):
        wanted, kinds, what = [expected.removeprefix("torch.")], {"dtype"}, "a dtype such as `float16`"
        text = {"half": "float16", "long": "int64", "bool": "torch.bool", "float": "float32"}.get(text.strip(" .").casefold(), text)
    elif isinstance(expected, (tuple, list)) and expected and isinstance(expected[0], (tuple, list)):
        wanted, kinds, what = [tuple(e) for e in expected], {"shape"}, "one shape such as `(2, 3)`"
    elif isinstance(expected, (tuple, list)):
        wanted, kinds, what = [tuple(expected)], {"shape"}, "one shape such as `(2, 3)`"
    elif isinstance(expected, (int, float)) and not isinstance(expected, bool):
        wanted, kinds, what = [expected], {"count", "bytes", "ratio", "percent", "time"}, "one number"
    else:
        raise TypeError(f"expected {expected!r}: give a shape, a number, a dtype's name or a direction")
    found = [q for q in find_quantities(text) if q.kind in kinds]
    if kinds == {"shape"} and not found:
        found = _bare_shape(text)
    if negators(sentences(text)[0].tokens if sentences(text) else ()):
        return deny(f"`{label}:` says what it is not; it wants {what}.", (text,))
    values = {(q.kind, q.value) for q in found}
    if not found:
        return deny(f"`{label}:` has no entry that can be read; it wants {what}.", (text,))
    if len(values) > 1:
        return deny(f"`{label}:` has {len(values)} entries; it wants {what}.", tuple(q.text for q in found))
    said = found[0]
    if any(_near(said, w, tolerance) if tolerance and said.kind == "bytes" else said.is_like(w) or _near(said, w, tolerance) for w in wanted):
        return award(f"`{label}:` {said.text} is what the run shows.", (said.text,))
    return deny(f"`{label}:` {said.text} is not what the run shows.", (said.text,))


def _near(said: Quantity, wanted: object, tolerance: float) -> bool:
    if tolerance <= 0 or not isinstance(wanted, (int, float)) or not isinstance(said.value, (int, float)):
        return False
    return any(abs(said.value * k - wanted) <= tolerance * max(abs(wanted), 1e-12) for k in (rounded(said.text) if said.kind == "bytes" else (1.0,)))


def _bare_shape(text: str) -> list[Quantity]:
    """`2, 4, 16` or `77 768` on a line of its own is a shape."""
    counts = [q for q in find_quantities(text) if q.kind in ("count", "shape")]
    rest = text
    for q in reversed(counts):
        rest = rest[:q.start] + rest[q.end:]
    if counts and all(q.kind == "count" and isinstance(q.value, int) for q in counts) and not rest.strip(" ,;x()[]"):
        return [Quantity("shape", tuple(q.value for q in counts), text.strip(), 0, len(text))]
    return []


def _directions(text: str, table: Table) -> set[tuple[str, int]]:
    out = set()
    for sentence in sentences(text):
        for e in effects(sentence, table):
            name, sign = e.quantity, e.sign
            if e.quantity == "speed":
                name, sign = "time", -sign
            if e.negated:
                name = f"not {name}"
            out.add((name, sign))
    return out


def _direction(label: str, text: str, expected: tuple[str, ...], terms: dict[str, str] | None) -> Outcome:
    extra = {phrase(item): (name, 1) for name, items in (terms or {}).items() for item in (name + "," + items).split(",")}
    table = quantity_table({k: v for k, v in extra.items() if k})
    read = {e: _directions(clean(e), table) for e in expected}
    if unread := [e for e, found in read.items() if not found]:
        raise ValueError(f"no direction can be read in {unread!r}: write a quantity and up or down, like 'latency down', "
                         "and name in `terms` a quantity that is the lab's own")
    wanted = set().union(*read.values())
    signed = text.strip()
    if signed[:1] in "+-" and signed[1:].strip():
        text = signed[1:].strip() + (" up" if signed[0] == "+" else " down")
    said = _directions(text, table)
    shown = tuple(sorted(f"{q} {_SIGNS[s]}" for q, s in said))
    if not said:
        return review(f"`{label}:` could not be read as a quantity that this lab knows and its direction, like `latency down`.", (text,))
    if any((q, -s) in said for q, s in said if s) or any(q.startswith("not ") for q, _ in said):
        return deny(f"`{label}:` says two opposite things, or says what does not happen.", shown)
    if said <= wanted:
        return award(f"`{label}:` {', '.join(shown)}.", shown)
    if said & wanted and not any((q, -s) in wanted for q, s in said):
        return review(f"`{label}:` says more than one thing; one quantity and its direction is asked for.", shown)
    return deny(f"`{label}:` {', '.join(shown)} is not what this choice does.", shown)
