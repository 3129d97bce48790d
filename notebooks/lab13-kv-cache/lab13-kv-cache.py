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
# # Lab 13 · The KV cache
#
# Between two tokens a language model remembers keys and values, and nothing else: the *KV cache*. In this lab
# you predict the size of the cache to the byte, watch the cache grow, and find out at which length it is
# larger than the weights. You write the attention in which several query heads share a key head, and how a
# cache is cropped and reordered. Then you get a service that mishandles its cache, and find out how.
#
# **Time** 60 to 75 minutes · **Points** 17, of which 3 are practice · **Reading**
# [The KV cache](../../handbook/lab13-kv-cache.md) in the handbook, before you start

# %% tags=["parameters"]
LEARNER = ""  # your name or id, as your course knows you
MODEL = "bundled"  # "bundled" | "full" | "hub"
DEVICE = "auto"  # "auto" | "cpu" | "cuda"
SEED = 0

# %% [markdown]
# The bundled model has 5.9 million parameters and Llama's architecture: 8 layers, 8 query heads on 2
# key/value heads. `"full"` builds a model of Llama 3 8B's size with random weights, `"hub"` downloads a real
# one. Grading always uses `"bundled"` on the CPU.

# %%
from inferlab.lab import start

lab = start("lab13-kv-cache", LEARNER, MODEL, DEVICE, SEED)

# %%
import torch
from inferlab.models import cache_argument, load_language_model
from inferlab.trace import trace
from transformers import DynamicCache, StaticCache

torch.set_grad_enabled(False)
model, tokenizer = load_language_model(MODEL, lab.device)
config = model.config
head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
weights = sum(p.numel() for p in model.parameters())
print(type(model).__name__, "·", f"{weights:,} parameters ·", model.dtype)

# %% [markdown]
# ## 1 · Goal and mental model
#
# In attention, the **query** of a token is compared with the **keys** of all tokens up to it. The closer a
# key fits, the more of that token's **value** goes into the result. A token's key and value depend on it and
# on the tokens before it, and on nothing that comes later. So they are computed once and kept:
#
# | for each | is kept | why |
# |---|---|---|
# | layer | keys and values, each (batch, kv heads, tokens, head_dim) | every layer has its own |
# | key/value head | one key and one value of `head_dim` numbers | several query heads may share one |
# | token | one more row | every token has a key and a value of its own: only this axis grows |
#
# $$\text{bytes} = 2 \times \text{layers} \times \text{kv heads} \times \text{head dim} \times \text{tokens} \times \text{batch} \times \text{bytes of a number}$$
#
# Queries, hidden states, logits, the text and the weights are not in the cache.

# %% [markdown]
# ![Three panels, each with eight query heads. In the first each has its own key and value; in the second
# four share one; in the third all eight share one.](../../handbook/figures/lab13-cache.svg) *From the
# handbook.* Eight query heads share eight, two and one key/value heads. Only the lower two rows are cached.
# With fewer key/value heads there is less to keep and to read, but the model's quality may fall.

# %% [markdown]
# ## 2 · Predict
#
# ### Exercise 1 · The cache of a run
#
# *difficulty 2 of 3 · 7 minutes · 3 points*
#
# **Before you trace anything**, write a function that says what cache a greedy `generate` leaves. The
# function is graded on runs and models that this notebook does not have.
#
# | argument | meaning |
# |---|---|
# | `prompt`, `new`, `batch` | tokens of each prompt, new tokens of each sequence (at least 1), sequences |
# | `layers`, `heads`, `kv_heads`, `head_dim` | sizes of the model; `heads` are the query heads |
# | `dtype` | of the cache: `"float32"`, `"float16"`, `"bfloat16"` or `"float8_e4m3fn"` (no scales) |
# | `capacity` | `None` for a `DynamicCache`; for a `StaticCache` its `max_cache_len` |
#
# Returns a `dict`: `"length"`, the tokens in the cache, `int`; `"shape"`, the shape of one layer's keys, a
# tuple of four `int`; `"bytes"`, the bytes of all tensors of the cache, `int`.
#
# <details><summary>Hint 1: a nudge</summary>
#
# A static cache is allocated whole at the first call. And which of the tokens that <code>generate</code>
# returns was never fed to the model?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# The length is <code>prompt + new - 1</code>. The tensor has <code>rows</code> of them: the length, or
# <code>capacity</code> if one is given. The shape is (batch, key/value heads, rows, head_dim). The bytes are
# the product of these four, times 2 for keys and values, times the layers, times 4, 2, 2 or 1 for the dtype.
# </details>

