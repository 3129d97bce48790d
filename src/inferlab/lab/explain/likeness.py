"""How like others' right answers to the same question an answer is: a gate over what the rubric would award.

A rubric finds what it asks for and passes over the rest, so that `the batch is 2, because it holds a training and a validation
sample` earns the number and brings a mistake along that nobody foresaw. Here the whole text is compared with labelled answers to
the same question: which of its words, pairs of words, statements and clauses have right answers used, which have wrong ones?
A logistic regression over that (`training/likeness.py`) says how likely the answer is wrong; where it is, a person reads it.
Nothing is ever awarded by likeness.

The labelled answers are shipped as numbers: each word is hashed with the name under which a rubric's slot has them learned
(`Slot.learned`). That name stands in the lab's hidden test only. Without it no answer can be compared with the table; since words keep
their order, a patient reader could still guess some of them, as in any substitution cipher.
"""

import gzip
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from importlib import resources
from itertools import pairwise

from .directions import effects
from .listed import listed
from .relations import Relation
from .vocabulary import Vocabulary
from .words import Sentence, stem

_BREAKS = frozenset((",", ";", ":", "(", ")", "-", "->", "\u2192", *listed("because since so as while but and when therefore thus hence whereas")))
_REASONS = frozenset(listed("because since as so therefore hence thus if unless due"))
_FUNCTION = frozenset(map(stem, listed(
    "a an the of to in on at by for with from and or but so as is are was were be been it its this that these those which who they them he she i you we my "
    "your our their one two each every per while when where then than not no only also just both all some any there here has have had do does did can could "
    "will would must may might into out up down over under again still same other another more most less least because since if")))
NUMBER = "#"
TOO_MUCH = 0.4
"""Doubt from which on a person reads what the rubric awards."""
FAR = 0.1
"""A clause whose likest one, right or wrong, is less like it than this (a cosine) is about something else."""


@dataclass(frozen=True, slots=True)
class Said:
    """What is compared of one answer: its clauses as stems, terms (`<latents>`) and numbers (`#`), and its statements."""

    clauses: tuple[tuple[str, ...], ...]
    statements: frozenset[str]
    reasons: int
    sentences: int

    @property
    def tokens(self) -> list[str]:
        return [token for clause in self.clauses for token in clause]


def read(parts: list[Sentence], words: Vocabulary, found: Iterable[Relation]) -> Said:
    """An answer's sentences as they are compared; `found` are the relations read in them."""
    clauses: list[list[str]] = []
    statements: set[str] = set()
    reasons = 0
    for s in parts:
        clauses.append([])
        at = {m.at: m for m in words.mentions(s)}
        i = 0
        while i < len(s.tokens):
            token = s.tokens[i]
            if i in at:
                clauses[-1].append(f"<{at[i].term}>")
                i = max(at[i].end, i + 1)
                continue
            reasons += token.word in _REASONS
            if token.word in _BREAKS:
                clauses.append([])
            elif token.kind in ("word", "amount"):
                clauses[-1].append(f"{NUMBER}{token.amount.value}" if token.kind == "amount" else token.stem)
            i += 1
        statements |= {f"{e.quantity} {e.sign}" for e in effects(s)}
    for r in found:
        verb = min((c for c in r.classes if c.startswith("=")), default="")
        way = f"{r.negated:d}{r.framed:d}"
        for agent in r.agents or ("",):
            statements |= {f"{agent}|{verb}|{thing}|{way}" for thing in r.objects or ("",)} | {f"{agent}|{thing}|{way}" for thing in r.objects or ("",)} | {f"{agent}|{verb}|{way}"}
        statements |= {f"{verb}|{thing}|{way}" for thing in r.objects}
    return Said(_joined(clauses), frozenset(statements), reasons, len(parts))


def _joined(clauses: list[list[str]]) -> tuple[tuple[str, ...], ...]:
    """The clauses; one with fewer than two content words belongs to the one before it."""
    out: list[list[str]] = []
    for clause in clauses:
        if out and sum(map(is_content, clause)) < 2:
            out[-1] = out[-1] + clause
        elif clause:
            out.append(clause)
    return tuple(tuple(clause) for clause in out)


def is_content(token: str) -> bool:
    return token not in _FUNCTION


def hashed(name: str, text: str) -> int:
    """A number for a word that only who knows `name` can compute."""
    return int.from_bytes(blake2b(text.encode(), digest_size=3, key=name.encode()[:64]).digest(), "big")


@dataclass(frozen=True, slots=True)
class Numbers:
    """A `Said` in hashed numbers; `content` are the tokens that are content words, in their order."""

    clauses: tuple[tuple[int, ...], ...]
    content: tuple[int, ...]
    statements: frozenset[int]

    @property
    def words(self) -> frozenset[int]:
        return frozenset(self.content)

    @property
    def pairs(self) -> frozenset[tuple[int, int]]:
        """Content words beside each other, and with one between them."""
        return frozenset((*pairwise(self.content), *zip(self.content, self.content[2:], strict=False)))


_NOTHING = Numbers((), (), frozenset())


def numbered(name: str, said: Said) -> Numbers:
    clauses = tuple(tuple(hashed(name, token) for token in clause) for clause in said.clauses)
    content = tuple(n for clause, tokens in zip(clauses, said.clauses, strict=True) for n, token in zip(clause, tokens, strict=True) if is_content(token))
    return Numbers(clauses, content, frozenset(hashed(name, text) for text in said.statements))


def _grams(clause: tuple[int, ...]) -> set:
    return {*clause, *pairwise(clause)}


