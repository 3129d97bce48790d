"""Lab 20: its faults are in time and keep the clip's shape; its sizes are a real run's; its notes hold."""

from functools import partial

import pytest
import torch
from diffusers import AutoencoderKLWan
from diffusers.models.autoencoders.autoencoder_kl_wan import WanCausalConv3d

from inferlab.lab import setup
from inferlab.lab.cards import load_cards
from inferlab.lab.checks.check import results
from inferlab.lab.identity import scattered, variant
from inferlab.lab.kits.pipelines.misfilmed import MISFILMED, misfilmed
from inferlab.models import load_pipeline
from inferlab.trace import trace
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

LAB = "lab20-video-latents"
FAULTS = scattered(MISFILMED)
cell = partial(cell_of, LAB)
SHORT = {"num_inference_steps": 1, "guidance_scale": 1.0, "max_sequence_length": 16}


@pytest.fixture(scope="module")
def small():
    pipeline = load_pipeline("bundled", "cpu", family="wan")
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


@pytest.fixture(scope="module")
def solved():
    """The names that the lab's solutions define."""
    names: dict = {"torch": torch}
    for exercise in ("forecast", "causal", "reach", "budget"):
        exec(cell(exercise=exercise), names)
    for begins in ("def reached(", "def chunk_bytes("):
        exec(cell(begins=begins).split("\n\n\nwords, _ =")[0], names)
    return names


@pytest.mark.slow
@pytest.mark.parametrize("number", range(9), ids=FAULTS)
def test_every_variant_begins_at_its_boundary_keeps_the_clips_shape_and_is_found(number, small, monkeypatch):
    learner = next(name for name in (f"learner {i}" for i in range(400)) if variant(name, LAB, 9) == number)
    monkeypatch.setattr(setup, "_current", setup.Lab(LAB, learner, "bundled", "cpu", 0))
    ran = {"lab": setup._current, "torch": torch, "small": small}
    with torch.no_grad():
        exec(cell(begins="from inferlab.lab.kits.pipelines.misbuilt"), ran)
        assert ran["healthy_frames"].shape == ran["sick_frames"].shape == (9, 96, 96, 3)
        assert [place for place, _ in ran["healthy_values"]] == [place for place, _ in ran["sick_values"]]
        exec(cell(exercise="diagnosis"), ran)
        found = ran["diagnose"]()
        frames = [k for k in range(9) if not torch.equal(ran["healthy_frames"][k], ran["sick_frames"][k])]
        place = (ran["boundary"], ran["call"], frames[0])
        assert (found, place) == (FAULTS[number], MISFILMED[FAULTS[number]])
        exec(cell(check="diagnosis"), ran)
    assert float(results()["diagnosis"]) == 3.0


@torch.no_grad()
def test_a_suspect_shares_its_weights_and_leaves_the_healthy_pipeline_as_it_was(small):
    before = {name: part.state_dict() for name, part in (("t", small.transformer), ("v", small.vae))}
    for number in range(9):
        suspect = misfilmed(small, number)
        assert suspect.text_encoder is small.text_encoder and type(suspect).__name__ == "WanPipeline"
        asked = {"num_frames": 9, "height": 32, "width": 48, "output_type": "np", **SHORT}
        made = suspect(["a red circle"] * 2, **asked).frames
        assert made.shape == (2, 9, 32, 48, 3)
    for part in (small, small.vae, small.transformer, small.video_processor, small.scheduler):
        assert type(part).__module__.startswith("diffusers")
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in small.transformer.modules())
    for name, part in (("t", small.transformer), ("v", small.vae)):
        assert all(torch.equal(before[name][key], value) for key, value in part.state_dict().items())
    with pytest.raises(ValueError, match="0 to 8, not 9"):
        misfilmed(small, 9)


@torch.no_grad()
@pytest.mark.parametrize("fault", ["cache of the clip before", "cache reset in every call",
                                   "cache one frame short"])
def test_a_spoiled_cache_changes_the_frames_that_it_should(fault, small):
    """In the same pipeline the first clip is right where only an earlier one spoils it."""
    vae = misfilmed(small, FAULTS.index(fault)).vae
    one, two = torch.randn(2, 1, 16, 4, 4, 4, generator=torch.Generator().manual_seed(0))
    clips = [(vae.decode(z).sample, small.vae.decode(z).sample) for z in (one, two)]
    first, second = [[k for k in range(13) if not torch.equal(a[:, :, k], b[:, :, k])] for a, b in clips]
    begins = MISFILMED[fault][2]
    assert second == list(range(begins, 13))
    assert first == ([] if fault == "cache of the clip before" else second)


