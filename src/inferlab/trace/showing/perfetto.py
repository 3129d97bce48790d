"""The timeline in Chrome's trace-event format, which ui.perfetto.dev and chrome://tracing load."""

from inferlab.trace.reading.boundary import Boundary
from inferlab.trace.reading.specs import plain, show

_HOST, _DEVICE = 1, 2


def timeline(boundaries: list[Boundary], title: str, started: int, other: dict) -> dict:
    """A dict in the "JSON Object Format": complete events ("X") per boundary, times in microseconds.

    Process 1 holds the host's threads, process 2 the device's time line where CUDA events were recorded;
    inferred boundaries are instant events; the bytes that the allocator held are a counter. Source: "Trace
    Event Format" (the Chromium project).

    started   the host's clock in ns when the block began: the timeline's zero
    other     data that the file holds beside the events
    """
    events = [_meta("process_name", _HOST, 0, f"{title} (host)")]
    threads: dict[int, int] = {}
    for boundary in boundaries:
        if boundary.thread not in threads:
            threads[boundary.thread] = len(threads) + 1
            events.append(_meta("thread_name", _HOST, threads[boundary.thread], f"thread {len(threads)}"))
    gpu = any(boundary.gpu_ms is not None for boundary in boundaries)
    if gpu:
        events.append(_meta("process_name", _DEVICE, 0, "device (CUDA events)"))
        events.append(_meta("thread_name", _DEVICE, 1, "boundaries"))
    for boundary in boundaries:
        tid = threads[boundary.thread]
        start = max(0.0, (boundary.start_ns - started) / 1e3)
        common = {"name": boundary.name, "cat": boundary.kind, "pid": _HOST, "tid": tid, "ts": start}
        if boundary.inferred:
            events.append({**common, "ph": "i", "s": "t", "args": {"inferred": boundary.note}})
            continue
        events.append(
            {**common, "ph": "X", "dur": (boundary.end_ns - boundary.start_ns) / 1e3, "args": _args(boundary)}
        )
        probe = boundary.probe
        if probe.get("gpu_start_ms") is not None:
            events.append(
                {
                    "name": boundary.name,
                    "cat": boundary.kind,
                    "ph": "X",
                    "pid": _DEVICE,
                    "tid": 1,
                    "ts": max(0.0, probe["gpu_start_ms"] * 1e3 + (probe["gpu_origin_ns"] - started) / 1e3),
                    "dur": (probe["gpu_ms"] or 0.0) * 1e3,
                    "args": {"step": boundary.step, "bound": probe.get("bound")},
                }
            )
        if boundary.memory:
            end = (boundary.end_ns - started) / 1e3
            for at, which in ((start, "before"), (end, "after")):
                held = boundary.memory.get(which)
                if held is not None:
                    events.append(
                        {
                            "name": "allocated bytes",
                            "ph": "C",
                            "pid": _HOST,
                            "tid": 0,
                            "ts": at,
                            "args": {"bytes": held},
                        }
                    )
    return {
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "otherData": {"title": title, **other},
    }


def _meta(kind: str, pid: int, tid: int, name: str) -> dict:
    return {"name": kind, "ph": "M", "pid": pid, "tid": tid, "ts": 0, "args": {"name": name}}


def _args(boundary: Boundary) -> dict:
    args: dict = {
        "step": boundary.step,
        "inputs": {name: show(value) for name, value in boundary.inputs.items() if value is not None},
        "outputs": show(boundary.outputs),
        "bytes_out": boundary.bytes_out,
    }
    if boundary.changes:
        args["changes"] = list(boundary.changes)
    if boundary.error:
        args["error"] = boundary.error
    if boundary.moved:
        args["moved"] = plain(boundary.moved)
    return args
