# %% [markdown]
# # Lab 24 · Low precision
#
# Lab 17 stored weights as codes, and restored them before it multiplied. Here both sides of a product are
# codes, and codes are multiplied.
#
# **Time** 60 to 85 minutes · **Points** 16, of which 6 are practice · **Reading**
# [Low precision](../../handbook/lab24-low-precision.md) in the handbook, before you start

# %% tags=["parameters"]
LEARNER = ""  # your name or id, as your course knows you
MODEL = "bundled"  # "bundled" | "full" | "hub"
DEVICE = "auto"  # "auto" | "cpu" | "cuda"
SEED = 0

# %% [markdown]
# Grading always uses `"bundled"` on the CPU. Exercises 4 and 5 use the bundled model in any case.

# %%
from inferlab.lab import start

lab = start("lab24-low-precision", LEARNER, MODEL, DEVICE, SEED)

# %%
import torch
from inferlab.models import cache_argument, load_language_model
from inferlab.models.stories import documents
from transformers import DynamicCache

torch.set_grad_enabled(False)
model, tokenizer = load_language_model(MODEL, lab.device, dtype=torch.float32)
text = " ".join(one.text() for one in documents(2, seed=SEED, kind="story"))
ids = tokenizer(text, return_tensors="pt").input_ids[:, :200].to(lab.device)
print(type(model).__name__, "·", ids.shape[1], "tokens")

# %% [markdown]
# ## 1 · Goal and mental model
#
# After this lab you can say which scales a product in few bits can have, why activations are harder than
# weights, what calibration measures, and which products get faster.
#
# A **code** is a number in few bits. Times its **scale**, it is about the number that it stands for. A linear
# layer computes $y_{to}=\sum_i x_{ti}\,w_{oi}$, for token $t$, output channel $o$, input channel $i$. In
# **W8A8** (weights and activations in 8 bits) both sides become codes, $x_{ti}\approx a_t\,c_{ti}$ and
# $w_{oi}\approx b_o\,d_{oi}$:
#
# $$y_{to}\approx a_t\,b_o\sum_i c_{ti}\,d_{oi}$$
#
# The sum runs over codes alone: the machine's 8-bit unit computes it. A scale may differ by token and by
# output channel: it stands before the sum. **It may not differ by input channel $i$:** it would stay inside.
#
# | scale | one for | of | may it leave the sum? |
# |---|---|---|---|
# | per tensor | all numbers | weights or activations | yes |
# | per token | a row of `x` | activations | yes |
# | per (output) channel | a row of `w` | weights | yes |
# | per input channel | a column of `x` or `w` | either | **no** |
#
# ![Two tables of numbers, activations and weights, before and after smoothing: one dark column of the
# activations becomes lighter, and the same column of the weights
# darker.](../../handbook/figures/lab24-scales.svg)
#
# *From the handbook.* An **outlier** is a number far larger than the rest. Outliers stand in a column of the
# activations, and there in few tokens; scales stand at rows.

# %% [markdown]
# ## 2 · Predict
#
# ### Exercise 1 · Faster, or only smaller?
#
# *difficulty 2 of 3 · 8 minutes · 3 points*
#
# There are two kinds of products. `"linear"`: all tokens of all sequences meet the same weights `(rows,
# columns)`. `"scores"`: queries meet keys in attention. Each sequence has its own keys for each key/value
# head. `heads / kv_heads` query heads share a key/value head, and read its keys once. Every operand is read
# once, and every result is written once.
#
# **Before you run anything further**, write what such a product gains. Other sizes are graded, too.
#
# | argument | meaning |
# |---|---|
# | `product` | `"linear"` or `"scores"` |
# | `sequences`, `tokens` | sequences, and new tokens of each: the prompt's in prefill, 1 in decode |
# | `bits` | `(left, right)`, each 16, 8 or 4: bits of activations or queries, and bits of weights or keys |
# | `sizes` | `dict`: `"rows"`, `"columns"`, or `"heads"`, `"kv_heads"`, `"head_dim"`, `"keys"` (of each sequence; no mask) |
# | `machine` | `dict`: `"16-bit"` and `"8-bit"`, operations a second; `"bandwidth"`, bytes a second |
#
# * Results always have 16 bits. The bytes of scales are not counted.
# * The 8-bit rate holds if **both** operands have at most 8 bits. Otherwise codes are read, then restored to
#   16 bits and multiplied at the 16-bit rate.
# * A multiplication and an addition are two operations. Time is the larger of operations / rate and bytes /
#   bandwidth.
#
# Returns a `dict`: `"bytes"`, read and written, `int`; `"gain"`, the time with 16 bits on both sides over
# this time, `float`; `"verdict"`, `"faster"` if the gain is above 1.01, otherwise `"only smaller"`.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Do all sequences share the second operand, or has each its own? How many rows of the first meet it?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# Scores: <code>times</code> is <code>sequences * kv_heads</code>, <code>m</code> is <code>heads // kv_heads *
# tokens</code>, then <code>head_dim</code> and <code>keys</code>. Bytes <code>moved</code>: <code>times * (m
# * k * left + k * n * right + m * n * 16) // 8</code>.
# </details>

