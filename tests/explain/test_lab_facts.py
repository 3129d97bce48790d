"""The facts kept beside the answers of a lab are what a trace of the lab's run says today."""

import json
from pathlib import Path

import pytest
from labrubrics import rubrics

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


@pytest.mark.parametrize("lab", ["lab15-paged-attention", "lab16-speculative-decoding", "lab17-quantization"])
def test_the_rubrics_of_a_lab_are_graded_by_the_kept_facts(lab):
    (name, kept), = json.loads((SETS / lab / "facts.json").read_text(encoding="utf-8")).items()
    given = [rubric.example_facts for rubric in rubrics(lab)[name] if rubric.example_facts]
    assert [json.loads(json.dumps(facts)) for facts in given] == [kept]


OWN = {"lab12-prefill-decode": "phases-axis", "lab13-kv-cache": "cache-axis", "lab14-batching": "batch-words-axis"}


@pytest.mark.parametrize("lab", OWN)
def test_the_kept_facts_are_those_that_the_labs_check_computes(lab):
    import ast

    cell = next(c for c in (SETS.parents[1] / "notebooks" / lab / f"{lab}.py").read_text(encoding="utf-8").split("\n# %%") if f'check="{OWN[lab]}"' in c)
    body = cell.partition("\n")[2]
    function = next(node for node in ast.parse(body).body if isinstance(node, ast.FunctionDef) and node.name == "facts")
    namespace: dict = {"reference": lambda f: f}
    exec(ast.unparse(function), namespace)  # noqa: S102 - the lab's own text
    now = namespace["facts"]()
    (_, kept), = json.loads((SETS / lab / "facts.json").read_text(encoding="utf-8")).items()
    assert {key: now[key] for key in kept} == {key: tuple(value) if isinstance(value, list) else value for key, value in kept.items()}
