"""Brings a lab that was edited as a notebook (JupyterLab, formgrader) back to its text in `notebooks/<lab>/`.

Each edit lands where it belongs: prose, code and visible checks in the lesson, hidden tests in
`hidden_tests.py` or `explanations.py`. A cell that nobody changed keeps the very text it was built from, so
adopting an unedited notebook changes no byte and adopting an edited one shows up in review as exactly the
edit.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode

from inferlab.grading.course import Course
from inferlab.lab.notebook_file import read_notebook

from .hidden_tests import (
    HiddenFile,
    HiddenTests,
    Piece,
    expanded,
    fixtures_in,
    fold_fixtures,
    put_together,
    read_lesson,
    take_apart,
)
from .lab_text import Block, LabTextError, cell_ids, expand, owner_of, read_blocks, shorten, write_block
from .wrong_answers import read_wrong_answers


@dataclass(frozen=True)
class Adoption:
    """What adopting changed: texts by file name, counts of cells, and what to mend now."""

    texts: dict[str, str]
    changed: int
    added: int
    kept: int
    gone: int
    to_mend: str = ""


def adopt_notebook(notebook: NotebookNode, lesson: str = "", hidden: HiddenTests | None = None,
                   where: str = "lab.py") -> Adoption:
    """The lab's texts as `notebook` has it, reusing `lesson` and `hidden` for everything that stayed.

    Raises `LabTextError` for a cell that the text form cannot say (graded by hand, an attachment), and for a
    fixture that was edited in one of the cells that use it.
    """
    hidden = hidden or HiddenTests.empty()
    header, written = read_blocks(lesson, where) if lesson else ("", [])
    built = put_together(read_blocks(lesson, where)[1], hidden, where) if lesson else []
    cells = [cell for cell in notebook.cells if not cell.metadata.get("inferlab", {}).get("bootstrap")]
    if any(cell.get("attachments") for cell in cells):
        raise LabTextError("a cell has a pasted picture (attachment); save it as a file and link to it")
    shorts = [shorten(cell.metadata) for cell in cells]
    unused = dict(zip(cell_ids(built, where), range(len(built)), strict=True))
    same = [_take_same(unused, built, cell, short) for cell, short in zip(cells, shorts, strict=True)]
    pieces: list[str] = []
    tests: dict[str, list[Piece]] = {}
    changed = 0
    for cell, short, index in zip(cells, shorts, same, strict=True):
        if index is not None:
            pieces.append(written[index].text)
            tests |= {str(short["check"]): hidden.of(str(short["check"]))} if "check" in short else {}
            continue
        old = unused.pop(cell.get("id"), None)
        changed += old is not None
        source, regions = take_apart(cell.source) if "check" in short else (cell.source, [])
        if old is not None and (shown := fixtures_in(written[old].cell.source)):
            source = fold_fixtures(source, hidden.fixtures, shown, f"the cell '{cell.id}'")
        visible = NotebookNode(cell_type=cell.cell_type, source=source)
        as_written = old is not None and _is_same(written[old], visible, short)
        pieces.append(written[old].text if old is not None and as_written else write_block(visible, short))
        if "check" in short:
            tests[str(short["check"])] = _tests(str(short["check"]), regions, hidden)
    kept = sum(index is not None for index in same)
    as_before = kept == len(pieces) and not unused
    texts = {where: header
             + ("".join(pieces) if as_before else "\n\n".join(p.rstrip("\n") for p in pieces) + "\n")}
    explained = {str(short["explain"]) for short in shorts if "explain" in short}
    for file in hidden.files:
        mine = {str(short["check"]): tests[str(short["check"])] for short in shorts
                if "check" in short and (owner_of(short) in explained) == (file is hidden.explanations)}
        texts[file.name] = HiddenFile(file.name, file.header, _in_order(file, mine)).written()
    return Adoption(texts, changed, len(cells) - kept - changed, kept, len(unused))


def _take_same(unused: dict[str, int], built: list[Block], cell: NotebookNode, short: dict) -> int | None:
    """The place of the first block not yet used that builds the very same cell; it is used up."""
    for identity, index in unused.items():
        if _is_same(built[index], cell, short):
            return unused.pop(identity)
    return None


def _is_same(block: Block, cell: NotebookNode, short: dict) -> bool:
    return (block.cell.cell_type == cell.cell_type and block.cell.source == cell.source
            and _canonical(expand(block.cell.metadata)) == _canonical(expand(short)))


def _canonical(metadata: dict) -> str:
    return json.dumps(metadata, sort_keys=True)


def _tests(check: str, regions: list[str], hidden: HiddenTests) -> list[Piece]:
    """The blocks for the hidden regions of an edited check cell; an unchanged region keeps its block."""
    before, fixtures = hidden.of(check), hidden.fixtures
    used = {name for piece in before for name in fixtures_in(piece.text)}
    return [before[place] if place < len(before) and expanded(before[place], fixtures) == region
            else Piece("check", check, fold_fixtures(region, fixtures, used, f"check '{check}'")) for place,
            region in enumerate(regions)]


def _in_order(file: HiddenFile, tests: dict[str, list[Piece]]) -> list[Piece]:
    """The blocks of a file with the `tests` of its checks, a new check's after the check before it."""
    pieces: list[Piece] = []
    for piece in file.pieces:
        now = tests.get(piece.name, [])
        if piece.kind == "fixture" or now == file.of(piece.name):
            pieces.append(piece)
        elif piece is file.of(piece.name)[0]:
            pieces += now
    before = ""
    for check, now in tests.items():
        if not file.of(check):
            places = [place for place,
                      piece in enumerate(pieces) if piece.kind == "check" and piece.name == before]
            at = places[-1] + 1 if places else len(pieces)
            pieces[at:at] = now
        before = check
    return pieces


def adopt(course: Course, lab: str, notebook: Path | None = None) -> Adoption:
    """Write a lab's texts from an edited source notebook (`source/<lab>/<lab>.ipynb` if None).

    Raises `LabTextError` for a file that is not a notebook and for a released one: its solutions are gone and
    adopting it would lose them.
    """
    path = notebook or course.source(course.require(lab))
    try:
        edited = read_notebook(path.read_text("utf-8-sig"))
    except ValueError as error:
        raise LabTextError(f"{path} cannot be read as a notebook: {error}") from error
    target = course.text(lab)
    text = target.read_text("utf-8") if target.exists() else ""
    if "BEGIN SOLUTION" in text and not any("BEGIN SOLUTION" in cell.source for cell in edited.cells):
        raise LabTextError(f"{path} has no solutions: it is a released notebook, "
                           f"not source/{lab}/{lab}.ipynb")
    adoption = adopt_notebook(edited, text, HiddenTests.beside(target), target.name)
    target.parent.mkdir(parents=True, exist_ok=True)
    for name, new in adoption.texts.items():
        if new.strip() or target.with_name(name).exists():
            target.with_name(name).write_text(new, "utf-8")
    try:
        read_wrong_answers(target, read_lesson(target))
    except LabTextError as error:
        return Adoption(adoption.texts, adoption.changed, adoption.added, adoption.kept, adoption.gone,
                        str(error))
    return adoption
