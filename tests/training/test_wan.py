"""The command that made the video model runs at a tiny size, stops, goes on, and leaves a WanPipeline."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from diffusers import WanPipeline

from inferlab.models.clips import WORDS, sample_clips
from training.captions import clip_caption_words
from training.modern import measure, wan
from training.modern.networks import make_t5_tokenizer, make_video_vae
from training.modern.passes import TokenWriter
from training.modern.wan_vae import Films, encoded, frames_last, set_scale
from training.modern.whole import decode_whole, encode_whole

TINY = [
    "--device",
    "cpu",
    "--size",
    "tiny",
    "--vae-steps",
    "2",
    "--vae-batch",
    "1",
    "--steps",
    "3",
    "--batch",
    "2",
    "--pool",
    "4",
    "--fresh",
    "2",
    "--block",
    "4",
    "--longest",
    "32",
    "--clips",
    "0",
]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished tiny run that was stopped at once, before its first step, and then given again."""
    out = tmp_path_factory.mktemp("run")
    assert wan.main(["--out", str(out), *TINY, "--minutes", "0"]) == 0
    stopped = steps_of(out)
    assert wan.main(["--out", str(out), *TINY]) == 0
    return out, stopped


def steps_of(out):
    return {path.name: torch.load(path, weights_only=True)["step"] for path in sorted(out.glob("*.pt"))}


def test_a_run_that_was_stopped_goes_on(run):
    out, stopped = run
    assert stopped == {"vae.pt": 0, "wan-0.pt": 0}
    assert steps_of(out) == {"vae.pt": 2, "wan-0.pt": 0, "wan-2.pt": 3}, (
        "the transformer began with the finished autoencoder"
    )


def test_what_it_leaves_is_a_wan_pipeline(run):
    pipeline = measure.opened(run[0] / "wan", "wan", "cpu")
    assert type(pipeline) is WanPipeline
    assert pipeline.vae.config.latents_mean != [0.0] * 16, "the scale of its latents is the autoencoder's own"
    shown = pipeline(
        "a red circle rises", height=96, width=96, num_frames=17, num_inference_steps=2, output_type="pt"
    )
    assert shown.frames.shape == (1, 17, 3, 96, 96)
    assert torch.isfinite(shown.frames).all()


def test_the_transformer_can_be_trained_alone_by_several_processes(run, tmp_path):
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nproc-per-node",
        "2",
        "--standalone",
        "--local-addr",
        "localhost",  # not every machine knows its own name
        "-m",
        "training.modern.wan",
        "--out",
        str(tmp_path),
        "--stage",
        "transformer",
        "--begin",
        str(run[0] / "wan"),
        *TINY,
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=1000,
        cwd=Path(__file__).resolve().parents[2],
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert torch.load(tmp_path / "wan.pt", weights_only=True)["step"] == 3
    assert "wan 1 loss" in done.stdout
    kept, given = (folder / "wan/vae/diffusion_pytorch_model.safetensors" for folder in (tmp_path, run[0]))
    assert kept.read_bytes() == given.read_bytes(), "the autoencoder is used as it was"


def test_the_transformer_alone_needs_an_autoencoder(tmp_path, capsys):
    with pytest.raises(SystemExit):
        wan.main(["--out", str(tmp_path), "--stage", "transformer", *TINY])
    assert "--begin" in capsys.readouterr().err


def test_its_figures_can_be_measured(run, tmp_path):
    out = tmp_path / "figures.json"
    measure.main(
        [
            "wan",
            str(run[0] / "wan"),
            "--device",
            "cpu",
            "--number",
            "1",
            "--only",
            "10 steps",
            "--json",
            str(out),
        ]
    )
    (row,) = json.loads(out.read_text())
    assert row["setting"] == "UniPC 10 steps, guidance 2"
    assert {"right", "shape", "color, motion, background"} <= set(row["shapes_1"])
    judged = measure.judge_vae(measure.opened(run[0] / "wan", "wan", "cpu").vae, "cpu", 1)
    assert judged["psnr"] > 0 and 0 <= judged["shapes_2"]["right"] <= 1


@torch.no_grad()
def test_a_whole_clip_at_once_gives_what_the_library_gives_chunk_by_chunk():
    torch.manual_seed(0)
    vae = make_video_vae("tiny").eval()
    for parameter in vae.parameters():
        parameter.add_(0.05 * torch.randn_like(parameter))
    frames_last(vae)
    clips = torch.rand(1, 3, 17, 32, 32) * 2 - 1
    latents = vae.encode(clips).latent_dist.mode()
    assert latents.shape == (1, 16, 5, 4, 4)
    assert torch.allclose(encode_whole(vae, clips)[0], latents, atol=1e-5)
    back = vae.decode(latents * 0.1).sample
    assert back.shape == clips.shape
    assert torch.allclose(decode_whole(vae, latents * 0.1).clamp(-1, 1), back, atol=1e-5)
    assert torch.equal(vae.encode(clips).latent_dist.mode(), latents), "the library's own pass is as before"


def test_the_scale_of_latents_is_taken_by_channel():
    vae = make_video_vae("tiny")
    latents = torch.randn(64, 16, 2, 4, 4) * 3 + torch.arange(16).view(1, 16, 1, 1, 1)
    set_scale(vae, latents)
    assert torch.allclose(torch.tensor(vae.config.latents_mean), torch.arange(16.0), atol=0.3)
    assert torch.allclose(torch.tensor(vae.config.latents_std), torch.full((16,), 3.0), atol=0.3)
    films = Films(torch.Generator().manual_seed(0), 4, 0.5)
    assert encoded(vae, films.take(1)).shape == (1, 16, 5, 12, 12)
    assert not torch.equal(films.take(2).start, films.take(2).start)


def test_captions_are_written_as_the_tokenizer_writes_them():
    tokenizer = make_t5_tokenizer(WORDS)
    batch = sample_clips(100, torch.Generator().manual_seed(0), keep="all")
    writer = TokenWriter(tokenizer, WORDS, torch.Generator().manual_seed(0), capitals=0.0)
    wanted = tokenizer([s.caption for s in batch.scenes()], padding="max_length", max_length=16).input_ids
    assert writer.write(clip_caption_words(batch), 16).tolist() == wanted


def test_pads_of_training_are_the_pads_of_the_pipeline(run):
    """The velocity of a prompt padded to 32 is the same in training, where pads come after the text encoder,
    and in the call."""
    pipeline = measure.opened(run[0] / "wan", "wan", "cpu")
    model = torch.nn.ModuleDict({"transformer": pipeline.transformer, "text": pipeline.text_encoder})
    latents, level = torch.randn(1, 16, 5, 12, 12), torch.tensor([0.5])
    ids = pipeline.tokenizer(
        "a red circle rises", padding="max_length", max_length=16, return_tensors="pt"
    ).input_ids
    with torch.no_grad():
        trained = wan.Velocity(model)(latents, level, ids, torch.zeros(16))
        text, _ = pipeline.encode_prompt(
            "a red circle rises", do_classifier_free_guidance=False, max_sequence_length=32
        )
        called = pipeline.transformer(latents, level * 1000, text, return_dict=False)[0]
    assert torch.allclose(trained, called, atol=1e-5)
