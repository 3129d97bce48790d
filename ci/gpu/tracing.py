"""What tracing costs on the card, and whether a trace's device times and peaks add up."""

from __future__ import annotations

import contextlib
import gc
import os
import statistics
import time
from typing import Any

import torch

from inferlab.trace import trace

from .measure import interval, wait

GOALS = {"default depth": 1.02, "all modules": 1.15}


def cost(pipe, call, device: str, rounds: int, short=None) -> dict[str, Any]:
    """Ratios of traced to untraced wall time, interleaved; the order rotates, the collector rests while a run is timed.

    The ratio is the median over rounds of (traced / untraced of the same round), with the interval in which 95% of
    bootstrap medians lie. `us_per_boundary` is CPU time of the process, less that of starting and ending the trace.
    `short`, if given, is a call of few steps for the profiler, which is slow.
    """
    modules = [m for part in pipe.components.values() if isinstance(part, torch.nn.Module) for m in part.modules()]
    counts: dict[str, int] = {}

    def traced(name, **options):
        def once():
            with trace(pipe, **options) as t:
                call()
            counts[name] = sum(log.count for log in t._recorder.logs.values())

        return once

    def hooked():
        with contextlib.ExitStack() as stack:
            for module in modules:
                stack.callback(module.register_forward_pre_hook(lambda m, a, k: None, with_kwargs=True).remove)
                stack.callback(module.register_forward_hook(lambda m, a, k, o: None, with_kwargs=True).remove)
            call()

    variants = {"untraced": call, "default depth": traced("default depth"), "all modules": traced("all modules", depth="all"),
                "empty hooks on all modules": hooked}
    for run in variants.values():
        run()
    found: dict[str, list] = {name: [] for name in variants}
    names = list(variants)
    for number in range(rounds):
        for name in names[number % len(names):] + names[: number % len(names)]:
            found[name].append(_timed(variants[name], device))
    starts = {name: _start(pipe, device, **options) for name, options in (("default depth", {}), ("all modules", {"depth": "all"}))}
    rows = [_row(name, found, counts.get(name), starts.get(name)) for name in names[1:]]
    if short:
        rows.append(_profiler(short, device))
    return {"rows": rows, "untraced_seconds": interval([wall for wall, _ in found["untraced"]]),
            "seconds": {name: [round(wall, 5) for wall, _ in times] for name, times in found.items()},
            "processors": len(os.sched_getaffinity(0)), "rounds": rounds}


def _timed(run, device: str) -> tuple[float, float]:
    gc.collect()
    gc.disable()
    try:
        wait(device)
        began, cpu = time.perf_counter(), time.process_time()
        run()
        wait(device)
        return time.perf_counter() - began, time.process_time() - cpu
    finally:
        gc.enable()


def _start(pipe, device: str, **options) -> float:
    def empty():
        with trace(pipe, **options):
            pass

    return statistics.median(_timed(empty, device)[1] for _ in range(9))


def _row(name: str, found: dict, boundaries: int | None, start: float | None) -> dict[str, Any]:
    pairs = list(zip(found[name], found["untraced"], strict=True))
    median, low, high = interval([ours[0] / plain[0] for ours, plain in pairs])
    row: dict[str, Any] = {"name": name, "ratio": median, "low": low, "high": high,
                           "best_over_best": min(o[0] for o, _ in pairs) / min(p[0] for _, p in pairs)}
    if boundaries:
        row |= {"boundaries": boundaries, "start_ms": start * 1e3}
    if boundaries and boundaries > 500:
        row["us_per_boundary"] = statistics.median((o[1] - p[1] - start) / boundaries * 1e6 for o, p in pairs)
    if name in GOALS:
        row |= {"goal": GOALS[name], "met": median <= GOALS[name]}
    return row


def _profiler(call, device: str, rounds: int = 2) -> dict[str, Any]:
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if torch.device(device).type == "cuda" else [])

    def once():
        with profile(activities=activities, record_shapes=True):
            call()

    call()
    ratios = []
    for _ in range(rounds):
        plain = _timed(call, device)[0]
        ratios.append(_timed(once, device)[0] / plain)
    return {"name": "torch.profiler with shapes", "ratio": statistics.median(ratios), "low": min(ratios), "high": max(ratios),
            "rounds": rounds, "of": "a call of few steps, its start and end included"}


def sums(pipe, call, device: str) -> dict[str, Any]:
    """One trace of a call: the device milliseconds of its outermost boundaries beside those of the call itself, which
    stretches were host-bound, and each peak's boundary."""
    with trace(pipe, memory="peaks") as t:
        call()
    whole = next(b for b in t.boundaries if b.kind == "pipeline")
    inside = [b for b in whole.children if not b.inferred]
    timed = [b for b in inside if b.gpu_ms is not None]
    found: dict[str, Any] = {"boundaries": len(t), "call_ms": whole.ms, "host_ms": sum(b.ms or 0 for b in inside),
                             "bound": {kind: sum(1 for b in t.boundaries if b.bound == kind) for kind in ("host", "device")}}
    if timed:
        total = sum(b.gpu_ms for b in timed)
        peaks = [(b.memory["peak"], b.name) for b in t.boundaries if b.memory and b.parent is not None]
        found |= {"call_gpu_ms": whole.gpu_ms, "sum_gpu_ms": total, "sum_over_call": total / whole.gpu_ms,
                  "device_ms_by_name": _by_name(timed), "bound_ms": {
                      kind: sum(b.gpu_ms for b in timed if b.bound == kind) for kind in ("host", "device")},
                  "peak_bytes": t.peak_bytes, "peak_at": max(peaks)[1],
                  "peak_by_name": {name: max(p for p, n in peaks if n == name) for name in dict.fromkeys(n for _, n in peaks)},
                  "allocator_peak": whole.memory["peak"]}
    found["table"] = str(t.table(level=1, width=150)).split("\n")[:40]
    return found


def _by_name(boundaries) -> dict[str, float]:
    totals: dict[str, float] = {}
    for b in boundaries:
        totals[b.name] = totals.get(b.name, 0.0) + b.gpu_ms
    return {name: round(ms, 3) for name, ms in totals.items()}
