"""What the explanations of lab19-slow-decode are held against:
a block fills the `### HIDDEN TESTS` line of its check."""

# %% fixture="words"
from inferlab.lab import Words

words = Words("slow-decode", """
state: what a decode step reads once however many sequences it has, and what it reads for each sequence
    who: the weights = weights of the model, parameters, the model, all weights, all parameters / the KV
        cache = cache, caches, KV caches, keys and values / the whole prompts = whole prompt, prompts,
        prompt
    are read = is read, are loaded, is loaded: once for all sequences = once for the batch, once for the
        whole batch, once for the step, once a step, once per step, once for all, once for everybody / once
        for each sequence = for each sequence, once per sequence, per sequence, for every sequence, once for
        every sequence, once for each request / only in the first step
    are computed again = is computed again, are recomputed, is recomputed:
    belong to = belongs to: one sequence = its sequence, each sequence, a sequence / all sequences = the
        batch, the whole batch
    are not read = is not read, are left alone, is left alone:
    more: in each step = in every step, in a step, each step / only in part = in part, in parts
axis: which axis grows with four sequences instead of one, and how many bytes of weights a step reads
    who: the batch axis = batch, batch dimension, batch size, axis 0, first axis, number of sequences, rows,
        sequences / the token axis = axis 1, second axis / the weights of a step = weights, weight bytes,
        bytes of weights, weights read, weights that a step reads / the caches of a step = caches, KV
        caches, cache, KV cache / the calls of a step = calls in a step, calls per step / the layers =
        number of layers, layer
    go from # to # = goes from # to #, grow from # to #, grows from # to #:
    are # = is #, has length #:
    stay # = stays #, stay at #, stays at #, remain #, keep #:
    grow = grows, get larger, gets larger, get longer, gets longer:
    stay the same = stays the same, do not change, does not change, do not grow, does not grow:
    more: in each step
trade-off: what speculation gains, and what it costs
    who: speculation = speculative decoding
    lowers = reduces, needs fewer, needs less: the latency of a token = latency, time of a token / the
        passes of the target = passes, target passes, passes of the large model, readings of the weights,
        number of passes / the work = compute, arithmetic, FLOPs / the memory / the quality = quality of the
        answers, quality of the text
    raises = increases, needs more, costs: the latency of a token / the passes of the target / the work /
        the memory / the quality
    leaves alone = does not change, keeps: the latency of a token / the passes of the target / the work /
        the memory / the quality
    lets the draft = makes the draft: propose tokens = propose several tokens, guess tokens / check tokens =
        verify tokens, check several tokens
    lets the target = makes the target: propose tokens / check several tokens in one pass = check tokens in
        one pass, verify several tokens in one pass / skip layers
    wastes = throws away, discards: rejected tokens = the rejected tokens, the work on rejected tokens, work
        on rejected tokens, rejected drafts
first: a name
""")

# %% check="slow-first"
from inferlab.lab.explain import named

check.slot(lambda: named(check.explanation("slow-decode"), "first", {
    "batching": "batch batches batching continuous",
    "cache": "cache caches caching paged paging attention kv",
    "precision": "precision quantization quantizing int8 8 bit",
    "speculation": "speculation speculative draft decoding",
    "launches": "launch launches compile compiling compilation graph graphs cuda",
    "compute": "faster bigger more gpu gpus",
    "": "a first",
}, {
    "batching": "",
    "speculation": "speculation first: it is the last of the default order, and here seven requests wait for "
                   "a batch",
    "compute": "100% utilization does not mean compute-bound",
} | dict.fromkeys(("cache", "precision", "launches"), "something else has more impact here")),
    "what comes first")

# %% check="slow-state"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("slow-decode"), "state", """
wanted: what a step reads once however many sequences it has
    the weights | are read | once for all sequences | in each step
    the weights | not: are read | once for each sequence | in each step
wanted: what it reads for each sequence
    the KV cache | are read | once for each sequence | in each step
    the KV cache | not: are read | once for all sequences | in each step
true
    the weights | belong to | all sequences | in each step
    the KV cache | belong to | one sequence | in each step
    the whole prompts | are not read | | in each step
    the whole prompts | belong to | one sequence | in each step
false: A step needs all the weights.
    the weights | * | * | only in part
false: Both are read in every step, and nothing in it is computed again.
    the weights / the KV cache | are read | only in the first step
    the weights / the KV cache | are not read / are computed again
false: The weights are read once a step, for all sequences together.
    the weights | *
false: A sequence's cache is its own; the weights are what the batch shares.
    the KV cache | *
false: Of the prompt only keys and values are read, from the cache.
    the whole prompts | *
"""), "what is read once, and what for each sequence")

# %% check="slow-axis"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("slow-decode"), "axis", """
wanted: which axis grows
    the batch axis | go from 1 to 4 / go from (1, 1) to (4, 1) / are 4 / are (4, 1) / grow | | in each step
wanted: what becomes of the bytes of weights that a step reads
    the weights of a step | stay {weights} / stay 23.6 / stay the same | | in each step
    the weights of a step | are {weights} / are 23.6 | | in each step
true
    the token axis | stay 1 / are 1 / stay the same | | in each step
    the caches of a step | grow | | in each step
    the calls of a step | stay 1 / are 1 / stay the same | | in each step
    the layers | stay 8 / are 8 / stay the same | | in each step
false: Four sequences are four rows of the batch instead of one.
    the batch axis | *
false: One token of each sequence goes in: it is the batch that grows.
    the token axis | *
false: A step reads the same weights, once, however many sequences there are.
    the weights of a step | *
false: Each sequence brings a cache of its own; what stays are the weights.
    the caches of a step | stay the same / stay #
false: All four sequences go through in one call.
    the calls of a step | *
false: The number of layers has nothing to do with the batch.
    the layers | *
""", {"weights": 23_610_368}), "which axis grows and what stays")

# %% check="slow-trade-off"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("slow-decode"), "trade-off", """
wanted: what speculation gains
    speculation | lowers | the latency of a token / the passes of the target
    speculation | lets the target | check several tokens in one pass
wanted: what it costs
    speculation | raises | the work / the memory
    speculation | wastes | rejected tokens
true
    speculation | lets the draft | propose tokens
    speculation | leaves alone | the quality
false: What the target would not have said is rejected: the output stays the target's.
    speculation | lowers / raises | the quality
false: The draft has to run, and what is rejected was work for nothing.
    speculation | lowers / leaves alone | the work / the memory
false: A pass checks several tokens for one reading of the weights: fewer passes, less time.
    speculation | raises / leaves alone | the latency of a token / the passes of the target
false: The draft proposes and the target checks, not the other way round.
    speculation | lets the draft | check tokens
    speculation | lets the target | propose tokens
false: The whole target checks: all of its layers run.
    speculation | lets the target | skip layers
"""), "what speculation gains and costs")
