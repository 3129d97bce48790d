"""Reads shapes, dtypes, byte counts, times, ratios and counts in the forms in which people write them."""

import re
from collections.abc import Callable
from dataclasses import dataclass

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
NUMBER_WORDS = {word: i for i, word in enumerate(_SMALL)} | {"single": 1, "hundred": 100, "thousand": 1000}
for _ten, _word in enumerate(_TENS, 2):
    NUMBER_WORDS |= {_word: 10 * _ten} | {f"{_word}-{_SMALL[i]}": 10 * _ten + i for i in range(1, 10)}


def _spelled(names: dict) -> dict:
    """Each way to write a thing -> the thing."""
    return {name: thing for thing, ways in names.items() for name in ways.split()}


_SECONDS = _spelled(
    {
        1e-9: "ns",
        1e-6: "us µs μs microseconds",
        1e-3: "ms msec millisecond milliseconds",
        1.0: "s sec secs second seconds",
        60.0: "min mins minute minutes",
    }
)
_DTYPES = _spelled(
    {
        "float16": "fp16 float16 f16 half half-precision halfprecision",
        "float32": "fp32 float32 f32 single-precision",
        "bfloat16": "bf16 bfloat16",
        "float64": "fp64 float64 f64 double-precision",
        "int8": "int8 i8 8-bit 8bit",
        "uint8": "uint8 u8",
        "int4": "int4 4-bit 4bit nf4",
        "int32": "int32 i32",
        "int64": "int64 i64 long",
        "bool": "bool",
        "float8": "fp8 float8 float8_e4m3fn float8_e5m2",
    }
)


def _any(words: list[str]) -> str:
    """A pattern of any of `words`, the longest first."""
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


_NUM = r"(?<![\w.,])(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:[.,]\d+)?(?:e[+-]?\d+)?)"
_DIM = r"(?:[a-z]{1,12}[ \t]{0,2}[=:][ \t]{0,2})?\d{1,7}"
_DIMS = _DIM + r"(?:[ \t]{0,3}[,;x×][ \t]{0,3}" + _DIM + r"){1,7}"
_SHAPE = "|".join((
    r"(?:torch\.size[ \t]{0,2}\([ \t]{0,2})?[\[(][ \t]{0,3}(" + _DIMS + r")[ \t]{0,3},?[ \t]{0,3}[\])]",
    r"(?<![\w.,])(\d{1,7}(?:[ \t]{0,2}[x×][ \t]{0,2}\d{1,7}){1,7})(?![\w*×]|\.\d)",
    r"(?<![\w.,])(\d{1,7}(?:[ \t]{1,2}by[ \t]{1,2}\d{1,7}){1,7})(?![\w])",
    r"(?<![\w.,])(\d{1,6}(?:,[ \t]{0,2}\d{1,6}){3,6})(?![\w]|,[ \t]{0,2}\d|\.\d)",
    r"[\[(][ \t]{0,2}(\d{1,7}),[ \t]{0,2}[\])]|torch\.size\(\[(\d{1,7})\]\)",
))
_DTYPE = rf"(?<![\w.])(?:torch\.)?({_any(list(_DTYPES))})(?:[ -]?precision)?(?![\w-])"
_POWERS = {"k": 1, "m": 2, "g": 3, "t": 4}
"""Of what power of a thousand, or of 1024, a unit of bytes is."""
_UNIT = r"(?:kilo|mega|giga|tera|kibi|mebi|gibi|tebi)bytes?|[kmgt](?:i?b|bytes|bs)|bytes?|b"
_BELOW_100 = rf"(?:{_any(_TENS)})(?:[ \t-]{{1,2}}(?:{_any(_SMALL[1:10])}))?"
_WORDS = rf"\b({_BELOW_100}|{_any([*_SMALL, 'hundred', 'thousand', 'single'])})\b"


