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
# A language model answers in two phases that share all of their weights and almost none of their costs. In this lab you
# predict the calls of a real `generate`, watch them, write the loop yourself, and count what each call computes and reads,
# until you can say which of three things a call is waiting for: launches, memory, or arithmetic.
#
# **Time** about 70 minutes · **Points** 25, of which 7 are practice · **Reading** [Prefill and decode](../../handbook/lab12-prefill-decode.md) in the handbook, before you start

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
# It speaks about colored shapes and what happens to them. A story, a question, and its answer:

# %%
from inferlab.models.stories import documents, questions

story, turn = questions(1, seed=SEED, kind="story")[0]
question = tokenizer(story.prompt(turn), return_tensors="pt").to(lab.device)
answer = model.generate(**question, max_new_tokens=24, do_sample=False, **cache_argument(DynamicCache(config=config)))
print(turn.request)
print(tokenizer.decode(answer[0, question.input_ids.shape[1]:], skip_special_tokens=True))

# %% [markdown]
# ## 1 · Goal and mental model
#
# After this lab you can say what a prefill call and a decode call read, compute and return, count both from shapes alone,
# and place each on the roofline of the machine in front of you.
#
# | | **prefill** | **decode** |
# |---|---|---|
# | tokens that go in | the whole prompt, once | one for each sequence, again and again |
# | what it reads | every weight once | every weight once, **and the cache** |
# | what it leaves | keys and values of the prompt | keys and values of one more token |
# | what the user calls it | time to first token (TTFT) | inter-token latency (ITL) |
#
# ```
# logits, cache = model(prompt)            prefill: P tokens, one call
# token = argmax(logits[:, -1])
# while not done:
#     logits, cache = model(token, cache)  decode: 1 token, one call, all weights again
#     token = argmax(logits[:, -1])
# ```
#
# One number tells the phases apart, the **FLOPs per byte** of a call. A weight that is read is used once for each token of the
# call, at two FLOPs a time. With many tokens the arithmetic is the work, as in a training step
# on a large batch. With one token, fetching the weights is.

# %% [markdown]
# ## 2 · Predict
#
# Below you will trace this run: greedy decoding, one prompt.

# %%
PROMPT_TOKENS, NEW = 128, 24
print(f"prompt {PROMPT_TOKENS} tokens, {NEW} new ones;", f"{config.num_hidden_layers} layers,",
      f"{config.num_attention_heads} query heads, {config.num_key_value_heads} key/value heads of {head_dim},",
      f"vocabulary {config.vocab_size}")

# %% [markdown]
# ### Exercise 1 · The calls of a generate
#
# *difficulty 2 of 3 · 6 minutes · 3 points*
#
# **Before you run anything**, write a function that says what the trace will show. It is graded on runs that this notebook never
# makes, among them three prompts at once.
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
# | `"first"`, `"later"` | shape of `input_ids` in the first call and in each later one |
# | `"logits"` | shape of the logits that the **first** call returns |
# | `"keys"` | shape of one layer's keys in the cache when `generate` has returned |
# | `"positions"` | token positions that went through the layers in all calls together, `int` |
#
# Shapes are tuples of `int`. A cached key tensor has the axes (batch, heads, tokens, head_dim).
#
# <details><summary>Hint</summary>
#
# Each call makes one token for each sequence. Which tokens are ever fed to the model? The last one that you get is not. And of all the
# prompt's positions, how many are needed to choose the next token?
# </details>

# %% exercise="forecast" provides=["forecast"] difficulty=2 minutes=6
def forecast(prompt, new, batch=1, kv_heads=2, head_dim=32, vocab=1024):
    """What a traced greedy `generate` shows: its calls, their shapes, and the cache that it leaves."""
    ### BEGIN SOLUTION
    fed = prompt + new - 1  # the last token is returned, never fed back
    return {
        "calls": new,
        "first": (batch, prompt),
        "later": (batch, 1),
        "logits": (batch, 1, vocab),
        "keys": (batch, kv_heads, fed, head_dim),
        "positions": batch * fed,
    }
    ### END SOLUTION

# %% check="forecast" points=3
from inferlab.lab import Check, reference

check = Check("forecast", points=3)


def ask_forecast(**run):
    """The learner's forecast of a run, once it has the form that the contract asks for."""
    got = check.learner.forecast(**run)
    keys = {"calls", "first", "later", "logits", "keys", "positions"}
    check.true(isinstance(got, dict) and set(got) == keys, "return a dict with exactly the six keys of the contract")
    check.true(all(isinstance(got[key], tuple) for key in ("first", "later", "logits", "keys")), "each shape is a tuple, such as (1, 2, 3)")
    check.true(all(isinstance(got[key], int) for key in ("calls", "positions")), "calls and positions are whole numbers")
    return got


with check.part("what goes in: the prompt once, then one token a call", weight=1):
    got = ask_forecast(prompt=128, new=24)
    check.equal([got["first"], got["later"]], [(1, 128), (1, 1)])
### BEGIN HIDDEN TESTS
@reference
def traced_generate(prompt, new, batch):
    """The truth: a real run of the bundled model, traced."""
    import torch
    from inferlab.models import cache_argument, load_language_model
    from inferlab.trace import trace
    from transformers import DynamicCache

    model, _ = load_language_model("bundled", "cpu")
    cache, ids = DynamicCache(config=model.config), torch.arange(10, 10 + prompt).repeat(batch, 1)
    with torch.no_grad(), trace(model) as run:
        model.generate(ids, attention_mask=torch.ones_like(ids), min_new_tokens=new, max_new_tokens=new, do_sample=False,
                       **cache_argument(cache))
    calls = run["LlamaForCausalLM"]
    shapes = [tuple(call.inputs["input_ids"].shape) for call in calls]
    return {"calls": len(shapes), "first": shapes[0], "later": shapes[1],
            "logits": tuple(calls[0].outputs["logits"].shape), "keys": tuple(cache.layers[0].keys.shape),
            "positions": sum(rows * tokens for rows, tokens in shapes)}


with check.part("how many calls", weight=1):
    want, got = traced_generate(7, 5, 1), ask_forecast(prompt=7, new=5)
    check.mistake("the last token is returned, not fed back: n tokens need n calls", when=got["calls"] == 6)
    check.mistake("one call makes one token: a long answer is not one pass", when=got["calls"] == 1)
    check.mistake("the prompt goes in at once: its tokens are no calls", when=got["calls"] >= 7)
    check.equal(got["calls"], want["calls"])
with check.part("the logits of the first call", weight=1):
    want, got = traced_generate(7, 5, 3), ask_forecast(prompt=7, new=5, batch=3)
    check.mistake("only the last position chooses the next token: generate asks for its logits alone", when=got["logits"] == (3, 7, 1024))
    check.equal(got["logits"], want["logits"])
with check.part("the cache that is left", weight=2):
    want, got = traced_generate(9, 4, 3), ask_forecast(prompt=9, new=4, batch=3)
    check.mistake("the last token was never fed to the model, so nothing of it is in the cache", when=got["keys"] == (3, 2, 13, 32))
    check.mistake("only the key/value heads are cached; the query heads share them", when=got["keys"] == (3, 8, 12, 32))
    check.equal(got["keys"], want["keys"])
    check.equal(ask_forecast(prompt=9, new=4, batch=3, kv_heads=8, head_dim=64)["keys"], (3, 8, 12, 64))
with check.part("the positions computed in all", weight=1):
    want, got = traced_generate(9, 4, 3), ask_forecast(prompt=9, new=4, batch=3)
    check.mistake("with a cache no position is computed twice", when=got["positions"] == 3 * (9 + 10 + 11 + 12))
    check.mistake("the last token was returned and not computed", when=got["positions"] == 3 * 13)
    check.equal(got["positions"], want["positions"])
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 3 · Trace
#
# Now the real run. The cache is an object of our own, handed in and changed in place, so that it is still there afterwards.

# %%
text = " ".join(one.context for one in documents(2, seed=SEED, kind="story"))
ids = tokenizer(text, return_tensors="pt").input_ids[:, :PROMPT_TOKENS].to(lab.device)


def generate(ids, new):
    """Exactly `new` greedy tokens after `ids`; the tokens, and the cache as generate left it."""
    cache = DynamicCache(config=config)
    tokens = model.generate(ids, attention_mask=torch.ones_like(ids), min_new_tokens=new, max_new_tokens=new,
                            do_sample=False, **cache_argument(cache))
    return tokens, cache


from inferlab.lab.lmcalls import FAULTS, calls_of, slow_generate

generate(ids[:, :4], 2)  # the first call of a process sets things up; it is not what we want to look at
with trace(model) as run:
    tokens, cache = generate(ids, NEW)

# %% tags=["demo"]
run.table(level=1)

# %% [markdown]
# Stop at three places:
#
# * **step 1** takes `(1, 128)`, every later step `(1, 1)`. Same model, same method, same weights. That is all there is to the
#   two phases: nothing in the library is called prefill at this boundary, only the shapes differ;
# * **the logits** are `(1, 1, vocabulary)` in step 1, too. `generate` asks for the last position alone (`logits_to_keep=1`). The
#   other positions of the prompt fill the cache, and nobody looks at what they predict;
# * **the times**. The first call did 128 times the tokens of the others. Did it take 128 times as long?

# %% tags=["demo"]
from inferlab.lab import when_written

calls = calls_of(run)
print(f"calls {len(calls)}, positions {sum(c.batch * c.new for c in calls)}, keys {tuple(cache.layers[0].keys.shape)}")
print(f"first call {calls[0].ms:.1f} ms, later calls {sum(c.ms for c in calls[1:]) / (NEW - 1):.1f} ms on average")
with when_written("forecast"):
    print("your forecast:", forecast(PROMPT_TOKENS, NEW, 1, config.num_key_value_heads, head_dim, config.vocab_size))

# %% [markdown]
# **Reconcile.** Where the two differ, the trace is right: find out why before you change the function.
#
# ### One block opened up
#
# What does a layer do with those tokens? The same two kinds of call, with the parts of layer 0 recorded:

# %% tags=["demo"]
with trace(model, depth="model.layers.0.*") as opened:
    generate(ids, 2)
opened.table()

# %% [markdown]
# Norm, attention, norm, MLP, and every shape between them is `(1, tokens, width)`: **the token axis goes through the whole block
# untouched**. Only `cache.update` is different. In step 2 one key goes in, and all 129 come out: it is the only place where
# a decode call meets the tokens before it. Everything else works on the new token alone.
#
# And between those parts there is one thing that no call shows, the **residual**. The block put together again by hand:

# %% tags=["demo"]
block, x = model.model.layers[0], model.model.embed_tokens(ids)
where = model.model.rotary_emb(x, torch.arange(ids.shape[1], device=lab.device)[None])
h = x + block.self_attn(block.input_layernorm(x), where)[0]
by_hand = h + block.mlp(block.post_attention_layernorm(h))
print("equal to the layer's own output:", torch.equal(by_hand, block(x, position_embeddings=where)))

