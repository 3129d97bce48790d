"""The language models' training, run at a tiny size: it finishes, goes on where it was stopped, and measures
itself."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from transformers import AutoModelForCausalLM, AutoTokenizer

ROOT = Path(__file__).parent.parent.parent


def run(folder: Path, *arguments: str) -> str:
    """Run the training command on the CPU with tiny models; its standard output."""
    command = [
        sys.executable, "-m", "training.language", *arguments, "--out", str(folder), "--build",
        str(folder / "build"),
        "--device", "cpu", "--batch", "2", "--pack", "128", "--workers", "1", "--log", "2", "--save", "2",
    ]
    done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=250,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_the_command_trains_goes_on_and_measures(tmp_path):
    run(tmp_path, "tokenizer")
    run(tmp_path, "train", "--model", "tiny", "--steps", "2")
    # as if it had been stopped after the checkpoint of step 2
    (tmp_path / "tiny" / "model.safetensors").unlink()
    printed = run(tmp_path, "all", "--target", "tiny", "--draft", "tiny", "--steps", "4", "--questions", "8")
    assert "going on at step 2" in printed and "step 4/4" in printed

    model = AutoModelForCausalLM.from_pretrained(tmp_path / "tiny")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "tokenizer")
    assert model.config.vocab_size == len(tokenizer) <= 1024
    assert model.config.num_key_value_heads < model.config.num_attention_heads
    figures = json.loads((tmp_path / "build" / "figures.json").read_text())["tiny"]
    assert figures["perplexity"] > 100, "hardly trained"
    assert figures["acceptance"]["mean"]["1.0"] > 0.999, "a model accepts all of its own drafts"


def test_the_same_step_has_the_same_batch_however_training_was_interrupted(tmp_path):
    from training.language_data import batches, make_tokenizer

    make_tokenizer(tmp_path, n_documents=50)
    file = tmp_path / "tokenizer.json"
    whole = list(batches(file, tmp_path / "one", batch=320, pack=96, first_step=0, steps=4, workers=1))
    rest = list(batches(file, tmp_path / "two", batch=320, pack=96, first_step=2, steps=4, workers=1))
    assert np.array_equal(whole[2], rest[0]) and np.array_equal(whole[3], rest[1])
    assert not np.array_equal(whole[0], whole[3])
    assert all((rows[:, 0] == 1).all() for rows in whole), "every row begins with <s>"
