"""A decode step for one sequence of a Llama-style model, written to read every weight once and do little
else.

Against the model's own code: q, k and v are one matrix and gate and up are one; products of a matrix and a
vector are written as such; the layer is one function, compiled once and run with every layer's weights; and
the step is one CUDA graph. The numbers are the model's own up to rounding (`agrees` compares them).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F


@dataclass
class LayerWeights:
    """One layer's matrices, `(out, in)` each, and its two norms, `(hidden,)`."""

    norm1: Tensor
    qkv: Tensor
    out: Tensor
    norm2: Tensor
    gate_up: Tensor
    down: Tensor


def fuse(model) -> list[LayerWeights]:
    """The weights of a `LlamaForCausalLM`'s layers with q, k, v and gate, up put together. The model's own
    are freed: afterwards its layers no longer run."""
    found = []
    for layer in model.model.layers:
        a, m = layer.self_attn, layer.mlp
        found.append(LayerWeights(
            layer.input_layernorm.weight, torch.cat([a.q_proj.weight, a.k_proj.weight, a.v_proj.weight]),
            a.o_proj.weight,
            layer.post_attention_layernorm.weight, torch.cat([m.gate_proj.weight, m.up_proj.weight]),
            m.down_proj.weight))
        for part in (a.q_proj, a.k_proj, a.v_proj, m.gate_proj, m.up_proj):
            part.weight = None
    return found


def linear(weight: Tensor, x: Tensor) -> Tensor:
    """`weight @ x` of (out, in) and (in,), by the library's own kernel."""
    return F.linear(x, weight)


def summed(weight: Tensor, x: Tensor) -> Tensor:
    """`weight @ x` as a sum over rows in float32: a compiler makes one kernel of it that streams the
    weights."""
    return (weight.float() * x.float()).sum(-1).to(weight.dtype)


