# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Lab 18 · One model on several devices
#
# A model that does not fit, or does not answer fast enough, is split. There are two ways: cut every layer
# into slices (tensor parallelism, **TP**), or give whole layers to different devices (pipeline parallelism,
# **PP**). Each takes one line of configuration, but they change one user's waiting time in very different
# ways.
#
# In this lab you run the bundled model on two real processes in both ways, count every exchange between them,
# build a split layer by hand, schedule a pipeline tick by tick, and then decide how to split a machine of
# your own.
#
# **Time** 65 to 85 minutes · **Points** 25, of which 5 are practice · **Reading**
# [One model on several devices](../../handbook/lab18-parallelism.md) in the handbook, before you start

# %% tags=["parameters"]
LEARNER = ""  # your name or id, as your course knows you
MODEL = "bundled"  # "bundled" | "full" | "hub"
DEVICE = "auto"  # "auto" | "cpu" | "cuda"
SEED = 7

# %%
from inferlab.lab import start

lab = start("lab18-parallelism", LEARNER, MODEL, DEVICE, SEED)

# %% [markdown]
# This lab starts two processes, called *ranks*. With two GPUs (and `DEVICE` not `"cpu"`) each rank has a GPU,
# and they exchange data over NCCL; otherwise both run on the CPU and use gloo. The ranks load the bundled
# weights, or with `"hub"` the downloaded ones. `"full"` has no weights that two processes could load, so it
# uses the bundled model here. Grading starts no ranks: it calls your functions.

# %%
import torch
from inferlab.models import load_language_model

torch.set_grad_enabled(False)
model, tokenizer = load_language_model("bundled" if MODEL == "full" else MODEL, lab.device)
config = model.config
ids = tokenizer("a red circle moves left and a blue square moves up").input_ids
print(f"{config.num_hidden_layers} layers, width {config.hidden_size}, MLP {config.intermediate_size}, "
      f"{config.num_attention_heads} query and {config.num_key_value_heads} key/value heads of "
      f"{config.head_dim}; prompt of {len(ids)} tokens")

# %% [markdown]
# The next cell starts the two ranks in the background. Each loads its part of the model three times, split in
# three ways. They work while you read; section 3 collects the results.

# %% tags=["demo"]
from inferlab.lab.kits.parallel.ranks import start_ranks

ranks = start_ranks(["library", "gather", "pipeline"], ids, new_tokens=4, device=lab.device, model=model)

# %% [markdown]
# ## 1 · Goal and mental model
#
# After this lab you can say, for a split model, what each rank holds, when ranks wait for each other, how
# many bytes they exchange, and whether one user gets an answer sooner.
#
# | | tensor parallel | pipeline parallel |
# |---|---|---|
# | a rank holds | a slice of every layer | some whole layers |
# | ranks work | at the same time, on the same token | one after the other on one token |
# | they exchange | sums, twice a layer (`all_reduce`) | the hidden state, once at each border between two ranks (`send`) |
# | one token of one user | each layer is finished sooner | the layers still run one after the other |
#
# TP rests on one identity for a pair of matrices with a function $f$ of single elements between them. If the
# first matrix is cut by its outputs and the second by its inputs, the product is a sum:
#
# $$f(x A)\,B = \sum_r f(x A_r)\,B_r \qquad A = [A_0\;A_1],\quad B = \begin{bmatrix}B_0\\B_1\end{bmatrix}$$
#
# Each rank computes its own term. Only the sum needs the other ranks. An *all-reduce* makes it: it adds the
# tensors of all ranks and gives the sum to every rank.

# %% [markdown]
# ![Above, two ranks take the same input through half of the columns of A and half of the rows of B to
# partial sums, which an all-reduce adds. Below, a pipeline of four stages: four microbatches overlap, the
# two tokens of one user do not.](../../handbook/figures/lab18-splits.svg)
#
# *From the handbook.* Two ways to split a model: every layer over two ranks, or the layers over four stages.

# %% [markdown]
# ## 2 · Predict
#
# ### Exercise 1 · What does one rank hold?
#
# *difficulty 2 of 3 · 6 minutes · 2 points*
#
# Write `forecast(config, ranks)`: what one rank of a tensor-parallel Llama holds. The function is graded on
# models and numbers of ranks that this notebook never runs.
#
# | argument | meaning |
# |---|---|
# | `config` | `dict` with `hidden_size`, `intermediate_size`, `num_attention_heads`, `num_key_value_heads`, `head_dim`, `num_hidden_layers`, all `int` |
# | `ranks` | `int` that divides the heads of both kinds and the MLP's width |
#
# Returns a `dict`: the shapes (tuples) of the weights of `"q_proj"`, `"k_proj"`, `"o_proj"`, `"gate_proj"`,
# `"down_proj"` and `"norm"` on one rank, and `"cache"`, the bytes that one token takes in this rank's KV
# cache, `int`, with 4 bytes a value. A `torch.nn.Linear` stores its weight as (outputs, inputs).
#
# <details><summary>Hint 1: a nudge</summary>
#
# A rank works on some of the heads, and on whole heads only. A projection that makes heads is cut by outputs;
# one that reads heads is cut by inputs. A norm needs the whole hidden state.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# Let queries be the query heads over ranks, times head_dim; keys the key/value heads over ranks, times
# head_dim; and mlp the MLP's width over ranks. Then q is (queries, hidden), k (keys, hidden), o (hidden,
# queries), gate (mlp, hidden), down (hidden, mlp), norm (hidden,). The cache: 2 × layers × keys × 4 bytes.
# </details>

