"""Flashcards: a file of cards, a widget that remembers which are due, and a page to print.

    show_cards("inference")                        in a notebook
    inferlab cards inference --to cards.html       to print, one card a page
    show_cards("inference", "our-cards.toml")      a course's own cards after the bundled ones

A file of cards is TOML: see `inference.toml` beside this module.
"""

from .deck import Card, Deck, load_cards
from .printing import print_view
from .progress import Progress
from .widget import show_cards

__all__ = ["Card", "Deck", "Progress", "load_cards", "print_view", "show_cards"]
