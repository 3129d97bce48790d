# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Lab 02 · One denoising step
#
# A diffusion pipeline makes a picture by repeating one small update. In this lab you take that update apart,
# in a real `StableDiffusionPipeline`: what goes into the network, what comes out, and which lines of the
# scheduler compute the next latents from it.
#
# You predict a run before you make it, read the library's own code, write the step by hand until it draws
# *the same picture, bit for bit*, and then find two faults that show in no shape and no error message.
#
# **Time** 60 to 70 minutes · **Points** 19, of which 3 are practice (exercise 2) · **Reading**
# [One denoising step](../../handbook/lab02-denoising-step.md) in the handbook, before you start

# %% tags=["parameters"]
LEARNER = ""  # your name or id, as your course knows you
MODEL = "bundled"  # "bundled" | "full" | "hub"
DEVICE = "auto"  # "auto" | "cpu" | "cuda"
SEED = 7

# %% [markdown]
# The bundled model is a small trained latent-diffusion model with every part of the big ones; it runs on two
# CPU cores. `"full"` builds Stable Diffusion 1.5's architecture with random weights (real shapes and costs,
# no pictures); `"hub"` downloads a real checkpoint. Grading always uses `"bundled"` on the CPU.

# %%
from inferlab.lab import start

lab = start("lab02-denoising-step", LEARNER, MODEL, DEVICE, SEED)

# %%
import torch
from diffusers import DDIMScheduler
from inferlab.models import load_pipeline

pipe = load_pipeline(MODEL, lab.device)
# a checkpoint may bring another scheduler
pipe.scheduler = DDIMScheduler.from_config(pipe.scheduler.config, clip_sample=False)
pipe.set_progress_bar_config(disable=True)
print(type(pipe).__name__, "·", type(pipe.unet).__name__, "·", type(pipe.scheduler).__name__)

# %% [markdown]
# ## 1 · Goal and mental model
#
# After this lab you can say what one reverse update does, which part of it the UNet and the scheduler do, and
# how you would notice that the two disagree.
#
# | who | gets | gives | knows nothing about |
# |---|---|---|---|
# | the **UNet** | the noisy latents $x_t$, the timestep $t$, the text | a *prediction* (`noise_pred`), shaped like the latents | how far the next step goes |
# | the **scheduler** | that prediction, $t$ and $x_t$ | the latents of the next, cleaner timestep | text, pictures, networks |
#
# So one step is **a model prediction plus scheduler arithmetic**. All of the arithmetic rests on one line,
# the forward process, which mixes a clean latent $x_0$ with noise $\epsilon$:
#
# $$x_t = \sqrt{\bar\alpha_t}\;x_0 + \sqrt{1-\bar\alpha_t}\;\epsilon$$
#
# The scheduler holds the table of $\bar\alpha_t$ as `alphas_cumprod`. It says how much of the signal's power
# (the squared weight of $x_0$) is left at each timestep.

# %%
table = pipe.scheduler.alphas_cumprod
for t in (0, 250, 500, 750, 999):
    print(f"t = {t:3d}   signal² = {table[t]:.4f}   noise² = {1 - table[t]:.4f}")

# %% [markdown]
# At `t = 0` almost everything is picture, at `t = 999` almost everything is noise, and the two columns always
# add up to 1. A run goes down in `t`, from mostly noise to mostly picture.

# %% [markdown]
# ![A quarter circle with clean signal on the horizontal and noise on the vertical axis; a step goes from x_t
# to x_0 and back to x_prev.](../../handbook/figures/lab02-circle.svg)
#
# *From the handbook.* Every noisy latent lies on a quarter circle between the clean sample and the noise. A
# step jumps to the guess of the clean sample, then returns to a point with a little less noise. (Stable
# Diffusion 1.5's schedule, t = 501, 10 steps. The bundled model's schedule has the same form and ends a
# little noisier.)

# %% [markdown]
# ## 2 · Predict
#
# Below you will ask the pipeline for one picture, with these settings:

# %%
PROMPT = "a large blue ring left of a small yellow square on a white background"
STEPS = 10
GUIDANCE = 4.0

