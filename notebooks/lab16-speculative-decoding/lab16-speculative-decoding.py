# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Lab 16 · Speculative decoding
#
# A small model writes a few tokens ahead. The large model reads them all in a single pass and keeps those
# that it agrees with. In this lab you predict the passes of such a run, write the rule that accepts and
# rejects tokens, **test whether the distribution is still the large model's**, and find out when the method
# pays.
#
# **Time** 60 to 70 minutes · **Points** 17, of which 3 are practice · **Reading**
# [Speculative decoding](../../handbook/lab16-speculative-decoding.md) in the handbook, before you start

# %% tags=["parameters"]
LEARNER = ""  # your name or id, as your course knows you
MODEL = "bundled"  # "bundled" | "full" | "hub"
DEVICE = "auto"  # "auto" | "cpu" | "cuda"
SEED = 0

# %%
from inferlab.lab import start

lab = start("lab16-speculative-decoding", LEARNER, MODEL, DEVICE, SEED)

# %%
import torch
from inferlab.models import load_language_model

torch.set_grad_enabled(False)
target, tokenizer = load_language_model(MODEL, lab.device)
draft, _ = load_language_model(MODEL, lab.device, draft=True)
for name, model in (("target", target), ("draft", draft)):
    print(f"{name:6}  {model.num_parameters():>13,} parameters in {model.config.num_hidden_layers} layers")

# %% [markdown]
# The large model is called the *target*, the small one the *draft*. Both share one tokenizer, because a token
# must mean the same to both. `"full"` has the sizes of an 8-B and a 0.5-B model with random weights: their
# costs are real, but how often they agree means nothing. `"hub"` downloads a real pair. Grading always uses
# `"bundled"` on the CPU.

# %% [markdown]
# ## 1 · Goal and mental model
#
# | who | gets | gives | how often in a round |
# |---|---|---|---|
# | the **draft** | the text so far | $\gamma$ tokens, one after the other, each sampled from its distribution $q$ | $\gamma$ passes |
# | the **target** | all $\gamma$ tokens at once | its distribution $p$ at $\gamma + 1$ positions | **one** pass |
# | the **rule** | $p$, $q$, the tokens, random numbers | the first $n \le \gamma$ tokens, and one more | once; no model runs |
# | the **cache** | | drops $\gamma - n$ positions | one crop of each model's |
#
# A *pass* is one call of a model. In a decode step a large model waits for weights and a small one for kernel
# launches, not for arithmetic. So a pass over five positions takes hardly longer than a pass over one. (On a
# CPU, where arithmetic is slow, it takes longer: section 5 measures it.) A round that keeps $n$
# tokens gives $n + 1$ tokens for one pass of the target and $\gamma$ cheap passes of the draft. So a useless
# draft costs only time.

# %% [markdown]
# ![Five rows of boxes: the draft writes b, c, d, e; the target reads a to e at once; the rule keeps b and c,
# rejects d, never sees e; b, c, x are emitted; the cache keeps a, b,
# c.](../../handbook/figures/lab16-round.svg)
#
# *From the handbook.* One round with four drafted tokens. `a` is the last token of the round before, which
# the target has not read yet; `x` replaces the rejected `d`.

# %% [markdown]
# ## 2 · Predict
#
# ### Exercise 1 · What will the target be given?
#
# *difficulty 2 of 3 · 6 minutes · 3 points*
#
# **Before you run section 3**, say what a trace of an assisted run will show at the target. Suppose that each
# round keeps `accepted` tokens, or as many as it drafted if these are fewer, and that the text does not end
# early.
#
# | argument | meaning |
# |---|---|
# | `prompt` | tokens of the prompt, `int` |
# | `new` | `max_new_tokens`, `int` |
# | `gamma` | the most tokens that the draft writes in a round, `int` |
# | `accepted` | tokens that are kept in a round (at most as many as were drafted), 0 to `gamma` |
#
# `forecast` returns a list of `int`: how many tokens go into the target's first pass, into its second one,
# and so on to its last. You write two lines: one appends a round's width to `widths`, the other adds to
# `done` the tokens that the round emits.
#
# <details><summary>Hint 1: a nudge</summary>
# The draft writes before the target has seen the prompt: the first pass of the target reads the prompt and
# the drafted tokens together. In a later round, one token is already decided but not yet in the cache
# (which?).
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# The pass has <code>ahead + 1</code> tokens, the first pass <code>ahead + prompt</code>. The smaller of
# <code>accepted</code> and <code>ahead</code> is kept; <code>done</code> grows by that and 1.
# </details>

