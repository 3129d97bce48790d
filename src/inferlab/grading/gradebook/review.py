"""What a person decides: points for groups of similar explanations, or for one learner's check.

`inferlab review LAB --groups` lists the groups; `--give GROUP POINTS` decides a whole group, `--set` one
learner's check.
"""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from inferlab.grading.course import Course
from inferlab.grading.running.host import Results

from .database import Gradebook
from .decisions import (
    BY_HAND,
    Decision,
    answer_to,
    answers,
    decisions,
    explained_by,
    fingerprint,
    keep_decisions,
)
from .graded import graded_lab, graded_source

NO = re.compile(r"\b(?:not|no|never|none|nothing|neither|nor|without|false|wrong|untrue)\b|n't|n\u2019t")
"""The words that say no: two answers that differ in one say opposite things, however alike they are."""
LIKE = 0.72
"""From this similarity (0 to 1) on, two answers to a check are in one group. It sorts; it never scores."""


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
class AnswerGroup:
    """Open slots of one check whose answers are alike; `name` is stable while its answers are."""

    name: str
    check: str
    maximum: float
    slots: tuple[Open, ...]

    @property
    def learners(self) -> tuple[str, ...]:
        """Whose answers they are."""
        return tuple(slot.learner for slot in self.slots)


def kept_result(course: Course, gradebook: Gradebook, lab: str, learner: str) -> dict[str, Any] | None:
    """The result behind a learner's marks in the gradebook; `submitted/` may hold a later hand-in."""
    key = gradebook.results(lab).get(learner)
    return Results(course.results).get(key) if key is not None else None


# -- the list --------------------------------------------------------------------------------------
def to_review(course: Course, lab: str | None = None) -> list[dict[str, Any]]:
    """What a person must look at: each mark that is flagged, with what grading said about it."""
    items = []
    with Gradebook(course.gradebook_url) as gradebook:
        for mark in gradebook.marks(lab):
            if not mark.waits or not mark.graded:
                continue
            result = kept_result(course, gradebook, mark.lab, mark.learner) or {"checks": {}}
            outcome = result["checks"].get(mark.check, {})
            why = outcome.get("flags") or [error for error in [outcome.get("error")] if error]
            why = [*why, *([BY_HAND] if mark.by_hand is not None else [])] or ["flagged in formgrader"]
            evidence = [text for part in outcome.get("parts", []) if part["state"] in ("review", "broken")
                        for text in part["evidence"]]
            items.append({"learner": mark.learner, "lab": mark.lab, "check": mark.check, "score": mark.score,
                          "maximum": mark.maximum, "why": why, "evidence": evidence})
    return sorted(items, key=lambda item: (item["lab"], item["check"], item["learner"]))


def open_slots(course: Course, lab: str) -> list[Open]:
    """Every explanation's check of the lab that is flagged and has no decision."""
    graded = explained_by(graded_source(course, course.require(lab)))
    found = []
    with Gradebook(course.gradebook_url) as gradebook:
        for item in to_review(course, lab):
            result = kept_result(course, gradebook, lab, item["learner"])
            if item["check"] not in graded or result is None:
                continue
            text = answer_to(item["check"], graded[item["check"]], result["explanations"])
            found.append(Open(item["learner"], item["check"], item["maximum"], text, fingerprint(text),
                              tuple(item["why"]), tuple(item["evidence"])))
    return found


def groups(slots: Iterable[Open]) -> list[AnswerGroup]:
    """Slots of one check with similar answers together, the largest group first; a pure function."""
    from rapidfuzz import fuzz

    slots = list(slots)
    denials = {slot: sorted(NO.findall(slot.text.casefold())) for slot in slots}
    gathered: list[list[Open]] = []
    for slot in sorted(slots, key=lambda s: (s.check, s.answer, s.learner)):
        words = " ".join(re.findall(r"\w+", slot.text.casefold()[:2_000]))
        best, at_best = None, 100 * LIKE
        for group in gathered:
            if group[0].check != slot.check or denials[group[0]] != denials[slot]:
                continue
            other = " ".join(re.findall(r"\w+", group[0].text.casefold()[:2_000]))
            same = group[0].answer == slot.answer
            near = 100.0 if same else fuzz.token_sort_ratio(words, other, score_cutoff=at_best)
            if near >= at_best:
                best, at_best = group, near
        if best is None:
            gathered.append([slot])
        else:
            best.append(slot)
    made = []
    for group in gathered:
        named = "".join([group[0].check, *sorted({s.answer for s in group})])
        name = hashlib.sha256(named.encode()).hexdigest()[:6]
        made.append(AnswerGroup(name, group[0].check, group[0].maximum,
                          tuple(sorted(group, key=lambda s: s.learner))))
    return sorted(made, key=lambda g: (-len(g.slots), g.check, g.name))