# %% [markdown]
# Each half *adds* to the state that came in and never replaces it: gradients reach the early layers through the plain sum, so that training
# a deep stack stays stable, and a layer has to learn only what it contributes.

# %% [markdown]
# ## 4 · Read
#
# The block as it is installed on this machine. Look for what is missing: there is no word about prefill or decode in it.

# %% jupyter={"source_hidden": true}
from inferlab.lab import show_source
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

show_source(
    LlamaDecoderLayer.forward,
    {
        "hidden_states = self.input_layernorm(hidden_states)":
            "Norm: position by position, no matrix. It hardly counts.",
        "hidden_states, _ = self.self_attn(":
            "Attention: four matrices (q, k, v, o), and the only part in which positions meet.",
        "cache=cache,":
            "The cache goes in and does not come out: self_attn appends to the object in place.",
        "hidden_states = self.post_attention_layernorm(hidden_states)":
            "The second norm. Around both halves, the residual: what a half computes is added to what came in.",
        "hidden_states = self.mlp(hidden_states)":
            "Three matrices (gate, up, down), most of the layer's weights. 128 tokens or 1, it reads the same ones.",
    },
    excerpts=[("hidden_states = self.input_layernorm(hidden_states)", "hidden_states = self.mlp(hidden_states)")],
    checked="5.24.0",
)

# %% [markdown]
# And this is the loop around it, out of `generate`. Here the two phases have names.

# %% jupyter={"source_hidden": true}
from transformers import GenerationMixin

show_source(
    GenerationMixin._sample,
    {
        "outputs = self._prefill(":
            "The first call, before the loop: the prompt in one piece (or in chunks, where prefill_chunk_size is set).",
        "next_sequence_length = 1 if model_kwargs":
            "Decode: one token a sequence, if there is a cache. Without one, None means: everything again.",
        "outputs = model_forward(**model_inputs, return_dict=True)":
            "One token, one call. On CUDA this may be a compiled version of the model.",
        "next_token_logits = outputs.logits[:, -1]":
            "Only the last position is looked at, so only the last is asked for.",
        "next_tokens = torch.argmax(":
            "Greedy decoding is this line.",
        "input_ids = torch.cat([input_ids, next_tokens[:, None]], dim=-1)":
            "The answer grows here. The token that is appended last is never fed back.",
    },
    excerpts=[
        ("prefill_consumed = False", "is_first_iteration=not generation_config.is_assistant,"),
        ("while self._has_unfinished_sequences(", "prefill_consumed = True"),
        ("next_token_logits = outputs.logits[:, -1]", "next_token_scores = logits_processor("),
        ("next_tokens = torch.argmax(", "input_ids = torch.cat([input_ids, next_tokens[:, None]], dim=-1)"),
    ],
    checked="5.24.0",
)

# %% [markdown]
# ## 5 · Build
#
# Three short pieces first (practice, 7 points), then the counting.
#
# ### Exercise 2 · Greedy decoding by hand
#
# *difficulty 2 of 3 · 8 minutes · 3 points*
#
# Write the loop as a function of one callable. It must not know any model.
#
# | argument | what it is |
# |---|---|
# | `forward(ids, state)` | one call of a model: `ids` is `(1, T)` int64, returns `(logits, state)`; `logits` is `(1, T', V)` with the last position at the end. `state` stands for the cache: `None` before the first call, then what the call before returned |
# | `prompt` | `(1, P)` int64 |
# | `n` | the most tokens to generate, at least 1 |
# | `eos` | the token after which to stop, `int`; it belongs to the answer |
#
# Returns prompt and answer, `(1, P + m)` int64 with m ≤ n. Feed every token once, and nothing whose prediction you do not need.
#
# <details><summary>Hint</summary>
#
# Keep two tensors apart: all tokens so far, which you return, and the tokens that go into the next call. To stop, look at the
# token <i>before</i> you would feed it.
# </details>

# %% exercise="greedy" provides=["greedy"] difficulty=2 minutes=8
def greedy(forward, prompt, n, eos):
    """Prompt and up to `n` greedy tokens, (1, P + m) int64; stops after `eos`."""
    ### BEGIN SOLUTION
    tokens, feed, state = prompt, prompt, None
    for _ in range(n):
        logits, state = forward(feed, state)
        feed = logits[:, -1:].argmax(-1)
        tokens = torch.cat([tokens, feed], dim=1)
        if int(feed) == eos:
            break
    return tokens
    ### END SOLUTION

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
    check.true(ids.ndim == 2 and len(ids) == 1 and ids.shape[1], f"forward wants ids of shape (1, T), and got {tuple(ids.shape)}")
    check.true(state is None or isinstance(state, torch.Tensor), "state is None, or what the call before returned")
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
    ### BEGIN HIDDEN TESTS
    check.mistake("the first position's logits were used: the next token is predicted at the last one",
                  when=got.shape[1] > 5 and int(got[0, 5]) == int(scores(prompt_card)[0, 0].argmax()))
    check.mistake("the prompt is missing from what you return", when=got.shape[1] == 6)
    ### END HIDDEN TESTS
    check.equal(got, right(6))
### BEGIN HIDDEN TESTS
with check.part("the prompt once, then one token a call", weight=2):
    run_greedy(6)
    sizes = [part.shape[1] for part, _ in fed]
    check.mistake("the whole sequence was fed again: what the state holds must not be fed twice", when=sizes[1:2] == [6])
    check.mistake("the prompt went in token by token: that is decode's price for prefill's work", when=sizes[:5] == [1] * 5)
    check.true(sizes[:1] == [5] and set(sizes[1:]) == {1}, f"the calls got {sizes} tokens")
with check.part("each call gets the state of the call before", weight=2):
    run_greedy(6)
    held = [before for _, before in fed]
    check.mistake("the state was dropped: the model forgets the prompt after its first call", when=held[1:2] == [0])
    check.equal(held[:6], [0, 5, 6, 7, 8, 9])
with check.part("as many calls as tokens", weight=1):
    for n in (1, 6):
        run_greedy(n)
        check.mistake("the last token was fed, and nobody needs what comes after it", when=len(fed) == n + 1)
        check.equal(len(fed), n)
with check.part("stops after the end token, and keeps it", weight=2):
    want = right(9)
    eos = int(want[0, 5 + 3])  # the fourth new token, if it is the first of its kind
    stop = 5 + [int(token) for token in want[0, 5:]].index(eos) + 1
    got = run_greedy(9, eos)
    check.mistake("the end token belongs to the answer", when=got.shape[1] == stop - 1)
    check.mistake("decoding went on after the end token", when=got.shape[1] > stop)
    check.equal(got, want[:, :stop])
    check.true(len(fed) == stop - 5, "after the end token nothing is fed")
### END HIDDEN TESTS
check.score()

# %% [markdown]
# Now hand your loop the real model. Seven tokens or seventy, every call is the very call that `generate` makes, so the
# tokens are the same and so is the cache, bit for bit.

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
# ### Exercise 3 · What a user waits for
#
# *difficulty 1 of 3 · 5 minutes · 2 points*
#
# A service logs when a request came in and when each token of its answer was ready. Write `latencies(start, ends)`.
#
# | argument | meaning |
# |---|---|
# | `start` | `float`, seconds on some clock |
# | `ends` | `list` of `float`, seconds on the same clock, one for each token in order, at least one |
#
# Returns a `dict`: `"ttft"`, time to first token, `float`; `"itl"`, the inter-token latencies, a `list` of `float`; `"mean_itl"`,
# their mean, or `None` if there is none. All in seconds.
#
# <details><summary>Hint</summary>
#
# An inter-token latency is a gap between two tokens. How many gaps do five tokens have? The wait before the first token is no gap.
# </details>

# %% exercise="latencies" provides=["latencies"] difficulty=1 minutes=5
def latencies(start, ends):
    """TTFT, all inter-token latencies and their mean, in seconds."""
    ### BEGIN SOLUTION
    itl = [after - before for before, after in zip(ends, ends[1:])]
    return {"ttft": ends[0] - start, "itl": itl, "mean_itl": sum(itl) / len(itl) if itl else None}
    ### END SOLUTION

# %% check="latencies" points=2
from inferlab.lab import Check, close

check = Check("latencies", points=2)


def ask_latencies(begin, stamps):
    """The learner's answer, once it has its three keys."""
    got = check.learner.latencies(begin, list(stamps))
    check.true(isinstance(got, dict) and set(got) == {"ttft", "itl", "mean_itl"}, "return a dict with the keys ttft, itl, mean_itl")
    check.true(isinstance(got["ttft"], int | float) and isinstance(got["itl"], list), "ttft is a number and itl a list")
    return got


with check.part("three tokens, from zero", weight=1):
    got = ask_latencies(0.0, [0.5, 0.6, 0.8])
    check.close(got["itl"], [0.1, 0.2])
### BEGIN HIDDEN TESTS
stamps = [101.25, 101.5, 101.875, 102.0, 102.125]
with check.part("time to first token", weight=1):
    got = ask_latencies(100.0, stamps)["ttft"]
    check.mistake("this is the time on the clock; the request came in at `start`", when=close(got, 101.25))
    check.mistake("the first token is there when the first call ends: prefill makes it", when=close(got, 1.5))
    check.close(got, 1.25)
with check.part("the mean inter-token latency", weight=1):
    got = ask_latencies(100.0, stamps)["mean_itl"]
    check.mistake("the wait for the first token is prefill's, and does not belong to the gaps", when=close(got, 2.125 / 5))
    check.mistake("five tokens have four gaps", when=close(got, 0.875 / 5))
    check.true(isinstance(got, int | float), "mean_itl is a number here")
    check.close(got, 0.875 / 4)
with check.part("an answer of one token", weight=1):
    got = ask_latencies(7.0, [7.75])
    check.true(got["itl"] == [] and got["mean_itl"] is None, "one token has no gap: itl is empty and mean_itl is None")
    check.close(got["ttft"], 0.75)
### END HIDDEN TESTS
check.score()

# %% tags=["demo"]
with when_written("latencies"):
    ends = [(call.end_ns - run.started) / 1e9 for call in run[type(model).__name__]]
    seen = latencies(0.0, ends)
    print(f"TTFT {seen['ttft'] * 1e3:.1f} ms, mean ITL {seen['mean_itl'] * 1e3:.1f} ms;",
          f"the prompt is {PROMPT_TOKENS / (PROMPT_TOKENS + NEW):.0%} of the tokens and {ends[0] / ends[-1]:.0%} of the time")

