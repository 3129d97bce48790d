# %% [markdown]
# # Lab 24 · Low precision
#
# Lab 17 stored weights as codes, and restored them before it multiplied. Here both sides of a product are
# codes, and codes are multiplied.
#
# **Time** 45 to 55 minutes · **Points** 16, of which 6 are practice · **Reading**
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
# The sum runs over codes alone: the machine's 8-bit unit computes it. A scale may differ by token (a row of
# `x`) and by output channel (a row of `w`): it stands before the sum. **It may not differ by input channel
# $i$:** it would stay inside.
#
# ![Two tables of numbers, activations and weights, before and after smoothing: one dark column of the
# activations becomes lighter, and the same column of the weights
# darker.](../../handbook/figures/lab24-scales.svg)
#
# *From the handbook.* An **outlier** is a number far larger than the rest. An outlier channel is a column,
# large in few tokens. Scales belong to rows, so none can follow it.

# %% [markdown]
# ## 2 · Predict
#
# ### Exercise 1 · Faster, or only smaller?
#
# *difficulty 2 of 3 · 6 minutes · 3 points*
#
# A linear layer multiplies activations `(m, k)` of `m` tokens by weights `(k, n)`; there `times` is 1. In
# attention queries meet the cache's keys, in `times` such products: one for each sequence and key/value head.
# Operands in few bits are fewer bytes. Is the product faster?
#
# **Before you run anything further**, write two lines of `verdict`. `left` and `right` are the bits of the
# two operands (16, 8 or 4). `moved` counts the bytes that are read and written; results have 16 bits.
# `machine` has `"16-bit"` and `"8-bit"`, operations a second, and `"bandwidth"`, bytes a second.
#
# * `rate`: the 8-bit rate holds if **both** operands have at most 8 bits. Otherwise codes are read, then
#   restored to 16 bits and multiplied at the 16-bit rate.
# * `seconds`: arithmetic and memory work at the same time, and the slower one decides.
#
# <details><summary>Hint 1: a nudge</summary>
#
# How long do the operations alone take? How long do the bytes alone?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# <code>machine["8-bit"] if max(left, right) &lt;= 8 else machine["16-bit"]</code>; <code>max</code> of
# <code>operations / rate</code> and <code>moved / machine["bandwidth"]</code>.
# </details>

# %% exercise="verdict" provides=["verdict"] difficulty=2 minutes=6
def verdict(times, m, k, n, bits, machine):
    """What a product gains in these `bits`, (left, right), and the verdict."""
    def cost(left, right):
        moved = times * (m * k * left + k * n * right + m * n * 16) // 8
        operations = 2 * times * m * k * n
        ### BEGIN SOLUTION
        rate = machine["8-bit"] if max(left, right) <= 8 else machine["16-bit"]
        seconds = max(operations / rate, moved / machine["bandwidth"])
        ### END SOLUTION
        return seconds

    gain = cost(16, 16) / cost(*bits)
    return gain, "faster" if gain > 1.01 else "only smaller"

# %% check="verdict" points=3
from inferlab.lab import Check

check = Check("verdict", points=3)
desk = {"16-bit": 100e12, "8-bit": 200e12, "bandwidth": 1e12}

def asked_verdict(*run_of):
    """The learner's verdict, once it has the form of the contract."""
    got = check.plain(check.learner.verdict(*run_of))
    check.true(isinstance(got, tuple) and len(got) == 2 and isinstance(got[0], float),
               "return the tuple (gain, verdict); the gain is a float")
    return got

with check.part("8 bits on both sides of a product of one token: twice as fast", weight=1):
    check.close(asked_verdict(1, 1, 1000, 1000, (8, 8), desk)[0], 1.998, tol=0.0005)
### HIDDEN TESTS
check.score()

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
    if boundary.name.endswith(("6.self_attn.q_proj", "6.mlp.down_proj")):
        print(f"{boundary.name:32}", next(iter(boundary.inputs.values())), "->", boundary.outputs)

# %% [markdown]
# Each product occurs twice: with 200 tokens in prefill, and with one in decode. Your forecast for sizes of
# Llama 3 8B, in which 4 query heads share each of 8 key/value heads:

# %% tags=["demo"]
from inferlab.lab import when_written

MACHINE = {"16-bit": 1000e12, "8-bit": 2000e12, "bandwidth": 4e12}  # of a data sheet, in round numbers
with when_written("verdict"):
    for name, sizes in {"linear, prefill of 4,096 tokens": (1, 4096, 4096, 14336),
                        "linear, decode, 1 sequence": (1, 1, 4096, 14336),
                        "linear, decode, 512 sequences": (1, 512, 4096, 14336),
                        "scores, decode, 512 sequences": (512 * 8, 4, 128, 1024)}.items():
        for pair in ((16, 8), (8, 8)):
            print(f"{name:32} {pair!s:8} gain %.2f: %s" % verdict(*sizes, pair, MACHINE))

