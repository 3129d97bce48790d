# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Lab 17 · Quantization
#
# With fewer bits a number there are fewer bytes to store and to read. In this lab you count the bytes of the
# weights **and** of the cache, because quantizing one does not change the other. You quantize by hand, see
# how one outlier ruins a matrix, repair it without changing what the model computes, and work out why a
# decode step gains from fewer bits and a training step does not.
#
# **Time** 65 to 75 minutes · **Points** 18, of which 2 are practice (exercise 2) · **Reading**
# [Quantization](../../handbook/lab17-quantization.md) in the handbook, before you start

# %% tags=["parameters"]
LEARNER = ""  # your name or id, as your course knows you
MODEL = "bundled"  # "bundled" | "full" | "hub"
DEVICE = "auto"  # "auto" | "cpu" | "cuda"
SEED = 0

# %%
from inferlab.lab import start

lab = start("lab17-quantization", LEARNER, MODEL, DEVICE, SEED)

# %%
import torch
from inferlab.models import cache_argument, load_language_model

torch.set_grad_enabled(False)
model, tokenizer = load_language_model(MODEL, lab.device, dtype=torch.float32)
config = model.config
print(f"{model.num_parameters():,} parameters; head and embedding share one table: "
      f"{config.tie_word_embeddings}")

# %% [markdown]
# The weights are loaded in `float32`, so that all machines start from the same bytes. Grading always uses
# `"bundled"` on the CPU.

# %% [markdown]
# ## 1 · Goal and mental model
#
# After this lab you can say what a quantized model stores, which error it makes and why, and when it saves
# time.
#
# | what | made of | grows with | what quantizes it |
# |---|---|---|---|
# | **weights** | matrices of the layers, head, embedding | nothing | codes and scales in place of the matrices |
# | **KV cache** | keys and values of every token so far | tokens and sequences | codes and scales in place of keys and values |
# | activations | one tensor from layer to layer | tokens of this call | (not in this lab) |
#
# A group of $g$ numbers shares one scale $s$, and each number becomes an integer code:
#
# $$s=\frac{\max|w|}{2^{b-1}-1},\qquad c=\mathrm{round}(w/s),\qquad \hat w=s\,c$$
#
# The step between two values is $s$, so **the largest number of a group decides how coarsely all the others
# are stored.** This rule is called *absmax*.

# %% [markdown]
# ![Two panels with a line for each weight. Above, eight weights on one coarse grid that reaches to 6.3;
# below, four of them on a fine grid and four on the coarse one.](../../handbook/figures/lab17-grid.svg)
#
# *From the handbook.* Eight weights; one of them is far larger than the others. Above, it stretches the grid
# of all eight. Below, in groups of four, it stretches only the grid of its own group.

# %% [markdown]
# ## 2 · Predict
#
# ### Exercise 1 · The books, before and after
#
# *difficulty 2 of 3 · 8 minutes · 3 points*
#
# In section 3, torchao replaces the weights of every linear layer, the head included: one `int8` code for
# each weight and one `float32` scale for each **row**. Embedding and norms stay in `float32`. **Before you
# run it**, write `ledger`, which counts the bytes of weights and cache before and after.
#
# | argument | meaning |
# |---|---|
# | `linear` | list of the shapes `(rows, columns)` of all linear weights in the layers, **without** the head |
# | `vocabulary`, `width` | the head is a `(vocabulary, width)` linear weight, the embedding a table of the same shape |
# | `norms` | how many numbers all norms hold together, `int` |
# | `tied` | whether head and embedding are **one** tensor before quantization, `bool` |
# | `cache` | bytes of the KV cache before, `int` |
#
# Returns a `dict` of `int`, in bytes: `"weights_before"`, `"weights_after"`, `"cache_after"`.
#
# <details><summary>Hint 1: a nudge</summary>
# A tensor that two modules share is stored once. Can it still be shared if one module holds codes and the
# other looks up rows in floating point? And does the cache hold any weights?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# Before: 4 bytes for each linear weight, norm weight and number of the table, and for the table once more if
# it is not tied. After: 1 byte for each linear weight and each weight of the head, 4 bytes for the scale of
# each of their rows, and 4 bytes for each number of norms and embedding. The cache stays the same.
# </details>

