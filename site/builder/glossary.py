"""The glossary: a sentence for each term; below it all words that explanations are composed of, from the
tables of the labs themselves."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from itertools import groupby
from pathlib import Path

from docutils.nodes import make_id

from inferlab.grading.authoring.start_here import Entry
from inferlab.grading.course import Course
from inferlab.grading.gradebook.lab_claims import LabClaims

from . import SITE
from .pages import short_title
from .templates import raw

INTRO = """\
Explanations are short sentences, composed of a lab's words. This is every word of every lab, and what is read
as the same, where # stands for a number. A lab's own table says which of them belong together; a word that it
lacks is not read there."""
TERMS_INTRO = "What the course's terms mean, in a sentence each, and the section that explains them."
KINDS = {"who": "Who, and what things are done to", "verbs": "Verbs", "more": "When, where and why"}


FILTER = '<label class="filter" hidden>Find a word <input type="search" autocomplete="off"></label>'


def place(phrase: str) -> tuple[bool, str]:
    """Where a word stands in the list: by its letters without an article, and what begins with none last."""
    word = re.sub(r"^(?:the|a|an) ", "", phrase.casefold())
    return (not word[0].isalpha(), word)


def letter_of(phrase: str) -> str:
    """The letter under which a word stands; what begins with none stands under #."""
    odd, word = place(phrase)
    return "#" if odd else word[0].upper()


def terms(order: list[Entry], path: Path = SITE / "glossary.toml") -> str:
    """The glossary as HTML: a sentence for each term, and the section that explains it.

    Raises:
        ValueError: a term leads to no lab, or the terms are not in the alphabet's order.
    """
    labs = {int(entry.lab[3:5]): entry.lab for entry in order if entry.lab.startswith("lab")}
    listed = tomllib.loads(path.read_text("utf-8"))
    if sorted(listed, key=str.casefold) != list(listed):
        raise ValueError("the glossary's terms are not in the alphabet's order")
    rows = []
    for term, (says, lab) in listed.items():
        if lab not in labs:
            raise ValueError(f"the glossary's term {term} leads to lab {lab}, which is not there")
        link = f'<a href="handbook/{labs[lab]}.html" aria-label="{term}: lab {lab:02}">lab {lab:02}</a>'
        rows.append(f'<div id="{make_id(term)}"><dt>{term}</dt><dd>{says} {link}</dd></div>')
    return f'<dl class="terms">\n{"".join(rows)}\n</dl>'


def write_glossary(course: Course, order: list[Entry], pages: Path) -> int:
    """Write `glossary.md`: for each word the other ways to say it, and the labs that use it; returns how many
    words it has."""
    ways: dict[str, dict[str, set[str]]] = {kind: defaultdict(set) for kind in KINDS}
    labs: dict[str, dict[str, dict[str, None]]] = {kind: defaultdict(dict) for kind in KINDS}
    for entry in order:
        number = short_title(entry).split(" · ")[0]
        link = f"[{number}](handbook/{entry.lab}.md)"
        for field in LabClaims(course, entry.lab).words.fields.values():
            rows = field.rows
            said = rows.entries.listed
            kinds = {"who": [*rows.who, *rows.whats], "verbs": rows.deeds, "more": rows.more}
            for kind, phrase in ((kind, phrase) for kind, phrases in kinds.items() for phrase in phrases):
                ways[kind][phrase] |= {" ".join(t.written or "#" for t in way) for way in said[phrase][1:]}
                labs[kind][phrase].setdefault(link)
    text = f"# Glossary\n\n{TERMS_INTRO}\n\n{raw(FILTER)}\n{raw(terms(order))}\n"
    text += f"## Words of the explanations\n\n{INTRO}\n"
    for kind, title in KINDS.items():
        phrases = sorted(ways[kind], key=place)
        firsts = {letter_of(phrase) for phrase in phrases} - {"#"}
        jumps = " ".join(f'<a href="#{kind}-{letter}">{letter}</a>' for letter in sorted(firsts))
        text += f"\n### {title}\n\n" + raw(f'<nav class="letters" aria-label="{title}">{jumps}</nav>')
        letters = groupby(phrases, key=lambda phrase: letter_of(phrase))
        for letter, same in ((letter, list(same)) for letter, same in letters):
            mark = f'<a id="{kind}-{letter}"></a>\n' if letter in firsts else ""
            text += f'\n<details class="group"><summary>{letter} <span>{len(same)}</span></summary>\n{mark}'
            text += "\n| word | read as the same | labs |\n|---|---|---|\n"
            for phrase in same:
                cells = (phrase, ", ".join(sorted(ways[kind][phrase])), ", ".join(labs[kind][phrase]))
                text += "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
            text += "\n</details>\n"
    (pages / "glossary.md").write_text(text, "utf-8")
    return sum(map(len, ways.values()))
