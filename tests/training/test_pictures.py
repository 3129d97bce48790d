"""The very command that made the picture model runs at a tiny size, stops, goes on, and leaves a folder that
loads."""

import json

import pytest
import torch

from inferlab.models.pictures import open_folder
from training import evaluate, pictures
from training.architecture import make_scheduler
from training.denoiser import loss_weights

TINY = ["--device", "cpu", "--size", "tiny", "--vae-steps", "2", "--vae-batch", "2", "--steps", "3",
        "--batch", "4",
        "--pool", "8", "--fresh", "2"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished tiny run that was stopped at once, before its first step, and then given again."""
    out = tmp_path_factory.mktemp("run")
    command = ["--out", str(out), *TINY, "--no-figures"]
    assert pictures.main([*command, "--minutes", "0"]) == 0
    stopped = torch.load(out / "vae.pt", weights_only=True)["step"], (out / "pictures").exists()
    assert pictures.main(command) == 0
    return out, stopped


def test_a_run_that_was_stopped_goes_on(run):
    out, stopped = run
    assert stopped == (0, False)
    assert torch.load(out / "vae.pt", weights_only=True)["step"] == 2
    assert torch.load(out / "checkpoint.pt", weights_only=True)["step"] == 3


def test_what_it_leaves_is_a_pipeline(run):
    pipeline = open_folder(run[0] / "pictures", "cpu", torch.float32)
    pipeline.set_progress_bar_config(disable=True)
    shown = pipeline("a red circle", num_inference_steps=2, output_type="pt").images
    assert shown.shape == (1, 3, 128, 128)
    assert torch.isfinite(shown).all()


def test_its_figures_can_be_measured_and_printed(run, tmp_path):
    out = tmp_path / "figures.json"
    evaluate.main([str(run[0] / "pictures"), "--device", "cpu", "--prompts", "2", "--only", "DDIM 2 steps",
                   "--json", str(out)])
    row, = json.loads(out.read_text())
    assert row["setting"] == "DDIM 2 steps, guidance 4"
    assert 0 <= row["things_1"] <= 1 and 0 <= row["both"] <= 1
    assert "| DDIM 2 steps, guidance 4 |" in evaluate.table([row])


def test_the_same_seed_trains_the_same_model(run, tmp_path):
    assert pictures.main(["--out", str(tmp_path), *TINY, "--no-figures"]) == 0
    once, again = (torch.load(folder / "vae.pt", weights_only=True)["model"] for folder in (run[0], tmp_path))
    assert all(torch.equal(once[name], again[name]) for name in once)


def test_held_out_captions_are_all_different_and_fixed():
    one, two = evaluate.held_out_captions(200, 1), evaluate.held_out_captions(200, 2)
    assert len(set(one)) == len(set(two)) == 200
    assert one == evaluate.held_out_captions(200, 1)
    assert not any(relation in caption for caption in one for relation in (" left of ", " above "))


def test_the_start_noise_cannot_show_the_background():
    alphas = make_scheduler().alphas_cumprod
    assert alphas[-1] < 1e-4
    weights = loss_weights(alphas)
    assert weights.min() < 0.01 and weights.max() == 20
