"""Lab 16: its decoders are what its hidden test says, its counts are those of a real run, its numbers are
made by code."""

from types import SimpleNamespace

import pytest
import torch

from inferlab.lab.kits.speculation import (
    RULES,
    VARIANTS,
    passes_against_acceptance,
    rounds_of,
    unknown_decoders,
)
from tests.lab.labtexts import blocks_of, cell_of, prose_of, sources_shown

LAB = "lab16-speculative-decoding"


@pytest.fixture(scope="module")
def blocks():
    return blocks_of(LAB)


def source(blocks, **metadata) -> str:
    """The source of the one cell of the lab with this metadata."""
    found = [b.cell.source for b in blocks if all(b.cell.metadata.get(key) == value
                                                  for key, value in metadata.items())]
    assert len(found) == 1
    return found[0]


def solution(blocks, exercise: str, **names) -> dict:
    """What the lab's own solution of an exercise defines."""
    namespace: dict = {"torch": torch, **names}
    exec(source(blocks, exercise=exercise), namespace)
    return namespace


def truths(blocks) -> list:
    text = source(blocks, check="which-decoder")
    table = text[text.index("TRUTH = ["):]
    namespace: dict = {}
    exec(table[: table.index("\n]") + 2], namespace)
    return namespace["TRUTH"]


@pytest.mark.parametrize("variant", range(VARIANTS))
def test_the_labs_own_solution_finds_every_rule(blocks, variant):
    names = {"torch": torch, "lab": SimpleNamespace(variant=lambda most: variant), "SEED": 0}
    exec(cell_of(LAB, begins="from inferlab.lab.kits.speculation import unknown_decoders"), names)
    found = solution(blocks, "which-decoder", **names)["diagnose"]()
    assert tuple(found.values()) == truths(blocks)[variant]


def test_each_letter_and_each_rule_occurs_among_the_variants(blocks):
    orders = truths(blocks)
    assert len(set(orders)) == VARIANTS and {rule for order in orders for rule in order} == set(RULES)
    assert all(sum(rule in order for order in orders) >= 6 for rule in RULES)
    assert {order.index("exact") for order in orders} == {0, 1, 2}
    with pytest.raises(ValueError, match="0 to 15"):
        unknown_decoders(VARIANTS)


def labs_p_value():
    """The test that the lab shows and uses."""
    namespace: dict = {"torch": torch}
    exec(cell_of(LAB, begins="def p_value"), namespace)
    return namespace["p_value"]


def test_the_exact_decoder_passes_the_labs_test_and_the_others_fail_it(blocks):
    p_value = labs_p_value()
    p, q = torch.tensor([0.5, 0.3, 0.15, 0.05]).double(), torch.tensor([0.1, 0.4, 0.2, 0.3]).double()
    for variant in range(VARIANTS):
        for letter, rule in zip("ABC", truths(blocks)[variant], strict=True):
            tokens, _ = unknown_decoders(variant)[letter](p, q, 8000, 3)
            value = p_value(torch.bincount(tokens, minlength=4), p)
            assert value > 0.001 if rule == "exact" else value < 1e-6, rule


def test_the_ensemble_follows_the_mixture_as_the_library_does(blocks):
    """Emitted is w p + (1 - w) q with w = 0.5, also by the installed library's own rule."""
    from transformers.generation.utils import _speculative_sampling

    p, q = torch.tensor([0.7, 0.3, 0.0]).double(), torch.tensor([0.2, 0.3, 0.5]).double()
    variant = next(n for n, order in enumerate(truths(blocks)) if "ensemble" in order)
    ours, _ = unknown_decoders(variant)["ABC"[truths(blocks)[variant].index("ensemble")]](p, q, 8000, 3)
    torch.manual_seed(0)
    theirs = [
        int(_speculative_sampling(torch.tensor([[drafted]]), q.log()[None, None], 1, p.log().expand(1, 2, 3),
                                  assistant_ensemble_weight=0.5)[0][0, 0])
        for drafted in torch.multinomial(q, 2000, replacement=True).tolist()]
    p_value = labs_p_value()
    for tokens in (ours, torch.tensor(theirs)):
        assert p_value(torch.bincount(tokens, minlength=3), (p + q) / 2) > 0.001
        assert p_value(torch.bincount(tokens, minlength=3), p) == 0


