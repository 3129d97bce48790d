"""How the grader's reader understands a learner's sentences, shown while the learner writes.

Only general knowledge goes in: the ready word lists of `subject.py`, the general quantities and directions, and the names in
the learner's own trace. No rubric is known here, so the same text reads the same in every lab, and nothing says what is right.
"""

import itertools
import re
from collections.abc import Mapping
from functools import lru_cache

from . import gates
from . import lexicon as lex
from .amounts import beside, names_axis
from .clauses import relations
from .directions import effects, quantity_table
from .lexicon_verbs import VERB_INDEX, VERBS
from .negation import frame_of, negated, own_negators
from .order import impossible
from .phrases import Table
from .prose import FUNCTION_WORDS
from .relations import Relation
from .roles import BE
from .rubric import Trend
from .statements import Claim, Count, Direction, NotRead, Statement
from .subject import terms
from .trends import levers_of, pull_of
from .verbs import participle, verbs_of
from .vocabulary import Vocabulary
from .words import Sentence, clean, phrase, sentences, stem

READ_AT_MOST = 1_500
MOST = 8
"""Statements shown for one field."""
_SHARED = ("batch", "weights", "heads", "device", "tokens", "calls")
_SUBJECTS = (
    terms("latents", "scheduler", "unet", "noise", "vae", "image", "prompt", "guidance", "channels", "spatial", "steps", "loop", "tiles", "sequence", *_SHARED,
          scheduler="+ddim step*, scheduler step*", tiles="tile, tiles, tiling, tiled, window*, patch*, piece*, chunk*, crop*"),
    {**terms("scheduler", "cache", "keys", "prefill", "decode", "sequence", "head_dim", "logits", "draft", "target", "requests", "prefix", "blocks", *_SHARED,
             requests="request*, user*, conversation*, client*", queries="quer*, query head*", tokens="token, tokens, generated token*, new token*, next token*", weights="weight, weights, parameters, model weights",
             layers="layer*", prompt="prompt*, text, input text", codes="code, codes, integer*", scales="scale, scales, scaling factor*", groups="group, groups, group size*", rows="row, rows, output channel*",
             columns="column, columns", activations="activation*", embedding="embedding*, embed_tokens", norms="norm, norms",
             steps="step*, iteration*, round, rounds", model="model*, network, transformer, language model, llm, attention", scheduler="scheduler*"),
     "hidden state": "hidden state*, hidden width, hidden size",
     "all-reduce": "all-reduce*, all reduce*, allreduce*, all_reduce*"},
)
_COUNTED = ("batch", "channels", "spatial", "steps", "calls", "tiles", "sequence", "heads", "head_dim", "tokens", "requests", "blocks", "device", "layers", "queries", "groups", "rows", "columns", "hidden state")
_PULLED = ("steps", "batch", "tokens", "sequence", "tiles", "requests", "guidance", "cache", "draft", "prefix", "blocks", "device", "heads")
_SWITCHED = frozenset(("tiles", "guidance", "cache", "draft", "prefix"))
_PLACES = frozenset(("steps", "loop", "calls", "decode", "prefill"))
"""Where and when something happens: it acts only where nothing else does."""
_JOINS = frozenset(("while", "whereas", "but", "although", "though"))
_WAY = {1: "up", -1: "down", 0: "unchanged"}
_NOBODY = "who does it was not read: name it."
PERSON = "As it stands a person must read this; that takes longer."


@lru_cache(maxsize=1)
def _vocabularies() -> tuple[Vocabulary, ...]:
    return tuple(Vocabulary(words) for words in _SUBJECTS)


@lru_cache(maxsize=64)
def _lever_table(subject: int, term: str) -> Table:
    own = {phrase(item): ("lever", 1) for item in _SUBJECTS[subject][term].split(",")}
    return quantity_table({key: value for key, value in own.items() if key and key not in lex.QUANTITIES})


def subject_of(text: str) -> int:
    """Which ready lists fit a text: 0 for diffusion, 1 for language models; the text alone decides."""
    parts = sentences(clean(text[:READ_AT_MOST]))
    named = [sum(len(v.mentions(s)) for s in parts) for v in _vocabularies()]
    return int(named[1] > named[0])


def names_in(facts: Mapping[str, object]) -> str:
    """A few names from a trace for a hint: those called most often, "" if it has none."""
    called = [(k.removesuffix(".calls"), v) for k, v in facts.items() if k.endswith(".calls") and isinstance(v, int)]
    shown = [name for name, _ in sorted(called, key=lambda item: (-item[1], item[0])) if name.islower()][:3]
    return f" ({', '.join(shown)} ...)" if shown else ""


