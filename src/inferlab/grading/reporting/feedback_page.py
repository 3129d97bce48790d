"""Makes the page of feedback that a learner gets: points, what was found, and what a person decided.

`write_feedback` has nbgrader write it. nbgrader calls `FeedbackPage`, because the course's own
`nbgrader_config.py` names that class in `c.GenerateFeedback.exporter_class`.

The page is one HTML file that needs no network. It holds no hidden test. The lab's own answers are in it only
after the last deadline of anybody (`answers_held_back`), or when an instructor asks for them.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import nbformat
from jinja2 import Environment, PackageLoader, StrictUndefined
from nbconvert.exporters import Exporter
from nbformat import NotebookNode
from nbgrader.api import Gradebook  # nbgrader's own; ours is in gradebook/database.py
from pygments.formatters import HtmlFormatter
from traitlets import Bool, default

from inferlab.grading.authoring.build import built_source
from inferlab.grading.authoring.wrong_answers import solution_text
from inferlab.grading.course import Course
from inferlab.grading.gradebook.decisions import Decision, decisions
from inferlab.grading.gradebook.lateness import answers_held_back
from inferlab.grading.gradebook.record import CHECK_DATA, notes_in, share_lost
from inferlab.grading.nbgrader_config import nbgrader_config
from inferlab.grading.roster import Roster
from inferlab.lab.checks.checklist import Part

from .feedback_html import code_html, fields_html, inline, markdown, outputs_html

HOUR = timedelta(hours=1)


class FeedbackError(ValueError):
    """A page cannot be made; the message says what to do."""


@dataclass(frozen=True)
class CheckFeedback:
    """One check as the page shows it.

    Attributes:
        name: the check's name.
        points: what counts now: the points given by hand, or else those that grading gave.
        maximum: the most points that the check gives.
        parts: what grading found.
        waiting: whether a person will still look at it.
        by_hand: whether a person gave the points.
        note: what that person wrote.
        problem: what to say where the check itself did not work.
    """

    name: str
    points: float
    maximum: float
    parts: list[Part]
    waiting: bool = False
    by_hand: bool = False
    note: str = ""
    problem: str = ""


@dataclass(frozen=True)
class ExerciseFeedback:
    """One exercise or explanation as the page shows it.

    Attributes:
        name: the exercise's name.
        title: its heading in the lab.
        task: its text, as HTML.
        answer: what the learner wrote, as HTML.
        outputs: what the learner's cell showed, each as HTML.
        model: the lab's own answer as HTML; "" where it is held back.
        comment: what an instructor wrote about it in formgrader.
        checks: its checks, in order.
    """

    name: str
    title: str
    task: str
    answer: str
    outputs: list[str]
    model: str = ""
    comment: str = ""
    checks: list[CheckFeedback] = field(default_factory=list)

    @property
    def points(self) -> float:
        """The points of all its checks."""
        return sum(check.points for check in self.checks)

    @property
    def maximum(self) -> float:
        """The most points that its checks give."""
        return sum(check.maximum for check in self.checks)

    @property
    def waiting(self) -> bool:
        """Whether one of its checks waits for a person."""
        return any(check.waiting for check in self.checks)


@dataclass(frozen=True)
class Totals:
    """The submission as a whole. `score` is before the penalty for lateness; `late` is the reason for it."""

    score: float
    penalty: float
    maximum: float
    late: str

    @property
    def points(self) -> float:
        """What counts."""
        return max(0.0, self.score - self.penalty)


@dataclass(frozen=True)
class FeedbackRun:
    """How writing one learner's page ended: nbgrader's log, and the error where it failed."""

    learner: str
    success: bool
    log: str = ""
    error: str = ""


def write_feedback(course: Course, lab: str, learner: str, answers: bool = False) -> FeedbackRun:
    """Write the page of one graded submission, again if there is one: nbgrader's own `generate_feedback`.

    With `answers` the page shows the lab's own answers, even if others may still hand in.
    """
    from nbgrader.apps import NbGraderAPI

    config = nbgrader_config(course, course.root, course.gradebook_url)
    config.FeedbackPage.answers = answers
    result = NbGraderAPI(config=config).generate_feedback(lab, learner, force=True)
    return FeedbackRun(learner, bool(result["success"]), result.get("log") or "", result.get("error") or "")


class FeedbackPage(Exporter):
    """For `c.GenerateFeedback.exporter_class` in `nbgrader_config.py`."""

    answers = Bool(False, help="Show the lab's own answers, even if others may hand in.").tag(config=True)

    @default("file_extension")
    def _file_extension_default(self) -> str:
        return ".html"

    def from_notebook_node(self, nb: NotebookNode, resources: Any = None, **options: Any) -> tuple[str, Any]:
        """The page of a graded notebook, and nbconvert's resources."""
        nb, resources = super().from_notebook_node(nb, resources, **options)
        course = Course.open(self.parent.coursedir.root)
        return page(course, nb, resources["nbgrader"], show_answers=self.answers), resources


