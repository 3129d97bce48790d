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
# A small model writes a few tokens ahead, the large one reads them all in a single pass and keeps what it agrees with. In this
# lab you take such a run apart: you predict its passes, write the rule that accepts and rejects, **prove by a statistical
# test that the text is still the large model's**, and find out when the whole idea pays, and when it does not.
#
# **Time** about 70 minutes · **Points** 25, of which 7 are practice · **Reading** [Speculative decoding](../../handbook/lab16-speculative-decoding.md) in the handbook, before you start

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
# Two models, one tokenizer: the draft's tokens must mean the same to the target. `"full"` has the sizes of an 8-B and a 0.5-B
# model with random weights (honest costs, no agreement between the two); `"hub"` downloads a real pair. Grading always uses
# `"bundled"` on the CPU.

# %% [markdown]
# ## 1 · Goal and mental model
#
# After this lab you can say what one round of speculative decoding reads, keeps and throws away, why its output is not
# "almost" the target's but exactly its distribution, and how to choose the draft and its length for a given machine.
#
# | who | gets | gives | how often in a round |
# |---|---|---|---|
# | the **draft** | the text so far | $\gamma$ tokens, one after the other, each sampled from its distribution $q$ | $\gamma$ passes |
# | the **target** | all $\gamma$ tokens at once | its distribution $p$ at $\gamma + 1$ positions | **one** pass |
# | the **rule** | $p$, $q$, the tokens, random numbers | the first $n \le \gamma$ tokens, and one more | arithmetic |
# | the **cache** | | forgets the $\gamma - n$ positions that were rejected | one crop |
#
# A decode step of a large model spends its time on reading weights (or, for a small model, on launching kernels), not on
# arithmetic. Five positions in one pass then cost it hardly more than one (on a CPU, where arithmetic is slow, clearly more: exercise 8 measures it). So a round that keeps $n$ tokens gives $n + 1$ tokens for
# the price of one target pass and $\gamma$ cheap ones. Every round gives at least one token: even a useless draft only
# costs time.

# %% [markdown]
# ## 2 · Predict
#
# ### Exercise 1 · What will the target be given?
#
# *difficulty 2 of 3 · 7 minutes · 3 points*
#
# **Before you run anything**, write a function that says what a trace of an assisted run will show at the target. To make it a
# matter of counting, suppose that exactly `accepted` of the drafted tokens are kept in **every** round (or all of them, where
# fewer were drafted) and that the text does not end early. Two runs of this kind exist, and the grader makes them: the target
# as its own draft, which keeps everything, and a draft that is always wrong.
#
# | argument | meaning |
# |---|---|
# | `prompt` | tokens of the prompt, `int` |
# | `new` | `max_new_tokens`, `int` |
# | `gamma` | tokens that the draft may write in a round, `int` |
# | `accepted` | tokens that are kept in every round, 0 to `gamma` |
#
# Returns a `dict` of `int`: `"passes"`, how often the target runs; `"first"`, how many tokens go into its first pass;
# `"second"`, how many go into its second one; `"drafted"`, all tokens that the draft writes in the run; and `"removed"`, all positions that
# are taken out of the target's cache again. It is only asked about runs with at least two passes.
#
# <details><summary>Hint</summary>
# The library drafts before it has looked at the prompt: the first pass of the target is prefill and verification in one. In a
# later round, the cache lacks one token that is already decided (which?). And near the end nothing is drafted that could not be
# used: with <code>r</code> tokens still to go, at most <code>r - 1</code> are drafted, since the target adds one itself.
# </details>

# %% exercise="forecast" provides=["forecast"] difficulty=2 minutes=7
def forecast(prompt, new, gamma, accepted):
    """What an assisted run shows at the target: passes, widths of the first two, tokens drafted, positions removed."""
    ### BEGIN SOLUTION
    widths, drafted, removed, done = [], 0, 0, 0
    while done < new:
        ahead = min(gamma, new - done - 1)
        kept = min(accepted, ahead)
        widths.append(ahead + (prompt if done == 0 else 1))
        drafted, removed, done = drafted + ahead, removed + ahead - kept, done + kept + 1
    return {"passes": len(widths), "first": widths[0], "second": widths[1], "drafted": drafted, "removed": removed}
    ### END SOLUTION

# %% [markdown]
# ## 3 · Trace
#
# Now a real run, with four drafted tokens a round, sampled at temperature 1. Three settings of the **draft's** generation config
# rule it; exercise 7 is about why these three and why there.

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


def speculate(ids, new, helper=draft, sample=True):
    """An assisted run under a trace: (tokens, trace). `quiet` holds back what the library logs about its own call."""
    how = {"do_sample": True, "top_k": 0} if sample else {"do_sample": False}
    torch.manual_seed(SEED)
    with trace(target, helper) as run, quiet():
        tokens = target.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=new, assistant_model=helper, **how)
    return tokens, run

# %%
story = opening("story", 60, SEED + 4)
print(tokenizer.decode(story[0], skip_special_tokens=True))

# %%
tokens, run = speculate(story, 24)
print("...", tokenizer.decode(tokens[0, story.shape[1]:], skip_special_tokens=True))
run.table(level=1)

# %% [markdown]
# Read the table from the top and stop at three places:
#
# * the inner **`generate`** is the draft at work. Its output is four tokens longer than its input (fewer near the end);
# * the **target's first line** (`LlamaForCausalLM` for the bundled model): its input is the whole prompt *and* the four drafted
#   tokens, and it returns logits for five positions. Later passes are five tokens wide. **A pass is not a token any more;**
# * **`cache.crop`** right below: the rejected positions leave the cache. The first crop of a step is the target's, the second the
#   draft's. No weights are read for it, and no token that was accepted is ever computed again.
#
# **Reconcile.** Which of your forecast's numbers can be read off this run, although its rounds keep different numbers of tokens?

# %%
from inferlab.lab.speculation import rounds_of

positions, removed = rounds_of(run)
print("positions in each target pass:", positions)
print("removed after it:             ", removed)
print("tokens into the first pass:   ", run.find(type(target).__name__)[0].inputs["input_ids"].shape[1], "of which prompt:", story.shape[1])

# %% check="forecast" points=3
from inferlab.lab import Check, reference

check = Check("forecast", points=3)
KEYS = {"passes", "first", "second", "drafted", "removed"}


def asked_forecast(*arguments):
    """The learner's forecast, once it has the form that the contract asks for."""
    got = check.learner.forecast(*arguments)
    check.true(isinstance(got, dict) and set(got) == KEYS, "return a dict with exactly the five keys of the contract")
    check.true(all(type(value) is int for value in got.values()), "each value is an int")
    return got


with check.part("the target as its own draft: 11 new tokens, 4 drafted", weight=1):
    got = asked_forecast(20, 11, 4, 4)
    check.equal(got["passes"], 3, "each round that keeps all four tokens gives five")
### BEGIN HIDDEN TESTS
@reference
def traced(prompt, new, gamma, wrong):
    """The truth: a traced run of a tiny model with itself as draft, or with a draft that never agrees."""
    import copy

    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from inferlab.lab.speculation import rounds_of
    from inferlab.models.quiet import quiet
    from inferlab.trace import trace

    torch.manual_seed(1)
    config = LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
                         num_key_value_heads=1, head_dim=16, bos_token_id=None, eos_token_id=None, pad_token_id=None)
    with quiet(), torch.no_grad():
        model = LlamaForCausalLM(config).eval()
        helper = copy.deepcopy(model)
        if wrong:
            helper.model.norm.weight.neg_()  # its favorite is the target's last choice
        settings = helper.generation_config
        settings.num_assistant_tokens, settings.num_assistant_tokens_schedule = gamma, "constant"
        settings.assistant_confidence_threshold = 0.0
        ids = torch.arange(1, prompt + 1)[None]
        with trace(model, helper) as run:
            model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=new, do_sample=False, assistant_model=helper)
    positions, removed = rounds_of(run)
    widths = [call.inputs["input_ids"].shape[1] for call in run["LlamaForCausalLM"]]
    return {"passes": len(widths), "first": widths[0], "second": widths[1], "drafted": sum(positions) - len(positions),
            "removed": sum(removed)}


