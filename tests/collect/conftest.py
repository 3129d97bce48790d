"""A released course of its own and a learner's finished notebook, as they come back from the real world."""

import json

import nbformat
import pytest

from inferlab.grading.collecting.collect import collect
from inferlab.grading.roster import Roster
from tests.course import LAB

ANSWERS = {
    "top_2": 'LEARNER = "ada"\nMODEL = "bundled"\nDEVICE = "cpu"\nSEED = 0',
    "double": 'def double(x):\n    """Twice `x`."""\n    return x + x',
    "fold": "def fold(step, items):\n    total = 0\n    for item in items:\n        total = "
            "step(total, item)\n"
            "    return total",
    "one-call": "%%explain one-call\nstate: my total\nshape: (3,)",
}


@pytest.fixture
def roster(course):
    return Roster.load(course.roster)


@pytest.fixture
def inbox(tmp_path):
    """Where handed-in files arrive."""
    folder = tmp_path / "inbox"
    folder.mkdir()
    return folder


@pytest.fixture
def solved(course):
    """A finished notebook as plain JSON data, the way JupyterLab saves it; a new one each time it is
    called."""

    def make(learner="ada", **answers):
        notebook = json.loads(course.release(LAB).read_text("utf-8"))
        for cell in notebook["cells"]:
            text = answers.get(cell["id"].replace("-", "_"), ANSWERS.get(cell["id"]))
            if text is not None:
                cell["source"] = text.replace('"ada"', json.dumps(learner, ensure_ascii=False))
        return notebook

    return make


@pytest.fixture
def hand_in(course, roster, inbox):
    """Write files (name -> notebook data, text or bytes) to the inbox and collect them."""

    def run(files, **options):
        for name, content in files.items():
            path = inbox / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, dict):
                content = json.dumps(content, ensure_ascii=False)
            path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return collect(course, [inbox], roster, **options)

    return run


@pytest.fixture
def placed(course):
    """The notebook that lies in submitted/ for a learner, as `{cell id: cell}` in order."""

    def read(learner="ada"):
        notebook = nbformat.read(course.submitted(learner, LAB), as_version=4)
        nbformat.validate(notebook)
        return {cell.id: cell for cell in notebook.cells}

    return read


def cell_of(notebook, name):
    """The cell of plain notebook data that has this id."""
    return next(cell for cell in notebook["cells"] if cell.get("id") == name)


@pytest.fixture
def cell():
    return cell_of