class Learned:
    """The labelled answers to one question: (numbers, right) for each."""

    def __init__(self, answers: list[tuple[Numbers, bool]]):
        self.answers = answers
        self.words, self.statements = (Counter(), Counter()), (Counter(), Counter())
        self.pairs: Counter = Counter()
        for one, right in answers:
            self.words[right].update(one.words)
            self.statements[right].update(one.statements)
            if right:
                self.pairs.update(one.pairs)
        clauses = [(i, _grams(clause)) for i, (one, _) in enumerate(answers) for clause in one.clauses]
        self.owner = [i for i, _ in clauses]
        self.side = [int(answers[i][1]) for i in self.owner]
        seen = Counter(gram for _, grams in clauses for gram in grams)
        self.rare = {gram: math.log((1 + len(clauses)) / (1 + n)) + 1 for gram, n in seen.items()}
        self.unseen = math.log(1 + len(clauses)) + 1
        self.index: dict = defaultdict(list)
        for at, (_, grams) in enumerate(clauses):
            size = math.sqrt(math.fsum(self.rare[gram] ** 2 for gram in grams))
            for gram in grams:
                self.index[gram].append((at, self.rare[gram] / size))

    def nearest(self, clause: tuple[int, ...], without: int = -1) -> tuple[float, float]:
        """The cosine of a clause with the likest clause of a wrong and of a right answer (TF-IDF over words and pairs)."""
        grams = sorted(_grams(clause), key=repr)
        size = math.sqrt(math.fsum(self.rare.get(gram, self.unseen) ** 2 for gram in grams)) or 1.0
        near: dict[int, float] = defaultdict(float)
        for gram in grams:
            weight = self.rare.get(gram, self.unseen) / size
            for at, there in self.index.get(gram, ()):
                near[at] += weight * there
        best = [0.0, 0.0]
        owner, side = self.owner, self.side
        for at, cosine in near.items():
            if cosine > best[side[at]] and owner[at] != without:
                best[side[at]] = cosine
        return best[0], best[1]

    def features(self, said: Said, one: Numbers, near: list[tuple[float, float]], without: int = -1) -> list[float]:
        """What the regression looks at. `near` is `nearest` of each clause; `without` leaves one of the learned answers out, as if it had not been seen."""
        own, own_right = self.answers[without] if without >= 0 else (_NOTHING, False)

        def odds(counts: tuple[Counter, Counter], group: frozenset[int], mine: frozenset[int]) -> float:
            """The highest log odds, among some words or statements, of standing in a wrong answer rather than in a right one."""
            wrong, right = counts
            return max((math.log((wrong[x] - (x in mine and not own_right) + 0.3) / (right[x] - (x in mine and own_right) + 0.3)) for x in group), default=0.0)

        def new(right: Counter, group: frozenset, mine: frozenset) -> float:
            """The share of a group that stands in no right answer."""
            return sum(right[x] - (x in mine and own_right) == 0 for x in group) / max(1, len(group))

        near = near or [(0.0, 0.0)]
        return [
            1.0,
            new(self.words[1], one.words, own.words),
            new(self.pairs, one.pairs, own.pairs),
            new(self.statements[1], one.statements, own.statements),
            odds(self.words, one.words, own.words),
            odds(self.statements, one.statements, own.statements),
            math.fsum(wrong - right for wrong, right in near) / len(near),
            math.fsum(right for _, right in near) / len(near),
            len(one.content) / 10,
            float(said.reasons),
            float(said.sentences),
            float(sum(token.startswith(NUMBER) for token in said.tokens)),
        ]


def doubt(name: str, said: Said) -> float:
    """How likely an answer is wrong, in (0, 1), by the answers learned under `name`; KeyError where there are none."""
    known, one = learned(name), numbered(name, said)
    near = [known.nearest(clause) for clause in one.clauses]
    if near and all(right > 0.999 for _, right in near):
        return 0.0  # every clause stands in a right answer
    if any(max(both) < FAR and sum(map(is_content, clause)) >= 2 for both, clause in zip(near, said.clauses, strict=True)):
        return 1.0  # `..., because the banana is yellow`: nobody has said anything like it
    found = known.features(said, one, near)
    x = math.fsum(w * f for w, f in zip(table()["weights"], found, strict=True))
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, x))))


@lru_cache(maxsize=64)
def learned(name: str) -> Learned:
    """The shipped answers of one name."""
    kept = table()["slots"].get(address(name))
    if kept is None:
        raise KeyError("no answers are learned under the name of this slot: run python training/likeness.py")
    return Learned(unpacked(name, kept))


def address(name: str) -> str:
    return f"{hashed(name, 'address'):06x}"


def packed(answers: list[tuple[Numbers, bool]]) -> dict:
    """JSON for some answers: a list of numbers, and the answers as places in it."""
    numbers = sorted({n for one, _ in answers for n in (*one.statements, *(n for clause in one.clauses for n in clause))})
    place = {n: i for i, n in enumerate(numbers)}
    return {"numbers": numbers, "answers": [[int(right), [[place[n] for n in clause] for clause in one.clauses], sorted(place[n] for n in one.statements)] for one, right in answers]}


def unpacked(name: str, kept: dict) -> list[tuple[Numbers, bool]]:
    idle = {hashed(name, word) for word in _FUNCTION}
    numbers = kept["numbers"]
    out = []
    for right, places, statements in kept["answers"]:
        clauses = tuple(tuple(numbers[i] for i in clause) for clause in places)
        content = tuple(n for clause in clauses for n in clause if n not in idle)
        out.append((Numbers(clauses, content, frozenset(numbers[i] for i in statements)), bool(right)))
    return out


@lru_cache(maxsize=1)
def table() -> dict:
    """The shipped weights and, under each name's address, its answers."""
    path = resources.files("inferlab") / "weights" / "prose" / "likeness.json.gz"
    return json.loads(gzip.decompress(path.read_bytes()))
