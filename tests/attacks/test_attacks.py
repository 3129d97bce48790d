"""Every hostile submission gets the marks of its honest work, and leaves the gradebook, its neighbours and the host as they were."""

import os
import sys
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "grading")]
import hostile
from conftest import TinyCourse

from inferlab.grading.batch import grade_lab
from inferlab.grading.limits import Limits

LIMITS = Limits(cell_seconds=3, call_seconds=1.5, check_seconds=20, total_seconds=25, memory_mb=600, disk_mb=16,
                cell_output_kb=64, callbacks=500)
ATTACKS = {f"a{number:02d}": attack for number, attack in enumerate(hostile.A)}


def processes() -> set[str]:
    """Command lines of what runs below the sandbox's users now: nothing, when no batch is running."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if entry.stat().st_uid >= 0x70000000:
                    found.add((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue
    return found


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    course = TinyCourse(tmp_path_factory.mktemp("attacked"))
    for student, attack in ATTACKS.items():
        notebook = course.solution(half=attack.half or hostile.STUB_HALF, loop=attack.loop or hostile.STUB_LOOP)
        if attack.first:
            notebook.cells.insert(4, nbformat.v4.new_code_cell(attack.first))
        course.submit(student, notebook)
    for number in (1, 2):
        course.submit(f"honest{number}", course.solution())
    course.rows = {row.student: row for row in grade_lab(course.course, course.lab, workers=4, limits=LIMITS)}
    return course


@pytest.mark.parametrize("student", ATTACKS, ids=[a.name for a in hostile.A])
def test_marks_are_those_of_the_honest_work(graded, student):
    row, attack = graded.rows[student], ATTACKS[student]
    assert row.state == "graded", row.problem
    got = (row.checks["half"], row.checks["loop"])
    if attack.keeps[0] < 0:  # may or may not be believed, but is never more than the answer is worth
        assert 0 <= got[0] <= 2
        assert got[1] == attack.keeps[1]
    else:
        assert got == attack.keeps, row
    assert row.review == []


@pytest.mark.parametrize("student", ATTACKS, ids=[a.name for a in hostile.A])
def test_nothing_leaks_and_the_notebook_is_valid(graded, student):
    path = graded.root / "autograded" / student / graded.lab / f"{graded.lab}.ipynb"
    assert path.stat().st_size < 3_000_000
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if "evalue" in output:
                output.pop("traceback")  # shows the learner's own source lines
            text = str(output)
            assert "LEAK" not in text.replace("LEAKSCRIPT", ""), text
            assert "<script>alert(\"LEAKSCRIPT" not in text or output.output_type == "display_data"


def test_the_batch_finished_and_neighbours_are_right(graded):
    assert len(graded.rows) == len(ATTACKS) + 2
    assert [graded.rows[f"honest{n}"].points for n in (1, 2)] == [5.0, 5.0]


def test_the_gradebook_holds_what_the_batch_said(graded):
    with Gradebook(graded.db) as gradebook:
        for student, row in graded.rows.items():
            submission = gradebook.find_submission_notebook(graded.lab, graded.lab, student)
            assert {g.cell.name: g.score for g in submission.grades} == {f"check-{k}": v for k, v in row.checks.items()}
            assert submission.max_score == 5.0


def test_the_host_is_clean(graded):
    assert not Path("/tmp/inferlab-pwned").exists()
    assert processes() == set()
    assert not [p for p in Path("/tmp").glob("fill*")]
    here = {p.name for p in graded.root.iterdir()}
    assert here <= {"notebooks", "source", "release", "submitted", "autograded", "gradebook.db", "nbgrader_config.py",
                    ".grading", ".nbgrader.log"}
    assert not list((graded.root / "autograded").glob("*/*/*[!b]"))


def test_feedback_holds_no_scripts(graded):
    from nbgrader.apps import NbGraderAPI

    from inferlab.grading.build import nbgrader_config

    student = next(s for s, a in ATTACKS.items() if a.name == "scripts in outputs")
    api = NbGraderAPI(config=nbgrader_config(graded.course, graded.root, graded.db))
    result = api.generate_feedback(graded.lab, student, force=True)
    assert result["success"], result
    page = (graded.root / "feedback" / student / graded.lab / f"{graded.lab}.html").read_text()
    assert "<script>alert(" not in page
    assert os.getuid() >= 0
