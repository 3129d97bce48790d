"""Lab 04: every variant of its run card can be solved."""

import ast
from functools import partial

import pytest
import torch

from inferlab.lab import setup
from inferlab.lab.checks.check import results
from inferlab.lab.checks.unfinished import when_written
from inferlab.lab.identity import variant
from inferlab.lab.kits.pipelines.solver_panels import curve_panels
from tests.lab.labtexts import blocks_of, cell_of

LAB = "lab04-scheduler-loop"
cell = partial(cell_of, LAB)


@pytest.mark.parametrize("number", range(8))
def test_the_run_card_of_every_variant_is_solved_by_the_same_arithmetic(number, monkeypatch):
    learner = next(name for name in (f"learner {i}" for i in range(200)) if variant(name, LAB, 8) == number)
    lab = setup.Lab(LAB, learner, "bundled", "cpu", 0)
    monkeypatch.setattr(setup, "_current", lab)
    namespace = {"lab": lab}
    for source in (cell(begins="v = lab.variant"), cell(exercise="run-card"), cell(check="run-card")):
        exec(source, namespace)
    assert float(results()["run-card"]) == 3.0

    e, predicted = namespace["card"]["D"], namespace["predicted"]
    right = predicted["controlled"]
    assert 0 < len(right) < e["steps"]
    assert (right[-1] + 1) / e["steps"] < e["end"] < (right[-1] + 2) / e["steps"]
    for controlled, rows, said in (([i + 1 for i in right], e["prompts"], "counted from 0"),
                                   ([*right, right[-1] + 1], e["prompts"], "ends after the window"),
                                   (right, 2 * e["prompts"], "guidance comes first")):
        predicted["controlled"], predicted["residual_rows"] = controlled, rows
        exec(cell(check="run-card"), namespace)
        assert float(results()["run-card"]) == 2.5
        assert said in told("run-card")


def told(check):
    """The messages of the parts of a check that failed."""
    return " ".join(part.message for part in results()[check].check.parts if part.state == "failed")


def graded(monkeypatch, check, **provided):
    """The points that a check gives to what a learner provides."""
    lab = setup.Lab(LAB, "learner 0", "bundled", "cpu", 0)
    monkeypatch.setattr(setup, "_current", lab)
    exec(cell(check=check), {"lab": lab, **provided})
    return float(results()[check])


def by_name(unet, step, scale, timesteps, latents, prompt_embeds, negative_embeds, guidance):
    """A right loop that calls everything by the names in the exercise's table."""
    guided = guidance > 1
    embeds = torch.cat([negative_embeds, prompt_embeds]) if guided else prompt_embeds
    for t in timesteps:
        seen = scale(sample=latents, t=t)
        noise_pred = unet(model_input=torch.cat([seen] * 2) if guided else seen, t=t, embeds=embeds)
        if guided:
            uncond, text = noise_pred.chunk(2)
            noise_pred = uncond + guidance * (text - uncond)
        latents = step(noise_pred=noise_pred, t=t, latents=latents)
    return latents


def draw_all(solver, unet, noises, steps, early=False):
    """A right repair that calls everything by name; with `early`, init_noise_sigma comes before the
    timesteps."""
    pictures = []
    for noise in noises:
        factor = solver["init_noise_sigma"]()
        timesteps = solver["set_timesteps"](steps=steps)
        latents = noise * (factor if early else solver["init_noise_sigma"]())
        for t in timesteps:
            noise_pred = unet(model_input=solver["scale_model_input"](sample=latents, t=t), t=t)
            latents = solver["step"](noise_pred=noise_pred, t=t, latents=latents)
        pictures.append(latents)
    return pictures


def test_the_names_in_the_tables_can_be_used_as_keywords(monkeypatch):
    assert graded(monkeypatch, "loop", denoise=by_name) == 3.0
    assert graded(monkeypatch, "repair", draw_all=draw_all) == 3.0


def test_the_labs_own_cells_hand_out_the_same_names_as_the_tables():
    wanted = {"unet": {("model_input", "t", "embeds")}, "step": {("noise_pred", "t", "latents")},
              "scale": {("sample", "t")}, "scale_model_input": {("sample", "t")}}
    found = {name: set() for name in wanted}
    for block in blocks_of(LAB):
        if block.cell.cell_type != "code" or block.cell.source.startswith("%%"):
            continue
        for node in ast.walk(ast.parse(block.cell.source)):
            if isinstance(node, ast.Dict):
                for key, value in zip(node.keys, node.values, strict=True):
                    if isinstance(key, ast.Constant) and key.value in wanted and isinstance(value,
                                                                                            ast.Lambda):
                        found[key.value].add(tuple(a.arg for a in value.args.args))
            elif isinstance(node, ast.FunctionDef) and node.name in wanted:
                found[node.name].add(tuple(a.arg for a in node.args.args))
    assert found == wanted


def test_init_noise_sigma_before_the_timesteps_is_no_repair(monkeypatch):
    assert graded(monkeypatch, "repair", draw_all=partial(draw_all, early=True)) == 1.5
    assert "ask for it after set_timesteps" in told("repair")


def test_a_demonstration_waits_for_its_exercise_and_for_nothing_else(capsys):
    with when_written("denoise"):
        raise NotImplementedError
    assert "Once `denoise` is written" in capsys.readouterr().out
    with when_written("step", "denoise"):
        raise NotImplementedError
    assert "Once `step` and `denoise` are written" in capsys.readouterr().out
    with pytest.raises(ZeroDivisionError), when_written("denoise"):
        raise ZeroDivisionError


def test_curves_share_one_axis_and_refuse_what_they_cannot_draw():
    figure = curve_panels({"steps": {"a": ((2, 4), (0.1, 0.05))}, "calls": {"a": ((3, 7), (0.1, 0.05))}},
                          title="t", ylabel="y")
    assert [axis.get_xlabel() for axis in figure.axes] == ["steps", "calls"]
    with pytest.raises(ValueError, match="2 x values and 1 y values"):
        curve_panels({"steps": {"a": ((2, 4), (0.1,))}}, title="t", ylabel="y")
    with pytest.raises(ValueError, match="panels"):
        curve_panels({}, title="t", ylabel="y")
