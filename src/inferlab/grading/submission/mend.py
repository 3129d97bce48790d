"""Rebuilds a handed-in notebook so that nbgrader can grade it, whatever happened to its cells on the way.

The result has the learner's cells in the learner's order. Every cell of the released lab is in it exactly
once, with the release's own metadata; what belongs to no cell of the release stays as a plain cell. Every
repair is a note.

What a cell carries (its id, nbgrader's grade_id) can be stripped, renumbered or copied by the programs that
it went through. What it says rarely lies: an explanation names itself, an exercise defines the names that it
provides. So a carried name counts unless the text says otherwise.
"""

import copy
import re
from dataclasses import dataclass, field

from rapidfuzz import fuzz

from inferlab.grading.notebook import Cell, Notebook, RawNotebook, about, grade_id, tags
from inferlab.grading.stubs import EXPLAIN_LINE
from inferlab.lab.notebook_file import anchors

from .pieces import latest_run, whole_answer

ALIKE = 85.0
PARSED = 50_000
COMPARED = 4_000
LOOSE_CELLS = 500


@dataclass
class Slot:
    """One cell of the released lab, and the places (indices) of handed-in cells that claim to be it."""

    cell: Cell
    index: int
    claims: list[int] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The cell's id."""
        return self.cell["id"]

    @property
    def about(self) -> dict:
        """The cell's `inferlab` metadata."""
        return about(self.cell)

    @property
    def kind(self) -> str:
        """exercise, explain, check, bootstrap, or the cell's type."""
        kinds = ("exercise", "explain", "check", "bootstrap")
        return next((kind for kind in kinds if kind in self.about), self.cell["cell_type"])

    @property
    def anchors(self) -> set[str]:
        """What the text of an answer to this cell must define or be called; empty where anything goes."""
        if self.kind == "exercise":
            return set(self.about.get("provides", []))
        if self.kind == "explain":
            return {f"%%explain {self.about['explain']}"}
        return {"LEARNER"} if "parameters" in tags(self.cell) else set()

    @property
    def is_answer(self) -> bool:
        """Whether a learner writes into this cell for marks."""
        return self.kind in ("exercise", "explain")


def mend(raw: RawNotebook, released: Notebook) -> tuple[Notebook, list[str]]:
    """The handed-in notebook with every cell of `released` in its place, and each repair as a sentence."""
    notes = list(raw.notes)
    cells = [dict(cell) for cell in raw.cells]
    slots = [Slot(cell, index) for index, cell in enumerate(released["cells"])]
    theirs, ours = raw.said.get("release"), released["metadata"].get("inferlab", {}).get("release")
    if theirs is not None and ours and theirs != ours:
        notes.append(f"from another release of the lab ({theirs[:12]}; this is {ours}): graded by the tests "
                     "of this one")
    notes += match(cells, slots)
    demoted: dict[int, str] = {}
    chosen: dict[int, int] = {}
    for slot in slots:
        if slot.claims:
            chosen[slot.index] = _choose(slot, cells, demoted, notes)
    owner = {place: slots[slot] for slot, place in chosen.items()}
    absorbed = _rejoin(cells, owner, demoted, notes)
    order: list[Cell] = []
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
    metadata = copy.deepcopy(released["metadata"])
    told = ("learner", "submitted", "frontend")
    metadata["inferlab"] = metadata.get("inferlab", {}) | {
        key: raw.said[key][:200] for key in told if key in raw.said}
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": order}, notes


# -- which cell is which ---------------------------------------------------------------------------
def match(cells: list[dict], slots: list[Slot]) -> list[str]:
    """Fill in every slot's claims, one slot at most for each handed-in cell; returns notes for a person."""
    notes: list[str] = []
    claimed: set[int] = set()
    found = [anchors(cell["source"]) if len(cell["source"]) <= PARSED else set() for cell in cells]
    _by_carried_names(cells, slots, found, claimed, notes)
    _by_same_text(cells, slots, claimed)
    _by_anchors(slots, found, claimed, notes)
    _by_likeness(cells, slots, claimed)
    for slot in slots:
        slot.claims.sort()
    return notes


