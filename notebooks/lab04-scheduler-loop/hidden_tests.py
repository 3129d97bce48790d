"""The hidden tests of lab04-scheduler-loop:
a block fills the `### HIDDEN TESTS` line of the check it names."""

# %% check="run-card"
with check.part("A: trailing timesteps", weight=2):
    want, got = visited(DDIMScheduler(timestep_spacing="trailing"), a), said("trailing")
    check.mistake(
        "timesteps are indices from 0 to 999: trailing ones lie one below each multiple of the stride",
        when=close(got, [t + 1 for t in want]),
    )
    check.mistake(
        "trailing spacing rounds each multiple of 1000 / steps; you rounded the stride first",
        when=not close(got, want) and close(got, [999 - k * (1000 // a) for k in range(a)]),
    )
    check.true(close(got, want), "these are not the timesteps that this scheduler visits")

b = (3, 4, 5, 6, 7, 8, 9, 10)[v]
with check.part("B: calls of a second-order solver", weight=2):
    calls = len(visited(HeunDiscreteScheduler(), b))
    check.mistake(
        "you counted steps: Heun calls the denoiser twice at every step but the last",
        when=said("heun_calls") == b
    )
    check.mistake(
        "the last step has no second look: the noise level after it is zero", when=said("heun_calls") == 2 * b
    )
    check.true(close(said("heun_calls"), calls), "Heun calls the denoiser another number of times")
with check.part("B: calls of a multistep solver", weight=1):
    calls = len(visited(DPMSolverMultistepScheduler(solver_order=2), b))
    check.mistake(
        "second order does not always mean two calls: a multistep solver reuses its last prediction",
        when=said("multistep_calls") in (2 * b, 2 * b - 1),
    )
    check.true(close(said("multistep_calls"), calls),
               "DPM-Solver++ calls the denoiser another number of times")

c, strength = (20, 25, 40, 50, 20, 25, 40, 50)[v], (0.3, 0.6, 0.7, 0.4, 0.8, 0.4, 0.3, 0.9)[v]
with check.part("C: what strength keeps", weight=2):
    kept = min(int(c * strength), c)  # StableDiffusionImg2ImgPipeline.get_timesteps, diffusers 0.42.1
    full = visited(DDIMScheduler(timestep_spacing="leading", steps_offset=1), c)
    check.mistake(
        "strength says how much of the way is walked, not how much is skipped",
        when=said("strength_calls") == c - kept
    )
    check.mistake(
        "strength shortens the loop: nothing is computed for the part that is skipped",
        when=said("strength_calls") == c
    )
    check.true(close(said("strength_calls"), kept), "the loop has another length")
    check.mistake(
        "the loop starts in the middle of the schedule: the image replaces the noisy end",
        when=said("strength_first") == full[0],
    )
    check.true(close(said("strength_first"), full[c - kept]), "the loop starts at another timestep")

d, first_at, last_at, asked = ((8, 10, 12, 16, 8, 10, 12, 16)[v],
                               (0.25, 0.2, 0.25, 0.5, 0.5, 0.3, 0.5, 0.25)[v],
                               (0.7, 0.65, 0.7, 0.8, 0.9, 0.75, 0.8, 0.6)[v], (2, 3, 4, 5, 2, 3, 4, 5)[v])
with check.part("D: guidance widens the batch", weight=2):
    check.mistake("with guidance both halves go through the denoiser in one batch: its rows double",
                  when=said("on_rows") == asked)
    check.mistake("without guidance there is no second half", when=said("off_rows") == 2 * asked)
    check.true(close([said("on_rows"), said("off_rows")], [2 * asked, asked]),
               "the denoiser sees other batches")
with check.part("D: a control after guidance, in its window", weight=2):
    want, got = [i for i in range(d) if first_at <= i / d and (i + 1) / d <= last_at], said("controlled")
    check.mistake("passes are counted from 0", when=close(got, [i + 1 for i in want]))
    check.mistake("a pass that ends after the window is outside: (i + 1) / n, not i / n, is held against end",
                  when=close(got, [*want, want[-1] + 1]))
    check.mistake("the window counts passes of the loop: name each one", when=close(got, len(want)))
    check.true(close(got, want), "the control acts at other passes")
    check.mistake("guidance comes first: it makes one row out of two before the control adds to it",
                  when=said("residual_rows") == 2 * asked)
    check.true(close(said("residual_rows"), asked), "the residual has another number of rows")

# %% check="loop"
with check.part("the state goes from step to step, unscaled", weight=1):
    last = run(3.0)
    states = [call[3] for call in named("step", least=4)]
    returned = [call[3] - 0.3 * call[2] for call in named("step", least=4)]
    check.mistake("step was given the scaled copy; it needs the latents themselves",
                  when=close(states[0], first / 4))
    check.mistake("the state never moved: what step returns must become the next latents",
                  when=close(states[1], first))
    for state, before in zip(states, [first, *returned], strict=False):
        check.close(state, before)
    check.mistake("you returned the latents from before the last step", when=close(last, states[-1]))
    check.close(last, returned[-1])
with check.part("the denoiser sees the scaled copy", weight=1):
    run(3.0)
    check.mistake(
        "two calls give the same numbers and cost two launches: both prompts go through the denoiser in one "
        "batch",
        when=len(named("unet")) == 8,
    )
    sample = named("unet")[0][2]
    check.mistake(
        "the denoiser got the latents as they are: at high noise levels they are far larger than it was "
        "trained on",
        when=close(sample, torch.cat([first, first])),
    )
    check.close(sample, torch.cat([first, first]) / 4)
with check.part("guidance moves from the empty prompt toward yours, and past it", weight=1):
    run(3.0)
    uncond, text = predict(*[named("unet")[0][i] for i in (2, 1, 3)]).chunk(2)
    given = named("step")[0][2]
    check.mistake(
        "guidance is reversed: it moves away from your prompt",
        when=close(given, text + 3.0 * (uncond - text))
    )
    check.mistake(
        "you started from the prompt's half: that is guidance plus one",
        when=close(given, text + 3.0 * (text - uncond))
    )
    check.mistake(
        "guidance was not applied: step got one half as it was",
        when=close(given, text) or close(given, uncond)
    )
    check.close(given, uncond + 3.0 * (text - uncond))
with check.part("guidance off: one row an image, your prompt alone", weight=1):
    last = run(1.0)
    check.mistake(
        "at guidance 1 the other half cancels out: twice the work for the same picture",
        when=len(named("unet")[0][2]) == 4,
    )
    check.equal([len(call[2]) for call in named("unet")], [2] * 4)
    check.mistake("with guidance off you drew the empty prompt", when=close(named("unet")[0][3], empty))
    check.close(named("unet")[0][3], prompt)
    check.close(named("step")[0][2], predict(*[named("unet")[0][i] for i in (2, 1, 3)]))

# %% check="repair"


def toy(model_input, t):
    check.tensor(model_input, shape=(1, 4, 8, 8))
    return torch.tanh(model_input) * (0.2 + float(t) / 1250)


def one(scheduler, noise, steps=6, scaled=True, divided=False, sigma=True, fresh=True):
    """What the pipeline draws; the switches bring the mistakes back, one at a time."""
    if fresh:
        scheduler.set_timesteps(steps)
    latents = noise * float(scheduler.init_noise_sigma) if sigma else noise
    for t in scheduler.timesteps:
        seen = scheduler.scale_model_input(latents, t)
        latents = scheduler.step(
            toy(seen if scaled else latents, t), t, seen if divided else latents, return_dict=False
        )[0]
    return latents


with check.part("one picture, DDIM and Euler", weight=2):
    check.close(pictures(DDIMScheduler(**SD), toy, 1)[0], one(DDIMScheduler(**SD), starts[0]))
    euler, got = EulerDiscreteScheduler(**SD), pictures(EulerDiscreteScheduler(**SD), toy, 1)[0]
    early = starts[0] * float(euler.init_noise_sigma)  # of a schedule that nobody has set yet
    check.mistake(
        "init_noise_sigma belongs to the schedule: ask for it after set_timesteps",
        when=close(got, one(euler, early, sigma=False), 1e-4),
    )
    check.mistake(
        "without scale_model_input the denoiser sees latents several times as large as it was trained on",
        when=close(got, one(euler, starts[0], scaled=False), 1e-4)
        or close(got, one(euler, starts[0], scaled=False, sigma=False), 1e-4),
    )
    check.mistake(
        "the state is still replaced by the copy that was scaled for the denoiser",
        when=close(got, one(euler, starts[0], divided=True), 1e-4)
        or close(got, one(euler, starts[0], divided=True, sigma=False), 1e-4),
    )
    check.mistake(
        "the noise starts at unit variance; this solver starts at init_noise_sigma",
        when=close(got, one(euler, starts[0], sigma=False), 1e-4),
    )
    check.close(got, one(euler, starts[0]), tol=1e-4)
with check.part("the second picture, Euler and DPM-Solver++", weight=1):
    for Scheduler in (EulerDiscreteScheduler, DPMSolverMultistepScheduler):
        got = pictures(Scheduler(**SD), toy, 2)
        check.mistake("both pictures are the same", when=close(got[0], got[1]))
        check.close(got[1], one(Scheduler(**SD), starts[1]), tol=1e-4)
with check.part("the second picture, Heun, which has a memory", weight=2):
    heun = HeunDiscreteScheduler(**SD)
    one(heun, starts[0])
    heun._step_index = None
    stale = one(heun, starts[1], fresh=False)
    got = pictures(HeunDiscreteScheduler(**SD), toy, 2)
    check.mistake(
        "rewinding moved the position back but left the solver's memory: its last slope belongs to the "
        "first picture",
        when=close(got[1], stale, 1e-4),
    )
    check.close(got[1], one(HeunDiscreteScheduler(**SD), starts[1]), tol=1e-4)

# %% check="flow"
with check.part("velocity: the noise minus the clean sample", weight=2):
    sample = 0.4 * clean + 0.6 * noise
    got = check.learner.velocity(noise, sample, 0.6)
    check.mistake("you handed the noise on: this scheduler does not eat noise", when=close(got, noise))
    check.mistake(
        "the sign is wrong: dt is negative, and the velocity points toward more noise",
        when=close(got, clean - noise, 1e-4),
    )
    check.mistake(
        "this is v_prediction, the diffusion model's velocity: another quantity of the same name",
        when=close(got, (0.4 * noise - 0.6 * clean) / 0.52**0.5, 1e-4)
        or close(got, 0.4 * noise - 0.6 * clean, 1e-4),
    )
    check.mistake(
        "the state holds (1 - sigma) of the clean sample: divide by it",
        when=close(got, noise - (sample - 0.6 * noise), 1e-4),
    )
    check.close(got, noise - clean, tol=1e-4)
with check.part("a whole flow-matching run ends where DDIM ends"):
    ddim = DDIMScheduler(
        beta_start=0.00085,
        beta_end=0.012,
        beta_schedule="scaled_linear",
        clip_sample=False,
        timestep_spacing="trailing",
    )
    ddim.set_timesteps(5)
    ratio = ((1 - ddim.alphas_cumprod) / ddim.alphas_cumprod).sqrt()[ddim.timesteps]
    flow = FlowMatchEulerDiscreteScheduler(shift=1.0)
    flow.set_timesteps(sigmas=(ratio / (1 + ratio)).tolist())
    state = noise.clone()
    moving = noise * float((1 - flow.sigmas[0]) ** 2 + flow.sigmas[0] ** 2) ** 0.5
    for t, s, flow_t in zip(ddim.timesteps, flow.sigmas, flow.timesteps, strict=False):
        state = ddim.step(torch.tanh(2 * state), int(t), state).prev_sample
        seen = moving / float((1 - s) ** 2 + s**2) ** 0.5
        v = check.learner.velocity(torch.tanh(2 * seen), moving, float(s))
        check.tensor(v, shape=(2, 4, 8, 8))
        moving = flow.step(v, flow_t, moving).prev_sample
    check.close(moving, state, tol=1e-3)
