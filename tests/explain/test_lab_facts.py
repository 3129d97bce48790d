"""The facts kept beside the answers of a lab are what a trace of the lab's run says today."""

import json
from pathlib import Path

import pytest

SETS = Path(__file__).resolve().parents[1] / "explanations"
RUNS = {
    "lab02-denoising-step": ("step-in-words", {"num_inference_steps": 10, "guidance_scale": 4.0}),
    "lab04-scheduler-loop": ("the-loop", {"num_inference_steps": 4, "guidance_scale": 4.0, "output_type": "latent"}),
    "lab11-end-to-end-trace": ("whole-run", {"num_inference_steps": 4, "guidance_scale": 4.0}),
}
ASKED = ("unet.inputs.sample.shape", "scheduler.step.inputs.sample.shape", "unet.calls", "steps", "vae.decode.inputs.z.shape", "vae.decode.outputs.shape")


@pytest.fixture(scope="module")
def pipe():
    from inferlab.models import load_pipeline

    pipe = load_pipeline("bundled", "cpu")
    pipe.set_progress_bar_config(disable=True)
    return pipe


def test_the_kept_facts_of_a_tiled_decode_are_those_of_a_trace(pipe):
    import torch

    from inferlab.trace import trace

    kept = json.loads((SETS / "lab10-memory-optimization" / "facts.json").read_text(encoding="utf-8"))["tiling-in-words"]
    pipe.vae.enable_tiling()
    try:
        with trace(pipe.vae) as t:
            pipe.vae.decode(torch.zeros(2, 4, 32, 32))
    finally:
        pipe.vae.disable_tiling()
    now = t.facts()
    for key in ("decode.inputs.z.shape", "decoder.inputs.sample.shape", "decode.outputs.shape", "decoder.calls"):
        assert now[key] == (tuple(kept[key]) if isinstance(kept[key], list) else kept[key]), key


@pytest.mark.parametrize("lab", RUNS)
def test_the_kept_facts_are_those_of_a_trace(pipe, lab):
    from inferlab.trace import trace

    name, arguments = RUNS[lab]
    kept = json.loads((SETS / lab / "facts.json").read_text(encoding="utf-8"))[name]
    with trace(pipe) as t:
        pipe("a red circle", **arguments)
    now = t.facts()
    compared = [key for key in ASKED if key in kept]
    assert len(compared) >= 4
    for key in compared:
        assert now[key] == (tuple(kept[key]) if isinstance(kept[key], list) else kept[key]), key


def test_the_kept_facts_of_two_ranks_are_those_of_the_bundled_model():
    from inferlab.models.language import load_language_model

    kept = json.loads((SETS / "lab18-parallelism" / "facts.json").read_text(encoding="utf-8"))["two-ranks"]
    config = load_language_model("bundled", "cpu")[0].config
    heads, kv, width = config.num_attention_heads // 2, config.num_key_value_heads // 2, config.intermediate_size // 2
    assert kept == {"q": [1, 1, heads * config.head_dim], "whole": [1, 1, config.hidden_size], "gate": [1, 1, width], "k": [1, 1, kv * config.head_dim]}


def test_the_kept_facts_of_a_healthy_service_are_those_of_a_run():
    from inferlab.lab.service import serve
    from inferlab.models.language import load_language_model

    kept = json.loads((SETS / "lab19-slow-decode" / "facts.json").read_text(encoding="utf-8"))["slow-decode"]
    served = serve(*load_language_model("bundled", "cpu"), requests=4)
    shapes = [list(row["inputs"]["input_ids"]["shape"]) for row in served.trace.rows() if row["level"] == 0]
    steps = [row for row in served.rows if row["kind"] == "decode"]
    assert kept["four"] in shapes and kept["one"] in shapes
    assert {row["weight_bytes"] for row in steps} == {kept["weights"]}
