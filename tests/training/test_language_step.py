"""The language models' training step computes what transformers computes; documents are encoded as the
tokenizer does."""

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer

from inferlab.models.stories import documents
from training.language import WEIGHTS, make_model
from training.language_data import TOKENIZER, Encoder, shard_of
from training.language_optim import MuonAdam, orthogonalized
from training.language_step import ELSEWHERE, REPLY, Step, logits, stack, unstack, weighted_loss


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(WEIGHTS / TOKENIZER)


def rows_of(tokenizer) -> torch.Tensor:
    encode = Encoder(WEIGHTS / TOKENIZER / "tokenizer.json")
    return torch.tensor([encode(d)[:60] for d in documents(3, seed=1, kind="story")])


def test_the_pass_over_stacked_weights_is_the_library_s(tokenizer):
    model = make_model("draft", tokenizer)
    for layer in model.model.layers:
        torch.nn.init.normal_(layer.mlp.down_proj.weight, std=0.1)  # the fresh ones are zero
    ids = rows_of(tokenizer) & (REPLY - 1)
    assert torch.allclose(logits(stack(model), ids, model.config, torch.float32), model(input_ids=ids).logits,
                          atol=1e-4)


def test_replies_count_more_than_the_rest(tokenizer):
    model = make_model("draft", tokenizer)
    rows = rows_of(tokenizer).clone()
    rows[:, 50:] |= REPLY
    ids = rows & (REPLY - 1)
    losses = torch.nn.functional.cross_entropy(
        model(input_ids=ids).logits[:, :-1].transpose(1, 2), ids[:, 1:], reduction="none")
    counts = torch.tensor([ELSEWHERE] * 49 + [1.0] * 10)
    expected = (losses * counts).sum() / (3 * counts.sum())
    assert torch.allclose(weighted_loss(stack(model), rows, model.config, torch.float32), expected, atol=1e-4)


def test_a_few_steps_learn_a_batch_and_reach_the_model(tokenizer):
    model = make_model("draft", tokenizer)
    weights = stack(model)
    step, rows = Step(weights, MuonAdam(weights), model.config, torch.float32), rows_of(tokenizer)
    losses = [step(rows, 1.0).item() for _ in range(8)]
    assert losses[-1] < losses[0] - 0.5
    unstack(weights, model)
    ids = rows & (REPLY - 1)
    assert model(input_ids=ids, labels=ids).loss < losses[0]


def test_orthogonalizing_brings_all_singular_values_near_one():
    matrices = torch.randn(2, 64, 24, generator=torch.Generator().manual_seed(0))
    values = torch.linalg.svdvals(orthogonalized(matrices).float())
    assert 0.5 < values.min() and values.max() < 1.4


def test_documents_are_encoded_as_by_the_tokenizer_and_replies_are_marked(tokenizer):
    encode = Encoder(WEIGHTS / TOKENIZER / "tokenizer.json")
    for doc in documents(60, seed=2):
        ids = np.array(encode(doc))
        assert (ids & (REPLY - 1)).tolist() == tokenizer(doc.text()).input_ids
        replies = tokenizer.decode(ids[ids >= REPLY] & (REPLY - 1))
        assert replies == "".join(f" {turn.reply}</s>" for turn in doc.turns)


def test_every_shard_is_used_twice():
    used = [shard_of(block) for block in range(96)]
    assert sorted(used) == sorted([*range(48)] * 2)
