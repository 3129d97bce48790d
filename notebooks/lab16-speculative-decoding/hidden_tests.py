"""The hidden tests of lab16-speculative-decoding:
a block fills the `### HIDDEN TESTS` line of the check it names."""

# %% check="forecast"
@reference
def traced(prompt, new, gamma, wrong):
    """The truth: a traced run of a tiny model with itself as draft, or with a draft that never agrees."""
    import copy

    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from inferlab.models.quiet import quiet
    from inferlab.trace import trace

    torch.manual_seed(1)
    config = LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=1,
                         num_attention_heads=2,
                         num_key_value_heads=1, head_dim=16, bos_token_id=None, eos_token_id=None,
                         pad_token_id=None)
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
            model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=new, do_sample=False,
                           assistant_model=helper)
    return [call.inputs["input_ids"].shape[1] for call in run["LlamaForCausalLM"]]


with check.part("a draft that is always right", weight=2):
    for case in ((9, 17, 3), (6, 12, 5)):
        want, got = traced(*case, False), asked_forecast(*case, case[2])
        check.mistake("a pass that keeps every drafted token gives one more: the target's own",
                      when=len(got) == -(-case[1] // case[2]) != len(want))
        check.mistake("one pass for each token: that is plain decoding; here a pass verifies a whole round",
                      when=len(got) == case[1])
        check.equal(got, want)
with check.part("a draft that is always wrong", weight=2):
    want, got = traced(8, 9, 4, True), asked_forecast(8, 9, 4, 0)
    check.mistake("a rejected round still gives one token, so the run ends after as many passes as tokens",
                  when=len(got) > 9)
    check.mistake("near the end less is drafted: with r tokens to go, r - 1",
                  when=len(got) == 9 and got[-1] == got[1])
    check.equal(len(got), len(want))
    check.equal(got[2:], want[2:])
with check.part("what goes into the first two passes", weight=2):
    for case in ((9, 17, 3, False), (8, 9, 4, True)):
        want, got = traced(*case), asked_forecast(*case[:3], 0 if case[3] else case[2])
        check.mistake("the first pass is prefill and verification in one: the drafted tokens are in it "
                      "already", when=got[:1] == [case[0]])
        check.mistake("the last token of a round was never fed to the target: it goes in front of the "
                      "drafted ones",
                      when=got[1:2] == [want[1] - 1])
        check.mistake("the cache holds what came before: only the new tokens go in",
                      when=len(got) > 1 and got[1] > want[0])
        check.equal(got[:2], want[:2])
with check.part("rounds that keep some, and the end of a run", weight=1):
    got = asked_forecast(12, 10, 4, 2)
    # rounds of 3 tokens: 4, 4 and 4 drafted with 10, 7 and 4 to go -> the last of these is cut to 3; one
    # token is left, nothing drafted
    check.equal(got, [16, 5, 4, 1])
    check.equal(asked_forecast(7, 3, 5, 5), [9])  # the end of a run may be in its first round

# %% check="verify"
check.mistake("the second token was drafted after a rejected one: it is thrown away with it",
              when=len(got) == 3)
check.mistake("a rejected token does not stay: the target replaces it", when=got[:1] == [1])

# %% check="verify"
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
    check.mistake("the replacement was drawn from p: then tokens that the draft likes come twice as "
                  "often as they should", when=got == [[0], [1], [2]])
    check.mistake("the replacement was drawn from q - p: from what the draft has too much of",
                  when=all(token in ([1], [3]) for token in got))
    check.mistake("the replacement belongs to the rejected position, not to the last row",
                  when=got == [[0], [2], [3]])
    check.equal(got, [[0], [0], [0]])
with check.part("accept with probability min(1, p/q)", weight=2):
    got = [verified(P, Q, [1, 3], [u, 0.1], 0.5)[:1] == [1] for u in (0.1, 0.35, 0.55, 0.65)]
    check.mistake("you accept with probability p: the draft had only proposed the token with probability q, "
                  "so divide by it",
                  when=got == [True, False, False, False])
    check.mistake("you accept only what the target finds more likely than the draft did", when=not any(got))
    check.equal(got, [True, True, True, False])
with check.part("sixty random rounds", weight=2):
    for case in cases(60, seed=5):
        check.equal(verified(*case), reference_tokens(*case))
with check.part("a token that the target never writes", weight=1):
    got = verified(P, Q, [3, 0], [0.0, 0.0], 0.5)
    check.mistake("p is 0 there: 0 < 0 is false, so even the smallest random number rejects",
                  when=got[0] == 3)
    check.equal(got, [0])

# %% check="which-decoder"
TRUTH = [
    ("agree", "ensemble", "exact"), ("ensemble", "stale", "exact"), ("stale", "ensemble", "exact"),
    ("exact", "fresh", "agree"), ("agree", "exact", "fresh"), ("exact", "agree", "ensemble"),
    ("exact", "fresh", "ensemble"), ("exact", "ensemble", "stale"), ("fresh", "agree", "exact"),
    ("agree", "exact", "ensemble"), ("stale", "fresh", "exact"), ("exact", "stale", "agree"),
    ("fresh", "exact", "agree"), ("stale", "exact", "agree"), ("exact", "ensemble", "fresh"),
    ("ensemble", "exact", "fresh"),
]

truth = dict(zip("ABC", TRUTH[check.variant(16)]))
with check.part("which one is exact", weight=2):
    check.mistake("two of the three are biased", when=list(diagnosed().values()).count("exact") > 1)
    got, right = diagnosed(), next(letter for letter in "ABC" if truth[letter] == "exact")
    check.mistake("agreeing with the target's favorite rejects too much even where draft and target are the "
                  "same",
                  when=truth.get(next((k for k in "ABC" if got[k] == "exact"), ""), "") == "agree")
    check.mistake("a replacement drawn from p gives the draft's favorites a second chance: compare the "
                  "counts where p and q differ",
                  when=truth.get(next((k for k in "ABC" if got[k] == "exact"), ""), "") == "fresh")
    check.mistake("accepting everything where p equals q is right; the tokens that come out are not: look "
                  "at the counts as well",
                  when=truth.get(next((k for k in "ABC" if got[k] == "exact"), ""), "") == "stale")
    check.mistake("what it emits lies between target and draft: let the draft like a token to which the "
                  "target gives probability 0",
                  when=truth.get(next((k for k in "ABC" if got[k] == "exact"), ""), "") == "ensemble")
    check.equal(got[right], "exact")
for number, biased in enumerate([letter for letter in "ABC" if truth[letter] != "exact"]):
    with check.part(f"what the {('first', 'second')[number]} of the biased ones does", weight=2):
        got = diagnosed()
        check.mistake("two of the three are biased", when=list(got.values()).count("exact") > 1)
        check.true(got[biased] == truth[biased],
                   "another rule: ask it with p = q, and with a token that the target never writes")

# %% check="count-rounds"
check.mistake("the tokens behind a rejection were never tested: they say nothing about the rate",
              when=close(got["rate"], 5 / 8))
check.mistake("the first rejected token of a round was tested, too", when=close(got["rate"], 1.0))

# %% check="count-rounds"
with check.part("both numbers", weight=2):
    got = counted([5, 5, 3, 1], [4, 0, 1, 0])
    check.mistake("each round emits one token more than it accepts",
                  when=close(got["passes_per_token"], 4 / 5))
    check.close([got["rate"], got["passes_per_token"]], [5 / 7, 4 / 9], tol=1e-9)
    got = counted([5, 5, 5], [3, 3, 0])
    check.close([got["rate"], got["passes_per_token"]], [6 / 8, 3 / 9], tol=1e-9)
with check.part("runs in which nothing was drafted, or nothing kept", weight=1):
    check.close([counted([1, 1], [0, 0])["rate"], counted([4, 4], [3, 3])["rate"]], [0.0, 0.0], tol=0)
    check.close([counted([1, 1], [0, 0])["passes_per_token"], counted([4, 4], [3, 3])["passes_per_token"]],
                [1.0, 1.0], tol=1e-9)

# %% check="choose"
PAIR = {"small": (0.7, 0.04), "big": (0.9, 0.35)}
with check.part("a bigger draft is not always better", weight=2):
    got = chosen(PAIR, 10, 0.0)
    check.mistake("drafting has a price too: gamma * c", when=got == ("big", 10))
    check.mistake("the bigger draft agrees more often and costs more than that is worth",
                  when=got[0] == "big")
    check.equal(got, ("small", 6))
    check.equal(chosen({"small": (0.5, 0.04), "big": (0.95, 0.1)}, 10, 0.0), ("big", 10))
    got = chosen({"smaller variant": (0.6, 0.05), "larger variant": (0.75, 0.25),
                  "smaller variant, fine-tuned": (0.8, 0.05)}, 12, 0.0)
    check.mistake("fine-tuning raises a and leaves c as it is: the same cost, more tokens a pass",
                  when="fine-tuned" not in got[0])
    check.equal(got, ("smaller variant, fine-tuned", 8))
with check.part("compute-bound: verifying five tokens costs five", weight=2):
    got = chosen({"small": (0.8, 0.05)}, 8, 1.0)
    check.mistake("every verified token now costs a whole unit, and a round gives at most gamma + 1: "
                  "nothing to win", when=got[1] > 0)
    check.equal(got, ("", 0))
    check.equal(chosen({"small": (0.8, 0.05)}, 8, 0.2), ("small", 3))
    check.equal(chosen({"small": (0.9, 0.1)}, 10, 0.1), ("small", 7))
with check.part("a draft that costs more than it gives", weight=1):
    got = chosen({"slow": (0.5, 0.6), "blind": (0.02, 0.03)}, 8, 0.0)
    check.mistake("sometimes plain decoding is the fastest: return (\"\", 0)", when=got[1] > 0)
    check.equal(got, ("", 0))
