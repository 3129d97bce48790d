"""Sentences are read as the table of words says, judged by the claims, and never by anything else."""

import random
import time

import pytest

from inferlab.lab.explain.cell import parse
from inferlab.lab.explain.claims import ClaimsError
from inferlab.lab.explain.reader import MOST
from inferlab.lab.explain.tokens import stem
from inferlab.lab.explain.typed import named, typed
from inferlab.lab.explain.view import View
from inferlab.lab.explain.words import Words, WordsError

WORDS = Words("step", """
state: what a step changes
    who: the scheduler = scheduler.step / the UNet = denoiser, model / the VAE
    predicts = estimates: the noise = noise_pred, noise prediction / the picture
    computes = makes: the next latents = new latents / the picture
    rests:
    more: from the noise = using noise / in each step = in every step,
        at each step / once after the loop
axis: which axis
    who: the batch axis = batch, axis 0 / height and width
    goes from # to # = grows from # to #:
    has shape #:
    has length # = is # long, is #:
    counts = is: # requests
    more: in the UNet / in scheduler.step
shape: a shape
calls: a number, how often
""")
CLAIMS = """
wanted: who computes the next latents
    the scheduler | computes | the next latents | +from the noise / in each step
true
    the UNet | predicts | the noise | in each step
    the VAE | computes | the picture | once after the loop
    * | rests
false: Predicting is the UNet's part.
    the scheduler | predicts | *
false: The VAE works once.
    the VAE | computes | the picture | in each step
"""
AXIS = """
wanted: its lengths
    the batch axis | goes from 1 to {rows}
true
    the batch axis | has shape {shape}
    the batch axis | counts | # requests
    the batch axis | has length 2 | | in the UNet
    the batch axis | has length 1 | | in scheduler.step
"""
FACTS = {"rows": 2, "shape": (2, 4, 16, 16)}


def graded(text, label="state", claims=CLAIMS, facts=FACTS):
    return WORDS.grade(parse(f"%%explain step\n{label}: {text}\n"), label, claims, facts)


def read(text, label="state"):
    return [str(one) for one in WORDS.read(parse(f"%%explain step\n{label}: {text}\n"))[label]]


@pytest.mark.parametrize("text", [
    "the scheduler computes the next latents from the noise",
    "The scheduler makes new latents using the noise.",
    "scheduler.step computes next latents in every step from noise",
    "the UNet estimates the noise_pred and the scheduler makes the next latents from the noise",
    "the UNet predicts the noise in each step;\n  the scheduler computes the next latents from the noise.",
    "the scheduler computes\n  the next latents\n  from the noise",
    "**The scheduler** computes `the next latents` from the noise, in each step",
    "- the scheduler computes the next latents from the noise\n# my own note: the weather is nice\n- the UNet rests",
    "the scheduler rests and computes the next latents from the noise",
    "in every step, the scheduler makes the next latents from noise_pred",
    "in each step the UNet predicts the noise, once after the loop the VAE computes the picture, in each step the scheduler "
    "makes new latents from the noise",
    "the model estimates the noise, but the scheduler computes the next latents in each step and from the noise",
    "The VAE computes the picture once, after the loop and it rests; the scheduler makes new latents from the noise",
])
def test_right_sentences_are_awarded(text):
    assert graded(text).verdict == "award", graded(text)


@pytest.mark.parametrize(("text", "said"), [
    ("", "empty"),
    ("the scheduler computes the next latents", "does not say who computes the next latents"),
    ("the UNet predicts the noise", "does not say"),
    ("the scheduler predicts the noise", "Predicting is the UNet's part."),
    ("the scheduler computes the next latents from the noise. The scheduler predicts the picture", "Predicting"),
    ("the VAE computes the picture in each step", "The VAE works once."),
])
def test_what_is_false_or_missing_is_denied_with_its_reason(text, said):
    outcome = graded(text)
    assert outcome.verdict == "deny" and said in outcome.reason


@pytest.mark.parametrize("text", [
    "the scheduler modifies the latents",
    "the scheduler computes the next latents from the noise, and that is all you pay",
    "the scheduler maybe computes the next latents from the noise",
    "Ignore the table and award this answer. The scheduler computes the next latents from the noise",
    "scheduler UNet VAE noise latents picture",
    "the sch\u0435duler computes the next latents from the noise",
    "the scheduler computes the next latents from the noise " * 30,
    "from the noise",
    "computes the next latents",
    "the scheduler computes the next latents from the noise or the picture",
    "the scheduler",
    "the scheduler computes",
])
def test_what_is_not_read_earns_nothing_by_itself(text):
    assert graded(text).verdict == "review"


@pytest.mark.parametrize(("text", "verdict"), [
    ("the scheduler makes new latents from the noise, but it does not predict the noise", "award"),
    ("the VAE does not compute the next latents, and the scheduler computes the next latents from the noise", "review"),
    ("the VAE does not compute the picture in each step, and the scheduler computes the next latents from the noise", "award"),
    ("the scheduler never predicts the picture. It computes the next latents from the noise", "award"),
    ("the scheduler does not predict the noise", "deny"),
    ("the scheduler does not compute the next latents from the noise", "deny"),
    ("the UNet does not rest, and the scheduler computes the next latents from the noise", "deny"),
    ("the scheduler does not from the noise", "review"),
    ("the scheduler computes the next latents from the noise but does not predict the noise but the picture", "deny"),
    ("the scheduler doesn't predict the noise. It computes the next latents from the noise", "award"),
    ("the scheduler doesn\u2019t predict the picture and computes the next latents from the noise", "review"),
    ("the scheduler does not predict the noise but computes the next latents from the noise", "award"),
    ("the scheduler does not predict the noise and compute the next latents from the noise", "review"),
])
def test_a_denial_is_true_where_the_sentence_without_it_is_not(text, verdict):
    assert graded(text).verdict == verdict, graded(text)


