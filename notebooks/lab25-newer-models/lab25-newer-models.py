# %% [markdown]
# # Lab 25 · Newer models
#
# Since Llama, language models have changed in three ways. You count what each change reads and keeps, write
# the core of two routers and of latent attention, and find a broken router.
#
# **Time** 50 to 60 minutes · **Points** 16, of which 4 are practice · **Reading**
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
                                            in_open_groups, state_bytes, suspect_router, tiny)
from inferlab.trace import trace
from transformers import AutoConfig

torch.set_grad_enabled(False)


def some_tokens(rows, count, seed):
    """Token ids of shape (rows, count)."""
    return torch.randint(0, 512, (rows, count), generator=torch.Generator().manual_seed(seed))


# %% [markdown]
# `tiny` gives the library's own classes at tiny size, with seeded random weights. Shapes, bytes and products
# depend on sizes alone.
#
# ## 1 · Goal and mental model
#
# After this lab you can say what a sparse model reads at batch 1 and at batch 64, what each kind of layer
# keeps of the past, and where drafts come from.
#
# * Instead of one MLP: a **router** chooses `k` of `E` **experts** for each token.
# * Instead of keys and values of all tokens: a **window**, a **latent**, or a **state**.
# * Instead of a second model as draft (lab 16): **prompt lookup**, or one more layer.
#
# ![Share of a layer's experts that a pass reads, against the tokens in the pass, for three published models.
# All three curves begin low and reach almost everything.](../../handbook/figures/lab25-experts.svg)
#
# *From the handbook.*

# %% [markdown]
# ## 2 · Predict
#
# ### Exercise 1 · What do the experts of a layer cost?
#
# *difficulty 2 of 3 · 6 minutes · 3 points*
#
# The router sends each token to `chosen` **different** ones of `experts` experts. Suppose that all choices
# are equally likely, and that tokens choose independently. `shared` more experts are used by every token. An
# expert has `weights` weights. `tokens` is the number of tokens in the pass, of all sequences together.
#
# **Before you run section 3**, write two lines of `forecast`:
#
# * `distinct`: how many of the `experts` at least one token uses, on average, `float`;
# * `products`: how often two numbers are multiplied in the experts, for all tokens, `int`. A weight is
#   multiplied once for each token that uses its expert.
#
# Besides these two it returns the weights that are read: each used expert once in a pass.
#
# <details><summary>Hint 1: a nudge</summary>
#
# With which probability does one token leave a given expert out? And all tokens?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# <code>distinct = experts * (1 - (1 - chosen / experts) ** tokens)</code>. Shared experts multiply for each
# token, like each chosen one.
# </details>

# %% exercise="forecast" provides=["forecast"] difficulty=2 minutes=6
def forecast(tokens, experts, chosen, shared, weights):
    """(distinct experts, weights that are read, products) of one layer in one pass."""
    ### BEGIN SOLUTION
    distinct = experts * (1 - (1 - chosen / experts) ** tokens)
    products = tokens * (chosen + shared) * weights
    ### END SOLUTION
    return distinct, (distinct + shared) * weights, products

# %% check="forecast" points=3
from inferlab.lab import Check, reference

check = Check("forecast", points=3)

def ask_forecast(*run):
    """The learner's forecast, once it has the form of the contract."""
    told = check.learner.forecast(*run)
    check.true(isinstance(told, tuple) and len(told) == 3, "return the tuple (distinct, read, products)")
    return told

with check.part("one token", weight=1):
    check.close(ask_forecast(1, 8, 2, 0, 72)[0], 2.0, tol=1e-6)
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
# in the experts, gets 256 rows: 4 for each token, however many experts there are.
#
# **Reconcile:** `Routers` notes what each router decides. How many experts do the first `batch` rows use at
# one position?

# %%
with Routers(sparse) as routers:
    sparse(ids)

