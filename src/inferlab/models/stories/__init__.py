"""The language of the bundled language models: scenes and stories of colored shapes, and questions.

Everything follows from a seed. One world in sixteen (by a checksum of who is in it and what they look like)
is held out of training; `questions` and `documents` give those by default.

    for document, turn in questions(100, seed=1):
        print(document.prompt(turn), "->", turn.reply)
"""

from __future__ import annotations

import random
from collections.abc import Callable

from .documents import Document, Turn, is_held_out
from .layouts import scene
from .questions import story
from .repeats import repeat

__all__ = ["MIX", "Document", "Turn", "document", "documents", "is_held_out", "questions", "repeat", "scene",
           "story"]

MAKERS: dict[str, Callable[..., Document]] = {"scene": scene, "story": story, "repeat": repeat}
MIX = ("scene", "scene", "scene", "story", "story", "story", "story", "repeat", "repeat")


def document(seed: int, kind: str | None = None, held_out: bool = True, **sizes: int) -> Document:
    """The document that `seed` stands for.

    `kind` is "scene", "story", "repeat", or None for any; `held_out` says from which part of the worlds;
    `sizes` go to `scene` (changes, turns), `story` (events, turns, heroes, ending) or `repeat` (words).
    """
    if kind not in (None, *MAKERS):
        raise ValueError(f"kind is {kind!r}; expected 'scene', 'story', 'repeat' or None")
    rng = random.Random(seed)
    kind = kind or rng.choice(MIX)
    while True:
        state = rng.getrandbits(32)
        found = MAKERS[kind](random.Random(state), **sizes)
        if is_held_out(found.key) == held_out:
            return found


def documents(n: int, seed: int = 0, kind: str | None = None, held_out: bool = True,
              **sizes: int) -> list[Document]:
    """`n` documents; another seed gives others."""
    return [document(seed * 1_000_003 + i, kind, held_out, **sizes) for i in range(n)]


def questions(n: int, seed: int = 0, kind: str | None = None) -> list[tuple[Document, Turn]]:
    """`n` graded questions about as many documents, scenes and (ending) stories unless `kind` is given.

    `document.prompt(turn)` is the prompt, `turn.reply` the one right answer.
    """
    rng = random.Random(seed)
    found: list[tuple[Document, Turn]] = []
    while len(found) < n:
        about = kind or rng.choice(("scene", "story"))
        one = document(rng.getrandbits(48), about, **({"ending": True} if about == "story" else {}))
        graded = [t for t in one.turns if t.graded]
        if graded:
            found.append((one, rng.choice(graded)))
    return found
