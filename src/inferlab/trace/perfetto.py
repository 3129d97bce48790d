"""The timeline in Chrome's trace-event format, which ui.perfetto.dev and chrome://tracing load."""

from .view import plain, show

_HOST, _DEVICE = 1, 2


def timeline(trace) -> dict:
    """A dict in the "JSON Object Format": complete events ("X") per boundary, times in microseconds.

    Process 1 holds the host's threads, process 2 the device's time line where CUDA events were recorded; inferred
    boundaries are instant events; the bytes that the allocator held are a counter. Source: "Trace Event Format"
    (the Chromium project).
    """
    events = [_meta("process_name", _HOST, 0, f"{trace.title} (host)")]
    threads: dict = {}
    for boundary in trace.boundaries:
        if boundary.thread not in threads:
            threads[boundary.thread] = len(threads) + 1
            events.append(_meta("thread_name", _HOST, threads[boundary.thread], f"thread {len(threads)}"))
    gpu = any(boundary.gpu_ms is not None for boundary in trace.boundaries)
    if gpu:
        events.append(_meta("process_name", _DEVICE, 0, "device (CUDA events)"))
        events.append(_meta("thread_name", _DEVICE, 1, "boundaries"))
    for boundary in trace.boundaries:
        tid = threads[boundary.thread]
        start = max(0.0, (boundary.start_ns - trace.started) / 1e3)
        common = {"name": boundary.name, "cat": boundary.kind, "pid": _HOST, "tid": tid, "ts": start}
        if boundary.inferred:
            events.append({**common, "ph": "i", "s": "t", "args": {"inferred": boundary.note}})
            continue
        events.append(
            {**common, "ph": "X", "dur": (boundary.end_ns - boundary.start_ns) / 1e3, "args": _args(boundary)}
        )
        probe = (boundary._extra or {}).get("probe") or {}
        if probe.get("gpu_start_ms") is not None:
            events.append(
                {
                    "name": boundary.name,
                    "cat": boundary.kind,
                    "ph": "X",
                    "pid": _DEVICE,
                    "tid": 1,
                    "ts": max(
                        0.0, probe["gpu_start_ms"] * 1e3 + (probe["gpu_origin_ns"] - trace.started) / 1e3
                    ),
                    "dur": (probe["gpu_ms"] or 0.0) * 1e3,
                    "args": {"step": boundary.step, "bound": probe.get("bound")},
                }
            )
        if boundary.memory:
            end = (boundary.end_ns - trace.started) / 1e3
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
        "otherData": {"title": trace.title, "steps": trace.steps, "notes": list(trace.notes)},
    }


def _meta(kind, pid, tid, name) -> dict:
    return {"name": kind, "ph": "M", "pid": pid, "tid": tid, "ts": 0, "args": {"name": name}}


def _args(boundary) -> dict:
    args = {
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
