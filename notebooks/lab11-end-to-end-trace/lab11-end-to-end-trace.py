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
# "It is a Stable Diffusion model" names a family. It does not say which files were read, where the picture came into being,
# or why yesterday's run looked different. In this lab you follow one picture from `model_index.json` to its pixels, learn to
# read two traces against each other, and find a fault in a pipeline that raises nothing.
#
# **Time** about 65 minutes · **Points** 22, of which 4 are practice · **Reading** [The whole trace](../../handbook/lab11-end-to-end-trace.md) in the handbook, before you start

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
# After this lab you can say, for any line of a trace, which stage it belongs to, who owns it, and what it leaves behind.
#
# | stage | what happens | who does it | what it leaves |
# |---|---|---|---|
# | **load** | `model_index.json` names classes, each reads its folder | `from_pretrained` | modules with weights, and helpers without |
# | **prepare** | text becomes embeddings, noise becomes latents, a schedule is laid out | tokenizer, text encoder, scheduler | conditions, latents, `timesteps` |
# | **loop** | predict, guide, update, once for every timestep | UNet and scheduler | the last latents |
# | **decode** | latents become pixels, pixels become a file | VAE, image processor | the picture |
#
# The stages are ours: nothing in the library is called prepare or loop, and another family has other components in them (a
# transformer for the UNet, two text encoders). Which classes and which entries there are depends on the installed version too.
#
# The picture depends on all four. The same UNet with another scheduler or another VAE is another system:

# %% tags=["demo"]
from inferlab.lab import filmstrip


def drawn(latents):
    """What the pipeline does after its loop, without the division that belongs to the VAE."""
    return pipe.image_processor.postprocess(pipe.vae.decode(latents).sample)[0]


settings = {"num_inference_steps": 6, "guidance_scale": 4.0, "output_type": "latent"}
own, divide = pipe.scheduler, pipe.vae.config.scaling_factor
right = pipe(PROMPT, **settings, generator=torch.Generator().manual_seed(SEED)).images
pipe.scheduler = DDIMScheduler.from_config(own.config, prediction_type="v_prediction")
misled = pipe(PROMPT, **settings, generator=torch.Generator().manual_seed(SEED)).images
pipe.scheduler = own
filmstrip([drawn(right / divide), drawn(misled / divide), drawn(right)], ["as loaded", "scheduler misled", "VAE misled"],
          title="One family, one UNet, three systems", size=2)

# %% [markdown]
# None of the three raised anything. Whoever explains a pipeline by the name of its UNet cannot tell them apart.

# %% [markdown]
# ## 2 · Predict
#
# ### Exercise 1 · What does this file load?
#
# *difficulty 1 of 3 · 5 minutes · 2 points*
#
# This is the first file that `from_pretrained` reads. It holds no weights and no shapes, only names:

# %%
import json

from inferlab.models.pictures import WEIGHTS

index = json.loads((WEIGHTS / "model_index.json").read_text())
index

# %% [markdown]
# Write `what_loads(index, passed=())`: a `dict` from each component that is **built from the folder** to the tuple
# `(library, class)`, both `str`. `index` is the parsed file. `passed` are the names that the caller hands over ready-made, as
# in `from_pretrained(folder, vae=my_vae)`; these are not built again. It is graded on files that this notebook does not have.
#
# <details><summary>Hint</summary>
#
# Three kinds of entries are no components: names that begin with an underscore, plain settings (not a pair), and places
# that are left empty on purpose (a pair of nulls).
# </details>

# %% exercise="loads" provides=["what_loads"] difficulty=1 minutes=5
def what_loads(index, passed=()):
    """Component name -> (library, class) of everything that from_pretrained builds from the folder."""
    ### BEGIN SOLUTION
    return {
        name: tuple(entry)
        for name, entry in index.items()
        if not name.startswith("_") and isinstance(entry, list) and entry[0] is not None and name not in passed
    }
    ### END SOLUTION

# %% check="loads" points=2
from inferlab.lab import Check

check = Check("loads", points=2)


def loaded(listing, passed=()):
    """The learner's answer, once it is a dict of pairs."""
    got = check.learner.what_loads(listing, passed)
    check.true(isinstance(got, dict), "return a dict")
    check.true(all(isinstance(pair, tuple) and len(pair) == 2 for pair in got.values()),
               "each value is a tuple (library, class)")
    return got


with check.part("two components and the pipeline's own class", weight=1):
    small = {"_class_name": "DDPMPipeline", "unet": ["diffusers", "UNet2DModel"], "scheduler": ["diffusers", "DDPMScheduler"]}
    check.equal(loaded(small), {"unet": ("diffusers", "UNet2DModel"), "scheduler": ("diffusers", "DDPMScheduler")})
### BEGIN HIDDEN TESTS
pair = {"unet": ["diffusers", "UNet2DConditionModel"], "scheduler": ["diffusers", "EulerDiscreteScheduler"]}
with check.part("places that are left empty", weight=1):
    got = loaded({"_diffusers_version": "0.6.0", "image_encoder": [None, None], **pair})
    check.mistake("[null, null] says that this place stays empty: nothing is built for it", when="image_encoder" in got)
    check.equal(got, {name: tuple(entry) for name, entry in pair.items()})
with check.part("settings", weight=1):
    got = loaded({"requires_safety_checker": True, "force_zeros_for_empty_prompt": True, **pair})
    check.equal(got, {name: tuple(entry) for name, entry in pair.items()})
    family = {"transformer": ["diffusers", "SD3Transformer2DModel"], "scheduler": ["diffusers", "FlowMatchEulerDiscreteScheduler"],
              "text_encoder_2": ["transformers", "CLIPTextModelWithProjection"]}
    check.equal(loaded({"_class_name": "StableDiffusion3Pipeline", **family}), {name: tuple(entry) for name, entry in family.items()})
with check.part("what the caller hands over", weight=1):
    index_15 = {"safety_checker": ["stable_diffusion", "StableDiffusionSafetyChecker"], **pair}
    got = loaded(index_15, ("safety_checker",))
    check.mistake("what the caller passes is not built from the folder", when="safety_checker" in got)
    check.mistake("the scheduler and its config come from the folder like everything else: without it there is no loop",
                  when="scheduler" not in got)
    check.equal(got, {name: tuple(entry) for name, entry in pair.items()})
    check.equal(loaded(index_15)["safety_checker"], ("stable_diffusion", "StableDiffusionSafetyChecker"))
### END HIDDEN TESTS
check.score()

# %% [markdown]
# Beside your answer, what was really built. The class of a component is known *before* a byte of its weights is read; its
# sizes are not. They stand in each folder's `config.json`, which is why the file above cannot tell you a single shape.

# %% tags=["demo"]
from inferlab.lab import when_written

with when_written("what_loads"):
    predicted = what_loads(index)
    for name, part in pipe.components.items():
        weights = sum(p.numel() for p in part.parameters()) if isinstance(part, torch.nn.Module) else 0
        print(f"{name:18} {type(part).__name__:22} {weights / 1e6:6.2f} M weights   predicted: {predicted.get(name, '-')}")

# %% [markdown]
# ### Exercise 2 · In which order?
#
# *difficulty 1 of 3 · 6 minutes · 2 points*
#
# Below are the boundaries of a pipeline call, shuffled. Write `in_order(cards)`: it gets such boundaries as a list of tuples
# `(name, step)` and returns the same tuples in the order in which the call meets them. `step` counts from 1 inside the loop and
# is `None` outside it. A run need not have all of these: without guidance that card is missing, and a run that is asked for
# latents never decodes.

