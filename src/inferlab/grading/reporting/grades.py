"""Everybody's grades as the gradebook has them, who handed in but has none, and the table of them."""

import csv
import io
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from inferlab.grading.course import Course, write_whole
from inferlab.grading.gradebook.database import Gradebook
from inferlab.grading.gradebook.record import grading_notes
from inferlab.grading.notebook import load
from inferlab.grading.roster import Learner, Roster
from inferlab.grading.submission.files import UnreadableError, read_regular
from inferlab.grading.submission.submission import digest_of
from inferlab.grading.submission.submitted_folders import SubmittedFolder, submitted_folders

COLUMNS = ("learner", "name", "email", "lab", "score", "penalty", "total", "maximum", "received",
           "needs_review", "notes")


@dataclass(frozen=True)
class Grade:
    """One learner in one lab. `score` is before the penalty for lateness, `total` after it."""

    learner: str
    lab: str
    score: float
    penalty: float
    total: float
    maximum: float
    received: str
    needs_review: bool


def grades(course: Course, lab: str | None = None, db_url: str | None = None) -> list[Grade]:
    """Every graded submission, by lab and learner; of one lab when it is given."""
    with Gradebook(db_url or course.gradebook_url) as gradebook:
        marks, handed_in, maxima = gradebook.marks(lab), gradebook.hand_ins(lab), gradebook.maxima()
    rows = []
    for who, (time, penalty) in handed_in.items():
        mine = [mark for mark in marks if (mark.learner, mark.lab) == who]
        if not any(mark.graded for mark in mine):
            continue
        score = round(sum(mark.score for mark in mine), 6)
        received = time.isoformat(timespec="seconds") + "+00:00" if time else ""
        rows.append(Grade(*who, score, penalty, max(0.0, score - penalty), maxima[who[1]], received,
                          any(mark.waits for mark in mine)))
    return sorted(rows, key=lambda row: (row.lab, row.learner))


def not_graded(course: Course, rows: list[Grade], lab: str | None = None) -> list[tuple[str, str]]:
    """(learner, lab) of what lies in `submitted/` and has no row in `rows`, or one of an earlier file; of one
    lab when it is given."""
    graded = {(row.learner, row.lab) for row in rows}
    return [(folder.learner, name) for name in ([lab] if lab else course.labs)
            for folder in submitted_folders(course, name)
            if (folder.learner, name) not in graded or _changed(course, name, folder)]


def _changed(course: Course, lab: str, folder: SubmittedFolder) -> bool:
    """Whether another file lies in `submitted/` than the one that was graded, as far as that was noted."""
    path = course.autograded(folder.learner, lab)
    noted = load(path)["metadata"].get("inferlab_grading", {}).get("file") if path.is_file() else None
    if noted is None:
        return False
    try:
        return bool(folder.problem) or digest_of(read_regular(folder.path)) != noted
    except UnreadableError:
        return True


# -- as a table that a spreadsheet reads -----------------------------------------------------------
def export_rows(course: Course, grades: Iterable[Grade]) -> list[dict[str, Any]]:
    """The rows of the table: grades, names and e-mail addresses of the roster, and notes of grading."""
    roster = Roster.load(course.roster) if course.roster.exists() else Roster(())
    known = {learner.id: learner for learner in roster.learners}
    rows = []
    for grade in grades:
        learner = known.get(grade.learner, Learner(grade.learner))
        row = asdict(grade) | {"name": learner.name, "email": learner.email,
                               "notes": "; ".join(grading_notes(course, grade.lab, grade.learner))}
        rows.append({column: row[column] for column in COLUMNS})
    return rows


def write_csv(rows: Iterable[dict[str, Any]], path: Path) -> None:
    """`grades.csv`: UTF-8 with a byte order mark, so that a spreadsheet reads names in every alphabet."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({column: inert(value) for column, value in row.items()} for row in rows)
    write_whole(path, stream.getvalue().encode("utf-8-sig"))


def inert(value: object) -> object:
    """A text that a spreadsheet would run as a formula, made text."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
