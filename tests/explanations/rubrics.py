"""Rubrics of the explanation sets kept beside this file: one for each prompt folder, with its question and facts."""

from inferlab.lab.explain import Amounts, Rubric, Slot, Trend

DENOISE_FACTS = {
    "unet.sample": (2, 4, 16, 16), "step.sample": (1, 4, 16, 16), "unet.out": (2, 4, 16, 16), "image": (1, 3, 128, 128),
    "steps": 20, "unet.calls": 20, "dtype": "float32", "guidance": 4.0,
}

DENOISE = Rubric(
    question="Explain one denoising step of your run. State: name the state object that is transformed and what does the "
             "transforming. Axis: name the axis or shape that matters, with numbers from your own trace. Trade-off: say what you "
             "gain and what you pay when you change the number of steps.",
    lab="At each timestep the UNet receives the latents and the timestep and returns a noise prediction of the same shape. The "
        "scheduler's step method then combines the noise prediction with the current latents to give the next latents. Running "
        "more steps costs more UNet calls and usually gives a better image.",
    terms={
        "latents": "latent*, x_t, x_prev, noisy sample, current sample, state tensor, latent tensor, latent state, noisy latent*, sample, previous sample, next sample, sample*",
        "scheduler": "scheduler*, scheduler.step, ddim*, ddimscheduler*, step method, update rule, solver, sampler, step function, scheduler step, "
                     "scheduler's step method, scheduler's step, scheduler's step function",
        "unet": "unet*, u-net, denoiser, network, model, unet2dconditionmodel*, neural network, noise predictor",
        "noise": "noise, noise pred*, predicted noise, noise_pred, epsilon, eps, noise estimate*, estimated noise, prediction*, noise guess, model output, epsilon prediction",
        "image": "image*, picture*, pixel*, photo*, rgb, drawing",
        "prompt": "prompt*, prompt embed*, text embed*, embedding*, prompt_embeds, caption, text, tokens, text encoder",
        "weights": "weights, parameters",
        "vae": "vae*, decoder, autoencoder*",
        "steps": "step, steps, step count, number of steps, iteration*, timestep*, denoising step*, num_inference_steps, loop*, inference steps, time step*, pass*",
        "batch": "batch, batch size, batch axis, batch dimension, first axis, first dimension, rows",
        "channels": "channel*, latent channel*",
        "grid": "spatial*, grid, height, width, resolution",
    },
    slots={
        "state": Slot(
            award=["scheduler changes/makes/denoises latents", "* changes/makes/denoises latents + scheduler uses noise",
                   "scheduler remove/subtract/strip noise"],
            deny={
                "unet makes/predicts image": "The UNet returns a noise prediction, not an image.",
                "unet changes latents": "The UNet only predicts; scheduler.step makes the next latents.",
                "* changes prompt": "The prompt's embeddings stay as they are in the loop; the latents change.",
                "* changes weights": "No weight changes during inference.",
                "vae changes latents": "The VAE is outside the loop.",
                "latents changes scheduler": "The roles are the other way round.",
                "scheduler predicts noise": "The UNet predicts the noise; the scheduler uses it.",
                "scheduler makes noise": "The UNet predicts the noise; the scheduler uses it.",
            },
            topic=["latents"],
        ),
        "axis": Slot(
            amounts=Amounts(
                shapes=["unet.sample", "step.sample"],
                counts={"steps": "steps", "channels": 4, "batch": [1, 2]},
                key=["steps"],
                of={"unet": "unet.sample", "scheduler": "step.sample", "image": "image"},
            ),
            topic=["latents", "batch", "channels", "steps", "unet", "scheduler", "grid"],
        ),
        "trade-off": Slot(trend=Trend("steps", gain={"quality": "up"}, cost={"time": "up", "compute": "up"})),
    },
    must_award={
        "state": ["The scheduler updates the latents, using the noise that the UNet predicted.",
                  "Latents are what changes: scheduler.step turns them into slightly cleaner latents."],
        "axis": ["The UNet sees (2, 4, 16, 16) because guidance doubles the batch.", "There are 20 timesteps in my loop."],
        "trade-off": ["More steps improve the picture's quality but each one costs another UNet call.",
                      "With fewer steps it is faster, but the image gets blurrier."],
    },
    must_deny={
        "state": ["The UNet outputs the pixels of the image at each step.", "The scheduler does not update the latents.",
                  "latents scheduler update noise unet step"],
        "axis": ["The latents have the shape (1, 3, 128, 512).", "My loop ran 50 steps."],
        "trade-off": ["More steps are faster but look worse.", "More steps do not improve quality and do not take longer."],
    },
    example_facts=DENOISE_FACTS,
)

PROMPTS = {"denoise": (DENOISE, DENOISE_FACTS)}
