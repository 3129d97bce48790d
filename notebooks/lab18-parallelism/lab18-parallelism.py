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
# A model that does not fit, or does not answer fast enough, is split. There are two ways: cut every layer into slices
# (tensor parallelism, **TP**), or give whole layers to different devices (pipeline parallelism, **PP**). Both are one line of
# configuration. What they do to one user's waiting time could hardly be more different.
#
# In this lab you run the bundled model on two real processes in both ways, count every exchange between them, build a split
# layer by hand, schedule a pipeline tick by tick, and then decide how to split a machine of your own.
#
# **Time** about 65 minutes · **Points** 25, of which 5 are practice · **Reading** [One model on several devices](../../handbook/lab18-parallelism.md) in the handbook, before you start

# %% tags=["parameters"]
LEARNER = ""  # your name or id, as your course knows you
MODEL = "bundled"  # "bundled" | "full" | "hub"
DEVICE = "auto"  # "auto" | "cpu" | "cuda"
SEED = 7

# %%
from inferlab.lab import start

lab = start("lab18-parallelism", LEARNER, MODEL, DEVICE, SEED)

# %% [markdown]
# With two GPUs (and `DEVICE` not `"cpu"`) each of the two ranks below has one, and they talk over NCCL. With one GPU or none the ranks run on the CPU and talk over gloo: one card
# would give two ranks nothing to exchange over. With one GPU this notebook's own whole model is on it all the same. The ranks load the bundled weights (with `"hub"`, the
# downloaded ones; `"full"` has none that two processes could load, so the lab takes the bundled model then, too). Grading never starts them: it asks your functions.

# %%
import torch
from inferlab.models import load_language_model

torch.set_grad_enabled(False)
model, tokenizer = load_language_model("bundled" if MODEL == "full" else MODEL, lab.device)
config = model.config
ids = tokenizer("a red circle moves left and a blue square moves up").input_ids
print(f"{config.num_hidden_layers} layers, width {config.hidden_size}, MLP {config.intermediate_size}, "
      f"{config.num_attention_heads} query and {config.num_key_value_heads} key/value heads of {config.head_dim}; prompt of {len(ids)} tokens")

# %% [markdown]
# The next cell starts two processes in the background. Each loads its part of the model, three times, split in three ways. They
# work while you read; section 3 collects what they found.

# %% tags=["demo"]
from inferlab.lab.ranks import start_ranks

ranks = start_ranks(["library", "gather", "pipeline"], ids, new_tokens=4, device=lab.device, model=model)

# %% [markdown]
# ## 1 · Goal and mental model
#
# After this lab you can say, for a split model, what each rank holds, when ranks must wait for each other, how many bytes cross, and
# whether one user gets an answer sooner.
#
# | | tensor parallel | pipeline parallel |
# |---|---|---|
# | a rank holds | a slice of every layer | some whole layers |
# | ranks work | at the same time, on the same token | one after the other on one token |
# | they exchange | sums, twice a layer (`all_reduce`) | the hidden state, once at each border of two stages (`send`) |
# | one token of one user | each layer is finished sooner | every layer still comes after the one before |
#
# TP rests on one identity. Cut the first matrix of a pair by its outputs and the second by its inputs, and the product falls apart
# into a sum, with anything that works on single elements in between:
#
# $$f(x A)\,B = \sum_r f(x A_r)\,B_r \qquad A = [A_0\;A_1],\quad B = \begin{bmatrix}B_0\\B_1\end{bmatrix}$$
#
# Each rank computes its own term. Only the sum needs the others: one all-reduce a pair.

# %% [markdown]
# ## 2 · Predict
#
# ### Exercise 1 · What does one rank hold?
#
# *difficulty 2 of 3 · 6 minutes · 2 points*
#
# Write `forecast(config, ranks)`: what one rank of a tensor-parallel Llama holds. It is graded on models and numbers of ranks
# that this notebook never runs.
#
# | argument | meaning |
# |---|---|
# | `config` | `dict` with `hidden_size`, `intermediate_size`, `num_attention_heads`, `num_key_value_heads`, `head_dim`, `num_hidden_layers`, all `int` |
# | `ranks` | `int` that divides the heads of both kinds and the MLP's width |
#
# Returns a `dict`: the shapes (tuples) of the weights of `"q_proj"`, `"k_proj"`, `"o_proj"`, `"gate_proj"`, `"down_proj"` and `"norm"` on one rank, and
# `"cache"`, the bytes that one token takes in this rank's KV cache when a value has 4 bytes (`int`). A `torch.nn.Linear` keeps its weight as (outputs, inputs).
#
# <details><summary>Hint</summary>
#
# A rank works on whole heads, its own ones. What makes heads is cut by outputs, what eats them by inputs. A norm looks at the whole hidden state.
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
    return {"hidden_size": hidden, "intermediate_size": mlp, "num_attention_heads": heads, "num_key_value_heads": kv,
            "head_dim": head, "num_hidden_layers": depth}


def ask_forecast(*asked):
    """The learner's forecast, once it has the form that the contract asks for."""
    got = check.learner.forecast(*asked)
    names = {"q_proj", "k_proj", "o_proj", "gate_proj", "down_proj", "norm", "cache"}
    check.true(isinstance(got, dict) and set(got) == names, "return a dict with exactly the seven keys of the contract")
    check.true(all(isinstance(got[name], tuple) for name in names - {"cache"}), "each shape is a tuple, such as (8, 4)")
    return got


with check.part("the projections into the heads, bundled model on two ranks", weight=1):
    got = ask_forecast(sizes(256, 704, 8, 2, 32, 8), 2)
    check.equal([got["q_proj"], got["k_proj"]], [(128, 256), (32, 256)])
### BEGIN HIDDEN TESTS
with check.part("an 8-billion model on four ranks: attention", weight=1):
    got = ask_forecast(sizes(4096, 14336, 32, 8, 128, 32), 4)
    check.mistake("there are fewer key/value heads than query heads, and it is those that k_proj makes", when=got["k_proj"] == (1024, 4096))
    check.mistake("o_proj eats heads: it is cut by its inputs, not by its outputs", when=got["o_proj"] == (1024, 4096))
    check.equal([got["q_proj"], got["k_proj"], got["o_proj"]], [(1024, 4096), (256, 4096), (4096, 1024)])
with check.part("the MLP and the norm", weight=1):
    got = ask_forecast(sizes(4096, 14336, 32, 8, 128, 32), 4)
    check.mistake("a norm looks at the whole hidden state: every rank has all of it", when=got["norm"] == (1024,))
    check.mistake("down_proj eats the MLP's width: it is cut by its inputs", when=got["down_proj"] == (1024, 14336))
    check.equal([got["gate_proj"], got["down_proj"], got["norm"]], [(3584, 4096), (4096, 3584), (4096,)])
with check.part("the cache", weight=1):
    got = [ask_forecast(sizes(64, 128, 8, 8, 16, 3), 8)["cache"], ask_forecast(sizes(4096, 14336, 32, 8, 128, 32), 4)["cache"]]
    check.mistake("a rank keeps the keys and values of its own heads only", when=got == [2 * 3 * 128 * 4, 2 * 32 * 1024 * 4])
    check.mistake("the cache holds keys and values, and it holds them for every layer", when=got[0] in (2 * 16 * 4, 3 * 16 * 4))
    check.equal(got, [2 * 3 * 16 * 4, 2 * 32 * 256 * 4])
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 3 · Trace
#
# First the whole model, in this process: one decode pass, every module.

# %%
from inferlab.trace import trace
from transformers import DynamicCache

cache = DynamicCache(config=config)
prompt = torch.tensor([ids], device=model.device)
model(prompt, None, None, cache, logits_to_keep=1)
with trace(model, depth="all") as whole:
    one = model(prompt[:, -1:], None, None, cache, logits_to_keep=1)

# %% [markdown]
# Now what the two processes report. Each traced the same kind of pass with its half of the model:

# %% tags=["demo"]
runs = ranks.results()
shape = {row["name"]: row["outputs"].get("shape") for row in whole.rows() if isinstance(row["outputs"], dict)}
halves = [{row["name"]: row["outputs"] for row in report["rows"]} for report in runs["library"]]
print(f"{ranks.backend}, {ranks.count} ranks\n{'boundary':34} {'whole':16} {'rank 0':16} rank 1")
for part in ("input_layernorm", "self_attn.q_proj", "self_attn.k_proj", "self_attn.o_proj", "mlp.gate_proj",
             "mlp.up_proj", "mlp.down_proj"):
    name = f"model.layers.0.{part}"
    print(f"{name:34} {str(shape[name]):16} " + "".join(f"{str(tuple(half[name]['shape'])):17}" for half in halves))