# %% tags=["demo"]
routes = torch.stack([call.experts.view(64, 12, 4) for call in routers.calls])  # (layers, rows, places, 4)
for batch in (1, 4, 16, 64):
    counts = [layer[:batch, place].unique().numel() for layer in routes for place in range(12)]
    print(f"{batch:2} tokens use {sum(counts) / len(counts):4.1f} experts", end="")
    with when_written("forecast"):  # an expert has 3 · 64 · 32 = 6,144 weights
        print(f", your forecast {forecast(batch, 32, 4, 0, 6144)[0]:4.1f}", end="")
    print()

# %% [markdown]
# At batch 64 nearly every one of these 32 experts is read. Real choices are uneven, so several tokens use
# fewer than your forecast. An expert's **load** is the number of choices that it gets.

# %% [markdown]
# ## 4 · Read
#
# Who reads an expert's weights:

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

# %% [markdown]
# Section 3 ran `grouped_mm`, which computes the same as this loop.
#
# ## 5 · Build
#
# Between the exercises, short runs show what windows forget and what drafts gain.
#
# ### Exercise 2 · Two routers
#
# *difficulty 2 of 3 · 5 minutes · 2 points*
#
# (This one is practice.) From `logits` (tokens, experts), both functions return `(weights, experts)`, each
# `(tokens, k)`. Write what is missing:
#
# * `route`: softmax over **all** experts, the `k` largest are chosen. (`normalize`: Mixtral divides by the
#   sum; this Qwen3-MoE does not.)
# * `route_in_groups`, as in DeepSeek-V3. A **score** is the sigmoid of a logit. `in_open_groups` (given)
#   makes an expert's **worth**: its score plus its `bias`, and -inf outside of the token's `kept` best
#   groups. The `k` experts of the largest worth are chosen. Their weights are their **scores**. The code then
#   divides them by their sum and multiplies by `scale`.
#
# <details><summary>Hint 1: a nudge</summary>
#
# <code>topk</code> returns values and indices. Which numbers do you choose by? Which do you
# <code>gather</code>?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# <code>logits.softmax(-1).topk(k, -1)</code>; <code>worth.topk(k, -1).indices</code>;
# <code>scores.gather(1, experts)</code>.
# </details>

# %% exercise="route" provides=["route", "route_in_groups"] difficulty=2 minutes=5
def route(logits, k, normalize):
    """The choice of Mixtral or Qwen3-MoE: (weights, experts)."""
    ### BEGIN SOLUTION
    weights, experts = logits.softmax(-1).topk(k, -1)
    ### END SOLUTION
    return weights / weights.sum(-1, keepdim=True) if normalize else weights, experts


def route_in_groups(logits, bias, k, groups, kept, scale):
    """DeepSeek-V3's choice: (weights, experts)."""
    scores = logits.sigmoid()
    worth = in_open_groups(scores + bias, groups, kept)
    ### BEGIN SOLUTION
    experts = worth.topk(k, -1).indices
    weights = scores.gather(1, experts)
    ### END SOLUTION
    return weights / weights.sum(-1, keepdim=True) * scale, experts

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
# A Mistral has two layers and a window of 8: each token sees 8 tokens, itself included. We change the first
# of 40 tokens. Where do the logits change? And in a Gemma 2, where every second layer sees all tokens?

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
# nothing of it. One layer that sees everything changes that, so many models mix the two.
#
# ### Exercise 3 · The cache of six models
#
# *difficulty 2 of 3 · 8 minutes · 3 points*
#
# `cache_sizes(config)` takes from a config what a cache depends on, under the config's names:

# %%
for name, kind in PUBLISHED.items():
    sizes = cache_sizes(AutoConfig.for_model(kind))
    kinds = sizes.pop("layer_types")
    print(f"{name}:", ", ".join(f"{kinds.count(one)} {one}" for one in sorted(set(kinds))), sizes)

