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
# # Lab 11 · The whole trace
#
# "It is a Stable Diffusion model" names a family. It does not say which files were read, which component made
# the pixels, or why yesterday's run looked different. In this lab you follow one picture from
# `model_index.json` to its pixels, compare two traces, and find a fault in a pipeline that raises no error.
#
# **Time** 65 to 75 minutes · **Points** 18, of which 2 are practice (exercise 1) · **Reading**
# [The whole trace](../../handbook/lab11-end-to-end-trace.md) in the handbook, before you start

# %% tags=["parameters"]
LEARNER = ""  # your name or id, as your course knows you
MODEL = "bundled"  # "bundled" | "full" | "hub"
DEVICE = "auto"  # "auto" | "cpu" | "cuda"
SEED = 7

# %%
from inferlab.lab import start

lab = start("lab11-end-to-end-trace", LEARNER, MODEL, DEVICE, SEED)

# %%
from time import perf_counter

import torch
from diffusers import DDIMScheduler, StableDiffusionPipeline
from inferlab.models import load_pipeline
from inferlab.trace import trace

torch.set_grad_enabled(False)
began = perf_counter()
pipe = load_pipeline(MODEL, lab.device)
load_seconds = perf_counter() - began
pipe.set_progress_bar_config(disable=True)
PROMPT = "a large blue ring left of a small yellow square"
print(f"loaded in {load_seconds:.1f} s")

# %% [markdown]
# ## 1 · Goal and mental model
#
# After this lab you can say, for any line of a trace, which stage it belongs to, which component owns it, and
# what it gives to the next line.
#
# | stage | what happens | who does it | result |
# |---|---|---|---|
# | **load** | `model_index.json` names classes; each class reads its folder | `from_pretrained` | components, some with weights and some without |
# | **prepare** | text becomes embeddings, noise becomes latents, the timesteps are set | tokenizer, text encoder, scheduler | embeddings, latents, `timesteps` |
# | **loop** | predict, guide, update, once for every timestep | UNet and scheduler | the last latents |
# | **decode** | latents become pixels, pixels become a file | VAE, image processor | the picture |
#
# The names of the stages are ours, not the library's. Other model families have other components in them (a
# transformer instead of the UNet, two text encoders), and classes and config entries depend on the installed
# version.
#
# The picture depends on all components. Here are three pictures with the same UNet: as loaded, with a wrong
# scheduler setting, and without the division before the VAE:

# %% tags=["demo"]
from inferlab.lab import filmstrip


def drawn(latents):
    """What the pipeline does after its loop, without the division by the VAE's scaling factor."""
    return pipe.image_processor.postprocess(pipe.vae.decode(latents).sample)[0]


settings = {"num_inference_steps": 6, "guidance_scale": 4.0, "output_type": "latent"}
own, divide = pipe.scheduler, pipe.vae.config.scaling_factor
right = pipe(PROMPT, **settings, generator=torch.Generator().manual_seed(SEED)).images
pipe.scheduler = DDIMScheduler.from_config(own.config, prediction_type="v_prediction")
misled = pipe(PROMPT, **settings, generator=torch.Generator().manual_seed(SEED)).images
pipe.scheduler = own
filmstrip([drawn(right / divide), drawn(misled / divide), drawn(right)],
          ["as loaded", "wrong prediction type", "not divided"],
          title="One family, one UNet, three pictures", size=2)

# %% [markdown]
# Nothing raised an error. The name of the model family does not tell these three pictures apart.

# %% [markdown]
# ![A graph of components. Tokenizer and text encoder hand over twice; scheduler, UNet and guidance form a
# circle of thick arrows; one thin arrow leads from the scheduler to the VAE and on to the image
# processor.](../../handbook/figures/lab11-components.svg)
#
# *From the handbook.* Each arrow leads from the component that gave data to the one that got it, with the
# shape of the data, in a run with guidance. Thick arrows were used more than once.

