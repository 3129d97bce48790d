"""Styles in which the scenes of the caption language can be drawn, for adapters to learn.

Both stay within what the bundled autoencoder can give back: flat colors, and edges that it has seen.
"""

from __future__ import annotations

import dataclasses

import torch

from inferlab.models.scenes import COLORS, SceneBatch, render, shows_holes, shows_meadow
from inferlab.models.scenes.draw import CANVAS, thing_masks
from inferlab.models.scenes.styles import STRIP

HOLE = 0.45  # radius of a hole, as a share of its thing's


def punched(batch: SceneBatch) -> torch.Tensor:
    """Every thing has a round hole in its middle, through which the background is seen: (B, 3, 128, 128)."""
    picture = render(batch)
    circle = torch.zeros_like(batch.shape)
    holes = thing_masks(dataclasses.replace(batch, shape=circle, radius=batch.radius * HOLE))
    ground = batch.shade[:, 0, :, None, None]
    for index in range(2):
        hole = holes[:, index, None]
        picture = picture * (1 - hole) + ground * hole
    return picture


def meadow(batch: SceneBatch) -> torch.Tensor:
    """Every picture stands on a strip of green, behind its things: (B, 3, 128, 128)."""
    picture = render(batch)
    strip = torch.zeros(CANVAS, CANVAS, device=picture.device)
    strip[CANVAS - STRIP:] = 1
    free = strip * (1 - thing_masks(batch).amax(1, keepdim=True))
    green = torch.tensor(COLORS["green"], device=picture.device)[:, None, None]
    return picture * (1 - free) + green * free


STYLES = {"punched": punched, "meadow": meadow}


JUDGES = {"punched": shows_holes, "meadow": shows_meadow}
