"""Lab 13: its faults show where its hidden test says, its quantized cache is what it claims."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from inferlab.lab.checks.check import results
from inferlab.lab.kits.decode.lm_calls import calls_of
from inferlab.lab.kits.kv_caches import (
    FAULTS,
    STALE,
    WINDOW,
    cache_curves,
    faulty_service,
    real_bytes,
)
from inferlab.lab.kits.low_bits import small_cache
from inferlab.models import cache_argument, load_language_model
from inferlab.trace import trace
from tests.lab.labtexts import cell_of

LAB = "lab13-kv-cache"
source = partial(cell_of, LAB)
PROMPT, NEW = 38, 9


@pytest.fixture(scope="module")
def model():
    return load_language_model("bundled", "cpu")[0]


@pytest.fixture(scope="module")
def ids():
    return torch.arange(10, 10 + PROMPT).reshape(1, PROMPT)


def generate(model, ids, cache):
    with torch.no_grad():
        return model.generate(ids, attention_mask=torch.ones_like(ids), min_new_tokens=NEW,
                              max_new_tokens=NEW, do_sample=False, **cache_argument(cache))


@pytest.mark.parametrize("fault", FAULTS)
def test_the_labs_own_solution_finds_every_fault(model, ids, fault):
    from transformers import DynamicCache

    text = source(check="diagnosis")
    namespace: dict = {"calls_of": calls_of}
    exec(text[text.index("def mishandled"):text.index("fault, first, good_context")],
         namespace)
    serve = faulty_service(model, ids, fault)
    with trace(model) as healthy:
        generate(model, ids, DynamicCache(config=model.config))
    with trace(model) as suspect, torch.no_grad():
        assert serve(ids, NEW).shape == (1, PROMPT + NEW)
    namespace |= {"healthy": healthy, "suspect": suspect}
    exec(source(exercise="diagnosis"), namespace)
    got = namespace["diagnose"]()
    assert (got["fault"], got["call"], got["healthy"], got["suspect"],
            got["lost"]) == namespace["mishandled"](FAULTS.index(fault))


@pytest.fixture(scope="module")
def variants():
    """For each variant what the lab's own cells print and define."""
    from transformers import DynamicCache

    model, tokenizer = load_language_model("bundled", "cpu")
    section_3 = {"torch": torch, "model": model, "tokenizer": tokenizer, "config": model.config, "SEED": 0,
                 "DynamicCache": DynamicCache, "cache_argument": cache_argument, "trace": trace,
                 "lab": SimpleNamespace(device="cpu")}
    with torch.no_grad():
        exec(source(begins="from inferlab.lab.kits.kv_caches import FAULTS"), section_3)
        found = [section_3 | {"lab": SimpleNamespace(device="cpu", variant=lambda most, own=number: own)}
                 for number in range(16)]
        for namespace in found:
            exec(source(begins="v = lab.variant"), namespace)
    return found


def test_every_variants_fault_is_found(variants):
    text = source(check="diagnosis")
    truth: dict = {}
    exec(text[text.index("def mishandled"):text.index("fault, first, good_context")], truth)
    for number, namespace in enumerate(variants):
        exec(source(exercise="diagnosis"), namespace)
        assert tuple(namespace["diagnose"]().values()) == truth["mishandled"](number), number


def test_some_variants_texts_read_well_some_repeat_and_some_are_the_healthy_one(variants):
    same, repeating, other = 0, 0, 0
    for namespace in variants:
        good, bad = (namespace[name][0, namespace["prompt"].shape[1]:].tolist() for name in ("good", "bad"))
        same += good == bad
        repeating += len(set(bad[-4:])) <= 2
        other += good != bad and len(set(bad[-4:])) > 2
    assert same and repeating and other


def test_labels_may_be_scalars_of_numpy_and_tensors_of_one_number():
    namespace: dict = {}
    exec(source(exercise="operate"), namespace)
    plain = namespace["operate"]
    namespace["operate"] = lambda *asked: [
        [[np.int64(row[0]), *map(torch.tensor, row[1:])] for row in state] for state in plain(*asked)]
    exec(source(check="operate"), namespace)
    assert float(results()["operate"]) == 3.0


def test_a_faulty_service_refuses_what_could_not_show_its_fault(model, ids):
    with pytest.raises(ValueError, match="expected one of"):
        faulty_service(model, ids, "slow")
    with pytest.raises(ValueError, match="more than 32"):
        faulty_service(model, ids, "window")(ids[:, :WINDOW], NEW)
    assert STALE < WINDOW < PROMPT


def test_a_quantized_cache_keeps_lengths_and_gives_nearly_the_same_logits(model, ids):
    from transformers import DynamicCache

    caches = {"full": DynamicCache(config=model.config), 8: small_cache(model.config, 8, 16),
              2: small_cache(model.config, 2, 16)}
    with torch.no_grad():
        first = {name: model(ids, None, None, cache).logits for name, cache in caches.items()}
        then = {name: model(ids[:, :1], None, None, cache).logits for name, cache in caches.items()}
    assert torch.equal(first["full"], first[2])  # the first call quantizes, and returns full precision
    error = {bits: float((then[bits] - then["full"]).abs().max()) for bits in (8, 2)}
    assert 0 < error[8] < error[2]
    assert {int(cache.get_seq_length()) for cache in caches.values()} == {PROMPT + 1}
    assert real_bytes(caches[8]) < real_bytes(caches["full"]) / 2
    with pytest.raises(ValueError, match="divides"):
        small_cache(model.config, 8, group=5)


def test_the_picture_has_a_curve_for_each_and_a_line_for_the_weights():
    axis = cache_curves({"a": 4096.0, "b": 1024.0}, [128, 256, 512], {"weights": 1e6}, title="t").axes[0]
    assert [line.get_label() for line in axis.get_lines()][:2] == ["a", "b"] and len(axis.get_lines()) == 3
    with pytest.raises(ValueError, match="curves"):
        cache_curves({}, [1, 2], {}, title="t")