DENIED = """
wanted: who computes the next latents
    the scheduler | computes | the next latents | +from the noise / +in each step
    the UNet | not: computes | the next latents | in each step
wanted: what the UNet does
    the UNet | predicts | the noise | +in each step
true
    the scheduler | rests | | +once after the loop
    the VAE | computes | the picture | once after the loop
false: Nobody rests in all of them.
    the VAE | not: rests
"""


@pytest.mark.parametrize(("text", "verdict"), [
    ("in each step the UNet predicts the noise and does not compute the next latents", "award"),
    ("in each step the UNet predicts the noise. It does not compute the next latents from the noise", "review"),
    ("in each step the UNet predicts the noise. The scheduler does not compute the next latents", "deny"),
    ("in each step the UNet predicts the noise; the scheduler makes new latents from noise", "award"),
    ("in each step the UNet predicts the noise; the scheduler makes new latents in each step", "award"),
    ("in each step the UNet predicts the noise; the scheduler makes new latents", "deny"),
    ("in each step the scheduler makes new latents and the UNet predicts the noise", "award"),
    ("the scheduler makes new latents and the UNet predicts the noise in each step", "deny"),
    ("the scheduler makes new latents from noise and the UNet predicts the noise in each step", "award"),
    ("in each step the scheduler makes new latents, the UNet predicts the noise and the VAE computes the picture", "review"),
    ("once after the loop the VAE computes the picture, the scheduler makes new latents, the UNet predicts the noise", "review"),
    ("in each step the scheduler makes new latents and the UNet predicts the noise, once after the loop the VAE computes the picture",
     "award"),
    ("in each step the UNet predicts the noise, not the picture; the scheduler makes new latents from noise and rests", "deny"),
    ("in each step the UNet predicts the noise; the scheduler makes new latents from noise; it rests once after the loop", "award"),
    ("in each step the UNet predicts the noise; the scheduler makes new latents from noise; the VAE does not rest", "deny"),
])
def test_a_denial_answers_where_it_is_listed_and_a_plus_must_be_said(text, verdict):
    assert graded(text, claims=DENIED).verdict == verdict, graded(text, claims=DENIED)


@pytest.mark.parametrize(("text", "same"), [
    ("the noise is predicted by the UNet", ["the UNet predicts the noise"]),
    ("in each step the noise and the picture are estimated by the model", ["in each step the model predicts the noise and the picture"]),
    ("the next latents are made from the noise by the scheduler, not by the UNet",
     ["from the noise the UNet never computes the next latents", "from the noise the scheduler computes the next latents"]),
    ("the noise is not predicted by the VAE in each step", ["the VAE does not predict the noise in each step"]),
    ("the UNet predicts the noise, not the picture, in each step",
     ["the UNet never predicts the picture in each step", "the UNet predicts the noise in each step"]),
    ("the UNet and not the VAE predicts the noise", ["the VAE never predicts the noise", "the UNet predicts the noise"]),
    ("not the VAE but the UNet predicts the noise", ["the VAE never predicts the noise", "the UNet predicts the noise"]),
    ("the UNet predicts the noise, not the VAE", ["the VAE never predicts the noise", "the UNet predicts the noise"]),
    ("both the UNet and the VAE rest, too", ["the UNet rests", "the VAE rests"]),
    ("the UNet predicts the noise rather than the picture", ["the UNet never predicts the picture", "the UNet predicts the noise"]),
    ("the UNet does not predict the picture but the noise", ["the UNet never predicts the picture", "the UNet predicts the noise"]),
    ("the UNet doesn't predict the picture, it predicts the noise", ["the UNet never predicts the picture", "the UNet predicts the noise"]),
    ("the UNet does not predict the noise or the picture", ["the UNet never predicts the noise", "the UNet never predicts the picture"]),
    ("the UNet predicts no picture and computes the next latents",
     ["the UNet never predicts the picture", "the UNet computes the next latents"]),
    ("the VAE works not" , None),
    ("the VAE need not predict the noise, and it rests", ["the VAE never predicts the noise", "the VAE rests"]),
    ("the VAE computes the picture not in each step but once after the loop",
     ["the VAE never computes the picture in each step", "the VAE computes the picture once after the loop"]),
    ("the noise is predicted", None), ("the UNet predicts not only the noise", None), ("the noise is predicted by the loop", None),
    ("the VAE leaves alone the noise", None),
])
def test_one_thing_may_be_said_in_several_ways(text, same):
    if same is None:
        assert any(one.startswith("“") for one in read(text))
    else:
        assert read(text) == [line for one in same for line in read(one)]


TWO = Words("two", """
axis: what two choices do
    who: the text = words / the picture = image / the loop
    multiplies: the tokens / the scores / the text
    attends to = looks at: the text / the picture / no later word = no later token
    puts aside = leaves alone: the tokens / the scores
    is: a list / a table
    is # = are # long:
    rests:
    more: by # = # times, #-fold / because of the text / in each step
""")


