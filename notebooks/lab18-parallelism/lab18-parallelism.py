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
# build a split layer by hand, forecast a pipeline tick by tick, and then decide how to split a machine of
# your own.
#
# **Time** 65 to 75 minutes · **Points** 17, of which 3 are practice (exercise 2) · **Reading**
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
# three ways, which section 3 explains. They work while you read.

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
# *difficulty 2 of 3 · 7 minutes · 2 points*
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

# %% exercise="forecast" provides=["forecast"] difficulty=2 minutes=7
def forecast(config, ranks):
    """Shapes of one rank's weights in a layer, and bytes a token in its cache."""
    hidden, mlp = config["hidden_size"], config["intermediate_size"] // ranks
    queries = config["num_attention_heads"] // ranks * config["head_dim"]
    ### BEGIN SOLUTION
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
    got = check.plain(check.learner.forecast(*asked))
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
# * **`q_proj`, `k_proj`, `gate_proj`, `up_proj`**: half as wide on each rank. Each works without an exchange;
# * **`o_proj` and `down_proj`**: full width again: here the sum was made.
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
                 "mlp.down_proj", "input_layernorm"):
        held = tuple(loaded[f"model.layers.0.{name}.weight"])
        key = "norm" if name == "input_layernorm" else name.partition(".")[2]
        print(f"{name:18} loaded {held!s:12} predicted {mine[key]}")
    cached = len(ids) + 4  # the prompt, three decode passes, and the traced one
    print(f"{'cache of a token':18} held   {runs['library'][0]['cache_bytes'] / cached:<12,.0f} "
          f"predicted {mine['cache']:,}")

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
# pipeline sends one hidden state, and broadcasts the logits to rank 0.
#
# When was each rank busy?

# %% tags=["demo"]
from inferlab.lab.kits.parallel.rank_plots import rank_timeline

rank_timeline({name: runs[name] for name in ("library", "pipeline")},
              title="Tensor-parallel ranks work together, pipeline stages take turns")

# %% [markdown]
# Compare the patterns, not the lengths of the two panels: in this small model the messages cost more than the
# arithmetic that they save. In the pipeline, one rank waits while the other
# computes.

# %% [markdown]
# ## 4 · Read
#
# This installed code runs after the second matrix of a pair, the one that is cut by inputs.

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
# inputs. So q, k and v form a pair of section 1 with o, and gate and up with down.

# %%
for module, style in {**config.base_model_tp_plan, **type(model)._tp_plan}.items():
    print(f"{module:28} {style}")

# %% [markdown]
# ## 5 · Build
#
# ### Exercise 2 · One rank's half of an MLP
#
# *difficulty 2 of 3 · 7 minutes · 3 points · practice*
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

# %% exercise="rank-mlp" provides=["rank_mlp"] difficulty=2 minutes=7
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
# The next cell uses your function on the first layer of the real model, for one rank after the other, and
# compares the sum with the whole layer:

# %% tags=["demo"]
with when_written("rank_mlp"):
    mlp = model.model.layers[0].mlp
    x = torch.randn(1, 5, config.hidden_size, generator=torch.Generator().manual_seed(SEED)).to(model.device,
                                                                                                model.dtype)
    pieces = list(zip(mlp.gate_proj.weight.chunk(2), mlp.up_proj.weight.chunk(2),
                      mlp.down_proj.weight.chunk(2, dim=1)))
    none = torch.zeros(config.hidden_size, device=x.device, dtype=x.dtype)
    partial = [rank_mlp(x, *piece, none, lambda tensor: tensor) for piece in pieces]
    print(f"largest difference to the whole layer: {(sum(partial) - mlp(x)).abs().max():.1e}")

# %% [markdown]
# The difference is not zero, because a sum in another order rounds differently. So a tensor-parallel model
# does not give the same bits as the whole one, and if two tokens are nearly tied, greedy decoding may choose
# the other. A pipeline makes exactly the same operations, and so the same bits.

# %% [markdown]
# ### Exercise 3 · What crosses the wire
#
# *difficulty 2 of 3 · 4 minutes · 2 points*
#
# Forecast what the ranks of the next cell exchange in the layers of one decode pass: one token of one user,
# without embedding and logits. (A pass over a whole prompt makes the same number of exchanges; only the
# messages are longer.)
#
# | key of `wire` | what it says |
# |---|---|
# | `"tp_exchanges"`, `"tp_payload"` | TP: the number of exchanges, one after the other, and the bytes that **one rank** puts into all of them |
# | `"pp_exchanges"`, `"pp_payload"` | PP: the number of exchanges, and the bytes of **all messages** |

