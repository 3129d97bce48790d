"""Grades a lab's submissions, several at a time. A batch that was killed goes on where it was.

Running and recording are apart. Running a submission gives plain JSON; threads of this process do it, or a
Dask cluster. This process alone records, one submission after another. Where a submission fails, its row says
so and the others are graded.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from dataclasses import asdict, dataclass, field
from typing import Any

from inferlab.grading.course import Course
from inferlab.grading.running.host import GradingFailed, Results, execute
from inferlab.grading.sandbox.limits import Limits
from inferlab.grading.sandbox.sandbox import NoSandbox
from inferlab.grading.submission.files import UnreadableError, read_regular
from inferlab.grading.submission.submission import CourseLab, Submission, digest_of, placed
from inferlab.grading.submission.submitted_folders import SubmittedFolder, submitted_folders

from .batch_setup import BatchError, configured_limits, executor, only_one
from .database import Mark
from .decisions import BY_HAND
from .graded import graded_lab
from .record import MarksWriter


@dataclass
class BatchRow:
    """What happened to one submission.

    Attributes:
        learner: whose it is.
        state: "graded", "kept" (unchanged since it was graded), "unreadable" or "failed".
        points: what the learner has in all, before the penalty for lateness; `None` where nothing was graded.
        maximum: the most points that the lab gives.
        checks: check's name -> points.
        review: the checks that wait for a person, each with the reason.
        notes: what the instructor should know, each as a sentence.
        seen: what lies beside the notebook in `submitted/` and was not graded.
        problem: why nothing was graded; "" where it was.
        seconds: how long running it took.
        unprotected: whether it was run without the sandbox.
    """

    learner: str
    state: str
    points: float | None = None
    maximum: float | None = None
    checks: dict[str, float | None] = field(default_factory=dict)
    review: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    problem: str = ""
    seconds: float = 0.0
    unprotected: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The row as JSON data."""
        return asdict(self)


def grade_lab(
    course: Course,
    lab: str,
    *,
    workers: int = 1,
    scheduler: str | None = None,
    learners: Iterable[str] | None = None,
    mode: str = "sandbox",
    rerun: bool = False,
    record: bool = True,
    questions: Iterable[str] | None = None,
    limits: Limits | None = None,
    trusted: CourseLab | None = None,
    db_url: str | None = None,
    on_row: Callable[[BatchRow, int, int], None] | None = None,
) -> list[BatchRow]:
    """Grade what lies in `submitted/` for a lab.

    Args:
        workers: how many submissions run at once on this machine.
        scheduler: the address of a Dask scheduler to send submissions to instead.
        learners: only these; everybody if None.
        mode: "sandbox", or "none" to run learners' code unprotected.
        rerun: run and record again what is graded and unchanged.
        record: write the gradebook and `autograded/`. If False, nothing is written, and the rows say what
            would be.
        questions: record the marks of these checks only (names as in `check="..."`). The other marks stay,
            and the next batch records them.
        limits: what one submission may use; as the course has it if None.
        trusted: the lab by which to grade; as it lies in `source/` if None.
        db_url: the gradebook's address; the course's own if None.
        on_row: called with each row, how many are done and how many there are.

    Returns:
        One row a submission, by learner.

    Raises:
        BatchError: for no submissions, an unknown question, or a batch that is already running in this
            course.
        sandbox.NoSandbox: if mode is "sandbox" and the machine cannot do it.
    """
    trusted = trusted or graded_lab(course, lab, limits or configured_limits(course), mode)
    wanted = set(questions) if questions is not None else None
    known = set(trusted.checks.values())
    if wanted is not None and wanted - known:
        raise BatchError(f"no question called {', '.join(sorted(wanted - known))}; {lab} has "
                         f"{', '.join(sorted(known))}")
    found = submissions(course, lab, learners)
    with only_one(course), contextlib.ExitStack() as stack:
        recorder = None
        if record:
            recorder = MarksWriter(course, trusted, db_url or course.gradebook_url, wanted)
            stack.enter_context(recorder)
        batch = Batch(course, trusted, recorder, rerun)
        for row in batch.rows(found, workers, scheduler):
            if on_row is not None:
                on_row(row, len(batch.done), len(found))
    return [batch.done[learner] for learner in sorted(batch.done)]


def submissions(course: Course, lab: str, learners: Iterable[str] | None = None) -> list[SubmittedFolder]:
    """What was handed in for a lab, by learner.

    Raises `BatchError` if there is nothing, or nothing of one of `learners`.
    """
    found = submitted_folders(course, lab)
    if learners is not None:
        names = set(learners)
        if missing := sorted(names - {folder.learner for folder in found}):
            raise BatchError(f"nothing handed in for {lab} by {', '.join(missing)}")
        found = [folder for folder in found if folder.learner in names]
    if not found:
        raise BatchError(f"nothing handed in for {lab}: no submitted/*/{lab}/{lab}.ipynb")
    return found


