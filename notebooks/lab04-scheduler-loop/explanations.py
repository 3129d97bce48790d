"""What the explanations of lab04-scheduler-loop are held against:
a block fills the `### HIDDEN TESTS` line of its check."""

# %% fixture="facts"
@reference
def facts():
    """The run of section 3, traced again; its shapes and counts do not depend on prompt or seed."""
    from inferlab.models import load_pipeline
    from inferlab.trace import trace

    pipe = load_pipeline("bundled", "cpu")
    pipe.set_progress_bar_config(disable=True)
    with trace(pipe) as again:
        pipe("a red circle", num_inference_steps=4, guidance_scale=4.0, output_type="latent")
    return again.facts()

# %% fixture="words"
from inferlab.lab import Words

words = Words("the-loop", """
state: what each step transforms, by what and from what; what the UNet does, and how often
    who: the scheduler = scheduler.step, the step, solver, DDIM / the UNet = denoiser, model, network /
        guidance = classifier-free guidance / the loop
    transforms = changes, updates, advances: the latents = state / the picture = image / the timesteps /
        the weights
    predicts = estimates, outputs: the noise = noise_pred, noise prediction / the next latents / the picture
    computes = makes: the next latents = new latents, cleaner latents, less noisy latents / the picture
    combines: both predictions = two predictions, two noise predictions, both halves
    adds: the noise
    shows = displays, reports: the progress = progress bar
    more: from the predicted noise = with predicted noise, from noise, from noise_pred, with noise, with
        noise_pred, from noise prediction, using predicted noise, from that prediction / from the latents /
        from the text / in each step = once in each step, once per step, in every step, at each timestep, at
        every timestep, at each step, at every step / in one call for all steps = once for all steps
axis: how long the batch axis is in the UNet and in scheduler.step, and why; how many UNet calls there are
    who: the batch axis = batch, batch size, axis 0, first axis / the channel axis = channels, axis 1 /
        height and width = height, width, sides / the number of UNet calls = UNet calls, calls of UNet, calls
    is # = has length #, is # long, has size #, has # rows:
    goes from # to # = grows from # to #, changes from # to #:
    holds = has, contains: the empty text and my prompt = my prompt and empty text, conditional and
        unconditional half, unconditional and conditional half, empty prompt and my prompt / two pictures =
        two images / this and the previous step = two steps, previous and this step / the picture and the
        text / all timesteps = all steps, timesteps
    more: in the UNet = at the UNet, for the UNet, on the way into the UNet / in scheduler.step = in the
        scheduler, at scheduler.step, for scheduler.step, in step, on the way to scheduler.step /
        because of guidance = for guidance, with guidance / because of the steps = for steps, because of the
        timesteps
trade-off: what half the steps save, and how much of it; what they cost
    who: half the steps = half of the steps, halving the steps, halving the number of steps, fewer steps
    lower = reduce, decrease: the latency = time, run time / the number of UNet calls = compute / the
        error = distance, deviation, approximation error / the quality = picture quality, quality of the
        picture / the step size = jumps, jump, size of a step / the memory / the size of the picture =
        resolution
    raise = increase, double: the latency / the number of UNet calls / the error / the quality /
        the step size / the memory / the size of the picture
    halve = cut in half: the latency / the number of UNet calls / the memory / the size of the picture
    leave alone = do not change, keep: the latency / the number of UNet calls / the error / the quality /
        the step size / the memory / the size of the picture
    stop halfway = end halfway, stop early, end early:
    more: to a half = by half, by a half, to half, by 50%, to 50% / to a quarter = to 25%
hooks: a name
""")

# %% check="the-loop-hooks"
from inferlab.lab.explain import named

check.slot(lambda: named(check.explanation("the-loop"), "hooks", {
    "init_noise_sigma": "init_noise_sigma", "scale_model_input": "scale_model_input",
    "step": "step set_timesteps timesteps", "": "and pipe scheduler",
}, {
    "init_noise_sigma": "",
    "scale_model_input": "",
    "step": "step and set_timesteps are what was swapped; they hide nothing from the loop",
}), "why the loop did not change")

# %% check="the-loop-state"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("the-loop"), "state", """
wanted: what is transformed, by what and from what
    the scheduler | transforms | the latents | +from the predicted noise / from the latents / in each step
    the scheduler | computes | the next latents | +from the predicted noise / from the latents / in each step
