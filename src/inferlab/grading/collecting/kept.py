"""Keeps every file that was handed in, as it came, in `collected/`.

A file's name there is made of its time, its content and the name that it came with, so no file is ever
overwritten. A file counts as handed in when its bytes were first collected.
"""

import os
import re
from datetime import UTC, datetime
from pathlib import Path

from inferlab.grading.course import Course, write_whole
from inferlab.grading.submission.submission import digest_of

from .incoming import Incoming

KEPT_TIME = "%Y%m%dT%H%M%SZ"
KEPT = re.compile(r"(?P<time>\d{8}T\d{6}Z)-[0-9a-f]{12}-")
"""How the name of a file in `collected/` begins: when it was handed in, and the hash of its bytes."""


def _folder(course: Course, lab: str, learner: str) -> Path:
    """The folder in `collected/` for a file: `LAB/LEARNER` where both are known, otherwise `held`."""
    collected = course.root / "collected"
    return collected / lab / learner if lab and learner else collected / "held"


def keep(course: Course, item: Incoming, lab: str, learner: str, time: datetime, sha: str) -> None:
    """Keep a file as it came, under the time when it was handed in; `lab` and `learner` are "" if unknown.

    Where both are known, a copy of the file that was held before is removed.
    """
    folder = _folder(course, lab, learner)
    folder.mkdir(parents=True, exist_ok=True)
    path, data = folder / kept_name(time, sha, item.name), item.data or b""
    if not path.exists() or path.stat().st_size != len(data):  # a full disk may have cut it short
        write_whole(path, data)
        os.utime(path, (item.received.timestamp(),) * 2)
    held = _folder(course, "", "")
    for copy in held.glob(f"*-{sha[:12]}-*") if folder != held else ():
        if digest_of(copy.read_bytes()) == sha:
            copy.unlink()


def keep_unknown(course: Course, learner: str, lab: str, target: Path) -> Path:
    """Copy to `collected/` a notebook that collecting did not put into `submitted/`; returns the copy's
    path."""
    data = target.read_bytes()
    copy = course.root / "collected" / lab / learner / f"found-in-submitted-{digest_of(data)[:12]}.ipynb"
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_bytes(data)
    return copy


def first_time(course: Course, lab: str, learner: str, time: datetime, sha: str) -> datetime:
    """The earliest time at which bytes with this digest arrived: `time`, or that of a copy that is kept.

    Copies are found by their content alone, because the learner may have chosen the file's name.
    """
    for folder in {_folder(course, lab, learner), _folder(course, "", "")}:
        for path in folder.glob(f"*-{sha[:12]}-*"):
            match = KEPT.match(path.name)
            if match and digest_of(path.read_bytes()) == sha:
                time = min(time, datetime.strptime(match["time"], KEPT_TIME).replace(tzinfo=UTC))
    return time


def kept_name(time: datetime, sha: str, name: str) -> str:
    """The name under which a file of these bytes is kept in `collected/`."""
    name = re.sub(r"[^\w.-]+", "_", without_prefix(name))
    # A file system counts a name's bytes, and a letter may take four of them.
    safe = name.encode()[-120:].decode("utf-8", "ignore").lstrip(".") or "file"
    return f"{time:{KEPT_TIME}}-{sha[:12]}-{safe}"


def without_prefix(name: str) -> str:
    """The name that a file in `collected/` came with."""
    while match := KEPT.match(name):
        name = name[match.end():]
    return name
