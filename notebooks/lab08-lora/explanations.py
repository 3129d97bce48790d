"""What the explanations of lab08-lora are held against:
a block fills the `### HIDDEN TESTS` line of its check."""

# %% fixture="rerun"
@reference
def rerun():
    """Calls of all factors in the counted run, made again."""
    import torch
    from inferlab.models import load_pipeline
    from inferlab.models.adapters import ADAPTERS, STYLES
    from inferlab.models.quiet import quiet
    from inferlab.trace import trace

    model = load_pipeline("bundled", "cpu")
    model.set_progress_bar_config(disable=True)
    with quiet():
        for style in STYLES:
            model.load_lora_weights(ADAPTERS, weight_name=f"{style}.safetensors", adapter_name=style)
    model.set_adapters(list(STYLES), [1.0, 0.5])
    with torch.no_grad(), trace(model, depth="all") as again:
        model("a red circle", num_inference_steps=3, guidance_scale=4.0, height=32, width=32,
              output_type="latent")
    return len(again.find("*.lora_A.*")) + len(again.find("*.lora_B.*"))

# %% fixture="words"
from inferlab.lab import Words

words = Words("lora-in-words", """
beside: what an adapter that is not fused adds to, and how often
    who: an unfused adapter = adapter, LoRA
    adds to: the outputs of projections = output of a projection, projection's output / the matrices of
        projections = matrix of a projection, weights of projections / the latents / the prompt = text,
        prompt embeddings
    more: in each call = in every call, in each pass, in every pass, in each step, in
        every step / once before the run = once, before the
        run
rank: what a larger rank makes larger, and what it does to a picture
    who: a larger rank = rank, higher rank
    raises = increases: the bytes of the factors = bytes, size of the file / the size of the picture =
        picture's size / the shape of a fused matrix = fused matrix's shape,
        shape of fused matrices, fused matrices' shape
    leaves alone = keeps, does not change: the bytes of the factors / the size of the picture / the shape of
        a fused matrix
calls: a number
""")

# %% check="words-state"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("lora-in-words"), "beside", """
wanted: what it adds to, and how often
    an unfused adapter | adds to | the outputs of projections | +in each call
true
    an unfused adapter | adds to | the outputs of projections
false: As long as an adapter is not fused, W stays as it is: the product is added to what the layer gives.
    * | adds to | the matrices of projections
false: An adapter is no control: it gets nothing to look at, and adds nothing to latents or text.
    * | adds to | the latents / the prompt
false: Beside its matrix the adapter is computed anew for each input.
    * | adds to | * | once before the run
"""), "an adapter beside its matrix")

# %% check="words-rank"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("lora-in-words"), "rank", """
wanted: what it makes larger
    a larger rank | raises | the bytes of the factors
wanted: what it does to a picture
    a larger rank | leaves alone | the size of the picture
true
    a larger rank | leaves alone | the shape of a fused matrix
false: The rank is an axis between the factors, and their product no longer has it.
    a larger rank | raises | the size of the picture / the shape of a fused matrix
false: The factors have rank * (in + out) numbers.
    a larger rank | leaves alone | the bytes of the factors
"""), "the rank")

# %% check="words-entries"
from inferlab.lab.explain import typed

### FIXTURE rerun

check.slot(lambda: typed(check.explanation("lora-in-words"), "calls", rerun()), "calls of all factors")
