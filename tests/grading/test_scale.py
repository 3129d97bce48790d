"""A batch survives kill -9, runs on a Dask cluster, and writes a PostgreSQL gradebook, with the same marks
each time."""

import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from ci.servers import SERVER_USER, Cluster, Postgres
from inferlab.grading.gradebook.batch import grade_lab
from inferlab.grading.gradebook.batch_setup import BatchError
from tests.grading import tiny

pytestmark = pytest.mark.sandbox

ANSWERS = {
    "ada": {}, "bob": {"half": tiny.WRONG_HALF}, "cyd": {"loop": tiny.BACKWARDS}, "dan": {"loop": tiny.CRASH},
    "eve": {"half": tiny.WRONG_HALF, "loop": tiny.CRASH}, "fay": {},
}
EXPECTED = {"ada": 5.0, "bob": 3.0, "cyd": 3.0, "dan": 2.0, "eve": 0.0, "fay": 5.0}
BATCH = """
import os, signal, sys
from inferlab.grading.gradebook.batch import grade_lab
from inferlab.grading.course import Course
root, lab, after = sys.argv[1], sys.argv[2], int(sys.argv[3])
def on_row(row, done, total):
    print(done, flush=True)
    if done == after: os.kill(os.getpid(), signal.SIGKILL)
grade_lab(Course.open(root), lab, workers=2, on_row=on_row)
"""


def fill(course: tiny.TinyCourse) -> None:
    for student, answers in ANSWERS.items():
        course.submit(student, course.solution(**answers))


def gradebook_scores(course: tiny.TinyCourse, url: str = "") -> dict[str, float]:
    with Gradebook(url or course.db) as gradebook:
        return {s.student.id: s.score for s in gradebook.assignment_submissions(course.lab)}


def children_of(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def test_a_killed_batch_goes_on_where_it_was(course):
    fill(course)
    arguments = [sys.executable, "-c", BATCH, str(course.root), course.lab]
    first = subprocess.run([*arguments, "2"], capture_output=True, text=True, timeout=200, check=False)
    assert first.returncode == -signal.SIGKILL, first.stderr[-2000:]
    moment = subprocess.Popen([*arguments, "99"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True)
    assert moment.stdout.readline() == "1\n"  # the first kept row: it is in the middle of the rest now
    time.sleep(0.3)
    below = children_of(moment.pid)
    moment.kill()
    moment.wait()
    rows = grade_lab(course.course, course.lab, workers=2)
    assert {row.learner: row.points for row in rows} == EXPECTED
    assert "kept" in {row.state for row in rows}
    assert gradebook_scores(course) == EXPECTED
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in below) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not [pid for pid in below if Path(f"/proc/{pid}").exists()]


def test_one_batch_at_a_time(course):
    import fcntl

    fill(course)
    (course.root / ".grading").mkdir()
    with (course.root / ".grading" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(BatchError, match="another batch"):
            grade_lab(course.course, course.lab)


@pytest.fixture
def dask():
    """The address of a real scheduler with two worker processes."""
    with Cluster(2) as cluster:
        yield cluster.address


def test_on_a_dask_cluster(course, dask):
    fill(course)
    rows = grade_lab(course.course, course.lab, scheduler=dask)
    assert {row.learner: row.points for row in rows} == EXPECTED
    assert gradebook_scores(course) == EXPECTED


def test_a_batch_whose_scheduler_is_lost_ends_at_once_and_goes_on_with_a_new_one(course):
    fill(course)
    for number in range(20):
        course.submit(f"more-{number:02d}", course.solution())
    seen, began = [], 0.0
    with Cluster(1) as cluster:

        def on_row(row, done, total):
            nonlocal began
            seen.append(row.state)
            if done == 2:
                began = time.monotonic()
                cluster.kill_scheduler()

        with pytest.raises(BatchError, match="does not answer any more"):
            grade_lab(course.course, course.lab, scheduler=cluster.address, on_row=on_row)
        assert time.monotonic() - began < 60 and set(seen) == {"graded"}
        cluster.kill()
        cluster.start()
        rows = grade_lab(course.course, course.lab, scheduler=cluster.address)
    states = Counter(row.state for row in rows)
    assert states["kept"] >= 2 and states["kept"] + states["graded"] == len(rows) == 26


@pytest.fixture
def postgres(tmp_path):
    """A PostgreSQL server of this test's own; the machine must have one installed (initdb and postgres)."""
    for folder in (tmp_path, *tmp_path.parents) if SERVER_USER else ():  # its user must come to its data
        if folder.owner() == "root" and folder.is_relative_to("/tmp"):
            folder.chmod(0o755 if folder != Path("/tmp") else 0o1777)
    with Postgres(tmp_path / "postgres", "fsync=off") as server:
        yield server.database("course")


@pytest.mark.skipif(shutil.which("initdb") is None, reason="no PostgreSQL server is installed here")
def test_with_a_postgresql_gradebook(course, postgres):
    fill(course)
    rows = grade_lab(course.course, course.lab, workers=2, db_url=postgres)
    assert {row.learner: row.points for row in rows} == EXPECTED, rows
    assert gradebook_scores(course, postgres) == EXPECTED
