"""Notebooks in the forms that grading needs: as handed in, as released, as sanitized."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import NotebookExporter
from nbformat import NotebookNode

from .build import released_text
from .mend import mend
from .reading import HandedIn, UnreadableError, read

LARGEST_FILE = 200 * 2**20


def read_file(path: Path) -> NotebookNode:
    """A notebook from a file that anybody may have written: text, ids and metadata, no outputs.

    Raises `reading.UnreadableError` with a sentence for a person.
    """
    size = path.stat().st_size
    if size > LARGEST_FILE:
        raise UnreadableError(f"{size / 2**20:.0f} MB: the most that is read is {LARGEST_FILE / 2**20:.0f} MB")
    if path.is_symlink():
        raise UnreadableError("a symbolic link, not a file")
    return as_notebook(read(path.read_bytes()))


def as_notebook(handed: HandedIn) -> NotebookNode:
    """What was read, as a notebook; every cell has an id of its own."""
    cells, taken = [], set()
    for number, cell in enumerate(handed.cells, start=1):
        fields = {k: _writable(cell[k]) for k in ("cell_type", "source", "metadata")}
        identity = _writable(cell["id"])
        identity = identity if identity and identity not in taken else f"cell_{number}"
        taken.add(identity)
        if cell["cell_type"] == "code":
            fields |= {"outputs": [], "execution_count": cell["execution_count"]}
        cells.append(fields | {"id": identity})
    return nbformat.from_dict({"nbformat": 4, "nbformat_minor": 5, "metadata": _writable(handed.metadata), "cells": cells})


def _writable(value: Any) -> Any:
    """The same data with half surrogate pairs, which JSON can spell but no file can hold, made question marks."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {_writable(k): _writable(v) for k, v in value.items()}
    return [_writable(v) for v in value] if isinstance(value, list) else value


def handed_in(notebook: NotebookNode) -> HandedIn:
    """A notebook as `mend` takes it."""
    cells = [{k: v for k, v in cell.items() if k not in ("outputs", "attachments")} for cell in notebook.cells]
    return read(json.dumps({"nbformat": 4, "metadata": notebook.metadata, "cells": cells}).encode())


def released_view(source: NotebookNode) -> NotebookNode:
    """A copy of the source notebook with stubs for solutions and without hidden tests."""
    view = copy.deepcopy(source)
    for cell in view.cells:
        cell.source = released_text(cell)
    return view


def sanitized(notebook: NotebookNode, source: NotebookNode) -> tuple[NotebookNode, list[str]]:
    """The submission with every cell in its place and the trusted tests in it, and notes on what was mended.

    The same as `Mend` and nbgrader's `OverwriteCells` make of it when the gradebook holds this source.
    """
    mended = mend(handed_in(notebook), released_view(source))
    trusted = {cell.id: cell for cell in source.cells}
    for cell in mended.notebook.cells:
        about = trusted.get(cell.id)
        if about is not None and about.metadata.get("nbgrader", {}).get("grade"):
            cell.source = about.source
            cell.metadata = copy.deepcopy(about.metadata)
    return mended.notebook, mended.notes


class LenientExporter(NotebookExporter):
    """nbgrader's reader and writer of notebooks, reading as `read_file` does instead of failing on odd files."""

    def from_filename(self, filename: str, resources: dict | None = None, **kwargs: Any) -> tuple[str, dict]:
        resources = {} if resources is None else resources
        path = Path(filename)
        resources["metadata"] = {"name": path.stem, "path": str(path.parent)}
        return self.from_notebook_node(read_file(path), resources, **kwargs)
