"""A new lab builds, keeps every rule and is proven as it is; CONTRIBUTING.md shows what it really says."""

import nbformat
import pytest

from ci.notebooks import prove
from inferlab.cli import main
from inferlab.grading.authoring.hidden_tests import read_lesson
from inferlab.grading.authoring.lab_text import checks_of
from inferlab.grading.authoring.new import new_lab
from inferlab.grading.authoring.wrong_answers import read_wrong_answers
from inferlab.grading.course import CourseError
from tests import ROOT

NEW = "lab91-first-try"


@pytest.fixture
def made(course):
    new_lab(course, NEW)
    return course


def test_a_new_lab_has_an_exercise_an_explanation_and_a_wrong_answer_for_each(made):
    blocks = read_lesson(made.text(NEW))
    assert checks_of(blocks) == {"unet-calls": ["unet-calls"], "one-run": ["one-run-calls", "one-run-state"]}
    wrong = [answer.exercise for answer in read_wrong_answers(made.text(NEW), blocks)]
    assert wrong == ["unet-calls", *["one-run"] * 3]
    assert blocks[0].cell.source.startswith("# Lab 91 · First try\n")
    assert "TODO" in made.text(NEW).read_text("utf-8")


@pytest.mark.timeout(600)
def test_a_new_lab_is_proven_as_it_is(made):
    proof = prove(made, NEW, nbformat.read(made.source(NEW), as_version=4))
    assert proof["problems"] == []
    assert (proof["points"], len(proof["wrong_answers"])) == (4, 4)


@pytest.mark.parametrize(("name", "message"), [
    ("Lab 91", "cannot be a lab's name"), ("../lab91-x", "cannot be a lab's name"),
    ("lab90-fixture", "is there already")])
def test_a_name_that_cannot_be_taken_is_refused_and_nothing_is_written(course, name, message):
    before = sorted(course.root.rglob("*"))
    with pytest.raises(CourseError, match=message):
        new_lab(course, name)
    assert main(["new", name, "--course", str(course.root)]) == 2
    assert sorted(course.root.rglob("*")) == before


def test_the_guide_quotes_the_template(made):
    """What CONTRIBUTING.md shows of the four files is what `inferlab new` writes."""
    guide = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    folder = made.text(NEW).parent
    for name, quoted in [("hidden_tests.py", 4), ("explanations.py", 12), ("wrong_answers.toml", 12),
                         (f"{NEW}.py", 4)]:
        lines = (folder / name).read_text("utf-8").splitlines()
        shown = {line.strip().split("  # visible")[0].rstrip() for line in guide.splitlines()
                 if line.startswith("    ")}
        assert sum(bool(line.strip()) and line.strip() in shown for line in lines) >= quoted, name