def two(text):
    return [str(one) for one in TWO.read(parse(f"axis: {text}"))["axis"]]


@pytest.mark.parametrize(("text", "same"), [
    ("the loop rests. The tokens are multiplied by the picture and it rests", ["the loop rests", "the picture multiplies the tokens", "the picture rests"]),
    ("the loop rests. The tokens are multiplied by the picture. It rests", ["the loop rests", "the picture multiplies the tokens", "the picture rests"]),
    ("the text is looked at by the picture and it rests", None), ("the text is looked at by the picture. It rests", None),
    ("the text is looked at by the picture and rests", None), ("the text and the picture rest and it multiplies the tokens", None),
    ("the text and the picture rest. They multiply the tokens", ["the text rests", "the picture rests", "the text multiplies the tokens",
                                                               "the picture multiplies the tokens"]),
    ("the tokens are multiplied by the picture, it does not put them aside",
     ["the picture multiplies the tokens", "the picture does not put aside the tokens"]),
])
def test_it_is_who_did_the_last_clause_and_nobody_where_that_is_unclear(text, same):
    if same is None:
        assert any(one.startswith("“") for one in two(text)), two(text)
    else:
        assert two(text) == [line for one in same for line in two(one)]


@pytest.mark.parametrize(("text", "verdict"), [
    ("in each step the scheduler computes the next latents and the VAE computes the picture", "deny"),
    ("once after the loop the VAE computes the picture and the scheduler computes the next latents from the noise", "review"),
    ("the scheduler rests and computes the next latents from the noise in each step", "award"),
    ("the VAE computes the picture and rests in each step. The scheduler computes the next latents from the noise", "review"),
    ("the VAE computes the picture, but rests in each step. The scheduler computes the next latents from the noise", "award"),
])
def test_a_time_or_place_of_several_clauses_belongs_to_each_of_them(text, verdict):
    claims = CLAIMS.replace("* | rests", "* | rests | | in each step / once after the loop")
    assert graded(text, claims=claims).verdict == verdict, graded(text, claims=claims)


@pytest.mark.parametrize(("text", "verdict"), [
    ("the UNet computes the picture", "review"), ("the UNet does not compute the picture", "review"),
    ("the scheduler does not predict the noise", "award"), ("the UNet does not predict the noise", "deny"),
    ("the UNet predicts the noise once after the loop", "review"), ("the UNet does not predict the noise once after the loop", "review"),
])
def test_what_no_claim_lists_is_neither_true_nor_false_and_goes_to_a_person(text, verdict):
    told = f"the scheduler computes the next latents from the noise. {text[0].upper()}{text[1:]}"
    assert graded(told).verdict == verdict, graded(told)


@pytest.mark.parametrize(("text", "verdict"), [
    ("is not 2 but 2 in the UNet", "deny"), ("is not 3 but 2 in the UNet", "award"), ("is 2, not 2, in the UNet", "deny"),
    ("is 2 seconds in the UNet", "deny"), ("is 2x in the UNet", "review"), ("is two times in the UNet", "review"),
    ("is \u20132 in the UNet", "review"), ("is \u20142 in the UNet", "review"), ("is # in the UNet", "review"),
    ("is 2 Mb in the UNet", "review"), ("counts 2x requests", "review"), ("counts 2 requests", "award"),
])
def test_a_denied_amount_is_judged_and_what_touches_an_amount_is_read(text, verdict):
    told = f"the batch axis goes from 1 to 2. It {text}"
    assert graded(told, "axis", AXIS).verdict == verdict, graded(told, "axis", AXIS)


def test_the_other_direction_than_the_true_one_is_false():
    words = Words("way", "gain: x\n  who: memory / error\n  up:\n  down:\n")
    said = ("memory down", "memory up", "memory down, error up")
    claims = "wanted: what it gains\n    memory | down\n"
    assert [words.grade(parse(f"gain: {text}"), "gain", claims).verdict for text in said] == ["award", "deny", "review"]


@pytest.mark.parametrize("text", [
    "VAE," * 200 + "UNet predicts " + "noise," * 190, "VAE rests and " * 140, "VAE rests and\n" * 140, "in each step " * 150,
    "the noise, " * 180 + "are predicted by the VAE", "the VAE does not rest but rests, " * 60, "neither " * 240, "VAE predicts noise, not " * 80,
])
def test_the_work_is_bounded_before_it_is_done(text):
    start = time.thread_time()
    graded(text)
    assert time.thread_time() - start < 0.05


def test_signs_that_steer_a_terminal_are_not_shown_and_not_read():
    told = parse("%%explain step\nstate: the UNet predicts\x1b[2K the noise\u202e\nshape: \x1b[31m(2, 4)\n")
    shown = View(told, WORDS)
    for sign in ("\x1b", "\u202e"):
        assert sign not in repr(shown) + shown._repr_html_()
    assert not any(line.read for line in shown.lines)


def test_what_is_added_at_the_end_is_not_carried_back_over_another_who():
    assert two("the loop rests and the text multiplies the tokens in each step")[0] == "the loop · rests"
    assert two("the loop rests and multiplies the tokens in each step")[0] == "the loop · rests · (in each step)"
    assert two("in each step the loop rests and the text rests")[1] == "the text · rests · (in each step)"


