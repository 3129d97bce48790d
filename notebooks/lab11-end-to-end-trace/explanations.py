"""What the explanations of lab11-end-to-end-trace are held against:
a block fills the `### HIDDEN TESTS` line of its check."""

# %% fixture="facts"
@reference
def facts():
    """The run of section 3, traced again; its shapes and bytes do not depend on prompt or seed."""
    from inferlab.models import load_pipeline
    from inferlab.trace import trace

    pipe = load_pipeline("bundled", "cpu")
    pipe.set_progress_bar_config(disable=True)
    with trace(pipe) as again:
        pipe("a red circle", num_inference_steps=4, guidance_scale=4.0)
    return again.facts()

# %% fixture="words"
from inferlab.lab import Words

words = Words("whole-run", """
state: what updates the latents, and from what; what turns them into the picture, and when
    who: the scheduler = scheduler.step, DDIM, sampler / the UNet = denoiser, network / the VAE =
        decoder / the text encoder / Stable Diffusion = latent diffusion model, diffusion model
    updates = changes, denoises, steps: the latents = state / the text = prompt, embeddings / the weights
    predicts = estimates: the noise = noise_pred, noise prediction / the next latents / the picture = image
    computes = makes, generates: the next latents = new latents, cleaner latents, less noisy latents /
        the picture
    decodes = turns, converts, maps: the latents
    encodes: the picture / the text
    adds: the noise
    more: from the predicted noise = with predicted noise, from noise, from noise_pred, with noise, with
        noise_pred, from noise prediction, using predicted noise, from that prediction / from the latents /
        from the text / into the picture = into pixels / in each step = once in each step, once per step, in
        every step, at each step, at every step, at each timestep, at every timestep / once after the loop =
        after the loop, at the end / once = only once, one time / once before the loop = before the loop, at
        the start
axis: how the channels, and how height and width change in vae.decode: from how long to how long
    who: the channel axis = channels, axis 1 / height and width = height, width, sides, side,
        spatial axes, two spatial axes / the batch axis = batch, axis 0 / the shape = shape of the latents,
        latents
    goes from # to # = grows from # to #, changes from # to #, shrinks from # to #:
    grows by a factor of # = grows by #, gets # larger, becomes # larger, gets # bigger,
        gets # times larger, becomes # times larger, gets # times bigger:
    stays at # = stays #, remains #, is #:
    stays the same = remains the same:
    changes:
    more: in vae.decode = in the VAE, in the decode / once after the loop / in each step / because of
        guidance = for guidance / because of the colours = for red, green and blue, because of RGB, for
        RGB / because of transparency = for transparency, because of alpha
trade-off: what guidance improves, and what it costs in the UNet
    who: guidance = classifier-free guidance, cfg
    raises = increases, doubles, makes larger: the match with the prompt = quality, picture quality, quality
        of the picture, prompt adherence, fidelity, fidelity to the prompt / the batch of the UNet = UNet's
        batch, batch / the time of each step = latency, time, compute, work / the number of UNet calls = UNet
        calls, calls, number of calls, number of steps, steps / the batch of the VAE = VAE's batch / the size
        of the weights = weights / the variety of the pictures = variety, diversity
    lowers = reduces, decreases, halves: the match with the prompt / the batch of the UNet / the time of each
        step / the number of UNet calls / the batch of the VAE / the size of the weights / the variety of the
        pictures
    improves: the match with the prompt / the variety of the pictures
    leaves alone = does not change, keeps: the match with the prompt / the batch of the UNet / the time of
        each step / the number of UNet calls / the batch of the VAE / the size of the weights /
        the variety of the pictures
    more: in each step = in each call, in every call
length: a name
""")

# %% check="whole-run-length"
from inferlab.lab.explain import named

check.slot(lambda: named(check.explanation("whole-run"), "length", {
    "set_timesteps": "set_timesteps", "unet": "unet", "step": "step", "another": "vae text_encoder",
    "": "pipe scheduler num_inference_steps 4",
}, {
    "set_timesteps": "",
    "unet": "the UNet runs as often as it is called: the scheduler laid out the loop",
    "step": "by then the loop is running: its length was decided before",
    "another": "another boundary decided the length",
}), "who decided the length of the loop")

