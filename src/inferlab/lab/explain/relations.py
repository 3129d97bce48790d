"""Who does what in a sentence: agent, verb class and object, with negation, hedge and distance."""

import itertools
import re
from dataclasses import dataclass

from . import lexicon as lex
from .directions import Table, _prevented, negated, own_negators
from .gates import framed
from .lexicon_verbs import PARTICIPLES, VERB_INDEX
from .listed import listed
from .vocabulary import Mention
from .words import Sentence, Token

_VERBS = Table(VERB_INDEX)
_HEDGES = Table(lex.HEDGES)
_ASIDE = frozenset(listed("by with from using through via after before at for like unlike than without until during because under per on given based "
                   "following according alongside beside besides"))
_OF = frozenset(listed("of by with in to for into using via on at within inside through under between after as like during"))
_AGENT_BY = frozenset(listed("by via through inside in within"))
_CONTROL = frozenset(listed("tell ask let allow caus forc enabl instruct want get mak help lead"))
"""`tells the UNet to update`: the object acts, not the subject."""
_CLAUSE = frozenset(listed("while whereas but though although because since so if when ;"))
_MANNER = re.compile(r"\b(?:in one (?:go|piece|step|pass|call|chunk)|(?:all )?at once|altogether|together|as a whole|in a single|as one|whole|in full|in parallel|directly|"
                     r"(?:by )?(?:it|them)sel(?:f|ves)|alone|on its own|simultaneously|entirely|completely)\b")
_REMOVAL = frozenset(listed("subtract remov strip tak peel pull clean clear"))
_BE = frozenset(listed("is are was were be been being am get gets got getting gets become becomes became 's"))
_GLUE = frozenset(listed("the a an this that these those its their my your our each every all both of current new next old previous noisy cleaner cleaned clean less "
                  "own same whole full entire slightly more single one small little bit resulting final only just then now also actually really "
                  "always simply still directly not"))
_PRONOUNS = frozenset(listed("it they them this that these those one"))
_SUBORDINATE = frozenset(listed("which that who whose what"))
_DETERMINERS = frozenset(listed("the a an this each every its their my your our no another any some per next first last one single"))


_LIGHT = frozenset(listed("do does did done doing perform performs performed make makes made carry carries handle handles execute executes own owns responsible charge"))


@dataclass(frozen=True, slots=True)
class Relation:
    """`agents` and `objects` are terms ("it" for a pronoun); `classes` the verb's. `sure` is False where the agent
    was found only behind a preposition or far away."""

    agents: frozenset[str]
    classes: frozenset[str]
    objects: frozenset[str]
    verb: str
    negated: bool
    hedged: bool
    framed: bool
    sure: bool
    at: int
    text: str
    bad_objects: frozenset[str] = frozenset()
    close: bool = True
    near: bool = True