# %% [markdown]
# ## 2 · Predict
#
# ### What the first file names
#
# `from_pretrained` reads this file first. The next cell prints each entry, and the component that was built
# for it:

# %%
import json

from inferlab.models.pictures import WEIGHTS

index = json.loads((WEIGHTS / "model_index.json").read_text())
for name, entry in index.items():
    part = pipe.components.get(name)
    weights = sum(p.numel() for p in part.parameters()) if isinstance(part, torch.nn.Module) else 0
    built = f"{type(part).__name__}, {weights / 1e6:.2f} M weights" if part is not None else "-"
    print(f"{name:24} {entry!s:44} {built}")

# %% [markdown]
# A pair of library and class is a component: it is **loaded** from the folder of that name, unless the caller
# hands it over (`from_pretrained(folder, vae=my_vae)`). A pair of nulls (`None` in Python) is a component
# that is left out on purpose. Other values are settings. The file has no shapes: they are in each folder's
# `config.json`.

# %% [markdown]
# ### Exercise 1 · In which order?
#
# *difficulty 1 of 3 · 5 minutes · 2 points*
#
# Below are the boundaries of a pipeline call, shuffled. `in_order(cards)` gets such boundaries as a list of
# tuples `(name, step)` (*cards*) and returns them in the order of the call. `step` counts from 1 inside the
# loop and is `None` outside it. Some cards may be missing: without guidance there is no `guidance`, and a run
# that returns latents does not decode. The function sorts by stage, by step, and by place in a list. You
# write the three lists: the names **before** the loop, **inside** it and **after** it, each in order.

# %%
cards = ["unet", "vae.decode", "scheduler.step", "encode_prompt", "guidance", "image_processor.postprocess",
         "scheduler.set_timesteps", "scheduler.scale_model_input", "prepare_latents"]
print(*cards, sep="\n")

# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# What does each boundary need from others? The latents need the embeddings' dtype and the scheduler's
# `init_noise_sigma`. (The text and the timesteps do not need each other: the text is first.) The UNet needs
# the scaled copy of the latents, guidance needs both of the UNet's answers, and the step needs one combined
# answer.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# Before the loop: prompt, timesteps, latents. Inside it: scaling, UNet, guidance, step. After it: decode,
# postprocess.
# </details>

# %% exercise="order" provides=["in_order"] difficulty=1 minutes=5
def in_order(cards):
    """The cards, each a tuple (name, step), in the order in which a pipeline call meets them."""
    ### BEGIN SOLUTION
    before = ["encode_prompt", "scheduler.set_timesteps", "prepare_latents"]
    inside = ["scheduler.scale_model_input", "unet", "guidance", "scheduler.step"]
    after = ["vae.decode", "image_processor.postprocess"]
    ### END SOLUTION
    place = {name: (stage, i) for stage, names in enumerate((before, inside, after))
             for i, name in enumerate(names)}
    return sorted((card for card in cards if card[0] in place),
                  key=lambda card: (place[card[0]][0], card[1] or 0, place[card[0]][1]))

# %% check="order" points=2
from inferlab.lab import Check, reference

check = Check("order", points=2)


def ordered(shuffled):
    """The learner's order, once it holds each card once."""
    got = check.learner.in_order(shuffled)
    check.true(isinstance(got, list) and all(isinstance(card, tuple) for card in got),
               "return a list of the tuples that you got")
    check.true(len(got) == len(shuffled),
               f"{len(shuffled)} cards went in and {len(got)} came out: scheduler, VAE and all "
               "belong to the run")
    check.true(set(got) == set(shuffled), "return the cards that you got, unchanged")
    return got


with check.part("one step of the loop", weight=1):
    check.equal(ordered([("unet", 1), ("scheduler.step", 1), ("scheduler.scale_model_input", 1)]),
                [("scheduler.scale_model_input", 1), ("unet", 1), ("scheduler.step", 1)])
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 3 · Trace
#
# Now the real run: four steps with guidance, traced from the call to the picture.

# %%
STEPS = 4
SIDE = pipe.unet.config.sample_size * pipe.vae_scale_factor


