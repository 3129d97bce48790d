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
# # Lab 10 · Memory optimization
#
# A *knob* is a setting of a pipeline that changes its memory. Every knob moves bytes, shrinks them, or
# computes something again. In this lab you predict a decoder's peak from shapes, measure it, simulate where
# each component's weights are, find knobs that do nothing, and choose the knobs for a budget, with proof.
#
# **Time** 60 to 75 minutes · **Points** 18, of which 5 are practice (exercises 1 and 2) · **Reading**
# [Memory optimization](../../handbook/lab10-memory-optimization.md) in the handbook, before you start

# %% tags=["parameters"]
LEARNER = ""  # your name or id, as your course knows you
MODEL = "bundled"  # "bundled" | "full" | "hub"
DEVICE = "auto"  # "auto" | "cpu" | "cuda"
SEED = 0

# %%
from inferlab.lab import start

lab = start("lab10-memory-optimization", LEARNER, MODEL, DEVICE, SEED)

# %%
import torch
from inferlab.models import load_pipeline
from inferlab.trace import trace

torch.set_grad_enabled(False)
pipe = load_pipeline(MODEL, lab.device)
pipe.set_progress_bar_config(disable=True)
vae = pipe.vae

# %% [markdown]
# ## 1 · Goal and mental model
#
# After this lab you can say of any knob which tensors it acts on, what it does to them, and what it costs.
# Two kinds of bytes fill a device:
#
# | bytes | how many | how long |
# |---|---|---|
# | **weights** | fixed by the model and its dtype | as long as the module is on the device |
# | **activations** (tensors between layers) | batch x channels x height x width x bytes per value | a moment, but at their peak the memory may not be enough |
#
# A knob can do three things to them:
#
# - **move**: the same bytes are elsewhere (offload). It costs transfers.
# - **shrink**: fewer bytes at once (slicing, tiling, a smaller batch, a narrower dtype).
# - **recompute**: some values are computed twice, so that less is held at once (the overlap of tiles,
#   checkpointing).
#
# A knob helps only if it acts on the bytes that make *your* peak. First, the weights of this pipeline:

# %%
from inferlab.lab.kits.memory.residency import component_bytes

weights = component_bytes(pipe)
for name, size in weights.items():
    print(f"{name:14} {size / 1e6:6.1f} MB of weights")

# %% [markdown]
# ![Three panels, each with two overlapping squares for two pictures; plain takes both, slicing one, tiling a
# corner of both.](../../handbook/figures/lab10-knobs.svg)
#
# *From the handbook.* The input of one pass of the decoder. Slicing cuts the batch axis; tiling cuts height
# and width and keeps the batch.

# %% [markdown]
# ## 2 · Predict
#
# The decoder's last block works at full resolution: its input has `block_out_channels[1]` channels at the
# picture's height and width. At its peak the decoder holds **three** tensors (*maps*) of that size: the
# block's input, kept for the residual; the output of the normalization; and the output of the activation
# function after it.
#
# ### Exercise 1 · The peak of a decode, from shapes
#
# *difficulty 2 of 3 · 9 minutes · 3 points*
#
# (This one is practice.) Write `decode_peak` before you measure anything.
#
# | argument | meaning |
# |---|---|
# | `batch`, `height`, `width` | of the **latents**; one place becomes 8x8 pixels |
# | `channels` | `vae.config.block_out_channels` |
# | `value_bytes` | bytes of one value: 4 for float32, 2 for float16 |
# | `slicing` | decodes one picture of the batch at a time |
# | `tiling` | decodes tiles of at most `tile` x `tile` latents, one after the other; a tile keeps the whole batch |
#
# Returns the bytes of the three maps in the largest single pass of the decoder, `int` (an error of 10% is
# accepted).
#
# <details><summary>Hint 1: a nudge</summary>
#
# Slicing changes the batch of one pass, tiling its height and width. Latents smaller than a tile stay as they
# are.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# Three maps of <code>batch * channels[1] * (8 * height) * (8 * width)</code> values, each of
# <code>value_bytes</code>. Before you multiply: with slicing the batch is 1, with tiling height and width
# are at most <code>tile</code> each.
# </details>

# %% exercise="decode-peak" provides=["decode_peak"] difficulty=2 minutes=9
def decode_peak(batch, height, width, channels, value_bytes=4, slicing=False, tiling=False, tile=16):
    """Bytes that the decoder holds at its peak, from shapes alone."""
    ### BEGIN SOLUTION
    if slicing:
        batch = 1
    if tiling:
        height, width = min(height, tile), min(width, tile)
    return 3 * batch * channels[1] * (8 * height) * (8 * width) * value_bytes
    ### END SOLUTION

