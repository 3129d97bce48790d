"""Reads shapes, dtypes, byte counts, times, ratios and counts in the forms in which people write them."""

import re
from dataclasses import dataclass

from .listed import listed

_SMALL = listed("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
          "seventeen eighteen nineteen")
_TENS = listed("twenty thirty forty fifty sixty seventy eighty ninety")
NUMBER_WORDS = {word: i for i, word in enumerate(_SMALL)} | {word: 10 * (i + 2) for i, word in enumerate(_TENS)}
NUMBER_WORDS |= {f"{t}-{u}": 10 * (i + 2) + j for i, t in enumerate(_TENS) for j, u in enumerate(_SMALL[:10]) if j}
NUMBER_WORDS |= {"single": 1, "hundred": 100, "thousand": 1000}

_UNITS = {"b": 1, "byte": 1, "bytes": 1, "bit": 0.125, "bits": 0.125}
for _i, _p in enumerate("kmgt", 1):
    _long = ("kilo", "mega", "giga", "tera")[_i - 1]
    _bin = ("kibi", "mebi", "gibi", "tebi")[_i - 1]
    _UNITS |= {f"{_p}b": 1000**_i, f"{_p}ib": 1024**_i, f"{_long}byte": 1000**_i, f"{_long}bytes": 1000**_i,
               f"{_bin}byte": 1024**_i, f"{_bin}bytes": 1024**_i, f"{_p}bytes": 1000**_i, f"{_p}bs": 1000**_i}
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "msec": 1e-3, "millisecond": 1e-3,
            "milliseconds": 1e-3, "microseconds": 1e-6, "s": 1.0, "sec": 1.0, "secs": 1.0, "second": 1.0,
            "seconds": 1.0, "min": 60.0, "mins": 60.0, "minute": 60.0, "minutes": 60.0}
_DTYPES = {
    "float16": "fp16 float16 f16 half half-precision halfprecision", "float32": "fp32 float32 f32 single-precision",
    "bfloat16": "bf16 bfloat16", "float64": "fp64 float64 f64 double-precision", "int8": "int8 i8 8-bit 8bit",
    "uint8": "uint8 u8", "int4": "int4 4-bit 4bit nf4", "int32": "int32 i32", "int64": "int64 i64 long", "bool": "bool",
    "float8": "fp8 float8 float8_e4m3fn float8_e5m2",
}
_DTYPE_OF = {alias: name for name, aliases in _DTYPES.items() for alias in aliases.split()}

_NUM = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:[.,]\d+)?(?:e[+-]?\d+)?"
_DIM = r"(?:[a-z]{1,12}[ \t]{0,2}[=:][ \t]{0,2})?\d{1,7}"
_SHAPE = re.compile(
    r"(?:torch\.size[ \t]{0,2}\([ \t]{0,2})?[\[(][ \t]{0,3}(" + _DIM + r"(?:[ \t]{0,3}[,;x×*][ \t]{0,3}" + _DIM
    + r"){1,7})[ \t]{0,3},?[ \t]{0,3}[\])]"
    + r"|(?<![\w.,])(" + r"\d{1,7}(?:[ \t]{0,2}[x×*][ \t]{0,2}\d{1,7}){1,7}" + r")(?![\w*×]|\.\d)"
    + r"|(?<![\w.,])(" + r"\d{1,7}(?:[ \t]{1,2}(?:by|times)[ \t]{1,2}\d{1,7}){1,7}" + r")(?![\w])"
    + r"|(?<![\w.,])(" + r"\d{1,6}(?:,[ \t]{0,2}\d{1,6}){3,6}" + r")(?![\w]|,[ \t]{0,2}\d|\.\d)", re.IGNORECASE)
_ONE_DIM = re.compile(r"[\[(][ \t]{0,2}(\d{1,7}),[ \t]{0,2}[\])]|torch\.size\(\[(\d{1,7})\]\)", re.IGNORECASE)
_DTYPE = re.compile(r"(?<![\w.])(?:torch\.)?(" + "|".join(sorted(map(re.escape, _DTYPE_OF), key=len, reverse=True))
                    + r")(?:[ -]?precision)?(?![\w-])", re.IGNORECASE)
_BYTES = re.compile(r"(?<![\w.,])(" + _NUM + r")[ \t-]{0,2}(" + "|".join(sorted(_UNITS, key=len, reverse=True))
                    + r")(?![\w])", re.IGNORECASE)
_TIME = re.compile(r"(?<![\w.,])(" + _NUM + r")[ \t-]{0,2}(" + "|".join(sorted(_SECONDS, key=len, reverse=True))
                   + r")(?![\w])", re.IGNORECASE)