# %% exercise="forecast" provides=["forecast"] difficulty=2 minutes=6
def forecast(config, ranks):
    """Shapes of one rank's weights in a layer, and bytes a token in its cache."""
    ### BEGIN SOLUTION
    hidden, mlp = config["hidden_size"], config["intermediate_size"] // ranks
    queries = config["num_attention_heads"] // ranks * config["head_dim"]
    keys = config["num_key_value_heads"] // ranks * config["head_dim"]
    return {
        "q_proj": (queries, hidden), "k_proj": (keys, hidden), "o_proj": (hidden, queries),
        "gate_proj": (mlp, hidden), "down_proj": (hidden, mlp), "norm": (hidden,),
        "cache": 2 * config["num_hidden_layers"] * keys * 4,
    }
    ### END SOLUTION

# %% check="forecast" points=2
from inferlab.lab import Check

check = Check("forecast", points=2)


def sizes(hidden, mlp, heads, kv, head, depth):
    return {"hidden_size": hidden, "intermediate_size": mlp, "num_attention_heads": heads,
            "num_key_value_heads": kv,
            "head_dim": head, "num_hidden_layers": depth}


def ask_forecast(*asked):
    """The learner's forecast, once it has the form that the contract asks for."""
    got = check.learner.forecast(*asked)
    names = {"q_proj", "k_proj", "o_proj", "gate_proj", "down_proj", "norm", "cache"}
    check.true(isinstance(got, dict) and set(got) == names,
               "return a dict with exactly the seven keys of the contract")
    check.true(all(isinstance(got[name], tuple) for name in names - {"cache"}),
               "each shape is a tuple, such as (8, 4)")
    return got


with check.part("the projections into the heads, bundled model on two ranks", weight=1):
    got = ask_forecast(sizes(256, 704, 8, 2, 32, 8), 2)
    check.equal([got["q_proj"], got["k_proj"]], [(128, 256), (32, 256)])
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 3 · Trace
#
# First one decode pass of the whole model, in this process, with every module traced.

# %%
from inferlab.trace import trace
from transformers import DynamicCache

cache = DynamicCache(config=config)
prompt = torch.tensor([ids], device=model.device)
model(prompt, None, None, cache, logits_to_keep=1)
with trace(model, depth="all") as whole:
    one = model(prompt[:, -1:], None, None, cache, logits_to_keep=1)

# %% [markdown]
# Each of the two ranks traced a decode pass, too, with its part of the model. The next cell compares the
# three traces:

# %% tags=["demo"]
runs = ranks.results()
shape = {row["name"]: row["outputs"].get("shape") for row in whole.rows() if isinstance(row["outputs"], dict)}
halves = [{row["name"]: row["outputs"] for row in report["rows"]} for report in runs["library"]]
print(f"{ranks.backend}, {ranks.count} ranks\n{'boundary':34} {'whole':16} {'rank 0':16} rank 1")
for part in ("input_layernorm", "self_attn.q_proj", "self_attn.k_proj", "self_attn.o_proj", "mlp.gate_proj",
             "mlp.up_proj", "mlp.down_proj"):
    name = f"model.layers.0.{part}"
    print(f"{name:34} {str(shape[name]):16} "
          + "".join(f"{str(tuple(half[name]['shape'])):17}" for half in halves))

# %% [markdown]
# Look at three places:
#
# * **`input_layernorm`**: both ranks have the whole hidden state, and both do the same work;
# * **`q_proj` to `gate_proj`**: half as wide on each rank. Nothing has been exchanged yet;
# * **`o_proj` and `down_proj`**: full width again, and the same values on both ranks: here the sum was made.
#
# **Reconcile.** Compare your forecast with the weights that rank 0 really loaded:

# %% tags=["demo"]
from inferlab.lab import when_written

with when_written("forecast"):
    loaded = runs["library"][0]["weights"]
    keys = ("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim",
            "num_hidden_layers")
    mine = forecast({key: getattr(config, key) for key in keys}, ranks.count)
    for name in ("self_attn.q_proj", "self_attn.k_proj", "self_attn.o_proj", "mlp.gate_proj",
                 "mlp.down_proj"):
        held = tuple(loaded[f"model.layers.0.{name}.weight"])
        print(f"{name:18} loaded {held!s:12} predicted {mine[name.partition('.')[2]]}")