# %% [markdown]
# Stop at three places:
#
# * **`input_layernorm`**: both ranks have the whole hidden state, and both do the same work on it;
# * **`q_proj` to `gate_proj`**: half as wide on each rank. Nothing has been exchanged yet;
# * **`o_proj` and `down_proj`**: full width again, and the same values on both ranks. That is where the sum was made.
#
# **Reconcile.** Your forecast beside the weights that rank 0 really loaded:

# %% tags=["demo"]
from inferlab.lab import when_written

with when_written("forecast"):
    loaded = runs["library"][0]["weights"]
    keys = ("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim", "num_hidden_layers")
    mine = forecast({key: getattr(config, key) for key in keys}, ranks.count)
    for name in ("self_attn.q_proj", "self_attn.k_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.down_proj"):
        held = tuple(loaded[f"model.layers.0.{name}.weight"])
        print(f"{name:18} loaded {held!s:12} predicted {mine[name.partition('.')[2]]}")

# %% [markdown]
# What do they exchange in that pass? Three plans for the same weights. `library` is the plan that the model's class brings; `gather` cuts every
# projection by outputs and puts its result together at once; `pipeline` gives each rank half of the layers.

# %% tags=["demo"]
from inferlab.lab.ranks import traffic_table

for plan, reports in runs.items():
    print(f"{plan}: tokens {reports[0]['tokens']}, cache {reports[0]['cache_bytes']:,} B a rank")
    for op, module, times, size in traffic_table(reports[0], number=1):
        print(f"   {op:11} {module:22} {times:3} x, {size:6,} B put in by rank 0")

# %% [markdown]
# All three write the same tokens. `gather` is right, and wasteful: it asks for the others after *every* projection. The library's
# plan asks twice a layer (and once each for the embedding and for the logits). The pipeline sends one hidden state; its two broadcasts hand the logits
# to the rank that does not have them.
#
# And when was each rank busy?

# %% tags=["demo"]
from inferlab.lab.rankplots import rank_timeline

rank_timeline({name: runs[name] for name in ("library", "pipeline")},
              title="Tensor-parallel ranks work together, pipeline stages take turns")

# %% [markdown]
# Do not compare the lengths of the two panels: this model is so small that its messages cost more than the arithmetic that
# they save. (Times are shown here, never graded.) Compare the pattern. In the pipeline, while one rank computes the other waits, and for one user no setting changes that: the next
# token cannot begin before this one is finished.

# %% [markdown]
# ## 4 · Read
#
# What happens after the row-wise half of a pair, in the library's own code. One line of it is the whole communication of a layer.

# %% jupyter={"source_hidden": true}
from inferlab.lab import show_source
from transformers.distributed.tensor_parallel import RowwiseParallel

show_source(
    RowwiseParallel.transform_output_post_forward,
    {
        "dist.all_reduce(output, group=process_group)":
            "The sum over all ranks, in place. Before this line the output is a partial sum; after it, every rank has the same.",
        'if (bias := module._parameters.get("bias")) is not None:':
            "The bias waits until the sum is made. Why would it be wrong one line earlier?",
        "output = DTensor.from_local(output, mesh, [Partial()], run_check=False)":
            "With gradients the library says the same in types: a partial tensor ...",
        "output = output.redistribute(placements=[self.output_layouts])":
            "... that is asked to be replicated, which is an all-reduce again.",
    },
    checked="5.24.0",
)

# %% [markdown]
# The plan itself is a dictionary in the model's configuration class. Read it with the identity of section 1 in mind: which entries form a pair?

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
# <details><summary>Hint</summary>
#
# The names come from papers that write $xA$, with A as (inputs, outputs). A `Linear` keeps the transpose.
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
    check.true(isinstance(got, (list, tuple)) and len(got) == count, f"return a list of {count} slices, one for each rank")
    for piece in got:
        check.tensor(piece, dtype=tensor.dtype)
    return list(got)


with check.part("cut by outputs, in two", weight=1):
    got = cut(matrix, 2, "colwise")
    ### BEGIN HIDDEN TESTS
    check.mistake("a Linear's weight is (outputs, inputs): cutting by outputs cuts its rows", when=tuple(got[0].shape) == (8, 3))
    ### END HIDDEN TESTS
    check.equal(got, [matrix[:4], matrix[4:]])
### BEGIN HIDDEN TESTS
with check.part("cut by inputs, in three", weight=1):
    got = cut(matrix, 3, "rowwise")
    check.mistake("these are the outputs: a row-wise cut gives each rank some of the inputs", when=got[0].shape[1] == 6)
    check.equal(got, [matrix[:, :2], matrix[:, 2:4], matrix[:, 4:]])
