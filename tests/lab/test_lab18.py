"""Lab 18: two real processes split the model as the lab says, exchange what the formula says, and leave
nothing behind."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import DynamicCache

from inferlab.lab import setup
from inferlab.lab.checks.check import results
from inferlab.lab.kits.parallel.machines import RANKS, machine
from inferlab.lab.kits.parallel.rank_plots import cost_against_ranks, rank_timeline
from inferlab.lab.kits.parallel.ranks import start_ranks, traffic_table
from inferlab.models import load_language_model
from tests.lab.labtexts import cell_of

LAB = "lab18-parallelism"
IDS, NEW = list(range(20, 32)), 3


def solution(exercise: str, **names) -> dict:
    """What the lab's own solution of an exercise defines, with these names of other cells."""
    namespace: dict = {"torch": torch, **names}
    exec(cell_of(LAB, exercise=exercise), namespace)
    return namespace


@pytest.fixture(scope="module")
def runs():
    ranks = start_ranks(["library", "gather", "pipeline"], IDS, NEW)
    process, folder = ranks._process, Path(ranks._folder)
    found = ranks.results()
    assert process.poll() == 0 and not folder.exists()
    return found


@pytest.fixture(scope="module")
def whole():
    """Tokens and last logits of the unsplit model, on one thread as each rank has: two threads sum in another
    order."""
    model, _ = load_language_model("bundled", "cpu")
    cache, step, tokens = DynamicCache(config=model.config), torch.tensor([IDS]), []
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.no_grad():
            for _ in range(NEW):
                logits = model(step, None, None, cache, logits_to_keep=1).logits
                step = logits[:, -1:].argmax(-1)
                tokens.append(int(step))
    finally:
        torch.set_num_threads(threads)
    return model.config, tokens, logits[0, -1]


def test_a_rank_may_flatten_the_tokens_before_its_one_all_reduce(monkeypatch):
    """The contract fixes the shape of what is returned, not of what is summed."""
    def rank_mlp(x, gate, up, down, bias, all_reduce):
        rows = x.reshape(-1, x.shape[-1])
        return (all_reduce((torch.nn.functional.silu(rows @ gate.T) * (rows @ up.T)) @ down.T)
                + bias).reshape(x.shape)

    monkeypatch.setattr(setup, "_current", setup.Lab(LAB, "learner", "bundled", "cpu", 0))
    exec(cell_of(LAB, check="rank-mlp"), {"rank_mlp": rank_mlp})
    assert float(results()["rank-mlp"]) == 3.0


@pytest.mark.parametrize("plan", ["library", "gather", "pipeline"])
def test_every_plan_generates_what_the_whole_model_does(runs, whole, plan):
    for report in runs[plan]:
        assert report["tokens"] == whole[1]
        torch.testing.assert_close(torch.tensor(report["logits"]), whole[2], atol=1e-4, rtol=0)
    if plan == "pipeline":
        assert torch.equal(torch.tensor(runs[plan][0]["logits"]), whole[2])


def test_the_ranks_exchange_what_the_labs_solution_says(runs, whole):
    config = whole[0]
    wires = {"ranks": 2, "layers": config.num_hidden_layers, "hidden": config.hidden_size, "itemsize": 4}
    said = solution("traffic", wires=wires)["wire"]
    for number, tokens in ((0, len(IDS)), (1, 1)):  # a prompt: longer messages, and no more of them
        lines = [line for line in runs["library"][0]["passes"][number]["log"] if ".layers." in line["module"]]
        assert (len(lines), sum(line["bytes"] for line in lines)) == (said["tp_exchanges"],
                                                                      tokens * said["tp_payload"])
        assert {line["op"] for line in lines} == {"all_reduce"}
    sends = [line for line in runs["pipeline"][0]["passes"][1]["log"] if line["op"] == "send"]
    assert (len(sends), sum(line["bytes"] for line in sends)) == (said["pp_exchanges"], said["pp_payload"])
    rows = traffic_table(runs["gather"][0], 1)
    assert ("all_gather", "mlp.gate_proj", config.num_hidden_layers) in [row[:3] for row in rows]


@pytest.mark.parametrize("variant", range(16))
def test_the_labs_forecasts_are_what_its_rules_as_code_give(variant, capsys):
    namespace = {"lab": SimpleNamespace(variant=lambda most: variant)}
    for begins in ("v = lab.variant(16)\nwires", "pipeline = {"):
        exec(cell_of(LAB, begins=begins), namespace)
    exec(cell_of(LAB, begins="def schedule"), namespace)
    schedule, stages = namespace["schedule"], namespace["pipeline"]["stages"]
    pipe = solution("schedule", pipeline=namespace["pipeline"])["pipe"]
    events = schedule(stages, [1] * namespace["pipeline"]["microbatches"])
    assert pipe["idle"] == pytest.approx(1 - len(events) / stages / (events[-1][0] + 1))
    for name, users in (("alone", 1), ("full", stages), ("crowd", 2 * stages)):
        assert pipe[name] == [tick for tick, stage, job, _ in schedule(stages, [3] * users)
                              if stage == stages - 1 and job == 0]


