"""The first page: what the course is, its paths with minutes and what comes before, and a run of the
bundled model."""

from __future__ import annotations

from pathlib import Path

from inferlab.grading.authoring.start_here import Entry
from inferlab.grading.course import Course

from .film import Film
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
    "Words": "glossary",
    "GPU numbers": "gpu-numbers",
    "Tracing: API": "api/trace",
    "Models: API": "api/models",
    "Labs: API": "api/lab",
    "For instructors": "instructors",
    "The sandbox": "security",
}


def write_home(course: Course, order: list[Entry], cards: list[str], film: Film, pages: Path) -> None:
    """Write `index.md`: a heading, HTML from its template, and every page's place in the side bar."""
    numbers = {entry.lab: short_title(entry).split(" · ")[0] for entry in order}
    tracks = in_tracks(order)
    tries = [(page, name, says) for name, (page, says) in TRY.items()]
    html = filled(
        "home",
        film=film,
        frames=FRAMES,
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
