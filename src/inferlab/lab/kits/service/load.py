"""A service under load: requests arrive when they like, a clock counts calls, a pool can be full."""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise, product
from time import perf_counter
from typing import TYPE_CHECKING, Any

from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from inferlab.lab.identity import of_variant
from inferlab.lab.kits.batching import batching_config
from inferlab.lab.kits.paging.blocks import allocator_of
from inferlab.lab.plots.style import ACCENT, DARK, MID, STYLE, finished

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Load = Sequence[tuple[float, int, int]]
"""Requests in the order of their arrival: (tick of the arrival, tokens of the prompt, tokens to generate)."""

COST = {"call": 20, "token": 1}
"""A made-up accelerator: a call of the model takes 20 ticks for the weights and 1 for each token in it."""

TARGET = {"first": 250, "gap": 100}
"""What a service promises, in ticks: the longest wait for a first token, the longest gap between tokens."""

FAULTS = ("queue", "prefill", "preemption")
VARIANTS = 12


def arrivals(seed: int, count: int, gap: float, prompt: tuple[int, int] = (16, 48),
             new: tuple[int, int] = (8, 16), long: int = 0) -> list[tuple[int, int, int]]:
    """A random load: exponential gaps with this mean, lengths drawn evenly from two ranges (ends included).

    Every fifth request has a prompt of `long` tokens, if that is not 0.
    """
    rng, now = random.Random(f"load {seed}"), 0.0
    load: list[tuple[int, int, int]] = []
    for number in range(count):
        now += rng.expovariate(1 / gap)
        length = rng.randint(*prompt)
        load.append((int(now), long if long and number % 5 == 3 else length, rng.randint(*new)))
    return load


def serve_load(model: PreTrainedModel, load: Load, *, slots: int = 8, budget: int = 256, page: int = 16,
               blocks: int = 128, cost: Mapping[str, float] | None = COST,
               prompts: Sequence[Sequence[int]] | None = None, share: bool = False) -> dict[str, Any]:
    """Let the library's continuous-batching engine serve a load, call by call.

    The engine makes every decision and every call. Only its clock is ours: it starts at 0, each call moves it
    on, and a request is handed over before the first call that begins after its arrival. So a run is the same
    on every machine.

    Args:
        model: a causal model with full attention.
        load: the requests.
        slots, budget: most requests, and most tokens, in one call.
        page, blocks: tokens in a block of the cache, and how many blocks there are.
        cost: ticks of a call and of each token in it; None measures instead, in milliseconds.
        prompts: token ids of each request; without them some are made up, none alike.
        share: whether requests may share the blocks of a common prefix.

    Returns:
        A dict of plain data. `"requests"`, one dict each: `arrival`, `prompt`, `new`, `tokens` (ticks at
        which its tokens were there), `preempted` (ticks at which it lost its blocks). `"calls"`, one dict
        each: `start`, `end` (ticks), `parts` ([(request, tokens), ...] in the call's order), `held` (blocks
        in use). `"answers"`: the token ids of each request. `"block_bytes"`: bytes of one block.

    Raises:
        RuntimeError: if the installed engine has not the parts that are driven here.
    """
    from transformers import GenerationConfig

    greedy = GenerationConfig(do_sample=False, eos_token_id=-1, pad_token_id=0, max_new_tokens=1)
    sizes = batching_config(slots, page=page, pages=blocks, tokens=budget, allow_block_sharing=share,
                            safety_margin=0.0)
    manager = model.init_continuous_batching(generation_config=greedy, continuous_batching_config=sizes)
    if not hasattr(manager, "_create_batch_processor"):
        raise RuntimeError("the engine of this transformers cannot be driven call by call: install 5.24")
    kept = gc.get_freeze_count()
    gc.freeze()  # an engine that goes collects garbage: this spares it all that was imported
    try:
        return _drive(manager, model, load, cost, prompts)
    finally:
        if not kept:
            gc.unfreeze()


def _drive(manager: Any, model: Any, load: Load, cost: Mapping[str, float] | None,
           prompts: Sequence[Sequence[int]] | None) -> dict[str, Any]:
    engine, vocabulary = manager._create_batch_processor(), model.config.vocab_size
    requests = _requests(load)
    calls: list[dict[str, Any]] = []
    answers: list[list[int]] = [[] for _ in load]
    due, clock = 0, 0.0 if cost is None else 0
    while any(len(one["tokens"]) < one["new"] for one in requests):
        while due < len(load) and load[due][0] <= clock:
            ids = prompts[due] if prompts else [(due * 131 + 7 * k) % vocabulary for k in range(load[due][1])]
            manager.add_request(list(ids), request_id=str(due), max_new_tokens=load[due][2], streaming=True)
            due += 1
        active, began = set(engine.scheduler.active_requests), perf_counter()
        if not engine.prepare_next_batch():
            clock = max(clock, load[due][0])
            continue
        for gone in sorted(active - set(engine.scheduler.active_requests), key=int):
            requests[int(gone)]["preempted"].append(clock)
        batch = list(engine.inputs_and_outputs.requests_in_batch)
        parts = [(int(one.state.request_id), one.query_length) for one in batch]
        tables = allocator_of(engine.cache).block_table.values()
        held = len({block for table in tables for block in table})
        engine._generation_step(model)
        engine.update_batch()
        start, tokens = clock, sum(count for _, count in parts)
        clock += 1e3 * (perf_counter() - began) if cost is None else cost["call"] + cost["token"] * tokens
        calls.append({"start": start, "end": clock, "parts": parts, "held": held})
        for one in batch:
            if one.has_new_token:
                requests[int(one.state.request_id)]["tokens"].append(clock)
        while not manager.output_router.output_queue.empty():
            result = manager.output_router.output_queue.get()
            answers[int(result.request_id)] = list(result.generated_tokens)
    return {"requests": requests, "calls": calls, "answers": answers,
            "block_bytes": allocator_of(engine.cache).bytes_per_block}


