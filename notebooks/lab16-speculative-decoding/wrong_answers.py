# Named wrong answers of lab 16: what a learner might write, and the points that it keeps. Never built into a notebook.

# %% wrong="forecast" name="one pass for each token, as without a draft" keeps=0
def forecast(prompt, new, gamma, accepted):
    return {"passes": new, "first": prompt, "second": 1, "drafted": new * gamma, "removed": new * (gamma - accepted)}

# %% wrong="forecast" name="prefill first, verification later; the last token is not fed again" keeps=1.875
def forecast(prompt, new, gamma, accepted):
    passes, drafted, removed, done = 0, 0, 0, 0
    while done < new:
        ahead = min(gamma, new - done - 1)
        kept = min(accepted, ahead)
        passes, drafted, removed, done = passes + 1, drafted + ahead, removed + ahead - kept, done + kept + 1
    return {"passes": passes, "first": prompt, "second": gamma, "drafted": drafted, "removed": removed}

# %% wrong="forecast" name="a full round gives gamma tokens, without the target's own" keeps=1.125
def forecast(prompt, new, gamma, accepted):
    passes, drafted, removed, done = 0, 0, 0, 0
    while done < new:
        ahead = min(gamma, new - done)
        kept = min(accepted, ahead)
        passes, drafted, removed, done = passes + 1, drafted + ahead, removed + ahead - kept, done + max(kept, 1)
    return {"passes": passes, "first": prompt + gamma, "second": gamma + 1, "drafted": drafted, "removed": removed}

