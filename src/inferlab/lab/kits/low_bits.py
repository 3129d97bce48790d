"""What the lab on quantization uses: stored bytes, a cache in few bits, a planted outlier, a picture."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from transformers import DynamicCache
from transformers.cache_utils import QuantizedLayer

from inferlab.lab.kits.decode.roofline import Sizes
from inferlab.lab.plots.style import ACCENT, DARK, LINES, MID, STYLE, finished

if TYPE_CHECKING:
    from transformers import PreTrainedModel

PLACES = (
    (0, 510), (0, 569), (6, 198), (7, 604), (6, 403), (0, 587), (6, 506), (6, 255),
    (0, 383), (7, 123), (7, 515), (7, 279), (7, 616), (6, 42), (7, 199), (6, 527),
)
"""Layer and channel of each variant's outlier in the bundled model: channels that it uses, so that clipping
one shows in the logits, in layers that count, so that ruining one shows as well. (Most channels hardly
matter.) A test holds the bounds for each of them."""
VARIANTS = len(PLACES)
OUTLIER = 64.0
"""A power of two: scaling by it and back is exact in floating point."""


def _sharing(model: PreTrainedModel) -> PreTrainedModel:
    """A copy of the modules over the same parameters, in which `quantize_` may replace some of them.

    A whole copy of an 8-billion model in float32 is 32 GB that nobody reads.
    """
    return copy.deepcopy(model, {id(p): p for p in model.parameters()})


def int8_weights(model: PreTrainedModel) -> PreTrainedModel:
    """A copy of ``model`` with torchao's int8 codes and one scale a row in its linear layers.

    Where the embedding and ``lm_head`` shared one tensor, only the head's is quantized, so there are two
    tables then.
    """
    from inferlab.models.quiet import quiet

    with quiet():  # on a machine without its GPU kernels, torchao logs that at its first import
        from torchao.quantization import Int8WeightOnlyConfig, quantize_

        small = _sharing(model)
        quantize_(small, Int8WeightOnlyConfig())
    return small


def int4_weights(model: PreTrainedModel, group: int = 32) -> PreTrainedModel:
    """A copy with torchao's 4-bit codes in groups in its linear layers, each code in an int8 of its own."""
    from inferlab.models.quiet import quiet

    with quiet():
        from torchao.quantization import IntxWeightOnlyConfig, quantize_
        from torchao.quantization.granularity import PerGroup

        small = _sharing(model)
        four: torch.dtype = getattr(torch, "int4")  # noqa: B009 - torch's stubs do not have it
        quantize_(small, IntxWeightOnlyConfig(weight_dtype=four, granularity=PerGroup(group)))
    return small


def parts_of(weight: torch.Tensor) -> dict[str, torch.Tensor]:
    """A weight's plain tensors: ``{"qdata": ..., "scale": ...}`` of torchao's, else ``{"data": ...}``."""
    names = getattr(type(weight), "tensor_data_names", None)
    if names is None:
        return {"data": weight.detach()}
    return {name: getattr(weight, name) for name in names}


def stored_bytes(model: torch.nn.Module) -> dict[str, int]:
    """Dtype ("int8", "float32", ...) -> bytes of all parameters as stored; a shared tensor counts once."""
    found: dict[str, int] = {}
    for weight in model.parameters():
        for part in parts_of(weight).values():
            name = str(part.dtype).removeprefix("torch.")
            found[name] = found.get(name, 0) + part.nbytes
    return found


