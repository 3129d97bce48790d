"""Documents that say a line of words and say it again: the plainest test of a memory.

    Line: lamp Mira hill red drum.</s>
    Say it again.
    Answer: lamp Mira hill red drum.</s>
"""

from __future__ import annotations

import random

from .documents import Document, Turn
from .words import COLORS, KINDS, NAMES, PLACES, THINGS

WORDS = NAMES + PLACES + THINGS + COLORS + KINDS


def repeat(rng: random.Random, words: int | None = None) -> Document:
    """A line of 3 to 24 words that may come more than once, and the request to say it again, or backwards."""
    line = rng.choices(WORDS, k=rng.randint(3, 24) if words is None else words)
    text = " ".join(line)
    back = rng.random() < 0.25
    request = "Say it backwards.\nAnswer:" if back else "Say it again.\nAnswer:"
    reply = " ".join(line[::-1]) if back else text
    return Document("repeat", f"Line: {text}.", text, [Turn("backwards" if back else "again", request,
                                                            f"{reply}.")])
