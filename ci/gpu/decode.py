"""Decode at batch 1 in every regime, held against the bytes that must move."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from typing import Any

import torch

from inferlab.lab.kits.decode.launches import captured
from inferlab.lab.kits.decode.roofline import call_cost

from . import fused
from .measure import chain_seconds, fresh, seconds

GOAL = 1.3


class Decode:
    """One sequence of `context` random tokens in the cache, and one more at a time."""

    def __init__(self, model, rate: dict[str, Any], context: int, say: Callable[[dict], None],
                 calls: int = 16):
        self.model, self.device, self.context = model, str(model.device), context
        self.say, self.calls = say, calls
        self.length = context + 512
        cost = call_cost(model.config, 1, context, itemsize=model.dtype.itemsize)
        self.floor = cost.bytes / rate["copy_bytes_per_s"]
        self.found: dict[str, Any] = {
            "context": context, "bytes": cost.bytes, "weight_bytes": cost.weight_bytes,
            "cache_bytes": cost.cache_read_bytes,
            "floor_seconds": self.floor, "floor_of": "bytes / copy bandwidth", "goal": GOAL, "rows": []}
        generator = torch.Generator(self.device).manual_seed(1)
        self.ids = torch.randint(0, model.config.vocab_size, (1, context), device=self.device,
                                 generator=generator)
        self.token = self.ids[:, -1:].clone()

    def add(self, name: str, measured: Callable[[], dict[str, Any]]) -> None:
        """One row; a regime that cannot run says why and leaves the others alone."""
        began = time.perf_counter()
        try:
            row = measured()
            row["over_floor"] = row["median"] / self.floor
            row["met"] = row["over_floor"] <= GOAL
        except Exception as error:  # noqa: BLE001 - whatever a regime raises is its result here, and printed
            row = {"error": f"{type(error).__name__}: {error}"[:600], "where": traceback.format_exc()[-1500:]}
        self.found["rows"].append({"regime": name, **row, "took_seconds": round(time.perf_counter() - began,
                                                                                1)})
        self.say(self.found)
        fresh(self.device)

    def empty(self):
        """A growing cache with nothing in it."""
        from transformers import DynamicCache

        return DynamicCache(config=self.model.config)

    def dynamic(self):
        """A growing cache that holds the prompt, and the logits of the token that follows."""
        cache = self.empty()
        self.model(self.ids, None, None, cache, logits_to_keep=1)
        return cache

    def static(self):
        from transformers import StaticCache

        cache = StaticCache(config=self.model.config, max_cache_len=self.length)
        self.model(self.ids, None, None, cache, logits_to_keep=1)
        return cache

    @torch.no_grad()
    def eager_dynamic(self) -> dict[str, Any]:
        cache = self.dynamic()
        return chain_seconds(lambda: self.model(self.token, None, None, cache), self.device, self.calls, 5,
                             warm=4)

    @torch.no_grad()
    def eager_static(self) -> dict[str, Any]:
        cache = self.static()
        return chain_seconds(lambda: self.model(self.token, None, None, cache), self.device, self.calls, 5,
                             warm=4)

    @torch.no_grad()
    def graph_static(self) -> dict[str, Any]:
        """The model's own code, captured; position and place in the cache are those of the capture."""
        cache = self.static()
        place = torch.tensor([[self.context]], device=self.device)
        out: dict[str, Any] = {}

        def run() -> None:
            out["logits"] = self.model(self.token, None, place, cache).logits

        graph = captured(run)
        return chain_seconds(graph.replay, self.device, self.calls, 9)

    @torch.no_grad()
    def compiled_static(self) -> dict[str, Any]:
        """`torch.compile(mode="reduce-overhead")` of the whole model: as a user would write it."""
        cache = self.static()
        place = torch.tensor([[self.context]], device=self.device)
        step = torch.compile(self.model.forward, mode="reduce-overhead", fullgraph=True, dynamic=False)

        def run():
            torch.compiler.cudagraph_mark_step_begin()
            return step(self.token, None, place, cache)

        first = seconds(run, self.device)
        for _ in range(3):
            run()
        return chain_seconds(run, self.device, self.calls, 9) | {"compile_seconds": round(first, 1)}

    @torch.no_grad()
    def fused(self, weights, cache, want, matvec, compiled: bool) -> dict[str, Any]:
        """The step of fused.py as one CUDA graph, after its logits were compared with the model's."""
        step = fused.Step(self.model, weights, self.length, matvec, compiled)
        step.fill(cache)
        step.token.copy_(self.token[0])
        first = seconds(step, self.device)
        apart = fused.checked("the step", step.logits, want, self.found["noise"])
        found = {"logits_apart": round(apart, 5), "compile_seconds": round(first, 1)}
        if torch.device(self.device).type == "cuda":
            graph = captured(step)
            return chain_seconds(graph.replay, self.device, self.calls, 9) | found
        return chain_seconds(step, self.device, self.calls, 3) | found


