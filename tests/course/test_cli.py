"""The `inferlab` command: help, JSON, exit codes, and the whole path of a small lab through it."""

import io
import json
import os
import shutil
import subprocess
import sys

import nbformat
import pytest

from inferlab.cli import main, parser
from inferlab.commands import FAILED, LOOK, OK
from inferlab.grading.demo import fill_in, solved
from inferlab.grading.gradebook.batch_setup import only_one
from tests import ROOT
from tests.course import LAB

pytestmark = pytest.mark.sandbox

COMMANDS = ["check", "build", "release", "adopt", "publish", "collect", "grade", "review", "regrade", "late",
            "claims", "feedback", "export", "gradescope", "report", "demo"]


@pytest.fixture
def run(course, capsys):
    """Run a command in the course with --json; returns the exit code and the data."""
    shutil.copy(ROOT / "nbgrader_config.py", course.root)

    def call(*arguments, at_course=True):
        place = ["--course", str(course.root)] if at_course else []
        code = main([arguments[0], "--json", *place, *map(str, arguments[1:])])
        return code, json.loads(capsys.readouterr().out)

    return call


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_and_has_json(command, capsys):
    with pytest.raises(SystemExit) as ended:
        parser().parse_args([command, "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert "--json" in text
    assert f"inferlab {command}" in text


def test_the_list_of_commands_is_complete(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    assert all(command in text for command in COMMANDS)


def test_build_check_tells_stale_from_fresh(run, course):
    assert run("build", "--check") == (OK, {"stale": []})
    with course.text(LAB).open("a") as stream:
        stream.write("\n# %% [markdown]\n# One more\n")
    code, data = run("build", "--check")
    assert code == LOOK
    assert len(data["stale"]) == 2
    assert run("build")[1] == {"changed": data["stale"]}
    assert run("build", "--check")[0] == OK


def test_what_cannot_be_done_is_said_and_exits_2(run, course):
    assert run("build", "lab91-none") == (FAILED,
                                          {"error": "no lab called 'lab91-none'; there is: lab90-fixture"})
    assert run("collect", course.root / "nothing")[0] == FAILED
    assert "run `inferlab grade" in run("feedback", LAB)[1]["error"]
    assert "run `inferlab grade" in run("regrade", LAB)[1]["error"]
    code, data = run("check", course.root / "course.toml", at_course=False)
    assert code == FAILED
    assert "not a notebook" in data["error"]


def test_without_the_instructors_packages_a_command_says_what_to_install(tmp_path):
    blocker = tmp_path / "nbgrader.py"
    blocker.write_text("raise ModuleNotFoundError('no', name='nbgrader')")
    done = subprocess.run([sys.executable, "-m", "inferlab.cli", "build", "--course", str(ROOT)],
                          capture_output=True, text=True,
                          check=False, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert done.returncode == FAILED
    assert "pip install 'inferlab[course]'" in done.stderr


def test_check_runs_a_learners_notebook(run, course, tmp_path):
    half = solved(course, LAB, "ada")
    next(cell for cell in half.cells
         if cell.id == "fold").source = "def fold(step, items):\n    raise NotImplementedError()"
    path = tmp_path / "mine.ipynb"
    nbformat.write(half, path)
    before = path.read_bytes()
    code, data = run("check", path, at_course=False)
    assert code == LOOK
    assert {report["name"]: report["points"] for report in data["reports"]} == {
        "double": None, "fold": None, "one-call-shape": None}, "more parts of each run later"
    assert data["missing"] == ["fold: adds up (not done yet)"]
    assert path.read_bytes() == before


def test_the_whole_path(run, course, tmp_path):
    """Release, collect, grade, review, late, report, export, feedback, and a hidden test mended
    afterwards."""
    inbox = tmp_path / "in"
    inbox.mkdir()
    on_time = solved(course, LAB, "ada")
    on_time.metadata["inferlab"]["submitted"] = "2026-01-15T12:00:00+00:00"
    from_moodle = inbox / "Ada Lovelace_1234_assignsubmission_file_"
    from_moodle.mkdir()
    nbformat.write(on_time, from_moodle / "a.ipynb")
    squared = solved(course, LAB, "Grace Hopper", {"double": "def double(x):\n    return x * x"})
    # the deadline was a day and an hour before
    squared.metadata["inferlab"]["submitted"] = "2026-01-16T13:00:00+00:00"
    nbformat.write(squared, inbox / "b.ipynb")
    nbformat.write(fill_in(course, LAB, "olga", {}), inbox / "c.ipynb")
    (inbox / "d.ipynb").write_text("{")

    assert run("release", LAB)[0] == OK
    code, collected = run("collect", inbox)
    assert code == LOOK
    assert collected["counts"]["collected"] == 3
    assert collected["missing"] == {LAB: ["jose", "li"]}

    code, rows = run("grade", LAB)
    assert code == OK
    assert {row["learner"]: row["points"] for row in rows} == {"ada": 10, "grace": 7, "olga": 0}

    code, exported = run("export", LAB)
    assert code == OK
    assert {row["learner"]: row["total"] for row in exported["grades"]} == {"ada": 10,
                                                                            "grace": pytest.approx(7 * 0.8),
                                                                            "olga": 0}
    columns = (course.root / "grades.csv").read_text("utf-8-sig").partition("\n")[0]
    assert columns.startswith("learner,name,email,lab,score,penalty")

    code, table = run("export", LAB, "--for", "moodle", "--out-of", "100")
    assert (code, table["written"]) == (LOOK, ["ada"])
    assert "not collected from Moodle" in table["left_out"]["grace"]
    assert "Participant 1234,Ada Lovelace,ada@example.org,100,100,-" in (
        course.root / "grades" / f"{LAB}-moodle.csv").read_text("utf-8")
    assert run("export", "--for", "moodle")[0] == FAILED
    assert run("export", LAB, "--out-of", "100")[0] == FAILED

    # An extension is data: with it, nothing is graded again and nothing is lost.
    (course.root / "roster" / "extensions.csv").write_text(f"id,lab,until,days,reason\ngrace,{LAB},,2,ill\n")
    late = {row["learner"]: row["share_lost"] for row in run("late")[1]}
    assert late["grace"] == 0
    assert {row["learner"]: row["total"] for row in run("export")[1]["grades"]}["grace"] == 7

    report = {row["question"]: row for row in run("report", LAB)[1]["questions"]}
    assert report["double"]["mistakes"] == [["you squared instead of doubling", 1]]

    code, whole = run("report", "--class")
    assert (code, whole["labs"]) == (OK, [LAB])
    assert {one["learner"]: one["state"] for one in whole["work"]} == {
        "ada": "graded", "grace": "graded", "olga": "graded", "jose": "missing", "li": "missing"}
    assert whole["exercises"][0]["mistakes"] == {"you squared instead of doubling": 1}
    assert (course.root / "class-report" / "index.html").exists()

    done = run("feedback", LAB, "--for", "moodle")[1]
    assert done["written"] == ["ada", "grace", "olga"]
    assert done["zip"]["written"] == ["ada"] and set(done["zip"]["left_out"]) == {"grace", "olga"}
    page = (course.root / "feedback" / "grace" / LAB / f"{LAB}.html").read_text("utf-8")
    assert "you squared instead of doubling" in page
    assert "HIDDEN" not in page
    assert "check.mistake" not in page
    assert "three items have the shape" not in page

    # A hidden test turns out wrong: squaring is right after all.
    hidden = course.text(LAB).with_name("hidden_tests.py")
    text = hidden.read_text("utf-8")
    mended = text.replace("got = check.learner.double(-3)", "got = check.learner.double(2)").replace(
        "when=got == 9)\n    check.equal(got, -6)", "when=got == 5)\n    check.equal(got, 4)")
    assert mended != text
    hidden.write_text(mended, "utf-8")
    handed_in = {p: p.read_bytes() for p in (course.root / "submitted").rglob("*") if p.is_file()}
    code, shown = run("regrade", LAB)
    assert code == LOOK
    assert shown["changes"] == [{"learner": "grace", "check": "check-double", "before": 1, "after": 4,
                                 "by_hand": False}]
    assert shown["totals"]["grace"] == {"before": 7, "after": 10}
    assert not shown["written"]
    assert not shown["release_changed"]
    assert {row["learner"]: row["total"] for row in run("export")[1]["grades"]}["grace"] == 7
    code, written = run("regrade", LAB, "--yes")
    assert code == OK
    assert written["written"]
    assert {row["learner"]: row["total"] for row in run("export")[1]["grades"]} == {"ada": 10, "grace": 10,
                                                                                    "olga": 0}
    assert {p: p.read_bytes() for p in (course.root / "submitted").rglob("*") if p.is_file()} == handed_in

    # Points by hand stand, whatever tests are mended.
    assert run("review", LAB, "--set", "olga", "double", "2.5")[1]["score"] == 2.5
    assert run("review", LAB, "--set", "olga", "double", "99")[0] == FAILED
    assert {row["learner"]: row["total"]
            for row in run("export")[1]["grades"]}["olga"] == 1.25, "many days late: half of it"


def hand_in(course, learner, when, answers=None):
    """Put a notebook into submitted/ as collect does."""
    notebook = solved(course, LAB, learner, answers or {})
    path = course.submitted(learner, LAB)
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)
    (path.parent / "timestamp.txt").write_text(f"{when}.000000 UTC")


def test_what_is_not_graded_yet_has_no_marks(run, course):
    assert run("release", LAB)[0] == OK
    hand_in(course, "ada", "2026-01-15 11:00:00")
    assert run("grade", LAB)[0] == OK
    hand_in(course, "grace", "2026-01-16 13:00:00")
    assert {row["learner"] for row in run("late")[1]} == {"ada", "grace"}
    code, exported = run("export", LAB)
    assert code == LOOK
    assert [row["learner"] for row in exported["grades"]] == ["ada"]
    assert exported["not_graded"] == [{"learner": "grace", "lab": LAB}]
    assert "grace" not in (course.root / "grades.csv").read_text("utf-8-sig")
    assert run("review") == (OK, [])
    assert set(run("regrade", LAB)[1]["totals"]) == {"ada"}
    assert run("regrade", LAB, "--learner", "ada", "--learner",
               "adda") == (FAILED, {"error": f"not graded in {LAB}: adda"})
    with only_one(course):
        assert "another batch is grading" in run("regrade", LAB, "--yes")[1]["error"]
    assert run("grade", LAB)[0] == OK
    code, exported = run("export", LAB)
    assert code == OK and {row["learner"]: row["total"] for row in exported["grades"]} == {"ada": 10,
                                                                                           "grace": 8}


def test_points_by_hand_change_the_penalty_and_end_with_the_answer(run, course):
    assert run("release", LAB)[0] == OK
    hand_in(course, "grace", "2026-01-15 13:00:00", {"double": "def double(x):\n    return x * x"})
    run("grade", LAB)

    def row():
        (found,) = run("export", LAB)[1]["grades"]
        return found["score"], found["penalty"]

    assert row() == (7, pytest.approx(0.7))
    assert run("review", LAB, "--set", "grace", "double", "3")[0] == OK
    assert row() == (9, pytest.approx(0.9))
    (graded,) = run("grade", LAB, "--again")[1]
    assert graded["points"] == 9
    assert row() == (9, pytest.approx(0.9))
    hand_in(course, "grace", "2026-01-15 13:00:00")
    (graded,) = run("grade", LAB)[1]
    assert graded["points"] == 10
    assert row() == (10, pytest.approx(1.0))


def test_without_a_roster_it_is_said_what_penalties_leave_out(run, course, capsys):
    run("release", LAB)
    hand_in(course, "grace", "2026-01-15 13:00:00")
    course.roster.unlink()
    capsys.readouterr()
    assert main(["grade", LAB, "--course", str(course.root)]) == OK
    told = capsys.readouterr().out
    assert "10 of 10" in told
    assert "points are before the penalty for lateness: inferlab export shows both" in told
    assert ("there is no roster/roster.csv: penalties for lateness count no extensions and no free days"
            in told)
    (found,) = run("export", LAB)[1]["grades"]
    assert found["penalty"] == pytest.approx(0.1 * found["score"])


def test_collect_says_what_to_do_with_a_file_of_nobody(course, tmp_path, capsys):
    (tmp_path / "who.ipynb").write_text("hello")
    assert main(["collect", "--course", str(course.root), str(tmp_path / "who.ipynb")]) == LOOK
    assert ("mend the roster and run the same command again, or add "
            "--assign FILE=ID") in capsys.readouterr().out


def test_marks_are_told_even_where_penalties_cannot_be_set(run, course):
    run("release", LAB)
    hand_in(course, "ada", "2026-01-15 11:00:00")
    hand_in(course, "grace", "2026-01-15 11:00:00")
    stamp = course.submitted("grace", LAB).parent / "timestamp.txt"
    stamp.write_text("yesterday, about noon")
    code, data = run("grade", LAB, "--learner", "ada")
    assert code == FAILED
    assert [(row["learner"], row["points"]) for row in data["done"]] == [("ada", 10)]
    assert f"{stamp}: 'yesterday, about noon' is not a time" in data["error"]
    code, data = run("review", LAB, "--set", "ada", "double", "3")
    assert (code, data["done"]["score"]) == (FAILED, 3)
    stamp.write_text("2026-01-15 11:00:00 UTC")
    assert run("late", LAB)[0] == OK


@pytest.mark.parametrize("command", [("review", "lab91-none"), ("export", "lab91-none"),
                                     ("build", "--check", "lab91-none")])
def test_a_mistyped_lab_is_said_and_nothing_is_written(run, course, command):
    (course.root / "grades.csv").write_text("as before")
    assert run(*command) == (FAILED, {"error": "no lab called 'lab91-none'; there is: lab90-fixture"})
    assert (course.root / "grades.csv").read_text() == "as before"


def test_build_check_of_one_lab_is_of_that_lab(run, course):
    (course.root / "source" / "lab91-gone").mkdir()
    assert run("build", "--check", LAB) == (OK, {"stale": []})
    assert run("build", "--check") == (LOOK, {"stale": ["source/lab91-gone"]})


def test_build_source_says_what_it_built_and_what_it_left(run, course):
    course.source(LAB).unlink()
    file = f"source/{LAB}/{LAB}.ipynb"
    assert run("build", "--source") == (OK, {"changed": [file], "left": []})
    text = course.source(LAB).read_text("utf-8").replace("Double a number", "Double any number")
    course.source(LAB).write_text(text, "utf-8")
    code, data = run("build", "--source", LAB)
    assert (code, data["changed"]) == (LOOK, []) and f"inferlab adopt {LAB}" in data["left"][0]
    assert course.source(LAB).read_text("utf-8") == text


def test_grading_by_a_lab_whose_text_has_changed_is_refused_until_it_is_built(run, course):
    lesson = course.text(LAB)
    lesson.write_text(lesson.read_text("utf-8").replace("## Double a number", "## Double it"), "utf-8")
    code, data = run("grade", LAB)
    assert code == FAILED
    assert f"inferlab build {LAB}" in data["error"] and f"inferlab regrade {LAB}" in data["error"]
    assert run("build", LAB)[0] == OK
    assert "nothing handed in" in run("grade", LAB)[1]["error"]


def test_what_is_not_a_file_or_not_text_is_named(run, course, tmp_path):
    binary = tmp_path / "binary.ipynb"
    binary.write_bytes(b"\x89PNG\xff")
    three = tmp_path / "three.ipynb"
    three.write_text('{"cells": 3, "nbformat": 4, "nbformat_minor": 5, "metadata": {}}')
    for arguments, name in [(("check", tmp_path), tmp_path), (("check", binary / "x"), binary),
                            (("check", binary), binary),
                            (("cards", "inference", "--to", tmp_path), tmp_path)]:
        code, data = run(*arguments, at_course=False)
        assert code == FAILED and str(name) in data["error"], arguments
    assert run("check", three, at_course=False) == (FAILED, {"error": "not a notebook (TypeError)"})
    three.write_text('{"cells": [], "nbformat": 4, "nbformat_minor": 5, "metadata": {"inferlab": [1]}}')
    assert run("check", three, at_course=False)[0] == LOOK
    for arguments, name in [(("export", "--to", tmp_path), tmp_path),
                            (("collect", binary, "--roster", tmp_path), tmp_path),
                            (("collect", binary, "--times", tmp_path), tmp_path),
                            (("adopt", LAB, tmp_path), tmp_path),
                            (("adopt", LAB, binary), binary), (("adopt", LAB, three), three)]:
        code, data = run(*arguments)
        assert code == FAILED and str(name) in data["error"], arguments


@pytest.mark.parametrize("error", [KeyError("x"), ModuleNotFoundError("no", name="elsewhere")])
def test_a_fault_of_its_own_never_ends_as_needs_your_eye(run, monkeypatch, capsys, error):
    def broken(arguments):
        raise error

    monkeypatch.setattr("inferlab.commands.build", broken)
    code, data = run("build")
    assert code == FAILED
    assert f"a fault of inferlab ({type(error).__name__}" in data["error"]


def test_a_database_that_is_down_or_broken_is_no_fault_of_ours(run, course, tmp_path):
    for url, why in (("postgresql+psycopg://grader@127.0.0.1:1/grades", "connection failed"),
                     (f"sqlite:///{tmp_path}/nowhere/gradebook.db", "unable to open database file")):
        (course.root / "course.toml").write_text(f'[gradebook]\nurl = "{url}"\n')
        code, data = run("report", LAB)
        assert code == FAILED and data["error"].startswith("the gradebook cannot be used:"), data
        assert why in data["error"] and "same command again" in data["error"]


def test_an_assignment_given_twice_is_said(run, course, tmp_path):
    (tmp_path / "a.ipynb").write_text("x")
    code, data = run("collect", tmp_path, "--assign", "a.ipynb=ada", "--assign", "a.ipynb=olga")
    assert (code, data["error"]) == (FAILED, "--assign a.ipynb is given twice: ada and olga")


@pytest.mark.parametrize("lab", [LAB, "lab91-none"])
def test_progress_is_wiped_before_the_answer(course, monkeypatch, lab):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr("sys.stdout", screen)
    main(["build", "--course", str(course.root), lab])
    *_, left = screen.getvalue().rstrip("\n").split("\x1b[2K")
    assert left in ("nothing changed", "inferlab build: no lab called 'lab91-none'; there is: lab90-fixture")
