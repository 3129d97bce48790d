"""Finds handed-in files in folders and zips from learning platforms, without trusting a name, a size or a link in them.

Nothing is unpacked: a zip's members are read into memory one at a time, up to a limit, and their names are only ever
labels. What cannot be read comes out with the reason.
"""

import os
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path, PurePosixPath

MEGABYTE = 1024 * 1024
MAX_FILE = 128 * MEGABYTE
MAX_ARCHIVE_TOTAL = 4096 * MEGABYTE
MAX_MEMBERS = 20_000
MAX_RATIO = 200
MAX_DEPTH = 2
IGNORED_NAMES = {"__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini", ".ipynb_checkpoints", "__pycache__"}


@dataclass(frozen=True)
class Incoming:
    """One handed-in file.

    Attributes:
        label: where it was found, for people: `moodle.zip/José_12_assignsubmission_file_/lab.ipynb`.
        parts: the path's pieces below what `collect` was given, the file name last; only compared, never opened.
        data: its bytes, or `None` when `problem` says why they were not read.
        received: its time in the zip or folder, UTC.
        problem: why it cannot be used; empty when it can.
        ignored: the kind of file that nobody hands in (a checkpoint, a desktop's own file).
    """

    label: str
    parts: tuple[str, ...]
    data: bytes | None
    received: datetime
    problem: str = ""
    ignored: bool = False


def incoming(path: Path) -> Iterator[Incoming]:
    """Every file at `path`: a folder, a zip or a single file; zips inside are opened two levels deep.

    Raises `FileNotFoundError` when there is nothing at `path`.
    """
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    if path.is_dir():
        yield from _folder(path)
    else:
        yield from _file(path, (path.name,), path.name, given=True)


def _folder(top: Path) -> Iterator[Incoming]:
    for folder, folders, files in os.walk(top, followlinks=False):
        linked = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        folders[:] = sorted(name for name in folders if name not in IGNORED_NAMES and name not in linked)
        for name in sorted(files + linked):
            path = Path(folder) / name
            parts = path.relative_to(top).parts
            yield from _file(path, parts, "/".join(parts))


def _file(path: Path, parts: tuple[str, ...], label: str, given: bool = False) -> Iterator[Incoming]:
    try:
        info = path.lstat()
    except OSError as error:
        yield Incoming(shown(label), parts, None, datetime.now(UTC), f"cannot be read: {error.strerror}")
        return
    received = _file_time(info.st_mtime)
    if path.is_symlink():
        yield Incoming(shown(label), parts, None, received, "a link to somewhere else: not followed")
    elif not path.is_file():
        yield Incoming(shown(label), parts, None, received, "not a regular file")
    elif _is_ignored(parts):
        yield Incoming(shown(label), parts, None, received, ignored=True)
    elif zipfile.is_zipfile(path):
        # The zip that `collect` was given is a platform's download; any other one's name may name its learner.
        yield from _archive(path, () if given else parts, label, received, depth=1)
    elif info.st_size > MAX_FILE:
        yield Incoming(shown(label), parts, None, received, _too_large(info.st_size))
    else:
        try:
            data = path.read_bytes()
        except OSError as error:
            yield Incoming(shown(label), parts, None, received, f"cannot be read: {error.strerror}")
            return
        yield Incoming(shown(label), parts, data, received)


def _archive(source: Path | BytesIO, parts: tuple, label: str, received: datetime, depth: int) -> Iterator[Incoming]:
    """The members of a zip; `parts` is what comes before their own paths."""
    try:
        with zipfile.ZipFile(source) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
            total = sum(member.file_size for member in members)
            if len(members) > MAX_MEMBERS or total > MAX_ARCHIVE_TOTAL:
                problem = (f"a zip of {len(members)} files and {total // MEGABYTE} MB unpacked: over the limits of "
                           f"{MAX_MEMBERS} files and {MAX_ARCHIVE_TOTAL // MEGABYTE} MB")
                yield Incoming(shown(label), parts, None, received, problem)
                return
            budget = MAX_ARCHIVE_TOTAL
            for member in members:
                for item in _member(archive, member, parts, label, depth):
                    budget -= len(item.data or b"")
                    yield item
                    if budget < 0:
                        yield Incoming(shown(label), parts, None, received, "unpacks to more than it says: reading stopped")
                        return
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError) as error:
        yield Incoming(shown(label), parts, None, received, f"a damaged zip: {error}")


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, above: tuple, label: str, depth: int) -> Iterator[Incoming]:
    pieces = tuple(p for p in PurePosixPath(member.filename.replace("\\", "/")).parts if p not in ("/", "..", "."))
    parts = (*above, *(pieces or ("unnamed",)))
    name = shown(f"{label}/{member.filename}")
    received = _zip_time(member)
    if _is_ignored(parts):
        yield Incoming(name, parts, None, received, ignored=True)
        return
    problem = _member_problem(member)
    data = None
    if not problem:
        try:
            with archive.open(member) as stream:
                data = stream.read(MAX_FILE + 1)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError) as error:
            problem = f"damaged in the zip: {error}"
        else:
            problem = _too_large(len(data)) if len(data) > MAX_FILE else ""
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
        return _too_large(member.file_size)
    if member.file_size > MEGABYTE and member.file_size > MAX_RATIO * max(member.compress_size, 1):
        return f"a zip bomb: {member.compress_size:,} bytes that unpack to {member.file_size:,}"
    return ""


def _too_large(size: int) -> str:
    return (f"too large: {size / MEGABYTE:,.0f} MB, the most is {MAX_FILE // MEGABYTE} MB. "
            "Ask for it again with its outputs cleared")


def _is_ignored(parts: tuple[str, ...]) -> bool:
    return any(part in IGNORED_NAMES or part.startswith("._") for part in parts)


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


def _from_disk(label: str) -> bool:
    """Whether every surrogate in a name is one of those that stand for a byte of a file name that is not UTF-8."""
    return all("\udc80" <= char <= "\udcff" for char in label if "\ud800" <= char <= "\udfff")


def printable(text: str, keep: str = "") -> str:
    """A text that can neither move a terminal's cursor nor turn its reading direction round; `keep` are characters that may stay."""
    return "".join(char if char.isprintable() or char in keep else "\N{REPLACEMENT CHARACTER}" for char in text)


def shown(label: str) -> str:
    """A name as text for a terminal: no control characters, no line breaks, at most 200 characters."""
    label = label.encode("utf-8", "surrogateescape" if _from_disk(label) else "replace").decode("utf-8", "replace")
    clean = printable(label)
    return clean if len(clean) <= 200 else clean[:120] + "..." + clean[-77:]
