"""Notes on library source stay with the text of their lines, and never stand beside a wrong one."""

import pytest
from diffusers import DDIMScheduler

from inferlab.lab import show_source, source
from inferlab.lab.source import MovedNote

CLAMP = "pred_original_sample = pred_original_sample.clamp("
EXCERPT = [("# 4. Clip or threshold", "-self.config.clip_sample_range, self.config.clip_sample_range")]


def shown(checked="0.42.1", notes=None, **options):
    return show_source(DDIMScheduler.step, notes or {CLAMP: "only x0 is clipped"}, excerpts=EXCERPT,
                       checked=checked, **options)


def test_a_note_stands_beside_the_line_whose_text_it_names():
    view = shown()
    noted = [line for block in view.blocks for line in block if line.note]
    assert [line.text.strip() for line in noted] == [CLAMP]
    assert "only x0 is clipped" in repr(view)
    assert "only x0 is clipped" in view._repr_html_()


def test_line_numbers_are_those_of_the_installed_file():
    import inspect

    file = inspect.getsource(inspect.getmodule(DDIMScheduler)).splitlines()
    for line in shown().blocks[0]:
        assert file[line.number - 1].strip() == line.text.strip()


def test_code_is_escaped_in_html():
    def less(a, b):
        return a < b  # <script>

    less.__module__ = "diffusers.fake"
    assert "<script>" not in show_source(less, {"return a < b": "smaller"})._repr_html_()


def test_a_note_has_the_lines_up_to_the_next_one_beside_it_and_nothing_is_lost():
    view = shown(notes={CLAMP: "first note", "if self.config.thresholding:": "second note"})
    pieces = view._repr_html_().split('<div style="display:flex;flex-wrap')[1:]
    assert [note for piece in pieces for note in ("first note", "second note")
            if note in piece] == ["second note", "first note"]
    assert sum(piece.count("<pre") for piece in pieces) == sum(map(len, view.blocks))
    assert "<table" not in view._repr_html_(), "a column of notes would be a word wide on a narrow page"


def test_a_moved_line_in_the_checked_version_is_an_error_that_names_the_note():
    with pytest.raises(MovedNote, match=r"the note 'why we clip'.*gone from here"):
        shown(notes={"gone from here": "why we clip"}, checked=source._version(DDIMScheduler.step))


def test_a_moved_line_in_another_version_shows_the_source_without_notes(monkeypatch):
    monkeypatch.delenv(source.STRICT, raising=False)
    view = shown(notes={"gone from here": "why we clip"}, checked="0.1.0")
    assert view.stale and "0.1.0" in view.stale
    assert not any(line.note for block in view.blocks for line in block)
    assert "left out" in repr(view) and "left out" in view._repr_html_()
    assert sum(map(len, view.blocks)) <= source.MAX_LINES


def test_ci_makes_a_moved_line_an_error_in_any_version(monkeypatch):
    monkeypatch.setenv(source.STRICT, "1")
    with pytest.raises(MovedNote, match="why we clip"):
        shown(notes={"gone from here": "why we clip"}, checked="0.1.0")


def test_text_on_several_lines_is_not_one_line():
    with pytest.raises(MovedNote, match="on 5 lines"):
        shown(notes={"pred_original_sample = ": "b"})


def test_a_note_outside_the_excerpt_is_refused():
    with pytest.raises(ValueError, match="inside an excerpt"):
        shown(notes={"# 1. get previous step value": "not shown"})


def test_more_than_a_few_dozen_lines_are_refused():
    with pytest.raises(ValueError, match="at most 60"):
        show_source(DDIMScheduler.step, {}, excerpts=[("def step(", "if not return_dict:")], checked="0.42.1")


def test_excerpts_out_of_order_are_refused():
    with pytest.raises(ValueError, match="order"):
        show_source(DDIMScheduler.step, {}, excerpts=[("# 4. Clip", "# 1. get previous step value")],
                    checked="0.42.1")
