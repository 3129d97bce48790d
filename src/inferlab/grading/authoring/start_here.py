"""The course's order: `release/start-here.ipynb` lists the labs, and a line in each lab names its neighbours.

The order stands in `notebooks/order.toml`. Title and minutes are read from the labs' own first cells.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from inferlab.grading.course import Course, CourseError, read_toml

NAME = "start-here.ipynb"
ORDER = "order.toml"
_KEYS = {"part": str, "needs": list}
_TITLE = re.compile(r"^# # (?P<title>.+)$", re.M)
_MINUTES = re.compile(r"\*\*Time\*\* (?P<minutes>[^·\n]*?minutes)")

BEFORE = """\
# Start here

In this course you open up real models: a pipeline that draws pictures, and language models that write
text. Every lab runs one, shows what happened inside, and then lets you build the part that matters,
change it, and explain it. All of it runs on an ordinary laptop with two CPU cores; a GPU shows the same
labs at full size.

**One word comes up everywhere: *boundary*.** A boundary is a place in a run where data goes into a
component and comes out again. A component is a module such as the UNet, or a step that a pipeline hides,
such as `scheduler.step`. A *trace* writes down every boundary of one run, in order: what went in, what
came out, with shape, dtype and device. Nearly every question of the course is answered at a boundary.

## The labs, in order
"""
AFTER = """\
The **minutes** are an estimate for a first reading, with the exercises and every run. The **numbers** name
the labs; the order is that of the list. Each part can be taken on its own.

## How a lab goes

1. Open it and write your name or id into `LEARNER`.
2. Run the cells from the top, one after the other, and read what stands between them. After a restart of
   the kernel, run all cells from the top first.
3. Write your answer where a cell says `YOUR CODE HERE`. Its check stands below it and names what is
   wrong. A check shows its *visible part*; more parts run after you hand in.
4. Stuck? Open the hints below the exercise.
5. The last cell says what is missing and leaves one file to hand in.

## What is done

Run this cell whenever you come back. It looks at what you have handed in and saved.
"""
PYTHON = {"kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
          "language_info": {"name": "python"}}
"""The metadata of every notebook of the course."""


@dataclass(frozen=True)
class Entry:
    """A lab's place in the course.

    Attributes:
        lab: its full name.
        title: as its first cell has it, such as "Lab 02 · One denoising step".
        minutes: as its first cell has it, such as "60 to 75 minutes"; empty if it says nothing.
        part: the heading that begins with this lab; empty for all others.
        needs: names of the labs that should come before it.
    """

    lab: str
    title: str
    minutes: str = ""
    part: str = ""
    needs: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The lab's notebook, as `release/` and the learners' tree have it."""
        return f"{self.lab}/{self.lab}.ipynb"


def entries(course: Course, labs: list[str] | None = None) -> list[Entry]:
    """The course's labs in order; only those of `labs` if given.

    Raises:
        CourseError: if `notebooks/order.toml` names a lab that is not there, puts a lab before one that it
            needs, or has a key that means nothing.
    """
    tables = read_toml(course.root / "notebooks" / ORDER, f"notebooks/{ORDER}")
    found: list[Entry] = []
    for lab in [*tables, *(lab for lab in course.labs if lab not in tables)]:
        settings = tables.get(lab, {})
        if not isinstance(settings, dict) or not all(isinstance(v, _KEYS.get(k, ())) for k,
                                                     v in settings.items()):
            raise CourseError(f"notebooks/{ORDER}: [{lab}] may have part = a text and needs = a list of labs")
        late = set(settings.get("needs", [])) - {entry.lab for entry in found}
        if late:
            raise CourseError(f"notebooks/{ORDER}: {lab} needs {', '.join(sorted(late))}, "
                              "which must stand above it")
        text = course.text(course.require(lab)).read_text("utf-8")
        title, minutes = _TITLE.search(text), _MINUTES.search(text)
        found.append(Entry(lab, title["title"].strip() if title else lab,
                           minutes["minutes"] if minutes else "",
                           settings.get("part", ""), tuple(settings.get("needs", ()))))
    chosen = {entry.lab for entry in found} if labs is None else set(labs)
    part = ""
    kept: list[Entry] = []
    for entry in found:
        part = entry.part or part
        if entry.lab in chosen:
            kept.append(replace(entry, part=part, needs=tuple(lab for lab in entry.needs if lab in chosen)))
            part = ""
    return kept


def neighbours(course: Course, lab: str, labs: list[str] | None = None) -> tuple[Entry | None, Entry | None]:
    """The labs before and after `lab`, among `labs` if given; `None` at the course's ends."""
    order = entries(course, labs)
    at = [entry.lab for entry in order].index(lab)
    return (order[at - 1] if at else None), (order[at + 1] if at + 1 < len(order) else None)


def neighbours_cell(before: Entry | None, after: Entry | None) -> NotebookNode:
    """The Markdown cell below a lab's title with links to the labs before and after it."""
    links = [f"← [{before.title}](../{before.path})"] if before else []
    links.append(f"[Start here](../{NAME})")
    links += [f"[{after.title}](../{after.path}) →"] if after else []
    return new_markdown_cell(" · ".join(links), id="neighbours", metadata={"inferlab": {"bootstrap": True}})


def labs_table(order: list[Entry]) -> str:
    """The labs as Markdown: a table for each part, in order, with minutes and what comes before."""
    titles = {entry.lab: entry.title.split(" · ")[0] for entry in order}
    lines: list[str] = []
    for number, entry in enumerate(order, start=1):
        if entry.part or number == 1:
            lines += ["", *([f"### {entry.part}", ""] if entry.part else []),
                      "| | lab | minutes | comes after |", "|---|---|---|---|"]
        minutes = re.sub(r"^about | ?minutes$", "", entry.minutes)
        before = ", ".join(titles[lab] for lab in entry.needs) or "nothing"
        lines.append(f"| {number} | [{entry.title}]({entry.path}) | {minutes} | {before} |")
    return "\n".join(lines)


def start_here(course: Course, labs: list[str] | None = None) -> NotebookNode:
    """The index notebook of the course's labs; only of `labs` if given."""
    order = entries(course, labs)
    names = "".join(f'    "{entry.lab}",\n' for entry in order)
    cells = [
        new_markdown_cell(f"{BEFORE}{labs_table(order)}\n\n{AFTER}".strip(), id="start-here"),
        new_code_cell(f"from inferlab.lab import handed_in\n\nhanded_in(\n{names})", id="handed-in",
                      metadata={"jupyter": {"source_hidden": True}}),
    ]
    notebook = new_notebook(cells=cells)
    notebook.metadata.update(PYTHON)
    nbformat.validate(notebook)
    return notebook


def start_here_path(course: Course) -> Path:
    """Where it lies: beside the released labs' folders."""
    return course.root / "release" / NAME
