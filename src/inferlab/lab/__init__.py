"""What the cells of a lab use: setup, checks, explanations, annotated source, plots and widgets.

Names are imported on first use, so that ``import inferlab.lab`` itself is cheap.
"""

from importlib import import_module
from typing import Any

_HOME = {
    "start": "setup",
    "show_source": "source",
    "Check": "checks.check",
    "LearnerError": "checks.learner",
    "close": "checks.check",
    "reference": "checks.check",
    "results": "checks.check",
    "submit": "handin.hand_in",
    "handed_in": "handin.handed_in",
    "mislabeled": "kits.pipelines.mislabeled",
    "filmstrip": "plots.strips",
    "pictures_over_curve": "plots.strips",
    "step_slider": "plots.widgets",
    "when_written": "checks.unfinished",
    "Words": "explain.words",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"{__name__} has no {name!r}; it has {', '.join(sorted(_HOME))}")
    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
