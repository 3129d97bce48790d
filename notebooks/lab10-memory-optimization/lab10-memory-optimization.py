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
# Every memory knob moves bytes, shrinks them, or computes something again. In this lab you predict a decoder's peak from
# shapes, measure it, simulate where each component's weights are, find a knob that does nothing, and choose the knobs for a
# budget, with proof.
#
# **Time** about 70 minutes · **Points** 22, of which 8 are practice · **Reading** handbook, *Memory optimization*

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

torch.set_grad_enabled(False)
pipe = load_pipeline(MODEL, lab.device)
pipe.set_progress_bar_config(disable=True)
vae = pipe.vae

# %% [markdown]
# ## 1 · Goal and mental model
#
# After this lab you can look at any knob of a pipeline and say which tensors it touches, what it does to them, and what it
# costs. Two kinds of bytes fill a device:
#
# | bytes | how many | how long |
# |---|---|---|
# | **weights** | fixed by the model and its dtype | as long as the module is on the device |
# | **activations** | batch x channels x height x width x bytes per value | a moment, but the peak is what runs out of memory |
#
# And a knob can do three things to them:
#
# - **move**: the same bytes, somewhere else (offload). Pays in transfers.
# - **shrink**: fewer bytes at once (slicing, tiling, a smaller batch, a narrower dtype).
# - **recompute**: some values are computed twice, so that they need not be held (the overlap of tiles, checkpointing).
#
# A knob helps only if it acts on the bytes that make *your* peak. Which are larger here?

# %%
from inferlab.lab.residency import component_bytes

weights = component_bytes(pipe)
for name, size in weights.items():
    print(f"{name:14} {size / 1e6:6.1f} MB of weights")

# %% [markdown]
# ## 2 · Predict
#
# The decoder ends at full resolution, and there it is widest: its last block receives `block_out_channels[1]` channels at the
# picture's own height and width. At its peak it holds **three** maps of that size: the block's input, kept for the residual; the
# output of the normalization; and the output of the activation function after it.
#
# ### Exercise 1 · The peak of a decode, from shapes
#
# *difficulty 2 of 3 · 10 minutes · 3 points*
#
# Write `decode_peak` before you measure anything. It is graded against traced decodes that this notebook never makes.
#
# | argument | meaning |
# |---|---|
# | `batch`, `height`, `width` | of the **latents**; a latent becomes 8x8 pixels |
# | `channels` | `vae.config.block_out_channels` |
# | `value_bytes` | bytes of one value: 4 for float32, 2 for float16 |
# | `slicing` | one picture of the batch at a time |
# | `tiling` | tiles of at most `tile` x `tile` latents, one after the other; a tile keeps the whole batch |
#
# Returns the bytes of the three maps in the largest single pass of the decoder, `int`. Everything small is left out: 10% is
# close enough.
#
# <details><summary>Hint</summary>
#
# Slicing changes what the batch of one pass is, tiling what its height and width are. Latents smaller than a tile are not
# enlarged.
# </details>

# %% exercise="decode-peak" provides=["decode_peak"] difficulty=2 minutes=10
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
    from inferlab.lab.peaks import knob, measure, thin_vae

    decoder = thin_vae()
    with knob(decoder, *knobs):
        return measure(lambda: decoder.decode(torch.ones(batch, 4, height, width)).sample)["peak"]


def forecast_peak(*shape, **options):
    got = check.learner.decode_peak(*shape, options.pop("channels", (8, 16, 16, 24)), **options)
    check.true(isinstance(got, int | float) and not isinstance(got, bool), "return a number of bytes")
    return got


def near(got, want):
    return abs(got - want) <= 0.1 * want


with check.part("one small picture, float32", weight=1):
    got, want = forecast_peak(1, 16, 16), counted(1, 16, 16)
    ### BEGIN HIDDEN TESTS
    check.mistake("this is the peak at the latents' size: the last block works on pixels, 8 to a latent and side", when=near(got * 64, want))
    check.mistake("one map is not the peak: three of them are alive at once", when=near(got * 3, want))
    check.mistake("the last block's input is wider than its output: block_out_channels[1], not [0]", when=near(got * 2, want))
    ### END HIDDEN TESTS
    check.true(near(got, want), f"the trace counted {want:,} bytes, you say {got:,}")
### BEGIN HIDDEN TESTS
with check.part("a batch of wide pictures", weight=1):
    check.true(near(forecast_peak(2, 16, 24), counted(2, 16, 24)), "batch, height and width all count")
with check.part("a full-size decoder in float16", weight=1):
    got = forecast_peak(2, 256, 256, channels=(128, 256, 512, 512), value_bytes=2, tile=64)
    want = 3 * 2 * 256 * 2048 * 2048 * 2
    check.mistake("a float16 value has 2 bytes, not 4", when=near(got, 2 * want))
    check.true(near(got, want), "this is not the peak of Stable Diffusion's decoder with two 2048x2048 pictures")
with check.part("slicing", weight=1):
    got, want = forecast_peak(3, 24, 24, slicing=True), counted(3, 24, 24, ("slicing",))
    check.mistake("slicing leaves one picture in a pass, however many there are; it does not halve the batch", when=near(got, want * 1.5))
    check.true(near(got, want) or near(got, counted(1, 24, 24)), "with slicing a pass has one picture")
with check.part("tiling", weight=2):
    got, want = forecast_peak(2, 24, 20, tiling=True), counted(2, 24, 20, ("tiling",))
    check.mistake("tiling cuts height and width; the batch stays whole", when=near(2 * got, want))
    check.true(near(got, want), "a tile has at most 16x16 latents, and the whole batch")
    check.mistake("latents that are smaller than a tile are not enlarged to one", when=near(forecast_peak(1, 8, 8, tiling=True), counted(1, 16, 16)))
    check.true(near(forecast_peak(1, 8, 8, tiling=True), counted(1, 8, 8)), "small latents have nothing to cut")
    check.true(near(forecast_peak(2, 24, 20, slicing=True, tiling=True), forecast_peak(1, 16, 16)), "both knobs: one picture's tile")
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 3 · Trace
#
# Two pictures of 256x256 pixels (latents of 32x32; the model's own 16x16 would fit into one tile, and tiling would have nothing
# to cut). The last column of the output says how the bytes were measured: a GPU's allocator is asked for its peak; on a CPU
# there is none, so the trace counts the bytes of all live tensors.

# %% tags=["demo"]
from copy import deepcopy

from inferlab.lab.peaks import knob, measure

big = torch.randn(2, 4, 32, 32, generator=torch.Generator().manual_seed(SEED)).to(lab.device, vae.dtype)

# Two knobs that no method turns: how many pictures at once, and how wide a number is.
recast = deepcopy(vae).float() if vae.dtype == torch.bfloat16 else deepcopy(vae).bfloat16()
with_other = {
    "one picture": measure(lambda: vae.decode(big[:1]).sample, lab.device),
    str(recast.dtype).removeprefix("torch."): measure(lambda: recast.decode(big.to(recast.dtype)).sample, lab.device),
}
del recast

found = {}
for name in (None, "slicing", "tiling"):
    with knob(vae, name):
        found[name or "plain"] = measure(lambda: vae.decode(big).sample, lab.device)
print(f"pictures of {big.shape[-1] * 8} pixels a side, two unless it says one, {big.dtype} unless it says another")
for name, got in (found | with_other).items():
    print(f"{name:11} {got['peak'] / 2**20:7.1f} MiB  {got['seconds']:5.2f} s   {got['how']}")