with check.part("a draft that is always right", weight=2):
    for case in ((9, 17, 3), (6, 12, 5)):
        want, got = traced(*case, False), asked_forecast(*case, case[2])
        check.mistake("a pass that keeps every drafted token gives one more: the target's own", when=got["passes"] == -(-case[1] // case[2])
                      and got["passes"] != want["passes"])
        check.mistake("one pass for each token: that is plain decoding; here a pass verifies a whole round", when=got["passes"] == case[1])
        check.equal([got["passes"], got["drafted"]], [want["passes"], want["drafted"]])
with check.part("a draft that is always wrong", weight=2):
    want, got = traced(8, 9, 4, True), asked_forecast(8, 9, 4, 0)
    check.mistake("a rejected round still gives one token, so the run ends after as many passes as tokens", when=got["passes"] > 9)
    check.mistake("near the end less is drafted: with r tokens to go, r - 1", when=got["drafted"] == 9 * 4)
    check.equal([got["passes"], got["drafted"], got["removed"]], [want["passes"], want["drafted"], want["removed"]])
with check.part("what goes into the first two passes", weight=2):
    for case in ((9, 17, 3, False), (8, 9, 4, True)):
        want, got = traced(*case), asked_forecast(*case[:3], 0 if case[3] else case[2])
        check.mistake("the first pass is prefill and verification in one: the drafted tokens are in it already", when=got["first"] == case[0])
        check.mistake("the last token of a round was never fed to the target: it goes in front of the drafted ones",
                      when=got["second"] == want["second"] - 1)
        check.mistake("the cache holds what came before: only the new tokens go in", when=got["second"] > want["first"])
        check.equal([got["first"], got["second"]], [want["first"], want["second"]])
with check.part("rounds that keep some, and the end of a run", weight=1):
    got = asked_forecast(12, 10, 4, 2)
    # rounds of 3 tokens: 4, 4 and 4 drafted with 10, 7 and 4 to go -> the last of these is cut to 3; one token is left, nothing drafted
    check.equal(got, {"passes": 4, "first": 16, "second": 5, "drafted": 11, "removed": 5})
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 4 · Read
#
# The rule itself, as it is installed on this machine. It runs only when tokens are *sampled*; in greedy decoding the library
# compares argmaxes instead.

# %% jupyter={"source_hidden": true}
from inferlab.lab import show_source
from transformers.generation.utils import _speculative_sampling

show_source(
    _speculative_sampling,
    {
        "new_candidate_input_ids = candidate_input_ids[:, -candidate_length:]":
            "The gamma drafted tokens. Everything below is arithmetic on them: no model runs here.",
        "q_i = q[:, torch.arange(candidate_length), new_candidate_input_ids].squeeze(0, 1)":
            "What the draft gave its own tokens. These must be the very numbers that it sampled with.",
        "p_i = p[:, torch.arange(candidate_length), new_candidate_input_ids].squeeze(0, 1)":
            "And what the target gives them, at all positions from one pass.",
        "probability_ratio = p_i / q_i":
            "Above 1 wherever the target likes the token at least as much as the draft did.",
        "r_i = torch.rand_like(probability_ratio)": "One uniform number a token.",
        "is_accepted = r_i <= probability_ratio": "Accept with probability min(1, p/q).",
        "n_matches = ((~is_accepted).cumsum(dim=-1) < 1).sum()":
            "Tokens before the first rejection. What was drafted after it is thrown away unseen, accepted or not.",
        "p_prime = torch.clamp((p_n_plus_1 - q_n_plus_1), min=0)":
            "After a rejection the replacement comes from what the target gives and the draft did not. Exercise 4's rule \"fresh\" leaves this line out.",
        "p_prime.div_(p_prime_sum)": "Normalized. The multinomial below would take it unnormalized as well.",
        "t = torch.multinomial(p_prime, num_samples=1)":
            "Always one token of the target's own: a replacement, or a bonus when everything was kept.",
    },
    excerpts=[
        ("new_candidate_input_ids = candidate_input_ids[:, -candidate_length:]", "p_i = p[:, torch.arange(candidate_length)"),
        ("probability_ratio = p_i / q_i", "probability_ratio = p_i / q_i"),
        ("# When probability_ratio > 1", "n_matches = ((~is_accepted).cumsum(dim=-1) < 1).sum()"),
        ("p_prime = torch.clamp((p_n_plus_1 - q_n_plus_1), min=0)", "p_prime.div_(p_prime_sum)"),
        ("t = torch.multinomial(p_prime, num_samples=1)", "t = torch.multinomial(p_prime, num_samples=1)"),
    ],
    checked="5.24.0",
)

# %% [markdown]
# ## 5 · Build
#
# Three pieces of arithmetic are practice (7 points). The rest needs runs.

# %% [markdown]
# ### Exercise 2 · Accept and reject
#
# *difficulty 2 of 3 · 9 minutes · 3 points*
#
# The rule as a pure function: all randomness is an argument, so the same call always gives the same tokens.
#
# | argument | meaning |
# |---|---|
# | `p` | the target's probabilities, `(gamma + 1, V)`, `float32`; row `i` belongs to drafted token `i`, the last row to the position after them |
# | `q` | the draft's probabilities, `(gamma, V)`, `float32` |
# | `drafted` | list of `gamma` token ids, `int` |
# | `uniforms` | list of `gamma` numbers in [0, 1), one for each drafted token |
# | `pick` | a number in [0, 1): chooses the last token from its distribution |
#
# Returns the emitted tokens, a list of `int` with 1 to `gamma + 1` entries. Drafted token `x` is accepted if
# `uniforms[i] * q[i, x] < p[i, x]`. After the first rejection the token comes from the positive part of `p[i] - q[i]`,
# normalized; if nothing was rejected it comes from the last row of `p`. `pick` chooses by the cumulated distribution: the first token
# whose cumulated probability is **greater** than `pick`.
#
# <details><summary>Hint</summary>
# <code>int((weights.double().cumsum(0) / weights.double().sum() &gt; pick).nonzero()[0])</code> chooses a token. The row that a
# rejection leaves you with is the row of the <i>rejected</i> token.
# </details>

# %% exercise="verify" provides=["verify"] difficulty=2 minutes=9
def verify(p, q, drafted, uniforms, pick):
    """The tokens that one round emits: accepted drafts, then one token of the target's own."""
    ### BEGIN SOLUTION
    kept = 0
    while kept < len(drafted) and uniforms[kept] * q[kept, drafted[kept]] < p[kept, drafted[kept]]:
        kept += 1
    weights = p[kept] if kept == len(drafted) else (p[kept] - q[kept]).clamp(min=0)
    shares = weights.double().cumsum(0) / weights.double().sum()
    return [*drafted[:kept], int((shares > pick).nonzero()[0])]
    ### END SOLUTION

# %% check="verify" points=3
import torch
from inferlab.lab import Check

check = Check("verify", points=3)
P = torch.tensor([[0.5, 0.3, 0.2, 0.0], [0.1, 0.2, 0.3, 0.4], [0.25, 0.25, 0.4, 0.1]])
Q = torch.tensor([[0.2, 0.5, 0.2, 0.1], [0.4, 0.2, 0.3, 0.1]])


def verified(*arguments):
    """The learner's tokens, once they are a list of int."""
    got = check.learner.verify(*arguments)
    check.true(isinstance(got, list) and all(type(token) is int for token in got), "return a list of int")
    return got


with check.part("both tokens accepted: a bonus token from the last row of p", weight=1):
    check.equal(verified(P, Q, [0, 3], [0.9, 0.9], 0.6), [0, 3, 2])
with check.part("the first token rejected: one token, from what the target has over", weight=1):
    got = verified(P, Q, [1, 3], [0.7, 0.1], 0.5)
    ### BEGIN HIDDEN TESTS
    check.mistake("the second token was drafted after a rejected one: it is thrown away with it", when=len(got) == 3)
    check.mistake("a rejected token does not stay: the target replaces it", when=got[:1] == [1])
    ### END HIDDEN TESTS
    check.equal(got, [0])
### BEGIN HIDDEN TESTS
def reference_tokens(p, q, drafted, uniforms, pick):
    """The rule, written apart from the lab's solution."""
    for i, token in enumerate(drafted):
        if float(uniforms[i]) * float(q[i, token]) >= float(p[i, token]):
            rest = torch.relu(p[i] - q[i]).double()
            return drafted[:i] + [int(torch.searchsorted(rest.cumsum(0) / rest.sum(), pick, right=True))]
    last = p[-1].double()
    return drafted + [int(torch.searchsorted(last.cumsum(0) / last.sum(), pick, right=True))]


def cases(count, seed):
    """Random rounds of three tokens over a vocabulary of eight."""
    g = torch.Generator().manual_seed(seed)
    for _ in range(count):
        p, q = torch.rand(4, 8, generator=g) ** 3, torch.rand(3, 8, generator=g) ** 3
        p, q = p / p.sum(-1, keepdim=True), q / q.sum(-1, keepdim=True)
        drafted = torch.multinomial(q, 1, generator=g)[:, 0].tolist()
        numbers = torch.rand(4, generator=g, dtype=torch.float64).tolist()
        yield p, q, drafted, numbers[:3], numbers[3]


with check.part("where the rejected token's replacement comes from", weight=2):
    got = [verified(P, Q, [1, 3], [0.7, 0.1], pick) for pick in (0.1, 0.55, 0.95)]
    check.mistake("the replacement was drawn from p: then tokens that the draft likes come twice as often as they should", when=got == [[0], [1], [2]])
    check.mistake("the replacement was drawn from q - p: from what the draft has too much of", when=all(token in ([1], [3]) for token in got))
    check.mistake("the replacement belongs to the rejected position, not to the last row", when=got == [[0], [2], [3]])
    check.equal(got, [[0], [0], [0]])
with check.part("accept with probability min(1, p/q)", weight=2):
    got = [verified(P, Q, [1, 3], [u, 0.1], 0.5)[:1] == [1] for u in (0.1, 0.35, 0.55, 0.65)]
    check.mistake("you accept with probability p: the draft had only proposed the token with probability q, so divide by it",
                  when=got == [True, False, False, False])
    check.mistake("you accept only what the target finds more likely than the draft did", when=not any(got))
    check.equal(got, [True, True, True, False])
with check.part("sixty random rounds", weight=2):
    for case in cases(60, seed=5):
        check.equal(verified(*case), reference_tokens(*case))
with check.part("a token that the target never writes", weight=1):
    got = verified(P, Q, [3, 0], [0.0, 0.0], 0.5)
    check.mistake("p is 0 there: 0 < 0 is false, so even the smallest random number rejects", when=got[0] == 3)
    check.equal(got, [0])
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 3 · Is the distribution unchanged?
#
# *difficulty 2 of 3 · 8 minutes · 2 points*
#
# "The output is unchanged" is a claim about a *distribution*, so one run cannot show it: two samples of the same model differ too.
# It takes many rounds and a test with a **stated error rate**. Write Pearson's chi-square test as
# `p_value(counts, probabilities)`:
#
# | argument | meaning |
# |---|---|
# | `counts` | how often each token was emitted, `(V,)`, `int64`; `n` is their sum |
# | `probabilities` | what each should have, `(V,)`, `float64`, adds up to 1 |
#
# Each token expects `n * probability` hits. Tokens that expect **fewer than 5** are pooled into one cell; if that cell still expects fewer
# than 5, it is added to the smallest of the other cells. Then $\chi^2=\sum (\text{hits}-\text{expected})^2/\text{expected}$ over the
# $k$ cells, and the p-value is the probability that a right decoder gives a larger value:
# `torch.special.gammaincc((k - 1) / 2, chi2 / 2)`. Returns it as a `float`. If a token with probability **0** was emitted, the
# p-value is `0.0`.
#
# A decoder whose p-value is below the error rate $\alpha$ is called biased, and a right decoder is called so
# with probability $\alpha$: that is what the number means.
#
# <details><summary>Hint</summary>
# <code>rare = expected &lt; 5</code> is a mask; <code>counts[rare].sum()</code> and <code>expected[rare].sum()</code> make the pooled
# cell. <code>gammaincc</code> takes float64 tensors. Nothing is pooled if no token is rare.
# </details>

# %% exercise="p-value" provides=["p_value"] difficulty=2 minutes=8
def p_value(counts, probabilities):
    """Pearson's chi-square test: how probable a right decoder's counts are at least this far off."""
    ### BEGIN SOLUTION
    if counts[probabilities == 0].sum() > 0:
        return 0.0
    expected = counts.sum() * probabilities
    rare = expected < 5
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
    ### END SOLUTION

# %% check="p-value" points=2
import torch
from inferlab.lab import Check, close

check = Check("p-value", points=2)


def asked_p(counts, probabilities):
    """The learner's p-value, once it is a number."""
    got = check.learner.p_value(torch.tensor(counts), torch.tensor(probabilities, dtype=torch.float64))
    check.true(isinstance(got, float) and 0 <= got <= 1, "return a float between 0 and 1")
    return got


with check.part("three cells, 100 hits", weight=1):
    check.close(asked_p([40, 35, 25], [0.5, 0.3, 0.2]), 0.129812, tol=1e-5)
### BEGIN HIDDEN TESTS
with check.part("far off, and exactly right", weight=1):
    check.close([asked_p([80, 60, 60], [0.6, 0.3, 0.1]), asked_p([60, 30, 10], [0.6, 0.3, 0.1])], [0.0, 1.0], tol=1e-6)
with check.part("rare tokens are pooled", weight=2):
    got = asked_p([58, 32, 3, 4, 3], [0.6, 0.3, 0.04, 0.03, 0.03])
    check.mistake("tokens that expect fewer than 5 hits must share a cell: chi-square is an approximation for large counts",
                  when=close(got, 0.940668, tol=1e-5))
    check.mistake("the rare tokens were left out: their hits belong into a cell of their own", when=close(got, 0.654721, tol=1e-5))
    check.close(got, 0.904837, tol=1e-5)
with check.part("a pool that is still too small", weight=1):
    got = asked_p([62, 33, 5], [0.6, 0.37, 0.03])
    check.mistake("the pooled cell expects 3 hits: add it to the smallest of the others", when=close(got, 0.400030, tol=1e-5))
    check.close(got, 0.683091, tol=1e-5)
with check.part("a token that must never come", weight=1):
    got = asked_p([60, 39, 1], [0.6, 0.4, 0.0])
    check.mistake("one hit on a token of probability 0 is proof enough, whatever the rest looks like", when=got > 0.01)
    check.close(got, 0.0, tol=0)
with check.part("the error rate is what it says: 200 right decoders at 5%", weight=2):
    g = torch.Generator().manual_seed(9)
    truth = torch.tensor([0.35, 0.25, 0.2, 0.1, 0.06, 0.02, 0.01, 0.01], dtype=torch.float64)
    drawn = [torch.multinomial(truth, 400, replacement=True, generator=g) for _ in range(200)]
    called = sum(asked_p(torch.bincount(d, minlength=8).tolist(), truth.tolist()) < 0.05 for d in drawn) / 200
    check.true(0.015 <= called <= 0.1, f"your test calls {called:.1%} of right decoders biased at an error rate of 5%")
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ### Your rule on the real models
#
# One position of another story, where several tokens are possible, the two models' real distributions there, and your rule 4,000 times. Error rate: $\alpha = 0.001$, so one
# right rule in a thousand is called biased. (Only the first emitted token is counted: given it, every later position is
# the same rule again.)

# %%
def distributions(ids):
    """The target's and the draft's probabilities of the token after `ids`, each (V,), float64 on the CPU."""
    return [model(ids, logits_to_keep=1).logits[0, -1].double().softmax(-1).cpu() for model in (target, draft)]


p, q = distributions(opening("story", 30, SEED + 3))
for name, row in (("target", p), ("draft", q)):
    best = row.topk(4)
    print(f"{name:6}", "  ".join(f"{tokenizer.decode([token])!r} {share:.2f}" for share, token in zip(best.values.tolist(), best.indices.tolist())))

# %% tags=["demo"]
from inferlab.lab import when_written

with when_written("verify", "p_value"):
    draw = torch.Generator().manual_seed(SEED)
    proposals = torch.multinomial(q, 4000, replacement=True, generator=draw).tolist()
    numbers = torch.rand(4000, 2, generator=draw, dtype=torch.float64).tolist()
    rows = torch.stack([p, p]).float()
    first = [verify(rows, q[None].float(), [x], [u], pick)[0] for x, (u, pick) in zip(proposals, numbers)]
    emitted = torch.bincount(torch.tensor(first), minlength=len(p))
    drafted = torch.bincount(torch.tensor(proposals), minlength=len(p))
    print(f"emitted tokens against the target's distribution: p-value {p_value(emitted, p):.3f}")
    print(f"drafted tokens against the target's distribution: p-value {p_value(drafted, p):.2g}")

# %% [markdown]
# The second line is what makes the first one worth something: the same test, on the draft's own tokens, finds the difference
# between the two models. A test that passes everything proves nothing.

# %% [markdown]
# ### Exercise 4 · Which decoder changes the text?
#
# *difficulty 3 of 3 · 10 minutes · 3 points*
#
# Three decoders, `A`, `B` and `C`, run rounds with one drafted token. All three write fluent text, and the acceptance rate alone does not tell which one is exact.
# One follows the rule, two follow another one; which is which depends on your name. The four rules that there are:
#
# | rule | what it does |
# |---|---|
# | `"exact"` | the rule of exercise 2 |
# | `"fresh"` | replaces a rejected token by a sample from $p$ itself |
# | `"agree"` | accepts a token only if it is the target's most likely one |
# | `"stale"` | drafts at another temperature than the one whose $q$ it uses in the rule |
#
# `decoder(p, q, n, seed)` takes the two distributions, `(V,)`, **whatever you choose them to be**, and returns the first emitted token of
# `n` rounds, `(n,)`, and which rounds accepted, `(n,)` of bool. Provide `diagnose()`: a `dict` from `"A"`, `"B"`, `"C"` to one of the four
# words. You may compute them in there, or write down what you found.

# %%
from inferlab.lab.speculation import unknown_decoders

decoders = unknown_decoders(lab.variant(12))

# %% tags=["demo"]
with when_written("p_value"):
    for letter, decoder in decoders.items():
        given, accepted = decoder(p, q, 4000, SEED)
        print(f"{letter}: accepted {accepted.double().mean():.3f}   p-value {p_value(torch.bincount(given, minlength=len(p)), p):.2g}")

# %% [markdown]
# This is one experiment, and it need not tell all four rules apart. Make others: what would each rule do if draft and target were the
# **same** distribution? If they had **nothing** in common? How many rounds do you need?
#
# <details><summary>Hint</summary>
# With <code>p = q</code>, three of the four rules accept everything. One of these three still emits the wrong distribution.
# Use a small vocabulary of your own, such as <code>p = torch.tensor([0.6, 0.3, 0.1])</code>: there, a few thousand rounds see a
# difference of a few percent.
# </details>

# %% exercise="which-decoder" provides=["diagnose"] difficulty=3 minutes=10
def diagnose():
    """Which rule each of the three decoders follows."""
    ### BEGIN SOLUTION
    mine, other = torch.tensor([0.6, 0.3, 0.1]).double(), torch.tensor([0.2, 0.3, 0.5]).double()
    found = {}
    for letter, decoder in decoders.items():
        same, accepted = decoder(mine, mine, 20000, 1)
        mixed, _ = decoder(mine, other, 20000, 2)
        shares = [(torch.bincount(tokens, minlength=3) / 20000 - mine).abs().max() for tokens in (same, mixed)]
        if not accepted.all():
            found[letter] = "agree"
        elif shares[0] > 0.02:
            found[letter] = "stale"
        else:
            found[letter] = "fresh" if shares[1] > 0.02 else "exact"
    return found
    ### END SOLUTION

# %% check="which-decoder" points=3
from inferlab.lab import Check

check = Check("which-decoder", points=3)
RULE_NAMES = ("exact", "fresh", "agree", "stale")


def diagnosed():
    """The learner's three words, once they are that."""
    got = check.learner.diagnose()
    check.true(isinstance(got, dict) and sorted(got) == ["A", "B", "C"], '`diagnose()` returns a dict with the keys "A", "B" and "C"')
    check.true(all(value in RULE_NAMES for value in got.values()), f"each value is one of {', '.join(RULE_NAMES)}")
    return got


with check.part("three words, one decoder is exact", weight=0):
    check.true(list(diagnosed().values()).count("exact") == 1, "one of the three is exact")
### BEGIN HIDDEN TESTS
TRUTH = [
    ("exact", "fresh", "agree"), ("agree", "exact", "fresh"), ("fresh", "agree", "exact"), ("stale", "fresh", "exact"),
    ("exact", "stale", "agree"), ("fresh", "exact", "agree"), ("stale", "exact", "agree"), ("fresh", "stale", "exact"),
    ("fresh", "exact", "stale"), ("exact", "agree", "stale"), ("agree", "exact", "stale"), ("exact", "fresh", "stale"),
]

truth = dict(zip("ABC", TRUTH[check.variant(12)]))
with check.part("which one is exact", weight=2):
    check.mistake("two of the three are biased", when=list(diagnosed().values()).count("exact") > 1)
    got, right = diagnosed(), next(letter for letter in "ABC" if truth[letter] == "exact")
    check.mistake("agreeing with the target's favorite rejects too much even where draft and target are the same",
                  when=truth.get(next((k for k in "ABC" if got[k] == "exact"), ""), "") == "agree")
    check.mistake("a replacement drawn from p gives the draft's favorites a second chance: compare the counts where p and q differ",
                  when=truth.get(next((k for k in "ABC" if got[k] == "exact"), ""), "") == "fresh")
    check.mistake("accepting everything where p equals q is right; the tokens that come out are not: look at the counts as well",
                  when=truth.get(next((k for k in "ABC" if got[k] == "exact"), ""), "") == "stale")
    check.equal(got[right], "exact")
for number, biased in enumerate([letter for letter in "ABC" if truth[letter] != "exact"]):
    with check.part(f"what the {('first', 'second')[number]} of the biased ones does", weight=2):
        got = diagnosed()
        check.mistake("two of the three are biased", when=list(got.values()).count("exact") > 1)
        check.true(got[biased] == truth[biased], "another rule: ask it with p = q, and with two distributions that share little")
### END HIDDEN TESTS
check.score()

# %% [markdown]
# The two models agree on the *text* in any case: in greedy decoding the assisted run is the plain run, token for token.

# %% tags=["demo"]
plain = target.generate(story, attention_mask=torch.ones_like(story), max_new_tokens=24, do_sample=False)
assisted, _ = speculate(story, 24, sample=False)
print("the same tokens:", torch.equal(plain, assisted))

# %% [markdown]
# ### Exercise 5 · Read the acceptance rate off a trace
#
# *difficulty 2 of 3 · 6 minutes · 2 points*
#
# The acceptance rate $a$ is the probability that a drafted token is accepted **when its turn comes**. Write
# `count_rounds(positions, removed)` for the two lists that `rounds_of(run)` gave you in section 3 (one `int` for each pass of the
# target). It returns a `dict`:
#
# | key | meaning |
# |---|---|
# | `"drafted"`, `"accepted"` | tokens, `int` |
# | `"tested"` | drafted tokens whose turn came: those that were accepted, and the one in each round that was not, `int` |
# | `"rate"` | accepted over tested, `float`; `0.0` if none was tested |
# | `"passes_per_token"` | target passes over tokens emitted, `float` |
#
# <details><summary>Hint</summary>
# A pass with 5 positions had 4 drafted tokens. If 3 positions were removed, one was accepted, the second was tested and rejected, and the
# last two were never looked at.
# </details>

# %% exercise="count-rounds" provides=["count_rounds"] difficulty=2 minutes=6
def count_rounds(positions, removed):
    """Drafted, accepted and tested tokens of a run, its acceptance rate and its target passes per token."""
    ### BEGIN SOLUTION
    drafted = sum(positions) - len(positions)
    accepted = drafted - sum(removed)
    tested = accepted + sum(count > 0 for count in removed)
    return {"drafted": drafted, "accepted": accepted, "tested": tested, "rate": accepted / tested if tested else 0.0,
            "passes_per_token": len(positions) / (accepted + len(positions))}
    ### END SOLUTION

# %% check="count-rounds" points=2
from inferlab.lab import Check, close

check = Check("count-rounds", points=2)


def counted(*lists):
    """The learner's counts, once they have the form of the contract."""
    got = check.learner.count_rounds(*lists)
    keys = {"drafted", "accepted", "tested", "rate", "passes_per_token"}
    check.true(isinstance(got, dict) and set(got) == keys, "return a dict with exactly the five keys of the contract")
    return got


with check.part("two rounds of four: one keeps all, one keeps one", weight=1):
    got = counted([5, 5], [0, 3])
    ### BEGIN HIDDEN TESTS
    check.mistake("the tokens behind a rejection were never tested: they say nothing about the rate", when=close(got["rate"], 5 / 8))
    ### END HIDDEN TESTS
    check.close(got["rate"], 5 / 6, tol=1e-9)
### BEGIN HIDDEN TESTS
with check.part("all five numbers", weight=2):
    got = counted([5, 5, 3, 1], [4, 0, 1, 0])
    check.mistake("each round emits one token more than it accepts", when=close(got["passes_per_token"], 4 / 5))
    check.equal([got[key] for key in ("drafted", "accepted", "tested")], [10, 5, 7])
    check.close([got["rate"], got["passes_per_token"]], [5 / 7, 4 / 9], tol=1e-9)
with check.part("runs in which nothing was drafted, or nothing kept", weight=1):
    check.close([counted([1, 1], [0, 0])["rate"], counted([4, 4], [3, 3])["rate"]], [0.0, 0.0], tol=0)
    check.close([counted([1, 1], [0, 0])["passes_per_token"], counted([4, 4], [3, 3])["passes_per_token"]], [1.0, 1.0], tol=1e-9)
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 6 · What theory expects
#
# *difficulty 1 of 3 · 5 minutes · 2 points*
#
# Write two functions.
#
# * `overlap(p, q)`: the probability that a token drafted from `q` is accepted by the rule; two tensors `(V,)`, returns a `float`. It has a
#   short form, $\sum_x \min(p(x), q(x))$: drafted with $q(x)$, kept with $\min(1, p(x)/q(x))$.
# * `expected_tokens(a, gamma)`: tokens that one target pass gives on average, if each tested token is accepted with probability `a`,
#   independently: $1 + a + a^2 + \dots + a^\gamma = \dfrac{1-a^{\gamma+1}}{1-a}$. Also for `a = 1.0`. Returns a number.

# %% exercise="expected" provides=["overlap", "expected_tokens"] difficulty=1 minutes=5
def overlap(p, q):
    """The probability that a token drafted from q is accepted when the target's distribution is p."""
    ### BEGIN SOLUTION
    return float(torch.minimum(p, q).sum())
    ### END SOLUTION


def expected_tokens(a, gamma):
    """Tokens a target pass, for acceptance rate a and gamma drafted tokens."""
    ### BEGIN SOLUTION
    return float(sum(a**n for n in range(gamma + 1)))
    ### END SOLUTION

# %% check="expected" points=2
import torch
from inferlab.lab import Check, close

check = Check("expected", points=2)


def asked_tokens(a, gamma):
    """The learner's expectation, once it is a number."""
    got = check.learner.expected_tokens(a, gamma)
    check.true(isinstance(got, int | float) and not isinstance(got, bool), "return a number")
    return got


with check.part("four drafted tokens at 0.8", weight=1):
    got = asked_tokens(0.8, 4)
    ### BEGIN HIDDEN TESTS
    check.mistake("the token that the target adds itself is missing", when=close(got, 0.8 * (1 - 0.8**4) / 0.2, tol=1e-6))
    check.mistake("that is the limit of endless drafting: a round stops at gamma", when=close(got, 5.0, tol=1e-6))
    check.mistake("a token counts only if all before it were accepted: not gamma times the rate", when=close(got, 1 + 4 * 0.8, tol=1e-6))
    ### END HIDDEN TESTS
    check.close(got, 3.3616, tol=1e-6)
### BEGIN HIDDEN TESTS
with check.part("the ends of the scale", weight=1):
    check.close([asked_tokens(1.0, 6), asked_tokens(0.0, 6), asked_tokens(0.5, 0)], [7.0, 1.0, 1.0], tol=1e-6)
with check.part("the overlap of two distributions", weight=2):
    one, two = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.1, 0.3, 0.6])
    got = check.learner.overlap(one, two)
    check.true(isinstance(got, float), "return a float")
    check.mistake("that is the probability that two samples agree: the rule accepts much more than that", when=close(got, float(one @ two), tol=1e-6))
    check.mistake("draw the token from q first: ratios are weighted by how often q drafts each", when=close(got, float((one / two).clamp(max=1).mean()), tol=1e-6))
    check.close([got, check.learner.overlap(two, two)], [0.6, 1.0], tol=1e-6)
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ### Theory and measured
#
# Three openings of different kinds, 48 new tokens each, four drafted a round: once with the confidence threshold at 0, as above, and
# once as the library comes, at 0.4.

