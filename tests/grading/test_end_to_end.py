"""Stock `nbgrader` commands on a course: marks, gradebook, formgrader's data, feedback and validate are
right."""

import nbformat
import pytest
from nbgrader.api import Gradebook

from tests.grading.tiny import BACKWARDS, CRASH, WRONG_HALF, marks, nbgrader

pytestmark = pytest.mark.sandbox


@pytest.fixture(scope="module")
def graded(module_course):
    """Everybody graded by one `nbgrader autograde`, feedback written."""
    course = module_course
    course.submit("full", course.solution())
    course.submit("partly", course.solution(half=WRONG_HALF, loop=BACKWARDS))
    course.submit("blank", nbformat.read(course.release, as_version=4))
    course.submit("crash", course.solution(loop=CRASH))
    course.log = nbgrader(course.root, "autograde", course.lab)
    assert course.log.returncode == 0, course.log.stderr[-3000:]
    feedback = nbgrader(course.root, "generate_feedback", course.lab)
    assert feedback.returncode == 0, feedback.stderr[-3000:]
    return course


@pytest.mark.parametrize(("student", "expected"), [
    ("full", {"check-half": 2.0, "check-loop": 3.0}),
    ("partly", {"check-half": 0.0, "check-loop": 1.0}),
    ("blank", {"check-half": 0.0, "check-loop": 0.0}),
    ("crash", {"check-half": 2.0, "check-loop": 0.0}),
])
def test_marks_in_the_gradebook(graded, student, expected):
    assert marks(graded, student) == expected


def test_nothing_needs_a_person(graded):
    with Gradebook(graded.db) as gradebook:
        for submission in gradebook.assignment_submissions(graded.lab):
            assert not submission.needs_manual_grade


def test_outputs_of_learners_cells_are_recorded(graded):
    notebook = nbformat.read(graded.root / "autograded" / "full" / graded.lab / f"{graded.lab}.ipynb",
                             as_version=4)
    nbformat.validate(notebook)
    printed = "".join(o.text for c in notebook.cells for o in c.get("outputs", [])
                      if o.output_type == "stream")
    assert "set up with bundled cpu 7" in printed
    assert not any("a demonstration" in str(c.get("outputs")) for c in notebook.cells)


def test_feedback_names_the_mistake_and_hides_the_tests(graded):
    page = (graded.root / "feedback" / "partly" / graded.lab / f"{graded.lab}.html").read_text()
    assert "you divided twice" in page
    assert "you went through the timesteps backwards" in page
    assert "halves a tensor" in page
    for hidden in ("HIDDEN TESTS", "batch / 4", "[9, 4]", "torch.arange(6.0)"):
        assert hidden not in page


def test_feedback_after_a_crash_says_what_happened(graded):
    page = (graded.root / "feedback" / "crash" / graded.lab / f"{graded.lab}.html").read_text()
    assert "your kernel died while running cell" in page


def test_validate_at_home(graded, tmp_path):
    for name, notebook, word in (("solved", graded.solution(), "Success"),
                                 ("blank", nbformat.read(graded.release, as_version=4), "failed")):
        path = tmp_path / f"{name}.ipynb"
        notebook.cells = [c for c in notebook.cells if "demo" not in c.metadata.get("tags", [])]
        nbformat.write(notebook, path)
        result = nbgrader(graded.root, "validate", str(path))
        assert word.lower() in result.stdout.lower(), result.stdout + result.stderr
