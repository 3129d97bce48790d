"""Turns what the repository holds into Sphinx's source pages: handbook, released notebooks, cards,
instructors' guide, API.

Nothing is taken from `notebooks/` or `source/` but a lab's title and minutes, which its release shows as
well.
"""

from __future__ import annotations

import hashlib
import importlib
import posixpath
import re
import shutil
from collections.abc import Iterable
from html import escape
from pathlib import Path

import nbformat

from inferlab.grading.authoring.start_here import Entry, entries
from inferlab.grading.course import Course
from inferlab.lab.cards.deck import load_cards

from .live import with_live
from .outputs import SAID, with_outputs
from .plots import with_plots
from .recorded import Outputs
from .templates import code

LINE = re.compile(r"^\| \[[^\]]+\]\((?P<page>[\w-]+)\.md\) \| [^|]+ \| (?P<line>.+) \|$", re.M)
MYTH = re.compile(r'^- \*\*"(?P<claim>.+?)"\*\* (?P<truth>.+?)(?=\n- \*\*|\n\n|\Z)', re.M | re.S)
SETUP = 3
"""Every notebook begins with so many cells of code that set it up: parameters, `start`, imports."""
DECKS = ("diffusion", "inference")
LINK = re.compile(
    r"\[(?P<label>[^\]]+)\]\((?P<target>(?!https?:)[^)\s#]+\.(?:md|ipynb|csv|svg|py|toml))(?P<anchor>#[^)]*)?\)"
)
NAME = re.compile(r"(?<![\w$./])[A-Za-z]\w*_\w+(?:\.\w+)*(?![\w$]|[^<]*</code>)")
"""A name of code that a card does not mark as such."""
GLUED = re.compile(r"(\]\([^)\s]+\.svg\))\s(\*From\s+the\s+handbook)")
"""A figure and its caption in one paragraph."""
DRAWN_BY = re.compile(r"\s*Drawn\s+by\s+`(?P<path>figures/\w+\.py)`(?P<more>[^.]*(?:\.\d[^.]*)*)\.(?=\s)")
MOVED = {
    "release/start-here.ipynb": "index.md",
    "handbook/README.md": "index.md",
    "handbook/gpu-numbers.md": "gpu-numbers.md",
    "handbook/instructors.md": "instructors.md",
    "handbook/instructors/roster.csv": "_static/roster.csv",
    "SECURITY.md": "security.md",
}
MODULES = {"trace": "inferlab.trace", "models": "inferlab.models", "lab": "inferlab.lab"}


def short_title(entry: Entry) -> str:
    """ "13 · The KV cache" of "Lab 13 · The KV cache"; a practice keeps its whole title."""
    return entry.title.removeprefix("Lab ")


def in_tracks(order: list[Entry]) -> list[tuple[str, list[Entry]]]:
    """The labs by the heading they stand under, in order."""
    tracks: list[tuple[str, list[Entry]]] = []
    for entry in order:
        if entry.part or not tracks:
            tracks.append((entry.part or "Labs", []))
        tracks[-1][1].append(entry)
    return tracks


def one_line(course: Course) -> dict[str, str]:
    """Lab -> what it is about in one line, as the handbook's table of contents says it."""
    text = (course.root / "handbook" / "README.md").read_text("utf-8")
    return {found["page"]: found["line"] for found in LINE.finditer(text)}


