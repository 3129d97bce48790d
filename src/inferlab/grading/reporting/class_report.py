"""The whole class at a glance: who handed in what, points by exercise, named mistakes, and how well each
exercise tells learners apart; as a page and as tables. Or one lab, question by question.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import StatisticsError, correlation, fmean
from typing import Any

from inferlab.grading.course import Course, write_whole
from inferlab.grading.gradebook.database import Gradebook, Mark
from inferlab.grading.gradebook.graded import graded_lab
from inferlab.grading.roster import Learner, Roster
from inferlab.grading.running.host import Results

from .grades import Grade, grades, inert, not_graded

FEWEST = 10
"""From so many graded learners on, an exercise's discrimination is computed: of fewer it says nothing."""
WEAK = 0.2
"""Below this, an exercise hardly tells who knows the lab (Ebel and Frisbie's rule of thumb)."""


@dataclass(frozen=True)
class Work:
    """One learner in one lab. `total` is `None` where nothing is graded; `state` says "graded", "handed in"
    (what came last is not graded) or "missing"."""

    learner: str
    name: str
    lab: str
    state: str
    total: float | None = None
    maximum: float | None = None
    received: str = ""


@dataclass(frozen=True)
class Exercise:
    """One check of a lab, over all graded learners.

    Attributes:
        lab: the lab.
        name: the check's name.
        points: the most that it gives.
        graded: how many learners have points in it.
        mean: their mean.
        full: how many have all points.
        zero: how many have none.
        discrimination: the correlation (-1 to 1) of its points with the points of the lab's other checks;
            `None` for fewer than `FEWEST` learners, or where all have the same points.
        mistakes: named mistake -> how many learners made it, the commonest first.
    """

    lab: str
    name: str
    points: float
    graded: int
    mean: float
    full: int
    zero: int
    discrimination: float | None
    mistakes: dict[str, int] = field(default_factory=dict)

    @property
    def share(self) -> float:
        """The mean as a share (0 to 1) of the points."""
        return self.mean / self.points if self.points else 0.0


@dataclass(frozen=True)
class ClassReport:
    """What there is to say about a class, by learner and by exercise."""

    labs: list[str]
    work: list[Work]
    exercises: list[Exercise]

    @property
    def weakest(self) -> list[Exercise]:
        """The exercises that tell learners apart worst, the worst first."""
        known = [one for one in self.exercises if one.discrimination is not None
                 and one.discrimination < WEAK]
        return sorted(known, key=lambda one: (one.discrimination or 0.0, one.lab, one.name))

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON data."""
        return {"labs": self.labs, "work": [asdict(one) for one in self.work],
                "exercises": [asdict(one) for one in self.exercises],
                "weakest": [[one.lab, one.name] for one in self.weakest]}


def class_report(course: Course, labs: Sequence[str] | None = None, db_url: str | None = None) -> ClassReport:
    """The class in these labs; in all that somebody has handed in if `labs` is None."""
    roster = Roster.load(course.roster) if course.roster.exists() else Roster(())
    found = grades(course, None, db_url)
    handed = {lab: {who for who, where in not_graded(course, found) if where == lab} for lab in course.labs}
    chosen = [lab for lab in course.labs if (lab in labs if labs is not None else
                                             handed[lab] or any(grade.lab == lab for grade in found))]
    work = [one for lab in chosen for one in _work(lab, roster, handed[lab],
                                                   [grade for grade in found if grade.lab == lab])]
    with Gradebook(db_url or course.gradebook_url) as gradebook:
        exercises = [one for lab in chosen for one in _exercises(course, gradebook, lab)]
    return ClassReport(chosen, work, exercises)


def _work(lab: str, roster: Roster, handed: set[str], found: list[Grade]) -> list[Work]:
    graded = {grade.learner: grade for grade in found}
    people = {learner.id: learner for learner in roster.learners}
    rows = []  # `handed`: whose latest file is not graded
    for identity in [*people, *sorted((handed | graded.keys()) - people.keys())]:
        name, grade = people.get(identity, Learner(identity)).name, graded.get(identity)
        if grade is not None and identity not in handed:
            rows.append(Work(identity, name, lab, "graded", round(grade.total, 6), grade.maximum,
                             grade.received))
        else:
            rows.append(Work(identity, name, lab, "handed in" if identity in handed else "missing"))
    return rows


def _exercises(course: Course, gradebook: Gradebook, lab: str) -> list[Exercise]:
    names = graded_lab(course, lab).checks
    scores: dict[str, dict[str, Mark]] = {name: {} for name in names}
    for mark in gradebook.marks(lab):
        if mark.graded and mark.check in scores:
            scores[mark.check][mark.learner] = mark
    mistakes: dict[str, Counter[str]] = {name: Counter() for name in names}
    for key in gradebook.results(lab).values():
        result = Results(course.results).get(key) or {"checks": {}}
        for grade_id, check in result["checks"].items():
            if grade_id in mistakes:
                mistakes[grade_id].update({part["message"] for part in check["parts"] if part["mistake"]})
    return [_exercise(lab, name, grade_id, scores, mistakes[grade_id]) for grade_id, name in names.items()
            if scores[grade_id]]


def _exercise(lab: str, name: str, grade_id: str, scores: dict[str, dict[str, Mark]],
              mistakes: Counter[str]) -> Exercise:
    mine = scores[grade_id]
    points = next(iter(mine.values())).maximum
    own = [mark.score for mark in mine.values()]
    rest = [sum(other[who].score for check, other in scores.items() if check != grade_id and who in other)
            for who in mine]
    return Exercise(lab, name, points, len(own), round(fmean(own), 3), sum(score >= points for score in own),
                    sum(score <= 0 for score in own), discrimination(own, rest), dict(mistakes.most_common()))


def discrimination(own: Sequence[float], rest: Sequence[float]) -> float | None:
    """The correlation of an exercise's points with those of the rest; `None` where it says nothing."""
    if len(own) < FEWEST:
        return None
    try:
        return round(correlation(own, rest), 2)
    except StatisticsError:  # all have the same
        return None


