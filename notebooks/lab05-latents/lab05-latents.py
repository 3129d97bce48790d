# %% [markdown]
# # Lab 05 · Latents
#
# The denoiser of Stable Diffusion never sees a picture. A VAE translates: pictures into latents before the
# loop, latents into pictures after it. In this lab you trace a picture's way into the loop and out of it,
# find out what the number 0.18215 is for, see which part removes noise, and repair a colleague's inpainting.
#
# **Time** 35 to 45 minutes without the reading, 10 more for what is optional · **Points** 14, of which 4 are
# practice (exercise 2) · **Reading** [Latents](../../handbook/lab05-latents.md), before you start

# %% tags=["parameters"]
LEARNER = ""  # your name or id, as your course knows you
MODEL = "bundled"  # "bundled" | "full" | "hub"
DEVICE = "auto"  # "auto" | "cpu" | "cuda"
SEED = 0

# %% [markdown]
# Grading always uses `"bundled"`, a small trained model, on the CPU. `"full"` has the architecture of Stable
# Diffusion 1.5 with random weights: calls and shapes are real, values and pictures mean nothing.

# %%
from inferlab.lab import start

lab = start("lab05-latents", LEARNER, MODEL, DEVICE, SEED)

# %%
import torch
from diffusers import DDIMScheduler, StableDiffusionImg2ImgPipeline, StableDiffusionInpaintPipeline
from inferlab.models import load_pipeline
from inferlab.models.scenes import render, sample_scenes

torch.set_grad_enabled(False)
pipe = load_pipeline(MODEL, lab.device)
# a checkpoint may bring another scheduler; latents are never clipped
pipe.scheduler = DDIMScheduler.from_config(pipe.scheduler.config, clip_sample=False)
pipe.set_progress_bar_config(disable=True)
vae = pipe.vae

# %% [markdown]
# ## 1 · Goal and mental model
#
# After this lab you can say what a latent is and what it is not, and what happens to a picture and a mask
# that enter a pipeline.
#
# A VAE is two networks, an encoder and a decoder. VAE and denoiser must agree on four things. We call them
# the **contract**:
#
# | clause | meaning | found in |
# |---|---|---|
# | **size** | one place of the latents for each 8x8 pixels | the number of `block_out_channels` |
# | **channels** | how many numbers a place has | `latent_channels` |
# | **scale** | the denoiser's latents are `(latents - shift_factor) * scaling_factor` | `scaling_factor`, `shift_factor` |
# | **spread** | the encoder gives a mean and a spread (standard deviation) for each number | `latent_dist` |

# %%
print("pixels for each place, a side:", 2 ** (len(vae.config.block_out_channels) - 1))
for name in ("latent_channels", "scaling_factor", "shift_factor", "sample_size"):
    print(f"{name:30}{vae.config[name]}")

# %% [markdown]
# `shift_factor` is `None` in Stable Diffusion: nothing is shifted, as with a shift of 0. FLUX has one.

# %% [markdown]
# ![Two rows of one picture at four noise levels. In the first row it dissolves into colored blotches; in
# the second row, after one answer of the UNet, it stays whole.](../../handbook/figures/lab05-noise.svg)
#
# *From the handbook.* Noise in the latents, from a little to much. Above, the VAE decodes the noisy latents:
# it removes no noise. Below, the UNet was asked once before decoding.

