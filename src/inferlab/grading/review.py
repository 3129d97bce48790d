"""Explanations that a person must decide: open slots in groups of similar answers, decisions kept across regrading.

`inferlab review LAB` lists the groups; `--give GROUP POINTS` decides a whole group. A decision is data, in
`reviews/LAB.json` of the course: which check, which text (by its hash), how many points. It holds for exactly that
text. After every autograde the decisions are applied again as manual scores; where a learner has handed in another
text since, the old decision no longer holds and the slot is open again.
"""

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nbformat

from inferlab.lab.explain.cell import parse

from .course import Course
from .plan import make_job
from .sourcebook import read_file, sanitized

LIKE = 0.72
"""From this similarity (0 to 1) on, two answers to a check are in one group. It sorts; it never scores."""


@dataclass(frozen=True)
class Decision:
    """Points given by a person to one text of one check. `learners` had it when it was decided."""

    check: str
    answer: str
    points: float
    learners: tuple[str, ...]
    when: str
    note: str = ""


@dataclass(frozen=True)
class Open:
    """A slot that waits: whose, which check, its points, what was written, why it waits, what was found."""

    learner: str
    check: str
    maximum: float
    text: str
    answer: str
    why: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class Group:
    """Open slots of one check whose answers are alike; `name` is stable while its answers are."""

    name: str
    check: str
    maximum: float
    slots: tuple[Open, ...]

    @property
    def learners(self) -> tuple[str, ...]:
        return tuple(slot.learner for slot in self.slots)


# -- what was written -----------------------------------------------------------------------------------------------
def answer_to(check: str, of: str, written: dict[str, str]) -> str:
    """The fields of the explanation `of` that `check` is about: those named in the check's own name
    (`words-trade-off` is about `trade-off`), all of them when it names none."""
    fields = parse(written.get(of, ""), of).fields()
    about = f"-{check.removeprefix('check-')}-"
    named = {label: text for label, text in fields.items() if f"-{label}-" in about}
    chosen = named or fields
    return next(iter(chosen.values())) if len(chosen) == 1 else "\n".join(f"{label}: {text}" for label, text in chosen.items())


def fingerprint(text: str) -> str:
    """Equal for texts that differ in spaces and line ends only."""
    return hashlib.sha256(re.sub(r"\s+", " ", text).strip().encode()).hexdigest()[:24]


def explained_by(source: nbformat.NotebookNode) -> dict[str, str]:
    """Grade cell's name (`check-...`) -> the explanation that it grades."""
    names = {cell.metadata.inferlab.explain for cell in source.cells if "explain" in cell.metadata.get("inferlab", {})}
    return {cell.metadata.nbgrader.grade_id: cell.metadata.inferlab.of for cell in source.cells
            if cell.metadata.get("inferlab", {}).get("of") in names and "nbgrader" in cell.metadata}


def _written(course: Course, lab: str, learner: str, source: nbformat.NotebookNode) -> dict[str, str]:
    notebook, _notes = sanitized(read_file(course.submitted(learner, lab)), source)
    return make_job(notebook, source)["explanations"]


# -- the list -------------------------------------------------------------------------------------------------------
def open_slots(course: Course, lab: str, db_url: str | None = None) -> list[Open]:
    """Every explanation's check of the lab that is flagged and has no decision."""
    from .report import to_review

    source = nbformat.read(course.source(course.require(lab)), as_version=4)
    graded = explained_by(source)
    texts: dict[str, dict[str, str]] = {}
    found = []
    for item in to_review(course, lab, db_url):
        if item["check"] not in graded:
            continue
        learner = item["learner"]
        if learner not in texts:
            texts[learner] = _written(course, lab, learner, source)
        text = answer_to(item["check"], graded[item["check"]], texts[learner])
        found.append(Open(learner, item["check"], item["maximum"], text, fingerprint(text), tuple(item["why"]), tuple(item.get("evidence", ()))))
    return found


def groups(slots: Iterable[Open], like: float = LIKE) -> list[Group]:
    """Slots of the same check with similar answers together; the largest group first, the same for the same input."""
    from rapidfuzz import fuzz

    def noes(slot: Open) -> list[str]:
        """The words that say no: two answers that differ in one say opposite things, however alike they are."""
        return sorted(re.findall(r"\b(?:not|no|never|none|nothing|neither|nor|without|false|wrong|untrue)\b|n't|n\u2019t", slot.text.casefold()))

    slots = list(slots)
    denials = {slot: noes(slot) for slot in slots}
    gathered: list[list[Open]] = []
    for slot in sorted(slots, key=lambda s: (s.check, s.answer, s.learner)):
        words = " ".join(re.findall(r"\w+", slot.text.casefold()[:2_000]))
        best, at_best = None, 100 * like
        for group in gathered:
            if group[0].check != slot.check or denials[group[0]] != denials[slot]:
                continue
            other = " ".join(re.findall(r"\w+", group[0].text.casefold()[:2_000]))
            near = 100.0 if group[0].answer == slot.answer else fuzz.token_sort_ratio(words, other, score_cutoff=at_best)
            if near >= at_best:
                best, at_best = group, near
        if best is None:
            gathered.append([slot])
        else:
            best.append(slot)
    made = []
    for group in gathered:
        name = hashlib.sha256("".join([group[0].check, *sorted({s.answer for s in group})]).encode()).hexdigest()[:6]
        made.append(Group(name, group[0].check, group[0].maximum, tuple(sorted(group, key=lambda s: s.learner))))
    return sorted(made, key=lambda g: (-len(g.slots), g.check, g.name))


# -- decisions ------------------------------------------------------------------------------------------------------
def decisions_file(root: Path, lab: str) -> Path:
    return root / "reviews" / f"{lab}.json"


