"""Rebuilds a handed-in notebook so that nbgrader can grade it, whatever happened to its cells on the way.

The result has the learner's cells in the learner's order. Every cell of the released lab is in it exactly once, with
the release's own metadata; what belongs to no cell of the release stays as a plain cell. Every repair is a note.
"""

import ast
import re
from dataclasses import dataclass, field

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_raw_cell

from .matching import Slot, match
from .reading import HandedIn
from .stubs import EXPLAIN_LINE, FIELD, field_names

MAKE = {"code": new_code_cell, "markdown": new_markdown_cell, "raw": new_raw_cell}


@dataclass
class Mended:
    """A notebook ready for `submitted/`, and what was repaired, each as a sentence."""

    notebook: NotebookNode
    notes: list[str] = field(default_factory=list)


def mend(handed_in: HandedIn, released: NotebookNode) -> Mended:
    """The handed-in notebook with every cell of `released` where it belongs."""
    notes = list(handed_in.notes)
    cells = [dict(cell) for cell in handed_in.cells]
    slots = [Slot(cell, index) for index, cell in enumerate(released.cells)]
    notes += _older_release(handed_in, released)
    notes += match(cells, slots)
    demoted: dict[int, str] = {}
    chosen: dict[int, int] = {}
    for slot in slots:
        if slot.claims:
            chosen[slot.index] = _choose(slot, cells, demoted, notes)
    owner = {place: slots[slot] for slot, place in chosen.items()}
    absorbed = _rejoin(cells, owner, demoted, notes)
    order: list[NotebookNode] = []
    for index, cell in enumerate(cells):
        if index in absorbed:
            continue
        if index in owner:
            order.append(_graded(owner[index], cell, notes))
        else:
            order.append(_plain(cell, index, demoted))
    _put_back(order, slots, chosen, notes)
    _checks_after_answers(order, slots, notes)
    _unique_ids(order, slots)
    notebook = nbformat.v4.new_notebook(cells=order, metadata=released.metadata)
    notebook.metadata["inferlab"] = {**released.metadata.get("inferlab", {}), **_about(handed_in)}
    nbformat.validate(notebook)
    return Mended(notebook, notes)


def _about(handed_in: HandedIn) -> dict[str, str]:
    """What the hand-in cell wrote into the file: who and when, as text of a bounded length."""
    about = handed_in.metadata.get("inferlab")
    about = about if isinstance(about, dict) else {}
    return {key: about[key][:200] for key in ("learner", "submitted", "frontend") if isinstance(about.get(key), str)}


def _older_release(handed_in: HandedIn, released: NotebookNode) -> list[str]:
    about = handed_in.metadata.get("inferlab")
    theirs = about.get("release") if isinstance(about, dict) else None
    ours = released.metadata.get("inferlab", {}).get("release")
    if isinstance(theirs, str) and ours and theirs != ours:
        return [f"from another release of the lab ({theirs[:12]}; this is {ours}): graded by the tests of this one"]
    return []


# -- one cell that is there more than once ---------------------------------------------------------------------------
def _choose(slot: Slot, cells: list[dict], demoted: dict[int, str], notes: list[str]) -> int:
    """Which of a slot's claims is the cell; the others become plain cells, or text where they would redo the answer."""
    if len(slot.claims) == 1:
        return slot.claims[0]
    whole = [index for index in slot.claims if _answers(slot, cells[index])]
    if slot.is_answer and len(whole) == 1:
        return whole[0]  # a cell that was split: the rest of it stays in its place, and runs there
    copies = whole or slot.claims
    edited = [index for index in copies if cells[index]["source"].strip() != slot.cell.source.strip()]
    best = max(edited or copies, key=lambda index: (_when(cells[index]), index))
    for index in copies:
        if index != best:
            demoted[index] = slot.name
    if slot.kind != "markdown":
        others = ", ".join(str(index + 1) for index in copies if index != best)
        how = "the copy that was run last" if _when(cells[best]) else "the last edited copy"
        notes.append(f"{slot.name}: {len(copies)} copies; counted: cell {best + 1}, {how} (kept as text: cell {others})")
    return best


def _answers(slot: Slot, cell: dict) -> bool:
    """Whether a claim looks like a whole answer and not like the other half of a split one."""
    if slot.kind == "explain":
        return EXPLAIN_LINE.match(cell["source"].lstrip()) is not None
    if slot.kind != "exercise":
        return True
    provides = slot.anchors
    return any(re.search(rf"^(?:def\s+{re.escape(name)}\b|class\s+{re.escape(name)}\b|{re.escape(name)}\s*[:=,])",
                         cell["source"], re.MULTILINE) for name in provides)


def _when(cell: dict) -> str:
    """A key that grows with the time at which a cell was last run, as far as the file tells; empty where it does not."""
    metadata = cell["metadata"]
    execution, colab = metadata.get("execution"), metadata.get("executionInfo")
    if isinstance(execution, dict):
        stamps = [value for key, value in execution.items() if "idle" in str(key) or "reply" in str(key)]
        if stamps and all(isinstance(stamp, str) for stamp in stamps):
            return "time " + max(stamps)
    if isinstance(colab, dict) and isinstance(colab.get("timestamp"), int):
        return f"time {colab['timestamp']:020d}"
    count = cell["execution_count"]
    return f"count {count:010d}" if count is not None and count >= 0 else ""


