"""Lab 24: its solutions are torch's products on the model's own tensors, and what its text says is so."""

import ast
import copy
from functools import partial

import pytest
import torch

from inferlab.lab.cards import load_cards
from inferlab.lab.kits.low_precision import (
    VARIANTS,
    LinearInputs,
    calibration_texts,
    linear_layers,
    torchao_linear,
    with_product,
)
from inferlab.models import load_language_model
from inferlab.models.stories import documents
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

LAB = "lab24-low-precision"
DOWN = "layers.6.mlp.down_proj"
cell = partial(cell_of, LAB)


@pytest.fixture(scope="module")
def solved():
    """The names that the lab's solutions define."""
    names: dict = {"torch": torch}
    for exercise in ("verdict", "w8a8", "smooth", "gptq"):
        exec(cell(exercise=exercise), names)
    return names


@pytest.fixture(scope="module")
def bundled():
    return load_language_model("bundled", "cpu", dtype=torch.float32)


def ids_of(tokenizer, n, seed, length):
    return [tokenizer(one.text(), return_tensors="pt").input_ids[:, :length]
            for one in documents(n, seed=seed)]


@pytest.fixture(scope="module")
def run(bundled):
    """(ids, logits, name -> input of each linear layer)."""
    model, tokenizer = bundled
    text = " ".join(one.text() for one in documents(2, seed=0, kind="story"))
    ids = tokenizer(text, return_tensors="pt").input_ids[:, :200]
    with torch.no_grad():
        plain = model(ids).logits
        with LinearInputs(model) as noted:
            assert torch.equal(model(ids).logits, plain)
        assert torch.equal(model(ids).logits, plain) and all(len(calls) == 1 for calls in noted.seen.values())
    return ids, plain, {name: calls[0] for name, calls in noted.seen.items()}


def off(model, run, product):
    with torch.no_grad():
        return float((with_product(model, product)(run[0]).logits - run[1]).norm() / run[1].norm())


def test_a_check_cell_overwrites_nothing_that_the_lab_still_uses():
    shared = {"torch", "Check", "reference", "close", "Words", "words", "field", "_"}
    assert not overwritten_by_checks(LAB, shared)
    assert_no_mistake_is_named(LAB)


def test_practice_is_at_most_forty_percent_and_each_exercise_says_its_points():
    points = points_of(LAB)
    assert sum(points.values()) == 16 and points["w8a8"] + points["gptq"] == 6 <= 0.4 * 16
    assert "**Points** 16, of which 6 are practice" in prose_of(LAB)
    assert efforts_said(LAB) == efforts_declared(LAB)


def test_every_note_on_the_installed_source_finds_its_line():
    assert [notes for _, notes, _ in sources_shown(LAB, torchao_linear=torchao_linear)] == [6]


def test_another_product_is_the_models_own_where_it_is_the_same(bundled, run):
    model, _ = bundled
    assert off(model, run, lambda name, x, w: x @ w.T) < 1e-5
    assert len(linear_layers(model)) == 7 * 8 and "lm_head" not in linear_layers(model)


def test_codes_times_codes_is_torchs_product_to_the_bit(solved, run, bundled):
    weights = linear_layers(bundled[0])
    for name in (DOWN, "layers.0.self_attn.q_proj"):
        x, w = run[2][name], weights[name].weight.detach()
        codes = [(one / (one.abs().amax(1, keepdim=True) / 127)).round().to(torch.int8) for one in (x, w)]
        assert torch.equal(solved["w8a8"](x, w)[0], torch._int_mm(codes[0], codes[1].T))


def test_activations_are_what_costs_and_a_scale_for_each_token_helps(solved, bundled, run):
    model, w8a8 = bundled[0], solved["w8a8"]
    alone = off(model, run, lambda n, x, w: x @ ((w / (s := w.abs().amax(1, True) / 127)).round() * s).T)
    token = off(model, run, lambda n, x, w: w8a8(x, w)[1])
    tensor = off(model, run, lambda n, x, w: (x / (s := x.abs().max() / 127)).round() * s @ w.T)
    assert alone < 0.01 and 1.5 * alone < token < 0.04 and tensor > 0.1
    x = run[2][DOWN]
    assert (x / (x.abs().max() / 127)).round().eq(0).float().mean() > 0.95
    assert (x / (x.abs().max() / 448)).to(torch.float8_e4m3fn).float().eq(0).float().mean() < 0.2


