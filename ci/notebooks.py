"""Executes every notebook through papermill and proves every grade: `python -m ci.notebooks --out ci/out/notebooks.json`.

For each lab: the source version must finish without error and earn full marks; the released version may raise only
`NotImplementedError`, only in exercise cells and the checks that depend on them; the blank earns nothing and each named
wrong answer keeps exactly the points it says. No cell may write to stderr. A run that ends early is a failure: a last
cell of our own must have run, and every code cell before it.
"""

import argparse
import json
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
import papermill
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from papermill.exceptions import PapermillExecutionError

from inferlab.grading.build import stale_labs
from inferlab.grading.course import Course
from inferlab.grading.labtext import read_blocks, read_wrong_answers, wrong_answers_path
from inferlab.grading.lint import checks_of

ROOT = Path(__file__).resolve().parents[1]
SENTINEL = "inferlab-ci-end"
END_CELL = f"""\
import json as _json
from inferlab.lab.check import results as _results
print({SENTINEL!r} + _json.dumps({{name: [float(s), s.check.points] for name, s in _results().items()}}))"""
CELL_SECONDS = 300


@dataclass
class Run:
    """One execution of one version of a lab."""

    seconds: float = 0.0
    error: str | None = None
    points: float = 0.0
    maximum: float = 0.0
    checks: dict[str, list[float]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """The run as JSON data."""
        return {"seconds": round(self.seconds, 2), "error": self.error, "points": self.points, "maximum": self.maximum,
                "checks": self.checks, "problems": self.problems}


def execute(notebook: nbformat.NotebookNode, *, allow_errors: bool, learner: str = "") -> tuple[nbformat.NotebookNode, Run]:
    """Run a notebook through papermill in an empty folder; returns it with its outputs, and how the run ended."""
    maximum = sum(float(cell.metadata.nbgrader.points) for cell in notebook.cells
                  if cell.metadata.get("nbgrader", {}).get("grade"))
    run = Run(maximum=maximum)
    notebook = nbformat.from_dict(notebook)
    notebook.cells.append(nbformat.v4.new_code_cell(END_CELL, id="inferlab-ci-end"))
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="inferlab-ci-") as folder:
        given, out = Path(folder) / "given.ipynb", Path(folder) / "out.ipynb"
        nbformat.write(notebook, given)
        try:
            papermill.execute_notebook(
                given, out, parameters={"LEARNER": learner} if learner else {}, kernel_name="python3", cwd=folder,
                progress_bar=False, execution_timeout=CELL_SECONDS, allow_errors=allow_errors,
                extra_arguments=["--log-level=40"])
        except PapermillExecutionError as error:
            run.error = f"{error.ename}: {error.evalue}"[:500]
        except (DeadKernelError, CellTimeoutError) as error:
            run.error = f"{type(error).__name__}: {str(error)[:300]}"
        done = nbformat.read(out, as_version=4) if out.exists() else notebook
    run.seconds = time.monotonic() - began
    done.cells = [cell for cell in done.cells if "papermill-error-cell-tag" not in cell.metadata.get("tags", [])]
    _read_results(done, run)
    return done, run


def _read_results(done: nbformat.NotebookNode, run: Run) -> None:
    last = done.cells.pop()
    printed = "".join(o.text for o in last.get("outputs", []) if o.output_type == "stream" and o.name == "stdout")
    if SENTINEL not in printed:
        run.problems.append("ended early: the notebook's last cell never ran")
    else:
        run.checks = json.loads(printed.split(SENTINEL, 1)[1])
        run.points = round(sum(points for points, _ in run.checks.values()), 6)
    for cell in done.cells:
        if cell.cell_type == "code" and cell.source.strip() and cell.execution_count is None:
            run.problems.append(f"{cell.id}: never ran")
        for output in cell.get("outputs", []):
            if output.output_type == "error" and output.ename == "SystemExit":
                run.problems.append(f"{cell.id}: ends the run ({output.ename})")
            if output.output_type == "stream" and output.name == "stderr":
                run.problems.append(f"{cell.id}: writes to stderr: {output.text[:200]}")


def run_source(notebook: nbformat.NotebookNode) -> Run:
    """The instructor's version: no error, full marks."""
    done, run = execute(notebook, allow_errors=False, learner="ci")
    if run.error:
        run.problems.append(f"raised {run.error}")
    wanted = {cell.metadata.inferlab.check: float(cell.metadata.nbgrader.points) for cell in done.cells
              if cell.metadata.get("nbgrader", {}).get("grade")}
    for name, points in wanted.items():
        got = run.checks.get(name)
        if got is None:
            run.problems.append(f"{name}: no score")
        elif got != [points, points]:
            run.problems.append(f"{name}: the solution gets {got[0]:g} of {points:g}")
    return run


