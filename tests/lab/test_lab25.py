"""Lab 25: its solutions are the library's routers, caches and drafts, and what its text says is so."""

from functools import partial

import pytest
import torch
from transformers import AutoConfig
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3Attention
from transformers.models.mixtral.modeling_mixtral import MixtralExperts

from inferlab.lab.cards import load_cards
from inferlab.lab.kits import newer_models as kit
from inferlab.lab.kits.attention import SdpaCalls
from tests.lab.labtexts import (
    assert_no_mistake_is_named,
    cell_of,
    efforts_declared,
    efforts_said,
    overwritten_by_checks,
    points_of,
    prose_of,
    sources_shown,
)

LAB = "lab25-newer-models"
cell = partial(cell_of, LAB)


@pytest.fixture(scope="module")
def solved():
    """The names that the lab's solutions define."""
    names: dict = {"torch": torch, "in_open_groups": kit.in_open_groups, "state_bytes": kit.state_bytes}
    for exercise in ("forecast", "route", "cache", "absorb", "diagnosis"):
        exec(cell(exercise=exercise), names)
    return names


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.no_grad():
        yield


def tokens(rows, count, seed=0):
    return torch.randint(0, 512, (rows, count), generator=torch.Generator().manual_seed(seed))


def test_a_check_cell_overwrites_nothing_that_the_lab_still_uses():
    assert not overwritten_by_checks(LAB, {"torch", "Check", "reference", "Words", "_", "words"})
    assert_no_mistake_is_named(LAB)


def test_practice_is_at_most_forty_percent_and_each_exercise_says_its_points():
    points = points_of(LAB)
    assert sum(points.values()) == 16 and points["route"] + points["absorb"] == 4 <= 0.4 * 16
    assert "**Points** 16, of which 4 are practice" in prose_of(LAB)
    assert efforts_said(LAB) == efforts_declared(LAB)


def test_every_note_on_the_installed_source_finds_its_line():
    views = sources_shown(LAB, MixtralExperts=MixtralExperts, DeepseekV3Attention=DeepseekV3Attention)
    assert [notes for _, notes, _ in views] == [3, 3]


@pytest.mark.parametrize(("kind", "k", "normalize"), [("mixtral", 2, True), ("qwen3_moe", 4, False)])
def test_route_is_the_librarys_block(solved, kind, k, normalize):
    block, x = kit.tiny(kind).model.layers[2].mlp, torch.randn(30, 64)
    weights, experts = solved["route"](block.gate(x)[0], k, normalize)
    assert torch.allclose(block.experts(x, experts, weights), block(x[None])[0], atol=1e-5)


def test_routing_in_groups_is_the_librarys_block_and_the_bias_matters(solved):
    block, x = kit.tiny("deepseek_v3").model.layers[1].mlp, torch.randn(50, 64)
    logits, _, theirs = block.gate(x)
    bias = block.gate.e_score_correction_bias
    weights, experts = solved["route_in_groups"](logits, bias, 4, 4, 2, 2.5)
    mine = block.experts(x, experts, weights) + block.shared_experts(x)
    assert torch.allclose(mine, block(x[None])[0], atol=1e-5)
    plain = solved["route_in_groups"](logits, 0 * bias, 4, 4, 2, 2.5)[1]
    assert (plain.sort().values != theirs.sort().values).any()


def test_a_batch_reads_more_experts_and_a_bit_less_than_even_choices_would(solved):
    model = kit.tiny("qwen3_moe")
    with kit.Routers(model) as routers:
        plain = model(tokens(64, 4)).logits
    assert torch.equal(plain, model(tokens(64, 4)).logits) and len(routers.calls) == 4
    for batch in (1, 16, 64):
        counts = [call.experts.view(64, 4, 4)[:batch, place].unique().numel()
                  for call in routers.calls for place in range(4)]
        even = solved["forecast"](batch, 32, 4, 0, 6144)[0]
        assert 0.85 * even < sum(counts) / len(counts) <= even + 1e-9


@pytest.mark.parametrize("kind", kit.PUBLISHED.values())
@pytest.mark.parametrize("count", [4, 33])
def test_cache_bytes_are_those_of_real_caches(solved, kind, count):
    model = kit.tiny(kind)
    held = kit.bytes_in_cache(kit.filled_cache(model, tokens(2, count)))
    assert held == solved["cache_bytes"](kit.cache_sizes(model.config), count, 2, 4)


def test_the_published_sizes_are_told_by_the_config_classes():
    layers = {name: kit.cache_sizes(AutoConfig.for_model(kind))["layer_types"]
              for name, kind in kit.PUBLISHED.items()}
    assert [len(one) for one in layers.values()] == [32, 32, 26, 36, 61, 48]
    assert layers["Qwen3-Next 80B"].count("linear_attention") == 36


def test_a_state_stays_in_float32_where_the_model_is_in_16_bits():
    cache = kit.filled_cache(kit.tiny("qwen3_next").bfloat16(), tokens(1, 9))
    [conv], [state] = cache.layers[0].conv_states.values(), cache.layers[0].recurrent_states.values()
    assert (conv.dtype, state.dtype) == (torch.bfloat16, torch.float32)


def test_a_window_ends_a_tokens_influence_and_a_layer_that_sees_everything_brings_it_back():
    ids = tokens(1, 40, 1)
    other = ids.clone()
    other[0, 0] += 1
    for kind, last in (("mistral", 14), ("gemma2", 39)):
        model = kit.tiny(kind)
        assert (model(ids).logits != model(other).logits).any(-1)[0].nonzero().max() == last


def test_absorbed_is_the_librarys_attention_and_caches_latents(solved):
    model = kit.tiny("deepseek_v3")
    with SdpaCalls() as seen:
        cache = kit.filled_cache(model, tokens(1, 41))
    for number, layer in enumerate(cache.layers):
        assert layer.keys.shape == (1, 1, 41, 20) and layer.values.shape == (1, 1, 41, 8)
        call, attention = seen.calls[number - 4], model.model.layers[number].self_attn
        parts = call["query"][0].split([16, 8], -1)
        matrices = attention.kv_b_proj.weight.view(4, 28, 20).split([16, 12], 1)
        _, out = solved["absorbed"](*parts, layer.keys[0, 0], layer.values[0, 0], *matrices,
                                    attention.scaling)
        assert torch.allclose(out, call["output"][0], atol=1e-5)


@pytest.mark.parametrize("variant", range(16))
def test_each_variant_has_one_broken_router_that_the_solution_finds(solved, variant):
    model = kit.tiny("mixtral")
    plain = model(tokens(1, 96, 6)).logits
    mend = kit.suspect_router(model, variant)
    with kit.Routers(model) as suspect:
        assert not torch.equal(model(tokens(1, 96, 6)).logits, plain)
    mend()
    assert torch.equal(model(tokens(1, 96, 6)).logits, plain)
    solved["suspect"] = suspect
    assert solved["diagnose"]()[::-1] == kit.routing_fault(variant)


def test_unknown_kinds_and_faults_are_refused():
    with pytest.raises(ValueError, match="mixtral"):
        kit.tiny("bert")
    with pytest.raises(ValueError, match="collapsed"):
        kit.misroute(kit.tiny("mixtral"), "lost", 0)


def test_three_cards_are_this_labs():
    cards = [card for card in load_cards("inference").cards if card.see == LAB]
    assert len(cards) == 3 and all(card.question.endswith("?") for card in cards)