# %% [markdown]
# Weights alone in 8 bits are only smaller where a product waits for arithmetic: in a prefill, and in decode
# with many sequences, which share the weights. They share no keys: a cache in FP8 gains in any batch.

# %% [markdown]
# How far does a channel stand out? The cell divides the largest channel by the median channel, layer by
# layer. A channel's size is its largest absolute value.

# %% tags=["demo"]
def stands_out(numbers):
    """Largest channel (column) over the median channel."""
    size = numbers.abs().amax(0)
    return float(size.max() / size.median())


names = [name for name in inputs if name.endswith("down_proj")]
print("down_proj, inputs:", *(f"{stands_out(inputs[name]):5.1f}" for name in names))
print("         weights:", *(f"{stands_out(weights[name]):5.1f}" for name in names))

# %% [markdown]
# **Activations are not like weights.** No column of these weights stands out by ten times. A column of their
# input does, in every layer. And activations are known only when the model runs.

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
# *difficulty 1 of 3 · 6 minutes · 3 points*
#
# (This one is practice.) Write three lines of `w8a8(x, w)`. `x` is `(tokens, columns)`, `w` is `(rows,
# columns)`, both float32.
#
# * `of_x`, `(tokens, 1)`: a scale for each token. A scale is the largest absolute value over 127 (no row is
#   all zeros).
# * `acc`, `(tokens, rows)`, **int32**: the exact sums of products of codes. One product reaches 127 · 127 =
#   16,129, too large for int8. float32 has every integer up to 2²⁴: 1,041 products can pass it. PyTorch
#   multiplies int32 matrices only on the CPU. float64 is exact, too, and works everywhere.
# * `y`, the same shape, float32: `acc` as float32, times the scale of `x`, then times that of `w`. In this
#   order your numbers equal the reference to the bit.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Which dtype has <code>codes_x @ codes_w.T</code> if both are <code>torch.int8</code>? One scale goes with
# the rows of <code>acc</code>, the other with its columns: which shapes must they have?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# <code>of_x</code> as <code>of_w</code> is made. <code>acc</code> is the product of the codes as
# <code>.double()</code>, then <code>.int()</code>. Then <code>acc.float() * of_x * of_w.T</code>.
# </details>

# %% exercise="w8a8" provides=["w8a8"] difficulty=1 minutes=6
def w8a8(x, w):
    """A linear layer in int8 codes: (int32 sums, float32 result)."""
    of_w = w.abs().amax(1, keepdim=True) / 127
    ### BEGIN SOLUTION
    of_x = x.abs().amax(1, keepdim=True) / 127
    ### END SOLUTION
    codes_x, codes_w = (x / of_x).round().to(torch.int8), (w / of_w).round().to(torch.int8)
    ### BEGIN SOLUTION
    acc = (codes_x.double() @ codes_w.double().T).int()
    y = acc.float() * of_x * of_w.T
    ### END SOLUTION
    return acc, y

# %% check="w8a8" points=3
import torch
from inferlab.lab import Check, close

check = Check("w8a8", points=3)

def asked_product(x_given, w_given):
    """The learner's (acc, y), in the contract's shapes and dtypes."""
    result = check.learner.w8a8(x_given, w_given)
    check.true(isinstance(result, tuple) and len(result) == 2, "return the tuple (acc, y)")
    check.tensor(result[0], shape=(len(x_given), len(w_given)), dtype=torch.int32)
    check.tensor(result[1], shape=(len(x_given), len(w_given)), dtype=torch.float32, finite=False)
    return result

with check.part("numbers that are their own codes", weight=1):
    acc_of, _ = asked_product(torch.tensor([[127.0, -3, 2]]), torch.tensor([[127.0, 1, 0], [5, -127, 2]]))
    check.equal(acc_of.tolist(), [[16126, 1020]])
### HIDDEN TESTS
check.score()

# %% [markdown]
# What does that do to the model? `with_product(model, f)` is a copy whose decoder layers compute each linear
# layer by `f(name, x, w)`. **FP8** (e4m3) has 8 bits, too. Four of them are an exponent, so the step between
# two codes grows with the value.

# %% tags=["demo"]
def off(product, some_model=model):
    """How far the logits are off if the linear layers compute `product(name, x, w)`."""
    difference = with_product(some_model, product)(ids).logits - exact
    return float(difference.norm() / exact.norm())


