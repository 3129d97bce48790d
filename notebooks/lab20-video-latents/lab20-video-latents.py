# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Lab 20 · Video latents
#
# A video model does not make one picture after the other. It denoises a whole clip at once, as one tensor
# with an axis for time, and then decodes it piece by piece. In this lab you take a real `WanPipeline` apart:
# what the axes of its latents are, which frames depend on which, and what a longer clip really costs.
# You write the convolution with which a decoder can work through a clip in pieces, and you find a fault in
# time from a trace.
#
# **Time** 50 to 60 minutes · **Points** 17, of which 3 are practice · **Reading**
# [Video latents](../../handbook/lab20-video-latents.md) in the handbook, before you start

# %% tags=["parameters"]
LEARNER = ""  # your name or id, as your course knows you
MODEL = "bundled"  # "bundled" | "full" | "hub"
DEVICE = "auto"  # "auto" | "cpu" | "cuda"
SEED = 7

# %% [markdown]
# `"bundled"` is a small trained model. `"full"` builds the architecture of Wan 2.1 1.3B with random weights
# (true shapes and costs, but no films; it needs a GPU with 24 GB). `"hub"` downloads the real checkpoint.
# Grading always uses `"bundled"` on the CPU.

# %%
from inferlab.lab import start

lab = start("lab20-video-latents", LEARNER, MODEL, DEVICE, SEED)

# %%
import torch
from inferlab.models import load_pipeline
from inferlab.trace import trace

torch.set_grad_enabled(False)
pipe = load_pipeline(MODEL, lab.device, family="wan")
pipe.set_progress_bar_config(disable=True)
print(type(pipe).__name__, "·", type(pipe.transformer).__name__, "·", type(pipe.vae).__name__)

# %% [markdown]
# ## 1 · Goal and mental model
#
# | question | a picture (lab 07) | a clip |
# |---|---|---|
# | what is the state? | `(B, C, H, W)` | `(B, C, F, H, W)`: the frames have an axis of their own |
# | how many frames? | | `1 + 4k` frames of pixels, `1 + k` latent frames |
# | what is a token? | 2x2 places of the latents | 2x2 places of one latent frame |
# | which tokens meet in attention? | all | all of the clip, also those of later frames |
# | how is it decoded? | in one call | one call of the decoder for each latent frame, in order |
# | what does a call leave to the next? | | features of the last frames, in a cache |
#
# The VAE is *causal*: its result for a frame depends on that frame and on earlier ones only. So the first
# frame is encoded alone, as a picture; after it, four frames make one latent frame. The transformer is not
# causal.

# %%
vae, network = pipe.vae, pipe.transformer
print(f"{pipe.vae_scale_factor_temporal} frames to one, {pipe.vae_scale_factor_spatial} pixels to one, "
      f"{vae.config.z_dim} channels; a token is a patch of {tuple(network.config.patch_size)} places")

# %% [markdown]
# ![Two grids, a row for each latent frame that is changed and a column for each frame of the clip. Above,
# the coloured part is a staircase: its first step is one frame wide, each later one four. Below, every cell
# is coloured.](../../handbook/figures/lab20-reach.svg)
#
# *From the handbook.* Which frames of the clip change when one latent frame is changed: above through the
# causal VAE alone, below through one call of the transformer and the VAE.

# %% [markdown]
# ## 2 · Predict
#
# In section 3 you ask the pipeline for one clip, with these settings:

# %%
PROMPT = "a red circle moves left on a white background"
STEPS, GUIDANCE = 6, 2.0
FRAMES, HEIGHT, WIDTH = (17, 96, 96) if MODEL == "bundled" else (17, 480, 832)
settings = {"num_inference_steps": STEPS, "guidance_scale": GUIDANCE, "num_frames": FRAMES, "height": HEIGHT,
            "width": WIDTH, "max_sequence_length": 16}
print(settings)

