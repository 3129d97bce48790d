# %% [markdown]
# # Lab 03 · Guidance
#
# `guidance_scale=7.5` is the best-known number of a diffusion pipeline. In this lab you predict what guidance
# does to a run, read where the library handles it, write its arithmetic, measure what it improves and what it
# spoils, and switch it off in the middle of a run.
#
# **Time** 35 to 45 minutes without the reading, 10 more for what is optional · **Points** 12, of which 3 are
# practice (exercise 2) · **Reading** [Guidance](../../handbook/lab03-guidance.md), before you start

# %% tags=["parameters"]
LEARNER = ""  # your name or id, as your course knows you
MODEL = "bundled"  # "bundled" | "full" | "hub"
DEVICE = "auto"  # "auto" | "cpu" | "cuda"
SEED = 0

# %% [markdown]
# Grading always uses `"bundled"`, a small trained model, on the CPU. With `"full"`, calls, rows and shapes
# are those of Stable Diffusion 1.5, but the weights are random: the counts of right pictures then mean
# nothing.

# %%
from inferlab.lab import start

lab = start("lab03-guidance", LEARNER, MODEL, DEVICE, SEED)

# %%
import torch
from diffusers import DDIMScheduler, StableDiffusionPipeline
from inferlab.models import load_pipeline

torch.set_grad_enabled(False)
pipe = load_pipeline(MODEL, lab.device)
pipe.scheduler = DDIMScheduler.from_config(pipe.scheduler.config, clip_sample=False)
pipe.set_progress_bar_config(disable=True)
PROMPT, STEPS = "a red circle", 6


def noise_for(pictures):
    """Starting latents, (B, 4, h, w); picture i gets the same noise in every run."""
    side = pipe.unet.config.sample_size
    drawn = torch.randn(pictures, 4, side, side, generator=torch.Generator().manual_seed(SEED))
    return drawn.to(lab.device, pipe.unet.dtype)


first = noise_for(1)

# %% [markdown]
# ## 1 · Goal and mental model
#
# The UNet is asked **twice** about the same latents at the same timestep: once with your prompt (`cond`) and
# once with an empty one (`uncond`). Guidance draws a straight line through the two answers and picks a point
# on it:
#
# $$\text{noise\_pred} = \text{uncond} + s\,(\text{cond} - \text{uncond})$$
#
# The difference says what your prompt changes in the answer. The scale `s` multiplies this difference.

# %% [markdown]
# | who | what it has to do with guidance |
# |---|---|
# | the **UNet** | gives both answers, with the same weights. It was trained with captions, some of them left empty |
# | the **pipeline** | combines the two answers by the formula above |
# | the **scheduler** | gets one `noise_pred` and steps. It cannot tell whether there was guidance |
# | a **classifier** | does not exist here. (An older method used one; so this one is called *classifier-free*) |

# %% [markdown]
# ![Five pictures from one noise on an arrow: a green ring and an orange triangle at 0, a mixture at 0.5, a
# red circle with something green at 1, a red circle at 4, a violet disc at
# 16.](../../handbook/figures/lab03-line.svg)
#
# *From the handbook.* "A red circle" from one noise at five values of `s`, in six steps (distances on the
# arrow are not to scale).

# %% [markdown]
# ## 2 · Predict
#
# ### Exercise 1 · What does guidance call, and with how many rows?
#
# *difficulty 2 of 3 · 4 minutes · 3 points*
#
# **Before you run anything further**, write a function that says what a traced call of this pipeline will
# show. It is graded on runs that this notebook never makes.
#
# | argument | meaning |
# |---|---|
# | `prompts` | number of prompts in the call, `int`; one picture each |
# | `steps` | `num_inference_steps` of a `DDIMScheduler`, `int` |
# | `guidance_scale` | `float`, as passed to the pipeline |
# | `negative_prompts` | a list of `str`, one a prompt, or `None` |
# | `guided` | a callback switches guidance off after this many passes of the loop, `int`; `None`: no callback |
#
# Returns a `dict`: under `"unet"` and `"scheduler.step"` a list with one entry a call, in order: how many
# **rows** (the length of the batch axis of its latents) that call gets.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Lab 02's forecast had the batch of a guided call. At which scales is guidance off? Is a negative prompt used
# then? And the callback changes only the later entries of one list.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# Guidance is on if <code>guidance_scale &gt; 1</code>, whatever the negative prompts; otherwise
# <code>guided</code> is 0. The UNet gets twice the rows in the first <code>guided</code> passes.
# <code>scheduler.step</code> always gets a row for each prompt.
# </details>