@torch.no_grad()
@pytest.mark.parametrize("clip", [(1, 64, 64), (5, 32, 48), (29, 48, 32), (17, 96, 96)], ids=str)
def test_the_solutions_sizes_are_those_of_a_run(clip, small, solved):
    frames, height, width = clip
    with trace(small, depth=["transformer.rope", "vae.decoder*"]) as run:
        small("a red circle", num_frames=frames, height=height, width=width, output_type="pt", **SHORT)
    told = solved["forecast"](1, frames, height, width)
    assert told["latents"] == tuple(run["prepare_latents"].outputs.shape)
    assert told["tokens"] == run["transformer.rope"].outputs[0].shape[1]
    assert told["decoder_calls"] == run["vae.decoder"].calls
    inside = [b.bytes_out for b in run.boundaries if b.name.startswith("vae.decoder")]
    assert solved["chunk_bytes"](frames, height, width) == max(inside)


@torch.no_grad()
def test_a_plan_keeps_its_budget_in_a_run(small, solved):
    plan = solved["fit_clip"](33, 192, 128, 300, 500_000)
    assert plan == {"frames": 9, "height": 192, "width": 128, "tile": 48}
    tile = plan.pop("tile")
    small.vae.enable_tiling(tile, tile, tile - 16, tile - 16)
    try:
        with trace(small, depth=["transformer.rope", "vae.decoder*"]) as run:
            made = small("a red circle", num_frames=plan.pop("frames"), output_type="pt", **plan,
                         **SHORT).frames
    finally:
        small.vae.disable_tiling()
    assert made.shape == (1, 9, 3, 192, 128)
    assert run["transformer.rope"].outputs[0].shape[1] <= 300
    assert max(b.bytes_out for b in run.boundaries if b.name.startswith("vae.decoder")) <= 500_000


@torch.no_grad()
def test_the_solutions_convolution_in_pieces_is_the_librarys_layer(solved):
    torch.manual_seed(0)
    layer, given = WanCausalConv3d(5, 6, 3, padding=1), torch.randn(2, 5, 10, 6, 4)
    cache, made = None, []
    for piece in given.split([1, 1, 4, 3, 1], dim=2):
        y, cache = solved["causal_conv"](piece, layer.weight, layer.bias, cache)
        made.append(y)
        assert cache.shape[2] <= 2
    torch.testing.assert_close(torch.cat(made, 2), layer(given))


@torch.no_grad()
def test_a_frame_depends_on_earlier_latent_frames_and_through_the_transformer_on_all(small, solved):
    noise = torch.randn(1, 16, 5, 4, 4, generator=torch.Generator().manual_seed(0))

    def film(latents):
        made = small("a red circle", latents=latents, height=32, width=32, output_type="pt", **SHORT).frames
        return made.transpose(1, 2)

    by_vae = [solved["reached"](lambda z: small.vae.decode(z).sample, noise, j) for j in range(5)]
    by_pipe = [solved["reached"](film, noise, j) for j in range(5)]
    for frame in range(17):
        for hit, denoised in ((by_vae, False), (by_pipe, True)):
            assert solved["behind"](frame, 17, denoised) == [j for j in range(5) if frame in hit[j]]


@torch.no_grad()
def test_published_wan_decodes_in_the_same_pieces():
    with torch.device("meta"):
        vae = AutoencoderKLWan()
        with trace(vae, depth="decoder") as run:
            vae.decode(torch.zeros(1, 16, 21, 60, 104))
    assert [call.outputs.shape[2] for call in run.find("decoder")] == [1] + [4] * 20


def test_a_check_cell_overwrites_nothing_that_the_lab_still_uses():
    loops = {"frame", "frames", "height", "width", "j", "k"}  # each loop sets its own
    shared = {"torch", "F", "Check", "WanCausalConv3d", "Words", "_", "words", *loops}
    assert not overwritten_by_checks(LAB, shared)


def test_practice_is_at_most_forty_percent_of_the_points_and_the_title_says_the_sum():
    points = points_of(LAB)
    assert (sum(points.values()), points["causal"]) == (17, 3)
    prose = prose_of(LAB)
    assert "**Points** 17, of which 3 are practice" in prose
    declared = efforts_declared(LAB)
    assert efforts_said(LAB) == declared
    assert sum(int(minutes) for _, minutes, _ in declared) <= 45
    assert prose.count("<summary>Hint") == 5 * 2


def test_every_note_on_the_installed_source_finds_its_line():
    views = sources_shown(LAB)
    assert sorted(notes for _, notes, _ in views) == [3, 4]
    assert all(lines <= 40 for _, _, lines in views)


def test_what_learners_get_names_no_mistake():
    assert_no_mistake_is_named(LAB)


def test_cards_on_diffusion_name_this_lab():
    assert sum(card.see == LAB for card in load_cards("diffusion").cards) == 4