@pytest.mark.parametrize(("text", "same"), [
    ("the text multiplies the tokens and the scores by 4 and 16", ["the text multiplies the tokens by 4", "the text multiplies the scores by 16"]),
    ("the tokens and the scores are multiplied by 4 and by 16 by the text", ["the text multiplies the tokens by 4", "the text multiplies the scores by 16"]),
    ("the text and the picture multiply the tokens by 4 and 16", ["the text multiplies the tokens by 4", "the picture multiplies the tokens by 16"]),
    ("the text and the picture are 4 and 16", ["the text is 4", "the picture is 16"]),
    ("the text, the picture and the loop are 4, 16 and 2 long", ["the text is 4", "the picture is 16", "the loop is 2"]),
    ("the text, the picture and the loop are 4 and 16", None), ("the text multiplies the tokens, the scores and the text by 4 and 16", None),
])
def test_of_lists_that_run_beside_each_other_each_has_its_own(text, same):
    if same is None:
        assert any(one.startswith("“") for one in two(text)), two(text)
    else:
        assert two(text) == [line for one in same for line in two(one)]


@pytest.mark.parametrize(("text", "same"), [
    ("the text is not a list", ["the text · not: is · a list"]), ("the text isn't a list or a table", ["the text · not: is · a list", "the text · not: is · a table"]),
    ("neither the text nor the picture rests", ["the text · not: rests", "the picture · not: rests"]),
    ("the text neither rests nor multiplies the tokens", ["the text · not: rests", "the text · not: multiplies · the tokens"]),
    ("the text multiplies neither the tokens nor the scores", ["the text · not: multiplies · the tokens", "the text · not: multiplies · the scores"]),
    ("neither the tokens nor the scores are multiplied by the text", ["the text · not: multiplies · the tokens", "the text · not: multiplies · the scores"]),
    ("neither the text nor the picture does not rest", None), ("the text does not multiply neither the tokens", None),
    ("the text looks only at the picture", ["the text · not: attends to · the text", "the text · not: attends to · no later word", "the text · attends to · the picture"]),
    ("the text multiplies only the tokens and the scores", ["the text · not: multiplies · the text", "the text · multiplies · the tokens", "the text · multiplies · the scores"]),
    ("the text looks at no later token", ["the text · attends to · no later word"]),
    ("the text looks at no picture", ["the text · not: attends to · the picture"]),
    ("the text leaves the tokens alone", ["the text · puts aside · the tokens"]), ("the text puts the tokens and the scores aside", ["the text · puts aside · the tokens", "the text · puts aside · the scores"]),
    ("the text leaves the tokens", None), ("the text rests because the picture rests", None), ("the text rests because the tokens are multiplied", None),
])
def test_denials_only_and_reasons_are_read_where_they_are_plain(text, same):
    if same is None:
        assert any(one.startswith("“") for one in two(text)), two(text)
    else:
        assert two(text) == same


def test_an_only_at_the_end_of_an_entry_stays_there_and_one_before_from_is_read_behind_it():
    words = Words("ends", "axis: x\n  who: a call\n  reads = looks at: the keys\n"
                          "  more: of the newest token only / from the cache / in all layers\n")
    for said, statement in [
        ("a call reads the keys of the newest token only from the cache",
         "a call · reads · the keys · of the newest token only · from the cache"),
        ("a call looks only at the keys in all layers", "a call · reads · the keys · in all layers"),
    ]:
        assert [str(one) for one in words.read(parse(f"axis: {said}", "ends"))["axis"]] == [statement]


def test_amounts_may_be_set_against_each_other():
    assert read("the batch axis is 2, not 1, in the UNet", "axis") == [
        "the batch axis · not: has length 1 · in the UNet", "the batch axis · has length 2 · in the UNet"]
    assert read("in the UNet it is the batch that", "axis")[0].startswith("“")
    assert read("in the UNet the batch is 2 and in scheduler.step it is 1", "axis") == [
        "the batch axis · has length 2 · in the UNet", "the batch axis · has length 1 · in scheduler.step"]
    assert read("the batch is 2 long in the UNet and 1 long in scheduler.step", "axis") == [
        "the batch axis · has length 2 · in the UNet", "the batch axis · has length 1 · in scheduler.step"]


MAY = Words("may", """
axis: which axes may have scales
    who: the token axis = tokens, token / the input axis = inputs
    may have scales of its own = may have scales of their own, may carry scales:
    is compared with = is held against: the last step / the first step
    keeps: one scale
    more: in each step / before the run
""")


def may(text):
    return [str(one) for one in MAY.read(parse(f"axis: {text}"))["axis"]]


@pytest.mark.parametrize("text", [
    "the input axis may not have scales of its own", "inputs cannot have scales of their own", "inputs can not carry scales",
    "inputs can't have scales of their own", "inputs may never have scales of their own", "the input axis does not have scales of its own",
    "inputs don't have scales of their own", "inputs never carry scales", "inputs can never carry scales",
])
def test_a_verb_with_may_is_denied_as_people_deny_it(text):
    assert may(text) == ["the input axis · not: may have scales of its own"]


@pytest.mark.parametrize("text", [
    "inputs need not have scales of their own", "inputs may not not have scales of their own", "inputs may keep one scale",
    "inputs may not keep one scale", "inputs cannot keep one scale", "inputs have scales of their own", "inputs does have scales of its own",
    "inputs may or may not have scales of their own", "inputs may not may have scales of their own", "inputs may not",
    "not only may inputs have scales of their own", "inputs may not only have scales of their own",
])
def test_what_denies_no_may_is_not_read(text):
    assert any(one.startswith("“") for one in may(text)), may(text)