# %% [markdown]
# (The installed config classes have these published sizes as defaults.) `batch` sequences have `tokens`
# tokens each; a number has `item_bytes` bytes. How many bytes does the `DynamicCache` hold? Set two variables
# of `cache_bytes`: `rows`, how many tokens a layer keeps, and `numbers`, how many numbers of each of them.
#
# | layer | keeps for each sequence |
# |---|---|
# | `"full_attention"` | keys and values of all tokens, each `head_dim` numbers for each key/value head |
# | `"sliding_attention"` | the same of the newest `sliding_window - 1` tokens (the next token is the last of its window) |
# | either, with a `kv_lora_rank` (other models lack it) | instead, for each token, one latent (`kv_lora_rank` numbers) and one rotary key (`qk_rope_head_dim`), no heads |
# | `"linear_attention"` | a state of one size, however many tokens (given) |
#
# <details><summary>Hint 1: a nudge</summary>
#
# What does a short text leave in a layer with a window? What does a latent replace?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# Rows: <code>tokens</code>, or at most <code>sliding_window - 1</code>. Numbers: <code>2 *
# num_key_value_heads * head_dim</code>, or <code>kv_lora_rank + qk_rope_head_dim</code>.
# </details>

# %% exercise="cache" provides=["cache_bytes"] difficulty=2 minutes=8
def cache_bytes(sizes, tokens, batch, item_bytes):
    """Bytes of the cache of a model with such sizes."""
    total = 0
    for kind in sizes["layer_types"]:
        if kind == "linear_attention":
            total += state_bytes(sizes, item_bytes)
        else:
            ### BEGIN SOLUTION
            rows = min(tokens, sizes["sliding_window"] - 1) if kind == "sliding_attention" else tokens
            numbers = 2 * sizes["num_key_value_heads"] * sizes["head_dim"]
            ### END SOLUTION
            if "kv_lora_rank" in sizes:
                ### BEGIN SOLUTION
                numbers = sizes["kv_lora_rank"] + sizes["qk_rope_head_dim"]
                ### END SOLUTION
            total += rows * numbers * item_bytes
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
# At 32,768 tokens the Mistral's cache is the smallest: all its layers have a window.
#
# The library's latent attention:

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

# %% [markdown]
# ### Exercise 4 · Absorb a matrix
#
# *difficulty 3 of 3 · 6 minutes · 2 points*
#
# (This one is practice.) Latent attention can do without `expand_kv`. The key of a head is $k = W_K c$, with
# the latent $c$. So the score is $q \cdot W_K c = (W_K^\top q) \cdot c$: the matrix is
# **absorbed** into the query, which meets the latents themselves. For the values, mix the latents first, and
# multiply by $W_V$ once.
#
# (In the code $q$ is a row: $q\,W_K$.) Write two lines of `absorbed`, for one new token and all cached ones
# (no mask): `query`, (heads, 1, rank), which meets the latents, and `out`, (heads, 1, v).
#
# | argument | shape |
# |---|---|
# | `q_nope`, `q_rope` | (heads, 1, nope) and (heads, 1, rope): the query's parts without and with position |
# | `latent`, `k_rope` | (tokens, rank), (tokens, rope): what is cached. All heads share the **rotary key** |
# | `w_k`, `w_v` | (heads, nope, rank), (heads, v, rank): $W_K$ and $W_V$ of each head |
#
# <details><summary>Hint 1: a nudge</summary>
#
# <code>@</code> works head by head. Which of the matrices must be turned (<code>.mT</code>)?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# <code>q_nope @ w_k</code>; <code>scores.softmax(-1) @ latent @ w_v.mT</code>.
# </details>

# %% exercise="absorb" provides=["absorbed"] difficulty=3 minutes=6
def absorbed(q_nope, q_rope, latent, k_rope, w_k, w_v, scale):
    """Latent attention without making keys or values: (query, out)."""
    ### BEGIN SOLUTION
    query = q_nope @ w_k
    ### END SOLUTION
    scores = (query @ latent.T + q_rope @ k_rope.T) * scale
    ### BEGIN SOLUTION
    out = scores.softmax(-1) @ latent @ w_v.mT
    ### END SOLUTION
    return query, out

# %% check="absorb" points=2
import torch
from inferlab.lab import Check, close, reference

