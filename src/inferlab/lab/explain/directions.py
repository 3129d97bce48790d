"""Which quantity goes which way: `more steps`, `latency drops`, `at the price of memory`, `it gets slower`."""

from dataclasses import dataclass, replace

from . import lexicon as lex
from .gates import framed
from .words import Sentence, Token, stem

REACH = 4
"""How many words a direction looks ahead or back for its quantity."""


@dataclass(frozen=True, slots=True)
class Effect:
    """One quantity with its direction: +1 up, -1 down, 0 unchanged. `at` indexes the sentence's tokens, `cue` is where
    the word stands that gives the direction (-1: at `at`)."""

    quantity: str
    sign: int
    at: int
    end: int
    negated: bool = False
    hedged: bool = False
    words: str = ""
    cue: int = -1


class Table:
    """Phrases by first stem, longest first; a stem ending in `*` matches a prefix."""

    def __init__(self, entries: dict[tuple[str, ...], object]):
        self.by_first: dict[str, list[tuple[tuple[str, ...], object]]] = {}
        self.by_prefix: dict[str, list[tuple[tuple[str, ...], object]]] = {}
        self.prefixes: list[tuple[tuple[str, ...], object]] = []
        for key, value in entries.items():
            if not key:
                continue
            if key[0].endswith("*"):
                self.prefixes.append((key, value))
                self.by_prefix.setdefault(key[0][:2], []).append((key, value))
            else:
                self.by_first.setdefault(stem(key[0][1:]) if key[0].startswith("=") else key[0], []).append((key, value))
        for found in self.by_first.values():
            found.sort(key=lambda item: (-len(item[0]), not item[0][0].startswith("=")))

    def match(self, tokens: tuple[Token, ...], at: int) -> tuple[int, object] | None:
        """(number of tokens, value) of the longest phrase that starts at token `at`, hyphens skipped."""
        best: tuple[int, object] | None = None
        first = tokens[at].stem
        rows = self.by_first.get(first, ())
        prefixed = self.by_prefix.get(first[:2])
        if prefixed:
            rows = [*rows, *(row for row in prefixed if first.startswith(row[0][0][:-1]))]
        for key, value in rows:
            used = _follow(tokens, at, key)
            if used and (best is None or used > best[0]):
                best = (used, value)
        return best


def _follow(tokens: tuple[Token, ...], at: int, key: tuple[str, ...]) -> int:
    i = at
    for n, part in enumerate(key):
        if n and i < len(tokens) and tokens[i].word in ("-", "/"):
            i += 1
        if i >= len(tokens):
            return 0
        said = tokens[i]
        if not (said.word == part[1:] if part[0] == "=" else said.stem.startswith(part[:-1]) if part.endswith("*") else part in (said.stem, said.word)):
            return 0
        i += 1
    return i - at


_QUANTITY = Table(lex.QUANTITIES)
_CUES = Table({
    **{k: ("spend", v) for k, v in lex.SPEND.items()},
    **{k: ("verb", v) for k, v in (lex.VERBS_UP | lex.VERBS_DOWN).items()},
    **{k: ("mod", v) for k, v in lex.MODIFIERS.items()},
    **{k: ("part", v) for k, v in lex.PARTICLES.items()},
    **{k: ("lose", v) for k, v in lex.LOSE.items()},
    **{k: ("win", v) for k, v in lex.WIN.items()},
    **{k: ("good", v) for k, v in lex.BETTER.items()},
    **{k: ("same", v) for k, v in lex.SAME.items()},
    **{k: ("carry", v) for k, v in lex.CARRIERS.items()},
    **{k: ("again", v) for k, v in lex.AGAIN.items()},
})
_HEDGES = Table(lex.HEDGES)
_LEADS = frozenset(("mean", "giv", "mak", "need", "use", "requir", "tak", "cost", "produc", "let", "caus", "yield", "bring", "lead", "impl", "creat"))
_GAIN = frozenset(("gain", "get", "win", "buy", "bring", "improv", "receiv", "benefit"))
_PAY = frozenset(("pay", "los", "cost", "spend", "sacrific", "suffer", "give"))
_TRANSITIVE = frozenset(("fre", "cut", "sav", "trim", "avoid", "skip", "remov", "eliminat", "minimis", "minimiz", "limit", "cap", "spar", "add", "gain", "reliev"))
_STOP = {",", ":", "(", ")", "\u2192", "->", "=>", "="}