# %% check="whole-run-state"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("whole-run"), "state", """
wanted: what updates the latents, and from what
    the scheduler | updates | the latents | +from the predicted noise / from the latents / in each step
    the scheduler | computes | the next latents | +from the predicted noise / from the latents / in each step
wanted: what turns the latents into the picture, and when
    the VAE | decodes | the latents | +once after the loop / +once / into the picture / from the latents
    the VAE | computes | the picture | +once after the loop / +once / from the latents
true
    the UNet | predicts | the noise | from the latents / from the text / in each step
    the text encoder | encodes | the text | once before the loop / once
false: That is the name of a family. Which component does it, and to what?
    Stable Diffusion | *
false: The VAE works once, after the loop, and it decodes.
    the VAE | *
false: The UNet answers in latents, and the scheduler returns them; the VAE makes the picture.
    the UNet / the scheduler | predicts / computes | the picture
    the UNet / the scheduler | decodes | the latents
false: The UNet only predicts. What updates the latents?
    the UNet | updates / predicts / computes | the latents / the next latents
false: Predicting is the UNet's part. The scheduler only does arithmetic with the prediction.
    the scheduler | predicts | *
false: Only the latents change from step to step. The text and the weights stay as they are.
    * | updates | the text / the weights
false: A step takes noise out of the latents. It puts none in.
    * | adds | the noise
"""), "what is transformed, by what, and what makes the picture")

# %% check="whole-run-axis"
### FIXTURE facts

### FIXTURE words

before, after = (facts()[f"vae.decode.{name}.shape"] for name in ("inputs.z", "outputs"))
check.slot(lambda: words.grade(check.explanation("whole-run"), "axis", """
wanted: how the channels change
    the channel axis | goes from {c} to {colours} | |
        in vae.decode / once after the loop / because of the colours
    the shape | goes from {before} to {after} / goes from {one} to {large_one} | |
        in vae.decode / once after the loop
wanted: how height and width change
    height and width | goes from {side} to {large} / goes from {sides} to {larges} | |
        in vae.decode / once after the loop
    the shape | goes from {before} to {after} / goes from {one} to {large_one} | |
        in vae.decode / once after the loop
true
    height and width | grows by a factor of {factor} | | in vae.decode / once after the loop
    the batch axis | stays at 1 / stays the same | | in vae.decode / once after the loop / in each step
    the channel axis / height and width / the shape | stays the same | | +in each step
    the channel axis / height and width / the shape | changes | | in vae.decode / once after the loop
    the channel axis | changes | | in vae.decode / once after the loop / because of the colours
false: The 4 are channels of the latent space, and the 3 are red, green and blue.
    the channel axis | * | * | because of transparency / because of guidance
false: The batch stays as it is in the decode.
    the batch axis | *
false: The decode is made once, after all steps.
    * | * | * | in each step
false: Each side grows eightfold in the decode, and there are fewer channels, not as many and not more.
    the channel axis / height and width / the shape | *
""", {"before": before, "after": after, "c": before[1], "colours": after[1], "side": before[2],
      "large": after[2], "sides": before[2:], "larges": after[2:], "factor": after[2] // before[2],
      "one": before[1:], "large_one": after[1:]}),
           "what happens to the shape, with its numbers")

# %% check="whole-run-trade-off"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("whole-run"), "trade-off", """
wanted: what guidance improves
    guidance | raises / improves | the match with the prompt | in each step
wanted: what it costs in the UNet
    guidance | raises | the batch of the UNet | in each step
    guidance | raises | the time of each step | in each step
true
    guidance | lowers | the variety of the pictures | in each step
    guidance | leaves alone | the number of UNet calls / the batch of the VAE / the size of the weights |
        in each step
false: Guidance doubles the batch of each UNet call: one model, as many calls, one picture to decode.
    guidance | lowers / leaves alone | the batch of the UNet / the time of each step
    guidance | raises / lowers | the number of UNet calls / the batch of the VAE / the size of the weights
false: Guidance decides what is drawn: the picture follows the prompt more closely.
    guidance | lowers / leaves alone | the match with the prompt
false: Guidance makes the pictures more alike, not more different.
    guidance | raises / improves / leaves alone | the variety of the pictures
"""), "what guidance gains and costs")
