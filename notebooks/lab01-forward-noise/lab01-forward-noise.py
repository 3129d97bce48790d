# %% [markdown]
# # Lab 01 · Forward noise
#
# A diffusion model is trained on pictures with noise in them. In this lab you add the noise: you make
# training examples with a real `StableDiffusionPipeline`, measure how much of a picture is left at each
# level, and find out why a colleague's training pairs teach the wrong thing.
#
# **Time** 35 to 45 minutes without the reading · **Points** 12, of which 3 are practice (exercise 2) ·
# **Reading** [Forward noise](../../handbook/lab01-forward-noise.md) in the handbook, before you start

# %% tags=["parameters"]
LEARNER = ""  # your name or id, as your course knows you
MODEL = "bundled"  # "bundled" | "full" | "hub"
DEVICE = "auto"  # "auto" | "cpu" | "cuda"
SEED = 0

# %% [markdown]
# Grading always uses `"bundled"`, a small trained model, on the CPU. `"full"` has the architecture of Stable
# Diffusion 1.5 with random weights: calls, shapes and schedules are real, losses and pictures mean nothing.

# %%
from inferlab.lab import start

lab = start("lab01-forward-noise", LEARNER, MODEL, DEVICE, SEED)

# %%
import torch
from diffusers import DDIMScheduler, DDPMScheduler, FlowMatchEulerDiscreteScheduler
from inferlab.models import load_pipeline
from inferlab.models.scenes import render, sample_scenes

torch.set_grad_enabled(False)
pipe = load_pipeline(MODEL, lab.device)
pipe.scheduler = DDIMScheduler.from_config(pipe.scheduler.config)  # a checkpoint may bring another

# %% [markdown]
# ## 1 · Goal and mental model
#
# After this lab you can say what a training example is, what the number `t` in it means, and how much of the
# picture is left at any `t` of any schedule.
#
# Adding noise is **fixed arithmetic**. It mixes clean latents $x_0$ (a picture, encoded by the pipeline's
# VAE) with noise $\epsilon$ of the same shape:
#
# $$x_t = \sqrt{\bar\alpha_t}\;x_0 + \sqrt{1-\bar\alpha_t}\;\epsilon$$
#
# There is no network in this line, and nothing in it is learned. $\bar\alpha_t$ is an entry of a table,
# `alphas_cumprod`, and **`t` is its row number**: it names a *noise level*.

# %%
table = pipe.scheduler.alphas_cumprod
for t in (0, 250, 500, 750, 999):
    signal, sigma = table[t] ** 0.5, (1 - table[t]) ** 0.5
    print(f"t = {t:3d}   weight of the picture {signal:.4f}   of the noise {sigma:.4f}")

# %% [markdown]
# The trained network, the UNet, only *predicts* which noise was mixed in. `scheduler.step` takes some noise
# out again when a picture is *made* (lab 02). Training never calls it.

# %% [markdown]
# ![Left, an arc and a straight line from picture to noise, cut by one ray, with a diamond just before the
# arc's end; right, four falling curves of the signal-to-noise ratio over
# t.](../../handbook/figures/lab01-levels.svg)
#
# *From the handbook.* Left: each mixture is a point; the two weights are its coordinates. Diffusion moves
# along an arc, flow matching along a line. Right: the signal-to-noise ratio, the square of the ratio of the
# weights, along four schedules.

# %% [markdown]
# ## 2 · Predict
#
# A training step takes a batch of pictures with captions. For each picture it draws a `t`. It encodes the
# pictures, adds noise, and asks the UNet which noise was added. (Real training then updates the weights.)
#
# ### Exercise 1 · What does a training step call?
#
# *difficulty 1 of 3 · 4 minutes · 3 points*
#
# **Before you run anything further**, write a function that says what a *trace* of such a step will show: a
# record of every call, with its inputs and outputs. It is graded on training steps that this notebook never
# makes.
#
# | argument | meaning |
# |---|---|
# | `timesteps` | the `t` of each picture of the batch, a list of `int`; so its length is the number of pictures |
# | `height`, `width` | size of the pictures, in pixels |
#
# Returns a `dict`: the number of calls (`int`) under `"scheduler.add_noise"` and `"unet"`, and under `"x_t"`
# the shape of the noisy latents, a tuple of `int`.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Does reaching level 999 take more work than reaching level 3? Look at the formula: is there a loop in it?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# Both are called once for the whole batch. The VAE's latents have 4 channels, and an eighth of the picture's
# height and width.
# </details>

