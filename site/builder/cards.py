"""The page of flashcards: it asks what is due, and prints one card a page."""

from __future__ import annotations

import json
from pathlib import Path

from inferlab.grading.authoring.start_here import Entry
from inferlab.grading.course import Course

from .pages import all_cards
from .templates import filled, wide_page


def write_cards(course: Course, order: list[Entry], pages: Path) -> list[str]:
    """Write `cards.md`; returns the ids of the cards."""
    cards = all_cards(course, order)
    data = json.dumps(
        [{key: card[key] for key in ("id", "deck", "question", "answer", "see")} for card in cards],
        ensure_ascii=False,
    ).replace("</", "<\\/")
    html = filled("cards", cards=cards, decks=list(dict.fromkeys(card["deck"] for card in cards)), data=data)
    (pages / "cards.md").write_text(wide_page("Flashcards", INTRO, html), "utf-8")
    return [card["id"] for card in cards]


INTRO = """\
A card that you know comes back after 1, 3, 7, 14 and 30 days; one that you do not know comes back at once.
What you know stays in this browser."""