# %% exercise="forecast" provides=["forecast"] difficulty=2 minutes=4
def forecast(prompts, steps, guidance_scale, negative_prompts=None, guided=None):
    """The rows of each call of the UNet and of scheduler.step."""
    if guided is None:
        guided = steps
    ### BEGIN SOLUTION
    if guidance_scale <= 1:
        guided = 0
    return {"unet": [2 * prompts] * guided + [prompts] * (steps - guided),
            "scheduler.step": [prompts] * steps}
    ### END SOLUTION

# %% [markdown]
# ## 3 · Trace
#
# diffusers has a callback that switches guidance off during a run. We ask it to do so after half of six
# steps.

# %%
from diffusers.callbacks import SDCFGCutoffCallback
from inferlab.trace import trace

with trace(pipe) as run:
    image = pipe(PROMPT, num_inference_steps=STEPS, guidance_scale=4.0, latents=first,
                 callback_on_step_end=SDCFGCutoffCallback(cutoff_step_ratio=0.5)).images[0]
run.table(level=1)

# %% [markdown]
# Stop at three places:
#
# * **before the loop**, inside `encode_prompt`, the text encoder ran twice: your prompt, and an empty one;
# * **in the loop** the UNet's batch is first 2, later 1. The table's line `guidance` (inline code, so the
#   trace infers it) is there only where the batch is 2. `scheduler.step` always gets one row, and the
#   timesteps do not change;
# * **count the guided passes.** We asked for half of six, which is three. There are four. Section 4 says why.
#
# **Reconcile.** Put `forecast(1, 6, 4.0, guided=4)` beside the trace. Where they differ, the trace is right.

# %% tags=["demo"]
print("unet          ", [call.inputs["sample"].shape[0] for call in run.find("unet")])
print("scheduler.step", [call.inputs["sample"].shape[0] for call in run.find("scheduler.step")])

# %% check="forecast" points=3
from inferlab.lab import Check, reference

check = Check("forecast", points=3)

def ask_forecast(*call):
    """The learner's forecast of a call, once it has the form that the contract asks for."""
    got = check.learner.forecast(*call)
    check.true(isinstance(got, dict) and set(got) == {"unet", "scheduler.step"},
               "return a dict with exactly the two keys of the contract")
    for key, rows in got.items():
        check.true(isinstance(rows, list), f'"{key}" is a list with one number a call')
    return got

with check.part("the traced run: guidance for four passes of six", weight=1):
    got = ask_forecast(1, 6, 4.0, None, 4)
    check.equal(got, {"unet": [2, 2, 2, 2, 1, 1], "scheduler.step": [1] * 6})
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 4 · Read
#
# The installed library handles guidance in three places. **One**: the pipeline asks whether guidance is on.
# **Two**: the formula of section 1.

# %% jupyter={"source_hidden": true}
from inferlab.lab import show_source

show_source(
    StableDiffusionPipeline.do_classifier_free_guidance.fget,
    {
        "return self._guidance_scale > 1 and self.unet.config.time_cond_proj_dim is None":
            "At 1 or less, uncond is not computed. (The second condition is for distilled UNets, which get "
            "the scale as one more input.)",
    },
    checked="0.42.1",
)

