"""Checks the numbers of an answer against the facts of the trace: quoted right, wrong, or not at all."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from .facts import _values, _within, measured
from .listed import listed
from .moves import misplaced_counts, turned
from .negation import frame_of, is_hedged, negated, own_negators
from .quantities import Quantity
from .rubric import Amounts, Rubric
from .vocabulary import Mention, Vocabulary
from .words import Sentence

_SUPPOSED = frozenset(listed("if would could instead than say imagine suppose unlike typical usual normally versus vs e.g rather hypothetical "
                      "doubling halving whereas real sd sdxl"))


@dataclass
class Found:
    """What an answer quotes: whole shapes, bound counts and parts that are right; contradictions; denied truths."""

    whole: list[str] = field(default_factory=list)
    counts: dict[str, str] = field(default_factory=dict)
    parts: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    denied: list[str] = field(default_factory=list)
    doubtful: list[str] = field(default_factory=list)
    misplaced: list[str] = field(default_factory=list)
    refuted: list[str] = field(default_factory=list)
    hedged: list[str] = field(default_factory=list)
    any: bool = False
    strangers: list[str] = field(default_factory=list)
    loose: list[tuple[Quantity, str]] = field(default_factory=list)
    numbers: set[str] = field(default_factory=set)

    def has(self, key: str) -> bool:
        """Whether a right number of a term was quoted; `batch=2`: whether that one was."""
        return key.replace(" ", "") in self.numbers if "=" in key else key in self.counts


def resolve(value: object, facts: Mapping[str, object]) -> list[object]:
    """A rubric's value: the name of a fact, a value, or a list of either. Raises KeyError for an unknown name."""
    if isinstance(value, str):
        if value not in facts:
            raise KeyError(f"the rubric asks for the fact {value!r}; the trace has {sorted(facts)}")
        return [] if measured(value) else _values(facts[value])
    if isinstance(value, (list, set, frozenset)):
        return [v for item in value for v in resolve(item, facts)]
    return [value]


def read_amounts(parts: list[Sentence], wanted: Amounts, rubric: Rubric, facts: Mapping[str, object], vocabulary: Vocabulary,
                 loose: bool = False) -> Found:
    """Look at every shape and count of the answer. `loose` gives a number that stands beside no term to a key term that
    the answer names, where no number is a stranger to the trace."""
    shapes = [tuple(v) for item in wanted.shapes for v in resolve(item, facts)]
    every = [v for name, f in facts.items() if not measured(name) for v in _values(f) if isinstance(v, tuple) and all(isinstance(d, int) for d in v)]
    known = shapes + every
    counts = {term: resolve(value, facts) for term, value in wanted.counts.items()}
    of = {term: [tuple(v) for v in resolve(value, facts)] for term, value in wanted.of.items()}
    moves = [(a, b) for before, after in wanted.moves for a in resolve(before, facts) for b in resolve(after, facts)]
    places = {place: {term: resolve(v, facts) for term, v in there.items()} for place, there in wanted.at.items()}
    found = Found()
    for sentence in parts:
        _read(sentence, found, shapes, known, counts, of, vocabulary)
        found.wrong += turned(sentence, moves)
        found.misplaced += misplaced_counts(sentence, places, counts, vocabulary)
    if loose and not found.wrong:
        _adopt(found, parts, wanted, counts, every, facts, vocabulary)
    return found


def _adopt(found: Found, parts: list[Sentence], wanted: Amounts, counts: Mapping, shapes: list[tuple], facts: Mapping, vocabulary: Vocabulary) -> None:
    """Give the numbers that stand alone to the key terms that the answer names."""
    named = {m.term for s in parts for m in vocabulary.mentions(s)}
    keys = [k.partition("=")[0].strip() for k in wanted.key]
    known = [v for values in counts.values() for v in values] + [d for shape in shapes for d in shape] + [v for v in facts.values() if isinstance(v, (int, float))]
    found.strangers = [w for a, w in found.loose if not any(a.is_like(v) for v in known)]
    if found.strangers:
        return
    for term in sorted(set(keys) & named):
        for amount, word in found.loose:
            if any(amount.is_like(v) for v in counts[term]):
                found.counts.setdefault(term, word)
                found.numbers.add(f"{term}={amount.value}")


