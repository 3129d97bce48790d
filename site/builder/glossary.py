"""The page of all words that explanations are composed of, from the tables of the labs themselves."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from inferlab.grading.authoring.start_here import Entry
from inferlab.grading.course import Course
from inferlab.grading.gradebook.lab_claims import LabClaims

from .pages import short_title
from .templates import raw

INTRO = """\
Explanations are short sentences, composed of a lab's words. This is every word of every lab, and what is read
as the same, where # stands for a number. A lab's own table says which of them belong together; a word that it
lacks is not read there."""
KINDS = {"who": "Who, and what things are done to", "verbs": "Verbs", "more": "When, where and why"}


FILTER = '<label class="filter" hidden>Find a word <input type="search" autocomplete="off"></label>'


def place(phrase: str) -> tuple[bool, str]:
    """Where a word stands in the list: by its letters without an article, and what begins with none last."""
    word = re.sub(r"^(?:the|a|an) ", "", phrase.casefold())
    return (not word[0].isalpha(), word)


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
    text = f"# Words of the explanations\n\n{INTRO}\n\n{raw(FILTER)}"
    for kind, title in KINDS.items():
        phrases = sorted(ways[kind], key=place)
        firsts = {place(phrase)[1][0].upper(): phrase for phrase in reversed(phrases) if not place(phrase)[0]}
        jumps = " ".join(f'<a href="#{kind}-{letter}">{letter}</a>' for letter in sorted(firsts))
        text += f"\n## {title}\n\n" + raw(f'<nav class="letters" aria-label="{title}">{jumps}</nav>')
        text += "\n| word | read as the same | labs |\n|---|---|---|\n"
        for phrase in phrases:
            letter = place(phrase)[1][0].upper()
            mark = f'<a id="{kind}-{letter}"></a>' if firsts.get(letter) == phrase else ""
            cells = (mark + phrase, ", ".join(sorted(ways[kind][phrase])), ", ".join(labs[kind][phrase]))
            text += "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
    (pages / "glossary.md").write_text(text, "utf-8")
    return sum(map(len, ways.values()))