# %% exercise="forecast" provides=["forecast"] difficulty=2 minutes=6
def forecast(prompt, new, gamma, accepted):
    """Tokens that go into each pass of the target in an assisted run."""
    widths, done = [], 0  # done: tokens emitted so far
    while done < new:
        ahead = min(gamma, new - done - 1)  # tokens drafted in this round: the target adds one itself
        ### BEGIN SOLUTION
        widths.append(ahead + (prompt if done == 0 else 1))
        done += min(accepted, ahead) + 1
        ### END SOLUTION
    return widths

# %% [markdown]
# ## 3 · Trace
#
# Now a real run, sampled at temperature 1, with four drafted tokens in each round except near the end. The
# drafted tokens come from the draft's own `generate`, so these settings belong in the **draft's**
# generation config. The target's `generate` accepts and ignores them. The threshold of 0 keeps the draft from
# stopping at a token that it is not sure of.

# %%
draft.generation_config.num_assistant_tokens = 4
draft.generation_config.num_assistant_tokens_schedule = "constant"
draft.generation_config.assistant_confidence_threshold = 0.0

# %%
from inferlab.models.quiet import quiet
from inferlab.models.stories import documents
from inferlab.trace import trace


def opening(kind, words, number):
    """The first words of a text of the bundled models' language, as token ids of shape (1, P)."""
    text = documents(1, seed=number, kind=kind)[0].text()
    return tokenizer(" ".join(text.split(" ")[:words]), return_tensors="pt").input_ids.to(lab.device)


def speculate(ids, new):
    """A sampled, assisted run under a trace: (tokens, trace). `quiet` holds back the library's messages."""
    torch.manual_seed(SEED)
    with trace(target, draft) as run, quiet():
        tokens = target.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=new,
                                 do_sample=True, top_k=0, assistant_model=draft)
    return tokens, run

# %%
story = opening("story", 60, SEED + 4)
print(tokenizer.decode(story[0], skip_special_tokens=True))

# %%
tokens, run = speculate(story, 24)
print("...", tokenizer.decode(tokens[0, story.shape[1]:], skip_special_tokens=True))
run.table(level=1)

# %% [markdown]
# Look at three places of the table:
#
# * the inner **`generate`** is the draft. Its output is four tokens longer than its input (fewer near the
#   end);
# * the **target's first line** (`LlamaForCausalLM` for the bundled model): it reads the whole prompt *and*
#   the four drafted tokens, and returns logits for five positions. **A pass is no longer one token;**
# * **`cache.crop`** removes positions. After a target pass, the first crop is the target's; the draft's
#   follows before it writes again. The target computes no accepted token again. The draft never read its last
#   token, and loses as many positions: unless all were kept, it reads one token again.
#
# **Reconcile.** The first two passes do not depend on how many tokens a round keeps:

# %%
from inferlab.lab import when_written
from inferlab.lab.kits.speculation import rounds_of

first_two = [call.inputs["input_ids"].shape[1] for call in run.find(type(target).__name__)[:2]]
print("tokens into the first two passes: ", first_two, "with a prompt of", story.shape[1])
with when_written("forecast"):
    print("your forecast of these two:       ", forecast(story.shape[1], 24, 4, 0)[:2])
positions, removed = rounds_of(run)
print("rows of logits in each target pass:", positions)
print("positions removed after it:        ", removed)

# %% check="forecast" points=3
from inferlab.lab import Check, reference

check = Check("forecast", points=3)


def asked_forecast(*arguments):
    """The learner's forecast, once it has the form that the contract asks for."""
    got = check.plain(check.learner.forecast(*arguments))
    check.true(isinstance(got, list) and all(type(width) is int for width in got), "return a list of int")
    return got