# %%
cards = ["unet", "vae.decode", "scheduler.step", "encode_prompt", "guidance", "image_processor.postprocess",
         "scheduler.set_timesteps", "scheduler.scale_model_input", "prepare_latents"]
print(*cards, sep="\n")

# %% [markdown]
# <details><summary>Hint</summary>
#
# Ask of each what it needs. The latents are drawn in the dtype of the embeddings and scaled by a number that belongs to the
# schedule. The UNet needs the scaled copy, guidance needs both of the UNet's answers, the step needs one.
# </details>

# %% exercise="order" provides=["in_order"] difficulty=1 minutes=6
def in_order(cards):
    """The cards, each a tuple (name, step), in the order in which a pipeline call meets them."""
    ### BEGIN SOLUTION
    before = ["encode_prompt", "scheduler.set_timesteps", "prepare_latents"]
    inside = ["scheduler.scale_model_input", "unet", "guidance", "scheduler.step"]
    after = ["vae.decode", "image_processor.postprocess"]
    place = {name: i for i, name in enumerate([*before, *inside, *after])}

    def key(card):
        name, step = card
        stage = 0 if name in before else 1 if name in inside else 2
        return stage, step or 0, place[name]

    return sorted(cards, key=key)
    ### END SOLUTION

# %% check="order" points=2
from inferlab.lab import Check, reference

check = Check("order", points=2)


def ordered(shuffled):
    """The learner's order, once it holds each card once."""
    got = check.learner.in_order(shuffled)
    check.true(isinstance(got, list) and all(isinstance(card, tuple) for card in got), "return a list of the tuples that you got")
    check.true(len(got) == len(shuffled), f"{len(shuffled)} cards went in and {len(got)} came out: scheduler, VAE and all "
               "belong to the run")
    check.true(set(got) == set(shuffled), "return the cards that you got, unchanged")
    return got


with check.part("one step of the loop", weight=1):
    check.equal(ordered([("unet", 1), ("scheduler.step", 1), ("scheduler.scale_model_input", 1)]),
                [("scheduler.scale_model_input", 1), ("unet", 1), ("scheduler.step", 1)])
### BEGIN HIDDEN TESTS
import random


@reference
def traced_order(guidance, steps, output_type):
    """The truth: a real run of the bundled pipeline, traced."""
    from inferlab.models import load_pipeline
    from inferlab.trace import trace

    pipe = load_pipeline("bundled", "cpu")
    pipe.set_progress_bar_config(disable=True)
    with trace(pipe) as run:
        pipe("a red circle", num_inference_steps=steps, guidance_scale=guidance, height=64, width=64, output_type=output_type)
    helpers = ("prepare_extra_step_kwargs", "run_safety_checker")
    return [(row["name"], row["step"]) for row in run.rows() if row["level"] == 1 and row["name"] not in helpers]


def both(*run):
    """The learner's order of a run's cards, and the run's own."""
    truth = traced_order(*run)
    return ordered(random.Random(3).sample(truth, len(truth))), truth


with check.part("before and after the loop", weight=1):
    got, truth = both(4.0, 2, "pil")
    outside = [card for card in got if card[1] is None]
    check.mistake("the VAE decodes once, after the last step: no picture exists before or inside the loop",
                  when=got.index(("vae.decode", None)) < got.index(("scheduler.step", 2)))
    check.mistake("the schedule is laid out before the latents are drawn: their scale belongs to the schedule",
                  when=outside.index(("scheduler.set_timesteps", None)) > outside.index(("prepare_latents", None)))
    check.equal(outside, [card for card in truth if card[1] is None])
with check.part("the loop goes step by step", weight=1):
    got, truth = both(4.0, 2, "pil")
    inside = [card for card in got if card[1] is not None]
    check.mistake("a step is finished before the next begins: the second UNet call needs the latents of the first step",
                  when=[name for name, _ in inside[:2]] == [inside[0][0]] * 2)
    check.mistake("guidance combines the UNet's answers before the scheduler sees them",
                  when=inside.index(("guidance", 1)) > inside.index(("scheduler.step", 1)))
    check.equal(inside, [card for card in truth if card[1] is not None])
with check.part("a run without guidance and without a decode", weight=1):
    got, truth = both(1.0, 3, "latent")
    check.equal(got, truth)
### END HIDDEN TESTS
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
# The last hand-over is to a file. A PNG is lossless: what is read back are the bytes that `postprocess` made, in fewer.

# %% tags=["demo"]
from pathlib import Path

from PIL import Image

image.save("lab11-picture.png")
again = Image.open("lab11-picture.png")
print(f"{again.size[0]}x{again.size[1]} {again.mode}: {len(image.tobytes()):,} bytes of pixels, {Path('lab11-picture.png').stat().st_size:,} bytes "
      f"in the file; read back unchanged: {again.tobytes() == image.tobytes()}")
again

# %% [markdown]
# Read it with the four stages in mind, and stop at three places:
#
# * **above the loop** everything happens once. The load is not in the table at all: it was over before the call began;
# * **in the loop** four lines repeat, and two owners share them. The UNet's line is the expensive one, the scheduler's
#   `step` is the only one that moves the latents;
# * **the last lines**: at `vae.decode` four channels become three and the side grows eightfold. Every pixel of
#   the picture comes from that line.

# %% tags=["demo"]
from inferlab.lab.traceplots import component_graph, stage_timeline

component_graph(run.rows(), title="Data goes round between two components, and leaves once through a third")

# %% [markdown]
# The graph is drawn from your trace: an arrow is a hand-over, its label the shape that arrived and how often. Orange arrows
# were used more than once. (`guidance` runs inline, between the UNet and the scheduler; the trace infers it.)
#
# **Reconcile.** Your order beside the run's:

# %% tags=["demo"]
import random

with when_written("in_order"):
    known = {name for name in cards}
    truth = [(row["name"], row["step"]) for row in run.rows() if row["level"] == 1 and row["name"] in known]
    mine = in_order(random.Random(SEED).sample(truth, len(truth)))
    print("the run's own order:", mine == truth)
    for own, real in zip(mine[:8], truth):
        print(f"{own[0]:30} {real[0]:30}", "" if own == real else "   <- here")

# %% [markdown]
# How do the stages share the time? (Shown, never graded: it depends on the machine.) The second bar is the same call with
# guidance off.

# %%
unguided, unguided_image = traced(pipe, guidance_scale=1.0)

# %% tags=["demo"]
stage_timeline({"guidance 4.0": run.rows(), "guidance off": unguided.rows()},
               title="Switching guidance off shortens one stage", load_ms=1e3 * load_seconds)

# %% [markdown]
# ## 4 · Read
#
# The body of the call as it is installed on this machine. Find the four stages, and the lines that the trace can only infer.

# %% jupyter={"source_hidden": true}
from inferlab.lab import show_source

