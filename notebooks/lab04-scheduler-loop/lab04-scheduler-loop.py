# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Lab 04 · The scheduler loop
#
# A pipeline call is one loop that moves one tensor. In this lab you predict that loop, watch it run, read its source and
# write it yourself, until it makes the pipeline's latents bit for bit. Then you take it apart: other solvers, a loop that
# works only by luck, a control signal, and a scheduler that does not eat noise.
#
# **Time** about 70 minutes · **Points** 20, of which 7 are practice · **Reading** handbook, *The scheduler loop*

# %% tags=["parameters"]
LEARNER = ""  # your name or id, as your course knows you
MODEL = "bundled"  # "bundled" | "full" | "hub"
DEVICE = "auto"  # "auto" | "cpu" | "cuda"
SEED = 0

# %%
from inferlab.lab import start

lab = start("lab04-scheduler-loop", LEARNER, MODEL, DEVICE, SEED)

# %%
import torch
from diffusers import (DDIMScheduler, DPMSolverMultistepScheduler, EulerDiscreteScheduler,
                       FlowMatchEulerDiscreteScheduler, HeunDiscreteScheduler, UniPCMultistepScheduler)
from inferlab.models import load_pipeline
from inferlab.trace import trace

torch.set_grad_enabled(False)
pipe = load_pipeline(MODEL, lab.device)
pipe.set_progress_bar_config(disable=True)  # the loop runs without its bar just as well
own = pipe.scheduler
PROMPT = "a large red circle left of a small blue square"


# %% [markdown]
# ## 1 · Goal and mental model
#
# After this lab you can say what a run will cost before you make it, why a scheduler can be swapped and when it cannot, and
# where guidance and control take hold.
#
# ```
# latents = noise * init_noise_sigma
# for t in timesteps:
#     model_input = scale_model_input(latents, t)      a copy for the denoiser
#     noise_pred  = denoiser(model_input, t, prompt)   the expensive line
#     latents     = step(noise_pred, t, latents)       the only line that moves the state
# picture = vae.decode(latents)
# ```
#
# Three things to hold on to:
#
# - **`timesteps` is the loop.** Its length is the number of passes, its values say which noise levels are visited.
# - **The denoiser is called once per entry of `timesteps`.** Whether that is once per *step* depends on the solver:
#   a second-order solver such as Heun's looks twice at most steps.
# - **`latents` is the state.** Everything else in the loop is computed from it and thrown away. (A solver may keep a
#   private memory of its own. You will meet it in section 5, when it bites.)

# %% [markdown]
# ## 2 · Predict
#
# Five runs that this notebook never makes. The numbers on the card depend on your name.

# %%
v = lab.variant(8)
card = {
    "A": {"steps": (6, 7, 8, 9, 11, 12, 13, 14)[v]},
    "B": {"steps": (3, 4, 5, 6, 7, 8, 9, 10)[v]},
    "C": {"steps": (20, 25, 40, 50, 20, 25, 40, 50)[v], "strength": (0.3, 0.6, 0.7, 0.4, 0.8, 0.4, 0.3, 0.9)[v]},
    "D": {"steps": (9, 10, 12, 14, 15, 16, 18, 21)[v], "prompts": (3, 4, 5, 6, 3, 4, 5, 6)[v]},
    "E": {"steps": 4, "shift": (2.0, 3.0, 4.0, 5.0, 6.0, 2.5, 3.5, 4.5)[v]},
}
for name, values in card.items():
    print(f"run {name}:", ", ".join(f"{key} = {value}" for key, value in values.items()))

# %% [markdown]
# | run | scheduler | what is asked |
# |---|---|---|
# | A | `DDIMScheduler`, `steps_offset=1`, 1000 training steps | its timesteps with `timestep_spacing="leading"` and with `"trailing"` |
# | B | `HeunDiscreteScheduler`, and `DPMSolverMultistepScheduler` with `solver_order=2` | denoiser calls of each; ticks of the progress bar with Heun |
# | C | image-to-image, A's `"leading"` spacing, with `strength` | denoiser calls, and the first timestep visited |
# | D | `EulerDiscreteScheduler`, several prompts in one call | denoiser calls and rows of the denoiser's batch, with `guidance_scale=1.0` and with `4.0` |
# | E | `FlowMatchEulerDiscreteScheduler` with `shift` | its `sigmas`, including the last one |
#
# *Leading* spacing counts up from `steps_offset` in strides of `1000 // steps`. *Trailing* spacing counts down from
# 999 in strides of `1000 / steps`, rounded. A *flow-matching* schedule of `steps` steps has `steps + 1` sigmas: `steps`
# values, evenly spaced from 1 down to 0.001, both included; each is then bent by
# $s \mapsto \dfrac{\text{shift}\cdot s}{1+(\text{shift}-1)\,s}$; and a 0 is appended, which nothing bends. (The library bends the
# smallest value once more, before it spaces the others. Leave that out: an error of 0.04 is accepted.)
#
# ### Exercise 1 · Five runs on paper
#
# *difficulty 2 of 3 · 10 minutes · 3 points*
#
# Fill `predicted` with the keys listed in the cell, before you run anything. Paper, arithmetic and plain Python are
# welcome; the scheduler itself is not, yet.
#
# <details><summary>Hint</summary>
#
# B: at its last step Heun has no next point to look at. C: `strength` keeps the *last* `int(steps * strength)` steps,
# the clean end: the first part of the way is replaced by adding noise to the image. D: guidance does not add calls;
# look at what `torch.cat([latents] * 2)` does to one.
# </details>

