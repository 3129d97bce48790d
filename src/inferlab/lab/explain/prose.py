"""Tells prose from word salad: how much likelier a text's word classes are in this order than in any order.

A word's class is itself for the 200 or so function words, for common words one of a few dozen classes of words with
like neighbours, else its ending (`ing`, `ed`, `s`, `ly`, ...); amounts
and marks have classes of their own, so the subject of a text does not matter. The counts come from
`training/prose_gate.py`.
"""

import gzip
import json
import math
import random
from functools import lru_cache
from importlib import resources

from .listed import listed
from .words import Token

FUNCTION_WORDS = frozenset(listed("""
a an the this that these those my your his her its our their some any each every all both no another other such same
i you he she it we they me him us them who which what whose whom that there here itself themselves one ones mine
be is are was were been being am do does did done have has had having will would can could may might must shall should
not n't never no nor neither and or but so because since although though while whereas if unless when where how why
than as like of in on at by for with without from to into onto over under between through during before after above below
along across per about against around toward towards within via until up down out off back then thus hence
also only just even still already again very too more most less least much many few little several enough quite rather
get gets got make makes made go goes went take takes took give gives gave keep keeps kept use uses let lets need needs
now always often usually every instead however therefore otherwise either whether once
don't doesn't didn't isn't aren't wasn't won't can't it's that's there's i'm you're we're they're i've you'll
"""))
_ENDINGS = ("ing", "tion", "ions", "ment", "ness", "ity", "ance", "ence", "ed", "ly", "er", "est", "ers", "al", "ive", "able", "ous", "ic",
            "ful", "es", "s")


@lru_cache(maxsize=1)
def clusters() -> dict[str, str]:
    """Common content words with the class that `training/prose_gate.py` found from their neighbours."""
    path = resources.files("inferlab") / "weights" / "prose" / "clusters.json"
    return {word: f"<{n}>" for n, words in json.loads(path.read_text(encoding="utf-8")).items() for word in words.split(" ")}


@lru_cache(maxsize=20_000)
def word_class(word: str) -> str:
    if word in FUNCTION_WORDS:
        return word
    found = clusters().get(word)
    if found:
        return found
    return surface_class(word)


def surface_class(word: str) -> str:
    """The class of a word by its ending, for words that are too rare to have one by their neighbours."""
    if "_" in word or "." in word:
        return "<w>"
    for ending in _ENDINGS:
        if len(word) > len(ending) + 2 and word.endswith(ending):
            return f"<-{ending}>"
    return "<w>"


def classes(tokens: tuple[Token, ...] | list[Token]) -> list[str]:
    out = []
    for t in tokens:
        if t.kind == "word":
            out.append(word_class(t.word))
        elif t.kind == "amount":
            out.append("<w>" if t.amount.kind == "shape" else "<num>")
        elif t.kind == "arrow":
            out.append("<arrow>")
        elif t.word in (",", ":", "(", ")", "-", "="):
            out.append(t.word)
    return out


class OrderModel:
    """Trigrams over word classes, interpolated with bigrams and unigrams (fixed weights)."""

    def __init__(self, counts: dict):
        self.uni = counts["uni"]
        self.bi = counts["bi"]
        self.tri = counts["tri"]
        self.total = sum(self.uni.values())
        self.size = len(self.uni) + 1
        self.score = lru_cache(maxsize=100_000)(self._score)
        self.bi_of: dict[str, int] = {}
        for key, n in self.bi.items():
            first = key.split(" ")[0]
            self.bi_of[first] = self.bi_of.get(first, 0) + n

    def p1(self, c: str) -> float:
        return (self.uni.get(c, 0) + 0.5) / (self.total + 0.5 * self.size)

    def _score(self, a: str, b: str, c: str) -> float:
        return math.log(self.p(a, b, c)) - math.log(self.p1(c))

    def p(self, a: str, b: str, c: str) -> float:
        one = self.p1(c)
        seen, pair = self.bi_of.get(b, 0), self.bi.get(f"{a} {b}", 0)
        two = self.bi.get(f"{b} {c}", 0) / seen if seen else one
        three = self.tri.get(f"{a} {b} {c}", 0) / pair if pair else two
        return 0.4 * three + 0.35 * two + 0.25 * one

    def gain(self, sequence: list[str]) -> float:
        """Mean log-likelihood ratio (nats a token) of this order against no order; about 0.4 and more in prose,
        below 0 in shuffled words. 0.0 for an empty text."""
        if not sequence:
            return 0.0
        a, b, total, score = "<s>", "<s>", 0.0, self.score
        for c in [*sequence, "</s>"]:
            total += score(a, b, c)
            a, b = b, c
        return total / (len(sequence) + 1)