show_source(
    StableDiffusionPipeline.__call__,
    {
        "device = self._execution_device":
            "Where the run takes place. With offload the weights are elsewhere until their turn comes.",
        "prompt_embeds, negative_prompt_embeds = self.encode_prompt(":
            "Prepare: one boundary in the table, and inside it the tokenizer and the text encoder, twice with guidance.",
        "prompt_embeds = torch.cat([negative_prompt_embeds, prompt_embeds])":
            "Inline: the batch axis of the text doubles here, and no boundary shows it. The next one that receives it does.",
        "self.scheduler, num_inference_steps, timestep_device, timesteps, sigmas":
            "The scheduler lays out the loop. Its length is decided here, not by the UNet.",
        "prompt_embeds.dtype,":
            "The latents take their dtype from the embeddings: a wrong dtype upstream travels on.",
        "for i, t in enumerate(timesteps):": "The loop.",
        "latent_model_input = torch.cat([latents] * 2)": "Inline again: the batch of 2 that the UNet's line shows.",
        "noise_pred = noise_pred_uncond + self.guidance_scale": "What the trace infers from a batch of 2 that goes in and a batch of 1 that comes on.",
        "latents = self.scheduler.step(": "The only line of the loop that moves the state.",
        "image = self.vae.decode(latents / self.vae.config.scaling_factor":
            "Decode: the first pixels. The division belongs to this VAE; leave it out and you get the third picture of section 1.",
        "image = self.image_processor.postprocess(image":
            "From [-1, 1] on the device to 8-bit pixels on the host: shape, dtype and device change at once.",
    },
    excerpts=[
        ("device = self._execution_device", "device = self._execution_device"),
        ("prompt_embeds, negative_prompt_embeds = self.encode_prompt(", "negative_prompt_embeds=negative_prompt_embeds,"),
        ("prompt_embeds = torch.cat([negative_prompt_embeds, prompt_embeds])", "prompt_embeds = torch.cat([negative_prompt_embeds, prompt_embeds])"),
        ("timesteps, num_inference_steps = retrieve_timesteps(", "prompt_embeds.dtype,"),
        ("for i, t in enumerate(timesteps):", "latents = self.scheduler.step("),
        ("image = self.vae.decode(latents / self.vae.config.scaling_factor", "image, has_nsfw_concept = self.run_safety_checker("),
        ("image = self.image_processor.postprocess(image", "image = self.image_processor.postprocess(image"),
    ],
    checked="0.42.1",
)

# %% [markdown]
# ## 5 · Build
#
# ### Exercise 3 · Where does it change?
#
# *difficulty 2 of 3 · 10 minutes · 4 points*
#
# Most faults of a pipeline are a tensor that is not what the next owner expects. Write `changes(rows)`, which walks through
# the rows of a trace and reports every place where shape, dtype or device changes.
#
# | argument | meaning |
# |---|---|
# | `rows` | `list` of `dict`, in order, each with `"name"`, `"step"`, `"inputs"` and `"outputs"` |
#
# `inputs` and `outputs` are nested `dict`, `list` and `tuple` of any depth. In them a tensor is a `dict` with exactly the keys
# `"shape"`, `"dtype"`, `"device"`; everything else (numbers, strings, `None`, images) is no tensor. Look at the **first** tensor of
# the inputs, then at the first tensor of the outputs, row after row, skipping sides that have none, and compare
# each with the one that you looked at **just before**, whichever side that was. For each field that differs, in the order shape,
# dtype, device, report the tuple
#
#     (name, step, side, field, before, after)          side is "inputs" or "outputs"
#
# A change at `"outputs"` was made by the boundary itself. One at `"inputs"` happened *between* two boundaries, inline, where
# no table shows it.
#
# <details><summary>Hint</summary>
#
# Two small functions: one that finds the first tensor of a tree (depth first, it may call itself), one that walks and
# remembers. A dict of arguments is a tree, too: its values come in order.
# </details>

# %% exercise="changes" provides=["changes"] difficulty=2 minutes=10
def changes(rows):
    """Every change of shape, dtype or device along the first tensors of a trace's rows."""
    ### BEGIN SOLUTION
    def first(tree):
        if isinstance(tree, dict):
            if set(tree) == {"shape", "dtype", "device"}:
                return tree
            tree = list(tree.values())
        if isinstance(tree, (list, tuple)):
            return next((found for found in map(first, tree) if found), None)
        return None

    seen, told = None, []
    for row in rows:
        for side in ("inputs", "outputs"):
            found = first(row[side])
            if found is None:
                continue
            for field in ("shape", "dtype", "device"):
                if seen is not None and seen[field] != found[field]:
                    told.append((row["name"], row["step"], side, field, seen[field], found[field]))
            seen = found
    return told
    ### END SOLUTION

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
    decode = [row("step", {"sample": spec(1, 4, 8, 8)}, spec(1, 4, 8, 8), 1), row("decode", {"z": spec(1, 4, 8, 8)}, spec(1, 3, 64, 64))]
    check.equal(told(decode), [("decode", None, "outputs", "shape", (1, 4, 8, 8), (1, 3, 64, 64))])
### BEGIN HIDDEN TESTS
@reference
def traced_rows(guidance, output_type, bf16):
    """Rows of a real run of the bundled pipeline: two steps at 64x64."""
    import torch
    from inferlab.models import load_pipeline
    from inferlab.trace import trace

    pipe = load_pipeline("bundled", "cpu", torch.bfloat16 if bf16 else None)
    pipe.set_progress_bar_config(disable=True)
    with trace(pipe) as run:
        pipe("a red circle", num_inference_steps=2, guidance_scale=guidance, height=64, width=64, output_type=output_type)
    return [{key: row[key] for key in ("name", "step", "inputs", "outputs")} for row in run.rows() if row["level"] == 1]


with check.part("changes between boundaries", weight=2):
    rows = [row("a", {}, spec(1, 4), 1), row("b", {"x": spec(2, 4)}, spec(2, 4), 1)]
    got = told(rows)
    check.mistake("b received another shape than a gave: that happened inline, and comparing a boundary with itself cannot see it",
                  when=got == [])
    check.mistake("the change was there when b received it: it belongs to b's inputs, not to its outputs",
                  when=[line[2] for line in got] == ["outputs"])
    check.equal(got, [("b", 1, "inputs", "shape", (1, 4), (2, 4))])
with check.part("dtype and device, in the order of the contract", weight=1):
    rows = [row("unet", {"sample": spec(1, 4, dtype="float16", device="cuda:0")}, spec(1, 4, dtype="float16", device="cuda:0"), 2),
            row("postprocess", {"image": spec(1, 4, dtype="float16", device="cuda:0")}, spec(1, 4, device="numpy"))]
    got = told(rows)
    check.mistake("only shapes were compared: dtype and device cross boundaries, too", when=got == [])
    check.equal(got, [("postprocess", None, "outputs", "dtype", "float16", "float32"),
                      ("postprocess", None, "outputs", "device", "cuda:0", "numpy")])
with check.part("tensors deep inside, and sides without any", weight=1):
    rows = [row("draw", {}, spec(1, 4)),
            row("encode", {"prompt": "a"}, ({"ids": [None, spec(1, 8, dtype="int64")]}, 3)),
            row("setup", {"steps": 4, "image": {"image": "RGB", "size": (8, 8)}}, None),
            row("text", {"input_ids": spec(2, 8, dtype="int64")}, {"last_hidden_state": spec(2, 8, 16), "pooled": spec(2, 16)})]
    got = told(rows)
    check.mistake("setup holds no tensor, so there is nothing to report of it", when=any(line[0] == "setup" for line in got))
    check.mistake("tensors lie inside tuples and lists, too, at any depth", when=all(line[0] != "encode" for line in got))
    check.mistake("a side without a tensor is skipped: the last tensor before it is compared with the next one after it",
                  when=all(line[2] != "inputs" for line in got))
    check.equal(got, [("encode", None, "outputs", "shape", (1, 4), (1, 8)), ("encode", None, "outputs", "dtype", "float32", "int64"),
                      ("text", None, "inputs", "shape", (1, 8), (2, 8)), ("text", None, "outputs", "shape", (2, 8), (2, 8, 16)),
                      ("text", None, "outputs", "dtype", "int64", "float32")])
