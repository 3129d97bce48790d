"""A small text service that runs the bundled model, and writes down what each step consisted of.

Requests wait for the tokenizer, then for a slot and for room in the cache, get their prompt prefilled and
join the batch that decodes one token a step. One of five faults can be built in, or too few users; the
requests and the number of tokens they get stay the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from inferlab.lab.identity import of_variant
from inferlab.lab.kits.decode.roofline import call_cost

FAULTS = ("batch", "cache", "launch", "memory", "padding", "tokenizer")
"""Batch size 1; a cache that is reserved for the worst case; thousands of small launches; few users and wide
weights, which is nobody's mistake; padding to a fixed length; a tokenizer that cannot keep up."""

CARD = {"launch_us": 4.0, "gb_per_s": 6.0, "gflop_per_s": 100.0, "encode_us": 500.0}
"""A made-up accelerator on which the bundled model has the regimes of a big model on a big one: a launch
costs 4 microseconds, memory gives 6 GB/s, matrix units 100 GFLOP/s; its host needs 500 microseconds for a
call of the tokenizer."""

ENCODES_PER_STEP = 4  # calls of the tokenizer that the host manages beside one step of the model
BUDGET = 2048  # tokens that the cache has room for
WORST = 1024  # tokens of the longest request that could come
PADDED = 256


@dataclass
class Request:
    """One request: its text, the tokens that it gets, and what has happened to it so far."""

    text: str
    new_tokens: int
    encodes: int = 1
    ids: list[int] = field(default_factory=list)
    out: list[int] = field(default_factory=list)
    cache: list[tuple[torch.Tensor, torch.Tensor]] = field(default_factory=list)
    reserved: int = 0


@dataclass(frozen=True)
class Served:
    """What a run of the service leaves: ``rows`` (one dict for each call of the model and for each idle
    step), ``answers`` (token ids of each request, in order of arrival) and ``trace`` (of the model, while the
    service ran)."""

    rows: list[dict[str, Any]]
    answers: list[list[int]]
    trace: Any


class _Launches(TorchDispatchMode):
    """Counts the operations that would start a kernel; views of a tensor start none."""

    _VIEWS = frozenset({"view", "_unsafe_view", "transpose", "t", "unsqueeze", "squeeze", "expand", "slice",
                        "select", "alias", "detach",
                        "permute", "split", "_reshape_alias", "as_strided"})

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        self.count += func._schema.name.partition("::")[2] not in self._VIEWS
        return func(*args, **(kwargs or {}))


def requests_of(tokenizer: Any, count: int = 8) -> list[Request]:
    """``count`` questions about scenes, each with 6 to 9 tokens to generate; the same ones every time."""
    from inferlab.models.stories import questions

    asked = questions(count, seed=3, kind="scene")
    return [Request(document.prompt(turn), 6 + number % 4) for number, (document, turn) in enumerate(asked)]


def serve(model: Any, tokenizer: Any, *, fault: str | None = None, slots: int = 4,
          requests: int = 8) -> Served:
    """Serve the requests and write down every step.

    Args:
        model: a Llama-style causal model of transformers.
        tokenizer: its tokenizer.
        fault: one of ``FAULTS``, or None for the service as it should be.
        slots: sequences that may decode together.
        requests: how many questions arrive, all before the first step ("memory" serves two of them).

    Returns:
        A :class:`Served`. Each row has ``step`` (from 0), ``kind`` ("prefill", "decode", "idle"),
        ``sequences`` and ``slots``, ``waiting`` (requests not yet admitted), ``positions`` (token positions
        that the call computed or attended to, of all sequences) and ``useful`` (those of them that belong to
        a request), ``cache_used``, ``cache_reserved`` and ``cache_budget`` (tokens), ``launches``,
        ``weight_bytes``, ``cache_bytes``, ``flops`` (all three counted from shapes), ``encodes`` (calls of
        the tokenizer in this step) and ``busy`` (the share of the step in which some kernel ran, as a monitor
        would show it).

    Raises:
        ValueError: there is no such fault, or there is nobody to serve.
    """
    if (fault is not None and fault not in FAULTS) or requests < 1 or slots < 1:
        raise ValueError(f"fault is one of {', '.join(FAULTS)} or None, requests and slots are at least 1: "
                         f"not {fault!r}, {requests}, {slots}")
    from inferlab.trace import trace

    service = _Service(model, tokenizer, fault, 1 if fault == "batch" else slots)
    everyone = requests_of(tokenizer, min(2, requests) if fault == "memory" else requests)
    with torch.no_grad(), trace(model) as traced, service.watched():
        service.run(everyone)
    return Served(service.rows, [request.out for request in everyone], traced)


