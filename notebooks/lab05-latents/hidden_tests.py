"""The hidden tests of lab05-latents:
a block fills the `### HIDDEN TESTS` line of the check it names."""

# %% check="forecast"
@reference
def traced(pictures, height, width, steps):
    """The truth: a real image-to-image call of the bundled pipeline, traced."""
    import torch
    from diffusers import StableDiffusionImg2ImgPipeline
    from inferlab.models import load_pipeline
    from inferlab.trace import trace

    model = load_pipeline("bundled", "cpu")
    model = StableDiffusionImg2ImgPipeline(**model.components, requires_safety_checker=False)
    model.set_progress_bar_config(disable=True)
    given = torch.zeros(pictures, 3, height, width)
    with torch.no_grad(), trace(model) as again:
        model(["a red circle"] * pictures, image=given, strength=0.5, num_inference_steps=2 * steps,
              guidance_scale=1.0)
    facts = again.facts()
    names = {"moments": "vae.encode.outputs.latent_dist.parameters", "latents": "scheduler.add_noise.outputs"}
    return len(again.find("vae.decode")), {key: tuple(facts[f"{name}.shape"]) for key, name in names.items()}

with check.part("the calls of another run", weight=2):
    call = (3, 64, 64, 2)
    counted, _ = ask_forecast(*call)
    check.mistake("the VAE stays out of the loop: pictures go in before it, and come out after it",
                  when=counted == 2)
    check.mistake("one call serves the whole batch", when=counted == 3)
    check.equal(counted, traced(*call)[0])
with check.part("the shapes, at 64x96", weight=3):
    call = (3, 64, 96, 1)
    _, got = ask_forecast(*call)
    check.mistake("latents are no small pictures: a place has 4 numbers, and none of them is a color",
                  when=got["latents"][1] == 3)
    check.mistake("the encoder answers with a mean and a spread for each number of the latents",
                  when=got["moments"] in ((3, 4, 8, 12), (3, 3, 8, 12)))
    check.mistake("height comes before width", when=got["latents"] == (3, 4, 12, 8))
    check.mistake("the loop works on latents: pixels are there before the encoder and after the decoder",
                  when=got["latents"][2:] == (64, 96))
    check.equal(got, traced(*call)[1])

# %% check="contract"
@reference
def bundled_latents():
    """The bundled VAE's latents of 4 scenes that the lab does not draw."""
    import torch
    from inferlab.models import load_pipeline
    from inferlab.models.scenes import render, sample_scenes

    model = load_pipeline("bundled", "cpu")
    given = render(sample_scenes(4, torch.Generator().manual_seed(77)))
    with torch.no_grad():
        return model.vae.encode(given * 2 - 1).latent_dist.mode()

with check.part("a draw from the spread, with the shift of FLUX", weight=2):
    for seed, channels, shift, factor in ((2, 16, 0.1159, 0.3611), (3, 4, -2.0, 0.25),
                                          (4, 4, 0.0, 0.18215)):
        moments_said, mean_said, spread_said, draw_said = said(seed, channels)
        got = check.learner.to_model(moments_said, draw_said, shift, factor)
        check.tensor(got, shape=mean_said.shape)
        off = shift
        check.mistake("the draw was left out: this is the mode",
                      when=close(got, (mean_said - off) * factor, tol=1e-4))
        drawn = mean_said + spread_said * draw_said
        check.mistake("the shift belongs to the VAE's latents: subtract it before you scale",
                      when=off and close(got, drawn * factor - off, tol=1e-4))
        check.mistake("the shift was forgotten, or has the wrong sign",
                      when=off and any(close(got, (drawn + by) * factor, tol=1e-4) for by in (0, off)))
        check.mistake("the scale is no universal number: use the one that was handed in",
                      when=factor != 0.18215 and close(got, (drawn - off) * 0.18215, tol=1e-4))
        check.mistake("the denoiser's latents are the VAE's *times* the scale",
                      when=close(got, (drawn - off) / factor, tol=1e-4))
        check.close(got, drawn * factor - off * factor, tol=1e-4)
with check.part("back to the VAE, with the shift of FLUX", weight=2):
    given = torch.randn(1, 16, 4, 4, generator=torch.Generator().manual_seed(5))
    for shift, factor in ((0.1159, 0.3611), (-2.0, 0.25)):
        got = check.learner.to_vae(given, shift, factor)
        check.mistake("decoding undoes things in the opposite order: divide by the scale, then add the shift",
                      when=close(got, (given + shift) / factor, tol=1e-4))
        check.mistake("the shift was forgotten, or has the wrong sign",
                      when=any(close(got, given / factor - off, tol=1e-4) for off in (0, shift)))
        check.mistake("back to the VAE is division: multiplying scales a second time",
                      when=close(got, given * factor + shift, tol=1e-4))
        check.mistake("the scale is no universal number: use the one that was handed in",
                      when=close(got, given / 0.18215 + shift, tol=1e-4))
        check.close(got, given / factor + shift, tol=1e-4)
