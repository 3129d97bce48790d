# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Lab 07 · A transformer as the denoiser
#
# Most image and video models of today have no UNet. They cut the latents into tokens and send them through a
# transformer, together with the text. In this lab you take such a denoiser apart in a real `FluxPipeline`:
# how latents become tokens, how text and picture meet in one attention, and why a step is one multiplication
# and one addition. You write pieces of it until they equal the library's, and then find a fault that shows
# in no shape and no error message.
#
# **Time** 50 to 60 minutes · **Points** 18, of which 6 are practice · **Reading**
# [A transformer as the denoiser](../../handbook/lab07-transformer-denoiser.md) in the handbook, before you
# start

# %% tags=["parameters"]
LEARNER = ""  # your name or id, as your course knows you
MODEL = "bundled"  # "bundled" | "full" | "hub"
DEVICE = "auto"  # "auto" | "cpu" | "cuda"
SEED = 7

# %% [markdown]
# `"bundled"` is a small trained model. `"full"` builds the architecture of FLUX.1-dev with random weights
# (real shapes and costs, no pictures; it needs a GPU with 40 GB); `"hub"` downloads the real checkpoint.
# Grading always uses `"bundled"` on the CPU.

# %%
from inferlab.lab import start

lab = start("lab07-transformer-denoiser", LEARNER, MODEL, DEVICE, SEED)

# %%
import math

import torch
from inferlab.models import load_pipeline
from inferlab.trace import trace

torch.set_grad_enabled(False)
pipe = load_pipeline(MODEL, lab.device, family="flux")
pipe.set_progress_bar_config(disable=True)
network = pipe.transformer
print(type(pipe).__name__, "·", type(network).__name__, "·", type(pipe.scheduler).__name__)

# %% [markdown]
# ## 1 · Goal and mental model
#
# | question | a UNet (lab 02) | this transformer |
# |---|---|---|
# | what is the state? | a grid, `(B, C, H, W)` | tokens, `(B, N, 4 * C)`: each is a patch of 2x2 places, all channels |
# | how is a place known? | from the grid | from position ids, turned into rotations of queries and keys |
# | how does the text come in? | the picture attends to it, in cross-attention | its tokens are in the same sequence: one attention over both |
# | how does the timestep come in? | added to features | it scales, shifts and gates every block; so does a pooled vector of the text |
# | what is predicted? | noise | velocity |
# | what is guidance? | two rows of one batch | a number that the network gets as input, or two passes |
#
# The loop, the latents and the VAE are as before. The network answers with the
# *velocity* $v$, the direction of the straight line from clean latents $x_0$ to noise $\epsilon$. A step
# walks along it, from one noise level to the next:
#
# $$x_\sigma = (1-\sigma)\,x_0 + \sigma\,\epsilon \qquad v = \epsilon - x_0 \qquad
# x_{\sigma'} = x_\sigma + (\sigma' - \sigma)\,v$$

# %% [markdown]
# ![The attention weights of one block as a square: rows are tokens that look, columns tokens that are looked
# at; the text's tokens come first. In the large picture-to-picture part, dark diagonals lie a picture's row
# apart.](../../handbook/figures/lab07-attention.svg)
#
# *From the handbook.* The mean attention of a double block of the bundled model. The prompt's tokens come
# first, then the picture's, row by row. In the left columns the picture attends to the text; in the top rows
# the text attends to the picture.

# %% [markdown]
# ## 2 · Predict
#
# Below you will ask the pipeline for one picture, with these settings:

# %%
PROMPT = "a large red circle left of a small blue square"
STEPS, GUIDANCE, TEXT = 4, 3.5, 64  # TEXT: the prompt is padded to this many tokens
SIDE = pipe.default_sample_size * pipe.vae_scale_factor
print(f"{SIDE}x{SIDE} pixels, {STEPS} steps, guidance_scale {GUIDANCE}, {TEXT} text tokens")

