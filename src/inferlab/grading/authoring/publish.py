"""Writes the learners' public tree: labs with Colab badges, handbook, wheel, README, licenses; nothing else.

The tree is made in a folder of its own, looked through for leaks, and only then put in place.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import nbformat

from inferlab.grading.course import Course, CourseError, read_toml

from .build import build_release, build_source, write_notebook
from .leaks import Leak, find_leaks
from .start_here import NAME, entries, start_here

MANIFEST = "MANIFEST.txt"
LICENSES = ("LICENSE", "LICENSE-TEXT")
PACKAGE_FILES = ("pyproject.toml", "README.md", *LICENSES)


class LeakError(CourseError):
    """The tree would show answers; `leaks` says where. Nothing was published."""

    def __init__(self, leaks: list[Leak]) -> None:
        super().__init__("not published, the tree shows what learners must not see:\n" +
                         "\n".join(f"  {leak}" for leak in leaks))
        self.leaks = leaks


@dataclass
class Published:
    """What a publication holds: its folder, its files (relative), the labs."""

    folder: Path
    files: list[str] = field(default_factory=list)
    labs: list[str] = field(default_factory=list)


def publish(course: Course, folder: Path, *, package_root: Path | None = None,
            labs: list[str] | None = None) -> Published:
    """Write the learners' tree to `folder`.

    Args:
        folder: new, empty, or a tree that was published before (its files are replaced; `.git` is left
            alone).
        labs: only these, beside the labs that `folder` has from an earlier publication; all of the course if
            None.
        package_root: the repository whose package is built into the wheel; the course's own by default.

    Raises:
        LeakError: when the finished tree shows an answer; `folder` is then as it was.
        CourseError: when `folder` holds files that no publication made, or the wheel cannot be built.
    """
    folder = Path(folder)
    old = _published_before(folder)
    chosen = [lab for lab in course.labs if labs is None or lab in labs or f"{lab}/{lab}.ipynb" in old]
    with tempfile.TemporaryDirectory(prefix="inferlab-publish-") as temporary:
        tree = Path(temporary) / "tree"
        write_tree(course, tree, package_root or course.root, chosen)
        leaks = find_leaks(tree, course, course.labs, allowed_texts(course))
        if leaks:
            raise LeakError(leaks)
        files = sorted(str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file())
        digests = [f"{hashlib.sha256((tree / name).read_bytes()).hexdigest()}  {name}" for name in files]
        (tree / MANIFEST).write_text("\n".join(digests) + "\n", "utf-8")
        for name in set(old) - set(files):
            (folder / name).unlink(missing_ok=True)
        shutil.copytree(tree, folder, dirs_exist_ok=True)
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and ".git" not in path.parts and not any(path.iterdir()):
            path.rmdir()
    return Published(folder, [*files, MANIFEST], chosen)


def allowed_texts(course: Course) -> list[str]:
    """Texts that may be shown although a solution says the same: `[publish] shown = [...]` in course.toml."""
    settings = read_toml(course.root / "course.toml", "course.toml")
    return list(settings.get("publish", {}).get("shown", []))


def _published_before(folder: Path) -> list[str]:
    """Files of an earlier publication in `folder`. Raises `CourseError` when anything else lies there."""
    if not folder.exists():
        return []
    if not folder.is_dir():
        raise CourseError(f"{folder} is a file")
    present = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
    ours = (".git", ".gitignore", ".nojekyll", ".github", ".devcontainer")
    present = {name for name in present if name.split("/")[0] not in ours}
    manifest = folder / MANIFEST
    known = [line.split("  ", 1)[1] for line in manifest.read_text("utf-8").splitlines() if "  " in line] \
        if manifest.exists() else []
    foreign = sorted(present - set(known) - {MANIFEST})
    if foreign:
        raise CourseError(f"{folder} holds files that no publication made ({', '.join(foreign[:5])}): "
                          "choose an empty folder, or move them away")
    return known


def write_tree(course: Course, tree: Path, package_root: Path, labs: list[str]) -> None:
    """Write the tree, unchecked: `labs` built from their text now, handbook, wheel, README, licenses."""
    tree.mkdir(parents=True)
    for lab in labs:
        notebook = with_badge(course, lab, build_release(course, lab, build_source(course, lab, labs=labs)))
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                cell.source = relinked(cell.source)
        write_notebook(notebook, tree / lab / f"{lab}.ipynb")
    write_notebook(start_here(course, labs), tree / NAME)
    if (course.root / "handbook").is_dir():
        shutil.copytree(course.root / "handbook", tree / "handbook",
                        ignore=shutil.ignore_patterns("_build", "__pycache__", ".*", "*.py", "instructors*"))
        for page in (tree / "handbook").rglob("*.md"):
            page.write_text(relinked(page.read_text("utf-8")), "utf-8")
    for name in LICENSES:
        if (package_root / name).exists():
            shutil.copy(package_root / name, tree / name)
    build_wheel(package_root, tree / "wheels")
    (tree / "README.md").write_text(readme(course, labs), "utf-8")


def relinked(text: str) -> str:
    """Markdown with its links between labs and handbook as in the tree, where `release/` is gone."""
    return text.replace("](../../handbook/", "](../handbook/").replace("](../release/", "](../")


def with_badge(course: Course, lab: str, notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook with the "Open in Colab" badge on top of its title cell."""
    notebook.cells[0].source = f"{course.badge(lab)}\n\n{notebook.cells[0].source}"
    return notebook


