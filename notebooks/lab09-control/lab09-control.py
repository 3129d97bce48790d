# %% [markdown]
# # Lab 09 · Control
#
# A prompt says what to draw, but hardly where. In this lab a few lines say where. You predict what a second
# network, the ControlNet, does in a run, add its outputs to the UNet's by hand, and repair a window that was
# meant to save work.
#
# **Time** 35 to 45 minutes without the reading · **Points** 14, of which 3 are practice (exercise 2) ·
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
pipe = StableDiffusionControlNetPipeline(**base.components, controlnet=controlnet,
                                         requires_safety_checker=False)
pipe.set_progress_bar_config(disable=True)

# %% [markdown]
# The lines come from three scenes: the edges of a square, a cross and a circle. The folded cell defines
# `lines`, their captions `WORDS`, `draw` (six steps, guidance scale 4), and `shown` and `filmstrip`.

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
# A UNet has two halves and a middle block between them. The **encoder** makes its input smaller, layer by
# layer, and keeps its intermediate results: the **skips**. The **decoder** makes the tensor larger again, and
# uses the skips, the last one first. A **ControlNet** is a second encoder. It starts as a copy of the first
# one, and also sees the lines. Its outputs, the **residuals**, are added to the UNet's skips and to the
# middle block's output.
#
# | condition | goes through | enters the UNet |
# |---|---|---|
# | a caption | tokenizer and text encoder | as tokens, in each cross-attention |
# | lines | the ControlNet | as residuals, added to the skips and to the middle |
# | an image prompt | an image encoder (IP-Adapter) | as separate tokens, in one more attention |
#
# How many of its weights are still the UNet's? We compare them by name:

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
# **Before you run anything further**, say what a trace of such a call will show. It is graded on runs of the
# bundled model that this notebook never makes. Write two statements:
#
# * `scales`: a list with the scale (`float`) of each **call of the ControlNet**, in order;
# * `first`: the shape of its first residual, a tuple of `int`. A residual has the shape of the tensor to
#   which it is added, here the UNet's first skip: 96 channels at the latents' size.
#
# | argument | meaning |
# |---|---|
# | `prompts` | number of prompts in the call, one picture each |
# | `height`, `width` | size of the pictures and the lines in pixels; multiples of 8 |
# | `steps`, `guidance_scale` | as in the call of the pipeline |
# | `scale`, `start`, `end` | the ControlNet's scale and window |
#
# <details><summary>Hint 1: a nudge</summary>
#
# Outside the window, is the ControlNet not called, or is its output not used? How long is the UNet's batch
# with guidance (a guidance scale above 1)?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# There is one call in each pass, and outside the window its scale is <code>0.0</code>. Guidance doubles the
# rows. The latents' side is <code>height // 8</code>.
# </details>

# %% exercise="forecast" provides=["forecast"] difficulty=2 minutes=5
def forecast(prompts, height, width, steps, guidance_scale, scale, start, end):
    """Scale of each call of the ControlNet, and the shape of its first residual."""
    inside = [start <= i / steps and (i + 1) / steps <= end for i in range(steps)]  # the rule, for each pass
    ### BEGIN SOLUTION
    scales = [scale if here else 0.0 for here in inside]
    first = (2 * prompts if guidance_scale > 1 else prompts, 96, height // 8, width // 8)
    ### END SOLUTION
    return {"scales": scales, "first": first}

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
# Neither the text encoder nor the VAE gets the lines. **Count the ControlNet's calls**: the window is half of
# the run.
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
    check.true(isinstance(got, dict) and set(got) == {"scales", "first"},
               "return a dict with the keys scales and first")
    check.true(isinstance(got["scales"], list), "scales is a list")
    check.true(isinstance(got["first"], tuple) and len(got["first"]) == 4, "first is a tuple of four numbers")
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
# adds zeros. For each skip, we print the size of the trained ControlNet's residual, and the largest number in
# a new copy's. The folded cell defines `encode(latents, t, text)`, the UNet's first half, which returns
# `(skips, middle)`; `control(latents, t, text, lines)`, the ControlNet, which returns `(residuals of the
# skips, of the middle)`; and a noisy example: `rows`, `t`, `embeds`, and `twice`, the lines doubled.

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
          f"a new copy's largest number {nothing.abs().max():g}")

