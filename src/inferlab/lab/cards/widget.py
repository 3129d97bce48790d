"""The flashcards in a notebook: click or press Enter to turn a card, then say whether you knew it."""

from __future__ import annotations

import random
from collections.abc import Callable
from html import escape
from pathlib import Path

import ipywidgets
from IPython.display import HTML, display, publish_display_data

from .deck import Card, Deck, load_cards
from .progress import Progress

STYLE = """<style>
.inferlab-card details {border: 1px solid #7a8b99; border-radius: 8px; min-height: 11em; max-width: 46em;
  font-size: 16px; line-height: 1.45;
  background: var(--jp-layout-color0, Canvas); color: var(--jp-content-font-color1, CanvasText)}
.inferlab-card summary {cursor: pointer; padding: 1.1em 1.3em; font-weight: 600; font-size: 1.15em;
  list-style: none}
.inferlab-card summary::-webkit-details-marker {display: none}
.inferlab-card summary:focus-visible {outline: 3px solid #2f6ea5; outline-offset: -3px; border-radius: 8px}
.inferlab-card summary::after {content: "click, or press Enter, to turn the card"; display: block;
  margin-top: .8em; font-weight: 400; font-size: .8em; opacity: .75}
.inferlab-card details[open] summary::after {content: ""; margin: 0}
.inferlab-card .answer {padding: 0 1.3em 1.1em; white-space: pre-line}
</style>"""


class CardBox(ipywidgets.VBox):
    """One card at a time, with its buttons."""

    def __init__(self, deck: Deck, progress: Progress, rng: random.Random | None = None) -> None:
        self.deck, self.progress, self.rng = deck, progress, rng or random.Random()
        self.queue = progress.due(deck.cards)
        self.everything = False
        self._face = ipywidgets.HTML()
        self._face.add_class("inferlab-card")
        self._status = ipywidgets.HTML()
        button = self._button
        self._know = button("Know it", "check", "comes back in some days", lambda _: self.answer(True))
        self._again = button("Again", "repeat", "comes back in this round", lambda _: self.answer(False))
        self._shuffle = button("Shuffle", "random", "mix the cards that are left", lambda _: self.shuffle())
        self._all = button("All cards", "list", "go through all, due or not", lambda _: self.restart())
        super().__init__([
            ipywidgets.HTML(f"{STYLE}<b>{escape(deck.title)}</b>"), self._face,
            ipywidgets.HBox([self._know, self._again, self._shuffle, self._all]), self._status,
        ])
        self._show()

    def _ipython_display_(self) -> None:
        """The box, which needs its kernel, and below it every card folded, which needs nothing."""
        publish_display_data(self._repr_mimebundle_())
        display(HTML(folded(self.deck)))

    @staticmethod
    def _button(text: str, icon: str, tooltip: str,
                handler: Callable[[ipywidgets.Button], None]) -> ipywidgets.Button:
        button = ipywidgets.Button(description=text, icon=icon, tooltip=tooltip)
        button.on_click(handler)
        return button

    @property
    def card(self) -> Card | None:
        """The card that is shown; `None` when the round is over."""
        return self.queue[0] if self.queue else None

    def answer(self, known: bool) -> None:
        """Note the learner's answer: a known card leaves the round, any other comes again at its end."""
        if not self.queue:
            return
        card = self.queue.pop(0)
        self.progress.answer(card, known)
        if not known:
            self.queue.append(card)
        self._show()

    def shuffle(self) -> None:
        """Mix the cards that are left."""
        self.rng.shuffle(self.queue)
        self._show()

    def restart(self) -> None:
        """Start a round of all cards, due or not."""
        self.queue = list(self.deck.cards)
        self._show()

    def _show(self) -> None:
        self._know.disabled = self._again.disabled = self._shuffle.disabled = not self.queue
        if self.queue:
            self._face.value = face(self.queue[0])
            self._status.value = f"{len(self.queue)} left in this round"
            return
        ids = {card.id for card in self.deck.cards}
        days = [day for name, (_, day) in self.progress.boxes.items() if name in ids]
        self._face.value = "<p>Nothing is due.</p>"
        self._status.value = f"next on {min(days).isoformat()}" if days else ""


def face(card: Card) -> str:
    """A card as HTML that turns without the kernel, so that a saved notebook still does."""
    see = f"<br><small>{escape(card.see)}</small>" if card.see else ""
    return (f'<details><summary>{escape(card.question)}</summary>'
            f'<div class="answer">{escape(card.answer)}{see}</div></details>')


def folded(deck: Deck) -> str:
    """Every card of a set as HTML that opens without a kernel."""
    cards = "".join(f"<li>{face(card)}</li>" for card in deck.cards)
    return (f"<details><summary>All {len(deck.cards)} cards, which open without a kernel</summary>"
            f'<ul style="list-style:none;padding:0">{cards}</ul></details>')


def show_cards(*sources: str | Path, folder: str | Path = ".") -> CardBox:
    """The widget over the cards that are due today.

    Args:
        sources: sets of cards, as :func:`load_cards` takes them.
        folder: where progress is kept, in `SET.cards.json`, SET being the first source's name.
    """
    return CardBox(load_cards(*sources), Progress(Path(folder) / f"{Path(sources[0]).stem}.cards.json"))
