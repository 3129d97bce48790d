# Named wrong answers of lab 04: what a learner might write, and the points that it keeps. Never built into a notebook.

# %% wrong="run-card" name="counted steps, not denoiser calls" keeps=2.5
predicted = {}
n = card["A"]["steps"]
predicted["leading"] = [1 + k * (1000 // n) for k in reversed(range(n))]
predicted["trailing"] = [round(1000 - k * 1000 / n) - 1 for k in range(n)]
n = card["B"]["steps"]
predicted["heun_calls"], predicted["multistep_calls"], predicted["heun_ticks"] = n, n, n
n, strength = card["C"]["steps"], card["C"]["strength"]
kept = int(n * strength)
predicted["strength_calls"], predicted["strength_first"] = kept, 1 + (kept - 1) * (1000 // n)
n, prompts = card["D"]["steps"], card["D"]["prompts"]
predicted["off_calls"], predicted["off_rows"], predicted["on_calls"], predicted["on_rows"] = n, prompts, n, 2 * prompts
shift = card["E"]["shift"]
predicted["sigmas"] = [shift * s / (1 + (shift - 1) * s) for s in (1, 0.667, 0.334, 0.001)] + [0.0]

# %% wrong="run-card" name="guidance makes two calls out of one" keeps=2.75
predicted = {}
n = card["A"]["steps"]
predicted["leading"] = [1 + k * (1000 // n) for k in reversed(range(n))]
predicted["trailing"] = [round(1000 - k * 1000 / n) - 1 for k in range(n)]
n = card["B"]["steps"]
predicted["heun_calls"], predicted["multistep_calls"], predicted["heun_ticks"] = 2 * n - 1, n, n
n, strength = card["C"]["steps"], card["C"]["strength"]
kept = int(n * strength)
predicted["strength_calls"], predicted["strength_first"] = kept, 1 + (kept - 1) * (1000 // n)
n, prompts = card["D"]["steps"], card["D"]["prompts"]
predicted["off_calls"], predicted["off_rows"], predicted["on_calls"], predicted["on_rows"] = n, prompts, 2 * n, prompts
shift = card["E"]["shift"]
predicted["sigmas"] = [shift * s / (1 + (shift - 1) * s) for s in (1, 0.667, 0.334, 0.001)] + [0.0]

# %% wrong="run-card" name="the loop is a progress bar: ticks are calls, and strength is what is skipped" keeps=2
predicted = {}
n = card["A"]["steps"]
predicted["leading"] = [1 + k * (1000 // n) for k in reversed(range(n))]
predicted["trailing"] = [round(1000 - k * 1000 / n) - 1 for k in range(n)]
n = card["B"]["steps"]
predicted["heun_calls"], predicted["multistep_calls"], predicted["heun_ticks"] = 2 * n - 1, n, 2 * n - 1
n, strength = card["C"]["steps"], card["C"]["strength"]
kept = n - int(n * strength)
predicted["strength_calls"], predicted["strength_first"] = kept, 1 + (kept - 1) * (1000 // n)
n, prompts = card["D"]["steps"], card["D"]["prompts"]
predicted["off_calls"], predicted["off_rows"], predicted["on_calls"], predicted["on_rows"] = n, prompts, n, 2 * prompts
shift = card["E"]["shift"]
predicted["sigmas"] = [shift * s / (1 + (shift - 1) * s) for s in (1, 0.667, 0.334, 0.001)] + [0.0]

# %% wrong="run-card" name="trailing stops at multiples, second order is always two calls" keeps=2.25
predicted = {}
n = card["A"]["steps"]
predicted["leading"] = [1 + k * (1000 // n) for k in reversed(range(n))]
predicted["trailing"] = [round(1000 - k * 1000 / n) for k in range(n)]
n = card["B"]["steps"]
predicted["heun_calls"], predicted["multistep_calls"], predicted["heun_ticks"] = 2 * n - 1, 2 * n, n
n, strength = card["C"]["steps"], card["C"]["strength"]
kept = int(n * strength)
predicted["strength_calls"], predicted["strength_first"] = kept, 1 + (kept - 1) * (1000 // n)
n, prompts = card["D"]["steps"], card["D"]["prompts"]
predicted["off_calls"], predicted["off_rows"], predicted["on_calls"], predicted["on_rows"] = n, prompts, n, 2 * prompts
shift = card["E"]["shift"]
predicted["sigmas"] = [shift * s / (1 + (shift - 1) * s) for s in (1, 0.667, 0.334, 0.001)] + [0.0]

# %% wrong="run-card" name="even sigmas, and only part of the card" keeps=0.75
predicted = {}
n = card["A"]["steps"]
predicted["leading"] = [1 + k * (1000 // n) for k in reversed(range(n))]
predicted["trailing"] = [999 - k * (1000 // n) - 1 for k in range(n)]
n, prompts = card["D"]["steps"], card["D"]["prompts"]
predicted["off_calls"], predicted["off_rows"], predicted["on_calls"], predicted["on_rows"] = n, prompts, n, 2 * prompts
predicted["sigmas"] = [1, 0.667, 0.334, 0.001, 0.0]

# %% wrong="loop" name="step gets the scaled copy" keeps=2.5
def denoise(unet, step, scale, timesteps, latents, prompt_embeds, negative_embeds, guidance):
    guided = guidance > 1
    embeds = torch.cat([negative_embeds, prompt_embeds]) if guided else prompt_embeds
    for t in timesteps:
        model_input = scale(torch.cat([latents] * 2) if guided else latents, t)
        noise_pred = unet(model_input, t, embeds)
        if guided:
            uncond, text = noise_pred.chunk(2)
            noise_pred = uncond + guidance * (text - uncond)
        latents = step(noise_pred, t, model_input[:len(latents)])
    return latents

# %% wrong="loop" name="the state never moves: the loop only shows progress" keeps=2.5
def denoise(unet, step, scale, timesteps, latents, prompt_embeds, negative_embeds, guidance):
    guided = guidance > 1
    embeds = torch.cat([negative_embeds, prompt_embeds]) if guided else prompt_embeds
    for t in timesteps:
        noise_pred = unet(scale(torch.cat([latents] * 2) if guided else latents, t), t, embeds)
        if guided:
            uncond, text = noise_pred.chunk(2)
            noise_pred = uncond + guidance * (text - uncond)
        picture = step(noise_pred, t, latents)
    return picture

# %% wrong="loop" name="two denoiser calls for guidance" keeps=1
def denoise(unet, step, scale, timesteps, latents, prompt_embeds, negative_embeds, guidance):
    for t in timesteps:
        model_input = scale(latents, t)
        noise_pred = unet(model_input, t, prompt_embeds)
        if guidance > 1:
            uncond = unet(model_input, t, negative_embeds)
            noise_pred = uncond + guidance * (noise_pred - uncond)
        latents = step(noise_pred, t, latents)
    return latents

# %% wrong="loop" name="the prompt's rows come first" keeps=2
def denoise(unet, step, scale, timesteps, latents, prompt_embeds, negative_embeds, guidance):
    guided = guidance > 1
    embeds = torch.cat([prompt_embeds, negative_embeds]) if guided else prompt_embeds
    for t in timesteps:
        noise_pred = unet(scale(torch.cat([latents] * 2) if guided else latents, t), t, embeds)
        if guided:
            text, uncond = noise_pred.chunk(2)
            noise_pred = uncond + guidance * (text - uncond)
        latents = step(noise_pred, t, latents)
    return latents

# %% wrong="loop" name="guides at guidance 1 too" keeps=2.5
def denoise(unet, step, scale, timesteps, latents, prompt_embeds, negative_embeds, guidance):
    embeds = torch.cat([negative_embeds, prompt_embeds])
    for t in timesteps:
        uncond, text = unet(scale(torch.cat([latents] * 2), t), t, embeds).chunk(2)
        latents = step(uncond + guidance * (text - uncond), t, latents)
    return latents

# %% wrong="loop" name="skips timesteps that repeat" keeps=1
def denoise(unet, step, scale, timesteps, latents, prompt_embeds, negative_embeds, guidance):
    guided = guidance > 1
    embeds = torch.cat([negative_embeds, prompt_embeds]) if guided else prompt_embeds
    for t in timesteps.unique().flip(0):
        noise_pred = unet(scale(torch.cat([latents] * 2) if guided else latents, t), t, embeds)
        if guided:
            uncond, text = noise_pred.chunk(2)
            noise_pred = uncond + guidance * (text - uncond)
        latents = step(noise_pred, t, latents)
    return latents

# %% wrong="loop" name="the denoiser sees the latents unscaled" keeps=2
def denoise(unet, step, scale, timesteps, latents, prompt_embeds, negative_embeds, guidance):
    guided = guidance > 1
    embeds = torch.cat([negative_embeds, prompt_embeds]) if guided else prompt_embeds
    for t in timesteps:
        noise_pred = unet(torch.cat([latents] * 2) if guided else latents, t, embeds)
        if guided:
            uncond, text = noise_pred.chunk(2)
            noise_pred = uncond + guidance * (text - uncond)
        latents = step(noise_pred, t, latents)
    return latents

# %% wrong="reconcile" name="traced the pipeline's own scheduler" keeps=0.5
with trace(pipe) as heun_run:
    pipe(PROMPT, num_inference_steps=card["B"]["steps"], guidance_scale=4.0, generator=torch.Generator().manual_seed(SEED))
heun_rows = heun_run.rows()

# %% wrong="reconcile" name="another number of steps" keeps=0.5
pipe.scheduler = HeunDiscreteScheduler.from_config(own.config)
with trace(pipe) as heun_run:
    pipe(PROMPT, num_inference_steps=2, guidance_scale=4.0, generator=torch.Generator().manual_seed(SEED))
pipe.scheduler = own
heun_rows = heun_run.rows()

# %% wrong="reconcile" name="handed in the number, not the rows" keeps=0
heun_rows = 2 * card["B"]["steps"] - 1

# %% wrong="repair" name="deleted the scaling" keeps=0.5
def draw_all(solver, unet, noises, steps):
    pictures = []
    for noise in noises:
        timesteps = solver["set_timesteps"](steps)
        latents = noise * solver["init_noise_sigma"]()
        for t in timesteps:
            latents = solver["step"](unet(latents, t), t, latents)
        pictures.append(latents)
    return pictures

# %% wrong="repair" name="rewinds instead of setting the timesteps anew" keeps=2
def draw_all(solver, unet, noises, steps):
    timesteps = solver["set_timesteps"](steps)
    pictures = []
    for noise in noises:
        solver["rewind"]()
        latents = noise * solver["init_noise_sigma"]()
        for t in timesteps:
            latents = solver["step"](unet(solver["scale_model_input"](latents, t), t), t, latents)
        pictures.append(latents)
    return pictures

# %% wrong="repair" name="both proposals from the review" keeps=0.5
def draw_all(solver, unet, noises, steps):
    timesteps = solver["set_timesteps"](steps)
    pictures = []
    for noise in noises:
        solver["rewind"]()
        latents = noise * solver["init_noise_sigma"]()
        for t in timesteps:
            latents = solver["step"](unet(latents, t), t, latents)
        pictures.append(latents)
    return pictures

# %% wrong="repair" name="the state is still replaced by the scaled copy" keeps=0
def draw_all(solver, unet, noises, steps):
    pictures = []
    for noise in noises:
        timesteps = solver["set_timesteps"](steps)
        latents = noise * solver["init_noise_sigma"]()
        for t in timesteps:
            latents = solver["scale_model_input"](latents, t)
            latents = solver["step"](unet(latents, t), t, latents)
        pictures.append(latents)
    return pictures

# %% wrong="repair" name="right loop, but the timesteps are set once for all pictures" keeps=1.5
def draw_all(solver, unet, noises, steps):
    timesteps = solver["set_timesteps"](steps)
    pictures = []
    for noise in noises:
        latents = noise * solver["init_noise_sigma"]()
        for t in timesteps:
            latents = solver["step"](unet(solver["scale_model_input"](latents, t), t), t, latents)
        pictures.append(latents)
    return pictures

# %% wrong="repair" name="init_noise_sigma is asked for before the timesteps are set" keeps=1.5
def draw_all(solver, unet, noises, steps):
    pictures = []
    for noise in noises:
        latents = noise * solver["init_noise_sigma"]()
        for t in solver["set_timesteps"](steps):
            latents = solver["step"](unet(solver["scale_model_input"](latents, t), t), t, latents)
        pictures.append(latents)
    return pictures

# %% wrong="repair" name="handed in as it was" keeps=0
draw_all = draw_all_broken

# %% wrong="control" name="the residual is guided as well" keeps=1
def denoise_controlled(unet, step, scale, timesteps, latents, prompt_embeds, negative_embeds, guidance,
                       control, weight=1.0, start=0.0, end=1.0):
    guided = guidance > 1
    embeds = torch.cat([negative_embeds, prompt_embeds]) if guided else prompt_embeds
    n = len(timesteps)
    for i, t in enumerate(timesteps):
        seen = scale(latents, t)
        uncond, text = unet(torch.cat([seen] * 2), t, embeds).chunk(2) if guided else [unet(seen, t, embeds)] * 2
        if start <= i / n and (i + 1) / n <= end:
            text = text + weight * control(seen, t, text)
        latents = step(uncond + guidance * (text - uncond) if guided else text, t, latents)
    return latents

# %% wrong="control" name="control acts at every pass" keeps=1.5
def denoise_controlled(unet, step, scale, timesteps, latents, prompt_embeds, negative_embeds, guidance,
                       control, weight=1.0, start=0.0, end=1.0):
    guided = guidance > 1
    embeds = torch.cat([negative_embeds, prompt_embeds]) if guided else prompt_embeds
    for t in timesteps:
        seen = scale(latents, t)
        noise_pred = unet(torch.cat([seen] * 2) if guided else seen, t, embeds)
        if guided:
            uncond, text = noise_pred.chunk(2)
            noise_pred = uncond + guidance * (text - uncond)
        latents = step(noise_pred + weight * control(seen, t, noise_pred), t, latents)
    return latents

# %% wrong="control" name="the window counts training timesteps" keeps=1.5
def denoise_controlled(unet, step, scale, timesteps, latents, prompt_embeds, negative_embeds, guidance,
                       control, weight=1.0, start=0.0, end=1.0):
    guided = guidance > 1
    embeds = torch.cat([negative_embeds, prompt_embeds]) if guided else prompt_embeds
    for t in timesteps:
        seen = scale(latents, t)
        noise_pred = unet(torch.cat([seen] * 2) if guided else seen, t, embeds)
        if guided:
            uncond, text = noise_pred.chunk(2)
            noise_pred = uncond + guidance * (text - uncond)
        if start <= 1 - float(t) / 1000 <= end:
            noise_pred = noise_pred + weight * control(seen, t, noise_pred)
        latents = step(noise_pred, t, latents)
    return latents

# %% wrong="control" name="control sees the latents unscaled, and its weight is forgotten" keeps=1
def denoise_controlled(unet, step, scale, timesteps, latents, prompt_embeds, negative_embeds, guidance,
                       control, weight=1.0, start=0.0, end=1.0):
    guided = guidance > 1
    embeds = torch.cat([negative_embeds, prompt_embeds]) if guided else prompt_embeds
    n = len(timesteps)
    for i, t in enumerate(timesteps):
        seen = scale(latents, t)
        noise_pred = unet(torch.cat([seen] * 2) if guided else seen, t, embeds)
        if guided:
            uncond, text = noise_pred.chunk(2)
            noise_pred = uncond + guidance * (text - uncond)
        if start <= i / n and (i + 1) / n <= end:
            noise_pred = noise_pred + control(latents, t, noise_pred)
        latents = step(noise_pred, t, latents)
    return latents

# %% wrong="control" name="the residual is added to the latents" keeps=1
def denoise_controlled(unet, step, scale, timesteps, latents, prompt_embeds, negative_embeds, guidance,
                       control, weight=1.0, start=0.0, end=1.0):
    guided = guidance > 1
    embeds = torch.cat([negative_embeds, prompt_embeds]) if guided else prompt_embeds
    n = len(timesteps)
    for i, t in enumerate(timesteps):
        seen = scale(latents, t)
        noise_pred = unet(torch.cat([seen] * 2) if guided else seen, t, embeds)
        if guided:
            uncond, text = noise_pred.chunk(2)
            noise_pred = uncond + guidance * (text - uncond)
        latents = step(noise_pred, t, latents)
        if start <= i / n and (i + 1) / n <= end:
            latents = latents + weight * control(seen, t, noise_pred)
    return latents

# %% wrong="flow" name="every scheduler eats noise" keeps=1
def denoiser_input(sample, sigma):
    return sample / ((1 - sigma) ** 2 + sigma**2) ** 0.5


def velocity(noise_pred, sample, sigma):
    return noise_pred

# %% wrong="flow" name="the velocity points the other way" keeps=1
def denoiser_input(sample, sigma):
    return sample / ((1 - sigma) ** 2 + sigma**2) ** 0.5


def velocity(noise_pred, sample, sigma):
    return (sample - sigma * noise_pred) / (1 - sigma) - noise_pred

# %% wrong="flow" name="the v_prediction of a diffusion model" keeps=1
def denoiser_input(sample, sigma):
    return sample / ((1 - sigma) ** 2 + sigma**2) ** 0.5


def velocity(noise_pred, sample, sigma):
    clean = (sample - sigma * noise_pred) / (1 - sigma)
    return ((1 - sigma) * noise_pred - sigma * clean) / ((1 - sigma) ** 2 + sigma**2) ** 0.5

# %% wrong="flow" name="Euler's scaling, which belongs to another sigma" keeps=0.5
def denoiser_input(sample, sigma):
    return sample / (1 + sigma**2) ** 0.5


def velocity(noise_pred, sample, sigma):
    return noise_pred - (sample - sigma * noise_pred) / (1 - sigma)

# %% wrong="flow" name="the clean sample is not divided by 1 - sigma" keeps=1
def denoiser_input(sample, sigma):
    return sample / ((1 - sigma) ** 2 + sigma**2) ** 0.5


def velocity(noise_pred, sample, sigma):
    return noise_pred - (sample - sigma * noise_pred)

# %% wrong="the-loop" name="the loop is progress display" keeps={"the-loop-shape": 1, "the-loop-calls-hooks": 1, "the-loop-gain-cost": 1, "the-loop-axis": 1, "the-loop-trade-off": 1}
%%explain the-loop
# state: The loop only shows the progress of the network.
# axis: The batch axis matters: the latents are (1, 4, 16, 16), but with guidance the UNet gets (2, 4, 16, 16), one row for the empty prompt and one for mine, at each of the 4 timesteps.
# trade-off: Halving the number of steps halves the UNet calls and so the latency, but the solver's error grows, and the picture gets worse.
# shape: (2, 4, 16, 16)
# calls: 7
# hooks: init_noise_sigma, scale_model_input
# gain: latency down
# cost: error up

# %% wrong="the-loop" name="fewer timesteps only change the speed" keeps={"the-loop-shape": 1, "the-loop-calls-hooks": 1, "the-loop-gain-cost": 0.5, "the-loop-state": 1, "the-loop-axis": 1}
%%explain the-loop
# state: The loop transforms the latents: at each timestep the UNet predicts the noise in a scaled copy of them, and scheduler.step turns that prediction and the latents into the next latents.
# axis: The batch axis matters: the latents are (1, 4, 16, 16), but with guidance the UNet gets (2, 4, 16, 16), one row for the empty prompt and one for mine, at each of the 4 timesteps.
# trade-off: Fewer steps only make the run faster, the quality of the picture stays the same.
# shape: (2, 4, 16, 16)
# calls: 7
# hooks: init_noise_sigma, scale_model_input
# gain: latency down
# cost: none

# %% wrong="the-loop" name="the UNet makes the picture" keeps={"the-loop-shape": 1, "the-loop-calls-hooks": 1, "the-loop-gain-cost": 1, "the-loop-axis": 1, "the-loop-trade-off": 1}
%%explain the-loop
# state: At every step the UNet turns the noise into a better picture.
# axis: The batch axis matters: the latents are (1, 4, 16, 16), but with guidance the UNet gets (2, 4, 16, 16), one row for the empty prompt and one for mine, at each of the 4 timesteps.
# trade-off: Halving the number of steps halves the UNet calls and so the latency, but the solver's error grows, and the picture gets worse.
# shape: (2, 4, 16, 16)
# calls: 7
# hooks: init_noise_sigma, scale_model_input
# gain: latency down
# cost: error up

# %% wrong="the-loop" name="the state's shape, and steps taken for calls" keeps={"the-loop-gain-cost": 1, "the-loop-state": 1, "the-loop-axis": 1, "the-loop-trade-off": 1}
%%explain the-loop
# state: The loop transforms the latents: at each timestep the UNet predicts the noise in a scaled copy of them, and scheduler.step turns that prediction and the latents into the next latents.
# axis: The batch axis matters: the latents are (1, 4, 16, 16), but with guidance the UNet gets (2, 4, 16, 16), one row for the empty prompt and one for mine, at each of the 4 timesteps.
# trade-off: Halving the number of steps halves the UNet calls and so the latency, but the solver's error grows, and the picture gets worse.
# shape: (1, 4, 16, 16)
# calls: 4
# hooks: step, set_timesteps
# gain: latency down
# cost: error up

# %% wrong="the-loop" name="a batch that the run never had" keeps={"the-loop-shape": 1, "the-loop-calls-hooks": 1, "the-loop-gain-cost": 1, "the-loop-state": 1, "the-loop-trade-off": 1}
%%explain the-loop
# state: The loop transforms the latents: at each timestep the UNet predicts the noise in a scaled copy of them, and scheduler.step turns that prediction and the latents into the next latents.
# axis: The batch axis matters: the UNet gets a batch of 8 rows in this run.
# trade-off: Halving the number of steps halves the UNet calls and so the latency, but the solver's error grows, and the picture gets worse.
# shape: (2, 4, 16, 16)
# calls: 7
# hooks: init_noise_sigma, scale_model_input
# gain: latency down
# cost: error up

# %% wrong="the-loop" name="the trade-off turned round" keeps={"the-loop-shape": 1, "the-loop-calls-hooks": 1, "the-loop-state": 1, "the-loop-axis": 1}
%%explain the-loop
# state: The loop transforms the latents: at each timestep the UNet predicts the noise in a scaled copy of them, and scheduler.step turns that prediction and the latents into the next latents.
# axis: The batch axis matters: the latents are (1, 4, 16, 16), but with guidance the UNet gets (2, 4, 16, 16), one row for the empty prompt and one for mine, at each of the 4 timesteps.
# trade-off: Halving the number of steps makes the run slower, but the picture gets better.
# shape: (2, 4, 16, 16)
# calls: 7
# hooks: init_noise_sigma, scale_model_input
# gain: quality up
# cost: latency up

# %% wrong="the-loop" name="key words instead of sentences" keeps={"the-loop-shape": 1, "the-loop-calls-hooks": 1, "the-loop-gain-cost": 1}
%%explain the-loop
# state: latents scheduler step UNet noise prediction state loop timestep
# axis: batch axis 2 4 16 16 steps 4 calls
# trade-off: steps latency quality up down trade-off
# shape: (2, 4, 16, 16)
# calls: 7
# hooks: init_noise_sigma, scale_model_input
# gain: latency down
# cost: error up
