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
# Nobody knows how long an answer will be, and yet its cache has to lie somewhere. Whoever reserves room for the longest possible
# answer keeps most of the memory empty. A paged cache takes room block by block, wherever one is free, and writes down where. In this lab you
# predict what the library's paged cache will hold, keep its books by hand, compute attention through a block table, share a prefix between
# requests, and find the fault in an allocator's log.
#
# **Time** about 70 minutes · **Points** 25, of which 4 are practice · **Reading** [Paged attention](../../handbook/lab15-paged-attention.md) in the handbook, before you start

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
print(f"{shape.num_hidden_layers} layers, {shape.num_key_value_heads} KV heads of {shape.head_dim}, {model.dtype}")

# %% [markdown]
# ## 1 · Goal and mental model
#
# After this lab you can say where the keys and values of any token lie, why so little memory is lost, what the table costs, and how two
# requests can own the same block.
#
# | word | what it is | who knows it |
# |---|---|---|
# | **position** | a token's place in its request: 0, 1, 2, ... | the model |
# | **page** | so many positions are kept together (16 below) | the cache |
# | **block** | a place for one page in memory, for all layers, with a number | the cache's pool |
# | **block table** | for each request the numbers of its blocks, in the order of its positions | the cache, one list a request |
# | **reference count** | how many requests have a block in their table | the cache, one number a block |
#
# It is virtual memory once more: positions are addresses, the block table translates them, and two tables may name the same block.
#
# $$\text{block} = \text{table}\big[\lfloor \text{position} / \text{page} \rfloor\big] \qquad \text{place in it} = \text{position} \bmod \text{page}$$
#
# What a position *takes* is the same as ever, `2 x layers x KV heads x head_dim x bytes`: a page is an arrangement, not a compression.

# %%
per_token = 2 * shape.num_hidden_layers * shape.num_key_value_heads * shape.head_dim * model.dtype.itemsize
print(f"{per_token:,} bytes for each position, and so {16 * per_token:,} for a block of 16")

# %% [markdown]
# ## 2 · Predict
#
# ### Exercise 1 · Blocks of one request
#
# *difficulty 2 of 3 · 7 minutes · 3 points*
#
# A request with a prompt of `prompt` tokens generates `new` tokens, and the whole prompt is prefilled in one call. Write `forecast(prompt, new, page)`;
# it returns a `dict`:
#
# | key | value |
# |---|---|
# | `"first"` | blocks in its table during the prefill, `int` |
# | `"positions"` | positions that are filled after its last call, `int` |
# | `"last"` | blocks in its table during the last call, `int` |
# | `"grows"` | the calls for which it takes a further block, counted from 0 (the prefill is call 0), a list of `int` |
# | `"empty"` | positions of its blocks that never hold anything, `int` |
#
# It is graded on runs of the library's engine that this notebook never makes.
#
# <details><summary>Hint</summary>
#
# The prefill makes the first token, but that token's keys and values are computed only in the next call. So the last token is never
# stored. Call <code>k</code> (from 1) fills position <code>prompt + k - 1</code>.
# </details>

