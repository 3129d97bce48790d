"""Lab 03: what its text says of the library's guidance is so, and its measurement shows what it grades."""

from functools import partial

import pytest
import torch
from diffusers import DDIMScheduler, StableDiffusionPipeline
from diffusers.callbacks import SDCFGCutoffCallback
from diffusers.guiders import ClassifierFreeGuidance

from inferlab.lab.cards import load_cards
from inferlab.models import load_pipeline
from inferlab.trace import trace
from tests.lab.labtexts import (
    cell_of,
    efforts_declared,
    efforts_said,
    overwritten_by_checks,
    points_of,
    prose_of,
    sources_shown,
)

LAB = "lab03-guidance"
cell = partial(cell_of, LAB)


@pytest.fixture(scope="module")
def pipe():
    pipe = load_pipeline("bundled", "cpu")
    pipe.scheduler = DDIMScheduler.from_config(pipe.scheduler.config, clip_sample=False)
    pipe.set_progress_bar_config(disable=True)
    return pipe


@pytest.fixture(scope="module")
def solved():
    """The names that the lab's solutions define."""
    names: dict = {"torch": torch}
    for exercise in ("forecast", "guide", "after-pass"):
        exec(cell(exercise=exercise), names)
    return names


def test_a_check_cell_overwrites_nothing_that_the_lab_still_uses():
    imported = {"torch", "trace", "load_pipeline", "SDCFGCutoffCallback", "Words"}
    within_one_cell = {"scale", "plain", "share", "rows", "_"}
    shared = imported | within_one_cell | {"words"}
    assert not overwritten_by_checks(LAB, shared)


def test_practice_is_at_most_forty_percent_and_each_exercise_says_its_points():
    points = points_of(LAB)
    assert sum(points.values()) == 12 and points["guide"] == 3 <= 0.4 * 12
    prose = prose_of(LAB)
    assert "**Points** 12, of which 3 are practice" in " ".join(prose.split())
    assert efforts_said(LAB) == efforts_declared(LAB)


def test_every_note_on_the_installed_source_finds_its_line():
    views = sources_shown(LAB, StableDiffusionPipeline=StableDiffusionPipeline,
                          SDCFGCutoffCallback=SDCFGCutoffCallback)
    assert [notes for _, notes, _ in views] == [1, 5, 3]


def rows_of(pipe, prompts, **settings):
    """Rows of each call of the UNet in a real run."""
    with torch.no_grad(), trace(pipe) as run:
        pipe(prompts, height=32, width=32, output_type="latent", **settings)
    return [call.inputs["sample"].shape[0] for call in run.find("unet")]


def test_the_librarys_callback_guides_one_pass_more_than_its_guiders(pipe):
    callback = SDCFGCutoffCallback(cutoff_step_ratio=0.5)
    assert rows_of(pipe, "a red circle", num_inference_steps=8, guidance_scale=4.0,
                   callback_on_step_end=callback) == [2] * 5 + [1] * 3
    guider, guided = ClassifierFreeGuidance(stop=0.5), []
    for i in range(8):
        guider.set_state(i, 8, torch.tensor(0))
        guided.append(guider.num_conditions)
    assert guided == [2] * 4 + [1] * 4


def test_the_librarys_callback_does_not_serve_two_prompts(pipe):
    with pytest.raises(RuntimeError):
        rows_of(pipe, ["a red circle"] * 2, num_inference_steps=3, guidance_scale=4.0,
                callback_on_step_end=SDCFGCutoffCallback(cutoff_step_ratio=0.5))


@pytest.mark.parametrize("stop", [0.2, 0.35, 0.5, 1.0])
def test_the_repaired_switch_guides_the_passes_that_a_guider_would(solved, stop):
    guider = ClassifierFreeGuidance(stop=stop)
    scale, embeds, rows, wanted = 4.0, torch.zeros(6, 2, 2), [], []
    for i in range(10):
        guider.set_state(i, 10, torch.tensor(0))
        wanted.append(3 * guider.num_conditions)
        rows.append(len(embeds))
        scale, embeds = solved["after_pass"](i, 10, stop, scale, embeds)
    assert rows == wanted


def test_a_negative_prompt_that_is_the_prompt_switches_guidance_off(pipe):
    start = torch.randn(1, 4, 16, 16, generator=torch.Generator().manual_seed(1))
    settings = {"num_inference_steps": 3, "latents": start, "output_type": "latent"}
    with torch.no_grad():
        off = pipe("a red circle", guidance_scale=1.0, **settings).images
        itself = pipe("a red circle", guidance_scale=9.0, negative_prompt="a red circle", **settings).images
    assert (off - itself).abs().max() < 1e-3


def test_a_scale_of_half_is_off_in_the_pipeline_and_half_way_in_the_formula(pipe, solved):
    start = torch.randn(1, 4, 16, 16, generator=torch.Generator().manual_seed(1))
    settings = {"num_inference_steps": 2, "latents": start, "output_type": "latent"}
    with torch.no_grad():
        assert torch.equal(pipe("a red circle", guidance_scale=0.5, **settings).images,
                           pipe("a red circle", guidance_scale=1.0, **settings).images)
    one, two = torch.zeros(1, 4, 2, 2), torch.ones(1, 4, 2, 2)
    assert torch.equal(solved["guide"](one, two, 0.5), two / 2)


def test_six_cards_on_diffusion_are_this_labs():
    cards = [card for card in load_cards("diffusion").cards if card.see == LAB]
    assert len(cards) == 6 and all(card.question[-1] in "?." for card in cards)
