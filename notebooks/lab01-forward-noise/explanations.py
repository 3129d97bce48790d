"""What the explanations of lab01-forward-noise are held against:
a block fills the `### HIDDEN TESTS` line of its check."""

# %% fixture="words"
from inferlab.lab import Words

words = Words("one-example", """
example: who adds the noise and how, and who is asked for what
    who: add_noise = noising, scheduler.add_noise / the UNet = denoiser, model, network / the VAE = encoder
    encodes: the pictures = images
    mixes = adds: the noise into the latents = noise and latents, noise with latents, noise to
        latents / the noise into the pixels = noise to pixels, noise into pictures
    predicts = is asked for, estimates: the noise = noise that was added, noise in x_t, epsilon /
        the clean latents / the next latents = latents one step earlier
    makes = draws, generates: a new picture = picture, image
    more: in one sum = in one jump, in a single sum / in one call = in a single call / step after
        step = step by step / for all pictures at once = for the whole batch
t: what the number t is, and what it means in another schedule
    who: t = timestep
    is = counts: a row of the table = row of alphas_cumprod, row number, row number of the table, noise level
        / the number of pictures = pictures / the number of steps taken = steps, steps taken
    has: one entry for each picture = one entry a picture / one entry for the whole batch
    names = means: the same level in every schedule / another level in another schedule = different
        level in another schedule
last: how much of the picture is left at the last t
    who: Stable Diffusion's last t / the zero-terminal last t = zero-terminal schedule's last t /
        every schedule's last t = every last t
    leaves = keeps: some of the picture = part of the picture, anything of the picture / nothing of
        the picture = none of the picture, pure noise
picture: a number
""")

# %% check="words-example"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("one-example"), "example", """
wanted: who adds the noise, and how
    add_noise | mixes | the noise into the latents | +in one sum / +in one call / for all pictures at once
wanted: who is asked for what
    the UNet | predicts | the noise | for all pictures at once / in one sum / in one call
true
    the VAE | encodes | the pictures | for all pictures at once / in one call
    add_noise | mixes | the noise into the latents | for all pictures at once
false: Noise is not added step after step. One sum reaches any level, and the UNet is asked once.
    * | * | * | step after step
false: Noising is not the generator. A training step goes to one level, and nobody goes back from it.
    * | makes | *
    * | predicts | the next latents
false: The sum is fixed arithmetic. There is no network in it, and it predicts nothing.
    the UNet / the VAE | mixes | *
    add_noise / the VAE | predicts | *
false: The noise goes into the latents. Pixels are there before the encoder only.
    * | mixes | the noise into the pixels
false: This network was trained to answer with the noise.
    the UNet | predicts | the clean latents
"""), "a training example")

# %% check="words-level"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("one-example"), "t", """
wanted: what t is
    t | is | a row of the table
wanted: what the same t is in another schedule
    t | names | another level in another schedule
    t | not: names | the same level in every schedule
true
    t | has | one entry for each picture
false: t counts neither pictures nor the steps of a run. It is a row of the schedule's table: a noise level.
    t | is | the number of pictures / the number of steps taken
false: Each picture of a batch draws a t of its own.
    t | has | one entry for the whole batch
false: At the same t, two schedules can differ by a factor of more than ten.
    t | names | the same level in every schedule
"""), "what t is")
check.slot(lambda: words.grade(check.explanation("one-example"), "last", """
wanted: what is left with Stable Diffusion's schedule
    Stable Diffusion's last t | leaves | some of the picture
    Stable Diffusion's last t | not: leaves | nothing of the picture
wanted: what is left with a zero-terminal schedule
    the zero-terminal last t | leaves | nothing of the picture
    the zero-terminal last t | not: leaves | some of the picture
false: What is left at the last t depends on the schedule.
    every schedule's last t | leaves | *
false: The last t is pure noise only where the table ends at 0. Stable Diffusion's table does not.
    Stable Diffusion's last t | leaves | nothing of the picture
false: A zero-terminal schedule was bent so that nothing is left at its last t.
    the zero-terminal last t | leaves | some of the picture
"""), "the last t")

# %% check="words-language"
from inferlab.lab.explain import typed

check.slot(lambda: typed(check.explanation("one-example"), "picture", 0.68, {
    "that is the example's network: ask for the one that speaks v_prediction and answers 0.2": 0.875,
    "the answer was handed on as it is: it is a velocity": 0.2,
    "the answer was read as the noise: it is a velocity": 1.1,
    "that is the velocity of the straight line: this network speaks v_prediction": 0.6286,
    "that is the noise, and the picture was asked for": 0.76,
}, tolerance=0.01), "an answer, translated")