def quantity_table(extra: dict[tuple[str, ...], tuple[str, int]] | None = None) -> Table:
    """The general quantities and a rubric's own (its levers, its counts)."""
    return Table({**lex.QUANTITIES, **extra}) if extra else _QUANTITY


def negators(tokens: tuple[Token, ...]) -> list[int]:
    """Where the negating words are (`no longer`, `not only` are none)."""
    out = []
    for i, t in enumerate(tokens):
        if t.word in lex.NEGATORS or (t.word.endswith("n't") and t.kind == "word"):
            after = tokens[i + 1].word if i + 1 < len(tokens) else ""
            if t.word == "without" and not any(w.word.endswith("ing") for w in tokens[i + 1:i + 3]):
                continue
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


def negated(tokens: tuple[Token, ...], at: int, marks: list[int]) -> bool:
    """Whether a negator governs the word at `at`: before it, with no break of the clause between."""
    governing = []
    for n in marks:
        if n >= at:
            continue
        pair = tokens[n].word in ("neither", "nor")
        if pair and any(n < o < at and tokens[o].word == "nor" for o in marks):
            continue
        between = [t for t in tokens[n + 1:at] if t.kind != "amount"]
        if len(between) > (16 if pair else 8):
            continue
        if any(t.word in lex.BREAKS - {"and", "as", "then", "even", "before", "after"} or t.word in (":", ";") for t in between):
            continue
        if any(t.word == "," or (t.word == ")" and not pair) for t in between):
            continue
        if any(t.word == "and" for t in between) and any(t.word in lex.AUXILIARY for t in between):
            continue
        governing.append("neither" if pair else str(n))
    return len(set(governing)) % 2 == 1


def effects(sentence: Sentence, table: Table = _QUANTITY) -> list[Effect]:
    """Every direction in the sentence with the quantity that it moves."""
    tokens = sentence.tokens
    quantities: list[tuple[int, int, str, int]] = []
    cues: list[tuple[int, int, str, object]] = []
    i = 0
    while i < len(tokens):
        if tokens[i].kind not in ("word", "amount"):
            i += 1
            continue
        q, c = table.match(tokens, i), _CUES.match(tokens, i)
        if c and c[0] == 1 and tokens[i].word == "few" and i and tokens[i - 1].word == "a":
            c = None
        if c and (not q or c[0] > q[0] or (c[0] == q[0] and c[1][0] in ("carry",))):
            cues.append((i, i + c[0], *c[1]))
            i += c[0]
        elif q:
            quantities.append((i, i + q[0], *q[1]))
            if c:
                cues.append((i, i + c[0], *c[1]))
            i += q[0]
        elif tokens[i].word in ("+", "-") and i == 0:
            i += 1
        else:
            i += 1
    cues = _weak_spend(tokens, cues)
    marks = own_negators(sentence)
    out: list[Effect] = []
    for cue in cues:
        out += _bind(tokens, cue, cues, quantities)
    out += _traded(tokens, quantities) + _so_does(tokens, out, quantities) + _what_is(tokens, cues, quantities)
    hedges = [n for n in range(len(tokens)) if _HEDGES.match(tokens, n)]
    out += [Effect("compute", -1 if negated(tokens, c[0], marks) or _prevented(tokens, c[0]) else 1, c[1] - 1, c[1]) for c in cues if c[2] == "again"]
    again = {c[1] - 1 for c in cues if c[2] == "again"}
    out = [replace(e, negated=e.at not in again and negated(tokens, e.cue if e.cue >= 0 else e.at, marks), hedged=bool(hedges),
                   words=" ".join(t.word for t in tokens[e.at:e.end])) for e in out]
    return sorted(set(out), key=lambda e: (e.at, e.end, e.quantity, e.sign))


_PREVENT = frozenset(("avoid", "prevent", "sav", "spar", "skip", "without", "instead", "eliminat", "unnecessary"))


def _prevented(tokens: tuple[Token, ...], at: int) -> bool:
    """`avoids recomputing`, `instead of recomputing`, `no need to recompute`: what does not happen."""
    near = [t.stem for t in tokens[max(0, at - 4):at]]
    return bool(set(near) & _PREVENT) or bool({"less", "fewer", "no"} & {t.word for t in tokens[max(0, at - 2):at]}) or ("no" in near and "need" in near) or ("rather" in near and "than" in near)


