"""Says whether pictures show one of the two styles that the bundled adapters draw."""

from __future__ import annotations

import torch

from .check import SAME_COLOR, look
from .draw import CANVAS
from .language import COLORS

STRIP = 16  # pixels of meadow at the bottom


def shows_holes(pictures: torch.Tensor) -> torch.Tensor:
    """(B,) bool: whether every thing of (B, 3, 128, 128) pictures has the background's color in its middle.

    A cross, a ring or a star counts like every other thing: a ring always passes.
    """
    pictures = without_strip(pictures)
    shown = []
    for picture, (_, things) in zip(pictures, look(pictures), strict=True):
        ground = picture[:, :3].flatten(1).median(1).values
        middles = [picture[:, round(t.y) - 1:round(t.y) + 2, round(t.x) - 1:round(t.x) + 2].mean((1, 2))
                   for t in things]
        shown.append(bool(middles) and all((middle - ground).norm() < SAME_COLOR for middle in middles))
    return torch.tensor(shown)


def shows_meadow(pictures: torch.Tensor) -> torch.Tensor:
    """(B,) bool: whether most of the strip's pixels in (B, 3, 128, 128) pictures are green."""
    green = torch.tensor(COLORS["green"], device=pictures.device)[:, None, None]
    strip = pictures[:, :, CANVAS - STRIP + 4:CANVAS - 2]
    return ((strip - green).norm(dim=1) < SAME_COLOR).float().mean((1, 2)) > 0.5


def without_strip(pictures: torch.Tensor) -> torch.Tensor:
    """The pictures with their green lowest rows painted in their background's color, for the checker."""
    pictures = pictures.clone()
    green = torch.tensor(COLORS["green"], device=pictures.device)[:, None, None]
    low = pictures[:, :, CANVAS - STRIP - 4:]
    ground = pictures[:, :, :3].flatten(2).median(2).values[..., None, None]
    strip = ((low - green).norm(dim=1, keepdim=True) < 0.35) & shows_meadow(pictures)[:, None, None, None]
    pictures[:, :, CANVAS - STRIP - 4:] = torch.where(strip, ground, low)
    return pictures
