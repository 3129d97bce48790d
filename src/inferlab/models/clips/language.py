"""The language of clips: one or two colored shapes, the way each moves, and the background.

Grammar (every word is one token of the video model's tokenizer; the longest caption is 15 words)::

    caption = mover [" and " mover] [" on a " background " background"]
    mover   = ("a" | "an") " " color " " shape " " motion

Shapes, colors and backgrounds are those of ``inferlab.models.scenes``. A caption that leaves out the
background allows any.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from inferlab.models.scenes.language import BACKGROUNDS, COLORS, SHAPES

MOTIONS = ("moves left", "moves right", "rises", "falls", "stays still")
#: The unit step of each motion, in picture coordinates: x to the right, y down.
STEPS = ((-1, 0), (1, 0), (0, -1), (0, 1), (0, 0))

#: Every word a caption can hold, each once, in a fixed order.
WORDS = tuple(
    dict.fromkeys(
        ["a", "an", "and", "on", "background", *SHAPES, *COLORS, *BACKGROUNDS, *" ".join(MOTIONS).split()]
    )
)


@dataclass(frozen=True)
class Mover:
    """One shape of a clip and how it moves."""

    shape: str
    color: str
    motion: str

    def __str__(self) -> str:
        return f"{'an' if self.color[0] in 'aeiou' else 'a'} {self.color} {self.shape} {self.motion}"


@dataclass(frozen=True)
class MovingScene:
    """What a caption says: one or two movers, and the background, None where it does not say."""

    movers: tuple[Mover, ...]
    background: str | None = None

    @property
    def caption(self) -> str:
        """The one way to write this scene down; ``parse_clip_caption`` reads it back."""
        text = " and ".join(str(mover) for mover in self.movers)
        return text + (f" on a {self.background} background" if self.background else "")


_MOVER = rf"an? ({'|'.join(COLORS)}) ({'|'.join(SHAPES)}) ({'|'.join(MOTIONS)})"
_CAPTION = re.compile(rf"{_MOVER}(?: and {_MOVER})?(?: on a ({'|'.join(BACKGROUNDS)}) background)?")


def parse_clip_caption(caption: str) -> MovingScene:
    """The scene that ``caption`` describes.

    Case and extra spaces do not matter. Raises ValueError, naming the words that the language lacks, for
    text outside it.
    """
    text = " ".join(caption.lower().split()).rstrip(".")
    match = _CAPTION.fullmatch(text)
    if match is None:
        unknown = [word for word in text.split() if word not in WORDS]
        why = f"unknown words: {', '.join(unknown)}" if unknown else "the words are known, their order is not"
        raise ValueError(
            f"not a caption of a clip ({why}): {caption!r}. "
            "A caption reads like 'a red circle moves left and a blue square rises on a white background'."
        )
    movers = [Mover(match[2], match[1], match[3])]
    if match[4]:
        movers.append(Mover(match[5], match[4], match[6]))
    return MovingScene(tuple(movers), match[7])
