"""The language's right answers are right, by reading its text again; held-out worlds stay out; captions can
be drawn."""

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
    def at(color, kind):
        return next(i for i, s in enumerate(row) if s[1:] == [color, kind])

    for change in changes:
        if m := re.fullmatch(r"Now from left to right: (.*)", change):
            told_row = [re.sub(r"^an? ", "", s).split() for s in re.split(r", | and ", m[1])]
            assert told_row == row, "the row that the scene tells after a change"
            continue
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
    """The answer's beginning, or for a count its end, from the row alone."""
    if kind == "order":
        return "a " + " ".join(row[0])
    if kind == "nth":
        m = re.search(r"is (\w+) from the (left|right)", request)
        return "the " + " ".join(row[ORDINALS.index(m[1])] if m[2] == "left"
                                 else row[::-1][ORDINALS.index(m[1])])
    if kind in ("count", "count-beside"):
        among = row
        m = re.search(r"many (\w+?)( shapes)? are (there|left|right)(?: of the (\w+) (\w+))?", request)
        if kind == "count-beside":
            i = next(i for i, s in enumerate(row) if s[1:] == [m[4], m[5]])
            among = row[:i] if m[3] == "left" else row[i + 1 :]
        word = m[1] if m[2] else m[1].removesuffix("es") if m[1] == "crosses" else m[1].removesuffix("s")
        found = among if word == "shape" else [s for s in among if word in s]
        return f", so {NUMBERS[len(found)]}" if found else "none"
    return None


def test_answers_about_scenes_agree_with_a_second_reading_of_the_text():
    checked = set()
    for doc in documents(400, seed=3, kind="scene", turns=8):
        row = read_row(doc.context.removeprefix("Scene: "))
        for turn in doc.turns:
            answer = expected(row, turn.kind, turn.request)
            if answer is not None:
                checked.add(turn.kind)
                reply = turn.reply.removesuffix(".")
                right = reply.endswith(answer) if "count" in turn.kind else reply.startswith(answer)
                assert right, (doc.text(), turn)
    assert checked == {"order", "nth", "count", "count-beside"}


def read_places(context: str) -> dict[str, str]:
    """Where every hero of a story is in the end, by the journeys it tells (without the ending): a second
    reading."""
    told = re.sub(r" In the end .*", "", context)
    places = dict(re.findall(r"called (\w+) was at the (\w+)", told))
    places |= dict(re.findall(r"(\w+), a \w+ \w+ \w+, was at the (\w+)", told))
    places |= {name: place for place, name in re.findall(r"at the (\w+)\. Its name was (\w+)", told)}
    travels, name = "|".join(TRAVELS), f"({'|'.join(NAMES)})"
    for sentence in told.split(". "):
        if m := re.search(rf"(.* and \w+) (?:{travels}) from the \w+ to the (\w+) together", sentence):
            places |= dict.fromkeys(re.findall(name, m[1]), m[2])
        elif m := re.search(rf"{name}(?: the \w+ \w+)? (?:{travels})(?: \w+)? from the (\w+) to the (\w+)",
                            sentence):
            assert places[m[1]] == m[2], "a journey starts where its hero was"
            places[m[1]] = m[3]
        elif m := re.search(rf"{name}(?: the \w+ \w+)? left the (\w+) to see (\w+) at the (\w+)", sentence):
            assert (places[m[1]], places[m[3]]) == (m[2], m[4])
            places[m[1]] = m[4]
    return places


def test_stories_agree_with_a_second_reading_of_their_journeys():
    asked = ended = 0
    for doc in documents(300, seed=4, kind="story", turns=8):
        places = read_places(doc.context)
        if " In the end " in doc.context:
            ending = doc.context.split(" In the end ")[1]
            ended += 1
            assert dict(re.findall(r"(\w+), a \w+ \w+ \w+, was at the (\w+)", ending)) == places
        for turn in doc.turns:
            name = re.search(r"Where is (\w+) now", turn.request)
            if turn.kind == "where" and name and name[1] in NAMES:
                asked += 1
                assert turn.reply == f"at the {places[name[1]]}."
    assert asked > 100 and 200 < ended < 300


def test_questions_about_stories_have_an_ending_to_look_at():
    assert all(" In the end " in doc.context for doc, _ in questions(50, seed=5, kind="story"))


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
    captions = [t.reply for doc in documents(200, seed=2, kind="scene", turns=8) for t in doc.turns
                if t.kind == "draw"]
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
