"""What the explanations of lab03-guidance are held against:
a block fills the `### HIDDEN TESTS` line of its check."""

# %% fixture="rerun"
@reference
def rerun():
    """The rows of all calls of the UNet together in the traced run of section 3, made again."""
    import torch
    from diffusers.callbacks import SDCFGCutoffCallback
    from inferlab.models import load_pipeline
    from inferlab.trace import trace

    model = load_pipeline("bundled", "cpu")
    model.set_progress_bar_config(disable=True)
    with torch.no_grad(), trace(model) as again:
        model("a red circle", num_inference_steps=6, guidance_scale=4.0,
              height=32, width=32, output_type="latent",
              callback_on_step_end=SDCFGCutoffCallback(cutoff_step_ratio=0.5))
    return sum(call.inputs["sample"].shape[0] for call in again.find("unet"))

# %% fixture="words"
from inferlab.lab import Words

words = Words("guidance-in-words", """
guidance: what guidance combines, and whose place a negative prompt takes
    who: guidance = classifier-free guidance, CFG, the line, the formula / the negative prompt / a classifier
    combines = mixes: two answers of the UNet = both answers of UNet, both answers, both predictions,
        two predictions of UNet, two predictions, cond and uncond, uncond and cond / answers of two
        networks = two networks / two pictures = two images
    changes: the noise prediction = noise_pred, prediction / the timesteps = schedule, noise levels / the
        weights of the UNet = weights
    needs: a classifier / a second answer of the UNet = second answer, second prediction
    takes the place of = replaces, stands in place of: the empty prompt = empty text / the prompt = my prompt
    more: in each guided pass = in every guided pass, in each pass, in each step, in each guided step / once
        after the loop = after the loop
larger: for a scale of 16 instead of 4: what your runs say of saturation, variety and right pictures
    who: the larger scale = larger scale, scale of 16, scale 16, more guidance
    raises = increases: the saturation = colors / the variety = diversity / the number of right pictures =
        right pictures, share of right pictures / the number of UNet calls = UNet calls, calls
    lowers = reduces, decreases: the saturation / the variety / the number of right pictures / the number of
        UNet calls
    leaves alone = does not change, keeps: the saturation / the variety / the number of right pictures / the
        number of UNet calls
rows: a number
""")

# %% check="words-guidance"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("guidance-in-words"), "guidance", """
wanted: what guidance combines
    guidance | combines | two answers of the UNet | in each guided pass
wanted: whose place a negative prompt takes
    the negative prompt | takes the place of | the empty prompt | in each guided pass
true
    guidance | changes | the noise prediction | in each guided pass
    guidance | needs | a second answer of the UNet | in each guided pass
    the negative prompt | changes | the noise prediction | in each guided pass
false: No classifier is there. The UNet itself answers with and without the prompt.
    a classifier | * | *
    * | needs | a classifier
    guidance | combines | answers of two networks
false: Guidance does not touch the scheduler. It hands it another noise_pred, at the same timesteps.
    * | changes | the timesteps
false: Two answers are combined in the loop, before each step. There are no pictures yet.
    * | combines | two pictures
    * | * | * | once after the loop
false: Nothing is trained here: the same weights give both answers.
    * | changes | the weights of the UNet
false: Your prompt stays at its end of the line. A negative prompt stands at the other one.
    the negative prompt | takes the place of | the prompt
    guidance | takes the place of | *
"""), "what guidance is")

# %% check="words-larger"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("guidance-in-words"), "larger", """
wanted: what it does to the saturation
    the larger scale | raises | the saturation
wanted: what it does to the variety
    the larger scale | lowers | the variety
wanted: what it does to the number of right pictures
    the larger scale | lowers | the number of right pictures
true
    the larger scale | leaves alone | the number of UNet calls
false: More is not better: far along the line colors run high, and pictures become alike and wrong.
    the larger scale | lowers / leaves alone | the saturation
    the larger scale | raises / leaves alone | the variety / the number of right pictures
false: The scale is a factor in one line. It has no part in how often the UNet is called.
    the larger scale | raises / lowers | the number of UNet calls
"""), "what a larger scale does")

# %% check="words-rows"
from inferlab.lab.explain import typed

### FIXTURE rerun

check.slot(lambda: typed(check.explanation("guidance-in-words"), "rows", rerun(), {
    "that is the number of calls: a guided one has two rows": 6,
    "guidance stopped on the way: the last calls have one row": 12,
    "the library's callback guides one pass more than half": 9,
}), "rows in all calls")
