# %% [markdown]
# # Lab 25 · Newer models
#
# Since Llama, three parts of a language model have changed. Experts replace the MLP. Windows, latents or
# states replace keys and values. A model drafts its own next tokens. You count what each change reads and
# keeps, write two routers and latent attention by hand, and find a broken router.
#
# **Time** 60 to 85 minutes · **Points** 16, of which 4 are practice · **Reading**
# [Newer models](../../handbook/lab25-newer-models.md) in the handbook, before you start

# %% tags=["parameters"]
LEARNER = ""  # your name or id, as your course knows you
MODEL = "bundled"  # "bundled" | "full" | "hub"
DEVICE = "auto"  # "auto" | "cpu" | "cuda"
SEED = 0

# %%
from inferlab.lab import start

lab = start("lab25-newer-models", LEARNER, MODEL, DEVICE, SEED)

# %%
import torch
from inferlab.lab import when_written
from inferlab.lab.kits.newer_models import (PUBLISHED, Routers, bytes_in_cache, cache_sizes, filled_cache,
                                            suspect_router, tiny)
from inferlab.trace import trace
from transformers import AutoConfig

torch.set_grad_enabled(False)


def some_tokens(rows, count, seed):
    """Token ids of shape (rows, count)."""
    return torch.randint(0, 512, (rows, count), generator=torch.Generator().manual_seed(seed))


for kind in ("mixtral", "qwen3_moe", "deepseek_v3"):
    print(f"{type(tiny(kind)).__name__:24} {tiny(kind).num_parameters():,} parameters")

# %% [markdown]
# These are the library's own classes at tiny size, with seeded random weights. Shapes, bytes and products
# depend on sizes alone; routes depend on the weights, too. Only section 5's texts come from a trained model.
#
# ## 1 · Goal and mental model
#
# After this lab you can say what a sparse model reads at batch 1 and at batch 64, what each kind of layer
# keeps of the past, and what three kinds of drafts cost.
#
# | instead of | newer models have | what changes | what does not |
# |---|---|---|---|
# | one MLP | a **router**, which chooses `k` of `E` **experts** for each token | weights held and read | a token's products do not grow with `E` |
# | keys and values of all tokens | a **window**, a **latent**, or a **state** | bytes kept of the past | the shapes of input and output |
# | a second model as draft (lab 16) | **prompt lookup**, or an extra layer: **multi-token prediction** | what a draft reads | the text, which the target decides |
#
# ![Share of a layer's experts that a pass reads, against the tokens in the pass, for three published models.
# All three curves begin low and reach almost everything.](../../handbook/figures/lab25-experts.svg)
#
# *From the handbook.* The more tokens share a pass, the more of the experts it reads.

# %% [markdown]
# ## 2 · Predict
#
# ### Exercise 1 · What do the experts of a layer cost?
#
# *difficulty 2 of 3 · 5 minutes · 2 points*
#
# An expert has three matrices of `hidden * inner` weights. The router sends each token to `chosen`
# **different** experts. Suppose that all choices are equally likely, and that tokens choose independently.
# A **shared** expert is used by every token. Leave the router's own matrix out.
#
# Write what one layer costs in one pass, **before you run section 3**.
#
# | argument | meaning |
# |---|---|
# | `tokens` | tokens in the pass, of all sequences together |
# | `experts`, `chosen`, `shared` | experts to choose from, how many a token chooses, and shared ones besides |
# | `hidden`, `inner` | sizes of an expert's matrices |
# | `item_bytes` | bytes of a weight |
#
# Returns a `dict`:
#
# * `"distinct"`: how many of the `experts` at least one token uses, on average, `float`
# * `"bytes"`: weights that are read: each used expert, shared ones too, once in a pass, on average, `float`
# * `"products"`: how often two numbers are multiplied in the matrices, for all tokens, `int`
#
# <details><summary>Hint 1: a nudge</summary>
#
# With which probability does one token leave a given expert out? And all tokens?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# <code>distinct = experts * (1 - (1 - chosen / experts) ** tokens)</code>. Shared experts are read once and
# multiply for each token, like each chosen one.
# </details>

# %% exercise="forecast" provides=["forecast"] difficulty=2 minutes=5
def forecast(tokens, experts, chosen, shared, hidden, inner, item_bytes):
    """Distinct experts, bytes and products of one layer's experts in one pass."""
    ### BEGIN SOLUTION
    weights = 3 * hidden * inner
    distinct = experts * (1 - (1 - chosen / experts) ** tokens)
    return {"distinct": distinct, "bytes": (distinct + shared) * weights * item_bytes,
            "products": tokens * (chosen + shared) * weights}
    ### END SOLUTION