with check.part("order and dtype", weight=2):
    half = torch.randn(12, 4, generator=torch.Generator().manual_seed(1)).to(torch.bfloat16)
    got = cut(half, 4, "colwise")
    check.mistake("neighboring rows belong together: they form a head", when=bool((got[0] == half[0::4]).all()))
    check.equal(got, list(half.chunk(4)))
    check.equal(cut(half, 2, "rowwise"), list(half.chunk(2, 1)))
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 3 · One rank's half of an MLP
#
# *difficulty 2 of 3 · 8 minutes · 3 points · practice*
#
# Write `rank_mlp(x, gate, up, down, bias, all_reduce)`, what **one** rank computes of a Llama MLP, `down(silu(gate(x)) * up(x)) + bias`.
#
# | argument | shape |
# |---|---|
# | `x` | `(B, T, hidden)`, the whole input, the same on every rank |
# | `gate`, `up` | `(mlp / ranks, hidden)`, this rank's slices, cut by outputs |
# | `down` | `(hidden, mlp / ranks)`, cut by inputs |
# | `bias` | `(hidden,)`, the *whole* bias of `down`, the same on every rank |
# | `all_reduce` | a function: gets a tensor, returns the sum of what all ranks gave it in this call |
#
# Returns the layer's output `(B, T, hidden)`, the same on every rank. `all_reduce` is expensive: call it as seldom as you can.
#
# <details><summary>Hint</summary>
#
# `torch.nn.functional.silu` works on single elements, so does the product with `up(x)`: neither needs the other ranks. What is the same on every rank must not be summed.
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

    Ranks run one after the other, in rounds: in each, all_reduce answers with the sums of what it was given in the round before."""
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
    ### BEGIN HIDDEN TESTS
    check.mistake("each rank has only its own term of the sum: nobody added them up", when=not any(given))
    ### END HIDDEN TESTS
    for out in outs:
        check.close(out, want, tol=1e-5)
### BEGIN HIDDEN TESTS
with check.part("exactly one all-reduce, of the hidden state's size", weight=2):
    outs, want, given = together(8, 16, 1, 4, seed=2)
    check.mistake("gate and up need no sum: each rank goes on with its own columns, and meets the others once, at the end",
                  when=len(given[0]) > 1)
    check.equal([len(mine) for mine in given], [1, 1, 1, 1])
    check.equal([mine[0].numel() for mine in given], [8] * 4)
with check.part("the bias is added once", weight=1):
    outs, want, given = together(8, 12, 2, 2, with_bias=1.0, seed=3)
    x, b, y, pieces = layer(8, 12, 2, 2, 1.0, 3)
    check.mistake("every rank added the bias before the sum: it is in the result once for each rank", when=close(outs[0], y + b, tol=1e-5))
    check.mistake("the bias is missing", when=close(outs[0], y - b, tol=1e-5))
    check.close(outs[0], want, tol=1e-5)
    check.close(outs[1], want, tol=1e-5)
with check.part("four ranks, a longer input", weight=1):
    outs, want, given = together(16, 32, 7, 4, with_bias=0.5, seed=4)
    for out in outs:
        check.close(out, want, tol=1e-5)
### END HIDDEN TESTS
check.score()

# %% [markdown]
# Your two functions on the first layer of the real model, two ranks played one after the other, beside what the module itself gives:

# %% tags=["demo"]
with when_written("shards", "rank_mlp"):
    mlp = model.model.layers[0].mlp
    x = torch.randn(1, 5, config.hidden_size, generator=torch.Generator().manual_seed(SEED)).to(model.device, model.dtype)
    pieces = list(zip(shards(mlp.gate_proj.weight, 2, "colwise"), shards(mlp.up_proj.weight, 2, "colwise"), shards(mlp.down_proj.weight, 2, "rowwise")))
    none = torch.zeros(config.hidden_size, device=x.device, dtype=x.dtype)
    partial = [rank_mlp(x, *piece, none, lambda tensor: tensor) for piece in pieces]
    print(f"largest difference to the whole layer: {(sum(partial) - mlp(x)).abs().max():.1e}")

# %% [markdown]
# Not zero: a sum in another order rounds differently. So a tensor-parallel model is not bit-identical to the whole one, and greedy decoding
# may take another turn where two tokens are nearly tied. A pipeline computes the very same operations:

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
# To save launches a colleague stores `gate` and `up` (or q, k and v) as **one** matrix, stacked by outputs, and splits it with
# `weight.chunk(ranks)`. Every shape is right, nothing raises, and the model writes nonsense. (With two ranks, look at which rows rank 0
# got.) Their fix, an all-gather after the projection, makes it right and slow.
#
# Write `split_fused(weight, parts, ranks)`, which splits so that no exchange is needed: the list of the ranks' slices.
#
# | argument | meaning |
# |---|---|
# | `weight` | `(sum(parts), inputs)` |
# | `parts` | `tuple` of `int`: how many rows each of the stacked projections has, in order |
# | `ranks` | `int`, divides each part |
#
# On every rank the slice has to be stacked in the same order: its rows of the first projection, then its rows of the second, and so on.
#
# <details><summary>Hint</summary>
#
# Take the parts apart first, split each, and put together what belongs to a rank. The library calls this style <code>packed_colwise</code>.
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
### BEGIN HIDDEN TESTS
with check.part("gate and up on two ranks", weight=2):
    stacked = torch.arange(16.0).reshape(8, 2)
    got = split_by_learner(stacked, (4, 4), 2)
    check.mistake("rank 0 has all of gate and nothing of up: cut each part, not the stack", when=torch.equal(got[0], stacked[:4]))
    check.mistake("every other row: rows that are neighbors form a head, and belong to one rank", when=torch.equal(got[0], stacked[0::2]))
    check.mistake("the parts of a rank have changed places: gate comes first on every rank",
                  when=got[0].shape == (4, 2) and torch.equal(got[0], stacked[[4, 5, 0, 1]]))
    check.equal(got, [stacked[[0, 1, 4, 5]], stacked[[2, 3, 6, 7]]])
with check.part("q, k and v with fewer key heads", weight=2):
    stacked = torch.randn(16 + 4 + 4, 3, generator=torch.Generator().manual_seed(5))
    got = split_by_learner(stacked, (16, 4, 4), 4)
    check.mistake("keys and values are cut, too: each rank keeps those of its own heads", when=got[0].shape[0] == 12)
    want = [torch.cat([stacked[4 * r:4 * r + 4], stacked[16 + r:17 + r], stacked[20 + r:21 + r]]) for r in range(4)]
    check.equal(got, want)
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 5 · What crosses the wire
#
# *difficulty 2 of 3 · 8 minutes · 3 points*
#
# Write `traffic(plan, ranks, layers, hidden, tokens, itemsize)`: what the layers of one forward pass exchange (without embedding and logits).
#
# | argument | meaning |
# |---|---|
# | `plan` | `"TP"` or `"PP"` |
# | `ranks`, `layers`, `hidden` | `int`, 1 or more. One rank has nobody to exchange with: all three answers are 0 |
# | `tokens` | positions in this pass, all sequences together: 1 for a decode step of one user, 512 for a prompt of 512 |
# | `itemsize` | bytes of one activation value |
#
# Returns a `dict` of numbers: `"exchanges"` (`int`), how often ranks exchange something, one after the other; `"payload"` (`int`), the bytes of all those messages, each
# counted once (for an all-reduce: what *one* rank puts in); `"sent"`, the bytes that the busiest rank sends in the pass. An all-reduce runs as a ring: of a message of n
# bytes each rank sends 2 (ranks − 1) / ranks · n. That may be a fraction: do not round it.
#
# <details><summary>Hint</summary>
#
# The log of section 3 holds the numbers of one pass on two ranks. The MLP's width appears in no message. A stage sends to its neighbor only.
# </details>

# %% exercise="traffic" provides=["traffic"] difficulty=2 minutes=8
def traffic(plan, ranks, layers, hidden, tokens, itemsize):
    """Exchanges, payload and bytes sent by the busiest rank, in the layers of one forward pass."""
    ### BEGIN SOLUTION
    message = tokens * hidden * itemsize
    if plan == "TP":
        payload = 2 * layers * message
        return {"exchanges": 2 * layers if ranks > 1 else 0, "payload": payload if ranks > 1 else 0, "sent": 2 * (ranks - 1) * payload / ranks}
    return {"exchanges": ranks - 1, "payload": (ranks - 1) * message, "sent": message if ranks > 1 else 0}
    ### END SOLUTION

# %% check="traffic" points=3
from inferlab.lab import Check

check = Check("traffic", points=3)


def crossing(*asked):
    """The learner's numbers, once they have the form that the contract asks for."""
    got = check.learner.traffic(*asked)
    check.true(isinstance(got, dict) and set(got) == {"exchanges", "payload", "sent"}, "return a dict with exchanges, payload and sent")
    check.true(all(isinstance(value, (int, float)) for value in got.values()), "each value is a number")
    return got


with check.part("a decode pass of the bundled model on two ranks, as in section 3", weight=1):
    got = crossing("TP", 2, 8, 256, 1, 4)
    check.equal([got["exchanges"], got["payload"]], [16, 16384])
### BEGIN HIDDEN TESTS
with check.part("tensor parallel, another model, 8 ranks", weight=2):
    got = crossing("TP", 8, 32, 4096, 1, 2)
    check.mistake("one pair in the attention and one in the MLP: that makes two exchanges a layer", when=got["exchanges"] == 32)
    check.mistake("only o_proj and down_proj end a pair: the other projections exchange nothing", when=got["exchanges"] > 64)
    check.equal([got["exchanges"], got["payload"]], [64, 524288])
with check.part("a prompt is more bytes, not more exchanges", weight=1):
    got = crossing("TP", 4, 32, 4096, 512, 2)
    check.mistake("a pass over a prompt is one pass: its messages are longer, not more", when=got["exchanges"] == 64 * 512)
    check.equal([got["exchanges"], got["payload"]], [64, 268435456])
with check.part("what a ring makes a rank send", weight=1):
    got = [crossing("TP", n, 32, 4096, 1, 2)["sent"] for n in (2, 4, 8, 3)]
    check.mistake("in a ring a rank sends nearly twice the message, whatever the number of ranks", when=got == [524288] * 4)
    check.mistake("in a ring nobody sends the whole message to every other rank", when=got[2] == 7 * 524288)
    check.mistake("three ranks share no message of whole bytes: keep the fraction", when=got[3] in (699050, 699051))
    check.close(got, [524288, 786432, 917504, 2 * 2 / 3 * 524288], tol=1e-3)
    got = crossing("TP", 1, 32, 4096, 1, 2)
    check.mistake("a single rank adds nothing up with anybody", when=got["exchanges"] == 64)
    check.close(got, dict.fromkeys(("exchanges", "payload", "sent"), 0), tol=1e-3)
with check.part("a pipeline", weight=1):
    got = crossing("PP", 4, 32, 4096, 3, 2)
    check.mistake("a pipeline sends between stages only, not inside them", when=got["exchanges"] in (32, 64, 31))
    check.mistake("four stages have three borders", when=got["exchanges"] == 4)
    check.equal([got["exchanges"], got["payload"]], [3, 73728])
    check.close(got["sent"], 24576, tol=1e-3)
    got = crossing("PP", 1, 32, 4096, 3, 2)
    check.mistake("a single stage hands nothing on", when=got["sent"] == 24576)
    check.close(got, dict.fromkeys(("exchanges", "payload", "sent"), 0), tol=1e-3)
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 6 · A pipeline, tick by tick
#
# *difficulty 3 of 3 · 12 minutes · 4 points*
#
# Operations in, events out. A pipeline has `stages`, each of which works on one pass for one tick and hands it on. `jobs` is a list: job `j` needs `jobs[j]` passes,
# **one after the other**. A microbatch of training is a job of one pass. A user who wants 20 tokens is a job of 20: pass 2
# needs the token that pass 1 made at the last stage.
#
# Write `schedule(stages, jobs)`: the list of events `(tick, stage, job, number)`, sorted in that order, all counted from 0 but `number`, which counts a
# job's passes from 1. Before stage 0 stands a queue, first come, first served: at the beginning the first pass of each job, in order of jobs; a
# pass that leaves the last stage at tick t puts its job's next pass at the end of the queue, in time for tick t + 1.
#
# <details><summary>Hint</summary>
#
# Keep two lists: the queue, and what stands at each stage. A tick moves every pass one stage on and lets the first of the queue in. Do first what leaves, then what enters.
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
### BEGIN HIDDEN TESTS
def run_pipeline(depth, work):
    """The truth: every pass by its own earliest tick at stage 0."""
    events, free, ready = [], 0, [(0, job, 1) for job, passes in enumerate(work) if passes]
    while ready:
        at, job, number = ready.pop(0)
        enter = max(at, free)
        free = enter + 1
        events += [(enter + stage, stage, job, number) for stage in range(depth)]
        if number < work[job]:
            ready.append((enter + depth, job, number + 1))
    return sorted(events)


