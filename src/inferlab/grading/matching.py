"""Finds, for each cell of a released lab, the cells of a handed-in notebook that are it: by what they carry, then by text.

What a cell carries (its id, nbgrader's grade_id) can be stripped, renumbered or copied by the programs that it went
through. What it says rarely lies: an explanation names itself, an exercise defines the names that it provides. So a
carried name counts unless the text says otherwise.
"""

from dataclasses import dataclass, field

from nbformat import NotebookNode
from rapidfuzz import fuzz

from inferlab.lab.notebookfile import anchors

from .reading import grade_id

ALIKE = 85.0
PARSED = 50_000
COMPARED = 4_000
LOOSE_CELLS = 500


@dataclass
class Slot:
    """One cell of the released lab, and the places (indices) of handed-in cells that claim to be it."""

    cell: NotebookNode
    index: int
    claims: list[int] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The cell's id."""
        return self.cell.id

    @property
    def about(self) -> dict:
        """The cell's `inferlab` metadata."""
        return self.cell.metadata.get("inferlab", {})

    @property
    def kind(self) -> str:
        """exercise, explain, check, bootstrap, or the cell's type."""
        kinds = ("exercise", "explain", "check", "bootstrap")
        return next((kind for kind in kinds if kind in self.about), self.cell.cell_type)

    @property
    def anchors(self) -> set[str]:
        """What the text of an answer to this cell must define or be called; empty where anything goes."""
        if self.kind == "exercise":
            return set(self.about.get("provides", []))
        if self.kind == "explain":
            return {f"%%explain {self.about['explain']}"}
        return {"LEARNER"} if "parameters" in self.cell.metadata.get("tags", []) else set()

    @property
    def is_answer(self) -> bool:
        """Whether a learner writes into this cell for marks."""
        return self.kind in ("exercise", "explain")


def match(cells: list[dict], slots: list[Slot]) -> list[str]:
    """Fill in every slot's claims, each handed-in cell claiming at most one slot; returns notes for a person."""
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


def _by_carried_names(cells: list[dict], slots: list[Slot], found: list[set], claimed: set, notes: list[str]) -> None:
    by_id = {slot.name: slot for slot in slots}
    by_grade_id = {grade_id(slot.cell): slot for slot in slots if grade_id(slot.cell)}
    owner = {anchor: slot for slot in slots for anchor in slot.anchors}
    for index, cell in enumerate(cells):
        carried = [slot for slot in (by_id.get(cell["id"]), by_grade_id.get(grade_id(cell))) if slot]
        if not carried:
            continue
        slot = carried[0]
        if carried[-1] is not slot:
            slot = max(carried, key=lambda other: _likeness(cell["source"], other.cell.source))
            notes.append(f"cell {index + 1} carries the names of two cells ({carried[0].name}, {carried[-1].name}): "
                         f"taken as {slot.name}, which it resembles more")
        says = {owner[anchor].name: owner[anchor] for anchor in found[index] if anchor in owner}
        if says and slot.name not in says and (slot.is_answer or slot.kind in ("code", "markdown")):
            other = next(iter(says.values()))
            notes.append(f"cell {index + 1} carries the name {slot.name} but its text is {other.name}: taken as that")
            slot = other
        if slot.kind in ("code", "markdown") and not slot.anchors and not _resembles(cell["source"], slot.cell.source):
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
        same = texts.get(slot.cell.source.strip(), [])
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
        if slot.claims or len(slot.cell.source) > COMPARED:
            continue
        for index in loose:
            if len(cells[index]["source"]) <= COMPARED:
                alike = fuzz.ratio(cells[index]["source"], slot.cell.source, score_cutoff=ALIKE)
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
