"""Brings a lab that was edited as a notebook (JupyterLab, formgrader) back to its text, `notebooks/<lab>/<lab>.py`.

A cell that nobody changed keeps the very text it was built from, so adopting an unedited notebook changes no byte and
adopting an edited one shows up in review as exactly the edit.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode

from inferlab.lab.notebookfile import read_notebook

from .course import Course
from .labtext import Block, LabTextError, expand, read_blocks, shorten, write_block


@dataclass(frozen=True)
class Adoption:
    """What adopting changed: the new text, and how many cells are new or rewritten, kept, and gone."""

    text: str
    rewritten: int
    kept: int
    removed: int


def adopt_notebook(notebook: NotebookNode, text: str, where: str = "lab") -> Adoption:
    """The text of `notebook`, reusing the blocks of `text` for every cell that is still the same.

    Raises `LabTextError` for a cell that the text form cannot say (graded by hand, an attachment).
    """
    header, blocks = read_blocks(text, where) if text else ("", [])
    unused = list(blocks)
    pieces, kept = [], 0
    for cell in notebook.cells:
        if cell.metadata.get("inferlab", {}).get("bootstrap"):
            continue
        if cell.get("attachments"):
            raise LabTextError("a cell has a pasted picture (attachment); save it as a file and link to it")
        short = shorten(cell.metadata)
        block = _take(unused, cell, short)
        kept += block is not None
        pieces.append(block.text if block else write_block(cell, short))
    body = "".join(piece.rstrip("\n") + "\n\n" for piece in pieces[:-1]) if len(pieces) > 1 else ""
    # Blocks reused in their old order keep their own blank lines; only new neighbours are set one blank line apart.
    if kept == len(pieces) and not unused:
        body = "".join(pieces[:-1])
    text_out = header + body + (pieces[-1] if kept == len(pieces) else pieces[-1].rstrip("\n") + "\n")
    return Adoption(text_out, len(pieces) - kept, kept, len(unused))


def _take(unused: list[Block], cell: NotebookNode, short: dict) -> Block | None:
    """The first block not yet used that builds the very same cell; it is used up."""
    for index, block in enumerate(unused):
        same = block.cell.cell_type == cell.cell_type and block.cell.source == cell.source
        if same and _canonical(expand(block.cell.metadata)) == _canonical(expand(short)):
            return unused.pop(index)
    return None


def _canonical(metadata: dict) -> str:
    return json.dumps(metadata, sort_keys=True)


def adopt(course: Course, lab: str, notebook: Path | None = None) -> Adoption:
    """Write `notebooks/<lab>/<lab>.py` from an edited source notebook (`source/<lab>/<lab>.ipynb` when none is given).

    Raises `LabTextError` for a file that is not a notebook and for a released one: its solutions are gone and adopting it
    would lose them.
    """
    path = notebook or course.source(course.require(lab))
    try:
        edited = read_notebook(path.read_text("utf-8-sig"))
    except ValueError as error:
        raise LabTextError(f"{path} cannot be read as a notebook: {error}") from error
    target = course.text(lab)
    text = target.read_text("utf-8") if target.exists() else ""
    before = text.count("BEGIN SOLUTION")
    after = sum(cell.source.count("BEGIN SOLUTION") for cell in edited.cells)
    if before and not after:
        raise LabTextError(f"{path} has no solutions: it is a released notebook, not source/{lab}/{lab}.ipynb")
    adoption = adopt_notebook(edited, text, target.name)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(adoption.text, "utf-8")
    return adoption