def traced(pipeline, **changes):
    """A traced run and its picture; `changes` are arguments of the pipeline's call."""
    settings = {"num_inference_steps": STEPS, "guidance_scale": 4.0, "height": SIDE, "width": SIDE} | changes
    with trace(pipeline) as t:
        image = pipeline(PROMPT, **settings, generator=torch.Generator().manual_seed(SEED)).images[0]
    return t, image


run, image = traced(pipe)

# %% tags=["demo"]
run.table(level=1)

# %% [markdown]
# Last, the picture goes into a file. A PNG is compressed without loss: read back, it gives the same bytes
# that `postprocess` made.

# %% tags=["demo"]
from pathlib import Path

from PIL import Image

image.save("lab11-picture.png")
again = Image.open("lab11-picture.png")
print(f"{again.size[0]}x{again.size[1]} {again.mode}: {len(image.tobytes()):,} bytes of pixels, "
      f"{Path('lab11-picture.png').stat().st_size:,} bytes "
      f"in the file; read back unchanged: {again.tobytes() == image.tobytes()}")
again

# %% [markdown]
# Read the table with the four stages in mind, and stop at three places:
#
# * **above the loop** everything happens once. The load is not in the table: it was over before the call
#   began;
# * **in the loop** four lines repeat: two of the scheduler, one of the UNet, and guidance. The UNet's line is
#   the expensive one, and the scheduler's `step` is the only one that changes the latents;
# * **the last lines**: at `vae.decode` four channels become three and the side grows eightfold. Every pixel
#   of the picture comes from that line.

# %% tags=["demo"]
from inferlab.lab.kits.pipelines.stages import component_graph, stage_timeline

component_graph(run.rows(), title="UNet and scheduler exchange data in each step; the VAE gets data once")

# %% [markdown]
# The graph is drawn from your trace. An arrow leads from the component that gave data to the one that got it;
# the label is the shape and how often. Orange arrows (thick in section 1's figure) were used more than once.
# (`guidance` is inline code between the UNet and the scheduler, so the trace infers it.)
#
# **Reconcile.** Your order beside the run's:

# %% tags=["demo"]
import random

from inferlab.lab import when_written

with when_written("in_order"):
    known = {name for name in cards}
    truth = [(row["name"], row["step"]) for row in run.rows() if row["level"] == 1 and row["name"] in known]
    mine = in_order(random.Random(SEED).sample(truth, len(truth)))
    print("the run's own order:", mine == truth)
    for own, real in zip(mine[:8], truth):
        print(f"{own[0]:30} {real[0]:30}", "" if own == real else "   <- here")

# %% [markdown]
# How do the stages share the time? (Shown, never graded: it depends on the machine.) The second bar is the
# same call with guidance off.

# %%
unguided, unguided_image = traced(pipe, guidance_scale=1.0)

# %% tags=["demo"]
stage_timeline({"guidance 4.0": run.rows(), "guidance off": unguided.rows()},
               title="Switching guidance off shortens one stage", load_ms=1e3 * load_seconds)

# %% [markdown]
# ## 4 · Read
#
# The body of the installed call. Find the stages prepare, loop and decode, and the inline lines that the
# trace can only infer.

# %% jupyter={"source_hidden": true}
from inferlab.lab import show_source

