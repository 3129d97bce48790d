# %% [markdown]
# # Lab 08 · LoRA
#
# A LoRA is a small file that gives a large model a new style. You predict what it adds to a run and to the
# memory, compute by hand what it does to one projection, and repair a service that fuses its adapters into
# the weights.
#
# **Time** 35 to 45 minutes without the reading · **Points** 12, of which 3 are practice (exercise 2) ·
# **Reading** [LoRA](../../handbook/lab08-lora.md), before you start

# %% tags=["parameters"]
LEARNER = ""  # your name or id, as your course knows you
MODEL = "bundled"  # "bundled" | "full" | "hub"
DEVICE = "auto"  # "auto" | "cpu" | "cuda"
SEED = 0

# %% [markdown]
# Grading always uses `"bundled"`, a small trained model, on the CPU. With `"full"` and `"hub"` the adapters
# have random factors: calls, shapes and bytes are real, styles mean nothing.

# %%
from inferlab.lab import start

lab = start("lab08-lora", LEARNER, MODEL, DEVICE, SEED)

# %%
import tempfile
from pathlib import Path

import torch
from diffusers import DDIMScheduler
from inferlab.models import load_pipeline
from inferlab.models.adapters import style_folder
from inferlab.models.quiet import quiet

torch.set_grad_enabled(False)
pipe = load_pipeline(MODEL, lab.device)
pipe.scheduler = DDIMScheduler.from_config(pipe.scheduler.config, clip_sample=False)
pipe.set_progress_bar_config(disable=True)
scratch = tempfile.TemporaryDirectory(prefix="lab08-", ignore_cleanup_errors=True)
folder = style_folder(MODEL, pipe.unet, Path(scratch.name))
ENDS = ("to_q", "to_k", "to_v", "to_out.0")  # the four projections of an attention
bare = {name: layer.weight.clone() for name, layer in pipe.unet.named_modules() if name.endswith(ENDS)}
weights_before = sum(p.numel() for p in pipe.unet.parameters())
print(f"{len(bare)} projections in a UNet of {weights_before:,} weights")

# %% [markdown]
# ## 1 · Goal and mental model
#
# A **LoRA** (low-rank adapter) leaves the matrix `W` of a linear layer unchanged. It adds the output of two
# thin matrices beside it:
#
# $$y = x\,W^\top + s\,\frac{\alpha}{r}\,(x\,A^\top)\,B^\top$$
#
# | symbol | what it is | shape, or where it is set |
# |---|---|---|
# | `W` | the layer's trained matrix | `(out, in)` |
# | `A`, `B` | the two factors, learned. In the file: `lora.down`, `lora.up` | `(r, in)` and `(out, r)` |
# | `r` | the **rank**, the length of the axis between the factors | in the file's header |
# | `alpha` | a constant that scales the product | in the file's header |
# | `s` | the adapter's **weight**: how much of it you want in this run | `set_adapters` |
#
# We load two adapters that were trained for the bundled model. `punched` gives every shape a round hole,
# `meadow` adds a green strip at the bottom. (`quiet()` hides two harmless warnings: the files have nothing
# for the text encoder, and an adapter is already loaded.)

# %%
with quiet():
    for style in ("punched", "meadow"):
        pipe.load_lora_weights(folder, weight_name=f"{style}.safetensors", adapter_name=style)

# %% [markdown]
# `set_adapters` says which adapters act, and how strongly. Pictures, each from the same two noises:

# %%
from inferlab.lab import filmstrip
from inferlab.models.scenes import shows_holes, shows_meadow

side = pipe.unet.config.sample_size
noises = torch.randn(2, 4, side, side, generator=torch.Generator().manual_seed(SEED))
noises = noises.to(lab.device, pipe.unet.dtype)


def drawn(punched, meadow):
    """Two pictures, (2, 3, H, W) in [0, 1], with the adapters at these weights."""
    pipe.set_adapters(["punched", "meadow"], [float(punched), float(meadow)])
    return pipe(["a large blue square on a gray background"] * 2, num_inference_steps=10, latents=noises,
                guidance_scale=4.0, output_type="pt").images.float().cpu()

# %% tags=["demo"]
weights = [(0, 0), (1, 0), (0, 1), (1, 1)]
strips = [drawn(*pair) for pair in weights]
if MODEL == "bundled":  # the judges know the bundled model's scenes
    for pair, images in zip(weights, strips, strict=True):
        print(f"punched, meadow = {pair}: holes in {int(shows_holes(images).sum())} of 2, "
              f"a meadow in {int(shows_meadow(images).sum())} of 2")