def _by_carried_names(cells: list[dict], slots: list[Slot], found: list[set], claimed: set,
                      notes: list[str]) -> None:
    by_id = {slot.name: slot for slot in slots}
    by_grade_id = {grade_id(slot.cell): slot for slot in slots if grade_id(slot.cell)}
    owner = {anchor: slot for slot in slots for anchor in slot.anchors}
    for index, cell in enumerate(cells):
        carried = [slot for slot in (by_id.get(cell["id"]), by_grade_id.get(grade_id(cell))) if slot]
        if not carried:
            continue
        slot = carried[0]
        if carried[-1] is not slot:
            slot = max(carried, key=lambda other: _likeness(cell["source"], other.cell["source"]))
            notes.append(f"cell {index + 1} carries the names of two cells ({carried[0].name}, "
                         f"{carried[-1].name}): "
                         f"taken as {slot.name}, which it resembles more")
        says = {owner[anchor].name: owner[anchor] for anchor in found[index] if anchor in owner}
        if says and slot.name not in says and (slot.is_answer or slot.kind in ("code", "markdown")):
            other = next(iter(says.values()))
            notes.append(f"cell {index + 1} carries the name {slot.name} but its text is {other.name}: "
                         "taken as that")
            slot = other
        free = slot.kind in ("code", "markdown") and not slot.anchors
        if free and not _resembles(cell["source"], slot.cell["source"]):
            # An id such as "top_3" that a program gave to another cell: the text decides below.
            continue
        slot.claims.append(index)
        claimed.add(index)


def _by_same_text(cells: list[dict], slots: list[Slot], claimed: set[int]) -> None:
    texts: dict[str, list[int]] = {}
    for index, cell in enumerate(cells):
        if index not in claimed:
            texts.setdefault(cell["source"].strip(), []).append(index)
    for slot in slots:
        same = texts.get(slot.cell["source"].strip(), [])
        if not slot.claims and same:
            slot.claims.append(same[0])
            claimed.add(same.pop(0))


def _by_anchors(slots: list[Slot], found: list[set[str]], claimed: set[int], notes: list[str]) -> None:
    for slot in slots:
        if slot.claims or not slot.anchors:
            continue
        whole = [i for i, names in enumerate(found) if i not in claimed and slot.anchors <= names]
        some = [i for i, names in enumerate(found) if i not in claimed and slot.anchors & names]
        for index in whole or some[:1]:
            slot.claims.append(index)
            claimed.add(index)
        if slot.claims and slot.is_answer:
            notes.append(f"{slot.name}: found by its text (cell {slot.claims[0] + 1}); its metadata was gone")


def _by_likeness(cells: list[dict], slots: list[Slot], claimed: set[int]) -> None:
    """Cells that were edited and carry nothing: the most alike pairs first, each cell once."""
    pairs = []
    loose = [index for index in range(len(cells)) if index not in claimed][:LOOSE_CELLS]
    for slot in slots:
        if slot.claims or len(slot.cell["source"]) > COMPARED:
            continue
        for index in loose:
            if len(cells[index]["source"]) <= COMPARED:
                alike = fuzz.ratio(cells[index]["source"], slot.cell["source"], score_cutoff=ALIKE)
                if alike:
                    pairs.append((alike, slot.index, index))
    taken: set[int] = set()
    for _, slot_index, index in sorted(pairs, key=lambda pair: (-pair[0], pair[1], pair[2])):
        if slot_index not in taken and index not in claimed:
            slots[slot_index].claims.append(index)
            taken.add(slot_index)
            claimed.add(index)


def _likeness(left: str, right: str) -> float:
    return fuzz.ratio(left[:COMPARED], right[:COMPARED])


def _resembles(left: str, right: str) -> bool:
    return left.strip() == right.strip() or _likeness(left, right) >= 50


# -- one cell that is there more than once ---------------------------------------------------------
def _choose(slot: Slot, cells: list[dict], demoted: dict[int, str], notes: list[str]) -> int:
    """Which of a slot's claims is the cell; others become plain cells, or text if they redo the answer."""
    if len(slot.claims) == 1:
        return slot.claims[0]
    whole = [index for index in slot.claims if _answers(slot, cells[index])]
    if slot.is_answer and len(whole) == 1:
        return whole[0]  # a cell that was split: the rest of it stays in its place, and runs there
    copies = whole or slot.claims
    edited = [index for index in copies if cells[index]["source"].strip() != slot.cell["source"].strip()]
    best = max(edited or copies, key=lambda index: (latest_run(cells[index]), index))
    for index in copies:
        if index != best:
            demoted[index] = slot.name
    if slot.kind != "markdown":
        others = ", ".join(str(index + 1) for index in copies if index != best)
        how = "the copy that was run last" if latest_run(cells[best]) else "the last edited copy"
        notes.append(f"{slot.name}: {len(copies)} copies; counted: cell {best + 1}, {how} (kept as text: "
                     f"cell {others})")
    return best