# %% [markdown]
# **Reconcile.** Beside your forecast. What is left over are pieces that wait: finished pictures, finished tiles. (On a GPU also
# copies that convolutions make in another memory order: a third more, and a little over half with one picture in a pass.)

# %% tags=["demo"]
from inferlab.lab import when_written

with when_written("decode_peak"):
    for name, got in found.items():
        said = decode_peak(2, 32, 32, vae.config.block_out_channels, big.element_size(), slicing=name == "slicing",
                           tiling=name == "tiling", tile=vae.tile_latent_min_size)
        print(f"{name:8} forecast {said / 2**20:6.1f} MiB, measured {got['peak'] / 2**20:6.1f} MiB")

# %% [markdown]
# Are the pictures the same? Slicing makes the same sums in another order at most. Tiling cuts the picture into pieces that do
# not see each other: its normalization and its attention take their means over a tile.

# %% tags=["demo"]
for name in ("slicing", "tiling"):
    apart = (found[name]["value"] - found["plain"]["value"]).abs().max()
    print(f"{name:8} largest difference from plain: {float(apart):.1e}  (pixels lie around -1 to 1)")

# %% [markdown]
# **Tiling is not lossless.** How bad it looks depends on the decoder and the picture. Here are the latents of four scenes in one
# picture twice as large as the model was trained for:

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
print(f"largest difference {float((tiled - whole).abs().max()):.2f}, mean {float((tiled - whole).abs().mean()):.4f}")
filmstrip([x[0].clamp(0, 1).permute(1, 2, 0).float().cpu().numpy() for x in shown], ["plain", "tiled", "difference"],
          title="Each tile finds colors of its own; the seams are only blended", size=2.2)

# %% [markdown]
# The shapes are the same, the colors are not: each tile is normalized by its own mean and spread, and a scene that fills
# a whole tile tells the decoder nothing of its neighbors. Other decoders are misled less, none is exact: look at yours.

# %% [markdown]
# ### Peak against resolution
#
# A thin copy of the decoder (a quarter of the channels, random weights, the same class) goes up to 256x256 in a
# moment. Before you run the cell: which of the three lines will be nearly flat?

# %% tags=["demo"]
from inferlab.lab.peaks import peak_curves, thin_vae

thin = thin_vae()
curves = {}
for name in ("plain", "slicing", "tiling"):
    with knob(thin, None if name == "plain" else name):
        curves[name] = {8 * side: measure(lambda: thin.decode(torch.zeros(2, 4, side, side)).sample)["peak"] for side in (16, 24, 32)}
peak_curves(curves, title="Slicing moves the curve down, tiling bends it", how="live tensors, 2 pictures, thin decoder")

# %% [markdown]
# Slicing divides by the batch and still grows with the area. Tiling holds one tile's maps; what still grows are the finished
# tiles that wait to be put together (three channels, which weigh more beside 16 than beside a real decoder's 256). For scale, Stable
# Diffusion's own decoder with two 2048x2048 pictures in float16, measured on one H200: 17.2 GB plain, 10.2 GB with slicing, 1.15 GB
# with tiling, in 1.00, 0.82 and 1.38 s. That is more than three maps (12.9, 6.4 and 0.8 GB): a GPU's convolutions also hold copies
# of what goes in and out in another memory order, so that four maps are the peak there, and 4¾ when a pass has one picture. The
# handbook's page *The course on a GPU* has the table.

# %% [markdown]
# ## 4 · Read
#
# The tiled decode as it is installed here.

# %% jupyter={"source_hidden": true}
from inferlab.lab import show_source

show_source(
    type(vae).tiled_decode,
    {
        "overlap_size = int(self.tile_latent_min_size * (1 - self.tile_overlap_factor))":
            "A stride, in spite of its name: the next tile begins 3/4 of a tile further on. The last quarter is computed twice.",
        "blend_extent = int(self.tile_sample_min_size * self.tile_overlap_factor)": "The overlap, in pixels.",
        "for i in range(0, z.shape[2], overlap_size):": "Axes 2 and 3 are cut: height and width. Axis 0, the batch, is not.",
        "tile = z[:, :, i : i + self.tile_latent_min_size, j : j + self.tile_latent_min_size]":
            "A view; tiles at the right and lower edge are smaller.",
        "decoded = self.decoder(tile)": "The expensive line, once for each tile. Its activations are gone before the next one.",
        "row.append(decoded)": "Finished tiles wait here, all of them: what still grows with the picture.",
        "tile = self.blend_v(rows[i - 1][j], tile, blend_extent)":
            "Two answers for the same pixels, faded into each other: they were not equal.",
        "result_row.append(tile[:, :, :row_limit, :row_limit])": "The part that the next tile covers is thrown away.",
    },
    excerpts=[("overlap_size = int(self.tile_latent_min_size", "dec = torch.cat(result_rows, dim=2)")],
    checked="0.42.1",
)

# %% [markdown]
# `vae.enable_tiling()` and `vae.enable_slicing()` set one attribute each. The pipeline's own `enable_vae_tiling` of older
# releases is gone.

# %% [markdown]
# ## 5 · Build
#
# ### Exercise 2 · Move, shrink or recompute?
#
# *difficulty 1 of 3 · 5 minutes · 2 points*
#
# For each knob say what it **does**, a set of `"move"`, `"shrink"`, `"recompute"`, and what it **touches**, a set of `"weights"`,
# `"activations"`. Most sets have one member, some have two. "Shrink" means fewer bytes at once on the device because they are
# fewer, not because they are elsewhere; "recompute" means that something is computed more than once in a run.
#
# <details><summary>Hint</summary>
# Section 4 says what happens to the last quarter of each tile. And a dtype belongs to every tensor.
# </details>

# %% exercise="knobs" provides=["classified"] difficulty=1 minutes=5
def classified():
    """Knob -> (what it does, what it touches), two sets of words."""
    ### BEGIN SOLUTION
    return {
        "model offload": ({"move"}, {"weights"}),
        "group offload": ({"move"}, {"weights"}),
        "sequential offload": ({"move"}, {"weights"}),
        "vae slicing": ({"shrink"}, {"activations"}),
        "vae tiling": ({"shrink", "recompute"}, {"activations"}),
        "attention slicing": ({"shrink"}, {"activations"}),
        "fused attention instead of explicit scores": ({"shrink"}, {"activations"}),
        "float16 instead of float32": ({"shrink"}, {"weights", "activations"}),
        "batch of 1 instead of 4": ({"shrink"}, {"activations"}),
        "gradient checkpointing (training)": ({"shrink", "recompute"}, {"activations"}),
    }
    ### END SOLUTION

# %% check="knobs" points=2
from inferlab.lab import Check

check = Check("knobs", points=2)
NAMES = ("model offload", "group offload", "sequential offload", "vae slicing", "vae tiling", "attention slicing",
         "float16 instead of float32", "batch of 1 instead of 4", "gradient checkpointing (training)",
         "fused attention instead of explicit scores")


def answer(name):
    table = check.learner.classified()
    check.true(isinstance(table, dict) and set(table) == set(NAMES), f"return a dict with these keys: {', '.join(NAMES)}")
    pair = table[name]
    check.true(isinstance(pair, tuple) and len(pair) == 2 and all(isinstance(part, set) for part in pair), f"{name}: a tuple of two sets")
    check.true(pair[0] <= {"move", "shrink", "recompute"} and pair[1] <= {"weights", "activations"}, f"{name}: there is a word that is not asked for")
    return pair


