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
# # Lab 12 · Prefill and decode
#
# A language model answers in two phases. They share all of the weights and almost none of the costs. In this
# lab you predict the calls of a real `generate`, watch them, write the loop yourself, and count what each
# call computes. At the end you can say what a call waits for: launches, memory, or arithmetic.
#
# **Time** 60 to 75 minutes · **Points** 19, of which 6 are practice (exercises 2 and 3) · **Reading**
# [Prefill and decode](../../handbook/lab12-prefill-decode.md) in the handbook, before you start

# %% tags=["parameters"]
LEARNER = ""  # your name or id, as your course knows you
MODEL = "bundled"  # "bundled" | "full" | "hub"
DEVICE = "auto"  # "auto" | "cpu" | "cuda"
SEED = 0

# %% [markdown]
# The bundled model has Llama's architecture: 8 layers, 8 query heads on 2 key/value heads. `"full"` builds a
# model of Llama 3 8B's size with random weights, `"hub"` downloads a real one. Grading always uses
# `"bundled"` on the CPU.

# %%
from inferlab.lab import start

lab = start("lab12-prefill-decode", LEARNER, MODEL, DEVICE, SEED)

# %%
import torch
from inferlab.models import cache_argument, load_language_model
from inferlab.trace import trace
from transformers import DynamicCache

torch.set_grad_enabled(False)
model, tokenizer = load_language_model(MODEL, lab.device)
config = model.config
head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
print(type(model).__name__, "·", f"{sum(p.numel() for p in model.parameters()):,} parameters ·", model.dtype)

# %% [markdown]
# The model was trained on short stories about colored shapes. Here it answers a question on one of them:

# %%
from inferlab.models.stories import documents, questions

story, turn = questions(1, seed=SEED, kind="story")[0]
question = tokenizer(story.prompt(turn), return_tensors="pt").to(lab.device)
answer = model.generate(**question, max_new_tokens=24, do_sample=False,
                        **cache_argument(DynamicCache(config=config)))
print(turn.request)
print(tokenizer.decode(answer[0, question.input_ids.shape[1]:], skip_special_tokens=True))

# %% [markdown]
# ## 1 · Goal and mental model
#
# | | **prefill** | **decode** |
# |---|---|---|
# | tokens that go in | the whole prompt, once | one for each sequence, again and again |
# | what it reads | every weight once | every weight once, **and the cache** |
# | what it leaves | keys and values of the prompt | keys and values of one more token |
# | what the user waits for | time to first token (TTFT) | inter-token latency (ITL) |
#
# ```
# logits, cache = model(prompt)            prefill: P tokens, one call
# token = argmax(logits[:, -1])
# while not done:
#     logits, cache = model(token, cache)  decode: 1 token, one call, all weights again
#     token = argmax(logits[:, -1])
# ```
#
# One number tells the phases apart: the **FLOPs per byte** of a call. (FLOPs: floating point operations.
# Bytes: what the call reads from memory and writes to it.) Each weight is read once in a call and used once
# for each token, at two FLOPs each time. In a large model with many tokens, most of the time goes into
# arithmetic, as in a training step on a large batch. With one token, most of it goes into fetching the
# weights.

# %% [markdown]
# ![FLOPs per byte against tokens in a call, both axes logarithmic. Prefill rises in a straight line; decode
# with a growing batch rises and then flattens, the sooner the longer the
# context.](../../handbook/figures/lab12-phases.svg)
#
# *From the handbook.* FLOPs per byte of a call of Llama 3 8B's architecture at 16 bits. A prefill of n tokens
# and a decode call of n sequences both read the weights once. But each sequence also reads a cache of its
# own, which no other sequence can use.

# %% [markdown]
# ## 2 · Predict
#
# In section 3 you trace this run: greedy decoding, one prompt.

# %%
PROMPT_TOKENS, NEW = 128, 24
print(f"prompt {PROMPT_TOKENS} tokens, {NEW} new ones;", f"{config.num_hidden_layers} layers,",
      f"{config.num_attention_heads} query heads, {config.num_key_value_heads} key/value heads of "
      f"{head_dim},",
      f"vocabulary {config.vocab_size}")

# %% [markdown]
# ### Exercise 1 · The calls of a generate
#
# *difficulty 2 of 3 · 5 minutes · 3 points*
#
# **Before you trace anything**, write a function that says what the trace will show. It is graded on runs
# that this notebook never makes, among them three prompts at once.
#
# | argument | meaning |
# |---|---|
# | `prompt`, `new` | tokens of the prompt and tokens generated for each sequence, `int`, `new` at least 2 |
# | `batch` | sequences in the call, all prompts equally long |
# | `kv_heads`, `head_dim`, `vocab` | sizes of the model |
#
# Returns a `dict`:
#
# | key | meaning |
# |---|---|
# | `"calls"` | forward calls of the model, `int` |
# | `"logits"` | shape of the logits that the **first** call returns |
# | `"keys"` | shape of one layer's keys in the cache when `generate` has returned |
#
# Shapes are tuples of `int`. A cached key tensor has the axes (batch, heads, tokens, head_dim).
#
# <details><summary>Hint 1: a nudge</summary>
#
# Each call makes one token for each sequence. Is the last token of the answer ever fed to the model? And at
# how many of the prompt's positions are logits needed to choose the next token?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# There are <code>new</code> calls, and each returns the logits of one position a sequence. The positions of
# one sequence that go through the layers are <code>prompt + new - 1</code>. The cache holds that many for
# each key/value head.
# </details>

