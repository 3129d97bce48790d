"""The training step of the language models: a Llama's forward pass over stacked weights, and the whole step
as a CUDA graph.

transformers' modules launch some 3,000 small kernels a step, which takes longer than their arithmetic. Here
every weight of one role lies in one tensor over all layers, and on a GPU the step (loss, gradients, update)
is recorded once for each shape of batch and replayed. `tests/training/test_language_step.py` holds the pass
against transformers' own.
"""

from __future__ import annotations

from contextlib import nullcontext

import torch
import torch.nn.functional as F
from transformers import LlamaForCausalLM

from training.language_optim import MuonAdam

REPLY = 1 << 15  # set in the tokens of a row that belong to a reply
ELSEWHERE = 0.3  # the weight of the other tokens' loss

LAYER = {
    "q": "self_attn.q_proj.weight", "k": "self_attn.k_proj.weight", "v": "self_attn.v_proj.weight",
    "o": "self_attn.o_proj.weight", "gate": "mlp.gate_proj.weight", "up": "mlp.up_proj.weight",
    "down": "mlp.down_proj.weight",
    "norm1": "input_layernorm.weight", "norm2": "post_attention_layernorm.weight",
}
WHOLE = {"embed": "model.embed_tokens.weight", "norm": "model.norm.weight"}


def stack(model: LlamaForCausalLM) -> dict[str, torch.Tensor]:
    """The model's weights (tied embeddings) as float32 leaves: one tensor a role, layers first."""
    state = model.state_dict()
    layers = range(model.config.num_hidden_layers)
    found = {role: torch.stack([state[f"model.layers.{i}.{name}"] for i in layers])
             for role, name in LAYER.items()}
    found |= {role: state[name] for role, name in WHOLE.items()}
    return {role: t.detach().float().clone().requires_grad_() for role, t in found.items()}


@torch.no_grad()
def unstack(weights: dict[str, torch.Tensor], model: LlamaForCausalLM) -> None:
    """Write stacked weights back into the model, in its own dtype."""
    state = model.state_dict()
    for role, name in LAYER.items():
        for i, t in enumerate(weights[role]):
            state[f"model.layers.{i}.{name}"].copy_(t)
    for role, name in WHOLE.items():
        state[name].copy_(weights[role])


def rotary(config, length: int, device, dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines (length, 1, head_dim) of Llama's rotary positions."""
    size = config.head_dim
    base = config.rope_parameters["rope_theta"]
    speeds = base ** -(torch.arange(0, size, 2, device=device).float() / size)
    angles = torch.outer(torch.arange(length, device=device).float(), speeds).repeat(1, 2)[:, None]
    return angles.cos().to(dtype), angles.sin().to(dtype)


def logits(weights: dict[str, torch.Tensor], ids: torch.Tensor, config, dtype: torch.dtype) -> torch.Tensor:
    """Logits (B, L, vocabulary) in `dtype` of rows of token numbers (B, L) that attend to all before them."""
    low = {role: t.to(dtype) for role, t in weights.items()}
    heads, kv_heads, size, eps = (
        config.num_attention_heads, config.num_key_value_heads, config.head_dim, config.rms_norm_eps)
    rows, length = ids.shape
    cos, sin = rotary(config, length, ids.device, dtype)
    half = size // 2
    qkv = torch.cat([low["q"], low["k"], low["v"]], 1).unbind(0)
    gate_up = torch.cat([low["gate"], low["up"]], 1).unbind(0)
    outs, downs, norms1, norms2 = (low[role].unbind(0) for role in ("o", "down", "norm1", "norm2"))
    # a product with one-hot rows: unlike a look-up's gradient, its own is the same from run to run
    x = (ids[..., None] == torch.arange(len(low["embed"]), device=ids.device)).to(dtype) @ low["embed"]
    for layer in range(config.num_hidden_layers):
        mixed = F.linear(F.rms_norm(x, x.shape[-1:], norms1[layer], eps), qkv[layer]).view(rows, length, -1,
                                                                                           size)
        turned, v = mixed.split([heads + kv_heads, kv_heads], 2)
        turned = turned * cos + torch.cat([-turned[..., half:], turned[..., :half]], -1) * sin
        q, k = turned.split([heads, kv_heads], 2)
        k, v = (t.repeat_interleave(heads // kv_heads, 2).transpose(1, 2) for t in (k, v))
        seen = F.scaled_dot_product_attention(q.transpose(1, 2), k, v, is_causal=True)
        x = x + F.linear(seen.transpose(1, 2).reshape(rows, length, -1), outs[layer])
        gate, up = F.linear(F.rms_norm(x, x.shape[-1:], norms2[layer], eps), gate_up[layer]).chunk(2, -1)
        x = x + F.linear(F.silu(gate) * up, downs[layer])
    return F.linear(F.rms_norm(x, x.shape[-1:], low["norm"], eps), low["embed"])


def weighted_loss(weights: dict[str, torch.Tensor], rows: torch.Tensor, config,
                  dtype: torch.dtype) -> torch.Tensor:
    """Cross-entropy in nats of rows (B, L) of marked tokens: replies count 1, padding 0, all else
    ELSEWHERE."""
    ids = rows & (REPLY - 1)
    written = logits(weights, ids, config, dtype)[:, :-1].float()
    counts = (ELSEWHERE + (1 - ELSEWHERE) * (rows[:, 1:] >= REPLY)) * (ids[:, 1:] != config.pad_token_id)
    losses = F.cross_entropy(written.flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
    return (losses * counts.flatten()).sum() / counts.sum()


class Step:
    """One training step on rows of marked tokens: eager on a CPU, on a GPU a CUDA graph for each shape of
    batch."""

    def __init__(self, weights: dict[str, torch.Tensor], optimizer: MuonAdam, config, dtype: torch.dtype):
        self.weights, self.optimizer, self.config, self.dtype = weights, optimizer, config, dtype
        self.device = weights["embed"].device
        self.recorded: dict[tuple[int, ...], tuple] = {}
        self.pool = None

    def once(self, rows: torch.Tensor) -> torch.Tensor:
        if self.device.type == "cuda":
            kernels = torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION)
        else:
            kernels = nullcontext()
        with kernels:
            loss = weighted_loss(self.weights, rows, self.config, self.dtype)
            gradients = torch.autograd.grad(loss, list(self.weights.values()))
        self.optimizer.update(dict(zip(self.weights, gradients, strict=True)))
        return loss.detach()

    def record(self, shape: tuple[int, ...]) -> tuple:
        """A graph of the step for this shape: the trial runs that a recording needs leave no trace in the
        weights."""
        rows = torch.ones(shape, dtype=torch.int64, device=self.device)
        state = [*self.weights.values(), *self.optimizer.state().values()]
        before = [t.detach().clone() for t in state]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.once(rows)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool):
            loss = self.once(rows)
        self.pool = graph.pool()
        with torch.no_grad():
            for t, old in zip(state, before, strict=True):
                t.copy_(old)
        return graph, rows, loss

    def __call__(self, rows: torch.Tensor, rate: float) -> torch.Tensor:
        """Train on rows (B, L) int64 at `rate` of the peak learning rates; the loss, a scalar on the
        device."""
        self.optimizer.rate.fill_(rate)
        if self.device.type != "cuda":
            return self.once(rows)
        if tuple(rows.shape) not in self.recorded:
            self.recorded[tuple(rows.shape)] = self.record(tuple(rows.shape))
        graph, into, loss = self.recorded[tuple(rows.shape)]
        into.copy_(rows, non_blocking=True)
        graph.replay()
        return loss
