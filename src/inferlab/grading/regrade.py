"""Grades a lab again with its tests as they are now, without touching what learners handed in.

First everything is graded in a folder and a gradebook that are thrown away, and what would change is shown; only then,
when told to, the real gradebook is written.
"""

import contextlib
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import nbformat

from .batch import only_one
from .build import build_source, generate_assignment, save_to_gradebook, write_notebook
from .course import Course, CourseError
from .report import is_graded
from .stock import Step, autograde, learners_of


@dataclass(frozen=True)
class Change:
    """One learner's points in one check, before and after. `by_hand` when a person's points stand and do not change."""

    learner: str
    check: str
    before: float
    after: float
    by_hand: bool = False


@dataclass
class Regrade:
    """What grading a lab again gives: `changes` by learner and check, everyone's totals, and what could not be graded."""

    lab: str
    changes: list[Change] = field(default_factory=list)
    totals: dict[str, tuple[float, float]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    release_changed: bool = False
    written: bool = False

    def as_dict(self) -> dict:
        """The result as JSON data."""
        return {**asdict(self), "totals": {who: {"before": b, "after": a} for who, (b, a) in self.totals.items()}}


def scores(db_url: str, lab: str) -> dict[tuple[str, str], tuple[float, float | None]]:
    """Each (learner, check)'s automatic points and a person's (`None` where nobody gave any)."""
    from nbgrader.api import Gradebook

    with Gradebook(db_url) as gradebook:
        return {(submission.student.id, grade.name): (float(grade.auto_score or 0.0), grade.manual_score)
                for submission in gradebook.assignment_submissions(lab) if is_graded(submission)
                for notebook in submission.notebooks for grade in notebook.grades}


def regrade(course: Course, lab: str, *, write: bool = False, learners: list[str] | None = None,
            progress: Callable[[int, int, str], None] = lambda done, total, text: None) -> Regrade:
    """Grade a lab's submissions with the tests of its text as it is now, and compare with the gradebook.

    Args:
        write: also write the gradebook and `autograded/`; otherwise nothing outside of a temporary folder changes.
        learners: only these.
        progress: called with how many are done, how many there are, and whose turn it is.

    Raises:
        CourseError: when nothing of the lab was graded yet, or nothing of one of `learners`.
        BatchError: to write, while a batch is grading in this course.
    """
    with only_one(course) if write else contextlib.nullcontext():
        return _regrade(course, lab, write, learners, progress)


def _regrade(course: Course, lab: str, write: bool, learners: list[str] | None,
             progress: Callable[[int, int, str], None]) -> Regrade:
    source = build_source(course, lab)
    before = scores(course.gradebook_url, lab)
    graded = sorted({learner for learner, _ in before})
    wanted = [who for who in learners_of(course.root, lab) if who in graded]
    if not wanted:
        raise CourseError(f"nobody's {lab} is graded yet: run `inferlab grade {lab}` first")
    if learners is not None:
        unknown = sorted(set(learners) - set(wanted))
        if unknown:
            raise CourseError(f"not graded in {lab}: {', '.join(unknown)}")
        wanted = [who for who in wanted if who in learners]
    result = Regrade(lab, release_changed=_release_of(course, lab) != source.metadata["inferlab"]["release"])
    with tempfile.TemporaryDirectory(prefix="inferlab-regrade-") as folder:
        root = Path(folder)
        write_notebook(source, root / "source" / lab / f"{lab}.ipynb")
        scratch = f"sqlite:///{root / 'gradebook.db'}"
        generate_assignment(course, lab, root, scratch)
        for number, learner in enumerate(wanted):
            progress(number, len(wanted), learner)
            shutil.copytree(course.submitted(learner, lab).parent, root / "submitted" / learner / lab)
            step = autograde(course, lab, learner, root=root, db_url=scratch)
            if not step.success:
                result.failed[learner] = step.error or step.log
        progress(len(wanted), len(wanted), "")
        after = scores(scratch, lab)
    _compare(result, [who for who in wanted if who not in result.failed], before, after)
    if write:
        _write(course, lab, source, wanted, result)
    return result


def _release_of(course: Course, lab: str) -> str:
    path = course.release(lab)
    return nbformat.read(path, as_version=4).metadata.get("inferlab", {}).get("release", "") if path.exists() else ""


def _compare(result: Regrade, learners: list[str], before: dict, after: dict) -> None:
    for learner in learners:
        checks = sorted({check for who, check in (*before, *after) if who == learner})
        totals = [0.0, 0.0]
        for check in checks:
            old, by_hand = before.get((learner, check), (0.0, None))
            new = after.get((learner, check), (0.0, None))[0]
            counted = (old, new) if by_hand is None else (float(by_hand), float(by_hand))
            totals = [totals[0] + counted[0], totals[1] + counted[1]]
            if abs(new - old) > 1e-9:
                result.changes.append(Change(learner, check, old, new, by_hand is not None))
        result.totals[learner] = (round(totals[0], 6), round(totals[1], 6))


def _write(course: Course, lab: str, source: nbformat.NotebookNode, learners: list[str], result: Regrade) -> None:
    write_notebook(source, course.source(lab))
    save_to_gradebook(course, lab)
    steps: list[Step] = [autograde(course, lab, learner) for learner in learners if learner not in result.failed]
    result.failed |= {step.learner: step.error or step.log for step in steps if not step.success}
    result.written = True