with check.part("microbatches follow each other closely", weight=2):
    got = events_of(4, [1] * 3)
    check.mistake("the next microbatch may enter as soon as stage 0 is free: it need not wait until the one before it has left the pipeline",
                  when=got and got[-1][0] >= 8)
    check.equal(got, run_pipeline(4, [1] * 3))
with check.part("one user", weight=2):
    got = events_of(3, [3])
    check.mistake("the second token needs the first: its pass cannot enter before the first has left the last stage",
                  when=(1, 0, 0, 2) in got)
    check.equal(got, run_pipeline(3, [3]))
with check.part("more users than stages wait their turn", weight=2):
    got = events_of(2, [2, 2, 2])
    check.mistake("users take turns: the second need not wait for the whole answer of the first", when=(2, 0, 0, 2) in got)
    check.equal(got, run_pipeline(2, [2, 2, 2]))
with check.part("jobs of different lengths", weight=1):
    check.equal(events_of(3, [1, 4, 0, 2, 1]), run_pipeline(3, [1, 4, 0, 2, 1]))
### END HIDDEN TESTS
check.score()

# %% [markdown]
# Four stages. First training: more microbatches, and the bubble (the idle share) melts away.

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
# Now inference: one user who wants three tokens, then four users.

# %% tags=["demo"]
with when_written("schedule"):
    for users in (1, 4, 8):
        events = schedule(4, [3] * users)
        out = [tick for tick, stage, job, _ in events if stage == 3 and job == 0]
        print(f"{users} user(s): idle {idle(events, 4):.0%}; user a gets tokens at ticks {out}")
        print(grid(events, 4))

# %% [markdown]
# Four users fill the pipeline: the machine makes four times as many tokens. But look at the ticks at which user `a` is served. They are the same as alone, and
# with eight users they are worse. **Microbatches hide the bubble from the machine. Nothing hides it from a user**: a token passes all stages, one
# after the other, and the next one waits for it.

# %% [markdown]
# ### Exercise 7 · Split your machine
#
# *difficulty 3 of 3 · 10 minutes · 3 points*
#
# Here is a machine of up to eight ranks, different for each learner. Costs are whole ticks.

# %%
from inferlab.lab.machines import RANKS, machine

MACHINE = machine(lab.variant(16))
print(MACHINE, "ranks:", RANKS)

# %% [markdown]
# | entry | meaning |
# |---|---|
# | `layers` | of the model |
# | `compute` | ticks that one layer takes for one token on one rank |
# | `step` | ticks of one step of a ring; an all-reduce over n ranks has 2 (n − 1) steps, one after the other |
# | `hop` | ticks to hand a hidden state to the next stage |
#
# Write `cost(plan, ranks, machine)`, which returns a tuple `(latency, interval)` in ticks:
#
# * **latency** is how long one token of one user takes;
# * **interval** is how long after a token the next one leaves a machine that is full of users: a pass carries one token of one user, every
#   stage is busy, and hops go on while stages work.
#
# `plan` is `"TP"` or `"PP"`: with TP the ranks share the compute of a layer evenly, with PP the stages share the layers evenly (fractions of a layer are allowed).
#
# Then write `chosen()`: a `dict` for **your** machine, `"latency"`: the tuple `(plan, ranks)` with the smallest latency, `"interval"`: the one with the smallest
# interval, over both plans and all `RANKS`.
#
# <details><summary>Hint</summary>
#
# Under TP all ranks work on one token, so the next one begins when it is done. In a full pipeline a token leaves whenever the last stage finishes one.
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
    return {"latency": min(every, key=lambda key: every[key][0]), "interval": min(every, key=lambda key: every[key][1])}
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
### BEGIN HIDDEN TESTS
from inferlab.lab.machines import machine

with check.part("tensor parallel", weight=1):
    got = ticks("TP", 4, small)
    check.mistake("two all-reduces a layer, not one", when=abs(got[0] - (100 + 180)) < 1e-6)
    check.mistake("the ranks share the arithmetic, but they must also agree: the all-reduces are missing", when=abs(got[0] - 100) < 1e-6)
    check.close(got, (100 + 360, 100 + 360), tol=1e-6)
with check.part("a pipeline does not shorten a token's way", weight=2):
    got = ticks("PP", 4, small)
    check.mistake("one user's token still goes through every layer, one after the other: only the machine as a whole is faster",
                  when=got[0] < 400)
    check.mistake("a full pipeline does not wait for a token to leave before it starts the next", when=got[1] >= 400)
    check.close(got, (415, 100), tol=1e-6)
with check.part("your machine", weight=2):
    box = machine(check.variant(16))
    work = box["layers"] * box["compute"]
    tp = {n: work / n + 4 * box["layers"] * (n - 1) * box["step"] for n in (1, 2, 4, 8)}
    got = check.learner.chosen()
    check.true(isinstance(got, dict) and set(got) == {"latency", "interval"}, "return a dict with latency and interval")
    check.true(all(isinstance(pair, tuple) and len(pair) == 2 for pair in got.values()), "each value is a tuple (plan, ranks)")
    check.mistake("more ranks are not always sooner: at some point the all-reduces cost more than the arithmetic they save",
                  when=got["latency"] == ("TP", 8) and min(tp, key=tp.get) != 8)
    check.mistake("a pipeline shortens nobody's wait", when=got["latency"][0] == "PP")
    check.equal(got, {"latency": ("TP", min(tp, key=tp.get)), "interval": ("PP", 8)})
### END HIDDEN TESTS
check.score()

# %% tags=["demo"]
from inferlab.lab.rankplots import cost_against_ranks

with when_written("cost"):
    display(cost_against_ranks({plan: {n: cost(plan, n, MACHINE) for n in RANKS} for plan in ("TP", "PP")},
                               title="Only tensor parallelism shortens one user's token, up to a point"))

# %% [markdown]
# The left panel is the user's, the right one the operator's. Real servers do not let TP stand alone on the right: they put many users into one pass
# (lab 14), and then all of them share its all-reduces. Inside a node, with fast links, TP; between nodes, where a step is dear, pipeline stages: that is the usual mix.

# %% [markdown]
# ## 6 · Explain
#
# *difficulty 2 of 3 · 12 minutes · 6 points: 3 for the typed lines, 3 for the sentences*
#
# About the bundled model on two tensor-parallel ranks (the plan `library` of section 3), one decode pass of one user.
#
# | line | what it says |
# |---|---|
# | `state:` | one or two sentences: what each rank computes of a layer's output, and what makes the whole hidden state of it |
# | `axis:` | one or two sentences: what is halved on a rank and what is not, with numbers from the trace |
# | `trade-off:` | one or two sentences: what you gain and what you pay for one user when the same model is split as a pipeline instead of by tensor parallelism |
# | `shape:` | typed: the shape that `q_proj` gives on one rank |
# | `exchanges:` | typed: how many all-reduces happen inside the layers |
# | `bytes:` | typed, with a unit: how many bytes one rank puts into those |
# | `gain:` | typed, such as `bandwidth down`: what a second tensor-parallel rank improves for one user of a big model |
# | `cost:` | typed: what gets worse or more |

# %%
explained = whole  # %%explain looks the numbers of your answer up in the newest trace that has a name
# This one is of the whole model: a rank's own numbers, in section 3's table, are right and yet marked as not in your trace.

# %% explain="two-ranks" difficulty=2 minutes=12
%%explain two-ranks
# ### BEGIN SOLUTION
# state: Each rank computes a partial sum of the layer's output from its own heads and its own columns of the MLP, and the all-reduce adds the partial sums into the whole hidden state on every rank.
# axis: The heads are split: q_proj gives 128 features on a rank instead of 256, and each rank has 4 of the 8 query heads. The hidden state keeps its width of 256.
# trade-off: A pipeline exchanges far less traffic than tensor parallelism, but the latency of a user's token goes up, because the stages work one after the other.
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
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import typed

