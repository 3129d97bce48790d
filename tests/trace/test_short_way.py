"""The short way of an all-modules trace stands in for torch's own call: what torch does there must still happen."""

import torch
from torch import nn
from torch.nn.modules import module as stock

from inferlab.trace import lean, trace
from inferlab.trace.record import FULL, RECORD


def test_this_torch_is_one_that_the_short_way_was_written_for():
    assert lean._KNOWN and lean._KNOWN_IMPL


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
    count = FULL // RECORD * 2 + 7
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
