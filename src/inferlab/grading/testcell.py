"""Runs one test cell in the grader's process and says what it came to; a faulty test is a report, never marks."""

from __future__ import annotations

import ast
import contextlib
import io
import linecache
import math
import random
import traceback
from typing import Any

import numpy as np
import torch

from ..lab.check import Check, Score
from ..lab.clock import Clock, Expired
from ..lab.learner import LearnerError, clip


def run_test(source: str, grade_id: str, points: float, seconds: float) -> dict[str, Any]:
    """Run a trusted test cell in a fresh namespace.

    Returns a dict of plain JSON: `score` (float in [0, points], or None if the test itself is at fault), `points`,
    `parts`, `html`, `text`, `printed`, `flags` (for the instructor), `review` (a person must look), `error`.
    """
    result: dict[str, Any] = {"score": None, "points": points, "parts": [], "html": "", "text": "", "printed": "",
                              "flags": [], "review": False, "error": ""}
    printed = io.StringIO()
    _seed()
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()), Clock().limit(seconds):
            value = _execute(source, grade_id)
    except LearnerError as error:  # asked outside of a part
        _stopped(result, grade_id, points, str(error))
    except Expired:
        result.update(error=f"the test did not end within {seconds:g} seconds", review=True)
    except BaseException:  # noqa: BLE001 - a fault of the test is reported to the instructor
        result.update(error=clip(traceback.format_exc(), 8000), review=True)
    else:
        _take(result, value, points)
    result["printed"] = clip(printed.getvalue(), 4000)
    if result["error"]:
        result["flags"].append(f"{grade_id}: the test itself failed: {result['error'].strip().splitlines()[-1]}")
    return result


def _execute(source: str, grade_id: str) -> Any:
    name = f"<check {grade_id}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    tree = ast.parse(source, name)
    namespace = {"__name__": "__main__"}
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), namespace)  # noqa: S102 - the instructor's own text, from the trusted source
    return eval(compile(ast.Expression(last.value), name, "eval"), namespace) if last is not None else None


def _take(result: dict[str, Any], value: Any, points: float) -> None:
    if not isinstance(value, Score):
        result.update(error=f"the last line must be check.score(), it gave {type(value).__name__}", review=True)
        return
    check = value.check
    if check.points != points:
        result.update(error=f"the check says points={check.points:g}, the cell {points:g}", review=True)
        return
    number = float(value)
    if not (math.isfinite(number) and 0.0 <= number <= points):
        result.update(error=f"a score of {number} is not within 0 and {points:g}", review=True)
        return
    result.update(score=number, html=value._repr_html_(), text=value.report(), review=check.needs_review,
                  flags=list(check.flags), parts=[
                      {"name": p.name, "weight": p.weight, "fraction": p.fraction, "state": p.state,
                       "message": p.message, "mistake": p.mistake, "evidence": p.evidence} for p in check.parts])


def _stopped(result: dict[str, Any], grade_id: str, points: float, message: str) -> None:
    """The learner's code failed outside of any part: nothing earned, and the reason said."""
    check = Check(grade_id.removeprefix("check-"), points)
    with check.part("the exercise"):
        check.fail(message)
    _take(result, check.score(), points)


def _seed() -> None:
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
