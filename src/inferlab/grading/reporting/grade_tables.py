"""Writes the table of grades that a learning platform imports: a new one, or the platform's own one filled
in.

A platform's own table has its columns, its identifiers and its maximum right already, so nothing in it is
changed but the grades. A new table gets its identifiers from what was collected, or else from the roster.
Whoever has no grade is left out of a new table and keeps what the platform's own table says.
"""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from inferlab.grading.course import Course, CourseError
from inferlab.grading.platforms import PLATFORMS, Platform
from inferlab.grading.roster import Learner, Roster
from inferlab.grading.submission.submission import placed
from inferlab.lab.identity import normalize

from .grades import Grade, inert

POINTS_ROW = "Points Possible"
"""What begins the line in which Canvas has the maximum of each column."""
NO_HAND_IN = "nothing handed in"


@dataclass
class GradeTable:
    """A table that was made, and what is not in it.

    Attributes:
        data: the file's bytes.
        written: whose grades are in it.
        left_out: learner -> why their grade is not.
        strangers: lines of the platform's table that name nobody on the roster.
    """

    data: bytes = b""
    written: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    strangers: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Source:
    """What a table is made from.

    Attributes:
        lab: the lab.
        platform: the platform's key in `PLATFORMS`.
        grades: learner -> their grade.
        roster: who is in the course.
        known: learner -> by what the platform knows them, as far as it was collected.
        column: the heading of the lab's column; "" for the usual one.
        out_of: the maximum on the platform; `None` for the lab's own, or the platform's own table's.
    """

    lab: str
    platform: str
    grades: Mapping[str, Grade]
    roster: Roster
    known: Mapping[str, Mapping[str, str]]
    column: str = ""
    out_of: float | None = None

    @property
    def about(self) -> Platform:
        """The platform."""
        return PLATFORMS[self.platform]

    def points(self, grade: Grade, maximum: float) -> str:
        """A grade's points on a scale that ends at `maximum`, with at most five decimals."""
        return plain_number(grade.total * maximum / grade.maximum if grade.maximum else 0.0)

    def learner(self, identity: str) -> Learner:
        """The learner of the roster, or one of whom only the id is known."""
        return next((one for one in self.roster.learners if one.id == identity), Learner(identity))

    def shared_user(self, learner: str) -> list[str]:
        """Who has the same number on the platform as this learner: then the number is nobody's."""
        user = self.known.get(learner, {}).get("user")
        return [other for other, about in self.known.items() if user and about.get("user") == user
                and other != learner]


def known_by(course: Course, lab: str, platform: str, learners: Sequence[str]) -> dict[str, dict[str, str]]:
    """Learner -> by what a platform knows them, for all whose latest work was collected from it."""
    about = {learner: placed(course, learner, lab).get("platforms", {}).get(platform) for learner in learners}
    return {learner: known for learner, known in about.items() if known}


def plain_number(value: float) -> str:
    """A number with at most five decimals, and none that say nothing."""
    return f"{value:.5f}".rstrip("0").rstrip(".")


# -- a new table ---------------------------------------------------------------------------------------------
def new_table(source: Source, handed_in: Sequence[str]) -> GradeTable:
    """A new table of a lab's grades. `handed_in`: who has work that is not graded yet."""
    table = GradeTable(left_out=_ungraded(source, handed_in))
    maximum = source.out_of or next((grade.maximum for grade in source.grades.values()), 0.0)
    column = {"column": source.column or source.lab, "maximum": plain_number(maximum)}
    headings = [heading.format(**column) for heading in source.about.columns]
    rows = [headings]
    if any(heading == "{column}" for heading in source.about.columns):
        rows.append([f"    {POINTS_ROW}", *[""] * (len(headings) - 2), plain_number(maximum)])
    for learner, grade in sorted(source.grades.items()):
        if others := source.shared_user(learner):
            table.left_out[learner] = f"{source.about.name}'s number is also that of {', '.join(others)}"
            continue
        values = _values(source, learner) | column | {"grade": source.points(grade, maximum)}
        missing = [name for name in ("user", "login") if not values[name]
                   and any(f"{{{name}}}" in form for form in source.about.columns.values())]
        if missing and "{id}" not in source.about.columns.values():
            table.left_out[learner] = (f"not collected from {source.about.name}, which gives it the number "
                                       "of a learner")
            continue
        rows.append([form.format(**values) for form in source.about.columns.values()])
        table.written.append(learner)
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(rows)
    table.data = stream.getvalue().encode("utf-8")
    return table


def _values(source: Source, learner: str) -> dict[str, str]:
    person, known = source.learner(learner), source.known.get(learner, {})
    first, last = person.first_and_last
    texts = {"id": person.id, "user": known.get("user", ""), "login": known.get("login") or person.id,
             "name": person.name, "first": first, "last": last, "email": person.email,
             "last_first": f"{last}, {first}" if first else last or person.id}
    return {field: str(inert(text)) for field, text in texts.items()}


def _ungraded(source: Source, handed_in: Sequence[str]) -> dict[str, str]:
    waiting = {learner: f"handed in, not graded yet: inferlab grade {source.lab}" for learner in handed_in}
    return {person.id: NO_HAND_IN for person in source.roster.learners
            if person.id not in source.grades} | waiting


