"""nbgrader's gradebook, read and written as tables, without importing nbgrader.

The tables are nbgrader's own, which a test makes sure of. Only `inferlab_record` is ours. It has the key of
the result that each learner's marks in a lab were made from, and is written in the same transaction as the
marks.
"""

import contextlib
import hashlib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sql
from sqlalchemy import Boolean, Column, DateTime, Float, Interval, MetaData, String, Table, Text

from inferlab.grading.course import CourseError
from inferlab.grading.notebook import Notebook, grade_id


def _nbgraders(table: str, /, **columns: Any) -> Table:
    """A table of nbgrader's, with its `id` and those of its columns that are used here."""
    more: list[Column] = [Column(name, kind) for name, kind in columns.items()]
    return Table(table, MetaData(), Column("id", String, primary_key=True), *more)


STUDENT = _nbgraders("student", first_name=String, last_name=String, email=String)
ASSIGNMENT = _nbgraders("assignment", name=String, duedate=DateTime)
NOTEBOOK = _nbgraders("notebook", name=String, assignment_id=String)
CELL = _nbgraders("base_cell", name=String, notebook_id=String, type=String)
GRADE_CELL = _nbgraders("grade_cells", max_score=Float)
SOURCE_CELL = _nbgraders("source_cell", name=String, notebook_id=String)
SUBMITTED = _nbgraders("submitted_assignment", assignment_id=String, student_id=String, timestamp=DateTime,
                       extension=Interval)
SUBMITTED_NOTEBOOK = _nbgraders("submitted_notebook", assignment_id=String, notebook_id=String,
                                late_submission_penalty=Float)
GRADE = _nbgraders("grade", notebook_id=String, cell_id=String, auto_score=Float, manual_score=Float,
                   extra_credit=Float, needs_manual_grade=Boolean)
COMMENT = _nbgraders("comment", notebook_id=String, cell_id=String, auto_comment=Text)
CELLS = (CELL.join(NOTEBOOK, CELL.c.notebook_id == NOTEBOOK.c.id)
         .join(ASSIGNMENT, NOTEBOOK.c.assignment_id == ASSIGNMENT.c.id))
HANDED_IN = (SUBMITTED_NOTEBOOK.join(SUBMITTED, SUBMITTED_NOTEBOOK.c.assignment_id == SUBMITTED.c.id)
             .join(ASSIGNMENT, SUBMITTED.c.assignment_id == ASSIGNMENT.c.id))
OURS = MetaData()
RECORD = Table("inferlab_record", OURS, Column("lab", String(128), primary_key=True),
               Column("learner", String(128), primary_key=True),
               Column("result", String(64), nullable=False), Column("whole", Boolean, nullable=False))


@dataclass(frozen=True)
class Mark:
    """One learner's points in one check, as the gradebook has them.

    Attributes:
        id: of the row in the gradebook.
        check: the grade cell's name, `check-...`.
        auto: what grading gave; `None` where nothing was graded.
        by_hand: what a person gave; `None` where nobody did.
        waits: whether a person must look at it.
    """

    id: str
    learner: str
    lab: str
    check: str
    auto: float | None
    by_hand: float | None
    extra: float
    maximum: float
    waits: bool

    @property
    def graded(self) -> bool:
        """Whether grading or a person gave points. Otherwise a score of 0 says nothing."""
        return self.auto is not None or self.by_hand is not None

    @property
    def score(self) -> float:
        """The points that count: those of a person, or else those of grading; extra credit is added."""
        given = self.auto if self.by_hand is None else self.by_hand
        return 0.0 if given is None else given + self.extra