# %% check="forecast" points=2
from inferlab.lab import Check, reference

check = Check("forecast", points=2)

def ask_forecast(*run):
    """The learner's forecast, once it has the form of the contract."""
    told = check.learner.forecast(*run)
    check.true(isinstance(told, dict) and set(told) == {"distinct", "bytes", "products"},
               "return a dict with exactly the three keys")
    return told

with check.part("one token", weight=1):
    check.close(ask_forecast(1, 8, 2, 0, 4, 6, 2)["distinct"], 2.0, tol=1e-6)
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 3 · Trace
#
# A Qwen3-MoE with 32 experts, of which each token chooses 4. A pass has one token of each of 64 sequences,
# as a decode step has:

# %%
sparse, ids = tiny("qwen3_moe"), some_tokens(64, 12, 0)
with trace(sparse, depth="model.layers.0.mlp*") as run:
    sparse(ids[:, :1])

# %% tags=["demo"]
for boundary in run.boundaries:
    if boundary.name.startswith("model.layers.0.mlp."):
        print(f"{boundary.name.removeprefix('model.layers.0.mlp.'):16}",
              *(tuple(one.shape) for one in boundary.inputs.values()), "->", boundary.outputs)

# %% [markdown]
# `gate` is the router. For each token it returns 32 logits, 4 weights and the numbers of 4 experts. `act_fn`,
# the experts' activation function, gets 256 rows: 4 for each token, however many experts there are.
#
# **Reconcile:** `Routers` notes what each router decides. 64 rows of 12 tokens go through the model at once.
# Take one position of the 12 and the first `batch` rows: these `batch` tokens are what one decode step would
# have. How many experts do they use?

# %%
with Routers(sparse) as routers:
    sparse(ids)

# %% tags=["demo"]
chosen = torch.stack([call.experts.view(64, 12, 4) for call in routers.calls])  # (layers, rows, places, 4)
for batch in (1, 4, 16, 64):
    counts = [layer[:batch, place].unique().numel() for layer in chosen for place in range(12)]
    print(f"{batch:2} tokens use {sum(counts) / len(counts):4.1f} experts", end="")
    with when_written("forecast"):
        print(f", your forecast {forecast(batch, 32, 4, 0, 64, 32, 4)['distinct']:4.1f}", end="")
    print()
loads = chosen[0].flatten().bincount(minlength=32)
print(f"layer 0: an expert gets {loads.min()} to {loads.max()} of {loads.sum()} choices")

# %% [markdown]
# At batch 64 nearly every one of these 32 experts is read. An expert's **load** is the number of choices that
# it gets. Loads are uneven, so several tokens use fewer than your forecast, which assumed equal choices. Some
# systems give each expert a **capacity**, such as 1.25 times the even share, and drop choices beyond it. The
# library drops nothing.

# %% [markdown]
# ## 4 · Read
#
# Who reads an expert's weights, and what two kinds of cache layers are given. (Shown is the plain loop over
# experts. Section 3 ran `grouped_mm`, which computes the same in one call.)

# %% jupyter={"source_hidden": true}
from inferlab.lab import show_source
from transformers.models.mixtral.modeling_mixtral import MixtralExperts

show_source(
    MixtralExperts.forward,
    {
        "expert_hit = torch.greater(expert_mask.sum(dim=(-1, -2)), 0).nonzero()":
            "Experts with at least one token. The others' weights are never touched.",
        "current_state = hidden_states[token_idx]":
            "All tokens of this expert at once: its weights are read once in a pass.",
        "current_hidden_states = current_hidden_states * top_k_weights[token_idx, top_k_pos, None]":
            "The router's weight scales what the expert returns.",
    },
    excerpts=[("expert_hit = torch.greater", "expert_hit = torch.greater"),
              ("top_k_pos, token_idx = torch.where(expert_mask[expert_idx])",
               "current_hidden_states = current_hidden_states * top_k_weights")],
    checked="5.24.0",
)

# %% jupyter={"source_hidden": true}
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3Attention

show_source(
    DeepseekV3Attention.forward,
    {
        "kv_nope, k_rot = torch.split(compressed_kv, [self.kv_lora_rank, self.qk_rope_head_dim], dim=-1)":
            "For each token one latent, and one small key that carries the position. No heads.",
        "kv_nope, k_rot = cache.update(kv_nope, k_rot, self.layer_idx, kwargs=kwargs)":
            "These two are cached, under the names keys and values.",
        "key_states, value_states = self.expand_kv(kv_nope, k_rot)":
            "Keys and values of all heads are made again from the latents, of all tokens, in every call.",
    },
    excerpts=[("kv_nope, k_rot = torch.split(compressed_kv", "kv_nope, k_rot = torch.split(compressed_kv"),
              ("if cache is not None:", "key_states, value_states = self.expand_kv(kv_nope, k_rot)")],
    checked="5.24.0",
)

