"""Proves a lab's grades: the solution gets full marks, a blank none, each wrong answer what it says.

The lab runs once. Just before an exercise's cell the learner's kernel is forked, and in the copy a wrong
answer takes the cell's place: it is as if the learner had written that, at the price of the cells up to the
exercise's last check.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from nbformat import NotebookNode

from inferlab.grading.running.host import Host
from inferlab.grading.running.prove_job import BLANK
from inferlab.grading.sandbox.limits import Limits
from inferlab.grading.stubs import released_view
from inferlab.grading.submission.submission import make_job

from .wrong_answers import WrongAnswer


def prove_lab(source: NotebookNode, wrong_answers: Iterable[WrongAnswer]) -> dict[str, Any]:
    """Grade a lab's own solution, the blank and every wrong answer in one run, with twice the memory.

    Args:
        source: the instructor's notebook, with solutions and hidden tests.
        wrong_answers: as `wrong_answers.read_wrong_answers` gives them.

    Returns:
        `maximum`, `solution`, `blank`: points by check's name; `lost`: by check's name, `[name, message]` of
        each part that the solution does not pass; `wrong`: a list of `exercise`, `name`, `points` (by check's
        name, of that exercise's checks) and `messages`; `errors`: what went wrong in the lab's own cells or
        tests; `seconds`.

    Raises:
        host.GradingFailed, sandbox.NoSandbox: if it could not be run.
        ValueError: if a wrong answer names no exercise.
    """
    limits = replace(Limits(), memory_mb=2 * Limits.memory_mb, total_seconds=900.0, processes=256)
    job = make_job(source, source, limits)
    names = {index: cell.metadata.get("inferlab", {}) for index, cell in enumerate(source.cells)}
    replacements: dict[str, list[tuple[str, str]]] = {}
    for cell in released_view(source)["cells"]:
        about = cell["metadata"].get("inferlab", {})
        if "exercise" in about or "explain" in about:
            replacements[about.get("exercise") or about["explain"]] = [(BLANK, cell["source"])]
    for wrong in wrong_answers:
        if wrong.exercise not in replacements:
            raise ValueError(f"the wrong answer {wrong.name!r} is for {wrong.exercise!r}, "
                             "which is no exercise of this lab")
        replacements[wrong.exercise].append((wrong.name, wrong.source))
    for entry in job["cells"]:
        about = names.get(entry["index"], {})
        entry["answer"] = (about.get("exercise") or about.get("explain")
                           or "") if entry["kind"] == "run" else ""
        entry["of"], entry["name"] = about.get("of", ""), about.get("check", "")
    # solutions of explanations are read from the text, so every one is there even if it equals its stub
    with Host(grader="inferlab.grading.running.prove_job") as host:
        return host.run(job | {"replacements": replacements})