show_source(
    StableDiffusionPipeline.__call__,
    {
        "device = self._execution_device":
            "The device of the run. With offload, a component's weights are elsewhere until it runs.",
        "prompt_embeds, negative_prompt_embeds = self.encode_prompt(":
            "Prepare: one boundary in the table, and inside it the tokenizer and the text encoder, "
            "twice with guidance.",
        "prompt_embeds = torch.cat([negative_prompt_embeds, prompt_embeds])":
            "Inline: the text's batch axis doubles here, outside any boundary. You see it at the inputs of "
            "the UNet.",
        "self.scheduler, num_inference_steps, timestep_device, timesteps, sigmas":
            "The scheduler sets the timesteps. The loop's length is decided here, not by the UNet.",
        "prompt_embeds.dtype,":
            "The latents take their dtype from the embeddings, so a wrong dtype is passed on.",
        "for i, t in enumerate(timesteps):": "The loop.",
        "latent_model_input = torch.cat([latents] * 2)":
            "Inline again: the batch of 2 that the UNet's line shows.",
        "noise_pred = noise_pred_uncond + self.guidance_scale":
            "The trace infers this line: the UNet returns a batch of 2, the step gets a batch of 1.",
        "latents = self.scheduler.step(": "The only line of the loop that moves the state.",
        "image = self.vae.decode(latents / self.vae.config.scaling_factor":
            "Decode: the first pixels. The factor is this VAE's; without the division you get the third "
            "picture of section 1.",
        "image = self.image_processor.postprocess(image":
            "From [-1, 1] on the device to 8-bit pixels on the host: shape, dtype and device change at once.",
    },
    excerpts=[
        ("device = self._execution_device", "device = self._execution_device"),
        ("prompt_embeds, negative_prompt_embeds = self.encode_prompt(",
         "negative_prompt_embeds=negative_prompt_embeds,"),
        ("prompt_embeds = torch.cat([negative_prompt_embeds, prompt_embeds])",
         "prompt_embeds = torch.cat([negative_prompt_embeds, prompt_embeds])"),
        ("timesteps, num_inference_steps = retrieve_timesteps(", "prompt_embeds.dtype,"),
        ("for i, t in enumerate(timesteps):", "latents = self.scheduler.step("),
        ("image = self.vae.decode(latents / self.vae.config.scaling_factor",
         "image, has_nsfw_concept = self.run_safety_checker("),
        ("image = self.image_processor.postprocess(image", "image = self.image_processor.postprocess(image"),
    ],
    checked="0.42.1",
)

# %% [markdown]
# ## 5 · Build
#
# ### Exercise 2 · Where does it change?
#
# *difficulty 2 of 3 · 8 minutes · 4 points*
#
# In most faults of a pipeline, a component gets a tensor that it does not expect. To find the place, follow
# the **first** tensor of each boundary's inputs and outputs through the rows of a trace. The next cell finds
# it: in a row, `"inputs"` and `"outputs"` are nested, and a tensor in them is a `dict` with the keys
# `"shape"`, `"dtype"` and `"device"`.

# %%
def first_tensor(tree):
    """The first tensor in nested dicts, lists and tuples, or None if there is none."""
    if isinstance(tree, dict):
        if set(tree) == {"shape", "dtype", "device"}:
            return tree
        tree = list(tree.values())
    if isinstance(tree, (list, tuple)):
        return next((found for found in map(first_tensor, tree) if found), None)
    return None


print(first_tensor(run.rows()[-1]["inputs"]))

# %% [markdown]
# Complete `changes(rows)`. Skip a side without tensors (`found` is `None`). Compare each tensor with the
# **last tensor found so far**, in this row or an earlier one. For each field that differs, in the order
# shape, dtype, device, add the tuple
#
#     (row["name"], row["step"], side, field, before, after)
#
# to `told`. At `"outputs"`, the boundary itself changed the tensor or made a new one. A change at `"inputs"`
# happened *between* two boundaries, in inline code.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Which tensor is compared with the first one of a row's inputs? When does <code>seen</code> get a new value,
# and when must it keep the old one?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# If <code>found</code> is <code>None</code>: <code>continue</code>. If there is a <code>seen</code>, compare
# <code>seen[field]</code> with <code>found[field]</code> for the three fields. At the end,
# <code>seen = found</code>.
# </details>

# %% exercise="changes" provides=["changes"] difficulty=2 minutes=8
def changes(rows):
    """Every change of shape, dtype or device along the first tensors of a trace's rows."""
    seen, told = None, []  # the last tensor found so far, and the report
    for row in rows:
        for side in ("inputs", "outputs"):
            found = first_tensor(row[side])
            ### BEGIN SOLUTION
            if found is None:
                continue
            for field in ("shape", "dtype", "device"):
                if seen is not None and seen[field] != found[field]:
                    told.append((row["name"], row["step"], side, field, seen[field], found[field]))
            seen = found
            ### END SOLUTION
    return told