class AbsmaxLayer(QuantizedLayer):
    """One layer of a cache: int8 codes, a scale for each group of the head's axis, a short residual.

    A code of fewer than 8 bits still occupies one byte here. In pure torch, so that it runs on every device.
    """

    def _quantize(self, tensor: torch.Tensor, axis: int) -> tuple[torch.Tensor, torch.Tensor]:
        groups = tensor.unflatten(-1, (-1, self.q_group_size))
        scale = groups.abs().amax(-1, keepdim=True).clamp(min=1e-8) / (2 ** (self.nbits - 1) - 1)
        return (groups / scale).round().to(torch.int8), scale

    def _dequantize(self, quantized: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        codes, scale = quantized
        return (codes * scale).flatten(-2)


class Float8Layer(AbsmaxLayer):
    """The same with codes in fp8 (4 bits of exponent, 3 of mantissa), whose steps grow with the value."""

    def _quantize(self, tensor: torch.Tensor, axis: int) -> tuple[torch.Tensor, torch.Tensor]:
        groups = tensor.unflatten(-1, (-1, self.q_group_size))
        scale = groups.abs().amax(-1, keepdim=True).clamp(min=1e-8) / torch.finfo(torch.float8_e4m3fn).max
        return (groups / scale).to(torch.float8_e4m3fn), scale

    def _dequantize(self, quantized: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        codes, scale = quantized
        return (codes.to(scale.dtype) * scale).flatten(-2)


def small_cache(config: Any, bits: int = 8, group: int = 32, residual: int = 8,
                float8: bool = False) -> DynamicCache:
    """A cache of `AbsmaxLayer` or `Float8Layer` for a model of this config, to ``generate`` with.

    Args:
        config: of the model.
        bits: 2 to 8; codes run from -(2^(bits-1) - 1) to 2^(bits-1) - 1.
        group: values that share one scale; divides `head_dim`.
        residual: as many tokens collect in full precision before they are quantized, too.
        float8: codes in fp8, whatever `bits` is.

    Raises:
        ValueError: `bits` or `group` is out of range.
    """
    head_dim = Sizes.of(config).head_dim
    if not 2 <= bits <= 8 or group < 1 or head_dim % group:
        raise ValueError(f"2 to 8 bits and a group that divides {head_dim}, not {bits} and {group}")
    cache = DynamicCache(config=config)
    kind = Float8Layer if float8 else AbsmaxLayer
    cache.layers = [kind(nbits=bits, q_group_size=group, residual_length=residual) for _ in cache.layers]
    return cache


def cache_bytes(cache: DynamicCache) -> dict[str, int]:
    """Bytes of a cache after a call: ``"codes"``, ``"scales"`` and ``"full"`` (not quantized)."""
    total = {"codes": 0, "scales": 0, "full": 0}
    for layer in cache.layers:
        total["full"] += layer.keys.nbytes + layer.values.nbytes
        for pair in (getattr(layer, "_quantized_keys", None), getattr(layer, "_quantized_values", None)):
            if pair is not None:
                total["codes"] += pair[0].nbytes
                total["scales"] += pair[1].nbytes
    return total


def with_outlier(model: PreTrainedModel, variant: int) -> PreTrainedModel:
    """A copy that computes what ``model`` does, with one channel of one MLP out of proportion.

    In one layer a row of ``up_proj`` is divided by 64 and the same column of ``down_proj`` multiplied by it:
    the product is the same, exactly, but the column stands far out of its matrix.

    Args:
        model: the bundled language model (8 layers, 704 channels in each MLP).
        variant: 0 to 15, which layer and which channel: see `PLACES`.

    Raises:
        ValueError: if the variant does not exist.
    """
    if not 0 <= variant < VARIANTS:
        raise ValueError(f"variant is 0 to {VARIANTS - 1}, not {variant}")
    twin = copy.deepcopy(model)
    layer, channel = PLACES[variant]
    mlp = twin.model.layers[layer].mlp
    with torch.no_grad():
        mlp.up_proj.weight[channel] /= OUTLIER
        mlp.down_proj.weight[:, channel] *= OUTLIER
    return twin


def error_and_bits(curves: Mapping[str, tuple[Sequence[int], Sequence[float], Sequence[float]]], *,
                   title: str) -> Figure:
    """Two panels over the group size, both logarithmic: the error, and a weight's bits with its scale.

    Args:
        curves: label -> (group sizes, errors, bits a weight); up to four.
        title: the finding.

    Raises:
        ValueError: if there is no curve, more than four, or one whose lists differ in length.
    """
    if not 1 <= len(curves) <= len(LINES) or any(len({len(part) for part in curve}) != 1
                                                 for curve in curves.values()):
        raise ValueError(f"1 to {len(LINES)} curves, each with as many errors and bits as group sizes")
    with plt.style.context(STYLE):
        fig, axes = plt.subplots(1, 2, figsize=(8.6, 3.6))
        for (label, (groups, errors, bits)), style, color in zip(curves.items(), LINES,
                                                                 (DARK, ACCENT, MID, "0.4"), strict=False):
            axes[0].plot(groups, errors, color=color, ms=5, label=label, **style)
            axes[1].plot(groups, bits, color=color, ms=5, label=label, **style)
        ticks = sorted({group for groups, _, _ in curves.values() for group in groups})
        for axis in axes:
            axis.set_xscale("log", base=2)
            axis.set_xticks(ticks, [str(tick) for tick in ticks])
            axis.minorticks_off()
            axis.set_xlabel("weights that share a scale")
        axes[0].set_yscale("log")
        axes[0].set_ylabel("error (share of the matrix's norm)")
        axes[1].set_ylabel("bits a weight, scales included")
        axes[1].set_ylim(bottom=0)
        axes[0].legend(frameon=False)
        fig.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
        fig.tight_layout()
    return finished(fig)
