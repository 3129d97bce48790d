"""The table in a notebook: what stands out, what is marked, what folds, and what a keyboard and a screen
reader need."""

import re
import shutil
from html.parser import HTMLParser

import pytest
import torch

from inferlab.trace import trace
from inferlab.trace.showing.lines import brief
from tests.trace import zoo


@pytest.fixture(scope="module")
def guided():
    pipe, arguments = zoo.PIPELINES["stable_diffusion"]()
    with trace(pipe) as t:
        pipe(**arguments)
    return t


class Tags(HTMLParser):
    """All tags with their attributes, and the words of the page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words = [], ""
        self.feed(re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL))

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words += data

    def of(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


def test_every_header_has_a_scope_and_every_table_a_caption(guided):
    for shown in (guided._repr_html_(), guided.diff(guided)._repr_html_(),
                  guided.table(unfold=True)._repr_html_()):
        page = Tags(shown)
        assert all(th.get("scope") in ("col", "row") for th in page.of("th"))
        assert len(page.of("caption")) == len(page.of("table"))


def test_nothing_scrolls_inside(guided):
    assert not re.search(r"overflow(-[xy])?:\s*(auto|scroll)|max-height", guided._repr_html_())


def test_there_is_no_column_of_notes_and_remarks_stand_under_the_name(guided):
    page = Tags(guided._repr_html_())
    heads = [words for words in ("step", "boundary", "inputs", "outputs", "bytes out", "ms")
             if words in page.words]
    assert len(heads) == 6
    assert all(words in str(guided).split("\n")[1] for words in heads if words not in ("inputs", "outputs"))
    assert "notes" not in page.words
    assert "inferred: batch 2 → 1 between unet and scheduler.step" in page.words


def test_denoiser_guidance_and_decode_stand_out(guided):
    rows = [row["class"] for row in Tags(guided.table(unfold=True)._repr_html_()).of("tr") if "class" in row]
    assert rows == ["il-hero il-denoiser", "il-hero il-guidance"] * guided.steps + ["il-hero il-decode"]
    assert {b.role for b in guided["unet"]} == {"denoiser"}


@pytest.mark.parametrize(("name", "denoiser"), [("flux", "transformer"), ("wan", "transformer"),
                                                ("sana", "transformer")])
def test_the_denoiser_is_found_without_its_name(name, denoiser):
    pipe, arguments = zoo.PIPELINES[name]()
    with trace(pipe) as t:
        pipe(**arguments)
    assert {b.name for b in t if b.role == "denoiser"} == {denoiser}
    assert {b.name for b in t if b.role == "decode"} == {"vae.decode"}


def test_a_language_models_calls_stand_out():
    made, call = zoo.MODELS["llama"]()
    with trace(made) as t:
        call(made)
    assert [b.name for b in t if b.role] == ["LlamaForCausalLM"] * t.steps


def test_an_axis_that_changed_is_marked(guided):
    text = guided._repr_html_()
    assert '(<b class="il-x">2 → 1</b>,&nbsp;4,&nbsp;8,&nbsp;8)' in text
    decode = guided["vae.decode"][0]
    assert decode.axes_out == {1: 4, 2: 8, 3: 8}
    assert guided["guidance"][0].axes_out == {0: 2}
    assert guided["unet"][0].axes_out == {}


def test_an_axis_that_changed_on_the_way_in_is_marked():
    def double(x):
        return x

    def halve(x):
        return x

    with trace(double, halve) as t:
        double(torch.ones(2, 3))
        halve(torch.ones(1, 3))
        halve(torch.ones(4, 5))  # other data: two axes differ
    assert [b.axes_in for b in t] == [{}, {0: 2}, {}]


class RunConfig:
    """As a library's settings object: many fields, and a tensor among them."""

    def __init__(self):
        self.tokens = torch.ones(3)
        self.names = {f"a_long_setting_number_{n}": [torch.ones(n)] for n in range(9)}


def test_long_inputs_fold_to_a_word():
    def work(x, config, states, **settings):
        return x

    with trace(work) as t:
        work(torch.ones(2), RunConfig(), tuple(torch.ones(n + 1) for n in range(30)),
             **{f"s{n}": n for n in range(9)})
    boundary = t["work"][0]
    assert brief(boundary.inputs.config) == "RunConfig(…)"
    assert brief(boundary.inputs.states) == "tuple of 30"
    assert brief(boundary.inputs.x) == "(2,) float32 cpu"
    assert "a_long_setting" not in str(t.table(width=400))
    assert "config=RunConfig(…)" in str(t.table(width=400))
    page = Tags(t._repr_html_())
    assert "config=RunConfig(…)" in page.words
    assert "a_long_setting_number_8" in page.words  # on demand
    assert "5 more settings" in page.words
    assert len(page.of("details")) == len(page.of("summary")) == 3


def test_the_device_that_all_share_is_said_once_and_not_beside_a_mask():
    def attend(hidden_states, attention_mask):
        return hidden_states

    with trace(attend) as t:
        attend(torch.ones(1, 77, 8), torch.ones(1, 77, dtype=torch.bool))
    text = str(t.table(width=200))
    assert "all tensors on cpu" in text
    assert "attention_mask=(1, 77) bool" in text
    assert text.count("cpu") == Tags(t._repr_html_()).words.count("cpu") == 1


def test_packed_latents_and_ids_are_described():
    pipe, arguments = zoo.PIPELINES["flux"]()
    with trace(pipe) as t:
        pipe(**arguments)
    assert ("latents as 16 tokens: 4 numbers each = 1 channels × a patch of "
            "4 places") in t["_pack_latents"][0].note
    assert t["_prepare_latent_image_ids"][0].note == "positions of 16 tokens, 3 coordinates each"
    assert t["_unpack_latents"][0].note.startswith("16 tokens back to latents")


@pytest.mark.skipif(not shutil.which("chromium"), reason="needs Debian's chromium")
@pytest.mark.browser
def test_the_table_fits_pages_wide_and_narrow_light_and_dark(guided, tmp_path):
    sync_api = pytest.importorskip("playwright.sync_api")
    page_file = tmp_path / "page.html"
    theme = "<style>@media (prefers-color-scheme: dark){body{background:#111;color:#ddd}}</style>"
    table = guided.table(unfold=True)._repr_html_()
    page_file.write_text(f"<!doctype html><meta charset=utf-8>{theme}{table}")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            for width in (420, 1280):
                page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
                page.goto(page_file.as_uri())
                assert page.evaluate("document.documentElement.scrollWidth") == width
                assert page.evaluate(STACKED) is (width == 420)
                ink = page.evaluate("getComputedStyle(document.querySelector('.il-trace td')).color")
                assert ink == ("rgb(221, 221, 221)" if scheme == "dark" else "rgb(0, 0, 0)")
                page.close()
        browser.close()


STACKED = "getComputedStyle(document.querySelector('.il-trace tbody td')).display != 'table-cell'"
