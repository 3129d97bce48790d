"""The concept map: one data file, checked against the labs and the handbook, drawn as one SVG while the
site is built."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from html import escape
from pathlib import Path
from typing import Any

import nbformat
from docutils.nodes import make_id

from inferlab.grading.authoring.start_here import Entry
from inferlab.grading.course import Course

from . import SITE
from .npm import NODE
from .pages import in_tracks, marked, short_title
from .templates import wide_page

HEADING = re.compile(r"^#{2,3} (.+?)\s*$", re.M)
WIDTH, HEIGHT = 150, 40
LAYOUT = {
    "elk.algorithm": "layered",
    "elk.direction": "DOWN",
    "elk.edgeRouting": "SPLINES",
    "elk.layered.spacing.nodeNodeBetweenLayers": "38",
    "elk.spacing.nodeNode": "18",
    "elk.padding": "[top=6,left=6,bottom=6,right=6]",
    "elk.layered.layering.strategy": "COFFMAN_GRAHAM",
    "elk.layered.layering.coffmanGraham.layerBound": "5",
    "elk.layered.nodePlacement.strategy": "NETWORK_SIMPLEX",
    "elk.layered.compaction.postCompaction.strategy": "EDGE_LENGTH",
    "elk.randomSeed": "1",
}


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
    for track, labs in in_tracks(order):
        taught = {entry.lab for entry in labs}
        maps += f"<h2>{escape(track)}</h2>\n{drawn(track, [one for one in concepts if one.lab in taught])}\n"
    lists = []
    for entry in order:
        rows = "".join(
            f'<li id="{one.name}"><b>{escape(one.title)}.</b> {marked(one.says)} <span class="go">'
            f'<a href="{one.read}">Read</a> '
            f'<a href="{one.do}">Do</a></span></li>\n'
            for one in concepts
            if one.lab == entry.lab
        )
        lists.append(f'### {titles[entry.lab]}\n\n<ul class="concepts">\n{rows}</ul>\n')
    below = "## Every concept, by lab\n\n" + "\n".join(lists)
    text = wide_page("Concept map", INTRO, maps, below)
    (pages / "map.md").write_text(text, "utf-8")


def drawn(track: str, concepts: list[Concept]) -> str:
    """A track's map as SVG: a box a concept, which leads to the handbook, and a line from what it needs."""
    names = {one.name for one in concepts}
    graph = {
        "id": "map",
        "layoutOptions": LAYOUT,
        "children": [{"id": one.name, "width": WIDTH, "height": HEIGHT} for one in concepts],
        "edges": [
            {"id": f"{need}>{one.name}", "sources": [need], "targets": [one.name]}
            for one in concepts
            for need in one.needs
            if need in names
        ],
    }
    done = subprocess.run(
        [NODE, SITE / "map.mjs"], input=json.dumps(graph), capture_output=True, text=True, check=True
    )
    placed = json.loads(done.stdout)
    at = {child["id"]: child for child in placed["children"]}
    lines = "".join(
        f'<path d="{_path(edge)}" data-from="{edge["sources"][0]}" data-to="{edge["targets"][0]}"/>\n'
        for edge in placed["edges"]
    )
    boxes = "".join(_box(one, at[one.name]["x"], at[one.name]["y"]) for one in concepts)
    width, height = round(placed["width"]), round(placed["height"])
    return (
        f'<div class="map" tabindex="0" role="region" aria-label="Concept map: {escape(track)}">'
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}">\n'
        f'<g class="lines" aria-hidden="true">{lines}</g>\n{boxes}</svg></div>'
    )


def _box(one: Concept, x: float, y: float) -> str:
    return (
        f'<a href="{one.read}" data-concept="{one.name}"'
        f' data-needs="{" ".join(one.needs)}">'
        f"<title>{escape(one.says)}</title>"
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{WIDTH}" height="{HEIGHT}" rx="10"/>'
        f'<text x="{x + WIDTH / 2:.1f}" y="{y + HEIGHT / 2 + 4.5:.1f}">{escape(one.title)}</text></a>\n'
    )


def _path(edge: dict[str, Any]) -> str:
    """An edge's spline: its first point, then three points a curve."""
    section = edge["sections"][0]
    points = [*section.get("bendPoints", []), section["endPoint"]]
    start = section["startPoint"]
    path = f"M{start['x']:.1f} {start['y']:.1f}"
    if len(points) % 3:
        return path + "".join(f"L{p['x']:.1f} {p['y']:.1f}" for p in points)
    curves = [points[at : at + 3] for at in range(0, len(points), 3)]
    return path + "".join("C" + " ".join(f"{p['x']:.1f} {p['y']:.1f}" for p in curve) for curve in curves)


INTRO = """\
A line leads from a concept down to those that build on it. A box leads to the place in the handbook that
explains it; below the map, every concept also leads to the place in its lab. Point at a box to see what it
rests on."""
