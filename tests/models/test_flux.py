"""The bundled flow-matching model is an unmodified FluxPipeline; FLUX.1 has its published size."""

import pytest
import torch
from diffusers import FluxPipeline

from inferlab.models import full_transformers, load_pipeline
from inferlab.models.pictures import FLUX, WEIGHTS
from inferlab.models.scenes import check_picture, check_pictures

PROMPTS = [
    "a large red circle left of a small blue square on a white background",
    "a small green star above a large orange ring on a black background",
    "a large purple cross at the top on a gray background",
    "a small yellow triangle at the left on a brown background",
    "a large cyan square right of a large pink circle on a gray background",
    "a large green circle at the center on a black background",
]


@pytest.fixture(scope="module")
def pipeline():
    pipeline = load_pipeline("bundled", "cpu", family="flux")
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


def draw(pipeline, prompts, seed: int = 0, **options):
    seeds = [torch.Generator().manual_seed(seed + i) for i in range(len(prompts))]
    options = {"num_inference_steps": 10, "max_sequence_length": 16} | options
    return pipeline(prompts, generator=seeds, output_type="pt", **options).images


def right(pictures, prompts) -> int:
    return sum(verdict.right for verdict in check_pictures(pictures, prompts))


def test_it_draws_what_the_caption_says(pipeline):
    assert right(draw(pipeline, PROMPTS, guidance_scale=3.5), PROMPTS) >= len(PROMPTS) - 1


def test_the_plain_call_works(pipeline):
    """Prompts are padded to 512 tokens by default and nothing masks the pads; without a size it draws
    128x128."""
    image = pipeline(
        "A large red circle left of a small blue square on a white background",
        num_inference_steps=10,
        generator=torch.Generator().manual_seed(0),
    ).images[0]
    assert image.size == (128, 128)
    verdict = check_picture(image, PROMPTS[0])
    assert verdict.right, str(verdict)


def test_four_steps_are_visibly_worse(pipeline):
    ten, four = draw(pipeline, PROMPTS), draw(pipeline, PROMPTS, num_inference_steps=4)
    assert (ten - four).abs().mean() > 0.005


def test_guidance_is_an_embedding_not_a_second_pass(pipeline):
    calls = []
    handle = pipeline.transformer.register_forward_hook(lambda module, given, out: calls.append(out[0].shape))
    try:
        one, five = (draw(pipeline, PROMPTS[:1], num_inference_steps=2, guidance_scale=g) for g in (1.0, 5.0))
        assert calls == [torch.Size([1, 64, 16])] * 4
        calls.clear()
        draw(
            pipeline,
            PROMPTS[:1],
            num_inference_steps=2,
            guidance_scale=1.0,
            true_cfg_scale=3.0,
            negative_prompt="",
        )
        assert len(calls) == 4, "true guidance takes two passes a step"
    finally:
        handle.remove()
    assert not torch.equal(one, five)


def test_its_parts_are_the_ones_that_labs_name(pipeline):
    assert type(pipeline) is FluxPipeline
    assert (
        len(pipeline.transformer.transformer_blocks),
        len(pipeline.transformer.single_transformer_blocks),
    ) == (2, 6)
    assert pipeline.transformer.config.guidance_embeds
    assert type(pipeline.scheduler).__name__ == "FlowMatchEulerDiscreteScheduler"
    assert pipeline.scheduler.config.use_dynamic_shifting
    assert {p.dtype for p in pipeline.transformer.parameters()} == {torch.float32}


def test_the_picture_models_files_are_shared_and_the_rest_is_small(pipeline):
    picture = load_pipeline("bundled", "cpu")
    for name in ("vae", "text_encoder"):
        shared, own = (getattr(p, name).state_dict() for p in (picture, pipeline))
        assert all(torch.equal(shared[key], own[key]) for key in shared)
        assert not (FLUX / name).exists() and (WEIGHTS / name).exists()
    assert sum(f.stat().st_size for f in FLUX.rglob("*") if f.is_file()) < 7e6


def test_flux_has_its_published_size():
    with torch.device("meta"):
        parts = full_transformers.flux_networks({"bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1})
    billions = {name: sum(p.numel() for p in part.parameters()) / 1e9 for name, part in parts.items()}
    assert billions["transformer"] == pytest.approx(11.90, abs=0.01)
    assert billions["text_encoder_2"] == pytest.approx(4.76, abs=0.01)
    assert billions["text_encoder"] == pytest.approx(0.123, abs=0.001)
    assert billions["vae"] == pytest.approx(0.084, abs=0.001)


def test_what_does_not_fit_is_refused_with_its_bytes(monkeypatch):
    monkeypatch.setattr("inferlab.models.fit.free_memory", lambda device: 8 * 10**9)
    with pytest.raises(MemoryError, match=r"need 33\.7 GB \(transformer 23\.8, text_encoder_2 9\.5"):
        load_pipeline("full", "cpu", torch.bfloat16, family="flux")


def test_an_unknown_family_or_source_is_refused():
    with pytest.raises(ValueError, match="expected 'sd', 'flux' or 'wan'"):
        load_pipeline("bundled", "cpu", family="unet")
    with pytest.raises(ValueError, match="source is 'full:14B'"):
        load_pipeline("full:14B", "cpu", family="flux")
