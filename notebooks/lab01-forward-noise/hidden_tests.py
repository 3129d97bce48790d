"""The hidden tests of lab01-forward-noise:
a block fills the `### HIDDEN TESTS` line of the check it names."""

# %% check="forecast"
@reference
def traced(rows, height, width):
    """The truth: a real training step of the bundled pipeline, traced."""
    import torch
    from inferlab.models import load_pipeline
    from inferlab.trace import trace

    model = load_pipeline("bundled", "cpu")
    with torch.no_grad(), trace(model) as run:
        found = model.vae.encode(torch.zeros(len(rows), 3, height, width)).latent_dist.mean
        noisy = model.scheduler.add_noise(found, torch.ones_like(found), torch.tensor(rows))
        words, _ = model.encode_prompt(["a red circle"] * len(rows), "cpu", 1, False)
        model.unet(noisy, torch.tensor(rows), encoder_hidden_states=words)
    names = ["scheduler.add_noise", "unet"]
    return {name: len(run.find(name)) for name in names}, tuple(run["unet"].inputs["sample"].shape)

with check.part("the calls of another step", weight=2):
    rows = [999, 3]
    counted, _ = ask_forecast(rows, 96, 160)
    added, called = counted["scheduler.add_noise"], counted["unet"]
    check.mistake("noise is not added step after step: the formula jumps to a level in one sum",
                  when=added in (sum(rows), max(rows), max(rows) + 1, sum(rows) + len(rows)))
    check.mistake("noising is not the generator: no step takes noise out, and the UNet is asked once",
                  when=called not in (0, 1, len(rows)))
    check.mistake("one call serves the whole batch", when=len(rows) in (added, called))
    check.mistake("a training step asks the UNet once: without its answer there is nothing to learn from",
                  when=called == 0)
    check.equal(counted, traced(rows, 96, 160)[0])
with check.part("the noisy latents, at 96x160", weight=3):
    rows = [999, 3]
    _, got = ask_forecast(rows, 96, 160)
    check.mistake("t names a noise level: it does not count pictures",
                  when=got[:1] in ((999,), (1000,), (1002,), (1003,)))
    check.mistake("the noise goes into the latents; pixels are there before the encoder only",
                  when=got[1:] == (3, 96, 160))
    check.mistake("height comes before width", when=got[1:] == (4, 20, 12))
    check.equal(got, traced(rows, 96, 160)[1])

# %% check="levels"
with check.part("`snr` of whole schedules", weight=1):
    for kind, config in (("squaredcos_cap_v2", {}), ("linear", {}),
                         ("scaled_linear", {"rescale_betas_zero_snr": True})):
        given = schedule(kind, **config)
        got = check.learner.snr(given)
        check.mistake("that is the quotient of the weights: powers are their squares",
                      when=close(got, (given / (1 - given)).sqrt(), tol=1e-4))
        check.mistake("that is the signal's share of the whole, not its ratio to the noise",
                      when=close(got, given, tol=1e-4))
        check.mistake("that is noise to signal", when=close(got[1:-1], ((1 - given) / given)[1:-1], tol=1e-3))
        check.close(got, given / (1 - given), tol=1e-5, rtol=1e-3)
with check.part("`zero_terminal`, as rescale_betas_zero_snr", weight=3):
    for kind, config in (("scaled_linear", {}), ("linear", {}),
                         ("scaled_linear", {"num_train_timesteps": 200})):
        given, want = schedule(kind, **config), schedule(kind, rescale_betas_zero_snr=True, **config)
        got, low = check.learner.zero_terminal(given), given.sqrt() - given[-1].sqrt()
        check.mistake("the last entry is no zero by itself: this is the table as it was",
                      when=close(got, given))
        check.mistake("only the last entry was changed: the level would jump there",
                      when=close(got[:-1], given[:-1], tol=1e-6))
        check.mistake("you shifted alpha_bar: what is shifted is its square root",
                      when=close(got, (given - given[-1]) * given[0] / (given[0] - given[-1]), tol=1e-5))
        check.mistake("shifted and not stretched: the first entry is no longer what it was",
                      when=close(got, low**2, tol=1e-6))
        check.close(got, want, tol=2e-5)

# %% check="training-pair"
near = torch.tensor([float(library.alphas_cumprod[500]), float(library.alphas_cumprod[499])]).sqrt()
check.mistake("one step short: row 500 is reached by the betas up to and with row 500",
              when=close(got, near[1] * x0[:2] + (1 - near[1] ** 2).sqrt() * eps[:2], tol=2e-5))
check.mistake("the same noise many times over: its small weights add up to far more than 1",
              when=got.std() > 5)
check.mistake("the weights are square roots",
              when=close(got, near[0] ** 2 * x0[:2] + (1 - near[0] ** 2) * eps[:2], tol=1e-4))

# %% check="training-pair"
SPREAD = [999, 0, 1, 700]
with check.part("each sample at its own t, in other schedules", weight=2):
    for config in ({"beta_schedule": "squaredcos_cap_v2"}, {"beta_schedule": "linear"},
                   STABLE | {"rescale_betas_zero_snr": True}):
        (got, _), library, t = pair_of(SPREAD, config)
        check.mistake("every sample was noised to the first sample's level",
                      when=close(got, library.add_noise(x0, eps, t[:1].expand(4)), tol=1e-4))
        check.close(got, library.add_noise(x0, eps, t), tol=1e-4)
with check.part("the target is the noise that is in x_t", weight=3):
    (got, answer_key), library, t = pair_of([300, 600, 900], STABLE)
    level = library.alphas_cumprod[t].reshape(-1, 1, 1, 1)
    inside = (got - level.sqrt() * x0[:3]) / (1 - level).sqrt()
    check.mistake("the network is asked for a noise that is not in its input: it can learn nothing from that",
                  when=close(answer_key, eps[:3]) and not close(inside, answer_key, tol=0.05))
    check.mistake("the target is not the picture of one step earlier: this network answers with the noise",
                  when=close(answer_key, library.add_noise(x0[:3], eps[:3], t - 1), tol=1e-3))
    check.mistake("these are the clean latents: this network answers with the noise",
                  when=close(answer_key, x0[:3], tol=1e-5))
    check.close(inside, answer_key, tol=1e-3)
