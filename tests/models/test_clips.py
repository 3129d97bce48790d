"""The language of clips reads back what it writes, clips show what captions say, and the judge sees every
mistake."""

import dataclasses

import pytest
import torch

from inferlab.models.clips import (
    MOTIONS,
    WORDS,
    Mover,
    MovingScene,
    check_clip,
    check_clips,
    held_out_clips,
    parse_clip_caption,
    render_clips,
    sample_clips,
)
from inferlab.models.scenes.draw import CANVAS
from inferlab.models.scenes.language import BACKGROUNDS, COLORS, SHAPES
from training.captions import clip_caption_words


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_captions_and_scenes_are_two_ways_to_write_one_thing():
    for scene in sample_clips(300, seeded(), keep="all").scenes():
        assert parse_clip_caption(scene.caption) == scene
    assert parse_clip_caption("An  orange star Rises.") == MovingScene((Mover("star", "orange", "rises"),))


@pytest.mark.parametrize(
    "caption",
    [
        "a red circle",
        "a red circle moves",
        "",
        "a red circle moves up",
        "a red circle rises and",
        "a circle rises",
        "a red circle rises on a green background",
    ],
)
def test_what_is_not_a_caption_is_refused(caption):
    with pytest.raises(ValueError, match="not a caption"):
        parse_clip_caption(caption)


def test_a_refusal_names_the_unknown_words():
    with pytest.raises(ValueError, match="unknown words: dog, sleeps"):
        parse_clip_caption("a red dog sleeps")


def test_words_of_a_batch_are_the_words_of_its_captions():
    batch = sample_clips(200, seeded(1), keep="all")
    for row, scene in zip(clip_caption_words(batch).tolist(), batch.scenes(), strict=True):
        assert " ".join(WORDS[i] for i in row if i >= 0) == scene.caption
    rows = clip_caption_words(batch, omit=1.0, generator=seeded()).tolist()
    for row, scene in zip(rows, batch.scenes(), strict=True):
        said = parse_clip_caption(" ".join(WORDS[i] for i in row if i >= 0))
        assert said == dataclasses.replace(scene, background=None)


def test_shapes_stay_inside_and_apart_at_all_times():
    batch = sample_clips(500, seeded(2), keep="all")
    for passed in torch.linspace(0, 1, 9):
        at = batch.start + passed * (batch.end - batch.start)
        assert (at - batch.radius[..., None] >= 0).all() and (at + batch.radius[..., None] <= CANVAS).all()
        apart = (at[:, 0] - at[:, 1]).norm(dim=1) > batch.radius.sum(1)
        assert apart[batch.count == 2].all()


@pytest.mark.slow
def test_clips_are_right_by_the_judge_and_the_same_for_the_same_seed():
    batch = sample_clips(60, seeded(3), keep="all")
    clips = render_clips(batch)
    assert clips.shape == (60, 3, 17, 96, 96)
    assert 0 <= clips.min() and clips.max() <= 1
    noisy = (clips + 0.02 * torch.randn(clips.shape, generator=seeded())).clamp(0, 1)
    for shown in (clips, noisy):
        verdicts = check_clips(shown.transpose(1, 2), batch.scenes())
        assert [str(v) for v in verdicts if not v.right] == []
    assert torch.equal(render_clips(sample_clips(60, seeded(3), keep="all")), clips)


def other(value, values):
    return next(v for v in values if v != value)


def mistakes(scene: MovingScene):
    """Every attribute of the scene, each changed alone: (name of the attribute, the changed scene)."""
    first = scene.movers[0]
    for name, values in {"shape": SHAPES, "color": tuple(COLORS), "motion": MOTIONS}.items():
        mover = dataclasses.replace(first, **{name: other(getattr(first, name), values)})
        yield name, dataclasses.replace(scene, movers=(mover, *scene.movers[1:]))
    yield "background", dataclasses.replace(scene, background=other(scene.background, tuple(BACKGROUNDS)))
    if len(scene.movers) == 2:
        yield "count", dataclasses.replace(scene, movers=scene.movers[:1])


@pytest.mark.slow
def test_each_mistake_is_seen_and_named():
    batch = sample_clips(16, seeded(4), keep="all")
    for clip, scene in zip(render_clips(batch).transpose(1, 2), batch.scenes(), strict=True):
        for name, wrong in mistakes(scene):
            verdict = check_clip(clip, wrong)
            assert name in verdict.wrong, (scene.caption, wrong.caption, str(verdict))


@pytest.mark.slow
def test_motions_that_changed_places_are_a_mistake():
    batch = sample_clips(60, seeded(5), two=1.0, keep="all")
    clips, seen = render_clips(batch).transpose(1, 2), 0
    for clip, scene in zip(clips, batch.scenes(), strict=True):
        a, b = scene.movers
        if a.motion != b.motion:
            swapped = dataclasses.replace(
                scene,
                movers=(dataclasses.replace(a, motion=b.motion), dataclasses.replace(b, motion=a.motion)),
            )
            assert "motion" in check_clip(clip, swapped).wrong
            seen += 1
    assert seen > 20


def test_a_clip_that_fades_or_stops_is_wrong():
    clip = render_clips(sample_clips(1, seeded(6), two=0.0, keep="all")).transpose(1, 2)[0]
    scene = sample_clips(1, seeded(6), two=0.0, keep="all").scenes()[0]
    assert check_clip(clip, scene).right
    faded = clip.clone()
    faded[-1] = faded[-1, :, :1, :1]
    assert {"count", "shape", "color", "motion"} <= set(check_clip(faded, scene).wrong)
    frozen = clip[:1].expand(17, -1, -1, -1)
    assert ("motion" in check_clip(frozen, scene).wrong) == (scene.movers[0].motion != "stays still")


def test_the_judge_takes_what_pipelines_return():
    from PIL import Image

    batch = sample_clips(1, seeded(7), keep="all")
    caption, clip = batch.scenes()[0].caption, render_clips(batch)[0].transpose(0, 1)
    pixels = (clip * 255).round().byte().permute(0, 2, 3, 1)
    frames = [Image.fromarray(frame.numpy()) for frame in pixels]
    for shown in (clip, pixels, pixels.numpy(), frames):
        assert check_clip(shown, caption).right
    with pytest.raises(ValueError, match="expected 1 clips"):
        check_clip(clip[:2], caption)


def test_held_out_scenes_are_never_filmed_for_training():
    train, test = sample_clips(3000, seeded(8)), sample_clips(300, seeded(9), keep="test")
    assert not held_out_clips(train).any()
    assert held_out_clips(test).all()

    def pair(scene):
        return frozenset((m.shape, m.color) for m in scene.movers)

    seen = {pair(scene) for scene in train.scenes() if len(scene.movers) == 2}
    assert not seen & {pair(scene) for scene in test.scenes() if len(scene.movers) == 2}
    with pytest.raises(ValueError, match="keep"):
        sample_clips(1, seeded(), keep="validation")
