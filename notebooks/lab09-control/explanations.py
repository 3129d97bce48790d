"""What the explanations of lab09-control are held against:
a block fills the `### HIDDEN TESTS` line of its check."""

# %% fixture="rerun"
@reference
def rerun():
    """Shape of the middle's residual in section 3's traced run, made again."""
    import torch
    from diffusers import StableDiffusionControlNetPipeline
    from inferlab.models import load_pipeline
    from inferlab.models.control import load_controlnet
    from inferlab.trace import trace

    parts = load_pipeline("bundled", "cpu").components
    model = StableDiffusionControlNetPipeline(**parts, controlnet=load_controlnet(parts["unet"]),
                                              requires_safety_checker=False)
    model.set_progress_bar_config(disable=True)
    with torch.no_grad(), trace(model) as again:
        model("a yellow square", image=torch.zeros(1, 3, 128, 128), num_inference_steps=6, guidance_scale=4.0,
              control_guidance_end=0.5, output_type="latent")
    return tuple(again.find("controlnet")[0].outputs[1].shape)

# %% fixture="words"
from inferlab.lab import Words

words = Words("control-in-words", """
control: what the ControlNet computes and how often, and what that is added to
    who: the ControlNet = control network, second encoder / the residuals = residuals of the ControlNet,
        ControlNet's residuals / the lines = edges
    computes = makes, returns: residuals / the noise prediction = noise_pred / the picture = image
    are added to = is added to: the skips of the UNet = skips, skip connections, UNet's skips / the middle of
        the UNet = middle, UNet's middle / the pixels = pixels of the picture / the tokens of the caption =
        caption's tokens, text tokens
    more: in each pass = in every pass, in each step, in every step / inside its window only = only inside its
        window / once before the loop = before the loop
conditions: through what a caption, lines and an image prompt enter the UNet
    who: the caption = words / the lines / the image prompt = image tokens
    enters through = comes in through: the attention to the text = text's attention, attention to the caption
        / the skips of the UNet / an attention of its own = its own attention, one more attention, second
        attention / the pixels
window: what a window that ends at half changes, and what it leaves alone
    who: a window that ends at half = window, shorter window
    changes: the picture / the number of ControlNet calls = ControlNet calls, calls of the ControlNet / the
        number of UNet calls = UNet calls, calls of the UNet
    halves = cuts in half: the number of ControlNet calls / the number of UNet calls
    leaves alone: the picture / the number of ControlNet calls / the number of UNet calls
residual: a shape
""")

# %% check="words-control"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("control-in-words"), "control", """
wanted: what the ControlNet computes, and how often
    the ControlNet | computes | residuals | +in each pass
wanted: what that is added to
    the residuals | are added to | the skips of the UNet | in each pass / inside its window only
true
    the residuals | are added to | the middle of the UNet | in each pass / inside its window only
    the ControlNet | computes | residuals
false: Control edits no pixels. It adds to tensors inside the UNet.
    * | computes | the picture
    * | are added to | the pixels
false: Not every condition is a prompt: nothing is added to the caption's tokens.
    * | are added to | the tokens of the caption
false: Predicting the noise stays the UNet's part.
    * | computes | the noise prediction
false: Count its calls in your trace: one in each pass of the loop, inside the window and outside.
    the ControlNet | computes | residuals | inside its window only / once before the loop
false: Latents and timestep change with each pass, and the residuals with them.
    the residuals | are added to | * | once before the loop
false: The lines go into the ControlNet. What comes out of it reaches the UNet.
    the lines | computes / are added to | *
"""), "what control is")

# %% check="words-window"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("control-in-words"), "conditions", """
wanted: the caption
    the caption | enters through | the attention to the text
wanted: the lines
    the lines | enters through | the skips of the UNet
wanted: the image prompt
    the image prompt | enters through | an attention of its own
true
    the caption | enters through | the skips of the UNet
false: Not every condition is a prompt: lines never become tokens.
    the lines | enters through | the attention to the text / an attention of its own
false: Nothing enters through the pixels. The loop works on latents.
    * | enters through | the pixels
false: The image's tokens have keys, values and a softmax of their own. What it returns is added.
    the image prompt | enters through | the attention to the text / the skips of the UNet
false: The caption's attention was there before any adapter.
    the caption | enters through | an attention of its own
"""), "where conditions enter")
check.slot(lambda: words.grade(check.explanation("control-in-words"), "window", """
wanted: what it changes
    a window that ends at half | changes | the picture
wanted: what it leaves alone
    a window that ends at half | leaves alone | the number of ControlNet calls
    a window that ends at half | not: changes | the number of ControlNet calls
true
    a window that ends at half | leaves alone | the number of UNet calls
    a window that ends at half | not: changes | the number of UNet calls
false: Outside its window the ControlNet is called all the same, and its residuals are multiplied by zero.
    a window that ends at half | changes / halves | the number of ControlNet calls
false: Every pass has its call of the UNet, with control or without.
    a window that ends at half | changes / halves | the number of UNet calls
false: Later residuals are gone, so the latents are others. How much can be seen is another question.
    a window that ends at half | leaves alone | the picture
"""), "the window")

# %% check="words-entries"
from inferlab.lab.explain import typed

### FIXTURE rerun

check.slot(lambda: typed(check.explanation("control-in-words"), "residual", rerun()), "the residual")
