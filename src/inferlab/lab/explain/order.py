"""Whether the words of a whole text stand in an order that English has: the gate against salad and shuffled answers.

A logistic regression over features of all the text's sentences together. It was fitted on answers whose *content* the
rubrics would award, against the same answers shuffled, sorted and reversed and against the salads that content alone would
award (`training/prose_text.py`): only what the rubric cannot tell apart is asked of it.
"""

import json
import math
from functools import lru_cache
from importlib import resources

from .listed import listed
from .prose import features
from .words import Sentence

ENOUGH = 0.45
"""Award only from this score on."""
SHORT = 0.2
"""The same for texts of fewer than nine words, which tell less."""
NONE = 0.02
"""Deny below this score, where the text has neighbours that no sentence has."""
_DETERMINERS = frozenset(listed("the a an my your our their its every each this these"))
_PREPOSITIONS = frozenset(listed("of from with into onto per via within toward towards during between in on at by for to as than because"))
_AUXILIARIES = frozenset(listed("is are was were be been am has have had will would can could may might must should does do did"))
_JOINTS = frozenset(listed("and or but so while because since although whereas if which that when"))
_BE = frozenset(listed("is are was were"))
_AFTER_BE = frozenset(listed("is are was were of and because from has have"))
_NEVER_FIRST = frozenset(listed("of is are and or than into which to"))
_NEVER_LAST = _DETERMINERS | _AUXILIARIES | frozenset(listed("of and or but from with into to by because than which since for at"))
_ENDS = frozenset((".", ",", ")"))


def impossible(words: list[str]) -> int:
    """How many neighbours in a sentence's words and marks no English sentence has."""
    count = 0
    for a, b in zip(words, [*words[1:], "."], strict=True):
        count += a in _DETERMINERS and b in _DETERMINERS | _PREPOSITIONS | _AUXILIARIES | _JOINTS | _ENDS
        count += a in _PREPOSITIONS - {"to", "as", "than", "because", "per"} and b in {"of", "from", "into", "per", ".", ","} | _AUXILIARIES | (_JOINTS - {"which", "that"})
        count += a in ("and", "or", "but") and b in ("and", "or", ".", ",", "of", "than")
        count += a in _BE and b in _AFTER_BE
    return count


def text_features(parts: list[Sentence], ordered: bool) -> list[float]:
    """What the gate looks at: order gain, z-score, misplaced words, function words (means over the sentences), impossible
    neighbours, odd first and last words, marks, length, and whether the slot's content asks for an order itself."""
    total = bad = first = last = marks = 0.0
    means = [0.0] * 5
    for s in parts:
        kept = [t for t in s.tokens if t.kind in ("word", "amount", "punct", "arrow")]
        words = ["#" if t.kind == "amount" else t.word for t in kept]
        n = sum(t.kind in ("word", "amount") for t in kept)
        if not n:
            continue
        for i, x in enumerate(features(s.tokens)[:5]):
            means[i] += n * x
        total += n
        bad += impossible(words)
        first += words[0] in _NEVER_FIRST
        last += words[-1] in _NEVER_LAST
        marks += sum(w in (",", ":", "(", ")", "=") or t.kind == "arrow" for w, t in zip(words, kept, strict=True))
    size, count = max(1.0, total), max(1, len(parts))
    gain, z = means[1] / size, means[2] / size
    short, length = 1 / math.sqrt(size), min(total, 30) / 30
    return [1.0, gain, z, means[3] / size, means[4] / size, short, 3 * bad * short, first / count, last / count, marks / size, math.log(count),
            gain * short, z * short, length, z * length, float(ordered)]


@lru_cache(maxsize=1)
def weights() -> tuple[float, ...]:
    """The gate's weights, in the order of `text_features`."""
    path = resources.files("inferlab") / "weights" / "prose" / "text.json"
    return tuple(json.loads(path.read_text(encoding="utf-8"))["weights"])


def text_score(parts: list[Sentence], ordered: bool = True) -> float:
    """How much like prose in its order a text is, in (0, 1)."""
    found = text_features(parts, ordered)
    x = math.fsum(w * f for w, f in zip(weights(), found, strict=True))
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, x))))
