"""Grades the prose slots of an explanation against a rubric and the facts of the re-run's trace."""

from collections.abc import Mapping

from . import gates, likeness, order, prose
from . import lexicon as lex
from .amounts import Found, foreign_shapes, read_amounts
from .cell import COMMON_LABELS, Explanation, canonical
from .claims import SAYS, actors_of, claims, phrases_of, says, spoken
from .clauses import relations
from .facts import facts_of
from .loose import loosely
from .negation import is_hedged
from .outcome import Outcome, award, deny, review
from .relations import Relation
from .rubric import Rubric, Slot
from .terse import noted
from .trends import Reading, is_framed, read_trend
from .understood import not_by_it, understood
from .vocabulary import Vocabulary, vocabulary
from .words import Sentence, clean, sentences

FEW = 9
"""Words of a text below which one that names nothing of what the question asks about is denied, not reviewed."""
READ_AT_MOST = 1_500
"""Characters of a field that are analysed; a longer field is never awarded."""


def preload() -> None:
    """Read the shipped tables, so that processes forked later have them."""
    for table in (prose.clusters, prose.model, prose.known_words, order.weights, likeness.table):
        table()


def grade(explanation: Explanation, rubric: Rubric, facts: object = None) -> dict[str, Outcome]:
    """One Outcome for each slot of the rubric.

    `facts` is a mapping name -> value (or a trace with `facts()`): shapes as tuples, dtypes as names, counts and
    bytes as numbers. Names that speak of a time or a peak never deny. Raises KeyError when the rubric asks for a
    fact that is not there; never raises on what a learner wrote.
    """
    known = facts_of(facts)
    # a rubric may hold one slot of several (one graded cell each): the others' fields are no part of its text
    texts = explanation.fields((*COMMON_LABELS, *rubric.labels, *_typed_labels(explanation)))
    whole = _whole(explanation)
    out = {}
    for name, slot in rubric.slots.items():
        text = texts.get(canonical(slot.reads or name), "")
        if len(text.split()) >= 5 and _repeated(canonical(slot.reads or name), text, texts):
            out[name] = deny("This repeats another field of the explanation word for word.", (text[:80],))
            continue
        out[name] = whole if whole and text.strip() else grade_slot(text, slot, rubric, known)
    return out


def _repeated(label: str, text: str, texts: Mapping[str, str]) -> bool:
    """Whether a field before this one has the same words."""
    for other, said in texts.items():
        if other == label:
            return False
        if said.casefold().split() == text.casefold().split():
            return True
    return False


def _typed_labels(explanation: Explanation) -> tuple[str, ...]:
    """Labels that are a field of their own whatever the rubric says: those of short typed lines."""
    return tuple(label for label, text in explanation.parts if label and " " not in label and len(text.split()) <= 6)


def _whole(explanation: Explanation) -> Outcome | None:
    """What is said about the answer as a whole: an instruction to the grader, or words before the first label
    (or in a field of its own) that take it all back."""
    body = clean("\n".join(text[:READ_AT_MOST] for _, text in explanation.parts[:40])[:8_000])
    told = gates.instruction(body)
    if told:
        return deny("This talks to the grader instead of explaining.", (told,))
    head = explanation.parts[0][1] if explanation.parts and not explanation.parts[0][0] else ""
    retracted = gates.retraction(body)
    if retracted or (head and is_framed(sentences(clean(head[:2_000])))):
        return deny("This says that the answer is not so.", (retracted or head[:80],))
    return None


def grade_slot(text: str, slot: Slot, rubric: Rubric, facts: Mapping[str, object]) -> Outcome:
    """Grade the text of one field."""
    if len(text) > READ_AT_MOST:
        return _too_long(text)
    raw = text
    cleaned = clean(raw)
    parts = sentences(cleaned)
    words = vocabulary(rubric)
    mended = [words.mend(s) for s in parts[:gates.MAX_SENTENCES + 4]]
    gate = gates.check(raw, cleaned, mended + parts[gates.MAX_SENTENCES + 4:], rubric.source, ordered=bool(slot.award))
    if gate.verdict == "deny":
        return deny(gate.reason, gate.evidence)
    found = _relations(mended, slot, rubric, words)
    outcome = _content(mended, found, slot, rubric, facts, words)
    if outcome.verdict == "award" and slot.learned and likeness.doubt(slot.learned, likeness.read(mended, words, found)) > likeness.TOO_MUCH:
        return review("This says more than could be checked; a person will read it.")
    if outcome.verdict == "award":
        back, both, open_, sign = gates.taken_back(cleaned), gates.both_ways(cleaned), gates.unasserted(cleaned), gates.signs(raw)
        if back:
            return deny("This takes back what it says.", (back,))
        if both:
            return review("This says of something that it is so and that it is not; a person will read it.", (both,))
        if sign:
            return review("A sign in this may change what it says; a person will read it.", (sign,))
        if open_:
            return review("This asks, supposes or quotes instead of stating; a person will read it.", (open_,))
    if gate.loose and outcome.verdict == "award" and noted(mended, slot, rubric):
        return outcome
    if gate.verdict and outcome.verdict != "deny":
        return review(gate.reason, gate.evidence)
    return outcome


