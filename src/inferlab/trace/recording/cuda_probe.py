"""The device's clock and allocator: pooled CUDA events, resolved at the end, and allocator statistics.

Nothing here waits for the device while the traced code runs, and nothing starts CUDA where it has not been
used.
"""

from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

import torch

Mark = Any  # what `enter` read, for `leave`
pool: dict[int, list] = {}  # device index -> timing events that no open trace uses


def open_probe(components: dict, memory: bool | str, timed: bool) -> Any:
    """The probe of a trace, or None when there is nothing to read; `memory` and `timed` as in `trace`.

    `components` are the trace's parts by name: the first one on a CUDA device says which device is read.
    """
    if memory == "tensors":
        from .live_bytes import TensorBytesProbe

        return TensorBytesProbe(_cuda_probe(components, False, timed))
    return _cuda_probe(components, memory, timed)


def _cuda_probe(components: dict, memory: bool | str, timed: bool) -> "LazyProbe | None":
    if not (memory or timed) or not torch.cuda.is_available():
        return None
    probe = LazyProbe(torch.cuda, components, memory, timed)
    probe.open()
    return probe


def _device_of(cuda: Any, components: dict) -> int:
    """The CUDA device of the first component that is on one, else the current one."""
    for part in components.values():
        if isinstance(part, torch.nn.Module):
            for tensor in part.parameters():
                if tensor.device.type == "cuda":
                    return tensor.device.index
                break
    return cuda.current_device()


class LazyProbe:
    """Waits until something uses CUDA (a model may be moved there inside the block), then reads it."""

    def __init__(self, cuda: Any, components: dict, memory: bool | str, timed: bool) -> None:
        self.cuda, self.components, self.memory, self.timed = cuda, components, memory, timed
        self.inner: CudaProbe | None = None

    def open(self) -> None:
        """Begins to read, if CUDA is in use by now."""
        if self.inner is None and self.cuda.is_initialized():
            index = _device_of(self.cuda, self.components)
            self.inner = CudaProbe(self.cuda, index, self.memory, self.timed)

    def enter(self) -> Mark:
        """As `CudaProbe.enter`; None as long as nothing uses CUDA."""
        if self.inner is None:
            self.open()
        return None if self.inner is None else self.inner.enter()

    def leave(self, mark: Mark) -> dict:
        """As `CudaProbe.leave`."""
        assert self.inner is not None, "enter() gave this mark"
        return self.inner.leave(mark)

    def idle(self, mark: Mark) -> dict:
        """As `CudaProbe.idle`."""
        assert self.inner is not None, "enter() gave this mark"
        return self.inner.idle(mark)

    def close(self) -> None:
        """Ends the reading."""
        if self.inner is not None:
            self.inner.close()


def _readers(cuda: Any) -> tuple[Callable, Callable, Callable]:
    """Three functions: whether a graph is being captured; allocator statistics; the current stream.

    torch.cuda's own functions are thin wrappers. What they wrap costs less, and is used where torch has it.
    The allocator builds its whole table of statistics at each reading; two numbers of it cannot be read
    alone.
    """
    inside: Any = torch._C if cuda is torch.cuda else None
    return (
        getattr(inside, "_cuda_isCurrentStreamCapturing", cuda.is_current_stream_capturing),
        getattr(inside, "_cuda_memoryStats", cuda.memory_stats_as_nested_dict),
        getattr(inside, "_cuda_getCurrentStream", cuda.current_stream),
    )


