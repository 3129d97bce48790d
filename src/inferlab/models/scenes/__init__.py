"""The small world that the bundled picture model draws: captions, pictures, and their judge."""

from .language import (
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
    "outlines",
    "parse_caption",
    "render",
    "sample_scenes",
    "shows_holes",
    "shows_meadow",
]

# Drawing and checking need torch; the language does not. Import them only when they are asked for.
_LAZY = {
    "SceneBatch": "draw", "sample_scenes": "draw", "render": "draw", "held_out": "draw",
    "outlines": "draw",
    "Verdict": "check", "check_picture": "check", "check_pictures": "check",
    "shows_holes": "styles", "shows_meadow": "styles",
}


def __getattr__(name: str) -> object:
    if name in _LAZY:
        import importlib

        return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
