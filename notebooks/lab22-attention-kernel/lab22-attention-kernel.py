# %% [markdown]
# # Lab 22 · Attention in one pass
#
# Attention compares each query with each key. The table of all these scores is far larger than what goes in
# and what comes out, and a fast kernel never writes it. In this lab you count what that saves, write such a
# kernel's loop by hand, join the answers of several workers, and mend a kernel for which the obvious repair
# passes the test and is still wrong.
#
# **Time** 50 to 60 minutes, and 5 more for what is optional · **Points** 17, of which 4 are practice ·
# **Reading** [Attention in one pass](../../handbook/lab22-attention-kernel.md) in the handbook, before you
# start

# %% tags=["parameters"]
LEARNER = ""  # your name or id, as your course knows you
MODEL = "bundled"  # "bundled" | "full" | "hub"
DEVICE = "auto"  # "auto" | "cpu" | "cuda"
SEED = 0

# %% [markdown]
# Grading always uses `"bundled"` on the CPU: a model with Llama's architecture, 8 query heads on 2 key/value
# heads.

# %%
from inferlab.lab import start

lab = start("lab22-attention-kernel", LEARNER, MODEL, DEVICE, SEED)

# %%
import torch
from inferlab.models import cache_argument, load_language_model
from inferlab.models.stories import documents
from torch.nn.functional import scaled_dot_product_attention
from transformers import DynamicCache

torch.set_grad_enabled(False)
model, tokenizer = load_language_model(MODEL, lab.device)
story = " ".join(one.context for one in documents(4, seed=SEED, kind="story"))
ids = tokenizer(story, return_tensors="pt").input_ids[:, :200].to(lab.device)
print(type(model).__name__, "·", ids.shape[1], "tokens")

# %% [markdown]
# ## 1 · Goal and mental model
#
# One query has a **score** $s_j$ for each key. Its answer is a mean of the values with the weights $e^{s_j}$.
# One number $m$ is subtracted from all scores, so that no exponential overflows. In exact arithmetic it
# cancels, whatever it is:
#
# $$\text{out} = \frac{\sum_j e^{s_j - m}\,v_j}{\sum_j e^{s_j - m}}$$
#
# A **state** of three things takes in the keys block by block. No score has to be kept:
#
# | state | for one query | with each block |
# |---|---|---|
# | $m$ (`top`), the running maximum | 1 number | the block's maximum, if that is larger |
# | $l$ (`total`), the running sum of $e^{s_j - m}$ | 1 number | times $e^{m_\text{old} - m_\text{new}}$, then the new terms |
# | $o$ (`out`), the running sum of $e^{s_j - m}\,v_j$ | `head_dim` numbers | times the same factor, then the new terms |
#
# The factor is 1 if no larger score came. At the end $o / l$ is the answer. $m + \log l$ is the
# **log-sum-exp** of the scores: with it, two answers over different keys can be joined.
#
# ![Left, a square of blocks, queries downwards and keys to the right: blocks under the diagonal are read one
# after another, those above it are skipped. Right, bytes against tokens for the naive kernel and for one
# pass.](../../handbook/figures/lab22-blocks.svg)
#
# *From the handbook.* Left: which blocks a causal kernel reads. Right: the bytes of one layer.

# %% [markdown]
# ## 2 · Predict
#
# ### Exercise 1 · What does each kernel move?
#
# *difficulty 2 of 3 · 6 minutes · 4 points*
#
# Two kernels, for one sequence and one layer, without a mask:
#
# * **Naive:** three operations, each of which reads its inputs once and writes its result. `Q` and `K` give
#   the scores `S`. The softmax of `S` gives the weights `P`. `P` and `V` give the output `O`.
# * **One pass:** the queries are cut into `blocks` blocks. For each of them the kernel makes one pass over
#   the keys: it reads its queries, then all keys and values, and writes its output.
#
# **Before you run section 3**, write `naive_moves` and `one_pass_moves`: how many numbers each kernel reads
# and writes, together. You need the three given names and `blocks`. `forecast` is graded on runs that this
# notebook never makes.
#
# <details><summary>Hint 1: a nudge</summary>
#
# How often is each of `Q`, `K`, `V`, `S`, `P`, `O` read or written? How often does one pass read `K`, if the
# queries are cut into four blocks?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# Beside <code>ends</code>, naive moves <code>pair</code> once and <code>table</code> four times:
# <code>S</code> is written and read, and so is <code>P</code>. One pass moves <code>pair</code> once for each
# block of queries.
# </details>

