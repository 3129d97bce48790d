"""Every page: whole, quiet, alone on its host, light enough, and readable by everybody, in four views."""

import json
import re

import pytest

from tests.site.conftest import OUT, axe_source

pytestmark = pytest.mark.browser
VIEWS = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]
KINDS = (
    "index",
    "map",
    "player",
    "model",
    "practice",
    "glossary",
    "cards",
    "gpu-numbers",
    "instructors",
    "search",
    "api/trace",
    "calculators/index",
    "calculators/kv-cache",
    "calculators/roofline",
    "handbook/lab13-kv-cache",
    "handbook/lab03-guidance",
    "handbook/lab14-batching",
    "handbook/lab15-paged-attention",
    "labs/lab02-denoising-step",
    "labs/lab03-guidance",
    "labs/lab13-kv-cache",
)
"""A page of each kind. axe looks at these in all views; the others are opened in the two that differ most."""
MOST_BYTES = 300_000


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("width", "scheme"), VIEWS)
def test_every_page_opens_quietly_fits_and_has_nothing_that_axe_finds(site, tab, width, scheme):
    one = tab(width, scheme, reduced_motion="reduce")
    axe, found = axe_source(), {}
    everything = (width, scheme) in ((1280, "light"), (390, "dark"))
    for name in site.pages if everything else [f"{kind}.html" for kind in KINDS]:
        page = one.open(name)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{name} is wider than {width}"
        if name.removesuffix(".html") not in KINDS:
            continue
        page.evaluate(axe)
        seen = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
        for fault in seen:
            found.setdefault(fault["id"], []).append(
                (name, fault["nodes"][0]["html"][:160], fault["nodes"][0]["failureSummary"][:200])
            )
    assert not found, json.dumps({rule: where[:3] for rule, where in found.items()}, indent=1)


def test_the_first_view_of_a_page_is_light(site, tab, browser):
    heavy = {}
    for name in site.pages:
        one = tab()
        page = one.open(name)
        page.wait_for_load_state("networkidle")
        moved = page.evaluate("""() => ["navigation", "resource"]
            .flatMap(kind => performance.getEntriesByType(kind))
            .reduce((sum, entry) => sum + entry.transferSize, 0)""")
        if moved >= MOST_BYTES:
            heavy[name] = moved
        one.context.close()
    assert not heavy


def test_without_javascript_the_text_reads_and_answers_open(site, tab):
    one = tab(java_script_enabled=False)
    page = one.open("practice.html")
    card = page.locator("details.question").first
    assert not card.locator(".answer").is_visible()
    card.locator("summary").click()
    assert card.locator(".answer").is_visible()
    page = one.open("handbook/lab13-kv-cache.html")
    assert page.locator(".formula .katex").count() and "Sharing heads" in page.inner_text("article")
    page = one.open("calculators/kv-cache.html")
    assert re.fullmatch(r"[\d.,]+ GB", page.locator("output[name=total]").inner_text())


def test_the_first_page_leads_to_every_lab_with_minutes_and_what_comes_before(site, tab):
    page = tab().open("index.html")
    stops = page.locator(".track li a")
    labs = sorted(path.stem for path in (OUT / "labs").glob("*.html"))
    assert sorted(stop.get_attribute("data-lab") for stop in stops.all()) == labs
    facts = page.locator(".track .facts").all_inner_texts()
    assert all(re.search(r"\d+ (min|h)\b", text) for text in facts)
    assert sum("after" in text for text in facts) > len(labs) / 2


def test_a_lab_goes_from_its_section_to_its_notebook_and_on(site, tab):
    page = tab().open("handbook/lab13-kv-cache.html")
    page.click("nav.steps >> text=Do")
    assert page.url.endswith("labs/lab13-kv-cache.html")
    page.wait_for_load_state()
    assert "raise NotImplementedError()" in page.inner_text("article")
    with page.expect_download() as got:
        page.click("nav.steps >> text=Download")
    cells = json.loads(got.value.path().read_text("utf-8"))["cells"]
    assert any("YOUR CODE HERE" in "".join(cell["source"]) for cell in cells)
    page.click(".related-pages .next-page")
    assert "handbook/lab14-batching" in page.url


@pytest.mark.parametrize("width", [1280, 390])
def test_a_figure_follows_the_scheme_and_its_words_can_be_selected(site, tab, width):
    inks = set()
    for scheme in ("light", "dark"):
        page = tab(width, scheme).open("handbook/lab13-kv-cache.html")
        words = page.locator(".figure text", has_text="grouped-query")
        inks.add(words.evaluate("text => getComputedStyle(text).fill"))
        words.evaluate("text => getSelection().selectAllChildren(text)")
        assert "grouped-query" in page.evaluate("String(getSelection())")
        assert page.locator(".figure svg").get_attribute("aria-label").startswith("Three panels")
        assert words.evaluate("text => text.getBoundingClientRect().height") > 7, "large enough to be read"
    assert len(inks) == 2
    assert not list(OUT.rglob("_images/*.svg"))


def test_the_side_bar_shows_the_track_that_is_read_and_opens_the_other(site, tab):
    page = tab().open("handbook/lab13-kv-cache.html")
    parts = page.locator(".sidebar-tree details")
    assert [part.get_attribute("open") is not None for part in parts.all()] == [False, True]
    assert not page.locator(".sidebar-tree a", has_text="05 · Latents").is_visible()
    parts.first.locator("summary").click()
    page.locator(".sidebar-tree a", has_text="05 · Latents").click()
    assert page.url.endswith("handbook/lab05-latents.html")


def test_what_sets_a_notebook_up_opens_on_a_click(site, tab):
    page = tab().open("labs/lab04-scheduler-loop.html")
    setup = page.locator("details", has_text="Show the setup, 3 cells")
    assert not setup.locator("pre").is_visible()
    setup.locator("summary").click()
    assert "LEARNER" in setup.inner_text() and "start(" in setup.inner_text()
    assert page.locator("summary", has_text="Show the check of ").count() >= 5


def test_a_word_of_the_explanations_is_found_by_its_letter_and_by_typing(site, tab):
    page = tab().open("glossary.html")
    page.click(".letters >> text=U")
    letter = page.locator(page.url[page.url.index("#") :]).locator("xpath=ancestor::details")
    assert letter.get_attribute("open") is not None and "UNet" in letter.inner_text()
    rows = page.locator("table tbody tr, .terms > div")
    page.fill(".filter input", "scheduler")
    shown = [row for row in rows.all() if row.is_visible()]
    assert 0 < len(shown) < rows.count() and all("scheduler" in row.inner_text().lower() for row in shown)
    assert len({row.evaluate("row => row.tagName") for row in shown}) == 2, "terms, and words of explanations"


def test_search_finds_a_word_of_a_lab(site, tab):
    page = tab().open("search.html?q=rotary")
    page.wait_for_selector("#search-results li a")
    links = page.locator("#search-results li h3 a")
    found = links.evaluate_all("all => all.map(a => a.getAttribute('href'))")
    assert any("lab" in link for link in found)
    page.wait_for_selector("#search-results .context")
    excerpts = page.locator("#search-results .context").all_inner_texts()
    assert not [text for text in excerpts if "Download" in text and "Colab" in text]
    assert re.fullmatch(r"In (one place|\d+ places)\.", page.inner_text(".search-summary"))
    page = tab().open("search.html?q=zebra")
    page.wait_for_function("document.querySelector('.search-summary')?.innerText")
    assert page.inner_text(".search-summary") == "No page has all of these words. Fewer words find more."