with check.part("a real run with guidance", weight=2):
    shapes = [line for line in told(traced_rows(4.0, "pil", False)) if line[3] == "shape"]
    wide, narrow = (2, 4, 8, 8), (1, 4, 8, 8)
    check.equal(shapes[-5:], [
        ("scheduler.scale_model_input", 1, "inputs", "shape", narrow, wide),
        ("guidance", 1, "outputs", "shape", wide, narrow),
        ("scheduler.scale_model_input", 2, "inputs", "shape", narrow, wide),
        ("guidance", 2, "outputs", "shape", wide, narrow),
        ("vae.decode", None, "outputs", "shape", narrow, (1, 3, 64, 64)),
    ])
with check.part("a real run in bfloat16 that returns an array", weight=1):
    got = [line for line in told(traced_rows(1.0, "np", True)) if line[0] not in ("scheduler.set_timesteps", "prepare_latents")]
    check.equal([line[:4] for line in got if line[0] == "image_processor.postprocess"],
                [("image_processor.postprocess", None, "outputs", field) for field in ("shape", "dtype", "device")])
    check.equal([line[0] for line in got if line[3] == "dtype"], ["image_processor.postprocess"])
### END HIDDEN TESTS
check.score()

# %% [markdown]
# On your own run: the changes at `inputs` are the lines that section 4 calls inline.

# %% tags=["demo"]
with when_written("changes"):
    for name, step, side, field, before, after in changes([row for row in run.rows() if row["level"] == 1]):
        print(f"{name:28} {'' if step is None else step!s:2} {side:8} {field:7} {before} -> {after}")

# %% [markdown]
# ### Exercise 4 · Which switch did this?
#
# *difficulty 2 of 3 · 10 minutes · 4 points*
#
# `a.diff(b)` lists what differs between two runs. Three switches, one at a time, so that you see each one's handwriting.
# First **guidance**, on and off:

# %%
run.diff(unguided, slower=float("inf"))  # times are noise here: leave them out

# %% [markdown]
# Then **dtype**: the same weights in `bfloat16`, on the CPU, whatever the rest of this lab runs on.

# %%
half = load_pipeline("bundled", "cpu", torch.bfloat16)
full_precision = pipe if MODEL == "bundled" and str(lab.device) == "cpu" else load_pipeline("bundled", "cpu")
for pipeline in (half, full_precision):
    pipeline.set_progress_bar_config(disable=True)
healthy, healthy_image = (run, image) if full_precision is pipe else traced(full_precision, height=128, width=128)
in_half, half_image = traced(half, height=128, width=128)
healthy.diff(in_half, slower=float("inf"))

# %% tags=["demo"]
import numpy as np

gap = np.abs(np.asarray(healthy_image, dtype=int) - np.asarray(half_image, dtype=int))
print(f"pixels differ by {gap.mean():.2f} of 255 on average, by {gap.max()} at most")
filmstrip([image, unguided_image, healthy_image, half_image], ["guidance 4.0", "guidance off", "float32", "bfloat16"],
          title="Guidance decides what is drawn; rounding to bfloat16 can shift its colors", size=2)

# %% [markdown]
# The last two pictures have the same weights, prompt and noise. Only rounding differs: a `bfloat16` number has 8 significant bits.
# Few steps and strong guidance can amplify that. Measured on one CPU with seed 7, the average difference was 46.5 of 255 with these
# four steps and guidance 4.0, but 0.6 with eight steps, and 1.0 with guidance 2.0.
# With the settings of this cell it was below 2 for eight of the seeds 0 to 11.
#
# Third **offload**: `enable_model_cpu_offload` keeps the modules on the host and moves each to the accelerator for its turn.
# It needs an accelerator, so the next cell shows its diff on a GPU, and without one the library's own refusal and the hook
# that it is made of, on one component.

# %% tags=["demo"]
from accelerate import cpu_offload
from accelerate.hooks import remove_hook_from_module

try:
    pipe.enable_model_cpu_offload()
except (RuntimeError, ValueError, ImportError) as refused:
    print("no offload here:", refused)
    # accelerate's own hook runs anywhere: "off" and "on" are the same device then, but its wrapper stands in the trace
    cpu_offload(pipe.unet, execution_device=torch.device("cpu"), preload_module_classes=[type(pipe.unet).__name__])
    wrapped, _ = traced(pipe)
    remove_hook_from_module(pipe.unet, recurse=True)
    display(run.diff(wrapped, slower=float("inf")))
else:
    offloaded, _ = traced(pipe)
    pipe.remove_all_hooks()
    pipe.to(lab.device)
    display(run.diff(offloaded, slower=float("inf")))

# %% [markdown]
# A trace shows wrappers that the source of the pipeline does not mention: `pipe(...)` reads the same with and without. What
# offload leaves in a diff are boundaries that move weights: the hooks of `accelerate`, and what they call. Recorded on one H200,
# nine appeared: `pre_forward` of all three components (`unet.pre_forward`, ...), their `to` (`unet.to`, ...), and of the pipeline
# `maybe_free_model_hooks`, `enable_model_cpu_offload` and `to`. Older hooks also have a `post_forward`, and where data starts or ends
# elsewhere there are changes of the kind `"device"`. No shape, no dtype, no count of the denoiser changes.
#
# Now write `causes(change)`. It gets one row of `a.diff(b).rows()` and returns the `set` of the switches that explain it:
# `"guidance"`, `"dtype"`, `"offload"`, `"size"` (another height or width was asked for). All four may have been flipped at once, and
# one row may need two of them. A row of the kind `"slower"` proves nothing: an empty set.
#
# | key of `change` | meaning |
# |---|---|
# | `"kind"` | `"appeared"`, `"vanished"`, `"calls"`, `"device"`, `"dtype"`, `"shape"`, `"value"`, `"slower"` |
# | `"name"`, `"where"` | the boundary, and which of its inputs or outputs (`"inputs.sample"`; empty for the boundary itself) |
# | `"before"`, `"after"` | the two values: shapes are tuples; images and other values are `str`, `int`, `float`, `bool` or `None` |
#
# The number of prompts and of steps is the same in both runs.
#
# <details><summary>Hint</summary>
#
# Which axis of a shape a switch touches tells guidance from size, and a shape in which several axes differ has two causes. An
# image's size is a string. A `value` row can hold a dtype, too.
# </details>

# %% exercise="causes" provides=["causes"] difficulty=2 minutes=10
def causes(change):
    """The set of switches (guidance, dtype, offload, size) that explain one row of a diff."""
    ### BEGIN SOLUTION
    kind, name, where = change["kind"], change["name"], change["where"]
    before, after = change["before"], change["after"]
    if kind == "slower":
        return set()
    if kind == "dtype" or where.endswith(".dtype"):
        return {"dtype"}
    moves = ("pre_forward", "post_forward", "to", "maybe_free_model_hooks", "enable_model_cpu_offload")
    if kind == "device" or name.rpartition(".")[2] in moves:
        return {"offload"}
    if kind == "shape" and isinstance(before, tuple):
        found = {"guidance"} if before[0] != after[0] else set()
        return found | ({"size"} if before[1:] != after[1:] else set())
    if kind == "shape" or where.endswith((".height", ".width")):
        return {"size"}
    return {"guidance"}
    ### END SOLUTION

# %% check="causes" points=4
from inferlab.lab import Check, reference

check = Check("causes", points=4)
KNOWN = {"guidance", "dtype", "offload", "size"}


def ask_causes(kind, name, where="", before=None, after=None):
    """The learner's causes of one row, once they are a set of known switches."""
    got = check.learner.causes({"kind": kind, "name": name, "where": where, "before": before, "after": after, "steps": []})
    check.true(isinstance(got, set), "return a set, such as {'size'}")
    check.true(got <= KNOWN, f"the switches are called {', '.join(sorted(KNOWN))}")
    return got


