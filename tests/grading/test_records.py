"""A submission is recorded whole or not at all, whatever dies, and nothing that lies in submitted/ stops a
batch."""

import ctypes
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import nbformat
import pytest
import sqlalchemy as sql
from nbgrader.api import Base, Gradebook

from inferlab.grading.authoring.build import build_source, generate_assignment
from inferlab.grading.course import Course
from inferlab.grading.gradebook import batch, database
from inferlab.grading.gradebook.batch import grade_lab
from inferlab.grading.gradebook.batch_setup import BatchError
from inferlab.grading.notebook import write_notebook
from inferlab.grading.running import host
from tests.grading import tiny

pytestmark = pytest.mark.sandbox

OLD, NEW = {"check-half": 0.0, "check-loop": 1.0}, {"check-half": 2.0, "check-loop": 3.0}
DIES = """
import os, signal, sys
from inferlab.grading.course import Course
from inferlab.grading.gradebook import database, record
from inferlab.grading.gradebook.batch import grade_lab
root, lab, step, how = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4]
def die(*_, **__):
    if how == "kill": os.kill(os.getpid(), signal.SIGKILL)
    raise KeyboardInterrupt if how == "stop" else OSError("the disk is full")
calls = 0
def second(function):
    def wrapped(*args, **kwargs):
        global calls
        calls += 1
        if calls == 2: die()
        return function(*args, **kwargs)
    return wrapped
if step == "notebook": record.write_notebook = die
if step == "marks": record.write_marks = die
if step == "mark": database.Gradebook.set_mark = second(database.Gradebook.set_mark)
if step == "result": database.Gradebook.set_result = die
if step == "move": os.replace = lambda *_: die() if str(_[0]).endswith(".new") else os.rename(*_)
(row,) = grade_lab(Course.open(root), lab)
print(row.state, row.problem)
"""


def test_the_tables_are_nbgraders_own():
    tables = [value for value in vars(database).values()
              if isinstance(value, sql.Table) and value is not database.RECORD]
    assert len(tables) >= 10
    for table in tables:
        theirs = Base.metadata.tables[table.name]
        for column in table.columns:
            assert type(column.type) is type(theirs.columns[column.name].type), (table.name, column.name)
        needed = {c.name for c in theirs.columns if not c.nullable and c.default is None
                  and c.server_default is None}
        if table in (database.STUDENT, database.SUBMITTED, database.SUBMITTED_NOTEBOOK, database.GRADE,
                     database.COMMENT):  # rows that are made here
            assert needed <= {c.name for c in table.columns}, table.name


@pytest.fixture(scope="module")
def computed(module_course):
    """A submission that was graded; a better one has been handed in since, and its result is kept and not
    recorded."""
    module_course.submit("ada", module_course.solution(half=tiny.WRONG_HALF, loop=tiny.BACKWARDS))
    grade_lab(module_course.course, module_course.lab)
    module_course.old = (module_course.root / "submitted" / "ada" / module_course.lab
                         / f"{module_course.lab}.ipynb").read_bytes()
    path = module_course.submit("ada", module_course.solution())
    grade_lab(module_course.course, module_course.lab, record=False)
    module_course.new, module_course.path = path.read_bytes(), path
    return module_course


@pytest.mark.parametrize("how", ["kill", "stop", "fail"])
@pytest.mark.parametrize("step", ["notebook", "marks", "mark", "result", "move"])
def test_whatever_dies_the_marks_are_all_old_or_all_new(computed, step, how):
    course = computed
    course.path.write_bytes(course.old)
    grade_lab(course.course, course.lab)
    assert tiny.marks(course, "ada") == OLD
    course.path.write_bytes(course.new)
    done = subprocess.run([sys.executable, "-c", DIES, str(course.root), course.lab, step, how],
                          capture_output=True, text=True,
                          timeout=250, check=False)
    ends = {"kill": -signal.SIGKILL, "stop": -signal.SIGINT, "fail": 0}
    assert done.returncode == ends[how], done.stderr[-2000:]
    if how == "fail":
        assert "failed it could not be graded (OSError: the disk is full)" in done.stdout
    assert tiny.marks(course, "ada") == (NEW if step == "move" else OLD)
    written = course.root / "autograded" / "ada" / course.lab / f"{course.lab}.ipynb"
    nbformat.validate(nbformat.read(written, as_version=4))
    (row,) = grade_lab(course.course, course.lab)
    assert row.points == 5.0 and tiny.marks(course, "ada") == NEW
    with database.Gradebook(course.db) as gradebook:
        kept = json.loads(written.read_text())["metadata"]["inferlab_grading"]["result"]
        assert kept == gradebook.results(course.lab)["ada"]
    assert [path.name for path in written.parent.iterdir()] == [written.name]


