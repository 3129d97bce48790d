"""Reports for the instructor: the grades table, what a person must look at, similar answers."""

import csv
import io
import keyword
import textwrap
import tokenize
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path

import nbformat

from .course import Course
from .plan import make_job
from .reading import UnreadableError
from .results import Results
from .sourcebook import read_file, sanitized
from .stock import learners_of

BY_HAND = "points by hand from before this grading stand: confirm them with --set, or take them back in formgrader"


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


@dataclass(frozen=True)
class Pair:
    """Two learners whose answers to an exercise are alike, 0 to 1."""

    exercise: str
    learners: tuple[str, str]
    likeness: float


def _gradebook(course: Course, db_url: str | None):
    from nbgrader.api import Gradebook

    return Gradebook(db_url or course.gradebook_url)


def _submissions(gradebook, lab: str | None):
    """Every graded submission with its assignment; of one lab when it is given."""
    for assignment in gradebook.assignments:
        if lab is None or assignment.name == lab:
            for submission in gradebook.assignment_submissions(assignment.name):
                if is_graded(submission):
                    yield assignment, submission


def is_graded(submission) -> bool:
    """Whether a submission in the gradebook has points. One that waits for grading, or whose grading failed, has none,
    and its score of 0 means nothing."""
    return any(grade.auto_score is not None or grade.manual_score is not None
               for notebook in submission.notebooks for grade in notebook.grades)


def grades(course: Course, lab: str | None = None, db_url: str | None = None) -> list[Grade]:
    """Every graded submission, by lab and learner; of one lab when it is given."""
    rows = []
    with _gradebook(course, db_url) as gradebook:
        for assignment, submission in _submissions(gradebook, lab):
            penalty = float(submission.late_submission_penalty or 0.0)
            received = submission.timestamp.isoformat(timespec="seconds") + "+00:00" if submission.timestamp else ""
            rows.append(Grade(submission.student.id, assignment.name, float(submission.score), penalty,
                              max(0.0, float(submission.score) - penalty), float(assignment.max_score), received,
                              bool(submission.needs_manual_grade)))
    return sorted(rows, key=lambda row: (row.lab, row.learner))


def not_graded(course: Course, rows: list[Grade], lab: str | None = None) -> list[tuple[str, str]]:
    """(learner, lab) of what lies in `submitted/` and has no row in `rows`; of one lab when it is given."""
    graded = {(row.learner, row.lab) for row in rows}
    return [(learner, name) for name in ([lab] if lab else course.labs) for learner in learners_of(course.root, name)
            if (learner, name) not in graded]


def write_csv(rows: list[Grade], path: Path) -> None:
    """`grades.csv`: UTF-8 with a byte order mark, so that a spreadsheet reads names in every alphabet."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(Grade.__dataclass_fields__), lineterminator="\n")
    writer.writeheader()
    writer.writerows([{key: _inert(value) for key, value in asdict(row).items()} for row in rows])
    path.write_text(stream.getvalue(), "utf-8-sig")


def _inert(value: object) -> object:
    """A text that a spreadsheet would run as a formula, made text."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value


def to_review(course: Course, lab: str | None = None, db_url: str | None = None) -> list[dict]:
    """What a person must look at: each grade that is flagged, with what grading said about it."""
    items = []
    with _gradebook(course, db_url) as gradebook:
        for assignment, submission in _submissions(gradebook, lab):
            items += [{"learner": submission.student.id, "lab": assignment.name, "check": grade.name,
                       "score": float(grade.score), "maximum": float(grade.max_score),
                       "why": [BY_HAND] if grade.manual_score is not None else []}
                      for notebook in submission.notebooks for grade in notebook.grades if grade.needs_manual_grade]
    for item in items:
        outcome = (kept_result(course, item["lab"], item["learner"]) or {"checks": {}})["checks"].get(item["check"], {})
        error = [outcome["error"]] if outcome.get("error") else []
        item["why"] = [*(outcome.get("flags") or error), *item["why"]] or ["flagged in formgrader"]
        item["evidence"] = [text for part in outcome.get("parts", []) if part["state"] in ("review", "broken")
                            for text in part["evidence"]]
    return sorted(items, key=lambda item: (item["lab"], item["check"], item["learner"]))


def kept_result(course: Course, lab: str, learner: str) -> dict | None:
    """What grading kept about a learner's submission as it lies in `submitted/` now; `None` if that was never run."""
    source = nbformat.read(course.source(lab), as_version=4)
    path = course.submitted(learner, lab)
    if not path.exists():
        return None
    try:
        job = make_job(sanitized(read_file(path), source)[0], source)
    except UnreadableError:
        return None
    return next((found for mode in ("sandbox", "none")
                 if (found := Results(course.root / ".grading", mode).get(job)) is not None), None)


# -- similar answers ---------------------------------------------------------------------------------------------------
def similar(course: Course, lab: str, least: float = 0.9, shortest: int = 40) -> list[Pair]:
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

