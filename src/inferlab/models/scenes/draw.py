"""Draws scenes in batches on any device: random scenes and their anti-aliased pictures.

Everything is a tensor over the batch; no loop runs over scenes, so that training renders on the GPU as it
goes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import torch

from .language import BACKGROUNDS, COLORS, POSITIONS, RELATIONS, SHAPES, SIZES, Scene, Thing

CANVAS = 128  #: pixels a side; all lengths below are pixels of this canvas
MARGIN, GAP = 5.0, 10.0  # least distance to the border, and between two shapes
RADII = {"small": (11.0, 13.5), "large": (20.0, 24.0)}


@dataclass
class SceneBatch:
    """B scenes as tensors on one device. Attribute tensors hold indices into the tuples of ``language``.

    ``count`` (B,) is 1 or 2; ``shape``, ``color``, ``size`` (B, 2), the second column unused where count is
    1; ``relation``, ``position``, ``background`` (B,); geometry ``x``, ``y``, ``radius`` (B, 2) float32 in
    pixels; ``shade`` (B, 3, 3) float32: RGB of the background and of the two things, in [0, 1].
    """

    count: torch.Tensor
    shape: torch.Tensor
    color: torch.Tensor
    size: torch.Tensor
    relation: torch.Tensor
    position: torch.Tensor
    background: torch.Tensor
    x: torch.Tensor
    y: torch.Tensor
    radius: torch.Tensor
    shade: torch.Tensor

    def __len__(self) -> int:
        return len(self.count)

    def __getitem__(self, index: slice | torch.Tensor) -> SceneBatch:
        return SceneBatch(**{f.name: getattr(self, f.name)[index] for f in fields(self)})

    def scenes(self) -> list[Scene]:
        """The same scenes as readable objects, with every attribute said."""
        columns = [getattr(self, f.name).tolist() for f in fields(self)[:7]]
        return [_scene(*row) for row in zip(*columns, strict=True)]


def _scene(
    count: int, shape: list[int], color: list[int], size: list[int],
    relation: int, position: int, background: int,
) -> Scene:
    colors, grounds = list(COLORS), list(BACKGROUNDS)
    things = tuple(Thing(SHAPES[shape[i]], colors[color[i]], SIZES[size[i]]) for i in range(count))
    return Scene(
        things,
        RELATIONS[relation] if count == 2 else None,
        POSITIONS[position] if count == 1 else None,
        grounds[background],
    )


def held_out(batch: SceneBatch) -> torch.Tensor:
    """(B,) bool: scenes that training never drew, so that fidelity is measured on new combinations.

    One thing: the whole combination decides. Two things: the unordered pair (color and shape of each), in
    whatever sizes, relation or background, so that a held-out pair was never seen together at all.
    """
    kind = batch.color * len(SHAPES) + batch.shape
    single = ((kind[:, 0] * 2 + batch.size[:, 0]) * len(POSITIONS)
              + batch.position) * len(BACKGROUNDS) + batch.background
    return kept_from_training(batch.count, single, kind)


def kept_from_training(count: torch.Tensor, single: torch.Tensor, kind: torch.Tensor) -> torch.Tensor:
    """(B,) bool, true for 15 in 100 by a hash: of `single` (B,) where `count` (B,) is 1, else of the pair.

    The pair is that of `kind` (B, 2), in any order.
    """
    pair = kind.min(1).values * 1009 + kind.max(1).values
    mixed = (torch.where(count == 1, single, pair + 1_000_003) * 2654435761) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 15)) * 2246822519) & 0xFFFFFFFF
    return (mixed >> 13) % 100 < 15


def sample_scenes(n: int, generator: torch.Generator, *, two: float = 0.7, keep: str = "train") -> SceneBatch:
    """n random scenes on the generator's device.

    ``two`` is the share with two things. ``keep`` is "train" (none held out), "test" (only held-out ones) or
    "all". Two things never share both color and shape.
    """
    if keep not in ("train", "test", "all"):
        raise ValueError(f"keep must be 'train', 'test' or 'all', not {keep!r}")
    parts, have = [], 0
    while have < n:
        batch = _draw_attributes(2 * n if keep != "test" else 12 * n, generator, two)
        alike = (batch.color[:, 0] == batch.color[:, 1]) & (batch.shape[:, 0] == batch.shape[:, 1])
        good = ~((batch.count == 2) & alike)
        if keep != "all":
            good &= held_out(batch) == (keep == "test")
        parts.append(batch[good])
        have += len(parts[-1])
    merged = {f.name: torch.cat([getattr(p, f.name) for p in parts])[:n] for f in fields(SceneBatch)}
    return SceneBatch(**merged)


def _draw_attributes(n: int, generator: torch.Generator, two: float) -> SceneBatch:
    device = generator.device

    def pick(high: int, *shape: int) -> torch.Tensor:
        return torch.randint(high, shape, generator=generator, device=device)

    def uniform(*shape: int) -> torch.Tensor:
        return torch.rand(shape, generator=generator, device=device)

    count = 1 + (uniform(n) < two).long()
    shape, color, size = pick(len(SHAPES), n, 2), pick(len(COLORS), n, 2), pick(len(SIZES), n, 2)
    relation, position, background = pick(4, n), pick(len(POSITIONS), n), pick(len(BACKGROUNDS), n)
    bounds = torch.tensor([RADII[name] for name in SIZES], device=device)[size]
    radius = bounds[..., 0] + uniform(n, 2) * (bounds[..., 1] - bounds[..., 0])
    one_x, one_y = _place_one(position, radius[:, 0], uniform(n, 2))
    two_x, two_y = _place_two(relation, radius, uniform(n, 5))
    single = (count == 1)[:, None]
    shades = torch.cat([
        torch.tensor(list(BACKGROUNDS.values()), device=device)[background][:, None],
        torch.tensor(list(COLORS.values()), device=device)[color],
    ], dim=1)
    shades = (shades + (uniform(n, 3, 3) - 0.5) * 0.06).clamp(0, 1)
    return SceneBatch(
        count, shape, color, size, relation, position, background,
        torch.where(single, one_x[:, None], two_x), torch.where(single, one_y[:, None], two_y), radius,
        shades,
    )


def _place_one(
    position: torch.Tensor, radius: torch.Tensor, u: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Center of a single thing: near the middle, or against one side and level with the middle."""
    middle = CANVAS / 2 + (u - 0.5) * 18
    near = MARGIN + radius + u[:, 0] * (CANVAS / 2 - 24 - MARGIN - radius)  # at least 24 px from the middle
    far = CANVAS - near
    x = torch.where(position == 0, near, torch.where(position == 1, far, middle[:, 0]))
    y = torch.where(position == 2, near, torch.where(position == 3, far, middle[:, 1]))
    # the axis that is not against a side has its own random number
    return x, torch.where(position < 2, middle[:, 1], y)