# %% jupyter={"source_hidden": true}
show_source(
    StableDiffusionPipeline.__call__,
    {
        "prompt_embeds = torch.cat([negative_prompt_embeds, prompt_embeds])":
            "The first half of the batch is for uncond. A negative prompt takes the place of the empty "
            "one.",
        "noise_pred_uncond, noise_pred_text = noise_pred.chunk(2)":
            "One call had two rows for each picture; here the two halves are separated again.",
        "noise_pred = noise_pred_uncond + self.guidance_scale":
            "This is all of guidance. No other network is used, and no scheduler.",
        "noise_pred = rescale_noise_cfg(noise_pred, noise_pred_text":
            "Rescaling (exercise 2), only if you ask for it: guidance_rescale is 0 unless set.",
        "latents = self.scheduler.step(noise_pred, t, latents":
            "The scheduler gets one noise_pred, as without guidance.",
    },
    excerpts=[
        ("# For classifier free guidance, we need to do two forward passes.",
         "prompt_embeds = torch.cat([negative_prompt_embeds, prompt_embeds])"),
        ("# perform guidance", "latents = self.scheduler.step(noise_pred, t, latents"),
    ],
    checked="0.42.1",
)

# %% [markdown]
# **Three**: the callback of section 3.

# %% jupyter={"source_hidden": true}
show_source(
    SDCFGCutoffCallback.callback_fn,
    {
        "if step_index == cutoff_step:":
            "The callback runs after a pass has ended. After the pass of index 3, four passes are done: one "
            "more than half of six.",
        "prompt_embeds = prompt_embeds[-1:]":
            "The half with the prompts must stay. Is that half always the last row?",
        "pipeline._guidance_scale = 0.0":
            "This does not mean a scale of 0. With any number up to 1, the property above is False.",
    },
    excerpts=[("cutoff_step = (", "return callback_kwargs")],
    checked="0.42.1",
)

# %% [markdown]
# It compares after the pass of index 3 has ended, so that pass is still guided: four in all.

# %% [markdown]
# ## 5 · Build
#
# ### Exercise 2 · The line
#
# *difficulty 1 of 3 · 4 minutes · 3 points*
#
# `guide` returns the guided answer. The three tensors have the shape `(B, C, H, W)`, and `scale` may be any
# number: 0, 0.5 and 1 as well. At a large scale the guided answer becomes larger than any answer of the UNet.
# `rescale` (in the library `guidance_rescale`) brings it back to the size of `cond`, wholly (1) or in part.
# Size means the standard deviation, and **each picture of the batch has its own**. Two statements are
# missing: `guided`, by the formula, and `factor`, from the size of `guided` to that of `cond`.
#
# <details><summary>Hint 1: a nudge</summary>
#
# What does the formula give at `scale` 1, if you multiply it out? So no value of `scale` needs an exception.
# For the sizes: `std` takes several axes at once, and `keepdim=True` keeps them with length 1.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# <code>guided = uncond + scale * (cond - uncond)</code>. The sizes of the pictures in a tensor are
# <code>x.std((1, 2, 3), keepdim=True)</code>; <code>factor</code> is those of <code>cond</code> over those of
# <code>guided</code>.
# </details>

# %% exercise="guide" provides=["guide"] difficulty=1 minutes=4
def guide(uncond, cond, scale, rescale=0.0):
    """The guided answer, shape of `cond`."""
    ### BEGIN SOLUTION
    guided = uncond + scale * (cond - uncond)
    ### END SOLUTION
    if rescale == 0:
        return guided
    ### BEGIN SOLUTION
    factor = cond.std((1, 2, 3), keepdim=True) / guided.std((1, 2, 3), keepdim=True)
    ### END SOLUTION
    return rescale * guided * factor + (1 - rescale) * guided

# %% check="guide" points=3
import torch
from diffusers.pipelines.stable_diffusion.pipeline_stable_diffusion import rescale_noise_cfg
from inferlab.lab import Check, close

check = Check("guide", points=3)
draw = torch.Generator().manual_seed(3)
other, asked = torch.randn(2, 3, 4, 8, 8, generator=draw) * torch.tensor([1.0, 2.0, 5.0]).reshape(3, 1, 1, 1)

with check.part("`guide` where it can be done in the head", weight=1):
    got = check.learner.guide(torch.full((1, 4, 2, 2), 1.0), torch.full((1, 4, 2, 2), 3.0), 4.0)
    check.tensor(got, shape=(1, 4, 2, 2))
    check.close(got, torch.full((1, 4, 2, 2), 9.0))
### HIDDEN TESTS
check.score()