# %% wrong="forecast" name="always drafts gamma, also at the end" keeps=1.125
def forecast(prompt, new, gamma, accepted):
    passes = -(-new // (accepted + 1))
    return {"passes": passes, "first": prompt + gamma, "second": gamma + 1, "drafted": passes * gamma, "removed": passes * (gamma - accepted)}

# %% wrong="verify" name="the replacement is drawn from p" keeps=0.333333
def verify(p, q, drafted, uniforms, pick):
    kept = 0
    while kept < len(drafted) and uniforms[kept] * q[kept, drafted[kept]] < p[kept, drafted[kept]]:
        kept += 1
    shares = p[kept].double().cumsum(0) / p[kept].double().sum()
    return [*drafted[:kept], int((shares > pick).nonzero()[0])]

# %% wrong="verify" name="accepts with probability p" keeps=1.333333
def verify(p, q, drafted, uniforms, pick):
    kept = 0
    while kept < len(drafted) and uniforms[kept] < p[kept, drafted[kept]]:
        kept += 1
    weights = p[kept] if kept == len(drafted) else (p[kept] - q[kept]).clamp(min=0)
    shares = weights.double().cumsum(0) / weights.double().sum()
    return [*drafted[:kept], int((shares > pick).nonzero()[0])]

# %% wrong="verify" name="goes on after a rejection" keeps=1
def verify(p, q, drafted, uniforms, pick):
    tokens = []
    for i, token in enumerate(drafted):
        if uniforms[i] * q[i, token] < p[i, token]:
            tokens.append(token)
        else:
            rest = (p[i] - q[i]).clamp(min=0).double()
            tokens.append(int((rest.cumsum(0) / rest.sum() > pick).nonzero()[0]))
    last = p[-1].double()
    return [*tokens, int((last.cumsum(0) / last.sum() > pick).nonzero()[0])]

# %% wrong="verify" name="the replacement comes from what the draft has too much of" keeps=0.333333
def verify(p, q, drafted, uniforms, pick):
    kept = 0
    while kept < len(drafted) and uniforms[kept] * q[kept, drafted[kept]] < p[kept, drafted[kept]]:
        kept += 1
    weights = p[kept] if kept == len(drafted) else (q[kept] - p[kept]).clamp(min=0)
    shares = weights.double().cumsum(0) / weights.double().sum()
    return [*drafted[:kept], int((shares > pick).nonzero()[0])]

# %% wrong="p-value" name="rare tokens are not pooled" keeps=1.25
def p_value(counts, probabilities):
    if counts[probabilities == 0].sum() > 0:
        return 0.0
    seen = probabilities > 0
    expected = counts.sum() * probabilities[seen]
    chi2 = ((counts[seen] - expected) ** 2 / expected).sum()
    return float(torch.special.gammaincc(torch.tensor((int(seen.sum()) - 1) / 2, dtype=torch.float64), chi2 / 2))

# %% wrong="p-value" name="rare tokens are left out" keeps=1.25
def p_value(counts, probabilities):
    if counts[probabilities == 0].sum() > 0:
        return 0.0
    expected = counts.sum() * probabilities
    often = expected >= 5
    hits, wanted = counts[often].double(), expected[often]
    chi2 = ((hits - wanted) ** 2 / wanted).sum()
    return float(torch.special.gammaincc(torch.tensor((len(hits) - 1) / 2, dtype=torch.float64), chi2 / 2))

# %% wrong="p-value" name="k degrees of freedom, and the impossible token is ignored" keeps=0.75
def p_value(counts, probabilities):
    seen = probabilities > 0
    expected = counts.sum() * probabilities
    rare = seen & (expected < 5)
    hits, wanted = counts[seen & ~rare].double(), expected[seen & ~rare]
    if rare.any():
        hits, wanted = torch.cat([hits, counts[rare].sum().double()[None]]), torch.cat([wanted, expected[rare].sum()[None]])
    chi2 = ((hits - wanted) ** 2 / wanted).sum()
    return float(torch.special.gammaincc(torch.tensor(len(hits) / 2, dtype=torch.float64), chi2 / 2))

# %% wrong="which-decoder" name="the one with the highest acceptance must be exact" keeps=0
def diagnose():
    same = torch.tensor([0.6, 0.3, 0.1]).double()
    rates = {letter: float(decoder(same, torch.tensor([0.2, 0.3, 0.5]).double(), 5000, 1)[1].double().mean()) for letter, decoder in decoders.items()}
    worst = min(rates, key=rates.get)
    return {letter: "exact" if letter == worst else "agree" for letter in rates}

# %% wrong="which-decoder" name="all of them pass a look at the text" keeps=0
def diagnose():
    return {"A": "exact", "B": "exact", "C": "exact"}

# %% wrong="which-decoder" name="two words without an experiment" keeps=0
def diagnose():
    return ["exact", "fresh", "stale"]

# %% wrong="count-rounds" name="accepted over drafted" keeps=0.5
def count_rounds(positions, removed):
    drafted = sum(positions) - len(positions)
    accepted = drafted - sum(removed)
    return {"drafted": drafted, "accepted": accepted, "tested": drafted, "rate": accepted / max(drafted, 1),
            "passes_per_token": len(positions) / (accepted + len(positions))}

# %% wrong="count-rounds" name="forgets the token that the target adds" keeps=0.5
def count_rounds(positions, removed):
    drafted = sum(positions) - len(positions)
    accepted = drafted - sum(removed)
    tested = accepted + sum(count > 0 for count in removed)
    return {"drafted": drafted, "accepted": accepted, "tested": tested, "rate": accepted / tested if tested else 0.0,
            "passes_per_token": len(positions) / max(accepted, 1)}

# %% wrong="count-rounds" name="positions are drafted tokens" keeps=0
def count_rounds(positions, removed):
    drafted = sum(positions)
    accepted = drafted - sum(removed)
    tested = accepted + sum(count > 0 for count in removed)
    return {"drafted": drafted, "accepted": accepted, "tested": tested, "rate": accepted / tested if tested else 0.0,
            "passes_per_token": len(positions) / accepted if accepted else 1.0}

# %% wrong="expected" name="forgets the token that the target adds itself" keeps=1
def overlap(p, q):
    return float(torch.minimum(p, q).sum())


def expected_tokens(a, gamma):
    return float(sum(a**n for n in range(1, gamma + 1)))

# %% wrong="expected" name="gamma times the rate" keeps=1.5
def overlap(p, q):
    return float(torch.minimum(p, q).sum())


def expected_tokens(a, gamma):
    return 1.0 + gamma * a

# %% wrong="expected" name="two samples agree" keeps=0.5
def overlap(p, q):
    return float((p * q).sum())


def expected_tokens(a, gamma):
    return float((1 - a ** (gamma + 1)) / (1 - a))

# %% wrong="settings" name="the threshold alone" keeps=0
def settings(gamma):
    return {"assistant_confidence_threshold": 0.0}

# %% wrong="settings" name="the number alone, as the colleague did" keeps=0.666667
def settings(gamma):
    return {"num_assistant_tokens": gamma}

# %% wrong="settings" name="a constant schedule, and the threshold as it comes" keeps=1.333333
def settings(gamma):
    return {"num_assistant_tokens": gamma, "num_assistant_tokens_schedule": "constant"}

# %% wrong="settings" name="no threshold, and the schedule as it comes" keeps=1.333333
def settings(gamma):
    return {"num_assistant_tokens": gamma, "assistant_confidence_threshold": 0.0}

# %% wrong="choose" name="the draft that agrees most" keeps=0.333333
def choose(drafts, most, slope):
    name = max(drafts, key=lambda key: drafts[key][0])
    a, c = drafts[name]
    speed = {gamma: sum(a**n for n in range(gamma + 1)) / (gamma * c + 1 + slope * gamma) for gamma in range(1, most + 1)}
    return name, max(speed, key=speed.get)

# %% wrong="choose" name="drafting is free" keeps=0
def choose(drafts, most, slope):
    best, choice = 1.0, ("", 0)
    for name, (a, c) in drafts.items():
        for gamma in range(1, most + 1):
            speed = sum(a**n for n in range(gamma + 1)) / (1 + slope * gamma)
            if speed > best:
                best, choice = speed, (name, gamma)
    return choice

# %% wrong="choose" name="verifying is free in every regime" keeps=1.333333
def choose(drafts, most, slope):
    best, choice = 1.0, ("", 0)
    for name, (a, c) in drafts.items():
        for gamma in range(1, most + 1):
            speed = sum(a**n for n in range(gamma + 1)) / (gamma * c + 1)
            if speed > best:
                best, choice = speed, (name, gamma)
    return choice

# %% wrong="choose" name="always speculates" keeps=1
def choose(drafts, most, slope):
    best, choice = 0.0, ("", 0)
    for name, (a, c) in drafts.items():
        for gamma in range(1, most + 1):
            speed = sum(a**n for n in range(gamma + 1)) / (gamma * c + 1 + slope * gamma)
            if speed > best:
                best, choice = speed, (name, gamma)
    return choice

# %% wrong="one-round" name="the draft writes half of the text" keeps={"round-shape": 0, "round-settings": 0, "round-gain-cost": 0, "round-state": 0, "round-axis": 0, "round-trade-off": 0}
%%explain one-round
# state: The draft writes half of the text and the target writes the rest of the text.
# axis: The batch axis grows from 1 to 5, because five tokens are checked.
# trade-off: A longer draft needs more target passes and less compute.
# shape: (1, 4, 1024)
# passes: 20
# place: target.generation_config
# threshold: 0.4
# gain: compute down
# cost: quality down

# %% wrong="one-round" name="nothing is said" keeps={"round-shape": 0, "round-settings": 0, "round-gain-cost": 0, "round-state": 0, "round-axis": 0, "round-trade-off": 0}
%%explain one-round
# state: Speculative decoding is a modern technique for language models.
# axis: The shape matters here.
# trade-off: There is a trade-off.
# shape: (1, 1)
# passes: 5
# place: generate
# threshold: 1
# gain: speed
# cost: quality down

# %% wrong="one-round" name="right lines, sentences that say the opposite" keeps={"round-shape": 1, "round-settings": 1, "round-gain-cost": 1, "round-state": 0, "round-axis": 0, "round-trade-off": 0}
%%explain one-round
# state: The draft decides which tokens are kept, and the target writes the text after that.
# axis: The vocabulary axis grows from 1 to 5.
# trade-off: Longer drafts reduce the waste and need more target passes.
# shape: (1, 5, 1024)
# passes: 4
# place: draft.generation_config
# threshold: 0
# gain: latency down
# cost: compute up
