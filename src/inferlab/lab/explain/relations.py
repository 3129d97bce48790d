"""Who does what in a sentence: agent, verb class and object, with negation, hedge and distance."""

import re
from dataclasses import dataclass

from . import lexicon as lex
from .listed import listed
from .negation import frame_of, is_hedged, negated, own_negators, prevented
from .roles import BE, INSERTED, along_of, by_agent, into_of, possessive, roles
from .verbs import infinitive, verbs_of
from .vocabulary import Mention
from .words import Sentence, Token

_CONTROL = frozenset(listed("tell ask let allow caus forc enabl instruct want get mak help lead"))
"""`tells the UNet to update`: the object acts, not the subject."""
_MANNER = re.compile(r"\b(?:in one (?:go|piece|step|pass|call|chunk)|(?:all )?at once|altogether|together|as a whole|in a single|as one|whole|in full|in parallel|directly|"
                     r"(?:by )?(?:it|them)sel(?:f|ves)|alone|on its own|simultaneously|entirely|completely)\b")


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
    mentions = [m for m in mentions if not (m.end - m.at == 1 and tokens[m.at].word.endswith("ed") and m.at and tokens[m.at - 1].word in BE)]
    taken = {i for m in mentions for i in range(m.at, m.end)}
    frame_from, frame_to = frame_of(sentence)
    hedged = is_hedged(sentence, frame_from, frame_to)
    verbs = verbs_of(tokens, taken)
    out = []
    subject: tuple[frozenset[str], bool] = (frozenset(), False)
    doer: tuple[frozenset[str], str] = (frozenset(), "")
    for n, (at, end, classes) in enumerate(verbs):
        before_verb = verbs[n - 1][1] if n else 0
        after = next((v[0] for v in verbs[n + 1:] if not infinitive(tokens, v[0])), len(tokens))
        agents, objects, bad, sure, passive = roles(tokens, mentions, actors, at, end, after)
        if not passive and n and subject[0] and _goes_on(tokens, at) and not _aside(tokens, at, mentions) and not any(before_verb <= m.at and m.end <= at and m.at > _joint(tokens, at) for m in mentions):
            agents, sure = subject
        if not passive and at and tokens[at - 1].word == "to" and doer[0] and doer[1] not in _CONTROL:
            agents, sure = doer[0], True
        if not passive and agents and any(t.word == "neither" for t in tokens[:at]):
            agents |= {m.term for m in mentions if m.end <= at and m.term in actors and any(t.word == "neither" for t in tokens[:m.at])
                       and any(t.word == "nor" for t in tokens[m.end:m.end + 4])}
        doer = (agents - {"it"}, tokens[at].stem)
        if "it" in agents and not passive:
            named = [m.term for m in mentions if m.end <= at and m.term in actors and not possessive(tokens, m)]
            agents = frozenset({named[-1] if named else prior or "it"})
        if "it" in objects and not passive:
            objects, sure = (objects - {"it"}) | _antecedents(tokens, mentions, agents, at, end, earlier), False
        if not passive or any(t.word in BE for t in tokens[max(0, at - 4):at]):
            subject = (objects if passive else agents, sure or passive)
        if not passive:
            by = by_agent(tokens, _behind_by(tokens, mentions, end, after), actors, end, after) if (agents or objects) and "changes" in classes else frozenset()
            if by and by != agents:
                out.append(Relation(by, classes, objects - by or agents, tokens[at].word, negated(tokens, at, marks), hedged,
                                    frame_from <= tokens[at].start - tokens[0].start < frame_to, True, at, sentence.text))
        if not agents and not objects:
            continue
        no = (negated(tokens, at, marks) or _denied_object(tokens, end, mentions)) != (prevented(tokens, at) and (tokens[at].word.endswith("ing") or tokens[at - 1].word == "to"))
        if "grows" in classes:
            stop = next((v[0] for v in verbs[n + 1:] if "is" not in v[2]), len(tokens))
            along, away = along_of(tokens, [m for m in mentions if m.at < stop], end)
            objects, bad = objects | along, bad | away
        head = max((m.end for m in mentions if m.end <= at and m.term in (objects if passive else agents)), default=at)
        near = not any(t.word in (",", ";", "but", "while", "whereas") and not {u.word for u in tokens[k - 1:k + 2]} & INSERTED for k, t in enumerate(tokens[head:at], head))
        if prevented(tokens, at) or any(t.word in ("but", "rather") for t in tokens[end:end + 12]) or _MANNER.search(
                " ".join(t.word for t in tokens[end:end + 12])):
            near = False  # what is denied is how, not that
        close = any(0 <= m.at - end <= 5 for m in mentions) or not objects
        made = into_of(tokens, mentions, end, after) if agents and "changes" in classes and not passive else frozenset()
        if made:
            out.append(Relation(agents, frozenset({"makes"}), made, tokens[at].word, no, hedged,
                                frame_from <= tokens[at].start - tokens[0].start < frame_to, sure, at, sentence.text))
        out.append(Relation(agents, classes, objects, tokens[at].word, no, hedged,
                            frame_from <= tokens[at].start - tokens[0].start < frame_to, sure, at, sentence.text, bad, close, near))
    return out


def _behind_by(tokens, mentions, end, after) -> list[Mention]:
    """The terms behind a verb: those before the next verb, and all others where one of them is an agent that is told more
    about (`by the UNet, which predicts, and the scheduler, which ...`)."""
    near = [m for m in mentions if end <= m.at < after]
    told = any({t.word for t in tokens[m.end:m.end + 2]} & {"which", "that", "who"} for m in near)
    return [m for m in mentions if end <= m.at] if told else near


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


def _aside(tokens: tuple[Token, ...], at: int, mentions: list[Mention]) -> bool:
    """Whether the comma before a verb closes an aside behind its subject: `the scheduler, by means of this, makes ...`."""
    i = _joint(tokens, at)
    if i <= 0 or tokens[i].word != ",":
        return False
    first = next((k for k in range(i - 1, max(-1, i - 12), -1) if tokens[k].word == ","), -1)
    return first > 0 and any(m.end == first for m in mentions)


def _denied_object(tokens, end, mentions) -> bool:
    """`updates no latents`, `updates neither ...`: a negator right behind the verb without a `but`."""
    near = [t.word for t in tokens[end:end + 2]]
    if not near or near[0] not in ("no", "not", "neither", "nothing", "none", "nobody"):
        return False
    return not any(t.word in ("but", "only") for t in tokens[end:end + 12])
