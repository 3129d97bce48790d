"""Hostile notebook files: forged metadata, points, ids and outputs, duplicates, odd formats, sizes and
names."""

import copy
import json
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output
from nbgrader.api import Gradebook

from inferlab.grading.gradebook.batch import grade_lab
from tests.attacks import hostile
from tests.grading.tiny import TinyCourse

pytestmark = pytest.mark.sandbox

BLANK = {"half": hostile.STUB_HALF, "loop": hostile.STUB_LOOP}


def check_cells(notebook):
    return [c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade")]


def named(notebook, name):
    return next(c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == name)


def points_raised(nb):
    for cell in check_cells(nb):
        cell.metadata.nbgrader.points = 1000


def checks_replaced(nb):
    for cell in check_cells(nb):
        cell.source = "3.0"


def checks_unlocked_as_solutions(nb):
    for cell in check_cells(nb):
        cell.metadata.nbgrader.update(solution=True, locked=False)
        cell.source = "2.0"


def checks_as_markdown(nb):
    for cell in check_cells(nb):
        cell.cell_type = "markdown"
        del cell["outputs"], cell["execution_count"]


def checks_deleted(nb):
    nb.cells = [c for c in nb.cells if not c.metadata.get("nbgrader", {}).get("grade")]


def outputs_forged(nb):
    for cell in check_cells(nb):
        cell.outputs = [new_output("execute_result", data={"text/plain": "2.0"}, execution_count=1)]


def invented_graded_cell(nb):
    cell = new_code_cell("100.0")
    cell.metadata.nbgrader = {"grade": True, "solution": False, "locked": True, "points": 100,
                              "grade_id": "bonus",
                             "schema_version": 3}
    nb.cells.append(cell)


def grade_ids_swapped(nb):
    one, two = named(nb, "check-half"), named(nb, "check-loop")
    one.metadata.nbgrader.grade_id, two.metadata.nbgrader.grade_id = "check-loop", "check-half"


def check_given_the_id_of_a_demo(nb):
    demo = next(c for c in nb.cells if "demo" in c.metadata.get("tags", []))
    named(nb, "check-half").id, demo.id = demo.id, named(nb, "check-half").id


def everything_tagged_demo(nb):
    for cell in nb.cells:
        cell.metadata.tags = ["demo"]


def provides_extended(nb):
    for cell in nb.cells:
        if "inferlab" in cell.metadata:
            cell.metadata.inferlab["provides"] = ["get_ipython", "exit", "open"]


def metadata_of_wrong_types(nb):
    for cell in nb.cells:
        cell.metadata = {"nbgrader": {"grade": "yes", "points": [], "grade_id": 7, "locked": None},
                         "tags": "demo"}


def metadata_stripped(nb):
    for cell in nb.cells:
        cell.metadata = {}


def doubled(nb):
    nb.cells = nb.cells + copy.deepcopy(nb.cells)


def attachments(nb):
    cell = new_markdown_cell("![x](attachment:x.png) ![y](../../gradebook.db) <script>alert(1)</script>")
    cell.attachments = {"x.png": {"image/png": "A" * 200_000}, "../../evil": {"text/html": "<script>"}}
    nb.cells.append(cell)


def other_kernel(nb):
    nb.metadata.kernelspec = {"name": "bash", "display_name": "sh -c 'touch /tmp/inferlab-pwned'",
                              "language": "bash"}


def another_lab(nb):
    nb.metadata.inferlab = {"lab": "../../etc", "release": "x" * 10_000}


def learner_is_a_path(nb):
    cell = next(c for c in nb.cells if "LEARNER" in c.source)
    cell.source = 'LEARNER = "../../../root/\\u202e\\x00"; MODEL = "hub"; DEVICE = "cuda"; SEED = -1'


def two_thousand_cells(nb):
    nb.cells[4:4] = [new_code_cell(f"x{i} = {i}") for i in range(2000)]


def invisible_names(nb):
    nb.cells.insert(4, new_code_cell("h\u200balf = 1\n\u202edef half(x): pass"))


CHANGES = [points_raised, checks_replaced, checks_unlocked_as_solutions, checks_as_markdown, checks_deleted,
           outputs_forged,
           invented_graded_cell, grade_ids_swapped, check_given_the_id_of_a_demo, everything_tagged_demo,
           provides_extended, metadata_of_wrong_types, metadata_stripped, doubled, attachments, other_kernel,
           another_lab,
           learner_is_a_path, two_thousand_cells, invisible_names]


def nested_json(path):
    path.write_text('{"cells": ' + "[" * 100_000 + "]" * 100_000 + "}")


def hundred_megabytes(path):
    nb = json.loads(path.read_text())
    nb["cells"][3]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "x" * 100_000_000}]
    path.write_text(json.dumps(nb))


