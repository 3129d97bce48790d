"""Claims of a rubric (`scheduler changes latents`) and whether a sentence's relations make them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from .lexicon_verbs import VERB_INDEX, VERBS
from .negation import frame_of, hedges_of, negated, own_negators
from .phrases import Table
from .relations import Relation
from .wording import alternatives
from .words import Sentence, phrase


@dataclass(frozen=True, slots=True)
class Claim:
    """`subject` and `object` are terms, "*" (anything) or "" (no object asked)."""

    subject: str
    classes: frozenset[str]
    object: str
    text: str


def read_claim(text: str, terms: Mapping[str, str]) -> Claim:
    """`subject verb object` or `subject verb`; raises ValueError with what is unknown."""
    parts = text.split()
    if len(parts) not in (2, 3):
        raise ValueError(f"claim {text.strip()!r}: write `subject verb` or `subject verb object`")
    subject, verb = parts[0], parts[1]
    target = parts[2] if len(parts) == 3 else ""
    for name in (subject, target):
        if name not in ("*", "") and name not in terms:
            raise ValueError(f"claim {text.strip()!r}: {name!r} is not among the terms {sorted(terms)}")
    classes: set[str] = set()
    for one in verb.split("/"):
        if one in VERBS:
            classes.add(one)
        else:
            if phrase(one) not in VERB_INDEX:
                raise ValueError(f"claim {text.strip()!r}: {one!r} is neither a verb class ({', '.join(VERBS)}) nor a verb in one")
            classes.add("=" + phrase(one)[0])
    return Claim(subject, frozenset(classes), target, text.strip())


@lru_cache(maxsize=512)
def _claim(text: str, terms: tuple[str, ...]) -> Claim:
    return read_claim(text, dict.fromkeys(terms, ""))


SAYS = "says:"
"""A `deny` entry that begins so lists phrases: `says: called/runs twice .. step, for free`."""


@lru_cache(maxsize=512)
def _phrases(entry: str) -> Table:
    return Table({phrase(one): True for item in entry.removeprefix(SAYS).split(",") for one in alternatives(item)})


def spoken(entry: str, sentence: Sentence) -> bool:
    """Whether a sentence has one of the phrases of a `says:` entry, neither denied nor put at a distance nor left open."""
    start, stop = frame_of(sentence)
    marks = own_negators(sentence)
    hedges = hedges_of(sentence, start, stop)
    table = _phrases(entry)
    for i, t in enumerate(sentence.tokens):
        hit = table.match(sentence.tokens, i) if t.kind in ("word", "amount") else None
        if not hit or negated(sentence.tokens, i, marks) or start <= t.start - sentence.tokens[0].start < stop:
            continue
        end = i + hit[0]
        own = {w for key in table.keys(sentence.tokens, i) for w in key}
        if any(i < n < end and not {sentence.tokens[n].word, sentence.tokens[n].stem, "=" + sentence.tokens[n].word} & own for n in marks):
            continue  # `the cache is not shared` for the phrase `cache .. shared`
        if not any(i - 5 <= h < end + 3 for h in hedges):
            return True
    return False


def claims(entry: str, terms: Mapping[str, str]) -> list[tuple[Claim, ...]]:
    """The claims of one entry: `a + b` wants both, `a or b` either: a tuple of alternatives for each part."""
    names = tuple(terms)
    return [tuple(_claim(one.strip(), names) for one in part.split(" or ")) for part in entry.split("+") if not part.strip().startswith(SAYS)]


def phrases_of(entry: str) -> list[str]:
    """The `says:` parts of one entry."""
    return [part.strip() for part in entry.split("+") if part.strip().startswith(SAYS)]


def first_made(entries: list[str], terms: Mapping[str, str], parts: list[Sentence], made: Callable[[Claim], bool]) -> tuple[str, ...]:
    """The claims that make the first entry whose phrases are all said and whose parts each have a claim that is `made`; () if none has."""
    for entry in entries:
        if not all(any(spoken(one, s) for s in parts) for one in phrases_of(entry)):
            continue
        shown = [next((c for c in part if made(c)), None) for part in claims(entry, terms)]
        if shown and None not in shown:
            return tuple(f"{one.subject}, {one.object}" for one in shown)
    return ()


def says(claim: Claim, r: Relation, context: frozenset[str], lenient: bool) -> bool:
    """Whether relation `r` is the claim. `context` are the terms that "it" may stand for; `lenient` lets pronouns
    stand for them (for awards, never for denials)."""
    if not claim.classes & r.classes:
        return False
    agents, objects = set(r.agents), set(r.objects)
    if lenient and "it" in agents:
        agents |= context
    if lenient and "it" in objects:
        objects |= context
    if claim.subject == "*":
        subject = True
    else:
        subject = claim.subject in agents
    if not claim.object:
        return subject and claim.subject != "*" or (claim.subject in objects and not agents)
    if claim.object == "*":
        return subject and bool(objects)
    return subject and claim.object in objects


def actors_of(entries: list[str], terms: Mapping[str, str]) -> frozenset[str]:
    """The terms that some claim has as a subject."""
    return frozenset(c.subject for entry in entries for part in claims(entry, terms) for c in part if c.subject != "*")
