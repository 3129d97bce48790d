"""Executes every notebook and proves every grade: `python -m ci.notebooks [LAB ...]`, or `make notebooks`.

For each lab: the source version must finish without error and earn full marks; the released version may raise
only `NotImplementedError`, only in exercise cells and the checks that depend on them; the blank earns nothing
and each named wrong answer keeps exactly the points it says. No cell may write to stderr. A run that ends
early is a failure: a last cell of our own must have run, and every code cell before it.
"""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat

from ci.execute import Run, because, execute, run_source
from inferlab.grading.authoring.build import built_source, refresh_sources, stale_labs
from inferlab.grading.authoring.hidden_tests import read_lesson
from inferlab.grading.authoring.wrong_answers import read_wrong_answers
from inferlab.grading.course import Course

ROOT = Path(__file__).resolve().parents[1]


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
    from inferlab.grading.authoring.prove import prove_lab

    path = course.text(lab)
    wrong = read_wrong_answers(path, read_lesson(path))
    proof = prove_lab(source, wrong)
    problems = [f"{text}" for text in proof["errors"]]
    for check, maximum in proof["maximum"].items():
        if proof["solution"].get(check) != maximum:
            problems.append(f"{check}: graded, the solution gets {proof['solution'].get(check)} of "
                            f"{maximum:g}{because(proof['lost'][check])}")
        if proof["blank"].get(check) != 0:
            problems.append(f"{check}: the blank keeps {proof['blank'].get(check)} points")
    rows = []
    for answer, tried in zip(wrong, proof["wrong"], strict=True):
        rows.append({"exercise": answer.exercise, "name": answer.name, "kept": tried["points"],
                     "should_keep": answer.keeps,
                     "messages": tried["messages"]})
        if any(check not in tried["points"] or abs((tried["points"][check] or 0.0) - kept) > 1e-6
               for check, kept in answer.keeps.items()):
            problems.append(f"{answer.exercise}: '{answer.name}' keeps {tried['points']}, "
                            f"should keep {answer.keeps} "
                            f"({'; '.join(tried['messages'])[:200]})")
    return {"seconds": proof["seconds"], "points": sum(v or 0 for v in proof["solution"].values()),
            "maximum": sum(proof["maximum"].values()), "wrong_answers": rows, "problems": problems}


def examine(course: Course, lab: str, say: Callable[[str], None] = lambda text: None) -> dict[str, Any]:
    """Everything about one lab, as JSON data."""
    source = nbformat.read(built_source(course, lab), as_version=4)
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
    named = [course.require(name) for name in arguments.labs]
    refresh_sources(course, named or None)  # an edit that was not adopted stays, and is out of date
    results: dict[str, Any] = {"stale": stale_labs(course, named or None), "labs": {}}
    for lab in named or course.labs:
        results["labs"][lab] = examine(course, lab, lambda text: print(text, file=sys.stderr, flush=True))
    problems = [f"out of date: {name}" for name in results["stale"]]
    for lab, parts in results["labs"].items():
        for part, run in parts.items():
            problems += [f"{lab}, {part}: {problem}" for problem in run["problems"]]
            print(f"{lab:28} {part:8} {run['seconds']:7.1f} s  {run['points']:g} of {run['maximum']:g}")
    results["problems"] = problems
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print("\n".join([f"PROBLEM {problem}" for problem in problems])
          or "every notebook runs and every grade is proven")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