# %% exercise="forecast" provides=["forecast"] difficulty=2 minutes=5
def forecast(prompt, new, batch=1, kv_heads=2, head_dim=32, vocab=1024):
    """What a traced greedy `generate` shows: its calls, their logits, and the cache that it leaves."""
    ### BEGIN SOLUTION
    calls, logits = new, (batch, 1, vocab)
    keys = (batch, kv_heads, prompt + new - 1, head_dim)  # the last token is returned, never fed back
    ### END SOLUTION
    return {"calls": calls, "logits": logits, "keys": keys}

# %% check="forecast" points=3
from inferlab.lab import Check, reference

check = Check("forecast", points=3)


def ask_forecast(**run):
    """The learner's forecast of a run, once it has the form that the contract asks for."""
    got = check.plain(check.learner.forecast(**run))
    check.true(isinstance(got, dict) and set(got) == {"calls", "logits", "keys"},
               "return a dict with exactly the three keys of the contract")
    check.true(isinstance(got["logits"], tuple) and isinstance(got["keys"], tuple),
               "each shape is a tuple, such as (1, 2, 3)")
    check.true(isinstance(got["calls"], int), "calls is a whole number")
    return got


with check.part("the model's sizes are where they belong", weight=1):
    got = ask_forecast(prompt=128, new=24, vocab=900, head_dim=40)
    check.equal([got["logits"][-1], got["keys"][-1]], [900, 40])
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 3 · Trace
#
# Now the real run. The cell makes the cache itself and hands it to `generate`, which changes it in place. So
# you can look at the cache afterwards.

# %%
text = " ".join(one.context for one in documents(2, seed=SEED, kind="story"))
ids = tokenizer(text, return_tensors="pt").input_ids[:, :PROMPT_TOKENS].to(lab.device)


def generate(ids, new):
    """Exactly `new` greedy tokens after `ids`; the tokens, and the cache as generate left it."""
    cache = DynamicCache(config=config)
    tokens = model.generate(ids, attention_mask=torch.ones_like(ids), min_new_tokens=new, max_new_tokens=new,
                            do_sample=False, **cache_argument(cache))
    return tokens, cache


from inferlab.lab.kits.decode.lm_calls import FAULTS, calls_of, slow_generate

with trace(model) as run:
    tokens, cache = generate(ids, NEW)

# %% tags=["demo"]
run.table(level=1)

# %% [markdown]
# Look at three places of the table:
#
# * **step 1** takes `(1, 128)`, every later step `(1, 1)`. It is the same model with the same weights. In
#   the trace, only this shape tells the two phases apart;
# * **the logits** are `(1, 1, vocabulary)` in step 1, too. `generate` asks for the logits of the last
#   position only (`logits_to_keep=1`). The other positions of the prompt just fill the cache;
# * **the times**. The first call had 128 times the tokens of each later one. Did it take 128 times as long?

# %% tags=["demo"]
from inferlab.lab import when_written

calls = calls_of(run)
print(f"calls {len(calls)}, positions {sum(c.batch * c.new for c in calls)}, "
      f"keys {tuple(cache.layers[0].keys.shape)}")
ends = [(call.end_ns - run.started) / 1e6 for call in run[type(model).__name__]]
print(f"TTFT {ends[0]:.1f} ms, mean ITL {(ends[-1] - ends[0]) / (NEW - 1):.1f} ms; the prompt is "
      f"{PROMPT_TOKENS / (PROMPT_TOKENS + NEW):.0%} of the tokens and {ends[0] / ends[-1]:.0%} of the time")
with when_written("forecast"):
    print("your forecast:", forecast(PROMPT_TOKENS, NEW, 1, config.num_key_value_heads, head_dim,
                                     config.vocab_size))

# %% [markdown]
# **Reconcile.** Where your forecast and the trace differ, the trace is right.
#
# A user waits for the **time to first token** (TTFT), which here is the prefill, and then for the
# **inter-token latency** (ITL), one decode call for each further token. Look at the line "TTFT" above: most
# of the tokens belong to the prompt. Which part of the time did they take? Usually it is the smaller part,
# because each further token needs a call of its own.
#
# ### One block opened up
#
# What does a layer do with those tokens? The next trace has one prefill and one decode call, and records the
# parts of layer 0:

# %% tags=["demo"]
with trace(model, depth="model.layers.0.*") as opened:
    generate(ids, 2)
opened.table()

