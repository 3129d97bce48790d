"""Lab 16: its decoders are what its hidden test says, its counts are those of a real run, its numbers are made by code."""

import json
import re
from pathlib import Path

import pytest
import torch
from labtexts import blocks_of, figure_code

from inferlab.lab import setup
from inferlab.lab.check import results
from inferlab.lab.explain import parse, typed
from inferlab.lab.speculation import RULES, VARIANTS, passes_against_acceptance, rounds_of, unknown_decoders

ROOT = Path(__file__).resolve().parents[2]
LAB = "lab16-speculative-decoding"


@pytest.fixture(scope="module")
def blocks():
    return blocks_of(LAB)


def source(blocks, **metadata) -> str:
    """The source of the one cell of the lab with this metadata."""
    found = [b.cell.source for b in blocks if all(b.cell.metadata.get(key) == value for key, value in metadata.items())]
    assert len(found) == 1
    return found[0]


def solution(blocks, exercise: str, **names) -> dict:
    """What the lab's own solution of an exercise defines."""
    namespace: dict = {"torch": torch, **names}
    exec(source(blocks, exercise=exercise), namespace)  # noqa: S102 - the lab's own cell
    return namespace


def truths(blocks) -> list:
    text = source(blocks, check="which-decoder")
    table = text[text.index("TRUTH = ["):]
    namespace: dict = {}
    exec(table[: table.index("\n]") + 2], namespace)  # noqa: S102 - the lab's own text
    return namespace["TRUTH"]


@pytest.mark.parametrize("variant", range(VARIANTS))
def test_the_labs_own_solution_finds_every_rule(blocks, variant):
    found = solution(blocks, "which-decoder", decoders=unknown_decoders(variant))["diagnose"]()
    assert tuple(found.values()) == truths(blocks)[variant]


def test_each_letter_and_each_rule_occurs_among_the_variants(blocks):
    orders = truths(blocks)
    assert len(set(orders)) == VARIANTS and {rule for order in orders for rule in order} == set(RULES)
    assert {order.index("exact") for order in orders} == {0, 1, 2}
    with pytest.raises(ValueError, match="0 to 11"):
        unknown_decoders(VARIANTS)


def test_the_exact_decoder_passes_the_labs_test_and_the_others_fail_it(blocks):
    p_value = solution(blocks, "p-value")["p_value"]
    p, q = torch.tensor([0.5, 0.3, 0.15, 0.05]).double(), torch.tensor([0.1, 0.4, 0.2, 0.3]).double()
    for letter, rule in zip("ABC", truths(blocks)[0], strict=True):
        tokens, _ = unknown_decoders(0)[letter](p, q, 8000, 3)
        value = p_value(torch.bincount(tokens, minlength=4), p)
        assert value > 0.001 if rule == "exact" else value < 1e-6, rule


def test_the_labs_rule_keeps_the_distribution(blocks):
    verify, p_value = solution(blocks, "verify")["verify"], solution(blocks, "p-value")["p_value"]
    p, q = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.2, 0.5, 0.3])
    draw = torch.Generator().manual_seed(0)
    drafted = torch.multinomial(q, 6000, replacement=True, generator=draw).tolist()
    numbers = torch.rand(6000, 2, generator=draw).tolist()
    first = [verify(torch.stack([p, p]), q[None], [x], [u], pick)[0] for x, (u, pick) in zip(drafted, numbers, strict=True)]
    assert p_value(torch.bincount(torch.tensor(first), minlength=3), p.double()) > 0.001


@pytest.fixture(scope="module")
def assisted():
    from inferlab.models import load_language_model
    from inferlab.models.quiet import quiet
    from inferlab.trace import trace

    target, tokenizer = load_language_model("bundled", "cpu")
    draft, _ = load_language_model("bundled", "cpu", draft=True)
    settings = draft.generation_config
    settings.num_assistant_tokens, settings.num_assistant_tokens_schedule, settings.assistant_confidence_threshold = 3, "constant", 0.0
    ids = tokenizer("Scene: On a gray background, from left to right:", return_tensors="pt").input_ids
    torch.manual_seed(0)
    with torch.no_grad(), trace(target, draft) as run, quiet():
        tokens = target.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=16, do_sample=True, top_k=0, assistant_model=draft)
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
    figure = passes_against_acceptance({"theory": ([0, 1], [1, 0.2])}, {"runs": {"story": (0.7, 0.4)}, "default": {"story": (0.8, 0.5)}}, title="t")
    assert len(figure.axes[0].lines) == 3 and figure.axes[0].get_xlabel() and figure.axes[0].get_ylabel()
    with pytest.raises(ValueError, match="1 to 3"):
        passes_against_acceptance({}, {}, title="t")


