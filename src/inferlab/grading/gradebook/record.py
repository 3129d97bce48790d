"""Records one graded submission: its marks in the gradebook, and its notebook in `autograded/`.

The marks are written in one transaction: if the process dies, they are all old or all new. The notebook is
written first, beside its place, and moved there after the marks. Where only that move is missing, the next
batch makes it (`settle`).
"""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from inferlab.grading.course import Course, LatePolicy
from inferlab.grading.notebook import Notebook, grade_id, load, write_notebook
from inferlab.grading.submission.submission import CourseLab, Submission
from inferlab.grading.submission.submitted_folders import handed_in_at

from .database import Gradebook, Mark, only_writer, other_cells
from .decisions import answers, decisions, keep_decisions, standing

CHECK_DATA = "application/vnd.inferlab.check+json"
"""The kind of output that has a check's `score` and `parts` as data. The page of feedback is made from it."""
FAULT = "This test did not work. Your instructor has been told and will look at it."
"""What the graded notebook says where a test failed by itself. The page of feedback has its own words."""
DAY = timedelta(days=1)


class MarksWriter:
    """Writes a batch's marks into the gradebook, which stays open for the whole batch; a context manager."""

    def __init__(self, course: Course, lab: CourseLab, db_url: str, questions: set[str] | None) -> None:
        self.course, self.lab, self.questions = course, lab, questions
        _bring_up_to_date(course, lab, db_url)
        self.gradebook = Gradebook(db_url)
        settle(self.gradebook, course, lab.name)
        with self.gradebook.transaction():
            self.recorded = self.gradebook.results(lab.name, whole=True)

    def __enter__(self) -> MarksWriter:
        return self

    def __exit__(self, *exc: object) -> None:
        self.gradebook.__exit__(*exc)

    def has(self, learner: str, key: str) -> bool:
        """Whether exactly this result is recorded already."""
        return self.recorded.get(learner) == key and self.course.autograded(learner, self.lab.name).exists()

    def record(self, submission: Submission, result: dict[str, Any]) -> list[str]:
        """Record one result whole or not at all; returns notes for the instructor."""
        return record_submission(self.gradebook, self.course, submission, result, self.questions)

    def marks(self, learner: str) -> list[Mark]:
        """What the gradebook has of a learner."""
        with self.gradebook.transaction():
            return self.gradebook.marks(self.lab.name, learner)


def _bring_up_to_date(course: Course, lab: CourseLab, db_url: str) -> None:
    """Give the gradebook the lab's cells and points as they are now.

    Where nbgrader no longer allows that, the gradebook keeps the cells that it has, and each row says which
    check is not recorded.
    """
    with only_writer(db_url):
        with Gradebook(db_url) as gradebook:
            known = gradebook.source_digest(lab.name) == lab.digest
            if known or other_cells(gradebook, lab.name, lab.source):
                return
        # nbgrader does this; importing it takes a second, and reading marks does without.
        from inferlab.grading.authoring.build import save_to_gradebook

        save_to_gradebook(course, lab.name, db_url)
        with Gradebook(db_url) as gradebook, gradebook.transaction():
            gradebook.set_result(lab.name, "", lab.digest)


def record_submission(gradebook: Gradebook, course: Course, submission: Submission, result: dict[str, Any],
                      questions: Collection[str] | None = None) -> list[str]:
    """Record a result whole or not at all; returns notes for the instructor.

    Args:
        questions: record these checks only (names as in `check="..."`). The others keep their marks, and the
            next batch records them.

    Raises:
        OSError, sqlalchemy.exc.SQLAlchemyError, CourseError: if it could not be recorded. Nothing has changed
            then.
    """
    place = course.autograded(submission.learner, submission.lab.name)
    waiting = _beside(place)
    waiting.unlink(missing_ok=True)
    write_notebook(graded_notebook(submission, result), waiting)
    waiting.chmod(0o444)
    notes = write_marks(gradebook, course, submission, result, questions)
    os.replace(waiting, place)
    return notes


def settle(gradebook: Gradebook, course: Course, lab: str) -> None:
    """Move the notebooks that a grader which died left beside their places, or delete those without marks."""
    results = gradebook.results(lab)
    for waiting in (course.root / "autograded").glob(f"*/{lab}/.{lab}.ipynb.new"):
        try:
            key = load(waiting)["metadata"]["inferlab_grading"]["result"]
        except ValueError:  # it died while writing this
            key = ""
        if key and results.get(waiting.parent.parent.name) == key:
            os.replace(waiting, waiting.with_name(f"{lab}.ipynb"))
        else:
            waiting.unlink()


def _beside(place: Path) -> Path:
    """Where a notebook waits until its marks are written. nbgrader does not look at hidden files."""
    return place.with_name(f".{place.name}.new")


