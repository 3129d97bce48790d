"""The setup cell: one printed line, no noise, and errors that say what to write."""

import logging
import subprocess
import sys

import pytest
import torch

from inferlab.lab import setup
from inferlab.lab.identity import variant


@pytest.fixture(autouse=True)
def _no_lab_left_behind(monkeypatch):
    monkeypatch.setattr(setup, "_current", None)


def test_start_prints_one_line_and_remembers_the_lab(capsys):
    lab = setup.start("lab02-denoising-step", "Ada Lovelace", "bundled", "cpu", 7)
    printed = capsys.readouterr()
    assert printed.out.count("\n") == 1 and printed.err == ""
    for said in ("lab02-denoising-step", "Ada Lovelace", "bundled", "cpu", "seed 7", "torch", "diffusers"):
        assert said in printed.out
    assert setup.current() is lab
    assert (lab.device, lab.seed, lab.model) == ("cpu", 7, "bundled")
    assert lab.variant(6) == variant("ada lovelace", "lab02-denoising-step", 6)


def test_an_empty_learner_may_explore_and_is_asked_for_a_name(capsys):
    setup.start("lab02-denoising-step", "", "bundled", "cpu", 7)
    assert "LEARNER is empty" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("Lab2",), "labNN-topic"),
        (("lab02-denoising-step", "Ada", "small"), "bundled, full, hub"),
        (("lab02-denoising-step", "Ada", "bundled", "gpu"), "auto, cpu, cuda"),
        (("lab02-denoising-step", "Ada", "bundled", "cpu", -1), "whole number"),
        (("lab02-denoising-step", "Ada", "bundled", "cpu", 1.5), "whole number"),
    ],
)
def test_a_bad_parameter_is_refused_with_what_to_write(arguments, said):
    with pytest.raises(ValueError, match=said):
        setup.start(*arguments)


def test_a_gpu_that_is_not_there_is_an_error_and_auto_is_not():
    missing = f"cuda:{torch.cuda.device_count()}"
    with pytest.raises(ValueError, match="CUDA device"):
        setup.resolve_device(missing)
    assert setup.resolve_device("auto") in ("cpu", "cuda")


def test_start_seeds_the_default_generators():
    setup.start("lab02-denoising-step", "Ada", "bundled", "cpu", 7)
    first = torch.rand(3)
    setup.start("lab02-denoising-step", "Ada", "bundled", "cpu", 7)
    assert torch.equal(first, torch.rand(3))


def test_importing_a_pipeline_after_start_prints_nothing():
    code = (
        "from inferlab.lab import start; start('lab02-denoising-step', 'Ada', 'bundled', 'cpu', 7)\n"
        "from diffusers import StableDiffusionPipeline, DDIMScheduler\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stderr == ""
    assert run.stdout.count("\n") == 1


def test_only_the_import_notice_is_dropped(caplog):
    setup.quiet()
    log = logging.getLogger("transformers.utils.import_utils")
    log.addHandler(caplog.handler)
    try:
        with caplog.at_level(logging.WARNING, logger=log.name):  # whatever level another test left
            log.warning("`CLIPImageProcessor` requires torchvision (not installed); falling back to `CLIPImageProcessorPil`")
            log.warning("your weights are corrupt")
    finally:
        log.removeHandler(caplog.handler)
    assert set(caplog.messages) == {"your weights are corrupt"}


def test_the_package_is_cheap_to_import():
    code = "import sys, inferlab.lab; print('torch' in sys.modules, 'diffusers' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "False"]
