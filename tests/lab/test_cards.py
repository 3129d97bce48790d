"""Flashcards: a file of cards is read strictly, what is known comes back later, the widget and the printed
page show every card."""

import random
from datetime import date, timedelta

import pytest
from IPython.utils.capture import capture_output

from inferlab import cli
from inferlab.lab.cards import Card, Deck, Progress, load_cards, print_view, show_cards
from inferlab.lab.cards.progress import DAYS
from inferlab.lab.cards.widget import CardBox

DECK = Deck("three", tuple(Card(f"card-{i}", f"question {i}?", f"answer {i}") for i in range(3)))
OWN = ('[[card]]\nid = "ours"\nquestion = "Ours?"\nanswer = "Yes."\n\n[[card]]\nid = "kv-cache"\nquestion = '
       '"Ours instead?"\nanswer = "Yes."\n')


def test_the_bundled_set_has_cards_of_different_ids_that_name_labs():
    deck = load_cards("inference")
    assert len(deck.cards) == len({card.id for card in deck.cards}) >= 12
    assert all(card.question.endswith("?") or card.question.endswith(".") for card in deck.cards)
    assert all(card.see.startswith("lab") for card in deck.cards)


def test_a_course_adds_cards_and_replaces_one(tmp_path):
    (tmp_path / "ours.toml").write_text(OWN)
    deck = load_cards("inference", tmp_path / "ours.toml")
    assert len(deck.cards) == len(load_cards("inference").cards) + 1 and deck.cards[-1].id == "ours"
    assert next(card for card in deck.cards if card.id == "kv-cache").question == "Ours instead?"
    assert deck.title == load_cards("inference").title


@pytest.mark.parametrize(("text", "message"), [
    ("nothing = 1", "holds no card"),
    ("[[card]", "no TOML file"),
    ('[[card]]\nid = "a"\nquestion = "Q?"', "answer is missing"),
    ('[[card]]\nid = "a"\nquestion = "Q?"\nanswer = "A"\nhint = "H"', "unknown hint"),
    ('[[card]]\nid = "Not so"\nquestion = "Q?"\nanswer = "A"', "lower-case"),
    ('[[card]]\nid = "a"\nquestion = "Q?"\nanswer = "A"\n' * 2, "two cards"),
    ('[[card]]\nid = "a"\nquestion = 3\nanswer = "A"', "text in quotes"),
])
def test_a_file_that_is_no_set_of_cards_is_refused_with_the_reason(tmp_path, text, message):
    (tmp_path / "bad.toml").write_text(text)
    with pytest.raises(ValueError, match=message):
        load_cards(tmp_path / "bad.toml")


def test_a_set_that_is_not_there_lists_those_that_are():
    with pytest.raises(FileNotFoundError, match="inference"):
        load_cards("inferense")


def test_a_known_card_comes_back_later_each_time_and_an_unknown_one_at_once(tmp_path):
    day = [date(2026, 1, 1)]
    progress = Progress(tmp_path / "cards.json", today=lambda: day[0])
    card = DECK.cards[0]
    assert progress.due(DECK.cards) == list(DECK.cards)
    for days in (*DAYS, DAYS[-1]):
        assert progress.answer(card, True) == day[0] + timedelta(days=days)
        assert card not in progress.due(DECK.cards)
        day[0] += timedelta(days=days)
        assert Progress(progress.file,
                        today=lambda: day[0]).due(DECK.cards) == list(DECK.cards), "kept in the file"
    assert progress.answer(card, False) == day[0] and card in progress.due(DECK.cards)
    assert progress.answer(card, True) == day[0] + timedelta(days=DAYS[0]), "and begins anew"


def test_progress_that_cannot_be_read_is_left_as_it_is(tmp_path):
    file = tmp_path / "cards.json"
    file.write_text('{"a": 3}')
    with pytest.raises(ValueError, match="no progress that can be read"):
        Progress(file)
    assert file.read_text() == '{"a": 3}'


def test_the_widget_goes_through_a_round_and_remembers(tmp_path):
    box = CardBox(DECK, Progress(tmp_path / "cards.json"), random.Random(1))
    first = box.card
    box._again.click()
    assert box.card is not first and box.queue[-1] is first, "comes again in this round"
    box._shuffle.click()
    assert {card.id for card in box.queue} == {card.id for card in DECK.cards}
    for _ in range(3):
        box._know.click()
    assert box.card is None and box._know.disabled and "Nothing is due" in box._face.value
    assert CardBox(DECK, Progress(tmp_path / "cards.json")).card is None
    box._all.click()
    assert len(box.queue) == 3 and not box._know.disabled


def test_a_card_turns_without_the_kernel_and_shows_no_markup_of_its_text(tmp_path):
    deck = Deck("odd", (Card("odd", "a < b?", "<script>alert(1)</script>"),))
    box = CardBox(deck, Progress(tmp_path / "cards.json"))
    assert "<details><summary>a &lt; b?</summary>" in box._face.value and "<script>" not in box._face.value
    assert "<script>" not in print_view(deck)


def test_beside_the_box_every_card_is_shown_folded_for_the_time_without_a_kernel(shell, tmp_path):
    with capture_output() as captured:
        CardBox(DECK, Progress(tmp_path / "cards.json"))._ipython_display_()
    box, static = captured.outputs
    assert "application/vnd.jupyter.widget-view+json" in box.data
    assert static.data["text/html"].count('<div class="answer">') == 3


def test_progress_lies_beside_the_notebook_under_the_set_s_name(tmp_path):
    show_cards("inference", folder=tmp_path).answer(True)
    assert [file.name for file in tmp_path.iterdir()] == ["inference.cards.json"]


def test_the_command_writes_a_page_with_every_card(tmp_path, capsys):
    assert cli.main(["cards", "inference", "--to", str(tmp_path / "cards.html")]) == 0
    page = (tmp_path / "cards.html").read_text("utf-8")
    count = len(load_cards("inference").cards)
    assert page.count('<section class="card">') == count and "break-after: page" in page
    assert f"{count} cards" in capsys.readouterr().out
    assert cli.main(["cards", "nowhere"]) == 2