def write_pages(course: Course, cache: Path, pages: Path) -> list[Entry]:
    """Write the source pages of everything that has no module of its own; returns the labs in order.

    The notebooks' pages come later: `write_labs`. `cache` keeps what the bundled model drew for the handbook.
    """
    order = entries(course)
    for folder in ("handbook", "labs", "api", "_static/labs"):
        (pages / folder).mkdir(parents=True, exist_ok=True)
    shutil.copytree(
        course.root / "handbook" / "figures",
        pages / "handbook" / "figures",
        ignore=shutil.ignore_patterns("*.py", "__pycache__"),
        dirs_exist_ok=True,
    )
    for entry in order:
        section = (course.root / "handbook" / f"{entry.lab}.md").read_text("utf-8")
        moving = with_live(entry.lab, section, cache, pages / "_static")
        (pages / "handbook" / f"{entry.lab}.md").write_text(handbook_page(course, entry, moving), "utf-8")
        nbformat.write(to_download(course, entry), pages / "_static" / "labs" / f"{entry.lab}.ipynb")
    for name, drawn in (("gpu-numbers", with_plots), ("instructors", str)):
        text = drawn((course.root / "handbook" / f"{name}.md").read_text("utf-8"))
        (pages / f"{name}.md").write_text(linked(text, f"handbook/{name}.md", f"{name}.md"), "utf-8")
    shutil.copy(course.root / "handbook" / "instructors" / "roster.csv", pages / "_static")
    security = (course.root / "SECURITY.md").read_text("utf-8")
    (pages / "security.md").write_text(linked(security, "SECURITY.md", "security.md"), "utf-8")
    (pages / "practice.md").write_text(practice_page(course, order), "utf-8")
    for name, module in MODULES.items():
        (pages / "api" / f"{name}.md").write_text(api_page(module), "utf-8")
    return order


def write_labs(course: Course, order: list[Entry], recorded: dict[str, Outputs], pages: Path) -> None:
    """Write the pages of the notebooks, with what their cells put out."""
    for entry in order:
        notebook = nbformat.read(course.release(entry.lab), as_version=4)
        with_outputs(notebook.cells, recorded[entry.lab], pages / "_static", "../_static/")
        nbformat.write(lab_page(course, entry, notebook), pages / "labs" / f"{entry.lab}.ipynb")


def site_path(path: str) -> str | None:
    """Where the site has a file of the repository; None if it does not have it."""
    if found := re.fullmatch(r"release/([\w-]+)/\1\.ipynb", path):
        return f"labs/{found[1]}.ipynb"
    if re.fullmatch(r"handbook/(?:lab\d\d|practice)-[\w-]+\.md|handbook/figures/[\w-]+\.svg", path):
        return path
    return MOVED.get(path)


def linked(text: str, origin: str, page: str) -> str:
    """Markdown with its links between files as the site has them; a file that the site does not have is
    only named.

    Args:
        text: of the whole file or of one cell.
        origin: the file's path in the repository.
        page: the page's path on the site.
    """

    def link(found: re.Match[str]) -> str:
        label, target, anchor = found["label"], found["target"], found["anchor"] or ""
        there = site_path(posixpath.normpath(posixpath.join(posixpath.dirname(origin), target)))
        if there is None:
            return f"`{label.strip('`')}`"
        return f"[{label}]({posixpath.relpath(there, posixpath.dirname(page) or '.')}{anchor})"

    return LINK.sub(link, text)


def steps_bar(course: Course, entry: Entry, now: str) -> str:
    """The bar on top of a lab's two pages: read, then do; in Colab, or downloaded."""
    colab = re.search(r"\]\((https://colab[^)]+)\)$", course.badge(entry.lab))
    assert colab, "a badge is a picture that links to Colab"
    minutes = escape(entry.minutes.removeprefix("about ")) or "the notebook"
    current = {step: ' aria-current="page"' if step == now else "" for step in ("read", "do")}
    return f"""\
<nav class="steps" aria-label="This lab" data-lab="{entry.lab}">
<a href="../handbook/{entry.lab}.html" data-step="read"{current["read"]}><b>Read</b>
<small>handbook</small></a>
<a href="../labs/{entry.lab}.html" data-step="done"{current["do"]}><b>Do</b>
<small>{minutes}</small></a>
<a href="{colab[1]}"><b>Open in Colab</b></a>
<a href="../_static/labs/{entry.lab}.ipynb" download><b>Download</b></a>
</nav>
"""