def _too_long(text: str) -> Outcome:
    """A field of a page is not read as an explanation: denied where its beginning shows why, else for a person."""
    cleaned = clean(text[:READ_AT_MOST])
    told, again = gates.instruction(cleaned), gates.repeats(sentences(cleaned))
    if told:
        return deny("This talks to the grader instead of explaining.", (told,))
    if again:
        return deny("This says the same thing more than once.", (again,))
    return review(f"This is longer than the one or two sentences asked for ({len(text):,} characters); a person will read it.")


def said(text: str, slot: Slot, rubric: Rubric) -> likeness.Said:
    """The text of one field as it is compared with other answers."""
    words = vocabulary(rubric)
    mended = [words.mend(s) for s in sentences(clean(text[:READ_AT_MOST]))]
    return likeness.read(mended, words, _relations(mended, slot, rubric, words))


def _relations(parts: list[Sentence], slot: Slot, rubric: Rubric, words: Vocabulary) -> list[Relation]:
    """Who does what in the sentences of one field, with what `it` and `them` stand for."""
    actors, prior, found = actors_of([*slot.award, *slot.deny], rubric.terms), "", []
    earlier: tuple[tuple[str, bool], ...] = ()
    for s in parts:
        mentions = words.mentions(s)
        found += relations(s, mentions, actors, prior, earlier)
        earlier += tuple((m.term, s.tokens[m.end - 1].word.endswith("s")) for m in mentions)
        prior = next((m.term for m in reversed(mentions) if m.term in actors), prior)
    return found


def _content(parts: list[Sentence], found: list[Relation], slot: Slot, rubric: Rubric, facts: Mapping[str, object], words: Vocabulary) -> Outcome:
    results = []
    if slot.award or slot.deny:
        results.append(_claims(found, slot, rubric, parts, words))
    refuted = bool(_refuted(found, slot, rubric))
    if slot.amounts:
        amounts = read_amounts(parts, slot.amounts, rubric, facts, words, slot.loose)
        refuted |= bool(amounts.refuted)
        results.append(_amounts(amounts, slot))
    if slot.trend:
        reading = read_trend(parts, slot.trend, rubric, words)
        refuted |= bool(reading.refuted)
        results.append(_trend(reading, slot, sum(len(s.words) for s in parts) < 2 * FEW))
    if not slot.amounts:
        strange = foreign_shapes(parts, facts)
        if strange:
            results.append(deny(f"Your trace does not show {strange[0]}.", tuple(strange)))
    if slot.topic:
        said = {m.term for s in parts for m in words.mentions(s)}
        if not said & set(slot.topic):
            results.append(review("This does not name what the question asks about; a person will read it."))
    missing = [name for name in slot.names if name not in {m.term for s in parts for m in words.mentions(s)}]
    if missing:
        results.append(review("Part of what the question asks about is not named; a person will read it.", tuple(missing)))
    denied = [r for r in results if r.verdict == "deny"]
    if denied:
        return denied[0]
    doubtful = [r for r in results if r.verdict == "review"]
    if doubtful:
        return doubtful[0]
    evidence = tuple(e for r in results for e in r.evidence)
    frame = next((f for f in (gates.strongly_framed(s.text) for s in parts) if f), "")
    double = next((f for f in (gates.doubly_framed(s.text) for s in parts) if f), "")
    if double or (frame and not refuted):
        frame = double or frame
        return review("This says of something that it is not so, and it is not clear of what; a person will read it.", (frame,))
    return award("This says what your trace shows.", evidence)


