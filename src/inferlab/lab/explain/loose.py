"""A slot's claims said in separate words: `the latents get cleaner; the scheduler does the arithmetic`.

What is looked for: the object is named and something happens to it, the actor is named as one that acts (the subject of a
verb, behind `by` or `thanks to`, the owner of a deed), nothing of this is denied, and nobody else does it.
"""

import itertools

from .claims import Claim, claims, first_made
from .lexicon_verbs import VERB_INDEX, VERBS
from .listed import listed
from .negation import framed_or_negated
from .relations import Relation
from .rubric import Rubric, Slot
from .vocabulary import Mention, Vocabulary
from .words import Sentence

_AFFECTS = frozenset(("changes", "makes", "denoises", "decodes", "splits", "keeps", "grows", "moves", "shrinks", "obtains", "recomputes", "is"))
_IDLE = frozenset(("predicts", "controls", "shows", "is", "other"))
_BY = frozenset(listed("job task responsibility business doing duty by from via through with using thanks means + & : using per"))
_JOINTS = frozenset(listed("and plus + & / with then"))
_FRESH = frozenset(listed("next new cleaner clean cleaned less newer updated following"))
_DEEDS = frozenset(listed("step steps update updates arithmetic maths math move moves formula rule calculation calculations output job work doing part output's combination"))


def loosely(slot: Slot, rubric: Rubric, found: list[Relation], parts: list[Sentence], words: Vocabulary) -> tuple[str, ...]:
    """The words that make the claims of one entry of `slot.award` when they are read together, () if none do."""
    spoken = [(s, words.mentions(s)) for s in parts]
    if any(framed_or_negated(s) for s in parts) and any(r.negated or r.framed for r in found if r.near):
        return ()
    foes = {c.subject for entry in slot.deny for part in claims(entry, rubric.terms) for c in part} - {"*"}
    return first_made(slot.award, rubric.terms, parts, lambda claim: _said(claim, found, spoken, foes))


def _said(claim: Claim, found: list[Relation], spoken: list[tuple[Sentence, list[Mention]]], foes: set[str]) -> bool:
    actor, thing = claim.subject, claim.object
    if any(r.classes & claim.classes & _AFFECTS and thing in r.objects and r.agents & foes and actor not in r.agents and r.sure and not r.negated for r in found):
        return False
    if any(actor in r.objects and r.classes & {"changes", "predicts", "makes", "decodes", "splits"} and r.agents - {"it", actor} and not r.negated and r.close and r.sure for r in found):
        return False
    if sum(t.word == ":" for s, _ in spoken for t in s.tokens) <= 2 and any(_labelled(actor, thing, s, mentions) for s, mentions in spoken):
        return True
    return (actor == "*" or _acts(actor, found, spoken)) and (thing in ("", "*") or _affected(thing, claim, found, spoken))


def _what_does(sentence: Sentence, wanted: set[str]) -> bool:
    """`what changes in the loop are the latents`, `the tensor being modified is the latent one`."""
    tokens = sentence.tokens
    return any(t.word in ("what", "being", "thing") and any((u.stem,) in VERB_INDEX and VERB_INDEX[(u.stem,)] & wanted
                                                                                      for u in tokens[i + 1:i + 4]) for i, t in enumerate(tokens))


def _labelled(actor: str, thing: str, sentence: Sentence, mentions: list[Mention]) -> bool:
    """`Picture: VAE decoder`: a thing and, behind its colon, who makes it."""
    for a, b in itertools.pairwise(mentions):
        if a.term == thing and b.term == actor and b.at - a.end <= 4 and sentence.tokens[a.end].word == ":":
            return True
    return False


def _acts(actor: str, found: list[Relation], spoken: list) -> bool:
    if any(actor in r.agents and r.classes - _IDLE and any(not c.startswith("=") for c in r.classes - _IDLE) and not (r.negated or r.framed) for r in found):
        return True
    for sentence, mentions in spoken:
        tokens = sentence.tokens
        for n, m in enumerate(mentions):
            if m.term != actor:
                continue
            before = [t.word for t in tokens[max(0, m.at - 4):m.at]]
            if set(before) & _BY or tokens[m.end:m.end + 1] and tokens[m.end].word in _DEEDS | {":", "for"}:
                return True
            if tokens[m.end - 1].word in _DEEDS and m.end - m.at > 1:
                return True
            if n and set(before) & _JOINTS and m.at - mentions[n - 1].end <= 3:
                return True
    return False


def _affected(thing: str, claim: Claim, found: list[Relation], spoken: list) -> bool:
    named = [(s, m) for s, mentions in spoken for m in mentions if m.term == thing]
    if not named:
        return False
    wanted = {c for c in claim.classes if c in VERBS} | ({"changes", "makes", "denoises"} if claim.classes & {"changes", "makes", "denoises"} else set())
    if any(r.classes & wanted and (thing in r.objects or "it" in r.objects or (thing in r.agents and not r.objects - {"it"}) or not r.objects) and not (r.negated or r.framed)
           for r in found):
        return True
    if any(_what_does(s, wanted) for s, _ in named):
        return True
    if any(t.word in ("by", "via") for s, m in named for t in s.tokens[m.end:m.end + 2]):
        return True
    return any(t.word in _FRESH for s, m in named for t in (*s.tokens[max(0, m.at - 3):m.at], *s.tokens[m.end:m.end + 5]))
