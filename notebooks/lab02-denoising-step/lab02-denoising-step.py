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
# A diffusion pipeline makes a picture by repeating one small update. In this lab you take that update apart, in a real
# `StableDiffusionPipeline`, until nothing in it is a black box: what goes into the network, what comes out, and which
# lines of the scheduler turn one into the next state.
#
# You will predict a run before you make it, read the library's own code, write the step by hand until it draws *the same
# picture, bit for bit*, and then find two faults that no shape and no error message gives away.
#
# **Time** about 55 minutes · **Points** 25, of which 7 are practice · **Reading** [One denoising step](../../handbook/lab02-denoising-step.md) in the handbook, before you start

# %% tags=["parameters"]
LEARNER = ""  # your name or id, as your course knows you
MODEL = "bundled"  # "bundled" | "full" | "hub"
DEVICE = "auto"  # "auto" | "cpu" | "cuda"
SEED = 7

# %% [markdown]
# The bundled model is small, but it is a trained latent-diffusion model with every part of the big ones, and it runs on
# two CPU cores. `"full"` builds Stable Diffusion 1.5's architecture with random weights (true shapes and costs, no
# pictures); `"hub"` downloads a real checkpoint. Grading always uses `"bundled"` on the CPU.

# %%
from inferlab.lab import start

lab = start("lab02-denoising-step", LEARNER, MODEL, DEVICE, SEED)

# %%
import torch
from diffusers import DDIMScheduler
from inferlab.models import load_pipeline

pipe = load_pipeline(MODEL, lab.device)
pipe.scheduler = DDIMScheduler.from_config(pipe.scheduler.config, clip_sample=False)  # checkpoints may bring another
pipe.set_progress_bar_config(disable=True)
print(type(pipe).__name__, "·", type(pipe.unet).__name__, "·", type(pipe.scheduler).__name__)

# %% [markdown]
# ## 1 · Goal and mental model
#
# After this lab you can say what one reverse update does, which object owns which part of it, and how you would notice
# that the two owners disagree.
#
# | who | gets | gives | knows nothing about |
# |---|---|---|---|
# | the **UNet** | the noisy latents $x_t$, the timestep $t$, the text | a *prediction* (`noise_pred`), shaped like the latents | how far the next step goes |
# | the **scheduler** | that prediction, $t$ and $x_t$ | the latents of the next, cleaner timestep | text, pictures, networks |
#
# So one step is **a model prediction plus scheduler arithmetic**. All of the arithmetic rests on one line, the forward
# process, which mixes a clean latent $x_0$ with noise $\epsilon$:
#
# $$x_t = \sqrt{\bar\alpha_t}\;x_0 + \sqrt{1-\bar\alpha_t}\;\epsilon$$
#
# The table of $\bar\alpha_t$ is in the scheduler, as `alphas_cumprod`. It says how much of the signal's power is left at
# each timestep.

# %%
table = pipe.scheduler.alphas_cumprod
for t in (0, 250, 500, 750, 999):
    print(f"t = {t:3d}   signal² = {table[t]:.4f}   noise² = {1 - table[t]:.4f}")

# %% [markdown]
# At `t = 0` almost everything is picture, at `t = 999` almost everything is noise, and the two columns always add up to 1.
# The reverse update walks up this table, from the bottom line to the top.

# %% [markdown]
# ## 2 · Predict
#
# Below you will ask the pipeline for one picture, with these settings:

# %%
PROMPT = "a large blue ring left of a small yellow square on a white background"
STEPS = 10
GUIDANCE = 4.0
text_config = pipe.text_encoder.config
print(f"{STEPS} steps, guidance {GUIDANCE}; text is embedded as "
      f"{pipe.tokenizer.model_max_length} tokens x {text_config.hidden_size} features")

# %% [markdown]
# ### Exercise 1 · What crosses the UNet's boundary?
#
# *difficulty 2 of 3 · 6 minutes · 3 points*
#
# **Before you run anything**, write a function that says what a traced run will show at the UNet. Not only for the run
# above: it is graded on runs that this notebook never makes, among them three prompts at 96x160 pixels without guidance.
#
# | argument | meaning |
# |---|---|
# | `prompts` | number of prompts in the call, `int` |
# | `height`, `width` | size of the pictures asked for, in pixels |
# | `guidance_scale` | `float`, as passed to the pipeline |
# | `steps` | `num_inference_steps` of a `DDIMScheduler` |
# | `text` | `(tokens, features)` of one embedded prompt |
#
# Returns a `dict`: `"calls"`, how often the UNet runs (`int`), and the shapes (tuples of `int`) of `"sample"`,
# `"timestep"`, `"encoder_hidden_states"` (its inputs) and `"output"`. A tensor that holds a single number without any axis
# has shape `()`.
#
# <details><summary>Hint</summary>
# Three facts decide everything: how much smaller than the picture the VAE's latents are on each side (8) and how many
# channels they have (4); what classifier-free guidance does to the batch, and what it does <i>not</i> do to the number of
# calls; and from which value of <code>guidance_scale</code> on the pipeline uses guidance at all
# (<code>pipe.do_classifier_free_guidance</code> is a property: <code>??type(pipe).do_classifier_free_guidance</code>).
# </details>

