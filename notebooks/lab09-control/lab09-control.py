# %% [markdown]
# # Lab 09 · Control
#
# A prompt says what to draw, but hardly where. In this lab a few lines say where. You predict what a second
# network, the ControlNet, does in a run, read where its outputs enter the UNet, add them by hand, and repair
# a window that was meant to save work.
#
# **Time** 45 to 60 minutes without the reading · **Points** 14, of which 3 are practice (exercise 2) ·
# **Reading** [Control](../../handbook/lab09-control.md), before you start

# %% tags=["parameters"]
LEARNER = ""  # your name or id, as your course knows you
MODEL = "bundled"  # "bundled" | "full" | "hub"
DEVICE = "auto"  # "auto" | "cpu" | "cuda"
SEED = 0

# %% [markdown]
# Grading always uses `"bundled"`, a small model with a ControlNet that was trained for it, on the CPU. With
# `"full"` and `"hub"` the ControlNet is a new, untrained copy of that UNet's encoder: calls and shapes are
# real, but it has no effect. Section 3 says why.

# %%
from inferlab.lab import start

lab = start("lab09-control", LEARNER, MODEL, DEVICE, SEED)

# %%
import torch
from diffusers import ControlNetModel, DDIMScheduler, StableDiffusionControlNetPipeline
from inferlab.models import load_pipeline
from inferlab.models.control import copy_encoder, load_controlnet

torch.set_grad_enabled(False)
base = load_pipeline(MODEL, lab.device)
base.scheduler = DDIMScheduler.from_config(base.scheduler.config, clip_sample=False)
unet = base.unet
if MODEL == "bundled":
    controlnet = load_controlnet(unet)
else:
    controlnet = ControlNetModel.from_unet(unet).to(lab.device, unet.dtype)


def with_control(controlnet):
    """The pipeline with one ControlNet, or with a list of them. It shares every other part."""
    made = StableDiffusionControlNetPipeline(**base.components, controlnet=controlnet,
                                             requires_safety_checker=False)
    made.set_progress_bar_config(disable=True)
    return made


pipe = with_control(controlnet)

# %% [markdown]
# The lines come from three scenes: the edges of a square, a cross and a circle, without color, background or
# caption. The folded cell defines them, and `draw` and `shown`.

# %% jupyter={"source_hidden": true}
from inferlab.lab.plots.strips import filmstrip
from inferlab.models.scenes import outlines, sample_scenes

