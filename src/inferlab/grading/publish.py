"""Writes the learners' public tree: released labs with Colab badges, handbook, a wheel, README and licenses; nothing else.

The tree is made in a folder of its own, looked through for leaks, and only then put in place.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

import nbformat

from .build import build_release, build_source, write_notebook
from .course import Course, CourseError, read_text
from .leaks import Leak, find_leaks

MANIFEST = "MANIFEST.txt"
LICENSES = ("LICENSE", "LICENSE-TEXT")
PACKAGE_FILES = ("pyproject.toml", "README.md", *LICENSES)


class LeakError(CourseError):
    """The tree would show answers; `leaks` says where. Nothing was published."""

    def __init__(self, leaks: list[Leak]):
        super().__init__("not published, the tree shows what learners must not see:\n" +
                         "\n".join(f"  {leak}" for leak in leaks))
        self.leaks = leaks


@dataclass
class Published:
    """What a publication holds: its folder, its files (relative), the labs."""

    folder: Path
    files: list[str] = field(default_factory=list)
    labs: list[str] = field(default_factory=list)


def publish(course: Course, folder: Path, *, package_root: Path | None = None) -> Published:
    """Write the learners' tree to `folder`.

    Args:
        folder: new, empty, or a tree that was published before (its files are replaced; `.git` is left alone).
        package_root: the repository whose package is built into the wheel; the course's own by default.

    Raises:
        LeakError: when the finished tree shows an answer; `folder` is then as it was.
        CourseError: when `folder` holds files that no publication made, or the wheel cannot be built.
    """
    folder = Path(folder)
    old = _published_before(folder)
    with tempfile.TemporaryDirectory(prefix="inferlab-publish-") as temporary:
        tree = Path(temporary) / "tree"
        write_tree(course, tree, package_root or course.root)
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
    return Published(folder, [*files, MANIFEST], course.labs)


def allowed_texts(course: Course) -> list[str]:
    """Texts that may be shown although a solution says the same: `[publish] shown = [...]` in course.toml."""
    path = course.root / "course.toml"
    settings = tomllib.loads(read_text(path)) if path.exists() else {}
    return list(settings.get("publish", {}).get("shown", []))


def _published_before(folder: Path) -> list[str]:
    """Files of an earlier publication in `folder`. Raises `CourseError` when anything else lies there."""
    if not folder.exists():
        return []
    if not folder.is_dir():
        raise CourseError(f"{folder} is a file")
    present = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
    present = {name for name in present if name.split("/")[0] not in (".git", ".gitignore", ".nojekyll", ".github")}
    manifest = folder / MANIFEST
    known = [line.split("  ", 1)[1] for line in manifest.read_text("utf-8").splitlines() if "  " in line] \
        if manifest.exists() else []
    foreign = sorted(present - set(known) - {MANIFEST})
    if foreign:
        raise CourseError(f"{folder} holds files that no publication made ({', '.join(foreign[:5])}): "
                          "choose an empty folder, or move them away")
    return known


def write_tree(course: Course, tree: Path, package_root: Path) -> None:
    """Write the tree, unchecked: labs built from their text now, handbook, wheel, README, licenses."""
    tree.mkdir(parents=True)
    for lab in course.labs:
        notebook = with_badge(course, lab, build_release(course, lab, build_source(course, lab)))
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                cell.source = relinked(cell.source)
        write_notebook(notebook, tree / lab / f"{lab}.ipynb")
    if (course.root / "handbook").is_dir():
        shutil.copytree(course.root / "handbook", tree / "handbook",
                        ignore=shutil.ignore_patterns("_build", "__pycache__", ".*", "*.py"))
        for page in (tree / "handbook").rglob("*.md"):
            page.write_text(relinked(page.read_text("utf-8")), "utf-8")
    for name in LICENSES:
        if (package_root / name).exists():
            shutil.copy(package_root / name, tree / name)
    build_wheel(package_root, tree / "wheels")
    (tree / "README.md").write_text(readme(course), "utf-8")


def relinked(text: str) -> str:
    """Markdown with its links between labs and handbook as the tree has them: `release/` is gone, so one folder less."""
    return text.replace("](../../handbook/", "](../handbook/").replace("](../release/", "](../")


def with_badge(course: Course, lab: str, notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook with the "Open in Colab" badge on top of its title cell."""
    notebook.cells[0].source = f"{course.badge(lab)}\n\n{notebook.cells[0].source}"
    return notebook


def build_wheel(package_root: Path, folder: Path) -> Path:
    """Build the package's wheel into `folder` from a clean copy of its files, offline. Raises `CourseError`."""
    with tempfile.TemporaryDirectory(prefix="inferlab-wheel-") as temporary:
        copy = Path(temporary) / "package"
        copy.mkdir()
        for name in PACKAGE_FILES:
            if (package_root / name).exists():
                shutil.copy(package_root / name, copy / name)
        shutil.copytree(package_root / "src" / "inferlab", copy / "src" / "inferlab",
                        ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-index", "--no-deps", "--no-build-isolation",
                   "--disable-pip-version-check", "--wheel-dir", str(folder), str(copy)]
        done = subprocess.run(command, capture_output=True, text=True, check=False,
                              env={**os.environ, "SOURCE_DATE_EPOCH": "1767225600"})
    if done.returncode:
        raise CourseError("the wheel cannot be built:\n" + "\n".join(done.stderr.strip().splitlines()[-10:]))
    return next(folder.glob("*.whl"))


def readme(course: Course) -> str:
    """The README that learners see: what this is, every lab with its badge, and how to run it at home."""
    rows = "\n".join(f"| [{lab}]({lab}/{lab}.ipynb) | {_title(course, lab)} | {course.badge(lab)} |" for lab in course.labs)
    return f"""# InferLab

A course in Jupyter: every lab traces a real diffusion pipeline or language model, boundary by boundary, and checks what
you build and write.

| lab | | open it |
|---|---|---|
{rows}

**In Colab**: open a lab by its badge and run it from the top. The first cell installs the course's package.

**At home** (Python 3.11 or newer): `pip install wheels/{course.wheel_name} jupyterlab`, then `jupyter lab`.

Write your name or id into `LEARNER` near the top. The last cell of a lab runs the checks, says what is missing, and
leaves one file to hand in. `inferlab check LAB.ipynb` does the same from a terminal.

The reading for each lab is in [handbook/](handbook/). Code: Apache-2.0 (LICENSE). Text: CC BY 4.0 (LICENSE-TEXT).
"""


def _title(course: Course, lab: str) -> str:
    source = build_source(course, lab, strict=False)
    first = source.cells[0].source.lstrip("# ").split("\n", 1)[0]
    return first.replace("|", "\\|")