with check.part("a boundary's tensor in another dtype", weight=1):
    check.equal(ask_causes("dtype", "unet", "inputs.sample", "float32", "float16"), {"dtype"})
### BEGIN HIDDEN TESTS
@reference
def diffs():
    """Real diffs of the bundled pipeline: one switch flipped, and two at once. One step, 64 pixels."""
    import torch
    from inferlab.models import load_pipeline
    from inferlab.trace import trace

    pipes = {dtype: load_pipeline("bundled", "cpu", dtype) for dtype in (torch.float32, torch.bfloat16)}

    def run(guidance=4.0, width=64, dtype=torch.float32):
        pipes[dtype].set_progress_bar_config(disable=True)
        with trace(pipes[dtype]) as t:
            pipes[dtype]("a red circle", num_inference_steps=1, guidance_scale=guidance, height=64, width=width)
        return t

    plain = run()
    flipped = {"guidance": run(guidance=1.0), "size": run(width=96), "dtype": run(dtype=torch.bfloat16),
               "guidance and size": run(guidance=1.0, width=96)}
    return {name: plain.diff(other, slower=float("inf")).rows() for name, other in flipped.items()}


def every(switch, kinds=None):
    """What the learner says of each row of a real diff, beside the row."""
    rows = [row for row in diffs()[switch] if kinds is None or row["kind"] in kinds]
    return [(row, ask_causes(*[row[key] for key in ("kind", "name", "where", "before", "after")])) for row in rows]


with check.part("every row of a real diff: guidance", weight=2):
    for row, got in every("guidance"):
        check.mistake("a batch that halves is guidance, not another size of the picture", when=row["kind"] == "shape" and got == {"size"})
        check.true(got == {"guidance"}, f"{row['kind']} at {row['name']}: only guidance was switched off in this run")
with check.part("every row of a real diff: size", weight=1):
    for row, got in every("size"):
        check.mistake("height and width changed, the batch did not: this is no guidance", when=got == {"guidance"})
        check.true(got == {"size"}, f"{row['kind']} at {row['name']}: only the width was changed in this run")
with check.part("every row of a real diff: dtype", weight=1):
    for row, got in every("dtype"):
        check.mistake("a dtype is also passed along as an argument: that row is a `value`", when=row["kind"] == "value" and got != {"dtype"})
        check.true(got == {"dtype"}, f"{row['kind']} at {row['name']}: only the dtype was changed in this run")
with check.part("two switches at once", weight=1):
    rows = [(row, got) for row, got in every("guidance and size", {"shape"}) if row["name"] == "unet" and row["where"] == "inputs.sample"]
    check.mistake("two axes of this shape differ, and each has a cause of its own", when=len(rows[0][1]) == 1)
    check.equal(rows[0][1], {"guidance", "size"})
    check.equal([got for row, got in every("guidance and size", {"shape"}) if row["name"] == "vae.decode"], [{"size"}] * 2)
with check.part("offload, and what proves nothing", weight=2):
    # what a real run with offload had more than one without, on a GPU
    for name in ("text_encoder.pre_forward", "unet.to", "maybe_free_model_hooks", "enable_model_cpu_offload", "to"):
        check.equal(ask_causes("appeared", name), {"offload"})
    check.equal(ask_causes("vanished", "vae.to"), {"offload"})
    check.equal(ask_causes("device", "vae.decode", "inputs.z", "cpu", "cuda:0"), {"offload"})
    got = ask_causes("slower", "unet", "", "90.1 ms", "310.4 ms")
    check.mistake("a run can be slower for a hundred reasons: a time alone explains nothing", when=bool(got))
    check.equal(got, set())
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 5 · A pipeline that is broken and says nothing
#
# *difficulty 3 of 3 · 12 minutes · 4 points*
#
# You are handed a pipeline in which one component was damaged. It runs, it raises nothing, it returns a picture. Which
# damage you got depends on your name. Both runs below are of the bundled model on the CPU, with the same prompt and noise.

# %%
from inferlab.lab.damage import damaged

suspect = damaged(full_precision, lab.variant(9))
sick, sick_image = traced(suspect, height=128, width=128)

# %% tags=["demo"]
filmstrip([healthy_image, sick_image], ["healthy", "suspect"], size=2)

# %% tags=["demo"]
healthy.diff(sick, slower=float("inf"))

# %% [markdown]
# The diff may be one line or thirty, and its order is not an order of guilt: most lines are consequences. The cause is the
# first boundary **in the run** that gives something else than it should, seen from the inside: a method is not to blame for what a part that it
# calls did. Look at `sick.tree()` and `sick.rows()` as well; the picture alone proves nothing.
#
# Write `diagnose()`, which returns a `dict`:
#
# | key | meaning |
# |---|---|
# | `"kind"` | `"dtype"`, `"shape"`, or `"loop"` when the number of passes is not the one asked for |
# | `"boundary"` | the name of the boundary where it begins |
# | `"healthy"`, `"broken"` | the evidence, from your two traces: for `"dtype"` two names such as `"float32"`, for `"shape"` two tuples (of the boundary's first tensor that comes out), for `"loop"` two numbers of passes |
#
# You may compute it from `healthy.rows()` and `sick.rows()`, or write down what you found.
#
# <details><summary>Hint</summary>
#
# For a wrong number of passes: the UNet runs as often as it is told to. Who tells? For the other two: walk through both
# traces side by side and skip the boundaries that have others inside (their <code>index</code> is some row's <code>parent</code>).
# </details>

# %% exercise="diagnosis" provides=["diagnose"] difficulty=3 minutes=12
def diagnose():
    """Kind of fault, boundary where it begins, and the two values that prove it."""
    ### BEGIN SOLUTION
    def first(tree):
        if isinstance(tree, dict):
            if set(tree) == {"shape", "dtype", "device"}:
                return tree
            tree = list(tree.values())
        if isinstance(tree, (list, tuple)):
            return next((found for found in map(first, tree) if found), None)
        return None

    good, bad = healthy.rows(), sick.rows()
    passes = [sum(row["name"] == "unet" for row in rows) for rows in (good, bad)]
    if passes[0] != passes[1]:
        return {"kind": "loop", "boundary": "scheduler.set_timesteps", "healthy": passes[0], "broken": passes[1]}
    parents = {row["parent"] for row in good}
    for one, other in zip(good, bad):
        a, b = first(one["outputs"]), first(other["outputs"])
        for kind in ("dtype", "shape"):
            if one["index"] not in parents and a and a[kind] != b[kind]:
                return {"kind": kind, "boundary": one["name"], "healthy": a[kind], "broken": b[kind]}
    ### END SOLUTION

# %% check="diagnosis" points=4
from inferlab.lab import Check

check = Check("diagnosis", points=4)


def diagnosis():
    """The learner's diagnosis, once it has the keys that the contract asks for."""
    got = check.learner.diagnose()
    check.true(isinstance(got, dict) and set(got) == {"kind", "boundary", "healthy", "broken"},
               "return a dict with the keys kind, boundary, healthy and broken")
    check.true(got["kind"] in ("dtype", "shape", "loop"), "the kind is dtype, shape or loop")
    check.true(isinstance(got["boundary"], str), "the boundary is a name, such as 'scheduler.step'")
    return got


with check.part("the diagnosis has its four keys (what they say is graded when you hand it in)", weight=0):
    diagnosis()
