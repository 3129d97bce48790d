"""What every document of the language is made of: a context, and turns that ask something about it."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

HELD_OUT_OF = 16  # one world in sixteen is never trained on

EOS = "</s>"


@dataclass(frozen=True)
class Turn:
    """One request and its one right reply, both without the line break between turns.

    `kind` names what it takes to answer ("where", "count-left", "describe", ...). A turn is `graded` when the
    context leaves exactly one right reply; a description has many, so it is not.
    """

    kind: str
    request: str
    reply: str
    graded: bool = True


@dataclass
class Document:
    """A context of the language and the turns about it; `kind` is "scene" or "story"."""

    kind: str
    context: str
    key: str
    turns: list[Turn] = field(default_factory=list)

    def prompt(self, turn: Turn) -> str:
        """The text after which a model should write `turn.reply`. The tokenizer puts the <s> in front."""
        return f"{self.context}{EOS}\n{turn.request}"

    def text(self) -> str:
        """The whole document as it is trained on, from the context to the last reply's </s>."""
        return "\n".join([self.context + EOS] + [f"{t.request} {t.reply}{EOS}" for t in self.turns])


def is_held_out(key: str) -> bool:
    """Whether the world described by `key` (who is in it, how they look) is kept out of training."""
    return zlib.crc32(key.encode()) % HELD_OUT_OF == 0


def ask(kind: str, question: str, answer: str) -> Turn:
    """A question with one right answer."""
    return Turn(kind, f"Question: {question}\nAnswer:", f"{answer}.")


def pick_turns(rng: random.Random, makers: list, n: int) -> Iterator[Turn]:
    """Up to `n` turns with different requests; a maker gives a Turn, or None where it does not apply."""
    seen: set[str] = set()
    for _ in range(4 * n):
        if len(seen) == n:
            return
        turn = rng.choice(makers)(rng)
        if turn is not None and turn.request not in seen:
            seen.add(turn.request)
            yield turn