# %% [markdown]
# ### More is better?
#
# The bundled model comes with a checker that says from the pixels whether a picture shows its caption. Three
# questions at each scale, always from the same noise:
#
# * **right**: in how many of the pictures does the checker see one red circle and nothing else?
# * **saturation**: how far apart are the strongest and the weakest of a pixel's three colors, on average?
# * **variety**: how far does a pixel differ from picture to picture (its standard deviation), on average?

# %% tags=["demo"]
from inferlab.lab import filmstrip, when_written
from inferlab.models.scenes import check_pictures

OPEN = [PROMPT] * (6 if MODEL == "bundled" else 2)


def drawn(scale, prompts=OPEN, **settings):
    """Pictures of the pipeline, (B, 3, H, W) in [0, 1]."""
    return pipe(prompts, num_inference_steps=STEPS, guidance_scale=scale, latents=noise_for(len(prompts)),
                output_type="pt", **settings).images.float().cpu()


at_scale = {scale: drawn(scale) for scale in (1, 4, 16)}
for scale, images in at_scale.items():
    right = sum(verdict.right for verdict in check_pictures(images, OPEN))
    saturation, variety = (images.amax(1) - images.amin(1)).mean(), images.std(0).mean()
    print(f"scale {scale:2d}   right {right} of {len(images)}   saturation {saturation:.3f}   "
          f"variety {variety:.3f}")
shown = [image.permute(1, 2, 0).numpy() for scale in (1, 4, 16) for image in at_scale[scale][:3]]
filmstrip(shown, [f"s = {scale}" for scale in (1, 4, 16) for _ in at_scale[scale][:3]],
          "1: no guidance. 4: right. 16: strong color, sameness, errors", size=1.1)

# %% [markdown]
# With the bundled model and `SEED = 0`, guidance repairs pictures from 1 to 4. From 4 to 16 saturation rises,
# the pictures become alike, and most are wrong. More is better up to a point, and only a measurement tells
# where that point is.

# %% [markdown]
# ### Exercise 3 · Where guidance stops
#
# *difficulty 3 of 3 · 7 minutes · 3 points*
#
# Without guidance a pass costs half, and late passes may not need it. A colleague wants guidance only in the
# first part of a run (`stop` is that part, as a fraction), and has rewritten the library's callback:

# %%
def colleague_after_pass(i, n, stop, scale, prompt_embeds):
    """(scale, prompt_embeds) of the next pass; pass i of n, counted from 0, has just ended."""
    if i == int(n * stop):
        return 1.0, prompt_embeds[-1:]
    return scale, prompt_embeds

# %% [markdown]
# The next cell, folded, gives this function to the pipeline as its callback, and draws two prompts.

# %% tags=["demo"] jupyter={"source_hidden": true}
def rows_with(after_pass, stop, prompts):
    """The rows of each call of the UNet in a real run with this callback, and its pictures."""
    def callback(pipe, i, t, values):
        pipe._guidance_scale, embeds = after_pass(i, pipe.num_timesteps, stop, pipe.guidance_scale,
                                                  values["prompt_embeds"])
        return {"prompt_embeds": embeds}

    with trace(pipe) as stopped:
        out = pipe(prompts, num_inference_steps=STEPS, guidance_scale=4.0, latents=noise_for(len(prompts)),
                   callback_on_step_end=callback,
                   callback_on_step_end_tensor_inputs=["prompt_embeds"]).images
    return [call.inputs["sample"].shape[0] for call in stopped.find("unet")], out


TWO = [PROMPT, "a small blue star on a black background"]
try:
    rows_with(colleague_after_pass, 0.5, TWO)
except RuntimeError as error:
    print("two prompts:", error)