def _requests(load: Load) -> list[dict[str, Any]]:
    return [{"arrival": at, "prompt": prompt, "new": new, "tokens": [], "preempted": []}
            for at, prompt, new in load]


def replay(decide: Callable[[dict], dict], load: Load, *, slots: int, budget: int, page: int, blocks: int,
           cost: Mapping[str, float] = COST) -> dict[str, Any]:
    """Let `decide` serve a load without a model: who takes part in each call, and who loses its blocks.

    The states and decisions are those of the lab's exercise. Full pages of requests that are done stay in the
    pool as cached blocks. A preempted request goes to the front of the queue; its prompt and the tokens that
    it has made are computed again.

    Returns:
        `"requests"` and `"calls"` as :func:`serve_load` does; each call has `evict` and `preempt` as decided,
        besides. `"broken"`: what a decision did that cannot be, in words, or None. The run ends there.
    """
    requests = _requests(load)
    calls: list[dict[str, Any]] = []
    running: list[list[int]] = []
    waiting: list[list[int]] = []
    free, cached, due = blocks, 0, 0
    clock: float = 0
    while any(len(one["tokens"]) < one["new"] for one in requests):
        while due < len(load) and load[due][0] <= clock:
            waiting.append([due, 0, load[due][1]])
            due += 1
        if not running and not waiting:
            clock = max(clock, load[due][0])
            continue
        state = {"slots": slots, "budget": budget, "page": page, "free": free, "cached": cached,
                 "running": [tuple(one) for one in running], "waiting": [tuple(one) for one in waiting]}
        told = decide(state)
        broken = broken_by(state, told)
        if broken or len(calls) > 40 * len(load):
            broken = broken or "the service does not come to an end: somebody is starved"
            return {"requests": requests, "calls": calls, "broken": f"call {len(calls)}: {broken}"}
        free, cached = free + told["evict"], cached - told["evict"]
        for one in [one for one in running if one[0] in told["preempt"]][::-1]:
            running.remove(one)
            free += -(-one[1] // page)
            requests[one[0]]["preempted"].append(clock)
            waiting.insert(0, [one[0], 0, requests[one[0]]["prompt"] + len(requests[one[0]]["tokens"])])
        start = clock
        clock += int(cost["call"] + cost["token"] * sum(count for _, count in told["chunks"]))
        for request, count in told["chunks"]:
            one = next(one for one in [*running, *waiting] if one[0] == request)
            if one in waiting:
                waiting.remove(one)
                running.append(one)
            free -= -(-(one[1] + count) // page) + -one[1] // page
            one[1], one[2] = one[1] + count, max(0, one[2] - count)
            if not one[2]:
                requests[request]["tokens"].append(clock)
        calls.append({"start": start, "end": clock, "parts": list(told["chunks"]),
                      "held": blocks - free - cached, "evict": told["evict"], "preempt": told["preempt"]})
        for one in list(running):
            if len(requests[one[0]]["tokens"]) == requests[one[0]]["new"]:
                running.remove(one)
                cached += one[1] // page
                free += -(-one[1] // page) - one[1] // page
    return {"requests": requests, "calls": calls, "broken": None}


def broken_by(state: Mapping[str, Any], told: Any) -> str | None:
    """What a decision does that no service could carry out, in words; None if it can be carried out."""
    if not isinstance(told, dict) or set(told) != {"preempt", "evict", "chunks"}:
        return "a decision is a dict with preempt, evict and chunks"
    if not (isinstance(told["preempt"], list) and type(told["evict"]) is int
            and isinstance(told["chunks"], list)
            and all(type(one) is tuple and [type(n) for n in one[1:]] == [int] for one in told["chunks"])):
        return "preempt is a list of requests, evict an int, chunks a list of tuples (request, tokens)"
    page = state["page"]
    running = {one[0]: one for one in state["running"]}
    known = running | {one[0]: one for one in state["waiting"]}
    named = [request for request, _ in told["chunks"]]
    if len(set(named)) < len(named) or not set(named) <= set(known):
        return "chunks names a request twice, or one that is not there"
    if not set(told["preempt"]) <= set(running) or set(told["preempt"]) & set(named):
        return "only a running request is preempted, and it has no part in the call"
    if not 0 <= told["evict"] <= state["cached"]:
        return "more blocks are evicted than are cached"
    if any(not 1 <= count <= max(1, known[request][2]) for request, count in told["chunks"]):
        return "a request that decodes gets 1 token, a prompt at most what is left of it"
    if sum(count for _, count in told["chunks"]) > state["budget"]:
        return "the budget of tokens is exceeded"
    if len((set(running) | set(named)) - set(told["preempt"])) > state["slots"]:
        return "more requests run than there are slots"
    room = state["free"] + told["evict"] + sum(-(-running[one][1] // page) for one in told["preempt"])
    need = sum(-(-(known[request][1] + count) // page) - -(-known[request][1] // page)
               for request, count in told["chunks"])
    if need > room:
        return f"the call needs {need} blocks, and {room} are free"
    return None if named else "nobody has a part in the call"


def computed(run: Mapping[str, Any]) -> int:
    """Tokens in all calls of a run."""
    return sum(count for call in run["calls"] for _, count in call["parts"])


def again(run: Mapping[str, Any]) -> int:
    """Tokens that a run computed more than once."""
    return computed(run) - sum(one["prompt"] + one["new"] - 1 for one in run["requests"])


def begins_of(run: Mapping[str, Any]) -> dict[int, float]:
    """Request -> the tick at which its first call begins."""
    return {request: call["start"] for call in reversed(run["calls"]) for request, _ in call["parts"]}


def waits_of(run: Mapping[str, Any]) -> list[float]:
    """Ticks from its arrival to its first token of each request, the longest last."""
    return sorted(one["tokens"][0] - one["arrival"] for one in run["requests"])


def two_services(model: PreTrainedModel, variant: int) -> dict[str, dict[str, Any]]:
    """Two services under the same load, by name: one of them has one of the `FAULTS`, as the variant decides.

    Raises:
        ValueError: if there is no such variant.
    """
    fault, swapped, seed = of_variant(variant, product(FAULTS, (False, True), (4, 8)), str)
    return pair_of(model, fault, swapped, seed)


def pair_of(model: PreTrainedModel, fault: str, swapped: bool, seed: int) -> dict[str, dict[str, Any]]:
    """The two services of :func:`two_services`; the faulty one is "A" if `swapped`, otherwise "B"."""
    load = arrivals(seed, 16, 150, long=150)
    if fault == "preemption":  # short prompts and long answers: requests are admitted, and then grow
        load = arrivals(seed, 16, 110, prompt=(12, 16), new=(20, 26))
    sound: dict[str, Any] = {"slots": 8, "budget": 48, "blocks": 64}
    spoilt = {"queue": {"slots": 2}, "prefill": {"budget": 256}, "preemption": {"blocks": 9}}
    faulty = {**sound, **spoilt[fault]}
    order = (faulty, sound) if swapped else (sound, faulty)
    runs = (serve_load(model, load, **sizes) for sizes in order)
    return {name: {key: run[key] for key in ("requests", "calls")}
            for name, run in zip("AB", runs, strict=True)}


def requests_chart(runs: Mapping[str, Mapping[str, Any]], *, title: str) -> Figure:
    """One panel a run, one row a request: waiting (light), from the first call on (dark), tokens, preempted.

    Raises:
        ValueError: if there is no run.
    """
    if not runs:
        raise ValueError("a picture needs at least one run")
    rows = max(len(run["requests"]) for run in runs.values())
    with plt.style.context([STYLE, {"axes.grid": False}]):
        fig, axes = plt.subplots(len(runs), 1, figsize=(8.6, 0.7 + (0.6 + 0.13 * rows) * len(runs)),
                                 sharex=True, squeeze=False)
        for axis, (name, run) in zip(axes[:, 0], runs.items(), strict=True):
            begins = begins_of(run)
            for row, one in enumerate(run["requests"]):
                axis.barh(row, begins[row] - one["arrival"], left=one["arrival"], height=0.6, color="#c9d6e2")
                axis.barh(row, one["tokens"][-1] - begins[row], left=begins[row], height=0.6, color=MID)
                axis.plot(one["tokens"], [row] * one["new"], ls="", marker="|", ms=4, color=DARK)
                axis.plot(one["preempted"], [row] * len(one["preempted"]), ls="", marker="x", ms=6, mew=2,
                          color=ACCENT)
            axis.set(ylim=(len(run["requests"]) - 0.4, -0.6), ylabel="request")
            axis.set_title(name, fontsize=9.5, fontweight="normal")
        axes[-1, 0].set_xlabel("ticks (light: waits for its first call; strokes: tokens; crosses: preempted)")
        fig.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
        fig.tight_layout()
    return finished(fig)


def gaps_of(request: Mapping[str, Any]) -> list[float]:
    """Ticks between the tokens of a request."""
    return [later - earlier for earlier, later in pairwise(request["tokens"])]