# %% exercise="forecast" provides=["forecast"] difficulty=1 minutes=4
def forecast(timesteps, height, width):
    """What a trace of one training step shows: two numbers of calls, and a shape."""
    ### BEGIN SOLUTION
    batch = len(timesteps)
    return {"scheduler.add_noise": 1, "unet": 1, "x_t": (batch, 4, height // 8, width // 8)}
    ### END SOLUTION

# %% [markdown]
# ## 3 · Trace
#
# Three pictures, three captions, three levels. The noise is drawn once and kept, because it is the answer
# that we want from the UNet.

# %%
scenes = sample_scenes(3, torch.Generator().manual_seed(SEED))
pictures = render(scenes).to(lab.device, pipe.vae.dtype)
captions = [scene.caption for scene in scenes.scenes()]
timesteps = torch.tensor([60, 500, 940], device=lab.device)
side = pictures.shape[-1] // pipe.vae_scale_factor
noise = torch.randn(3, 4, side, side, generator=torch.Generator().manual_seed(SEED)).to(pictures)
print(*captions, sep="\n")

# %%
from inferlab.trace import trace

with trace(pipe) as step_trace:
    clean = pipe.vae.encode(pictures * 2 - 1).latent_dist.mean * pipe.vae.config.scaling_factor
    x_t = pipe.scheduler.add_noise(clean, noise, timesteps)
    text, _ = pipe.encode_prompt(captions, lab.device, 1, do_classifier_free_guidance=False)
    answer = pipe.unet(x_t, timesteps, encoder_hidden_states=text).sample
step_trace.table(level=1)

# %% [markdown]
# **That is a training example**, three times over: the input is `x_t`, `t` and the text; the target is
# `noise`. Stop at three lines of the table:
#
# * **`scheduler.add_noise`** ran once. It went to level 940 as directly as to level 60. Noise is *not* added
#   step after step;
# * **`unet`** ran once. Nothing here goes from noise to a picture, so this is no generator;
# * the UNet's **`timestep`** has one entry for each picture, and each entry names a level.
#
# **Reconcile.** Put `forecast([60, 500, 940], 128, 128)` beside the trace. Where they differ, the trace is
# right.

# %% tags=["demo"]
for name in ("scheduler.add_noise", "unet"):
    print(f"{name:20s} {len(step_trace.find(name))} calls")
print("x_t                 ", tuple(step_trace.find("scheduler.add_noise")[0].outputs.shape))

# %% check="forecast" points=3
from inferlab.lab import Check, reference

check = Check("forecast", points=3)

def ask_forecast(*step):
    """The learner's forecast of a training step, once it has the form that the contract asks for."""
    got = check.learner.forecast(*step)
    calls = ["scheduler.add_noise", "unet"]
    check.true(isinstance(got, dict) and set(got) == {*calls, "x_t"},
               "return a dict with exactly the three keys of the contract")
    check.true(isinstance(got["x_t"], tuple), "the shape is a tuple, such as (1, 2, 3)")
    return {key: got[key] for key in calls}, got["x_t"]

with check.part("the calls of the traced step", weight=1):
    counted, _ = ask_forecast([60, 500, 940], 128, 128)
    check.equal(counted, {"scheduler.add_noise": 1, "unet": 1})
### HIDDEN TESTS
check.score()

# %% [markdown]
# ### One picture, many noise levels
#
# The same picture and the same noise at six levels, decoded.

# %% tags=["demo"]
from inferlab.lab import filmstrip


def picture(latents):
    """Latents, (B, 4, h, w), to B pictures, as the pipeline decodes them."""
    decoded = pipe.vae.decode(latents / pipe.vae.config.scaling_factor).sample
    return pipe.image_processor.postprocess(decoded)


levels = torch.tensor([0, 100, 250, 500, 750, 999], device=lab.device)
noisy = pipe.scheduler.add_noise(clean[[0] * 6], noise[[0] * 6], levels)
labels = [f"t = {t}" for t in levels.tolist()]
filmstrip(picture(noisy), labels, "One picture gives an example at every level")

# %% [markdown]
# One picture gives examples at a thousand levels.

# %% [markdown]
# ## 4 · Read
#
# The same arithmetic in the installed diffusers:

# %% jupyter={"source_hidden": true}
from inferlab.lab import show_source

show_source(
    DDPMScheduler.add_noise,
    {
        "sqrt_alpha_prod = alphas_cumprod[timesteps] ** 0.5":
            "The whole dependence on t: one row of the table for each sample. There is no loop over t.",
        "while len(sqrt_alpha_prod.shape) < len(original_samples.shape):":
            "(B,) becomes (B, 1, 1, 1), so that each sample is multiplied by its own weight.",
        "sqrt_one_minus_alpha_prod = (1 - alphas_cumprod[timesteps]) ** 0.5":
            "The squares of the two weights add up to 1: the latents keep their size.",
        "noisy_samples = sqrt_alpha_prod * original_samples + sqrt_one_minus_alpha_prod * noise":
            "The forward process. No network, no text, no random number of its own: noise is an argument.",
    },
    excerpts=[("sqrt_alpha_prod = alphas_cumprod[timesteps] ** 0.5", "return noisy_samples")],
    checked="0.42.1",
)

# %% [markdown]
# The same for **flow matching** (FLUX, Stable Diffusion 3, Wan), where the path from picture to noise is a
# straight line:

# %% jupyter={"source_hidden": true}
show_source(
    FlowMatchEulerDiscreteScheduler.scale_noise,
    {
        "sigma = sigmas[step_indices].flatten()": "Again one row of a table. Here the table holds sigmas.",
        "sample = sigma * noise + (1.0 - sigma) * sample":
            "The line. Here the weights themselves add up to 1, not their squares.",
    },
    excerpts=[("sigma = sigmas[step_indices].flatten()", "return sample")],
    checked="0.42.1",
)

# %% [markdown]
# Both mix the same two things. Divide diffusion's mixture by the sum of its two weights, and it lies on the
# line.

# %% [markdown]
# ## 5 · Build
#
# ### Exercise 2 · Levels
#
# *difficulty 2 of 3 · 5 minutes · 3 points*
#
# In another schedule, the same row number is another noise level. What can be compared is the
# **signal-to-noise ratio**: the squared weight of the picture over the squared weight of the noise. Write
# two functions:
#
# | function | gets | returns |
# |---|---|---|
# | `snr(alphas_cumprod)` | `(T,)`, `float32`, each from 0 to below 1 | the signal-to-noise ratio at each `t`, `(T,)` |
# | `zero_terminal(alphas_cumprod)` | `(T,)`, falling, its last entry above 0 | `(T,)`: the same schedule, bent so that the **last** entry is 0 |
#
# `zero_terminal` is what `rescale_betas_zero_snr=True` does: the **weights of the picture**,
# $\sqrt{\bar\alpha_t}$, are shifted so that the last one is 0, and then stretched so that the first one is
# what it was. You write the line that bends the weights.
#
# <details><summary>Hint 1: a nudge</summary>
#
# `zero_terminal`: a shift moves the first weight too. By which factor must all weights be multiplied to bring
# it back?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# The ratio is <code>alphas_cumprod</code> over 1 minus itself. For the other function:
# <code>bent = (weight - weight[-1]) * weight[0] / (weight[0] - weight[-1])</code>.
# </details>

# %% exercise="levels" provides=["snr", "zero_terminal"] difficulty=2 minutes=5
def snr(alphas_cumprod):
    """Signal-to-noise ratio at each t."""
    ### BEGIN SOLUTION
    return alphas_cumprod / (1 - alphas_cumprod)
    ### END SOLUTION


def zero_terminal(alphas_cumprod):
    """The schedule with its last entry at 0 and its first entry as it was."""
    weight = alphas_cumprod.sqrt()
    ### BEGIN SOLUTION
    bent = (weight - weight[-1]) * weight[0] / (weight[0] - weight[-1])
    ### END SOLUTION
    return bent**2

# %% check="levels" points=3
import torch
from diffusers import DDPMScheduler
from inferlab.lab import Check, close

check = Check("levels", points=3)

def schedule(kind="scaled_linear", **config):
    """The alphas_cumprod of one of the library's schedules, (T,)."""
    ends = {"beta_start": 0.00085, "beta_end": 0.012} if kind == "scaled_linear" else {}
    return DDPMScheduler(beta_schedule=kind, **(ends | config)).alphas_cumprod

with check.part("`snr` where it can be done in the head", weight=1):
    check.close(check.learner.snr(torch.tensor([0.5, 0.9, 0.2])), torch.tensor([1.0, 9.0, 0.25]), tol=1e-4)
with check.part("the ends of `zero_terminal`", weight=1):
    bent = check.learner.zero_terminal(schedule())
    check.tensor(bent, shape=(1000,))
    check.close([float(bent[0]), float(bent[-1])], [float(schedule()[0]), 0.0], tol=1e-5)
### HIDDEN TESTS
check.score()

# %% [markdown]
# ### Four schedules and a line
#
# Your functions, on the library's schedules:

# %%
SCHEDULES = {
    "linear (DDPM)": {"beta_schedule": "linear"},
    "cosine": {"beta_schedule": "squaredcos_cap_v2"},
    "scaled linear (SD 1.5)": {"beta_schedule": "scaled_linear",
                               "beta_start": 0.00085, "beta_end": 0.012},
}  # the fourth is made by you


def all_tables():
    """The alphas_cumprod of four schedules; the last is the third, bent by you."""
    made = {name: DDPMScheduler(**ends).alphas_cumprod for name, ends in SCHEDULES.items()}
    return made | {"zero-terminal": zero_terminal(made["scaled linear (SD 1.5)"])}

# %% tags=["demo"]
from inferlab.lab import when_written
from inferlab.lab.kits.pipelines.noise_levels import levels_over_t

with when_written("snr", "zero_terminal"):
    sigmas = FlowMatchEulerDiscreteScheduler().sigmas[:1000].flip(0)  # of the line, from little noise to much
    curves = {name: snr(values) for name, values in all_tables().items()}
    curves["flow line"] = ((1 - sigmas) / sigmas) ** 2
    display(levels_over_t(curves, "The same t is another noise level in every schedule"))

# %% [markdown]
# At one row, their signal-to-noise ratios differ by a factor of more than ten. Now look at the **right-hand
# end**. Is the last `t` pure noise?

# %% tags=["demo"]
with when_written("zero_terminal"):
    for name, values in all_tables().items():
        print(f"{name:23s} weight of the picture at the last t: {values[-1] ** 0.5:.5f}")

# %% [markdown]
# The last `t` is pure noise only where that weight is 0. With Stable Diffusion's schedule, some of the
# picture is left, and the network learns to use it: mostly the average color. When a picture is *made*, the
# loop starts from noise alone, and the network takes that noise's average, a medium grey, for the picture's.
# So such models hardly ever draw a black night. Zero-terminal schedules repair that ([Lin et
# al.](https://arxiv.org/abs/2305.08891)).

# %% [markdown]
# ### Exercise 3 · Training pairs that teach the wrong thing
#
# *difficulty 3 of 3 · 8 minutes · 3 points*
#
# A colleague has read that noise is added step after step, and has written just that. A `beta` is the share
# of noise (squared weight) that one step adds.

# %%
def colleague_pair(clean, noise, timesteps, betas):
    """Noisy latents at each sample's timestep, and what the network should answer."""
    rows = []
    for x, eps, t in zip(clean, noise, timesteps.tolist(), strict=True):
        for beta in betas[:t + 1]:
            x = (1 - beta).sqrt() * x + beta.sqrt() * eps
        rows.append(x)
    return torch.stack(rows), noise

# %% [markdown]
# The shapes are right. But look at the standard deviation, and at the trained UNet's loss (the mean square of
# answer minus target; always answering 0 would give about 1):

# %% tags=["demo"]
betas = pipe.scheduler.betas.to(lab.device)


def look_at(name, sample, target):
    """Print how large x_t is at each of the three levels, and the UNet's loss on it."""
    said = pipe.unet(sample.to(x_t.dtype), timesteps, encoder_hidden_states=text).sample.float()
    sizes = " ".join(f"{row.float().std():6.2f}" for row in sample)
    losses = " ".join(f"{loss:6.4f}" for loss in (said - target.float()).square().mean((1, 2, 3)))
    print(f"{name:10s} standard deviation of x_t {sizes}   loss {losses}")


look_at("add_noise", x_t, noise)
look_at("colleague", *colleague_pair(clean.float(), noise.float(), timesteps, betas))

# %% [markdown]
# "I see," says the colleague. "I must draw *fresh* noise in each step." The standard deviation would then be
# right. But which noise would be in $x_t$, and which one would be the target? Such pairs teach nothing.
#
# Write `training_pair` for a network that answers with the noise. It returns the tuple `(x_t, target)`, two
# tensors shaped like `clean`. `clean` and `noise` are `(B, C, H, W)`; `timesteps` is `(B,)`, `int64`, because
# **each sample has its own**. The table of the schedule is made from its `betas` already.
#
# <details><summary>Hint 1: a nudge</summary>
#
# What do a hundred small weights of the *same* noise add up to? You need no loop at all. And how does one
# weight for each sample meet a tensor of four axes (section 4)?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# <code>level = alphas_cumprod[timesteps].reshape(-1, 1, 1, 1)</code>, and the formula of section 1 with the
# <code>noise</code> that was handed in. That noise is the target, too.
# </details>

# %% exercise="training-pair" provides=["training_pair"] difficulty=3 minutes=8
def training_pair(clean, noise, timesteps, betas):
    """(x_t, target) of a batch."""
    alphas_cumprod = torch.cumprod(1 - betas, dim=0)
    ### BEGIN SOLUTION
    level = alphas_cumprod[timesteps].reshape(-1, 1, 1, 1)
    return level.sqrt() * clean + (1 - level).sqrt() * noise, noise
    ### END SOLUTION

# %% check="training-pair" points=3
import torch
from diffusers import DDPMScheduler
from inferlab.lab import Check, close

check = Check("training-pair", points=3)
x0, eps = torch.randn(2, 4, 4, 8, 8, generator=torch.Generator().manual_seed(11))
x0 = 2 * x0 + 0.5  # so that the clean latents and the noise are not alike

def pair_of(rows, config):
    """The learner's pair for these rows of a schedule, and the schedule."""
    library = DDPMScheduler(**config)
    t = torch.tensor(rows)
    got = check.learner.training_pair(x0[:len(rows)], eps[:len(rows)], t, library.betas)
    check.true(isinstance(got, tuple) and len(got) == 2, "return the tuple (x_t, target)")
    for tensor in got:
        check.tensor(tensor, shape=(len(rows), 4, 8, 8))
    return got, library, t

STABLE = {"beta_schedule": "scaled_linear", "beta_start": 0.00085, "beta_end": 0.012}
with check.part("x_t at t = 500, as DDPMScheduler.add_noise", weight=1):
    (got, _), library, t = pair_of([500, 500], STABLE)
    ### HIDDEN TESTS
    check.close(got, library.add_noise(x0[:2], eps[:2], t), tol=1e-4)
### HIDDEN TESTS
check.score()

# %% tags=["demo"]
with when_written("training_pair"):
    look_at("yours", *training_pair(clean.float(), noise.float(), timesteps, betas))

# %% [markdown]
# ### Four languages, one system of equations
#
# A network is trained to answer in one of four "languages". Each answer, like $x_t$, is a mixture of $x_0$
# and $\epsilon$. The `weights` below say which. (`signal` and `sigma` are the weights in `x_t`.) Two mixtures
# are **two equations for two unknowns**, so each answer can be translated into the others:

# %%
def translate_to(wanted, output, spoken, x_t, signal, sigma):
    """What `output`, an answer in the language `spoken`, says in the language `wanted`."""
    weights = {"epsilon": (0, 1), "sample": (1, 0),  # the noise; the clean latents
               "v_prediction": (-sigma, signal), "flow": (-1, 1)}  # the velocities of the arc and of the line
    p, q = weights[spoken]
    det = signal * q - sigma * p
    if det == 0:
        raise ValueError(f"at these weights, x_t and {spoken} do not determine the picture and the noise")
    clean, noise = (q * x_t - sigma * output) / det, (signal * output - p * x_t) / det
    p, q = weights[wanted]
    return p * clean + q * noise

# %% [markdown]
# **Translate one answer.** At some place `x_t` is 1.0, with a `signal` of 0.8 and a `sigma` of 0.6. The cell
# says which clean latent a network means that speaks `epsilon` and answers 0.5. Change it: what does a
# network mean that speaks `v_prediction` and answers **0.2**? Keep that number for section 6.

# %% tags=["demo"]
print(translate_to("sample", 0.5, "epsilon", 1.0, signal=0.8, sigma=0.6))

# %% [markdown]
# Here are the UNet's own answers from the traced step, translated in the same way:

# %% tags=["demo"]
guesses = []
for said, seen, t in zip(answer.float(), x_t.float(), timesteps.tolist(), strict=True):
    signal, sigma = float(table[t]) ** 0.5, float(1 - table[t]) ** 0.5
    guesses.append(translate_to("sample", said, "epsilon", seen, signal, sigma))
shown = picture(torch.cat([x_t, torch.stack(guesses).to(x_t)]))
names = [f"{what} t = {t}" for what in ("x_t,", "guess,") for t in timesteps.tolist()]
filmstrip(shown, names, "An answer about the noise is a guess of the picture")

# %% [markdown]
# At 60 the guess is the picture. At 940 it is an average of all that the caption allows: one answer is not
# yet a picture (lab 02).
#
# `translate_to` refuses what is not determined: at a zero-terminal schedule's last `t`, $x_t$ *is* the noise,
# and the answer `epsilon` only repeats it. So models for such schedules speak another language, in practice
# `v_prediction`.

# %% [markdown]
# ## 6 · Explain
#
# Say what happened in **your traced step**, and what you saw of the schedules. In `example`, `t` and `last`
# you write short sentences, one a line, from the tables below: an entry of `who`, a verb, an entry of its row
# and, if you like, entries of a row `may follow`. In `picture` you type the clean latent that you translated.
# Lines that begin with `#` are your own notes.

# %% jupyter={"source_hidden": true}
### FIXTURE words
words

# %% [markdown]
# *difficulty 1 of 3 · 6 minutes · 3 points.* The cell shows how it reads each line, and that reading is
# graded when you hand in. One false sentence costs its field all points, so write only what you know. A line
# that the cell cannot read is graded by a person.

# %% explain="one-example" difficulty=1 minutes=6
%%explain one-example
# ### BEGIN SOLUTION
# example: add_noise mixes the noise into the latents in one sum
#   the UNet predicts the noise
# t: t is a row of the table
#   t names another level in another schedule
# last: Stable Diffusion's last t leaves some of the picture
#   the zero-terminal last t leaves nothing of the picture
# picture: 0.68
# ### END SOLUTION

# %% check="words-example" of="one-example" points=1
from inferlab.lab import Check

check = Check("words-example", points=1)
with check.part("`example:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("one-example").get("example"), "`example:` is empty")
### HIDDEN TESTS
check.score()

# %% check="words-level" of="one-example" points=1
from inferlab.lab import Check

check = Check("words-level", points=1)
with check.part("`t:` and `last:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("one-example").get("t"), "`t:` is empty")
    check.true(check.explanation("one-example").get("last"), "`last:` is empty")
### HIDDEN TESTS
check.score()

# %% check="words-language" of="one-example" points=1
from inferlab.lab import Check

check = Check("words-language", points=1)
with check.part("`picture:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("one-example").get("picture"), "`picture:` is empty")
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7 · Notice
#
# * **Noising is not the generator.** It is two weights and a sum. The loop of labs 02 and 04 makes pictures.
# * **`t` is a row of a table.** It counts neither pictures nor the steps of a run. In another schedule the
#   same row is another noise level; compare signal-to-noise ratios instead.
# * **Noise is not added step after step.** Many small steps with fresh noise reach the same level, but then
#   no tensor that you drew is the noise in $x_t$.
# * **The last `t` need not be pure noise.** The table's last entry says how much is left.
# * **Diffusion and flow matching mix the same two things.** At the same ratio of the weights, the two
#   mixtures differ only in size.
# * **Four languages, one content.** With $x_t$, each answer can be translated, except `epsilon` at pure noise
#   and `sample` at none.

# %% [markdown]
# Flashcards on diffusion, for now or for another day. Some belong to later labs:

# %% tags=["demo"]
from inferlab.lab.cards import show_cards

show_cards("diffusion")

# %% [markdown]
# ## 8 · Check and hand in
#
# Run this cell last. It runs the visible checks again, says what is missing, and leaves one file to hand in.

# %% tags=["demo"]
from inferlab.lab import submit

submit()