def decode(model, rate: dict[str, Any], context: int, say: Callable[[dict], None],
           calls: int = 16) -> dict[str, Any]:
    """All regimes in turn, results handed to `say` as they come. The model's own layers are used up at the
    end."""
    runs = Decode(model, rate, context, say, calls)
    cuda = torch.device(runs.device).type == "cuda"
    runs.add("eager, growing cache", runs.eager_dynamic)
    runs.add("eager, static cache", runs.eager_static)
    if cuda:
        runs.add("CUDA graph, static cache", runs.graph_static)
    with torch.no_grad():
        cache = runs.dynamic()
        want = model(runs.token, None, None, cache).logits[0, -1].float()
        cache.crop(-1)
        # the same numbers in another order: the token at the end of the prompt instead of after it
        again = model(torch.cat([runs.ids, runs.token], 1), None, None, runs.empty(),
                      logits_to_keep=1).logits[0, -1]
        runs.found["noise"] = fused.apart(again, want)
    with torch.no_grad():
        weights = fused.fuse(model)
    fresh(runs.device)
    kinds: list[tuple[str, Any, bool]] = [("fused step, library products", fused.linear, cuda)]
    if cuda:
        from . import matvec

        with torch.no_grad():
            by_shape: dict[tuple[int, ...], list] = {}
            for matrix in [m for w in weights for m in (w.qkv, w.out, w.gate_up,
                                                        w.down)] + [model.lm_head.weight]:
                by_shape.setdefault(tuple(matrix.shape), []).append(matrix)
            chosen = {}
            for shape, matrices in by_shape.items():
                some = matrices[:4]
                chosen[f"{shape[0]}x{shape[1]}"] = _tuned(matvec, some, runs.device)
            runs.found["matvec"] = chosen
        kinds.append(("fused step, Triton products", matvec.matvec, True))
    kinds.append(("fused step, compiled sums", fused.summed, cuda))
    for name, product, compiled in kinds:
        torch.compiler.reset()
        if product is fused.summed and cuda:
            import torch._inductor.config as inductor

            with inductor.patch(coordinate_descent_tuning=True):
                runs.add(name, lambda p=product, c=compiled: runs.fused(weights, cache, want, p, c))
        else:
            runs.add(name, lambda p=product, c=compiled: runs.fused(weights, cache, want, p, c))
    return runs.found


def compiled(model, rate: dict[str, Any], context: int, say: Callable[[dict], None],
             calls: int = 16) -> dict[str, Any]:
    """The whole model compiled, as a user would write it: a minute or more to compile."""
    runs = Decode(model, rate, context, say, calls)
    runs.add("torch.compile reduce-overhead, static cache", runs.compiled_static)
    return runs.found


def _tuned(matvec, matrices: list, device: str) -> dict[str, Any]:
    best = matvec.tune(matrices, lambda run: chain_seconds(run, device, 4, 3)["median"])
    k = matrices[0].shape[1]
    x = torch.randn(k, device=device, dtype=matrices[0].dtype)
    bytes_ = sum(m.nbytes for m in matrices)

    def ours() -> None:
        for m in matrices:
            matvec.matvec(m, x)

    def library() -> None:
        for m in matrices:
            torch.nn.functional.linear(x, m)

    want = torch.nn.functional.linear(x.float(), matrices[0].float())
    apart = float((matvec.matvec(matrices[0], x).float() - want).norm() / want.norm())
    graphs = {name: captured(run) for name, run in (("triton", ours), ("library", library))}
    times = {name: chain_seconds(graph.replay, device, 8, 5)["median"] for name, graph in graphs.items()}
    return {"rows_step_warps": best, "apart": round(apart, 5),
            "bytes_per_s": {name: bytes_ / t for name, t in times.items()},
            "us": {n: round(t / len(matrices) * 1e6, 2) for n, t in times.items()}}

