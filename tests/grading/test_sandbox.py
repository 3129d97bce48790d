"""The sandbox: refused where it cannot be, said where it is not, the same for root and for an ordinary user."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from inferlab.grading.batch import grade_lab
from inferlab.grading.host import Host
from inferlab.grading.isolate import BELOW_TMP, WRITABLE
from inferlab.grading.limits import Limits
from inferlab.grading.sandbox import NoSandbox
from inferlab.grading.summary import grades_csv

LOOK = """
import os, json
print(json.dumps({
    "uid": os.getuid(), "pid": os.getpid(), "home": os.getcwd(), "root": sorted(os.listdir("/")),
    "status": {k: v.strip() for k, _, v in (l.partition(":") for l in open("/proc/self/status"))},
    "processes": [p for p in os.listdir("/proc") if p.isdigit()],
    "interfaces": open("/proc/net/dev").read().count(":"),
    "mounts": open("/proc/self/mounts").read(),
}))
"""
JOB = {"lab": "lab00-x", "learner": "", "provides": [], "explanations": {}, "limits": Limits().as_dict(),
       "cells": [{"kind": "run", "index": 0, "source": LOOK, "doing": "running cell 1"}]}


def look(result: dict) -> dict:
    return json.loads(result["cells"]["0"]["outputs"][0]["text"])


def assert_confined(seen: dict) -> None:
    assert seen["uid"] != 0
    assert (seen["pid"], seen["processes"], seen["home"]) == (1, ["1"], "/home/learner")
    assert seen["status"]["NoNewPrivs"] == "1"
    assert seen["status"]["Seccomp"] == "2"
    assert {seen["status"][k].strip("0") for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {""}
    assert seen["interfaces"] <= 1  # at most a loopback that is down
    writable = {line.split()[1] for line in seen["mounts"].splitlines()
                if line.split()[3].startswith("rw") and line.split()[2] in ("tmpfs", "ext4", "overlay", "xfs", "btrfs")}
    assert set(WRITABLE) <= writable
    assert ("/tmp" in writable) == (not BELOW_TMP)
    assert not any(place.startswith(("/usr", "/work", "/home/learner/")) for place in writable)


def test_a_kernel_is_confined_and_starts_fast():
    with Host() as host:
        host.run(JOB)
        began = time.monotonic()
        result = host.run(JOB)
        assert time.monotonic() - began < 5
    assert_confined(look(result))
    assert result["unprotected"] is False


ORDINARY = """
import json, sys
from inferlab.grading.host import Host
with Host() as host:
    print(json.dumps(host.run(json.loads(sys.stdin.read()))))
"""


def test_an_ordinary_user_gets_the_same_sandbox(tmp_path):
    """As root this test becomes one; the interpreter may lie in root's home, so it is shown at its place in a mount."""
    line = [sys.executable, "-c", ORDINARY]
    if os.getuid() == 0:
        base = Path(sys.base_prefix).resolve()
        shown = []
        if base.is_relative_to("/root"):
            shown = ["--perms", "0755", "--tmpfs", "/root"]
            for folder in reversed([p for p in base.parents if p.is_relative_to("/root") and p != Path("/root")]):
                shown += ["--perms", "0755", "--dir", str(folder)]
            shown += ["--ro-bind", str(base), str(base)]
        line = ["bwrap", "--dev-bind", "/", "/", *shown, "--", "setpriv", "--reuid=12345", "--regid=12345",
                "--clear-groups", *line]
    done = subprocess.run(line, input=json.dumps(JOB), capture_output=True, text=True, timeout=250, check=False,
                          env=os.environ | {"HOME": "/tmp", "PYTHONDONTWRITEBYTECODE": "1"}, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr[-3000:]
    seen = look(json.loads(done.stdout))
    assert_confined(seen)
    assert seen["uid"] == (12345 if os.getuid() == 0 else os.getuid())


def test_without_bubblewrap_grading_refuses(course, monkeypatch):
    course.submit("ada", course.solution())
    monkeypatch.setattr("shutil.which", lambda name, *a, **k: None)
    monkeypatch.setattr("inferlab.grading.results._hosts", {})
    with pytest.raises(NoSandbox, match=r"bwrap.*is not installed.*--no-sandbox"):
        grade_lab(course.course, course.lab)
    assert not (course.root / "autograded" / "ada").exists()


def test_without_the_sandbox_the_report_says_so_and_nothing_stays_behind(course):
    leave = "import subprocess, sys, os\nopen('left-behind', 'w').close()\n" \
            "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)  # unprotected'], " \
            "start_new_session=True)\nprint('pid', p.pid, os.getcwd())\n"
    course.submit("ada", course.solution(half=leave + "def half(x): return x / 2"))
    (row,) = grade_lab(course.course, course.lab, mode="none")
    assert (row.points, row.unprotected) == (5.0, True)
    assert grades_csv([row]).splitlines()[1].endswith(",NO")
    written = (course.root / "autograded" / "ada" / course.lab / f"{course.lab}.ipynb").read_text()
    _, pid, folder = written[written.index("pid "):].split('\\n')[0].split()
    assert not Path(folder).exists()
    assert not Path(f"/proc/{pid}").exists()


def test_nothing_runs_after_the_host_is_closed():
    host = Host()
    host.start()
    below = [process.pid for process, _ in (host._kernels, host._graders)]
    host.close()
    assert not [pid for pid in below if Path(f"/proc/{pid}").exists()]