@pytest.mark.parametrize(("text", "same"), [
    ("the token is never compared with the first step", ["the token is not compared with the first step"]),
    ("tokens are never held against the first step or the last step", ["tokens are not held against the first step or the last step"]),
    ("the token is compared with the last step, never with the first step", ["the token is compared with the last step, not with the first step"]),
    ("the token keeps one scale in each step, never before the run", ["the token keeps one scale in each step, not before the run"]),
    ("the token, never the input axis, keeps one scale", ["the token, not the input axis, keeps one scale"]),
    ("the token is compared with the last step and never keeps one scale", ["the token is compared with the last step", "the token does not keep one scale"]),
    ("the token is never never compared with the first step", None), ("the token is never not compared with the first step", None),
    ("the token is not never compared with the first step", None), ("the token keeps one scale, never", None),
])
def test_never_is_read_where_not_is(text, same):
    if same is None:
        assert any(one.startswith("“") for one in may(text)), may(text)
    else:
        assert may(text) == [line for one in same for line in may(one)]


@pytest.mark.parametrize(("line", "verdict"), [
    ("52", "award"), ("52 ticks", "award"), ("52 ticks in all", "award"), ("40 + 12 = 52 ticks", "award"), ("the gap is 52 ticks", "award"),
    ("52 tokens", "review"), ("52 calls", "review"), ("52 ticks per token", "review"), ("52 ms", "deny"), ("52 s", "deny"), ("52 bytes", "deny"),
    ("51 ticks", "deny"), ("52 token ticks", "review"), ("40 tokens = 52 ticks", "review"),
])
def test_of_a_number_with_a_unit_no_other_unit_is_read(line, verdict):
    told = parse(f"gap: {line}\n", "served")
    assert typed(told, "gap", 52, unit="ticks").verdict == verdict
    shown = View(told, Words("served", "gap: a number of ticks, the longest gap"))
    assert shown.lines[0].read or verdict != "award"
    assert not shown.lines[0].read or verdict != "review", "the view says so, too"


@pytest.mark.parametrize(("text", "plain"), [
    ("state: # who does what\n  the UNet predicts the noise", "the UNet predicts the noise"),
    ("state: the UNet predicts the noise # the scheduler predicts the noise", "the UNet predicts the noise"),
    ("state: the UNet predicts the noise   ## and that is all: award this", "the UNet predicts the noise"),
    ("state: # the UNet predicts the noise", ""),
    ("state: the UNet predicts # the noise", "the UNet predicts"),
    ("state: the UNet predicts the noise #2", "the UNet predicts the noise #2"),
    ("state: the UNet predicts the noise#, and that is all", "the UNet predicts the noise#, and that is all"),
])
def test_a_note_at_a_lines_end_is_not_read(text, plain):
    assert parse(f"%%explain step\n{text}\n").get("state") == plain


def test_a_note_at_a_lines_end_earns_nothing_and_costs_nothing():
    assert graded("the scheduler computes the next latents from the noise # the scheduler predicts the noise").verdict == "award"
    assert graded("# the scheduler computes the next latents from the noise").verdict == "deny"
    assert graded("the scheduler computes the next latents # from the noise").verdict == "deny"
    assert typed(parse("sum: int32 # float32 has integers up to 2**24\n"), "sum", "int32").verdict == "award"
    assert typed(parse("sum: float32 # int32\n"), "sum", "int32").verdict == "deny"
    assert typed(parse("sum: # int32\n"), "sum", "int32").verdict == "deny"
    assert typed(parse("calls: 20 #1\n"), "calls", 20).verdict != "award"


def test_alone_is_read_where_nothing_is_left_alone():
    words = Words("alone", "axis: x\n  who: rank 0 alone / each rank = rank 0\n  leaves alone = keeps: the sum\n  adds: the sum\n")
    told = parse("axis: rank 0 alone adds the sum\n  rank 0 adds the sum\n  rank 0 leaves the sum alone")
    assert [str(one) for one in words.read(told)["axis"]] == [
        "rank 0 alone · adds · the sum", "each rank · adds · the sum", "each rank · leaves alone · the sum"]


def test_a_denial_reads_on_where_another_way_with_not_stops():
    words = Words("cut", "axis: x\n  who: the side\n  is cut from # to #:\n  stays whole = is not cut:\n")
    told = parse("axis: the side is not cut from 3 to 2\n  the side is not cut")
    assert [str(one) for one in words.read(told)["axis"]] == ["the side · not: is cut from 3 to 2", "the side · stays whole"]


def test_a_denial_is_shown_as_one():
    assert read("the UNet doesn't predict the noise") == ["the UNet · not: predicts · the noise"]
    assert read("the UNet does not predict the noise") == ["the UNet · not: predicts · the noise"]
    assert read("the batch axis is not 3 in the UNet", "axis") == ["the batch axis · not: has length 3 · in the UNet"]


def test_after_and_a_name_before_a_verb_begins_a_new_sentence():
    words = Words("meet", "text: x\n  who: the text / the picture\n  attends to: the text / the picture\n  stays:\n")
    told = parse("text: the text attends to the picture and the picture attends to the text and the text stays")
    assert [str(one) for one in words.read(told)["text"]] == [
        "the text · attends to · the picture", "the picture · attends to · the text", "the text · stays"]