class Gradebook:
    """A connection to the gradebook at `url`; a context manager.

    The methods that write must be called within `transaction()`.
    """

    def __init__(self, url: str) -> None:
        self.engine = _engine(url)
        self.db: sql.Connection = self.engine.connect()
        self.ready = sql.inspect(self.db).has_table("grade")
        """Whether there is a gradebook; releasing a lab makes one."""
        if self.ready:
            OURS.create_all(self.db)
        self.db.commit()

    def __enter__(self) -> "Gradebook":
        return self

    def __exit__(self, *exc: object) -> None:
        self.db.close()
        self.engine.dispose()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Write what is written inside the block at its end: all of it, or nothing if the block raises.

        A block that only reads leaves nothing locked.
        """
        try:
            yield
            self.db.commit()
        finally:
            self.db.rollback()

    def hold(self, what: str) -> None:
        """Wait until no other grader holds `what`, and hold it until the transaction ends.

        Only PostgreSQL has several graders: an SQLite file belongs to one course, which one grader locks.
        """
        _hold(self.db, what)

    # -- reading -----------------------------------------------------------------------------------
    def marks(self, lab: str | None = None, learner: str | None = None) -> list[Mark]:
        """Every mark, by lab, learner and check; of one lab or learner where they are given."""
        wanted = (sql.select(GRADE.c.id, SUBMITTED.c.student_id, ASSIGNMENT.c.name, CELL.c.name,
                             GRADE.c.auto_score, GRADE.c.manual_score,
                             sql.func.coalesce(GRADE.c.extra_credit, 0.0), GRADE_CELL.c.max_score,
                             GRADE.c.needs_manual_grade)
                  .select_from(HANDED_IN.join(GRADE, GRADE.c.notebook_id == SUBMITTED_NOTEBOOK.c.id))
                  .join(CELL, GRADE.c.cell_id == CELL.c.id).join(GRADE_CELL, GRADE_CELL.c.id == CELL.c.id)
                  .order_by(ASSIGNMENT.c.name, SUBMITTED.c.student_id, CELL.c.name))
        if lab is not None:
            wanted = wanted.where(ASSIGNMENT.c.name == lab)
        if learner is not None:
            wanted = wanted.where(SUBMITTED.c.student_id == learner)
        return [Mark(*row) for row in self._rows(wanted)]

    def hand_ins(self, lab: str | None = None) -> dict[tuple[str, str], tuple[datetime | None, float]]:
        """(learner, lab) -> the time of the hand-in (UTC, or `None`) and the points lost for lateness."""
        wanted = (sql.select(SUBMITTED.c.student_id, ASSIGNMENT.c.name, SUBMITTED.c.timestamp,
                             sql.func.coalesce(SUBMITTED_NOTEBOOK.c.late_submission_penalty, 0.0))
                  .select_from(HANDED_IN))
        if lab is not None:
            wanted = wanted.where(ASSIGNMENT.c.name == lab)
        return {(learner, name): (time, penalty) for learner, name, time, penalty in self._rows(wanted)}

    def maxima(self) -> dict[str, float]:
        """Lab -> the points that its checks give."""
        wanted = (sql.select(ASSIGNMENT.c.name, sql.func.sum(GRADE_CELL.c.max_score))
                  .select_from(CELLS.join(GRADE_CELL, GRADE_CELL.c.id == CELL.c.id))
                  .group_by(ASSIGNMENT.c.name))
        return dict(tuple(row) for row in self._rows(wanted))

    def cells(self, lab: str, kind: str) -> dict[str, str]:
        """A lab's cells of a kind ("GradeCell", "SolutionCell"), name -> id; {} if it was never released."""
        wanted = (sql.select(CELL.c.name, CELL.c.id).select_from(CELLS)
                  .where(ASSIGNMENT.c.name == lab, NOTEBOOK.c.name == lab, CELL.c.type == kind))
        return dict(tuple(row) for row in self._rows(wanted))

    def fixed_cells(self, lab: str) -> set[str]:
        """The names of a lab's cells that nbgrader lets nobody change: all, from the first hand-in on."""
        wanted = (sql.select(SOURCE_CELL.c.name).join(NOTEBOOK, SOURCE_CELL.c.notebook_id == NOTEBOOK.c.id)
                  .join(ASSIGNMENT, NOTEBOOK.c.assignment_id == ASSIGNMENT.c.id)
                  .where(ASSIGNMENT.c.name == lab, NOTEBOOK.c.name == lab,
                         sql.exists().where(SUBMITTED_NOTEBOOK.c.notebook_id == NOTEBOOK.c.id)))
        return {name for name, in self._rows(wanted)}

    def results(self, lab: str, whole: bool = False) -> dict[str, str]:
        """Learner -> the key of the result behind their marks; with `whole` only where it gave them all."""
        graded = {mark.learner for mark in self.marks(lab) if mark.graded}
        rows = self._rows(sql.select(RECORD.c.learner, RECORD.c.result,
                                     RECORD.c.whole).where(RECORD.c.lab == lab))
        return {learner: result for learner, result, all_marks in rows if learner in graded
                and (all_marks or not whole)}

    def source_digest(self, lab: str) -> str:
        """The digest of the instructor's notebook whose cells the gradebook has; "" where it has none."""
        rows = self._rows(sql.select(RECORD.c.result).where(RECORD.c.lab == lab, RECORD.c.learner == ""))
        return rows[0][0] if rows and self.cells(lab, "GradeCell") else ""

    def late(self, notebook: str) -> timedelta:
        """How long after its learner's own deadline a submitted notebook came; 0 without a deadline."""
        wanted = (sql.select(SUBMITTED.c.timestamp, ASSIGNMENT.c.duedate, SUBMITTED.c.extension)
                  .select_from(HANDED_IN).where(SUBMITTED_NOTEBOOK.c.id == notebook))
        time, due, extension = self.db.execute(wanted).one()
        if time is None or due is None:
            return timedelta(0)
        return max(timedelta(0), time - due - (extension or timedelta(0)))

    def _rows(self, wanted: sql.Select) -> list[Any]:
        return list(self.db.execute(wanted)) if self.ready else []

    # -- writing -----------------------------------------------------------------------------------
    def set_result(self, lab: str, learner: str, result: str, whole: bool = True) -> None:
        """Note the result that the learner's marks come from, all of them if `whole`.

        Learner "" stands for the lab's own notebook, and `result` is then its digest.
        """
        self.db.execute(sql.delete(RECORD).where(RECORD.c.lab == lab, RECORD.c.learner == learner))
        self.db.execute(sql.insert(RECORD).values(lab=lab, learner=learner, result=result, whole=whole))

    def set_mark(self, mark_id: str, **values: Any) -> None:
        """Change a mark's columns."""
        self.db.execute(sql.update(GRADE).where(GRADE.c.id == mark_id).values(**values))

    def set_name(self, learner: str, first: str, last: str, email: str) -> None:
        """Set what formgrader shows of a learner."""
        names = {"first_name": first or None, "last_name": last or None, "email": email or None}
        self.db.execute(sql.update(STUDENT).where(STUDENT.c.id == learner).values(**names))

    def hand_in(self, lab: str, learner: str, **values: Any) -> str:
        """Note that a learner handed in, and return the submitted notebook's id.

        Student, submission (with these columns) and notebook are made where they are missing.
        """
        self._put(STUDENT, {"id": learner}, {})
        assignment = self._one(sql.select(ASSIGNMENT.c.id).where(ASSIGNMENT.c.name == lab))
        notebook = self._one(sql.select(NOTEBOOK.c.id).where(NOTEBOOK.c.assignment_id == assignment,
                                                             NOTEBOOK.c.name == lab))
        submitted = self._put(SUBMITTED, {"assignment_id": assignment, "student_id": learner}, values)
        return self._put(SUBMITTED_NOTEBOOK, {"assignment_id": submitted, "notebook_id": notebook}, {})

    def mark(self, notebook: str, cell: str) -> str:
        """The id of a submitted notebook's mark for a grade cell, which is made where it is missing."""
        return self._put(GRADE, {"notebook_id": notebook, "cell_id": cell}, {}, {"needs_manual_grade": True})

    def set_comment(self, notebook: str, cell: str, text: str | None) -> None:
        """Set grading's own comment on a solution cell."""
        self._put(COMMENT, {"notebook_id": notebook, "cell_id": cell}, {"auto_comment": text})

    def store_penalty(self, notebook: str, points: float | None) -> None:
        """Set what a submitted notebook loses for being late."""
        self.db.execute(sql.update(SUBMITTED_NOTEBOOK).where(SUBMITTED_NOTEBOOK.c.id == notebook)
                        .values(late_submission_penalty=points))

    def set_deadline(self, lab: str, due: datetime | None) -> bool:
        """Set a lab's deadline (UTC, without a zone); returns whether the gradebook has the lab."""
        change = sql.update(ASSIGNMENT).where(ASSIGNMENT.c.name == lab).values(duedate=due)
        return self.ready and self.db.execute(change).rowcount > 0

    def _one(self, wanted: sql.Select) -> Any:
        row = self.db.execute(wanted).first()
        return row[0] if row is not None else None

    def _put(self, table: Table, where: dict[str, Any], values: dict[str, Any],
             fresh: dict[str, Any] | None = None) -> str:
        """The id of the row with the columns `where`, now with `values`; if missing, made with `fresh`."""
        found = self._one(sql.select(table.c.id).filter_by(**where))
        if found is None:
            row = {"id": uuid.uuid4().hex} | where | (fresh or {}) | values
            self.db.execute(sql.insert(table).values(**row))
            return row["id"]
        if values:
            self.db.execute(sql.update(table).where(table.c.id == found).values(**values))
        return found