def page(course: Course, graded: NotebookNode, where: dict[str, str], show_answers: bool = False) -> str:
    """The page as HTML.

    Args:
        course: the learner's course.
        graded: the notebook in `autograded/`.
        where: nbgrader's `assignment` (the lab), `notebook`, `student` and `db_url` (the gradebook).
        show_answers: show the lab's own answers, even if others may still hand in.

    Raises:
        FeedbackError: for a notebook that an earlier version of the course graded.
    """
    lab, learner = where["assignment"], where["student"]
    source = nbformat.read(built_source(course, lab), as_version=4)
    held_back = "" if show_answers else answers_held_back(course, lab)
    exercises = exercises_of(graded, source, show_answers=not held_back)
    made = [decision for decision in decisions(course.root, lab) if learner in decision.learners]
    with Gradebook(where["db_url"]) as gradebook:
        marked = gradebook.find_submission_notebook(where["notebook"], lab, learner)
        exercises = [with_marks(exercise, marked, made) for exercise in exercises]
        totals = Totals(float(marked.score), float(marked.late_submission_penalty or 0.0),
                        float(marked.max_score), _late_reason(course, marked))
    heading = _heading(source.cells[0].source) or lab
    notes = notes_in(graded.metadata)
    return rendered(heading, _name_of(course, learner), exercises, totals, notes, bool(held_back))


def rendered(heading: str, learner: str, exercises: list[ExerciseFeedback], totals: Totals,
                  notes: list[str], held_back: bool) -> str:
    """The page as HTML from what it shows. `notes` are those of grading; plain texts are escaped here."""
    environment = Environment(loader=PackageLoader("inferlab.grading.reporting", "."), autoescape=True,
                              undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"inline": inline, "points": lambda value: f"{value:.3f}".rstrip("0").rstrip(".")}
    return environment.get_template("feedback_page.html").render(
        heading=heading, learner=learner, exercises=exercises, totals=totals, notes=notes,
        held_back=held_back, waiting=any(exercise.waiting for exercise in exercises),
        code_light=HtmlFormatter(style="default").get_style_defs(".code"),
        code_dark=HtmlFormatter(style="github-dark").get_style_defs(".code"))


# -- what the notebook holds -------------------------------------------------------------------------------
def exercises_of(graded: NotebookNode, source: NotebookNode, show_answers: bool) -> list[ExerciseFeedback]:
    """The exercises and explanations of a lab in order, each with its checks, from a graded notebook.

    Points given by hand are not in a notebook: the checks have what grading gave.
    """
    learners = {cell.id: cell for cell in graded.cells}
    found: dict[str, ExerciseFeedback] = {}
    text: list[str] = []
    for cell in source.cells:
        about = cell.metadata.get("inferlab", {})
        name = about.get("exercise") or about.get("explain")
        if cell.cell_type == "markdown":
            text = [cell.source] if _heading(cell.source) else [*text, cell.source]
        elif name:
            found[name] = _exercise(cell, learners[cell.id], "\n\n".join(text), show_answers)
        elif "check" in about:
            found[about.get("of", about["check"])].checks.append(_check(learners[cell.id], about["check"]))
    return list(found.values())