# %% [markdown]
# ## 2 · Predict
#
# **Image-to-image** begins with a picture instead of pure noise. The pipeline encodes the picture, adds
# noise, and starts the loop there: with `strength=0.5` it makes only the last half of its steps.
#
# ### Exercise 1 · What does an image-to-image call do?
#
# *difficulty 1 of 3 · 4 minutes · 3 points*
#
# **Before you run anything further**, write a function that says what a trace of such a call will show. It is
# graded on calls that this notebook never makes. Not every argument matters.
#
# | argument | meaning |
# |---|---|
# | `pictures` | how many pictures, and prompts, in one call (`int`) |
# | `height`, `width` | size of the pictures in pixels, multiples of 8 |
# | `steps` | how many steps the loop makes |
#
# Returns a `dict`: the number of calls (`int`) under `"vae.decode"`, and two shapes (tuples of `int`):
# `"moments"`, the encoder network's output, and `"latents"`, the loop's state (without the doubling for
# guidance).
#
# <details><summary>Hint 1: a nudge</summary>
#
# Does the loop ever use the VAE? And for each number of the latents, how many numbers does the encoder give?
# (See the table of section 1.)
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# The VAE decodes once, after the loop, for all pictures together. A side has <code>height // 8</code> places.
# The moments have 8 channels (means and log-variances), the latents 4.
# </details>

# %% exercise="forecast" provides=["forecast"] difficulty=1 minutes=4
def forecast(pictures, height, width, steps):
    """What a trace of one image-to-image call shows: calls of the decoder, and two shapes."""
    ### BEGIN SOLUTION
    high, wide = height // 8, width // 8
    return {"vae.decode": 1, "moments": (pictures, 8, high, wide), "latents": (pictures, 4, high, wide)}
    ### END SOLUTION

# %% [markdown]
# ## 3 · Trace
#
# Two scenes, their captions, and the last half of ten steps:

# %%
from inferlab.trace import trace

side = pipe.unet.config.sample_size * pipe.vae_scale_factor
scenes = sample_scenes(2, torch.Generator().manual_seed(SEED + 18), two=0.0)  # one shape in each
pictures = render(scenes, side).to(lab.device, vae.dtype)  # in [0, 1]
captions = [scene.caption for scene in scenes.scenes()]
print(*captions, sep="\n")
to_image = StableDiffusionImg2ImgPipeline(**pipe.components, requires_safety_checker=False)
to_image.set_progress_bar_config(disable=True)

with trace(to_image) as run:
    to_image(captions, image=pictures, strength=0.5, num_inference_steps=10, guidance_scale=4.0,
             generator=torch.Generator(lab.device).manual_seed(SEED))
run.table(level=2)

# %% [markdown]
# Stop at three lines of the table:
#
# * **`vae.encode`** comes before the loop, once, for both pictures. Its input lies in [-1, 1]: the image
#   processor has computed `2 * picture - 1`;
# * **`scheduler.add_noise`** works on latents. No noise is added to pixels;
# * **`vae.decode`** comes once, after the loop.
#
# **Reconcile** the trace with your forecast (5 steps: half of ten). Where they differ, the trace is right.

# %% tags=["demo"]
from inferlab.lab import when_written

facts = run.facts()
print("the run: ", {"vae.decode": len(run.find("vae.decode")),
                    "moments": tuple(facts["vae.encode.outputs.latent_dist.parameters.shape"]),
                    "latents": tuple(facts["scheduler.add_noise.outputs.shape"])})
with when_written("forecast"):
    print("forecast:", forecast(2, side, side, 5))

# %% check="forecast" points=3
from inferlab.lab import Check, reference

check = Check("forecast", points=3)

def ask_forecast(*call):
    """The learner's forecast of a call, once it has the form that the contract asks for."""
    got = check.learner.forecast(*call)
    shapes = ["moments", "latents"]
    check.true(isinstance(got, dict) and set(got) == {"vae.decode", *shapes},
               "return a dict with exactly the three keys of the contract")
    check.true(all(isinstance(got[key], tuple) for key in shapes), "each shape is a tuple of four numbers")
    return got["vae.decode"], {key: got[key] for key in shapes}

with check.part("the calls of the traced run", weight=1):
    counted, _ = ask_forecast(2, 128, 128, 5)
    check.equal(counted, 1)
### HIDDEN TESTS
check.score()