# %% [markdown]
# ### Exercise 1 · Tokens, calls and bytes on paper
#
# *difficulty 2 of 3 · 6 minutes · 3 points*
#
# **Before you run anything further**, write a function that says what a traced run shows at the transformer.
# It is graded on sizes that this notebook never makes. The sides are in pixels, multiples of 16. The VAE's
# latents have an eighth of each side. With *true* guidance (the flag is given) the transformer runs twice in
# each step, one call after the other. (`guidance_scale` is different: a number that each call gets as input.)
# You write:
#
# * `tokens`: how many tokens a picture has in the transformer;
# * `calls`: how often the transformer runs;
# * `score_bytes`: the bytes of one attention's scores in one call, for all its prompts. Picture and text are
#   in one attention. It has 4 heads, and in each of them every token has one score of 4 bytes for every token
#   of the same prompt.
#
# <details><summary>Hint 1: a nudge</summary>
# How many pixels wide is one token? Which tokens does a token of the picture attend to: those of the picture,
# those of the text, or all?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
# A token covers 8 · 2 = 16 pixels a side: <code>(height // 16) * (width // 16)</code> tokens. Calls:
# <code>steps</code>, or twice that with true guidance; the batch stays the same. Scores: <code>prompts * 4 *
# (tokens + text_tokens) ** 2</code> numbers of 4 bytes.
# </details>