def _exercise(given: NotebookNode, written: NotebookNode, text: str, show_answers: bool) -> ExerciseFeedback:
    about = given.metadata.inferlab
    name = about.get("exercise") or about.explain
    title = _heading(text) or name
    show = code_html if "exercise" in about else fields_html
    # What an explanation's cell shows is help for writing it.
    shown = outputs_html(written, title) if "exercise" in about else []
    answer = show(solution_text(given.source)) if show_answers else ""
    task = markdown(text.partition("\n")[2])
    return ExerciseFeedback(name, title, task, show(written.source), shown, answer)


def _check(cell: NotebookNode, name: str) -> CheckFeedback:
    """What grading gave and found. Raises `FeedbackError` where the notebook does not have it as data."""
    maximum = float(cell.metadata.nbgrader.points)
    for output in cell.outputs:
        if output.output_type == "error":
            problem = "This check did not work. Your instructor has been told."
            return CheckFeedback(name, 0.0, maximum, [], problem=problem)
        if found := output.get("data", {}).get(CHECK_DATA):
            parts = [Part(**part) for part in found["parts"]]
            return CheckFeedback(name, float(found["score"]), maximum, parts)
    raise FeedbackError(f"{name} was graded by an earlier version: run `inferlab grade --again` first")


def _heading(text: str) -> str:
    """The first line of a Markdown text if it is a heading."""
    first = text.lstrip().partition("\n")[0]
    return first.lstrip("#").strip() if first.startswith("#") else ""


# -- what the gradebook holds ------------------------------------------------------------------------------
def with_marks(exercise: ExerciseFeedback, marked: Any, made: list[Decision]) -> ExerciseFeedback:
    """The exercise with what counts: points and notes by hand, and what waits for a person.

    Args:
        exercise: as the graded notebook has it.
        marked: the submitted notebook in nbgrader's gradebook.
        made: the decisions about the learner's answers.
    """
    grades = {grade.cell.name: grade for grade in marked.grades}
    comments = [comment.manual_comment for comment in marked.comments if comment.name == exercise.name]
    checks = [_with_mark(check, grades[f"check-{check.name}"], made) for check in exercise.checks]
    return replace(exercise, comment="".join(text or "" for text in comments), checks=checks)


def _with_mark(check: CheckFeedback, grade: Any, made: list[Decision]) -> CheckFeedback:
    by_hand = grade.manual_score is not None
    decided = by_hand and not grade.needs_manual_grade
    latest = sorted((d for d in made if d.check == grade.cell.name and d.points == grade.manual_score),
                    key=lambda d: d.when)[-1:]
    return replace(
        check, points=float(grade.score), waiting=bool(grade.needs_manual_grade), by_hand=by_hand,
        note="".join(d.note for d in latest), problem="" if decided else check.problem,
        parts=[part for part in check.parts if not (decided and part.state in ("review", "broken"))])


def _late_reason(course: Course, marked: Any) -> str:
    """Why a submission lost points for being late; "" if it lost none or has no deadline."""
    submission = marked.assignment
    no_times = None in (submission.timestamp, submission.assignment.duedate)
    if no_times or not marked.late_submission_penalty:
        return ""
    late = timedelta(seconds=submission.total_seconds_late)
    return (f"handed in {_utc(submission.timestamp)}, deadline {_utc(submission.duedate)}: "
            f"{late / HOUR:.1f} h late, {share_lost(course.late, late):.0%} of what was earned")


def _name_of(course: Course, learner: str) -> str:
    """A learner's name as the roster has it, or else the id."""
    found = Roster.load(course.roster).find(learner) if course.roster.exists() else None
    return found.name if found and found.name else learner


def _utc(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M} UTC"