# %% exercise="forecast" provides=["forecast"] difficulty=2 minutes=6
def forecast(queries, keys, heads, kv_heads, width, blocks, item_bytes):
    """Bytes that the naive and the one-pass kernel move."""
    ends = 2 * heads * queries * width  # numbers in `Q` and `O`, which both kernels move once
    pair = 2 * kv_heads * keys * width  # numbers in `K` and `V`; a group of heads shares each read
    table = heads * queries * keys  # numbers in `S`, and in `P`
    ### BEGIN SOLUTION
    naive_moves = ends + pair + 4 * table
    one_pass_moves = ends + blocks * pair
    ### END SOLUTION
    return {"naive": item_bytes * naive_moves, "one pass": item_bytes * one_pass_moves}

# %% [markdown]
# ## 3 · Trace
#
# A prefill of the story. `trace` sees only modules, and the kernel is a function. `SdpaCalls` records its
# arguments. The first layer's call:

# %%
from inferlab.lab.kits.attention import Moved, SdpaCalls, multiplications, scored, tried, with_fetches

cache = DynamicCache(config=model.config)
with SdpaCalls() as prefill:
    logits = model(ids, **cache_argument(cache)).logits
call = prefill.calls[0]
print({name: tuple(call[name].shape) for name in ("query", "key", "value", "output")},
      {name: call[name] for name in ("attn_mask", "is_causal")})

# %% [markdown]
# There are more heads of queries than of keys. The mask is a flag, `is_causal`. No input or output has a row
# *and* a column for each token. Is such a table made inside? torch has several kernels (*backends*) for the
# call. `Moved` notes each operation that makes a tensor:

# %%
from torch.nn.attention import SDPBackend, sdpa_kernel

q4, k4, v4 = (call[name].cpu().float() for name in ("query", "key", "value"))
q, k, v = q4[0].contiguous(), k4[0], v4[0]  # (heads, tokens, width), and two with (kv_heads, tokens, width)
SIZES = q.shape[1], k.shape[1], len(q), len(k), q.shape[-1]

# %% tags=["demo"]
for backend in (SDPBackend.MATH, SDPBackend.FLASH_ATTENTION):
    with sdpa_kernel(backend), Moved() as moved:
        scaled_dot_product_attention(q4, k4, v4, is_causal=True, enable_gqa=True)
    tables = [one.name for one in moved.operations if one.shape[-2:] == SIZES[:2]]
    print(f"{backend.name:15} operations: {len(moved.operations):2}, of which these write a table: {tables}")

# %% [markdown]
# `MATH` writes the whole table several times, whatever the mask hides. `FLASH_ATTENTION` is one operation and
# writes none.
#
# **Reconcile** the naive half of your forecast. This is the naive kernel, its bytes counted by `Moved`:

# %%
from inferlab.lab import when_written


def naive(q, k, v):
    """Attention in three operations (without the scale). A group's heads are rows of one matrix."""
    scores = q.reshape(len(k), -1, q.shape[-1]) @ k.mT
    weights = scores.softmax(-1)
    return (weights @ v).reshape(q.shape)


# %% tags=["demo"]
with Moved() as moved:
    naive(q, k, v)
print(f"counted:       {moved.bytes:,} bytes")
with when_written("forecast"):
    print(f"your forecast: {forecast(*SIZES, blocks=4, item_bytes=4)['naive']:,} bytes")

# %% check="forecast" points=4
from inferlab.lab import Check, reference