with check.part("the target as its own draft: 11 new tokens, 4 drafted", weight=1):
    got = asked_forecast(20, 11, 4, 4)
    check.equal(len(got), 3, "each round that keeps all four tokens gives five")
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 4 · Read
#
# This is the installed rule. It runs only if tokens are *sampled*. In greedy decoding the library keeps a
# drafted token if it is the target's most likely one: the text is the plain greedy text, token for token.

# %% jupyter={"source_hidden": true}
from inferlab.lab import show_source
from transformers.generation.utils import _speculative_sampling

show_source(
    _speculative_sampling,
    {
        "new_candidate_input_ids = candidate_input_ids[:, -candidate_length:]":
            "The gamma drafted tokens. No model runs from here on.",
        "q_i = q[:, torch.arange(candidate_length), new_candidate_input_ids].squeeze(0, 1)":
            "The draft's probability of each drafted token: the same numbers that it sampled with.",
        "p_i = p[:, torch.arange(candidate_length), new_candidate_input_ids].squeeze(0, 1)":
            "The target's probability of the same tokens, all from one pass.",
        "probability_ratio = 1.0 - assistant_ensemble_weight":
            "Only if a weight w is set: w p + (1 - w) q takes p's place, so more is accepted and the output "
            "is no longer the target's.",
        "probability_ratio = p_i / q_i":
            "At least 1 if the target's probability is not below the draft's.",
        "is_accepted = r_i <= probability_ratio":
            "Accept with probability min(1, p/q). Exercise 2 writes < instead: <= also accepts 0 <= 0, a "
            "token that the target never writes.",
        "n_matches = ((~is_accepted).cumsum(dim=-1) < 1).sum()":
            "Tokens before the first rejection. What was drafted after it is thrown away unseen, "
            "accepted or not.",
        "p_prime = torch.clamp((p_n_plus_1 - q_n_plus_1), min=0)":
            "After a rejection the replacement comes from what the target gives and the draft did not. "
            "Exercise 3's rule \"fresh\" leaves this line out.",
        "t = torch.multinomial(p_prime, num_samples=1)":
            "Always one token of the target itself: a replacement, or a bonus if all were kept.",
    },
    excerpts=[
        ("new_candidate_input_ids = candidate_input_ids[:, -candidate_length:]",
         "p_i = p[:, torch.arange(candidate_length)"),
        ("if assistant_ensemble_weight is not None:", "probability_ratio = p_i / q_i"),
        ("# When probability_ratio > 1", "n_matches = ((~is_accepted).cumsum(dim=-1) < 1).sum()"),
        ("p_prime = torch.clamp((p_n_plus_1 - q_n_plus_1), min=0)", "p_prime.div_(p_prime_sum)"),
        ("t = torch.multinomial(p_prime, num_samples=1)", "t = torch.multinomial(p_prime, num_samples=1)"),
    ],
    checked="5.24.0",
)

# %% [markdown]
# ## 5 · Build
#
# ### Exercise 2 · Accept and reject
#
# *difficulty 2 of 3 · 6 minutes · 3 points, practice*
#
# Complete the rule. Its random numbers are arguments, so that the same call gives the same tokens.
#
# | argument | meaning |
# |---|---|
# | `p` | the target's probabilities, `(gamma + 1, V)`, `float32`; row `i` belongs to drafted token `i`, the last row to the position after them |
# | `q` | the draft's probabilities, `(gamma, V)`, `float32` |
# | `drafted` | list of `gamma` token ids, `int` |
# | `uniforms` | list of `gamma` numbers in [0, 1), one for each drafted token |
# | `pick` | a number in [0, 1) that chooses the last token from its distribution |
#
# Returns the emitted tokens, a list of `int` with 1 to `gamma + 1` entries. Drafted token `x` of row `i` is
# accepted if `uniforms[i] * q[i, x] < p[i, x]`. The first rejection ends the round: one more token comes from
# the positive part of `p[i] - q[i]`, normalized. If nothing was rejected, it comes from the last row of `p`.
# You write two things: whether a token is `accepted`, and from which `weights`, `(V,)`, the last token comes.
# (The given lines normalize them; `pick` chooses the first token whose cumulated share is greater than it.)
#
# <details><summary>Hint 1: a nudge</summary>
# Which row of <code>p</code> and of <code>q</code> belongs to the token that was rejected, if
# <code>kept</code> tokens were accepted before it?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# <code>accepted</code> is the comparison above. If all were accepted, the weights are the last row of
# <code>p</code>; otherwise <code>(p[kept] - q[kept]).clamp(min=0)</code>.
# </details>

