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
# Fewer bits a number: fewer bytes to store, fewer bytes to read. In this lab you keep the books, of the weights **and** of the cache,
# because quantizing one does not touch the other. You write absmax and group scales by hand, watch a single outlier ruin a
# matrix, repair it without changing what the model computes, and work out why a decode step gains from all this and a training step does not.
#
# **Time** about 65 minutes · **Points** 25, of which 5 are practice · **Reading** [Quantization](../../handbook/lab17-quantization.md) in the handbook, before you start

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
print(f"{model.num_parameters():,} parameters; head and embedding share one table: {config.tie_word_embeddings}")

# %% [markdown]
# The weights are loaded in `float32`, so that "before" means the same on every machine. Grading always uses `"bundled"` on the CPU.

# %% [markdown]
# ## 1 · Goal and mental model
#
# After this lab you can say what a quantized model stores, which error that makes and why, and in which situation it saves time.
#
# | what | made of | grows with | what quantizes it |
# |---|---|---|---|
# | **weights** | matrices of the layers, head, embedding | nothing: they are there before the first token | codes and scales in place of the matrices |
# | **KV cache** | keys and values of every token so far | tokens and sequences | codes and scales in place of keys and values |
# | activations | one tensor from layer to layer | tokens of this call | (not in this lab) |
#
# A group of $g$ numbers shares one scale $s$, and each number becomes an integer code:
#
# $$s=\frac{\max|w|}{2^{b-1}-1},\qquad c=\mathrm{round}(w/s),\qquad \hat w=s\,c$$
#
# The step between two values is $s$, so **the largest number of a group decides how coarsely all the others are stored.** Almost
# everything in this lab follows from that.

# %% [markdown]
# ## 2 · Predict
#
# ### Exercise 1 · The books, before and after
#
# *difficulty 2 of 3 · 8 minutes · 3 points*
#
# Below, torchao will replace the weight of every linear layer, the head included, by one `int8` code a weight and one `float32` scale a
# **row**. Embedding and norms stay in `float32`. **Before you run it**, write a function that says what both ledgers will show.
#
# | argument | meaning |
# |---|---|
# | `linear` | list of the shapes `(rows, columns)` of all linear weights in the layers, **without** the head |
# | `vocabulary`, `width` | the head is a `(vocabulary, width)` linear weight, the embedding a table of the same shape |
# | `norms` | number of norm weights, `int` |
# | `tied` | whether head and embedding are **one** tensor before quantization, `bool` |
# | `cache` | bytes of the KV cache before, `int` |
#
# Returns a `dict` of `int`, in bytes: `"weights_before"`, `"weights_after"`, `"cache_after"`.
#
# <details><summary>Hint</summary>
# A tensor that two modules share is stored once. Can it still be shared when one of the two holds codes and the other looks up
# rows in floating point? And what does the cache know about weights?
# </details>

# %% exercise="ledger" provides=["ledger"] difficulty=2 minutes=8
def ledger(linear, vocabulary, width, norms, tied, cache):
    """Bytes of weights and cache before and after int8 weights with one float32 scale a row."""
    ### BEGIN SOLUTION
    table = vocabulary * width
    inside = sum(rows * columns for rows, columns in linear)
    before = 4 * (inside + norms + table + (0 if tied else table))
    scales = 4 * (sum(rows for rows, _ in linear) + vocabulary)
    return {"weights_before": before, "weights_after": inside + table + scales + 4 * (norms + table), "cache_after": cache}
    ### END SOLUTION

# %% [markdown]
# ## 3 · Trace
#
# The same prompt, once with the float model and once with its quantized copy, each with a cache of its own.

# %%
from inferlab.lab.lowbits import cache_bytes, int8_weights, small_cache, stored_bytes
from inferlab.models.stories import documents
from inferlab.trace import trace
from transformers import DynamicCache

int8_model = int8_weights(model)
text = " ".join(documents(1, seed=4, kind="story")[0].text().split(" ")[:60])
ids = tokenizer(text, return_tensors="pt").input_ids.to(lab.device)


def run_with(some_model, cache):
    """Greedy decoding of 12 tokens under a trace, with this cache: (tokens, trace)."""
    with trace(some_model) as run:
        tokens = some_model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=12, do_sample=False, **cache_argument(cache))
    return tokens, run

# %%
float_cache, int8_cache = DynamicCache(config=config), DynamicCache(config=config)
float_tokens, run = run_with(model, float_cache)
int8_tokens, int8_run = run_with(int8_model, int8_cache)
int8_run.table(level=1)

# %% [markdown]
# **Reconcile.** The two ledgers, from the tensors that are really there. Put your forecast beside them.

# %%
for name, some_model, cache in (("float32", model, float_cache), ("int8", int8_model, int8_cache)):
    stored = stored_bytes(some_model)
    print(f"{name:8} weights {sum(stored.values()):>12,} bytes {stored}   cache {sum(cache_bytes(cache).values()):,} bytes")

# %% tags=["demo"]
from inferlab.lab import when_written

with when_written("ledger"):
    shapes = [tuple(module.weight.shape) for layer in model.model.layers for module in layer.modules() if isinstance(module, torch.nn.Linear)]
    norms = sum(w.numel() for w in model.parameters() if w.dim() == 1)
    print(ledger(shapes, config.vocab_size, config.hidden_size, norms, config.tie_word_embeddings, sum(cache_bytes(float_cache).values())))

# %% [markdown]
# Stop at three places:
#
# * the **table**: input and output of every boundary are `float32`, as before. Codes and scales live inside the layers; between
#   them nothing is quantized. A trace of shapes and dtypes cannot tell the two runs apart (the next cell);
# * the **weights' line**: a fourth, and a little more. Part of it stays `float32`: which tables are these?
# * the **cache**: not a byte less. Weights-only quantization does not shrink it.

# %% tags=["demo"]
run.diff(int8_run, slower=float("inf"))

# %% tags=["demo"]
print("the same tokens:", torch.equal(float_tokens, int8_tokens))
difference = int8_model(ids).logits - model(ids).logits
print(f"largest difference of a logit: {difference.abs().max():.3f}, logits reach {model(ids).logits.abs().max():.1f}")

# %% check="ledger" points=3
from inferlab.lab import Check, reference

check = Check("ledger", points=3)


def asked_ledger(*arguments):
    """The learner's ledger, once it has the form of the contract."""
    got = check.learner.ledger(*arguments)
    check.true(isinstance(got, dict) and set(got) == {"weights_before", "weights_after", "cache_after"}, "return a dict with exactly the three keys")
    check.true(all(type(value) is int for value in got.values()), "each value is an int")
    return got


with check.part("one matrix of 6 x 4, a vocabulary of 10, tied", weight=1):
    check.equal(asked_ledger([(6, 4)], 10, 4, 12, True, 640)["weights_before"], 304)
