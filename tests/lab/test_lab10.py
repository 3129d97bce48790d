"""Lab 10: names, points, the handbook's numbers, and the small functions behind its pictures."""

import ast
from pathlib import Path

import pytest
import torch
from labtexts import blocks_of, figure_code

from inferlab.grading.lint import python_of
from inferlab.lab.peaks import knob, measure, peak_curves, thin_vae
from inferlab.lab.residency import moved_bytes, residency_events, residency_timeline, resident_after

ROOT = Path(__file__).resolve().parents[2]
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
    passing = {"got", "name", "batch", "side", "_"}  # every cell of the lab that reads them sets them first
    for cell in code:
        if "check" in cell.metadata:
            assert not bound_at_the_top(cell.source) & body - passing, cell.metadata["check"]


def test_practice_is_at_most_forty_percent_and_typed_lines_at_least_half(blocks):
    points = {b.cell.metadata["check"]: b.cell.metadata["points"] for b in blocks if "check" in b.cell.metadata}
    assert sum(points.values()) == 22
    assert points["decode-peak"] + points["knobs"] + points["idle-knob"] == 8 <= 0.4 * 22
    assert points["tiling-shape"] + points["tiling-calls"] + points["offload-gain-cost"] == 3


def test_the_handbook_says_the_numbers_that_its_code_makes():
    memory_optimization = figure_code("memory_optimization")
    text = (ROOT / "handbook" / f"{LAB}.md").read_text("utf-8")
    numbers = memory_optimization.numbers()
    numbers.pop("two tiles of 512")  # printed by the script, not told in the text
    assert not {name: value for name, value in numbers.items() if value not in text}
    assert 600 <= len(text.split()) <= 1200


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


def test_events_say_once_what_moved_and_run_a_component_after_its_weights_are_in():
    def row(index, name, parent=None, moved=None, kind="module"):
        return {"index": index, "name": name, "parent": parent, "moved": moved, "kind": kind}

    def move(module, to):
        return {"module": module, "to": to}

    rows = [
        row(0, "pipe"), row(1, "text_encoder", 0),
        row(2, "text_encoder.pre_forward", 1, move("text_encoder", "cuda:0"), "move"),
        row(3, "text_encoder.to", 2, move("text_encoder", "cuda:0"), "move"),  # the same move, seen from inside
        row(4, "unet", 0), row(5, "unet.pre_forward", 4, move("unet", "cuda:0"), "move"),
        row(6, "unet.post_forward", 4, move("unet", "cpu"), "move"), row(7, "vae.decode", 0),
    ]
    events = residency_events(rows, ("text_encoder", "unet", "vae"), "cuda")
    assert events == [("in", "text_encoder"), ("run", "text_encoder"), ("in", "unet"), ("run", "unet"), ("out", "unet"), ("run", "vae")]
    assert resident_after(events, {"vae"})[-1] == {"text_encoder", "vae"}
    assert moved_bytes(events, {"text_encoder": 3, "unet": 5, "vae": 7}) == 8
    with pytest.raises(ValueError, match="in, out or run"):
        resident_after([("lost", "unet")], ())


def test_pictures_refuse_what_they_cannot_draw():
    with pytest.raises(ValueError, match="curves"):
        peak_curves({}, title="t", how="h")
    with pytest.raises(ValueError, match="at least one run"):
        residency_timeline({"none": ([], ())}, {"unet": 1}, title="t")
    figure = residency_timeline({"a": ([("in", "unet"), ("run", "unet")], ())}, {"unet": 10**6}, title="t")
    assert "peak 1.0 MB, 1.0 MB carried in" in figure.axes[0].get_title("left")