# %% exercise="run-card" provides=["predicted"] difficulty=2 minutes=10
predicted = {}
# predicted["leading"], predicted["trailing"]              lists of int, in the order in which they are visited
# predicted["heun_calls"], predicted["multistep_calls"]    int: calls of the denoiser
# predicted["heun_ticks"]                                  int: how far the progress bar counts
# predicted["strength_calls"], predicted["strength_first"] int: calls, and the first timestep
# predicted["off_calls"], predicted["off_rows"]            int: calls, and rows in each call, guidance_scale=1.0
# predicted["on_calls"], predicted["on_rows"]              the same with guidance_scale=4.0
# predicted["sigmas"]                                      list of float, to two decimals
### BEGIN SOLUTION
n = card["A"]["steps"]
predicted["leading"] = [1 + k * (1000 // n) for k in reversed(range(n))]
predicted["trailing"] = [round(1000 - k * 1000 / n) - 1 for k in range(n)]

n = card["B"]["steps"]
predicted["heun_calls"] = 2 * n - 1  # two looks at every step but the last
predicted["multistep_calls"] = n     # second order from memory: it reuses the last prediction
predicted["heun_ticks"] = n

n, strength = card["C"]["steps"], card["C"]["strength"]
kept = int(n * strength)
predicted["strength_calls"] = kept
predicted["strength_first"] = 1 + (kept - 1) * (1000 // n)

n, prompts = card["D"]["steps"], card["D"]["prompts"]
predicted["off_calls"], predicted["off_rows"] = n, prompts
predicted["on_calls"], predicted["on_rows"] = n, 2 * prompts

n, shift = card["E"]["steps"], card["E"]["shift"]
even = [1 - k * 0.999 / (n - 1) for k in range(n)]
predicted["sigmas"] = [shift * s / (1 + (shift - 1) * s) for s in even] + [0.0]
### END SOLUTION

# %% check="run-card" points=3
from diffusers import DDIMScheduler, DPMSolverMultistepScheduler, FlowMatchEulerDiscreteScheduler, HeunDiscreteScheduler
from inferlab.lab import Check, close

check = Check("run-card", points=3)


def said(key):
    answers = check.learner.predicted
    check.true(isinstance(answers, dict), "predicted must stay a dict")
    check.true(key in answers, f'predicted["{key}"] is not there yet')
    return answers[key]


def visited(scheduler, steps):
    scheduler.set_timesteps(steps)
    return [int(t) for t in scheduler.timesteps]


v = check.variant(8)
a = (6, 7, 8, 9, 11, 12, 13, 14)[v]
with check.part("A: leading timesteps", weight=2):
    want = visited(DDIMScheduler(timestep_spacing="leading", steps_offset=1), a)
    check.true(close(said("leading"), want), "these are not the timesteps that this scheduler visits")
### BEGIN HIDDEN TESTS
with check.part("A: trailing timesteps", weight=2):
    want, got = visited(DDIMScheduler(timestep_spacing="trailing"), a), said("trailing")
    check.mistake(
        "timesteps are indices from 0 to 999: trailing ones lie one below each multiple of the stride",
        when=close(got, [t + 1 for t in want]),
    )
    check.mistake(
        "trailing spacing rounds each multiple of 1000 / steps; you rounded the stride first",
        when=not close(got, want) and close(got, [999 - k * (1000 // a) for k in range(a)]),
    )
    check.true(close(got, want), "these are not the timesteps that this scheduler visits")

b = (3, 4, 5, 6, 7, 8, 9, 10)[v]
with check.part("B: calls and ticks of a second-order solver", weight=2):
    calls = len(visited(HeunDiscreteScheduler(), b))
    check.mistake(
        "you counted steps: Heun calls the denoiser twice at every step but the last", when=said("heun_calls") == b
    )
    check.mistake(
        "the last step has no second look: the noise level after it is zero", when=said("heun_calls") == 2 * b
    )
    check.true(close(said("heun_calls"), calls), "Heun calls the denoiser another number of times")
    check.mistake(
        "the bar counts num_inference_steps, not calls: it is no measure of the work", when=said("heun_ticks") == calls
    )
    check.true(close(said("heun_ticks"), b), "the progress bar counts to another number")
with check.part("B: calls of a multistep solver", weight=1):
    calls = len(visited(DPMSolverMultistepScheduler(solver_order=2), b))
    check.mistake(
        "second order does not always mean two calls: a multistep solver reuses its last prediction",
        when=said("multistep_calls") in (2 * b, 2 * b - 1),
    )
    check.true(close(said("multistep_calls"), calls), "DPM-Solver++ calls the denoiser another number of times")

c, strength = (20, 25, 40, 50, 20, 25, 40, 50)[v], (0.3, 0.6, 0.7, 0.4, 0.8, 0.4, 0.3, 0.9)[v]
with check.part("C: what strength keeps", weight=2):
    kept = min(int(c * strength), c)  # StableDiffusionImg2ImgPipeline.get_timesteps, diffusers 0.42.1
    full = visited(DDIMScheduler(timestep_spacing="leading", steps_offset=1), c)
    check.mistake(
        "strength says how much of the way is walked, not how much is skipped", when=said("strength_calls") == c - kept
    )
    check.mistake(
        "strength shortens the loop: nothing is computed for the part that is skipped", when=said("strength_calls") == c
    )
    check.true(close(said("strength_calls"), kept), "the loop has another length")
    check.mistake(
        "the loop starts in the middle of the schedule: the image replaces the noisy end",
        when=said("strength_first") == full[0],
    )
    check.true(close(said("strength_first"), full[c - kept]), "the loop starts at another timestep")

d, prompts = (9, 10, 12, 14, 15, 16, 18, 21)[v], (3, 4, 5, 6, 3, 4, 5, 6)[v]
with check.part("D: guidance widens the batch", weight=1):
    check.mistake(
        "guidance adds no calls: both halves go through the denoiser in one batch", when=said("on_calls") == 2 * d
    )
    check.mistake("guidance_scale=1.0 means off: there is no second half", when=said("off_rows") == 2 * prompts)
    check.true(close([said("off_calls"), said("on_calls")], [d, d]), "the loop has another length")
    check.true(close([said("off_rows"), said("on_rows")], [prompts, 2 * prompts]), "the denoiser sees other batches")

shift = (2.0, 3.0, 4.0, 5.0, 6.0, 2.5, 3.5, 4.5)[v]
with check.part("E: sigmas of a flow-matching schedule", weight=2):
    flow, got = FlowMatchEulerDiscreteScheduler(shift=shift), said("sigmas")
    flow.set_timesteps(4)
    check.true(isinstance(got, list), "sigmas is a list of floats")
    check.mistake("the last sigma is missing: 4 steps lie between 5 noise levels, the last one 0", when=len(got) == 4)
    check.mistake(
        "these sigmas are even: the shift bends them toward 1",
        when=close(got, [1, 0.667, 0.334, 0, 0], tol=0.01) or close(got, [1, 0.75, 0.5, 0.25, 0], tol=0.01),
    )
    check.mistake(
        "you bent 5 even values, 0 among them: 4 steps have 4 even values, from 1 to 0.001, and the 0 comes after them",
        when=close(got, [shift * s / (1 + (shift - 1) * s) for s in (1, 0.75, 0.5, 0.25, 0)], tol=0.01),
    )
    check.true(close(got, flow.sigmas.tolist(), tol=0.04), "these are not the sigmas of this schedule")
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 3 · Trace
#
# A run on the pipeline's own scheduler: four steps, with guidance.

# %%
with trace(pipe) as traced:
    image = pipe(PROMPT, num_inference_steps=4, guidance_scale=4.0,
                 generator=torch.Generator().manual_seed(SEED)).images[0]
traced.table(level=1)

# %% [markdown]
# Read the table from top to bottom. What is before the loop is done once. In the loop, three boundaries repeat:
# `scale_model_input`, `unet`, `scheduler.step`. The UNet's batch is 2 where the step's is 1: that is guidance, which
# runs inline and which the trace therefore infers. Nothing after the loop is repeated.
#
# How much of the run's time is the loop's, and how much of that is the denoiser? (Shown, not graded.)

# %%
for name in ("encode_prompt", "unet", "scheduler.step", "vae.decode"):
    print(f"{name:16} {traced[name].calls} calls  {traced[name].ms / traced.ms:6.1%} of the run")

# %% [markdown]
# ### The state on its way
#
# The loop is not progress display, and this is the shortest proof: stop it anywhere and decode what it holds.

# %% tags=["demo"]
from inferlab.lab import step_slider


def pictures_of(latents):
    """What the pipeline does after its loop: (B, 4, H, W) to B pictures."""
    return pipe.image_processor.postprocess(pipe.vae.decode(latents / pipe.vae.config.scaling_factor).sample)


states = []


def keep(pipe, i, t, values):
    states.append((int(t), values["latents"]))
    return values


image = pipe(
    PROMPT,
    num_inference_steps=7,
    guidance_scale=4.0,
    callback_on_step_end=keep,
    generator=torch.Generator().manual_seed(SEED),
).images[0]
frames = pictures_of(torch.cat([latents for _, latents in states]))
labels = [f"after t={t}" for t, _ in states]
step_slider(frames, labels)

# %% tags=["demo"]
from inferlab.lab import filmstrip

filmstrip(frames[::2], labels[::2], title="Half way through the layout stands; the edges come last")

# %% [markdown]
# ## 4 · Read
#
# The loop as it stands in your installed diffusers.

# %%
from diffusers import StableDiffusionPipeline
from inferlab.lab import show_source

show_source(StableDiffusionPipeline.__call__, {
    "num_warmup_steps = len(timesteps) - num_inference_steps * self.scheduler.order":
        "order is 2 for Heun: its timesteps list is nearly twice as long as the number of steps asked for.",
    "with self.progress_bar(total=num_inference_steps)":
        "The bar counts steps asked for. It is fed by the loop and feeds nothing back.",
    "for i, t in enumerate(timesteps):": "The loop's length and its noise levels both come from this one tensor.",
    "latent_model_input = torch.cat([latents] * 2)":
        "Guidance: the same latents twice, once for the empty prompt and once for yours.",
    "latent_model_input = self.scheduler.scale_model_input(":
        "A copy for the denoiser. latents itself is not touched here.",
    "noise_pred = self.unet(": "The expensive line: one call for each entry of timesteps.",
    "noise_pred = noise_pred_uncond + self.guidance_scale":
        "Guidance moves the prediction, not the latents.",
    "latents = self.scheduler.step(": "The only assignment to the state. The scheduler gets the unscaled latents.",
    "progress_bar.update()": "Once every `order` passes: 2n-1 calls, n ticks.",
}, excerpts=[
    ("num_warmup_steps = len(timesteps)", "latents = self.scheduler.step("),
    ("if i == len(timesteps) - 1 or", "progress_bar.update()"),
], checked="0.42.1")

# %% [markdown]
# ## 5 · Build
#
# ### Exercise 2 · The loop
#
# *difficulty 2 of 3 · 10 minutes · 3 points*
#
# Write the loop as a function of what it calls. It must not know any pipeline or scheduler.
#
# | argument | what it is |
# |---|---|
# | `unet(model_input, t, embeds)` | returns the noise prediction, shape of `model_input` |
# | `step(noise_pred, t, latents)` | returns the next latents |
# | `scale(sample, t)` | returns what the denoiser should see of `sample` |
# | `timesteps` | a 1-D tensor; hand its entries on as they are |
# | `latents` | `(B, 4, H, W)`, already multiplied by `init_noise_sigma` |
# | `prompt_embeds`, `negative_embeds` | `(B, T, D)` each |
# | `guidance` | above 1: both prompts in one call, negative rows first. 1 or less: the prompt alone |
#
# Returns the last latents, `(B, 4, H, W)`.
#
# <details><summary>Hint</summary>
#
# Section 4 shows the loop with everything a pipeline adds to it. Yours needs its five essential lines. Keep two names
# apart: the scaled copy that goes into the denoiser, and the latents that go into `step`.
# </details>

# %% exercise="loop" provides=["denoise"] difficulty=2 minutes=10
def denoise(unet, step, scale, timesteps, latents, prompt_embeds, negative_embeds, guidance):
    """Run the sampling loop and return the last latents, shape and dtype of `latents`."""
    ### BEGIN SOLUTION
    guided = guidance > 1
    embeds = torch.cat([negative_embeds, prompt_embeds]) if guided else prompt_embeds
    for t in timesteps:
        model_input = scale(torch.cat([latents] * 2) if guided else latents, t)
        noise_pred = unet(model_input, t, embeds)
        if guided:
            uncond, text = noise_pred.chunk(2)
            noise_pred = uncond + guidance * (text - uncond)
        latents = step(noise_pred, t, latents)
    return latents
    ### END SOLUTION

# %% check="loop" points=3
import torch
from inferlab.lab import Check, close

check = Check("loop", points=3)
draw = torch.Generator().manual_seed(4)
first, prompt, empty = (torch.randn(shape, generator=draw) for shape in [(2, 4, 8, 8), (2, 5, 6), (2, 5, 6)])
schedule = torch.tensor([900.0, 600.0, 600.0, 200.0])  # a repeated entry, as a second-order solver has it
calls = []


def note(name, t, *tensors):
    check.true(
        isinstance(t, (int, float)) or (isinstance(t, torch.Tensor) and t.numel() == 1), f"{name} got {t!r} for t"
    )
    for tensor in tensors:
        check.tensor(tensor)
    calls.append((name, float(t), *tensors))


def predict(sample, t, embeds):
    return torch.tanh(sample) + embeds.mean((1, 2)).reshape(-1, 1, 1, 1) + float(t) / 1000


def scale(sample, t):
    note("scale", t, sample)
    return sample / (1 + float(t) / 300)


def unet(model_input, t, embeds):
    note("unet", t, model_input, embeds)
    rows = (len(model_input), len(embeds))
    check.true(rows[0] == rows[1], f"unet got {rows[0]} rows of latents with {rows[1]} rows of embeds")
    return predict(model_input, t, embeds)


def step(noise_pred, t, latents):
    note("step", t, noise_pred, latents)
    check.true(
        noise_pred.shape == latents.shape,
        f"step got a prediction of {tuple(noise_pred.shape)} for {tuple(latents.shape)}",
    )
    return latents - 0.3 * noise_pred


def run(guidance, timesteps=schedule):
    calls.clear()
    return check.learner.denoise(unet, step, scale, timesteps, first, prompt, empty, guidance)


def named(name, least=1):
    found = [call for call in calls if call[0] == name]
    check.true(len(found) >= least, f"{name} was called {len(found)} times in a loop over 4 timesteps")
    return found


with check.part("one scale, one denoiser call, one step for each entry, in this order", weight=1):
    run(3.0)
    check.equal(
        [call[:2] for call in calls], [(name, t) for t in schedule.tolist() for name in ("scale", "unet", "step")]
    )
with check.part("guided: both prompts in one batch, negative rows first", weight=1):
    run(3.0)
    check.equal([len(call[2]) for call in named("unet")], [4] * 4)
    check.close(named("unet")[0][3], torch.cat([empty, prompt]))
### BEGIN HIDDEN TESTS
with check.part("the state goes from step to step, unscaled", weight=1):
    last = run(3.0)
    states = [call[3] for call in named("step", least=4)]
    returned = [call[3] - 0.3 * call[2] for call in named("step", least=4)]
    check.mistake("step was given the scaled copy; it needs the latents themselves", when=close(states[0], first / 4))
    check.mistake("the state never moved: what step returns must become the next latents", when=close(states[1], first))
    for state, before in zip(states, [first, *returned], strict=False):
        check.close(state, before)
    check.mistake("you returned the latents from before the last step", when=close(last, states[-1]))
    check.close(last, returned[-1])
with check.part("the denoiser sees the scaled copy", weight=1):
    run(3.0)
    check.mistake(
        "two calls give the same numbers and cost two launches: both prompts go through the denoiser in one batch",
        when=len(named("unet")) == 8,
    )
    sample = named("unet")[0][2]
    check.mistake(
        "the denoiser got the latents as they are: at high noise levels they are far larger than it was trained on",
        when=close(sample, torch.cat([first, first])),
    )
    check.close(sample, torch.cat([first, first]) / 4)
with check.part("guidance moves from the empty prompt toward yours, and past it", weight=1):
    run(3.0)
    uncond, text = predict(*[named("unet")[0][i] for i in (2, 1, 3)]).chunk(2)
    given = named("step")[0][2]
    check.mistake(
        "guidance is reversed: it moves away from your prompt", when=close(given, text + 3.0 * (uncond - text))
    )
    check.mistake(
        "you started from the prompt's half: that is guidance plus one", when=close(given, text + 3.0 * (text - uncond))
    )
    check.mistake(
        "guidance was not applied: step got one half as it was", when=close(given, text) or close(given, uncond)
    )
    check.close(given, uncond + 3.0 * (text - uncond))
with check.part("guidance off: one row an image, your prompt alone", weight=1):
    last = run(1.0)
    check.mistake(
        "at guidance 1 the other half cancels out: twice the work for the same picture",
        when=len(named("unet")[0][2]) == 4,
    )
    check.equal([len(call[2]) for call in named("unet")], [2] * 4)
    check.mistake("with guidance off you drew the empty prompt", when=close(named("unet")[0][3], empty))
    check.close(named("unet")[0][3], prompt)
    check.close(named("step")[0][2], predict(*[named("unet")[0][i] for i in (2, 1, 3)]))
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ### The same calls, the same bits
#
# Now hand your loop the real parts. The helper gathers what `__call__` prepares before its loop.

# %%
def parts(pipe, steps, seed=SEED, prompt=PROMPT):
    """Everything that `denoise` needs, made by the pipeline's own methods; the scheduler starts afresh."""
    prompt_embeds, negative_embeds = pipe.encode_prompt(prompt, pipe.device, 1, True)
    pipe.scheduler.set_timesteps(steps, device=pipe.device)
    size = pipe.unet.config.sample_size * pipe.vae_scale_factor
    return {
        "unet": lambda model_input, t, embeds: pipe.unet(model_input, t, encoder_hidden_states=embeds).sample,
        "step": lambda noise_pred, t, latents: pipe.scheduler.step(noise_pred, t, latents, return_dict=False)[0],
        "scale": lambda sample, t: pipe.scheduler.scale_model_input(sample, t),
        "timesteps": pipe.scheduler.timesteps,
        "latents": pipe.prepare_latents(1, pipe.unet.config.in_channels, size, size, prompt_embeds.dtype, pipe.device,
                                        torch.Generator().manual_seed(seed)),
        "prompt_embeds": prompt_embeds, "negative_embeds": negative_embeds,
    }


# %% [markdown]
# `prepare_latents` multiplies by `init_noise_sigma`. That factor and `scale_model_input` are all that a loop must
# know of a scheduler, and both are handed in. So the swap below changes no line of yours.

# %% tags=["demo"]
from inferlab.lab import when_written

with when_written("denoise"):
    for Scheduler in (DDIMScheduler, EulerDiscreteScheduler, DPMSolverMultistepScheduler):
        pipe.scheduler = Scheduler.from_config(own.config)
        theirs = pipe(
            PROMPT,
            num_inference_steps=2,
            guidance_scale=4.0,
            output_type="latent",
            generator=torch.Generator().manual_seed(SEED),
        ).images
        mine = denoise(**parts(pipe, 2), guidance=4.0)
        print(
            f"{Scheduler.__name__:28} init_noise_sigma {float(pipe.scheduler.init_noise_sigma):6.3f}   "
            f"equal to the pipeline, bit for bit: {torch.equal(mine, theirs)}   "
            f"largest difference {float((mine - theirs).abs().max()):.1e}"
        )
pipe.scheduler = own

# %% [markdown]
# `False` with a difference near 1e-6 is right as well: the same formula, computed in another order, rounds differently.
#
# DDIM and DPM-Solver++ keep their latents at unit variance, so their `init_noise_sigma` is 1 and their
# `scale_model_input` returns its argument. Euler keeps `x0 + sigma * noise`: its latents start `init_noise_sigma` times as
# large and are divided by $\sqrt{\sigma^2+1}$ for the denoiser. Two conventions for the state, one loop.
#
# (The factor depends on where the loop begins. With *leading* spacing, three steps begin at t = 667; from t = 999 on it
# would be larger: 14.6 with Stable Diffusion's noise schedule.)

# %% [markdown]
# ### Exercise 3 · Reconcile run B
#
# *difficulty 2 of 3 · 6 minutes · 1 point*
#
# Make run B of your card, Heun with your number of steps and `guidance_scale=4.0`, inside `trace`, with the real
# pipeline. Give its rows as `heun_rows`, and put the pipeline's own scheduler back afterwards. If your prediction was
# wrong, correct it in section 2 and be ready to say why.
#
# <details><summary>Hint</summary>
#
# `HeunDiscreteScheduler.from_config(own.config)` makes the scheduler, assigning it to `pipe.scheduler` swaps it. `own` is
# the pipeline's own scheduler, kept since the first cells.
# </details>

# %% exercise="reconcile" provides=["heun_rows"] difficulty=2 minutes=6
heun_rows = None  # the rows() of your trace
### BEGIN SOLUTION
pipe.scheduler = HeunDiscreteScheduler.from_config(own.config)
with trace(pipe) as heun_run:
    pipe(PROMPT, num_inference_steps=card["B"]["steps"], guidance_scale=4.0,
         generator=torch.Generator().manual_seed(SEED))
pipe.scheduler = own
heun_rows = heun_run.rows()
### END SOLUTION

# %% check="reconcile" points=1
from inferlab.lab import Check

check = Check("reconcile", points=1)


def rows(name):
    table = check.learner.heun_rows
    check.true(
        isinstance(table, list) and all(isinstance(row, dict) for row in table),
        "heun_rows is what rows() of a trace returns",
    )
    found = [row for row in table if row.get("name") == name]
    check.true(found, f"no boundary called {name} in these rows: trace(pipe) at its default depth has it")
    return found


with check.part("the rows are those of a whole pipeline call"):
    check.true(
        len(rows("scheduler.set_timesteps")) == 1 and len(rows("vae.decode")) == 1, "one call of the pipeline is wanted"
    )
### BEGIN HIDDEN TESTS
with check.part("Heun, your number of steps, guided"):
    b = (3, 4, 5, 6, 7, 8, 9, 10)[check.variant(8)]
    looks = len(rows("unet"))
    check.mistake("one call for each step: this run was not made with Heun", when=looks == b)
    check.mistake(
        "this is a Heun run, but not with the number of steps on your card", when=looks % 2 == 1 and looks != 2 * b - 1
    )
    check.true(
        looks == 2 * b - 1 == len(rows("scheduler.step")),
        f"run B calls the denoiser another number of times than {looks}",
    )
### END HIDDEN TESTS
check.score()

# %% [markdown]
# And run C for real, with numbers that are on nobody's card: image-to-image from the picture of section 3. Say the number of calls
# and the first timestep before you run the cell.

# %% tags=["demo"]
from diffusers import StableDiffusionImg2ImgPipeline

redraw = StableDiffusionImg2ImgPipeline(**pipe.components, requires_safety_checker=False)
redraw.set_progress_bar_config(disable=True)
with trace(redraw) as kept_steps:
    redrawn = redraw(
        "a large red circle left of a small green star",
        image=image,
        num_inference_steps=8,
        strength=0.5,
        guidance_scale=4.0,
        generator=torch.Generator().manual_seed(SEED),
    ).images[0]
visited_steps = redraw.scheduler.timesteps[-kept_steps["unet"].calls :].tolist()
print(f"8 steps asked for, {kept_steps['unet'].calls} calls of the denoiser, at t = {visited_steps}")
filmstrip([image, redrawn], ["given", "redrawn, strength 0.5"], title="Strength skips the noisy end: the layout stays")

# %% [markdown]
# ### Fewer steps do not only change speed
#
# How far from the converged answer does each solver end? All three start from the same noise and use the spacing of noise
# levels of Karras et al. A run of 16 steps counts as converged; it is made by a fourth solver, UniPC, so that none of the
# three is measured against itself.

# %% tags=["demo"]
side = pipe.unet.config.sample_size


def unit_noise(seed):
    """Starting noise of one picture, (1, 4, side, side); the same on every device."""
    noise = torch.randn(1, 4, side, side, generator=torch.Generator().manual_seed(seed))
    return noise.to(pipe.device, pipe.unet.dtype)


noise = unit_noise(SEED)


def solve(Scheduler, steps):
    pipe.scheduler = Scheduler.from_config(own.config, timestep_spacing="trailing", use_karras_sigmas=True)
    return pipe(PROMPT, num_inference_steps=steps, guidance_scale=1.0, latents=noise, output_type="latent").images


solvers = {
    "Euler": EulerDiscreteScheduler,
    "DPM-Solver++ 2M": DPMSolverMultistepScheduler,
    "Heun": HeunDiscreteScheduler,
}
asked = {"Euler": (5, 9), "DPM-Solver++ 2M": (5, 9), "Heun": (4, 5)}  # Heun's 5 steps are 9 calls
converged = solve(UniPCMultistepScheduler, 16)
error = {
    name: [float((solve(solver, n) - converged).pow(2).mean().sqrt() / converged.std()) for n in asked[name]]
    for name, solver in solvers.items()
}
pipe.scheduler = own

# %% tags=["demo"]
from inferlab.lab.curves import curve_panels

calls = {name: [2 * n - 1 if name == "Heun" else n for n in steps] for name, steps in asked.items()}
curve_panels(
    {
        "num_inference_steps": {name: (asked[name], error[name]) for name in solvers},
        "calls of the denoiser": {name: (calls[name], error[name]) for name in solvers},
    },
    title="At 5 steps Heun is clearly ahead; at 9 calls DPM-Solver++ is beside it",
    ylabel="error of the latents (relative)",
)

# %% [markdown]
# On the left, at 5 steps, Heun looks best. But its 5 steps are 9 calls. On the right, where the work is counted,
# DPM-Solver++ is beside it at 9 calls: it gets its second order from the prediction that it remembers, at no extra call.
# Second order pays only once the steps are short enough: with 4 steps, Heun's error is about twice as large as with 5.
# (This is one picture; with another seed the distances change.) And no curve is flat: with fewer steps you do not get the
# same picture sooner, you get another one.

# %% [markdown]
# ### Exercise 4 · The loop that only DDIM forgives
#
# *difficulty 3 of 3 · 12 minutes · 3 points*
#
# A colleague draws several pictures with one function. It gets the scheduler as a dict of callables:

# %%
def solver_of(scheduler):
    """A scheduler as callables: what a loop may ask of it."""
    return {
        "set_timesteps": lambda steps: (scheduler.set_timesteps(steps), scheduler.timesteps)[1],
        "init_noise_sigma": lambda: float(scheduler.init_noise_sigma),
        "scale_model_input": lambda sample, t: scheduler.scale_model_input(sample, t),
        "step": lambda noise_pred, t, latents: scheduler.step(noise_pred, t, latents, return_dict=False)[0],
        "rewind": lambda: setattr(scheduler, "_step_index", None),  # "back to the first step", says its author
    }


def draw_all_broken(solver, unet, noises, steps):
    """One picture's latents for each tensor of unit noise in `noises`."""
    timesteps = solver["set_timesteps"](steps)
    pictures = []
    for latents in noises:
        for t in timesteps:
            latents = solver["scale_model_input"](latents, t)
            latents = solver["step"](unet(latents, t), t, latents)
        pictures.append(latents)
    return pictures


# %% [markdown]
# With DDIM it equals the pipeline to the bit, and so it was merged. With Euler the first picture is not the one that the
# pipeline draws, however plausible it may look, and the second is an error:

# %% tags=["demo"]
ready = parts(pipe, 5)


def drawn(model_input, t):
    return ready["unet"](model_input, t, ready["prompt_embeds"])


noises = [unit_noise(SEED), unit_noise(SEED + 1)]
drawings = {"DDIM": draw_all_broken(solver_of(own), drawn, noises, 5)[0]}
euler = EulerDiscreteScheduler.from_config(own.config)
drawings["Euler"] = draw_all_broken(solver_of(euler), drawn, noises[:1], 5)[0]
try:
    draw_all_broken(solver_of(euler), drawn, noises, 5)
except IndexError as error:
    print("Euler, second picture: IndexError:", error)

pipe.scheduler = euler
drawings["Euler, by the pipeline"] = pipe(
    PROMPT, num_inference_steps=5, guidance_scale=1.0, latents=noises[0], output_type="latent"
).images
pipe.scheduler = own
filmstrip(pictures_of(torch.cat(list(drawings.values()))), list(drawings), title="DDIM forgives what Euler does not", size=2)

# %% [markdown]
# In review, two repairs are proposed. *"The state must not be divided: delete the `scale_model_input` line."* And:
# *"The scheduler has run off its end: call `rewind` before each picture."* Each makes a symptom go away. Neither is
# right, and they are not right together.
#
# Write `draw_all` with the same arguments, so that every picture equals what the pipeline would draw from the same
# noise with DDIM, Euler, DPM-Solver++ and Heun. Try it on real schedulers before you check: `solver_of` is yours to
# use. Call the callables only; the dict has everything that is needed. `unet(model_input, t)` takes one picture, `(1, 4, H, W)`:
# draw the pictures one after the other.
#
# <details><summary>Hint</summary>
#
# Three things are 1, the identity, or absent in DDIM, and none of them is in Euler or Heun. For each line of the broken
# loop, ask what DDIM does there. What does `rewind` reset, and what else does `HeunDiscreteScheduler.step` keep?
# </details>

# %% exercise="repair" provides=["draw_all"] difficulty=3 minutes=12
def draw_all(solver, unet, noises, steps):
    """One picture's latents for each tensor of unit noise in `noises`; returns a list of tensors of their shapes."""
    ### BEGIN SOLUTION
    pictures = []
    for noise in noises:
        timesteps = solver["set_timesteps"](steps)  # afresh: a solver keeps its place and its memory between calls
        latents = noise * solver["init_noise_sigma"]()
        for t in timesteps:
            noise_pred = unet(solver["scale_model_input"](latents, t), t)
            latents = solver["step"](noise_pred, t, latents)
        pictures.append(latents)
    return pictures
    ### END SOLUTION

# %% check="repair" points=3
import torch
from diffusers import DDIMScheduler, DPMSolverMultistepScheduler, EulerDiscreteScheduler, HeunDiscreteScheduler
from inferlab.lab import Check, close

check = Check("repair", points=3)
starts = [torch.randn(1, 4, 8, 8, generator=torch.Generator().manual_seed(k)) for k in (1, 2)]
SD = {
    "beta_start": 0.00085,
    "beta_end": 0.012,
    "beta_schedule": "scaled_linear",
    "timestep_spacing": "leading",  # as the pipeline's own scheduler has it
    "steps_offset": 1,
}


def callables_of(scheduler):
    def step(noise_pred, t, latents):
        check.tensor(noise_pred, shape=(1, 4, 8, 8))
        check.tensor(latents, shape=(1, 4, 8, 8))
        scheduler.is_scale_input_called = True  # Euler would log a warning; this check says it instead
        try:
            return scheduler.step(noise_pred, t, latents, return_dict=False)[0]
        except IndexError:
            check.fail("step was called beyond the last timestep: nothing told the scheduler that a new picture began")

    def scale_model_input(sample, t):
        check.tensor(sample, shape=(1, 4, 8, 8))
        return scheduler.scale_model_input(sample, t)

    return {
        "set_timesteps": lambda steps: (scheduler.set_timesteps(steps), scheduler.timesteps)[1],
        "init_noise_sigma": lambda: float(scheduler.init_noise_sigma),
        "scale_model_input": scale_model_input,
        "step": step,
        "rewind": lambda: setattr(scheduler, "_step_index", None),
    }


def pictures(scheduler, unet, count, steps=6):
    got = check.learner.draw_all(callables_of(scheduler), unet, starts[:count], steps)
    check.true(isinstance(got, list) and len(got) == count, f"a list of {count} pictures is wanted")
    return got


with check.part("Euler and a denoiser that sees no noise: the latents stay as they began", weight=1):
    scheduler = EulerDiscreteScheduler(**SD)
    got = pictures(scheduler, lambda model_input, t: torch.zeros(1, 4, 8, 8), 1)
    check.close(got[0], starts[0] * float(scheduler.init_noise_sigma), tol=1e-4)
### BEGIN HIDDEN TESTS


def toy(model_input, t):
    check.tensor(model_input, shape=(1, 4, 8, 8))
    return torch.tanh(model_input) * (0.2 + float(t) / 1250)


def one(scheduler, noise, steps=6, scaled=True, divided=False, sigma=True, fresh=True):
    """What the pipeline draws; the switches bring the mistakes back, one at a time."""
    if fresh:
        scheduler.set_timesteps(steps)
    latents = noise * float(scheduler.init_noise_sigma) if sigma else noise
    for t in scheduler.timesteps:
        seen = scheduler.scale_model_input(latents, t)
        latents = scheduler.step(
            toy(seen if scaled else latents, t), t, seen if divided else latents, return_dict=False
        )[0]
    return latents


with check.part("one picture, DDIM and Euler", weight=2):
    check.close(pictures(DDIMScheduler(**SD), toy, 1)[0], one(DDIMScheduler(**SD), starts[0]))
    euler, got = EulerDiscreteScheduler(**SD), pictures(EulerDiscreteScheduler(**SD), toy, 1)[0]
    early = starts[0] * float(euler.init_noise_sigma)  # of a schedule that nobody has set yet
    check.mistake(
        "init_noise_sigma belongs to the schedule: ask for it after set_timesteps",
        when=close(got, one(euler, early, sigma=False), 1e-4),
    )
    check.mistake(
        "without scale_model_input the denoiser sees latents several times as large as it was trained on",
        when=close(got, one(euler, starts[0], scaled=False), 1e-4)
        or close(got, one(euler, starts[0], scaled=False, sigma=False), 1e-4),
    )
    check.mistake(
        "the state is still replaced by the copy that was scaled for the denoiser",
        when=close(got, one(euler, starts[0], divided=True), 1e-4)
        or close(got, one(euler, starts[0], divided=True, sigma=False), 1e-4),
    )
    check.mistake(
        "the noise starts at unit variance; this solver starts at init_noise_sigma",
        when=close(got, one(euler, starts[0], sigma=False), 1e-4),
    )
    check.close(got, one(euler, starts[0]), tol=1e-4)
with check.part("the second picture, Euler and DPM-Solver++", weight=1):
    for Scheduler in (EulerDiscreteScheduler, DPMSolverMultistepScheduler):
        got = pictures(Scheduler(**SD), toy, 2)
        check.mistake("both pictures are the same", when=close(got[0], got[1]))
        check.close(got[1], one(Scheduler(**SD), starts[1]), tol=1e-4)
with check.part("the second picture, Heun, which has a memory", weight=2):
    heun = HeunDiscreteScheduler(**SD)
    one(heun, starts[0])
    heun._step_index = None
    stale = one(heun, starts[1], fresh=False)
    got = pictures(HeunDiscreteScheduler(**SD), toy, 2)
    check.mistake(
        "rewinding moved the position back but left the solver's memory: its last slope belongs to the first picture",
        when=close(got[1], stale, 1e-4),
    )
    check.close(got[1], one(HeunDiscreteScheduler(**SD), starts[1]), tol=1e-4)
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 5 · A control signal
#
# *difficulty 2 of 3 · 8 minutes · 2 points*
#
# Control attaches inside the loop. ControlNet adds residuals between the UNet's blocks
# (`down_block_additional_residuals`, `mid_block_additional_residual`); the simplest control adds one to the prediction
# itself. Write the loop again, with
#
# | argument | what it is |
# |---|---|
# | `control(model_input, t, noise_pred)` | returns a residual, `(B, 4, H, W)`, from the scaled latents and the *guided* prediction, both `(B, 4, H, W)` |
# | `weight` | the residual's factor |
# | `start`, `end` | fractions of the loop: pass `i` of `n` is controlled where `start <= i / n` and `(i + 1) / n <= end` |
#
# The residual is added after guidance and before `step`. Outside its window `control` is not called. This is how
# `control_guidance_start` and `control_guidance_end` count in diffusers.
#
# <details><summary>Hint</summary>
#
# Count the passes with `enumerate`. A residual that is added before guidance is itself guided: added to the prompt's
# half alone it comes out `guidance` times as strong.
# </details>

# %% exercise="control" provides=["denoise_controlled"] difficulty=2 minutes=8
def denoise_controlled(unet, step, scale, timesteps, latents, prompt_embeds, negative_embeds, guidance,
                       control, weight=1.0, start=0.0, end=1.0):
    """The loop of `denoise` with `weight * control(...)` added to the guided prediction; returns the last latents."""
    ### BEGIN SOLUTION
    guided = guidance > 1
    embeds = torch.cat([negative_embeds, prompt_embeds]) if guided else prompt_embeds
    n = len(timesteps)
    for i, t in enumerate(timesteps):
        model_input = scale(latents, t)
        noise_pred = unet(torch.cat([model_input] * 2) if guided else model_input, t, embeds)
        if guided:
            uncond, text = noise_pred.chunk(2)
            noise_pred = uncond + guidance * (text - uncond)
        if start <= i / n and (i + 1) / n <= end:
            noise_pred = noise_pred + weight * control(model_input, t, noise_pred)
        latents = step(noise_pred, t, latents)
    return latents
    ### END SOLUTION

# %% check="control" points=2
import torch
from inferlab.lab import Check, close

check = Check("control", points=2)
draw = torch.Generator().manual_seed(5)
first, prompt, empty = (torch.randn(shape, generator=draw) for shape in [(1, 4, 8, 8), (1, 5, 6), (1, 5, 6)])
schedule = torch.tensor([900.0, 800.0, 400.0, 100.0])  # uneven on purpose
seen, given = [], []


def unet(model_input, t, embeds):
    check.tensor(model_input)
    check.tensor(embeds, shape=(len(model_input), 5, 6))
    return torch.tanh(model_input) + embeds.mean((1, 2)).reshape(-1, 1, 1, 1)


def step(noise_pred, t, latents):
    check.tensor(noise_pred, shape=(1, 4, 8, 8))
    check.tensor(latents, shape=(1, 4, 8, 8))
    given.append(noise_pred)
    return latents - 0.2 * noise_pred


def scale(sample, t):
    check.tensor(sample)
    return sample / (1 + float(t) / 400)


def control(model_input, t, noise_pred):
    check.tensor(model_input, shape=(1, 4, 8, 8))
    check.tensor(noise_pred, shape=(1, 4, 8, 8))
    seen.append((float(t), model_input, noise_pred))
    return torch.ones(1, 4, 8, 8)


def run(guidance=1.0, weight=1.0, start=0.0, end=1.0):
    seen.clear()
    given.clear()
    return check.learner.denoise_controlled(
        unet, step, scale, schedule, first, prompt, empty, guidance, control, weight, start, end
    )


with check.part("control is asked at every pass, and its residual is added to what step gets"):
    run()
    check.equal([call[0] for call in seen], schedule.tolist())
    check.close(given[0], seen[0][2] + 1.0)
### BEGIN HIDDEN TESTS
with check.part("it sees the scaled latents and the guided prediction"):
    run(guidance=3.0)
    check.true(len(seen) == 4, f"control was called {len(seen)} times in 4 passes")
    check.mistake(
        "control saw the latents as they are; like the denoiser it wants the scaled copy", when=close(seen[0][1], first)
    )
    check.close(seen[0][1], first / 3.25)
    uncond, text = unet(torch.cat([first / 3.25] * 2), 900.0, torch.cat([empty, prompt])).chunk(2)
    check.mistake(
        "control saw the prediction before guidance", when=close(seen[0][2], text) or close(seen[0][2], uncond)
    )
    check.close(seen[0][2], uncond + 3.0 * (text - uncond))
with check.part("weight scales it, guidance does not"):
    run(guidance=3.0, weight=0.5)
    check.true(len(given) == 4, f"step was called {len(given)} times in 4 passes")
    uncond, text = unet(torch.cat([first / 3.25] * 2), 900.0, torch.cat([empty, prompt])).chunk(2)
    plain = uncond + 3.0 * (text - uncond)
    check.mistake("the weight is not used", when=close(given[0], plain + 1.0))
    check.mistake(
        "the residual was guided as well: it came out three times as strong",
        when=close(given[0], plain + 1.5) or close(given[0], plain + 3.0),
    )
    check.mistake("the residual took the place of the prediction", when=close(given[0], torch.full_like(plain, 0.5)))
    check.close(given[0], plain + 0.5)
with check.part("only inside its window"):
    run(start=0.25, end=0.75)
    check.mistake("the window was not used: control acted at every pass", when=len(seen) == 4)
    check.mistake(
        "the window counts passes of the loop, not training timesteps", when=[call[0] for call in seen] == [400.0]
    )
    check.equal([call[0] for call in seen], [800.0, 400.0])
### END HIDDEN TESTS
check.score()

# %% [markdown]
# What it can do: the control below pulls the predicted clean image toward another picture, on its right half only.

# %% tags=["demo"]
target = pipe(
    "a large yellow star at the right on a black background",
    num_inference_steps=5,
    guidance_scale=4.0,
    output_type="latent",
    generator=torch.Generator().manual_seed(SEED + 7),
).images
right_half = torch.zeros_like(target)
right_half[..., target.shape[-1] // 2 :] = 1


def toward_target(model_input, t, noise_pred):
    """The residual that turns the predicted clean latents into `target`, where `right_half` is 1."""
    alpha = own.alphas_cumprod[int(t)].to(model_input.device)
    wanted = (model_input - alpha.sqrt() * target) / (1 - alpha).sqrt()
    return right_half * (wanted - noise_pred)


with when_written("denoise_controlled"):
    runs = {
        end: denoise_controlled(**parts(pipe, 4), guidance=4.0, control=toward_target, end=end)
        for end in (0.0, 0.5, 1.0)
    }
    display(
        filmstrip(
            pictures_of(torch.cat(list(runs.values()))),
            [f"controlled until {end:.0%}" for end in runs],
            title="Control in the first half of the loop already decides the layout",
            size=2,
        )
    )

# %% [markdown]
# ### Exercise 6 · A scheduler that does not eat noise
#
# *difficulty 3 of 3 · 10 minutes · 2 points*
#
# Newer pipelines (SD 3, Flux, Qwen-Image and most video models) sample with `FlowMatchEulerDiscreteScheduler`. This is
# all of its arithmetic:

# %%
show_source(FlowMatchEulerDiscreteScheduler.step, {
    "sigma_next = self.sigmas[sigma_idx + 1]": "One more noise level than steps: the last is 0, the clean end.",
    "prev_sample = sample + dt * model_output": "dt is negative. model_output is a velocity: where the sample moves as sigma grows.",
}, excerpts=[
    ("sigma_idx = self.step_index", "dt = sigma_next - sigma"),
    ("prev_sample = sample + dt * model_output", "prev_sample = sample + dt * model_output"),
], checked="0.42.1")

# %% [markdown]
# Its state is $x = (1-\sigma)\,x_0 + \sigma\,\epsilon$ with $0 \le \sigma \le 1$, and it wants
# $v = \mathrm dx/\mathrm d\sigma$. It has no `scale_model_input` and no `init_noise_sigma`. Our denoiser was trained on
# $\sqrt{\bar\alpha}\,x_0 + \sqrt{1-\bar\alpha}\,\epsilon$ and predicts $\epsilon$. Write the two adapters:
#
# - `denoiser_input(sample, sigma)`: the flow state rescaled so that the squares of its two factors add up to 1, which
#   is what the denoiser expects;
# - `velocity(noise_pred, sample, sigma)`: what this scheduler eats, from the predicted noise and the flow state.
#
# `sample` and `noise_pred` have the shape `(B, 4, H, W)`; `sigma` is a float or a 0-d tensor with $0 < \sigma < 1$.
# Both return a tensor of the shape of `sample`.
#
# <details><summary>Hint</summary>
#
# Solve the state's equation for $x_0$, then differentiate it with respect to $\sigma$. This $v$ is not the
# `v_prediction` of a diffusion model, $\sqrt{\bar\alpha}\,\epsilon-\sqrt{1-\bar\alpha}\,x_0$, although both are called velocity.
# </details>

# %% exercise="flow" provides=["denoiser_input", "velocity"] difficulty=3 minutes=10
def denoiser_input(sample, sigma):
    """The flow-matching state as a noise-predicting denoiser wants it, shape of `sample`."""
    ### BEGIN SOLUTION
    return sample / ((1 - sigma) ** 2 + sigma**2) ** 0.5
    ### END SOLUTION


def velocity(noise_pred, sample, sigma):
    """The velocity dx/dsigma at `sample`, from the predicted noise; shape of `sample`."""
    ### BEGIN SOLUTION
    clean = (sample - sigma * noise_pred) / (1 - sigma)
    return noise_pred - clean
    ### END SOLUTION

# %% check="flow" points=2
import torch
from diffusers import DDIMScheduler, FlowMatchEulerDiscreteScheduler
from inferlab.lab import Check, close

check = Check("flow", points=2)
draw = torch.Generator().manual_seed(6)
clean, noise = torch.randn(2, 4, 8, 8, generator=draw), torch.randn(2, 4, 8, 8, generator=draw)

with check.part("denoiser_input: the factors' squares add up to 1"):
    got = check.learner.denoiser_input(0.25 * clean + 0.75 * noise, 0.75)
    check.tensor(got, shape=(2, 4, 8, 8))
    check.true(
        abs(float(got.std()) - 1.0) < 0.05,
        f"unit-variance parts should mix to unit variance; the standard deviation is {float(got.std()):.3f}",
    )
### BEGIN HIDDEN TESTS
with check.part("denoiser_input at another sigma"):
    sample = 0.8 * clean + 0.2 * noise
    got = check.learner.denoiser_input(sample, torch.tensor(0.2))
    check.mistake(
        "the denoiser cannot see the state as it is: its factors' squares do not add up to 1", when=close(got, sample)
    )
    check.mistake(
        "this is the scaling of Euler's sigma, which runs far above 1; here the state itself shrinks the clean part",
        when=close(got, sample / (1 + 0.2**2) ** 0.5),
    )
    check.close(got, sample / 0.68**0.5)
with check.part("velocity: the noise minus the clean sample"):
    sample = 0.4 * clean + 0.6 * noise
    got = check.learner.velocity(noise, sample, 0.6)
    check.mistake("you handed the noise on: this scheduler does not eat noise", when=close(got, noise))
    check.mistake(
        "the sign is wrong: dt is negative, and the velocity points toward more noise",
        when=close(got, clean - noise, 1e-4),
    )
    check.mistake(
        "this is v_prediction, the diffusion model's velocity: another quantity of the same name",
        when=close(got, (0.4 * noise - 0.6 * clean) / 0.52**0.5, 1e-4) or close(got, 0.4 * noise - 0.6 * clean, 1e-4),
    )
    check.mistake(
        "the state holds (1 - sigma) of the clean sample: divide by it",
        when=close(got, noise - (sample - 0.6 * noise), 1e-4),
    )
    check.close(got, noise - clean, tol=1e-4)
with check.part("a whole flow-matching run ends where DDIM ends"):
    ddim = DDIMScheduler(
        beta_start=0.00085,
        beta_end=0.012,
        beta_schedule="scaled_linear",
        clip_sample=False,
        timestep_spacing="trailing",
    )
    ddim.set_timesteps(5)
    ratio = ((1 - ddim.alphas_cumprod) / ddim.alphas_cumprod).sqrt()[ddim.timesteps]
    flow = FlowMatchEulerDiscreteScheduler(shift=1.0)
    flow.set_timesteps(sigmas=(ratio / (1 + ratio)).tolist())
    state = noise.clone()
    moving = noise * float((1 - flow.sigmas[0]) ** 2 + flow.sigmas[0] ** 2) ** 0.5
    for t, s, flow_t in zip(ddim.timesteps, flow.sigmas, flow.timesteps, strict=False):
        state = ddim.step(torch.tanh(2 * state), int(t), state).prev_sample
        seen = check.learner.denoiser_input(moving, float(s))
        check.tensor(seen, shape=(2, 4, 8, 8))
        v = check.learner.velocity(torch.tanh(2 * seen), moving, float(s))
        check.tensor(v, shape=(2, 4, 8, 8))
        moving = flow.step(v, flow_t, moving).prev_sample
    check.close(moving, state, tol=1e-3)
### END HIDDEN TESTS
check.score()

# %% [markdown]
# Your loop, unchanged, on a flow-matching scheduler. Its sigmas are chosen to visit DDIM's noise levels:
# $\sigma/(1-\sigma)=\sqrt{(1-\bar\alpha)/\bar\alpha}$.

# %% tags=["demo"]
with when_written("denoise", "velocity"):
    pipe.scheduler = DDIMScheduler.from_config(own.config, timestep_spacing="trailing", set_alpha_to_one=True)
    ready = parts(pipe, 4)
    noise_run = denoise(**ready, guidance=4.0)

    flow = FlowMatchEulerDiscreteScheduler(shift=1.0)
    ratio = ((1 - own.alphas_cumprod) / own.alphas_cumprod).sqrt()[ready["timesteps"].cpu()]
    flow.set_timesteps(sigmas=(ratio / (1 + ratio)).tolist(), device=pipe.device)
    level = {float(t): (float(s), k) for t, s, k in zip(flow.timesteps, flow.sigmas, ready["timesteps"])}

    def run_flow(eats):
        flow.set_timesteps(sigmas=(ratio / (1 + ratio)).tolist(), device=pipe.device)
        first = ready["latents"] * float((1 - flow.sigmas[0]) ** 2 + flow.sigmas[0] ** 2) ** 0.5

        def unet(model_input, t, embeds):
            sigma, k = level[float(t)]
            return eats(ready["unet"](denoiser_input(model_input, sigma), k, embeds), model_input, sigma)

        return denoise(
            **{
                **ready,
                "unet": unet,
                "scale": lambda sample, t: sample,
                "timesteps": flow.timesteps,
                "latents": first,
                "step": lambda noise_pred, t, latents: flow.step(noise_pred, t, latents, return_dict=False)[0],
            },
            guidance=4.0,
        )

    velocity_run, fed_noise = run_flow(velocity), run_flow(lambda noise_pred, x, sigma: noise_pred)
    print(
        f"largest difference between the latents of DDIM and of flow matching: {float((velocity_run - noise_run).abs().max()):.1e}"
    )
    display(
        filmstrip(
            pictures_of(torch.cat([noise_run, velocity_run, fed_noise])),
            ["DDIM, noise", "flow matching, velocity", "flow matching, fed noise"],
            title="The same picture by another scheduler, if it is fed what it eats",
            size=2.2,
        )
    )
pipe.scheduler = own

# %% [markdown]
# DDIM and Euler flow matching are the same straight line in two coordinates. Nothing checked the third run: no error,
# no warning, a wrong picture. Prediction target, scheduler and model must come from the same config.

# %% [markdown]
# ## 6 · Explain
#
# *difficulty 2 of 3 · 12 minutes · 6 points: 3 for the typed lines, 3 for the sentences*
#
# Explain the loop to a colleague who thinks that it is a progress bar around one big network call. Speak of the run that
# you traced in section 3: four steps of DDIM, guidance 4.0.
#
# | line | what it says |
# |---|---|
# | `state:` | one or two sentences: the object that the loop transforms, and what does the transforming |
# | `axis:` | one or two sentences: which shape or axis matters in this run, with its numbers |
# | `trade-off:` | one or two sentences: what you buy and what you pay when you halve the number of steps |
# | `shape:` | typed: the shape that the UNet was given in this run |
# | `calls:` | typed: denoiser calls if the same run were made with Heun (a prediction, so not a number of this trace) |
# | `hooks:` | typed: the two names by which a scheduler hides how large it keeps its state, so that your loop ran Euler unchanged |
# | `gain:` | typed, such as `bandwidth down`: what halving the steps improves |
# | `cost:` | typed: what it makes worse |

# %%
explained = traced  # %%explain looks the numbers of your answer up in the newest trace that has a name

# %% explain="the-loop" difficulty=2 minutes=12
%%explain the-loop
# ### BEGIN SOLUTION
# state: The loop transforms the latents: at each timestep the UNet predicts the noise in a scaled copy of them,
#   and scheduler.step turns that prediction and the latents into the next latents.
# axis: The batch axis matters: the latents are (1, 4, 16, 16), but with guidance the UNet gets (2, 4, 16, 16),
#   one row for the empty prompt and one for mine, at each of the 4 timesteps.
# trade-off: Halving the number of steps halves the UNet calls and so the latency, but the solver's error grows,
#   and the picture gets worse.
# shape: (2, 4, 16, 16)
# calls: 7
# hooks: init_noise_sigma, scale_model_input
# gain: latency down
# cost: error up
# ### END SOLUTION

# %% check="the-loop-shape" of="the-loop" points=1
from inferlab.lab import Check, reference

check = Check("the-loop-shape", points=1)
with check.part("`shape:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("the-loop").get("shape"), "`shape:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import typed


@reference
def facts():
    """The run of section 3, traced again; its shapes and counts do not depend on prompt or seed."""
    from inferlab.models import load_pipeline
    from inferlab.trace import trace

    pipe = load_pipeline("bundled", "cpu")
    pipe.set_progress_bar_config(disable=True)
    with trace(pipe) as again:
        pipe("a red circle", num_inference_steps=4, guidance_scale=4.0, output_type="latent")
    return again.facts()


with check.part("the shape that the UNet was given"):
    told = check.explanation("the-loop")
    check.mistake(
        "this is the state's shape; the UNet is given it twice, once for each prompt",
        when=typed(told, "shape", facts()["scheduler.step.inputs.sample.shape"]).verdict == "award",
    )
    outcome = typed(told, "shape", facts()["unet.inputs.sample.shape"])
    check.true(outcome.verdict == "award", outcome.reason)
### END HIDDEN TESTS
check.score()

# %% check="the-loop-calls-hooks" of="the-loop" points=1
from inferlab.lab import Check

check = Check("the-loop-calls-hooks", points=1)
with check.part("`calls:` and `hooks:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("the-loop").get("calls"), "`calls:` is empty")
    check.true(check.explanation("the-loop").get("hooks"), "`hooks:` is empty")
### BEGIN HIDDEN TESTS
import re

from diffusers import HeunDiscreteScheduler
from inferlab.lab.explain import typed

with check.part("denoiser calls of four Heun steps"):
    heun, told = HeunDiscreteScheduler(), check.explanation("the-loop")
    heun.set_timesteps(4)
    check.mistake(
        "you counted steps; Heun looks twice at every step but the last", when=typed(told, "calls", 4).verdict == "award"
    )
    check.mistake("the last step has no second look", when=typed(told, "calls", 8).verdict == "award")
    outcome = typed(told, "calls", len(heun.timesteps))
    check.true(outcome.verdict == "award", outcome.reason)
with check.part("why the loop did not change"):
    line = check.explanation("the-loop").get("hooks")
    names = set(re.findall(r"[a-z_]+", line.casefold())) - {"and", "scheduler", "the"}
    check.mistake("step and set_timesteps are what was swapped; they hide nothing from the loop",
                  when=names & {"step", "set_timesteps", "timesteps"})
    check.true(names == {"init_noise_sigma", "scale_model_input"},
               "one name makes the first state, the other makes the copy that the denoiser sees: these two, and no others")
### END HIDDEN TESTS
check.score()

# %% check="the-loop-gain-cost" of="the-loop" points=1
from inferlab.lab import Check

check = Check("the-loop-gain-cost", points=1)
with check.part("`gain:` and `cost:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("the-loop").get("gain"), "`gain:` is empty")
    check.true(check.explanation("the-loop").get("cost"), "`cost:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import typed

check.slot(
    lambda: typed(check.explanation("the-loop"), "gain", ("latency down", "compute down", "throughput up")),
    "what half the steps gain",
)
worse, distance = ("error up", "quality down", "distance up"), {"distance": "distance, step size, gap, deviation"}
check.slot(lambda: typed(check.explanation("the-loop"), "cost", worse, terms=distance), "what half the steps cost")
### END HIDDEN TESTS
check.score()

# %% check="the-loop-state" of="the-loop" points=1
from inferlab.lab import Check

check = Check("the-loop-state", points=1)
with check.part("`state:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("the-loop").get("state"), "`state:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import Rubric, Slot, grade, terms

SHAPES = {"unet.inputs.sample.shape": (2, 4, 16, 16), "scheduler.step.inputs.sample.shape": (1, 4, 16, 16)}
RUBRIC = Rubric(
    question="Explain the loop to a colleague who thinks that it is a progress bar around one big network call. The object that "
    "the loop transforms, and what does the transforming.",
    lab="latents is the state. Everything else in the loop is computed from it and thrown away. The loop is not progress display: "
    "stop it anywhere and decode what it holds. The only assignment to the state. The scheduler gets the unscaled latents.",
    terms={
        **terms("latents", "scheduler", "unet", "vae", "image", latents="+state, buffer*", scheduler='+"the step", "its step", the update itself', unet="+model"),
        "loop": "loop*, iteration*",
        "progress": "progress, progress bar*, bar",
        "guidance": "guidance, guidance scale, cfg",
        "noise": "noise, noise prediction*, noise_pred, predicted noise, noise estimate*, estimated noise, noise guess*, epsilon",
    },
    slots={
        "state": Slot(
            learned="lab04 state 2ffc13290528bede",
            award=["scheduler changes/makes/denoises latents", "scheduler uses noise + * changes/denoises/makes latents"],
            loose=True,
            deny={
                "vae changes/denoises latents": "The VAE is outside the loop.",
                "says: timestep/timesteps/prompt/weights/picture/image is/are the state, prompt/text into latents, state is the progress, changing the weights, changes the weights, noise prediction is the state": "The state is the latents.",
                "scheduler predicts noise": "Predicting is the UNet's part; the scheduler only does arithmetic with the prediction.",
                "scheduler shows/reports noise": "The scheduler reports nothing: it makes the next latents.",
                "unet changes latents": "The UNet only predicts; it does not touch the state. What does?",
                "unet makes/changes/denoises image": "The UNet predicts noise in latents; the picture is made once, after the loop.",
                "loop changes/makes/denoises image": "There is no picture inside the loop: it holds latents.",
                "scheduler add noise": "A step takes noise out of the latents, it puts none in.",
                "guidance changes/makes/denoises latents": "Guidance combines two predictions of the noise; it does not touch the state. What does?",
                "says: output/outputs is/are the next latents, unet/network returns/outputs/gives the next/new latents, "
                "scheduler/step/scheduler.step only/just/merely records/counts/logs/prints/tracks/displays": "The UNet only predicts; the scheduler's step makes the next latents.",
                "says: adds/adding noise to the latents/them/it, adds/adding .. noise in/at each/every step, until .. pure noise, are/is all noise, all noise at the end": "A step takes noise out of the latents, it puts none in.",
                "loop shows/is progress": "The bar shows progress. The loop is the computation.",
            },
        )
    },
    must_award={
        "state": [
        "The loop carries a latent tensor and each round the solver replaces it with a less noisy version, guided by the network's estimate.",
        "State = the latents. The scheduler's step pushes them along using the predicted noise.",
        "What the for loop really does is to take the latents and let scheduler.step advance them, after the UNet has said how much noise there is.",
            "The loop transforms the latents: at each timestep the UNet predicts the noise and scheduler.step turns the prediction into the next latents.",
            "Latents are the state; they are updated by the scheduler's step from the noise that the UNet predicted.",
        ]
    },
    must_deny={
        "state": [
        "The UNet changes the latents until they are a picture.",
        "The loop just displays the progress.",
            "The UNet turns the latents into the image at each step.",
            "The loop only shows the progress of the network.",
            "The timesteps are the state, and the scheduler updates them.",
            "The latents are updated by the step, which changes the weights each time.",
            "The latents are changed by guidance, which pushes them toward the prompt at each step.",
            "Each step's scheduler call updates the latents by adding noise to them until they are all noise.",
        ]
    },
)
check.slot(lambda: grade(check.explanation("the-loop"), RUBRIC, SHAPES)["state"], "what the loop transforms, and by what")
### END HIDDEN TESTS
check.score()

# %% check="the-loop-axis" of="the-loop" points=1
from inferlab.lab import Check, reference

check = Check("the-loop-axis", points=1)
with check.part("`axis:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("the-loop").get("axis"), "`axis:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import Amounts, Rubric, Slot, grade, terms


@reference
def facts():
    """The run of section 3, traced again; its shapes and counts do not depend on prompt or seed."""
    from inferlab.models import load_pipeline
    from inferlab.trace import trace

    pipe = load_pipeline("bundled", "cpu")
    pipe.set_progress_bar_config(disable=True)
    with trace(pipe) as again:
        pipe("a red circle", num_inference_steps=4, guidance_scale=4.0, output_type="latent")
    return again.facts()


RUBRIC = Rubric(
    question="Which shape or axis matters in this run, with its numbers, in the run that was traced in section 3, four steps of DDIM, "
    "guidance 4.0.",
    lab="The UNet's batch is 2 where the step's is 1: that is guidance, which runs inline and which the trace therefore infers.",
    terms={
        **terms("latents", "unet", "batch", "channels", latents="+state"),
        "scheduler": 'scheduler*, scheduler.step, at step, "and step", "while step", "but step", the step, update, ddim*, the step\'s',
        "steps": "step*, timestep*, time step*, iteration*, pass, passes, entries, length of timesteps",
        "calls": "call*, evaluation*",
    },
    slots={
        "axis": Slot(
            learned="lab04 axis f491a565b141b0f6",
            amounts=Amounts(
                shapes=["unet.inputs.sample.shape", "scheduler.step.inputs.sample.shape"],
                counts={"batch": [2, 1], "steps": "steps", "calls": "unet.calls", "channels": 4},
                key=["batch", "steps", "calls"],
                of={
                    "unet": "unet.inputs.sample.shape",
                    "scheduler": "scheduler.step.inputs.sample.shape",
                    "latents": ["scheduler.step.inputs.sample.shape", "unet.inputs.sample.shape"],
                },
                at={"unet": {"batch": 2}, "scheduler": {"batch": 1}},
            ),
            loose=True,
            deny={"says: one channel for each, channel for each step, number of channels matters, row per picture/image, row for each picture/image, two pictures/images, text axis, prompt axis": "The batch is 2 because each picture is predicted with and without the prompt.",
                  "says: other/one is the noise, row is the noise, row for the noise, row for the image/picture/text, and the timestep as, for the encoder, encoder half, for the next step/timestep, two/several/multiple gpus, two users/seeds, latents and the timestep, of/from/and the previous step/timestep/iteration, training sample, validation": "Both rows are of one step and one picture: with the prompt and without it.",
                  "says: throws .. away, thrown away, discards the, drops the empty, only uses mine": "Guidance uses both rows: it combines them into one prediction.",
                  "says: all 4/four/the timesteps/steps as/in/at, all timesteps/steps as/in/at, timesteps as a batch, steps as a batch": "The steps come one after another: each needs the latents of the last one.",
                  "says: axis of width/height, counts/matters is the channels/channel/width/height, matters/counts are the channels, makes the latents bigger/larger, latents bigger/larger, 16 to 128": "The latents keep their channels and sides in the loop.",
                  "says: token axis, channels .. into 3, channels .. to 3, channel is more important": "The latents keep their channels in the loop.",
                  "says: called/runs/evaluated twice .. step/timestep, two calls .. step/timestep, twice per step/timestep":
                  "Guidance doubles the batch of each call, not the number of calls."},
            topic=["batch", "steps", "calls", "unet"],
        )
    },
    must_award={
        "axis": [
        "Batch dimension: 2 when the denoiser is called, 1 when the step is made.",
        "It's the leading dimension, because guidance feeds 2 copies to the network while the scheduler deals with 1.",
        "The 4 timesteps are what matters: one call of the UNet for each.",
            "The batch axis matters: the UNet gets (2, 4, 16, 16) while the latents are (1, 4, 16, 16), at each of the 4 timesteps.",
            "What counts is the length of timesteps: 4 steps mean 4 calls of the UNet, whatever the batch.",
        ]
    },
    must_deny={"axis": [
        "The batch is 4 because guidance is 4.0.",
        "The batch is 2 at the UNet since it takes the latents of this and of the previous step.",
        "The axis that matters is the channels: 4, one of them for each of the 4 steps.",
        "The batch of 2 at the UNet matters: one row for the picture and one for the text.",
        "All 4 timesteps as a batch go through the UNet in one call.",
        "The batch axis matters: the UNet gets a batch of 8 rows in this run."]},
    example_facts={
        "steps": 4,
        "unet.calls": 4,
        "unet.inputs.sample.shape": (2, 4, 16, 16),
        "scheduler.step.inputs.sample.shape": (1, 4, 16, 16),
    },
)
check.slot(
    lambda: grade(check.explanation("the-loop"), RUBRIC, facts())["axis"],
    "which axis or shape matters, with its numbers",
)
### END HIDDEN TESTS
check.score()

# %% check="the-loop-trade-off" of="the-loop" points=1
from inferlab.lab import Check

check = Check("the-loop-trade-off", points=1)
with check.part("`trade-off:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("the-loop").get("trade-off"), "`trade-off:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import Rubric, Slot, Trend, grade

RUBRIC = Rubric(
    question="What you buy and what you pay when you halve the number of steps.",
    lab="With fewer steps you do not get the same picture sooner, you get another one.",
    terms={
        "steps": "steps, timesteps, time steps, number of steps, num_inference_steps, iterations, entries of timesteps",
        "quality": "picture quality, image quality, picture*, image*, result*",
        "jump": "each jump, every jump, the jumps, the leaps, step size*, step width*, step length*, size of a step, size of each step",
    },
    slots={"trade-off": Slot(
        learned="lab04 trade-off eaba7622371638ca",
        deny={"says: the very same picture/image, nothing is lost, arrives/ends at the same picture/image/place, exactly the same picture/image, same picture/image only/just/but, pay nothing, dont pay anything, don't pay anything, for free, "
              "picture/image stays/stay the same, quality stays the same": "It is another picture, further from the converged one.",
              "says: quarter of the time/calls/cost/passes/compute, quadratic*, square of the steps": "One call for each step: half the steps are half the calls.",
              "says: picture/image/quality stays/remains exactly/precisely/just/completely the same": "It is another picture, further from the converged one.",
              "says: loop stops/ends halfway/midway/early, stops halfway/midway, rest of the noise, half of the noise": "The steps are wider, but they still go all the way to the end.",
              "says: model trains, trains in, trained in, training time, generalises/generalizes": "Nothing is trained here: the weights stay as they are.",
              "says: resolution .. worse/lower/smaller/half, resolution drops/falls/halves/gets/goes, lower/half/smaller/worse resolution, lower/half the resolution, half the size, half the pixels, adherence to, weight of the text, text gets": "The number of steps changes neither the size nor what the text is worth.",
              "says: half the memory, halves the memory": "The memory does not depend on the number of steps."},
        trend=Trend(
        "steps", gain={"quality": "up"}, cost={"time": "up", "compute": "up"}, asked="down", also={"jump": "down", "memory": "same"},
        says={"quality down": "step size/width/length doubles/grows/increases, each/every step jumps farther/further, deteriorates is the approximation/quality/accuracy/result, "
                              "deviation grows/increases/rises, deviation .. grows/increases/rises/gets/becomes/is larger/bigger, deviation .. grows/increases/rises, drifts away from the one .. more/many steps, not so/as exact/good/nice/precise/sharp like/as with all/more the, "
                              "not so/as exact/precise/accurate like/as, picture/image differs, coarser steps, bigger/larger/longer/wider/coarser jump*/stride*/step*/gap*/leap*, jump .. further/farther, another picture/image, "
                              "different picture/image, fewer noise levels, not the same picture/image, isn't the same, step spans a larger gap, "
                              "skips noise levels, less finished, different one, coarser path, coarser trajectory, noise levels are skipped",
              "compute down": "run/runs/called less/fewer times, half .. calls/passes/evaluations/invocations, only 2 .. calls/passes/evaluations, 2 times and not 4, called .. half as often, "
                              "2 .. calls instead of 4, 2 .. passes instead of 4, called/evaluated/runs/run/works only twice/2, two .. calls/passes .. skipped, 2 times instead of 4, from 4 to 2, runs half as often",
              "time down": "cheaper by half, half the waiting, wait .. half, waiting time down, half of the time"},
    ))},
    must_award={
        "trade-off": [
        "You get the picture in about half the time as the network only runs 2 times, but it is coarser.",
        "It's quicker and cheaper, though the image loses detail because the strides are larger.",
            "Halving the number of steps halves the UNet calls and the latency, but the error grows and the picture gets worse.",
            "With fewer steps the run is faster, but the quality of the picture drops.",
            "The run takes half the time, as the step size doubles the approximation is worse.",
            "It is faster since the UNet runs fewer times, but the deviation from the true picture grows.",
        ]
    },
    must_deny={
        "trade-off": [
        "With half the steps the picture is better and it takes longer.",
        "Half the steps make it faster, and the picture stays the same.",
            "Fewer steps only make the run faster, the quality stays the same.",
            "Fewer steps take longer and give a better picture.",
            "With half the steps it is faster and the resolution of the picture is worse.",
            "Only a quarter of the time is needed with half the steps, and the picture is worse.",
            "It is faster with half the steps, but the loop stops halfway and so the picture is worse.",
        ]
    },
)
check.slot(lambda: grade(check.explanation("the-loop"), RUBRIC, {})["trade-off"], "what half the steps gain and cost")
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7 · Notice
#
# - **The loop is not progress display.** It is the computation; the bar hangs on it. You stopped it halfway and found half a
#   picture in `latents`.
# - **`timesteps` sets the price and the picture.** Their number is the number of denoiser calls, for solvers that look once;
#   their values decide which noise levels are visited, and so which picture comes out.
# - **Once per step is once per evaluation.** Heun pays 2n - 1 calls for n steps; DPM-Solver++ is second order for n.
# - **A loop that works with DDIM proves little.** There, the scaling is the identity, the first factor is 1, and nothing is remembered.
# - **Not every scheduler eats noise.** Prediction target, scheduler and model belong to one config. A mismatch raises nothing.
# - **Control and guidance live between the denoiser and `step`.** Where exactly depends on the pipeline: read it there.
#
# Say it out loud, as in an interview: name the state object, the axis that matters, and the trade-off. These are facts of
# diffusers 0.42; the annotated source in section 4 says so when your version differs.

# %% [markdown]
# ## 8 · Check and hand in
#
# Run this cell last. It runs the visible checks again, says what is missing, and leaves one file to hand in.

# %% tags=["demo"]
from inferlab.lab import submit

submit()