# %% [markdown]
# What do the ranks exchange in a pass? There are three plans for the same weights. `library` is the plan of
# the model's class. `gather` cuts every projection by outputs and joins the parts of its result at once.
# `pipeline` gives each rank half of the layers.

# %% tags=["demo"]
from inferlab.lab.kits.parallel.ranks import traffic_table

for plan, reports in runs.items():
    print(f"{plan}: tokens {reports[0]['tokens']}, cache {reports[0]['cache_bytes']:,} B a rank")
    for op, module, times, size in traffic_table(reports[0], number=1):
        print(f"   {op:11} {module:22} {times:3} x, {size:6,} B put in by rank 0")

# %% [markdown]
# All three write the same tokens. `gather` is right but wasteful: its ranks exchange parts after *every*
# projection. The library's plan exchanges twice a layer (and once each for the embedding and the logits). The
# pipeline sends one hidden state; its two broadcasts give the logits to the rank that does not have them.
#
# When was each rank busy?

# %% tags=["demo"]
from inferlab.lab.kits.parallel.rank_plots import rank_timeline

rank_timeline({name: runs[name] for name in ("library", "pipeline")},
              title="Tensor-parallel ranks work together, pipeline stages take turns")

# %% [markdown]
# Compare the patterns, not the lengths of the two panels: in this small model the messages cost more than the
# arithmetic that they save. (Times are never graded.) In the pipeline, one rank waits while the other
# computes. For one user no setting changes that: the next token cannot begin before this one is finished.

# %% [markdown]
# ## 4 · Read
#
# This installed code runs after the second matrix of a pair, the one that is cut by inputs. One line is the
# whole exchange.

# %% jupyter={"source_hidden": true}
from inferlab.lab import show_source
from transformers.distributed.tensor_parallel import RowwiseParallel

show_source(
    RowwiseParallel.transform_output_post_forward,
    {
        "dist.all_reduce(output, group=process_group)":
            "The sum over all ranks, in place. Before this line the output is a partial sum; after it, "
            "every rank has the same.",
        'if (bias := module._parameters.get("bias")) is not None:':
            "The bias is added after the sum. Why would it be wrong before the sum?",
        "output = DTensor.from_local(output, mesh, [Partial()], run_check=False)":
            "With gradients the library says the same with types: a partial tensor ...",
        "output = output.redistribute(placements=[self.output_layouts])":
            "... that must become replicated, which is an all-reduce again.",
    },
    checked="5.24.0",
)

# %% [markdown]
# The plan is a dictionary in the model's configuration class. `colwise` is cut by outputs, `rowwise` by
# inputs. Which entries form a pair of section 1?

# %%
for module, style in {**config.base_model_tp_plan, **type(model)._tp_plan}.items():
    print(f"{module:28} {style}")

# %% [markdown]
# ## 5 · Build
#
# ### Exercise 2 · Cut a weight
#
# *difficulty 1 of 3 · 4 minutes · 2 points · practice*
#
# Write `shards(weight, ranks, how)`: the list of the ranks' slices of a `torch.nn.Linear` weight.
#
# | argument | meaning |
# |---|---|
# | `weight` | `(outputs, inputs)`, any floating dtype |
# | `ranks` | `int`, divides the axis that is cut |
# | `how` | `"colwise"`: cut by outputs; `"rowwise"`: cut by inputs |
#
# <details><summary>Hint 1: a nudge</summary>
#
# The names come from papers that write $xA$, where A is (inputs, outputs). A `Linear` stores the transpose.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# <code>weight.chunk(ranks, dim=...)</code> cuts evenly. The outputs are axis 0, the inputs axis 1. Make a
# list of it.
# </details>

# %% exercise="shards" provides=["shards"] difficulty=1 minutes=4
def shards(weight, ranks, how):
    """The slices of a Linear's weight, in order of ranks."""
    ### BEGIN SOLUTION
    return list(weight.chunk(ranks, dim=0 if how == "colwise" else 1))
    ### END SOLUTION

# %% check="shards" points=2
import torch
from inferlab.lab import Check

check = Check("shards", points=2)
matrix = torch.arange(48.0).reshape(8, 6)


def cut(tensor, count, how):
    """The learner's slices, once they are a list of the right number of matrices."""
    got = check.learner.shards(tensor, count, how)
    check.true(isinstance(got, (list, tuple)) and len(got) == count,
               f"return a list of {count} slices, one for each rank")
    for piece in got:
        check.tensor(piece, dtype=tensor.dtype)
    return list(got)


with check.part("cut by outputs, in two", weight=1):
    got = cut(matrix, 2, "colwise")
    ### HIDDEN TESTS
    check.equal(got, [matrix[:4], matrix[4:]])
### HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 3 · One rank's half of an MLP
#
# *difficulty 2 of 3 · 8 minutes · 3 points · practice*
#
# Write `rank_mlp(x, gate, up, down, bias, all_reduce)`, the part of **one** rank in a Llama MLP,
# `down(silu(gate(x)) * up(x)) + bias`.
#
# | argument | shape |
# |---|---|
# | `x` | `(B, T, hidden)`, the whole input, the same on every rank |
# | `gate`, `up` | `(mlp / ranks, hidden)`, this rank's slices, cut by outputs |
# | `down` | `(hidden, mlp / ranks)`, cut by inputs |
# | `bias` | `(hidden,)`, the *whole* bias of `down`, the same on every rank |
# | `all_reduce` | a function that gets a tensor and returns the sum of the tensors that all ranks give it in this call |
#
# Returns the layer's output `(B, T, hidden)`, the same on every rank. `all_reduce` is expensive: call it as
# rarely as you can.
#
# <details><summary>Hint 1: a nudge</summary>
#
# `torch.nn.functional.silu` and the product with `up(x)` work on single elements: neither needs the other
# ranks. What is the same on every rank must not be summed.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# silu of <code>x @ gate.T</code>, times <code>x @ up.T</code>, gives this rank's columns of the inner
# state. Multiply them by <code>down.T</code>, sum over the ranks with one call, and add the bias to the
# sum.
# </details>

# %% exercise="rank-mlp" provides=["rank_mlp"] difficulty=2 minutes=8
def rank_mlp(x, gate, up, down, bias, all_reduce):
    """One rank's part of a SwiGLU MLP; returns the whole output."""
    ### BEGIN SOLUTION
    inner = torch.nn.functional.silu(x @ gate.T) * (x @ up.T)
    return all_reduce(inner @ down.T) + bias
    ### END SOLUTION

# %% check="rank-mlp" points=3
import torch
from inferlab.lab import Check, close

check = Check("rank-mlp", points=3)


def layer(hidden, mlp, tokens, count, with_bias, seed):
    """An input, a whole MLP, its output, and each rank's slices."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(1, tokens, hidden, generator=g)
    g_w, u_w = (torch.randn(mlp, hidden, generator=g) / hidden**0.5 for _ in range(2))
    d_w = torch.randn(hidden, mlp, generator=g) / mlp**0.5
    b = torch.randn(hidden, generator=g) * with_bias
    y = (torch.nn.functional.silu(x @ g_w.T) * (x @ u_w.T)) @ d_w.T + b
    return x, b, y, list(zip(g_w.chunk(count), u_w.chunk(count), d_w.chunk(count, 1)))


def together(hidden, mlp, tokens, count, with_bias=0.0, seed=0):
    """What each rank returned, the right answer, and what each rank handed to all_reduce.

    Ranks run one after the other, in rounds: in each, all_reduce answers with the sums of what it was given
    in the round before."""
    x, b, want, pieces = layer(hidden, mlp, tokens, count, with_bias, seed)
    sums, rounds, turn = [], 2, 0
    while turn < rounds:
        outs, given = [], []
        for g_w, u_w, d_w in pieces:
            mine = []

            def answer(tensor):
                check.tensor(tensor)
                mine.append(tensor.clone())
                known = sums[len(mine) - 1] if len(mine) <= len(sums) else tensor
                return (known if known.shape == tensor.shape else tensor).clone()

            outs.append(check.learner.rank_mlp(x, g_w, u_w, d_w, b, answer))
            given.append(mine)
        sums = [sum(same) for same in zip(*given) if len({tensor.shape for tensor in same}) == 1]
        rounds, turn = min(1 + max(len(mine) for mine in given), 4), turn + 1
    for out in outs:
        check.tensor(out, shape=tuple(want.shape))
    return outs, want, given


with check.part("two ranks without a bias give what the whole layer gives", weight=2):
    outs, want, given = together(8, 12, 3, 2)
    ### HIDDEN TESTS
    for out in outs:
        check.close(out, want, tol=1e-5)
### HIDDEN TESTS
check.score()

# %% [markdown]
# The next cell uses your two functions on the first layer of the real model, for one rank after the other,
# and compares the sum with the whole layer:

# %% tags=["demo"]
with when_written("shards", "rank_mlp"):
    mlp = model.model.layers[0].mlp
    x = torch.randn(1, 5, config.hidden_size, generator=torch.Generator().manual_seed(SEED)).to(model.device,
                                                                                                model.dtype)
    pieces = list(zip(shards(mlp.gate_proj.weight, 2, "colwise"), shards(mlp.up_proj.weight, 2, "colwise"),
                      shards(mlp.down_proj.weight, 2, "rowwise")))
    none = torch.zeros(config.hidden_size, device=x.device, dtype=x.dtype)
    partial = [rank_mlp(x, *piece, none, lambda tensor: tensor) for piece in pieces]
    print(f"largest difference to the whole layer: {(sum(partial) - mlp(x)).abs().max():.1e}")

# %% [markdown]
# The difference is not zero, because a sum in another order rounds differently. So a tensor-parallel model
# does not give the same bits as the whole one, and if two tokens are nearly tied, greedy decoding may choose
# the other. A pipeline makes exactly the same operations:

# %% tags=["demo"]
again = DynamicCache(config=config)
step = prompt
for _ in range(len(runs["library"][0]["tokens"])):
    logits = model(step, None, None, again, logits_to_keep=1).logits
    step = logits[:, -1:].argmax(-1)
for plan, reports in runs.items():
    gap = (torch.tensor(reports[0]["logits"]) - logits[0, -1].float().cpu()).abs().max()
    print(f"{plan:9} largest difference of the last logits to the whole model: {gap:.1e}")

# %% [markdown]
# ### Exercise 4 · A split that raises nothing
#
# *difficulty 2 of 3 · 6 minutes · 2 points*
#
# To save launches a colleague stores `gate` and `up` (or q, k and v) as **one** matrix, stacked by outputs,
# and splits it with `weight.chunk(ranks)`. Every shape is right, no error is raised, and the model writes
# nonsense. (With two ranks: which rows does rank 0 get?) An all-gather after the projection would make it
# right, but slow.
#
# Write `split_fused(weight, parts, ranks)`. It returns the list of the ranks' slices, so that no exchange is
# needed.
#
# | argument | meaning |
# |---|---|
# | `weight` | `(sum(parts), inputs)` |
# | `parts` | `tuple` of `int`: how many rows each of the stacked projections has, in order |
# | `ranks` | `int`, divides each part |
#
# Each slice is stacked in the same order: the rank's rows of the first projection, then its rows of the
# second, and so on.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Separate the projections first, split each, and then join the pieces of one rank. The library calls this
# style <code>packed_colwise</code>.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# <code>weight.split(list(parts))</code> takes the projections apart, <code>.chunk(ranks)</code> cuts each.
# Slice r is the <code>torch.cat</code> of the r-th piece of every projection.
# </details>

# %% exercise="fused" provides=["split_fused"] difficulty=2 minutes=6
def split_fused(weight, parts, ranks):
    """The ranks' slices of several projections that are stacked in one weight."""
    ### BEGIN SOLUTION
    pieces = [part.chunk(ranks) for part in weight.split(list(parts))]
    return [torch.cat([piece[rank] for piece in pieces]) for rank in range(ranks)]
    ### END SOLUTION

