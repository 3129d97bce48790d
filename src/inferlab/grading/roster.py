"""The roster: who is in the course, under which names their work may arrive.

A CSV with the columns `id`, `name`, `aliases` (several, separated by `;`), `email`, and optionally
`late_days`. Names are compared after Unicode NFKC, case folding and collapsing of white space, so that the
same name typed on two keyboards is the same name; nothing is ever matched by likeness alone.
"""

import difflib
import re
from dataclasses import dataclass, field
from pathlib import Path

from inferlab.lab.identity import normalize

from .course import MOST_DAYS, CourseError
from .tables import read_table


class RosterError(CourseError):
    """The roster cannot be used; the message names the line and what to change."""


@dataclass(frozen=True)
class Learner:
    """One line of the roster. `late_days` is `None` where the course's own number counts."""

    id: str
    name: str = ""
    aliases: tuple[str, ...] = ()
    email: str = ""
    late_days: int | None = None

    @property
    def names(self) -> list[str]:
        """Every text that stands for this learner: id, name both ways round, aliases, e-mail address."""
        names = [self.id, self.name, *self.aliases, self.email]
        for name in (self.name, *self.aliases):
            last, _, first = name.partition(",")  # a roster may have "Lovelace, Ada"
            words = f"{first} {last}".split()
            for number in range(len(words)):  # a family name may have several words
                first, last = " ".join(words[:number]), " ".join(words[number:])
                names += [f"{last}, {first}", f"{last} {first}"] if number else [last]
        return [name for name in names if name.strip()]

    @property
    def first_and_last(self) -> tuple[str, str]:
        """The name in two parts, as nbgrader's gradebook has it: all words but the last, and the last."""
        last, comma, first = (part.strip() for part in self.name.partition(","))
        if comma:
            return first, last
        words = self.name.rpartition(" ")
        return words[0], words[2]


@dataclass(frozen=True)
class Roster:
    """The learners of a course, found by any of their names."""

    learners: tuple[Learner, ...]
    _index: dict[str, set[str]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, learners: list[Learner]) -> "Roster":
        """A roster of these learners. Raises `RosterError` for an id that comes twice or names no folder."""
        index: dict[str, set[str]] = {}
        seen: set[str] = set()
        for learner in learners:
            if normalize(learner.id) in seen:
                raise RosterError(f"the id '{learner.id}' occurs twice in the roster")
            if not re.fullmatch(r"[^\W_][\w.@-]{0,99}", learner.id) or ".." in learner.id:
                raise RosterError(f"'{learner.id}' cannot be an id: letters, digits, '.', '-', '_' and '@', "
                                  "beginning with a letter or digit (it names a folder)")
            seen.add(normalize(learner.id))
            for name in learner.names:
                index.setdefault(normalize(name), set()).add(learner.id)
        # An id always means its own learner, even where it is also another learner's alias.
        index.update({normalize(learner.id): {learner.id} for learner in learners})
        return cls(tuple(learners), index)

    @classmethod
    def load(cls, path: Path) -> "Roster":
        """Read the CSV at `path` (UTF-8; comma, semicolon or tab). Raises `CourseError`."""
        if not path.exists():
            raise RosterError(f"no roster at {path}; it is a CSV that begins with: id,name,aliases,email")
        learners = []
        for where, values in read_table(path, ("id",), ("name", "aliases", "email", "late_days")):
            if not values["id"]:
                raise RosterError(f"{where}: no id")
            late = values.get("late_days", "")
            if late and not (late.isdecimal() and len(late) < len(f"{MOST_DAYS}")):
                raise RosterError(f"{where}: late_days is '{late}', not a number of days")
            aliases = tuple(alias.strip() for alias in values.get("aliases", "").split(";") if alias.strip())
            learners.append(Learner(values["id"], values.get("name", ""), aliases, values.get("email", ""),
                                    int(late) if late else None))
        return cls.of(learners)

    def find(self, text: str) -> Learner | None:
        """The one learner that `text` names, or `None` when it names nobody or more than one."""
        ids = self._index.get(normalize(text), set())
        return next(learner for learner in self.learners if learner.id in ids) if len(ids) == 1 else None

    def resolve(self, text: str) -> str | None:
        """The id that `text` names, or `None`."""
        learner = self.find(text)
        return learner.id if learner else None

    def namesakes(self, text: str) -> list[str]:
        """Ids of all learners whom `text` names, when there is more than one."""
        ids = self._index.get(normalize(text), set())
        return sorted(ids) if len(ids) > 1 else []

    def similar(self, text: str) -> list[str]:
        """Up to three ids whose names look like `text`: a hint for a person, never a match."""
        close = difflib.get_close_matches(normalize(text), list(self._index), n=3, cutoff=0.75)
        return sorted({identity for name in close for identity in self._index[name]})

    def __contains__(self, identity: str) -> bool:
        return any(learner.id == identity for learner in self.learners)