def _place_two(
    relation: torch.Tensor, radius: torch.Tensor, u: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Centers of two things: apart along the relation's axis, nearly level across it."""
    first_is_near = (relation == 0) | (relation == 2)  # left of, above: the first has the smaller coordinate
    near_r = torch.where(first_is_near, radius[:, 0], radius[:, 1])
    far_r = torch.where(first_is_near, radius[:, 1], radius[:, 0])
    least = near_r + far_r + GAP
    slack = CANVAS - 2 * MARGIN - 2 * (near_r + far_r) - GAP
    cut = u[:, :2].sort(dim=1).values * slack[:, None]
    near = MARGIN + near_r + cut[:, 0]
    far = near + least + (cut[:, 1] - cut[:, 0])
    first = torch.where(first_is_near, near, far)
    second = torch.where(first_is_near, far, near)
    along = torch.stack([first, second], dim=1)
    across = CANVAS / 2 + (u[:, 2:3] - 0.5) * 32 + (u[:, 3:5] - 0.5) * 12
    horizontal = (relation < 2)[:, None]
    return torch.where(horizontal, along, across), torch.where(horizontal, across, along)


def _distance(shape: int, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Signed distance (negative inside) to a shape of radius 1 around the origin; y points down."""
    name = SHAPES[shape]
    if name == "circle":
        return torch.hypot(x, y) - 1
    if name == "square":
        return torch.maximum(x.abs(), y.abs()) - 0.88
    if name == "ring":
        return (torch.hypot(x, y) - 0.77).abs() - 0.23
    if name == "cross":
        ax, ay = x.abs(), y.abs()
        return torch.minimum(torch.maximum(ax - 0.32, ay - 1), torch.maximum(ay - 0.32, ax - 1))
    if name == "triangle":  # equilateral, apex up, circumradius 1.15, moved so that it fills its box
        y = y - 0.22
        return torch.maximum(y - 0.575, x.abs() * math.cos(math.pi / 6) - y * 0.5 - 0.575)
    return _star(x, y)


def _star(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Five-pointed star, apex up: folds the plane into one tenth, then the distance to that tenth's edge."""
    radius, inner = 1.12, 0.48  # of the tips; of the notches, as a share of it
    y = -(y - 0.08)
    angle = torch.atan2(x, y)
    length = torch.hypot(x, y)
    tenth = math.pi / 5
    folded = (torch.remainder(angle + tenth, 2 * tenth) - tenth).abs()
    px, py = length * folded.sin(), length * folded.cos()
    # edge from the tip (0, radius) to the notch at angle pi/5
    nx, ny = inner * radius * math.sin(tenth), inner * radius * math.cos(tenth)
    ex, ey = nx, ny - radius
    norm = math.hypot(ex, ey)
    return (px * -ey + (py - radius) * ex) / norm


def coverage(shape: torch.Tensor, x: torch.Tensor, y: torch.Tensor, radius: torch.Tensor,
             size: int = CANVAS, grow: float = 0.0) -> torch.Tensor:
    """How much of each pixel a shape covers: (..., size, size) float32 in [0, 1] from four tensors (...).

    ``grow`` moves the shape's edge outwards by so many pixels of the canvas, or inwards where it is negative.
    """
    scale = size / CANVAS
    grid = (torch.arange(size, device=x.device, dtype=torch.float32) + 0.5) / scale
    dx = (grid[None, :] - x[..., None, None]) / radius[..., None, None]
    dy = (grid[:, None] - y[..., None, None]) / radius[..., None, None]
    dx, dy = torch.broadcast_tensors(dx, dy)
    distance = torch.empty_like(dx)
    for index in range(len(SHAPES)):
        chosen = shape == index
        distance[chosen] = _distance(index, dx[chosen], dy[chosen])
    return (0.5 - (distance * radius[..., None, None] - grow) * scale).clamp(0, 1)


def render(batch: SceneBatch, size: int = CANVAS) -> torch.Tensor:
    """The pictures of a batch: (B, 3, size, size) float32 in [0, 1], anti-aliased, on the batch's device."""
    picture = batch.shade[:, 0, :, None, None].expand(-1, 3, size, size)
    masks = thing_masks(batch, size)
    for index in range(2):
        alpha = masks[:, index, None]
        picture = picture * (1 - alpha) + batch.shade[:, index + 1, :, None, None] * alpha
    return picture


def outlines(batch: SceneBatch, inside: float = 1.5, outside: float = 1.5,
             size: int = CANVAS) -> torch.Tensor:
    """Lines along the edges of a batch's shapes: (B, 1, size, size) float32 in [0, 1], 1 on a line.

    A line reaches ``inside`` and ``outside`` pixels of the canvas from the edge.
    """
    lines = thing_masks(batch, size, outside) - thing_masks(batch, size, -inside)
    return lines.amax(1, keepdim=True)


def thing_masks(batch: SceneBatch, size: int = CANVAS, grow: float = 0.0) -> torch.Tensor:
    """What each of a scene's things covers: (B, 2, size, size) float32, zeros where there is no second one.

    ``grow`` moves every edge outwards, as in `coverage`.
    """
    masks = coverage(batch.shape, batch.x, batch.y, batch.radius, size, grow)
    present = torch.stack([torch.ones_like(batch.count), (batch.count == 2).long()], dim=1)
    return masks * present[..., None, None]