filmstrip([images[0].permute(1, 2, 0).numpy() for images in strips],
          [f"{a:g}, {b:g}" for a, b in weights], "Weights of punched and meadow", size=1.4)

# %% [markdown]
# Together the two adapters disturb each other.
#
# ![Two rows of one scene, a blue square on gray, at five weights. In the first row a hole appears
# between 0.5 and 0.75; in the second row a green strip comes between 0.5 and 1; at 2 the scenes are
# spoilt.](../../handbook/figures/lab08-weights.svg)
#
# *From the handbook.* One adapter at a time, at five weights. Half of a weight does not give half of a style:
# what is added to a *layer's* output is proportional to the weight, the picture is not. Between a layer and
# the picture lie 22 attentions and ten steps.

# %% [markdown]
# ## 2 · Predict
#
# ### Exercise 1 · What does an adapter add?
#
# *difficulty 2 of 3 · 5 minutes · 3 points*
#
# **Before you run anything further**, say how often the factors are called in a run, and how many numbers the
# adapters add. It is graded on runs that this notebook never makes: other adapters, other ranks, fused or
# not. Write two statements:
#
# * `factors`: the calls of all `A` and all `B` together;
# * `added`: how many more numbers the UNet holds in memory than without adapters.
#
# | argument | meaning |
# |---|---|
# | `steps` | passes of the loop, `int`, with one call of the UNet in each pass |
# | `weights` | a list of `float`, one for each loaded adapter: `set_adapters` was called with these |
# | `rank` | the rank of every adapter, `int` |
# | `shapes` | the `(out, in)` of each projection that has an adapter, a list of tuples of `int` |
# | `fused` | `bool`: `pipe.fuse_lora()` was called before the run |
#
# <details><summary>Hint 1: a nudge</summary>
#
# Does a layer's forward check whether a weight is 0? Which matrices does a fused layer multiply with? And
# which tensors does `unfuse_lora` need, so that it can subtract?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# Unfused, each projection calls <code>A</code> and <code>B</code> of each active adapter in each step, at any
# weight, also 0. Fused, it calls none of them. The factors stay in memory in both cases.
# </details>

# %% exercise="forecast" provides=["forecast"] difficulty=2 minutes=5
def forecast(steps, weights, rank, shapes, fused):
    """Calls of all factors in a run, and the numbers that the adapters add to the memory."""
    of_one_adapter = sum(rank * (high + wide) for high, wide in shapes)  # numbers in all its A and B
    ### BEGIN SOLUTION
    factors = 0 if fused else 2 * steps * len(shapes) * len(weights)
    added = len(weights) * of_one_adapter
    ### END SOLUTION
    return {"factors": factors, "added": added}

# %% [markdown]
# ## 3 · Trace
#
# A run with both adapters and three steps. We trace inside one projection: the key projection of a
# cross-attention in the middle of the UNet.

# %%
from inferlab.trace import trace

LAYER = "mid_block.attentions.0.transformer_blocks.0.attn2.to_k"
ONE = [f"unet.{LAYER}", f"unet.{LAYER}.*"]


def call():
    """One picture in three steps."""
    return pipe("a red circle", num_inference_steps=3, guidance_scale=4.0, latents=noises[:1])


pipe.set_adapters(["punched", "meadow"], [1.0, 0.5])
with trace(pipe, depth=ONE) as beside:
    call()
for boundary in beside.find(f"unet.{LAYER}*")[:8]:
    print(f"{boundary.name.removeprefix(f'unet.{LAYER}') or '(to_k)':22}",
          *boundary.inputs.values(), "->", boundary.outputs)

# %% [markdown]
# This is one call of this projection. Each text token goes through `base_layer` (the old `to_k` with its `W`)
# and through each adapter: down to 4 numbers, and up to `W`'s. Now the same run, fused:

# %%
pipe.fuse_lora()
with trace(pipe, depth=ONE) as fused:
    call()
print("holds", sum(p.numel() for p in pipe.unet.parameters()) - weights_before, "numbers more than before")
pipe.unfuse_lora()
for difference in beside.diff(fused):
    if difference.kind != "slower":  # times are not what we ask for
        print(difference.kind, difference.name.removeprefix(f"unet.{LAYER}"))