# %% [markdown]
# There is a norm, attention, a norm and an MLP. Every shape between them is `(1, tokens, width)`: **the token
# axis goes through the whole block untouched**. Only `cache.update` is different. In step 2 one key goes in,
# and all 129 come out. This is the only place where a decode call meets the earlier tokens. Everything else
# works on the new token alone.
#
# ### Exercise 2 · One block by hand
#
# *difficulty 1 of 3 · 6 minutes · 3 points*
#
# Before `lm_head`, a Transformer has four kinds of parts: embedding, attention, MLP and norms. The
# **embedding** turns token ids into vectors, once, before the first block. These vectors, which go through
# the blocks, are called the state. In each block, **attention** mixes each token with the tokens before it,
# and the **MLP** works on each token alone. Each of the two gets a copy of the state that a **norm** has
# normalized, and its result is *added* to the state itself. No call in the table shows this sum.
#
# Write `block`, which makes the state after the first block from the token ids. The parts are functions, and
# each returns a tensor `(B, T, width)`.
#
# | argument | what it is |
# |---|---|
# | `ids` | `(B, T)` int64 |
# | `embed(ids)` | the ids' vectors |
# | `norm1(x)`, `attend(x)` | the norm before attention, and attention |
# | `norm2(x)`, `mlp(x)` | the norm before the MLP, and the MLP |
#
# Returns `(B, T, width)`. Call each part once.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Each half is `state = state + half(norm(state))`. Which state does the second half begin with?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# Three lines. <code>x</code> is the embedding of the ids. <code>h</code> is <code>x</code> plus attention of
# the first norm of <code>x</code>. Return <code>h</code> plus the MLP of the second norm of <code>h</code>.
# </details>

# %% exercise="block" provides=["block"] difficulty=1 minutes=6
def block(ids, embed, norm1, attend, norm2, mlp):
    """The state after the first block, (B, T, width), from token ids."""
    ### BEGIN SOLUTION
    x = embed(ids)
    h = x + attend(norm1(x))
    return h + mlp(norm2(h))
    ### END SOLUTION

# %% check="block" points=3
import torch
from inferlab.lab import Check

check = Check("block", points=3)
token_card = torch.tensor([[2, 0, 3, 1], [1, 1, 0, 2]])
parts_given = {}


def part_of(name, does):
    """A made-up part of a block, which notes what it is given."""
    def call(given):
        check.tensor(given)
        check.true(name not in parts_given, f"{name} was called twice")
        parts_given[name] = given
        return does(given)
    return call


MADE_UP = {
    "embed": lambda tokens: torch.stack([tokens, 5 - tokens, tokens * tokens], dim=-1).float(),
    "norm1": lambda state: state / 4 + 1, "attend": lambda state: state.cumsum(1) * 3,
    "norm2": lambda state: state / 8 - 2, "mlp": lambda state: state * state,
}


def run_block():
    """The learner's state, (2, 4, 3); what each part was given is in `parts_given`."""
    parts_given.clear()
    got = check.learner.block(token_card, *[part_of(name, does) for name, does in MADE_UP.items()])
    check.tensor(got, shape=(2, 4, 3))
    check.true(set(parts_given) == set(MADE_UP), "each of the five parts is called once")
    return got


with check.part("the ids are looked up, and each part is called once", weight=1):
    run_block()
    check.equal(parts_given["embed"], token_card)
### HIDDEN TESTS
check.score()

# %% [markdown]
# The next cell gives your block the real parts of layer 0. The layer itself gives the same bits:

# %% tags=["demo"]
with when_written("block"):
    layer, embed = model.model.layers[0], model.model.embed_tokens
    where = model.model.rotary_emb(embed(ids), torch.arange(ids.shape[1], device=lab.device)[None])
    by_hand = block(ids, embed, layer.input_layernorm, lambda x: layer.self_attn(x, where)[0],
                    layer.post_attention_layernorm, layer.mlp)
    own = layer(embed(ids), position_embeddings=where)
    print("equal to the layer's own output:", torch.equal(by_hand, own))

# %% [markdown]
# ## 4 · Read
#
# This is the loop of `generate` around the blocks. No block mentions prefill or decode; here the two phases
# have names.

# %% jupyter={"source_hidden": true}
from inferlab.lab import show_source
from transformers import GenerationMixin