check = Check("forecast", points=4)

def ask_forecast(*run):
    """The learner's forecast, once it has the form that the contract asks for."""
    got = check.learner.forecast(*run)
    check.true(isinstance(got, dict) and set(got) == {"naive", "one pass"},
               "return a dict with exactly the two keys")
    return got

with check.part("the naive bytes, where they can be counted in the head", weight=1):
    check.equal(ask_forecast(3, 5, 1, 1, 2, 1, 4)["naive"], 368)
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 4 · Read
#
# Who decides that the mask is a flag? The installed code of transformers, just before the call:

# %% jupyter={"source_hidden": true}
from inferlab.lab import show_source
from transformers.integrations.sdpa_attention import sdpa_attention_forward

show_source(
    sdpa_attention_forward,
    {
        "is_causal = q_length > 1 and attention_mask is None and is_causal":
            "A flag instead of a tensor: a kernel that knows the mask's form can skip blocks. In decode the "
            "one query sees everything.",
    },
    excerpts=[("is_causal = q_length > 1 and attention_mask is None and is_causal",
               "is_causal = q_length > 1 and attention_mask is None and is_causal")],
    checked="5.24.0",
)

# %% [markdown]
# ## 5 · Build
#
# ### Exercise 2 · One pass, by hand
#
# *difficulty 3 of 3 · 7 minutes · 4 points* (practice)
#
# The outer loop takes one block of queries, the inner one fetches one block of keys after the other:
# `fetch(start, stop)` gives these keys and their values, and `keys` is their number in all. `scored` gives
# the scores of the two blocks, `-inf` where the mask hides a key, and the values for every query head.
#
# **Write what a block does to the state**: to the running sum `total` `(heads, queries, 1)` and the running
# output `out` `(heads, queries, width)`. Both are still relative to the old maximum `top`. `weights` is
# relative to `new`, the maximum with this block. `one_pass` must give what torch's
# `scaled_dot_product_attention` gives: within 1e-5, and within 1e-3 where scores are in the hundreds.
#
# <details><summary>Hint 1: a nudge</summary>
#
# By which factor of section 1 do `total` and `out` become sums relative to `new`?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# With <code>keep = (top - new).exp()</code>, both are multiplied by <code>keep</code>. Then add
# <code>weights.sum(-1, keepdim=True)</code> to the sum, and <code>weights @ v</code> to the output.
# </details>

# %% exercise="one-pass" provides=["one_pass"] difficulty=3 minutes=7
def one_pass(q, fetch, keys, block, causal=False):
    """Attention in one pass over blocks of keys: (out, lse)."""
    outs, lses = [], []
    for first in range(0, q.shape[1], block):
        rows = q[:, first:first + block].float()
        top = torch.full((*rows.shape[:2], 1), -torch.inf)
        total, out = torch.zeros_like(top), torch.zeros_like(rows)
        for begin in range(0, min(keys, first + block) if causal else keys, block):
            scores, v = scored(rows, *fetch(begin, min(begin + block, keys)), first, begin, causal)
            new = torch.maximum(top, scores.amax(-1, keepdim=True))
            weights = (scores - new).exp()
            ### BEGIN SOLUTION
            keep = (top - new).exp()
            total = total * keep + weights.sum(-1, keepdim=True)
            out = out * keep + weights @ v
            ### END SOLUTION
            top = new
        outs.append(out / total)
        lses.append((top + total.log())[..., 0])
    return torch.cat(outs, 1).to(q.dtype), torch.cat(lses, 1)

# %% check="one-pass" points=4
import torch
from inferlab.lab import Check, close

check = Check("one-pass", points=4)