def run_release(notebook: nbformat.NotebookNode) -> Run:
    """The learner's version: only NotImplementedError, only in exercises and checks."""
    done, run = execute(notebook, allow_errors=True)
    for cell in done.cells:
        about = cell.metadata.get("inferlab", {})
        for output in cell.get("outputs", []):
            if output.output_type != "error":
                continue
            if output.ename != "NotImplementedError" or not {"exercise", "check"} & set(about):
                run.problems.append(f"{cell.id}: raises {output.ename}: {output.evalue[:200]}")
    if run.maximum and run.points >= run.maximum:
        run.problems.append("the blank notebook earns every visible point")
    if not run.problems:
        run.error = None  # what papermill reports is the stubs' NotImplementedError
    return run


def prove(course: Course, lab: str, source: nbformat.NotebookNode) -> dict[str, Any]:
    """The lab's grades proven by the grader itself: solution, blank, every named wrong answer."""
    from inferlab.grading.prove import prove_lab

    path = course.text(lab)
    wrong = read_wrong_answers(wrong_answers_path(path), checks_of(read_blocks(path.read_text("utf-8"))[1]))
    proof = prove_lab(source, wrong)
    problems = [f"{text}" for text in proof["errors"]]
    for check, maximum in proof["maximum"].items():
        if proof["solution"].get(check) != maximum:
            problems.append(f"{check}: graded, the solution gets {proof['solution'].get(check)} of {maximum:g}")
        if proof["blank"].get(check) != 0:
            problems.append(f"{check}: the blank keeps {proof['blank'].get(check)} points")
    rows = []
    for answer, tried in zip(wrong, proof["wrong"], strict=True):
        rows.append({"exercise": answer.exercise, "name": answer.name, "kept": tried["points"], "should_keep": answer.keeps,
                     "messages": tried["messages"]})
        if any(abs((tried["points"].get(check) or 0.0) - kept) > 1e-6 for check, kept in answer.keeps.items()):
            problems.append(f"{answer.exercise}: '{answer.name}' keeps {tried['points']}, should keep {answer.keeps} "
                            f"({'; '.join(tried['messages'])[:200]})")
    return {"seconds": proof["seconds"], "points": sum(v or 0 for v in proof["solution"].values()),
            "maximum": sum(proof["maximum"].values()), "wrong_answers": rows, "problems": problems}


def examine(course: Course, lab: str, say=lambda text: None) -> dict[str, Any]:
    """Everything about one lab, as JSON data."""
    source = nbformat.read(course.source(lab), as_version=4)
    say(f"{lab}: source")
    result: dict[str, Any] = {"source": run_source(source).as_dict()}
    say(f"{lab}: release")
    result["release"] = run_release(nbformat.read(course.release(lab), as_version=4)).as_dict()
    say(f"{lab}: proof of its grades")
    result["proof"] = prove(course, lab, source)
    return result


def main(argv: list[str] | None = None) -> int:
    """Examine every lab, write the results, print a table; returns 1 when there is a problem."""
    parser = argparse.ArgumentParser(prog="python -m ci.notebooks", description=__doc__.split("\n")[0])
    parser.add_argument("labs", nargs="*", metavar="LAB", help="only these labs")
    parser.add_argument("--out", type=Path, default=ROOT / "ci" / "out" / "notebooks.json")
    parser.add_argument("--course", type=Path, default=ROOT)
    arguments = parser.parse_args(argv)
    course = Course.open(arguments.course)
    results: dict[str, Any] = {"stale": stale_labs(course), "labs": {}}
    for lab in [course.require(name) for name in arguments.labs] or course.labs:
        results["labs"][lab] = examine(course, lab, lambda text: print(text, file=sys.stderr, flush=True))
    problems = [f"out of date: {name}" for name in results["stale"]]
    for lab, parts in results["labs"].items():
        for part, run in parts.items():
            problems += [f"{lab}, {part}: {problem}" for problem in run["problems"]]
            print(f"{lab:28} {part:8} {run['seconds']:7.1f} s  {run['points']:g} of {run['maximum']:g}")
    results["problems"] = problems
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print("\n".join([f"PROBLEM {problem}" for problem in problems]) or "every notebook runs and every grade is proven")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