# %% exercise="forecast" provides=["forecast"] difficulty=2 minutes=7
def forecast(prompt, new, batch, layers, heads, kv_heads, head_dim, dtype, capacity=None):
    """The cache that generate leaves: {"length": int, "shape": tuple, "bytes": int}."""
    ### BEGIN SOLUTION
    itemsize = {"float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1}[dtype]
    length = prompt + new - 1
    rows = length if capacity is None else capacity
    return {
        "length": length,
        "shape": (batch, kv_heads, rows, head_dim),
        "bytes": 2 * layers * batch * kv_heads * rows * head_dim * itemsize,
    }
    ### END SOLUTION

# %% check="forecast" points=3
from inferlab.lab import Check, reference

check = Check("forecast", points=3)


def ask_forecast(*run):
    """The learner's forecast, once it has the form that the contract asks for."""
    got = check.plain(check.learner.forecast(*run))
    check.true(isinstance(got, dict) and set(got) == {"length", "shape", "bytes"},
               "return a dict with the keys length, shape, bytes")
    check.true(isinstance(got["shape"], tuple) and len(got["shape"]) == 4,
               "the shape is a tuple of four numbers")
    check.true(isinstance(got["length"], int) and isinstance(got["bytes"], int),
               "length and bytes are whole numbers")
    return got


with check.part("the axes of one layer's keys", weight=1):
    got = ask_forecast(100, 1, 1, 8, 8, 2, 32, "float32")["shape"]
    check.equal(got, (1, 2, 100, 32))
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 3 · Trace
#
# One run with a cache that grows. The cell makes the cache itself and hands it to `generate`, which changes
# it in place.

# %%
from inferlab.lab.kits.kv_caches import FAULTS, faulty_service, real_bytes
from inferlab.lab.kits.low_bits import small_cache
from inferlab.lab.kits.decode.lm_calls import calls_of
from inferlab.models.stories import documents

PROMPT_TOKENS, NEW = 128, 24
text = " ".join(one.context for one in documents(2, seed=SEED, kind="story"))
ids = tokenizer(text, return_tensors="pt").input_ids[:, :PROMPT_TOKENS].to(lab.device)


def generate(ids, new, cache):
    """Exactly `new` greedy tokens after `ids`, with this cache."""
    return model.generate(ids, attention_mask=torch.ones_like(ids), min_new_tokens=new, max_new_tokens=new,
                          do_sample=False,
                          # on a GPU, generate would compile the model for a static cache: a minute
                          disable_compile=True, **cache_argument(cache))


generate(ids[:, :4], 2, DynamicCache(config=config))  # the first call of a process sets things up
cache = DynamicCache(config=config)
with trace(model) as run:
    tokens = generate(ids, NEW, cache)

# %% tags=["demo"]
for update in run.find("cache.update")[:: 8 * config.num_hidden_layers]:  # layer 0's, in every eighth call
    into, out = update.inputs["key_states"].shape, update.outputs[0].shape
    print(f"call {update.step:2d}   key_states in {tuple(into)!s:16}   keys out {tuple(out)}")

# %% [markdown]
# Look at three places:
#
# * **what goes in**: `key_states` are `(1, 2, 128, 32)` in the first call and `(1, 2, 1, 32)` afterwards.
#   There are two heads, although the model has eight query heads: queries are not cached;
# * **what comes out**: all keys so far, the old ones and the new ones (the same for the values). Attention
#   reads all of them in every call;
# * **which axis moves**: the third, tokens. Batch, heads and head_dim stay the same.
#
# **Reconcile.** The next cell prints what the cache object holds, and your forecast:

# %% tags=["demo"]
from inferlab.lab import when_written

sizes = config.num_hidden_layers, config.num_attention_heads, config.num_key_value_heads, head_dim
print(f"length {int(cache.get_seq_length())}, keys {tuple(cache.layers[0].keys.shape)}, "
      f"{real_bytes(cache):,} bytes")
with when_written("forecast"):
    print("your forecast:", forecast(PROMPT_TOKENS, NEW, 1, *sizes, str(model.dtype).removeprefix("torch.")))

# %% [markdown]
# ### Three kinds of cache
#
# A static cache is allocated once, so that its address and shapes never change. CUDA graphs need that. A
# quantized cache keeps all but the newest tokens as small integers, called *codes*, with one *scale* for each
# group of numbers: a number is its code times the scale. (The quantized cache of this lab is a dozen lines of
# plain torch on the library's `QuantizedLayer`. Each of its codes takes a whole byte, also where 4 or 2 bits
# would be enough.)

# %%
kinds = {
    "dynamic": DynamicCache(config=config),
    "static, capacity 256": StaticCache(config=config, max_cache_len=256),
    "quantized, 8 bits": small_cache(config, bits=8, group=16),
    "quantized, 2 bits": small_cache(config, bits=2, group=16),
}
answers = {kind: generate(ids, NEW, one)[0, PROMPT_TOKENS:] for kind, one in kinds.items()}

# %% tags=["demo"]
for kind, one in kinds.items():
    same = torch.equal(answers[kind], answers["dynamic"])
    print(f"{kind:21} length {int(one.get_seq_length())}  {real_bytes(one):>9,} bytes   "
          f"{'same answer' if same else 'ANOTHER answer'}:",
          tokenizer.decode(answers[kind][:12]), "...")
with when_written("forecast"):
    dtype = str(model.dtype).removeprefix("torch.")
    print("your forecast of the static one:", forecast(PROMPT_TOKENS, NEW, 1, *sizes, dtype, 256))

# %% [markdown]
# The static cache is the largest: it has room for 256 tokens, however many are used. Two bits a number are
# too few for this model; eight bits do not change the answer. Lab 17 is about quantizing.
#
# ### When the cache passes the weights
#
# The weights have a fixed size; the cache grows with every token of every sequence. Three models of the next
# cells differ only in `num_key_value_heads`. The fourth curve is a cache in fp8 (lab 17 builds it): one byte
# a number instead of four, and a scale for each group of 32 numbers. All bytes of a token come from caches of
# real runs. Both horizontal lines are the weights of the model with 2 key/value heads. (With 8 such heads a
# model has somewhat more weights, with 1 somewhat fewer.)

# %%
from inferlab.lab.kits.kv_caches import cache_curves
from inferlab.models.language import random_model
from transformers import LlamaConfig

per_token = {}
for label, kv in (("multi-head: 8 kv heads", 8), ("grouped-query: 2", 2), ("multi-query: 1", 1),
                  ("grouped-query: 2, fp8", 2)):
    other = random_model(LlamaConfig(hidden_size=256, intermediate_size=704, num_hidden_layers=8,
                                     num_attention_heads=8,
                                     num_key_value_heads=kv, vocab_size=1024), lab.device, torch.float32)
    filled = small_cache(other.config, float8=True) if "fp8" in label else DynamicCache(config=other.config)
    other(torch.full((1, 50), 7, device=lab.device), None, None, filled, logits_to_keep=1)
    per_token[label] = real_bytes(filled) / 50
    print(f"{label:24} {per_token[label]:8,.0f} bytes a token")

# %% tags=["demo"]
cache_curves(per_token, [2**k for k in range(7, 18)],
             {"weights, 32 bits": 4 * weights, "weights, 4 bits": weights / 2},
             title="Fewer bits for the weights move the line, not the curves")

# %% [markdown]
# ## 4 · Read
#
# This is the installed code with which the two caches take in a new token. The dynamic cache makes new
# tensors:

# %% jupyter={"source_hidden": true}
from inferlab.lab import show_source
from transformers.cache_utils import DynamicLayer, StaticLayer

show_source(
    DynamicLayer.update,
    {
        "self.keys = torch.cat([self.keys, key_states], dim=-2)":
            "The token axis grows. A new tensor each time: all old keys are copied in every layer and every "
            "call.",
        "return self.keys, self.values":
            "Attention gets everything so far.",
    },
    excerpts=[("if not self.is_initialized:", "return self.keys, self.values")],
    checked="5.24.0",
)

# %% [markdown]
# The static cache writes into its tensors:

# %% jupyter={"source_hidden": true}
show_source(
    StaticLayer.update,
    {
        "cache_position = torch.arange(kv_length, device=self.device) + self.cumulative_length":
            "Where to write: after the last token written. The length is a tensor, "
            "so that it may live in a CUDA graph.",
        "self.cumulative_length.add_(kv_length)":
            "In place, like everything here: no address ever changes.",
        "self.keys.index_copy_(2, cache_position, key_states)":
            "Past the end this raises: a static cache does not grow.",
        "return self.keys, self.values":
            "The whole capacity, unfilled rows and all. The attention mask has to hide them.",
    },
    excerpts=[("kv_length = key_states.shape[-2]", "return self.keys, self.values")],
    checked="5.24.0",
)

# %% [markdown]
# This is how eight query heads use two key heads in the plain (`eager`) attention. In exercise 2 you write it
# yourself. (The model here uses the default attention, `sdpa`. That one pairs the heads in the same order,
# and copies them only where it must.)

# %% jupyter={"source_hidden": true}
from transformers.models.llama.modeling_llama import repeat_kv

show_source(
    repeat_kv,
    {
        "hidden_states = hidden_states[:, :, None, :, :].expand(":
            "Each key head is repeated, the copies next to each other. expand copies nothing; reshape does.",
        "return hidden_states.reshape(batch, num_key_value_heads * n_rep, slen, head_dim)":
            "The order matters: 0 0 0 0 1 1 1 1, and not 0 1 0 1 0 1 0 1. Both have the right shape.",
    },
    excerpts=[("batch, num_key_value_heads, slen, head_dim = hidden_states.shape",
               "return hidden_states.reshape(")],
    checked="5.24.0",
)

# %% [markdown]
# ## 5 · Build
#
# Exercise 2 is practice (3 points).
#
# ### Exercise 2 · Shared heads by hand
#
# *difficulty 2 of 3 · 10 minutes · 3 points*
#
# Write attention over a cache, for a model in which several query heads share a key/value head (grouped-query
# attention).
#
# | argument | shape, dtype |
# |---|---|
# | `q` | `(B, H, Q, d)` float: queries of the newest Q tokens |
# | `k`, `v` | `(B, G, T, d)` float: keys and values of all T tokens, the newest included; T ≥ Q, and G divides H |
#
# Query head h uses key/value head h // (H // G). The products of queries and keys are scaled by $1/\sqrt{d}$.
# Query i stands at position T - Q + i. It may look at its own token and at earlier ones, not at later ones.
# Returns the heads' results, `(B, H, Q, d)`, to within 1e-5.
#
# <details><summary>Hint 1: a nudge</summary>
#
# <code>repeat_interleave</code> puts the copies of a head next to each other. For the mask:
# <code>torch.ones(Q, T, dtype=torch.bool, device=q.device).tril(T - Q)</code> is True where a query may look.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# Repeat <code>k</code> and <code>v</code> <code>H // G</code> times along axis 1. Scores: <code>q</code>
# times the transposed keys, over the root of d. Put minus infinity where the mask is False
# (<code>masked_fill</code>), softmax over the last axis, and multiply by the values.
# </details>

# %% exercise="attend" provides=["attend"] difficulty=2 minutes=10
def attend(q, k, v):
    """Causal grouped-query attention of the newest tokens over a cache, (B, H, Q, d)."""
    ### BEGIN SOLUTION
    shared = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(shared, dim=1), v.repeat_interleave(shared, dim=1)
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    new, tokens = scores.shape[-2:]
    sees = torch.ones(new, tokens, dtype=torch.bool, device=q.device).tril(tokens - new)
    return scores.masked_fill(~sees, float("-inf")).softmax(-1) @ v
    ### END SOLUTION

# %% check="attend" points=3
import torch
from inferlab.lab import Check, close

check = Check("attend", points=3)
draw = torch.Generator().manual_seed(13)


def case(new, tokens, heads=8, groups=2, rows=2, dim=6):
    """Random queries, keys and values."""
    return (torch.randn(rows, heads, new, dim, generator=draw),
            torch.randn(rows, groups, tokens, dim, generator=draw),
            torch.randn(rows, groups, tokens, dim, generator=draw))


def ask_attend(q, k, v):
    got = check.learner.attend(q.clone(), k.clone(), v.clone())
    check.tensor(got, shape=q.shape)
    return got


with check.part("one query head for each key head, one new token", weight=1):
    q, k, v = case(1, 5, heads=2, groups=2)
    check.close(ask_attend(q, k, v), torch.nn.functional.scaled_dot_product_attention(q, k, v))
### HIDDEN TESTS
check.score()

# %% [markdown]
# The next cell puts your function into layer 0 of the model and compares the result with the layer's own:

# %% tags=["demo"]
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

layer, positions = model.model.layers[0], torch.arange(PROMPT_TOKENS, device=lab.device)[None]
x = layer.input_layernorm(model.model.embed_tokens(ids))
rotary = model.model.rotary_emb(x, position_ids=positions)
q, k, v = (part(x).unflatten(-1, (-1, head_dim)).transpose(1, 2)
           for part in (layer.self_attn.q_proj, layer.self_attn.k_proj, layer.self_attn.v_proj))
q, k = apply_rotary_pos_emb(q, k, *rotary)
print("these keys are what the cache of section 3 holds:",
      torch.equal(k, cache.layers[0].keys[:, :, :PROMPT_TOKENS]))
with when_written("attend"):
    mine = layer.self_attn.o_proj(attend(q, k, v).transpose(1, 2).flatten(-2))
    theirs = layer.self_attn(hidden_states=x, attention_mask=None, position_embeddings=rotary)[0]
    print(f"largest difference to the layer's own attention: {float((mine - theirs).abs().max()):.1e}")

# %% [markdown]
# The model has a *rotary embedding*: each key is rotated by an angle that depends on its position. Keys are
# cached *after* this rotation. So a cached key belongs to its position and cannot simply be moved.

# %% [markdown]
# ### Exercise 3 · Operations on a cache
#
# *difficulty 2 of 3 · 8 minutes · 3 points*
#
# Beam search, speculative decoding and batching all work on the rows of a cache. Write three operations on
# plain lists: a cache is a list of rows, and a row is the list of its tokens' labels (`int`). `operate(rows,
# operations)` carries out the operations in order:
#
# | operation | what it does |
# |---|---|
# | `("grow", new)` | appends to each row its own list of new labels: `new[i]` to row i |
# | `("crop", k)` | removes the **last k** tokens of every row; `k` may be 0 |
# | `("select", index)` | row i of the result is the old row `index[i]`. A row may be taken twice, or left out (`DynamicCache.batch_select_indices`) |
#
# Returns a `list` with one entry for each operation: the rows after it. Do not change the lists that you were
# given.
#
# <details><summary>Hint 1: a nudge</summary>
#
# If two rows come from the same row, they must not be the same Python list: then growing one would grow both.
# Build new lists instead of changing old ones.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# Write one branch for each operation; each makes a new list of new rows. Grow: <code>row + list(new)</code>.
# Crop: <code>row[: len(row) - k]</code>. Select: <code>list(rows[i])</code> for each i of the index. After
# each operation, append the rows to the result.
# </details>

# %% exercise="operate" provides=["operate"] difficulty=2 minutes=8
def operate(rows, operations):
    """The rows of a cache after each operation, a list of lists of lists of labels."""
    ### BEGIN SOLUTION
    states = []
    for name, what in operations:
        if name == "grow":
            rows = [row + list(new) for row, new in zip(rows, what)]
        elif name == "crop":
            rows = [row[: len(row) - what] for row in rows]
        elif name == "select":
            rows = [list(rows[i]) for i in what]
        else:
            raise ValueError(f"there is no operation {name!r}")
        states.append(rows)
    return states
    ### END SOLUTION

# %% check="operate" points=3
import torch
from inferlab.lab import Check

check = Check("operate", points=3)


def ask_operate(rows, operations):
    """The learner's states: one for each operation, each a list of rows."""
    got = check.plain(check.learner.operate([list(row) for row in rows], list(operations)))
    check.true(isinstance(got, list) and len(got) == len(operations),
               "return a list with one entry for each operation")
    check.true(all(isinstance(state, list) and all(isinstance(row, list) for row in state) for state in got),
               "each entry is a list of rows, each row a list")
    return got


with check.part("a prefill and two decode calls", weight=1):
    check.equal(ask_operate([[1, 2], [5, 6]], [("grow", [[3], [7]]), ("grow", [[4], [8]])]),
                [[[1, 2, 3], [5, 6, 7]], [[1, 2, 3, 4], [5, 6, 7, 8]]])
### HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 4 · A mishandled cache
#
# *difficulty 3 of 3 · 10 minutes · 3 points*
#
# Two services got the same prompt. One of them mishandles its cache, in a way that depends on your name. No
# error is raised. The text does not tell you what happened: with some faults it reads well, with some it
# repeats itself, and with some it is even the same as the healthy text.

# %%
v = lab.variant(16)
prompt, few = ids[:, :(38, 45, 51, 58)[v // 4]], (9, 10, 11, 12)[v // 4]
serve = faulty_service(model, ids, FAULTS[v % 4])
with trace(model) as healthy:
    good = generate(prompt, few, DynamicCache(config=config))
with trace(model) as suspect:
    bad = serve(prompt, few)
print("healthy:", tokenizer.decode(good[0, prompt.shape[1]:]))
print("suspect:", tokenizer.decode(bad[0, prompt.shape[1]:]))

# %% [markdown]
# | fault | what the service does |
# |---|---|
# | `"stale"` | the cache still holds tokens of an earlier request |
# | `"ignored"` | the cache never reaches the decode calls |
# | `"cropped"` | once during the run, one token is removed from the cache |
# | `"window"` | only the newest tokens are kept |
#
# `calls_of(trace)` lists a run's calls, each with `.number` (from 1), `.new` (tokens that went in) and
# `.context` (tokens in the cache before the call). Write `diagnose()`, which returns a `dict`:
#
# | key | meaning |
# |---|---|
# | `"fault"` | one of the four names |
# | `"call"` | number of the first call whose `.context` differs between `suspect` and `healthy`, `int` |
# | `"healthy"`, `"suspect"` | `.context` of that call in the two runs, `int` |
# | `"lost"` | tokens of **this** request, prompt included, that the **last** call of `suspect` could not see, `int`; 0 if it could see all of them. (A call always sees the token that goes in) |
#
# Your function may compute the values from the traces, or return values that you found there.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Print the contexts of both runs side by side. For <code>lost</code>: how many tokens should be in the cache
# before the last call, and how many of this request's are there?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# <code>call</code> is the first pair of contexts that differs. If the suspect's first context is not 0, the
# fault is <code>"stale"</code>, and nothing is lost. If its last context is 0, the fault is
# <code>"ignored"</code>. If its context no longer grows at the end, <code>"window"</code>; otherwise
# <code>"cropped"</code>. Lost is the difference of the two last contexts.
# </details>

# %% exercise="diagnosis" provides=["diagnose"] difficulty=3 minutes=10
def diagnose():
    """Which fault, where it first shows, and what the last call could not see."""
    ### BEGIN SOLUTION
    good, bad = ([call.context for call in calls_of(one)] for one in (healthy, suspect))
    at = next(i for i, (a, b) in enumerate(zip(good, bad)) if a != b)
    if bad[0] > 0:
        fault = "stale"
    elif bad[-1] == 0:
        fault = "ignored"
    else:
        fault = "window" if bad[-1] == bad[-2] else "cropped"
    lost = 0 if fault == "stale" else good[-1] - bad[-1]
    return {"fault": fault, "call": at + 1, "healthy": good[at], "suspect": bad[at], "lost": lost}
    ### END SOLUTION

# %% check="diagnosis" points=3
from inferlab.lab import Check

check = Check("diagnosis", points=3)


def diagnosis():
    """The learner's diagnosis, once it has its five keys."""
    got = check.plain(check.learner.diagnose())
    check.true(isinstance(got, dict) and set(got) == {"fault", "call", "healthy", "suspect", "lost"},
               "return a dict with the keys fault, call, healthy, suspect, lost")
    check.true(got["fault"] in ("stale", "ignored", "cropped", "window"),
               f"{got['fault']!r} is none of the four faults")
    check.true(all(isinstance(got[key], int) for key in ("call", "healthy", "suspect", "lost")),
               "the other four are whole numbers")
    return got


with check.part("a fault and four numbers (graded when you hand it in)", weight=0):
    diagnosis()
### HIDDEN TESTS
check.score()

# %% [markdown]
# The contexts of the calls show all four faults: in a healthy run the context begins at zero and grows by the
# tokens that went in.

# %% [markdown]
# ## 6 · Explain
#
# Explain the cache of the run of section 3 (a prompt of 128 tokens, 24 new ones, `DynamicCache`) to a
# colleague who thinks that the cache stores the text. In the fields `state`, `axis` and `trade-off` you
# write short sentences, one a line, from the tables below: an entry of `who`, a verb, an entry of its row
# and, if you like, entries of a row `may follow`. An example: `lm_head leaves alone old keys and values`.
# The axes are those of one layer's keys. In `trade-off`, compare the cache with computing everything again
# in each call. In the other fields you type one entry:
#
# | line | what it says |
# |---|---|
# | `crossing:` | tokens at which this cache would be as large as the weights (in the same 32 bits) |
# | `gain:` | what gets better with 2 instead of 8 key/value heads: a quantity of the table below and its direction, `up` or `down` |
# | `cost:` | what may get worse, in the same form |
#
# Lines that begin with `#` are notes of your own.

# %% jupyter={"source_hidden": true}
### FIXTURE words
words

# %% [markdown]
# *difficulty 2 of 3 · 9 minutes · 5 points: 2 for the typed lines, 3 for the sentences.* When you run the
# cell, it shows how it reads each line. That reading is graded when you hand in. One false sentence in a
# field costs the field's point, so write only what you know. A line that the cell cannot read is judged by a
# person.

# %% explain="the-cache" difficulty=2 minutes=9
%%explain the-cache
# ### BEGIN SOLUTION
# state: the cache keeps the keys and values of every token in every layer
#   attention uses them in every later call
# axis: the token axis goes from 128 to 151
#   the head axis stays at 2, head_dim and the batch axis stay the same
# trade-off: the cache lowers the computation of later calls and raises the memory with every token
# crossing: 5765
# gain: memory down
# cost: quality down
# ### END SOLUTION

# %% check="cache-crossing" of="the-cache" points=1
from inferlab.lab import Check, reference

check = Check("cache-crossing", points=1)
with check.part("`crossing:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("the-cache").get("crossing"), "`crossing:` is empty")
### HIDDEN TESTS
check.score()

# %% check="cache-gain-cost" of="the-cache" points=1
from inferlab.lab import Check

check = Check("cache-gain-cost", points=1)
with check.part("`gain:` and `cost:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("the-cache").get("gain"), "`gain:` is empty")
    check.true(check.explanation("the-cache").get("cost"), "`cost:` is empty")
### HIDDEN TESTS
check.score()

# %% check="cache-state" of="the-cache" points=1
from inferlab.lab import Check

check = Check("cache-state", points=1)
with check.part("`state:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("the-cache").get("state"), "`state:` is empty")
### HIDDEN TESTS
check.score()

# %% check="cache-axis" of="the-cache" points=1
from inferlab.lab import Check

check = Check("cache-axis", points=1)
with check.part("`axis:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("the-cache").get("axis"), "`axis:` is empty")
### HIDDEN TESTS
check.score()

# %% check="cache-trade-off" of="the-cache" points=1
from inferlab.lab import Check

check = Check("cache-trade-off", points=1)
with check.part("`trade-off:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("the-cache").get("trade-off"), "`trade-off:` is empty")
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7 · Notice
#
# * **Count the key/value heads, not the query heads.** Grouped-query attention exists to have fewer of them;
#   here the cache takes a quarter of what eight key/value heads would need.
# * **Quantized weights do not shrink the cache.** They shrink the weights only, so the cache passes the
#   weights *sooner*. The bits of the cache are a setting of their own.
# * **A static cache is not smaller.** It takes its whole capacity at once. Its advantage is that addresses
#   and shapes never change.
# * **The cache does not speed prefill up.** It makes every later call short, and it grows with each call.
# * **The last token is not in the cache.** It holds P + n - 1 tokens.
# * **A right shape is no proof.** Key heads that are repeated in the wrong order have the same shape.
#
# Say it aloud, as in an interview: name the state object, the axis that grows, and the trade-off.

# %% [markdown]
# ## 8 · Check and hand in
#
# Run this cell last. It runs the visible checks again, says what is missing, and leaves one file to hand in.

# %% tags=["demo"]
from inferlab.lab import submit

submit()