# %% [markdown]
# ### Are latents small pictures?
#
# Look at the latents of one picture, channel by channel:

# %%
original = pictures * 2 - 1  # in [-1, 1], as the VAE wants it
moments = vae.encode(original).latent_dist
means = moments.mode()

# %% tags=["demo"]
from inferlab.lab import filmstrip


def shown(picture):
    """A picture in [-1, 1], (3, H, W), for a film strip."""
    return (picture / 2 + 0.5).clamp(0, 1).permute(1, 2, 0).float().cpu().numpy()


grey = [shown(2 * (z - z.min()) / (z.max() - z.min()) - 1) for z in means[0, :, None].expand(-1, 3, -1, -1)]
print("a picture:", pictures[0].numel(), "numbers; its latents:", means[0].numel())
print(f"the numbers of the latents go from {means.min():.1f} to {means.max():.1f}")
filmstrip([shown(original[0]), *grey], ["picture", *(f"channel {i}" for i in range(len(grey)))],
          "Latents keep the picture's places; their channels are no colors")

# %% [markdown]
# The **places** are the picture's: what is on the left in the picture is on the left in the latents. The
# **channels** are no colors. A place describes 8x8 pixels in four numbers; training decided what they mean.

# %%
def decode(latents):
    """The picture of a VAE's latents, (B, 3, H, W) in [-1, 1]."""
    return vae.decode(latents).sample.clamp(-1, 1)


def psnr(found, wanted):
    """How close two pictures in [-1, 1] are, in decibels: 10 more mean a tenth of the mean squared error."""
    return float(10 * torch.log10(4 / (found - wanted).float().square().mean()))

# %% [markdown]
# ## 4 · Read
#
# How image-to-image gets from a picture to its first latents, in the installed diffusers. Look for the scale:

# %% jupyter={"source_hidden": true}
from inferlab.lab import show_source

show_source(
    StableDiffusionImg2ImgPipeline.prepare_latents,
    {
        "init_latents = retrieve_latents(self.vae.encode(image), generator=generator)":
            "A random sample, not the mean: `retrieve_latents` samples unless it is told otherwise.",
        "init_latents = self.vae.config.scaling_factor * init_latents":
            "From the VAE's latents to the denoiser's. Stable Diffusion shifts nothing.",
        "init_latents = self.scheduler.add_noise(init_latents, noise, timestep)":
            "Adds noise, at the loop's first level, to latents that have the denoiser's scale.",
    },
    excerpts=[("init_latents = retrieve_latents(self.vae.encode(image), generator=generator)",
               "init_latents = self.vae.config.scaling_factor * init_latents"),
              ("init_latents = self.scheduler.add_noise(init_latents, noise, timestep)", "return latents")],
    checked="0.42.1",
)

# %% [markdown]
# ## 5 · Build
#
# ### Exercise 2 · The contract
#
# *difficulty 2 of 3 · 5 minutes · 4 points*
#
# Write the contract's *scale* and *spread* as three functions:
#
# | function | gets | returns |
# |---|---|---|
# | `measure(latents)` | a VAE's latents, `(B, C, h, w)` | the `scale`, a `float`, that brings them to a standard deviation of 1 |
# | `to_model(moments, draw, shift, scale)` | an encoder's output, `(B, 2C, h, w)`; `draw`, noise of shape `(B, C, h, w)` for a sample, or 0 for the mode (here: the mean) | the denoiser's latents, `(B, C, h, w)` |
# | `to_vae(latents, shift, scale)` | the denoiser's latents | the VAE's latents, of the same shape |
#
# <details><summary>Hint 1: a nudge</summary>
#
# Does a large standard deviation need a large or a small factor? And `to_vae` must undo the last operation of
# `to_model` first.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# A sample is <code>mean + spread * draw</code>. Then <code>(latents - shift) * scale</code>, and back
# <code>latents / scale + shift</code>. Measured is 1 over <code>latents.std()</code>.
# </details>

