"""The small world that the bundled picture model draws: captions, the pictures they describe, and a checker of pictures."""

from inferlab.models.scenes.language import (
    BACKGROUNDS,
    COLORS,
    POSITIONS,
    RELATIONS,
    SHAPES,
    SIZES,
    WORDS,
    Scene,
    Thing,
    parse_caption,
)

__all__ = [
    "BACKGROUNDS",
    "COLORS",
    "POSITIONS",
    "RELATIONS",
    "SHAPES",
    "SIZES",
    "WORDS",
    "Scene",
    "SceneBatch",
    "Thing",
    "Verdict",
    "check_picture",
    "check_pictures",
    "held_out",
    "parse_caption",
    "render",
    "sample_scenes",
]

# Drawing and checking need torch; the language does not. Import them only when they are asked for.
_LAZY = {
    "SceneBatch": "draw", "sample_scenes": "draw", "render": "draw", "held_out": "draw",
    "Verdict": "check", "check_picture": "check", "check_pictures": "check",
}


def __getattr__(name: str):
    if name in _LAZY:
        import importlib

        return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
