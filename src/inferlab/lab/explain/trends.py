"""Checks which way an answer says that quantities go when the lever is pulled."""

import itertools
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeVar

from . import lexicon as lex
from .directions import effects, quantity_table
from .effect import Effect
from .gates import framed
from .lexicon_verbs import VERB_INDEX
from .listed import listed
from .negation import frame_of, hedges_of, is_hedged, negators
from .phrases import Table
from .quantities import Quantity
from .rubric import SIGN, Rubric, Trend
from .vocabulary import Vocabulary
from .wording import alternatives
from .words import Sentence, phrase

_Way = TypeVar("_Way", int, str)
_SATURATION = Table(lex.SATURATION)
_OFF = Table(lex.OFF)


_VERB = Table(VERB_INDEX)
_JOINING = frozenset(("and", "but", "with", "while", "although", "though", "at", "so", "because", "for", "then", "yet", "than", "whereas", "means", "is", "are"))
_GONE = frozenset(("off", "disabl", "drop", "remov", "discard", "delet", "gon", "absent", "miss", "skip", "unused"))
_LINKS = frozenset(listed("the a an this that all any vae its it use using have having turn turning switch switching on enable enabling apply applying add adding of with setting my our such"))
_COMPARED = frozenset(("like", "as", "than", "from", "versus", "vs"))
_SINGLE = frozenset(listed("each every per one single a"))


