"""Lab 23: the engine under load is what its text says, and its solutions make the library's own decisions."""

import re
from functools import partial

import pytest
import torch
from transformers.generation.continuous_batching.offloading_manager import OffloadingManager
from transformers.generation.continuous_batching.scheduler import Scheduler

from inferlab.lab.cards import load_cards
from inferlab.lab.kits.service.load import (
    FAULTS,
    TARGET,
    VARIANTS,
    again,
    arrivals,
    broken_by,
    gaps_of,
    pair_of,
    replay,
    requests_chart,
    serve_load,
    two_services,
    waits_of,
)
from inferlab.models import load_language_model
from tests.lab.labtexts import (
    assert_no_mistake_is_named,
    cell_of,
    efforts_declared,
    efforts_said,
    overwritten_by_checks,
    points_of,
    prose_of,
    sources_shown,
)

LAB = "lab23-under-load"
cell = partial(cell_of, LAB)


@pytest.fixture(scope="module")
def solved():
    """The names that the lab's solutions define."""
    names: dict = {"gaps_of": gaps_of}
    for exercise in ("forecast", "decide", "verdict"):
        exec(cell(exercise=exercise), names)
    return names


@pytest.fixture(scope="module")
def model():
    with torch.no_grad():
        yield load_language_model("bundled", "cpu", draft=True)[0]


def test_a_check_cell_overwrites_nothing_that_the_lab_still_uses():
    shared = {"torch", "Check", "reference", "Words", "_", "words", "arrivals", "replay", "VARIANTS"}
    assert not overwritten_by_checks(LAB, shared)
    assert_no_mistake_is_named(LAB)


def test_each_exercise_says_its_points_and_its_minutes():
    assert sum(points_of(LAB).values()) == 16 and "**Points** 16 " in prose_of(LAB)
    assert efforts_said(LAB) == efforts_declared(LAB)


def test_every_note_on_the_installed_source_finds_its_line():
    views = sources_shown(LAB, Scheduler=Scheduler, OffloadingManager=OffloadingManager)
    assert {name: notes for name, notes, _ in views} == {
        "Scheduler._process_candidates": 4, "OffloadingManager.offload_requests": 4}


@pytest.mark.parametrize("seed", [100, 115])
def test_a_full_pool_costs_tokens_and_no_answer(model, seed):
    load = arrivals(seed, 14, 60)
    roomy, full = serve_load(model, load, budget=64), serve_load(model, load, budget=64, blocks=9)
    assert again(roomy) == 0 < again(full) and roomy["answers"] == full["answers"]
    assert max(call["held"] for call in full["calls"]) <= 9
    assert all(len(one["tokens"]) == one["new"] for one in full["requests"])
    assert sum(len(one["preempted"]) for one in full["requests"]) > 0
    assert not any(one["preempted"] for one in roomy["requests"])


@pytest.mark.parametrize("variant", range(16))
def test_every_learners_load_makes_the_full_pool_preempt(solved, variant):
    load = arrivals(100 + variant, 14, 60)
    run = replay(solved["decide"], load, slots=8, budget=64, page=16, blocks=9)
    assert run["broken"] is None and sum(len(one["preempted"]) for one in run["requests"]) > 0


def test_with_room_enough_the_scheduler_makes_the_librarys_calls(model, solved):
    for seed, slots, budget in ((1, 8, 64), (2, 3, 48), (3, 5, 20)):
        load = arrivals(seed, 12, 40, long=100)
        theirs = serve_load(model, load, slots=slots, budget=budget)
        mine = replay(solved["decide"], load, slots=slots, budget=budget, page=16, blocks=128)
        assert mine["broken"] is None
        assert [call["parts"] for call in mine["calls"]] == [call["parts"] for call in theirs["calls"]]
        assert [one["tokens"] for one in mine["requests"]] == [one["tokens"] for one in theirs["requests"]]


def test_who_is_preempted_is_computed_again_with_the_tokens_made(model):
    full = serve_load(model, [(0, 40, 12), (0, 40, 12), (0, 40, 12)], blocks=10)
    shape = model.config
    token = 2 * shape.num_hidden_layers * shape.num_key_value_heads * shape.head_dim * model.dtype.itemsize
    assert full["block_bytes"] == 16 * token
    [gone] = [r for r, one in enumerate(full["requests"]) if one["preempted"]]
    made = sum(tick <= full["requests"][gone]["preempted"][0] for tick in full["requests"][gone]["tokens"])
    assert (gone, 40 + made) in [part for call in full["calls"] for part in call["parts"]]
    assert again(full) == 40 + made - 1