# %% exercise="verify" provides=["verify"] difficulty=2 minutes=6
def verify(p, q, drafted, uniforms, pick):
    """The tokens that one round emits: accepted drafts, then one token of the target's own."""
    kept = 0
    for i, x in enumerate(drafted):
        ### BEGIN SOLUTION
        accepted = uniforms[i] * q[i, x] < p[i, x]
        ### END SOLUTION
        if not accepted:
            break
        kept += 1
    ### BEGIN SOLUTION
    weights = p[kept] if kept == len(drafted) else (p[kept] - q[kept]).clamp(min=0)
    ### END SOLUTION
    shares = weights.double().cumsum(0) / weights.double().sum()
    return [*drafted[:kept], int((shares > pick).nonzero()[0])]

# %% check="verify" points=3
import torch
from inferlab.lab import Check

check = Check("verify", points=3)
P = torch.tensor([[0.5, 0.3, 0.2, 0.0], [0.1, 0.2, 0.3, 0.4], [0.25, 0.25, 0.4, 0.1]])
Q = torch.tensor([[0.2, 0.5, 0.2, 0.1], [0.4, 0.2, 0.3, 0.1]])


def verified(*arguments):
    """The learner's tokens, once they are a list of int."""
    got = check.plain(check.learner.verify(*arguments))
    check.true(isinstance(got, list) and all(type(token) is int for token in got), "return a list of int")
    return got


with check.part("both tokens accepted: a bonus token from the last row of p", weight=1):
    check.equal(verified(P, Q, [0, 3], [0.9, 0.9], 0.6), [0, 3, 2])
with check.part("the first token rejected: one token, from what the target has over", weight=1):
    got = verified(P, Q, [1, 3], [0.7, 0.1], 0.5)
    ### HIDDEN TESTS
    check.equal(got, [0])
### HIDDEN TESTS
check.score()

# %% [markdown]
# ### Is the distribution unchanged?
#
# "The output is unchanged" is a claim about a *distribution*. One run cannot show it, because two samples of
# the same model differ, too. You need many rounds and a test with a **stated error rate** $\alpha$. Pearson's
# chi-square test compares how often each token was emitted with how often it should be. Its p-value is the
# probability that a right decoder is at least this far off. If it is below $\alpha$, the decoder is called
# biased. With probability $\alpha$ this happens to a right decoder, too.

# %% jupyter={"source_hidden": true}
def p_value(counts, probabilities):
    """The p-value of `counts`, (V,) int64, where each token should have its `probabilities`, (V,) float64."""
    if counts[probabilities == 0].sum() > 0:
        return 0.0  # a token that cannot be
    expected = counts.sum() * probabilities
    rare = expected < 5  # too few for the test: pooled into one cell, or added to the smallest other one
    hits, wanted = counts[~rare].double(), expected[~rare].double()
    pooled_hits, pooled = counts[rare].sum().double(), expected[rare].sum().double()
    if pooled >= 5:
        hits, wanted = torch.cat([hits, pooled_hits[None]]), torch.cat([wanted, pooled[None]])
    elif rare.any():
        smallest = wanted.argmin()
        hits[smallest] += pooled_hits
        wanted[smallest] += pooled
    chi2 = ((hits - wanted) ** 2 / wanted).sum()
    return float(torch.special.gammaincc(torch.tensor((len(hits) - 1) / 2, dtype=torch.float64), chi2 / 2))


# %% [markdown]
# The next cell takes one position of another story, where several tokens are possible. It applies your rule
# to the real distributions of both models there, 4,000 times, and counts the first emitted token of each
# round. Compare both p-values with $\alpha = 0.001$.

