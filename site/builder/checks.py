"""Reads the finished site: it shows no answer, its links lead somewhere, and nothing in it comes from
another host."""

from __future__ import annotations

import ast
import tempfile
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat

from inferlab.grading.authoring.leaks import Leak, find_leaks, secrets_of, squeeze
from inferlab.grading.authoring.publish import allowed_texts
from inferlab.grading.course import Course

LOADS = {
    "img": "src",
    "script": "src",
    "link": "href",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "image": "href",
}
"""Elements whose address a browser asks for by itself."""


@dataclass
class Page:
    """What a page shows and where it leads.

    Attributes:
        text: its words as a reader sees them, code without its colors' marks.
        ids: places in it that a link may name.
        links: addresses of its links.
        loads: addresses that a browser asks for when it opens the page.
    """

    text: list[str] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = Page()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.page.ids |= {value for name in ("id", "name") if (value := values.get(name))}
        if tag == "a" and (href := values.get("href")):
            self.page.links.append(href)
        if tag in LOADS and (address := values.get(LOADS[tag])):
            self.page.loads.append(address)

    def handle_data(self, data: str) -> None:
        self.page.text.append(data)


def read_page(html: str) -> Page:
    """The page's text, links and what it loads."""
    reader = _Reader()
    reader.feed(html)
    return reader.page


def leaks_in(out: Path, course: Course) -> list[Leak]:
    """Answers in the site, by the check that `inferlab publish` uses, on files and on pages as they are read.

    A page's code is full of marks for its colors, which would hide what it says: so the text is looked
    through, too.
    """
    with tempfile.TemporaryDirectory(prefix="inferlab-site-") as temporary:
        seen = Path(temporary)
        for path in out.rglob("*"):
            if path.suffix in (".html", ".ipynb", ".js", ".mjs", ".json", ".txt", ".csv"):
                target = seen / path.relative_to(out)
                target.parent.mkdir(parents=True, exist_ok=True)
                text = path.read_text("utf-8")
                target.write_text("".join(read_page(text).text) if path.suffix == ".html" else text, "utf-8")
        return find_leaks(seen, course, course.labs, [*allowed_texts(course), *_released(course)])


def _released(course: Course) -> list[str]:
    """What a lab's own release says, once it is read: `x` is `y` in Markdown is "x is y" on the page, and the
    pieces of a note in code are one sentence below the cell."""
    found = []
    for lab in course.labs:
        cells = nbformat.read(course.release(lab), as_version=4).cells
        prose = squeeze("".join(cell.source for cell in cells if cell.cell_type == "markdown"))
        plain = prose.translate(str.maketrans("", "", "`*"))
        notes = [squeeze(text) for cell in cells if cell.cell_type == "code" for text in _notes(cell.source)]
        found += [
            secret.squeezed
            for secret in secrets_of(course, lab)
            if secret.squeezed in plain or any(secret.squeezed in note for note in notes)
        ]
    return found


def _notes(source: str) -> list[str]:
    """The strings of a cell's code, each with its pieces joined; none of a cell that is not Python."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return []
    strings = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return [value for value in strings if isinstance(value, str)]


def broken_in(out: Path) -> list[str]:
    """Links to files or places that are not there, and whatever a page would ask another host for."""
    pages = {path: read_page(path.read_text("utf-8")) for path in out.rglob("*.html")}
    found = []
    for path, page in pages.items():
        name = path.relative_to(out)
        found += [f"{name} loads {address}" for address in page.loads if urlsplit(address).netloc]
        for address in {*page.links, *page.loads}:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            if parts.path.startswith("/"):
                found.append(f"{name} leads to {address}: below a sub-path there is no such place")
                continue
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not there.is_file():
                found.append(f"{name} leads to {address}, which is not there")
            elif parts.fragment and there in pages and unquote(parts.fragment) not in pages[there].ids:
                found.append(f"{name} leads to {address}: there is no such place on that page")
    return sorted(found)
