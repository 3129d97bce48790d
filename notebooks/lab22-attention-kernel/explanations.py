"""What the explanations of lab22-attention-kernel are held against:
a block fills the `### HIDDEN TESTS` line of its check."""

# %% fixture="words"
from inferlab.lab import Words

words = Words("one-pass-in-words", """
state: what is rescaled when the maximum grows, and when the maximum is known
    who: the running maximum = maximum, largest score, running max, max, final maximum / the running sum =
        sum, denominator, normalizer, sum of weights, sum of exponentials, both running sum, both sum, both
        denominator / the output so far = output, accumulator, numerator, running output, unfinished output,
        both output so far, both output, both accumulator / the scores of earlier blocks = earlier scores,
        old scores, scores of old blocks, earlier blocks' scores
    is rescaled = is multiplied by a factor, gets rescaled, gets multiplied by a factor, is multiplied by the
        same factor, is scaled, is corrected:
    is computed again = is recomputed, gets recomputed, gets computed again:
    is known = is final, is only known, is only final, is final only, becomes known, becomes final,
        gets known, gets final:
    more: when the maximum grows = when a larger score comes, whenever maximum grows, whenever a larger score
        comes, as soon as a larger score comes, as soon as maximum grows, if a larger score comes, if maximum
        grows, each time maximum grows, every time maximum grows, each time a larger score comes, when a
        larger maximum comes, when a block brings a larger score, when a new maximum comes / before the
        first block = beforehand, in advance, at the start, at the beginning, from the start / after the
        last block = at the end, only at the end, only after last block, after all blocks, only after all
        blocks, once all keys are read, only once all keys are read, once all blocks are read, when all
        keys are read
price: next to the naive kernel, without a mask: how much one pass multiplies, and how its result differs
    who: one pass = the one-pass kernel, one-pass attention / the result = output, answer
    moves = reads and writes: fewer bytes = less bytes, less, fewer bytes than naive kernel, less bytes than
        naive kernel, less than naive kernel / as many bytes = the same bytes, as many bytes as naive kernel,
        the same number of bytes
    multiplies = computes, does: as much = as often, as many products, as often as naive kernel, as often as
        naive, as much as naive kernel, as much as naive, as many products as naive kernel, as many products
        as naive, the same number of products, just as often, just as much, equally often / less = less
        often, fewer products, less than naive kernel, less often than naive kernel, fewer products than
        naive kernel
    adds: factors for rescaling = some factors for rescaling, rescaling, a few factors for rescaling,
        rescaling factors
    gives = returns: the same result but for rounding = the same but for rounding, the same result except
        for rounding, the same except for rounding, the same result up to rounding, the same up to rounding
        / an approximation = an approximate result
    is: the same result but for rounding / an approximation = approximate
mask: what a causal mask saves in each kernel
    who: the causal mask = mask
    saves = skips, leaves out: whole blocks = blocks, blocks above diagonal, whole blocks above diagonal,
        blocks of keys, whole blocks of keys / nothing = no blocks, nothing at all, no bytes, nothing since
        all scores are written, nothing because all scores are written, nothing since whole table is written,
        nothing because whole table is written, nothing since all 200 x 200 scores are written, nothing
        because all 200 x 200 scores are written, nothing because it writes whole table
    more: in the one-pass kernel = in one pass, with one pass, for the one-pass kernel / in the naive kernel
        = in the naive one, with the naive kernel, for the naive kernel, in the naive kernel which writes the
        whole table, in the naive kernel which writes the whole table anyway, in the naive kernel which
        writes all scores, in the naive kernel because it writes the whole table
""")

# %% check="words-state"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("one-pass-in-words"), "state", """
wanted: whether the sum is rescaled
    the running sum | is rescaled | | +when the maximum grows
wanted: whether the output is rescaled
    the output so far | is rescaled | | +when the maximum grows
wanted: when the maximum is known
    the running maximum | is known | | +after the last block
    the running maximum | not: is known | | +before the first block
true
    the running sum / the output so far | is rescaled
    the running sum / the output so far | is known | | +after the last block
    the scores of earlier blocks | not: is computed again | | when the maximum grows
    the scores of earlier blocks | not: is rescaled | | when the maximum grows
false: The maximum need not be known first: each block may bring a larger one.
    the running maximum | is known | | before the first block
false: Earlier scores are gone: nobody kept them, and nobody needs them again.
    the scores of earlier blocks | is rescaled / is computed again | | when the maximum grows
    the scores of earlier blocks | is computed again
    the scores of earlier blocks | is rescaled
false: They are rescaled, not computed again: that would need the earlier scores.
    the running sum / the output so far | is computed again
"""), "the state")

# %% check="words-price"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("one-pass-in-words"), "price", """
wanted: what it multiplies
    one pass | multiplies | as much
    one pass | not: multiplies | less
wanted: how its result differs
    one pass / the result | gives / is | the same result but for rounding
true
    one pass | adds | factors for rescaling
    one pass | moves | fewer bytes
false: It does not compute less: without a mask every score is computed and used.
    one pass | multiplies | less
false: It does not approximate: the factors are exact but for rounding.
    one pass / the result | gives / is | an approximation
false: Scores and weights are not written and read again.
    one pass | moves | as many bytes
"""), "the price")

# %% check="words-mask"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("one-pass-in-words"), "mask", """
wanted: what it saves in one pass
    the causal mask | saves | whole blocks | +in the one-pass kernel
wanted: what it saves in the naive kernel
    the causal mask | saves | nothing | +in the naive kernel
true
    the causal mask | saves | whole blocks
false: The mask saves whole blocks where a kernel reads block by block: count the fetches.
    the causal mask | saves | nothing | in the one-pass kernel
    the causal mask | saves | nothing
false: The naive kernel makes its whole table, and masks it afterwards.
    the causal mask | saves | whole blocks | in the naive kernel
"""), "the mask")