# %% tags=["demo"]
with when_written("verify"):
    ids = opening("story", 30, SEED + 3)
    p, q = (model(ids, logits_to_keep=1).logits[0, -1].double().softmax(-1).cpu()
            for model in (target, draft))
    draw = torch.Generator().manual_seed(SEED)
    proposals = torch.multinomial(q, 4000, replacement=True, generator=draw).tolist()
    numbers = torch.rand(4000, 2, generator=draw, dtype=torch.float64).tolist()
    rows = torch.stack([p, p]).float()
    first = [verify(rows, q[None].float(), [x], [u], pick)[0] for x, (u, pick) in zip(proposals, numbers)]
    for name, tokens_of in (("emitted", first), ("drafted", proposals)):
        counts = torch.bincount(torch.tensor(tokens_of), minlength=len(p))
        print(f"{name} tokens against the target's distribution: p-value {p_value(counts, p):.2g}")

# %% [markdown]
# The second line shows that the test can fail. A test that never fails would prove nothing.

# %% [markdown]
# ### Exercise 3 · Which decoders change the text?
#
# *difficulty 3 of 3 · 7 minutes · 3 points*
#
# Three decoders, `A`, `B` and `C`, run rounds with one drafted token. One of them is exact, and the other two
# follow two of the four other rules. Your name decides which.
#
# | rule | what it does |
# |---|---|
# | `"exact"` | the rule of exercise 2 |
# | `"fresh"` | replaces a rejected token by a sample from $p$ itself |
# | `"agree"` | accepts a token only if it is the target's most likely one; where $p = q$, the replacement is a sample from $p$ |
# | `"stale"` | drafts at one temperature, but its rule uses the $q$ of another |
# | `"ensemble"` | accepts by $v = w\,p + (1 - w)\,q$ in place of $p$, here with $w = 0.5$: the library's `assistant_ensemble_weight` |
#
# The next cell lets each decoder run 20,000 rounds in two experiments with three tokens. In one, draft and
# target have the **same** distribution. In the **other**, the draft likes token 2, which the target never
# writes. A line has the share of accepted drafts, and the shares of the three tokens in what was emitted.

# %%
from inferlab.lab.kits.speculation import unknown_decoders

three, liked = torch.tensor([[0.7, 0.3, 0.0], [0.2, 0.3, 0.5]], dtype=torch.float64)
seen = {}
for letter, decoder in unknown_decoders(lab.variant(16)).items():
    for name, of_draft in (("same", three), ("other", liked)):
        given, accepted = decoder(three, of_draft, 20000, SEED)
        shares, rate = torch.bincount(given, minlength=3) / 20000, float(accepted.double().mean())
        seen[letter, name] = shares, rate
        print(f"{letter}, {name:5} draft: accepted {rate:.2f}, "
              f"emitted {[round(share, 2) for share in shares.tolist()]}")
print("target:", three.tolist())

# %% [markdown]
# Complete `diagnose()`: a `dict` from `"A"`, `"B"`, `"C"` to one of the five words, as you read them off
# these lines. (You may also compute them from `seen`.) Shares within 0.02 of the target's count as equal.
#
# <details><summary>Hint 1: a nudge</summary>
# With the same distribution, what does each rule accept? Four of the five accept everything, and one of these
# four still emits other shares. With the other draft, only one rule ever emits token 2.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# A decoder that does not accept everything from the same distribution is <code>"agree"</code>, and one that
# accepts everything but emits other shares is <code>"stale"</code>. One that emits token 2 is
# <code>"ensemble"</code>. With the other draft, <code>"fresh"</code> misses the target's shares, and
# <code>"exact"</code> does not.
# </details>

# %% exercise="which-decoder" provides=["diagnose"] difficulty=3 minutes=7
def diagnose():
    """Which rule each of the three decoders follows."""
    ### BEGIN SOLUTION
    found = {}
    for letter in "ABC":
        (same, accepted), (other, _) = seen[letter, "same"], seen[letter, "other"]
        off = [float((shares - three).abs().max()) > 0.02 for shares in (same, other)]
        found[letter] = ("agree" if accepted < 1 else "stale" if off[0] else "ensemble" if other[2] > 0
                         else "fresh" if off[1] else "exact")
    return found
    ### END SOLUTION

