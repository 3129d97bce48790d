"""Reads a file that somebody handed in, and says what its bytes are where they are no notebook.

A file is read if it is a regular one, never a pipe, a device, a folder or a link.
"""

import errno
import os
import stat
import warnings
from pathlib import Path

MEGABYTE = 2**20
MOST = 200 * MEGABYTE
"""The largest file that is read, in bytes."""
LINK = "a link to somewhere else: not followed"
KINDS = {
    stat.S_IFDIR: "a folder", stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device", stat.S_IFBLK: "a device",
}


class UnreadableError(ValueError):
    """The bytes are no notebook; the message says what they are, as far as that can be told."""


def read_regular(path: Path, most: int = MOST) -> bytes:
    """The bytes of a regular file of at most `most` bytes. Never waits and follows no link.

    Raises `UnreadableError` with a sentence for a person, also where the file changes while it is read.
    """
    try:
        _refuse(os.lstat(path), most)  # before it is opened: opening a device may do something
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            before = os.fstat(handle)
            _refuse(before, most)  # what was looked at above may have been replaced since
            data = file.read(most + 1)
            after = os.fstat(handle)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UnreadableError(LINK) from error
        raise UnreadableError(f"it cannot be read: {error.strerror}") from error
    if len(data) != after.st_size or before.st_mtime_ns != after.st_mtime_ns:
        raise UnreadableError("it changed while it was read: run the command again")
    return data


def _refuse(info: os.stat_result, most: int) -> None:
    """Raise `UnreadableError` for what is no regular file or too large."""
    if stat.S_ISLNK(info.st_mode):
        raise UnreadableError(LINK)
    if not stat.S_ISREG(info.st_mode):
        raise UnreadableError(f"{KINDS.get(stat.S_IFMT(info.st_mode), 'something else')}, not a file: it is "
                              "not read")
    if info.st_size > most:
        raise UnreadableError(too_large(info.st_size, most))


def too_large(size: int, most: int) -> str:
    """The sentence for a file of `size` bytes where `most` are read."""
    return (f"too large: {size / MEGABYTE:,.0f} MB, the most is {most // MEGABYTE} MB. "
            "Ask for it again with its outputs cleared")


# -- what is no notebook, or an old one ------------------------------------------------------------
def binary_kind(data: bytes) -> str:
    """What bytes are that are no text, as a sentence."""
    kinds = {b"%PDF": "a PDF", b"\x89PNG": "a PNG picture", b"\xff\xd8\xff": "a JPEG picture",
             b"PK\x03\x04": "a zip",
             b"\x1f\x8b": "a gzip archive", b"Rar!": "a RAR archive", b"7z\xbc\xaf": "a 7z archive",
             b"SQLite": "a database"}
    kind = next((name for start, name in kinds.items() if data.startswith(start)), "binary data")
    return f"not a notebook: {kind}"


def text_kind(text: str, error: ValueError) -> str:
    """What a text is that is no JSON, as a sentence."""
    start = text.lstrip()[:200].lower()
    if start.startswith(("<!doctype html", "<html")):
        return "not a notebook: an HTML page. Ask for the .ipynb file itself"
    if start.startswith("%pdf"):
        return "not a notebook: a PDF. Ask for the .ipynb file itself"
    if start.startswith("{"):
        return f"not valid JSON, perhaps cut off ({str(error)[:80]})"
    return "not a notebook: plain text"


def as_format_4(raw: dict, notes: list[str]) -> dict:
    """A notebook of format 1 to 3 brought to 4 by nbformat; format 4 as it is."""
    major = raw.get("nbformat", 4 if "cells" in raw else 3)
    # Only formats before 4 have worksheets, whatever the number says.
    if "cells" in raw and "worksheets" not in raw:
        return raw
    import nbformat  # takes seconds to import, and hardly any file needs it

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            converted = nbformat.convert(nbformat.from_dict(raw), 4)
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError, UnboundLocalError, ValueError,
            nbformat.ValidationError) as error:
        raise UnreadableError(f"a notebook of format {str(major)[:10]} that cannot be converted "
                              f"({type(error).__name__})") from error
    notes.append(f"converted from notebook format {major}")
    return converted
