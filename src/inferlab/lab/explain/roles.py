"""Who does something and what it is done to: the agent and the objects of one verb."""

import itertools

from . import lexicon as lex
from .lexicon_verbs import VERB_INDEX
from .listed import listed
from .verbs import DETERMINERS, participle
from .vocabulary import Mention
from .words import Token

_ASIDE = frozenset(listed("by with from using through via after before at for like unlike than without until during because under per on given based "
                   "following according alongside beside besides"))
_OF = frozenset(listed("of by with in to for into using via on at within inside through under between after as like during"))
_AGENT_BY = frozenset(listed("by via through inside in within"))
_CLAUSE = frozenset(listed("while whereas but though although because since so if when ;"))
_REMOVAL = frozenset(listed("subtract remov strip tak peel pull clean clear"))
BE = frozenset(listed("is are was were be been being am get gets got getting gets become becomes became 's"))
GLUE = frozenset(listed("the a an this that these those its their my your our each every all both of current new next old previous noisy cleaner cleaned clean less "
                  "own same whole full entire slightly more single one small little bit resulting final only just then now also actually really "
                  "always simply still directly not"))
_PRONOUNS = frozenset(listed("it they them this that these those one"))
_SUBORDINATE = frozenset(listed("which that who whose what"))


INSERTED = frozenset(listed("however therefore indeed though then actually still"))
_IS_SHORT = frozenset(listed("what that who the a an one only just not"))
_ITS_DEED = frozenset(listed("step update rule formula arithmetic maths math method call equation job work"))
_OUTPUTS = frozenset(listed("predict prediction nois estimat output guess result"))
_WHEN = frozenset(listed("end loop loops beginning turn time addition return contrast rounds round step steps then afterwards last run"))
_TOGETHER = frozenset(listed("and plus + & / together alongside"))
_APART = frozenset(listed("while whereas but which that who because so ; then after"))


def _preposition(tokens: tuple[Token, ...], at: int, mentions: list[Mention], stop: int = 0) -> str:
    """The preposition that introduces the phrase whose term begins at `at`, "" if none."""
    stop = max([stop, *(m.end for m in mentions if m.end <= at and tokens[m.end - 1].word[-2:] not in ("'s", "s'"))])
    for back in range(1, 5):
        i = at - back
        if i < stop:
            return ""
        word = tokens[i].word
        if word in _ASIDE or word in _OF:
            return word
        if tokens[i].kind == "punct" or word in lex.BREAKS or word in BE or word in _WHEN:
            return ""
        if word in DETERMINERS or word in ("these", "those", "that", "both"):
            before = tokens[i - 1].word if i > stop else ""
            return before if before in _ASIDE or before in _OF else ""
    return ""


def possessive(tokens: tuple[Token, ...], m: Mention) -> bool:
    """Whether a term owns what follows: `the scheduler's rule`, not `the VAE's what makes it`, `the loop's updating them`."""
    ahead = tokens[m.end].word if m.end < len(tokens) else ""
    return tokens[m.end - 1].word.endswith(("'s", "s'")) and ahead not in _IS_SHORT and not (
        ahead.endswith("ing") and m.end + 1 < len(tokens) and tokens[m.end + 1].word not in ("rule", "step", "formula", "part", "of", "method"))


