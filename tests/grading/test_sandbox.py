"""The sandbox: refused where it cannot be, said where it is not, the same for root and for an ordinary
user."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from inferlab.grading.gradebook.batch import grade_lab
from inferlab.grading.running.host import GradingFailed, Host
from inferlab.grading.sandbox import isolate, zygote
from inferlab.grading.sandbox.isolate import BELOW_TMP, WRITABLE
from inferlab.grading.sandbox.limits import Limits
from inferlab.grading.sandbox.sandbox import NoSandbox
from tests import ROOT

pytestmark = pytest.mark.sandbox

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
LATE = """
import ast, json, sys
from inferlab.grading.sandbox.warm import warm
warm()
def libraries():
    return {name.split(".")[0] for name in sys.modules} - sys.stdlib_module_names
before = libraries()
for path in sys.argv[1:]:
    for cell in json.load(open(path))["cells"]:
        lines = "".join(cell["source"]).splitlines() if cell["cell_type"] == "code" else []
        tree = ast.parse("\\n".join(line for line in lines if not line.lstrip().startswith(("%", "!")))
                         if not lines or not lines[0].startswith("%%") else "")
        for node in ast.walk(tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)) and "triton" not in ast.unparse(node):
                exec(ast.unparse(node), {})
print(json.dumps(sorted(libraries() - before)))
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
                if line.split()[3].startswith("rw") and line.split()[2] in ("tmpfs", "ext4", "overlay", "xfs",
                                                                            "btrfs")}
    assert set(WRITABLE) <= writable
    assert ("/tmp" in writable) == (not BELOW_TMP)
    assert not any(place.startswith(("/usr", "/work", "/home/learner/")) for place in writable)


@pytest.mark.timing
def test_a_kernel_is_confined_and_starts_fast():
    with Host() as host:
        host.run(JOB)
        began = time.monotonic()
        result = host.run(JOB)
        assert time.monotonic() - began < 5
    assert_confined(look(result))
    assert result["unprotected"] is False


def test_an_endless_cell_is_stopped_and_said_and_the_next_cell_starts_afresh():
    """Three ways to be endless: in a cell's code, in what it awaits, in a magic that reports errors."""
    forever = "import asyncio\nasync def forever():\n    while True:\n        await asyncio.sleep(0.01)\n"
    sources = ["while True: pass", forever + "await forever()", "%%time\nwhile True: pass", "1 / 0",
               "left = len(asyncio.all_tasks())\nleft"]
    cells = [{"kind": "run", "index": i, "source": source, "doing": f"running cell {i + 1}"}
             for i, source in enumerate(sources)]
    with Host() as host:
        result = host.run(JOB | {"cells": cells, "limits": Limits(cell_seconds=0.5).as_dict()})
    assert result["died"] == ""
    assert [result["cells"][str(i)]["status"] for i in range(5)] == ["stopped"] * 3 + ["error", "ok"]
    assert result["told"] == ["stopped after 0.5 s while running cell 1: while True: pass",
                                 "stopped after 0.5 s while running cell 2: import asyncio",
                                 "stopped after 0.5 s while running cell 3: %%time"]
    for number in range(3):
        (error,) = [o for o in result["cells"][str(number)]["outputs"] if o["output_type"] == "error"]
        assert (error["ename"], error["evalue"]) == ("TimeLimit", "the cell was stopped: its time was up")
    assert result["cells"]["4"]["outputs"][0]["data"]["text/plain"] == "1"  # the cell's own


ORDINARY = """
import json, sys
from inferlab.grading.running.host import Host
with Host() as host:
    print(json.dumps(host.run(json.loads(sys.stdin.read()))))
"""