@pytest.mark.parametrize("value", [torch.tensor, lambda number: torch.tensor([number]), np.float64])
def test_a_number_of_torchs_or_numpys_is_as_right_as_pythons(value, monkeypatch):
    lab = setup.Lab(LAB, "learner 0", "bundled", "cpu", 0)
    monkeypatch.setattr(setup, "_current", lab)
    names = {"lab": lab}
    for begins in ("v = lab.variant(16)\nwires", "pipeline = {"):
        exec(cell_of(LAB, begins=begins), names)

    def valued(answer):
        return [value(one) for one in answer] if isinstance(answer, list) else value(answer)

    for check, name, points in (("traffic", "wire", 2.0), ("schedule", "pipe", 3.0)):
        given = {key: names[key] for key in ("wires", "pipeline")}
        right = solution(check, **given)[name]
        exec(cell_of(LAB, check=check), {"lab": lab, name: {key: valued(one) for key, one in right.items()}})
        assert float(results()[check]) == points


def test_a_rank_holds_what_the_forecast_says(runs, whole):
    config = whole[0]
    said = solution("forecast")["forecast"](config.to_dict() | {"head_dim": config.head_dim}, 2)
    for rank in (0, 1):
        report = runs["library"][rank]
        held = report["weights"]
        for part in ("self_attn.q_proj", "self_attn.k_proj", "self_attn.o_proj", "mlp.gate_proj",
                     "mlp.down_proj"):
            assert tuple(held[f"model.layers.0.{part}.weight"]) == said[part.partition(".")[2]]
        assert report["cache_bytes"] == said["cache"] * (len(IDS) + NEW)


def test_the_shapes_that_the_explanation_is_held_against_are_those_of_a_trace(runs):
    shapes = {row["name"]: row["outputs"]["shape"] for row in runs["library"][0]["rows"]
              if "shape" in row["outputs"]}
    layer = "model.layers.0."
    sizes = {"self_attn.q_proj": 128, "input_layernorm": 256, "mlp.gate_proj": 352, "self_attn.k_proj": 32}
    assert {name: tuple(shapes[layer + name]) for name in sizes} == {n: (1, 1, w) for n, w in sizes.items()}


def test_only_tensor_parallel_ranks_compute_at_the_same_time(runs):
    def overlap(plan):
        (a, b), (c, d) = (runs[plan][rank]["passes"][1]["busy"] for rank in (0, 1))
        return min(b, d) - max(a, c)

    assert overlap("library") > 0 > overlap("pipeline")
    assert len(rank_timeline({"library": runs["library"]}, title="t").axes) == 1


@pytest.mark.slow
def test_ranks_that_fail_or_hang_are_ended():
    # two key/value heads do not divide by three
    failing = start_ranks(["library"], IDS, 1, ranks=3, seconds=60)
    with pytest.raises(RuntimeError, match="a rank failed"):
        failing.results()
    late = start_ranks(["library"], IDS, 1, seconds=0.2)
    with pytest.raises(TimeoutError, match="not done in time"):
        late.results()
    assert failing._process.poll() is not None and late._process.poll() is not None
    with pytest.raises(ValueError, match="2 or more ranks"):
        start_ranks(["library"], IDS, ranks=1)
    with pytest.raises(ValueError, match="plans are some of"):
        start_ranks(["diagonal"], IDS)


def test_every_machine_has_one_best_split():
    cost, best = solution("cost")["cost"], set()
    for variant in range(16):
        box = machine(variant)
        latencies = sorted((cost(plan, n, box)[0], plan, n) for plan in ("TP", "PP") for n in RANKS)
        intervals = sorted((cost(plan, n, box)[1], plan, n) for plan in ("TP", "PP") for n in RANKS)
        assert latencies[0][0] < latencies[1][0] and latencies[0][1] == "TP" and intervals[0][1:] == ("PP", 8)
        best.add(latencies[0][2])
    assert len({tuple(machine(v).items()) for v in range(16)}) == 16 and len(best) == 3
    with pytest.raises(ValueError, match="0 to 15"):
        machine(16)
    assert len(cost_against_ranks({"TP": {n: cost("TP", n, machine(0)) for n in RANKS}}, title="t").axes) == 2
