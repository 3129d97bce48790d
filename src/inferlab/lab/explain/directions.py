"""Which quantity goes which way: `more steps`, `latency drops`, `at the price of memory`, `it gets slower`."""

import itertools
from dataclasses import replace

from . import lexicon as lex
from .binding import bind, weak_spend
from .effect import Effect
from .masks import no_direction, no_quantity, of_another
from .negation import negated, own_negators, prevented
from .phrases import Table
from .words import Sentence, Token

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
_MASKED = {"too": ("high", "low", "few", "many")}
_GAIN = frozenset(("gain", "get", "win", "buy", "bring", "improv", "receiv", "benefit"))
_PAY = frozenset(("pay", "los", "cost", "spend", "sacrific", "suffer", "give", "hand", "surrender", "forfeit", "trad"))


def quantity_table(extra: dict[tuple[str, ...], tuple[str, int]] | None = None) -> Table:
    """The general quantities and a rubric's own (its levers, its counts)."""
    return Table({**lex.QUANTITIES, **extra}) if extra else _QUANTITY


def effects(sentence: Sentence, table: Table = _QUANTITY, says: Table | None = None) -> list[Effect]:
    """Every direction in the sentence with the quantity that it moves. `says` holds phrases that say a direction by
    themselves: its values are (quantity, sign)."""
    tokens = sentence.tokens
    quantities: list[tuple[int, int, str, int]] = []
    cues: list[tuple[int, int, str, object]] = []
    said: list[tuple[int, int, str, int]] = []
    i = 0
    while i < len(tokens):
        if tokens[i].kind not in ("word", "amount"):
            i += 1
            continue
        q, c = table.match(tokens, i), _CUES.match(tokens, i)
        s = says.match(tokens, i) if says is not None else None
        if s and not (q and q[0] > s[0]) and not (c and c[0] > s[0]):
            said.append((i, i + s[0], *s[1]))
        if q and q[0] == 1 and no_quantity(tokens, i):
            q = None
        if c and no_direction(tokens, i, i + c[0], c[1][0]):
            c = None
        if not c and not q and tokens[i].kind == "amount" and _factor(tokens, i, table):
            c = (_factor(tokens, i, table), ("mod", 1))
        if c and c[1][0] == "mod" and tokens[i].word in _MASKED.get(tokens[i - 1].word if i else "", ()):
            c = None
        if c and c[1][0] == "same" and tokens[i + 1:i + 2] and tokens[i + 1].word in ("time", "moment", "run", "way", "call", "pass", "step", "seed", "prompt", "as", "number", "gpu", "card", "shape", "noise"):
            c = None
            q = None
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
    cues = weak_spend(tokens, cues, quantities)
    marks = own_negators(sentence)
    out: list[Effect] = []
    for cue in cues:
        out += bind(tokens, cue, cues, quantities)
    out += [Effect(q, sign, a, b, cue=a, told=True) for a, b, q, sign in said]
    out = _exchanged(tokens, out)
    out += _measured_moves(tokens)
    out += _traded(tokens, quantities) + _so_does(tokens, out, quantities) + _what_is(tokens, cues, quantities)
    hedges = [n for n in range(len(tokens)) if _HEDGES.match(tokens, n)]
    out += [Effect("compute", -1 if negated(tokens, c[0], marks) or prevented(tokens, c[0]) else 1, c[1] - 1, c[1]) for c in cues if c[2] == "again"]
    again = {c[1] - 1 for c in cues if c[2] == "again"}
    out = [replace(e, strong=False) if e.strong and not e.told and _doubtful(tokens, e, marks) else e for e in out]
    out = [replace(e, negated=e.at not in again and negated(tokens, e.cue if e.cue >= 0 else e.at, marks), hedged=bool(hedges),
                   words=" ".join(t.word for t in tokens[e.at:e.end])) for e in out]
    # what does not fit needs more
    out = [replace(e, sign=-e.sign, negated=False) if e.negated and e.quantity == "memory" and e.words.startswith("fit") else e for e in out]
    return sorted(set(out), key=lambda e: (e.at, e.end, e.quantity, e.sign))