# %% check="decode-peak" points=3
from inferlab.lab import Check, reference

check = Check("decode-peak", points=3)


@reference
def counted(batch, height, width, knobs=()):
    """The truth: a real decode by a thin AutoencoderKL, every live tensor counted."""
    import torch
    from inferlab.lab.kits.memory.peaks import knob, measure, thin_vae

    decoder = thin_vae()
    with knob(decoder, *knobs):
        return measure(lambda: decoder.decode(torch.ones(batch, 4, height, width)).sample)["peak"]


def forecast_peak(*shape, **options):
    got = check.plain(check.learner.decode_peak(*shape, options.pop("channels", (8, 16, 16, 24)), **options))
    check.true(isinstance(got, int | float) and not isinstance(got, bool), "return a number of bytes")
    return got


def near(got, want):
    return abs(got - want) <= 0.1 * want


with check.part("one small picture, float32", weight=1):
    got, want = forecast_peak(1, 16, 16), counted(1, 16, 16)
    ### HIDDEN TESTS
    check.true(near(got, want), f"the trace counted {want:,} bytes, you say {got:,}")
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 3 · Trace
#
# We decode two pictures of 256x256 pixels, from latents of 32x32. (The model's usual latents, 16x16, fit into
# one tile, so tiling would do nothing.) The last column says how the bytes were measured. A GPU's allocator
# records its peak. On a CPU the trace counts the bytes of all live tensors.

# %% tags=["demo"]
from inferlab.lab.kits.memory.peaks import knob, measure

big = torch.randn(2, 4, 32, 32, generator=torch.Generator().manual_seed(SEED)).to(lab.device, vae.dtype)

found = {}
for name in (None, "slicing", "tiling"):
    with knob(vae, name):
        found[name or "plain"] = measure(lambda: vae.decode(big).sample, lab.device)
print(f"two pictures of {big.shape[-1] * 8} pixels a side, {big.dtype}")
for name, got in found.items():
    print(f"{name:11} {got['peak'] / 2**20:7.1f} MiB  {got['seconds']:5.2f} s   {got['how']}")

# %% [markdown]
# **Reconcile** this with your forecast. The remaining gap is output that is kept until the end: finished
# pictures and finished tiles. (GPU: about 33% above the forecast, 60% if a pass has one picture, since
# convolutions copy their input and output.)

# %% tags=["demo"]
from inferlab.lab import when_written

with when_written("decode_peak"):
    for name, got in found.items():
        said = decode_peak(2, 32, 32, vae.config.block_out_channels, big.element_size(),
                           slicing=name == "slicing",
                           tiling=name == "tiling", tile=vae.tile_latent_min_size)
        print(f"{name:8} forecast {said / 2**20:6.1f} MiB, measured {got['peak'] / 2**20:6.1f} MiB")

# %% [markdown]
# Are the pictures the same? Slicing computes the same sums, perhaps in another order, so values differ at
# most by rounding. **Tiling is not lossless**: normalization and attention work on one tile instead of the
# whole picture. Now one picture of four scenes, twice as wide and high as the model was trained for:

# %% tags=["demo"]
from inferlab.lab import filmstrip
from inferlab.models.scenes import render, sample_scenes

four = render(sample_scenes(4, torch.Generator().manual_seed(SEED))).to(lab.device, vae.dtype)
scene = torch.cat([torch.cat(list(four[:2]), 2), torch.cat(list(four[2:]), 2)], 1)[None]
scene_latents = vae.encode(scene * 2 - 1).latent_dist.mean
whole = vae.decode(scene_latents).sample
with knob(vae, "tiling"):
    tiled = vae.decode(scene_latents).sample
shown = [(whole + 1) / 2, (tiled + 1) / 2, (tiled - whole).abs()]
print(f"largest difference {float((tiled - whole).abs().max()):.2f}, "
      f"mean {float((tiled - whole).abs().mean()):.4f}")
filmstrip([x[0].clamp(0, 1).permute(1, 2, 0).float().cpu().numpy() for x in shown],
          ["plain", "tiled", "difference"],
          title="Each tile gets other colors; the seams are only blended", size=2.2)

# %% [markdown]
# The shapes are the same, the colors are not.

# %% [markdown]
# ## 4 · Read
#
# The installed tiled decode:

# %% jupyter={"source_hidden": true}
from inferlab.lab import show_source

