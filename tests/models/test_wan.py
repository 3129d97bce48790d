"""The bundled video model is an unmodified WanPipeline; Wan 2.1 has its published sizes."""

import pytest
import torch
from diffusers import FlowMatchEulerDiscreteScheduler, WanPipeline

from inferlab.models import full_transformers, load_pipeline
from inferlab.models.clips import check_clips, parse_clip_caption, render_clips, sample_clips
from inferlab.models.pictures import WAN

PROMPTS = [
    "a red circle moves left on a white background",
    "a blue square rises on a gray background",
    "a yellow ring falls on a black background",
    "a green circle moves right and a pink square stays still on a white background",
]


@pytest.fixture(scope="module")
def pipeline():
    pipeline = load_pipeline("bundled", "cpu", family="wan")
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


def film(pipeline, prompts, **options):
    seeds = [torch.Generator().manual_seed(i) for i in range(len(prompts))]
    options = {"num_inference_steps": 12, "guidance_scale": 2.0, "max_sequence_length": 16} | options
    return pipeline(
        prompts, height=96, width=96, num_frames=17, generator=seeds, output_type="pt", **options
    ).frames


def test_it_films_what_the_caption_says(pipeline):
    clips = film(pipeline, PROMPTS)
    assert clips.shape == (4, 17, 3, 96, 96)
    verdicts = check_clips(clips, PROMPTS)
    moved = [
        v.attributes["color"] and v.attributes["motion"] and v.attributes["background"] for v in verdicts
    ]
    assert sum(moved) >= 3, [str(v) for v in verdicts]
    assert sum(v.right for v in verdicts) >= 2, [str(v) for v in verdicts]


def test_the_default_length_of_prompts_works(pipeline):
    clips = film(pipeline, PROMPTS[:2], max_sequence_length=512)
    assert sum(v.attributes["motion"] for v in check_clips(clips, PROMPTS[:2])) == 2


def test_another_scheduler_films_too(pipeline):
    unipc = pipeline.scheduler
    pipeline.scheduler = FlowMatchEulerDiscreteScheduler(shift=unipc.config.flow_shift)
    try:
        assert check_clips(film(pipeline, PROMPTS[:1]), PROMPTS[:1])[0].attributes["motion"]
    finally:
        pipeline.scheduler = unipc


@torch.no_grad()
def test_its_autoencoder_gives_clips_back(pipeline):
    batch = sample_clips(4, torch.Generator().manual_seed(3), keep="test")
    given = render_clips(batch) * 2 - 1
    latents = pipeline.vae.encode(given).latent_dist.mode()
    assert latents.shape == (4, 16, 5, 12, 12)
    back = pipeline.vae.decode(latents).sample
    assert 10 * torch.log10(4 / (back - given).square().mean()) > 35
    assert all(v.right for v in check_clips((back / 2 + 0.5).transpose(1, 2), batch.scenes()))


@torch.no_grad()
def test_a_first_frame_depends_on_the_first_latent_alone(pipeline):
    latents = torch.randn(1, 16, 3, 12, 12, generator=torch.Generator().manual_seed(0))
    other = latents.clone()
    other[:, :, 1:] += 1
    one, two = (pipeline.vae.decode(z).sample for z in (latents, other))
    assert one.shape == (1, 3, 9, 96, 96)
    assert torch.equal(one[:, :, 0], two[:, :, 0]) and not torch.equal(one[:, :, 1], two[:, :, 1])


def test_its_parts_are_the_ones_that_labs_name(pipeline):
    assert type(pipeline) is WanPipeline
    assert (pipeline.vae_scale_factor_temporal, pipeline.vae_scale_factor_spatial) == (4, 8)
    assert type(pipeline.scheduler).__name__ == "UniPCMultistepScheduler"
    assert len(pipeline.transformer.blocks) == 8
    assert sum(f.stat().st_size for f in WAN.rglob("*") if f.is_file()) < 8.5e6
    assert all(parse_clip_caption(prompt) for prompt in PROMPTS)


@pytest.mark.parametrize("size, billions", [("1.3B", 1.42), ("14B", 14.29)])
def test_wan_has_its_published_sizes(size, billions):
    with torch.device("meta"):
        parts = full_transformers.wan_networks(size)
    have = {name: sum(p.numel() for p in part.parameters()) / 1e9 for name, part in parts.items()}
    assert have["transformer"] == pytest.approx(billions, abs=0.01)
    assert have["text_encoder"] == pytest.approx(5.68, abs=0.01)
    assert have["vae"] == pytest.approx(0.127, abs=0.001)


def test_what_does_not_fit_is_refused_with_its_bytes(monkeypatch):
    monkeypatch.setattr("inferlab.models.fit.free_memory", lambda device: 8 * 10**9)
    for source, needed in (
        ("full", r"need 14\.\d GB \(transformer 2\.8"),
        ("full:14B", r"need 40\.\d GB \(transformer 28\."),
    ):
        with pytest.raises(MemoryError, match=needed):
            load_pipeline(source, "cpu", torch.bfloat16, family="wan")
