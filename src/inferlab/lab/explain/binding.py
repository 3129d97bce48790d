"""Which quantity a direction word moves: its binding to what stands before or after it."""

from . import lexicon as lex
from .effect import REACH, Effect
from .prose import FUNCTION_WORDS
from .words import Token

_LEADS = frozenset(("mean", "giv", "mak", "need", "use", "requir", "tak", "cost", "produc", "let", "caus", "yield", "bring", "lead", "impl", "creat"))
_TRANSITIVE = frozenset(("fre", "cut", "sav", "trim", "avoid", "skip", "remov", "eliminat", "minimis", "minimiz", "limit", "cap", "spar", "add", "gain", "reliev"))
_STOP = {",", ":", "(", ")", "\u2192", "->", "=>", "="}


def weak_spend(tokens: tuple[Token, ...], cues: list, quantities: list) -> list:
    """`uses more memory`: the `more` decides; `adds` after a lever is still a verb."""
    kept = []
    for n, cue in enumerate(cues):
        nearby = next((c for c in cues[n + 1:n + 2] if not any(q[0] <= c[0] and c[1] <= q[1] and q[1] - q[0] > c[1] - c[0] for q in quantities)), None)
        paid = next((q for q in quantities if 0 <= q[0] - cue[1] <= 2), None) if cue[2] in ("lose", "spend") else None
        if paid and any(c[0] == paid[1] and c[2] == "mod" and _ends(tokens, c[1]) for c in cues):
            continue
        follows = nearby and nearby[0] - cue[1] <= 3 and nearby[2] in ("mod", "good", "carry", "same") and not any(
            t.word in _STOP or t.word in lex.BREAKS for t in tokens[cue[1]:nearby[0]]) and not any(
                cue[1] <= q[0] and q[1] <= nearby[0] for q in quantities)
        if cue[2] in ("spend", "win", "lose") and follows and nearby[2] != "same" and (cue[2] != "lose" or nearby[2] in ("mod", "carry")):
            continue
        if cue[2] == "verb" and follows and nearby[2] in ("mod",) and tokens[cue[0]].stem in ("add", "gain", "sav", "sink"):
            continue
        kept.append(cue)
    return kept


def _ends(tokens: tuple[Token, ...], i: int) -> bool:
    """Whether a phrase ends before `i`: `two calls less,`."""
    return i >= len(tokens) or tokens[i].kind == "punct" or tokens[i].word in lex.BREAKS | {"and", "than", "for"}


