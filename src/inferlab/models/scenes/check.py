"""Judges a picture against its caption: finds the shapes in its pixels and compares what was said.

Nothing here is learned. A shape is a connected region that differs from the background; its color is the
palette's nearest to the region's inside, its shape the template that overlaps it best, its size the radius of
that template.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F

from .draw import CANVAS, coverage
from .language import BACKGROUNDS, COLORS, POSITIONS, RELATIONS, SHAPES, SIZES, Scene, parse_caption

FOREGROUND = 0.20  # RGB distance from the background at which a pixel belongs to a shape
SAME_COLOR = 0.20  # RGB distance within which a region has a palette's color
LEAST_AREA = 25  # pixels; smaller regions are specks
LEAST_OVERLAP = 0.80  # of a region with its best template; below it is no shape of the language
SIZE_BORDER = 16.5  # pixels of radius between small and large
CENTER_BORDER = 16.0  # pixels from the middle within which a thing is at the center


@dataclass(frozen=True)
class Seen:
    """One region of a picture, in pixels; ``shape`` or ``color`` is None where the language has none."""

    shape: str | None
    color: str | None
    size: str
    x: float
    y: float
    radius: float
    overlap: float


NOTHING = Seen(None, None, "", 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Judged:
    """Attribute of a caption (count, shape, color, ...) -> whether what was judged has it."""

    attributes: dict[str, bool]

    @property
    def right(self) -> bool:
        """Whether it has all of them."""
        return all(self.attributes.values())

    @property
    def wrong(self) -> list[str]:
        """The names of those that it lacks."""
        return [name for name, good in self.attributes.items() if not good]

    def state(self) -> str:
        """Right or wrong, in words."""
        return "right" if self.right else f"wrong in {', '.join(self.wrong)}"


@dataclass(frozen=True)
class Verdict(Judged):
    """What a picture shows: its things, and its background's name."""

    things: tuple[Seen, ...]
    background: str | None

    def __str__(self) -> str:
        seen = ", ".join(f"{t.size} {t.color} {t.shape} at ({t.x:.0f}, {t.y:.0f})"
                         for t in self.things) or "nothing"
        return f"{self.state()}: {seen} on {self.background}"


def check_picture(image: Any, caption: str | Scene) -> Verdict:
    """Judges one picture: a PIL image, or a tensor or array (3, H, W) or (H, W, 3), in [0, 1] or uint8.

    Raises ValueError for a caption outside the language or an image of another layout.
    """
    return check_pictures(_as_tensor(image)[None], [caption])[0]


def check_pictures(images: torch.Tensor, captions: list[str | Scene]) -> list[Verdict]:
    """Judges (B, 3, H, W) float pictures in [0, 1], on any device, against B captions, each on its own."""
    if images.ndim != 4 or images.shape[1] != 3 or len(images) != len(captions):
        raise ValueError(f"expected {len(captions)} pictures as (B, 3, H, W), not {tuple(images.shape)}")
    scenes = [parse_caption(c) if isinstance(c, str) else c for c in captions]
    return [_compare(scene, *found) for scene, found in zip(scenes, look(images), strict=True)]


def look(images: torch.Tensor) -> list[tuple[str | None, tuple[Seen, ...]]]:
    """`describe` for any number of pictures (B, 3, H, W) of any size: 64 at once, on the canvas."""
    images = images.float()
    if images.shape[-2:] != (CANVAS, CANVAS):
        images = F.interpolate(images, (CANVAS, CANVAS), mode="bilinear", antialias=True)
    return [found for part in images.split(64) for found in describe(part)]