# %% check="fused" points=2
import torch
from inferlab.lab import Check

check = Check("fused", points=2)


def split_by_learner(stacked, rows, count):
    """The learner's slices, once they are matrices of the right shape."""
    got = check.learner.split_fused(stacked, rows, count)
    check.true(isinstance(got, (list, tuple)) and len(got) == count, f"return a list of {count} slices")
    for piece in got:
        check.tensor(piece, dtype=stacked.dtype)
        check.true(piece.ndim == 2 and piece.shape[1] == stacked.shape[1], "each slice has all the inputs")
    return list(got)


with check.part("one rank holds everything", weight=0):
    stacked = torch.arange(8.0).reshape(4, 2)
    check.equal(split_by_learner(stacked, (2, 2), 1), [stacked])
### HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 5 · What crosses the wire
#
# *difficulty 2 of 3 · 8 minutes · 3 points*
#
# Write `traffic(plan, ranks, layers, hidden, tokens, itemsize)`: what the ranks exchange in the layers of one
# forward pass (without embedding and logits).
#
# | argument | meaning |
# |---|---|
# | `plan` | `"TP"` or `"PP"` |
# | `ranks`, `layers`, `hidden` | `int`, 1 or more. One rank exchanges nothing: all three answers are 0 |
# | `tokens` | positions in this pass, all sequences together: 1 for a decode step of one user, 512 for a prompt of 512 |
# | `itemsize` | bytes of one activation value |
#
# Returns a `dict` of numbers: `"exchanges"` (`int`), the number of exchanges, one after the other;
# `"payload"` (`int`), the bytes of all messages, each counted once (for an all-reduce: what *one* rank puts
# in); `"sent"`, the bytes that the busiest rank sends. An all-reduce runs as a ring: for a message of n bytes
# each rank sends 2 (ranks − 1) / ranks · n. Do not round this.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Section 3 printed the messages of one pass on two ranks. The MLP's width appears in no message. A stage of a
# pipeline sends only to the next stage.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# A message has <code>tokens * hidden * itemsize</code> bytes. TP: two exchanges a layer, the payload is a
# message for each, and the busiest rank sends <code>2 * (ranks - 1) / ranks</code> of the payload. PP:
# <code>ranks - 1</code> exchanges of a message each, and a rank sends one. With one rank all three are 0.
# </details>

