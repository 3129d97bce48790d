"""Lab 06: what it says of folders, sharing and mapped files is so, and each variant has its one line."""

from functools import partial

import pytest
import torch
from diffusers import StableDiffusionImg2ImgPipeline, StableDiffusionPipeline, UNet2DConditionModel

from inferlab.lab.cards import load_cards
from inferlab.lab.kits.memory.peaks import measure
from inferlab.lab.kits.pipelines.holdings import held
from inferlab.lab.kits.pipelines.misconfigured import (
    HARMLESS,
    MISCONFIGURED,
    config_differences,
    entry_of_variant,
    misconfigured,
    with_entries,
)
from inferlab.models.pictures import WEIGHTS, open_folder
from inferlab.trace import trace
from tests.lab.labtexts import (
    cell_of,
    efforts_declared,
    efforts_said,
    overwritten_by_checks,
    points_of,
    prose_of,
    sources_shown,
)

LAB = "lab06-components"
cell = partial(cell_of, LAB)
WATCHED = ["encode_prompt", "unet", "scheduler.step", "vae.decode"]


def run(folder):
    """A short traced run of the pipeline in a folder that kept its values, and the picture."""
    pipe = open_folder(folder, "cpu", torch.float32)
    pipe.set_progress_bar_config(disable=True)
    with torch.no_grad(), trace(pipe, keep=WATCHED) as t:
        picture = pipe("a red circle", num_inference_steps=2, guidance_scale=4.0, height=64, width=64,
                       generator=torch.Generator().manual_seed(0)).images[0]
    return t, picture


@pytest.fixture(scope="module")
def sound():
    return run(WEIGHTS)


@pytest.fixture(scope="module")
def lesson():
    """The names of the cell that compares the values of two traces."""
    nothing = type("T", (), {"boundaries": []})
    names: dict = {"torch": torch, "WATCHED": WATCHED, "healthy": nothing, "sick": nothing}
    exec(cell(begins="def kept(t)"), names)
    return names


@pytest.mark.parametrize("number", range(9))
def test_each_variant_begins_at_its_boundary_and_its_one_line_repairs_it(number, sound, lesson, tmp_path):
    healthy, right = sound
    folder, entry = misconfigured(tmp_path, number), entry_of_variant(number)
    sick, picture = run(folder)
    assert picture != right
    kept, values = lesson["kept"], lesson["values"]
    first = next((good.name, side) for good, bad in zip(kept(healthy), kept(sick), strict=True)
                 for side in ("inputs", "outputs")
                 if not all(map(torch.equal, values(good, side), values(bad, side))))
    assert first == MISCONFIGURED[entry][1:]
    assert not healthy.diff(sick, slower=float("inf")).rows()
    differing = {(file, key): bad for file, key, _, bad in config_differences(WEIGHTS, folder)}
    assert differing == {**HARMLESS, entry: MISCONFIGURED[entry][0]}


def test_the_eight_other_lines_do_no_harm(sound, tmp_path):
    assert run(with_entries(tmp_path, HARMLESS))[1] == sound[1]


def test_folders_are_written_for_entries_and_variants_that_exist(tmp_path):
    with pytest.raises(KeyError, match="no entry 'drop'"):
        with_entries(tmp_path, {("unet/config.json", "drop"): 0.1})
    with pytest.raises(ValueError, match="0 to 8, not 9"):
        misconfigured(tmp_path, 9)


def test_from_pipe_shares_and_its_cast_reaches_the_old_pipeline():
    old = StableDiffusionPipeline.from_pretrained(WEIGHTS, dtype=torch.float16)
    one = sum(held(old).values())
    new = StableDiffusionImg2ImgPipeline.from_pipe(old, dtype=torch.float16)
    assert new.unet is old.unet and sum(held(old, new).values()) == one
    StableDiffusionImg2ImgPipeline.from_pipe(old)
    assert old.unet.dtype == torch.float32 and sum(held(old, new).values()) == 2 * one


def test_weights_in_the_files_dtype_lie_in_the_file_and_cast_ones_do_not():
    for dtype, mapped in ((torch.float16, True), (torch.float32, False)):
        def load(dtype=dtype):
            return UNet2DConditionModel.from_pretrained(WEIGHTS / "unet", torch_dtype=dtype)

        opened = measure(load)
        size = sum(p.numel() * p.element_size() for p in opened["value"].parameters())
        assert (opened["peak"] >= size) is not mapped, "a load that keeps the map allocates no weights"


def test_a_check_cell_overwrites_nothing_that_the_lab_still_uses():
    imported = {"torch", "json", "Check", "StableDiffusionPipeline", "StableDiffusionImg2ImgPipeline",
                "DPMSolverMultistepScheduler", "MISCONFIGURED", "Words"}
    shared = imported | {"_", "words"}
    assert not overwritten_by_checks(LAB, shared)


def test_practice_is_at_most_forty_percent_and_each_exercise_says_its_points():
    points = points_of(LAB)
    assert sum(points.values()) == 12 and points["header"] == 3 <= 0.4 * 12
    prose = prose_of(LAB)
    assert "**Points** 12, of which 3 are practice" in " ".join(prose.split())
    assert efforts_said(LAB) == efforts_declared(LAB)


def test_every_note_on_the_installed_source_finds_its_line():
    assert [notes for _, notes, _ in sources_shown(LAB)] == [4, 3]


def test_four_cards_on_diffusion_are_this_labs():
    assert sum(card.see == LAB for card in load_cards("diffusion").cards) == 4