with check.part("every knob has two sets of the right words (graded when you hand it in)", weight=0):
    for key in NAMES:
        check.true(all(answer(key)), f"{key}: a set is empty")
### BEGIN HIDDEN TESTS
with check.part("the three offloads", weight=1):
    for key in NAMES[:3]:
        check.mistake(f"{key}: the bytes are as many as before, they lie elsewhere: that is no shrinking", when="shrink" in answer(key)[0])
        check.mistake(f"{key}: offload moves weights; activations stay where they are made", when="activations" in answer(key)[1])
        check.equal(answer(key), ({"move"}, {"weights"}))
with check.part("slicing and tiling of the VAE", weight=1):
    check.equal(answer("vae slicing"), ({"shrink"}, {"activations"}))
    check.mistake("vae tiling: the overlap of two tiles is decoded twice", when=answer("vae tiling") == ({"shrink"}, {"activations"}))
    check.equal(answer("vae tiling"), ({"shrink", "recompute"}, {"activations"}))
with check.part("dtype and batch", weight=1):
    check.mistake("float16: a narrower dtype holds weights and activations alike", when=len(answer(NAMES[6])[1]) == 1)
    check.equal(answer(NAMES[6]), ({"shrink"}, {"weights", "activations"}))
    check.mistake("batch: the weights are the same for one picture and for four", when="weights" in answer(NAMES[7])[1])
    check.equal(answer(NAMES[7]), ({"shrink"}, {"activations"}))
with check.part("attention and checkpointing", weight=1):
    check.equal(answer("attention slicing"), ({"shrink"}, {"activations"}))
    check.mistake("the scores are made by either way of computing them, never all at once by the fused one; the weights are the same",
                  when="weights" in answer(NAMES[9])[1])
    check.equal(answer(NAMES[9]), ({"shrink"}, {"activations"}))
    check.mistake("checkpointing computes the forward pass again; that is what it pays for its memory", when="recompute" not in answer(NAMES[8])[0])
    check.equal(answer(NAMES[8]), ({"shrink", "recompute"}, {"activations"}))
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 3 · Which component is where?
#
# *difficulty 3 of 3 · 14 minutes · 4 points*
#
# Simulate offload. In go the calls of a run, out come events in order: `("in", name)` when weights reach the device,
# `("out", name)` when they leave, `("run", name)` for the call itself. Returns a list of such tuples.
#
# | `policy` | rule |
# |---|---|
# | `"none"` | nothing moves |
# | `"each call"` | a component of `chain` comes in before each of its calls and leaves right after it (accelerate's `cpu_offload`, with all of a module's weights at once) |
# | `"model"` | what the hooks of `pipe.enable_model_cpu_offload()` do: before a component of `chain` runs, the one **just before it in `chain`** leaves, if it is on the device; then the component comes in, unless it is there already. No hook sends anything out at the end |
#
# With `"model"`, simulate the hooks only. When its call is over, the pipeline itself sends out what is still there
# (`maybe_free_model_hooks`); leave that out.
#
# `chain` is a tuple of names. All its components start off the device; a component that is not in it is always there and never
# moves. `calls` is a list of names, in the order in which they run.
#
# <details><summary>Hint</summary>
# Keep a set of what is on the device. With <code>"model"</code>, only one neighbor is ever sent out: nobody looks at who else is there.
# </details>

# %% exercise="residency" provides=["simulate"] difficulty=3 minutes=14
def simulate(calls, policy, chain):
    """The events of a run under an offload policy, a list of (what, name)."""
    ### BEGIN SOLUTION
    events, here = [], set()
    for name in calls:
        if policy == "none" or name not in chain:
            events.append(("run", name))
        elif policy == "each call":
            events += [("in", name), ("run", name), ("out", name)]
        else:
            place = chain.index(name)
            before = chain[place - 1] if place else None
            if before in here:
                here.remove(before)
                events.append(("out", before))
            if name not in here:
                here.add(name)
                events.append(("in", name))
            events.append(("run", name))
    return events
    ### END SOLUTION

# %% check="residency" points=4
from inferlab.lab import Check, reference

check = Check("residency", points=4)
CHAIN = ("text_encoder", "unet", "vae")


def events_of(names, policy, chain):
    got = check.learner.simulate(list(names), policy, tuple(chain))
    check.true(isinstance(got, list) and all(isinstance(e, tuple) and len(e) == 2 for e in got), "return a list of (what, name) tuples")
    return got


with check.part("two calls of the UNet, each with its own way in and out", weight=1):
    check.equal(events_of(["unet", "vae"], "each call", ("unet",)), [("in", "unet"), ("run", "unet"), ("out", "unet"), ("run", "vae")])
### BEGIN HIDDEN TESTS
@reference
def recorded():
    """The truth: a real run with accelerate's offload of the UNet, its moves traced."""
    import torch
    from accelerate import cpu_offload
    from inferlab.lab.residency import residency_events
    from inferlab.models import load_pipeline
    from inferlab.trace import trace

    pipe = load_pipeline("bundled", "cpu")
    pipe.set_progress_bar_config(disable=True)
    cpu_offload(pipe.unet, execution_device=torch.device("cpu"), preload_module_classes=[type(pipe.unet).__name__])
    with trace(pipe) as run:
        pipe("a red circle", num_inference_steps=3, guidance_scale=4.0, height=64, width=64)
    return residency_events(run.rows(), ("text_encoder", "unet", "vae"), "cpu")


with check.part("as a real offloaded run was traced", weight=2):
    truth = recorded()
    got = events_of([name for what, name in truth if what == "run"], "each call", ("unet",))
    check.mistake("with this policy the weights leave after each call, not at the end of the run", when=[e for e in got if e[0] == "in"] == [("in", "unet")])
    check.equal(got, truth)
with check.part("nothing moves with policy none", weight=1):
    check.equal(events_of(["text_encoder", "unet", "vae"], "none", CHAIN), [("run", "text_encoder"), ("run", "unet"), ("run", "vae")])
with check.part("model offload: one way in for a whole loop", weight=2):
    got = events_of(["text_encoder", "text_encoder", "unet", "unet", "vae"], "model", CHAIN)
    check.mistake("the UNet stays for the whole loop: what is on the device does not come in again", when=got.count(("in", "unet")) == 2)
    check.mistake("no hook sends the last component out: it stays after its call", when=got[-1:] == [("out", "vae")])
    check.equal(got, [("in", "text_encoder"), ("run", "text_encoder"), ("run", "text_encoder"), ("out", "text_encoder"), ("in", "unet"),
                      ("run", "unet"), ("run", "unet"), ("out", "unet"), ("in", "vae"), ("run", "vae")])
with check.part("model offload: only the neighbor in the chain is sent out", weight=2):
    got = events_of(["unet", "vae", "unet", "text_encoder"], "model", CHAIN)
    check.mistake("the second call of the UNet looks at the text encoder only: the VAE stays, and both are on the device",
                  when=("out", "vae") in got)
    check.equal(got, [("in", "unet"), ("run", "unet"), ("out", "unet"), ("in", "vae"), ("run", "vae"), ("in", "unet"), ("run", "unet"),
                      ("in", "text_encoder"), ("run", "text_encoder")])
### END HIDDEN TESTS
check.score()

# %% [markdown]
# Now a real run. On any machine accelerate can hold a module's weights back and hand them in for each call, and we let it do so with
# the UNet: while it is out, its parameters are placeholders on the `meta` device. `enable_model_cpu_offload` needs an
# accelerator; where there is none, it says so, and so does this cell.

