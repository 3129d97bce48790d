"""Lab 12: its slow services give the same tokens and show what their names say."""

from functools import partial
from types import SimpleNamespace

import pytest
import torch

from inferlab.lab.checks.check import results
from inferlab.lab.kits.decode.lm_calls import CHUNK, FAULTS, PADDED, calls_of, slow_generate
from inferlab.models import cache_argument, load_language_model
from inferlab.trace import trace
from tests import ROOT
from tests.lab.labtexts import cell_of

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
        tokens = model.generate(ids, attention_mask=torch.ones_like(ids), min_new_tokens=NEW,
                                max_new_tokens=NEW, do_sample=False,
                                **cache_argument(DynamicCache(config=model.config)))
    return run, tokens


def truth(variant: int) -> tuple:
    """What the lab's hidden test holds for right."""
    text = source(check="diagnosis")
    namespace: dict = {}
    exec(text[text.index("def wasteful"):text.index("fault, positions, healthy")],
         namespace)
    return namespace["wasteful"](variant)


@pytest.mark.parametrize("fault", FAULTS)
def test_the_labs_own_solution_finds_every_fault(model, ids, healthy, fault):
    with torch.no_grad(), trace(model) as suspect:
        tokens = slow_generate(model, ids, NEW, fault)
    assert tokens.shape == (1, PROMPT + NEW)
    if model.generation_config.eos_token_id not in tokens[0, PROMPT:]:
        assert torch.equal(tokens, healthy[1])
    namespace = {"healthy": healthy[0], "suspect": suspect, "calls_of": calls_of}
    exec(source(exercise="diagnosis"), namespace)
    got = namespace["diagnose"]()
    assert (got["fault"], got["positions"]) == truth(FAULTS.index(fault))[:2]


@pytest.fixture(scope="module")
def run_of_section_3():
    """What the lab's own cells define up to its first trace."""
    from transformers import DynamicCache

    from inferlab.models.stories import documents

    model, tokenizer = load_language_model("bundled", "cpu")
    namespace = {"torch": torch, "model": model, "tokenizer": tokenizer, "config": model.config, "SEED": 0,
                 "documents": documents, "DynamicCache": DynamicCache, "cache_argument": cache_argument,
                 "trace": trace, "lab": SimpleNamespace(device="cpu"), "PROMPT_TOKENS": 128, "NEW": 2}
    with torch.no_grad():
        exec(source(begins='text = " ".join(one.context'), namespace)
    return namespace


@pytest.mark.parametrize("number", range(16))
def test_every_variants_fault_is_found_and_changes_no_token(run_of_section_3, number):
    namespace = run_of_section_3 | {"lab": SimpleNamespace(device="cpu", variant=lambda most: number)}
    with torch.no_grad():
        exec(source(begins="v = lab.variant"), namespace)
    assert torch.equal(namespace["good_tokens"], namespace["slow_tokens"])
    exec(source(exercise="diagnosis"), namespace)
    assert tuple(namespace["diagnose"]().values()) == truth(number)[:2]


def test_counts_may_be_tensors_of_one_number():
    namespace: dict = {}
    exec(source(exercise="flops"), namespace)
    plain = namespace["count_flops"]
    namespace["count_flops"] = lambda *run: {name: torch.tensor(n) for name, n in plain(*run).items()}
    exec(source(check="flops"), namespace)
    assert float(results()["flops"]) == 3.0


def test_calls_say_what_went_in_and_what_was_cached(healthy):
    calls = calls_of(healthy[0])
    assert [(c.number, c.batch, c.new, c.context, c.head) for c in calls[:2]] == [(1, 1, PROMPT, 0, 1),
                                                                                  (2, 1, 1, PROMPT, 1)]
    assert len(calls) == NEW and calls_of(healthy[0].rows()) == calls
    with pytest.raises(ValueError, match="no call"):
        calls_of([])


def test_a_slow_service_refuses_what_it_cannot_do(model, ids):
    with pytest.raises(ValueError, match="expected one of"):
        slow_generate(model, ids, 1, "slow")
    with pytest.raises(ValueError, match="fewer than"):
        slow_generate(model, torch.ones(1, PADDED, dtype=torch.int64), 1, "padding")
    assert CHUNK < PROMPT < PADDED


def test_a_decode_step_is_timed_with_both_caches(model):
    from inferlab.lab.kits.decode.launches import decode_steps

    steps = decode_steps(model, context=16, calls=2)
    assert list(steps) == ["eager, growing cache", "eager, static cache"]
    assert all(0 < seconds < 1 for seconds in steps.values())


def test_the_recorded_steps_are_those_of_their_run():
    import json

    from inferlab.lab.kits.decode.launches import RECORDED

    run = json.loads((ROOT / "ci" / "results"
                      / f"{RECORDED['run']}.json").read_text("utf-8"))["parts"]["decode"]["decode"]
    measured = {row["regime"]: row["median"] for row in run["rows"]}
    assert {name: round(measured[name], 5) for name in RECORDED["steps"]} == RECORDED["steps"]
    assert round(run["floor_seconds"], 5) == RECORDED["floor"] and run["context"] == 256
    assert RECORDED["run"] in (ROOT / "handbook" / "gpu-numbers.md").read_text("utf-8")