@pytest.mark.parametrize(("label", "said", "verdict"), [
    ("gain", "latency down", "award"), ("gain", "fewer target passes", "award"), ("gain", "throughput up", "award"), ("gain", "tokens per pass up", "award"),
    ("gain", "bandwidth down", "award"), ("gain", "traffic down", "award"), ("gain", "memory traffic down", "award"), ("gain", "fewer weight reads", "award"),
    ("gain", "bytes per token down", "award"), ("gain", "memory accesses down", "award"), ("gain", "memory down", "deny"), ("gain", "VRAM down", "deny"),
    ("gain", "compute down", "deny"), ("gain", "bandwidth up", "deny"), ("gain", "quality up", "deny"), ("gain", "tokens per pass down", "deny"),
    ("cost", "compute up", "award"), ("cost", "memory up", "award"), ("cost", "draft passes up", "award"), ("cost", "bandwidth up", "deny"), ("cost", "traffic up", "deny"),
])
def test_what_speculation_gains_may_be_named_by_its_mechanism(blocks, label, said, verdict):
    text = source(blocks, check="round-gain-cost")
    namespace: dict = {}
    exec(text[text.index("OWN = {"):text.index("check.slot")], namespace)  # noqa: S102 - the lab's own text
    terms = namespace["OWN"] | (namespace["READ"] if label == "gain" else {})
    assert typed(parse(f"{label}: {said}\n", "one-round"), label, namespace[{"gain": "gains", "cost": "costs"}[label]], terms=terms).verdict == verdict


def test_a_whole_number_of_tokens_is_a_number(blocks, monkeypatch):
    monkeypatch.setattr(setup, "_current", setup.Lab(LAB, "learner", "bundled", "cpu", 0))
    namespace = solution(blocks, "expected")
    namespace["expected_tokens"] = lambda a, gamma: gamma + 1 if a == 1 else (1 - a ** (gamma + 1)) / (1 - a)
    exec(source(blocks, check="expected"), namespace)  # noqa: S102 - the lab's own cell
    assert float(results()["expected"]) == 2.0


def test_points_and_practice(blocks):
    points = {b.cell.metadata["check"]: b.cell.metadata["points"] for b in blocks if "check" in b.cell.metadata}
    assert sum(points.values()) == 25
    assert points["verify"] + points["p-value"] + points["expected"] == 7
    assert points["round-shape"] + points["round-settings"] + points["round-gain-cost"] == 3


def test_every_note_on_the_installed_source_finds_its_line(blocks, monkeypatch):
    monkeypatch.setenv("INFERLAB_STRICT_SOURCE", "1")
    cells = [b.cell.source for b in blocks if "show_source(" in b.cell.source]
    namespace: dict = {}
    exec(cells[0].replace("show_source(\n", "view = show_source(\n"), namespace)  # noqa: S102 - the lab's own text
    lines = [line for block in namespace["view"].blocks for line in block]
    assert sum(bool(line.note) for line in lines) == 10 and len(lines) <= 60


def test_rubric_examples_are_graded_as_they_say(blocks):
    from inferlab.lab.explain import selftest

    seen = 0
    for block in blocks:
        text = block.cell.source
        if "check" in block.cell.metadata and "Rubric(" in text:
            namespace: dict = {}
            imports = "from inferlab.lab.explain import Amounts, Rubric, Slot, Trend\n"
            exec(imports + text[text.index("RUBRIC = "):text.index("check.slot")], namespace)  # noqa: S102 - the lab's own text
            rubric = namespace["RUBRIC"]
            assert all(len(examples) >= 4 for kind in (rubric.must_award, rubric.must_deny) for examples in kind.values())
            assert selftest(rubric) == [], block.cell.metadata["check"]
            seen += 1
    assert seen == 3


def test_the_handbook_quotes_the_numbers_that_its_code_makes(tmp_path):
    module, text = figure_code("speculative_decoding"), (ROOT / f"handbook/{LAB}.md").read_text("utf-8")
    for what, number in module.numbers().items():
        assert number in re.sub(r"\s+", " ", text), f"{what} is {number} and the handbook says something else"
    module.draw(tmp_path / "round.svg")
    paths = [re.findall(r'd="[^"]*"', p.read_text("utf-8")) for p in (tmp_path / "round.svg", ROOT / "handbook/figures/lab16-round.svg")]
    assert paths[0] == paths[1]


def test_the_kept_facts_are_those_of_an_assisted_run():
    from inferlab.models import load_language_model
    from inferlab.models.quiet import quiet
    from inferlab.models.stories import documents
    from inferlab.trace import trace

    kept = json.loads((ROOT / "tests/explanations" / LAB / "facts.json").read_text("utf-8"))["one-round"]
    (target, tokenizer), (draft, _) = (load_language_model("bundled", "cpu", draft=small) for small in (False, True))
    settings = draft.generation_config
    settings.num_assistant_tokens, settings.num_assistant_tokens_schedule, settings.assistant_confidence_threshold = 4, "constant", 0.0
    text = " ".join(documents(1, seed=4, kind="story")[0].text().split(" ")[:60])
    ids = tokenizer(text, return_tensors="pt").input_ids
    torch.manual_seed(0)
    with trace(target, draft) as run, quiet(), torch.no_grad():
        target.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=24, do_sample=True, top_k=0, assistant_model=draft)
    passes = run["LlamaForCausalLM"]
    widths = [call.inputs["input_ids"].shape for call in passes]
    assert [ids.shape, widths[0], widths[1]] == [tuple(kept[name]) for name in ("prompt", "first pass", "later passes")]
    assert set(widths[1:-1]) == {(1, 5)} and widths[-1][1] <= 5 and list(passes[0].outputs["logits"].shape) == kept["logits"]