# %% tags=["demo"]
from accelerate import cpu_offload
from accelerate.hooks import remove_hook_from_module
from inferlab.lab.residency import residency_events, residency_timeline
from inferlab.trace import trace


def draw():
    return pipe("a large red circle", num_inference_steps=2, guidance_scale=4.0, output_type="pt",
                generator=torch.Generator().manual_seed(SEED)).images


names, traced_events = tuple(weights), {}
with trace(pipe) as usual:
    first = draw()
traced_events["none"] = residency_events(usual.rows(), names, lab.device)
cpu_offload(pipe.unet, execution_device=torch.device(lab.device), preload_module_classes=[type(pipe.unet).__name__])
with trace(pipe) as offloaded:
    second = draw()
remove_hook_from_module(pipe.unet, recurse=True)
traced_events["each call"] = residency_events(offloaded.rows(), names, lab.device)
print("the same picture, bit for bit:", torch.equal(first, second))
print(f"one call of the UNet: {usual['unet'].ms / 2:.0f} ms plain, {offloaded['unet'].ms / 2:.0f} ms with its weights on the way")

# Sequential offload is the same hook at every layer: the weights come in piece by piece.
cpu_offload(pipe.unet, execution_device=torch.device(lab.device))
with trace(pipe) as piecewise:
    third = draw()
remove_hook_from_module(pipe.unet, recurse=True)
pipe.unet.to(lab.device)
pieces = sum(row["name"].endswith("pre_forward") for row in piecewise.rows())
print(f"layer by layer: {pieces // 2} hooks a call, {piecewise['unet'].ms / 2:.0f} ms; the same picture: {torch.equal(first, third)}")

# %% tags=["demo"]
if lab.device == "cpu":
    try:
        pipe.enable_model_cpu_offload()
    except RuntimeError as error:
        print(f"not on this machine: {error}. Its row in the picture below is your simulation.")
    print("Group offload copies groups of layers ahead on a stream of their own; a CPU has none. What it did on a GPU is in the handbook.")
else:
    pipe.enable_model_cpu_offload()
    with trace(pipe) as chained:
        draw()
    pipe.remove_all_hooks()
    pipe.to(lab.device)
    moved = residency_events(chained.rows(), names, lab.device)
    ended = max(place for place, (what, _) in enumerate(moved) if what == "run") + 1
    traced_events["model"] = moved[:ended]  # the hooks' moves; the rest is the pipeline's, when its call is over
    print("sent out by the pipeline at the end of its call:", ", ".join(name for _, name in moved[ended:]))

    at_home, pipe.unet = pipe.unet, deepcopy(pipe.unet)
    pipe.unet.enable_group_offload(torch.device(lab.device), torch.device("cpu"), offload_type="leaf_level", use_stream=True)
    with trace(pipe) as grouped:
        draw()
    pipe.unet = at_home
    print(f"group offload: {grouped['unet'].ms / 2:.0f} ms a call; its copies run ahead of the layers, and no move stands in the trace")

# %% tags=["demo"]
CHAINS = {"none": (), "each call": ("unet",), "model": ("text_encoder", "unet", "vae")}
calls = [name for what, name in traced_events["none"] if what == "run"]
with when_written("simulate"):
    runs = {}
    for policy, chain in CHAINS.items():
        mine = simulate(calls, policy, chain)
        note = f"agrees with the trace: {mine == traced_events[policy]}" if policy in traced_events else "simulated only"
        runs[f"{policy} ({note})"] = (mine, set(names) - set(chain))
    display(residency_timeline(runs, weights, title="Offload trades a lower floor for bytes on the way"))

# %% [markdown]
# That is the weights. The activations of the same run, boundary by boundary:

# %% tags=["demo"]
from inferlab.lab.residency import memory_timeline

with trace(pipe, memory="tensors" if lab.device == "cpu" else "peaks") as held:
    draw()
memory_timeline(held.rows(), names, title="Between its boundaries a run holds almost nothing; the decode is its peak")

# %% [markdown]
# Offload leaves this picture as it is, and slicing and tiling leave the other one as it is: look which of the two is your problem.
#
# Read the two numbers over each panel of the first picture together. Offload **never makes a run faster**: a component's weights have to come in before
# it can start. A picture of 512x512 with Stable Diffusion, measured on one H200: model offload took the peak from 2.4 to 1.8 GB,
# and the run from 0.73 to 1.66 s.

# %% [markdown]
# ### Exercise 4 · Find the knob that did nothing
#
# *difficulty 2 of 3 · 8 minutes · 3 points*
#
# A knob can be accepted, raise nothing, and be ignored. Write `did_nothing(measure_with, knobs)`:
#
# * `measure_with(name)` makes one run with that knob and returns `{"peak": bytes, "pictures": tensor}`; `measure_with(None)` is the
#   run without any;
# * it returns the list of those `knobs`, in their order, that changed neither the peak (by more than 1%, up or down) **nor a single
#   bit** of the pictures.
#
# <details><summary>Hint</summary>
# A knob that leaves the peak alone may still have changed the sums, and one that leaves every bit alone may save memory.
# <code>torch.equal</code> compares bits.
# </details>

# %% exercise="idle-knob" provides=["did_nothing"] difficulty=2 minutes=8
def did_nothing(measure_with, knobs):
    """The knobs that changed neither the peak nor any bit of the pictures."""
    ### BEGIN SOLUTION
    plain = measure_with(None)
    idle = []
    for name in knobs:
        run = measure_with(name)
        same_peak = abs(run["peak"] - plain["peak"]) <= 0.01 * plain["peak"]
        if same_peak and torch.equal(run["pictures"], plain["pictures"]):
            idle.append(name)
    return idle
    ### END SOLUTION

# %% check="idle-knob" points=3
import torch
from inferlab.lab import Check, reference

check = Check("idle-knob", points=3)
PLAIN = torch.linspace(-1, 1, 48).reshape(1, 3, 4, 4)


def asked(cases):
    """What the learner says of made-up runs: name -> (peak, pictures)."""
    table = {None: (1000, PLAIN), **cases}
    got = check.learner.did_nothing(lambda name: {"peak": table[name][0], "pictures": table[name][1].clone()}, list(cases))
    check.true(isinstance(got, list), "return a list of names")
    return got


with check.part("one knob that saves, one that does nothing", weight=1):
    check.equal(asked({"saves": (400, PLAIN + 1e-6), "idle": (1000, PLAIN)}), ["idle"])
### BEGIN HIDDEN TESTS
with check.part("the same peak, but other bits", weight=1):
    got = asked({"order of sums": (1000, PLAIN + 1e-6), "idle": (1004, PLAIN)})
    check.mistake("a knob that changed the pictures by rounding was at work: compare bits", when="order of sums" in got)
    check.equal(got, ["idle"])
with check.part("the same bits, but another peak", weight=2):
    got = asked({"saves": (700, PLAIN), "wastes": (1500, PLAIN), "idle": (1000, PLAIN)})
    check.mistake("a knob can save memory without touching a bit: look at the peak, too", when="saves" in got)
    check.mistake("a knob that makes the peak higher did something, too", when="wastes" in got)
    check.equal(got, ["idle"])