def _read(sentence, found, shapes, known, counts, of, vocabulary) -> None:
    tokens = sentence.tokens
    loose: list[tuple[object, str]] = []
    marks = own_negators(sentence)
    mentions = vocabulary.mentions(sentence)
    frame_from, frame_to = frame_of(sentence)
    if is_hedged(sentence, frame_from, frame_to) and any(t.kind == "amount" and t.amount.kind in ("shape", "count") for t in tokens):
        found.hedged.append(sentence.text)
    for i, t in enumerate(tokens):
        if t.kind != "amount" or (t.amount.kind == "count" and names_axis(tokens, i)):
            continue
        found.any = True
        inside = frame_from <= t.start - tokens[0].start < frame_to
        away = negated(tokens, i, marks) or inside or any(w.word == "not" for w in tokens[max(0, i - 2):i])
        supposed = any(w.word in _SUPPOSED for w in tokens[max(0, i - 6):i])
        if t.amount.kind == "shape":
            _shape(t.amount.value, t.word, i, away, supposed, found, shapes, known, of, mentions, tokens)
        elif t.amount.kind == "ratio" and t.word.endswith("times") and _times_called(tokens, i, counts):
            right = any(t.amount.value == v for v in counts["calls"])
            if right and not (away or supposed):
                found.counts["calls"] = t.word
                found.numbers.add(f"calls={int(t.amount.value)}")
            elif not (right or away or supposed):
                found.wrong.append(f"{t.word} called")
        elif t.amount.kind in ("count", "bytes"):
            term = beside(tokens, i, mentions, counts)
            if term is not None and not any(t.amount.is_like(v) for v in counts[term]) and _of_another(tokens, i, mentions, term):
                term = None
            if term is None:
                if not (away or supposed) and _loose(tokens, i):
                    loose.append((t.amount, t.word))
                if not (away or supposed) and t.amount.kind == "count" and not _names(tokens, i):
                    found.loose.append((t.amount, t.word))
                continue
            right = any(t.amount.is_like(v) for v in counts[term])
            if away or supposed:
                if inside and not right:
                    found.refuted.append(f"{t.word} {term}")
                if right and away:
                    found.denied.append(f"{t.word} {term}")
            elif right:
                found.counts[term] = t.word
                found.numbers.add(f"{term}={t.amount.value}")
            elif t.word not in ("one", "single"):
                (found.misplaced if _elsewhere(tokens, i, mentions, term, counts) else found.wrong).append(f"{t.word} {term}")
    if any(not any(amount.is_like(v) for values in counts.values() for v in values) for amount, _ in loose):
        loose = []
    for term in sorted({m.term for m in mentions if m.term in counts} - set(found.counts)):
        for amount, word in loose:
            if any(amount.is_like(v) for v in counts[term]):
                found.counts[term] = word
                found.numbers.add(f"{term}={amount.value}")


def _times_called(tokens, i: int, counts: Mapping) -> str | None:
    """`the UNet gets called 8 times`: a number of calls, where the rubric counts calls."""
    if "calls" not in counts:
        return None
    return "calls" if any(t.stem in ("call", "run", "invok", "evaluat", "execut", "ran") for t in tokens[max(0, i - 3):i]) and not any(
        t.word in ("per", "each", "every", "more", "as") for t in tokens[i + 1:i + 4]) else None


def _elsewhere(tokens, i: int, mentions: list[Mention], term: str, counts: Mapping) -> bool:
    """Whether a number that is wrong for the term before it is right for another one, with a third number between: not certainly wrong."""
    before = next((m for m in reversed(mentions) if m.end <= i and m.term == term), None)
    if before is None or any(m.term == term and 0 < m.at - i <= 3 for m in mentions) or not any(t.kind == "amount" for t in tokens[before.end:i]):
        return False
    return any(tokens[i].amount.is_like(v) for other, values in counts.items() if other != term for v in values)


