"""The concept map's data: it names what exists, every lab has its concepts, and a fault is said by its
name."""

from dataclasses import replace

import pytest

from builder.concepts import faults_of, read_concepts
from inferlab.grading.course import Course
from tests import ROOT


@pytest.fixture(scope="module")
def course():
    return Course.open(ROOT)


def test_the_map_has_no_fault(course):
    concepts = read_concepts()
    assert faults_of(concepts, course) == []
    assert {concept.lab for concept in concepts} == set(course.labs) and len(concepts) > 40


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"lab": "lab99-nothing"}, "there is no lab lab99-nothing"),
        ({"heading": "Exercise 99 · Nothing"}, "has no heading 'Exercise 99 · Nothing'"),
        ({"section": "Nothing"}, "the handbook's"),
        ({"needs": ("nothing",)}, "needs nothing, which is no concept"),
    ],
)
def test_a_place_that_is_not_there_is_a_fault(course, change, said):
    first, *rest = read_concepts()
    assert any(said in fault for fault in faults_of([replace(first, **change), *rest], course))


def test_a_lab_without_a_concept_and_a_circle_are_faults(course):
    concepts = read_concepts()
    lost = concepts[-1].lab
    assert f"{lost} has no concept" in faults_of([one for one in concepts if one.lab != lost], course)
    circle = [
        replace(one, needs=(concepts[0].name, one.name)) if one is concepts[0] else one for one in concepts
    ]
    assert any("circle" in fault for fault in faults_of(circle, course))


def names(page, selector):
    return {one.get_attribute("data-concept") for one in page.locator(selector).all()}


def expected(name):
    """Concept's neighbours, and everything further up or down."""
    all_ = read_concepts()
    up, down = {one.name: set(one.needs) for one in all_}, {}
    for one in all_:
        down[one.name] = {other.name for other in all_ if one.name in other.needs}

    def reached(edges):
        found, left = set(), [name]
        while left:
            left += edges[(one := left.pop())] - found
            found.add(one)
        return found

    return up[name] | down[name], reached(up) | reached(down)


@pytest.mark.browser
@pytest.mark.parametrize("way", ["pointed at", "focused"])
def test_a_concept_says_what_it_is_and_its_neighbours_stand_out(site, tab, way):
    page = tab().open("map.html")
    assert page.locator(".map [data-concept]").count() == len(read_concepts())
    page.wait_for_selector(".map .rest path", state="attached")
    assert not page.locator(".concept, .map .direct path").count()
    box = page.locator("[data-concept=ddim-step]")
    box.hover() if way == "pointed at" else box.focus()
    page.wait_for_selector(".concept")
    direct, kept = expected("ddim-step")
    assert names(page, ".map [data-concept].direct") == direct and len(direct) < 8
    assert names(page, ".map [data-concept].kept") == kept and "forward-noise" in kept
    assert page.locator(".map g.direct path").count() == len(direct)
    assert "Jump to the guessed picture" in page.inner_text(".concept")
    if way == "focused":
        for _ in range(1 + len(direct)):
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
    else:
        page.hover(".concept")
        page.wait_for_timeout(500)
        page.click(".concept >> text=Read")
    page.wait_for_url("**/handbook/lab02-denoising-step.html#**")


@pytest.mark.browser
def test_no_line_runs_under_a_box(site, tab):
    page = tab().open("map.html")
    page.wait_for_selector(".map .rest path", state="attached")
    page.locator("[data-concept=forward-noise]").focus()
    hidden = page.evaluate("""() => [...document.querySelectorAll(".map path")].flatMap(path => {
      const boxes = [...path.closest(".map").querySelectorAll("[data-concept]")];
      const map = path.ownerSVGElement.getBoundingClientRect();
      const far = path.getTotalLength();
      return boxes.filter(box => {
        const b = box.getBoundingClientRect();
        for (let at = 0; at < far; at += 3) {
          const { x, y } = path.getPointAtLength(at);
          const [left, top] = [x + map.left, y + map.top];
          if (left > b.left + 2 && left < b.right - 2 && top > b.top + 2 && top < b.bottom - 2) return true;
        }
      }).map(box => `${path.dataset.from} to ${path.dataset.to} under ${box.dataset.concept}`);
    })""")
    assert not hidden


@pytest.mark.browser
def test_the_first_tap_opens_a_concept_in_place_and_its_neighbours_lead_on(site, tab):
    page = tab(390, has_touch=True, is_mobile=True).open("map.html")
    page.wait_for_function("!document.querySelector('[data-concept=ddim-step]').title")
    page.tap("[data-concept=ddim-step]")
    panel = page.locator(".concept")
    assert page.url.endswith("map.html") and "Jump to the guessed picture" in panel.inner_text()
    below = page.locator("[data-concept=ddim-step]").bounding_box()
    here = panel.bounding_box()
    assert 0 < here["y"] - below["y"] - below["height"] < 20 and here["x"] + here["width"] <= 390
    page.tap(".concept >> text=UNet and scheduler")
    assert names(page, ".map .chosen") == {"who-does-what"} and panel.count() == 1
    page.tap("[data-concept=who-does-what]")
    assert not panel.count()
    page.tap("[data-concept=ddim-step]")
    page.tap(".concept >> text=Do")
    page.wait_for_url("**/labs/lab02-denoising-step.html#**")