show_source(
    GenerationMixin._sample,
    {
        "outputs = self._prefill(":
            "The first call, before the loop: the prompt in one piece (or in chunks, "
            "where prefill_chunk_size is set).",
        "next_sequence_length = 1 if model_kwargs":
            "Decode: one token a sequence, if there is a cache. Without one, None means: everything again.",
        "outputs = model_forward(**model_inputs, return_dict=True)":
            "One token, one call. On CUDA this may be a compiled version of the model.",
        "next_token_logits = outputs.logits[:, -1]":
            "Only the last position is needed, so generate asks for its logits only.",
        "next_tokens = torch.argmax(":
            "Greedy decoding is this line.",
        "input_ids = torch.cat([input_ids, next_tokens[:, None]], dim=-1)":
            "The answer grows here. The token that is appended last is never fed back.",
    },
    excerpts=[
        ("prefill_consumed = False", "is_first_iteration=not generation_config.is_assistant,"),
        ("while self._has_unfinished_sequences(", "prefill_consumed = True"),
        ("next_token_logits = outputs.logits[:, -1]", "next_token_logits = outputs.logits[:, -1]"),
        ("next_tokens = torch.argmax(", "next_tokens = torch.argmax("),
        ("input_ids = torch.cat([input_ids, next_tokens[:, None]], dim=-1)",
         "input_ids = torch.cat([input_ids, next_tokens[:, None]], dim=-1)"),
    ],
    checked="5.24.0",
)

# %% [markdown]
# ## 5 · Build
#
# First the loop, then the counting.
#
# ### Exercise 3 · Greedy decoding by hand
#
# *difficulty 2 of 3 · 7 minutes · 3 points*
#
# Complete the loop. It works with any model, and knows the model only as a function `forward`.
#
# | argument | what it is |
# |---|---|
# | `forward(ids, state)` | one call of a model: `ids` is `(1, T)` int64, returns `(logits, state)`; `logits` is `(1, T', V)`, where `T'` is `T` or 1: the last entry is the last position. `state` stands for the cache: `None` before the first call, then what the call before returned |
# | `prompt` | `(1, P)` int64 |
# | `n` | the most tokens to generate, at least 1 |
# | `eos` | the token after which to stop, `int`; it belongs to the answer |
#
# Returns prompt and answer, `(1, P + m)` int64 with m ≤ n. You write one turn of the loop. Feed each token at
# most once, and do not feed a token if you do not need the prediction after it.
#
# <details><summary>Hint 1: a nudge</summary>
#
# <code>tokens</code> are all tokens so far, and <code>feed</code> those that go into the next call. Look
# whether a token is <code>eos</code> <i>before</i> you feed it.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# Call <code>forward(feed, state)</code>, make <code>feed</code> the argmax of the last position's logits
# (keep its axis with <code>-1:</code>), append it to <code>tokens</code>, and stop if it is <code>eos</code>.
# </details>

# %% exercise="greedy" provides=["greedy"] difficulty=2 minutes=7
def greedy(forward, prompt, n, eos):
    """Prompt and up to `n` greedy tokens, (1, P + m) int64; stops after `eos`."""
    tokens, feed, state = prompt, prompt, None
    for _ in range(n):
        ### BEGIN SOLUTION
        logits, state = forward(feed, state)
        feed = logits[:, -1:].argmax(-1)
        tokens = torch.cat([tokens, feed], dim=1)
        if int(feed) == eos:
            break
        ### END SOLUTION
    return tokens

# %% check="greedy" points=3
import torch
from inferlab.lab import Check

check = Check("greedy", points=3)
prompt_card = torch.tensor([[3, 9, 4, 11, 6]])
fed = []


def scores(sequence):
    """A made-up model of 13 tokens: (1, T) -> (1, T, 13); every position predicts another token."""
    best = (sequence.cumsum(1) * 3 + torch.arange(sequence.shape[1])) % 13
    return torch.nn.functional.one_hot(best, 13).float()


def fake(ids, state):
    """The made-up model with a state: all tokens that it was ever given, in order."""
    check.tensor(ids, dtype=torch.int64)
    check.true(ids.ndim == 2 and len(ids) == 1 and ids.shape[1],
               f"forward wants ids of shape (1, T), and got {tuple(ids.shape)}")
    check.true(state is None or isinstance(state, torch.Tensor),
               "state is None, or what the call before returned")
    seen = ids if state is None else torch.cat([state, ids], dim=1)
    fed.append((ids, 0 if state is None else state.shape[1]))
    check.true(len(fed) <= 40, "40 calls and no end")
    return scores(seen)[:, -ids.shape[1]:], seen


def run_greedy(n, eos=99):
    fed.clear()
    got = check.learner.greedy(fake, prompt_card, n, eos)
    check.tensor(got, dtype=torch.int64)
    check.true(got.ndim == 2 and len(got) == 1, "return one row of tokens, (1, P + m)")
    return got


def right(n):
    """What greedy decoding gives, by computing everything again each time."""
    out = prompt_card
    for _ in range(n):
        out = torch.cat([out, scores(out)[:, -1:].argmax(-1)], dim=1)
    return out


with check.part("six tokens, the right ones", weight=1):
    got = run_greedy(6)
    ### HIDDEN TESTS
    check.equal(got, right(6))
### HIDDEN TESTS
check.score()

# %% [markdown]
# The next cells give your loop the real model. Each call feeds the tokens that `generate` feeds, so the
# answer is the same.

# %%
def forward(ids, state):
    """One call of the real model; the state is the library's cache."""
    state = DynamicCache(config=config) if state is None else state
    return model(ids, None, None, state, logits_to_keep=1).logits, state