def describe(images: torch.Tensor) -> list[tuple[str | None, tuple[Seen, ...]]]:
    """Of each of (B, 3, 128, 128) pictures: the background's name (None if none fits) and its regions."""
    edge = torch.cat([images[..., :3, :].flatten(2), images[..., -3:, :].flatten(2),
                      images[..., :, :3].flatten(2), images[..., :, -3:].flatten(2)], dim=2)
    ground = edge.median(dim=2).values  # (B, 3)
    names = _nearest(ground, BACKGROUNDS)
    difference = images - ground[..., None, None]
    labels = _label(difference.norm(dim=1) > FOREGROUND)
    owners, regions = [], []
    for index, picture in enumerate(labels):
        values, areas = picture.unique(return_counts=True)
        for value, area in zip(values.tolist(), areas.tolist(), strict=True):
            if value > 0 and area >= LEAST_AREA:
                owners.append(index)
                regions.append(picture == value)
    found: list[list[Seen]] = [[] for _ in images]
    if regions:
        which = torch.tensor(owners, device=images.device)
        named = _name(torch.stack(regions), images[which], ground[which])
        for owner, seen in zip(owners, named, strict=True):
            found[owner].append(seen)
    return [(name, tuple(things)) for name, things in zip(names, found, strict=True)]


def _label(mask: torch.Tensor) -> torch.Tensor:
    """(B, H, W) bool -> int64: 0 outside, and one positive number for each 8-connected region."""
    _, h, w = mask.shape
    inside = mask.float()[:, None]
    labels = torch.arange(1, h * w + 1, device=mask.device, dtype=torch.float32).view(1, 1, h, w) * inside
    while True:
        before = labels
        for _ in range(24):
            labels = F.max_pool2d(labels, 3, stride=1, padding=1) * inside
        if torch.equal(before, labels):
            return labels[:, 0].long()


def _name(region: torch.Tensor, image: torch.Tensor, ground: torch.Tensor) -> list[Seen]:
    """Names N regions (N, H, W) of the pictures (N, 3, H, W) they are in."""
    solid = region.float()[:, None]
    inner = -F.max_pool2d(-solid, 3, stride=1, padding=1)
    inner = torch.where(inner.sum((2, 3), keepdim=True) >= 8, inner, solid)
    color = (image * inner).sum((2, 3)) / inner.sum((2, 3))
    same = ((image - color[..., None, None]).norm(dim=1, keepdim=True) < SAME_COLOR).float()
    uniform = (same * inner).sum((1, 2, 3)) / inner.sum((1, 2, 3)) > 0.8
    colors = [name if even else None
              for name, even in zip(_nearest(color, COLORS), uniform.tolist(), strict=True)]
    axis = color - ground
    alpha = torch.einsum("nchw,nc->nhw", image - ground[..., None, None],
                         axis) / axis.square().sum(1)[:, None, None]
    near = F.max_pool2d(solid, 3, stride=1, padding=1)[:, 0]
    alpha = alpha.clamp(0, 1) * near
    radius, x, y, overlap = _fit(alpha)
    best = overlap.argmax(dim=1)
    rows = torch.arange(len(best), device=best.device)
    columns = [t[rows, best].tolist() for t in (x, y, radius, overlap)]
    return [
        Seen(SHAPES[s] if o >= LEAST_OVERLAP else None, c, SIZES[int(r > SIZE_BORDER)], px, py, r, o)
        for s, c, px, py, r, o in zip(best.tolist(), colors, *columns, strict=True)
    ]