# %% exercise="forecast" provides=["forecast"] difficulty=2 minutes=6
def forecast(prompts, height, width, steps, text_tokens, true_cfg_scale=1.0, negative_prompt=None):
    """What a traced run shows at the transformer: tokens of a picture, calls, bytes of scores."""
    true_guidance = true_cfg_scale > 1 and negative_prompt is not None
    ### BEGIN SOLUTION
    tokens = (height // 16) * (width // 16)
    calls = steps * (2 if true_guidance else 1)
    score_bytes = prompts * 4 * (tokens + text_tokens) ** 2 * 4
    ### END SOLUTION
    return {"tokens": tokens, "calls": calls, "score_bytes": score_bytes}

# %% [markdown]
# ## 3 · Trace
#
# Now the real run. `depth` records boundaries inside the transformer, too.

# %%
settings = {"num_inference_steps": STEPS, "guidance_scale": GUIDANCE, "max_sequence_length": TEXT,
            "height": SIDE, "width": SIDE}

# %% tags=["demo"]
with trace(pipe, depth=["transformer.pos_embed", "transformer.time_text_embed",
                        "transformer.*transformer_blocks.?"]) as run:
    image = pipe(PROMPT, generator=torch.Generator().manual_seed(SEED), **settings).images[0]
display(image)
run.table(level=2)

# %% [markdown]
# Read the table from the top, and stop at four places:
#
# * **`encode_prompt`** runs two text encoders. T5 gives a vector for every token, CLIP gives one *pooled*
#   vector for the whole prompt;
# * **`_pack_latents`** makes tokens from the grid, and **`_prepare_latent_image_ids`** records the row and
#   column of each token;
# * **`transformer.pos_embed`** gets the ids of text *and* picture, in this order;
# * the transformer's output has the shape of the picture's tokens: a velocity for each.

# %% [markdown]
# **Reconcile.** Where your forecast differs from the run, the run is right.

# %% tags=["demo"]
from inferlab.lab import when_written

at = run["transformer"]
print("the run: ", {"tokens": at.inputs["hidden_states"].shape[1], "calls": at.calls})
with when_written("forecast"):
    print("forecast:", forecast(1, SIDE, SIDE, STEPS, TEXT))
    print(f"one head's scores at 2048x2048: {forecast(1, 2048, 2048, 1, 512)['score_bytes'] / 4 / 2**20:.0f} "
          "MiB. So attention kernels do not store them.")

# %% check="forecast" points=3
from inferlab.lab import Check, reference

check = Check("forecast", points=3)


def ask_forecast(*run):
    """The learner's forecast, once it has the form that the contract asks for."""
    got = check.learner.forecast(*run)
    keys = {"tokens", "calls", "score_bytes"}
    check.true(isinstance(got, dict) and set(got) == keys, "return a dict with exactly the three keys")
    return got


with check.part("one prompt at 128x128, 4 steps, 64 text tokens, as in the traced run", weight=1):
    check.equal(ask_forecast(1, 128, 128, 4, 64, 1.0, None),
                {"tokens": 64, "calls": 4, "score_bytes": 262144})
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 4 · Read
#
# The installed *double* block. Text and picture are two streams with separate weights, and meet in one place.

# %% jupyter={"source_hidden": true}
from diffusers.models.transformers.transformer_flux import FluxTransformerBlock
from inferlab.lab import show_source

show_source(FluxTransformerBlock.forward, {
    "norm_hidden_states, gate_msa, shift_mlp, scale_mlp, gate_mlp = self.norm1(hidden_states, emb=temb)":
        "temb is one vector for timestep, guidance and pooled text. A linear layer makes six vectors of it; "
        "norm1 has already used the first two, shift and scale.",
    "attention_outputs = self.attn(": "The only place where the two streams meet.",
    "attn_output = gate_msa.unsqueeze(1) * attn_output":
        "The gate scales the attention's output: one number for each feature, the same for all "
        "tokens.",
    "norm_hidden_states = norm_hidden_states * (1 + scale_mlp[:, None]) + shift_mlp[:, None]":
        "Modulation once more: normalized, then scaled by 1 + scale, then shifted.",
    "context_ff_output = self.ff_context(norm_encoder_hidden_states)":
        "The text has its own MLP, and the block changes it: the text is no fixed condition.",
    "return encoder_hidden_states, hidden_states":
        "Text first. The arguments had the other order; nothing checks which tensor is which.",
}, excerpts=[
    ("norm_hidden_states, gate_msa, shift_mlp, scale_mlp, gate_mlp = self.norm1",
     "image_rotary_emb=image_rotary_emb,"),
    ("attn_output = gate_msa.unsqueeze(1) * attn_output", "hidden_states = hidden_states + ff_output"),
    ("context_attn_output = c_gate_msa", "encoder_hidden_states = encoder_hidden_states + c_gate_mlp"),
    ("return encoder_hidden_states, hidden_states", "return encoder_hidden_states, hidden_states"),
], checked="0.42.1")

# %% [markdown]
# The *single* blocks after them join text and picture to one stream, with the same weights for both. Now the
# pipeline around the blocks:

# %% jupyter={"source_hidden": true}
from diffusers import FluxPipeline

show_source(FluxPipeline.__call__, {
    "do_true_cfg = true_cfg_scale > 1 and has_neg_prompt": "Both are needed.",
    "sigmas = np.linspace(1.0, 1 / num_inference_steps, num_inference_steps) if sigmas is None else sigmas":
        "The base schedule is the pipeline's. The scheduler's own would end near 0.001 before its shift.",
    "mu = calculate_shift(": "mu grows with the number of tokens, on a straight line.",
    "guidance = torch.full([1], guidance_scale, device=device, dtype=torch.float32)":
        "The scale is a number that goes into the network, as the timestep does. No second pass.",
    "neg_noise_pred = self.transformer(":
        "True guidance: a second call in the same step, with the same guidance input.",
    "noise_pred = neg_noise_pred + true_cfg_scale * (noise_pred - neg_noise_pred)":
        "The formula of lab 02, on velocities. The name noise_pred is from older pipelines.",
}, excerpts=[
    ("do_true_cfg = true_cfg_scale > 1 and has_neg_prompt", "do_true_cfg = true_cfg_scale > 1 and has_neg"),
    ("sigmas = np.linspace(1.0, 1 /", "self.scheduler.config.get(\"max_shift\", 1.15),"),
    ("guidance = torch.full([1], guidance_scale", "guidance = guidance.expand(latents.shape[0])"),
    ("neg_noise_pred = self.transformer(", "noise_pred = neg_noise_pred + true_cfg_scale"),
], checked="0.42.1")

# %% [markdown]
# ## 5 · Build
#
# Exercises 2 and 4 are practice (6 points). Most of each function is given.
#
# ### Exercise 2 · Tokens and their places
#
# *difficulty 2 of 3 · 9 minutes · 3 points*
#
# **a)** A token holds a patch of 2x2 places. Its `4 * C` numbers are ordered by channel, then by row, then by
# column inside the patch. Tokens are ordered row by row. This is how a grid becomes tokens:

# %%
def pack(latents):
    """Latents (B, C, H, W) as tokens (B, H/2 * W/2, 4 * C)."""
    batch, channels, height, width = latents.shape
    # axes: batch, channel, patch row, row in the patch, patch column, column in the patch
    patches = latents.reshape(batch, channels, height // 2, 2, width // 2, 2)
    # batch, patch row, patch column, channel, row, column: tokens, and a token's numbers
    return patches.permute(0, 2, 4, 1, 3, 5).reshape(batch, (height // 2) * (width // 2), 4 * channels)


print(pack(torch.arange(16).reshape(1, 1, 4, 4)).tolist())

# %% [markdown]
# Write the way back: the last line of `unpack(tokens, height, width)`. It returns the latents
# `(B, C, height, width)` of which `pack` made these tokens.
#
# **b)** Attention does not know where its tokens are. A rotation tells it: the features of a query or key
# form pairs, and each pair is rotated by an angle that depends on the token's position. Then a score depends
# on the *distance* of two tokens. A position is three numbers: 0, the row and the column (the text's are all
# 0). Each of these axes has its own share of a head's features. For an axis with `d` features, pair `k` is
# rotated by
#
# $$\text{angle} = \text{position} \cdot \theta^{-2k/d}, \qquad k = 0, \dots, d/2 - 1$$
#
# `rotary_table(ids, axes_dims, theta)` gets the positions `ids` `(S, axes)` and the features of each axis,
# such as `(8, 12, 12)`. Only one line is missing: append the angles of one axis, a tensor `(S, features)`
# with every angle **twice in a row**, once for each feature of its pair.
#
# <details><summary>Hint 1: a nudge</summary>
# a) <code>patches</code> has the axes (batch, patch row, patch column, channel, row, column), numbered 0 to
# 5. b) Positions times frequencies is an outer product, (S, features / 2).
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
# a) A grid needs (batch, channel, patch row, row, patch column, column): give these numbers to
# <code>permute</code>, then reshape. b) <code>torch.outer(ids[:, axis].double(), frequencies)</code>, then
# <code>.repeat_interleave(2, dim=1)</code>.
# </details>

# %% exercise="places" provides=["unpack", "rotary_table"] difficulty=2 minutes=9
def unpack(tokens, height, width):
    """Tokens (B, N, 4 * C) as latents (B, C, height, width)."""
    batch, _, numbers = tokens.shape
    patches = tokens.reshape(batch, height // 2, width // 2, numbers // 4, 2, 2)
    ### BEGIN SOLUTION
    return patches.permute(0, 3, 1, 4, 2, 5).reshape(batch, numbers // 4, height, width)
    ### END SOLUTION


def rotary_table(ids, axes_dims, theta=10000.0):
    """(cos, sin) of the angles of every token, each (S, sum(axes_dims)) float32."""
    angles = []
    for axis, features in enumerate(axes_dims):
        frequencies = theta ** (-torch.arange(0, features, 2, device=ids.device).double() / features)
        ### BEGIN SOLUTION
        angles.append(torch.outer(ids[:, axis].double(), frequencies).repeat_interleave(2, dim=1))
        ### END SOLUTION
    angles = torch.cat(angles, dim=1)
    return angles.cos().float(), angles.sin().float()

# %% check="unpack" of="places" points=1
import torch
from diffusers import FluxPipeline
from inferlab.lab import Check, close

check = Check("unpack", points=1)


def grid(batch, channels, height, width):
    """Latents that hold their own place: every number is another one."""
    return torch.arange(batch * channels * height * width).float().reshape(batch, channels, height, width)


with check.part("the tokens of one latent of 4 channels and 4x4 places", weight=1):
    got = check.learner.unpack(FluxPipeline._pack_latents(grid(1, 4, 4, 4), 1, 4, 4, 4), 4, 4)
    check.tensor(got, shape=(1, 4, 4, 4))
    ### HIDDEN TESTS
    check.equal(got, grid(1, 4, 4, 4))
### HIDDEN TESTS
check.score()

# %% check="rotary" of="places" points=2
import torch
from diffusers.models.transformers.transformer_flux import FluxPosEmbed
from inferlab.lab import Check, close

check = Check("rotary", points=2)


def table_of(positions, axes_dims, theta=10000.0):
    """The learner's table, once it is a pair of tensors of the right shape."""
    got = check.learner.rotary_table(positions, axes_dims, theta)
    check.true(isinstance(got, tuple) and len(got) == 2, "return a tuple of two tensors, (cos, sin)")
    for tensor in got:
        check.tensor(tensor, shape=(len(positions), sum(axes_dims)), dtype=torch.float32)
    return got


with check.part("one row of three columns, features (2, 2, 4)", weight=1):
    line = torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 2.0]])
    got = table_of(line, (2, 2, 4))
    ### HIDDEN TESTS
    check.close(got, FluxPosEmbed(10000, (2, 2, 4))(line), tol=1e-4)
### HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 3 · One double block
#
# *difficulty 3 of 3 · 8 minutes · 3 points*
#
# The block of section 4, made of its parts: each stream has its own modulation, norm, projections (`qkv` and
# `out`) and MLP. This is what a stream does alone, before the attention and after it:

# %%
def before(part, x, temb):
    """Queries, keys and values of a stream, each (B, S, heads, head_dim), and four vectors for later."""
    shift, scale, *later = part["modulation"](temb)
    return part["qkv"]((1 + scale) * part["norm"](x) + shift), later


def after(part, x, share, later):
    """The stream's tokens once attention has given them their share."""
    gate, shift, scale, gate_mlp = later
    x = x + gate * part["out"](share)
    return x + gate_mlp * part["mlp"]((1 + scale) * part["norm"](x) + shift)


# %% [markdown]
# Write the place where the streams meet: `mixed`, the attention's output for both, `(B, T + N, D)`.
#
# * `of_text` and `of_picture` are `(q, k, v)` of the `T` text and the `N` picture tokens. All tokens stand on
#   axis 1;
# * `rotary` is `(cos, sin)`, each `(T + N, head_dim)`: the text's rows come first;
# * `parts["rotate"](x, cos, sin)` rotates queries or keys;
# * `parts["attention"](q, k, v)` takes `(B, S, heads, head_dim)` each, to `(B, S, D)`.
#
# <details><summary>Hint 1: a nudge</summary>
# In which order do the streams stand in the one sequence? What is rotated: queries, keys, values, all three?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
# <code>q, k, v = (torch.cat(both, dim=1) for both in zip(of_text, of_picture))</code>. Rotate <code>q</code>
# and <code>k</code> with <code>*rotary</code>, and attend.
# </details>

# %% exercise="double-block" provides=["double_block"] difficulty=3 minutes=8
def double_block(parts, picture, text, temb, rotary):
    """One double block; returns (text, picture), as the library does."""
    of_text, later_text = before(parts["text"], text, temb)
    of_picture, later_picture = before(parts["picture"], picture, temb)
    ### BEGIN SOLUTION
    q, k, v = (torch.cat(both, dim=1) for both in zip(of_text, of_picture))
    q, k = parts["rotate"](q, *rotary), parts["rotate"](k, *rotary)
    mixed = parts["attention"](q, k, v)
    ### END SOLUTION
    cut = text.shape[1]
    return (after(parts["text"], text, mixed[:, :cut], later_text),
            after(parts["picture"], picture, mixed[:, cut:], later_picture))

# %% check="double-block" points=3
import torch
from diffusers.models.transformers.transformer_flux import FluxPosEmbed, FluxTransformerBlock
from inferlab.lab import Check, close
from inferlab.lab.kits.pipelines.block_parts import block_parts

check = Check("double-block", points=3)


def made_block(seed, width, head_dim):
    """A library block with random weights; the kernel's own random numbers are left as they were."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return FluxTransformerBlock(width, width // head_dim, head_dim).requires_grad_(False)


def inputs_of(seed, batch, rows, columns, text, width, head_dim):
    """picture, text, temb and rotary of a call, at random."""
    draw = torch.Generator().manual_seed(seed)
    spots = [[0.0, r, c] for r in range(rows) for c in range(columns)]
    table = FluxPosEmbed(10000, (head_dim - 2 * (head_dim // 4), head_dim // 4, head_dim // 4))(
        torch.tensor([[0.0, 0.0, 0.0]] * text + spots))
    return (*(torch.randn(batch, n, width, generator=draw) for n in (rows * columns, text)),
            torch.randn(batch, width, generator=draw), table)


def ask_block(block, given):
    """What the learner's function makes of the block's parts, once both shapes are right."""
    got = check.learner.double_block(block_parts(block), *given)
    check.true(isinstance(got, tuple) and len(got) == 2, "return a tuple of two tensors, (text, picture)")
    check.true([tuple(x.shape) for x in got] == [tuple(given[1].shape), tuple(given[0].shape)],
               "return the text first, then the picture, each with the shape that it came with")
    return got


with check.part("two tensors of the right shapes, in the library's order", weight=1):
    small, given = made_block(1, 16, 8), inputs_of(1, 1, 2, 3, 4, 16, 8)
    got = ask_block(small, given)
    want = small(given[0], given[1], given[2], given[3])
    check.close(got, want, tol=1e-4)
### HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 4 · Noise levels and a step
#
# *difficulty 2 of 3 · 5 minutes · 3 points*
#
# The same noise level hides less of a large picture, because more pixels show the same thing. So FLUX moves
# its noise levels toward the noisy end, and farther for more tokens: `mu` (given) grows with the number of
# the picture's tokens. `flow_sigmas(steps, tokens)` returns a `list` of `steps + 1` floats. You write two
# lines of it:
#
# * `base`, the base schedule: `steps` values, evenly spaced from 1 to `1 / steps`, both included;
# * the levels: each value of `base` shifted, $s \mapsto \dfrac{e^\mu}{e^\mu + 1/s - 1}$, and a 0 at the end.
#
# You also write `flow_step(velocity, latents, sigma, sigma_next)`, which returns the latents at `sigma_next`.
#
# <details><summary>Hint 1: a nudge</summary>
# For the step, look at the formulas of section 1. Is <code>sigma_next - sigma</code> positive or negative?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
# The base is <code>1 - k / steps</code> for k from 0 to <code>steps - 1</code>; shift each with
# <code>math.exp(mu)</code>, and append 0. The step adds <code>(sigma_next - sigma) * velocity</code>.
# </details>

# %% exercise="flow" provides=["flow_sigmas", "flow_step"] difficulty=2 minutes=5
def flow_sigmas(steps, tokens):
    """The noise levels of a run, steps + 1 floats, from 1 to 0."""
    mu = 0.5 + (tokens - 256) * (1.15 - 0.5) / (4096 - 256)
    ### BEGIN SOLUTION
    base = [1 - k / steps for k in range(steps)]
    return [math.exp(mu) / (math.exp(mu) + 1 / s - 1) for s in base] + [0.0]
    ### END SOLUTION


def flow_step(velocity, latents, sigma, sigma_next):
    """The latents at the next noise level."""
    ### BEGIN SOLUTION
    return latents + (sigma_next - sigma) * velocity
    ### END SOLUTION

# %% check="flow" points=3
import math

import torch
from diffusers import FlowMatchEulerDiscreteScheduler
from inferlab.lab import Check, close, reference

check = Check("flow", points=3)


def sigmas_of(steps, tokens):
    """The learner's noise levels, once they are a list of floats."""
    got = check.learner.flow_sigmas(steps, tokens)
    check.true(isinstance(got, list), "flow_sigmas returns a list of floats")
    return got


with check.part("the step: from noise level 0.5 to 0.25", weight=1):
    moving, speed = torch.randn(2, 1, 6, 16, generator=torch.Generator().manual_seed(5))
    got = check.learner.flow_step(speed, moving, 0.5, 0.25)
    check.tensor(got, shape=(1, 6, 16))
    ### HIDDEN TESTS
    check.close(got, moving - 0.25 * speed)
### HIDDEN TESTS
check.score()

# %% [markdown]
# **Reconcile** with the pipeline: its scheduler still holds the noise levels of the last run.

# %% tags=["demo"]
with when_written("flow_sigmas"):
    print("the pipeline's:   ", [round(s, 4) for s in pipe.scheduler.sigmas.tolist()])
    print("yours:            ", [round(s, 4) for s in flow_sigmas(STEPS, (SIDE // 16) ** 2)])
    print("yours, 1024x1024: ", [round(s, 4) for s in flow_sigmas(STEPS, 64 * 64)])

# %% [markdown]
# ### Two kinds of guidance
#
# FLUX.1-dev was trained to give the guided answer in one call; the scale is one of its inputs. True guidance,
# which can use a negative prompt, is still possible:

# %% tags=["demo"]
from inferlab.lab import filmstrip

shown = {}
for name, scales in {"embedded 1": {"guidance_scale": 1.0}, "embedded 3.5": {},
                     "embedded 1, true 3.5": {"guidance_scale": 1.0, "true_cfg_scale": 3.5,
                                              "negative_prompt": ""}}.items():
    with trace(pipe) as t:
        drawn = pipe(PROMPT, generator=torch.Generator().manual_seed(SEED), **{**settings, **scales})
    shown[f"{name}: {t['transformer'].calls} calls"] = drawn.images[0]
filmstrip(list(shown.values()), list(shown), title="A scale as an input costs no call", size=2.2)

# %% [markdown]
# With an embedded scale of 1 the picture misses the prompt. With 3.5 it follows it, at the same cost; with
# true guidance, for twice the calls.

# %% [markdown]
# ### Exercise 5 · A fault that changes no shape
#
# *difficulty 2 of 3 · 6 minutes · 3 points*
#
# You get a `FluxPipeline` with one fault, which depends on your name. It raises no error, and all shapes are
# right. `recorded` traces a run of four steps; `first_difference` returns the first boundary whose **values**
# differ between the healthy run and the suspect's, and the first pair of tensors there that do: `good`
# (healthy) and `bad` (suspect). `candidates` are the faults that begin at this boundary: one or two.

# %%
from inferlab.lab.kits.pipelines.misbuilt import MISBUILT, first_difference, misbuilt, recorded

healthy_pipe = load_pipeline("bundled", "cpu", family="flux")
healthy_pipe.set_progress_bar_config(disable=True)
suspect = misbuilt(healthy_pipe, lab.variant(8))
healthy, healthy_picture, healthy_values = recorded(healthy_pipe)
sick, sick_picture, sick_values = recorded(suspect)
boundary, good, bad = first_difference(healthy_values, sick_values)
candidates = [fault for fault, place in MISBUILT.items() if place == boundary]
print("first difference at", boundary, tuple(good.shape), "· candidates:", candidates)
print("healthy", good.flatten()[:12].tolist())
print("suspect", bad.flatten()[:12].tolist())

# %% tags=["demo"]
filmstrip([healthy_picture, sick_picture], ["healthy", "suspect"], size=2)

# %% [markdown]
# The picture may look healthy. Which fault is it? With two candidates, look at the numbers of `bad`.
#
# | fault | what is wrong |
# |---|---|
# | `"rows and columns exchanged"` | a token's ids have row and column in the wrong order |
# | `"no positions"` | every token of the picture has the same ids |
# | `"no shift"` | the noise levels are not shifted |
# | `"another base schedule"` | the noise levels are shifted, but the base goes from 1 to 0.001 |
# | `"no pooled text"` | the pooled text has no part in the modulation |
# | `"positions of the picture first"` | the rotary table begins with the picture's rows, the sequence with the text |
# | `"streams exchanged"` | a double block returns picture and text where text and picture are expected |
# | `"patches unpacked in another order"` | a token's numbers are read by place first, then by channel |
#
# Write `diagnose()`, which returns the fault, a `str`. A constant will do.
#
# <details><summary>Hint 1: a nudge</summary>
# Ids: all zeros, or exchanged? Noise levels: what is the second of four levels without a shift?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
# With one candidate, that is the fault. With two: ids of zeros are no positions; a second noise level of 0.75
# is <code>1 - 1/4</code>, not shifted.
# </details>

# %% exercise="diagnosis" provides=["diagnose"] difficulty=2 minutes=6
def diagnose():
    """The fault, as the table names it."""
    ### BEGIN SOLUTION
    # ids of zeros, or noise levels that are shifted
    last = not bad.any() or float(bad.flatten()[1]) > 0.751
    return candidates[-1 if last else 0]
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
# Say what happened in **your traced run** of section 3. In each field you write two short sentences, one a
# line, from the tables below: an entry of `who`, a verb, an entry of its row and, if you like, entries of the
# row `may follow`. So `the VAE computes the picture once after the loop` is a sentence. Lines that begin with
# `#` are your own notes.

# %% jupyter={"source_hidden": true}
### FIXTURE words
words

# %% [markdown]
# *difficulty 2 of 3 · 6 minutes · 3 points.* The cell shows how it reads each line, and that reading is
# graded when you hand in. A false sentence costs the field's point. A line that the cell cannot read is
# graded by a person.

# %% explain="denoiser-in-words" difficulty=2 minutes=6
# %%explain denoiser-in-words
# ### BEGIN SOLUTION
# denoiser: the transformer predicts the velocity from the tokens
#   the scheduler computes the next latents from the velocity
# text: the picture tokens attend to the text tokens in one attention
#   the pooled text modulates every block
# guidance: the embedded scale needs one call a step
#   true guidance needs two calls a step
# ### END SOLUTION

# %% check="words-denoiser" of="denoiser-in-words" points=1
from inferlab.lab import Check

check = Check("words-denoiser", points=1)
with check.part("`denoiser:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("denoiser-in-words").get("denoiser"), "`denoiser:` is empty")
### HIDDEN TESTS
check.score()

# %% check="words-text" of="denoiser-in-words" points=1
from inferlab.lab import Check

check = Check("words-text", points=1)
with check.part("`text:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("denoiser-in-words").get("text"), "`text:` is empty")
### HIDDEN TESTS
check.score()

# %% check="words-guidance" of="denoiser-in-words" points=1
from inferlab.lab import Check

check = Check("words-guidance", points=1)
with check.part("`guidance:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("denoiser-in-words").get("guidance"), "`guidance:` is empty")
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7 · Notice
#
# * **Diffusion does not mean UNet.** The loop needs a function of latents, noise level and text. Here it is a
#   transformer, and no line of the loop depends on that.
# * **Conditioning is not the concatenation of strings.** The text's tokens are vectors in one sequence with
#   the picture's, and every block changes them. A second, pooled vector scales and shifts every block.
# * **A picture's tokens grow with the square of its side, and the scores among them with the fourth power.**
# * **Guidance need not cost a second pass.** A distilled model gets the scale as an input.
# * **Position is an input like any other.** Exchanged rows and columns change no shape. And a picture may
#   look healthy although its schedule is wrong: compare values in a trace.

# %% [markdown]
# ## 8 · Check and hand in
#
# Run this cell last. It runs the visible checks again, says what is missing, and leaves one file to hand in.

# %% tags=["demo"]
from inferlab.lab import submit

submit()