# -- the platform's own table --------------------------------------------------------------------------------
def filled_table(source: Source, sheet: Path, handed_in: Sequence[str]) -> GradeTable:
    """The platform's own table at `sheet` with the grades in it, in its own encoding and form.

    Raises `CourseError` for a table that cannot be read, that has no such column, or whose maximum is not a
    number or another than the one that was asked for.
    """
    text, encoding = _decoded(sheet)
    first = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=first.count)
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise CourseError(f"{sheet.name} cannot be read as a table: {error}") from error
    if not rows:
        raise CourseError(f"{sheet.name} is empty")
    place = _grade_column(source, rows[0], sheet.name)
    shared = _maximum(source, rows, place, sheet.name)
    own = [n for n, heading in enumerate(rows[0]) if heading == source.about.maximum and source.about.maximum]
    table = GradeTable(left_out=_ungraded(source, handed_in))
    seen: dict[str, int] = {}
    for line, row in enumerate(rows[1:], start=2):
        if len(row) <= place or POINTS_ROW in row[0] or not any(cell.strip() for cell in row):
            continue
        who = _row_learners(source, rows[0][:place], row[:place])
        if len(who) != 1:
            told = " ".join(filter(None, row[:min(place, 3)]))
            table.strangers.append(f"line {line}: {told}" + (f" (it names {' and '.join(sorted(who))})"
                                                            if who else ""))
            continue
        learner = who.pop()
        if learner in seen:
            raise CourseError(f"{sheet.name}, lines {seen[learner]} and {line}: both are {learner}'s")
        seen[learner] = line
        if learner in source.grades:
            grade = source.grades[learner]
            maximum = _numeric(row[own[0]], sheet.name, line) if own else shared
            row[place] = source.points(grade, source.out_of or grade.maximum if maximum is None else maximum)
            table.written.append(learner)
    for learner in source.grades.keys() - seen.keys():
        table.left_out[learner] = f"no line in {sheet.name} is theirs"
    stream = io.StringIO()
    ends = "\r\n" if "\r\n" in text else "\n"
    if first.startswith('"'):
        csv.writer(stream, delimiter=delimiter, lineterminator=ends, quoting=csv.QUOTE_ALL).writerows(rows)
    else:
        csv.writer(stream, delimiter=delimiter, lineterminator=ends).writerows(rows)
    table.data = stream.getvalue().encode(encoding)
    return table


def _decoded(sheet: Path) -> tuple[str, str]:
    """The text of a table and its encoding: UTF-8 with or without a mark, or UTF-16, as Blackboard writes."""
    data = sheet.read_bytes()
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else (
        "utf-8-sig" if data.startswith(b"\xef\xbb\xbf") else "utf-8")
    try:
        return data.decode(encoding), encoding
    except UnicodeDecodeError as error:
        raise CourseError(f"{sheet.name} is neither UTF-8 nor UTF-16 ({error}): save it as "
                          "'CSV UTF-8'") from error


def _bare(heading: str) -> str:
    """A column's name without what a platform adds: Canvas the assignment's number, Blackboard the points."""
    return normalize(re.sub(r"\s*(\(\d+\)|\[Total Pts:.*)$", "", heading, flags=re.DOTALL))


def _grade_column(source: Source, headings: list[str], name: str) -> int:
    usual = next(heading for heading, form in source.about.columns.items() if form == "{grade}")
    wanted = source.column or (source.lab if "{" in usual else usual)
    found = [n for n,
             heading in enumerate(headings) if normalize(wanted) in (normalize(heading), _bare(heading))]
    if len(found) != 1:
        raise CourseError(f"{name} has {len(found) or 'no'} columns called '{wanted}'; say --column, one of: "
                          f"{', '.join(filter(None, headings))}")
    return found[0]


def _maximum(source: Source, rows: list[list[str]], place: int, name: str) -> float | None:
    """The column's maximum on the platform, as its heading or a line of maxima says; `None` where none does.
    """
    said = re.search(r"\[Total Pts: ([^ \]]+)", rows[0][place])
    line = next((n for n, row in enumerate(rows) if n and len(row) > place and POINTS_ROW in row[0]), None)
    text = said[1] if said else rows[line][place] if line is not None else ""
    maximum = _numeric(text, name, line + 1 if line is not None and not said else 1) if text.strip() else None
    if maximum is not None and source.out_of not in (None, maximum):
        raise CourseError(f"{name} says that the maximum is {plain_number(maximum)}: leave --out-of away")
    return maximum


def _numeric(text: str, name: str, line: int) -> float:
    try:
        value = float(text.replace(",", "."))
    except ValueError:
        value = 0.0
    if not 0 < value < 1e6:
        raise CourseError(f"{name}, line {line}: '{text}' is not a maximum of points")
    return value


def _row_learners(source: Source, headings: list[str], cells: list[str]) -> set[str]:
    """Whom the cells before a grade name: by the platform's number of a learner, or by any name on the
    roster."""
    usual = next((heading for heading, form in source.about.columns.items() if "{user}" in form), "")
    place = headings.index(usual) if usual in headings else 0 if usual else -1
    user = re.search(r"(\d+)\s*$", cells[place]) if place >= 0 else None
    found = {learner for learner, about in source.known.items()
             if user and about.get("user") == user[1] and not source.shared_user(learner)}
    texts = [cell for n, cell in enumerate(cells) if n != place and cell.strip()]
    texts += [f"{one} {other}" for one, other in pairwise(texts)]
    logins = {about["login"]: learner for learner, about in source.known.items() if about.get("login")}
    return found | {learner for text in texts
                    if (learner := source.roster.resolve(text) or logins.get(text.strip(), ""))}
