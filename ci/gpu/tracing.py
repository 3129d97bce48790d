"""What tracing costs on the card, and whether a trace's device times and peaks add up."""

from __future__ import annotations

import contextlib
import gc
import os
import random
import statistics
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from ci.bench_trace import hooked, interval
from inferlab.trace import trace

from .measure import wait

GOALS = {"default depth": 1.02, "all modules": 1.15}


HOOKS = "empty hooks on all modules"
#: What is timed, each between two untraced runs, and in which rounds: the nearest to its goal is timed most.
EVERY = {"default depth": 1, "all modules": 3, HOOKS: 12}


def cost(pipe, call, device: str, rounds: int, short=None, more=lambda: True) -> dict[str, Any]:
    """Ratios of traced to untraced wall time, on one processor, the collector at rest while a run is timed.

    Every traced run stands between two untraced ones. `ratio` is the median over those pairs of its seconds
    over the mean of the two, with the interval in which 95% of bootstrap medians lie: the host's speed
    drifts. `of_medians` is the median of all traced runs over that of all untraced ones, resampled likewise;
    `of_quartiles` the same of lower quartiles, which a disturbed run hardly moves; `cpu` is the median of
    ratios of the process's own CPU seconds. `counted` does without runs of the whole call: the time to start
    and end a trace, and the boundaries at their measured time each, over the call. `short`, if given, is a
    call of few steps for the profiler, which is slow. No round is begun once `more()` is false.
    """
    modules = [m for part in pipe.components.values() if isinstance(part, torch.nn.Module)
               for m in part.modules()]
    counts: dict[str, int] = {}

    def traced(name, **options):
        def once():
            with trace(pipe, **options) as t:
                call()
            counts[name] = sum(log.count for log in t._recorder.logs.values())

        return once

    variants = {"default depth": traced("default depth"), "all modules": traced("all modules", depth="all"),
                HOOKS: hooked(modules, call)}
    with one_processor() as processor:
        for run in (call, *variants.values()):
            run()
        gc.collect()
        gc.freeze()  # what lives now need not be looked through before each run
        found: dict[str, list] = {name: [] for name in variants}
        stolen = _stolen(processor)
        plain = [_timed(call, device)]
        for number in range(rounds):
            if number and not more():
                rounds = number
                break
            for name in [name for name, every in EVERY.items() if number % every == 0]:
                ours = _timed(variants[name], device)
                plain.append(_timed(call, device))
                found[name].append((ours, plain[-2], plain[-1]))
        stolen = None if stolen is None else round(_stolen(processor) - stolen, 2)
        starts = {name: _start(pipe, device, **options)
                  for name, options in (("default depth", {}), ("all modules", {"depth": "all"}))}
        rows = [_row(name, found[name], plain, counts.get(name), starts.get(name)) for name in variants]
        gc.unfreeze()
        if short:
            rows.append(_profiler(short, device))
    walls = [wall for wall, _ in plain]
    return {"rows": rows, "untraced_seconds": interval(walls), "rounds": rounds, "processor": processor,
            "stolen_seconds": stolen,
            "untraced_again": interval([b / a for a, b in pairwise(walls)]),
            "untraced": [round(wall, 5) for wall in walls]}


@contextlib.contextmanager
def one_processor():
    """Keeps this thread on one processor in the block, where the system can: the one on which a fixed piece
    of work varies least, chosen before anything is timed. Gives its number, or None."""
    if not hasattr(os, "sched_setaffinity"):
        yield None
        return
    before = os.sched_getaffinity(0)

    def worst(processor: int) -> float:
        os.sched_setaffinity(0, {processor})
        times = []
        for _ in range(40):
            began = time.perf_counter()
            sum(range(20_000))
            times.append(time.perf_counter() - began)
        return sorted(times)[-4]

    try:
        chosen = min(sorted(before), key=worst)
        os.sched_setaffinity(0, {chosen})
        yield chosen
    finally:
        os.sched_setaffinity(0, before)


def _stolen(processor: int | None) -> float | None:
    """Seconds that the host took from a processor since it began to count; None where the kernel does not
    say."""
    try:
        lines = Path("/proc/stat").read_text("ascii").splitlines()
    except OSError:
        return None
    row = next((line.split() for line in lines if line.startswith(f"cpu{processor} ")), [])
    return int(row[8]) / os.sysconf("SC_CLK_TCK") if len(row) > 8 else None


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