def test_the_old_result_stands_until_the_new_one_does(computed, monkeypatch):
    """Ctrl-C in `grade --again`."""
    def stopped(*_):
        raise KeyboardInterrupt

    course = computed
    course.path.write_bytes(course.new)
    grade_lab(course.course, course.lab)
    monkeypatch.setattr(batch, "execute", stopped)
    with pytest.raises(KeyboardInterrupt):
        grade_lab(course.course, course.lab, rerun=True)
    monkeypatch.undo()
    (row,) = grade_lab(course.course, course.lab)
    assert (row.state, row.points, row.maximum) == ("kept", 5.0, 5.0)


def test_a_database_that_fails_costs_one_submission(computed, monkeypatch):
    course = computed
    course.path.write_bytes(course.old)
    grade_lab(course.course, course.lab)
    course.path.write_bytes(course.new)

    def fails(*_, **__):
        raise sql.exc.OperationalError("UPDATE", {}, Exception("the server is gone"))

    monkeypatch.setattr(database.Gradebook, "store_penalty", fails)
    (row,) = grade_lab(course.course, course.lab)
    assert row.state == "failed" and "the server is gone" in row.problem
    assert tiny.marks(course, "ada") == OLD
    monkeypatch.undo()
    (row,) = grade_lab(course.course, course.lab)
    assert (row.state, row.points) == ("graded", 5.0)


@pytest.fixture
def full_of_odd_things(course):
    """A folder of everything that can lie in submitted/, between two honest submissions."""
    honest = course.solution()
    for student in ("aaa", "zzz"):
        course.submit(student, honest)
    lab, top = course.lab, course.root / "submitted"

    def place(student):
        path = top / student / lab / f"{lab}.ipynb"
        path.parent.mkdir(parents=True)
        return path

    place("folder").mkdir()
    os.mkfifo(place("pipe"))
    if os.getuid() == 0:  # nobody else may make a device; tests/collect reads one that is there
        os.mknod(place("device"), stat.S_IFCHR | 0o600, os.makedev(1, 5))  # endless zeros
    with socket.socket(socket.AF_UNIX) as listener:
        os.chdir(place("socket").parent)  # a socket's path is short
        listener.bind(f"{lab}.ipynb")
        os.chdir(course.root)
    place("loop").symlink_to(f"{lab}.ipynb")
    place("link").symlink_to("/etc/passwd")
    (top / "linked").symlink_to(top / "aaa")
    (top / "labloop").mkdir()
    (top / "labloop" / lab).symlink_to(lab)
    (top / os.fsdecode(b"na\xefve") / lab).mkdir(parents=True)
    course.submit("second", honest)
    second = top / "second" / lab / f"{lab} (1).ipynb"
    second.write_text("{}")
    os.utime(second, (time.time() + 60,) * 2)
    course.submit("misnamed", honest)
    (top / "misnamed" / lab / f"{lab}.ipynb").rename(top / "misnamed" / lab / "homework.ipynb")
    (top / "nested" / lab / lab).mkdir(parents=True)
    (top / "nested" / lab / lab / f"{lab}.ipynb").write_text("{}")
    (top / "empty" / lab).mkdir(parents=True)
    (top / "other" / "lab09-other").mkdir(parents=True)
    (top / f"{lab}.ipynb").write_text("{}")
    return course


ODD = ({"device": "a device, not a file"} if os.getuid() == 0 else {}) | {
    "folder": "a folder, not a file", "pipe": "a named pipe, not a file", "socket": "a socket, not a file",
    "loop": "a link",
    "link": "a link", "labloop": "a link", "na\N{REPLACEMENT CHARACTER}ve": "not UTF-8",
    "misnamed": "homework.ipynb",
    "nested": "lab00-tiny/lab00-tiny/lab00-tiny.ipynb", "empty": "nothing that looks like a notebook",
    "lab00-tiny.ipynb": "lies in no learner's folder",
}


