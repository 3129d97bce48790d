"""The bundled pipeline loads in silence, draws what captions say, and the other two sources behave as
promised."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from inferlab.models import full_size, load_language_model, load_pipeline
from inferlab.models.device import resolve_device
from inferlab.models.pictures import WEIGHTS
from inferlab.models.scenes import WORDS, check_picture
from tests.models.hub_server import serve

PROMPTS = [
    "a large red circle left of a small blue square on a white background",
    "a small green star above a large orange ring on a black background",
    "a large purple cross at the top on a gray background",
    "a small yellow triangle at the left on a brown background",
    "a large cyan square right of a large pink circle on a gray background",
    "a small red ring below a small blue cross on a white background",
    "a large green circle at the center on a black background",
    "a small orange square at the bottom on a white background",
    "a large blue star and a small red star on a white background",
    "a pink triangle",
]


@pytest.fixture(scope="module")
def pipeline():
    pipeline = load_pipeline("bundled", "cpu")
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


def draw(pipeline, prompts, seed: int = 0, **options):
    options = {"num_inference_steps": 20, "guidance_scale": 4.0, "output_type": "pt"} | options
    return pipeline(prompts, generator=torch.Generator().manual_seed(seed), **options).images


def run_python(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", code, *arguments], check=False, capture_output=True,
                          text=True, timeout=240, env=os.environ | {"OMP_NUM_THREADS": "1"} | environment)


@pytest.mark.slow
def test_it_draws_what_the_caption_says(pipeline):
    begin = time.monotonic()
    pictures = draw(pipeline, PROMPTS)
    took, threads = time.monotonic() - begin, torch.get_num_threads()
    print(f"\n{len(PROMPTS)} pictures of 20 guided steps: {took:.1f} s, {threads} threads")
    verdicts = [check_picture(picture, prompt) for picture, prompt in zip(pictures, PROMPTS, strict=True)]
    wrong = [f"{prompt}: {verdict}" for prompt, verdict in zip(PROMPTS, verdicts, strict=True)
             if not verdict.right]
    assert len(wrong) <= 1, wrong


def test_two_steps_are_too_few(pipeline):
    pictures = draw(pipeline, PROMPTS, num_inference_steps=2)
    assert sum(check_picture(p, c).right for p, c in zip(pictures, PROMPTS, strict=True)) < len(PROMPTS) / 2


def test_the_same_seed_gives_the_same_picture(pipeline):
    first, again, other = (draw(pipeline, PROMPTS[0], seed=s, num_inference_steps=3) for s in (5, 5, 6))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_its_parts_are_the_ones_that_labs_name(pipeline):
    assert type(pipeline).__name__ == "StableDiffusionPipeline"
    assert type(pipeline.scheduler).__name__ == "DDIMScheduler"
    assert pipeline.scheduler.config.prediction_type == "epsilon"
    assert pipeline.scheduler.config.clip_sample is False
    assert pipeline.unet.config.in_channels == pipeline.vae.config.latent_channels == 4
    assert pipeline.vae_scale_factor == 8 and pipeline.unet.config.sample_size == 16
    assert {p.dtype for p in pipeline.unet.parameters()} == {torch.float32}
    assert not pipeline.unet.training


def test_every_word_is_one_token_and_the_longest_caption_fits(pipeline):
    tokenizer = pipeline.tokenizer
    assert tokenizer.model_max_length == 16
    assert all(len(tokenizer(word)["input_ids"]) == 3 for word in WORDS)
    ids = tokenizer(PROMPTS[0])["input_ids"]
    assert len(ids) == 16 and ids[0] == tokenizer.bos_token_id and ids[-1] == tokenizer.eos_token_id
    padded = tokenizer("", padding="max_length")["input_ids"]
    assert padded == [tokenizer.bos_token_id] + [tokenizer.eos_token_id] * 15


def test_latents_have_unit_standard_deviation(pipeline):
    from inferlab.models.scenes import render, sample_scenes

    pictures = render(sample_scenes(32, torch.Generator().manual_seed(0))) * 2 - 1
    with torch.no_grad():
        latents = pipeline.vae.encode(pictures).latent_dist.mode()
        again = pipeline.vae.decode(latents).sample.clamp(-1, 1)
    assert 0.85 < (latents * pipeline.vae.config.scaling_factor).std() < 1.15
    psnr = 10 * torch.log10(4 / (again - pictures).square().mean())
    print(f"\nreconstruction {psnr:.1f} dB")
    assert psnr > 34


def test_the_folder_is_small_and_names_no_machine():
    files = [path for path in WEIGHTS.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 30e6
    for path in files:
        if path.suffix == ".json":
            assert "_name_or_path" not in path.read_text(), path
        if path.suffix == ".safetensors":
            header = path.read_bytes()[8:4096].decode("utf-8", "ignore")
            assert '"F16"' in header and '"F32"' not in header


def test_loading_and_drawing_print_nothing_but_the_steps():
    result = run_python(
        "from inferlab.models import load_pipeline\n"
        "pipe = load_pipeline()\n"
        "pipe.set_progress_bar_config(disable=True)\n"
        "pipe('a red circle', num_inference_steps=1)\n", CUDA_VISIBLE_DEVICES="")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_importing_the_doors_imports_no_model_library():
    result = run_python("import sys, inferlab.models\nprint({'torch', 'diffusers', 'transformers'} & "
                        "set(sys.modules))")
    assert result.stdout == "set()\n"


def test_quiet_leaves_everything_as_it_was():
    import logging
    import warnings

    from transformers.utils import logging as transformers_logging

    from inferlab.models.quiet import quiet

    before = logging.root.manager.disable, warnings.filters[:], transformers_logging.is_progress_bar_enabled()
    with pytest.raises(KeyError), quiet():
        assert not transformers_logging.is_progress_bar_enabled()
        raise KeyError
    assert before == (logging.root.manager.disable, warnings.filters[:],
                      transformers_logging.is_progress_bar_enabled())


def test_unknown_sources_and_absent_devices_are_refused():
    with pytest.raises(ValueError, match="'bundled', 'full', 'hub'"):
        load_pipeline("huge", "cpu")
    assert resolve_device("auto") == ("cuda" if torch.cuda.is_available() else "cpu")
    for load in (load_pipeline, load_language_model):
        with pytest.raises(ValueError, match="torch sees"):
            load("bundled", f"cuda:{torch.cuda.device_count()}")


def test_full_has_the_published_number_of_parameters():
    with torch.device("meta"):
        parts = full_size.networks({"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1})
    count = {name: sum(p.numel() for p in part.parameters()) for name, part in parts.items()}
    assert count == {"unet": 859_520_964, "vae": 83_653_863, "text_encoder": 123_060_480}


def test_full_is_seeded_made_in_its_dtype_and_runs(monkeypatch):
    monkeypatch.setattr(full_size, "UNET", full_size.UNET | {
        "block_out_channels": (32, 32, 32, 32), "layers_per_block": 1, "sample_size": 8})
    monkeypatch.setattr(full_size, "VAE", full_size.VAE | {"block_out_channels": (32,) * 4,
                                                           "layers_per_block": 1})
    monkeypatch.setattr(full_size, "TEXT", full_size.TEXT | {"num_hidden_layers": 1})
    state = torch.random.get_rng_state()
    one, two, other = (load_pipeline("full", "cpu", torch.bfloat16, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(torch.random.get_rng_state(), state) and torch.get_default_dtype() == torch.float32
    weights = [pipe.unet.conv_in.weight for pipe in (one, two, other)]
    assert weights[0].dtype == torch.bfloat16
    assert torch.equal(weights[0], weights[1]) and not torch.equal(weights[0], weights[2])
    one.set_progress_bar_config(disable=True)
    assert one.tokenizer("a red circle", padding="max_length", return_tensors="pt")["input_ids"].shape == (1,
                                                                                                           77)
    assert one("a red circle", num_inference_steps=2, output_type="np").images.shape == (1, 64, 64, 3)


def test_full_says_before_it_starts_that_memory_is_short(monkeypatch):
    monkeypatch.setattr("inferlab.models.fit.free_memory", lambda device: 10**9)
    with pytest.raises(MemoryError, match=r"4\.3 GB.*bundled"):
        load_pipeline("full", "cpu")


HUB_RUN = """
import json, sys, time
from inferlab.models import load_pipeline
for source in sys.argv[1:]:
    begin = time.monotonic()
    try:
        pipe = load_pipeline(source, "cpu")
        found = {"class": type(pipe).__name__, "sum": float(pipe.unet.conv_in.weight.sum())}
    except ConnectionError as error:
        found = {"error": str(error), "seconds": time.monotonic() - begin}
    print("@@" + json.dumps(found))
