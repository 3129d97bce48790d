"""The plots of the page of GPU numbers: their marks lie where the axis says, their words stand free at every
width, and their numbers are those of the tables."""

import math
import re

import pytest

pytestmark = pytest.mark.browser
WORDS = """plot => [...plot.querySelectorAll("text")].map(text => {
    const {left, right, top, bottom} = text.getBoundingClientRect();
    return {said: text.textContent, left, right, top, bottom};
})"""
PLACES = """plot => {
    const middle = element => {
        const {left, right} = element.getBoundingClientRect();
        return (left + right) / 2;
    };
    const text = element => element.textContent.trim();
    const lines = [...plot.querySelectorAll("line.grid")].map(middle);
    const ticks = [...plot.querySelectorAll("text.tick")].map(text).filter(word => /\\d×$/.test(word));
    const marks = [...plot.querySelectorAll(".mark")].filter(mark => text(mark).endsWith(" its floor"));
    return {
        ticks: ticks.map((word, at) => [parseFloat(word), lines[at]]),
        marks: marks.map(mark => [text(mark), middle(mark.querySelector("circle, rect"))]),
    };
}"""
SHADES = """plot => {
    const light = value => value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    const shade = color => {
        const [r, g, b] = color.match(/[\\d.]+/g).map(value => light(value / 255));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const paper = shade(getComputedStyle(document.body).backgroundColor);
    return [...plot.querySelectorAll("text, .mark > :last-child")].map(part => {
        const {fill, stroke} = getComputedStyle(part);
        const own = shade(part.matches(".series-2 *") ? stroke : fill);
        return (Math.max(own, paper) + 0.05) / (Math.min(own, paper) + 0.05);
    });
}"""


def plots(page):
    found = page.locator("figure.plot").all()
    assert len(found) >= 6
    return found


@pytest.mark.parametrize("width", [1280, 390])
def test_the_words_of_a_plot_stand_inside_it_and_apart(site, tab, width):
    wrong = []
    for plot in plots(tab(width).open("gpu-numbers.html")):
        box = plot.evaluate("plot => plot.querySelector('svg').getBoundingClientRect().toJSON()")
        words = plot.evaluate(WORDS)
        assert len(words) > 5
        wrong += [w["said"] for w in words if w["left"] < box["left"] - 1 or w["right"] > box["right"] + 1]
        wrong += [
            (a["said"], b["said"])
            for at, a in enumerate(words)
            for b in words[:at]
            if min(a["right"], b["right"]) - max(a["left"], b["left"]) > 1
            and min(a["bottom"], b["bottom"]) - max(a["top"], b["top"]) > 3
        ]
    assert not wrong


def test_a_mark_lies_where_its_axis_says_and_its_number_is_in_the_table(site, tab):
    page = tab().open("gpu-numbers.html")
    section = page.locator("section#decode-and-prefill-against-their-floors")
    found = page.locator("figure.plot", has_text="times the floor").first.evaluate(PLACES)
    (first, left), *_, (last, right) = found["ticks"]
    assert len(found["marks"]) >= 10 and last > first
    table = " ".join(section.locator("table").all_text_contents())
    for name, x in found["marks"]:
        value = re.search(r"([\d.]+) × its floor", name)[1]
        assert value in table, name
        part = math.log(float(value) / first) / math.log(last / first)
        assert abs(left + (right - left) * part - x) < 1.5, name


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_and_marks_of_a_plot_are_seen_in_the_light_and_in_the_dark(site, tab, scheme):
    page = tab(scheme=scheme).open("gpu-numbers.html")
    shades = [shade for plot in plots(page) for shade in plot.evaluate(SHADES)]
    assert min(shades) >= 4.5