# %% jupyter={"source_hidden": true}
from transformers.cache_utils import DynamicSlidingWindowLayer

show_source(
    DynamicSlidingWindowLayer.update,
    {
        "self.keys = full_key_states[:, :, -self.sliding_window + 1 :, :]":
            "A slice: what lies before it is gone. The window counts the token that comes next.",
        "return full_key_states, full_value_states":
            "This call still sees what it appended.",
    },
    excerpts=[("full_key_states = torch.cat([self.keys, key_states], dim=-2)",
               "return full_key_states, full_value_states")],
    checked="5.24.0",
)

# %% [markdown]
# ## 5 · Build
#
# ### Exercise 2 · Two routers
#
# *difficulty 2 of 3 · 6 minutes · 2 points*
#
# (This one is practice.) Both functions get `logits` (tokens, experts), float32, and return `(weights,
# experts)`, each `(tokens, k)`. The order of a token's `k` experts does not matter.
#
# * `route(logits, k, normalize)`, as in Mixtral and Qwen3-MoE: softmax over **all** experts, the `k`
#   largest are chosen. If `normalize`, the weights of a token are divided by their sum.
# * `route_in_groups(logits, bias, k, groups, kept, scale)`, as in DeepSeek-V3. A **score** is the sigmoid
#   of a logit. An expert's **worth** is its score plus its `bias` (experts,). Neighbouring experts form
#   `groups` groups of equal size. A group is worth the sum of its two best experts. For each token the
#   `kept` best groups are open, and of the experts in them the `k` best are chosen. Their weights are their
#   **scores**, divided by the sum of these `k`, times `scale`.
#
# <details><summary>Hint 1: a nudge</summary>
#
# <code>topk</code> returns values and indices. Which numbers do you choose by? Which do you
# <code>gather</code>?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# <code>worth = (scores + bias).view(tokens, groups, -1)</code>. The open groups are <code>worth.topk(2,
# -1).values.sum(-1).topk(kept, -1).indices</code>; fill the others with -inf by <code>masked_fill(closed[...,
# None], -torch.inf)</code>. Flatten, take <code>topk(k)</code>, gather from the scores.
# </details>

# %% exercise="route" provides=["route", "route_in_groups"] difficulty=2 minutes=6
def route(logits, k, normalize):
    """Mixtral's choice: (weights, experts)."""
    ### BEGIN SOLUTION
    weights, experts = logits.softmax(-1).topk(k, -1)
    return weights / weights.sum(-1, keepdim=True) if normalize else weights, experts
    ### END SOLUTION


def route_in_groups(logits, bias, k, groups, kept, scale):
    """DeepSeek-V3's choice: (weights, experts)."""
    scores = logits.sigmoid()
    # `worth`, (tokens, groups, experts of a group), and `best`, (tokens, kept): numbers of the open groups
    ### BEGIN SOLUTION
    worth = (scores + bias).view(len(logits), groups, -1)
    best = worth.topk(2, -1).values.sum(-1).topk(kept, -1).indices
    ### END SOLUTION
    closed = torch.ones(len(logits), groups, dtype=torch.bool).scatter(1, best, False)
    ### BEGIN SOLUTION
    experts = worth.masked_fill(closed[..., None], -torch.inf).flatten(1).topk(k, -1).indices
    weights = scores.gather(1, experts)
    return weights / weights.sum(-1, keepdim=True) * scale, experts
    ### END SOLUTION

# %% check="route" points=2
import torch
from inferlab.lab import Check, close, reference

check = Check("route", points=2)

def table(result, tokens, experts, k):
    """The weight of each expert for each token, (tokens, experts)."""
    check.true(isinstance(result, tuple) and len(result) == 2, "return (weights, experts)")
    check.tensor(result[0], shape=(tokens, k))
    check.tensor(result[1], shape=(tokens, k), dtype=torch.int64)
    return torch.zeros(tokens, experts).scatter_add(1, result[1], result[0])

with check.part("the two largest of three, normalized", weight=1):
    got = table(check.learner.route(torch.tensor([[0.0, 2.0, 1.0]]).log1p(), 2, True), 1, 3, 2)
    check.close(got, torch.tensor([[0.0, 0.6, 0.4]]))
