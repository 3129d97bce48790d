"""What learns beside the picture model: adapters and the ControlNet, whole at a tiny size, and as shipped."""

import pytest
import torch
from diffusers import StableDiffusionControlNetPipeline, UNet2DConditionModel

from inferlab.models import load_pipeline
from inferlab.models.adapters import ADAPTERS
from inferlab.models.control import copy_encoder, load_controlnet
from inferlab.models.scenes import check_pictures, outlines, render, sample_scenes
from inferlab.models.scenes.styles import without_strip
from training import adapters, control
from training.pictures import Clock
from training.styles import JUDGES, STYLES


def scenes(n=4, two=0.5):
    return sample_scenes(n, torch.Generator().manual_seed(5), two=two, keep="test")


def draw(pipeline, captions, **more):
    pipeline.set_progress_bar_config(disable=True)
    return pipeline(captions, num_inference_steps=10, guidance_scale=4.0, output_type="pt",
                    generator=[torch.Generator().manual_seed(i) for i in range(len(captions))], **more).images


@pytest.mark.parametrize("style", STYLES)
def test_judges_tell_the_styles_from_plain_scenes(style):
    batch = scenes(24)
    # a ring has a hole in any style; whatever stands on the strip hides it
    plain = torch.tensor(["ring" not in scene.caption for scene in batch.scenes()])
    assert JUDGES[style](STYLES[style](batch)).float().mean() > 0.9
    assert not JUDGES[style](render(batch))[plain].any()


def test_a_meadow_hides_nothing_from_the_checker():
    batch = scenes(24)
    verdicts = check_pictures(without_strip(STYLES["meadow"](batch)), batch.scenes())
    assert sum(verdict.right for verdict in verdicts) >= 22


def test_outlines_are_along_the_edges_only():
    batch = scenes(6, two=1.0)
    lines = outlines(batch)
    assert lines.shape == (6, 1, 128, 128) and 0 <= lines.min() and lines.max() <= 1
    flat = render(batch)
    down, right = flat.diff(dim=2)[..., :-1], flat.diff(dim=3)[..., :-1, :]
    steep = (down.abs() + right.abs()).sum(1) > 0.3
    assert (lines[:, 0, :-1, :-1][steep] > 0).float().mean() > 0.98
    assert lines.mean() < 0.15


def test_an_adapter_learns_and_is_a_file_that_diffusers_reads(tmp_path):
    plan = adapters.Plan(steps=2, batch=2, pool=16, fresh=2, rate=1e-2)
    adapters.train(plan, "meadow", tmp_path, "cpu", Clock(None))
    pipeline = load_pipeline("bundled", "cpu")
    before = draw(pipeline, ["a red circle"])
    pipeline.load_lora_weights(tmp_path, weight_name="meadow.safetensors", adapter_name="meadow")
    config = pipeline.unet.peft_config["meadow"]
    assert (config.r, config.lora_alpha) == (4, 8)
    assert not torch.equal(draw(pipeline, ["a red circle"]), before)
    pipeline.unload_lora_weights()
    assert torch.equal(draw(pipeline, ["a red circle"]), before)


def test_the_shipped_adapters_draw_their_styles():
    pipeline = load_pipeline("bundled", "cpu")
    for style in STYLES:
        assert (ADAPTERS / f"{style}.safetensors").stat().st_size < 250_000
        pipeline.load_lora_weights(ADAPTERS, weight_name=f"{style}.safetensors", adapter_name=style)
    captions = ["a large red square on a white background", "a large blue square on a gray background"]
    for style in STYLES:
        pipeline.set_adapters([style], [1.0])
        assert JUDGES[style](draw(pipeline, captions)).all(), style
    pipeline.set_adapters(list(STYLES), [0.0, 0.0])
    plain = draw(pipeline, captions)
    assert not any(judge(plain).any() for judge in JUDGES.values())


def test_a_new_controlnet_lets_nothing_through():
    pipeline = load_pipeline("bundled", "cpu")
    batch = scenes(1)
    with torch.no_grad():
        down, middle = copy_encoder(pipeline.unet)(
            torch.randn(1, 4, 16, 16), 500, torch.randn(1, 16, 192),
            controlnet_cond=outlines(batch).expand(-1, 3, -1, -1), return_dict=False)
    assert [tensor.abs().max().item() for tensor in [*down, middle]] == [0.0] * (len(down) + 1)


def test_a_controlnet_learns_stops_and_goes_on(tmp_path):
    plan = control.Plan(steps=2, batch=2, pool=16, fresh=2)
    assert not control.run(plan, tmp_path, "cpu", minutes=0.0)
    learner_size = (tmp_path / "checkpoint.pt").stat().st_size
    assert learner_size > 1_000_000
    unet = load_pipeline("bundled", "cpu").unet
    found = load_controlnet(unet, tmp_path / "control")
    encoder = dict(unet.named_parameters())
    frozen = {name: parameter for name, parameter in found.named_parameters()
              if not name.startswith(control.LEARNED)}
    assert frozen and all(torch.equal(encoder[name], parameter) for name, parameter in frozen.items())


def test_the_shipped_controlnet_puts_things_where_the_lines_are():
    pipeline = load_pipeline("bundled", "cpu")
    batch = scenes(3, two=0.0)
    words = [f"a {scene.things[0].color} {scene.things[0].shape}" for scene in batch.scenes()]
    guided = StableDiffusionControlNetPipeline(
        **pipeline.components | {"controlnet": load_controlnet(pipeline.unet)}, requires_safety_checker=False)
    lines = outlines(batch).expand(-1, 3, -1, -1)
    verdicts = check_pictures(draw(guided, words, image=lines), words)
    for verdict, x, y in zip(verdicts, batch.x[:, 0].tolist(), batch.y[:, 0].tolist(), strict=True):
        assert verdict.right
        thing = verdict.things[0]
        assert abs(thing.x - x) < 4 and abs(thing.y - y) < 4


def test_a_foreign_unet_is_refused():
    other = UNet2DConditionModel(
        block_out_channels=(32, 64), down_block_types=("DownBlock2D",) * 2,
        up_block_types=("UpBlock2D",) * 2, norm_num_groups=8, cross_attention_dim=192)
    with pytest.raises(ValueError, match="bundled UNet"):
        load_controlnet(other)
