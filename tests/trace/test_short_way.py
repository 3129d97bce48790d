"""The short way of an all-modules trace stands in for torch's own call: what torch does there must still
happen."""

import gc
import warnings

import pytest
import torch
from torch import nn
from torch.nn.modules import module as stock

from inferlab.trace import trace
from inferlab.trace.recording import short_call
from inferlab.trace.recording.recorder import FULL, RECORD_BYTES
from tests.trace import zoo


def test_this_torch_is_one_that_the_short_way_was_written_for():
    assert short_call.KNOWN and short_call.KNOWN_IMPL


def test_hooks_of_every_kind_run_inside_a_trace():
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    x = torch.ones(2, 3, requires_grad=True)
    seen = []
    with trace(model, depth="all") as t:
        plain = model(x)
        handles = [
            model[0].register_forward_pre_hook(lambda m, a: seen.append("before") or (a[0] * 2,)),
            model[0].register_forward_hook(lambda m, a, o: seen.append("after") or o + 1),
            model[1].register_full_backward_hook(lambda m, i, o: seen.append("backward")),
            stock.register_module_forward_hook(lambda m, a, o: seen.append(type(m).__name__)),
        ]
        hooked = model(x)
        hooked.sum().backward()
        for handle in handles:
            handle.remove()
        assert torch.equal(model(x), plain)
    assert torch.equal(hooked, torch.relu(model[0](x * 2) + 1))
    assert seen == ["before", "Linear", "after", "ReLU", "Sequential", "backward"]
    assert t["0"].calls == t["1"].calls == 3


def test_a_class_with_a_call_of_its_own_keeps_it():
    class Doubled(nn.Identity):
        def _call_impl(self, *args, **kwargs):
            return 2 * super()._call_impl(*args, **kwargs)

    model = nn.Sequential(Doubled(), nn.Identity())
    with trace(model, depth="all"):
        assert model(torch.ones(1)).item() == 2.0


def test_jit_tracing_inside_a_trace_sees_the_modules():
    model = nn.Sequential(nn.Linear(2, 2))
    with trace(model, depth="all"):
        graph = torch.jit.trace(model, torch.ones(1, 2), check_trace=False)
    assert "Linear" in str(graph.graph)


def test_more_calls_than_the_buffer_holds_read_early_and_late():
    count = FULL // RECORD_BYTES * 2 + 7
    model = nn.Sequential(*[nn.Identity() for _ in range(count)])
    with trace(model, depth="all") as t:
        model(torch.ones(1))
        early = [b.name for b in t.boundaries]
        assert [b.name for b in t.boundaries] == early
        model(torch.ones(1))
    assert early == ["Sequential", *map(str, range(count))]
    assert [b.name for b in t.boundaries] == early * 2
    assert all(b.parent.name == "Sequential" for b in t.boundaries if b.name != "Sequential")


def test_points_of_one_signature_share_what_they_compare_with():
    model = nn.Sequential(*[nn.Identity() for _ in range(4)])
    with trace(model, depth="all") as t:
        model(torch.ones(2, 3))
        known = {id(point.known_in) for point in t._recorder.points if point.known_in[3] >= 0}
    assert len(known) == 1


def recorded(model, run, **options) -> list:
    """All that a trace records of a run but times, threads and levels of memory."""
    torch.manual_seed(0)
    with trace(model, depth="all", **options) as t:
        run()
    return [{k: v for k, v in row.items() if k not in ("ms", "thread")} for row in t.rows()]


def test_the_short_way_records_what_the_usual_one_does(monkeypatch):
    pipe, arguments = zoo.PIPELINES["stable_diffusion"]()
    short = recorded(pipe, lambda: pipe(**arguments))
    monkeypatch.setattr(short_call, "KNOWN_IMPL", False)
    usual = recorded(pipe, lambda: pipe(**arguments))
    assert len(short) > 500
    assert short == usual


class Pair(nn.Module):
    def forward(self, *args, **kwargs):
        return (*args, *kwargs.values())


def test_a_call_that_differs_in_anything_from_the_last_one_is_told_apart(monkeypatch):
    model = nn.ModuleDict({"pair": Pair()})
    x, y = torch.ones(2, 3), torch.ones(3, 2)
    calls = [
        ((x, y), {}), ((x, y), {}), ((y, x), {}), ((x, y.double()), {}), ((x, y.to("meta")), {}),
        ((x, None), {}),
        ((x,), {}), ((x,), {"a": y}), ((x,), {"b": y}), ((x,), {"b": y, "a": None}),
        ((x,), {"a": None, "b": y}),
        ((x, 1), {}), ((x, True), {}), ((x, 1.0), {}), ((x, 1), {}), ((x, "1"), {}), ((x, [y]), {}),
        ((x, [x]), {}),
        ((x, nn.Parameter(y)), {}), ((x, y), {}), ((), {}), ((None,), {}), ((x,), {}), ((y,), {}),
        ((x[None],), {}),
    ]

    def run():
        for args, kwargs in calls:
            model["pair"](*args, **kwargs)

    short = recorded(model, run)
    monkeypatch.setattr(short_call, "KNOWN_IMPL", False)
    assert short == recorded(model, run)
    assert len(short) == len(calls)


def test_a_tensor_without_a_shape_goes_through():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # nested tensors are a prototype
        x = torch.nested.nested_tensor([torch.ones(2, 4), torch.ones(3, 4)])
    with torch.no_grad(), trace(model, depth="all") as t:
        y = model(x)
        model(torch.ones(2, 4))
    assert y.is_nested
    assert t["0"].calls == 2
    assert t["0"][1].outputs.shape == (2, 4)
    assert any("could not be described" in note for note in t.notes)


def test_a_class_and_its_subclass_are_both_recorded_once():
    class Own(nn.Identity):
        def __call__(self, *args, **kwargs):
            return super().__call__(*args, **kwargs)

    class Derived(nn.Identity):
        pass

    model = nn.Sequential(nn.Identity(), Derived(), Own())
    stranger = Derived()
    with trace(model, depth="all") as t:
        stranger(model(torch.ones(1)))
    assert t.names == ["Sequential", "0", "1", "2"]
    assert len(t) == 4
    assert not short_call.POINTS
    assert not short_call.PATCHES
    assert Derived.__call__ is nn.Module.__call__


@pytest.mark.parametrize("count", [1, 2])
def test_a_module_that_dies_leaves_its_place(count):
    model = nn.Sequential(nn.Identity(), nn.Identity(), nn.Identity())
    with trace(model, depth="all") as t:
        model(torch.ones(1))
        placed = len(short_call.POINTS)
        for _ in range(count):
            del model[-1]
        gc.collect()
        assert len(short_call.POINTS) == placed - count
        model(torch.ones(1))
    assert t["0"].calls == 2
    assert t["2"].calls == 1