def read_back(label: str, text: str, facts: Mapping[str, object] | None = None, subject: int | None = None) -> list[Statement]:
    """The statements read in one prose field, in order, with a `NotRead` for each sentence that gave none.

    `label` is "state", "axis" or "trade-off" (which is read for directions, the others for who does what), `subject` that of
    the whole cell (`subject_of`). Never raises on what a learner wrote.
    """
    cleaned = clean(text[:READ_AT_MOST])
    parts = sentences(cleaned)[:gates.MAX_SENTENCES]
    if not parts:
        return []
    subject = subject_of(text) if subject is None else subject
    words = _vocabularies()[subject]
    mended = [words.mend(s) for s in parts]
    gate = gates.check(text, cleaned, mended, "", ordered=label == "state")
    if gate.verdict and (not gate.loose or any(impossible([t.word for t in s.tokens]) for s in mended)):
        return [NotRead("", f"not read: {_why(gate)}. {PERSON}")]
    out: list[Statement] = []
    earlier: tuple[tuple[str, bool], ...] = ()
    carried: str | None = None
    for s in mended:
        mentions = words.mentions(s)
        if label == "trade-off":
            places, carried = _directions(s, words, subject, carried)
        else:
            places = _claims(s, words, earlier, next((c.subject for c in reversed(out) if isinstance(c, Claim) and c.subject not in ("", "it")), "")) + _counts(s, words, subject, label == "axis")
        earlier += tuple((m.term, s.tokens[m.end - 1].word.endswith("s")) for m in mentions)
        out += [found for _, found in places] + _hints(s, label, words, places, facts or {})
    if any(isinstance(c, Claim) and c.subject and not c.stance for c in out):
        out = [c for c in out if not (isinstance(c, NotRead) and c.hint == _NOBODY)]
    out = list(dict.fromkeys(out))
    out += [NotRead("", hint) for hint in _on_the_whole(label, out)]
    if all(isinstance(found, NotRead) for found in out):
        out.append(NotRead("", PERSON))
    if gate.loose and not all(isinstance(found, NotRead) for found in out):
        out.append(NotRead("", f"{_why(gate)}: write whole sentences, or a person may have to read this."))
    open_ = gates.unasserted(cleaned) or gates.taken_back(cleaned)
    if open_:
        out.append(NotRead("", f"\u201c{open_}\u201d asks, supposes, quotes or takes back: state what you say as your own. {PERSON}"))
    read = [found for found in out if not isinstance(found, NotRead)][:MOST]
    return read + [found for found in out if isinstance(found, NotRead)][:MOST]


_WHOLE = frozenset(("grows", "shrinks"))
"""Deeds that need no object."""


def _on_the_whole(label: str, read: list[Statement]) -> list[str]:
    """Hints for a field of which each sentence was read, but not the statement that such a field makes."""
    claims = [c for c in read if isinstance(c, Claim) and not c.stance]
    counts = [c for c in read if isinstance(c, Count)]
    if label == "state" and claims:
        if not any(c.subject and c.object or c.subject and VERB_INDEX.get(phrase(c.verb), frozenset()) & _WHOLE for c in claims):
            return ["who does what to what was not read in one sentence: say it in one, like `X changes Y` or `X reads Y`, with the names in your trace."]
        if any((c.subject + " and " + c.object).count(" and ") >= 4 for c in claims):
            return ["a long sentence was read as one deed on many things: split it, one statement a sentence."]
    ways = [d for d in read if isinstance(d, Direction)]
    if label == "trade-off" and ways and len({d.lever for d in ways}) == 1 and not any(d.stance for d in ways):
        better = {lex.GOOD[d.quantity] * {"up": 1, "down": -1, "unchanged": 0}[d.way] > 0 for d in ways}
        if len(better) == 1:
            return [f"only what gets {'better' if better == {True} else 'worse'} was read: say the other side in a sentence of its own, like {'`it takes longer` or `it needs more memory`' if better == {True} else '`it is faster` or `the peak is lower`'}."]
    if label == "axis" and counts and all(c.thing == "number" or c.thing == "shape" and len(re.findall(r"\d+", c.number)) < 3 for c in counts):
        return [f"it was not read what {next((c.number for c in counts if c.thing == 'number'), counts[0].number)} counts: name the axis beside its number, or quote the whole shape."]
    return []