check = Check("absorb", points=2)

def ask_absorbed(*given):
    """The learner's (query, out), in the shapes of the contract."""
    result = check.learner.absorbed(*given)
    check.true(isinstance(result, tuple) and len(result) == 2, "return two tensors, query and out")
    check.tensor(result[0], shape=(len(given[0]), 1, given[2].shape[1]))
    check.tensor(result[1], shape=(len(given[0]), 1, given[5].shape[1]))
    return result

with check.part("one head, one number each", weight=1):
    unit = torch.ones(1, 1, 1)
    check.close(ask_absorbed(2 * unit, unit, 3 * unit[0], unit[0], 5 * unit, 7 * unit, 1.0)[1], 21 * unit)
### HIDDEN TESTS
check.score()

# %% [markdown]
# A decode step of the DeepSeek. `SdpaCalls` (lab 22) notes what its attention was given and what came out:

# %% tags=["demo"]
from inferlab.lab.kits.attention import SdpaCalls

deep = tiny("deepseek_v3")
attention = deep.model.layers[0].self_attn
with SdpaCalls() as sdpa:
    cache = filled_cache(deep, some_tokens(1, 41, 5))
first, call = cache.layers[0], sdpa.calls[-len(cache.layers)]  # layer 0, in the decode step
print("cached as `keys`:", tuple(first.keys.shape), "and as `values`:", tuple(first.values.shape))
print("keys that attention gets:", tuple(call["key"].shape))
with when_written("absorbed"):
    parts = call["query"][0].split([16, 8], -1)
    matrices = attention.kv_b_proj.weight.view(4, 28, 20).split([16, 12], 1)
    out = absorbed(*parts, first.keys[0, 0], first.values[0, 0], *matrices, attention.scaling)[1]
    print(f"your output: largest difference to the library {(out - call['output'][0]).abs().max():.0e}")

# %% [markdown]
# The cache holds 41 latents of 20 numbers under the name `keys`, and 41 rotary keys of 8 under
# the name `values`.

# %% [markdown]
# ### Drafts without a second model
#
# Two newer kinds of drafts need no second model, and the target checks them as in lab 16. **Multi-token
# prediction** is one more layer of the target. **Prompt lookup** reads no weights. Before each pass:
#
# * It takes the last two tokens of the text so far and looks for them earlier in the text. If they are
#   nowhere, it takes the last one. If that is nowhere, it drafts nothing.
# * The **first** place (from the left) counts. The tokens that follow it are the draft: here at most four.
# * The target keeps the drafted tokens before the first one that it would not write itself, and adds one
#   token of its own.
#
# **Predict.** A prompt has the tokens `a b c d e f a b`. The target writes `c d g c d e h`, in three passes,
# of which the first is the prompt's own. How many drafted tokens does it keep in all three together? You type
# this number in section 6.
#
# A trained model continues two texts. The pairs are (drafted, kept), one a pass:

# %% tags=["demo"]
from inferlab.lab.kits.speculation import rounds_of
from inferlab.models import load_language_model
from inferlab.models.quiet import quiet
from inferlab.models.stories import documents

model, tokenizer = load_language_model(MODEL, lab.device)
for kind in ("story", "scene"):
    text = " ".join(one.context for one in documents(3, seed=SEED + 1, kind=kind))
    prompt = tokenizer(text, return_tensors="pt").input_ids[:, :100].to(lab.device)
    with trace(model) as run, quiet():
        model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=24, do_sample=False,
                       prompt_lookup_num_tokens=4, max_matching_ngram_size=2)
    print(f"{kind}:", *((drafted - 1, drafted - 1 - removed) for drafted, removed in zip(*rounds_of(run))))

