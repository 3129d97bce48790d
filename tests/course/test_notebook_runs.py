"""The notebook runner must be able to fail: each way in which a lab can be wrong is found."""

import re

import nbformat
import pytest

from ci.notebooks import prove, run_release, run_source
from inferlab.grading.authoring.build import build_source
from inferlab.grading.course import Course
from tests.course import LAB


def small(*sources, **metadata):
    """A notebook of code cells that needs no library, so that a run takes a second."""
    cells = [nbformat.v4.new_code_cell(source, id=f"c{i}") for i, source in enumerate(sources)]
    for name, about in metadata.items():
        cells[int(name[1:])].metadata["inferlab"] = about
    return nbformat.v4.new_notebook(cells=cells, metadata={
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}})


@pytest.mark.parametrize(("source", "problem"), [
    ("import sys; sys.exit(0)", "ended early"),
    ("import sys; sys.exit()", "ends the run"),
    ("exit", "ended early|DeadKernelError"),
    ("import os; os._exit(0)", "ended early"),
    ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "DeadKernelError"),
    ("1 / 0", "raised ZeroDivisionError"),
    ("import sys; print('careful', file=sys.stderr)", "writes to stderr"),
    ("import warnings; warnings.warn('old')", "writes to stderr"),
])
def test_a_source_that_ends_early_fails_or_warns_is_a_problem(source, problem):
    run = run_source(small("x = 1", source, "y = 2"))
    assert any(re.search(problem, text) for text in run.problems), run.problems


def test_a_clean_notebook_is_none():
    assert run_source(small("x = 1", "print(x)")).problems == []


def test_a_release_may_raise_notimplemented_in_exercises_only():
    exercise = {"exercise": "e", "provides": ["x"]}
    fine = small("raise NotImplementedError()", "y = 2", c0=exercise)
    assert run_release(fine).problems == []
    elsewhere = run_release(small("x = 1", "raise NotImplementedError()")).problems
    assert elsewhere == ["c1: raises NotImplementedError: "]
    other = run_release(small("raise NameError('z')", "y = 2", c0=exercise)).problems
    assert other == ["c0: raises NameError: z"]
    quits = run_release(small("import sys; sys.exit(0)", "y = 2", c0=exercise)).problems
    assert any("SystemExit" in text for text in quits)


@pytest.mark.sandbox
def test_the_proof_finds_a_wrong_keep_and_a_solution_that_is_not_right(course):
    answers = course.text(LAB).with_name("wrong_answers.toml")
    answers.write_text(answers.read_text("utf-8").replace('name = "tripled"\nkeeps = 0',
                                                          'name = "tripled"\nkeeps = 1'), "utf-8")
    text = course.text(LAB).with_name("hidden_tests.py")
    text.write_text(text.read_text("utf-8").replace("check.equal(got, 10)", "check.equal(got, 11)"), "utf-8")
    course = Course.open(course.root)
    problems = prove(course, LAB, build_source(course, LAB))["problems"]
    assert any("'tripled' keeps {'double': 0.0}, should keep {'double': 1.0}" in text
               for text in problems), problems
    assert any(text.startswith("fold: graded, the solution gets 1.0 of 4 (calls the step in order: ")
               for text in problems), problems


def test_a_solution_that_loses_points_is_told_by_its_parts():
    check = ("from inferlab.lab import Check\ncheck = Check('sum', points=3)\nwith check.part('is a "
             "number'):\n    pass\n"
             "with check.part('adds up', weight=2):\n    check.equal(5, 6)\ncheck.score()")
    notebook = small(check, c0={"check": "sum", "of": "sum"})
    notebook.cells[0].metadata["nbgrader"] = {"grade": True, "points": 3, "grade_id": "check-sum"}
    problems = run_source(notebook).problems
    assert len(problems) == 1 and problems[0].startswith("sum: the solution gets 1 of 3 (adds up: "), problems
    assert problems[0].endswith(")") and "is a number" not in problems[0]