side = 8 * unet.config.sample_size
scenes = sample_scenes(8, torch.Generator().manual_seed(9), two=0.0, keep="test")
lines = outlines(scenes, size=side)[:3].expand(-1, 3, -1, -1).to(lab.device, unet.dtype)
WORDS = ["a yellow square", "an orange cross", "a red circle"]
STEPS = 6
noise = torch.randn(3, 4, side // 8, side // 8, generator=torch.Generator().manual_seed(SEED))
noise = noise.to(lab.device, unet.dtype)


def draw(words=WORDS, lines=lines, **settings):
    """Pictures, (B, 3, H, W) in [0, 1]; picture i begins with the same noise in every run."""
    settings = {"num_inference_steps": STEPS, "guidance_scale": 4.0, "output_type": "pt"} | settings
    return pipe(list(words), image=lines, latents=noise[:len(words)], **settings).images.float().cpu()


def shown(images):
    """Pictures in the form that `filmstrip` takes."""
    return [image.permute(1, 2, 0).numpy() for image in images.float().cpu()]

# %% tags=["demo"]
at_one = draw()
filmstrip([*shown(lines), *shown(at_one)], [f"lines {i}" for i in range(3)] + WORDS,
          "The lines say where, the words say what")

# %% [markdown]
# ## 1 · Goal and mental model
#
# After this lab you can say what a ControlNet computes, where its outputs enter the UNet, what its scale and
# its window do and cost, and how lines differ from words and from an image prompt.
#
# A UNet has two halves and a middle block between them. The **encoder** makes its input smaller, layer by
# layer, and keeps a copy of its intermediate results: the **skips**. The **decoder** makes the tensor larger
# again, and uses the skips, the last one first. A **ControlNet** is a second encoder: a copy of the first one
# that also sees the lines. Its outputs, the **residuals**, are added to the UNet's skips and to the middle
# block's output.
#
# | condition | goes through | enters the UNet |
# |---|---|---|
# | a caption | tokenizer and text encoder | as tokens, in each cross-attention |
# | lines | the ControlNet | as residuals, added to the skips and to the middle |
# | an image prompt | an image encoder (IP-Adapter) | as separate tokens, in one more attention |
#
# How much of the ControlNet is a copy? Compare its weights with the UNet's, by name:

# %%
own = dict(unet.named_parameters())
copied = learned = 0
for name, weight in controlnet.named_parameters():
    if name in own and torch.equal(weight, own[name]):
        copied += weight.numel()
    else:
        learned += weight.numel()
print(f"the UNet has {sum(weight.numel() for weight in own.values()):,} numbers; the ControlNet has "
      f"{copied:,} of the same and {learned:,} of its own")

# %% [markdown]
# ![A picture of the lines of a square; then five pictures from one noise: without lines, with lines at
# half and at full scale, with lines in the first half of the steps only, and in the second half only. A
# cross marks where the lines are.](../../handbook/figures/lab09-lines.svg)
#
# *From the handbook.* One noise, one caption: no lines, half and full scale, and one half of the steps only.

# %% [markdown]
# ## 2 · Predict
#
# A ControlNet has a **scale**, which multiplies its residuals (`controlnet_conditioning_scale`), and a
# **window** (`control_guidance_start`, `control_guidance_end`): pass `i` of `n`, counted from 0, is inside
# where `start <= i / n` and `(i + 1) / n <= end`.
#
# ### Exercise 1 · What does a second network do in a run?
#
# *difficulty 2 of 3 · 5 minutes · 4 points*
#
# **Before you run anything further**, write a function that says what a trace of such a call will show. It is
# graded on runs of the bundled model that this notebook never makes. In it, the first skip has 96 channels at
# the latents' size. One convolution of stride 2 (kernel 3, padding 1) lies between it and the middle, which
# has 144 channels. **A residual has the shape of the tensor to which it is added.**
#
# | argument | meaning |
# |---|---|
# | `prompts` | number of prompts in the call, one picture each, `int` |
# | `height`, `width` | size of the pictures and the lines in pixels; multiples of 8, `int` |
# | `steps`, `guidance_scale` | as in the call of the pipeline |
# | `scale`, `start`, `end` | the ControlNet's scale and window, `float` |
#
# Returns a `dict`: under `"scales"` a list with the scale (`float`) of each **call of the ControlNet**, in
# order; under `"first"` and `"middle"` the shapes of its first residual and of the middle's, tuples of `int`.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Outside the window, is the ControlNet not called, or is its output not used? How long is the UNet's batch
# with guidance (a scale above 1)? And what does a stride of 2 make of an odd side?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# There is one call in each pass, and outside the window its scale is <code>0.0</code>. Guidance doubles the
# rows. An odd side is halved and rounded up: <code>(h + 1) // 2</code>.
# </details>

# %% exercise="forecast" provides=["forecast"] difficulty=2 minutes=5
def forecast(prompts, height, width, steps, guidance_scale, scale, start, end):
    """Scale of each call of the ControlNet, and the shapes of two of its residuals."""
    inside = [start <= i / steps and (i + 1) / steps <= end for i in range(steps)]  # the rule, for each pass
    h, w = height // 8, width // 8  # the latents' size
    ### BEGIN SOLUTION
    rows = 2 * prompts if guidance_scale > 1 else prompts
    return {
        "scales": [scale if here else 0.0 for here in inside],
        "first": (rows, 96, h, w),
        "middle": (rows, 144, (h + 1) // 2, (w + 1) // 2),
    }
    ### END SOLUTION

# %% [markdown]
# ## 3 · Trace
#
# One picture, lines in the first half of six steps:

# %%
from inferlab.trace import trace

# %% tags=["demo"]
with trace(pipe) as run:
    half_way = draw(WORDS[:1], lines[:1], control_guidance_end=0.5)
run.table(level=1)

# %% [markdown]
# Before the loop, `prepare_image` repeats the lines, so that their batch is the UNet's. Neither the text
# encoder nor the VAE gets them. In the loop, the ControlNet is called before the UNet. **Count its calls**:
# the window is half of the run.
#
# **Reconcile.** Put `forecast(1, 128, 128, 6, 4.0, 1.0, 0.0, 0.5)` beside the trace. Where they differ, the
# trace is right.

# %% tags=["demo"]
calls = run.find("controlnet")
print("scales   ", [call.inputs["conditioning_scale"] for call in calls])
down, middle = calls[0].outputs
print("residuals", *[tuple(spec.shape) for spec in [*down, middle]], sep="\n  ")

# %% check="forecast" points=4
from inferlab.lab import Check, reference

check = Check("forecast", points=4)

def ask_forecast(*call):
    """The learner's forecast of a call, once it has the form that the contract asks for."""
    got = check.learner.forecast(*call)
    check.true(isinstance(got, dict) and set(got) == {"scales", "first", "middle"},
               "return a dict with exactly the three keys of the contract")
    check.true(isinstance(got["scales"], list), '"scales" is a list')
    check.true(all(isinstance(got[key], tuple) and len(got[key]) == 4 for key in ("first", "middle")),
               '"first" and "middle" are tuples of four numbers')
    return got

with check.part("the traced run: the first half of six steps", weight=1):
    got = ask_forecast(1, 128, 128, 6, 4.0, 1.0, 0.0, 0.5)
    check.equal(got["scales"], [1.0] * 3 + [0.0] * 3)
    check.equal(got["first"], (2, 96, 16, 16))
### HIDDEN TESTS
check.score()

# %% [markdown]
# ### A new ControlNet changes nothing
#
# How can such a copy be trained without damage to the UNet's answers? Each residual leaves the ControlNet
# through a 1x1 convolution whose weights were zero before training: a **zero convolution**. So at first it
# adds zeros. For each skip, we print the size of the trained ControlNet's residual, and of a new copy's. The
# folded cell defines `encode(latents, t, text)`, the UNet's first half, which returns `(skips, middle)`, and
# `control(latents, t, text, lines)`, the ControlNet, which returns `(residuals of the skips, of the middle)`.

# %% jupyter={"source_hidden": true}
text, empty = base.encode_prompt(WORDS[0], lab.device, 1, True)
embeds, twice = torch.cat([empty, text]), torch.cat([lines[:1]] * 2)
base.scheduler.set_timesteps(STEPS, device=lab.device)
t = base.scheduler.timesteps[0]
rows = torch.cat([noise[:1]] * 2)


def encode(latents, t, text):
    """The UNet's first half: (list of its skips, output of its middle block)."""
    emb = unet.time_embedding(unet.time_proj(t.expand(len(latents))).to(latents.dtype))
    x = unet.conv_in(latents)
    skips = [x]
    for block in unet.down_blocks:
        more = {"encoder_hidden_states": text} if hasattr(block, "attentions") else {}
        x, made = block(hidden_states=x, temb=emb, **more)
        skips += made
    return skips, unet.mid_block(x, emb, encoder_hidden_states=text)


def control(latents, t, text, lines):
    """The ControlNet: (list of residuals for the skips, residual for the middle), not scaled."""
    return controlnet(latents, t, text, controlnet_cond=lines, return_dict=False)

# %% tags=["demo"]
skips, middle = encode(rows, t, embeds)
down, mid = control(rows, t, embeds, twice)
fresh = copy_encoder(unet).to(lab.device, unet.dtype) if MODEL == "bundled" else controlnet
new, _ = fresh(rows, t, embeds, controlnet_cond=twice, return_dict=False)
for i, (skip, residual, nothing) in enumerate(zip(skips, down, new)):
    print(f"skip {i} {tuple(skip.shape)!s:18} residual {residual.norm() / skip.norm():.0%} of its size,",
          f"of a new copy {nothing.abs().max():.0f}")

# %% [markdown]
# A new copy changes no number, so training starts from the unchanged model. The trained residuals are no
# small corrections.

# %% [markdown]
# ## 4 · Read
#
# **One**: the pipeline calls the ControlNet. With which scale?

# %% jupyter={"source_hidden": true}
from inferlab.lab import show_source

show_source(
    StableDiffusionControlNetPipeline.__call__,
    {
        "1.0 - float(i / len(timesteps) < s or (i + 1) / len(timesteps) > e)":
            "1 inside the window, 0 outside. Computed for all passes, before the loop.",
        "cond_scale = controlnet_cond_scale * controlnet_keep[i]":
            "Outside the window the scale is 0 ...",
        "down_block_res_samples, mid_block_res_sample = self.controlnet(":
            "... but the network is still called. There is no `if` before this line.",
        "down_block_additional_residuals=down_block_res_samples,":
            "The UNet gets them as arguments: seven tensors, and no picture.",
    },
    excerpts=[
        ("# 7.2 Create tensor stating which controlnets to keep",
         "controlnet_keep.append(keeps[0] if isinstance(controlnet, ControlNetModel) else keeps)"),
        ("cond_scale = controlnet_cond_scale * controlnet_keep[i]", "conditioning_scale=cond_scale,"),
        ("down_block_additional_residuals=down_block_res_samples,",
         "mid_block_additional_residual=mid_block_res_sample,"),
    ],
    checked="0.42.1",
)

# %% [markdown]
# **Two**: the ControlNet. **Three**: the UNet that gets the residuals.

# %% jupyter={"source_hidden": true}
show_source(
    ControlNetModel.forward,
    {
        "sample = sample + controlnet_cond":
            "The only place where the lines enter. A small network has brought them to the latents' size.",
        "down_block_res_sample = controlnet_block(down_block_res_sample)":
            "The zero convolutions, one for each skip.",
        "down_block_res_samples = [sample * conditioning_scale":
            "The scale is a factor, applied after all the work is done.",
    },
    excerpts=[
        ("# 2. pre-process", "down_block_res_samples = (sample,)"),
        ("# 5. Control net blocks", "down_block_res_sample = controlnet_block(down_block_res_sample)"),
        ("down_block_res_samples = [sample * conditioning_scale",
         "mid_block_res_sample = mid_block_res_sample * conditioning_scale"),
    ],
    checked="0.42.1",
)

# %% jupyter={"source_hidden": true}
from diffusers import UNet2DConditionModel

show_source(
    UNet2DConditionModel.forward,
    {
        "down_block_res_sample = down_block_res_sample + down_block_additional_residual":
            "Addition, skip by skip, in the encoders' order.",
        "sample = sample + mid_block_additional_residual": "After the middle block, not before it.",
    },
    excerpts=[
        ("new_down_block_res_samples = ()", "new_down_block_res_samples = new_down_block_res_samples + ("),
        ("sample = sample + mid_block_additional_residual",
         "sample = sample + mid_block_additional_residual"),
    ],
    checked="0.42.1",
)

# %% [markdown]
# ## 5 · Build
#
# ### Exercise 2 · Seven additions
#
# *difficulty 2 of 3 · 5 minutes · 3 points*
#
# You have `encode` and `control` from section 3. `decode(middle, skips, t, text)`, in the folded cell, is the
# UNet's other half.

# %% jupyter={"source_hidden": true}
def decode(middle, skips, t, text):
    """The UNet's second half: its answer, from the middle and the skips (the last ones first)."""
    emb = unet.time_embedding(unet.time_proj(t.expand(len(middle))).to(middle.dtype))
    x, skips = middle, list(skips)
    for block in unet.up_blocks:
        taken = tuple(skips[-len(block.resnets):])
        del skips[-len(block.resnets):]
        more = {"encoder_hidden_states": text} if hasattr(block, "attentions") else {}
        size = skips[-1].shape[2:] if skips else None
        x = block(hidden_states=x, temb=emb, res_hidden_states_tuple=taken, upsample_size=size, **more)
    return unet.conv_out(unet.conv_act(unet.conv_norm_out(x)))

# %% [markdown]
# Write `controlled(encode, control, decode, latents, t, text, lines, scale)`. It returns the output of
# `decode`. (The visible check tries scale 0 only.)
#
# | argument | meaning |
# |---|---|
# | `encode`, `control`, `decode` | three functions like those above |
# | `latents`, `text` | doubled for guidance: `(2B, 4, h, w)` and `(2B, T, D)`; the B rows with the prompts come last |
# | `lines` | one for each picture, `(B, 3, H, W)`, **not** doubled |
# | `scale` | the factor of all residuals, `float` |
#
# <details><summary>Hint 1: a nudge</summary>
#
# Skips and residuals have the same order; the middle has one more residual. How must `lines` be doubled, so
# that row i fits row i of `latents`?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# <code>down, mid = control(latents, t, text, torch.cat([lines, lines]))</code>. Then <code>zip</code> the
# skips with <code>down</code>, add each residual times <code>scale</code>, and add <code>mid</code> times
# <code>scale</code> to the middle.
# </details>

# %% exercise="controlled" provides=["controlled"] difficulty=2 minutes=5
def controlled(encode, control, decode, latents, t, text, lines, scale):
    """The UNet's answer with control, (2B, 4, h, w)."""
    skips, middle = encode(latents, t, text)
    ### BEGIN SOLUTION
    down, mid = control(latents, t, text, torch.cat([lines, lines]))
    skips = [skip + scale * residual for skip, residual in zip(skips, down)]
    return decode(middle + scale * mid, skips, t, text)
    ### END SOLUTION

# %% check="controlled" points=3
import torch
from inferlab.lab import Check, close

check = Check("controlled", points=3)

class Parts:
    """Three functions that a check makes up. Every skip and every residual is one number a row."""

    def __init__(self):
        self.asked = []

    def encode(self, latents, t, text):
        begin = latents.mean((1, 2, 3)) + text.mean((1, 2))
        return [begin * 2**k for k in range(6)], begin + float(t)

    def control(self, latents, t, text, lines):
        check.tensor(latents)
        check.tensor(lines)
        check.equal([len(text), len(lines)], [len(latents)] * 2, "`control` got other numbers of rows of "
                    "latents than of text or of lines")
        self.asked.append(len(latents))
        seen = latents.mean((1, 2, 3)) + 3 * text.mean((1, 2)) + lines.mean((1, 2, 3))
        return [seen * (k + 1) for k in range(6)], seen * 10

    def decode(self, middle, skips, t, text):
        check.equal(len(skips), 6, "`decode` wants six skips")
        return sum((5 + k) * skip for k, skip in enumerate(skips)) + 100 * middle + text.mean((1, 2))


def made_up(B, seed):
    """Latents, text and lines of B pictures with guidance."""
    draw_some = torch.Generator().manual_seed(seed)
    shapes = ((2 * B, 4, 3, 3), (2 * B, 5, 6), (B, 3, 24, 24))
    return [torch.randn(shape, generator=draw_some) for shape in shapes]


def answer(B, seed, scale):
    """(The learner's answer, that without control, rows of each call of `control`, what was given)."""
    parts, (latents, text, lines_given) = Parts(), made_up(B, seed)
    got = check.learner.controlled(parts.encode, parts.control, parts.decode, latents, 7, text, lines_given,
                                   scale)
    check.tensor(got, shape=(2 * B,))
    skips_made, middle_made = parts.encode(latents, 7, text)
    return got, parts.decode(middle_made, skips_made, 7, text), parts.asked, (latents, text, lines_given)


def added(latents, text, lines_of_rows, mid=10, order=range(6)):
    """What all residuals together add to the answer of `decode`, at scale 1."""
    seen = latents.mean((1, 2, 3)) + 3 * text.mean((1, 2)) + lines_of_rows.mean((1, 2, 3))
    return seen * (sum((5 + k) * (one + 1) for k, one in enumerate(order)) + 100 * mid)


with check.part("at scale 0 nothing is added, and `control` was asked", weight=1):
    got, without, asked, _ = answer(1, 1, 0.0)
    check.close(got, without, tol=1e-2)
    check.equal(asked, [2])
### HIDDEN TESTS
check.score()

# %% [markdown]
# ### Your function against the pipeline
#
# Your function with the real parts, compared with the latents after the pipeline's first step:

# %% tags=["demo"]
from inferlab.lab import when_written

kept = []


def keep(pipeline, i, t, values):
    kept.append(values["latents"].clone())
    return {}


draw(WORDS[:1], lines[:1], controlnet_conditioning_scale=0.7, output_type="latent",
     callback_on_step_end=keep)
with when_written("controlled"):
    mine = controlled(encode, control, decode, rows, t, embeds, lines[:1], 0.7)
    uncond, cond = mine.chunk(2)
    base.scheduler.set_timesteps(STEPS, device=lab.device)
    stepped = base.scheduler.step(uncond + 4.0 * (cond - uncond), t, noise[:1]).prev_sample
    print(f"largest difference from the pipeline's first step: {(stepped - kept[0]).abs().max():.1e}")

# %% [markdown]
# ### Lines against words
#
# For each scale, we count in three pictures how many shapes are on the lines (less than 5 pixels from the
# lines' center), and what the checker finds there (`report`, folded):

# %% jupyter={"source_hidden": true}
from inferlab.models.scenes import check_pictures

CENTERS = list(zip(scenes.x[:3, 0].tolist(), scenes.y[:3, 0].tolist()))


def found(images):
    """For each picture: (how far the nearest shape is from the lines' center in pixels, what it is)."""
    out = []
    for verdict, (x, y) in zip(check_pictures(images, WORDS[:len(images)]), CENTERS):
        things = [(((a.x - x) ** 2 + (a.y - y) ** 2) ** 0.5, f"{a.color} {a.shape or 'shape'}")
                  for a in verdict.things]
        out.append(min(things, default=(float("inf"), "nothing")))
    return out


def report(name, images):
    """Prints a line of what `found` finds, and returns the pictures."""
    places = found(images)
    on = sum(away < 5 for away, _ in places)
    print(f"{name:24} on the lines {on} of {len(places)}: ", ", ".join(what for _, what in places))
    return images

# %% tags=["demo"]
swept = [report(f"scale {scale}", at_one if scale == 1.0 else draw(controlnet_conditioning_scale=scale))
         for scale in (0.0, 0.5, 1.0)]
filmstrip(shown(torch.cat([images[:2] for images in swept])),
          [f"scale {scale}" for scale in (0, 0.5, 1) for _ in range(2)],
          "Half the scale is enough to say where", size=1.4)

# %% [markdown]
# Now let them disagree: the words ask for another shape, at another place. Which will win, for place, shape
# and color? And is a window of the first or second half of the steps enough?

# %% tags=["demo"]
OTHER = ["a yellow star at the right", "an orange square at the bottom", "a red triangle at the top"]
against = report("words against lines", draw(OTHER))
silent = report("no words at all", draw([""] * 3))
early = report("first half of the steps", draw(control_guidance_end=0.5))
late = report("second half only", draw(control_guidance_start=0.5))
filmstrip(shown(torch.cat([against, silent])), OTHER + ["no words"] * 3,
          "The lines decide the place, the words the color", size=1.6)

# %% [markdown]
# A caption and lines enter the UNet at different places and decide different things: the caption does not
# move a shape away from its lines, and the lines contain no color. The shape can be decided by either.
#
# Places are decided early (the last two printed lines), while the latents are nearly noise. So a window that
# ends at half is a good idea. But in diffusers it saves no calls, as your trace showed.

# %% [markdown]
# ### Exercise 3 · A window that pays
#
# *difficulty 3 of 3 · 7 minutes · 4 points*
#
# A colleague wants to save the calls outside the window, also with **several** ControlNets, each with its own
# lines, scale and window. In the library (`MultiControlNetModel`) each is called in every pass, and their
# residuals are added up. The colleague's version:

# %%
def colleague_residuals(nets, i, n, latents, t, text):
    """Residuals of pass i of n, or None."""
    total = None
    for control, lines, scale, begin, end in nets:
        if begin <= i / n <= end:
            residuals = [scale * residual for residual in control(latents, t, text, lines, scale)]
            total = residuals if total is None else [(a + b) / 2 for a, b in zip(total, residuals)]
    return total

# %% [markdown]
# In the folded cell, `compare` draws with such a function and with the library's loop, and prints calls and
# difference. `ONE` has one network, `TWO` has two.

# %% jupyter={"source_hidden": true}
def ask_control(latents, t, text, lines, scale):
    """One call of the ControlNet: a list of seven residuals, the middle's last."""
    calls_made.append(int(t))
    down, mid = controlnet(latents, t, text, controlnet_cond=lines, conditioning_scale=scale,
                           return_dict=False)
    return [*down, mid]


def loop(residuals_of_pass, nets, words, steps=STEPS):
    """One picture's latents from a loop of our own; each net is (lines, scale, begin, end)."""
    text, empty = base.encode_prompt(words, lab.device, 1, True)
    embeds, latents = torch.cat([empty, text]), noise[:1]
    nets = [(ask_control, torch.cat([lines] * 2), *rest) for lines, *rest in nets]
    base.scheduler.set_timesteps(steps, device=lab.device)
    for i, t in enumerate(base.scheduler.timesteps):
        rows = torch.cat([latents] * 2)
        residuals = residuals_of_pass(nets, i, steps, rows, t, embeds)
        more = {} if residuals is None else {"down_block_additional_residuals": residuals[:-1],
                                             "mid_block_additional_residual": residuals[-1]}
        uncond, cond = unet(rows, t, encoder_hidden_states=embeds, **more).sample.chunk(2)
        latents = base.scheduler.step(uncond + 4.0 * (cond - uncond), t, latents).prev_sample
    return latents


def compare(residuals_of_pass, nets, words):
    """Prints calls, and the distance from the library's pipeline with the same networks."""
    calls_made.clear()
    mine = loop(residuals_of_pass, nets, words)
    both = with_control([controlnet] * len(nets))
    with trace(both) as of_both:
        theirs = both(words, image=[lines for lines, *_ in nets], latents=noise[:1],
                      num_inference_steps=STEPS, guidance_scale=4.0, output_type="latent",
                      controlnet_conditioning_scale=[scale for _, scale, _, _ in nets],
                      control_guidance_start=[start for *_, start, _ in nets],
                      control_guidance_end=[end for *_, end in nets]).images
    print(f"calls {len(calls_made)}, of the library {len(of_both.find('controlnet')) * len(nets)}; ",
          f"largest difference from its latents {(mine - theirs).abs().max():.1e}")
    return base.vae.decode(mine / base.vae.config.scaling_factor).sample / 2 + 0.5


calls_made = []
ONE = [(lines[:1], 1.0, 0.0, 0.5)]
TWO = [(lines[:1], 1.0, 0.0, 0.5), (lines[2:], 0.7, 0.0, 0.4)]
BOTH = "a yellow square and a red circle"

# %% tags=["demo"]
_ = compare(colleague_residuals, ONE, WORDS[0])

# %% [markdown]
# There is one call more than the window has passes. "Then it must be `i / n < end`," says the colleague.
# `mended_residuals` does that, and the first of the next two runs equals the library's:

# %% tags=["demo"]
def mended_residuals(nets, i, n, latents, t, text):
    """The colleague's with `<` for the second `<=`: each end is made a little smaller."""
    open_end = [(*net[:4], net[4] - 1e-9) for net in nets]
    return colleague_residuals(open_end, i, n, latents, t, text)


_ = compare(mended_residuals, ONE, WORDS[0])
_ = compare(mended_residuals, TWO, BOTH)

# %% [markdown]
# The second run, with another scale, another window and two networks, still differs: the function has three
# faults, and `<` repaired the first only in part. Write `residuals_of_pass` so that every such run equals the
# library's, with fewer calls:
#
# | argument | meaning |
# |---|---|
# | `nets` | a list of tuples `(control, lines, scale, begin, end)` |
# | `control(latents, t, text, lines, scale)` | one call: a list of tensors, already multiplied by `scale` (the library's `conditioning_scale`) |
# | `i`, `n` | the pass, from 0, and the number of passes |
# | `latents`, `t`, `text` | passed on to `control` |
#
# It returns the list of the sums, or `None` if no network is inside its window. A network outside its window,
# or with a scale of 0, is not called.
#
# <details><summary>Hint 1: a nudge</summary>
#
# With an end of 0.4 and six passes: which passes are inside by the rule of section 2, and which by `i / n <
# end`? At which scale does a second multiplication change nothing? And are the residuals of several networks
# averaged or added?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# If <code>begin &lt;= i / n and (i + 1) / n &lt;= end and scale != 0</code>, call <code>control</code> with
# the scale, and do not multiply again. Keep the first list; add each further list to it, tensor by tensor.
# </details>

# %% exercise="residuals-of-pass" provides=["residuals_of_pass"] difficulty=3 minutes=7
def residuals_of_pass(nets, i, n, latents, t, text):
    """The sums of all residuals of pass i of n, or None."""
    total = None
    for control, lines, scale, begin, end in nets:
        ### BEGIN SOLUTION
        if begin <= i / n and (i + 1) / n <= end and scale != 0:
            residuals = control(latents, t, text, lines, scale)
            total = residuals if total is None else [a + b for a, b in zip(total, residuals)]
        ### END SOLUTION
    return total

# %% check="residuals-of-pass" points=4
import torch
from inferlab.lab import Check, close

check = Check("residuals-of-pass", points=4)

class Net:
    """A ControlNet that a check makes up, and how often it was called."""

    def __init__(self, factor):
        self.factor, self.calls = factor, 0

    def __call__(self, latents, t, text, lines, scale):
        check.tensor(latents)
        check.tensor(lines)
        self.calls += 1
        seen = self.factor * latents.mean() + text.mean() + lines.mean() + float(t) / 1000
        return [seen * (k + 1) * scale * torch.ones(2) for k in range(3)]


def run_of(n, *windows):
    """A loop over n passes with one made-up network for each (scale, start, end).

    Gives for each pass the learner's first residual (None: none), the pass's scales as the library has them,
    each network's first residual at scale 1, and at the end how often each network was called."""
    draw_net = torch.Generator().manual_seed(n)
    latents, text = torch.randn(2, 4, 3, 3, generator=draw_net), torch.randn(2, 5, 6, generator=draw_net)
    given = [torch.rand(2, 3, 8, 8, generator=draw_net) for _ in windows]
    nets_made = [Net(2.0 + k) for k in range(len(windows))]
    passes = []
    for i in range(n):
        nets_given = [(net, one, *window) for net, one, window in zip(nets_made, given, windows)]
        got = check.learner.residuals_of_pass(nets_given, i, n, latents, 900 - i, text)
        check.true(got is None or (isinstance(got, list) and len(got) == 3),
                   "return a list with as many tensors as `control` returns, or None")
        kept_scales = [scale * (1.0 - float(i / n < start or (i + 1) / n > end))
                       for scale, start, end in windows]
        ones = [Net(net.factor)(latents, 900 - i, text, one, 1.0) for net, one in zip(nets_made, given)]
        passes.append((got, kept_scales, ones))
    return passes, [net.calls for net in nets_made]


def sums(kept_scales, ones):
    """What the library adds up."""
    return [sum(scale * one[k] for scale, one in zip(kept_scales, ones)) for k in range(3)]


with check.part("one network, six passes, an end of 0.5", weight=1):
    passes, called = run_of(6, (1.0, 0.0, 0.5))
    check.equal(called, [3])
    check.close(passes[0][0], sums(*passes[0][1:]))
    check.true(passes[5][0] is None, "in the last pass no network is inside its window: return None")
### HIDDEN TESTS
check.score()

# %% tags=["demo"]
with when_written("residuals_of_pass"):
    compare(residuals_of_pass, ONE, WORDS[0])
    together = compare(residuals_of_pass, TWO, BOTH)
    display(filmstrip([*shown(lines[:1]), *shown(lines[2:]), *shown(together.clamp(0, 1))],
                      ["first lines", "second lines", BOTH], "Two networks' residuals are one sum", size=1.8))

# %% [markdown]
# The same latents, without the calls outside the windows.

# %% [markdown]
# ### An image prompt is one more attention
#
# The third condition of section 1: an **IP-Adapter** makes a few tokens from a picture. Each cross-attention
# of the UNet keeps its queries. Additional weights give the image tokens keys and values, and the result of
# this second attention is **added** to the text's. Here is one cross-attention of the UNet, with a new
# adapter (of random weights). `by_hand` is the sum:

# %% tags=["demo"]
from diffusers.models.attention_processor import IPAdapterAttnProcessor2_0
from torch.nn.functional import scaled_dot_product_attention

attn = unet.down_blocks[0].attentions[0].transformer_blocks[0].attn2
torch.manual_seed(SEED)
adapter = IPAdapterAttnProcessor2_0(attn.to_q.in_features, attn.to_k.in_features, num_tokens=(4,))
adapter = adapter.to(lab.device, unet.dtype)
places = torch.randn(1, 256, attn.to_q.in_features).to(text)
image_tokens = torch.randn(1, 4, attn.to_k.in_features).to(text)


def heads(x):
    """(1, N, heads * d) as (1, heads, N, d)."""
    return x.view(1, x.shape[1], attn.heads, -1).transpose(1, 2)


def by_hand(scale):
    """The text's attention, plus `scale` times the image's."""
    query = heads(attn.to_q(places))
    of_text = scaled_dot_product_attention(query, heads(attn.to_k(text)), heads(attn.to_v(text)))
    of_image = scaled_dot_product_attention(query, heads(adapter.to_k_ip[0](image_tokens)),
                                            heads(adapter.to_v_ip[0](image_tokens)))
    both = (of_text + scale * of_image).transpose(1, 2).flatten(2)
    return attn.to_out[0](both)


for scale in (0.0, 0.6):
    adapter.scale = [scale]
    theirs = adapter(attn, places, (text, [image_tokens]))
    print(f"scale {scale}: largest difference from the library's {(by_hand(scale) - theirs).abs().max():.1e}")

# %% [markdown]
# Each of the two attentions has its own softmax, so the text's weights stay the same with any number of image
# tokens. An image prompt is closer to a caption than lines are: it says what, not where.

# %% [markdown]
# ## 6 · Explain
#
# Say what control is, and what your runs show. In the first three fields you write short sentences, one a
# line, from the tables below: an entry of `who`, a verb, an entry of its row and, if you like, entries of a
# row `may follow`. `window` asks about the library's pipeline. In `calls` you type how often the ControlNet
# ran in **your traced run** of section 3, and in `residual` the shape of the **middle's** residual there.
# Lines that begin with `#` are notes.

# %% jupyter={"source_hidden": true}
### FIXTURE words
words

# %% [markdown]
# *difficulty 2 of 3 · 5 minutes · 3 points.* The cell shows how it reads each line, and that reading is
# graded when you hand in. One false sentence costs its field all points, so write only what you know. A line
# that the cell cannot read is graded by a person.

# %% explain="control-in-words" difficulty=2 minutes=5
%%explain control-in-words
# ### BEGIN SOLUTION
# control: the ControlNet computes residuals in each pass
#   the residuals are added to the skips of the UNet
# conditions: the caption enters through the attention to the text
#   the lines enter through the skips of the UNet
#   the image prompt enters through an attention of its own
# window: a window that ends at half changes the picture
#   it leaves alone the number of ControlNet calls
# calls: 6
# residual: (2, 144, 8, 8)
# ### END SOLUTION

# %% check="words-control" of="control-in-words" points=1
from inferlab.lab import Check

check = Check("words-control", points=1)
with check.part("`control:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("control-in-words").get("control"), "`control:` is empty")
### HIDDEN TESTS
check.score()

# %% check="words-window" of="control-in-words" points=1
from inferlab.lab import Check

check = Check("words-window", points=1)
with check.part("`conditions:` and `window:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("control-in-words").get("conditions"), "`conditions:` is empty")
    check.true(check.explanation("control-in-words").get("window"), "`window:` is empty")
### HIDDEN TESTS
check.score()

# %% check="words-entries" of="control-in-words" points=1
from inferlab.lab import Check, reference

check = Check("words-entries", points=1)
with check.part("`calls:` and `residual:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("control-in-words").get("calls"), "`calls:` is empty")
    check.true(check.explanation("control-in-words").get("residual"), "`residual:` is empty")
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7 · Notice
#
# * **Not every condition is a prompt.** Lines never become tokens.
# * **Control edits no pixels.** It adds to tensors inside the UNet. Scheduler and VAE do not change.
# * **In diffusers a ControlNet costs the same outside its window as inside.** Its residuals are multiplied by
#   zero after they have been computed.
# * **Fitting shapes do not prove the right order.** Several residuals have the same shape. Added to the wrong
#   skips they raise no error. Another UNet of the same shapes accepts them, too.

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