### HIDDEN TESTS
check.score()

# %% [markdown]
# Your routers inside the library's blocks: their choice is handed to the block's own experts.

# %% tags=["demo"]
x = torch.randn(10, 64, generator=torch.Generator().manual_seed(3))
with when_written("route", "route_in_groups"):
    for kind, normalize in (("mixtral", True), ("qwen3_moe", False)):
        block = tiny(kind).model.layers[0].mlp
        weights, experts = route(block.gate(x)[0], block.gate.top_k, normalize)
        error = (block.experts(x, experts, weights) - block(x[None])[0]).abs().max()
        print(f"{kind:12} largest difference {error:.0e}")
    block = tiny("deepseek_v3").model.layers[1].mlp
    weights, experts = route_in_groups(block.gate(x)[0], block.gate.e_score_correction_bias, 4, 4, 2, 2.5)
    mine = block.experts(x, experts, weights) + block.shared_experts(x)
    print(f"deepseek_v3  largest difference {(mine - block(x[None])[0]).abs().max():.0e}")

# %% [markdown]
# ### A window forgets
#
# A Mistral has two layers and a window of 8: each token sees 8 tokens, itself included. We change the
# first of 40 tokens. At which positions do the logits change? And in a Gemma 2, where every second layer sees
# all tokens?

# %%
ids = some_tokens(1, 40, 1)
other = ids.clone()
other[0, 0] += 1


def changed(kind):
    """Positions whose logits change with the first token."""
    model = tiny(kind)
    return (model(ids).logits != model(other).logits).any(-1)[0].nonzero().flatten()


for kind in ("mistral", "gemma2"):
    print(f"{kind:8} positions 0 to {changed(kind).max()} change")

# %% [markdown]
# Each layer with a window of `W` carries what a token says at most `W - 1` positions on. Later tokens know
# nothing of it. One layer without a window is enough to change that. So many models mix the two.
#
# ### Exercise 3 · The cache of six models
#
# *difficulty 3 of 3 · 8 minutes · 3 points*
#
# `cache_sizes(config)` takes from a config what a cache depends on, under the config's names:

# %%
for name, kind in PUBLISHED.items():
    sizes = cache_sizes(AutoConfig.for_model(kind))
    kinds = sizes.pop("layer_types")
    print(f"{name}:", ", ".join(f"{kinds.count(one)} {one}" for one in sorted(set(kinds))), sizes)

# %% [markdown]
# (These are the installed config classes' defaults.) Write `cache_bytes(sizes, tokens, batch, item_bytes)`:
# the bytes of a `DynamicCache` after `tokens` tokens of each of `batch` sequences, in numbers of
# `item_bytes` bytes. `sizes` is what `cache_sizes` returns; its `layer_types` names each layer's kind.
# Returns `int`.
#
# | layer | keeps for each sequence |
# |---|---|
# | `"full_attention"` | keys and values of all tokens, each `head_dim` numbers for each key/value head |
# | `"sliding_attention"` | the same of the newest `sliding_window - 1` tokens |
# | either, with a `kv_lora_rank` (other models lack it) | for each token one latent and one rotary key (section 4) instead of keys and values |
# | `"linear_attention"` | a state, however many tokens: for each value head a matrix, key `head_dim` by value `head_dim`, **always in 4-byte numbers**; and the input (given) |
#
# <details><summary>Hint 1: a nudge</summary>
#
# Go through <code>layer_types</code> and add up. How many heads has a latent? Which of the numbers in a
# linear layer depend on <code>item_bytes</code>?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# A token takes <code>kv_lora_rank + qk_rope_head_dim</code> numbers, or <code>2 * num_key_value_heads *
# head_dim</code>. Rows: <code>tokens</code>, or at most <code>sliding_window - 1</code>. Linear: the matrices
# have value heads times key dim times value dim numbers.
# </details>

# %% exercise="cache" provides=["cache_bytes"] difficulty=3 minutes=8
def cache_bytes(sizes, tokens, batch, item_bytes):
    """Bytes of the cache of a model with such sizes."""
    total = 0
    for kind in sizes["layer_types"]:
        if kind == "linear_attention":
            keys = sizes["linear_num_key_heads"] * sizes["linear_key_head_dim"]
            values = sizes["linear_num_value_heads"] * sizes["linear_value_head_dim"]
            total += (2 * keys + values) * sizes["linear_conv_kernel_dim"] * item_bytes  # input
            ### BEGIN SOLUTION
            total += 4 * values * sizes["linear_key_head_dim"]
            ### END SOLUTION
            continue
        ### BEGIN SOLUTION
        rows = min(tokens, sizes["sliding_window"] - 1) if kind == "sliding_attention" else tokens
        numbers = 2 * sizes["num_key_value_heads"] * sizes["head_dim"]
        if "kv_lora_rank" in sizes:
            numbers = sizes["kv_lora_rank"] + sizes["qk_rope_head_dim"]
        total += rows * numbers * item_bytes
        ### END SOLUTION
    return batch * total

