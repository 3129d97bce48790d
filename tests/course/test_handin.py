"""The last cell of a lab: one complete file to hand in from JupyterLab, VS Code and Colab, or a plain word
what to do.

Real kernels run real notebooks; one test drives a real JupyterLab in a browser.
"""

import json
import shutil
import subprocess
import sys
import time
import urllib.request

import nbformat
import pytest
from nbclient import NotebookClient

from inferlab.cli import main
from inferlab.grading.collecting.collect import collect
from inferlab.grading.demo import fill_in, solved
from inferlab.grading.roster import Roster
from inferlab.lab.checks.check import Check
from inferlab.lab.checks.checklist import missing
from inferlab.lab.handin.handed_in import so_far
from inferlab.lab.notebook_file import unsaved
from tests.course import LAB

SUBMIT = "from inferlab.lab import submit\n\nsubmit(wait=0)"


@pytest.fixture
def light(course):
    """The solved notebook without its set-up cell (which loads the big libraries) and with a submit that does
    not wait."""

    def make(learner="ada", **answers):
        notebook = solved(course, LAB, learner)
        for cell in notebook.cells:
            if cell.source.startswith("from inferlab.lab import start"):
                cell.source = ("from IPython import get_ipython\nfrom inferlab.lab.explain import register\n"
                               "register(get_ipython())")
            cell.source = answers.get(cell.id.replace("-", "_"), cell.source)
        notebook.cells[-1].source = SUBMIT
        return notebook

    return make


def run(notebook, folder, **environment):
    """Execute a copy of the notebook in a kernel that a front end would start; returns what its last cell
    shows."""
    import os

    notebook = nbformat.from_dict(notebook)
    client = NotebookClient(notebook, timeout=120, allow_errors=True, extra_arguments=["--log-level=40"],
                            resources={"metadata": {"path": str(folder)}})
    client.execute(env={**os.environ, **environment})
    last = notebook.cells[-1]
    return "\n".join(o.get("text") or o.get("evalue") or o["data"]["text/plain"] for o in last.outputs)


def test_jupyterlab_leaves_one_file_that_collect_places(light, course, tmp_path):
    path = tmp_path / "mine.ipynb"
    notebook = light("Ada Lovelace")
    notebook.metadata.inferlab["next"] = "Lab 91 · next (../lab91-next/lab91-next.ipynb)"
    nbformat.write(notebook, path)
    shown = run(notebook, tmp_path, JPY_SESSION_NAME=str(path))
    assert "3 of 3 visible parts passed; 3 more parts are graded after you hand in" in shown
    assert "double: visible part passed, 1 more part after you hand in" in shown
    assert "points" not in shown
    handed_in = tmp_path / "handin" / f"{LAB}-ada-lovelace.ipynb"
    assert f"HAND IN THIS FILE: {handed_in}" in shown
    about = nbformat.read(handed_in, as_version=4).metadata["inferlab"]
    assert about["learner"] == "Ada Lovelace"
    assert about["frontend"] == "JupyterLab"
    assert about["visible"] == [3, 3]
    assert shown.endswith("Next lab: Lab 91 · next (../lab91-next/lab91-next.ipynb)")
    assert "Still missing" not in shown
    report = collect(course, [handed_in], Roster.load(course.roster))
    assert [(line.status, line.learner, line.lab) for line in report.lines] == [("collected", "ada", LAB)]


def test_the_last_cell_says_how_many_labs_are_handed_in(light, course):
    labs = course.root / "release"
    (labs / "lab91-next").mkdir()
    shutil.copy(labs / LAB / f"{LAB}.ipynb", labs / "lab91-next" / "lab91-next.ipynb")
    path = labs / LAB / f"{LAB}.ipynb"
    nbformat.write(light(), path)
    assert so_far(path) == "Handed in so far: 0 of 2 labs; start-here.ipynb lists them."
    shown = run(light(), path.parent, JPY_SESSION_NAME=str(path))
    assert shown.endswith("Handed in so far: 1 of 2 labs; start-here.ipynb lists them.")
    (labs / "start-here.ipynb").unlink()
    assert so_far(path) == "", "a notebook that lies in no course"


def test_what_is_missing_is_said_and_the_file_is_left_all_the_same(light, tmp_path, course):
    notebook = light(fold="def fold(step, items):\n    # YOUR CODE HERE\n    raise NotImplementedError()")
    path = tmp_path / "mine.ipynb"
    nbformat.write(notebook, path)
    shown = run(notebook, tmp_path, JPY_SESSION_NAME=str(path))
    assert "2 of 3 visible parts passed" in shown
    assert "- fold: adds up (not done yet)" in shown
    assert "HAND IN THIS FILE" in shown