# %% exercise="verdict" provides=["verdict"] difficulty=2 minutes=8
def verdict(product, sequences, tokens, bits, sizes, machine):
    """Bytes of a product in these bits, what it gains over 16 bits, and the verdict."""
    # `times` products of (m, k) and (k, n)
    if product == "linear":
        times, m, k, n = 1, sequences * tokens, sizes["columns"], sizes["rows"]
    else:
        ### BEGIN SOLUTION
        times, m = sequences * sizes["kv_heads"], sizes["heads"] // sizes["kv_heads"] * tokens
        k, n = sizes["head_dim"], sizes["keys"]
        ### END SOLUTION

    def cost(left, right):
        """Bytes and seconds with `left` and `right` bits."""
        ### BEGIN SOLUTION
        moved = times * (m * k * left + k * n * right + m * n * 16) // 8
        rate = machine["8-bit"] if max(left, right) <= 8 else machine["16-bit"]
        ### END SOLUTION
        return moved, max(2 * times * m * k * n / rate, moved / machine["bandwidth"])

    moved, seconds = cost(*bits)
    ### BEGIN SOLUTION
    gain = cost(16, 16)[1] / seconds
    ### END SOLUTION
    return {"bytes": moved, "gain": gain, "verdict": "faster" if gain > 1.01 else "only smaller"}

# %% [markdown]
# ## 3 · Trace
#
# A prefill of the text and one decode step. `LinearInputs` keeps what each linear layer is given.

# %%
from inferlab.lab.kits.low_precision import LinearInputs, with_product
from inferlab.trace import trace

cache = DynamicCache(config=model.config)
with trace(model, depth="model.layers.6*") as run, LinearInputs(model) as noted:
    exact = model(ids, **cache_argument(cache)).logits
    model(exact[:, -1:].argmax(-1), **cache_argument(cache))
inputs = {name: calls[0] for name, calls in noted.seen.items()}  # of the prefill: (tokens, columns)
weights = {name: model.model.get_submodule(name).weight for name in inputs}

# %% tags=["demo"]
for boundary in run.boundaries:
    if "layers.6." in boundary.name and boundary.name.endswith(("q_proj", "up_proj", "down_proj")):
        print(f"{boundary.name:32}", next(iter(boundary.inputs.values())), "->", boundary.outputs)

# %% [markdown]
# Each product occurs twice: with 200 tokens, and with one. **Reconcile** the bytes of your forecast: `Moved`
# counts what torch reads and writes for the same sizes in `bfloat16`. (The gain is 1: both are 16 bits.)

# %% tags=["demo"]
from inferlab.lab import when_written
from inferlab.lab.kits.attention import Moved

half = {"device": lab.device, "dtype": torch.bfloat16}
SIZES = {"rows": 704, "columns": 256, "heads": 8, "kv_heads": 2, "head_dim": 32, "keys": 200}
MACHINE = {"16-bit": 1000e12, "8-bit": 2000e12, "bandwidth": 4e12}  # of a data sheet, in round numbers
for product, left, right in (("linear", (1, 200, 256), (1, 704, 256)),
                             ("scores", (2, 800, 32), (2, 200, 32))):
    x, w = torch.zeros(left, **half), torch.zeros(right, **half)
    with Moved() as moved:
        torch.bmm(x, w.mT)
    print(f"{product}: {moved.bytes:,} bytes counted")
    with when_written("verdict"):
        print("   your forecast:", verdict(product, 1, 200, (16, 16), SIZES, MACHINE))

# %% check="verdict" points=3
from inferlab.lab import Check

check = Check("verdict", points=3)
desk = {"16-bit": 100e12, "8-bit": 200e12, "bandwidth": 1e12}

def asked_verdict(*run_of):
    """The learner's verdict, once it has the form of the contract."""
    got = check.learner.verdict(*run_of)
    check.true(isinstance(got, dict) and set(got) == {"bytes", "gain", "verdict"},
               "return a dict with exactly the three keys")
    check.true(isinstance(got["bytes"], int) and isinstance(got["gain"], float), "an int and a float")
    check.true(got["verdict"] in ("faster", "only smaller"), "the verdict is one of the two")
    return got

with check.part("the bytes of a small linear product in 16 bits", weight=1):
    check.equal(asked_verdict("linear", 1, 3, (16, 16), {"rows": 5, "columns": 4}, desk)["bytes"], 94)
### HIDDEN TESTS
check.score()

# %% [markdown]
# How far does a channel stand out? The cell divides the largest channel by the median channel, for inputs and
# weights of each layer. A channel's size is its largest absolute value.

# %% tags=["demo"]
def stands_out(numbers):
    """Largest channel (column) over the median channel."""
    size = numbers.abs().amax(0)
    return float(size.max() / size.median())


for kind in ("q_proj", "o_proj", "up_proj", "down_proj"):
    names = [name for name in inputs if name.endswith(kind)]
    print(f"{kind:9} inputs:", *(f"{stands_out(inputs[name]):5.1f}" for name in names),
          "  weights:", *(f"{stands_out(weights[name]):4.1f}" for name in names))

# %% [markdown]
# **Activations are not like weights.** No column of a weight stands out by ten times. A column of
# `down_proj`'s input does, in every layer. And activations are known only when the model runs.