def roles(tokens, mentions, actors, at, end, after):
    colon = max((i for i in range(at) if tokens[i].word in (":", ";")), default=-1)
    left = [m for m in mentions if colon < m.at and m.end <= at]
    right = [m for m in mentions if end <= m.at]
    auxiliaries = [t.word for t in tokens[max(0, at - 7):at] if t.kind != "punct" and t.word not in INSERTED][-4:] if at and tokens[at - 1].word in (
        "never", "not", ",") else [t.word for t in tokens[max(0, at - 4):at]]
    passive = participle(tokens[at]) and (any(w in BE for w in auxiliaries) and not any(w in ("has", "have", "had") for w in auxiliaries[-1:])
                                           or _by_follows(tokens, end))
    if participle(tokens[at]) and end < len(tokens) and tokens[end].word in BE and not left and right and right[0].at - end <= 4:
        return by_agent(tokens, right, actors, right[0].end, after), frozenset({right[0].term}) | _joined_after(tokens, right), frozenset(), True, True
    if passive:
        agents, sure = by_agent(tokens, right, actors, end, after), True
        if not agents:
            source = next((m for m in right if m.term in actors and m.at - end <= 4 and _preposition(tokens, m.at, right, end) == "from" and not any(t.kind == "amount" or t.word == ":" for t in tokens[end:m.at]) and not _its_output(tokens, m)), None)
            agents, sure = (frozenset({source.term}) | _with_others(tokens, right, source, actors) if source else agents), False
        patient = _nearest(tokens, left, None, at)
        objects = frozenset(patient[0])
        if patient[0] and patient[2]:
            objects |= _joined(tokens, left, patient[2])
        by = next((m for m in right if m.term in agents), None)
        if by is not None and len(agents) == 1 and _its_output(tokens, by):
            sure = False
        return agents, objects, frozenset(), bool(agents) and sure, True
    names, sure, _ = _nearest(tokens, left, actors, at)
    objects, bad = _objects(tokens, right, end, after)
    if not right and not left:
        return frozenset(), frozenset(), frozenset(), False, False
    if not left and tokens[max(0, at - 2):at] and right and any(t.word in _SUBORDINATE for t in tokens[colon + 1:at]):
        names, sure = frozenset({right[0].term}), True
        copula = [i for i in range(end, min(end + 6, len(tokens))) if tokens[i].word in ("is", "are", "was", "were", ":")]
        if not copula or copula[0] > right[0].at:
            names = frozenset()
    subject = next((m for m in reversed(left) if m.term in names), None)
    if subject is not None and any(t.word in ("which", "that", "whom") for t in tokens[max(0, subject.at - 3):subject.at]):
        thing = next((m for m in reversed(left) if m.end < subject.at), None)
        if thing is not None:
            objects |= {thing.term}
    one = _cleft(tokens, left, right, at, end)
    if one:
        return frozenset({one[0].term}), frozenset(m.term for m in right if m.end <= one[1]) | ({"it"} if any(
            t.word in _PRONOUNS for t in tokens[end:one[1]]) else frozenset()), frozenset(), True, False
    cleft = not objects and any(t.word in ("what", "that", "which") for t in tokens[max(0, at - 3):at])
    if cleft and left:
        objects = frozenset(m.term for m in left if m.term not in names)
    return names, objects, bad, sure, False


def _cleft(tokens, left, right, at, end):
    """`the one who changes them is the scheduler`, `what updates the latents is scheduler.step`: (the subject, where
    the copula is)."""
    head = [t.word for t in tokens[max(0, at - 5):at] if not t.word.endswith("ly")][-4:]
    if not (head[-1:] == ["what"] or (head[-1:] in (["who"], ["that"], ["which"]) and set(head) & {"one", "thing", "part", "component", "piece", "object"})):
        return None
    copula = next((i for i in range(end, min(end + 9, len(tokens))) if tokens[i].word in ("is", "are", "was")), None)
    if copula is None or copula == end:
        return None
    subject = next((m for m in right if m.at > copula), None)
    return (subject, copula) if subject else None


def into_of(tokens, mentions, end, after) -> frozenset[str]:
    """What comes out of a change: `turns the latents into pixels`."""
    return frozenset(m.term for m in mentions if end <= m.at < after and any(
        t.word == "into" for t in tokens[max(end, m.at - 4):m.at]) and not any(o.at > end and o.end <= m.at and any(
            t.word == "into" for t in tokens[max(end, o.at - 4):o.at]) for o in mentions))


def _by_follows(tokens, end) -> bool:
    return any(t.word == "by" for t in tokens[end:end + 4])


