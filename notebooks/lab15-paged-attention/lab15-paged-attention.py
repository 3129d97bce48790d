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
# # Lab 15 · Paged attention
#
# Nobody knows how long an answer will be. A server that reserves memory for the longest possible answer keeps
# most of it empty. A paged cache takes memory block by block, wherever a block is free, and writes down which
# blocks it took. In this lab you keep its tables, compute attention through one, and share a prefix between
# requests.
#
# **Time** 65 to 75 minutes · **Points** 19, of which 3 are practice · **Reading**
# [Paged attention](../../handbook/lab15-paged-attention.md) in the handbook, before you start

# %% tags=["parameters"]
LEARNER = ""  # your name or id, as your course knows you
MODEL = "bundled"  # "bundled" | "full" | "hub"
DEVICE = "auto"  # "auto" | "cpu" | "cuda"
SEED = 7

# %%
from inferlab.lab import start

lab = start("lab15-paged-attention", LEARNER, MODEL, DEVICE, SEED)

# %%
import torch
from inferlab.models import load_language_model
from inferlab.models.stories import documents
from transformers import DynamicCache

torch.set_grad_enabled(False)
model, tokenizer = load_language_model(MODEL, lab.device)
shape = model.config
print(f"{shape.num_hidden_layers} layers, {shape.num_key_value_heads} KV heads of {shape.head_dim}, "
      f"{model.dtype}")

# %% [markdown]
# ## 1 · Goal and mental model
#
# | word | what it is | who knows it |
# |---|---|---|
# | **position** | a token's place in its request: 0, 1, 2, ... | the model |
# | **page** | a fixed number of positions that are kept together (16 below) | the cache |
# | **block** | memory for one page of all layers; each block has a number | the cache's pool of blocks |
# | **block table** | the numbers of a request's blocks, in the order of its positions | the cache, one list for each request |
# | **reference count** | how many requests have a block in their table | the cache, one number for each block |
#
# Virtual memory works in the same way: positions are the addresses, the block table translates them, and two
# tables may name the same block.
#
# $$\text{block} = \text{table}\big[\lfloor \text{position} / \text{page} \rfloor\big] \qquad \text{place in it} = \text{position} \bmod \text{page}$$

# %% [markdown]
# ![Three requests with their pages and block tables, and a pool of eight blocks below; two hatched blocks
# are named in two tables.](../../handbook/figures/lab15-tables.svg)
#
# *From the handbook.* Three requests, their tables and the pool. A and B share the two hatched blocks: 5
# blocks for 7 pages.

# %% [markdown]
# ## 2 · Predict
#
# ### Exercise 1 · Blocks of one request
#
# *difficulty 2 of 3 · 6 minutes · 3 points*
#
# A request with a prompt of `prompt` tokens generates `new` tokens. One call prefills the whole prompt.
# `forecast(prompt, new, page)` returns a `dict`:
#
# | key | value |
# |---|---|
# | `"blocks"` | blocks in its table during its last call, `int` |
# | `"empty"` | positions of these blocks that never hold anything, `int` (given) |
# | `"grows"` | the numbers of the calls after the prefill (call 0) that take a further block, a list of `int` |
#
# You write `positions` (those that hold keys and values after the last call), `blocks` and `grows`. The
# function is graded on runs of the library's engine that this notebook never makes.
#
# <details><summary>Hint 1: a nudge</summary>
#
# The prefill makes the first token, but that token's keys and values are computed only in the next call. So
# the last token is never stored. Call <code>k</code> (from 1) fills position <code>prompt + k - 1</code>.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# The positions are <code>prompt + new - 1</code>, and blocks is that over <code>page</code>, rounded up
# (<code>-(-a // b)</code> rounds up). A call k from 1 to <code>new - 1</code> takes a further block if
# <code>prompt + k - 1</code> is a multiple of <code>page</code>.
# </details>