# %% exercise="traffic" provides=["traffic"] difficulty=2 minutes=8
def traffic(plan, ranks, layers, hidden, tokens, itemsize):
    """Exchanges, payload and bytes sent by the busiest rank, in the layers of one forward pass."""
    ### BEGIN SOLUTION
    message = tokens * hidden * itemsize
    if plan == "TP":
        payload = 2 * layers * message
        return {"exchanges": 2 * layers if ranks > 1 else 0, "payload": payload if ranks > 1 else 0,
                "sent": 2 * (ranks - 1) * payload / ranks}
    return {"exchanges": ranks - 1, "payload": (ranks - 1) * message, "sent": message if ranks > 1 else 0}
    ### END SOLUTION

# %% check="traffic" points=3
from inferlab.lab import Check

check = Check("traffic", points=3)


def crossing(*asked):
    """The learner's numbers, once they have the form that the contract asks for."""
    got = check.learner.traffic(*asked)
    check.true(isinstance(got, dict) and set(got) == {"exchanges", "payload", "sent"},
               "return a dict with exchanges, payload and sent")
    check.true(all(isinstance(value, (int, float)) for value in got.values()), "each value is a number")
    return got


with check.part("a decode pass of the bundled model on two ranks, as in section 3", weight=1):
    got = crossing("TP", 2, 8, 256, 1, 4)
    check.equal([got["exchanges"], got["payload"]], [16, 16384])
### HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 6 · A pipeline, tick by tick
#
# *difficulty 3 of 3 · 12 minutes · 4 points*
#
# A pipeline has `stages` stages. Each works on one pass for one *tick*, a unit of time, and hands it to the
# next stage. `jobs` is a list: job `j` needs `jobs[j]` passes, **one after the other**; if `jobs[j]` is 0,
# the job appears in no event. A *microbatch*, a part of a training batch, is a job of one pass. A user who
# wants 20 tokens is a job of 20: pass 2 needs the token that pass 1 made at the last stage.
#
# Write `schedule(stages, jobs)`. It returns the sorted list of events `(tick, stage, job, number)`. All are
# counted from 0, but `number`, the job's pass, from 1. Stage 0 takes its passes from a queue, first come,
# first served. At the beginning the queue holds the first pass of each job, in order of jobs. If a pass is at
# the last stage at tick t, its job's next pass joins the end of the queue in time for tick t + 1.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Keep two lists: the queue, and the pass at each stage. A tick moves every pass to the next stage and lets
# the first of the queue in. First handle the pass that leaves, then the one that enters.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# Start the queue with <code>(job, 1)</code> for each job that needs a pass, and a line of <code>stages</code>
# empty places. In a tick: if the pass in the last place is not its job's last one, append the next to the
# queue; then shift the line by one and put the front of the queue into place 0. If all places are empty now,
# return. Otherwise add an event for each place that is taken.
# </details>

# %% exercise="schedule" provides=["schedule"] difficulty=3 minutes=12
def schedule(stages, jobs):
    """Events (tick, stage, job, number) of a pipeline whose jobs need their passes one after the other."""
    ### BEGIN SOLUTION
    queue = [(job, 1) for job, passes in enumerate(jobs) if passes]
    line, events, tick = [None] * stages, [], 0
    while True:
        left = line[-1]
        if left and left[1] < jobs[left[0]]:
            queue.append((left[0], left[1] + 1))
        line = [queue.pop(0) if queue else None, *line[:-1]]
        if not any(line):
            return events
        events += [(tick, stage, *one) for stage, one in enumerate(line) if one]
        tick += 1
    ### END SOLUTION

# %% check="schedule" points=4
from inferlab.lab import Check

check = Check("schedule", points=4)


def events_of(depth, work):
    """The learner's events, once they are a list of tuples of four."""
    got = check.learner.schedule(depth, list(work))
    check.true(isinstance(got, list) and all(isinstance(e, tuple) and len(e) == 4 for e in got),
               "return a list of tuples (tick, stage, job, number)")
    return got


with check.part("one pass through two stages", weight=1):
    check.equal(events_of(2, [1]), [(0, 0, 0, 1), (1, 1, 0, 1)])
### HIDDEN TESTS
check.score()

# %% [markdown]
# Four stages. First training: with more microbatches the *bubble*, the idle share, becomes small.

# %% tags=["demo"]
def idle(events, stages):
    """Share of stage-ticks in which nobody works."""
    return 1 - len(events) / (stages * (events[-1][0] + 1))


def grid(events, stages):
    """One line a stage, one column a tick, the job's letter where it is at work."""
    rows = [["·"] * (events[-1][0] + 1) for _ in range(stages)]
    for tick, stage, job, _ in events:
        rows[stage][tick] = "abcdefgh"[job % 8]
    return "\n".join(f"   stage {number}  " + " ".join(row) for number, row in enumerate(rows))


with when_written("schedule"):
    for microbatches in (1, 4, 16):
        events = schedule(4, [1] * microbatches)
        print(f"{microbatches:2} microbatches: idle {idle(events, 4):.0%}, which is 3 / ({microbatches} + 3)")
    print(grid(schedule(4, [1] * 4), 4))

# %% [markdown]
# Now inference: one user who wants three tokens, then four such users, then eight.

