"""One test for each kind of mistake that answers of authors who had seen neither rubric nor engine showed."""

import pytest
from answers import by_rubric_alone, prompts

from inferlab.lab.explain import grade, parse

LABS = {"02": "lab02-denoising-step", "04": "lab04-scheduler-loop", "10": "lab10-memory-optimization", "11": "lab11-end-to-end-trace"}


@pytest.mark.parametrize(("kind", "lab", "slot", "text", "verdict"), [
    # a direction word that states no direction of the choice
    ("ordinal", "11", "trade-off", "You pay for a second prediction at every step, and what you get is an image that listens to the prompt.", "award"),
    ("each time", "04", "trade-off", "Two steps are about twice as fast, but the picture is worse because it jumps further each time.", "award"),
    ("adjective of a noun", "04", "trade-off", "We save half the calls of the expensive network, so the run is quicker; the image is less faithful.", "award"),
    ("the alternative", "04", "trade-off", "It is faster, but the quality is lower and the result ends up where a longer run would not have put it.", "award"),
    ("heading", "10", "trade-off", "Good is that less memory is needed; bad is that it takes longer.", "award"),
    ("comparison", "10", "trade-off", "The peak is lower, but it is slower and the picture is not the same as without tiling.", "award"),
    ("otherwise", "10", "trade-off", "You can decode what would not fit in memory otherwise, the downside is that it is slower.", "award"),
    ("in exchange", "10", "trade-off", "A smaller working set in exchange for latency.", "award"),
    ("less behind", "04", "trade-off", "I pay two UNet calls less, so I am faster, but the picture gets worse.", "award"),
    ("not the same sooner", "04", "trade-off", "It takes half the time, but you do not get the same image quicker, you get a rougher one.", "award"),
    ("paid for in", "02", "trade-off", "More steps mean a cleaner image, paid for linearly in UNet calls.", "award"),
    ("one without", "11", "trade-off", "The picture fits the text better, and the price is about double the work because each step needs one with text and one without.", "award"),
    ("count, no lever", "04", "trade-off", "With 2 steps I must wait only the half, but the picture is coarser.", "award"),
    ("note", "10", "trade-off", "peak memory down, latency up", "award"),
    # the same words where they are directions
    ("denied rise", "02", "trade-off", "Time does not go up with more steps, and the picture does not get better.", "deny"),
    ("turned", "02", "trade-off", "More steps take less time and the image gets worse.", "deny"),
    ("both ways, surely", "02", "trade-off", "More steps are slower but better, and more steps are faster.", "deny"),
    # who does what
    ("by A which, and B which", "11", "state",
     "The loop transforms the latents, by UNet which predicts noise and scheduler which makes the step. The VAE makes from the last latents the picture.", "award"),
    ("what another does not do", "04", "state",
     "Latents are carried from one iteration to the next; UNet itself does not change them, and the scheduler's step makes the new value.", "award"),
    ("I think", "04", "state", "I think the latents are updated by the scheduler, from the noise that the UNet predicts.", "award"),
    ("none of that", "11", "state", "The latents get cleaned up by the scheduler from the UNet's prediction, and none of that is a picture until the VAE decodes it.", "award"),
    ("aside", "02", "state", "The UNet predicts the noise and the scheduler, by means of this prediction, makes the next latents.", "award"),
    ("noun, not verb", "02", "state", "The UNet guesses the noise and scheduler.step takes that guess and makes the next cleaner latents.", "award"),
    ("roles", "04", "state", "The latents are the accumulator; the net predicts and the DDIM scheduler computes their successor.", "award"),
    ("unknown agent", "04", "state", "The latents are moved to the next level by scale_model_input, and scheduler.step only counts.", "deny"),
    ("contradiction", "04", "state", "The latents are updated by the scheduler; the latents are, however, never updated during the loop.", "deny"),
    # numbers
    ("called N times", "04", "axis", "The UNet gets called 8 times in my run, each time with a batch of 1.", "deny"),
    ("of the", "10", "axis", "In width and height a tile has only 16 of the 32 positions, while 2 pictures remain in each call.", "award"),
    ("second pair", "11", "axis", "At vae.decode 4 channels -> 3 and 16 -> 128 per side.", "award"),
    ("left as it was", "11", "axis", "The shape goes (1,4,16,16) -> (1,3,128,128), and vae.decode leaves the shape at (1,4,16,16).", "deny"),
    ("goes in, comes out", "11", "axis", "vae.decode squeezes the picture: (1, 3, 128, 128) goes in and (1, 4, 16, 16) comes out", "deny"),
    ("no larger than", "10", "axis",
     "The batch axis is left alone: the input of shape (2, 4, 32, 32) reached the decoder as tiles no larger than (2, 4, 16, 16).", "review"),
    ("ellipsis", "10", "axis", "Height and width are cut, from 32 to 16; the batch (2) not.", "award"),
])
def test_kind(kind, lab, slot, text, verdict):
    rubrics, facts = prompts()[LABS[lab]]
    got = next(o[slot] for rubric in map(by_rubric_alone, rubrics) if slot in (o := grade(parse(f"{slot}: {text}\n", "x"), rubric, facts)))
    assert got.verdict == verdict, (kind, got)