# -- decisions -------------------------------------------------------------------------------------
def decide(course: Course, lab: str, group: AnswerGroup, points: float, note: str = "") -> list[Decision]:
    """Give every slot of a group the same points: kept as data, and written into the gradebook at once.

    Raises ValueError for points outside 0 to the check's maximum. A later decision on the same text replaces
    it.
    """
    if not 0 <= points <= group.maximum:
        raise ValueError(f"{points:g} points: {group.check} has 0 to {group.maximum:g}")
    when = _now()
    new = [Decision(group.check, answer, points, tuple(s.learner for s in group.slots if s.answer == answer),
                    when, note)
           for answer in sorted({s.answer for s in group.slots})]
    replaced = {(d.check, d.answer) for d in new}
    keep_decisions(course.root, lab, [d for d in decisions(course.root, lab) if d.alone
                            or (d.check, d.answer) not in replaced] + new)
    with Gradebook(course.gradebook_url) as gradebook, gradebook.transaction():
        for mark in gradebook.marks(lab):
            if mark.check == group.check and mark.learner in group.learners:
                gradebook.set_mark(mark.id, manual_score=points, needs_manual_grade=False)
    return new


def give_points(course: Course, lab: str, learner: str, check: str, points: float, note: str = "") -> dict:
    """Give one learner's check its points by hand; it no longer waits. Returns what now stands.

    Kept as a decision on what the learner has handed in. `check` is the check's name, with or without
    `check-`. Raises `ValueError` for points outside 0 to its maximum, a grade that does not exist, or one
    whose kept result is gone.
    """
    name = check if check.startswith("check-") else f"check-{check}"
    trusted = graded_lab(course, course.require(lab))
    with Gradebook(course.gradebook_url) as gradebook:
        mark = next((mark for mark in gradebook.marks(lab, learner) if mark.check == name), None)
        if mark is None:
            raise ValueError(f"{learner} has no graded check '{name}' in {lab}")
        if not 0 <= points <= mark.maximum:
            raise ValueError(f"{points:g} points: {name} has 0 to {mark.maximum:g}")
        result = kept_result(course, gradebook, lab, learner)
        if result is None:
            raise ValueError(f"what grading {learner} gave is no longer kept: run `inferlab grade {lab} "
                             f"--learner {learner} --again` first")
        new = Decision(name, answers(result, trusted)[name], points, (learner,), _now(), note, alone=True)
        others = [d for d in decisions(course.root, lab)
                  if (d.check, d.answer, d.learners, d.alone) != (new.check, new.answer, new.learners, True)]
        keep_decisions(course.root, lab, [*others, new])
        with gradebook.transaction():
            gradebook.set_mark(mark.id, manual_score=points, needs_manual_grade=False)
        given = replace(mark, by_hand=points)
    return {"learner": learner, "lab": lab, "check": name, "score": given.score, "maximum": given.maximum}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


# -- the terminal ----------------------------------------------------------------------------------
def groups_as_text(found: list[AnswerGroup]) -> str:
    """The groups as text: name, check, how many, one answer in full, the others where they differ."""
    lines = []
    for group in found:
        first = group.slots[0]
        lines.append(f"[{group.name}] {group.check}, {len(group.slots)} answer(s), up to {group.maximum:g} "
                     f"points: {', '.join(group.learners)}")
        lines += [f"    {reason}" for reason in first.why]
        told = set()
        for slot in group.slots:
            if slot.answer not in told:
                told.add(slot.answer)
                lines += [f"    | {line}" for line in (slot.text[:1_000] or "(empty)").splitlines()]
                lines += [f"      found: {text}" for text in slot.evidence[:3]]
    return "\n".join(lines) or "nothing open"


def review_command(course: Course, lab: str, give: tuple[str, float] | None = None,
                   note: str = "") -> tuple[bool, str, Any]:
    """List a lab's groups, or decide one; returns (something is still open, text, JSON data).

    Raises ValueError for a group that there is not, with those that there are.
    """
    found = groups(open_slots(course, lab))
    if give is None:
        return bool(found), groups_as_text(found), [asdict(group) for group in found]
    chosen = next((group for group in found if group.name == give[0]), None)
    if chosen is None:
        raise ValueError(f"no open group '{give[0]}' in {lab}; there is: "
                         f"{', '.join(g.name for g in found) or 'none'}")
    made = decide(course, lab, chosen, float(give[1]), note)
    text = f"{chosen.check}: {float(give[1]):g} of {chosen.maximum:g} points for {', '.join(chosen.learners)}"
    return len(found) > 1, text, [asdict(d) for d in made]
