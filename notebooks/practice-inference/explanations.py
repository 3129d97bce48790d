"""What the explanations of practice-inference are held against:
a block fills the `### HIDDEN TESTS` line of its check."""

# %% fixture="words"
from inferlab.lab import Words

words = Words("two-plans", """
speculation: what the draft does in a round, what the target does with it, and in how many passes
    who: the draft = draft model, small model, smaller model, drafter / the target = target model, large
        model, larger model, big model
    proposes = guesses, suggests, drafts: several tokens = a few tokens, tokens, some tokens, next tokens,
        the next few tokens
    checks = verifies, judges, scores: all proposals = the proposals, proposals, all tokens, the tokens,
        proposed tokens, all proposed tokens, all of them, them / the first proposal = first token
    keeps = accepts: the accepted proposals = accepted tokens, accepted ones / all proposals / proposals
        that are close enough = tokens that are close enough
    replaces = corrects: the first rejected proposal = first rejected token, first rejected one / all
        proposals
    writes: text that nobody checks = unchecked text, text without a check
    learns from the round = learns:
    more: in one pass = in a single pass, at once / in a pass for each proposal = one by one, in a pass for
        each token, in a pass of its own for each / in each round = in every round, in a round
trade-off: what tensor parallelism gains one user, and what it costs
    who: tensor parallelism = TP
    lowers = reduces, needs less: the latency of a token = latency, time of a token / the traffic =
        communication, messages, synchronization, exchanges / the bytes that a device reads = bytes of a
        device / the quality = quality of the text
    raises = increases, needs more, costs: the latency of a token / the traffic / the bytes that a device
        reads / the quality
    leaves alone = does not change, keeps: the latency of a token / the traffic / the bytes that a device
        reads / the quality
    lets each device read = makes each device read: its share of the weights = a share of the weights, its
        part of the weights / all the weights = the weights / layers of its own = whole layers, its own
        layers
    lets all devices work on = makes all devices work on: the same token = one token / different tokens =
        different users, a token each
    needs = takes: two sums in each layer = two all-reduces in each layer, two sums a layer, two all-reduces
        a layer / one sum for each token = one all-reduce for each token / a hand-over to the next device =
        hand-overs to the next device
stages: a number
gain: a quantity and its direction
    who: latency = time, time of a token / traffic = communication, transfer, messages, synchronization,
        all-reduces, sums / speed / quality / error
    up = goes up, rises, grows, increases:
    down = goes down, falls, shrinks, decreases:
cost: a quantity and its direction
    who: latency / traffic / speed / quality / error
    up:
    down:
""")

# %% check="two-plans-stages"
from inferlab.lab.explain import typed

check.slot(lambda: typed(check.explanation("two-plans"), "stages", 1, {
    "the next token waits for this one: while one stage works, the others have nothing to do.": 4,
    "one works, three wait.": 3,
}), "devices that work at the same moment")

# %% check="two-plans-gain-cost"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("two-plans"), "gain", """
wanted: what one user gains
    latency | down
    speed | up
false: That is what it costs.
    traffic | up
"""), "what one user gains")
check.slot(lambda: words.grade(check.explanation("two-plans"), "cost", """
wanted: what it costs
    traffic | up
false: That is what the user gains.
    latency | down
    speed | up
"""), "what it costs")

# %% check="two-plans-speculation"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("two-plans"), "speculation", """
wanted: what the draft does in a round
    the draft | proposes | several tokens | in each round / in a pass for each proposal
wanted: what the target does with it, and in how many passes
    the target | checks | all proposals | +in one pass / in each round
    the target | not: checks | all proposals | +in a pass for each proposal / in each round
true
    the target | writes | text that nobody checks | in one pass / in each round
    the target | keeps | the accepted proposals | in one pass / in each round
    the target | replaces | the first rejected proposal | in one pass / in each round
    the target | checks | the first proposal | in one pass / in each round
false: All proposals are checked in one pass: that is what is saved.
    the target | * | * | in a pass for each proposal
false: The draft only proposes. Every token that stays has passed the target's rule.
    the draft | writes | *
false: The draft proposes and the target checks, not the other way round.
    the draft | checks / keeps / replaces | *
    the target | proposes | *
false: The rule keeps the target's distribution: no quality is lost.
    the target | keeps | proposals that are close enough
false: A rejected proposal is not kept, and what was accepted before it stays.
    the target | keeps / replaces | all proposals
false: Nothing is learned in a round: no weight changes.
    * | learns from the round
"""), "what draft and target do in a round")

# %% check="two-plans-trade-off"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("two-plans"), "trade-off", """
wanted: what one user gains
    tensor parallelism | lowers | the latency of a token
wanted: what it costs
    tensor parallelism | raises | the traffic
    tensor parallelism | needs | two sums in each layer
true
    tensor parallelism | lowers | the bytes that a device reads
    tensor parallelism | leaves alone | the quality
    tensor parallelism | lets each device read | its share of the weights
    tensor parallelism | lets all devices work on | the same token
false: All devices work on the same token at the same time: it comes sooner.
    tensor parallelism | raises / leaves alone | the latency of a token
false: Two sums in each layer, for every token.
    tensor parallelism | lowers / leaves alone | the traffic
    tensor parallelism | needs | one sum for each token
false: A device holds and reads its share of the weights and of the heads, and no more.
    tensor parallelism | raises / leaves alone | the bytes that a device reads
    tensor parallelism | lets each device read | all the weights
false: The sums put the parts together: the result is the same.
    tensor parallelism | lowers / raises | the quality
false: Every device works on every layer, for the same user, and all of them must agree twice in each.
    tensor parallelism | lets each device read | layers of its own
    tensor parallelism | lets all devices work on | different tokens
    tensor parallelism | needs | a hand-over to the next device
"""), "what one user gains, and what it costs")
