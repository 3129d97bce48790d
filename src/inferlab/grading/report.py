"""Reports for the instructor: the grades table, what happened question by question, what to look at, similar answers."""

import csv
import io
import json
import keyword
import textwrap
import tokenize
from collections import Counter
from dataclasses import asdict, dataclass, field
from itertools import combinations
from pathlib import Path

import nbformat

from .course import Course
from .plan import make_job
from .results import Results

BINS = 5


@dataclass(frozen=True)
class Grade:
    """One learner in one lab. `score` is before the penalty for lateness, `total` after it."""

    learner: str
    lab: str
    score: float
    penalty: float
    total: float
    maximum: float
    received: str
    needs_review: bool


@dataclass
class Question:
    """One check over everyone: how many got how much, and the commonest messages with how many learners saw them.

    `histogram` counts learners by share of the points, in five equal bins from 0 to 1.
    """

    check: str
    maximum: float
    graded: int = 0
    mean: float = 0.0
    full: int = 0
    zero: int = 0
    histogram: list[int] = field(default_factory=lambda: [0] * BINS)
    mistakes: list[tuple[str, int]] = field(default_factory=list)


@dataclass(frozen=True)
class Pair:
    """Two learners whose answers to an exercise are alike, 0 to 1."""

    exercise: str
    learners: tuple[str, str]
    likeness: float


def _gradebook(course: Course, db_url: str | None):
    from nbgrader.api import Gradebook

    return Gradebook(db_url or course.gradebook_url)


def grades(course: Course, lab: str | None = None, db_url: str | None = None) -> list[Grade]:
    """Every graded submission, by lab and learner; of one lab when it is given."""
    rows = []
    with _gradebook(course, db_url) as gradebook:
        for assignment in gradebook.assignments:
            if lab is not None and assignment.name != lab:
                continue
            for submission in gradebook.assignment_submissions(assignment.name):
                penalty = float(submission.late_submission_penalty or 0.0)
                received = submission.timestamp.isoformat(timespec="seconds") + "+00:00" if submission.timestamp else ""
                rows.append(Grade(submission.student.id, assignment.name, float(submission.score), penalty,
                                  max(0.0, float(submission.score) - penalty), float(assignment.max_score), received,
                                  bool(submission.needs_manual_grade)))
    return sorted(rows, key=lambda row: (row.lab, row.learner))


def write_csv(rows: list[Grade], path: Path) -> None:
    """`grades.csv`: UTF-8 with a byte order mark, so that a spreadsheet reads names in every alphabet."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(Grade.__dataclass_fields__), lineterminator="\n")
    writer.writeheader()
    writer.writerows([{key: _inert(value) for key, value in asdict(row).items()} for row in rows])
    path.write_text(stream.getvalue(), "utf-8-sig")


def _inert(value: object) -> object:
    """A text that a spreadsheet would run as a formula, made text."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t") else value


def questions(course: Course, lab: str, db_url: str | None = None) -> list[Question]:
    """The lab question by question, in the order of the notebook."""
    source = nbformat.read(course.source(lab), as_version=4)
    order = [cell.metadata.nbgrader.grade_id for cell in source.cells if cell.metadata.get("nbgrader", {}).get("grade")]
    found: dict[str, Question] = {}
    with _gradebook(course, db_url) as gradebook:
        for submission in gradebook.assignment_submissions(lab):
            for notebook in submission.notebooks:
                for grade in notebook.grades:
                    _count(found.setdefault(grade.name, Question(grade.name, float(grade.max_score))), float(grade.score))
    for question in found.values():
        question.mean = round(question.mean / question.graded, 4) if question.graded else 0.0
    said = _messages(course, lab, source)
    for name, question in found.items():
        question.mistakes = said.get(name, Counter()).most_common(5)
    return sorted(found.values(), key=lambda q: order.index(q.check) if q.check in order else len(order))


def _count(question: Question, score: float) -> None:
    share = score / question.maximum if question.maximum else 0.0
    question.graded += 1
    question.mean += score
    question.full += share >= 1
    question.zero += share <= 0
    question.histogram[min(BINS - 1, int(share * BINS))] += 1


def _messages(course: Course, lab: str, source: nbformat.NotebookNode) -> dict[str, Counter]:
    """By check, the messages of the parts that were not passed, named mistakes first, one count a learner."""
    counters: dict[str, Counter] = {}
    for check_results in results_of(course, lab, source).values():
        for grade_id, outcome in check_results["checks"].items():
            parts = [part for part in outcome.get("parts", []) if part["fraction"] < 1 and part["message"]]
            named = [part["message"] for part in parts if part["mistake"]]
            for message in set(named or [part["message"] for part in parts[:1]]):
                counters.setdefault(grade_id, Counter())[message] += 1
    return counters


