"""Lab 21: one request of each hour is poisoned, chosen steps are skipped, and what its text says is so."""


import pytest
import torch
from diffusers import FirstBlockCacheConfig, UNet2DConditionModel

from inferlab.lab import setup
from inferlab.lab.cards import load_cards
from inferlab.lab.identity import variant
from inferlab.lab.kits.parallel.ranks import start_context_ranks
from inferlab.lab.kits.pipelines.step_cache import (
    first_block_cache,
    held_bytes,
    leader,
    operation_shares,
    skipping,
    stopped_hour,
)
from inferlab.models import load_pipeline
from inferlab.trace import trace
from tests.lab.labtexts import (
    assert_no_mistake_is_named,
    blocks_of,
    cell_of,
    efforts_declared,
    efforts_said,
    sources_shown,
)

LAB = "lab21-skipping-work"
SECOND = "transformer.transformer_blocks.1.attn"


@pytest.fixture(scope="module")
def pipe():
    pipe = load_pipeline("bundled", "cpu", family="flux")
    pipe.set_progress_bar_config(disable=True)
    return pipe


def whole_steps(pipe, steps=10, prompt="a red circle left of a blue square"):
    """The steps in which the second block ran, and the last latents."""
    with torch.no_grad(), trace(pipe, depth=SECOND) as run:
        latents = pipe(prompt, num_inference_steps=steps, max_sequence_length=64, output_type="latent",
                       generator=torch.Generator().manual_seed(7)).images
    return [b.step for b in run.find(SECOND)], latents


@pytest.mark.parametrize("number", range(8))
def test_in_every_hour_just_the_request_after_the_one_that_is_stopped_is_poisoned(number):
    learner = next(name for name in (f"learner {i}" for i in range(400)) if variant(name, LAB, 8) == number)
    lab = setup.Lab(LAB, learner, "bundled", "cpu", 0)
    names: dict = {"lab": lab, "load_pipeline": load_pipeline, "FirstBlockCacheConfig": FirstBlockCacheConfig}
    exec(cell_of(LAB, exercise="memory"), names)
    with torch.no_grad():
        begins = "from inferlab.lab.kits.pipelines.step_cache import SERVICE_THRESHOLD"
        exec(cell_of(LAB, begins=begins), names)
    asked = stopped_hour(number)
    stopped = next(i for i, (_, after) in enumerate(asked) if after == 1)
    assert names["foreign"](names["log"]) == [stopped + 1]
    assert [entry["steps"] for entry in names["log"].values()] == [after or 10 for _, after in asked]


def test_the_hours_differ():
    assert len({str(stopped_hour(number)) for number in range(8)}) == 8
    with pytest.raises(ValueError, match="0 to 7, not 8"):
        stopped_hour(8)


def test_just_the_chosen_steps_are_skipped_in_every_run_and_afterwards_none(pipe):
    with skipping(pipe.transformer, {3, 4}):
        assert whole_steps(pipe, 5)[0] == whole_steps(pipe, 5)[0] == [1, 2, 5]
    assert whole_steps(pipe, 5)[0] == [1, 2, 3, 4, 5] and leader(pipe.transformer) is None
    with pytest.raises(ValueError, match="nothing to reuse"), skipping(pipe.transformer, {1}):
        pass


def test_a_step_in_the_middle_costs_least_and_the_last_one_more(pipe):
    _, full = whole_steps(pipe)
    error = {}
    for step in (2, 3, 6, 7, 10):
        with skipping(pipe.transformer, {step}):
            error[step] = float((whole_steps(pipe)[1] - full).norm())
    assert max(error[6], error[7]) < min(error[2], error[3], error[10])


def test_the_explained_run_has_seven_whole_steps_and_another_prompt_other_ones(pipe):
    pipe.transformer.enable_cache(FirstBlockCacheConfig(threshold=0.2))
    try:
        mine, other = whole_steps(pipe)[0], whole_steps(pipe, prompt="a green triangle")[0]
    finally:
        pipe.transformer.disable_cache()
    assert len(mine) == 7 and mine != other


def test_after_a_stopped_run_another_size_raises_as_the_text_says(pipe):
    def stop(pipeline, step, timestep, inputs):
        raise KeyboardInterrupt

    pipe.transformer.enable_cache(FirstBlockCacheConfig(threshold=0.2))
    try:
        with torch.no_grad(), pytest.raises(KeyboardInterrupt):
            pipe("a ring", num_inference_steps=2, max_sequence_length=16, callback_on_step_end=stop)
        with torch.no_grad(), pytest.raises(RuntimeError, match="must match the size"):
            pipe("a ring", num_inference_steps=2, max_sequence_length=16, height=64, width=64)
    finally:
        pipe.transformer.disable_cache()


