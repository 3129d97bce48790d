"""One quantity with its direction."""

from dataclasses import dataclass

REACH = 4
"""How many words a direction looks ahead or back for its quantity."""


@dataclass(frozen=True, slots=True)
class Effect:
    """One quantity with its direction: +1 up, -1 down, 0 unchanged. `at` indexes the sentence's tokens, `cue` is where
    the word stands that gives the direction (-1: at `at`). `strong` is False where the two stand far apart or belong together only perhaps: such a reading never denies. `told` marks a phrase of the
    rubric that says it by itself."""

    quantity: str
    sign: int
    at: int
    end: int
    negated: bool = False
    hedged: bool = False
    words: str = ""
    cue: int = -1
    strong: bool = True
    told: bool = False
