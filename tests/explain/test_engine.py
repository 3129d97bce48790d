"""The engine's parts: who does what, which way, which numbers, and the gates; a rubric's own mistakes are named."""

import pytest
from rubrics import DENOISE, DENOISE_FACTS

from inferlab.lab.explain import Amounts, Rubric, Slot, Trend, gates, grade, grade_slot, parse, terms
from inferlab.lab.explain.claims import actors_of
from inferlab.lab.explain.clauses import relations
from inferlab.lab.explain.directions import effects
from inferlab.lab.explain.gates import both_ways
from inferlab.lab.explain.vocabulary import vocabulary
from inferlab.lab.explain.words import clean, sentences


def said(text: str) -> set[tuple[str, str, str, bool]]:
    slot, words = DENOISE.slots["state"], vocabulary(DENOISE)
    out = set()
    for s in (words.mend(s) for s in sentences(clean(text))):
        for r in relations(s, words.mentions(s), actors_of([*slot.award, *slot.deny], DENOISE.terms)):
            out |= {(a, r.verb, o, r.negated or r.framed) for a in r.agents or {""} for o in r.objects or {""}}
    return out


@pytest.mark.parametrize(("text", "relation"), [
    ("The scheduler updates the latents.", ("scheduler", "updates", "latents", False)),
    ("The latents are updated by the scheduler.", ("scheduler", "updated", "latents", False)),
    ("The scheduler takes the noise and updates the latents.", ("scheduler", "updates", "latents", False)),
    ("The UNet predicts the noise, which the scheduler uses to update the latents.", ("scheduler", "update", "latents", False)),
    ("It is the scheduler that updates the latents, not the UNet.", ("scheduler", "updates", "latents", False)),
    ("The latents are what the scheduler updates.", ("scheduler", "updates", "latents", False)),
    ("The scheduler does not update the latents.", ("scheduler", "update", "latents", True)),
    ("It is not true that the scheduler updates the latents.", ("scheduler", "updates", "latents", True)),
    ("The UNet predicts noise and the scheduler updates the latents.", ("unet", "predicts", "noise", False)),
    ("The output of the UNet is an image.", ("unet", "output", "image", False)),
    ("unet -> noise", ("unet", "\u2192", "noise", False)),
])
def test_who_does_what(text, relation):
    assert relation in said(text)


def test_roles_are_not_mixed_up():
    assert not any(a == "unet" and o == "latents" for a, _, o, _ in said("The UNet predicts noise and the scheduler updates the latents."))


@pytest.mark.parametrize(("text", "wanted"), [
    ("latency rises and quality drops", {("time", 1, False), ("quality", -1, False)}),
    ("it reduces memory at the price of latency", {("memory", -1, False), ("time", 1, False)}),
    ("it does not make it faster", {("time", -1, True)}),
    ("latency does not go down", {("time", -1, True)}),
    ("nothing is computed again", {("compute", -1, False)}),
    ("the latency falls but so does the quality", {("time", -1, False), ("quality", -1, False)}),
    ("you pay time for quality", {("time", 1, False)}),
    ("fewer UNet calls", {("compute", -1, False)}),
])
def test_which_way(text, wanted):
    found = {(e.quantity, e.sign, e.negated) for s in sentences(clean(text)) for e in effects(s)}
    assert wanted <= found


@pytest.mark.parametrize(("slot", "text", "verdict"), [
    ("trade-off", "More steps are slower but better; fewer steps are faster but worse.", "award"),
    ("trade-off", "Going from 20 to 40 steps doubles the latency and improves the image.", "award"),
    ("trade-off", "More steps are slower but better, and more steps are faster.", "deny"),
    ("trade-off", "The picture gets better up to a point with more steps, then it stops improving, and latency keeps growing.", "award"),
    ("trade-off", "More steps are slower.", "review"),
    ("axis", "The UNet gets (2, 4, 16, 16) at each of the 20 steps.", "award"),
    ("axis", "The UNet gets (2, 4, 16, 16) and ran for 3.7 seconds with a peak of 900 MB.", "award"),
    ("axis", "The UNet gets (2, 4, 32, 32).", "deny"),
    ("axis", "The latents would be (1, 4, 64, 64) in a larger model, but here they are (1, 4, 16, 16).", "award"),
    ("axis", "The shape is what matters.", "deny"),
    ("state", "The scheduler updates the latents. None of this is true.", "deny"),
    ("state", "", "deny"),
])
def test_slots(slot, text, verdict):
    got = grade(parse(f"{slot}: {text}\n", "x"), DENOISE, DENOISE_FACTS)[slot]
    assert got.verdict == verdict, got