# %% exercise="contract" provides=["measure", "to_model", "to_vae"] difficulty=2 minutes=5
def measure(latents):
    """The scale that brings these latents to a standard deviation of 1."""
    ### BEGIN SOLUTION
    return 1 / float(latents.std())
    ### END SOLUTION


def to_model(moments, draw, shift, scale):
    """The denoiser's latents, from an encoder's answer."""
    mean, logvar = moments.chunk(2, dim=1)
    spread = (0.5 * logvar).exp()
    ### BEGIN SOLUTION
    return (mean + spread * draw - shift) * scale
    ### END SOLUTION


def to_vae(latents, shift, scale):
    """The VAE's latents, from the denoiser's."""
    ### BEGIN SOLUTION
    return latents / scale + shift
    ### END SOLUTION

# %% check="contract" points=4
import torch
from inferlab.lab import Check, close, reference

check = Check("contract", points=4)

def said(seed, channels, batch=2):
    """An encoder's answer that a check makes up: (moments, mean, spread, draw)."""
    mean, logvar, draw = torch.randn(3, batch, channels, 6, 5, generator=torch.Generator().manual_seed(seed))
    mean, logvar = 3 * mean + 0.7, logvar - 2
    return torch.cat([mean, logvar], dim=1), mean, (0.5 * logvar).exp(), draw

with check.part("the mode, scaled, and back", weight=1):
    moments_said, mean_said, _, _ = said(1, 4)
    got = check.learner.to_model(moments_said, 0, 0.0, 0.5)
    check.tensor(got, shape=(2, 4, 6, 5))
    check.close(got, mean_said * 0.5, tol=1e-5)
    check.close(check.learner.to_vae(got, 0.0, 0.5), mean_said, tol=1e-5)
### HIDDEN TESTS
check.score()

# %% [markdown]
# ### Whose number is 0.18215?
#
# Your `measure`, on this VAE's latents of 16 other scenes; then the factors in the configs of this VAE and of
# others:

# %% tags=["demo"]
from inferlab.models.full_size import VAE, XL_VAE
from inferlab.models.full_transformers import FLUX_VAE

others = render(sample_scenes(16, torch.Generator().manual_seed(SEED + 1)), side).to(lab.device, vae.dtype)
many = torch.cat([vae.encode(part * 2 - 1).latent_dist.mode().float() for part in others.split(8)])
with when_written("measure"):
    print(f"standard deviation of these latents {many.std():.2f}; your scale {measure(many):.4f}")
for name, its in {"this config": vae.config, "SD 1.5": VAE, "SDXL": XL_VAE, "FLUX.1": FLUX_VAE}.items():
    print(f"{name:12} scaling_factor {its['scaling_factor']:.4f}   shift_factor {its.get('shift_factor')}")

# %% [markdown]
# Each VAE has its own factor, **measured** once on its latents; 0.18215 is Stable Diffusion 1.5's. The noise
# has a standard deviation of 1, and the noise levels of lab 01 are right only if the latents' standard
# deviation is 1, too. A wrong factor raises no error and changes no shape.

# %% [markdown]
# ### Does the VAE take noise out?
#
# Here you make the figure of section 1: noise is added to the denoiser's latents. For the second row the
# UNet is asked once, at this noise level, and its guess of the clean latents is decoded. The number under a
# picture is its PSNR in dB. (The cell is folded. Later cells use its `contract`, the shift and the scale of
# this VAE, and its `noise` and `text`.)

# %% tags=["demo"] jupyter={"source_hidden": true}
from inferlab.lab.kits.pipelines.picture_rows import picture_rows

table = pipe.scheduler.alphas_cumprod.to(lab.device)
contract = vae.config.shift_factor or 0, vae.config.scaling_factor
noise = torch.randn(means.shape, generator=torch.Generator().manual_seed(SEED)).to(means)
text, _ = pipe.encode_prompt(captions, lab.device, 1, do_classifier_free_guidance=False)


