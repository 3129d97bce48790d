"""What a person decides: explanations in groups of similar answers, or one learner's check; kept across regrading.

`inferlab review LAB --groups` lists the groups; `--give GROUP POINTS` decides a whole group, `--set` one learner's check.
A decision is data, in `reviews/LAB.json` of the course: which check, which answer (by its hash), how many points. It
holds for exactly that answer. After every autograde the decisions are applied again as manual scores; where a learner has
handed in another answer since, the old decision no longer holds and the check has the points that grading gave it.
"""

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
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
    """Points given by a person to one answer to one check. `learners` have got them; nobody else will if `alone`, else
    whoever writes the same."""

    check: str
    answer: str
    points: float
    learners: tuple[str, ...]
    when: str
    note: str = ""
    alone: bool = False


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


def answers(notebook: nbformat.NotebookNode, source: nbformat.NotebookNode) -> dict[str, str]:
    """Grade cell's name -> the hash of the answer that it grades: an explanation's fields, or all the code that the
    learner wrote, any of which a check of code may run."""
    given = {cell.id for cell in source.cells if "exercise" not in cell.metadata.get("inferlab", {})}
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code" and cell.id not in given)
    code_hash = hashlib.sha256(code.encode()).hexdigest()[:24]
    found = {cell.metadata.nbgrader.grade_id: code_hash for cell in source.cells if cell.metadata.get("nbgrader", {}).get("grade")}
    written = make_job(notebook, source)["explanations"]
    return found | {check: fingerprint(answer_to(check, of, written)) for check, of in explained_by(source).items()}


def _graded(course: Course, lab: str, learner: str, source: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook that the marks in the gradebook are for; a later one may lie in `submitted/`."""
    return sanitized(read_file(course.root / "autograded" / learner / lab / f"{lab}.ipynb"), source)[0]


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
            texts[learner] = make_job(_graded(course, lab, learner, source), source)["explanations"]
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
        return [Decision(r["check"], r["answer"], float(r["points"]), tuple(r["learners"]), r["when"], r.get("note", ""), r.get("alone", False))
                for r in rows]
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
    when = _now()
    new = [Decision(group.check, answer, points, tuple(s.learner for s in group.slots if s.answer == answer), when, note)
           for answer in sorted({s.answer for s in group.slots})]
    replaced = {(d.check, d.answer) for d in new}
    _keep(course.root, lab, [d for d in decisions(course.root, lab) if d.alone or (d.check, d.answer) not in replaced] + new)
    with Gradebook(db_url or course.gradebook_url) as gradebook:
        for slot in group.slots:
            grade = gradebook.find_grade(slot.check, lab, lab, slot.learner)
            grade.manual_score, grade.needs_manual_grade = points, False
        gradebook.db.commit()
    return new


def give_points(course: Course, lab: str, learner: str, check: str, points: float, note: str = "", db_url: str | None = None) -> dict:
    """Give one learner's check its points by hand and take it off the list to review; returns what now stands.

    Kept as a decision on what the learner has handed in. `check` is the check's name, with or without `check-`. Raises
    `ValueError` for points outside 0 to its maximum or a grade that does not exist.
    """
    from nbgrader.api import Gradebook, MissingEntry

    name = check if check.startswith("check-") else f"check-{check}"
    source = nbformat.read(course.source(course.require(lab)), as_version=4)
    with Gradebook(db_url or course.gradebook_url) as gradebook:
        try:
            grade = gradebook.find_grade(name, lab, lab, learner)
        except MissingEntry as error:
            raise ValueError(f"{learner} has no graded check '{name}' in {lab}") from error
        if not 0 <= points <= grade.max_score:
            raise ValueError(f"{points:g} points: {name} has 0 to {grade.max_score:g}")
        answer = answers(_graded(course, lab, learner, source), source)[name]
        new = Decision(name, answer, points, (learner,), _now(), note, alone=True)
        others = [d for d in decisions(course.root, lab)
                  if (d.check, d.answer, d.learners, d.alone) != (new.check, new.answer, new.learners, True)]
        _keep(course.root, lab, [*others, new])
        grade.manual_score, grade.needs_manual_grade = points, False
        gradebook.db.commit()
        return {"learner": learner, "lab": lab, "check": name, "score": float(grade.score), "maximum": float(grade.max_score)}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def reapply(gradebook: Any, root: Path, lab: str, learner: str, notebook: nbformat.NotebookNode, source: nbformat.NotebookNode,
            flagged: Iterable[str]) -> list[str]:
    """After an autograde, make what a person decided stand again for this learner; returns the checks decided.

    `notebook` is what was graded, `flagged` the grade cells that ask for review this time. A decision holds for the
    answer it was made on, whoever wrote it unless it was made for its learners alone; a learner's score by a decision
    on an older answer is taken back. The caller commits.
    """
    kept = decisions(root, lab)
    if not kept:
        return []
    flagged = set(flagged)
    for_all = {(d.check, d.answer): d for d in kept if not d.alone}
    for_learner = {(d.check, d.answer): d for d in kept if learner in d.learners}
    for_learner |= {(d.check, d.answer): d for d in kept if learner in d.learners and d.alone}
    earlier = {check for check, _ in for_learner}
    done: list[Decision] = []
    for check, answer in answers(notebook, source).items():
        decision = for_learner.get((check, answer)) or (for_all.get((check, answer)) if check in flagged else None)
        if decision is None and check not in earlier:
            continue
        grade = gradebook.find_grade(check, lab, lab, learner)
        most = float(grade.max_score)
        if decision is not None:
            grade.manual_score, grade.needs_manual_grade = min(decision.points, most), False
            done.append(decision)
        elif grade.manual_score in {min(d.points, most) for (name, _), d in for_learner.items() if name == check}:
            grade.manual_score, grade.needs_manual_grade = None, check in flagged
    rows = [replace(d, learners=(*d.learners, learner)) if d in done and learner not in d.learners else d for d in kept]
    if rows != kept:
        _keep(root, lab, rows)
    return [decision.check for decision in done]


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