def results_of(course: Course, lab: str, source: nbformat.NotebookNode) -> dict[str, dict]:
    """What grading kept about each learner's submission, by learner; those that were never run are absent."""
    found = {}
    for mode in ("sandbox", "none"):
        kept = Results(course.root / ".grading", mode)
        for path in sorted((course.root / "autograded").glob(f"*/{lab}/{lab}.ipynb")):
            learner = path.parent.parent.name
            result = kept.get(make_job(nbformat.read(path, as_version=4), source))
            if result is not None:
                found.setdefault(learner, result)
    return found


def to_review(course: Course, lab: str | None = None, db_url: str | None = None) -> list[dict]:
    """What a person must look at: each grade that is flagged, with what grading said about it."""
    items = []
    with _gradebook(course, db_url) as gradebook:
        for assignment in gradebook.assignments:
            if lab is not None and assignment.name != lab:
                continue
            for submission in gradebook.assignment_submissions(assignment.name):
                items += [{"learner": submission.student.id, "lab": assignment.name, "check": grade.name,
                           "score": float(grade.score), "maximum": float(grade.max_score), "why": []}
                          for notebook in submission.notebooks for grade in notebook.grades if grade.needs_manual_grade]
    for name in {item["lab"] for item in items}:
        kept = results_of(course, name, nbformat.read(course.source(name), as_version=4))
        for item in items:
            if item["lab"] == name and item["learner"] in kept:
                outcome = kept[item["learner"]]["checks"].get(item["check"], {})
                item["why"] = list(outcome.get("flags", [])) or [outcome.get("error") or "flagged in formgrader"]
                item["evidence"] = [text for part in outcome.get("parts", []) if part["state"] in ("review", "broken")
                                    for text in part["evidence"]]
    return sorted(items, key=lambda item: (item["lab"], item["check"], item["learner"]))


# -- similar answers ---------------------------------------------------------------------------------------------------
def similar(course: Course, lab: str, least: float = 0.9, shortest: int = 60) -> list[Pair]:
    """Pairs of learners whose answers are alike once names, comments and layout are left out: for a person to look at.

    Only what a learner wrote beyond the released cell is compared, and only answers of at least `shortest` characters.
    """
    from rapidfuzz import fuzz

    source = nbformat.read(course.release(lab), as_version=4)
    given = {cell.id: set(cell.source.split("\n")) for cell in source.cells}
    wanted = [cell.id for cell in source.cells if {"exercise", "explain"} & set(cell.metadata.get("inferlab", {}))]
    answers: dict[str, dict[str, str]] = {name: {} for name in wanted}
    for path in sorted((course.root / "submitted").glob(f"*/{lab}/{lab}.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.id in answers:
                own = "\n".join(line for line in cell.source.split("\n") if line not in given[cell.id])
                answers[cell.id][path.parent.parent.name] = essence(own)
    pairs = []
    for exercise, texts in answers.items():
        long = {learner: text for learner, text in texts.items() if len(text) >= shortest}
        for one, other in combinations(sorted(long), 2):
            likeness = fuzz.ratio(long[one], long[other], score_cutoff=100 * least) / 100
            if likeness:
                pairs.append(Pair(exercise, (one, other), round(likeness, 3)))
    return sorted(pairs, key=lambda pair: (-pair.likeness, pair.exercise, pair.learners))


def essence(source: str) -> str:
    """Code with comments and layout taken out and every name that is not followed by `(` replaced by its rank of first
    use, so that renaming variables hides nothing; text that is not Python as its words."""
    try:
        tokens = [t for t in tokenize.generate_tokens(io.StringIO(textwrap.dedent(source)).readline)
                  if t.type in (tokenize.NAME, tokenize.NUMBER, tokenize.STRING, tokenize.OP)]
    except (tokenize.TokenError, SyntaxError, IndentationError):
        return " ".join(source.casefold().split())
    ranks: dict[str, str] = {}
    words = []
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        text = token.string
        called = following is not None and following.string == "("
        if token.type == tokenize.NAME and not called and not keyword.iskeyword(text):
            text = ranks.setdefault(text, f"v{len(ranks)}")
        words.append(text)
    return " ".join(words)


def as_json(rows: list) -> str:
    """Dataclasses as JSON text."""
    return json.dumps([asdict(row) for row in rows], indent=1, ensure_ascii=False)