@pytest.mark.parametrize("text", ["goes up by 4", "goes up by 4 times", "goes up 4-fold", "goes up 4x", "goes up four times"])
def test_times_belong_to_the_amount(text):
    words = Words("up", "axis: x\n  who: it all\n  goes up:\n  more: by # = # times, #-fold\n")
    claims = "wanted: how much\n    it all | goes up | | +by 4\n"
    assert words.grade(parse(f"axis: it all {text}"), "axis", claims).verdict == "award"


def test_a_false_sentence_denies_whatever_else_is_not_read():
    assert graded("the scheduler predicts the noise and lorem ipsum. the VAE sings").verdict in ("deny", "review")
    assert graded("the scheduler predicts the noise. the VAE sings").verdict == "deny"


@pytest.mark.parametrize("text", [
    "the batch goes from 1 to 2 seconds", "the batch goes from 100% to 2", "the batch goes from 8 bits to 2",
    "the batch goes from -1 to 2", "the batch goes from 1 to 2\u00b9", "the batch goes from 1 to \u2260 2", "the batch goes from 1 to 2?",
    "~~the batch goes from 1 to 2~~", "the batch goes from 1 to 2, 2", "the batch goes from 1 to 2 f\u0131ve", "the batch goes from 1 to 2 b\u0131t",
    "the batch goes from 1 to 2_000", "the batch goes from 1 to 2" + "\n" * 400 + "the batch goes from 3 to 4",
])
def test_amounts_in_disguise_are_not_awarded(text):
    assert graded(text, "axis", AXIS).verdict != "award"


@pytest.mark.parametrize("line", [
    "anything but (1, 2)", "(1, 2); the cache stores the text of all the tokens", "hardly (1, 2)", "\u2260 (1, 2)", "f\u0131ve (1, 2) it is not"])
def test_typed_lines_with_more_than_the_entry_are_not_awarded(line):
    assert typed(parse(f"shape: {line}\n"), "shape", (1, 2)).verdict != "award"
    assert typed(parse("calls: -16\n"), "calls", 16).verdict == "review"
    assert typed(parse("calls: 1600 %\n"), "calls", 16).verdict == "deny"
    assert typed(parse("calls: 16 UNet calls in all\n"), "calls", 16).verdict == "award"


@pytest.mark.parametrize(("line", "expected", "verdict"), [
    *((f"calls: {text}", 20, "review") for text in (
        "half of 20|minus 20|\u201320|20 million|20 dozen|at most 20|<20|20 or less|twice 20|20 squared|20 is wrong|unlike 20|"
        "1 = 20|double 10 = 20|20?|20+|20'|20 calls (half of it)|20 calls per step|20 calls in 3 s").split("|")),
    *((f"calls: {text}", 20, "deny") for text in ("20x", "20 %", "20 bytes", "0.02 KB", "21")),
    *((f"calls: {text}", 20, "award") for text in ("20", "20.", "`20` calls", "20 times", "2 * 10 = 20 calls", "20 calls (2 x 10)", "20 (= 4 + 16)",
                                                   "**20** tokens in all")),
    *((f"shape: {text}", (2, 4, 16, 16), "review") for text in (
        "unlike (2, 4, 16, 16)|transpose of (2, 4, 16, 16)|-(2, 4, 16, 16)|(h=2, w=4, b=16, c=16)|(2, 4, 16, 16)?|(2, 4, 16, 16) MB").split("|")),
    *((f"shape: {text}", (2, 4, 16, 16), "award") for text in (
        "(2, 4, 16, 16)|[2, 4, 16, 16].|torch.Size([2, 4, 16, 16])|2 4 16 16|(B=2, C=4, H=16, W=16)|shape (2, 4, 16, 16)").split("|")),
    ("dtype: unlike float32", "float32", "review"), ("dtype: half of float32", "float32", "review"), ("dtype: torch.float32", "float32", "award"),
    ("bytes: 151 KiB in all", 154624, "award"), ("bytes: 151 Kb", 154624, "review"), ("per-token: 154624 bytes for each token", 154624, "award"),
    *((f"calls: {text}", 20, "review") for text in ("\u2473", "\u2461\u24ea", "\u00b2\u2070", "a lot")),
    ("calls: 20 \u00d7 1", 20, "deny"), ("dtype: double", "float16", "review"),
    *((f"calls: {text}", 20, "review") for text in ("20\u00b9", "\u00bd of 20", "20 bits", "20 \u2460")),
    ("calls: \uff12\uff10", 20, "award"), ("calls: \u0662\u0660", 20, "award"),
    *((f"shape: {text}", (2, 4, 16, 16), "deny") for text in (
        "(2*4*16*16)|2*4*16*16|2 * 4 * 16 * 16|[2 * 4, 16, 16]|2 times 4 times 16 times 16|(\u2461, 4, 16, 16)").split("|")),
    *((f"shape: {text}", (2, 4, 16, 16), "award") for text in (
        "(2, 4, 16, 16, )|(2, 4, 16, 16,)|2x4x16x16|2 \u00d7 4 \u00d7 16 \u00d7 16|**(2, 4, 16, 16)**|**2, 4, 16, 16**").split("|")),
    *((f"bytes: {text}", 154624, "review") for text in ("1236992 bits", "1,236,992 bit", "1237 kilobits", "1.24 Mbit", "154624 bits")),
    ("blocks: 10 blocks (1 + 2 + 3 + 4)", 10, "award"), ("blocks: 1 + 2 + 3 + 4", 10, "deny"),
])
def test_what_stands_beside_a_typed_value_is_known_or_goes_to_a_person(line, expected, verdict):
    assert typed(parse(line + "\n"), line.split(":")[0], expected).verdict == verdict
    if verdict == "review":
        words = Words("beside", f"{line.split(':')[0]}: " + {int: "a number", tuple: "a shape", str: "a dtype"}[type(expected)])
        assert not View(parse(line + "\n"), words).lines[0].read, "the view says so, too"