def test_a_shared_prefix_is_computed_once(model):
    document = list(range(300, 396))
    asked = [[*document, 50 + k, 60 + k] for k in range(4)]
    load = [(200 * k, 98, 4) for k in range(4)]
    apart, shared = (serve_load(model, load, prompts=asked, share=share) for share in (False, True))
    assert again(apart) == 0 and again(shared) == -3 * 96
    assert apart["answers"] == shared["answers"]


def test_the_mean_stays_while_the_tail_changes_in_the_runs_that_the_lab_prints(model, capsys):
    """What the text and the feedback say of the mean: the cell has no variant, and its clock no machine."""
    names = {"serve_load": serve_load, "gaps_of": gaps_of, "waits_of": waits_of, "small": model}
    exec(cell(begins="crowd = "), names)
    said = [re.search(r"gaps of the others ([\d.]+) on average, longest +(\d+)", line).groups()
            for line in capsys.readouterr().out.splitlines()]
    assert [mean for mean, _ in said] == ["36.0"] * 3 and [int(tail) for _, tail in said] == [204, 84, 52]
    runs = [serve_load(model, names["crowd"], budget=budget) for budget in (256, 64, 32)]
    stays = [sum(one["tokens"][-1] - one["arrival"] for one in run["requests"][:4]) for run in runs]
    assert len(set(stays)) == 1


@pytest.mark.parametrize("fault", FAULTS)
def test_the_faulty_service_keeps_fewer_promises_for_the_reason_that_it_has(model, solved, fault):
    for swapped, seed, sound, other in ((False, 4, "A", "B"), (True, 8, "B", "A")):
        services = pair_of(model, fault, swapped, seed)
        told = solved["verdict"](services, TARGET)
        assert (told["better"], told["cause"]) == (sound, fault)
        assert told["goodput"][sound] > 1.2 * told["goodput"][other]
        stays = {name: sum(one["tokens"][-1] - one["arrival"] for one in run["requests"])
                 for name, run in services.items()}
        if fault == "prefill":
            assert stays[other] < stays[sound], "the mean latency does not tell who keeps its promise"


def test_what_cannot_be_drawn_or_is_no_variant_is_refused(model):
    with pytest.raises(ValueError, match="variant"):
        two_services(model, VARIANTS)
    assert requests_chart({"one": serve_load(model, [(0, 20, 3)])}, title="one").axes
    with pytest.raises(ValueError, match="at least one run"):
        requests_chart({}, title="none")


STATE = {"slots": 2, "budget": 8, "page": 4, "free": 1, "cached": 1, "running": [("a", 4, 0)],
         "waiting": [("b", 0, 9), ("c", 0, 2)]}


@pytest.mark.parametrize(("change", "said"), [
    ({"chunks": [("a", 2)]}, "gets 1 token"),
    ({"chunks": [("a", 1), ("b", 8)], "evict": 1}, "budget of tokens"),
    ({"chunks": [("a", 1), ("b", 1), ("c", 1)]}, "more requests run than there are slots"),
    ({"chunks": [("a", 1), ("c", 2)]}, "needs 2 blocks, and 1 are free"),
    ({"chunks": [("a", 1)], "evict": 2}, "more blocks are evicted"),
    ({"chunks": [("a", 1)], "preempt": ["a"]}, "only a running request is preempted"),
    ({"chunks": [("a", 1), ("a", 1)]}, "names a request twice"),
    ({"chunks": []}, "nobody has a part"),
    ({"chunks": [["a", 1]]}, "a list of tuples"),
])
def test_a_decision_that_cannot_be_carried_out_is_said(change, said):
    assert said in broken_by(STATE, {"chunks": [], "evict": 0, "preempt": [], **change})
    assert broken_by(STATE, {"chunks": [("a", 1)], "evict": 0, "preempt": []}) is None


def test_a_service_that_starves_somebody_comes_to_an_end():
    def turns(state):
        gone = [request for request, *_ in state["running"]]
        return {"chunks": [(state["waiting"][0][0], 1)], "evict": 0, "preempt": gone}

    run = replay(turns, [(0, 30, 9), (0, 30, 9)], slots=2, budget=8, page=4, blocks=64)
    assert "starved" in run["broken"]


def test_three_cards_are_this_labs():
    cards = [card for card in load_cards("inference").cards if card.see == LAB]
    assert len(cards) == 3 and all(card.question.endswith("?") for card in cards)
