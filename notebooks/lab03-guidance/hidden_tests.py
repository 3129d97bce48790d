"""The hidden tests of lab03-guidance:
a block fills the `### HIDDEN TESTS` line of the check it names."""

# %% check="forecast"
@reference
def traced(prompts, steps, scale, negative_prompts, guided):
    """The truth: such a call of the bundled pipeline, traced, at a small size."""
    import torch
    from inferlab.models import load_pipeline
    from inferlab.trace import trace

    model = load_pipeline("bundled", "cpu")
    model.set_progress_bar_config(disable=True)

    def switch(pipeline, i, t, values):
        if i + 1 == guided and pipeline.do_classifier_free_guidance:
            pipeline._guidance_scale = 1.0
            return {"prompt_embeds": values["prompt_embeds"].chunk(2)[1]}
        return {}

    with torch.no_grad(), trace(model) as seen:
        model(["a red circle"] * prompts, num_inference_steps=steps, guidance_scale=scale,
              height=32, width=32, negative_prompt=negative_prompts, output_type="latent",
              callback_on_step_end=switch, callback_on_step_end_tensor_inputs=["prompt_embeds"])
    names = ("unet", "scheduler.step")
    return {name: [at.inputs["sample"].shape[0] for at in seen.find(name)] for name in names}

with check.part("three prompts, guidance throughout", weight=2):
    got, want = ask_forecast(3, 4, 7.5), traced(3, 4, 7.5, None, None)
    check.mistake("the scheduler gets one combined prediction and steps once a pass: guidance does not "
                  "change it", when=got["scheduler.step"] != want["scheduler.step"])
    check.mistake("both answers of a pass come from one call with twice the rows",
                  when=got["unet"] in ([3] * 8, [3] * 4))
    check.equal(got, want)
with check.part("where guidance is off, with negative prompts", weight=2):
    for scale in (1.0, 0.5):
        asked_for = 2, 3, scale, ["a blue star"] * 2, None
        got, want = ask_forecast(*asked_for), traced(*asked_for)
        check.mistake("at a scale of 1 or less the other answer is not needed, and not asked for: a negative "
                      "prompt is the other end of a line that nobody draws here", when=got["unet"] == [4] * 3)
        check.equal(got, want)
with check.part("switched off after two passes of five, with negative prompts", weight=1):
    got = ask_forecast(2, 5, 4.0, ["a blue star"] * 2, 2)
    check.mistake("the callback stops guidance, not the run: the other passes have one row a prompt",
                  when=got["unet"] in ([4] * 2, [4] * 5))
    check.equal(got, traced(2, 5, 4.0, ["a blue star"] * 2, 2))

# %% check="guide"
with check.part("any scale: 7.5, and also 1, 0.5 and 0", weight=2):
    for scale in (7.5, 1.0, 0.5, 0.0):
        got = check.learner.guide(other, asked, scale)
        check.mistake("that is the original paper's formula, which begins at cond: its scale is one less",
                      when=close(got, asked + scale * (asked - other)))
        check.mistake("the ends are exchanged: at 1 this draws without the prompt",
                      when=scale != 0.5 and close(got, asked + scale * (other - asked)))
        check.mistake("no exception is needed: at 1 the line gives cond by itself, and 0.5 lies before it",
                      when=scale < 1 and close(got, asked))
        check.close(got, other + scale * (asked - other), tol=1e-4)
with check.part("`rescale`, as rescale_noise_cfg", weight=2):
    for scale, share in ((7.5, 0.7), (7.5, 1.0), (3.0, 0.2)):
        plain = other + scale * (asked - other)
        got, want = check.learner.guide(other, asked, scale, share), rescale_noise_cfg(plain, asked, share)
        check.mistake("it was not rescaled", when=close(got, plain, tol=1e-4))
        check.mistake("each picture has a size of its own: one factor for the whole batch lets them mix",
                      when=close(got, plain * (share * asked.std() / plain.std() + 1 - share), tol=1e-4))
        check.mistake("the size that is wanted is that of the answer with the prompt",
                      when=close(got, rescale_noise_cfg(plain, other, share), tol=1e-4))
        check.close(got, want, tol=1e-4)

# %% check="after-pass"
with check.part("several prompts: their own rows stay", weight=2):
    for prompts in (2, 3):
        rows, seen, embeds = simulate(6, 0.5, prompts)
        check.mistake("only the last row was kept: the other pictures have lost their prompts",
                      when=1 in rows)
        check.mistake("the half that was kept is the empty one: from here on nobody knows the prompt",
                      when=close(seen[-1], embeds[:prompts]))
        check.mistake("one guided pass too many: this is asked when a pass has ended",
                      when=rows == [2 * prompts] * 4 + [prompts] * 2)
        check.equal(rows, [2 * prompts] * 3 + [prompts] * 3)
        check.equal(seen[-1], embeds[prompts:])
with check.part("other lengths and shares, as in the library's guiders", weight=2):
    for n, stop in ((7, 0.4), (10, 0.35), (5, 1.0), (50, 0.02)):
        rows, _, _ = simulate(n, stop, 1)
        check.mistake("one guided pass too many: this is asked when a pass has ended",
                      when=rows == [2] * (int(stop * n) + 1) + [1] * (n - int(stop * n) - 1))
        check.mistake("with stop = 1 guidance never stops", when=stop == 1.0 and rows != [2] * 5)
        check.equal(rows, [2] * int(stop * n) + [1] * (n - int(stop * n)))