def _claims(found: list[Relation], slot: Slot, rubric: Rubric, parts: list[Sentence], words: Vocabulary) -> Outcome:
    context = frozenset(m.term for s in parts for m in words.mentions(s))
    right = [c for entry in slot.award for part in claims(entry, rubric.terms) for c in part if c.subject not in ("*", "")]
    acted, doubted = _acted(found, slot, rubric), ""
    for entry, message in slot.deny.items():
        if entry.startswith(SAYS):
            said = next((s.text for s in parts if spoken(entry, s)), "")
            if said:
                return deny(message or "This names the wrong thing.", (said,))
            continue
        for r in found:
            wrong = [c for part in claims(entry, rubric.terms) for c in part if says(c, r, context, lenient=False)]
            shared = any(c.subject in r.agents and c.subject not in {w.subject for w in wrong} and says(c, r, context, lenient=False) for c in right)
            if wrong and not shared and not (r.negated or r.framed) and acted and len({a for w in wrong for a in r.agents if a == w.subject}) > 0:
                doubted = doubted or r.text
                continue
            if wrong and not shared and not (r.negated or r.framed) and r.close and (r.sure or any(c.subject in ("*", "") or (not c.object and not r.agents) for c in wrong)):
                return (review("This may say two things; a person will read it.", (r.text,)) if r.hedged
                        else deny(message or "This names the wrong thing.", (r.text,)))
    if doubted:
        return review("This names the right one and another one as doing it; a person will read it.", (doubted,))
    if not slot.award:
        return award("")
    asserted, taken_back, hedged = [], [], []
    foes = frozenset(c.subject for entry in slot.deny for part in claims(entry, rubric.terms) for c in part) - {"*"}
    noted_by = ""
    for entry in slot.award:
        wanted, phrases = claims(entry, rubric.terms), phrases_of(entry)
        if not all(any(spoken(one, s) for s in parts) for one in phrases):
            continue
        if not wanted:
            noted_by = noted_by or entry
            continue
        hits = [[r for r in found if any(says(c, r, context, lenient=True) and not r.bad_objects & {c.object} for c in part)] for part in wanted]
        if all(any(not (r.negated or r.framed or r.hedged) for r in hit) for hit in hits):
            asserted.append(next(r for r in hits[0] if not (r.negated or r.framed or r.hedged)))
        taken_back += [r for part, hit in zip(wanted, hits, strict=True) for r in hit
                       if (r.negated != r.framed) and r.near and any(says(c, r, context, lenient=False) and (c.subject != "*" or not r.agents & foes) for c in part)]
        hedged += [r for hit in hits for r in hit if r.hedged]
    if taken_back:
        return deny("This denies what your trace shows, or says both.", (taken_back[0].text,))
    both = _both_ways(found)
    if both:
        return review("This says of something that it is so and that it is not; a person will read it.", (both,))
    if noted_by and not any(r.negated or r.framed for r in found):
        return award("", (noted_by[:60],))
    if asserted:
        return award("", (f"{sorted(asserted[0].agents)} {asserted[0].verb} {sorted(asserted[0].objects)}", asserted[0].text))
    if slot.loose and not hedged and not any(is_hedged(s) for s in parts):
        if any(not_by_it(s, words.mentions(s)) for s in parts):
            return review("Something that the question does not name does the work here; a person will read it.")
        shown = loosely(slot, rubric, found, parts, words) or understood(slot, rubric, found, [(s, words.mentions(s)) for s in parts])
        if shown:
            return award("", shown)
    if not hedged and sum(len(s.words) for s in parts) < FEW and not context & _subject_terms(slot, rubric):
        return deny("This names nothing of what the question asks about.")
    if hedged:
        return review("This leaves open which of two things holds; a person will read it.", (hedged[0].text,))
    return review("What does what could not be read here for certain; a person will read it.")


def _acted(found: list[Relation], slot: Slot, rubric: Rubric) -> bool:
    """Whether the right actors act too, in the way that one entry of `slot.award` wants, on its object or on something that was not read."""
    def one(c) -> bool:
        return c.subject not in ("*", "") and any(
            c.subject in r.agents and c.classes & r.classes and (not r.objects or {c.object, "it"} & r.objects) and r.sure and not (r.negated or r.framed or r.hedged) for r in found)

    entries = [parts for entry in slot.award if (parts := claims(entry, rubric.terms))]
    return any(all(any(one(c) for c in part) for part in parts) for parts in entries)


def _both_ways(found: list[Relation]) -> str:
    """The sentence that denies of somebody what another says of the same one, "" if there is none."""
    said = [r for r in found if r.objects - {"it"} and r.near and not (r.framed or r.hedged)]
    for a in said:
        for b in said:
            if a.negated and not b.negated and (a.agents & b.agents - {"it"} or not a.agents and {"never", "not"} & set(a.text.casefold().split())) and a.objects & b.objects - {"it"} and a.classes & b.classes - {"is", "other"}:
                return a.text
    return ""


def _subject_terms(slot: Slot, rubric: Rubric) -> frozenset[str]:
    """The terms of a slot's claims, right and wrong ones."""
    return frozenset(t for entry in [*slot.award, *slot.deny] for part in claims(entry, rubric.terms) for c in part for t in (c.subject, c.object)) - {"*", ""}


