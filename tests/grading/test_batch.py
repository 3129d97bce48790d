"""A batch grades everybody once, reports bad files, and its marks equal stock nbgrader's."""

import csv
import io

import nbformat
import pytest
from nbgrader.api import Gradebook

from inferlab.grading.gradebook import batch
from inferlab.grading.gradebook.batch import grade_lab
from inferlab.grading.gradebook.batch_setup import BatchError
from inferlab.grading.reporting.class_report import question_summary
from inferlab.grading.reporting.grades import export_rows, grades, write_csv
from inferlab.grading.running import host
from tests.grading import tiny

pytestmark = pytest.mark.sandbox


@pytest.fixture(scope="module")
def graded(module_course):
    course = module_course
    course.submit("ada", course.solution())
    course.submit("bob", course.solution(half=tiny.WRONG_HALF, loop=tiny.BACKWARDS))
    course.submit("cyd", course.solution(half=tiny.WRONG_HALF))
    course.submit("dan", nbformat.read(course.release, as_version=4))
    for name, content in (("empty", b""), ("pdf", b"%PDF-1.4 \xff"), ("text", b"my answers"),
                          ("list", b"[1, 2]")):
        path = course.root / "submitted" / name / course.lab / f"{course.lab}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
    course.rows = {row.learner: row for row in grade_lab(course.course, course.lab, workers=2)}
    return course


def test_marks(graded):
    assert {s: r.points for s, r in graded.rows.items() if r.state == "graded"} == {
        "ada": 5.0, "bob": 1.0, "cyd": 3.0, "dan": 0.0}
    assert tiny.marks(graded, "bob") == {"check-half": 0.0, "check-loop": 1.0}


def test_bad_files_have_a_line_and_stop_nothing(graded):
    bad = {s: r.problem for s, r in graded.rows.items() if r.state == "unreadable"}
    assert bad.keys() == {"empty", "pdf", "text", "list"}
    assert bad["empty"] == "empty file"
    assert "PDF" in bad["pdf"]
    with Gradebook(graded.db) as gradebook:
        assert {s.student.id for s in gradebook.assignment_submissions(graded.lab)} == {"ada", "bob", "cyd",
                                                                                        "dan"}


def test_recording_finds_the_result_and_runs_nothing(graded, monkeypatch):
    def refuse(*_):
        raise AssertionError("ran again")

    monkeypatch.setattr(host, "shared_host", refuse)
    monkeypatch.setattr(batch, "execute", refuse)
    (graded.root / "autograded" / "ada" / graded.lab / f"{graded.lab}.ipynb").unlink()
    (row,) = grade_lab(graded.course, graded.lab, learners=["ada"])
    assert (row.state, row.points) == ("graded", 5.0)


def test_unchanged_submissions_are_kept(graded):
    again = {row.learner: row for row in grade_lab(graded.course, graded.lab)}
    assert {s: r.state for s, r in again.items() if r.state != "unreadable"} == dict.fromkeys(("ada", "bob",
                                                                                               "cyd", "dan"),
                                                                                              "kept")
    assert again["bob"].points == 1.0


def test_one_learner_again(graded):
    (row,) = grade_lab(graded.course, graded.lab, learners=["bob"], rerun=True)
    assert (row.state, row.points) == ("graded", 1.0)
    with pytest.raises(BatchError, match="nothing handed in"):
        grade_lab(graded.course, graded.lab, learners=["eve"])


def test_one_question_again_leaves_the_others(graded):
    with Gradebook(graded.db) as gradebook:
        for grade in gradebook.find_submission_notebook(graded.lab, graded.lab, "ada").grades:
            grade.auto_score = 0.5
        gradebook.db.commit()
    grade_lab(graded.course, graded.lab, learners=["ada"], questions=["half"], rerun=True)
    assert tiny.marks(graded, "ada") == {"check-half": 2.0, "check-loop": 0.5}
    with pytest.raises(BatchError, match="no question called nope"):
        grade_lab(graded.course, graded.lab, questions=["nope"])


def test_reports(graded, tmp_path):
    path = tmp_path / "grades.csv"
    write_csv(export_rows(graded.course, grades(graded.course)), path)
    lines = list(csv.DictReader(io.StringIO(path.read_text("utf-8-sig"))))
    assert {line["learner"]: line["score"] for line in lines}["bob"] == "1.0"
    half, loop = question_summary(graded.course, graded.lab)
    assert half["mistakes"] == [["you divided twice", 2]]
    assert (half["graded"], half["full"], half["zero"]) == (4, 1, 3)
    assert loop["histogram"] == {"0": 1, "1": 1, "3": 2}


def test_one_question_of_a_new_hand_in_leaves_the_others_to_the_next_batch(graded):
    graded.submit("cyd", graded.solution(loop=tiny.BACKWARDS))
    grade_lab(graded.course, graded.lab, learners=["cyd"], questions=["half"])
    assert tiny.marks(graded, "cyd") == {"check-half": 2.0, "check-loop": 3.0}
    (row,) = grade_lab(graded.course, graded.lab, learners=["cyd"])
    assert (row.state, row.points) == ("graded", 3.0)
    assert tiny.marks(graded, "cyd") == {"check-half": 2.0, "check-loop": 1.0}
    (row,) = grade_lab(graded.course, graded.lab, learners=["cyd"])
    assert row.state == "kept"


@pytest.mark.parametrize("left", ["", '{"checks": {'])
def test_files_that_were_cut_short_are_made_again(graded, left):
    kept = graded.root / ".grading"
    for path in kept.glob("*.json"):
        path.write_text(left)
    (row,) = grade_lab(graded.course, graded.lab, learners=["bob"])
    assert (row.state, row.points) == ("graded", 1.0)
