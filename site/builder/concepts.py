"""The concept map: one data file, checked against the labs and the handbook."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from html import escape
from pathlib import Path

import nbformat
from docutils.nodes import make_id

from inferlab.grading.authoring.start_here import Entry
from inferlab.grading.course import Course

from . import SITE
from .pages import in_tracks, marked, short_title
from .templates import wide_page

HEADING = re.compile(r"^#{2,3} (.+?)\s*$", re.M)
KINDS = ("pictures", "language")
"""What the style calls the tracks."""


@dataclass(frozen=True)
class Concept:
    """One box of the map.

    Attributes:
        name: its table in `concepts.toml`.
        title, says: what it is called, and what it is in one sentence.
        needs: names of the concepts that it builds on.
        lab, heading: where a lab teaches it.
        section: heading of the handbook's section of that lab.
    """

    name: str
    title: str
    says: str
    needs: tuple[str, ...]
    lab: str
    heading: str
    section: str

    @property
    def read(self) -> str:
        """The place in the handbook, from the site's root."""
        return f"handbook/{self.lab}.html#{make_id(self.section)}"

    @property
    def do(self) -> str:
        """The place in the lab, from the site's root."""
        return f"labs/{self.lab}.html#{make_id(self.heading)}"


def read_concepts(path: Path = SITE / "concepts.toml") -> list[Concept]:
    """The concepts, in the file's order. Raises `KeyError` or `ValueError` when a table is not made as it
    should be."""
    return [
        Concept(name, one["title"], one["says"], tuple(one["needs"]), *one["lab"], one["section"])
        for name, one in tomllib.loads(path.read_text("utf-8")).items()
    ]


def faults_of(concepts: list[Concept], course: Course) -> list[str]:
    """What is wrong with the map: places that are not there, labs without a concept, a circle."""
    names, found = {concept.name for concept in concepts}, []
    for concept in concepts:
        found += [
            f"{concept.name} needs {need}, which is no concept" for need in concept.needs if need not in names
        ]
        if concept.lab not in course.labs:
            found.append(f"{concept.name}: there is no lab {concept.lab}")
            continue
        notebook = nbformat.read(course.release(concept.lab), as_version=4)
        text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
        if concept.heading not in HEADING.findall(text):
            found.append(f"{concept.name}: {concept.lab} has no heading '{concept.heading}'")
        section = (course.root / "handbook" / f"{concept.lab}.md").read_text("utf-8")
        if concept.section not in HEADING.findall(section):
            found.append(f"{concept.name}: the handbook's {concept.lab} has no heading '{concept.section}'")
    found += [
        f"{lab} has no concept" for lab in course.labs if lab not in {concept.lab for concept in concepts}
    ]
    try:
        TopologicalSorter({concept.name: concept.needs for concept in concepts}).prepare()
    except CycleError as error:
        found.append(f"concepts need each other in a circle: {', '.join(error.args[1])}")
    return found


def write_map(course: Course, order: list[Entry], pages: Path) -> None:
    """Write the map's page. Raises `ValueError` with everything that is wrong with the data."""
    concepts = read_concepts()
    if faults := faults_of(concepts, course):
        raise ValueError("the concept map is wrong:\n  " + "\n  ".join(faults))
    titles = {entry.lab: short_title(entry) for entry in order}
    maps = ""
    for (track, labs), kind in zip(in_tracks(order), KINDS, strict=True):
        maps += f"<h2>{escape(track)}</h2>\n{drawn(track, kind, labs, concepts)}\n"
    named = {one.name: escape(one.title) for one in concepts}
    lists = []
    for entry in order:
        rows = "".join(
            f'<li id="concept-{one.name}"><b>{escape(one.title)}.</b>'
            f' <span class="says">{marked(one.says)}</span> <span class="go"><a href="{one.read}">Read</a> '
            f'<a href="{one.do}">Do</a></span>{_rests_on(one, named)}</li>\n'
            for one in concepts
            if one.lab == entry.lab
        )
        lists.append(f'### {titles[entry.lab]}\n\n<ul class="concepts">\n{rows}</ul>\n')
    below = "## Every concept, by lab\n\n" + "\n".join(lists)
    text = wide_page("Concept map", INTRO, maps, below)
    (pages / "map.md").write_text(text, "utf-8")


def _rests_on(one: Concept, named: dict[str, str]) -> str:
    links = ", ".join(f'<a href="#concept-{need}">{named[need]}</a>' for need in one.needs)
    return f'<br><small>Builds on {links}.</small>' if links else ""


def drawn(track: str, kind: str, labs: list[Entry], concepts: list[Concept]) -> str:
    """A track's map: a row a lab, a box a concept, which leads to the handbook. `map.mjs` draws the lines,
    and says what a concept is."""
    rows = ""
    for entry in labs:
        boxes = "".join(
            f'<a href="{one.read}" data-concept="{one.name}" data-needs="{" ".join(one.needs)}"'
            f' title="{escape(one.says)}">{escape(one.title)}</a>\n'
            for one in concepts
            if one.lab == entry.lab
        )
        name = escape(short_title(entry))
        lab = f'<p><a href="handbook/{entry.lab}.html">{name}</a></p>'
        rows += f'<div class="lane">{lab}\n<div>{boxes}</div></div>\n'
    return (
        f'<div class="map {kind}" role="group" aria-label="Concept map: {escape(track)}">'
        f'<svg aria-hidden="true"></svg>\n{rows}</div>'
    )


INTRO = """\
A row is a lab, a box is a concept. <span class="by-pointer">A line leads from a concept to what builds on it;
the long ones show when you point at a box, with one sentence on it, and a click leads to the place in the
handbook.</span><span class="by-touch">Tap a concept: it says in one sentence what it is, what it builds on
and what it leads to, and where to read and do it.</span>"""