# %% [markdown]
# ### Exercise 1 · A clip on paper
#
# *difficulty 2 of 3 · 5 minutes · 3 points*
#
# **Before you run anything further**, write a function that says what a traced run shows. It is graded on
# clips that this notebook never makes. The sides are in pixels, multiples of 16. Latents have 16 channels and
# an eighth of each side. If the number of frames is not `1 + 4k`, the pipeline first changes it (given). You
# write:
#
# * `latents`: the shape of the latents, a tuple of `int`;
# * `tokens`: tokens of one clip that meet in one attention;
# * `decoder_calls`: how often the VAE's decoder runs.
#
# <details><summary>Hint 1: a nudge</summary>
# Which axis of <code>(B, C, F, H, W)</code> counts the prompts? How many latent frames do 1, 5, 9 and 17
# frames have?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
# With <code>latent = 1 + (frames - 1) // 4</code>: the latents are
# <code>(prompts, 16, latent, height // 8, width // 8)</code>, the tokens
# <code>latent * (height // 16) * (width // 16)</code>, and the decoder runs <code>latent</code> times for the
# whole batch.
# </details>

# %% exercise="forecast" provides=["forecast"] difficulty=2 minutes=5
def forecast(prompts, frames, height, width):
    """What a traced run shows: shape of the latents, tokens, calls of the decoder."""
    if frames % 4 != 1:
        frames = frames // 4 * 4 + 1
    ### BEGIN SOLUTION
    latent = 1 + (frames - 1) // 4
    latents = (prompts, 16, latent, height // 8, width // 8)
    tokens = latent * (height // 16) * (width // 16)
    decoder_calls = latent
    ### END SOLUTION
    return {"latents": latents, "tokens": tokens, "decoder_calls": decoder_calls}

# %% [markdown]
# ## 3 · Trace
#
# Now the real run. `depth` names three parts inside the networks that the trace records, too.

# %% tags=["demo"]
with trace(pipe, depth=["transformer.patch_embedding", "transformer.rope", "vae.decoder"]) as run:
    film = pipe(PROMPT, generator=torch.Generator().manual_seed(SEED), output_type="pil",
                **settings).frames[0]
run.table(level=2)

# %% tags=["demo"]
from inferlab.lab import filmstrip

filmstrip(film[::4], [f"frame {k}" for k in range(0, FRAMES, 4)], title="One frame of each decoder call")

# %% [markdown]
# Look at four places of the table, from the top:
#
# * **`prepare_latents`** makes noise for the whole clip: one tensor, five axes;
# * **`transformer.patch_embedding`** is a convolution over three axes. Its result is flattened: all tokens of
#   all frames are one sequence;
# * **`vae.decoder`** gets one latent frame a call. The first call makes one frame, each later call makes
#   four. What one call leaves to the next is `feat_cache`: the features of the last two frames, for each
#   convolution;
# * **`postprocess_video`** gets `(B, C, F, H, W)` and returns a list of frames for each clip.
#
# **Reconcile.** Where your forecast differs from the run, the run is right.

# %% tags=["demo"]
from inferlab.lab import when_written

print("the run:      ", {"latents": tuple(run["prepare_latents"].outputs.shape),
                         "tokens": run["transformer.rope"].outputs[0].shape[1],
                         "decoder_calls": run["vae.decoder"].calls})
with when_written("forecast"):
    now = forecast(1, FRAMES, HEIGHT, WIDTH)
    print("your forecast:", now)
    larger = {"77 frames": (77, HEIGHT, WIDTH), "twice the side": (FRAMES, 2 * HEIGHT, 2 * WIDTH)}
    for name, clip in larger.items():
        more = {key: forecast(1, *clip)[key] / now[key] for key in ("tokens", "decoder_calls")}
        print(f"{name}, times as many:", {**more, "scores of an attention": more["tokens"] ** 2})

# %% check="forecast" points=3
from inferlab.lab import Check, reference

check = Check("forecast", points=3)


def ask_forecast(*clip):
    """The learner's forecast, once it has the form that the contract asks for."""
    got = check.learner.forecast(*clip)
    keys = {"latents", "tokens", "decoder_calls"}
    check.true(isinstance(got, dict) and set(got) == keys, "return a dict with exactly the three keys")
    check.true(isinstance(got["latents"], tuple), "a shape is a tuple, such as (1, 2, 3)")
    return got


with check.part("one prompt, 17 frames of 96x96, as in the traced run", weight=1):
    check.equal(ask_forecast(1, 17, 96, 96),
                {"latents": (1, 16, 5, 12, 12), "tokens": 180, "decoder_calls": 5})
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 4 · Read
#
# The installed loop of the decoder. It goes over latent frames, not over frames.

# %% jupyter={"source_hidden": true}
from diffusers import AutoencoderKLWan
from diffusers.models.autoencoders.autoencoder_kl_wan import WanCausalConv3d
from inferlab.lab import show_source

show_source(AutoencoderKLWan._decode, {
    "x = self.post_quant_conv(z)": "clear_cache() is called above this line and after the loop: nothing "
        "of another clip may be left in the slots.",
    "for i in range(num_frame):": "num_frame counts latent frames: z has them on axis 2.",
    "x[:, :, i : i + 1, :, :], feat_cache=self._feat_map, feat_idx=self._conv_idx, first_chunk=True":
        "The first latent frame, with an empty cache: one frame comes out.",
    "out_ = self.decoder(x[:, :, i : i + 1, :, :], feat_cache=self._feat_map, feat_idx=self._conv_idx)":
        "The same cache again. Each convolution reads its slot, and writes it for the next call.",
}, excerpts=[
    ("x = self.post_quant_conv(z)", "out = torch.cat([out, out_], 2)"),
], checked="0.42.1")

# %% [markdown]
# Next, a causal convolution. `cache_x` is what it finds in its *slot*, its place in the cache.

# %% jupyter={"source_hidden": true}
show_source(WanCausalConv3d.forward, {
    "padding = list(self._padding)": "In space, zeros on both sides. In time, two zeros for every one of "
        "`padding`, all of them before the first frame.",
    "x = torch.cat([cache_x, x], dim=2)": "The kept frames take the place of zeros.",
    "padding[4] -= cache_x.shape[2]": "So fewer zeros are needed: none, once two frames are kept.",
}, checked="0.42.1")

# %% [markdown]
# From here on all cells use the bundled model on the CPU. The next one draws a clip and encodes it.

# %%
from inferlab.models.clips import render_clips, sample_clips

small = load_pipeline("bundled", "cpu", family="wan")
small.set_progress_bar_config(disable=True)
clip = render_clips(sample_clips(1, torch.Generator().manual_seed(SEED))) * 2 - 1
latents = small.vae.encode(clip).latent_dist.mode()
print("pixels ", tuple(clip.shape), "\nlatents", tuple(latents.shape))

# %% [markdown]
# ## 5 · Build
#
# Exercise 2 is practice (3 points).
#
# ### Exercise 2 · A causal convolution that can be interrupted
#
# *difficulty 3 of 3 · 10 minutes · 3 points*
#
# Complete the convolution that you read in section 4, so that a clip can go through it in pieces. `x` is `(B,
# C, N, H, W)`, the next `N` frames of a clip. `weight` is `(C_out, C, T, K, K)` with `T` at least 2: frame
# `f` of the result `y` depends on frame `f` of the clip and on the `T - 1` frames `before` it; what lies
# before the clip is zero. `cache` is `None` for the first piece, then what the call before returned: the last
# `T - 1` frames that went *in*, over all calls of this clip (fewer if fewer have gone in). For any pieces,
# their `y` together equal that of the whole clip. You make three things:
#
# * `seen`: the kept frames, then `x`;
# * `missing`: how many frames of zeros go before `seen`;
# * the new cache, in the last line.
#
# <details><summary>Hint 1: a nudge</summary>
# <code>before</code> frames are needed before <code>x</code>. How many of them are in <code>seen</code>? And
# what must you keep if a piece has one frame and <code>T</code> is 3?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
# <code>seen = x if cache is None else torch.cat([cache, x], dim=2)</code>, and <code>missing = before -
# (seen.shape[2] - x.shape[2])</code>. The new cache is cut from the end of <code>seen</code>, not of
# <code>x</code>.
# </details>

# %% exercise="causal" provides=["causal_conv"] difficulty=3 minutes=10
import torch.nn.functional as F


def causal_conv(x, weight, bias, cache=None):
    """The next frames of a causal 3-D convolution; returns (y, cache)."""
    before, side = weight.shape[2] - 1, weight.shape[3] // 2
    ### BEGIN SOLUTION
    seen = x if cache is None else torch.cat([cache, x], dim=2)
    missing = before - (seen.shape[2] - x.shape[2])
    ### END SOLUTION
    y = F.conv3d(F.pad(seen, (side, side, side, side, missing, 0)), weight, bias)
    ### BEGIN SOLUTION
    return y, seen[:, :, -before:]
    ### END SOLUTION

# %% check="causal" points=3
import torch
import torch.nn.functional as F
from diffusers.models.autoencoders.autoencoder_kl_wan import WanCausalConv3d
from inferlab.lab import Check, close

check = Check("causal", points=3)


def layer_of(seed, channels, out, frames=3, side=3):
    """A library layer with random weights; the kernel's own random numbers are left as they were."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return WanCausalConv3d(channels, out, (frames, side, side), padding=(1, side // 2, side // 2))


def frames_of(seed, *shape):
    """Random frames (B, C, N, H, W)."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def ask_conv(x, weight, bias, cache=None):
    """The learner's (y, cache), once both are tensors of the right form."""
    got = check.learner.causal_conv(x, weight, bias, cache)
    check.true(isinstance(got, tuple) and len(got) == 2, "return a tuple of two, (y, cache)")
    check.tensor(got[0], shape=(len(x), len(weight), *x.shape[2:]))
    check.tensor(got[1])
    check.true(got[1].ndim == 5, "the cache has the axes (B, C, n, H, W)")
    return got


with check.part("a whole clip of five frames", weight=1):
    tool, given = layer_of(1, 3, 4), frames_of(1, 1, 3, 5, 6, 8)
    got, _ = ask_conv(given, tool.weight.detach(), tool.bias.detach())
    ### HIDDEN TESTS
    check.close(got, tool(given).detach(), tol=1e-4)
### HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 3 · Which frames depend on what
#
# *difficulty 1 of 3 · 6 minutes · 2 points*
#
# The next cell changes one latent frame and shows what changes with it: first frames of pixels, through the
# real VAE, then latent frames, in one call of the real transformer. Each line is a latent frame that was
# changed; each `#` is a frame that changed with it.

# %% tags=["demo"]
def reached(decode, latents, j):
    """The frames that change when latent frame j changes, however little."""
    other = latents.clone()
    other[:, :, j] += 1
    changed = (decode(latents) != decode(other)).transpose(1, 2).flatten(2).any(2).any(0)
    return changed.nonzero().flatten().tolist()


words, _ = small.encode_prompt(PROMPT, do_classifier_free_guidance=False, max_sequence_length=16)
corner = latents[..., :4, :4]  # 32x32 pixels are enough to see it
for name, function, many in (
        ("frames of pixels, decoded", lambda z: small.vae.decode(z).sample, 17),
        ("latent frames, one call of the transformer",
         lambda z: small.transformer(z, torch.tensor([500.0]), words, return_dict=False)[0], 5)):
    print(name)
    for j in range(latents.shape[2]):
        hit = reached(function, corner, j)
        print(f"  latent frame {j}  " + "".join("#" if k in hit else "." for k in range(many)))

# %% [markdown]
# `behind(frame, frames, denoised)` asks the other way round: which latent frames does a frame of pixels
# depend on, in a clip of `frames` frames? With `denoised=False` the latents go straight into the VAE. With
# `denoised=True` they are the noise that the transformer starts from. Write `last`, the number of the last of
# them.
#
# <details><summary>Hint 1: a nudge</summary>
# Read a column of the first picture. Every earlier decoder call has left something in the cache.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
# Frame <code>f</code> is made in decoder call <code>(f + 3) // 4</code> (from 0): it depends on that latent
# frame and on all before it. The transformer looks at all latent frames at once.
# </details>

# %% exercise="reach" provides=["behind"] difficulty=1 minutes=6
def behind(frame, frames, denoised):
    """The latent frames that a frame depends on."""
    ### BEGIN SOLUTION
    last = (frames - 1) // 4 if denoised else (frame + 3) // 4
    ### END SOLUTION
    return list(range(last + 1))

# %% check="reach" points=2
import torch
from inferlab.lab import Check, reference

check = Check("reach", points=2)


def numbers(frame, frames, denoised):
    """The learner's latent frames as a list of int."""
    got = check.learner.behind(frame, frames, denoised)
    check.true(isinstance(got, list), "behind returns a list of frame numbers")
    return [int(check.number(n, "a frame's number is an int")) for n in got]


with check.part("the first frame, straight from the VAE", weight=0):
    check.equal(numbers(0, 17, False), [0])
### HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 4 · A budget
#
# *difficulty 2 of 3 · 7 minutes · 3 points*
#
# A clip can have too many tokens in one attention, or too large tensors in one decoder call. `chunk_bytes`
# gives the bytes of the largest tensor that a layer of the bundled decoder returns. A *tile* is a square part
# of the picture, decoded apart through all latent frames; its side is given in pixels.

# %%
def chunk_bytes(frames, height, width):
    """Bytes of the largest tensor that comes out of a decoder layer: 48 channels, half of each side."""
    return (4 if frames > 1 else 1) * 48 * (height // 2) * (width // 2) * 4


def largest_tile(frames, max_bytes):
    """The largest square tile whose decoder call keeps to `max_bytes`: a multiple of 16, at least 16."""
    tile = 16
    while chunk_bytes(frames, tile + 16, tile + 16) <= max_bytes:
        tile += 16
    return tile

# %% tags=["demo"]
for size in ((1, 96, 96), (5, 96, 96), (17, 96, 96), (5, 96, 48)):
    with trace(small.vae, depth="decoder*") as t:
        small.vae.decode(torch.zeros(1, 16, 1 + (size[0] - 1) // 4, size[1] // 8, size[2] // 8))
    largest = max(b.bytes_out for b in t.boundaries if b.name.startswith("decoder."))
    print(f"{size}: {t['decoder'].calls} calls, largest tensor {largest}; chunk_bytes {chunk_bytes(*size)}")

# %% [markdown]
# `fit_clip(frames, height, width, max_tokens, max_bytes)` returns what to ask for. The rules, in this order:
#
# 1. If not even one latent frame fits into `max_tokens`, halve both sides, down to multiples of 16,
#    until it does. (Given.)
# 2. With more than `max_tokens` tokens, take fewer `frames`: as many as fit, again `1 + 4k`. `fits` (given)
#    is how many latent frames fit.
# 3. If the largest tensor of the resulting clip has more than `max_bytes`, `tile` is the largest tile that
#    keeps to them. Otherwise it is `None`.
#
# You write rules 2 and 3: the new `frames`, and `tile`.
#
# <details><summary>Hint 1: a nudge</summary>
# How many frames are `fits` latent frames? Which two functions above answer rule 3?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
# Frames: <code>min(frames, 1 + 4 * (fits - 1))</code>. Tile: <code>largest_tile(frames, max_bytes)</code> if
# <code>chunk_bytes(frames, height, width) &gt; max_bytes</code>, else <code>None</code>.
# </details>

# %% exercise="budget" provides=["fit_clip"] difficulty=2 minutes=7
def fit_clip(frames, height, width, max_tokens, max_bytes):
    """The clip to ask for, and the tile to decode it with."""
    while (height // 16) * (width // 16) > max_tokens:
        height, width = height // 32 * 16, width // 32 * 16
    fits = max_tokens // ((height // 16) * (width // 16))
    ### BEGIN SOLUTION
    frames = min(frames, 1 + 4 * (fits - 1))
    tile = largest_tile(frames, max_bytes) if chunk_bytes(frames, height, width) > max_bytes else None
    ### END SOLUTION
    return {"frames": frames, "height": height, "width": width, "tile": tile}

# %% check="budget" points=3
from inferlab.lab import Check

check = Check("budget", points=3)


def ask_fit(*wish):
    """The learner's plan, once it has the four keys."""
    got = check.learner.fit_clip(*wish)
    check.true(isinstance(got, dict) and set(got) == {"frames", "height", "width", "tile"},
               "return a dict with exactly the four keys")
    return got


with check.part("a clip that fits as it is", weight=0):
    check.equal(ask_fit(17, 96, 96, 1000, 10**9), {"frames": 17, "height": 96, "width": 96, "tile": None})
### HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 5 · A fault in time
#
# *difficulty 3 of 3 · 7 minutes · 3 points*
#
# You get a `WanPipeline` with one fault, which depends on your name. It raises no error, and its clips have
# the right size. A healthy pipeline and the suspect each make two clips, one after the other. `second_clip`
# traces the second one: 9 frames, so three latent frames. `first_difference` returns the first boundary whose
# values differ with the number of its call (from 0), and the first pair of tensors there that differ: `good`
# (healthy) and `bad` (suspect). `candidates` are the faults that begin at this boundary.

# %%
from inferlab.lab.kits.pipelines.misbuilt import first_difference
from inferlab.lab.kits.pipelines.misfilmed import MISFILMED, misfilmed, second_clip

suspect = misfilmed(small, lab.variant(9))
healthy, healthy_frames, healthy_values = second_clip(small)
sick, sick_frames, sick_values = second_clip(suspect)
(boundary, call), good, bad = first_difference(healthy_values, sick_values)
candidates = [fault for fault, (place, *_) in MISFILMED.items() if place == boundary]
print(f"first difference: {boundary}, call {call}, tensors {tuple(good.shape)}; candidates: {candidates}")
if boundary == "vae.decoder":
    went_in = [run.find(boundary)[call].kept.inputs["x"] for run in (healthy, sick)]
    print("the same latent frame went in:", torch.equal(*went_in))

# %% tags=["demo"]
display(filmstrip(list(healthy_frames.numpy()), [str(k) for k in range(9)], title="healthy"))
display(filmstrip(list(sick_frames.numpy()), [str(k) for k in range(9)], title="suspect"))

# %% [markdown]
# Which fault is it?
#
# | fault | what is wrong |
# |---|---|
# | `"one noise for all frames"` | all latent frames begin as the same noise |
# | `"no order in time"` | the rotary table gives all latent frames the same place in time |
# | `"frames apart in attention"` | a token meets only tokens of its own latent frame |
# | `"cache of the clip before"` | the decoder's cache is not emptied before the second clip |
# | `"cache reset in every call"` | the decoder's convolutions begin each call with an empty slot |
# | `"cache one frame short"` | the slots of the decoder's convolutions keep one frame; they need two |
# | `"latent frame dropped"` | a latent frame is not decoded; the one before it is decoded again |
# | `"frames backwards"` | the frames come out last one first |
# | `"frame dropped"` | a frame of the clip is missing; the one before it comes twice |
#
# Write `diagnose()`, which returns the fault, a `str`. A constant will do.
#
# <details><summary>Hint 1: a nudge</summary>
# If the decoder is the first to differ, there are four candidates. The cache is filled in calls 0 and 1: at
# which call does each cache fault show first? And what else does a call get?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
# In the decoder, another latent frame that went in means that one was dropped. Otherwise call 0 has the cache
# of the clip before, call 1 an empty one, call 2 a short one. At <code>postprocess_video</code> look at the
# films.
# </details>

# %% exercise="diagnosis" provides=["diagnose"] difficulty=3 minutes=7
def diagnose():
    """The fault, as the table names it."""
    ### BEGIN SOLUTION
    if boundary == "vae.decoder":
        return candidates[call if torch.equal(*went_in) else -1]
    return candidates[0 if torch.equal(healthy_frames.flip(0), sick_frames) else -1]
    ### END SOLUTION

# %% check="diagnosis" points=3
from inferlab.lab import Check, reference

check = Check("diagnosis", points=3)


def diagnosed():
    """The fault that the learner names."""
    got = check.learner.diagnose()
    check.true(isinstance(got, str), "return the fault's name, a str")
    return got


with check.part("the diagnosis is a name (which one is graded when you hand it in)", weight=0):
    diagnosed()
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 6 · Explain
#
# Say what happened in **your traced run** of section 3, and what a longer clip would change: one with *four
# times the latent frames*, 20 instead of 5 (77 frames instead of 17). In each field you write two short
# sentences, one a line, from the tables below: an entry of `who`, a verb, an entry of its row and, if you
# like, entries of a row `may follow`. So `each later call takes one latent frame` is a sentence. Lines that
# begin with `#` are notes of your own.

# %% jupyter={"source_hidden": true}
### FIXTURE words
words

# %% [markdown]
# *difficulty 2 of 3 · 7 minutes · 3 points.* The cell shows how it reads each line, and that reading is
# graded when you hand in. A false sentence costs the field's point. A line that the cell cannot read is
# judged by a person.

# %% explain="clip-in-words" difficulty=2 minutes=7
# %%explain clip-in-words
# ### BEGIN SOLUTION
# time: the batch axis counts the clips
#   the transformer sees all latent frames
# decode: each later call makes four frames
#   the cache keeps features of the two frames before
# cost: the longer clip multiplies the scores by 16
#   the longer clip leaves alone the largest tensor of a decoder call
# ### END SOLUTION

# %% check="words-time" of="clip-in-words" points=1
from inferlab.lab import Check

check = Check("words-time", points=1)
with check.part("`time:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("clip-in-words").get("time"), "`time:` is empty")
### HIDDEN TESTS
check.score()

# %% check="words-decode" of="clip-in-words" points=1
from inferlab.lab import Check

check = Check("words-decode", points=1)
with check.part("`decode:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("clip-in-words").get("decode"), "`decode:` is empty")
### HIDDEN TESTS
check.score()

# %% check="words-cost" of="clip-in-words" points=1
from inferlab.lab import Check

check = Check("words-cost", points=1)
with check.part("`cost:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("clip-in-words").get("cost"), "`cost:` is empty")
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7 · Notice
#
# * **Frames are no batch axis.** The clips of a batch know nothing of each other. The frames of a clip meet
#   in the transformer's self-attention and in the VAE's convolutions over time.
# * **A longer clip does not cost the same factor everywhere.** From 17 to 77 frames: 4 times the tokens and
#   decoder calls, 16 times the scores, and the same largest tensor inside a decoder call.
# * **The VAE does not decode frame by frame.** One call takes one latent frame and makes four frames (the
#   first call makes one). It needs what earlier calls left in the cache.
# * **The VAE is causal, the transformer is not.** Noise of the last frame changes the first one. So a clip
#   cannot be shown before the loop has ended.
# * **Each limit has its own remedy.** Tokens: fewer frames, or a smaller side. The decoder's tensors: tiles,
#   or a smaller side; fewer frames help only if a single one is left.

# %% [markdown]
# ## 8 · Check and hand in
#
# Run this cell last. It runs the visible checks again, says what is missing, and leaves one file to hand in.

# %% tags=["demo"]
from inferlab.lab import submit

submit()