# %% tags=["demo"]
def measured(ids, gamma, threshold):
    """(positions, removed) of a sampled run of 48 tokens with these settings."""
    draft.generation_config.num_assistant_tokens = gamma
    draft.generation_config.assistant_confidence_threshold = threshold
    lists = rounds_of(speculate(ids, 48)[1])
    draft.generation_config.assistant_confidence_threshold = 0.0
    return lists


openings = {"story": story, "scene": opening("scene", 12, SEED + 4), "repeat": opening("repeat", 30, SEED + 3)}
runs = {threshold: {kind: measured(ids, 4, threshold) for kind, ids in openings.items()} for threshold in (0.0, 0.4)}

# %% tags=["demo"]
from inferlab.lab.speculation import passes_against_acceptance

with when_written("count_rounds", "expected_tokens"):
    points = {f"measured, threshold {threshold:g}": {kind: (count_rounds(*lists)["rate"], count_rounds(*lists)["passes_per_token"])
                                                       for kind, lists in kinds.items()} for threshold, kinds in runs.items()}
    rates = [n / 50 for n in range(51)]
    curves = {f"theory, {g} drafted a round": (rates, [1 / expected_tokens(a, g) for a in rates]) for g in (1, 4, 8)}
    display(passes_against_acceptance(curves, points, title="With the threshold at 0, runs lie on the curve of their gamma"))

