"""Builds a lab: `notebooks/<lab>/<lab>.py` to `source/<lab>/<lab>.ipynb` to `release/<lab>/<lab>.ipynb`.

Building is a function of the text alone: the same text gives the same bytes, whoever builds it and with or without a
gradebook. `source/` is made here; `release/` is made from it by nbgrader's `generate_assignment`.
"""

import hashlib
import json
import shutil
import tempfile
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_raw_cell

from .course import Course, CourseError, own_tools_first
from .labtext import LabTextError, expand, read_blocks, read_wrong_answers, wrong_answers_path
from .lint import checks_of, lint
from .stubs import RELEASE_PREPROCESSORS, clear_code, clear_explanation, is_explanation, without_hidden_tests

# What working in release/ leaves beside a notebook; it is neither built nor in the way.
NOT_BUILT = {".ipynb_checkpoints", "handin"}
BOOTSTRAP = '''\
# Colab only: install the course's package. Where `inferlab` is already installed this cell does nothing.
import importlib.util
import os
import subprocess
import sys

if importlib.util.find_spec("inferlab") is None:
    WHEEL = os.environ.get("INFERLAB_WHEEL", "{wheel}")
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", WHEEL], check=True)
    importlib.invalidate_caches()
    from inferlab.lab.bootstrap import finish

    finish()'''


class BuildError(ValueError):
    """A lab breaks a rule; the message lists every finding with its line."""


def bootstrap_cell(course: Course) -> NotebookNode:
    """The one cell that the build adds: it installs the package in Colab and does nothing where it is installed."""
    cell = new_code_cell(BOOTSTRAP.replace("{wheel}", course.wheel), id="bootstrap")
    cell.metadata.update({"inferlab": {"bootstrap": True}, "jupyter": {"source_hidden": True}, "tags": ["bootstrap"]})
    return cell


