"""Where a learner stands: which labs are handed in, which are begun, and which comes next."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from html import escape
from pathlib import Path

from inferlab.lab.notebook_file import read_notebook

HANDIN_FOLDER = "handin"
START_HERE = "start-here.ipynb"
"""Lies in the course's folder, beside the labs' folders."""
_MARKS = {"handed in": "✓", "begun": "◐", "not begun": "○"}


@dataclass(frozen=True)
class Standing:
    """How far one lab is: `state` is "handed in", "begun" or "not begun"; `detail` says more, or is empty."""

    lab: str
    state: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{_MARKS[self.state]} {self.lab}: {self.state}" + (f", {self.detail}" if self.detail else "")


@dataclass(frozen=True)
class Standings:
    """How far every lab is, in the course's order."""

    labs: tuple[Standing, ...]

    @property
    def next(self) -> str:
        """The first lab that is not handed in; empty when all are."""
        return next((one.lab for one in self.labs if one.state != "handed in"), "")

    @property
    def summary(self) -> str:
        """How many labs are handed in, and what comes next, in one line."""
        done = sum(one.state == "handed in" for one in self.labs)
        last = f"next: {self.next}" if self.next else "nothing is left"
        return f"{done} of {len(self.labs)} labs handed in; {last}"

    def __repr__(self) -> str:
        return "\n".join([*map(str, self.labs), self.summary])

    def _repr_html_(self) -> str:
        rows = "".join(f"<li>{escape(str(one))}</li>" for one in self.labs)
        return f'<ul style="list-style:none;padding:0">{rows}</ul><p><b>{escape(self.summary)}</b></p>'


def handed_in(*labs: str, folder: str | Path = ".") -> Standings:
    """Look at what is saved below `folder` and say how far each lab is.

    Args:
        labs: the labs' full names, in the course's order.
        folder: holds a folder for each lab, or the notebooks themselves.
    """
    return Standings(tuple(_standing(lab, Path(folder)) for lab in labs))


def so_far(notebook: Path) -> str:
    """How many of the course's labs are handed in, as a line; "" where a lab's notebook lies in no course."""
    course = notebook.resolve().parent.parent
    if not (course / START_HERE).is_file():
        return ""
    labs = [path.stem for path in course.glob("*/*.ipynb") if path.stem == path.parent.name]
    done = sum(any((course / lab / HANDIN_FOLDER).glob(f"{lab}-*.ipynb")) for lab in labs)
    return f"Handed in so far: {done} of {len(labs)} labs; {START_HERE} lists them."


def _standing(lab: str, folder: Path) -> Standing:
    places = [folder / lab, folder]
    files = [file for place in places for file in (place / HANDIN_FOLDER).glob(f"{lab}-*.ipynb")]
    if files:
        return Standing(lab, "handed in", _when(max(files, key=lambda file: file.stat().st_mtime)))
    begun = any(_has_run(place / f"{lab}.ipynb") for place in places)
    return Standing(lab, "begun" if begun else "not begun")


def _when(file: Path) -> str:
    """The day, and how many visible parts passed, as `submit()` wrote them."""
    try:
        about = read_notebook(file.read_text("utf-8")).metadata.get("inferlab", {})
        day = datetime.fromisoformat(about["submitted"]).astimezone().strftime("%d %B %Y").lstrip("0")
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"but {file.name} cannot be read ({type(error).__name__})"
    visible = about.get("visible")
    return f"{day}, {visible[0]} of {visible[1]} visible parts passed" if visible else day


def _has_run(notebook: Path) -> bool:
    try:
        cells = read_notebook(notebook.read_text("utf-8")).cells
    except (OSError, ValueError):
        return False
    return any(cell.get("execution_count") for cell in cells)
