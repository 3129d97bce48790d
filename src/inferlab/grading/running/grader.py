"""The grader's process: it runs a submission's cells in the learner's kernel and the tests in here.

`python -m inferlab.grading.running.grader FD` is the warmed parent, to which the host sends a message on FD
for every process that it wants. A process takes jobs from the socket that came with the message. No code of a
learner's is run here, and nothing of theirs is unpickled. A test that fails by itself gives no marks; the
instructor is told.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import io
import linecache
import math
import os
import random
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from inferlab.grading.sandbox.limits import Limits
from inferlab.grading.sandbox.warm import fork_for_every_message
from inferlab.lab.checks import learner, references
from inferlab.lab.checks.check import Check, Score
from inferlab.lab.checks.clock import Clock, Expired
from inferlab.lab.checks.learner import LearnerError, Missing, clip
from inferlab.lab.identity import normalize

from .fingerprint import package_fingerprint
from .host import recv_json, send_json
from .remote import KernelDied, RemoteKernel

Work = Callable[[dict[str, Any], RemoteKernel], dict[str, Any]]
"""Does a job with a fresh kernel; gives its result as plain JSON."""


def serve_graders(control: socket.socket, work: Work) -> None:
    """Be the warmed parent of grader's processes that do this work."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the command, which ends this process
    fork_for_every_message(control, 1, lambda: None, lambda _, __, sock: serve_jobs(sock, work))


def serve_jobs(sock: socket.socket, work: Work) -> None:
    """Do jobs one after another until the host closes the connection."""
    send_json(sock, {"pid": os.getpid()})
    while True:
        try:
            job, handles = recv_json(sock, 2)
        except EOFError:
            return
        channel, status = (socket.socket(fileno=h) for h in handles)
        kernel = RemoteKernel(channel, status, Limits(**job["limits"]))
        try:
            result = work(job, kernel)
        except Exception:  # noqa: BLE001 - reported to the instructor by the host
            result = {"failed": traceback.format_exc()}
        finally:
            kernel.close()
        send_json(sock, result)


# -- one submission --------------------------------------------------------------------------------
def grade(job: dict[str, Any], kernel: RemoteKernel) -> dict[str, Any]:
    """Run one submission, cell by cell as its notebook has them.

    Args:
        job: what `make_job` made.

    Returns:
        Plain JSON. `cells`: a cell's index as text -> the `status` and `outputs` that `run_cell` returned;
        the parameters that grading sets have no index and are under "None". `checks`: grade_id -> what
        `run_test` returned. `died`: why the kernel ended early, or "". `told`: sentences for the instructor.
        `seconds`: how long all of it took, and of that `ready_seconds` (until the kernel was there),
        `learner_seconds` and `test_seconds`.
    """
    limits, began = Limits(**job["limits"]), time.monotonic()
    result: dict[str, Any] = {"cells": {}, "checks": {}, "died": "", "seconds": 0.0, "ready_seconds": 0.0,
                              "learner_seconds": 0.0, "test_seconds": 0.0}
    references.keep_in(Path(job["references"]) if job["references"] else None, job["lab"]
                       + package_fingerprint())
    kernel.started()
    provider = RemoteProvider(kernel, job)
    with learner.installed(provider):
        ready = time.monotonic()
        for cell in job["cells"]:
            start = time.monotonic()
            if cell["kind"] == "run":
                ran = result["cells"][str(cell["index"])] = run_cell(kernel, cell)
                if ran["status"] == "stopped":
                    provider.told.append(f"stopped after {limits.cell_seconds:g} s while {cell['doing']}: "
                                         f"{first_line(cell['source'])}")
                result["learner_seconds"] += time.monotonic() - start
            else:
                result["checks"][cell["grade_id"]] = run_test(
                    cell["source"], cell["grade_id"], cell["points"], limits.check_seconds)
                result["test_seconds"] += time.monotonic() - start
    result["died"], result["told"] = kernel.dead, provider.told
    result["ready_seconds"] = ready - began
    result["seconds"] = round(time.monotonic() - began, 3)
    return result


def first_line(source: str) -> str:
    """The first line of a cell that is not blank, cut short. It tells a reader which cell is meant."""
    return clip(next((line.strip() for line in source.splitlines() if line.strip()), ""), 60)