"""


def hub_run(endpoint: str, home: Path, *sources: str) -> tuple[list[dict], str]:
    """What each source gives in one fresh process, and what the process printed to its standard error."""
    result = run_python(HUB_RUN, *sources, HF_ENDPOINT=endpoint, HF_HOME=str(home), NO_PROXY="127.0.0.1",
                        no_proxy="127.0.0.1", HF_HUB_OFFLINE="0", HF_HUB_DISABLE_TELEMETRY="1")
    assert result.returncode == 0, result.stderr
    found = [json.loads(line[2:]) for line in result.stdout.splitlines() if line.startswith("@@")]
    return found, result.stderr


@pytest.mark.timing
def test_hub_downloads_with_the_real_client_and_then_works_offline(tmp_path, pipeline):
    with serve(WEIGHTS, "someone/shapes") as (endpoint, log):
        (got, unknown), shown = hub_run(endpoint, tmp_path, "hub:someone/shapes", "hub:someone/else")
    assert got == {"class": "StableDiffusionPipeline",
                   "sum": pytest.approx(pipeline.unet.conv_in.weight.sum().item())}
    assert any(line.startswith("GET /someone/shapes/resolve/")
               and line.endswith("unet/diffusion_pytorch_model.safetensors") for line in log)
    assert "%|" in shown  # progress bars
    assert "torchvision" not in shown
    assert "does not give 'someone/else'" in unknown["error"]
    # Now the server is gone.
    (cached, absent), _ = hub_run(endpoint, tmp_path, "hub:someone/shapes", "hub")
    assert cached == got
    assert "cannot be reached" in absent["error"]
    assert "'bundled'" in absent["error"] and "'full'" in absent["error"]
    assert absent["seconds"] < 20
