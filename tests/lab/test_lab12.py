"""Lab 12: its slow services give the same tokens and show what their names say, its handbook quotes its own numbers."""

from functools import partial
from pathlib import Path

import pytest
import torch
from labtexts import cell_of, figure_code

from inferlab.lab.lmcalls import CHUNK, FAULTS, PADDED, calls_of, slow_generate
from inferlab.models import cache_argument, load_language_model
from inferlab.trace import trace

ROOT = Path(__file__).resolve().parents[2]
LAB = "lab12-prefill-decode"
source = partial(cell_of, LAB)
PROMPT, NEW = 38, 9


@pytest.fixture(scope="module")
def model():
    return load_language_model("bundled", "cpu")[0]


@pytest.fixture(scope="module")
def ids():
    return torch.arange(10, 10 + PROMPT).reshape(1, PROMPT)


@pytest.fixture(scope="module")
def healthy(model, ids):
    from transformers import DynamicCache

    with torch.no_grad(), trace(model) as run:
        tokens = model.generate(ids, attention_mask=torch.ones_like(ids), min_new_tokens=NEW, max_new_tokens=NEW, do_sample=False,
                                **cache_argument(DynamicCache(config=model.config)))
    return run, tokens


def truth(variant: int) -> tuple:
    """What the lab's hidden test holds for right."""
    text = source(check="diagnosis")
    namespace: dict = {}
    exec(text[text.index("def wasteful"):text.index("fault, first, positions")], namespace)  # noqa: S102 - the lab's own text
    return namespace["wasteful"](variant)


@pytest.mark.parametrize("fault", FAULTS)
def test_the_labs_own_solution_finds_every_fault(model, ids, healthy, fault):
    with torch.no_grad(), trace(model) as suspect:
        tokens = slow_generate(model, ids, NEW, fault)
    assert tokens.shape == (1, PROMPT + NEW)
    if model.generation_config.eos_token_id not in tokens[0, PROMPT:]:
        assert torch.equal(tokens, healthy[1])
    namespace = {"healthy": healthy[0], "suspect": suspect, "calls_of": calls_of}
    exec(source(exercise="diagnosis"), namespace)  # noqa: S102 - the lab's own cell
    got = namespace["diagnose"]()
    assert (got["fault"], got["call"], got["positions"], got["head_positions"]) == truth(FAULTS.index(fault))[:4]


def test_calls_say_what_went_in_and_what_was_cached(healthy):
    calls = calls_of(healthy[0])
    assert [(c.number, c.batch, c.new, c.context, c.head) for c in calls[:2]] == [(1, 1, PROMPT, 0, 1), (2, 1, 1, PROMPT, 1)]
    assert len(calls) == NEW and calls_of(healthy[0].rows()) == calls
    with pytest.raises(ValueError, match="no call"):
        calls_of([])


def test_a_slow_service_refuses_what_it_cannot_do(model, ids):
    with pytest.raises(ValueError, match="expected one of"):
        slow_generate(model, ids, 1, "slow")
    with pytest.raises(ValueError, match="fewer than"):
        slow_generate(model, torch.ones(1, PADDED, dtype=torch.int64), 1, "padding")
    assert CHUNK < PROMPT < PADDED


def test_rubric_examples_are_graded_as_they_say():
    from inferlab.lab.explain import selftest

    for check in ("phases-state", "phases-axis", "phases-trade-off"):
        text, namespace = source(check=check), {}
        rubric = text[text.index("LENGTHS = " if "LENGTHS = " in text else "RUBRIC = "):text.index("\ncheck.slot")]
        exec("from inferlab.lab.explain import Amounts, Rubric, Slot, Trend, terms\n" + rubric, namespace)  # noqa: S102 - the lab's own text
        assert selftest(namespace["RUBRIC"]) == [], check


def test_the_handbook_says_the_numbers_that_its_code_makes():
    prefill_decode = figure_code("prefill_decode")
    text = (ROOT / "handbook" / f"{LAB}.md").read_text("utf-8")
    missing = {name: value for name, value in prefill_decode.numbers().items() if value not in text}
    assert not missing
    assert 600 <= len(text.split()) <= 1200
    assert prefill_decode.HERE == ROOT / "handbook" / "figures"


def test_a_decode_step_is_timed_with_both_caches(model):
    from inferlab.lab.launches import decode_steps

    steps = decode_steps(model, context=16, calls=2)
    assert list(steps) == ["eager, growing cache", "eager, static cache"] and all(0 < seconds < 1 for seconds in steps.values())


def test_the_recorded_steps_are_those_of_their_run():
    import json

    from inferlab.lab.launches import RECORDED

    run = json.loads((ROOT / "ci" / "results" / f"{RECORDED['run']}.json").read_text("utf-8"))["parts"]["decode"]["decode"]
    measured = {row["regime"]: row["median"] for row in run["rows"]}
    assert {name: round(measured[name], 5) for name in RECORDED["steps"]} == RECORDED["steps"]
    assert round(run["floor_seconds"], 5) == RECORDED["floor"] and run["context"] == 256
    assert RECORDED["run"] in (ROOT / "handbook" / "gpu-numbers.md").read_text("utf-8")
