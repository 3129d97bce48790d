"""A slot's claims by what an answer lets act and change, where every statement in it is understood or harmless.

The last and widest reading of a loose slot: `the latents are the accumulator; the net predicts, DDIM computes the successor`. It awards
only where the actor acts, something happens to the object, nothing is denied, told of somebody else or left open, no other
actor does more than its own part, and nobody unknown does the work (`moved by scale_model_input`).
"""

from dataclasses import replace

from .claims import Claim, claims, first_made, says
from .lexicon import AUXILIARY
from .listed import listed
from .negation import framed_or_negated
from .prose import FUNCTION_WORDS
from .relations import Relation
from .rubric import Rubric, Slot
from .verbs import participle
from .vocabulary import Mention
from .words import Sentence

_CHANGES = frozenset(("changes", "makes", "denoises", "decodes", "splits", "moves", "grows", "shrinks"))
_TELLING = frozenset(("predicts", "uses", "obtains", "calls", "passes"))
_ROLES = frozenset(listed("writer updater reducer worker converter transformer changer author editor mover actor agent owner engine sole one job work part task step steps "
                          "update updates arithmetic maths math formula rule calculation output combination doing responsible charge"))
_CHANGING = frozenset(listed("mutable state accumulator next new successor replacement payload rewritten updated update updates cleaner transition transitions evolving evolves "
                             "carried transformed changes changing changed modified moving swapped refined advanced version cut object target piece pieces"))
_ONLY = frozenset(listed("only just merely simply nothing"))
_IDLE = frozenset(listed("counts counting count counted tracks tracking track keeps logs log logging reports report shows show displays sets set decides decide picks "
                         "watches waits schedules chooses holds stores"))


def understood(slot: Slot, rubric: Rubric, found: list[Relation], parts: list[tuple[Sentence, list[Mention]]]) -> tuple[str, ...]:
    """The words that make one entry of `slot.award` when the answer is taken as a whole, () where they do not."""
    wrong = [c for entry in slot.deny for part in claims(entry, rubric.terms) for c in part]
    foes = {c.subject for c in wrong} - {"*"}
    right = [c for entry in slot.award for part in claims(entry, rubric.terms) for c in part if c.subject not in ("*", "")]
    # what a right actor does together with another one is right
    found = [r for r in found if len(r.agents) < 2 or not any(says(c, r, frozenset(), lenient=False) for c in right)] + [
        replace(r, agents=frozenset({c.subject})) for r in found if len(r.agents) > 1 for c in right if says(c, r, frozenset(), lenient=False)]
    named = {m.term for _, mentions in parts for m in mentions}
    if any(framed_or_negated(s) for s, _ in parts) and any((r.negated or r.framed) and not (r.negated and not r.framed and r.agents and r.agents <= foes) for r in found):
        return ()
    if sum(t.word == ":" for s, _ in parts for t in s.tokens) > 2:
        return ()
    if any(not_by_it(s, mentions) for s, mentions in parts):
        return ()
    harmless = frozenset(r for r in found if any(says(c, r, frozenset(), lenient=False) for c in right))
    return first_made(slot.award, rubric.terms, [s for s, _ in parts], lambda claim: _made(claim, found, parts, named, foes, wrong, harmless))


def _made(claim: Claim, found: list[Relation], parts, named: set[str], foes: set[str], wrong: list[Claim], right: frozenset[Relation]) -> bool:
    actor, thing = claim.subject, claim.object
    if actor in ("*", "") or actor not in named or (thing not in ("", "*") and thing not in named):
        return False
    others = foes - {actor}
    others = {c.subject for c in wrong if c.subject in others and c.object in (thing, "*", "")}
    if any(actor != c.subject and says(c, r, frozenset(), lenient=False) for c in wrong for r in found if not r.negated and r not in right and c.subject != "*" and actor not in r.agents):
        return False
    if any(not _harmless(r, thing, others, wrong, actor) for r in found if not r.negated and r not in right):
        return False
    if any(actor in r.objects and r.objects <= {actor, "it"} and not r.agents - {"it", thing} and r.classes & _CHANGES and not r.negated and r.close for r in found):
        return False
    if any(_only_counts(actor, s, mentions) for s, mentions in parts):
        return False
    acts = any(actor in r.agents and r.classes & _CHANGES and not r.negated for r in found)
    role = any(_has_role(actor, s, mentions) for s, mentions in parts)
    if not (acts or role):
        return False
    if thing in ("", "*"):
        return True
    return any(r.classes & _CHANGES and (thing in r.objects or thing in r.agents and not r.objects) or actor in r.agents and r.classes & claim.classes and not r.objects
               for r in found) or any(
        t.word in _CHANGING for s, mentions in parts if any(m.term == thing for m in mentions) or len(parts) <= 3 for t in s.tokens)


def _harmless(r: Relation, thing: str, others: set[str], wrong: list[Claim], actor: str) -> bool:
    """Whether what a sentence says of somebody else leaves the claim alone."""
    mine = r.agents & others
    if not mine:
        return True
    if any(c.subject in mine and says(c, r, frozenset(), lenient=False) for c in wrong) and actor not in r.agents:
        return False
    if not r.classes & _CHANGES or r.classes & _TELLING or (r.classes & _CHANGES == {"makes"} and r.objects - {thing, "it"}):
        return True
    if actor in r.agents:
        return True
    if not r.objects:
        return r.verb in AUXILIARY or not any(c.classes & r.classes for c in wrong if c.subject in mine)
    return thing not in r.objects and "it" not in r.objects


def not_by_it(s: Sentence, mentions: list[Mention]) -> bool:
    """`moved by scale_model_input`: done by something that no term names."""
    taken = {i for m in mentions for i in range(m.at, m.end)}
    tokens = s.tokens
    for i, t in enumerate(tokens[:-1]):
        if t.word == "by" and any(participle(u) for u in tokens[max(0, i - 8):i]) and tokens[i + 1].kind == "word":
            near = [k for k in range(i + 1, min(i + 4, len(tokens))) if tokens[k].kind == "word" and tokens[k].word not in FUNCTION_WORDS]
            if near and not taken & set(range(i + 1, min(i + 4, len(tokens)))) and "_" in "".join(tokens[k].word for k in near):
                return True
    return False


def _only_counts(actor: str, s: Sentence, mentions: list[Mention]) -> bool:
    """`the scheduler only counts`: the actor is said to do nothing that matters."""
    tokens = s.tokens
    for m in mentions:
        if m.term == actor:
            near = [t.word for t in tokens[m.end:m.end + 5]]
            if set(near) & _IDLE or set(near[:3]) & _ONLY:
                return True
    return False


def _has_role(actor: str, s: Sentence, mentions: list[Mention]) -> bool:
    """`the sole writer is the scheduler`, `scheduler.step as writer`, `the scheduler's arithmetic`."""
    tokens = s.tokens
    for m in mentions:
        if m.term == actor:
            before = {t.word for t in tokens[max(0, m.at - 5):m.at]}
            after = {t.word for t in tokens[m.end:m.end + 5]}
            if (before | after) & _ROLES or before & {"by", "through", "via"} or tokens[m.end - 1].word in _ROLES and m.end - m.at > 1:
                return True
    return False
