"""The `%%explain NAME` cell magic: keeps the text for checks at home and shows the linter's view: the form, the numbers and
whether they stand in the trace, and how the sentences are read (`scheduler \u00b7 changes \u00b7 latents`), with a hint where nothing was."""

from collections.abc import Callable, Mapping

from .cell import Explanation, parse
from .lint import LintReport, lint

last_explanations: dict[str, Explanation] = {}
"""Explanation name -> the text of its last run, for checks at home. Grading reads the notebook instead."""


def explain(line: str, body: str, facts: Mapping[str, object] | None = None, labels: tuple[str, ...] | None = None,
            lab_text: str = "") -> LintReport:
    """Read one cell, remember it under its name, and return the linter's view of it."""
    name = line.strip().split()[0] if line.strip() else "explanation"
    explanation = parse(body or "", name=name)
    last_explanations[name] = explanation
    return lint(explanation, facts, labels, lab_text)


def find_trace(namespace: Mapping[str, object]) -> object | None:
    """The newest trace among a notebook's variables: the last defined one that has `facts()`, None if none."""
    for name in reversed(list(namespace)):
        value = namespace[name]
        module = type(value).__module__ or ""
        if not name.startswith("_") and module.startswith("inferlab.trace") and callable(getattr(value, "facts", None)):
            return value
    return None


def register(ip, facts: Callable[[], Mapping[str, object] | None] | None = None,
             labels: Mapping[str, tuple[str, ...]] | None = None, lab_text: str = "") -> None:
    """Add `%%explain` to an IPython shell.

    `facts` gives the facts of the learner's trace when a cell runs; by default the newest trace in the
    notebook is asked. `labels` names the fields that each explanation wants. `lab_text` is public lab prose.
    """
    from IPython.display import display

    from ..learner import remember_explanation  # imported here: reading explanations needs no torch

    def cell(line: str, body: str | None = None) -> None:
        name = line.strip().split()[0] if line.strip() else "explanation"
        remember_explanation(name, body or "")
        source = facts() if facts else find_trace(ip.user_ns)
        display(explain(line, body or "", source, (labels or {}).get(name), lab_text))

    ip.register_magic_function(cell, "cell", "explain")
