"""What the explanations of lab16-speculative-decoding are held against:
a block fills the `### HIDDEN TESTS` line of its check."""

# %% fixture="words"
from inferlab.lab import Words

words = Words("one-round", """
state: what the draft does, what the target does and in how many passes, and what becomes of what is rejected
    who: the draft = draft model, small model, drafter, assistant, helper / the target = target model, large
        model, big model, verifier / the cache = KV cache
    writes = proposes, drafts, generates, guesses, predicts, gives, samples: the next tokens = tokens, next
        few tokens, four tokens, next four tokens, candidates, four candidates, drafted tokens / the token
        after the accepted ones = replacement, one more token, bonus token, token in place of the first
        rejected one, token in place of the rejected one, one token of its own / the whole text = text, answer
    checks = verifies, judges, reads, tests, scores: the drafted tokens = tokens, all drafted tokens, four
        tokens, all four tokens, them, them all, four drafted tokens, four candidates, candidates, all
        tokens, tokens of the draft, next tokens / the target's tokens = tokens of the target
    accepts: the tokens before the first rejected one = tokens up to the first rejected one,
        beginning of them, tokens that it agrees with, good tokens, accepted tokens, matching tokens / every
        drafted token = all drafted tokens, all of them / the rejected tokens
    keeps: the tokens before the first rejected one / every drafted token / the rejected tokens
    drops = forgets, removes, throws away, discards, loses, crops: the first rejected token and all after it
        = rejected tokens, rejected part, rest, rejected positions, rejected ones, tokens from the first
        rejected one on / the first rejected token alone / the whole draft = all drafted tokens, all of them
    tries again = writes again, repeats, keeps for next round: the rejected tokens = rejected ones
    learns from = is trained on: the rejected tokens
    more: in one pass = in a single pass, in one target pass, in one go, at once, in one forward pass, in
        parallel / one after the other = one by one, one at a time, in four passes, in a pass for each, in
        passes of its own / from the cache = out of the cache
trade-off: what you gain, and what you pay, when more tokens are drafted in a round
    who: a longer draft = longer drafts, more drafted tokens, larger gamma, drafting more tokens, drafting
        more
    raises = increases: the tokens per target pass = tokens per pass, tokens of each pass, tokens in each
        pass, accepted tokens per pass, tokens per round / the number of target passes = target passes,
        passes of the target, calls of the target, weight reads / the rejected tokens = waste, wasted work,
        rejections, tokens that are rejected, tokens thrown away / the work of the draft = draft passes,
        passes of the draft, draft time, drafting, compute, draft work / the share of drafted tokens that is
        kept = acceptance, acceptance rate, share that is kept, chance of acceptance / the quality of the
        text = quality
    lowers = decreases, reduces, saves: the tokens per target pass / the number of target passes / the
        rejected tokens / the work of the draft / the share of drafted tokens that is kept / the quality of
        the text
    leaves alone = does not change, keeps: the number of target passes / the rejected tokens / the quality
        of the text = distribution of the text, distribution
shape: a shape
""")

# %% check="round-shape"
from inferlab.lab.explain import typed

check.slot(lambda: typed(check.explanation("one-round"), "shape", (1, 5, 1024), {
    "one position more than was drafted: the bonus token needs logits too": (1, 4, 1024),
    "the library keeps the logits of the positions that it verifies, not those of the whole prompt":
        [(1, n, 1024) for n in range(6, 200)],
}), "the logits of the first pass")

# %% check="round-state"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("one-round"), "state", """
wanted: what the draft does
    the draft | writes | the next tokens | one after the other
wanted: what the target does with it, and in how many passes
    the target | checks | the drafted tokens | +in one pass
    the target | not: checks | the drafted tokens | +one after the other
    the target | accepts / keeps | the tokens before the first rejected one | +in one pass
wanted: what becomes of what is rejected
    * | drops | the first rejected token and all after it | from the cache / in one pass
    the cache / the target | not: keeps | the rejected tokens
true
    the target | writes | the token after the accepted ones | in one pass
    the cache | keeps | the tokens before the first rejected one
false: The target checks every token that stays.
    * | accepts / keeps | every drafted token / the rejected tokens
false: The target reads all drafted tokens in one pass; the draft needs a pass for each.
    the target | * | * | one after the other
    the draft | writes | * | in one pass
false: What comes before the first rejected token stays, and the target adds one token: no round is empty.
    * | drops | the whole draft
false: Everything from the first rejected token on leaves the cache, and nobody learns from it.
    * | drops / tries again / learns from | the first rejected token alone / the rejected tokens
false: The draft proposes a few tokens; the target keeps a beginning of them, and adds a token of its own.
    the draft / the target | writes / checks / accepts / keeps | *
false: The cache only forgets: it is the draft that proposes, and the target that decides.
    the cache | writes / checks / accepts | *
"""), "what draft, target and cache do in a round")

# %% check="round-trade-off"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("one-round"), "trade-off", """
wanted: what you gain
    a longer draft | raises | the tokens per target pass
    a longer draft | lowers | the number of target passes
wanted: what you pay
    a longer draft | raises | the rejected tokens / the work of the draft
    a longer draft | lowers | the share of drafted tokens that is kept
true
    a longer draft | leaves alone | the quality of the text
false: The rule keeps the target's distribution whatever is drafted.
    a longer draft | * | the quality of the text
false: The later a drafted token stands, the less likely it counts.
    a longer draft | * | the rejected tokens / the share of drafted tokens that is kept
false: Each drafted token is a pass of the draft.
    a longer draft | lowers | the work of the draft
false: A round is one pass of the target, however many tokens it keeps: what does a longer draft do?
    a longer draft | * | the tokens per target pass / the number of target passes
"""), "what a longer draft gains and costs")
