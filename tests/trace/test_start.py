"""What a trace keeps from the one before it, to start sooner, must hold only as long as it is true."""

import gc
import weakref

import pytest
import torch
from torch import nn

from inferlab.trace import trace
from inferlab.trace.recording import discover, patches
from inferlab.trace.recording.cuda_probe import CudaProbe, LazyProbe
from tests.trace import zoo


class Box:
    """A class of this module: it lasts."""

    def __init__(self):
        self.layer = nn.Linear(2, 2)

    def __call__(self, x):
        return self.finish(self.prepare(x))

    def prepare(self, x):
        return x * 2

    def finish(self, x):
        return self.layer(x)


def test_the_next_trace_takes_the_wraps_of_the_last_one():
    box, x = Box(), torch.ones(1, 2)
    plain = vars(Box).copy()
    seen = []
    for _ in range(2):
        with trace(box) as t:
            seen.append(Box.prepare)
            box(x)
        assert [b.name for b in t] == ["Box", "prepare", "finish", "layer"]
        assert vars(Box) == plain
    assert seen[0] is seen[1]
    assert not patches.in_place


def test_what_was_replaced_between_two_traces_is_recorded(monkeypatch):
    box, x = Box(), torch.ones(1, 2)
    with trace(box):
        box(x)
    monkeypatch.setattr(Box, "prepare", lambda self, x: self.more(x))
    monkeypatch.setattr(Box, "more", lambda self, x: x * 3, raising=False)
    with trace(box) as t:
        box(x)
    assert [b.name for b in t] == ["Box", "prepare", "more", "finish", "layer"]
    monkeypatch.undo()
    with trace(box) as t:
        box(x)
    assert [b.name for b in t] == ["Box", "prepare", "finish", "layer"]


def test_a_wrap_that_was_wrapped_by_somebody_is_not_taken_again():
    box, x = Box(), torch.ones(1, 2)
    before = Box.prepare
    try:
        with trace(box):
            ours = Box.prepare
            Box.prepare = lambda self, x: ours(self, x)
        for _ in range(2):
            with trace(box) as t:
                box(x)
            assert [b.name for b in t] == ["Box", "prepare", "finish", "layer"]
    finally:
        Box.prepare = before


def test_a_class_of_a_function_is_not_kept():
    def once():
        class Own(Box):
            def prepare(self, x):
                return super().prepare(x)

        with trace(Own()) as t:
            t._instrument.pipelines[0][0](torch.ones(1, 2))
        return weakref.ref(Own)

    own = once()
    gc.collect()
    assert own() is None


def test_no_tree_is_walked_where_only_components_are_recorded(monkeypatch):
    pipe, arguments = zoo.PIPELINES["stable_diffusion"]()

    def walked(*_):
        raise AssertionError("a tree of modules was walked")

    monkeypatch.setattr(discover, "shares", walked)
    monkeypatch.setattr(discover, "named_modules", walked)
    with trace(pipe) as t:
        pipe(**arguments)
    assert t["unet"].calls > 0


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda self, x: x, True),
        (lambda self, x, *rest, **more: x, True),
        (lambda self: None, True),
        (lambda self, x: x + 1, False),
        (lambda self, x: (x, x), False),
        (lambda self, x: self.x, False),
        (lambda self, x: print(x), False),
        (lambda self, x: x(), False),
        (lambda self, x: x[0], False),
    ],
)
def test_which_functions_only_hand_back(function, expected):
    assert discover.hands_back(function) is expected


class Reads:
    """As much of torch.cuda as a probe needs; counts what is asked."""

    def __init__(self):
        self.events = self.reads = self.resets = 0
        outer = self

        class Event:
            def __init__(self, enable_timing):
                outer.events += 1

            def record(self, stream):
                pass

            def elapsed_time(self, other):
                return 1.0

        self.Event = Event

    def is_current_stream_capturing(self):
        return False

    def current_stream(self, index):
        return "stream"

    def synchronize(self, index):
        pass

    def is_initialized(self):
        return True

    def current_device(self):
        return 0

    def reset_peak_memory_stats(self, index):
        self.resets += 1

    def memory_stats_as_nested_dict(self, index):
        self.reads += 1
        return {"allocated_bytes": {"all": {"current": 70, "peak": 90}}}


@pytest.mark.parametrize("memory", [True, "peaks"])
def test_a_call_in_which_nothing_can_happen_is_read_once(monkeypatch, memory):
    from inferlab.trace.recording import cuda_probe

    monkeypatch.setattr(cuda_probe, "pool", {})
    cuda = Reads()
    pipe, arguments = zoo.PIPELINES["stable_diffusion"]()
    with trace(pipe) as t:
        t._recorder.probe = probe = LazyProbe(cuda, t._instrument.components, memory, True)
        probe.inner = CudaProbe(cuda, 0, memory, True)
        pipe(**arguments)
        recorded = sum(log.count for log in t._recorder.logs.values())
    idle = t["scheduler.scale_model_input"]
    assert idle.calls > 0
    # once each, twice where something happens
    assert recorded - 1 <= cuda.reads - (recorded - idle.calls) <= recorded + 4
    assert len({id(event) for event in cuda_probe.pool[0]}) == len(cuda_probe.pool[0]) == cuda.events
    for boundary in idle:
        assert boundary.gpu_ms == 0.0
        assert boundary.memory == {"before": 70, "after": 70, "change": 0, "peak": 70,
                                   "peak_exact": memory == "peaks"}
    assert t["scheduler.step"][0].gpu_ms == 1.0
