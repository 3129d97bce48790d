"""What the explanations of lab02-denoising-step are held against:
a block fills the `### HIDDEN TESTS` line of its check."""

# %% fixture="rerun"
@reference
def rerun():
    """The facts of the traced run of section 3, made again."""
    from inferlab.models import load_pipeline
    from inferlab.trace import trace

    pipe = load_pipeline("bundled", "cpu")
    pipe.set_progress_bar_config(disable=True)
    with trace(pipe) as again:
        pipe("a large blue ring left of a small yellow square on a white background", num_inference_steps=10,
             guidance_scale=4.0)
    return again.facts()

# %% fixture="words"
from inferlab.lab import Words

words = Words("step-in-words", """
state: in one step, what the UNet predicts, and what the scheduler makes from that
    who: the scheduler = scheduler.step, DDIM step, sampler / the UNet = denoiser, model, network /
        the VAE / guidance = classifier-free guidance
    predicts = estimates, outputs: the noise = noise prediction, noise_pred, predicted noise, epsilon /
        the next latents / the picture
    computes = makes, calculates: the next latents = new latents, cleaner latents, less noisy
        latents / the noise / the picture = image
    changes = updates, transforms, denoises: the latents / the text = prompt, embedding / the weights
    combines: both predictions = two predictions, both halves
    adds: fresh noise = new noise, more noise
    trains: the weights
    more: from the latents / from the noise = with noise, using noise, from that noise,
        with that noise, using that noise /
        from the text / in each step = in every step, at each step, once in each
        step, once per step / once after the loop = after the loop
axis: how long the batch axis is in the UNet and in scheduler.step, and why
    who: the batch axis = batch, axis 0, first axis / the channel axis = channels, axis 1 /
        height and width = height, width, sides
    has length # = is #, is # long:
    goes from # to # = grows from # to #, changes from # to #:
    holds = counts: the empty text and my prompt = my prompt and empty text, conditional and
        unconditional half, unconditional and conditional half / the same prompt twice /
        two pictures = two images / the latents and the noise
    stays the same = is the same:
    changes:
    more: in the UNet / on the way into the UNet = before the UNet / in scheduler.step = in scheduler /
        on the way to scheduler.step = after the UNet, on the way to scheduler /
        because of guidance = for guidance, with guidance / because of the steps = for steps
trade-off: what more steps give, and what they cost
    who: more steps
    raise = increase: the quality = picture quality, fidelity / the latency = time, run time / the
        number of UNet calls = UNet calls, calls of UNet / the memory / the number of VAE calls =
        VAE calls
    lower = reduce, decrease: the quality / the latency / the number of UNet calls / the memory /
        the number of VAE calls / the error
    leave alone = do not change, keep: the quality / the latency / the number of UNet calls / the
        memory / the number of VAE calls
calls: a number
""")

# %% check="words-calls"
from inferlab.lab.explain import typed

### FIXTURE rerun

check.slot(lambda: typed(check.explanation("step-in-words"), "calls", rerun()["unet.calls"]),
           "how often the UNet ran")

# %% check="words-state"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("step-in-words"), "state", """
wanted: who makes the next latents, and from what
    the scheduler | computes | the next latents | +from the noise / from the latents / in each step
    the scheduler | changes | the latents | +from the noise / from the latents / in each step
wanted: what the UNet predicts
    the UNet | predicts / computes | the noise | from the latents / from the text / in each step
true
    the VAE | computes | the picture | from the latents / once after the loop
    guidance | combines | both predictions | in each step
    guidance | computes | the noise | in each step
false: Predicting is the UNet's part. The scheduler only does arithmetic with the prediction.
    the scheduler | predicts | *
false: The UNet only predicts. What applies its prediction to the latents?
    the UNet | computes / predicts | the next latents
    the UNet | changes | the latents
false: There are no pixels before the VAE. It works once, after the loop.
    * | predicts / computes | the picture
    the VAE | * | *
false: A step takes noise out of the latents. It puts none in.
    * | adds | fresh noise
false: Nothing is trained here, and the text stays the same: only the latents change from step to step.
    * | trains | *
    * | changes | the text / the weights
"""), "what is transformed, and by what")

# %% check="words-axis"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("step-in-words"), "axis", """
wanted: how long the batch axis is in the UNet
    the batch axis | has length 2 | | +in the UNet / +on the way into the UNet / because of guidance
    the batch axis | goes from 1 to 2 | | +on the way into the UNet / because of guidance
wanted: how long it is in scheduler.step
    the batch axis | has length 1 | | +in scheduler.step / +on the way to scheduler.step / because of guidance
    the batch axis | goes from 2 to 1 | | +on the way to scheduler.step / because of guidance
wanted: why
    the batch axis | holds | the empty text and my prompt | in the UNet / on the way into the UNet /
        because of guidance
    the batch axis | has length 2 | | in the UNet / on the way into the UNet / +because of guidance
    the batch axis | goes from 1 to 2 / changes | | on the way into the UNet / +because of guidance
    the batch axis | has length 1 | | in scheduler.step / on the way to scheduler.step / +because of guidance
    the batch axis | goes from 2 to 1 / changes | | on the way to scheduler.step / +because of guidance
true
    the channel axis / height and width | stays the same | | *
    the channel axis | has length 4 | | *
    height and width | has length 16 | | *
    the batch axis | stays the same | | +in scheduler.step / +in the UNet
false: Guidance makes the batch of each call longer. It changes no other axis, and not the number of steps.
    the channel axis / height and width | goes from # to # / changes
    the batch axis | stays the same
    * | * | * | because of the steps
false: Both rows are one picture in one step: with the empty text and with your prompt.
    the batch axis | holds | *
"""), "what changes shape, with its numbers")

# %% check="words-trade-off"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("step-in-words"), "trade-off", """
wanted: what more steps give
    more steps | raise | the quality
    more steps | lower | the error
wanted: what they cost
    more steps | raise | the latency / the number of UNet calls
true
    more steps | leave alone | the memory / the number of VAE calls
false: Each step is another call of the UNet.
    more steps | lower / leave alone | the latency / the number of UNet calls
false: The VAE decodes once, and the weights are loaded once, whatever the steps.
    more steps | * | the memory / the number of VAE calls
"""), "what more steps gain and cost")
