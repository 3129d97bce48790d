"""The first page: what the course is, its paths with minutes and what comes before, and a run of each
bundled model."""

from __future__ import annotations

import re
from pathlib import Path

from inferlab.grading.authoring.start_here import Entry
from inferlab.grading.course import Course

from .film import LAYER, Film, Sentence
from .pages import in_tracks, one_line, short_title
from .templates import filled, tree, wide_page

TRY = {
    "The model in the page": (
        "model",
        "Write a caption, and look at every tensor on its way to the picture.",
    ),
    "Trace player": ("player", "Step through a recorded run, or through one of yours."),
    "Calculators": ("calculators/index", "Bytes and seconds of caches, weights, attention, guidance."),
    "Concept map": ("map", "What builds on what, and where it is explained."),
    "Practice": ("practice", "Questions, and claims that are wrong, with answers that open."),
    "Flashcards": ("cards", "The same questions, asked on the days on which they are due."),
}
"""Name -> (page, what is there)."""
FRAMES = (0, 1, 2, 3, 4, 7, 10)
"""Steps of the film that the page shows, the result last; a phone shows every second one."""
LOOK_UP = {
    "Glossary": "glossary",
    "GPU numbers": "gpu-numbers",
    "Tracing: API": "api/trace",
    "Models: API": "api/models",
    "Labs: API": "api/lab",
    "For instructors": "instructors",
    "The sandbox": "security",
}


def _middle(minutes: str) -> float:
    """Of "35 to 45 minutes"; of several such parts, the sum."""
    return sum(map(int, re.findall(r"\d+", minutes))) / 2


def time_of(minutes: str) -> str:
    """A lab's minutes in short: "35 to 45 min", or "3 parts, about 2 h"."""
    parts = len(re.findall(r"\d+ to \d+", minutes))
    if parts > 1:
        return f"{parts} parts, about {_middle(minutes) / 60:.0f} h"
    return minutes.removeprefix("about ").replace(" minutes", " min")


def hours(labs: list[Entry]) -> int:
    """That a track takes, rounded."""
    return round(sum(_middle(entry.minutes) for entry in labs) / 60)


def write_home(
    course: Course, order: list[Entry], cards: list[str], film: Film, sentence: Sentence, pages: Path
) -> None:
    """Write `index.md`: a heading, HTML from its template, and every page's place in the side bar."""
    numbers = {entry.lab: short_title(entry).split(" · ")[0] for entry in order}
    tracks = in_tracks(order)
    tries = [(page, name, says) for name, (page, says) in TRY.items()]
    html = filled(
        "home",
        film=film,
        frames=FRAMES,
        sentence=sentence,
        layer=LAYER + 1,
        time_of=time_of,
        hours=hours,
        numbers=numbers,
        lines=one_line(course),
        cards=cards,
        tracks=tracks,
        tries=tries,
    )
    trees = [
        tree({short_title(entry): f"handbook/{entry.lab}" for entry in labs}, part) for part, labs in tracks
    ]
    trees += [tree({name: page for name, (page, _) in TRY.items()}, "Try"), tree(LOOK_UP, "Look up")]
    text = wide_page("Open up a model and watch it work", "", html, "".join(trees))
    (pages / "index.md").write_text(text, "utf-8")
