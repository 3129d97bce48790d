"""Gives a lab its model: bundled, at full size with random weights, or from the Hugging Face hub."""

__all__ = ["cache_argument", "load_language_model", "load_pipeline"]

# diffusers and transformers take seconds to import: only when a model is asked for.
_LAZY = {"load_pipeline": "pictures", "load_language_model": "language", "cache_argument": "language",
         "preload": "pictures"}


def __getattr__(name: str) -> object:
    if name in _LAZY:
        import importlib

        return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