@lru_cache(maxsize=1)
def model() -> OrderModel:
    """The shipped counts (read once)."""
    path = resources.files("inferlab") / "weights" / "prose" / "order.json.gz"
    return OrderModel(json.loads(gzip.decompress(path.read_bytes())))


@lru_cache(maxsize=1)
def known_words() -> frozenset[str]:
    """Common English words: these are never taken for a misspelt term."""
    folder = resources.files("inferlab") / "weights" / "prose"
    return frozenset(word for name in ("words.txt", "more_words.txt") for word in (folder / name).read_text(encoding="utf-8").split())


_DETERMINERS = frozenset(listed("the a an my your our their its every"))
_PREPOSITIONS = frozenset(listed("of from with into onto per via within toward towards during between"))
_AUXILIARIES = frozenset(listed("is are was were am does do did has have had will would can could may might must should"))
_JOINTS = frozenset(listed("and or but because although whereas if since than as"))
_NEVER_LAST = _DETERMINERS | (_PREPOSITIONS - {"within"}) | _JOINTS | {"which", "whose", "very", "is", "are", "was", "were"}


def misplaced(tokens: tuple[Token, ...]) -> int:
    """How many neighbours no English sentence has: `the of`, `of is`, `and .`, `a the`, ..."""
    words = [t.word if t.kind != "amount" else "<num>" for t in tokens if t.kind in ("word", "amount", "punct", "arrow")]
    count = 0
    for a, b in zip(words, [*words[1:], "."], strict=True):
        if a in _DETERMINERS:
            count += b in _DETERMINERS or b in _PREPOSITIONS or b in _AUXILIARIES or b in _JOINTS or b in (".", ",", ")", "to", "by", "in", "not")
        elif a in _PREPOSITIONS:
            count += b in (_PREPOSITIONS - {"between", "within"}) or b in _AUXILIARIES or b in (_JOINTS - {"as"}) or b in (".", ",", ")", "by", "to")
        elif a in _AUXILIARIES:
            count += b in (_AUXILIARIES - {"have", "do"})
        elif a in ("and", "or", "but"):
            count += b in ("and", "or", ".", ",", "of", "than")
        elif a in _NEVER_LAST:
            count += b == "."
    return count


SHUFFLES = 8


def features(tokens: tuple[Token, ...]) -> list[float]:
    """What the gate looks at in one sentence: constant, order gain, its z-score among shuffles of the same
    tokens, misplaced neighbours, share of function words, shortness."""
    found = [t for t in tokens if t.kind in ("word", "amount", "arrow", "punct")]
    n = max(1, sum(t.kind in ("word", "amount") for t in found))
    sequence = classes(found)
    gain = model().gain(sequence)
    rng = random.Random(0)
    mixed = []
    for _ in range(SHUFFLES):
        mixed.append(model().gain([c for _, _, c in sorted((rng.random(), i, c) for i, c in enumerate(sequence))]))
    mean = math.fsum(mixed) / len(mixed)
    spread = math.sqrt(math.fsum((g - mean) ** 2 for g in mixed) / len(mixed)) + 0.03
    function = sum(t.kind == "word" and t.word in FUNCTION_WORDS for t in found) / n
    return [1.0, gain, max(-2.0, min(4.0, (gain - mean) / spread)), min(3, misplaced(tokens)) / math.sqrt(n) * 3, min(function, 0.45),
            1.0 / math.sqrt(n)]


def prose_score(parts: list[tuple[Token, ...]]) -> float:
    """How much like prose a text is, in (0, 1): the logistic gate over its sentences, weighted by length."""
    weights = gate()
    total = size = 0.0
    for tokens in parts:
        n = sum(t.kind in ("word", "amount") for t in tokens)
        if n:
            total += n * max(-4.0, min(4.0, math.fsum(w * f for w, f in zip(weights, features(tokens), strict=True))))
            size += n
    return 1 / (1 + math.exp(-total / size)) if size else 0.0


@lru_cache(maxsize=1)
def gate() -> tuple[float, ...]:
    """The gate's weights, in the order of `features`."""
    path = resources.files("inferlab") / "weights" / "prose" / "gate.json"
    return tuple(json.loads(path.read_text(encoding="utf-8"))["weights"])
