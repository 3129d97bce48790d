"""Grades a lab's submissions: several at a time, each once, going on where a killed batch was.

Running and recording are apart. Running a submission (`execute`) gives plain JSON and happens anywhere: in threads here or
on a Dask cluster. Recording is nbgrader's own `autograde`, in this process only, which finds the result instead of running.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import nbformat

from .build import nbgrader_config, save_to_gradebook
from .course import Course
from .host import GradingFailed
from .limits import Limits
from .plan import job_key, make_job
from .reading import UnreadableError
from .report import BY_HAND
from .results import Results, shared_host
from .sourcebook import read_file, sanitized


class BatchError(RuntimeError):
    """The batch cannot begin; the message says why and what to do."""


@dataclass
class Row:
    """What happened to one submission. `state`: graded, kept (unchanged since it was graded), unreadable or failed."""

    student: str
    state: str
    points: float | None = None
    maximum: float | None = None
    checks: dict[str, float | None] = field(default_factory=dict)
    review: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    problem: str = ""
    seconds: float = 0.0
    unprotected: bool = False

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class _Work:
    row: Row
    job: dict[str, Any]
    key: str


def execute(job: dict[str, Any], mode: str, references: str = "") -> dict[str, Any]:
    """Run one job in this process's host; what a Dask worker is sent. Raises `GradingFailed` or `NoSandbox`."""
    return shared_host(mode).run(job, Path(references) if references else None)


def grade_lab(
    course: Course,
    lab: str,
    *,
    workers: int = 1,
    scheduler: str | None = None,
    students: Iterable[str] | None = None,
    mode: str = "sandbox",
    rerun: bool = False,
    record: bool = True,
    questions: Iterable[str] | None = None,
    limits: Limits | None = None,
    db_url: str | None = None,
    on_row: Callable[[Row, int, int], None] | None = None,
) -> list[Row]:
    """Grade what lies in `submitted/` for a lab.

    Args:
        workers: how many submissions run at once on this machine.
        scheduler: the address of a Dask scheduler to send submissions to instead.
        students: only these; everybody if None.
        mode: "sandbox", or "none" to run learners' code unprotected.
        rerun: run and record again what is graded and unchanged.
        record: write the gradebook and `autograded/`; False only computes (rows then show what would be recorded).
        questions: record only these checks' marks (names as in `check="..."`); all others stay until the next batch.
        limits: of each submission.
        db_url: the gradebook; the course's own SQLite file if None.
        on_row: called with each row, how many are done and how many there are.

    Returns:
        One row a submission, by student.

    Raises:
        BatchError: for no submissions, an unknown question, or a batch that is already running in this course.
        sandbox.NoSandbox: if mode is "sandbox" and the machine cannot do it.
    """
    source = nbformat.read(course.source(lab), as_version=4)
    known = {c.metadata.inferlab.check for c in source.cells if "check" in c.metadata.get("inferlab", {})}
    wanted = set(questions) if questions is not None else None
    if wanted is not None and wanted - known:
        raise BatchError(f"no question called {', '.join(sorted(wanted - known))}; {lab} has {', '.join(sorted(known))}")
    found = submissions(course, lab, students)
    with only_one(course):
        recorder = Recorder(course, lab, db_url or course.gradebook_url, mode, wanted, limits) if record else None
        results = Results(course.root / ".grading", mode)
        rows: dict[str, Row] = {}

        def done(row: Row) -> None:
            rows[row.student] = row
            if on_row is not None:
                on_row(row, len(rows), len(found))

        def todo() -> Iterator[_Work]:
            for student, path in found.items():
                try:
                    work = _plan(student, path, source, limits, mode)
                except UnreadableError as error:
                    done(Row(student, "unreadable", problem=str(error)))
                    continue
                if recorder is not None and not rerun and recorder.has(work):
                    _fill(work.row, source, results.get(work.job))
                    work.row.state = "kept"
                    recorder.decided(work.row)
                    done(work.row)
                    continue
                if rerun:
                    results.forget(work.job)
                yield work

        with _pool(workers, scheduler) as (pool, width, local):
            for work, result in _run(todo(), pool, width, results, mode, local):
                if isinstance(result, GradingFailed):
                    work.row.state, work.row.problem = "failed", str(result)
                else:
                    _fill(work.row, source, result)
                    if recorder is not None:
                        recorder.record(work)
                done(work.row)
    return [rows[student] for student in sorted(rows)]


