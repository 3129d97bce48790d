"""Which cards a learner knows, kept in a small file.

A card that is known comes back later each time. A card that is not known comes back at once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from datetime import date, timedelta
from pathlib import Path

from .deck import Card

DAYS = (1, 3, 7, 14, 30)
"""Days until a card is due again after it was known once, twice, ... in a row (Leitner's boxes)."""


class Progress:
    """`boxes` says for each card's id how often it was known in a row, and on which day it is due again.

    Args:
        file: a JSON file beside the notebook; the first answer makes it.
        today: gives the day, as `datetime.date`.

    Raises:
        ValueError: the file is there, but this class did not make it; it is left as it is.
    """

    def __init__(self, file: Path, today: Callable[[], date] = date.today) -> None:
        self.file, self.today = Path(file), today
        self.boxes: dict[str, tuple[int, date]] = {}
        if self.file.exists():
            try:
                for card, (box, due) in json.loads(self.file.read_text("utf-8")).items():
                    self.boxes[card] = (int(box), date.fromisoformat(due))
            except (ValueError, TypeError, AttributeError) as error:
                raise ValueError(f"{self.file.name} holds no progress that can be read ({error}): "
                                 "move it away, or mend it") from error

    def due(self, cards: Iterable[Card]) -> list[Card]:
        """The cards to ask today, in order: new ones, and those whose day has come."""
        return [card for card in cards if card.id not in self.boxes or self.boxes[card.id][1] <= self.today()]

    def answer(self, card: Card, known: bool) -> date:
        """Note an answer and save it; returns the day on which the card is due again."""
        box = self.boxes.get(card.id, (0, None))[0] + 1 if known else 0
        due = self.today() + timedelta(days=DAYS[min(box, len(DAYS)) - 1] if known else 0)
        self.boxes[card.id] = (box, due)
        unfinished = self.file.with_name(self.file.name + ".new")
        text = {name: [kept, day.isoformat()] for name, (kept, day) in sorted(self.boxes.items())}
        unfinished.write_text(json.dumps(text, indent=1) + "\n", "utf-8")
        os.replace(unfinished, self.file)
        return due