# %% exercise="ledger" provides=["ledger"] difficulty=2 minutes=8
def ledger(linear, vocabulary, width, norms, tied, cache):
    """Bytes of weights and cache before and after int8 weights with one float32 scale a row."""
    table = vocabulary * width  # numbers of the head, and of the embedding
    inside = sum(rows * columns for rows, columns in linear)  # weights of the layers
    ### BEGIN SOLUTION
    before = 4 * (inside + norms + table + (0 if tied else table))
    scales = 4 * (sum(rows for rows, _ in linear) + vocabulary)
    return {"weights_before": before, "weights_after": inside + table + scales + 4 * (norms + table),
            "cache_after": cache}
    ### END SOLUTION

# %% [markdown]
# ## 3 · Trace
#
# The next cells run the same prompt with the float model and with its quantized copy, each with a cache of
# its own.

# %%
from inferlab.lab.kits.low_bits import cache_bytes, int8_weights, small_cache, stored_bytes
from inferlab.models.stories import documents
from inferlab.trace import trace
from transformers import DynamicCache

int8_model = int8_weights(model)
text = " ".join(documents(1, seed=4, kind="story")[0].text().split(" ")[:60])
ids = tokenizer(text, return_tensors="pt").input_ids.to(lab.device)


def run_with(some_model, cache):
    """Greedy decoding of 12 tokens under a trace, with this cache: (tokens, trace)."""
    with trace(some_model) as run:
        tokens = some_model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=12,
                                     do_sample=False, **cache_argument(cache))
    return tokens, run

# %%
float_cache, int8_cache = DynamicCache(config=config), DynamicCache(config=config)
float_tokens, run = run_with(model, float_cache)
int8_tokens, int8_run = run_with(int8_model, int8_cache)
int8_run.table(level=1)

# %% [markdown]
# **Reconcile.** The next cells count the bytes of the tensors that are really there, and print your forecast.

# %%
for name, some_model, cache in (("float32", model, float_cache), ("int8", int8_model, int8_cache)):
    stored = stored_bytes(some_model)
    print(f"{name:8} weights {sum(stored.values()):>12,} bytes {stored}   cache "
          f"{sum(cache_bytes(cache).values()):,} bytes")

# %% tags=["demo"]
from inferlab.lab import when_written

with when_written("ledger"):
    shapes = [tuple(module.weight.shape) for layer in model.model.layers for module in layer.modules()
              if isinstance(module, torch.nn.Linear)]
    norms = sum(w.numel() for w in model.parameters() if w.dim() == 1)
    print(ledger(shapes, config.vocab_size, config.hidden_size, norms, config.tie_word_embeddings,
                 sum(cache_bytes(float_cache).values())))

# %% [markdown]
# Look at three places:
#
# * the **table**: input and output of every boundary are `float32`, as before. Codes and scales are inside
#   the layers; between layers nothing is quantized;
# * the bytes of the **weights**: a little more than a fourth. A part stays `float32`: which?
# * the **cache**: not a byte less. Quantizing the weights does not shrink it.

# %% tags=["demo"]
print("the same tokens:", torch.equal(float_tokens, int8_tokens))
difference = int8_model(ids).logits - model(ids).logits
print(f"largest difference of a logit: {difference.abs().max():.3f}, "
      f"logits reach {model(ids).logits.abs().max():.1f}")

# %% check="ledger" points=3
from inferlab.lab import Check, reference

check = Check("ledger", points=3)


def asked_ledger(*arguments):
    """The learner's ledger, once it has the form of the contract."""
    got = check.plain(check.learner.ledger(*arguments))
    check.true(isinstance(got, dict) and set(got) == {"weights_before", "weights_after", "cache_after"},
               "return a dict with exactly the three keys")
    check.true(all(type(value) is int for value in got.values()), "each value is an int")
    return got


with check.part("one matrix of 6 x 4, a vocabulary of 10, tied", weight=1):
    check.equal(asked_ledger([(6, 4)], 10, 4, 12, True, 640)["weights_before"], 304)
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 4 · Read
#
# The cache can be quantized, too, independently of the weights. The installed `QuantizedLayer.update` takes
# in the keys and values of new tokens. (Subclasses define `_quantize` and `_dequantize`; exercise 4 uses one
# in plain torch.)

# %% jupyter={"source_hidden": true}
from inferlab.lab import show_source
from transformers.cache_utils import QuantizedLayer

