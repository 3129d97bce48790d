"""Lab 14: every variant can be solved, a run of the engine is what its slots say."""

from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest
import torch

from inferlab.lab import setup
from inferlab.lab.checks.check import results
from inferlab.lab.identity import variant
from inferlab.lab.kits.batching import (
    batching_config,
    engine_run,
    occupancy_chart,
    report,
    slots_of,
    workload,
)
from inferlab.models import load_language_model
from tests.lab.labtexts import cell_of

LAB = "lab14-batching"
cell = partial(cell_of, LAB)


@pytest.mark.parametrize("number", range(8))
def test_every_service_is_solved_by_the_same_functions_and_needs_more_than_one_slot(number, monkeypatch):
    learner = next(name for name in (f"learner {i}" for i in range(200)) if variant(name, LAB, 8) == number)
    lab = setup.Lab(LAB, learner, "bundled", "cpu", 0)
    monkeypatch.setattr(setup, "_current", lab)
    namespace = {"lab": lab, "workload": workload, "report": report}
    for wanted in [{"begins": "llama ="}, {"begins": "def static"}, {"exercise": "continuous"},
                   {"begins": "v = lab.variant"}, {"exercise": "choose"}, {"check": "choose"}]:
        exec(cell(**wanted), namespace)
    assert float(results()["choose"]) == 3.0
    chosen = namespace["choose"]()
    assert chosen["slots"] > 1
    assert chosen["static"] > 5 * namespace["LIMIT"]
    service, static, continuous = namespace["service"], namespace["static"], namespace["continuous"]

    def waits(scheduler, slots, load=service):
        return report(scheduler(load.arrivals, load.outputs, slots), load.arrivals, slots)

    # what the text says after the exercise
    assert waits(static, 64)["p99"] > 5 * namespace["LIMIT"]
    assert [waits(continuous, slots, workload(7, 160, 60.0))["median"] for slots in (1, 4, 16)] == [0, 0, 0]
    assert waits(continuous, 1)["median"] > 100 * (1 + waits(continuous, 16)["median"])


def test_a_batch_may_be_a_tensor_of_one_number_and_requests_scalars_of_numpy():
    namespace: dict = {}
    for name in ("critical", "continuous"):
        exec(cell(exercise=name), namespace)
    batch_of, rows_of = namespace["critical_batch"], namespace["continuous"]

    def critical_batch(*sizes):
        batch = batch_of(*sizes)
        return None if batch is None else torch.tensor(batch)

    namespace["critical_batch"] = critical_batch
    namespace["continuous"] = lambda *stream: [[*map(np.int64, now)] for now in rows_of(*stream)]
    for name in ("critical", "continuous"):
        exec(cell(check=name), namespace)
        assert float(results()[name]) == 3.0


def test_a_server_that_waits_for_a_full_batch_keeps_the_first_waiting():
    namespace: dict = {"when_written": lambda *names: nullcontext(), "report": report}
    for wanted in [{"begins": "def static"}, {"exercise": "continuous"},
                   {"begins": "arrivals, outputs = [0,"}]:
        exec(cell(**wanted), namespace)
    arrivals, outputs = namespace["arrivals"], namespace["outputs"]
    full, soon, refilled = (report(rows, arrivals, 4)["p99"] for rows in (
        namespace["static"](namespace["assembled"], outputs, 4), namespace["static"](arrivals, outputs, 4),
        namespace["continuous"](arrivals, outputs, 4)))
    assert full > 5 * soon > 5 * refilled == 0


def test_the_engine_gives_each_request_what_it_gets_alone():
    model, _ = load_language_model("bundled", "cpu")
    prompts, outputs = [[5, 6, 7], [9, 8], [11, 5, 9, 6]], [2, 5, 3]
    tokens, calls = engine_run(model, prompts, outputs, 2)
    assert [len(made) for made in tokens] == outputs
    assert calls == [(5, 2), (2, 2), (5, 2), (2, 2), (2, 2)]
    for prompt, made, n in zip(prompts, tokens, outputs, strict=True):
        assert engine_run(model, [prompt], [n], 1)[0] == [made]


def test_the_config_names_the_block_size_as_the_library_does():
    config = batching_config(3, page=8, pages=20, scheduler_type="prefill_first")
    assert 8 in (getattr(config, "page_size", None), getattr(config, "block_size", None))
    assert (config.max_requests_per_batch, config.num_blocks, config.scheduler_type) == (3, 20,
                                                                                         "prefill_first")


def test_a_request_keeps_its_slot_and_a_picture_shows_what_it_was_given():
    rows = [[0, 1], [1, 2], [1, 2], [3]]
    assert slots_of(rows, 2) == [[0, 1], [2, 1], [2, 1], [3, None]]
    figure = occupancy_chart({"static": rows, "continuous": rows[:3]}, 2, title="t")
    assert [axis.get_title(loc="left") for axis in figure.axes] == [
        "static: 4 iterations, 88% of the slots in use", "continuous: 3 iterations, 100% of the slots in use"]
    for wrong, message in (([[0, 1, 2]], "3 requests"), ([[0, 0]], "twice"),
                           ([[0], [], [0]], "after a pause")):
        with pytest.raises(ValueError, match=message):
            slots_of(wrong, 2)
    with pytest.raises(ValueError, match="at least one"):
        occupancy_chart({}, 2, title="t")


def test_a_report_counts_places_and_waits_to_the_first_token_by_nearest_rank():
    idle = [[], [0, 1], [1], [], [2, 3]]
    assert report(idle, [1, 1, 4, 4], 3) == {"occupancy": 5 / 15, "median": 0, "p99": 0}
    one_a_time = [[request] for request in range(250)]
    assert report(one_a_time, [0] * 250, 1) == {"occupancy": 1.0, "median": 124, "p99": 247}
    with pytest.raises(ValueError, match="3 requests arrived, and 2 got a token"):
        report([[0], [1]], [0, 0, 0], 1)


def test_a_workload_is_the_same_for_everybody():
    one = workload(1, 12, 2.0, 3, 12)
    assert one == workload(1, 12, 2.0, 3,
                           12) and list(one.arrivals) == sorted(one.arrivals) and min(one.outputs) >= 1
    assert one.arrivals == (0, 2, 5, 8, 13, 15, 17, 17, 17, 24, 27, 28)
    with pytest.raises(ValueError, match="no stream"):
        workload(1, 0, 2.0)
