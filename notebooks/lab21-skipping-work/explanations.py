"""What the explanations of lab21-skipping-work are held against:
a block fills the `### HIDDEN TESTS` line of its check."""

# %% fixture="words"
from inferlab.lab import Words

words = Words("skipping-in-words", """
decision: what is compared with what in each step, and whether one threshold does the same to every prompt
    who: the first block's residual = change of first block, residual / the picture = latents / the step's
        number = number of step / the same threshold = one threshold, threshold
    is compared with: the residual of the last whole step = last whole step, kept residual / the residual
        of the step before = step before, last step's residual
    skips: the same steps for every prompt = same steps for all prompts / other steps for another prompt =
        other steps for other prompts, different steps for different prompts
    costs: the same error for every prompt = same error for all prompts / another error for another prompt =
        other errors for other prompts
places: whether the last step is cheap to skip, next to one in the middle
    who: a skipped early step = skipped first half, early step / a skipped step in the middle = skipped
        middle step, middle step / a skipped last step = skipped late step, last step
    costs: least / most / nothing / more than one in the middle = more than middle step / less than one
        in the middle = less than middle step
speedups: what changes the picture, what becomes of the text's work, and what compiling computes
    who: the first-block cache = cache / drawing fewer steps = fewer steps, taking fewer steps / encoding the
        text beforehand = text beforehand / compiling = compiled blocks, compiling blocks
    changes: the picture / nothing in the picture
    saves = leaves out: operations
    moves: work = work elsewhere, operations
    computes: the same operations / fewer operations / more operations
""")

# %% check="words-decision"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("skipping-in-words"), "decision", """
wanted: what is compared with what
    the first block's residual | is compared with | the residual of the last whole step
wanted: one threshold and several prompts
    the same threshold | skips | other steps for another prompt
    the same threshold | costs | another error for another prompt
false: With the step before, a slow change would never be seen: the kept residual is of the last whole step.
    * | is compared with | the residual of the step before
false: What the first block adds is compared, not the picture, and not the step's number.
    the picture / the step's number | is compared with | *
false: The same threshold skipped other steps for the other prompt, and cost it another error.
    the same threshold | skips | the same steps for every prompt
    the same threshold | costs | the same error for every prompt
"""), "the decision")

# %% check="words-places"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("skipping-in-words"), "places", """
wanted: what the last step costs, next to one in the middle
    a skipped last step | costs | more than one in the middle / most
true
    a skipped step in the middle | costs | least
    a skipped early step | costs | more than one in the middle / most
false: Late steps do matter: an error in the last step is never worked off.
    a skipped last step | costs | least / nothing / less than one in the middle
false: In the middle a skipped step costs least: the steps before it laid the picture out, and others follow.
    a skipped step in the middle | costs | most / nothing
false: Early steps lay the picture out, and all later steps build on them: look at step 2 of the curve.
    a skipped early step | costs | least / nothing / less than one in the middle
"""), "where a skipped step costs what")

# %% check="words-speedups"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("skipping-in-words"), "speedups", """
wanted: which changes the picture
    the first-block cache / drawing fewer steps | changes | the picture
wanted: what encoding the text beforehand does with its work
    encoding the text beforehand | moves | work
    encoding the text beforehand | computes | the same operations
wanted: what compiling computes
    compiling | computes | the same operations
true
    the first-block cache / drawing fewer steps | saves | operations
    the first-block cache / drawing fewer steps | computes | fewer operations
    encoding the text beforehand / compiling | changes | nothing in the picture
false: A cache is not free: what it adds is an old answer.
    the first-block cache | changes | nothing in the picture
    the first-block cache | computes | the same operations / more operations
false: Fewer steps leave whole steps out, and another picture comes of it.
    drawing fewer steps | changes | nothing in the picture
    drawing fewer steps | computes | the same operations / more operations
false: Compiling does not change the mathematics: the operations are the same.
    compiling | changes | the picture
    compiling | saves | operations
    compiling | computes | fewer operations / more operations
false: The text is encoded all the same, elsewhere.
    encoding the text beforehand | saves | operations
    encoding the text beforehand | computes | fewer operations / more operations
    encoding the text beforehand | changes | the picture
"""), "the speed-ups")