def by_agent(tokens, right, actors, end, after) -> frozenset[str]:
    for m in right:
        word = _preposition(tokens, m.at, right, end)
        if word != "by" and m.at >= after or any(t.word in (":", ";") for t in tokens[end:m.at]):
            continue  # `are computed once and are stored in the cache`, `is not cut: both are in each tile`
        near = {t.word for t in tokens[max(end, m.at - 4):m.at]}
        helped = word == "of" and near & {"means", "help"}
        if word == "in" and "that" in near:
            continue  # `in that the UNet predicts`
        where = next((k for k in range(m.at - 1, max(end, m.at - 5) - 1, -1) if tokens[k].word == "by"), -1)
        if where > end and participle(tokens[where - 1]):
            continue
        if (word in _AGENT_BY or helped) and m.term in actors and m.at - end <= 14:
            return frozenset({m.term}) | _with_others(tokens, right, m, actors)
        if word == "of" and m.term in actors and m.at - end <= 2 and tokens[end].word == "of" and participle(tokens[end - 1]):
            return frozenset({m.term}) | _with_others(tokens, right, m, actors)
        if word == "using" and m.term in actors and m.at - end <= 4 and not possessive(tokens, m):
            return frozenset({m.term})
    return frozenset()


def _its_output(tokens, m: Mention) -> bool:
    """Whether an actor is named for what it gives: `from the UNet's prediction`, `from the VAE`."""
    return possessive(tokens, m) or any(t.stem in _OUTPUTS for t in tokens[m.end:m.end + 2])


def _with_others(tokens, right, m: Mention, actors) -> frozenset[str]:
    """The actors joined to the one behind `by`: `by the UNet (noise) and the scheduler (update)`."""
    out, last = set(), m
    for o in right:
        if o.at < m.end or o.term not in actors:
            continue
        between = [t.word for t in tokens[last.end:o.at]]
        after = tokens[o.end] if o.end < len(tokens) else None
        while after is not None and after.word.endswith("ly") and o.end + 1 < len(tokens):
            after = tokens[o.end + 1]
            break
        subject = after is not None and after.kind == "word" and (after.word in ("is", "are", "was", "only", "then", "just") or (after.stem,) in VERB_INDEX and not possessive(tokens, o)
                                                                  and not after.word.endswith("ed") and after.word not in ("step", "steps", "update", "updates", "output", "work"))
        if "/" in between and "w" in between:
            break
        if "by" in between[-2:] and "and" in between[-4:] and len(between) <= 12 and not subject:
            out.add(o.term)
            last = o
            continue
        told = set(between) & {"which", "that", "who"} and [w for w in between if w not in DETERMINERS][-1:] == ["and"] and after is not None and (
            after.word in ("which", "that", "who") or after.word == "(" and tokens[o.end + 1].word in ("which", "that", "who"))
        if len(between) > 9 or not set(between) & _TOGETHER or (set(between) & _APART and not told) or subject:
            break
        out.add(o.term)
        last = o
    return frozenset(out)


def _nearest(tokens, left, actors, at):
    """(terms, sure, the mention) of the nearest fit subject to the left of a verb."""
    head = at
    while head and (tokens[head - 1].word in lex.AUXILIARY or tokens[head - 1].word in GLUE or tokens[head - 1].word.endswith("ly")
                    or tokens[head - 1].word in lex.NEGATORS) and tokens[head - 1].word not in _PRONOUNS:
        head -= 1
    if head and tokens[head - 1].word in ("which", "that", "who") and left:
        near = left[-1]
        if actors is None or near.term in actors:
            return frozenset({near.term}), True, near
    if head and tokens[head - 1].word in ("it", "they", "this", "these"):
        return frozenset({"it"}), False, None
    fallback = None
    for m in reversed(left):
        if actors is not None and m.term not in actors:
            continue
        if fallback is not None and any(t.word in _CLAUSE for t in tokens[m.end:fallback.at]):
            break
        if possessive(tokens, m) and m.end < len(tokens) and tokens[m.end].word in _ITS_DEED and m.end + 1 <= at <= m.end + 3:
            return frozenset({m.term}), True, m
        if possessive(tokens, m) and m.end < at - 0 and m.end != at:
            fallback = fallback or m
            continue
        before = tokens[m.at - 1].word if m.at else ""
        if before in ("not", "than", "unlike", "without") or (before == "the" and m.at > 1 and tokens[m.at - 2].word in (
                "not", "than", "unlike", "of") and tokens[max(0, m.at - 3)].word in ("not", "rather", "instead", "unlike", ",")):
            continue
        if _preposition(tokens, m.at, left) in (_OF - {"after", "as"}) | {"from"}:
            fallback = fallback or m
            continue
        return frozenset({m.term}), at - m.end <= 14, m
    if fallback is not None:
        return frozenset({fallback.term}), False, fallback
    if head and tokens[head - 1].word in _PRONOUNS:
        return frozenset({"it"}), False, None
    return frozenset(), False, None


