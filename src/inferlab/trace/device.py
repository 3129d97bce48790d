"""The device's clock and allocator: pooled CUDA events, resolved at the end, and allocator statistics.

Nothing here waits for the device while the traced code runs. Without CUDA there is no probe at all.
"""

import torch

_pool: dict = {}  # device index -> timing events that no open trace uses


def open_probe(recorder, instrument, memory, gpu_time):
    """The probe of a trace, or None when there is nothing to read."""
    if memory == "tensors":
        from .livebytes import TensorBytesProbe

        inner = _cuda_probe(instrument, False, gpu_time)
        return TensorBytesProbe(inner)
    return _cuda_probe(instrument, memory, gpu_time)


def _cuda_probe(instrument, memory, gpu_time):
    if not (torch.cuda.is_available() and (memory or gpu_time)):
        return None
    index = _device_of(instrument)
    if index is None:
        return None
    return CudaProbe(torch.cuda, index, memory, bool(gpu_time))


def _device_of(instrument):
    """The CUDA device of the first component that is on one, else the current one."""
    for part in instrument.components.values():
        if isinstance(part, torch.nn.Module):
            for tensor in part.parameters():
                if tensor.device.type == "cuda":
                    return tensor.device.index
                break
    return torch.cuda.current_device()


class CudaProbe:
    """Reads one CUDA device around each coarse boundary.

    `cuda` is the module torch.cuda. Events are recorded on the current stream of the device, taken from a pool, and
    turned into milliseconds when the trace closes (or earlier, for those that have already finished).
    """

    BATCH = 2048  # events in flight before finished ones are turned into numbers

    def __init__(self, cuda, index: int, memory, timed: bool):
        self.cuda, self.index, self.memory, self.timed = cuda, index, memory, timed
        self.pending: list = []  # (start event, end event, result dict)
        self.peaks: list = []  # with memory="peaks": highest value so far of each open boundary
        self.origin = None
        if timed and not self._capturing():
            self.origin = self._event()
            self.origin.record(self.cuda.current_stream(index))

    def _capturing(self) -> bool:
        return self.cuda.is_current_stream_capturing()

    def _event(self):
        free = _pool.setdefault(self.index, [])
        return free.pop() if free else self.cuda.Event(enable_timing=True)

    def _read(self) -> tuple:
        stats = self.cuda.memory_stats_as_nested_dict(self.index)
        allocated = stats.get("allocated_bytes", {}).get("all", {})
        return allocated.get("current", 0), allocated.get("peak", 0)

    def enter(self):
        if self._capturing():
            return (None, None, None)  # a graph is being captured: no event may be recorded into it
        held = high = None
        if self.memory:
            held, high = self._read()
            if self.memory == "peaks":
                self.peaks = [max(peak, high) for peak in self.peaks]
                self.cuda.reset_peak_memory_stats(self.index)
                self.peaks.append(held)
        start = None
        if self.timed and self.origin is not None:
            start = self._event()
            start.record(self.cuda.current_stream(self.index))
        return (start, held, high)

    def leave(self, mark) -> dict:
        start, held, high = mark
        result: dict = {}
        if held is None and start is None:
            return result
        if start is not None and not self._capturing():
            end = self._event()
            end.record(self.cuda.current_stream(self.index))
            self.pending.append((start, end, result))
            if len(self.pending) > self.BATCH:
                self._resolve_finished()
        if held is not None:
            now, peak = self._read()
            memory = {"before": held, "after": now, "change": now - held}
            if self.memory == "peaks":
                own = max(self.peaks.pop(), peak)
                self.peaks = [max(outer, own) for outer in self.peaks]
                self.cuda.reset_peak_memory_stats(self.index)
                memory["peak"], memory["peak_exact"] = own, True
            else:
                # Without a reset, the mark tells this boundary's own peak only if this boundary raised it.
                raised = peak > high
                memory["peak"] = peak if raised else max(held, now)
                memory["peak_exact"] = raised
            result["memory"] = memory
        return result

    def _resolve_finished(self) -> None:
        left = []
        for item in self.pending:
            if item[1].query():
                self._resolve(item)
            else:
                left.append(item)
        self.pending = left

    def _resolve(self, item) -> None:
        start, end, result = item
        result["gpu_ms"] = start.elapsed_time(end)
        result["gpu_start_ms"] = self.origin.elapsed_time(start)
        _pool[self.index] += [start, end]

    def close(self) -> None:
        """Waits for the device once and turns all events into numbers."""
        if self.origin is None:
            return
        if self.pending:
            self.cuda.synchronize(self.index)
        for item in self.pending:
            self._resolve(item)
        self.pending = []
        _pool[self.index].append(self.origin)
        self.origin = None
