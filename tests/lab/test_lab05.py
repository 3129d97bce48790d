"""Lab 05: what its text says of latents is so, and its notes on the installed source find their lines."""

from functools import partial
from itertools import pairwise

import pytest
import torch
from diffusers import FluxImg2ImgPipeline, StableDiffusionImg2ImgPipeline, StableDiffusionInpaintPipeline
from diffusers.models.autoencoders.vae import DiagonalGaussianDistribution

from inferlab.lab.cards import load_cards
from inferlab.lab.kits.pipelines.picture_rows import picture_rows
from inferlab.models import load_pipeline
from inferlab.models.full_transformers import FLUX_VAE
from inferlab.models.scenes import render, sample_scenes
from tests.lab.labtexts import (
    cell_of,
    efforts_declared,
    efforts_said,
    overwritten_by_checks,
    points_of,
    prose_of,
    sources_shown,
)

LAB = "lab05-latents"
cell = partial(cell_of, LAB)


@pytest.fixture(scope="module")
def solved():
    """The names that the lab's solutions define."""
    names: dict = {"torch": torch}
    for exercise in ("forecast", "contract", "inpainting"):
        exec(cell(exercise=exercise), names)
    return names


@pytest.fixture(scope="module")
def pipe():
    return load_pipeline("bundled", "cpu")


@pytest.fixture(scope="module")
def original():
    """Eight scenes in [-1, 1], (8, 3, 128, 128)."""
    return render(sample_scenes(8, torch.Generator().manual_seed(3))) * 2 - 1


@pytest.fixture(scope="module")
def moments(pipe, original):
    with torch.no_grad():
        return pipe.vae.encode(original).latent_dist


def psnr(found, wanted):
    return float(10 * torch.log10(4 / (found.clamp(-1, 1) - wanted).square().mean()))


def decoded(pipe, latents):
    with torch.no_grad():
        return pipe.vae.decode(latents).sample


def test_a_check_cell_overwrites_nothing_that_the_lab_still_uses():
    shared = {"torch", "Check", "Words", "_", "words"}
    assert not overwritten_by_checks(LAB, shared)


def test_practice_is_at_most_forty_percent_and_each_exercise_says_its_points():
    points = points_of(LAB)
    assert sum(points.values()) == 14 and points["contract"] == 4 <= 0.4 * 14
    prose = prose_of(LAB)
    assert "**Points** 14, of which 4 are practice" in " ".join(prose.split())
    assert efforts_said(LAB) == efforts_declared(LAB)


def test_every_note_on_the_installed_source_finds_its_line():
    views = sources_shown(LAB, StableDiffusionImg2ImgPipeline=StableDiffusionImg2ImgPipeline,
                          StableDiffusionInpaintPipeline=StableDiffusionInpaintPipeline)
    assert {name: notes for name, notes, _ in views} == {
        "StableDiffusionImg2ImgPipeline.prepare_latents": 3}


def test_the_contract_is_what_the_libraries_classes_do(solved, pipe, original):
    """Stable Diffusion's image-to-image draws and scales; FLUX's shifts, too."""
    to_image = StableDiffusionImg2ImgPipeline(**pipe.components, requires_safety_checker=False)
    to_image.scheduler.set_timesteps(10)
    t = to_image.scheduler.timesteps[5:6]
    with torch.no_grad():
        theirs = to_image.prepare_latents(original[:2], t, 2, 1, torch.float32, "cpu",
                                          torch.Generator().manual_seed(4))
        moments = pipe.vae.encode(original[:2]).latent_dist
    generator = torch.Generator().manual_seed(4)
    draw, noise = (torch.randn(2, 4, 16, 16, generator=generator) for _ in range(2))
    clean = solved["to_model"](moments.parameters, draw, 0, pipe.vae.config.scaling_factor)
    assert torch.allclose(theirs, to_image.scheduler.add_noise(clean, noise, t), atol=1e-6)

    class Answered:
        config = type("Config", (), {key: FLUX_VAE[key] for key in ("shift_factor", "scaling_factor")})

        @staticmethod
        def encode(image):
            return type("Output", (), {"latent_dist": DiagonalGaussianDistribution(image)})

    made_up = torch.randn(2, 32, 4, 4, generator=torch.Generator().manual_seed(5))
    flux = type("Flux", (), {"vae": Answered})
    theirs = FluxImg2ImgPipeline._encode_vae_image(flux, made_up, torch.Generator().manual_seed(6))
    draw = torch.randn(2, 16, 4, 4, generator=torch.Generator().manual_seed(6))
    ours = solved["to_model"](made_up, draw, FLUX_VAE["shift_factor"], FLUX_VAE["scaling_factor"])
    assert torch.allclose(theirs, ours, atol=1e-6)
    back = solved["to_vae"](ours, FLUX_VAE["shift_factor"], FLUX_VAE["scaling_factor"])
    drawn = DiagonalGaussianDistribution(made_up).sample(torch.Generator().manual_seed(6))
    assert torch.allclose(back, drawn, atol=1e-5)