def _joined_after(tokens, right) -> frozenset[str]:
    return frozenset(b.term for a, b in itertools.pairwise(right) if a is right[0] and b.at - a.end <= 3 and any(t.word == "and" for t in tokens[a.end:b.at]))


def _joined(tokens, left, m: Mention) -> frozenset[str]:
    return frozenset(o.term for o in left if o.end < m.at and any(t.word == "and" for t in tokens[o.end:m.at]) and m.at - o.end <= 3)


def _objects(tokens, right, end, after):
    found, bad = set(), set()
    removal = tokens[end - 1].stem in _REMOVAL or tokens[max(0, end - 2)].stem in _REMOVAL
    aside = rejected = False
    last = end
    for m in right:
        between = tokens[last:m.at]
        words = [t.word for t in between]
        leads = after < len(tokens) and m.end <= after and all(t.word in lex.AUXILIARY or t.word in GLUE for t in tokens[m.end:after])
        if leads and (last != end or any(t.word in _PRONOUNS or t.kind == "amount" for t in between)) and set(words) & {"and", ",", "or", "then"}:
            break
        if leads and words and words[0] in ("and", ",", "or", "then"):
            break
        if m.at >= after and m.at != after:
            break
        # `the latents, not pixels or weights`, `the latents, no pixels and no weights`
        listed_too = rejected and set(words) <= {"or", "nor", "and", "no", "the", ","} and set(words) & {"or", "nor", "no"}
        if "not" in words or "than" in words or "instead" in words or listed_too or words[-1:] == ["no"] or found and "no" in words:
            rejected = True
            bad.add(m.term)
            last = m.end
            continue
        if any(w in (";", ":", "while", "whereas", "because", "since", "although", "though", "if", "when") for w in words) or (
                "but" in words and not bad):
            break
        preposition = next((w for w in reversed(words) if w in _ASIDE and not (w == "from" and removal)), "")
        if preposition:
            aside = True
        elif any(w in ("to", "into", "in", "onto") for w in words) or not (set(words) & {"and", ",", "or"}):
            aside = aside and set(words) <= GLUE and last != end
        if "of" in words and not preposition and last != end:
            aside = False
        if possessive(tokens, m):
            last = m.end
            continue
        if not aside:
            found.add(m.term)
        last = m.end
    near = tokens[end:min(after, end + 7)]
    near = [t for i, t in enumerate(near) if not (t.word == "one" and near[i + 1:i + 2] and any(m.at == end + i + 1 for m in right))]
    if any(t.word in _PRONOUNS - {"that"} or t.word in ("their", "ones") or (t.word == "that" and not i) for i, t in enumerate(near[:3])) or any(
            a.word in ("of", "to") and b.word in _PRONOUNS for a, b in itertools.pairwise(near)):
        found.add("it")
    return frozenset(found), frozenset(bad)


def along_of(tokens, mentions, end) -> tuple[frozenset[str], frozenset[str]]:
    """What a thing grows along, and what it is said not to grow along."""
    along, away = set(), set()
    for m in mentions:
        if m.at < end:
            continue
        for back in range(1, 4):
            i = m.at - back
            if i >= end and tokens[i].word in ("along", "on", "in"):
                (away if tokens[i - 1].word in ("not", "never", "than", "of") and tokens[i].word != "in" else along).add(m.term)
                break
            if i < end or (tokens[i].word not in GLUE and tokens[i].kind == "word"):
                break
    return frozenset(along), frozenset(away)