def test_what_no_visible_check_can_tell_promises_no_points(light, tmp_path, capsys):
    form = ('from inferlab.lab import Check\n\ncheck = Check("one-call-shape", points=2)\nwith '
            'check.part("is filled in", weight=0):\n'
            '    check.true(check.explanation("one-call").get("shape"), "the line is empty")\ncheck.score()')
    path = tmp_path / "mine.ipynb"
    notebook = light(check_one_call_shape=form)
    nbformat.write(notebook, path)
    for shown in (run(notebook, tmp_path, JPY_SESSION_NAME=str(path)),
                  (main(["check", str(path)]), capsys.readouterr().out)[1]):
        assert ("2 of 2 visible parts passed; 2 more parts and 1 written answer are graded after "
                "you hand in") in shown
        assert "one-call-shape: filled in, graded later" in shown


def test_unsaved_work_leaves_no_file(light, tmp_path):
    path = tmp_path / "mine.ipynb"
    nbformat.write(light(double="def double(x):\n    return 7"), path)
    shown = run(light(), tmp_path, JPY_SESSION_NAME=str(path))
    assert "No file was made: the saved notebook is not what you ran. Not the same: double" in shown
    assert not (tmp_path / "handin").exists()


@pytest.mark.parametrize("scratch", ["def try_it(n):\n    return n", "def duoble(x):\n    return x",
                                     "def show(x):\n    return x"])
def test_what_the_notebook_no_longer_has_stops_nothing(light, tmp_path, scratch):
    """A scratch cell, a name mended since, and one that the notebook itself imports."""
    path, saved, ran = tmp_path / "mine.ipynb", light(), light()
    saved.cells.insert(2, nbformat.v4.new_code_cell("from builtins import print as show\nshow(1)"))
    nbformat.write(saved, path)
    ran.cells.insert(2, nbformat.v4.new_code_cell(scratch))
    assert "HAND IN THIS FILE" in run(ran, tmp_path, JPY_SESSION_NAME=str(path))


def test_a_helper_that_was_not_saved_leaves_no_file(light, tmp_path):
    path, saved, ran = tmp_path / "mine.ipynb", light(), light()
    saved.cells.insert(-1, nbformat.v4.new_code_cell("helper(3)"))
    nbformat.write(saved, path)
    ran.cells.insert(2, nbformat.v4.new_code_cell("def helper(x):\n    return x"))
    assert "Not the same: helper" in run(ran, tmp_path, JPY_SESSION_NAME=str(path))


def test_an_answer_whose_cell_is_gone_leaves_no_file(light):
    notebook = light()
    executed = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    notebook.cells = [cell for cell in notebook.cells if cell.id != "top-2"
                      and not cell.source.startswith("LEARNER")]
    assert unsaved(notebook, executed) == ["LEARNER"]


def test_submit_and_check_name_the_same_as_missing():
    check = Check("words", 2)
    with check.part("form", weight=0):
        check.fail("no sentence")
    with check.part("points"):
        pass
    assert check.score() == 2.0
    want = ["your name or id in LEARNER", "words: form (no sentence)", "fold: its check did not run"]
    assert missing("", [check.score().told], ["words", "fold"]) == want


def test_in_a_new_kernel_it_says_to_run_everything_and_runs_nothing(light, tmp_path):
    path, notebook = tmp_path / "mine.ipynb", light()
    nbformat.write(notebook, path)
    notebook.cells = notebook.cells[-1:]
    shown = run(notebook, tmp_path, JPY_SESSION_NAME=str(path))
    assert shown == ("This kernel has just been started: run all cells from the top first (Run > Run "
                     "All Cells).")
    assert not (tmp_path / "handin").exists()


def test_without_a_name_no_file_is_left(light, tmp_path):
    path = tmp_path / "mine.ipynb"
    nbformat.write(light(""), path)
    shown = run(light(""), tmp_path, JPY_SESSION_NAME=str(path))
    assert "nobody would know whose it is" in shown
    assert not (tmp_path / "handin").exists()


def test_where_no_way_works_it_says_what_to_save_and_upload(light, tmp_path):
    shown = run(light(), tmp_path, JPY_SESSION_NAME="")
    assert "SAVE THIS NOTEBOOK" in shown
    assert "3 of 3 visible parts passed" in shown
    gone = run(light(), tmp_path, JPY_SESSION_NAME=str(tmp_path / "renamed-since.ipynb"))
    assert "renamed-since.ipynb is no longer where it was" in gone


def test_vs_code(light, tmp_path):
    notebook, path = light(), tmp_path / "code.ipynb"
    notebook.cells[1].source = f"__vsc_ipynb_file__ = {str(path)!r}"
    nbformat.write(notebook, path)
    shown = run(notebook, tmp_path, JPY_SESSION_NAME="")
    assert "HAND IN THIS FILE" in shown
    assert json.loads((tmp_path / "handin"
                       / f"{LAB}-ada.ipynb").read_text())["metadata"]["inferlab"]["frontend"] == "VS Code"


COLAB = """\
import json, sys, types
google, colab = types.ModuleType("google"), types.ModuleType("google.colab")
colab._message, colab.files = types.SimpleNamespace(), types.SimpleNamespace()
saved = {{"ipynb": json.load(open({path!r}))}}
colab._message.blocking_request = lambda what, request="", timeout_sec=0: saved
colab.files.download = lambda path: print("downloading", path)
sys.modules.update({{"google": google, "google.colab": colab}})"""


