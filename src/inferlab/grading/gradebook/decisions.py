"""What a person decided, and for which answers it holds.

A decision is data, in `reviews/LAB.json` of the course: which check, which answer (by its hash), how many
points. It holds for exactly that answer. Whenever a submission is recorded again, whichever command does it,
the decisions are applied again as manual scores. Where a learner has handed in another answer since, the old
decision no longer holds and the check has the points that grading gave it.
"""

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from inferlab.grading.course import write_whole
from inferlab.grading.notebook import Notebook, about, grade_id
from inferlab.grading.submission.submission import CourseLab
from inferlab.lab.explain.cell import parse

from .database import Mark

BY_HAND = ("points by hand from before this grading stand: confirm them with --set, or take them back in "
           "formgrader")


@dataclass(frozen=True)
class Decision:
    """Points that a person gave to one answer to one check.

    Attributes:
        check: the check's grade cell, `check-...`.
        answer: the hash of the answer.
        points: what the person gave.
        learners: who has these points by now.
        when: when it was decided (ISO 8601, UTC).
        note: why, in the person's words.
        alone: whether the points are for these learners only. Otherwise everybody who gives the same answer
            gets them.
    """

    check: str
    answer: str
    points: float
    learners: tuple[str, ...]
    when: str
    note: str = ""
    alone: bool = False


def decisions_file(root: Path, lab: str) -> Path:
    """Where a lab's decisions are kept."""
    return root / "reviews" / f"{lab}.json"


def decisions(root: Path, lab: str) -> list[Decision]:
    """All decisions of a lab, oldest first. Raises ValueError when the file is not what was written here."""
    path = decisions_file(root, lab)
    if not path.exists():
        return []
    try:
        rows = json.loads(path.read_text("utf-8"))["decisions"]
        return [Decision(r["check"], r["answer"], float(r["points"]), tuple(r["learners"]), r["when"],
                         r.get("note", ""), r.get("alone", False))
                for r in rows]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} cannot be read as decisions ({error}); mend or remove it") from error


def keep_decisions(root: Path, lab: str, rows: list[Decision]) -> None:
    """Write all decisions of a lab in place of those before."""
    path = decisions_file(root, lab)
    path.parent.mkdir(exist_ok=True)
    data = {"decisions": [asdict(row) for row in rows]}
    write_whole(path, json.dumps(data, indent=1, ensure_ascii=False) + "\n")


def standing(kept: list[Decision], learner: str, written: dict[str, str], flagged: Collection[str],
             marks: Mapping[str, Mark]) -> tuple[dict[str, tuple[float | None, bool]], list[Decision]]:
    """Which decisions hold for what a learner has handed in now.

    A decision holds for the answer it was made on, whoever wrote it, unless it was made for its learners
    alone. Points by a decision on an older answer of the learner's are taken back.

    Args:
        written: grade cell's name -> the hash of the answer to it (`answers`).
        flagged: the grade cells that ask for review this time.
        marks: what the gradebook has, by grade cell's name.

    Returns:
        Grade cell's name -> (points by hand or `None` where they are taken back, whether it waits for a
        person), and all decisions with the learner's name added to those that hold for their answers.
    """
    for_all = {(d.check, d.answer): d for d in kept if not d.alone}
    for_learner = {(d.check, d.answer): d for d in kept if learner in d.learners}
    for_learner |= {(d.check, d.answer): d for d in kept if learner in d.learners and d.alone}
    found: dict[str, tuple[float | None, bool]] = {}
    done: list[Decision] = []
    for check, answer in written.items():
        most = marks[check].maximum if check in marks else float("inf")
        decision = for_learner.get((check, answer)) or (for_all.get((check, answer)) if check in flagged
                                                        else None)
        if decision is not None:
            found[check] = (min(decision.points, most), False)
            done.append(decision)
        elif check in marks and marks[check].by_hand in {
                min(d.points, most) for (name, _), d in for_learner.items() if name == check}:
            found[check] = (None, check in flagged)
    return found, [replace(d, learners=(*d.learners, learner)) if d in done and learner not in d.learners
                   else d for d in kept]


# -- what was written ------------------------------------------------------------------------------
def answer_to(check: str, of: str, written: dict[str, str]) -> str:
    """The fields of the explanation `of` that `check` is about: those named in the check's own name
    (`words-trade-off` is about `trade-off`), all of them when it names none."""
    fields = parse(written.get(of, ""), of).fields()
    about = f"-{check.removeprefix('check-')}-"
    named = {label: text for label, text in fields.items() if f"-{label}-" in about}
    chosen = named or fields
    if len(chosen) == 1:
        return next(iter(chosen.values()))
    return "\n".join(f"{label}: {text}" for label, text in chosen.items())


def fingerprint(text: str) -> str:
    """Equal for texts that differ in spaces and line ends only."""
    return hashlib.sha256(re.sub(r"\s+", " ", text).strip().encode()).hexdigest()[:24]


def explained_by(source: Notebook) -> dict[str, str]:
    """Grade cell's name (`check-...`) -> the explanation that it grades."""
    names = {about(cell)["explain"] for cell in source["cells"] if "explain" in about(cell)}
    return {grade_id(cell): about(cell)["of"] for cell in source["cells"] if about(cell).get("of") in names
            and grade_id(cell)}


def answers(result: dict[str, Any], lab: CourseLab) -> dict[str, str]:
    """Grade cell's name -> the hash of the answer that it graded: an explanation's fields, or all the code
    that the learner wrote, any of which a check of code may run."""
    graded = explained_by(lab.source)
    return {name: fingerprint(answer_to(name, graded[name], result["explanations"])) if name in graded
            else result["code"]
            for name in result["checks"]}