# %% check="changes" points=4
from inferlab.lab import Check, reference

check = Check("changes", points=4)


def spec(*shape, dtype="float32", device="cpu"):
    return {"shape": shape, "dtype": dtype, "device": device}


def row(name, inputs, outputs, step=None):
    return {"name": name, "step": step, "inputs": inputs, "outputs": outputs}


def told(rows):
    """The learner's report of these rows, once it has the form that the contract asks for."""
    got = check.learner.changes(rows)
    check.true(isinstance(got, list) and all(isinstance(line, tuple) and len(line) == 6 for line in got),
               "return a list of tuples (name, step, side, field, before, after)")
    return got


with check.part("a decoder changes the shape", weight=1):
    decode = [row("step", {"sample": spec(1, 4, 8, 8)}, spec(1, 4, 8, 8), 1),
              row("decode", {"z": spec(1, 4, 8, 8)}, spec(1, 3, 64, 64))]
    check.equal(told(decode), [("decode", None, "outputs", "shape", (1, 4, 8, 8), (1, 3, 64, 64))])
### HIDDEN TESTS
check.score()

# %% [markdown]
# On your own run, the changes at `inputs` come from the lines that section 4 calls inline.

# %% tags=["demo"]
with when_written("changes"):
    for name, step, side, field, before, after in changes([row for row in run.rows() if row["level"] == 1]):
        print(f"{name:28} {'' if step is None else step!s:2} {side:8} {field:7} {before} -> {after}")

# %% [markdown]
# ### Exercise 3 · Which switch did this?
#
# *difficulty 2 of 3 · 12 minutes · 4 points*
#
# `a.diff(b)` lists the differences between two traces. We change three switches, one at a time, to see what
# each of them does. (A fourth, the picture's size, is not run here.) First **guidance**, on and off:

# %%
run.diff(unguided, slower=float("inf"))  # times differ from run to run: leave them out

# %% [markdown]
# Then **dtype**: the same weights in `bfloat16`. (This comparison always runs on the CPU.)

# %%
half = load_pipeline("bundled", "cpu", torch.bfloat16)
full_precision = pipe if MODEL == "bundled" and str(lab.device) == "cpu" else load_pipeline("bundled", "cpu")
for pipeline in (half, full_precision):
    pipeline.set_progress_bar_config(disable=True)
healthy, healthy_image = (run, image) if full_precision is pipe else traced(full_precision, height=128,
                                                                            width=128)
in_half, half_image = traced(half, height=128, width=128)
healthy.diff(in_half, slower=float("inf"))

# %% tags=["demo"]
import numpy as np

gap = np.abs(np.asarray(healthy_image, dtype=int) - np.asarray(half_image, dtype=int))
print(f"pixels differ by {gap.mean():.2f} of 255 on average, by {gap.max()} at most")
filmstrip([image, unguided_image, healthy_image, half_image],
          ["guidance 4.0", "guidance off", "float32", "bfloat16"],
          title="Guidance decides what is drawn; rounding to bfloat16 can shift the colors", size=2)

# %% [markdown]
# The last two pictures have the same weights, prompt and noise. Only rounding differs: a `bfloat16` number
# has 8 significant bits.
#
# Third **offload**: `enable_model_cpu_offload` keeps the components on the host and moves each to the
# accelerator before it runs. On a GPU the next cell shows its diff. Without one, it shows the library's
# error, and then the diff of accelerate's hook on one component.

# %% tags=["demo"]
from accelerate import cpu_offload
from accelerate.hooks import remove_hook_from_module

try:
    pipe.enable_model_cpu_offload()