@dataclass
class Reading:
    """What an answer says about a trend: right, wrong and denied-though-right effects, in words."""

    right: dict[str, list[str]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    denied: list[str] = field(default_factory=list)
    hedged: list[str] = field(default_factory=list)
    lever: bool = False
    unplaced: list[str] = field(default_factory=list)
    refuted: list[str] = field(default_factory=list)
    named: set[str] = field(default_factory=set)
    joined: bool = False
    strong: set[str] = field(default_factory=set)
    unsure: list[str] = field(default_factory=list)
    factors: list[str] = field(default_factory=list)
    mentioned: bool = False
    guessed: bool = False
    """Whether the way of the lever that a wrong effect was read with comes of a comparison or of a bare `without`."""
    certain: bool = False
    """Whether a wrong or denied effect stands in one clause with its lever: `more steps are faster`."""


@lru_cache(maxsize=128)
def _says(pairs: tuple[tuple[str, str], ...]) -> Table | None:
    """The phrases of a rubric that say a direction by themselves."""
    entries = {}
    for key, listing in pairs:
        quantity, way = key.rsplit(" ", 1)
        for item in listing.split(","):
            for one in alternatives(item):
                entries[phrase(one)] = (quantity, SIGN[way])
    return Table(entries) if entries else None


@lru_cache(maxsize=128)
def _table(named: tuple[tuple[str, str], ...], lever: str) -> Table:
    """The general quantities, the lever's words, and a rubric's own quantities."""
    extra = {}
    for name, listing in named:
        for item in listing.split(","):
            key = phrase(item)
            if key:
                extra[key] = ("lever" if name == lever else name, 1)
    return quantity_table(extra)


def tables(trend: Trend, rubric: Rubric) -> tuple[Table, Table | None]:
    """The quantities of a trend (general ones, the lever, the rubric's own) and the phrases that say a direction."""
    named = tuple((name, rubric.terms[name]) for name in sorted({trend.lever, *trend.signs()} & set(rubric.terms)))
    return _table(named, trend.lever), _says(tuple(trend.says.items()))


def read_trend(parts: list[Sentence], trend: Trend, rubric: Rubric, vocabulary: Vocabulary) -> Reading:
    """Read all sentences in order; a sentence without the lever goes on with the last one's."""
    signs = trend.signs()
    own = frozenset((*trend.gain, *trend.cost, *trend.also))
    table, says = tables(trend, rubric)
    reading = Reading()
    carried = {"up": 1, "down": -1}.get(trend.asked, 1 if trend.switch else None)
    reading.lever = trend.asked in ("up", "down")
    for sentence in parts:
        found = effects(sentence, table, says)
        levers = levers_of(sentence, found, trend, vocabulary)
        reading.lever |= bool(levers)
        reading.mentioned |= any(t.kind == "word" and (hit := table.match(sentence.tokens, n)) and hit[1][0] in signs for n, t in enumerate(sentence.tokens))
        reading.named |= {e.quantity for e in found if e.quantity != "lever"}
        lever_at = {i for m in vocabulary.mentions(sentence) if m.term == trend.lever for i in range(m.at, m.end)}
        reading.joined |= any(t.kind in ("punct", "arrow") or t.word in _JOINING or (t.kind == "word" and n not in lever_at and _VERB.match(sentence.tokens, n))
                              for n, t in enumerate(sentence.tokens)) or len(sentence.words) < 4
        frame_from, frame_to = frame_of(sentence)
        hedged = is_hedged(sentence, frame_from, frame_to)
        saturated = [n for n in range(len(sentence.tokens)) if sentence.tokens[n].kind == "word" and _SATURATION.match(sentence.tokens, n)]
        for e in found:
            if e.quantity == "lever" or e.quantity not in signs:
                continue
            if not trend.switch and _for_each(sentence, e, vocabulary, trend.lever):
                reading.unplaced.append(e.words)
                continue
            pull = pull_of(sentence, e, levers, carried)
            if pull is None:
                reading.unplaced.append(e.words)
                continue
            inside = frame_from <= sentence.tokens[e.at].start - sentence.tokens[0].start < frame_to
            before = len(reading.wrong) + len(reading.denied)
            _place(reading, e, pull, signs, hedged and _doubts(sentence, e), bool(saturated), inside, own)
            if len(reading.wrong) + len(reading.denied) > before:
                reading.guessed |= bool(trend.asked) and pull == -SIGN[trend.asked] and not _named(sentence, found, trend, vocabulary)
                reading.certain |= any(at < e.at and not any(t.kind == "punct" or t.word in lex.BREAKS | {"and"} for t in sentence.tokens[at:e.at]) for at, _ in levers)
        if levers:
            carried = levers[-1][1]
    if not trend.switch:
        reading.factors = _factors(parts)
    return reading


def _factors(parts: list[Sentence]) -> list[str]:
    """The factors that an answer names (`halve`, `five times`, `from 10 to 50`), [] where all are about the same one."""
    found: list[tuple[float, str]] = []
    for s in parts:
        tokens = s.tokens
        for i, t in enumerate(tokens):
            after = tokens[i + 1].word if i + 1 < len(tokens) else ""
            if t.word in ("half", "halve", "halves", "halved", "halving", "twice", "double", "doubles", "doubled", "doubling"):
                found.append((2.0, t.word))
            elif t.kind == "amount" and (t.amount.kind == "ratio" or (t.amount.kind == "count" and after == "times" and tokens[i + 2:i + 3] and tokens[i + 2].word in ("as", "the", "more"))):
                found.append((float(t.amount.value), t.word))
            elif t.kind == "amount" and t.amount.kind == "count":
                other = next((j for j in range(i + 1, min(i + 5, len(tokens))) if tokens[j].kind == "amount" and tokens[j].amount.kind == "count"), None)
                if other and t.amount.value and tokens[other].amount.value and {w.word for w in tokens[i + 1:other]} & {"to", "instead", "->", "rather", "\u2192"}:
                    a, b = float(t.amount.value), float(tokens[other].amount.value)
                    found.append((max(a, b) / min(a, b), f"{t.word} {tokens[other].word}"))
    values = [v for v, _ in found if v > 1]
    return [w for _, w in found] if values and max(values) > 1.2 * min(values) else []


def _place(reading: Reading, e: Effect, pull: int, signs: dict[str, int], hedged: bool, saturated: bool, inside: bool, own: frozenset[str]) -> None:
    wanted = signs[e.quantity]
    said = e.sign * pull
    away = e.negated != inside
    name = "time" if e.quantity == "speed" or (e.quantity == "throughput" and "throughput" not in own) else e.quantity
    if hedged and not (e.negated or inside):
        reading.hedged.append(e.words)
        if said != wanted:
            (reading.wrong if e.strong else reading.unsure).append(e.words)
        return
    if away and wanted == 0 and said and not inside:
        reading.right.setdefault(name, []).append(f"not {e.words}")
        reading.strong.add(name)
        return
    if away:
        if said == wanted and not saturated:
            (reading.denied if e.strong else reading.unsure).append(e.words)
        elif said != wanted and inside:
            reading.refuted.append(e.words)
        elif said != wanted and e.told:
            reading.right.setdefault(name, []).append(f"not {e.words}")
        return
    if e.negated and inside:
        reading.denied.append(e.words)
        return
    if said == wanted:
        reading.right.setdefault(name, []).append(e.words)
        if e.strong:
            reading.strong.add(name)
    elif not saturated:
        (reading.wrong if e.strong else reading.unsure).append(e.words)


def _doubts(sentence: Sentence, e: Effect) -> bool:
    """Whether what leaves a sentence open concerns an effect: a `maybe` does so in its own clause only."""
    hedges = hedges_of(sentence)
    soft = [n for n in hedges if sentence.tokens[n].word in ("maybe", "perhaps", "possibly", "might")]
    if len(soft) < len(hedges) or len(soft) != 1:
        return True
    a, b = sorted((soft[0], e.at))
    return not any(t.kind == "punct" or t.word in ("and", "but") for t in sentence.tokens[a:b])


def _for_each(sentence: Sentence, e: Effect, vocabulary: Vocabulary, lever: str) -> bool:
    """`twice the compute per step`: of one step, not of the run."""
    tokens = sentence.tokens
    return any(m.term == lever and e.end < m.at <= e.end + 3 and tokens[m.at - 1].word in ("per", "each", "every", "a") and not any(
        t.kind == "punct" for t in tokens[e.end:m.at]) and tokens[e.end].word in ("per", "each", "every", "at", "in", "a", "for", "of") for m in vocabulary.mentions(sentence))


def levers_of(sentence: Sentence, found: list[Effect], trend: Trend, vocabulary: Vocabulary) -> list[tuple[int, int]]:
    """(where, +1 or -1) for each pull of the lever in the sentence, in order."""
    tokens = sentence.tokens
    out = [(e.at, e.sign * (-1 if e.negated and _denied_here(tokens, max(e.cue, e.at)) else 1)) for e in found if e.quantity == "lever" and e.sign and e.strong
           and not (e.cue > e.at and e.at and tokens[e.at - 1].word in _SINGLE) and not _other(tokens, min(e.at, e.cue))]
    mentions = [m for m in vocabulary.mentions(sentence) if m.term == trend.lever]
    if trend.switch:
        for m in mentions:
            before = max(0, m.at - 4)
            off = any((hit := _OFF.match(tokens, n)) and all(t.word in _LINKS for t in tokens[n + hit[0]:m.at]) for n in range(before, m.at) if tokens[n].kind == "word") or any(
                tokens[n].stem in _GONE for n in range(m.end, min(len(tokens), m.end + 4)))
            if off and ({t.word for t in tokens[max(0, before - 1):m.at]} & _COMPARED or "what" in {t.word for t in tokens[max(0, m.at - 9):m.at]}):
                continue  # `not the same like without tiling`, `not what you would get without tiling`
            out.append((m.at, -1 if off else 1))
        for n, token in enumerate(tokens):
            if token.word == "with" and tokens[n + 1:n + 2] and tokens[n + 1].word in ("it", "this"):
                out.append((n, 1))
            if tokens[n + 1:n + 2] and tokens[n + 1].word in ("it", "this", "that") and (token.stem in _GONE - {"miss"} or token.stem in ("disabl", "without", "turning")):
                out.append((n, -1))
        if not mentions:
            for n, token in enumerate(tokens):
                if token.word == "otherwise" and n and tokens[n - 1].kind == "word":
                    start = next((k + 1 for k in range(n - 1, -1, -1) if tokens[k].kind == "punct" or tokens[k].word in lex.BREAKS), 0)
                    out += [(start, -1), (n + 1, 1)]  # `what would not fit otherwise`: of its own clause only
                elif (token.word == "without" and _alone(tokens, n)) or token.word == "otherwise" or (token.word == "off" and n and tokens[n - 1].word in ("turned", "turning", "switched")):
                    out.append((n, -1))
    else:
        out += _comparisons(sentence, mentions)
        if not out:
            out += [(m.at, 1) for m in mentions if any(t.word == "with" for t in tokens[max(0, m.at - 4):m.at])
                    and not (trend.asked and any(t.kind == "amount" for t in tokens[max(0, m.at - 3):m.at]))
                    and not any(t.word in ("fewer", "few", "less", "low", "half") for t in tokens[max(0, m.at - 4):m.at])]
    return sorted(set(out))


def _other(tokens: tuple, at: int) -> bool:
    """Whether the lever's way is only that of what is compared with: `not as good like with all steps`, `drifts away from the one with many steps`."""
    return any(tokens[n].word == "with" and tokens[n - 1].word in ("like", "than", "as", "one", "ones", "that") for n in range(max(1, at - 4), at))


def _named(sentence: Sentence, found: list[Effect], trend: Trend, vocabulary: Vocabulary) -> bool:
    """Whether a sentence names the lever with its way (`fewer steps`, `without guidance`), or leaves it to the sentences before."""
    if trend.switch:
        return any(m.term == trend.lever for m in vocabulary.mentions(sentence))
    return any(e.quantity == "lever" and e.sign and e.strong for e in found)


def _alone(tokens: tuple, n: int) -> bool:
    """Whether a `without` is of the lever, though it is not named: `without it`, `Without, ...`; not `one with and one without text`."""
    ahead = tokens[n + 1].word if n + 1 < len(tokens) else ""
    return ahead in ("it", "this", "that", "them", "", ",") and tokens[n - 1].word not in _COMPARED | {"one"} if n else True


def _denied_here(tokens: tuple, at: int) -> bool:
    """Whether a pull of the lever is denied itself (`not more steps`), not the verb that it goes with (`does not rise with more steps`)."""
    return bool(negators(tokens[max(0, at - 3):at])) and not any(t.word in ("with", "at", "by", "when", "if", "for") for t in tokens[max(0, at - 2):at])


def _comparisons(sentence: Sentence, mentions: list) -> list[tuple[int, int]]:
    """`from 20 to 40 steps`, `40 instead of 20 steps`, `20 -> 40`: two counts and the way from one to the other."""
    if not mentions:
        return []
    tokens, out = sentence.tokens, []
    counts: list[tuple[int, Quantity]] = [(i, t.amount) for i, t in enumerate(tokens) if t.kind == "amount" and t.amount.kind == "count"]
    for (i, a), (j, b) in itertools.pairwise(counts):
        if not 1 < j - i <= (7 if {"compared", "against"} & {t.word for t in tokens[i:j]} else 9 if tokens[i + 1].kind == "word" and any(m.at == i + 1 for m in mentions) else 5) or a.value == b.value or not any(abs(m.at - i) <= 4 or abs(m.at - j) <= 4 for m in mentions):
            continue
        between = {t.word for t in tokens[i + 1:j]}
        if between & {"compared", "against"}:
            between = {"instead"}
        up = 1 if b.value > a.value else -1
        if between & {"to", "->", "\u2192", "=>"}:
            out.append((i, up))
        elif between & {"instead", "rather", "versus", "vs", "than", "not", "over", "place"}:
            out.append((i, -up))
    return out


def pull_of(sentence: Sentence, e: Effect, levers: list[tuple[int, _Way]], carried: _Way | None) -> _Way | None:
    """The way of the lever that an effect belongs to: of one of `levers` (where, which way), or the one carried on."""
    before = [lever for lever in levers if lever[0] < e.at]
    after = [lever for lever in levers if lever[0] >= e.at and not {"what", "than"} & {t.word for t in sentence.tokens[max(0, lever[0] - 2):lever[0]]}]
    if after and before:
        gap = [t.word for t in sentence.tokens[before[-1][0]:e.at]]
        joint = [t.word for t in sentence.tokens[e.at:after[0][0]]]
        crossed = any(w in (",", "but", "while", "whereas", "and", "although", "though", ";", ":") for w in gap)
        if crossed and not any(w in (",", "but", "while", "whereas", "and", "although", "though", ";", ":") for w in joint):
            return after[0][1]
        return before[-1][1]
    if before:
        return before[-1][1]
    if after:
        return after[0][1]
    return carried


def is_framed(parts: list[Sentence]) -> str:
    """The first distancing frame in an answer."""
    return next((f for f in (framed(s.text) for s in parts) if f), "")