# %% exercise="forecast" provides=["forecast"] difficulty=2 minutes=6
def forecast(prompts, height, width, guidance_scale, steps, text=(16, 192)):
    """What a traced run shows at the UNet: its number of calls and the shapes of its inputs and its output."""
    ### BEGIN SOLUTION
    batch = prompts * (2 if guidance_scale > 1 else 1)
    latents = (batch, 4, height // 8, width // 8)
    return {
        "calls": steps,
        "sample": latents,
        "timestep": (),
        "encoder_hidden_states": (batch, *text),
        "output": latents,
    }
    ### END SOLUTION

# %% [markdown]
# ## 3 · Trace
#
# Now the real run. `trace(pipe)` records every boundary that data crosses, the hidden steps of the pipeline included, and
# changes nothing: the picture is the one you would have got without it. The starting noise is made by hand, so that we
# can use the very same noise again later.

# %%
side = pipe.unet.config.sample_size
noise = torch.randn(1, 4, side, side, generator=torch.Generator().manual_seed(SEED)).to(lab.device, pipe.unet.dtype)

# %% tags=["demo"]
from inferlab.trace import trace

with trace(pipe) as run:
    image = pipe(PROMPT, num_inference_steps=STEPS, guidance_scale=GUIDANCE, latents=noise).images[0]
run.table(level=1)  # `run` alone shows the nested boundaries too

# %% tags=["demo"]
image

# %% [markdown]
# Steps that are alike are folded into one line. Read the table from the top, and stop at three places:
#
# * the **UNet's line**: the batch of its `sample` is not the number of prompts. Two copies of the latents go in, one beside
#   the empty text and one beside yours;
# * the line after it, **`scheduler.step`**: here the batch is back to the number of prompts. Guidance happened in between,
#   inline, which is why the table marks it as inferred;
# * the **last lines**: three channels and the picture's full height and width appear only there, after the loop, when the VAE
#   decodes. Nothing before that line is a picture. The UNet does not output pixels.

# %% [markdown]
# **Reconcile.** Put your forecast beside the UNet's line. Where they differ, the table is right: find out why before you
# change the function.

# %% tags=["demo"]
at_unet = run["unet"]
print("calls: ", at_unet.calls)
for name in ("sample", "timestep", "encoder_hidden_states"):
    print(f"{name:22s}", tuple(at_unet.inputs[name].shape))
print(f"{'output':22s}", tuple(at_unet.outputs.shape))

# %% check="forecast" points=3
from inferlab.lab import Check, reference

check = Check("forecast", points=3)

def ask_forecast(*run):
    """The learner's forecast of a run, once it has the form that the contract asks for."""
    got = check.learner.forecast(*run)
    keys = {"calls", "sample", "timestep", "encoder_hidden_states", "output"}
    check.true(isinstance(got, dict) and set(got) == keys, "return a dict with exactly the five keys of the contract")
    shapes = [got[key] for key in keys - {"calls"}]
    check.true(all(isinstance(shape, tuple) for shape in shapes),
               "each shape is a tuple, such as (1, 2, 3); a number alone has ()")
    return got

with check.part("one prompt at 128x128 with guidance, as in the traced run", weight=1):
    got = ask_forecast(1, 128, 128, 4.0, 10, (16, 192))
    ### BEGIN HIDDEN TESTS
    check.mistake("the UNet works on latents: pixels appear only when the VAE decodes", when=got["output"][1:] == (3, 128, 128))
    ### END HIDDEN TESTS
    check.equal(got, {"calls": 10, "sample": (2, 4, 16, 16), "timestep": (),
                      "encoder_hidden_states": (2, 16, 192), "output": (2, 4, 16, 16)})
### BEGIN HIDDEN TESTS
@reference
def traced(prompts, height, width, guidance_scale, steps):
    """The truth: a real run of the bundled pipeline, traced."""
    from inferlab.models import load_pipeline
    from inferlab.trace import trace

    pipe = load_pipeline("bundled", "cpu")
    pipe.set_progress_bar_config(disable=True)
    with trace(pipe) as run:
        pipe(["a red circle"] * prompts, height=height, width=width, guidance_scale=guidance_scale,
             num_inference_steps=steps, output_type="latent")
    at = run["unet"]
    inputs = {key: tuple(at.inputs[key].shape) for key in ("sample", "timestep", "encoder_hidden_states")}
    return {"calls": at.calls, **inputs, "output": tuple(at.outputs.shape)}

with check.part("the number of calls, with and without guidance", weight=1):
    got = [ask_forecast(2, 128, 128, scale, 3)["calls"] for scale in (7.5, 1.0)]
    check.mistake("guidance doubles the batch of each call, not the number of calls", when=got[0] == 6)
    check.mistake("one step is not the generator: the UNet runs once for every timestep", when=got == [1, 1])
    check.equal(got, [traced(2, 128, 128, 7.5, 3)["calls"], traced(2, 128, 128, 1.0, 3)["calls"]])
with check.part("the latents of three prompts at 96x160 without guidance", weight=2):
    want, got = traced(3, 96, 160, 1.0, 2), ask_forecast(3, 96, 160, 1.0, 2)
    check.mistake("height comes before width", when=got["sample"] == (3, 4, 20, 12))
    check.mistake("guidance is off in this run, so nothing is doubled", when=got["sample"] == (6, 4, 12, 20))
    check.mistake("the UNet works on latents: pixels appear only when the VAE decodes", when=got["output"][1:] == (3, 96, 160))
    check.equal([got["sample"], got["output"]], [want["sample"], want["output"]])
with check.part("the text and the timestep", weight=1):
    want, got = traced(3, 96, 160, 1.0, 2), ask_forecast(3, 96, 160, 1.0, 2)
    check.mistake("one timestep is shared by the whole batch: a number without an axis", when=got["timestep"] == (3,))
    check.equal([got["encoder_hidden_states"], got["timestep"]], [want["encoder_hidden_states"], want["timestep"]])
with check.part("where guidance begins", weight=1):
    got = [ask_forecast(2, 128, 128, scale, 3)["sample"][:1] for scale in (1.0, 1.5)]
    check.mistake("a guidance_scale of exactly 1 is off: the pipeline asks for more than 1", when=got == [(4,), (4,)])
    check.equal(got, [(2,), (4,)])
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 4 · Read
#
# Here is the other half of the step: `DDIMScheduler.step`, as it is installed on this machine, with notes beside the
# lines that matter. Read it with the forward process of section 1 in mind. Everything in it is that one equation, solved
# for one thing or another.

# %% jupyter={"source_hidden": true}
from inferlab.lab import show_source

show_source(
    DDIMScheduler.step,
    {
        "prev_timestep = timestep - self.config.num_train_timesteps // self.num_inference_steps":
            "The target is t minus a fixed stride; the loop's list of timesteps is not consulted. In a run's last step "
            "the result is negative.",
        "alpha_prod_t_prev = self.alphas_cumprod[prev_timestep] if prev_timestep >= 0 else self.final_alpha_cumprod":
            "Two sources for one number. Which of them serves the last step, and what does set_alpha_to_one have to do "
            "with it?",
        "pred_original_sample = (sample - beta_prod_t ** (0.5) * model_output) / alpha_prod_t ** (0.5)":
            "The forward process solved for the clean sample. Only in this branch is model_output taken to be noise.",
        "pred_original_sample = model_output":
            "Same argument, same shape, another meaning: here the network is believed to have answered with the clean "
            "sample itself.",
        "pred_original_sample = (alpha_prod_t**0.5) * sample - (beta_prod_t**0.5) * model_output":
            "And here with a velocity. Nothing checks which of the three the network was trained for.",
        "pred_original_sample = pred_original_sample.clamp(":
            "Clipping changes the clean sample and nothing else: pred_epsilon was computed above and stays as it was.",
        "if use_clipped_model_output:":
            "Off unless asked for. So after a clip, clean sample and noise no longer add up to x_t.",
        "pred_sample_direction = (1 - alpha_prod_t_prev - std_dev_t**2) ** (0.5) * pred_epsilon":
            "With eta = 0, std_dev_t is 0: the predicted noise goes back in, at the previous timestep's level.",
        "prev_sample = alpha_prod_t_prev ** (0.5) * pred_original_sample + pred_sample_direction":
            "The forward process once more, from the predicted clean sample and the predicted noise.",
    },
    excerpts=[
        ("# 1. get previous step value", "pred_epsilon = (alpha_prod_t**0.5) * model_output + (beta_prod_t**0.5) * sample"),
        ("elif self.config.clip_sample:", "-self.config.clip_sample_range, self.config.clip_sample_range"),
        ("if use_clipped_model_output:", "prev_sample = alpha_prod_t_prev ** (0.5) * pred_original_sample + pred_sample_direction"),
    ],
    checked="0.42.1",
)

# %% [markdown]
# In words: a DDIM step *jumps all the way* to a guess of the clean latents, and then *goes most of the way back*, by
# mixing the predicted noise in again at a slightly lower level. The settings that decide which lines run are in the
# scheduler's config:

# %%
for key in ("prediction_type", "clip_sample", "set_alpha_to_one", "steps_offset", "timestep_spacing"):
    print(f"{key:17s} {pipe.scheduler.config[key]}")

# %% [markdown]
# ## 5 · Build
#
# First three small pieces (practice, 7 points), then the step itself. All tensors are `float32` unless a contract says
# otherwise, and no function may rely on anything but its arguments.

# %% [markdown]
# ### Exercise 2 · Add noise at a timestep
#
# *difficulty 1 of 3 · 4 minutes · 2 points*
#
# The forward process, for a batch in which **every sample has a timestep of its own** (this is what training does).
#
# | argument | shape, dtype |
# |---|---|
# | `clean`, `noise` | `(B, C, H, W)`, any floating dtype, the same for both |
# | `timesteps` | `(B,)`, `int64` |
# | `alphas_cumprod` | `(T,)`, `float32` |
#
# Returns $x_t$ with the shape **and dtype** of `clean`.
#
# <details><summary>Hint</summary>
# <code>alphas_cumprod[timesteps]</code> has shape <code>(B,)</code>. To multiply a sample by its own number it needs shape
# <code>(B, 1, 1, 1)</code>; without that it would be lined up with the last axis, the width. And float32 times float16 is
# float32.
# </details>

# %% exercise="add-noise" provides=["add_noise"] difficulty=1 minutes=4
def add_noise(clean, noise, timesteps, alphas_cumprod):
    """x_t for each sample of the batch at its own timestep; shape and dtype of `clean`."""
    ### BEGIN SOLUTION
    signal = alphas_cumprod[timesteps].to(clean.dtype).reshape(-1, 1, 1, 1)
    return signal.sqrt() * clean + (1 - signal).sqrt() * noise
    ### END SOLUTION

# %% check="add-noise" points=2
import torch
from diffusers import DDIMScheduler
from inferlab.lab import Check, close

check = Check("add-noise", points=2)
theirs = check.learner
library = DDIMScheduler(beta_schedule="scaled_linear", beta_end=0.012, beta_start=0.00085)
abar = library.alphas_cumprod
x0, eps = torch.randn(2, 3, 4, 8, 8, generator=torch.Generator().manual_seed(2))
with check.part("one timestep for the whole batch, as DDIMScheduler.add_noise", weight=1):
    t = torch.full((3,), 500)
    got, a = theirs.add_noise(x0, eps, t, abar), abar[500]
    check.tensor(got, shape=(3, 4, 8, 8))
    ### BEGIN HIDDEN TESTS
    check.mistake("the weights are square roots: only their squares add up to 1", when=close(got, a * x0 + (1 - a) * eps))
    check.mistake("signal and noise have changed places", when=close(got, (1 - a) ** 0.5 * x0 + a**0.5 * eps))
    ### END HIDDEN TESTS
    check.close(got, library.add_noise(x0, eps, t), tol=1e-5)
### BEGIN HIDDEN TESTS
with check.part("each sample at its own timestep", weight=2):
    t = torch.tensor([999, 300, 0])
    got = theirs.add_noise(x0, eps, t, abar)
    first = abar[t[:1]]
    check.mistake("every sample was mixed with the first sample's timestep",
                  when=close(got, first**0.5 * x0 + (1 - first) ** 0.5 * eps))
    check.close(got, library.add_noise(x0, eps, t), tol=1e-5)
with check.part("float16 stays float16", weight=1):
    t = torch.tensor([40, 640, 940])
    got = theirs.add_noise(x0.half(), eps.half(), t, abar)
    check.tensor(got, shape=(3, 4, 8, 8))
    check.mistake("a float32 table makes a float32 result: bring it to the dtype of `clean`", when=got.dtype == torch.float32)
    check.tensor(got, dtype=torch.float16)
    check.close(got, library.add_noise(x0.half(), eps.half(), t), tol=5e-3)
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 3 · One DDIM step by hand
#
# *difficulty 2 of 3 · 8 minutes · 3 points*
#
# The update that you just read, for a network that predicts noise (`prediction_type="epsilon"`, `eta=0`).
#
# | argument | meaning |
# |---|---|
# | `noise_pred`, `x_t` | `(B, C, H, W)` |
# | `alpha_t`, `alpha_prev` | $\bar\alpha$ at this timestep and at the previous one, `float` |
# | `clip_range` | `None` for `clip_sample=False`, otherwise the predicted clean sample is limited to ± this number |
#
# Returns the latents at the previous timestep, `(B, C, H, W)`: what `DDIMScheduler.step` returns as `prev_sample`, to
# within 1e-5.
#
# <details><summary>Hint</summary>
# Two lines: solve the forward process for the clean sample, then mix again. For <code>clip_range</code>, look once more at
# which variable the library clips, and at what it does <i>not</i> compute again afterwards.
# </details>

# %% exercise="ddim-step" provides=["ddim_step"] difficulty=2 minutes=8
def ddim_step(noise_pred, x_t, alpha_t, alpha_prev, clip_range=None):
    """The latents one DDIM step earlier, from the predicted noise."""
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
    ### BEGIN HIDDEN TESTS
    x0 = (x - (1 - a) ** 0.5 * e) / a**0.5
    check.mistake("the weights are square roots of alpha and of 1 - alpha",
                  when=close(got, p * (x - (1 - a) * e) / a + (1 - p) * e))
    check.mistake("you stopped at the predicted clean sample: the noise has to go back in, at the previous level",
                  when=close(got, x0))
    check.mistake("alpha_t and alpha_prev have changed places: this step makes the latents noisier",
                  when=close(got, a**0.5 * (x - (1 - p) ** 0.5 * e) / p**0.5 + (1 - a) ** 0.5 * e))
    ### END HIDDEN TESTS
    check.close(got, want, tol=1e-5)
### BEGIN HIDDEN TESTS
with check.part("other timesteps, the last one included", weight=2):
    for t, count, one in ((951, 20, True), (101, 10, True), (1, 20, True), (1, 20, False)):
        want, a, p = library(e, x, t, count, clip_sample=False, set_alpha_to_one=one)
        got = theirs.ddim_step(e, x, a, p)
        check.close(got, want, tol=1e-4 if t > 900 else 1e-5)
with check.part("with clip_sample", weight=3):
    for t, limit in ((501, 1.0), (201, 0.5)):
        want, a, p = library(e, x, t, clip_sample=True, clip_sample_range=limit)
        got = theirs.ddim_step(e, x, a, p, limit)
        x0 = (x - (1 - a) ** 0.5 * e) / a**0.5
        clipped = x0.clamp(-limit, limit)
        again = (x - a**0.5 * clipped) / (1 - a) ** 0.5
        check.mistake("you ignored clip_range", when=close(got, p**0.5 * x0 + (1 - p) ** 0.5 * e))
        check.mistake("you derived the noise again from the clipped sample: the library does so only with use_clipped_model_output",
                      when=close(got, p**0.5 * clipped + (1 - p) ** 0.5 * again))
        check.mistake("you clipped the result: only the predicted clean sample is clipped",
                      when=close(got, (p**0.5 * x0 + (1 - p) ** 0.5 * e).clamp(-limit, limit)))
        check.close(got, want, tol=1e-5)
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 4 · Three languages for one prediction
#
# *difficulty 2 of 3 · 6 minutes · 2 points*
#
# A network may be trained to answer with the noise (`"epsilon"`), with the clean sample (`"sample"`) or with the velocity
# $v = \sqrt{\bar\alpha_t}\,\epsilon - \sqrt{1-\bar\alpha_t}\,x_0$ (`"v_prediction"`). Given $x_t$ and $t$, each of them can be turned into the
# others, which is *not* the same as being interchangeable: whoever receives the tensor must know which one it is.
#
# Write `translate(model_output, prediction_type, x_t, alpha_t)`: it returns the tuple `(clean, noise)`, two tensors shaped
# like `x_t`. `alpha_t` is a `float`. An unknown `prediction_type` raises `ValueError`.
#
# <details><summary>Hint</summary>
# All three branches are in section 4. For the velocity, multiply out
# <code>sqrt(alpha) * x_t - sqrt(1 - alpha) * v</code> once by hand: the noise cancels.
# </details>

# %% exercise="translate" provides=["translate"] difficulty=2 minutes=6
def translate(model_output, prediction_type, x_t, alpha_t):
    """The (clean, noise) that a network's output stands for, given its prediction type."""
    ### BEGIN SOLUTION
    signal, sigma = alpha_t**0.5, (1 - alpha_t) ** 0.5
    if prediction_type == "epsilon":
        return (x_t - sigma * model_output) / signal, model_output
    if prediction_type == "sample":
        return model_output, (x_t - signal * model_output) / sigma
    if prediction_type == "v_prediction":
        return signal * x_t - sigma * model_output, sigma * x_t + signal * model_output
    raise ValueError(f"unknown prediction_type {prediction_type!r}")
    ### END SOLUTION

# %% check="translate" points=2
import torch
from inferlab.lab import Check, LearnerError, close

check = Check("translate", points=2)
x0, eps = torch.randn(2, 2, 4, 8, 8, generator=torch.Generator().manual_seed(4))
a = 0.3
x, v = a**0.5 * x0 + (1 - a) ** 0.5 * eps, a**0.5 * eps - (1 - a) ** 0.5 * x0

def translated(output, kind):
    """The learner's (clean, noise), once it is a pair."""
    got = check.learner.translate(output, kind, x, a)
    check.true(isinstance(got, tuple) and len(got) == 2, "return the tuple (clean, noise)")
    return got

with check.part("epsilon", weight=1):
    got = translated(eps, "epsilon")
    ### BEGIN HIDDEN TESTS
    check.mistake("the order is (clean, noise)", when=close(got, (eps, x0), tol=1e-4))
    ### END HIDDEN TESTS
    check.close(got, (x0, eps), tol=1e-4)
### BEGIN HIDDEN TESTS
with check.part("sample", weight=1):
    got = translated(x0, "sample")
    check.mistake("you treated the clean sample as noise: prediction types are not interchangeable", when=close(got[1], x0))
    check.close(got, (x0, eps), tol=1e-4)
with check.part("v_prediction", weight=1):
    got = translated(v, "v_prediction")
    check.mistake("a sign in front of the velocity is wrong", when=close(got[0], a**0.5 * x + (1 - a) ** 0.5 * v))
    check.mistake("you treated the velocity as noise: prediction types are not interchangeable", when=close(got[1], v))
    check.close(got, (x0, eps), tol=1e-4)
with check.part("an unknown type is refused", weight=1):
    try:
        check.learner.translate(eps, "flow", x, a)
    except LearnerError as error:
        check.true(error.name == "ValueError", f"an unknown prediction_type must raise ValueError ({error})")
    else:
        check.fail("an unknown prediction_type must raise ValueError: a guess would corrupt every picture silently")
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 5 · The whole step, as the pipeline makes it
#
# *difficulty 2 of 3 · 8 minutes · 3 points*
#
# Now put the two owners together. You get them as functions, so that it does not matter which network and which
# scheduler they are:
#
# * `unet(sample, t, prompt_embeds)` returns the network's prediction for each row of `sample`;
# * `step(noise_pred, t, latents)` returns the next latents.
#
# `one_step(unet, step, latents, t, prompt_embeds, guidance_scale)` performs one reverse update on `latents`, `(B, 4, h, w)`,
# and returns what `step` returned. With guidance (`guidance_scale > 1`) `prompt_embeds` has `2B` rows, **first the B
# unconditional ones, then the B conditional ones**, and both halves go through the UNet in **one** call. Without guidance it has `B` rows.
# The guided prediction is $\epsilon_\text{uncond} + s\,(\epsilon_\text{cond} - \epsilon_\text{uncond})$.
#
# It is graded by what it calls with what, and by what it returns.
#
# <details><summary>Hint</summary>
# Your trace has the shapes: the batch is doubled on the way into the UNet and halved again before
# <code>scheduler.step</code>. <code>torch.cat</code> on the way in, <code>.chunk(2)</code> on the way out.
# </details>

# %% exercise="one-step" provides=["one_step"] difficulty=2 minutes=8
def one_step(unet, step, latents, t, prompt_embeds, guidance_scale):
    """One reverse update: a prediction of the network, guided if asked for, and the scheduler's arithmetic."""
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
    check.true(seen and given, "a step calls both: the UNet for a prediction and the scheduler for the update")
    return got, seen, given

with check.part("returns what the scheduler returned", weight=1):
    got, seen, given = observe(4.0)
    check.equal(len(given), 1, "one reverse update is one call of `step`")
    check.close(got, 0.9 * given[0][2] + given[0][0].mean(), tol=1e-5)
### BEGIN HIDDEN TESTS
with check.part("one call of the UNet with both halves", weight=1):
    got, seen, given = observe(4.0)
    check.mistake("two calls of the UNet give the same numbers and cost two launches: both halves go in one call",
                  when=len(seen) == 2)
    check.equal(len(seen), 1)
    check.close(seen[0], (torch.cat([lat, lat]), 401, emb), tol=0)
with check.part("the guided prediction", weight=2):
    got, seen, given = observe(4.0)
    eps = given[-1][0]
    check.mistake("the two halves must be combined before the scheduler sees them", when=len(eps) == 4)
    check.mistake("the halves have changed places: the unconditional rows come first",
                  when=close(eps, asked + 4.0 * (plain - asked), tol=1e-4))
    check.mistake("you start from the conditional half: that is a guidance of s + 1",
                  when=close(eps, asked + 4.0 * (asked - plain), tol=1e-4))
    check.mistake("you left out the unconditional part that the difference is added to",
                  when=close(eps, 4.0 * (asked - plain), tol=1e-4))
    check.close(eps, plain + 4.0 * (asked - plain), tol=1e-4)
with check.part("what the scheduler gets", weight=1):
    got, seen, given = observe(4.0)
    check.mistake("the scheduler gets the latents themselves, not the doubled copy that went into the UNet",
                  when=len(given[0][2]) == 4)
    check.close(given[0][1:], (401, lat), tol=0)
with check.part("guidance off", weight=1):
    for scale in (1.0, 0.0):
        got, seen, given = observe(scale)
        check.close(seen[0], (lat, 401, emb[2:]), tol=0)
        check.close(given[0], (asked, 401, lat), tol=1e-5)
        check.close(got, 0.9 * lat + asked.mean(), tol=1e-5)
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ### Your step, driving the real pipeline
#
# Two thin adapters give your function its real owners, and the loop around it is short. It starts from the same noise as the
# traced run and makes the very same calls.

# %%
@torch.no_grad()
def unet(sample, t, prompt_embeds):
    """The real network, in the form that `one_step` takes."""
    return pipe.unet(sample, t, encoder_hidden_states=prompt_embeds, return_dict=False)[0]


with torch.no_grad():
    cond, uncond = pipe.encode_prompt(PROMPT, lab.device, 1, do_classifier_free_guidance=True)
prompt_embeds = torch.cat([uncond, cond])

# %%
from functools import cache


@cache
def drive(one_step):
    """A whole run with this `one_step`: the last latents, and the predicted clean latents at each timestep."""
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
# Each step contains a complete guess of the clean latents; `drive` has collected them. How good is such a guess, and when? We
# measure its distance from the latents where the run ended, relative to their size.

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
    pictures = {t: picture(guess) for t, guess in guesses.items()}
    shown = {t: pictures[t] for t in timesteps[::2] + timesteps[-1:]}
    display(pictures_over_curve(
        shown, timesteps, error,
        title="One step guesses a whole picture; the loop makes it the right one",
        xlabel="timestep t (from noisy to clean)", ylabel="error of the guess (share of its size)",
    ))

# %% [markdown]
# An error of 1 is what an empty guess, all zeros, would have. The first guess is made from nearly pure noise: all that the
# network can give there is an average over what the prompt allows, and guidance then stretches the difference of two such averages.
# How much of the error is guidance? One call without it tells:

# %% tags=["demo"]
with when_written("one_step", "translate"):
    latents, guesses = drive(one_step)
    begin = timesteps[0]
    unguided, _ = translate(unet(noise, begin, cond), "epsilon", noise, float(table[begin]))
    unguided_error = float((unguided - latents).norm() / latents.norm())
    print(f"first guess: error {error[0]:.2f} with guidance, {unguided_error:.2f} without")
    display(filmstrip([pictures[begin], picture(unguided), mine], ["guided", "unguided", "where the run ends"]))

# %% [markdown]
# Neither is the picture: **one step is not the generator.** Each later step starts from a better $x_t$ and asks an easier question.
# Guidance pays off because the loop can take back what its first steps overdid. Move through all of them:

# %% tags=["demo"]
from inferlab.lab import step_slider

with when_written("one_step"):
    drive(one_step)
    display(step_slider(list(pictures.values()), [f"t = {t}" for t in pictures]))

# %% [markdown]
# ### Exercise 6 · A checkpoint with the wrong label
#
# *difficulty 3 of 3 · 9 minutes · 3 points*
#
# Somebody hands you a pipeline. The network is fine. The scheduler's config, copied from another project, says that it predicts
# something that it does not. Which pair you got depends on your name. First look at what it does, with the noise that drew
# your picture above:

# %%
from inferlab.lab import mislabeled

suspect = mislabeled(pipe, lab.variant(6))
print("the config says:", suspect.scheduler.config.prediction_type)

# %% tags=["demo"]
with trace(suspect) as suspect_run:
    broken_image = suspect(PROMPT, num_inference_steps=STEPS, guidance_scale=GUIDANCE, latents=noise).images[0]
filmstrip([image, broken_image], ["healthy", "suspect"])

# %% tags=["demo"]
run.diff(suspect_run, slower=float("inf"))  # times differ from run to run: leave them out

# %% [markdown]
# No boundary has another shape, dtype or device, none appeared or vanished, and nothing raised. A shape cannot tell noise
# from a clean sample from a velocity: **values** have to. So ask the network a question whose answer you know: take clean
# latents, add noise that you keep, and look at what comes back.

# %%
from inferlab.models.scenes import render, sample_scenes

scenes = render(sample_scenes(4, torch.Generator().manual_seed(SEED))).to(lab.device, pipe.vae.dtype)
with torch.no_grad():
    clean = pipe.vae.encode(scenes * 2 - 1).latent_dist.mean * pipe.vae.config.scaling_factor
    text, _ = pipe.encode_prompt("", lab.device, 4, do_classifier_free_guidance=False)
known_noise = torch.randn(clean.shape, generator=torch.Generator().manual_seed(SEED)).to(clean)


@torch.no_grad()
def ask(pipeline, t):
    """The network's output for the known clean latents with the known noise added at timestep t."""
    x_t = pipeline.scheduler.add_noise(clean, known_noise, torch.full((4,), t, device=clean.device))
    return pipeline.unet(x_t, t, encoder_hidden_states=text, return_dict=False)[0]

# %% [markdown]
# Provide two things:
#
# * `which_target(output, clean, noise, alpha_t)` returns `"epsilon"`, `"sample"` or `"v_prediction"`: which of the three the
#   `output`, `(B, C, H, W)`, is meant to be. A real network is never exact, and `alpha_t` (a `float`) can be anything from
#   0.01 to 0.99;
# * `diagnose()` returns a dict with `"expects"`, what the suspect's scheduler takes the output for, and `"predicts"`, what its
#   network really answers with. You may compute them in there, or write down the two words that you found.
#
# Ask at a `t` of your choice with `ask(suspect, t)`, and think about which choice tells the three apart best.
#
# <details><summary>Hint</summary>
# Compute all three candidates and see which one the output is closest to. At very small <code>t</code> the velocity is almost
# the noise. At very large <code>t</code> the candidates are far apart, but the network can hardly tell the clean sample any
# more: if it answers with that, or with the velocity, the answer is far from all three.
# </details>

# %% exercise="diagnosis" provides=["which_target", "diagnose"] difficulty=3 minutes=9
def which_target(output, clean, noise, alpha_t):
    """Which prediction type an output is closest to, given what was mixed."""
    ### BEGIN SOLUTION
    velocity = alpha_t**0.5 * noise - (1 - alpha_t) ** 0.5 * clean
    candidates = {"epsilon": noise, "sample": clean, "v_prediction": velocity}
    return min(candidates, key=lambda name: float((output - candidates[name]).norm()))
    ### END SOLUTION


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
### BEGIN HIDDEN TESTS
with check.part("networks that are not exact, from alpha 0.05 to 0.9", weight=1):
    for a in (0.05, 0.3, 0.9):
        x0, eps, given = outputs(a, error=0.1)
        got = [check.learner.which_target(y, x0, eps, a) for y in given]
        check.mistake("at this alpha the velocity is nearly the noise, or nearly minus the clean sample: compare it too, not only the other two",
                      when="v_prediction" not in got)
        check.equal(got, names)

pairs = [("v_prediction", "epsilon"), ("sample", "v_prediction"), ("sample", "epsilon"),
         ("epsilon", "v_prediction"), ("v_prediction", "sample"), ("epsilon", "sample")]
truth, label = pairs[check.variant(6)]

def answer_to(key):
    """One entry of the learner's diagnosis."""
    got = check.learner.diagnose()
    check.true(isinstance(got, dict) and key in got, '`diagnose()` returns a dict with the keys "expects" and "predicts"')
    check.true(got[key] in names, f'"{key}" is one of {", ".join(names)}')
    return got[key]

with check.part("what the scheduler expects", weight=1):
    check.equal(answer_to("expects"), label)
with check.part("what the network predicts", weight=3):
    got = answer_to("predicts")
    check.mistake("that is what the label says, and the label is what is wrong: ask the network", when=got == label)
    check.true(got == truth, "not what your suspect's network answers with: ask it at a timestep in the middle: "
               "the three candidates are well apart there, and the network still answers well")
### END HIDDEN TESTS
check.score()

# %% [markdown]
# If your diagnosis is right, one word in the config mends the pipeline; the weights were never touched.

# %% tags=["demo"]
with when_written("diagnose"):
    mended = mislabeled(pipe, lab.variant(6))
    mended.scheduler = DDIMScheduler.from_config(mended.scheduler.config, prediction_type=diagnose()["predicts"])
    mended_image = mended(PROMPT, num_inference_steps=STEPS, guidance_scale=GUIDANCE, latents=noise).images[0]
    display(filmstrip([image, broken_image, mended_image], ["healthy", "wrong label", "your label"]))

# %% [markdown]
# ### Exercise 7 · Repair a step
#
# *difficulty 3 of 3 · 9 minutes · 3 points*
#
# A colleague has rewritten the scheduler's step as a plain function, so that it can be tested without a scheduler:

# %%
def colleague_step(noise_pred, t, x_t, alphas_cumprod, num_steps, set_alpha_to_one):
    prev = t - len(alphas_cumprod) // num_steps
    alpha_t, alpha_prev = alphas_cumprod[t], alphas_cumprod[prev]
    clean = (x_t - (1 - alpha_t) ** 0.5 * noise_pred) / alpha_t**0.5
    return alpha_prev**0.5 * clean + (1 - alpha_prev) ** 0.5 * noise_pred

# %% [markdown]
# It agrees with the library in every test that the colleague wrote, which were steps from the middle of a run. But the
# pictures look like this:

# %%
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
# "The network must be bad at the last timestep," says the colleague, "I will skip that step." Before you agree: your own
# run above used the same network at the same timesteps.
#
# Write `repaired_step`, with the same arguments, so that it equals `DDIMScheduler.step` (`epsilon`, no clipping, `eta=0`) at
# **every** timestep and for **every** configuration with `timestep_spacing="leading"`, whatever its `steps_offset` (0 or 1) and
# `set_alpha_to_one`.
#
# | argument | meaning |
# |---|---|
# | `noise_pred`, `x_t` | `(B, C, H, W)` |
# | `t`, `num_steps` | this timestep and `num_inference_steps`, `int` |
# | `alphas_cumprod` | `(T,)`, `float32` |
# | `set_alpha_to_one` | `bool`, as in the scheduler's config |
#
# A picture that looks right is not the proof here: two of the obvious repairs look right with *this* pipeline, and are wrong.
#
# <details><summary>Hint</summary>
# What is <code>prev</code> at the last timestep, and what does Python do with such an index? Then read the line with
# <code>final_alpha_cumprod</code> in section 4 again, and look up in <code>DDIMScheduler.__init__</code> what that is.
# </details>

# %% exercise="repair" provides=["repaired_step"] difficulty=3 minutes=9
def repaired_step(noise_pred, t, x_t, alphas_cumprod, num_steps, set_alpha_to_one):
    """One DDIM step for predicted noise, equal to the library's at every timestep."""
    ### BEGIN SOLUTION
    prev = t - len(alphas_cumprod) // num_steps
    final = torch.tensor(1.0) if set_alpha_to_one else alphas_cumprod[0]
    alpha_t, alpha_prev = alphas_cumprod[t], alphas_cumprod[prev] if prev >= 0 else final
    clean = (x_t - (1 - alpha_t) ** 0.5 * noise_pred) / alpha_t**0.5
    return alpha_prev**0.5 * clean + (1 - alpha_prev) ** 0.5 * noise_pred
    ### END SOLUTION

# %% check="repair" points=3
import torch
from diffusers import DDIMScheduler
from inferlab.lab import Check, close

check = Check("repair", points=3)
theirs = check.learner
e, x = torch.randn(2, 2, 4, 8, 8, generator=torch.Generator().manual_seed(7))

def both(t, steps, one, offset=1):
    """The learner's step, the library's, and the table that both used."""
    scheduler = DDIMScheduler(beta_schedule="scaled_linear", beta_end=0.012, beta_start=0.00085, clip_sample=False,
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
    ### BEGIN HIDDEN TESTS
    a, p = abar[1], abar[-49]
    check.mistake("prev is negative, and Python counts a negative index from the end: this is the noisy end of the table",
                  when=close(got, p**0.5 * (x - (1 - a) ** 0.5 * e) / a**0.5 + (1 - p) ** 0.5 * e))
    check.mistake("a skipped step leaves its noise in: the library does update at the last timestep", when=close(got, x))
    ### END HIDDEN TESTS
    check.close(got, want, tol=1e-5)
### BEGIN HIDDEN TESTS
with check.part("the last step of every configuration", weight=3):
    for count, one, offset in ((20, True, 1), (10, True, 0), (12, False, 1), (20, False, 0)):
        got, want, abar = both(offset, count, one, offset)
        a, p = abar[offset], abar[0]
        x0 = (x - (1 - a) ** 0.5 * e) / a**0.5
        clamped = p**0.5 * x0 + (1 - p) ** 0.5 * e
        check.mistake("the index was clamped to 0: right only where set_alpha_to_one is False",
                      when=one and not close(clamped, want) and close(got, clamped))
        check.mistake("the predicted clean sample was returned: right only where set_alpha_to_one is True",
                      when=not one and not close(x0, want) and close(got, x0))
        check.mistake("a skipped step leaves its noise in", when=not close(x, want) and close(got, x))
        check.close(got, want, tol=1e-5)
with check.part("the step whose previous timestep is exactly 0", weight=1):
    got, want, abar = both(50, 20, one=True, offset=0)
    a = abar[50]
    check.mistake("0 is a timestep like any other: only a negative one is past the end of the table",
                  when=close(got, (x - (1 - a) ** 0.5 * e) / a**0.5))
    check.close(got, want, tol=1e-5)
### END HIDDEN TESTS
check.score()

# %% tags=["demo"]
with when_written("one_step", "repaired_step"):
    states, repaired = drive_with(one_step, colleague_step), drive_with(one_step, repaired_step)
    display(filmstrip([picture(states[-1]), picture(repaired[-1]), image], ["colleague", "repaired", "pipeline"]))

# %% [markdown]
# ## 6 · Explain
#
# Say it in your own words, about **your traced run** of section 3. One or two full sentences for each of the first three
# fields, with at least one number from your trace in each of `state` and `axis`; one short entry for each of the others.
#
# | field | what it asks |
# |---|---|
# | `state` | which object is transformed in a step, and what transforms it |
# | `axis` | which axis or shape changes on the way through the step, and why |
# | `trade-off` | what you gain and what you pay when you use more steps |
# | `shape` | the shape of the `sample` that the UNet received in one call |
# | `calls` | how often the UNet ran in the whole run |
# | `gain`, `cost` | one quantity and its direction each, for going from 10 steps to 50; for another choice it might read `bandwidth down` |
#
# *difficulty 2 of 3 · 8 minutes · 6 points.* When you run it, the cell shows how your sentences are read and gives a hint
# where one is not, so that no person has to read it. It does not tell you whether you are right.

# %% explain="step-in-words" difficulty=2 minutes=8
# %%explain step-in-words
# ### BEGIN SOLUTION
# state: Each step takes the latents, a (1, 4, 16, 16) tensor, and replaces them by slightly cleaner ones. The UNet only predicts the noise in them, and scheduler.step computes the new latents from that prediction.
# axis: The batch axis grows from 1 to 2 on the way into the UNet, because guidance needs an unconditional and a conditional prediction, and it is back to 1 when scheduler.step gets the combined noise_pred.
# trade-off: More steps make the picture better because each step asks an easier question, but every step is one more call of the UNet, so the latency grows with the number of steps.
# shape: (2, 4, 16, 16)
# calls: 10
# gain: quality up
# cost: latency up
# ### END SOLUTION

# %% check="words-shape" of="step-in-words" points=1
from inferlab.lab import Check, reference

check = Check("words-shape", points=1)
with check.part("`shape:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("step-in-words").get("shape"), "`shape:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import typed

@reference
def rerun():
    """The facts of the traced run of section 3, made again."""
    from inferlab.models import load_pipeline
    from inferlab.trace import trace

    pipe = load_pipeline("bundled", "cpu")
    pipe.set_progress_bar_config(disable=True)
    with trace(pipe) as again:
        pipe("a large blue ring left of a small yellow square on a white background", num_inference_steps=10, guidance_scale=4.0)
    return again.facts()

check.slot(lambda: typed(check.explanation("step-in-words"), "shape", rerun()["unet.inputs.sample.shape"]), "what the UNet received")
### END HIDDEN TESTS
check.score()

# %% check="words-calls" of="step-in-words" points=1
from inferlab.lab import Check, reference

check = Check("words-calls", points=1)
with check.part("`calls:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("step-in-words").get("calls"), "`calls:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import typed

@reference
def rerun():
    """The facts of the traced run of section 3, made again."""
    from inferlab.models import load_pipeline
    from inferlab.trace import trace

    pipe = load_pipeline("bundled", "cpu")
    pipe.set_progress_bar_config(disable=True)
    with trace(pipe) as again:
        pipe("a large blue ring left of a small yellow square on a white background", num_inference_steps=10, guidance_scale=4.0)
    return again.facts()

check.slot(lambda: typed(check.explanation("step-in-words"), "calls", rerun()["unet.calls"]), "how often the UNet ran")
### END HIDDEN TESTS
check.score()

# %% check="words-gain-cost" of="step-in-words" points=1
from inferlab.lab import Check

check = Check("words-gain-cost", points=1)
with check.part("`gain:` and `cost:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("step-in-words").get("gain"), "`gain:` is empty")
    check.true(check.explanation("step-in-words").get("cost"), "`cost:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import typed

check.slot(lambda: typed(check.explanation("step-in-words"), "gain", ("quality up", "fidelity up", "error down")), "what 50 steps gain")
calls = {"unet calls": "model calls, calls of the unet, denoiser calls, unet evaluations, calls"}
costs = ("latency up", "time up", "compute up", "unet calls up", "speed down", "throughput down")
check.slot(lambda: typed(check.explanation("step-in-words"), "cost", costs, terms=calls), "what 50 steps cost")
### END HIDDEN TESTS
check.score()

# %% check="words-state" of="step-in-words" points=1
from inferlab.lab import Check, reference

check = Check("words-state", points=1)
with check.part("`state:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("step-in-words").get("state"), "`state:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import Rubric, Slot, grade, terms

@reference
def rerun():
    """The facts of the traced run of section 3, made again."""
    from inferlab.models import load_pipeline
    from inferlab.trace import trace

    pipe = load_pipeline("bundled", "cpu")
    pipe.set_progress_bar_config(disable=True)
    with trace(pipe) as again:
        pipe("a large blue ring left of a small yellow square on a white background", num_inference_steps=10, guidance_scale=4.0)
    return again.facts()

TERMS = {
    **terms("latents", "scheduler", "unet", "vae", "image", "channels", unet="+model"),
    "noise": "noise, noise_pred, predicted noise, noise prediction, noise estimate*, estimated noise, noise guess*, epsilon, eps",
    "prompt": "prompt_embeds, prompt embed*, text embed*, embedding*",
}

RUBRIC = Rubric(
    question="Which object is transformed in a step, and what transforms it?",
    lab="One step is a model prediction plus scheduler arithmetic. The scheduler gets that prediction, t and x_t, and gives the "
        "latents of the next, cleaner timestep. The UNet gets the noisy latents, the timestep and the text and gives a prediction.",
    terms=TERMS,
    slots={"state": Slot(
        learned="lab02 state 445d5255a9d2d2d0",
        award=["scheduler changes/makes/denoises latents", "scheduler uses noise + * changes/denoises/makes latents"],
        loose=True,
        deny={
            "unet makes image": "The UNet does not output pixels: it predicts something about the latents, and the VAE makes the picture.",
            "unet predicts image": "The UNet predicts in the latents; there are no pixels before the VAE.",
            "scheduler predicts noise": "Predicting is the UNet's part; the scheduler only does arithmetic with the prediction.",
            "scheduler makes image": "The scheduler returns latents; pixels appear only in the VAE.",
            "unet changes latents": "The UNet only predicts. What applies its prediction to the latents?",
            "unet changes/denoises image": "There is no image inside a step: the UNet answers in latents.",
            "vae changes/denoises latents": "The VAE is outside the loop.",
            "says: one/single step makes/generates/produces/gives/is .. picture/image, one/single step is enough, whole/finished picture/image in/after/from/with one step, "
            "one/single step is the generator/pipeline": "One step only makes the latents a little cleaner; the loop repeats it.",
            "says: adds/adding noise to them/it/latents, adds/adding .. noise in/at/with each/every step, each/every step noise is added, until .. pure noise, until .. all noise, "
            "noisier in/at/with each/every step": "A step takes noise out of the latents, it puts none in.",
            "scheduler add noise": "A step takes noise out of the latents, it puts none in.",
            "says: makes the latents larger/bigger, upsamples/enlarges the latents": "The latents keep their shape from step to step.",
            "says: decodes .. in/at each/every step, each/every step the vae/decoder": "The VAE works once, after the loop.",
            "says: learn/learns from its, weights are updated/changed/adjusted/trained, updates/changes/adjusts the weights, is trained, backprop*": "Nothing is trained here: the weights stay as they are.",
            "says: latents/which are .. pixels, latents .. 1x3x128x128, latents .. 3x128x128":
            "The latents are no pixels: they have four channels and small sides.",
            "* changes prompt": "The text's embeddings stay as they are; something else changes from step to step.",
        },
    )},
    must_award={"state": [
        "Each step rewrites the noisy latent: the neural net estimates what is noise and the DDIM rule subtracts the right amount to land at the next noise level.",
        "It's the sample in latent space that evolves, with the sampler doing the evolving based on the noise the model reported.",
        "The tensor being modified is the latent one (4x16x16); modification is the job of the scheduler, with the noise prediction of the UNet as input.",
        "The latents, a (1, 4, 16, 16) tensor, are updated by scheduler.step from the noise that the UNet predicts.",
        "The scheduler turns the noisy latents of shape (1, 4, 16, 16) into cleaner ones, using the UNet's noise prediction.",
        "In each of the 10 steps the UNet predicts the noise and then scheduler.step changes the latents.",
    ]},
    must_deny={"state": [
        "The UNet transforms the latents in each step, and the scheduler only counts the steps.",
        "The UNet outputs the image of 128 pixels in each step.",
        "The scheduler predicts the noise in the latents and the UNet removes it.",
        "One step is the generator: a single step makes the whole picture from the noise, and the scheduler updates the latents.",
        "The scheduler updates the latents with what the UNet predicts, adding noise to them in every step.",
        "The scheduler updates the latents of 1x3x128x128 with the noise of the UNet.",
        "The scheduler adds a little noise to the latents in every step, as the UNet tells it.",
        "In a step the UNet's weights are adjusted, and the scheduler updates the latents.",
    ]},
)
check.slot(lambda: grade(check.explanation("step-in-words"), RUBRIC, rerun())["state"], "what is transformed, and by what")
### END HIDDEN TESTS
check.score()

# %% check="words-axis" of="step-in-words" points=1
from inferlab.lab import Check, reference

check = Check("words-axis", points=1)
with check.part("`axis:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("step-in-words").get("axis"), "`axis:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import Amounts, Rubric, Slot, grade, terms

@reference
def rerun():
    """The facts of the traced run of section 3, made again."""
    from inferlab.models import load_pipeline
    from inferlab.trace import trace

    pipe = load_pipeline("bundled", "cpu")
    pipe.set_progress_bar_config(disable=True)
    with trace(pipe) as again:
        pipe("a large blue ring left of a small yellow square on a white background", num_inference_steps=10, guidance_scale=4.0)
    return again.facts()

TERMS = {
    **terms("latents", "scheduler", "unet", "batch", "channels", "steps", "calls", unet="+model"),
    "guidance": "guidance, guidance scale, classifier-free guidance, cfg, uncond*, conditional*, conditional and unconditional, empty text, "
    "empty prompt, blank prompt, empty caption, negative prompt, without prompt, without text, without the prompt, without the text, "
    "one with the prompt, with and without, both predictions, two predictions, no prompt, ignoring my words, one without",
}

RUBRIC = Rubric(
    question="Which axis or shape changes on the way through the step, and why?",
    lab="The batch of its sample is not the number of prompts. Two copies of the latents go in, one beside the empty text and one "
        "beside yours. Here the batch is back to the number of prompts. With guidance both halves go through the UNet in one call.",
    terms=TERMS,
    slots={"axis": Slot(
        learned="lab02 axis dab5a2c56b0d8cb3",
        topic=["batch", "guidance"],
        deny={
            "guidance grows/other/changes steps": "Guidance does not change the number of steps.",
            "guidance double/increase/grow/change calls": "Guidance doubles the batch of each call, not the number of calls.",
            "says: height and width grow/change/increase/double, channels change/double/become, channel axis changes, number of channels changes/doubles, "
            "channels .. to 3, doubles the channels": "The channels and the sides keep their size in a step; another axis changes.",
            "says: candidate picture/image/latents, candidate pictures/images, better one, better of the two, keeps the better/best, picks/chooses the better/best":
            "Nothing is chosen: the two rows are one picture with and without the prompt, and guidance combines both.",
            "says: other/one is the noise, row is the noise, row for the noise, row for the image/picture/text, and the timestep as, for the encoder, encoder half, current timestep and one, negative picture/image, two/several/multiple gpus, two users/seeds, of/from/and the previous step/timestep, previous latents, token axis, sequence axis, makes/draws/generates two pictures/images": "Both rows are of one step and one picture: with the prompt and without it.",
            "says: average of both/the, same prompt .. twice, more stable, more robust":
            "The two rows are not the same: one has the empty text, and guidance goes beyond the difference.",
            "says: upsamples the latents, each/every step upsamples/enlarges, bigger/larger in/at/with each/every step, width/height/side/sides grows/increases":
            "The channels and the sides keep their size in a step; another axis changes.",
            "says: runs/called/evaluated/executed/works 20/twenty times, once for each half, one call for each half, call for each half, twice in every/each step, called twice, runs twice .. step, batch stays 1, batch .. stays the same":
            "Guidance doubles the batch of each call, not the number of calls.",
            "batch grows steps": "The batch has nothing to do with the number of steps.",
        },
        amounts=Amounts(
            shapes=["unet.inputs.sample.shape"], counts={"batch": [1, 2], "channels": 4}, key=["batch=2"],
            at={"unet": {"batch": 2}, "scheduler": {"batch": 1}}, of={"scheduler": "scheduler.step.inputs.sample.shape"},
        ),
        loose=True,
        names=["guidance"],
    )},
    must_award={"axis": [
        "The batch. Guidance needs a conditional and an unconditional run, so one latent is duplicated and the UNet sees 2.",
        "Axis 0 goes 1 -> 2 -> 1, since CFG stacks the empty prompt's copy on top and merges afterwards.",
        "The batch axis grows from 1 to 2 before the UNet because guidance needs both predictions.",
        "Guidance doubles the batch, so the UNet gets (2, 4, 16, 16) while scheduler.step gets (1, 4, 16, 16).",
        "The batch axis is 2 in the UNet and 1 in scheduler.step, because guidance makes two predictions.",
        "The first axis changes: the UNet sees (2, 4, 16, 16) since guidance runs the conditional and the unconditional half together.",
        "With guidance the batch goes from 1 to 2 because the latents are copied once for the empty prompt and once for mine.",
    ]},
    must_deny={"axis": [
        "The number of channels doubles from 4 to 8 because of guidance.",
        "The channel axis changes, because the UNet takes 4 channels and returns 3 channels.",
        "Guidance doubles the number of steps, so the UNet gets (2, 4, 16, 16).",
        "The batch axis is 20 in the UNet because there are twenty calls.",
        "The batch is 2 in the UNet since guidance makes two candidate pictures and the better one goes on to the scheduler.",
        "The batch becomes 2 for guidance: one row is the latents and the other is the noise.",
        "Batch 1 -> 2: guidance evaluates the same prompt twice and takes the average of both.",
    ]},
)
check.slot(lambda: grade(check.explanation("step-in-words"), RUBRIC, rerun())["axis"], "what changes shape, with its numbers")
### END HIDDEN TESTS
check.score()

# %% check="words-trade-off" of="step-in-words" points=1
from inferlab.lab import Check, reference

check = Check("words-trade-off", points=1)
with check.part("`trade-off:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("step-in-words").get("trade-off"), "`trade-off:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import Rubric, Slot, Trend, grade

@reference
def rerun():
    """The facts of the traced run of section 3, made again."""
    from inferlab.models import load_pipeline
    from inferlab.trace import trace

    pipe = load_pipeline("bundled", "cpu")
    pipe.set_progress_bar_config(disable=True)
    with trace(pipe) as again:
        pipe("a large blue ring left of a small yellow square on a white background", num_inference_steps=10, guidance_scale=4.0)
    return again.facts()

TERMS = {
    "steps": "step*, timestep*, time step*, denoising steps, iteration*, schedule",
    "jump": "each jump, every jump, the jumps, each stride, every stride, the strides, each leap, every leap, the leaps, step size*, step width*, step length*, size of a step, size of each step",
}

RUBRIC = Rubric(
    question="What do you gain and what do you pay when you use more steps?",
    lab="Each later step starts from a better x_t and therefore asks an easier question.",
    terms=TERMS,
    slots={"trade-off": Slot(
        learned="lab02 trade-off 787b41fe543e88c4",
        deny={"says: costs nothing, not cost anything, cost nothing, for free, pay nothing, resolution": "Each step is another call of the UNet.",
              "says: how strong .. guidance, guidance is/gets/becomes stronger, stronger guidance, scale .. multiplied": "The guidance scale is the same in every step.",
              "says: vae has to decode, vae/decoder .. more often": "The VAE decodes once, however many steps there are.",
              "says: weights .. refined/trained/learned/updated/improved, trains longer/more, trained longer/more, model learns, generalises/generalizes": "Nothing is trained here: the weights stay as they are.",
              "says: more memory for weights, more weights": "The weights are loaded once, whatever the steps."},
        trend=Trend(
        "steps", gain={"quality": "up"}, cost={"time": "up", "compute": "up"}, asked="up", also={"jump": "down", "memory": "same"},
        says={"quality up": "what the model can really draw, smaller jumps, smaller strides, "
                            "error of each/every/a/one step falls/drops/shrinks/decreases, approximation is/gets better, finer schedule, cleaner picture, corrected better, "
                            "closer to what, more gradually, smaller steps",
              "compute up": "unet has to run, step/iteration costs/needs one/another, called/runs/run/evaluated/executed 50/fifty times instead/rather/not, "
                            "compute/cost/work is five/5 times, five/5 times that of, another unet, one more unet, network is called more, unet is called more, unet runs once more, "
                            "5x the steps .. compute, five times .. unet/network/calls/evaluations, 50 .. instead of 10, 50 rather than 10, "
                            "50 unet/network/model calls/evaluations/passes/runs, each .. further/additional/extra pass/call/evaluation, linear in"},
    ))},
    must_award={"trade-off": [
        "Each jump gets shorter and so the picture is better, but the network is called 50 times instead of 10.",
        "The error gets smaller, and with 50 steps the work is five times that of 10.",
        "You get a crisper picture for every extra step, yet each of them is one more pass through the network.",
        "The image improves when I let it run for longer, but my patience and the GPU pay for it: 50 calls of the UNet and not 10.",
        "Quality goes up with the steps while the time it takes grows linearly.",
        "More steps give a better picture but take more time.",
        "With more steps the quality goes up, and so does the latency, because each step is another UNet call.",
        "Fewer steps are faster but the image gets worse.",
    ]},
    must_deny={"trade-off": [
        "More steps save time, the quality suffers.",
        "With more steps the image gets worse but it is quicker.",
        "More steps make the run faster and the picture worse.",
        "Using more steps lowers the latency while the quality goes up.",
        "More steps cost time, and the picture gets better since the weights are trained longer.",
        "You wait longer with more steps, but the guidance gets stronger and the picture is better.",
        "With more steps the picture gets better, and the memory grows.",
    ]},
)
check.slot(lambda: grade(check.explanation("step-in-words"), RUBRIC, rerun())["trade-off"], "what more steps gain and cost")
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7 · Notice
#
# * **Two owners, one contract.** The network knows nothing about the size of the step, the scheduler nothing about
#   pictures. What joins them is one word in a config, `prediction_type`. If it is wrong, every shape is right and every
#   picture is wrong.
# * **The model does not output pixels.** It answers in latents, in the language its training chose. Pixels appear once, after the
#   loop, in the VAE.
# * **Prediction types can be translated, not exchanged.** Translating needs $x_t$ and $\bar\alpha_t$, so it must know where in the
#   schedule it is. Most wrong pairs draw noise. Noise that is taken for a velocity draws nearly the right picture in
#   the wrong colors: the worst of them, because nobody looks twice.
# * **One step is not the generator.** The first guess is an average of everything that fits the prompt; the loop is what
#   commits to one picture.
# * **"It looks right" is not a proof.** With a clamped index the picture is the same to the eye. Comparing with `scheduler.step` in
#   another configuration is what told them apart.
#
# Say it out loud, as in an interview: name the state object, the shape or axis that changes, and the trade-off. What depends on
# the version you run (the names of config entries, what a step clips) you look up in the installed source, as you did in
# section 4.

# %% [markdown]
# ## 8 · Check and hand in
#
# Run this cell last. It runs the visible checks again, says what is missing, and leaves one file to hand in.

# %% tags=["demo"]
from inferlab.lab import submit

submit()