def bind(tokens: tuple[Token, ...], cue: tuple, cues: list, quantities: list) -> list[Effect]:
    at, end, kind, value = cue
    if kind == "again" or (kind == "part" and _no_particle(tokens, at, end)):
        return []
    if kind in ("lose", "win") and tokens[end - 1].word == "is" and tokens[end:end + 1] and tokens[end].word in ("that", "when", "how"):
        return []
    if kind == "carry":
        if value[0] == "compute" and tokens[end:end + 1] and tokens[end].word in ("in", "on"):
            named = _ahead(tokens, end + 1, cues, quantities, 3)
            if named:
                return [Effect(named[2], value[1] * named[3], at, named[1])]
        return [Effect(value[0], value[1], at, end)]
    if kind == "win" and tokens[end - 1].word == "for" and any(t.word in ("in", "with", "by") for t in tokens[end:end + 3]):
        kind, value = "lose", -1  # `paid for linearly in calls`
    ahead = _ahead(tokens, end, cues, quantities, 3 if kind in ("mod", "good", "same") else REACH + 1)
    back = _back(tokens, at, cues, quantities)
    if kind == "part":
        target = back or ahead
    elif kind in ("mod", "good", "same"):
        if back and (any(t.stem in _LEADS for t in tokens[back[1]:at]) or not _predicate(tokens, back[1], at) or (
                kind == "good" and _attributive(tokens, end))):
            back = None
        if kind == "mod" and tokens[at].word == "another" and ahead and ahead[2] in ("quality", "memory"):
            return []
        if kind == "mod" and ahead and any(tokens[k].word in ("the", "a", "an", "its", "their") and tokens[k - 1].kind == "word" and tokens[k - 1].word not in FUNCTION_WORDS
                                           for k in range(end + 1, ahead[0])):
            ahead = None  # `with smaller groups the error is larger`
        target = ahead or back
    elif kind == "verb":
        target = ahead or back
        passive = at and tokens[at - 1].word in lex.AUXILIARY - {"to", "will", "can", "would", "may", "could", "must", "should"}
        if not passive and not ahead and tokens[at].stem in _TRANSITIVE:
            target = None
        if target and target is back and target[2] == "lever" and not passive and end < len(tokens) and tokens[end].word in _OBJECTS:
            target = None  # `more steps reduce the distance`
        if back and (passive or tokens[end:end + 1] and tokens[end].word in ("from", "to", "by", "with", "linearly", "as")):
            target = back
    else:
        passive = at and tokens[at - 1].word in ("is", "are", "was", "were", "be", "been") and (
            tokens[at].word.endswith(("ed", "en")) or tokens[at].word in ("lost", "paid", "spent", "bought", "won", "cut"))
        if passive and back and any(c[2] in ("mod", "good") and c[0] < back[0] and back[0] - c[1] <= 2 for c in cues):
            return []
        target = (back if passive else None) or ahead or (back if kind in ("lose", "win") and tokens[at].kind == "word" else None)
    if target and target[2] == "lever" and (kind in ("lose", "win", "good") or (kind == "spend" and any(t.kind == "amount" for t in tokens[end:target[0]]))):
        target = None
    if kind == "mod" and target is ahead and ahead and at and tokens[at - 1].word in _BECOMES and any(t.word in _PREPOSITIONS for t in tokens[end:ahead[0]]):
        if tokens[at].stem in ("longer", "shorter"):
            return [Effect("time", value, at, end)]
        target = back
    if kind == "spend" and target is ahead and ahead:
        between = {t.word for t in tokens[end:ahead[0]]}
        if between & _PREPOSITIONS:
            return []  # `needs at its peak much less`
        if between & _LITTLE:
            value = -1  # `needs only one exchange`
        elif [t.word for t in tokens[ahead[1]:ahead[1] + 2]] in (["of", "one"], ["of", "a"], ["of", "only"]):
            return [Effect(ahead[2], value * ahead[3], at, ahead[1], cue=at, strong=False)]
    if not target and kind == "mod" and tokens[at].stem in ("longer", "shorter", "short", "long"):
        near = {t.stem for t in tokens[max(0, at - 4):end + 5]}
        if tokens[end:end + 1] and tokens[end].stem in ("decod", "run", "generation", "inferenc", "pass", "wait", "process", "step", "loop", "computation", "render"):
            return [Effect("time", value, at, end)]
        if near & {"tak", "run", "wait", "last", "need", "sit", "finish"}:
            return [Effect("time", value, at, end)]
    if target and target[2] == "quality" and kind in ("mod", "verb", "part", "spend", "same") and tokens[target[1] - 1].stem in _HOLDERS and not any(
            q[2] == "quality" and 0 < target[0] - q[1] <= 2 for q in quantities):
        return []
    if not target:
        if kind == "good" and _attributive(tokens, end) and tokens[end].stem not in _HOLDERS:
            return [] if tokens[at].word in ("worst", "best", "bad") else [Effect("quality", value, at, end, strong=False)]
        if kind == "good" or (kind == "win" and tokens[at].stem in ("improv", "better")) or (
                kind == "lose" and tokens[at].stem in ("degrad", "worsen", "suffer", "deteriorat")):
            return [Effect("quality", value, at, end)]
        return []
    found = [target, *(_coordinated(tokens, target, cues, quantities) if target is ahead else _joined_before(tokens, target, cues, quantities))]
    out = []
    for q_at, q_end, name, inverse in found:
        if kind in ("lose", "win", "good"):
            if name not in lex.GOOD:
                continue
            sign = value * lex.GOOD.get(name, +1)
        else:
            sign = value * inverse if kind != "same" else 0
        gap = tokens[end:q_at] if q_at >= end else tokens[q_end:at]
        near = sum(t.kind in ("word", "amount") and t.word not in FUNCTION_WORDS and not t.word.endswith("ly") for t in gap) <= 1
        out.append(Effect(name, sign, min(at, q_at), max(end, q_end), cue=at, strong=near))
    return out