def write_marks(gradebook: Gradebook, course: Course, submission: Submission, result: dict[str, Any],
                questions: Collection[str] | None = None) -> list[str]:
    """Write a result's marks and its penalty for lateness in one transaction; returns notes."""
    lab, learner = submission.lab, submission.learner
    time = handed_in_at(course.submitted(learner, lab.name).with_name("timestamp.txt"))
    kept = decisions(course.root, lab.name)
    with gradebook.transaction():
        gradebook.hold(learner)
        gradebook.set_deadline(lab.name, naive(course.due[lab.name]) if lab.name in course.due else None)
        before = {mark.check: mark for mark in gradebook.marks(lab.name, learner)}
        cells = gradebook.cells(lab.name, "GradeCell")
        notebook = gradebook.hand_in(lab.name, learner, **({"timestamp": naive(time)} if time else {}))
        for name in cells.keys() - before.keys():
            gradebook.mark(notebook, cells[name])
        flagged = {name for name, check in result["checks"].items() if check["review"]}
        by_hand, rows = standing(kept, learner, answers(result, lab), flagged, before) if kept else ({}, kept)
        for name, check in result["checks"].items():
            if name in cells and (questions is None or lab.checks[name] in questions):
                points = before[name].by_hand if name in before else None
                points, waits = by_hand.get(name, (points, points is not None or name in flagged))
                gradebook.set_mark(gradebook.mark(notebook, cells[name]), auto_score=check["score"] or 0.0,
                                   manual_score=points, needs_manual_grade=waits)
        _comment(gradebook, notebook, submission)
        set_penalty(gradebook, course.late, lab.name, learner, notebook)
        gradebook.set_result(lab.name, learner, result["key"], whole=questions is None)
    if rows != kept:
        keep_decisions(course.root, lab.name, rows)
    return [*(f"{lab.checks[name]}: the {before[name].by_hand:g} points by hand were for an earlier answer: "
              "taken back"
              for name, (points, _) in by_hand.items() if points is None),
            *(f"{lab.checks[name]}: not recorded: the gradebook keeps the cells that the lab had when its "
              "first submission came in"
              for name in result["checks"] if name not in cells)]


def set_penalty(gradebook: Gradebook, policy: LatePolicy, lab: str, learner: str, notebook: str) -> None:
    """Write the points that a submission loses for being late: a share of what it has earned so far.

    Every penalty is computed here. How late it came is what the gradebook has: the time of handing in, the
    lab's deadline and the learner's extension, which includes free days.

    Args:
        notebook: the id of the submitted notebook in the gradebook.
    """
    earned = sum(mark.score for mark in gradebook.marks(lab, learner))
    lost = earned * share_lost(policy, gradebook.late(notebook))
    gradebook.store_penalty(notebook, round(lost, 6) or None)


def share_lost(policy: LatePolicy, late: timedelta) -> float:
    """The share (0 to 1) of what was earned that is lost: `per_day` for each started day, up to `at_most`."""
    return min(policy.at_most, policy.per_day * math.ceil(late / DAY)) if late > timedelta(0) else 0.0


def naive(time: datetime) -> datetime:
    """A time as the gradebook has it: UTC, without a zone."""
    return time.astimezone(UTC).replace(tzinfo=None)


def _comment(gradebook: Gradebook, notebook: str, submission: Submission) -> None:
    """nbgrader's own comment on an answer that is still as it was released."""
    released = {cell["id"]: cell["source"] for cell in submission.lab.released["cells"]}
    cells = gradebook.cells(submission.lab.name, "SolutionCell")
    for cell in submission.notebook["cells"]:
        if (identity := cells.get(grade_id(cell))) is not None:
            gradebook.set_comment(notebook, identity, "No response."
                                  if cell["source"] == released.get(cell["id"]) else None)


def graded_notebook(submission: Submission, result: dict[str, Any]) -> Notebook:
    """The submission's notebook with the lab's own tests and a result's outputs.

    The output of a test is its score with a report, or an error.
    """
    notebook = copy.deepcopy(submission.notebook)
    trusted = {cell["id"]: cell for cell in submission.lab.source["cells"]}
    for place, cell in enumerate(notebook["cells"]):
        known = trusted.get(cell["id"])
        if known is not None and known["metadata"].get("nbgrader", {}).get("grade"):
            notebook["cells"][place] = cell = copy.deepcopy(known)
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
    for number, entry in enumerate(submission.job["cells"], start=1):
        if entry["index"] is None:
            continue
        cell = notebook["cells"][entry["index"]]
        cell["execution_count"] = number
        if entry["kind"] == "check":
            cell["outputs"] = _check_outputs(result["checks"].get(entry["grade_id"]), number)
        else:
            cell["outputs"] = result["cells"][str(entry["index"])]["outputs"]
    notebook["metadata"]["inferlab_grading"] = {
        "result": result["key"], "file": submission.digest,
        **{name: result[name] for name in ("unprotected", "died", "told")}}
    return notebook


def _check_outputs(check: dict[str, Any] | None, number: int) -> list[dict[str, Any]]:
    if check is None or check["score"] is None:
        text = check["error"] if check is not None else "the test was not run"
        return [{"output_type": "error", "ename": "TestFailed", "evalue": FAULT,
                 "traceback": text.splitlines()}]
    outputs = [{"output_type": "stream", "name": "stdout",
                "text": check["printed"]}] if check["printed"] else []
    data = {"text/plain": repr(float(check["score"])), "text/html": check["html"],
            CHECK_DATA: {"score": check["score"], "parts": check["parts"]}}
    return [*outputs, {"output_type": "execute_result", "data": data, "metadata": {},
                       "execution_count": number}]


# -- what happened while it was graded -------------------------------------------------------------
def grading_notes(course: Course, lab: str, learner: str) -> list[str]:
    """The notes on a learner's graded notebook in `autograded/`; none where nothing is graded."""
    path = course.autograded(learner, lab)
    return notes_in(load(path)["metadata"]) if path.is_file() else []


def notes_in(metadata: dict[str, Any]) -> list[str]:
    """The notes in a graded notebook's metadata: stopped cells, a kernel that died, a missing sandbox."""
    about = metadata.get("inferlab_grading", {})
    return [*about.get("told", []), *([about["died"]] if about.get("died") else []),
            *(["graded without the sandbox"] if about.get("unprotected") else [])]