show_source(
    type(vae).tiled_decode,
    {
        "overlap_size = int(self.tile_latent_min_size * (1 - self.tile_overlap_factor))":
            "This is a stride, in spite of its name: the next tile begins 3/4 of a tile further on. So the "
            "last quarter is computed twice.",
        "blend_extent = int(self.tile_sample_min_size * self.tile_overlap_factor)": "The overlap, in pixels.",
        "for i in range(0, z.shape[2], overlap_size):":
            "Axes 2 and 3 are cut: height and width. Axis 0, the batch, is not.",
        "tile = z[:, :, i : i + self.tile_latent_min_size, j : j + self.tile_latent_min_size]":
            "A view; tiles at the right and lower edge are smaller.",
        "decoded = self.decoder(tile)":
            "The expensive line, once for each tile. Its activations are freed before the next tile.",
        "row.append(decoded)": "All finished tiles are kept here: this part still grows with the picture.",
        "tile = self.blend_v(rows[i - 1][j], tile, blend_extent)":
            "Two tiles gave different values for the same pixels: they are blended.",
        "result_row.append(tile[:, :, :row_limit, :row_limit])":
            "The part that the next tile covers is thrown away.",
    },
    excerpts=[("overlap_size = int(self.tile_latent_min_size", "dec = torch.cat(result_rows, dim=2)")],
    checked="0.42.1",
)

# %% [markdown]
# ## 5 · Build
#
# ### Exercise 2 · Move, shrink or recompute?
#
# *difficulty 1 of 3 · 3 minutes · 2 points*
#
# (Practice, too.) For each knob in the cell write a tuple of two sets: what it **does** (`"move"`,
# `"shrink"`, `"recompute"`), and which bytes it **touches** (`"weights"`, `"activations"`). Most sets have
# one member, some have two. "Shrink" means that there are fewer bytes at once, and not that the bytes are
# elsewhere; "recompute" means that something is computed more than once in a run. Only the last knob's run
# has a backward pass.
#
# <details><summary>Hint 1: a nudge</summary>
# What happens to the last quarter of each tile (section 4)? Which tensors have a dtype?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# Offload moves weights. Slicing and a fused kernel shrink activations. A narrower dtype
# shrinks both kinds of bytes. Two knobs have two words in their first set: they compute something twice in
# order to hold less.
# </details>

# %% exercise="knobs" provides=["classified"] difficulty=1 minutes=3
def classified():
    """Knob -> (what it does, what it touches), two sets of words."""
    # The keys: "model offload", "vae slicing", "vae tiling", "fused attention instead of explicit scores",
    # "float16 instead of float32", "gradient checkpointing (training)". Such as:
    # {"model offload": ({"..."}, {"..."}), ...}
    ### BEGIN SOLUTION
    return {
        "model offload": ({"move"}, {"weights"}),
        "vae slicing": ({"shrink"}, {"activations"}),
        "vae tiling": ({"shrink", "recompute"}, {"activations"}),
        "fused attention instead of explicit scores": ({"shrink"}, {"activations"}),
        "float16 instead of float32": ({"shrink"}, {"weights", "activations"}),
        "gradient checkpointing (training)": ({"shrink", "recompute"}, {"activations"}),
    }
    ### END SOLUTION

# %% check="knobs" points=2
from inferlab.lab import Check

check = Check("knobs", points=2)
NAMES = ("model offload", "vae slicing", "vae tiling", "fused attention instead of explicit scores",
         "float16 instead of float32", "gradient checkpointing (training)")


def answer(name):
    table = check.learner.classified()
    check.true(isinstance(table, dict) and set(table) == set(NAMES),
               f"return a dict with these keys: {', '.join(NAMES)}")
    pair = table[name]
    check.true(isinstance(pair, tuple) and len(pair) == 2 and all(isinstance(part, set) for part in pair),
               f"{name}: a tuple of two sets")
    check.true(pair[0] <= {"move", "shrink", "recompute"} and pair[1] <= {"weights", "activations"},
               f"{name}: there is a word that is not asked for")
    return pair


with check.part("every knob has two sets of the right words (graded when you hand it in)", weight=0):
    for key in NAMES:
        check.true(all(answer(key)), f"{key}: a set is empty")
### HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 3 · Which component is where?
#
# *difficulty 2 of 3 · 8 minutes · 3 points*
#
# `simulate(calls, policy, chain)` returns the events of a run, in order: `("in", name)` when a component's
# weights come to the device, `("out", name)` when they leave, `("run", name)` for the call itself. `calls`
# lists component names in the order in which they run, `chain` is a tuple of names. Two policies are written;
# write `"model"`, the hooks of `pipe.enable_model_cpu_offload()`.
#
# | `policy` | rule |
# |---|---|
# | `"none"` | nothing moves |
# | `"each call"` | a component of `chain` comes in before each of its calls and leaves right after it (accelerate's `cpu_offload`, with all weights of a module at once). A component outside `chain` is on the device from the start |
#
# With `"model"`, no component is on the device at the start. For each call:
#
# 1. The component **just before this one in `chain`** leaves, if it is on the device.
# 2. This component comes in, unless it is there already.
# 3. It runs.
#
# A component outside `chain` (such as a ControlNet) has no component before it: it comes in at its first call
# and stays. (After its call the pipeline sends out the rest. Leave that out.)
#
# <details><summary>Hint 1: a nudge</summary>
# Keep a set of the components on the device. With <code>"model"</code>, a call sends out at most one
# component: the one before it in the chain, even if others are there.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# If <code>before</code> is in the set, remove it ("out"); add this component unless it is in the set ("in").
# </details>

# %% exercise="residency" provides=["simulate"] difficulty=2 minutes=8
def simulate(calls, policy, chain):
    """The events of a run under an offload policy, a list of (what, name)."""
    events, here = [], set()  # here: with "model", the components on the device
    for name in calls:
        if policy == "none" or (policy == "each call" and name not in chain):
            events.append(("run", name))
        elif policy == "each call":
            events += [("in", name), ("run", name), ("out", name)]
        else:
            place = chain.index(name) if name in chain else 0
            before = chain[place - 1] if place else None  # the component just before this one
            ### BEGIN SOLUTION
            if before in here:
                here.remove(before)
                events.append(("out", before))
            if name not in here:
                here.add(name)
                events.append(("in", name))
            ### END SOLUTION
            events.append(("run", name))
    return events

# %% check="residency" points=3
from inferlab.lab import Check, reference

check = Check("residency", points=3)
CHAIN = ("text_encoder", "unet", "vae")


def events_of(names, policy, chain):
    got = check.learner.simulate(list(names), policy, tuple(chain))
    check.true(isinstance(got, list) and all(isinstance(e, tuple) and len(e) == 2 for e in got),
               "return a list of (what, name) tuples")
    return got


with check.part("model offload: a single component comes in and stays", weight=1):
    check.equal(events_of(["text_encoder", "text_encoder"], "model", CHAIN),
                [("in", "text_encoder"), ("run", "text_encoder"), ("run", "text_encoder")])
### HIDDEN TESTS
check.score()

# %% [markdown]
# Now a real run. accelerate can take a module's weights out of the module, keep them in a table in the CPU's
# memory, and put them in for each call. Here it does so with the UNet, also on a CPU.

# %% tags=["demo"]
from accelerate import cpu_offload
from accelerate.hooks import remove_hook_from_module
from inferlab.lab.kits.memory.residency import residency_events, residency_timeline


def draw():
    return pipe("a large red circle", num_inference_steps=2, guidance_scale=4.0, output_type="pt",
                generator=torch.Generator().manual_seed(SEED)).images


names, traced_events = tuple(weights), {}
with trace(pipe) as usual:
    first = draw()
traced_events["none"] = residency_events(usual.rows(), names, lab.device)
cpu_offload(pipe.unet, execution_device=torch.device(lab.device),
            preload_module_classes=[type(pipe.unet).__name__])
with trace(pipe) as offloaded:
    second = draw()
remove_hook_from_module(pipe.unet, recurse=True)
traced_events["each call"] = residency_events(offloaded.rows(), names, lab.device)
print("the same picture, bit for bit:", torch.equal(first, second))
print(f"one call of the UNet: {usual['unet'].ms / 2:.0f} ms plain, "
      f"{offloaded['unet'].ms / 2:.0f} ms with its weights coming and going")
pipe.unet.to(lab.device)

# %% tags=["demo"]
CHAINS = {"none": (), "each call": ("unet",), "model": ("text_encoder", "unet", "vae")}
calls = [name for what, name in traced_events["none"] if what == "run"]
with when_written("simulate"):
    runs = {}
    for policy, chain in CHAINS.items():
        mine = simulate(calls, policy, chain)
        note = (f"agrees with the trace: {mine == traced_events[policy]}" if policy in traced_events
                else "simulated only")
        runs[f"{policy} ({note})"] = (mine, set(names) - set(chain))
    display(residency_timeline(runs, weights, title="Offload holds fewer weights, and moves more bytes"))

# %% [markdown]
# Read the two numbers above each panel together: less memory, more moved bytes. Offload **does not make a run
# faster**: a component can start only after its weights have come in. (Two pictures of 512x512 with Stable
# Diffusion, measured on one H200: model offload reduced the peak from 3.28 to 1.90 GB, and one call of the
# pipeline (2 steps) took 0.78 s instead of 0.16 s.)

