"""A mislabeled pipeline: the network is as good as before, and only its label is wrong."""

import pytest
import torch
from diffusers import AutoencoderKL, DDIMScheduler, StableDiffusionPipeline, UNet2DConditionModel
from transformers import CLIPTextConfig, CLIPTextModel

from inferlab.lab.kits.pipelines.mislabeled import PREDICTION_TYPES, mislabeled

T = 500


@pytest.fixture(scope="module")
def pipe():
    torch.manual_seed(0)
    unet = UNet2DConditionModel(
        sample_size=8, block_out_channels=(8, 16), layers_per_block=1, cross_attention_dim=16,
        norm_num_groups=4,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        attention_head_dim=2,
    )
    vae = AutoencoderKL(block_out_channels=(8,), norm_num_groups=4, latent_channels=4)
    text = CLIPTextModel(CLIPTextConfig(vocab_size=20, hidden_size=16, intermediate_size=16,
                                        num_hidden_layers=1,
                                        num_attention_heads=2, max_position_embeddings=8))
    scheduler = DDIMScheduler(beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear",
                              clip_sample=False,
                              steps_offset=1)
    made = StableDiffusionPipeline(
        vae=vae, text_encoder=text, tokenizer=None, unet=unet, scheduler=scheduler, safety_checker=None,
        feature_extractor=None, requires_safety_checker=False,
    )
    made.set_progress_bar_config(disable=True)
    return made


def call(pipe, x, t=T, **options):
    with torch.no_grad():
        return pipe.unet(x, t, encoder_hidden_states=torch.zeros(len(x), 8, 16), **options)


@pytest.fixture
def x():
    return torch.randn(2, 4, 8, 8, generator=torch.Generator().manual_seed(1))


def test_the_six_variants_are_the_six_pairs_of_different_types(pipe, x):
    pairs = set()
    for variant in range(6):
        suspect = mislabeled(pipe, variant)
        noise, alpha = call(pipe, x)[0], pipe.scheduler.alphas_cumprod[T]
        clean = (x - (1 - alpha) ** 0.5 * noise) / alpha**0.5
        targets = {"epsilon": noise, "sample": clean, "v_prediction": alpha**0.5 * noise - (1 - alpha) ** 0.5
                   * clean}
        answers = [name for name, target in targets.items() if torch.allclose(call(suspect, x)[0], target,
                                                                              atol=1e-4)]
        assert len(answers) == 1
        pairs.add((answers[0], suspect.scheduler.config.prediction_type))
    assert pairs == {(a, b) for a in PREDICTION_TYPES for b in PREDICTION_TYPES if a != b}


def test_the_right_label_mends_it(pipe, x):
    healthy = pipe.scheduler
    healthy.set_timesteps(2)
    want = healthy.step(call(pipe, x, 501)[0], 501, x).prev_sample
    for variant in range(6):
        suspect = mislabeled(pipe, variant)
        mended = set()
        for label in PREDICTION_TYPES:
            scheduler = DDIMScheduler.from_config(suspect.scheduler.config, prediction_type=label)
            scheduler.set_timesteps(2)
            if torch.allclose(scheduler.step(call(suspect, x, 501)[0], 501, x).prev_sample, want, atol=1e-4):
                mended.add(label)
        assert len(mended) == 1 and suspect.scheduler.config.prediction_type not in mended


def test_the_healthy_pipeline_is_left_as_it_was(pipe, x):
    before = call(pipe, x)[0]
    suspect = mislabeled(pipe, 0)
    assert torch.equal(before, call(pipe, x)[0])
    assert pipe.scheduler.config.prediction_type == "epsilon"
    assert suspect.unet is not pipe.unet and suspect.vae is pipe.vae


def test_both_ways_of_returning_are_rewritten_alike(pipe, x):
    suspect = mislabeled(pipe, 0)
    assert torch.equal(call(suspect, x).sample, call(suspect, x, return_dict=False)[0])


def test_a_timestep_for_each_row_is_used_for_that_row(pipe, x):
    suspect = mislabeled(pipe, 0)
    both = call(suspect, x, torch.tensor([100, 900]))[0]
    assert torch.allclose(both[:1], call(suspect, x[:1], 100)[0], atol=1e-5)
    assert torch.allclose(both[1:], call(suspect, x[1:], 900)[0], atol=1e-5)


@pytest.mark.parametrize("variant", [-1, 6])
def test_an_unknown_variant_is_refused(pipe, variant):
    with pytest.raises(ValueError, match="0 to 5"):
        mislabeled(pipe, variant)


def test_a_suspect_cannot_be_mislabeled_again(pipe):
    with pytest.raises(ValueError, match="predicts epsilon"):
        mislabeled(mislabeled(pipe, 1), 0)