@contextlib.contextmanager
def only_writer(url: str) -> Iterator[None]:
    """Let graders in other copies of the course wait while this one changes the gradebook's cells."""
    engine = _engine(url)
    try:
        with engine.connect() as connection:
            _hold(connection, "cells")
            yield
    finally:
        engine.dispose()


def _engine(url: str) -> sql.Engine:
    try:
        return sql.create_engine(url)
    except (sql.exc.ArgumentError, ModuleNotFoundError) as error:
        raise CourseError(f"the gradebook's address cannot be used: {error}") from error


def _hold(connection: sql.Connection, what: str) -> None:
    """Take PostgreSQL's advisory lock for `what`; it ends with the transaction or the connection."""
    if connection.dialect.name == "postgresql":
        key = int.from_bytes(hashlib.sha256(what.encode()).digest()[:8], signed=True)
        connection.execute(sql.select(sql.func.pg_advisory_xact_lock(key)))


def other_cells(gradebook: Gradebook, lab: str, source: Notebook) -> str:
    """Which cells a lab's notebook has more or less than the gradebook's, once those are fixed, or ""."""
    fixed, now = gradebook.fixed_cells(lab), set(filter(None, map(grade_id, source["cells"])))
    if not fixed or fixed == now:
        return ""
    changes = [f"{sign} {name}" for sign, names in (("-", fixed - now), ("+", now - fixed))
               for name in sorted(names)]
    return (f"{lab} has other graded cells than when its first submission came in: {', '.join(changes)}. "
            "The gradebook keeps them as they were: put them back, or give the changed lab a name of its own")