def ask_unet(noisy, sigma):
    """The UNet's guess of the clean latents in `clean + sigma * noise`."""
    row = int((((1 - table) / table).sqrt() - sigma).abs().argmin())
    answer = pipe.unet((table[row].sqrt() * noisy).to(vae.dtype), row, text[:1]).sample  # lab 01's mixture
    return noisy - sigma * answer


with when_written("to_model", "to_vae"):
    clean = to_model(moments.parameters, 0, *contract)[:1]
    sigmas = (0.1, 0.5, 1.0, 2.0)
    rows = {"VAE alone": [], "UNet, then VAE": []}
    for sigma in sigmas:
        noisy = clean + sigma * noise[:1]
        rows["VAE alone"].append(decode(to_vae(noisy, *contract)))
        rows["UNet, then VAE"].append(decode(to_vae(ask_unet(noisy, sigma), *contract)))
    display(picture_rows(
        {name: [shown(x[0]) for x in row] for name, row in rows.items()},
        [f"noise {sigma:g}" for sigma in sigmas],
        {name: [f"{psnr(x, original[:1]):.1f} dB" for x in row] for name, row in rows.items()},
        "The decoder draws the noise; the UNet predicts it"))

# %% [markdown]
# A little noise hardly changes the decoded picture. More noise is **drawn**, as blotches of color. The UNet
# predicts the noise, so one line of arithmetic removes most of it before decoding.

# %% [markdown]
# ### What tiling does to means
#
# Tiling decodes a picture in overlapping pieces, to save memory (lab 10). In the decoder, each `GroupNorm`
# subtracts a **mean**, taken over all places of its input. Here are our two scenes side by side, one light,
# one dark, decoded whole and in tiles of half the width:

# %% tags=["demo"]
wide = torch.cat([original[:1], original[1:]], dim=3)
together = torch.cat([means[:1], means[1:]], dim=3)
results = {"picture": wide, "whole": decode(together)}
vae.enable_tiling()
results["in tiles"] = decode(together)
vae.disable_tiling()
for name, found in results.items():
    left, right = (half.mean() for half in found.chunk(2, dim=3))
    print(f"{name:9} mean of the left half {left:+.3f}, of the right half {right:+.3f}")
filmstrip([shown(found[0]) for found in results.values()], [*results],
          "Each tile is normalized by its own mean", size=2.2)

# %% [markdown]
# Same shapes, other values. Decoded whole, both scenes share the means inside the decoder, and the halves
# come out closer to each other. In tiles, each tile has means of its own, and the halves stay further apart.
# (With another VAE the tiles may be farther from the picture. This one was trained on a tile's size.)

# %% [markdown]
# ### Exercise 3 · A colleague's inpainting
#
# *difficulty 3 of 3 · 8 minutes · 4 points*
#
# **Inpainting** repaints one part of a picture: where the mask is 1. A colleague builds it from
# text-to-image: after each step of the loop, this function puts back the part that must stay.

# %%
def colleague_step(stepped, latents, mask):
    """Latents after a step, with the part outside the mask put back; `latents` are the VAE encoder's."""
    small = torch.nn.functional.interpolate(mask, size=stepped.shape[-2:], mode="area")
    return small * stepped + (1 - small) * latents

# %% [markdown]
# The task: the shape in the first picture gets another color. The mask is a box around the shape. The next
# two cells, folded, set this up (`mask`; `start_noise`, which the loop begins with; `inpaint`, the loop with
# a rule after each step) and draw it, beside the library's own inpainting (`theirs`).

# %% jupyter={"source_hidden": true}
from dataclasses import replace

