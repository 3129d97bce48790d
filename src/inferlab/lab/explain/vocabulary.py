"""A rubric's terms and the engine's words in one answer: spelling mended, terms found."""

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from rapidfuzz import process
from rapidfuzz.distance import OSA

from . import lexicon as lex
from .lexicon_verbs import VERB_INDEX
from .phrases import Table
from .prose import FUNCTION_WORDS, known_words
from .rubric import Rubric
from .words import Sentence, Token, phrase, stem

_FINITE = frozenset(key for key, found in VERB_INDEX.items() if found & {"predicts", "makes", "uses", "keeps", "splits"})
"""`predicts noise` is a verb and its object, whatever a rubric calls `predicted noise`."""
_MENDED_AT_MOST = 40
_FUNCTION = tuple(sorted(w for w in FUNCTION_WORDS if len(w) > 2 and w.isalpha()))


@dataclass(frozen=True, slots=True)
class Mention:
    """A term of the rubric in a sentence: tokens `at` up to `end`."""

    term: str
    at: int
    end: int


@lru_cache(maxsize=1)
def _engine_words() -> frozenset[str]:
    tables = (lex.QUANTITIES, lex.MODIFIERS, lex.PARTICLES, lex.BETTER, lex.CARRIERS, lex.VERBS_UP, lex.VERBS_DOWN, lex.SPEND, lex.LOSE, lex.WIN)
    words = {w for table in tables for key in table for w in key}
    words |= {w for key in VERB_INDEX for w in key} | {"shape", "batch", "channel", "spatial", "tensor", "sequenc", "becaus", "predict", "dimension"}
    return frozenset(words)


class Vocabulary:
    """The terms of one rubric, ready to be found; made once a rubric."""

    def __init__(self, terms: dict[str, str], phrases: tuple[str, ...] = ()):
        entries = {}
        for name, listing in terms.items():
            quoted = any(phrase(item)[:1] == ("=" + name,) for item in listing.split(",") if item.strip())
            for item in [*listing.split(","), *([] if quoted else [name])]:
                key = phrase(item)
                if key:
                    entries.setdefault(key, name)
        self.table = Table(entries)
        own = {stem(w[1:]) if w.startswith("=") else w.rstrip("*") for key in entries for w in key if not w.startswith("#")}
        own |= {stem(w) for text in phrases for w in re.findall(r"[a-z]+(?!\*)", text)}
        self.words = tuple(sorted(w for w in own | _engine_words() if len(w) > 2 and w.isalpha()))
        self.names = tuple(sorted(w for w in own if "." in w or "_" in w))
        self.known = frozenset(self.words) | frozenset(stem(w) for w in FUNCTION_WORDS) | FUNCTION_WORDS
        self._mended: dict[str, str] = {}

    def mend(self, sentence: Sentence) -> Sentence:
        """The sentence with misspelt terms and engine words replaced, where one candidate is near enough."""
        out, changed, asked = [], 0, 0
        for token in sentence.tokens:
            fixed = token
            if token.kind == "word" and ("." in token.word or "_" in token.word) and token.word not in self.names and changed < _MENDED_AT_MOST:
                near = next((n for n in self.names if len(n) > 6 and OSA.distance(n, token.word, score_cutoff=2) <= 2), "")
                if near:
                    fixed = replace(token, stem=near, word=near)
                    changed += 1
            elif token.kind == "word" and len(token.word) > 2 and token.word.isalpha() and changed < _MENDED_AT_MOST and asked < 2 * _MENDED_AT_MOST:
                asked += token.word not in known_words()
                near = self._near(token)
                if near:
                    function = near in FUNCTION_WORDS
                    fixed = replace(token, stem=stem(near) if function else near, word=near if function else token.word)
                    changed += 1
            out.append(fixed)
        return replace(sentence, tokens=tuple(out)) if changed else sentence

    def _near(self, token: Token) -> str:
        word = token.word
        if word in self._mended:
            return self._mended[word]
        near = ""
        if token.stem not in self.known and word not in known_words() and word not in self.known and token.stem not in known_words() \
                and not any(token.stem.startswith(k[0][:-1]) for k, _ in self.table.prefixes):
            limit = 1 if len(word) < 8 else 2
            best: tuple[int, str] | None = None
            for form in sorted({token.stem, word}):
                for candidate, distance, _ in process.extract(form, self.words, scorer=OSA.distance, score_cutoff=limit, limit=None):
                    if candidate[0] != form[0] and candidate[:2] != form[1::-1]:
                        continue
                    if len(candidate) == 3 and sorted(candidate) != sorted(form):
                        continue
                    if distance < 0.4 * len(candidate) and (best is None or (distance, candidate) < best):
                        best = (distance, candidate)
            near = best[1] if best else ""
            if not near or best[0] > 1:
                near = self._function_word(word) or near
        if len(self._mended) < 5_000:
            self._mended[word] = near
        return near

    def _function_word(self, word: str) -> str:
        """`becuase` is `because`: the same letters, or one edit of a longer word."""
        for candidate, _, _ in process.extract(word, _FUNCTION, scorer=OSA.distance, score_cutoff=2, limit=None):
            if sorted(candidate) == sorted(word) or (len(candidate) > 4 and candidate[0] == word[0] and OSA.distance(candidate, word) <= 1):
                return candidate
        return ""

    def mentions(self, sentence: Sentence) -> list[Mention]:
        """The terms in the sentence, left to right, the longest first where they overlap."""
        out, i = [], 0
        tokens = sentence.tokens
        while i < len(tokens):
            hit = self.table.match(tokens, i) if tokens[i].kind == "word" else None
            if hit and hit[0] > 1 and i and tokens[i].word.endswith("s") and (tokens[i].stem,) in _FINITE:
                hit = None
            if hit:
                out.append(Mention(hit[1], i, i + hit[0]))
                i += hit[0]
            else:
                i += 1
        return out


@lru_cache(maxsize=64)
def _vocabulary(items: tuple, phrases: tuple[str, ...]) -> Vocabulary:
    return Vocabulary(dict(items), phrases)


def vocabulary(rubric: Rubric) -> Vocabulary:
    """The (cached) vocabulary of a rubric: its terms, and the words of its phrases, which are spelt right too."""
    phrases = [text for slot in rubric.slots.values() for text in (slot.trend.says.values() if slot.trend else ())]
    phrases += [entry for slot in rubric.slots.values() for entry in (*slot.award, *slot.deny) if "says:" in entry]
    return _vocabulary(tuple(rubric.terms.items()), tuple(phrases))