def _answers(slot: Slot, cell: dict) -> bool:
    """Whether a claim looks like a whole answer and not like the other half of a split one."""
    if slot.kind == "explain":
        return EXPLAIN_LINE.match(cell["source"].lstrip()) is not None
    if slot.kind != "exercise":
        return True
    names = "|".join(map(re.escape, slot.anchors))
    return bool(names) and re.search(rf"^(?:(?:def|class)\s+(?:{names})\b|(?:{names})\s*[:=,])",
                                     cell["source"], re.MULTILINE) is not None


def _rejoin(cells: list[dict], owner: dict[int, Slot], demoted: dict[int, str], notes: list[str]) -> set[int]:
    """Join an answer with the pieces split off below it that make no sense on their own."""
    absorbed: set[int] = set()
    for index in sorted(owner):
        slot = owner[index]
        if not slot.is_answer:
            continue
        following = index + 1
        while following < len(cells) and following not in owner and following not in demoted:
            joined = whole_answer(cells[index], cells[following], slot.cell, slot.kind)
            if joined is None:
                break
            cells[index] = {**cells[index], "source": joined}
            absorbed.add(following)
            notes.append(f"{slot.name}: split in two; joined with cell {following + 1}")
            following += 1
    return absorbed


# -- making the cells ------------------------------------------------------------------------------
def _cell(kind: str, source: str, identity: str, metadata: dict) -> Cell:
    cell = {"cell_type": kind, "source": source, "id": identity, "metadata": metadata}
    return cell | ({"outputs": [], "execution_count": None} if kind == "code" else {})


def _graded(slot: Slot, cell: dict, notes: list[str]) -> Cell:
    """A cell of the release with the learner's text in it, and the release's metadata and type."""
    if slot.kind in ("check", "bootstrap"):
        if slot.kind == "check" and cell["source"].strip() != slot.cell["source"].strip():
            notes.append(f"{slot.name}: the test was changed; the lab's own is used")
        return copy.deepcopy(slot.cell)
    if slot.cell["cell_type"] != cell["cell_type"] and slot.is_answer:
        notes.append(f"{slot.name}: was turned into a {cell['cell_type']} cell; made "
                     f"{slot.cell['cell_type']} again")
    kind = slot.cell["cell_type"] if slot.is_answer or "parameters" in tags(slot.cell) else cell["cell_type"]
    return _cell(kind, cell["source"], slot.name, copy.deepcopy(slot.cell["metadata"]))


def _plain(cell: dict, index: int, demoted: dict[int, str]) -> Cell:
    """A cell that the release does not have: its text, and nothing that grading could take for its own."""
    if index in demoted and cell["cell_type"] == "code":
        text = f"*A copy of `{demoted[index]}` that was not graded:*\n\n~~~~python\n{cell['source']}\n~~~~"
        return _cell("markdown", text, f"extra_{index + 1}", {})
    return _cell(cell["cell_type"], cell["source"], f"extra_{index + 1}", {})


def _put_back(order: list[Cell], slots: list[Slot], chosen: dict[int, int], notes: list[str]) -> None:
    """Insert what is gone but needed: answers as released, tests, set-up code that other cells need."""
    for slot in slots:
        if slot.index in chosen:
            continue
        is_demo = "demo" in tags(slot.cell)
        if slot.cell["cell_type"] != "code" or slot.kind == "bootstrap" or is_demo:
            continue
        before = {other.name for other in slots[: slot.index]}
        places = [place for place, cell in enumerate(order) if cell["id"] in before]
        order.insert(max(places) + 1 if places else 0, copy.deepcopy(slot.cell))
        what = {"check": "the test was deleted; put back",
                "exercise": "the cell was deleted; put back empty, as released",
                "explain": "the cell was deleted; put back empty, as released"}
        notes.append(f"{slot.name}: {what.get(slot.kind, 'a cell of the set-up was deleted; put back')}")


def _checks_after_answers(order: list[Cell], slots: list[Slot], notes: list[str]) -> None:
    """Move a test below the answer that it grades when the answer was moved below the test."""
    for slot in slots:
        if slot.kind != "check":
            continue
        places = {cell["id"]: place for place, cell in enumerate(order)}
        check, answer = places[slot.name], places.get(slot.about.get("of", ""), -1)
        if answer > check:
            order.insert(answer, order.pop(check))
            notes.append(f"{slot.name}: stood above the answer that it tests; moved below it")


def _unique_ids(order: list[Cell], slots: list[Slot]) -> None:
    taken = {slot.name for slot in slots}
    for cell in order:
        while cell["id"].startswith("extra_") and cell["id"] in taken:
            cell["id"] += "x"
        taken.add(cell["id"])
