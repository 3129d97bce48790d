# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# Named wrong answers of lab02-denoising-step: each replaces one exercise's cell and keeps exactly the points it says.

# %% wrong="forecast" name="the UNet outputs pixels" keeps=1.5
def forecast(prompts, height, width, guidance_scale, steps, text=(16, 192)):
    batch = prompts * (2 if guidance_scale > 1 else 1)
    return {
        "calls": steps, "sample": (batch, 4, height // 8, width // 8), "timestep": (),
        "encoder_hidden_states": (batch, *text), "output": (batch, 3, height, width),
    }

# %% wrong="forecast" name="guidance doubles the number of calls" keeps=2
def forecast(prompts, height, width, guidance_scale, steps, text=(16, 192)):
    batch = prompts * (2 if guidance_scale > 1 else 1)
    latents = (batch, 4, height // 8, width // 8)
    calls = steps * (2 if guidance_scale > 1 else 1)
    return {"calls": calls, "sample": latents, "timestep": (), "encoder_hidden_states": (batch, *text), "output": latents}

# %% wrong="forecast" name="the batch is always doubled" keeps=1
def forecast(prompts, height, width, guidance_scale, steps, text=(16, 192)):
    batch = prompts * 2
    latents = (batch, 4, height // 8, width // 8)
    return {"calls": steps, "sample": latents, "timestep": (), "encoder_hidden_states": (batch, *text), "output": latents}

# %% wrong="forecast" name="one step is the generator" keeps=2
def forecast(prompts, height, width, guidance_scale, steps, text=(16, 192)):
    batch = prompts * (2 if guidance_scale > 1 else 1)
    latents = (batch, 4, height // 8, width // 8)
    return {"calls": 1, "sample": latents, "timestep": (), "encoder_hidden_states": (batch, *text), "output": latents}

# %% wrong="forecast" name="width before height" keeps=2
def forecast(prompts, height, width, guidance_scale, steps, text=(16, 192)):
    batch = prompts * (2 if guidance_scale > 1 else 1)
    latents = (batch, 4, width // 8, height // 8)
    return {"calls": steps, "sample": latents, "timestep": (), "encoder_hidden_states": (batch, *text), "output": latents}

# %% wrong="forecast" name="copied from the table of the one traced run" keeps=0.5
def forecast(prompts, height, width, guidance_scale, steps, text=(16, 192)):
    return {"calls": 10, "sample": (2, 4, 16, 16), "timestep": (), "encoder_hidden_states": (2, 16, 192), "output": (2, 4, 16, 16)}

# %% wrong="add-noise" name="forgot the square roots" keeps=0
def add_noise(clean, noise, timesteps, alphas_cumprod):
    signal = alphas_cumprod[timesteps].to(clean.dtype).reshape(-1, 1, 1, 1)
    return signal * clean + (1 - signal) * noise

# %% wrong="add-noise" name="the first sample's timestep for all" keeps=0.5
def add_noise(clean, noise, timesteps, alphas_cumprod):
    signal = alphas_cumprod[timesteps[0]].to(clean.dtype)
    return signal.sqrt() * clean + (1 - signal).sqrt() * noise

# %% wrong="add-noise" name="a float32 table for float16 latents" keeps=1.5
def add_noise(clean, noise, timesteps, alphas_cumprod):
    signal = alphas_cumprod[timesteps].reshape(-1, 1, 1, 1)
    return signal.sqrt() * clean + (1 - signal).sqrt() * noise

# %% wrong="add-noise" name="lined up with the width" keeps=0
def add_noise(clean, noise, timesteps, alphas_cumprod):
    signal = alphas_cumprod[timesteps].to(clean.dtype)
    return signal.sqrt() * clean + (1 - signal).sqrt() * noise

# %% wrong="ddim-step" name="forgot the square roots" keeps=0
def ddim_step(noise_pred, x_t, alpha_t, alpha_prev, clip_range=None):
    clean = (x_t - (1 - alpha_t) * noise_pred) / alpha_t
    if clip_range is not None:
        clean = clean.clamp(-clip_range, clip_range)
    return alpha_prev * clean + (1 - alpha_prev) * noise_pred

# %% wrong="ddim-step" name="stopped at the predicted clean sample" keeps=0
def ddim_step(noise_pred, x_t, alpha_t, alpha_prev, clip_range=None):
    clean = (x_t - (1 - alpha_t) ** 0.5 * noise_pred) / alpha_t**0.5
    return clean if clip_range is None else clean.clamp(-clip_range, clip_range)

# %% wrong="ddim-step" name="ignored clip_range" keeps=1.5
def ddim_step(noise_pred, x_t, alpha_t, alpha_prev, clip_range=None):
    clean = (x_t - (1 - alpha_t) ** 0.5 * noise_pred) / alpha_t**0.5
    return alpha_prev**0.5 * clean + (1 - alpha_prev) ** 0.5 * noise_pred

# %% wrong="ddim-step" name="derived the noise again after clipping" keeps=1.5
def ddim_step(noise_pred, x_t, alpha_t, alpha_prev, clip_range=None):
    clean = (x_t - (1 - alpha_t) ** 0.5 * noise_pred) / alpha_t**0.5
    if clip_range is not None:
        clean = clean.clamp(-clip_range, clip_range)
        noise_pred = (x_t - alpha_t**0.5 * clean) / (1 - alpha_t) ** 0.5
    return alpha_prev**0.5 * clean + (1 - alpha_prev) ** 0.5 * noise_pred

# %% wrong="ddim-step" name="clipped the result" keeps=1.5
def ddim_step(noise_pred, x_t, alpha_t, alpha_prev, clip_range=None):
    clean = (x_t - (1 - alpha_t) ** 0.5 * noise_pred) / alpha_t**0.5
    result = alpha_prev**0.5 * clean + (1 - alpha_prev) ** 0.5 * noise_pred
    return result if clip_range is None else result.clamp(-clip_range, clip_range)

# %% wrong="translate" name="every output is noise" keeps=0.5
def translate(model_output, prediction_type, x_t, alpha_t):
    return (x_t - (1 - alpha_t) ** 0.5 * model_output) / alpha_t**0.5, model_output

# %% wrong="translate" name="wrong sign in front of the velocity" keeps=1.5
def translate(model_output, prediction_type, x_t, alpha_t):
    signal, sigma = alpha_t**0.5, (1 - alpha_t) ** 0.5
    if prediction_type == "epsilon":
        return (x_t - sigma * model_output) / signal, model_output
    if prediction_type == "sample":
        return model_output, (x_t - signal * model_output) / sigma
    if prediction_type == "v_prediction":
        return signal * x_t + sigma * model_output, sigma * x_t - signal * model_output
    raise ValueError(f"unknown prediction_type {prediction_type!r}")

# %% wrong="translate" name="noise first" keeps=0.5
def translate(model_output, prediction_type, x_t, alpha_t):
    signal, sigma = alpha_t**0.5, (1 - alpha_t) ** 0.5
    if prediction_type == "epsilon":
        return model_output, (x_t - sigma * model_output) / signal
    if prediction_type == "sample":
        return (x_t - signal * model_output) / sigma, model_output
    if prediction_type == "v_prediction":
        return sigma * x_t + signal * model_output, signal * x_t - sigma * model_output
    raise ValueError(f"unknown prediction_type {prediction_type!r}")

# %% wrong="translate" name="guessed when the type is unknown" keeps=1.5
def translate(model_output, prediction_type, x_t, alpha_t):
    signal, sigma = alpha_t**0.5, (1 - alpha_t) ** 0.5
    if prediction_type == "sample":
        return model_output, (x_t - signal * model_output) / sigma
    if prediction_type == "v_prediction":
        return signal * x_t - sigma * model_output, sigma * x_t + signal * model_output
    return (x_t - sigma * model_output) / signal, model_output

# %% wrong="one-step" name="gave the doubled latents to the scheduler" keeps=2.5
def one_step(unet, step, latents, t, prompt_embeds, guidance_scale):
    if guidance_scale <= 1:
        return step(unet(latents, t, prompt_embeds), t, latents)
    doubled = torch.cat([latents, latents])
    uncond, cond = unet(doubled, t, prompt_embeds).chunk(2)
    return step(uncond + guidance_scale * (cond - uncond), t, doubled)

# %% wrong="one-step" name="conditional half first" keeps=2
def one_step(unet, step, latents, t, prompt_embeds, guidance_scale):
    if guidance_scale <= 1:
        return step(unet(latents, t, prompt_embeds), t, latents)
    cond, uncond = unet(torch.cat([latents, latents]), t, prompt_embeds).chunk(2)
    return step(uncond + guidance_scale * (cond - uncond), t, latents)

# %% wrong="one-step" name="guided once too often" keeps=2
def one_step(unet, step, latents, t, prompt_embeds, guidance_scale):
    if guidance_scale <= 1:
        return step(unet(latents, t, prompt_embeds), t, latents)
    uncond, cond = unet(torch.cat([latents, latents]), t, prompt_embeds).chunk(2)
    return step(cond + guidance_scale * (cond - uncond), t, latents)

# %% wrong="one-step" name="two calls of the UNet" keeps=2.5
def one_step(unet, step, latents, t, prompt_embeds, guidance_scale):
    if guidance_scale <= 1:
        return step(unet(latents, t, prompt_embeds), t, latents)
    empty, asked = prompt_embeds.chunk(2)
    uncond, cond = unet(latents, t, empty), unet(latents, t, asked)
    return step(uncond + guidance_scale * (cond - uncond), t, latents)

# %% wrong="one-step" name="doubled even without guidance" keeps=2.5
def one_step(unet, step, latents, t, prompt_embeds, guidance_scale):
    uncond, cond = unet(torch.cat([latents, latents]), t, prompt_embeds).chunk(2)
    return step(uncond + guidance_scale * (cond - uncond), t, latents)

# %% wrong="diagnosis" name="believed the label" keeps=1.5
def which_target(output, clean, noise, alpha_t):
    velocity = alpha_t**0.5 * noise - (1 - alpha_t) ** 0.5 * clean
    candidates = {"epsilon": noise, "sample": clean, "v_prediction": velocity}
    return min(candidates, key=lambda name: float((output - candidates[name]).norm()))


def diagnose():
    label = suspect.scheduler.config.prediction_type
    return {"expects": label, "predicts": label}

# %% wrong="diagnosis" name="the two answers have changed places" keeps=1
def which_target(output, clean, noise, alpha_t):
    velocity = alpha_t**0.5 * noise - (1 - alpha_t) ** 0.5 * clean
    candidates = {"epsilon": noise, "sample": clean, "v_prediction": velocity}
    return min(candidates, key=lambda name: float((output - candidates[name]).norm()))


def diagnose():
    answer = which_target(ask(suspect, 400), clean, known_noise, float(table[400]))
    return {"expects": answer, "predicts": suspect.scheduler.config.prediction_type}

# %% wrong="diagnosis" name="never thought of the velocity" keeps=0.5
def which_target(output, clean, noise, alpha_t):
    return "epsilon" if (output - noise).norm() < (output - clean).norm() else "sample"


def diagnose():
    return {"expects": suspect.scheduler.config.prediction_type, "predicts": "something else"}

# %% wrong="diagnosis" name="velocity with the weights exchanged" keeps=2.5
def which_target(output, clean, noise, alpha_t):
    velocity = (1 - alpha_t) ** 0.5 * noise - alpha_t**0.5 * clean
    candidates = {"epsilon": noise, "sample": clean, "v_prediction": velocity}
    return min(candidates, key=lambda name: float((output - candidates[name]).norm()))


def diagnose():
    velocity = table[500] ** 0.5 * known_noise - (1 - table[500]) ** 0.5 * clean
    right = {"epsilon": known_noise, "sample": clean, "v_prediction": velocity}
    found = min(right, key=lambda name: float((ask(suspect, 500) - right[name]).norm()))
    return {"expects": suspect.scheduler.config.prediction_type, "predicts": found}

# %% wrong="repair" name="clamped the index to 0" keeps=1.5
def repaired_step(noise_pred, t, x_t, alphas_cumprod, num_steps, set_alpha_to_one):
    prev = max(t - len(alphas_cumprod) // num_steps, 0)
    alpha_t, alpha_prev = alphas_cumprod[t], alphas_cumprod[prev]
    clean = (x_t - (1 - alpha_t) ** 0.5 * noise_pred) / alpha_t**0.5
    return alpha_prev**0.5 * clean + (1 - alpha_prev) ** 0.5 * noise_pred

# %% wrong="repair" name="returned the predicted clean sample at the end" keeps=1
def repaired_step(noise_pred, t, x_t, alphas_cumprod, num_steps, set_alpha_to_one):
    prev = t - len(alphas_cumprod) // num_steps
    alpha_t = alphas_cumprod[t]
    clean = (x_t - (1 - alpha_t) ** 0.5 * noise_pred) / alpha_t**0.5
    if prev < 0:
        return clean
    return alphas_cumprod[prev] ** 0.5 * clean + (1 - alphas_cumprod[prev]) ** 0.5 * noise_pred

# %% wrong="repair" name="skipped the last step" keeps=1
def repaired_step(noise_pred, t, x_t, alphas_cumprod, num_steps, set_alpha_to_one):
    prev = t - len(alphas_cumprod) // num_steps
    if prev < 0:
        return x_t
    alpha_t, alpha_prev = alphas_cumprod[t], alphas_cumprod[prev]
    clean = (x_t - (1 - alpha_t) ** 0.5 * noise_pred) / alpha_t**0.5
    return alpha_prev**0.5 * clean + (1 - alpha_prev) ** 0.5 * noise_pred

# %% wrong="repair" name="took 0 for past the end" keeps=2.5
def repaired_step(noise_pred, t, x_t, alphas_cumprod, num_steps, set_alpha_to_one):
    prev = t - len(alphas_cumprod) // num_steps
    final = torch.tensor(1.0) if set_alpha_to_one else alphas_cumprod[0]
    alpha_t, alpha_prev = alphas_cumprod[t], alphas_cumprod[prev] if prev > 0 else final
    clean = (x_t - (1 - alpha_t) ** 0.5 * noise_pred) / alpha_t**0.5
    return alpha_prev**0.5 * clean + (1 - alpha_prev) ** 0.5 * noise_pred

# %% wrong="repair" name="changed nothing" keeps=1
def repaired_step(noise_pred, t, x_t, alphas_cumprod, num_steps, set_alpha_to_one):
    prev = t - len(alphas_cumprod) // num_steps
    alpha_t, alpha_prev = alphas_cumprod[t], alphas_cumprod[prev]
    clean = (x_t - (1 - alpha_t) ** 0.5 * noise_pred) / alpha_t**0.5
    return alpha_prev**0.5 * clean + (1 - alpha_prev) ** 0.5 * noise_pred

# %% wrong="step-in-words" name="the shape that the scheduler sees" keeps={"words-shape": 0, "words-calls": 1, "words-gain-cost": 1, "words-state": 1, "words-axis": 1, "words-trade-off": 1}
# %%explain step-in-words
# state: In every step scheduler.step turns the latents into slightly cleaner latents, with the help of the noise that the UNet predicts.
# axis: The batch axis grows from 1 to 2 for the UNet because guidance needs two predictions of the same latents.
# trade-off: With more steps the picture gets better, but the run takes longer because there are more UNet calls.
# shape: (1, 4, 16, 16)
# calls: 10
# gain: quality up
# cost: latency up

# %% wrong="step-in-words" name="the UNet outputs the picture" keeps={"words-shape": 1, "words-calls": 1, "words-gain-cost": 1, "words-state": 0, "words-axis": 1, "words-trade-off": 1}
# %%explain step-in-words
# state: In every step the UNet outputs a cleaner image of 128 by 128 pixels.
# axis: The batch axis grows from 1 to 2 for the UNet because guidance needs two predictions of the same latents.
# trade-off: With more steps the picture gets better, but the run takes longer because there are more UNet calls.
# shape: (2, 4, 16, 16)
# calls: 10
# gain: quality up
# cost: latency up

# %% wrong="step-in-words" name="guidance doubles the calls" keeps={"words-shape": 0, "words-calls": 0, "words-gain-cost": 1, "words-state": 1, "words-axis": 0, "words-trade-off": 1}
# %%explain step-in-words
# state: In every step scheduler.step turns the latents into slightly cleaner latents, with the help of the noise that the UNet predicts.
# axis: The latents have 3 channels and they stay like this because guidance only makes the UNet run twice.
# trade-off: With more steps the picture gets better, but the run takes longer because there are more UNet calls.
# shape: (1, 4, 16, 16)
# calls: 20
# gain: quality up
# cost: latency up

# %% wrong="step-in-words" name="more steps are faster" keeps={"words-shape": 1, "words-calls": 1, "words-gain-cost": 0, "words-state": 1, "words-axis": 1, "words-trade-off": 0}
# %%explain step-in-words
# state: In every step scheduler.step turns the latents into slightly cleaner latents, with the help of the noise that the UNet predicts.
# axis: The batch axis grows from 1 to 2 for the UNet because guidance needs two predictions of the same latents.
# trade-off: More steps make the run faster, but the picture gets worse because the steps are smaller.
# shape: (2, 4, 16, 16)
# calls: 10
# gain: latency down
# cost: quality down

# %% wrong="step-in-words" name="keywords without a sentence" keeps={"words-shape": 1, "words-calls": 1, "words-gain-cost": 1, "words-state": 0, "words-axis": 0, "words-trade-off": 0}
# %%explain step-in-words
# state: latents scheduler.step UNet noise_pred (1, 4, 16, 16) update transform state tensor
# axis: batch axis 1 2 guidance (2, 4, 16, 16) channels 4
# trade-off: steps quality up latency up UNet calls more better
# shape: (2, 4, 16, 16)
# calls: 10
# gain: quality up
# cost: latency up