wanted: what the UNet does, and how often
    the UNet | predicts | the noise | +in each step / from the latents / from the text
true
    the loop | transforms | the latents | from the predicted noise / from the latents / in each step
    the loop | computes | the next latents | from the predicted noise / from the latents / in each step
    the loop | predicts | the noise | from the latents / from the text / in each step
    guidance / the loop | combines | both predictions | from the latents / from the text / in each step
false: Predicting is the UNet's part. The scheduler only does arithmetic with the prediction.
    the scheduler / guidance | predicts | *
false: The UNet runs once in each step: a step needs the latents of the step before.
    * | * | * | in one call for all steps
false: The UNet predicts and guidance combines its predictions; neither touches the state. What does?
    the UNet | transforms / computes / predicts / combines | the latents / the next latents / both predictions
    guidance | transforms / computes | the latents / the next latents
false: There is no picture inside the loop: it holds latents.
    * | transforms / computes / predicts | the picture
false: The state is the latents. The timesteps and the weights stay as they are.
    * | transforms | the timesteps / the weights
false: A step takes noise out of the latents. It puts none in.
    * | adds | the noise
false: The bar shows the progress. The loop is the computation: it makes the next latents.
    * | shows | the progress
"""), "what the loop transforms, and by what")

# %% check="the-loop-axis"
### FIXTURE facts

### FIXTURE words

check.slot(lambda: words.grade(check.explanation("the-loop"), "axis", """
wanted: how long the batch axis is in the UNet
    the batch axis | is {unet} / goes from {step} to {unet} | | +in the UNet / because of guidance
    the batch axis | goes from {unet} to {step} | | in scheduler.step / because of guidance
wanted: how long it is in scheduler.step
    the batch axis | is {step} | | +in scheduler.step / because of guidance
    the batch axis | goes from {step} to {unet} | | +in the UNet / because of guidance
    the batch axis | goes from {unet} to {step} | | +in scheduler.step / because of guidance
wanted: why
    the batch axis | holds | the empty text and my prompt | in the UNet / because of guidance
    the batch axis | is {unet} / goes from {step} to {unet} | | in the UNet / +because of guidance
    the batch axis | is {step} / goes from {unet} to {step} | | in scheduler.step / +because of guidance
wanted: how many UNet calls there are
    the number of UNet calls | is {calls} | | in the UNet / because of the steps
true
    the channel axis | is 4 | | in the UNet / in scheduler.step
    height and width | is 16 | | in the UNet / in scheduler.step
false: Guidance doubles the batch of each call, not the number of calls: one call for each step.
    the number of UNet calls | *
false: The steps come one after another: each needs the latents of the last one.
    the batch axis | is # / goes from # to # | | because of the steps
    the batch axis | holds | all timesteps
false: Both rows are of one step and one picture: with the prompt and without it.
    the batch axis | holds / is # / goes from # to # | *
false: The latents keep their channels and sides in the loop.
    the channel axis / height and width | *
""", {"unet": facts()["unet.inputs.sample.shape"][0],
      "step": facts()["scheduler.step.inputs.sample.shape"][0], "calls": facts()["unet.calls"]}),
           "which axis matters, with its numbers")

# %% check="the-loop-trade-off"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("the-loop"), "trade-off", """
wanted: what half the steps save, and how much of it
    half the steps | lower | the latency / the number of UNet calls | +to a half
    half the steps | halve | the latency / the number of UNet calls
wanted: what they cost
    half the steps | lower | the quality
    half the steps | raise | the error
true
    half the steps | raise | the step size
    half the steps | leave alone | the memory / the size of the picture
false: One call for each step: half the steps are half the calls.
    half the steps | raise / leave alone | the latency / the number of UNet calls
    half the steps | lower | the latency / the number of UNet calls | to a quarter
false: It is another picture, further from the one that very many steps make.
    half the steps | leave alone / raise | the quality
    half the steps | leave alone / lower | the error
false: The steps are wider, but they still go all the way to the end.
    half the steps | stop halfway
    half the steps | lower / leave alone | the step size
false: The number of steps does not change the size of the picture or the memory.
    half the steps | lower / raise / halve | the memory / the size of the picture
"""), "what half the steps gain and cost")
