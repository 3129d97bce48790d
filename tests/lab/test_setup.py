"""The setup cell: one printed line, no noise, and errors that say what to write."""

import logging
import os
import subprocess
import sys

import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from inferlab.lab import setup
from inferlab.lab.elapsed import show_elapsed
from inferlab.lab.identity import variant
from tests import ROOT


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
        setup.start("lab02-denoising-step", "Ada", "bundled", missing)
    assert setup.start("lab02-denoising-step", "Ada").device in ("cpu", "cuda")


def test_start_seeds_the_default_generators():
    setup.start("lab02-denoising-step", "Ada", "bundled", "cpu", 7)
    first = torch.rand(3)
    setup.start("lab02-denoising-step", "Ada", "bundled", "cpu", 7)
    assert torch.equal(first, torch.rand(3))


@pytest.mark.slow
def test_importing_a_pipeline_after_start_prints_nothing():
    code = (
        "from inferlab.lab import start; start('lab02-denoising-step', 'Ada', 'bundled', 'cpu', 7)\n"
        "from diffusers import StableDiffusionPipeline, DDIMScheduler\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stderr == ""
    assert run.stdout.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize(("first", "setting", "told"), [
    ("torch", None, True), ("inferlab", None, False), ("torch", "PASSIVE", False), ("torch", "ACTIVE", False),
])
def test_where_torch_came_first_a_line_says_what_to_do(first, setting, told):
    code = f"import {first}, inferlab.lab as lab; lab.start('lab02-x', 'Ada', 'bundled', 'cpu', 7)"
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    environment |= {"OMP_WAIT_POLICY": setting} if setting else {}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                         env=environment)
    assert run.stdout.count("\n") == 1 + told
    assert ("restart the kernel" in run.stdout) == told


@pytest.mark.slow
@pytest.mark.parametrize("started", [
    ["-c", "import inferlab.lab, torch"],
    ["-c", "import inferlab.cli, torch"],
    ["-m", "inferlab.lab.kits.parallel.rank_process", "no-such-folder"],
    ["-c", "from inferlab.grading.sandbox.warm import warm; warm()"],
    ["-m", "ci.bench_trace", "--help"],
    ["-m", "ci.gpu", "--help"],
    ["-m", "training.pictures", "--help"],
], ids=["notebook", "command line", "ranks", "sandbox", "benchmark", "GPU benchmark", "training"])
def test_idle_threads_wait_quietly_wherever_torch_is_loaded(started):
    """OpenMP says itself how often an idle thread looks for work before it sleeps; it names the policy
    PASSIVE even where none was set."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OMP_")}
    run = subprocess.run([sys.executable, *started], capture_output=True, text=True, check=False,
                         cwd=ROOT, env=environment | {"OMP_DISPLAY_ENV": "VERBOSE"})
    assert "GOMP_SPINCOUNT = '0'" in run.stderr


def run_cells(*cells):
    """The outputs of each cell, run in one real kernel."""
    notebook = new_notebook(cells=[new_code_cell(cell) for cell in cells])
    NotebookClient(notebook, timeout=300, allow_errors=True, extra_arguments=["--log-level=40"]).execute()
    return [cell.outputs for cell in notebook.cells]


def test_a_slow_cell_says_for_how_long_it_ran_and_a_quick_one_nothing():
    watch = ("from inferlab.lab import elapsed\nimport time\nelapsed.PATIENCE, elapsed.INTERVAL = 0.2, 0.1\n"
             "elapsed.show_elapsed(get_ipython()); elapsed.show_elapsed(get_ipython())")
    _, quick, slow, failing, nested, captured = run_cells(
        watch, "1 + 1", "time.sleep(0.7); 'done'", "time.sleep(0.7); 1 / 0",
        "get_ipython().run_cell('time.sleep(0.4)'); time.sleep(0.3)",
        "%%capture kept\nprint('x'); time.sleep(0.7)")
    assert [output.output_type for output in quick] == ["execute_result"]
    assert [output.output_type for output in slow] == ["display_data", "execute_result"]
    assert [output.output_type for output in failing] == ["display_data", "error"]
    for outputs in (slow, failing, nested, captured):
        assert outputs[0].data["text/plain"] == "ran for 1 s"
    assert len(nested) == len(captured) == 1


def test_outside_a_kernel_nothing_is_watched():
    shell = InteractiveShell()
    show_elapsed(shell)
    assert not shell.events.callbacks["pre_run_cell"]


def test_only_the_import_notice_is_dropped(caplog):
    setup.hide_notices()
    log = logging.getLogger("transformers.utils.import_utils")
    log.addHandler(caplog.handler)
    try:
        with caplog.at_level(logging.WARNING, logger=log.name):  # whatever level another test left
            log.warning("`CLIPImageProcessor` requires torchvision (not installed); falling back to "
                        "`CLIPImageProcessorPil`")
            log.warning("your weights are corrupt")
    finally:
        log.removeHandler(caplog.handler)
    assert set(caplog.messages) == {"your weights are corrupt"}


def test_the_package_is_cheap_to_import():
    code = "import sys, inferlab.lab; print('torch' in sys.modules, 'diffusers' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "False"]