# %% tags=["demo"]
with when_written("greedy"):
    mine = greedy(forward, question.input_ids, 24, model.generation_config.eos_token_id)
    print("equal to generate, token for token:", torch.equal(mine, answer))

# %% [markdown]
# ### Exercise 4 · Count the FLOPs
#
# *difficulty 2 of 3 · 6 minutes · 3 points*
#
# Count the FLOPs of a call from the model's sizes alone. A matrix of m × n weights, applied to one position,
# costs `2 * m * n` FLOPs: a multiplication and an addition for each weight. These are the matrices of a
# layer. You need not add them up: your function gets the sum over all layers as `layer_weights`.

# %%
for name, part in model.model.layers[0].named_modules():
    if isinstance(part, torch.nn.Linear):
        print(f"{name:20} {tuple(part.weight.shape)}   (out, in)")
print(f"{'lm_head':20} {tuple(model.lm_head.weight.shape)}   once, after the last layer")

# %% [markdown]
# Attention also has two products without weights: the query of each new position with all keys, and the
# result with all values. All keys are those in the cache and the new ones, masked ones included. Norms,
# softmax, rotary embedding and the lookup of the embedding are no matrix products and do not count.
#
# | argument | meaning |
# |---|---|
# | `sizes` | `dict`: `layer_weights` (weights of all matrices in all layers, already summed), `head_weights` (of `lm_head`), `layers`, `query_heads`, `kv_heads`, `head_dim` |
# | `new`, `context` | new tokens, and tokens already in the cache, of each sequence |
# | `batch` | sequences |
#
# Returns a `dict` of two `int`: `"linear"` (all matrices with weights; `lm_head` on the last position of each
# sequence only) and `"attention"` (the two products without weights).
#
# <details><summary>Hint 1: a nudge</summary>
#
# If several query heads share a key head, each of them still multiplies with it: sharing saves bytes, not
# FLOPs. For one new position, QKᵀ costs 2 × keys × head_dim for each query head, and so does the product with
# the values.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# Each new position meets the weights of all layers, and <code>lm_head</code> comes once a sequence: 2 × batch
# × (new × layer_weights + head_weights). Attention: 4 × layers × pairs × query heads × head_dim.
# </details>

# %% exercise="flops" provides=["count_flops"] difficulty=2 minutes=6
def count_flops(sizes, new, context, batch=1):
    """FLOPs of one forward call: {"linear": int, "attention": int}."""
    pairs = batch * new * (context + new)  # of a query's position and a key's, for each head
    ### BEGIN SOLUTION
    linear = 2 * batch * (new * sizes["layer_weights"] + sizes["head_weights"])
    attention = 4 * sizes["layers"] * pairs * sizes["query_heads"] * sizes["head_dim"]
    ### END SOLUTION
    return {"linear": linear, "attention": attention}

# %% check="flops" points=3
from inferlab.lab import Check
from inferlab.lab.kits.decode.roofline import Sizes, call_cost

check = Check("flops", points=3)
SMALL = {"hidden_size": 256, "intermediate_size": 704, "num_hidden_layers": 8, "num_attention_heads": 8,
         "num_key_value_heads": 2, "head_dim": 32, "vocab_size": 1024}


def ask_flops(entries, new, context, batch):
    """The learner's two counts for a model of these entries of a config."""
    model = Sizes.of(entries)
    told = {"layer_weights": model.layer_weights, "head_weights": model.head_weights,
            "layers": model.num_hidden_layers, "query_heads": model.num_attention_heads,
            "kv_heads": model.num_key_value_heads, "head_dim": model.head_dim}
    got = check.plain(check.learner.count_flops(told, new, context, batch))
    check.true(isinstance(got, dict) and set(got) == {"linear", "attention"},
               'return a dict with the keys "linear" and "attention"')
    check.true(all(isinstance(value, int) for value in got.values()), "both counts are whole numbers")
    return got


with check.part("the matrices of one decode call, bundled model", weight=1):
    got = ask_flops(SMALL, 1, 256, 1)["linear"]
    ### HIDDEN TESTS
    check.equal(got, 11_796_480)
### HIDDEN TESTS
check.score()

# %% [markdown]
# **Reconcile** with torch's own counter, which sees every operation while the model runs. (On a CPU the
# counter does not see fused attention, so this cell switches the model to plain attention.)

# %% tags=["demo"] jupyter={"source_hidden": true}
from torch.utils.flop_counter import FlopCounterMode

matrices = [part.weight for part in model.model.layers.modules() if isinstance(part, torch.nn.Linear)]
sizes = {"layer_weights": sum(weight.numel() for weight in matrices),
         "head_weights": model.lm_head.weight.numel(), "layers": config.num_hidden_layers,
         "query_heads": config.num_attention_heads, "kv_heads": config.num_key_value_heads,
         "head_dim": head_dim}