def verb_relations(sentence: Sentence, mentions: list[Mention], actors: frozenset[str], prior: str = "", earlier: tuple[tuple[str, bool], ...] = ()
                   ) -> list[Relation]:
    """Every verb of the sentence with its agents and objects among the rubric's terms.

    `prior` is the actor that the text named last before this sentence: what `it` stands for when the sentence has named
    none. `earlier` are the terms named before, each with whether it was a plural: what `it` and `them` may stand for.
    """
    tokens = sentence.tokens
    marks = own_negators(sentence)
    mentions = [m for m in mentions if not (m.end - m.at == 1 and tokens[m.at].word.endswith("ed") and m.at and tokens[m.at - 1].word in _BE)]
    taken = {i for m in mentions for i in range(m.at, m.end)}
    frame_from, frame_to = _frame(sentence)
    hedged = is_hedged(sentence, frame_from, frame_to)
    verbs = _verbs(tokens, taken)
    out = []
    subject: tuple[frozenset[str], bool] = (frozenset(), False)
    doer: tuple[frozenset[str], str] = (frozenset(), "")
    for n, (at, end, classes) in enumerate(verbs):
        before_verb = verbs[n - 1][1] if n else 0
        after = next((v[0] for v in verbs[n + 1:] if not _infinitive(tokens, v[0])), len(tokens))
        agents, objects, bad, sure, passive = _roles(tokens, mentions, actors, at, end, after)
        if not passive and n and subject[0] and _goes_on(tokens, at) and not any(before_verb <= m.at and m.end <= at and m.at > _joint(tokens, at) for m in mentions):
            agents, sure = subject
        if not passive and at and tokens[at - 1].word == "to" and doer[0] and doer[1] not in _CONTROL:
            agents, sure = doer[0], True
        doer = (agents - {"it"}, tokens[at].stem)
        if "it" in agents and not passive:
            named = [m.term for m in mentions if m.end <= at and m.term in actors and not _possessive(tokens, m)]
            agents = frozenset({named[-1] if named else prior or "it"})
        if "it" in objects and not passive:
            objects, sure = (objects - {"it"}) | _antecedents(tokens, mentions, agents, at, end, earlier), False
        if not passive or any(t.word in _BE for t in tokens[max(0, at - 4):at]):
            subject = (objects if passive else agents, sure or passive)
        if not passive:
            by = _by_agent(tokens, [m for m in mentions if end <= m.at < after], actors, end, after) if (agents or objects) and "changes" in classes else frozenset()
            if by and by != agents:
                out.append(Relation(by, classes, objects - by or agents, tokens[at].word, negated(tokens, at, marks), hedged,
                                    frame_from <= tokens[at].start - tokens[0].start < frame_to, True, at, sentence.text))
        if not agents and not objects:
            continue
        no = (negated(tokens, at, marks) or _denied_object(tokens, end, mentions)) != (_prevented(tokens, at) and (tokens[at].word.endswith("ing") or tokens[at - 1].word == "to"))
        if "grows" in classes:
            stop = next((v[0] for v in verbs[n + 1:] if "is" not in v[2]), len(tokens))
            along, away = _along(tokens, [m for m in mentions if m.at < stop], end)
            objects, bad = objects | along, bad | away
        head = max((m.end for m in mentions if m.end <= at and m.term in agents), default=at)
        near = not any(t.word in (",", ";", "but", "while", "whereas") for t in tokens[head:at])
        if _prevented(tokens, at) or any(t.word in ("but", "rather") for t in tokens[end:end + 12]) or _MANNER.search(
                " ".join(t.word for t in tokens[end:end + 12])):
            near = False  # what is denied is how, not that
        close = any(0 <= m.at - end <= 5 for m in mentions) or not objects
        made = _into(tokens, mentions, end, after) if agents and "changes" in classes and not passive else frozenset()
        if made:
            out.append(Relation(agents, frozenset({"makes"}), made, tokens[at].word, no, hedged,
                                frame_from <= tokens[at].start - tokens[0].start < frame_to, sure, at, sentence.text))
        out.append(Relation(agents, classes, objects, tokens[at].word, no, hedged,
                            frame_from <= tokens[at].start - tokens[0].start < frame_to, sure, at, sentence.text, bad, close, near))
    return out


def is_hedged(sentence: Sentence, frame_from: int = 0, frame_to: int = 0) -> bool:
    """Whether the sentence leaves open what it says (`maybe`, `faster or slower`), a distancing frame apart."""
    start = sentence.tokens[0].start
    return any(_HEDGES.match(sentence.tokens, n) for n, t in enumerate(sentence.tokens)
               if t.kind == "word" and not frame_from <= t.start - start < frame_to)


def _antecedents(tokens, mentions, agents, at, end, earlier) -> frozenset[str]:
    """What `it` or `them` behind a verb may stand for: what was named before, agents apart; `them` only for a plural
    where there is one. Good enough to award, never to deny."""
    many = any(t.word in ("them", "these", "those", "they", "their", "ones") for t in tokens[end:end + 7])
    named = [*earlier, *((m.term, tokens[m.end - 1].word.endswith("s")) for m in mentions if m.end <= at)]
    fit = [(term, plural) for term, plural in named if term not in agents]
    same = frozenset(term for term, plural in fit if plural or not many)
    return same or frozenset(term for term, _ in fit) or frozenset({"it"})


def _joint(tokens: tuple[Token, ...], at: int) -> int:
    """Where the `and` or comma is that joins the verb at `at` to the verb before it."""
    i = at
    while i and (tokens[i - 1].word in lex.AUXILIARY or tokens[i - 1].word in ("then", "also", "so", "thus", "finally", "only")
                 or tokens[i - 1].word.endswith("ly")):
        i -= 1
    return i - 1