# %% [markdown]
# The times are this machine's, and not graded. But look at the last two numbers: most of the tokens were the prompt's, and they took the
# smaller part of the time. **The prompt does not dominate a long answer.** Why one token costs so much more in decode is what you count next.
#
# ### Exercise 4 · Which of three floors?
#
# *difficulty 1 of 3 · 5 minutes · 2 points*
#
# A call can be no faster than each of three things: its arithmetic, its traffic to memory, and the time that it takes to *issue* the call at
# all (the Python of the model and the start of hundreds of kernels, which costs the same however little they do). The largest one names the regime.
#
# | argument | meaning |
# |---|---|
# | `flops`, `nbytes` | of the call, `int` |
# | `overhead` | seconds to issue the call |
# | `flop_rate`, `byte_rate` | what the device can do, in FLOP/s and bytes/s |
#
# Returns `(name, seconds)`: `"launch-bound"`, `"memory-bound"` or `"compute-bound"`, and the least time that the call can take, where
# the three overlap perfectly.
#
# <details><summary>Hint</summary>
#
# Three times, each in seconds. If they overlap, the call takes as long as the slowest of them.
# </details>

# %% exercise="regime" provides=["regime"] difficulty=1 minutes=5
def regime(flops, nbytes, overhead, flop_rate, byte_rate):
    """The name of the largest of three lower bounds, and that bound in seconds."""
    ### BEGIN SOLUTION
    floors = {"launch-bound": overhead, "memory-bound": nbytes / byte_rate, "compute-bound": flops / flop_rate}
    name = max(floors, key=floors.get)
    return name, floors[name]
    ### END SOLUTION

# %% check="regime" points=2
from inferlab.lab import Check, close

check = Check("regime", points=2)


def ask_regime(*call):
    """The learner's (name, seconds)."""
    got = check.learner.regime(*call)
    check.true(isinstance(got, tuple) and len(got) == 2, "return a tuple (name, seconds)")
    check.true(got[0] in ("launch-bound", "memory-bound", "compute-bound"), f"there is no regime {got[0]!r}")
    check.true(isinstance(got[1], int | float), "the second entry is a number of seconds")
    return got


FLOP_RATE, BYTE_RATE = 4e14, 2e12  # a large GPU, in round numbers
with check.part("a long prefill", weight=1):
    check.equal(ask_regime(8 * 10**13, 2 * 10**10, 0.005, FLOP_RATE, BYTE_RATE)[0], "compute-bound")
### BEGIN HIDDEN TESTS
with check.part("a decode call of a large model", weight=1):
    name, seconds = ask_regime(16 * 10**9, 16 * 10**9, 0.005, FLOP_RATE, BYTE_RATE)
    check.mistake("as many FLOPs as bytes, but this device does 200 FLOPs in the time of one byte", when=name == "compute-bound")
    check.mistake("the smallest of three lower bounds holds nobody up", when=close(seconds, 4e-5))
    check.mistake("what overlaps does not add up: the slowest counts", when=close(seconds, 0.01304))
    check.equal(name, "memory-bound")
    check.close(seconds, 0.008)
with check.part("the same call, issued slowly", weight=1):
    name, seconds = ask_regime(16 * 10**9, 16 * 10**9, 0.033, FLOP_RATE, BYTE_RATE)
    check.mistake("decode is not memory-bound by definition: here issuing the call takes longer than reading", when=name == "memory-bound")
    check.equal(name, "launch-bound")
    check.close(seconds, 0.033)
with check.part("a batch that crosses the ridge", weight=1):
    got = [ask_regime(rows * 16 * 10**9, 16 * 10**9 + rows * 10**7, 0.005, FLOP_RATE, BYTE_RATE)[0] for rows in (64, 512)]
    check.equal(got, ["memory-bound", "compute-bound"])
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 5 · Count the FLOPs
#
# *difficulty 2 of 3 · 10 minutes · 3 points*
#
# From the config alone. A matrix of m × n weights applied to one position costs `2 * m * n` FLOPs: a multiplication and an addition for
# each weight. These are the matrices of a layer:

# %%
for name, part in model.model.layers[0].named_modules():
    if isinstance(part, torch.nn.Linear):
        print(f"{name:20} {tuple(part.weight.shape)}   (out, in)")
print(f"{'lm_head':20} {tuple(model.lm_head.weight.shape)}   once, after the last layer")

# %% [markdown]
# Attention has products without weights: every new position's query against all keys (those in the cache and the new ones, the masked
# ones included), and the result against all values. Norms, softmax, rotary embedding and the lookup of the embedding are no
# matrix products and do not count.
#
# | argument | meaning |
# |---|---|
# | `sizes` | `dict` with `hidden_size`, `intermediate_size`, `num_hidden_layers`, `num_attention_heads`, `num_key_value_heads`, `head_dim`, `vocab_size` |
# | `new`, `context` | new tokens, and tokens already in the cache, of each sequence |
# | `batch` | sequences |
#
# Returns a `dict` of two `int`: `"linear"` (all matrices with weights; `lm_head` on the last position of each sequence only) and
# `"attention"` (the two products without weights).
#
# <details><summary>Hint</summary>
#
# Query heads that share a key head still multiply with it one by one: sharing saves bytes, not attention FLOPs. For one new
# position, QKᵀ costs 2 × keys × head_dim for each query head, and so does the product with the values.
# </details>

# %% exercise="flops" provides=["count_flops"] difficulty=2 minutes=10
def count_flops(sizes, new, context, batch=1):
    """FLOPs of one forward call: {"linear": int, "attention": int}."""
    ### BEGIN SOLUTION
    width, inner = sizes["hidden_size"], sizes["intermediate_size"]
    queries = sizes["num_attention_heads"] * sizes["head_dim"]
    keys = sizes["num_key_value_heads"] * sizes["head_dim"]
    layers = sizes["num_hidden_layers"]
    layer = 2 * width * queries + 2 * width * keys + 3 * width * inner
    return {
        "linear": 2 * batch * (new * layers * layer + width * sizes["vocab_size"]),
        "attention": 2 * 2 * layers * batch * new * (context + new) * queries,
    }
    ### END SOLUTION

# %% check="flops" points=3
from inferlab.lab import Check
from inferlab.lab.roofline import call_cost

check = Check("flops", points=3)
SMALL = {"hidden_size": 256, "intermediate_size": 704, "num_hidden_layers": 8, "num_attention_heads": 8,
         "num_key_value_heads": 2, "head_dim": 32, "vocab_size": 1024}


def ask_flops(sizes, new, context, batch):
    """The learner's two counts."""
    got = check.learner.count_flops(dict(sizes), new, context, batch)
    check.true(isinstance(got, dict) and set(got) == {"linear", "attention"}, 'return a dict with the keys "linear" and "attention"')
    check.true(all(isinstance(value, int) for value in got.values()), "both counts are whole numbers")
    return got


with check.part("the matrices of one decode call, bundled model", weight=1):
    got = ask_flops(SMALL, 1, 256, 1)["linear"]
    ### BEGIN HIDDEN TESTS
    check.mistake("a multiply-add is two FLOPs", when=got == 5_898_240)
    check.mistake("lm_head is missing: the largest single matrix of a small model", when=got == 11_272_192)
    check.mistake("the embedding is looked up, not multiplied", when=got == 11_796_480 + 2 * 262_144)
    ### END HIDDEN TESTS
    check.equal(got, 11_796_480)
### BEGIN HIDDEN TESTS
def truth(sizes, new, context, batch):
    """The count; tests/lab/test_roofline.py proves it against torch's FLOP counter on running models."""
    cost = call_cost(sizes, new, context, batch)
    return {"linear": cost.linear_flops, "attention": cost.attention_flops}


OTHERS = [SMALL | {"num_key_value_heads": kv, "num_hidden_layers": 3, "head_dim": 48} for kv in (1, 4, 8)]
with check.part("the matrices of a prefill: lm_head on the last position only", weight=2):
    got, want = ask_flops(SMALL, 100, 0, 3)["linear"], truth(SMALL, 100, 0, 3)["linear"]
    check.mistake("logits of every position: generate asks for the last one of each sequence",
                  when=got == call_cost(SMALL, 100, 0, 3, all_logits=True).linear_flops)
    check.equal(got, want)
    check.equal([ask_flops(sizes, 7, 5, 2)["linear"] for sizes in OTHERS], [truth(sizes, 7, 5, 2)["linear"] for sizes in OTHERS])
with check.part("attention in prefill and decode", weight=2):
    for new, context, batch in ((100, 0, 3), (1, 256, 1)):
        got, want = ask_flops(SMALL, new, context, batch)["attention"], truth(SMALL, new, context, batch)["attention"]
        check.mistake("a new token attends to itself too: the keys are context + new", when=context and got == want // (context + 1) * context)
        check.mistake("there are two products, with the keys and with the values", when=got * 2 == want)
        check.equal(got, want)
with check.part("attention with other numbers of key/value heads", weight=1):
    got = [ask_flops(sizes, 1, 63, 2)["attention"] for sizes in OTHERS]
    check.mistake("shared key heads save bytes, not FLOPs: every query head multiplies", when=got[0] * 8 == got[2])
    check.equal(got, [truth(sizes, 1, 63, 2)["attention"] for sizes in OTHERS])
### END HIDDEN TESTS
check.score()

# %% [markdown]
# **Reconcile** with the library's own counter, which watches every operation while the model runs. (On a CPU it does not see the fused
# attention, so the model is switched to the plain one for this cell.)

# %% tags=["demo"]
from torch.utils.flop_counter import FlopCounterMode

sizes = {name: getattr(config, name) for name in ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                                                  "num_key_value_heads", "vocab_size")} | {"head_dim": head_dim}


def library_flops(ids, cache):
    """(in matrices with weights, in attention), as torch counts them."""
    with FlopCounterMode(display=False) as counter:
        model(ids, None, None, cache, logits_to_keep=1)
    counts = {str(op): value for op, value in counter.get_flop_counts()["Global"].items()}
    return counts.get("aten.mm", 0) + counts.get("aten.addmm", 0), counts["aten.bmm"]  # addmm: matrices with a bias


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
# (Older releases of `transformers` make the table of positions with a small product, which the counter adds to attention.) The prefill has
# more than a hundred times the FLOPs of the decode call. The time is another matter, because there is a second thing to count.
#
# ### Exercise 6 · Count the bytes
#
# *difficulty 2 of 3 · 8 minutes · 2 points*
#
# The least that one call must move: every weight read once, the cache of earlier tokens read once, the new tokens' keys and
# values written. (Activations come on top. In decode they are small. In a long prefill they may be as many bytes as the weights, or more: a fused attention
# kernel keeps its scores on the chip, but what goes in and out of norms and matrices passes through memory. There the arithmetic takes longer still.)
#
# | argument | meaning |
# |---|---|
# | `weights` | number of weights that a call reads: a table that serves as embedding and as `lm_head` counts once; one that is the embedding only is not read but looked up, and does not count |
# | `sizes` | as in exercise 5 |
# | `new`, `context`, `batch` | as in exercise 5 |
# | `itemsize` | bytes of one weight, and of one number in the cache |
#
# Returns a `dict` of three `int`, in bytes: `"weights"`, `"cache_read"`, `"cache_written"`.
#
# <details><summary>Hint</summary>
#
# A token leaves one key and one value in every layer, for each key/value head. The weights are read once a <i>call</i>: that is the whole secret of batching.
# </details>