def _of_another(tokens, i: int, mentions: list[Mention], term: str) -> bool:
    """Whether a number that was bound to a term before it may count something else: `a tile has 16 of the 32 positions`,
    `4 channels -> 3 and 16 -> 128`."""
    if any(m.term == term and 0 < m.at - i <= 3 for m in mentions):
        return False
    before = next((m for m in reversed(mentions) if m.end <= i and m.term == term), None)
    if before is None or not any(t.kind == "amount" for t in tokens[before.end:i]):
        return False
    between = [t.word for t in tokens[before.end:i]]
    return "and" in between or "(" in between and ")" not in between or between[-2:] == ["of", "the"] or between[-1:] == ["of"]


def _names(tokens, i: int) -> bool:
    """Whether a number is a setting or a name rather than a count: `guidance 4.0`, `section 3`."""
    return tokens[i].word in ("one", "single", "two") and not tokens[i - 1].word in ("is", "to", "=", "into", "of", "becomes") if i else False


def names_axis(tokens, i: int) -> bool:
    """Whether a number names an axis instead of counting anything: `dim 0`, `axes 2 and 3`."""
    if i and tokens[i - 1].word in ("call", "step", "iteration", "layer", "rank", "timestep", "round") and tokens[i].word[:1].isdigit():
        return True  # `in step 3`
    k = i - 1
    if k > 0 and tokens[k].word in (",", "(") and tokens[k - 1].kind != "amount":
        return False  # `token axis, 5 instead of 1`
    while k > 0 and (tokens[k].kind == "amount" or tokens[k].word in ("and", ",", "index", "no", "number", "(", "&", "or")):
        k -= 1
    return k >= 0 and tokens[k].stem in ("axis", "axes", "dim", "dimension", "ax") and tokens[k].word not in ("dimension",) or (
        k >= 0 and tokens[k].word == "dimension" and k == i - 1 and tokens[i].word[:1].isdigit() and not any(t.word in ("is", "of", "has", "=") for t in tokens[k:i]))


def _shape(value, word, i, away, supposed, found, shapes, known, of, mentions, tokens) -> None:
    whole = value in shapes
    part = not whole and (value in known or len(value) >= 2 and any(_within(value, s) or (len(value) > 2 and sorted(value) == sorted(s[-len(value):])) for s in known))
    if away:
        if whole or not part:
            (found.denied if whole else found.refuted).append(word)
        return
    if whole:
        near = _owner(i, mentions, of, tokens)
        if near is not None and value not in of[near]:
            found.doubtful.append(f"{word} beside {near}")
        else:
            found.whole.append(word)
    elif part:
        found.parts.append(word)
    elif not supposed:
        (found.wrong if len(value) > 2 else found.misplaced).append(word)


def _loose(tokens, i: int) -> bool:
    """Whether a number that stands beside no term may still count one: `so 1 becomes 2`, not `two predictions`, `axis 1`."""
    if i and tokens[i - 1].stem in ("axis", "dim", "dimension", "version", "section", "about", "factor"):
        return False
    if tokens[i].word[:1].isdigit():
        return True
    return tokens[i].word not in ("one", "single") and not (tokens[i + 1:i + 2] and tokens[i + 1].kind == "word" and tokens[i + 1].word not in _LINK | {"for", "because", "due"})