# %% check="which-decoder" points=3
from inferlab.lab import Check

check = Check("which-decoder", points=3)
RULE_NAMES = ("exact", "fresh", "agree", "stale", "ensemble")


def diagnosed():
    """The learner's three words, once they are that."""
    got = check.learner.diagnose()
    check.true(isinstance(got, dict) and sorted(got) == ["A", "B", "C"],
               '`diagnose()` returns a dict with the keys "A", "B" and "C"')
    check.true(all(value in RULE_NAMES for value in got.values()),
               f"each value is one of {', '.join(RULE_NAMES)}")
    return got


with check.part("three words, one decoder is exact", weight=0):
    check.true(list(diagnosed().values()).count("exact") == 1, "one of the three is exact")
### HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 4 · Read the acceptance rate off a trace
#
# *difficulty 2 of 3 · 3 minutes · 2 points*
#
# The acceptance rate $a$ is the probability that a drafted token is accepted **when its turn comes**.
# `count_rounds(positions, removed)` computes it from the two lists of section 3, which have an entry for each
# pass of the target. You write `tested`, how many tokens had their turn: the accepted ones, and in each round
# the first rejected one.
#
# <details><summary>Hint 1: a nudge</summary>
# A pass with 5 rows had 4 drafted tokens. If 3 positions were removed, one was accepted, the second was
# tested and rejected, and the last two were never looked at.
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# Tested: accepted, plus one for each entry of <code>removed</code> that is greater than 0.
# </details>

# %% exercise="count-rounds" provides=["count_rounds"] difficulty=2 minutes=3
def count_rounds(positions, removed):
    """A run's acceptance rate and its target passes per token."""
    drafted = sum(positions) - len(positions)
    accepted = drafted - sum(removed)
    ### BEGIN SOLUTION
    tested = accepted + sum(count > 0 for count in removed)
    ### END SOLUTION
    emitted = accepted + len(positions)  # each round adds a token of the target's own
    return {"rate": accepted / tested if tested else 0.0, "passes_per_token": len(positions) / emitted}

# %% check="count-rounds" points=2
from inferlab.lab import Check, close

check = Check("count-rounds", points=2)


def counted(*lists):
    """The learner's counts, once they have the form of the contract."""
    got = check.plain(check.learner.count_rounds(*lists))
    check.true(isinstance(got, dict) and set(got) == {"rate", "passes_per_token"},
               "return a dict with exactly the keys rate and passes_per_token")
    return got


with check.part("two rounds of four: one keeps all, one keeps one", weight=1):
    got = counted([5, 5], [0, 3])
    ### HIDDEN TESTS
    check.close(got["rate"], 5 / 6, tol=1e-9)
### HIDDEN TESTS
check.score()

# %% [markdown]
# ### Theory and measured
#
# If each tested token is accepted with probability $a$, independently of the others, a pass gives
# $1 + a + a^2 + \dots + a^\gamma$ tokens on average. Below, this is compared with three runs of 48 new
# tokens: one, four and eight drafted tokens a round.

# %%
def expected_tokens(a, gamma):
    """Tokens of a target pass on average, for acceptance rate a and gamma drafted tokens."""
    return sum(a**n for n in range(gamma + 1))

# %% tags=["demo"]
from inferlab.lab.kits.speculation import passes_against_acceptance

runs = {}
for gamma in (1, 4, 8):
    draft.generation_config.num_assistant_tokens = gamma
    runs[gamma] = rounds_of(speculate(story, 48)[1])
draft.generation_config.num_assistant_tokens = 4

