"""Lab 19: the service gives the same answers with every fault, each fault shows in its own measure, the solution finds all six."""

import json
import re
from contextlib import nullcontext
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from labtexts import cell_of, figure_code

from inferlab.lab.roofline import call_cost
from inferlab.lab.service import CARD, FAULTS, serve, show_rows, suspect
from inferlab.lab.serviceplots import PARTS, attribution, part_times, waits
from inferlab.models import load_language_model
from inferlab.trace import trace

ROOT = Path(__file__).resolve().parents[2]
LAB = "lab19-slow-decode"
cell = partial(cell_of, LAB)


@pytest.fixture(scope="module")
def loaded():
    return load_language_model("bundled", "cpu")


@pytest.fixture(scope="module")
def runs(loaded):
    return {fault: serve(*loaded, fault=fault) for fault in (None, *FAULTS)}


def test_every_fault_gives_the_same_answers(runs):
    for fault in FAULTS:
        answers = runs[fault].answers
        assert answers == runs[None].answers[: 2 if fault == "memory" else 8], fault


def test_answers_are_what_the_model_generates_alone(loaded, runs):
    model, tokenizer = loaded
    from inferlab.lab.service import requests_of

    for request, answer in list(zip(requests_of(tokenizer), runs[None].answers, strict=True))[:3]:
        ids = torch.tensor([tokenizer(request.text).input_ids])
        with torch.no_grad():
            for _ in range(request.new_tokens):
                ids = torch.cat([ids, model(ids).logits[:, -1:].argmax(-1)], 1)
        assert ids[0, -request.new_tokens:].tolist() == answer


def test_rows_count_what_the_trace_saw(runs):
    for served in runs.values():
        shapes = [row["inputs"]["input_ids"]["shape"] for row in served.trace.rows() if row["level"] == 0]
        called = [row for row in served.rows if row["kind"] != "idle"]
        assert [shape[0] for shape in shapes] == [row["sequences"] for row in called]
        assert all(row["useful"] <= row["positions"] and row["launches"] > 0 for row in called)
        assert [row["busy"] for row in served.rows] == [float(row["kind"] != "idle") for row in served.rows]


def test_the_facts_kept_beside_the_answers_are_those_of_a_trace(runs):
    kept = json.loads((ROOT / "tests" / "explanations" / LAB / "facts.json").read_text("utf-8"))["slow-decode"]
    shapes = [list(row["inputs"]["input_ids"]["shape"]) for row in runs[None].trace.rows() if row["level"] == 0]
    assert kept == {"four": [4, 1], "one": [1, 1], "weights": runs[None].rows[-1]["weight_bytes"]}
    assert kept["four"] in shapes and kept["one"] in shapes


def test_the_labs_own_solution_finds_every_fault(loaded):
    """Each variant's diagnosis is what the hidden test expects, and each fault is some learner's."""
    hidden = cell(check="diagnosis")
    namespace: dict = {}
    exec(hidden[hidden.index("ANSWERS = {"): hidden.index("truth = VARIANTS")], namespace)  # noqa: S102 - the lab's own text
    assert sorted(namespace["VARIANTS"]) == sorted(FAULTS)
    for variant, fault in enumerate(namespace["VARIANTS"]):
        lab: dict = {"CARD": CARD, "sick": suspect(*loaded, variant)}
        for name in ("bounds", "measures", "diagnosis"):
            exec(cell(exercise=name), lab)  # noqa: S102 - the lab's own cells
        found = lab["diagnose"]()
        assert (found["fault"], found["measure"], found["order"][0]) == (fault, *namespace["ANSWERS"][fault])
        assert set(found["order"]) >= {"batching", "cache", "precision", "speculation"}


def test_the_reconcile_demo_predicts_from_sizes_and_is_no_identity(loaded, capsys):
    """The prediction supposes full batches, so it is a bound that the service comes near and does not reach."""
    runs = {"alone": serve(*loaded, slots=1, requests=3), "reserved": serve(*loaded, fault="cache"), "healthy": serve(*loaded)}
    namespace: dict = {**runs, "call_cost": call_cost, "served_model": loaded[0], "served_tokenizer": loaded[1], "when_written": lambda *_: nullcontext()}
    exec(cell(exercise="dissect"), namespace)  # noqa: S102 - the lab's own cells
    exec(cell(begins="from inferlab.lab.service import requests_of"), namespace)  # noqa: S102
    lines = capsys.readouterr().out.splitlines()
    told = [tuple(float(number) for number in re.findall(r"([\d.]+)x", line)) for line in lines]
    assert len(told) == 2 and all(0.85 * predicted < counted < predicted - 0.1 for predicted, counted in told)


def test_positions_count_what_a_call_computes_or_attends_to(runs):
    for before, row in pairwise(runs[None].rows):
        if row["kind"] == "decode" and before["kind"] == "prefill" and before["step"] == 0:
            assert row["positions"] == before["positions"] + row["sequences"]  # the padded caches, and one new token each


def test_a_service_needs_a_known_fault(loaded):
    with pytest.raises(ValueError, match="fault is one of"):
        serve(*loaded, fault="gremlin")
    with pytest.raises(ValueError, match="0 to 5"):
        suspect(*loaded, 6)


def test_time_is_attributed_to_what_was_waited_for(loaded, runs):
    shares = {fault: waits(served.rows, CARD) for fault, served in runs.items()}
    assert shares["batch"]["weights"] > 3 * shares[None]["weights"]
    assert shares["launch"]["launches"] > 0 == shares[None]["launches"]
    assert shares["padding"]["arithmetic"] > 2 * shares[None]["arithmetic"]
    assert shares["tokenizer"]["tokenizer"] > 0 == shares["batch"]["tokenizer"]
    weights = call_cost(loaded[0].config, 1).weight_bytes
    assert {row["weight_bytes"] for row in runs[None].rows} == {weights}
    with torch.no_grad(), trace(loaded[0], depth="all") as step:
        loaded[0](torch.tensor([[1]]))
    times = part_times(step.rows())
    assert set(times) == set(PARTS) and sum(times.values()) == pytest.approx(step.rows()[0]["ms"], rel=0.01)
    assert len(attribution(times, {"healthy": shares[None]}, title="t", device="cpu").axes) == 2
    assert show_rows(runs[None].rows, limit=2).endswith("and 19 more")


def test_the_handbook_says_the_numbers_that_its_code_makes():
    slow_decode = figure_code("slow_decode")
    text = (ROOT / "handbook" / f"{LAB}.md").read_text("utf-8")
    missing = {name: value for name, value in slow_decode.numbers().items() if value not in text}
    assert not missing
    assert 600 <= len(text.split()) <= 1200