STEPS = 8
scene = scenes.scenes()[0]
color = "green" if scene.things[0].color != "green" else "pink"
wish = replace(scene, things=(replace(scene.things[0], color=color),)).caption
x, y, reach = (float(value[0, 0]) * side / 128 for value in (scenes.x, scenes.y, 1.3 * scenes.radius))
mask = torch.zeros(1, 1, side, side, device=lab.device, dtype=vae.dtype)
mask[..., max(0, int(y - reach)):int(y + reach), max(0, int(x - reach)):int(x + reach)] = 1
start_noise = torch.randn(1, *means.shape[1:], generator=torch.Generator().manual_seed(SEED + 3)).to(means)
print(scene.caption, "->", wish)


def inpaint(rule):
    """Text-to-image with `latents = rule(latents, before, after)` after each step, in [-1, 1]."""
    def change(pipeline, i, t, kept):
        levels = [*table[pipeline.scheduler.timesteps], table.new_tensor(1.0)]
        before, after = (level.to(kept["latents"].dtype) for level in levels[i:i + 2])
        return {"latents": rule(kept["latents"], before, after)}
    return 2 * pipe(wish, latents=start_noise, num_inference_steps=STEPS, guidance_scale=4.0,
                    callback_on_step_end=change, output_type="pt").images - 1

# %% tags=["demo"] jupyter={"source_hidden": true}
library = StableDiffusionInpaintPipeline(**pipe.components, requires_safety_checker=False)
library.set_progress_bar_config(disable=True)
theirs = 2 * library(wish, image=pictures[:1], mask_image=mask, latents=start_noise,
                     num_inference_steps=STEPS, guidance_scale=4.0,
                     generator=torch.Generator(lab.device).manual_seed(SEED),
                     output_type="pt").images - 1
his = inpaint(lambda stepped, before, after: colleague_step(stepped, means[:1], mask))
filmstrip([shown(x[0]) for x in (original[:1], mask.expand(-1, 3, -1, -1) * 2 - 1, theirs, his)],
          ["picture", "mask", "the library", "the colleague"], "One of them broke the contract")

# %% [markdown]
# "I see," says the colleague. "I forgot the scale." With the scale, the picture looks right again, but it is
# still not the library's. Two faults are left. `mode="area"` takes the mean of 8x8 values of the mask, so
# places at its edge are half repainted. `latent_mask` repairs this as the library does it: it takes the
# **first** value (top left) of each place. And the colleague still puts back clean latents; the loop's are
# noisy.
#
# Finish `after_step`. It returns the loop's latents after the step, `(B, C, h, w)`; you write what is `kept`
# of the picture.
#
# | argument | meaning |
# |---|---|
# | `stepped` | latents that `scheduler.step` returned |
# | `clean`, `noise` | the picture's latents **at the denoiser's scale**, and the noise that the loop began with |
# | `small` | what `latent_mask` returned; 1 is repainted |
# | `before`, `after` | $\bar\alpha$ of lab 01 before and after the step: 1 means clean, as after the last step |
#
# <details><summary>Hint 1: a nudge</summary>
#
# Inside and outside the mask, the UNet must see the same noise level in the next pass. Which of the two is
# it, and which sum of lab 01 makes it?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# What is kept is <code>after.sqrt() * clean + (1 - after).sqrt() * noise</code>.
# </details>

# %%
def latent_mask(mask):
    """The mask at latent size, (B, 1, H / 8, W / 8): 1 where a place is repainted."""
    return mask[:, :, ::8, ::8]


# %% exercise="inpainting" provides=["after_step"] difficulty=3 minutes=8
def after_step(stepped, clean, noise, small, before, after):
    """Latents after a step, with the part outside the mask put back."""
    ### BEGIN SOLUTION
    kept = after.sqrt() * clean + (1 - after).sqrt() * noise
    ### END SOLUTION
    return small * stepped + (1 - small) * kept

# %% check="inpainting" points=4
import torch
from inferlab.lab import Check, close, reference