def test_fewer_steps_and_the_cache_save_operations_and_text_beforehand_only_moves_them(pipe):
    asked = {"max_sequence_length": 64, "output_type": "latent"}

    def draw(prompt, steps=10, **more):
        return pipe(prompt, num_inference_steps=steps, generator=torch.Generator().manual_seed(7), **asked,
                    **more)

    with torch.no_grad():
        shares = operation_shares(pipe, draw, "a red ring", 0.2)
    (cached, _), (fewer, _), (inside, elsewhere) = shares.values()
    assert cached < 1 and fewer < 1 and inside < 1
    assert inside + elsewhere == pytest.approx(1, abs=1e-9)


def test_the_cache_is_off_after_its_block_and_its_bytes_are_those_of_its_tensors(pipe):
    """Three times the picture's tokens and twice the text's, 128 numbers of 4 bytes each."""
    seen = []
    with first_block_cache(pipe.transformer, 0.2) as hook:
        assert hook is leader(pipe.transformer) and held_bytes(pipe.transformer) == 0
        with torch.no_grad():
            pipe("a ring", num_inference_steps=2, max_sequence_length=16, height=64, width=64,
                 callback_on_step_end=lambda *_: seen.append(held_bytes(pipe.transformer)) or {})
    assert leader(pipe.transformer) is None and seen == [(3 * 16 + 2 * 16) * 128 * 4] * 2


@pytest.mark.slow
def test_two_processes_draw_one_picture_and_exchange_what_the_formula_says():
    names: dict = {}
    exec(cell_of(LAB, begins="def put_in("), names)
    reports = start_context_ranks("a ring", steps=1, text_tokens=32).results()
    for rank in (0, 1):
        ulysses, ring = reports["ulysses"][rank], reports["ring"][rank]
        assert ulysses["refused"] == ring["refused"] == "ZeroDivisionError: integer modulo by zero"
        assert ulysses["apart"] < 1e-4 and not ulysses["failed"]
        assert ulysses["attention"] == {"hidden_states": [1, 32, 128], "encoder_hidden_states": [1, 16, 128]}
        exchanges = [line["bytes"] for line in ulysses["log"] if line["op"] == "all_to_all"]
        assert sum(exchanges) == names["put_in"](96, 128, 8, 1, 2) and len(exchanges) == 8 * 4
        assert ulysses["log"][-1]["op"] == "all_gather"
        assert [line["op"] for line in ring["log"]] == ["all_gather"], "it gathers, and then cannot go on"
        assert 2 * ring["log"][0]["bytes"] == names["gathered"](96, 128)
        assert ring["apart"] is None and "return_lse" in ring["failed"]
    with pytest.raises(ValueError, match="ulysses, ring on 2 or 4 ranks"):
        start_context_ranks("a ring", ranks=3)


def test_the_unet_has_no_cache_to_enable():
    assert not hasattr(UNet2DConditionModel, "enable_cache")


def test_practice_is_at_most_forty_percent_of_the_points_and_the_title_says_the_sum():
    points = {b.cell.metadata["check"]: b.cell.metadata["points"] for b in blocks_of(LAB)
              if "check" in b.cell.metadata}
    assert (sum(points.values()), points["cached-step"]) == (16, 4)
    title = next(b.cell.source for b in blocks_of(LAB) if b.cell.source.startswith("# Lab 21"))
    assert "**Points** 16, of which 4 are practice" in title


def test_each_exercise_says_its_difficulty_minutes_and_points_as_its_cells_do():
    assert efforts_said(LAB) == efforts_declared(LAB)


def test_every_note_on_the_installed_source_finds_its_line():
    views = sources_shown(LAB)
    shown = [b.cell.source for b in blocks_of(LAB) if "show_source(" in b.cell.source]
    assert len(views) == len(shown) == 4
    for source, (_, notes, lines) in zip(shown, views, strict=True):
        assert notes == source.count('":\n') + source.count('": "')
        assert lines <= 40


def test_what_learners_get_names_no_mistake():
    assert_no_mistake_is_named(LAB)


def test_cards_on_diffusion_name_this_lab():
    assert sum(card.see == LAB for card in load_cards("diffusion").cards) == 3