# %% tags=["demo"]
with when_written("schedule"):
    for users in (1, 4, 8):
        events = schedule(4, [3] * users)
        out = [tick for tick, stage, job, _ in events if stage == 3 and job == 0]
        print(f"{users} user(s): idle {idle(events, 4):.0%}; user a gets tokens at ticks {out}")
        print(grid(events, 4))

# %% [markdown]
# Four users fill the pipeline: the machine makes four times as many tokens. But user `a` gets tokens at the
# same ticks as alone, and with eight users later. **Microbatches hide the bubble from the machine. Nothing
# hides it from a user**: a token passes all stages, one after the other, and the next token waits for it.

# %% [markdown]
# ### Exercise 7 · Split your machine
#
# *difficulty 3 of 3 · 10 minutes · 3 points*
#
# Your machine has up to eight ranks; its costs, in whole ticks, depend on your name.

# %%
from inferlab.lab.kits.parallel.machines import RANKS, machine

MACHINE = machine(lab.variant(16))
print(MACHINE, "ranks:", RANKS)

# %% [markdown]
# | entry | meaning |
# |---|---|
# | `layers` | of the model |
# | `compute` | ticks that one layer takes for one token on one rank |
# | `step` | ticks of one step of a ring; an all-reduce over n ranks has 2 (n − 1) steps, one after the other |
# | `hop` | ticks to send a hidden state to the next stage |
#
# Write `cost(plan, ranks, machine)`, which returns a tuple `(latency, interval)` in ticks:
#
# * **latency** is the time that one token of one user takes;
# * **interval** is the time between two tokens that leave a machine full of users: a pass carries one token
#   of one user, every stage is busy, and hops go on while stages work.
#
# `plan` is `"TP"` or `"PP"`: with TP the ranks share each layer's compute evenly, with PP the ranks are
# stages and share the layers evenly (fractions of a layer are allowed).
#
# Then write `chosen()` for **your** machine. It returns a `dict`: `"latency"` is the tuple `(plan, ranks)`
# with the smallest latency, `"interval"` the tuple with the smallest interval, over both plans and all
# `RANKS`.
#
# <details><summary>Hint 1: a nudge</summary>
#
# With TP all ranks work on one token, and the next token begins when it is done. In a full pipeline a token
# leaves each time the last stage finishes one.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# Work: <code>layers * compute</code>. TP: work over ranks, plus 2 all-reduces a layer of <code>2 * (ranks -
# 1)</code> steps each; latency and interval are the same. PP: the latency is the work plus <code>ranks -
# 1</code> hops, the interval is the work over ranks. For <code>chosen</code>, compute all pairs of plan and
# ranks, and take <code>min</code> by each of the two.
# </details>

# %% exercise="cost" provides=["cost", "chosen"] difficulty=3 minutes=10
def cost(plan, ranks, machine):
    """(latency, interval) of a token, in ticks."""
    ### BEGIN SOLUTION
    work = machine["layers"] * machine["compute"]
    if plan == "TP":
        latency = work / ranks + 2 * machine["layers"] * 2 * (ranks - 1) * machine["step"]
        return latency, latency
    return work + (ranks - 1) * machine["hop"], work / ranks
    ### END SOLUTION


def chosen():
    """The best (plan, ranks) of your machine for one user's latency, and for the interval between tokens."""
    ### BEGIN SOLUTION
    every = {(plan, ranks): cost(plan, ranks, MACHINE) for plan in ("TP", "PP") for ranks in RANKS}
    return {"latency": min(every, key=lambda key: every[key][0]),
            "interval": min(every, key=lambda key: every[key][1])}
    ### END SOLUTION

# %% check="cost" points=3
from inferlab.lab import Check

check = Check("cost", points=3)
small = {"layers": 10, "compute": 40, "step": 3, "hop": 5}


def ticks(plan, count, box):
    """The learner's costs, once they are two numbers."""
    got = check.learner.cost(plan, count, dict(box))
    check.true(isinstance(got, tuple) and len(got) == 2 and all(isinstance(v, (int, float)) for v in got),
               "return a tuple of two numbers, (latency, interval)")
    return got


with check.part("one rank has nobody to talk to", weight=1):
    check.close([ticks("TP", 1, small), ticks("PP", 1, small)], [(400, 400), (400, 400)], tol=1e-6)
### HIDDEN TESTS
check.score()

# %% tags=["demo"]
from inferlab.lab.kits.parallel.rank_plots import cost_against_ranks

with when_written("cost"):
    display(cost_against_ranks({plan: {n: cost(plan, n, MACHINE) for n in RANKS} for plan in ("TP", "PP")},
                               title="Only tensor parallelism shortens one user's token, up to a point"))

# %% [markdown]
# The left panel matters to the user, the right one to the operator. Real servers put many users into one pass
# (lab 14), which then share its all-reduces. The usual mix is TP inside a node, with fast links, and pipeline
# stages between nodes, where a step is expensive.