# %% [markdown]
# ## 4 · Read
#
# The linear layer with an int8 weight of torchao, PyTorch's library for quantization, as installed here:

# %% jupyter={"source_hidden": true}
from inferlab.lab import show_source
from inferlab.lab.kits.low_precision import torchao_linear

show_source(
    torchao_linear(),
    {
        "activation_tensor = activation_tensor * weight_tensor.act_pre_scale":
            "Smoothing (exercise 3), where no layer before can take up the factor.",
        "activation_tensor = _choose_quant_func_and_quantize_tensor(":
            "W8A8: the activations become codes, in every call.",
        "scale=weight_tensor.act_quant_scale,":
            "None: measured in this call (dynamic). A number: it comes from calibration (static).",
        "y_dot_scaled = int_scaled_matmul(":
            "The sum over codes, in int32. Then it becomes float and gets the tokens' scales.",
        "y = (y_dot_scaled * w_scales.flatten()).reshape(":
            "The scales of the output channels, after the sum, too.",
        "w_vals_int8_t.to(output_dtype),":
            "Weights only: codes become floats, and floats are multiplied. Fewer bytes, the same arithmetic.",
    },
    excerpts=[
        ("if weight_tensor.act_pre_scale is not None:",
         "activation_tensor = activation_tensor * weight_tensor.act_pre_scale"),
        ("activation_tensor = _choose_quant_func_and_quantize_tensor(",
         "zero_point=weight_tensor.act_quant_zero_point,"),
        ("y_dot_scaled = int_scaled_matmul(",
         "tmp, w_vals_int8_t, x_scales.reshape(-1, 1).to(intermediate_dtype)"),
        ("y = (y_dot_scaled * w_scales.flatten()).reshape(",
         "y = (y_dot_scaled * w_scales.flatten()).reshape("),
        ("w_vals_int8_t = weight_tensor.qdata.t()", "y = m * weight_tensor.scale.to(m.dtype).flatten()"),
    ],
    checked="0.18.0",
)

# %% [markdown]
# ## 5 · Build
#
# ### Exercise 2 · W8A8 by hand
#
# *difficulty 2 of 3 · 6 minutes · 3 points*
#
# (This one is practice.) Write `w8a8(x, w, per)`.
#
# | argument | meaning |
# |---|---|
# | `x`, `w` | `(tokens, columns)` and `(rows, columns)`, float32 |
# | `per` | `"tensor"`: one scale for all of `x`; `"token"`: one for each row of `x` |
#
# `w` always has one scale for each row. A scale is the largest absolute value over 127 (never 0 here). Codes
# are the numbers over their scale, rounded by `torch.round`. Returns the tuple `(acc, y)`:
#
# * `acc`, `(tokens, rows)`, **int32**: the exact sums of products of codes;
# * `y`, the same shape, float32: `acc` as float32, times the scale of `x`, then times that of `w`. In this
#   order your numbers equal the reference to the bit.
#
# **Which dtype for the sum?** One product reaches 127 · 127 = 16,129, too large for int8. float32 has every
# integer up to 2²⁴: 1,041 products can pass it. int32 holds the sum of 133,144.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Which dtype has <code>codes_x @ codes_w.T</code> if both are <code>torch.int8</code>? One scale goes with
# the rows of <code>acc</code>, the other with its columns: which shapes must they have?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# <code>amax(1, keepdim=True)</code> of the absolute values, or <code>amax()</code> for one scale, over 127.
# <code>acc</code> is the product of the codes as <code>.int()</code>. Then <code>acc.float() * of_x *
# of_w.T</code>.
# </details>

# %% exercise="w8a8" provides=["w8a8"] difficulty=2 minutes=6
def w8a8(x, w, per):
    """A linear layer in int8 codes: (int32 sums, float32 result)."""
    # scales of `x` and of `w`
    ### BEGIN SOLUTION
    of_x = (x.abs().amax() if per == "tensor" else x.abs().amax(1, keepdim=True)) / 127
    of_w = w.abs().amax(1, keepdim=True) / 127
    ### END SOLUTION
    codes_x, codes_w = (x / of_x).round().to(torch.int8), (w / of_w).round().to(torch.int8)
    ### BEGIN SOLUTION
    acc = codes_x.int() @ codes_w.int().T
    return acc, acc.float() * of_x * of_w.T
    ### END SOLUTION

# %% check="w8a8" points=3
import torch
from inferlab.lab import Check, close

check = Check("w8a8", points=3)

def asked_product(x_given, w_given, per_what):
    """The learner's (acc, y), in the contract's shapes and dtypes."""
    result = check.learner.w8a8(x_given, w_given, per_what)
    check.true(isinstance(result, tuple) and len(result) == 2, "return the tuple (acc, y)")
    check.tensor(result[0], shape=(len(x_given), len(w_given)), dtype=torch.int32)
    check.tensor(result[1], shape=(len(x_given), len(w_given)), dtype=torch.float32, finite=False)
    return result

with check.part("numbers that are their own codes", weight=1):
    acc_of, _ = asked_product(torch.tensor([[127.0, -3, 2]]), torch.tensor([[127.0, 1, 0], [5, -127, 2]]),
                              "token")
    check.equal(acc_of.tolist(), [[16126, 1020]])
