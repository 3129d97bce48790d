"""What can be read in a sentence: a claim, a direction, a counted thing, or nothing, with a hint."""

from dataclasses import dataclass

_STANCE = {"": "", "not": "not: ", "open": "left open: ", "apart": "told as somebody else's view: "}


@dataclass(frozen=True, slots=True)
class Claim:
    """`subject` does `verb` to `object`; "" where none was read. `stance` is "", "not", "open" or "apart" (somebody else's view)."""

    subject: str
    verb: str
    object: str
    stance: str = ""

    def __str__(self) -> str:
        return _STANCE[self.stance] + " \u00b7 ".join(p for p in (self.subject or "(who?)", self.verb, self.object) if p)


@dataclass(frozen=True, slots=True)
class Direction:
    """`quantity` goes `way` ("up", "down", "unchanged") when `lever` ("steps up", "cache off"; "" if not said) is pulled."""

    quantity: str
    way: str
    lever: str
    stance: str = ""

    def __str__(self) -> str:
        return (f"{self.lever} \u2192 " if self.lever else "") + f"{_STANCE[self.stance]}{self.quantity} {self.way}"


@dataclass(frozen=True, slots=True)
class Count:
    """A number that stands beside a thing."""

    thing: str
    number: str
    stance: str = ""

    def __str__(self) -> str:
        return f"{_STANCE[self.stance]}{self.thing}: {self.number}"


@dataclass(frozen=True, slots=True)
class NotRead:
    """A sentence (or "" for the whole field) in which something was not read, and how to help."""

    sentence: str
    hint: str

    def __str__(self) -> str:
        return (f"\u201c{self.sentence}\u201d " if self.sentence else "") + self.hint


Statement = Claim | Direction | Count | NotRead
