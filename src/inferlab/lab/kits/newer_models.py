"""What the lab on newer models uses: tiny models with seeded weights, sizes from configs, routers that are
recorded or broken, and the bytes of caches with windows, latents and states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

import torch

from inferlab.lab.identity import of_variant
from inferlab.lab.kits.kv_caches import real_bytes
from inferlab.models.quiet import quiet

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

PUBLISHED = {"Mistral 7B v0.1": "mistral", "Mixtral 8x7B": "mixtral", "Gemma 2 2B": "gemma2",
             "gpt-oss 120B": "gpt_oss", "DeepSeek-V3": "deepseek_v3", "Qwen3-Next 80B": "qwen3_next"}
"""Published models whose sizes are the defaults of the config classes of `transformers`, by model type."""

_TINY: dict[str, dict[str, Any]] = {
    "mistral": {"num_hidden_layers": 2, "sliding_window": 8},
    "mixtral": {"num_local_experts": 8, "num_experts_per_tok": 2},
    "qwen3_moe": {"num_experts": 32, "num_experts_per_tok": 4, "moe_intermediate_size": 32},
    "gemma2": {"sliding_window": 8, "query_pre_attn_scalar": 16},
    "gpt_oss": {"sliding_window": 8, "num_local_experts": 4, "num_experts_per_tok": 2},
    "deepseek_v3": {"num_key_value_heads": 4, "n_routed_experts": 16, "num_experts_per_tok": 4, "n_group": 4,
                    "topk_group": 2, "moe_intermediate_size": 32, "first_k_dense_replace": 1,
                    "kv_lora_rank": 20, "q_lora_rank": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8,
                    "v_head_dim": 12},
    "qwen3_next": {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
                   "shared_expert_intermediate_size": 32, "linear_num_key_heads": 2,
                   "linear_num_value_heads": 4, "linear_key_head_dim": 8, "linear_value_head_dim": 12},
}


def tiny(kind: str, seed: int = 0, **sizes: Any) -> PreTrainedModel:
    """A model of the library's class of this model type, in float32 on the CPU, with seeded random weights.

    Args:
        kind: a model type of `transformers`: one of `PUBLISHED`, or "qwen3_moe".
        seed: of the weights.
        sizes: entries of the config that shall be others.

    Raises:
        ValueError: a model type that the lab does not have.
    """
    from transformers import AutoConfig, AutoModelForCausalLM

    if kind not in _TINY:
        raise ValueError(f"kind is {kind!r}; expected one of {', '.join(_TINY)}")
    common = {"vocab_size": 512, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 4,
              "num_attention_heads": 4, "num_key_value_heads": 2, "initializer_range": 0.2,
              "max_position_embeddings": 131_072, "bos_token_id": None, "eos_token_id": None,
              "pad_token_id": None}
    if kind != "deepseek_v3":
        common["head_dim"] = 16
    config = AutoConfig.for_model(kind, **(common | _TINY[kind] | sizes))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(config).float().eval()
        for name, bias in model.named_buffers():
            if name.endswith("e_score_correction_bias"):  # zero before training: then it would choose nothing
                bias.normal_(0, 0.1)
    return model


_OF_A_CACHE = ("num_key_value_heads", "head_dim", "sliding_window", "kv_lora_rank", "qk_rope_head_dim",
               "linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim",
               "linear_value_head_dim", "linear_conv_kernel_dim")


def cache_sizes(config: PretrainedConfig) -> dict[str, Any]:
    """What a config says about the size of a cache, under the config's own names, and `layer_types`.

    Where a config lists no `layer_types`, all layers are "sliding_attention" if it has a window, and
    "full_attention" otherwise, as `DynamicCache` reads it. Names that a config does not have are left out.
    """
    found = {name: getattr(config, name) for name in _OF_A_CACHE if getattr(config, name, None) is not None}
    if "head_dim" not in found:
        found["head_dim"] = config.hidden_size // config.num_attention_heads
    types = getattr(config, "layer_types", None)
    if types is None:
        kind = "sliding_attention" if "sliding_window" in found else "full_attention"
        types = [kind] * config.num_hidden_layers
    return {"layer_types": list(types), **found}


def state_bytes(sizes: dict[str, Any], item_bytes: int) -> int:
    """Bytes that one layer of linear attention keeps of one sequence: the newest inputs of its convolution in
    numbers of `item_bytes`, and a state of 4-byte numbers. `sizes` are those of `cache_sizes`."""
    keys = sizes["linear_num_key_heads"] * sizes["linear_key_head_dim"]
    values = sizes["linear_num_value_heads"] * sizes["linear_value_head_dim"]
    return ((2 * keys + values) * sizes["linear_conv_kernel_dim"] * item_bytes
            + 4 * values * sizes["linear_key_head_dim"])


def in_open_groups(worth: torch.Tensor, groups: int, kept: int) -> torch.Tensor:
    """`worth` (tokens, experts), with -inf for all experts outside a token's `kept` best groups.

    Neighbouring experts form `groups` groups of equal size, as in DeepSeek-V3; a group is worth the sum of
    its two best experts.
    """
    parts = worth.unflatten(-1, (groups, -1))
    best = parts.topk(2, -1).values.sum(-1).topk(kept, -1).indices
    closed = torch.ones_like(parts[..., 0], dtype=torch.bool).scatter(1, best, False)
    return parts.masked_fill(closed[..., None], -torch.inf).flatten(1)


def bytes_in_cache(cache: Any) -> int:
    """Bytes of all tensors that a cache holds, states of linear attention included."""
    total = real_bytes(cache)
    for layer in cache.layers:
        for name in ("conv_states", "recurrent_states"):
            total += sum(one.nbytes for one in getattr(layer, name, {}).values() if one is not None)
    return total


@dataclass(frozen=True)
class Routing:
    """What one router decided in one call: `logits` (tokens, experts), and (tokens, chosen) `weights` and
    `experts`."""

    logits: torch.Tensor
    weights: torch.Tensor
    experts: torch.Tensor


class Routers:
    """Within the block, every call of a router of the model is noted in `calls`, layer after layer.

    Nothing is changed. What a hook put on a router earlier returns is what is noted.
    """

    def __init__(self, model: torch.nn.Module) -> None:
        self.calls: list[Routing] = []
        self._routers = _routers(model)
        self._handles: list[torch.utils.hooks.RemovableHandle] = []

    def __enter__(self) -> Routers:
        def note(module: torch.nn.Module, args: Any, output: Any) -> None:
            self.calls.append(Routing(*(one.detach().clone() for one in output)))

        self._handles = [router.register_forward_hook(note) for router in self._routers]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 where: TracebackType | None) -> None:
        for handle in self._handles:
            handle.remove()


def _routers(model: torch.nn.Module) -> list[torch.nn.Module]:
    return [module for module in model.modules() if type(module).__name__.lower().endswith("router")]


ROUTING_FAULTS = ("collapsed", "unnormalized", "uniform", "shifted")


def misroute(model: torch.nn.Module, fault: str, layer: int) -> Callable[[], None]:
    """Breaks the router of one layer of a Mixtral, from now on. Returns a function that mends it.

    Args:
        model: a model of `tiny("mixtral")`.
        fault: "collapsed" (one expert's logit is far above the others), "unnormalized" (the chosen experts'
            weights are not divided by their sum), "uniform" (each chosen expert has the same weight),
            "shifted" (the work goes to the expert after the chosen one).
        layer: whose router, from 0.

    Raises:
        ValueError: an unknown fault.
    """
    if fault not in ROUTING_FAULTS:
        raise ValueError(f"fault is {fault!r}; expected one of {ROUTING_FAULTS}")

    def broken(module: torch.nn.Module, args: Any, output: Any) -> tuple[torch.Tensor, ...]:
        logits, weights, experts = output
        if fault == "collapsed":
            favored = torch.zeros(logits.shape[-1])
            favored[layer] = 20.0
            logits = logits + favored
            weights, experts = logits.softmax(-1).topk(experts.shape[-1], -1)
            weights = weights / weights.sum(-1, keepdim=True)
        elif fault == "unnormalized":
            weights = logits.softmax(-1).gather(-1, experts)
        elif fault == "uniform":
            weights = torch.full_like(weights, 1 / weights.shape[-1])
        else:
            experts = (experts + 1) % logits.shape[-1]
        return logits, weights, experts

    return _routers(model)[layer].register_forward_hook(broken).remove


def suspect_router(model: torch.nn.Module, variant: int) -> Callable[[], None]:
    """Breaks one router of a `tiny("mixtral")` as belongs to a variant, 0 to 15; see `misroute`."""
    return misroute(model, *routing_fault(variant))


def routing_fault(variant: int) -> tuple[str, int]:
    """The fault of a variant, 0 to 15, and the layer that has it."""
    return of_variant(variant, [(fault, layer) for fault in ROUTING_FAULTS for layer in range(4)], str)


def filled_cache(model: PreTrainedModel, ids: torch.Tensor) -> Any:
    """A `DynamicCache` after a prefill of all tokens but the last and a decode step of the last.

    Args:
        model: of `tiny`.
        ids: (batch, tokens) int64, at least two tokens.
    """
    from transformers import DynamicCache

    cache = DynamicCache(config=model.config)
    with torch.no_grad(), quiet():
        model(ids[:, :-1], None, None, cache)
        model(ids[:, -1:], None, None, cache)
    return cache
