"""Requests and the slots that they occupy: a workload, a run of the engine, a report, a picture."""

from __future__ import annotations

import gc
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeVar

from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from inferlab.lab.plots.style import ACCENT, DARK, MID, STYLE, finished

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from transformers import PreTrainedModel

    from inferlab.trace.trace import Trace

T = TypeVar("T")
_SHADES = (DARK, MID, "#a9c6de", "#7a8b99")


@dataclass(frozen=True)
class Workload:
    """Requests in the order of their arrival.

    Attributes:
        arrivals: the iteration before which each request arrives, never decreasing.
        outputs: how many tokens each request generates, at least 1.
    """

    arrivals: tuple[int, ...]
    outputs: tuple[int, ...]


def workload(seed: int, requests: int, gap: float, short: int = 4, long: int = 40,
             share: float = 0.25) -> Workload:
    """A random stream of requests: most answers are short, some are long, and nobody knows which before.

    Args:
        seed: the same seed gives the same stream on every machine.
        requests: how many.
        gap: mean number of iterations between two arrivals; the gaps are exponential, rounded down.
        short, long: mean lengths in tokens of the two kinds, each drawn evenly from half to one and a half of
        its mean.
        share: the share of long ones.

    Raises:
        ValueError: if there are no requests, or a mean is not positive.
    """
    if requests < 1 or gap <= 0 or short < 1 or long < 1:
        raise ValueError(f"{requests} requests with a gap of {gap} and {short} or {long} tokens make "
                         f"no stream")
    rng = random.Random(seed)
    now, arrivals, outputs = 0.0, [], []
    for _ in range(requests):
        arrivals.append(int(now))
        mean = long if rng.random() < share else short
        outputs.append(rng.randint(max(1, mean // 2), mean + mean // 2))
        now += rng.expovariate(1 / gap)
    return Workload(tuple(arrivals), tuple(outputs))


def batching_config(slots: int, page: int = 16, pages: int = 64, tokens: int = 256, **more: Any) -> Any:
    """A `ContinuousBatchingConfig` of fixed sizes under the names that the installed transformers gives them.

    Without sizes the engine fits its cache to the machine's memory and warms up, which takes minutes on a
    CPU. On a GPU it would also take another attention, replay graphs and run a call ahead; all three are off,
    so that every call of the model is made where a trace or a hook can see it, in the same order on every
    device.

    Args:
        slots: most requests in one iteration (`max_requests_per_batch`).
        page: tokens in a block of the cache; called `page_size`, and `block_size` before transformers 5.24.
        pages: blocks in the cache (`num_blocks`).
        tokens: most tokens in one iteration (`max_batch_tokens`).
        more: further fields of the config.
    """
    from dataclasses import fields

    from transformers import ContinuousBatchingConfig

    known = {field.name for field in fields(ContinuousBatchingConfig)}
    named = {"page_size" if "page_size" in known else "block_size": page}
    off = ("auto_switch_to_flash", "use_cuda_graph", "use_async_batching")
    seen = {name: False for name in off if name in known}
    return ContinuousBatchingConfig(
        num_blocks=pages, max_batch_tokens=tokens, max_requests_per_batch=slots, **{**seen, **named, **more}
    )


def engine_run(
    model: PreTrainedModel, prompts: Sequence[Sequence[int]], outputs: Sequence[int], slots: int
) -> tuple[list[list[int]], list[tuple[int, int]]]:
    """Let the library's continuous-batching engine answer requests that are all there when it starts.

    Args:
        model: any causal model that `generate_batch` takes.
        prompts: token ids of each request, at least one each; together with the outputs they must fit 64
            blocks of 16.
        outputs: how many tokens each request generates (greedy, no end token).
        slots: most requests in one iteration.

    Returns:
        The generated tokens of each request, and for each call of the model in order (tokens in the call,
        requests in it).

    Raises:
        RuntimeError: if the engine stops before every request is finished.
    """
    from inferlab.trace import trace

    with trace(model) as run:
        answers = engine_answers(model, prompts, outputs, batching_config(slots))
    return answers, calls_of(run)


def engine_answers(model: PreTrainedModel, prompts: Sequence[Sequence[int]], outputs: Sequence[int],
                   config: Any) -> list[list[int]]:
    """The generated tokens of each request; the arguments and the error are those of :func:`engine_run`.

    The engine calls a request by its number in `prompts`, as text. `config` is a `ContinuousBatchingConfig`.
    """
    from transformers import GenerationConfig

    greedy = GenerationConfig(do_sample=False, eos_token_id=-1, pad_token_id=0, max_new_tokens=max(outputs))
    manager = model.init_continuous_batching(generation_config=greedy, continuous_batching_config=config)
    finished: dict[str, list[int]] = {}
    kept = gc.get_freeze_count()
    # stopping the engine collects garbage twice: without this, over everything that torch has imported
    gc.freeze()
    try:
        for number, (prompt, new) in enumerate(zip(prompts, outputs, strict=True)):
            manager.add_request(list(prompt), request_id=str(number), max_new_tokens=new)
        manager.start()
        while len(finished) < len(prompts):
            result = manager.get_result(timeout=1)
            if result is not None and result.is_finished():
                finished[result.request_id] = list(result.generated_tokens)
            elif result is None and not manager.is_running():
                raise RuntimeError(f"the engine stopped after {len(finished)} of {len(prompts)} requests")
    finally:
        manager.stop(block=True)
        if not kept:
            gc.unfreeze()
    return [finished[str(number)] for number in range(len(prompts))]


def calls_of(run: Trace) -> list[tuple[int, int]]:
    """(tokens, requests) of each call of a causal model in a trace of continuous batching, in order."""
    calls = [b for b in run.boundaries if "cu_seq_lens_q" in (b.inputs or {})]
    top = min((b.level for b in calls), default=0)
    return [(b.inputs["input_ids"].shape[-1], b.inputs["cu_seq_lens_q"].shape[0] - 1) for b in calls
            if b.level == top]


def report(iterations: Sequence[Sequence[int]], arrivals: Sequence[int], slots: int) -> dict[str, float]:
    """What the users notice of a scheduler's run, and how full it is.

    Args:
        iterations: the numbers of the requests that get a token in each; every request gets one somewhere.
        arrivals: the iteration before which each request arrives.
        slots: how many requests an iteration may hold.

    Returns:
        `"occupancy"`, the tokens over the places of all iterations, and `"median"` and `"p99"` of the waiting
        time, in whole iterations from the arrival to the first token (percentiles by nearest rank).

    Raises:
        ValueError: if a request never gets a token.
    """
    first: dict[int, int] = {}
    for at, running in enumerate(iterations):
        for request in running:
            first.setdefault(request, at)
    if set(first) != set(range(len(arrivals))):
        raise ValueError(f"{len(arrivals)} requests arrived, and {len(first)} got a token")
    waits = sorted(first[request] - arrivals[request] for request in first)
    median, p99 = (waits[-(-percent * len(waits) // 100) - 1] for percent in (50, 99))
    return {"occupancy": sum(map(len, iterations)) / (slots * len(iterations)), "median": median, "p99": p99}


def slots_of(iterations: Sequence[Sequence[int]], slots: int) -> list[list[int | None]]:
    """Which request sits in which slot: a row of `slots` entries (a request or None) for each iteration.

    A request takes the lowest free slot in its first iteration and keeps it until its last.

    Raises:
        ValueError: if an iteration holds more requests than slots, or one twice, or a request pauses.
    """
    places: list[list[int | None]] = []
    seat: dict[int, int] = {}
    done: set[int] = set()
    for at, running in enumerate(iterations):
        if len(set(running)) != len(running):
            raise ValueError(f"iteration {at} holds a request twice: {list(running)}")
        if len(running) > slots:
            raise ValueError(f"iteration {at} holds {len(running)} requests, but there are {slots} slots")
        for gone in set(seat) - set(running):
            del seat[gone]
            done.add(gone)
        for request in running:
            if request in done:
                raise ValueError(f"request {request} runs again in iteration {at} after a pause")
            if request not in seat:
                seat[request] = min(set(range(slots)) - set(seat.values()))
        row: list[int | None] = [None] * slots
        for request, slot in seat.items():
            row[slot] = request
        places.append(row)
    return places


def occupancy_chart(runs: Mapping[str, Sequence[Sequence[int]]], slots: int, *, title: str) -> Figure:
    """Slots over time, one panel a run: each request a bar with its number, empty places left open.

    Args:
        runs: label -> iterations, each the numbers of the requests that get a token in it.
        slots: how many slots there are.
        title: the finding.

    Raises:
        ValueError: if there is no run, or one that :func:`slots_of` refuses.
    """
    if not runs:
        raise ValueError("a chart of occupancy needs at least one run")
    longest = max(len(iterations) for iterations in runs.values())
    with plt.style.context([STYLE, {"axes.grid": False}]):
        fig, axes = plt.subplots(len(runs), 1, figsize=(8.6, 0.9 + (0.55 + 0.27 * slots) * len(runs)),
                                 sharex=True, squeeze=False)
        for axis, (label, iterations) in zip(axes[:, 0], runs.items(), strict=True):
            _bars(axis, slots_of(iterations, slots))
            used = sum(map(len, iterations)) / (len(iterations) * slots)
            axis.set_title(f"{label}: {len(iterations)} iterations, {used:.0%} of the slots in use",
                           fontsize=9.5, fontweight="normal")
            axis.set(yticks=range(slots), ylim=(slots - 0.4, -0.6), xlim=(0, longest), ylabel="slot")
            axis.axvline(len(iterations), color=ACCENT, lw=1.6)
        axes[-1, 0].set_xlabel("iteration (one call of the model)")
        fig.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
        fig.tight_layout()
    return finished(fig)


def _bars(axis: Axes, places: list[list[int | None]]) -> None:
    """One bar for each stretch of a slot that one request holds."""
    for slot, column in enumerate(zip(*places, strict=True)):
        for start, end, request in stretches(column):
            if request is None:
                axis.barh(slot, end - start, left=start, height=0.72, color="none", edgecolor="#c9c9c9",
                          hatch="....", lw=0)
                continue
            shade = _SHADES[request % len(_SHADES)]
            axis.barh(slot, end - start, left=start, height=0.72, color=shade, edgecolor="white", lw=0.8)
            if end - start >= 2:
                ink = "black" if shade == _SHADES[2] else "white"
                axis.text((start + end) / 2, slot, str(request), ha="center", va="center", fontsize=7,
                          color=ink)


def stretches(values: Iterable[T]) -> Iterator[tuple[int, int, T]]:
    """(start, end, value) of each run of equal values, in order; the end is one past the last."""
    start = 0
    for value, run in groupby(values):
        end = start + len(list(run))
        yield start, end, value
        start = end