# %% exercise="forecast" provides=["forecast"] difficulty=2 minutes=6
def forecast(prompt, new, page):
    """What the block table of one request holds over its run."""
    ### BEGIN SOLUTION
    positions = prompt + new - 1
    blocks = -(-positions // page)
    grows = [k for k in range(1, new) if (prompt + k - 1) % page == 0]
    ### END SOLUTION
    return {"blocks": blocks, "empty": blocks * page - positions, "grows": grows}

# %% check="forecast" points=3
from inferlab.lab import Check, reference

check = Check("forecast", points=3)


def foretold(*case):
    """The learner's forecast, once it has the form of the contract."""
    got = check.plain(check.learner.forecast(*case))
    check.true(isinstance(got, dict) and set(got) == {"blocks", "empty", "grows"},
               "return a dict with exactly the three keys of the contract")
    check.true(isinstance(got["grows"], list), '"grows" is a list of calls')
    return got


with check.part("a prompt of 20 tokens, 3 new ones, pages of 16", weight=1):
    got = foretold(20, 3, 16)
    check.equal(got["blocks"], 2)
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 3 · Trace
#
# Four requests of 45, 37, 70 and 21 prompt tokens share three slots, with pages of 16. `paged_run` lets the
# library's engine (that of lab 14) answer them, and notes the block tables before each call of the model.

# %% tags=["demo"]
from inferlab.lab.kits.paging.blocks import memory_map, paged_run, pool_of

LENGTHS, OUTPUTS, PAGE = (45, 37, 70, 21), (12, 20, 6, 30), 16
text = [token for story in documents(6, seed=SEED, kind="story")
        for token in tokenizer(story.context).input_ids]
cuts = [text[60 * k:60 * k + n] for k, n in enumerate(LENGTHS)]
run = paged_run(model, cuts, OUTPUTS, slots=3, page=PAGE)
for k in (0, 1, 5, 6, 12, len(run.calls) - 1):
    print(f"call {k:2d}: {run.calls[k].tokens:3d} tokens, tables",
          {r: list(table) for r, table in run.calls[k].tables.items()})

# %% tags=["demo"]
memory_map([call.tables for call in run.calls],
           title="Blocks are taken one by one; when a request is done, its blocks serve another")

# %% [markdown]
# Look at three places of the map:
#
# * **the first column**: each prompt takes the blocks that its own length needs, and no more;
# * **a single block that begins later**: a request has filled its last page and takes any free block. So the
#   numbers of a table are no range, and only the table knows their order;
# * **a row whose color changes**: a request was done, and its block now serves another request. Nothing was
#   moved.
#
# **Reconcile.** Compare your forecast with the tables:

# %% tags=["demo"]
from inferlab.lab import when_written

with when_written("forecast"):
    for r in range(4):
        counts = [len(call.tables[r]) for call in run.calls if r in call.tables]
        told = forecast(LENGTHS[r], OUTPUTS[r], PAGE)
        grew = [k for k in range(1, len(counts)) if counts[k] > counts[k - 1]]
        print(f"request {r}: forecast {told['blocks']} blocks, growing at {told['grows']};  "
              f"run {counts[-1]}, at {grew}")

# %% [markdown]
# Are the right keys in those blocks? The next cell reads the keys of request 3 through its table, and
# computes them again without pages:

# %% tags=["demo"]
held, stored = list(run.calls[-1].tables[3]), LENGTHS[3] + OUTPUTS[3] - 1
keys, values = pool_of(run.cache, layer=0)
plain = DynamicCache(config=model.config)
model(torch.tensor([cuts[3] + run.answers[3][:-1]], device=lab.device), None, None, plain)
through_table = keys[held].flatten(0, 1)[:stored]
print("the pool:", tuple(keys.shape), "= (blocks, page, KV heads, head_dim) for one layer")
print("largest difference to a contiguous cache: "
      f"{float((through_table - plain.layers[0].keys[0].transpose(0, 1)).abs().max()):.0e}")
print("bytes for each position, paged:",
      sum(t[0].nbytes for layer in range(shape.num_hidden_layers) for t in pool_of(run.cache, layer)) // PAGE,
      "· contiguous:", sum(t.keys.nbytes + t.values.nbytes for t in plain.layers) // stored)

# %% [markdown]
# The difference is rounding: the engine computed the same keys in calls of other shapes. A position takes the
# same bytes in both: **paging does not make the cache smaller per token.** It leaves less memory empty, so
# more requests fit.
#
# An example: 60 GB for the caches of a Llama 3 8B (131,072 bytes a position), and requests of some 630
# positions on average. Without pages each of them reserves the limit of 8,192 positions:

# %% tags=["demo"] jupyter={"source_hidden": true}
import random
from itertools import accumulate

MEMORY, POSITION, LIMIT, rng = 60_000_000_000, 131_072, 8192, random.Random(SEED)
ends = [min(LIMIT, int(rng.expovariate(1 / 600)) + 40) for _ in range(2000)]
print(f"reserved: {MEMORY // (LIMIT * POSITION)} requests, {1 - sum(ends) / (LIMIT * len(ends)):.0%} empty")
for page in (16, 256):
    taken = [-(-end // page) for end in ends]
    inside = sum(blocks <= MEMORY // (page * POSITION) for blocks in accumulate(taken))
    print(f"pages of {page:3d}: {inside} requests, {1 - sum(ends) / (page * sum(taken)):.1%} empty; "
          f"tables of {sum(taken) / len(taken):.0f} numbers on average")

# %% [markdown]
# More requests at once make a larger batch: that is the purpose of paging. Smaller pages leave less memory
# empty and make the tables longer. Reading through a table takes time: the rows of a request do not lie
# side by side.

# %% [markdown]
# ## 4 · Read
#
# This installed code finds the rows of a request: the equation of section 1, written as loops.

# %% jupyter={"source_hidden": true}
from inferlab.lab import show_source
from transformers.generation.continuous_batching.cache import FullAttentionCacheAllocator

show_source(
    FullAttentionCacheAllocator.get_read_indices,
    {
        "block_table = self.block_table.get(request_id)":
            "One list of block numbers for each request, and no list for each layer: all layers use the "
            "same places.",
        "remainder = total_length %": "Only the last page can be partly filled.",
        "start = block_table[b] *":
            "The translation. A block holds a page of every layer, so blocks lie further apart than a "
            "page is long: this is the stride.",
        "physical_indices.extend(range(start, start + remainder))":
            "Only the filled part of the last page: the rest may hold another request's old data.",
    },
    excerpts=[("block_table = self.block_table.get(request_id)", "return physical_indices")],
    checked="5.24.0",
)

# %% [markdown]
# ## 5 · Build
#
# ### Exercise 2 · The block table by hand
#
# *difficulty 2 of 3 · 8 minutes · 3 points*
#
# A pool has `size` blocks, numbered from 0, all free. `apply(ops, size, page)` carries out a list of
# operations and returns a list with one event for each:
#
# | operation | what happens | event |
# |---|---|---|
# | `("append", request, n)` | `n` more tokens of this request are stored (an unknown request begins) | `("took", [numbers])`: the blocks that are added to its table, in order, free blocks with low numbers first; `[]` if none is needed |
# | the same, but there are too few free blocks | nothing changes | `("full", m)`: `m` blocks are missing |
# | `("free", request)` | the request is done | `("gave", [numbers])`: its blocks in ascending order; they are free from now on |
#
# The code keeps the free blocks, and a table and a length for each request. You write what an append
# does before its event `took`.
#
# <details><summary>Hint 1: a nudge</summary>
# How many blocks does the request need after the append, and how many has it already? If the pool has too
# few, which of <code>free</code>, <code>tables</code> and <code>lengths</code> may change?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# <code>need</code> is <code>after</code> over <code>page</code>, rounded up, minus the blocks of the table.
# If need is more than the free blocks: add the event <code>("full", ...)</code> and <code>continue</code>.
# Otherwise <code>took</code> is the first <code>need</code> free blocks, which leave <code>free</code>; then
# the request has a new table and a new length.
# </details>

# %% exercise="apply" provides=["apply"] difficulty=2 minutes=8
def apply(ops, size, page):
    """One event for each operation on a pool of `size` blocks."""
    free, tables, lengths, events = list(range(size)), {}, {}, []
    for kind, request, *tokens in ops:
        table, length = tables.get(request, []), lengths.get(request, 0)
        if kind == "free":
            events.append(("gave", sorted(table)))
            free = sorted(free + table)
            del tables[request], lengths[request]
            continue
        after = length + tokens[0]  # the tokens that are stored after this append
        ### BEGIN SOLUTION
        need = -(-after // page) - len(table)
        if need > len(free):
            events.append(("full", need - len(free)))
            continue
        took, free = free[:need], free[need:]
        tables[request], lengths[request] = table + took, after
        ### END SOLUTION
        events.append(("took", took))
    return events

# %% check="apply" points=3
import random

from inferlab.lab import Check

check = Check("apply", points=3)


def events_of(ops, blocks, page):
    """The learner's events, once there is one for each operation."""
    got = check.plain(check.learner.apply(list(ops), blocks, page))
    check.true(isinstance(got, list) and len(got) == len(ops),
               "return a list with one event for each operation")
    check.true(all(isinstance(event, tuple) and len(event) == 2 for event in got),
               "an event is a tuple such as ('took', [0, 1])")
    return got


with check.part("begin, go on in the same page, take one more", weight=1):
    check.equal(events_of([("append", "a", 5), ("append", "a", 3), ("append", "a", 1)], 8, 4),
                [("took", [0, 1]), ("took", []), ("took", [2])])
### HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 3 · Attention through the table
#
# *difficulty 1 of 3 · 5 minutes · 3 points, practice*
#
# `paged_attention(query, keys, values, table, length)` computes the attention of one request, in one layer
# and one decode step.
#
# | argument | shape, dtype |
# |---|---|
# | `query` | `(heads, head_dim)`, `float32` |
# | `keys`, `values` | `(blocks, page, kv_heads, head_dim)`: the pool of all requests |
# | `table`, `length` | the numbers of the request's blocks, and how many positions they hold |
#
# The attention itself is given (lab 22 takes it apart). What is missing is `own`: from a pool, the rows of
# this request and no others, in the order of its positions, `(length, kv_heads, head_dim)`. The result must
# equal contiguous attention to within 1e-5.
#
# <details><summary>Hint 1: a nudge</summary>
# <code>pool[list(table)]</code> is (blocks of the request, page, kv_heads, head_dim). Which two axes belong
# together, and which of the places hold this request's positions?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# Flatten the first two axes, <code>.flatten(0, 1)</code>, and keep the first <code>length</code> rows.
# </details>

# %% exercise="attention" provides=["paged_attention"] difficulty=1 minutes=5
def paged_attention(query, keys, values, table, length):
    """Attention of one query over the positions that a block table names."""
    group = query.shape[0] // keys.shape[2]  # query heads that read one KV head
    rows = []
    for pool in (keys, values):
        ### BEGIN SOLUTION
        own = pool[list(table)].flatten(0, 1)[:length]
        ### END SOLUTION
        rows.append(own.repeat_interleave(group, dim=1))
    scores = torch.einsum("hd,thd->ht", query, rows[0]) / query.shape[1] ** 0.5
    return torch.einsum("ht,thd->hd", scores.softmax(dim=1), rows[1])

# %% check="attention" points=3
import torch
from inferlab.lab import Check, close

check = Check("attention", points=3)


def contiguous_attention(q, k, v):
    """(heads, dim) from a query and contiguous (length, heads, dim) keys and values."""
    return torch.nn.functional.scaled_dot_product_attention(q[:, None], k.transpose(0, 1),
                                                            v.transpose(0, 1))[:, 0]


g = torch.Generator().manual_seed(15)
pools = torch.randn(2, 9, 4, 2, 8, generator=g)
asking = torch.randn(6, 8, generator=g)
with check.part("two full blocks, one after the other", weight=1):
    got = check.learner.paged_attention(asking, pools[0], pools[1], [0, 1], 8)
    check.tensor(got, shape=(6, 8), dtype=torch.float32)
### HIDDEN TESTS
check.score()

# %% [markdown]
# The next cell compares your function with contiguous attention on the real pool: a random query, and request
# 3's keys and values of layer 0.

# %% tags=["demo"]
with when_written("paged_attention"):
    query = torch.randn(shape.num_attention_heads, shape.head_dim,
                        generator=torch.Generator().manual_seed(SEED)).to(keys)
    layer = plain.layers[0]
    wide = [t[0].repeat_interleave(shape.num_attention_heads // shape.num_key_value_heads, 0)
            for t in (layer.keys, layer.values)]
    contiguous = torch.nn.functional.scaled_dot_product_attention(query[:, None], *wide)[:, 0]
    print("largest difference: "
          f"{float((paged_attention(query, keys, values, held, stored) - contiguous).abs().max()):.0e}")

# %% [markdown]
# ### Exercise 4 · A shared prefix
#
# *difficulty 3 of 3 · 12 minutes · 3 points*
#
# Requests often begin alike: the same instructions, the same document, and then different questions. The keys
# and values of a position depend on its token and on **every token before it**. So two requests can share a
# full page if all their tokens up to the end of that page are the same.
#
# `share(ops, size, page)` again returns one event for each operation. The pool is always large enough.
#
# | operation | what happens | event |
# |---|---|---|
# | `("start", request, tokens)` | its leading full pages are shared, as long as a running request holds the same page; the other pages take free blocks, low numbers first | `{"shared": [numbers], "took": [numbers]}`, both in the order of the positions |
# | `("free", request)` | the request no longer uses its blocks | `{"gave": [numbers]}`, ascending: those of its blocks that no request uses any more |
#
# Two rules:
#
# * At least one token must be computed, or there would be no next token. So of `n` tokens at most `(n - 1) //
#   page` pages are shared.
# * A page that is not full is never shared, because its owner will write into it.
#
# The code keeps `tables` and raises `references`. You write two places. In the first you lower `references`,
# and add to `gave` the blocks that are given back. In the second you make `marks`, a list with one entry for
# each full page of the prompt, by which it is recognized, and add to `shared`. `known` leads from the marks
# to the blocks of running requests; the code below your lines adds to it.
#
# <details><summary>Hint 1: a nudge</summary>
#
# How do you recognize a page that is already held? Its own tokens are not enough. And when may a block go
# back to the pool?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
# A block's <code>references</code> fall by 1; at 0 it is given back. The mark of a full page is
# <code>tuple(tokens[:end])</code> with the end of the page: it contains all tokens before the page as well.
# Go through the first <code>(len(tokens) - 1) // page</code> marks, add <code>known[mark]</code> to
# <code>shared</code>, and stop at the first mark that is not known.
# </details>

# %% exercise="share" provides=["share"] difficulty=3 minutes=12
def share(ops, size, page):
    """One event for each operation on a pool whose full pages may be shared."""
    free, known, references, tables, events = list(range(size)), {}, {}, {}, []
    for kind, request, *prompt in ops:
        gave, shared = [], []
        if kind == "free":
            for block in tables.pop(request):
                ### BEGIN SOLUTION
                references[block] -= 1
                if references[block] == 0:
                    gave.append(block)
                ### END SOLUTION
            free = sorted(free + gave)
            known = {mark: block for mark, block in known.items() if block not in gave}
            events.append({"gave": sorted(gave)})
            continue
        tokens = prompt[0]
        ### BEGIN SOLUTION
        marks = [tuple(tokens[:end]) for end in range(page, len(tokens) + 1, page)]
        for mark in marks[: (len(tokens) - 1) // page]:
            if mark not in known:
                break
            shared.append(known[mark])
        ### END SOLUTION
        need = -(-len(tokens) // page) - len(shared)
        took, free = free[:need], free[need:]
        tables[request] = shared + took
        for block in tables[request]:
            references[block] = references.get(block, 0) + 1
        for mark, block in zip(marks, tables[request]):
            known.setdefault(mark, block)
        events.append({"shared": shared, "took": took})
    return events

# %% check="share" points=3
from inferlab.lab import Check

check = Check("share", points=3)


def shares_of(ops, page=4, blocks=40):
    """The learner's events, once there is one dict for each operation."""
    got = check.plain(check.learner.share([tuple(op) for op in ops], blocks, page))
    check.true(isinstance(got, list) and len(got) == len(ops)
               and all(isinstance(event, dict) for event in got),
               "return a list with one dict for each operation")
    check.true(all(set(event) in ({"shared", "took"}, {"gave"}) for event in got),
               "an event has the keys shared and took, or gave")
    return got


ASK = [1, 2, 3, 4, 5, 6, 7, 8]
with check.part("two requests with the same two pages in front", weight=1):
    check.equal(shares_of([("start", "a", ASK + [9]), ("start", "b", ASK + [10, 11])]),
                [{"shared": [], "took": [0, 1, 2]}, {"shared": [0, 1], "took": [3]}])
### HIDDEN TESTS
check.score()

# %% [markdown]
# The library follows the two rules, and it keeps known pages after their last owner has gone, until it needs
# the blocks. The next cell asks four questions about one document, in two slots, without and with
# sharing. With it, fewer tokens are computed and fewer blocks held, and the answers stay the same:

# %% tags=["demo"]
document = text[:56]
asking_about = [document + text[100 * k:100 * k + 8 + k] for k in range(1, 5)]
for shared in (False, True):
    shared_run = paged_run(model, asking_about, (6, 9, 5, 4), slots=2, share=shared)
    each = [len({block for table in call.tables.values() for block in table}) for call in shared_run.calls]
    print(f"sharing {shared!s:5}: {sum(call.tokens for call in shared_run.calls):3d} tokens computed, "
          f"{sum(each) / len(each):.1f} blocks held on average")
    print("    answers begin with", [answer[:3] for answer in shared_run.answers])
display(memory_map([call.tables for call in shared_run.calls],
                   title="Hatched blocks belong to two requests at once"))

# %% [markdown]
# ### Exercise 5 · An allocator goes wrong
#
# *difficulty 2 of 3 · 7 minutes · 3 points*
#
# The next cell prints the log of an allocator with the contract of exercise 2, except that it may take any
# free block. It has `BLOCKS` blocks and pages of `PAGE_SIZE`. It makes one mistake and goes on. Nothing
# crashed. The fault depends on your name.

# %%
from inferlab.lab.kits.paging import allocator_logs as blockfaults

BLOCKS, PAGE_SIZE = blockfaults.BLOCKS, blockfaults.PAGE
operations, log = blockfaults.suspect(lab.variant(16))[:2]
for at, (operation, event) in enumerate(zip(operations, log)):
    print(f"{at:2d}  {operation!s:22s} {event}")

# %% [markdown]
# `diagnose()` returns a `dict` with `"event"`, the number of the first wrong event, and `"kind"`:
#
# | kind | what happened |
# |---|---|
# | `"double"` | a block was given to a request while another request still held it |
# | `"leak"` | a request was done and did not give all of its blocks back |
# | `"early"` | a block was taken although the tokens still fitted into the request's last block |
# | `"refused"` | an append was refused although there were enough free blocks |
#
# The code keeps the books. Write the three missing conditions into `wrong`, a dict whose keys are the kinds:
# `wrong["double"] = ...`.
#
# <details><summary>Hint 1: a nudge</summary>
# <code>table</code> and <code>free</code> are as they were before the event; <code>need</code> is how many
# blocks the append really needs. Which of them contradicts the event <code>(what, seen)</code>?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# <code>"refused"</code>: the event is <code>"full"</code>, although need is at most the number of free
# blocks. <code>"early"</code>: it is <code>"took"</code>, with more blocks than needed.
# <code>"double"</code>: it is <code>"took"</code>, and not all blocks of it are free.
# </details>

# %% exercise="diagnose" provides=["diagnose"] difficulty=2 minutes=7
def diagnose():
    """The first wrong event of the log, and what is wrong with it."""
    free, tables, lengths = set(range(BLOCKS)), {}, {}
    for at, ((_, request, *tokens), (what, seen)) in enumerate(zip(operations, log)):
        table, after = tables.get(request, []), lengths.get(request, 0) + sum(tokens)
        need = -(-after // PAGE_SIZE) - len(table)
        wrong = {"leak": what == "gave" and set(seen) != set(table)}
        ### BEGIN SOLUTION
        wrong["refused"] = what == "full" and need <= len(free)
        wrong["early"] = what == "took" and len(seen) > need
        wrong["double"] = what == "took" and not set(seen) <= free
        ### END SOLUTION
        for fault in wrong:
            if wrong[fault]:
                return {"event": at, "kind": fault}
        if what == "gave":
            free |= set(seen)
            del tables[request], lengths[request]
        elif what == "took":
            free -= set(seen)
            tables[request], lengths[request] = table + seen, after

# %% check="diagnose" points=3
from inferlab.lab import Check

check = Check("diagnose", points=3)


def diagnosis():
    """The learner's diagnosis, once it has its two keys."""
    got = check.plain(check.learner.diagnose())
    check.true(isinstance(got, dict) and set(got) == {"event", "kind"}, "return a dict with event and kind")
    check.true(got["kind"] in ("double", "leak", "early", "refused"),
               "the kind is double, leak, early or refused")
    return got


with check.part("the form of the answer", weight=0):
    diagnosis()
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 6 · Explain
#
# *difficulty 2 of 3 · 7 minutes · 4 points: 1 for the typed line, 3 for the sentences*
#
# A colleague says: "With paging the cache needs fewer bytes per token, so a long answer gets cheaper."
# Correct this with the run of section 3: requests of 45, 37, 70 and 21 prompt tokens with 12, 20, 6 and 30
# new ones, and pages of 16.
#
# In the fields `state`, `axis` and `trade-off` you write short sentences, one a line, from the tables
# below: an entry of `who`, a verb, an entry of its row and, if you like, entries of a row `may follow`. An
# example: `the head axis stays whole`. In the last field you type one entry:
#
# | line | what it says |
# |---|---|
# | `per-token:` | bytes of one position in the bundled model's paged cache (float32, all layers) |
#
# Lines that begin with `#` are notes of your own.

# %% jupyter={"source_hidden": true}
### FIXTURE words
words

# %% [markdown]
# When you run the next cell, it shows how it reads each line. That reading is graded when you hand in.
# One false sentence in a field costs the field's point, so write only what you know. A line that the cell
# cannot read is judged by a person.

# %% explain="pages-in-words" difficulty=2 minutes=7
# %%explain pages-in-words
# ### BEGIN SOLUTION
# state: the block table maps each page of positions to a block for each request and for all layers
#   the block table says where the keys and values lie
# axis: the position axis is cut into pages of 16
#   the last request holds 50 positions and takes 4 blocks in its last call
# trade-off: smaller pages lower the empty memory and raise the length of the tables
# per-token: 4096
# ### END SOLUTION

# %% check="pages-words-per-token" of="pages-in-words" points=1
from inferlab.lab import Check, reference

check = Check("pages-words-per-token", points=1)
with check.part("`per-token:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("pages-in-words").get("per-token"), "`per-token:` is empty")
### HIDDEN TESTS
check.score()

# %% check="pages-words-state" of="pages-in-words" points=1
from inferlab.lab import Check

check = Check("pages-words-state", points=1)
with check.part("`state:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("pages-in-words").get("state"), "`state:` is empty")
### HIDDEN TESTS
check.score()

# %% check="pages-words-axis" of="pages-in-words" points=1
from inferlab.lab import Check

check = Check("pages-words-axis", points=1)
with check.part("`axis:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("pages-in-words").get("axis"), "`axis:` is empty")
### HIDDEN TESTS
check.score()

# %% check="pages-words-trade-off" of="pages-in-words" points=1
from inferlab.lab import Check

check = Check("pages-words-trade-off", points=1)
with check.part("`trade-off:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("pages-in-words").get("trade-off"), "`trade-off:` is empty")
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7 · Notice
#
# - **Paging does not make the cache smaller per token.** It shrinks what stays empty: less than one page a
#   request, whatever the limit.
# - **Whether a page can be shared depends on everything before it.** Equal tokens after another beginning
#   have other keys and values.
# - **A block goes back with its last reference.** If it goes back too early, one request reads the memory of
#   another, without an error. If it never goes back, the pool shrinks.
# - **The gain is a larger batch.** One request alone in the machine gains nothing from pages.
#
# Say it aloud, as in an interview: name the table, the axis that is cut into pages, and what a smaller page
# gains and costs.

# %% [markdown]
# ## 8 · Check and hand in
#
# Run this cell last. It runs the visible checks again, says what is missing, and leaves one file to hand in.

# %% tags=["demo"]
from inferlab.lab import submit

submit()