def _factor(tokens: tuple[Token, ...], i: int, table: Table) -> int:
    """How many tokens a factor takes that raises what follows (`5x the compute`, `2x compute`, `five times the work`), 0 if none starts here."""
    amount = tokens[i].amount
    if amount is None or not isinstance(amount.value, (int, float)) or amount.value <= 1:
        return 0
    used = 1 if amount.kind == "ratio" else 2 if amount.kind == "count" and tokens[i + 1:i + 2] and tokens[i + 1].word == "times" else 0
    if not used or not tokens[i + used:i + used + 1]:
        return 0
    named = table.match(tokens, i + used) if tokens[i + used].kind == "word" and amount.kind == "ratio" else None
    return used if tokens[i + used].word in ("the", "more", "as") or (named and named[1][0] != "lever") else 0


def _doubtful(tokens: tuple[Token, ...], e: Effect, marks: list[int]) -> bool:
    """Whether a direction may be told of something else, or is denied only together with more: `not the same picture sooner`."""
    at = e.cue if e.cue >= 0 else e.at
    if e.quantity == "lever":
        return False
    if e.at == at and of_another(tokens, e.at, e.end):
        return True
    if [t.word for t in tokens[e.end:e.end + 2]] in (["at", "best"], ["at", "most"], ["at", "least"]) or tokens[e.end - 1].word in ("best",):
        return True
    if {t.word for t in tokens[max(0, at - 6):at]} & {"can", "could", "may", "might"} and {t.word for t in tokens[:at]} & {"even", "sometimes", "occasionally", "if"}:
        return True  # `it can even end up slower`
    return any(n < at and at - n <= 8 and any(t.word in ("same", "just", "simply", "all") for t in tokens[n:at]) for n in marks)


def _exchanged(tokens: tuple[Token, ...], found: list[Effect]) -> list[Effect]:
    """`a small peak in exchange for latency`: what is exchanged for something good is paid, for something bad gained."""
    out = []
    for e in found:
        if e.cue >= 0 and [t.word for t in tokens[e.cue:e.cue + 3]] in (["in", "exchange", "for"], ["in", "return", "for"]):
            if e.at < e.cue:
                continue  # what stands before it is not what is given for it
            first = next((o for o in sorted(found, key=lambda o: -o.at) if o.end <= e.cue and o.quantity in lex.GOOD), None)
            if first is None:
                e = replace(e, strong=False)
            elif first.sign * lex.GOOD[first.quantity] > 0:
                e = replace(e, sign=-lex.GOOD.get(e.quantity, 1))
        out.append(e)
    return out


def _measured_moves(tokens: tuple[Token, ...]) -> list[Effect]:
    """`from 16 GB to 0.66 GB`, `2.15 s instead of 0.89 s`: bytes and times that go from one value to another."""
    out = []
    amounts = [(i, t.amount) for i, t in enumerate(tokens) if t.kind == "amount" and t.amount.kind in ("bytes", "time")]
    for (i, a), (j, b) in itertools.pairwise(amounts):
        between = {t.word for t in tokens[i + 1:j]}
        if a.kind != b.kind or a.value == b.value or j - i > 4:
            continue
        way = 1 if between & {"to", "->", "\u2192", "=>"} else -1 if between & {"instead", "rather", "not"} else 0
        if way:
            out.append(Effect("memory" if a.kind == "bytes" else "time", way if b.value > a.value else -way, i, j + 1))
    return out


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
        copula = None
        if i and tokens[i - 1].word in ("is", "are", "was"):
            named = next((q for q in reversed(quantities) if q[1] <= i - 1 and i - 1 - q[1] <= 2 and q[2] != "lever"), None)
        else:
            copula = next((j for j in range(verb + 1, min(verb + 8, len(tokens))) if tokens[j].word in ("is", "are", "was")), None)
            named = next((q for q in quantities if copula is not None and 0 < q[0] - copula <= 4 and q[2] != "lever"), None)
        if named and named[2] in lex.GOOD and not any(max(named[0] - 4, verb, copula if copula is not None else 0) < c[0] < named[0] and c[2] in ("mod", "good", "carry", "verb") for c in cues):
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
