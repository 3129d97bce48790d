"""Executes labs' solutions on a GPU: `python -m ci.gpu.notebooks [LAB ...] --model bundled --device cuda
--out FILE`.

The same runner and the same demands as ci/notebooks.py: no error, every cell run, nothing on stderr, full
marks. What that one proves beside it (blanks and wrong answers, in the grader's sandbox) needs no GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import nbformat

from ci.execute import run_source
from inferlab.grading.course import Course

from .measure import ROOT, environment

#: Labs where size is the lesson: with MODEL = "full", too.
SIZE_LABS = ("lab07", "lab10", "lab11", "lab12", "lab13", "lab14", "lab17", "lab18", "lab20", "lab21")

NEEDS_ALL_CARDS = ("lab18",)


def labs() -> list[str]:
    """Every lab, in order."""
    return Course.open(ROOT).labs


def instructor_notebook(lab: str) -> nbformat.NotebookNode:
    """A lab's notebook in `source/`; built where it is missing, as where only tracked files were brought.

    Raises `RuntimeError` where it can neither be read nor built: building needs jupytext.
    """
    course = Course.open(ROOT)
    path = course.source(course.require(lab))
    if not path.exists():
        try:
            from inferlab.grading.authoring.build import built_source
        except ModuleNotFoundError as error:
            raise RuntimeError(f"source/{lab}/{path.name} is not here, and building it needs {error.name}: "
                               "install that, or bring source/ along, which git does not track (inferlab "
                               "build --source makes it)") from error
        built_source(course, lab)
    return nbformat.read(path, as_version=4)


def run_lab(lab: str, model: str, device: str) -> dict[str, Any]:
    """One lab's solution with MODEL and DEVICE set, as JSON data."""
    run = run_source(instructor_notebook(lab), {"MODEL": model, "DEVICE": device})
    told = run.as_dict()
    # without this machine's folders
    told["problems"] = [re.sub(r"/(?:[\w.+-]+/)+", "", problem)[:600] for problem in told["problems"]]
    if not told["problems"]:
        del told["checks"]  # all full
    return {"lab": lab, "model": model, "device": device, **told}


def start(jobs: list[tuple[str, str]], device: str, folder: Path,
          cards: tuple[str, ...] = ()) -> list[tuple[str, str, Path, subprocess.Popen]]:
    """One process a job (lab, model), all at once, each writing its result to a file of its own in `folder`.

    Each sees one of `cards`, in turn for each model so that large ones are spread; the labs in
    NEEDS_ALL_CARDS see all.
    """
    folder.mkdir(parents=True, exist_ok=True)
    begun = []
    turn: dict[str, int] = {}
    for lab, model in jobs:
        out = folder / f"{lab}-{model}.json"
        own = {}
        if cards and not lab.startswith(NEEDS_ALL_CARDS):
            own = {"CUDA_VISIBLE_DEVICES": cards[turn.setdefault(model, 0) % len(cards)]}
            turn[model] += 1
        env = {**os.environ, **own}
        command = [sys.executable, "-m", "ci.gpu.notebooks", lab, "--model", model, "--device", device,
                   "--one", str(out)]
        with (folder / f"{lab}-{model}.log").open("w") as log:
            begun.append((lab, model, out, subprocess.Popen(command, stdout=log, stderr=log, cwd=ROOT,
                                                            env=env)))
    return begun


def finish(begun: list, seconds: float) -> list[dict[str, Any]]:
    """The results of what `start` began; a job that is not done in time is ended, and says so."""
    until, rows = time.monotonic() + seconds, []
    for lab, model, out, process in begun:
        try:
            process.wait(max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if out.exists():
            rows.append(json.loads(out.read_text("utf-8")))
        else:
            said = out.with_suffix(".log").read_text("utf-8", errors="replace")[-1500:]
            rows.append({"lab": lab, "model": model, "points": 0, "maximum": None,
                         "problems": [f"no result: {said}"]})
    return rows


def main(argv: list[str] | None = None) -> int:
    """Execute the labs, write the results, print a table; returns 1 when there is a problem."""
    parser = argparse.ArgumentParser(prog="python -m ci.gpu.notebooks", description=__doc__.split("\n")[0])
    parser.add_argument("labs", nargs="*", metavar="LAB", help="only these labs")
    parser.add_argument("--model", default="bundled", help="bundled, full or hub; 'each': bundled, and full "
                                                           "where size is the lesson")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, default=ROOT / "ci" / "out" / "notebooks-gpu.json")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.one:
        row = run_lab(options.labs[0], options.model, options.device)
        options.one.write_text(json.dumps(row, ensure_ascii=False), "utf-8")
        return 1 if row["problems"] else 0
    jobs = jobs_for(options.labs or labs(), options.model)
    rows = []
    for lab, model in jobs:
        rows.append(run_lab(lab, model, options.device))
        show(rows[-1:])
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({"environment": environment(options.device), "rows": rows}, indent=1)
                           + "\n", "utf-8")
    return 1 if any(row["problems"] for row in rows) else 0


def jobs_for(chosen: list[str], model: str) -> list[tuple[str, str]]:
    """(lab, model) pairs: with "each", bundled for all and full for those where size is the lesson."""
    if model != "each":
        return [(lab, model) for lab in chosen]
    return [(lab, "bundled") for lab in chosen] + [(lab, "full") for lab in chosen
                                                   if lab.startswith(SIZE_LABS)]


def show(rows: list[dict[str, Any]]) -> None:
    """One line a lab, and its problems."""
    for row in rows:
        print(f"{row['lab']:28} {row['model']:8} {row.get('seconds', 0):7.1f} s  {row['points']:g} of "
              f"{row['maximum'] or 0:g}")
        for problem in row["problems"]:
            print(f"  PROBLEM {problem[:1200]}")


if __name__ == "__main__":
    sys.exit(main())