# %% [markdown]
# The calls of the factors are gone, and no new call replaces them: `W` has the same shape and other values.
# The factors are still in memory.
#
# **Reconcile.** The next cell makes the unfused run again and counts the calls of all factors. Compare
# `forecast(3, [1.0, 0.5], 4, [tuple(w.shape) for w in bare.values()], False)`.

# %% tags=["demo"]
with trace(pipe, depth="all") as whole:
    call()
print("factors", len(whole.find("*.lora_A.*")) + len(whole.find("*.lora_B.*")), "calls")
print("UNet   ", len(whole.find("unet")), "calls")

# %% check="forecast" points=3
from inferlab.lab import Check, reference

check = Check("forecast", points=3)

def ask_forecast(*call):
    """The learner's forecast of a call, once it has the form that the contract asks for."""
    got = check.learner.forecast(*call)
    check.true(isinstance(got, dict) and set(got) == {"factors", "added"},
               "return a dict with the keys factors and added")
    return {key: check.number(value, f"{key} is a whole number") for key, value in got.items()}

with check.part("one opened projection of the first run: three passes, two adapters", weight=1):
    check.equal(ask_forecast(3, [1.0, 0.5], 4, [(144, 192)], False)["factors"], 12)
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 4 · Read
#
# The library peft wraps each projection in a layer of its own. Its `forward`, as installed:

# %% jupyter={"source_hidden": true}
from inferlab.lab import show_source
from peft.tuners.lora import Linear

show_source(
    Linear.forward,
    {
        "elif self.merged:": "Fused: only the old layer runs. A weight that you set now has no effect here.",
        "for active_adapter in self.active_adapters:": "Adapter after adapter, in the order in which they "
                                                       "were set.",
        "result = result + lora_B(lora_A(dropout(x))) * scaling":
            "The formula. scaling is s * alpha / r; the code does not test whether it is 0.",
    },
    excerpts=[("elif self.merged:", "result = result + lora_B(lora_A(dropout(x))) * scaling")],
    checked="0.21.2",
)

# %% [markdown]
# `set_adapters` says which adapters are active, and sets their `scaling`, a number. No matrix changes, fused
# or not. Fusing adds the product of the factors, times `scaling`, to `W`.

# %% [markdown]
# ## 5 · Build
#
# ### Exercise 2 · One projection by hand
#
# *difficulty 2 of 3 · 4 minutes · 3 points*
#
# The tensors of one projection in an adapter's file, and the header:

# %%
import json

from safetensors import safe_open

with safe_open(folder / "punched.safetensors", "pt") as file:
    header = file.metadata()
    tensors = {name: file.get_tensor(name) for name in file.keys()}
for name, tensor in tensors.items():
    if LAYER in name:
        print(name, tuple(tensor.shape), tensor.dtype)
settings = json.loads(header["lora_adapter_metadata"])
print({name: settings[name] for name in ("unet.r", "unet.lora_alpha", "unet.target_modules")})

# %% [markdown]
# `delta(tensors, header, layer, weight)` returns the matrix that the adapter, at this `weight`, adds to the
# matrix of the projection `layer` (a name like `LAYER`): float32, shape `(out, in)`, computed in float32.
# `tensors` and `header` are as in the cell above.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Which of the two factors must be on the left, so that the product has the shape `(out, in)`? (For a square
# matrix the wrong order has the right shape, too.)
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# The delta is <code>(up @ down)</code> times <code>weight * alpha / rank</code>.
# </details>

# %% exercise="delta" provides=["delta"] difficulty=2 minutes=4
def delta(tensors, header, layer, weight):
    """What an adapter with this weight adds to a projection's matrix, (out, in) float32."""
    down = tensors[f"unet.{layer}.lora.down.weight"].float()
    up = tensors[f"unet.{layer}.lora.up.weight"].float()
    settings = json.loads(header["lora_adapter_metadata"])
    alpha, rank = settings["unet.lora_alpha"], settings["unet.r"]
    ### BEGIN SOLUTION
    return weight * alpha / rank * (up @ down)
    ### END SOLUTION

# %% check="delta" points=3
import json

import torch
from inferlab.lab import Check, close

check = Check("delta", points=3)

def small_file(rank, alpha, high, wide):
    """Tensors and header of an adapter for one projection named a.to_q, drawn from a seed."""
    draw = torch.Generator().manual_seed(rank)
    factors = {"unet.a.to_q.lora.down.weight": torch.randn(rank, wide, generator=draw).half(),
               "unet.a.to_q.lora.up.weight": torch.randn(high, rank, generator=draw).half()}
    said = {"unet.r": rank, "unet.lora_alpha": alpha}
    return factors, {"format": "pt", "lora_adapter_metadata": json.dumps(said)}

