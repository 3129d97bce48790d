"""What the explanations of lab05-latents are held against:
a block fills the `### HIDDEN TESTS` line of its check."""

# %% fixture="rerun"
@reference
def rerun():
    """(shape of the moments, shape of the mask at latent size) of the lab's runs, made again."""
    import torch
    from inferlab.models import load_pipeline
    from inferlab.models.scenes import render, sample_scenes
    from inferlab.trace import trace

    model = load_pipeline("bundled", "cpu")
    given = render(sample_scenes(2, torch.Generator().manual_seed(18), two=0.0))
    with torch.no_grad(), trace(model) as again:
        model.vae.encode(given * 2 - 1)
    moments_shape = tuple(again.facts()["vae.encode.outputs.latent_dist.parameters.shape"])
    return moments_shape, (1, 1, *moments_shape[2:])

# %% fixture="words"
from inferlab.lab import Words

words = Words("latents-in-words", """
latents: what one place of the latents stands for, and what one channel is
    who: a place = place of latents, position / a channel = channel of latents, latent channel
    stands for = covers, describes: a patch of 8x8 pixels = 8x8 pixels, patch, 64 pixels / one pixel =
        pixel, single pixel / the whole picture = whole image
    is: a learned number = learned feature, learned value, number that was learned / a color = red, green,
        blue, brightness / a smaller picture = small picture, thumbnail
scale: what a scaling factor is measured on, and what it does to the latents' standard deviation
    who: the scaling factor = scaling_factor, scale, factor
    is measured on = comes from: this VAE's latents = latents, latents of this VAE, VAE's latents /
        the pixels = pictures / the denoiser's answers = UNet's answers
    is the same: in every VAE = for every VAE, everywhere / in encoding and decoding
    brings the standard deviation to = makes standard deviation, sets standard deviation to: 1 = one /
        0.18215
noise: who predicts or takes out the noise in latents (one is enough), and what the VAE does with it
    who: the VAE = decoder, encoder / the UNet = denoiser / the scheduler = scheduler.step
    takes out = removes: the noise = noise in latents, noise of latents
    draws = shows, decodes: the noise / the clean picture = clean image
    predicts = estimates: the noise
tiling: what a tile takes its means over, and what tiling does to the colors
    who: a tile = each tile / tiling
    takes its means over = normalizes over: the tile alone = tile, its own places, itself /
        the whole picture
    changes = moves: the colors = values / the shape
    leaves alone = keeps: the colors / the shape
moments: a shape
mask: a shape
""")

# %% check="words-contract"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("latents-in-words"), "latents", """
wanted: what a place stands for
    a place | stands for | a patch of 8x8 pixels
wanted: what a channel is
    a channel | is | a learned number
false: Latents are no small pictures: edited like one, they decode to something else. No channel is a color.
    * | is | a smaller picture / a color
false: There is one place for each 8x8 pixels.
    a place | stands for | one pixel / the whole picture
"""), "what latents are")
check.slot(lambda: words.grade(check.explanation("latents-in-words"), "scale", """
wanted: what it is measured on
    the scaling factor | is measured on | this VAE's latents
wanted: what it does to the standard deviation
    the scaling factor | brings the standard deviation to | 1
true
    the scaling factor | is the same | in encoding and decoding
false: The scale is no universal number. Each VAE's was measured on its own latents.
    the scaling factor | is the same | in every VAE
    the scaling factor | brings the standard deviation to | 0.18215
false: The factor comes from a standard deviation of latents. Neither pixels nor the denoiser are asked.
    the scaling factor | is measured on | the pixels / the denoiser's answers
"""), "the scale")

# %% check="words-values"
### FIXTURE words

check.slot(lambda: words.grade(check.explanation("latents-in-words"), "noise", """
wanted: who takes the noise out
    the UNet / the scheduler | takes out | the noise
    the UNet | predicts | the noise
wanted: what the VAE does with noise
    the VAE | draws | the noise
false: The VAE does not denoise. Noise in the latents becomes blotches; the denoiser takes it out before.
    the VAE | takes out / predicts | *
    the VAE | draws | the clean picture
false: The denoiser and the scheduler never see a picture. They work on latents.
    the UNet / the scheduler | draws | *
false: Predicting is the UNet's part.
    the scheduler | predicts | *
"""), "noise in latents")
check.slot(lambda: words.grade(check.explanation("latents-in-words"), "tiling", """
wanted: what a tile takes its means over
    a tile | takes its means over | the tile alone
wanted: what tiling does to the colors
    tiling / a tile | changes | the colors
true
    tiling | takes its means over | the tile alone
    tiling / a tile | leaves alone | the shape
false: A tile sees nothing of its neighbors, so its means are its own.
    * | takes its means over | the whole picture
false: Tiling is not lossless. Compare the means of the halves, whole and in tiles.
    * | leaves alone | the colors
false: The tiles are put together to the same shape.
    * | changes | the shape
"""), "tiling")

# %% check="words-shapes"
from inferlab.lab.explain import typed

### FIXTURE rerun

check.slot(lambda: typed(check.explanation("latents-in-words"), "moments", rerun()[0]), "the moments")
check.slot(lambda: typed(check.explanation("latents-in-words"), "mask", rerun()[1]), "the mask of latents")
