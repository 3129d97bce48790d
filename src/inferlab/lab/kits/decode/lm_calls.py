"""The forward calls of a language model in a trace, and slow ways to generate the very same tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True)
class Call:
    """One forward call: its number from 1, sequences, new tokens and cached tokens a sequence (None for a
    static cache, which keeps its length in a tensor that a trace does not read), positions a sequence that
    went through `lm_head`, and milliseconds."""

    number: int
    batch: int
    new: int
    context: int | None
    head: int
    ms: float


def calls_of(run: Any) -> list[Call]:
    """The calls of the traced causal models, in order.

    Args:
        run: a finished `Trace`, or the list of dicts that its `rows()` gives.

    Raises:
        ValueError: nothing in the trace takes `input_ids` and returns `logits`.
    """
    rows = run if isinstance(run, Sequence) else run.rows()
    calls: list[Call] = []
    for row in rows:
        ids, logits = _shape(row["inputs"], "input_ids"), _shape(row["outputs"], "logits")
        if ids and logits:
            (batch, new), held, ms = ids, _cached(row["inputs"]), row["ms"] or 0.0
            calls.append(Call(len(calls) + 1, batch, new, held, logits[1], ms))
    if not calls:
        raise ValueError("no call of a causal language model in this trace: trace the model itself")
    return calls


def _shape(side: Any, name: str) -> tuple[int, ...] | None:
    value = side.get(name) if isinstance(side, Mapping) else None
    return tuple(value["shape"]) if isinstance(value, Mapping) and "shape" in value else None


def _cached(inputs: Mapping) -> int | None:
    """Tokens in the cache that a call was given, whatever a library's release calls that argument."""
    caches = [value for value in inputs.values() if isinstance(value, Mapping)
              and {"cache", "length"} <= set(value)]
    return caches[0]["length"] if caches else 0


FAULTS = ("no cache", "all logits", "padding", "chunks")
PADDED, CHUNK = 96, 16


def slow_generate(model: PreTrainedModel, ids: torch.Tensor, n: int, fault: str) -> torch.Tensor:
    """`n` greedy tokens after `ids`, right ones, made in a wasteful way.

    Args:
        model: a causal model of `transformers`.
        ids: (1, P) int64, P < 96.
        n: new tokens.
        fault: "no cache" (every call gets the whole sequence), "all logits" (`lm_head` on every position),
            "padding" (the prompt is padded on the left to 96), "chunks" (the prompt goes in 16 tokens at a
            time).

    Returns:
        (1, P + n) int64.

    Raises:
        ValueError: an unknown fault, or a prompt that is too long to pad.
    """
    from transformers import DynamicCache

    if fault not in FAULTS:
        raise ValueError(f"fault is {fault!r}; expected one of {FAULTS}")
    if ids.shape[0] != 1 or ids.shape[1] >= PADDED:
        raise ValueError(f"one prompt of fewer than {PADDED} tokens, not {tuple(ids.shape)}")
    cache = DynamicCache(config=model.config)
    keep, mask, tokens = (0 if fault == "all logits" else 1), None, ids
    pieces = list(ids.split(CHUNK, dim=1)) if fault == "chunks" else [ids]
    if fault == "padding":
        pad = torch.full((1, PADDED - ids.shape[1]), model.config.pad_token_id or 0, device=ids.device)
        pieces, mask = [torch.cat([pad, ids], 1)], torch.cat([torch.zeros_like(pad), torch.ones_like(ids)], 1)
    for _ in range(n):
        if fault == "no cache":
            logits = model(tokens, use_cache=False, logits_to_keep=1).logits
        else:
            for piece in pieces:
                logits = model(piece, mask, None, cache, logits_to_keep=keep).logits
        pieces = [logits[:, -1:].argmax(-1)]
        tokens = torch.cat([tokens, pieces[0]], 1)
        mask = None if mask is None else torch.cat([mask, torch.ones_like(pieces[0])], 1)
    return tokens
