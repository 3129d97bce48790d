"""What the explanations of lab24-low-precision are held against:
a block fills the `### HIDDEN TESTS` line of its check."""

# %% fixture="words"
from inferlab.lab import Words

words = Words("in-few-bits", """
axis: which axes may have a scale of their own for each entry, and over which the sum runs
    who: the token axis = tokens / the output-channel axis = output channels, rows of the weights / the
        input-channel axis = input channels, columns of the weights
    may have scales of its own = may have scales of their own, may carry scales:
    is summed over = is the axis of the sum:
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
""")

# %% check="words"
### FIXTURE words

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
