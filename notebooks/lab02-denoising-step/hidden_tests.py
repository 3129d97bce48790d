"""The hidden tests of lab02-denoising-step:
a block fills the `### HIDDEN TESTS` line of the check it names."""

# %% check="forecast"
check.mistake("the UNet works on latents: pixels appear only when the VAE decodes",
              when=got["output"][1:] == (3, 128, 128))

# %% check="forecast"
@reference
def traced(prompts, height, width, guidance_scale, steps):
    """The truth: a real run of the bundled pipeline, traced."""
    from inferlab.models import load_pipeline
    from inferlab.trace import trace

    pipe = load_pipeline("bundled", "cpu")
    pipe.set_progress_bar_config(disable=True)
    with trace(pipe) as run:
        pipe(["a red circle"] * prompts, height=height, width=width, guidance_scale=guidance_scale,
             num_inference_steps=steps, output_type="latent")
    at = run["unet"]
    return {"calls": at.calls, "sample": tuple(at.inputs["sample"].shape), "output": tuple(at.outputs.shape)}

with check.part("the number of calls, with and without guidance", weight=1):
    got = [ask_forecast(2, 128, 128, scale, 3)["calls"] for scale in (7.5, 1.0)]
    check.mistake("guidance doubles the batch of each call, not the number of calls", when=got[0] == 6)
    check.mistake("one step is not the generator: the UNet runs once for every timestep", when=got == [1, 1])
    check.equal(got, [traced(2, 128, 128, 7.5, 3)["calls"], traced(2, 128, 128, 1.0, 3)["calls"]])
with check.part("the latents of three prompts at 96x160 without guidance", weight=2):
    want, got = traced(3, 96, 160, 1.0, 2), ask_forecast(3, 96, 160, 1.0, 2)
    check.mistake("height comes before width", when=got["sample"] == (3, 4, 20, 12))
    check.mistake("guidance is off in this run, so nothing is doubled", when=got["sample"] == (6, 4, 12, 20))
    check.mistake("the UNet works on latents: pixels appear only when the VAE decodes",
                  when=got["output"][1:] == (3, 96, 160))
    check.equal([got["sample"], got["output"]], [want["sample"], want["output"]])
with check.part("where guidance begins", weight=2):
    got = [ask_forecast(2, 128, 128, scale, 3)["sample"][:1] for scale in (1.0, 1.5)]
    check.mistake("a guidance_scale of exactly 1 is off: the pipeline asks for more than 1",
                  when=got == [(4,), (4,)])
    check.equal(got, [(2,), (4,)])

# %% check="ddim-step"
x0 = (x - (1 - a) ** 0.5 * e) / a**0.5
check.mistake("the weights are square roots of alpha and of 1 - alpha",
              when=close(got, p * (x - (1 - a) * e) / a + (1 - p) * e))
check.mistake("you stopped at the predicted clean sample: the noise has to go back in, "
              "at the previous level",
              when=close(got, x0))
check.mistake("alpha_t and alpha_prev have changed places: this step makes the latents noisier",
              when=close(got, a**0.5 * (x - (1 - p) ** 0.5 * e) / p**0.5 + (1 - a) ** 0.5 * e))

# %% check="ddim-step"
with check.part("other timesteps, the last one included", weight=2):
    for t, count, one in ((951, 20, True), (101, 10, True), (1, 20, True), (1, 20, False)):
        want, a, p = library(e, x, t, count, clip_sample=False, set_alpha_to_one=one)
        got = theirs.ddim_step(e, x, a, p)
        check.close(got, want, tol=1e-4 if t > 900 else 1e-5)
with check.part("with clip_sample", weight=3):
    for t, limit in ((501, 1.0), (201, 0.5)):
        want, a, p = library(e, x, t, clip_sample=True, clip_sample_range=limit)
        got = theirs.ddim_step(e, x, a, p, limit)
        x0 = (x - (1 - a) ** 0.5 * e) / a**0.5
        clipped = x0.clamp(-limit, limit)
        again = (x - a**0.5 * clipped) / (1 - a) ** 0.5
        check.mistake("you ignored clip_range", when=close(got, p**0.5 * x0 + (1 - p) ** 0.5 * e))
        check.mistake("you derived the noise again from the clipped sample: the library does so only with "
                      "use_clipped_model_output",
                      when=close(got, p**0.5 * clipped + (1 - p) ** 0.5 * again))
        check.mistake("you clipped the result: only the predicted clean sample is clipped",
                      when=close(got, (p**0.5 * x0 + (1 - p) ** 0.5 * e).clamp(-limit, limit)))
        check.close(got, want, tol=1e-5)