def _fit(alpha: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Radius, center and overlap (N, shapes) of each shape's template with a region's area and centroid."""
    n, shapes = len(alpha), len(SHAPES)
    unit_area, unit_x, unit_y = (t.to(alpha.device) for t in _templates())
    grid = torch.arange(CANVAS, device=alpha.device, dtype=torch.float32) + 0.5
    area = alpha.sum((1, 2)).clamp_min(1e-3)
    center_x = (alpha.sum(1) * grid).sum(1) / area
    center_y = (alpha.sum(2) * grid).sum(1) / area
    radius = (area[:, None] / unit_area).sqrt()
    x, y = center_x[:, None] - unit_x * radius, center_y[:, None] - unit_y * radius
    kind = torch.arange(shapes, device=alpha.device).expand(n, shapes)
    template = coverage(kind, x, y, radius)
    both = torch.minimum(template, alpha[:, None]).sum((2, 3))
    either = torch.maximum(template, alpha[:, None]).sum((2, 3))
    return radius, x, y, both / either


@lru_cache(maxsize=1)
def _templates() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Area and centroid of each shape at radius 1."""
    radius, middle = 40.0, CANVAS / 2
    kind = torch.arange(len(SHAPES))
    mask = coverage(kind, torch.full(kind.shape, middle), torch.full(kind.shape, middle),
                    torch.full(kind.shape, radius))
    grid = torch.arange(CANVAS, dtype=torch.float32) + 0.5
    area = mask.sum((1, 2))
    x = (mask.sum(1) * grid).sum(1) / area - middle
    y = (mask.sum(2) * grid).sum(1) / area - middle
    return area / radius**2, x / radius, y / radius


def _nearest(color: torch.Tensor, palette: dict[str, tuple[float, float, float]]) -> list[str | None]:
    table = torch.tensor(list(palette.values()), device=color.device)
    distance, index = torch.cdist(color, table).min(dim=1)
    names = list(palette)
    pairs = zip(distance.tolist(), index.tolist(), strict=True)
    return [names[i] if d < SAME_COLOR else None for d, i in pairs]


def _compare(scene: Scene, background: str | None, things: tuple[Seen, ...]) -> Verdict:
    orders = [things, things[::-1]] if len(scene.things) == 2 else [things]
    readings = (_attributes(scene, order) for order in orders)
    best: dict[str, bool] = max(readings, key=lambda reading: sum(reading.values()))
    result = {"count": len(things) == len(scene.things)} | best
    if scene.background:
        result["background"] = background == scene.background
    return Verdict(result, things, background)


def _attributes(scene: Scene, things: tuple[Seen, ...]) -> dict[str, bool]:
    """Attributes of a scene when its things are taken to be ``things``, in this order."""
    if len(things) < len(scene.things):
        things = things + (NOTHING,) * (len(scene.things) - len(things))
    pairs = list(zip(scene.things, things, strict=False))
    result = {
        "shape": all(said.shape == seen.shape for said, seen in pairs),
        "color": all(said.color == seen.color for said, seen in pairs),
    }
    if any(said.size for said in scene.things):
        result["size"] = all(said.size in (None, seen.size) for said, seen in pairs)
    if scene.relation:
        result["relation"] = _relation(things[0], things[1]) == scene.relation
    if scene.position:
        result["position"] = _position(things[0]) == scene.position
    return result


def _relation(first: Seen, second: Seen) -> str:
    dx, dy = second.x - first.x, second.y - first.y
    if abs(dx) > abs(dy):
        return RELATIONS[0] if dx > 0 else RELATIONS[1]
    return RELATIONS[2] if dy > 0 else RELATIONS[3]


def _position(thing: Seen) -> str:
    dx, dy = thing.x - CANVAS / 2, thing.y - CANVAS / 2
    if max(abs(dx), abs(dy)) < CENTER_BORDER:
        return POSITIONS[4]
    if abs(dx) > abs(dy):
        return POSITIONS[0] if dx < 0 else POSITIONS[1]
    return POSITIONS[2] if dy < 0 else POSITIONS[3]


def _as_tensor(image: Any) -> torch.Tensor:
    if hasattr(image, "convert"):  # a PIL image
        import numpy as np

        image = np.array(image.convert("RGB"))
    tensor = torch.as_tensor(image)
    if tensor.ndim != 3 or 3 not in (tensor.shape[0], tensor.shape[-1]):
        raise ValueError(f"expected one picture, (3, H, W) or (H, W, 3), not {tuple(tensor.shape)}")
    if tensor.shape[0] != 3:
        tensor = tensor.permute(2, 0, 1)
    return tensor.float() / 255 if tensor.dtype == torch.uint8 else tensor.float()
