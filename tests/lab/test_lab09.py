"""Lab 09: what its text says of control is so, and its notes on the installed source find their lines."""

import ast
from functools import partial

import pytest
import torch
from diffusers import (
    ControlNetModel,
    DDIMScheduler,
    StableDiffusionControlNetPipeline,
    UNet2DConditionModel,
)
from diffusers.models.attention_processor import IPAdapterAttnProcessor2_0

from inferlab.lab.cards import load_cards
from inferlab.models import load_pipeline
from inferlab.models.control import load_controlnet
from inferlab.models.scenes import check_pictures, outlines, sample_scenes
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

LAB = "lab09-control"
WORDS = ["a yellow square", "an orange cross", "a red circle"]
cell = partial(cell_of, LAB)


@pytest.fixture(scope="module")
def scenes():
    return sample_scenes(8, torch.Generator().manual_seed(9), two=0.0, keep="test")


@pytest.fixture(scope="module")
def lines(scenes):
    return outlines(scenes)[:3].expand(-1, 3, -1, -1)


@pytest.fixture(scope="module")
def pipe():
    parts = load_pipeline("bundled", "cpu").components
    parts["scheduler"] = DDIMScheduler.from_config(parts["scheduler"].config, clip_sample=False)
    made = StableDiffusionControlNetPipeline(**parts, controlnet=load_controlnet(parts["unet"]),
                                             requires_safety_checker=False)
    made.set_progress_bar_config(disable=True)
    return made


def draw(pipe, words, lines, **settings):
    noise = torch.randn(3, 4, 16, 16, generator=torch.Generator().manual_seed(0))[:len(words)]
    settings = {"num_inference_steps": 6, "guidance_scale": 4.0, "output_type": "pt"} | settings
    return pipe(words, image=lines, latents=noise, **settings).images


def on_the_lines(images, scenes):
    count = 0
    verdicts = check_pictures(images, WORDS[:len(images)])
    for verdict, x, y in zip(verdicts, scenes.x[:, 0].tolist(), scenes.y[:, 0].tolist(), strict=False):
        count += any(((thing.x - x) ** 2 + (thing.y - y) ** 2) ** 0.5 < 5 for thing in verdict.things)
    return count


def test_a_check_cell_overwrites_nothing_that_the_lab_still_uses():
    assert not overwritten_by_checks(LAB, {"torch", "Check", "Words", "_", "words"})


def test_practice_is_at_most_forty_percent_and_each_exercise_says_its_points():
    points = points_of(LAB)
    assert sum(points.values()) == 14 and points["controlled"] == 3 <= 0.4 * 14
    assert "**Points** 14, of which 3 are practice" in prose_of(LAB)
    assert efforts_said(LAB) == efforts_declared(LAB)


def test_every_note_on_the_installed_source_finds_its_line():
    views = sources_shown(LAB, StableDiffusionControlNetPipeline=StableDiffusionControlNetPipeline,
                          ControlNetModel=ControlNetModel, UNet2DConditionModel=UNet2DConditionModel)
    assert {name: notes for name, notes, _ in views} == {
        "StableDiffusionControlNetPipeline.__call__": 4, "ControlNetModel.forward": 3,
        "UNet2DConditionModel.forward": 2}


@torch.no_grad()
def test_the_solution_adds_to_the_bit_what_the_pipeline_adds(pipe, lines):
    """With the lesson's own halves of the UNet, at a scale that is not 1, in a size with odd sides."""
    names: dict = {"torch": torch, "unet": pipe.unet, "controlnet": pipe.controlnet}
    halves = [node for begins in ("text, empty = base", "def decode(")
              for node in ast.parse(cell(begins=begins)).body
              if isinstance(node, ast.FunctionDef)]
    exec(compile(ast.Module(halves, []), "cell", "exec"), names)
    exec(cell(exercise="controlled"), names)
    text = torch.randn(2, 16, 192, generator=torch.Generator().manual_seed(2))
    latents = torch.randn(2, 4, 9, 13, generator=torch.Generator().manual_seed(1))
    given = lines[:1, :, :72, :104]
    mine = names["controlled"](names["encode"], names["control"], names["decode"], latents,
                               torch.tensor(831), text, given, 0.7)
    down, mid = pipe.controlnet(latents, 831, text, torch.cat([given, given]), 0.7, return_dict=False)
    theirs = pipe.unet(latents, 831, text, down_block_additional_residuals=down,
                       mid_block_additional_residual=mid).sample
    assert torch.equal(mine, theirs)