with check.part("`measure`, on latents of other VAEs", weight=3):
    made_up = 0.4 * torch.randn(2, 16, 8, 8, generator=torch.Generator().manual_seed(6)) + 3
    for latents_of_it in (bundled_latents(), made_up):
        factor = check.number(check.learner.measure(latents_of_it), "return the scale, one number")
        spread = float(latents_of_it.std())
        check.mistake("the scale is no universal number: it is measured on the latents of this VAE",
                      when=abs(factor - 0.18215) < 1e-4)
        check.mistake("a large spread needs a small factor: the scale is 1 over the standard deviation",
                      when=abs(factor - spread) < 1e-3)
        check.mistake("that is 1 over the variance", when=abs(factor - 1 / spread**2) < 1e-3)
        check.close(factor, 1 / spread, tol=1e-3)

# %% check="inpainting"
@reference
def real_inpainting():
    """Three steps of the library's inpainting: latents after each step, and with the outside put back."""
    import torch
    from diffusers import StableDiffusionInpaintPipeline
    from inferlab.models import load_pipeline
    from inferlab.trace import trace

    model = load_pipeline("bundled", "cpu")
    model = StableDiffusionInpaintPipeline(**model.components, requires_safety_checker=False)
    model.set_progress_bar_config(disable=True)
    given = torch.rand(1, 3, 64, 64, generator=torch.Generator().manual_seed(8))
    hole = torch.zeros(1, 1, 64, 64)
    hole[..., 20:] = 1
    noise = torch.randn(1, 4, 8, 8, generator=torch.Generator().manual_seed(9))
    results, rows = [], []

    def after(pipeline, i, t, kept):
        results.append(kept["latents"].clone())
        rows.append(int(t))
        return {}

    with torch.no_grad(), trace(model, keep="scheduler.step") as again:
        model("a red circle", image=given, mask_image=hole, latents=noise, height=64,
              width=64, num_inference_steps=3, strength=1.0, guidance_scale=1.0,
              generator=torch.Generator().manual_seed(10), callback_on_step_end=after, output_type="latent")
        drawn = model.vae.encode(given * 2 - 1).latent_dist.sample(torch.Generator().manual_seed(10))
    stepped = [at.kept.outputs[0] for at in again.find("scheduler.step")]
    steps = [{"stepped": before, "result": result, "t": t, "next_t": later}
             for before, result, t, later in zip(stepped, results, rows, [*rows[1:], None], strict=True)]
    return {"steps": steps, "clean": drawn * model.vae.config.scaling_factor, "noise": noise,
            "small": torch.nn.functional.interpolate(hole, size=(8, 8)),
            "table": model.scheduler.alphas_cumprod}

def put_back(given, facts):
    """The learner's latents after a step of the real pipeline."""
    table, later = facts["table"], given["next_t"]
    after = torch.tensor(1.0) if later is None else table[later]
    return check.learner.after_step(given["stepped"], facts["clean"], facts["noise"], facts["small"],
                                    table[given["t"]], after)

with check.part("between two steps of the real pipeline", weight=4):
    steps_made = real_inpainting()
    given = steps_made["steps"][0]
    got = put_back(given, steps_made)
    check.tensor(got, shape=steps_made["clean"].shape)
    hole8, rows_of = steps_made["small"], steps_made["table"]
    def kept_at(row):
        """What would be kept with the noise of this row of the table."""
        return rows_of[row].sqrt() * steps_made["clean"] + (1 - rows_of[row]).sqrt() * steps_made["noise"]
    check.mistake("clean latents in the middle of the loop: the rest still has noise",
                  when=close(got, hole8 * given["stepped"] + (1 - hole8) * steps_made["clean"], tol=1e-4))
    check.mistake("that is the level before the step: the step has brought the latents to the next one",
                  when=close(got, hole8 * given["stepped"] + (1 - hole8) * kept_at(given["t"]), tol=1e-4))
    check.mistake("the mask has changed sides: 1 is repainted",
                  when=close(got, (1 - hole8) * given["stepped"] + hole8 * kept_at(given["next_t"]),
                             tol=1e-4))
    check.mistake("nothing was put back", when=close(got, given["stepped"], tol=1e-4))
    level = rows_of[given["next_t"]]
    no_roots = level * steps_made["clean"] + (1 - level) * steps_made["noise"]
    check.mistake("the weights are square roots",
                  when=close(got, hole8 * given["stepped"] + (1 - hole8) * no_roots, tol=1e-4))
    check.close(got, given["result"], tol=1e-4)
with check.part("after the last step of the real pipeline", weight=3):
    steps_made = real_inpainting()
    given = steps_made["steps"][-1]
    got = put_back(given, steps_made)
    check.tensor(got, shape=steps_made["clean"].shape)
    row = steps_made["table"][given["t"]]
    check.mistake("after the last step nothing is noisy any more: what is kept is clean",
                  when=close(got, steps_made["small"] * given["stepped"] + (1 - steps_made["small"]) * (
                      row.sqrt() * steps_made["clean"] + (1 - row).sqrt() * steps_made["noise"]), tol=1e-4))
    check.mistake("nothing was put back", when=close(got, given["stepped"], tol=1e-4))
    check.close(got, given["result"], tol=1e-4)