def _owner(i: int, mentions: list[Mention], of: Mapping, tokens) -> str | None:
    """The term whose shape this is said to be: the nearest one in the same clause, before or else after."""
    def clear(a: int, b: int) -> bool:
        return not any(t.word in (";", "but", "while", "whereas", ",", "and", "then") for t in tokens[a:b])

    named = [m for m in mentions if m.term in of]
    before = [m for m in named if m.end <= i and clear(m.end, i)]
    after = [m for m in named if m.at > i and clear(i + 1, m.at) and not any(t.word in ("into", "become", "becomes", "->", "\u2192", "gives") for t in tokens[i + 1:m.at])]
    if after and after[0].at - i <= 4 and tokens[i + 1].word in ("at", "in", "for", "inside", "to", "into", "on"):
        return after[0].term
    if before and after:
        return before[-1].term if i - before[-1].end <= after[0].at - i else after[0].term
    return before[-1].term if before else after[0].term if after else None


_LINK = frozenset(listed("does do did grow is are was were be not isn't aren't never of = : equals has have to the with at in a my from only still always changes changed change increases increased doubles doubled rises rose expands extends shrinks drops turns gets got starts started jumps growing changing stays stay remains remain size length count axis "
                  "dimension dim number becomes become goes grew grows go went ran runs ends end reaches reached reach up until -> \u2192 ( ) as by value about over"))


_BINDS = frozenset(listed("is are was were be not isn't aren't of = : equals has have my from becomes goes grew grows go went ran runs ends end reaches reached reach "
                          "length size count number -> \u2192 ( changes changed change increases increased doubles doubled rises rose expands extends shrinks drops turns gets got starts started jumps growing changing stays stay remains remain axis dimension dim until up value"))


def beside(tokens, i: int, mentions: list[Mention], counts: Mapping) -> str | None:
    """The term that a number counts: right behind it (`4 channels`, `20 denoising steps`) or before it (`batch of 2`)."""
    after = [m for m in mentions if m.at > i]
    counted = next((m for m in after if m.at - i <= 3 and m.term in counts), None)
    if counted and all(
            t.kind == "word" and t.word not in _LINK | {"and", "for", "into", "on", "while", "but", "when", "per", "each", "every", "instead"} for t in tokens[i + 1:counted.at] if t.word not in ("-",)):
        return counted.term
    before = [m for m in mentions if m.end <= i and not (m.at and tokens[m.at - 1].word in ("per", "each", "every")) and not (m.term not in counts and tokens[m.at - 1].word in ("of", "the"))]
    if tokens[i].word in ("one", "single", "two") and not (tokens[i - 1].word in ("is", "=", ":", "of", "to", "are")):
        return None
    inner = {k for m in mentions for k in range(m.at, m.end)}
    if before and not any(t.word in _BINDS or (t.kind == "word" and t.word.startswith("grow")) for t in tokens[before[-1].end:i]) and i > before[-1].end:
        return None
    if before and before[-1].term in counts and i - before[-1].end <= 6 and all(
            t.word in _LINK or t.kind == "amount" or t.word == "and" or k in inner for k, t in enumerate(tokens[before[-1].end:i], before[-1].end)):
        if after and after[0].at == i + 1:
            return None
        return before[-1].term
    return None


def foreign_shapes(parts: list[Sentence], facts: Mapping[str, object]) -> list[str]:
    """Shapes of three axes or more that an answer gives as its own and that no fact has, whole or in part."""
    known = [v for name, f in facts.items() if not measured(name) for v in _values(f) if isinstance(v, tuple) and all(isinstance(d, int) for d in v)]
    out = []
    for sentence in parts if known else ():
        tokens, marks = sentence.tokens, own_negators(sentence)
        frame_from, frame_to = frame_of(sentence)
        for i, t in enumerate(tokens):
            if t.kind != "amount" or t.amount.kind != "shape" or len(t.amount.value) < 3:
                continue
            apart = negated(tokens, i, marks) or frame_from <= t.start - tokens[0].start < frame_to or any(
                w.word in _SUPPOSED or w.word == "not" for w in tokens[max(0, i - 6):i])
            if not apart and not any(_within(t.amount.value, shape) or sorted(t.amount.value) == sorted(shape[-len(t.amount.value):]) for shape in known):
                out.append(t.word)
    return out
