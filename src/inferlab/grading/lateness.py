"""Deadlines, extensions and late days: data in, penalties in the gradebook out.

`course.toml` has each lab's deadline and the policy; `roster/extensions.csv` (`id,lab,until,days,reason`) has what one
learner was given; the roster's `late_days` overrides the course's free days. Free days are used up in order of the
labs' deadlines, so the same data always give the same penalties.
"""

import csv
import io
import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from nbgrader.plugins import LateSubmissionPlugin

from .course import Course, CourseError, LatePolicy, read_text
from .roster import Roster

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Extension:
    """What one learner was given in one lab: a new deadline, or days on top of the lab's own."""

    until: datetime | None = None
    days: float = 0.0

    def deadline(self, due: datetime) -> datetime:
        """The learner's own deadline; never earlier than the lab's."""
        return max(due, self.until or due) + timedelta(days=self.days)


@dataclass(frozen=True)
class Allowance:
    """A learner's deadline in a lab after extension and free days, how late they were, and what it costs."""

    deadline: datetime
    late: timedelta
    free_days: int
    share: float


def read_extensions(path: Path, roster: Roster, labs: list[str]) -> dict[tuple[str, str], Extension]:
    """The extensions by (learner, lab); an absent file is none. Raises `CourseError` for a line that cannot be used."""
    if not path.exists():
        return {}
    found: dict[tuple[str, str], Extension] = {}
    for number, row in enumerate(csv.DictReader(io.StringIO(read_text(path))), start=2):
        where = f"{path.name}, line {number}"
        identity, lab = roster.resolve(row.get("id") or ""), (row.get("lab") or "").strip()
        until, days = (row.get("until") or "").strip(), (row.get("days") or "").strip()
        if identity is None:
            raise CourseError(f"{where}: '{row.get('id')}' is not in the roster")
        if lab not in labs:
            raise CourseError(f"{where}: no lab called '{lab}'")
        if (identity, lab) in found:
            raise CourseError(f"{where}: a second extension of {identity} in {lab}")
        if not until and not days:
            raise CourseError(f"{where}: neither until nor days")
        try:
            time = datetime.fromisoformat(until) if until else None
            extension = Extension(time.replace(tzinfo=time.tzinfo or UTC) if time else None, float(days or 0))
        except ValueError as error:
            raise CourseError(f"{where}: {error}") from error
        if not 0 <= extension.days < 1000:
            raise CourseError(f"{where}: {days} days")
        found[identity, lab] = extension
    return found


def allowances(due: dict[str, datetime], policy: LatePolicy, received: dict[tuple[str, str], datetime],
               extensions: dict[tuple[str, str], Extension], roster: Roster) -> dict[tuple[str, str], Allowance]:
    """For each (learner, lab) that was handed in and has a deadline: the learner's deadline and the share that is lost."""
    free = {learner.id: policy.free_days if learner.late_days is None else learner.late_days
            for learner in roster.learners}
    found = {}
    for lab in sorted(due, key=lambda name: (due[name], name)):
        for learner in sorted(who for who, where in received if where == lab):
            deadline = extensions.get((learner, lab), Extension()).deadline(due[lab])
            days = max(0, math.ceil((received[learner, lab] - deadline) / DAY))
            used = min(days, free.get(learner, policy.free_days))
            free[learner] = free.get(learner, policy.free_days) - used
            deadline += used * DAY
            late = max(timedelta(0), received[learner, lab] - deadline)
            found[learner, lab] = Allowance(deadline, late, used, share_lost(policy, late))
    return found


def share_lost(policy: LatePolicy, late: timedelta) -> float:
    """The share of what was earned that is lost for being `late`: per started day, up to the policy's most."""
    return min(policy.at_most, policy.per_day * math.ceil(late / DAY)) if late > timedelta(0) else 0.0


def received_times(course: Course) -> dict[tuple[str, str], datetime]:
    """When each (learner, lab) in `submitted/` was handed in, from its timestamp: a time as nbgrader reads it, which may
    be written by hand. Raises `CourseError` for one that is not a time."""
    from nbgrader.utils import parse_utc

    times = {}
    for path in sorted((course.root / "submitted").glob("*/*/timestamp.txt")):
        text = read_text(path).strip()
        try:
            if text:  # nbgrader takes an empty one for none
                times[path.parent.parent.name, path.parent.name] = parse_utc(text).replace(tzinfo=UTC)
        except (ValueError, OverflowError) as error:
            raise CourseError(f"{path}: '{text[:60]}' is not a time, for example 2027-01-15 23:59:00 UTC") from error
    return times


def apply(course: Course, roster: Roster, lab: str, db_url: str | None = None) -> dict[str, Allowance]:
    """Write the lab's deadline, every learner's extension and penalty into the gradebook; returns them by learner.

    Penalties of what is already graded are set anew, so a changed extension needs no grading.
    """
    from nbgrader.api import Gradebook, MissingEntry

    if lab not in course.due:
        return {}
    extensions = read_extensions(course.extensions, roster, course.labs)
    received = received_times(course)
    every = allowances(course.due, course.late, received, extensions, roster)
    mine = {learner: allowance for (learner, where), allowance in every.items() if where == lab}
    with Gradebook(db_url or course.gradebook_url) as gradebook:
        gradebook.update_or_create_assignment(lab, duedate=_naive(course.due[lab]))
        for learner, allowance in mine.items():
            gradebook.update_or_create_student(learner)
            # Before anything is graded as well: nbgrader's own autograde then knows the extension.
            submission = gradebook.update_or_create_submission(lab, learner, timestamp=_naive(received[learner, lab]))
            submission.extension = allowance.deadline - course.due[lab]
            gradebook.db.commit()
            try:
                notebook = gradebook.find_submission_notebook(lab, lab, learner)
            except MissingEntry:
                continue
            notebook.late_submission_penalty = round(notebook.score * allowance.share, 6) or None
            gradebook.db.commit()
    return mine


def _naive(time: datetime) -> datetime:
    return time.astimezone(UTC).replace(tzinfo=None)


class LatePolicyPlugin(LateSubmissionPlugin):
    """nbgrader's hook for a late submission's penalty, by the policy in `course.toml`."""

    def late_submission_penalty(self, student_id: str, score: float, total_seconds_late: float) -> float:
        """The points lost by a submission that earned `score` and came `total_seconds_late` after its own deadline."""
        converter = self.parent
        while not hasattr(converter, "coursedir"):
            converter = converter.parent
        policy = Course.open(converter.coursedir.root).late
        return round(score * share_lost(policy, timedelta(seconds=total_seconds_late)), 6)