show_source(
    QuantizedLayer.update,
    {
        "self._quantized_keys = self._quantize(key_states.contiguous(), axis=self.axis_key)":
            "The first call is the prefill: all keys become codes.",
        "return key_states, value_states":
            "But attention gets the exact keys and values: the logits of prefill are exact.",
        "dequant_keys = self._dequantize(self._quantized_keys)":
            "Every later call restores all codes first. The saving is in what is kept, and work is added, "
            "not taken away.",
        "keys_to_return = torch.cat([dequant_keys, self.keys, key_states], dim=-2)":
            "Three parts: restored codes, the *residual* (recent tokens in full precision), the new token.",
        ">= self.residual_length:":
            "The residual is full: everything is quantized again, old codes included.",
        "self.keys = torch.cat([self.keys, key_states], dim=-2)":
            "Otherwise the new token joins the residual.",
    },
    excerpts=[
        ("if not self.is_initialized:", "return key_states, value_states"),
        ("dequant_keys = self._dequantize(self._quantized_keys)",
         "dequant_values = self._dequantize(self._quantized_values)"),
        ("keys_to_return = torch.cat([dequant_keys, self.keys, key_states], dim=-2)",
         "self.values = torch.cat([self.values, value_states], dim=-2)"),
    ],
    checked="5.24.0",
)

# %% [markdown]
# ## 5 · Build
#
# ### Exercise 2 · Absmax with group scales
#
# *difficulty 2 of 3 · 6 minutes · 2 points*
#
# Write `quantize(w, bits, group)`. Its inverse, `restore(codes, scales)`, is written.
#
# | what | shape, dtype |
# |---|---|
# | `w` | `(rows, columns)`, `float32`; `columns` is a multiple of `group` |
# | `bits` | 2 to 8, `int`; codes run from $-(2^{b-1}-1)$ to $2^{b-1}-1$ |
# | `group` | number of neighbors along a **row** that share a scale, `int` |
# | returned by `quantize` | the tuple `(codes, scales)`: `(rows, columns)` `int8`, and `(rows, columns // group)` `float32` |
#
# Round with `torch.round`. A group of zeros has scale 1.
#
# <details><summary>Hint 1: a nudge</summary>
# <code>largest</code> is one number a group: its code is the last one. <code>scales[..., None]</code> has a
# number for each group of <code>groups</code>, and <code>.flatten(-2)</code> makes rows again.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# The scale is the group's largest absolute value over <code>2 ** (bits - 1) - 1</code>, or 1 where that value
# is 0 (<code>torch.where</code>). Codes: divide the groups by <code>scales[..., None]</code>, round, make
# them <code>int8</code>, and flatten.
# </details>

# %% exercise="absmax" provides=["quantize"] difficulty=2 minutes=6
def quantize(w, bits, group):
    """Codes (int8) and one float32 scale for each group of neighbors in a row."""
    groups = w.unflatten(-1, (-1, group))  # (rows, columns // group, group)
    largest = groups.abs().amax(-1)
    ### BEGIN SOLUTION
    scales = torch.where(largest > 0, largest / (2 ** (bits - 1) - 1), torch.ones_like(largest))
    return (groups / scales[..., None]).round().to(torch.int8).flatten(-2), scales
    ### END SOLUTION


def restore(codes, scales):
    """The float32 matrix that codes and scales stand for."""
    group = codes.shape[-1] // scales.shape[-1]
    return (codes.unflatten(-1, (-1, group)) * scales[..., None]).flatten(-2)

# %% check="absmax" points=2
import torch
from inferlab.lab import Check, close

check = Check("absmax", points=2)
W = torch.randn(6, 32, generator=torch.Generator().manual_seed(1))