def served(q_given, k_given, v_given, size, mask=False):
    """The learner's (out, lse), and the (start, stop) of each fetch."""
    asked = []

    def fetch(start, stop):
        asked.append((int(start), min(int(stop), k_given.shape[1])))
        return k_given[:, start:stop], v_given[:, start:stop]

    result = check.learner.one_pass(q_given, fetch, k_given.shape[1], size, mask)
    check.true(isinstance(result, tuple) and len(result) == 2, "return two tensors, out and lse")
    check.tensor(result[0], shape=q_given.shape, dtype=q_given.dtype, finite=False)
    check.tensor(result[1], shape=q_given.shape[:2], dtype=torch.float32, finite=False)
    return *result, asked

def theirs(q_given, k_given, v_given, mask=False, **more):
    """torch's own attention of the same tensors."""
    return torch.nn.functional.scaled_dot_product_attention(
        q_given[None], k_given[None], v_given[None], is_causal=mask, enable_gqa=True, **more)[0]

def three(heads, kv_heads, queries, keys, seed):
    """Queries, keys and values of a normal distribution, 8 numbers wide."""
    draw = torch.Generator().manual_seed(seed)
    return (torch.randn(heads, queries, 8, generator=draw), torch.randn(kv_heads, keys, 8, generator=draw),
            torch.randn(kv_heads, keys, 8, generator=draw))

with check.part("one block holds everything", weight=1):
    given = three(2, 2, 6, 6, 0)
    mine, sums, _ = served(*given, 16)
    check.close(mine, theirs(*given), tol=1e-5)
    check.close(sums, (given[0] @ given[1].mT * 8**-0.5).logsumexp(-1), tol=1e-5)
### HIDDEN TESTS
check.score()

# %% [markdown]
# On the recorded layer, in blocks of 64. `with_fetches` calls your kernel and notes each fetch:

# %% tags=["demo"]
with when_written("forecast", "one_pass"):
    for causal in (False, True):
        out, lse, fetched = with_fetches(one_pass, q, k, v, 64, causal)
        error = (out - scaled_dot_product_attention(q4, k4, v4, is_causal=causal, enable_gqa=True)[0]).abs()
        print(f"causal {causal!s:5}  {len(fetched)} blocks fetched, "
              f"{4 * (2 * q.numel() + sum(fetched)):,} bytes; largest error {error.max():.0e}")
    print(f"your forecast without a mask: {forecast(*SIZES, blocks=4, item_bytes=4)['one pass']:,} bytes")
    print(f"multiplications without a mask: naive {multiplications(lambda: naive(q, k, v)):,}, "
          f"one pass {multiplications(lambda: with_fetches(one_pass, q, k, v, 64, False)):,}")

# %% [markdown]
# **One pass multiplies as much, and moves less.** A few multiplications for rescaling come on top, which the
# counter does not see. With the mask, blocks that no query may see are not even fetched. The error is
# rounding.
#
# ### Splitting the keys
#
# In decode there is one query a head, so each key/value head is one small job, which walks through a long
# cache alone. **Flash-decoding** splits the *keys*. Each worker makes a whole answer over its part, with its
# log-sum-exp, and a small second kernel joins them.

# %% [markdown]
# ### Exercise 3 · Join the workers' answers
#
# *difficulty 2 of 3 · 5 minutes · 3 points*
#
# Complete `join`. It gets the workers' answers `outs` `(splits, heads, queries, width)`, each divided by its
# own sum, and their log-sum-exps `lses` `(splits, heads, queries)`, which may be in the hundreds. Write two
# lines:
#
# * `lse` `(heads, queries)`: the log-sum-exp over all keys, $-\infty$ for a query that sees none;
# * `shares`, in the shape of `lses`: each worker's share of the sum of all $e^s$.
#
# <details><summary>Hint 1: a nudge</summary>
#
# A worker's $e^{\text{lse}}$ is its sum of $e^s$. Which share of the sum over all workers is that?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# <code>lse = lses.logsumexp(0)</code> does not overflow. A worker's share is
# <code>(lses - lse).exp()</code>.
# </details>

