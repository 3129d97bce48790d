"""Judges a clip against its caption: finds the shapes in three of its frames and compares what was said.

The first, the middle and the last frame are looked at. ``inferlab.models.scenes.check`` reads a frame, and it
learned nothing. The way a shape moved is the way from its place in the first frame to its place in the last.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Any

import torch

from inferlab.models.clips.language import MOTIONS, MovingScene, parse_clip_caption
from inferlab.models.scenes.check import NOTHING, Judged, Seen, look

STILL = 12.0  # pixels of the canvas; what gets less far stays still


@dataclass(frozen=True)
class ClipVerdict(Judged):
    """What a clip shows in its first, middle and last frame: the background's name and the shapes."""

    frames: tuple[tuple[str | None, tuple[Seen, ...]], ...]

    def __str__(self) -> str:
        def told(frame: tuple[str | None, tuple[Seen, ...]]) -> str:
            seen = ", ".join(f"{t.color} {t.shape} at ({t.x:.0f}, {t.y:.0f})" for t in frame[1])
            return f"{seen or 'nothing'} on {frame[0]}"

        return f"{self.state()}: {'; then '.join(told(frame) for frame in self.frames)}"


def check_clip(clip: Any, caption: str | MovingScene) -> ClipVerdict:
    """Judges one clip: PIL images, or a tensor or array (T, 3, H, W) or (T, H, W, 3) in [0, 1] or uint8.

    Raises ValueError for a caption outside the language or a clip of another layout.
    """
    if isinstance(clip, (list, tuple)):
        import numpy as np

        clip = np.stack(
            [np.asarray(frame.convert("RGB") if hasattr(frame, "convert") else frame) for frame in clip]
        )
    clip = torch.as_tensor(clip)
    if clip.ndim == 4 and clip.shape[1] != 3 and clip.shape[-1] == 3:
        clip = clip.permute(0, 3, 1, 2)
    return check_clips((clip.float() / 255 if clip.dtype == torch.uint8 else clip)[None], [caption])[0]


def check_clips(clips: torch.Tensor, captions: list[str | MovingScene]) -> list[ClipVerdict]:
    """Judges (B, T, 3, H, W) float clips in [0, 1], on any device, against B captions, each on its own.

    Raises ValueError for clips of another layout, of fewer than 3 frames, or captions outside the language.
    """
    if clips.ndim != 5 or clips.shape[2] != 3 or clips.shape[1] < 3 or len(clips) != len(captions):
        raise ValueError(
            f"expected {len(captions)} clips as (B, T, 3, H, W) of 3 frames or more, not {tuple(clips.shape)}"
        )
    scenes = [parse_clip_caption(c) if isinstance(c, str) else c for c in captions]
    last = clips.shape[1] - 1
    seen = [look(clips[:, frame]) for frame in (0, last // 2, last)]
    return [_compare(scene, frames) for scene, frames in zip(scenes, zip(*seen, strict=True), strict=True)]


def _compare(scene: MovingScene, frames: tuple[tuple[str | None, tuple[Seen, ...]], ...]) -> ClipVerdict:
    n = len(scene.movers)
    tracks = [_assign(scene, things) for _, things in frames]  # by frame, then by mover
    pairs = list(zip(scene.movers, zip(*tracks, strict=True), strict=True))
    result = {
        "count": all(len(things) == n for _, things in frames),
        "shape": all(spot.shape == mover.shape for mover, track in pairs for spot in track),
        "color": all(spot.color == mover.color for mover, track in pairs for spot in track),
        "motion": all(NOTHING not in track and _motion(track) == mover.motion for mover, track in pairs),
    }
    if scene.background:
        result["background"] = all(ground == scene.background for ground, _ in frames)
    return ClipVerdict(result, tuple(frames))


def _assign(scene: MovingScene, things: tuple[Seen, ...]) -> tuple[Seen, ...]:
    """For each mover, what it is taken to be in this frame: the choice with most colors and shapes right.

    Only the largest few things come into question, so that a frame of specks does not take forever.
    """
    n = len(scene.movers)
    largest = sorted(things, key=lambda thing: -thing.radius)[:4]
    largest += [NOTHING] * (n - len(largest))

    def score(choice: tuple[Seen, ...]) -> int:
        pairs = zip(scene.movers, choice, strict=True)
        return sum((thing.color == mover.color) + (thing.shape == mover.shape) for mover, thing in pairs)

    return max(permutations(largest, n), key=score)


def _motion(track: tuple[Seen, ...]) -> str:
    dx, dy = track[-1].x - track[0].x, track[-1].y - track[0].y
    if max(abs(dx), abs(dy)) < STILL:
        return MOTIONS[4]
    if abs(dx) > abs(dy):
        return MOTIONS[0] if dx < 0 else MOTIONS[1]
    return MOTIONS[2] if dy < 0 else MOTIONS[3]
