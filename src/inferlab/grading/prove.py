"""Proves a lab's grades: the solution gets full marks, each blank gets none, each named wrong answer keeps what it says.

The lab runs once. Just before an exercise's cell the learner's kernel is forked, and in the copy a wrong answer takes the
cell's place: it is as if the learner had written that, at the price of the cells up to the exercise's last check.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from nbformat import NotebookNode

from ..lab import learner
from .host import Host
from .limits import Limits
from .plan import make_job
from .remote import KernelDied, RemoteKernel
from .sourcebook import released_view
from .stubs import EXPLAIN_LINE
from .testcell import run_test
from .worker import RemoteProvider, run_cell

BLANK = "the released cell, not filled in"


def prove_lab(source: NotebookNode, wrong_answers: Iterable[Any], host: Host | None = None,
              limits: Limits | None = None) -> dict[str, Any]:
    """Grade a lab's own solution, the blank and every wrong answer in one run.

    Args:
        source: the instructor's notebook, with solutions and hidden tests.
        wrong_answers: objects with `exercise`, `name` and `source` (a whole replacement cell), as
            `labtext.read_wrong_answers` gives them.
        host: runs the job; a sandboxed one for this call if None.
        limits: of the run as a whole; twice the memory and 15 minutes if None.

    Returns:
        `maximum`, `solution`, `blank`: points by check's name; `lost`: by check's name, `[name, message]` of each part that the
        solution does not pass; `wrong`: a list of `exercise`, `name`, `points` (by check's
        name, of that exercise's checks) and `messages`; `errors`: what went wrong in the lab's own cells or tests;
        `seconds`.

    Raises:
        host.GradingFailed, sandbox.NoSandbox: if it could not be run.
        ValueError: if a wrong answer names no exercise.
    """
    limits = limits or replace(Limits(), memory_mb=2 * Limits.memory_mb, total_seconds=900.0, processes=256)
    job = make_job(source, source, limits)
    names = {index: cell.metadata.get("inferlab", {}) for index, cell in enumerate(source.cells)}
    replacements: dict[str, list[tuple[str, str]]] = {}
    for cell in released_view(source).cells:
        about = cell.metadata.get("inferlab", {})
        if "exercise" in about or "explain" in about:
            replacements[about.get("exercise") or about["explain"]] = [(BLANK, cell.source)]
    for wrong in wrong_answers:
        if wrong.exercise not in replacements:
            raise ValueError(f"the wrong answer {wrong.name!r} is for {wrong.exercise!r}, which is no exercise of this lab")
        replacements[wrong.exercise].append((wrong.name, wrong.source))
    for entry in job["cells"]:
        about = names.get(entry["index"], {})
        entry["answer"] = (about.get("exercise") or about.get("explain") or "") if entry["kind"] == "run" else ""
        entry["of"], entry["name"] = about.get("of", ""), about.get("check", "")
    # solutions of explanations are read from the text, so every one is there even if it equals its stub
    job |= {"kind": "prove", "replacements": replacements}
    if host is None:
        with Host() as own:
            return own.run(job)
    return host.run(job)


def prove(job: dict[str, Any], kernel: RemoteKernel) -> dict[str, Any]:
    """The grader process's side of `prove_lab`."""
    began = time.monotonic()
    result: dict[str, Any] = {"maximum": {}, "solution": {}, "lost": {}, "blank": {}, "wrong": [], "errors": []}
    kernel.started()
    provider = RemoteProvider(kernel, job)
    cells = job["cells"]
    for place, cell in enumerate(cells):
        if cell["kind"] == "check":
            outcome = _test(cell, provider, job)
            result["maximum"][cell["name"]] = cell["points"]
            result["solution"][cell["name"]] = outcome["score"]
            result["lost"][cell["name"]] = [[p["name"], p["message"]] for p in outcome["parts"] if p["fraction"] < 1]
            result["errors"] += outcome["flags"]
            continue
        if cell["answer"]:
            for name, text in job["replacements"][cell["answer"]]:
                tried = _try(cells, place, text, kernel, job)
                if name == BLANK:
                    result["blank"] |= tried["points"]
                else:
                    result["wrong"].append({"exercise": cell["answer"], "name": name, **tried})
        told = run_cell(kernel, cell)
        if told["status"] != "ok":
            errors = [f"{o['ename']}: {o['evalue']}" for o in told["outputs"] if o["output_type"] == "error"]
            result["errors"].append(f"{cell['doing']}: {'; '.join(errors) or told['status']}")
    return result | {"seconds": round(time.monotonic() - began, 3)}


def _test(cell: dict[str, Any], provider: RemoteProvider, job: dict[str, Any]) -> dict[str, Any]:
    with learner.installed(provider):
        return run_test(cell["source"], cell["grade_id"], cell["points"], job["limits"]["check_seconds"])


def _try(cells: list[dict], place: int, text: str, kernel: RemoteKernel, job: dict[str, Any]) -> dict[str, Any]:
    """Run the lab from `place` on with `text` in that cell, up to the last check of its exercise, in a copy."""
    answer = cells[place]["answer"]
    explanations = dict(job["explanations"])
    if answer in explanations or EXPLAIN_LINE.match(text.lstrip()):
        first, _, body = text.lstrip().partition("\n")
        explanations[answer] = body if EXPLAIN_LINE.match(first) else text
        if text == job["replacements"][answer][0][1]:
            explanations.pop(answer)
    mine = [i for i, cell in enumerate(cells) if cell["of"] == answer and cell["kind"] == "check"]
    points, messages = {}, []
    if not mine:
        return {"points": points, "messages": messages}
    copy = kernel.fork()
    try:
        provider = RemoteProvider(copy, job | {"explanations": explanations})
        run_cell(copy, cells[place] | {"source": text})
        for index in range(place + 1, mine[-1] + 1):
            if cells[index]["kind"] == "run":
                run_cell(copy, cells[index])
            elif index in mine:
                outcome = _test(cells[index], provider, job)
                points[cells[index]["name"]] = outcome["score"]
                messages += [p["message"] for p in outcome["parts"] if p["message"]] + outcome["flags"]
    except KernelDied as death:
        messages.append(str(death))
    finally:
        copy.close()
    return {"points": points, "messages": messages}