class Batch:
    """Grades a lab's submissions once. `done` has the rows that are finished, by learner."""

    def __init__(self, course: Course, lab: CourseLab, recorder: MarksWriter | None, rerun: bool) -> None:
        self.course, self.lab, self.recorder, self.rerun = course, lab, recorder, rerun
        self.results = Results(course.results)
        self.done: dict[str, BatchRow] = {}

    def rows(self, found: list[SubmittedFolder], workers: int, scheduler: str | None) -> Iterator[BatchRow]:
        """Every submission's row, in the order in which they are finished."""
        references = str(self.results.references)
        # Only a few jobs are made ahead, so that memory does not grow with the class.
        flying: dict[Future, tuple[BatchRow, Submission]] = {}
        with executor(workers, scheduler) as (pool, width, local):
            for folder in found:
                row = BatchRow(folder.learner, "graded", seen=list(folder.seen))
                submission = self._begin(row, folder)
                if submission is None:
                    yield row
                    continue
                flying[pool.submit(execute, submission.job, self.lab.mode, references if local
                                   else "")] = row, submission
                if len(flying) >= width:
                    yield from self._landed(flying)
            while flying:
                yield from self._landed(flying)

    def _begin(self, row: BatchRow, folder: SubmittedFolder) -> Submission | None:
        """The submission, if it must be run; `None` where its row is finished already."""
        learner = folder.learner
        with self._told_in(row):
            if folder.problem:
                raise UnreadableError(folder.problem)
            data = read_regular(folder.path)
            key = self.lab.key(digest_of(data))
            kept = None if self.rerun else self.results.get(key)
            if kept is not None and self.recorder is not None and self.recorder.has(learner, key):
                self._fill(row, kept, "kept")
                return None
            submission = Submission.of(data, self.lab, learner, placed(self.course, learner, self.lab.name))
            if kept is None:
                # `job` is a cached property: asked for here, what it raises goes into this row.
                submission.job  # noqa: B018
                return submission
            self._record(row, submission, kept)
        return None

    def _landed(self, flying: dict[Future, tuple[BatchRow, Submission]]) -> Iterator[BatchRow]:
        for future in wait(flying, return_when=FIRST_COMPLETED).done:
            row, submission = flying.pop(future)
            with self._told_in(row):
                result = future.result() | submission.facts
                self.results.put(submission.key, result)
                self._record(row, submission, result)
            yield row

    def _record(self, row: BatchRow, submission: Submission, result: dict[str, Any]) -> None:
        notes = self.recorder.record(submission, result) if self.recorder is not None else []
        self._fill(row, result, "graded")
        row.notes += notes

    def _fill(self, row: BatchRow, result: dict[str, Any], state: str) -> None:
        """Put a result's marks into a row; where a person gave points, those."""
        names = self.lab.checks
        row.state = state
        row.checks = {names[grade_id]: check["score"] for grade_id, check in result["checks"].items()}
        row.maximum = sum(check["points"] for check in result["checks"].values())
        row.review = [f"{names[g]}: {'; '.join(c['flags'])}" for g, c in result["checks"].items()
                      if c["review"]]
        row.notes += [*result["notes"], *result["told"], *([result["died"]] if result["died"] else [])]
        row.seconds, row.unprotected = result["seconds"], result["unprotected"]
        for mark in self.recorder.marks(row.learner) if self.recorder is not None else ():
            self._decided(row, mark)
        row.points = round(sum(score or 0.0 for score in row.checks.values()), 6)
        self.done[row.learner] = row

    def _decided(self, row: BatchRow, mark: Mark) -> None:
        """Put the points that a person gave into a row; its review keeps only what still waits for one."""
        name = self.lab.checks.get(mark.check)
        if name in row.checks and mark.by_hand is not None:
            row.checks[name] = mark.score
            if mark.waits:
                row.review.append(f"{name}: {BY_HAND}")
        if not mark.waits:
            row.review = [text for text in row.review if not text.startswith(f"{name}: ")]

    @contextlib.contextmanager
    def _told_in(self, row: BatchRow) -> Iterator[None]:
        """Put what is raised into the row, so that it ends this submission only.

        `NoSandbox` and `CancelledError` are raised further: without the sandbox no submission can be graded,
        and only a scheduler that is lost cancels one.
        """
        try:
            yield
            return
        except (NoSandbox, CancelledError):
            raise
        except UnreadableError as error:
            row.state, row.problem = "unreadable", str(error)
        except GradingFailed as error:
            row.state, row.problem = "failed", str(error)
        except Exception as error:  # noqa: BLE001
            # The row says it; one submission must never stop the others.
            row.state = "failed"
            row.problem = f"it could not be graded ({type(error).__name__}: {str(error)[:300]})"
        self.done[row.learner] = row
