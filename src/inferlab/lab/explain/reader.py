"""Reads sentences that are composed of a lab's words: who does what, and what may be added.

    sentence := clause ("and" clause)*
    clause   := more*  [who ("and" who)*]  deed
    deed     := ["does not"] verb  [what ("and" what)*]  more*

Beside that, "what is done by who" is "who does what", and "the noise, not the picture" says that one is so
and denies the other. A sentence ends with its line, a full stop or a semicolon; one that runs on over lines
is put together.
"""

import re

from .clauses import Begun, Clauses
from .cursor import MOST, TOO_MANY, Stop
from .table import Found, NotRead, Rows, Said, Statement, listing, with_shared
from .tokens import DENIED_LISTS, JOINS, LISTS, PRONOUNS, tokens

LONGEST = 2000
"""Characters that are read in one field."""


def read_field(text: str, rows: Rows) -> Found:
    """The statements of one field's text; never raises on what a learner wrote."""
    found: Found = []
    before: list[Statement] = []
    if len(text) > LONGEST:
        found.append(NotRead(text[:40] + " …", f"only {LONGEST:,} characters are read in one field."))
    for part in re.split(r"(?<=[\w)\]`])\.(?:\s+|$)|;", text[:LONGEST]):
        if part.strip() and len(found) <= MOST:
            more, before = _read_lines(part.strip(), rows, before)
            found += more
    if len(found) > MOST:
        found[MOST:] = [NotRead(str(found[MOST]), TOO_MANY)]
    return found


def _read_lines(part: str, rows: Rows, before: list[Statement]) -> tuple[Found, list[Statement]]:
    """A part that holds one sentence over several lines, or a sentence in each of them; and its last clause.

    That clause is empty where the last sentence was not read: `it` may be somebody of whom that one spoke.
    """
    lines = [line for line in part.split("\n") if line.strip()]
    if len(lines) > MOST:
        return [NotRead(lines[0].strip()[:120], TOO_MANY)], []
    if len(lines) > 1:
        apart: Found = []
        last = before
        for line in lines:
            found, last = _read_lines(line, rows, last)
            apart += found
        if any(isinstance(one, NotRead) for one in apart):
            whole, end = _read_lines(" ".join(lines), rows, before)
            if not any(isinstance(one, NotRead) for one in whole):
                return whole, end
        return apart, last
    try:
        said, last = _Sentence(tokens(lines[0].strip(" .!:-*•")), rows, before).read()
        return [*said], last
    except Stop as stop:
        return [NotRead(re.sub(r"\s+", " ", lines[0].strip())[:120], str(stop))], []


class _Sentence(Clauses):
    """One sentence; `it`, or nobody, is who the clause `before` was about."""

    def read(self) -> tuple[list[Statement], list[Statement]]:
        """The statements of the sentence, and those of its last clause.

        Raises `Stop` where something in it is not read.
        """
        if not self.tokens:
            raise Stop("there are no words in it.")
        clauses, front, denying, contrast = list[list[Statement]](), tuple[Said, ...](), False, 0
        while self.at < len(self.tokens) or not clauses:
            last = clauses[-1][-1] if clauses else None
            joined = self.join(JOINS | DENIED_LISTS if last and last.denied else JOINS)
            first = self.additions()
            self.join()
            said, denying = self._clause(first, joined, last, denying)
            denied = last.more if last and last.denied and last.who == said[-1].who else ()
            clauses.append(with_shared(said, front, denied))
            contrast = contrast if joined <= LISTS else len(clauses) - 1
            if sum(map(len, clauses)) > MOST:
                raise Stop(TOO_MANY)
            front, self.before = first or front, said
        end = clauses[-1][-1]  # what is added there may hold for the clauses before, of the same who
        for at in range(contrast, len(clauses) - 1):
            if clauses[at][-1].who == end.who:
                clauses[at] = with_shared(clauses[at], (), end.more)
        return [one for said in clauses for one in said], self.before

    def _clause(
        self, first: tuple[Said, ...], joined: set[str], last: Statement | None, denying: bool
    ) -> tuple[list[Statement], bool]:
        """The statements of one clause, and whether a verb that follows may be denied with it."""
        begun = self.at
        neither = self.passed("neither")
        turned = [] if neither else self.turned(self.rows.who)
        if turned:
            self.join()
        who = self.some(self.rows.who, joins=DENIED_LISTS if neither else LISTS)
        if neither and not who:
            neither, self.at = False, begun
        turned += self.turned(self.rows.who) if who else []
        if turned:
            self.join(LISTS)
        also = neither or bool(joined & {"or", "nor"})
        pronoun = self.word if self.word in PRONOUNS and not who else ""
        self.at += bool(pronoun)
        denial = self.denial()
        again = bool(who or pronoun or also or denial or "but" in joined)
        who = who or self._subject(pronoun)
        said, stop = list[Statement](), None
        try:
            if denying and not again:
                raise Stop("after a denial, say again who: or is that denied, too?")
            if neither and denial:
                raise Stop("it is denied twice.")
            if not who:
                raise self.stop(f"begin with who: {listing(self.rows.who)}.", self.rows.who)
            said = self.deed(Begun(who, turned, first, also), last)
        except Stop as stopped:
            stop = stopped
        end, self.at = self.at, begun
        done = self.passive(first)
        if done and (stop or self.at > end):
            said, denial = done, ()
        elif stop:
            raise stop
        else:
            self.at = end
        return said, said[-1].denied and (also or (bool(denial) and denial[0] != "is"))

    def _subject(self, pronoun: str) -> list[Said]:
        """Who `it`, `they` or nobody is: who did the last clause.

        Nobody, where `it` may be one of several, or what something was done to: "A is computed by B, and it".
        """
        if not self.before:
            return []
        last = self.before[-1]
        found = list(dict.fromkeys(one.who for one in self.before if one.denied == last.denied))
        done = {one.what.phrase for one in self.before if one.passive and one.what}
        unclear = done & set(self.rows.who) - {one.phrase for one in found}
        return [] if unclear or (pronoun == "it" and len(found) > 1) else found
