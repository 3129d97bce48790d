"""A released notebook alone, in an empty folder, in a fresh environment that has only what a learner's
has."""

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from packaging.requirements import Requirement

from inferlab.grading.authoring.publish import build_wheel
from inferlab.lab import colab as bootstrap
from tests import ROOT
from tests.course import LAB

RUN = """\
import json, sys
import nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=300, allow_errors=True, extra_arguments=["--log-level=40"]).execute()
def said(output):
    return output.output_type, output.get("text") or output.get("ename") or output["data"]["text/plain"]
code = [cell for cell in notebook.cells if cell.cell_type == "code"]
print("@@" + json.dumps({cell.id: [said(output) for output in cell.outputs] for cell in code}))
"""
INSTRUCTORS = ["nbgrader", "jupytext", "papermill", "jupyterlab", "pytest", "sqlalchemy", "distributed",
               "playwright"]


def learners_distributions():
    """Names of what `pip install inferlab` without extras brings, directly and indirectly."""
    wanted, queue = set(), ["inferlab"]
    while queue:
        for text in importlib.metadata.requires(queue.pop()) or []:
            requirement = Requirement(text)
            if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
                continue
            name = requirement.name.lower().replace("_", "-")
            if name not in wanted:
                try:
                    importlib.metadata.distribution(name)
                except importlib.metadata.PackageNotFoundError:
                    continue
                wanted.add(name)
                queue.append(name)
    return wanted


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """A new environment with pip and the learner's dependencies, and without inferlab. What is installed here
    already is linked in, distribution by distribution, instead of being downloaded again."""
    folder = tmp_path_factory.mktemp("fresh") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    site = next(folder.glob("lib/python*/site-packages"))
    for name in learners_distributions():
        distribution = importlib.metadata.distribution(name)
        tops = {Path(str(file)).parts[0] for file in distribution.files or []
                if not str(file).startswith("..")}
        for top in tops - {"__pycache__"}:
            there = Path(str(distribution.locate_file(top)))
            if there.exists() and not (site / top).exists():
                (site / top).symlink_to(there)
    return folder


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build_wheel(ROOT, tmp_path_factory.mktemp("wheel"))


def python(fresh, *arguments, cwd, **environment):
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "JUPYTER",
                                                                                   "VIRTUAL", "JPY"))}
    done = subprocess.run([fresh / "bin" / "python", *arguments], cwd=cwd, capture_output=True, text=True,
                          check=False,
                          env={**kept, "PATH": f"{fresh / 'bin'}:/usr/bin:/bin", **environment})
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.notebooks
@pytest.mark.timeout(600)
def test_the_released_notebook_installs_its_package_and_runs(fresh, wheel, course, tmp_path):
    for name in [*INSTRUCTORS, "inferlab"]:
        found = python(fresh, "-c", f"import importlib.util as u; print(u.find_spec({name!r}))",
                       cwd=tmp_path).strip()
        assert found == "None", f"{name} must not be there"
    (tmp_path / f"{LAB}.ipynb").write_bytes(course.release(LAB).read_bytes())
    torch = python(fresh, "-c", "import torch; print(torch.__version__, torch.__file__)", cwd=tmp_path)
    out = python(fresh, "-c", RUN, f"{LAB}.ipynb", cwd=tmp_path, INFERLAB_WHEEL=str(wheel))
    cells = json.loads(out.split("@@", 1)[1])
    installed = "".join(text for _, text in cells["bootstrap"])
    assert "inferlab 0.2.0 is installed" in installed
    assert "GPU" in installed
    assert "RESTART" not in installed
    assert not [cell for cell, outputs in cells.items() for kind, text in outputs if kind == "error"
                and text != "NotImplementedError"]
    assert "your name or id in LEARNER" in cells["check-one-call-shape_2"][-1][1]
    assert python(fresh, "-c", "import torch; print(torch.__version__, torch.__file__)",
                  cwd=tmp_path) == torch
    assert {path.name for path in tmp_path.iterdir()} <= {f"{LAB}.ipynb", "course"}
    # The learner's own command works there, too, and the instructor's say what they need.
    checked = subprocess.run([fresh / "bin" / "inferlab", "check", "--json", f"{LAB}.ipynb"], cwd=tmp_path,
                             capture_output=True,
                             text=True, check=False)
    assert checked.returncode == 1, checked.stderr
    assert sum(report["maximum"] for report in json.loads(checked.stdout)["reports"]) == 10


def test_where_it_is_installed_the_first_cell_does_nothing(course):
    source = next(cell for cell in nbformat.read(course.release(LAB), as_version=4).cells
                  if cell.id == "bootstrap").source
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True,
                          env={**os.environ, "INFERLAB_WHEEL": "/nonexistent.whl"})
    assert (done.stdout, done.stderr) == ("", "")


def test_the_torch_that_is_there_is_pinned_and_never_replaced(monkeypatch):
    assert f"torch=={importlib.metadata.version('torch')}" in bootstrap.pins()
    monkeypatch.setattr(bootstrap, "unmet", lambda: ["torch>=9"])
    monkeypatch.setattr(bootstrap, "install", lambda wanted: pytest.fail("installed something"))
    with pytest.raises(RuntimeError, match="does not replace it"):
        bootstrap.finish()


def test_a_loaded_library_that_is_replaced_asks_for_a_restart(monkeypatch, capsys):
    done = []
    monkeypatch.setattr(bootstrap, "unmet", lambda: ["diffusers>=0.39,<0.50", "not-loaded-at-all>=1"])
    monkeypatch.setattr(bootstrap, "install", done.extend)
    monkeypatch.setitem(sys.modules, "diffusers", object())
    assert bootstrap.finish() is True
    assert done == ["diffusers>=0.39,<0.50", "not-loaded-at-all>=1"]
    text = capsys.readouterr().out
    assert "RESTART NEEDED: an older diffusers is loaded" in text


def test_what_is_missing_is_found_by_the_packages_own_requirements():
    assert bootstrap.unmet() == []


def test_pip_that_fails_says_its_own_last_words():
    with pytest.raises(RuntimeError, match="pip could not install"):
        bootstrap.install(["./no-such-file-here.whl"])