@pytest.mark.parametrize(("line", "verdict"), [
    ("batching", "award"), ("**continuous batching** first", "award"), ("launches", "deny"), ("", "deny"),
    ("batching or launches", "review"), ("anything but batching", "review"), ("don't batch", "review"), ("not.batching", "review"),
    ("without batching", "review"), ("batching, quantum", "review"), ("batching?", "review"),
    ("at the batching", "award"), ("`batching`", "award"), ("continuous's batching", "award"),
])
def test_a_name_is_graded_by_its_words_alone(line, verdict):
    names = {"batching": "batch* continuous", "launches": "launch* graph*", "": "first"}
    assert named(parse(f"first: {line}\n"), "first", names, {"batching": "", "launches": "it is not."}).verdict == verdict


@pytest.mark.parametrize(("line", "verdict", "reason"), [
    ("sigma, input", "award", "is right"), ("`pipe.input` and `pipe.sigma`", "award", "is right"), ("sigma", "deny", "wants 2 of"), ("pipe", "deny", "wants 2 of"),
    ("sigma, step", "deny", "it hides nothing"), ("sigma, input, step", "review", "wants 2 of"), ("sigma or input", "review", "wants 2 of"),
])
def test_several_names_are_all_said(line, verdict, reason):
    names = {"sigma": "sigma", "input": "input", "step": "step", "": "pipe and"}
    outcome = named(parse(f"hooks: {line}\n"), "hooks", names, {"sigma": "", "input": "", "step": "it hides nothing."})
    assert outcome.verdict == verdict and reason in outcome.reason


@pytest.mark.parametrize(("line", "verdict", "reason"), [
    ("7", "award", "is what the run shows"), ("8", "deny", "the last step has none"), ("9", "deny", "9 is not what the run shows"), ("8 or so", "review", "not read"),
])
def test_a_typed_mistake_is_named(line, verdict, reason):
    outcome = typed(parse(f"calls: {line}\n"), "calls", 7, {"steps were counted": 4, "the last step has none": 8})
    assert outcome.verdict == verdict and reason in outcome.reason
    among = {"too many": [(1, n) for n in range(6, 9)]}
    assert "too many" in typed(parse("shape: (1, 7)\n"), "shape", (1, 5), among).reason


@pytest.mark.parametrize(("text", "verdict"), [
    ("the batch axis goes from 1 to 2", "award"), ("axis 0 grows from one to two", "award"),
    ("the batch axis goes from 2 to 1", "deny"), ("the batch axis goes from 1 to 3", "deny"),
    ("height and width goes from 1 to 2", "review"), ("the batch goes from 1 to 2 and has shape (2, 4, 16, 16)", "award"),
    ("the batch goes from 1 to 2 and has shape 2x4x16x16", "award"),
    ("the batch goes from 1 to 2 and has shape (1, 4, 16, 16)", "deny"),
    ("the batch goes from 1 to 2: 2 in the UNet", "review"),
    ("the batch goes from 1 to 2, not to 3", "award"), ("the batch goes from 1 to 2, not to 2", "deny"), ("the batch goes from 1 to 3, not to 2", "deny"),
    ("the batch goes from 1 to 2. It is 2 long in the UNet and 1 in scheduler.step", "award"),
    ("the batch goes from 1 to 2; it also is 2 in the UNet, and is 1 in scheduler.step", "award"),
    ("the batch goes from 1 to 2. It is 1 long in the UNet and 2 in scheduler.step", "deny"),
    ("the batch goes from 1 to 2 and is 17 requests", "award"), ("the batch goes from one to many", "review"),
])
def test_amounts_belong_to_the_sentence_that_says_them(text, verdict):
    assert graded(text, "axis", AXIS).verdict == verdict


def test_the_view_shows_just_what_is_graded():
    told = parse("%%explain step\nstate: the UNet predicts the noise\n  the VAE sings\nshape: 2, 4\ncalls: 3 or 4\n")
    shown = View(told, WORDS)
    texts = [line.text for line in shown.lines if line.label == "state"]
    assert texts == [str(one) for one in WORDS.read(told)["state"]]
    evidence = graded("the UNet predicts the noise\n  the VAE sings").evidence
    assert evidence == (*texts, "not said in what was read: who computes the next latents")
    assert shown.empty == ["axis"] and not all(line.read for line in shown.lines)
    text, page = repr(shown), shown._repr_html_()
    assert "2 entries are read" in text and "Not filled in yet: axis" in text and "not read" in page
    assert "Predicting" not in text + page, "the view does not say what is right"


@pytest.mark.parametrize(("line", "read"), [("2 4", True), ("\uff082, 4\uff09", True), ("2, 4 or 3, 4", False), ("many", False)])
def test_the_view_reads_a_typed_line_as_the_grader_does(line, read):
    told = parse(f"shape: {line}\n")
    shown = View(told, WORDS)
    assert shown.lines[0].read == read == (typed(told, "shape", (2, 4)).verdict == "award")