# %% [markdown]
# How far does a longer draft help? The story again, with one to eight drafted tokens:

# %% tags=["demo"]
with when_written("count_rounds", "expected_tokens"):
    for gamma in (1, 2, 4, 8):
        counts = count_rounds(*measured(story, gamma, 0.0))
        print(f"gamma {gamma}: rate {counts['rate']:.2f}, measured {1 / counts['passes_per_token']:.2f} tokens a pass, "
              f"theory {expected_tokens(counts['rate'], gamma):.2f}; {counts['drafted'] - counts['accepted']} of {counts['drafted']} drafted tokens thrown away")
draft.generation_config.num_assistant_tokens = 4

# %% [markdown]
# The points scatter: 48 tokens are few, the last round is cut, and real tokens are not accepted independently (easy stretches, hard
# words). But at 0.4 they lie off the curve for another reason. The draft then stops as soon as its own token has a probability below the
# threshold, so a round is often shorter than $\gamma$, and which tokens get tested at all depends on how sure the draft was. The
# formula for $\gamma = 4$ knows nothing of this. (Where scikit-learn is installed, 0.4 is only the start: the library then fits a threshold above 0 anew
# from the rounds so far. At 0 it never does.) **Theory and measurement belong together only at threshold 0.**

# %% [markdown]
# ### Exercise 7 · A setting that does nothing
#
# *difficulty 2 of 3 · 7 minutes · 2 points*
#
# A colleague wants exactly four drafted tokens in every round, to measure an acceptance rate, and asks for them where one asks `generate` for
# everything else:

# %% tags=["demo"]
import copy

colleague = copy.deepcopy(draft)
colleague.generation_config = type(draft.generation_config)(eos_token_id=draft.generation_config.eos_token_id)  # as if loaded without any settings
with trace(target, colleague) as quick, quiet():
    target.generate(story, attention_mask=torch.ones_like(story), max_new_tokens=24, do_sample=False, assistant_model=colleague,
                    num_assistant_tokens=4, assistant_confidence_threshold=0.0)
print("positions in each target pass:", rounds_of(quick)[0])

# %% [markdown]
# No error, no warning, and some passes with more than five positions or with fewer. The candidates come from the draft's own `generate`, and it
# reads the **draft's** generation config.
#
# Write `settings(gamma)`: a `dict` of the attributes to set on `draft.generation_config`, names to values, so that every
# round drafts exactly `gamma` tokens (except where the end of the text is near), whatever the draft's config said before. The grader
# sets them and looks at the passes, with drafts that come with all kinds of configs.
#
# <details><summary>Hint</summary>
# Three attributes (section 3 sets them). Which one stops a round early? Which one lets the number move from round to round?
# </details>

# %% exercise="settings" provides=["settings"] difficulty=2 minutes=7
def settings(gamma):
    """Attributes of the draft's generation config for exactly `gamma` drafted tokens in every round."""
    ### BEGIN SOLUTION
    return {"num_assistant_tokens": gamma, "num_assistant_tokens_schedule": "constant", "assistant_confidence_threshold": 0.0}
    ### END SOLUTION

# %% check="settings" points=2
from inferlab.lab import Check

check = Check("settings", points=2)
ALLOWED = {"num_assistant_tokens", "num_assistant_tokens_schedule", "assistant_confidence_threshold"}


def asked_settings(gamma):
    """The learner's settings, once they are a dict of plain values."""
    got = check.learner.settings(gamma)
    check.true(isinstance(got, dict) and set(got) <= ALLOWED, f"return a dict whose keys are among {', '.join(sorted(ALLOWED))}")
    check.true(all(isinstance(value, int | float | str) for value in got.values()), "each value is a number or a string")
    return got


with check.part("how many tokens a round may draft", weight=1):
    check.equal([asked_settings(gamma).get("num_assistant_tokens") for gamma in (3, 6)], [3, 6])
### BEGIN HIDDEN TESTS
def positions_with(chosen, before, wrong):
    """Positions of each target pass of a tiny model that drafts for itself (or against itself) with these settings."""
    import copy

    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from inferlab.lab.speculation import rounds_of
    from inferlab.models.quiet import quiet
    from inferlab.trace import trace

    torch.manual_seed(1)
    config = LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
                         num_key_value_heads=1, head_dim=16, bos_token_id=None, eos_token_id=None, pad_token_id=None)
    with quiet(), torch.no_grad():
        model = LlamaForCausalLM(config).eval()
        helper = copy.deepcopy(model)
        if wrong:
            helper.model.norm.weight.neg_()
        for name, value in {**before, **chosen}.items():
            setattr(helper.generation_config, name, value)
        ids = torch.arange(1, 7)[None]
        with trace(model, helper) as run:
            model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=24, do_sample=False, assistant_model=helper)
    return rounds_of(run)[0]


SURE = {"assistant_confidence_threshold": 0.0}
with check.part("no round stops early", weight=1):
    got = positions_with(asked_settings(3), {"num_assistant_tokens_schedule": "constant"}, wrong=False)
    check.mistake("the draft still stops at the first token that it is not sure of: unset, the threshold is 0.4", when=got[0] == 2)
    check.true(set(got[:-1]) == {4}, f"asked for 3, but the passes had {got} positions")