# %% [markdown]
# A new copy changes no number, so training starts from the unchanged model. The trained residuals are large.

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
# UNet's other half. Only the seven additions between them (six skips and the middle) are missing.

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
# Complete `controlled`. `encode`, `control` and `decode` are three functions like those above, `latents` and
# `text` are doubled for guidance, and `scale` is the factor of all residuals. It returns the output of
# `decode`. (The visible check tries scale 0 only.)
#
# <details><summary>Hint 1: a nudge</summary>
#
# Skips and residuals have the same order; the middle has one more residual.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# <code>zip</code> the skips with <code>down</code>, and add each residual times <code>scale</code>. Give
# <code>decode</code> these skips, and the middle plus <code>mid</code> times <code>scale</code>.
# </details>

# %% exercise="controlled" provides=["controlled"] difficulty=2 minutes=5
def controlled(encode, control, decode, latents, t, text, lines, scale):
    """The UNet's answer with control, (2B, 4, h, w)."""
    skips, middle = encode(latents, t, text)
    down, mid = control(latents, t, text, torch.cat([lines, lines]))  # guidance: two rows for each picture
    ### BEGIN SOLUTION
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
# Your function with the real parts, compared with the library's UNet, which adds the residuals itself:

# %% tags=["demo"]
from inferlab.lab import when_written

with when_written("controlled"):
    mine = controlled(encode, control, decode, rows, t, embeds, lines[:1], 0.7)
    down, mid = controlnet(rows, t, embeds, twice, 0.7, return_dict=False)
    theirs = unet(rows, t, embeds, down_block_additional_residuals=down,
                  mid_block_additional_residual=mid).sample
    print(f"largest difference {(mine - theirs).abs().max():.1e}")

# %% [markdown]
# ### Lines against words
#
# Which will win, for place, shape and color, if the words ask for another shape at another place? And is a
# window of half of the steps enough? For each run, we count in three pictures how many shapes are on the
# lines (less than 5 pixels from the lines' center), and what the checker finds there (`report`, folded):

# %% jupyter={"source_hidden": true}
from inferlab.models.scenes import check_pictures

CENTERS = list(zip(scenes.x[:3, 0].tolist(), scenes.y[:3, 0].tolist()))


def found(images):
    """For each picture: (how far the nearest shape is from the lines' center in pixels, what it is)."""
    out = []
    for verdict, (x, y) in zip(check_pictures(images, WORDS[:len(images)]), CENTERS):
        things = [(((a.x - x) ** 2 + (a.y - y) ** 2) ** 0.5, f"{a.color or 'gray'} {a.shape or 'shape'}")
                  for a in verdict.things]
        out.append(min(things, default=(float("inf"), "nothing")))
    return out


def report(name, images):
    """Prints a line of what `found` finds."""
    places = found(images)
    on = sum(away < 5 for away, _ in places)
    print(f"{name:24} on the lines {on} of {len(places)}: ", ", ".join(what for _, what in places))

# %% tags=["demo"]
OTHER = ["a yellow star at the right", "an orange square at the bottom", "a red triangle at the top"]
runs = {f"scale {scale}": draw(controlnet_conditioning_scale=scale) for scale in (0.0, 0.5)}
runs |= {"scale 1.0": at_one, "other words": draw(OTHER), "first half only": draw(control_guidance_end=0.5),
         "second half only": draw(control_guidance_start=0.5)}
for name, images in runs.items():
    report(name, images)
filmstrip([shown(images)[0] for images in runs.values()], list(runs),
          "The lines decide the place, the words the color", size=1.4)

# %% [markdown]
# The caption does not move a shape away from its lines, and the lines contain no color. The shape can be
# decided by either. Places are decided early, while the latents are nearly noise. So a window that ends at
# half is a good idea. But in diffusers it saves no calls, as your trace showed.

