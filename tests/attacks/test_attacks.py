"""Every hostile submission gets the marks of its honest work, and leaves the gradebook, its neighbours and
the host as they were."""

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook

from inferlab.grading.gradebook.batch import BatchRow, grade_lab
from inferlab.grading.gradebook.record import CHECK_DATA
from inferlab.grading.sandbox.limits import Limits
from tests import ROOT
from tests.attacks import hostile
from tests.grading.other_users import reachable
from tests.grading.tiny import TinyCourse

pytestmark = pytest.mark.sandbox

# Short, so that endless attacks end soon; long enough for honest cells on a machine that does other things.
LIMITS = Limits(cell_seconds=5, call_seconds=3, check_seconds=30, total_seconds=45, memory_mb=600, disk_mb=16,
                cell_output_kb=64, callbacks=500)
ATTACKS = {f"a{number:02d}": attack for number, attack in enumerate(hostile.A)}


def parents(pid: int) -> list[int]:
    """The process's parent, its parent and so on; where the process is gone, what was found until then."""
    found = []
    try:
        while pid > 1:
            pid = int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
            found.append(pid)
    except OSError:
        pass
    return found


def processes() -> set[str]:
    """Command lines of what runs below the sandbox's users now: nothing, when no batch is running.

    Sandboxes that another pytest worker has started are not counted.
    """
    running = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    others = {pid for pid in running if parents(pid)[:1] == [os.getppid()]} - {os.getpid()}
    found = set()
    for pid in running:
        try:
            if Path(f"/proc/{pid}").stat().st_uid >= 0x70000000 and not others & set(parents(pid)):
                found.add(Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


AS_USERS = """
import json, sys
from inferlab.grading.course import Course
from tests.attacks.test_attacks import LIMITS, grade_lab
rows = grade_lab(Course.open(sys.argv[1]), sys.argv[2], workers=4, limits=LIMITS, mode="users")
print(json.dumps([row.as_dict() for row in rows]))
"""


def as_users(course):
    """The rows of a batch whose kernels are kept apart as users only."""
    command = reachable([sys.executable, "-c", AS_USERS, str(course.root), course.lab])
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [BatchRow(**row) for row in json.loads(done.stdout)]


GRADE = {"sandbox": lambda course: grade_lab(course.course, course.lab, workers=4, limits=LIMITS),
         "users": as_users}


# Only root can be other users.
@pytest.fixture(scope="module", params=["sandbox", *(["users"] if os.getuid() == 0 else [])])
def graded(tmp_path_factory, request):
    """Every attack graded by one batch: in namespaces, and as another user only, as where root has none."""
    course = TinyCourse(tmp_path_factory.mktemp("attacked"))
    for student, attack in ATTACKS.items():
        notebook = course.solution(half=attack.half or hostile.STUB_HALF,
                                   loop=attack.loop or hostile.STUB_LOOP)
        if attack.first:
            notebook.cells.insert(4, nbformat.v4.new_code_cell(attack.first))
        course.submit(student, notebook)
    for number in (1, 2):
        course.submit(f"honest{number}", course.solution())
    course.rows = {row.learner: row for row in GRADE[request.param](course)}
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
            output.get("data", {}).pop(CHECK_DATA, None)  # only the page of feedback shows it, escaped
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
            assert {g.cell.name: g.score for g in submission.grades} == {f"check-{k}": v
                                                                         for k, v in row.checks.items()}
            assert submission.max_score == 5.0


def test_the_host_is_clean(graded):
    assert not Path("/tmp/inferlab-pwned").exists()
    assert processes() == set()
    assert not [p for p in Path("/tmp").glob("inferlab-fill*")]
    here = {p.name for p in graded.root.iterdir()}
    assert here <= {"notebooks", "source", "release", "submitted", "autograded", "gradebook.db",
                    "nbgrader_config.py",
                    ".grading", ".nbgrader.log"}
    assert not list((graded.root / "autograded").glob("*/*/*[!b]"))


def test_feedback_holds_no_scripts(graded):
    from nbgrader.apps import NbGraderAPI

    from inferlab.grading.nbgrader_config import nbgrader_config

    student = next(s for s, a in ATTACKS.items() if a.name == "scripts in outputs")
    api = NbGraderAPI(config=nbgrader_config(graded.course, graded.root, graded.db))
    result = api.generate_feedback(graded.lab, student, force=True)
    assert result["success"], result
    page = (graded.root / "feedback" / student / graded.lab / f"{graded.lab}.html").read_text()
    assert "<script>alert(" not in page
    assert os.getuid() >= 0
