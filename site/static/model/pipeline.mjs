// The bundled pipelines as generators of their boundaries: whoever runs one may stop between any two of them.
import { alphasCumprod, ddimStep, guided, timesteps } from "./ddim.mjs";
import { runFlux } from "./flux.mjs";
import { randn } from "./noise.mjs";

export const LATENTS = [1, 4, 16, 16];
const tensor = (dtype, dims, data) => ({ dtype, dims, data });
const floats = (dims, data) => tensor("float32", dims, data);

function joined(one, other) {
  const data = new Float32Array(one.length + other.length);
  data.set(one);
  data.set(other, one.length);
  return data;
}

// `model.run(name, feeds)` runs one of the networks, `model.tokenize` is CLIP's tokenizer (and `tokenize2` T5's), `model.config`
// what the site's build wrote: the schedulers' configs and the VAE's scaling factor. Yields, in the order of the run,
// { name, step, t, ms, inputs, outputs }: tensors by name, each { dtype, dims, data }. `guess` marks a picture that the pipeline
// itself would not decode; a UNet's boundary has what its `blocks` give, and its `cross_attention`, too. Guidance of 1 or less is off, as in diffusers: one row, and no guidance.
export const run = (model, asked) => (asked.model === "flux" ? runFlux : runStable)(model, asked);

async function* runStable(model, { caption, steps, guidance, seed }) {
  const { scaling_factor: scaling, families: { sd: { scheduler } } } = model.config;
  const alphas = alphasCumprod(scheduler);
  const on = guidance > 1;
  let began = performance.now();
  const boundary = (name, inputs, outputs, more = {}) => ({ name, step: null, t: null, ms: performance.now() - began, inputs, outputs, ...more });
  const decoded = async (latents) => {
    const z = floats(LATENTS, latents.map((value) => value / scaling));
    return [{ z }, await model.run("vae_decoder", { z })];
  };

  const embedded = [];
  for (const text of on ? [caption, ""] : [caption]) {
    began = performance.now();
    const ids = tensor("int64", [1, 16], BigInt64Array.from(model.tokenize(text).ids, BigInt));
    yield boundary("tokenizer", {}, { input_ids: ids }, { text });
    began = performance.now();
    const { last_hidden_state } = await model.run("text_encoder", { input_ids: ids });
    embedded.push(last_hidden_state.data);
    yield boundary("text_encoder", { input_ids: ids }, { last_hidden_state }, { text });
  }
  // The row without the caption comes first.
  const words = floats([embedded.length, 16, 192], on ? joined(embedded[1], embedded[0]) : embedded[0]);

  began = performance.now();
  let latents = randn(1024, seed);
  yield boundary("prepare_latents", {}, { latents: floats(LATENTS, latents) });

  for (const [step, { t, next }] of timesteps(steps, scheduler).entries()) {
    const at = { step: step + 1, t };
    began = performance.now();
    const sample = floats([embedded.length, 4, 16, 16], on ? joined(latents, latents) : latents);
    const timestep = tensor("int64", [], BigInt64Array.of(BigInt(t)));
    const inputs = { sample, timestep, encoder_hidden_states: words };
    const { noise_pred, cross_attention, ...blocks } = await model.run("unet", inputs);
    yield boundary("unet", inputs, { noise_pred }, { ...at, cross_attention, blocks });

    let noise = noise_pred.data;
    if (on) {
      began = performance.now();
      const [without, withCaption] = [noise.slice(0, 1024), noise.slice(1024)];
      noise = guided(without, withCaption, guidance);
      const rows = { noise_pred_uncond: floats(LATENTS, without), noise_pred_text: floats(LATENTS, withCaption) };
      yield boundary("guidance", rows, { noise_pred: floats(LATENTS, noise) }, at);
    }

    began = performance.now();
    const after = ddimStep(latents, noise, alphas[t], alphas[Math.max(next, 0)]);
    const used = { model_output: floats(LATENTS, noise), timestep, sample: floats(LATENTS, latents) };
    latents = after.latents;
    yield boundary("scheduler.step", used,
      { prev_sample: floats(LATENTS, latents), pred_original_sample: floats(LATENTS, after.guess) }, at);

    began = performance.now();
    yield boundary("vae.decode", ...await decoded(after.guess), { ...at, guess: true });
  }
  began = performance.now();
  yield boundary("vae.decode", ...await decoded(latents));
}
