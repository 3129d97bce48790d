"""Reads sentences that are composed of a lab's words: who does what, and what may be added.

    sentence := clause ("and" clause)*
    clause   := more*  [who ("and" who)*]  deed
    deed     := ["does not"] verb  [what ("and" what)*]  more*

Beside that, "what is done by who" is "who does what", and "the noise, not the picture" says that one is so
and denies the other. A sentence ends with its line, a full stop or a semicolon; one that runs on over lines
is put together.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .cursor import MOST, TOO_MANY, Cursor, Stop
from .table import OPEN, Found, NotRead, Phrase, Rows, Said, Statement, listing, with_shared
from .tokens import DENIED_LISTS, INSTEAD, IS, JOINS, LISTS, PRONOUNS, THINGS, Token, participles, tokens

LONGEST = 2000
"""Characters that are read in one field."""
WHICH = "say which is whose: give each a sentence of its own."


@dataclass(frozen=True)
class Begun:
    """How a clause begins: who does it, who does not ("A, not B"), and what is added in front.

    `denied`: it goes on with a denial ("not A or B"), or nobody does it ("neither A nor B").
    """

    who: list[Said]
    turned: list[Said]
    first: tuple[Said, ...]
    denied: bool


def read_field(text: str, rows: Rows) -> Found:
    """The statements of one field's text; never raises on what a learner wrote."""
    found, before = Found(), list[Statement]()
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
        apart, last = Found(), before
        for line in lines:
            found, last = _read_lines(line, rows, last)
            apart += found
        if any(isinstance(one, NotRead) for one in apart):
            whole, end = _read_lines(" ".join(lines), rows, before)
            if not any(isinstance(one, NotRead) for one in whole):
                return whole, end
        return apart, last
    try:
        said, last = Sentence(tokens(lines[0].strip(" .!:-*•")), rows, before).read()
        return [*said], last
    except Stop as stop:
        return [NotRead(re.sub(r"\s+", " ", lines[0].strip())[:120], str(stop))], []