# %% [markdown]
# ### Exercise 4 · Find the knobs that did nothing
#
# *difficulty 2 of 3 · 4 minutes · 2 points*
#
# A pipeline can accept a knob, raise no error, and pass over the part that you mean. A knob did nothing if
# the peak stays within 1% **and** the pictures are equal bit for bit. Answer before you measure: which of
# the knobs `"attention backend"`, `"slicing"`, `"tiling"` and `"attention slicing"` do nothing in the decode
# below (its size depends on your `LEARNER`)? `idle` is the set of their names. `set_attention_backend` works
# on attention processors that have a backend setting; this VAE's `AttnProcessor2_0` has none.
# `pipe.enable_attention_slicing` works on the components that have a method for it: the UNet, not the VAE.

# %%
batch, side = ((1, 16), (2, 16), (1, 24), (2, 24))[lab.variant(4)]
print(f"{batch} picture(s) of {8 * side}x{8 * side} pixels, latents of {side}x{side}; "
      f"a tile has {vae.tile_latent_min_size}x{vae.tile_latent_min_size}")

# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
# Which of the knobs reach the VAE at all? And what is there to cut?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# Two knobs do nothing in any VAE decode. Slicing has nothing to cut in a batch of 1, tiling nothing in
# latents that fit into one tile.
# </details>

# %% exercise="idle-knob" provides=["idle"] difficulty=2 minutes=4
idle = set()  # names of knobs
### BEGIN SOLUTION
idle = {"attention backend", "attention slicing"}
if batch == 1:
    idle.add("slicing")
if side == 16:
    idle.add("tiling")
### END SOLUTION

# %% check="idle-knob" points=2
from inferlab.lab import Check, reference

check = Check("idle-knob", points=2)


def said_idle():
    names = check.learner.idle
    check.true(isinstance(names, set), "idle is a set")
    check.true(names <= {"attention backend", "slicing", "tiling", "attention slicing"},
               "idle has names of the four knobs")
    return names


with check.part("idle is a set of names (graded when you hand it in)", weight=0):
    check.true(said_idle(), "idle is empty")
### HIDDEN TESTS
check.score()

# %% tags=["demo"]
job = torch.randn(batch, 4, side, side, generator=torch.Generator().manual_seed(SEED)).to(lab.device,
                                                                                          vae.dtype)


def measure_with(name):
    with knob(vae, name):
        return measure(lambda: vae.decode(job).sample, lab.device)


plain = measure_with(None)
for name in ("attention backend", "slicing", "tiling", "attention slicing"):
    run = measure_with(name)
    print(f"{name:18} peak {run['peak'] / plain['peak']:6.1%} of plain, the same bits: "
          f"{torch.equal(run['value'], plain['value'])}")

# %% [markdown]
# ### Exercise 5 · A budget, a bottleneck, a choice
#
# *difficulty 3 of 3 · 10 minutes · 4 points*
#
# Three knobs have prices: `"slicing"` 1 (nearly free), `"tiling"` 2 (overlaps, another picture), `"offload"`
# 4 (transfers in every run). The price of a set is the sum. You get a function `estimate(knobs)`: for a tuple
# of knobs it returns `{"weights": bytes, "activations": bytes}` (`int`) on the device at the peak. Finish
# `choose(estimate, budget)`. It returns a `dict`; the bottleneck is found already:
#
# | key | value |
# |---|---|
# | `"bottleneck"` | `"weights"` or `"activations"`: the larger part without any knob |
# | `"knobs"` | the **cheapest** set of knobs whose total (weights + activations) is at most `budget`, as a sorted `list`; `None` if no set is enough |
# | `"proof"` | a `dict`: for each chosen knob, the total in bytes **without that one** knob (with the others); `{}` if no knob was chosen |
#
# Every number in a proof is above the budget; otherwise the knob was not needed.
#
# <details><summary>Hint 1: a nudge</summary>
# There are only eight sets. Sort them by price, not by length.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# Sort the sets by the sum of their prices, and take the first whose estimate
# adds up to <code>budget</code> or less. Its proof is <code>without(kept, name)</code> for each of its names.
# </details>

# %% exercise="choose" provides=["choose"] difficulty=3 minutes=10
PRICES = {"slicing": 1, "tiling": 2, "offload": 4}


