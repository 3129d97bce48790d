"""Lab 08: what its text says of adapters is so, and its hand-made parts are what peft does."""

import json
from functools import partial

import pytest
import torch
from peft.tuners.lora import Linear
from safetensors import safe_open

from inferlab.lab.cards import load_cards
from inferlab.models import load_pipeline
from inferlab.models.adapters import ADAPTERS, STYLES, style_folder, write_adapter
from inferlab.models.quiet import quiet
from tests.lab.labtexts import (
    cell_of,
    efforts_declared,
    efforts_said,
    overwritten_by_checks,
    points_of,
    prose_of,
    sources_shown,
)

LAB = "lab08-lora"
LAYER = "mid_block.attentions.0.transformer_blocks.0.attn2.to_k"
cell = partial(cell_of, LAB)


@pytest.fixture(scope="module")
def solved():
    """The names that the lab's solutions define."""
    names: dict = {"torch": torch, "json": json}
    for exercise in ("forecast", "delta", "change"):
        exec(cell(exercise=exercise), names)
    return names


@pytest.fixture
def pipe():
    """The bundled pipeline with both adapters, in float32."""
    pipe = load_pipeline("bundled", "cpu")
    load(pipe)
    return pipe


def load(pipe):
    with quiet():
        for style in STYLES:
            pipe.load_lora_weights(ADAPTERS, weight_name=f"{style}.safetensors", adapter_name=style)


def layer_of(pipe):
    return pipe.unet.get_submodule(LAYER)


def matrix(pipe):
    return layer_of(pipe).base_layer.weight.detach().clone()