def build_source(course: Course, lab: str, *, strict: bool = True) -> NotebookNode:
    """The instructor's notebook of a lab, from its text.

    Raises `BuildError` when the lab breaks a rule of `lint` (with `strict=False` only for text that cannot be read).
    """
    path = course.text(course.require(lab))
    _, blocks = read_blocks(path.read_text("utf-8"), path.name)
    findings = lint(blocks) if strict else []
    if strict and not findings:
        findings = lint(blocks, read_wrong_answers(wrong_answers_path(path), checks_of(blocks)))
    if findings:
        raise BuildError(f"{path.relative_to(course.root)} breaks {len(findings)} rules:\n" +
                         "\n".join(f"  {finding}" for finding in findings))
    cells, ids = [], set()
    previous, counter = "top", 0
    for block in blocks:
        try:
            metadata = expand(block.cell.metadata)
        except LabTextError as error:
            raise BuildError(f"{path.name}, line {block.line}: {error}") from error
        if "nbgrader" in metadata:
            previous, counter = metadata["nbgrader"]["grade_id"], 0
            identity = previous
        else:
            counter += 1
            identity = f"{previous}_{counter}"
        if identity in ids:
            raise BuildError(f"{path.name}, line {block.line}: two cells would be called '{identity}'; rename one")
        ids.add(identity)
        make = {"code": new_code_cell, "markdown": new_markdown_cell, "raw": new_raw_cell}[block.cell.cell_type]
        cells.append(make(block.cell.source, id=identity, metadata=metadata))
    cells.insert(1, bootstrap_cell(course))
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata.update({
        "inferlab": {"lab": lab, "release": release_hash(cells)},
        "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    })
    nbformat.validate(notebook)
    return notebook


def released_text(cell: NotebookNode) -> str:
    """A source cell's text as learners get it: no hidden tests, stubs in place of solutions."""
    text = without_hidden_tests(cell.source)
    if cell.metadata.get("nbgrader", {}).get("solution"):
        text = clear_explanation(text) if is_explanation(text) else clear_code(text)
    return text


def release_hash(cells: list[NotebookNode]) -> str:
    """Names what learners were given: 12 hex digits over every released cell's id, type and text.

    Mending a hidden test keeps it; changing anything that learners see changes it.
    """
    digest = hashlib.sha256()
    for cell in cells:
        if not cell.metadata.get("inferlab", {}).get("bootstrap"):
            digest.update(json.dumps([cell.id, cell.cell_type, released_text(cell)]).encode())
    return digest.hexdigest()[:12]


def write_notebook(notebook: NotebookNode, path: Path) -> None:
    """Write a notebook as nbformat does, ending in a newline; the folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(nbformat.writes(notebook).rstrip("\n") + "\n", "utf-8")


def nbgrader_config(course: Course, root: Path, db_url: str):
    """nbgrader's configuration for this course, from its `nbgrader_config.py`, working in `root` with `db_url`."""
    from traitlets.config import Config, PyFileConfigLoader

    own_tools_first()
    config = Config()
    if (course.root / "nbgrader_config.py").exists():
        config.merge(PyFileConfigLoader("nbgrader_config.py", path=str(course.root)).load_config())
    if "preprocessors" not in config.GenerateAssignment:
        config.GenerateAssignment.preprocessors = RELEASE_PREPROCESSORS
    config.CourseDirectory.root = str(root)
    config.CourseDirectory.db_url = db_url
    return config


def generate_assignment(course: Course, lab: str, root: Path, db_url: str, *, gradebook: bool = True) -> Path:
    """Run nbgrader's `generate_assignment` on `root`/source/`lab`; returns the released notebook's path in `root`.

    With `gradebook=False` nothing is recorded and no database is opened: the released notebook is the same.
    Raises `BuildError` with nbgrader's own log when it refuses.
    """
    from nbgrader.apps import NbGraderAPI

    config = nbgrader_config(course, root, db_url)
    if not gradebook:
        config.GenerateAssignment.no_database = True
        config.CourseDirectory.notebook_id = lab
        config.GenerateAssignment.preprocessors = [
            step for step in config.GenerateAssignment.preprocessors if not str(step).endswith("SaveCells")]
    config.NbGraderAPI.log_level = "ERROR"
    result = NbGraderAPI(config=config).generate_assignment(lab, force=True, create=True)
    if not result["success"]:
        raise BuildError(f"nbgrader could not release {lab}:\n{result.get('log')}\n{result.get('error')}")
    return root / "release" / lab / f"{lab}.ipynb"


def build_release(course: Course, lab: str, source: NotebookNode) -> NotebookNode:
    """The learner's notebook made from `source` by nbgrader, in a folder that is thrown away and without a gradebook."""
    with tempfile.TemporaryDirectory(prefix="inferlab-release-") as folder:
        root = Path(folder)
        write_notebook(source, root / "source" / lab / f"{lab}.ipynb")
        released = generate_assignment(course, lab, root, f"sqlite:///{root / 'gradebook.db'}", gradebook=False)
        notebook = nbformat.read(released, as_version=4)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    return notebook


def build_lab(course: Course, lab: str, *, strict: bool = True) -> list[Path]:
    """Build `source/` and `release/` of a lab; returns the files whose content changed."""
    source = build_source(course, lab, strict=strict)
    changed = []
    for notebook, path in ((source, course.source(lab)), (build_release(course, lab, source), course.release(lab))):
        before = path.read_bytes() if path.exists() else None
        for stale in path.parent.glob("*"):
            if stale != path and stale.name not in NOT_BUILT:
                raise CourseError(f"{stale.relative_to(course.root)} was not built from notebooks/: move or delete it")
        write_notebook(notebook, path)
        if path.read_bytes() != before:
            changed.append(path)
    return changed


def stale_labs(course: Course, labs: list[str] | None = None) -> list[str]:
    """Built notebooks of `labs` that differ from what building them now gives; of all labs when none are given, and then
    built folders whose text is gone as well."""
    stale = []
    with tempfile.TemporaryDirectory(prefix="inferlab-stale-") as folder:
        for lab in labs or course.labs:
            source = build_source(course, lab)
            for notebook, path in ((source, course.source(lab)), (build_release(course, lab, source), course.release(lab))):
                fresh = Path(folder) / "fresh.ipynb"
                write_notebook(notebook, fresh)
                if not path.exists() or path.read_bytes() != fresh.read_bytes():
                    stale.append(str(path.relative_to(course.root)))
    for kind in () if labs else ("source", "release"):
        for path in sorted((course.root / kind).glob("*/")):
            if path.name not in course.labs and path.is_dir():
                stale.append(str(path.relative_to(course.root)))
    return stale


def save_to_gradebook(course: Course, lab: str, db_url: str | None = None) -> None:
    """Record a lab's cells, points and tests in the gradebook, as releasing with nbgrader does; `release/` stays as is."""
    with tempfile.TemporaryDirectory(prefix="inferlab-gradebook-") as folder:
        root = Path(folder)
        shutil.copytree(course.source(lab).parent, root / "source" / lab)
        generate_assignment(course, lab, root, db_url or course.gradebook_url)