# %% exercise="join" provides=["join"] difficulty=2 minutes=5
def join(outs, lses):
    """The answer over all keys, from the answers over parts of them: (out, lse)."""
    ### BEGIN SOLUTION
    lse = lses.logsumexp(0)
    shares = (lses - lse).exp()
    ### END SOLUTION
    empty = lses == -torch.inf  # workers whose keys are all masked: their answers are NaN
    shares, outs = shares.masked_fill(empty, 0), outs.masked_fill(empty[..., None], 0)
    return (shares[..., None] * outs).sum(0), lse

# %% check="join" points=3
import torch
from inferlab.lab import Check, close

check = Check("join", points=3)

def asked_join(outs_given, lses_given):
    """The learner's (out, lse), in the shapes of the contract."""
    result = check.learner.join(outs_given, lses_given)
    check.true(isinstance(result, tuple) and len(result) == 2, "return two tensors, out and lse")
    check.tensor(result[0], shape=outs_given.shape[1:], finite=False)
    check.tensor(result[1], shape=lses_given.shape[1:], finite=False)
    return result

def parts_of(score_table, value_table, lengths):
    """Each worker's (outs, lses), from scores (heads, queries, keys) and values (heads, keys, width)."""
    pairs = zip(score_table.split(lengths, -1), value_table.split(lengths, 1), strict=True)
    made = [(s.softmax(-1) @ x, s.logsumexp(-1)) for s, x in pairs]
    return torch.stack([one[0] for one in made]), torch.stack([one[1] for one in made])

with check.part("two workers with equal sums", weight=1):
    joined, _ = asked_join(torch.tensor([[[[1.0, 4.0]]], [[[3.0, 0.0]]]]), torch.zeros(2, 1, 1))
    check.close(joined, torch.tensor([[[2.0, 2.0]]]))
### HIDDEN TESTS
check.score()

# %% [markdown]
# One more token, with the story in the cache: a real decode step. Its keys go to three workers:

# %%
with SdpaCalls() as decode:
    model(logits[:, -1:].argmax(-1), **cache_argument(cache))
q1, k1, v1 = (decode.calls[0][name][0].cpu().float() for name in ("query", "key", "value"))

# %% tags=["demo"]
with when_written("one_pass", "join"):
    exact = decode.calls[0]["output"][0].cpu().float()
    pieces = [with_fetches(one_pass, q1, *piece, 64, False)[:2]
              for piece in zip(k1.tensor_split(3, 1), v1.tensor_split(3, 1), strict=True)]
    outs, lses = (torch.stack(one) for one in zip(*pieces, strict=True))
    for name, out in {"your join": join(outs, lses)[0], "a plain mean": outs.mean(0)}.items():
        print(f"{name:13} largest error {(out - exact).abs().max():.0e}")

# %% [markdown]
# The workers' sums of $e^s$ differ. So a plain mean is wrong.

# %% [markdown]
# ### Exercise 4 · A repair that passes the test
#
# *difficulty 2 of 3 · 4 minutes · 3 points*
#
# A colleague keeps `out` divided: after each block it is the attention over the keys so far. So a step first
# undoes the division, `total * out`, and later divides by the new sum `more`. The colleague's test: if all
# values are 1, any mean of them is 1. `colleague_step` fails it. "Then drop the rescaling," says another:
# that is `obvious_step`.

# %%
def colleague_step(top, total, out, scores, v, rescale=True):
    """One more block: `scores` (heads, queries, n), `v` (heads, n, width). Returns the new state."""
    new = torch.maximum(top, scores.amax(-1, keepdim=True))
    weights = (scores - new).exp()
    factor = (top - new).exp() if rescale else 1.0
    more = total * factor + weights.sum(-1, keepdim=True)
    return new, more, (total * out + weights @ v) / more


def obvious_step(*arguments):
    """The same without the rescaling."""
    return colleague_step(*arguments, rescale=False)


# %% [markdown]
# The colleague's test, and the recorded layer (without its mask), beside exact attention:

# %%
print(tried(colleague_step, q, k, v))
print(tried(obvious_step, q, k, v))

