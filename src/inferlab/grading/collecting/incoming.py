"""Finds handed-in files in folders and zips from learning platforms. No name, size or link in them is
trusted.

Nothing is unpacked onto the disk. The members of a zip are read into memory one at a time, up to a limit, and
no file is opened by a name that a zip gives. A file that cannot be read is passed on with the reason.
"""

import functools
import os
import pwd
import stat
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path, PurePosixPath

from inferlab.grading.platforms import IGNORED_NAMES, Heard, nobody_hands_in
from inferlab.grading.submission.files import MEGABYTE, UnreadableError, read_regular, too_large
from inferlab.terminal import clean_name

from .export_lists import LIST, ExportLists, is_list

MAX_FILE = 128 * MEGABYTE
MAX_ARCHIVE_TOTAL = 4096 * MEGABYTE
MAX_MEMBERS = 20_000
MAX_RATIO = 200
MAX_DEPTH = 2


@dataclass(frozen=True)
class Incoming:
    """One handed-in file.

    Attributes:
        label: where it was found, for people: `moodle.zip/José_12_assignsubmission_file_/lab.ipynb`.
        parts: the pieces of its path below what `collect` was given; the file's name comes last. They are
            compared with names, and no file is opened by them.
        data: its bytes; `None` where it is ignored or `problem` says why it was not read.
        received: its time in the zip or folder. A zip says no zone: the time is taken as UTC.
        problem: why it cannot be used; "" when it can.
        ignored: whether nobody hands in such a file: a checkpoint, or a file that a desktop or a platform
            made for itself.
        entry: what a list that the platform put beside the file says of it; `None` where there is none.
        account: the system account that it belongs to on this machine; "" for a file in a zip.
    """

    label: str
    parts: tuple[str, ...]
    data: bytes | None
    received: datetime
    problem: str = ""
    ignored: bool = False
    entry: Heard | None = None
    account: str = ""

    @property
    def name(self) -> str:
        """The file's own name; "" for the zip that `collect` was given, whose name says nothing of a learner.
        """
        return self.parts[-1] if self.parts else ""


def incoming(path: Path) -> Iterator[Incoming]:
    """Every file at `path`: a folder, a zip or a single file. A zip and the zips in it are opened, no deeper.

    Raises `FileNotFoundError` when there is nothing at `path`.
    """
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    lists = ExportLists()
    for item in _folder(path) if path.is_dir() else _file(path, (path.name,), path.name, given=True):
        if item.data is not None and is_list(item.parts):
            problem = lists.add(item.parts, item.data)
            yield replace(item, data=None, ignored=not problem, problem=problem)
            continue
        submitters = lists.about(item.parts)
        for entry in submitters:
            who = f" ({clean_name(entry.names[0])})" if len(submitters) > 1 else ""
            yield replace(item, entry=entry, label=item.label + who)
        if not submitters:
            yield item


def _folder(top: Path) -> Iterator[Incoming]:
    for folder, folders, files in os.walk(top, followlinks=False):
        linked = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        folders[:] = sorted(name for name in folders if name not in IGNORED_NAMES and name not in linked)
        for name in sorted(files + linked, key=lambda name: (name != LIST, name)):
            path = Path(folder) / name
            parts = path.relative_to(top).parts
            yield from _file(path, parts, "/".join(parts))


def _file(path: Path, parts: tuple[str, ...], label: str, given: bool = False) -> Iterator[Incoming]:
    name = clean_name(label)
    try:
        info = path.lstat()
    except OSError as error:
        yield Incoming(name, parts, None, datetime.now(UTC), f"it cannot be read: {error.strerror}")
        return
    received = _file_time(info.st_mtime)
    if nobody_hands_in(parts):
        yield Incoming(name, parts, None, received, ignored=True)
    elif stat.S_ISREG(info.st_mode) and zipfile.is_zipfile(path):
        # The zip that `collect` was given is a platform's download: its name names nobody. The name of any
        # other zip may name its learner.
        yield from _archive(path, () if given else parts, label, received, depth=1)
    else:
        try:
            yield Incoming(name, parts, read_regular(path, MAX_FILE), received, account=_account(info.st_uid))
        except UnreadableError as error:
            yield Incoming(name, parts, None, received, str(error))