# %% check="cache" points=3
from inferlab.lab import Check, reference

check = Check("cache", points=3)

def ask_cache(*run):
    """The learner's bytes, a whole number."""
    told = check.number(check.learner.cache_bytes(*run), "return the bytes")
    check.true(told == int(told), "bytes are a whole number")
    return int(told)

with check.part("two layers that see everything", weight=1):
    check.equal(ask_cache({"layer_types": ["full_attention"] * 2, "num_key_value_heads": 3, "head_dim": 5},
                          7, 2, 2), 1680)
### HIDDEN TESTS
check.score()

# %% [markdown]
# Real caches at tiny size (two sequences of 30 tokens, float32), and the published sizes at 32,768 tokens in
# 16 bits:

# %% tags=["demo"]
for name, kind in PUBLISHED.items():
    model = tiny(kind)
    held = bytes_in_cache(filled_cache(model, some_tokens(2, 30, 4)))
    print(f"{name:16} tiny: {held:6,} bytes held", end="")
    with when_written("cache_bytes"):
        told = cache_bytes(cache_sizes(model.config), 30, 2, 4)
        large = cache_bytes(cache_sizes(AutoConfig.for_model(kind)), 32768, 1, 2)
        print(f", {told:6,} told; published: {large / 2**20:7,.0f} MiB", end="")
    print()

# %% [markdown]
# ### Exercise 4 · Absorb a matrix
#
# *difficulty 3 of 3 · 5 minutes · 2 points*
#
# (This one is practice.) Latent attention can do without section 4's `expand_kv`. The key of a head is
# $k = W_K c$, with the latent $c$. So the score is $q \cdot W_K c = (W_K^\top q) \cdot c$: the matrix is
# **absorbed** into the query, which then meets the latents themselves. For the values, mix the latents
# first, and multiply by $W_V$ once.
#
# Write `absorbed(q_nope, q_rope, latent, k_rope, kv_b, scale)` for one new token and all cached ones (no
# mask):
#
# | argument | shape |
# |---|---|
# | `q_nope`, `q_rope` | (heads, 1, nope) and (heads, 1, rope): the query's parts without and with position |
# | `latent`, `k_rope` | (tokens, rank), (tokens, rope): what is cached. All heads share the **rotary key** |
# | `kv_b` | (heads * (nope + v), rank): for each head first the nope rows of $W_K$, then v rows of $W_V$ |
# | `scale` | a score is (nope part + rope part) * `scale` |
#
# Returns `(query, out)`: the query that meets the latents, (heads, 1, rank), and the output, (heads, 1, v).
#
# <details><summary>Hint 1: a nudge</summary>
#
# Cut the middle axis of <code>matrices</code>. <code>@</code> works head by head.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# <code>up_k, up_v = matrices.split([nope, matrices.shape[1] - nope], 1)</code>; <code>query = q_nope @
# up_k</code>; the scores are <code>query @ latent.T + q_rope @ k_rope.T</code>, times
# the scale; the output is <code>scores.softmax(-1) @ latent @ up_v.mT</code>.
# </details>

# %% exercise="absorb" provides=["absorbed"] difficulty=3 minutes=5
def absorbed(q_nope, q_rope, latent, k_rope, kv_b, scale):
    """Latent attention without making keys or values: (query, out)."""
    heads, _, nope = q_nope.shape
    matrices = kv_b.view(heads, -1, kv_b.shape[-1])  # (heads, nope + v, rank)
    ### BEGIN SOLUTION
    query = q_nope @ matrices[:, :nope]
    scores = (query @ latent.T + q_rope @ k_rope.T) * scale
    return query, scores.softmax(-1) @ latent @ matrices[:, nope:].mT
    ### END SOLUTION

# %% check="absorb" points=2
import torch
from inferlab.lab import Check, close, reference

check = Check("absorb", points=2)