except (RuntimeError, ValueError, ImportError) as refused:
    print("no offload here:", refused)
    # accelerate's hook runs anywhere. Without an accelerator both devices are the CPU, but its calls are in
    # the trace.
    cpu_offload(pipe.unet, execution_device=torch.device("cpu"),
                preload_module_classes=[type(pipe.unet).__name__])
    wrapped, _ = traced(pipe)
    remove_hook_from_module(pipe.unet, recurse=True)
    display(run.diff(wrapped, slower=float("inf")))
else:
    offloaded, _ = traced(pipe)
    pipe.remove_all_hooks()
    pipe.to(lab.device)
    display(run.diff(offloaded, slower=float("inf")))

# %% [markdown]
# A trace also shows hooks, which the pipeline's source does not mention: the call `pipe(...)` is the same
# with and without offload. In a diff, offload appears as boundaries that move weights: the hooks of
# `accelerate` (`unet.pre_forward`, ...), and what they call (`unet.to`, ...). If a tensor's device differs,
# the row's kind is `"device"`; you see such rows on a GPU only. Shapes, dtypes and the number of UNet calls
# stay the same.
#
# Complete `causes(change)`. It gets one row of `a.diff(b).rows()` and returns the `set` of the switches that
# explain it: `"guidance"`, `"dtype"`, `"offload"`, `"size"` (another height or width of the picture). All
# four may have changed at once, and one row may need two of them. For a row of the kind `"slower"`, return an
# empty set: it proves nothing.
#
# | key of `change` | meaning |
# |---|---|
# | `"kind"` | `"appeared"`, `"vanished"`, `"calls"`, `"device"`, `"dtype"`, `"shape"`, `"value"`, `"slower"` |
# | `"name"`, `"where"` | the boundary, and which of its inputs or outputs (`"inputs.sample"`) |
# | `"before"`, `"after"` | the two values: shapes are tuples |
#
# Two tests are given: `moved`, whether the boundary moves weights, and the rows about the picture's own size
# (`.height`, `.width`, the image). The number of prompts and of steps is the same in both runs.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Which axis of a shape does guidance change, and which axes does size change? A shape can have both causes.
# A <code>value</code> row can also be about a dtype.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# In this order: <code>"slower"</code>: the empty set. The kind <code>"dtype"</code>, or a <code>where</code>
# that ends with <code>.dtype</code>: dtype. The kind <code>"device"</code>, or <code>moved</code>: offload. A
# shape: guidance if axis 0 differs, size if a later axis differs, perhaps both. Everything else: guidance.
# </details>

# %% exercise="causes" provides=["causes"] difficulty=2 minutes=12
def causes(change):
    """The set of switches (guidance, dtype, offload, size) that explain one row of a diff."""
    kind, where, before, after = change["kind"], change["where"], change["before"], change["after"]
    moved = change["name"].rpartition(".")[2] in (
        "pre_forward", "post_forward", "to", "maybe_free_model_hooks", "enable_model_cpu_offload")
    if (kind == "shape" and not isinstance(before, tuple)) or where.endswith((".height", ".width")):
        return {"size"}  # the picture's own size: the shape of an image is a string
    ### BEGIN SOLUTION
    if kind == "slower":
        return set()
    if kind == "dtype" or where.endswith(".dtype"):
        return {"dtype"}
    if kind == "device" or moved:
        return {"offload"}
    if kind == "shape":
        found = {"guidance"} if before[0] != after[0] else set()
        return found | ({"size"} if before[1:] != after[1:] else set())
    return {"guidance"}
    ### END SOLUTION

# %% check="causes" points=4
from inferlab.lab import Check, reference

check = Check("causes", points=4)
KNOWN = {"guidance", "dtype", "offload", "size"}


def ask_causes(kind, name, where="", before=None, after=None):
    """The learner's causes of one row, once they are a set of known switches."""
    got = check.learner.causes({"kind": kind, "name": name, "where": where, "before": before, "after": after,
                                "steps": []})
    check.true(isinstance(got, set), "return a set, such as {'size'}")
    check.true(got <= KNOWN, f"the switches are called {', '.join(sorted(KNOWN))}")
    return got