@torch.no_grad()
def test_outside_the_window_the_network_is_called_and_a_loop_without_the_call_is_the_same(pipe, lines):
    names: dict = {"torch": torch}
    exec(cell(exercise="residuals-of-pass"), names)
    with trace(pipe) as run:
        theirs = draw(pipe, WORDS[:1], lines[:1], num_inference_steps=3, control_guidance_end=0.4,
                      controlnet_conditioning_scale=0.7, output_type="latent")
    assert [call.inputs["conditioning_scale"] for call in run.find("controlnet")] == [0.7, 0, 0]
    calls = []

    def control(latents, t, text, lines, scale):
        calls.append(int(t))
        down, mid = pipe.controlnet(latents, t, text, lines, scale, return_dict=False)
        return [*down, mid]

    prompt, empty = pipe.encode_prompt(WORDS[0], "cpu", 1, True)
    text, both = torch.cat([empty, prompt]), torch.cat([lines[:1]] * 2)
    latents = torch.randn(3, 4, 16, 16, generator=torch.Generator().manual_seed(0))[:1]
    pipe.scheduler.set_timesteps(3)
    for i, t in enumerate(pipe.scheduler.timesteps):
        rows = torch.cat([latents] * 2)
        got = names["residuals_of_pass"]((control, both, 0.7, 0.0, 0.4), i, 3, rows, t, text)
        more = {} if got is None else {"down_block_additional_residuals": got[:-1],
                                       "mid_block_additional_residual": got[-1]}
        uncond, cond = pipe.unet(rows, t, text, **more).sample.chunk(2)
        latents = pipe.scheduler.step(uncond + 4.0 * (cond - uncond), t, latents).prev_sample
    assert len(calls) == 1 and torch.equal(latents, theirs)


@pytest.mark.slow
def test_the_lines_decide_the_place_at_half_scale_early_and_against_the_words(pipe, lines, scenes):
    against = ["a yellow star at the right", "an orange square at the bottom", "a red triangle at the top"]
    assert on_the_lines(draw(pipe, WORDS, lines, controlnet_conditioning_scale=0.0), scenes) == 0
    assert on_the_lines(draw(pipe, WORDS, lines, controlnet_conditioning_scale=0.5), scenes) == 3
    assert on_the_lines(draw(pipe, WORDS, lines, control_guidance_end=0.5), scenes) == 3
    assert on_the_lines(draw(pipe, against, lines), scenes) == 3


@torch.no_grad()
def test_an_image_prompt_is_a_second_attention_that_is_added(pipe):
    attn = pipe.unet.down_blocks[0].attentions[0].transformer_blocks[0].attn2
    torch.manual_seed(0)
    adapter = IPAdapterAttnProcessor2_0(attn.to_q.in_features, attn.to_k.in_features, num_tokens=(4,))
    places, text, image = torch.randn(1, 9, 96), torch.randn(1, 16, 192), torch.randn(1, 4, 192)
    answers = []
    for scale in (0.0, 0.5, 1.0):
        adapter.scale = [scale]
        answers.append(adapter(attn, places, (text, [image])))
    assert torch.allclose(answers[0], attn(places, text), atol=1e-6)
    assert torch.allclose(answers[2] - answers[0], 2 * (answers[1] - answers[0]), atol=1e-5)


def test_four_cards_on_diffusion_are_this_labs():
    cards = [card for card in load_cards("diffusion").cards if card.see == LAB]
    assert len(cards) == 4 and all(card.question[-1] in "?." for card in cards)