# %% [markdown]
# ### Exercise 3 · A window that pays
#
# *difficulty 2 of 3 · 5 minutes · 4 points*
#
# A colleague wants to save the calls outside the window. This is the colleague's version of one pass:

# %%
def colleague_residuals(net, i, n, latents, t, text):
    """Residuals of pass i of n, or None."""
    call, lines, scale, begin, end = net
    if begin <= i / n < end:
        return [scale * residual for residual in call(latents, t, text, lines, scale)]

# %% [markdown]
# In the folded cell, `compare` draws with such a function and with the library's loop, and prints calls and
# difference.

# %% jupyter={"source_hidden": true}
def ask_control(latents, t, text, lines, scale):
    """One call of the ControlNet: a list of seven residuals, the middle's last."""
    calls_made.append(int(t))
    down, mid = controlnet(latents, t, text, controlnet_cond=lines, conditioning_scale=scale,
                           return_dict=False)
    return [*down, mid]


def loop(residuals_of_pass, scale, end):
    """One picture's latents from a loop of our own, with a window from 0 to `end`."""
    latents, net = noise[:1], (ask_control, twice, scale, 0.0, end)
    base.scheduler.set_timesteps(STEPS, device=lab.device)
    for i, t in enumerate(base.scheduler.timesteps):
        rows = torch.cat([latents] * 2)
        residuals = residuals_of_pass(net, i, STEPS, rows, t, embeds)
        more = {} if residuals is None else {"down_block_additional_residuals": residuals[:-1],
                                             "mid_block_additional_residual": residuals[-1]}
        uncond, cond = unet(rows, t, encoder_hidden_states=embeds, **more).sample.chunk(2)
        latents = base.scheduler.step(uncond + 4.0 * (cond - uncond), t, latents).prev_sample
    return latents


def compare(residuals_of_pass, scale, end):
    """Prints calls, and the distance from the library's pipeline with the same scale and window."""
    calls_made.clear()
    mine = loop(residuals_of_pass, scale, end)
    with trace(pipe) as of_library:
        theirs = draw(WORDS[:1], lines[:1], controlnet_conditioning_scale=scale, control_guidance_end=end,
                      output_type="latent")
    print(f"scale {scale}, end {end}: {len(calls_made)} calls, of the library "
          f"{len(of_library.find('controlnet'))}; largest difference "
          f"{(mine.float().cpu() - theirs).abs().max():.1e}")


calls_made = []

# %% tags=["demo"]
compare(colleague_residuals, scale=1.0, end=0.5)
compare(colleague_residuals, scale=0.7, end=0.4)

# %% [markdown]
# The first run equals the library's, with half of its calls. The second, with another scale and another end,
# does not: the function has two faults. Write `residuals_of_pass` so that every run equals the library's:
#
# | argument | meaning |
# |---|---|
# | `net` | a tuple `(call, lines, scale, begin, end)` |
# | `call(latents, t, text, lines, scale)` | calls the ControlNet: a list of tensors, already multiplied by `scale` (the library's `conditioning_scale`) |
# | `i`, `n` | the pass, from 0, and the number of passes |
# | `latents`, `t`, `text` | passed on to `call` |
#
# It returns what `call` returns, or `None` without using `call`: outside the window and, as a further saving,
# at scale 0.
#
# <details><summary>Hint 1: a nudge</summary>
#
# With an end of 0.4 and six passes: which passes are inside by the rule of section 2, and which by `i / n <
# end`? And at which scale does a second multiplication change nothing?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# If <code>begin &lt;= i / n and (i + 1) / n &lt;= end and scale != 0</code>, return what <code>call</code>
# returns, and do not multiply again.
# </details>