class Sentence(Cursor):
    """One sentence; `it`, or nobody, is who the clause `before` was about.

    Behind a verb, `it` and `them` are what that clause did something to, if that was one thing. Where what a
    method reads does not stand, the cursor stays.
    """

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
        done = self.passive(first)
        end, self.at = self.at, begun
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
        try:
            if denying and not again:
                raise Stop("say again who: after a denial it is not clear whether this is denied, too.")
            if neither and denial:
                raise Stop("it is denied twice.")
            if not who:
                whom = " or end with by whom" * (IS in self.tokens[self.at :])
                raise self.stop(f"begin with who{whom}: {listing(self.rows.who)}.", self.rows.who)
            said = self.deed(Begun(who, turned, first, also), last)
        except Stop:
            if not done:
                raise
            self.at = begun
        if done and end > self.at:
            self.at, said, denial = end, done, ()
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

    # -- who does what --------------------------------------------------------------------------------------
    def deed(self, begun: Begun, last: Statement | None) -> list[Statement]:
        """A verb with what follows it; of several verbs that stand here, the one that reads furthest.

        After `last`, an amount or a thing alone goes on with its verb: "has length 2 here and 1 there".
        Raises `Stop` where nothing can be read.
        """
        start, best = self.at, None
        verbs = self.rows.deeds
        found = [(end, verb, tail, begun.denied) for end, verb, tail in self._verbs()]
        if denial := self.denial():
            self.at += len(denial)
            behind = self._verbs()
            if denial[0] == "is":
                behind = [(end, verb, ()) for end, verb in self.every(verbs, (IS,))]
                behind += [(self.at, Said(v), ()) for v in verbs if (IS,) in self.rows.forms(v)]
            elif denial[0] in ("may", "can", "cannot", "ca"):
                behind = self.possible()
            elif denial in (("doe", "not"), ("never",)):
                behind += self.possible()
            found += [
                (end, verb, tail, True)
                for end, verb, tail in behind
                if denial != ("not",) or not self.rows.verbs[verb.phrase]
            ]
            self.at = start
        if last and (begun.denied or not last.denied):
            found += [(end, verb, (), begun.denied) for end, verb in self.again(last.verb, verbs)]
            if self.every(self.rows.verbs[last.verb.phrase]):
                found.append((start, last.verb, (), begun.denied))
        for end, verb, tail, denied in found:
            self.at = end
            said = self._rest(begun, verb, tail, denied, start)
            if said and (best is None or self.at > best[0]):
                best = self.at, said
        if best is not None:
            self.at = best[0]
            return best[1]
        if found:
            self.at, verb = found[0][:2]
            offered = self.rows.verbs[verb.phrase]
            raise self.stop(f"after `{verb}` comes one of: {listing(offered)}.", offered)
        next_ones = [*verbs, *self.rows.more] if last else verbs
        hint = "the sentence may end here, or go on with" if last else "here comes a verb"
        raise self.stop(f"{hint}: {listing(next_ones)}.", next_ones)

    def _verbs(self) -> list[tuple[int, Said, tuple[Token, ...]]]:
        """(where it ends, the verb, what of it comes behind what follows it) for each verb here."""
        whole = [(end, verb, ()) for end, verb in self.every(self.rows.deeds)]
        return whole + [one for one in self.parted(self.rows.deeds) if self.rows.verbs[one[1].phrase]]

    def _rest(
        self, begun: Begun, verb: Said, tail: tuple[Token, ...], denied: bool, start: int
    ) -> list[Statement]:
        """What follows a verb that stands at `start`, and what it says; nothing where what it needs lacks.

        What is denied comes first: the last statement is the one that the sentence goes on with.
        """
        verbs, offered = self.rows.deeds, self.rows.verbs[verb.phrase]
        if offered and not denied and not self.every(offered) and self.passed("no", "neither"):
            denied = True
        else_what = self.turned(offered, verbs)
        if else_what:
            self.join()
        denies = denied or any(token.word == "not" for token in self.tokens[start : self.at])
        what: list[Said | None] = [*self.some(offered, verbs, DENIED_LISTS if denies else JOINS)]
        only = bool(offered) and not what and not denied and self.passed("only", "just")
        if only:
            what = [*self.some(offered, verbs)]
        if denied and offered and not what:
            what = [*self.some(self.rows.whats, verbs, DENIED_LISTS)]
        while what and denied and self.passed_all((Token("and"), Token("no"))):
            what += self.some(offered, verbs, DENIED_LISTS)
        if offered and not what and (it := self.thing()) and it.phrase in offered and self.passed(*THINGS):
            what = [it]
        if (offered and not what) or not self.passed_all(tail):
            return []
        each = self.each_its_own(verb, len(begun.who))
        more, else_more, else_amount = begun.first, list[Said](), list[Said]()
        counted = verb if verb.amounts else next((one for one in what if one and one.amounts), None)
        ends = [form[-1].word for form in self.rows.forms(verb.phrase) if len(form) > 1]
        here = -1
        while here < self.at:
            here = self.at
            self.join()
            added = self.additions(after=True)
            self.at = self.at if added and else_more else here
            more += added if self.at > here else self.additions(after=True)
            else_what += self.turned(offered, verbs, denied, ends)
            ahead = [one.word for one in self.tokens[self.at : self.at + 2]]
            if not denied and ahead in ([",", "not"], [",", "never"]):
                else_what += self.turned(self.rows.whats, verbs, ends=ends)
            else_amount += self.turned_amount(counted, denied) if counted else []
            else_more += self.turned(self.rows.more, denied=denied)
        else_who = begun.turned + ([] if denied else self.turned(self.rows.who, verbs))
        if only:
            else_what += [Said(p) for p in offered if "#" not in p and p not in {o.phrase for o in what if o}]
        said = [replace(one, denied=denied) for one in self.dealt(begun.who, each, what or [None], more)]
        other = list[Statement]()
        for amount in else_amount:
            pair = [[one.amount and one.amount.value for one in it.amounts] for it in (amount, counted) if it]
            differs = pair[0] != pair[-1]
            beside = [replace(one, denied=not denied, implied=differs and not denied) for one in said]
            other += [replace(b, verb=amount) if counted is verb else replace(b, what=amount) for b in beside]
            said = [replace(one, implied=differs and denied) for one in said]
        found = _with_contrary(said, denied, what=else_what, more=[(one,) for one in else_more], who=else_who)
        return found + other if denied else other + found

    # -- the passive ----------------------------------------------------------------------------------------
    def passive(self, first: tuple[Said, ...]) -> list[Statement]:
        """What is done by who, as who does what; nothing where no such thing stands here.

        "by" may be missing where only one can have done it; after a passive, what is done: "and left by A".
        """
        start, best = self.at, None
        again = [one.what for one in self.before[-1:] if one.passive and one.what]
        if IS not in self.tokens[start:] and not again:
            return []
        neither = self.passed("neither")
        begin = self.at
        for verb, offered in self.rows.verbs.items():
            self.at = begin
            parted = [([what], end, tail) for end, what, tail in self.parted(offered)]
            whole = self.some(offered, joins=DENIED_LISTS if neither else LISTS)
            for what, end, tail in [(whole, self.at, ()), *parted, (again, begin, ())]:
                self.at = end
                if not (what and what[0].phrase in offered and (self.passed("is") or what is again)):
                    continue
                denied = neither or self.passed("not", "never")
                done = [form for form in self.rows.forms(verb) if self.word in participles(form[0].written)]
                here = self.tokens[self.at : self.at + 1]
                if not any(self.passed_all((*here, *form[1:])) for form in done) or not self.passed_all(tail):
                    continue
                more = first + self.additions(after=True)
                who = []
                if self.passed("by"):
                    them = self.before and self.passed(*THINGS)
                    who = [self.before[-1].who] if them else self.some(self.rows.who, self.rows.deeds)
                turned = self.turned(self.rows.who, self.rows.deeds, denied, ("by",)) if who else []
                more += self.additions(after=True)
                else_more = [(one,) for one in self.turned(self.rows.more, denied=denied)]
                else_what = self.turned(offered)
                if turned or else_more or else_what:
                    self.join(LISTS)
                if len(self.rows.who) == 1:
                    who = who or [Said(self.rows.who[0])]
                if who and (best is None or self.at > best[0]):
                    said = [replace(s, denied=denied) for s in self.dealt(who, [Said(verb)], what, more)]
                    best = self.at, _with_contrary(said, denied, who=turned, what=else_what, more=else_more)
        self.at, found = best or (start, [])
        return [replace(one, passive=True) for one in found]

    # -- what is added --------------------------------------------------------------------------------------
    def additions(self, after: bool = False) -> tuple[Said, ...]:
        """What is added, one after the other; "from the latents and the noise" adds twice.

        `after` a deed, one that stands between a comma and the next who or verb belongs to what comes then.
        """
        found: list[Said] = []
        while True:
            start = self.at
            joined = self.join(LISTS)
            one = self.one(self.rows.more)
            if one is None and found and joined:
                again = self.again(found[-1], self.rows.more)
                self.at, one = again[0] if again else (self.at, None)
            begins = self.word in PRONOUNS | {"#"} or self.every(self.rows.who) or self.every(self.rows.deeds)
            if one is None or (after and joined and begins):
                self.at = start
                return tuple(found)
            found.append(one)

    def thing(self) -> Said | None:
        """The one thing that the clause before spoke of behind its verb; None where there were several."""
        things = {one.what for one in self.before}
        several = len(things) != 1 or any(not m.scope for one in self.before for m in one.more)
        return None if several else next(iter(things))

    # -- the contrary ---------------------------------------------------------------------------------------
    def _turns(self, denied: bool) -> bool:
        """Pass what turns what was said into its contrary: "not", or after a denial "but"."""
        self.join(LISTS if denied else JOINS)
        if denied:
            return self.passed("but")
        return self.passed("not", "never") or any(self.passed_all(words) for words in INSTEAD)

    def turned(
        self,
        phrases: list[Phrase],
        verbs: list[Phrase] | None = None,
        denied: bool = False,
        ends: Sequence[str] = (),
    ) -> list[Said]:
        """Those of `phrases` of which the contrary is said here: "not B", after a denial "but B".

        The last word of a verb, one of `ends`, may be said again: "is shared along A, not along B".
        """
        start = self.at
        if self._turns(denied):
            self.passed(*ends)
            found = self.some(phrases, verbs, LISTS if denied else DENIED_LISTS)
            if found and not (verbs and (self.every(verbs) or self.denial())):
                return found
        self.at = start
        return []

    def turned_amount(self, said: Said, denied: bool) -> list[Said]:
        """`said` with another amount, of which the contrary is said: "is 2, not 1", "goes to 3, not to 2"."""
        start = self.at
        if self._turns(denied):
            if again := self.again(said, self.rows.deeds):
                self.at, other = again[0]
                return [other]
            self.passed(*{t.word for form in self.rows.forms(said.phrase) for t in form} - {"#"})
            if self.passed("#"):
                return [Said(said.phrase, (*said.amounts[:-1], self.tokens[self.at - 1]))]
        self.at = start
        return []

    # -- amounts --------------------------------------------------------------------------------------------
    def again(self, last: Said, phrases: list[Phrase]) -> list[tuple[int, Said]]:
        """One of `phrases` that goes on with the first words of `last`: "has length 2 ... and (length) 1"."""
        forms = self.rows.forms(last.phrase)
        more = phrases is self.rows.more
        ways = ((form[:at], form[at:]) for form in forms for at in range(1, len(form)))
        heads = {head for head, tail in ways if more or (OPEN in tail and OPEN not in head)}
        found = [one for head in sorted(heads, key=len) for one in self.every(phrases, head)]
        other = [one for one in found if one[1].amounts or one[1].phrase != last.phrase]
        return sorted(other, key=lambda one: -one[0])[:1]

    def each_its_own(self, verb: Said, several: int) -> list[Said]:
        """`verb` once for each of `several` who have amounts of their own: "are 128 and 32 wide"."""
        found, start, verbs = [verb], self.at, self.rows.deeds
        while several > 1 and verb.amounts and self.join(LISTS) and (again := self.again(verb, verbs)):
            self.at, one = again[0]
            found.append(one)
            start = self.at
        self.at = start
        if len(found) not in (1, several):
            raise Stop(WHICH)
        return found

    def dealt(
        self, who: list[Said], verbs: list[Said], what: Sequence[Said | None], more: tuple[Said, ...]
    ) -> list[Statement]:
        """Everyone with everything; but of as many amounts as there are of these, each has its own.

        `verbs` is one for all, or one for each who. "multiplies the tokens and the scores by 4 and 16".
        """
        owners = zip(who, verbs if len(verbs) > 1 else verbs * len(who), strict=True)
        each = [Statement(w, v, o, more) for w, v in owners for o in what]
        listed = [m for m in more if m.amounts and sum(n.phrase == m.phrase for n in more) > 1]
        if not listed or len(each) == 1:
            return each
        if len(listed) != len(each):
            raise Stop(WHICH)
        common = tuple(one for one in more if one not in listed)
        return [replace(s, more=(*common, own)) for s, own in zip(each, listed, strict=True)]


def _with_contrary(said: list[Statement], denied: bool, **other: Sequence[Any]) -> list[Statement]:
    """What is `said`, and its contrary with each `other` part; what is denied comes first."""
    parts = ((part, new) for part, several in other.items() for new in several)
    turned = list(dict.fromkeys(replace(o, denied=not denied, **{p: new}) for p, new in parts for o in said))
    return said + turned if denied else turned + said