### HIDDEN TESTS
check.score()

# %% [markdown]
# torch has the product of codes as one operation, `torch._int_mm`. Is yours the same, and what does W8A8 do
# to the model? `with_product(model, f)` returns a copy of the model whose decoder layers compute each linear
# layer by `f(name, x, w)`:

# %% tags=["demo"]
def off(product, some_model=model):
    """How far the logits are off if the linear layers compute `product(name, x, w)`."""
    difference = with_product(some_model, product)(ids).logits - exact
    return float(difference.norm() / exact.norm())


def fp8(numbers, largest):
    """The numbers through FP8 (e4m3) and back; `largest` is mapped to 448, and nothing goes beyond."""
    scale = largest / 448
    return (numbers / scale).clamp(-448, 448).to(torch.float8_e4m3fn).float() * scale


def int8(numbers, largest):
    """The numbers through int8 and back."""
    scale = largest / 127
    return (numbers / scale).round().clamp(-127, 127) * scale


NAME = "layers.6.mlp.down_proj"
x, w = inputs[NAME], weights[NAME]

# %% tags=["demo"]
with when_written("w8a8"):
    both = [(int8(one, (top := one.abs().amax(1, keepdim=True))) / (top / 127)).round() for one in (x, w)]
    library = torch._int_mm(both[0].to(torch.int8).cpu(), both[1].T.to(torch.int8).cpu())
    print("equal to torch._int_mm:", torch.equal(w8a8(x, w, "token")[0].cpu(), library))
    alone = off(lambda n, x, w: x @ int8(w, w.abs().amax(1, keepdim=True)).T)
    print(f"weights alone:             logits off by {alone:.1%}")
    for per in ("tensor", "token"):
        print(f"W8A8, scale of x a {per:6}:  logits off by {off(lambda n, x, w: w8a8(x, w, per)[1]):.1%}")

# %% [markdown]
# Weights in 8 bits cost little. Activations in 8 bits with one scale for the tensor cost far more. A scale
# for each token helps, because few tokens have outliers. **FP8** (e4m3) has 8 bits, too. Four of them are an
# exponent, so the step between two codes grows with the value.

# %% tags=["demo"]
print(f"what comes into {NAME}: largest {x.abs().max():.0f}, median {x.abs().median():.2f}")
largest = {"tensor": lambda x: x.abs().amax(), "token": lambda x: x.abs().amax(1, keepdim=True)}
for name, form in (("int8", int8), ("FP8", fp8)):
    for per, of in largest.items():
        zeros = ((form(x, of(x)) == 0) & (x != 0)).float().mean()
        print(f"{name:4} per {per:6}: {zeros:4.0%} become zero; logits off by "
              f"{off(lambda n, x, w: form(x, of(x)) @ w.T):.1%}")
x = inputs["layers.3.mlp.up_proj"]  # no outlier here
print("without an outlier:", ", ".join(f"{name} off by {(form(x, x.abs().amax()) - x).norm() / x.norm():.1%}"
                                      for name, form in (("int8", int8), ("FP8", fp8))))

# %% [markdown]
# With an outlier and one scale, int8 rounds nearly everything to zero, and FP8 does not. Without an outlier,
# int8 is the finer of the two.

# %% [markdown]
# ### Exercise 3 · Smoothing
#
# *difficulty 2 of 3 · 6 minutes · 2 points*
#
# No scale can follow an input channel. But a channel's size can be moved into the weights: divide the
# activations of channel $i$ by a factor $f_i$, and multiply the weights that read it by $f_i$. Do the
# division once, in the weights **before**, and the running model has nothing more to do. The weights before
# `q_proj` are a norm's. Those before `down_proj` are the rows of `up_proj`, because `down_proj`'s input is
# `up_proj`'s output times a gate. Matrices that read the same channels (`q_proj`, `k_proj`, `v_proj` after
# one norm) share the factor.
#
# Write `smooth(before, after, reach, alpha)`:
#
# | argument | meaning |
# |---|---|
# | `before` | a norm's weight `(channels,)`, or a matrix `(channels, width)` that makes the channels |
# | `after` | list of matrices `(rows, channels)` that read them |
# | `reach` | `(channels,)`: the largest absolute activation that was seen in each channel |
# | `alpha` | how much is moved: 0 to 1 |
#
# With $s_i$ (`span` in the code), the largest absolute weight of channel $i$ in **all** of `after`:
#
# $$f_i = \text{reach}_i^{\,\alpha} / s_i^{\,1-\alpha}$$
#
# Round it to a power of two, `2 ** round(log2(f))`: then no bit of the product changes. $f_i = 1$ where reach
# or $s_i$ is 0. Returns the tuple `(factor, new_before, new_after)`; `new_after` is a list. Do not change the
# arguments.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Is a channel a row or a column in <code>before</code>? In <code>after</code>? Stack the largest weights of
# each matrix, then take the largest.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# <code>span = torch.stack([w.abs().amax(0) for w in after]).amax(0)</code>. Where reach and span are above 0,
# <code>reach ** alpha / span ** (1 - alpha)</code>, then the power of two. <code>before / factor</code>, with
# <code>factor[:, None]</code> if it has two axes; each of <code>after</code> times <code>factor</code>.
# </details>