with when_written("count_rounds"):
    points = {}
    for gamma, (read, lost) in runs.items():
        rate, passes = count_rounds(read, lost).values()
        points[gamma] = {"story": (rate, passes)}
        print(f"{gamma} drafted: {1 / passes:.2f} tokens a pass (theory {expected_tokens(rate, gamma):.2f}); "
              f"{sum(lost)} of {sum(read) - len(read)} drafted tokens thrown away")
    curves = {gamma: [1 / expected_tokens(n / 50, gamma) for n in range(51)] for gamma in runs}
    display(passes_against_acceptance(curves, points, title="More accepted, fewer passes"))

# %% [markdown]
# A longer draft saves passes, and more of it is thrown away. The points lie near the curves, not on them: 48
# tokens are few, and real tokens are not accepted independently. The curves hold at a threshold of 0 only: at
# the default of 0.4 a round ends with the first token of which the draft was not sure.

# %% [markdown]
# ### What a round costs
#
# More tokens a pass are not always more tokens a second. Count time in units of **one target pass over one
# token**. A draft pass costs `c` of these, and a target pass over `k` tokens costs `1 + slope * (k - 1)`:
#
# * **launch-bound** (a small model) or **memory-bound** (a large model, small batch): five tokens take as
#   long as one, so the slope is about 0. `c` is the ratio of layers, or (memory-bound) of parameters;
# * **compute-bound** (a large batch): five tokens take five times as long, so the slope is about 1. `c` is
#   the ratio of parameters.
#
# On this machine:

# %% tags=["demo"]
from inferlab.lab.kits.decode.roofline import best_seconds

took = {(name, width): best_seconds(lambda model=model, width=width: model(story[:, :width]), lab.device)
        for name, model, width in (("draft", draft, 1), ("target", target, 1), ("target", target, 5))}
one = took["target", 1]
measured = took["draft", 1] / one, (took["target", 5] / one - 1) / 4
print("c {:.3f}, slope {:.3f}".format(*measured))

# %% [markdown]
# A verifying pass has the **shape** of a prefill: many positions, one pass. But only five tokens share each
# weight that is read, and a GPU needs hundreds to become compute-bound. On a CPU the slope is clearly
# above 0.

# %% [markdown]
# ### Exercise 5 · Which draft, and how long?
#
# *difficulty 2 of 3 · 5 minutes · 3 points*
#
# Complete `choose(drafts, most, slope)`. `drafts` is a `dict` from names to `(a, c)`, the acceptance rate and
# the cost; `most` is the largest number of drafted tokens allowed. A round costs `gamma * c` for drafting and
# one target pass over `gamma + 1` tokens, and it gives `expected_tokens(a, gamma)` tokens. You write `speed`,
# the tokens that a pair gives in a unit of time. The given lines return the best `(name, gamma)`, or
# `("", 0)` if no pair gives more than plain decoding, which gives 1.
#
# <details><summary>Hint 1: a nudge</summary>
# Which parts does the time of a round have? A target pass over <code>k</code> tokens costs
# <code>1 + slope * (k - 1)</code>: what is <code>k</code> here?
# </details>
#
# <details><summary>Hint 2: nearly the solution</summary>
#
# The time of a round is <code>gamma * c + 1 + slope * gamma</code>; the speed is
# <code>expected_tokens(a, gamma)</code> over it.
# </details>

# %% exercise="choose" provides=["choose"] difficulty=2 minutes=5
def choose(drafts, most, slope):
    """The draft and the number of drafted tokens with the most tokens for a unit of time, or ("", 0)."""
    best, choice = 1.0, ("", 0)  # plain decoding
    for name, (a, c) in drafts.items():
        for gamma in range(1, most + 1):
            ### BEGIN SOLUTION
            speed = expected_tokens(a, gamma) / (gamma * c + 1 + slope * gamma)
            ### END SOLUTION
            if speed > best:
                best, choice = speed, (name, gamma)
    return choice

# %% check="choose" points=3
from inferlab.lab import Check

check = Check("choose", points=3)


def chosen(drafts, most, slope):
    """The learner's choice, once it is a name and a number."""
    got = check.plain(check.learner.choose(drafts, most, slope))
    check.true(isinstance(got, tuple) and len(got) == 2 and isinstance(got[0], str) and type(got[1]) is int,
               "return the tuple (name, gamma)")
    return got


