"""Lab 11: every fault shows at the boundary that its hidden test names, the pictures of a trace say what the
rows say."""

from functools import partial

import pytest
import torch

from inferlab.lab.kits.pipelines.damage import FAULTS, damaged
from inferlab.lab.kits.pipelines.stages import (
    component_edges,
    component_graph,
    stage_of,
    stage_timeline,
    stage_times,
)
from inferlab.models import load_pipeline
from inferlab.trace import trace
from tests.lab.labtexts import cell_of

LAB = "lab11-end-to-end-trace"
source = partial(cell_of, LAB)


def run(pipe):
    """A traced run as the lab makes it, smaller: two-step loops cannot tell "early" from "sparse", so four
    steps."""
    with trace(pipe) as t, torch.no_grad():
        picture = pipe("a red circle", num_inference_steps=4, guidance_scale=4.0, height=128, width=128,
                       generator=torch.Generator().manual_seed(0)).images[0]
    return t, picture


@pytest.fixture(scope="module")
def pipe():
    pipe = load_pipeline("bundled", "cpu")
    pipe.set_progress_bar_config(disable=True)
    return pipe


@pytest.fixture(scope="module")
def healthy(pipe):
    return run(pipe)[0]


def truths() -> list:
    """The table of right diagnoses, out of the lab's hidden test."""
    text = source(check="diagnosis")
    table = text[text.index("TRUTH = ["):]
    namespace: dict = {}
    exec(table[: table.index("\n]") + 2], namespace)
    return namespace["TRUTH"]


@pytest.mark.parametrize("variant", range(len(FAULTS)))
def test_the_labs_own_solution_finds_every_fault_in_its_trace(variant, pipe, healthy):
    sick, picture = run(damaged(pipe, variant))
    assert min(picture.size) >= 64
    namespace = {"healthy": healthy, "sick": sick, "run": healthy}
    exec(source(begins="def first_tensor"), namespace)
    exec(source(exercise="diagnosis"), namespace)
    found = namespace["diagnose"]()
    kind, boundary, _, broken = truths()[variant]
    assert found == {"kind": kind, "boundary": boundary, "broken": broken}


def test_a_damaged_pipeline_leaves_the_healthy_one_alone(pipe, healthy):
    for variant in range(len(FAULTS)):
        damaged(pipe, variant)
    assert not [c for c in healthy.diff(run(pipe)[0], slower=float("inf"))]


def test_a_damaged_pipeline_needs_a_known_variant_and_full_precision(pipe):
    with pytest.raises(ValueError, match="0 to 8"):
        damaged(pipe, 9)
    with pytest.raises(ValueError, match="float32"):
        damaged(load_pipeline("bundled", "cpu", torch.bfloat16), 0)


def test_the_stages_of_a_run_add_up(healthy):
    rows = healthy.rows()
    direct = [row for row in rows if row["level"] == 1]
    assert {row["name"]: stage_of(row) for row in direct}["vae.decode"] == "decode"
    assert sum(stage_of(row) == "loop" for row in direct) == 16
    assert sum(stage_times(rows).values()) == pytest.approx(sum(row["ms"] or 0.0 for row in direct))
    assert [t.get_text() for t in stage_timeline({"one": rows},
                                                 title="t").axes[0].get_yticklabels()] == ["one"]
    with pytest.raises(ValueError, match="no boundary"):
        stage_times([])


def test_the_graph_has_an_arrow_for_each_hand_over(healthy):
    edges = component_edges(healthy.rows())
    assert edges["scheduler", "unet"] == ("(2, 4, 16, 16)", 4)
    assert edges["scheduler", "vae"] == ("(1, 4, 16, 16)", 1)
    shown = {text.get_text() for text in component_graph(healthy.rows(), title="t").axes[0].texts}
    assert {"unet", "vae", "(2, 4, 16, 16)  ×4"} <= shown
    with pytest.raises(ValueError, match="no component"):
        component_graph([], title="t")