# %% exercise="smooth" provides=["smooth"] difficulty=2 minutes=6
def smooth(before, after, reach, alpha):
    """One factor for each channel, and the weights before and after with it."""
    # `span`: s of each channel; `factor`: f of each channel, not rounded yet
    ### BEGIN SOLUTION
    span = torch.stack([matrix.abs().amax(0) for matrix in after]).amax(0)
    factor = torch.where((reach > 0) & (span > 0), reach**alpha / span ** (1 - alpha), 1.0)
    ### END SOLUTION
    factor = 2.0 ** factor.log2().round()
    ### BEGIN SOLUTION
    divided = before / (factor if before.dim() == 1 else factor[:, None])
    return factor, divided, [matrix * factor for matrix in after]
    ### END SOLUTION

# %% check="smooth" points=2
import torch
from inferlab.lab import Check, close

check = Check("smooth", points=2)

def asked_smooth(before_given, after_given, reach_given, share):
    """The learner's (factor, before, after), in the contract's shapes."""
    result = check.learner.smooth(before_given, after_given, reach_given, share)
    check.true(isinstance(result, tuple) and len(result) == 3,
               "return the tuple (factor, new_before, new_after)")
    check.tensor(result[0], shape=tuple(reach_given.shape))
    check.tensor(result[1], shape=tuple(before_given.shape))
    check.true(isinstance(result[2], list) and len(result[2]) == len(after_given),
               "as many matrices as in `after`")
    for got, given in zip(result[2], after_given, strict=True):
        check.tensor(got, shape=tuple(given.shape))
    return result

def layer_of(seed, readers=1):
    """A matrix that makes 6 channels, matrices that read them, and the reach of each channel."""
    draw = torch.Generator().manual_seed(seed)
    return (torch.randn(6, 4, generator=draw), [torch.randn(5, 6, generator=draw) for _ in range(readers)],
            torch.tensor([0.5, 80.0, 2.0, 1.0, 9.0, 3.0]))

with check.part("the product stays the same, to the bit", weight=1):
    made, [read], seen_reach = layer_of(1)
    _, new_made, [new_read] = asked_smooth(made, [read], seen_reach, 0.5)
    check.true(not torch.equal(new_read, read), "no factor was applied")
    check.equal(torch.equal((read[:, :, None] * made).sum(1), (new_read[:, :, None] * new_made).sum(1)), True)
### HIDDEN TESTS
check.score()

# %% [markdown]
# Now smooth the whole model. The reach comes from other texts than the one that is measured:

# %% tags=["demo"]
import copy

with LinearInputs(model, "down_proj") as other:
    for one in documents(24, seed=SEED + 7):
        model(tokenizer(one.text(), return_tensors="pt").input_ids[:, :150].to(lab.device))
reach = {name: torch.cat(calls).abs().amax(0) for name, calls in other.seen.items()}

# %% tags=["demo"]
def smoothed(alpha):
    """A copy of the model, smoothed between `up_proj` and `down_proj`, where the outliers are."""
    twin = copy.deepcopy(model)
    for number, layer in enumerate(twin.model.layers):
        up, down = layer.mlp.up_proj.weight.data, layer.mlp.down_proj.weight.data
        _, less, [more] = smooth(up, [down], reach[f"layers.{number}.mlp.down_proj"], alpha)
        up.copy_(less)
        down.copy_(more)
    return twin


plain = model(ids).logits
with when_written("w8a8", "smooth"):
    for alpha in (None, 0.5, 1.0):
        twin = model if alpha is None else smoothed(alpha)
        tensor, token = (off(lambda n, x, w: w8a8(x, w, per)[1], twin) for per in ("tensor", "token"))
        print(f"alpha {alpha!s:4}: the same logits in float32: {torch.equal(twin(ids).logits, plain)}; "
              f"W8A8 off by {tensor:.1%} (per tensor), {token:.1%} (per token)")

# %% [markdown]
# In float32 the model computes the same, bit for bit. With `alpha` 0.5 W8A8 is nearer to it. With `alpha` 1
# W8A8 is worse than without smoothing: now the weights have the outliers.

# %% [markdown]
# ### Exercise 4 · Texts that mislead
#
# *difficulty 2 of 3 · 5 minutes · 2 points*
#
# A *static* scale is fixed before the service starts. To **calibrate** it, run some texts and note the
# **reach** of each layer's input: its largest absolute value. Nothing is trained: no loss is computed, and no
# weight changes. Activations beyond the reach are clipped later.
#
# Here are your service's traffic and four sets of texts. One set misleads: at the input of some layer's
# `down_proj`, traffic goes far beyond its reach. Learners get different sets.

# %%
from inferlab.lab.kits.low_precision import calibration_texts

small, encode = (model, tokenizer) if MODEL == "bundled" else load_language_model("bundled", lab.device,
                                                                                  dtype=torch.float32)
traffic, sets = calibration_texts(encode, lab.variant(16))


def statistics(texts):
    """Of these texts: their tokens, and the mean and the reach of what comes into each `down_proj`."""
    with LinearInputs(small, "down_proj") as seen:
        for one in texts:
            small(one.to(lab.device))
    values = [torch.cat(calls).abs() for calls in seen.seen.values()]
    return {"tokens": sum(one.shape[1] for one in texts), "mean": [float(one.mean()) for one in values],
            "reach": [float(one.max()) for one in values]}


