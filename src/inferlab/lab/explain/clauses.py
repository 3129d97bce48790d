"""Everything that a sentence says about its terms: its verbs, arrows, `from 12 to 32`, and nouns that stand for a deed."""

from . import lexicon as lex
from .listed import listed
from .negation import frame_of, is_hedged, negated, own_negators
from .relations import Relation, verb_relations
from .roles import possessive
from .vocabulary import Mention
from .words import Sentence


def relations(sentence: Sentence, mentions: list[Mention], actors: frozenset[str], prior: str = "", earlier: tuple[tuple[str, bool], ...] = ()
              ) -> list[Relation]:
    """All relations of a sentence; the arguments are those of `verb_relations`."""
    frame_from, frame_to = frame_of(sentence)
    marks = own_negators(sentence)
    hedged = is_hedged(sentence, frame_from, frame_to)
    out = verb_relations(sentence, mentions, actors, prior, earlier)
    out += _arrows(sentence, mentions, hedged)
    out += _from_to(sentence, mentions, hedged, frame_from, frame_to, marks)
    out += _nominal(sentence, mentions, hedged, frame_from, frame_to, marks)
    return out


def _arrows(sentence: Sentence, mentions: list[Mention], hedged: bool) -> list[Relation]:
    """`unet -> noise`: the left makes the right."""
    out = []
    for i, t in enumerate(sentence.tokens):
        if t.kind == "arrow":
            left = [m for m in mentions if m.end <= i and i - m.end <= 3]
            right = [m for m in mentions if m.at > i and m.at - i <= 4]
            if left and right:
                out.append(Relation(frozenset({left[-1].term}), frozenset({"makes", "changes", "predicts"}), frozenset({right[0].term}), "\u2192",
                                    False, hedged, False, True, i, sentence.text))
    return out


_BETWEEN = frozenset(listed("axis dimension dim length len , : ( does do from goes go is was itself only size at"))


def _from_to(sentence, mentions, hedged, frame_from, frame_to, marks) -> list[Relation]:
    """`sequence axis, 12 to 32`, `seq 12 -> 32`: the term goes from one number to another, so it grows or changes."""
    tokens, out = sentence.tokens, []
    for i in range(len(tokens) - 2):
        a, b = tokens[i].amount, tokens[i + 2].amount
        if not (a and b and a.kind == b.kind == "count" and tokens[i + 1].word in ("to", "->", "\u2192", "until", "=>")):
            continue
        owner = next((m for m in reversed(mentions) if m.end <= i and all(t.word in _BETWEEN for t in tokens[m.end:i])), None)
        if owner is None or a.value == b.value:
            continue
        classes = {"grows", "changes"} if b.value > a.value else {"shrinks", "changes"}
        out.append(Relation(frozenset({owner.term}), frozenset(classes), frozenset(), f"{tokens[i].word} to {tokens[i + 2].word}",
                            negated(tokens, i, marks), hedged, frame_from <= tokens[i].start - tokens[0].start < frame_to, True, i, sentence.text))
    return out


_DEEDS = frozenset(listed("transformation change update updating change modification denoising decoding computation conversion replacement refinement"))
_DONE = frozenset(listed("done performed made carried executed handled"))


def _deed(sentence, mentions, i, hedged, frame_from, frame_to, marks) -> list[Relation]:
    """`the update of the latents is done by the scheduler`."""
    tokens = sentence.tokens
    what = next((m for m in mentions if 0 < m.at - i <= 4 and tokens[i + 1].word == "of"), None)
    done = next((j for j in range(i, min(i + 14, len(tokens))) if tokens[j].word in _DONE), i if what is not None else None)
    if done is None:
        return []
    things = frozenset({what.term}) if what is not None else frozenset(m.term for m in mentions if m.end <= i)
    by = next((m for m in mentions if m.at > done and any(t.word == "by" for t in tokens[done:m.at]) and m.at - done <= (5 if tokens[done].word in _DONE else 12)), None)
    if by is None or not things:
        return []
    return [Relation(frozenset({by.term}), frozenset({"changes", "makes", "decodes"}), things, tokens[i].word, negated(tokens, done, marks), hedged,
                     frame_from <= tokens[i].start - tokens[0].start < frame_to, True, i, sentence.text)]


_OUTPUT = frozenset(listed("output outputs result prediction estimate answer returns"))


def _nominal(sentence, mentions, hedged, frame_from, frame_to, marks) -> list[Relation]:
    """`the UNet's output is noise`, `the output of the UNet is noise`: the UNet makes noise."""
    tokens, out = sentence.tokens, []
    for i, t in enumerate(tokens):
        if t.word in _DEEDS:
            out += _deed(sentence, mentions, i, hedged, frame_from, frame_to, marks)
        if t.word not in _OUTPUT:
            continue
        owner = next((m for m in mentions if m.end == i and (possessive(tokens, m) or m.end == i)), None)
        if owner is None:
            owner = next((m for m in mentions if 0 < m.at - i <= 3 and tokens[i + 1].word == "of"), None)
        copula = next((j for j in range(i + 1, min(i + 8, len(tokens))) if tokens[j].word in ("is", "are", "was", "be")), None)
        if owner is None or copula is None:
            continue
        what = next((m for m in mentions if m.at > copula and m.at - copula <= 7), None)
        if what is None or any(w.word in ("of", "by", "from", "used", "with", "to") for w in tokens[copula:what.at]):
            continue
        no = any(tokens[k].word in lex.NEGATORS for k in range(copula, what.at)) or negated(tokens, copula, marks)
        out.append(Relation(frozenset({owner.term}), frozenset({"makes", "predicts"}), frozenset({what.term}), t.word, no, hedged,
                            frame_from <= t.start - tokens[0].start < frame_to, True, i, sentence.text))
    return out