def _amounts(found: Found, slot: Slot) -> Outcome:
    wanted = slot.amounts
    quoted = (*found.whole, *(f"{v} {k}" for k, v in found.counts.items()), *found.parts)
    if found.wrong:
        return deny(f"Your trace does not show {found.wrong[0]}.", tuple(found.wrong))
    both = set(found.denied) & {*found.whole, *(f"{v} {k}" for k, v in found.counts.items())}
    if both:
        return deny(f"This says of {min(both)} that it is so and that it is not.", tuple(sorted(both)))
    if found.hedged:
        return review("This leaves a number open; a person will read it.", tuple(found.hedged))
    enough = bool(found.whole) or any(found.has(k) for k in wanted.key) or len(found.counts) + len(found.parts) >= 2
    if found.denied and not enough:
        return deny(f"Your trace shows {found.denied[0]}.", tuple(found.denied))
    if slot.loose and found.doubtful:
        return review(f"It is not clear whose shape is meant: {found.doubtful[0]}.", tuple(found.doubtful))
    if found.misplaced:
        return review(f"It is not clear whose number is meant: {found.misplaced[0]}.", tuple(found.misplaced))
    if found.strangers and not wanted.optional:
        return review(f"It is not clear what {found.strangers[0]} counts; a person will read it.", tuple(found.strangers))
    if enough or wanted.optional:
        return award("", quoted)
    if not (quoted or found.doubtful or found.parts or found.any):
        return deny("There is no number from your trace here.")
    if found.doubtful:
        return review(f"It is not clear whose shape is meant: {found.doubtful[0]}.", tuple(found.doubtful))
    return review("The number from the trace that settles this is not there; a person will read it.", quoted)


def _refuted(found: list[Relation], slot: Slot, rubric: Rubric) -> list[str]:
    """The known misconceptions that the answer mentions in order to reject them."""
    every = dict.fromkeys(e for e in [*slot.deny, *(entry for other in rubric.slots.values() for entry in other.deny)] if not e.startswith(SAYS))
    return [entry for entry in every for r in found if r.framed and not r.negated and any(
        says(c, r, frozenset(), lenient=False) for part in claims(entry, rubric.terms) for c in part)]


def _trend(reading: Reading, slot: Slot, few: bool) -> Outcome:
    trend = slot.trend
    gains = [w for q in trend.gain for w in reading.right.get(q, [])]
    costs = [w for q in trend.cost for w in reading.right.get(q, [])]
    if (reading.wrong or reading.denied) and (gains and costs and not reading.certain or reading.guessed):
        return review("This says something that may turn a direction round; a person will read it.",
                      tuple(reading.wrong + reading.denied))
    if reading.wrong:
        return deny("This turns a direction round, or says both ways.", tuple(reading.wrong))
    if reading.denied:
        return deny("This denies an effect that the run shows.", tuple(reading.denied))
    if gains and costs and (not reading.joined or len(reading.named - {"speed"}) > 4):
        return review("This lists quantities rather than relate them; a person will read it.", tuple(gains + costs))
    if gains and costs and reading.factors:
        return review("Its factors do not go together; a person will read it.", tuple(reading.factors))
    if gains and costs and (reading.lever or trend.switch) and reading.strong and not (reading.unsure and len(reading.strong) < 2):
        return award("", tuple(gains + costs))
    if reading.hedged:
        return review("This leaves the direction open; a person will read it.", tuple(reading.hedged))
    if few and not (reading.right or reading.unsure or reading.unplaced or reading.named or reading.mentioned or reading.hedged):
        return deny("This names nothing that is gained or paid, and no way in which anything goes.")
    if not set(trend.signs()) & set(lex.GOOD):
        return review("Part of what is asked could not be read here; a person will read it.", tuple(gains + costs))
    missing = "what is gained" if not gains else "what is paid" if not costs else "what is changed"
    return review(f"It could not be read here {missing}, and which way; a person will read it.", tuple(gains + costs))


def selftest(rubric: Rubric, facts: object = None) -> list[str]:
    """Run the rubric's own examples; one line for each that comes out otherwise, [] when all do."""
    known = facts_of(facts if facts is not None else rubric.example_facts)
    out = []
    for want, examples in (("award", rubric.must_award), ("deny", rubric.must_deny)):
        for name, answers in examples.items():
            for text in answers:
                got = grade_slot(text, rubric.slots[name], rubric, known)
                if got.verdict != want:
                    out.append(f"{name}: {text!r} gives {got.verdict}, not {want}: {got.reason} {list(got.evidence)}")
    return out