found = {name: statistics(texts) for name, texts in {"traffic": traffic, **sets}.items()}
for name, one in found.items():
    print(f"{name:8}{one['tokens']:4} tokens  reach", *(f"{value:6.1f}" for value in one["reach"]))

# %% [markdown]
# Write `misleading()`. It returns a `dict`: `"set"`, the name of the set; `"layer"`, the number of the layer
# (from 0) in which the traffic goes furthest beyond the set's reach; `"factor"`, the traffic's reach over the
# set's there, `float`. It may compute them, or return what you found (factor to 0.01).
#
# <details><summary>Hint 1: a nudge</summary>
#
# Layers differ in size. Compare a set's reach with the traffic's in the same layer.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# For each set, divide <code>found["traffic"]["reach"]</code> by the set's, layer by layer. The largest
# quotient of all is the factor.
# </details>

# %% exercise="misleading" provides=["misleading"] difficulty=2 minutes=5
def misleading():
    """The set that misleads, the layer, and how far the traffic goes beyond."""
    ### BEGIN SOLUTION
    best = {"factor": 0.0}
    for name in sets:
        for layer, real in enumerate(found["traffic"]["reach"]):
            seen = found[name]["reach"][layer]
            if real / seen > best["factor"]:
                best = {"set": name, "layer": layer, "factor": real / seen}
    return best
    ### END SOLUTION

# %% check="misleading" points=2
from inferlab.lab import Check, reference

check = Check("misleading", points=2)

def asked_misleading():
    """The learner's answer, once it has the form of the contract."""
    got = check.learner.misleading()
    check.true(isinstance(got, dict) and set(got) == {"set", "layer", "factor"},
               "return a dict with exactly the three keys")
    check.true(got["set"] in ("A", "B", "C", "D"), "the set is A, B, C or D")
    return got

with check.part("a set, a layer and a factor", weight=0):
    asked_misleading()
### HIDDEN TESTS
check.score()

# %% [markdown]
# The set that misleads has the most tokens. It lacks a **kind** of text, stories: near the beginning of each,
# one token has a number that no other text has in that layer. A static scale from this set would clip it.

# %% [markdown]
# ### Exercise 5 · Rounding that learns from its error
#
# *difficulty 3 of 3 · 7 minutes · 3 points*
#
# (Practice.) In 4 bits, rounding each weight to the nearest code is not best for the **product**. **GPTQ**
# rounds one column of $w$ after the other. Rounding column $i$ changes it from $w_i$ to $\hat w_i$; its error
# is $m = w_i - \hat w_i$. The columns after $i$, together $F$, then change so that the product is off as
# little as possible. That works as far as their inputs are correlated with input $i$. It is least squares,
# with $H = X^\top X$ of calibration inputs $X$:
#
# $$w_F \mathrel{+}= m\,H_{FF}^{-1}H_{Fi}$$
#
# In the code, `left` is $w$ as changed so far. Write what happens to column `i`:
#
# * its codes: `left[:, i]` over the row's scale, rounded and clamped to `-top` and `top`, into `codes[:, i]`;
# * the correction of the columns after it in `left`. Finished codes stay.
#
# $H$ gets a little on its diagonal, so that it can be inverted.
#
# <details><summary>Hint 1: a nudge</summary>
#
# <code>torch.linalg.solve(A, b)</code> is $A^{-1}b$. Each row of <code>left</code> gets the same direction,
# times its own error. Why must the codes come from <code>left</code> and not from <code>w</code>?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# <code>code = (left[:, i] / scales).round().clamp(-top, top)</code>; <code>missed = left[:, i] - code *
# scales</code>; <code>left[:, i + 1:] += missed[:, None] * torch.linalg.solve(h[i + 1:, i + 1:], h[i + 1:,
# i])</code>.
# </details>

# %% exercise="gptq" provides=["gptq"] difficulty=3 minutes=7
def gptq(w, x, bits):
    """Codes (rows, columns) int8 and scales (rows,) of `w`, for inputs `x` (tokens, columns)."""
    top = 2 ** (bits - 1) - 1
    scales = w.double().abs().amax(1) / top
    h = x.double().T @ x.double()
    h += 0.01 * h.diagonal().mean() * torch.eye(len(h)).to(h)
    left, codes = w.double(), torch.zeros_like(w, dtype=torch.int8)
    for i in range(w.shape[1]):
        ### BEGIN SOLUTION
        code = (left[:, i] / scales).round().clamp(-top, top)
        codes[:, i] = code.to(torch.int8)
        missed = left[:, i] - code * scales
        left[:, i + 1:] += missed[:, None] * torch.linalg.solve(h[i + 1:, i + 1:], h[i + 1:, i])
        ### END SOLUTION
    return codes, scales

# %% check="gptq" points=3
import torch
from inferlab.lab import Check, close

check = Check("gptq", points=3)

def asked_gptq(w_given, x_given, bits_given):
    """The learner's codes and scales, in the contract's shapes."""
    result = check.learner.gptq(w_given, x_given, bits_given)
    check.true(isinstance(result, tuple) and len(result) == 2, "return the tuple (codes, scales)")
    check.tensor(result[0], shape=tuple(w_given.shape), dtype=torch.int8)
    check.tensor(result[1], shape=(len(w_given),))
    return result