def int8(numbers, largest):
    """The numbers through int8 and back, with the scale `largest` / 127."""
    return (numbers / (largest / 127)).round() * (largest / 127)


def fp8(numbers, largest):
    """The numbers through FP8 and back; its largest number is 448."""
    return (numbers / (largest / 448)).to(torch.float8_e4m3fn).float() * (largest / 448)

# %% tags=["demo"]
print(f"int8 weights alone: logits off by {off(lambda n, x, w: x @ int8(w, w.abs().amax(1, True)).T):.1%}")
for form in (int8, fp8):
    print(f"{form.__name__} activations alone, one scale for the tensor: "
          f"{off(lambda n, x, w: form(x, x.abs().amax()) @ w.T):.1%}")
with when_written("w8a8"):
    print(f"your w8a8: {off(lambda n, x, w: w8a8(x, w)[1]):.1%}")
x = inputs["layers.6.mlp.down_proj"]
print(f"what comes into layer 6's down_proj: largest {x.abs().max():.0f}, median {x.abs().median():.2f}; in "
      f"int8 {int8(x, x.abs().amax()).eq(0).float().mean():.0%} become zero")

# %% [markdown]
# Weights in int8 cost little. Activations with one scale for the tensor cost far more: beside an outlier,
# int8 rounds nearly everything to zero, and FP8 does not. A scale for each token helps, because few tokens
# have outliers.

# %% [markdown]
# ### Exercise 3 · Smoothing
#
# *difficulty 2 of 3 · 6 minutes · 2 points*
#
# No scale can follow an input channel. But a channel's size can be moved into the weights: divide the
# activations of channel $i$ by a factor $f_i$, and multiply the weights that read it by $f_i$. Do the
# division once, in the weights **before**: then the running model has nothing more to do. Before `down_proj`
# these are the rows of `up_proj`, because `down_proj`'s input is `up_proj`'s output times a gate.
#
# Write `factor`, `new_before` and `new_after` in `smooth`. `before` is the matrix that makes the channels,
# `(channels, width)`; `after`, `(rows, channels)`, reads them. `reach` is the largest absolute activation
# that was seen in each channel, `span` its largest absolute weight in `after`:
#
# $$f_i = \text{reach}_i^{\,\alpha} / \text{span}_i^{\,1-\alpha}$$
#
# At `alpha` 1 the activations' channels become equal, at 0 the weights' do. The code then rounds the factor
# to a power of two, so that no bit of the product changes. Do not change the arguments.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Is a channel a row or a column in <code>before</code>? In <code>after</code>? Which of the two makes the
# activations smaller?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# <code>reach ** alpha / span ** (1 - alpha)</code>. <code>before / factor[:, None]</code>, and
# <code>after</code> times <code>factor</code>.
# </details>

# %% exercise="smooth" provides=["smooth"] difficulty=2 minutes=6
def smooth(before, after, reach, alpha):
    """(factor of each channel, new_before, new_after)."""
    span = after.abs().amax(0)
    ### BEGIN SOLUTION
    factor = reach**alpha / span ** (1 - alpha)
    ### END SOLUTION
    factor = torch.where((reach > 0) & (span > 0), factor, 1.0)  # else nobody uses the channel
    factor = 2.0 ** factor.log2().round()
    ### BEGIN SOLUTION
    new_before, new_after = before / factor[:, None], after * factor
    ### END SOLUTION
    return factor, new_before, new_after

# %% check="smooth" points=2
import torch
from inferlab.lab import Check, close

check = Check("smooth", points=2)

def asked_smooth(before_given, after_given, reach_given, share):
    """The learner's (factor, before, after), in the contract's shapes."""
    result = check.learner.smooth(before_given, after_given, reach_given, share)
    check.true(isinstance(result, tuple) and len(result) == 3,
               "return the tuple (factor, new_before, new_after)")
    for got, given in zip(result, (reach_given, before_given, after_given), strict=True):
        check.tensor(got, shape=tuple(given.shape))
    return result

def layer_of(seed):
    """A matrix that makes 6 channels, one that reads them, and the reach of each channel."""
    draw = torch.Generator().manual_seed(seed)
    return (torch.randn(6, 4, generator=draw), torch.randn(5, 6, generator=draw),
            torch.tensor([0.5, 80.0, 2.0, 1.0, 9.0, 3.0]))

with check.part("the product stays the same, to the bit", weight=1):
    made, read, seen_reach = layer_of(1)
    _, new_made, new_read = asked_smooth(made, read, seen_reach, 0.5)
    check.true(not torch.equal(new_read, read), "no factor was applied")
    check.equal(torch.equal((read[:, :, None] * made).sum(1), (new_read[:, :, None] * new_made).sum(1)), True)