# %% check="one-step"
with check.part("one call of the UNet with both halves", weight=1):
    got, seen, given = observe(4.0)
    check.mistake("two calls of the UNet give the same numbers and cost two launches: both halves go in one "
                  "call",
                  when=len(seen) == 2)
    check.equal(len(seen), 1)
    check.close(seen[0], (torch.cat([lat, lat]), 401, emb), tol=0)
with check.part("the guided prediction", weight=2):
    got, seen, given = observe(4.0)
    eps = given[-1][0]
    check.mistake("the two halves must be combined before the scheduler sees them", when=len(eps) == 4)
    check.mistake("the halves have changed places: the unconditional rows come first",
                  when=close(eps, asked + 4.0 * (plain - asked), tol=1e-4))
    check.mistake("you start from the conditional half: that is a guidance of s + 1",
                  when=close(eps, asked + 4.0 * (asked - plain), tol=1e-4))
    check.mistake("you left out the unconditional part that the difference is added to",
                  when=close(eps, 4.0 * (asked - plain), tol=1e-4))
    check.close(eps, plain + 4.0 * (asked - plain), tol=1e-4)
with check.part("what the scheduler gets", weight=1):
    got, seen, given = observe(4.0)
    check.mistake("the scheduler gets the latents themselves, not the doubled copy that went into the UNet",
                  when=len(given[0][2]) == 4)
    check.close(given[0][1:], (401, lat), tol=0)
with check.part("guidance off", weight=1):
    for scale in (1.0, 0.0):
        got, seen, given = observe(scale)
        check.close(seen[0], (lat, 401, emb[2:]), tol=0)
        check.close(given[0], (asked, 401, lat), tol=1e-5)
        check.close(got, 0.9 * lat + asked.mean(), tol=1e-5)

# %% check="diagnosis"
with check.part("networks that are not exact, from alpha 0.05 to 0.9", weight=1):
    for a in (0.05, 0.3, 0.9):
        x0, eps, given = outputs(a, error=0.1)
        got = [check.learner.which_target(y, x0, eps, a) for y in given]
        check.mistake("at this alpha the velocity is nearly the noise, "
                      "or nearly minus the clean sample: compare it too, not only the other two",
                      when="v_prediction" not in got)
        check.equal(got, names)

pairs = [("v_prediction", "epsilon"), ("sample", "v_prediction"), ("sample", "epsilon"),
         ("epsilon", "v_prediction"), ("v_prediction", "sample"), ("epsilon", "sample")]
truth, label = pairs[check.variant(6)]

def answer_to(key):
    """One entry of the learner's diagnosis."""
    got = check.learner.diagnose()
    check.true(isinstance(got, dict) and key in got,
               '`diagnose()` returns a dict with the keys "expects" and "predicts"')
    check.true(got[key] in names, f'"{key}" is one of {", ".join(names)}')
    return got[key]

with check.part("what the scheduler expects", weight=1):
    check.equal(answer_to("expects"), label)
with check.part("what the network predicts", weight=3):
    got = answer_to("predicts")
    check.mistake("that is what the label says, and the label is what is wrong: ask the network",
                  when=got == label)
    check.true(got == truth,
               "not what your suspect's network answers with: ask it at a timestep in the middle: "
               "the three candidates are well apart there, and the network still answers well")

# %% check="repair"
a, p = abar[1], abar[-49]
check.mistake("prev is negative, and Python counts a negative index from the end: this is the noisy end "
              "of the table",
              when=close(got, p**0.5 * (x - (1 - a) ** 0.5 * e) / a**0.5 + (1 - p) ** 0.5 * e))
check.mistake("a skipped step leaves its noise in: the library does update at the last timestep",
              when=close(got, x))

# %% check="repair"
with check.part("the last step of every configuration", weight=3):
    for count, one, offset in ((20, True, 1), (10, True, 0), (12, False, 1), (20, False, 0)):
        got, want, abar = both(offset, count, one, offset)
        a, p = abar[offset], abar[0]
        x0 = (x - (1 - a) ** 0.5 * e) / a**0.5
        clamped = p**0.5 * x0 + (1 - p) ** 0.5 * e
        check.mistake("the index was clamped to 0: right only where set_alpha_to_one is False",
                      when=one and not close(clamped, want) and close(got, clamped))
        check.mistake("the predicted clean sample was returned: right only where set_alpha_to_one is True",
                      when=not one and not close(x0, want) and close(got, x0))
        check.mistake("a skipped step leaves its noise in", when=not close(x, want) and close(got, x))
        check.close(got, want, tol=1e-5)
with check.part("the step whose previous timestep is exactly 0", weight=1):
    got, want, abar = both(50, 20, one=True, offset=0)
    a = abar[50]
    check.mistake("0 is a timestep like any other: only a negative one is past the end of the table",
                  when=close(got, (x - (1 - a) ** 0.5 * e) / a**0.5))
    check.close(got, want, tol=1e-5)