with check.part("inputs that have nothing in common: rounding to the nearest is the best", weight=1):
    apart = torch.randn(5, 8, generator=torch.Generator().manual_seed(1))
    nearest = (apart.double() / (apart.double().abs().amax(1, keepdim=True) / 7)).round()
    check.equal(asked_gptq(apart, torch.eye(8), 4)[0].tolist(), nearest.int().tolist())
### HIDDEN TESTS
check.score()

# %% [markdown]
# The cell rounds one layer to 4 bits by GPTQ, with the inputs of one text and of 24. It prints how far the
# product is off ("instead of": plain rounding), on these texts and on the traffic of exercise 4:

# %% tags=["demo"]
def missed_by(w, x, form):
    """Share of the product that is missed if `form` stands for `w`."""
    return float((x @ (form - w).T).norm() / (x @ w.T).norm())


with LinearInputs(small, "layers.3.self_attn.o_proj") as seen:
    for one in documents(24, seed=SEED + 3):
        small(encode(one.text(), return_tensors="pt").input_ids[:, :150].to(lab.device))
    for one in traffic:
        small(one.to(lab.device))
[(name, calls)] = seen.seen.items()
w, new = small.model.get_submodule(name).weight, torch.cat(calls[24:])
with when_written("gptq"):
    step = w.abs().amax(1, keepdim=True) / 7
    rounded = (w / step).round() * step
    for texts in (1, 24):
        x = torch.cat(calls[:texts])
        codes, scales = gptq(w, x, 4)
        fitted = (codes * scales[:, None]).float()
        print(f"{texts:2} texts, {len(x):4} tokens:", "; ".join(
            f"on {where} {missed_by(w, one, fitted):.1%} instead of {missed_by(w, one, rounded):.1%}"
            for where, one in (("these", x), ("the traffic", new))),
            f"; weights off by {(fitted - w).norm() / w.norm():.0%} instead of "
            f"{(rounded - w).norm() / w.norm():.0%}")

# %% [markdown]
# The weights are **further** from the first ones than with plain rounding; the product is nearer. With one
# text this holds for that text alone: 150 tokens say little about 256 channels, and on the traffic GPTQ is
# worse than plain rounding.

# %% [markdown]
# ### The cache in FP8
#
# Keys and values are operands, too. Many services store them in FP8 without a scale. Would int8 do without?

# %% tags=["demo"]
def next_logits(change):
    """Logits after the prompt, with `change` applied to the keys and values in the cache."""
    cache = DynamicCache(config=model.config)
    model(ids[:, :-1], **cache_argument(cache))
    for layer in cache.layers:
        layer.keys.copy_(change(layer.keys))
        layer.values.copy_(change(layer.values))
    return model(ids[:, -1:], **cache_argument(cache)).logits


plain = next_logits(lambda x: x)
for name, change in (("FP8, no scale", lambda x: x.to(torch.float8_e4m3fn).float()),
                     ("int8, no scale", lambda x: x.round().clamp(-127, 127)),
                     ("int8, a scale a token and head", lambda x: int8(x, x.abs().amax(-1, keepdim=True)))):
    print(f"{name:31} logits off by {(next_logits(change) - plain).norm() / plain.norm():.2%}")
in_eight = [one.to(torch.float8_e4m3fn) for layer in cache.layers for one in (layer.keys, layer.values)]
print(f"the cache of section 3, {cache.get_seq_length()} tokens, in FP8: "
      f"{sum(one.nbytes for one in in_eight):,} bytes")

# %% [markdown]
# Without a scale, int8 has steps of 1 and is worse than FP8. With a scale for each token and head it is
# better.
#
# ### Which products gain
#
# Your forecast for sizes of Llama 3 8B on the machine of section 3 (W8, W4: weights alone in 8 or 4 bits):

# %% tags=["demo"]
LARGE = {"rows": 14336, "columns": 4096, "heads": 32, "kv_heads": 8, "head_dim": 128, "keys": 4096}
with when_written("verdict"):
    for phase, sequences, tokens in (("decode, 1 sequence", 1, 1), ("decode, 64", 64, 1),
                                     ("prefill", 1, 4096)):
        for product, forms in (("linear", {"W8": (16, 8), "W4": (16, 4), "W8A8": (8, 8)}),
                               ("scores", {"keys in FP8": (16, 8), "both in FP8": (8, 8)})):
            told = {name: verdict(product, sequences, tokens, bits, LARGE, MACHINE)
                    for name, bits in forms.items()}
            print(f"{phase:18} {product}:", ", ".join(f"{name} {one['gain']:.2f} ({one['verdict']})"
                                                     for name, one in told.items()))

# %% [markdown]
# In a batch many tokens share a weight. Sequences share no keys, so in decode keys in fewer bits gain in a
# batch of any size. (A prefill's scores take about as long as writing them, always in 16 bits: both in FP8
# gain only 1.02. The kernel of lab 22 does not write them.)

# %% [markdown]
# ### On a GPU (optional)
#
# `torch._scaled_mm` is the FP8 product with its scales. The cell times it beside `bfloat16`, with few rows
# and with many, and prints how far each is off float32:

