"""Lab 07: its faults change values and no shape, each at its own boundary; its parts make a block."""


import pytest
import torch
from diffusers.models.transformers.transformer_flux import FluxPosEmbed, FluxTransformerBlock

from inferlab.lab import setup
from inferlab.lab.cards import load_cards
from inferlab.lab.checks.check import results
from inferlab.lab.identity import scattered, variant
from inferlab.lab.kits.pipelines.block_parts import block_parts
from inferlab.lab.kits.pipelines.misbuilt import MISBUILT, misbuilt
from inferlab.models import load_pipeline
from tests.lab.labtexts import (
    assert_no_mistake_is_named,
    blocks_of,
    cell_of,
    efforts_declared,
    efforts_said,
    prose_of,
    sources_shown,
)

LAB = "lab07-transformer-denoiser"
FAULTS = scattered(MISBUILT)


def kernel(number, monkeypatch):
    """A namespace in which the lab's cells of the diagnosis ran, for a learner with this variant."""
    learner = next(name for name in (f"learner {i}" for i in range(400)) if variant(name, LAB, 8) == number)
    lab = setup.Lab(LAB, learner, "bundled", "cpu", 0)
    monkeypatch.setattr(setup, "_current", lab)
    namespace = {"lab": lab, "torch": torch, "load_pipeline": load_pipeline}
    with torch.no_grad():
        exec(cell_of(LAB, begins="from inferlab.lab.kits.pipelines.misbuilt"), namespace)
    return namespace


@pytest.mark.slow
@pytest.mark.parametrize("number", range(8), ids=FAULTS)
def test_every_variant_begins_at_its_boundary_changes_no_shape_and_is_found(number, monkeypatch):
    ran = kernel(number, monkeypatch)
    shapes = [[(name, [t.shape for t in found]) for name, found in ran[which]]
              for which in ("healthy_values", "sick_values")]
    assert shapes[0] == shapes[1]
    assert not ran["healthy"].diff(ran["sick"], slower=float("inf")).rows()
    with torch.no_grad():
        exec(cell_of(LAB, exercise="diagnosis"), ran)
        found = ran["diagnose"]()
        assert (ran["boundary"], found) == (MISBUILT[FAULTS[number]], FAULTS[number])
        assert float((ran["good"] - ran["bad"]).abs().max()) > 1e-3
        exec(cell_of(LAB, check="diagnosis"), ran)
    assert float(results()["diagnosis"]) == 3.0


def test_a_suspect_shares_its_weights_and_leaves_the_healthy_pipeline_as_it_was():
    pipe = load_pipeline("bundled", "cpu", family="flux")
    before = pipe.transformer.state_dict()
    for number in range(8):
        suspect = misbuilt(pipe, number)
        assert suspect.vae is pipe.vae and suspect.default_sample_size == pipe.default_sample_size
        assert type(suspect).__name__ == "FluxPipeline"
    assert type(pipe).__module__.startswith("diffusers")
    assert type(pipe.scheduler).__module__.startswith("diffusers")
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in pipe.transformer.modules())
    assert all(torch.equal(before[key], value) for key, value in pipe.transformer.state_dict().items())
    with pytest.raises(ValueError, match="0 to 7, not 8"):
        misbuilt(pipe, 8)


def test_the_solution_makes_the_library_block_of_the_parts():
    torch.manual_seed(0)
    block = FluxTransformerBlock(48, 3, 16)
    ids = torch.cat([torch.zeros(5, 3), torch.rand(7, 3) * 9])
    given = (torch.randn(2, 7, 48), torch.randn(2, 5, 48), torch.randn(2, 48),
             FluxPosEmbed(10000, (4, 6, 6))(ids))
    namespace = {"torch": torch}
    exec(cell_of(LAB, begins="def before("), namespace)
    exec(cell_of(LAB, exercise="double-block"), namespace)
    with torch.no_grad():
        made = namespace["double_block"](block_parts(block), *given)
        for got, want in zip(made, block(*given), strict=True):
            torch.testing.assert_close(got, want)


def test_practice_is_at_most_forty_percent_of_the_points_and_the_title_says_the_sum():
    points = {b.cell.metadata["check"]: b.cell.metadata["points"] for b in blocks_of(LAB)
              if "check" in b.cell.metadata}
    practice = points["unpack"] + points["rotary"] + points["flow"]
    assert (sum(points.values()), practice) == (18, 6) and practice <= 0.4 * 18
    title = next(b.cell.source for b in blocks_of(LAB) if b.cell.source.startswith("# Lab 07"))
    assert "**Points** 18, of which 6 are practice" in title


def test_each_exercise_says_its_difficulty_minutes_and_points_as_its_cells_do():
    declared = efforts_declared(LAB)
    assert efforts_said(LAB) == declared
    assert sum(int(minutes) for _, minutes, _ in declared) <= 40
    assert prose_of(LAB).count("<summary>Hint") == 5 * 2


def test_every_note_on_the_installed_source_finds_its_line():
    views = sources_shown(LAB)
    shown = [b.cell.source for b in blocks_of(LAB) if "show_source(" in b.cell.source]
    assert len(views) == len(shown) == 2
    for source, (_, notes, lines) in zip(shown, views, strict=True):
        assert notes == source.count('":\n') + source.count('": "')
        assert lines <= 40


def test_what_learners_get_names_no_mistake():
    assert_no_mistake_is_named(LAB)


def test_cards_on_diffusion_name_this_lab():
    assert sum(card.see == LAB for card in load_cards("diffusion").cards) == 4
