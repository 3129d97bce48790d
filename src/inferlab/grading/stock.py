"""Calls nbgrader's own steps for one learner at a time: autograde and feedback, with the course's configuration."""

from dataclasses import dataclass
from pathlib import Path

from .build import nbgrader_config
from .course import Course


@dataclass(frozen=True)
class Step:
    """How one of nbgrader's steps ended for one learner: its log, and the error where it failed."""

    learner: str
    success: bool
    log: str = ""
    error: str = ""


def api(course: Course, root: Path | None = None, db_url: str | None = None):
    """nbgrader's API over a course (or over `root`, a folder laid out like one, with a gradebook of its own)."""
    from nbgrader.apps import NbGraderAPI

    config = nbgrader_config(course, root or course.root, db_url or course.gradebook_url)
    if root is not None:
        config.SandboxExecute.results = str(course.root / ".grading")
    return NbGraderAPI(config=config)


def learners_of(root: Path, lab: str, folder: str = "submitted") -> list[str]:
    """Who has a notebook of the lab in `submitted/` (or another of nbgrader's folders), in order."""
    return sorted(path.parent.parent.name for path in (root / folder).glob(f"*/{lab}/{lab}.ipynb"))


def autograde(course: Course, lab: str, learner: str, *, root: Path | None = None, db_url: str | None = None) -> Step:
    """`nbgrader autograde` of one submission, again if it was graded before."""
    result = api(course, root, db_url).autograde(lab, learner, force=True, create=True)
    return Step(learner, bool(result["success"]), result.get("log") or "", result.get("error") or "")


def feedback(course: Course, lab: str, learner: str) -> Step:
    """`nbgrader generate_feedback` of one graded submission, again if it was made before."""
    result = api(course).generate_feedback(lab, learner, force=True)
    return Step(learner, bool(result["success"]), result.get("log") or "", result.get("error") or "")