with check.part("`delta` where it can be done in the head", weight=1):
    ones = {"unet.a.to_q.lora.down.weight": torch.ones(2, 5).half(),
            "unet.a.to_q.lora.up.weight": torch.ones(3, 2).half()}
    mine = check.learner.delta(ones, small_file(2, 2, 3, 5)[1], "a.to_q", 1.0)
    check.tensor(mine, shape=(3, 5), dtype=torch.float32)
    check.close(mine, torch.full((3, 5), 2.0))
### HIDDEN TESTS
check.score()

# %% [markdown]
# Does peft add the same? The projection in the pipeline, with and without the adapter, on random text
# vectors:

# %% tags=["demo"]
from inferlab.lab import when_written

with when_written("delta"):
    layer = pipe.unet.get_submodule(LAYER)
    pipe.set_adapters(["punched"], [0.7])
    text = torch.randn(1, 16, layer.in_features, generator=torch.Generator().manual_seed(1))
    text = text.to(lab.device, pipe.unet.dtype)
    theirs = (layer(text) - layer.base_layer(text)).float().cpu()
    ours = text.float().cpu() @ delta(tensors, header, LAYER, 0.7).T
    print(f"size of what is added {theirs.std():.3f}, largest difference {(ours - theirs).abs().max():.1e}")

# %% [markdown]
# A matrix has `out · in` numbers, its two factors `r · (out + in)`. A matrix of 4,096 by 4,096 has 32 MiB in
# float16, its factors at rank 16 have 0.25 MiB (handbook). The smaller the matrix, the less is saved.

# %% [markdown]
# ### Does unfusing restore every bit?
#
# (In the folded cell, `changed` compares the matrices with the old ones, and `put_back` copies the old ones
# into the layers.)

# %% jupyter={"source_hidden": true}
def changed():
    """(share of numbers that differ, largest difference) of the matrices now and the old ones."""
    pairs = [(pipe.unet.get_submodule(name).base_layer.weight, old) for name, old in bare.items()]
    count = sum(int((a != b).sum()) for a, b in pairs)
    return count / sum(a.numel() for a, _ in pairs), max(float((a - b).abs().max()) for a, b in pairs)


def put_back():
    """Copy the kept matrices into the layers."""
    for name, weight in bare.items():
        pipe.unet.get_submodule(name).base_layer.weight.copy_(weight)

# %%
put_back()  # section 3 has fused already
pipe.set_adapters(["punched", "meadow"], [1.0, 0.5])
for moment, act in (("fused", pipe.fuse_lora), ("fused and taken out", pipe.unfuse_lora)):
    act()
    share, largest = changed()
    print(f"{moment:20} {share:5.1%} of the numbers differ from the old ones, by at most {largest:.1e}")
put_back()

# %% [markdown]
# `(W + d) - d` is sure to be `W` only if `W + d` needed no rounding. In float16 and bfloat16 more is lost.
# For the same reason `(W + a) + b` and `(W + b) + a` may differ in bits.

# %% [markdown]
# ### Exercise 3 · A service that keeps its adapters fused
#
# *difficulty 3 of 3 · 7 minutes · 3 points*
#
# A service draws hundreds of pictures in one style before it changes to another, so it fuses its adapters. At
# its start it copies all matrices. It knows four **events**:
#
# * `("set", wanted)`, `("fuse",)` and `("unfuse",)` call `pipe.set_adapters` (with the names and weights of
#   the dict `wanted`), `pipe.fuse_lora` (all active adapters that are not fused yet) and `pipe.unfuse_lora`;
# * `("copy back",)` copies the kept matrices into the layers. peft does not know about it.
#
# In the folded cell, `carry_out` does what the events say, `fused_share()` tells how much of `punched` is in
# a matrix, and `start_again()` takes everything out.

# %% jupyter={"source_hidden": true}
def carry_out(events):
    """Does to the pipeline what the events say."""
    for event in events:
        if event[0] == "set":
            pipe.set_adapters(list(event[1]), list(event[1].values()))
        elif event[0] == "copy back":
            put_back()
        else:
            with quiet():  # peft warns if none is fused, or all are
                {"fuse": pipe.fuse_lora, "unfuse": pipe.unfuse_lora}[event[0]]()


