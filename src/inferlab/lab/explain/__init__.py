"""Explanations: the `%%explain` cell, its linter, exact grading of typed lines, and the rubric engine for prose.

Nothing here imports torch; everything is deterministic, offline, and answers in milliseconds.

At home
    register(ip, facts=None, labels=None, lab_text="")   adds `%%explain NAME`; facts from the newest trace by default
    last_explanations["one-step"]                        what the learner ran last, parsed

In a check cell (the grader's process; `facts` come from the trace of the re-run, `t.facts()`)
    parse(cell_text) -> Explanation                      .get("state"), .fields(), .problems; never raises on odd text
    typed(ex, "shape", (2, 4, 16, 16)) -> Outcome        exact: shape, number, bytes, dtype ("float16")
    typed(ex, "cost", ("latency up", "unet calls up"), terms={"unet calls": "model calls"})    a quantity and its direction
    grade(ex, rubric, facts) -> {slot: Outcome}          prose, by a Rubric written in the lab's hidden test
    Outcome(verdict, points, reason, evidence)           "award" | "deny" | "review"; points is a fraction in [0, 1]

A lab hands an Outcome to `check.slot(outcome)`. A rubric is described in `rubric.py`; its own `must_award` and
`must_deny` examples are run by `selftest(rubric)`.
"""

from importlib import import_module

# A submodule that is imported takes its own name in the package: bind the functions of the same names now, so that
# `from inferlab.lab.explain import grade` is the function whatever was imported before.
from .grade import grade
from .lint import lint
from .typed import typed

_HOME = {
    "Explanation": "cell", "parse": "cell", "stub": "cell", "canonical": "cell",
    "Quantity": "quantities", "find_quantities": "quantities",
    "Outcome": "outcome", "award": "outcome", "deny": "outcome", "review": "outcome",
    "LintReport": "lint",
    "register": "magic", "explain": "magic", "last_explanations": "magic",
    "Rubric": "rubric", "Slot": "rubric", "Trend": "rubric", "Amounts": "rubric",
    "grade_slot": "grade", "terms": "subject", "selftest": "grade",
}

__all__ = list(_HOME) + ["grade", "lint", "typed"]


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value