def suspect(model: Any, tokenizer: Any, variant: int) -> Served:
    """A run of a service that is slower than it should be; ``variant`` decides which fault it has.

    Raises:
        ValueError: if the variant is not 0 to 5.
    """
    return serve(model, tokenizer, fault=of_variant(variant, FAULTS, "service {}".format))


class _Service:
    def __init__(self, model: Any, tokenizer: Any, fault: str | None, slots: int) -> None:
        self.model, self.tokenizer, self.fault, self.slots = model, tokenizer, fault, slots
        self.rows: list[dict[str, Any]] = []
        self.step = self.encodes = 0
        self.inbox: list[Request] = []
        self.ready: list[Request] = []
        self.running: list[Request] = []

    @contextmanager
    def watched(self) -> Iterator[None]:
        """With the fault "launch", a health check left on: it looks at every sequence behind every module."""
        modules = [m for m in self.model.modules() if m is not self.model] if self.fault == "launch" else []
        hooks = [module.register_forward_hook(_look) for module in modules]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def run(self, requests: list[Request]) -> None:
        self.inbox = list(requests)
        # encodes the text so far again for every word, as if it came in over a slow line
        if self.fault == "tokenizer":
            for request in requests:
                request.encodes = len(request.text.split())
        while self.inbox or self.ready or self.running:
            self.encodes = self._tokenize()
            admitted = self._admit()
            if admitted:
                self._prefill(admitted)
            elif self.running:
                self._decode()
            else:
                self._note("idle", 0, 0, 0, 0, None)
            self.running = [r for r in self.running if len(r.out) < r.new_tokens]
            self.step += 1

    def _tokenize(self) -> int:
        """Let the host call the tokenizer as often as it can in one step; returns how often it did."""
        calls = 0
        while self.inbox and calls < ENCODES_PER_STEP:
            first = self.inbox[0]
            words = first.text.split(" ")
            self.tokenizer(" ".join(words[: max(1, len(words) - first.encodes + 1)]))
            calls, first.encodes = calls + 1, first.encodes - 1
            if first.encodes == 0:
                first.ids = list(self.tokenizer(first.text).input_ids)
                self.ready.append(self.inbox.pop(0))
        return calls

    def _admit(self) -> list[Request]:
        admitted: list[Request] = []
        while self.ready and len(self.running) + len(admitted) < self.slots:
            first = self.ready[0]
            first.reserved = WORST if self.fault == "cache" else len(first.ids) + first.new_tokens
            if sum(r.reserved for r in [*self.running, *admitted, first]) > BUDGET:
                break
            admitted.append(self.ready.pop(0))
        return admitted

    def _prefill(self, admitted: list[Request]) -> None:
        """One call for all admitted prompts, padded on the left to the longest ("padding": to 256)."""
        width = PADDED if self.fault == "padding" else max(len(r.ids) for r in admitted)
        ids = torch.full((len(admitted), width), self.model.config.pad_token_id or 0,
                         device=self.model.device)
        mask = torch.zeros_like(ids)
        for line, request in enumerate(admitted):
            ids[line, width - len(request.ids):] = torch.tensor(request.ids)
            mask[line, width - len(request.ids):] = 1
        logits, cache, launches = self._call(ids, mask, None)
        self.running += admitted
        self._hand_out(admitted, logits, cache, mask)
        self._note("prefill", len(admitted), width, 0, launches, sum(len(r.ids) for r in admitted))

    def _decode(self) -> None:
        """One token for every running sequence; caches are lined up on the right, and padded on the left."""
        held = [r.cache[0][0].shape[-2] for r in self.running]
        width = max(PADDED if self.fault == "padding" else 0, *held)
        ids = torch.tensor([[r.out[-1]] for r in self.running], device=self.model.device)
        mask = torch.zeros(len(held), width + 1, dtype=torch.int64, device=self.model.device)
        for line, length in enumerate(held):
            mask[line, width - length:] = 1
        layers = [tuple(torch.cat([torch.nn.functional.pad(r.cache[n][side], (0, 0, width - length, 0))
                                   for r, length in zip(self.running, held, strict=True)])
                        for side in (0, 1)) for n in range(self.model.config.num_hidden_layers)]
        logits, cache, launches = self._call(ids, mask, layers)
        self._hand_out(self.running, logits, cache, mask)
        self._note("decode", len(held), 1, width, launches, sum(held) + len(held))

    def _call(self, ids: torch.Tensor, mask: torch.Tensor,
              layers: list | None) -> tuple[torch.Tensor, Any, int]:
        from transformers import DynamicCache

        cache = DynamicCache(config=self.model.config)
        for number, (keys, values) in enumerate(layers or []):
            cache.update(keys, values, number)
        positions = (mask.cumsum(1) - 1).clamp(min=0)[:, -ids.shape[1]:]
        with _Launches() as launches:
            logits = self.model(ids, mask, positions, cache, logits_to_keep=1).logits
        return logits, cache, launches.count

    def _hand_out(self, requests: list[Request], logits: torch.Tensor, cache: Any,
                  mask: torch.Tensor) -> None:
        """Give every request its token and its part of the cache, without the padding."""
        for line, request in enumerate(requests):
            request.out.append(int(logits[line, -1].argmax()))
            start = mask.shape[1] - int(mask[line].sum())
            request.cache = [(layer.keys[line:line + 1, :, start:].clone(),
                              layer.values[line:line + 1, :, start:].clone()) for layer in cache.layers]

    def _note(self, kind: str, sequences: int, new: int, context: int, launches: int,
              useful: int | None) -> None:
        cost = call_cost(self.model.config, new, context, sequences,
                         itemsize=self.model.dtype.itemsize) if sequences else None
        self.rows.append({
            "step": self.step, "kind": kind, "sequences": sequences, "slots": self.slots,
            "waiting": len(self.inbox) + len(self.ready),
            "positions": sequences * (new + context), "useful": useful or 0,
            "cache_used": sum(r.cache[0][0].shape[-2] for r in self.running if r.cache),
            "cache_reserved": sum(r.reserved for r in self.running),
            "cache_budget": BUDGET, "launches": launches, "weight_bytes": cost.weight_bytes if cost else 0,
            "cache_bytes": cost.cache_read_bytes + cost.cache_written_bytes if cost else 0,
            "flops": cost.flops if cost else 0,
            "encodes": self.encodes, "busy": 1.0 if sequences else 0.0,
        })


def _look(module: torch.nn.Module, args: Any, output: Any) -> None:
    """The forgotten health check: one row after the other, is every number finite?"""
    if isinstance(output, torch.Tensor) and output.is_floating_point():
        for row in output:
            torch.isfinite(row).all()


def show_rows(rows: list[dict[str, Any]], limit: int = 14) -> str:
    """The first ``limit`` rows as lines of text."""
    head = ("step kind    seq/slots waiting positions useful cache used/reserved launches  weights     cache "
            "   MFLOP encodes busy")
    lines = [f"{r['step']:4} {r['kind']:7} {r['sequences']:3}/{r['slots']:<5} {r['waiting']:7} "
             f"{r['positions']:9} {r['useful']:6} "
             f"{r['cache_used']:10}/{r['cache_reserved']:<8} {r['launches']:8} "
             f"{r['weight_bytes'] / 1e6:6.1f} MB {r['cache_bytes'] / 1e6:6.2f} MB "
             f"{r['flops'] / 1e6:8.1f} {r['encodes']:7} {r['busy']:4.0%}" for r in rows[:limit]]
    more = [f"... and {len(rows) - limit} more"] if len(rows) > limit else []
    return "\n".join([head, *lines, *more])
