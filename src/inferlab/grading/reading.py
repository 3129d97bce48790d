"""Reads bytes that somebody handed in as a notebook: any encoding, line ends and notebook format, or a plain reason.

The result holds only what grading needs, freshly made: cells with their type, text, id and metadata. Outputs are left
behind (the original file is kept beside the submission), so a 100 MB notebook grades like a small one.
"""

import json
import re
import warnings
from dataclasses import dataclass, field
from typing import Any

import nbformat
from nbformat import NotebookNode

MAX_CELLS = 5_000
MAX_TEXT = 8_000_000


class UnreadableError(ValueError):
    """The bytes are no notebook; the message says what they are, as far as that can be told."""


@dataclass
class HandedIn:
    """A handed-in notebook: `cells` as plain dicts (`cell_type`, `source`, `id`, `metadata`, `execution_count`)."""

    metadata: dict[str, Any]
    cells: list[dict[str, Any]]
    notes: list[str] = field(default_factory=list)


def read(data: bytes) -> HandedIn:
    """Read handed-in bytes. Raises `UnreadableError` with a sentence for a person."""
    if not data.strip(b" \t\r\n\0"):
        raise UnreadableError("empty file")
    text, notes = _text(data)
    try:
        raw = json.loads(text)
    except RecursionError:
        raise UnreadableError("not a notebook: JSON nested too deeply") from None
    except ValueError as error:
        raise UnreadableError(_not_json(text, error)) from None
    if re.search(r"\\u[dD][89a-fA-F]", text):
        raw = _encodable(raw)
    if not isinstance(raw, dict) or not ("cells" in raw or "worksheets" in raw):
        raise UnreadableError("JSON, but not a notebook: it has no cells")
    raw = _format_4(raw, notes)
    if not isinstance(raw.get("cells"), list):
        raise UnreadableError("not a notebook: its cells are not a list")
    if len(raw["cells"]) > MAX_CELLS:
        raise UnreadableError(f"{len(raw['cells']):,} cells: the most is {MAX_CELLS:,}")
    cells = []
    for number, cell in enumerate(raw["cells"], start=1):
        plain = _cell(cell)
        if plain is None:
            notes.append(f"cell {number} is malformed and was left out")
        else:
            cells.append(plain)
    if sum(len(cell["source"]) for cell in cells) > MAX_TEXT:
        raise UnreadableError(f"its cells hold more than {MAX_TEXT:,} characters of text")
    metadata = raw.get("metadata")
    return HandedIn(metadata if isinstance(metadata, dict) else {}, cells, notes)


def _encodable(value: Any) -> Any:
    """JSON data in which half a surrogate pair, which no file can hold, is the replacement character."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    return [_encodable(item) for item in value] if isinstance(value, list) else value


def _text(data: bytes) -> tuple[str, list[str]]:
    """Bytes as text, with a note when they were not plain UTF-8."""
    for mark, encoding in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if data.startswith(mark):
            try:
                return data.decode(encoding), [f"read as {encoding} (byte order mark)"]
            except UnicodeDecodeError:
                break
    try:
        return data.decode("utf-8"), []
    except UnicodeDecodeError:
        raise UnreadableError(_binary(data)) from None


def _binary(data: bytes) -> str:
    kinds = {b"%PDF": "a PDF", b"\x89PNG": "a PNG picture", b"\xff\xd8\xff": "a JPEG picture", b"PK\x03\x04": "a zip",
             b"\x1f\x8b": "a gzip archive", b"Rar!": "a RAR archive", b"7z\xbc\xaf": "a 7z archive",
             b"SQLite": "a database"}
    kind = next((name for start, name in kinds.items() if data.startswith(start)), "binary data")
    return f"not a notebook: {kind}"


def _not_json(text: str, error: ValueError) -> str:
    start = text.lstrip()[:200].lower()
    if start.startswith(("<!doctype html", "<html")):
        return "not a notebook: an HTML page. Ask for the .ipynb file itself"
    if start.startswith("%pdf"):
        return "not a notebook: a PDF. Ask for the .ipynb file itself"
    if start.startswith("{"):
        return f"not valid JSON, perhaps cut off ({str(error)[:80]})"
    return "not a notebook: plain text"


def _format_4(raw: dict, notes: list[str]) -> dict:
    """A notebook of format 1 to 3 brought to 4 by nbformat; format 4 as it is."""
    major = raw.get("nbformat", 4 if "cells" in raw else 3)
    if "cells" in raw and "worksheets" not in raw:  # only formats before 4 have worksheets, whatever the number says
        return raw
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


def _cell(raw: Any) -> dict[str, Any] | None:
    """A cell with the fields that matter, of the types they should have; `None` for what is no cell."""
    if not isinstance(raw, dict):
        return None
    source = raw.get("source", "")
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    kind = raw.get("cell_type")
    if not isinstance(source, str) or kind not in ("code", "markdown", "raw", "heading"):
        return None
    metadata = raw.get("metadata")
    metadata = dict(metadata) if isinstance(metadata, dict) else {}
    identity = raw.get("id") or metadata.get("id") or ""
    count = raw.get("execution_count")
    return {
        "cell_type": "markdown" if kind == "heading" else kind,
        "source": source.replace("\r\n", "\n").replace("\r", "\n"),
        "id": identity if isinstance(identity, str) else "",
        "metadata": metadata,
        "execution_count": count if isinstance(count, int) and not isinstance(count, bool) else None,
    }


def grade_id(cell: dict | NotebookNode) -> str:
    """The name that nbgrader's metadata gives a cell, or an empty string."""
    nbgrader = cell["metadata"].get("nbgrader")
    value = nbgrader.get("grade_id") if isinstance(nbgrader, dict) else None
    return value if isinstance(value, str) else ""