# %% [markdown]
# There are two faults: this error, and the pass too many of section 4. "Keep the *first* rows, then the
# shapes fit," says the colleague. They would. But whose rows are those? (The visible check tests only that
# the shapes fit.) Write `after_pass`, with the same arguments, for any number of prompts:
#
# | argument | meaning |
# |---|---|
# | `i`, `n` | the pass that has just ended, from 0 to `n - 1`, and the number of passes, `int` |
# | `stop` | from `1 / n` to 1: passes 0 to `int(n * stop) - 1` are guided; with 1 all of them |
# | `scale` | the scale of pass `i`; above 1 means that it was guided |
# | `prompt_embeds` | as pass `i` used them: with guidance `(2B, T, D)`, first the B negative rows, then the B with prompts; without guidance only the latter |
#
# It returns the tuple `(scale, prompt_embeds)` for the next pass; a scale of 1 switches guidance off. Write
# the `if` and what it returns.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Which pass is the last guided one, and what is `i` when it has ended? Which rows belong to the prompts if
# there are two of them? And what do the embeddings look like one pass later?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# When <code>scale &gt; 1</code> (a pass without guidance has no negative half to cut) and
# <code>i + 1 == int(n * stop)</code>, return <code>1.0</code> and <code>prompt_embeds.chunk(2)[1]</code>.
# </details>

# %% exercise="after-pass" provides=["after_pass"] difficulty=3 minutes=7
def after_pass(i, n, stop, scale, prompt_embeds):
    """(scale, prompt_embeds) of the next pass."""
    ### BEGIN SOLUTION
    if scale > 1 and i + 1 == int(n * stop):
        return 1.0, prompt_embeds.chunk(2)[1]
    ### END SOLUTION
    return scale, prompt_embeds

# %% check="after-pass" points=3
import torch
from inferlab.lab import Check, close

check = Check("after-pass", points=3)

def simulate(n, stop, prompts):
    """Rows and embeddings of each pass of a loop that asks the learner after each, and the first ones."""
    embeds = torch.randn(2 * prompts, 5, 6, generator=torch.Generator().manual_seed(n))
    scale, now, rows, used = 4.0, embeds, [], []
    for i in range(n):
        wanted = 2 * prompts if scale > 1 else prompts
        check.true(len(now) in (wanted, 1), f"pass {i} of {n} with {prompts} prompts: the UNet gets {wanted} "
                                            f"rows of latents and {len(now)} of text")
        rows.append(len(now))
        used.append(now)
        got = check.learner.after_pass(i, n, stop, scale, now)
        check.true(isinstance(got, tuple) and len(got) == 2, "return the tuple (scale, prompt_embeds)")
        scale, now = check.number(got[0], "the scale is a number"), got[1]
        check.tensor(now)
    return rows, used, embeds

with check.part("two prompts, eight passes, stop 0.5: it stops once, and each prompt keeps a row", weight=1):
    rows, used, embeds = simulate(8, 0.5, 2)
    check.true(1 not in rows, "two prompts are drawn, and the UNet gets 1 row of text: the error above")
    check.true(sorted(set(rows)) == [2, 4] and rows == sorted(rows, reverse=True),
               f"the rows of the passes are {rows}: first 4, and from some pass on 2")
### HIDDEN TESTS
check.score()

# %% tags=["demo"]
with when_written("after_pass"):
    rows, out = rows_with(after_pass, 0.5, TWO)
    print(f"two prompts, stop 0.5: {rows}, in all {sum(rows)} rows instead of {4 * STEPS}")
    display(filmstrip(out, ["a red circle", "a small blue star"], size=1.6))

# %% [markdown]
# ## 6 · Explain
#
# Say what guidance is, and what you measured. In `guidance` and `larger` you write short sentences, one a
# line, from the tables below: an entry of `who`, a verb, an entry of its row and, if you like, entries of a
# row `may follow`. In `rows` you type how many rows the UNet got in all calls of **your traced run**
# together. Lines that begin with `#` are notes.

# %% jupyter={"source_hidden": true}
### FIXTURE words
words

# %% [markdown]
# *difficulty 1 of 3 · 4 minutes · 3 points.* The cell shows how it reads each line, and that reading is
# graded when you hand in. One false sentence costs its field all points, so write only what you know. A line
# that the cell cannot read is graded by a person.

# %% explain="guidance-in-words" difficulty=1 minutes=4
%%explain guidance-in-words
# ### BEGIN SOLUTION
# guidance: guidance combines two answers of the UNet in each guided pass
#   the negative prompt takes the place of the empty prompt
# larger: the larger scale raises the saturation and lowers the variety
#   it lowers the number of right pictures
# rows: 10
# ### END SOLUTION