# %% [markdown]
# ### Exercise 1 · What crosses the UNet's boundary?
#
# *difficulty 2 of 3 · 5 minutes · 3 points*
#
# **Before you run anything**, write a function that says what the trace of a run will show at the UNet. It is
# graded on runs that this notebook never makes, for example three prompts at 96x160 pixels without guidance.
#
# | argument | meaning |
# |---|---|
# | `prompts` | number of prompts in the call, `int` |
# | `height`, `width` | size of the pictures asked for, in pixels |
# | `guidance_scale` | `float`, as passed to the pipeline |
# | `steps` | `num_inference_steps` of a `DDIMScheduler` |
#
# Returns a `dict`: `"calls"`, how often the UNet runs (`int`), and the shapes (tuples of `int`) of
# `"sample"`, its input of latents, and of `"output"`.
#
# <details><summary>Hint 1: a nudge</summary>
# You need three facts. The VAE's latents have 4 channels, and an eighth of the picture's height and width.
# Classifier-free guidance changes the batch, but not the number of calls. And the pipeline uses guidance only
# from some value of <code>guidance_scale</code> on: look at
# <code>??type(pipe).do_classifier_free_guidance</code>.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# The batch is <code>prompts</code>, or twice that with guidance. <code>sample</code> and <code>output</code>
# have that batch, 4 channels, and the picture's height and width over 8. The number of calls is
# <code>steps</code> in either case.
# </details>

