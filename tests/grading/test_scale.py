"""A batch survives kill -9, runs on a Dask cluster, and writes a PostgreSQL gradebook, with the same marks each time."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import test_end_to_end as stock
from conftest import TinyCourse
from nbgrader.api import Gradebook

from inferlab.grading.batch import BatchError, grade_lab

SCRIPTS = Path(sys.executable).parent
ANSWERS = {
    "ada": {}, "bob": {"half": stock.WRONG_HALF}, "cyd": {"loop": stock.BACKWARDS}, "dan": {"loop": stock.CRASH},
    "eve": {"half": stock.WRONG_HALF, "loop": stock.CRASH}, "fay": {},
}
EXPECTED = {"ada": 5.0, "bob": 3.0, "cyd": 3.0, "dan": 2.0, "eve": 0.0, "fay": 5.0}
BATCH = """
import os, signal, sys
from inferlab.grading.batch import grade_lab
from inferlab.grading.course import Course
root, lab, after = sys.argv[1], sys.argv[2], int(sys.argv[3])
def on_row(row, done, total):
    print(done, flush=True)
    if done == after: os.kill(os.getpid(), signal.SIGKILL)
grade_lab(Course.open(root), lab, workers=2, on_row=on_row)
"""


def fill(course: TinyCourse) -> None:
    for student, answers in ANSWERS.items():
        course.submit(student, course.solution(**answers))


def gradebook_scores(course: TinyCourse, url: str = "") -> dict[str, float]:
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
    moment = subprocess.Popen([*arguments, "99"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert moment.stdout.readline() == "1\n"  # the first kept row: it is in the middle of the rest now
    time.sleep(0.3)
    below = children_of(moment.pid)
    moment.kill()
    moment.wait()
    rows = grade_lab(course.course, course.lab, workers=2)
    assert {row.student: row.points for row in rows} == EXPECTED
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


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


@pytest.fixture
def dask():
    """The address of a real scheduler with two worker processes."""
    address = f"tcp://127.0.0.1:{free_port()}"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = [subprocess.Popen([SCRIPTS / "dask", "scheduler", "--host", "127.0.0.1", "--port", address.rpartition(":")[2],
                                 "--no-dashboard"], **quiet)]
    started += [subprocess.Popen([SCRIPTS / "dask", "worker", address, "--nthreads", "1", "--no-dashboard", "--name", name],
                                 **quiet) for name in ("one", "two")]
    from distributed import Client

    with Client(address, timeout=60) as client:
        client.wait_for_workers(2, timeout=60)
    yield address
    for process in reversed(started):
        process.terminate()
        process.wait(30)


def test_on_a_dask_cluster(course, dask):
    fill(course)
    rows = grade_lab(course.course, course.lab, scheduler=dask)
    assert {row.student: row.points for row in rows} == EXPECTED
    assert gradebook_scores(course) == EXPECTED


@pytest.fixture
def postgres(tmp_path):
    """A PostgreSQL server of this test's own; the machine must have one installed (initdb and postgres)."""
    as_user = {"user": 65534, "group": 65534, "extra_groups": []} if os.getuid() == 0 else {}
    data, port = tmp_path / "postgres", free_port()
    data.mkdir()
    if as_user:
        os.chown(data, 65534, 65534)
        for folder in (tmp_path, *tmp_path.parents):
            if folder.owner() == "root" and folder.is_relative_to("/tmp"):
                folder.chmod(0o755 if folder != Path("/tmp") else 0o1777)
    subprocess.run(["initdb", "-D", data, "-U", "grader", "--auth=trust", "-E", "UTF8"], check=True, capture_output=True,
                   cwd="/", **as_user)
    server = subprocess.Popen(["postgres", "-D", data, "-p", str(port), "-k", data, "-c", "listen_addresses=127.0.0.1",
                               "-c", "fsync=off"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", **as_user)
    deadline = time.monotonic() + 30
    while subprocess.run(["pg_isready", "-h", "127.0.0.1", "-p", str(port)], capture_output=True, check=False).returncode:
        assert time.monotonic() < deadline, "PostgreSQL did not start"
        time.sleep(0.2)
    subprocess.run(["createdb", "-h", "127.0.0.1", "-p", str(port), "-U", "grader", "course"], check=True)
    yield f"postgresql+psycopg://grader@127.0.0.1:{port}/course"
    server.send_signal(signal.SIGINT)
    server.wait(30)


@pytest.mark.skipif(shutil.which("initdb") is None, reason="no PostgreSQL server is installed here")
def test_with_a_postgresql_gradebook(course, postgres):
    fill(course)
    rows = grade_lab(course.course, course.lab, workers=2, db_url=postgres)
    assert {row.student: row.points for row in rows} == EXPECTED, rows
    assert gradebook_scores(course, postgres) == EXPECTED