with check.part("the number stays where it was put", weight=1):
    for wrong in (False, True):
        got = positions_with(asked_settings(3), {**SURE, "num_assistant_tokens_schedule": "heuristic"}, wrong)
        check.mistake("the draft's schedule was \"heuristic\": it adds 2 after a perfect round and takes 1 away after any other",
                      when=len(set(got[:3])) == 3)
        check.true(set(got[:4]) == {4}, f"asked for 3, but the passes had {got} positions")
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ### Exercise 8 · Which draft, and how long?
#
# *difficulty 3 of 3 · 8 minutes · 2 points*
#
# Tokens a pass are not tokens a second. Count time in units of **one target pass over one token**. A draft pass costs `c` of these, and a
# target pass over `k` tokens costs `1 + slope * (k - 1)`:
#
# | regime of the target's decode step | what a pass costs | `slope` | what sets `c` |
# |---|---|---|---|
# | launch-bound (a small model, or eager code on a fast GPU) | kernels launched, the same for 1 or 5 tokens | about 0 | the ratio of **layers** |
# | memory-bound (a large model, small batch) | weights read, the same for 1 or 5 tokens | about 0 | the ratio of **bytes** |
# | compute-bound (a large batch) | arithmetic, five times as much for 5 tokens | about 1 | the ratio of FLOPs |
#
# Here is what that means for the pair of this lab. (The last line is what your trace measured, draft pass over target pass; times are shown, not
# graded.)

# %% tags=["demo"]
from statistics import median

names = {"target": type(target).__name__, "draft": "1"}
took = {who: median(call.ms for call in run.find(name)[1:]) for who, name in names.items()}
print(f"layers    {draft.config.num_hidden_layers / target.config.num_hidden_layers:.3f}")
print(f"bytes     {draft.num_parameters() / target.num_parameters():.3f}")
print(f"measured  {took['draft'] / took['target']:.3f}")

# %% tags=["demo"]
from inferlab.lab.roofline import best_seconds

costs = {}
for width in (1, 5, 9):
    piece = story[:, :width]
    costs[width] = best_seconds(lambda piece=piece: target(piece), lab.device)
for width, seconds in costs.items():
    slope = f"slope {(seconds / costs[1] - 1) / (width - 1):.3f} for each further token" if width > 1 else ""
    print(f"a target pass over {width} tokens: {1e3 * seconds:.1f} ms  {slope}")

# %% [markdown]
# Verification has the **shape** of a prefill: many positions, one pass. But it is not compute-bound as a long prefill is: five tokens share each weight that is read, and a ridge lies at hundreds. On a large model
# the pass still waits for bytes, and **that** is why it is cheap. Where few cores do the arithmetic, or where a large batch already fills them, the slope is far from 0.

# %% [markdown]
# **Where does a draft come from?** Usually it is a **smaller variant of the same family**, which shares the tokenizer and has read much the same text: that is the pair of this lab. Or it is a small
# model **fine-tuned** on what the target writes (distilled): it costs what it cost before, `c` stays, and `a` goes up. The other way round, a target that was fine-tuned agrees less with its old draft: `a` falls
# although nobody touched the draft, and the draft wants the same fine-tuning. In no case does the text change: a better draft is faster, not better.
#
# Write `choose(drafts, most, slope)`: `drafts` is a `dict` from names to `(a, c)`, the acceptance rate and the cost; `most` is the largest
# number of drafted tokens that is allowed. A round costs `gamma * c` for drafting and one target pass over `gamma + 1` tokens, and
# gives `expected_tokens(a, gamma)`. Return the tuple `(name, gamma)` with the most tokens for a unit of time, `1 <= gamma <= most`; or
# `("", 0)` if none is faster than plain decoding, which gives 1. Do not rely on your `expected_tokens`: nothing but the arguments.
#
# <details><summary>Hint</summary>
# Two loops and a comparison. Start with the best so far being <code>("", 0)</code> at 1 token a unit.
# </details>

# %% exercise="choose" provides=["choose"] difficulty=3 minutes=8
def choose(drafts, most, slope):
    """The draft and the number of drafted tokens with the most tokens for a unit of time, or ("", 0)."""
    ### BEGIN SOLUTION
    best, choice = 1.0, ("", 0)
    for name, (a, c) in drafts.items():
        for gamma in range(1, most + 1):
            tokens = sum(a**n for n in range(gamma + 1))
            speed = tokens / (gamma * c + 1 + slope * gamma)
            if speed > best:
                best, choice = speed, (name, gamma)
    return choice
    ### END SOLUTION

# %% check="choose" points=2
from inferlab.lab import Check

check = Check("choose", points=2)


def chosen(drafts, most, slope):
    """The learner's choice, once it is a name and a number."""
    got = check.learner.choose(drafts, most, slope)
    check.true(isinstance(got, tuple) and len(got) == 2 and isinstance(got[0], str) and type(got[1]) is int, "return the tuple (name, gamma)")
    return got


with check.part("one draft, memory-bound", weight=1):
    check.equal(chosen({"small": (0.8, 0.05)}, 12, 0.0), ("small", 8))
### BEGIN HIDDEN TESTS
PAIR = {"small": (0.7, 0.04), "big": (0.9, 0.35)}
with check.part("a bigger draft is not always better", weight=2):
    got = chosen(PAIR, 10, 0.0)
    check.mistake("drafting has a price too: gamma * c", when=got == ("big", 10))
    check.mistake("the bigger draft agrees more often and costs more than that is worth", when=got[0] == "big")
    check.equal(got, ("small", 6))
    check.equal(chosen({"small": (0.5, 0.04), "big": (0.95, 0.1)}, 10, 0.0), ("big", 10))
    got = chosen({"smaller variant": (0.6, 0.05), "larger variant": (0.75, 0.25), "smaller variant, fine-tuned": (0.8, 0.05)}, 12, 0.0)
    check.mistake("fine-tuning raises a and leaves c as it is: the same cost, more tokens a pass", when="fine-tuned" not in got[0])
    check.equal(got, ("smaller variant, fine-tuned", 8))
with check.part("compute-bound: verifying five tokens costs five", weight=2):
    got = chosen({"small": (0.8, 0.05)}, 8, 1.0)
    check.mistake("every verified token now costs a whole unit, and a round gives at most gamma + 1: nothing to win", when=got[1] > 0)
    check.equal(got, ("", 0))
    check.equal(chosen({"small": (0.8, 0.05)}, 8, 0.2), ("small", 3))
with check.part("a draft that costs more than it gives", weight=1):
    got = chosen({"slow": (0.5, 0.6), "blind": (0.02, 0.03)}, 8, 0.0)
    check.mistake("sometimes plain decoding is the fastest: return (\"\", 0)", when=got[1] > 0)
    check.equal(got, ("", 0))
### END HIDDEN TESTS
check.score()

# %% tags=["demo"]
with when_written("choose", "count_rounds"):
    rate = count_rounds(*runs[0.0]["story"])["rate"]
    layers, share = draft.config.num_hidden_layers / target.config.num_hidden_layers, draft.num_parameters() / target.num_parameters()
    for regime, c, slope in (("launch-bound", layers, 0.0), ("memory-bound", share, 0.0), ("compute-bound", share, 1.0)):
        print(f"{regime:14} c = {c:.3f}: {choose({'draft': (rate, c)}, 12, slope)}")

# %% [markdown]
# The same two models, the same acceptance rate, and three different answers. "Use speculative decoding" is no advice until somebody has said
# what bounds the decode step. At a large batch, where decoding is compute-bound, it makes things slower.

# %% [markdown]
# ## 6 · Explain
#
# *difficulty 2 of 3 · 10 minutes · 6 points: 3 for the typed lines, 3 for the sentences*
#
# Explain your run of section 3 (four drafted tokens a round, threshold 0) to a colleague who says: "A small model writes half of the
# text, so the quality must be worse."
#
# | line | what it says |
# |---|---|
# | `state:` | one or two sentences: what the draft does and what the target does with it in one round, and what becomes of the rejected part |
# | `axis:` | one or two sentences: which axis of the target's input is longer than in plain decoding, with its numbers |
# | `trade-off:` | one or two sentences: what you gain and what you pay when you draft **more** tokens a round |
# | `shape:` | typed: the shape of `logits` that the target returned in the first pass |
# | `passes:` | typed: target passes for 20 new tokens if the target were its own draft, with 4 drafted tokens a round (a prediction) |
# | `place:` | typed: the object whose attributes decide how many tokens are drafted, such as `pipe.scheduler.config` |
# | `threshold:` | typed: the confidence threshold at which theory and measurement can be compared |
# | `gain:` | typed, such as `bandwidth down`: what speculation improves in a memory-bound decode step |
# | `cost:` | typed: what it spends for that |

# %%
explained = run  # %%explain looks the numbers of your answer up in the newest trace that has a name

# %% explain="one-round" difficulty=2 minutes=10
%%explain one-round
# ### BEGIN SOLUTION
# state: The draft proposes four tokens, and the target checks all of them in one pass; the accepted ones stay, and the cache drops
#   the positions of the rejected tokens.
# axis: The sequence axis is longer: a pass has 5 positions instead of 1, the 4 drafted tokens and the last one that the target had not seen.
# trade-off: A longer draft needs fewer target passes, but more compute is spent on tokens that are rejected.
# shape: (1, 5, 1024)
# passes: 4
# place: draft.generation_config
# threshold: 0
# gain: latency down
# cost: compute up
# ### END SOLUTION

# %% check="round-shape" of="one-round" points=1
from inferlab.lab import Check

