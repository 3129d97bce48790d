"""Builds a lab: `notebooks/<lab>/<lab>.py` to `source/<lab>/<lab>.ipynb` to `release/<lab>/<lab>.ipynb`.

Building is a function of the text alone: the same text gives the same bytes, whoever builds it and with or
without a gradebook. `source/` is made here; `release/` is made from it by nbgrader's `generate_assignment`.

`release/` is committed, `source/` is not: it is built where it is missing. Whatever needs only `source/` does
without nbgrader, so that a machine with a GPU can make it.
"""

import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_raw_cell

from inferlab.grading.course import Course, CourseError
from inferlab.grading.nbgrader_config import nbgrader_config
from inferlab.grading.notebook import dumps, load, write_notebook
from inferlab.grading.stubs import released_text

from .hidden_tests import read_lesson
from .lab_rules import lint
from .lab_text import LabTextError, cell_ids, expand, shorten
from .start_here import PYTHON, neighbours, neighbours_cell, start_here, start_here_path
from .wrong_answers import read_wrong_answers

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
    from inferlab.lab.colab import finish

    finish()'''


class BuildError(ValueError):
    """A lab breaks a rule; the message lists every finding with its line."""


def bootstrap_cell(course: Course) -> NotebookNode:
    """The one cell that the build adds: it installs the package in Colab, and else does nothing."""
    cell = new_code_cell(BOOTSTRAP.replace("{wheel}", course.wheel), id="bootstrap")
    cell.metadata.update({"inferlab": {"bootstrap": True}, "jupyter": {"source_hidden": True},
                          "tags": ["bootstrap"]})
    return cell


def build_source(course: Course, lab: str, *, strict: bool = True,
                 labs: list[str] | None = None) -> NotebookNode:
    """The instructor's notebook of a lab, from its text; it links to neighbours among `labs` (all if None).

    Raises `BuildError` when the lab breaks a rule of `lint` (with `strict=False` only for text that cannot be
    read).
    """
    path = course.text(course.require(lab))
    try:
        blocks = read_lesson(path)
        findings = lint(blocks) if strict else []
        if strict and not findings:
            findings = lint(blocks, read_wrong_answers(path, blocks))
    except LabTextError as error:
        raise BuildError(f"notebooks/{lab}: {error}") from error
    if findings:
        raise BuildError(f"{path.relative_to(course.root)} breaks {len(findings)} rules:\n" +
                         "\n".join(f"  {finding}" for finding in findings))
    make = {"code": new_code_cell, "markdown": new_markdown_cell, "raw": new_raw_cell}
    cells = [make[block.cell.cell_type](block.cell.source, id=identity, metadata=expand(block.cell.metadata))
             for block, identity in zip(blocks, cell_ids(blocks, path.name), strict=True)]
    before, after = neighbours(course, lab, labs)
    cells[1:1] = [neighbours_cell(before, after)] * bool(before or after) + [bootstrap_cell(course)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    following = {"next": f"{after.title} (../{after.path})"} if after else {}
    about = {"lab": lab, "release": release_hash(cells), "built": adopted_hash(cells)} | following
    notebook.metadata.update({"inferlab": about} | PYTHON)
    nbformat.validate(notebook)
    return notebook


def release_hash(cells: list[NotebookNode]) -> str:
    """Names what learners were given: 12 hex digits over every released cell's id, type and text.

    Mending a hidden test keeps it; changing anything that learners see changes it.
    """
    digest = hashlib.sha256()
    for cell in cells:
        if not cell.metadata.get("inferlab", {}).get("bootstrap"):
            digest.update(json.dumps([cell.id, cell.cell_type, released_text(cell)]).encode())
    return digest.hexdigest()[:12]


def adopted_hash(cells: list[NotebookNode]) -> str:
    """Names what `inferlab adopt` would bring back: 12 hex digits over all cells and their short metadata.

    Raises `LabTextError` for a cell that the text form cannot say.
    """
    told = [[cell.cell_type, cell.source, expand(shorten(cell.metadata))] for cell in cells
            if not cell.metadata.get("inferlab", {}).get("bootstrap")]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:12]


def refuse_edited(path: Path, source: NotebookNode) -> None:
    """Raise `BuildError` if the notebook at `path` was edited since its building: `source` would undo it."""
    if path.exists() and _edited(path, source.metadata["inferlab"]["built"]):
        lab = source.metadata["inferlab"]["lab"]
        raise BuildError(f"source/{lab}/{path.name} was edited after it was built, and building it again "
                         f"would lose the edit: `inferlab adopt {lab}` brings it to notebooks/{lab}/ "
                         "(to give it up, delete the file)")


def _edited(path: Path, now: str = "") -> bool:
    """Whether a notebook is neither what it was built as nor what `now` names; so is one never built."""
    there = nbformat.read(path, as_version=4)
    try:
        return adopted_hash(there.cells) not in (there.metadata.get("inferlab", {}).get("built"), now)
    except LabTextError:
        return True


def generate_assignment(course: Course, lab: str, root: Path, db_url: str, *, gradebook: bool = True) -> Path:
    """Run nbgrader's `generate_assignment` on `root`/source/`lab`; returns the released notebook's path.

    With `gradebook=False` nothing is recorded and no database is opened: the released notebook is the same.
    Raises `BuildError` with nbgrader's own log when it refuses.
    """
    from nbgrader.apps import NbGraderAPI

    from .release_steps import RELEASE_PREPROCESSORS

    config = nbgrader_config(course, root, db_url)
    if "preprocessors" not in config.GenerateAssignment:
        config.GenerateAssignment.preprocessors = RELEASE_PREPROCESSORS
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
    """The learner's notebook, made from `source` by nbgrader in a temporary folder without a gradebook."""
    with tempfile.TemporaryDirectory(prefix="inferlab-release-") as folder:
        root = Path(folder)
        write_notebook(source, root / "source" / lab / f"{lab}.ipynb")
        released = generate_assignment(course, lab, root, f"sqlite:///{root / 'gradebook.db'}",
                                       gradebook=False)
        notebook = nbformat.read(released, as_version=4)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    notebook.metadata["inferlab"].pop("built", None)
    return notebook


def build_lab(course: Course, lab: str, *, strict: bool = True) -> list[Path]:
    """Build `source/` and `release/` of a lab; returns the files whose content changed.

    Raises `BuildError` when the lab breaks a rule, and when `source/` holds an edit that nobody has adopted.
    """
    source = build_source(course, lab, strict=strict)
    refuse_edited(course.source(lab), source)
    changed = []
    for notebook, path in ((source, course.source(lab)),
                           (build_release(course, lab, source), course.release(lab))):
        before = path.read_bytes() if path.exists() else None
        for stale in path.parent.glob("*"):
            if stale != path and stale.name not in NOT_BUILT:
                raise CourseError(f"{stale.relative_to(course.root)} was not built from notebooks/: move or "
                                  "delete it")
        write_notebook(notebook, path)
        if path.read_bytes() != before:
            changed.append(path)
    return changed


def build_start_here(course: Course) -> list[Path]:
    """Build `release/start-here.ipynb`; returns it if its content changed."""
    path = start_here_path(course)
    before = path.read_bytes() if path.exists() else None
    write_notebook(start_here(course), path)
    return [path] if path.read_bytes() != before else []


def built_source(course: Course, lab: str) -> Path:
    """Where the instructor's notebook of a lab lies; it is built first where there is none.

    One that is there stays as it is, older than its text or edited: it decides marks.
    Raises `BuildError` when there is none and the lab breaks a rule.
    """
    path = course.source(lab)
    if not path.exists():
        _put(build_source(course, lab), path)
    return path


def older_than_text(course: Course, lab: str) -> bool:
    """Whether the lab's notebook in `source/` was built from another text than that in `notebooks/`."""
    path = course.source(lab)
    if not path.exists():
        return False
    built = load(path)["metadata"].get("inferlab", {}).get("built")
    return built != build_source(course, lab, strict=False).metadata["inferlab"]["built"]


def refresh_sources(course: Course, labs: list[str] | None = None) -> tuple[list[Path], list[str]]:
    """Build what is missing or out of date in `source/`, of `labs` or of all; `release/` stays as it is.

    When no labs are given, notebooks whose text is gone are deleted. An edit that nobody has adopted stays.
    A lab may break rules: it is being written.

    Returns:
        The files that changed, and what was left as it was, each with the reason.
    """
    changed: list[Path] = []
    left: list[str] = []
    for lab in labs or course.labs:
        source, path = build_source(course, lab, strict=False), course.source(lab)
        try:
            refuse_edited(path, source)
        except BuildError as error:
            left.append(str(error))
            continue
        if not path.exists() or path.read_text("utf-8") != dumps(source):
            _put(source, path)
            changed.append(path)
    for path in () if labs else sorted((course.root / "source").glob("*/*.ipynb")):
        if path.stem == path.parent.name and path.stem not in course.labs and not _edited(path):
            path.unlink()
            changed.append(path)
            if not any(path.parent.iterdir()):
                path.parent.rmdir()
    return changed, left


def _put(notebook: NotebookNode, path: Path) -> None:
    """Write a notebook whole: who reads it meanwhile, or builds it too, has the old one or the new one."""
    part = path.with_name(f".{path.stem}.{os.getpid()}")
    write_notebook(notebook, part)
    part.replace(path)


def stale_labs(course: Course, labs: list[str] | None = None) -> list[str]:
    """Built notebooks of `labs` that differ from what building them now gives; of all labs when none are
    given, and then built folders whose text is gone as well. `source/` is not committed: that nothing was
    built there yet is no difference."""
    stale = []
    with tempfile.TemporaryDirectory(prefix="inferlab-stale-") as folder:
        for lab in labs or course.labs:
            source = build_source(course, lab)
            built = [(source, course.source(lab))] if course.source(lab).exists() else []
            built.append((build_release(course, lab, source), course.release(lab)))
            stale += _differing(course, built, Path(folder))
        if not labs:
            stale += _differing(course, [(start_here(course), start_here_path(course))], Path(folder))
    for kind in () if labs else ("source", "release"):
        for path in sorted((course.root / kind).glob("*/")):
            if path.name not in course.labs and path.is_dir():
                stale.append(str(path.relative_to(course.root)))
    return stale


def _differing(course: Course, built: list[tuple[NotebookNode, Path]], folder: Path) -> list[str]:
    """Those of the notebooks that are not what lies at their paths."""
    stale, fresh = [], folder / "fresh.ipynb"
    for notebook, path in built:
        write_notebook(notebook, fresh)
        if not path.exists() or path.read_bytes() != fresh.read_bytes():
            stale.append(str(path.relative_to(course.root)))
    return stale


def save_to_gradebook(course: Course, lab: str, db_url: str | None = None) -> None:
    """Record a lab's cells, points and tests in the gradebook, as releasing does; `release/` stays."""
    with tempfile.TemporaryDirectory(prefix="inferlab-gradebook-") as folder:
        root = Path(folder)
        shutil.copytree(built_source(course, lab).parent, root / "source" / lab)
        generate_assignment(course, lab, root, db_url or course.gradebook_url)