# %% exercise="forecast" provides=["forecast"] difficulty=2 minutes=7
def forecast(prompt, new, page):
    """What the block table of one request holds over its run."""
    ### BEGIN SOLUTION
    positions = prompt + new - 1
    last = -(-positions // page)
    return {
        "first": -(-prompt // page),
        "positions": positions,
        "last": last,
        "grows": [k for k in range(1, new) if (prompt + k - 1) % page == 0],
        "empty": last * page - positions,
    }
    ### END SOLUTION

# %% check="forecast" points=3
from inferlab.lab import Check, reference

check = Check("forecast", points=3)


def foretold(*case):
    """The learner's forecast, once it has the form of the contract."""
    got = check.learner.forecast(*case)
    check.true(isinstance(got, dict) and set(got) == {"first", "positions", "last", "grows", "empty"},
               "return a dict with exactly the five keys of the contract")
    check.true(isinstance(got["grows"], list), '"grows" is a list of calls')
    return got


with check.part("a prompt of 20 tokens, 3 new ones, pages of 16", weight=1):
    got = foretold(20, 3, 16)
    check.equal([got["first"], got["last"]], [2, 2])
### BEGIN HIDDEN TESTS
@reference
def really(prompt, new, page):
    """The truth: the library's engine with the bundled model, its block table noted at each call."""
    from inferlab.lab.blocks import paged_run
    from inferlab.models import load_language_model

    model, _ = load_language_model("bundled", "cpu")
    run = paged_run(model, [[7] * prompt], [new], 1, page=page)
    held = [len(call.tables[0]) for call in run.calls]
    stored = sum(call.tokens for call in run.calls)
    grows = [k for k in range(1, len(held)) if held[k] > held[k - 1]]
    return {"first": held[0], "positions": stored, "last": held[-1], "grows": grows, "empty": held[-1] * page - stored}


RUNS = (19, 30, 16), (10, 23, 8), (5, 2, 4)
with check.part("positions", weight=1):
    for case in RUNS:
        got, want = foretold(*case)["positions"], really(*case)["positions"]
        check.mistake("the last token is never fed back: its keys and values are never computed", when=got == case[0] + case[1])
        check.mistake("the prompt's positions stay in the cache", when=got in (case[1], case[1] - 1))
        check.equal(got, want)
with check.part("blocks, first and last", weight=1):
    for case in RUNS:
        got, want = foretold(*case), really(*case)
        check.mistake("a page that is begun needs a whole block: round up", when=got["first"] == case[0] // case[2] != want["first"])
        check.mistake("blocks are taken when they are needed, not all in advance", when=got["first"] == want["last"] != want["first"])
        check.equal([got["first"], got["last"]], [want["first"], want["last"]])
with check.part("when it grows", weight=2):
    for case in RUNS:
        got, want = foretold(*case)["grows"], really(*case)["grows"]
        check.mistake("one call too late: the block must be there before the call that fills its first position",
                      when=bool(want) and got == [k + 1 for k in want])
        check.mistake("one call too early: there is still one position free in the last block", when=bool(want) and got == [k - 1 for k in want])
        check.equal(got, want)
with check.part("what stays empty", weight=1):
    for case in RUNS:
        got, want = foretold(*case)["empty"], really(*case)["empty"]
        check.mistake("only the last block has empty positions: less than a page", when=isinstance(got, int) and got >= case[2])
        check.equal(got, want)
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 3 · Trace
#
# Four requests of 45, 37, 70 and 21 prompt tokens, three slots, pages of 16. `paged_run` lets the library's engine answer them (`??paged_run`: the engine of the
# last lab) and notes its block tables before each call of the model. The model is traced as ever: what it is given is one row of tokens, and the cache as a whole.

# %% tags=["demo"]
from inferlab.lab.blocks import memory_map, paged_run, pool_of
from inferlab.trace import trace

LENGTHS, OUTPUTS, PAGE = (45, 37, 70, 21), (12, 20, 6, 30), 16
text = [token for story in documents(6, seed=SEED, kind="story") for token in tokenizer(story.context).input_ids]
cuts = [text[60 * k:60 * k + n] for k, n in enumerate(LENGTHS)]
with trace(model) as traced:
    run = paged_run(model, cuts, OUTPUTS, slots=3, page=PAGE)
print("\n".join(repr(traced.table(level=0)).splitlines()[:8]), "\n   ...")

# %% tags=["demo"]
for k in (0, 1, 5, 6, 12, len(run.calls) - 1):
    print(f"call {k:2d}: {run.calls[k].tokens:3d} tokens, tables", {r: list(table) for r, table in run.calls[k].tables.items()})

# %% tags=["demo"]
memory_map([call.tables for call in run.calls], title="Blocks are taken one by one, and given to somebody else when their request is done")

# %% [markdown]
# Stop at three places:
#
# * **the first column**: each prompt takes the blocks for its own length, and not one more;
# * **a single block that begins later**: a request has filled its last page and takes one more, from wherever one is free. Its table is not
#   a range of numbers, and nothing but the table knows the order;
# * **a row whose color changes**: a request was done, and its block serves another. Nothing was moved for that.
#
# **Reconcile** your forecast with the tables:

# %% tags=["demo"]
from inferlab.lab import when_written

with when_written("forecast"):
    for r in range(4):
        counts = [len(call.tables[r]) for call in run.calls if r in call.tables]
        told = forecast(LENGTHS[r], OUTPUTS[r], PAGE)
        grew = [k for k in range(1, len(counts)) if counts[k] > counts[k - 1]]
        print(f"request {r}: forecast {told['first']} to {told['last']} blocks, growing at {told['grows']};  traced {counts[0]} to {counts[-1]}, at {grew}")

# %% [markdown]
# Are the right keys in those blocks? Read request 3's through its table, and compute them again without any page:

# %% tags=["demo"]
held, stored = list(run.calls[-1].tables[3]), LENGTHS[3] + OUTPUTS[3] - 1
keys, values = pool_of(run.cache, layer=0)
plain = DynamicCache(config=model.config)
model(torch.tensor([cuts[3] + run.answers[3][:-1]], device=lab.device), None, None, plain)
through_table = keys[held].flatten(0, 1)[:stored]
print("the pool:", tuple(keys.shape), "= (blocks, page, KV heads, head_dim) for one layer")
print(f"largest difference to a contiguous cache: {float((through_table - plain.layers[0].keys[0].transpose(0, 1)).abs().max()):.0e}")
print("bytes for each position, paged:", sum(t[0].nbytes for layer in range(shape.num_hidden_layers) for t in pool_of(run.cache, layer)) // PAGE,
      "· contiguous:", sum(t.keys.nbytes + t.values.nbytes for t in plain.layers) // stored)

# %% [markdown]
# The difference is rounding: the engine computed the same keys in calls of other shapes. And a position takes the same bytes in both: **paging does not make the cache
# smaller per token.** It makes less of it lie empty.
#
# What does the table cost? The memory is nothing: a block number for each page, whatever a page holds. The reading costs more. Without a kernel for it (on a CPU, always) the library makes a list of rows from the table (section 4)
# and *gathers* them into a contiguous tensor, layer by layer, in every call that reads a cache, before attention reads anything. A kernel that follows the table itself saves that copy. What the last call of the run, a decode call
# with request 3 alone, moves for it:

# %% tags=["demo"]
numbers = torch.tensor(held, dtype=torch.int32)
read, gathered = stored * per_token, 0
for layer in range(shape.num_hidden_layers):
    gathered += sum(pool[held].flatten(0, 1)[:stored].numel() * pool.element_size() for pool in pool_of(run.cache, layer))
print(f"the table: {numbers.nbytes} bytes for {len(held)} blocks; the keys and values behind it: {read:,} bytes, {read // numbers.nbytes:,} times as much")
print(f"with pages of 1: {4 * stored} bytes, a number for each position")
print(f"one decode call of one request, gathered: {gathered:,} bytes read and {gathered:,} written, before attention reads {gathered:,} again")

# %% [markdown]
# With several requests in a call there is more. The rows of *all* of them are gathered into one tensor, its KV heads are repeated for the query heads (four times the bytes here), and every query is multiplied with everybody's keys.
# A mask hides those of the others. A paged kernel does none of this.

# %% [markdown]
# ## 4 · Read
#
# How the engine finds a request's rows, as installed. The two methods are the equation of section 1, written as loops.

# %% jupyter={"source_hidden": true}
from inferlab.lab import show_source
from transformers.generation.continuous_batching.cache import FullAttentionCacheAllocator

show_source(
    FullAttentionCacheAllocator.get_read_indices,
    {
        "block_table = self.block_table.get(request_id)": "One list of block numbers for each request, and no list for each layer: all layers use the same places.",
        "remainder = total_length %": "Only the last page can be begun and not full.",
        "for b in range(num_full_": "In the order of the positions; the table's numbers may be in any order.",
        "start = block_table[b] *": "The translation. A block's number times its stride is the row where it begins.",
        "physical_indices.extend(range(start, start + remainder))": "Of the last page only what is filled: the rest may hold what its last owner left behind.",
    },
    excerpts=[("block_table = self.block_table.get(request_id)", "return physical_indices")],
    checked="5.24.0",
)

# %% [markdown]
# And where the new tokens of a call are written:

# %% jupyter={"source_hidden": true}
show_source(
    FullAttentionCacheAllocator.get_write_indices,
    {
        "start_offset = past_length %": "A decode step usually goes on in the middle of a page.",
        "local_start = start_offset if b == start_": "A prompt may begin in one page and end in another: the first and the last are cut.",
        "physical_indices.extend(range(": "One row for each new token; the tensors are written with index_copy_.",
    },
    excerpts=[("start_offset = past_length %", "end_pos = past_length + query_length"),
              ("local_start = start_offset if b == start_", "physical_indices.extend(range(")],
    checked="5.24.0",
)

# %% [markdown]
# ## 5 · Build
#
# ### Exercise 2 · What a reservation wastes
#
# *difficulty 1 of 3 · 4 minutes · 2 points, practice*
#
# `waste(lengths, limit, page)` compares two ways to hold requests that end up with `lengths` positions each (a list of `int`). The **worst-case** way reserves `limit`
# positions for every request; the **paged** way takes whole pages as they are needed. Return a `dict` with `"worst"` and `"paged"`: which share of the positions that are
# held at the end holds nothing, a `float` from 0 to 1.
#
# <details><summary>Hint</summary>
# The share is over all requests together: one minus the sum of the lengths over the sum of what is held.
# </details>

# %% exercise="waste" provides=["waste"] difficulty=1 minutes=4
def waste(lengths, limit, page):
    """The share of held positions that stay empty, reserved for the worst case and in pages."""
    ### BEGIN SOLUTION
    used = sum(lengths)
    paged = sum(-(-length // page) * page for length in lengths)
    return {"worst": 1 - used / (limit * len(lengths)), "paged": 1 - used / paged}
    ### END SOLUTION

# %% check="waste" points=2
from inferlab.lab import Check

check = Check("waste", points=2)


def wasted(*args):
    """The learner's two shares, once they are numbers."""
    got = check.learner.waste(*args)
    check.true(isinstance(got, dict) and set(got) == {"worst", "paged"}, "return a dict with worst and paged")
    check.true(all(isinstance(share, float | int) for share in got.values()), "both are numbers from 0 to 1")
    return got


with check.part("one request of 24 positions, at most 96, pages of 16", weight=1):
    check.close(wasted([24], 96, 16), {"worst": 0.75, "paged": 0.25}, tol=1e-9)
### BEGIN HIDDEN TESTS
MANY = [100, 900, 33, 7, 2048, 512, 16]
with check.part("many requests: the worst case", weight=1):
    got = wasted(MANY, 2048, 16)["worst"]
    check.mistake("that is what is in use; asked for is what is not", when=abs(got - sum(MANY) / (2048 * 7)) < 1e-9)
    check.close(got, 1 - sum(MANY) / (2048 * 7), tol=1e-9)
with check.part("many requests: pages", weight=2):
    for page in (16, 64):
        got, in_pages = wasted(MANY, 2048, page)["paged"], sum(-(-n // page) * page for n in MANY)
        check.mistake("the share of all of them together, not the mean of their shares",
                      when=abs(got - sum(1 - n / (-(-n // page) * page) for n in MANY) / 7) < 1e-9)
        check.mistake("each request rounds up on its own: two requests never use one page together",
                      when=abs(got - (1 - sum(MANY) / (-(-sum(MANY) // page) * page))) < 1e-9)
        check.mistake("a length that is a multiple of the page needs no further block",
                      when=abs(got - (1 - sum(MANY) / sum((n // page + 1) * page for n in MANY))) < 1e-9)
        check.close(got, 1 - sum(MANY) / in_pages, tol=1e-9)
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 3 · From positions to rows
#
# *difficulty 1 of 3 · 5 minutes · 2 points, practice*
#
# `rows(table, length, page, stride)`: the rows of the cache's memory that hold the positions 0 to `length - 1` of a request, in this order, a list of `int`. Block `b` begins
# at row `b * stride` and its page takes `page` rows from there. (In the library's newest layout a block holds a page of every layer, so `stride` is larger than `page`.)
#
# <details><summary>Hint</summary>
# The equation of section 1, for each position. One line.
# </details>

# %% exercise="rows" provides=["rows"] difficulty=1 minutes=5
def rows(table, length, page, stride):
    """The rows that hold a request's positions, in their order."""
    ### BEGIN SOLUTION
    return [table[position // page] * stride + position % page for position in range(length)]
    ### END SOLUTION

# %% check="rows" points=2
from inferlab.lab import Check, reference

check = Check("rows", points=2)


def placed(*args):
    """The learner's rows, once they are a list of int."""
    got = check.learner.rows(*args)
    check.true(isinstance(got, list) and all(type(row) is int for row in got), "return a list of int")
    return got


with check.part("two blocks of 4, one after the other", weight=1):
    check.equal(placed([0, 1], 6, 4, 4), [0, 1, 2, 3, 4, 5])
### BEGIN HIDDEN TESTS
@reference
def library_rows(table, length):
    """Rows, page and stride from the library's own allocator, asked about a table that it is given."""
    from inferlab.lab.blocks import allocator_of, paged_run
    from inferlab.models import load_language_model

    model, _ = load_language_model("bundled", "cpu")
    allocator = allocator_of(paged_run(model, [[7, 8]], [2], 1, page=8).cache)
    allocator.block_table["asked"] = list(table)
    stride = getattr(allocator, "block_physical_stride", 8)
    return allocator.get_read_indices("asked", length - 1, 1), 8, stride


with check.part("any order of blocks", weight=1):
    got = placed([5, 2, 7], 10, 4, 4)
    check.mistake("the first block's number is not where all of it lies: look each page up", when=got == list(range(20, 30)))
    check.mistake("positions keep their order, whatever the blocks' numbers", when=sorted(got) == got)
    check.equal(got, [20, 21, 22, 23, 8, 9, 10, 11, 28, 29])
with check.part("the library's allocator", weight=2):
    for table, length in (((6, 3, 9), 20), ((4,), 8), ((11, 2, 5, 3), 25)):
        want, page, stride = library_rows(table, length)
        got = placed(list(table), length, page, stride)
        check.mistake("a block begins at its number times the stride, and its page is only the beginning of it",
                      when=stride != page and got == [table[p // page] * page + p % page for p in range(length)])
        check.mistake("of the last page, only the rows that are filled", when=len(got) > length)
        check.equal(got, list(want))
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 4 · The block table by hand
#
# *difficulty 3 of 3 · 10 minutes · 3 points*
#
# Operations in, events out. A pool has `blocks` blocks, numbered from 0, all free. `apply(ops, blocks, page)` carries the operations out and returns a list with one event
# for each:
#
# | operation | what happens | event |
# |---|---|---|
# | `("append", request, n)` | `n` more tokens of this request are stored (a request that is not known begins) | `("took", [blocks])`: the blocks that were added to its table, in order; the free block with the lowest number first; maybe `[]` |
# | the same, with too few free blocks | nothing at all changes | `("full", m)`: `m` blocks are missing |
# | `("free", request)` | the request is done | `("gave", [blocks])`: its blocks, in ascending order, which are free from now on |
#
# <details><summary>Hint</summary>
# Keep three things: the free blocks (sorted), a table and a length for each request. How many blocks an append needs follows from the length
# <i>after</i> it and from what the table already has.
# </details>

# %% exercise="apply" provides=["apply"] difficulty=3 minutes=10
def apply(ops, blocks, page):
    """One event for each operation on a pool of blocks."""
    ### BEGIN SOLUTION
    free, tables, lengths, events = list(range(blocks)), {}, {}, []
    for kind, request, *tokens in ops:
        table, length = tables.get(request, []), lengths.get(request, 0)
        if kind == "free":
            events.append(("gave", sorted(table)))
            free = sorted(free + table)
            tables.pop(request), lengths.pop(request)
            continue
        need = -(-(length + tokens[0]) // page) - len(table)
        if need > len(free):
            events.append(("full", need - len(free)))
            continue
        took, free = free[:need], free[need:]
        tables[request], lengths[request] = table + took, length + tokens[0]
        events.append(("took", took))
    return events
    ### END SOLUTION

# %% check="apply" points=3
import random

from inferlab.lab import Check

check = Check("apply", points=3)


def events_of(ops, blocks, page):
    """The learner's events, once there is one for each operation."""
    got = check.learner.apply(list(ops), blocks, page)
    check.true(isinstance(got, list) and len(got) == len(ops), "return a list with one event for each operation")
    check.true(all(isinstance(event, tuple) and len(event) == 2 for event in got), "an event is a tuple such as ('took', [0, 1])")
    return got


with check.part("begin, go on in the same page, take one more", weight=1):
    check.equal(events_of([("append", "a", 5), ("append", "a", 3), ("append", "a", 1)], 8, 4), [("took", [0, 1]), ("took", []), ("took", [2])])
### BEGIN HIDDEN TESTS
def by_hand(ops, blocks, page):
    """The contract, carried out."""
    spare, held, sizes, log = set(range(blocks)), {}, {}, []
    for op in ops:
        if op[0] == "free":
            back = sorted(held.pop(op[1]))
            del sizes[op[1]]
            spare |= set(back)
            log.append(("gave", back))
            continue
        _, who, n = op
        need = -(-(sizes.get(who, 0) + n) // page) - len(held.get(who, []))
        if need > len(spare):
            log.append(("full", need - len(spare)))
            continue
        new = sorted(spare)[:need]
        spare -= set(new)
        held[who] = held.get(who, []) + new
        sizes[who] = sizes.get(who, 0) + n
        log.append(("took", new))
    return log


with check.part("freed blocks come back, the lowest first", weight=1):
    ops = [("append", "a", 8), ("append", "b", 4), ("append", "a", 1), ("free", "a"), ("append", "c", 16)]
    got = events_of(ops, 7, 4)
    check.mistake("blocks that were given back are free again", when=got[4][0] == "full")
    check.mistake("the free block with the lowest number first, whenever it became free", when=got[4] == ("took", [4, 5, 6, 0]))
    check.equal(got, by_hand(ops, 7, 4))
with check.part("a pool that is full", weight=2):
    ops = [("append", "a", 9), ("append", "b", 5), ("append", "a", 4), ("append", "b", 3), ("free", "b"), ("append", "a", 1), ("append", "a", 3)]
    got, want = events_of(ops, 5, 4), by_hand(ops, 5, 4)
    check.mistake("an append that does not fit changes nothing: its tokens are not stored, and no block is taken for them",
                  when=got[:3] == want[:3] and got[3:] != want[3:])
    check.equal(got, want)
with check.part("a long log", weight=2):
    rng = random.Random(4)
    ops, alive = [], []
    for step in range(120):
        if alive and rng.random() < 0.25:
            ops.append(("free", alive.pop(rng.randrange(len(alive)))))
        elif alive and rng.random() < 0.6:
            ops.append(("append", rng.choice(alive), rng.randint(1, 9)))
        else:
            alive.append(step)
            ops.append(("append", step, rng.randint(1, 30)))
    got, want = events_of(ops, 400, 8), by_hand(ops, 400, 8)
    check.mistake("a page that is not full takes the next tokens: not every append needs a block of its own",
                  when=sum(len(e[1]) for e in got if e[0] == "took") > sum(len(e[1]) for e in want if e[0] == "took"))
    check.equal(got, want)
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 5 · Attention through the table
#
# *difficulty 2 of 3 · 8 minutes · 2 points*
#
# `paged_attention(query, keys, values, table, length)`: what one decode step of one request computes in one layer.
#
# | argument | shape, dtype |
# |---|---|
# | `query` | `(heads, head_dim)`, `float32` |
# | `keys`, `values` | `(blocks, page, kv_heads, head_dim)`: the pool of all requests |
# | `table`, `length` | the request's blocks, and how many of their positions are filled |
#
# Returns `(heads, head_dim)`: softmax attention over the request's own positions, scaled by $1/\sqrt{\text{head\_dim}}$. Query head `h` reads KV head `h // (heads // kv_heads)`. It must equal
# contiguous attention to within 1e-5.
#
# <details><summary>Hint</summary>
# <code>keys[table]</code> is (blocks of the request, page, kv_heads, head_dim). Flatten the first two axes, cut off what is not filled,
# and repeat each KV head for its group with <code>repeat_interleave</code>.
# </details>

# %% exercise="attention" provides=["paged_attention"] difficulty=2 minutes=8
def paged_attention(query, keys, values, table, length):
    """Attention of one query over the positions that a block table names."""
    ### BEGIN SOLUTION
    group = query.shape[0] // keys.shape[2]
    own = [pool[list(table)].flatten(0, 1)[:length].repeat_interleave(group, dim=1) for pool in (keys, values)]
    scores = torch.einsum("hd,thd->ht", query, own[0]) / query.shape[1] ** 0.5
    return torch.einsum("ht,thd->hd", scores.softmax(dim=1), own[1])
    ### END SOLUTION

# %% check="attention" points=2
import torch
from inferlab.lab import Check, close

check = Check("attention", points=2)


def contiguous_attention(q, k, v):
    """(heads, dim) from a query and contiguous (length, heads, dim) keys and values."""
    return torch.nn.functional.scaled_dot_product_attention(q[:, None], k.transpose(0, 1), v.transpose(0, 1))[:, 0]


g = torch.Generator().manual_seed(15)
pools = torch.randn(2, 9, 4, 2, 8, generator=g)
asking = torch.randn(6, 8, generator=g)
with check.part("two full blocks, one after the other", weight=1):
    got = check.learner.paged_attention(asking, pools[0], pools[1], [0, 1], 8)
    check.tensor(got, shape=(6, 8), dtype=torch.float32)
### BEGIN HIDDEN TESTS
def expected(table, length, group=3, repeat="interleave"):
    """Attention over the gathered positions, without any page."""
    flat = [pool[list(table)].flatten(0, 1)[:length] for pool in pools]
    wide = [t.repeat_interleave(group, 1) if repeat == "interleave" else t.repeat(1, group, 1) for t in flat]
    return contiguous_attention(asking, *wide)


with check.part("blocks in any order, the last one not full", weight=2):
    for table, length in (([7, 2, 5], 10), ([3], 2), ([8, 0, 1, 4], 13)):
        got = check.learner.paged_attention(asking, pools[0], pools[1], list(table), length)
        check.tensor(got, shape=(6, 8))
        check.mistake("the last block is not full: what lies behind the last position is somebody else's", when=close(got, expected(table, 4 * len(table)), tol=1e-5))
        check.mistake("query heads 0, 1, 2 share KV head 0: repeat_interleave, not repeat", when=close(got, expected(table, length, repeat="tile"), tol=1e-5))
        check.mistake("the keys of a request lie in the blocks of its table, not at the beginning of the pool",
                      when=close(got, expected(range(len(table)), length), tol=1e-5))
        check.close(got, expected(table, length), tol=1e-5)
with check.part("other requests' blocks do not matter", weight=1):
    first = check.learner.paged_attention(asking, pools[0], pools[1], [7, 2], 6)
    other = pools.clone()
    other[:, [0, 1, 3, 4, 5, 6, 8]] = 1e3
    other[:, 2, 2:] = 1e3
    again = check.learner.paged_attention(asking, other[0], other[1], [7, 2], 6)
    check.tensor(first, shape=(6, 8))
    check.true(close(first, again, tol=1e-5), "your result changes with blocks, or places in a block, that are not this request's")
    check.close(first, expected([7, 2], 6), tol=1e-5)
### END HIDDEN TESTS
check.score()

# %% [markdown]
# On the real pool: a random query against request 3's keys in layer 0, through its table and through the contiguous cache.

# %% tags=["demo"]
with when_written("paged_attention"):
    query = torch.randn(shape.num_attention_heads, shape.head_dim, generator=torch.Generator().manual_seed(SEED)).to(keys)
    layer = plain.layers[0]
    wide = [t[0].repeat_interleave(shape.num_attention_heads // shape.num_key_value_heads, 0) for t in (layer.keys, layer.values)]
    contiguous = torch.nn.functional.scaled_dot_product_attention(query[:, None], *wide)[:, 0]
    print(f"largest difference: {float((paged_attention(query, keys, values, held, stored) - contiguous).abs().max()):.0e}")

# %% [markdown]
# ### Exercise 6 · A shared prefix
#
# *difficulty 3 of 3 · 12 minutes · 3 points*
#
# Requests often begin alike: the same instructions, the same document, another question at the end. What a position's keys and values are depends on its token and on **every token before it**. So a
# full page can be shared by two requests if all of their tokens up to the end of that page are the same.
#
# `share(ops, blocks, page)`: operations in, events out, once more; the pool never runs out.
#
# | operation | what happens | event |
# |---|---|---|
# | `("start", request, tokens)` | full pages of the prompt that a running request already holds are shared, from the first page on, until one differs; the rest takes free blocks, the lowest number first | `{"shared": [blocks], "took": [blocks]}`, both in the order of the positions |
# | `("free", request)` | the request no longer uses its blocks | `{"gave": [blocks]}`, ascending: those that nobody uses any more |
#
# Three rules:
#
# * At least one token is left to compute (without a call for it there would be no next token), so of `n` tokens at most `(n - 1) // page` pages are shared.
# * A page that is not full is never shared: its owner will go on writing into it.
# * By the first rule two running requests may hold the same full page in two blocks, because the second had to compute it. Both keep their own (our rule; the library merges the two). Who comes later shares the
#   block that has held the page longest; once that has gone back to the pool, the other.
#
# <details><summary>Hint</summary>
# A dict from <code>tuple(tokens[:end of the page])</code> to the blocks that hold this page says it all: the key contains everything before the page. Engines use a hash that is chained from page to page, which is
# the same thing in less room. Count references for each block; at 0 it is given back and forgotten in that dict.
# </details>

# %% exercise="share" provides=["share"] difficulty=3 minutes=12
def share(ops, blocks, page):
    """One event for each operation on a pool whose full pages may be shared."""
    ### BEGIN SOLUTION
    free, known, references, tables, events = list(range(blocks)), {}, {}, {}, []
    for kind, request, *prompt in ops:
        if kind == "free":
            gave = []
            for block in tables.pop(request):
                references[block] -= 1
                gave += [block] if references[block] == 0 else []
            free = sorted(free + gave)
            known = {key: left for key, held in known.items() if (left := [block for block in held if block not in gave])}
            events.append({"gave": sorted(gave)})
            continue
        tokens, shared = prompt[0], []
        for k in range((len(tokens) - 1) // page):
            key = tuple(tokens[: (k + 1) * page])
            if key not in known:
                break
            shared.append(known[key][0])
        need = -(-len(tokens) // page) - len(shared)
        took, free = free[:need], free[need:]
        tables[request] = shared + took
        for k, block in enumerate(tables[request]):
            references[block] = references.get(block, 0) + 1
            if (k + 1) * page <= len(tokens):
                known.setdefault(tuple(tokens[: (k + 1) * page]), []).append(block)
        events.append({"shared": shared, "took": took})
    return events
    ### END SOLUTION

# %% check="share" points=3
from inferlab.lab import Check

check = Check("share", points=3)


def shares_of(ops, page=4, blocks=40):
    """The learner's events, once there is one dict for each operation."""
    got = check.learner.share([tuple(op) for op in ops], blocks, page)
    check.true(isinstance(got, list) and len(got) == len(ops) and all(isinstance(event, dict) for event in got),
               "return a list with one dict for each operation")
    check.true(all(set(event) in ({"shared", "took"}, {"gave"}) for event in got), "an event has the keys shared and took, or gave")
    return got


ASK = [1, 2, 3, 4, 5, 6, 7, 8]
with check.part("two requests with the same two pages in front", weight=1):
    check.equal(shares_of([("start", "a", ASK + [9]), ("start", "b", ASK + [10, 11])]),
                [{"shared": [], "took": [0, 1, 2]}, {"shared": [0, 1], "took": [3]}])
### BEGIN HIDDEN TESTS
with check.part("the same page behind another beginning", weight=1):
    got = shares_of([("start", "a", ASK + [9]), ("start", "b", [1, 2, 3, 0, 5, 6, 7, 8, 9]), ("start", "c", [5, 6, 7, 8, 9])])
    check.mistake("the same tokens behind other tokens have other keys and values: everything before the page counts",
                  when=got[1]["shared"] != [] or got[2]["shared"] != [])
    check.equal(got, [{"shared": [], "took": [0, 1, 2]}, {"shared": [], "took": [3, 4, 5]}, {"shared": [], "took": [6, 7]}])
with check.part("pages that are not full, and prompts that are known to the end", weight=1):
    got = shares_of([("start", "a", ASK + [9, 10]), ("start", "b", ASK + [9, 10]), ("start", "c", ASK)])
    check.mistake("a page that is not full is never shared: its owner goes on writing into it", when=got[1].get("shared") == [0, 1, 2])
    check.mistake("one token must be left to compute, or there is no next token: the last page of c is its own", when=got[2].get("shared") == [0, 1])
    check.equal(got, [{"shared": [], "took": [0, 1, 2]}, {"shared": [0, 1], "took": [3]}, {"shared": [0], "took": [4]}])
with check.part("reference counts", weight=2):
    ops = [("start", "a", ASK + [9]), ("start", "b", ASK + [10]), ("free", "a"), ("start", "c", ASK + [11]), ("free", "b"), ("free", "c"), ("start", "d", ASK + [9])]
    got = shares_of(ops)
    check.mistake("b still reads the first two blocks: a block is given back when its last reference is gone", when=got[2]["gave"] == [0, 1, 2])
    check.mistake("c found the page while b still held it: it counts as well", when=got[2]["gave"] == [2] and got[4]["gave"] != [3])
    check.mistake("nobody holds those pages any more: they are free, and forgotten", when=got[6].get("shared") == [0, 1])
    check.equal(got, [{"shared": [], "took": [0, 1, 2]}, {"shared": [0, 1], "took": [3]}, {"gave": [2]}, {"shared": [0, 1], "took": [2]},
                      {"gave": [3]}, {"gave": [0, 1, 2]}, {"shared": [], "took": [0, 1, 2]}])
with check.part("one full page in two blocks", weight=1):
    ops = [("start", "a", ASK + [9]), ("start", "b", ASK), ("start", "c", ASK + [10]), ("free", "a"), ("free", "c"), ("start", "d", ASK + [11]), ("free", "b"), ("start", "e", ASK + [12])]
    got = shares_of(ops)
    check.mistake("a and b hold the second page in a block each: the one that has held it longest is shared", when=got[2].get("shared") == [0, 3])
    check.mistake("b still holds the second page, in a block of its own: it is found when the older one has gone back", when=got[5].get("shared") == [0])
    check.equal(got, [{"shared": [], "took": [0, 1, 2]}, {"shared": [0], "took": [3]}, {"shared": [0, 1], "took": [4]}, {"gave": [2]}, {"gave": [1, 4]},
                      {"shared": [0, 3], "took": [1]}, {"gave": []}, {"shared": [0, 3], "took": [2]}])
### END HIDDEN TESTS
check.score()

# %% [markdown]
# The library follows the first two rules. It differs in three things: where a page was computed twice, it notices so as soon as the page is full, gives the request the older block and takes its own back into the pool; it also
# knows the full pages that answers fill; and it keeps known pages even after their last owner has gone, until somebody needs the room. Four questions about one document, two slots, with and without sharing:

# %% tags=["demo"]
document = text[:56]
asking_about = [document + text[100 * k:100 * k + 8 + k] for k in range(1, 5)]
for shared in (False, True):
    shared_run = paged_run(model, asking_about, (6, 9, 5, 4), slots=2, share=shared)
    each = [len({block for table in call.tables.values() for block in table}) for call in shared_run.calls]
    print(f"sharing {shared!s:5}: {sum(call.tokens for call in shared_run.calls):3d} tokens computed, {sum(each) / len(each):.1f} blocks held on average")
    print("    answers begin with", [answer[:3] for answer in shared_run.answers])
display(memory_map([call.tables for call in shared_run.calls], title="Hatched blocks belong to two requests at once"))

# %% [markdown]
# ### Exercise 7 · How many requests fit?
#
# *difficulty 2 of 3 · 7 minutes · 2 points*
#
# `fit(lengths, limit, page, position_bytes, budget)`: requests come in the order of `lengths` (positions that each will fill in the end), and `budget` bytes are there for caches. A position takes
# `position_bytes` in a contiguous cache. Return a `dict` of `int`:
#
# * `"worst"`: how many fit at once if each reserves `limit` positions;
# * `"paged"`: how many fit at once in pages, each with the blocks that it needs in the end, in order until the first that does not fit;
# * `"position"`: the bytes that a position takes in the paged cache.
#
# <details><summary>Hint</summary>
# The pool has <code>budget // (page * position_bytes)</code> whole blocks. For the last key, look at section 3 again.
# </details>

# %% exercise="fit" provides=["fit"] difficulty=2 minutes=7
def fit(lengths, limit, page, position_bytes, budget):
    """How many requests fit into a budget, reserved for the worst case and in pages."""
    ### BEGIN SOLUTION
    blocks, inside = budget // (page * position_bytes), 0
    for length in lengths:
        blocks -= -(-length // page)
        if blocks < 0:
            break
        inside += 1
    return {"worst": min(len(lengths), budget // (limit * position_bytes)), "paged": inside, "position": position_bytes}
    ### END SOLUTION

# %% check="fit" points=2
import random

from inferlab.lab import Check

check = Check("fit", points=2)


def fitting(*args):
    """The learner's three numbers, once they are int."""
    got = check.learner.fit(*args)
    check.true(isinstance(got, dict) and set(got) == {"worst", "paged", "position"}, "return a dict with worst, paged and position")
    check.true(all(type(value) is int for value in got.values()), "all three are int")
    return got


with check.part("room for 64 positions of 100 bytes", weight=1):
    got = fitting([10, 20, 5, 30], 32, 8, 100, 6400)
    check.equal([got["worst"], got["paged"]], [2, 3])
### BEGIN HIDDEN TESTS
dice = random.Random(15)
LONG = [min(8192, int(dice.expovariate(1 / 600)) + 40) for _ in range(1000)]
BUDGET, ROW = 60_000_000_000, 131_072
with check.part("sixty gigabytes for a model of Llama 3 8B's sizes", weight=2):
    got = fitting(list(LONG), 8192, 256, ROW, BUDGET)
    spare_blocks, fitted = BUDGET // (256 * ROW), 0
    for n in LONG:
        spare_blocks -= -(-n // 256)
        if spare_blocks < 0:
            break
        fitted += 1
    check.mistake("whole pages: each request rounds its own length up",
                  when=got["paged"] == next((k for k in range(1000) if sum(LONG[:k + 1]) * ROW > BUDGET), 1000) != fitted)
    check.mistake("in pages a request holds what it fills, not the limit", when=got["paged"] == BUDGET // (8192 * ROW))
    check.equal([got["worst"], got["paged"]], [BUDGET // (8192 * ROW), fitted])
with check.part("a position in the paged cache", weight=1):
    got = fitting([10, 20], 64, 16, 4096, 10**6)["position"]
    check.mistake("paging does not make the cache smaller per token: a page is an arrangement, not a compression", when=got < 4096)
    check.mistake("that is a whole block; asked for is one position", when=got == 16 * 4096)
    check.equal(got, 4096)
### END HIDDEN TESTS
check.score()

# %% [markdown]
# Sixty gigabytes for caches of Llama 3 8B's sizes (131,072 bytes a position), for requests of some 630 positions on average and a limit of 8,192:

# %% tags=["demo"]
import random

with when_written("waste", "fit"):
    rng = random.Random(SEED)
    lengths = [min(8192, int(rng.expovariate(1 / 600)) + 40) for _ in range(2000)]
    for page in (16, 256):
        shares, inside = waste(lengths, 8192, page), fit(lengths, 8192, page, 131_072, 60_000_000_000)
        print(f"pages of {page:3d}: {inside['worst']} requests reserved ({shares['worst']:.0%} empty), {inside['paged']} paged ({shares['paged']:.1%} empty)")

# %% [markdown]
# More requests at once means a larger batch, and the last lab said what that is worth. This is the whole point of paging; a single request gains nothing from it.

# %% [markdown]
# ### Exercise 8 · An allocator goes wrong
#
# *difficulty 2 of 3 · 8 minutes · 2 points*
#
# Here is the log of an allocator with the contract of exercise 4 (`BLOCKS` blocks, pages of `PAGE_SIZE`, but it need not take the lowest free block first). Once, it does something that
# it must not do, and then goes on from there. The fault depends on your name. Nothing crashed; some answers were wrong, or the pool became smaller.

# %%
from inferlab.lab import blockfaults

BLOCKS, PAGE_SIZE = blockfaults.BLOCKS, blockfaults.PAGE
operations, log = blockfaults.suspect(lab.variant(16))[:2]
for at, (operation, event) in enumerate(zip(operations, log)):
    print(f"{at:2d}  {operation!s:22s} {event}")

# %% [markdown]
# Write `diagnose()`: a `dict` with `"event"`, the number of the first wrong event, and `"kind"`:
#
# | kind | what happened |
# |---|---|
# | `"double"` | a block was given to a request while another one still holds it |
# | `"leak"` | a request that was done did not give all of its blocks back |
# | `"early"` | a block was taken although the tokens still fitted into the last one |
# | `"refused"` | an append was refused although there were enough free blocks |
#
# <details><summary>Hint</summary>
# Keep the books yourself, from the events: who holds what, how many tokens each has, which blocks are free. At each event, ask what it may be before you believe it. By hand or by code.
# </details>

# %% exercise="diagnose" provides=["diagnose"] difficulty=2 minutes=8
def diagnose():
    """The first wrong event of the log, and what is wrong with it."""
    ### BEGIN SOLUTION
    free, tables, lengths = set(range(BLOCKS)), {}, {}
    for at, ((kind, request, *tokens), (what, seen)) in enumerate(zip(operations, log)):
        table, length = tables.get(request, []), lengths.get(request, 0)
        if kind == "free":
            if set(seen) != set(table):
                return {"event": at, "kind": "leak"}
            free |= set(seen)
            tables.pop(request), lengths.pop(request)
            continue
        need = -(-(length + tokens[0]) // PAGE_SIZE) - len(table)
        if what == "full":
            if need <= len(free):
                return {"event": at, "kind": "refused"}
            continue
        if len(seen) > need:
            return {"event": at, "kind": "early"}
        if not set(seen) <= free:
            return {"event": at, "kind": "double"}
        free -= set(seen)
        tables[request], lengths[request] = table + seen, length + tokens[0]
    ### END SOLUTION

# %% check="diagnose" points=2
from inferlab.lab import Check

check = Check("diagnose", points=2)


def diagnosis():
    """The learner's diagnosis, once it has its two keys."""
    got = check.learner.diagnose()
    check.true(isinstance(got, dict) and set(got) == {"event", "kind"}, "return a dict with event and kind")
    check.true(got["kind"] in ("double", "leak", "early", "refused"), "the kind is double, leak, early or refused")
    return got


with check.part("the form of the answer", weight=0):
    diagnosis()
### BEGIN HIDDEN TESTS
from inferlab.lab.blockfaults import suspect

steps, seen_events, wrong_at, wrong_kind = suspect(check.variant(16))
with check.part("the event", weight=1):
    at = diagnosis()["event"]
    check.mistake("that event follows from the fault; the fault is earlier", when=isinstance(at, int) and at > wrong_at)
    check.mistake("that event is in order: the books still agree after it", when=isinstance(at, int) and at < wrong_at)
    check.equal(at, wrong_at)
with check.part("the kind", weight=1):
    check.equal(diagnosis()["kind"], wrong_kind)
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 6 · Explain
#
# *difficulty 2 of 3 · 10 minutes · 6 points: 3 for the typed lines, 3 for the sentences*
#
# A colleague says: "With paging the cache needs fewer bytes per token, so a long answer gets cheaper." Set it right, with the run of section 3: requests of 45, 37, 70 and 21 prompt tokens with 12, 20, 6 and 30 new ones, and pages of 16.
#
# | line | what it says |
# |---|---|
# | `state:` | one or two sentences: which object says where a request's keys and values lie, and what it maps to what |
# | `axis:` | one or two sentences: which axis of the cache is cut into pages, and how many positions and blocks the last request (21 prompt tokens, 30 new) holds in its last call |
# | `trade-off:` | one or two sentences: what smaller pages gain, and what they cost |
# | `per-token:` | typed: bytes of one position in the bundled model's paged cache (float32, all layers) |
# | `blocks:` | typed: blocks in the tables of all four requests, added up, each table as it is in its request's last call |
# | `gain:` | typed, in the form of `compute up`: what smaller pages improve (memory, waste, time, tables, ...) |
# | `cost:` | typed: what they make worse |

# %% explain="pages-in-words" difficulty=2 minutes=10
# %%explain pages-in-words
# ### BEGIN SOLUTION
# state: The block table maps each page of a request's positions to a block of the pool, so it says where the keys and values lie.
# axis: The token axis is cut into pages of 16, so the last request holds 50 positions in 4 blocks.
# trade-off: Smaller pages waste less memory, because only the last page of a request is partly empty, but the tables get longer.
# per-token: 4096
# blocks: 17
# gain: memory down
# cost: time up
# ### END SOLUTION

# %% check="pages-words-per-token" of="pages-in-words" points=1
from inferlab.lab import Check, reference

check = Check("pages-words-per-token", points=1)
with check.part("`per-token:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("pages-in-words").get("per-token"), "`per-token:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import typed


@reference
def position_bytes():
    """Bytes of a position over all layers, from the memory of a real paged cache."""
    from inferlab.lab.blocks import paged_run, pool_of
    from inferlab.models import load_language_model

    model, _ = load_language_model("bundled", "cpu")
    cache = paged_run(model, [[7, 8]], [2], 1, page=16).cache
    return sum(t[0].nbytes for layer in range(model.config.num_hidden_layers) for t in pool_of(cache, layer)) // 16


with check.part("bytes of one position"):
    told, want = check.explanation("pages-in-words"), position_bytes()
    check.mistake("paging does not make the cache smaller per token", when=typed(told, "per-token", want // 16).verdict == "award")
    check.mistake("that is one layer; a position is stored in all of them", when=typed(told, "per-token", want // 8).verdict == "award")
    check.mistake("the query heads are not stored: count the KV heads", when=typed(told, "per-token", want * 4).verdict == "award")
    check.mistake("keys and values: two tensors", when=typed(told, "per-token", want // 2).verdict == "award")
    outcome = typed(told, "per-token", want)
    check.true(outcome.verdict == "award", outcome.reason)
### END HIDDEN TESTS
check.score()

# %% check="pages-words-blocks" of="pages-in-words" points=1
from inferlab.lab import Check

check = Check("pages-words-blocks", points=1)
with check.part("`blocks:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("pages-in-words").get("blocks"), "`blocks:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import typed

with check.part("blocks of all four"):
    told = check.explanation("pages-in-words")
    positions = [p + n - 1 for p, n in ((45, 12), (37, 20), (70, 6), (21, 30))]
    want = sum(-(-n // 16) for n in positions)
    check.mistake("each request rounds up on its own: two requests never use one page together",
                  when=typed(told, "blocks", -(-sum(positions) // 16)).verdict == "award" and -(-sum(positions) // 16) != want)
    check.mistake("those are the prompts alone; the answers are stored as well", when=typed(told, "blocks", 3 + 3 + 5 + 2).verdict == "award")
    outcome = typed(told, "blocks", want)
    check.true(outcome.verdict == "award", outcome.reason)
### END HIDDEN TESTS
check.score()

# %% check="pages-words-gain-cost" of="pages-in-words" points=1
from inferlab.lab import Check

check = Check("pages-words-gain-cost", points=1)
with check.part("`gain:` and `cost:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("pages-in-words").get("gain"), "`gain:` is empty")
    check.true(check.explanation("pages-in-words").get("cost"), "`cost:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import typed

words = {"waste": "waste, fragmentation, internal fragmentation, empty positions, unused memory, unused positions, empty memory, wasted memory",
         "table": "table, tables, block table, block tables, table length, table size, entries, table entries, lookups, look-ups, bookkeeping, indirection, "
         "overhead, block count, number of blocks, blocks, table memory, block table memory, memory for tables, memory for the tables",
         "bandwidth": "bandwidth, memory bandwidth, read speed, reading speed",
         "sharing": "sharing, shared pages, prefix sharing, shared prefixes", "batch": "batch, batch size, requests, requests at once, capacity"}
gains = ("waste down", "memory down", "batch up", "sharing up", "throughput up")
check.slot(lambda: typed(check.explanation("pages-in-words"), "gain", gains, terms=words), "what smaller pages gain")
costs = ("table up", "time up", "latency up", "speed down", "bandwidth down")
check.slot(lambda: typed(check.explanation("pages-in-words"), "cost", costs, terms=words), "what smaller pages cost")
### END HIDDEN TESTS
check.score()

# %% check="pages-words-state" of="pages-in-words" points=1
from inferlab.lab import Check

check = Check("pages-words-state", points=1)
with check.part("`state:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("pages-in-words").get("state"), "`state:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import Rubric, Slot, grade

RUBRIC = Rubric(
    question="With paging the cache needs fewer bytes per token, so a long answer gets cheaper. Which object says where a request's keys and values "
    "lie, and what it maps to what.",
    lab="It is virtual memory once more: positions are addresses, the block table translates them, and two tables may name the same block. For each "
    "request the numbers of its blocks, in the order of its positions. Nothing but the table knows the order.",
    terms={
        "table": "block table*, table*, page table*, blocktable*, block_table, list, lists, block list*, per-request list*, list of blocks, list of block numbers, list of numbers, lookup table*, "
        "look-up table*, page-to-block table, array of block numbers, request's list, entry, entries",
        "blocks": "block*, physical block*, physical page*, pool block*, block number*, block id*, block index, block no, numbered block*, physical place*, physical location*, physical address*, frame*, "
        "physical frame*, memory place*, memory block*, memory address*, place in memory, places in memory, location in memory, where in memory, memory location*, place in the pool, number of its block, number of the block, where, place*, location*, address*, slot*",
        "positions": "position*, page*, logical page*, logical block*, logical position*, logical place*, logical index, token*, token position*, page number*, page index, page indices, virtual page*, place of a token",
        "keys": "keys, values, keys and values, key and value, k and v, k/v, kv, kv pair*, kv cache",
        "refcount": "reference count*, refcount*, ref count*, counter*",
        "scheduler": "scheduler*, allocator*, batcher",
        "model": "model, attention, attention layer*, attention kernel, transformer, mask, attention mask, position embedding*, positional encoding*, rotary embedding*, tokenizer, embedding table",
        "heads": "head, heads, weights, weight, layer's weights, head_dim, kv heads, query heads",
        "layers": "layer*",
    },
    slots={
        "state": Slot(
            learned="lab15 state 3027f1849271aabd",
            award=[
                "table maps/turns/converts/transforms/translates/predicts/shows/keeps/makes/controls/finds/obtains/matches blocks",
                "table maps/turns/converts/transforms/translates/predicts/shows/controls/finds/takes/matches positions",
                "table maps/tells/says/shows/tracks/records/indicates/determines/gives/finds/knows keys",
                "positions predicts/matches/maps/translates/turns/converts/becomes blocks",
                "* translates/maps/converts/turns positions",
                "says: page/pages/position/positions/token/tokens/index .. to/into/with/by/in/from .. block/blocks/place/frame, which/what block, block/place where/that/which .. it/they/page/pages/keys/position/lies/lie/sits/stored/is/holds, "
                "number/id/index/numbers/ids of .. block/blocks/place, block numbers/number/ids/id/no/index, list of .. blocks/numbers/ids, block of .. page/first/its/16/next, there stands the block, block .. stands, tells/gives/hands/shows/returns you/me/us .. block/blocks/place, entry/entries .. names/is/gives/holds/stores/contains .. block/blocks/number/numbers, "
                "links/assigns/points/associates/connects/refers/relates/resolves/indexes/names .. page/pages/position/positions/block/blocks, positions/position/page/pages .. are/is/can be looked up",
            ],
            deny={
                "table compresses/shrinks/reduces positions": "The table makes nothing smaller: it says where things are.",
                "table compresses/shrinks/reduces blocks": "The table makes nothing smaller: it says where things are.",
                "table compresses/shrinks/reduces keys": "The table makes nothing smaller: it says where things are.",
                "scheduler changes/decodes/predicts/shows/keeps/controls positions": "The scheduler decides who runs; where the keys lie is written in another object.",
                "scheduler changes/decodes/predicts/shows/keeps/controls blocks": "The scheduler decides who runs; where the keys lie is written in another object.",
                "scheduler predicts/shows/keeps/controls keys": "The scheduler decides who runs; where the keys lie is written in another object.",
                "model changes/decodes/predicts/shows/keeps/controls positions": "The model knows positions only. What says where they lie?",
                "model changes/decodes/predicts/shows/controls blocks": "The model knows positions only. What says where they lie?",
                "refcount maps/translates/tells/says/shows/knows/decides/tracks/records positions": "A reference count says how many have a block, not where anything lies.",
                "refcount maps/translates/tells/says/shows/knows/decides/tracks/records blocks": "A reference count says how many have a block, not where anything lies.",
                "refcount maps/translates/tells/says/shows/knows/decides/tracks/records keys": "A reference count says how many have a block, not where anything lies.",
                "table maps/translates/converts layers": "One table serves all layers and heads: it knows positions and blocks.",
                "table maps/translates/converts heads": "One table serves all layers and heads: it knows positions and blocks.",
                "blocks predicts positions": "The other way round: the table is asked with a position, and answers with a block.",
                "says: block/blocks/number/numbers back to, block/blocks .. back to, number/numbers .. back to, physical .. to .. logical, physical .. into .. logical, block/blocks/frame/frames to the page/pages/position/positions/token/tokens/request, "
                "block/blocks to page/pages/position/positions/token/tokens/logical/its/request/requests/owner, block number/numbers to .. page/pages/position/positions/token/tokens/request/requests, "
                "block/blocks/frame .. to .. request/owner that/which owns, each/every/a block .. to .. request, block .. into .. position/positions/page/pages, "
                "who owns the block": "The other way round: the table is asked with a position, and answers with a block.",
                "says: how many blocks/positions/tokens, may still generate, will still generate, which blocks are empty/free/used/unused, order in which requests, next block, linked list, maps files, files to, driver, config, table of the layer, table of that layer, how many requests, how many users, how often, how long, words of the prompt, equal words/tokens, same words/tokens lie, counts how, counts the, page table of the operating, of the operating system": "It says where, not how often or for whom.",
                "says: contiguous again, blocks are moved/shifted/compacted/packed, no gaps, without gaps, blocks are/is thrown, evicts, decides which blocks/block, throws .. away, blocks together, moves/shifts/slides/packs the .. blocks, moves/shifts/copies blocks, moves/shifts/copies .. keys/values, compacts, defragments": "Nothing is moved: the blocks of a request may lie anywhere.",
                "says: one/single/same/common/global table for all/every/everyone requests/request/users/user/of/together, one/the/same table for everyone, requests/users have/share/use one/a/the/same table, requests/users have/share/use the same table, table .. in common, table .. shared by all requests/users, global/common table, "
                "same block for everyone, same block for all/every": "Each request has a table of its own: page 0 of two requests lies in two blocks, unless they share it.",
                "says: token/tokens/key/keys/position/positions/cache smaller, fewer/less/smaller bytes, less memory per": "The table makes nothing smaller: it says where things are.",
                "says: free list, list of free, list of the free, next free block, lowest free block": "The list of free blocks says nothing of who holds what.",
                "says: table of each/every layer, table per/for layer, table per/for each/every/a layer, each/every layer has/keeps .. table, each/every layer .. own table, layer .. own table/list, layer .. has its own, table of each/every head, table per head": "One table a request serves all layers and heads.",
                "says: table holds/stores/contains the/its/all/their keys/values, table holds/stores/contains keys/values, stores/holds/contains the keys and values themselves, table .. copy/copies .. keys/values": "The table holds numbers of blocks; keys and values lie in the blocks.",
                "says: there's/is no table, has/have no table/lookup, no block table, next to each other, side by side, position times size, start address, no table at all, no table needed, no table is needed, no lookup is needed, don't/doesn't/needn't need a/any lookup/table, blocks .. in order one after, lie in order, blocks .. one after the other, "
                "lie/lies/sit/sits/stored contiguously, in one contiguous": "The blocks of a request lie anywhere: only its table knows where.",
            },
            names=["table", "blocks"],
            topic=["positions", "keys"],
            loose=True,
        )
    },
    must_award={
        "state": [
            "The block table maps each page of positions to a physical block.",
            "For each request a block table holds the numbers of its blocks, in the order of the positions.",
            "you ask the request's block table for page 3 and it hands you the number of the block in the pool",
            "It is the list of blocks of the request, it translates the position of token in number of block.",
            "The block table of the request: you ask it for page 2 and it tells you block 9.",
            "In the block table of a request the entry of a page is the number of its block, and all layers share this table.",
        ]
    },
    must_deny={
        "state": [
            "The scheduler translates positions into blocks.",
            "The model maps the positions to the blocks.",
            "The block table compresses the keys and shrinks the tokens.",
            "The block table maps each block of the pool back to the position that it holds.",
            "Each layer has its own block table, which maps the heads to blocks.",
            "The reference count says which blocks hold the positions of a request.",
            "The block table maps pages to blocks, and all requests share one table.",
            "The block table maps the positions to blocks, and it moves the blocks so that they are contiguous again.",
            "The block table says how many tokens the request may still generate, and so which blocks it needs.",
        ]
    },
)
check.slot(lambda: grade(check.explanation("pages-in-words"), RUBRIC, {})["state"], "what says where keys and values lie")
### END HIDDEN TESTS
check.score()

# %% check="pages-words-axis" of="pages-in-words" points=1
from inferlab.lab import Check

check = Check("pages-words-axis", points=1)
with check.part("`axis:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("pages-in-words").get("axis"), "`axis:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import Amounts, Rubric, Slot, grade

RUBRIC = Rubric(
    question="Which axis of the cache is cut into pages, and how many positions and blocks the last request (21 prompt tokens, 30 new) holds in its last call.",
    lab="A page: so many positions are kept together. A block: a place for one page in memory, for all layers. The last token is never stored.",
    terms={
        "axis": "token axis, token*, sequence*, sequence axis, position axis, position dimension, positions axis, positional axis, time axis, length, length axis, token dimension, sequence dimension, sequence length, axis of tokens, "
        "axis of the tokens, axis of positions, axis of the positions, axis of token positions, tokens axis, context axis, context*, time dimension, temporal axis, token positions, token position, dimension of token positions, "
        "axis of position, axis of positions of tokens, position-axis, positions get, positions are cut, positions are split, positions are divided, positions are grouped, positions are chopped, cut along positions, cut along the positions, along positions, along the positions, sequence/position axis, seq axis, seq, seqlen, seq_len, along its positions, along their positions, by positions, by position, positions that get, positions that are, positions which are, positions which get, positions being, positions are being, positions are what, positions is what, positions are chunked, positions are sliced, positions are partitioned, positions are paged, positions are put, positions cut, positions split, positions in pages, positions into pages, positions and these, positions and they, cut the positions, cuts the positions, cutting the positions, split the positions, splits the positions, divide the positions, divides the positions, positions not the heads, positions not heads, positions not layers, positions gets, position is cut, position gets",
        "spared": "neither the heads, neither heads, neither the head axis, nor the heads, nor heads, nor the head axis, nor head_dim, neither the layers, neither layers, nor the layers, nor layers, nor the batch, neither the batch",
        "whole": "tokens but only, tokens but just, tokens but 50, tokens of which 50, tokens of which only, tokens but the last one is never, tokens but the last one is not, tokens but the last one isn't, tokens but the last is never, tokens but the last is not, tokens but the last isn't",
        "short": "blocks are only, blocks are just, blocks have only, blocks hold only, blocks only hold, blocks only have, blocks can hold only, blocks can only hold, blocks have place only, blocks have room only, blocks have place for only, blocks have room for only, blocks would be, blocks would only, blocks would hold, blocks would have, blocks are not enough, blocks are too few, blocks were not enough, blocks would not",
        "blocks": "block*",
        "positions": "position*, filled position*, spots, spot, slots, slot, places, rows, entries, stored tokens, cached tokens, \"filled\", \"stored\"",
        "pages": "page*",
        "full": "full page*, full block*, whole page*, whole block*, complete page*, complete block*, filled page*, filled block*, completely filled, blocks completely, blocks fully, blocks entirely",
        "new": "prompt token*, new token*, prompt position*, new, new ones, generated token*, generated, prompt, output token*, answer token*, fed back, more, of prompt, from prompt, from the prompt",
        "free": "empty, free, empty position*, free position*, unused, left over, empty slot*, free slot*, positions free, positions empty, positions unused, positions are empty, positions are free, empty places, free places, places unused",
        "heads": "head, heads, head axis, heads axis, axis of the heads, axis of heads, head dimension, head_dim, kv heads, query heads, head_dim axis",
        "layers": "layer*, layer axis, layers axis, layer dimension, axis of the layers",
        "batch": "batch*, batch axis, batch dimension, request axis, requests axis, axis of the requests, axis of requests, request dimension, axis of the batch",
    },
    slots={
        "axis": Slot(
            learned="lab15 axis c0e780fec3d98c6e",
            topic=["axis"],
            amounts=Amounts(
                shapes=["keys of the pool"],
                counts={"blocks": [4, 16, 17, 48, 50, 3.125], "positions": [50, 16, 14, 2, 64, 48, 21], "pages": [4, 16], "axis": [50, 16, 21, 29, 30, 20, 49, 2, 14], "free": 14, "full": 3, "new": [21, 29, 30, 20, 50, 1, 49, 51, 3.125], "short": [3, 48, 4], "whole": [51, 50]},
                key=["blocks=4", "pages=4", "axis=4", "short=4"],
            ),
            deny={
                "* splits/cuts/divides/slices/chops/partitions heads": "The heads stay whole: what is cut is the axis along which the cache grows.",
                "* splits/cuts/divides/slices/chops/partitions layers": "A block is for all layers: what is cut is the axis along which the cache grows.",
                "* splits/cuts/divides/slices/chops/partitions batch": "Each request has pages of its own: what is cut is the axis along which the cache grows.",
                "says: head/heads/layer/layers/batch/hidden/feature/channel/block axis/dimension that gets/is, head/heads/layer/layers/batch/hidden/feature/channel axis/dimension is/gets cut/split/divided/chopped/sliced/paged/partitioned, is/it's the kv head/heads, is/it's the query/value/key/hidden/feature/cache/block, query/value/key/cache axis/dimension, heads/layers are/get cut/split/divided/chopped/sliced/paged/partitioned, axis is the head/heads/layer/layers/batch, is the head/heads/layer/batch axis, it's the head/heads/layer/batch axis, rather the head/layer/batch axis, along the head/heads/layer/layers/batch axis, "
                "axis/dimension of the head/heads/layers/batch/requests is/gets cut/split/divided/chopped/sliced/paged/partitioned, axis/dimension .. one of the head/heads/layers/batch/requests, the one of the head/heads/layers/batch, "
                "along the heads/layers/batch, one page per layer/head, page per layer/head, page for each/every layer/head": "The heads and the layers stay whole: what is cut is the axis along which the cache grows.",
                "says: 50 blocks, in/into/and/has/holds/needs/takes/with/are 16/17/48/64 blocks": "50 positions, 16 to a block: how many blocks is that?",
                "says: side by side, next to each other, one behind the other in memory, lie/lies/are contiguous, contiguous in memory, in the order of their numbers": "The blocks of a request lie anywhere: only its table knows where.",
                "says: always full/filled, blocks are all full, all blocks are full, holds/has/stores/fills 64 positions/tokens, 64 positions/tokens in its/the last": "The last block is hardly filled: 64 places, of which 50 are taken.",
                "says: holds/hold/has/have/stores/needs/with/fills/occupies only/just 21/29/30 positions/tokens, holds/hold/has/have/stores/needs/with/fills/occupies 21/29/30 positions/tokens, holds/hold/stores/fills/occupies/needs 51 positions/tokens, 51/21/29/30 positions/tokens in/and 4/four, 51 positions/tokens are stored/held/cached": "The prompt and the new tokens are stored, all but the last one.",
            },
            loose=True,
        )
    },
    must_award={
        "axis": [
            "The token axis is cut into pages of 16, so the last request holds 50 positions in 4 blocks.",
            "It is the sequence axis that is cut; the last request has 50 positions, which need 4 blocks.",
            "tokens get chopped in 16s, heads and layers stay whole. 21 + 29 = 50 are stored, that's 4 blocks",
            "Sequence axis: 50 positions, 4 blocks (14 places of the last stay empty).",
            "The axis of the token positions is divided; in last call are 50 positions filled, this needs 4 blocks.",
            "It's the positions that get cut into pages, neither the heads nor the layers. 50 positions, 4 blocks in its last call.",
            "The position axis is cut; the last request holds 50 positions (21 + 30 - 1) and needs 4 blocks, because 3 blocks are only 48.",
        ]
    },
    must_deny={
        "axis": [
            "The token axis is cut into pages, and the last request holds 51 positions in 5 blocks.",
            "The token axis is cut, so the request holds 30 positions in 2 blocks.",
            "The sequence axis is cut into 50 blocks.",
            "The token axis is split and the last request holds 3 blocks.",
            "The heads axis is cut into pages, with 50 positions in 4 blocks.",
            "One page per layer along the layer axis, 50 positions and 4 blocks.",
            "The axis that is cut is the one of the heads; the last request has 50 positions in 4 blocks.",
            "The token axis is cut, and the last request holds 21 positions in 4 blocks.",
            "The token axis is cut. The last request has 51 tokens, which are 4 blocks.",
            "The sequence axis is cut. The last request has 50 positions in 16 blocks.",
            "The axis of the requests is cut; 50 positions and 4 blocks.",
            "The token axis is cut; each of the 4 blocks is always filled, so there are 64 positions.",
        ]
    },
    example_facts={"keys of the pool": (66, 16, 2, 32), "positions": 50, "blocks": 4, "page": 16},
)
check.slot(lambda: grade(check.explanation("pages-in-words"), RUBRIC, RUBRIC.example_facts)["axis"], "which axis is cut, with its numbers")
### END HIDDEN TESTS
check.score()

# %% check="pages-words-trade-off" of="pages-in-words" points=1
from inferlab.lab import Check

check = Check("pages-words-trade-off", points=1)
with check.part("`trade-off:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("pages-in-words").get("trade-off"), "`trade-off:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import Rubric, Slot, Trend, grade

RUBRIC = Rubric(
    question="What smaller pages gain, and what they cost.",
    lab="A paged cache makes less of it lie empty. Only the last block has empty positions: less than a page. A page is an arrangement, not a compression.",
    terms={
        "page": "page*, page size, block size, page granularity, granularity, slice*, pages are more small, more small pages, page is more small, more small page",
        "waste": "waste*, wasted memory, wasted positions, wasted space, wasted room, wasted tail, tail waste, fragmentation, internal fragmentation, slack, leftover*, remainder, unfilled remainder, unfilled positions, unfilled places, "
        "empty position*, empty place*, empty slot*, empty space, empty memory, empty room, empty part, empty rows, stay empty, lie empty, lies empty, lying empty, stays empty, left empty, sits empty, half-empty, partly empty, partially filled, half-filled, "
        "unused position*, unused place*, unused slot*, unused memory, unused space, unused room, unused tail, unused part, memory that nobody uses, memory nobody uses, reserved but unused, vacant position*, vacant place*, vacancy, "
        "overallocation, over-allocation, overhang, space lost, memory lost, room lost, places lost, positions lost, lost in the last, unused rest, rest of the last block, rest of the last page, rest of the block, unused, lost places, lost positions, lost memory, lost space, padding, reservation, reserved memory, reserved for nothing, idle memory, dead space, holes, tail, gaps, thrown away, throw away, half a page, half a block, part of a page",
        "table": "table*, block table*, table length, table size, entries, entry, table entries, table entry, lookup*, look-up*, look up*, bookkeeping, administration, indirection*, metadata, block number*, numbers, blocks to look up, blocks to track, blocks to manage, "
        "blocks to gather, number of blocks, block count, overhead, pages have to be, pages must be, pages to be, pages per, pages need to be, many more pages, many more blocks, pages to manage, pages to look up, pages to track, pages to gather, pages per request, blocks per request, blocks per table, list, lists, longer list, index entries, indirect reads, translation*, accounting, management, blocks to search, search, "
        "scattered accesses, scattered memory accesses, scattered reads, scattered memory access, pointers, pointer chasing, bookkeeping work, admin, address translation*, allocations, looking .. takes more time, looking .. takes longer, lookup .. takes more time, gathering .. takes more time, gathering .. takes longer, reading .. takes more time, reading .. takes longer, finding .. takes more time, finding .. takes longer, looking things up",
        "small": "small page*, tiny page*, little page*, small block*, pages of, page of, pages of 16, page of 16, pages of 256, page of 256, large page*, big page*",
        "capacity": "capacity, requests at once, batch, batch size, bigger batch, number of requests, \"requests\", \"users\", concurrent requests, number of concurrent requests, number of users, concurrency, sequences at once, requests fit, users fit, additional requests, same memory, same room, same space, same gpu, the same memory, the same room, the same space, the same gpu, memory utilisation, memory utilization, utilisation, utilization, share of memory, share of the memory, share of used memory, memory efficiency, occupancy, memory is used, run at the same time, at the same time, more of the memory is, more of the memory really, more memory is really, more of it is really",
    },
    slots={"trade-off": Slot(
        learned="lab15 trade-off 0f7a2904c6517890",
        trend=Trend("page", gain={"waste": "up", "memory": "up", "capacity": "down"}, cost={"table": "down", "time": "down"}, asked="down",
                    says={
                        "waste down": "less is left, less left unused/empty, leaves/leave less unused/empty, at most a few, few positions/places/slots empty/unused/free, memory is used better, memory used better, better use of memory, better memory use/usage, uses/use memory better, space is saved, saves space/room, room is saved, less is/gets lost/wasted/unused/empty, less lost/wasted, reserves/reserve less, only few positions/places/slots, only a few positions/places/slots, less than one page/block .. lost/empty/wasted, less than one small page/block, last block/page is fuller, blocks/pages are fuller, fuller blocks/pages, tighter packing, packs tighter, packed tighter, only what it needs, only what they need, what it really needs, fits/fit more tightly/closely, tighter fit, not holding onto memory, not hold memory, nearly/almost no waste, hardly any waste, hardly anything wasted, nothing is wasted, bounds the .. tail, bounds the .. waste, almost nothing stays empty, little waste, less/fewer places/positions/slots/spots/rows/room/space/memory empty/unused/idle/vacant, less/fewer places/positions/slots/spots/rows/room/space/memory is/are/stays/stay/lies/lie/sits/sit/remains/remain empty/unused/idle/vacant, memory more efficiently, memory .. not used becomes/gets less, memory .. unused becomes/gets less, remainder/tail/rest .. shrinks, remainder/tail/rest .. is/gets/becomes smaller/shorter",
                        "capacity up": "larger/bigger batch fits, improves/improve/better/higher .. utilisation/utilization/occupancy/efficiency, more requests fit, more users fit, more requests enter, more requests can enter/run/fit, room for more, room for additional, cram more, leaves room for, squeeze in more, serve more, admit more, more requests can be admitted",
                        "table up": "more blocks to keep/look/manage/store/read/find/follow/visit, tables/table become/becomes/is/are/get/gets long/longer/big/bigger/large/larger, follow/follows more of, more block numbers, more numbers in, longer table/tables, bigger table/tables, larger table/tables, table/tables longer, table/tables bigger, long table, long tables, many small blocks, many more blocks, multiply the .. entries, more to look up, more to keep track of, more to manage, more to administer, more jumping/hopping, more places to look, in little pieces, in small pieces, in shorter parts, in shorter pieces, shorter runs, shorter contiguous runs, less contiguous, gets choppy, get choppy, get scattered, gets scattered, scattered over, more scattered, choppy, hopping/jumping around, more scattered, shorter reads, smaller reads, hand/hands out .. more often, ask/asks for .. more often, ask/asks more often, block/blocks/page/pages .. more often, taken/allocated/requested/needed/fetched more often, allocate/allocates/take/takes/fetch/fetches .. more often, more blocks have/must/need, more pages have/must/need, worsens/raises the overhead, overhead .. worse, shorter contiguous, in shorter parts, more rows, the more blocks/entries/pages/lookups, gather/gathers/read/reads/fetch/fetches/look/looks .. more places/pieces/blocks/pages, looking/lookup/lookups/gathering/reading/finding .. takes/take more time, looking/lookup/lookups/gathering/reading/finding .. takes/take longer",
                        "memory down": "memory that would otherwise be reserved, memory nobody uses",
                    }),
        deny={
            "says: compress/compresses/compressed/shrink/shrinks the keys/values/tokens, compress the cache, compresses the cache, fewer/less/smaller bytes per/each/a/every token, less memory per/for/each/every token, less memory for each/every token, token needs/takes less/fewer, "
            "make/makes each/every/a/the token/tokens/position/positions smaller/cheaper, memory per/a token/position, memory of each/a/every token/position, reduce/reduces/lower/lowers/shrink/shrinks/cut/cuts/fewer the bytes .. token/tokens/position/positions, bytes of each/a/every token/position, token gets cheaper/smaller, tokens get cheaper/smaller, cheaper/smaller per token, position takes/needs less/fewer, bytes per token go/goes/fall/drop/shrink, loses precision, precision, accuracy, less accurate, fewer/less flops, less computation, quality": "A page is an arrangement: a position takes the same bytes, and the result is the same.",
        },
    )},
    must_award={
        "trade-off": [
            "Smaller pages waste less memory, but the block tables get longer.",
            "With smaller pages the fragmentation falls, but there are more table entries.",
            "you leave less of the last block empty so more requests fit, you pay with longer tables",
            "Less unused space per request. More lookups.",
            "Larger pages waste more memory but need fewer table entries.",
            "More requests fit into the same memory, but the allocator has to hand out blocks more often.",
            "Finer pages raise the memory utilisation; the overhead of the table gets larger.",
            "Small pages leave fewer places empty. The price is that the table has more entries.",
            "Less memory lies unused. The cost is that more pages have to be managed.",
            "More requests run at the same time, because less is wasted, but the table needs more entries.",
        ]
    },
    must_deny={
        "trade-off": [
            "Smaller pages waste more memory, but the tables get shorter.",
            "Smaller pages raise the waste and shorten the tables.",
            "Larger pages waste less memory but need more table entries.",
            "With smaller pages the fragmentation rises and the number of table entries falls.",
            "Smaller pages compress the keys, so each token gets cheaper; the cost is precision.",
            "Smaller pages leave more of the last block empty, but the tables are shorter.",
            "Smaller pages reduce the bytes that each token takes, but they need longer tables.",
            "Smaller pages reduce the memory per token, but they need more lookups.",
            "Small pages waste more memory, with pages of 4 each request loses more. There are fewer entries to look up.",
        ]
    },
)
check.slot(lambda: grade(check.explanation("pages-in-words"), RUBRIC, {})["trade-off"], "what smaller pages gain and cost")
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7 · Notice
#
# - **Paging does not make the cache smaller per token.** A position takes the same bytes. What shrinks is what lies empty: less than one page a request, whatever the limit.
# - **Nobody has to know the length.** Room is taken when the next position no longer fits, so the limit of an answer costs nothing until it is reached.
# - **Order lives in the table, not in memory.** Therefore nothing is moved when requests come and go, and therefore attention has to look every page up.
# - **A shared page is a matter of everything before it.** Equal tokens behind another beginning have other keys and values.
# - **A block goes back with its last reference.** Too early, and somebody reads another's memory without an error; never, and the pool melts away.
# - **The gain is a larger batch.** One request alone in the machine gains nothing from pages.
#
# Say it out loud, as in an interview: name the table, the axis that it cuts, and what a page size trades. These are facts of transformers 5.17 to 5.24; the annotated source says so when your version
# differs.

# %% [markdown]
# ## 8 · Check and hand in
#
# Run this cell last. It runs the visible checks again, says what is missing, and leaves one file to hand in.

# %% tags=["demo"]
from inferlab.lab import submit

submit()