@pytest.mark.parametrize("wrapped", [
    "{}, or so they say.", "{}, which is false.", "{}? No.", "{}. Not!", "{}. Just kidding.", "Only a fool would say that {}.", "Suppose for a moment that {}.",
    "In an ideal world, {}.", "{}, or the other way round.", "Is it true that {}?", "My neighbour claims: {}.", "According to a wrong blog post, {}.", "{}. Scratch that.",
    "It isn't so that {}.", "{}, said nobody ever.", "I was told that {}, but this is not what happens.", "The claim that {} is wrong.", "You cannot say that {}.",
    "False: {}.", "There is no way that {}.", "It is not true that people think that {}.",
])
def test_a_right_sentence_that_is_not_asserted_earns_nothing(wrapped):
    for slot, text in (("state", "the scheduler updates the latents from the predicted noise"), ("axis", "the UNet gets (2, 4, 16, 16) at each of the 20 steps"),
                       ("trade-off", "more steps improve the quality but take more time")):
        assert grade_slot(text.capitalize() + ".", DENOISE.slots[slot], DENOISE, DENOISE_FACTS).verdict == "award"
        got = grade_slot(wrapped.format(text), DENOISE.slots[slot], DENOISE, DENOISE_FACTS)
        assert got.verdict != "award", (wrapped, slot, got)


def test_every_outcome_has_a_reason_that_does_not_show_the_rubric():
    for text in ("The UNet updates the latents.", "The latents change somehow in the loop.", "the the the of of"):
        got = grade_slot(text, DENOISE.slots["state"], DENOISE, DENOISE_FACTS)
        assert got.reason and "scheduler changes/makes" not in got.reason


LOOSE = Rubric(
    terms={**terms("latents", "scheduler", "unet", "vae", "image"), "noise": "noise*"},
    slots={
        "state": Slot(award=["scheduler changes latents + vae makes image or vae decodes *"], loose=True, deny={
            "unet changes latents": "The UNet predicts.", "scheduler predicts noise": "The UNet does.", "says: paints pixels .. step": "There are no pixels in a step."}),
        "axis": Slot(amounts=Amounts(shapes=[(2, 4, 16, 16)], counts={"latents": [1, 2], "unet": [1, 2]}, key=["unet"], moves=[((1, 4, 16, 16), (2, 4, 16, 16))],
                                     at={"unet": {"unet": 2}}), loose=True),
        "trade-off": Slot(trend=Trend("unet", gain={"quality": "up"}, cost={"compute": "up"}, switch=True, asked="down",
                                      says={"quality up": "follow*/obey* .. prompt", "compute up": "two/double rows, second pass"})),
    },
)


@pytest.mark.parametrize(("slot", "text", "verdict"), [
    ("state", "The latents get cleaner: the scheduler does the arithmetic, and in the end the VAE paints the picture.", "award"),
    ("state", "The latents are reworked by the UNet and the scheduler; the VAE decodes them.", "award"),
    ("state", "The latents are reworked by the UNet; the VAE decodes them.", "deny"),
    ("state", "The scheduler works on the latents and paints pixels at each step; the VAE decodes them.", "deny"),
    ("state", "The latents or the pixels are changed by the scheduler or the VAE, hard to tell.", "review"),
    ("axis", "The UNet gets (2, 4, 16, 16), made of (1, 4, 16, 16).", "award"),
    ("axis", "In the UNet (2, 4, 16, 16) becomes (1, 4, 16, 16).", "deny"),
    ("trade-off", "Without the UNet the picture does not obey my prompt, but it is cheaper.", "award"),
    ("trade-off", "With the UNet the picture does not obey my prompt, and that takes a second pass.", "deny"),
    ("trade-off", "With the UNet the picture follows my prompt, and that takes a second pass.", "award"),
])
def test_what_a_rubric_can_say_beyond_claims(slot, text, verdict):
    got = grade_slot(text, LOOSE.slots[slot], LOOSE, {"x": (2, 4, 16, 16), "y": (1, 4, 16, 16)})
    assert got.verdict == verdict, got


