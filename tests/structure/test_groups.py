"""Tests that share something run on one worker, which pytest and xdist together silently stopped doing."""

import os
import shutil
import subprocess
import sys

from tests import ROOT

WHO = "def test_{}(worker_id): open('{}', 'a').write(worker_id + '\\n')\n"


def test_workers_get_whole_folders_where_tests_share_something_and_else_whole_files(tmp_path):
    def write(path, said):
        file = tmp_path / "tests" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(WHO.format(number, tmp_path / said) for number in range(6)))

    for name in ("a", "b", "c"):
        write(f"site/test_{name}.py", "site")
        write(f"lab/test_{name}.py", f"lab-{name}")
    write("course/test_every_lab.py", "labs")
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path / "tests")
    (tmp_path / "tests" / "course" / "__init__.py").write_text("FIXTURE = LAB = None\n")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    command = [sys.executable, "-m", "pytest", "-q", "-n2", "-p", "no:cacheprovider", "--rootdir", tmp_path,
               "--import-mode=importlib", tmp_path / "tests"]
    done = subprocess.run(command, cwd=tmp_path, env=environment | {"PYTHONPATH": str(tmp_path)},
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    ran = {file.name: file.read_text().split() for file in tmp_path.iterdir() if file.is_file()}
    assert len(ran.pop("labs")) == 6
    assert {name: (len(workers), len(set(workers))) for name, workers in ran.items()} == {
        "site": (18, 1), "lab-a": (6, 1), "lab-b": (6, 1), "lab-c": (6, 1)}
