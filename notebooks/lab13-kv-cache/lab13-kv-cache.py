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
# What a language model remembers between two tokens is a stack of keys and values, and nothing else. In this lab you predict its size to the
# byte, watch it grow, crop and reorder it, share its heads among the queries by hand, and find out at which length it passes the
# weights. Then you are handed a service whose cache is mishandled: every answer is fluent, and wrong.
#
# **Time** about 70 minutes · **Points** 25, of which 6 are practice · **Reading** [The KV cache](../../handbook/lab13-kv-cache.md) in the handbook, before you start

# %% tags=["parameters"]
LEARNER = ""  # your name or id, as your course knows you
MODEL = "bundled"  # "bundled" | "full" | "hub"
DEVICE = "auto"  # "auto" | "cpu" | "cuda"
SEED = 0

# %% [markdown]
# The bundled model has 5.9 million parameters and Llama's architecture: 8 layers, 8 query heads on 2 key/value heads. `"full"`
# builds one of Llama 3 8B's size with random weights, `"hub"` downloads a real one. Grading always uses `"bundled"` on the CPU.

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
# After this lab you can say what a cache holds, how many bytes that is, which settings change it and which do not, and how a trace shows that
# somebody mishandled it.
#
# In attention, each token asks with a **query** and is asked by its **key**; what it then hands over is its **value**. A token's key and value depend on
# the tokens before it and on nothing that comes later. So they are computed once, and kept:
#
# | for each | is kept | why |
# |---|---|---|
# | layer | keys and values, each (batch, kv heads, tokens, head_dim) | every layer has its own |
# | key/value head | one key and one value of `head_dim` numbers | several query heads may share one |
# | token | one more row | the only axis that grows |
#
# $$\text{bytes} = 2 \times \text{layers} \times \text{kv heads} \times \text{head dim} \times \text{tokens} \times \text{batch} \times \text{bytes of a number}$$
#
# No queries, no hidden states, no logits, no text, and none of the weights.

# %% [markdown]
# ## 2 · Predict
#
# ### Exercise 1 · The cache of a run
#
# *difficulty 2 of 3 · 7 minutes · 3 points*
#
# **Before you run anything**, write a function that says what cache a greedy `generate` leaves. It is graded on runs and models that this notebook
# does not have.
#
# | argument | meaning |
# |---|---|
# | `prompt`, `new`, `batch` | tokens of each prompt, new tokens of each sequence (at least 1), sequences |
# | `layers`, `heads`, `kv_heads`, `head_dim` | sizes of the model; `heads` are the query heads |
# | `dtype` | of the cache: `"float32"`, `"float16"`, `"bfloat16"` or `"float8_e4m3fn"` |
# | `capacity` | `None` for a `DynamicCache`; for a `StaticCache` its `max_cache_len` |
#
# Returns a `dict`: `"length"`, tokens that the cache says it holds, `int`; `"shape"`, of one layer's keys, a tuple of four `int`; `"bytes"`, of all its
# tensors, `int`.
#
# <details><summary>Hint</summary>
#
# A static cache is allocated whole, at the first call. And which of the tokens that you get was never fed to the model?
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
    got = check.learner.forecast(*run)
    check.true(isinstance(got, dict) and set(got) == {"length", "shape", "bytes"}, "return a dict with the keys length, shape, bytes")
    check.true(isinstance(got["shape"], tuple) and len(got["shape"]) == 4, "the shape is a tuple of four numbers")
    check.true(isinstance(got["length"], int) and isinstance(got["bytes"], int), "length and bytes are whole numbers")
    return got


with check.part("the axes of one layer's keys", weight=1):
    got = ask_forecast(100, 1, 1, 8, 8, 2, 32, "float32")["shape"]
    check.equal(got, (1, 2, 100, 32))
### BEGIN HIDDEN TESTS
@reference
def real_cache(prompt, new, batch, capacity):
    """The truth: a real run of the bundled model, float32."""
    import torch
    from inferlab.lab.kvcaches import real_bytes
    from inferlab.models import cache_argument, load_language_model
    from transformers import DynamicCache, StaticCache

    model, _ = load_language_model("bundled", "cpu")
    cache = StaticCache(config=model.config, max_cache_len=capacity) if capacity else DynamicCache(config=model.config)
    ids = torch.arange(10, 10 + prompt).repeat(batch, 1)
    with torch.no_grad():
        model.generate(ids, attention_mask=torch.ones_like(ids), min_new_tokens=new, max_new_tokens=new, do_sample=False,
                       **cache_argument(cache))
    return {"length": int(cache.get_seq_length()), "shape": tuple(cache.layers[0].keys.shape), "bytes": real_bytes(cache)}


with check.part("how many tokens it holds", weight=1):
    want, got = real_cache(9, 4, 3, None), ask_forecast(9, 4, 3, 8, 8, 2, 32, "float32")
    check.mistake("the last token was returned and never fed, so nothing of it is in the cache", when=got["length"] == 13)
    check.mistake("the tokens that were fed one by one are cached, too", when=got["length"] == 9)
    check.equal(got["length"], want["length"])
with check.part("bytes, to the byte", weight=2):
    want, got = real_cache(9, 4, 3, None)["bytes"], ask_forecast(9, 4, 3, 8, 8, 2, 32, "float32")["bytes"]
    check.mistake("the query heads are not cached: eight of them share two keys here", when=got == 4 * want)
    check.mistake("keys and values: there are two of them", when=2 * got == want)
    check.mistake("every layer has keys and values of its own", when=8 * got == want)
    check.mistake("every sequence of the batch has a cache of its own", when=3 * got == want)
    check.equal(got, want)
with check.part("a static cache", weight=2):
    want, got = real_cache(9, 4, 3, 40), ask_forecast(9, 4, 3, 8, 8, 2, 32, "float32", 40)
    check.mistake("a static cache takes all of its memory at the first call, however little of it is filled", when=got["shape"][2] == 12)
    check.mistake("its capacity is not what it holds", when=got["length"] == 40)
    check.equal(got, want)
with check.part("Llama 3 8B, 64 sequences, three widths of a number", weight=2):
    got = [ask_forecast(4000, 97, 64, 32, 32, 8, 128, kind)["bytes"] for kind in ("float32", "bfloat16", "float8_e4m3fn")]
    check.equal(got, [size * 2 * 32 * 8 * 128 * 4096 * 64 for size in (4, 2, 1)])
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 3 · Trace
#
# One run with a cache that grows. The cache is an object of our own, handed in and changed in place.

# %%
from inferlab.lab.kvcaches import FAULTS, faulty_service, quantized_cache, real_bytes
from inferlab.lab.lmcalls import calls_of
from inferlab.models.stories import documents

PROMPT_TOKENS, NEW = 128, 24
text = " ".join(one.context for one in documents(2, seed=SEED, kind="story"))
ids = tokenizer(text, return_tensors="pt").input_ids[:, :PROMPT_TOKENS].to(lab.device)


def generate(ids, new, cache):
    """Exactly `new` greedy tokens after `ids`, with this cache."""
    return model.generate(ids, attention_mask=torch.ones_like(ids), min_new_tokens=new, max_new_tokens=new, do_sample=False,
                          disable_compile=True, **cache_argument(cache))  # on a GPU a static cache would be compiled for, for a minute


generate(ids[:, :4], 2, DynamicCache(config=config))  # the first call of a process sets things up
cache = DynamicCache(config=config)
with trace(model) as run:
    tokens = generate(ids, NEW, cache)

# %% tags=["demo"]
for update in run.find("cache.update")[:: 8 * config.num_hidden_layers]:  # layer 0's, in every eighth call
    into, out = update.inputs["key_states"].shape, update.outputs[0].shape
    print(f"call {update.step:2d}   key_states in {tuple(into)!s:16}   keys out {tuple(out)}")

# %% [markdown]
# Stop at three places:
#
# * **what goes in**: `key_states` are `(1, 2, 128, 32)` in the first call and `(1, 2, 1, 32)` afterwards. Two heads, although the model has eight:
#   the queries do not come here at all;
# * **what comes out**: all keys so far, the old ones and the new (and the values likewise). Attention reads all of them in every call;
# * **which axis moves**: the third, tokens. Batch, heads and head_dim are what they were.
#
# **Reconcile.** The formula, your forecast, and the object itself:

# %% tags=["demo"]
from inferlab.lab import when_written

sizes = config.num_hidden_layers, config.num_attention_heads, config.num_key_value_heads, head_dim
print(f"length {int(cache.get_seq_length())}, keys {tuple(cache.layers[0].keys.shape)}, {real_bytes(cache):,} bytes")
with when_written("forecast"):
    print("your forecast:", forecast(PROMPT_TOKENS, NEW, 1, *sizes, str(model.dtype).removeprefix("torch.")))

# %% [markdown]
# ### The same answer from three kinds of cache
#
# A static cache is allocated once, so that its address and shapes never change: that is what CUDA graphs and `torch.compile` want. A quantized
# cache keeps all but the newest tokens as small integers with one scale for each group of numbers. (The one here is a dozen lines
# on the library's `QuantizedLayer`, in plain torch; its codes are whole bytes, even where 4 bits or 2 would do.)