def choose(estimate, budget):
    """The bottleneck, the cheapest knobs that fit the budget, and the proof that each is needed."""
    from itertools import combinations

    # all eight sets, as tuples
    sets = [kept for count in range(4) for kept in combinations(sorted(PRICES), count)]

    def without(kept, name):
        """Total bytes with the knobs of `kept` but this one."""
        return sum(estimate(tuple(other for other in kept if other != name)).values())

    plain = estimate(())
    found = {"bottleneck": max(plain, key=plain.get), "knobs": None, "proof": {}}
    ### BEGIN SOLUTION
    for kept in sorted(sets, key=lambda names: sum(PRICES[name] for name in names)):
        if sum(estimate(kept).values()) <= budget:
            found["knobs"] = list(kept)
            found["proof"] = {name: without(kept, name) for name in kept}
            break
    ### END SOLUTION
    return found

# %% check="choose" points=4
from inferlab.lab import Check, reference

check = Check("choose", points=4)
MIB = 2**20


def job_estimate(batch, side, unet=36, others=14, vae_weights=8):
    """A made-up pipeline in MiB: `unet` + `others` of weights, of which the VAE has `vae_weights`; 12 MiB
    a tile of activations."""
    def estimate(knobs):
        knobs = tuple(knobs)
        rows, area = (1 if "slicing" in knobs else batch), (16 if "tiling" in knobs else side) ** 2 / 256
        on_device = vae_weights if "offload" in knobs else unet + others
        return {"weights": on_device * MIB, "activations": round(12 * rows * area * MIB)}
    return estimate


def chosen(estimate, budget_mib):
    got = check.plain(check.learner.choose(estimate, budget_mib * MIB))
    check.true(isinstance(got, dict) and set(got) == {"bottleneck", "knobs", "proof"},
               "return a dict with bottleneck, knobs and proof")
    check.true(got["knobs"] is None or isinstance(got["knobs"], list), "knobs is a list, or None")
    return got


def wants(got, knobs, estimate):
    if got["knobs"] != knobs:
        check.fail(f"{got['knobs']} is not the cheapest set that fits")
    check.equal(got["proof"],
                {name: sum(estimate([k for k in knobs if k != name]).values()) for name in knobs})


with check.part("a roomy device and a single knob", weight=1):
    wants(chosen(job_estimate(4, 16), 80), ["slicing"], job_estimate(4, 16))
    got = chosen(job_estimate(1, 16), 500)
    ### HIDDEN TESTS
    wants(got, [], job_estimate(1, 16))
### HIDDEN TESTS
check.score()

# %% [markdown]
# Now a job and a budget of your own, with this pipeline's weights and your `decode_peak`; then the decode is
# measured with your knobs. A total a little above the budget is no failure: the estimate has only three maps.

# %% tags=["demo"]
v = lab.variant(8)
batch, side, mib = ((4, 16, 80), (1, 32, 80), (2, 32, 72), (1, 16, 48), (4, 16, 48), (1, 32, 48), (2, 32, 45),
                    (3, 32, 80))[v]
scale = sum(weights.values()) / 51_829_164  # bytes of the bundled weights: a larger model gets more
limit = round(mib * 2**20 * scale)


def card_estimate(knobs):
    """Weights and activations at the decode's peak; with offload only the VAE is there."""
    activations = decode_peak(batch, side, side, vae.config.block_out_channels, vae.dtype.itemsize,
                              "slicing" in knobs,
                              "tiling" in knobs, vae.tile_latent_min_size)
    return {"weights": weights["vae"] if "offload" in knobs else sum(weights.values()),
            "activations": activations}


print(f"{batch} picture(s) of {8 * side}x{8 * side} pixels, budget {limit / 2**20:.0f} MiB")
with when_written("choose", "decode_peak"):
    mine = choose(card_estimate, limit)
    print(mine)
    if mine["knobs"] is not None:
        latents = torch.zeros(batch, 4, side, side, device=lab.device, dtype=vae.dtype)
        with knob(vae, *[name for name in mine["knobs"] if name != "offload"]):
            run = measure(lambda: vae.decode(latents).sample, lab.device)
        total = run["peak"] + card_estimate(mine["knobs"])["weights"]
        print(f"decode measured ({run['how']}), weights counted: {total / 2**20:.1f} MiB with these knobs")

# %% [markdown]
# ## 6 · Explain
#
# Explain VAE tiling to a colleague who switches on every optimization in the docs. Describe this run: two
# pictures of 256x256 pixels, with tiling.

# %%
latents = torch.zeros(2, 4, 32, 32, device=lab.device, dtype=vae.dtype)
vae.enable_tiling()
with trace(vae) as explained:
    vae.decode(latents)
vae.disable_tiling()
explained.table(level=1)