def test_an_ordinary_user_gets_the_same_sandbox(tmp_path):
    """As root this test becomes one; interpreter and checkout may lie in root's home, and are shown at their
    places in a mount."""
    line = [sys.executable, "-c", ORDINARY]
    if os.getuid() == 0:
        shown = []
        for folder in (Path(sys.base_prefix).resolve(), Path(__file__).resolve().parents[2]):
            if folder.is_relative_to("/root"):
                shown = shown or ["--perms", "0755", "--tmpfs", "/root"]
                for parent in reversed([p for p in folder.parents if p.is_relative_to("/root")
                                        and p != Path("/root")]):
                    shown += ["--perms", "0755", "--dir", str(parent)]
                shown += ["--ro-bind", str(folder), str(folder)]
        line = ["bwrap", "--dev-bind", "/", "/", *shown, "--", "setpriv", "--reuid=12345", "--regid=12345",
                "--clear-groups", *line]
    done = subprocess.run(line, input=json.dumps(JOB), capture_output=True, text=True, timeout=250,
                          check=False,
                          env=os.environ | {"HOME": "/tmp", "PYTHONDONTWRITEBYTECODE": "1"},
                          cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr[-3000:]
    seen = look(json.loads(done.stdout))
    assert_confined(seen)
    assert seen["uid"] == (12345 if os.getuid() == 0 else os.getuid())


def test_without_bubblewrap_grading_refuses(course, monkeypatch):
    course.submit("ada", course.solution())
    monkeypatch.setattr("shutil.which", lambda name, *a, **k: None)
    monkeypatch.setattr("inferlab.grading.running.host._HOSTS", {})
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
    written = (course.root / "autograded" / "ada" / course.lab / f"{course.lab}.ipynb").read_text()
    _, pid, folder = written[written.index("pid "):].split('\\n')[0].split()
    assert not Path(folder).exists()
    assert not Path(f"/proc/{pid}").exists()


def test_a_signal_without_a_name_is_told_and_nothing_stays_behind(course):
    end = "import os\nprint('folder', os.getcwd())\ndef half(x): os.kill(os.getpid(), 40)"
    course.submit("ada", course.solution(half=end))
    (row,) = grade_lab(course.course, course.lab, mode="none")
    assert "it was ended by signal 40" in row.notes[0]
    written = (course.root / "autograded" / "ada" / course.lab / f"{course.lab}.ipynb").read_text()
    assert not Path(written[written.index("folder "):].split('\\n')[0].split()[1]).exists()


def test_a_kernel_whose_supervision_fails_is_ended(monkeypatch):
    """In this process, with a child that sleeps in place of the kernel."""
    pid = os.fork()
    if pid == 0:
        time.sleep(100)
        os._exit(0)
    monkeypatch.setattr(isolate, "tree_memory", lambda root: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        zygote.watch(pid, socket.socketpair()[0], Limits())
    assert os.waitpid(pid, 0)[1] == signal.SIGKILL


def end_process(pid):
    """Kill a process of the host's and wait until it is gone."""
    os.kill(pid, signal.SIGKILL)
    while Path(f"/proc/{pid}").exists():
        time.sleep(0.01)


def test_a_process_of_ours_that_ends_fails_one_submission_and_the_next_is_graded():
    sleep = JOB | {"cells": [JOB["cells"][0] | {"source": "import time; time.sleep(20)"}]}
    with Host() as host:
        host.run(JOB)
        end_process(host._idle[0][1])
        with pytest.raises(GradingFailed, match="did not answer"):  # ended between two submissions
            host.run(JOB)
        host.run(JOB)
        worker = host._idle[0][1]
        threading.Timer(2, end_process, [worker]).start()
        with pytest.raises(GradingFailed, match="did not answer"):  # ended at work
            host.run(sleep)
        host.run(JOB)
        real, host.start = host.start, lambda: None
        end_process(host._idle.pop()[1])
        host._graders[0].kill()
        host._graders[0].wait()
        with pytest.raises(GradingFailed, match="no grader's process could be started"):
            host.run(JOB)
        host.start = real
        assert "cells" in host.run(JOB)


def test_what_the_labs_import_is_imported_before_the_fork():
    """Else every submission imports it anew: nbformat, for the last cell, took half of its processor time."""
    labs = sorted(map(str, (ROOT / "source").glob("*/*.ipynb")))
    assert len(labs) > 20
    done = subprocess.run([sys.executable, "-c", LATE, *labs], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_hosts_that_run_side_by_side_begin_at_different_user_ids():
    hosts = [Host() for _ in range(4)]
    assert len({host._slot for host in hosts}) > 1
    for host in hosts:
        host.close()


def test_nothing_runs_after_the_host_is_closed():
    host = Host()
    host.start()
    below = [process.pid for process, _ in (host._kernels, host._graders)]
    host.close()
    assert not [pid for pid in below if Path(f"/proc/{pid}").exists()]
