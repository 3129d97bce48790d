"""What the cells of a lab use: setup, checks, explanations, annotated source, plots and widgets.

Names are imported on first use, so that ``import inferlab.lab`` itself is cheap.
"""

from importlib import import_module

_HOME = {
    "start": "setup",
    "show_source": "source",
    "Check": "check",
    "LearnerError": "learner",
    "close": "check",
    "reference": "check",
    "results": "check",
    "submit": "handin",
    "mislabeled": "faults",
    "filmstrip": "plots",
    "pictures_over_curve": "plots",
    "step_slider": "widgets",
    "when_written": "unfinished",
}

__all__ = list(_HOME)


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(sorted(_HOME))}")
    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