with check.part("a boundary's tensor in another dtype", weight=1):
    check.equal(ask_causes("dtype", "unet", "inputs.sample", "float32", "float16"), {"dtype"})
### HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 4 · A pipeline that is broken and says nothing
#
# *difficulty 3 of 3 · 10 minutes · 4 points*
#
# You get a pipeline with one damaged component. It runs, raises no error, and returns a picture. Which
# component is damaged depends on your `LEARNER`. Both runs below use the bundled model on the CPU, with the
# same prompt and noise.

# %%
from inferlab.lab.kits.pipelines.damage import damaged

suspect = damaged(full_precision, lab.variant(9))
sick, sick_image = traced(suspect, height=128, width=128)

# %% tags=["demo"]
filmstrip([healthy_image, sick_image], ["healthy", "suspect"], size=2)

# %% tags=["demo"]
healthy.diff(sick, slower=float("inf"))

# %% [markdown]
# The diff may have one line or thirty. Most lines are consequences, and the first line need not be the cause.
# The cause is the first boundary **in the run** whose output is wrong (for `"loop"`: the boundary that
# decides the number of passes). If boundaries are nested, it is the innermost one: a method is not at fault
# for a wrong result of a part that it calls. Look at `sick.tree()` and `sick.rows()` as well; the picture
# alone proves nothing.
#
# Complete `diagnose()`, which returns a `dict`:
#
# | key | meaning |
# |---|---|
# | `"kind"` | `"dtype"`, `"shape"`, or `"loop"` when the number of passes is wrong |
# | `"boundary"` | the name of the boundary where the fault begins |
# | `"broken"` | the evidence, from the suspect's trace: the dtype's name, the shape of the boundary's first output tensor (a tuple), or the number of passes |
#
# You may compute it, or write down what you found.
#
# <details><summary>Hint 1: a nudge</summary>
#
# For a wrong number of passes: which boundary decides how often the UNet runs? For the other two kinds: go
# through both traces side by side and skip the boundaries that have others inside (their <code>index</code>
# is some row's <code>parent</code>).
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# If the two numbers of <code>passes</code> differ, it is the loop, and the boundary is the call that sets the
# timesteps. Otherwise, zip the rows, leave out those whose <code>index</code> is in <code>parents</code>,
# take the <code>first_tensor</code> of each one's outputs, and stop where the dtype or the shape differs.
# </details>

# %% exercise="diagnosis" provides=["diagnose"] difficulty=3 minutes=10
def diagnose():
    """Kind of fault, boundary where it begins, and the value that proves it."""
    good, bad = healthy.rows(), sick.rows()
    passes = [sum(row["name"] == "unet" for row in rows) for rows in (good, bad)]
    parents = {row["parent"] for row in good}  # the indices of boundaries that have others inside
    ### BEGIN SOLUTION
    if passes[0] != passes[1]:
        return {"kind": "loop", "boundary": "scheduler.set_timesteps", "broken": passes[1]}
    for one, other in zip(good, bad):
        a, b = first_tensor(one["outputs"]), first_tensor(other["outputs"])
        for kind in ("dtype", "shape"):
            if one["index"] not in parents and a and a[kind] != b[kind]:
                return {"kind": kind, "boundary": one["name"], "broken": b[kind]}
    ### END SOLUTION

# %% check="diagnosis" points=4
from inferlab.lab import Check

check = Check("diagnosis", points=4)


def diagnosis():
    """The learner's diagnosis, once it has the keys that the contract asks for."""
    got = check.learner.diagnose()
    check.true(isinstance(got, dict) and set(got) == {"kind", "boundary", "broken"},
               "return a dict with the keys kind, boundary and broken")
    check.true(got["kind"] in ("dtype", "shape", "loop"), "the kind is dtype, shape or loop")
    check.true(isinstance(got["boundary"], str), "the boundary is a name, such as 'scheduler.step'")
    return got