def _why(gate: gates.Gate) -> str:
    """A gate's reason for the middle of a sentence, without what happens then."""
    return gate.reason.removesuffix(".").replace("; a person will read it", "").replace("This", "this", 1)


def _claims(s: Sentence, words: Vocabulary, earlier: tuple, before: str = "") -> list[tuple[int, Claim]]:
    actors = frozenset(m.term for m in words.mentions(s)) | {term for term, _ in earlier}
    prior = before if before in actors else next((term for term, _ in reversed(earlier)), "")
    strong = gates.strongly_framed(s.text)
    out: dict[tuple, tuple[int, Claim]] = {}
    found = relations(s, words.mentions(s), actors - _PLACES, prior, earlier)
    if not any(r.agents - {"it"} for r in found):
        found = relations(s, words.mentions(s), actors, prior, earlier)
    for r in found:
        objects = r.objects - r.agents - {"it"}
        who, what = _own_word(s, r.at, words.mentions(s)) or " and ".join(sorted(r.agents)), " and ".join(sorted(objects - _PLACES or objects))
        idle = r.verb in lex.AUXILIARY or all(c in ("is", "other") or c.startswith("=") for c in r.classes)
        if not (who or what) or who == "it" and not what or (idle and not (r.close and what and who not in ("", "it"))):
            continue
        stance = _stance(r.negated, r.hedged, r.framed, strong)
        out.setdefault((who, what, stance) if what else (who, _verb(r), stance), (r.at, Claim(who, _verb(r), what, stance)))
    return list(out.values())


_LATER = frozenset(("then", "also", "only", "always", "just", "now", "later", "again", "still"))
_PREPOSITION = frozenset(("of", "in", "on", "for", "with", "from", "to", "by", "at", "between", "along", "after", "before", "without", "inside", "per", "as", "than", "over", "during"))


def _own_word(s: Sentence, at: int, mentions: list) -> str:
    """The learner's own noun before an active verb, where no list knows it: `int8 quantization replaces`, `the encoder of the VAE decodes`."""
    tokens, end = s.tokens, at
    while end and (tokens[end - 1].word in lex.AUXILIARY | lex.NEGATORS | _LATER or tokens[end - 1].word.endswith("ly")):
        end -= 1
    if participle(tokens[at]) and (end == 0 or any(t.word in BE for t in tokens[end:at])):
        return ""
    start = end
    while start and tokens[start - 1].kind in ("word", "amount") and tokens[start - 1].word not in lex.BREAKS | {"and", "or"}:
        start -= 1
    head = next((k for k in range(start, end) if tokens[k].word in _PREPOSITION), end)
    last = tokens[head - 1] if head > start else None
    if last is None or last.kind != "word" or last.word in FUNCTION_WORDS or any(m.at < head and m.end > start for m in mentions):
        return ""
    if any(t.word in ("what", "which", "that", "who") for t in tokens[start:head]) or verbs_of(tokens[start:head], set()):
        return ""
    return last.word


def _stance(no: bool, hedged: bool, framed: bool, strong: str) -> str:
    if framed:
        return "not" if strong and not no else "apart"
    return "not" if no else "open" if hedged else ""


def _verb(r: Relation) -> str:
    """The verb's class where it has just one, the learner's own word otherwise."""
    classes = [c for c in VERBS if c in r.classes and c != "other" and not (c == "decodes" and "changes" in r.classes)]
    same = next((c for c in classes if stem(c) == stem(r.verb)), "")
    return same or (classes[0] if len(classes) == 1 else r.verb)


def _counts(s: Sentence, words: Vocabulary, subject: int, alone: bool) -> list[tuple[int, Count]]:
    """The counts with what they count; with `alone` also the shapes and the counts that stand beside nothing known."""
    counted = {term: listing for term, listing in _SUBJECTS[subject].items() if term in _COUNTED}
    owned = [(i, beside(s.tokens, i, words.mentions(s), counted), t.word) for i, t in enumerate(s.tokens)
             if t.kind == "amount" and t.amount.kind == "count" and t.word not in ("one", "single")
             and (not names_axis(s.tokens, i) or any(m.end == i and m.term in counted for m in words.mentions(s)))]
    shapes = [(i, "shape", t.word) for i, t in enumerate(s.tokens) if alone and t.kind == "amount" and t.amount.kind == "shape"]
    marks = own_negators(s)
    here = [m for m in words.mentions(s) if not _place(s.tokens, m)]
    owned = [(i, term or (_nearest(here, i, counted) if alone else ""), word) for i, term, word in owned]
    owned = [(i, term or _own_name(s, i), word) for i, term, word in owned]
    return [(i, Count(term or "number", word, "not" if negated(s.tokens, i, marks) else "")) for i, term, word in shapes + owned if term or alone]