### BEGIN HIDDEN TESTS
@reference
def really_stored(tied, width, vocabulary):
    """Bytes of a tiny model before and after torchao quantized it, and the shapes that the ledger is asked about."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from inferlab.lab.lowbits import int8_weights, stored_bytes
    from inferlab.models.quiet import quiet

    config = LlamaConfig(vocab_size=vocabulary, hidden_size=width, intermediate_size=3 * width, num_hidden_layers=2, num_attention_heads=4,
                         num_key_value_heads=2, head_dim=16, tie_word_embeddings=tied, bos_token_id=None, eos_token_id=None, pad_token_id=None)
    with quiet():
        model = LlamaForCausalLM(config).eval()
        before, after = (sum(stored_bytes(m).values()) for m in (model, int8_weights(model)))
    shapes = [tuple(m.weight.shape) for m in model.model.layers.modules() if isinstance(m, torch.nn.Linear)]
    return before, after, shapes, sum(w.numel() for w in model.parameters() if w.dim() == 1)


with check.part("weights before, tied and not", weight=1):
    for tied in (True, False):
        before, after, shapes, norms = really_stored(tied, 64, 96)
        got = asked_ledger(shapes, 96, 64, norms, tied, 1000)["weights_before"]
        check.mistake("one tensor for two modules is stored once", when=tied and got == before + 4 * 96 * 64)
        check.equal(got, before)
with check.part("weights after", weight=3):
    for tied, width, vocabulary in ((True, 64, 96), (False, 32, 200)):
        before, after, shapes, norms = really_stored(tied, width, vocabulary)
        got, table = asked_ledger(shapes, vocabulary, width, norms, tied, 1000)["weights_after"], vocabulary * width
        check.mistake("codes alone restore nothing: each row has a scale of four bytes", when=got == after - 4 * (sum(r for r, _ in shapes) + vocabulary))
        check.mistake("the head holds codes now and the embedding floats: they cannot be one tensor any more", when=got == after - 4 * table)
        check.mistake("the embedding is looked up, not multiplied with: it stays float32", when=got in (after - 3 * table, after - 4 * table - 4 * vocabulary))
        check.mistake("norms stay float32", when=got == after - 3 * norms)
        check.equal(got, after)
with check.part("the cache after", weight=3):
    got = asked_ledger([(6, 4)], 10, 4, 12, True, 640)["cache_after"]
    check.mistake("weights-only quantization does not touch keys and values: they are as they were", when=got == 160)
    check.equal(got, 640)
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 4 · Read
#
# The cache can be quantized too, on its own. This is the installed library's `QuantizedLayer.update`: what a quantized cache does when
# keys and values of new tokens arrive. (`_quantize` and `_dequantize` are left to subclasses; ours, in pure torch, comes in exercise 6.)

# %% jupyter={"source_hidden": true}
from inferlab.lab import show_source
from transformers.cache_utils import QuantizedLayer

show_source(
    QuantizedLayer.update,
    {
        "self._quantized_keys = self._quantize(key_states.contiguous(), axis=self.axis_key)":
            "The first call, prefill: everything becomes codes at once.",
        "return key_states, value_states": "But attention gets the full-precision ones: the logits of prefill are exact.",
        "dequant_keys = self._dequantize(self._quantized_keys)":
            "Every later call restores all codes first. The saving is in what is kept, and work is added, not taken away.",
        "keys_to_return = torch.cat([dequant_keys, self.keys, key_states], dim=-2)":
            "Three parts: codes, a short residual in full precision, and the new token.",
        ">= self.residual_length:": "The residual is full: everything is quantized again, old codes included.",
        "self.keys = torch.cat([self.keys, key_states], dim=-2)": "Otherwise the new token joins the residual.",
    },
    excerpts=[
        ("if not self.is_initialized:", "return key_states, value_states"),
        ("dequant_keys = self._dequantize(self._quantized_keys)", "dequant_values = self._dequantize(self._quantized_values)"),
        ("keys_to_return = torch.cat([dequant_keys, self.keys, key_states], dim=-2)", "self.values = torch.cat([self.values, value_states], dim=-2)"),
    ],
    checked="5.24.0",
)

# %% [markdown]
# ## 5 · Build
#
# ### Exercise 2 · Absmax with group scales
#
# *difficulty 2 of 3 · 8 minutes · 3 points*
#
# Write `quantize(w, bits, group)` and `restore(codes, scales)`.
#
# | what | shape, dtype |
# |---|---|
# | `w` | `(rows, columns)`, `float32`; `columns` is a multiple of `group` |
# | `bits` | 2 to 8, `int`; codes run from $-(2^{b-1}-1)$ to $2^{b-1}-1$ |
# | `group` | neighbors along a **row** that share a scale, `int` |
# | returned by `quantize` | the tuple `(codes, scales)`: `(rows, columns)` `int8`, and `(rows, columns // group)` `float32` |
# | returned by `restore` | `(rows, columns)`, `float32` |
#
# Rounding is `torch.round`. A group that is all zeros has scale 1.
#
# <details><summary>Hint</summary>
# <code>w.unflatten(-1, (-1, group))</code> has shape <code>(rows, columns // group, group)</code>, and <code>.amax(-1)</code> of its absolute
# value is one number a group. <code>.flatten(-2)</code> goes back.
# </details>

# %% exercise="absmax" provides=["quantize", "restore"] difficulty=2 minutes=8
def quantize(w, bits, group):
    """Codes (int8) and one float32 scale for each group of neighbors in a row."""
    ### BEGIN SOLUTION
    groups = w.unflatten(-1, (-1, group))
    largest = groups.abs().amax(-1)
    scales = torch.where(largest > 0, largest / (2 ** (bits - 1) - 1), torch.ones_like(largest))
    return (groups / scales[..., None]).round().to(torch.int8).flatten(-2), scales
    ### END SOLUTION


def restore(codes, scales):
    """The float32 matrix that codes and scales stand for."""
    ### BEGIN SOLUTION
    group = codes.shape[-1] // scales.shape[-1]
    return (codes.unflatten(-1, (-1, group)) * scales[..., None]).flatten(-2)
    ### END SOLUTION

# %% check="absmax" points=3
import torch
from inferlab.lab import Check, close

check = Check("absmax", points=3)
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
    ### BEGIN HIDDEN TESTS
    check.mistake("one level too many: with 127 on both sides, zero stays zero and nothing overflows", when=close(scales, largest / 128))
    check.mistake("bits give 2 ** (bits - 1) - 1 levels on each side", when=close(scales, largest / 255))
    check.mistake("one scale for the whole matrix: each group has its own largest number", when=close(scales, W.abs().max().expand(6, 2) / 127))
    ### END HIDDEN TESTS
    check.close(scales, largest / 127, tol=1e-7)
### BEGIN HIDDEN TESTS
def reference_codes(w, bits, group):
    """The codes and scales, written apart from the lab's solution."""
    top = 2 ** (bits - 1) - 1
    pieces = w.reshape(w.shape[0], w.shape[1] // group, group)
    scales = pieces.abs().max(dim=-1).values / top
    scales[scales == 0] = 1.0
    return torch.round(pieces / scales.unsqueeze(-1)).reshape(w.shape).to(torch.int8), scales


with check.part("the codes, from 2 to 8 bits", weight=2):
    for bits, group in ((8, 16), (4, 8), (3, 32), (2, 4)):
        codes, scales = asked_codes(W, bits, group)
        want, want_scales = reference_codes(W, bits, group)
        check.mistake("codes are rounded to the nearest, not cut off", when=bool((codes == (W.unflatten(-1, (-1, group)) / want_scales[..., None]).trunc().flatten(-2)).all()))
        check.close(scales, want_scales, tol=1e-7)
        check.equal(codes, want)
with check.part("restored", weight=2):
    for bits, group in ((8, 16), (4, 8)):
        want, want_scales = reference_codes(W, bits, group)
        got = check.learner.restore(want, want_scales)
        check.tensor(got, shape=(6, 32), dtype=torch.float32)
        check.close(got, (want.unflatten(-1, (-1, group)) * want_scales[..., None]).flatten(-2), tol=1e-6)
        check.true(float((got - W).abs().max()) <= float(want_scales.max()) / 2 + 1e-6, "no weight may be off by more than half a step")
with check.part("a group of zeros", weight=1):
    zero = torch.cat([torch.zeros(2, 8), W[:2, :8]], dim=1)
    codes, scales = asked_codes(zero, 4, 8)
    check.equal(codes[:, :8], torch.zeros(2, 8, dtype=torch.int8))
    check.close(scales[:, 0], torch.ones(2), tol=0)
### END HIDDEN TESTS
check.score()

# %% [markdown]
# torchao divides by 127.5 and uses −128 as well, so its codes are nearly yours, not exactly (formats differ in such details, and a file of codes means
# nothing without them):

# %% tags=["demo"]
with when_written("quantize"):
    from inferlab.lab.lowbits import parts_of

    theirs = parts_of(int8_model.model.layers[0].mlp.down_proj.weight)["qdata"]
    ours, _ = quantize(model.model.layers[0].mlp.down_proj.weight, 8, config.intermediate_size)
    print(f"equal codes: {(ours == theirs).float().mean():.1%}, largest difference: {int((ours.int() - theirs.int()).abs().max())}")

# %% [markdown]
# ### Exercise 3 · What four bits really take
#
# *difficulty 1 of 3 · 6 minutes · 2 points*
#
# `quantize(w, 4, ...)` returns `int8`: four bits of information in eight bits of memory. (torchao's portable int4 format stores it the
# same way; only formats for special kernels pack.) Write
#
# * `pack(codes)`: `(rows, columns)` `int8` with values −7 to 7 and an even number of columns, to `(rows, columns // 2)` `uint8`. Of two neighbors, the **first** goes into
#   the **low** four bits; what is stored is `code + 8`;
# * `bits_per_weight(bits, group, scale_bits)`: what a weight takes when codes are packed tightly and every group has a scale of `scale_bits`;
#   a `float`.
#
# <details><summary>Hint</summary>
# <code>codes[:, 0::2]</code> are the first of each pair. Shifting left by four is multiplying by 16. The scale's bits are shared by the group.
# </details>

# %% exercise="pack" provides=["pack", "bits_per_weight"] difficulty=1 minutes=6
def pack(codes):
    """Two 4-bit codes in each byte, the first in the low half."""
    ### BEGIN SOLUTION
    shifted = (codes + 8).to(torch.uint8)
    return shifted[:, 0::2] + 16 * shifted[:, 1::2]
    ### END SOLUTION


def bits_per_weight(bits, group, scale_bits):
    """Bits that a weight takes, its share of the scale included."""
    ### BEGIN SOLUTION
    return bits + scale_bits / group
    ### END SOLUTION

# %% check="pack" points=2
import torch
from inferlab.lab import Check, close

check = Check("pack", points=2)
with check.part("one row of four codes", weight=1):
    got = check.learner.pack(torch.tensor([[-7, 7, 0, 1]], dtype=torch.int8))
    check.tensor(got, shape=(1, 2), dtype=torch.uint8)
    ### BEGIN HIDDEN TESTS
    check.mistake("the first of a pair goes into the low four bits", when=got.tolist() == [[0x1F, 0x89]])
    ### END HIDDEN TESTS
    check.equal(got.tolist(), [[0xF1, 0x98]])
### BEGIN HIDDEN TESTS
with check.part("a whole matrix, unpacked again", weight=1):
    codes = torch.randint(-7, 8, (5, 24), generator=torch.Generator().manual_seed(2), dtype=torch.int8)
    got = check.learner.pack(codes)
    check.tensor(got, shape=(5, 12), dtype=torch.uint8)
    check.equal(torch.stack([(got % 16).to(torch.int8) - 8, (got // 16).to(torch.int8) - 8], dim=-1).flatten(-2), codes)
with check.part("bits a weight", weight=2):
    got = [check.learner.bits_per_weight(4, 32, 16), check.learner.bits_per_weight(4, 16, 32), check.learner.bits_per_weight(8, 64, 32)]
    check.mistake("the scale is stored as well: a group of 32 with a 16-bit scale adds half a bit to each weight", when=close(got, [4, 4, 8]))
    check.mistake("the scale is shared by the group", when=close(got, [20, 36, 40]))
    check.mistake("scale_bits are bits, not bytes", when=close(got, [4 + 4, 4 + 16, 8 + 4]))
    check.close(got, [4.5, 6.0, 8.5], tol=1e-9)
### END HIDDEN TESTS
check.score()

# %% tags=["demo"]
from inferlab.lab.lowbits import int4_weights

int4_model = int4_weights(model, group=32)
for name, candidate in (("int8, a row", int8_model), ("int4, groups of 32", int4_model)):
    off = (candidate(ids).logits - model(ids).logits).norm() / model(ids).logits.norm()
    print(f"{name:19} {sum(stored_bytes(candidate).values()):>10,} bytes stored, logits off by {off:.1%}")

# %% [markdown]
# Half as many bits, and *more* bytes: unpacked codes, and more scales. Look at what is stored, not at the name of a format.

# %% [markdown]
# ### Error against group size
#
# A smaller group has a smaller largest number, so its steps are finer; and it pays for more scales. One matrix of the model, 4 and 8 bits, and
# 16-bit scales:

# %% tags=["demo"]
from inferlab.lab.lowbits import error_and_bits

with when_written("quantize", "restore", "bits_per_weight"):
    w = model.model.layers[3].mlp.gate_proj.weight
    groups = [group for group in (8, 16, 32, 64, 128, 256) if w.shape[1] % group == 0]
    curves = {}
    for bits in (8, 4, 3):
        errors = [float((restore(*quantize(w, bits, group)) - w).norm() / w.norm()) for group in groups]
        curves[f"{bits} bits"] = (groups, errors, [bits_per_weight(bits, group, 16) for group in groups])
    display(error_and_bits(curves, title="A bit more halves the error; a smaller group buys less, and costs bits too"))

# %% [markdown]
# ### Exercise 4 · Find the outlier
#
# *difficulty 3 of 3 · 8 minutes · 3 points*
#
# Somebody hands you a fine-tuned copy of the bundled model (of that one whatever `MODEL` says: exercises 4 and 5 hold several copies, and the grader asks about its
# 8 layers and 704 channels). It computes the same, to the last bit. But in 4 bits it is much worse than the model that you know, and only in one place, which depends
# on your name:

# %%
from inferlab.lab.lowbits import with_outlier

healthy, words = (model, tokenizer) if MODEL == "bundled" else load_language_model("bundled", lab.device, dtype=torch.float32)
prompt = words(text, return_tensors="pt").input_ids.to(lab.device)
suspect = with_outlier(healthy, lab.variant(16))
exact = healthy(prompt).logits
print("the same logits:", torch.equal(suspect(prompt).logits, exact))

# %% tags=["demo"]
import copy

with when_written("quantize", "restore"):
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
# Half of the answer is here already: with small groups the difference nearly vanishes, because an outlier ruins the steps of its **own group** only.
#
# Each MLP computes `down_proj(silu(gate_proj(x)) * up_proj(x))`. A channel of the MLP is a **row** of `up_proj` and a **column** of
# `down_proj`. In one layer, one channel was divided by a large number in `up_proj` and multiplied by it in `down_proj`. Provide
# `find_outlier()`: a `dict` with `"layer"` and `"channel"`, both `int`. You may compute them in there, or write down what you found.
#
# <details><summary>Hint</summary>
# Compare each column of a <code>down_proj.weight</code> with the others of its matrix: its largest absolute value over the median of
# all columns' largest values, and do the same in <code>healthy</code>. Beware: trained matrices have columns that are two to eight times as large as the median. You look
# for one that is far beyond.
# </details>

# %% exercise="outlier" provides=["find_outlier"] difficulty=3 minutes=8
def find_outlier():
    """The layer and the channel whose column of down_proj stands out."""
    ### BEGIN SOLUTION
    best, place = 0.0, {}
    for number, layer in enumerate(suspect.model.layers):
        largest = layer.mlp.down_proj.weight.abs().amax(0)
        ratio = largest / largest.median()
        if float(ratio.max()) > best:
            best, place = float(ratio.max()), {"layer": number, "channel": int(ratio.argmax())}
    return place
    ### END SOLUTION

# %% check="outlier" points=3
from inferlab.lab import Check

check = Check("outlier", points=3)


def asked_place():
    """The learner's two numbers, once they are that."""
    got = check.learner.find_outlier()
    check.true(isinstance(got, dict) and set(got) == {"layer", "channel"}, 'return a dict with the keys "layer" and "channel"')
    check.true(all(type(value) is int for value in got.values()), "both are int")
    return got


with check.part("a layer and a channel that exist", weight=0):
    got = asked_place()
    check.true(0 <= got["layer"] < 8 and 0 <= got["channel"] < 704, "the bundled model has 8 layers and 704 channels in each MLP")
### BEGIN HIDDEN TESTS
from inferlab.lab.lowbits import PLACES

layer, channel = PLACES[check.variant(16)]
with check.part("the layer", weight=1):
    check.equal(asked_place()["layer"], layer, "another layer's matrix is the one that 4 bits ruin")
with check.part("the channel", weight=2):
    got = asked_place()
    check.mistake("that is a row of down_proj (an output); the channel is a column", when=got["channel"] < 256 and got["channel"] != channel)
    check.equal(got, {"layer": layer, "channel": channel}, "look at the columns of down_proj, one by one")
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 5 · Repair it
#
# *difficulty 3 of 3 · 9 minutes · 3 points*
#
# "Outliers are noise," says a colleague, "clip them to four times the size of the median column before you quantize." Here is what that does, without
# any quantization, to the model that you know and to the suspect:

# %% tags=["demo"]
for name, candidate in (("model", healthy), ("suspect", suspect)):
    clipped = copy.deepcopy(candidate)
    for layer in clipped.model.layers:
        down = layer.mlp.down_proj.weight
        down.copy_(down.clamp(-down.abs().amax(0).median() * 4, down.abs().amax(0).median() * 4))
    print(f"{name:8} clipped, in float32: logits off by {(clipped(prompt).logits - exact).norm() / exact.norm():.1%}")

# %% [markdown]
# Clipping the model that you know costs next to nothing. In the suspect, the outlier belongs to a channel that the model uses: its logits are off before a single bit is
# saved. What is free is *where* the size of a channel is kept: multiplying a row of `up_proj` by any $s>0$ and dividing the same column of `down_proj` by it changes nothing that the model computes. Write `migrate(up, down)`:
#
# | argument | shape, dtype |
# |---|---|
# | `up` | `(channels, width)`, `float32`: a row for each channel |
# | `down` | `(width, channels)`, `float32`: a column for each channel |
#
# It returns the tuple `(new_up, new_down)` with `down @ diag(h) @ up` unchanged for every `h`, such that **every column of** `new_down` **has a largest absolute
# value between the median column's value $m$ and $2m$** if it was above $2m$, and is left as it is if it was at most $2m$. $m$ is `torch.median` of the columns' largest absolute values.
# Use powers of two as factors, so that nothing is rounded; neither argument may be changed in place.
#
# <details><summary>Hint</summary>
# For a column of size <code>c &gt; 2 * m</code>, the factor is <code>2 ** floor(log2(c / m))</code>: then <code>c / factor</code> lies in <code>[m, 2 * m)</code>.
# Divide the column by it. Which row takes it?
# </details>

# %% exercise="migrate" provides=["migrate"] difficulty=3 minutes=9
def migrate(up, down):
    """The same MLP with the size of outlying channels moved from the columns of down to the rows of up."""
    ### BEGIN SOLUTION
    size = down.abs().amax(0)
    median = size.median()
    factor = torch.where(size > 2 * median, 2.0 ** torch.floor(torch.log2(size / median)), torch.ones_like(size))
    return up * factor[:, None], down / factor
    ### END SOLUTION

# %% check="migrate" points=3
import torch
from inferlab.lab import Check, close

check = Check("migrate", points=3)


def fixture(seed, channel, by):
    """An MLP's two matrices with one channel out of proportion."""
    g = torch.Generator().manual_seed(seed)
    up, down = torch.randn(24, 8, generator=g), torch.randn(8, 24, generator=g)
    up[channel] /= by
    down[:, channel] *= by
    return up, down


def migrated(up, down):
    """The learner's two matrices, once they have the right shapes."""
    got = check.learner.migrate(up, down)
    check.true(isinstance(got, tuple) and len(got) == 2, "return the tuple (new_up, new_down)")
    check.tensor(got[0], shape=tuple(up.shape))
    check.tensor(got[1], shape=tuple(down.shape))
    return got


with check.part("the model computes the same", weight=1):
    up, down = fixture(1, 5, 64.0)
    new_up, new_down = migrated(up, down)
    hidden = torch.randn(24, generator=torch.Generator().manual_seed(2))
    ### BEGIN HIDDEN TESTS
    shrunk = (new_down / down).amax(0) - (new_down / down).amin(0)
    check.mistake("a clipped weight is another model: its size must go somewhere", when=close(new_up, up) and float(shrunk.max()) > 1e-3)
    check.mistake("only one of the two matrices was scaled", when=close(new_up, up) != close(new_down, down))
    ### END HIDDEN TESTS
    check.close(new_down @ (hidden[:, None] * new_up), down @ (hidden[:, None] * up), tol=1e-3)
### BEGIN HIDDEN TESTS
with check.part("the outlier is gone, the others are where they were", weight=2):
    for seed, channel, by in ((1, 5, 64.0), (3, 20, 37.0)):
        up, down = fixture(seed, channel, by)
        new_up, new_down = migrated(up, down)
        size, median = down.abs().amax(0), down.abs().amax(0).median()
        check.mistake("nothing has moved", when=close(new_down, down))
        check.true(close(new_down @ new_up, down @ up, tol=1e-3), "the two matrices together are another model now")
        check.mistake("columns that do not stand out must stay as they are", when=not close(new_down[:, size <= 2 * median], down[:, size <= 2 * median]))
        after = new_down[:, size > 2 * median].abs().amax(0)
        check.true(bool(((after >= median * 0.999) & (after <= 2 * median * 1.001)).all()), "an outlying column must end up between m and 2 m")
with check.part("exact, and it helps", weight=2):
    up, down = fixture(4, 11, 50.0)
    new_up, new_down = migrated(up, down)
    check.true(torch.equal(new_down @ new_up, down @ up) or close(new_down @ new_up, down @ up, tol=1e-4), "down @ up must stay what it was")
    ratio = (new_down / down)[0]
    check.mistake("a factor that is no power of two rounds every weight it touches", when=not bool((torch.log2(ratio) == torch.log2(ratio).round()).all()))

    def error(w):
        step = w.abs().amax(-1, keepdim=True) / 7
        return float(((w / step).round() * step - w)[:, torch.arange(24) != 11].norm())

    check.true(error(new_down) < 0.3 * error(down), "in 4 bits with one scale a row, the other weights must come out better than before")
### END HIDDEN TESTS
check.score()

# %% tags=["demo"]
with when_written("quantize", "restore", "migrate"):
    repaired = copy.deepcopy(suspect)
    for layer in repaired.model.layers:
        up, down = migrate(layer.mlp.up_proj.weight, layer.mlp.down_proj.weight)
        layer.mlp.up_proj.weight.copy_(up)
        layer.mlp.down_proj.weight.copy_(down)
    print("the same logits:", torch.equal(repaired(prompt).logits, exact))
    for name, candidate in (("model", healthy), ("suspect", suspect), ("clipped", clipped), ("repaired", repaired)):
        off = (in_four_bits(candidate, None)(prompt).logits - exact).norm() / exact.norm()
        print(f"{name:8} in 4 bits, one scale a row: logits off by {off:.1%}")

# %% [markdown]
# Clipping does help the 4-bit copy, but it has a price of its own, which you saw before anything was quantized. Moving the size has none, and helps more. (The repaired copy is
# even better than the model that you know: that one has smaller outliers of its own, and `migrate` moved those as well.)

# %% [markdown]
# ### Exercise 6 · The cache has a ledger of its own
#
# *difficulty 3 of 3 · 9 minutes · 3 points*
#
# `small_cache` is a cache of our own: a subclass of the class that you read in section 4, with absmax scales. What does it hold after a run?

# %% tags=["demo"]
cache = small_cache(config, bits=8, group=config.head_dim, residual=8)
small_tokens, _ = run_with(model, cache)
print("plain cache:", sum(cache_bytes(float_cache).values()), "bytes;  small cache:", cache_bytes(cache))
print("the same tokens:", torch.equal(small_tokens, float_tokens))

# %% [markdown]
# Write `cache_ledger(layers, kv_heads, head_dim, prompt, new, group, residual)`: what such a cache holds after `generate` has written `new` tokens
# behind `prompt` ones, one sequence. Returns a `dict` of `int`, in bytes: `"codes"` (`int8`, one byte each), `"scales"` (`float32`, one for each group of
# `group` values along `head_dim`) and `"full"` (`float32`, the residual). Keys **and** values.
#
# <details><summary>Hint</summary>
# The last token is never fed back, so <code>new - 1</code> tokens come after the prompt. Each joins the residual; when the residual would reach <code>residual</code>
# tokens, all becomes codes and the residual is empty again. (Section 4.)
# </details>

# %% exercise="cache-ledger" provides=["cache_ledger"] difficulty=3 minutes=9
def cache_ledger(layers, kv_heads, head_dim, prompt, new, group, residual):
    """Bytes of codes, scales and residual of a quantized cache after a run of one sequence."""
    ### BEGIN SOLUTION
    fed = new - 1
    full = fed % residual
    values = 2 * layers * kv_heads * head_dim
    coded = values * (prompt + fed - full)
    return {"codes": coded, "scales": 4 * coded // group, "full": 4 * values * full}
    ### END SOLUTION

# %% check="cache-ledger" points=3
from inferlab.lab import Check, reference

check = Check("cache-ledger", points=3)


def asked_cache(*arguments):
    """The learner's cache ledger, once it has the form of the contract."""
    got = check.learner.cache_ledger(*arguments)
    check.true(isinstance(got, dict) and set(got) == {"codes", "scales", "full"}, "return a dict with exactly the three keys")
    check.true(all(type(value) is int for value in got.values()), "each value is an int")
    return got


with check.part("straight after prefill: 10 tokens, one new", weight=1):
    check.equal(asked_cache(2, 2, 16, 10, 1, 16, 4), {"codes": 1280, "scales": 320, "full": 0})
### BEGIN HIDDEN TESTS
@reference
def really_cached(prompt, new, group, residual):
    """Bytes of a quantized cache after a real run of a tiny model with 2 layers, 4 query and 2 kv heads of 16."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from inferlab.lab.lowbits import cache_bytes, small_cache
    from inferlab.models import cache_argument
    from inferlab.models.quiet import quiet

    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=64, hidden_size=64, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                         num_key_value_heads=2, head_dim=16, bos_token_id=None, eos_token_id=None, pad_token_id=None)
    with quiet(), torch.no_grad():
        model = LlamaForCausalLM(config).eval()
        cache = small_cache(config, 8, group, residual)
        ids = torch.arange(1, prompt + 1)[None]
        model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=new, do_sample=False, **cache_argument(cache))
    return cache_bytes(cache)


VALUES = 2 * 2 * 2 * 16
with check.part("a residual that is not full yet", weight=2):
    want, got = really_cached(10, 5, 8, 8), asked_cache(2, 2, 16, 10, 5, 8, 8)
    check.mistake("the last token is never fed back: there are new - 1 tokens behind the prompt", when=got["full"] == 4 * VALUES * 5)
    check.mistake("keys and values: two of everything", when=got["codes"] * 2 == want["codes"])
    check.mistake("only the key-value heads are kept, not the query heads", when=got["codes"] == 2 * want["codes"])
    check.mistake("the residual is full precision: four bytes a value", when=got["full"] * 4 == want["full"])
    check.equal(got, want)
with check.part("when the residual is full", weight=2):
    for prompt, new, group, residual in ((9, 9, 16, 4), (7, 13, 8, 5), (12, 9, 16, 8)):
        want, got = really_cached(prompt, new, group, residual), asked_cache(2, 2, 16, prompt, new, group, residual)
        check.mistake("at `residual` tokens all becomes codes, and the residual is empty", when=want["full"] == 0 and got["full"] == 4 * VALUES * residual)
        check.mistake("the residual does not grow for ever: it is quantized when it is full", when=got["full"] == 4 * VALUES * (new - 1) and want["full"] != got["full"])
        check.equal(got, want)
with check.part("another model, a longer run", weight=1):
    check.equal(asked_cache(32, 8, 128, 4000, 97, 64, 128), {"codes": 2 * 32 * 8 * 128 * 4000, "scales": 4 * 2 * 32 * 8 * 128 * 4000 // 64, "full": 4 * 2 * 32 * 8 * 128 * 96})
### END HIDDEN TESTS
check.score()

# %% [markdown]
# How much does it cost? Prefill is exact, the error begins with the first decode step, and fewer bits make it larger. (fp8 has as many
# bits as int8 and spends four of them on an exponent: finer steps near zero, coarser ones near the largest value.)

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
# ### Exercise 7 · Who gains?
#
# *difficulty 2 of 3 · 11 minutes · 2 points*
#
# On a device that does `flops` operations and reads or writes `bandwidth` bytes a second, a step takes at least
# $\max(\text{FLOPs}/\text{flops},\ \text{bytes}/\text{bandwidth})$. With quantized weights that are restored on the fly, the FLOPs stay the same: only bytes shrink. Count, for a model of
# `n` weights and a step over `tokens` tokens (cache and activations left out):
#
# | step | FLOPs | bytes |
# |---|---|---|
# | decode (`training=False`) | `2 * n * tokens` | the weights once: `n * bits / 8` |
# | training (`training=True`) | `6 * n * tokens` | the weights twice, forward and backward: `2 * n * bits / 8`; gradients written and read at 2 bytes: `4 * n`; the optimizer's two moments and the master weights, `float32`, each read and written: `24 * n` |
#
# Write `speedup(n, tokens, training, bits, flops, bandwidth)`: the least time of the step with 16-bit weights over its least time with `bits`-bit
# weights, a `float`.
#
# Training has a second trouble: it does not only read weights, it **moves** them, a little at a time. Suppose that nothing but codes is kept: after every step the
# new weights are rounded to the grid again. Write `survives(w, update, bits, group)`: the share of weights, a `float` from 0 to 1, whose code is another one after `update` was
# added. `w` is `(rows, columns)` `float32` and lies on its grid already (it has been restored), `update` has the same shape, no group is all zeros, and the scales stay those of `w`.
#
# <details><summary>Hint</summary>
# One inner function for the least time of a step, called with 16 and with <code>bits</code>. And a number that lies on a grid is rounded back to where it was
# unless it moved by more than ... of a step.
# </details>

# %% exercise="speedup" provides=["speedup", "survives"] difficulty=2 minutes=11
def speedup(n, tokens, training, bits, flops, bandwidth):
    """Least time of the step with 16-bit weights over the least time with `bits`-bit weights."""
    ### BEGIN SOLUTION
    def least(width):
        moved = n * (2 * width / 8 + 28) if training else n * width / 8
        return max((6 if training else 2) * n * tokens / flops, moved / bandwidth)

    return float(least(16) / least(bits))
    ### END SOLUTION


def survives(w, update, bits, group):
    """Share of the weights on a grid that an update moves to another code, with the scales of `w`."""
    ### BEGIN SOLUTION
    step = w.unflatten(-1, (-1, group)).abs().amax(-1, keepdim=True) / (2 ** (bits - 1) - 1)
    return float((update.unflatten(-1, (-1, group)).abs() > step / 2).float().mean())
    ### END SOLUTION

# %% check="speedup" points=2
import torch
from inferlab.lab import Check, close

check = Check("speedup", points=2)


def asked_speedup(*arguments):
    """The learner's ratio, once it is a number."""
    got = check.learner.speedup(*arguments)
    check.true(isinstance(got, float), "return a float")
    return got


with check.part("decode, one sequence, 4 bits", weight=1):
    check.close(asked_speedup(8e9, 1, False, 4, 800e12, 4e12), 4.0, tol=1e-6)
### BEGIN HIDDEN TESTS
with check.part("a training step of 8,192 tokens", weight=2):
    got = asked_speedup(8e9, 8192, True, 4, 800e12, 4e12)
    check.mistake("the FLOPs do not shrink: restored weights are multiplied in 16 bits", when=close(got, 4.0, tol=1e-6))
    check.mistake("this step is bound by arithmetic, not by bytes", when=got > 1.05)
    check.close(got, 1.0, tol=1e-6)
with check.part("decode with many sequences", weight=2):
    got = [asked_speedup(8e9, tokens, False, 4, 800e12, 4e12) for tokens in (32, 100, 512)]
    check.mistake("fewer bits are not always faster: at 512 sequences the arithmetic is the limit", when=got[2] > 1.05)
    check.close(got, [4.0, 2.0, 1.0], tol=1e-6)
with check.part("a training step of a single token", weight=1):
    got = asked_speedup(1e9, 1, True, 8, 800e12, 4e12)
    check.mistake("the optimizer's bytes stay: 24 a weight", when=close(got, 2.0, tol=1e-6) or close(got, 8 / 6, tol=1e-6))
    check.close(got, 32 / 30, tol=1e-6)
with check.part("the share of an update that survives", weight=2):
    grid, moves = torch.tensor([[7.0, -2, 1, 3, 70, 20, -10, 30]]), torch.tensor([[0.4, -0.6, 0.7, 1.2, -6, 5.5, -0.9, 3]])
    got = [check.learner.survives(grid, moves, 4, group) for group in (4, 8)]
    check.true(all(isinstance(value, float) for value in got), "return a float")
    check.mistake("half a step is enough: rounding goes to the nearest code", when=close(got, [1 / 8, 0.0], tol=1e-6))
    check.mistake("an update goes up or down: its size counts", when=close(got, [3 / 8, 1 / 8], tol=1e-6))
    check.mistake("this is the share that is lost: an update of less than half a step is rounded away", when=close(got, [3 / 8, 6 / 8], tol=1e-6))
    check.mistake("each group has a step of its own, and a finer one where its largest weight is small", when=got[0] == got[1])
    check.close(got, [5 / 8, 2 / 8], tol=1e-6)
    fine = torch.where(grid == 7, 127.0, torch.where(grid == 70, 1270.0, grid))  # the same steps, with 8 bits
    check.close(check.learner.survives(fine, moves, 8, 4), 5 / 8, tol=1e-6)
### END HIDDEN TESTS
check.score()

# %% [markdown]
# In FLOPs per byte: a decode step of one sequence does 1 with 16-bit weights and 4 with 4-bit ones. A training step over 8,192 tokens does about 1,500, far to the
# right of every ridge. So the same trick saves inference time and saves training nothing but memory. The six FLOPs a weight and token are no rule of thumb:
# torch counts them here, around forward and backward of the bundled model over 2 texts of 64 tokens.

# %% tags=["demo"]
from torch.utils.flop_counter import FlopCounterMode

trained, _ = load_language_model("bundled", lab.device, dtype=torch.float32)
trained.set_attn_implementation("eager")
batch = torch.arange(128, device=lab.device).view(2, 64)
counted = []
for backward in (False, True):
    with torch.enable_grad(), FlopCounterMode(display=False) as counter:
        loss = trained(batch, labels=batch, use_cache=False).loss
        if backward:
            loss.backward()
    counted.append({str(op): flops for op, flops in counter.get_flop_counts()["Global"].items()}["aten.mm"])
matrices = sum(weight.numel() for weight in trained.parameters() if weight.dim() == 2)
print(f"forward {counted[0]:,}, with backward {counted[1]:,} FLOPs: {counted[1] / counted[0]:.2f} times as many")
print(f"6 * {matrices:,} weights * {batch.numel()} tokens = {6 * matrices * batch.numel():,}")
print(f"bytes of a step as in the table, 16-bit weights: {32 * matrices:,}; FLOPs per byte: {counted[1] / (32 * matrices):.0f}")

# %% [markdown]
# The bytes of a step do not depend on the tokens and the FLOPs do: at 128 tokens this is 24 FLOPs per byte, still left of a ridge of 200; a batch of thousands of tokens is compute-bound, and there fewer
# bytes of weights save no time. The picture, for an 8-B model on a device with 800 TFLOP/s and 4 TB/s:

# %% tags=["demo"]
from inferlab.lab.roofline import Cost, Dot, Rates, roofline

n, device = 8e9, Rates("800 TFLOP/s, 4 TB/s", 800e12, 4e12)
dots = [Dot(f"{bits} bits", Cost(int(2 * n), 0, int(n * bits / 8), 0, 0), group="decode, 1 sequence") for bits in (16, 8, 4)]
dots += [Dot("16 or 4 bits", Cost(int(6 * n * 8192), 0, int(n * (16 / 4 + 28)), 0, 0), group="training, 8,192 tokens")]
roofline(device, dots, title="Fewer bits move decode up the roof; training was at the top already")

# %% [markdown]
# Time is not the only thing that training loses. Sixty steps of plain gradient descent on one small linear fit, with the weights kept in floating point, or rounded by your
# `quantize` after every step:

# %% tags=["demo"]
with when_written("quantize", "restore", "survives"):
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
        print(f"{f'{bits} bits' if bits else 'float32':8} loss at steps 0, 20, 40, 60: {', '.join(losses[::20]):27} updates that survive: {', '.join(alive[::20])}")
    print(f"for comparison, the right weights rounded once, to 4 bits: loss {(inputs @ (restore(*quantize(aim, 4, 32)) - aim).T).square().mean():.2f}")

# %% [markdown]
# In four bits the loss stalls: nearly every update is smaller than half a step and is rounded away, whatever its direction. The grid could **hold** a far better answer (last line); small steps do
# not get there. This is how too few bits hurt convergence, and why training in low precision keeps `float32` master weights (the table counts them), which collect small updates until
# one of them moves a code.
#
# And on the machine in front of you? The bundled model is so small that a decode step is bound by launching operations, and restoring
# weights adds some. (Shown, not graded.)

# %% tags=["demo"]
from inferlab.lab.roofline import best_seconds

token = ids[:, :1]
for name, candidate in (("float32", model), ("int8", int8_model)):
    print(f"{name:8} one token: {1e3 * best_seconds(lambda: candidate(token), lab.device):.1f} ms")

# %% [markdown]
# ## 6 · Explain
#
# *difficulty 2 of 3 · 10 minutes · 6 points: 3 for the typed lines, 3 for the sentences*
#
# A colleague says: "We quantized the weights to int8, so now twice as many requests fit beside each other." Explain what was really quantized, about the
# `int8` run of section 3.
#
# | line | what it says |
# |---|---|
# | `state:` | one or two sentences: what int8 quantization replaces, by what, and what it leaves alone |
# | `axis:` | one or two sentences: along which axis a scale is shared in the int8 model, and in groups of which size in a matrix with 704 columns |
# | `trade-off:` | one or two sentences: what you gain and what you pay when you make the groups **smaller** |
# | `cache:` | typed, with a unit: bytes of the KV cache after the int8 run (your ledger has them) |
# | `dtype:` | typed: the dtype of the activations that go from layer to layer in the int8 run |
# | `table:` | typed: the module whose weight is stored in float although it was one tensor with the head before, such as `layers.mlp` |
# | `gain:` | typed, such as `latency down`: what weight-only quantization improves in this run, whatever the machine |
# | `cost:` | typed: what it makes worse, whatever the machine |

# %%
explained = int8_run  # %%explain looks the numbers of your answer up in the newest trace that has a name

# %% explain="what-shrank" difficulty=2 minutes=10
%%explain what-shrank
# ### BEGIN SOLUTION
# state: Quantization replaces the weights of the linear layers by int8 codes and scales; the cache and the activations keep their float32 values.
# axis: The scale is shared along a row: in a matrix with 704 columns one scale serves 704 weights.
# trade-off: Smaller groups make the error smaller, but they need more memory because more scales are stored.
# cache: 340 KiB
# dtype: float32
# table: embed_tokens
# gain: memory down
# cost: error up
# ### END SOLUTION

# %% check="shrank-cache" of="what-shrank" points=1
from inferlab.lab import Check, reference

check = Check("shrank-cache", points=1)
with check.part("`cache:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("what-shrank").get("cache"), "`cache:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import typed


@reference
def cache_of_the_run():
    """Bytes of the KV cache after the run of section 3: prompt and 11 fed tokens in float32."""
    from inferlab.models import load_language_model
    from inferlab.models.stories import documents

    model, tokenizer = load_language_model("bundled", "cpu")
    text = " ".join(documents(1, seed=4, kind="story")[0].text().split(" ")[:60])
    length = tokenizer(text, return_tensors="pt").input_ids.shape[1] + 11
    config = model.config
    return 2 * config.num_hidden_layers * config.num_key_value_heads * config.head_dim * length * 4


with check.part("bytes of the cache after the int8 run"):
    told, right = check.explanation("what-shrank"), cache_of_the_run()
    check.mistake("the weights shrank to a fourth; the cache holds keys and values, in float32 as before", when=typed(told, "cache", right / 4, tolerance=0.03).verdict == "award")
    check.mistake("halved? The cache was not quantized at all", when=typed(told, "cache", right / 2, tolerance=0.03).verdict == "award")
    outcome = typed(told, "cache", right, tolerance=0.03)
    check.true(outcome.verdict == "award", outcome.reason)
### END HIDDEN TESTS
check.score()

# %% check="shrank-dtype-table" of="what-shrank" points=1
from inferlab.lab import Check

check = Check("shrank-dtype-table", points=1)
with check.part("`dtype:` and `table:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("what-shrank").get("dtype"), "`dtype:` is empty")
    check.true(check.explanation("what-shrank").get("table"), "`table:` is empty")
### BEGIN HIDDEN TESTS
import re

from inferlab.lab.explain import typed

with check.part("the dtype between the layers"):
    told = check.explanation("what-shrank")
    check.mistake("int8 is what the weights are stored as; the table of boundaries shows what goes between them", when=typed(told, "dtype", "int8").verdict == "award")
    outcome = typed(told, "dtype", "float32")
    check.true(outcome.verdict == "award", outcome.reason)
with check.part("the table that stayed"):
    names = re.findall(r"[a-z_][a-z_.]*[a-z_]", check.explanation("what-shrank").get("table").casefold())
    check.true(len(names) == 1, "`table:` wants the name of one module")
    check.mistake("the head is a linear layer: its copy is the one that holds codes now", when=names[0].removesuffix(".weight").endswith("lm_head"))
    check.true(names[0].removesuffix(".weight").split(".")[-1] in ("embed_tokens", "embedding", "embeddings"), "another module's weight was one tensor with the head")
### END HIDDEN TESTS
check.score()

# %% check="shrank-gain-cost" of="what-shrank" points=1
from inferlab.lab import Check

check = Check("shrank-gain-cost", points=1)
with check.part("`gain:` and `cost:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("what-shrank").get("gain"), "`gain:` is empty")
    check.true(check.explanation("what-shrank").get("cost"), "`cost:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import typed

STORED = {"weight bytes": "bytes of the weights, size of the weights, weights, bytes read, traffic, bandwidth, model size"}
check.slot(lambda: typed(check.explanation("what-shrank"), "gain", ("memory down", "weight bytes down", "transfer down"), terms=STORED), "what it improves")
check.slot(lambda: typed(check.explanation("what-shrank"), "cost", ("error up", "quality down", "compute up")), "what it makes worse")
### END HIDDEN TESTS
check.score()

# %% check="shrank-state" of="what-shrank" points=1
from inferlab.lab import Check

check = Check("shrank-state", points=1)
with check.part("`state:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("what-shrank").get("state"), "`state:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import Rubric, Slot, grade

RUBRIC = Rubric(
    question="What int8 quantization replaces, by what, and what it leaves alone.",
    lab="Codes and scales in place of the matrices. Codes and scales live inside the layers; between them nothing is quantized. "
        "Weights-only quantization does not shrink it.",
    terms={
        "weights": "weight*, weight matrices, weight matrix, linear matrices, matrices, matrix, parameters, parameter*, linear, linears, linear layers, linear layer*, linear module*, linear weights, weights of the linear layers, layers' weights, weights of linear layers, matrices of linear layers, numbers of linear layers",
        "cache": "cache*, kv cache, keys and values, key-value cache, key/value cache, k/v cache, keys, values of the cache, cache of keys and values, memory of cache",
        "activations": "activation*, hidden states, outputs between the layers, what flows between layers, what flows between the layers",
        "codes": "code*, int8 code*, integer code*, integer*, int8, int 8, 8-bit, 8 bit, 8-bit code*, 8-bit integer*, one-byte code*, one byte code*, byte code*, one-byte integers, 1 byte ints, ints, int8 numbers, int8 integers, codes and scales, int8 codes and scales, codes of 8 bit",
        "scales": "scale*, scale factor*, scaling factor*, row scales, float scale*",
        "quantization": "quantization, quantisation, quantizing, quantising, int8 quantization, weight-only quantization, weights-only quantization, torchao, int8 run",
        "embedding": "embedding*, embed_tokens, embedding table, norm*, norm weights",
        "requests": "requests, request, twice as many requests, users, people",
    },
    slots={"state": Slot(
        learned="lab17 state afb596801171b665",
        award=["quantization replaces/converts/turns/swaps/changes/transforms/compresses/maps/modifies weights", "* replaces/converts/turns/swaps/change/transforms/maps weights", "weights changes/becomes/matches/moves/passes codes", "weights changes/becomes codes", "codes changes/matches/becomes weights", "weights is codes", "quantization keeps/uses/matches codes",
               "* stores/saves/holds weights", "weights predicts codes", "* exchange/compress weights",
               "* shrink/reduce/store weights + says: int8, code/codes, one byte, 1 byte", "weights get/receive codes",
               "* hold/store/keep/contain codes + says: instead of/the .. weight/weights/float/floats/float32/matrices, "
               "in place of .. weight/weights/float/floats/float32/matrices, rather than .. weight/weights/float/floats/float32/matrices",
               "says: weight/weights/matrices/matrix/layer/layers/linear/linears/parameters/modules/module .. to/into/for/by/as/become/becomes/became/are/is/now/with/against/an .. int8/codes/code/integers/integer/8-bit/ints/one-byte, "
               "code/codes/integer/integers/int8/numbers/scales .. instead, stored in one byte, one byte each, stored/kept/saved as integers/int8/codes/8-bit/bytes, in place of float/floats/the float/weights, codes/scales/integers in place, took/take/takes/taking/taken the place of .. weight/weights/matrix/matrices/float/floats/linears, code/codes/integer/integers/int8 per/a/for weight, code/codes/integer/integers/int8 for/per each/every weight, weights .. quantized/quantised, quantizes/quantises/quantizing .. weights", "* puts/places codes"],
        deny={
            "quantization changes/shrinks cache": "The cache was not quantized: keys and values are float32 as before.",
            "* shrinks/halves/shrink/reduces/compresses/converts/replaces/swaps cache": "The cache was not quantized: keys and values are float32 as before.",
            "cache becomes/shrinks codes": "The cache was not quantized: keys and values are float32 as before.",
            "cache shrink/halve/shrinks": "The cache was not quantized: keys and values are float32 as before.",
            "cache predicts codes": "The cache was not quantized: keys and values are float32 as before.",
            "quantization changes activations": "Between the layers everything is float32 as before.",
            "* converts/turns/replaces/compresses/swaps activations": "Between the layers everything is float32 as before.",
            "* converts/turns/replaces/compresses/swaps embedding": "The embedding is looked up, not multiplied with: it stays float32.",
            "cache get/receive codes": "The cache was not quantized: keys and values are float32 as before.",
            "activations get/receive codes": "Between the layers everything is float32 as before.",
            "embedding get/receive codes": "The embedding is looked up, not multiplied with: it stays float32.",
            "cache be codes": "The cache was not quantized: keys and values are float32 as before.",
            "activations be codes": "Between the layers everything is float32 as before.",
            "embedding be codes": "The embedding is looked up, not multiplied with: it stays float32.",
            "quantization remove/strip/cut weights": "No weight is taken away: each becomes a code.",
            "says: int4, int4 codes, 4-bit, 4 bits, four bits, by float16, to float16, float16 weights, bfloat16, half precision": "The codes are int8, and each row has a scale.",
            "* remove/strip weights": "No weight is taken away: each becomes a code.",
            "says: throws/throw/throwing/threw .. scales away, throws/throw/throwing away .. scales, drops/drop/dropping/discards/discard/discarding/deletes/forgets .. scales, "
            "scales are/get thrown/dropped/discarded/deleted/forgotten": "A code is nothing without its scale: both are stored.",
            "says: codes of 16/4/32/2 bits, 16 bits each, 4 bits each, 16-bit code/codes/integer/integers, int16, two bytes each, codes of two bytes": "A code has 8 bits, one byte.",
            "weights stay/remain": "The weights of the linear layers are what was replaced.",
            "says: cache is stored in int8, cache is rounded, cache holds/has/contains/stores/uses int8, cache holds/contains/stores codes, cache takes a fourth/quarter/half, cache takes half, cache takes less/fewer, cache needs/has only/half/less, half of its memory, cache becomes/became/gets int8, cache becomes/became codes, weights and keys, weights and the keys, keys and values are stored/quantized/quantised/converted/replaced/int8, keys and values as int8, keys and values by, keys and values into, keys and values to, cache .. in int8, cache is halved/quantized/quantised/smaller/int8/compressed/converted/replaced, cache gets/becomes/is smaller, cache was quantized/quantised/halved/converted/compressed, cache gets/becomes/is/was/got/became half/quarter/four/two/4/2/twice, "
            "cache .. half/quarter/times as big/large, cache .. times smaller, the cache smaller, smaller cache, quarter of the cache, half of the cache, "
            "\"quantizes the cache\", \"quantizes the kv cache\", \"changes the cache\", \"changes the kv cache\", keys and values as/in/by codes/integers, cache as well, cache too becomes, cache also shrinks/becomes/gets, cache is also quantized/int8/halved/smaller/converted, cache .. in int8, cache .. to int8, as well as the cache, as well as the keys, weights and the kv cache by, "
            "weights and the cache by/to/into/are/become, weights and cache by/to/into/are/become, weights and kv cache are/become/to/into, both weights and, both the weights and, weights and the kv cache are, so does the cache, so do the keys, so is the cache, cache likewise, so does the kv cache, as well as the kv, as well as the keys": "The cache was not quantized: keys and values are float32 as before.",
            "says: also the embedding and the norms, embedding too, embedding as well, the embedding also, embedding is replaced/quantized/converted, embedding/embeddings/norms/table/tables went/goes/go/becomes/become/became/gets/get/turns/turned .. int8/codes, "
            "\"quantizes the norms\", \"quantizes the embedding\", \"quantizes the embeddings\", norms too become/get/are, code/codes/int8/scales and the norms/embedding/embeddings/activations too/also, code/codes/int8/scales and the norms/embedding/embeddings/activations as well, "
            "embedding included, including the embedding/embeddings/norms, and the embedding by/to/into, everything is int8, everything becomes int8, everything to int8, all tensors, all numbers in the model, all of the weights and": "The embedding and the norms stay float32.",
            "says: activations too, activations as well, activations also, activations in int8, activations to int8, activations are int8, activations become int8, activations are quantized/quantised, \"quantizes the activations\", activations into int8, activations with int8, activations by int8": "Between the layers everything is float32 as before.",
            "says: leaves/leaving the weights, leaves/leaving weights, keeps the weights as/in/untouched/alone, weights are untouched/unchanged, weights stay/remain/are/keep float/float32/in/as/untouched, weights are left alone, weights themselves stay, does not/doesn't replace/touch/change the weights, not the weights": "The weights of the linear layers are what was replaced.",
            "says: so twice as many requests, twice as many requests fit, more requests can fit, so more people/users, fit more people/users/requests": "The cache decides how many requests fit, and it was not quantized.",
        },
        topic=["cache", "activations", "embedding"], names=["weights"],
        loose=True,
    )},
    must_award={"state": [
        "Quantization replaces the weights of the linear layers by int8 codes and scales; the cache keeps its float32 values.",
        "The weights are replaced by int8 codes and a scale for each row, while the cache and the activations stay in float32.",
        "It turns the weight matrices into int8 codes with scales and leaves the KV cache alone.",
        "only the weights of linear layers get swapped for int8 codes and scales, cache stays the same as before",
        "The big matrices get int8 codes, with a scale for each row; the cache and the activations keep their precision.",
        "Codes in int8 took the place of the float matrices, each row has a scale, and the cache stayed as it was.",
    ]},
    must_deny={"state": [
        "Quantization shrinks the cache and the weights to int8.",
        "The quantization converts the cache to int8 codes, so more requests fit.",
        "Quantization changes the activations to int8, and the cache shrinks.",
        "It shrinks the KV cache, because the weights are int8 now.",
        "The KV cache becomes int8 codes and scales, and the weights stay float32.",
        "It replaces the weights by int8 codes, and the cache is halved.",
        "The weights become int8 codes with scales, and the KV cache gets four times smaller.",
        "The weights become int8 codes, and the scales are thrown away; the cache is unchanged.",
        "Linear weights are replaced by int8 codes and scales, it quantizes the norms as well and leaves the cache alone.",
        "The weights of the linear layers become int8 codes and the norms as well; the cache stays as it is.",
    ]},
)
check.slot(lambda: grade(check.explanation("what-shrank"), RUBRIC, {})["state"], "what is replaced, by what, and what is not")
### END HIDDEN TESTS
check.score()

# %% check="shrank-axis" of="what-shrank" points=1
from inferlab.lab import Check

check = Check("shrank-axis", points=1)
with check.part("`axis:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("what-shrank").get("axis"), "`axis:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import Amounts, Rubric, Slot, grade

RUBRIC = Rubric(
    question="Along which axis a scale is shared in the int8 model, and in groups of which size in a matrix with 704 columns.",
    lab="One int8 code a weight and one float32 scale a row.",
    terms={
        "row": "row, rows, row*, per row, each row, row-wise, rowwise, per-row, output channel*, per output channel, per-channel, per channel, output row*, output feature*, last axis, last dimension, last dim, input axis, input dimension, input dim, column dimension, column axis, columns axis, columns of a row, columns of each row, "
        "columns of one row, columns of the row, \"over the columns\", \"across the columns\", \"along the columns\", \"across columns\", \"over columns\", axis 1, dim 1, second axis, second dimension, axis -1, dim -1, horizontally",
        "columns": "column*",
        "scale": "scale*, scaling factor*, scale factor*",
        "weights": "weight*, values, value, numbers, codes, neighbors, neighbours, entries, elements, element, members, long, size, length, wide, share it, together",
        "matrix": "matrix, matrices, tensor",
        "group": "group*",
    },
    slots={"axis": Slot(
        learned="lab17 axis dd1088d6b5a3166f",
        amounts=Amounts(shapes=["down_proj"], counts={"row": [704, 256, 1], "columns": 704, "weights": 704, "group": [704, 1]}, key=["weights=704", "group=704", "row=704", "columns=704"]),
        topic=["row"],
        deny={"says: no shared scale, scale is not shared, a scale of its own/own, own scale for each/every weight, one scale for each/every weight, group of one/1": "A scale is shared by all the weights of a group; here a group is a row.",
                  
            "columns uses/keeps/get scale": "A column has no scale of its own: each row has one.",
            "says: each/every column has/gets/keeps/owns, column has its own, column has one, columns has its own, columns have their own, columns have a/one scale each, columns have a/one scale of their, columns have scales, columns have different/own, column gets, scale per column, scale for each/every column, one per column, per column, along the column with, column with 704, down a column, along a column, along each column, along the column so, along one column, scale of each/every column, within a column, in one column, inside a column, of a column share, columns share a scale with, column-wise, columnwise, "
            "rows of a column, \"rows share one\", all 256 rows, vertically, first axis, axis 0, dim 0, input channel": "A column has no scale of its own: each row has one.",
            "says: scale for each/every weight, each/every weight has, scale per weight, weight has its own, scale a weight, one scale each for": "A whole row shares one scale.",
            "says: rows are the/tokens/inputs input/inputs/tokens, each/every/one input/token needs/has/gets/uses .. scale, scale for/per each/every/a token/input, scale per token/input": "The rows of a weight are its outputs; a scale knows nothing of tokens.",
            "says: 704 rows, 704 scales, 704 different scales, 704 own scales, next row, two rows, several rows, neighboring rows, neighbouring rows, rows together, row and each/every column, row and column": "A row has a scale, and its 704 weights share it.",
            "says: shared by/between/across/in all/the layers, layers share, \"all layers\", whole matrix, entire matrix, full matrix, complete matrix, per tensor, per-tensor, one scale for the matrix, each/every matrix has one, single scale for the matrix, for all rows, per layer, whole layer": "Each row has a scale of its own.",
        },
        loose=True,
    )},
    must_award={"axis": [
        "The scale is shared along a row: in a matrix with 704 columns one scale serves 704 weights.",
        "Each row has its own scale, so the groups hold 704 weights.",
        "One scale is shared by all 704 weights of a row.",
        "A scale is shared along the last axis, in groups of 704.",
        "per row, so 704 numbers use the same scale",
        "The scale is shared within a row, hence its 704 columns have a common scale.",
    ]},
    must_deny={"axis": [
        "Each row has its own scale, in groups of 32.",
        "The scale is shared by the whole matrix of 99 rows.",
        "Each column has its own scale, 256 weights share it.",
        "A scale is shared along the row by groups of 128.",
        "There is one scale for the whole matrix with its 704 columns.",
        "The scale is shared down a column, and all of the 704 columns have one.",
        "One scale per row with 704 weights, since each token has its own scale.",
    ]},
    example_facts={"down_proj": (256, 704), "gate_proj": (704, 256), "q_proj": (256, 256), "k_proj": (64, 256), "lm_head": (1024, 256)},
)
check.slot(lambda: grade(check.explanation("what-shrank"), RUBRIC, RUBRIC.example_facts)["axis"], "along which axis a scale is shared, with the group's size")
### END HIDDEN TESTS
check.score()

# %% check="shrank-trade-off" of="what-shrank" points=1
from inferlab.lab import Check

check = Check("shrank-trade-off", points=1)
with check.part("`trade-off:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("what-shrank").get("trade-off"), "`trade-off:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import Rubric, Slot, Trend, grade

RUBRIC = Rubric(
    question="What you gain and what you pay when you make the groups smaller.",
    lab="A smaller group has a smaller largest number, so its steps are finer; and it pays for more scales. A smaller group buys less, and costs bits too.",
    terms={
        "groups": "part of the saving, part of the savings, part of the memory saving, part of the memory savings, part of the saved memory, "
                  "some of the saving, some of the savings, some of the memory saving, some of the memory savings, some of the saved memory, "  # no saving of its own: `says` reads it
                  "group*, group size, size of the groups, groupsize, block*, groups are more small, group is more small, more small groups, more small group",
        "small": "small group*, tiny group*, little group*, groups of 32, groups of 128, groups of 8, groups of 64, every little group, every small group, each small group, each little group, per group, each group, every group",
        "scales": "more groups, fewer groups, less groups, many groups, number of groups, scale*, number of scales, scale storage, scales must be saved, scales have to be saved, scales need to be saved, scales to save, scale must be saved, scale for every group, scale for each group, scale for every little group, scale for every small group, scale for each small group, scale per group, scales per group, scale of its own, scale for every one, scale factors, bits per weight, bits a weight, bits/weight, extra bits, overhead bits, overhead, bits for scales, bits, bytes of the scales, bytes for scales, metadata, size, file, file size, model size, model, bytes",
        "step": "step*, step size, quantization step, rounding step, grid, spacing, resolution",
    },
    slots={"trade-off": Slot(
        learned="lab17 trade-off de93a5243cf4483f",
        deny={
            "says: cache takes/needs/uses/gets/becomes/grows/grow/has/holds .. more/bigger/larger, cache grows, bigger/larger cache, cache is/gets/becomes bigger/larger, "
            "memory of the cache, cache memory, more .. memory for the cache, cache has to hold/keep/store": "The scales belong to the weights: the cache is another ledger.",
            "says: more bits .. each/per/every/a/the code/codes, codes have/get/use/need more bits, codes get longer": "The codes keep their bits; what is added are scales.",
        },
        trend=Trend("groups", gain={"quality": "down", "step": "up"}, cost={"memory": "down", "scales": "down", "compute": "down"}, also={"time": "down"}, asked="down",
                    says={
                        "quality up": "finer step/steps/grid, finer quantization step, steps are finer, step is finer, smaller step/steps, closer to the original/real/true/float, nearer to original, nearer to the original, less rounding, outlier .. only .. few, outlier .. fewer neighbours/neighbors/weights, outlier is confined, outliers are confined, isolate/isolates/confine/confines/contain/contains .. outlier/outliers, "
                                      "damages/hurts/spoils/ruins/affects/messes up only few, damages/hurts/spoils/ruins/affects/messes only its, only damages/hurts/spoils/ruins/affects/messes its/few/the, stays in its group, only its own group, hurts fewer, can't wreck, cannot wreck/ruin/spoil, can't ruin/spoil, only .. neighbours/neighbors, confined to a smaller, confined to its, precision better, better precision, win precision, gain precision, follows the biggest number of small, own largest number, smaller largest, smaller maximum, local maximum",
                        "memory up": "part/some of the saving/savings, part/some of the memory saving/savings, part/some of the saved memory",
                        "quality down": "coarser step/steps/grid, steps are coarser, steps get coarser, bigger step/steps, larger step/steps",
                        "scales up": "scale for every group, scale for each group, scale per group, scale for every one, scale of its own, own scale, scale for each/every, for every/each group .. scale, each/every group .. own scale, extra scales, additional scales, many scales, more of them, four times as many, store many scales, store/keep/need/needs/save a scale, scale for every little group, scale for every small group, scale for each small group, one scale is needed, scale needed for, more scales, have to store, must store, must be saved, must be stored",
                    }),
    )},
    must_award={"trade-off": [
        "Smaller groups make the error smaller, but they need more memory because more scales are stored.",
        "With smaller groups the quality goes up, but the memory goes up as well.",
        "Smaller groups are more accurate, but they need more scales.",
        "The error goes down, but more memory is needed for the scales.",
        "an outlier only hurts few neighbours, but you have to store more scales",
    ]},
    must_deny={"trade-off": [
        "Smaller groups make the error larger and need less memory.",
        "Smaller groups need less memory and lower the error.",
        "With smaller groups the quality goes down, and the memory goes down as well.",
        "Larger groups make the error smaller, but need more memory.",
        "With smaller groups there are fewer scales, but the steps get coarser.",
        "Smaller groups make decode faster, but the accuracy gets worse.",
        "Smaller groups lower the error, but the cache takes more memory.",
        "With smaller groups the error falls because there are more bits for each code, and more memory is needed.",
    ]},
)
check.slot(lambda: grade(check.explanation("what-shrank"), RUBRIC, {})["trade-off"], "what smaller groups gain and cost")
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7 · Notice
#
# * **Two ledgers.** Weights and cache are quantized apart. Int8 weights leave the cache as it is; what decides how many requests fit is mostly the cache.
# * **A code is nothing without its scale.** Group scales confine an outlier to its group, and they cost bits: 4 bits in groups of 32 with 16-bit scales are 4.5.
# * **Four bits in an `int8` are eight bits.** Only packing saves the rest.
# * **An outlier need not be noise.** Clip a channel that the model uses, and the logits are off before a bit is saved. Its size can be moved to where it does no harm, at no price.
# * **Fewer bits are not always faster.** They save bytes. Where a step is bound by bytes (a large model, few sequences) that is time; where it is bound
#   by arithmetic or by launches it is not, and restoring the weights is extra work.
# * **Training gains no time from it**: thousands of tokens share each weight that is read, and the optimizer's state is larger than the weights. And an update
#   below half a step is rounded away, so with codes alone it may not converge.
#
# Say it out loud, as in an interview: what is stored, along which axis a scale is shared, what an outlier does, which ledger each method
# touches, and in which regime it saves time. The class in section 4 is that of transformers 5.17 to 5.24, the int8 format torchao 0.18's.

# %% [markdown]
# ## 8 · Check and hand in
#
# Run this cell last. It runs the visible checks again, says what is missing, and leaves one file to hand in.

# %% tags=["demo"]
from inferlab.lab import submit

submit()
