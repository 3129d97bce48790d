"""Lab 14: every variant can be solved, a run of the engine is what its slots say, and the handbook's numbers are its code's."""

from functools import partial
from pathlib import Path

import pytest
from labtexts import cell_of, figure_code

from inferlab.lab import setup
from inferlab.lab.check import results
from inferlab.lab.identity import variant
from inferlab.lab.slots import batching_config, engine_run, occupancy_chart, slots_of, workload
from inferlab.models import load_language_model

ROOT = Path(__file__).resolve().parents[2]
LAB = "lab14-batching"
cell = partial(cell_of, LAB)


@pytest.mark.parametrize("number", range(8))
def test_every_service_is_solved_by_the_same_functions_and_needs_more_than_one_slot(number, monkeypatch):
    learner = next(name for name in (f"learner {i}" for i in range(200)) if variant(name, LAB, 8) == number)
    lab = setup.Lab(LAB, learner, "bundled", "cpu", 0)
    monkeypatch.setattr(setup, "_current", lab)
    namespace = {"lab": lab, "workload": workload}
    names = [{"exercise": name} for name in ("static", "continuous", "report")]
    for wanted in [{"begins": "llama ="}, *names, {"begins": "v = lab.variant"}, {"exercise": "choose"}, {"check": "choose"}]:
        exec(cell(**wanted), namespace)  # noqa: S102 - the lab's own cells
    assert float(results()["choose"]) == 2.0
    chosen = namespace["choose"]()
    assert chosen["slots"] > 1
    assert chosen["static"] > 5 * namespace["LIMIT"]


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
    assert (config.max_requests_per_batch, config.num_blocks, config.scheduler_type) == (3, 20, "prefill_first")


def test_a_request_keeps_its_slot_and_a_picture_shows_what_it_was_given():
    rows = [[0, 1], [1, 2], [1, 2], [3]]
    assert slots_of(rows, 2) == [[0, 1], [2, 1], [2, 1], [3, None]]
    figure = occupancy_chart({"static": rows, "continuous": rows[:3]}, 2, title="t")
    assert [axis.get_title(loc="left") for axis in figure.axes] == [
        "static: 4 iterations, 88% of the slots in use", "continuous: 3 iterations, 100% of the slots in use"]
    for wrong, message in (([[0, 1, 2]], "3 requests"), ([[0, 0]], "twice"), ([[0], [], [0]], "after a pause")):
        with pytest.raises(ValueError, match=message):
            slots_of(wrong, 2)
    with pytest.raises(ValueError, match="at least one"):
        occupancy_chart({}, 2, title="t")


def test_a_workload_is_the_same_for_everybody():
    one = workload(1, 12, 2.0, 3, 12)
    assert one == workload(1, 12, 2.0, 3, 12) and list(one.arrivals) == sorted(one.arrivals) and min(one.outputs) >= 1
    assert one.arrivals == (0, 2, 5, 8, 13, 15, 17, 17, 17, 24, 27, 28)
    with pytest.raises(ValueError, match="no stream"):
        workload(1, 0, 2.0)


def test_the_handbook_says_the_numbers_that_its_code_makes():
    batching = figure_code("batching")
    text = " ".join((ROOT / "handbook" / f"{LAB}.md").read_text("utf-8").split())
    assert not {name: value for name, value in batching.numbers().items() if value not in text}
    assert 600 <= len(text.split()) <= 1200