def handbook_page(course: Course, entry: Entry, text: str) -> str:
    """A section of the handbook, with the bar under its title, and its lab as the page below it."""
    path = f"handbook/{entry.lab}.md"
    title, rest = linked(text, path, path).split("\n", 1)
    rest = DRAWN_BY.sub(lambda found: _source_of(course, found), rest)
    return (
        f"{title}\n\n{steps_bar(course, entry, 'read')}\n{rest}\n\n"
        f"```{{toctree}}\n:hidden:\n\nLab notebook <../labs/{entry.lab}>\n```\n"
    )


def _source_of(course: Course, found: re.Match[str]) -> str:
    """What a caption says about how its figure was drawn, with its source as a link beside it."""
    base = f"https://github.com/{course.repository}/blob/{course.branch}/handbook"
    more = " ".join(found["more"].split())
    words = f" Drawn {more}." if more else ""
    return f'{words} <a class="drawn" href="{base}/{found["path"]}">{found["path"].split("/")[1]}</a>'


def lab_page(course: Course, entry: Entry, notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The released notebook as a page: the bar under its title, what sets it up and its checks folded,
    links to the site's own pages."""
    cells: list[nbformat.NotebookNode] = []
    setup: list[nbformat.NotebookNode] = []
    for cell in notebook.cells:
        if cell.get("id") == "neighbours" or "bootstrap" in cell.metadata.get("tags", []):
            continue
        if cell.cell_type == "code" and len(setup) < SETUP:
            setup.append(cell)
            if len(setup) == 1:
                cells.append(cell)
            continue
        if cell.cell_type == "markdown":
            cell.source = linked(
                GLUED.sub(r"\1\n\n\2", cell.source),
                f"release/{entry.lab}/{entry.lab}.ipynb",
                f"labs/{entry.lab}.ipynb",
            )
        told = cell.metadata.get("inferlab", {})
        if cell.metadata.get("jupyter", {}).get("source_hidden") or told.get("check"):
            fold(cell, f"check of {told['of']}" if told.get("check") else "source")
        for kind in ("exercise", "explain"):
            if kind in told:
                cell.metadata["tags"] = [*cell.metadata.get("tags", []), kind]
        cells.append(cell)
    setup[0].source = "\n\n".join(cell.source for cell in setup)
    fold(setup[0], f"setup, {len(setup)} cells")
    title, _, rest = cells[0].source.partition("\n")
    cells[0].source = f"{title}\n\n{steps_bar(course, entry, 'do')}\n{SAID}\n\n{rest}"
    notebook.cells = cells
    return notebook


def fold(cell: nbformat.NotebookNode, name: str) -> None:
    """Let a cell open on a click on its name."""
    cell.metadata["tags"] = [*cell.metadata.get("tags", []), "hide-input"]
    cell.metadata["mystnb"] = {"code_prompt_show": f"Show the {name}", "code_prompt_hide": f"Hide the {name}"}


def to_download(course: Course, entry: Entry) -> nbformat.NotebookNode:
    """The released notebook with links that work wherever it is opened: to the learners' repository."""
    notebook = nbformat.read(course.release(entry.lab), as_version=4)
    base = f"https://github.com/{course.repository}/blob/{course.branch}"
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = re.sub(
                r"\]\((?:\.\./)+([\w-]+(?:/[\w-]+)?\.(?:md|ipynb))", rf"]({base}/\1", cell.source
            )
    return notebook


def details(card: dict[str, str], more: str = "") -> str:
    """A question whose answer opens on a click, without a script."""
    inside = f'<div class="answer">{card["answer"]}{more}</div>'
    summary = f"<summary>{card['question']}</summary>"
    return f'<details class="question" data-card="{card["id"]}">{summary}\n{inside}</details>\n'


def marked(text: str) -> str:
    """The few marks that cards and misunderstandings use, as HTML: code, bold, emphasis, links' words."""
    text = code(" ".join(text.split()))
    text = NAME.sub(r"<code>\g<0></code>", text.replace("alpha_bar", "ᾱ"))
    text = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", text)
    text = re.sub(r"(?<![\w*])\*([^*]+)\*(?!\w)", r"<em>\1</em>", text)
    return re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", text)


def all_cards(course: Course, order: list[Entry]) -> list[dict[str, str]]:
    """Every question with its answer as HTML: the flashcards of the course, then the handbook's
    misunderstandings."""
    cards = []
    for name in DECKS:
        deck = load_cards(name)
        for card in deck.cards:
            answer = "".join(f"<p>{marked(line)}</p>" for line in card.answer.split("\n"))
            cards.append(
                {
                    "id": f"{name}/{card.id}",
                    "deck": deck.title.split(":")[0],
                    "group": deck.title,
                    "question": marked(card.question),
                    "answer": answer,
                    "see": card.see,
                }
            )
    for entry in order:
        for claim, truth in misunderstandings(course, entry.lab):
            name = hashlib.sha256(claim.encode()).hexdigest()[:8]
            cards.append(
                {
                    "id": f"myth/{name}",
                    "deck": "Right or wrong?",
                    "group": short_title(entry),
                    "question": f"“{marked(claim)}”",
                    "answer": f"<p>{marked(truth)}</p>",
                    "see": entry.lab,
                }
            )
    return cards


def practice_page(course: Course, order: list[Entry]) -> str:
    """Every question, with an answer that opens on a click, and the way to the graded practice; what
    belongs to a deck or to a lab opens on a click as well."""
    titles = {entry.lab: short_title(entry) for entry in order}
    groups: dict[str, list[str]] = {}
    for card in all_cards(course, order):
        myth = card["id"].startswith("myth/")
        see = (
            f'<p class="see"><a href="handbook/{card["see"]}.html">{escape(titles[card["see"]])}</a></p>'
            if card["see"] and not myth
            else ""
        )
        groups.setdefault(card["group"], []).append(details(card, see))
    parts = ["# Practice", "", PRACTICE_INTRO, "", "## Flashcards", ""]
    for number, (group, cards) in enumerate(groups.items()):
        if number == len(DECKS):
            parts += ["", "## Right or wrong?", "", MYTHS_INTRO, ""]
        parts.append(folded(escape(group), len(cards), "".join(cards), opened=not number))
    return "\n".join(parts)


def folded(name: str, count: int, html: str, opened: bool = False) -> str:
    """A group that opens on a click on its name, beside which stands how many it has."""
    state = " open" if opened else ""
    return f'<details class="group"{state}><summary>{name} <span>{count}</span></summary>\n{html}</details>\n'


def misunderstandings(course: Course, lab: str) -> Iterable[tuple[str, str]]:
    """What people get wrong, and what is right, from the section's list of misunderstandings."""
    text = (course.root / "handbook" / f"{lab}.md").read_text("utf-8")
    _, _, rest = text.partition("\n## Misunderstandings\n")
    section = rest.split("\n## ")[0].split("\n> ")[0]
    return [(found["claim"], found["truth"]) for found in MYTH.finditer(section)]


PRACTICE_INTRO = """\
Try to say the answer aloud before you open it. The first two sets are the course's flashcards; in a
notebook, `show_cards("inference")` asks them on the days on which they are due, and `inferlab cards
inference` prints them. The graded questions, with numbers of a service of your own, are in the [practice
notebook](labs/practice-inference.ipynb). [Flashcards](cards.md) asks everything here card by card."""
MYTHS_INTRO = "Somebody says it. What is wrong with it? The handbook answers these, section by section."


def api_page(module: str) -> str:
    """Every public name of a module, from its docstrings."""
    loaded = importlib.import_module(module)
    first = (loaded.__doc__ or "").strip().split("\n\n")[0]
    lines = [f"# {module}", "", " ".join(first.split()), "", "```{eval-rst}"]
    for name in loaded.__all__:
        kind = "autoclass" if isinstance(getattr(loaded, name), type) else "autofunction"
        lines += [f".. {kind}:: {module}.{name}", *(["   :members:"] if kind == "autoclass" else []), ""]
    return "\n".join([*lines, "```", ""])
