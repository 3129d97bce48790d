"""Proves a lab's grades, in the grader's process: runs the lab's own answers, and every named wrong answer.

The lab's own answers are run once. Just before the cell of an exercise the kernel is copied for each wrong
answer, and in the copy the wrong answer is run in place of the cell.

`python -m inferlab.grading.running.prove_job FD` is a warmed parent like that of `grader`.
"""

from __future__ import annotations

import socket
import sys
import time
from typing import Any

from inferlab.grading.stubs import EXPLAIN_LINE
from inferlab.lab.checks import learner

from .grader import RemoteProvider, run_cell, run_test, serve_graders
from .remote import KernelDied, RemoteKernel

BLANK = "the released cell, not filled in"


def prove(job: dict[str, Any], kernel: RemoteKernel) -> dict[str, Any]:
    """Run the job of `prove_lab`; its result is described there."""
    began = time.monotonic()
    result: dict[str, Any] = {"maximum": {}, "solution": {}, "lost": {}, "blank": {}, "wrong": [],
                              "errors": []}
    kernel.started()
    provider = RemoteProvider(kernel, job)
    cells = job["cells"]
    for place, cell in enumerate(cells):
        if cell["kind"] == "check":
            outcome = _test(cell, provider, job)
            result["maximum"][cell["name"]] = cell["points"]
            result["solution"][cell["name"]] = outcome["score"]
            result["lost"][cell["name"]] = [[p["name"], p["message"]] for p in outcome["parts"]
                                            if p["fraction"] < 1]
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


def _try(cells: list[dict], place: int, text: str, kernel: RemoteKernel,
         job: dict[str, Any]) -> dict[str, Any]:
    """In a copy, run the lab from `place` on with `text` in that cell, up to its exercise's last check."""
    answer = cells[place]["answer"]
    explanations = dict(job["explanations"])
    if answer in explanations or EXPLAIN_LINE.match(text.lstrip()):
        first, _, body = text.lstrip().partition("\n")
        explanations[answer] = body if EXPLAIN_LINE.match(first) else text
        if text == job["replacements"][answer][0][1]:
            explanations.pop(answer)
    mine = [i for i, cell in enumerate(cells) if cell["of"] == answer and cell["kind"] == "check"]
    points: dict[str, float | None] = {}
    messages: list[str] = []
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


if __name__ == "__main__":
    serve_graders(socket.socket(fileno=int(sys.argv[1])), prove)