def _own_name(s: Sentence, i: int) -> str:
    """A module's name that stands before a number in its clause: `q_proj is halved from 256 to 128`."""
    for k in range(i - 1, -1, -1):
        if s.tokens[k].word in lex.BREAKS or s.tokens[k].word in (";", ":"):
            return ""
        if s.tokens[k].kind == "word" and ("_" in s.tokens[k].word or "." in s.tokens[k].word):
            return s.tokens[k].word
    return ""


def _place(tokens, m) -> bool:
    """Whether a term says where or how often, not what is counted: `at each decode call`, `on a rank`, `per layer`."""
    near = [t.word for t in tokens[max(0, m.at - 3):m.at]]
    return bool({"each", "every", "per"} & set(near)) or any(a in ("on", "in", "at") and b in ("a", "an", "one", "both", "all") for a, b in itertools.pairwise(near))


def _nearest(mentions: list, i: int, counted: Mapping[str, str]) -> str:
    """The axis that a number of its sentence belongs to most likely: the last one named before it, or the only one."""
    before = [m.term for m in mentions if m.term in counted and m.end <= i]
    every = {m.term for m in mentions if m.term in counted}
    return before[-1] if before else next(iter(every)) if len(every) == 1 else ""


def _directions(s: Sentence, words: Vocabulary, subject: int, carried: str | None) -> tuple[list[tuple[int, Direction]], str | None]:
    """The directions of a sentence with what is pulled, and what the next sentence goes on with."""
    named = dict.fromkeys(m.term for m in words.mentions(s) if m.term in _PULLED)
    pulled: list[tuple[int, str]] = []
    for term in named:
        switch = term in _SWITCHED
        found = effects(s, _lever_table(subject, term))
        moved = [(e.at, e.sign) for e in found if e.quantity == "lever" and e.sign]
        pulled += [(at, f"{term} {_WAY[sign] if not switch or any(abs(at - m) <= 1 for m, _ in moved) else 'on' if sign > 0 else 'off'}")
                   for at, sign in levers_of(s, found, Trend(term, {}, {}, switch=switch), words)
                   if switch or not at or s.tokens[at - 1].word not in ("each", "every", "per", "one", "a", "single")]
    pulled.sort()
    start, stop = frame_of(s)
    strong = gates.strongly_framed(s.text)
    out = []
    for e in effects(s):
        if e.quantity in lex.GOOD and not any(e.at <= at < e.end for at, _ in pulled):
            framed = start <= s.tokens[e.at].start - s.tokens[0].start < stop
            out.append((e.at, Direction(e.quantity, _WAY[e.sign], pull_of(s, e, pulled, carried) or "", _stance(e.negated, e.hedged, framed, strong))))
    return out, (pulled[-1][1] if pulled else carried)


def _hints(s: Sentence, label: str, words: Vocabulary, places: list[tuple[int, Statement]], facts: Mapping[str, object]) -> list[NotRead]:
    short = s.text if len(s.text) <= 60 else s.text[:57] + "..."
    if not places:
        if label == "trade-off":
            return [NotRead(short, "no direction read: say what goes up and what goes down, like `more steps take longer`.")]
        if label == "axis":
            return [NotRead(short, "not read: name the axis, and give its number or the shape from your trace.")]
        return [NotRead(short, f"not read: say who does what to what, with the names in your trace{names_in(facts)}, one statement a sentence.")]
    claims = [found for _, found in places if isinstance(found, Claim)]
    if label == "state" and claims and not any(c.subject for c in claims):
        return [NotRead(short, _NOBODY)]
    taken = {i for m in words.mentions(s) for i in range(m.at, m.end)}
    verbs = [at for at, _, _ in verbs_of(s.tokens, taken)]
    for i, t in enumerate(s.tokens):
        if t.word in _JOINS and any(v < i for v in verbs) and any(v > i for v in verbs) and len({at < i for at, _ in places}) == 1:
            return [NotRead(short, f"two statements are joined by \u201c{t.word}\u201d and one of them was read: write two sentences, or a person may have to read this.")]
    return []
