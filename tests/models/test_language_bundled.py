"""The bundled language models answer, differ in size as they should, and load quietly; the other sources do
as they say."""

import json
import warnings
from pathlib import Path

import pytest
import torch

from inferlab.models import load_language_model
from inferlab.models.language import WEIGHTS
from inferlab.models.quiet import quiet
from inferlab.models.scenes import parse_caption
from inferlab.models.stories import documents, questions


@pytest.fixture(scope="module")
def target():
    return load_language_model("bundled", "cpu")


@pytest.fixture(scope="module")
def draft():
    return load_language_model("bundled", "cpu", draft=True)


def answer(model, tokenizer, prompt: str, **how) -> str:
    inputs = tokenizer(prompt, return_tensors="pt")
    out = model.generate(**inputs, max_new_tokens=64, do_sample=False, **how)
    return tokenizer.decode(out[0, inputs.input_ids.shape[1] :], skip_special_tokens=True).strip()


def share_right(model, tokenizer, n: int) -> float:
    """The share of `n` held-out questions answered to the letter."""
    asked = questions(n, seed=2024)
    return sum(answer(model, tokenizer, doc.prompt(turn)) == turn.reply for doc, turn in asked) / n


@pytest.mark.slow
def test_the_target_answers_and_the_draft_answers_fewer(target, draft):
    right, fewer = share_right(*target, 60), share_right(*draft, 60)
    assert right >= 0.95
    assert fewer <= 0.75
    assert right - fewer >= 0.2


def test_sizes_and_shared_query_groups(target, draft):
    for (model, _), low, high in ((target, 5e6, 8e6), (draft, 5e4, 1e6)):
        assert low <= model.num_parameters() <= high
        assert model.config.num_key_value_heads < model.config.num_attention_heads
        assert model.config.max_position_embeddings >= 512
        assert model.dtype == torch.float32 and not model.training
    bytes_on_disk = sum(f.stat().st_size for f in Path(WEIGHTS).rglob("*") if f.is_file())
    assert bytes_on_disk <= 14e6


def test_one_tokenizer_for_both_that_reads_any_text(target, draft):
    ours, theirs = target[1], draft[1]
    assert ours.get_vocab() == theirs.get_vocab() and len(ours) == target[0].config.vocab_size
    text = "Story: Mira rolled to the hill. Übermut, 東京 & 42!\nQuestion: Why?"
    ids = ours(text).input_ids
    assert ids[0] == ours.bos_token_id
    assert ours.decode(ids, skip_special_tokens=True) == text
    assert None not in (ours.bos_token_id, ours.eos_token_id, ours.pad_token_id)


def test_nothing_is_warned_about(capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model, tokenizer = load_language_model("bundled", "cpu")
        assistant, _ = load_language_model("bundled", "cpu", draft=True)
        batch = tokenizer(["Story: One morning", "Story: Long ago a"], return_tensors="pt", padding=True)
        model.generate(**batch, max_new_tokens=3, do_sample=False)
        model.generate(**batch, max_new_tokens=3, do_sample=True, top_k=0)
        one = tokenizer("Story: One morning", return_tensors="pt")
        with quiet():  # the library logs a deprecation of its own from inside its candidate generator
            model.generate(**one, max_new_tokens=8, do_sample=False, assistant_model=assistant)
    printed = capfd.readouterr()
    assert printed.err == "" and printed.out == ""


def test_assisted_greedy_text_is_the_same_text(target, draft):
    for doc, turn in questions(4, seed=7):
        alone = answer(*target, doc.prompt(turn))
        assert answer(*target, doc.prompt(turn), assistant_model=draft[0]) == alone


def test_captions_it_writes_can_be_drawn(target):
    asked = [(d, t) for d in documents(40, seed=77, kind="story", turns=8, ending=True) for t in d.turns
             if t.kind == "draw"][:10]
    written = [answer(*target, doc.prompt(turn)) for doc, turn in asked]
    assert all(len(parse_caption(caption).things) == 2 for caption in written)
    assert sum(caption == turn.reply for caption, (_, turn) in zip(written, asked, strict=True)) >= 8


def test_a_long_story_is_read(target):
    model, tokenizer = target
    doc = next(d for d in documents(50, seed=5, kind="story", events=24)
               if len(tokenizer(d.context).input_ids) > 512)
    inputs = tokenizer(doc.text(), return_tensors="pt")
    with torch.no_grad():
        assert model(**inputs, labels=inputs.input_ids).loss < 0.7
    assert all(answer(model, tokenizer, doc.prompt(turn)) == turn.reply for turn in doc.turns if turn.graded)


def test_the_shipped_weights_are_half_precision():
    from safetensors import safe_open

    for size in ("target", "draft"):
        with safe_open(WEIGHTS / size / "model.safetensors", "pt") as file:
            assert {file.get_tensor(name).dtype for name in file.keys()} == {torch.float16}
        config = json.loads((WEIGHTS / size / "config.json").read_text())
        assert config["model_type"] == "llama" and config["dtype"] == "float16"