def a_link(path):
    path.unlink()
    path.symlink_to("/etc/passwd")


def byte_order_mark_and_crlf(path):
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))


def surrogates(path):
    path.write_text(path.read_text().replace("A tiny lab", "A tiny \\ud800 lab"))


def other_files_beside_it(path):
    (path.parent / "sitecustomize.py").write_text("open('/tmp/inferlab-pwned', 'w')")
    (path.parent / "nbgrader_config.py").write_text("c.Autograde.autograde_preprocessors = []")
    (path.parent / "torch.py").write_text("raise SystemExit")


FILES = {nested_json: "unreadable", hundred_megabytes: 5.0, a_link: "unreadable",
         byte_order_mark_and_crlf: 5.0,
         surrogates: 5.0, other_files_beside_it: 5.0}


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    course = TinyCourse(tmp_path_factory.mktemp("forged"))
    for change in CHANGES:
        for kind, answers in (("blank", BLANK), ("solved", {})):
            notebook = course.solution(**answers)
            change(notebook)
            folder = course.root / "submitted" / f"{change.__name__}-{kind}" / course.lab
            path = folder / f"{course.lab}.ipynb"
            path.parent.mkdir(parents=True)
            path.write_text(json.dumps(notebook))
    for change in FILES:
        change(course.submit(change.__name__, course.solution()))
    course.rows = {row.learner: row for row in grade_lab(course.course, course.lab, workers=2)}
    return course


@pytest.mark.parametrize("change", CHANGES, ids=lambda c: c.__name__)
def test_nothing_is_gained(graded, change):
    row = graded.rows[f"{change.__name__}-blank"]
    assert (row.state, row.points, row.maximum) == ("graded", 0.0, 5.0), row


@pytest.mark.parametrize("change", CHANGES, ids=lambda c: c.__name__)
def test_nothing_honest_is_lost(graded, change):
    """Whatever was done to the file, the answers in it are found and graded."""
    row = graded.rows[f"{change.__name__}-solved"]
    assert (row.state, row.points) == ("graded", 5.0), row


@pytest.mark.parametrize("change", FILES, ids=lambda c: c.__name__)
def test_odd_files(graded, change):
    row = graded.rows[change.__name__]
    if FILES[change] == "unreadable":
        assert row.state == "unreadable"
        assert row.problem
    else:
        assert (row.state, row.points) == ("graded", FILES[change]), row


def test_the_gradebook_knows_no_other_points_or_cells(graded):
    with Gradebook(graded.db) as gradebook:
        notebook = gradebook.find_notebook(graded.lab, graded.lab)
        assert {c.name: c.max_score for c in notebook.grade_cells} == {"check-half": 2.0, "check-loop": 3.0}
        for submission in gradebook.assignment_submissions(graded.lab):
            assert submission.max_score == 5.0
            assert submission.score == graded.rows[submission.student.id].points


def test_written_notebooks_are_valid_and_nothing_was_run_on_the_host(graded):
    for path in graded.root.glob("autograded/*/*/*.ipynb"):
        nbformat.validate(nbformat.read(path, as_version=4))
    assert not Path("/tmp/inferlab-pwned").exists()
