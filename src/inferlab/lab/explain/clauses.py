"""Reads one clause: who does what, or what is done by who."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .cursor import MOST, TOO_MANY, Cursor, Stop
from .table import Phrase, Said, Statement, listing
from .tokens import DENIED_LISTS, INSTEAD, IS, JOINS, LISTS, PRONOUNS, THINGS, Token, participles

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


class Clauses(Cursor):
    """Reads one clause where the cursor stands; where none stands, the cursor stays.

    Behind a verb, `it` and `them` are what the clause `before` did something to, if that was one thing.
    """

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
            found += [
                (end, verb, tail, True)
                for end, verb, tail in behind
                if denial != ("not",) or not self.rows.verbs[verb.phrase]
            ]
            self.at = start
        if last and (begun.denied or not last.denied):
            found += [(end, verb, (), begun.denied) for end, verb in self.again(last.verb)]
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
        found = [(end, verb, ()) for end, verb in self.every(self.rows.deeds)]
        parted = []
        for verb, form in self.rows.starting(self.rows.deeds).get(self.word, []):
            for at in range(1, len(form) if self.rows.verbs[verb] else 0):
                if taken := self.take(form[:at]):
                    parted.append((taken[0], Said(verb), form[at:]))
        return found + parted

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
        if len(begun.who) * len(what) > MOST:
            raise Stop(TOO_MANY)
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
            if not denied and (",", "not") == tuple(one.word for one in self.tokens[self.at : self.at + 2]):
                else_what += self.turned(self.rows.whats, verbs, ends=ends)
            else_amount += self.turned_amount(counted, denied) if counted else []
            else_more += self.turned(self.rows.more, denied=denied)
        else_who = begun.turned + ([] if denied else self.turned(self.rows.who, verbs))
        said = [replace(one, denied=denied) for one in self.dealt(begun.who, each, what or [None], more)]
        other = [Statement(w, verb, o, more, not denied) for w in begun.who for o in else_what]
        for amount in else_amount:
            differs = _values(amount) != _values(counted)
            beside = [replace(one, denied=not denied, implied=differs and not denied) for one in said]
            other += [replace(b, verb=amount) if counted is verb else replace(b, what=amount) for b in beside]
            said = [replace(one, implied=differs and denied) for one in said]
        other += [replace(one, more=(m,), denied=not denied) for one in said for m in else_more]
        other += [replace(one, who=w, denied=not denied) for one in said for w in else_who]
        if only:
            others = [p for p in offered if "#" not in p and p not in {one.phrase for one in what if one}]
            other += [replace(one, what=Said(p), denied=True) for one in said for p in others]
        return said + other if denied else other + said

    # -- the passive ----------------------------------------------------------------------------------------
    def passive(self, first: tuple[Said, ...]) -> list[Statement]:
        """What is done by who, as who does what; nothing where no such thing stands here.

        "by" may be missing where only one can have done it.
        """
        start, best = self.at, None
        if IS not in self.tokens[start:]:
            return []
        neither = self.passed("neither")
        begin = self.at
        for verb, offered in self.rows.verbs.items():
            self.at = begin
            whole = self.some(offered, joins=DENIED_LISTS if neither else LISTS)
            for what, end, tail in [(whole, self.at, ()), *self._parted(offered, begin)]:
                self.at = end
                if not (what and self.passed("is")):
                    continue
                denied = neither or self.passed("not", "never")
                if not self._participle(verb) or (tail and not self.passed_all(tail)):
                    continue
                more = first + self.additions(after=True)
                who = self._by()
                turned = self.turned(self.rows.who, self.rows.deeds, denied, ("by",)) if who else []
                more += self.additions(after=True)
                else_more, else_what = (self.turned(self.rows.more, denied=denied), self.turned(offered))
                if turned or else_more or else_what:
                    self.join(LISTS)
                if len(self.rows.who) == 1:
                    who = who or [Said(self.rows.who[0])]
                if who and (best is None or self.at > best[0]):
                    said = [replace(s, denied=denied) for s in self.dealt(who, [Said(verb)], what, more)]
                    other = [replace(one, who=w, denied=not denied) for one in said for w in turned]
                    other += [replace(one, what=o, denied=not denied) for one in said[:1] for o in else_what]
                    other += [replace(one, more=(m,), denied=not denied) for one in said for m in else_more]
                    best = self.at, said + other if denied else other + said
        self.at, found = best or (start, [])
        return [replace(one, passive=True) for one in found]

    def _by(self) -> list[Said]:
        """Who did it, if that stands here."""
        if not self.passed("by"):
            return []
        if self.before and self.passed(*THINGS):
            return [self.before[-1].who]
        return self.some(self.rows.who, self.rows.deeds)

    def _parted(self, offered: list[Phrase], start: int) -> list[tuple[list[Said], int, tuple[Token, ...]]]:
        """What stands at `start` and goes on behind a passive verb: "the noise is put | into the latents"."""
        found = []
        for phrase in offered:
            for form in self.rows.forms(phrase):
                for at in range(1, len(form)):
                    self.at = start
                    if taken := self.take(form[:at]):
                        found.append(([Said(phrase, taken[1])], taken[0], form[at:]))
        return found

    def _participle(self, verb: Phrase) -> bool:
        """Pass what "is ... by" says of `verb`, which stands here."""
        for form in self.rows.forms(verb):
            if self.word and self.word in participles(form[0].written):
                start = self.at
                self.at += 1
                if self.passed_all(form[1:]):
                    return True
                self.at = start
        return False

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
                one = self._going_on(found[-1])
            if one is None or (after and joined and self._begins()):
                self.at = start
                return tuple(found)
            found.append(one)

    def thing(self) -> Said | None:
        """The one thing that the clause before spoke of behind its verb; None where there were several."""
        things = {one.what for one in self.before}
        several = len(things) != 1 or any(not m.scope for one in self.before for m in one.more)
        return None if several else next(iter(things))

    def _going_on(self, last: Said) -> Said | None:
        """An addition that goes on with the first words of the `last` one."""
        for form in self.rows.forms(last.phrase):
            for length in range(len(form) - 1, 0, -1):
                one = self.one(self.rows.more, form[:length])
                if one is not None and (one.phrase != last.phrase or one.amounts):
                    return one
        return None

    def _begins(self) -> bool:
        """Whether who, a verb or an amount alone stands here."""
        if self.word in PRONOUNS or self.word == "#":
            return True
        return bool(self.every(self.rows.who) or self.every(self.rows.deeds))

    # -- the contrary ---------------------------------------------------------------------------------------
    def _turns(self, denied: bool) -> bool:
        """Pass what turns what was said into its contrary: "not", or after a denial "but"."""
        self.join(LISTS if denied else JOINS)
        if denied:
            return self.passed("but")
        return self.passed("not") or any(self.passed_all(words) for words in INSTEAD)

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
            if again := self.again(said):
                self.at, other = again[0]
                return [other]
            self.passed(*{t.word for form in self.rows.forms(said.phrase) for t in form} - {"#"})
            if self.passed("#"):
                return [Said(said.phrase, (*said.amounts[:-1], self.tokens[self.at - 1]))]
        self.at = start
        return []

    # -- amounts --------------------------------------------------------------------------------------------
    def again(self, last: Said) -> list[tuple[int, Said]]:
        """The verb `last` without its first words, with another amount: "has length 2 ... and (length) 1"."""
        forms = self.rows.forms(last.phrase)
        opens = ((form, next((n for n, token in enumerate(form) if token.word == "#"), 0)) for form in forms)
        heads = {form[:at] for form, amount in opens for at in range(1, amount + 1)}
        found = [one for head in sorted(heads, key=len) for one in self.every(self.rows.deeds, head)]
        return sorted(found, key=lambda one: -one[0])[:1]

    def each_its_own(self, verb: Said, several: int) -> list[Said]:
        """`verb` once for each of `several` who have amounts of their own: "are 128 and 32 wide"."""
        found, start = [verb], self.at
        while several > 1 and verb.amounts and self.join(LISTS) and (again := self.again(verb)):
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


def _values(said: Said | None) -> list[object]:
    return [token.amount.value for token in said.amounts if token.amount] if said else []