# %% [markdown]
# In `state`, `axis` and `trade-off` you write short sentences, one a line, from the tables below: an entry of
# `who`, a verb, then an entry from that verb's row and, if you like, entries of the row `may follow`. An
# example of the form only: `tiling blends the overlaps after the decode`. Lengths are counted in latents. In
# `offload-cost:` you type what model offload makes worse, as a quantity and its direction (in the form of
# `quality down`). Lines that begin with `#` are your own notes.

# %% jupyter={"source_hidden": true}
### FIXTURE words
words

# %% [markdown]
# *difficulty 2 of 3 · 8 minutes · 4 points, one a field.* The cell shows how
# it reads each line, and that reading is graded when you hand in. One false sentence costs the field's
# point, so write only what you know. A line that the cell cannot read is graded by a person.

# %% explain="tiling-in-words" difficulty=2 minutes=8
%%explain tiling-in-words
# ### BEGIN SOLUTION
# state: tiling cuts the latents into overlapping tiles
#   the decoder decodes one tile after the other
# axis: height and width are cut from 32 to 16 in the first tile
#   the batch axis is 2 in every tile, the number of tiles is 9
# trade-off: tiling lowers the peak memory and raises the time of the decode because of the overlaps
# offload-cost: latency up
# ### END SOLUTION

# %% check="offload-cost" of="tiling-in-words" points=1
from inferlab.lab import Check