def build_wheel(package_root: Path, folder: Path, grading: bool = False) -> Path:
    """Build the learners' wheel into `folder`, offline, from a clean copy of the package without `grading`.

    With `grading` it is the instructors' wheel, which has it. Raises `CourseError`.
    """
    left_out = ("__pycache__", "*.egg-info", *(() if grading else ("grading",)))
    with tempfile.TemporaryDirectory(prefix="inferlab-wheel-") as temporary:
        copy = Path(temporary) / "package"
        copy.mkdir()
        for name in PACKAGE_FILES:
            if (package_root / name).exists():
                shutil.copy(package_root / name, copy / name)
        shutil.copytree(package_root / "src" / "inferlab", copy / "src" / "inferlab",
                        ignore=shutil.ignore_patterns(*left_out))
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-index", "--no-deps",
                   "--no-build-isolation",
                   "--disable-pip-version-check", "--wheel-dir", str(folder), str(copy)]
        done = subprocess.run(command, capture_output=True, text=True, check=False,
                              env={**os.environ, "SOURCE_DATE_EPOCH": "1767225600"})
    if done.returncode:
        raise CourseError("the wheel cannot be built:\n" + "\n".join(done.stderr.strip().splitlines()[-10:]))
    return next(folder.glob("*.whl"))


def readme(course: Course, labs: list[str]) -> str:
    """The README that learners see: what this is, every lab with its badge, and how to run it at home."""
    rows = "\n".join(f"| [{one.title}]({one.path}) | {one.minutes} | {course.badge(one.lab)} |"
                     for one in entries(course, labs))
    return f"""# InferLab

A course in Jupyter: every lab traces a real diffusion pipeline or language model, boundary by boundary, and
checks what you build and write.

**[Start here]({NAME})**: the order, what comes before each lab, and how far you are.

| lab | time | open it |
|---|---|---|
{rows}

**In Colab**: open a lab by its badge and run it from the top. The first cell installs the course's package.

**At home** (Python 3.11 or newer): `pip install wheels/{course.wheel_name} jupyterlab`, then `jupyter lab`.

Write your name or id into `LEARNER` near the top. The last cell of a lab runs the checks, says what is
missing, and leaves one file to hand in. `inferlab check LAB.ipynb` runs the checks from a terminal; it
leaves no file.

The reading for each lab is in [the handbook](handbook/README.md). Code: Apache-2.0 (LICENSE). Text: CC BY 4.0
(LICENSE-TEXT).
"""