with check.part("the diagnosis has its three keys (what they say is graded when you hand it in)", weight=0):
    diagnosis()
### HIDDEN TESTS
check.score()

# %% [markdown]
# Some of these pictures look healthy. If a text encoder's output is rounded to 16 bits and then converted
# back, every boundary but one shows `float32`, and the picture does not show the fault. The trace does.

# %% [markdown]
# ## 6 · Explain
#
# *difficulty 2 of 3 · 10 minutes · 4 points: 1 for the typed line, 3 for the sentences*
#
# A colleague explains your picture with "that was Stable Diffusion". Give a better explanation of the run
# that you traced in section 3: four steps, guidance 4.0. In the fields `state`, `axis` and `trade-off` you
# write short sentences, one a line, from the tables below: an entry of `who`, a verb, an entry of its row
# and, if you like, entries of the row `may follow`. So `the text encoder encodes the text` is a sentence. In
# the field `length` you type the boundary that decided how often the UNet runs.
#
# Lines that begin with `#` are your own notes.

# %% jupyter={"source_hidden": true}
### FIXTURE words
words

# %% [markdown]
# When you run the next cell, it shows how it reads each line. That reading is graded when you hand in.
# One false sentence in a field costs the field's point, so write only what you know. A line that the cell
# cannot read is judged by a person.

# %% explain="whole-run" difficulty=2 minutes=10
%%explain whole-run
# ### BEGIN SOLUTION
# state: the scheduler updates the latents from the predicted noise in each step
#   the VAE decodes the latents once after the loop
# axis: the channel axis goes from 4 to 3, height and width go from 16 to 128
# trade-off: guidance raises the match with the prompt and the batch of the UNet
# length: scheduler.set_timesteps
# ### END SOLUTION

# %% check="whole-run-state" of="whole-run" points=1
from inferlab.lab import Check

check = Check("whole-run-state", points=1)
with check.part("`state:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("whole-run").get("state"), "`state:` is empty")
### HIDDEN TESTS
check.score()

# %% check="whole-run-axis" of="whole-run" points=1
from inferlab.lab import Check, reference

check = Check("whole-run-axis", points=1)
with check.part("`axis:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("whole-run").get("axis"), "`axis:` is empty")
### HIDDEN TESTS
check.score()

# %% check="whole-run-trade-off" of="whole-run" points=1
from inferlab.lab import Check

check = Check("whole-run-trade-off", points=1)
with check.part("`trade-off:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("whole-run").get("trade-off"), "`trade-off:` is empty")
### HIDDEN TESTS
check.score()

# %% check="whole-run-length" of="whole-run" points=1
from inferlab.lab import Check

check = Check("whole-run-length", points=1)
with check.part("`length:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("whole-run").get("length"), "`length:` is empty")
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7 · Notice
#
# * **The name of a family is no explanation.** "Stable Diffusion" is true of every picture in this lab, also
#   of the broken ones. A trace says which component did what to which tensor.
# * **Scheduler and VAE are half of the system.** The scheduler decides how often the UNet runs and what its
#   answer means; the VAE makes every pixel. Section 1 showed how each can spoil a picture, with the same
#   UNet.
# * **`model_index.json` only names classes.** Shapes come from each component's config, values from the
#   weights.
# * **The effect of inline code is seen at the next boundary.** No hook can see the line that makes the batch
#   of 2, so look at inputs as well as outputs.
# * **A diff lists consequences.** The cause is the first, innermost boundary of the run with a wrong output.
# * **Time alone proves nothing.** A run can be slower for many reasons; shapes, dtypes, counts and order do
#   not depend on the machine's speed.
#
# Say it out loud, as in an interview: which object is the state, which axes change, and what is the
# trade-off? Names of classes, config entries and hooks depend on the version; section 4 tells you when yours
# differs.

# %% [markdown]
# ## 8 · Check and hand in
#
# Run this cell last. It runs the visible checks again, says what is missing, and leaves one file to hand in.

# %% tags=["demo"]
from inferlab.lab import submit

submit()