def test_no_weight_stands_out_as_the_inputs_of_down_proj_do(bundled, run):
    def stands_out(numbers):
        return float((size := numbers.abs().amax(0)).max() / size.median())

    layers = linear_layers(bundled[0])
    assert max(stands_out(one.weight.detach()) for one in layers.values()) < 10
    for name, x in run[2].items():
        assert (stands_out(x) > 50) == name.endswith("down_proj"), name


def test_a_smoothed_model_computes_the_same_and_its_codes_are_better(solved, bundled, run):
    model, tokenizer = bundled
    with torch.no_grad(), LinearInputs(model, "down_proj") as other:
        for ids in ids_of(tokenizer, 24, 7, 150):
            model(ids)
    errors = {}
    for alpha in (0.5, 1.0):
        twin = copy.deepcopy(model)
        for number, layer in enumerate(twin.model.layers):
            up, down = layer.mlp.up_proj.weight.data, layer.mlp.down_proj.weight.data
            reach = torch.cat(other.seen[f"layers.{number}.mlp.down_proj"]).abs().amax(0)
            _, new_up, new_down = solved["smooth"](up, down, reach, alpha)
            up.copy_(new_up)
            down.copy_(new_down)
        with torch.no_grad():
            assert torch.equal(twin(run[0]).logits, run[1])
        errors[alpha] = off(twin, run, lambda n, x, w: solved["w8a8"](x, w)[1])
    plain = off(model, run, lambda n, x, w: solved["w8a8"](x, w)[1])
    assert errors[0.5] < 0.8 * plain < plain < errors[1.0]


def test_feedback_needs_texts_enough(solved, bundled):
    model, tokenizer = bundled
    with torch.no_grad(), LinearInputs(model, "layers.3.self_attn.o_proj") as seen:
        for ids in [*ids_of(tokenizer, 24, 3, 150), *ids_of(tokenizer, 6, 4, 150)]:
            model(ids)
    [calls] = seen.seen.values()
    w, new = linear_layers(model)["layers.3.self_attn.o_proj"].weight.detach(), torch.cat(calls[24:])
    step = w.abs().amax(1, keepdim=True) / 7

    def ratio(x, texts):
        codes, scales = solved["gptq"](w, torch.cat(calls[:texts]), 4)
        forms = (codes * scales[:, None]).float(), (w / step).round() * step
        errors = [(x @ (form - w).T).norm() for form in forms]
        return float(errors[0] / errors[1])

    assert ratio(calls[0], 1) < 0.4 and ratio(new, 1) > 1 > 0.8 > ratio(new, 24)


def test_each_variant_has_one_set_that_misleads_and_it_has_the_most_tokens(bundled):
    model, tokenizer = bundled
    chosen = []
    for variant in range(0, VARIANTS, 3):
        traffic, sets = calibration_texts(tokenizer, variant)
        reach = {}
        for name, texts in {"traffic": traffic, **sets}.items():
            with torch.no_grad(), LinearInputs(model, "down_proj") as seen:
                for ids in texts:
                    model(ids)
            reach[name] = torch.stack([torch.cat(calls).abs().max() for calls in seen.seen.values()])
        beyond = {name: float((reach["traffic"] / reach[name]).max()) for name in sets}
        first, second = sorted(beyond, key=beyond.get, reverse=True)[:2]
        assert beyond[first] > 2.5 > 2 > beyond[second], variant
        assert first == max(sets, key=lambda name: sum(ids.shape[1] for ids in sets[name])), variant
        chosen.append(first)
    assert len(set(chosen)) >= 3
    with pytest.raises(ValueError, match="variant is 0 to 15"):
        calibration_texts(tokenizer, VARIANTS)


def test_the_cell_for_a_gpu_calls_torchs_fp8_product_as_it_is():
    source = cell(begins="if torch.cuda.is_available()")
    ast.parse(source)
    a, b = torch.randn(32, 64), torch.randn(48, 64)
    names: dict = {"torch": torch}
    exec("def in_fp8" + source.partition("def in_fp8")[2].partition("\n\n")[0].replace("\n    ", "\n"), names)
    (qa, sa), (qb, sb) = names["in_fp8"](a, 1), names["in_fp8"](b, 1)
    made = torch._scaled_mm(qa, qb.T, sa, sb.T, out_dtype=torch.bfloat16)
    assert (made.float() - a @ b.T).norm() < 0.06 * (a @ b.T).norm()


def test_three_cards_are_this_labs():
    cards = [card for card in load_cards("inference").cards if card.see == LAB]
    assert len(cards) == 3 and all(card.question.endswith("?") for card in cards)
