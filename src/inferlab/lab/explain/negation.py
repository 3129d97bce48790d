"""What a sentence denies, prevents, leaves open or puts at a distance."""

import itertools

from . import lexicon as lex
from .gates import framed
from .lexicon_verbs import VERB_INDEX
from .phrases import Table
from .prose import FUNCTION_WORDS
from .verbs import participle
from .words import Sentence, Token

_HEDGES = Table(lex.HEDGES)


def _roughly(tokens: tuple[Token, ...], n: int) -> bool:
    """`maybe half the time`: about, not whether."""
    if [t.word for t in tokens[n:n + 3]] == ["more", "or", "less"]:
        return any(t.kind == "amount" or t.word in ("half", "double", "twice", "quarter", "the") for t in (*tokens[max(0, n - 4):n], *tokens[n + 3:n + 5]))
    return tokens[n].word in ("maybe", "perhaps", "possibly") and n + 1 < len(tokens) and (
        tokens[n + 1].word in ("half", "twice", "double", "a", "about", "around"))


def is_hedged(sentence: Sentence, frame_from: int = 0, frame_to: int = 0) -> bool:
    """Whether the sentence leaves open what it says (`maybe`, `faster or slower`), a distancing frame apart."""
    return bool(hedges_of(sentence, frame_from, frame_to))


def hedges_of(sentence: Sentence, frame_from: int = 0, frame_to: int = 0) -> list[int]:
    """Where the words stand that leave a sentence open."""
    start = sentence.tokens[0].start
    return [n for n, t in enumerate(sentence.tokens) if t.kind == "word" and not frame_from <= t.start - start < frame_to
            and _HEDGES.match(sentence.tokens, n) and not _roughly(sentence.tokens, n)]


def frame_of(sentence: Sentence) -> tuple[int, int]:
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


def negators(tokens: tuple[Token, ...]) -> list[int]:
    """Where the negating words are (`no longer`, `not only` are none)."""
    out = []
    for i, t in enumerate(tokens):
        if t.word in lex.NEGATORS or (t.word.endswith("n't") and t.kind == "word"):
            after = tokens[i + 1].word if i + 1 < len(tokens) else ""
            if t.word == "without" and not any(w.word.endswith("ing") for w in tokens[i + 1:i + 3]):
                continue
            if t.word == "not" and i and tokens[i - 1].word == "if":
                continue  # `if not, ...`
            if t.word in ("no", "not") and any(w.word == "than" for w in tokens[i + 2:i + 4]):
                continue  # `no larger than`: a bound, not a denial of what follows
            if not ((t.word == "not" or t.word.endswith("n't")) and after in ("only", "just", "surprisingly", "merely")) and not (t.word == "no" and after in (
                    "wonder", "matter", "doubt")):
                out.append(i)
    return out


def own_negators(sentence: Sentence) -> list[int]:
    """The negators of a sentence without those of a distancing frame (`it is not true that`), which turns everything."""
    frame = framed(sentence.text)
    marks = negators(sentence.tokens)
    if not frame:
        return marks
    start = sentence.tokens[0].start + sentence.text.find(frame)
    return [n for n in marks if not start <= sentence.tokens[n].start < start + len(frame)]


def _ends(tokens: tuple[Token, ...], n: int, at: int) -> bool:
    """Whether the deed that an auxiliary denies is over before `at`: `is not cut and stays 2`, `does not grow and keeps its size`."""
    if not n or not (tokens[n].word.endswith("n't") or tokens[n - 1].word in lex.AUXILIARY):
        return False
    be = (tokens[n].word.removesuffix("n't") if tokens[n].word.endswith("n't") else tokens[n - 1].word) in ("is", "are", "was", "were")
    for j in range(n + 2, at):
        k = j + 1 + (tokens[j + 1].word in ("so", "then", "still", "always", "just", "therefore"))
        if tokens[j].word != "and" or k > at or k + 1 >= len(tokens) or (tokens[k].stem,) not in VERB_INDEX:
            continue
        ahead = tokens[k + 1]
        finite = tokens[k].word.endswith("s") and not tokens[k].word.endswith("ss") or be and not participle(tokens[k]) and not tokens[k].word.endswith("ing")
        if finite and (ahead.kind == "amount" or ahead.word in FUNCTION_WORDS - lex.AUXILIARY - {"and", "or", "of"}):
            return True
    return False


def negated(tokens: tuple[Token, ...], at: int, marks: list[int]) -> bool:
    """Whether a negator governs the word at `at`: before it, with no break of the clause between."""
    governing = []
    for n in marks:
        if n >= at:
            continue
        if n + 1 < at and tokens[n + 1].word in ("like", "love", "enjoy"):
            continue  # `what I don't like is a second model`
        if _ends(tokens, n, at):
            continue
        pair = tokens[n].word in ("neither", "nor")
        if pair and any(n < o < at and tokens[o].word == "nor" for o in marks):
            continue
        between = [t for t in tokens[n + 1:at] if t.kind != "amount"]
        if len(between) > (16 if pair else 3 if tokens[n].word == "without" else 8):
            continue
        if any(t.word in lex.BREAKS - {"and", "as", "then", "even", "before", "after"} or t.word in (":", ";") for t in between):
            continue
        if any(a.word in ("they", "it", "we", "you", "i") and b.word in lex.AUXILIARY | {"need"} - {"to"} for a, b in itertools.pairwise(between)):
            continue
        if any(t.word in ("until", "till", "unless") for t in between):
            continue
        if any(t.word == "," or (t.word == ")" and not pair) for t in between):
            continue
        if any(t.word == "and" for t in between) and any(t.word in lex.AUXILIARY for t in between):
            continue
        governing.append("neither" if pair else str(n))
    return len(set(governing)) % 2 == 1

def framed_or_negated(sentence: Sentence) -> bool:
    """Whether anything in the sentence is put at a distance or denied."""
    return bool(framed(sentence.text) or negators(sentence.tokens))


_PREVENT = frozenset(("avoid", "prevent", "sav", "spar", "skip", "without", "instead", "eliminat", "unnecessary", "refrain", "forget", "refus", "ceas", "omit", "neglect"))


def prevented(tokens: tuple[Token, ...], at: int) -> bool:
    """`avoids recomputing`, `instead of recomputing`, `no need to recompute`: what does not happen."""
    near = [t.stem for t in tokens[max(0, at - 4):at]]
    return bool(set(near) & _PREVENT) or bool({"less", "fewer", "no"} & {t.word for t in tokens[max(0, at - 2):at]}) or ("no" in near and "need" in near) or ("rather" in near and "than" in near)
