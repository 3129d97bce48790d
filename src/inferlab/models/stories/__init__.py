"""The language that the bundled language models speak: scenes and stories of coloured shapes, questions, right answers.

Everything follows from a seed. One world in sixteen (by a checksum of who is in it and what they look like) is held out of
training; `questions` and `documents` give those by default.

    for document, turn in questions(100, seed=1):
        print(document.prompt(turn), "->", turn.reply)
"""

from __future__ import annotations

import random

from .documents import Document, Turn, is_held_out
from .layouts import scene
from .questions import story

__all__ = ["Document", "Turn", "document", "documents", "is_held_out", "questions", "scene", "story"]

MAKERS = {"scene": scene, "story": story}


def document(seed: int, kind: str | None = None, held_out: bool = True, **sizes: int) -> Document:
    """The document that `seed` stands for.

    `kind` is "scene", "story", or None for either; `held_out` says from which part of the worlds; `sizes` go to `scene`
    (changes, turns) or `story` (events, turns, heroes).
    """
    if kind not in (None, *MAKERS):
        raise ValueError(f"kind is {kind!r}; expected 'scene', 'story' or None")
    rng = random.Random(seed)
    kind = kind or rng.choice(("scene", "story", "story"))
    while True:
        state = rng.getrandbits(32)
        found = MAKERS[kind](random.Random(state), **sizes)
        if is_held_out(found.key) == held_out:
            return found


def documents(n: int, seed: int = 0, kind: str | None = None, held_out: bool = True, **sizes: int) -> list[Document]:
    """`n` documents; another seed gives others."""
    return [document(seed * 1_000_003 + i, kind, held_out, **sizes) for i in range(n)]


def questions(n: int, seed: int = 0, kind: str | None = None, held_out: bool = True) -> list[tuple[Document, Turn]]:
    """`n` graded questions, each about another document, with `document.prompt(turn)` as prompt and `turn.reply` as answer."""
    found = []
    for one in documents(n, seed, kind, held_out, turns=8):
        graded = [t for t in one.turns if t.graded]
        found.append((one, random.Random(len(found)).choice(graded)))
    return found
