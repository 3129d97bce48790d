"""Reports on a graded lab: for each question its distribution and the commonest named mistakes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import nbformat

from .batch import _plan, submissions
from .course import Course
from .limits import Limits
from .reading import UnreadableError
from .results import Results


def question_summary(course: Course, lab: str, mode: str = "sandbox", limits: Limits | None = None) -> list[dict[str, Any]]:
    """For each question, from the kept results of what is in `submitted/` now.

    Returns dicts of `question`, `points` (the maximum), `graded` (submissions), `mean`, `full`, `zero`, `histogram` (points ->
    submissions), `mistakes` and `messages` (the five commonest, as `[text, submissions]`).
    """
    source = nbformat.read(course.source(lab), as_version=4)
    results = Results(course.root / ".grading", mode)
    names = {c.metadata.nbgrader.grade_id: c.metadata.inferlab.check
             for c in source.cells if "check" in c.metadata.get("inferlab", {})}
    checks: dict[str, list[dict[str, Any]]] = {grade_id: [] for grade_id in names}
    for student, path in submissions(course, lab).items():
        result = _kept(student, path, source, limits, mode, results)
        for grade_id, check in (result or {"checks": {}})["checks"].items():
            checks[grade_id].append(check)
    return [_question(names[grade_id], found) for grade_id, found in checks.items()]


def _kept(student: str, path: Path, source: Any, limits: Limits | None, mode: str, results: Results) -> dict | None:
    try:
        return results.get(_plan(student, path, source, limits, mode).job)
    except UnreadableError:
        return None


def _question(name: str, checks: list[dict[str, Any]]) -> dict[str, Any]:
    scores = [check["score"] or 0.0 for check in checks]
    most = checks[0]["points"] if checks else None
    mistakes, messages = Counter(), Counter()
    for check in checks:
        mistakes.update({part["message"] for part in check["parts"] if part["mistake"]})
        messages.update({part["message"] for part in check["parts"] if part["message"] and not part["mistake"]})
    return {
        "question": name, "points": most, "graded": len(checks),
        "mean": round(sum(scores) / len(scores), 3) if scores else None,
        "full": sum(score == most for score in scores), "zero": sum(score == 0 for score in scores),
        "histogram": {f"{score:g}": count for score, count in sorted(Counter(scores).items())},
        "mistakes": [list(pair) for pair in mistakes.most_common(5)],
        "messages": [list(pair) for pair in messages.most_common(5)],
    }