# %% [markdown]
# `obvious_step` passes the test, and is wrong all the same. Where the first block has the largest score, both
# are right: there the factor is 1.
#
# Only the last line of `colleague_step` is wrong. **Mend it in `step`:** write the new `out`, the attention
# over all keys so far.
#
# <details><summary>Hint 1: a nudge</summary>
#
# To which maximum is `total * out` relative, and to which one `weights`?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# <code>total * out</code> is relative to the old maximum: multiply it by <code>factor</code>, as the line
# above does with <code>total</code>.
# </details>

# %% exercise="step" provides=["step"] difficulty=2 minutes=4
def step(top, total, out, scores, v):
    """One more block of keys: the new maximum, sum and (divided) output."""
    new = torch.maximum(top, scores.amax(-1, keepdim=True))
    weights = (scores - new).exp()
    factor = (top - new).exp()
    more = total * factor + weights.sum(-1, keepdim=True)
    ### BEGIN SOLUTION
    out = (total * factor * out + weights @ v) / more
    ### END SOLUTION
    return new, more, out

# %% check="step" points=3
import torch
from inferlab.lab import Check, close

check = Check("step", points=3)

def walked(score_table, value_table, size):
    """The output after all blocks have gone through the learner's step."""
    state = (torch.full((*score_table.shape[:2], 1), -torch.inf), torch.zeros(*score_table.shape[:2], 1),
             torch.zeros(*score_table.shape[:2], value_table.shape[-1]))
    for some, of_them in zip(score_table.split(size, -1), value_table.split(size, 1), strict=True):
        state = check.learner.step(*state, some, of_them)
        check.true(isinstance(state, tuple) and len(state) == 3, "return three tensors")
    return state[2]

with check.part("the colleague's test: values of 1", weight=1):
    table = torch.randn(2, 5, 24, generator=torch.Generator().manual_seed(3))
    check.close(walked(table, torch.ones(2, 24, 4), 8), torch.ones(2, 5, 4), tol=1e-5)
### HIDDEN TESTS
check.score()

# %% tags=["demo"]
with when_written("step"):
    print(tried(step, q, k, v))

# %% [markdown]
# ## 6 · Explain
#
# Say what happens in one pass, and what it saves. In each field you write two short sentences, one a line,
# from its table. Above the table stands what the field asks.

# %% jupyter={"source_hidden": true}
### FIXTURE words
words

# %% [markdown]
# A sentence is an entry of `who`, a verb, and an entry of the verb's row. The verbs of the row `…` need none.
# If it says *when* or *in which kernel*, it ends with an entry of `may follow`.
#
# *difficulty 1 of 3 · 6 minutes · 3 points.* The cell shows how it reads each line, and that reading is
# graded when you hand in. One false sentence costs its field's point. A line that the cell cannot read is
# graded by a person.

# %% explain="one-pass-in-words" difficulty=1 minutes=6
%%explain one-pass-in-words
# ### BEGIN SOLUTION
# state: the running sum and the output so far are rescaled when the maximum grows
#   the running maximum is known after the last block
# price: one pass multiplies as much
#   one pass gives the same result but for rounding
# mask: the causal mask saves whole blocks in the one-pass kernel
#   the causal mask saves nothing in the naive kernel
# ### END SOLUTION

# %% check="words-state" of="one-pass-in-words" points=1
from inferlab.lab import Check

