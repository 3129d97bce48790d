"""The small world that the bundled video model films: captions of moving shapes, clips, and their judge."""

from typing import Any

from inferlab.models.clips.language import MOTIONS, WORDS, Mover, MovingScene, parse_clip_caption

__all__ = [
    "MOTIONS",
    "WORDS",
    "ClipBatch",
    "ClipVerdict",
    "Mover",
    "MovingScene",
    "check_clip",
    "check_clips",
    "held_out_clips",
    "parse_clip_caption",
    "render_clips",
    "sample_clips",
]

# Drawing and judging need torch; the language does not. Import them only when they are asked for.
_LAZY = {
    "ClipBatch": "draw",
    "sample_clips": "draw",
    "render_clips": "draw",
    "held_out_clips": "draw",
    "ClipVerdict": "check",
    "check_clip": "check",
    "check_clips": "check",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        import importlib

        return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