def _archive(source: Path | BytesIO, parts: tuple, label: str, received: datetime,
             depth: int) -> Iterator[Incoming]:
    """The members of a zip; `parts` is what comes before their own paths."""
    try:
        with zipfile.ZipFile(source) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
            members.sort(key=lambda member: not member.filename.endswith(LIST))
            total = sum(member.file_size for member in members)
            if len(members) > MAX_MEMBERS or total > MAX_ARCHIVE_TOTAL:
                problem = (f"a zip of {len(members)} files and {total // MEGABYTE} MB unpacked: over the "
                           f"limits of {MAX_MEMBERS} files and {MAX_ARCHIVE_TOTAL // MEGABYTE} MB")
                yield Incoming(clean_name(label), parts, None, received, problem)
                return
            budget = MAX_ARCHIVE_TOTAL
            for member in members:
                for item in _member(archive, member, parts, label, depth):
                    budget -= len(item.data or b"")
                    yield item
                    if budget < 0:
                        yield Incoming(clean_name(label), parts, None, received,
                                       "unpacks to more than it says: reading stopped")
                        return
    except Exception as error:  # noqa: BLE001 - said in the report: what a broken zip raises has no end
        yield Incoming(clean_name(label), parts, None, received, f"a damaged zip: {error}")


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, above: tuple, label: str,
            depth: int) -> Iterator[Incoming]:
    pieces = tuple(p for p in PurePosixPath(member.filename.replace("\\", "/")).parts
                   if p not in ("/", "..", "."))
    parts = (*above, *(pieces or ("unnamed",)))
    name = clean_name(f"{label}/{member.filename}")
    received = _zip_time(member)
    if nobody_hands_in(parts):
        yield Incoming(name, parts, None, received, ignored=True)
        return
    problem = _member_problem(member)
    data = b""
    if not problem:
        try:
            with archive.open(member) as stream:
                data = stream.read(MAX_FILE + 1)
        except Exception as error:  # noqa: BLE001 - as in `_archive`; each way of packing raises its own
            problem = f"damaged in the zip: {error}"
        else:
            problem = too_large(len(data), MAX_FILE) if len(data) > MAX_FILE else ""
    if problem:
        yield Incoming(name, parts, None, received, problem)
    elif data[:4] == b"PK\x03\x04" and zipfile.is_zipfile(BytesIO(data)):
        if depth >= MAX_DEPTH:
            yield Incoming(name, parts, None, received, "a zip in a zip in a zip: not opened")
        else:
            yield from _archive(BytesIO(data), parts, f"{label}/{member.filename}", received, depth + 1)
    else:
        yield Incoming(name, parts, data, received)


def _member_problem(member: zipfile.ZipInfo) -> str:
    if member.flag_bits & 1:
        return "locked with a password"
    if (member.external_attr >> 16) & 0o170000 == 0o120000:
        return "a link to somewhere else: not followed"
    if member.file_size > MAX_FILE:
        return too_large(member.file_size, MAX_FILE)
    if member.file_size > MEGABYTE and member.file_size > MAX_RATIO * max(member.compress_size, 1):
        return f"a zip bomb: {member.compress_size:,} bytes that unpack to {member.file_size:,}"
    return ""


@functools.cache
def _account(uid: int) -> str:
    """The name of a system account; "" where this machine has none of this number."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return ""


def _file_time(seconds: float) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return datetime(1980, 1, 1, tzinfo=UTC)


def _zip_time(member: zipfile.ZipInfo) -> datetime:
    try:
        return datetime(*member.date_time, tzinfo=UTC)
    except ValueError:
        return datetime(1980, 1, 1, tzinfo=UTC)