def submissions(course: Course, lab: str, students: Iterable[str] | None = None) -> dict[str, Path]:
    """The handed-in notebooks of a lab by student. Raises `BatchError` if there is none, or none of a student's."""
    found = {path.parent.parent.name: path for path in sorted((course.root / "submitted").glob(f"*/{lab}/{lab}.ipynb"))}
    if students is not None:
        names = list(students)
        missing = [name for name in names if name not in found]
        if missing:
            raise BatchError(f"nothing handed in for {lab} by {', '.join(missing)}")
        found = {name: found[name] for name in names}
    if not found:
        raise BatchError(f"nothing handed in for {lab}: no submitted/*/{lab}/{lab}.ipynb")
    return found


def _plan(student: str, path: Path, source: Any, limits: Limits | None, mode: str) -> _Work:
    notebook, notes = sanitized(read_file(path), source)
    job = make_job(notebook, source, limits)
    return _Work(Row(student, "graded", notes=notes), job, job_key(job, mode))


def _fill(row: Row, source: Any, result: dict[str, Any] | None) -> None:
    """Put a result's marks into a row, by check's name."""
    names = {c.metadata.nbgrader.grade_id: c.metadata.inferlab.check
             for c in source.cells if "check" in c.metadata.get("inferlab", {})}
    if result is None:
        return
    row.checks = {names[grade_id]: check["score"] for grade_id, check in result["checks"].items()}
    row.points = round(sum(score or 0.0 for score in row.checks.values()), 6)
    row.maximum = sum(check["points"] for check in result["checks"].values())
    row.review = [f"{names[g]}: {'; '.join(c['flags'])}" for g, c in result["checks"].items() if c["review"]]
    row.notes += [result["died"]] if result["died"] else []
    row.seconds, row.unprotected = result["seconds"], result["unprotected"]


# -- running ---------------------------------------------------------------------------------------------------------
def _run(todo: Iterator[_Work], pool: Executor, width: int, results: Results, mode: str, local: bool
         ) -> Iterator[tuple[_Work, dict[str, Any] | GradingFailed]]:
    """Results as they come, with only a few jobs in flight, so that memory does not grow with the class."""
    flying: dict[Future, _Work] = {}
    references = str(results.folder / "references") if local else ""
    for work in todo:
        kept = results.get(work.job)
        if kept is not None:
            yield work, kept
            continue
        flying[pool.submit(execute, work.job, mode, references)] = work
        if len(flying) >= width:
            yield from _landed(flying, results)
    while flying:
        yield from _landed(flying, results)


def _landed(flying: dict[Future, _Work], results: Results) -> Iterator[tuple[_Work, dict[str, Any] | GradingFailed]]:
    for future in wait(flying, return_when=FIRST_COMPLETED).done:
        work = flying.pop(future)
        try:
            result = future.result()
        except GradingFailed as error:
            yield work, error
            continue
        results.put(work.job, result)
        yield work, result


@contextlib.contextmanager
def _pool(workers: int, scheduler: str | None) -> Iterator[tuple[Executor, int, bool]]:
    """An executor, how many jobs to keep in flight, and whether it runs on this machine."""
    if scheduler is None:
        with ThreadPoolExecutor(max_workers=workers, thread_name_prefix="grading") as pool:
            yield pool, workers + 1, True
        return
    from distributed import Client

    with Client(scheduler, timeout=20) as client:
        threads = sum(client.nthreads().values())
        if not threads:
            raise BatchError(f"the Dask scheduler at {scheduler} has no workers")
        yield client.get_executor(pure=False, retries=1), 2 * threads, False


@contextlib.contextmanager
def only_one(course: Course) -> Iterator[None]:
    """One batch at a time in a course; the lock goes with the process, however it ends."""
    folder = course.root / ".grading"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BatchError("another batch is grading in this course; wait for it to end") from None
        yield


