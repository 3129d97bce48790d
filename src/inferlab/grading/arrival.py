"""When a file was handed in: by the platform's word, the file's own, and the name under which a copy of it is kept."""

import csv
import hashlib
import io
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from .course import CourseError, in_utc, read_text
from .incoming import Incoming
from .reading import HandedIn
from .roster import Roster

KEPT_TIME = "%Y%m%dT%H%M%SZ"
KEPT = re.compile(r"(?P<time>\d{8}T\d{6}Z)-[0-9a-f]{12}-")
"""How the name of a file in `collected/` begins: when it was handed in, and its content's hash."""


def own_time(handed_in: HandedIn | None, by_platform: datetime | None, item: Incoming, due: datetime | None) -> tuple[datetime, str]:
    """When a file says that it was handed in, and what the instructor should know about that time.

    The time in a name that the platform made comes first, then the file's own stamp, then the file's time. A stamp is
    the learner's own word. Where it alone makes a file one that came in time, the note says so.
    """
    if by_platform is not None:
        return by_platform, ""
    about = handed_in.metadata.get("inferlab") if handed_in is not None else None
    stamp = about.get("submitted") if isinstance(about, dict) else None
    if not isinstance(stamp, str):
        return item.received, ""
    try:
        time = in_utc(datetime.fromisoformat(stamp))
    except (ValueError, OverflowError):
        return item.received, "its own time of handing in cannot be read: the file's time counts"
    if time > max(item.received, datetime.now(UTC)) + timedelta(days=1):
        return item.received, f"says it was handed in at {time.isoformat()}, which is still to come: the file's time counts"
    if due is not None and time <= due < item.received:
        return time, (f"in time by its own stamp ({time.isoformat(timespec='seconds')}) only, the file's time is "
                      f"{item.received.isoformat(timespec='seconds')}: compare with the platform's list (collect --times)")
    return time, ""


def first_time(folders: Iterable[Path], time: datetime, sha: str) -> datetime:
    """The earliest time at which these bytes arrived: `time`, or that of a copy in one of these folders of `collected/`.

    A copy is known by its content. The file's name, which the learner may have chosen, decides nothing.
    """
    for path in (path for folder in folders for path in folder.glob(f"*-{sha[:12]}-*")):
        match = KEPT.match(path.name)
        if match and hashlib.sha256(path.read_bytes()).hexdigest() == sha:
            time = min(time, datetime.strptime(match["time"], KEPT_TIME).replace(tzinfo=UTC))
    return time


def whole(time: datetime) -> datetime:
    """A time in whole seconds, as names in `collected/` have it."""
    return time.replace(microsecond=0)


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


def read_times(path: Path, roster: Roster) -> dict[str, datetime]:
    """Times of handing in from a CSV with the columns `id` (any of a learner's names) and `time` (ISO 8601, UTC unless
    it says otherwise). Raises `CourseError` for a line that cannot be used."""
    times = {}
    for number, row in enumerate(csv.DictReader(io.StringIO(read_text(path))), start=2):
        identity = roster.resolve(row.get("id") or "")
        try:
            time = datetime.fromisoformat((row.get("time") or "").strip())
        except ValueError as error:
            raise CourseError(f"{path.name}, line {number}: {error}") from error
        if identity is None:
            raise CourseError(f"{path.name}, line {number}: '{row.get('id')}' is not in the roster")
        times[identity] = in_utc(time)
    return times
