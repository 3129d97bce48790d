"""What tracing costs on the card, and whether a trace's device times and peaks add up."""

from __future__ import annotations

import contextlib
import gc
import os
import statistics
import time
from itertools import pairwise
from typing import Any

import torch

from ci.bench_trace import hooked, interval
from inferlab.trace import trace

from .measure import wait

GOALS = {"default depth": 1.02, "all modules": 1.15}


def cost(pipe, call, device: str, rounds: int, short=None) -> dict[str, Any]:
    """Ratios of traced to untraced wall time, on one processor, the collector at rest while a run is timed.

    Every traced run stands between two untraced ones, and its ratio is to their mean: the host's speed drifts. The ratio
    of a variant is the median over rounds, with the interval in which 95% of bootstrap medians lie. `us_per_boundary` is
    CPU time of the process, less that of starting and ending the trace. `short`, if given, is a call of few steps for the
    profiler, which is slow.
    """
    modules = [m for part in pipe.components.values() if isinstance(part, torch.nn.Module) for m in part.modules()]
    counts: dict[str, int] = {}

    def traced(name, **options):
        def once():
            with trace(pipe, **options) as t:
                call()
            counts[name] = sum(log.count for log in t._recorder.logs.values())

        return once

    variants = {"default depth": traced("default depth"), "all modules": traced("all modules", depth="all"),
                "empty hooks on all modules": hooked(modules, call)}
    with one_processor():
        for run in (call, *variants.values()):
            run()
        found: dict[str, list] = {name: [] for name in variants}
        plain = [_timed(call, device)]
        for _ in range(rounds):
            for name, run in variants.items():
                ours = _timed(run, device)
                plain.append(_timed(call, device))
                found[name].append((ours, plain[-2], plain[-1]))
        starts = {name: _start(pipe, device, **options)
                  for name, options in (("default depth", {}), ("all modules", {"depth": "all"}))}
        rows = [_row(name, found[name], counts.get(name), starts.get(name)) for name in variants]
        if short:
            rows.append(_profiler(short, device))
    walls = [wall for wall, _ in plain]
    return {"rows": rows, "untraced_seconds": interval(walls), "rounds": rounds,
            "untraced_again": interval([b / a for a, b in pairwise(walls)]), "untraced": [round(wall, 5) for wall in walls]}


@contextlib.contextmanager
def one_processor():
    """Keeps this thread on one processor in the block, where the system can."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


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


def _row(name: str, found: list, boundaries: int | None, start: float | None) -> dict[str, Any]:
    ratios = [2 * ours[0] / (one[0] + two[0]) for ours, one, two in found]
    median, low, high = interval(ratios)
    row: dict[str, Any] = {"name": name, "ratio": median, "low": low, "high": high, "rounds": len(found),
                           "ratios": [round(ratio, 4) for ratio in ratios],
                           "best_over_best": min(o[0] for o, _, _ in found) / min(p[0] for _, *pair in found for p in pair)}
    if boundaries:
        row |= {"boundaries": boundaries, "start_ms": start * 1e3}
    if boundaries and boundaries > 500:
        row["us_per_boundary"] = statistics.median(
            (ours[1] - (one[1] + two[1]) / 2 - start) / boundaries * 1e6 for ours, one, two in found)
    if name in GOALS:
        row |= {"goal": GOALS[name], "met": median <= GOALS[name]}
    return row


def boundary_us(device: str, count: int = 400, repeats: int = 7) -> dict[str, float]:
    """Microseconds a boundary in a loop of modules that do nothing, best of `repeats` less the best without a trace: the
    short way of all-modules traces, and the full one with and without the device's clock and allocator."""
    model = torch.nn.Sequential(*[torch.nn.Identity() for _ in range(count)])
    x = torch.ones(2, 4, 16, 16, device=device)

    def best():
        return min(_timed(lambda: model(x), device)[0] for _ in range(repeats))

    plain = best()
    found = {}
    for name, options in {"all modules": {"depth": "all"}, "parts": {}, "parts, no allocator": {"memory": False},
                          "parts, no clock": {"gpu_time": False}, "parts, neither": {"memory": False, "gpu_time": False}}.items():
        with trace(model, **options):
            found[name] = round((best() - plain) / count * 1e6, 2)
    return found


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