# %% exercise="bytes" provides=["count_bytes"] difficulty=2 minutes=8
def count_bytes(weights, sizes, new, context, batch=1, itemsize=4):
    """Bytes that one call must move: {"weights": int, "cache_read": int, "cache_written": int}."""
    ### BEGIN SOLUTION
    token = 2 * sizes["num_hidden_layers"] * sizes["num_key_value_heads"] * sizes["head_dim"] * itemsize
    return {"weights": weights * itemsize, "cache_read": batch * context * token, "cache_written": batch * new * token}
    ### END SOLUTION

# %% check="bytes" points=2
from inferlab.lab import Check

check = Check("bytes", points=2)
SMALL = {"hidden_size": 256, "intermediate_size": 704, "num_hidden_layers": 8, "num_attention_heads": 8,
         "num_key_value_heads": 2, "head_dim": 32, "vocab_size": 1024}
LLAMA = {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
         "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 128256}


def ask_bytes(*call):
    """The learner's three counts."""
    got = check.learner.count_bytes(*call)
    check.true(isinstance(got, dict) and set(got) == {"weights", "cache_read", "cache_written"},
               "return a dict with the keys weights, cache_read, cache_written")
    check.true(all(isinstance(value, int) for value in got.values()), "bytes are whole numbers")
    return got


with check.part("a prefill finds no cache", weight=1):
    got = ask_bytes(5_902_592, dict(SMALL), 256, 0, 1, 4)
    check.equal(got["cache_read"], 0)
### BEGIN HIDDEN TESTS
with check.part("the weights, once a call", weight=1):
    got = [ask_bytes(5_902_592, dict(SMALL), new, 0, batch, size)["weights"] for new, batch, size in ((1, 1, 4), (256, 1, 4), (1, 8, 2))]
    check.mistake("one reading serves all tokens of the call", when=got[1] == 256 * got[0])
    check.mistake("one reading serves all sequences of the batch", when=got[2] == 8 * 2 * 5_902_592)
    check.equal(got, [23_610_368, 23_610_368, 11_805_184])
with check.part("the cache that is read", weight=1):
    got = [ask_bytes(5_902_592, dict(SMALL), 1, 256, 3, 4)["cache_read"], ask_bytes(7_504_924_672, dict(LLAMA), 1, 4096, 1, 2)["cache_read"]]
    check.mistake("the query heads are not cached: the key/value heads are", when=got == [4 * 3_145_728, 4 * 536_870_912])
    check.mistake("keys and values: there are two of them", when=[2 * value for value in got] == [3_145_728, 536_870_912])
    check.mistake("every sequence has a cache of its own", when=got[0] == 1_048_576)
    check.equal(got, [3_145_728, 536_870_912])
with check.part("the cache that is written", weight=1):
    got = [ask_bytes(5_902_592, dict(SMALL), new, context, 3, 4)["cache_written"] for new, context in ((256, 0), (1, 256))]
    check.mistake("only the new tokens' keys and values are written", when=got[1] == 3 * 257 * 4096)
    check.equal(got, [3_145_728, 12_288])
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ### FLOPs per byte, on this machine's roofline
#
# How fast *can* this machine multiply, and how fast can it read? Two short measurements, and a third: the same model shrunk to next to no
# width, which issues all the same operations on almost nothing. Its decode call takes what issuing a call takes here.

# %%
from inferlab.lab.roofline import Dot, best_seconds, call_cost, measure_device, overhead_seconds, roofline
from inferlab.lab.roofline import regime as regime_of
from inferlab.models.language import random_model

rates = measure_device(lab.device, model.dtype)
overhead = overhead_seconds(config, lab.device, model.dtype)
print(f"{rates.name}: {rates.flops_per_s / 1e9:.0f} GFLOP/s, {rates.bytes_per_s / 1e9:.0f} GB/s, ridge at {rates.ridge:.0f} FLOPs per byte")
print(f"issuing one decode call of {config.num_hidden_layers} layers: {overhead * 1e3:.1f} ms")

# %% [markdown]
# The bundled model is small, so beside it stands one with random weights, wider and with fewer layers: more to read in a call, fewer
# kernels to start.

# %%
from transformers import LlamaConfig

wide = random_model(LlamaConfig(hidden_size=1024, intermediate_size=2816, num_hidden_layers=3, num_attention_heads=8,
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
    issue = overhead * (wide.config.num_hidden_layers / config.num_hidden_layers if "wide" in dot.group else 1)
    name, floors = regime_of(dot.cost, rates, issue)
    times = "".join(f"{seconds * 1e3:8.2f}" for seconds in floors.values())
    print(f"{dot.label:17} {dot.cost.intensity:10.1f}  {dot.seconds * 1e3:8.2f}{times}   {name}")

# %% tags=["demo"]
roofline(rates, dots, title="A prefill and a decode call differ by a factor of 100 in FLOPs per byte",
         arrows=[("decode, wide", "batch 8"), ("batch 8", "batch 48")])

# %% [markdown]
# Three regimes, and what moves a call from one to the next:
#
# * **launch-bound**: far below the roof, and hardly slower with more work. On a small model (or a large one on a fast GPU) a decode call may spend most
#   of its time being issued (on a CPU: by Python and torch's dispatcher; the name stays). What helps is to issue less: a static cache with CUDA graphs or `torch.compile` replays all launches as one. The FLOPs and
#   bytes stay as they were.
# * **memory-bound**: on the slope. The weights are fetched for one token. What helps is to read less (fewer bits) or to use a reading for more tokens (a batch).
# * **compute-bound**: under the flat roof. Prefill is there, and decode with a large enough batch of short enough contexts. What helps is a faster device, or less to compute.
#
# Which of these you see for the bundled model depends on your machine; the counts do not. "Decode is memory-bound" is a statement about the counts of a large
# model at batch 1, to be checked against the trace before anybody acts on it.
#
# ### Out of the launch-bound regime
#
# The way out is to launch less. First a **static cache**: it takes its room at once, so no shape and no address changes from step to step. Then
# a **CUDA graph**: one step is captured with all its kernels, and from then on replayed with a single launch. Python is not there any more (a trace of
# modules sees no call), and what remains is the device's own work, to be held against the floor: the bytes of a step over the bytes per second measured above.

# %% tags=["demo"]
from inferlab.lab.launches import RECORDED, decode_steps


def beside_the_floor(steps, least):
    for name, seconds in steps.items():
        print(f"{name:26} {seconds * 1e3:8.2f} ms a step, {seconds / least:6.1f} times the floor of {least * 1e3:.2f} ms")


steps = decode_steps(model, PROMPT_TOKENS)
print(rates.name)
beside_the_floor(steps, call_cost(config, 1, PROMPT_TOKENS, itemsize=model.dtype.itemsize).bytes / rates.bytes_per_s)
if "CUDA graph, static cache" not in steps:
    print("\nNo graph: CUDA graphs are for GPUs. What a CPU spends on issuing a call is Python and torch's dispatcher, and a static cache alone saves none of it.")
    print(f"Recorded on one {RECORDED['card']} ({RECORDED['model']}; run {RECORDED['run']} of the handbook's GPU numbers):")
    beside_the_floor(RECORDED["steps"], RECORDED["floor"])

# %% [markdown]
# On the GPU of that run, the same kernels with the same bytes took a sixth of the time once nobody had to launch them one by one; only then did the step become
# memory-bound, and only then would fewer bits have helped. On your own GPU the cell above does it with your model.

# %% [markdown]
# ### Exercise 7 · Prefill in chunks
#
# *difficulty 2 of 3 · 8 minutes · 2 points*
#
# A server that prefills a long prompt in one call keeps everybody else's decode waiting. So servers cut the prompt, and slip decode calls in between,
# or decode tokens into the same calls.
# Write `chunked(forward, ids, size)`.
#
# | argument | what it is |
# |---|---|
# | `forward(ids, state)` | as in exercise 2, but its `logits` are `(B, T, V)`, those of all T tokens that it was given |
# | `ids` | `(B, P)` int64 |
# | `size` | tokens of each sequence in one call, at least 1 |
#
# Returns `(logits, state)`: the logits of all P positions, `(B, P, V)`, and the last state. Every call but the last
# gets exactly `size` tokens of each sequence, the last one what is left.
#
# <details><summary>Hint</summary>
#
# <code>ids.split(size, dim=1)</code> also gives the short piece at the end. What must a chunk know of the chunks before it, and where is that kept?
# </details>

# %% exercise="chunked" provides=["chunked"] difficulty=2 minutes=8
def chunked(forward, ids, size):
    """Logits (B, P, V) of a prompt that goes in `size` tokens at a time, and the state after it."""
    ### BEGIN SOLUTION
    parts, state = [], None
    for piece in ids.split(size, dim=1):
        logits, state = forward(piece, state)
        parts.append(logits)
    return torch.cat(parts, dim=1), state
    ### END SOLUTION

# %% check="chunked" points=2
import torch
from inferlab.lab import Check, close

check = Check("chunked", points=2)
two = torch.tensor([[3, 1, 4, 1, 5, 9, 2], [6, 5, 3, 5, 8, 9, 7]])
given = []


def past_scores(sequence):
    """A made-up model that looks at everything before a position: (B, T) -> (B, T, 4)."""
    return torch.stack([sequence.cumsum(1) * k + torch.arange(sequence.shape[1]) for k in (1, 2, 3, 5)], dim=-1).float()


def piecewise(ids, state):
    """One call of it; the state is all tokens that it was ever given, in order."""
    check.tensor(ids, dtype=torch.int64)
    check.true(ids.ndim == 2 and len(ids) == 2 and ids.shape[1], f"forward wants ids of shape (2, T), and got {tuple(ids.shape)}")
    check.true(state is None or isinstance(state, torch.Tensor), "state is None, or what the call before returned")
    seen = ids if state is None else torch.cat([state, ids], dim=1)
    given.append((ids.shape[1], 0 if state is None else state.shape[1]))
    check.true(len(given) <= 40, "40 calls and no end")
    return past_scores(seen)[:, -ids.shape[1]:], seen


def run_chunked(size):
    given.clear()
    got = check.learner.chunked(piecewise, two, size)
    check.true(isinstance(got, tuple) and len(got) == 2, "return a tuple (logits, state)")
    check.tensor(got[0])
    return got


with check.part("two chunks that fill up, and the rest", weight=1):
    run_chunked(3)
    check.equal([size for size, _ in given], [3, 3, 1])
### BEGIN HIDDEN TESTS
with check.part("every chunk builds on the chunks before it", weight=1):
    logits, state = run_chunked(3)
    check.mistake("every chunk began with an empty cache: it saw nothing of what came before", when=given[1][1] == 0)
    check.equal([before for _, before in given], [0, 3, 6])
with check.part("the logits of all positions", weight=1):
    logits, state = run_chunked(3)
    check.mistake("the last, shorter chunk was dropped", when=logits.shape[1] == 6)
    check.mistake("these are the logits of the last chunk alone", when=logits.shape[1] == 1)
    check.tensor(logits, shape=(2, 7, 4))
    check.close(logits, past_scores(two))
with check.part("other sizes, and the state", weight=1):
    for size in (2, 7, 20):
        logits, state = run_chunked(size)
        check.mistake("one token a call: that is decode, and reads all weights for each", when=size == 2 and len(given) == 7)
        check.close(logits, past_scores(two))
        check.equal(len(given), -(-7 // size))
        check.equal(state, two)
### END HIDDEN TESTS
check.score()

# %% tags=["demo"]
def forward_all(ids, state):
    """One call of the real model, with the logits of all its tokens."""
    state = DynamicCache(config=config) if state is None else state
    return model(ids, None, None, state).logits, state


whole, _ = forward_all(ids, None)
with when_written("chunked"):
    for size in (16, 50, PROMPT_TOKENS):
        pieces, _ = chunked(forward_all, ids, size)
        print(f"chunks of {size:3d}: largest difference of the logits {float((pieces - whole).abs().max()):.1e}")

# %% [markdown]
# The prompt in one piece is the very same call, so its difference is 0. Other pieces add the same numbers in another order, and may differ by
# rounding. That is the rule for all of these tricks: same calls, same bits; other calls, same values up to rounding.
#
# ### Exercise 8 · The same answer, at another price
#
# *difficulty 3 of 3 · 10 minutes · 2 points*
#
# Two services answer the same prompt with the same tokens. One of them wastes work in one of four ways; which one you got, and the length of the
# prompt, depend on your name.
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
# `calls_of(trace)` lists a run's calls, each with `.number` (from 1), `.batch`, `.new` (tokens that went in), `.context` (tokens in the cache before it) and
# `.head` (positions that went through `lm_head`). The whole tables are `healthy.table(level=0)` and `suspect.table(level=0)`.
#
# Write `diagnose()`, which returns a `dict`:
#
# | key | meaning |
# |---|---|
# | `"fault"` | one of the four names |
# | `"call"` | number of the first call of `suspect` in which `new`, `context` or `head` is not what it is in the same call of `healthy`, `int` |
# | `"positions"` | token positions that went through the layers in all calls of `suspect`, `int` |
# | `"head_positions"` | positions that went through `lm_head` in all calls of `suspect`, `int` |
#
# Compute them from the two traces, or write down what you found there.
#
# <details><summary>Hint</summary>
#
# Put the two lists side by side: <code>[(c.new, c.context, c.head) for c in calls_of(suspect)]</code>. Times would mislead you; counts do not.
# </details>

# %% exercise="diagnosis" provides=["diagnose"] difficulty=3 minutes=10
def diagnose():
    """What `suspect` wastes, where it first shows, and how many positions it computed."""
    ### BEGIN SOLUTION
    seen = [[(c.new, c.context, c.head) for c in calls_of(one)] for one in (healthy, suspect)]
    call = next(i for i, (a, b) in enumerate(zip(*seen), 1) if a != b)
    good, bad = (one[call - 1] for one in seen)
    if call > 1:
        fault = "no cache"
    elif bad[2] > 1:
        fault = "all logits"
    else:
        fault = "padding" if bad[0] > good[0] else "chunks"
    return {"fault": fault, "call": call, "positions": sum(new for new, _, _ in seen[1]),
            "head_positions": sum(head for _, _, head in seen[1])}
    ### END SOLUTION

# %% check="diagnosis" points=2
from inferlab.lab import Check

check = Check("diagnosis", points=2)


def diagnosis():
    """The learner's diagnosis, once it has its four keys."""
    got = check.learner.diagnose()
    check.true(isinstance(got, dict) and set(got) == {"fault", "call", "positions", "head_positions"},
               "return a dict with the keys fault, call, positions, head_positions")
    check.true(got["fault"] in ("no cache", "all logits", "padding", "chunks"), f"{got['fault']!r} is none of the four faults")
    check.true(all(isinstance(got[key], int) for key in ("call", "positions", "head_positions")), "the other three are whole numbers")
    return got


with check.part("a fault, a call and two counts (graded when you hand it in)", weight=0):
    diagnosis()
### BEGIN HIDDEN TESTS
def wasteful(variant):
    """(fault, first call that differs, positions, positions of lm_head, positions of the healthy run)."""
    prompt, new = (38, 45, 51, 58)[variant // 4], (9, 11, 13, 14)[variant // 4]
    fed = prompt + new - 1
    return [
        ("no cache", 2, sum(range(prompt, prompt + new)), new, fed),
        ("all logits", 1, fed, fed, fed),
        ("padding", 1, 96 + new - 1, new, fed),
        ("chunks", 1, fed, new + -(-prompt // 16) - 1, fed),
    ][variant % 4]


fault, first, positions, heads, healthy_positions = wasteful(check.variant(16))
with check.part("which fault", weight=2):
    got = diagnosis()["fault"]
    check.mistake("a chunk is shorter than the prompt; here the first call is longer than the prompt", when=got == "chunks" and fault == "padding")
    check.true(got == fault, "your two traces show another fault")
with check.part("where it first shows", weight=1):
    got = diagnosis()["call"]
    check.mistake("calls are numbered from 1", when=got == first - 1)
    check.mistake("without a cache the first call is the same: what differs is what goes in afterwards", when=fault == "no cache" and got == 1)
    check.equal(got, first)
with check.part("the positions that went through the layers", weight=3):
    got = diagnosis()["positions"]
    check.mistake("this is what the healthy run computed", when=got == healthy_positions != positions)
    check.mistake("the last token is never fed", when=got == positions + 1)
    check.equal(got, positions)
with check.part("the positions that went through lm_head", weight=2):
    check.equal(diagnosis()["head_positions"], heads)
### END HIDDEN TESTS
check.score()

# %% [markdown]
# None of the four changes a token, so no test of the answers would find them. "No cache" makes the work grow with the square of the length; "all logits" is paid once a request.
# "Padding" is computed once, but it lies in the cache, and every later call reads it again. And chunks are no waste at all if somebody else's decode runs in between.

# %% [markdown]
# ## 6 · Explain
#
# *difficulty 2 of 3 · 12 minutes · 6 points: 3 for the typed lines, 3 for the sentences*

# %% [markdown]
# Explain the run of section 3 (a prompt of 128 tokens, 24 new ones) to a colleague who says that decode is a small prefill.
#
# | line | what it says |
# |---|---|
# | `state:` | one or two sentences: what a decode call reads that the calls before it have left, and what that saves it |
# | `axis:` | one or two sentences: which axis differs between the first call and the later ones, and what grows, with the numbers of this run |
# | `trade-off:` | one or two sentences: what you gain and what you pay when more sequences share each decode call (a larger batch) |
# | `calls:` | typed: forward calls of this run |
# | `length:` | typed: tokens in the cache at its end |
# | `readings:` | typed: how often the weights are read after the first token is there |
# | `shape:` | typed: the shape of `input_ids` in each later call |
# | `again:` | typed: token positions that all calls together would have computed without a cache |
# | `gain:` | typed, such as `memory down`: what a decode call shared by 8 sequences improves for the service as a whole, compared with a call for one sequence |
# | `cost:` | typed: what it makes worse for each of the 8 users, compared with having the call alone, or for the device |

# %%
explained = run  # %%explain looks the numbers of your answer up in the newest trace that has a name

# %% explain="two-phases" difficulty=2 minutes=12
%%explain two-phases
# ### BEGIN SOLUTION
# state: Each decode call reads the keys and values of all earlier tokens from the KV cache, so it computes only its new token.
# axis: The token axis differs: 128 tokens go into the first call and 1 token into each later one, while the cache grows from 128 to 151 tokens.
# trade-off: A larger batch reads the weights once for all sequences, so the throughput goes up, but each call takes longer and the caches need more memory.
# calls: 24
# length: 151
# readings: 23
# shape: (1, 1)
# again: 3348
# gain: throughput up
# cost: latency up
# ### END SOLUTION

# %% check="phases-calls" of="two-phases" points=1
from inferlab.lab import Check, reference

check = Check("phases-calls", points=1)
with check.part("`calls:`, `length:` and `readings:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("two-phases").get("calls"), "`calls:` is empty")
    check.true(check.explanation("two-phases").get("length"), "`length:` is empty")
    check.true(check.explanation("two-phases").get("readings"), "`readings:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import typed


@reference
def facts():
    """The run of section 3, traced again; its shapes and counts do not depend on the prompt's words."""
    import torch
    from inferlab.models import cache_argument, load_language_model
    from inferlab.trace import trace
    from transformers import DynamicCache

    model, _ = load_language_model("bundled", "cpu")
    cache, ids = DynamicCache(config=model.config), torch.arange(10, 138).reshape(1, 128)
    with torch.no_grad(), trace(model) as again:
        model.generate(ids, attention_mask=torch.ones_like(ids), min_new_tokens=24, max_new_tokens=24, do_sample=False,
                       **cache_argument(cache))
    shapes = [tuple(call.inputs["input_ids"].shape) for call in again["LlamaForCausalLM"]]
    lengths = list(range(shapes[0][1], int(cache.get_seq_length()) + 1))
    return again.facts() | {"prompt": shapes[0][1], "first shape": shapes[0], "later shape": shapes[-1], "calls": len(shapes),
                            "length": lengths[-1], "again": sum(lengths)}


with check.part("the calls of the run", weight=1):
    told, count = check.explanation("two-phases"), facts()["calls"]
    check.mistake("the last token is never fed back: n tokens need n calls", when=typed(told, "calls", count + 1).verdict == "award")
    outcome = typed(told, "calls", count)
    check.true(outcome.verdict == "award", outcome.reason)
with check.part("the tokens in the cache at the end", weight=1):
    told, last = check.explanation("two-phases"), facts()["length"]
    check.mistake("the last token was returned and never fed, so the cache has nothing of it", when=typed(told, "length", last + 1).verdict == "award")
    outcome = typed(told, "length", last)
    check.true(outcome.verdict == "award", outcome.reason)
with check.part("the readings of the weights after the first token", weight=2):
    told, count = check.explanation("two-phases"), facts()["calls"]
    check.mistake("the first reading is prefill's, and it makes the first token", when=typed(told, "readings", count).verdict == "award")
    check.mistake("the prompt does not dominate a long answer: every later call reads all weights again",
                  when=typed(told, "readings", 1).verdict == "award")
    outcome = typed(told, "readings", count - 1)
    check.true(outcome.verdict == "award", outcome.reason)
### END HIDDEN TESTS
check.score()

# %% check="phases-again" of="two-phases" points=1
from inferlab.lab import Check, reference

check = Check("phases-again", points=1)
with check.part("`shape:` and `again:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("two-phases").get("shape"), "`shape:` is empty")
    check.true(check.explanation("two-phases").get("again"), "`again:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import typed


@reference
def facts():
    """The run of section 3, traced again; its shapes and counts do not depend on the prompt's words."""
    import torch
    from inferlab.models import cache_argument, load_language_model
    from inferlab.trace import trace
    from transformers import DynamicCache

    model, _ = load_language_model("bundled", "cpu")
    cache, ids = DynamicCache(config=model.config), torch.arange(10, 138).reshape(1, 128)
    with torch.no_grad(), trace(model) as again:
        model.generate(ids, attention_mask=torch.ones_like(ids), min_new_tokens=24, max_new_tokens=24, do_sample=False,
                       **cache_argument(cache))
    shapes = [tuple(call.inputs["input_ids"].shape) for call in again["LlamaForCausalLM"]]
    lengths = list(range(shapes[0][1], int(cache.get_seq_length()) + 1))
    return again.facts() | {"prompt": shapes[0][1], "first shape": shapes[0], "later shape": shapes[-1], "calls": len(shapes),
                            "length": lengths[-1], "again": sum(lengths)}


with check.part("what goes into each later call"):
    outcome = typed(check.explanation("two-phases"), "shape", facts()["later shape"])
    check.true(outcome.verdict == "award", outcome.reason)
with check.part("the positions without a cache"):
    told, known = check.explanation("two-phases"), facts()
    check.mistake("the sequence grows by one token from call to call", when=typed(told, "again", known["calls"] * known["prompt"]).verdict == "award")
    check.mistake("that is what is computed with a cache", when=typed(told, "again", known["length"]).verdict == "award")
    outcome = typed(told, "again", known["again"])
    check.true(outcome.verdict == "award", outcome.reason)
### END HIDDEN TESTS
check.score()

# %% check="phases-gain-cost" of="two-phases" points=1
from inferlab.lab import Check

check = Check("phases-gain-cost", points=1)
with check.part("`gain:` and `cost:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("two-phases").get("gain"), "`gain:` is empty")
    check.true(check.explanation("two-phases").get("cost"), "`cost:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import typed

better = ("throughput up", "intensity up", "weight reads down", "bandwidth down")
own = {"intensity": "flops per byte, arithmetic intensity, intensity, utilization, utilisation", "weight reads": "weight reads, weight traffic, reads of weights",
       "bandwidth": "bandwidth, memory bandwidth, bandwidth use, memory traffic, traffic, bytes read, bytes per token"}
check.slot(lambda: typed(check.explanation("two-phases"), "gain", better, terms=own), "what a shared call gains")
check.slot(lambda: typed(check.explanation("two-phases"), "cost", ("latency up", "memory up", "cache up"), terms={"cache": "cache, kv cache, cache size, cache bytes"}),
           "what a shared call costs")
### END HIDDEN TESTS
check.score()

# %% check="phases-state" of="two-phases" points=1
from inferlab.lab import Check

check = Check("phases-state", points=1)
with check.part("`state:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("two-phases").get("state"), "`state:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import Rubric, Slot, Trend, grade

RUBRIC = Rubric(
    question="What a decode call reads that the calls before it have left, and what that saves it.",
    lab="Norm, attention, norm, MLP, and every shape between them is the same. In step 2 one key goes in, and all 129 come out: it is the only place "
        "where a decode call meets the tokens before it. Everything else works on the new token alone. Keys and values of one more token.",
    terms={
        "cache": "cache*, kv cache, kv-cache, key-value cache, key value cache, past_key_values, dynamiccache, saved cache, saved kv cache",
        "keys": "key*, values, keys and values, k and v, kv, key/value pairs, keys/values, key tensor*, value tensor*, key vector*",
        "decode": "decode*, decode call*, decode step*, decode pass*, decoding, later call*, each call, every call, second call, model, attention",
        "prefill": "prefill*, first call, prompt pass",
        "past": "earlier token*, previous token*, past token*, old token*, prompt*, prefix*, whole sequence, earlier position*, history",
        "hidden": "hidden state*, activation*, embedding*",
        "logits": "logit*, probabilit*, score*",
        "queries": "quer*",
        "story": "story, stories, reread*, re-read*",
        "weights": "weight*, parameter*",
        "saved": "compute .. key, compute .. value, compute .. v, recompute .. key, recompute .. value, recompute .. v, calculate .. key, calculate .. value, "  # what is not done: no keys that are there
                 "calculate .. v, recalculate .. key, recalculate .. value, recalculate .. v, recomputation .. value, computation .. value",
    },
    slots={"state": Slot(
        learned="lab12 state 50dd9b6d3b367f19",
        deny={
            "* keep/store/hold/save/cache/contain/remember/find/reuse hidden": "Hidden states are not kept: keys and values of each layer are.",
            "* keep/store/hold/save/cache/contain/remember/find/reuse logits": "No scores are kept: keys and values of each layer are.",
            "* keep/store/hold/save/cache/contain/remember/find/reuse queries": "A query is used once, by its own token: keys and values are kept.",
            "* keep/store/hold/cache/contain/remember weights": "The weights are read in every call; the cache is something else.",
            "says: reads/read/fetches/loads/takes/gets/picks .. hidden states/state, reads/read/fetches/loads/takes/gets/picks .. logits/queries, reads/read/fetches/loads .. attention matrix/scores":
                "What is there from the calls before are keys and values of each layer, and nothing else.",
            "cache avoids weights": "Every call reads all weights, with or without a cache.",
            "says: not/needn't/doesn't/don't/without/avoids/saves/spares .. read/load/fetch .. weights/parameters, weights .. not/needn't .. again, "
            "not/needn't/doesn't/don't .. compute/recompute .. weights/parameters":
                "Every call reads all weights, with or without a cache.",
            "says: stores/keeps/holds/saves/remembers/contains/caches/finds the/all text/words/string/characters, "
            "text/words of the answer/prompt/story .. kept/stored/saved": "No text is kept: keys and values of each layer are.",
            "says: keeps/stores/holds/has only/just .. last/latest/newest/previous token, only/just keeps/stores/holds/remembers .. last/latest/newest/previous token":
                "The keys and values of all earlier tokens are there, not of one.",
            "says: reads/read/finds/takes/gets/loads .. value/values/v of the last/latest/newest token only, reads/read/finds/takes/gets/loads .. value/values/v of the most recent token only":
                "The keys and values of all earlier tokens are there, not of one.",
            "says: prefill comes and reads, saves the prefill": "Prefill comes first and writes; it is decode that reads.",
            "says: saves/save/saving memory, saves is memory, need/needs less memory": "The cache takes memory; what it saves is computing the old tokens again.",
            "says: not/doesn't/don't/needn't/never .. attend to/over .. old/earlier/previous/past/prompt, attends/attend to itself only, attends/attend only to itself, attention is skipped/omitted, "
            "skips/skip/skipping the attention, skips/skip/skipping attention, saves/spares .. attention from":
                "The new token attends to all earlier ones: only their keys and values are not computed again.",
        },
        trend=Trend(  # two ideas are wanted: what is there (keys and values), and what it saves (nothing old is computed again)
            "cache", gain={"saved": "up"}, cost={"kept": "up"}, switch=True, asked="up",
            says={
                "kept up": "key*, values, kv, k, kv cache, key-value cache, key value cache, past_key_values, dynamiccache, "
                           "read/use/reuse/take/find/open/consult/load/fetch .. cache",
                "saved up":
                    "not/never/doesn't/don't/doesnt/dont/isn't/aren't/won't/didn't .. recompute/recalculate/reprocess/redo/rerun/repeat/re-run/re-compute/re-process, "
                    "not/never/doesn't/don't/doesnt/dont/isn't/aren't/nothing .. compute/process/calculate/run/go/pass/push/feed/chew .. again/anew/twice/afresh, "
                    "not/never/doesn't/don't/doesnt/dont/isn't/aren't .. compute/process/calculate/run/go/pass/push/feed/chew .. second time, "
                    "not/doesn't/don't .. compute/process/calculate .. two times, not/doesn't/don't .. compute/process/calculate .. tokens/them/it new, "
                    "not/never/doesn't/don't .. compute/calculate/process .. of/for .. again/anew/twice/afresh, not/doesn't/don't .. process/run/compute .. all over, "
                    "not/never/doesn't/don't .. the/all/whole/entire/old/earlier/those/these .. again/anew/afresh, "
                    "not/don't/doesn't/aren't/isn't .. go/pass/push/run/send/feed through/into, "
                    "no longer .. compute/calculate/process/recompute/include/run/feed/push, not/don't/doesn't need compute/calculate/process/run, compute/process/calculate just/only once, compute/process/calculate once in/and, "
                    "saves/saving/spares/avoids .. second/another/repeated/new pass/run/computation/forward, saves/saving/spares/avoids/skips/skip their/its/the computation/recomputation/processing/projections, "
                    "computation/recomputation/projections/pass/those/work .. are/is saved/avoided/spared, "
                    "work/cost/computation/compute/amount .. of/for/is .. one/1/single token/position, that of one/1/single token/position, that of a single/one token/position, "
                    "new/newest/latest/last/current/single/one token/position/one alone, "
                    "cheaper than pushing/processing/running/computing/feeding .. tokens/prompt/everything/sequence, "
                    "no/nothing/none/instead/rather/avoids/saves/saving/spares/skips/prevents .. recompute/recomputation/recalculate/recalculation/reprocess/redo/rerun/repeat, without recomputing/recomputation/recalculating/reprocessing/redoing/rerunning/repeating/processing/running, "
                    "no/instead/rather/avoids/saves/spares .. re-run/re-read/reread/re-process/re-compute, "
                    "not/never/nothing/none/needn't/don't/doesn't/dont/doesnt/isn't/aren't/won't/no/avoids/saves/spares .. again/anew/twice/afresh, "
                    "not/never/needn't/don't/doesn't/isn't/aren't/no .. second time, not/never/needn't/don't/doesn't/isn't/aren't/no .. once more/over, "
                    "not/don't/doesn't/dont/doesnt/needn't/no/nor .. have/need/needed/must/necessary/required to "
                    "compute/recompute/calculate/process/run/rerun/redo/do/push/feed/reread/chew/go/repeat/start/look/think, "
                    "no need to/of/for .. compute/recompute/calculate/process/run/rerun/redo/do/push/feed/reread/chew/go/repeat, "
                    "need not .. compute/recompute/calculate/process/run/push/feed/be, needn't .. compute/recompute/calculate/process/run/push/feed/be, "
                    "must not .. compute/recompute/calculate/process/run, "
                    "saves/saving/spares/sparing/relieved/relieves/frees/avoids/skips .. compute/recompute/calculate/recalculate/process/run/redo/do/rerun/push/feed/projection/prefill/prompt/forward, "
                    "only/just/merely/solely .. new/newest/latest/last/current/own/fresh/newcomer, only/just/merely .. one/1/single token/position/query/row, "
                    "only/just/merely has/have/needs/need to .. new/newest/latest/last/current/own/one/1/single, only/just .. itself, "
                    "rather than .. all/whole/entire/full/complete/everything/every/prompt/sequence/history/past/old/earlier/previous/128, instead of .. all/whole/entire/full/complete/everything/every/prompt/sequence/history/past/old/earlier/previous/128, "
                    "without having/needing to compute/recompute/calculate/process/run/rerun/redo/do/push/feed, no second/further/new/repeated/other pass/run/computation/calculation/forward, "
                    "rerun/recomputation/recomputing/reprocessing/pass .. unnecessary/superfluous/needless/avoided/saved, append/appends/adds .. own, "
                    "one/1/single token/position/row only/through, push/feed/process/handle/run/compute/send/treat/put one/1/single token/position, push/feed/process/handle/run/compute/send/treat/put a/just/only single/one/1 token/position, new/newest/latest/last/one/token .. enough/suffices/sufficient, spare/spares/save/saves .. work, work/do/does/compute/computes/run/runs/works .. for one/1/single token/position, instead of being/computing/recomputing/processing/running/pushing/calculating/feeding, "
                    "reduces/cuts/lowers .. work/positions/computation/calculations, "
                    "it/call/step/pass/model/decode recomputes/redoes/repeats nothing/no/none",
                "saved down":
                    "it/call/calls/step/steps/pass/model/decode/also/must/will/would/always recompute/recalculate/reprocess/redo/rerun/repeat, "
                    "has/must/needs to compute/recompute/calculate/process/run/rerun/push/feed .. whole/complete/entire/full/everything/again, "
                    "must compute/recompute/calculate/process/run/rerun/push/feed .. whole/complete/entire/full/everything/again, "
                    "computes/processes/runs/calculates everything/all .. again/anew, would have processed/computed/calculated, would/you'd/we'd/it'd/one'd have/need to compute/recompute/process/run/rerun/push/feed/redo/calculate",
            }),
    )},
    must_award={"state": [
        "Each decode call reads the keys and values of the earlier tokens from the KV cache and computes only the new token.",
        "The cache holds the keys and values of the 128 prompt tokens, so a decode step does not have to compute them again.",
        "A decode step uses the KV cache that prefill filled, which saves it from running the prompt again.",
        "The keys and values of all earlier tokens are kept in the cache; only the new token goes through the layers.",
        "k and v of what came before are there already, no need to run the prompt a second time",
        "It finds K and V of the old tokens, so no recompute of them.",
        "It receives the keys and values from the calls before. Without the cache it would have processed everything again.",
        "Decode reads the KV cache of the earlier calls. It doesn't recompute the keys and values of the old tokens.",
        "keys + values of earlier tokens are read from the cache and aren't recomputed",
        "A call consults the cached keys and values, and the cost is that of a single position.",
        "The model takes the old keys and values from the cache, and it no longer has to calculate them.",
        "It takes the past keys and values, and the older tokens do not go through the layers any more.",
    ]},
    must_deny={"state": [
        "Each decode call recomputes the prompt, like a small prefill.",
        "The cache keeps the hidden states of the earlier tokens.",
        "The cache stores the text of the answer, so that the model can read it.",
        "The cache holds the weights, so they need not be read in decode.",
        "The KV cache stores the logits of the earlier tokens, so only the new token is computed.",
        "It finds the old queries in the cache, so nothing has to be computed again.",
        "A decode call finds keys and values there, but it also recomputes all of them.",
        "It reads the KV cache, and what that saves is memory, since nothing is kept twice.",
        "It reads the keys and values of the last token only, so it doesn't recompute the others.",
        "It reads the hidden states of the prompt, so the keys and values are not recomputed.",
        "It reads the KV cache, so the new token doesn't attend to the old tokens any more.",
        "Decode reads the KV cache, and so it does not recompute the weights.",
    ]},
)
check.slot(lambda: grade(check.explanation("two-phases"), RUBRIC, {})["state"], "what a decode call reads, and what that saves")
### END HIDDEN TESTS
check.score()

# %% check="phases-axis" of="two-phases" points=1
from inferlab.lab import Check, reference

check = Check("phases-axis", points=1)
with check.part("`axis:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("two-phases").get("axis"), "`axis:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import Amounts, Rubric, Slot, grade


@reference
def facts():
    """The run of section 3, traced again; its shapes and counts do not depend on the prompt's words."""
    import torch
    from inferlab.models import cache_argument, load_language_model
    from inferlab.trace import trace
    from transformers import DynamicCache

    model, _ = load_language_model("bundled", "cpu")
    cache, ids = DynamicCache(config=model.config), torch.arange(10, 138).reshape(1, 128)
    with torch.no_grad(), trace(model) as again:
        model.generate(ids, attention_mask=torch.ones_like(ids), min_new_tokens=24, max_new_tokens=24, do_sample=False,
                       **cache_argument(cache))
    shapes = [tuple(call.inputs["input_ids"].shape) for call in again["LlamaForCausalLM"]]
    lengths = list(range(shapes[0][1], int(cache.get_seq_length()) + 1))
    return again.facts() | {"prompt": shapes[0][1], "first shape": shapes[0], "later shape": shapes[-1], "calls": len(shapes),
                            "length": lengths[-1], "again": sum(lengths)}


LENGTHS = [128, 129, 130, 131, 151]
RUBRIC = Rubric(
    question="Which axis differs between the first call and the later ones, and what grows, with the numbers of this run.",
    lab="Step 1 takes (1, 128), every later step (1, 1). Same model, same method, same weights. The token axis goes through the whole block untouched.",
    terms={
        "tokens": "token*, input_ids, input_ids.shape, token axis, token dimension, sequence axis, sequence, sequence length, seq*, length of the input, input length, length axis, time axis, second axis, "
                  "second dimension, second number, position*, dim 1, axis 1, dimension 1, inputs, input",
        "cache": "cache*, kv cache, cache length, length of the cache, keys, keys and values, stored keys, context, context length, history, attended sequence, how far back, past_key_values, k and v",
        "batch": "batch, batch axis, batch size, first axis, rows, axis of batch, axis of the batch, dim 0, axis 0, \"sequences\", requests",
        "made": "new token*, generated token*, answer token*, tokens of the answer",
        "calls": "call*, step*, forward pass*, pass, passes",
        "first": "first call, 1st call, initial call, prefill*, call 1, step 1, prompt pass",
        "later": "later call*, other call*, following call*, subsequent call*, decode call*, decode step*, later step*",
        "layers": "layer*",
        "heads": "head*",
        "vocabulary": "vocab*, vocabulary axis, logit*, axis of the logits",
        "width": "hidden size, hidden dimension, hidden axis, hidden state*, width, embedding*, feature axis, weight*, mlp",
    },
    slots={"axis": Slot(
        learned="lab12 axis 2e945350d981ce96",
        names=["tokens", "cache"],
        deny={
            "batch grow/increase/change/shrink/drop": "The batch is 1 in every call of this run.",
            "says: axis of batch is different, axis of the batch is different, batch axis/size/dimension is different/differs, batch differs": "The batch is 1 in every call of this run.",
            "layers grow/increase": "The number of layers is fixed.",
            "heads grow/increase": "The heads stay as they are.",
            "says: number of heads/layers grow/increase, heads/layers grow/increase, batch/hidden size grow/increase, so do/does the heads/layers/batch": "Heads, layers and batch are what they were.",
            "says: 128 tokens in every/each/all, 128 in every/each/all call/calls, 1/one to/then 128, 1/one and then/later 128, tokens are always 1/one, tokens always 1/one, always 1/one token in every/each": "The first call takes the whole prompt, and only the first.",
            "says: heads/head/batch/layers/layer/vocabulary/hidden/cache axis/dimension is/has/was 128, heads/head/batch/layers/layer/vocabulary/hidden axis/dimension differs/changes, axis of the heads/batch/layers": "What differs is how many tokens go in.",
            "says: cache shrinks/shortens, cache gets/becomes shorter/smaller, cache axis shrinks, and it/they shrinks/shrink by": "The cache grows by one token in every later call.",
            "says: cache stays/stay/remains at/the, cache stays/remains 128, cache stays/remains constant/unchanged/same": "The cache grows by one token in every later call.",
            "says: token/tokens/sequence axis is always 1/one, cache/keys grows/grow/goes from 1/one/0/zero to": "The first call takes the whole prompt, and the cache begins with it.",
            "says: input/inputs/input_ids grows/grow/increases/lengthens, input/inputs/input_ids is/are growing/increasing, grows is the input/inputs/prompt, grows is the number of input/prompt, later ones/calls 129, takes/feeds all tokens, "
            "151 tokens go in, appended to the prompt":
                "A later call takes one token, however long the text is: what grows is the cache.",
            "says: axis of heads/layers/logits/vocabulary": "What differs is how many tokens go in.",
            "says: cache is the same, cache is always, cache remains at, cache keeps its/the 128, cache is used up, cache goes down, starts with/at 151, stays/remains/stay at 128": "The cache grows by one token in every later call.",
            "vocabulary grow/increase": "The vocabulary is what it is; what grows is what attention looks back at.",
            "width grow/increase": "The width of the model is fixed.",
            "says: grows is the .. vocabulary/logits/batch/heads/layers/width/embedding/weights, grow is the .. vocabulary/logits/batch/heads/layers/weights, "
            "grows are the .. logits/heads/layers/weights": "What grows is what attention looks back at: the cache.",
            "cache shrink/decrease/drop": "The cache grows by one token in every later call.",
            "says: first call/prefill receives/gets/takes/has/sees/reads one/1/single token, first call/prefill receives/gets/takes/has/sees only/just one/1, 1 token goes into the first":
                "The first call takes the whole prompt.",
            "says: later call/calls receives/receive/gets/get/takes/take/has/have/sees 128": "Every later call takes one token.",
        },
        amounts=Amounts(
            shapes=["first shape", "later shape", (1, 2, 128, 32), (1, 2, 151, 32)],
            counts={"tokens": [1, 2, *LENGTHS, 23], "cache": [1, *LENGTHS, 23], "batch": 1, "made": [24, 23, 1, 128],
                    "calls": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, "calls", 23, 128, 151]},
            key=["tokens", "cache"],
            moves=[(128, 151)],
            at={"first": {"tokens": [128]}, "later": {"tokens": [1, 2, 23, 129, 130, 131, 151]}},
        ),
        loose=True,
    )},
    must_award={"axis": [
        "The token axis differs: 128 tokens go in at the first call and 1 token at each later call, while the cache grows from 128 to 151.",
        "The sequence axis is 128 in prefill and 1 in decode; the cache grows by one token in each of the 23 later calls.",
        "input_ids go from (1, 128) to (1, 1), and the cache grows along the token axis up to 151 tokens.",
        "The number of tokens drops from 128 to 1 after the first call, and the KV cache grows to 151 tokens.",
        "tokens per call: 128 in call 1, 1 in calls 2 to 24. The cache gets one longer each time and ends at 151",
        "The axis of tokens is different: first call has 128, the other 23 have only 1. The keys grow until 151.",
        "The token axis has 128 tokens at the start, then always 1 token. The cache gets one longer a call, up to 151.",
        "input_ids: (1, 128) in the first call, (1, 1) later. The cache grows from 128 to 151.",
    ]},
    must_deny={"axis": [
        "The batch axis grows from 1 to 24 during decode.",
        "The token axis has 256 tokens in the first call and the cache grows to 512.",
        "The layers grow with each call, and the 32 heads too.",
        "The cache grows from 128 to 152 tokens.",
        "The token axis is 128 and then 1, and the cache shrinks with each call.",
        "128 tokens go in at first and 1 later. What grows is the vocabulary axis.",
        "The axis of batch is different, 128 sequences and then 1; the cache grows to 151.",
        "Token axis: 128, then 1. The cache ends at 24 tokens.",
        "The tokens always 1 in each call, and the cache grows to 151.",
        "The token axis is 128 at first. Later ones take 129, 130 and so on, because input_ids grows; the cache has 128.",
        "The token axis goes from 128 to 1, and the cache stays at 128 tokens.",
    ]},
    example_facts={"prompt": 128, "first shape": (1, 128), "later shape": (1, 1), "calls": 24},
)
check.slot(lambda: grade(check.explanation("two-phases"), RUBRIC, facts())["axis"], "which axis differs and what grows, with its numbers")
### END HIDDEN TESTS
check.score()

# %% check="phases-trade-off" of="two-phases" points=1
from inferlab.lab import Check

check = Check("phases-trade-off", points=1)
with check.part("`trade-off:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("two-phases").get("trade-off"), "`trade-off:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import Rubric, Slot, Trend, grade

RUBRIC = Rubric(
    question="What you gain and what you pay when more sequences share each decode call, a larger batch.",
    lab="The weights are read once a call: that is the whole secret of batching. What helps is to use a reading for more tokens, a batch.",
    terms={
        "batch": "batch*, batch size, batching, more sequences, more requests, more users, sequences in a call, number of sequences, sharing, extra sequences",
        "throughput": "throughput, troughput, tokens per second, total throughput, tokens a second, tokens in a second, tokens in the second, words per second, total output, output of the machine, total tokens/s, overall tokens/s, aggregate tokens/s, aggregate tokens per second, overall tokens per second, flops per byte, "
                      "intensity, arithmetic intensity, utilization, utilisation, server's throughput, total tokens, overall tokens",
        "memory": "kv cache*, cache*, caches, cache memory, kv memory, memory bill, cache bytes, memory for caches, memory for the caches, has to fit, have to fit, must fit, have all to fit",
        "weights": "weight*",
        "share": "tokens per second for each user, tokens per second for each request, tokens per second for every user, tokens per second per user, tokens per second per request, tokens per second of each user, "  # what one user gets
                 "tokens per second of each request, tokens/s for each user, tokens/s for each request, tokens/s per user, tokens/s per request, tokens/s of each user, tokens/s of each request, tokens per second than alone, tokens/s than alone, "
                 "user .. fewer tokens, request .. fewer tokens, rider .. fewer tokens, person .. fewer tokens, each .. fewer tokens, one .. fewer tokens, sequence .. fewer tokens, per-user throughput, per-request throughput, per-user tokens/s, per-user tokens per second, "
                 "each user .. more tokens, each request .. more tokens, each person .. more tokens, every user .. more tokens, every request .. more tokens, every person .. more tokens, single user .. more tokens, single request .. more tokens",
    },
    slots={"trade-off": Slot(learned="lab12 trade-off 03a5f580569648c9", deny={
            "says: copy/copies of the weights, own copy of them, weights occupy/take/need more": "The weights are there once, however many share the batch.",
            "says: one/common cache for all, share/shares/sharing one/a kv/cache, use/uses one common kv/cache, cache is shared by/among/between all": "Each has its own cache; what is shared is the reading of the weights.",
            "says: attend/attends to each other, influence/influences each other": "The sequences of a batch do not see each other.",
        }, trend=Trend(
        "batch", gain={"throughput": "up"}, cost={"time": "up", "memory": "up", "share": "down"}, asked="up",
        says={
            "throughput up":
                "more/many tokens/words/answers/output per/a/in/each/every second, more tokens/words/answers .. per/a/each/every second, more tokens/output .. for/from/out every/each/one/same byte/read/reading/weight, "
                "weights/parameters .. read/loaded/fetched/transferred/streamed once/one, read/load/loading/fetch/reading .. weights/parameters .. once/one, weights/parameters .. once/one for all/everyone/everybody, "
                "one/same read/reading/load/sweep/fetch/pass of/over weights/parameters, weight read/traffic/reads .. shared/amortised/amortized/divided, "
                "weights/parameters .. shared/amortised/amortized/divided/spread, reading of .. weights .. divided/shared/amortised, "
                "share/shares/amortise/amortises/amortize/amortizes/divides/spreads .. weight/weights/parameters/reading, ride along, output multiplies, "
                "used/use/uses/using .. more efficiently/efficient, more efficient/efficiently .. hardware/gpu/machine/device, do/does more .. byte/weight/read, more tokens/output .. out of the/one/same/each, more work/flops/arithmetic/computation for/per/of/from each/every/a/one byte/weight/read, "
                "great/good for .. throughput, serves/serve .. tokens rather/instead, "
                "more total/overall tokens/output/throughput, better use/utilisation/utilization of .. hardware/gpu/machine/device/card/bandwidth, "
                "hardware/gpu/machine/device/card .. used better, hardware/gpu/machine/device/card .. better used, nearly/almost free, "
                "cost/price per/of a/each/one/every token .. falls/drops/decreases/lower/less/shrinks, cost/price per token .. falls/drops/decreases/lower/less/shrinks, cheaper tokens, "
                "token/tokens .. cheaper, cheaper per token, better use .. units/arithmetic/cores, towards/toward compute-bound, better amortisation/amortization, "
                "tokens per second of/for/from the/all/whole .. up/rise/grow/increase, uses/use .. hardware/gpu/machine/device .. better, more flops .. for/per/from each/every/a/the byte, less idle, more tokens per weight/read, higher/better efficiency, machine/server/gpu/device produces/makes/yields/does more",
            "share down": "fewer/less tokens .. for/of each/every user/request/person/sequence, fewer/less tokens .. per user/request/person/sequence, fewer/less tokens s for/of each/every user/request/person/sequence, "
                          "fewer/less tokens s per user/request, fewer/less tokens .. than alone, fewer/less tokens s than alone, user/request/rider/person/each/one/sequence .. fewer tokens",
            "share up": "each/every/single user/request/person .. more tokens",
            "throughput down": "weights/parameters .. once for/per every/each sequence/request/user, weights/parameters .. read/loaded once for/per every/each/sequence, "
                               "once for every/each sequence/request, once per sequence/request/user, fewer/less tokens/words/output/rows/sequences, less/fewer total tokens, used worse, worse used, more/towards/toward memory-bound, worse use/utilisation/utilization, degrade/degrades/lowers/hurts/harms the/its/total throughput/utilisation/utilization/intensity, degrade/degrades/lowers/hurts throughput/utilisation/utilization",
            "memory up": "cache for each/every/all, kv cache/caches for each/every/all, kv cache/caches per sequence/request/user, adds/add its/their/a cache/kv, cache per sequence/request/user, own cache/caches, sets/set of notes/cache/caches/keys, caches .. store/stored/held/hold/kept/keep/pay/grow/add, "
                         "hold/store/keep/save/need/needs/have .. caches, memory .. cache/caches/sequence, cache memory times, memory .. scales/grows/times/multiplies, multiplies .. memory/cache, "
                         "has/have/must .. fit, pay for .. caches/cache, brings/bring/needs/need/has/have .. own cache/kv/notes/memory, caches .. memory",
            "time up": "speed .. goes/go/falls/drops/decreases down, speed .. falls/drops/decreases, nobody/none/not/never/isn't/doesn't .. faster/sooner/quicker/speeds, no one/user/request .. faster/sooner/quicker, token/tokens .. later/delayed, answer .. later/delayed, everyone .. delayed/waits/wait, everybody .. delayed/waits/wait, "
                       "each/every/single user .. waits/wait/slower, longer/more time/interval/gap/wait/step/pause .. token/tokens, each/every/one call/step takes/gets/is/becomes longer/slower",
        }))},
    must_award={"trade-off": [
        "A larger batch raises the throughput, but each call takes longer.",
        "With more sequences the weights are read once for all of them, so throughput goes up, but each call takes longer.",
        "Batching gives more tokens per second, but the caches need more memory.",
        "The throughput increases because one reading of the weights serves all sequences, but the caches need more memory.",
        "You load the weights once and everyone gets a token from it, but each sequence brings its own cache and nobody gets a token faster.",
        "We win throughput, the reading of the weights is divided between many users. We lose memory for all the caches.",
        "Each token becomes cheaper, since the weights are read for all of them; but every cache has to fit, so memory goes up.",
        "The cost per token falls, but a single user sees slower steps.",
        "We win throughput, the reading of the weights is divided between many users. Each user gets fewer tokens per second.",
    ]},
    must_deny={"trade-off": [
        "A larger batch lowers the throughput, but each call is faster.",
        "Batching makes each user's latency lower and needs less memory.",
        "A larger batch has lower throughput and a higher latency.",
        "With a larger batch the throughput rises and every call becomes faster.",
        "All sequences share one cache, so memory goes down, but the weights are read once for each sequence.",
        "Everyone gets their next token sooner, but the total throughput of the server drops.",
        "A larger batch makes decode more memory-bound, but it needs less memory for the caches.",
        "With a larger batch the machine makes fewer tokens per second, but each user is faster.",
        "Each user gets more tokens per second, but the memory for the caches grows.",
    ]},
)
check.slot(lambda: grade(check.explanation("two-phases"), RUBRIC, {})["trade-off"], "what a larger batch gains and costs")
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7 · Notice
#
# * **Decode is not a small prefill.** It reads the same weights for one token that prefill reads for all of them. FLOPs per byte fall by about a factor of the length of
#   the prompt, and with them the regime changes, and what helps.
# * **The prompt does not dominate a long answer.** Prefill reads the weights once, n new tokens read them n - 1 more times. The tokens computed may be fewer;
#   the time is not.
# * **n tokens are n calls and P + n - 1 positions.** The last token is returned, never fed.
# * **`generate` wants one position's logits.** Who asks for all of them pays `lm_head` P times and may hold P × vocabulary numbers.
# * **The cache is the only thing that a decode call takes over.** Everything else in the block works on the new token alone.
# * **Three regimes, not two.** A decode call can be waiting for its own launches. Then neither fewer bits nor a faster kernel helps,
#   only fewer launches (fused kernels, a graph), and a larger batch is nearly free.
# * **Same calls, same bits.** Your loop equals `generate` exactly, chunks only up to rounding.
#
# Say it out loud, as in an interview: name the state object, the axis that grows, and the trade-off. Names such as `logits_to_keep`, the cache's argument, and
# who calls `_prefill` belong to transformers 5.24; section 4 says so when yours differs. (On CUDA, newer releases may run one call more than
# needed and undo it, so that they need not wait for the device at every token.)

# %% [markdown]
# ## 8 · Check and hand in
#
# Run this cell last. It runs the visible checks again, says what is missing, and leaves one file to hand in.

# %% tags=["demo"]
from inferlab.lab import submit

submit()