def library_flops(ids, cache):
    """(in matrices with weights, in attention), as torch counts them."""
    with FlopCounterMode(display=False) as counter:
        model(ids, None, None, cache, logits_to_keep=1)
    counts = {str(op): value for op, value in counter.get_flop_counts()["Global"].items()}
    # addmm: matrices with a bias
    return counts.get("aten.mm", 0) + counts.get("aten.addmm", 0), counts["aten.bmm"]


attention = config._attn_implementation
model.set_attn_implementation("eager")
counted = DynamicCache(config=config)
for what, piece, context in (("prefill", ids, 0), ("decode", ids[:, :1], PROMPT_TOKENS)):
    linear, products = library_flops(piece, counted)
    print(f"{what:8} torch counts  linear {linear:>13,}   attention {products:>11,}")
    with when_written("count_flops"):
        mine = count_flops(sizes, piece.shape[1], context)
        print(f"{'':8} you count     linear {mine['linear']:>13,}   attention {mine['attention']:>11,}")
model.set_attn_implementation(attention)

# %% [markdown]
# The prefill has more than a hundred times the FLOPs of the decode call. It does not take a hundred times as
# long, because arithmetic is not the only thing that takes time. A call **reads every weight once and the
# cache of the earlier tokens once**, and writes the keys and values of the new tokens. For both calls that is
# nearly the same.
#
# ### FLOPs per byte, on this machine's roofline
#
# Three things take time in a call: its arithmetic, its traffic to memory, and *issuing* it. To issue a call
# is to run the model's Python and to start hundreds of operations (on a GPU: to launch *kernels*). Issuing
# takes the same time however little they do. A call that waits for its issuing is called *launch-bound*. The
# call cannot be faster than any of the three: each is a *floor*. The longest floor names the regime.
#
# The next cell measures how many FLOPs this machine does in a second and how many bytes it reads. For
# issuing, it times a decode call of a model with as many layers and almost no width. The *ridge* that it
# prints is FLOP/s over bytes/s: calls with fewer FLOPs per byte wait for memory, calls with more wait for
# arithmetic.

# %%
from inferlab.lab.kits.decode.roofline import (
    Dot, best_seconds, call_cost, measure_device, overhead_seconds, regime, roofline,
)
from inferlab.models.language import random_model

rates = measure_device(lab.device, model.dtype)
overhead = overhead_seconds(config, lab.device, model.dtype)
print(f"{rates.name}: {rates.flops_per_s / 1e9:.0f} GFLOP/s, {rates.bytes_per_s / 1e9:.0f} GB/s, "
      f"ridge at {rates.ridge:.0f} FLOPs per byte")
print(f"issuing one decode call of {config.num_hidden_layers} layers: {overhead * 1e3:.1f} ms")

# %% [markdown]
# The bundled model is small. Beside it stands a wider model with fewer layers and random weights. A call of
# the wide model reads more and starts fewer operations.

# %% jupyter={"source_hidden": true}
from transformers import LlamaConfig

wide = random_model(LlamaConfig(hidden_size=1024, intermediate_size=2816, num_hidden_layers=3,
                                num_attention_heads=8,
                                num_key_value_heads=2, vocab_size=1024), lab.device, model.dtype)


def timed(who, label, group, new, context, batch):
    """One call of a model, counted and timed; the cache is cropped after each repetition."""
    cache = DynamicCache(config=who.config)
    piece = torch.full((batch, new), 5, device=lab.device)
    if context:
        who(torch.full((batch, context), 5, device=lab.device), None, None, cache, logits_to_keep=1)

    def call():
        who(piece, None, None, cache, logits_to_keep=1)
        cache.crop(-new)

    cost = call_cost(who.config, new, context, batch, itemsize=model.dtype.itemsize)
    return Dot(label, cost, best_seconds(call, lab.device, repeats=2), group)


# %% tags=["demo"]
dots = [
    timed(model, "prefill 128", "bundled model", 128, 0, 1),
    timed(model, "decode", "bundled model", 1, 128, 1),
    timed(wide, "prefill 64, wide", "wide model", 64, 0, 1),
    timed(wide, "decode, wide", "wide model", 1, 16, 1),
    timed(wide, "batch 8", "wide model, more sequences", 1, 16, 8),
    timed(wide, "batch 48", "wide model, more sequences", 1, 16, 48),
]
print(f"{'':17} FLOPs/byte  measured   issue    read  compute   largest floor   (ms)")
for dot in dots:
    issue = overhead * (wide.config.num_hidden_layers / config.num_hidden_layers if "wide" in dot.group
                        else 1)
    name, floors = regime(dot.cost, rates, issue)
    times = "".join(f"{seconds * 1e3:8.2f}" for seconds in floors.values())
    print(f"{dot.label:17} {dot.cost.intensity:10.1f}  {dot.seconds * 1e3:8.2f}{times}   {name}")

# %% tags=["demo"]
roofline(rates, dots, title="FLOPs per byte: prefill and decode differ by about the number of tokens",
         arrows=[("decode, wide", "batch 8"), ("batch 8", "batch 48")])

