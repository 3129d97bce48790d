"""The lab that decides marks, wherever marks are made or read."""

from inferlab.grading.course import Course
from inferlab.grading.notebook import Notebook, load
from inferlab.grading.sandbox.limits import Limits
from inferlab.grading.submission.submission import CourseLab


def graded_source(course: Course, lab: str) -> Notebook:
    """The instructor's notebook of a lab as it lies in `source/`, which is built first where there is none.

    Raises:
        authoring.build.BuildError: there is none, and the lab breaks a rule.
    """
    path = course.source(lab)
    if not path.exists():
        # Building imports nbformat, which costs half a second, and hardly ever happens here.
        from inferlab.grading.authoring.build import built_source

        built_source(course, lab)
    return load(path)


def graded_lab(course: Course, lab: str, limits: Limits | None = None, mode: str = "sandbox") -> CourseLab:
    """The lab as its notebook in `source/` has it; raises what `graded_source` raises."""
    return CourseLab.of(graded_source(course, lab), limits, mode)
