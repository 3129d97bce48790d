"""What lies in `submitted/` for a lab: each learner's notebook, and what is seen there and not graded.

Files come here from `inferlab collect`, from nbgrader's exchange and by hand, so anything may lie here under
any name. Nothing is opened, and no link is followed.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from inferlab.grading.course import Course, CourseError, in_utc
from inferlab.terminal import clean_name

from .files import UnreadableError, read_regular

TIMESTAMP = "%Y-%m-%d %H:%M:%S.%f UTC"
MOST_STAMP = 1_000
MOST_SEEN = 1_000
"""Entries of a learner's folder that are looked at. `submitted/` itself has as many as the class is large."""


@dataclass(frozen=True)
class SubmittedFolder:
    """One learner's folder for a lab.

    Attributes:
        learner: the folder's name in `submitted/`, as text for a person.
        path: where the notebook that is graded lies, or would lie.
        problem: why there is nothing to grade; "" where something lies at `path`.
        seen: what is not graded, each as a sentence.
    """

    learner: str
    path: Path
    problem: str = ""
    seen: tuple[str, ...] = ()


def submitted_folders(course: Course, lab: str) -> list[SubmittedFolder]:
    """What each learner handed in of a lab, in the order of their names, also where only something
    under another name was seen."""
    top, found = course.root / "submitted", []
    for name in sorted(_names(top, most=None)):
        if name.startswith("."):
            continue
        folder = top / name
        if not _is_folder(folder):
            if _notebook(name) and lab.casefold() in name.casefold():
                problem = f"submitted/{clean_name(name)} lies in no learner's folder: collect it"
                found.append(SubmittedFolder(clean_name(name), folder, problem))
            continue
        one = _of(folder, lab)
        if one is not None:
            found.append(one)
    return found


def _of(folder: Path, lab: str) -> SubmittedFolder | None:
    """A learner's hand-in of a lab; `None` where nothing in their folder has to do with it."""
    learner, path = clean_name(folder.name), folder / lab / f"{lab}.ipynb"
    try:
        folder.name.encode()
    except UnicodeEncodeError:
        return SubmittedFolder(learner, path, "the name of the folder in submitted/ is not UTF-8: rename it")
    try:
        others = [name for name in _names(folder) if name != lab and lab.casefold() in name.casefold()
                  and not name.startswith(".")]
        inside = list(_notebooks(folder / lab)) if _is_folder(folder / lab) else []
    except OSError as error:
        return SubmittedFolder(learner, path, f"it cannot be read: {error.strerror}")
    if (folder / lab).is_symlink():
        return SubmittedFolder(learner, path, f"{lab} is a link to somewhere else: it is not followed")
    seen = [f"{lab}/{name}" for name in inside if name != path.name] + others
    told = tuple(f"seen, not graded: {clean_name(name)}{_age(folder / name, path)}" for name in sorted(seen))
    if os.path.lexists(path):
        return SubmittedFolder(learner, path, seen=told)
    if os.path.lexists(folder / lab) or told:
        what = "; ".join(told) or "nothing that looks like a notebook"
        problem = f"there is no {lab}/{lab}.ipynb ({what}): collect the file, or give it this name"
        return SubmittedFolder(learner, path, problem)
    return None


def _names(folder: Path, most: int | None = MOST_SEEN) -> list[str]:
    """The names in a folder, at most so many (all if `None`); none where there is no folder."""
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in islice(entries, most)]
    except FileNotFoundError:
        return []


def _notebooks(folder: Path, below: str = "", depth: int = 2) -> Iterator[str]:
    """Paths, below `folder`, of what is called a notebook, in it and in folders in it."""
    for name in _names(folder / below):
        path = f"{below}{name}"
        if name.startswith("."):
            continue
        if _notebook(name):
            yield path
        elif depth and _is_folder(folder / path):
            yield from _notebooks(folder, f"{path}/", depth - 1)


def _notebook(name: str) -> bool:
    return ".ipynb" in name.casefold()


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _age(path: Path, graded: Path) -> str:
    """Says " (newer than what is graded)" of a file that was changed after the one that is graded."""
    try:
        return " (newer than what is graded)" if path.lstat().st_mtime > graded.lstat().st_mtime else ""
    except OSError:
        return ""


# -- when it was handed in -------------------------------------------------------------------------
def write_stamp(notebook: Path, received: datetime) -> None:
    """Write when a notebook was handed in, beside it, as nbgrader reads it."""
    notebook.with_name("timestamp.txt").write_text(received.strftime(TIMESTAMP), "utf-8")


def handed_in_at(path: Path) -> datetime | None:
    """The time (UTC) in a `timestamp.txt`; `None` where there is no file, or an empty one.

    Raises `CourseError` where the text is not a time: a person may have written it.
    """
    if not os.path.lexists(path):
        return None
    try:
        text = read_regular(path, MOST_STAMP).decode("utf-8-sig").strip()
        if not text:
            return None
        time, _, zone = text.rpartition(" ")
        if zone and zone[0].isalpha():  # as nbgrader writes it: 2027-01-15 23:59:00.000000 UTC
            return datetime.fromisoformat(time).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
        return in_utc(datetime.fromisoformat(text))
    except UnreadableError as error:
        raise CourseError(f"{path}: {error}") from error
    except (ValueError, OverflowError, ZoneInfoNotFoundError) as error:
        example = "2027-01-15 23:59:00 UTC"
        raise CourseError(f"{path}: '{text[:60]}' is not a time, for example {example}") from error