def run_cell(kernel: RemoteKernel, cell: dict[str, Any]) -> dict[str, Any]:
    """Run one of the learner's cells; returns `status` and harmless `outputs`, even if the kernel died."""
    if kernel.dead:
        return {"status": "skipped", "outputs": []}
    try:
        status, outputs = kernel.run(cell["source"], cell["doing"])
    except KernelDied as death:
        return {"status": "died", "outputs": [
            {"output_type": "error", "ename": "KernelDied", "evalue": str(death), "traceback": [str(death)]}]}
    except LearnerError as error:
        return {"status": "error", "outputs": [
            {"output_type": "error", "ename": error.name, "evalue": error.message,
             "traceback": [str(error)]}]}
    return {"status": status, "outputs": outputs}


class RemoteProvider:
    """What a `Check` asks while it grades: names of the learner's kernel, and the texts of explanations."""

    def __init__(self, kernel: RemoteKernel, job: dict[str, Any]) -> None:
        self.kernel, self.job = kernel, job
        self.told: list[str] = []

    def get(self, name: str) -> Any:
        """The value, in the learner's kernel, of a name that an exercise provides."""
        if name not in self.job["provides"]:
            raise RuntimeError(f"no exercise of this lab provides `{name}`")
        return self.kernel.get(name)

    def explanation(self, name: str) -> str:
        """The text of an explanation. Raises `Missing` where it is not written."""
        text = self.job["explanations"].get(name, "")
        if not text.strip():
            raise Missing(f"the explanation `{name}` is not written yet")
        return text

    def identity(self) -> tuple[str, str]:
        """Whose variant of the lab is graded, and the lab's name.

        It is the `LEARNER` in the notebook's text, or where the text has none, its value in the run.
        """
        return self._learner, self.job["lab"]

    @functools.cached_property
    def _learner(self) -> str:
        said = self.job["learner"]
        try:
            value = self.kernel.get("LEARNER")
        except LearnerError:  # the kernel has none, or its value cannot be handed over
            return said
        ran = str(value).strip()[:200] if isinstance(value, str | int) else ""
        if said and ran and normalize(said) != normalize(ran):
            self.told.append(f"LEARNER is '{clip(said, 60)}' in the text and was '{clip(ran, 60)}' in the "
                             f"run: graded as {clip(said, 60)}'s")
        return said or ran


# -- one test cell ---------------------------------------------------------------------------------
def run_test(source: str, grade_id: str, points: float, seconds: float) -> dict[str, Any]:
    """Run a trusted test cell in a fresh namespace.

    Returns a dict of plain JSON: `score` (float in [0, points], or None if the test itself is at fault),
    `points`, `parts`, `html`, `text`, `printed`, `flags` (for the instructor), `review` (a person must look),
    `error`.
    """
    result: dict[str, Any] = {"score": None, "points": points, "parts": [], "html": "", "text": "",
                              "printed": "",
                              "flags": [], "review": False, "error": ""}
    printed = io.StringIO()
    _seed()
    try:
        with (contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()),
              Clock().limit(seconds)):
            value = _execute(source, grade_id)
    except LearnerError as error:  # the learner's code failed, and the test had not opened a part
        _stopped(result, grade_id, points, str(error))
    except Expired:
        result.update(error=f"the test did not end within {seconds:g} seconds", review=True)
    except BaseException:  # noqa: BLE001 - a fault of the test is reported to the instructor
        result.update(error=clip(traceback.format_exc(), 8000), review=True)
    else:
        _take(result, value, points)
    result["printed"] = clip(printed.getvalue(), 4000)
    if result["error"]:
        result["flags"].append(f"{grade_id}: the test itself failed: "
                               f"{result['error'].strip().splitlines()[-1]}")
    return result


def _execute(source: str, grade_id: str) -> Any:
    name = f"<check {grade_id}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    tree = ast.parse(source, name)
    namespace = {"__name__": "__main__"}
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr):
        last = None
    else:
        tree.body.pop()
    # The instructor's own text, from the trusted source.
    exec(compile(tree, name, "exec"), namespace)  # noqa: S102
    return eval(compile(ast.Expression(last.value), name, "eval"), namespace) if last is not None else None


def _take(result: dict[str, Any], value: Any, points: float) -> None:
    if not isinstance(value, Score):
        result.update(error=f"the last line must be check.score(), it gave {type(value).__name__}",
                      review=True)
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
                       "message": p.message, "mistake": p.mistake, "evidence": p.evidence}
                      for p in check.parts])


def _stopped(result: dict[str, Any], grade_id: str, points: float, message: str) -> None:
    """Give no points, and say why: the learner's code failed before the test had opened a part."""
    check = Check(grade_id.removeprefix("check-"), points)
    with check.part("the exercise"):
        check.fail(message)
    _take(result, check.score(), points)


def _seed() -> None:
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)


if __name__ == "__main__":
    serve_graders(socket.socket(fileno=int(sys.argv[1])), grade)