# %% [markdown]
# ## 6 · Explain
#
# Explain one decode pass of one user, with the bundled model on two tensor-parallel ranks (the plan
# `library` of section 3). In the fields `state`, `axis` and `trade-off` you write short sentences, one a
# line, from the tables below: an entry of `who`, a verb, an entry of its row and, if you like, entries of a
# row `may follow`. An example: `the queries are halved on each rank`. In `gain` and `cost` you name one
# quantity and its direction, such as `quality down`: what a second tensor-parallel rank improves for one
# user of a big model, and what gets worse or more. In the other fields you type one entry. Lines that begin
# with `#` are notes of your own.
#
# | line | what it says |
# |---|---|
# | `shape:` | the shape of the output of `q_proj` on one rank |
# | `exchanges:` | how many all-reduces happen inside the layers |
# | `bytes:` | how many bytes one rank puts into these all-reduces, with a unit |

# %% jupyter={"source_hidden": true}
### FIXTURE words
words

# %% [markdown]
# *difficulty 2 of 3 · 12 minutes · 6 points: 3 for the typed lines, 3 for the sentences.* When you run the
# cell, it shows how it reads each line. That reading is graded when you hand in. One false sentence in a
# field costs the field's point, so write only what you know. A line that the cell cannot read is judged by a
# person.

# %% explain="two-ranks" difficulty=2 minutes=12
%%explain two-ranks
# ### BEGIN SOLUTION
# state: each rank computes a term of the sum from its own slices
#   the all-reduce adds the terms of all ranks
# axis: the queries go from 256 to 128 on each rank
#   the hidden state stays 256
# trade-off: a pipeline exchanges fewer bytes and gives a token later
# shape: (1, 1, 128)
# exchanges: 16
# bytes: 16 KiB
# gain: latency down
# cost: traffic up
# ### END SOLUTION

# %% check="two-ranks-shape" of="two-ranks" points=1
from inferlab.lab import Check

check = Check("two-ranks-shape", points=1)
with check.part("`shape:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("two-ranks").get("shape"), "`shape:` is empty")
### HIDDEN TESTS
check.score()

# %% check="two-ranks-traffic" of="two-ranks" points=1
from inferlab.lab import Check

check = Check("two-ranks-traffic", points=1)
with check.part("`exchanges:` and `bytes:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("two-ranks").get("exchanges"), "`exchanges:` is empty")
    check.true(check.explanation("two-ranks").get("bytes"), "`bytes:` is empty")
### HIDDEN TESTS
check.score()

# %% check="two-ranks-gain-cost" of="two-ranks" points=1
from inferlab.lab import Check

check = Check("two-ranks-gain-cost", points=1)
with check.part("`gain:` and `cost:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("two-ranks").get("gain"), "`gain:` is empty")
    check.true(check.explanation("two-ranks").get("cost"), "`cost:` is empty")
### HIDDEN TESTS
check.score()

# %% check="two-ranks-state" of="two-ranks" points=1
from inferlab.lab import Check

check = Check("two-ranks-state", points=1)
with check.part("`state:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("two-ranks").get("state"), "`state:` is empty")
### HIDDEN TESTS
check.score()

# %% check="two-ranks-axis" of="two-ranks" points=1
from inferlab.lab import Check

check = Check("two-ranks-axis", points=1)
with check.part("`axis:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("two-ranks").get("axis"), "`axis:` is empty")
### HIDDEN TESTS
check.score()

# %% check="two-ranks-trade-off" of="two-ranks" points=1
from inferlab.lab import Check

check = Check("two-ranks-trade-off", points=1)
with check.part("`trade-off:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("two-ranks").get("trade-off"), "`trade-off:` is empty")
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7 · Notice
#
# * **Pipeline parallelism does not cut a token's latency.** It lets a machine hold a bigger model and serve
#   more users. A user's token passes every layer, one after the other, plus the hops.
# * **Training hides the bubble, a conversation cannot.** Microbatches are independent of each other. Your
#   next token depends on this one.
# * **Column, then row.** In the other order, or with a gather after each projection, the same weights need
#   more exchanges.
# * **An all-reduce is a sum, not a concatenation.** What is the same on all ranks (a bias) must not be
#   summed.
# * **A right shape is no proof.** A stacked weight that is cut across its parts raises no error.
# * **More ranks are not always sooner.** More ranks mean less arithmetic for each, but the same number of
#   exchanges, and a message of a few KiB is all latency.
# * **The cache is split, too**, by key/value heads. If there are fewer heads than ranks, a plan must copy
#   them or refuse.
#
# Say it aloud, as in an interview: name the state object, the axis that changes, and the trade-off.

# %% [markdown]
# ## 8 · Check and hand in
#
# Run this cell last. It runs the visible checks again, says what is missing, and leaves one file to hand in.

# %% tags=["demo"]
from inferlab.lab import submit

submit()