with check.part("one draft, memory-bound", weight=1):
    check.equal(chosen({"small": (0.8, 0.05)}, 12, 0.0), ("small", 8))
### HIDDEN TESTS
check.score()

# %% tags=["demo"]
with when_written("choose", "count_rounds"):
    rate = count_rounds(*runs[4])["rate"]
    layers = draft.config.num_hidden_layers / target.config.num_hidden_layers
    share = draft.num_parameters() / target.num_parameters()
    for regime, c, slope in (("launch-bound", layers, 0.0), ("memory-bound", share, 0.0),
                             ("compute-bound", share, 1.0), ("measured here", *measured)):
        print(f"{regime:14} c = {c:.3f}: {choose({'draft': (rate, c)}, 12, slope)}")

# %% [markdown]
# With the bundled models, one acceptance rate gives another answer in each of the three regimes. So first ask
# what a decode step waits for.

# %% [markdown]
# ## 6 · Explain
#
# *difficulty 2 of 3 · 5 minutes · 3 points: 1 for the typed line, 2 for the sentences*
#
# Explain your run of section 3 to a colleague who says: "A small model writes half of the text, so the
# quality must be worse." (For `trade-off`, think of the three runs of section 5.)
#
# In the fields `state` and `trade-off` you write short sentences, one a line, from the tables below. What a
# field asks stands above its table. A sentence is an entry of `who`, a verb, an entry of its row and, if you
# like, entries of the row `may follow`: `the cache keeps the tokens before the first rejected one`. In the
# last field, `shape`, you type the shape of `logits` that the target returned in the first pass.
#
# Lines that begin with `#` are notes of your own.

# %% jupyter={"source_hidden": true}
### FIXTURE words
words

# %% [markdown]
# When you run the next cell, it shows how it reads each line. That reading is graded when you hand in.
# One false sentence in a field costs the field's point, so write only what you know. A line that the cell
# cannot read is judged by a person.

# %% explain="one-round" difficulty=2 minutes=5
%%explain one-round
# ### BEGIN SOLUTION
# state: the draft writes the next tokens one after the other
#   the target checks the drafted tokens in one pass
#   the cache drops the first rejected token and all after it
# trade-off: a longer draft lowers the number of target passes and raises the rejected tokens
# shape: (1, 5, 1024)
# ### END SOLUTION

# %% check="round-shape" of="one-round" points=1
from inferlab.lab import Check

check = Check("round-shape", points=1)
with check.part("`shape:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("one-round").get("shape"), "`shape:` is empty")
### HIDDEN TESTS
check.score()

# %% check="round-state" of="one-round" points=1
from inferlab.lab import Check

check = Check("round-state", points=1)
with check.part("`state:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("one-round").get("state"), "`state:` is empty")
### HIDDEN TESTS
check.score()

# %% check="round-trade-off" of="one-round" points=1
from inferlab.lab import Check

check = Check("round-trade-off", points=1)
with check.part("`trade-off:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("one-round").get("trade-off"), "`trade-off:` is empty")
### HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7 · Notice
#
# * **The output does not change, with the rule of this lab.** The emitted tokens have the target's
#   distribution, whatever the draft is. You tested that for 4,000 first tokens at one position, with a
#   stated error rate. The same test rejected the draft's own tokens.
# * **A library may change it on purpose**, with `assistant_ensemble_weight` (transformers 5.24, off by
#   default).
# * **A bigger draft is not always better.** It agrees more often and costs more. A draft is usually a smaller
#   variant of the same family. If it is **fine-tuned** on the target's output, `a` goes up and `c` stays.
# * **Speculation spends arithmetic to save passes.** If a step already waits for arithmetic, as in a large
#   batch, speculation makes the run slower. This library does it for one sequence at a time.
#
# Say it aloud, as in an interview: what the draft does, what one target pass does, which rule keeps the
# distribution, what $a$ and $\gamma$ give, and in which regime it pays.

# %% [markdown]
# ## 8 · Check and hand in
#
# Run this cell last. It runs the visible checks again, says what is missing, and leaves one file to hand in.

# %% tags=["demo"]
from inferlab.lab import submit

submit()