# %% [markdown]
# The diagram is a *roofline*: its line is the best speed that this machine can reach at a given number of
# FLOPs per byte. There are three regimes, and each needs another remedy:
#
# * **launch-bound**: far below the roof, and hardly slower with more work. A decode call of a small model may
#   spend most of its time in issuing, and so may that of a large model on a fast GPU. On a CPU, issuing is
#   Python and torch's dispatcher. Issuing less helps.
# * **memory-bound**: on the slope. All weights are read for one token. Reading less helps (fewer bits), and
#   so does sharing one reading among more tokens (a batch).
# * **compute-bound**: under the flat roof. A long prefill is there, and decode with a large batch of short
#   contexts. Only a faster device or less to compute helps.
#
# Which of these you see for the bundled model depends on your machine; the counts do not. "Decode is
# memory-bound" is often true of a large model at batch 1, and not always. Compare the measured time with the
# floors before you act on it.

# %% [markdown]
# ### Exercise 5 · The same answer, at another price
#
# *difficulty 2 of 3 · 7 minutes · 3 points*
#
# Two services answer the same prompt with the same tokens. One of them wastes work in one of four ways. The
# way and the length of the prompt depend on your name.
#
# | fault | what the service does |
# |---|---|
# | `"no cache"` | feeds the whole sequence again for every token |
# | `"all logits"` | has the logits of every position computed |
# | `"padding"` | pads the prompt |
# | `"chunks"` | cuts the prompt into pieces |

