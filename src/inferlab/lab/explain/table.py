"""The words of one field as a lab lists them, every way to say each, and the statements that they make."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from .tokens import Token, only_behind, tokens

SCOPES = frozenset("in at during before after once on when".split())
"""First words of what is added to a whole sentence: a time or a place."""
Form = tuple[Token, ...]
"""One way to say an entry."""
OPEN = Token("#", written="#")
"""An amount that is open; one that is written "# times" in some way of an entry takes these, too."""

Phrase = str
"""One entry of a lab's table, without its other ways."""


class Entries:
    """The ways to say each entry, the same in every field of an explanation.

    `listed` holds the ways as the lab lists them, and `forms`, after `complete`, every way to say a phrase.
    """

    def __init__(self) -> None:
        self.listed: dict[Phrase, list[Form]] = {}
        self.forms: dict[Phrase, tuple[Form, ...]] = {}

    def add(self, entry: str) -> Phrase:
        """The phrase of `name = other way, other way`; ways that are given twice for one name add up."""
        name, _, others = (part.strip() for part in entry.partition("="))
        ways = self.listed.setdefault(name, [])
        ways += [tuple(only_behind(tokens(way))) for way in (name, *others.split(",")) if way.strip()]
        return name

    def complete(self) -> None:
        """A phrase that ends with another ("from the noise") can be said with that one's ways, too."""
        others = {forms[0]: forms[1:] for forms in self.listed.values() if len(forms) > 1}
        for phrase, forms in self.listed.items():
            cuts = [(form, at) for form in forms for at in range(1, len(form))]
            more = [form[:at] + way for form, at in cuts for way in others.get(form[at:], ())]
            ways = dict.fromkeys(forms + more)
            opens = [token for way in forms + more for token in way if token == OPEN]
            times = max(opens, key=lambda token: len(token.written), default=OPEN)
            self.forms[phrase] = tuple(tuple(times if t == OPEN else t for t in way) for way in ways)


@dataclass
class Rows:
    """The words of one field: who, each verb with what may follow it, and what may be added."""

    entries: Entries
    who: list[Phrase] = field(default_factory=list)
    verbs: dict[Phrase, list[Phrase]] = field(default_factory=dict)
    more: list[Phrase] = field(default_factory=list)
    _begin: dict[int, dict[str, list[tuple[Phrase, Form]]]] = field(default_factory=dict)

    def forms(self, phrase: Phrase) -> tuple[Form, ...]:
        """Every way to say `phrase`."""
        return self.entries.forms[phrase]

    @functools.cached_property
    def deeds(self) -> list[Phrase]:
        """The verbs."""
        return list(self.verbs)

    @functools.cached_property
    def whats(self) -> list[Phrase]:
        """What may follow some verb."""
        return list(dict.fromkeys(phrase for offered in self.verbs.values() for phrase in offered))

    @functools.cached_property
    def only_after(self) -> frozenset[str]:
        """Words that an "only" follows at the end of an entry: "of the newest token only"."""
        ways = (way for phrase in (*self.who, *self.whats, *self.more) for way in self.forms(phrase))
        return frozenset(way[-2].word for way in ways if len(way) > 1 and way[-1].word == "only")

    def starting(self, phrases: list[Phrase]) -> dict[str, list[tuple[Phrase, Form]]]:
        """First word -> each of `phrases` (one list of this table) that may begin with it, and how."""
        begin = self._begin.setdefault(id(phrases), {})
        for phrase, form in () if begin else ((p, form) for p in phrases for form in self.forms(p)):
            begin.setdefault(form[0].word if form else "", []).append((phrase, form))
        return begin


def listing(phrases: Sequence[Phrase]) -> str:
    """`phrases` as a hint lists them."""
    return ", ".join(f"`{phrase}`" for phrase in phrases)


@dataclass(frozen=True)
class Said:
    """A phrase as it was said: with its amounts."""

    phrase: Phrase
    amounts: tuple[Token, ...] = ()

    def __str__(self) -> str:
        text = self.phrase
        for amount in self.amounts:
            text = text.replace("#", amount.written, 1)
        return text

    @property
    def scope(self) -> str:
        """Whether this adds the "reason" or the "place" (or time) of a whole sentence; "" for neither."""
        first = self.phrase.split()[0].casefold()
        return "reason" if first == "because" else "place" if first in SCOPES else ""


@dataclass(frozen=True)
class Statement:
    """Who does what; `what` is None where the verb needs nothing. `denied`: it is said not to be so.

    `shared` is said at the beginning of the sentence and holds here, too: "in each step A ... and B ...".
    `behind` is said of another clause of this who, and may hold here: "A ... and ... in each step".
    `implied`: so if the statement beside it is, "is not 1" of "is 2, not 1".
    `passive`: it was said of `what`, "the noise is predicted by the UNet".
    """

    who: Said
    verb: Said
    what: Said | None
    more: tuple[Said, ...] = ()
    denied: bool = False
    shared: tuple[Said, ...] = ()
    behind: tuple[Said, ...] = ()
    implied: bool = False
    passive: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        verb = f"not: {self.verb}" if self.denied else self.verb
        parts = [self.who, verb, self.what, *self.more, *(f"({one})" for one in self.shared + self.behind)]
        return " · ".join(str(part) for part in parts if part is not None)


@dataclass(frozen=True)
class NotRead:
    """A sentence that was not read, and what would help."""

    sentence: str
    hint: str

    def __str__(self) -> str:
        return f"“{self.sentence}”: {self.hint}"


Found = list[Statement | NotRead]
"""What was found in one field, in order."""


def with_shared(said: list[Statement], more: Sequence[Said], behind: Sequence[Said] = ()) -> list[Statement]:
    """Statements with what else their sentence says of time or place, or of reason, if they say none."""
    found = []
    for one in said:
        own = {"", *(m.scope for m in one.more)}
        if not one.denied:
            shared, ends = (tuple(m for m in added if m.scope not in own) for added in (more, behind))
            one = replace(one, shared=one.shared + shared, behind=one.behind + ends)
        found.append(one)
    return found