def test_the_bundled_factor_is_one_over_the_standard_deviation(solved, pipe, moments):
    assert solved["measure"](moments.mode()) == pytest.approx(pipe.vae.config.scaling_factor, rel=0.05)
    assert load_pipeline("bundled", "cpu", family="flux").vae.config.shift_factor == 0.0


def test_places_are_the_pictures_and_channels_are_no_colors(pipe, original, moments):
    modes = moments.mode()[:2]
    best, moved, turned = (psnr(decoded(pipe, edit(modes)), pixels(original[:2])) for edit, pixels in (
        (lambda x: x, lambda x: x),
        (lambda x: x.roll(1, -1), lambda x: x.roll(8, -1)),
        (lambda x: x.flip(-2), lambda x: x.flip(-2)),
    ))
    assert moved > best - 2 and turned < best - 5
    colors = torch.nn.functional.avg_pool2d(original, 8).permute(0, 2, 3, 1).reshape(-1, 3)
    channels = moments.mode().permute(0, 2, 3, 1).reshape(-1, 4)
    both = torch.corrcoef(torch.cat([channels, colors], dim=1).T)[:4, 4:]
    assert both.abs().max() < 0.9


def test_a_round_trip_notices_no_wrong_scale_and_the_denoiser_does(solved, pipe, original, moments):
    right = pipe.vae.config.scaling_factor
    noise = torch.randn(2, 4, 16, 16, generator=torch.Generator().manual_seed(0))
    levels, loss = torch.tensor([300, 300]), {}
    for scale in (right, 0.18215):
        latents = solved["to_model"](moments.parameters[:2], 0, 0, scale)
        assert torch.allclose(solved["to_vae"](latents, 0, scale), moments.mode()[:2], atol=1e-5)
        with torch.no_grad():
            text, _ = pipe.encode_prompt(["", ""], "cpu", 1, False)
            said = pipe.unet(pipe.scheduler.add_noise(latents, noise, levels), levels, text).sample
        loss[scale] = float((said - noise).square().mean())
    assert loss[0.18215] > 5 * loss[right]


def test_the_decoder_draws_noise_of_latents_and_loses_noise_of_pixels(pipe, original, moments):
    noise = torch.randn(2, 4, 16, 16, generator=torch.Generator().manual_seed(0))
    modes, scale = moments.mode()[:2], pipe.vae.config.scaling_factor
    closeness = [psnr(decoded(pipe, modes + sigma * noise / scale), original[:2])
                 for sigma in (0.0, 0.5, 1.0, 2.0)]
    assert all(less > more + 3 for less, more in pairwise(closeness))
    spoilt = original[:2] + 0.1 * torch.randn(original[:2].shape, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        again = decoded(pipe, pipe.vae.encode(spoilt).latent_dist.mode())
    assert psnr(again, original[:2]) > psnr(spoilt, original[:2]) + 3


def test_two_scenes_that_share_one_mean_drift_together_and_in_tiles_less(pipe):
    pictures = render(sample_scenes(2, torch.Generator().manual_seed(18), two=0.0)) * 2 - 1
    with torch.no_grad():
        modes = pipe.vae.encode(pictures).latent_dist.mode()
    together = torch.cat([modes[:1], modes[1:]], dim=3)
    whole = decoded(pipe, together)
    pipe.vae.enable_tiling()
    tiled = decoded(pipe, together)
    pipe.vae.disable_tiling()
    halves = [[float(half.mean()) for half in found.chunk(2, 3)] for found in (whole, tiled)]
    gaps = [abs(left - right) for left, right in halves]
    assert whole.shape == tiled.shape and gaps[0] < 0.7 * gaps[1]


def test_the_rows_of_pictures_refuse_a_row_of_another_length():
    flat = torch.zeros(4, 4, 3).numpy()
    shown = picture_rows({"a": [flat], "b": [flat]}, ["one"], {"a": ["x"], "b": ["y"]}, "finding")
    assert len(shown.axes) == 2
    with pytest.raises(ValueError, match="b: each of the 1 columns"):
        picture_rows({"a": [flat], "b": []}, ["one"], {"a": ["x"], "b": []}, "finding")


def test_four_cards_on_diffusion_are_this_labs():
    cards = [card for card in load_cards("diffusion").cards if card.see == LAB]
    assert len(cards) == 4 and all(card.question[-1] in "?." for card in cards)