# %% [markdown]
# A scene repeats whole phrases, so more of its drafts is kept.
#
# ### Exercise 5 · Which router is broken?
#
# *difficulty 2 of 3 · 5 minutes · 2 points*
#
# In this Mixtral the router of one layer is broken, in a way that depends on your name. No error is raised. A
# sound router computes a softmax over 8 logits, chooses the 2 experts with the largest, and divides their two
# weights by their sum. The cell shows what each layer's router did with 96 tokens:

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
    for token in range(2):
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
# Let `diagnose` return the tuple (layer, fault), layers from 0. Return what you read above, or compute it
# from `suspect.calls` (each has `logits`, `weights` and `experts`).
#
# <details><summary>Hint 1: a nudge</summary>
#
# For each layer: do two weights make 1? Are they ever different? Are the chosen experts those with the
# largest logits? Does one expert get every token?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# Sums below 1: unnormalized. Equal weights: uniform. Other experts than those of the largest logits: shifted.
# An expert that gets 96 tokens: collapsed.
# </details>

# %% exercise="diagnosis" provides=["diagnose"] difficulty=2 minutes=5
def diagnose():
    """The broken layer, and its fault."""
    ### BEGIN SOLUTION
    for layer, one in enumerate(suspect.calls):
        found = {"collapsed": one.experts.flatten().bincount().max() == 96,
                 "unnormalized": one.weights.sum(-1).min() < 0.99, "uniform": (one.weights == 0.5).all(),
                 "shifted": (one.experts != one.logits.topk(2).indices).any()}
        if any(found.values()):
            return layer, max(found, key=found.get)
    ### END SOLUTION

# %% check="diagnosis" points=2
from inferlab.lab import Check, reference

check = Check("diagnosis", points=2)

def diagnosis():
    """The learner's diagnosis, once it has its form."""
    told = check.learner.diagnose()
    check.true(isinstance(told, tuple) and len(told) == 2, "return the tuple (layer, fault)")
    check.true(told[1] in ("collapsed", "unnormalized", "uniform", "shifted"),
               f"{told[1]!r} is none of the four faults")
    return told

with check.part("a layer and a fault (graded when you hand it in)", weight=0):
    diagnosis()
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 6 · Explain
#
# Say what newer models read and keep. In `experts`, `window` and `latent` you write two short sentences each,
# one a line, from the tables below: an entry of `who`, a verb, an entry of its row. In `kept` type the number
# that you predicted for prompt lookup. Lines that begin with `#` are notes.

# %% jupyter={"source_hidden": true}
### FIXTURE words
words

# %% [markdown]
# *difficulty 1 of 3 · 5 minutes · 4 points.* The cell shows how each line is read, and that is graded when
# you hand in. A field is worth a point; a false sentence or number costs it. A line that is not read waits
# for a person.

# %% explain="newer-in-words" difficulty=1 minutes=5
%%explain newer-in-words
# ### BEGIN SOLUTION
# experts: a pass of 64 tokens reads nearly all experts
#   more experts with the same k cost as many products for each token
# window: a sliding layer forgets older tokens
#   a linear layer keeps a state of fixed size
# latent: the cache keeps one latent and one rotary key
#   the query absorbs the key matrix
# kept: 4 tokens
# ### END SOLUTION

# %% check="words-fields" of="newer-in-words" points=3
from inferlab.lab import Check

check = Check("words-fields", points=3)
with check.part("`experts:`, `window:` and `latent:` are filled in (graded when you hand it in)", weight=0):
    for field in ("experts", "window", "latent"):
        check.true(check.explanation("newer-in-words").get(field), f"`{field}:` is empty")
### HIDDEN TESTS
check.score()

# %% check="words-kept" of="newer-in-words" points=1
from inferlab.lab import Check, reference

check = Check("words-kept", points=1)
with check.part("`kept:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("newer-in-words").get("kept"), "`kept:` is empty")
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7 · Notice
#
# * **A sparse model reads few experts for one token, and most of them for 64.** More experts do not cost a
#   token more arithmetic.
# * **A window forgets.** What leaves it reaches later tokens only through layers, `W - 1` positions each.
# * **A latent cache stores no head's keys**, whatever the tensor's name says.
# * **The bias of DeepSeek's router chooses, and does not weigh.**

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