def _traded(tokens: tuple[Token, ...], quantities: list) -> list[Effect]:
    """`trades memory for speed`: the first gets worse, the second better."""
    out = []
    for i, t in enumerate(tokens):
        if t.stem not in ("trad", "swap", "exchang", "sacrific"):
            continue
        first = next((q for q in quantities if 0 < q[0] - i <= 4), None)
        second = next((q for q in quantities if first and q[0] > first[1] and q[0] - first[1] <= 4 and any(w.word in ("for", "against") for w in tokens[first[1]:q[0]])), None)
        if second and "lever" not in (first[2], second[2]):
            out += [Effect(first[2], -lex.GOOD.get(first[2], 1), i, first[1]), Effect(second[2], lex.GOOD.get(second[2], 1), first[1], second[1])]
    return out


def _what_is(tokens: tuple[Token, ...], cues: list, quantities: list) -> list[Effect]:
    """`what I gain is fidelity`, `runtime is what I pay`: better and worse, where the quantity has no direction of its own."""
    out = []
    for i, t in enumerate(tokens):
        if t.word != "what":
            continue
        verb = next((j for j in range(i + 1, min(i + 8, len(tokens))) if tokens[j].stem in _GAIN | _PAY), None)
        if verb is None:
            continue
        if i and tokens[i - 1].word in ("is", "are", "was"):
            named = next((q for q in reversed(quantities) if q[1] <= i - 1 and i - 1 - q[1] <= 2 and q[2] != "lever"), None)
        else:
            copula = next((j for j in range(verb + 1, min(verb + 8, len(tokens))) if tokens[j].word in ("is", "are", "was")), None)
            named = next((q for q in quantities if copula is not None and 0 < q[0] - copula <= 4 and q[2] != "lever"), None)
        if named and not any(max(named[0] - 4, verb) < c[0] < named[0] and c[2] in ("mod", "good", "carry", "verb") for c in cues):
            sign = lex.GOOD.get(named[2], 1) * (1 if tokens[verb].stem in _GAIN else -1)
            out.append(Effect(named[2], sign, min(i, named[0]), max(verb + 1, named[1])))
    return out


def _so_does(tokens: tuple[Token, ...], found: list[Effect], quantities: list) -> list[Effect]:
    """`latency falls and so does the quality`: the same way as what went before."""
    out = []
    for i in range(len(tokens) - 1):
        if tokens[i].word == "so" and tokens[i + 1].word in ("do", "does", "did", "is", "are", "will", "would"):
            before = [e for e in found if e.end <= i and e.quantity != "lever"]
            after = next((q for q in quantities if 0 < q[0] - i <= 6), None)
            if before and after and before[-1].sign:
                raised = before[-1].sign * (-1 if before[-1].quantity == "quality" and "error" in before[-1].words else 1)
                out.append(Effect(after[2], raised * after[3], i, after[1]))
    return out


def _weak_spend(tokens: tuple[Token, ...], cues: list) -> list:
    """`uses more memory`: the `more` decides; `adds` after a lever is still a verb."""
    kept = []
    for n, cue in enumerate(cues):
        nearby = cues[n + 1] if n + 1 < len(cues) else None
        follows = nearby and nearby[0] - cue[1] <= 3 and nearby[2] in ("mod", "good", "carry", "same") and not any(
            t.word in _STOP or t.word in lex.BREAKS for t in tokens[cue[1]:nearby[0]])
        if cue[2] in ("spend", "win") and follows and nearby[2] != "same":
            continue
        if cue[2] == "verb" and follows and nearby[2] in ("mod",) and tokens[cue[0]].stem in ("add", "gain", "sav", "sink"):
            continue
        kept.append(cue)
    return kept