def fused_share():
    """How much of `punched` is in the matrix of LAYER: 1 is its whole delta."""
    layer = pipe.unet.get_submodule(LAYER)
    part = layer.lora_B["punched"].weight.float() @ layer.lora_A["punched"].weight.float() * 2
    moved = layer.base_layer.weight.float() - bare[LAYER].float()
    return float((moved * part).sum() / part.square().sum())


def start_again():
    """Nothing is fused, and the matrices are the old ones."""
    carry_out([("unfuse",), ("copy back",)])

# %% [markdown]
# A colleague wrote the events for a change to other weights:

# %%
def colleague_change(wanted):
    """The events, in order, after which the adapters are fused at the weights `wanted`."""
    return [("set", wanted), ("unfuse",), ("fuse",)]


carry_out([("set", {"punched": 1.0}), ("fuse",)])
print(f"at the start:     share of punched {fused_share():.2f}")
for weight in (0.5, 0.0):
    carry_out(colleague_change({"punched": weight}))
    print(f"changed to {weight}:   share of punched {fused_share():.2f}")
start_again()

# %% [markdown]
# No error, but the matrix has not changed: 1.0 - 0.5 + 0.5, then 1.0 - 0.0 + 0.0. What `unfuse_lora`
# subtracts:

# %% jupyter={"source_hidden": true}
show_source(
    Linear.unmerge,
    {
        "delta_weight = self.get_delta_weight(active_adapter)":
            "No old matrix was kept. The product is computed again, with the scaling that is set now ...",
        "weight.data -= delta_weight.to(orig_dtype)": "... and subtracted. When is the result W?",
    },
    excerpts=[("while len(self.merged_adapters) > 0:", "weight.data -= delta_weight.to(orig_dtype)")],
    checked="0.21.2",
)

# %% [markdown]
# "Then unfuse first," says the colleague, "and all is well." Will it be, after many changes in float16?
#
# Write `change(wanted)`, which returns the list of events. After these events, and after **any number** of
# earlier changes, all matrices must be **bit for bit** those of a fresh pipeline after `("set", wanted)` and
# `("fuse",)`. `wanted` names every loaded adapter, some perhaps at 0.0. At the first call of `change`,
# perhaps nothing is fused yet.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Which event removes the rounding errors? And if it were the only event before fusing: which adapters would
# peft then treat as already fused?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# First <code>unfuse</code>, so that peft knows that nothing is fused; the matrices are not exact after it.
# Then <code>copy back</code> makes them exact. Then <code>set</code> and <code>fuse</code>, as for a fresh
# pipeline.
# </details>

# %% exercise="change" provides=["change"] difficulty=3 minutes=7
def change(wanted):
    """The events, in order, after which the adapters are fused at the weights `wanted`, to the bit."""
    ### BEGIN SOLUTION
    return [("unfuse",), ("copy back",), ("set", wanted), ("fuse",)]
    ### END SOLUTION

# %% check="change" points=3
import torch
from inferlab.lab import Check
from inferlab.models.quiet import quiet

check = Check("change", points=3)

def service(changes, ask, dtype):
    """(matrix before, matrix after the changes) of one projection of a real peft model with two adapters."""
    from peft import LoraConfig, inject_adapter_in_model

    kept = torch.randn(12, 8, generator=torch.Generator().manual_seed(4)).to(dtype)
    model = torch.nn.Sequential(torch.nn.Linear(8, 12, bias=False).to(dtype))
    model[0].weight.data.copy_(kept)
    with quiet():
        for adapter in ("punched", "meadow"):
            inject_adapter_in_model(LoraConfig(r=2, lora_alpha=4, target_modules=["0"]), model, adapter)
    held = model[0]
    for seed, factors in enumerate((held.lora_A, held.lora_B)):
        for number, adapter in enumerate(("punched", "meadow")):
            draw = torch.Generator().manual_seed(10 * seed + number)
            drawn_factor = torch.randn(factors[adapter].weight.shape, generator=draw) / 2
            factors[adapter].weight.data = drawn_factor.to(dtype)
    for asked_for in changes:
        told = ask(dict(asked_for))
        check.true(isinstance(told, list) and all(isinstance(one, tuple) and one for one in told),
                   'return a list of tuples such as ("fuse",)')
        for one in told:
            check.true(one[0] in ("set", "fuse", "unfuse", "copy back"), f"{one[0]!r} is none of the events")
            with quiet():
                if one[0] == "set":
                    held.set_adapter(list(one[1]))
                    for adapter, amount in one[1].items():
                        held.set_scale(adapter, amount)
                elif one[0] == "copy back":
                    held.base_layer.weight.data.copy_(kept)
                else:
                    {"fuse": held.merge, "unfuse": held.unmerge}[one[0]]()
    return kept, held.base_layer.weight.data