### BEGIN HIDDEN TESTS
TRUTH = [
    ("loop", "scheduler.set_timesteps", 4, 2),
    ("dtype", "text_encoder", "float32", "bfloat16"),
    ("shape", "vae.decode", (1, 3, 128, 128), (1, 3, 64, 128)),
    ("dtype", "unet", "float32", "bfloat16"),
    ("shape", "tokenizer", (1, 16), (1, 12)),
    ("loop", "scheduler.set_timesteps", 4, 8),
    ("dtype", "vae.decode", "float32", "bfloat16"),
    ("loop", "scheduler.set_timesteps", 4, 3),
    ("shape", "prepare_latents", (1, 4, 16, 16), (1, 4, 8, 8)),
]
kind, boundary, good, bad = TRUTH[check.variant(9)]
LATER = {
    "scheduler.set_timesteps": {"unet", "scheduler.step", "scheduler.scale_model_input", "guidance", "scheduler"},
    "text_encoder": {"encode_prompt", "unet"},
    "tokenizer": {"encode_prompt", "text_encoder", "unet"},
    "prepare_latents": {"scheduler.scale_model_input", "unet", "guidance", "scheduler.step", "vae.decode", "image_processor.postprocess"},
    "unet": {"guidance", "scheduler.step"},
    "vae.decode": {"run_safety_checker", "image_processor.postprocess", "StableDiffusionPipeline"},
}
with check.part("the kind of fault", weight=1):
    check.true(diagnosis()["kind"] == kind, "your two traces show another kind of fault")
with check.part("where it begins", weight=2):
    got = diagnosis()["boundary"]
    check.mistake("this boundary only receives the fault, or only calls the part that has it: look further upstream and inside",
                  when=got in LATER[boundary])
    check.mistake("the name of the model or of the pipeline is no diagnosis: name a boundary of the trace",
                  when="diffusion" in got.casefold())
    check.true(got == boundary, "the fault does not begin at this boundary")
with check.part("the evidence", weight=1):
    got = diagnosis()
    check.mistake("healthy and broken have changed places", when=(got["healthy"], got["broken"]) == (bad, good))
    check.equal([got["healthy"], got["broken"]], [good, bad])
### END HIDDEN TESTS
check.score()

# %% [markdown]
# Some of these pictures look healthy. A text encoder whose output was rounded and then widened again shows `float32` at every boundary but
# one, and no picture would tell you. That is what a trace is for.

# %% [markdown]
# ## 6 · Explain
#
# *difficulty 2 of 3 · 12 minutes · 6 points: 3 for the typed lines, 3 for the sentences*
#
# A colleague explains your picture with "that was Stable Diffusion". Do better, about the run that you traced in section 3:
# four steps, guidance 4.0.
#
# | line | what it says |
# |---|---|
# | `state:` | one or two sentences: which object the loop transforms and what does that, and what turns it into the picture |
# | `axis:` | one or two sentences: what happens to the shape in `vae.decode`, with its numbers |
# | `trade-off:` | one or two sentences: what you gain from guidance, and what you pay for it |
# | `shape:` | typed: the shape that `vae.decode` was given |
# | `bytes:` | typed, with a unit: how many bytes came out of `vae.decode` (your trace has them) |
# | `pixels:` | typed: the boundary at which the first pixels exist |
# | `length:` | typed: the boundary that decided how often the UNet runs |
# | `gain:` | typed, a quantity and its direction, in the form `latency up`: what 16-bit weights and activations improve |
# | `cost:` | typed: what they make worse |

# %%
explained = run  # %%explain looks the numbers of your answer up in the newest trace that has a name

# %% explain="whole-run" difficulty=2 minutes=12
%%explain whole-run
# ### BEGIN SOLUTION
# state: The loop transforms the latents: the UNet predicts the noise in them and scheduler.step updates them from that prediction.
#   After the loop the VAE decodes the latents into the image.
# axis: In vae.decode the channels go from 4 to 3 and the side grows from 16 to 128, so (1, 4, 16, 16) becomes (1, 3, 128, 128).
# trade-off: Guidance makes the picture better, but the UNet computes twice the batch, so the run is slower.
# shape: (1, 4, 16, 16)
# bytes: 192 KiB
# pixels: vae.decode
# length: scheduler.set_timesteps
# gain: memory down
# cost: error up
# ### END SOLUTION

# %% check="whole-run-shape" of="whole-run" points=1
from inferlab.lab import Check, reference