def _bind(tokens: tuple[Token, ...], cue: tuple, cues: list, quantities: list) -> list[Effect]:
    at, end, kind, value = cue
    if kind == "again":
        return []
    if kind == "carry":
        if value[0] == "compute" and tokens[end:end + 1] and tokens[end].word in ("in", "on"):
            named = _ahead(tokens, end + 1, cues, quantities, 3)
            if named:
                return [Effect(named[2], value[1] * named[3], at, named[1])]
        return [Effect(value[0], value[1], at, end)]
    ahead = _ahead(tokens, end, cues, quantities, 3 if kind in ("mod", "good", "same") else REACH + 1)
    back = _back(tokens, at, cues, quantities)
    if kind == "part":
        target = back or ahead
    elif kind in ("mod", "good", "same"):
        if back and any(t.stem in _LEADS for t in tokens[back[1]:at]):
            back = None
        target = ahead or back
    elif kind == "verb":
        target = ahead or back
        passive = at and tokens[at - 1].word in lex.AUXILIARY - {"to", "will", "can", "would", "may", "could", "must", "should"}
        if not passive and not ahead and tokens[at].stem in _TRANSITIVE:
            target = None
        if back and (passive or tokens[end:end + 1] and tokens[end].word in ("from", "to", "by", "with", "linearly", "as")):
            target = back
    else:
        passive = at and tokens[at - 1].word in ("is", "are", "was", "were", "be", "been") and (
            tokens[at].word.endswith(("ed", "en")) or tokens[at].word in ("lost", "paid", "spent", "bought", "won", "cut"))
        if passive and back and any(c[2] in ("mod", "good") and c[0] < back[0] and back[0] - c[1] <= 2 for c in cues):
            return []
        target = (back if passive else None) or ahead or (back if kind in ("lose", "win") and tokens[at].kind == "word" else None)
    if target and target[2] == "lever" and kind in ("lose", "win", "good"):
        target = None
    if not target and kind == "mod" and tokens[at].stem in ("longer", "shorter", "short", "long"):
        near = {t.stem for t in tokens[max(0, at - 4):end + 5]}
        if tokens[end:end + 1] and tokens[end].stem in ("decod", "run", "generation", "inferenc", "pass", "wait", "process", "step", "loop", "computation", "render"):
            return [Effect("time", value, at, end)]
        if near & {"tak", "run", "wait", "last", "need", "sit", "finish"}:
            return [Effect("time", value, at, end)]
    if not target:
        if kind == "good" or (kind == "win" and tokens[at].stem in ("improv", "better")) or (
                kind == "lose" and tokens[at].stem in ("degrad", "worsen", "suffer", "deteriorat")):
            return [Effect("quality", value, at, end)]
        return []
    found = [target, *(_coordinated(tokens, target, cues, quantities) if target is ahead else _joined_before(tokens, target, cues, quantities))]
    out = []
    for q_at, q_end, name, inverse in found:
        if kind in ("lose", "win", "good"):
            sign = value * lex.GOOD.get(name, +1)
        else:
            sign = value * inverse if kind != "same" else 0
        out.append(Effect(name, sign, min(at, q_at), max(end, q_end), cue=at))
    return out


def _ahead(tokens, end, cues, quantities, reach):
    for q in quantities:
        if end - 1 <= q[0] <= end + reach and q[0] >= end:
            between = tokens[end:q[0]]
            if any(t.word in _STOP or t.word in lex.BREAKS for t in between):
                return None
            if any(end <= c[0] < q[0] and c[2] in ("verb", "part", "spend", "carry", "lose") for c in cues):
                return None
            follow = [c for c in cues if c[0] in (q[1], q[1] + 1) and c[2] in ("verb", "part")]
            if follow and between and any(t.word in ("and", "or") for t in between):
                return None
            return q
    return None


def _back(tokens, at, cues, quantities):
    for q in reversed(quantities):
        if q[1] <= at:
            between = tokens[q[1]:at]
            if len(between) > REACH + 2 or any(t.word in {",", ":", "and", "but", "while", "whereas", "because", "so", "which"} for t in between):
                return None
            if any(q[1] <= c[0] < at and c[2] in ("verb", "part", "mod", "carry") for c in cues):
                return None
            return q
    return None


def _joined_before(tokens, target, cues, quantities):
    """`quality and latency increase`: the quantity joined to the subject, unless a direction stands before it."""
    before = next((q for q in reversed(quantities) if q[1] < target[0]), None)
    if before is None or not 1 <= target[0] - before[1] <= 3 or not any(t.word == "and" for t in tokens[before[1]:target[0]]):
        return []
    if any(before[0] - 4 <= c[0] < before[0] or before[1] <= c[0] < target[0] for c in cues if c[2] in ("mod", "verb", "lose", "win", "good", "spend", "carry")):
        return []
    return [before]


def _coordinated(tokens, target, cues, quantities):
    """`reduces memory and time`: the quantities joined to the first one, unless one has a verb of its own."""
    out, end = [], target[1]
    for q in quantities:
        if q[0] < end:
            continue
        between = [t.word for t in tokens[end:q[0]]]
        if not between or len(between) > 4 or any(w in lex.AUXILIARY or w in lex.BREAKS - {"and"} or w in (":", "(", ")") for w in between):
            break
        if not {"and", "or"} & set(between) or any(c[0] - q[1] in (0, 1) and c[2] in ("verb", "part", "mod", "good") for c in cues):
            break
        if any(end <= c[0] < q[0] for c in cues):
            break
        out.append(q)
        end = q[1]
    return out