@reference
def real_runs(batch, side):
    """Knob -> (peak, pictures) of a thin AutoencoderKL's decode."""
    import torch
    from inferlab.lab.peaks import knob, measure, thin_vae

    decoder = thin_vae()
    latents = torch.randn(batch, 4, side, side, generator=torch.Generator().manual_seed(1))
    found = {}
    for name in (None, "attention backend", "slicing", "tiling", "attention slicing"):
        with knob(decoder, name):
            got = measure(lambda: decoder.decode(latents).sample)
        same = name is not None and torch.allclose(got["value"], found[None][1], atol=1e-3)
        found[name] = (got["peak"], found[None][1] if same else got["value"])  # rounding differs between machines: put aside
    return found


with check.part("real decodes", weight=2):
    for batch, side, busy in ((1, 16, set()), (2, 16, {"slicing"}), (1, 24, {"tiling"})):
        runs_made = real_runs(batch, side)
        order = ["attention backend", "slicing", "tiling", "attention slicing"]
        got = check.learner.did_nothing(lambda name: {"peak": runs_made[name][0], "pictures": runs_made[name][1]}, order)
        check.mistake("this VAE's attention processor never asks which backend is set: that knob did nothing",
                      when=isinstance(got, list) and "attention backend" not in got)
        check.equal(got, [name for name in order if name not in busy])
### END HIDDEN TESTS
check.score()

# %% [markdown]
# Your own job, by your name. Two of the four knobs are idle for a structural reason: diffusers' set_attention_backend looks for
# processors that can be told, and this VAE's `AttnProcessor2_0` cannot; `enable_attention_slicing` reaches only components that
# have the method, the UNet but not the VAE.

# %% tags=["demo"]
batch, side = ((1, 16), (2, 16), (1, 24), (2, 24))[lab.variant(4)]
job = torch.randn(batch, 4, side, side, generator=torch.Generator().manual_seed(SEED)).to(lab.device, vae.dtype)


def measure_with(name):
    with knob(vae, name):
        run = measure(lambda: vae.decode(job).sample, lab.device)
    return {"peak": run["peak"], "pictures": run["value"]}


with when_written("did_nothing"):
    print(f"{batch} picture(s) of {8 * side}x{8 * side} pixels; idle knobs:",
          ", ".join(did_nothing(measure_with, ["attention backend", "slicing", "tiling", "attention slicing"])))

# %% [markdown]
# Where attention is large, its knobs are not idle. The UNet at twice its own size: one fused kernel (PyTorch's
# `scaled_dot_product_attention`), attention written out with its whole matrix of scores, and that matrix in slices.

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
predicted = {}
for name, turn in turns.items():
    turn()
    got = measure(lambda: pipe.unet(wide, 500, encoder_hidden_states=words).sample, lab.device)
    predicted[name] = got["value"]
    apart = float((got["value"] - predicted["fused"]).abs().max())
    print(f"{name:8} {got['peak'] / 2**20:7.1f} MiB   largest difference from fused {apart:.0e}")
pipe.disable_attention_slicing()

# %% [markdown]
# The scores are (tokens x tokens) numbers for each head, and tokens are pixels of the latents: twice the side is sixteen
# times the scores. A fused kernel never holds them at once. That is why attention slicing, which does the
# same by hand and takes longer, is a knob for old installations.

# %% [markdown]
# ### Exercise 5 · A budget, a bottleneck, a choice
#
# *difficulty 3 of 3 · 14 minutes · 4 points*
#
# Three knobs and their prices: `"slicing"` 1 (nearly free), `"tiling"` 2 (overlaps, another picture), `"offload"` 4 (bytes on the way
# in every run). Prices add up. You get `estimate(knobs)`: for a tuple of knobs it returns `{"weights": bytes, "activations": bytes}`,
# what is on the device at the peak, as `int`. Write `choose(estimate, budget)`. It returns a `dict`:
#
# | key | value |
# |---|---|
# | `"bottleneck"` | `"weights"` or `"activations"`: the larger part with no knob at all |
# | `"knobs"` | the **cheapest** set of knobs whose total (weights + activations) is at most `budget`, as a sorted `list`; `None` if no set is enough |
# | `"proof"` | for each chosen knob, the total in bytes **without that one** knob (the others kept); `{}` if there is nothing to prove |
#
# Every number in a proof must lie above the budget: otherwise the knob was not needed. That is the whole argument against
# stacking every optimization.
#
# <details><summary>Hint</summary>
# There are only eight sets. <code>itertools.combinations</code> makes them; sort by price. A single expensive knob may cost more than two
# cheap ones.
# </details>

# %% exercise="choose" provides=["choose"] difficulty=3 minutes=14
PRICES = {"slicing": 1, "tiling": 2, "offload": 4}


def choose(estimate, budget):
    """The bottleneck, the cheapest knobs that fit the budget, and the proof that each is needed."""
    ### BEGIN SOLUTION
    from itertools import combinations

    plain = estimate(())
    found = {"bottleneck": max(plain, key=plain.get), "knobs": None, "proof": {}}
    sets = [kept for count in range(4) for kept in combinations(sorted(PRICES), count)]
    for kept in sorted(sets, key=lambda names: sum(PRICES[name] for name in names)):
        if sum(estimate(kept).values()) <= budget:
            found["knobs"] = list(kept)
            found["proof"] = {name: sum(estimate(tuple(k for k in kept if k != name)).values()) for name in kept}
            break
    return found
    ### END SOLUTION

# %% check="choose" points=4
from inferlab.lab import Check, reference

check = Check("choose", points=4)
MIB = 2**20


def job_estimate(batch, side, unet=36, others=14, vae_weights=8):
    """A made-up pipeline in MiB: `unet` + `others` of weights, of which the VAE has `vae_weights`; 12 MiB a tile of activations."""
    def estimate(knobs):
        knobs = tuple(knobs)
        rows, area = (1 if "slicing" in knobs else batch), (16 if "tiling" in knobs else side) ** 2 / 256
        on_device = vae_weights if "offload" in knobs else unet + others
        return {"weights": on_device * MIB, "activations": round(12 * rows * area * MIB)}
    return estimate


def chosen(estimate, budget_mib):
    got = check.learner.choose(estimate, budget_mib * MIB)
    check.true(isinstance(got, dict) and set(got) == {"bottleneck", "knobs", "proof"}, "return a dict with bottleneck, knobs and proof")
    check.true(got["knobs"] is None or isinstance(got["knobs"], list), "knobs is a list, or None")
    return got


def wants(got, knobs, estimate):
    if got["knobs"] != knobs:
        check.fail(f"{got['knobs']} is not the cheapest set that fits")
    check.equal(got["proof"], {name: sum(estimate([k for k in knobs if k != name]).values()) for name in knobs})


with check.part("a roomy device and a single knob", weight=1):
    wants(chosen(job_estimate(4, 16), 80), ["slicing"], job_estimate(4, 16))
    got = chosen(job_estimate(1, 16), 500)
    ### BEGIN HIDDEN TESTS
    check.mistake("everything fit without a knob: stacking them all pays for nothing", when=got["knobs"] and len(got["knobs"]) == 3)
    ### END HIDDEN TESTS
    wants(got, [], job_estimate(1, 16))
### BEGIN HIDDEN TESTS
with check.part("one large picture, several large pictures", weight=1):
    wants(chosen(job_estimate(1, 32), 80), ["tiling"], job_estimate(1, 32))
    wants(chosen(job_estimate(4, 32), 75), ["slicing", "tiling"], job_estimate(4, 32))
with check.part("two cheap knobs beat one expensive one", weight=1):
    estimate = job_estimate(2, 32, unet=80, others=20, vae_weights=10)
    got = chosen(estimate, 115)
    check.mistake("offload alone fits too, and costs more than slicing and tiling together", when=got["knobs"] == ["offload"])
    wants(got, ["slicing", "tiling"], estimate)