### HIDDEN TESTS
check.score()

# %% [markdown]
# Now smooth the whole model between `up_proj` and `down_proj`. The reach comes from other texts than the one
# that is measured:

# %% tags=["demo"]
import copy

with LinearInputs(model, "down_proj") as other:
    for one in documents(24, seed=SEED + 7):
        model(tokenizer(one.text(), return_tensors="pt").input_ids[:, :150].to(lab.device))

with when_written("w8a8", "smooth"):
    for alpha in (None, 0.5, 1.0):
        twin = copy.deepcopy(model)
        for number, layer in enumerate(twin.model.layers if alpha else ()):
            up, down = layer.mlp.up_proj.weight, layer.mlp.down_proj.weight
            reach = torch.cat(other.seen[f"layers.{number}.mlp.down_proj"]).abs().amax(0)
            _, up.data, down.data = smooth(up, down, reach, alpha)
        print(f"alpha {alpha!s:4}: the same logits in float32: "
              f"{torch.equal(twin(ids).logits, model(ids).logits)}; "
              f"W8A8 off by {off(lambda n, x, w: w8a8(x, w)[1], twin):.1%}")

# %% [markdown]
# In float32 the model computes the same, bit for bit. With `alpha` 0.5 W8A8 is nearer to the exact
# logits. With `alpha` 1 W8A8 is worse than without smoothing: now the weights have the outliers.

# %% [markdown]
# ### Exercise 4 · Texts that mislead
#
# *difficulty 1 of 3 · 4 minutes · 2 points*
#
# A *static* scale is fixed before the service starts. To **calibrate** it, run some texts and note the
# **reach** of each layer's input: its largest absolute value. Nothing is trained: no loss is computed, and no
# weight changes. Activations beyond the reach are clipped later.
#
# Here are your service's traffic and four sets of texts, with the reach of the input of each layer's
# `down_proj`. One set misleads: in some layer, traffic goes far beyond its reach. Learners get different
# sets.

# %%
from inferlab.lab.kits.low_precision import calibration_texts

small, encode = (model, tokenizer) if MODEL == "bundled" else load_language_model("bundled", lab.device,
                                                                                  dtype=torch.float32)
traffic, sets = calibration_texts(encode, lab.variant(16))


def reach_of(texts):
    """The reach of what comes into each layer's `down_proj`."""
    with LinearInputs(small, "down_proj") as seen:
        for one in texts:
            small(one.to(lab.device))
    return [float(torch.cat(calls).abs().max()) for calls in seen.seen.values()]


found = {name: reach_of(texts) for name, texts in {"traffic": traffic, **sets}.items()}
print("reach in layer       ", *(f"{layer:6}" for layer in range(8)))
for name, reaches in found.items():
    tokens = sum(one.shape[1] for one in sets.get(name, traffic))
    print(f"{name:8}{tokens:5} tokens  ", *(f"{one:6.1f}" for one in reaches))

# %% [markdown]
# Let `misleading` return the tuple (set, layer), layers from 0, where the traffic goes beyond the set's reach
# by the largest **factor**. Compute it from `found`, or return what you read.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Layers differ in size. Compare a set's reach with the traffic's in the same layer.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# Divide <code>found["traffic"][layer]</code> by <code>found[name][layer]</code>, for all sets and layers.
# </details>

# %% exercise="misleading" provides=["misleading"] difficulty=1 minutes=4
def misleading():
    """The set that misleads, and the layer in which it does."""
    ### BEGIN SOLUTION
    beyond = {(name, layer): found["traffic"][layer] / found[name][layer]
              for name in sets for layer in range(8)}
    return max(beyond, key=beyond.get)
    ### END SOLUTION

# %% check="misleading" points=2
from inferlab.lab import Check, reference

check = Check("misleading", points=2)

def asked_misleading():
    """The learner's answer, once it has the form of the contract."""
    got = check.learner.misleading()
    check.true(isinstance(got, tuple) and len(got) == 2 and got[0] in ("A", "B", "C", "D"),
               "return the tuple (set, layer); the set is A, B, C or D")
    return got

with check.part("a set and a layer", weight=0):
    asked_misleading()
### HIDDEN TESTS
check.score()

# %% [markdown]
# The set that misleads lacks a **kind** of text, stories. Near the beginning of each story, one token has,
# in that layer, a number far larger than any in other texts. A static scale from this set would clip it.