# %%
v = lab.variant(16)
short, few = (38, 45, 51, 58)[v // 4], (9, 11, 13, 14)[v // 4]
with trace(model) as healthy:
    good_tokens, _ = generate(ids[:, :short], few)
with trace(model) as suspect:
    slow_tokens = slow_generate(model, ids[:, :short], few, FAULTS[v % 4])
print(f"prompt of {short} tokens, {few} new; the same tokens: {torch.equal(good_tokens, slow_tokens)}")

# %% [markdown]
# `calls_of(trace)` lists a run's calls, each with `.number` (from 1), `.batch`, `.new` (tokens that went in),
# `.context` (tokens in the cache before it) and `.head` (positions that went through `lm_head`). The whole
# tables are `healthy.table(level=0)` and `suspect.table(level=0)`.
#
# Complete `diagnose()`, which returns a `dict`:
#
# | key | meaning |
# |---|---|
# | `"fault"` | one of the four names |
# | `"positions"` | token positions that went through the layers in all calls of `suspect`, `int` |
#
# The code finds the first pair of calls that differs. Your lines may compute the fault from `good` and `bad`,
# and the positions from `calls_of(suspect)`; or they may return two constants that you found there.
#
# <details><summary>Hint 1: a nudge</summary>
# Print <code>[(c.new, c.context, c.head) for c in calls_of(suspect)]</code>, and the same for
# <code>healthy</code>. Times would mislead you; counts do not.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# If the first pair comes after call 1, the fault is <code>"no cache"</code>. If it is call 1: a head of more
# than one position is <code>"all logits"</code>, more tokens than in the healthy run are
# <code>"padding"</code>, fewer are <code>"chunks"</code>. The positions are the sum of <code>.new</code> over
# all calls of <code>suspect</code>.
# </details>

# %% exercise="diagnosis" provides=["diagnose"] difficulty=2 minutes=7
def diagnose():
    """What `suspect` wastes, and how many positions it computed."""
    good, bad = next((a, b) for a, b in zip(calls_of(healthy), calls_of(suspect))
                     if (a.new, a.context, a.head) != (b.new, b.context, b.head))
    ### BEGIN SOLUTION
    fault = ("no cache" if bad.number > 1 else "all logits" if bad.head > 1
             else "padding" if bad.new > good.new else "chunks")
    positions = sum(call.new for call in calls_of(suspect))
    ### END SOLUTION
    return {"fault": fault, "positions": positions}

# %% check="diagnosis" points=3
from inferlab.lab import Check

check = Check("diagnosis", points=3)


def diagnosis():
    """The learner's diagnosis, once it has its two keys."""
    got = check.plain(check.learner.diagnose())
    check.true(isinstance(got, dict) and set(got) == {"fault", "positions"},
               "return a dict with the keys fault and positions")
    check.true(got["fault"] in ("no cache", "all logits", "padding", "chunks"),
               f"{got['fault']!r} is none of the four faults")
    check.true(isinstance(got["positions"], int), "positions is a whole number")
    return got


with check.part("a fault and a count (graded when you hand it in)", weight=0):
    diagnosis()
### HIDDEN TESTS
check.score()

# %% [markdown]
# None of the four changes a token, so no test of the answers would find them. "Chunks" are no waste if the
# decode calls of other requests run in between.

# %% [markdown]
# ## 6 · Explain
#
# *difficulty 2 of 3 · 7 minutes · 4 points: 1 for the typed line, 3 for the sentences*

# %% [markdown]
# Explain the run of section 3 (a prompt of 128 tokens, 24 new ones) to a colleague who says that decode is
# a small prefill. In the fields `state`, `axis` and `trade-off` you write short sentences, one a line, from
# the tables below: an entry of `who`, a verb, an entry of its row and, if you like, entries of a row `may
# follow`. An example: `the batch axis has length 1 in the last call`. In `state`, say what a decode call
# finds and what it need not compute. In `axis`, say how many tokens go into each call and how many are in the
# cache. In `trade-off`, say what is gained and what is paid when more sequences share a decode call. In
# `readings` you type how often the weights are read after the first token is there.
#
# Lines that begin with `#` are notes of your own.

# %% jupyter={"source_hidden": true}
### FIXTURE words
words

# %% [markdown]
# When you run the next cell, it shows how it reads each line. That reading is graded when you hand in.
# One false sentence in a field costs the field's point, so write only what you know. A line that the cell
# cannot read is judged by a person.

# %% explain="two-phases" difficulty=2 minutes=7
%%explain two-phases
# ### BEGIN SOLUTION
# state: a decode call reads the keys and values of all earlier tokens from the cache
#   a decode call computes the new token only
# axis: the token axis of input_ids has length 128 in the first call and has length 1 in each later call
#   the cache goes from 128 to 151 during decode
# trade-off: a larger batch raises the throughput, the latency of each token and the memory for the caches
# readings: 23
# ### END SOLUTION

# %% check="phases-counts" of="two-phases" points=1
from inferlab.lab import Check, reference

check = Check("phases-counts", points=1)
with check.part("`readings:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("two-phases").get("readings"), "`readings:` is empty")
### HIDDEN TESTS
check.score()

# %% check="phases-state" of="two-phases" points=1
from inferlab.lab import Check

check = Check("phases-state", points=1)
with check.part("`state:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("two-phases").get("state"), "`state:` is empty")
### HIDDEN TESTS
check.score()

# %% check="phases-axis" of="two-phases" points=1
from inferlab.lab import Check, reference

check = Check("phases-axis", points=1)
with check.part("`axis:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("two-phases").get("axis"), "`axis:` is empty")
### HIDDEN TESTS
check.score()

# %% check="phases-trade-off" of="two-phases" points=1
from inferlab.lab import Check

check = Check("phases-trade-off", points=1)
with check.part("`trade-off:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("two-phases").get("trade-off"), "`trade-off:` is empty")
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7 · Notice
#
# * **Decode is not a small prefill.** It reads the same weights for one token that prefill reads for all of
#   them. With the FLOPs per byte the regime changes, and so does the remedy.
# * **Most of the tokens may take the smaller part of the time.** Prefill reads the weights once for the whole
#   prompt; an answer of n tokens reads them n - 1 more times.
# * **n tokens are n calls and P + n - 1 positions.** The last token is returned, never fed.
# * **Three regimes, not two.** A decode call may wait for its own launches. Then fewer bits do not help, and
#   a larger batch is nearly free.
#
# Say it aloud, as in an interview: name the state object, the axis that grows, and the trade-off.

# %% [markdown]
# ## 8 · If you have more time
#
# The stated time does not count this section, and nothing that is graded needs it. It shows how a decode call
# gets out of the launch-bound regime.
#
# A **static cache** reserves all its memory at the start, so no shape and no address changes from step to
# step. That makes a **CUDA graph** possible: it records one step with all its kernels and replays them with a
# single launch, without Python. What is left is the device's own work. The next cell compares it with its
# floor: the bytes of a step over the bytes per second measured above.

# %% tags=["demo"]
from inferlab.lab.kits.decode.launches import RECORDED, decode_steps


def beside_the_floor(steps, least):
    for name, seconds in steps.items():
        print(f"{name:26} {seconds * 1e3:8.2f} ms a step, {seconds / least:6.1f} times the floor of "
              f"{least * 1e3:.2f} ms")


steps = decode_steps(model, PROMPT_TOKENS)
print(rates.name)
beside_the_floor(steps, call_cost(config, 1, PROMPT_TOKENS,
                                  itemsize=model.dtype.itemsize).bytes / rates.bytes_per_s)
if "CUDA graph, static cache" not in steps:
    print("\nNo graph: CUDA graphs are for GPUs. What a CPU spends on issuing a call is Python and torch's "
          "dispatcher, and a static cache alone saves none of it.")
    print(f"Recorded on one {RECORDED['card']} ({RECORDED['model']}; run {RECORDED['run']} of the "
          "handbook's GPU numbers):")
    beside_the_floor(RECORDED["steps"], RECORDED["floor"])

# %% [markdown]
# In the handbook's run on a GPU, the same kernels with the same bytes took a sixth of the time once a graph
# launched them together. Only then was the step memory-bound, and only then would fewer bits have helped.

# %% [markdown]
# ## 9 · Check and hand in
#
# Run this cell last. It runs the visible checks again, says what is missing, and leaves one file to hand in.

# %% tags=["demo"]
from inferlab.lab import submit

submit()