# %% tags=["demo", "gpu"]
if torch.cuda.is_available() and torch.cuda.get_device_capability() >= (8, 9):
    from triton.testing import do_bench

    def in_fp8(numbers, dim):
        """FP8 codes, and a scale for each slice along `dim`."""
        scale = numbers.float().abs().amax(dim, keepdim=True) / 448
        return (numbers.float() / scale).to(torch.float8_e4m3fn), scale

    b = torch.randn(14336, 4096, device="cuda", dtype=torch.bfloat16)
    for rows in (16, 8192):
        a = torch.randn(rows, 4096, device="cuda", dtype=torch.bfloat16)
        a[:, 7] *= 50  # an outlier channel
        right, (qa, sa), (qb, sb) = a.float() @ b.float().T, in_fp8(a, 1), in_fp8(b, 1)
        for name, way in {
            "bfloat16": lambda: a @ b.T,
            "FP8": lambda: torch._scaled_mm(qa, qb.T, sa, sb.T, out_dtype=torch.bfloat16),
            "FP8, fast sum": lambda: torch._scaled_mm(qa, qb.T, sa, sb.T, out_dtype=torch.bfloat16,
                                                      use_fast_accum=True),
        }.items():
            print(f"{rows:5} rows, {name:13} {1e3 * do_bench(way):8.0f} µs, off by "
                  f"{(way().float() - right).norm() / right.norm():.2%}")
else:
    print("no CUDA here that multiplies in FP8: this cell was not run, and nothing later needs it")

# %% [markdown]
# ## 6 · Explain
#
# Say what a product in few bits does, and what it gains. In all fields but the last two you write short
# sentences, one a line, from the tables below: an entry of `who`, a verb and, if it has any, an entry of its
# row. In `sum` you type the dtype in which your `w8a8` sums, and in `cache` the bytes of section 3's cache in
# FP8 (the cell under "The cache in FP8" prints them). Lines that begin with `#` are notes of your own.

# %% jupyter={"source_hidden": true}
### FIXTURE words
words

# %% [markdown]
# *difficulty 1 of 3 · 6 minutes · 3 points.* The cell shows how each line is read, and that is graded when
# you hand in. A field of sentences is worth a third of a point; one false sentence costs it. `axis`,
# `smoothing` and `speed` need three sentences, the others two. A line that cannot be read waits for a person.

# %% explain="in-few-bits" difficulty=1 minutes=6
%%explain in-few-bits
# ### BEGIN SOLUTION
# state: the weights become codes before the run
#   the activations become codes in each call
# axis: the token axis and the output-channel axis may have scales of their own
#   the input-channel axis is summed over
# smoothing: smoothing divides the activations and multiplies the weights
#   it leaves the product as it was
# calibration: calibration measures the reach of the activations and sets scales
# grid: the step of FP8 grows with the value
#   the step of int8 is the same everywhere
# speed: W8A8 speeds up prefill and decode
#   weight-only int8 speeds up decode
#   weight-only int8 only makes smaller prefill
# sum: int32
# cache: 205824 bytes
# ### END SOLUTION

# %% check="words-scales" of="in-few-bits" points=1
from inferlab.lab import Check

check = Check("words-scales", points=1)
with check.part("`state:`, `axis:` and `smoothing:` are filled in (graded when you hand it in)", weight=0):
    for field in ("state", "axis", "smoothing"):
        check.true(check.explanation("in-few-bits").get(field), f"`{field}:` is empty")
### HIDDEN TESTS
check.score()

# %% check="words-gain" of="in-few-bits" points=1
from inferlab.lab import Check

check = Check("words-gain", points=1)
with check.part("`calibration:`, `grid:` and `speed:` are filled in (graded when you hand it in)", weight=0):
    for field in ("calibration", "grid", "speed"):
        check.true(check.explanation("in-few-bits").get(field), f"`{field}:` is empty")
### HIDDEN TESTS
check.score()

# %% check="words-entries" of="in-few-bits" points=1
from inferlab.lab import Check, reference

check = Check("words-entries", points=1)
with check.part("`sum:` and `cache:` are filled in (graded when you hand it in)", weight=0):
    for field in ("sum", "cache"):
        check.true(check.explanation("in-few-bits").get(field), f"`{field}:` is empty")
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7 · Notice
#
# * **Fewer bits are not always faster.** In a long prefill, weights alone in 8 bits are only smaller.
# * **Activations do not quantize like weights.** No scale may follow an input channel: smooth it.
# * **Calibration is not training.** It notes how far numbers reach. What lies beyond is clipped.
# * **FP8 is not int8.** Its step grows with the value: outliers harm it less. Without them it is coarser.
# * **Sum in more bits than you multiply.** int8 codes need int32.

# %% [markdown]
# Flashcards on inference, for now or for another day. Some belong to other labs:

# %% tags=["demo"]
from inferlab.lab.cards import show_cards

show_cards("inference")

# %% [markdown]
# ## 8 · Check and hand in
#
# Run this cell last. It runs the visible checks again, says what is missing, and leaves one file to hand in.

# %% tags=["demo"]
from inferlab.lab import submit

submit()
