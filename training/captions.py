"""Captions of batches of scenes and clips as word numbers, made on the device that draws them."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from inferlab.models.clips.draw import ClipBatch
from inferlab.models.clips.language import MOTIONS
from inferlab.models.clips.language import WORDS as CLIP_WORDS
from inferlab.models.scenes.draw import SceneBatch
from inferlab.models.scenes.language import BACKGROUNDS, COLORS, POSITIONS, RELATIONS, SHAPES, SIZES
from inferlab.models.scenes.language import WORDS as SCENE_WORDS

SCENE_LENGTH, CLIP_LENGTH = 14, 15  # words of the longest caption


class Writer:
    """Puts the captions of a batch together, word by word; a word that a caption leaves out is -1."""

    def __init__(self, batch: SceneBatch | ClipBatch, words: Iterable[str], omit: float,
                 generator: torch.Generator | None) -> None:
        self.n, self.device = len(batch), batch.count.device
        self.number = {word: index for index, word in enumerate(words)}
        self.omit, self.generator = omit, generator
        self.columns: list[torch.Tensor] = []

    def table(self, words: Iterable[str | None]) -> torch.Tensor:
        """The numbers of words, -1 for none: (len(words),)."""
        return torch.tensor([self.number[word] if word else -1 for word in words], device=self.device)

    def said(self) -> torch.Tensor:
        """(B,) bool: which captions say the next thing that may be left out."""
        if self.omit == 0:
            return torch.ones(self.n, dtype=torch.bool, device=self.device)
        return torch.rand(self.n, generator=self.generator, device=self.device) >= self.omit

    def put(self, words: torch.Tensor | str, when: torch.Tensor) -> None:
        """Add a word, one for all or one number for each caption (B,), where `when` (B,) holds."""
        if isinstance(words, str):
            words = torch.full((self.n,), self.number[words], device=self.device)
        self.columns.append(torch.where(when, words, -1))

    def put_background(self, background: torch.Tensor) -> None:
        """Add where the things are seen, which may be left out."""
        said = self.said()
        self.put("on", said)
        self.put("a", said)
        self.put(self.table(BACKGROUNDS)[background], said)
        self.put("background", said)

    def captions(self, length: int) -> torch.Tensor:
        """(B, length) int64: the words that are said, -1 after the end."""
        words = torch.stack(self.columns, dim=1)
        order = (words < 0).long().sort(dim=1, stable=True).indices
        return words.gather(1, order)[:, :length]


def caption_words(batch: SceneBatch, *, omit: float = 0.0,
                  generator: torch.Generator | None = None) -> torch.Tensor:
    """Captions as word numbers: (B, 14) int64 indices into the words of scenes, -1 after the end.

    ``omit`` is the probability with which each sayable attribute (a size, the place, the background) is left
    unsaid; it needs a ``generator`` on the batch's device. With omit 0, ``batch.scenes()[i].caption`` has the
    same words.
    """
    writer = Writer(batch, SCENE_WORDS, omit, generator)
    two = batch.count == 2

    def put_thing(i: int, when: torch.Tensor) -> None:
        sized = when & writer.said()
        color = writer.table(COLORS)[batch.color[:, i]]
        an = ~sized & (color == writer.number["orange"])
        writer.put(torch.where(an, writer.number["an"], writer.number["a"]), when)
        writer.put(writer.table(SIZES)[batch.size[:, i]], sized)
        writer.put(color, when)
        writer.put(writer.table(SHAPES)[batch.shape[:, i]], when)

    put_thing(0, torch.ones_like(two))
    related = two & writer.said()
    first = writer.table([relation.split()[0] for relation in RELATIONS])[batch.relation]
    writer.put(torch.where(related, first, writer.number["and"]), two)
    writer.put("of", related & (batch.relation < 2))
    put_thing(1, two)
    placed = ~two & writer.said()
    writer.put("at", placed)
    writer.put("the", placed)
    writer.put(writer.table(POSITIONS)[batch.position], placed)
    writer.put_background(batch.background)
    return writer.captions(SCENE_LENGTH)


def clip_caption_words(batch: ClipBatch, *, omit: float = 0.0,
                       generator: torch.Generator | None = None) -> torch.Tensor:
    """Captions as word numbers: (B, 15) int64 indices into the words of clips, -1 after the end.

    ``omit`` is the probability with which the background is left unsaid; it needs a ``generator`` on the
    batch's device. With omit 0, ``batch.scenes()[i].caption`` has the same words.
    """
    writer = Writer(batch, CLIP_WORDS, omit, generator)
    first, second = (writer.table([[*motion.split(), ""][i] for motion in MOTIONS]) for i in (0, 1))

    def put_mover(i: int, when: torch.Tensor) -> None:
        color = writer.table(COLORS)[batch.color[:, i]]
        an = color == writer.number["orange"]
        writer.put(torch.where(an, writer.number["an"], writer.number["a"]), when)
        writer.put(color, when)
        writer.put(writer.table(SHAPES)[batch.shape[:, i]], when)
        writer.put(first[batch.motion[:, i]], when)
        writer.put(second[batch.motion[:, i]], when)

    two = batch.count == 2
    put_mover(0, torch.ones_like(two))
    writer.put("and", two)
    put_mover(1, two)
    writer.put_background(batch.background)
    return writer.captions(CLIP_LENGTH)