def asked_codes(w, bits, group):
    """The learner's codes and scales, once they have the contract's shapes and dtypes."""
    got = check.learner.quantize(w, bits, group)
    check.true(isinstance(got, tuple) and len(got) == 2, "return the tuple (codes, scales)")
    check.tensor(got[0], shape=tuple(w.shape), dtype=torch.int8)
    check.tensor(got[1], shape=(w.shape[0], w.shape[1] // group), dtype=torch.float32)
    return got


with check.part("8 bits, groups of 16", weight=1):
    codes, scales = asked_codes(W, 8, 16)
    largest = W.unflatten(-1, (2, 16)).abs().amax(-1)
    ### HIDDEN TESTS
    check.close(scales, largest / 127, tol=1e-7)
### HIDDEN TESTS
check.score()

# %% [markdown]
# ### Error against group size
#
# The largest number of a smaller group is smaller, so its steps are finer; but there are more scales. The
# next cell shows one matrix of the model in 8, 4 and 3 bits. It counts 16 bits for each scale:

# %% tags=["demo"]
from inferlab.lab.kits.low_bits import error_and_bits

with when_written("quantize"):
    w = model.model.layers[3].mlp.gate_proj.weight
    groups = [group for group in (8, 16, 32, 64, 128, 256) if w.shape[1] % group == 0]
    curves = {}
    for bits in (8, 4, 3):
        errors = [float((restore(*quantize(w, bits, group)) - w).norm() / w.norm()) for group in groups]
        curves[f"{bits} bits"] = (groups, errors, [bits + 16 / group for group in groups])
    display(error_and_bits(curves,
                           title="A bit more halves the error; a smaller group buys less, "
                                 "and costs bits too"))

# %% [markdown]
# ### Exercise 3 · Find the outlier
#
# *difficulty 3 of 3 · 11 minutes · 4 points*
#
# You get a copy of the bundled model, the *suspect*. It computes the same logits, to the last bit. But in 4
# bits it is much worse than the original `model`. The cause is in a single place, which depends on your name.
# (This is always the bundled model: 8 layers with 704 channels in each MLP.)

# %%
from inferlab.lab.kits.low_bits import with_outlier

healthy, encode = model, tokenizer
if MODEL != "bundled":
    healthy, encode = load_language_model("bundled", lab.device, dtype=torch.float32)
prompt = encode(text, return_tensors="pt").input_ids.to(lab.device)
suspect = with_outlier(healthy, lab.variant(16))
exact = healthy(prompt).logits
print("the same logits:", torch.equal(suspect(prompt).logits, exact))

# %% tags=["demo"]
import copy

with when_written("quantize"):
    def in_four_bits(some_model, group):
        """A copy whose MLP weights went through 4-bit codes; `group=None` means one scale a row."""
        twin = copy.deepcopy(some_model)
        for layer in twin.model.layers:
            for part in (layer.mlp.gate_proj, layer.mlp.up_proj, layer.mlp.down_proj):
                part.weight.copy_(restore(*quantize(part.weight, 4, group or part.weight.shape[1])))
        return twin

    for group in (None, 32):
        for name, candidate in (("model", healthy), ("suspect", suspect)):
            off = (in_four_bits(candidate, group)(prompt).logits - exact).norm() / exact.norm()
            print(f"{name:8} one scale for {group or 'a row':>5}: logits off by {off:.1%}")

# %% [markdown]
# With small groups the difference nearly vanishes, because an outlier ruins the steps of its **own group**
# only.
#
# Each MLP computes `down_proj(silu(gate_proj(x)) * up_proj(x))`. A channel of the MLP is a **row** of
# `up_proj` and a **column** of `down_proj`. In one layer, one channel was divided by a large number in
# `up_proj` and multiplied by it in `down_proj`. Find it by the *size* of its column: the largest absolute
# value. Finish `find_outlier()`: `place` is a `dict` with `"layer"` and `"channel"`, both `int`. It may
# compute them, or return what you found.
#
# "Outliers are noise," says a colleague, "clip them." Suppose one of these changes were made to that channel
# of the suspect, in float32. Which would leave **every bit** of its logits the same? `kept` is the set of
# their names.
#
# | name | change |
# |---|---|
# | `"clip"` | limit the column of `down_proj` to four times the size of the median column |
# | `"shrink"` | divide the column of `down_proj` by 16 |
# | `"move by 16"` | divide the column of `down_proj` by 16, multiply the row of `up_proj` by 16 |
# | `"move by 10"` | divide the column of `down_proj` by 10, multiply the row of `up_proj` by 10 |
#
# <details><summary>Hint 1: a nudge</summary>
# Compare the columns of each <code>down_proj.weight</code>: divide the size of a column by the median size of
# the columns of its matrix. In trained matrices, as in <code>healthy</code>, some columns have two to eight
# times the median. Look for one that has far more.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# For each layer of <code>suspect</code>, the sizes are <code>layer.mlp.down_proj.weight.abs().amax(0)</code>;
# divide them by their median. Return the layer with the largest ratio of all, and the <code>argmax</code>
# there. For <code>kept</code>: the channel's value is a product of a row and a column, and only powers of two
# divide floating-point numbers without rounding.
# </details>

# %% exercise="outlier" provides=["find_outlier", "kept"] difficulty=3 minutes=11
def find_outlier():
    """The layer and the channel whose column of down_proj stands out."""
    best, place = 0.0, {}
    for number, layer in enumerate(suspect.model.layers):
        ### BEGIN SOLUTION
        largest = layer.mlp.down_proj.weight.abs().amax(0)
        ratio = largest / largest.median()
        if float(ratio.max()) > best:
            best, place = float(ratio.max()), {"layer": number, "channel": int(ratio.argmax())}
        ### END SOLUTION
    return place


kept = set()  # names of changes that keep every bit of the logits
### BEGIN SOLUTION
kept = {"move by 16"}
### END SOLUTION

# %% check="outlier" points=4
from inferlab.lab import Check

check = Check("outlier", points=4)


def asked_place():
    """The learner's two numbers, once they are that."""
    got = check.plain(check.learner.find_outlier())
    check.true(isinstance(got, dict) and set(got) == {"layer", "channel"},
               'return a dict with the keys "layer" and "channel"')
    check.true(all(type(value) is int for value in got.values()), "both are int")
    return got


with check.part("a layer and a channel that exist", weight=0):
    got = asked_place()
    check.true(0 <= got["layer"] < 8 and 0 <= got["channel"] < 704,
               "the bundled model has 8 layers and 704 channels in each MLP")
### HIDDEN TESTS
check.score()

# %% [markdown]
# ### Clip or move
#
# The next cell clips all `down_proj` matrices of the original model and of the suspect, without quantization.

# %% tags=["demo"]
for name, candidate in (("model", healthy), ("suspect", suspect)):
    clipped = copy.deepcopy(candidate)  # in the end, the suspect's
    for layer in clipped.model.layers:
        down = layer.mlp.down_proj.weight
        down.copy_(down.clamp(-down.abs().amax(0).median() * 4, down.abs().amax(0).median() * 4))
    print(f"{name:8} clipped, in float32: logits off by "
          f"{(clipped(prompt).logits - exact).norm() / exact.norm():.1%}")

# %% [markdown]
# Clipping the original costs very little. In the suspect, the outlier belongs to a channel that the model
# uses: its logits are off before any bit is saved. But the size of a channel can be **moved**: from a column
# of `down_proj` to the row of `up_proj` for the same channel. `migrate` does it to every column of more than
# twice the median size.

# %% tags=["demo"]
def migrate(up, down):
    """The same MLP, with the size of outlying channels moved from the columns of down to the rows of up."""
    size = down.abs().amax(0)
    median = size.median()
    power = 2.0 ** torch.floor(torch.log2(size / median))
    factor = torch.where(size > 2 * median, power, torch.ones_like(size))
    return up * factor[:, None], down / factor


with when_written("quantize"):
    repaired = copy.deepcopy(suspect)
    for layer in repaired.model.layers:
        up, down = migrate(layer.mlp.up_proj.weight, layer.mlp.down_proj.weight)
        layer.mlp.up_proj.weight.copy_(up)
        layer.mlp.down_proj.weight.copy_(down)
    print("the same logits:", torch.equal(repaired(prompt).logits, exact))
    for name, candidate in (("model", healthy), ("suspect", suspect), ("clipped", clipped),
                            ("repaired", repaired)):
        off = (in_four_bits(candidate, None)(prompt).logits - exact).norm() / exact.norm()
        print(f"{name:8} in 4 bits, one scale a row: logits off by {off:.1%}")

# %% [markdown]
# Clipping helps the 4-bit copy, but it costs something by itself, as you saw without quantization. Moving the
# size costs nothing and helps more. (The repaired copy is even better than the original, which has smaller
# outliers of its own; `migrate` moved those.)

# %% [markdown]
# ### Exercise 4 · The cache has a ledger of its own
#
# *difficulty 2 of 3 · 8 minutes · 3 points*
#
# Four numbers on paper. First the **weights** in 4 bits. Bits for each weight, with its share of the scale:
#
# * `books["packed"]`: two codes in each byte, groups of 32, a 16-bit scale for each group;
# * `books["unpacked"]`: each code in an `int8`, groups of 32, a `float32` scale for each group.
#   (torchao's portable int4 format stores them so; only formats for special kernels pack.)
#
# Then the **cache** of an imagined run, with codes in `int8` (one byte each) and a *residual* in `float32`
# (section 4). The prompt becomes codes at once; new tokens join the residual first. With the eighth token
# there, all become codes, and the residual is empty again. The run generates `new` tokens for one sequence;
# the last one is never fed back. `books["codes"]` (without their scales) and `books["full"]` (the residual)
# are the bytes held at the end, keys **and** values.

# %%
v = lab.variant(8)
paper = {"layers": 8, "kv_heads": 2, "head_dim": 32, "prompt": (40, 50, 60, 70, 80, 90, 100, 110)[v],
         "new": (12, 14, 15, 20, 23, 11, 30, 26)[v], "residual": 8}
print(paper)

# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
# The weights of a group share the bits of its scale. <code>new - 1</code> tokens come after the prompt. How
# many of them came after the residual was last emptied?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# A weight takes the bits of its code and the scale's bits over the group. In full precision: <code>(new - 1)
# % residual</code> tokens. As codes: the prompt and the other fed tokens. A token has <code>values</code>
# values. A code takes 1 byte, a value in full 4.
# </details>

# %% exercise="books" provides=["books"] difficulty=2 minutes=8
books = {}
# books["packed"], books["unpacked"]    bits that a weight takes
# books["codes"], books["full"]         bytes
values = 2 * paper["layers"] * paper["kv_heads"] * paper["head_dim"]  # of one token
### BEGIN SOLUTION
books["packed"] = 4 + 16 / 32
books["unpacked"] = 8 + 32 / 32
fed = paper["new"] - 1
full = fed % paper["residual"]
books["codes"], books["full"] = values * (paper["prompt"] + fed - full), 4 * values * full
### END SOLUTION

# %% check="books" points=3
from inferlab.lab import Check

check = Check("books", points=3)


def said(*keys):
    """The learner's numbers."""
    answers = check.plain(check.learner.books)
    check.true(isinstance(answers, dict), "books must stay a dict")
    for key in keys:
        check.true(key in answers, f'books["{key}"] is not there yet')
        check.true(isinstance(answers[key], (int, float)), f'books["{key}"] is a number')
    return [answers[key] for key in keys]


with check.part("all four numbers are there (graded when you hand it in)", weight=0):
    said("packed", "unpacked", "codes", "full")
### HIDDEN TESTS
check.score()

# %% [markdown]
# Now for real: the model in 4 bits as torchao stores it, and what `small_cache` (the class of section 4 with
# absmax scales) holds after the same run as in section 3.

# %% tags=["demo"]
from inferlab.lab.kits.low_bits import int4_weights

int4_model = int4_weights(model, group=32)
for name, candidate in (("int8, a row", int8_model), ("int4, groups of 32", int4_model)):
    off = (candidate(ids).logits - model(ids).logits).norm() / model(ids).logits.norm()
    print(f"{name:19} {sum(stored_bytes(candidate).values()):>10,} bytes stored, logits off by {off:.1%}")

cache = small_cache(config, bits=8, group=config.head_dim, residual=8)
small_tokens, _ = run_with(model, cache)
print("plain cache:", sum(cache_bytes(float_cache).values()), "bytes;  small cache:", cache_bytes(cache))
print("the same tokens:", torch.equal(small_tokens, float_tokens))

# %% [markdown]
# Half the bits take *more* bytes here: the codes are not packed, and there are more scales. Look at what is
# stored, not at the name of a format.

# %% [markdown]
# ### Exercise 5 · Who gains?
#
# *difficulty 2 of 3 · 6 minutes · 2 points*
#
# On a device that does `flops` operations and reads or writes `bandwidth` bytes a second, a step takes at
# least $\max(\text{FLOPs}/\text{flops},\ \text{bytes}/\text{bandwidth})$. Quantized weights are restored
# before they are multiplied. We leave that work out: the FLOPs stay the same, and only the bytes shrink. For
# `n` weights and a step over `tokens` tokens, without cache and activations:
#
# | step | FLOPs | bytes |
# |---|---|---|
# | decode | `2 * n * tokens` | the weights once: `n * bits / 8` |
# | training | `6 * n * tokens` | the weights twice: `2 * n * bits / 8`; gradients: `4 * n`; the optimizer's moments and the master weights, read and written: `24 * n` |
#
# **By what factor** does the least time shrink from 16-bit to 4-bit weights? Take `n` = 8e9, 800
# TFLOP/s and 4 TB/s: `gains["one"]`, decode of one sequence; `gains["some"]`, decode of `some` sequences
# (next cell); `gains["many"]`, decode of 512; `gains["training"]`, a training step of 8,192 tokens.
#
# %%
some = (64, 80, 100, 125, 160, 120, 75, 96)[lab.variant(8)]
print("some =", some)

# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
# Four times for each step: FLOPs and bytes, with 16 and with 4 bits. The longer one of each pair counts.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# Decode of t sequences: 4 ms of bytes with 16 bits, 1 ms with 4, and 0.02 ms of arithmetic for each sequence.
# Training: 0.49 s of arithmetic, far more than its bytes.
# </details>

# %% exercise="gains" provides=["gains"] difficulty=2 minutes=6
gains = {}
# gains["one"], gains["some"], gains["many"], gains["training"]    least time with 16 bits over that with 4


def moved(bits, training=False):
    """Bytes of a step."""
    return 8e9 * (2 * bits / 8 + 28) if training else 8e9 * bits / 8


### BEGIN SOLUTION
def least(tokens, bits, training=False):
    return max((6 if training else 2) * 8e9 * tokens / 800e12, moved(bits, training) / 4e12)


for key, tokens in {"one": 1, "some": some, "many": 512}.items():
    gains[key] = least(tokens, 16) / least(tokens, 4)
gains["training"] = least(8192, 16, True) / least(8192, 4, True)
### END SOLUTION

# %% check="gains" points=2
from inferlab.lab import Check, close

check = Check("gains", points=2)


def told(*keys):
    """The learner's numbers."""
    answers = check.plain(check.learner.gains)
    check.true(isinstance(answers, dict), "gains must stay a dict")
    for key in keys:
        check.true(key in answers, f'gains["{key}"] is not there yet')
        check.true(isinstance(answers[key], (int, float)), f'gains["{key}"] is a number')
    return [answers[key] for key in keys]


with check.part("decode, one sequence", weight=1):
    check.close(told("one"), [4.0], rtol=0.02)
### HIDDEN TESTS
check.score()

# %% [markdown]
# A decode step of one sequence has 1 FLOP per byte with 16-bit weights and 4 with 4-bit weights. A training
# step over 8,192 tokens has about 1,500, far above the *ridge* of 200 (800 TFLOP/s over 4 TB/s): a step's
# bytes do not depend on the tokens, its FLOPs do. So fewer bits save time in a decode step of few sequences;
# in training they save only memory. And training **changes** the weights, a little at a time: if only codes
# were kept, an update of less than half a step would be rounded away. So low-precision training keeps
# `float32` master weights, which add up small updates until a code changes.

# %% tags=["demo"]
from inferlab.lab.kits.decode.roofline import Cost, Dot, Rates, roofline

n, device = 8e9, Rates("800 TFLOP/s, 4 TB/s", 800e12, 4e12)
dots = [Dot(f"{bits} bits", Cost(int(2 * n), 0, int(n * bits / 8), 0, 0), group="decode, 1 sequence")
        for bits in (16, 8, 4)]
dots += [Dot("16 or 4 bits", Cost(int(6 * n * 8192), 0, int(n * (16 / 4 + 28)), 0, 0),
             group="training, 8,192 tokens")]
roofline(device, dots, title="Fewer bits move decode up the roof; training was at the top already")

# %% [markdown]
# ## 6 · Explain
#
# A colleague says: "We quantized the weights to int8, so now twice as many requests fit beside each other."
# Say what was really quantized in the `int8` run of section 3. `state`, `axis` and `trade-off` ask for two
# things each; the tables below say which. Write short sentences, one a line: an entry of `who`, a verb, then
# an entry from that verb's row and, if you like, entries of a row `may follow`. An example: `the activations
# stay float32`. In `cache:` you type the bytes of the KV cache after the int8 run, with a unit (section 3
# prints them). Lines that begin with `#` are notes of your own.

# %% jupyter={"source_hidden": true}
### FIXTURE words
words

# %% [markdown]
# *difficulty 2 of 3 · 10 minutes · 4 points, one a field.* When you run the
# cell, it shows how it reads each line. That reading is graded when you hand in. One false sentence in a
# field costs the field's point, so write only what you know. A line that the cell cannot read is judged by a
# person.

# %% explain="what-shrank" difficulty=2 minutes=10
%%explain what-shrank
# ### BEGIN SOLUTION
# state: the weights of linear layers become int8 codes with scales
#   the KV cache and the activations stay float32
# axis: a scale is shared along a row
#   a scale is shared by 704 weights
# trade-off: smaller groups lower the error and raise the number of scales
# cache: 340 KiB
# ### END SOLUTION

# %% check="shrank-cache" of="what-shrank" points=1
from inferlab.lab import Check, reference

check = Check("shrank-cache", points=1)
with check.part("`cache:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("what-shrank").get("cache"), "`cache:` is empty")
### HIDDEN TESTS
check.score()

# %% check="shrank-state" of="what-shrank" points=1
from inferlab.lab import Check

check = Check("shrank-state", points=1)
with check.part("`state:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("what-shrank").get("state"), "`state:` is empty")
### HIDDEN TESTS
check.score()

# %% check="shrank-axis" of="what-shrank" points=1
from inferlab.lab import Check

check = Check("shrank-axis", points=1)
with check.part("`axis:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("what-shrank").get("axis"), "`axis:` is empty")
### HIDDEN TESTS
check.score()

# %% check="shrank-trade-off" of="what-shrank" points=1
from inferlab.lab import Check

check = Check("shrank-trade-off", points=1)
with check.part("`trade-off:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("what-shrank").get("trade-off"), "`trade-off:` is empty")
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7 · Notice
#
# * **Two ledgers.** Weights and cache are quantized separately. Int8 weights do not change the cache, and
#   mostly the cache decides how many requests fit.
# * **A code needs its scale.** Group scales limit an outlier to its group, and they cost bits: 4 bits in
#   groups of 32 with 16-bit scales are 4.5.
# * **Four bits in an `int8` are eight bits.** Only packing saves the rest.
# * **An outlier need not be noise.** If you clip a channel that the model uses, the logits are off before a
#   bit is saved. Its size can be moved to another matrix, at no cost.
# * **Fewer bits are not always faster.** They save bytes. That saves time if a step waits for bytes (a large
#   model, few sequences). If it waits for arithmetic or launches, restoring the weights is only extra work.
# * **Training gains no time from it**: thousands of tokens share each weight that is read, and the
#   optimizer's state is larger than the weights.
#
# Say it aloud, as in an interview: what is stored, along which axis a scale is shared, what an outlier does,
# whether each method changes weights or cache, and in which regime it saves time.

# %% [markdown]
# ## 8 · If you have more time
#
# The stated time does not count this section, and nothing that is graded needs it.

# %% [markdown]
# ### The error of a quantized cache
#
# How large is it? Prefill is exact; the error begins with the first decode step, and fewer bits make
# it larger. (fp8 has as many bits as int8, but four of them are an exponent: its steps are finer near zero
# and coarser near the largest value.)

# %% tags=["demo"]
def second_call(cache):
    """Logits of one decode step after prefill, with this cache."""
    model(ids[:, :-1], None, None, cache, logits_to_keep=1)
    return model(ids[:, -1:], None, None, cache, logits_to_keep=1).logits


plain = second_call(DynamicCache(config=config))
kinds = {"fp8": {"float8": True}} | {f"int{bits}": {"bits": bits} for bits in (8, 4, 2)}
for name, kind in kinds.items():
    off = second_call(small_cache(config, group=config.head_dim, **kind)) - plain
    print(f"{name}: logits of the next token off by {off.norm() / plain.norm():.2%}")

# %% [markdown]
# ### Training on codes alone
#
# Low precision can also stop training from converging. The next cell makes sixty steps of plain gradient
# descent on one small linear fit. The weights stay in floating point, or your `quantize` rounds them after
# every step:

# %% tags=["demo"]
def survives(w, update, bits, group):
    """Share of the weights on a grid that an update moves to another code, with the scales of `w`."""
    step = w.unflatten(-1, (-1, group)).abs().amax(-1, keepdim=True) / (2 ** (bits - 1) - 1)
    return float((update.unflatten(-1, (-1, group)).abs() > step / 2).float().mean())


with when_written("quantize"):
    made = torch.Generator().manual_seed(SEED)
    inputs, aim, begin = (torch.randn(*shape, generator=made) for shape in ((256, 32), (8, 32), (8, 32)))
    for bits in (None, 8, 4):
        weights, losses, alive = begin, [], []
        for _ in range(61):
            weights = restore(*quantize(weights, bits, 32)) if bits else weights
            miss = inputs @ (weights - aim).T
            update = -0.1 * miss.T @ inputs / len(inputs)
            losses.append(f"{miss.square().mean():.2f}")
            alive.append(f"{survives(weights, update, bits, 32):.0%}" if bits else "all")
            weights = weights + update
        print(f"{f'{bits} bits' if bits else 'float32':8} loss at steps 0, 20, 40, "
              f"60: {', '.join(losses[::20]):27} updates that survive: {', '.join(alive[::20])}")
    print("for comparison, the right weights rounded once, to 4 bits: loss "
          f"{(inputs @ (restore(*quantize(aim, 4, 32)) - aim).T).square().mean():.2f}")

# %% [markdown]
# In four bits the loss stalls. The grid could **hold** a far better answer (last line), but small updates do
# not get there.

# %% [markdown]
# ## 9 · Check and hand in
#
# Run this cell last. It runs the visible checks again, says what is missing, and leaves one file to hand in.

# %% tags=["demo"]
from inferlab.lab import submit

submit()