# %% exercise="forecast" provides=["forecast"] difficulty=2 minutes=5
def forecast(prompts, height, width, guidance_scale, steps):
    """What a traced run shows at the UNet: its number of calls and the shapes of its latents."""
    ### BEGIN SOLUTION
    batch = prompts * (2 if guidance_scale > 1 else 1)
    calls = steps
    sample = output = (batch, 4, height // 8, width // 8)
    ### END SOLUTION
    return {"calls": calls, "sample": sample, "output": output}

# %% [markdown]
# ## 3 · Trace
#
# Now the real run. `trace(pipe)` records every boundary (a call that data goes into and comes out of), also
# the pipeline's hidden steps. It does not change the picture. We make the starting noise ourselves, so that
# we can use the same noise again later.

# %%
side = pipe.unet.config.sample_size
noise = torch.randn(1, 4, side, side, generator=torch.Generator().manual_seed(SEED)).to(lab.device,
                                                                                        pipe.unet.dtype)

# %% tags=["demo"]
from inferlab.trace import trace

with trace(pipe) as run:
    image = pipe(PROMPT, num_inference_steps=STEPS, guidance_scale=GUIDANCE, latents=noise).images[0]
run.table(level=1)  # `run` alone shows the nested boundaries too

# %% tags=["demo"]
image

# %% [markdown]
# The table shows steps that are alike as one line. Read it from the top, and stop at three places:
#
# * the **UNet's line**: the batch of its `sample` is not the number of prompts. Two copies of the latents go
#   in, one beside the empty text and one beside yours;
# * **`scheduler.step`**: here the batch is the number of prompts again. Guidance happened in between. It is
#   inline code of the pipeline and no call, so the table marks it as inferred;
# * the **last lines**: three channels and the picture's full height and width appear only here, when the VAE
#   decodes after the loop. The UNet does not output pixels.

# %% [markdown]
# **Reconcile.** Put your forecast beside the UNet's line. Where they differ, the table is right: find out why
# before you change the function.

# %% tags=["demo"]
at_unet = run["unet"]
print("calls: ", at_unet.calls)
print("sample:", tuple(at_unet.inputs["sample"].shape))
print("output:", tuple(at_unet.outputs.shape))

# %% check="forecast" points=3
from inferlab.lab import Check, reference

check = Check("forecast", points=3)

def ask_forecast(*run):
    """The learner's forecast of a run, once it has the form that the contract asks for."""
    got = check.learner.forecast(*run)
    check.true(isinstance(got, dict) and set(got) == {"calls", "sample", "output"},
               "return a dict with exactly the three keys of the contract")
    check.true(isinstance(got["sample"], tuple) and isinstance(got["output"], tuple),
               "each shape is a tuple, such as (1, 2, 3)")
    return got

with check.part("one prompt at 128x128 with guidance, as in the traced run", weight=1):
    got = ask_forecast(1, 128, 128, 4.0, 10)
    ### HIDDEN TESTS
    check.equal(got, {"calls": 10, "sample": (2, 4, 16, 16), "output": (2, 4, 16, 16)})
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 4 · Read
#
# Here is the scheduler's half of the step: the installed `DDIMScheduler.step`, with notes beside the lines
# that matter. Keep the forward process of section 1 in mind: each line solves that one equation for
# something.

# %% jupyter={"source_hidden": true}
from inferlab.lab import show_source

show_source(
    DDIMScheduler.step,
    {
        "prev_timestep = timestep - self.config.num_train_timesteps // self.num_inference_steps":
            "The library calls the next, cleaner timestep prev(ious): t minus a fixed stride. The list of "
            "timesteps is not used. In a run's last step the result is negative.",
        "alpha_prod_t_prev = self.alphas_cumprod[prev_timestep] if prev_timestep >= 0 else "
        "self.final_alpha_cumprod":
            "Two sources for one number. Which of them serves the last step, "
            "and what does set_alpha_to_one have to do "
            "with it?",
        "pred_original_sample = (sample - beta_prod_t ** (0.5) * model_output) / alpha_prod_t ** (0.5)":
            "The forward process solved for the clean sample. Only in this branch is model_output taken to "
            "be noise.",
        "pred_original_sample = model_output":
            "Same argument, same shape, another meaning: here model_output is taken to be "
            "the clean "
            "sample itself.",
        "pred_original_sample = (alpha_prod_t**0.5) * sample - (beta_prod_t**0.5) * model_output":
            "And here to be a velocity. Nothing checks which of the three the network was trained for.",
        "pred_original_sample = pred_original_sample.clamp(":
            "Clipping changes the clean sample and nothing else: pred_epsilon was computed above and stays "
            "as it was.",
        "if use_clipped_model_output:":
            "Off unless asked for. So after a clip, clean sample and noise no longer add up to x_t.",
        "pred_sample_direction = (1 - alpha_prod_t_prev - std_dev_t**2) ** (0.5) * pred_epsilon":
            "With eta = 0, std_dev_t is 0: the predicted noise goes back in, at the cleaner level.",
        "prev_sample = alpha_prod_t_prev ** (0.5) * pred_original_sample + pred_sample_direction":
            "The forward process once more, from the predicted clean sample and the predicted noise.",
    },
    excerpts=[
        ("# 1. get previous step value",
         "pred_epsilon = (alpha_prod_t**0.5) * model_output + (beta_prod_t**0.5) * sample"),
        ("elif self.config.clip_sample:", "-self.config.clip_sample_range, self.config.clip_sample_range"),
        ("if use_clipped_model_output:",
         "prev_sample = alpha_prod_t_prev ** (0.5) * pred_original_sample + pred_sample_direction"),
    ],
    checked="0.42.1",
)

# %% [markdown]
# In words: a DDIM step *jumps all the way* to a guess of the clean latents, and then *goes most of the way
# back*: it mixes the predicted noise in again, at a slightly lower level. The scheduler's config decides
# which lines run:

# %%
for key in ("prediction_type", "clip_sample", "set_alpha_to_one", "steps_offset", "timestep_spacing"):
    print(f"{key:17s} {pipe.scheduler.config[key]}")

# %% [markdown]
# ## 5 · Build
#
# First the scheduler's half, then the whole step. All tensors are `float32`, and your functions may use only
# their arguments.

# %% [markdown]
# ### Exercise 2 · One DDIM step by hand
#
# *difficulty 2 of 3 · 7 minutes · 3 points*
#
# Write the update of section 4 for a network that predicts noise (`prediction_type="epsilon"`, `eta=0`).
#
# | argument | meaning |
# |---|---|
# | `noise_pred`, `x_t` | `(B, C, H, W)` |
# | `alpha_t`, `alpha_prev` | $\bar\alpha$ at this timestep and at the next, cleaner one, which the library calls `prev`(ious), `float` |
# | `clip_range` | `None` for `clip_sample=False`, otherwise the predicted clean sample is limited to ± this number |
#
# Returns the latents at that next timestep, `(B, C, H, W)`: what `DDIMScheduler.step` returns as
# `prev_sample`, to within 1e-5.
#
# <details><summary>Hint 1: a nudge</summary>
# Two lines: solve the forward process for the clean sample, then mix again. For <code>clip_range</code>, look
# which variable the library clips, and what it does <i>not</i> compute again afterwards.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# The clean sample is <code>x_t</code> less <code>(1 - alpha_t) ** 0.5</code> times the noise, over
# <code>alpha_t ** 0.5</code>; clamp it if a range is given. Then mix it with the <i>same</i>
# <code>noise_pred</code>, with the two factors that belong to <code>alpha_prev</code>.
# </details>

# %% exercise="ddim-step" provides=["ddim_step"] difficulty=2 minutes=7
def ddim_step(noise_pred, x_t, alpha_t, alpha_prev, clip_range=None):
    """The latents at the next, cleaner timestep, from the predicted noise."""
    ### BEGIN SOLUTION
    clean = (x_t - (1 - alpha_t) ** 0.5 * noise_pred) / alpha_t**0.5
    if clip_range is not None:
        clean = clean.clamp(-clip_range, clip_range)
    return alpha_prev**0.5 * clean + (1 - alpha_prev) ** 0.5 * noise_pred
    ### END SOLUTION

# %% check="ddim-step" points=3
import torch
from diffusers import DDIMScheduler
from inferlab.lab import Check, close

check = Check("ddim-step", points=3)
theirs = check.learner

def library(noise_pred, x_t, t, steps=20, **config):
    """DDIMScheduler.step itself, and the two values of alphas_cumprod that it used."""
    scheduler = DDIMScheduler(beta_schedule="scaled_linear", beta_end=0.012, beta_start=0.00085, **config)
    scheduler.set_timesteps(steps)
    prev, table = t - 1000 // steps, scheduler.alphas_cumprod
    alphas = float(table[t]), float(table[prev] if prev >= 0 else scheduler.final_alpha_cumprod)
    return scheduler.step(noise_pred, t, x_t).prev_sample, *alphas

e, x = torch.randn(2, 2, 4, 8, 8, generator=torch.Generator().manual_seed(3))
with check.part("a step in the middle of a run", weight=1):
    want, a, p = library(e, x, 501, clip_sample=False)
    got = theirs.ddim_step(e, x, a, p)
    ### HIDDEN TESTS
    check.close(got, want, tol=1e-5)
### HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 3 · The whole step, as the pipeline makes it
#
# *difficulty 2 of 3 · 8 minutes · 3 points*
#
# Now put the UNet and the scheduler together. You get them as functions, so that any network and any
# scheduler will do:
#
# * `unet(sample, t, prompt_embeds)` returns the network's prediction for each row of `sample`;
# * `step(noise_pred, t, latents)` returns the next latents.
#
# `one_step(unet, step, latents, t, prompt_embeds, guidance_scale)` performs one reverse update on `latents`,
# `(B, 4, h, w)`, and returns what `step` returned. With guidance (`guidance_scale > 1`) `prompt_embeds` has
# `2B` rows, **first the B unconditional ones, then the B conditional ones**, and both halves go through the
# UNet in **one** call. Without guidance it has `B` rows. The guided prediction is
# $\epsilon_\text{uncond} + s\,(\epsilon_\text{cond} - \epsilon_\text{uncond})$.
#
# The check looks at your function's calls, their arguments, and what it returns.
#
# <details><summary>Hint 1: a nudge</summary>
# Your trace has the shapes: the batch is doubled on the way into the UNet and halved again before
# <code>scheduler.step</code>. <code>torch.cat</code> on the way in, <code>.chunk(2)</code> on the way out.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# Without guidance: one call with <code>latents</code> as they are, and its answer goes to
# <code>step</code>. With guidance: call <code>unet</code> on the latents stacked twice, cut the answer in
# two halves along the batch, mix them by the formula, and hand the mix and the <i>single</i> latents to
# <code>step</code>.
# </details>

# %% exercise="one-step" provides=["one_step"] difficulty=2 minutes=8
def one_step(unet, step, latents, t, prompt_embeds, guidance_scale):
    """One reverse update: a prediction of the network, guided if asked for, and the scheduler's
    arithmetic."""
    ### BEGIN SOLUTION
    if guidance_scale <= 1:
        return step(unet(latents, t, prompt_embeds), t, latents)
    uncond, cond = unet(torch.cat([latents, latents]), t, prompt_embeds).chunk(2)
    return step(uncond + guidance_scale * (cond - uncond), t, latents)
    ### END SOLUTION

# %% check="one-step" points=3
import torch
from inferlab.lab import Check, close

check = Check("one-step", points=3)
g = torch.Generator().manual_seed(5)
lat, emb = torch.randn(2, 4, 6, 10, generator=g), torch.randn(4, 16, 8, generator=g)
shift = emb.mean(dim=(1, 2)).reshape(-1, 1, 1, 1)
plain, asked = lat * 0.5 + shift[:2], lat * 0.5 + shift[2:]

def observe(scale):
    """Let the learner's step run with a network and a scheduler that write down what they get."""
    seen, given = [], []
    def network(sample, t, prompt_embeds):
        check.tensor(sample)
        check.tensor(prompt_embeds)
        check.equal(len(sample), len(prompt_embeds), "the UNet got different batches of latents and of text")
        seen.append((sample, t, prompt_embeds))
        return sample * 0.5 + prompt_embeds.mean(dim=(1, 2)).reshape(-1, 1, 1, 1)
    def scheduler(noise_pred, t, latents):
        check.tensor(noise_pred)
        check.tensor(latents)
        given.append((noise_pred, t, latents))
        return 0.9 * latents + noise_pred.mean()
    got = check.learner.one_step(network, scheduler, lat, 401, emb if scale > 1 else emb[2:], scale)
    check.true(seen and given,
               "a step calls both: the UNet for a prediction and the scheduler for the update")
    return got, seen, given

with check.part("returns what the scheduler returned", weight=1):
    got, seen, given = observe(4.0)
    check.equal(len(given), 1, "one reverse update is one call of `step`")
    check.close(got, 0.9 * given[0][2] + given[0][0].mean(), tol=1e-5)
### HIDDEN TESTS
check.score()

# %% [markdown]
# ### Your step, driving the real pipeline
#
# The next cells give your function the real UNet and the real scheduler, and put a short loop around it. The
# loop starts from the noise of the traced run and makes the same calls.

# %% jupyter={"source_hidden": true}
@torch.no_grad()
def unet(sample, t, prompt_embeds):
    """The real network, in the form that `one_step` takes."""
    return pipe.unet(sample, t, encoder_hidden_states=prompt_embeds, return_dict=False)[0]


with torch.no_grad():
    cond, uncond = pipe.encode_prompt(PROMPT, lab.device, 1, do_classifier_free_guidance=True)
prompt_embeds = torch.cat([uncond, cond])

# %% jupyter={"source_hidden": true}
from functools import cache


@cache
def drive(one_step):
    """A whole run with this `one_step`: the last latents, and the predicted clean latents at each
    timestep."""
    guesses, latents = {}, noise

    def step(noise_pred, t, latents):
        out = pipe.scheduler.step(noise_pred, t, latents)
        guesses[int(t)] = out.pred_original_sample
        return out.prev_sample

    pipe.scheduler.set_timesteps(STEPS, device=lab.device)
    for t in pipe.scheduler.timesteps:
        latents = one_step(unet, step, latents, t, prompt_embeds, GUIDANCE)
    return latents, guesses

# %%
@torch.no_grad()
def picture(latents):
    """Latents to a picture, as the pipeline does it after its loop."""
    decoded = pipe.vae.decode(latents / pipe.vae.config.scaling_factor, return_dict=False)[0]
    return pipe.image_processor.postprocess(decoded)[0]

# %% tags=["demo"]
import numpy as np
from inferlab.lab import when_written

with when_written("one_step"):
    latents, guesses = drive(one_step)
    mine = picture(latents)
    print("the same picture, bit for bit:", np.array_equal(np.asarray(mine), np.asarray(image)))
    display(mine)

# %% [markdown]
# ### What the network believes, step by step
#
# Each step contains a complete guess of the clean latents; `drive` has collected these guesses. How good is a
# guess at each step? We measure its distance from the last latents of the run, relative to their size.

# %% tags=["demo"]
with when_written("one_step"):
    latents, guesses = drive(one_step)
    timesteps = list(guesses)
    error = [float((guesses[t] - latents).norm() / latents.norm()) for t in timesteps]
    print(f"error of the guess: {error[0]:.2f} at t = {timesteps[0]}, {error[-1]:.4f} at t = {timesteps[-1]}")

# %% tags=["demo"]
from inferlab.lab import filmstrip, pictures_over_curve

with when_written("one_step"):
    latents, guesses = drive(one_step)
    shown = {t: picture(guesses[t]) for t in timesteps[::2] + timesteps[-1:]}
    display(pictures_over_curve(
        shown, timesteps, error,
        title="One step guesses a whole picture; the loop makes it the right one",
        xlabel="timestep t (from noisy to clean)", ylabel="error of the guess (share of its size)",
    ))

# %% [markdown]
# The first guess is made from nearly pure noise, so the network can only give an average over what the prompt
# allows. It is not the picture: **one step is not the generator.** Each later step starts from a better
# $x_t$, and its question is easier. The error still need not fall at every step: guidance multiplies the
# difference of two guesses by 4, and where both are rough, it may overshoot (with the bundled model, at
# t = 601). Move through all guesses:

# %% tags=["demo"]
from inferlab.lab import step_slider

with when_written("one_step"):
    latents, guesses = drive(one_step)
    display(step_slider([picture(guess) for guess in guesses.values()], [f"t = {t}" for t in guesses]))

# %% [markdown]
# ### Exercise 4 · A checkpoint with the wrong label
#
# *difficulty 3 of 3 · 8 minutes · 3 points*
#
# A network may be trained to answer with the noise (`"epsilon"`), with the clean sample (`"sample"`) or with
# the velocity $v = \sqrt{\bar\alpha_t}\,\epsilon - \sqrt{1-\bar\alpha_t}\,x_0$ (`"v_prediction"`). Lab 01
# translated between them. They are *not* interchangeable: the scheduler must know which one it gets.
#
# Somebody hands you a pipeline whose network predicts one of the three (which one depends on your `LEARNER`).
# The network is fine; the scheduler's config, copied from another project, names another one. First look at
# the picture that the pipeline draws from the noise of section 3:

# %%
from inferlab.lab import mislabeled

healthy = load_pipeline("bundled", lab.device) if MODEL == "full" else pipe  # random weights predict nothing
healthy.scheduler = pipe.scheduler
suspect = mislabeled(healthy, lab.variant(6))
print("the config says:", suspect.scheduler.config.prediction_type)

# %% tags=["demo"]
with trace(suspect) as suspect_run:
    broken_image = suspect(PROMPT, num_inference_steps=STEPS, guidance_scale=GUIDANCE,
                           latents=noise).images[0]
filmstrip([image, broken_image], ["healthy", "suspect"])

# %% tags=["demo"]
run.diff(suspect_run, slower=float("inf"))  # times differ from run to run: leave them out

# %% [markdown]
# No boundary has another shape, dtype or device, none is new or missing, and nothing raised an error. (With
# `MODEL = "full"` the diff compares two models, and shapes differ for that reason.) Noise, clean sample and
# velocity have the same shape: only their **values** differ. So ask the network a question whose answer you
# know: take clean latents, add noise that you keep, and look at the network's answer.

# %%
from inferlab.models.scenes import render, sample_scenes

scenes = render(sample_scenes(4, torch.Generator().manual_seed(SEED))).to(lab.device, healthy.vae.dtype)
with torch.no_grad():
    clean = healthy.vae.encode(scenes * 2 - 1).latent_dist.mean * healthy.vae.config.scaling_factor
    text, _ = healthy.encode_prompt("", lab.device, 4, do_classifier_free_guidance=False)
known_noise = torch.randn(clean.shape, generator=torch.Generator().manual_seed(SEED)).to(clean)


@torch.no_grad()
def ask(pipeline, t):
    """The network's output for the known clean latents with the known noise added at timestep t."""
    x_t = pipeline.scheduler.add_noise(clean, known_noise, torch.full((4,), t, device=clean.device))
    return pipeline.unet(x_t, t, encoder_hidden_states=text, return_dict=False)[0]

# %% [markdown]
# Complete two functions:
#
# * in `which_target(output, clean, noise, alpha_t)`, write the missing `velocity`. The function returns
#   `"epsilon"`, `"sample"` or `"v_prediction"`: which of the three the `output`, `(B, C, H, W)`, is closest
#   to. `alpha_t` is a `float` from 0.01 to 0.99;
# * `diagnose()` returns a dict with `"expects"`, what the suspect's scheduler takes the output for, and
#   `"predicts"`, what its network really answers with. You may compute them in there, or write down the two
#   names that you found.
#
# Ask at a `t` of your choice with `ask(suspect, t)`, and think about which choice tells the three apart best.
#
# <details><summary>Hint 1: a nudge</summary>
# At very small <code>t</code> the velocity is almost the noise. At very large <code>t</code> the network can
# hardly see the clean sample: an answer that needs it is far from all three candidates. And who may be wrong
# about what the network answers with?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# The velocity is <code>alpha_t ** 0.5 * noise - (1 - alpha_t) ** 0.5 * clean</code>. For
# <code>diagnose</code>: ask at a timestep around 400, with <code>clean</code>, <code>known_noise</code> and
# <code>float(table[400])</code>, and read what the scheduler expects off
# <code>suspect.scheduler.config.prediction_type</code>.
# </details>

# %% exercise="diagnosis" provides=["which_target", "diagnose"] difficulty=3 minutes=8
def which_target(output, clean, noise, alpha_t):
    """Which prediction type an output is closest to, given what was mixed."""
    ### BEGIN SOLUTION
    velocity = alpha_t**0.5 * noise - (1 - alpha_t) ** 0.5 * clean
    ### END SOLUTION
    candidates = {"epsilon": noise, "sample": clean, "v_prediction": velocity}
    return min(candidates, key=lambda name: float((output - candidates[name]).norm()))


def diagnose():
    """What the suspect's scheduler expects, and what its network predicts."""
    ### BEGIN SOLUTION
    answer = which_target(ask(suspect, 400), clean, known_noise, float(table[400]))
    return {"expects": suspect.scheduler.config.prediction_type, "predicts": answer}
    ### END SOLUTION

# %% check="diagnosis" points=3
import torch
from inferlab.lab import Check, close

check = Check("diagnosis", points=3)
names = ["epsilon", "sample", "v_prediction"]

def outputs(a, error, seed=6):
    """Known clean latents and noise, and the output of three networks that are off by `error`."""
    g = torch.Generator().manual_seed(seed)
    clean, noise, off = torch.randn(3, 2, 4, 8, 8, generator=g)
    exact = noise, clean, a**0.5 * noise - (1 - a) ** 0.5 * clean
    return clean, noise, [target + error * off for target in exact]

with check.part("three exact networks, at alpha 0.5", weight=1):
    x0, eps, given = outputs(0.5, error=0.0)
    check.equal([check.learner.which_target(y, x0, eps, 0.5) for y in given], names)
### HIDDEN TESTS
check.score()

# %% [markdown]
# If your diagnosis is right, one word in the config repairs the pipeline. The weights stay as they are.

# %% tags=["demo"]
with when_written("diagnose"):
    mended = mislabeled(healthy, lab.variant(6))
    mended.scheduler = DDIMScheduler.from_config(mended.scheduler.config,
                                                 prediction_type=diagnose()["predicts"])
    mended_image = mended(PROMPT, num_inference_steps=STEPS, guidance_scale=GUIDANCE, latents=noise).images[0]
    display(filmstrip([image, broken_image, mended_image], ["healthy", "wrong label", "your label"]))

# %% [markdown]
# ### Exercise 5 · Repair a step
#
# *difficulty 3 of 3 · 8 minutes · 3 points*
#
# A colleague has rewritten the scheduler's step as a plain function, so that it can be tested without a
# scheduler:

# %%
def colleague_step(noise_pred, t, x_t, alphas_cumprod, num_steps, set_alpha_to_one):
    prev = t - len(alphas_cumprod) // num_steps
    alpha_t, alpha_prev = alphas_cumprod[t], alphas_cumprod[prev]
    clean = (x_t - (1 - alpha_t) ** 0.5 * noise_pred) / alpha_t**0.5
    return alpha_prev**0.5 * clean + (1 - alpha_prev) ** 0.5 * noise_pred

# %% [markdown]
# The colleague tested it with steps from the middle of a run, and it agreed with the library in all of them.
# But the pictures look like this:

# %% jupyter={"source_hidden": true}
@cache
def drive_with(one_step, step_function):
    """The latents after each step of a run with this `one_step` and another scheduler step."""
    def step(noise_pred, t, latents):
        to_one = pipe.scheduler.config.set_alpha_to_one
        return step_function(noise_pred, int(t), latents, table.to(latents.device), STEPS, to_one)

    states = [noise]
    pipe.scheduler.set_timesteps(STEPS, device=lab.device)
    for t in pipe.scheduler.timesteps:
        states.append(one_step(unet, step, states[-1], t, prompt_embeds, GUIDANCE))
    return states[1:]

# %% tags=["demo"]
with when_written("one_step"):
    states = drive_with(one_step, colleague_step)
    labels = [f"after t = {int(t)}" for t in pipe.scheduler.timesteps[-4:]]
    display(filmstrip([picture(s) for s in states[-4:]], labels, "Nearly there, and the last step ruins it"))

# %% [markdown]
# "The network must be bad at the last timestep," says the colleague, "I will skip that step." Before you
# agree: your own run above used the same network at the same timesteps.
#
# Complete `repaired_step`, so that it equals `DDIMScheduler.step` (`epsilon`, no clipping, `eta=0`) at
# **every** timestep and for **every** configuration with `timestep_spacing="leading"`, whatever its
# `steps_offset` (0 or 1) and `set_alpha_to_one`. What is missing is `alpha_prev`. The arguments are those of
# `colleague_step`: `alphas_cumprod` is `(T,)`, and `set_alpha_to_one` is a `bool`, as in the scheduler's
# config.
#
# A picture that looks right proves nothing here: two obvious repairs give a good picture with *this*
# pipeline, and are wrong.
#
# <details><summary>Hint 1: a nudge</summary>
# What is <code>prev</code> at the last timestep, and what does Python do with such an index? Then find
# <code>final_alpha_cumprod</code> in section 4, and look up its value in <code>DDIMScheduler.__init__</code>.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# Where <code>prev</code> is 0 or more, it is the table's entry. Where it is negative, it is 1 if
# <code>set_alpha_to_one</code>, and the table's first entry if not.
# </details>

# %% exercise="repair" provides=["repaired_step"] difficulty=3 minutes=8
def repaired_step(noise_pred, t, x_t, alphas_cumprod, num_steps, set_alpha_to_one):
    """One DDIM step for predicted noise, equal to the library's at every timestep."""
    prev = t - len(alphas_cumprod) // num_steps
    alpha_t = alphas_cumprod[t]
    ### BEGIN SOLUTION
    final = torch.tensor(1.0) if set_alpha_to_one else alphas_cumprod[0]
    alpha_prev = alphas_cumprod[prev] if prev >= 0 else final
    ### END SOLUTION
    clean = (x_t - (1 - alpha_t) ** 0.5 * noise_pred) / alpha_t**0.5
    return alpha_prev**0.5 * clean + (1 - alpha_prev) ** 0.5 * noise_pred

# %% check="repair" points=3
import torch
from diffusers import DDIMScheduler
from inferlab.lab import Check, close

check = Check("repair", points=3)
theirs = check.learner
e, x = torch.randn(2, 2, 4, 8, 8, generator=torch.Generator().manual_seed(7))

def both(t, steps, one, offset=1):
    """The learner's step, the library's, and the table that both used."""
    scheduler = DDIMScheduler(beta_schedule="scaled_linear", beta_end=0.012, beta_start=0.00085,
                              clip_sample=False,
                              set_alpha_to_one=one, steps_offset=offset)
    scheduler.set_timesteps(steps)
    assert t in scheduler.timesteps
    got = theirs.repaired_step(e, t, x, scheduler.alphas_cumprod, steps, one)
    return got, scheduler.step(e, t, x).prev_sample, scheduler.alphas_cumprod

with check.part("a step in the middle, as before", weight=1):
    got, want, _ = both(501, 20, one=False)
    check.close(got, want, tol=1e-5)
with check.part("the last step of this pipeline's own configuration", weight=1):
    got, want, abar = both(1, 20, one=False)
    ### HIDDEN TESTS
    check.close(got, want, tol=1e-5)
### HIDDEN TESTS
check.score()

# %% tags=["demo"]
with when_written("one_step", "repaired_step"):
    states, repaired = drive_with(one_step, colleague_step), drive_with(one_step, repaired_step)
    display(filmstrip([picture(states[-1]), picture(repaired[-1]), image],
                      ["colleague", "repaired", "pipeline"]))

# %% [markdown]
# ## 6 · Explain
#
# *difficulty 2 of 3 · 7 minutes · 4 points*
#
# Say what happened in **your traced run** of section 3. In the fields `state`, `axis` and `trade-off` you
# write short sentences, one a line, from the tables below: an entry of `who`, a verb, an entry of its row
# and, if you like, entries of the row `may follow`. So `guidance combines both predictions in each step` is a
# sentence. In the field `calls` you type how often the UNet ran in the whole run. The typed line gives 1
# point, the sentences 3. Lines that begin with `#` are your own notes.

# %% jupyter={"source_hidden": true}
### FIXTURE words
words

# %% [markdown]
# When you run the next cell, it shows how it reads each line. That reading is graded when you hand in.
# One false sentence in a field costs the field's point, so write only what you know. A line that the cell
# cannot read is judged by a person.

# %% explain="step-in-words" difficulty=2 minutes=7
# %%explain step-in-words
# ### BEGIN SOLUTION
# state: the UNet predicts the noise from the latents and from the text
#   the scheduler computes the next latents from the noise
# axis: the batch axis has length 2 in the UNet because of guidance
#   the batch axis has length 1 in scheduler.step
# trade-off: more steps raise the quality and the latency
# calls: 10
# ### END SOLUTION

# %% check="words-calls" of="step-in-words" points=1
from inferlab.lab import Check, reference

check = Check("words-calls", points=1)
with check.part("`calls:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("step-in-words").get("calls"), "`calls:` is empty")
### HIDDEN TESTS
check.score()

# %% check="words-state" of="step-in-words" points=1
from inferlab.lab import Check, reference

check = Check("words-state", points=1)
with check.part("`state:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("step-in-words").get("state"), "`state:` is empty")
### HIDDEN TESTS
check.score()

# %% check="words-axis" of="step-in-words" points=1
from inferlab.lab import Check, reference

check = Check("words-axis", points=1)
with check.part("`axis:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("step-in-words").get("axis"), "`axis:` is empty")
### HIDDEN TESTS
check.score()

# %% check="words-trade-off" of="step-in-words" points=1
from inferlab.lab import Check, reference

check = Check("words-trade-off", points=1)
with check.part("`trade-off:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("step-in-words").get("trade-off"), "`trade-off:` is empty")
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7 · Notice
#
# * **Network and scheduler share one word.** The network knows nothing about the size of the step, the
#   scheduler nothing about pictures. They must agree on `prediction_type`, a word in a config. If it is
#   wrong, every shape is right and every picture is wrong.
# * **The model does not output pixels.** It answers in latents, with the prediction type of its training.
#   Pixels appear once, after the loop, in the VAE.
# * **Prediction types can be translated, not exchanged.** A translation needs $x_t$ and $\bar\alpha_t$. With
#   most wrong names the pipeline draws noise. In one of the six variants of exercise 4, noise is taken for a
#   velocity: nearly the right picture in wrong colors. That is the worst case, because nobody looks twice.
# * **One step is not the generator.** The first guess is an average of everything that fits the prompt; only
#   the loop settles on one picture.
# * **"It looks right" is not a proof.** In exercise 5, a repair that clamps the index to 0, or always takes
#   1, draws a picture that looks the same. Only a comparison with `scheduler.step` in another configuration
#   shows the difference.
#
# Say it out loud, as in an interview: which object is the state, which axis changes, and what is the
# trade-off? What depends on the version (names of config entries, what a step clips) you look up in the
# installed source, as in section 4.

# %% [markdown]
# ## 8 · Check and hand in
#
# Run this cell last. It runs the visible checks again, says what is missing, and leaves one file to hand in.

# %% tags=["demo"]
from inferlab.lab import submit

submit()
