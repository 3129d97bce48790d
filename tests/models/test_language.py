"""The language models' full-size and hub sources do as they say, and a cache is handed over under its right
name."""

import time
import warnings

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache, LlamaConfig

from inferlab.models import cache_argument, load_language_model
from inferlab.models.language import FULL, FULL_COMMON, TOKENIZER, WEIGHTS, random_model

SMALL = LlamaConfig(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                    num_key_value_heads=2,
                    vocab_size=100, bos_token_id=1, eos_token_id=2, pad_token_id=0)


def test_random_weights_follow_from_the_seed_alone():
    state = torch.get_rng_state()
    one, same = random_model(SMALL, "cpu", torch.bfloat16), random_model(SMALL, "cpu", torch.bfloat16)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), same.parameters(), strict=True))
    assert one.dtype == torch.bfloat16 and 0.01 < one.lm_head.weight.float().std() < 0.03
    other = random_model(SMALL, "cpu", torch.bfloat16, seed=1)
    assert not torch.equal(one.lm_head.weight, other.lm_head.weight)


def test_the_full_sizes_are_the_published_ones():
    for size, low, high in (("target", 8.0e9, 8.1e9), ("draft", 0.45e9, 0.55e9)):
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(LlamaConfig(**FULL[size], **FULL_COMMON),
                                                     dtype=torch.bfloat16)
        assert low < model.num_parameters() < high
        assert model.config.num_key_value_heads < model.config.num_attention_heads


def test_full_size_is_refused_where_it_does_not_fit(monkeypatch):
    monkeypatch.setattr("inferlab.models.fit.free_memory", lambda device: 10**9)
    with pytest.raises(MemoryError, match=r"the weights need 16\.1 GB"):
        load_language_model("full", "cpu", dtype=torch.bfloat16)


@pytest.mark.timing
def test_without_a_network_the_hub_says_so_at_once(monkeypatch, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    started = time.monotonic()
    with pytest.raises(ConnectionError, match=r"'bundled'.*'full'"):
        load_language_model("hub", "cpu")
    assert time.monotonic() - started < 15


def test_an_unknown_source_is_refused():
    with pytest.raises(ValueError, match="expected 'bundled', 'full', 'hub'"):
        load_language_model("local", "cpu")


def test_a_cache_is_filled_by_generate_and_by_a_positional_call_without_a_warning():
    model = AutoModelForCausalLM.from_config(SMALL).eval()
    ids = torch.arange(3, 12)[None]
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("error")
        named, positional = DynamicCache(config=SMALL), DynamicCache(config=SMALL)
        model.generate(ids, max_new_tokens=4, min_new_tokens=4, do_sample=False, **cache_argument(named))
        model(ids, None, None, positional)
    assert named.get_seq_length() == 9 + 4 - 1, "the last token is not fed back"
    assert positional.get_seq_length() == 9


def test_the_tokenizer_reads_any_text():
    tokenizer = AutoTokenizer.from_pretrained(WEIGHTS / TOKENIZER)
    text = "Story: Mira rolled to the hill. Übermut, 東京 & 42!\nQuestion: Why?"
    ids = tokenizer(text).input_ids
    assert ids[0] == tokenizer.bos_token_id
    assert tokenizer.decode(ids, skip_special_tokens=True) == text
    assert None not in (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id)
    assert len(tokenizer(" Mira rolled to the hill.",
                         add_special_tokens=False).input_ids) == 6, "a word is a token"
