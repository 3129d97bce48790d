"""The first page: a sentence that the language model wrote, and what a lab takes, in short."""

import pytest

from builder.film import NEW, PROMPT, sentence
from builder.home import time_of


@pytest.mark.parametrize(
    ("minutes", "said"),
    [
        ("35 to 45 minutes", "35 to 45 min"),
        ("about 50 minutes", "50 min"),
        ("35 to 45, 30 to 40 and 35 to 45 minutes", "3 parts, about 2 h"),
    ],
)
def test_minutes_are_short_and_those_of_several_parts_are_one_sum(minutes, said):
    assert time_of(minutes) == said


def test_the_sentence_is_the_models_and_the_last_token_is_not_in_the_cache(tmp_path):
    made = sentence(tmp_path / "cache", tmp_path / "film")
    assert "".join(made.prompt) == f"<s>{PROMPT}" and len(made.calls) == NEW
    assert made.columns == len(made.prompt) + NEW - 1
    assert made.bytes_per_token == 4096 and made.layers == 8
    assert all(shares == sorted(shares, reverse=True) for shares in ([p for _, p in c] for c in made.calls))
    words = "".join(call[0][0] for call in made.calls)
    assert words.endswith(" trade places.") and (tmp_path / "film" / "cache.png").exists()
    assert sentence(tmp_path / "cache", tmp_path / "again") == made, "kept, as JSON"


@pytest.mark.browser
def test_the_sentence_plays_once_when_it_is_seen(site, tab):
    page = tab().open("index.html")
    film = page.locator(".sentence")
    page.wait_for_selector(".sentence.waits")
    assert not page.locator(".sentence.plays").count()
    film.scroll_into_view_if_needed()
    page.wait_for_selector(".sentence.plays:not(.waits)")
    page.wait_for_function("document.querySelector('.sentence').getAnimations({subtree: true})"
                           ".every(one => one.playState === 'finished')")
    assert page.locator(".sentence .cached").count() == 28
    page.click(".sentence >> text=trace player")
    page.wait_for_selector("#player .title:has-text('Llama')")
    assert page.input_value("#recorded") == "language"


@pytest.mark.browser
@pytest.mark.parametrize("options", [{"java_script_enabled": False}, {"reduced_motion": "reduce"}])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_sentence_is_whole_without_motion_and_can_be_selected(site, tab, options, width):
    page = tab(width, **options).open("index.html")
    shown = page.locator(".sentence .token > span")
    assert all(one.is_visible() for one in shown.all())
    said = " ".join(one.strip() for one in shown.all_inner_texts())
    assert said.startswith("<s> Scene : a large red circle") and said.endswith("trade places .")
    if width == 1280 and options.get("java_script_enabled", True):
        shown.last.evaluate("one => getSelection().selectAllChildren(one)")
        assert page.evaluate("String(getSelection())").strip() == "."