_HOLDERS = frozenset(("pictur", "imag", "result", "output", "sampl", "photo", "draw", "one", "on", "outcom", "render"))
"""What has a quality but is none: more of these is not more of it."""
_LITTLE = frozenset(("only", "no", "little", "hardly", "just", "barely", "weaker", "scarcely"))
_OBJECTS = frozenset(("the", "a", "an", "this", "that", "each", "every", "its", "my", "our", "your", "their", "what", "how", "only"))
_PREPOSITIONS = frozenset(("to", "with", "from", "by", "in", "for", "of", "at", "on"))
_COPULA = frozenset(("is", "are", "was", "were"))
_BECOMES = frozenset(("is", "are", "was", "were", "be", "been", "being", "get", "gets", "got", "getting", "become", "becomes", "becoming", "became", "stay", "stays", "remain", "remains",
                      "look", "looks", "turn", "turns", "go", "goes", "going", "grow", "grows", "come", "comes", "seem", "seems", "'s", "end", "ends", "run", "runs", "appears", "gone"))
_NO_UP = frozenset(("end", "set", "com", "com", "come", "mak", "make", "pick", "break", "split", "show", "wind", "chop", "cut", "divid", "catch", "look", "keep", "giv", "open", "mix", "clean", "warm",
                    "wrap", "fre", "follow", "back", "start", "spell", "tidi", "tidy", "sit", "sum", "clear", "hold", "bring", "bottom"))


def _no_particle(tokens, at, end) -> bool:
    """`end up with`, `up to a point`: no direction."""
    if end < len(tokens) and tokens[end].word in ("the", "a", "an", "this", "that", "my", "your") and at and tokens[at - 1].stem not in ("go", "goes", "bring", "driv", "push"):
        return True  # `a walk down the schedule`
    return bool(at and tokens[at - 1].stem in _NO_UP) or (tokens[end:end + 1] != () and tokens[end].word in ("to", "with") and tokens[at].word == "up")


def _attributive(tokens, end) -> bool:
    """Whether an adjective that ends before `end` stands before its own noun: `the worst moment`."""
    if end >= len(tokens) or tokens[end].kind != "word":
        return False
    return tokens[end].word not in FUNCTION_WORDS and tokens[end].word not in lex.BREAKS and (not tokens[end].word.endswith("ly") or tokens[end].word == "early")


def _predicate(tokens, a, b) -> bool:
    """Whether what stands between a quantity and an adjective behind it lets the one say something of the other."""
    between = [t.word for t in tokens[a:b]]
    return not between or any(w in _BECOMES or w.endswith("'s") for w in between)


def _ahead(tokens, end, cues, quantities, reach):
    for q in quantities:
        if end - 1 <= q[0] <= end + reach and q[0] >= end:
            between = tokens[end:q[0]]
            if any(t.word in _STOP or t.word in lex.BREAKS for t in between):
                return None
            if any(t.word in _COPULA for t in between) and not any(t.word == "what" for t in tokens[max(0, end - 4):end]):
                return None
            if any(end <= c[0] < q[0] and c[2] in ("verb", "part", "spend", "carry", "lose", "win") for c in cues):
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
