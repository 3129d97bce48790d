"""The parts of a FluxTransformerBlock as plain functions, for the lab that puts them together by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from diffusers.models.transformers.transformer_flux import FluxTransformerBlock

Parts = dict[str, Any]


def block_parts(block: FluxTransformerBlock) -> Parts:
    """The functions of which a double-stream block consists, with the block's own weights.

    Args:
        block: a ``FluxTransformerBlock`` of width D, with heads of d features.

    Returns:
        "picture" and "text": for each stream a dict of "modulation" (``temb`` (B, D) to six tensors
        (B, 1, D): shift, scale and gate of the attention, then of the MLP), "norm", "out" and "mlp"
        ((B, S, D) to the same) and "qkv" ((B, S, D) to queries, keys and values (B, S, heads, d), queries and
        keys normalized). "rotate" turns (B, S, heads, d) by a table (cos, sin) of (S, d) each; "attention"
        takes queries, keys and values to (B, S, D).
    """
    from diffusers.models.embeddings import apply_rotary_emb

    attn = block.attn
    picture = (attn.to_q, attn.to_k, attn.to_v), (attn.norm_q, attn.norm_k)
    text = (attn.add_q_proj, attn.add_k_proj, attn.add_v_proj), (attn.norm_added_q, attn.norm_added_k)
    return {
        "picture": _stream(block.norm1, block.norm2, _qkv(*picture, attn.heads), attn.to_out[0], block.ff),
        "text": _stream(block.norm1_context, block.norm2_context, _qkv(*text, attn.heads), attn.to_add_out,
                        block.ff_context),
        "rotate": lambda x, cos, sin: apply_rotary_emb(x, (cos, sin), sequence_dim=1),
        "attention": _attention,
    }


def _stream(modulation: Any, norm: Any, qkv: Callable, out: Any, mlp: Any) -> Parts:
    """The five parts of one stream. Plain functions: a module is no data, and would not cross to a grader."""
    return {
        "modulation": lambda temb: modulation.linear(modulation.silu(temb)).unsqueeze(1).chunk(6, dim=-1),
        "norm": lambda x: norm(x),
        "qkv": qkv,
        "out": lambda x: out(x),
        "mlp": lambda x: mlp(x),
    }


def _qkv(linears: tuple, norms: tuple, heads: int) -> Callable[[torch.Tensor], tuple[torch.Tensor, ...]]:
    def qkv(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        q, k, v = (linear(x).unflatten(-1, (heads, -1)) for linear in linears)
        return norms[0](q), norms[1](k), v

    return qkv


def _attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return torch.nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2, 3)