@pytest.mark.timeout(600)
def test_nothing_in_submitted_stops_or_silences_a_batch(full_of_odd_things):
    course = full_of_odd_things
    rows = {row.learner: row for row in grade_lab(course.course, course.lab, workers=2)}
    assert {student for student, row in rows.items() if row.state == "graded"} == {"aaa", "second", "zzz"}
    assert rows.keys() - {"aaa", "second", "zzz"} == ODD.keys()
    for student, said in ODD.items():
        assert rows[student].state == "unreadable" and said in rows[student].problem, rows[student]
    newer = f"{course.lab}/{course.lab} (1).ipynb (newer than what is graded)"
    assert rows["second"].seen == [f"seen, not graded: {newer}"]
    again = {row.learner: row.state for row in grade_lab(course.course, course.lab)}
    assert [again[student] for student in ("aaa", "second", "zzz")] == ["kept"] * 3

    done = tiny.nbgrader(course.root, "autograde", course.lab, "--force")
    for said in ("homework.ipynb", "(1).ipynb (newer", "lies in no learner's folder", "is a pipe, a device "
                                                                                      "or a socket"):
        assert said in done.stderr, done.stderr[-3000:]
    assert [tiny.marks(course, student) for student in ("aaa", "zzz")] == [NEW, NEW]


@pytest.fixture
def reads_what_anybody_may():
    """Takes from root, while a test runs, the two capabilities by which it reads everything. Programs that it
    starts have them again."""
    libc, header, sets = ctypes.CDLL(None), (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, sets) == 0
    effective = sets[0]
    sets[0] &= ~(1 << 1 | 1 << 2)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    assert libc.capset(header, sets) == 0
    yield
    sets[0] = effective
    assert libc.capset(header, sets) == 0


def test_a_folder_that_cannot_be_read_is_said(course, reads_what_anybody_may):
    for student in ("ada", "bob", "eve", "zoe"):
        course.submit(student, course.solution())
    handed_in = course.root / "submitted"
    unreadable = [handed_in / "bob" / course.lab, handed_in / "eve"]
    for folder in unreadable:
        folder.chmod(0)
    rows = {row.learner: row.state for row in grade_lab(course.course, course.lab)}
    for folder in unreadable:
        folder.chmod(0o755)
    assert rows == {"ada": "graded", "bob": "unreadable", "eve": "unreadable", "zoe": "graded"}


@pytest.mark.parametrize("change", ["grows", "vanishes"])
def test_a_file_that_changes_while_it_is_read_is_said(course, monkeypatch, change):
    path = course.submit("ada", course.solution())
    opened, looked = os.open, os.fstat

    def grows(handle):
        info = looked(handle)
        if os.path.samestat(info, path.stat()):
            with path.open("a") as file:
                file.write(" ")
        return info

    def vanishes(name, *rest, **options):
        if str(name) == str(path):
            path.unlink()
        return opened(name, *rest, **options)

    monkeypatch.setattr(*((os, "fstat", grows) if change == "grows" else (os, "open", vanishes)))
    (row,) = grade_lab(course.course, course.lab)
    assert row.state == "unreadable"
    assert ("changed while it was read" if change == "grows" else "No such file") in row.problem


def test_whatever_one_submission_raises_is_its_line(course, monkeypatch):
    from inferlab.grading.submission import submission

    def broken(handed_in, released):
        raise RecursionError("a fault")

    course.submit("ada", course.solution())
    monkeypatch.setattr(submission, "mend", broken)
    (row,) = grade_lab(course.course, course.lab)
    assert (row.state, row.problem) == ("failed", "it could not be graded (RecursionError: a fault)")


# -- one place for limits
# --------------------------------------------------------------------------------------------
def test_limits_of_the_course_count_everywhere(course, monkeypatch):
    config = course.root / "nbgrader_config.py"
    config.write_text(config.read_text() + '\nc.SandboxExecute.limits = {"disk_mb": 1024}\n')
    course.submit("ada", course.solution())
    jobs = []

    def run(job, *rest):
        jobs.append(job)
        return host.execute(job, *rest)

    monkeypatch.setattr(batch, "execute", run)
    (row,) = grade_lab(course.course, course.lab)
    assert [job["limits"]["disk_mb"] for job in jobs] == [1024]
    assert sum(tiny.marks(course, "ada").values()) == row.points == 5.0
    done = tiny.nbgrader(course.root, "autograde", course.lab, "--force")
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(list((course.root / ".grading").glob("*.json"))) == 1, ("nbgrader's own command used the "
                                                                       "same result")
    config.write_text(config.read_text() + '\nc.SandboxExecute.limits = {"disk": 1024}\n')
    with pytest.raises(BatchError, match="no limit called disk"):
        grade_lab(Course.open(course.root), course.lab)