def read(style):
    with safe_open(ADAPTERS / f"{style}.safetensors", "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata()


def test_a_check_cell_overwrites_nothing_that_the_lab_still_uses():
    assert not overwritten_by_checks(LAB, {"torch", "json", "Check", "Words", "_", "words", "quiet"})


def test_practice_is_at_most_forty_percent_and_each_exercise_says_its_points():
    points = points_of(LAB)
    assert sum(points.values()) == 12 and points["delta"] == 3 <= 0.4 * 12
    prose = prose_of(LAB)
    assert "**Points** 12, of which 3 are practice" in prose
    assert efforts_said(LAB) == efforts_declared(LAB)


def test_every_note_on_the_installed_source_finds_its_line(pipe):
    assert {name: notes for name, notes, _ in sources_shown(LAB, Linear=Linear, pipe=pipe)} == {
        "Linear.forward": 3, "Linear.unmerge": 2}


@pytest.mark.parametrize("weight", [1.0, 0.5, -0.3])
def test_the_delta_by_hand_is_what_peft_adds(solved, pipe, weight):
    pipe.set_adapters(["punched"], [weight])
    layer = layer_of(pipe)
    text = torch.randn(1, 16, 192, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        theirs = layer(text) - layer.base_layer(text)
    ours = text @ solved["delta"](*read("punched"), LAYER, weight).T
    assert theirs.std() > 0.01 and torch.allclose(ours, theirs, atol=1e-5)


def test_a_file_without_settings_counts_its_alpha_as_its_rank(pipe):
    tensors, _ = read("punched")
    pipe.unload_lora_weights()
    with quiet():
        pipe.load_lora_weights(dict(tensors), adapter_name="older")
    assert layer_of(pipe).scaling["older"] == 1.0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_fused_adapters_are_rounded_one_after_the_other(pipe, dtype):
    with quiet():
        pipe.unet.to(dtype)
    pipe.set_adapters(["punched", "meadow"], [1.0, 0.5])
    old = matrix(pipe)
    layer = layer_of(pipe)
    deltas = [(layer.lora_B[name].weight.detach().float() @ layer.lora_A[name].weight.detach().float()
               * layer.scaling[name]).to(dtype) for name in ("punched", "meadow")]
    pipe.fuse_lora()
    assert torch.equal((old + deltas[0]) + deltas[1], matrix(pipe))
    assert not torch.equal((old + deltas[1]) + deltas[0], matrix(pipe))


def test_unfusing_leaves_rounding_and_a_weight_set_between_leaves_more(pipe):
    old = matrix(pipe)
    pipe.set_adapters(["punched"], [1.0])
    pipe.fuse_lora()
    full = (matrix(pipe) - old).abs().max()
    pipe.unfuse_lora()
    left = (matrix(pipe) - old).abs().max()
    assert 0 < left < 1e-6 < 0.01 < full
    layer_of(pipe).base_layer.weight.data.copy_(old)
    pipe.fuse_lora()
    pipe.set_adapters(["punched"], [0.5])
    pipe.unfuse_lora()
    assert (matrix(pipe) - old).abs().max() == pytest.approx(float(full / 2), rel=1e-3)


def test_the_repaired_change_is_a_fresh_pipeline_to_the_bit(solved, pipe):
    kept = {name: layer.base_layer.weight.detach().clone() for name, layer in pipe.unet.named_modules()
            if isinstance(layer, Linear)}

    def carry_out(events):
        for event in events:
            if event[0] == "set":
                pipe.set_adapters(list(event[1]), list(event[1].values()))
            elif event[0] == "copy back":
                for name, weight in kept.items():
                    pipe.unet.get_submodule(name).base_layer.weight.data.copy_(weight)
            else:
                with quiet():
                    {"fuse": pipe.fuse_lora, "unfuse": pipe.unfuse_lora}[event[0]]()

    wanted = {"punched": 0.7, "meadow": 0.4}
    for weights in ((1.0, 0.0), (0.3, 0.9), (0.0, 0.2)):
        carry_out(solved["change"](dict(zip(STYLES, weights, strict=True))))
    carry_out(solved["change"](wanted))
    fresh = load_pipeline("bundled", "cpu")
    load(fresh)
    fresh.set_adapters(list(wanted), list(wanted.values()))
    fresh.fuse_lora()
    assert all(torch.equal(fresh.unet.get_submodule(name).base_layer.weight,
                           pipe.unet.get_submodule(name).base_layer.weight) for name in kept)


def test_a_hot_swap_keeps_the_tensors_and_the_name_and_sets_the_weight_back(pipe):
    pipe.set_adapters(["punched"], [0.5])
    layer = layer_of(pipe)
    factor, other = layer.lora_A["punched"].weight, layer.lora_A["meadow"].weight
    with quiet():
        pipe.load_lora_weights(ADAPTERS, weight_name="meadow.safetensors", adapter_name="punched",
                               hotswap=True)
    assert layer.lora_A["punched"].weight is factor and torch.equal(factor, other)
    assert layer.scaling["punched"] == 2.0
    with pytest.raises(RuntimeError, match="before loading the first adapter"):
        pipe.enable_lora_hotswap(target_rank=8)


def test_a_prepared_hot_swap_pads_the_factors_with_zeros():
    pipe = load_pipeline("bundled", "cpu")
    pipe.enable_lora_hotswap(target_rank=8)
    load(pipe)
    layer = layer_of(pipe)
    assert layer.lora_A["punched"].weight.shape == (8, 192) and layer.lora_B["punched"].weight.shape[1] == 8
    assert not layer.lora_A["punched"].weight[4:].any() and torch.is_tensor(layer.scaling["punched"])


def test_adapters_of_random_factors_are_read_with_their_rank_and_alpha(tmp_path):
    pipe = load_pipeline("bundled", "cpu")
    assert style_folder("bundled", pipe.unet, tmp_path) == ADAPTERS
    assert sorted(path.stem for path in style_folder("full", pipe.unet, tmp_path).iterdir()) == sorted(STYLES)
    write_adapter(pipe.unet, tmp_path / "x.safetensors", rank=3, alpha=12, projections=("to_q", "to_v"))
    with quiet():
        pipe.load_lora_weights(tmp_path, weight_name="x.safetensors", adapter_name="x")
    found = [layer for layer in pipe.unet.modules() if isinstance(layer, Linear)]
    assert len(found) == 44 and all(layer.scaling["x"] == 4.0 for layer in found)
    assert found[0].lora_B["x"].weight.any()
    with pytest.raises(ValueError, match="no linear layer"):
        write_adapter(pipe.unet, tmp_path / "y.safetensors", projections=("to_nothing",))


def test_four_cards_on_diffusion_are_this_labs():
    cards = [card for card in load_cards("diffusion").cards if card.see == LAB]
    assert len(cards) == 4 and all(card.question[-1] in "?." for card in cards)
