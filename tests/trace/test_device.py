"""The device's clock and allocator, with a device that keeps its own time; and the bytes of live tensors."""

import pytest
import torch
from torch import nn

from inferlab.trace import trace
from inferlab.trace.recording.cuda_probe import CudaProbe, LazyProbe
from tests.trace import zoo


class Device:
    """Stands in for torch.cuda: a queue with its own clock (milliseconds) and an allocator."""

    def __init__(self):
        self.now = 0.0
        self.held = self.peak = 0
        self.events = self.waits = self.resets = 0
        self.capturing = False
        self.initialized = True
        device = self

        class Event:
            def __init__(self, enable_timing):
                assert enable_timing
                device.events += 1

            def record(self, stream):
                assert not device.capturing, "an event was recorded during graph capture"
                assert stream == "stream 0"
                self.at = device.now

            def elapsed_time(self, other):
                return other.at - self.at

            def query(self):
                return True

        self.Event = Event

    def is_initialized(self):
        return self.initialized

    def current_device(self):
        return 0

    def is_current_stream_capturing(self):
        return self.capturing

    def current_stream(self, index):
        return f"stream {index}"

    def synchronize(self, index):
        self.waits += 1

    def memory_stats_as_nested_dict(self, index):
        return {"allocated_bytes": {"all": {"current": self.held, "peak": self.peak}}}

    def reset_peak_memory_stats(self, index):
        self.resets += 1
        self.peak = self.held

    def allocate(self, size):
        self.held += size
        self.peak = max(self.peak, self.held)


@pytest.fixture
def device(monkeypatch):
    from inferlab.trace.recording import cuda_probe as module

    monkeypatch.setattr(module, "pool", {})
    return Device()


def traced_on(device, memory):
    """A trace whose probe reads `device`, of a model whose layers take time and memory there."""

    class Layer(nn.Module):
        def __init__(self, ms, size, temporary):
            super().__init__()
            self.work = (ms, size, temporary)

        def forward(self, x):
            ms, size, temporary = self.work
            device.now += ms
            device.allocate(size + temporary)
            device.allocate(-temporary)
            return x

    model = nn.Sequential(Layer(5.0, 100, 1000), Layer(7.0, 50, 10))
    block = trace(model)
    t = block.__enter__()
    t._recorder.probe = CudaProbe(device, 0, memory, True)
    return model, block, t


def test_device_times_come_from_events_without_waiting(device):
    model, block, t = traced_on(device, True)
    for _ in range(3):
        model(torch.ones(1))
    assert device.waits == 0
    block.__exit__(None, None, None)
    assert device.waits == 1
    assert [b.gpu_ms for b in t["Sequential"]] == [12.0] * 3
    assert sum(b.gpu_ms for name in ("0", "1") for b in t[name]) == sum(b.gpu_ms for b in t["Sequential"])
    assert all(b.bound == "device" for b in t)
    assert "gpu ms" in str(t.table())
    assert "device" in t._repr_html_()
    gpu = [e for e in t.perfetto()["traceEvents"] if e["pid"] == 2 and e["ph"] == "X"]
    assert [e["dur"] for e in gpu if e["name"] == "0"] == [5000.0] * 3


def test_events_are_pooled(device):
    for _ in range(3):
        model, block, _ = traced_on(device, False)
        for _ in range(5):
            model(torch.ones(1))
        block.__exit__(None, None, None)
    assert device.events == 2 * 3 * 5 + 1


def test_many_events_in_flight_are_resolved_on_the_way(device, monkeypatch):
    monkeypatch.setattr(CudaProbe, "BATCH", 16)
    model, block, t = traced_on(device, False)
    for _ in range(100):
        model(torch.ones(1))
    assert device.waits == 0
    assert device.events < 60
    block.__exit__(None, None, None)
    assert all(b.gpu_ms is not None for b in t)


def test_without_a_reset_only_a_raised_mark_is_exact(device):
    model, block, t = traced_on(device, True)
    model(torch.ones(1))
    block.__exit__(None, None, None)
    assert device.resets == 0
    assert t["0"][0].memory == {"before": 0, "after": 100, "change": 100, "peak": 1100, "peak_exact": True}
    assert t["1"][0].memory["peak_exact"] is False
    assert t.peak_bytes == 1100


def test_every_boundary_has_its_own_peak_when_asked(device):
    model, block, t = traced_on(device, "peaks")
    model(torch.ones(1))
    block.__exit__(None, None, None)
    assert t["0"][0].memory["peak"] == 1100
    assert t["1"][0].memory["peak"] == 160
    assert t["Sequential"][0].memory["peak"] == 1100
    assert t["Sequential"][0].memory["after"] == 150


def test_nothing_is_recorded_into_a_graph_that_is_captured(device):
    model, block, t = traced_on(device, True)
    device.capturing = True
    model(torch.ones(1))
    device.capturing = False
    model(torch.ones(1))
    block.__exit__(None, None, None)
    assert [b.gpu_ms for b in t["Sequential"]] == [None, 12.0]


def test_a_device_that_nobody_uses_is_not_started(device):
    device.initialized = False
    probe = LazyProbe(device, {}, True, True)
    assert probe.enter() is None
    device.initialized = True
    mark = probe.enter()
    assert probe.leave(mark)["memory"]["before"] == 0


def test_live_tensor_bytes_show_what_tiling_saves():
    torch.manual_seed(0)
    vae = zoo.vae().eval()
    z = torch.randn(2, 4, 32, 32)

    def peak():
        with torch.no_grad(), trace(vae, memory="tensors") as t:
            out = vae.decode(z).sample
        return t["decode"][0].memory["peak"], out

    plain, expected = peak()
    with torch.no_grad():
        assert torch.equal(expected, vae.decode(z).sample)
    vae.enable_slicing()
    sliced, _ = peak()
    vae.disable_slicing()
    vae.enable_tiling()
    tiled, _ = peak()
    assert plain > 2 * 16 * 64 * 64 * 4 * 2  # two activations of the widest layer at full resolution
    assert sliced < 0.8 * plain
    assert tiled < sliced


def test_on_a_cpu_memory_is_not_read(tmp_path):
    model = nn.Sequential(nn.Linear(4, 4))
    with trace(model) as t:
        model(torch.ones(2, 4))
    if not torch.cuda.is_available():
        assert t["Sequential"][0].memory is None
        assert t.peak_bytes is None
    assert t["Sequential"][0].bytes_out == 32


def test_weights_that_an_operation_only_looks_at_are_not_counted_as_live_tensors():
    layer = torch.nn.Linear(512, 512)  # its operation is a transpose of the weight, a view, and a product
    x = torch.zeros(4, 512)
    with torch.no_grad(), trace(layer, memory="tensors") as t:
        y = layer(x)
        y.add_(1)
        x.mul_(2)
    made = 4 * 512 * 4
    assert t.boundaries[0].memory["change"] == made
    assert t.boundaries[0].memory["peak"] == made


def test_live_bytes_pass_by_sparse_arguments_and_what_is_written_into_a_given_tensor():
    weight = torch.eye(256).to_sparse()
    given = torch.zeros(256, 256)

    def call():
        return torch.add(torch.sparse.mm(weight, torch.ones(256, 256)), 1, out=given)

    with torch.no_grad(), trace(call, memory="tensors") as t:
        call()
    assert t.boundaries[0].memory["change"] == 0