def _goes_on(tokens: tuple[Token, ...], at: int) -> bool:
    """Whether the verb shares the subject of the one before: `takes the noise and returns ...`."""
    i = _joint(tokens, at)
    return i > 0 and tokens[i].word in ("and", ",", "then", "but", "or")


def _frame(sentence: Sentence) -> tuple[int, int]:
    """Where a distancing frame begins and ends in the sentence's text; (0, 0) when there is none."""
    words = framed(sentence.text)
    if not words:
        return 0, 0
    start = sentence.text.find(words)
    rest = sentence.text[start + len(words):]
    if not words.rstrip().endswith((":", "!", ",")) and len(rest.split()) < 2:
        return 0, len(sentence.text) + 1
    first = len(rest)
    for mark in (":", " but ", ", it ", " rather ", " instead ", " in fact ", " actually ", ", the ", ", only ", " whereas ", " while ", ", since ", " because ", ", because "):
        where = rest.find(mark, 8)
        if where >= 0:
            first = min(first, where)
    return start, start + len(words) + first + 1


def _verbs(tokens: tuple[Token, ...], taken: set[int]) -> list[tuple[int, int, frozenset[str]]]:
    out, i = [], 0
    while i < len(tokens):
        hit = _VERBS.match(tokens, i) if tokens[i].kind == "word" and i not in taken else None
        if hit and tokens[i].word == "means" and i and tokens[i - 1].word == "by":
            hit = None
        if hit and hit[0] == 1 and tokens[i].stem in ("get", "becom") and tokens[i + 1:i + 2] and _participle(tokens[i + 1]):
            hit = None
        if hit and not (hit[0] == 1 and _noun_use(tokens, i)):
            classes = hit[1] | {"=" + tokens[i].stem}
            if tokens[i].stem in ("take", "tak", "pull", "get", "work") and any(t.word in ("out", "away") for t in tokens[i + 1:i + 7]):
                classes |= {"changes"}
            out.append((i, i + hit[0], classes))
            i += hit[0]
        else:
            i += 1
    return out


def _noun_use(tokens: tuple[Token, ...], i: int) -> bool:
    """`the update`, `each change`, `its output`: a noun; `the updated latents`, `cached keys`: an adjective."""
    before = tokens[i - 1].word if i else ""
    if any(t.word in _LIGHT for t in tokens[max(0, i - 4):i]) and tokens[i + 1:i + 2] and tokens[i + 1].word in ("of", "to", "on"):
        return False
    if tokens[i].word.endswith("ing") and before in ("by", "for", "of", "in", "without", "and", "is", "are", "from", "instead"):
        return False
    if before in ("this", "that", "it", "which", "one") and tokens[i].word.endswith("s"):
        return False
    return before in _DETERMINERS or before.endswith("'s") or (before in ("that", "these", "those") and not tokens[i].word.endswith(("s", "ed", "ing")))


def _infinitive(tokens: tuple[Token, ...], at: int) -> bool:
    return bool(at) and tokens[at - 1].word in ("to", "can", "will", "must", "for", "by")


def _participle(token: Token) -> bool:
    return token.word.endswith(("ed", "en")) or token.word in PARTICIPLES


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
        if tokens[i].kind == "punct" or word in lex.BREAKS or word in _BE:
            return ""
        if word in _DETERMINERS or word in ("these", "those", "that", "both"):
            before = tokens[i - 1].word if i > stop else ""
            return before if before in _ASIDE or before in _OF else ""
    return ""


def _possessive(tokens: tuple[Token, ...], m: Mention) -> bool:
    return tokens[m.end - 1].word.endswith(("'s", "s'"))


def _roles(tokens, mentions, actors, at, end, after):
    colon = max((i for i in range(at) if tokens[i].word in (":", ";")), default=-1)
    left = [m for m in mentions if colon < m.at and m.end <= at]
    right = [m for m in mentions if end <= m.at]
    auxiliaries = [t.word for t in tokens[max(0, at - 4):at]]
    passive = _participle(tokens[at]) and (any(w in _BE for w in auxiliaries) and not any(w in ("has", "have", "had") for w in auxiliaries[-1:])
                                           or _by_follows(tokens, end))
    if passive:
        agents = _by_agent(tokens, right, actors, end, after)
        patient = _nearest(tokens, left, None, at)
        objects = frozenset(patient[0])
        if patient[0] and patient[2]:
            objects |= _joined(tokens, left, patient[2])
        return agents, objects, frozenset(), bool(agents), True
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
    head = [t.word for t in tokens[max(0, at - 4):at]]
    if not (head[-1:] == ["what"] or (head[-1:] in (["who"], ["that"], ["which"]) and set(head) & {"one", "thing", "part", "component", "piece", "object"})):
        return None
    copula = next((i for i in range(end, min(end + 9, len(tokens))) if tokens[i].word in ("is", "are", "was")), None)
    if copula is None or copula == end:
        return None
    subject = next((m for m in right if m.at > copula), None)
    return (subject, copula) if subject else None


