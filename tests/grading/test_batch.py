"""A batch grades everybody once, reports bad files, and its marks equal stock nbgrader's."""

import csv
import io

import nbformat
import pytest
import test_end_to_end as stock
from nbgrader.api import Gradebook

from inferlab.grading import batch, results
from inferlab.grading.batch import BatchError, grade_lab
from inferlab.grading.report import grades, write_csv
from inferlab.grading.summary import question_summary


@pytest.fixture(scope="module")
def graded(module_course):
    course = module_course
    course.submit("ada", course.solution())
    course.submit("bob", course.solution(half=stock.WRONG_HALF, loop=stock.BACKWARDS))
    course.submit("cyd", course.solution(half=stock.WRONG_HALF))
    course.submit("dan", nbformat.read(course.release, as_version=4))
    for name, content in (("empty", b""), ("pdf", b"%PDF-1.4 \xff"), ("text", b"my answers"), ("list", b"[1, 2]")):
        path = course.root / "submitted" / name / course.lab / f"{course.lab}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
    course.rows = {row.student: row for row in grade_lab(course.course, course.lab, workers=2)}
    return course


def test_marks(graded):
    assert {s: r.points for s, r in graded.rows.items() if r.state == "graded"} == {
        "ada": 5.0, "bob": 1.0, "cyd": 3.0, "dan": 0.0}
    assert stock.marks(graded, "bob") == {"check-half": 0.0, "check-loop": 1.0}


def test_bad_files_have_a_line_and_stop_nothing(graded):
    bad = {s: r.problem for s, r in graded.rows.items() if r.state == "unreadable"}
    assert bad.keys() == {"empty", "pdf", "text", "list"}
    assert bad["empty"] == "empty file"
    assert "PDF" in bad["pdf"]
    with Gradebook(graded.db) as gradebook:
        assert {s.student.id for s in gradebook.assignment_submissions(graded.lab)} == {"ada", "bob", "cyd", "dan"}


def test_recording_finds_the_result_and_runs_nothing(graded, monkeypatch):
    """nbgrader's own pass computes the very job that the batch computed: otherwise everything would run twice."""
    def refuse(*_):
        raise AssertionError("ran again")

    monkeypatch.setattr(results, "shared_host", refuse)
    monkeypatch.setattr(batch, "shared_host", refuse)
    (graded.root / ".grading" / "done" / graded.lab / "ada.json").unlink()
    (row,) = grade_lab(graded.course, graded.lab, students=["ada"])
    assert (row.state, row.points) == ("graded", 5.0)


def test_unchanged_submissions_are_kept(graded):
    again = {row.student: row for row in grade_lab(graded.course, graded.lab)}
    assert {s: r.state for s, r in again.items() if r.state != "unreadable"} == dict.fromkeys(("ada", "bob", "cyd", "dan"), "kept")
    assert again["bob"].points == 1.0


def test_one_learner_again(graded):
    (row,) = grade_lab(graded.course, graded.lab, students=["bob"], rerun=True)
    assert (row.state, row.points) == ("graded", 1.0)
    with pytest.raises(BatchError, match="nothing handed in"):
        grade_lab(graded.course, graded.lab, students=["eve"])


def test_one_question_again_leaves_the_others(graded):
    with Gradebook(graded.db) as gradebook:
        for grade in gradebook.find_submission_notebook(graded.lab, graded.lab, "ada").grades:
            grade.auto_score = 0.5
        gradebook.db.commit()
    grade_lab(graded.course, graded.lab, students=["ada"], questions=["half"], rerun=True)
    assert stock.marks(graded, "ada") == {"check-half": 2.0, "check-loop": 0.5}
    with pytest.raises(BatchError, match="no question called nope"):
        grade_lab(graded.course, graded.lab, questions=["nope"])


def test_reports(graded, tmp_path):
    path = tmp_path / "grades.csv"
    write_csv(grades(graded.course), path)
    lines = list(csv.DictReader(io.StringIO(path.read_text("utf-8-sig"))))
    assert {line["learner"]: line["score"] for line in lines}["bob"] == "1.0"
    half, loop = question_summary(graded.course, graded.lab)
    assert half["mistakes"] == [["you divided twice", 2]]
    assert (half["graded"], half["full"], half["zero"]) == (4, 1, 3)
    assert loop["histogram"] == {"0": 1, "1": 1, "3": 2}


def test_one_question_of_a_new_hand_in_leaves_the_others_to_the_next_batch(graded):
    graded.submit("cyd", graded.solution(loop=stock.BACKWARDS))
    grade_lab(graded.course, graded.lab, students=["cyd"], questions=["half"])
    assert stock.marks(graded, "cyd") == {"check-half": 2.0, "check-loop": 3.0}
    (row,) = grade_lab(graded.course, graded.lab, students=["cyd"])
    assert (row.state, row.points) == ("graded", 3.0)
    assert stock.marks(graded, "cyd") == {"check-half": 2.0, "check-loop": 1.0}
    (row,) = grade_lab(graded.course, graded.lab, students=["cyd"])
    assert row.state == "kept"


@pytest.mark.parametrize("left", ["", '{"checks": {'])
def test_files_that_were_cut_short_are_made_again(graded, left):
    kept = graded.root / ".grading"
    for path in [*kept.glob("*.json"), kept / "done" / graded.lab / "bob.json"]:
        path.write_text(left)
    (row,) = grade_lab(graded.course, graded.lab, students=["bob"])
    assert (row.state, row.points) == ("graded", 1.0)