check = Check("offload-cost", points=1)
with check.part("`offload-cost:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("tiling-in-words").get("offload-cost"), "`offload-cost:` is empty")
### HIDDEN TESTS
check.score()

# %% check="tiling-state" of="tiling-in-words" points=1
from inferlab.lab import Check

check = Check("tiling-state", points=1)
with check.part("`state:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("tiling-in-words").get("state"), "`state:` is empty")
### HIDDEN TESTS
check.score()

# %% check="tiling-axis" of="tiling-in-words" points=1
from inferlab.lab import Check

check = Check("tiling-axis", points=1)
with check.part("`axis:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("tiling-in-words").get("axis"), "`axis:` is empty")
### HIDDEN TESTS
check.score()

# %% check="tiling-trade-off" of="tiling-in-words" points=1
from inferlab.lab import Check

check = Check("tiling-trade-off", points=1)
with check.part("`trade-off:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("tiling-in-words").get("trade-off"), "`trade-off:` is empty")
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7 · Notice
#
# - **Name the bytes first:** weights or activations, of which component, at which boundary? Only then choose
#   a knob.
# - **More knobs do not always save more memory.** Each has a price, and a knob that acts on other bytes than
#   your peak's saves nothing. The test is the proof of exercise 5: take the knob away, and see whether the
#   run still fits.
# - **Offload does not make a run faster.** It frees memory at the cost of transfers. It can pay off only if
#   you use that memory, for example for a larger batch.
# - **Tiling is not lossless.** Slicing changes values at most by rounding.
# - **A knob may be accepted and ignored.** Measure before and after; check the current docs for what a
#   backend supports.
#
# Say it out loud, as in an interview: which object the knob acts on, along which axis, and what it costs. All
# this is true of diffusers 0.42.

# %% [markdown]
# ## 8 · If you have more time
#
# The stated time does not count this section, and nothing that is graded needs it.
#
# ### Peak against resolution
#
# A thin copy of the decoder (a quarter of the channels, random weights, the same class) decodes up to 256x256
# in a moment. Before you run the cell: which of the three curves will be nearly flat?

# %% tags=["demo"]
from inferlab.lab.kits.memory.peaks import peak_curves, thin_vae

thin = thin_vae()
curves = {}
for name in ("plain", "slicing", "tiling"):
    with knob(thin, None if name == "plain" else name):
        curves[name] = {8 * side: measure(lambda: thin.decode(torch.zeros(2, 4, side, side)).sample)["peak"]
                        for side in (16, 24, 32)}
peak_curves(curves, title="Slicing moves the curve down, tiling bends it",
            how="live tensors, 2 pictures, thin decoder")

# %% [markdown]
# Slicing divides the peak by the batch, but the peak still grows with the area. Tiling holds the maps of one
# tile; only the finished tiles, with three channels each, still grow with the area. For comparison: Stable
# Diffusion's decoder with two 2048x2048 pictures in float16, measured on one H200, peaks at 17.2 GB plain,
# 10.2 GB with slicing and 1.15 GB with tiling. Three maps would be 12.9, 6.4 and 0.8 GB; most of the rest is
# the convolutions' copies. The page of [GPU numbers](../../handbook/gpu-numbers.md) has the table.

# %% [markdown]
# ### Model offload on a GPU
#
# `enable_model_cpu_offload` needs an accelerator; without one, the cell says so.

# %% tags=["demo"]
if lab.device == "cpu":
    try:
        pipe.enable_model_cpu_offload()
    except RuntimeError as error:
        print(f"not on this machine: {error}")
else:
    pipe.enable_model_cpu_offload()
    with trace(pipe) as chained:
        draw()
    pipe.remove_all_hooks()
    pipe.to(lab.device)
    moved = residency_events(chained.rows(), names, lab.device)
    ended = max(place for place, (what, _) in enumerate(moved) if what == "run") + 1
    # the hooks' moves; the pipeline makes the rest after its call
    with when_written("simulate"):
        print("agrees with your simulation:", simulate(calls, "model", CHAINS["model"]) == moved[:ended])
    print("sent out by the pipeline at the end of its call:", ", ".join(name for _, name in moved[ended:]))

# %% [markdown]
# ### Activations of a run
#
# The bytes of a run's activations, boundary by boundary:

# %% tags=["demo"]
from inferlab.lab.kits.memory.residency import memory_timeline

with trace(pipe, memory="tensors" if lab.device == "cpu" else "peaks") as held:
    draw()
memory_timeline(held.rows(), names,
                title="Few activations are alive at once between boundaries; the decode makes the peak")

# %% [markdown]
# ### Knobs of attention
#
# Where attention is large, its knobs do work. First the UNet at twice its usual size, with three kinds of
# attention: one fused kernel (PyTorch's `scaled_dot_product_attention`), explicit attention with the whole
# matrix of scores, and the same in slices.

# %% tags=["demo"]
from diffusers.models.attention_processor import AttnProcessor, AttnProcessor2_0

twice = 2 * pipe.unet.config.sample_size
wide = torch.randn(1, 4, twice, twice, generator=torch.Generator().manual_seed(SEED))
wide = wide.to(lab.device, pipe.unet.dtype)
words = pipe.encode_prompt("a large red circle", lab.device, 1, False)[0]
turns = {
    "fused": lambda: pipe.unet.set_attn_processor(AttnProcessor2_0()),
    "explicit": lambda: pipe.unet.set_attn_processor(AttnProcessor()),
    "sliced": lambda: pipe.enable_attention_slicing(1),
}
for name, turn in turns.items():
    turn()
    got = measure(lambda: pipe.unet(wide, 500, encoder_hidden_states=words).sample, lab.device)
    print(f"{name:8} {got['peak'] / 2**20:7.1f} MiB")
pipe.disable_attention_slicing()

# %% [markdown]
# The scores are (tokens x tokens) numbers for each head, and each place of the latents is a token: twice the
# side gives sixteen times as many scores. A fused kernel never holds them all at once. Attention slicing does
# so with more and smaller kernels, so it is for installations without a fused kernel.
#
# Now a denoiser whose processors have a **backend** setting: the bundled Flux transformer, with 512 text
# tokens and 64 picture tokens. `"native"` lets PyTorch choose a fused kernel; `"_native_math"` holds the
# whole matrix of scores.

# %% tags=["demo"]
from copy import deepcopy

from inferlab.models.quiet import quiet

flux = load_pipeline("bundled", lab.device, family="flux").transformer
bystander = deepcopy(flux)  # another model of this process, without a setting of its own
noise = torch.Generator().manual_seed(SEED)
sizes = flux.config
shapes = {"hidden_states": (1, 64, sizes.in_channels), "img_ids": (64, 3),
          "encoder_hidden_states": (1, 512, sizes.joint_attention_dim), "txt_ids": (512, 3),
          "pooled_projections": (1, sizes.pooled_projection_dim), "timestep": (1,), "guidance": (1,)}
inputs = {name: torch.rand(size, generator=noise).to(lab.device, flux.dtype) for name, size in shapes.items()}
for backend in ("native", "_native_math", "native"):
    with quiet():  # it warns each time that backends are experimental
        flux.set_attention_backend(backend)
    peaks = [measure(lambda model=model: model(**inputs).sample, lab.device)["peak"]
             for model in (flux, bystander)]
    print(f"{backend:13} {peaks[0] / 2**20:5.1f} MiB, and the bystander {peaks[1] / 2**20:5.1f} MiB")

# %% [markdown]
# The backend works, and not only where it was set: `set_attention_backend` **also changes the default of the
# whole process**, for every model without a setting of its own. `reset_attention_backend()` clears only the
# model's own setting. To restore the default, set the old backend again, as the last turn above does.

# %% [markdown]
# ## 9 · Check and hand in
#
# Run this cell last. It runs the visible checks again, says what is missing, and leaves one file to hand in.

# %% tags=["demo"]
from inferlab.lab import submit

submit()