def _into(tokens, mentions, end, after) -> frozenset[str]:
    """What comes out of a change: `turns the latents into pixels`."""
    return frozenset(m.term for m in mentions if end <= m.at < after and any(
        t.word == "into" for t in tokens[max(end, m.at - 4):m.at]) and not any(o.at > end and o.end <= m.at and any(
            t.word == "into" for t in tokens[max(end, o.at - 4):o.at]) for o in mentions))


def _by_follows(tokens, end) -> bool:
    return any(t.word == "by" for t in tokens[end:end + 4])


def _by_agent(tokens, right, actors, end, after) -> frozenset[str]:
    for m in right:
        word = _preposition(tokens, m.at, right, end)
        near = {t.word for t in tokens[max(end, m.at - 4):m.at]}
        helped = word == "of" and near & {"means", "help"}
        if (word in _AGENT_BY or helped) and m.term in actors and m.at - end <= 14:
            return frozenset({m.term})
        if word == "using" and m.term in actors and m.at - end <= 4 and not _possessive(tokens, m):
            return frozenset({m.term})
    return frozenset()


def _nearest(tokens, left, actors, at):
    """(terms, sure, the mention) of the nearest fit subject to the left of a verb."""
    head = at
    while head and (tokens[head - 1].word in lex.AUXILIARY or tokens[head - 1].word in _GLUE or tokens[head - 1].word.endswith("ly")
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
        if _possessive(tokens, m) and m.end < at - 0 and m.end != at:
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


def _joined(tokens, left, m: Mention) -> frozenset[str]:
    return frozenset(o.term for o in left if o.end < m.at and any(t.word == "and" for t in tokens[o.end:m.at]) and m.at - o.end <= 3)


def _objects(tokens, right, end, after):
    found, bad = set(), set()
    removal = tokens[end - 1].stem in _REMOVAL or tokens[max(0, end - 2)].stem in _REMOVAL
    aside = False
    last = end
    for m in right:
        between = tokens[last:m.at]
        words = [t.word for t in between]
        leads = after < len(tokens) and m.end <= after and all(t.word in lex.AUXILIARY or t.word in _GLUE for t in tokens[m.end:after])
        if leads and (last != end or any(t.word in _PRONOUNS or t.kind == "amount" for t in between)) and set(words) & {"and", ",", "or", "then"}:
            break
        if m.at >= after and m.at != after:
            break
        if "not" in words or "than" in words or "instead" in words:
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
            aside = aside and set(words) <= _GLUE and last != end
        if "of" in words and not preposition and last != end:
            aside = False
        if _possessive(tokens, m):
            last = m.end
            continue
        if not aside:
            found.add(m.term)
        last = m.end
    near = tokens[end:min(after, end + 7)]
    if any(t.word in _PRONOUNS - {"that"} or t.word in ("their", "ones") or (t.word == "that" and not i) for i, t in enumerate(near[:3])) or any(
            a.word in ("of", "to") and b.word in _PRONOUNS for a, b in itertools.pairwise(near)):
        found.add("it")
    return frozenset(found), frozenset(bad)


def _denied_object(tokens, end, mentions) -> bool:
    """`updates no latents`, `updates neither ...`: a negator right behind the verb without a `but`."""
    near = [t.word for t in tokens[end:end + 2]]
    if not near or near[0] not in ("no", "not", "neither", "nothing", "none", "nobody"):
        return False
    return not any(t.word in ("but", "only") for t in tokens[end:end + 12])


def _along(tokens, mentions, end) -> tuple[frozenset[str], frozenset[str]]:
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
            if i < end or (tokens[i].word not in _GLUE and tokens[i].kind == "word"):
                break
    return frozenset(along), frozenset(away)