def _quartile(values: list) -> float:
    return sorted(values)[(len(values) - 1) // 4]


def of_all(ours: list, plain: list, statistic, resamples: int = 2000) -> list[float]:
    """[ratio, low, high]: a statistic of all traced over that of all untraced seconds, both resampled for the
    interval."""
    chooser = random.Random(0)
    ratios = sorted(statistic(chooser.choices(ours, k=len(ours)))
                    / statistic(chooser.choices(plain, k=len(plain)))
                    for _ in range(resamples))
    return [round(x, 4) for x in (statistic(ours) / statistic(plain), ratios[int(0.025 * resamples)],
                                  ratios[int(0.975 * resamples)])]


def _row(name: str, found: list, plain: list, boundaries: int | None, start: float | None) -> dict[str, Any]:
    ratios = [2 * ours[0] / (one[0] + two[0]) for ours, one, two in found]
    median, low, high = interval(ratios)
    ours, base = [o[0] for o, _, _ in found], [wall for wall, _ in plain]
    row: dict[str, Any] = {
        "name": name, "ratio": median, "low": low, "high": high, "rounds": len(found),
        "ratios": [round(ratio, 4) for ratio in ratios],
        "of_medians": of_all(ours, base, statistics.median), "of_quartiles": of_all(ours, base, _quartile),
        "cpu": round(statistics.median(2 * o[1] / (one[1] + two[1]) for o, one, two in found), 4),
        "best_over_best": min(ours) / min(base)}
    if boundaries:
        row |= {"boundaries": boundaries, "start_ms": start * 1e3}
    if boundaries and boundaries > 500:
        row["us_per_boundary"] = statistics.median(
            (ours[1] - (one[1] + two[1]) / 2 - start) / boundaries * 1e6 for ours, one, two in found)
    if name in GOALS:
        row |= {"goal": GOALS[name], "met": median <= GOALS[name]}
    return row


def pieces_us(device: str, repeats: int = 2000) -> dict[str, float]:
    """Microseconds of what a boundary does besides noting itself, each alone, best of five means of many."""
    found = {"clock": _each(time.perf_counter_ns, repeats)}
    if torch.device(device).type != "cuda":
        return found
    from inferlab.trace.recording.cuda_probe import CudaProbe

    index = torch.cuda.current_device()
    probe = CudaProbe(torch.cuda, index, True, True)
    events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    stream = torch.cuda.current_stream(index)

    def both():
        probe.leave(probe.enter())
        if len(probe.pending) > 500:
            probe.close()

    found |= {
        "record an event": _each(lambda: events[0].record(stream), repeats),
        "which stream": _each(lambda: probe._stream_now(index), repeats),
        "is a graph captured": _each(probe._capturing, repeats),
        "read the allocator": _each(probe._read, repeats),
        "read it through "
        "torch.cuda.memory_allocated": _each(lambda: torch.cuda.memory_allocated(index), repeats),
        "enter and leave": _each(both, 500),
    }
    probe.close()
    return found


def _each(run, repeats: int) -> float:
    def mean() -> float:
        began = time.perf_counter()
        for _ in range(repeats):
            run()
        return (time.perf_counter() - began) / repeats

    return round(min(mean() for _ in range(5)) * 1e6, 3)


def counted(row: dict[str, Any], each_us: float, untraced: float) -> dict[str, float]:
    """What a trace must cost by its parts: start and end, and the boundaries at `each_us`, as milliseconds
    and as a ratio."""
    ms = {"start_ms": row["start_ms"], "boundaries_ms": row["boundaries"] * each_us / 1e3}
    return {name: round(value, 2) for name, value in ms.items()} | {"ratio": round(1 + sum(ms.values()) / 1e3
                                                                                   / untraced, 4)}


def boundary_us(device: str, count: int = 400, repeats: int = 7) -> dict[str, float]:
    """Microseconds a boundary in a loop of modules that do nothing, best of `repeats` less the best without a
    trace: the short way of all-modules traces, and the full one with and without the device's clock and
        allocator."""
    model = torch.nn.Sequential(*[torch.nn.Identity() for _ in range(count)])
    x = torch.ones(2, 4, 16, 16, device=device)

    def best():
        return min(_timed(lambda: model(x), device)[0] for _ in range(repeats))

    plain = best()
    found = {}
    for name, options in {"all modules": {"depth": "all"}, "parts": {},
                          "parts, no allocator": {"memory": False},
                          "parts, no clock": {"gpu_time": False},
                          "parts, neither": {"memory": False, "gpu_time": False}}.items():
        with trace(model, **options):
            found[name] = round((best() - plain) / count * 1e6, 2)
    return found


def _profiler(call, device: str, rounds: int = 2) -> dict[str, Any]:
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA]
                                           if torch.device(device).type == "cuda" else [])

    def once():
        with profile(activities=activities, record_shapes=True):
            call()

    call()
    ratios = []
    for _ in range(rounds):
        plain = _timed(call, device)[0]
        ratios.append(_timed(once, device)[0] / plain)
    return {"name": "torch.profiler with shapes", "ratio": statistics.median(ratios), "low": min(ratios),
            "high": max(ratios),
            "rounds": rounds, "of": "a call of few steps, its start and end included"}


def sums(pipe, call, device: str) -> dict[str, Any]:
    """One trace of a call: the device milliseconds of its outermost boundaries beside those of the call
    itself, which stretches were host-bound, and each peak's boundary."""
    with trace(pipe, memory="peaks") as t:
        call()
    whole = next(b for b in t.boundaries if b.kind == "pipeline")
    inside = [b for b in whole.children if not b.inferred]
    timed = [b for b in inside if b.gpu_ms is not None]
    found: dict[str, Any] = {"boundaries": len(t), "call_ms": whole.ms,
                             "host_ms": sum(b.ms or 0 for b in inside),
                             "bound": {kind: sum(1 for b in t.boundaries if b.bound == kind)
                                       for kind in ("host", "device")}}
    if timed:
        total = sum(b.gpu_ms for b in timed)
        peaks = [(b.memory["peak"], b.name) for b in t.boundaries if b.memory and b.parent is not None]
        found |= {"call_gpu_ms": whole.gpu_ms, "sum_gpu_ms": total, "sum_over_call": total / whole.gpu_ms,
                  "device_ms_by_name": _by_name(timed), "bound_ms": {
                      kind: sum(b.gpu_ms for b in timed if b.bound == kind) for kind in ("host", "device")},
                  "peak_bytes": t.peak_bytes, "peak_at": max(peaks)[1],
                  "peak_by_name": {name: max(p for p, n in peaks if n == name)
                                   for name in dict.fromkeys(n for _, n in peaks)},
                  "allocator_peak": whole.memory["peak"]}
    found["table"] = str(t.table(level=1, width=150)).split("\n")[:40]
    return found


def _by_name(boundaries) -> dict[str, float]:
    totals: dict[str, float] = {}
    for b in boundaries:
        totals[b.name] = totals.get(b.name, 0.0) + b.gpu_ms
    return {name: round(ms, 3) for name, ms in totals.items()}
