"""The language's right answers are right, by reading its text again; held-out worlds stay out; captions can be drawn."""

import re

import pytest

from inferlab.models.scenes import parse_caption
from inferlab.models.stories import document, documents, is_held_out, questions
from inferlab.models.stories.words import NAMES, NUMBERS, TRAVELS

ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh"]


def read_row(context: str) -> list[list[str]]:
    """The row of shapes [size, color, kind] that the context ends with: a second reading of its English."""
    start, *changes = context.removesuffix(".").split(". ")
    row = [re.sub(r"^an? ", "", s).split() for s in re.split(r", | and ", start.split("to right: ")[1])]
    at = lambda color, kind: next(i for i, s in enumerate(row) if s[1:] == [color, kind])
    for change in changes:
        told = re.sub(r"^(Then|After that|At last) ", "", change)
        if m := re.fullmatch(r"the (\w+) (\w+) and the (\w+) (\w+) trade places", told):
            i, j = at(m[1], m[2]), at(m[3], m[4])
            row[i], row[j] = row[j], row[i]
        elif m := re.fullmatch(r"the (\w+) (\w+) goes away", told):
            del row[at(m[1], m[2])]
        elif m := re.fullmatch(r"a (\w+) (\w+) (\w+) comes in from the (left|right)", told):
            row.insert(0 if m[4] == "left" else len(row), [m[1], m[2], m[3]])
        elif m := re.fullmatch(r"the (\w+) (\w+) turns (\w+)", told):
            row[at(m[1], m[2])][1] = m[3]
        elif m := re.fullmatch(r"the (\w+) (\w+) becomes (\w+)", told):
            row[at(m[1], m[2])][0] = m[3]
        else:
            raise AssertionError(f"a change that the test cannot read: {told!r}")
    return row


def expected(row: list[list[str]], kind: str, request: str) -> str | None:
    """The answer's beginning, from the row alone."""
    if kind == "order":
        return "a " + " ".join(row[0])
    if kind == "nth":
        m = re.search(r"is (\w+) from the (left|right)", request)
        return "the " + " ".join(row[ORDINALS.index(m[1])] if m[2] == "left" else row[::-1][ORDINALS.index(m[1])])
    if kind in ("count", "count-beside"):
        among = row
        m = re.search(r"many (\w+?)( shapes)? are (there|left|right)(?: of the (\w+) (\w+))?", request)
        if kind == "count-beside":
            i = next(i for i, s in enumerate(row) if s[1:] == [m[4], m[5]])
            among = row[:i] if m[3] == "left" else row[i + 1 :]
        word = m[1] if m[2] else m[1].removesuffix("es") if m[1] == "crosses" else m[1].removesuffix("s")
        found = among if word == "shape" else [s for s in among if word in s]
        return NUMBERS[len(found)]
    return None


def test_answers_about_scenes_agree_with_a_second_reading_of_the_text():
    checked = set()
    for doc in documents(400, seed=3, kind="scene", turns=8):
        row = read_row(doc.context.removeprefix("Scene: "))
        for turn in doc.turns:
            answer = expected(row, turn.kind, turn.request)
            if answer is not None:
                checked.add(turn.kind)
                assert re.split(r"[,.] ?", turn.reply)[0].startswith(answer), (doc.text(), turn)
    assert checked == {"order", "nth", "count", "count-beside"}


def test_where_questions_agree_with_the_last_journey_told():
    checked = 0
    for doc in documents(600, seed=4, kind="story", turns=8):
        if re.search(r"\bthe \w+ \w+ (went|" + "|".join(TRAVELS) + r")|went to see|together", doc.context, re.IGNORECASE):
            continue
        for turn in doc.turns:
            name = re.search(r"Where is (\w+) now", turn.request)
            if turn.kind != "where" or not name or name[1] not in NAMES:
                continue
            journeys = re.findall(rf"\b{name[1]} (?:{'|'.join(TRAVELS)})(?: \w+)? to the (\w+)", doc.context)
            if journeys:
                checked += 1
                assert turn.reply == f"at the {journeys[-1]}."
    assert checked > 15


def test_a_seed_stands_for_one_document():
    assert document(5).text() == document(5).text()
    assert len({document(seed).text() for seed in range(50)}) == 50


def test_training_and_held_out_worlds_do_not_meet():
    held_out = documents(200, seed=1, kind="story")
    trained = documents(200, seed=1, kind="story", held_out=False)
    assert all(is_held_out(doc.key) for doc in held_out)
    assert not {doc.key for doc in held_out} & {doc.key for doc in trained}
    assert not any(is_held_out(doc.key) for doc in trained)


def test_every_caption_is_one_that_the_picture_model_draws():
    captions = [t.reply for doc in documents(200, seed=2, kind="scene", turns=8) for t in doc.turns if t.kind == "draw"]
    assert len(captions) > 50
    for caption in captions:
        scene = parse_caption(caption)
        assert len(scene.things) == 2 and scene.relation and scene.background


def test_questions_come_in_many_kinds_and_end_where_the_model_writes():
    asked = questions(300, seed=6)
    assert len({turn.kind for _, turn in asked}) >= 18
    for doc, turn in asked:
        assert doc.prompt(turn).endswith(("Answer:", "Caption:"))
        assert turn.graded and turn.reply


def test_a_story_can_be_made_longer():
    short, long = document(8, "story", events=2), document(8, "story", events=30)
    assert len(long.context) > 3 * len(short.context)


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="expected 'scene', 'story', 'repeat'"):
        document(1, "poem")