check = Check("inpainting", points=4)
box = torch.zeros(1, 1, 32, 48)
box[..., 8:24, 16:] = 1
with check.part("inside the mask the step's latents are left alone", weight=1):
    step_gave, put_away, drawn = torch.randn(3, 1, 4, 4, 6, generator=torch.Generator().manual_seed(1))
    small_box, levels_of = torch.nn.functional.avg_pool2d(box, 8), torch.tensor([0.3, 0.5])
    got = check.learner.after_step(step_gave, put_away, drawn, small_box, *levels_of)
    check.tensor(got, shape=(1, 4, 4, 6))
    check.close(got * small_box, step_gave * small_box, tol=1e-5)
### HIDDEN TESTS
check.score()

# %% tags=["demo"]
with when_written("to_model", "after_step"):
    draw = torch.randn(moments.mean.shape, generator=torch.Generator(lab.device).manual_seed(SEED),
                       device=lab.device, dtype=vae.dtype)[:1]
    clean = to_model(moments.parameters[:1], draw, *contract)
    small = latent_mask(mask)
    yours = inpaint(lambda stepped, *levels: after_step(stepped, clean, start_noise, small, *levels))
    print(f"largest difference from the library's picture: {(yours - theirs).abs().max():.1e}")
    outside = mask.expand(-1, 3, -1, -1) == 0
    print("outside of the mask, yours against the picture: "
          f"{psnr(yours[outside], original[:1][outside]):.1f} dB")

# %% [markdown]
# It is the library's picture, apart from rounding. And inpainting keeps **latents**, not pixels: even a right
# answer changes the pixels outside the mask.

# %% [markdown]
# ## 6 · Explain
#
# Say what you saw in **your runs**, in short sentences, one a line, from the tables below: an entry of `who`,
# a verb, and an entry of its row. Lines that begin with `#` are notes.

# %% jupyter={"source_hidden": true}
### FIXTURE words
words

# %% [markdown]
# *difficulty 1 of 3 · 4 minutes · 3 points.* The cell shows how it reads each line, and that reading is
# graded when you hand in. One false sentence costs its field's point. A line that the cell cannot read is
# graded by a person. In `tiling`, `the shape` is that of the decoded tensor.

# %% explain="latents-in-words" difficulty=1 minutes=4
%%explain latents-in-words
# ### BEGIN SOLUTION
# latents: a place stands for a patch of 8x8 pixels
#   a channel is a learned number
# noise: the UNet takes out the noise
#   the VAE draws the noise
# tiling: a tile takes its means over the tile alone
# ### END SOLUTION

# %% check="words-latents" of="latents-in-words" points=1
from inferlab.lab import Check