# -- the files -----------------------------------------------------------------------------------------------
def write_class_report(report: ClassReport, folder: Path) -> list[Path]:
    """Write `index.html`, `learners.csv`, `exercises.csv` and `mistakes.csv`; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "index.html"
    write_whole(page, class_page(report))
    tables: dict[str, tuple[Sequence[str], Iterable[Sequence[object]]]] = {
        "learners": (("learner", "name", "lab", "state", "total", "maximum", "received"),
                     [tuple(asdict(one).values()) for one in report.work]),
        "exercises": (("lab", "exercise", "points", "graded", "mean", "full", "zero", "discrimination"),
                      [tuple(asdict(one).values())[:8] for one in report.exercises]),
        "mistakes": (("lab", "exercise", "mistake", "learners"),
                     [(one.lab, one.name, text, count) for one in report.exercises
                      for text, count in one.mistakes.items()]),
    }
    paths = [page]
    for name, (headings, rows) in tables.items():
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(headings)
        writer.writerows([inert("" if value is None else value) for value in row] for row in rows)
        paths.append(folder / f"{name}.csv")
        write_whole(paths[-1], stream.getvalue().encode("utf-8-sig"))
    return paths


def class_page(report: ClassReport) -> str:
    """The page as HTML, which needs no network."""
    people = {one.learner: one.name for one in report.work}
    cells = {(one.learner, one.lab): one for one in report.work}
    from jinja2 import Environment, PackageLoader, StrictUndefined  # one lab's questions need no page

    environment = Environment(loader=PackageLoader("inferlab.grading.reporting", "."), autoescape=True,
                              undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["points"] = lambda value: f"{value:.2f}".rstrip("0").rstrip(".")
    return environment.get_template("class_page.html").render(
        report=report, people=people, cells=cells, weak=WEAK, fewest=FEWEST,
        spread={lab: _spread([one for one in report.work if one.lab == lab]) for lab in report.labs})


def _spread(work: list[Work], bins: int = 10) -> list[int]:
    """How many graded learners have 0 to 10%, 10 to 20%, ... of a lab's points."""
    counts = [0] * bins
    for one in work:
        if one.total is not None and one.maximum:
            counts[min(bins - 1, int(one.total / one.maximum * bins))] += 1
    return counts


# -- one lab, question by question -----------------------------------------------------------------
def question_summary(course: Course, lab: str, db_url: str | None = None) -> list[dict[str, Any]]:
    """For each question, from the results that the marks in the gradebook were made from.

    Returns dicts of `question`, `points` (the maximum), `graded` (submissions), `mean`, `full`, `zero`,
    `histogram` (points -> submissions), `mistakes` and `messages` (the five commonest, as `[text,
    submissions]`).
    """
    names = graded_lab(course, lab).checks
    with Gradebook(db_url or course.gradebook_url) as gradebook:
        found = [Results(course.results).get(key) for key in gradebook.results(lab).values()]
    return [_question(name, [result["checks"][grade_id] for result in found if result is not None
                             and grade_id in result["checks"]])
            for grade_id, name in names.items()]


def _question(name: str, checks: list[dict[str, Any]]) -> dict[str, Any]:
    scores = [check["score"] or 0.0 for check in checks]
    most = checks[0]["points"] if checks else None
    mistakes: Counter[str] = Counter()
    messages: Counter[str] = Counter()
    for check in checks:
        mistakes.update({part["message"] for part in check["parts"] if part["mistake"]})
        messages.update({part["message"] for part in check["parts"] if part["message"]
                         and not part["mistake"] and part["fraction"] < 1})
    return {
        "question": name, "points": most, "graded": len(checks),
        "mean": round(sum(scores) / len(scores), 3) if scores else None,
        "full": sum(score == most for score in scores), "zero": sum(score == 0 for score in scores),
        "histogram": {f"{score:g}": count for score, count in sorted(Counter(scores).items())},
        "mistakes": [list(pair) for pair in mistakes.most_common(5)],
        "messages": [list(pair) for pair in messages.most_common(5)],
    }