# %% exercise="residuals-of-pass" provides=["residuals_of_pass"] difficulty=2 minutes=5
def residuals_of_pass(net, i, n, latents, t, text):
    """Residuals of pass i of n, or None."""
    call, lines, scale, begin, end = net
    ### BEGIN SOLUTION
    if begin <= i / n and (i + 1) / n <= end and scale != 0:
        return call(latents, t, text, lines, scale)
    ### END SOLUTION

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


def run_of(n, scale, start, end):
    """A loop over n passes with a made-up network.

    Gives for each pass the learner's first residual (None: none), the pass's scale as the library has it, and
    the network's residuals at scale 1, and at the end how often the network was called."""
    draw_net = torch.Generator().manual_seed(n)
    latents, text = torch.randn(2, 4, 3, 3, generator=draw_net), torch.randn(2, 5, 6, generator=draw_net)
    given, net_made, passes = torch.rand(2, 3, 8, 8, generator=draw_net), Net(2.0), []
    for i in range(n):
        net = net_made, given, scale, start, end
        got = check.learner.residuals_of_pass(net, i, n, latents, 900 - i, text)
        check.true(got is None or (isinstance(got, list) and len(got) == 3),
                   "return a list with as many tensors as `call` returns, or None")
        kept_scale = scale * (1.0 - float(i / n < start or (i + 1) / n > end))
        passes.append((got, kept_scale, Net(2.0)(latents, 900 - i, text, given, 1.0)))
    return passes, net_made.calls


def scaled(factor, ones):
    """Residuals at scale 1, times a factor."""
    return [factor * one for one in ones]


with check.part("six passes, an end of 0.5", weight=1):
    passes, called = run_of(6, 1.0, 0.0, 0.5)
    check.equal(called, 3)
    check.close(passes[0][0], scaled(*passes[0][1:]))
    check.true(passes[5][0] is None, "the last pass is outside the window: return None")
### HIDDEN TESTS
check.score()

# %% tags=["demo"]
with when_written("residuals_of_pass"):
    compare(residuals_of_pass, scale=1.0, end=0.5)
    compare(residuals_of_pass, scale=0.7, end=0.4)

# %% [markdown]
# The same latents, without the calls outside the window.

# %% [markdown]
# ### An image prompt is one more attention
#
# The third condition of section 1: an **IP-Adapter** makes a few tokens from a picture. Each cross-attention
# of the UNet keeps its queries `q`. Additional weights give the image tokens keys and values of their own,
# and the result of this second attention is **added** to the text's:
#
# $$\text{out} = \text{attention}(q, k_\text{text}, v_\text{text})
# + s\,\text{attention}(q, k_\text{image}, v_\text{image})$$
#
# Each of the two attentions has its own softmax, so the text's weights stay the same with any number of image
# tokens. An image prompt is closer to a caption than lines are: it says what, not where. (The field
# `conditions` asks about it, too.)

# %% [markdown]
# ## 6 · Explain
#
# Say what control is, and what your runs show. In the first three fields you write short sentences, one a
# line, from the tables below: an entry of `who`, a verb, an entry of its row and, if you like, entries of a
# row `may follow`. `window` asks about the library's pipeline. In `residual` you type the shape of the
# **middle's** residual in **your traced run** of section 3. Lines that begin with `#` are notes.

# %% jupyter={"source_hidden": true}
### FIXTURE words
words

# %% [markdown]
# *difficulty 2 of 3 · 4 minutes · 3 points.* The cell shows how it reads each line, and that reading is
# graded when you hand in. One false sentence costs its field all points, so write only what you know. A line
# that the cell cannot read is graded by a person.

# %% explain="control-in-words" difficulty=2 minutes=4
%%explain control-in-words
# ### BEGIN SOLUTION
# control: the ControlNet computes residuals in each pass
#   the residuals are added to the skips of the UNet
# conditions: the caption enters through the attention to the text
#   the lines enter through the skips of the UNet
#   the image prompt enters through an attention of its own
# window: a window that ends at half changes the picture
#   it leaves alone the number of ControlNet calls
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
with check.part("`residual:` is filled in (graded when you hand it in)", weight=0):
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
#   skips they raise no error.

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