check = Check("words-latents", points=1)
with check.part("`latents:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("latents-in-words").get("latents"), "`latents:` is empty")
### HIDDEN TESTS
check.score()

# %% check="words-noise" of="latents-in-words" points=1
from inferlab.lab import Check

check = Check("words-noise", points=1)
with check.part("`noise:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("latents-in-words").get("noise"), "`noise:` is empty")
### HIDDEN TESTS
check.score()

# %% check="words-tiling" of="latents-in-words" points=1
from inferlab.lab import Check

check = Check("words-tiling", points=1)
with check.part("`tiling:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("latents-in-words").get("tiling"), "`tiling:` is empty")
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7 · Notice
#
# * **Latents are no small pictures.** Their places are the picture's places, so a mask can be made smaller
#   and laid over them. Their channels are learned descriptions of 8x8 pixels.
# * **The scale is no universal number.** It is 1 over the standard deviation of one VAE's latents. Take scale
#   and shift from the config of the VAE that you use.
# * **The encoder answers with a distribution.** Its mode is always the same; pipelines draw a sample.
# * **The VAE does not denoise.** A little noise hardly shows in its picture; more appears as blotches.
# * **Tiling keeps every shape and changes values,** because each tile is normalized by its own mean.

# %% [markdown]
# Flashcards on diffusion, for now or for another day. Some belong to other labs:

# %% tags=["demo"]
from inferlab.lab.cards import show_cards

show_cards("diffusion")

# %% [markdown]
# ## 8 · Further
#
# **Optional: 10 minutes; nothing graded needs it.** If your time is up, go on to section 9. Here are latents
# edited like a picture, a wrong scale, and a mode beside a sample.

# %% [markdown]
# ### Latents edited like a picture
#
# The cell edits the latents, decodes them, and compares the result with the edited picture. The second column
# is the best that this VAE can do: the edited picture, encoded and decoded. Which edits will work?

# %% tags=["demo"]
def places_right(x, places=1):
    """Moved to the right by so many places, or by 8 pixels for each; what leaves comes in at the left."""
    return x.roll(places * (8 if x.shape[1] == 3 else 1), dims=-1)


EDITS = {
    "none": lambda x: x,
    "one place right": places_right,
    "upside down": lambda x: x.flip(-2),
    "rows as columns": lambda x: x.transpose(-1, -2),
}
edited = {name: decode(edit(means[:1])) for name, edit in EDITS.items()}
for name, edit in EDITS.items():
    wanted = edit(original[:1])
    best = decode(vae.encode(wanted).latent_dist.mode())
    print(f"{name:16} latents edited {psnr(edited[name], wanted):5.1f} dB   "
          f"picture edited {psnr(best, wanted):5.1f} dB")
filmstrip([shown(x[0]) for x in edited.values()], [*edited], "Latents, edited like a picture and decoded")

# %% [markdown]
# A move by whole places works: a place means the same wherever it is. The other edits lose about ten
# decibels. A place describes 8x8 pixels, also the direction of an edge in them. If you mirror the places,
# each of them still describes its old edge.

# %% [markdown]
# ### A wrong scale
#
# Two tests: a round trip (encode, then decode), and the UNet's loss when it predicts the noise at `t = 300`.

# %% tags=["demo"]
levels = torch.tensor([300] * len(captions), device=lab.device)
with when_written("to_model", "to_vae"):
    for scale in (vae.config.scaling_factor, 0.18215, 0.5):
        latents = to_model(moments.parameters, 0, contract[0], scale)
        back = decode(to_vae(latents, contract[0], scale))
        answer = pipe.unet(pipe.scheduler.add_noise(latents, noise, levels), levels, text).sample
        loss = float((answer - noise).float().square().mean())
        print(f"scale {scale:.5f}   round trip {psnr(back, original):.1f} dB   loss of the UNet {loss:.4f}")

# %% [markdown]
# **The round trip does not show it**: it divides by the factor that it has multiplied with. Only the
# denoiser, trained with one scale, gets latents that are too small or too large. No shape changes, and no
# error is raised.

# %% [markdown]
# ### Mode or sample
#
# The same picture, encoded twice:

# %% tags=["demo"]
first, second = (moments.sample(torch.Generator(lab.device).manual_seed(SEED + i)) for i in (1, 2))
print(f"the encoder's spread is {moments.std.mean():.3f} on average; its means spread by {means.std():.2f}")
print("two modes are equal:", torch.equal(means, vae.encode(original).latent_dist.mode()))
print(f"two samples are up to {(first - second).abs().max():.2f} apart")
print(f"round trip of the mode {psnr(decode(means), original):.1f} dB, "
      f"of a sample {psnr(decode(first), original):.1f} dB")

# %% [markdown]
# Image-to-image draws a sample. Here this loses no quality: the decoder was trained on samples, so noise as
# small as the encoder's spread hardly changes the picture. Take the mode when two runs must be comparable
# without a generator.

# %% [markdown]
# ## 9 · Check and hand in
#
# Run this cell last. It runs the visible checks again, says what is missing, and leaves one file to hand in.

# %% tags=["demo"]
from inferlab.lab import submit

submit()