def test_the_labs_rule_keeps_the_distribution(blocks):
    verify, p_value = solution(blocks, "verify")["verify"], labs_p_value()
    p, q = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.2, 0.5, 0.3])
    draw = torch.Generator().manual_seed(0)
    drafted = torch.multinomial(q, 6000, replacement=True, generator=draw).tolist()
    numbers = torch.rand(6000, 2, generator=draw).tolist()
    first = [verify(torch.stack([p, p]), q[None], [x], [u], pick)[0]
             for x, (u, pick) in zip(drafted, numbers, strict=True)]
    assert p_value(torch.bincount(torch.tensor(first), minlength=3), p.double()) > 0.001


@pytest.fixture(scope="module")
def assisted():
    from inferlab.models import load_language_model
    from inferlab.models.quiet import quiet
    from inferlab.trace import trace

    target, tokenizer = load_language_model("bundled", "cpu")
    draft, _ = load_language_model("bundled", "cpu", draft=True)
    settings = draft.generation_config
    settings.num_assistant_tokens, settings.num_assistant_tokens_schedule = 3, "constant"
    settings.assistant_confidence_threshold = 0.0
    ids = tokenizer("Scene: On a gray background, from left to right:", return_tensors="pt").input_ids
    torch.manual_seed(0)
    with torch.no_grad(), trace(target, draft) as run, quiet():
        tokens = target.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=16, do_sample=True,
                                 top_k=0, assistant_model=draft)
    return tokens.shape[1] - ids.shape[1], run, target, ids


def test_rounds_read_off_a_trace_add_up_to_the_tokens(assisted):
    new, run, _, _ = assisted
    positions, removed = rounds_of(run)
    assert sum(positions) - sum(removed) == new and len(positions) == len(removed)
    assert set(positions[:-3]) <= {4}


def test_rounds_need_a_trace_of_an_assisted_run(assisted):
    from inferlab.trace import trace

    _, _, target, ids = assisted
    with torch.no_grad(), trace(target) as plain:
        target.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=2, do_sample=False)
    with pytest.raises(ValueError, match="assisted"):
        rounds_of(plain)


def test_the_picture_shows_theory_and_runs():
    runs = {1: {"story": (0.7, 0.6)}, 4: {"story": (0.8, 0.3), "scene": (0.5, 0.4)}}
    figure = passes_against_acceptance({1: [1, 0.5], 4: [1, 0.2]}, runs, title="t")
    axis = figure.axes[0]
    drawn = [line for line in axis.lines if len(line.get_xdata())]
    assert len(drawn) == 5 and axis.get_xlabel() and axis.get_ylabel()
    assert [text.get_text() for text in axis.texts] == ["story", "story", "scene"]
    looks = {(line.get_color(), line.get_marker()) for line in axis.lines if line.get_marker() != "None"}
    assert len(looks) == 2
    with pytest.raises(ValueError, match="1 to 3"):
        passes_against_acceptance({}, {}, title="t")


def test_points_and_practice(blocks):
    points = {b.cell.metadata["check"]: b.cell.metadata["points"] for b in blocks
              if "check" in b.cell.metadata}
    assert sum(points.values()) == 17 and points["verify"] == 3
    assert "**Points** 17, of which 3 are practice" in prose_of(LAB)


def test_every_note_on_the_installed_source_finds_its_line():
    _, notes, lines = sources_shown(LAB)[0]
    assert notes == 9 and lines <= 60


def test_the_numbers_of_the_explanation_are_those_of_an_assisted_run():
    from inferlab.models import load_language_model
    from inferlab.models.quiet import quiet
    from inferlab.models.stories import documents
    from inferlab.trace import trace

    (target, tokenizer), (draft, _) = (load_language_model("bundled", "cpu", draft=small)
                                       for small in (False, True))
    settings = draft.generation_config
    settings.num_assistant_tokens, settings.num_assistant_tokens_schedule = 4, "constant"
    settings.assistant_confidence_threshold = 0.0
    text = " ".join(documents(1, seed=4, kind="story")[0].text().split(" ")[:60])
    ids = tokenizer(text, return_tensors="pt").input_ids
    torch.manual_seed(0)
    with trace(target, draft) as run, quiet(), torch.no_grad():
        target.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=24, do_sample=True, top_k=0,
                        assistant_model=draft)
    passes = run["LlamaForCausalLM"]
    widths = [call.inputs["input_ids"].shape for call in passes]
    assert [ids.shape, widths[0], widths[1]] == [(1, 74), (1, 78), (1, 5)]
    assert set(widths[1:-1]) == {(1, 5)} and widths[-1][1] <= 5
    assert list(passes[0].outputs["logits"].shape) == [1, 5, 1024]