def rms(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """LlamaRMSNorm of a vector: statistics in float32."""
    wide = x.float()
    return weight * (wide * torch.rsqrt(wide.pow(2).mean() + epsilon)).to(x.dtype)


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """RoPE of (heads, head_dim) by (head_dim,) cosines and sines."""
    low, high = x.chunk(2, -1)
    return x * cos + torch.cat([-high, low], -1) * sin


class Step:
    """One decode step of batch 1: `step()` reads `self.token` and `self.position`, and writes `self.logits`.

    Args:
        model: a `LlamaForCausalLM`; see `fuse` for what happens to it.
        length: positions of the static cache.
        matvec: how a matrix and a vector are multiplied: `linear`, `summed` or a kernel of the same
            signature.
        compiled: compile the layer, once for all layers.
        ranks: how many processes share the model; `weights` are then this process's `share`.
    """

    def __init__(self, model, weights: list[LayerWeights], length: int,
                 matvec: Callable[[Tensor, Tensor], Tensor],
                 compiled: bool = True, ranks: int = 1):
        config, device, dtype = model.config, model.device, model.dtype
        self.heads, self.kv = config.num_attention_heads // ranks, config.num_key_value_heads // ranks
        self.dim = getattr(config, "head_dim", None) or config.hidden_size // self.heads
        self.epsilon, self.length, self.weights, self.matvec = config.rms_norm_eps, length, weights, matvec
        self.embed, self.norm = model.model.embed_tokens.weight, model.model.norm.weight
        self.head = model.lm_head.weight
        self.inverse = model.model.rotary_emb.inv_freq.to(device)
        self.keys = [torch.zeros(self.kv, length, self.dim, device=device, dtype=dtype) for _ in weights]
        self.values = [torch.zeros(self.kv, length, self.dim, device=device, dtype=dtype) for _ in weights]
        self.token = torch.zeros(1, dtype=torch.int64, device=device)
        self.position = torch.zeros(1, dtype=torch.int64, device=device)
        self.places = torch.arange(length, device=device)
        self.logits = torch.zeros(config.vocab_size, device=device, dtype=dtype)
        self.rank = torch.distributed.get_rank() if ranks > 1 else 0
        self.begin, self.layer, self.end = self._begin, self._layer, self._end
        if compiled:
            self.begin, self.layer, self.end = (torch.compile(f, dynamic=False)
                                                for f in (self._begin, self._layer, self._end))

    def _begin(self, token: Tensor, position: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        angles = torch.cat([self.inverse, self.inverse]) * position.float()
        mask = torch.where(self.places <= position, 0.0, float("-inf"))
        dtype = self.embed.dtype
        return self.embed[token][0], angles.cos().to(dtype), angles.sin().to(dtype), mask

    def _attend(self, x, norm1, qkv, out, keys, values, cos, sin, mask, position):
        q, k, v = self.matvec(qkv, rms(x, norm1, self.epsilon)).view(-1, self.dim).split([self.heads, self.kv,
                                                                                          self.kv])
        keys.index_copy_(1, position, rotated(k, cos, sin)[:, None])
        values.index_copy_(1, position, v[:, None])
        q = rotated(q, cos, sin).view(self.kv, self.heads // self.kv, self.dim)
        scores = (q @ keys.transpose(1, 2)).float() * self.dim**-0.5 + mask
        mixed = scores.softmax(-1).to(x.dtype) @ values
        return self.matvec(out, mixed.reshape(-1))

    def _mlp(self, x, norm2, gate_up, down):
        gate, up = self.matvec(gate_up, rms(x, norm2, self.epsilon)).chunk(2)
        return self.matvec(down, F.silu(gate) * up)

    def _layer(self, x, norm1, qkv, out, norm2, gate_up, down, keys, values, cos, sin, mask, position):
        x = x + self._attend(x, norm1, qkv, out, keys, values, cos, sin, mask, position)
        return x + self._mlp(x, norm2, gate_up, down)

    def _end(self, x: Tensor) -> Tensor:
        return self.matvec(self.head, rms(x, self.norm, self.epsilon))

    @torch.no_grad()
    def __call__(self) -> None:
        """Runs the step; the position is left as it is."""
        x, cos, sin, mask = self.begin(self.token, self.position)
        for w, keys, values in zip(self.weights, self.keys, self.values, strict=True):
            x = self.layer(x, w.norm1, w.qkv, w.out, w.norm2, w.gate_up, w.down, keys, values, cos, sin, mask,
                           self.position)
        self.logits.copy_(self.end(x))

    def fill(self, cache) -> None:
        """Takes over the keys and values of a transformers cache, and its length as the next position."""
        used = int(cache.get_seq_length())
        for layer, keys, values in zip(cache.layers, self.keys, self.values, strict=True):
            mine = slice(self.rank * self.kv, (self.rank + 1) * self.kv)
            keys[:, :used], values[:, :used] = layer.keys[0, mine, :used], layer.values[0, mine, :used]
        self.position.fill_(used)


def share(weights: LayerWeights, heads: int, kv: int, dim: int, rank: int, ranks: int) -> LayerWeights:
    """One process's part of a layer: whole heads and a part of the MLP's width; `out` and `down` are cut by
    columns, so that the processes' results are summands."""
    q, k, v = weights.qkv.split([heads * dim, kv * dim, kv * dim])
    gate, up = weights.gate_up.chunk(2)
    rows = [part.chunk(ranks)[rank] for part in (q, k, v)]
    halves = [part.chunk(ranks)[rank] for part in (gate, up)]
    return LayerWeights(weights.norm1, torch.cat(rows), weights.out.chunk(ranks, 1)[rank].contiguous(),
                        weights.norm2,
                        torch.cat(halves), weights.down.chunk(ranks, 1)[rank].contiguous())


class SharedStep(Step):
    """The same step split over processes: each sums its part with the others' after attention and after the
    MLP."""

    def __init__(self, model, weights, length, matvec, compiled, ranks):
        super().__init__(model, weights, length, matvec, compiled, ranks)
        self.attend, self.mlp = self._attend, self._mlp
        if compiled:
            self.attend, self.mlp = torch.compile(self._attend, dynamic=False), torch.compile(self._mlp,
                                                                                              dynamic=False)

    @torch.no_grad()
    def __call__(self) -> None:
        """As `Step`; two sums over all processes a layer."""
        import torch.distributed as dist

        x, cos, sin, mask = self.begin(self.token, self.position)
        for w, keys, values in zip(self.weights, self.keys, self.values, strict=True):
            part = self.attend(x, w.norm1, w.qkv, w.out, keys, values, cos, sin, mask, self.position)
            dist.all_reduce(part)
            x = x + part
            part = self.mlp(x, w.norm2, w.gate_up, w.down)
            dist.all_reduce(part)
            x = x + part
        self.logits.copy_(self.end(x))


def apart(logits: Tensor, want: Tensor) -> float:
    """How far logits are from the model's own, (vocabulary,) each, relative to the size of those."""
    return float((logits.float() - want.float()).norm() / want.float().norm())


def checked(name: str, logits: Tensor, want: Tensor, noise: float) -> float:
    """`apart`, once it is no more than rounding explains: twice `noise`, which is `apart` of the same numbers
    in another order.

    Raises:
        AssertionError: if it is more.
    """
    found = apart(logits, want)
    if not found < max(2 * noise, 1e-4):
        raise AssertionError(f"{name}: logits are {found:.3f} away from the model's, relative; rounding "
                             f"explains {noise:.3f}")
    return found
