"""The caption language: one or two colored shapes, their sizes, where they stand, and the background.

Grammar (every word is one token of the bundled tokenizer; the longest caption is 14 words, 16 tokens with its
ends)::

    caption  = one | two
    one      = thing [" at the " position] [" on a " background " background"]
    two      = thing (" and " | " " relation " ") thing [" on a " background " background"]
    thing    = ("a" | "an") [" " size] " " color " " shape

What a caption leaves out (a size, a place, the background) may be anything in its picture.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

SHAPES = ("circle", "square", "triangle", "ring", "cross", "star")
SIZES = ("small", "large")
RELATIONS = ("left of", "right of", "above", "below")
POSITIONS = ("left", "right", "top", "bottom", "center")

#: Color names and their sRGB values in [0, 1].
COLORS = {
    "red": (0.88, 0.10, 0.12),
    "orange": (1.00, 0.55, 0.05),
    "yellow": (0.98, 0.90, 0.15),
    "green": (0.10, 0.65, 0.20),
    "cyan": (0.15, 0.82, 0.90),
    "blue": (0.12, 0.25, 0.90),
    "purple": (0.55, 0.15, 0.72),
    "pink": (1.00, 0.50, 0.75),
}
BACKGROUNDS = {
    "white": (0.97, 0.97, 0.97),
    "gray": (0.50, 0.50, 0.50),
    "black": (0.03, 0.03, 0.03),
    "brown": (0.38, 0.24, 0.12),
}

#: Every word a caption can hold, each once, in a fixed order.
WORDS = tuple(dict.fromkeys((
    "a", "an", "and", "of", "on", "at", "the", "background",
    *SHAPES, *SIZES, *COLORS, *BACKGROUNDS, *POSITIONS, "above", "below",
)))


@dataclass(frozen=True)
class Thing:
    """One shape of a scene. ``size`` is None where the caption does not say."""

    shape: str
    color: str
    size: str | None = None

    def __str__(self) -> str:
        words = [word for word in (self.size, self.color, self.shape) if word]
        return ("an " if words[0][0] in "aeiou" else "a ") + " ".join(words)


@dataclass(frozen=True)
class Scene:
    """What a caption says: a thing with a ``position``, or two with a ``relation``; None if unsaid."""

    things: tuple[Thing, ...]
    relation: str | None = None
    position: str | None = None
    background: str | None = None

    @property
    def caption(self) -> str:
        """The one way to write this scene down; ``parse_caption`` reads it back."""
        text = f" {self.relation or 'and'} ".join(str(thing) for thing in self.things)
        if self.position:
            text += f" at the {self.position}"
        if self.background:
            text += f" on a {self.background} background"
        return text


def _one_of(words: Iterable[str]) -> str:
    return "|".join(words)


_THING = rf"an? (?:({_one_of(SIZES)}) )?({_one_of(COLORS)}) ({_one_of(SHAPES)})"
_CAPTION = re.compile(
    rf"{_THING}(?: (and|{_one_of(RELATIONS)}) {_THING})?"
    rf"(?: at the ({_one_of(POSITIONS)}))?(?: on a ({_one_of(BACKGROUNDS)}) background)?"
)


def parse_caption(caption: str) -> Scene:
    """The scene that ``caption`` describes.

    Case and extra spaces do not matter. Raises ValueError, naming the words that the language lacks, for text
    outside it.
    """
    text = " ".join(caption.lower().split()).rstrip(".")
    match = _CAPTION.fullmatch(text)
    if match is None or (match[4] and match[8]):
        unknown = [word for word in text.split() if word not in WORDS]
        why = f"unknown words: {', '.join(unknown)}" if unknown else "the words are known, their order is not"
        raise ValueError(
            f"not a caption of the scene language ({why}): {caption!r}. "
            "A caption reads like 'a large red circle left of a small blue square on a white background'."
        )
    things = [Thing(match[3], match[2], match[1])]
    if match[4]:
        things.append(Thing(match[7], match[6], match[5]))
    relation = match[4] if match[4] in RELATIONS else None
    return Scene(tuple(things), relation, match[8], match[9])
