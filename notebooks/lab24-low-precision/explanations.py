"""What the explanations of lab24-low-precision are held against:
a block fills the `### HIDDEN TESTS` line of its check."""

# %% fixture="words"
from inferlab.lab import Words

words = Words("in-few-bits", """
state: when the two sides of a W8A8 product become codes
    who: the weights = weight / the activations = activation, inputs
    become codes = are quantized, become int8 codes: before the run = in advance, once before the run /
        in each call = at every call, while the model runs
axis: which axes may have a scale of their own for each entry, and over which the sum runs
    who: the token axis = tokens / the output-channel axis = output channels, rows of the weights / the
        input-channel axis = input channels, columns of the weights
    may have scales of its own = may have scales of their own, may carry scales:
    is summed over = is the axis of the sum:
smoothing: what smoothing does to the activations, to the weights and to the product
    who: smoothing = the factor
    divides = makes smaller: the activations / the weights
    multiplies = makes larger: the activations / the weights
    leaves as it was = does not change: the product = the result
    changes: the product
calibration: what calibration measures, and what it sets
    who: calibration = calibrating
    measures = notes, observes: the reach of the activations = the range of the activations, how far the
        activations reach / the loss = a loss
    sets = fixes: scales / the weights
    trains: the weights
grid: how the step between two codes behaves in FP8 and in int8
    who: the step of FP8 = FP8's step, the steps of FP8 / the step of int8 = int8's step, the steps of int8
    grows with the value = becomes larger with the value:
    is the same everywhere = stays the same, is constant:
speed: what W8A8 and weight-only int8 do to linear products, in decode with one sequence and in a long prefill
    who: W8A8 / weight-only int8 = int8 weights alone
    speeds up = makes faster: decode / prefill
    only makes smaller: decode / prefill
sum: a dtype
cache: bytes of the cache
""")

# %% check="words-scales"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("in-few-bits"), "state", """
wanted: when the weights become codes
    the weights | become codes | before the run
wanted: when the activations become codes
    the activations | become codes | in each call
false: The activations are only known when the model runs: a static scale is known before, the codes are not.
    the activations | become codes | before the run
false: Weights do not change: their codes are made once.
    the weights | become codes | in each call
"""), "the codes")
check.slot(lambda: words.grade(check.explanation("in-few-bits"), "axis", """
wanted: scales of the activations
    the token axis | may have scales of its own
wanted: scales of the weights
    the output-channel axis | may have scales of its own
wanted: the axis of the sum
    the input-channel axis | is summed over
true
    the input-channel axis | not: may have scales of its own
false: A scale that follows the input channel would have to stay inside the sum.
    the input-channel axis | may have scales of its own
false: Each token and each output channel has a sum of its own.
    the token axis / the output-channel axis | is summed over
"""), "the axes")
check.slot(lambda: words.grade(check.explanation("in-few-bits"), "smoothing", """
wanted: the activations
    smoothing | divides | the activations
wanted: the weights
    smoothing | multiplies | the weights
wanted: the product
    smoothing | leaves as it was | the product
    smoothing | not: changes | the product
false: The activations are what is hard: their size is moved into the weights.
    smoothing | divides | the weights
    smoothing | multiplies | the activations
false: What one side is divided by, the other is multiplied by.
    smoothing | changes | the product
"""), "smoothing")

# %% check="words-gain"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("in-few-bits"), "calibration", """
wanted: what it measures
    calibration | measures | the reach of the activations
wanted: what it sets
    calibration | sets | scales
true
    calibration | not: trains | the weights
    calibration | not: measures | the loss
false: Calibration is no training: no weight changes, and there is no loss.
    calibration | trains | the weights
    calibration | sets | the weights
    calibration | measures | the loss
"""), "calibration")
check.slot(lambda: words.grade(check.explanation("in-few-bits"), "grid", """
wanted: the step of FP8
    the step of FP8 | grows with the value
wanted: the step of int8
    the step of int8 | is the same everywhere
false: FP8 is not int8: part of its bits is an exponent.
    the step of FP8 | is the same everywhere
false: The codes of int8 are whole numbers times one scale.
    the step of int8 | grows with the value
"""), "the grids")
check.slot(lambda: words.grade(check.explanation("in-few-bits"), "speed", """
wanted: W8A8 in prefill
    W8A8 | speeds up | prefill
wanted: weight-only int8 in decode
    weight-only int8 | speeds up | decode
wanted: weight-only int8 in prefill
    weight-only int8 | only makes smaller | prefill
    weight-only int8 | not: speeds up | prefill
true
    W8A8 | speeds up | decode
false: Fewer bits are not always faster: a long prefill waits for arithmetic, which stays as it was.
    weight-only int8 | speeds up | prefill
false: Decode waits for bytes, and half of them are read in half the time.
    weight-only int8 / W8A8 | only makes smaller | decode
false: With 8 bits on both sides the 8-bit unit does the arithmetic.
    W8A8 | only makes smaller | prefill
"""), "what gains")

# %% fixture="stored"
@reference
def stored():
    """Bytes of an FP8 cache of 200 tokens and one more, from a run of the model."""
    import torch
    from inferlab.models import cache_argument, load_language_model
    from transformers import DynamicCache

    model, _ = load_language_model("bundled", "cpu", dtype=torch.float32)
    cache = DynamicCache(config=model.config)
    with torch.no_grad():
        model(torch.full((1, 201), 7), **cache_argument(cache))
    both = [one for layer in cache.layers for one in (layer.keys, layer.values)]
    return sum(one.to(torch.float8_e4m3fn).nbytes for one in both)

# %% check="words-entries"
from inferlab.lab.explain import typed

### FIXTURE stored

check.slot(lambda: typed(check.explanation("in-few-bits"), "sum", "int32"), "the dtype of the sum")
check.slot(lambda: typed(check.explanation("in-few-bits"), "cache", stored(), unit="the cache"),
           "the bytes of the cache")
