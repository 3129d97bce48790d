"""Flashcards by keyboard, and progress that stays in the browser across a reload and travels as a file."""

import json
import re
from datetime import date, timedelta

import pytest

from inferlab.lab.cards.progress import DAYS

pytestmark = pytest.mark.browser


def stored(page):
    return page.evaluate(
        "JSON.parse(Object.entries(localStorage).find(([key]) => key.startsWith('inferlab:'))[1])"
    )


def test_cards_are_asked_by_keyboard_and_come_back_when_they_are_due(site, tab):
    page = tab().open("cards.html")
    page.wait_for_selector("#deck:not([hidden])")
    first, to_go = page.inner_text(".flashcard .front"), int(page.inner_text("#deck .count").split()[0])
    assert page.inner_text(".flashcard .back") == ""
    page.keyboard.press("Space")
    assert page.inner_text(".flashcard .back") != ""
    page.keyboard.press("2")
    assert (
        page.inner_text(".flashcard .front") != first
        and int(page.inner_text("#deck .count").split()[0]) == to_go - 1
    )
    page.keyboard.press("Space")
    page.keyboard.press("1")
    assert int(page.inner_text("#deck .count").split()[0]) == to_go - 1
    (known, box), (again, none) = stored(page)["cards"].items()
    assert box == [1, str(date.today() + timedelta(days=DAYS[0]))] and none == [0, str(date.today())]
    page.reload()
    page.wait_for_selector("#deck:not([hidden])")
    assert int(page.inner_text("#deck .count").split()[0]) == to_go - 1 and known != again


def test_each_card_of_the_chosen_set_is_printed_on_a_page_of_its_own(site, tab):
    page = tab().open("cards.html")
    page.wait_for_selector("#deck:not([hidden])")
    deck = page.locator("#deck select option").nth(1).inner_text()
    counts = []
    for chosen, cards in (("", ".paper section"), (deck, f".paper section[data-deck='{deck}']")):
        page.select_option("#deck select", chosen)
        printed = page.pdf(prefer_css_page_size=True)
        pages = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", printed)
        counts.append(len(pages))
        assert counts[-1] == page.locator(cards).count()
        assert {tuple(round(float(side) / 72 * 25.4) for side in sides) for sides in pages} == {(148, 105)}
    assert counts[0] > counts[1] > 10


def test_days_are_those_of_the_notebooks_cards(site, tab):
    page = tab().open("cards.html")
    days = page.evaluate("import(new URL('_static/progress.mjs', location.href).href).then(m => m.DAYS)")
    assert days == list(DAYS)


def test_what_is_read_and_done_shows_on_the_first_page_after_a_reload_and_as_a_file(site, tab, tmp_path):
    one = tab()
    page = one.open("handbook/lab13-kv-cache.html")
    page.click("button.mark")
    page = one.open("labs/lab12-prefill-decode.html")
    page.click("button.mark")
    page = one.open("index.html")
    assert (
        page.inner_text(".so-far").startswith("1 of ") and "1 of" in page.inner_text(".so-far").split("·")[1]
    )
    assert page.locator(".track a.read").get_attribute("data-lab") == "lab13-kv-cache"
    assert page.locator(".track a.done").get_attribute("data-lab") == "lab12-prefill-decode"
    with page.expect_download() as got:
        page.click(".export")
    file = tmp_path / "progress.json"
    got.value.save_as(file)
    other = tab()
    page = other.open("index.html")
    assert page.inner_text(".so-far").startswith("0 of ")
    page.set_input_files(".import input", file)
    page.wait_for_function("document.querySelector('.so-far').textContent.startsWith('1 of')")
    assert json.loads(file.read_text("utf-8")) == stored(page)


@pytest.mark.parametrize("text", ["no JSON", "[]", '{"cells": []}', "null"])
def test_a_file_that_is_no_progress_is_refused_and_nothing_is_lost(site, tab, tmp_path, text):
    one = tab()
    one.open("handbook/lab13-kv-cache.html").click("button.mark")
    page = one.open("index.html")
    file = tmp_path / "other.json"
    file.write_text(text, "utf-8")
    page.set_input_files(".import input", file)
    page.wait_for_function("document.querySelector('.said').textContent")
    assert "no progress" in page.inner_text(".said") and page.inner_text(".so-far").startswith("1 of ")