def test_ready_word_lists_are_extended_and_never_clash():
    chosen = terms("cache", "keys", "sequence", keys="+pairs", own="thing*")
    assert chosen["keys"].endswith("pairs") and chosen["own"] == "thing*"
    Rubric(terms=chosen, slots={"s": Slot(award=["cache keeps keys"])})
    with pytest.raises(ValueError, match="no ready list"):
        terms("cahce")


@pytest.mark.parametrize(("make", "message"), [
    (lambda: Slot(), "needs at least one"),
    (lambda: Rubric(terms={"a": "x"}, slots={"s": Slot(award=["a changes b"])}), "not among the terms"),
    (lambda: Rubric(terms={"a": "x"}, slots={"s": Slot(award=["a frobnicates a"])}), "neither a verb class"),
    (lambda: Rubric(terms={"a": "x"}, slots={"s": Slot(award=["a changes the big b"])}), "write `subject verb"),
    (lambda: Rubric(terms={"a": "x", "b": "y, x"}, slots={"s": Slot(award=["a changes b"])}), "under the terms"),
    (lambda: Rubric(terms={"a": "x"}, slots={"s": Slot(trend=Trend("z", {"time": "up"}, {"memory": "up"}))}), "the lever"),
    (lambda: Rubric(terms={"a": "x"}, slots={"s": Slot(amounts=Amounts(shapes=[(1, 2)]), topic=["q"])}), "topic"),
])
def test_a_rubrics_mistake_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("added", [
    " And yet it does not.", ", and at the same time it does not.", ", but also the opposite of it.", ", although none of them does.", ", yet nothing changes.", " and never does.",
    ", yes and no.", ". On the other hand this never happens.", " In reality none of it is.", ", but in fact it does not update them.",
])
def test_a_bare_denial_behind_a_right_answer_is_a_contradiction(added):
    right = "The scheduler updates the latents"
    assert grade_slot(right + ".", DENOISE.slots["state"], DENOISE, DENOISE_FACTS).verdict == "award"
    assert grade_slot(right + added, DENOISE.slots["state"], DENOISE, DENOISE_FACTS).verdict != "award"


@pytest.mark.parametrize("text", ["Height and width are cut; axis 0, the batch of 2, is not.", "The token axis grows and the others do not.", "The UNet predicts noise, the scheduler does not.",
                                  "q_proj is halved; the hidden state is not halved.", "128 of 256, this is halved. 256 in both, this is not halved."])
def test_what_is_denied_of_something_else_is_no_contradiction(text):
    assert both_ways(text) == ""


@pytest.mark.parametrize("text", ["The batch axis grows from 1 to 4 and it stays at 1.", "Keys are kept for later, though keys are not kept.", "Each stays as it is, but it grows.",
                                  "The axis is longer, 5 instead of 1. The axis is not longer, it is 1 in both."])
def test_both_ways_in_one_sentence(text):
    assert both_ways(text)


def test_bare_words_behind_a_direction_make_a_list():
    assert gates.listing(sentences("throughput up, memory up, weights read once, batch, sequences, bandwidth, roofline"))
    assert not gates.listing(sentences("The token axis grows to 151; batch, heads and head_dim stay."))


@pytest.mark.parametrize("wrapped", [
    "~~{}.~~", "<del>{}.</del>", "{}. lol no", "{}. \u041d\u0435\u0442.", "{} \u274c", "{} \U0001f44e", "{} \u2260 true", "\u00ac({})", "{} == False", "{} /s", "In my dream: {}.",
    "{} in a parallel universe.", "Opposite day: {}.", "Find the error: {}.", "{}, April fools.", "{} (my roommate believes).", "{}, said the wrong textbook.",
    "{} (crossed out by me).", "{}, or so a fool would put it.",
])
@pytest.mark.parametrize("text", ["The scheduler updates the latents", "More steps give a better image but take longer"])
def test_what_a_sign_or_a_wrap_takes_back_earns_nothing(wrapped, text):
    slot = "state" if "scheduler" in text else "trade-off"
    assert grade_slot(text + ".", DENOISE.slots[slot], DENOISE, DENOISE_FACTS).verdict == "award"
    assert grade_slot(wrapped.format(text), DENOISE.slots[slot], DENOISE, DENOISE_FACTS).verdict != "award"


@pytest.mark.parametrize("verb", ["refrains from updating", "forgets to update", "stops updating"])
def test_what_is_not_done_earns_nothing(verb):
    assert grade_slot(f"The scheduler {verb} the latents.", DENOISE.slots["state"], DENOISE, DENOISE_FACTS).verdict != "award"