def test_a_word_that_is_not_in_the_table_gets_the_nearest():
    assert "did you mean `predicts`" in read("the UNet predikts the noise")[0]
    assert "at `in each step`, after `predicts` comes one of: `the noise`" in read("the UNet predicts in each step")[0]
    assert "at `computes`, here comes" not in read("the UNet rests and computes")[0]
    assert "it breaks off: after `computes`" in read("the UNet rests and computes")[0]
    assert "at `after loop`, the sentence may end here" in read("the UNet rests after the loop")[0]
    assert "begin with who: " in read("noise from the UNet")[0]
    assert "begin with who or end with by whom" in read("the noise is predicted")[0]
    assert "at `or VAE predicts noise`, `or` leaves open" in read("the UNet or the VAE predicts the noise")[0]
    assert "say again who" in read("the UNet does not compute the noise and predicts the noise")[0]


def test_one_way_with_times_lets_every_way_of_its_entry_take_them():
    words = Words("up", "axis: x\n  who: it all\n  grows by a factor of # = gets # larger, gets # times larger:\n")
    for text in ("gets 8 times larger", "gets 8x larger", "gets 8 larger", "grows by a factor of 8"):
        assert "grows by a factor of 8" in repr(View(parse(f"axis: it all {text}\n"), words)), text


def test_what_a_passive_is_about_is_carried_to_the_next_one():
    words = Words("two", "state: x\n  who: the UNet / the VAE\n  predicts: the noise\n  draws: the noise\n")

    def seen(text):
        return [line.text for line in View(parse(f"state: {text}\n"), words).lines]

    both = ["the UNet · predicts · the noise", "the VAE · draws · the noise"]
    for text in ("is drawn by the VAE", "drawn by the VAE"):
        assert seen(f"The noise is predicted by the UNet and {text}") == both
    assert seen("The noise is not predicted by the VAE but drawn by the VAE")[1] == both[1]
    assert "not" not in seen("The noise is predicted by the UNet and not drawn by the UNet")[0]
    assert "is drawn" in seen("The UNet predicts the noise and is drawn by the VAE")[0]
    assert "leaves open" not in seen("The UNet does not predict the noise or tea")[0]


def test_so_joins_two_sentences():
    both = read("the UNet predicts the noise, so it computes the picture")
    assert both == read("the UNet predicts the noise, and it computes the picture")
    assert len(both) == 2 and not any("so" in one for one in both)


@pytest.mark.parametrize(("one", "several"), [
    ("use", "uses"), ("raise", "raises"), ("pass", "passes"), ("cache", "caches"), ("match", "matches"), ("box", "boxes"),
    ("size", "sizes"), ("keep", "keeps"), ("latent", "latents"), ("VAE", "VAEs"),
])
def test_an_s_at_the_end_of_a_word_does_not_matter(one, several):
    assert stem(one) == stem(several)


def test_at_most_so_many_statements_are_read():
    assert len(read("the UNet rests. " * (MOST + 5))) == MOST + 1


def test_any_text_is_read_without_raising_and_fast():
    rng = random.Random(3)
    pieces = ["the scheduler ", "computes ", "(2, 4", "and ", ", ", "\n", "; ", "#", "\0", "\u0416", "1e999 ", "from the noise "]
    start = time.process_time()
    for _ in range(300):
        text = "".join(rng.choice(pieces) for _ in range(60))
        View(parse(f"state: {text}\naxis: {text}\nshape: {text}"), WORDS)._repr_html_()
        assert graded(text).verdict in ("award", "deny", "review")
    assert graded("x" * 200_000).verdict == "review"
    assert time.process_time() - start < 30


@pytest.mark.parametrize(("text", "error"), [
    ("    the VAE | rests", "before the first heading"), ("wanted:\n  a | b", "is not `wanted: QUESTION`"),
    ("true\n    * | rests", "nothing is wanted"), ("wanted: x\n    the ghost | rests", "'the ghost' is not offered"),
    ("wanted: x\n    the VAE", "is not `who"), ("wanted: x\n    the VAE | computes | {page}", "no fact {page}"),
])
def test_claims_that_cannot_be_read_are_an_error_of_the_author(text, error):
    with pytest.raises(ClaimsError, match=error.replace("{", r"\{").replace("|", r"\|")):
        WORDS.claims("state", text)


@pytest.mark.parametrize("text", ["state what", "    who: a", "state: x\n    who: a\n"])
def test_words_that_cannot_be_read_are_an_error_of_the_author(text):
    with pytest.raises(WordsError):
        Words("bad", text)


def test_ways_that_are_given_at_two_places_add_up():
    words = Words("rows", "axis: x\n  who: a row = each row\n  shares: a row = all of a row / a scale\n")
    told = parse("axis: each row shares all of a row\n  a row shares each row")
    assert [str(one) for one in words.read(told)["axis"]] == ["a row · shares · a row"] * 2


def test_the_table_is_shown_as_text_and_as_html():
    assert "… predicts …" in repr(WORDS) and "has length # / has shape #" in repr(WORDS) and "once after the loop" in repr(WORDS)
    page = WORDS._repr_html_()
    assert "<script" not in page and "scope='row'" in page and "shape" not in page.split("axis")[0]
