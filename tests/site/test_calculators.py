"""Each calculator: its JavaScript against the course's Python, its page against its JavaScript, its
address."""

import json
import math
import random
import tomllib

import pytest

from tests import ROOT
from tests.site import formulas

pytestmark = pytest.mark.browser
CALCULATORS = tomllib.loads((ROOT / "site" / "calculators.toml").read_text("utf-8"))
SAMPLES = 200


@pytest.mark.parametrize("name", CALCULATORS)
def test_a_formula_agrees_with_the_courses_python_on_random_inputs(site, tab, name):
    rng, told = random.Random(name), getattr(formulas, name.replace("-", "_"))
    inputs = [formulas.drawn(CALCULATORS[name]["inputs"], rng) for _ in range(SAMPLES)]
    page = tab().open(f"calculators/{name}.html")
    got = page.evaluate(
        """async ([name, inputs]) => {
        const {formulas} = await import(new URL("../_static/calculators/formulas.mjs", location.href).href);
        return inputs.map(x => formulas[name](x));
    }""",
        [name, inputs],
    )
    names = {output[0] for output in CALCULATORS[name]["outputs"]}
    for x, found in zip(inputs, got, strict=True):
        wanted = told(x)
        assert set(wanted) == set(found) == names
        wrong = {
            key: (found[key], wanted[key])
            for key in names
            if not math.isclose(found[key], wanted[key], rel_tol=1e-9, abs_tol=1e-12)
        }
        assert not wrong, (x, wrong)


@pytest.mark.parametrize("name", CALCULATORS)
def test_a_page_shows_what_its_formula_says_and_keeps_its_inputs_in_the_address(site, tab, name):
    one, rng = tab(), random.Random(f"page of {name}")
    x = formulas.drawn(CALCULATORS[name]["inputs"], rng)
    page = one.open(f"calculators/{name}.html")
    for key, value in x.items():
        field = page.locator(f"[data-input][name={key}]")
        if field.evaluate("field => field.tagName") == "SELECT":
            field.select_option(str(value))
        else:
            field.fill(str(value))
    shown = page.locator("output").evaluate_all(
        "all => Object.fromEntries(all.map(o => [o.name, Number(o.dataset.value)]))"
    )
    wanted = getattr(formulas, name.replace("-", "_"))(x)
    assert shown == pytest.approx(wanted, rel=1e-9, abs=1e-12)
    address = page.url
    again = one.open(address.removeprefix(one.url))
    assert (
        again.locator("output").evaluate_all(
            "all => Object.fromEntries(all.map(o => [o.name, Number(o.dataset.value)]))"
        )
        == shown
    )
    assert again.locator(".curve svg path.line").get_attribute("d").count("L") > 1


def test_units_switch_and_a_preset_fills_in_a_model(site, tab):
    page = tab().open("calculators/kv-cache.html")
    assert page.locator("output[name=total]").inner_text() == "1.074 GB"
    page.select_option("[name=units]", "binary")
    assert page.locator("output[name=total]").inner_text() == "1 GiB"
    page.select_option("[data-preset]", "Llama 3 70B")
    assert page.locator("[name=layers]").input_value() == "80"
    assert page.locator("output[name=token]").inner_text() == "320 KiB"


def test_an_impossible_number_is_marked_and_changes_nothing(site, tab):
    page = tab().open("calculators/pipeline.html")
    before = page.locator("output[name=bubble]").inner_text()
    assert before == "15.79%"
    page.fill("[name=stages]", "0")
    assert page.locator("form.calculator.wrong").count() == 1
    assert page.locator("output[name=bubble]").inner_text() == before
    assert page.inner_text("#why-stages") == "A whole number from 1 to 64"
    assert page.get_attribute("[name=stages]", "aria-describedby") == "why-stages"
    page.fill("[name=stages]", "8")
    assert not page.locator(".reason").count() and page.locator("output[name=bubble]").inner_text() != before


def test_the_roofline_says_from_where_arithmetic_is_the_longer(site, tab):
    page = tab().open("calculators/roofline.html")
    picked = page.locator("[data-preset]").evaluate_all("all => all.map(one => one.value)")
    assert picked[0] == "Llama 3 8B" and picked[1].endswith("measured")
    said = page.text_content(".curve svg .said")
    knee = int(said.removeprefix("bound by arithmetic from "))

    def times(batch):
        page.fill("[name=batch]", str(batch))
        shown = [page.get_attribute(f"output[name={name}]", "data-value") for name in ("compute", "memory")]
        return tuple(map(float, shown))

    compute, memory = times(knee)
    assert compute > memory and page.get_attribute("output[name=least]", "data-value") == str(compute)
    compute, memory = times(knee - 1)
    assert compute <= memory
    page.fill("[name=context]", "8192")
    assert page.text_content(".curve svg .said") == "bound by reading"
    page.fill("[name=layers]", "31")
    assert page.locator("[data-preset]").first.input_value() == ""


def test_a_slider_and_the_curve_move_a_number_by_its_factors(site, tab):
    page = tab().open("calculators/kv-cache.html")
    slider, number = page.locator("[data-for=tokens]"), page.locator("[name=tokens]")
    seen = []
    for share in (0, 0.25, 0.5, 0.75, 1):
        slider.evaluate(
            "(s, v) => { s.value = v; s.dispatchEvent(new Event('input', {bubbles: true})); }", share
        )
        seen.append(int(number.input_value()))
    assert seen[0] == 1 and seen[-1] == 1_000_000 and 900 <= seen[2] <= 1100
    assert "tokens=1000000" in page.url
    number.fill("4096")
    assert 0.5 < float(slider.input_value()) < 0.7
    box = page.locator(".curve svg").bounding_box()
    page.mouse.click(box["x"] + box["width"] - 20, box["y"] + 100)
    assert 4 * 4096 * 0.9 < int(number.input_value()) <= 4 * 4096
    assert "×" in page.inner_text("output[name=smaller]") and "smaller" in page.inner_text(
        "output[name=smaller]"
    )


def test_the_cards_are_those_that_were_measured(site, tab):
    page = tab().open("calculators/roofline.html")
    cards = page.locator("option[data-values*=tflops]").evaluate_all(
        "all => all.map(o => [o.value, JSON.parse(o.dataset.values)])"
    )
    assert len(cards) >= 2
    for name, rates in cards:
        runs = [json.loads(path.read_text("utf-8")) for path in (ROOT / "ci" / "results").glob("gpu-*.json")]
        seen = [
            run["parts"]["floors"]
            for run in runs
            if "floors" in run["parts"] and name.startswith(run["environment"]["card"]["name"])
        ]
        assert any(
            math.isclose(floors["matrix_flops_per_s"] / 1e12, rates["tflops"], rel_tol=0.005)
            for floors in seen
        )