with check.part("where the weights are the bottleneck", weight=2):
    for batch, side, budget, knobs in ((1, 16, 48, ["offload"]), (4, 16, 48, ["offload", "slicing"]), (2, 32, 45, ["offload", "tiling"]),
                                       (4, 32, 45, ["offload", "slicing", "tiling"])):
        wants(chosen(job_estimate(batch, side), budget), knobs, job_estimate(batch, side))
with check.part("the bottleneck by its name", weight=1):
    check.mistake("the larger part without any knob is the bottleneck", when=chosen(job_estimate(1, 16), 48)["bottleneck"] == "activations")
    check.equal([chosen(job_estimate(*shape), 75)["bottleneck"] for shape in ((1, 16), (4, 32))], ["weights", "activations"])
with check.part("a budget that nothing fits", weight=1):
    got = chosen(job_estimate(4, 32), 10)
    check.mistake("no set of knobs fits this budget: say so with None", when=got["knobs"] is not None)
    check.equal(got["proof"], {})


@reference
def measured_totals():
    """Knobs -> bytes of a thin decoder's weights and of its activations, measured; two pictures of 256x256."""
    import torch
    from inferlab.lab.peaks import knob, measure, thin_vae

    decoder = thin_vae()
    size = sum(t.numel() * t.element_size() for t in decoder.parameters())
    found = {}
    for names in ((), ("slicing",), ("tiling",), ("slicing", "tiling")):
        with knob(decoder, *names):
            peak = measure(lambda: decoder.decode(torch.ones(2, 4, 32, 32)).sample)["peak"]
        found[names] = {"weights": size, "activations": peak}
    return found


with check.part("your own budget, on a measured decode", weight=1):
    totals = measured_totals()

    def measured_estimate(knobs):
        return totals[tuple(name for name in sorted(knobs) if name != "offload")]  # the VAE itself must be there to decode

    budget, knobs = ((30, []), (16, ["slicing"]), (10, ["tiling"]), (7, ["slicing", "tiling"]))[check.variant(4)]
    wants(chosen(measured_estimate, budget), knobs, measured_estimate)
### END HIDDEN TESTS
check.score()

# %% [markdown]
# Your card, with this pipeline's weights and your own forecast of its decode. Then the proof that counts: the decode itself,
# measured with the knobs that you chose. The weights beside it are counted, as in your forecast.

# %% tags=["demo"]
v = lab.variant(8)
batch, side, mib = ((4, 16, 80), (1, 32, 80), (2, 32, 72), (1, 16, 48), (4, 16, 48), (1, 32, 48), (2, 32, 45), (3, 32, 80))[v]
scale = sum(weights.values()) / 51_829_164  # another model: a budget in proportion
limit = round(mib * 2**20 * scale)


def card_estimate(knobs):
    """Weights and activations at the decode's peak; with offload only the VAE is there."""
    activations = decode_peak(batch, side, side, vae.config.block_out_channels, vae.dtype.itemsize, "slicing" in knobs,
                              "tiling" in knobs, vae.tile_latent_min_size)
    return {"weights": weights["vae"] if "offload" in knobs else sum(weights.values()), "activations": activations}


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
# *difficulty 2 of 3 · 10 minutes · 6 points: 3 for the typed lines, 3 for the sentences*
#
# Explain VAE tiling to a colleague who switches on every optimization that the docs list. Speak of this run: two pictures of
# 256x256 pixels, with tiling.

# %%
from inferlab.trace import trace

latents = torch.zeros(2, 4, 32, 32, device=lab.device, dtype=vae.dtype)
vae.enable_tiling()
with trace(vae) as explained:  # %%explain looks the numbers of your answer up in the newest trace that has a name
    vae.decode(latents)
vae.disable_tiling()
explained.table(level=1)

# %% [markdown]
# | line | what it says |
# |---|---|
# | `state:` | one or two sentences: which object tiling cuts, and what decodes the pieces |
# | `axis:` | one or two sentences: which axes are cut and which is not, with numbers of this run |
# | `trade-off:` | one or two sentences: what you gain and what you pay when you switch tiling on |
# | `shape:` | typed: the shape of the first tile that the decoder was given |
# | `calls:` | typed: calls of the decoder for the same two pictures with slicing **and** tiling (a prediction: not a number of this trace) |
# | `offload-gain:` | typed, a quantity and its direction, in the form `quality up`: what model offload improves |
# | `offload-cost:` | typed: what it makes worse |

# %% explain="tiling-in-words" difficulty=2 minutes=10
%%explain tiling-in-words
# ### BEGIN SOLUTION
# state: Tiling splits the latents into overlapping tiles, and the decoder decodes one tile after the other.
# axis: Height and width are cut from 32 to tiles of 16 latents; the batch of 2 stays whole, so the decoder gets (2, 4, 16, 16)
#   in the first of 9 calls.
# trade-off: Tiling lowers the peak memory of the decode, but it takes longer because the overlaps are computed twice.
# shape: (2, 4, 16, 16)
# calls: 18
# offload-gain: memory down
# offload-cost: latency up
# ### END SOLUTION

# %% check="tiling-shape" of="tiling-in-words" points=1
from inferlab.lab import Check