check = Check("round-shape", points=1)
with check.part("`shape:` and `passes:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("one-round").get("shape"), "`shape:` is empty")
    check.true(check.explanation("one-round").get("passes"), "`passes:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import typed

with check.part("the logits of the first pass"):
    told = check.explanation("one-round")
    check.mistake("one position more than was drafted: the bonus token needs logits too", when=typed(told, "shape", (1, 4, 1024)).verdict == "award")
    check.mistake("the library keeps the logits of the positions that it verifies, not those of the whole prompt",
                  when=any(typed(told, "shape", (1, n, 1024)).verdict == "award" for n in range(6, 200)))
    outcome = typed(told, "shape", (1, 5, 1024))
    check.true(outcome.verdict == "award", outcome.reason)
with check.part("passes of a draft that is always right"):
    told = check.explanation("one-round")
    check.mistake("a full round gives five tokens, not four", when=typed(told, "passes", 5).verdict == "award")
    check.mistake("that is plain decoding", when=typed(told, "passes", 20).verdict == "award")
    outcome = typed(told, "passes", 4)
    check.true(outcome.verdict == "award", outcome.reason)
### END HIDDEN TESTS
check.score()

# %% check="round-settings" of="one-round" points=1
from inferlab.lab import Check

check = Check("round-settings", points=1)
with check.part("`place:` and `threshold:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("one-round").get("place"), "`place:` is empty")
    check.true(check.explanation("one-round").get("threshold"), "`threshold:` is empty")
### BEGIN HIDDEN TESTS
import re

from inferlab.lab.explain import typed

with check.part("where the settings live"):
    names = re.findall(r"[a-z_][a-z_.]*[a-z_]", check.explanation("one-round").get("place").casefold())
    check.true(len(names) == 1, "`place:` wants the name of one object, as you would write it in code")
    check.mistake("the same words given to the target, or to its generate, change nothing", when=names[0].startswith(("target", "generate")))
    check.true(names[0] in ("draft.generation_config", "assistant.generation_config", "assistant_model.generation_config", "helper.generation_config"),
               "another object decides it")
with check.part("the threshold"):
    told = check.explanation("one-round")
    check.mistake("this is the library's default, and at it the draft stops early", when=typed(told, "threshold", 0.4).verdict == "award")
    outcome = typed(told, "threshold", 0)
    check.true(outcome.verdict == "award", outcome.reason)
### END HIDDEN TESTS
check.score()

# %% check="round-gain-cost" of="one-round" points=1
from inferlab.lab import Check

check = Check("round-gain-cost", points=1)
with check.part("`gain:` and `cost:` are filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("one-round").get("gain"), "`gain:` is empty")
    check.true(check.explanation("one-round").get("cost"), "`cost:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import typed

OWN = {"target passes": "passes of the target, target calls, passes per token, passes a token", "draft passes": "passes of the draft, draft calls"}
READ = {"weight bytes": "bytes of the weights, weight reads, weights read, reads of the weights, readings of the weights, weight traffic, bytes read, bytes moved, bytes per token, bytes a token, bytes read per token, "
        "bytes read a token, memory reads, memory access, memory accesses, traffic, memory traffic, bandwidth, memory bandwidth, bandwidth use", "tokens per pass": "tokens a pass, tokens per target pass, tokens a target pass"}
gains = ("latency down", "target passes down", "throughput up", "tokens per pass up", "weight bytes down", "transfer down")
costs = ("compute up", "memory up", "draft passes up")
check.slot(lambda: typed(check.explanation("one-round"), "gain", gains, terms=OWN | READ), "what speculation improves")
check.slot(lambda: typed(check.explanation("one-round"), "cost", costs, terms=OWN), "what it spends for that")
### END HIDDEN TESTS
check.score()

# %% check="round-state" of="one-round" points=1
from inferlab.lab import Check

check = Check("round-state", points=1)
with check.part("`state:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("one-round").get("state"), "`state:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import Rubric, Slot, grade

RUBRIC = Rubric(
    question="What the draft does and what the target does with it in one round, and what becomes of the rejected part.",
    lab="A small model writes a few tokens ahead, the large one reads them all in a single pass and keeps what it agrees with. "
        "The rejected positions leave the cache. Every round gives at least one token.",
    terms={
        "draft": "draft, draft model*, drafter, small model, smaller model, smaller one, small one, small, little model, little one, cheap model, fast model, tiny model, assistant*, helper*, intern, junior, proposer, speculator, first model",
        "target": "target*, target model*, large model, larger model, large one, larger one, big model, bigger model, big one, bigger one, big, large, main model, strong model, expensive model, costly model, heavy model, verifier*, editor, senior, second model",
        "tokens": "token, tokens, candidates, candidate*, proposal*, guesses, guess, drafted token*, \"drafted\", drafted ones, proposed token*, draft token*, draft's tokens, words, suggestions, all of them, all at once, those four, these four, the four",
        "rest": "reject*, rest, remainder, tail, what follows, what comes after, everything after, everything behind, anything after, anything behind, all after, successors, suffix, crop*, discard*, drop*, throw*, thrown, toss*, bin, binned, "
        "remove*, delet*, forgotten, forget*, cancel*, eras*, cut, truncat*, trim*, rolled back, roll back, undone, leave the cache, leaves the cache, leave, leaves, gone, out of the cache, from the cache, struck, strikes, wrong one, wrong ones, bad one, bad ones, first bad, first wrong, first no, first mismatch, replac*, resampl*, substitut*, leftover*, vanish*, disappear*, wiped, purg*, scrap*, dump*, chuck*, refus*, swaps the no, lost, evict*, was not accepted, is not accepted, were not accepted, are not accepted, not accepted, not accepts, it not accepts is, it does not accept is, it not accept, it does not accept, it doesn't accept, it doesnt accept, it does not want, it doesn't want, it doesnt want, it does not like, it doesn't like, not kept, does not agree, doesn't agree, disagree*, never emitted, no accepted token is, say no, says no, said no, do not survive, don't survive, does not survive",
        "text": "text, output, answer, whole text, versions, sequences, continuations",
        "cache": "cache*, kv cache, key-value cache",
        "prompt": "prompt*",
    },
    slots={"state": Slot(
        learned="lab16 state 567e5e3c0327ceb1",
        award=["target checks/judges/evaluates/accepts/decides/reads/keep/retain/hold/compares tokens",
               "draft predicts/makes tokens + target checks/uses/calls/judges/evaluates tokens",
               "target uses/judges/evaluates/looks tokens + * keep/retain/accepts tokens",
               "says: target/verifier/editor .. accept/accepts/reject/rejects/verifies/validates/tests/confirms/scores/judges/vets/grades/compares/evaluates/checks/examines/inspects/reviews/approves, target runs once over/on, target .. one pass to judge/check/verify/score, target .. says yes/ok, big/large/bigger/larger/main model/one .. accepts/rejects/verifies/validates/tests/confirms/scores/judges/vets/grades/compares/evaluates/checks, "
               "verified/checked/tested/judged/scored/validated/accepted/confirmed/graded/evaluated by .. target/large/big/bigger/larger/main/verifier + "
               "says: draft/drafter/assistant/small/smaller/little/intern/helper .. writes/write/proposes/propose/guesses/guess/predicts/predict/generates/generate/suggests/suggest/makes/make/gives/give/offers/samples/sample/drafts/produces/creates/does/runs/scribbles/hands/delivers/outputs/token/tokens/four/4/candidates/candidate/guesses, drafted token/tokens/ones, drafts four/4, small model drafts, four/4 tokens/guesses/candidates/words/proposals, proposed/suggested/written/drafted/guessed/generated by",
               "says: one pass, 1 pass, a single pass, one single pass, one/single target/forward pass, one/single forward, single forward, one go, one shot, one call, one run, all at once, at once, in parallel, simultaneously, at the same time, all together + "
               "says: accept/accepts/accepted/accepting/keep/keeps/kept/verify/verifies/verified/check/checks/checked/judge/judges/judged/score/scores/scored/grade/grades/vet/vets/validate/validates/validated/confirm/confirms/approve/approves/stay/stays/prefix/retain/retains/test/tests/tested/compare/compares/evaluate/evaluates/evaluated/decide/decides/survive/survives/yes/ok/okay + "
               "says: draft/drafter/assistant/small/smaller/little/intern/helper .. writes/write/proposes/propose/guesses/guess/predicts/predict/generates/generate/suggests/suggest/makes/make/gives/give/offers/samples/sample/drafts/produces/creates/does/runs/scribbles/hands/delivers/outputs/token/tokens/four/4/candidates/candidate/guesses, drafted token/tokens/ones, drafts four/4, small model drafts, four/4 tokens/guesses/candidates/words/proposals, proposed/suggested/written/drafted/guessed/generated by"],
        deny={
            "draft checks/verifies/judges/evaluates tokens": "The other way round: the draft proposes, and the target decides what stays.",
            "draft checks/verifies/judges/evaluates/accepts target": "The other way round: the draft proposes, and the target decides what stays.",
            "draft decides/chooses/determines/dictates tokens": "The rule, with the target's probabilities, decides; the draft only proposes.",
            "target proposes tokens": "The draft proposes; the target reads what was drafted.",
            "target proposes draft": "The draft proposes; the target reads what was drafted.",
            "draft changes/rewrites/finishes text": "The draft only proposes. Every token that stays has passed the target's rule.",
            "target improves/polishes/corrects text": "The target changes no text: it keeps a beginning of what was drafted, and gives one token.",
            "draft replaces tokens": "The token in place of a rejected one is the target's.",
            "draft corrects/fixes/repeats tokens": "The token in place of a rejected one is the target's.",
            "says: target/verifier makes/writes/generates/proposes/drafts/predicts four/4/some tokens, target drafts, target model drafts, big model drafts": "The draft proposes; the target reads what was drafted.",
            "says: draft/drafter/assistant/small checks/verifies/accepts/judges/decides/rejects/validates, draft then checks/verifies/accepts/decides, draft model then checks/verifies/accepts/decides, drafter then checks/verifies/accepts/decides, draft model checks/verifies/accepts/judges/decides/rejects, small model checks/verifies/accepts/judges/decides/rejects, small one checks/verifies/accepts/judges/decides/rejects, checked/verified/judged/accepted/rejected by the draft/drafter/small/assistant": "The other way round: the draft proposes, and the target decides what stays.",
            "says: rejected one/ones/token/tokens/part/positions stay/stays/remain/remains, only the wrong/bad one/token is/gets, also/even behind/after a/the wrong/rejected/bad, rejected .. stay/remain/stays/remains/kept in the cache, draft/drafter keeps/stores/remembers the rejected, tries/try them/it again, tried again, again in the next round, kept for the next round, left in the cache, nothing is ever rejected, nothing is rejected, never rejected": "Everything from the first rejected token on leaves the cache.",
            "says: no token at all, gives/give/yields/yield/produces no token/tokens, zero tokens, otherwise all are rejected/thrown/dropped/discarded, if most of them are, all four are thrown/discarded/rejected/dropped, throws/throw away all four/4, throws/throw all four/4, discards/discard/drops/drop all four/4, drops/discards/rejects "
            "the whole draft, whole round is lost/discarded/thrown/dropped/rejected, whole draft is lost/discarded/thrown/dropped/rejected, round is wasted, starts/start over, start/starts from scratch": "What comes before the first rejected token stays, and the target gives one token more: no round is empty.",
            "says: once for each/every, once per token, once a token, each/every .. pass of its own, in a pass of its own, in passes of their own, checks/verifies/reads/judges/scores .. passes of their own, target .. passes of its own, target uses/needs/takes/makes/runs four/4/five/5/several/many passes, in its own pass, in their own passes, pass for each/every, pass per token, a pass each, each .. own pass, four/4/five/5 target passes, four/4/five/5 passes of the target, checks/verifies .. one by one, checks/verifies .. one after, checks/verifies .. separately/individually, "
            "verifies/checks .. one at a": "The target reads all drafted tokens in one pass.",
            "says: longest one, longest of, takes the longest, complete answer/answers, whole answer/answers, if it is long, its own four, its own 4, what the draft rejected, easy questions, easy words/tokens/ones/part, hard/difficult words/tokens/ones/part, split/share the work, half and half, four versions/answers/continuations, best draft, mean of, full versions, whole versions, versions of the text, votes, best one, best of, picks the best, average of, averages, mixes, blends, half of the text, worse quality, quality is worse, quality drops": "The draft proposes a few tokens; the target's rule keeps a beginning of them, and the text is the target's.",
            "says: is trained, trained by, trained in, training, learns from, learns to, corrects the draft, as a loss, distilled": "Nobody learns anything in a round: the weights stay.",
            "says: draft/drafter proposes/writes/gives/predicts/suggests/drafts another/again, draft/drafter proposes/writes/gives/predicts/suggests a new, draft/drafter proposes/writes/gives/predicts/suggests a different, draft .. in its place, back to the draft, draft tries again, draft model tries again, draft writes it again, draft has to write, draft must write, draft redoes, draft then fills, draft fills/finishes/completes, draft resamples, replaced/corrected/resampled/rewritten by the draft/small, again by the draft/drafter/small, another token of/from the draft, new draft token": "The token in place of a rejected one is the target's.",
            "says: all are written, all are emitted, all are output, used only at the end, only at the end, accepts/accept every, rejects/reject none/nothing, checks/check/verifies nothing, nothing is checked, emitted as they are, accepted as they are, taken as they are, without check/checking/looking/verification, without a look/check, unchecked, blindly, without being checked, accepts all of them, accepts everything, all are accepted": "The target checks every token that stays.",
        },
        names=["target", "rest"],
        topic=["draft", "tokens"],
    )},
    must_award={"state": [
        "The draft proposes four tokens, and the target checks all of them in one pass; the rejected tokens are removed from the cache.",
        "The draft model generates 4 tokens and the target verifies them in a single pass, keeping the accepted tokens; the rest is dropped.",
        "The draft writes four tokens, the target accepts some of these tokens and replaces the first rejected one, and the cache is cropped.",
        "While the draft writes four tokens by four passes of its own, the target reads all of the tokens in one pass; what it does not accept is thrown away.",
        "The draft proposes four tokens, the target examines them all in one pass and keeps the accepted ones, and the leftovers vanish from the cache.",
        "little one guesses 4, the big one reads all 4 in one go and keeps the good ones up to the first wrong one, the rest goes out of the cache",
    ]},
    must_deny={"state": [
        "The target writes four tokens, and the draft checks them and removes the rejected ones.",
        "The draft decides which tokens of the target are kept, and the rest is rejected.",
        "The draft writes four tokens, the target checks them, and the rejected ones stay in the cache.",
        "The draft writes four tokens and the target checks each in its own pass; the rejected ones are removed.",
        "If one token is rejected, the target throws away all four and the round gives no token at all, so the draft starts over.",
        "The draft writes four tokens, the target checks them, and the rejected ones are replaced by the draft.",
        "The draft writes four tokens, the target checks them in one pass, and the draft tries the rejected ones again in the next round.",
        "The draft writes four tokens, the target checks them, and if one is rejected the whole round is thrown away.",
        "The draft writes four tokens, and those that the target rejects are written again by the draft.",
        "The draft writes four tokens; the target runs once for each of them and drops the rejected ones.",
    ]},
)
check.slot(lambda: grade(check.explanation("one-round"), RUBRIC, {})["state"], "what draft, target and cache do in a round")
### END HIDDEN TESTS
check.score()

# %% check="round-axis" of="one-round" points=1
from inferlab.lab import Check

check = Check("round-axis", points=1)
with check.part("`axis:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("one-round").get("axis"), "`axis:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import Amounts, Rubric, Slot, grade

RUBRIC = Rubric(
    question="Which axis of the target's input is longer than in plain decoding, with its numbers.",
    lab="It returns logits for five positions. Later passes are five tokens wide. A pass is not a token any more.",
    terms={
        "sequence": "sequence*, sequence axis, sequence length, sequence dimension, sequence dim, second axis, second dimension, second dim, second number, token axis, tokens axis, axis of tokens, axis of the tokens, token dimension, token direction, token count, time axis, time dimension, "
        "length axis, length dimension, length, position axis, position dimension, axis of positions, axis of the positions, seq*, seqlen, dim 1, axis 1, dimension 1, last axis, last dimension, width, wide",
        "positions": "position*, token*, columns, entries, id, ids, input_ids, slots, inputs",
        "drafted": "drafted, drafted token*, drafted one*, drafted position*, draft*, draft token*, candidate*, guess*, proposed token*, proposal*, extra, additional, speculated token*, tokens of the draft",
        "batch": "batch*, batch axis, batch dimension, first axis, first dimension, dim 0, axis 0",
        "vocabulary": "vocabulary*, vocab*, logits axis",
        "width": "hidden*, hidden axis, feature*, channel*, head, heads, layer*, embedding*",
        "prompt": "prompt*, prefill, of prompt",
    },
    slots={"axis": Slot(
        learned="lab16 axis af7fe4eb8b3a7ae9",
        amounts=Amounts(shapes=["later passes", "first pass", "logits", (5, 1024)],
                        counts={"positions": [5, 1, 4, 78, 74, 2, 3], "sequence": [5, 1, 78, 74, 2, 3], "drafted": [4, 5, 3, 1], "batch": 1, "vocabulary": 1024, "prompt": [74, 78, 4]},
                        key=["positions=5", "sequence=5", "positions=78", "sequence=78", "drafted=5"]),
        topic=["sequence", "positions"],
        deny={
            "batch grow/increase/expand/become": "The batch stays 1: assisted decoding is for one sequence.",
            "* grow/increase/expand/widen/enlarge batch": "The batch stays 1: assisted decoding is for one sequence.",
            "vocabulary grow/increase/expand/become": "The vocabulary is the same as ever.",
            "width grow/increase/expand/become/widen": "What is wider is the number of tokens that go in, nothing inside the model.",
            "says: batch/vocabulary/vocab/hidden/head/layer/feature/channel axis/dimension is longer/larger/bigger/wider, is the batch/vocabulary/vocab/hidden/embedding/head/heads/layer/layers/feature/channel, it's the batch/vocabulary/vocab/hidden/embedding/head/layer/feature/channel, "
            "batch axis/dimension .. longer/larger/bigger/wider, 4 rows, four rows, "
            "78 in every, 78 in each, 78 per pass, 78 positions/tokens in every/each, 78 positions/tokens per/each/every, feature/features/hidden/head/heads/layer/layers/vocabulary/vocab axis/dimension has/gets/grows/goes/becomes, batch axis/dimension has/gets/grows/goes/becomes, axis 0 is/has/grows/gets/becomes, dim 0 is/has/grows, first axis is/has/grows, first dimension is/has/grows, batch of 5, batch of five, batch size 5, batch size of 5, batch size is 5, five sequences, 5 sequences, 5 parallel sequences, five parallel sequences, one row for each, sequences in parallel, candidates in parallel as, 5 rows, five rows": "The batch stays 1: what is longer is the axis of the tokens.",
            "says: whole/entire prompt again, read/reads the prompt again, reads/read/rereads the .. prompt in every/each, prompt and all, prompt .. in every/each round/pass": "The prompt is in the cache: only the first pass reads it.",
            "says: 4/four instead of 1/one/a, 4/four rather than 1/one, from 1/one to 4/four, only the four drafted, only the 4 drafted, only the drafted, just the four drafted, no other": "The last token goes in too: five, of which four are drafted.",
            "says: target writes/generates/produces/outputs/emits five/5 tokens, target writes/generates/produces/outputs/emits five/5 new": "The target reads five tokens in a pass; how many are emitted depends on what it accepts.",
            "says: instead of 5, instead of five, rather than 5, rather than five, shorter than in plain, shorter than in normal": "The other way round: plain decoding gives the target one token a pass.",
        },
        loose=True,
    )},
    must_award={"axis": [
        "The sequence axis is longer: a pass has 5 positions instead of 1.",
        "The target gets 5 tokens in a pass, so its input is (1, 5) and no longer (1, 1).",
        "The sequence axis grows from 1 to 5, the four drafted tokens and the last one.",
        "The sequence axis goes from 1 to 5, batch and vocabulary don't change.",
        "Second axis: five tokens go in where plain decoding has one; 78 instead of 74 in the first pass.",
    ]},
    must_deny={"axis": [
        "The batch axis grows from 1 to 5 because five tokens are checked.",
        "The sequence axis is 9 in each pass.",
        "The vocabulary axis grows to 5 positions.",
        "The batch is 5 in the target.",
        "It is the batch axis: 5 sequences in parallel instead of 1.",
        "The sequence axis is 1 instead of 5.",
        "The sequence axis is 5 instead of 1, because the target writes five tokens in a pass.",
        "The sequence axis is longer, 4 instead of 1, because only the drafted tokens go in.",
        "The sequence axis is 5 instead of 1, because the target reads the whole prompt again in every pass.",
    ]},
    example_facts={"first pass": (1, 78), "later passes": (1, 5), "last pass": (1, 2), "plain decoding": (1, 1), "prompt": (1, 74), "logits": (1, 5, 1024)},
)
check.slot(lambda: grade(check.explanation("one-round"), RUBRIC, RUBRIC.example_facts)["axis"], "which axis is longer, with its numbers")
### END HIDDEN TESTS
check.score()

# %% check="round-trade-off" of="one-round" points=1
from inferlab.lab import Check

check = Check("round-trade-off", points=1)
with check.part("`trade-off:` is filled in (graded when you hand it in)", weight=0):
    check.true(check.explanation("one-round").get("trade-off"), "`trade-off:` is empty")
### BEGIN HIDDEN TESTS
from inferlab.lab.explain import Rubric, Slot, Trend, grade

RUBRIC = Rubric(
    question="What you gain and what you pay when you draft more tokens a round.",
    lab="How far does a longer draft help? Tokens a pass are not tokens a second. Drafting has a price too.",
    terms={
        "drafted": "drafted tokens, draft length, gamma, \u03b3, longer draft*, long draft*, drafts per round, drafts a round, drafts each round, draft tokens, tokens drafted, draft more, draft more tokens a round, drafting more tokens a round, draft more tokens, draft more tokens per round, draft more tokens each round, speculated tokens, speculation length, guesses per round, num_assistant_tokens, with longer drafts, with longer draft, drafted tokens are less, drafted tokens are less likely, drafted tokens are less and less likely, guesses can, guesses save, guesses mean, guesses give",
        "passes": "target passes, target pass, target calls, target steps, target runs, target's passes, passes of the target, pass of the target, target forward*, target forward passes, passes through the target, passes of the big model, passes of the large model, big model passes, big-model passes, big passes, "
        "large model passes, calls of the target, calls of the big model, calls to the target, runs of the target, runs of the big model, trips through the big model, trips through the target, passes, weight reads, reads of the weights, readings of the weights, look less often, looks less often, run less often, runs less often, called less often, is called less often, needed less often, used less often, read less often, asked less often, target runs less often, target is called less often, target calls less often, less often, less frequently, runs fewer times, run fewer times, called fewer times, used fewer times, needed fewer times, asked fewer times, calls of the large model, calls to the large model, calls to the target, runs of the large model, passes of the larger model, passes of the bigger model, passes of the main model, passes through the large model, steps of the target, steps of the large model, steps of the big model, forward passes of the target, forward passes of the large model, forward passes of the big model, expensive passes, large-model passes, large passes, save more target passes, saves more target passes, skip more target passes, skips more target passes, spare more target passes, avoid more target passes",
        "emitted": "tokens per pass, tokens a pass, tokens/pass, tokens per target pass, tokens per big pass, tokens for one target pass, tokens for one pass, tokens for each pass, tokens for each target pass, tokens in each round, tokens each round, tokens per round, tokens a round, tokens out of each reading, tokens out of each pass, tokens out of one pass, "
        "tokens from each pass, tokens from one pass, tokens emitted per pass, tokens of one pass, tokens per call, tokens per step, accepted tokens, tokens accepted, further per target pass, further per pass, further with each pass, accepted per pass, tokens at once, tokens per reading, tokens per verification, tokens in one pass, tokens in a pass, tokens with one pass, a longer run, longer runs, a longer prefix, progress in each target pass, progress per target pass, progress in each pass, progress per pass, progress with each pass, tokens per expensive target pass, tokens per expensive pass, tokens per weight read",
        "acceptance": "acceptance*, acceptance rate, acceptance probability, chance of acceptance, accepted share, likely to be accepted, likely to survive, agreement, chance to be accepted, chance that last tokens are accepted, chance that they are accepted, hit rate, whole draft is accepted, draft is accepted, all are accepted, all of them are accepted, high acceptance, high acceptance rate, acceptance is high, acceptance rate is high, acceptance is good, acceptance is low, acceptance rate is low, low acceptance, often right",
        "waste": "waste*, wasted tokens, wasted work, wasted positions, wasted drafts, wasted compute, wasted draft work, thrown away, thrown-away tokens, throw away, thrown out, discarded tokens, discarded compute, discarded work, discarded, rejected tokens, rejected work, rejected, rejections, rejects, reject, useless tokens, useless work, in vain, "
        "draft passes, draft pass, passes of the draft, draft steps, draft calls, draft runs, draft work, draft time, more time, needs more time, need more time, takes more time, drafting takes longer, draft takes longer, draft needs more time, draft needs longer, time drafting, time for drafting, drafting longer, draft compute, draft calculation, draft computation, draft cost, drafting, drafting time, drafting work, drafting cost, calculation of the draft, work of the draft, time in the draft, time of the draft, intern time, passes of the small model, small model passes, small-model passes, "
        "calls of the small model, calls of the draft, runs of the draft, time of the small model, work of the small model, work in the draft, drafting passes, draft overhead, overhead, tokens which are rejected, tokens that are rejected, tokens that get rejected, guesses that get binned, positions that do not survive, tokens that don't survive, tokens that do not survive, more often, more times, more frequently, draft .. more passes, drafter .. more passes, small model .. more passes, small one .. more passes, draft .. more steps, small model .. more steps, draft .. run longer, draft .. runs longer, draft .. works longer, draft .. work longer, small model .. runs longer, small model .. works longer, drafting .. takes longer, draft .. takes longer, drafting .. takes time, drafting takes time, draft takes time, typing takes time, round takes longer, rounds take longer, round needs longer, round lasts longer, lose time on, loses time on, lost time on, time is lost on, time lost on, wrong word, wrong token, wrong guess, bad guess, bad token, wrong tokens, wrong guesses",
    },
    slots={"trade-off": Slot(
        learned="lab16 trade-off 74841ecb317eef5d",
        trend=Trend("drafted", gain={"passes": "down", "emitted": "up", "time": "down"}, cost={"waste": "up", "compute": "up"}, also={"acceptance": "down", "quality": "same"}, asked="up",
                    says={
                        "passes down": "saves/save target passes/calls, saves/save/skip/skips/spare/spares/avoid/avoids/saving more target passes, saves/save .. passes/calls/runs of the target/large/big, runs/run/called/needed/used/read/asked/consulted/looks/look less often/frequently, saves/save/spares/spare reads of, saves/save/spares/spare weight reads, runs/run/called/needed/used/read/asked fewer times, weights .. less often, target/boss/verifier .. less often, big/large/costly/expensive model/one .. less often, big/large/costly/expensive model/one .. fewer times, has to look less often, look less often, fewer trips, fewer reads, weights are read less, weights less often, runs less often",
                        "acceptance down": "less likely to be used/kept/accepted, less likely to survive/count, less and less likely",
                        "passes up": "target/verifier/boss reads/needs .. more often, reads/read the/its weights more often, weights are read more often, target/verifier/boss runs/must/has/is .. more often, big/large/expensive model/one .. more often, target/verifier .. more times",
                        "emitted up": "more tokens out, more tokens can/may be emitted/accepted, more tokens come/comes out, over more tokens, longer run of, longer runs of, longer prefix, more tokens per/a/each/for .. pass/call/read/round, win/wins/gain/gains/buy/buys tokens per, further per target pass, further per pass, get/gets further, give/gives/giving/bring/brings/yield/yields/produce/produces/get/gets/emit/emits more tokens, more tokens per/a/each/out/from/for/in/with one/each/every/target, up to five tokens, up to 5 tokens, up to .. tokens per target/pass, gets/get further per pass, raises the ceiling",
                        "waste up": "waste/wastes/wasting more, lose .. drafting work, lose the work, lose compute for, lose computation for, lose .. draft work, ends up in the bin, end up in the bin, drafted for nothing, drafting takes longer, draft takes longer, drafting takes more, often rejected, rarely accepted, rarely survive, are thrown away, get thrown away, is thrown away, gets thrown away, thrown out, gets thrown out, are wasted, is wasted, gets wasted, are discarded, in vain, for nothing, are rejected, get rejected, is rejected, gets rejected, get binned, get dropped, gets struck, are struck, burned the compute, waste computation, "
                        "draft needs more time, draft needs longer, draft must run more, draft has to run more, draft runs more, costs .. draft work/time/passes, pay .. draft passes/time/work, paid for drafting, pay for drafting, costs .. drafting, spend .. on the draft, spend more on, intern time, extra draft, later guesses are the least, later tokens are less, less likely to survive, less likely to be accepted, "
                        "do not survive, don't survive, does not survive, don't get accepted, not accepted, come after a rejection, comes after a rejection, one more draft pass, one more pass of the draft, likely to be thrown, draft/drafter .. more passes/steps, small model/one .. more passes/steps, drafting/draft/typing/guessing .. takes/take/needs/need longer/time, round/rounds takes/take/needs/need/lasts longer, draft/drafter/intern/assistant .. more often/times, draft/intern/drafter/assistant works/runs/busy longer, draft/drafter .. work/run/works/runs longer, small model .. runs/run/works longer, small model/one .. more often/times, work/tokens/guesses .. are/is/get/gets/was lost, lose/loses/lost time on/for/with, time is lost on, more time is lost, more time .. lost, tokens become more, tokens nobody keeps/uses/needs, never used, never be used, not used, struck out, mostly/often wrong, small model must/has run more, small model has to run more, throw/throws more away, erased more, deleted more, rejected more, tossed more, thrown away more, spoils all/everything, extra work of, extra draft work/time/passes/steps",
                    }),
        deny={
            "says: quality becomes/gets/is worse, worse quality, lower quality, less quality, quality drops/falls/suffers, text becomes/gets worse, output changes, less accurate, lower accuracy, accuracy drops/falls, loses accuracy, written by the small": "The rule keeps the target's distribution whatever is drafted.",
            "says: acceptance rate goes/go up, acceptance rate rises/increases/grows, acceptance goes/go up, acceptance rises/increases, higher acceptance, more likely to be accepted, rejected less, fewer rejections, fewer rejected, fewer of them are/get/is, fewer of the tokens are/get, fewer tokens/guesses/candidates/drafts are/get/is thrown/rejected/wasted/discarded/lost/dropped, less waste, less rejected, fewer draft passes, less draft work, save/saves draft passes, "
            "needs/need/takes/take/costs/requires/require/runs/mean/means/has/have/makes more target passes, needs/need/takes/take/costs/requires/means more passes of the target, draft/drafter runs/is .. less often, small model runs less often, disk space": "The later a drafted token stands, the less likely it counts; drafting more costs more drafting, and spares passes of the target.",
        },
    )},
    must_award={"trade-off": [
        "A longer draft needs fewer target passes, but more rejected tokens.",
        "When more tokens are drafted the target passes go down, but more of the tokens are thrown away.",
        "With a larger gamma there are fewer passes of the target, but more compute is spent.",
        "The tokens per pass go up, but so do the rejected tokens.",
        "You save passes of the big model and pay with draft time.",
        "You save more target passes with more drafted tokens, but the draft needs more passes and more tokens are thrown away.",
        "The large model is called less often. You lose time on tokens that are rejected.",
        "The longer the draft, the fewer calls of the large model; each round takes longer, and more tokens are lost.",
    ]},
    must_deny={"trade-off": [
        "A longer draft needs more target passes and less compute.",
        "More drafted tokens mean more target passes and less waste.",
        "Longer drafts reduce the waste and need fewer target passes.",
        "With a larger gamma the tokens per pass go down and the compute goes down.",
        "You get more tokens per target pass, but the quality of the text becomes worse.",
        "Drafting more makes the acceptance rate go up, so there are fewer target passes.",
        "With longer drafts the target runs more often, but fewer tokens are thrown away.",
        "A longer draft gives more tokens per pass, and fewer of them are thrown away; it costs more drafting.",
    ]},
)
check.slot(lambda: grade(check.explanation("one-round"), RUBRIC, {})["trade-off"], "what a longer draft gains and costs")
### END HIDDEN TESTS
check.score()

# %% [markdown]
# ## 7 · Notice
#
# * **The output does not change.** Not "hardly": the emitted tokens have the target's distribution, whatever the draft is. You tested it, with an
#   error rate, and the same test caught decoders that look almost the same in code.
# * **A pass is not a token.** The target reads $\gamma + 1$ positions at once, prefill included, and the cache forgets what was rejected.
# * **The acceptance rate counts what was tested.** Tokens behind a rejection were never looked at.
# * **A bigger draft is not always better.** It agrees more often and costs more. A smaller variant of the target, fine-tuned on what the target writes, agrees more often at the same cost. In a launch-bound step it is the *layers* of the
#   draft that cost, in a memory-bound one its bytes.
# * **Speculation buys latency with arithmetic.** Where arithmetic is what is short, at large batches, there is nothing to buy. It is also for
#   one sequence at a time in this library.
# * **Settings have a place.** On the draft's generation config they work; on the target's `generate` they are accepted and ignored.
#
# Say it out loud, as in an interview: what the draft does, what one target pass does, which rule keeps the distribution, what $a$ and
# $\gamma$ give, and in which regime it pays. The names of the settings and the default of 0.4 are those of transformers 5.17 to 5.24.

# %% [markdown]
# ## 8 · Check and hand in
#
# Run this cell last. It runs the visible checks again, says what is missing, and leaves one file to hand in.

# %% tags=["demo"]
from inferlab.lab import submit

submit()
