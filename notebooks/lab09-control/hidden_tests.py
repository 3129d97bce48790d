"""The hidden tests of lab09-control:
a block fills the `### HIDDEN TESTS` line of the check it names."""

# %% check="forecast"
@reference
def traced(prompts, height, width, steps, guidance_scale, scale, start, end):
    """The truth: such a call of the bundled pipeline with its ControlNet, traced."""
    import torch
    from diffusers import StableDiffusionControlNetPipeline
    from inferlab.models import load_pipeline
    from inferlab.models.control import load_controlnet
    from inferlab.trace import trace

    parts = load_pipeline("bundled", "cpu").components
    model = StableDiffusionControlNetPipeline(**parts, controlnet=load_controlnet(parts["unet"]),
                                              requires_safety_checker=False)
    model.set_progress_bar_config(disable=True)
    given = torch.zeros(prompts, 3, height, width)
    with torch.no_grad(), trace(model) as seen:
        model(["a red circle"] * prompts, image=given, num_inference_steps=steps,
              height=height, width=width,
              guidance_scale=guidance_scale, controlnet_conditioning_scale=scale,
              control_guidance_start=start, control_guidance_end=end, output_type="latent")
    asked = seen.find("controlnet")
    skips, _ = asked[0].outputs
    return {"scales": [call.inputs["conditioning_scale"] for call in asked], "first": tuple(skips[0].shape)}

with check.part("other windows and scales", weight=4):
    for window in ((5, 0.8, 0.2, 0.6), (6, 1.0, 0.0, 0.4), (4, 1.5, 0.3, 1.0), (3, 0.0, 0.0, 1.0)):
        steps, size, begin, finish = window
        call = (1, 64, 64, steps, 1.0, size, begin, finish)
        got, want = ask_forecast(*call)["scales"], traced(*call)["scales"]
        check.mistake("outside its window, or at a scale of 0, the network is called all the same: its "
                      "answer is multiplied by zero", when=len(got) < steps)
        check.mistake("a pass is inside only if it also ends inside: (i + 1) / n counts for the end",
                      when=got == [size * (begin <= i / steps < finish) for i in range(steps)] != want)
        check.mistake("the window says when, the scale says how much: inside it stays what it is",
                      when=size not in (0.0, 1.0) and got == [float(value > 0) for value in want])
        check.equal(got, want)
with check.part("the shape for three pictures of 72x104", weight=3):
    call = (3, 72, 104, 2, 5.0, 1.0, 0.0, 1.0)
    first, want = ask_forecast(*call)["first"], traced(*call)["first"]
    check.mistake("control edits no pixels: a residual has the size of the UNet's tensors",
                  when=first[2:] == (72, 104))
    check.mistake("height comes before width", when=first[2:] == (13, 9))
    check.mistake("guidance doubles the UNet's batch, and the residuals are added to all of it",
                  when=first[0] == 3)
    check.equal(first, want)

# %% check="controlled"
with check.part("several pictures at half the scale", weight=5):
    got, without, asked, given = answer(2, 2, 0.5)
    some_latents, some_text, lines_given = given
    seen_lines = torch.cat([lines_given] * 2)
    want = without + 0.5 * added(some_latents, some_text, seen_lines)
    check.mistake("each residual belongs to the skip of its own place: both lists have the same order",
                  when=close(got, without + 0.5 * added(some_latents, some_text, seen_lines,
                                                        order=range(5, -1, -1)), tol=1e-2))
    check.mistake("the seventh residual is missing: it belongs to the middle",
                  when=close(got, without + 0.5 * added(some_latents, some_text, seen_lines, 0), tol=1e-2))
    check.mistake("the middle's residual has the same scale as the others",
                  when=close(got, without + 0.5 * added(some_latents, some_text, seen_lines, 20), tol=1e-2))
    check.mistake("the scale is applied twice",
                  when=close(got, without + 0.25 * added(some_latents, some_text, seen_lines), tol=1e-2))
    check.mistake("the scale is not applied",
                  when=close(got, without + added(some_latents, some_text, seen_lines), tol=1e-2))
    check.equal(asked, [4], "`control` is asked once, about all rows")
    check.close(got, want, tol=1e-2)

# %% check="residuals-of-pass"
with check.part("windows of other lengths", weight=4):
    for n, begin, finish in ((6, 0.0, 0.4), (5, 0.2, 0.6), (7, 0.3, 1.0), (4, 0.0, 0.1)):
        passes, called = run_of(n, 1.0, begin, finish)
        right = sum(begin <= i / n and (i + 1) / n <= finish for i in range(n))
        check.mistake("a call in every pass: that is what was to be saved", when=called == n)
        check.mistake("a pass is inside only if it also ends inside: (i + 1) / n counts for the end",
                      when=called == sum(begin <= i / n < finish for i in range(n)) != right)
        check.mistake("one pass too many: `<=` lets the pass that begins at the end in",
                      when=called == sum(begin <= i / n <= finish for i in range(n)) != right)
        check.equal(called, right)
        for got, kept_scale, ones in passes:
            check.equal(got is None, kept_scale == 0.0, "None, just where the pass is outside the window")
            if got is not None:
                check.close(got, scaled(kept_scale, ones))
with check.part("other scales", weight=3):
    for size in (0.5, 2.0, 0.0):
        passes, called = run_of(3, size, 0.0, 1.0)
        check.mistake("a network with a scale of 0 adds nothing: it need not be called",
                      when=size == 0 and called == 3)
        for got, _, ones in passes:
            check.equal(got is None, size == 0, "None, just where the scale is 0")
            if got is not None:
                check.mistake("the scale is applied twice: what `call` returns is multiplied already",
                              when=close(got, scaled(size * size, ones)))
                check.close(got, scaled(size, ones))