def ask_absorbed(*given):
    """The learner's (query, out), in the shapes of the contract."""
    result = check.learner.absorbed(*given)
    heads, rank = len(given[0]), given[2].shape[1]
    check.true(isinstance(result, tuple) and len(result) == 2, "return two tensors, query and out")
    check.tensor(result[0], shape=(heads, 1, rank))
    check.tensor(result[1], shape=(heads, 1, len(given[4]) // heads - given[0].shape[2]))
    return result

with check.part("one head, one number each", weight=1):
    unit = torch.ones(1, 1, 1)
    rows = torch.tensor([[5.0], [7.0]])
    check.close(ask_absorbed(2 * unit, unit, torch.tensor([[3.0]]), unit[0], rows, 1.0)[1], 21 * unit)
### HIDDEN TESTS
check.score()

# %% [markdown]
# A decode step of the DeepSeek. `SdpaCalls` (lab 22) notes what its attention was given and what came out:

# %%
from inferlab.lab.kits.attention import SdpaCalls
from torch.utils.flop_counter import FlopCounterMode

deep = tiny("deepseek_v3")
attention = deep.model.layers[0].self_attn
with SdpaCalls() as sdpa:
    cache = filled_cache(deep, some_tokens(1, 41, 5))
first, call = cache.layers[0], sdpa.calls[-len(cache.layers)]  # layer 0, in the decode step
print("cached under `keys`:  ", tuple(first.keys.shape))
print("cached under `values`:", tuple(first.values.shape))
print("keys that attention gets:", tuple(call["key"].shape))

# %% tags=["demo"]
with when_written("absorbed"):
    q_nope, q_rope = call["query"][0].split([16, 8], -1)
    with FlopCounterMode(display=False) as short:
        query, out = absorbed(q_nope, q_rope, first.keys[0, 0], first.values[0, 0],
                              attention.kv_b_proj.weight, attention.scaling)
    with FlopCounterMode(display=False) as plain:
        attention.expand_kv(first.keys, first.values)
    print(f"largest difference to the library: {(out - call['output'][0]).abs().max():.0e}")
    print(f"products: {short.get_total_flops() // 2:,} absorbed; "
          f"{plain.get_total_flops() // 2:,} only to make keys and values again")

# %% [markdown]
# ### Drafts without a second model
#
# Lab 16's draft is a model of its own. Two newer kinds need none. The target checks all in the same way.
#
# | draft | reads for a drafted token | comes from |
# |---|---|---|
# | draft model (lab 16) | all its weights | training of its own |
# | **multi-token prediction** | one more layer of the target; embedding and head are shared | the target's last hidden state and its newest token; trained with the target |
# | **prompt lookup** | no weights | the text so far |

# %% [markdown]
# ### Exercise 5 · What will prompt lookup get accepted?
#
# *difficulty 2 of 3 · 6 minutes · 2 points*
#
# Before each pass, prompt lookup takes the last `ngram` tokens of the text so far and looks for them
# earlier in the text; the two may overlap. The **first** place (from the left) counts. The tokens that
# follow that place are the draft: at most `ahead`, and none beyond the text so far. If there is no place, it
# tries one token less, down to one. If there is still none, it drafts nothing. The target keeps the drafted
# tokens before the first one that it would not write itself, and adds one token of its own.
#
# The target is greedy, so it writes a fixed text. `text` is a list of token ids: `prompt` tokens of the
# prompt, then what the target writes. Write `lookup(text, prompt, ngram, ahead, passes)`: a list with
# `(drafted, kept)`, two `int`, for each of the first `passes` passes.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Which tokens are the tail of the text so far? A place must lie before the tail itself.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# For each size from <code>ngram</code> down to 1: <code>tail = text[done - size:done]</code>. The first
# <code>i</code> in <code>range(done - size)</code> with <code>text[i:i + size] == tail</code> gives the
# draft <code>text[i + size:min(i + size + ahead, done)]</code>. Compare with <code>text[done:]</code>;
# <code>done</code> grows by kept + 1.
# </details>

# %% exercise="lookup" provides=["lookup"] difficulty=2 minutes=6
def lookup(text, prompt, ngram, ahead, passes):
    """(drafted, kept) of each pass."""
    rounds, done = [], prompt  # `done`: length of the text so far
    for _ in range(passes):
        draft, kept = [], 0
        ### BEGIN SOLUTION
        for size in range(ngram, 0, -1):
            tail = text[done - size:done]
            places = [i for i in range(done - size) if text[i:i + size] == tail]
            if places:
                draft = text[places[0] + size:min(places[0] + size + ahead, done)]
                break
        while kept < len(draft) and draft[kept] == text[done + kept]:
            kept += 1
        rounds.append((len(draft), kept))
        done += kept + 1
        ### END SOLUTION
    return rounds

# %% check="lookup" points=2
from inferlab.lab import Check, reference

check = Check("lookup", points=2)

def ask_lookup(*run):
    """The learner's rounds, as a list of pairs."""
    told = check.learner.lookup(*run)
    check.true(isinstance(told, list) and all(isinstance(one, tuple) and len(one) == 2 for one in told),
               "return a list of pairs")
    return told

with check.part("a text that repeats", weight=1):
    check.equal(ask_lookup([1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 7, 8], 6, 2, 2, 2), [(2, 2), (0, 0)])
### HIDDEN TESTS
check.score()

# %% [markdown]
# The trained model continues two texts. A trace gives the pairs. The last pass is left out: the limit of 24
# tokens may cut it.

# %%
from inferlab.lab.kits.speculation import rounds_of
from inferlab.models import load_language_model
from inferlab.models.quiet import quiet
from inferlab.models.stories import documents

model, tokenizer = load_language_model(MODEL, lab.device)
runs = {}
for kind in ("story", "scene"):
    text = " ".join(one.context for one in documents(3, seed=SEED + 1, kind=kind))
    prompt = tokenizer(text, return_tensors="pt").input_ids[:, :100].to(lab.device)
    with trace(model) as run, quiet():
        tokens = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=24,
                                do_sample=False, prompt_lookup_num_tokens=4, max_matching_ngram_size=2)
    positions, removed = rounds_of(run)
    runs[kind] = tokens[0].tolist(), [(a - 1, a - 1 - b) for a, b in zip(positions, removed, strict=True)]

# %% tags=["demo"]
for kind, (tokens, rounds) in runs.items():
    print(f"{kind}: {len(tokens) - 100} tokens in {len(rounds)} passes", *rounds[:-1])
    with when_written("lookup"):
        print("   your forecast:", *lookup(tokens, 100, 2, 4, len(rounds) - 1))

# %% [markdown]
# ### Exercise 6 · Which router is broken?
#
# *difficulty 3 of 3 · 5 minutes · 2 points*
#
# In this Mixtral the router of one layer is broken, in a way that depends on your name. No error is raised. A
# sound router computes a softmax over 8 logits, chooses the 2 experts with the largest, and divides their two
# weights by their sum. 96 tokens make 192 choices, so an even load is 24. The cell shows what each layer's
# router did, of its first three tokens and of all. **Find the broken layer before you read on:**

# %%
mixtral = tiny("mixtral")
mend = suspect_router(mixtral, lab.variant(16))
with Routers(mixtral) as suspect:
    mixtral(some_tokens(1, 96, 6))
mend()

# %% tags=["demo"]
for number, one in enumerate(suspect.calls):
    print(f"layer {number}: tokens that each of the 8 experts gets:",
          one.experts.flatten().bincount(minlength=8).tolist())
    for token in range(3):
        print(f"    token {token}: largest logits at experts {one.logits[token].topk(2).indices.tolist()}, "
              f"chosen {one.experts[token].tolist()}, with weights",
              [round(weight, 2) for weight in one.weights[token].tolist()])

# %% [markdown]
# | fault | what the router does |
# |---|---|
# | `"collapsed"` | every token chooses the same expert, among others; its logit is among the largest |
# | `"unnormalized"` | a token's weights are not divided by their sum |
# | `"uniform"` | all weights are equal |
# | `"shifted"` | the work goes to other experts than those with the largest logits |
#
# Write `diagnose()`, which returns a `dict`: `"layer"`, `int` from 0; `"fault"`, one of the four names;
# `"load"`, the most tokens that one expert gets in that layer, `int`; `"dropped"`, how many of that layer's
# choices a capacity of 1.25 times the even load would drop, `int`. Your function may compute the values from
# `suspect.calls` (each has `logits`, `weights` and `experts`), or return what you read above.
#
# <details><summary>Hint 1: a nudge</summary>
#
# For each layer: do two weights make 1? Are they ever different? Are the chosen experts those with the
# largest logits? Does one expert get every token?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# The even load is 24, so the capacity is 30. Dropped: <code>(loads - 30).clamp(min=0).sum()</code>. Sums
# below 1: unnormalized. Equal weights: uniform. Other experts than the topk: shifted. A load of 96:
# collapsed.
# </details>

# %% exercise="diagnosis" provides=["diagnose"] difficulty=3 minutes=5
def diagnose():
    """Which layer, which fault, the largest load, and what a capacity would drop."""
    ### BEGIN SOLUTION
    for layer, one in enumerate(suspect.calls):
        loads = one.experts.flatten().bincount(minlength=8)
        found = {"collapsed": loads.max() == 96, "unnormalized": one.weights.sum(-1).min() < 0.99,
                 "uniform": (one.weights == 0.5).all(),
                 "shifted": (one.experts != one.logits.topk(2).indices).any()}
        for fault, is_so in found.items():
            if is_so:
                return {"layer": layer, "fault": fault, "load": int(loads.max()),
                        "dropped": int((loads - 30).clamp(min=0).sum())}
    ### END SOLUTION

# %% check="diagnosis" points=2
from inferlab.lab import Check, reference

check = Check("diagnosis", points=2)

def diagnosis():
    """The learner's diagnosis, once it has its four keys."""
    told = check.learner.diagnose()
    check.true(isinstance(told, dict) and set(told) == {"layer", "fault", "load", "dropped"},
               "return a dict with the keys layer, fault, load, dropped")
    check.true(told["fault"] in ("collapsed", "unnormalized", "uniform", "shifted"),
               f"{told['fault']!r} is none of the four faults")
    return told

with check.part("a layer, a fault and two numbers (graded when you hand it in)", weight=0):
    diagnosis()
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 6 · Explain
#
# Say what newer models read and keep. In `experts`, `window`, `latent` and `draft` you write short
# sentences, one a line, from the tables below: an entry of `who`, a verb, an entry of its row. In `reach`
# type the last position at which the Mistral's logits changed (section 5), and in `shape` the shape of
# what the DeepSeek's cache holds under `keys` in layer 0. Lines that begin with `#` are notes of your own.

# %% jupyter={"source_hidden": true}
### FIXTURE words
words

# %% [markdown]
# *difficulty 1 of 3 · 6 minutes · 3 points.* The cell shows how each line is read, and only that is graded.
# A field is worth half a point. Each field of sentences needs three; one false sentence costs the field. A
# line that is not read waits for a person.

# %% explain="newer-in-words" difficulty=1 minutes=6
%%explain newer-in-words
# ### BEGIN SOLUTION
# experts: a pass of one token reads few experts
#   a pass of 64 tokens reads nearly all experts
#   more experts with the same k cost as many products for each token
# window: a sliding layer keeps the newest tokens and forgets older tokens
#   a linear layer keeps a state of fixed size
# latent: the cache keeps one latent and one rotary key
#   the query absorbs the key matrix
# draft: prompt lookup reads no weights and drafts from the text so far
#   multi-token prediction drafts from the last hidden state
# reach: 14
# shape: (1, 1, 41, 20)
# ### END SOLUTION

# %% check="words-sparse" of="newer-in-words" points=1
from inferlab.lab import Check

check = Check("words-sparse", points=1)
with check.part("`experts:` and `draft:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("newer-in-words").get("experts"), "`experts:` is empty")
    check.true(check.explanation("newer-in-words").get("draft"), "`draft:` is empty")
### HIDDEN TESTS
check.score()

# %% check="words-cache" of="newer-in-words" points=1
from inferlab.lab import Check

check = Check("words-cache", points=1)
with check.part("`window:` and `latent:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("newer-in-words").get("window"), "`window:` is empty")
    check.true(check.explanation("newer-in-words").get("latent"), "`latent:` is empty")
### HIDDEN TESTS
check.score()

# %% check="words-entries" of="newer-in-words" points=1
from inferlab.lab import Check, reference

check = Check("words-entries", points=1)
with check.part("`reach:` and `shape:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("newer-in-words").get("reach"), "`reach:` is empty")
    check.true(check.explanation("newer-in-words").get("shape"), "`shape:` is empty")
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7 · Notice
#
# * **A sparse model reads few experts for one token, and nearly all for 64.**
# * **More experts do not cost a token more.** It chooses `k` of them. What grows is the memory held.
# * **A window forgets.** What leaves it reaches later tokens only through layers, `W - 1` positions each.
# * **A latent cache stores no head's keys**, whatever the tensor's name says. It stores what they are made
#   from, and one rotary key, once for all heads.
# * **The bias of DeepSeek's router chooses, and does not weigh.**
# * **A draft from the text pays where the text repeats itself.**

# %% [markdown]
# Flashcards on inference, for now or for another day. Some belong to other labs:

# %% tags=["demo"]
from inferlab.lab.cards import show_cards

show_cards("inference")

# %% [markdown]
# ## 8 · Check and hand in
#
# Run this cell last. It runs the visible checks again, says what is missing, and leaves one file to hand in.

# %% tags=["demo"]
from inferlab.lab import submit

submit()
