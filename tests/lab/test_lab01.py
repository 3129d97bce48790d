"""Lab 01: what its text says of schedules is so, its notes find their lines, its plot shows them all."""

from functools import partial

import pytest
import torch
from diffusers import DDPMScheduler, FlowMatchEulerDiscreteScheduler

from inferlab.lab.cards import load_cards
from inferlab.lab.kits.pipelines.noise_levels import levels_over_t
from tests.lab.labtexts import (
    cell_of,
    efforts_declared,
    efforts_said,
    overwritten_by_checks,
    points_of,
    prose_of,
    sources_shown,
)

LAB = "lab01-forward-noise"
cell = partial(cell_of, LAB)
STABLE = {"beta_schedule": "scaled_linear", "beta_start": 0.00085, "beta_end": 0.012}


@pytest.fixture(scope="module")
def solved():
    """The names that the lab's solutions define, and its schedules."""
    names: dict = {"torch": torch, "DDPMScheduler": DDPMScheduler}
    for exercise in ("levels", "training-pair"):
        exec(cell(exercise=exercise), names)
    for given in ("SCHEDULES = {", "def translate_to"):
        exec(cell(begins=given), names)
    return names


def test_a_check_cell_overwrites_nothing_that_the_lab_still_uses():
    imported = {"torch", "Check", "DDPMScheduler", "FlowMatchEulerDiscreteScheduler", "Words"}
    shared = imported | {"_", "t", "words"}
    assert not overwritten_by_checks(LAB, shared)


def test_practice_is_at_most_forty_percent_and_each_exercise_says_its_points():
    points = points_of(LAB)
    assert sum(points.values()) == 12 and points["levels"] == 3 <= 0.4 * 12
    prose = prose_of(LAB)
    assert "**Points** 12, of which 3 are practice" in prose
    assert efforts_said(LAB) == efforts_declared(LAB)


def test_every_note_on_the_installed_source_finds_its_line():
    views = sources_shown(LAB, DDPMScheduler=DDPMScheduler,
                          FlowMatchEulerDiscreteScheduler=FlowMatchEulerDiscreteScheduler)
    assert [notes for _, notes, _ in views] == [4, 2]


def test_the_same_t_differs_more_than_tenfold_between_schedules(solved):
    ratios = [solved["snr"](table)[500] for table in solved["all_tables"]().values()]
    assert max(ratios) > 10 * min(ratios)


def test_of_the_labs_schedules_only_the_bent_one_ends_at_nothing(solved):
    left = {name: float(table[-1]) ** 0.5 for name, table in solved["all_tables"]().items()}
    assert left.pop("zero-terminal") == 0 < min(left.values())
    assert left["scaled linear (SD 1.5)"] == max(left.values())


def test_many_small_steps_of_fresh_noise_have_the_weights_of_the_one_sum():
    scheduler = DDPMScheduler(**STABLE)
    picture, power = 1.0, 0.0
    for beta in scheduler.betas[:501].double():
        picture, power = picture * (1 - beta) ** 0.5, power * (1 - beta) + beta
    assert picture**2 == pytest.approx(float(scheduler.alphas_cumprod[500]), rel=1e-4)
    assert power == pytest.approx(1 - float(scheduler.alphas_cumprod[500]), rel=1e-4)


def test_the_diffusion_mixture_divided_by_its_weights_lies_on_the_line():
    clean, noise = torch.randn(2, 1, 4, 8, 8, generator=torch.Generator().manual_seed(1))
    flow, scheduler = FlowMatchEulerDiscreteScheduler(), DDPMScheduler(**STABLE)
    for t in (100, 500, 900):
        level = scheduler.alphas_cumprod[t]
        sigma = (1 - level) ** 0.5 / (level**0.5 + (1 - level) ** 0.5)
        row = int((flow.sigmas - sigma).abs().argmin())
        on_line = flow.scale_noise(clean, flow.timesteps[row:row + 1], noise)
        mixed = scheduler.add_noise(clean, noise, torch.tensor([t]))
        assert (mixed / (level**0.5 + (1 - level) ** 0.5) - on_line).abs().max() < 0.005


def test_the_given_translation_speaks_all_four_languages_and_refuses_what_is_not_determined(solved):
    translate_to, a, s = solved["translate_to"], 0.8, 0.6
    clean, noise = torch.randn(2, 1, 4, 8, 8, generator=torch.Generator().manual_seed(2))
    exact = {"epsilon": noise, "sample": clean, "v_prediction": a * noise - s * clean, "flow": noise - clean}
    for spoken in exact:
        for wanted in exact:
            got = translate_to(wanted, exact[spoken], spoken, a * clean + s * noise, a, s)
            assert torch.allclose(got, exact[wanted], atol=1e-5)
    assert translate_to("sample", 0.2, "v_prediction", 1.0, 0.8, 0.6) == pytest.approx(0.68)
    with pytest.raises(ValueError, match="do not determine"):
        translate_to("sample", noise, "epsilon", noise, 0.0, 1.0)


def test_the_plot_has_a_curve_for_each_schedule_and_refuses_what_it_cannot_draw(solved):
    ratio = torch.tensor([100.0, 1.0, 0.0])
    axis = levels_over_t({"a": ratio, "b": ratio / 2}, "finding").axes[0]
    curves = [line for line in axis.lines if len(line.get_xdata()) == 3]
    assert len(curves) == 2
    assert min(curves[0].get_ydata()) < axis.get_ylim()[0], "a ratio of 0 leaves the axis"
    for count in (0, 6):
        with pytest.raises(ValueError, match="1 to 5 curves"):
            levels_over_t({str(i): ratio for i in range(count)}, "finding")


def test_five_cards_on_diffusion_are_this_labs():
    cards = [card for card in load_cards("diffusion").cards if card.see == LAB]
    assert len(cards) == 5 and all(card.question[-1] in "?." for card in cards)