def decisions(root: Path, lab: str) -> list[Decision]:
    """All decisions of a lab, oldest first. Raises ValueError when the file is not what was written here."""
    path = decisions_file(root, lab)
    if not path.exists():
        return []
    try:
        rows = json.loads(path.read_text("utf-8"))["decisions"]
        return [Decision(r["check"], r["answer"], float(r["points"]), tuple(r["learners"]), r["when"], r.get("note", "")) for r in rows]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} cannot be read as decisions ({error}); mend or remove it") from error


def _keep(root: Path, lab: str, rows: list[Decision]) -> None:
    path = decisions_file(root, lab)
    path.parent.mkdir(exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump({"decisions": [asdict(row) for row in rows]}, file, indent=1, ensure_ascii=False)
        file.write("\n")
    os.replace(temporary, path)


def decide(course: Course, lab: str, group: Group, points: float, note: str = "", db_url: str | None = None) -> list[Decision]:
    """Give every slot of a group the same points: kept as data, and written into the gradebook at once.

    Raises ValueError for points outside 0 to the check's maximum. A later decision on the same text replaces it.
    """
    from nbgrader.api import Gradebook

    if not 0 <= points <= group.maximum:
        raise ValueError(f"{points:g} points: {group.check} has 0 to {group.maximum:g}")
    when = datetime.now(UTC).isoformat(timespec="seconds")
    new = [Decision(group.check, answer, points, tuple(s.learner for s in group.slots if s.answer == answer), when, note)
           for answer in sorted({s.answer for s in group.slots})]
    replaced = {(d.check, d.answer) for d in new}
    _keep(course.root, lab, [d for d in decisions(course.root, lab) if (d.check, d.answer) not in replaced] + new)
    with Gradebook(db_url or course.gradebook_url) as gradebook:
        for slot in group.slots:
            grade = gradebook.find_grade(slot.check, lab, lab, slot.learner)
            grade.manual_score, grade.needs_manual_grade = points, False
        gradebook.db.commit()
    return new


def reapply(gradebook: Any, root: Path, lab: str, learner: str, notebook: nbformat.NotebookNode, source: nbformat.NotebookNode,
            flagged: Iterable[str]) -> list[str]:
    """After an autograde, make what a person decided stand again for this learner; returns the checks decided.

    `notebook` is what was graded, `flagged` the grade cells that ask for review this time. A decision holds for the
    text it was made on, whoever wrote it; a learner's score by a decision on an older text is taken back. The
    caller commits.
    """
    kept = decisions(root, lab)
    if not kept:
        return []
    flagged = set(flagged)
    written = make_job(notebook, source)["explanations"]
    by_text = {(d.check, d.answer): d for d in kept}
    earlier = {(d.check, name): d for d in kept for name in d.learners}
    done = []
    for check, of in explained_by(source).items():
        decision = by_text.get((check, fingerprint(answer_to(check, of, written))))
        if decision is None and (check, learner) not in earlier:
            continue
        grade = gradebook.find_grade(check, lab, lab, learner)
        if decision is None:
            if grade.manual_score == earlier[check, learner].points:
                grade.manual_score, grade.needs_manual_grade = None, check in flagged
        elif check in flagged or learner in decision.learners:
            grade.manual_score, grade.needs_manual_grade = min(decision.points, float(grade.max_score)), False
            done.append(check)
    return done


# -- the terminal ---------------------------------------------------------------------------------------------------
def shown(found: list[Group]) -> str:
    """The groups as text: name, check, how many, one answer in full, the others where they differ."""
    lines = []
    for group in found:
        first = group.slots[0]
        lines.append(f"[{group.name}] {group.check}, {len(group.slots)} answer(s), up to {group.maximum:g} points: {', '.join(group.learners)}")
        lines += [f"    {reason}" for reason in first.why]
        told = set()
        for slot in group.slots:
            if slot.answer not in told:
                told.add(slot.answer)
                lines += [f"    | {line}" for line in (slot.text[:1_000] or "(empty)").splitlines()]
                lines += [f"      found: {text}" for text in slot.evidence[:3]]
    return "\n".join(lines) or "nothing open"


def add_arguments(parser: Any) -> None:
    """The options of `inferlab review` that decide explanations."""
    parser.add_argument("--groups", action="store_true", help="open explanations only, similar answers together")
    parser.add_argument("--give", nargs=2, metavar=("GROUP", "POINTS"), help="give every answer of a group these points; kept across regrading")
    parser.add_argument("--note", default="", help="why, kept with the decision")
    parser.add_argument("--like", type=float, default=LIKE, metavar="0..1", help=f"how similar the answers of a group are (default {LIKE})")


def review_command(course: Course, lab: str, give: tuple[str, float] | None = None, note: str = "", like: float = LIKE,
                   db_url: str | None = None) -> tuple[bool, str, Any]:
    """List a lab's groups, or decide one; returns (something is still open, text, JSON data).

    Raises ValueError for a group that there is not, with those that there are.
    """
    found = groups(open_slots(course, lab, db_url), like)
    if give is None:
        return bool(found), shown(found), [asdict(group) for group in found]
    chosen = next((group for group in found if group.name == give[0]), None)
    if chosen is None:
        raise ValueError(f"no open group '{give[0]}' in {lab}; there is: {', '.join(g.name for g in found) or 'none'}")
    made = decide(course, lab, chosen, float(give[1]), note, db_url)
    text = f"{chosen.check}: {float(give[1]):g} of {chosen.maximum:g} points for {', '.join(chosen.learners)}"
    return len(found) > 1, text, [asdict(d) for d in made]
