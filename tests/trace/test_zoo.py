"""The tracer on many families of pipelines and models: same output, same random numbers, every hidden
step."""

import collections

import numpy as np
import pytest
import torch

from inferlab.trace import trace
from tests.trace import zoo
from tests.trace.leftovers import class_state, difference, instance_state
from tests.trace.oracle import hidden_steps


def flat(value):
    """The arrays inside any output, in order."""
    if hasattr(value, "to_tuple"):
        value = value.to_tuple()
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [part for inner in value for part in flat(inner)]
    if isinstance(value, torch.Tensor):
        return [value.detach().float().numpy()]
    return [value] if isinstance(value, np.ndarray) else []


def equal(one, other):
    one, other = flat(one), flat(other)
    return len(one) == len(other) > 0 and all(
        np.array_equal(a, b, equal_nan=True) for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("name", list(zoo.PIPELINES))
def test_pipeline_family(name):
    pipe, arguments = zoo.PIPELINES[name]()

    def run():
        torch.manual_seed(3)
        np.random.seed(3)
        with torch.no_grad():
            output = pipe(**arguments)
        return output, torch.get_rng_state()

    run()  # first calls of some pipelines differ from later ones
    expected, expected_rng = run()
    steps = hidden_steps(pipe, run)
    classes, instances = class_state(), instance_state(pipe)
    with trace(pipe) as t:
        output, rng = run()
    assert equal(output, expected), "the output changed"
    assert torch.equal(rng, expected_rng), "the random numbers changed"
    assert not difference(classes, class_state()), "something stayed on a class"
    assert not difference(instances, instance_state(pipe)), "something stayed on an instance"

    found = collections.Counter(boundary.name for boundary in t)
    missing = {step: (calls, found[step]) for step, calls in steps.items() if found[step] < calls}
    assert not missing, f"hidden steps not seen (called, seen): {missing}"
    assert steps, "the oracle saw nothing"
    assert t.steps >= 2 or arguments["num_inference_steps"] < 2

    with trace(pipe, depth="all") as everything:
        output, rng = run()
    assert equal(output, expected)
    assert torch.equal(rng, expected_rng)
    assert len(everything) > len(t)
    for shown in (
        str(t.table()),
        t._repr_html_(),
        t.tree(),
        str(t.diff(everything)),
        str(everything.table(width=120)),
    ):
        assert shown
    assert t.rows()
    assert t.facts()
    assert t.perfetto()["traceEvents"]


@pytest.mark.parametrize("name", list(zoo.MODELS))
def test_model_family(name):
    made, call = zoo.MODELS[name]()
    with torch.no_grad():
        expected = call(made)
        for depth in ("components", "all"):
            with trace(made, depth=depth) as t:
                output = call(made)
            assert equal(output, expected)
            assert t[type(made).__name__].calls >= 1
            assert str(t.table())
    if name != "torch_transformer_encoder":  # runs fused: its inner modules are never called, traced or not
        assert len(t) > len(list(made.modules())) // 3
    if call is zoo.generated and name not in ("bart",):
        assert t.steps == 4
        assert t["generate"].calls == 1


@pytest.mark.parametrize("name", ["llama", "gpt2", "t5_seq2seq", "gemma2_sliding_window", "qwen2_vl"])
def test_cache_updates_are_boundaries(name):
    made, call = zoo.MODELS[name]()
    with torch.no_grad(), trace(made) as t:
        call(made)
    updates = t["cache.update"]
    assert updates.calls == 2 * t.steps if name != "t5_seq2seq" else updates.calls > t.steps
    assert updates[0].inputs.key_states.ndim == 4
    assert updates[0].kind == "cache"
