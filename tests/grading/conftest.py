"""A whole course in a temporary folder: the tiny lab, built and released, with stock nbgrader around it."""

import shutil
import sys
from pathlib import Path

import nbformat
import pytest

from inferlab.grading.build import build_source, generate_assignment, write_notebook
from inferlab.grading.course import Course

sys.path.insert(0, str(Path(__file__).parent))
import tiny

ROOT = Path(__file__).resolve().parents[2]


class TinyCourse:
    """The course folder, and the few things that a test does in it."""

    def __init__(self, root: Path):
        (root / "notebooks" / tiny.LAB).mkdir(parents=True)
        (root / "notebooks" / tiny.LAB / f"{tiny.LAB}.py").write_text(tiny.TEXT)
        shutil.copy(ROOT / "nbgrader_config.py", root)
        self.root, self.lab = root, tiny.LAB
        self.course = Course.open(root)
        self.source = build_source(self.course, self.lab, strict=False)
        write_notebook(self.source, root / "source" / self.lab / f"{self.lab}.ipynb")
        self.db = f"sqlite:///{root / 'gradebook.db'}"
        self.release = generate_assignment(self.course, self.lab, root, self.db)

    def solution(self, **cells: str) -> nbformat.NotebookNode:
        """The released notebook with the solutions in it, or other texts by grade_id (`half="..."`)."""
        notebook = nbformat.read(self.release, as_version=4)
        solved = {c.id: c.source for c in self.source.cells}
        for cell in notebook.cells:
            name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
            if cell.metadata.get("nbgrader", {}).get("solution"):
                cell.source = cells.get(name.replace("-", "_"), solved[cell.id])
        return notebook

    def submit(self, student: str, notebook: nbformat.NotebookNode) -> Path:
        """Put a notebook where nbgrader looks for it."""
        path = self.root / "submitted" / student / self.lab / f"{self.lab}.ipynb"
        write_notebook(notebook, path)
        return path


@pytest.fixture
def course(tmp_path):
    return TinyCourse(tmp_path)


@pytest.fixture(scope="module")
def module_course(tmp_path_factory):
    return TinyCourse(tmp_path_factory.mktemp("course"))