# -- recording -----------------------------------------------------------------------------------------------------------
class Recorder:
    """Writes results into the gradebook by running nbgrader's own autograde, one student after another."""

    def __init__(self, course: Course, lab: str, db_url: str, mode: str, questions: set[str] | None,
                 limits: Limits | None = None):
        from nbgrader.apps import NbGraderAPI

        self.course, self.lab, self.db_url, self.questions = course, lab, db_url, questions
        self.done = course.root / ".grading" / "done" / lab
        self.done.mkdir(parents=True, exist_ok=True)
        save_to_gradebook(course, lab, db_url)
        config = nbgrader_config(course, course.root, db_url)
        config.SandboxExecute.sandbox = mode == "sandbox"
        if limits is not None:
            config.SandboxExecute.limits = limits.as_dict()
        config.NbGraderAPI.log_level = "ERROR"
        self.api = NbGraderAPI(config=config)

    def has(self, work: _Work) -> bool:
        """Whether exactly this is in the gradebook already."""
        path = self.done / f"{work.row.student}.json"
        written = self.course.root / "autograded" / work.row.student / self.lab / f"{self.lab}.ipynb"
        try:
            return written.exists() and json.loads(path.read_text())["key"] == work.key
        except (FileNotFoundError, ValueError):  # never recorded, or cut short by a full disk or a power cut
            return False

    def record(self, work: _Work) -> None:
        """Record one result; a failure is told in the row, and the student's earlier marks stay."""
        student = work.row.student
        others, by_hand = self._others(student), self._by_hand(student)
        result = self.api.autograde(self.lab, student, force=True, create=True)
        if not result["success"]:
            told = f"{result.get('error') or ''}\n{result.get('log') or ''}".splitlines()
            why = [line for line in told if re.match(r"[\w.]*(Error|Exception|Missing\w*)\b", line)] or ["see nbgrader's log"]
            work.row.state, work.row.problem = "failed", f"nbgrader could not record it: {why[0][:300]}"
            return
        self._restore(student, others)
        gone = by_hand.keys() - self._by_hand(student)
        work.row.notes += [f"{name}: the {by_hand[name]:g} points by hand were for an earlier answer: taken back" for name in sorted(gone)]
        self.decided(work.row)
        path = self.done / f"{student}.json"
        if others:  # the others' marks are still to be recorded
            path.unlink(missing_ok=True)
            return
        temporary = path.with_suffix(".part")
        temporary.write_text(json.dumps({"key": work.key, "when": time.time(), "notes": work.row.notes}))
        os.replace(temporary, path)

    def decided(self, row: Row) -> None:
        """Put into a row the points that a person gave, and leave in its review only what still waits for one."""
        if not row.checks:
            return
        with self._gradebook() as gradebook:
            for grade in self._grades(gradebook, row.student):
                name = grade.cell.name.removeprefix("check-")
                if grade.manual_score is not None:
                    row.checks[name] = float(grade.score)
                    if grade.needs_manual_grade:
                        row.review.append(f"{name}: {BY_HAND}")
                if not grade.needs_manual_grade:
                    row.review = [text for text in row.review if not text.startswith(f"{name}: ")]
        row.points = round(sum(score or 0.0 for score in row.checks.values()), 6)

    def _by_hand(self, student: str) -> dict[str, float]:
        """The points that a person gave, by check's name."""
        with self._gradebook() as gradebook:
            return {grade.cell.name.removeprefix("check-"): grade.manual_score for grade in self._grades(gradebook, student)
                    if grade.manual_score is not None}

    def _others(self, student: str) -> dict[str, tuple]:
        """The marks that must stay as they are when only some questions are graded again."""
        if self.questions is None:
            return {}
        with self._gradebook() as gradebook:
            return {g.cell.name: (g.auto_score, g.needs_manual_grade) for g in self._grades(gradebook, student)
                    if g.cell.name.removeprefix("check-") not in self.questions}

    def _restore(self, student: str, others: dict[str, tuple]) -> None:
        if not others:
            return
        with self._gradebook() as gradebook:
            for grade in self._grades(gradebook, student):
                if grade.cell.name in others:
                    grade.auto_score, grade.needs_manual_grade = others[grade.cell.name]
            gradebook.db.commit()

    def _gradebook(self) -> Any:
        from nbgrader.api import Gradebook

        return Gradebook(self.db_url)

    def _grades(self, gradebook: Any, student: str) -> list:
        from nbgrader.api import MissingEntry

        try:
            return list(gradebook.find_submission_notebook(self.lab, self.lab, student).grades)
        except MissingEntry:
            return []
