"""Gradescope's autograder: what is packed, and one submission graded as its container would do it."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import nbformat
import pytest

from inferlab.cli import main
from inferlab.commands import FAILED, OK
from inferlab.grading.gradescope import run
from inferlab.grading.gradescope.package import SCRIPTS
from inferlab.grading.notebook import dumps, load
from inferlab.grading.sandbox.limits import Limits
from tests import ROOT
from tests.grading.other_users import reachable
from tests.grading.tiny import BACKWARDS, CRASH, LAB, WRONG_HALF

pytestmark = pytest.mark.sandbox
SEES_TESTS = """
leaked = []
for path in {paths!r}:
    try: leaked.append(open(path).read()[:80])
    except OSError: pass
"""
TELLS = "def half(x):\n    assert not leaked, leaked\n    return x / 2"
NETWORK = """
import socket
for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, 16):
    try: socket.socket(family); leaked.append(family)
    except OSError: pass
"""
# Run as Docker runs a container's root: 14 rights, no namespaces, and, if so asked, no Landlock.
CONTAINER = """
import ctypes, struct, sys
from pathlib import Path
libc = ctypes.CDLL(None, use_errno=True)
kept = sum(1 << n for n in (0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31))
for number in range(41):
    if not kept >> number & 1:
        libc.prctl(24, number, 0, 0, 0)
assert libc.capset((ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)(kept, kept, 0, 0, 0, 0)) == 0
denied = [272] + [444] * (sys.argv[2] == '0')  # unshare, landlock_create_ruleset (x86-64)
lines = [(0x20, 0, 0, 0)]
for number in denied:
    lines += [(0x15, 0, 1, number), (0x06, 0, 0, 0x00050000 | 38)]
lines.append((0x06, 0, 0, 0x7fff0000))
code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *one) for one in lines))
class Program(ctypes.Structure):
    _fields_ = [('len', ctypes.c_ushort), ('filter', ctypes.c_void_p)]
libc.prctl(38, 1, 0, 0, 0)
assert libc.prctl(22, 2, ctypes.byref(Program(len(lines), ctypes.addressof(code))), 0, 0) == 0
from inferlab.grading.gradescope import run
sys.exit(run.main(Path(sys.argv[1])))
"""
#: Only root can be other users; Gradescope's container runs as root.
MODES = ["users", "sandbox"] if os.getuid() == 0 else ["sandbox"]


@pytest.fixture
def autograder(module_course):
    """Gradescope's folder as its harness makes it, with the tiny lab; where every user could go in."""
    folder = Path(tempfile.mkdtemp(prefix="autograder-", dir="/var/tmp"))
    folder.chmod(0o755)
    for name in ("source", "submission", "results"):
        (folder / name).mkdir()
    source = load(module_course.course.source(LAB))
    (folder / "source" / "lab.ipynb").write_text(dumps(source), "utf-8")
    settings = {"lab": LAB, "limits": Limits().as_dict(), "visibility": "after_due_date"}
    (folder / "source" / "settings.json").write_text(json.dumps(settings))
    (folder / "submission_metadata.json").write_text(json.dumps({"users": [
        {"name": "Ada \x1b[2J", "email": "ada@example.org", "id": 1}],
                                                                 "previous_submissions": [{"score": 1}]}))
    yield folder
    shutil.rmtree(folder)


def in_container(folder, with_landlock=True):
    """Run the autograder with the rights that Docker leaves to root; what it printed, and its exit code."""
    command = reachable([sys.executable, "-c", CONTAINER, str(folder), str(int(with_landlock))])
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture
def graded(autograder, capsys):
    """Grade a notebook (or files) there; returns what `results.json` says, and what was printed."""

    def go(files, mode=MODES[0]):
        if "cells" in files:
            files = {"my work/lab.ipynb": nbformat.writes(files)}
        for name, text in files.items():
            path = autograder / "submission" / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        if mode == "users":
            done = in_container(autograder)
            assert done.returncode == 0, done.stderr
            printed = done.stdout
        else:
            assert run.main(autograder) == 0
            printed = capsys.readouterr().out
        return json.loads((autograder / "results" / "results.json").read_text("utf-8")), printed

    return go


def points(results):
    return {test["name"]: (test["score"], test["max_score"]) for test in results["tests"]}


@pytest.mark.parametrize("mode", MODES)
def test_a_submission_gets_its_points_and_its_messages(graded, module_course, mode):
    results, printed = graded(module_course.solution(half=WRONG_HALF, loop=BACKWARDS), mode)
    assert points(results) == {"half": (0.0, 2.0), "loop": (1.0, 3.0)}
    half, loop = results["tests"]
    assert "you divided twice" in half["output"] and "✓ calls the model once a step" in loop["output"]
    assert "backwards" in loop["output"] and loop["status"] == half["status"] == "failed"
    assert results["visibility"] == half["visibility"] == "after_due_date"
    assert results["stdout_visibility"] == "hidden"
    text = json.dumps(results)
    for hidden in ("batch / 4", "HIDDEN", "[9, 4]", "torch.arange"):
        assert hidden not in text
    assert "\x1b" not in printed and "handed in by Ada" in printed
    assert ("kept apart as another user" in printed) == (mode == "users")


def test_a_learner_who_could_read_the_tests_is_not_graded(autograder):
    open_to_all = CONTAINER.replace("sys.exit(", "run.close_files = lambda folder: None\nsys.exit(")
    command = reachable([sys.executable, "-c", open_to_all, str(autograder), "1"])
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    wanted = f"a learner can read {autograder}/source/lab.ipynb" if os.getuid() == 0 else "only root can"
    assert done.returncode == 1 and wanted in done.stderr
    assert not (autograder / "results" / "results.json").exists()


