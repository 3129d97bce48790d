"""Lab 10: names, points and the small functions behind its pictures."""

import ast
import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from accelerate import cpu_offload_with_hook
from accelerate.hooks import CpuOffload
from diffusers.models.attention_dispatch import _AttentionBackendRegistry

from inferlab.grading.authoring.lab_rules import python_of
from inferlab.lab import setup
from inferlab.lab.checks.check import results
from inferlab.lab.kits.memory.peaks import knob, measure, peak_curves, thin_vae
from inferlab.lab.kits.memory.residency import (
    component_bytes,
    moved_bytes,
    residency_events,
    residency_timeline,
    resident_after,
)
from inferlab.models import load_pipeline
from inferlab.trace import trace
from tests import ROOT
from tests.lab.labtexts import blocks_of, cell_of

LAB = "lab10-memory-optimization"


@pytest.fixture(scope="module")
def blocks():
    return blocks_of(LAB)


def bound_at_the_top(source: str) -> set[str]:
    """Names that a cell binds at its top level, imports left out."""
    found: set[str] = set()
    pending = list(ast.parse(python_of(source)).body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif not isinstance(node, ast.Lambda | ast.ListComp | ast.DictComp | ast.SetComp | ast.GeneratorExp):
            pending.extend(ast.iter_child_nodes(node))
    return found


def test_a_check_cell_overwrites_nothing_that_the_lab_still_uses(blocks):
    code = [block.cell for block in blocks if block.cell.cell_type == "code"]
    body = set().union(*(bound_at_the_top(cell.source) for cell in code if "check" not in cell.metadata))
    # every cell of the lab that reads them sets them first; the words of the explanation are the same in both
    passing = {"got", "name", "batch", "side", "_", "words"}
    for cell in code:
        if "check" in cell.metadata:
            assert not bound_at_the_top(cell.source) & body - passing, cell.metadata["check"]


def test_practice_is_at_most_forty_percent(blocks):
    points = {b.cell.metadata["check"]: b.cell.metadata["points"] for b in blocks
              if "check" in b.cell.metadata}
    assert sum(points.values()) == 18
    assert points["decode-peak"] + points["knobs"] == 5 <= 0.4 * 18


def test_a_decode_holds_three_maps_and_the_knobs_are_off_again_after_the_block():
    vae = thin_vae()
    latents = torch.ones(2, 4, 24, 24)
    plain = measure(lambda: vae.decode(latents).sample)
    assert plain["peak"] == pytest.approx(3 * 2 * 16 * 192 * 192 * 4, rel=0.05)
    with knob(vae, "slicing", "tiling", "attention backend", "attention slicing"):
        assert vae.use_slicing and vae.use_tiling
        assert measure(lambda: vae.decode(latents).sample)["peak"] < 0.4 * plain["peak"]
    assert not vae.use_slicing and not vae.use_tiling
    assert torch.equal(vae.decode(latents).sample, plain["value"])
    with pytest.raises(ValueError, match="no knob is called"), knob(vae, "turbo"):
        pass


def row(index, name, parent=None, moved=None, kind="module"):
    return {"index": index, "name": name, "parent": parent, "moved": moved, "kind": kind}


def move(module, to):
    return {"module": module, "to": to}


def the_labs(blocks, exercise) -> dict:
    """What a cell of the lab's solution defines."""
    namespace: dict = {"torch": torch}
    exec(next(python_of(b.cell.source) for b in blocks if b.cell.metadata.get("exercise") == exercise),
         namespace)
    return namespace


def test_events_say_once_what_moved_and_run_a_component_after_its_weights_are_in():
    rows = [
        row(0, "pipe"), row(1, "text_encoder", 0),
        row(2, "text_encoder.pre_forward", 1, move("text_encoder", "cuda:0"), "move"),
        # the same move, seen from inside
        row(3, "text_encoder.to", 2, move("text_encoder", "cuda:0"), "move"),
        row(4, "unet", 0), row(5, "unet.pre_forward", 4, move("unet", "cuda:0"), "move"),
        row(6, "unet.post_forward", 4, move("unet", "cpu"), "move"), row(7, "vae.decode", 0),
    ]
    events = residency_events(rows, ("text_encoder", "unet", "vae"), "cuda")
    assert events == [("in", "text_encoder"), ("run", "text_encoder"), ("in", "unet"), ("run", "unet"),
                      ("out", "unet"), ("run", "vae")]
    assert resident_after(events, {"vae"})[-1] == {"text_encoder", "vae"}
    assert moved_bytes(events, {"text_encoder": 3, "unet": 5, "vae": 7}) == 8
    with pytest.raises(ValueError, match="in, out or run"):
        resident_after([("lost", "unet")], ())


def test_a_move_inside_a_hook_comes_before_the_hooks_own():
    rows = [
        row(0, "unet"), row(1, "unet.post_forward", 0, move("unet", "cpu"), "move"),
        row(2, "unet.to", 1, move("unet", "cpu"), "move"),
    ]
    assert residency_events(rows, ("unet", "vae"), "cuda") == [("run", "unet"), ("out", "unet")]


def test_what_a_gpu_recorded_of_model_offload_is_what_the_labs_solution_simulates(blocks):
    """The moves that the H200's run recorded, in the places where accelerate and diffusers make them, and the
    calls between."""
    runs = [json.loads(path.read_text("utf-8"))["parts"] for path in sorted((ROOT / "ci"
                                                                             / "results").glob("gpu-*.json"))]
    recorded = [run["offload"]["moves"] for run in runs if "moves" in run.get("offload", {})][-1]
    moves = {found["name"]: {"module": found["moved"]["module"], "to": found["moved"]["to"]}
             for found in recorded}
    assert [found["name"] for found in recorded] == ["text_encoder.pre_forward", "unet.pre_forward",
                                                     "text_encoder.to", "vae.pre_forward", "unet.to",
                                                     "vae.to"]

    def moved(index, name, parent):
        return row(index, name, parent, moves[name], "move")

    rows = [
        row(0, "pipe"), row(1, "text_encoder", 0), moved(2, "text_encoder.pre_forward", 1),
        row(3, "text_encoder", 0),
        row(4, "unet", 0), moved(5, "unet.pre_forward", 4), moved(6, "text_encoder.to", 5), row(7, "unet", 0),
        row(8, "vae.decode", 0), moved(9, "vae.pre_forward", 8), moved(10, "unet.to", 9),
        row(11, "maybe_free_model_hooks", 0), row(12, "enable_model_cpu_offload", 11), row(13, "to", 12),
        moved(14, "vae.to", 13),
    ]
    chain = ("text_encoder", "unet", "vae")
    events = residency_events(rows, chain, "cuda")
    calls = [name for what, name in events if what == "run"]
    assert events == [*the_labs(blocks, "residency")["simulate"](calls, "model", chain), ("out", "vae")]
    assert max(len(here) for here in resident_after(events, ())) == 1


def test_accelerates_own_hooks_send_the_one_before_out_and_then_bring_theirs_in(monkeypatch):
    """The chain that `enable_model_cpu_offload` makes, with "meta" for the accelerator: weights there have no
    bytes."""
    monkeypatch.setattr(CpuOffload, "init_hook", lambda self, module: module.to_empty(device="cpu"))
    pipe, far, hook = load_pipeline("bundled", "cpu"), torch.device("meta"), None
    chain = pipe.model_cpu_offload_seq.split("->")
    for part in (getattr(pipe, name, None) for name in chain):
        if part is not None:
            _, hook = cpu_offload_with_hook(part, far, prev_module_hook=hook)
    latents = torch.ones(1, 4, 8, 8, device=far)

    with torch.no_grad(), trace(pipe) as t:
        for _ in range(2):
            words = pipe.text_encoder(torch.ones(1, 16, dtype=torch.long, device=far))[0]
        for _ in range(2):
            pipe.unet(latents, 5, encoder_hidden_states=words)
        pipe.vae.decode(latents)
        pipe.unet(latents, 5, encoder_hidden_states=words)
    assert residency_events(t.rows(), ("text_encoder", "unet", "vae"), "meta") == [
        ("in", "text_encoder"), ("run", "text_encoder"), ("run", "text_encoder"), ("out", "text_encoder"),
        ("in", "unet"), ("run", "unet"),
        ("run", "unet"), ("out", "unet"), ("in", "vae"), ("run", "vae"), ("in", "unet"), ("run", "unet")]


@pytest.mark.slow
def test_every_card_of_the_last_exercise_fits_its_budget_when_measured(blocks):
    demo = next(b.cell.source for b in blocks if "card_estimate" in b.cell.source
                and "demo" in b.cell.metadata.get("tags", ()))
    vae = load_pipeline("bundled", "cpu").vae
    namespace = the_labs(blocks, "choose") | the_labs(blocks, "decode-peak")
    cards = ast.literal_eval(demo[demo.index(" = ((") + 3: demo.index("[v]")])
    assert len(cards) == 8
    weights = component_bytes(load_pipeline("bundled", "cpu"))
    choices = set()
    for batch, side, mib in cards:
        namespace |= {"batch": batch, "side": side, "weights": weights, "vae": vae}
        exec(demo[demo.index("def card_estimate"): demo.index("\n\n\n", demo.index("def card_estimate"))],
             namespace)
        estimate = namespace["card_estimate"]
        found = namespace["choose"](estimate, mib * 2**20)
        with torch.no_grad(), knob(vae, *[name for name in found["knobs"] if name != "offload"]):
            latents = torch.zeros(batch, 4, side, side)
            peak = measure(lambda latents=latents: vae.decode(latents).sample)["peak"]
        assert peak + estimate(found["knobs"])["weights"] <= mib * 2**20, (batch, side, mib)
        assert found["knobs"] and all(without > mib * 2**20 for without in found["proof"].values())
        choices.add(tuple(found["knobs"]))
    assert len(choices) >= 6


@pytest.mark.parametrize("number", range(4))
def test_the_knobs_that_the_solution_calls_idle_are_idle_when_measured(blocks, number, capsys):
    pipe = load_pipeline("bundled", "cpu")
    namespace = {"torch": torch, "vae": pipe.vae, "SEED": 0, "knob": knob, "measure": measure,
                 "lab": SimpleNamespace(device="cpu", variant=lambda most: number)}
    exec(cell_of(LAB, begins="batch, side = ((1, 16)"), namespace)
    exec(cell_of(LAB, exercise="idle-knob"), namespace)
    capsys.readouterr()
    with torch.no_grad():
        exec(cell_of(LAB, begins="job = torch.randn(batch, 4"), namespace)
    measured = {line.partition(" peak ")[0].strip() for line in capsys.readouterr().out.splitlines()
                if "peak 100.0%" in line and line.endswith("True")}
    assert namespace["idle"] == measured >= {"attention backend", "attention slicing"}


@pytest.mark.parametrize("value", [torch.tensor, lambda number: torch.tensor([number]), np.float64])
def test_a_number_of_torchs_or_numpys_is_as_right_as_pythons(blocks, value, monkeypatch):
    lab = setup.Lab(LAB, "learner 0", "bundled", "cpu", 0)
    monkeypatch.setattr(setup, "_current", lab)
    peak, choose = the_labs(blocks, "decode-peak")["decode_peak"], the_labs(blocks, "choose")["choose"]

    def chosen(estimate, budget):
        found = choose(estimate, budget)
        return {**found, "proof": {name: value(number) for name, number in found["proof"].items()}}

    for check, provided in {"decode-peak": {"decode_peak": lambda *a, **k: value(float(peak(*a, **k)))},
                            "choose": {"choose": chosen}}.items():
        exec(cell_of(LAB, check=check), {"lab": lab, **provided})
        assert float(results()[check]) == (3.0 if check == "decode-peak" else 4.0)


def test_pictures_refuse_what_they_cannot_draw():
    with pytest.raises(ValueError, match="curves"):
        peak_curves({}, title="t", how="h")
    with pytest.raises(ValueError, match="at least one run"):
        residency_timeline({"none": ([], ())}, {"unet": 1}, title="t")
    figure = residency_timeline({"a": ([("in", "unet"), ("run", "unet")], ())}, {"unet": 10**6}, title="t")
    told = [tick.get_text() for tick in figure.axes[0].get_xticklabels()]
    assert told == ["unet\ncomes in", "unet\nruns"]
    assert "peak 1.0 MB, 1.0 MB carried in" in figure.axes[0].get_title("left")


def test_an_attention_backend_set_on_one_model_becomes_the_default_of_all():
    flux = load_pipeline("bundled", family="flux").transformer
    default = _AttentionBackendRegistry._active_backend
    try:
        flux.set_attention_backend("_native_math")
        flux.reset_attention_backend()
        assert _AttentionBackendRegistry._active_backend.value == "_native_math"
    finally:
        _AttentionBackendRegistry._active_backend = default
