"""Grades a lab again with its tests as they are now. What learners handed in stays as it is.

First everything is run and compared with the gradebook. The gradebook is written afterwards, and only if the
caller says so.
"""

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

from inferlab.grading.authoring.build import build_source
from inferlab.grading.course import Course, CourseError
from inferlab.grading.notebook import load, write_notebook
from inferlab.grading.submission.submission import CourseLab

from .batch import BatchRow, grade_lab
from .batch_setup import configured_limits
from .database import Gradebook, Mark


@dataclass(frozen=True)
class MarkChange:
    """One learner's points in one check, before and after; those that a person gave do not change."""

    learner: str
    check: str
    before: float
    after: float
    by_hand: bool = False


@dataclass
class Regrade:
    """What grading a lab again gives.

    Attributes:
        lab: the lab's name.
        changes: every mark that changes.
        totals: learner -> all their points before and after.
        failed: learner -> why their work could not be graded.
        release_changed: whether the text that learners see has changed, too, and not only tests.
        written: whether the gradebook was written.
    """

    lab: str
    changes: list[MarkChange] = field(default_factory=list)
    totals: dict[str, tuple[float, float]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    release_changed: bool = False
    written: bool = False

    def as_dict(self) -> dict:
        """The result as JSON data."""
        return {**asdict(self), "totals": {who: {"before": b, "after": a}
                                           for who, (b, a) in self.totals.items()}}


def regrade(course: Course, lab: str, *, write: bool = False, learners: list[str] | None = None,
            progress: Callable[[int, int, str], None] = lambda done, total, text: None) -> Regrade:
    """Grade a lab's submissions with the tests of its text as it is now, and compare with the gradebook.

    Args:
        write: also write the gradebook and `autograded/`. Otherwise no mark and no notebook changes.
        learners: only these.
        progress: called with how many are done, how many there are, and whose turn it is.

    Raises:
        CourseError: when nothing of the lab was graded yet, or nothing of one of `learners`.
        BatchError: to write, while a batch is grading in this course.
    """
    source = build_source(course, lab)
    with Gradebook(course.gradebook_url) as gradebook:
        before = [mark for mark in gradebook.marks(lab) if mark.graded]
    graded = {mark.learner for mark in before}
    wanted = [who for who in course.learners_of(lab) if who in graded]
    if not wanted:
        raise CourseError(f"nobody's {lab} is graded yet: run `inferlab grade {lab}` first")
    if learners is not None:
        unknown = sorted(set(learners) - set(wanted))
        if unknown:
            raise CourseError(f"not graded in {lab}: {', '.join(unknown)}")
        wanted = [who for who in wanted if who in learners]
    trusted = CourseLab.of(source, configured_limits(course))
    workers = os.cpu_count() or 1
    rows = grade_lab(course, lab, trusted=trusted, learners=wanted, record=False, workers=workers,
                     on_row=lambda row, done, total: progress(done, total, row.learner))
    result = Regrade(lab, release_changed=_release_of(course, lab) != trusted.release)
    _compare(result, rows, before, trusted)
    if write:
        write_notebook(source, course.source(lab))
        written = grade_lab(course, lab, learners=sorted(result.totals), workers=workers)
        result.failed |= {row.learner: row.problem for row in written if row.problem}
        result.written = True
    return result


def _release_of(course: Course, lab: str) -> str:
    path = course.release(lab)
    return load(path)["metadata"].get("inferlab", {}).get("release", "") if path.exists() else ""


def _compare(result: Regrade, rows: list[BatchRow], before: list[Mark], lab: CourseLab) -> None:
    for row in rows:
        if row.problem:
            result.failed[row.learner] = row.problem
            continue
        old = {mark.check: mark for mark in before if mark.learner == row.learner}
        new = {check: row.checks.get(name) or 0.0 for check, name in lab.checks.items()}
        totals = [0.0, 0.0]
        for check in sorted(old.keys() | new.keys()):
            mark, points = old.get(check), new.get(check, 0.0)
            by_hand = mark.by_hand if mark is not None else None
            was = (mark.auto or 0.0) if mark is not None else 0.0
            totals[0] += was if by_hand is None else by_hand
            totals[1] += points if by_hand is None else by_hand
            if abs(points - was) > 1e-9:
                result.changes.append(MarkChange(row.learner, check, was, points, by_hand is not None))
        result.totals[row.learner] = (round(totals[0], 6), round(totals[1], 6))
