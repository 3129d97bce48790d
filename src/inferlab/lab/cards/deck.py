"""A set of flashcards and the files it is read from.

A set is one TOML file. A course adds cards of its own in further files.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

BUNDLED = Path(__file__).parent
_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_FIELDS = {"id", "question", "answer", "see"}


@dataclass(frozen=True)
class Card:
    """One flashcard.

    Attributes:
        id: what progress is kept under, so that the wording may change.
        question: its front.
        answer: its back.
        see: a lab that says more; may be empty.
    """

    id: str
    question: str
    answer: str
    see: str = ""


@dataclass(frozen=True)
class Deck:
    """Cards with a title, in the order of their files."""

    title: str
    cards: tuple[Card, ...]


def load_cards(*sources: str | Path) -> Deck:
    """The cards of all sources, one after the other; a later card replaces an earlier one of the same id.

    Args:
        sources: names of bundled sets ("inference") or paths of TOML files. The first gives the title.

    Raises:
        FileNotFoundError: a source is neither; the message lists the bundled sets.
        ValueError: a file is not made as it should be, saying where and how.
    """
    if not sources:
        raise ValueError("name at least one set of cards, such as 'inference'")
    title, cards = "", {}
    for source in sources:
        path = _path(source)
        try:
            content = tomllib.loads(path.read_text("utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{path.name} is no TOML file: {error}") from error
        title = title or str(content.get("title", "")).strip() or path.stem
        found = content.get("card")
        if not isinstance(found, list) or not found:
            raise ValueError(f"{path.name} holds no card: write [[card]], then id, question and answer")
        own: set[str] = set()
        for number, entry in enumerate(found, 1):
            card = _card(entry, f"{path.name}, card {number}")
            if card.id in own:
                raise ValueError(f"{path.name} holds two cards with the id {card.id!r}")
            own.add(card.id)
            cards[card.id] = card
    return Deck(title, tuple(cards.values()))


def _path(source: str | Path) -> Path:
    bundled = BUNDLED / f"{source}.toml"
    if isinstance(source, str) and _ID.fullmatch(source) and bundled.exists():
        return bundled
    if Path(source).is_file():
        return Path(source)
    names = ", ".join(sorted(path.stem for path in BUNDLED.glob("*.toml")))
    raise FileNotFoundError(f"there are no cards {str(source)!r}: "
                            f"give the path of a TOML file, or one of {names}")


def _card(entry: object, where: str) -> Card:
    if not isinstance(entry, dict) or not all(isinstance(value, str) for value in entry.values()):
        raise ValueError(f"{where}: every field is text in quotes")
    unknown = sorted(set(entry) - _FIELDS)
    if unknown:
        raise ValueError(f"{where}: unknown {', '.join(unknown)}")
    missing = sorted({"id", "question", "answer"} - {name for name, value in entry.items() if value.strip()})
    if missing:
        raise ValueError(f"{where}: {', '.join(missing)} is missing")
    if not _ID.fullmatch(entry["id"]):
        raise ValueError(f"{where}: an id is lower-case words with hyphens, not {entry['id']!r}")
    return Card(**{name: value.strip() for name, value in entry.items()})