check = Check("words-state", points=1)
with check.part("`state:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("one-pass-in-words").get("state"), "`state:` is empty")
### HIDDEN TESTS
check.score()

# %% check="words-price" of="one-pass-in-words" points=1
from inferlab.lab import Check

check = Check("words-price", points=1)
with check.part("`price:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("one-pass-in-words").get("price"), "`price:` is empty")
### HIDDEN TESTS
check.score()

# %% check="words-mask" of="one-pass-in-words" points=1
from inferlab.lab import Check

check = Check("words-mask", points=1)
with check.part("`mask:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("one-pass-in-words").get("mask"), "`mask:` is empty")
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7 · Notice
#
# * **It does not compute less.** Without a mask both kernels multiply equally often, but for the rescaling.
#   One pass is faster where bytes are what a kernel waits for.
# * **It does not approximate.** The factor $e^{m_\text{old} - m_\text{new}}$ is exact but for rounding.
# * **The mask saves blocks,** nearly half of them in a long prompt, if the kernel knows the mask's form. A
#   kernel that writes the whole table saves nothing by it.
# * **The maximum need not be known first.** When a larger score comes, the state is rescaled to it.
# * **Grouped heads** can share fetches, but no scores and no state.

# %% [markdown]
# ## 8 · On a GPU (optional)
#
# Nothing graded needs this section. The same loop as a Triton kernel, beside two of torch's backends. Each
# program takes one block of queries of one head (and fetches for it alone: a group's heads share no read).
# The cell prints the time of each, the memory that it needs beside its inputs, and how far they differ:

# %% tags=["demo", "gpu"]
if torch.cuda.is_available():
    import triton
    import triton.language as tl
    from triton.testing import do_bench

    @triton.jit
    def kernel(q_at, k_at, v_at, o_at, tokens, group, scale, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
        first = tl.program_id(0) * BLOCK
        head = tl.program_id(1)
        rows = first + tl.arange(0, BLOCK)
        here = (head * tokens + rows)[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
        q = tl.load(q_at + here, mask=rows[:, None] < tokens, other=0.0)
        top = tl.full((BLOCK,), -float("inf"), tl.float32)
        total = tl.zeros((BLOCK,), tl.float32)
        out = tl.zeros((BLOCK, WIDTH), tl.float32)
        for start in range(0, first + BLOCK, BLOCK):  # what lies behind is masked for all rows: skipped
            keys = start + tl.arange(0, BLOCK)
            there = (head // group * tokens + keys)[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
            k = tl.load(k_at + there, mask=keys[:, None] < tokens, other=0.0)
            v = tl.load(v_at + there, mask=keys[:, None] < tokens, other=0.0)
            scores = tl.dot(q, tl.trans(k)) * scale
            scores = tl.where(keys[None, :] <= rows[:, None], scores, -float("inf"))
            new = tl.maximum(top, tl.max(scores, 1))
            keep = tl.exp(top - new)
            weights = tl.exp(scores - new[:, None])
            total = total * keep + tl.sum(weights, 1)
            out = out * keep[:, None] + tl.dot(weights.to(v.dtype), v)
            top = new
        out = out / total[:, None]
        tl.store(o_at + here, out.to(q.dtype), mask=rows[:, None] < tokens)

    def by_hand(q, k, v):
        out = torch.empty_like(q)
        (_, heads, tokens, width), block = q.shape, 64
        kernel[(triton.cdiv(tokens, block), heads)](q, k, v, out, tokens, heads // k.shape[1], width**-0.5,
                                                    WIDTH=width, BLOCK=block)
        return out

    def by_torch(backend):
        def run(q, k, v):
            with sdpa_kernel(backend):
                return scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return run

    large = [torch.randn(1, heads, 2000, 128, device="cuda", dtype=torch.bfloat16) for heads in (32, 8, 8)]
    answers = {}
    for name, run_it in {"math": by_torch(SDPBackend.MATH), "flash": by_torch(SDPBackend.FLASH_ATTENTION),
                         "by hand": by_hand}.items():
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        answers[name] = run_it(*large)
        peak = torch.cuda.max_memory_allocated() - before
        print(f"{name:8} {1e3 * do_bench(lambda: run_it(*large)):6.0f} µs {peak:>13,} bytes, "
              "largest difference to math "
              f"{(answers[name] - answers['math']).float().abs().max():.4f}")
else:
    print("no CUDA here: this cell was not run, and nothing later needs it")

# %% [markdown]
# ## 9 · Check and hand in
#
# Run this cell last. It runs the visible checks again, says what is missing, and leaves one file to hand in.

# %% tags=["demo"]
from inferlab.lab import submit

submit()