# %% [markdown]
# ### Exercise 5 · Rounding that makes up for its error
#
# *difficulty 3 of 3 · 7 minutes · 3 points*
#
# (Practice.) In 4 bits, rounding each weight to the nearest code is not best for the **product**. **GPTQ**
# rounds one column of $w$ after the other. A rounded column $i$ has an error $e$ in each row. The columns
# after it, together $F$, then change so that the product is off as little as possible, which is least
# squares. With calibration inputs $X$ and $H = X^\top X$, for each row:
#
# $$w_F \mathrel{+}= e\,H_{FF}^{-1}H_{Fi}$$
#
# So a later column makes up for the error as far as its input is correlated with input $i$.
#
# Write that line. `left` is $w$ as changed so far. `missed`, `(rows,)`, is $e$: each row of `left` gets the
# same direction, `(columns after i,)`, times its own error. `torch.linalg.solve(A, b)` is $A^{-1}b$. Finished
# columns stay.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Which rows and columns of <code>h</code> belong to the columns after <code>i</code>? Which shapes must the
# errors and the direction have, so that each row gets its own?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# <code>left[:, i + 1:] += missed[:, None] * torch.linalg.solve(h[i + 1:, i + 1:], h[i + 1:, i])</code>.
# </details>

# %% exercise="gptq" provides=["gptq"] difficulty=3 minutes=7
def gptq(w, x, bits):
    """Codes (rows, columns) int8 and scales (rows,) of `w`, for inputs `x` (tokens, columns)."""
    top = 2 ** (bits - 1) - 1
    scales = w.double().abs().amax(1) / top
    h = x.double().T @ x.double()
    h += 0.01 * h.diagonal().mean() * torch.eye(len(h)).to(h)  # so that it can be inverted
    left, codes = w.double(), torch.zeros_like(w, dtype=torch.int8)
    for i in range(w.shape[1]):
        codes[:, i] = (left[:, i] / scales).round().clamp(-top, top).to(torch.int8)
        missed = left[:, i] - codes[:, i] * scales
        ### BEGIN SOLUTION
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
# One layer of the bundled model in 4 bits, for the traffic of exercise 4:

# %% tags=["demo"]
with LinearInputs(small, "layers.3.self_attn.o_proj") as seen:
    for one in traffic:
        small(one.to(lab.device))
[(name, calls)] = seen.seen.items()
w, x = small.model.get_submodule(name).weight, torch.cat(calls)
with when_written("gptq"):
    codes, scales = gptq(w, x, 4)
    scales = scales[:, None].float()
    for name, form in (("nearest", (w / scales).round() * scales), ("GPTQ", codes * scales)):
        print(f"{name:8} weights off by {(form - w).norm() / w.norm():.0%}, "
              f"the product by {(x @ (form - w).T).norm() / (x @ w.T).norm():.1%}")

# %% [markdown]
# The weights are **further** from the original weights than with plain rounding; the product is nearer, for
# inputs like these.

# %% [markdown]
# ### Optional: on a GPU
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
# Say what a product in few bits does. In each field you write two short sentences, one a line, from the
# tables below: an entry of `who`, a verb and, if it has any, an entry of its row. Lines that begin with `#`
# are notes.

# %% jupyter={"source_hidden": true}
### FIXTURE words
words

# %% [markdown]
# *difficulty 1 of 3 · 5 minutes · 3 points.* The cell shows how each line is read, and that is graded when
# you hand in. A field is worth a point; one false sentence costs it. A line that cannot be read waits for a
# person.

# %% explain="in-few-bits" difficulty=1 minutes=5
%%explain in-few-bits
# ### BEGIN SOLUTION
# axis: the token axis and the output-channel axis may have scales of their own
#   the input-channel axis is summed over
# calibration: calibration measures the reach of the activations and sets scales
# grid: the step of FP8 grows with the value
#   the step of int8 is the same everywhere
# ### END SOLUTION

# %% check="words" of="in-few-bits" points=3
from inferlab.lab import Check

check = Check("words", points=3)
with check.part("`axis:`, `calibration:` and `grid:` are filled in (graded when you hand it in)", weight=0):
    for field in ("axis", "calibration", "grid"):
        check.true(check.explanation("in-few-bits").get(field), f"`{field}:` is empty")
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7 · Notice
#
# * **Fewer bits are not always faster.** In a long prefill, weights alone in 8 bits are only smaller.
# * **Activations do not quantize like weights.** No scale may follow an input channel: smooth it.
# * **Calibration is not training.** It notes how far numbers reach. What lies beyond is clipped.
# * **FP8 is not int8.** Its step grows with the value: outliers harm it less.
# * **Sum in more bits than you multiply.** Products of int8 codes need int32.

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