# %%
kinds = {
    "dynamic": DynamicCache(config=config),
    "static, capacity 256": StaticCache(config=config, max_cache_len=256),
    "quantized, 8 bits": quantized_cache(config, bits=8),
    "quantized, 2 bits": quantized_cache(config, bits=2),
}
answers = {kind: generate(ids, NEW, one)[0, PROMPT_TOKENS:] for kind, one in kinds.items()}

# %% tags=["demo"]
for kind, one in kinds.items():
    same = torch.equal(answers[kind], answers["dynamic"])
    print(f"{kind:21} length {int(one.get_seq_length())}  {real_bytes(one):>9,} bytes   {'same answer' if same else 'ANOTHER answer'}:",
          tokenizer.decode(answers[kind][:12]), "...")

# %% [markdown]
# The static cache is the largest: it holds room for 256 tokens whatever it is asked. And two bits for a number are too few for this model, while eight do no
# harm that an answer would show. What quantizing costs and saves in general is the subject of lab 17; here only the bytes matter.

# %% [markdown]
# ## 4 · Read
#
# How the two caches take a new token in, as they are installed on this machine. The dynamic one makes new tensors:

# %% jupyter={"source_hidden": true}
from inferlab.lab import show_source
from transformers.cache_utils import DynamicLayer, StaticLayer

show_source(
    DynamicLayer.update,
    {
        "self.keys = torch.cat([self.keys, key_states], dim=-2)":
            "The token axis grows. A new tensor each time: all old keys are copied in every layer and every call.",
        "self.values = torch.cat([self.values, value_states], dim=-2)":
            "Values likewise. The count of bytes that a call must move leaves these copies out.",
        "return self.keys, self.values":
            "Attention gets everything so far.",
    },
    excerpts=[("if not self.is_initialized:", "return self.keys, self.values")],
    checked="5.24.0",
)

# %% [markdown]
# The static one writes into what is there:

# %% jupyter={"source_hidden": true}
show_source(
    StaticLayer.update,
    {
        "cache_position = torch.arange(kv_length, device=self.device) + self.cumulative_length":
            "Where to write: after the last token written. The length is a tensor, so that it may live in a CUDA graph.",
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
# And this is how eight query heads use two key heads, as the plain (`eager`) attention writes it out. You will write it yourself in a moment.

# %% jupyter={"source_hidden": true}
from transformers.models.llama.modeling_llama import repeat_kv

show_source(
    repeat_kv,
    {
        "hidden_states = hidden_states[:, :, None, :, :].expand(":
            "Every key head is repeated beside itself. expand makes no copy, but the reshape below does.",
        "return hidden_states.reshape(batch, num_key_value_heads * n_rep, slen, head_dim)":
            "The order matters: 0 0 0 0 1 1 1 1, and not 0 1 0 1 0 1 0 1. Both have the right shape.",
    },
    excerpts=[("batch, num_key_value_heads, slen, head_dim = hidden_states.shape", "return hidden_states.reshape(")],
    checked="5.24.0",
)

# %% [markdown]
# The model here does not use the plain attention: `sdpa` is the default. It maps the heads in the same order, and repeats them only where it has to:

# %% jupyter={"source_hidden": true}
from transformers.integrations.sdpa_attention import sdpa_attention_forward

show_source(
    sdpa_attention_forward,
    {
        'sdpa_kwargs["enable_gqa"] = True':
            "Without a mask, as in this lab's runs with a DynamicCache: the kernel gets the two heads as they are, and knows who shares them.",
        "query = pack_gqa(query, module.num_key_value_groups)":
            "One query with a mask (decode with a StaticCache): the four query heads of a group become four queries of one head. No key is copied.",
        "key = repeat_kv(key, module.num_key_value_groups)":
            "Several queries with a mask: only here the copies are made.",
    },
    excerpts=[("if use_gqa_in_sdpa(attention_mask, key, value):", "value = repeat_kv(value, module.num_key_value_groups)")],
    checked="5.24.0",
)

# %% [markdown]
# ## 5 · Build
#
# First three short pieces of bookkeeping (practice, 6 points), then what a cache does.
#
# ### Exercise 2 · When does the cache pass the weights?
#
# *difficulty 1 of 3 · 5 minutes · 2 points*
#
# | argument | meaning |
# |---|---|
# | `parameters`, `weight_bits` | number of weights, and bits of each |
# | `layers`, `kv_heads`, `head_dim`, `cache_bits` | of the cache; `cache_bits` are the bits of each number in it |
# | `batch` | sequences, all equally long |
#
# Returns the smallest number of tokens of each sequence, `int`, at which the cache takes at least as many bytes as the weights. (Scales and other extras of
# quantizing are left out.)
#
# <details><summary>Hint</summary>
#
# Compute bits on both sides and divide; round up with <code>-(-a // b)</code>.
# </details>

# %% exercise="crossing" provides=["crossing"] difficulty=1 minutes=5
def crossing(parameters, weight_bits, layers, kv_heads, head_dim, cache_bits, batch=1):
    """Tokens of each sequence from which on the cache is at least as large as the weights."""
    ### BEGIN SOLUTION
    token = 2 * layers * kv_heads * head_dim * cache_bits * batch
    return -(-parameters * weight_bits // token)
    ### END SOLUTION

# %% check="crossing" points=2
from inferlab.lab import Check

check = Check("crossing", points=2)


def ask_crossing(*case):
    """The learner's number of tokens."""
    got = check.learner.crossing(*case)
    check.true(isinstance(got, int), "return a whole number of tokens")
    return got


with check.part("a round case", weight=1):
    check.equal(ask_crossing(4096, 16, 2, 2, 8, 16, 1), 64)
### BEGIN HIDDEN TESTS
with check.part("the bundled model and Llama 3 8B", weight=1):
    got = [ask_crossing(5_902_592, 32, 8, 2, 32, 32, 1), ask_crossing(8_030_261_248, 16, 32, 8, 128, 16, 1)]
    check.mistake("at 5764 tokens the cache is still smaller: round up", when=got[0] == 5764)
    check.mistake("keys and values: there are two of them", when=got[0] in (11528, 11529))
    check.equal(got, [5765, 122_533])
with check.part("a batch", weight=1):
    got = ask_crossing(8_030_261_248, 16, 32, 8, 128, 16, 64)
    check.mistake("the weights are shared by the batch, the cache is not", when=got == 122_533)
    check.equal(got, 1915)
with check.part("quantized weights", weight=1):
    got = ask_crossing(8_030_261_248, 4, 32, 8, 128, 16, 64)
    check.mistake("quantized weights do not shrink the cache: the weights shrink alone, so it passes them sooner", when=got == 1915)
    check.equal(got, 479)
    check.equal(ask_crossing(8_030_261_248, 16, 32, 8, 128, 8, 64), 3830)
### END HIDDEN TESTS
check.score()

# %% [markdown]
# The picture to it: what the number of key/value heads does, and what one byte for each number does in place of four. The three models differ in nothing but
# `num_key_value_heads`; their bytes of a token come from real caches of real runs. So do those of the
# fourth, a cache in fp8 (it is lab 17's): a quarter of the numbers' bytes, and a scale on top for each group of 32.

# %%
from inferlab.lab.kvcaches import cache_curves
from inferlab.lab.lowbits import small_cache
from inferlab.models.language import random_model
from transformers import LlamaConfig

per_token = {}
for label, kv in (("multi-head: 8 kv heads", 8), ("grouped-query: 2", 2), ("multi-query: 1", 1), ("grouped-query: 2, fp8", 2)):
    other = random_model(LlamaConfig(hidden_size=256, intermediate_size=704, num_hidden_layers=8, num_attention_heads=8,
                                     num_key_value_heads=kv, vocab_size=1024), lab.device, torch.float32)
    filled = small_cache(other.config, float8=True) if "fp8" in label else DynamicCache(config=other.config)
    other(torch.full((1, 50), 7, device=lab.device), None, None, filled, logits_to_keep=1)
    per_token[label] = real_bytes(filled) / 50
    print(f"{label:24} {per_token[label]:8,.0f} bytes a token")

# %% tags=["demo"]
cache_curves(per_token, [2**k for k in range(7, 18)], {"weights, 32 bits": 4 * weights, "weights, 4 bits": weights / 2},
             title="Fewer bits for the weights move the line, not the curves")

# %% [markdown]
# ### Exercise 3 · Room for a batch
#
# *difficulty 2 of 3 · 6 minutes · 2 points*
#
# A service allocates one `StaticCache` for a batch of prompts of different lengths. The shorter ones are padded on the left to the longest,
# and then every sequence generates `new` tokens. Somebody "saved memory" with `max_cache_len` equal to the longest prompt:

# %% tags=["demo"]
# on the CPU, where it raises: a GPU finds the same mistake in a kernel, and the session cannot use the card any more
on_cpu = model if lab.device == "cpu" else load_language_model("bundled", "cpu")[0]
try:
    known = ids.cpu() % on_cpu.config.vocab_size  # another model's tokens may be too large for this one
    on_cpu.generate(known, attention_mask=torch.ones_like(known), min_new_tokens=NEW, max_new_tokens=NEW, do_sample=False,
                    **cache_argument(StaticCache(config=on_cpu.config, max_cache_len=PROMPT_TOKENS)))
except IndexError as error:
    print("IndexError:", error)

# %% [markdown]
# | argument | meaning |
# |---|---|
# | `prompts` | `list` of `int`, tokens of each prompt |
# | `new` | tokens generated for each sequence, at least 1 |
# | `token_bytes` | bytes of one token in the cache, all layers together |
#
# Returns a `dict` of three `int`: `"capacity"`, the smallest `max_cache_len` that does not raise; `"bytes"`, what the cache then takes; `"padding"`, how many of these
# bytes hold padding when the run is over.
#
# <details><summary>Hint</summary>
#
# Which token is the last one to be written? And a padded position is written into the cache like any other.
# </details>

# %% exercise="room" provides=["room"] difficulty=2 minutes=6
def room(prompts, new, token_bytes):
    """The least static cache for a padded batch: {"capacity": int, "bytes": int, "padding": int}."""
    ### BEGIN SOLUTION
    longest = max(prompts)
    capacity = longest + new - 1
    return {
        "capacity": capacity,
        "bytes": capacity * len(prompts) * token_bytes,
        "padding": sum(longest - prompt for prompt in prompts) * token_bytes,
    }
    ### END SOLUTION

# %% check="room" points=2
from inferlab.lab import Check

check = Check("room", points=2)


def ask_room(*case):
    """The learner's three numbers."""
    got = check.learner.room(*case)
    check.true(isinstance(got, dict) and set(got) == {"capacity", "bytes", "padding"}, "return a dict with the keys capacity, bytes, padding")
    check.true(all(isinstance(value, int) for value in got.values()), "all three are whole numbers")
    return got


with check.part("one prompt has no padding", weight=1):
    check.equal(ask_room([20], 5, 4096)["padding"], 0)
### BEGIN HIDDEN TESTS
with check.part("the smallest capacity", weight=2):
    got = [ask_room([20], 5, 4096)["capacity"], ask_room([7, 30, 12], 9, 100)["capacity"], ask_room([3], 1, 8)["capacity"]]
    check.mistake("with room for the prompt alone, the first decode call raises", when=got[0] == 20)
    check.mistake("one less will do: the last token is never fed", when=got[0] == 25)
    check.mistake("all sequences are padded to the longest prompt", when=got[0] == 24 and got[1] in (15, 20))
    check.equal(got, [24, 38, 3])
with check.part("its bytes", weight=2):
    got = ask_room([7, 30, 12], 9, 100)["bytes"]
    check.mistake("the capacity is paid for every sequence", when=got == 3800)
    check.mistake("padding takes room like any other token", when=got == 100 * (7 + 30 + 12 + 3 * 8))
    check.equal(got, 11_400)
with check.part("the bytes of padding", weight=1):
    check.equal(ask_room([7, 30, 12], 9, 100)["padding"], 4100)
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 4 · What a quantized cache takes
#
# *difficulty 2 of 3 · 7 minutes · 2 points*
#
# | argument | meaning |
# |---|---|
# | `quantized`, `residual` | tokens kept as integers, and tokens still kept in full precision |
# | `layers`, `kv_heads`, `head_dim` | sizes of the model |
# | `bits` | of a code |
# | `group` | numbers that share one scale; divides `head_dim` |
# | `itemsize` | bytes of a number in full precision, and of a scale |
# | `packed` | `True`: codes are packed without a gap. `False`: every code takes a whole byte |
#
# Returns a `dict` of three `int`, in bytes, for one sequence: `"codes"`, `"scales"`, `"residual"`.
#
# <details><summary>Hint</summary>
#
# Count the numbers first: a token has keys and values in every layer. Every number has a code, every <code>group</code> of numbers a scale.
# </details>

# %% exercise="ledger" provides=["ledger"] difficulty=2 minutes=7
def ledger(quantized, residual, layers, kv_heads, head_dim, bits, group, itemsize=4, packed=False):
    """Bytes of a quantized cache: {"codes": int, "scales": int, "residual": int}."""
    ### BEGIN SOLUTION
    numbers = 2 * layers * kv_heads * head_dim  # of one token
    return {
        "codes": quantized * numbers * (bits if packed else 8) // 8,
        "scales": quantized * numbers // group * itemsize,
        "residual": residual * numbers * itemsize,
    }
    ### END SOLUTION

# %% check="ledger" points=2
from inferlab.lab import Check, reference

check = Check("ledger", points=2)


def ask_ledger(*case, **more):
    """The learner's three counts."""
    got = check.learner.ledger(*case, **more)
    check.true(isinstance(got, dict) and set(got) == {"codes", "scales", "residual"}, "return a dict with the keys codes, scales, residual")
    check.true(all(isinstance(value, int) for value in got.values()), "bytes are whole numbers")
    return got


with check.part("nothing quantized yet", weight=1):
    check.equal(ask_ledger(0, 3, 8, 2, 32, 8, 16), {"codes": 0, "scales": 0, "residual": 12_288})
### BEGIN HIDDEN TESTS
@reference
def real_ledger(prompt, new, bits, group):
    """The truth: a real run with the quantized cache; (quantized tokens, residual tokens, bytes of each kind)."""
    import torch
    from inferlab.lab.kvcaches import quantized_cache
    from inferlab.models import cache_argument, load_language_model

    model, _ = load_language_model("bundled", "cpu")
    cache, ids = quantized_cache(model.config, bits, group), torch.arange(10, 10 + prompt).reshape(1, prompt)
    with torch.no_grad():
        model.generate(ids, attention_mask=torch.ones_like(ids), min_new_tokens=new, max_new_tokens=new, do_sample=False, **cache_argument(cache))
    held = [pair for layer in cache.layers for pair in (layer._quantized_keys, layer._quantized_values)]
    full = [part for layer in cache.layers for part in (layer.keys, layer.values)]
    return {"quantized": held[0][0].shape[2], "residual": full[0].shape[2] if full[0].dim() == 4 else 0,
            "bytes": {"codes": sum(codes.nbytes for codes, _ in held), "scales": sum(scale.nbytes for _, scale in held),
                      "residual": sum(part.nbytes for part in full)}}


with check.part("codes of whole bytes, as in the real cache", weight=1):
    truth = real_ledger(30, 14, 4, 16)
    got = ask_ledger(truth["quantized"], truth["residual"], 8, 2, 32, 4, 16)
    check.mistake("4-bit codes that are not packed take a byte each", when=2 * got["codes"] == truth["bytes"]["codes"])
    check.equal(got["codes"], truth["bytes"]["codes"])
with check.part("scales", weight=1):
    truth = real_ledger(30, 14, 4, 16)
    got = ask_ledger(truth["quantized"], truth["residual"], 8, 2, 32, 4, 16)["scales"]
    check.mistake("a scale for each group of numbers, not one for each number", when=got == 16 * truth["bytes"]["scales"])
    check.mistake("the scales are numbers in full precision", when=got * 4 == truth["bytes"]["scales"])
    check.mistake("a quantized cache needs its scales: without them nobody can read the codes", when=got == 0)
    check.equal(got, truth["bytes"]["scales"])
    check.equal(ask_ledger(38, 0, 8, 2, 32, 8, 32)["scales"], real_ledger(30, 9, 8, 32)["bytes"]["scales"])
with check.part("the newest tokens, and packed codes", weight=1):
    truth = real_ledger(30, 14, 4, 16)
    check.equal(ask_ledger(truth["quantized"], truth["residual"], 8, 2, 32, 4, 16)["residual"], truth["bytes"]["residual"])
    check.equal(ask_ledger(38, 5, 8, 2, 32, 4, 16, packed=True)["codes"], truth["bytes"]["codes"] // 2)
### END HIDDEN TESTS
check.score()

# %% tags=["demo"]
with when_written("ledger"):
    for kind, bits in (("quantized, 8 bits", 8), ("quantized, 2 bits", 2)):
        layer = kinds[kind].layers[0]
        full = layer.keys.shape[2] if layer.keys.dim() == 4 else 0
        books = ledger(int(kinds[kind].get_seq_length()) - full, full, config.num_hidden_layers, config.num_key_value_heads, head_dim,
                       bits, 16, model.dtype.itemsize)
        print(f"{kind}: your books {books}, total {sum(books.values()):,}; the cache's own tensors {real_bytes(kinds[kind]):,}")

# %% [markdown]
# ### Exercise 5 · Shared heads by hand
#
# *difficulty 2 of 3 · 10 minutes · 3 points*
#
# Write attention over a cache, for a model in which several query heads share a key/value head (grouped-query attention).
#
# | argument | shape, dtype |
# |---|---|
# | `q` | `(B, H, Q, d)` float: queries of the newest Q tokens |
# | `k`, `v` | `(B, G, T, d)` float: keys and values of all T tokens, the newest included; T ≥ Q, and G divides H |
#
# Query head h uses key/value head h // (H // G). The products are scaled by $1/\sqrt{d}$, and a query may look at its own token and at those before it, not at
# later ones: query i stands at position T - Q + i. Returns `(B, H, Q, d)`, what the heads hand over, to within 1e-5.
#
# <details><summary>Hint</summary>
#
# <code>repeat_interleave</code> repeats beside itself. For the mask: <code>torch.ones(Q, T, dtype=torch.bool, device=q.device).tril(T - Q)</code> is True where a query may look.
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
    return (torch.randn(rows, heads, new, dim, generator=draw), torch.randn(rows, groups, tokens, dim, generator=draw),
            torch.randn(rows, groups, tokens, dim, generator=draw))


def ask_attend(q, k, v):
    got = check.learner.attend(q.clone(), k.clone(), v.clone())
    check.tensor(got, shape=q.shape)
    return got


with check.part("one query head for each key head, one new token", weight=1):
    q, k, v = case(1, 5, heads=2, groups=2)
    check.close(ask_attend(q, k, v), torch.nn.functional.scaled_dot_product_attention(q, k, v))
### BEGIN HIDDEN TESTS
def library(q, k, v, scale=None, causal=True, order="interleave"):
    """torch's own attention; the options make the mistakes that the hidden parts look for."""
    times = q.shape[1] // k.shape[1]
    k, v = ((x.repeat_interleave(times, 1) if order == "interleave" else x.repeat(1, times, 1, 1)) for x in (k, v))
    mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril(k.shape[2] - q.shape[2]) if causal else None
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)


with check.part("eight query heads on two key heads, one new token", weight=2):
    q, k, v = case(1, 9)
    got = ask_attend(q, k, v)
    check.mistake("right shape, wrong partner: head h was given key head h % 2; neighbours share a key head", when=close(got, library(q, k, v, order="tile")))
    mean = library(q, k.mean(1, keepdim=True), v.mean(1, keepdim=True))
    check.mistake("the key heads were averaged: they are shared, not merged", when=close(got, mean))
    check.close(got, library(q, k, v))
with check.part("the scale", weight=1):
    q, k, v = case(1, 9, heads=2)
    got = ask_attend(q, k, v)
    check.mistake("the scores were not scaled", when=close(got, library(q, k, v, scale=1.0)))
    check.mistake("scale by the size of one head, not by the width of all", when=close(got, library(q, k, v, scale=12**-0.5)))
    check.mistake("one over the root of d, not one over d", when=close(got, library(q, k, v, scale=1 / 6)))
    check.close(got, library(q, k, v))
with check.part("several new tokens do not look ahead", weight=2):
    q, k, v = case(6, 6, heads=2)
    got = ask_attend(q, k, v)
    check.mistake("a token looked at the tokens after it", when=close(got, library(q, k, v, causal=False)))
    check.close(got, library(q, k, v))
    q, k, v = case(3, 10, heads=2)
    got = ask_attend(q, k, v)
    wrong = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=torch.ones(3, 10, dtype=torch.bool).tril())
    check.mistake("the queries are those of the newest tokens: the first of them already sees all of the cache", when=close(got, wrong))
    check.close(got, library(q, k, v))
### END HIDDEN TESTS
check.score()

# %% [markdown]
# Beside the real thing: layer 0 of the model on your prompt, with your function in the middle.

# %% tags=["demo"]
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

layer, positions = model.model.layers[0], torch.arange(PROMPT_TOKENS, device=lab.device)[None]
x = layer.input_layernorm(model.model.embed_tokens(ids))
rotary = model.model.rotary_emb(x, position_ids=positions)
q, k, v = (part(x).unflatten(-1, (-1, head_dim)).transpose(1, 2)
           for part in (layer.self_attn.q_proj, layer.self_attn.k_proj, layer.self_attn.v_proj))
q, k = apply_rotary_pos_emb(q, k, *rotary)
print("these keys are what the cache of section 3 holds:", torch.equal(k, cache.layers[0].keys[:, :, :PROMPT_TOKENS]))
with when_written("attend"):
    mine = layer.self_attn.o_proj(attend(q, k, v).transpose(1, 2).flatten(-2))
    theirs = layer.self_attn(hidden_states=x, attention_mask=None, position_embeddings=rotary)[0]
    print(f"largest difference to the layer's own attention: {float((mine - theirs).abs().max()):.1e}")

# %% [markdown]
# So keys are cached *after* the rotation that gives them their position. A cached key knows where it stands, and it cannot simply be moved.

# %% [markdown]
# ### Exercise 6 · Operations on a cache
#
# *difficulty 3 of 3 · 12 minutes · 4 points*
#
# Beam search, speculative decoding and batching all work on the rows of a cache. Write what they do, on plain lists: a cache is a list of rows, a row is the
# list of its tokens' labels (`int`). `operate(rows, operations)` carries the operations out in order:
#
# | operation | what it does |
# |---|---|
# | `("grow", new)` | appends to each row its own list of new labels: `new[i]` to row i |
# | `("crop", k)` | takes the **last k** tokens off every row |
# | `("reorder", index)` | row i of the result is row `index[i]` of before. The same row may be taken twice (`DynamicCache.reorder_cache`) |
# | `("select", index)` | the same, where the result may have fewer rows (`batch_select_indices`) |
# | `("repeat", n)` | every row n times, the copies next to each other (`batch_repeat_interleave`) |
#
# Returns a `list`: the rows as they are after each operation, one entry for each. What you were given must stay as it was.
#
# <details><summary>Hint</summary>
#
# Two rows that came from one are two rows: if they are the same Python list, growing one grows both. Build new lists instead of changing old ones.
# </details>

# %% exercise="operate" provides=["operate"] difficulty=3 minutes=12
def operate(rows, operations):
    """The rows of a cache after each operation, a list of lists of lists of labels."""
    ### BEGIN SOLUTION
    states = []
    for name, what in operations:
        if name == "grow":
            rows = [row + list(new) for row, new in zip(rows, what)]
        elif name == "crop":
            rows = [row[: len(row) - what] for row in rows]
        elif name in ("reorder", "select"):
            rows = [list(rows[i]) for i in what]
        elif name == "repeat":
            rows = [list(row) for row in rows for _ in range(what)]
        else:
            raise ValueError(f"there is no operation {name!r}")
        states.append(rows)
    return states
    ### END SOLUTION

# %% check="operate" points=4
import torch
from inferlab.lab import Check

check = Check("operate", points=4)


def ask_operate(rows, operations):
    """The learner's states: one for each operation, each a list of rows."""
    got = check.learner.operate([list(row) for row in rows], list(operations))
    check.true(isinstance(got, list) and len(got) == len(operations), "return a list with one entry for each operation")
    check.true(all(isinstance(state, list) and all(isinstance(row, list) for row in state) for state in got), "each entry is a list of rows, each row a list")
    return got


with check.part("a prefill and two decode calls", weight=1):
    check.equal(ask_operate([[1, 2], [5, 6]], [("grow", [[3], [7]]), ("grow", [[4], [8]])]),
                [[[1, 2, 3], [5, 6, 7]], [[1, 2, 3, 4], [5, 6, 7, 8]]])
### BEGIN HIDDEN TESTS
def real(rows, operations):
    """The truth: the library's own cache, one layer of one head with the labels for keys."""
    from transformers import DynamicCache

    def states(labels):
        return torch.tensor(labels, dtype=torch.float32)[:, None, :, None]

    cache, seen = DynamicCache(), []
    cache.update(states(rows), states(rows), 0)
    for name, what in operations:
        if name == "grow":
            cache.update(states(what), states(what), 0)
        elif name == "crop":
            cache.crop(-what)
        elif name == "reorder":
            cache.reorder_cache(torch.tensor(what))
        elif name == "select":
            cache.batch_select_indices(torch.tensor(what))
        else:
            cache.batch_repeat_interleave(what)
        seen.append([[int(label) for label in row] for row in cache.layers[0].keys[:, 0, :, 0]])
    return seen


three = [[11, 12, 13, 14, 15], [21, 22, 23, 24, 25], [31, 32, 33, 34, 35]]
with check.part("crop", weight=1):
    got = ask_operate(three, [("crop", 2), ("crop", 1)])
    check.mistake("crop takes the last k tokens off; you kept k", when=len(got[0][0]) == 2)
    check.mistake("the last tokens go, not the first", when=got[0][0] == [13, 14, 15])
    check.equal(got, real(three, [("crop", 2), ("crop", 1)]))
    check.equal(ask_operate(three, [("crop", 0)]), real(three, [("crop", 0)]))
with check.part("reorder and select", weight=2):
    got = ask_operate(three, [("reorder", [1, 2, 0])])
    check.mistake("row i of the result is row index[i] of before; you moved row i to place index[i]", when=[row[0] for row in got[0]] == [31, 11, 21])
    check.equal(got, real(three, [("reorder", [1, 2, 0])]))
    steps = [("select", [2, 0]), ("grow", [[36], [16]]), ("select", [1])]
    check.equal(ask_operate(three, steps), real(three, steps))
with check.part("repeat", weight=1):
    got = ask_operate(three[:2], [("repeat", 2)])
    check.mistake("the copies stand next to each other: a a b b, not a b a b", when=[row[0] for row in got[0]] == [11, 21, 11, 21])
    check.equal(got, real(three[:2], [("repeat", 2)]))
with check.part("two beams that came from one go their own ways", weight=2):
    steps = [("reorder", [0, 0, 2]), ("grow", [[91], [92], [93]]), ("crop", 1), ("grow", [[94], [95], [96]])]
    got = ask_operate(three, steps)
    check.mistake("two rows are one list: growing one grew the other", when=any(91 in row and 92 in row for row in got[1]))
    check.mistake("an earlier state changed afterwards: give each operation's result lists of its own", when=got[0] != real(three, steps)[0] or got[1] != real(three, steps)[1])
    check.equal(got, real(three, steps))
with check.part("a run of speculative decoding and a batch that shrinks", weight=1):
    steps = [("repeat", 2), ("grow", [[1, 2, 3]] * 6), ("crop", 2), ("reorder", [5, 4, 3, 2, 1, 0]), ("select", [0, 3]), ("grow", [[7], [8]])]
    check.equal(ask_operate(three, steps), real(three, steps))
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 7 · Fluent and wrong
#
# *difficulty 3 of 3 · 10 minutes · 3 points*
#
# Two services got the same prompt. One of them mishandles its cache, in a way that depends on your name. Nothing is raised, and the text reads well:

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
# | `"cropped"` | one token too many is taken off the cache on the way |
# | `"window"` | only the newest tokens are kept |
#
# `calls_of(trace)` lists a run's calls, each with `.number` (from 1), `.new` (tokens that went in) and `.context` (tokens in the cache before the call).
# Write `diagnose()`, which returns a `dict`:
#
# | key | meaning |
# |---|---|
# | `"fault"` | one of the four names |
# | `"call"` | number of the first call whose `.context` is not that of the same call of `healthy`, `int` |
# | `"healthy"`, `"suspect"` | `.context` of that call in the two runs, `int` |
# | `"lost"` | tokens of **this** request, prompt included, that the **last** call of `suspect` could not see, `int`. Its own token it always sees |
#
# Compute them from the two traces, or write down what you found there.
#
# <details><summary>Hint</summary>
#
# Put the two lists of contexts side by side. For <code>lost</code>: how many tokens should be in the cache before the last call, and how many of this request's are there?
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
    got = check.learner.diagnose()
    check.true(isinstance(got, dict) and set(got) == {"fault", "call", "healthy", "suspect", "lost"},
               "return a dict with the keys fault, call, healthy, suspect, lost")
    check.true(got["fault"] in ("stale", "ignored", "cropped", "window"), f"{got['fault']!r} is none of the four faults")
    check.true(all(isinstance(got[key], int) for key in ("call", "healthy", "suspect", "lost")), "the other four are whole numbers")
    return got


with check.part("a fault and four numbers (graded when you hand it in)", weight=0):
    diagnosis()
### BEGIN HIDDEN TESTS
def mishandled(variant):
    """(fault, first call that differs, healthy context, suspect context, lost at the last call)."""
    prompt, new = (38, 45, 51, 58)[variant // 4], (9, 10, 11, 12)[variant // 4]
    last = prompt + new - 2  # context of the last call
    return [
        ("stale", 1, 0, 12, 0),
        ("ignored", 2, prompt, 0, last),
        ("cropped", 5, prompt + 3, prompt + 2, 1),
        ("window", 2, prompt, 32, last - 32),
    ][variant % 4]


fault, first, good_context, bad_context, lost = mishandled(check.variant(16))
with check.part("which fault", weight=2):
    got = diagnosis()["fault"]
    check.mistake("a crop takes tokens off once; here the cache never grows again", when=got == "cropped" and fault == "window")
    check.true(got == fault, "your two traces show another fault")
with check.part("where it first shows", weight=1):
    got = diagnosis()["call"]
    check.mistake("calls are numbered from 1", when=got == first - 1)
    check.mistake("the fourth call is still right: what it left behind is not", when=fault == "cropped" and got == 4)
    check.equal(got, first)
with check.part("the evidence", weight=1):
    got = diagnosis()
    check.mistake("healthy and suspect have changed places", when=(got["healthy"], got["suspect"]) == (bad_context, good_context))
    check.equal([got["healthy"], got["suspect"]], [good_context, bad_context])
with check.part("what the last call could not see", weight=2):
    got = diagnosis()["lost"]
    check.mistake("everything of this request is there; it is somebody else's tokens that are too many", when=fault == "stale" and abs(got) == 12)
    check.mistake("the last call's own token is no loss: it is not in the cache yet, in any run", when=got == lost + 1)
    check.equal(got, lost)
### END HIDDEN TESTS
check.score()

# %% [markdown]
# Each of these answers is fluent, and no test of form would find one. The contexts of the calls say it in one line: a cache that is right grows by what
# went in, from zero.

# %% [markdown]
# ## 6 · Explain
#
# *difficulty 2 of 3 · 12 minutes · 6 points: 3 for the typed lines, 3 for the sentences*
#
# Explain the cache of the run of section 3 (a prompt of 128 tokens, 24 new ones, `DynamicCache`) to a colleague who thinks that it stores the text.
#
# | line | what it says |
# |---|---|
# | `state:` | one or two sentences: what is kept for each token, and what uses it later |
# | `axis:` | one or two sentences: which axis of the keys grows and which sizes stay, with the numbers of this run |
# | `trade-off:` | one or two sentences: what you gain and what you pay for keeping the cache instead of computing everything again |
# | `bytes:` | typed, with a unit: what the cache takes at the end of this run |
# | `token:` | typed, with a unit: what one token takes |
# | `shape:` | typed: the shape of one layer's keys at the end |
# | `crossing:` | typed: tokens at which this cache would be as large as the weights (in the same 32 bits) |
# | `gain:` | typed, in the form of `compute up`: what 2 instead of 8 key/value heads improve |
# | `cost:` | typed: what they may make worse |

# %%
explained = run  # %%explain looks the numbers of your answer up in the newest trace that has a name

# %% explain="the-cache" difficulty=2 minutes=12
%%explain the-cache
# ### BEGIN SOLUTION
# state: In every layer the cache keeps the key and the value of each token, and the attention of every later call reads them.
# axis: The token axis of the keys grows from 128 to 151, while the 2 heads and the head_dim of 32 stay the same.
# trade-off: Keeping the cache saves computing the old tokens again, so each call is faster, but the memory grows with every token.
# bytes: 604 KiB
# token: 4096 bytes
# shape: (1, 2, 151, 32)
# crossing: 5765
# gain: memory down
# cost: quality down
# ### END SOLUTION

# %% check="cache-bytes" of="the-cache" points=1
from inferlab.lab import Check, reference

check = Check("cache-bytes", points=1)
with check.part("`bytes:` and `token:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("the-cache").get("bytes"), "`bytes:` is empty")
    check.true(check.explanation("the-cache").get("token"), "`token:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import typed


@reference
def facts():
    """The run of section 3, traced again; its shapes and counts do not depend on the prompt's words."""
    import torch
    from inferlab.lab.kvcaches import real_bytes
    from inferlab.models import cache_argument, load_language_model
    from inferlab.trace import trace
    from transformers import DynamicCache

    model, _ = load_language_model("bundled", "cpu")
    cache, ids = DynamicCache(config=model.config), torch.arange(10, 138).reshape(1, 128)
    with torch.no_grad(), trace(model) as again:
        model.generate(ids, attention_mask=torch.ones_like(ids), min_new_tokens=24, max_new_tokens=24, do_sample=False,
                       **cache_argument(cache))
    held = real_bytes(cache)
    return again.facts() | {"bytes": held, "token": held // int(cache.get_seq_length()), "keys shape": tuple(cache.layers[0].keys.shape),
                            "weights": sum(p.nbytes for p in model.parameters())}


with check.part("the bytes of the whole cache"):
    told, known = check.explanation("the-cache"), facts()
    check.mistake("the query heads are not cached", when=typed(told, "bytes", 4 * known["bytes"], tolerance=0.005).verdict == "award")
    check.mistake("keys and values: there are two of them", when=typed(told, "bytes", known["bytes"] // 2, tolerance=0.005).verdict == "award")
    outcome = typed(told, "bytes", known["bytes"], tolerance=0.004)
    check.mistake("the last token was never fed, so nothing of it is in the cache",
                  when=outcome.verdict != "award" and typed(told, "bytes", known["bytes"] + known["token"], tolerance=0.004).verdict == "award")
    check.true(outcome.verdict == "award", outcome.reason)
with check.part("the bytes of one token"):
    outcome = typed(check.explanation("the-cache"), "token", facts()["token"], tolerance=0.03)
    check.true(outcome.verdict == "award", outcome.reason)
### END HIDDEN TESTS
check.score()

# %% check="cache-shape" of="the-cache" points=1
from inferlab.lab import Check, reference

check = Check("cache-shape", points=1)
with check.part("`shape:` and `crossing:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("the-cache").get("shape"), "`shape:` is empty")
    check.true(check.explanation("the-cache").get("crossing"), "`crossing:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import typed


@reference
def facts():
    """The run of section 3, traced again; its shapes and counts do not depend on the prompt's words."""
    import torch
    from inferlab.lab.kvcaches import real_bytes
    from inferlab.models import cache_argument, load_language_model
    from inferlab.trace import trace
    from transformers import DynamicCache

    model, _ = load_language_model("bundled", "cpu")
    cache, ids = DynamicCache(config=model.config), torch.arange(10, 138).reshape(1, 128)
    with torch.no_grad(), trace(model) as again:
        model.generate(ids, attention_mask=torch.ones_like(ids), min_new_tokens=24, max_new_tokens=24, do_sample=False,
                       **cache_argument(cache))
    held = real_bytes(cache)
    return again.facts() | {"bytes": held, "token": held // int(cache.get_seq_length()), "keys shape": tuple(cache.layers[0].keys.shape),
                            "weights": sum(p.nbytes for p in model.parameters())}


with check.part("the shape of one layer's keys"):
    told, shape = check.explanation("the-cache"), facts()["keys shape"]
    check.mistake("the query heads are not cached", when=typed(told, "shape", (shape[0], 8, *shape[2:])).verdict == "award")
    check.mistake("the last token was never fed, so nothing of it is in the cache", when=typed(told, "shape", (*shape[:2], 152, 32)).verdict == "award")
    outcome = typed(told, "shape", shape)
    check.true(outcome.verdict == "award", outcome.reason)
with check.part("where the cache would pass the weights"):
    told, known = check.explanation("the-cache"), facts()
    outcome = typed(told, "crossing", -(-known["weights"] // known["token"]), tolerance=0.02)
    check.true(outcome.verdict == "award", outcome.reason)
### END HIDDEN TESTS
check.score()

# %% check="cache-gain-cost" of="the-cache" points=1
from inferlab.lab import Check

check = Check("cache-gain-cost", points=1)
with check.part("`gain:` and `cost:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("the-cache").get("gain"), "`gain:` is empty")
    check.true(check.explanation("the-cache").get("cost"), "`cost:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import typed

own = {"cache": "cache, kv cache, cache size, cache bytes, bytes of the cache", "batch": "batch, batch size, requests, sequences that fit",
       "bandwidth": "bandwidth, memory bandwidth, bandwidth use, memory traffic, traffic, bytes read, bytes per token"}
check.slot(lambda: typed(check.explanation("the-cache"), "gain", ("memory down", "cache down", "bandwidth down", "batch up", "latency down", "throughput up"),
                         terms=own), "what fewer key/value heads gain")
check.slot(lambda: typed(check.explanation("the-cache"), "cost", ("quality down", "error up", "expressiveness down"),
                         terms={"expressiveness": "expressiveness, capacity of the model, perplexity quality"}), "what they may cost")
### END HIDDEN TESTS
check.score()

# %% check="cache-state" of="the-cache" points=1
from inferlab.lab import Check

check = Check("cache-state", points=1)
with check.part("`state:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("the-cache").get("state"), "`state:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import Rubric, Slot, Trend, grade, terms

RUBRIC = Rubric(
    question="What is kept for each token, and what uses it later. A colleague thinks that the cache stores the text.",
    lab="A token's key and value depend on the tokens before it and on nothing that comes later. So they are computed once, and kept. No queries, no hidden "
        "states, no logits, no text, and none of the weights. Attention reads all of them in every call.",
    terms={
        **terms("cache", "keys", "logits", "weights", weights="weight*, model weight*, parameter*", keys="+key vector*, value vector*, key and value vectors, "
              "kept key*, stored key*, cached key*, saved key*, old key*, kept value*, stored value*, cached value*, saved value*, old value*"),
        "hidden": "hidden state*, activation*, embedding*",
        "queries": "quer*, query vector*",
        # what is named with `neither ... nor` is not said to be kept
        "not kept": "nor hidden state*, nor the hidden state*, nor activation*, nor embedding*, nor logit*, nor quer*, nor weight*, neither hidden state*, neither logit*, "
                    "neither quer*, neither weight*, neither embedding*",
        "attention": "attention*, attend*",
        "story": "story, stories",
        "others": "lm_head, lm head, mlp*, feed-forward, feed forward, tokenizer*, tokeniser*, sampler*, embedding layer",
    },
    slots={"state": Slot(
        learned="lab13 state 334b92f9dbfffba9",
        deny={
            "* keep/store/hold/save/cache/contain/remember hidden": "Hidden states are thrown away; keys and values made from them are kept.",
            "* keep/store/hold/save/cache/contain/remember/reuse logits": "No scores are kept.",
            "* keep/store/hold/save/cache/contain/remember/reuse queries": "A query is used once, by its own token; it is not kept.",
            "* keep/store/hold/cache/contain/remember weights": "The weights are elsewhere, and the same for every request.",
            "says: query/queries is/are kept/stored/cached/saved, query and .. kept/stored/cached/saved, queries and .. kept/stored/cached/saved, keys and queries, use/uses/reuse/reuses/read/reads the queries, ask again, need/needs/use/uses/read/reads the old queries, plus its/the query/queries": "A query is used once, by its own token; it is not kept.",
            "says: keys/values of the whole/entire/all vocabulary, of the whole/entire vocabulary, of all words": "Of the tokens so far, not of the vocabulary.",
            "says: keep/keeps/store/stores/hold/holds/save/saves/cache/caches/remember/remembers attention score*/weight*/map*/matrix/probabilities, "
            "keep/keeps/store/stores/hold/holds/save/saves/cache/caches/remember/remembers the/its/all/only/their/old attention score*/weight*/map*/matrix/probabilities, "
            "attention score*/weight*/map*/probabilities is/are/get kept/stored/saved/cached/reused/remembered, for each/every token its/the attention score*/weight*, softmax reads/reuses/keeps, softmax does not have, scores of the softmax": "The scores are made anew by every query; keys and values are kept.",
            "says: of only the last, of the last token only, only the last/latest/newest token": "All tokens so far are kept.",
            "says: feed-forward/mlp/lm_head .. read/reads/use/uses/need/needs/take/takes them, feed-forward/mlp block/layer/network of, backward pass, gradient/gradients, "
            "optimizer, the sampler looks/reads/takes/uses": "Only attention reads them, and only forward.",
            "says: the earlier/old tokens use/read/update/see/look, update themselves, earlier tokens are updated/recomputed, copies them, as its own key, "
            "doesn't/not have to look at the old, does not look at the old": "A key and a value stay as they are; the attention of later tokens reads them.",
            "says: of the 8 query, per query head, for each/every query head": "The cache has one key and one value for each of the 2 key/value heads.",
            "says: of/in/only the last layer only, of only the last layer, only of the last layer, in the last layer only": "Every layer keeps its own keys and values.",
            "others use/read/need/take/get keys": "Only attention reads them.",
            "others use/read/need/take/get cache": "Only attention reads it.",
            "says: stores/keeps/holds/saves/remembers/caches/contains the/its/all/only text/words/string/characters, stores/keeps/holds/saves/remembers/contains the prompt text, "
            "text/words of the prompt/answer/story .. kept/stored/saved, text/words is/are kept/stored/saved/cached, and its text, stores/keeps/holds/saves/remembers .. id/ids":
                "The tokens themselves are not kept: each layer keeps a key and a value for each.",
        },
        trend=Trend(  # two ideas are wanted: what is kept (a key and a value), and what uses it (the attention of later tokens)
            "cache", gain={"used": "up"}, cost={"kept": "up"}, switch=True, asked="up",
            says={
                "kept up": "key*, value, kv, k, kv cache, key-value cache, key value cache, past_key_values",
                "used up":
                    "used/read/needed/consulted/consumed/reused/wanted/required/looked by .. attention/query/queries/later/next/following/subsequent/future/new/coming/every/each/all, "
                    "used/needed/read/consulted/consumed/looked in/during/for/at .. attention/later/next/following/subsequent/future/new/each/every/decode, "
                    "later/next/following/subsequent/future/new/newer/coming/upcoming/afterwards/after/newest .. work/use/read/need/needs/look/see/attend/consult/take/get/compare/match/access/find/require/draw/want/fetch/refer, "
                    "later/next/following/subsequent/future/new/coming .. multiply/combine/score/reuse, "
                    "attention/query/queries .. work/use/read/need/needs/look/see/consult/take/get/compare/match/access/require/draw/want/fetch/reuse/attend/go, query/queries .. multiply/dot/dotted/score/combine/check/meet/product, "
                    "attention of/for/by/in .. later/next/following/subsequent/future/new/coming/follow/after, "
                    "attention scores/weights of/for/by/in .. later/next/following/subsequent/future/new/coming, "
                    "new/next/later/following token/tokens/query/queries/call/step computes/compute/calculates/does/do attention, scores .. computed/calculated with/from them, "
                    "attend to/back/over, do/perform/compute/calculate attention on/with/over, work/works the attention, compared/matched with/against/to, mixes/mix/weighs the/their/its values, every/each/all later token/call/step, "
                    "for/by/in later/next/following/subsequent/future/coming/new token/tokens/call/calls/step/steps/attention/query/queries/position/positions",
                "kept down": "is/are recomputed/recalculated, is/are computed again, nothing is/was kept/stored/cached",
                "used down":
                    "used/needed/read only by/once, only by/for .. itself, only used/needed/read by/once/for .. itself, never used/needed/read, key/keys/values .. dropped/discarded/thrown/deleted/forgotten/removed",
            }),
    )},
    must_award={"state": [
        "Each layer keeps the key and the value of every token, and later tokens read them in attention.",
        "The cache holds keys and values of all tokens so far; the attention of each new token uses them.",
        "For every token a key and a value are stored per layer, and they are read again by every later call.",
        "keys and values are cached in each layer, the next token's attention needs them",
        "What stays of each token is a key and a value in every layer; they are consumed by the attention of all following calls.",
        "The cache holds a key and a value for every token; the query of the next token is compared with all stored keys and mixes the kept values.",
        "The cache contains neither text nor hidden states, only keys and values, and the attention of the next token uses them.",
        "one key and one value per token and layer; used by the attention of all later tokens",
        "Each token leaves k and v behind in every layer, and later tokens attend to them.",
        "From every token stay the key and the value, the query of the new token is compared with them.",
    ]},
    must_deny={"state": [
        "The cache stores the text of the prompt, so that the model can read it again.",
        "The cache keeps the hidden states of all tokens for the next call.",
        "The cache stores the logits of every position and decode reuses them.",
        "The cache holds the weights of the model so that they are loaded once.",
        "It keeps the queries of all tokens, so that the next tokens can ask with them again.",
        "A key and a value of each token are kept, and lm_head uses the keys to score the next token.",
        "Keys and values are not used by any later token.",
        "Each layer keeps the attention scores of all tokens, and later tokens use them with the values.",
        "A key and a value of each token are kept, and the backward pass of later tokens uses them.",
        "Keys and values are kept per token, and later the old tokens use them to update themselves.",
        "Each token leaves a key and a value, and the feed-forward block of the next call reads them.",
    ]},
)
check.slot(lambda: grade(check.explanation("the-cache"), RUBRIC, {})["state"], "what is kept, and what uses it")
### END HIDDEN TESTS
check.score()

# %% check="cache-axis" of="the-cache" points=1
from inferlab.lab import Check, reference

check = Check("cache-axis", points=1)
with check.part("`axis:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("the-cache").get("axis"), "`axis:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import Amounts, Rubric, Slot, grade, terms


@reference
def facts():
    """The run of section 3, traced again; its shapes and counts do not depend on the prompt's words."""
    import torch
    from inferlab.lab.kvcaches import real_bytes
    from inferlab.models import cache_argument, load_language_model
    from inferlab.trace import trace
    from transformers import DynamicCache

    model, _ = load_language_model("bundled", "cpu")
    cache, ids = DynamicCache(config=model.config), torch.arange(10, 138).reshape(1, 128)
    with torch.no_grad(), trace(model) as again:
        model.generate(ids, attention_mask=torch.ones_like(ids), min_new_tokens=24, max_new_tokens=24, do_sample=False,
                       **cache_argument(cache))
    held = real_bytes(cache)
    return again.facts() | {"bytes": held, "token": held // int(cache.get_seq_length()), "keys shape": tuple(cache.layers[0].keys.shape),
                            "weights": sum(p.nbytes for p in model.parameters())}


LENGTHS = [1, 2, 23, 24, 128, 129, 130, 131, 151]
RUBRIC = Rubric(
    question="Which axis of the keys grows and which sizes stay, with the numbers of this run.",
    lab="Which axis moves: the third, tokens. Batch, heads and head_dim are what they were. Token: one more row, the only axis that grows.",
    terms={
        **terms("sequence", "heads", "head_dim", sequence="+token*, third axis, third dimension, third number, third one, third size, length, cache length, tokens axis, dim 2, axis of tokens, axis of the tokens, dim -2, axis -2, dimension -2, second last axis, last but one axis, last axis but one, second-last axis, axis of length, axis number three"),
        "batch": "batch*, batch axis, first axis, dim 0, axis 0",
        "layers": "layer*",
        "cache": "cache*, kv cache, keys, key*",
        "axes": "\"axes\", \"dimensions\"",
        "query heads": "query head*, q heads, heads of the query, heads of the queries",
        "calls": "call*, step*",
    },
    slots={"axis": Slot(
        learned="lab13 axis f9c2aaf560907435",
        topic=["sequence", "cache"],
        deny={"says: tokens/sequence/cache/keys does/do not grow, token/tokens/sequence/third axis does not grow, tokens/sequence/cache/keys never grow/grows, token/tokens/sequence/third axis never grows, nothing grows, no axis grows, overwrite/overwrites/replace/replaces the old/oldest/older/earlier/first": "Each new token adds one position; nothing is overwritten.",
                  
            "says: heads/head grow/increase/rise/extend/expand/double, heads/head axis/dimension grow/increase/rise/extend/expand, heads/head is/are grow/increase, "
            "heads/head axis/dimension is/are grow/increase, heads/head .. and grow/increase, axis of the heads grow/increase, axis of heads grow/increase": "The number of heads is fixed.",
            "says: head_dim grow/increase/extend/expand, head_dim is grow/increase, head size/dim/dimension grow/increase/expand, size of the head grow/increase": "The size of a head is fixed.",
            "says: batch/first axis/size/dimension grow/increase/extend/expand, batch grow/increase/extend/expand, batch axis/size is grow/increase, batch is grow/increase":
                "The batch is 1 in every call of this run.",
            "says: all the axes stay, all axes stay, no axis grows, its whole room at once, room at once, from start to end": "The token axis gets one longer with every call.",
            "says: grow/grows/grew/increase/increases/longer by 24, 24 longer/more, 24 rows, one for each of the 24": "23 of the 24 new tokens are fed back: the last one is not in the cache.",
            "says: batch axis that, number of tokens that stays, tokens that stays/stay, heads axis that, layers axis that": "Only the tokens get more.",
            "says: to make room, gets/get/is/are dropped, gets/get/is/are evicted, prompt keys in again, keys .. in again, puts .. again, keys are computed/written again": "Nothing is dropped and nothing is put in again: each call appends one position.",
            "says: layer axis grows, layers axis grows, adds a layer, a layer for each/every token, one layer per token": "The number of layers is fixed.",
            "says: token axis .. shrinks, it shrinks, uses one up, is used up, one less with": "The token axis gets one longer with every call.",
            "says: layers/layer grow/increase/extend/expand, number of layers grow/increase, layers/layer are/is grow/increase": "The number of layers is fixed.",
            "says: token/tokens/sequence axis/dimension/length gets/becomes/is shorter/smaller/shrink, tokens/token get/become fewer/shorter, axis gets/becomes shorter/smaller": "The token axis gets one longer with every call.",
            "says: in/along the dimension/axis of heads/layers, in/along the heads/head/batch/layer dimension/axis, in/along the dimension/axis of the heads/batch/layers, tokens still 128, tokens stay/stays/remain 128": "Only the tokens get more.",
            "says: so do/does the .. heads/batch/layers/head_dim": "Only the tokens get more.",
            "sequence shrink/decrease/drop": "The token axis gets one longer with every call.",
            "says: token/tokens/sequence axis/dimension/length stays/stay/remains/keeps at 128, tokens/token/sequence stay/stays/remain at 128, and stays/stay at 128": "The token axis gets one longer with every call.",
        },
        amounts=Amounts(
            shapes=["keys shape", "cache.update.inputs.key_states.shape", (1, 2, 1, 32), (1, 2, 129, 32), (1, 2, 130, 32), (1, 2, 150, 32)],
            counts={"sequence": LENGTHS, "cache": LENGTHS, "heads": [1, 2, 32], "head_dim": [1, 2, 32], "batch": 1, "layers": 8, "axes": [1, 2, 3, 4],
                    "calls": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 128, 151]},
            key=["sequence", "cache"],
            moves=[(128, 151)],
        ),
        loose=True,
    )},
    must_award={"axis": [
        "The token axis grows from 128 to 151, while the 2 heads and head_dim 32 stay the same.",
        "The keys go from (1, 2, 128, 32) to (1, 2, 151, 32): only the sequence axis grows.",
        "Only the third axis grows, from 128 up to 151 tokens.",
        "The sequence length increases by one with each call until it is 151; 2 kv heads of 32 stay.",
        "It is the token axis, the third of four, that goes from 128 to 151; batch 1, 2 heads and head size 32 are fixed.",
        "The token axis grows from 128 to 151, one position for each of the 23 tokens that were fed back; the 2 kv heads and head_dim 32 stay.",
        "Shape (1, 2, 128, 32), then (1, 2, 129, 32) and so on up to (1, 2, 151, 32): the tokens grow and the other axes never do.",
        "Only the token axis grows, to 151: batch, heads and head_dim are the same in all calls.",
    ]},
    must_deny={"axis": [
        "The heads grow from 2 to 8 while the run goes on.",
        "The batch axis grows from 1 to 24.",
        "The token axis grows from 128 to 500.",
        "The sequence axis grows to 151, and there are 8 heads in the keys.",
        "The token axis shrinks from 151 to 128, the 2 heads stay.",
        "The heads axis is growing, from 2 to 151, while the token axis stays at 128.",
        "The token axis grows by 24, from 128 on; 2 heads and head_dim 32 stay.",
        "The tokens grow from 128 to 151, and the first ones get dropped to make room; 2 heads of 32 stay.",
        "The shape goes from (1, 2, 128, 32) to (1, 2, 151, 32), so it is the batch axis that gets longer.",
        "The token axis grows to 152 tokens; the 2 heads of 32 stay the same.",
    ]},
    example_facts={"keys shape": (1, 2, 151, 32), "cache.update.inputs.key_states.shape": (1, 2, 128, 32)},
)
check.slot(lambda: grade(check.explanation("the-cache"), RUBRIC, facts())["axis"], "which axis grows, with its numbers")
### END HIDDEN TESTS
check.score()

# %% check="cache-trade-off" of="the-cache" points=1
from inferlab.lab import Check

check = Check("cache-trade-off", points=1)
with check.part("`trade-off:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("the-cache").get("trade-off"), "`trade-off:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import Rubric, Slot, Trend, grade, terms

RUBRIC = Rubric(
    question="What you gain and what you pay for keeping the cache instead of computing everything again.",
    lab="So they are computed once, and kept. A static cache takes all of its memory at the first call.",
    terms=terms("cache", cache="+caching, keeping the cache, keeping it, storing keys, "
                "save a lot of time, save lots of time, save a lot of compute, save lots of compute, save a lot of computation, save lots of computation, save a lot of computing, "
                "save a lot of work, save lots of work, save a lot of calculation, save a lot of processing, spare a lot of compute, spare a lot of computation, spare a lot of work, "
                "avoid a lot of compute, avoid a lot of computation, avoid a lot of work, each further token, every further token, each additional token, every additional token"),
    slots={"trade-off": Slot(
        learned="lab13 trade-off 5e6044204400892e",
        deny={"says: prefill .. faster/quicker/sooner, prefill of .. faster, makes the prefill, prefill of the prompt the part, prompt is processed/read/computed faster/quicker/sooner, prompt gets/becomes/is faster/quicker, weights take/need/use/occupy more/less, faster/quicker/shorter prefill, memory for weights, memory for the weights, better quality, quality .. better/higher, weights .. bits": "The cache changes neither the prefill nor the answers nor the weights."},
        trend=Trend(
        "cache", gain={"time": "down", "compute": "down"}, cost={"memory": "up"}, switch=True, asked="up",
        says={
            "time down": "faster/quicker/shorter/snappier step/steps/decode/decoding/token/tokens/call/calls/generation, gain/gains/get/win of/in/is speed/time, gain/gains/win/get speed/time, "
                         "shorter decode/decoding, for speed, save/saves/saved/saving a lot of time, save/saves/saved/saving lots of time",
            "compute down":
                "no/nothing/none/instead/rather/avoids/saves/saving/spares/skips/prevents .. recompute/recomputation/recalculate/recalculation/reprocess/redo/rerun/repeat, without recomputing/recomputation/recalculating/reprocessing/redoing/rerunning/repeating/processing/running, "
                "no/instead/rather/avoids/saves/spares .. re-run/re-read/reread/re-process/re-compute, "
                "not/never/nothing/none/needn't/don't/doesn't/dont/doesnt/isn't/aren't/won't/no/avoids/saves/spares .. again/anew/twice/afresh, "
                "not/never/needn't/don't/doesn't/isn't/aren't/no .. second time, not/never/needn't/don't/doesn't/isn't/aren't/no .. once more/over, "
                "not/don't/doesn't/dont/doesnt/needn't/no/nor .. have/need/needed/must/necessary/required to "
                "compute/recompute/calculate/process/run/rerun/redo/do/push/feed/reread/chew/go/repeat/start, "
                "no need to/of/for .. compute/recompute/calculate/process/run/rerun/redo/do/push/feed/chew/go/repeat, "
                "need not .. compute/recompute/calculate/process/run/push/feed/be, needn't .. compute/recompute/calculate/process/run/push/feed/be, "
                "saves/saving/spares/relieved/relieves/frees/avoids/skips .. compute/recompute/calculate/recalculate/process/run/redo/rerun/push/feed/prompt, "
                "work/compute/computation/recomputation/calculation .. saved/avoided/spared, "
                "only/just/merely .. new/newest/latest/last/current/own, only/just .. one/1/single token/position, "
                "save/saves/saved/saving/spare/spares/avoid/avoids a lot of work/compute/computation/computing/calculation/calculations/processing, "
                "save/saves/saved/saving lots of compute/computation/work, less/little/nothing to compute/calculate/process/recompute/do, save/saves/spare/spares/avoid/avoids computing/computation/calculation/calculating/processing, "
                "the work/compute/computation of one/1/a, one/1 position/token of work/compute/computation, only/just .. position/token, "
                "each/every/old token/tokens/stuff/position .. processed/computed/done/calculated once, processed/computed/done/calculated only/just/exactly once, is/are done/computed/processed once, "
                "instead of .. all/whole/entire/everything/every/full/sequence/positions, rather than .. all/whole/entire/everything/every/full/sequence/positions, "
                "need/needs/require/requires no second/further/repeated computation/calculation/pass/run, without .. second computation, less/fewer .. recomputation/recomputing",
            "memory down": "which/that decreases/shrinks/falls with, decreases/shrinks/falls with every/each/the/more",
            "memory up":
                "store/stores/hold/holds/occupy/occupies/consume/consumes/spend/spends .. per/each/every/a token, used more, memory is more, grows w each/every, costs you memory, provide memory, one has to provide, you hold, more tokens in memory, "
                "every/each token .. stays/kept/stored, cache .. grow*, takes/needs/take/need/occupies/costs/eats room/space, "
                "bytes/kib/kb/mb/mib/gb .. per/a/each/every token, memory .. per/each/every/with/linear/proportional/scales/grows/used/paid/filled/bigger, "
                "provide/hold/reserve/fill/fills/eats/eat/fills .. memory/ram/storage/bytes, fill/fills/filling/takes/take up .. memory/ram/storage/bytes, memory fills/fill up, gpu memory fills/fill up, gpu memory is/gets occupied/taken/used/filled/needed, memory is/gets occupied/taken/used/filled/needed, more .. tokens in memory, stored/kept/held in memory, "
                "storage/footprint/memory .. growing/grows/proportional/linear/bigger/more, growing/grows/increases/increase/more .. with/every/each/longer token/tokens/sequence/sequences/context/length/chats/users/user, "
                "pay/pays/paid/cost/costs/price/loss/lose in/of/is/with/for/as/it memory/ram/storage/bytes/space/room, pay/costs/cost/lose/eats/eat memory/ram/storage/bytes/space/room",
        },
    ))},
    must_award={"trade-off": [
        "With the cache each call is faster, because nothing is computed again, but the memory grows with every token.",
        "You save the computation of all earlier tokens and pay with memory.",
        "Without a cache every call would be slower, but it would need less memory.",
        "Latency per token goes down and memory use goes up.",
        "You don't have to push the whole story through the model for each new word; you pay with 4 KiB of memory for each token.",
        "It saves a lot of computation, but costs memory for every token.",
        "For each new token there is less to compute, because the rest is stored already; but memory is occupied, and more with the length.",
        "Each later token needs the work of one position only, but the cache grows with every token.",
    ]},
    must_deny={"trade-off": [
        "The cache makes each call slower and saves memory.",
        "With the cache the memory goes down and the latency goes down, too.",
        "Keeping the cache costs more computation but needs less memory.",
        "Without the cache each call is faster.",
        "The prompt is processed faster, and it costs memory.",
        "Nothing is computed again, which makes the prefill of the prompt faster; the price is memory.",
        "The prefill of the prompt is faster and the quality is better, and the weights need more bits.",
    ]},
)
check.slot(lambda: grade(check.explanation("the-cache"), RUBRIC, {})["trade-off"], "what the cache gains and costs")
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7 · Notice
#
# * **Count the key/value heads, not the query heads.** That is what grouped-query attention is for; here the cache is a quarter of what eight heads would need.
# * **Quantized weights do not shrink the cache.** They shrink the weights alone, so that the cache passes them *sooner*. The cache has bits of its own.
# * **The cache holds keys and values.** No text, no hidden states, no logits, no queries. And keys that have been rotated to their position already.
# * **A static cache is not smaller.** It takes its capacity at once. What it buys is that nothing moves.
# * **The cache does not speed prefill up.** It makes every later call short, and grows with each.
# * **The last token is not in it.** P + n - 1 tokens, and a capacity of P + n - 1 is enough.
# * **A mishandled cache speaks fluently.** Look at lengths, not at text.
# * **`repeat` and `repeat_interleave` have the same shape.** A shape is no proof.
#
# Say it out loud, as in an interview: name the state object, the axis that grows, and the trade-off. Names such as `crop` with a negative count, `get_max_length` and
# `batch_select_indices` belong to transformers 5.24; section 4 says so when the methods shown there differ.

# %% [markdown]
# ## 8 · Check and hand in
#
# Run this cell last. It runs the visible checks again, says what is missing, and leaves one file to hand in.

# %% tags=["demo"]
from inferlab.lab import submit

submit()