check = Check("tiling-shape", points=1)
with check.part("`shape:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("tiling-in-words").get("shape"), "`shape:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import typed

with check.part("the first tile that the decoder was given"):
    told = check.explanation("tiling-in-words")
    check.mistake("tiling cuts height and width, the batch stays whole", when=typed(told, "shape", (1, 4, 16, 16)).verdict == "award")
    check.mistake("this is the whole of the latents, before the cut", when=typed(told, "shape", (2, 4, 32, 32)).verdict == "award")
    outcome = typed(told, "shape", (2, 4, 16, 16))
    check.true(outcome.verdict == "award", outcome.reason)
### END HIDDEN TESTS
check.score()

# %% check="tiling-calls" of="tiling-in-words" points=1
from inferlab.lab import Check

check = Check("tiling-calls", points=1)
with check.part("`calls:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("tiling-in-words").get("calls"), "`calls:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import typed

with check.part("decoder calls with slicing and tiling"):
    told = check.explanation("tiling-in-words")
    check.mistake("this is tiling alone: slicing does it all once for each picture", when=typed(told, "calls", 9).verdict == "award")
    check.mistake("tiles overlap: the stride is 12 latents, not 16", when=typed(told, "calls", 8).verdict == "award")
    outcome = typed(told, "calls", 18)
    check.true(outcome.verdict == "award", outcome.reason)
### END HIDDEN TESTS
check.score()

# %% check="offload-gain-cost" of="tiling-in-words" points=1
from inferlab.lab import Check

check = Check("offload-gain-cost", points=1)
with check.part("`offload-gain:` and `offload-cost:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("tiling-in-words").get("offload-gain"), "`offload-gain:` is empty")
    check.true(check.explanation("tiling-in-words").get("offload-cost"), "`offload-cost:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import typed

check.slot(lambda: typed(check.explanation("tiling-in-words"), "offload-gain", ("memory down",)), "what model offload improves")
check.slot(lambda: typed(check.explanation("tiling-in-words"), "offload-cost", ("latency up", "transfer up", "throughput down")),
           "what model offload makes worse")
### END HIDDEN TESTS
check.score()

# %% check="tiling-state" of="tiling-in-words" points=1
from inferlab.lab import Check

check = Check("tiling-state", points=1)
with check.part("`state:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("tiling-in-words").get("state"), "`state:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import Rubric, Slot, grade, terms

SHAPES = {"latents": (2, 4, 32, 32), "tiles": [(2, 4, 16, 16), (2, 4, 16, 8), (2, 4, 8, 16), (2, 4, 8, 8)], "picture": (2, 3, 256, 256)}
RUBRIC = Rubric(
    question="Explain VAE tiling to a colleague who switches on every optimization that the docs list. Which object tiling cuts, and "
    "what decodes the pieces.",
    lab="Axes 2 and 3 are cut: height and width. Axis 0, the batch, is not. The expensive line, once for each tile. Finished tiles wait "
    "here, all of them.",
    terms={
        **terms("latents", "vae", "tiles", "image", latents="+z, input of the decode*", image="+output"),
        "tiling": '"tiling", vae tiling, tiled decode',
        "weights": "weights, parameters, layers, model weights",
        "unet": "unet*, denoiser",
        "prompt": "prompt*, embedding*",
    },
    slots={
        "state": Slot(
            learned="lab10 state 10759dd9389b0f3b",
            award=["vae decodes/makes/splits latents", "tiling splits/decodes latents", "* splits latents + * decodes latents",
                   "* splits latents", "* splits latents + vae decodes/makes/uses tiles or vae makes image or vae decodes *"],
            loose=True,
            deny={
                "* moves weights": "Tiling moves nothing: it cuts the latents.",
                "says: output is the object, decoder's output is, output is what, latents .. enter/enters .. whole, latents .. whole .. single call": "The latents are cut, before they are decoded.",
                "* splits weights": "The weights are not cut; the latents are.",
                "weights go/pass/enter vae": "The weights are not cut; the latents are.",
                "unet decodes latents": "The UNet does not decode; the VAE does.",
                "unet decodes tiles": "The UNet does not decode; the VAE does.",
                "* splits unet": "The UNet is finished before the decode; the latents are cut.",
                "says: tile/piece/window gets/is denoised, tiles/pieces/windows get/are denoised, unet denoises, denoising for/of every/each": "The UNet is finished before the decode: the VAE decodes each tile.",
                "says: another/other/second/own gpu, several/multiple/two gpus, into channels, each/every channel": "All pieces go through the one decoder, cut along height and width.",
                "says: encoder of the vae, vae encoder, encoder compresses, text encoder decodes, which/that the scheduler/unet denoises, scheduler denoises .. tile/piece/window": "The VAE's decoder takes the pieces, after all steps.",
                "says: do not overlap, don't overlap": "The tiles overlap, and the seams are faded into each other.",
                "says: one picture/image at a time, picture/image by picture/image, picture/image after picture/image": "That is slicing, which cuts the batch.",
                "says: decoder/vae of its own, own decoder/vae, copy/copies of the vae/decoder": "One decoder takes all tiles, one after the other.",
                "says: tiles/pieces/windows/patches together/simultaneously, in one call as, as a/one big/single/large batch": "The tiles are decoded one after the other: that is what saves memory.",
                "* splits image": "The picture is not there yet: the latents are cut, before they are decoded.",
                "* splits prompt": "The prompt has no part in the decode.",
            },
            topic=["latents"],
        )
    },
    must_award={
        "state": [
        "The latent gets chopped up into overlapping squares and the decoder works through them one after another.",
        "Tiling slices up the latents spatially, then each slice goes through the VAE's decoder on its own.",
        "the vae decodes lots of small latent patches rather than the whole latent",
            "Tiling splits the latents into overlapping tiles, and the decoder decodes one tile after the other.",
            "The latents are split into tiles, which the VAE decodes one by one.",
        ]
    },
    must_deny={
        "state": [
        "The model weights are divided into tiles.",
        "Tiling cuts the finished image in tiles.",
            "Tiling moves the weights of the VAE to the CPU.",
            "Tiling splits the weights of the decoder into tiles.",
            "Tiling cuts the latents, and each tile gets denoised by the UNet.",
            "The latents are cut into tiles and the decoder takes all tiles together as one big batch.",
            "The latents are split and each tile has a decoder of its own.",
            "Tiling cuts the latents and sends each piece to another GPU, where the VAE decodes it.",
            "Tiling splits the latents so that the VAE decodes one picture at a time.",
            "Tiling splits the UNet and its parts decode the latents.",
        ]
    },
)
check.slot(lambda: grade(check.explanation("tiling-in-words"), RUBRIC, SHAPES)["state"], "what tiling cuts, and what decodes it")
### END HIDDEN TESTS
check.score()

# %% check="tiling-axis" of="tiling-in-words" points=1
from inferlab.lab import Check

check = Check("tiling-axis", points=1)
with check.part("`axis:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("tiling-in-words").get("axis"), "`axis:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import Amounts, Rubric, Slot, grade, terms

SHAPES = {"latents": (2, 4, 32, 32), "pictures": (2, 3, 256, 256), "piece": (2, 3, 128, 128)}
RUBRIC = Rubric(
    question="Which axes are cut and which is not, with numbers of this run.",
    lab="Axes 2 and 3 are cut: height and width. Axis 0, the batch, is not.",
    terms={
        **terms("latents", "vae", "batch", "channels", "spatial", "tiles", latents="+z", batch="batch*, batch axis, batch dimension, batch size, axis 0, dimension 0, dim 0, first axis, first dimension, leading dimension, leading axis, picture*, image*, sample*",
                spatial="+last axes, axis with index 2, axes with index 2 and 3, directions, axes 2 3, rows, row, wide, high, across"),
        "calls": "call*, passes, pass",
        "weights": "weights, parameters",
        "starts": "start*, offset*, begin*",
        # what slicing does is said beside what tiling does not do
        "slicing": "slicing, vae slicing, slicing would split, slicing would cut, slicing would separate, slicing splits, slicing cuts, slicing separates, "
                   "splitting .. slicing's job, splitting .. is slicing, splitting .. be slicing, "
                   "cutting .. slicing's job, cutting .. is slicing, cutting .. be slicing, to cut it would be slicing",
    },
    slots={
        "axis": Slot(
            learned="lab10 axis 2bee2f7ff2be273b",
            amounts=Amounts(
                shapes=[(2, 4, 16, 16), (2, 4, 32, 32), (16, 16), (32, 32), (3, 3)],
                counts={"batch": 2, "spatial": [32, 16, 12, 8, 256, 128, 2, 3], "tiles": [9, 16, 3, 12, 1, 2], "calls": [9, 2], "channels": [4, 3], "starts": [0, 12, 24]},
                key=["spatial", "tiles", "calls"],
                of={"tiles": [(2, 4, 16, 16), (2, 4, 16, 8), (2, 4, 8, 16), (2, 4, 8, 8), (16, 16), (8, 8), (3, 3), (32, 32)],
                    "latents": [(2, 4, 32, 32), (2, 4, 16, 16), (16, 16), (32, 32), (3, 3)]},
                moves=[(32, 16), ((32, 32), (16, 16))],
            ),
            loose=True,
            topic=["spatial", "tiles"],
            deny={
                "* splits batch": "The batch is not cut: that would be slicing.",
                "says: neither height nor width, neither width nor height, height and width stay/remain/keep, height and width are/is kept, height and width .. stay":
                    "Height and width are what is cut.",
                "* splits channels": "The channels stay together.",
                "says: channels/channel/batch gets/get/was/were cut/split/divided/halved, batch of 2/two is/was/gets cut/split/divided/halved, so is the batch, so are the channels, "
                "only the height/width is, height/width stays whole, of the finished picture/image, left alone is/are height/width, one picture/image at a time": "Height and width are cut; the batch and the channels stay whole.",
                "says: never mix/mixes neighbours/neighbors, not mix neighbours/neighbors": "A convolution mixes neighbours: that is why the tiles overlap.",
                "says: batch is cut/split/halved too, batch cut/split/halved too, batch .. cut from, channel axis is cut/split, channels are cut/split, height and width are not cut, no overlap, from 32 to 8, 32 becomes 8": "Height and width are cut, with an overlap; the rest stays whole.",
                "* splits weights": "The weights are not cut.",
            },
        )
    },
    must_award={
        "axis": [
        "Height and width, the last two axes: 32 becomes 16 per tile. Batch size 2 is left alone.",
        "It's the spatial dims which get divided, 9 tiles of at most 16x16, and both images are always processed together.",
            "Height and width are cut from 32 to tiles of 16 latents; the batch of 2 stays whole, so the decoder gets (2, 4, 16, 16).",
            "The spatial axes are split: height and width go from 32 to 16.",
            "Height and width are cut into 9 tiles of 16; the batch stays 2, as only slicing would split it.",
            "Axes 2 and 3 are cut from 32 to 16. The batch stays 2: cutting that would be slicing.",
            "Along each spatial axis the tiles start at 0, 12 and 24 and are up to 16 wide, the batch of 2 stays.",
        ]
    },
    must_deny={
        "axis": [
        "The batch is split, one image at a time.",
        "Channels are cut from 4 to 1.",
        "Height and width are cut from 32 to 16, and so is the batch.",
        "Only the height is cut, from 32 to 16.",
        "Height and width are cut to 16 because the batch of 2 was cut before.",
        "Tiling splits the batch axis from 2 into 1.", "Height and width are split into 25 tiles."],
    },
)
check.slot(lambda: grade(check.explanation("tiling-in-words"), RUBRIC, SHAPES)["axis"], "which axes are cut, with numbers")
### END HIDDEN TESTS
check.score()

# %% check="tiling-trade-off" of="tiling-in-words" points=1
from inferlab.lab import Check

check = Check("tiling-trade-off", points=1)
with check.part("`trade-off:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("tiling-in-words").get("trade-off"), "`trade-off:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import Rubric, Slot, Trend, grade

RUBRIC = Rubric(
    question="What you gain and what you pay when you switch tiling on.",
    lab="Tiling is not lossless. Two answers for the same pixels, faded into each other: they were not equal.",
    terms={
        "tiling": '"tiling", vae tiling, tiled decode, "tiled"',
        "vae": "decoder, vae*",
    },
    slots={"trade-off": Slot(
        learned="lab10 trade-off a963e0c051c87c4c",
        deny={"says: fewer weights, memory for/of the weights, prompt is followed, follow/follows the prompt, pay/pays with transfers, transfer of weights, transfers between cpu, weights need/take/use less, part of the weights": "Tiling moves nothing and leaves the weights alone.",
              "says: weights are/is loaded/cut/split/divided, weights in pieces, between cpu, cpu and gpu, moved/moves .. cpu/disk, half precision, lower precision, fewer bits, float16, 16 bits, one picture/image at a time, unet needs/takes/uses/runs": "Those are other knobs: tiling decodes the latents in pieces.",
              "says: scaled down, downscaled, downsampled, resized": "No tile is made smaller: each is decoded at its full size.",
              "says: same to the last bit, picture/image/output/result stays/remains same/identical/unchanged, so they agree, tiling is lossless, pay nothing, takes/needs the same time, same speed, for free, seams exactly correct, makes it exact, is/are/stays bit-identical, output is identical, bit for bit the same": "Tiles overlap, and each normalizes by itself."},
        trend=Trend(
        "tiling", gain={"memory": "down"}, cost={"time": "up", "compute": "up", "quality": "down"}, switch=True, asked="up",
        says={"memory down": "only one tile, feature maps shrink, activations stay small, activations are small, small activations, smaller activation*, "
                             "fits on .. card/gpu/device, peak .. single tile/window/piece, for small square only, memory .. quarter, peak .. quarter, gain/win/save/buy .. memory, less ram",
              "quality down": "output quality suffers, quality suffers, not .. lossless, no longer .. identical/lossless/exact, isn't .. same/identical/lossless/exact, not .. same/identical/exact, slightly different, "
                              "a little different, picture/image/colors/colours/pixels change*, visible border*/seam*/edge*, seam*, each tile/window/piece/square normali*, "
                              "every tile/window/piece/square .. own normalization, own statistics, own mean, only an approximation, slightly wrong, slightly off, "
                              "don't .. agree, do not .. agree, blended, isn't/not .. bit-equal/bit-identical/equal, differences of/in color/colour, color/colour shift*, shift* colors/colours, visible differences, shows differences, different pixels, another picture/image, changes .. picture/image/pixels/colors/colours, not quite the same",
              "compute up": "repeated work, redundant work, .. picture/image/latents/pixels/borders/edges twice, more latents decoded, overlap* .. twice/again/recomputed/redone/repeated, decoded .. twice, decoded more than once, decoded two times, computed twice, "
                            "9 decoder calls/passes, nine decoder calls/passes, nine passes, nine calls, 9 calls/passes, extra decoding, decoding work, overlap* costs, for the overlap*, recomputed overlap*, because .. overlap*"},
    ))},
    must_award={
        "trade-off": [
        "You need a lot less memory at once, but it takes longer and seams may show.",
        "Memory peak is way down, runtime is up a bit and the output is not bit-identical.",
            "Tiling lowers the peak memory of the decode, but it takes longer because the overlaps are computed twice.",
            "It needs less memory, but the decode is slower.",
        ]
    },
    must_deny={
        "trade-off": [
        "It is faster and uses less memory.",
        "Tiling uses more memory but is faster.",
            "Tiling lowers the peak memory and makes the decode faster.",
            "Tiling raises the peak memory and makes the decode slower.",
            "The peak memory falls and it takes longer, while the picture stays same to the last bit.",
            "The memory falls since the tiles are moved to the CPU, and the transfers make it slower.",
            "You save memory but lose sharpness, since every tile is scaled down before it is decoded.",
        ]
    },
)
check.slot(lambda: grade(check.explanation("tiling-in-words"), RUBRIC, {})["trade-off"], "what tiling gains and costs")
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7 · Notice
#
# - **Name the bytes first.** Weights or activations, of which component, at which boundary: only then a knob.
# - **More knobs are not more memory.** Each has a price; a knob that acts on other bytes than your peak pays it for nothing.
#   Your proof of exercise 5 is the test: take it away, and see whether the run still fits.
# - **Offload is not speed.** It buys room with transfers. Only when the room lets you do something else (a larger batch) can the
#   whole come out ahead.
# - **Tiling is not lossless,** and slicing differs by rounding at most.
# - **A knob may be accepted and ignored.** Measure before and after; check the current docs for what a backend supports.
#
# Say it out loud, as in an interview: which object the knob acts on, along which axis, and what it costs. These are facts of
# diffusers 0.42; the annotated source in section 4 says so when your version differs.

# %% [markdown]
# ## 8 · Check and hand in
#
# Run this cell last. It runs the visible checks again, says what is missing, and leaves one file to hand in.

# %% tags=["demo"]
from inferlab.lab import submit

submit()
