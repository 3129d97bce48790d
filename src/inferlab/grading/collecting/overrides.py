"""What an instructor says in place of the files: whose one is (`--assign`), and when learners handed in
(`--times`)."""

from datetime import datetime
from pathlib import Path

from inferlab.grading.course import CourseError, time_of
from inferlab.grading.roster import Roster
from inferlab.grading.tables import read_table

from .incoming import incoming


def assigned_files(paths: list[Path], assign: dict[str, str]) -> dict[str, str]:
    """File's label -> learner's id. Raises `CourseError` for an assignment that does not fit exactly one
    file."""
    if not assign:
        return {}
    files = [(item.label, item.name) for path in paths for item in incoming(path) if not item.ignored]
    assigned = {}
    for given, identity in assign.items():
        fits = [label for label, _ in files if label == given] or [label for label, name in files
                                                                   if name == given]
        if not fits:
            raise CourseError(f"--assign {given}: none of the files has this name")
        if len(fits) > 1:
            several = len(set(fits)) > 1
            what = f"give the whole name, for example {fits[0]}" if several else "collect one PATH at a time"
            raise CourseError(f"--assign {given} fits {len(fits)} files: {what}")
        assigned[fits[0]] = identity
    return assigned


def read_times(path: Path, roster: Roster) -> dict[str, datetime]:
    """Times of handing in from a CSV with the columns `id` (any of a learner's names) and `time` (ISO 8601,
    UTC unless it says otherwise). Raises `CourseError` for a line that cannot be used."""
    times: dict[str, datetime] = {}
    for where, row in read_table(path, ("id", "time")):
        identity = roster.resolve(row["id"])
        if identity is None:
            raise CourseError(f"{where}: '{row['id']}' is not in the roster")
        try:
            time = time_of(row["time"])
        except CourseError as error:
            raise CourseError(f"{where}: {error}") from error
        if times.setdefault(identity, time) != time:
            raise CourseError(f"{where}: a second time of {identity}")
    return times
