"""The roofline's counts are the library's own, its rates are the device's, and its picture shows both."""

import pytest
import torch
from transformers import AutoModelForCausalLM, DynamicCache, LlamaConfig

from inferlab.lab.kits.decode.roofline import (
    Dot,
    Rates,
    Sizes,
    best_seconds,
    call_cost,
    measure_device,
    overhead_seconds,
    regime,
    roofline,
)

SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "head_dim": 8, "vocab_size": 40,
         "num_attention_heads": 4}
BUNDLED = {"hidden_size": 256, "intermediate_size": 704, "num_hidden_layers": 8, "head_dim": 32,
           "vocab_size": 1024,
           "num_attention_heads": 8, "num_key_value_heads": 2}


def model_of(kv_heads: int, tied: bool = True):
    torch.manual_seed(0)
    config = LlamaConfig(**SIZES, num_key_value_heads=kv_heads, tie_word_embeddings=tied,
                         attn_implementation="eager",
                         bos_token_id=None, eos_token_id=None)
    return AutoModelForCausalLM.from_config(config).eval()


def counted(model, ids, cache, keep) -> dict[str, int]:
    """FLOPs by operation, as torch counts them while the model runs."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(ids, None, None, cache, logits_to_keep=keep)
    return {str(op): value for op, value in counter.get_flop_counts()["Global"].items()}


@pytest.mark.parametrize("kv_heads", [1, 2, 4])
@pytest.mark.parametrize(("batch", "new", "context"), [(1, 7, 0), (3, 1, 7), (2, 4, 7)])
def test_flops_are_those_that_torch_counts(kv_heads, batch, new, context):
    model = model_of(kv_heads)
    cache = DynamicCache(config=model.config)
    if context:
        with torch.no_grad():
            model(torch.zeros(batch, context, dtype=torch.int64), None, None, cache)
    for all_logits in (False, True):
        cost = call_cost(model.config, new, context, batch, all_logits=all_logits)
        seen = counted(model, torch.zeros(batch, new, dtype=torch.int64), cache, 0 if all_logits else 1)
        cache.crop(-new)
        assert seen["aten.mm"] == cost.linear_flops
        rope = SIZES["head_dim"] * new * batch  # older releases count the table of positions as a product
        assert seen["aten.bmm"] - cost.attention_flops in (0, rope, rope // batch)


def test_bytes_are_those_of_the_parameters_and_of_the_cache():
    model = model_of(2)
    cache = DynamicCache(config=model.config)
    with torch.no_grad():
        model(torch.zeros(3, 5, dtype=torch.int64), None, None, cache)
    cost = call_cost(model.config, 1, 5, 3)
    assert cost.weight_bytes == sum(p.nbytes for p in model.parameters())
    assert cost.cache_read_bytes == sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers)
    assert cost.cache_written_bytes * 5 == cost.cache_read_bytes


def test_the_bundled_models_numbers():
    cost = call_cost(BUNDLED, 256)
    assert (cost.linear_flops, cost.attention_flops, cost.cache_written_bytes) == (2_886_205_440, 536_870_912,
                                                                                   1_048_576)
    assert call_cost(BUNDLED, 256, all_logits=True).linear_flops == 3_019_898_880
    assert call_cost(BUNDLED, 1, 256).attention_flops == 2_105_344
    assert Sizes.of(BUNDLED).layer_weights == 5_636_096


def test_a_device_is_measured_and_a_call_gets_its_regime():
    rates = measure_device("cpu")
    assert 1e8 < rates.flops_per_s < 1e14 and 1e8 < rates.bytes_per_s < 1e12
    assert rates.roof(rates.ridge * 2) == rates.flops_per_s > rates.roof(rates.ridge / 2)
    cost, made_up = call_cost(BUNDLED, 1, 256), Rates("made up", 1e12, 1e11)
    assert regime(cost, made_up, 1.0)[0] == "launch-bound"
    assert regime(cost, made_up, 0.0)[0] == "memory-bound"
    assert regime(call_cost(BUNDLED, 256), made_up, 0.0)[0] == "compute-bound"


def test_the_overhead_is_that_of_the_same_layers():
    model = model_of(2)
    ids = torch.zeros(1, 1, dtype=torch.int64)
    whole = best_seconds(lambda: model(ids, None, None, DynamicCache(config=model.config)))
    assert 0 < overhead_seconds(model.config) < 20 * whole


def test_the_picture_holds_every_dot_and_refuses_unknown_arrows():
    rates = Rates("made up", 1e12, 1e11)
    dots = [Dot("decode", call_cost(BUNDLED, 1, 256), group="decode"),
            Dot("prefill", call_cost(BUNDLED, 256), 0.01, "prefill")]
    axis = roofline(rates, dots, title="t", arrows=[("decode", "prefill")]).axes[0]
    assert {"decode", "prefill"} <= {text.get_text() for text in axis.texts}
    with pytest.raises(ValueError, match="no dot"):
        roofline(rates, dots, title="t", arrows=[("decode", "elsewhere")])
    with pytest.raises(ValueError, match="groups"):
        roofline(rates, [], title="t")


def test_a_config_without_head_dim_has_the_width_by_the_heads():
    without = {name: value for name, value in BUNDLED.items() if name != "head_dim"}
    assert Sizes.of(without) == Sizes.of(BUNDLED)
    with pytest.raises(KeyError):
        Sizes.of({"hidden_size": 8, "num_attention_heads": 2})
