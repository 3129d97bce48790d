"""What the explanations of lab17-quantization are held against:
a block fills the `### HIDDEN TESTS` line of its check."""

# %% fixture="words"
from inferlab.lab import Words

words = Words("what-shrank", """
state: what int8 quantization replaces, by what, and what becomes of the KV cache
    who: the weights of linear layers = weights, linear weights, weight matrices, matrices, linear layers,
        linear matrices / the embedding and norms = embedding, norms, embedding table, norms and
        embedding, embed_tokens / the KV cache = cache, keys and values / the activations = hidden states
    become = turn into, are replaced by, is replaced by, are stored as, is stored as, change to: int8 codes
        with scales = int8 codes and scales, codes and scales, codes with scales, int8 codes, int8 codes
        with a scale for each row, int8 codes with one scale for each row, int8 codes and a scale for each
        row, int8 codes and one scale for each row, int8 / int8 codes without scales = int8 codes alone,
        int8 codes only / int4 codes with scales = int4 codes, int4 codes and scales, int4 / float16 values
        = float16
    stay float32 = stay in float32, stay float32 values, remain float32, remain in float32, keep float32,
        stay as they are, stays as it is, stay the same, are left alone, is left alone, do not change, does
        not change, are not quantized, is not quantized, are unchanged, is unchanged:
    shrink = get smaller, become smaller, are smaller, is smaller:
    are removed = is removed, are pruned, are taken away:
axis: along which axis a scale is shared in the int8 model, and by how many weights where a row has 704
    who: a scale = one scale, each scale, every scale / a row = one row, each row, every row, last axis,
        axis 1, input axis / a column = one column, each column, every column, first axis, axis 0, output
        axis / the whole matrix = matrix, each matrix, entire matrix / a weight = one weight, each weight,
        every weight / a token = one token, each token, every token
    has a scale of its own = has own scale, has one scale, gets own scale:
    is shared along = is shared within, is shared in, is shared by, is shared inside: a row = all of a row,
        whole row / a column / the whole matrix
    is shared by # weights = serves # weights, is for # weights, is shared by # numbers, is shared by #
        codes, is shared by all # weights, is shared in groups of #:
    holds # weights = has # weights, holds # numbers, has # numbers, is # weights long:
    more: by # weights = by all # weights, by groups of #, in groups of #, for # weights
trade-off: what smaller groups gain, and what they cost
    who: smaller groups = small groups, smaller group, smaller group size
    raise = increase, need more, take more: the error = rounding error, quantization error / the size of a
        step = step size, rounding step / the number of scales = scales / the memory of the
        weights = memory, weight bytes, bits per weight, bits of a weight / the bits of a code = bits of the
        codes, bits of each code / the memory of the cache = cache, KV cache
    lower = reduce, decrease, need less, need fewer: the error / the size of a step / the number of scales /
        the memory of the weights / the bits of a code / the memory of the cache
    leave alone = do not change, keep: the error / the size of a step / the number of scales / the memory of
        the weights / the bits of a code / the memory of the cache
    confine = isolate, contain: an outlier = outliers
cache: bytes
""")

# %% check="shrank-cache"
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


check.slot(lambda: typed(check.explanation("what-shrank"), "cache", cache_of_the_run(), {
    "the weights shrank to a fourth; the cache holds keys and values, in float32 as before":
        cache_of_the_run() // 4,
    "halved? The cache was not quantized at all": cache_of_the_run() // 2,
}, tolerance=0.03), "bytes of the cache after the int8 run")

# %% check="shrank-state"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("what-shrank"), "state", """
wanted: what is replaced, and by what
    the weights of linear layers | become | int8 codes with scales
wanted: what becomes of the KV cache
    the KV cache | stay float32
    the KV cache | not: shrink
    the KV cache | not: become | int8 codes with scales
true
    the weights of linear layers | shrink
    the activations / the embedding and norms | stay float32
false: The cache was not quantized: keys and values are float32 as before. It decides how many requests fit.
    the KV cache | *
false: Between the layers everything is float32 as before.
    the activations | *
false: The embedding is looked up, not multiplied with: it stays float32, and so do the norms.
    the embedding and norms | *
false: No weight is taken away: each becomes a code.
    * | are removed
false: A code is nothing without its scale: both are stored.
    * | become | int8 codes without scales
false: The codes are int8, one byte each, and each row has a scale.
    * | become | int4 codes with scales / float16 values
false: The weights of the linear layers are what was replaced.
    the weights of linear layers | stay float32
"""), "what is replaced, by what, and what is not")

# %% check="shrank-axis"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("what-shrank"), "axis", """
wanted: along which axis a scale is shared
    a scale | is shared along | a row | by 704 weights
    a row | has a scale of its own | | by 704 weights
wanted: how many weights share a scale where a row has 704
    a scale | is shared by 704 weights
    a scale | is shared along | a row | +by 704 weights
    a row | has a scale of its own | | +by 704 weights
    a row | holds 704 weights
true
    a column | holds 256 weights
    the whole matrix | holds 180224 weights
false: Each row has a scale of its own: not each column, not each weight, and not the whole matrix.
    a column / a weight / the whole matrix | has a scale of its own
    a scale | is shared along | a column / the whole matrix
    a scale | is shared by 256 weights / is shared by 1 weights
false: A group is a whole row here: its 704 weights share one scale.
    a scale | is shared by # weights
    a scale / a row | is shared along / has a scale of its own | * | by # weights
    a row | holds # weights
false: The rows of a weight are its outputs; a scale knows nothing of tokens.
    a token | *
"""), "along which axis a scale is shared, with the group's size")

# %% check="shrank-trade-off"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("what-shrank"), "trade-off", """
wanted: what smaller groups gain
    smaller groups | lower | the error / the size of a step
    smaller groups | confine | an outlier
wanted: what they cost
    smaller groups | raise | the number of scales / the memory of the weights
true
    smaller groups | leave alone | the bits of a code / the memory of the cache
false: A smaller group has a smaller largest number, so its steps are finer.
    smaller groups | raise / leave alone | the error / the size of a step
false: Every group has a scale: smaller groups are more groups, and more scales take more memory.
    smaller groups | lower / leave alone | the number of scales / the memory of the weights
false: The codes keep their bits; what is added are scales.
    smaller groups | * | the bits of a code
false: The scales belong to the weights: the cache is another ledger.
    smaller groups | * | the memory of the cache
"""), "what smaller groups gain and cost")