# %%
v = lab.variant(16)
wires = {"ranks": (4, 8)[v % 2], "layers": (24, 28, 32, 36, 40, 48, 56, 80)[v // 2], "hidden": 4096,
         "itemsize": 2}
print(wires)

# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# Section 3 printed the messages of one pass on two ranks. The MLP's width appears in no message. A stage of a
# pipeline sends only to the next stage.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# A message of one token has <code>hidden * itemsize</code> bytes. TP: two exchanges a layer. PP: <code>ranks
# - 1</code> exchanges of one message each.
# </details>

# %% exercise="traffic" provides=["wire"] difficulty=2 minutes=4
wire = {}
# wire["tp_exchanges"], wire["tp_payload"], wire["pp_exchanges"], wire["pp_payload"]    numbers
message = wires["hidden"] * wires["itemsize"]
### BEGIN SOLUTION
wire["tp_exchanges"] = 2 * wires["layers"]
wire["tp_payload"] = wire["tp_exchanges"] * message
wire["pp_exchanges"] = wires["ranks"] - 1
wire["pp_payload"] = wire["pp_exchanges"] * message
### END SOLUTION

# %% check="traffic" points=2
from inferlab.lab import Check

check = Check("traffic", points=2)


def crossing(*keys):
    """The learner's numbers for these keys."""
    answers = check.plain(check.learner.wire)
    check.true(isinstance(answers, dict), "wire must stay a dict")
    for key in keys:
        check.true(isinstance(answers.get(key), (int, float)), f'wire["{key}"] is not a number yet')
    return [answers[key] for key in keys]


with check.part("all four numbers are there (graded when you hand it in)", weight=0):
    crossing("tp_exchanges", "tp_payload", "pp_exchanges", "pp_payload")
### HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 4 · A pipeline, tick by tick
#
# *difficulty 3 of 3 · 11 minutes · 3 points*
#
# Each stage of a pipeline works on one pass for one *tick*, a unit of time, and hands it to the next stage.
# Ticks are counted from 0. Stage 0 takes passes from a queue, first come, first served. A *microbatch*, a
# part of a training batch, is one pass; all of them wait in the queue at tick 0. Each **user** wants three
# tokens, so three passes. Every user's first pass waits at tick 0, in the order of the users. A pass at the
# last stage at tick t yields a token; the user's next pass joins the end of the queue and can start at t + 1.
#
# | key of `pipe` (`pipeline` is your card) | what it says |
# |---|---|
# | `"idle"` | training, the *bubble*: idle stage-ticks over all stage-ticks, counted until the last microbatch has left |
# | `"alone"` | one user alone: the list of the three ticks at which its tokens come |
# | `"full"` | the same for the first user, if as many users wait at tick 0 as there are stages |
# | `"crowd"` | the same for the first user, if twice as many wait |

# %%
pipeline = {"stages": (3, 4, 5, 6)[v % 4], "microbatches": (5, 6, 8, 10)[v // 4]}
print(pipeline)

# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# Draw it: a line for each stage, a column for each tick. How many others stand in the queue when the first
# user's second pass joins it?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# With s stages and m microbatches, the last enters at tick m - 1 and leaves after s more. Of s * (m + s - 1)
# stage-ticks, s * m are work. Alone, a token comes every s ticks, from s - 1 on. With s users the queue is
# empty when the first user's pass joins it; with 2 * s users s others are before it.
# </details>

# %% exercise="schedule" provides=["pipe"] difficulty=3 minutes=11
pipe = {}
# pipe["idle"]                                a number
# pipe["alone"], pipe["full"], pipe["crowd"]  lists of three ticks
s, m = pipeline["stages"], pipeline["microbatches"]
### BEGIN SOLUTION
pipe["idle"] = (s - 1) / (m + s - 1)
pipe["alone"] = [s - 1, 2 * s - 1, 3 * s - 1]
pipe["full"] = [s - 1, 2 * s - 1, 3 * s - 1]
pipe["crowd"] = [s - 1, 3 * s - 1, 5 * s - 1]
### END SOLUTION

# %% check="schedule" points=3
from inferlab.lab import Check, close

check = Check("schedule", points=3)


def said(key):
    """One of the learner's answers."""
    answers = check.plain(check.learner.pipe)
    check.true(isinstance(answers, dict) and key in answers, f'pipe["{key}"] is not there yet')
    return answers[key]


with check.part("all four answers are there (graded when you hand it in)", weight=0):
    check.true(isinstance(said("idle"), (int, float)), 'pipe["idle"] is a number')
    for key in ("alone", "full", "crowd"):
        check.true(isinstance(said(key), list) and len(said(key)) == 3, f'pipe["{key}"] is a list of three')
### HIDDEN TESTS
check.score()

# %% [markdown]
# The rules as code, and what they give:

# %% tags=["demo"]
def schedule(stages, jobs):
    """Events (tick, stage, job, number); job j needs jobs[j] passes, one after the other."""
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


def grid(events, stages):
    """One line a stage, one column a tick, the job's letter where it is at work."""
    drawn = [["·"] * (events[-1][0] + 1) for _ in range(stages)]
    for tick, stage, job, _ in events:
        drawn[stage][tick] = "abcdefghijkl"[job % 12]
    return "\n".join(f"   stage {number}  " + " ".join(row) for number, row in enumerate(drawn))


stages = pipeline["stages"]
for name, jobs in {"microbatches": [1] * pipeline["microbatches"], "alone": [3], "full": [3] * stages,
                   "crowd": [3] * 2 * stages}.items():
    events = schedule(stages, jobs)
    out = [tick for tick, stage, job, _ in events if stage == stages - 1 and job == 0]
    print(f"{name}: idle {1 - len(events) / stages / (events[-1][0] + 1):.0%}, a leaves at ticks {out}")
    print(grid(events, stages))

# %% [markdown]
# With as many users as stages, once the pipeline is full, the machine makes that many times as many tokens.
# But user `a` gets tokens at the same ticks as alone, and with twice as many users later. **Microbatches hide
# the bubble from the machine. Nothing hides it from a user**: a token passes all stages, one after the other,
# and the next token waits for it.

# %% [markdown]
# ### Exercise 5 · Split your machine
#
# *difficulty 2 of 3 · 8 minutes · 3 points*
#
# Your machine has up to eight ranks; its costs depend on your name. Here a *tick* is a smaller unit of time
# than in exercise 4: a stage takes many.

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
# * **interval** is the time between two tokens of the machine, whoever gets them, with always enough users. A
#   pass carries one token of one user, and hops take no stage's time.
#
# `plan` is `"TP"` or `"PP"`: with TP the ranks share each layer's compute evenly, with PP the ranks are
# stages and share the layers evenly (fractions of a layer are allowed).
#
# `chosen()` then picks the best pairs of plan and ranks for **your** machine. It is written.
#
# <details><summary>Hint 1: a nudge</summary>
#
# With TP all ranks work on one token, and the next token begins when it is done. In a full pipeline a token
# leaves each time the last stage finishes one.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# TP: work over ranks, plus 2 all-reduces a layer of <code>2 * (ranks -
# 1)</code> steps each; latency and interval are the same. PP: the latency is the work plus <code>ranks -
# 1</code> hops, the interval is the work over ranks.
# </details>

# %% exercise="cost" provides=["cost", "chosen"] difficulty=2 minutes=8
def cost(plan, ranks, machine):
    """(latency, interval) of a token, in ticks."""
    work = machine["layers"] * machine["compute"]
    ### BEGIN SOLUTION
    if plan == "TP":
        latency = work / ranks + 2 * machine["layers"] * 2 * (ranks - 1) * machine["step"]
        return latency, latency
    return work + (ranks - 1) * machine["hop"], work / ranks
    ### END SOLUTION


def chosen():
    """The best (plan, ranks) of your machine for one user's latency, and for the interval between tokens."""
    every = {(plan, ranks): cost(plan, ranks, MACHINE) for plan in ("TP", "PP") for ranks in RANKS}
    return {"latency": min(every, key=lambda key: every[key][0]),
            "interval": min(every, key=lambda key: every[key][1])}

# %% check="cost" points=3
from inferlab.lab import Check

check = Check("cost", points=3)
small = {"layers": 10, "compute": 40, "step": 3, "hop": 5}


def ticks(plan, count, box):
    """The learner's costs, once they are two numbers."""
    got = check.plain(check.learner.cost(plan, count, dict(box)))
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
# Explain one decode pass of one user, with the bundled model on two tensor-parallel ranks (the plan `library`
# of section 3). `state`, `axis` and `trade-off` ask for two things each; the tables below say which. Write
# short sentences, one a line: an entry of `who`, a verb, then an entry from that verb's row and, if you like,
# entries of a row `may follow`. An example: `the queries are halved on each rank`. In `bytes:` you type how
# many bytes one rank puts into the all-reduces inside the layers, with a unit. Lines that begin with `#` are
# notes of your own.

# %% jupyter={"source_hidden": true}
### FIXTURE words
words

# %% [markdown]
# *difficulty 2 of 3 · 10 minutes · 4 points, one a field.* When you run the
# cell, it shows how it reads each line. That reading is graded when you hand in. One false sentence in a
# field costs the field's point, so write only what you know. A line that the cell cannot read is judged by a
# person.

# %% explain="two-ranks" difficulty=2 minutes=10
%%explain two-ranks
# ### BEGIN SOLUTION
# state: each rank computes a term of the sum from its own slices
#   the all-reduce adds the terms of all ranks
# axis: the queries go from 256 to 128 on each rank
#   the hidden state stays 256
# trade-off: a pipeline exchanges fewer bytes and gives a token later
# bytes: 16 KiB
# ### END SOLUTION

# %% check="two-ranks-bytes" of="two-ranks" points=1
from inferlab.lab import Check

check = Check("two-ranks-bytes", points=1)
with check.part("`bytes:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("two-ranks").get("bytes"), "`bytes:` is empty")
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
# * **More ranks are not always sooner.** More ranks mean less arithmetic for each, but the same number of
#   exchanges, and a message of a few KiB is all latency.
# * **The cache is split, too**, by key/value heads.
#
# Say it aloud, as in an interview: name the state object, the axis that changes, and the trade-off.

# %% [markdown]
# ## 8 · Check and hand in
#
# Run this cell last. It runs the visible checks again, says what is missing, and leaves one file to hand in.

# %% tags=["demo"]
from inferlab.lab import submit

submit()
