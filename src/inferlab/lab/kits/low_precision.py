"""What the lab on low precision uses: the inputs of linear layers, the layers with another product, and sets
of texts to calibrate on."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

import torch

from inferlab.models.stories import documents

if TYPE_CHECKING:
    from transformers import PreTrainedModel

VARIANTS = 16
SETS = "ABCD"


def linear_layers(model: PreTrainedModel) -> dict[str, torch.nn.Linear]:
    """Name ("layers.0.mlp.down_proj") -> linear layer, of all decoder layers; the head is none of them."""
    return {f"layers.{name}": module for name, module in model.model.layers.named_modules()
            if isinstance(module, torch.nn.Linear)}


class LinearInputs:
    """Within the block, `seen` gets the input of each linear layer of the decoder layers.

    Args:
        model: a Llama-style causal model.
        ending: only layers whose name ends so, such as "down_proj".

    Attributes:
        seen: name -> list of tensors (tokens, columns), one for each call, sequences below each other.
    """

    def __init__(self, model: PreTrainedModel, ending: str = "") -> None:
        self.seen: dict[str, list[torch.Tensor]] = {}
        self._layers = {name: one for name, one in linear_layers(model).items() if name.endswith(ending)}
        self._hooks: list[Any] = []

    def __enter__(self) -> LinearInputs:
        for name, layer in self._layers.items():
            self._hooks.append(layer.register_forward_pre_hook(partial(self._note, name)))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 where: TracebackType | None) -> None:
        for hook in self._hooks:
            hook.remove()

    def _note(self, name: str, module: torch.nn.Module, args: tuple[torch.Tensor, ...]) -> None:
        self.seen.setdefault(name, []).append(args[0].flatten(0, -2))


def with_product(model: PreTrainedModel,
                 product: Callable[[str, torch.Tensor, torch.Tensor], torch.Tensor]) -> PreTrainedModel:
    """A copy over the same parameters, whose linear layers in the decoder layers compute ``product``.

    ``product(name, x, w)`` gets the layer's name, `x` (tokens, columns) and its weight (rows, columns), and
    returns (tokens, rows).
    """
    twin = copy.deepcopy(model, {id(p): p for p in model.parameters()})
    for name, layer in linear_layers(twin).items():
        def forward(x: torch.Tensor, name: str = name, weight: torch.Tensor = layer.weight) -> torch.Tensor:
            return product(name, x.flatten(0, -2), weight).unflatten(0, x.shape[:-1])

        vars(layer)["forward"] = forward  # of this one layer
    return twin


def torchao_linear() -> Callable:
    """The function by which torchao's `Int8Tensor` computes `torch.nn.functional.linear`."""
    from inferlab.models.quiet import quiet

    with quiet():  # on a machine without its GPU kernels, torchao logs that at its first import
        from torchao.quantization import Int8Tensor
    return Int8Tensor._ATEN_OP_TABLE[Int8Tensor][torch.ops.aten.linear.default]


def calibration_texts(tokenizer: Any,
                      variant: int) -> tuple[list[torch.Tensor], dict[str, list[torch.Tensor]]]:
    """What a service is asked, and four sets of texts to calibrate on: (traffic, {"A": texts, ...}).

    A text is a tensor (1, tokens). Three sets are small mixtures as the traffic is. One has more tokens than
    any of them and not one story: a variant sets which one it is and of what it consists.

    Raises:
        ValueError: if the variant does not exist.
    """
    if not 0 <= variant < VARIANTS:
        raise ValueError(f"variant is 0 to {VARIANTS - 1}, not {variant}")

    def texts(kind: str, n: int, seed: int) -> list[torch.Tensor]:
        return [tokenizer(one.text(), return_tensors="pt").input_ids[:, :60]
                for one in documents(n, seed=1000 * variant + seed, kind=kind)]

    def mixture(n: int, seed: int) -> list[torch.Tensor]:
        return [text for kind in ("story", "scene", "repeat") for text in texts(kind, n, seed)]

    misleads, kind = (variant * 7 + variant // 4) % 4, ("scene", "repeat")[variant // 4 % 2]
    sets = {name: texts(kind, 14, 10) if number == misleads else mixture(2 + number % 2, number)
            for number, name in enumerate(SETS)}
    return mixture(6, 20), sets