@dataclass(frozen=True)
class Quantity:
    """One amount found in a text. `kind` is shape, dtype, bytes, time, percent, ratio or count; `value` is a
    tuple of ints, a dtype name, bytes, seconds, a fraction, a factor or a number; `start:end` is where."""

    kind: str
    value: object
    text: str
    start: int
    end: int

    def is_like(self, fact: object, tolerance: float = 0.0) -> bool:
        """Whether a fact of a trace (a shape, a dtype, a number) says the same. A byte count may be rounded
        as people round it (to one in its last digit, at most 3%), and `KB` is 1000 or 1024 bytes."""
        if not isinstance(self.value, int | float):
            fact = tuple(fact) if isinstance(fact, list) else fact
            return self.value in (fact, str(fact).removeprefix("torch."))
        if isinstance(fact, bool) or not isinstance(fact, int | float):
            return False
        units: tuple[float, ...] = (1.0,)
        near = 1e-6
        if self.kind == "bytes":
            unit = re.sub(r"[\d.,\s-]", "", self.text.casefold())
            near = min(0.03, 1 / max(int(re.sub(r"\D+", "", self.text).strip("0") or 1), 1))
            units = units if "i" in unit[:2] or "ib" in unit else (1.0, 1.024 ** _POWERS.get(unit[:1], 0))
        most = tolerance * abs(fact) if tolerance else near * max(abs(fact), 1.0)
        return any(abs(self.value * unit - fact) <= most for unit in units)


def number(text: str) -> float:
    """`1,024`, `1.3`, `1,3` (a decimal comma) and `3e2` as a number; an int where it is whole."""
    text = text.strip().casefold()
    if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", text):
        text = text.replace(",", "")
    value = float(text.replace(",", "."))
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


def _dims(m: re.Match) -> tuple[int, ...]:
    text = next(group for group in m.groups() if group).casefold()
    return tuple(int(d) for d in re.findall(r"\d+", re.sub(r"[a-z]+[ \t]*[=:]", "", text)))


def _dtype(m: re.Match) -> str | None:
    alias, whole = m.group(1).casefold(), m.group().casefold()
    everyday = alias in ("half", "long", "bool") and "precision" not in whole and "torch" not in whole
    return None if everyday else _DTYPES[alias]


def _bytes(m: re.Match) -> float | None:
    unit = m.group(2).casefold()
    if re.fullmatch("[KMGT]?b", m.group(2)):  # a bit is no byte
        return None
    return number(m.group(1)) * (1024 if unit[1:3] in ("ib", "eb") else 1000) ** _POWERS.get(unit[:1], 0)


_KINDS: tuple[tuple[str, re.Pattern, Callable[[re.Match], object]], ...] = tuple(
    (kind, re.compile(pattern, re.IGNORECASE), value)
    for kind, pattern, value in (
        ("shape", _SHAPE, _dims),
        ("dtype", _DTYPE, _dtype),
        ("bytes", rf"{_NUM}[ \t-]{{0,2}}({_UNIT})(?![\w])", _bytes),
        ("time", rf"{_NUM}[ \t-]{{0,2}}({_any(list(_SECONDS))})(?![\w])",
         lambda m: number(m[1]) * _SECONDS[m[2].casefold()]),
        ("percent", rf"{_NUM}[ \t]{{0,2}}(?:%|percent\b|per cent\b)", lambda m: number(m[1]) / 100),
        ("ratio", rf"{_NUM}[ \t]{{0,1}}(?:x|×|-fold|fold|times)(?![\w])", lambda m: number(m[1])),
        ("count", rf"{_NUM}(?![\w]|[.,]\d)", lambda m: number(m[1])),
        ("count", _WORDS, lambda m: NUMBER_WORDS[re.sub(r"[ \t-]+", "-", m[1].casefold())]),
    )
)
"""The kinds of amount in the order in which they are looked for: a shape before the counts in it."""


def find_quantities(text: str) -> list[Quantity]:
    """Every amount in `text`, in order, each character in at most one of them."""
    taken = bytearray(len(text))
    found: list[Quantity] = []
    for kind, pattern, value in _KINDS:
        for m in pattern.finditer(text):
            amount = None if any(taken[m.start() : m.end()]) else value(m)
            if amount is not None:
                taken[m.start() : m.end()] = b"\1" * (m.end() - m.start())
                found.append(Quantity(kind, amount, m.group().strip(), m.start(), m.end()))
    return sorted(found, key=lambda q: q.start)