def test_colab_sends_the_notebook_and_downloads_the_file(light, tmp_path):
    notebook, path = light(), tmp_path / "drive.json"
    notebook.cells[1].source = COLAB.format(path=str(path))
    plain = json.loads(nbformat.writes(notebook))
    for cell in plain["cells"]:
        cell["metadata"]["id"] = cell.pop("id")
    plain["nbformat_minor"] = 0
    path.write_text(json.dumps(plain))
    shown = run(notebook, tmp_path, JPY_SESSION_NAME="")
    assert f"downloading {tmp_path / 'handin' / f'{LAB}-ada.ipynb'}" in shown


# -- a real JupyterLab
# ---------------------------------------------------------------------------------------------------
@pytest.fixture
def jupyterlab(tmp_path):
    """A JupyterLab server on a free port with its files in tmp_path/home; yields (url, folder)."""
    home = tmp_path / "home"
    home.mkdir()
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.port=0",
               "--ServerApp.ip=127.0.0.1",
               "--IdentityProvider.token=test", f"--ServerApp.root_dir={home}",
               "--LabApp.expose_app_in_browser=True",
               "--ServerApp.log_level=WARN", "--LabApp.news_url=",
               "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    with (tmp_path / "server.log").open("w") as log:
        import os

        environment = {**os.environ, "JUPYTER_RUNTIME_DIR": str(tmp_path / "runtime"),
                       "JUPYTER_CONFIG_DIR": str(tmp_path / "config"),
                       "JUPYTERLAB_SETTINGS_DIR": str(tmp_path / "settings"),
                       "JUPYTERLAB_WORKSPACES_DIR": str(tmp_path / "spaces")}
        server = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        try:
            yield _address(tmp_path, server), home
        finally:
            server.terminate()
            server.wait(20)


def _address(tmp_path, server):
    for _ in range(240):
        files = list((tmp_path / "runtime").glob("jpserver-*.json"))
        if files:
            address = json.loads(files[0].read_text())["url"]
            try:
                urllib.request.urlopen(f"{address}api?token=test", timeout=2).read()
            except OSError:
                time.sleep(0.5)
                continue
            return address
        assert server.poll() is None, (tmp_path / "server.log").read_text()
        time.sleep(0.5)
    raise AssertionError("JupyterLab did not start: " + (tmp_path / "server.log").read_text()[-2000:])


def _chromium():
    found = next((shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome")
                  if shutil.which(name)), None)
    assert found, "this test drives a real browser: install chromium (.ci/run does)"
    return found


@pytest.mark.timeout(420)
@pytest.mark.browser
def test_in_a_real_jupyterlab_unsaved_work_is_waited_for_and_then_handed_in(jupyterlab, course, light):
    from playwright.sync_api import sync_playwright

    address, home = jupyterlab
    notebook = light("", double="def double(x):\n    return 7")
    notebook.cells[-1].source = SUBMIT.replace("wait=0", "wait=120")
    nbformat.write(notebook, home / "mine.ipynb")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_chromium(), args=[
            "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage"])
        page = browser.new_page()
        page.goto(f"{address}lab/tree/mine.ipynb?token=test&reset", timeout=120_000)
        page.wait_for_function("window.jupyterapp && window.jupyterapp.shell.currentWidget"
                               " && window.jupyterapp.shell.currentWidget.content.widgets"
                               " && window.jupyterapp.shell.currentWidget.sessionContext.session",
                               timeout=120_000)
        # What a learner does: writes a name and an answer, runs everything, and forgets to save.
        page.evaluate("""() => {
            const cells = window.jupyterapp.shell.currentWidget.content.widgets;
            const edit = (id, change) => {
                const cell = cells.find(c => c.model.id === id).model.sharedModel;
                cell.setSource(change(cell.getSource()));
            };
            edit('top_2', text => text.replace('LEARNER = ""', 'LEARNER = "ada"'));
            edit('double', text => text.replace('return 7', 'return x + x'));
            window.jupyterapp.commands.execute('notebook:run-all-cells');
        }""")
        page.wait_for_function("document.body.innerText.includes('Save the notebook now')", timeout=180_000)
        assert not (home / "handin").exists()
        page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
        page.wait_for_function("document.body.innerText.includes('HAND IN THIS FILE')", timeout=120_000)
        browser.close()
    handed_in = home / "handin" / f"{LAB}-ada.ipynb"
    cells = {cell.id: cell.source for cell in nbformat.read(handed_in, as_version=4).cells}
    assert "return x + x" in cells["double"]
    report = collect(course, [handed_in], Roster.load(course.roster))
    assert [(line.status, line.learner) for line in report.lines] == [("collected", "ada")]


def test_the_released_notebook_ends_in_a_plain_word(course, tmp_path):
    """Run as released, with its own set-up cell: nothing is raised, and the last cell says what is
    missing."""
    notebook = fill_in(course, LAB, "", {})
    shown = run(notebook, tmp_path, JPY_SESSION_NAME="")
    assert "your name or id in LEARNER" in shown
    assert "0 of 3 visible parts passed" in shown