def as_fresh(asked_for):
    """What a fresh pipeline does."""
    return [("set", asked_for), ("fuse",)]

with check.part("one change, from 1.0 to 0.5", weight=1):
    halves = [{"punched": 1.0, "meadow": 0.0}, {"punched": 0.5, "meadow": 0.0}]
    kept, now = service(halves, check.learner.change, torch.float32)
    wanted_now = service(halves[1:], as_fresh, torch.float32)[1]
    moved = float(((now - kept) * (wanted_now - kept)).sum() / (wanted_now - kept).square().sum())
    check.true(abs(moved - 1) < 1e-3, f"{moved:.2f} times what was wanted is in the matrix")
### HIDDEN TESTS
check.score()

# %% tags=["demo"]
with when_written("change"):
    for weight in (1.0, 0.5, 0.0):
        carry_out(change({"punched": weight, "meadow": 0.0}))
        print(f"changed to {weight}:   share of punched {fused_share():.2f}")
    start_again()

# %% [markdown]
# ### Hot swap
#
# A service that does not fuse can replace the factors instead. `hotswap=True` copies another file's numbers
# into the existing tensors, so a compiled UNet is not compiled again. (Files of different rank: see the
# handbook.)

# %% tags=["demo"]
factor = pipe.unet.get_submodule(LAYER).lora_A["punched"].weight
first = float(factor[0, 0])
with quiet():
    pipe.load_lora_weights(folder, weight_name="meadow.safetensors", adapter_name="punched", hotswap=True)
print("same tensor:", pipe.unet.get_submodule(LAYER).lora_A["punched"].weight is factor,
      "  same numbers:", float(factor[0, 0]) == first)
with quiet():  # and back: the name `punched` would now draw meadows
    pipe.load_lora_weights(folder, weight_name="punched.safetensors", adapter_name="punched", hotswap=True)

# %% [markdown]
# ## 6 · Explain
#
# Say what an adapter is. In the fields `beside` and `rank` you write short sentences, one a line, from the
# tables below: an entry of `who`, a verb, an entry of its row and, if you like, entries of a row `may
# follow`. In `calls` you type how often all factors together ran in the last run of section 3, **the counted
# one**. Lines that begin with `#` are notes.

# %% jupyter={"source_hidden": true}
### FIXTURE words
words

# %% [markdown]
# *difficulty 1 of 3 · 3 minutes · 3 points.* The cell shows how it reads each line, and that reading is
# graded when you hand in. One false sentence costs its field all points, so write only what you know. A line
# that the cell cannot read is graded by a person.

# %% explain="lora-in-words" difficulty=1 minutes=3
%%explain lora-in-words
# ### BEGIN SOLUTION
# beside: an unfused adapter adds to the outputs of projections in each call
# rank: a larger rank raises the bytes of the factors
#   it leaves alone the size of the picture
# calls: 1056
# ### END SOLUTION

# %% check="words-state" of="lora-in-words" points=1
from inferlab.lab import Check

check = Check("words-state", points=1)
with check.part("`beside:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("lora-in-words").get("beside"), "`beside:` is empty")
### HIDDEN TESTS
check.score()

# %% check="words-rank" of="lora-in-words" points=1
from inferlab.lab import Check

check = Check("words-rank", points=1)
with check.part("`rank:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("lora-in-words").get("rank"), "`rank:` is empty")
### HIDDEN TESTS
check.score()

# %% check="words-entries" of="lora-in-words" points=1
from inferlab.lab import Check, reference

check = Check("words-entries", points=1)
with check.part("`calls:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("lora-in-words").get("calls"), "`calls:` is empty")
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7 · Notice
#
# * **An adapter has no input of its own,** unlike lab 09's ControlNet. It changes all answers of the UNet.
# * **The rank is an axis between two factors.** Latents, pictures and fused matrices do not have it.
# * **Fused, an adapter costs no time,** and as much memory as unfused: the factors stay. It is harder to
#   change.
# * **Sums of rounded numbers depend on their order and dtype.** So taking out does not restore every bit.

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
