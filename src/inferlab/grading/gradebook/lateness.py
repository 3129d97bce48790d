"""Extensions and free days: what late submissions lose by each learner's own deadline.

`course.toml` has each lab's deadline, what a late day costs, and the free days of every learner.
`roster/extensions.csv` (`id,lab,until,days,reason`) has the extensions of single learners, and `late_days` in
the roster replaces the free days for one learner. Free days are used up in the order of the labs' deadlines,
so the same data always give the same penalties.

`set_penalties` writes extensions and penalties of a whole lab into the gradebook. `inferlab late` ends with
it. Where there is a roster, so do `inferlab grade` and `inferlab review` with `--set` or `--give`.
`record.set_penalty` computes a single penalty. It is called from `set_penalties` and whenever a submission is
recorded.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from inferlab.grading.course import MOST_DAYS, Course, CourseError, LatePolicy, time_of
from inferlab.grading.roster import Roster
from inferlab.grading.submission.submitted_folders import handed_in_at
from inferlab.grading.tables import read_table

from .database import Gradebook
from .record import DAY, naive, set_penalty, share_lost


@dataclass(frozen=True)
class Extension:
    """A learner's extension in one lab: a new deadline, or days after the lab's own."""

    until: datetime | None = None
    days: float = 0.0

    def deadline(self, due: datetime) -> datetime:
        """The learner's own deadline; never earlier than the lab's."""
        return max(due, self.until or due) + timedelta(days=self.days)


@dataclass(frozen=True)
class Allowance:
    """What a learner has in one lab.

    Attributes:
        deadline: the learner's own deadline, with extension and free days.
        late: how long after that they handed in.
        free_days: how many free days this lab has used up.
        share: the share (0 to 1) of what was earned that is lost. `inferlab late` prints it; the penalty in
            the gradebook is made by `record.set_penalty`.
    """

    deadline: datetime
    late: timedelta
    free_days: int
    share: float


def read_extensions(path: Path, roster: Roster, labs: list[str]) -> dict[tuple[str, str], Extension]:
    """(learner, lab) -> extension. A file that does not exist has none.

    Raises `CourseError` for a line that cannot be used.
    """
    if not path.exists():
        return {}
    found: dict[tuple[str, str], Extension] = {}
    for where, row in read_table(path, ("id", "lab"), ("until", "days", "reason")):
        identity, lab = roster.resolve(row["id"]), row["lab"]
        until, days = row.get("until", ""), row.get("days", "")
        if identity is None:
            raise CourseError(f"{where}: '{row['id']}' is not in the roster")
        if lab not in labs:
            raise CourseError(f"{where}: no lab called '{lab}'")
        if (identity, lab) in found:
            raise CourseError(f"{where}: a second extension of {identity} in {lab}")
        if not until and not days:
            raise CourseError(f"{where}: neither until nor days")
        try:
            extension = Extension(time_of(until) if until else None, float((days or "0").replace(",", ".")))
        except ValueError as error:
            raise CourseError(f"{where}: {error}") from error
        if not 0 <= extension.days < MOST_DAYS:
            raise CourseError(f"{where}: {days} days")
        found[identity, lab] = extension
    return found


def last_times(course: Course, roster: Roster, lab: str,
               until: str | None) -> Callable[[str], datetime | None]:
    """Learner -> until when their work is taken: `until` (a time, or "now"), or else their own deadline."""
    if until is not None:
        try:
            time = datetime.now(UTC) if until == "now" else time_of(until)
        except ValueError as error:
            raise CourseError(f"--until {until}: {error}") from error
        return lambda learner: time
    if lab not in course.due:
        raise CourseError(f"course.toml gives {lab} no deadline: say --until, for example --until now")
    extensions = read_extensions(course.extensions, roster, course.labs)
    return lambda learner: extensions.get((learner, lab), Extension()).deadline(course.due[lab])


def allowances(due: dict[str, datetime], policy: LatePolicy, received: dict[tuple[str, str], datetime],
               extensions: dict[tuple[str, str], Extension],
               roster: Roster) -> dict[tuple[str, str], Allowance]:
    """(learner, lab) -> what the learner has there, for every lab with a deadline that they handed in.

    Args:
        due: the labs' deadlines.
        policy: what a late day costs, and the free days.
        received: (learner, lab) -> when it was handed in.
        extensions: (learner, lab) -> extension.
        roster: whose `late_days` replace the free days.
    """
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


def received_times(course: Course) -> tuple[dict[tuple[str, str], datetime], list[str]]:
    """(learner, lab) -> when it was handed in, for all that lies in `submitted/` with a `timestamp.txt`.

    Also gives a sentence for each of these files that has no time in it.
    """
    times, problems = {}, []
    for path in sorted((course.root / "submitted").glob("*/*/timestamp.txt")):
        try:
            path.parent.parent.name.encode()
            time = handed_in_at(path)
        except UnicodeEncodeError:  # a folder that is no learner's; grading says so
            continue
        except CourseError as error:
            problems.append(str(error))
            continue
        if time is not None:
            times[path.parent.parent.name, path.parent.name] = time
    return times, problems


def set_penalties(course: Course, roster: Roster, lab: str,
                  db_url: str | None = None) -> dict[str, Allowance]:
    """Write the lab's deadline and every learner's extension and penalty into the gradebook.

    Penalties of submissions that are graded are set anew, so nothing need be graded again after a date was
    changed. Where the lab has no deadline, nobody loses points. Names and e-mail addresses of the roster are
    written into the gradebook, too.

    Returns:
        Learner -> what they have in this lab.

    Raises:
        CourseError: for a `timestamp.txt` that has no time in it. All other penalties are set first.
    """
    every: dict[tuple[str, str], Allowance] = {}
    received, problems = received_times(course)
    if lab in course.due:
        every = allowances(course.due, course.late, received,
                           read_extensions(course.extensions, roster, course.labs), roster)
    mine = {learner: allowance for (learner, where), allowance in every.items() if where == lab}
    with Gradebook(db_url or course.gradebook_url) as gradebook, gradebook.transaction():
        if not gradebook.set_deadline(lab, naive(course.due[lab]) if lab in course.due else None):
            return mine
        known = {learner for learner, _ in gradebook.hand_ins(lab)}
        for learner in sorted(known | mine.keys()):
            allowance = mine.get(learner)
            time = {"timestamp": naive(received[learner, lab])} if allowance else {}
            notebook = gradebook.hand_in(lab, learner, **time, extension=allowance.deadline - course.due[lab]
                                         if allowance else None)
            if allowance is None:
                gradebook.store_penalty(notebook, None)
            else:
                set_penalty(gradebook, course.late, lab, learner, notebook)
            if (person := roster.find(learner)) is not None:
                gradebook.set_name(learner, *person.first_and_last, person.email)
    if problems:
        raise CourseError("; ".join(problems))
    return mine


def answers_held_back(course: Course, lab: str, now: datetime | None = None) -> str:
    """Why the lab's own answers must not be shown yet, as a sentence; "" once the last deadline is over.

    The last deadline is the latest of anybody on the roster, with their extension and their free days. Later
    work is still taken, with what it loses for being late.
    """
    if lab not in course.due:
        return f"course.toml gives {lab} no deadline, so others may still hand in"
    due = course.due[lab]
    last, who = due, "everybody"
    roster = Roster.load(course.roster) if course.roster.exists() else Roster(())
    extensions = read_extensions(course.extensions, roster, course.labs)
    for learner in roster.learners:
        free = course.late.free_days if learner.late_days is None else learner.late_days
        own = extensions.get((learner.id, lab), Extension()).deadline(due) + free * DAY
        if own > last:
            last, who = own, learner.id
    if (now or datetime.now(UTC)) > last:
        return ""
    return f"{who} may hand in {lab} until {last:%Y-%m-%d %H:%M} UTC"
