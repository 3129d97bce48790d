"""The cards on paper: an HTML page that prints one card a page, with the question above the answer."""

from __future__ import annotations

from html import escape

from .deck import Card, Deck

STYLE = """
@page {size: A6 landscape; margin: 10mm}
body {font-family: system-ui, sans-serif; color: #111; background: #fff; margin: 0 auto; max-width: 46em;
  padding: 0 1em}
.card {break-after: page; break-inside: avoid; border: 1px solid #999; border-radius: 8px; padding: 1em 1.2em;
  margin: 1em 0}
.card:last-child {break-after: auto}
.question {font-size: 1.25em; font-weight: 600; margin: 0 0 .8em}
.answer {border-top: 1px dashed #999; padding-top: .8em; line-height: 1.4; white-space: pre-line; margin: 0}
.number {font-size: .75em; color: #555; margin: .8em 0 0}
@media print {
  .screen {display: none}
  body {padding: 0; max-width: none}
  .card {border: 0; padding: 0; margin: 0}
}
"""


def print_view(deck: Deck) -> str:
    """One self-contained HTML page to read on the screen or to print (A6, or what the printer has)."""
    cards = "\n".join(_page(card, number, len(deck.cards)) for number, card in enumerate(deck.cards, 1))
    return f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>{escape(deck.title)}: flashcards</title><style>{STYLE}</style></head>
<body>
<header class="screen"><h1>{escape(deck.title)}</h1>
<p><button type="button" onclick="window.print()">Print {len(deck.cards)} cards, one a page</button></p>
</header>
<main>
{cards}
</main>
</body>
</html>
"""


def _page(card: Card, number: int, of: int) -> str:
    see = f" · {escape(card.see)}" if card.see else ""
    return (f'<section class="card"><p class="question">{escape(card.question)}</p>'
            f'<p class="answer">{escape(card.answer)}</p>'
            f'<p class="number">{number} of {of}{see}</p></section>')
