"""Lab 22: its solutions are torch's attention on the model's own tensors, and what its text says is so."""

import ast
from functools import partial

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from inferlab.lab.cards import load_cards
from inferlab.lab.kits.attention import Moved, SdpaCalls, multiplications, scored, tried, walk
from inferlab.models import load_language_model
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

LAB = "lab22-attention-kernel"
cell = partial(cell_of, LAB)


@pytest.fixture(scope="module")
def solved():
    """The names that the lab's solutions and the colleagues' steps define."""
    names: dict = {"torch": torch, "scored": scored}
    for exercise in ("forecast", "one-pass", "join", "step"):
        exec(cell(exercise=exercise), names)
    exec(cell(begins="def colleague_step"), names)
    return names


@pytest.fixture(scope="module")
def layers():
    """(q, k, v) of each layer for 200 tokens, without the axis of sequences."""
    model, _ = load_language_model("bundled", "cpu")
    ids = torch.randint(0, 1000, (1, 200), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        plain = model(ids).logits
        with SdpaCalls() as seen:
            assert torch.equal(model(ids).logits, plain)
    return [tuple(call[name][0] for name in ("query", "key", "value")) for call in seen.calls]


def served(solved, q, k, v, block, causal):
    fetched = []

    def fetch(start, stop):
        fetched.append((start, stop))
        return k[:, start:stop], v[:, start:stop]

    return *solved["one_pass"](q, fetch, k.shape[1], block, causal), fetched


def sdpa(q, k, v, causal):
    return scaled_dot_product_attention(q[None], k[None], v[None], is_causal=causal, enable_gqa=True)[0]


def test_a_check_cell_overwrites_nothing_that_the_lab_still_uses():
    assert not overwritten_by_checks(LAB, {"torch", "Check", "reference", "Words", "_", "words"})
    assert_no_mistake_is_named(LAB)


def test_practice_is_at_most_forty_percent_and_each_exercise_says_its_points():
    points = points_of(LAB)
    assert sum(points.values()) == 17 and points["one-pass"] == 4 <= 0.4 * 17
    assert "**Points** 17, of which 4 are practice" in prose_of(LAB)
    assert efforts_said(LAB) == efforts_declared(LAB)


def test_every_note_on_the_installed_source_finds_its_line():
    views = sources_shown(LAB, sdpa_attention_forward=sdpa_attention_forward)
    assert {name: notes for name, notes, _ in views} == {"sdpa_attention_forward": 1}


@pytest.mark.slow
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("block", [1, 7, 64, 256])
def test_one_pass_is_torchs_attention_and_moves_what_is_forecast(solved, layers, block, causal):
    for q, k, v in layers if block == 64 else layers[:1]:
        out, lse, fetched = served(solved, q, k, v, block, causal)
        assert torch.allclose(out, sdpa(q, k, v, causal), atol=1e-5)
        moved = 4 * (2 * q.numel() + sum(2 * (stop - start) * 2 * 32 for start, stop in fetched))
        blocks = -(-200 // block)
        if causal:
            assert len(fetched) == blocks * (blocks + 1) / 2
        else:
            assert moved == solved["forecast"](200, 200, 8, 2, 32, blocks, 4)["one pass"]
        _, theirs, *_ = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
            q[None], *(x.repeat_interleave(4, 0)[None] for x in (k, v)), 0.0, causal)
        assert torch.allclose(lse, theirs[0], atol=1e-4)


def test_bfloat16_is_within_the_stated_tolerance(solved, layers):
    for layer in layers:
        q, k, v = (x.bfloat16() for x in layer)
        out = served(solved, q, k, v, 64, True)[0]
        assert out.dtype == torch.bfloat16 and (out - sdpa(q, k, v, True)).abs().max() <= 0.02


def test_joined_parts_are_the_whole_and_an_empty_one_counts_for_nothing(solved, layers):
    q, k, v = layers[3]
    q = q[:, -1:]
    cuts = (0, 9), (9, 150), (150, 200)
    parts = [served(solved, q, k[:, a:b], v[:, a:b], 32, False)[:2] for a, b in cuts]
    parts.append((torch.full_like(q, torch.nan), torch.full(q.shape[:2], -torch.inf)))
    out, lse = solved["join"](*(torch.stack(one) for one in zip(*parts, strict=True)))
    assert torch.allclose(out, sdpa(q, k, v, False), atol=1e-5)
    assert torch.allclose(lse, served(solved, q, k, v, 64, False)[1], atol=1e-5)


def test_the_obvious_repair_passes_the_test_with_ones_and_is_right_if_the_maximum_comes_first(solved, layers):
    q, k, v = layers[0]
    scores = q @ k.repeat_interleave(4, 0).mT * 32**-0.5
    v = v.repeat_interleave(4, 0)
    exact = scores.softmax(-1) @ v
    late = scores[..., :64].amax(-1) < scores.amax(-1)
    wrong = {name: (walk(solved[name], scores, v, 64) - exact).abs().amax(-1) > 1e-4
             for name in ("colleague_step", "obvious_step", "step")}
    ones = {name: walk(solved[name], scores, torch.ones_like(v), 64) for name in wrong}
    assert ones["colleague_step"].max() > 1.1
    assert all(torch.allclose(ones[name], torch.ones(1)) for name in ("obvious_step", "step"))
    assert not wrong["step"].any() and not wrong["obvious_step"][~late].any()
    assert tried(solved["step"], q, k, v[::4]).endswith("1.00 to 1.00; 0% of the rows are wrong")
    assert 0.3 < late.float().mean() < 0.9 and wrong["obvious_step"][late].float().mean() > 0.9


def test_the_math_backend_writes_the_table_and_flash_is_one_operation(layers):
    made = {}
    for backend in (SDPBackend.MATH, SDPBackend.FLASH_ATTENTION):
        with sdpa_kernel(backend), Moved() as moved:
            sdpa(*layers[0], True)
        made[backend] = moved.operations
    assert sum(one.shape[-2:] == (200, 200) for one in made[SDPBackend.MATH]) >= 3
    [flash] = made[SDPBackend.FLASH_ATTENTION]
    assert flash.written == 4 * (8 * 200 * 32 + 8 * 200)


def test_one_pass_multiplies_as_often_as_the_naive_kernel(solved, layers):
    q, k, v = layers[0]
    naive = multiplications(lambda: (q.reshape(2, -1, 32) @ k.mT).softmax(-1) @ v)
    assert naive == multiplications(lambda: served(solved, q, k, v, 64, False)) == 2 * 8 * 200 * 200 * 32


def test_a_view_moves_nothing():
    with Moved() as moved:
        torch.zeros(4, 6).mT.reshape(6, 2, 2)[0].unsqueeze(0)
    assert [one.name for one in moved.operations][:1] == ["zeros"]
    assert moved.bytes == sum(one.read + one.written for one in moved.operations)


def test_the_kernel_for_a_gpu_has_at_most_sixty_lines_and_is_skipped_elsewhere():
    source = cell(begins="if torch.cuda.is_available():")
    assert len(source.splitlines()) <= 66 and "was not run" in source
    kernel = source[source.index("@triton.jit"):source.index("    large = ")]
    assert len(kernel.splitlines()) <= 60
    ast.parse(source)


def test_three_cards_are_this_labs():
    cards = [card for card in load_cards("inference").cards if card.see == LAB]
    assert len(cards) == 3 and all(card.question.endswith("?") for card in cards)