# %% check="words-guidance" of="guidance-in-words" points=1
from inferlab.lab import Check

check = Check("words-guidance", points=1)
with check.part("`guidance:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("guidance-in-words").get("guidance"), "`guidance:` is empty")
### HIDDEN TESTS
check.score()

# %% check="words-larger" of="guidance-in-words" points=1
from inferlab.lab import Check

check = Check("words-larger", points=1)
with check.part("`larger:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("guidance-in-words").get("larger"), "`larger:` is empty")
### HIDDEN TESTS
check.score()

# %% check="words-rows" of="guidance-in-words" points=1
from inferlab.lab import Check, reference

check = Check("words-rows", points=1)
with check.part("`rows:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("guidance-in-words").get("rows"), "`rows:` is empty")
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7 · Notice
#
# * **No classifier.** The UNet is asked with your prompt and without it. Both answers come from the same
#   weights.
# * **The scheduler is not changed.** It gets one `noise_pred` a pass, at the same timesteps as without
#   guidance.
# * **At `s = 1` guidance is off by arithmetic.** The formula gives `cond` there, so diffusers does not
#   compute `uncond`. (For `s < 1` diffusers skips `uncond`, too, although the formula needs it there.)
# * **A negative prompt is no filter** (handbook). It takes the empty prompt's place in the formula, and does
#   nothing when guidance is off.
# * **More is not better.** At large scales colors are too strong, pictures become alike, and many are wrong.
# * **Guidance can stop.** From then on a pass costs half.

# %% [markdown]
# Flashcards on diffusion, for now or for another day. Some belong to later labs:

# %% tags=["demo"]
from inferlab.lab.cards import show_cards

show_cards("diffusion")

# %% [markdown]
# ## 8 · Further
#
# **Optional: 10 minutes; nothing graded needs it.** If your time is up, go on to section 9. Four questions,
# each with a run: is one call the same as two, what does rescaling repair, may guidance begin late, and what
# does it cost a distilled model?
#
# ### One call with two rows, or two calls with one
#
# The pipeline makes one call with 2·B rows. Here we also make two calls with B rows each.

# %%
prompt_embeds, empty_embeds = pipe.encode_prompt(PROMPT, lab.device, 1, True)


def ask(latents, t, embeds):
    """One call of the real UNet: its answer for each row of `latents`."""
    return pipe.unet(latents, t, encoder_hidden_states=embeds).sample

# %% tags=["demo"]
def one_call(unet, latents, t, prompt_embeds, negative_embeds):
    """(uncond, cond) from one call of 2B rows, as the pipeline makes it."""
    return unet(torch.cat([latents] * 2), t, torch.cat([negative_embeds, prompt_embeds])).chunk(2)


def two_calls(unet, latents, t, prompt_embeds, negative_embeds):
    """(uncond, cond) from two calls of B rows each."""
    return unet(latents, t, negative_embeds), unet(latents, t, prompt_embeds)


answers = {}
for way in (one_call, two_calls):
    with trace(pipe) as asked_once:
        answers[way] = way(ask, first, 831, prompt_embeds, empty_embeds)
    rows = [call.inputs["sample"].shape[0] for call in asked_once.find("unet")]
    print(f"{way.__name__:10s} rows of each call {rows}   {asked_once.ms:5.1f} ms")
gap = (torch.cat(answers[one_call]) - torch.cat(answers[two_calls])).abs().max()
print(f"largest difference between the answers: {gap:.1e}")

# %% [markdown]
# The answers are the same apart from rounding, and so is the work. One call reads the weights once and holds
# the activations of both rows; two calls read the weights twice and hold one row's at a time.

# %% [markdown]
# ### Rescaling
#
# The size of the guided answer, in the second pass of a run:

# %% tags=["demo"]
with when_written("guide"):
    pipe.scheduler.set_timesteps(STEPS, device=lab.device)
    t, following = pipe.scheduler.timesteps[:2]
    uncond, cond = two_calls(ask, first, t, prompt_embeds, empty_embeds)
    second = pipe.scheduler.step(guide(uncond, cond, 16), t, first).prev_sample
    uncond, cond = two_calls(ask, second, following, prompt_embeds, empty_embeds)
    for scale in (1, 4, 16):
        plain, full = guide(uncond, cond, scale), guide(uncond, cond, scale, 1.0)
        print(f"scale {scale:2d}   size of the answer: plain {plain.std():.3f}   rescaled {full.std():.3f}")

# %% tags=["demo"]
filmstrip([image.permute(1, 2, 0).numpy() for image in
           (at_scale[16][0], drawn(16, OPEN[:1], guidance_rescale=1.0)[0])],
          ["s = 16", "rescaled"], "The size is mended, the direction is not", size=1.6)

# %% [markdown]
# Rescaling repairs the size, but here not the picture: the answer still points in the wrong direction. Its
# authors ([Lin et al.](https://arxiv.org/abs/2305.08891)) used it against overexposed pictures, at a scale of
# 7.5, on a model that predicts velocities. A smaller scale is the first thing to try.

# %% [markdown]
# ### The window has two ends
#
# With your `guide` in our own loop, guidance can also begin late:

# %%
def run_with(guide, scale, start=0, stop=STEPS):
    """The last latents of a run; passes start to stop - 1 are guided, the others use cond alone."""
    latents = first
    pipe.scheduler.set_timesteps(STEPS, device=lab.device)
    for i, t in enumerate(pipe.scheduler.timesteps):
        noise_pred = ask(latents, t, prompt_embeds)
        if start <= i < stop:
            noise_pred = guide(ask(latents, t, empty_embeds), noise_pred, scale)
        latents = pipe.scheduler.step(noise_pred, t, latents).prev_sample
    return latents


def pictures(latents):
    """What the pipeline does after its loop: (B, 4, h, w) to B pictures."""
    decoded = pipe.vae.decode(latents / pipe.vae.config.scaling_factor).sample
    return pipe.image_processor.postprocess(decoded)

# %% tags=["demo"]
with when_written("guide"):
    half = STEPS // 2
    windows = {"never": run_with(guide, 1), "first half": run_with(guide, 4, stop=half),
               "second half": run_with(guide, 4, start=half), "always": run_with(guide, 4)}
    for name, latents in windows.items():
        gap = (latents - windows["always"]).norm() / windows["always"].norm()
        print(f"{name:12s} distance from always, relative {gap:.2f}")
    display(filmstrip(pictures(torch.cat(list(windows.values()))), list(windows), "The first half decides",
                      size=1.6))

# %% [markdown]
# Here guidance in the first half is enough, and in the second half it is wasted work. With a large model
# another window may be best: [Kynkäänniemi et al.](https://arxiv.org/abs/2404.07724) got the best pictures
# with guidance in the middle of the noise levels, and none in the noisiest passes.

# %% [markdown]
# ### What guidance costs a distilled model
#
# FLUX.1-dev was *distilled*: trained once more, so that one call gives the guided answer. The scale is one of
# its inputs. The bundled FLUX-shaped model has this *embedded* guidance, and can also be guided as in this
# lab (`true_cfg_scale`, in two calls).

# %% tags=["demo"]
flux = load_pipeline("bundled", lab.device, family="flux")
flux.set_progress_bar_config(disable=True)
for name, told in (("embedded", {"guidance_scale": 3.5}),
                   ("true", {"guidance_scale": 1.0, "true_cfg_scale": 3.5, "negative_prompt": ""})):
    with trace(flux) as of_flux:
        flux(PROMPT, num_inference_steps=2, max_sequence_length=16, output_type="latent", **told)
    rows = [call.inputs["hidden_states"].shape[0] for call in of_flux.find("transformer")]
    print(f"{name:9s} rows of each call of the transformer in 2 steps: {rows}")

# %% [markdown]
# The rows are roughly the cost: embedded guidance costs as much as no guidance, true guidance twice as much.
# Embedded guidance takes no negative prompt, because it has no `uncond`.

# %% [markdown]
# ## 9 · Check and hand in
#
# Run this cell last. It runs the visible checks again, says what is missing, and leaves one file to hand in.

# %% tags=["demo"]
from inferlab.lab import submit

submit()