with check.part("what q_proj gives on one rank"):
    told = check.explanation("two-ranks")
    check.mistake("this is the whole model's: a rank has half of the heads", when=typed(told, "shape", (1, 1, 256)).verdict == "award")
    check.mistake("this is the weight's shape, not the output's", when=typed(told, "shape", (128, 256)).verdict == "award")
    outcome = typed(told, "shape", (1, 1, 128))
    check.true(outcome.verdict == "award", outcome.reason)
### END HIDDEN TESTS
check.score()

# %% check="two-ranks-traffic" of="two-ranks" points=1
from inferlab.lab import Check

check = Check("two-ranks-traffic", points=1)
with check.part("`exchanges:` and `bytes:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("two-ranks").get("exchanges"), "`exchanges:` is empty")
    check.true(check.explanation("two-ranks").get("bytes"), "`bytes:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import typed

with check.part("how many all-reduces"):
    told = check.explanation("two-ranks")
    check.mistake("two in every layer: one after the attention, one after the MLP", when=typed(told, "exchanges", 8).verdict == "award")
    check.mistake("the embedding's is not inside a layer", when=typed(told, "exchanges", 17).verdict == "award")
    outcome = typed(told, "exchanges", 16)
    check.true(outcome.verdict == "award", outcome.reason)
with check.part("how many bytes"):
    told = check.explanation("two-ranks")
    check.mistake("that is one message: there are two a layer", when=typed(told, "bytes", 1024).verdict == "award")
    outcome = typed(told, "bytes", 16384, tolerance=0.03)
    check.true(outcome.verdict == "award", outcome.reason)
### END HIDDEN TESTS
check.score()

# %% check="two-ranks-gain-cost" of="two-ranks" points=1
from inferlab.lab import Check

check = Check("two-ranks-gain-cost", points=1)
with check.part("`gain:` and `cost:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("two-ranks").get("gain"), "`gain:` is empty")
    check.true(check.explanation("two-ranks").get("cost"), "`cost:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import typed

check.slot(lambda: typed(check.explanation("two-ranks"), "gain", ("latency down", "memory down", "compute down")), "what a second rank gains")
check.slot(lambda: typed(check.explanation("two-ranks"), "cost", ("traffic up", "transfer up", "communication up"),
                         terms={"communication": "all-reduces, all-reduce, allreduce, allreduces, collectives, exchanges, synchronisation, synchronization, messages, bytes sent"}),
           "what it costs")
### END HIDDEN TESTS
check.score()

# %% check="two-ranks-state" of="two-ranks" points=1
from inferlab.lab import Check

check = Check("two-ranks-state", points=1)
with check.part("`state:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("two-ranks").get("state"), "`state:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import Rubric, Slot, Trend, grade

RUBRIC = Rubric(
    question="What each rank computes of a layer's output, and what makes the whole hidden state of it.",
    lab="Each rank computes its own term. Only the sum needs the others: one all-reduce a pair. Full width again, and the same values on "
        "both ranks. That is where the sum was made.",
    terms={
        "allreduce": "all-reduce*, all reduce*, allreduce*, all_reduce*, reduction, collective*, sum across ranks, sum over ranks, sum over all ranks, "
                     "sum over the ranks, "
                     "summation across ranks, summation over ranks, sum of both ranks, sum over both ranks, sum-reduce",
        "rank": "rank*, each rank, every rank, process*, device*, gpu*, worker*, card*",
        "pass": "forward pass*, decode pass*",
        "partial": "partial*, addend*, summand*, contribution*",
        "norm": "norm, layernorm, input_layernorm, rmsnorm, softmax, lm_head",
        "broadcast": "broadcast*",
        "stage": "stage*, pipeline*",
        "weights": "weight*, parameter*",
        "hidden": "hidden state*, hidden vector, full output, whole output, complete output, full result, whole result, complete result",
        "gather": "all-gather*, all gather*, allgather*, all_gather*, gather*, concatenation",
    },
    slots={"state": Slot(
        learned="lab18 state 9ade44721a7c15c9",
        # not a direction: what learners say for the two halves of the answer, in phrases (a `not` before one denies it)
        trend=Trend("pass", gain={"the sum": "up"}, cost={"a rank's term": "up"}, asked="up", says={
            "the sum up": "all-reduce/allreduce/all_reduce/all-reducing/collective/reduction .. "
                          "sum/sums/summation/add/addition/total/accumulate/plus/superpose/aggregate/combine, "
                          "sum/summation/add/addition/combine/accumulate/total/aggregate/total .. "
                          "all-reduce/allreduce/all_reduce/all-reducing/collective/reduction, "
                          "is/get/be sum/add/combine/accumulate/total/aggregate, is/get both/all/then/just/simply sum/add/combine, "
                          "add/sum/combine/total/accumulate/addition/summing/adding .. "
                          "term/part/piece/partial/share/summand/addend/contribution/portion/them/these/those/both/two/it, "
                          "elementwise/element-wise sum/addition, sum across/over ranks/both/all, sum of .. both/all/two/these/those/partial/term/part, "
                          "terms/parts/pieces/partials/shares/summands/addends/contributions/portions/halves/results/outputs/sums add/adding/added, "
                          "turns/converts/makes .. into .. whole/full/complete, "
                          "all-reduce/allreduce/all_reduce .. makes/gives/restores/yields/produces/creates/completes/forms/turns/brings .. "
                          "whole/full/complete/total/entire, "
                          "whole/full/complete/entire .. after/by/from/via/through/once/until .. all-reduce/allreduce/all_reduce, "
                          "all-reduce/allreduce/all_reduce/reduction .. makes/gives/yields/forms/builds/computes/takes/calculates/is .. sum/total, "
                          "all-reduce/allreduce/all_reduce/all-reduces/all-reducing the/their/these/those/both/its .. "
                          "addends/summands/terms/partials/sums/parts/pieces/shares/contributions/results/outputs, "
                          "sum across/over/of the/two .. ranks/gpus/devices/processes, sum with .. other, completes it/them/the/this/each, "
                          "add/adds/sum/sums up everything/all, after it/this/that/which both/each/all/every/everyone/they .. full/whole/complete, full/whole/complete/same on both/all/each/every, "
                          "has/have/gets/get/holds/hold the total/sum, total/sum on both/all/each/every",
            "a rank's term up": "neither/none .. right/correct/complete/whole, right/complete on its own, is/are/stays/be incomplete/unfinished/partial, "
                                "half-computation/half-computations/half-result/half-results, "
                                "part/piece/term/share for/to/towards the sum/total/output/hidden/whole, contribution to/towards, partial/partials, "
                                "own/its/their/one/a/single/each term/share/part/piece/addend/summand/contribution/portion of .. "
                                "sum/output/result/total/layer/product, "
                                "own/its/their/one/a/each term/addend/summand/contribution/partial, own/their/its share/part/piece/portion, own slice of .. sum, "
                                "part of .. sum/output/result, term/terms of .. sum, "
                                "half the sum, half of the sum, only/just half of the/each/every sum, only/just half the sum, part/piece/share of the answer/total/truth/whole, contribute/contributes, piece/part of it, "
                                "summand, addend, incomplete/unfinished output/result/sum/vector, "
                                "not/isn't/never .. complete/right/correct/whole .. until/before/yet, only/just .. part/share/portion of, "
                                "subtotal, sub-total, subsum, partial total, half of each/every/a sum, half-finished, half-done, half finished/done/summed, "
                                "output/result/sum/vector/answer .. not yet complete/whole/full/finished/right/correct/final, "
                                "output/result/sum/vector/answer .. not/isn't complete/whole/full/finished/right/correct/final, "
                                "missing/misses/miss/lacks/lack/lacking .. other/others/rest, "
                                "rank's/gpu's/device's/process's/its .. contribution/term/addend/summand/subtotal/share, "
                                "contributions/terms/addends/summands of/from .. own/its/their, contributions/terms which/that come from, "
                                "sum/output/result .. own heads/columns/slice/half, term/part/piece/share/contribution per/from each/every/rank",
        }),
        deny={
            "gather makes/moves/keeps/changes *": "Nothing is put side by side here: partial sums are added.",
            "* concatenate/append/stack *": "Nothing is put side by side here: partial sums are added.",
            "stage makes/passes *": "These ranks work at the same time, on the same token: there are no stages.",
            "allreduce split/slice/cut/divide/separate/shrink/halve *": "An all-reduce takes nothing apart: it adds.",
            "allreduce moves/splits/changes weights": "Weights stay where they are; activations are summed.",
            "norm makes/changes/keeps hidden": "A norm works on what is whole already.",
            "broadcast makes/passes/moves/keeps *": "Nothing is broadcast inside a layer: partial sums are added.",
            "says: computes/calculates/makes/produces/evaluates/does/derives the/a whole/full/complete/entire hidden/output/result/layer/vector/sum/state "
            "by/on/itself/alone/and, "
            "rank/process/gpu/device/worker computes/calculates/makes/produces/evaluates/does/derives the/a whole/full/complete/entire "
            "hidden/output/result/layer/vector/sum/state, "
            "already has/holds .. full/whole/complete, computes everything, each does everything, no/without all-reduce/allreduce/all_reduce, needs no adding, "
            "nothing .. exchanged, nothing is added/summed, "
            "no exchange/sum/communication .. needed/required/necessary": "One rank has only its term of the sum. What makes the whole of it?",
            "says: half of the layers, half the layers, half of all layers, some of the layers, whole layers, its own layers, different layers, "
            "4 of the 8 layers, four of the eight layers, "
            "4 layers, four layers, next stage, next rank, does/has/runs/computes the attention and, does attention and, first/second half of the model, "
            "to the next, "
            "rank 0/zero/1/one computes/does/runs/makes .. layer/layers, rank 0/zero/1/one computes/does/runs/makes attention, "
            "rank 0/zero/1/one computes/does/runs/makes the/all attention/mlp/heads":
                "Every rank works on every layer, at the same time: there are no stages.",
            "says: half of the entries/features/vector/hidden/dimensions/components/numbers, "
            "half the entries/features/vector/hidden/dimensions/components/numbers, halves of the hidden/vector/entries, "
            "side by side, concatenates/concatenated/concatenating/concat, stitch*, glue*, next to each other, one after the other":
                "A term has the full width, and the terms are added: nothing is put side by side.",
            "says: all-reduce/allreduce/all_reduce .. sends/copies/forwards/passes, all-reduce/allreduce/all_reduce .. hands the/its partial/half/weights, sends/copies/hands the partial, rest of the layers": "An all-reduce adds what all ranks have, and all get the sum.",
            "says: average*, averaging, maximum of, the max of, multiplies .. partial/terms/results, multiplied together, "
            "all-reduce/allreduce/all_reduce .. pick/picks/picking/select/selects/selecting/choose/chooses/choosing, "
            "by picking/selecting/choosing": "The terms are added, nothing else.",
            "says: after each/every projection/projections/matrix/linear/matmul/weight, after each/every of them/these .. all-reduce, after each/every one .. all-reduce, "
            "all-reduce after each/every/the first projection/matrix/linear/matmul/weight/column": "Of a pair of matrices only the second needs the sum: one all-reduce a pair.",
            "says: part/share/portion/slice of the tokens/batch/prompt/sequence/users/requests, own/its/different/other tokens/users/requests/prompts, "
            "half of the batch, half the batch, half of the tokens, half the tokens, half of the prompt, half of the users, half of the requests, gradient*":
                "Both ranks work on the same token.",
            "says: rank 0/zero/1/one adds/sums/collects, main/master/first rank adds/sums/collects, sent/send/sends .. to rank 0, "
            "rank 0/zero/1/one computes/does/makes .. sum/addition/adding/summing/everything, "
            "rank 0/zero/1/one computes/does/makes the/a whole/full/complete": "No rank is special: all get the sum.",
        },
        names=["allreduce"],
    )},
    must_award={"state": [
        "Each rank computes a partial sum from its own heads, and the all-reduce adds the partial sums.",
        "Every rank produces its own term of the output; an all-reduce turns the partial outputs into the full hidden state.",
        "The ranks compute partial outputs with their slices of the weights and all_reduce adds the partial results on all ranks.",
        "A rank makes a partial result from half of the heads, then the all-reduce makes the whole hidden state.",
        "what a gpu has is only its share of the sum, it gets summed up with the other one's by the all-reduce",
        "The rank calculates one addend with its columns, and by all-reduce both addends are summed to the complete vector.",
        "The all-reduce sums the parts, because a rank by itself only holds a subtotal of the output.",
        "Rank 0 does its own heads and rank 1 does its own, so the output of a rank is still missing the other one's part, and the all-reduce adds both parts.",
    ]},
    must_deny={"state": [
        "Each rank computes the whole hidden state and no all-reduce is needed.",
        "The first stage computes half of the layers and sends them on.",
        "An all-gather puts the halves of the hidden state side by side.",
        "The all-reduce moves the weights to the other rank.",
        "Each rank has a partial sum, and the all-reduce concatenates the partial sums.",
        "The all-reduce does not add the partial sums of the ranks.",
        "Rank 0 computes the attention and rank 1 computes the MLP, and the all-reduce adds the two results.",
        "The all-reduce splits the sum, so that each rank has its own term of it.",
        "Each rank has a partial output, and the all-reduce picks the right value of one of the ranks.",
        "Each rank has its part of the tokens, and the all-reduce sums the results.",
        "Each rank has a partial sum after each projection, and each time an all-reduce adds them.",
    ]},
)
check.slot(lambda: grade(check.explanation("two-ranks"), RUBRIC, {})["state"], "what a rank computes, and what makes the whole")
### END HIDDEN TESTS
check.score()

# %% check="two-ranks-axis" of="two-ranks" points=1
from inferlab.lab import Check

check = Check("two-ranks-axis", points=1)
with check.part("`axis:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("two-ranks").get("axis"), "`axis:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import Amounts, Rubric, Slot, grade

RUBRIC = Rubric(
    question="What is halved on a rank and what is not, with numbers from the trace.",
    lab="Both ranks have the whole hidden state, and both do the same work on it. Half as wide on each rank. Full width again.",
    terms={
        "features": "feature*, output features, output axis, outputs, projection*, projected width, last axis, last dimension, last dim, columns, qkv, shard*",
        "query": "q, q_proj, q_proj output*, q_proj result*, q projection*, query projection*, query feature*, query width, q_proj width, queries, qproj",
        "heads": "head*, query head*, attention head*, q head*, q heads",
        "kv": "kv head*, key/value head*, key head*, value head*, key-value head*, k/v head*, k and v head*, key and value head*, k, v, k_proj, v_proj, kv, k/v, "
              "kv cache, cache",
        "mlp": "mlp*, mlp width, mlp's inner width, inner width, inner dimension, intermediate*, neuron*, gate_proj, up_proj, gate/up, gate, gate and up, ffn*, "
               "feed-forward*, feedforward*",
        "hidden": "hidden state*, hidden size, hidden width, hidden dim*, hidden, hidden axis, residual*, residual stream*, layernorm*, input_layernorm, norm*, "
                  "model width, block input, block output",
        "out_projection": "o_proj, down_proj, o_proj output*, down_proj output*",
        "layers": "\"layers\"",
        "tokens": "token*, sequence*, position*",
        "batch": "batch*",
        "ranks": "rank*, process*",
    },
    slots={"axis": Slot(
        learned="lab18 axis 6cbc537731903c91",
        topic=["features", "query", "heads", "mlp", "kv"],
        deny={
            "says: half of the layers, half the layers, layers are/is/were/get split/halved/divided/shared/cut between/among/in/over/across/to, "
            "layers are halved, number of layers is/are halved, number of layers, "
            "4 of the 8 layers, 4 of 8 layers, four of the eight layers, four of eight layers, layers per rank, depth is halved":
                "Every rank has all the layers: it is each layer that is cut.",
            "ranks splits tokens": "Both ranks work on the same token.",
            "ranks splits batch": "The batch is the same on both ranks.",
            "says: half of the tokens/batch/prompt/sequence/users, half the tokens/batch/prompt/sequence/users, batch axis is halved/split/cut, "
            "batch is halved/split/cut, tokens are halved/split/cut, "
            "sequence is halved/split/cut, token axis is halved/split/cut, prompt is halved/split/cut": "Both ranks work on the same token of the same user.",
            "says: hidden state/states/size/width/vector is/are/gets/was/becomes/also halved/halfed/split/cut/divided/sliced/smaller, hidden is halved/split/cut, "
            "halved is/are the hidden, halved the hidden, "
            "residual/residuals is/are halved/split/cut, norm/norms/layernorm is/are halved/split/cut, residual stream is halved/split/cut, "
            "hidden state/size from 256, hidden state of 128, 128 of the hidden, 128 of the 256 hidden, 128 of 256 hidden, half of the hidden, half the hidden, "
            "output/outputs of o_proj/down_proj is/are halved/cut/split/128, o_proj/down_proj output is/are halved/cut/split/128, "
            "o_proj/down_proj gives/returns/produces/makes 128, output/outputs of o_proj/down_proj .. to 128":
                "The hidden state is whole on both ranks: what is cut stands between two sums.",
            "says: q_proj/heads/mlp/features/gate_proj/queries/projections stays/stay/remains/remain/is/are/keeps/keep "
            "whole/full/unchanged/uncut/undivided/all/256, "
            "q_proj/heads/mlp/features/gate_proj/queries/projections is/are/isn't/aren't not halved/cut/split/divided, "
            "q_proj/heads/mlp/features/gate_proj isn't/aren't halved/cut/split/divided, "
            "kv/cache/k_proj/v_proj/keys/k stays/stay/remains/remain/keeps/keep 64/whole/full/unchanged/uncut/undivided, "
            "kv/cache/k_proj/v_proj/keys/k is/are not halved/cut/split/divided, kv/cache/k_proj/v_proj/keys/k isn't/aren't halved/cut/split/divided, "
            "q_proj/q/queries/heads/mlp/gate_proj .. retains/retain/keeps/keep its/their/the full/whole/entire, "
            "query projection/projections .. retains/retain/keeps/keep its/their/the full/whole/entire, "
            "doubled, doubles, doubling, q_proj/q/query/queries/heads/projection has/have/is/are/gives/keeps/retains 704, q_proj/query .. full 704, "
            "mlp/gate/gate_proj/ffn .. from 256 to 128, "
            "64 on/per/in each/every/both, not halved k/k_proj/v_proj/kv/keys, not halved is/are the/k/k_proj/v_proj kv/keys/cache/k_proj, not halved is/are k/k_proj/v_proj/kv, "
            "not halved is/are q_proj/heads, not halved are the heads, q_proj .. 256 .. instead/rather/not .. 128, "
            "256 features/outputs/columns .. instead/rather/not .. 128":
                "The projections into the heads (queries, keys and values) and into the MLP are cut by their outputs.",
            "says: is/stays/remains/has/are 704 on each/every/a/both, 256 features/outputs/columns on/per each/every/a/rank, 8 heads on/per, eight heads on/per, "
            "heads are/is/stay/stays/remain/remains 8/eight, nothing is cut/halved/split, "
            "and not halved, too is both, and are not halved, halved and whole, is both": "A rank has half of the heads and of the MLP, and no more.",
        },
        amounts=Amounts(
            shapes=["q", "whole", "gate", "k", (128, 256), (32, 256), (352, 256), (256, 128), (256, 352)],
            counts={"features": [128, 256, 352, 704, 32, 8, 4], "query": [128, 256, 8, 4, 32], "heads": [8, 4, 32, 2, 1], "kv": [2, 1, 32, 64], "mlp": [704, 352], "hidden": 256,
                    "out_projection": [256, 128, 352], "layers": 8},
            key=["query=128", "query=4", "heads=4", "kv=1", "kv=32", "mlp=352", "features=352", "features=128", "features=32"],
            moves=[(704, 352), (8, 4)],
        ),
        loose=True,
    )},
    must_award={"axis": [
        "q_proj gives 128 features on a rank instead of 256, the hidden state keeps its width of 256.",
        "Each rank has 4 of the 8 query heads, but the hidden state is whole with 256 on both ranks.",
        "The MLP width is 352 on a rank instead of 704, while the hidden state stays at 256.",
        "The output axis of q_proj is halved, (1, 1, 128) on each rank, and the layernorm still sees (1, 1, 256).",
        "On a rank the MLP is only 352 wide and not 704, but the norm still sees all 256.",
        "On each rank q is 128 wide instead of 256, but the hidden state keeps its 256.",
        "A layer gets 256 in and gives 256 out on both ranks, and in between q is only 128 wide.",
    ]},
    must_deny={"axis": [
        "The batch axis is halved, each rank gets half of the tokens.",
        "The 8 layers are split between the two ranks, 4 layers on each.",
        "q_proj gives 512 features on a rank.",
        "Some axis is smaller on a rank.",
        "The hidden state is halved to 128 on each rank, but q_proj stays whole at 256.",
        "The MLP has 176 on a rank instead of 704.",
        "q is halved to 128 on a rank, but k is not halved, it is 64 on both ranks.",
        "The MLP goes from 256 to 128 on a rank, and the queries have 704.",
        "Each rank has 128 of the 256 hidden features.",
        "The output of o_proj is halved to 128, and q_proj gives 128 as well.",
    ]},
    example_facts={"q": (1, 1, 128), "whole": (1, 1, 256), "gate": (1, 1, 352), "k": (1, 1, 32)},
)
facts = {"q": (1, 1, 128), "whole": (1, 1, 256), "gate": (1, 1, 352), "k": (1, 1, 32)}
check.slot(lambda: grade(check.explanation("two-ranks"), RUBRIC, facts)["axis"], "what is halved, with numbers")
### END HIDDEN TESTS
check.score()

# %% check="two-ranks-trade-off" of="two-ranks" points=1
from inferlab.lab import Check

check = Check("two-ranks-trade-off", points=1)
with check.part("`trade-off:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("two-ranks").get("trade-off"), "`trade-off:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import Rubric, Slot, Trend, grade

RUBRIC = Rubric(
    question="What you gain and what you pay for one user when the same model is split as a pipeline instead of by tensor parallelism.",
    lab="The pipeline sends one hidden state. A token passes all stages, one after the other, and the next one waits for it.",
    terms={
        "pipeline": "pipeline*, pipeline parallelism, pipelining, pp, stages, "
                    # what a pipeline is, no gain or cost of it: `needs a single transfer` raises nothing
                    "requires .. single transfer, requires .. single send, requires .. single exchange, requires .. single message, "
                    "needs .. single transfer, needs .. single send, needs .. single exchange, needs .. single message, "
                    "requires .. one transfer, requires .. one send, requires .. one exchange, requires .. one message, "
                    "needs .. one transfer, needs .. one send, needs .. one exchange, needs .. one message",

        "tensor": "tensor parallel*, tensor parallelism, tp",
        "traffic": "amount of data, amount of data exchanged, amount of communication, amount of traffic, communication*, message*, exchange*, all-reduces, "
                   "all-reduce, allreduces, all_reduces, collective*, bytes exchanged, bytes sent, data, "
                   "data exchanged, hand-overs, handovers, handoffs, sends, "
                   "transfers, synchronisation, synchronization, synchronizations, syncs, bytes, bandwidth, network, network load, chatter, talking, slow link*, "
                   "slow network*, slow interconnect*, slow cable*, "
                   "slow connection*, slower link*, slower network*, slower interconnect*, fast link*, fast network*, fast interconnect*, slow wire*",
        "with_tp": "no speed, tp .. faster, tp .. sooner, tp .. quicker, tensor parallelism .. faster, tensor parallelism .. sooner, tensor parallelism .. quicker, "
                   "faster with tp, faster under tp, faster in tp, "
                   "no sooner than, no faster than, no quicker than, no earlier than, no shorter than, no better than, no lower than, not sooner than, "
                   "not faster than, not quicker than, not earlier than, not shorter than, not better than, not lower than, "
                   "faster with tensor, faster under tensor, sooner with tp, sooner under tp, sooner with tensor, sooner under tensor, quicker with tp, "
                   "quicker with tensor, tp ranks work, half of the time, "
                   "half the time, the speed-up, up the speed-up, any speed-up, no speed-up, the speedup, any speedup, no speedup, slow stage, as slow as, "
                   "as fast as",
    },
    slots={"trade-off": Slot(
        learned="lab18 trade-off b81f804345b14968",
        deny={
            "says: tp/parallelism is/gets/makes/becomes slower/later/longer, tp/parallelism needs/sends/has less/fewer, slower with/under/in tp, twice as fast, "
            "half the latency, latency is halved, halves the latency, "
            "pays/pay/paying/costs nothing, no price, "
            "bubble .. hidden/filled .. user, microbatches hide/fill .. user": "One token of one user still passes every stage, "
                                                                               "one after the other: it comes no sooner.",
            "says: stages/ranks/devices work/run at the same time, stages/ranks work/run in parallel on, all stages work on the": "For one user only one stage has work at a time.",
            "says: more exchanges/messages/communication/traffic/all-reduces than tp/tensor, "
            "pipeline/pp/stages/it/you/one/we/they/by/must/to need/needs/needing/require/requires/has/have/make/makes/do/does/use/uses/pay/pays/cost/costs .. "
            "all-reduce/all-reduces in/per/at/after/for every/each layer, "
            "pay/pays/paying/price with/by/is/of/for .. all-reduce/all-reduces in/per/at/after/for every/each layer, "
            "more/additional/extra all-reduce/all-reduces, and/but/so all-reduce/all-reduces in every/each layer": "A pipeline sends one hidden state at each border of two stages.",
        },
        trend=Trend(
            "pipeline", gain={"traffic": "down", "transfer": "down", "throughput": "up"}, cost={"time": "up"}, switch=True, asked="up", also={"with_tp": "same"},
            says={
                "transfer down": "requires/needs a/only/just single/one transfer/send/exchange/message, requires/needs one transfer/send/exchange/message, "
                                 "requires/needs only/just a single transfer/send/exchange/message, almost/nearly/hardly/barely nothing/anything, little traffic/communication/chatter/talk, only/just/single/one/1 hidden state, "
                                 "less demanding, lower/smaller/less/weaker/modest .. network/link/bandwidth/interconnect, "
                                 "only little, 1 send/transfer/message/exchange/hop/handover/handoff/communication/hand-over, "
                                 "only/just one/1/a hidden/send/transfer/message/exchange/hop/hand-over/handover/handoff/communication/sync, "
                                 "a single send/transfer/message/exchange/hop/handover/handoff/communication/hidden/hand-over, "
                                 "one send/transfer/message/exchange/hop/handover/handoff/hand-over/communication/hidden, "
                                 "hardly/barely/seldom/rarely/almost .. talk/communicate/exchange/sync/send/communication/traffic/messages, "
                                 "talk/talks/communicate/communicates/exchange/exchanges/send/sends/sync/synchronise/synchronize/synchronises/synchronizes/coordinate .. "
                                 "less/little/once/rarely/seldom/only/rarer, "
                                 "less talk/talking/chatter/chat/syncing/comms/sending, "
                                 "cheap/cheaper/easy/easier/light/lighter on .. network/link/links/wire/interconnect/cable, "
                                 "works/fine/good/ok/okay/tolerant/tolerates/enough/suited .. slow "
                                 "link/links/network/interconnect/interconnects/cable/cables/connection/networks, "
                                 "slow/slower link/links/network/networks/interconnect/interconnects/cable/cables/connection .. "
                                 "fine/enough/ok/okay/suffices/sufficient/works/do/does, "
                                 "no/without/instead of/saves/spares/avoids .. "
                                 "all-reduce/all-reduces/allreduces/allreduce/all_reduce/all_reduces/sync/syncs/syncing, "
                                 "communicate/communicates/exchange/exchanges/talk only at/between, only at .. border/borders/boundary/boundaries, "
                                 "hidden state/states once, once at/per .. border/boundary, instead/rather .. 16 syncs/all-reduces/times/exchanges, "
                                 "wins/gains/better/saves .. chatter/network/bandwidth/traffic/communication, needs/need little, "
                                 "one/1 hidden state at/per/between, sends only, economises on exchanges",
                "time up": "latency/time/wait of/for .. does/do/did/will/can not go/drop/fall/shrink/decrease/improve, "
                           "latency/time/wait of/for .. doesn't/don't/didn't/won't/cannot/can't go/drop/fall/shrink/decrease/improve, "
                           "cannot/can't/not/don't work/run .. together/simultaneously/parallel/same, "
                           "latency/time/wait .. not/isn't/doesn't/doesnt/no/never drop/drops/fall/falls/shrink/shrinks/decrease/decreases/go/change, "
                           "lose/loses/losing/lost .. parallel/parallelism, no/without parallelism for/in, latency .. like .. one/single/a device/gpu/machine, "
                           "all/every/each/the .. stages in a row, stage/stages/rank/ranks work/works/compute/computes in turn, "
                           "waiting/waits/wait as long as, serially, not/doesn't/doesnt/don't/won't/never/no/cannot .. make/makes/get/gets/give/gives/come/comes/"
                           "bring/brings/serve/see/sees .. "
                           "faster/sooner/quicker/earlier/better, more/extra/additional time, "
                           "not/isn't/isnt/doesn't/doesnt/don't/won't/never/no/nor/cannot/can't/aren't/nothing .. "
                           "faster/sooner/quicker/earlier/shorter/better/improve/improved/improves/shorten/shortens/reduce/reduces/lower/lowers/less, "
                           "no/without/not/loses/lose/lost/losing/forgoes/forgo/foregoes/forego/gives/give/giving/forfeit/forfeits/forfeited/sacrifices .. "
                           "speed/speed-up/speedup/gain/reduction/acceleration/improvement, "
                           "one after another/other, one after the other/another, one at a time, one by one, in turn, in turns, take/takes/taking turns, "
                           "in sequence, in series, sequential, sequentially, serially, alternate, "
                           "go/goes/pass/passes/passing/travel/travels/run/runs/walk/walks/traverse/traverses/visit/visits through/every/each/all .. "
                           "stage/stages/layer/layers/ranks, stage/stages .. one after, no/not sooner/faster/quicker/earlier/shorter/better/lower than, "
                           "waits/wait/waiting for .. stage/stages/other/rank/ranks/previous/turn/predecessor, "
                           "one/other/second/half/rank/stage/each .. idle/idles/idling/waits/nothing, "
                           "only one rank/stage/device/gpu .. work/time/works/busy/moment, as long as .. one/single/whole/unsplit/device/rank, as slow as, "
                           "same time as/on/with .. one/single/whole/device, "
                           "latency .. not/isn't/isnt/doesn't/doesnt/no/never .. better/improve/improved/shorter/lower/reduced/less/smaller, "
                           "latency .. unimproved/unreduced/unchanged/stays/remains/same, "
                           "does nothing for .. user/latency, nobody's wait, waits for all/every/each, tp .. faster/sooner/quicker/together, "
                           "tensor parallelism .. faster/sooner/quicker/together, "
                           "faster/sooner/quicker with/under/in tp/tensor, until .. stage/rank .. done/finished/finishes, only begin once, "
                           "only start once/when/after",
            }))},
    must_award={"trade-off": [
        "A pipeline needs far less communication, but the latency of a token goes up.",
        "The pipeline sends fewer messages, but each token takes longer.",
        "With a pipeline there is less traffic, but one user waits longer for each token.",
        "Less communication, but a slower token for the user.",
        "Only one hidden state has to cross, but my token is no sooner there, since the stages take turns.",
        "It hardly exchanges anything; in return a token must go through one stage after the other.",
        "Fewer exchanges, one hidden state instead of two all-reduces in every layer, but the token takes longer.",
        "The ranks synchronise only once, but the user's token is not sooner than on one device.",
        "It needs a single transfer per token, but the token is no faster than on one device.",
    ]},
    must_deny={"trade-off": [
        "The pipeline makes each token faster and needs more communication.",
        "A pipeline lowers the latency of a token and sends fewer messages.",
        "A pipeline needs more communication but the latency goes down.",
        "With a pipeline there is more traffic and one user waits less.",
        "One user's token comes twice as fast, since each device has half of the layers.",
        "There is less traffic, but the price is two all-reduces in each layer and a longer wait.",
    ]},
)
check.slot(lambda: grade(check.explanation("two-ranks"), RUBRIC, {})["trade-off"], "what a pipeline gains and costs")
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7 · Notice
#
# * **Pipeline parallelism does not cut a token's latency.** It lets a machine hold a bigger model and, with one user a pass as here, serve more users (lab 19 puts a batch into each pass).
#   A user's token passes every layer, one after the other, plus the hops.
# * **Training hides the bubble, a conversation cannot.** Microbatches are independent of each other. Your next token depends on this one.
# * **Column, then row.** In the other order, or with a gather after each projection, the same weights need more exchanges. The pairing is the trick.
# * **An all-reduce is a sum, not a concatenation.** What is the same on all ranks (a bias) must stay out of it.
# * **A right shape is no proof.** A fused weight that is cut across its parts raises nothing.
# * **More ranks are not always sooner.** Arithmetic shrinks with the ranks, the number of exchanges does not, and a decode message of a few KiB is all latency.
# * **The cache is split, too**, by key/value heads. With fewer of them than ranks, plans must copy them, or refuse.
#
# Say it out loud, as in an interview: name the state object, the axis that changes, and the trade-off. Names of styles and the place of the plan
# depend on the version; section 4 says so when yours differs.

# %% [markdown]
# ## 8 · Check and hand in
#
# Run this cell last. It runs the visible checks again, says what is missing, and leaves one file to hand in.

# %% tags=["demo"]
from inferlab.lab import submit

submit()
