"""A line of words and how far it is read: passes words and phrases that stand here, or stays where it is."""

import difflib
from collections.abc import Sequence

from .table import Form, Phrase, Rows, Said, Statement
from .tokens import DENIALS, JOINS, LISTS, MAY, Token, only_behind

MOST = 16
"""Statements that are read in one field, and entries in one list."""
TOO_MANY = f"only {MOST} statements are read."


class Stop(Exception):
    """Why a sentence cannot be read."""


class Cursor:
    """The tokens of one sentence, read from left to right with the words of one field.

    `before` is what was said in the clause before, of which `it` may speak.
    """

    def __init__(self, line: list[Token], rows: Rows, before: list[Statement]) -> None:
        self.tokens = only_behind(line, rows.only_after) if Token("only") in line else line
        self.rows, self.before, self.at = rows, before, 0

    @property
    def word(self) -> str:
        """The word that stands here; "" at the end."""
        return self.tokens[self.at].word if self.at < len(self.tokens) else ""

    def passed(self, *words: str) -> bool:
        """Pass one of `words`, if it stands here."""
        found = self.word in words and self.at < len(self.tokens)
        self.at += found
        return found

    def passed_all(self, words: Sequence[Token]) -> bool:
        """Pass `words`, if all of them stand here."""
        if taken := self.take(words):
            self.at = taken[0]
        return taken is not None

    def join(self, joins: frozenset[str] = JOINS) -> set[str]:
        """Pass and give what joins two entries or sentences here."""
        start = self.at
        while self.word in joins:
            self.at += 1
        return {token.word for token in self.tokens[start : self.at]}

    def denial(self) -> tuple[str, ...]:
        """The one of `DENIALS` that stands here; () where none does."""
        here = tuple(token.word for token in self.tokens[self.at : self.at + 4])
        return next((words for words in DENIALS if here[: len(words)] == words), ())

    def take(self, form: Sequence[Token]) -> tuple[int, Form] | None:
        """(where `form` ends if it stands here, its open amounts); commas inside it do not matter."""
        at, amounts = self.at, []
        for number, wanted in enumerate(form):
            while number and at < len(self.tokens) and self.tokens[at].word == "," != wanted.word:
                at += 1
            if at >= len(self.tokens) or not wanted.takes(self.tokens[at]):
                return None
            if wanted.word == "#" and not wanted.amount:
                amounts.append(self.tokens[at])
            at += 1
        return at, tuple(amounts)

    def every(self, phrases: list[Phrase], before: Form = ()) -> list[tuple[int, Said]]:
        """(where it ends, what was said) for each of `phrases` that stands here, the longest first.

        Its first words may have been said `before`.
        """
        offered = self.rows.starting(phrases).get(self.word, [])
        if before:
            ways = ((phrase, form) for phrase in phrases for form in self.rows.forms(phrase))
            offered = [(p, form[len(before) :]) for p, form in ways if form[: len(before)] == before != form]
        found = [(end[0], Said(p, end[1])) for p, form in offered if (end := self.take(form))]
        return sorted(found, key=lambda one: -one[0])

    def possible(self) -> list[tuple[int, Said, Form]]:
        """(where it ends, the verb, nothing) for each verb with "may" whose words behind it stand here."""
        return [(end, verb, ()) for may in MAY for end, verb in self.every(self.rows.deeds, may)]

    def parted(self, phrases: list[Phrase]) -> list[tuple[int, Said, Form]]:
        """(where it ends, what was said, what is still to be said) where only the first words stand here."""
        forms = self.rows.starting(phrases).get(self.word, [])
        ways = ((phrase, form[:at], form[at:]) for phrase, form in forms for at in range(1, len(form)))
        return [(end[0], Said(p, end[1]), tail) for p, head, tail in ways if (end := self.take(head))]

    def one(self, phrases: list[Phrase], before: Form = ()) -> Said | None:
        """Pass the longest of `phrases` that stands here."""
        found = self.every(phrases, before)
        if not found:
            return None
        self.at, said = found[0]
        return said

    def some(
        self, phrases: list[Phrase], verbs: list[Phrase] | None = None, joins: frozenset[str] = LISTS
    ) -> list[Said]:
        """Pass one or several of `phrases`, joined by `joins`; one before one of `verbs` is a new who."""
        found: list[Said] = []
        while True:
            start = self.at
            if found and (not self.join(joins) or (verbs and self._new_clause(verbs))):
                break
            if (one := self.one(phrases)) is None:
                break
            found.append(one)
            if len(found) > MOST:
                raise Stop(TOO_MANY)
        self.at = start
        return found

    def _new_clause(self, verbs: list[Phrase]) -> bool:
        """Whether who stands here, and a verb after it."""
        start = self.at
        new = bool(self.one(self.rows.who) and (self.every(verbs) or self.denial()))
        self.at = start
        return new

    def stop(self, hint: str, expected: list[Phrase]) -> Stop:
        """Why the sentence is not read from here on: an `expected` phrase that is misspelled, or `hint`."""
        if self.at >= len(self.tokens):
            return Stop("it breaks off: " + hint)
        if self.word == "or" and not {"not", "never", "neither"} & {token.word for token in self.tokens}:
            hint = "`or` leaves open which of them: say one."
        rest = " ".join(token.written for token in self.tokens[self.at : self.at + 4])
        near = {form[0].word: p for p in expected for form in self.rows.forms(p) if form}
        close = difflib.get_close_matches(self.word, near, n=1, cutoff=0.75)
        if close and close[0] != self.word:
            return Stop(f"at `{rest}`, did you mean `{near[close[0]]}`?")
        return Stop(f"at `{rest}`, {hint}")