@pytest.mark.parametrize(("files", "said"), [
    ({}, "There is no notebook of lab00-tiny"), ({"a.ipynb": "{"}, "cut off"),
    ({"a.ipynb": b"\xff\xfe\x00"}, "a.ipynb"),
    ({"a.txt": "hello"}, "There is no notebook"),
    ({"a.ipynb": '{"cells": [], "nbformat": 4}'}, "this is not lab00"),
])
def test_what_cannot_be_graded_gets_no_points_and_the_reason(graded, files, said):
    results, _ = graded(files, "sandbox")
    assert said in results["output"]
    assert results["tests"][0]["visibility"] == "visible" and said in results["tests"][0]["output"]
    assert points(results)["half"] == (0.0, 2.0)


def test_two_notebooks_are_not_decided_and_two_copies_are_one(graded, module_course):
    one, other = (nbformat.writes(module_course.solution(half=text)) for text in (WRONG_HALF, "x = 1"))
    assert "several notebooks" in graded({"a.ipynb": one, "b.ipynb": other}, "sandbox")[0]["output"]


def test_what_waits_for_a_person_is_said(module_course):
    lab = run.CourseLab.of(load(module_course.course.source(LAB)))
    submission = run.Submission.of(nbformat.writes(module_course.solution()).encode(), lab)
    part = {"name": "state", "weight": 1, "fraction": 0.0, "state": "review", "message": "", "mistake": False,
            "evidence": ["secret evidence"]}
    check = {"score": 0.0, "points": 2.0, "parts": [part], "review": True}
    results = run.results_of(lab, submission,
                             {"checks": {"check-half": check}, "told": [], "died": "", "seconds": 1},
                             "visible")
    assert results["tests"][0]["tags"] == ["in review"] and run.IN_REVIEW in results["tests"][0]["output"]
    assert "A person will look at half." in results["output"]
    assert "secret evidence" not in json.dumps(results)


@pytest.mark.parametrize("with_landlock", [True, False])
def test_in_a_container_without_namespaces_and_with_or_without_landlock(autograder, module_course,
                                                                        with_landlock):
    """With the rights that Docker leaves to root, and where the kernel has no Landlock: the modes keep it."""
    notebook = module_course.solution(half=TELLS, loop=CRASH)
    paths = [str(autograder / name) for name in (
        "source/lab.ipynb", "source/settings.json", "submission/lab.ipynb", "submission_metadata.json")]
    paths += ["/etc/shadow", "/proc/1/environ"]
    notebook.cells.insert(4, nbformat.v4.new_code_cell(SEES_TESTS.format(paths=paths) + NETWORK))
    for name in ("lab.ipynb", "a copy.ipynb"):
        (autograder / "submission" / name).write_text(nbformat.writes(notebook))
    done = in_container(autograder, with_landlock)
    if os.getuid() != 0:
        assert done.returncode and "only root can make every learner a user of their own" in done.stderr
        return
    assert done.returncode == 0, done.stderr
    assert f"with{'' if with_landlock else 'out'} Landlock" in done.stdout
    results = json.loads((autograder / "results" / "results.json").read_text("utf-8"))
    assert points(results) == {"half": (2.0, 2.0), "loop": (0.0, 3.0)}, results
    assert "your kernel died while running cell" in results["output"]
    for name in ("source", "submission", "results"):
        assert (autograder / name).stat().st_mode & 0o777 == 0o700
    assert not list(Path(tempfile.gettempdir()).glob("inferlab-users-*"))


# -- the zip -------------------------------------------------------------------------------------------------
@pytest.mark.timeout(600)
def test_the_zip_holds_what_its_scripts_use(built, tmp_path, capsys):
    root, path = tmp_path / "course", tmp_path / "out.zip"
    shutil.copytree(built, root)
    for name in ("src", "pyproject.toml", "README.md", "LICENSE", "LICENSE-TEXT", "constraints.txt",
                 "nbgrader_config.py"):
        (root / name).symlink_to(ROOT / name)
    place = ["gradescope", "lab90-fixture", str(path), "--course", str(root)]
    assert main(place) == OK, capsys.readouterr()
    assert "The assignment gives 10 points" in capsys.readouterr().out
    with zipfile.ZipFile(path) as archive:
        names = set(archive.namelist())
        wheel = next(name for name in names if name.endswith(".whl"))
        assert names == {"setup.sh", "run_autograder", wheel, "constraints.txt", "lab.ipynb", "settings.json"}
        assert all(archive.getinfo(name).external_attr >> 16 & 0o111
                   for name in ("setup.sh", "run_autograder"))
        archive.extract(wheel, tmp_path)
        assert "HIDDEN TESTS" in archive.read("lab.ipynb").decode()
    with zipfile.ZipFile(tmp_path / wheel) as package:
        inside = package.namelist()
    for name in ("run.py", "setup.sh", "run_autograder"):
        assert f"inferlab/grading/gradescope/{name}" in inside
    assert main([*place, "--show", "soon"]) == FAILED


@pytest.mark.parametrize("script", ["setup.sh", "run_autograder"])
def test_a_script_is_shell_that_parses(script):
    subprocess.run(["bash", "-n", SCRIPTS / script], check=True)
    assert (SCRIPTS / script).read_text().startswith("#!/usr/bin/env bash\n")