_PERCENT = re.compile(r"(?<![\w.,])(" + _NUM + r")[ \t]{0,2}(?:%|percent\b|per cent\b)", re.IGNORECASE)
_RATIO = re.compile(r"(?<![\w.,])(" + _NUM + r")[ \t]{0,1}(?:x|×|-fold|fold|times)(?![\w])", re.IGNORECASE)
_COUNT = re.compile(r"(?<![\w.,])(" + _NUM + r")(?![\w]|[.,]\d)", re.IGNORECASE)
_DIGIT = re.compile(r"\d")
_SEP = r"[ \t-]{1,2}"
_WORD_COUNT = re.compile(
    r"\b((?:" + "|".join(_TENS) + r")(?:" + _SEP + r"(?:" + "|".join(_SMALL[1:10]) + r"))?|"
    + "|".join(sorted([*_SMALL, "hundred", "thousand", "single"], key=len, reverse=True)) + r")\b", re.IGNORECASE)


@dataclass(frozen=True)
class Quantity:
    """One amount found in a text. `kind` is shape, dtype, bytes, time, percent, ratio or count; `value` is a
    tuple of ints, a dtype name, bytes, seconds, a fraction, a factor or a number; `start:end` is where."""

    kind: str
    value: object
    text: str
    start: int
    end: int

    def is_like(self, fact: object) -> bool:
        """Whether a fact of a trace (a shape, a dtype, a number) says the same. A byte count may be rounded
        as people round it (to 3%, decimal or binary units)."""
        if self.kind == "shape":
            return isinstance(fact, (tuple, list)) and tuple(fact) == self.value
        if self.kind == "dtype":
            return str(fact).removeprefix("torch.") == self.value
        if isinstance(fact, bool) or not isinstance(fact, (int, float)):
            return False
        if self.kind == "bytes":
            return any(abs(self.value * k - fact) <= 0.03 * max(abs(fact), 1) for k in rounded(self.text))
        return abs(self.value - fact) <= 1e-6 * max(abs(fact), 1.0)


def rounded(text: str) -> tuple[float, ...]:
    unit = re.sub(r"[\d.,\s-]", "", text.casefold())
    power = {"k": 1, "m": 2, "g": 3, "t": 4}.get(unit[:1], 0)
    return (1.0,) if not power or "i" in unit[:2] or "ib" in unit else (1.0, 1.024**power)


def number(text: str) -> float:
    """`1,024`, `1.3`, `1,3` (a decimal comma) and `3e2` as a number; an int where it is whole."""
    text = text.strip().casefold()
    if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", text):
        text = text.replace(",", "")
    value = float(text.replace(",", "."))
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


def _dims(text: str) -> tuple[int, ...]:
    return tuple(int(d) for d in re.findall(r"\d+", re.sub(r"[a-z]+[ \t]*[=:]", "", text.casefold())))


def find_quantities(text: str) -> list[Quantity]:
    """Every amount in `text`, in order, each character in at most one of them (a shape before a count)."""
    taken = bytearray(len(text))
    found: list[Quantity] = []

    def add(kind: str, match: re.Match, value: object) -> None:
        if not any(taken[match.start():match.end()]):
            taken[match.start():match.end()] = b"\1" * (match.end() - match.start())
            found.append(Quantity(kind, value, match.group(0).strip(), match.start(), match.end()))

    digits = _DIGIT.search(text) is not None
    for m in _SHAPE.finditer(text) if digits else ():
        add("shape", m, _dims(next(g for g in m.groups() if g)))
    for m in _ONE_DIM.finditer(text) if digits else ():
        add("shape", m, (int(m.group(1) or m.group(2)),))
    for m in _DTYPE.finditer(text):
        alias = m.group(1).casefold()
        if alias in ("half", "long", "bool") and "precision" not in m.group(0).casefold() and "torch" not in m.group(0):
            continue
        add("dtype", m, _DTYPE_OF[alias])
    for m in _BYTES.finditer(text) if digits else ():
        if m.group(2).casefold() not in ("b",) or m.group(2) == "B":
            add("bytes", m, number(m.group(1)) * _UNITS[m.group(2).casefold()])
    for m in _TIME.finditer(text) if digits else ():
        add("time", m, number(m.group(1)) * _SECONDS[m.group(2).casefold()])
    for m in _PERCENT.finditer(text) if digits else ():
        add("percent", m, number(m.group(1)) / 100)
    for m in _RATIO.finditer(text) if digits else ():
        add("ratio", m, number(m.group(1)))
    for m in _COUNT.finditer(text) if digits else ():
        add("count", m, number(m.group(1)))
    for m in _WORD_COUNT.finditer(text):
        word = re.sub(r"[ \t-]+", "-", m.group(1).casefold())
        add("count", m, NUMBER_WORDS[word])
    return sorted(found, key=lambda q: q.start)