# -- cells that were split ---------------------------------------------------------------------------------------------
def _rejoin(cells: list[dict], owner: dict[int, Slot], demoted: dict[int, str], notes: list[str]) -> set[int]:
    """Join an answer with the pieces that were split off below it, where the pieces make no sense on their own."""
    absorbed: set[int] = set()
    for index in sorted(owner):
        slot = owner[index]
        if not slot.is_answer:
            continue
        following = index + 1
        while following < len(cells) and following not in owner and following not in demoted:
            piece = cells[following]
            fits = _rest_of_explanation if slot.kind == "explain" else _rest_of_code
            joined = fits(cells[index], piece, slot)
            if joined is None:
                break
            cells[index] = {**cells[index], "source": joined}
            absorbed.add(following)
            notes.append(f"{slot.name}: split in two; joined with cell {following + 1}")
            following += 1
    return absorbed


def _rest_of_explanation(cell: dict, piece: dict, slot: Slot) -> str | None:
    """The joined text if `piece` begins with a field of the explanation that the cell itself lacks."""
    wanted = field_names(slot.cell.source.split("\n")[1:])
    label = FIELD.match(piece["source"].lstrip("\n"))
    if EXPLAIN_LINE.match(piece["source"].lstrip()) or not label or label["label"] not in wanted:
        return None
    if label["label"] in field_names(cell["source"].split("\n")[1:]):
        return None
    return cell["source"].rstrip("\n") + "\n" + piece["source"].lstrip("\n")


def _rest_of_code(cell: dict, piece: dict, slot: Slot) -> str | None:
    """The joined text if it is Python and at least one of the two alone is not, or the rest is indented."""
    if piece["cell_type"] != "code" or not piece["source"].strip():
        return None
    joined = cell["source"].rstrip("\n") + "\n" + piece["source"].lstrip("\n")
    broken = not _parses(cell["source"]) or not _parses(piece["source"])
    return joined if broken and _parses(joined) else None


def _parses(source: str) -> bool:
    lines = ["" if line.lstrip().startswith(("%", "!")) else line for line in source.split("\n")]
    try:
        ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


# -- making the cells ----------------------------------------------------------------------------------------------------
def _graded(slot: Slot, cell: dict, notes: list[str]) -> NotebookNode:
    """A cell of the release with the learner's text in it, and the release's metadata and type."""
    if slot.kind in ("check", "bootstrap"):
        if slot.kind == "check" and cell["source"].strip() != slot.cell.source.strip():
            notes.append(f"{slot.name}: the test was changed; the lab's own is used")
        return nbformat.from_dict(slot.cell)
    if slot.cell.cell_type != cell["cell_type"] and slot.is_answer:
        notes.append(f"{slot.name}: was turned into a {cell['cell_type']} cell; made {slot.cell.cell_type} again")
    kind = slot.cell.cell_type if slot.is_answer or "parameters" in slot.cell.metadata.get("tags", []) else cell["cell_type"]
    return MAKE[kind](cell["source"], id=slot.name, metadata=nbformat.from_dict(slot.cell.metadata))


def _plain(cell: dict, index: int, demoted: dict[int, str]) -> NotebookNode:
    """A cell that the release does not have: its text, and nothing that grading could take for its own."""
    if index in demoted and cell["cell_type"] == "code":
        text = f"*A copy of `{demoted[index]}` that was not graded:*\n\n~~~~python\n{cell['source']}\n~~~~"
        return new_markdown_cell(text, id=f"extra_{index + 1}")
    return MAKE[cell["cell_type"]](cell["source"], id=f"extra_{index + 1}")


def _put_back(order: list[NotebookNode], slots: list[Slot], chosen: dict[int, int], notes: list[str]) -> None:
    """Insert what is gone from the notebook but needed: answers as released, tests, set-up code that other cells need."""
    for slot in slots:
        if slot.index in chosen:
            continue
        is_demo = "demo" in slot.cell.metadata.get("tags", [])
        if slot.cell.cell_type != "code" or slot.kind == "bootstrap" or is_demo:
            continue
        before = {other.name for other in slots[: slot.index]}
        places = [place for place, cell in enumerate(order) if cell.id in before]
        order.insert(max(places) + 1 if places else 0, nbformat.from_dict(slot.cell))
        what = {"check": "the test was deleted; put back",
                "exercise": "the cell was deleted; put back empty, as released",
                "explain": "the cell was deleted; put back empty, as released"}
        notes.append(f"{slot.name}: {what.get(slot.kind, 'a cell of the set-up was deleted; put back')}")


def _checks_after_answers(order: list[NotebookNode], slots: list[Slot], notes: list[str]) -> None:
    """Move a test below the answer that it grades when the answer was moved below the test."""
    for slot in slots:
        if slot.kind != "check":
            continue
        places = {cell.id: place for place, cell in enumerate(order)}
        check, answer = places[slot.name], places.get(slot.about.get("of", ""), -1)
        if answer > check:
            order.insert(answer, order.pop(check))
            notes.append(f"{slot.name}: stood above the answer that it tests; moved below it")


def _unique_ids(order: list[NotebookNode], slots: list[Slot]) -> None:
    taken = {slot.name for slot in slots}
    for cell in order:
        while cell.id.startswith("extra_") and cell.id in taken:
            cell.id += "x"
        taken.add(cell.id)
