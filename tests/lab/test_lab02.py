"""What holds for lab 02 as a text, before any of it runs: names, notes, numbers, points."""

import ast
import re
from itertools import pairwise

import pytest
import torch
from diffusers import DDIMScheduler

from inferlab.grading.authoring.hidden_tests import read_lesson
from inferlab.grading.authoring.lab_rules import python_of
from inferlab.models import load_pipeline
from tests import ROOT
from tests.lab.labtexts import sources_shown

TEXT = ROOT / "notebooks/lab02-denoising-step/lab02-denoising-step.py"
PROMPT, SEED = "a large blue ring left of a small yellow square on a white background", 7


@pytest.fixture(scope="module")
def blocks():
    return read_lesson(TEXT)


def names_bound(source: str) -> set[str]:
    """Names that a cell binds in the kernel, imports left out."""
    found = set()
    for node in ast.walk(ast.parse(python_of(source))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
    tree = ast.parse(python_of(source))
    for statement in tree.body:
        inner = [statement]
        while inner:
            node = inner.pop()
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda):
                continue
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            inner.extend(ast.iter_child_nodes(node))
    return found


def test_a_check_cell_overwrites_nothing_that_the_lab_still_uses(blocks):
    body, checks = set(), {}
    for block in blocks:
        if block.cell.cell_type == "code":
            if "check" in block.cell.metadata:
                checks[block.cell.metadata["check"]] = names_bound(block.cell.source)
            else:
                body |= names_bound(block.cell.source)
    shared = {"_", "t", "name", "got", "want", "a", "words"}
    for check, names in checks.items():
        assert not names & body - shared, f"the check {check} overwrites {names & body - shared}"


def test_practice_is_at_most_forty_percent_of_the_points(blocks):
    points = {b.cell.metadata["check"]: b.cell.metadata["points"] for b in blocks
              if "check" in b.cell.metadata}
    assert sum(points.values()) == 19
    assert points["ddim-step"] == 3 <= 0.4 * 19


def test_each_exercise_says_its_difficulty_minutes_and_points_as_its_cells_do(blocks):
    points: dict[str, float] = {}
    for block in blocks:
        meta = block.cell.metadata
        if "check" in meta:
            owner = meta.get("of", meta["check"])
            points[owner] = points.get(owner, 0) + meta["points"]
    prose = "\n".join(b.cell.source for b in blocks if b.cell.cell_type == "markdown")
    said = re.findall(r"\*difficulty (\d) of 3 · (\d+) minutes · (\d+) points\.?\*", prose)
    declared = [
        (str(m["difficulty"]), str(m["minutes"]), str(points[m.get("exercise") or m["explain"]]))
        for m in (b.cell.metadata for b in blocks) if "exercise" in m or "explain" in m
    ]
    assert said == declared


def test_every_note_on_the_installed_source_finds_its_line():
    [(_, notes, lines)] = sources_shown(TEXT.stem, DDIMScheduler=DDIMScheduler)
    assert notes == 9 and lines <= 40


def test_what_learners_get_names_no_mistake_and_shows_no_rubric(blocks):
    from inferlab.grading.stubs import clear_code, without_hidden_tests

    for block in blocks:
        meta = block.cell.metadata
        if "check" in meta:
            shown = without_hidden_tests(block.cell.source)
            assert ".mistake(" not in shown and "wanted" not in shown and "typed" not in shown, meta["check"]
            assert "check.part(" in shown and re.search(r"check\.score\((later=\d+)?\)$", shown)
        elif "exercise" in meta:
            assert "raise NotImplementedError()" in clear_code(block.cell.source)


@pytest.mark.parametrize(("scale", "rises"), [(4.0, [601]), (2.0, [])])
def test_guidance_makes_the_error_of_a_guess_rise_where_the_lab_says(blocks, scale, rises):
    pipe = load_pipeline("bundled", device="cpu")
    pipe.set_progress_bar_config(disable=True)
    pipe.scheduler = DDIMScheduler.from_config(pipe.scheduler.config)
    guesses, step = {}, pipe.scheduler.step

    def noting(prediction, t, latents, **more):
        out = step(prediction, t, latents, return_dict=True)
        guesses[int(t)] = out.pred_original_sample
        return (out.prev_sample,)

    pipe.scheduler.step = noting
    side = pipe.unet.config.sample_size
    noise = torch.randn(1, 4, side, side, generator=torch.Generator().manual_seed(SEED))
    end = pipe(PROMPT, num_inference_steps=10, guidance_scale=scale, latents=noise,
               output_type="latent").images
    error = {t: float((guess - end).norm() / end.norm()) for t, guess in guesses.items()}
    times = list(error)
    assert [t for before, t in pairwise(times) if error[t] > error[before]] == rises
    assert any(PROMPT in block.text for block in blocks)