check = Check("whole-run-shape", points=1)
with check.part("`shape:` and `bytes:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("whole-run").get("shape"), "`shape:` is empty")
    check.true(check.explanation("whole-run").get("bytes"), "`bytes:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import typed


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


with check.part("the shape that the VAE was given"):
    told = check.explanation("whole-run")
    check.mistake("guidance has been combined long before: the VAE gets the latents of one picture",
                  when=typed(told, "shape", facts()["unet.inputs.sample.shape"]).verdict == "award")
    outcome = typed(told, "shape", facts()["vae.decode.inputs.z.shape"])
    check.true(outcome.verdict == "award", outcome.reason)
with check.part("the bytes that came out of it"):
    told = check.explanation("whole-run")
    check.mistake("these are the bytes that went in", when=typed(told, "bytes", facts()["vae.decode.bytes_in"]).verdict == "award")
    outcome = typed(told, "bytes", facts()["vae.decode.bytes_out"], tolerance=0.03)
    check.true(outcome.verdict == "award", outcome.reason)
### END HIDDEN TESTS
check.score()

# %% check="whole-run-owners" of="whole-run" points=1
from inferlab.lab import Check

check = Check("whole-run-owners", points=1)
with check.part("`pixels:` and `length:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("whole-run").get("pixels"), "`pixels:` is empty")
    check.true(check.explanation("whole-run").get("length"), "`length:` is empty")
### BEGIN HIDDEN TESTS
import re


def boundary(label):
    """The one name on a typed line, without back-ticks and the full stop."""
    names = re.findall(r"[a-z_][a-z_.]*[a-z_]", check.explanation("whole-run").get(label).casefold())
    check.true(len(names) == 1, f"`{label}:` wants the name of one boundary, as it stands in the table")
    return names[0]


with check.part("where the first pixels exist"):
    name = boundary("pixels")
    check.mistake("the UNet answers in latents: the VAE makes the pixels, and it matters which VAE", when=name.startswith("unet"))
    check.mistake("the pixels are there already when the image processor gets them", when="postprocess" in name or name == "image_processor")
    check.true(name in ("vae.decode", "vae"), "the first pixels exist at another boundary")
with check.part("who decided the length of the loop"):
    name = boundary("length")
    check.mistake("the UNet runs as often as it is called: the scheduler laid out the loop", when=name.startswith("unet"))
    check.mistake("by then the loop is running: its length was decided before", when=name == "scheduler.step")
    check.true(name in ("scheduler.set_timesteps", "set_timesteps"), "another boundary decided the length")
### END HIDDEN TESTS
check.score()

# %% check="whole-run-gain-cost" of="whole-run" points=1
from inferlab.lab import Check

check = Check("whole-run-gain-cost", points=1)
with check.part("`gain:` and `cost:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("whole-run").get("gain"), "`gain:` is empty")
    check.true(check.explanation("whole-run").get("cost"), "`cost:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import typed

check.slot(lambda: typed(check.explanation("whole-run"), "gain",
                         ("memory down", "bandwidth down", "traffic down", "latency down", "throughput up"),
                         terms={"traffic": "bytes, transfer, memory traffic, data moved"}), "what 16 bits gain")
check.slot(lambda: typed(check.explanation("whole-run"), "cost", ("error up", "precision down", "quality down"),
                         terms={"precision": "numerical precision, accuracy, exactness"}), "what 16 bits cost")
### END HIDDEN TESTS
check.score()

# %% check="whole-run-state" of="whole-run" points=1
from inferlab.lab import Check

check = Check("whole-run-state", points=1)
with check.part("`state:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("whole-run").get("state"), "`state:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import Rubric, Slot, grade, terms

SHAPES = {"unet": (2, 4, 16, 16), "latents": (1, 4, 16, 16), "picture": (1, 3, 128, 128)}
RUBRIC = Rubric(
    question="Which object the loop transforms and what does that, and what turns it into the picture.",
    lab="The UNet's line is the expensive one, the scheduler's step is the only one that moves the latents. Every pixel of the picture "
        "comes from that line. Predict, guide, update, once for every timestep. Latents become pixels, pixels become a file.",
    terms={
        **terms("latents", "scheduler", "unet", "vae", "image", latents="+state, latent space, block of numbers, buffer*", scheduler='+"the step", "its step"',
                image="+visible, final thing"),
        "noise": "noise, noise prediction*, noise_pred, predicted noise, noise estimate*, estimated noise, noise guess*, epsilon",
        **terms("prompt"),
        "family": "stable diffusion, diffusion model, latent diffusion, latent diffusion model, stable diffusion model, stable diffusion pipeline",
    },
    slots={"state": Slot(
        learned="lab11 state ddb5ada2bbe31518",
        award=["scheduler changes/makes/denoises latents + vae decodes/changes latents or vae makes image or vae decodes *",
               "scheduler uses noise + * changes/denoises latents + vae decodes latents or vae makes image or vae decodes *"],
        loose=True,
        deny={
            "unet makes/changes image": "The UNet answers in latents; the VAE makes the picture.",
            "unet predicts image": "The UNet predicts in latents; there are no pixels before the VAE.",
            "family makes image": "That is the name of a family. Which component does it, and to what?",
            "family changes latents": "That is the name of a family. Which component does it?",
            "scheduler makes image": "The scheduler returns latents; the VAE makes the picture.",
            "unet decodes latents": "The UNet answers in latents; the VAE makes the picture.",
            "vae denoises latents": "The VAE is outside the loop.",
            "vae saves image": "The VAE makes the picture.",
            "* changes prompt": "The text's embeddings stay as they are; something else changes from step to step.",
            "unet changes latents": "The UNet only predicts. What updates the latents?",
            "says: is the unet that/which does/changes/transforms/updates, unet/it returns/outputs the new/next latents, scheduler only/just/merely counts/records/logs": "The UNet only predicts; the scheduler's step makes the next latents.",
            "scheduler add noise": "A step takes noise out of the latents, it puts none in.",
            "says: adds/adding noise to the latents/them, adds/adding .. noise in/at each/every, every/each step noise is added": "A step takes noise out of the latents, it puts none in.",
            "says: weights are updated/changed/adjusted/trained, updates/changes/adjusts the weights, is trained, backprop*": "Nothing is trained here: the weights stay as they are.",
            "says: picture/image into latents, vae encodes, encodes again, encodes it/them again/back, each/every step the vae/decoder": "The VAE works once, after the loop, and it decodes.",
        },
    )},
    must_award={"state": [
        "The loop repeatedly updates the latents: UNet for the noise, DDIM scheduler for the update. When it is done the VAE turns them into an image.",
        "latents are denoised by the scheduler with help of the unet, then decoded by the vae",
        "The scheduler updates the latents from the UNet's noise prediction, and the VAE decodes the latents into the picture.",
        "The latents are changed by scheduler.step at each of the 4 steps; then the VAE turns them into pixels.",
    ]},
    must_deny={"state": [
        "The UNet generates the image and the VAE saves it.",
        "Stable Diffusion changes the latents into the image.",
        "It was Stable Diffusion, a latent diffusion model that makes the image.",
        "The UNet turns the latents into the image at each step.",
        "The UNet makes the image from the noise.",
        "The latents are updated by the scheduler, and in each step the VAE decodes them and encodes again.",
        "The scheduler updates the latents by adding some noise in each step, and the VAE decodes them.",
    ]},
)
check.slot(lambda: grade(check.explanation("whole-run"), RUBRIC, SHAPES)["state"], "what is transformed, by what, and what makes the picture")
### END HIDDEN TESTS
check.score()

# %% check="whole-run-axis" of="whole-run" points=1
from inferlab.lab import Check, reference

check = Check("whole-run-axis", points=1)
with check.part("`axis:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("whole-run").get("axis"), "`axis:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import Amounts, Rubric, Slot, grade, terms


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


RUBRIC = Rubric(
    question="What happens to the shape in vae.decode, with its numbers.",
    lab="At vae.decode four channels become three and the side grows eightfold.",
    terms={
        **terms("channels", "vae", "image", "latents", channels="+c, colours, colors, colour, color, values per pixel"),
        "bytes": "byte*, in bytes, values, elements",
        "side": "the two spatial axes, the two spatial dimensions, the two sides, both spatial axes, side*, height, width, heights, widths, spatial*, height and width, resolution, spatial axes, h, w, h and w, grid, each way, both ways, positions",
        "batch": "batch*, batch axis, n",
    },
    slots={"axis": Slot(
        learned="lab11 axis 35c29847d260de16",
        amounts=Amounts(shapes=["vae.decode.inputs.z.shape", "vae.decode.outputs.shape", (8, 8)],
                        counts={"channels": [4, 3], "side": [16, 128, 8], "batch": 1, "bytes": [48, 1024, 4096, 49152, 196608]}, key=["channels", "side"],
                        moves=[("vae.decode.inputs.z.shape", "vae.decode.outputs.shape"), (4, 3), (16, 128), ((16, 16), (128, 128)),
                               ((4, 16, 16), (3, 128, 128))]),
        loose=True,
        deny={"batch shrinks/changes": "The batch stays as it is in the decode.", "side shrink/decrease": "The sides grow in the decode.",
              "says: leaves/keeps height and width, height and width stay/remain, nothing happens to the shape, same shape before and after, before and after, raises the channels, raises the number of channels, channels are expanded, positions are kept, shape stays, shape does not change, decode changes nothing": "Both the channels and the sides change in the decode.",
              "says: fourfold, factor of four/4, four/4 times larger/bigger/wider": "Each side grows eightfold.",
              "says: tokens become, 16 tokens, guidance needs one, alpha, rgba, transparency, contributes/contribute a channel, held/holds the prompt, tokens of the prompt, number of steps, 4/four are the .. steps": "The 4 are channels of the latent space and the 3 are red, green and blue.",
              "says: once for each/every .. step/steps, in each of the four/4 steps, each/every step doubles": "The decode is made once, after all steps.",
              "says: channels stay/remain as/the/same/unchanged, channels rise/climb, side/sides/height/width falls/drops/shrinks, is compressed to/into, eight/8 times smaller, "
              "repeating its/the pixels": "In the decode the sides grow and the channels get fewer.",
              "says: batch/axis falls/drops there, batch .. from 2 to 1": "The batch stays as it is in the decode.",
              "channels grow/increase": "There are fewer channels after the decode, not more."},
    )},
    must_award={"axis": [
        "The decoder upsamples 16x16 to 128x128 and goes from 4 latent channels to 3 RGB channels.",
        "Spatially it becomes 8 times larger (16 to 128) and the 4 channels become 3.",
        "(1,4,16,16) in, (1,3,128,128) out.",
        "The two spatial axes grow from 16 to 128 and the channels go from 4 to 3.",
        "In vae.decode (1, 4, 16, 16) becomes (1, 3, 128, 128): the channels go from 4 to 3 and the side from 16 to 128.",
        "The VAE turns 4 channels into 3 channels, and height and width grow from 16 to 128.",
    ]},
    must_deny={"axis": [
        "The channels go from 3 to 4 and the size shrinks from 128 to 16.",
        "The batch axis is 2 because of guidance.",
        "The VAE keeps the 5 channels.",
        "(1, 4, 16, 16) becomes (1, 3, 128, 128) because the alpha channel is dropped.",
        "The side grows from 16 to 128, the channels stay as they are.",
        "The 4 channels become 3 and each side gets a factor of four.",
        "The channels go from 4 to 3, where 4 is the number of steps, and the side goes from 16 to 128.",
    ]},
    example_facts={"vae.decode.inputs.z.shape": (1, 4, 16, 16), "vae.decode.outputs.shape": (1, 3, 128, 128)},
)
check.slot(lambda: grade(check.explanation("whole-run"), RUBRIC, facts())["axis"], "what happens to the shape, with its numbers")
### END HIDDEN TESTS
check.score()

# %% check="whole-run-trade-off" of="whole-run" points=1
from inferlab.lab import Check

check = Check("whole-run-trade-off", points=1)
with check.part("`trade-off:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("whole-run").get("trade-off"), "`trade-off:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import Rubric, Slot, Trend, grade

RUBRIC = Rubric(
    question="What you gain from guidance, and what you pay for it.",
    lab="Switching guidance off shortens one stage. Guidance decides what is drawn.",
    terms={
        "guidance": "guidance, cfg, classifier-free guidance, guidance scale",
        "quality": "picture quality, image quality, picture*, image*, result*, prompt adherence, adherence, prompt fidelity, faithfulness",
        "batch": "batch, batch size, rows",
    },
    slots={"trade-off": Slot(
        learned="lab11 trade-off 0d28808da9c983ef",
        deny={"says: four/4 times, batch of 4/four, 4x/3x, three times, doubles the number of steps, doubles the steps, twice as many steps, double the steps, fewer steps, half the steps, more steps":
              "Guidance doubles the batch of each UNet call, nothing else.",
              "says: vae/decoder has to decode, twice the weights, weights twice, longer prompt, smaller/larger picture/image": "Guidance only doubles the batch of each UNet call.",
              "says: more diverse, more diversity, more variety, so does diversity, diversity rises/increases/grows": "Guidance makes the pictures more alike, not more different.",
              "says: second/another model/network must/has/needs, be trained, is trained, 5/five calls, at the very end, 8/eight steps, vae.decode goes up, compute of vae.decode": "Guidance only doubles the batch of each UNet call: one model, as many calls.",
              "says: 8/eight calls, for free, costs nothing, no cost, batch .. does not change, batch stays, resolution": "Guidance doubles the UNet's batch."},
        trend=Trend(
        "guidance", gain={"quality": "up"}, cost={"time": "up", "compute": "up"}, switch=True, asked="up", also={"batch": "up"},
        says={"quality up": "better/closer match/agreement/fit with/to/of .. prompt/text, follow*/obey*/respect*/honour*/honor*/match*/fit*/heed* .. prompt/text/words/description/caption, "
                            "stick*/listen*/keep*/conform*/correspond*/adhere*/agree*/close*/closer/cling*/true/faithful* to .. prompt/text/words/description/caption/ask*, "
                            "prompt/text/words .. followed/obeyed/respected/honoured/matched/heeded, shows/show/draws/draw what you/i, what you/i asked/typed/wrote/want*, "
                            "fit*/match*/agree*/agreement/correspond* with .. prompt/text, fit*/match* to .. prompt/text, more of what you, more like the text, like the text says, "
                            "closeness to .. prompt/text, fidelity to .. prompt/text, influence on/of .. image/picture/text/prompt, agreement .. prompt/text, obedience to .. prompt, "
                            "prompt has more influence, stronger influence, control by/of/over .. prompt/text/picture/image, in direction of .. prompt/text, in the direction of .. prompt/text, near/nearer to .. prompt/text, stronger conditioning, tracks .. prompt/text, you asked for, image/picture .. fits/matches/follows/respects",
              "compute down": "half as many rows/inputs/samples/evaluations, half the rows/batch/inputs",
              "quality down": "only loosely match*/follow*, loosely match*/follow*, ignore* .. prompt/text/words, forget* .. prompt/text, does what it wants, drifts .. from .. prompt, random picture/image",
              "compute up": "costs .. twice/double as much, two/2/both/double copies/rows/samples/predictions/evaluations/passes/batch, batch of 2/two, double/doubled/doubles .. work/batch/rows/compute/computation/cost/expenditure, "
                            "twice .. work/batch/rows/compute/sums/large/sample/computation/inputs/latents/copies, second .. row/sample/copy/pass/evaluation/prediction, additional/extra .. row/sample/copy/pass/evaluation/prediction, "
                            "unconditional copy/evaluation/row/pass/sample/prediction, working for two, work .. doubled, batch .. doubled, 2 rows, two needed, two are needed, process .. two, empty prompt has to be run, "
                            "empty prompt as well, half is for the empty"},
    ))},
    must_award={"trade-off": [
        "Guidance gets you an image that actually matches what you wrote, at the cost of running the UNet on twice as many inputs.",
        "The result is closer to the prompt; the price is that the batch doubles so each step is slower.",
        "You win prompt fidelity but every UNet evaluation has to process an additional unconditional sample.",
        "Without guidance the run is faster, but the picture gets worse.",
        "The picture gets better, but each call takes longer because the batch doubles.",
        "Guidance makes the picture better, but costs more compute.",
        "With guidance off the latency drops, and the prompt adherence drops as well.",
        "You get a better match with the text at the cost of about double the UNet's work.",
    ]},
    must_deny={"trade-off": [
        "Guidance makes it faster but less faithful to the prompt.",
        "Guidance needs four times as many steps but the picture is better.",
        "Without guidance the run is slower and the picture gets better.",
        "Guidance makes the run faster and the picture better.",
        "The picture follows the prompt better, but a second model has to be trained.",
        "The picture follows the prompt better, but the VAE has to decode two pictures.",
        "The picture follows the prompt, it only takes longer since there are eight steps.",
    ]},
)
check.slot(lambda: grade(check.explanation("whole-run"), RUBRIC, {})["trade-off"], "what guidance gains and costs")
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7 · Notice
#
# * **The name of a family is no explanation.** "Stable Diffusion" was true of every picture in this lab, the broken ones included. A
#   trace says which component did what to which tensor.
# * **Scheduler and VAE are half of the system.** One decides how often the UNet runs and what its answer means, the other makes
#   every pixel. You have seen both ruin a picture with the UNet untouched.
# * **The file that is read first says the least.** `model_index.json` names classes. Shapes come from each config, values from the weights.
# * **What runs inline is seen at the next boundary.** The batch of 2 is made by a line that no hook can reach; look at inputs as well as outputs.
# * **A diff lists consequences.** The cause is the first boundary of the run that gives something else, seen from the inside.
# * **Time alone proves nothing.** Shapes, dtypes, devices, counts and order are the same on every machine; a slower run has many fathers.
#
# Say it out loud, as in an interview: name the state object, the axis that changes, and the trade-off. Class names, config
# entries and what `accelerate` hooks are called depend on the version; section 4 says so when yours differs.

# %% [markdown]
# ## 8 · Check and hand in
#
# Run this cell last. It runs the visible checks again, says what is missing, and leaves one file to hand in.

# %% tags=["demo"]
from inferlab.lab import submit

submit()
