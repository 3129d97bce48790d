"""Lab 13: its faults show where its hidden test says, its quantized cache is what it claims, its handbook quotes its own numbers."""

from functools import partial
from pathlib import Path

import pytest
import torch
from labtexts import cell_of, figure_code

from inferlab.lab.kvcaches import (
    FAULTS,
    STALE,
    WINDOW,
    cache_curves,
    faulty_service,
    quantized_cache,
    real_bytes,
)
from inferlab.lab.lmcalls import calls_of
from inferlab.models import cache_argument, load_language_model
from inferlab.trace import trace

ROOT = Path(__file__).resolve().parents[2]
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
        return model.generate(ids, attention_mask=torch.ones_like(ids), min_new_tokens=NEW, max_new_tokens=NEW, do_sample=False, **cache_argument(cache))


@pytest.mark.parametrize("fault", FAULTS)
def test_the_labs_own_solution_finds_every_fault(model, ids, fault):
    from transformers import DynamicCache

    text = source(check="diagnosis")
    namespace: dict = {"calls_of": calls_of}
    exec(text[text.index("def mishandled"):text.index("fault, first, good_context")], namespace)  # noqa: S102 - the lab's own text
    serve = faulty_service(model, ids, fault)
    with trace(model) as healthy:
        generate(model, ids, DynamicCache(config=model.config))
    with trace(model) as suspect, torch.no_grad():
        assert serve(ids, NEW).shape == (1, PROMPT + NEW)
    namespace |= {"healthy": healthy, "suspect": suspect}
    exec(source(exercise="diagnosis"), namespace)  # noqa: S102 - the lab's own cell
    got = namespace["diagnose"]()
    assert (got["fault"], got["call"], got["healthy"], got["suspect"], got["lost"]) == namespace["mishandled"](FAULTS.index(fault))


def test_a_faulty_service_refuses_what_could_not_show_its_fault(model, ids):
    with pytest.raises(ValueError, match="expected one of"):
        faulty_service(model, ids, "slow")
    with pytest.raises(ValueError, match="more than 32"):
        faulty_service(model, ids, "window")(ids[:, :WINDOW], NEW)
    assert STALE < WINDOW < PROMPT


def test_a_quantized_cache_keeps_lengths_and_gives_nearly_the_same_logits(model, ids):
    from transformers import DynamicCache

    caches = {"full": DynamicCache(config=model.config), 8: quantized_cache(model.config, 8), 2: quantized_cache(model.config, 2)}
    with torch.no_grad():
        first = {name: model(ids, None, None, cache).logits for name, cache in caches.items()}
        then = {name: model(ids[:, :1], None, None, cache).logits for name, cache in caches.items()}
    assert torch.equal(first["full"], first[2])  # the first call quantizes, and returns full precision
    error = {bits: float((then[bits] - then["full"]).abs().max()) for bits in (8, 2)}
    assert 0 < error[8] < error[2]
    assert {int(cache.get_seq_length()) for cache in caches.values()} == {PROMPT + 1}
    assert real_bytes(caches[8]) < real_bytes(caches["full"]) / 2
    with pytest.raises(ValueError, match="divides"):
        quantized_cache(model.config, 8, group=5)


def test_the_picture_has_a_curve_for_each_and_a_line_for_the_weights():
    axis = cache_curves({"a": 4096.0, "b": 1024.0}, [128, 256, 512], {"weights": 1e6}, title="t").axes[0]
    assert [line.get_label() for line in axis.get_lines()][:2] == ["a", "b"] and len(axis.get_lines()) == 3
    with pytest.raises(ValueError, match="curves"):
        cache_curves({}, [1, 2], {}, title="t")


def test_rubric_examples_are_graded_as_they_say():
    from inferlab.lab.explain import selftest

    for check in ("cache-state", "cache-axis", "cache-trade-off"):
        text, namespace = source(check=check), {}
        rubric = text[text.index("LENGTHS = " if "LENGTHS = " in text else "RUBRIC = "):text.index("\ncheck.slot")]
        exec("from inferlab.lab.explain import Amounts, Rubric, Slot, Trend, terms\n" + rubric, namespace)  # noqa: S102 - the lab's own text
        assert selftest(namespace["RUBRIC"]) == [], check


def test_the_handbook_says_the_numbers_that_its_code_makes():
    kv_cache = figure_code("kv_cache")
    text = (ROOT / "handbook" / f"{LAB}.md").read_text("utf-8")
    missing = {name: value for name, value in kv_cache.numbers().items() if value not in text}
    assert not missing
    assert 600 <= len(text.split()) <= 1200
