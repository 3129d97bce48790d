"""The caption language reads back what it writes, pictures show what captions say, and the checker sees every
mistake."""

import dataclasses

import pytest
import torch

from inferlab.models.scenes import (
    BACKGROUNDS,
    COLORS,
    POSITIONS,
    RELATIONS,
    SHAPES,
    SIZES,
    WORDS,
    Scene,
    Thing,
    check_picture,
    check_pictures,
    held_out,
    parse_caption,
    render,
    sample_scenes,
)
from training.captions import caption_words


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_captions_and_scenes_are_two_ways_to_write_one_thing():
    for scene in sample_scenes(300, seeded(), keep="all").scenes():
        assert parse_caption(scene.caption) == scene
    assert parse_caption("An  orange star ") == Scene((Thing("star", "orange"),))
    assert parse_caption("a red ring and a blue ring").relation is None


@pytest.mark.parametrize("caption", [
    "a red", "a red dog", "", "red circle", "a red circle left of",
    "a red circle at the left and a blue ring",
    "a red circle left of a blue ring at the top", "a large circle",
])
def test_what_is_not_a_caption_is_refused(caption):
    with pytest.raises(ValueError, match="not a caption"):
        parse_caption(caption)


def test_a_refusal_names_the_unknown_words():
    with pytest.raises(ValueError, match="unknown words: dog, sleeping"):
        parse_caption("a red dog sleeping")


def test_words_of_a_batch_are_the_words_of_its_captions():
    batch = sample_scenes(200, seeded(1), keep="all")
    for row, scene in zip(caption_words(batch).tolist(), batch.scenes(), strict=True):
        assert " ".join(WORDS[i] for i in row if i >= 0) == scene.caption


def test_captions_that_leave_things_unsaid_are_captions_too():
    batch = sample_scenes(300, seeded(2), keep="all")
    texts = [" ".join(WORDS[i] for i in row if i >= 0) for row in caption_words(batch, omit=0.5,
                                                                                generator=seeded()).tolist()]
    for text, scene in zip(texts, batch.scenes(), strict=True):
        said = parse_caption(text)
        assert said.caption == text
        assert [(t.shape, t.color) for t in said.things] == [(t.shape, t.color) for t in scene.things]
        assert said.background in (None, scene.background)
    assert any("and" in text.split() for text in texts)


@pytest.mark.slow
def test_pictures_are_right_by_the_checker_and_the_same_for_the_same_seed():
    batch = sample_scenes(150, seeded(3), keep="all")
    pictures = render(batch)
    assert pictures.shape == (150, 3, 128, 128)
    assert 0 <= pictures.min() and pictures.max() <= 1
    noisy = (pictures + 0.02 * torch.randn(pictures.shape, generator=seeded())).clamp(0, 1)
    for shown in (pictures, noisy):
        verdicts = check_pictures(shown, batch.scenes())
        assert [str(v) for v in verdicts if not v.right] == []
    assert torch.equal(render(sample_scenes(150, seeded(3), keep="all")), pictures)


def other(value, values):
    return next(v for v in values if v != value)


def mistakes(scene: Scene):
    """Every attribute of the scene, each changed alone: (name of the attribute, the changed scene)."""
    first = scene.things[0]
    change = {"shape": SHAPES, "color": tuple(COLORS), "size": SIZES}
    for name, values in change.items():
        thing = dataclasses.replace(first, **{name: other(getattr(first, name), values)})
        yield name, dataclasses.replace(scene, things=(thing, *scene.things[1:]))
    yield "background", dataclasses.replace(scene, background=other(scene.background, tuple(BACKGROUNDS)))
    if scene.relation:
        yield "relation", dataclasses.replace(scene, relation=other(scene.relation, RELATIONS))
        yield "count", Scene(scene.things[:1], None, None, scene.background)
    else:
        yield "position", dataclasses.replace(scene, position=other(scene.position, POSITIONS))


@pytest.mark.slow
def test_each_mistake_is_seen_and_named():
    batch = sample_scenes(24, seeded(4), keep="all")
    for picture, scene in zip(render(batch), batch.scenes(), strict=True):
        for name, wrong in mistakes(scene):
            verdict = check_picture(picture, wrong)
            assert name in verdict.wrong, (scene.caption, wrong.caption, str(verdict))


def test_colors_that_changed_places_are_a_mistake():
    picture = render(sample_scenes(400, seeded(5), two=1.0, keep="all"))
    scenes = sample_scenes(400, seeded(5), two=1.0, keep="all").scenes()
    seen = 0
    for shown, scene in zip(picture, scenes, strict=True):
        a, b = scene.things
        if a.color != b.color and a.shape != b.shape and seen < 20:
            swapped = dataclasses.replace(scene, things=(
                dataclasses.replace(a, color=b.color), dataclasses.replace(b, color=a.color)))
            assert "color" in check_picture(shown, swapped).wrong or "shape" in check_picture(shown,
                                                                                              swapped).wrong
            seen += 1
    assert seen == 20


def test_smudges_specks_and_noise_are_not_shapes():
    blank = torch.full((3, 128, 128), 0.97)
    assert check_picture(blank, "a red circle").wrong == ["count", "shape", "color"]
    bar = blank.clone()
    bar[:, 60:70, 20:110] = torch.tensor(COLORS["red"])[:, None, None]
    assert check_picture(bar, "a red square").wrong == ["shape"]
    halves = blank.clone()
    halves[:, 40:80, 40:60] = torch.tensor(COLORS["red"])[:, None, None]
    halves[:, 40:80, 60:80] = torch.tensor(COLORS["blue"])[:, None, None]
    assert "color" in check_picture(halves, "a red square").wrong
    assert not check_picture(torch.rand(3, 128, 128, generator=seeded()), "a red square").right


def test_the_checker_takes_what_pipelines_return():
    from PIL import Image

    batch = sample_scenes(1, seeded(6), keep="all")
    caption, picture = batch.scenes()[0].caption, render(batch)[0]
    pixels = (picture * 255).round().byte().permute(1, 2, 0)
    image = Image.fromarray(pixels.numpy())
    for shown in (picture, pixels, pixels.numpy(), image, image.resize((256, 256))):
        assert check_picture(shown, caption).right
    with pytest.raises(ValueError, match="expected one picture"):
        check_picture(torch.zeros(2, 128, 128), caption)


def test_held_out_scenes_are_never_drawn_for_training():
    train, test = sample_scenes(4000, seeded(7)), sample_scenes(400, seeded(8), keep="test")
    assert not held_out(train).any()
    assert held_out(test).all()

    def pair(scene):
        return frozenset((t.shape, t.color) for t in scene.things)

    seen = {pair(scene) for scene in train.scenes() if len(scene.things) == 2}
    assert not seen & {pair(scene) for scene in test.scenes() if len(scene.things) == 2}
    with pytest.raises(ValueError, match="keep"):
        sample_scenes(1, seeded(), keep="validation")