# -- who a submission says it is of
# ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "found", "told"), [
    ('LEARNER = "ada"', "ada", False), ('LEARNER: str = "ada"', "ada", False),
    ('%time 1\nLEARNER = "ada"', "ada", False),
    ('LEARNER = " ada ".strip()', "ada", False), ('LEARNER = f"a{\'d\'}a"', "ada", False),
    ('LEARNER, x = "ada", 1', "ada", False),
    ('%%time\nLEARNER = "ada"', "ada", False), ('LEARNER = "eve"\n'
                                                'globals()["LEARNER"] = "ada"', "eve", True),
    ("LEARNER = 3 + 4", "7", False),
])
def test_the_learner_is_who_the_run_says_where_the_text_does_not(text, found, told):
    from inferlab.grading.notebook import declared_learner
    from inferlab.grading.running.grader import RemoteProvider

    class Kernel:
        def get(self, name):
            space = {}
            exec("\n".join(line for line in text.split("\n") if not line.startswith("%")),
                 space)
            return space[name]

    said = declared_learner([{"cell_type": "code", "source": text}])
    provider = RemoteProvider(Kernel(), {"learner": said, "lab": "lab00", "provides": []})
    assert provider.identity() == (found, "lab00")
    assert bool(provider.told) == told


# -- a lab that changes in mid-course ------------------------------------------------------------------
def without_loop(text):
    """The lab's text without its second exercise."""
    return text[:text.index("# %% exercise=\"loop\"")] + text[text.index("# %% tags=[\"demo\"]"):]


@pytest.mark.parametrize("change", ["gone", "new"])
def test_a_lab_whose_exercises_change_after_it_was_graded(course, monkeypatch, capsys, change):
    from inferlab.cli import main

    path = course.course.text(course.lab)
    whole = path.read_text()
    if change == "new":
        path.write_text(without_loop(whole))
        build(course)
    course.submit("ada", course.solution())
    grade_lab(course.course, course.lab)
    before = tiny.marks(course, "ada")
    files = {file: file.read_bytes() for kind in ("source", "release")
             for file in (course.root / kind).rglob("*.ipynb")}
    path.write_text(without_loop(whole) if change == "gone" else whole)
    monkeypatch.setattr("inferlab.grading.authoring.build.lint", lambda *_: [])
    assert main(["release", "--course", str(course.root), course.lab]) == 2
    said = capsys.readouterr().err
    assert f"{'-' if change == 'gone' else '+'} check-loop" in said and "nothing was released" in said
    assert "Traceback" not in said
    assert {file: file.read_bytes() for file in files} == files

    source = build_source(course.course, course.lab, strict=False)
    write_notebook(source, course.course.source(course.lab))
    course.submit("bob", course.solution())
    rows = {row.learner: row for row in grade_lab(course.course, course.lab)}
    assert {row.state for row in rows.values()} == {"graded"}
    assert tiny.marks(course, "bob")["check-half"] == 2.0
    assert tiny.marks(course, "ada") == before
    assert any("loop: not recorded" in note for note in rows["bob"].notes) == (change == "new")


def build(course):
    """Release the lab as its text is now, into a gradebook without anything."""
    source = build_source(course.course, course.lab, strict=False)
    write_notebook(source, course.course.source(course.lab))
    (course.root / "gradebook.db").unlink()
    generate_assignment(course.course, course.lab, course.root, course.db)
    course.source = source


def test_a_deadline_that_is_taken_back_costs_nobody_anything(course):
    from datetime import UTC, datetime

    from inferlab.grading.course import LatePolicy
    from inferlab.grading.gradebook.lateness import set_penalties
    from inferlab.grading.reporting.grades import grades
    from inferlab.grading.roster import Learner, Roster

    path = course.submit("ada", course.solution())
    path.with_name("timestamp.txt").write_text("2027-01-12 12:00:00 UTC")
    people = Roster.of([Learner("ada", "Ada King Lovelace", email="ada@example.org")])
    late = Course(course.root, late=LatePolicy(0.1), due={course.lab: datetime(2027, 1, 10, 12, tzinfo=UTC)})
    grade_lab(late, course.lab)
    assert [row.penalty for row in grades(late)] == [1.0], "in the same transaction as the marks"
    set_penalties(late, people, course.lab)
    assert [row.penalty for row in grades(late)] == [1.0]
    with Gradebook(course.db) as gradebook:
        student = gradebook.find_student("ada")
        assert (student.first_name, student.last_name) == ("Ada King", "Lovelace")
        assert student.email == "ada@example.org"
    assert set_penalties(course.course, people, course.lab) == {}
    assert [row.penalty for row in grades(course.course)] == [0.0]
    with Gradebook(course.db) as gradebook:
        assert gradebook.find_assignment(course.lab).duedate is None


def test_results_that_threads_keep_at_once_are_each_their_own(tmp_path):
    results = host.Results(tmp_path)

    def keep(number):
        for _ in range(50):
            results.put(str(number), {"of": number, "text": str(number) * 20_000})
        return results.get(str(number))["of"]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(keep, range(8))) == list(range(8))
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".part"]