class CudaProbe:
    """Reads one CUDA device around each coarse boundary.

    `cuda` is the module torch.cuda. Events are recorded on the current stream of the device, taken from a
    pool, and turned into milliseconds when the trace closes (or earlier, for those that have already
    finished).
    """

    BATCH = 2048  # pairs of events in flight before finished ones are turned into numbers
    LAG_MS = 0.25  # a device that finishes later than this after the host went on is the bottleneck

    def __init__(self, cuda: Any, index: int, memory: bool | str, timed: bool) -> None:
        self.cuda, self.index, self.memory, self.timed = cuda, index, memory, timed
        self.pending: list = []  # (start event, end event, host's end in ns, result dict)
        self.peaks: list[int] = []  # with memory="peaks": highest value so far of each open boundary
        self.origin: Any = None  # the first event, and when the host recorded it
        self.origin_ns = 0
        self.stream_id: Any = None  # the stream of the last event: its object is made once
        self.stream: Any = None
        self._capturing, self._statistics, self._stream_now = _readers(cuda)
        self._free = pool.setdefault(index, [])

    def _event(self) -> Any:
        event = self._free.pop() if self._free else self.cuda.Event(enable_timing=True)
        now = self._stream_now(self.index)
        if now != self.stream_id:
            self.stream_id, self.stream = now, self.cuda.current_stream(self.index)
        event.record(self.stream)
        return event

    def _read(self) -> tuple:
        """(bytes allocated now, highest since the last reset)."""
        allocated = self._statistics(self.index).get("allocated_bytes", {}).get("all", {})
        return allocated.get("current", 0), allocated.get("peak", 0)

    def enter(self) -> Mark:
        """Reads clock and allocator before a call; None while a graph is captured."""
        if self._capturing():
            return None  # a graph is being captured: no event may be recorded into it
        held = high = start = None
        if self.memory:
            held, high = self._read()
            if self.memory == "peaks":
                self.peaks = [max(peak, high) for peak in self.peaks]
                self.cuda.reset_peak_memory_stats(self.index)
                self.peaks.append(held)
        if self.timed:
            if self.origin is None:
                self.origin, self.origin_ns = self._event(), perf_counter_ns()
            start = self._event()
        return (start, held, high)

    def leave(self, mark: Mark) -> dict:
        """Reads them after the call: a dict with "memory"; the times follow when the device gets there."""
        start, held, high = mark
        result: dict = {}
        if start is not None and not self._capturing():
            self.pending.append((start, self._event(), perf_counter_ns(), result))
            if len(self.pending) >= self.BATCH:
                self._resolve_finished()
        if held is not None:
            result["memory"] = self._memory(held, high)
        return result

    def idle(self, mark: Mark) -> dict:
        """As `leave`, for a call that launched and allocated nothing: nothing is read a second time."""
        start, held, _ = mark
        result: dict = {}
        if start is not None:
            self.pending.append((start, start, perf_counter_ns(), result))
        if held is not None:
            exact = self.memory == "peaks"
            if exact:
                self.peaks.pop()
            result["memory"] = {"before": held, "after": held, "change": 0, "peak": held, "peak_exact": exact}
        return result

    def _memory(self, held: int, high: int) -> dict:
        now, peak = self._read()
        if self.memory == "peaks":
            own = max(self.peaks.pop(), peak)
            self.peaks = [max(outer, own) for outer in self.peaks]
            self.cuda.reset_peak_memory_stats(self.index)
            exact = True
        else:
            # Without a reset, the mark tells this boundary's own peak only if this boundary raised it.
            exact = peak > high
            own = peak if exact else max(held, now)
        return {"before": held, "after": now, "change": now - held, "peak": own, "peak_exact": exact}

    def _resolve_finished(self) -> None:
        left = []
        for item in self.pending:
            if item[1].query():
                self._resolve(item)
            else:
                left.append(item)
        self.pending = left

    def _resolve(self, item: tuple) -> None:
        start, end, host_end_ns, result = item
        result["gpu_ms"] = 0.0 if end is start else start.elapsed_time(end)
        result["gpu_start_ms"] = self.origin.elapsed_time(start)
        lag = result["gpu_start_ms"] + result["gpu_ms"] - (host_end_ns - self.origin_ns) / 1e6
        result["lag_ms"] = lag
        result["bound"] = "device" if lag > self.LAG_MS else "host"
        result["gpu_origin_ns"] = self.origin_ns
        pool[self.index] += [start] if end is start else [start, end]

    def close(self) -> None:
        """Waits for the device once and turns all events into numbers."""
        if self.pending:
            self.cuda.synchronize(self.index)
        for item in self.pending:
            self._resolve(item)
        self.pending = []
        if self.origin is not None:
            pool[self.index].append(self.origin)
            self.origin = None
