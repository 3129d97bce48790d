"""Draws clips in batches on any device: random moving scenes, anti-aliased frames, captions as word numbers.

Everything is a tensor over the batch, as in ``inferlab.models.scenes.draw``, whose shapes and canvas these
are.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch

from inferlab.models.clips.language import MOTIONS, STEPS, Mover, MovingScene
from inferlab.models.scenes.draw import CANVAS, coverage, kept_from_training
from inferlab.models.scenes.language import BACKGROUNDS, COLORS, SHAPES

FRAMES, SIZE = 17, 96  #: frames of a clip, pixels a side; all lengths below are pixels of the canvas of 128
MARGIN, GAP = 4.0, 5.0  # least distance to the border, and between two shapes at any time
RADII = {1: (17.0, 26.0), 2: (16.0, 20.0)}  # by the number of shapes
REACH = (36.0, 56.0)  # how far what moves gets during the clip
TRIES = 12  # placements tried for each scene


@dataclass
class ClipBatch:
    """B moving scenes as tensors on one device; attributes are indices into the languages' tuples.

    ``count`` (B,) is 1 or 2; ``shape``, ``color``, ``motion`` (B, 2), the second column unused where count
    is 1; ``background`` (B,); ``start`` and ``end`` (B, 2 shapes, 2 axes) float32, centers in the first and
    the last frame in pixels of the canvas; ``radius`` (B, 2); ``shade`` (B, 3, 3) float32: RGB of the
    background and of both shapes.
    """

    count: torch.Tensor
    shape: torch.Tensor
    color: torch.Tensor
    motion: torch.Tensor
    background: torch.Tensor
    start: torch.Tensor
    end: torch.Tensor
    radius: torch.Tensor
    shade: torch.Tensor

    def __len__(self) -> int:
        return len(self.count)

    def __getitem__(self, index: torch.Tensor | slice) -> ClipBatch:
        return ClipBatch(**{f.name: getattr(self, f.name)[index] for f in fields(self)})

    def scenes(self) -> list[MovingScene]:
        """The same scenes as readable objects, with every attribute said."""
        columns = [t.tolist() for t in (self.count, self.shape, self.color, self.motion, self.background)]
        colors, grounds = list(COLORS), list(BACKGROUNDS)
        return [
            MovingScene(
                tuple(Mover(SHAPES[shape[i]], colors[color[i]], MOTIONS[motion[i]]) for i in range(count)),
                grounds[background],
            )
            for count, shape, color, motion, background in zip(*columns, strict=True)
        ]


def join_clips(parts: list[ClipBatch]) -> ClipBatch:
    """The batches one after the other."""
    return ClipBatch(**{f.name: torch.cat([getattr(p, f.name) for p in parts]) for f in fields(ClipBatch)})


def held_out_clips(batch: ClipBatch) -> torch.Tensor:
    """(B,) bool: scenes that training never filmed, so that fidelity is measured on new combinations.

    One shape: color, shape, motion and background together decide. Two: the unordered pair of colored
    shapes, however they move, so that a held-out pair was never seen together at all.
    """
    kind = batch.color * len(SHAPES) + batch.shape
    single = (kind[:, 0] * len(MOTIONS) + batch.motion[:, 0]) * len(BACKGROUNDS) + batch.background
    return kept_from_training(batch.count, single, kind)


def sample_clips(n: int, generator: torch.Generator, *, two: float = 0.6, keep: str = "train") -> ClipBatch:
    """n random moving scenes on the generator's device.

    ``two`` is the share with two shapes. ``keep`` is "train" (none held out), "test" (only held-out ones) or
    "all". Shapes stay inside the picture and apart at all times; two never share both color and shape.
    """
    if keep not in ("train", "test", "all"):
        raise ValueError(f"keep must be 'train', 'test' or 'all', not {keep!r}")
    parts, have = [], 0
    while have < n:
        batch, good = _draw(64 + (2 * n if keep != "test" else 12 * n), generator, two)
        if keep != "all":
            good &= held_out_clips(batch) == (keep == "test")
        parts.append(batch[good])
        have += len(parts[-1])
    return join_clips(parts)[slice(0, n)]


def _draw(n: int, generator: torch.Generator, two: float) -> tuple[ClipBatch, torch.Tensor]:
    """n scenes, and which of them are allowed."""
    device = generator.device

    def pick(high: int, *shape: int) -> torch.Tensor:
        return torch.randint(high, shape, generator=generator, device=device)

    def uniform(low: float, high: float, *shape: int) -> torch.Tensor:
        return low + (high - low) * torch.rand(shape, generator=generator, device=device)

    count = 1 + (uniform(0, 1, n) < two).long()
    shape, color = pick(len(SHAPES), n, 2), pick(len(COLORS), n, 2)
    motion, background = pick(len(MOTIONS), n, 2), pick(len(BACKGROUNDS), n)
    single = (count == 1)[:, None]
    radius = torch.where(single, uniform(*RADII[1], n, 2), uniform(*RADII[2], n, 2))
    step = torch.tensor(STEPS, dtype=torch.float32, device=device)[motion]
    move = step * uniform(*REACH, n, 2, 1)
    # Starts are uniform among the places from which the whole way stays inside.
    low = MARGIN + radius[..., None] + (-move).clamp(min=0)
    high = CANVAS - MARGIN - radius[..., None] - move.clamp(min=0)
    tries = low[:, None] + uniform(0, 1, n, TRIES, 2, 2) * (high - low)[:, None]
    apart = _least_distance(tries, move[:, None]) > 1.15 * radius.sum(1)[:, None] + GAP
    apart |= (count == 1)[:, None]
    start = tries[torch.arange(n, device=device), apart.float().argmax(1)]
    shade = torch.cat(
        [
            torch.tensor(list(BACKGROUNDS.values()), device=device)[background][:, None],
            torch.tensor(list(COLORS.values()), device=device)[color],
        ],
        dim=1,
    )
    shade = (shade + uniform(-0.03, 0.03, n, 3, 3)).clamp(0, 1)
    same = (count == 2) & (color[:, 0] == color[:, 1]) & (shape[:, 0] == shape[:, 1])
    batch = ClipBatch(count, shape, color, motion, background, start, start + move, radius, shade)
    return batch, apart.any(1) & ~same


def _least_distance(start: torch.Tensor, move: torch.Tensor) -> torch.Tensor:
    """(...) the least distance of two centers (..., 2, 2) that go straight along ``move``, evenly."""
    between, drift = start[..., 0, :] - start[..., 1, :], move[..., 0, :] - move[..., 1, :]
    when = -(between * drift).sum(-1) / drift.square().sum(-1).clamp_min(1e-6)
    return (between + when.clamp(0, 1)[..., None] * drift).norm(dim=-1)


def render_clips(batch: ClipBatch, size: int = SIZE, frames: int = FRAMES) -> torch.Tensor:
    """The clips of a batch: (B, 3, frames, size, size) float32 in [0, 1], anti-aliased, on its device."""
    n, device = len(batch), batch.count.device
    passed = torch.linspace(0, 1, frames, device=device)[None, :, None, None]
    way = batch.start[:, None] * (1 - passed) + batch.end[:, None] * passed  # (B, frames, 2, 2)
    clip = batch.shade[:, 0, :, None, None, None].expand(n, 3, frames, size, size)
    present = torch.stack([torch.ones_like(batch.count), (batch.count == 2).long()], dim=1)
    for index in range(2):
        shape, radius = (t[:, index, None].expand(n, frames) for t in (batch.shape, batch.radius))
        mask = coverage(shape, way[:, :, index, 0], way[:, :, index, 1], radius, size)
        alpha = (mask * present[:, index, None, None, None])[:, None]
        clip = clip * (1 - alpha) + batch.shade[:, index + 1, :, None, None, None] * alpha
    return clip
