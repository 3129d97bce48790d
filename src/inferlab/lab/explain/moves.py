"""Numbers in the wrong order or at the wrong place: `from 128 to 16` of what goes from 16 to 128."""

from collections.abc import Mapping

from .listed import listed
from .negation import frame_of, negated, own_negators
from .vocabulary import Vocabulary
from .words import Sentence

_BECOMES = frozenset(listed("to becomes become becoming -> \u2192 => into turns turned gives shrinks grows"))
_BACK = frozenset(listed("instead from was were used than before out rather originally again back then"))
_LEAVES = frozenset(listed("leaves leave leaving left"))
_IN = frozenset(listed("in enters enter input inputs"))
_OUT = frozenset(listed("out leaves leave output outputs"))
_STAYS = frozenset(listed("stay stays stayed remain remains remained keeps kept unchanged constant"))
_INTO = frozenset(listed("in inside within at into for to entering enters enter through reaches reach meets meet"))
_GETS = frozenset(listed("gets get sees see receives receive takes take has have handles eats given accepts runs processes works"))
_ELSEWHERE = frozenset(listed("before after outside until without not except but whereas while and , ; : ( vs versus against"))


def turned(sentence: Sentence, moves: list[tuple[object, object]]) -> list[str]:
    """The places where a sentence lets the second of a pair become the first, or lets one of a pair stay as it is."""
    tokens, out = sentence.tokens, []
    marks = own_negators(sentence)
    start, stop = frame_of(sentence)
    amounts = [(i, t.amount) for i, t in enumerate(tokens) if t.kind == "amount" and t.amount.kind in ("shape", "count")
               and not start <= t.start - tokens[0].start < stop]
    for before, after in moves:
        for n, (i, first) in enumerate(amounts):
            if negated(tokens, i, marks):
                continue
            for j, second in amounts[n + 1:n + 4]:
                between = [t.word for t in tokens[i + 1:j]]
                if (_is(first, after) and _is(second, before) and len(between) <= 12 and set(between) & _BECOMES and not set(between) & _BACK
                        and not any(w in (",", ";", "while", "whereas") for w in between) and ("to" not in between or set(between) & (_BECOMES - {"to"}) or any(
                            t.word == "from" for t in tokens[max(0, i - 4):i]))):
                    out.append(f"{tokens[i].word} before {tokens[j].word}")
                elif _is(first, after) and _is(second, before) and {"makes", "make"} & set(between) and {"it", "them"} & set(between) and not set(between) & _BACK:
                    out.append(f"{tokens[i].word} made {tokens[j].word}")  # `takes 128x128 and makes it 16x16`
                elif (_is(first, after) and _is(second, before) and set(between) & _IN and not set(between) & _BACK
                        and _OUT & {t.word for t in tokens[j + 1:j + 4]}):
                    out.append(f"{tokens[i].word} goes in and {tokens[j].word} comes out")
            wide = isinstance(before, tuple)
            ahead = [t.word for t in tokens[max(0, i - (4 if wide else 2)):i]]
            near = ahead + ([t.word for t in tokens[i + 1:i + 5]] if wide else [])
            if (_is(first, before) or _is(first, after)) and before != after and (set(near) & _STAYS or set(near) & _LEAVES and near[-1:] == ["at"] or set(ahead) & _LEAVES and ahead[-1:] == ["at"]) and not (
                    wide and set(ahead) & {"channels", "batch", "values"}):
                out.append(f"{tokens[i].word} unchanged")
    return out


def misplaced_counts(sentence: Sentence, places: Mapping, counts: Mapping, vocabulary: Vocabulary) -> list[str]:
    """The counts that a sentence puts at a place where the trace has another one: `the UNet gets a batch of 1`."""
    if not places:
        return []
    tokens, out = sentence.tokens, []
    mentions = [m for m in vocabulary.mentions(sentence) if m.term in places]
    marks = own_negators(sentence)
    for i, t in enumerate(tokens):
        if t.kind != "amount" or t.amount.kind != "count" or negated(tokens, i, marks) or t.word in ("one", "single") or any(
                w.word in ("instead", "than", "not") for w in tokens[max(0, i - 2):i]):
            continue
        stated = _stated_at(tokens, mentions, i)
        if stated is not None:
            for term, values in places[stated.term].items():
                known = counts.get(term, [])
                if any(w.term == term and w.end <= stated.at for w in vocabulary.mentions(sentence)) and any(t.amount.is_like(v) for v in known) and not any(
                        t.amount.is_like(v) for v in values):
                    out.append(f"{t.word} {term} at {tokens[stated.at].word}")
        for m in mentions:
            if m.at > i:
                between = [w.word for w in tokens[i + 1:m.at]]
                there = len(between) <= 7 and set(between) & _INTO and not set(between) & (_ELSEWHERE - {"and"})
                inner = tokens[i + 1:m.at]
                if there and "and" in between and any(w.kind == "amount" for w in tokens[m.end:m.end + 4]):
                    there = False  # `2 inside the UNet, and at the scheduler it is 1`
            else:
                between = [w.word for w in tokens[m.end:i]]
                there = len(between) <= 7 and set(between) & _GETS and not set(between) & _ELSEWHERE
                inner = tokens[m.end:i]
            if not there or any(w.kind == "amount" for w in inner):
                continue
            for term, values in places[m.term].items():
                known = counts.get(term, [])
                if any(t.amount.is_like(v) for v in known) and not any(t.amount.is_like(v) for v in values):
                    out.append(f"{t.word} {term} at {tokens[m.at].word}")
    return out


def _stated_at(tokens, mentions, i: int):
    """The place of `the batch at the UNet is always 1`: its mention, None if there is none."""
    for m in reversed(mentions):
        if m.end <= i and i - m.end <= 3 and any(t.word in ("at", "in", "inside", "of") for t in tokens[max(0, m.at - 2):m.at]) and any(
                t.word in ("is", "are", "was", "=", "stays", "remains") for t in tokens[m.end:i]) and not any(t.kind == "punct" for t in tokens[m.end:i]):
            return m
    return None


def _is(amount, value: object) -> bool:
    if isinstance(value, tuple):
        return amount.kind == "shape" and len(amount.value) >= 2 and (amount.value == value or (len(value) - len(amount.value) == 1 and amount.value == value[1:]))
    return amount.kind == "count" and amount.is_like(value)
