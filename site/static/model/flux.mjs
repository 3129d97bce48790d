// The bundled FLUX pipeline as a generator of its boundaries: packed latents, a flow-matching Euler scheduler, guidance as an
// input of the transformer.
import { randn } from "./noise.mjs";

const [CHANNELS, SIDE, PATCH] = [4, 16, 2];
const ACROSS = SIDE / PATCH;
export const PACKED = [1, ACROSS * ACROSS, CHANNELS * PATCH * PATCH];

// Where number `at` of packed latents (64 tokens of 16) lies in latents of (1, 4, 16, 16).
const PLACE = Int32Array.from({ length: CHANNELS * SIDE * SIDE }, (_, at) => {
  const width = CHANNELS * PATCH * PATCH;
  const [token, inside] = [Math.floor(at / width), at % width];
  const [channel, y, x] = [Math.floor(inside / 4), Math.floor(inside / 2) % 2, inside % 2];
  return (channel * SIDE + Math.floor(token / ACROSS) * PATCH + y) * SIDE + (token % ACROSS) * PATCH + x;
});

export const packed = (latents) => Float32Array.from(PLACE, (place) => latents[place]);

// A (1, 64, 16) tensor as the (1, 4, 16, 16) one that it was packed from.
export function unpacked({ data }) {
  const latents = new Float32Array(data.length);
  PLACE.forEach((place, at) => (latents[place] = data[at]));
  return { dtype: "float32", dims: [1, CHANNELS, SIDE, SIDE], data: latents };
}

// How much noise there is before each step, and 0 after the last: equal steps from 1 down to 1 / steps, which a picture of
// few tokens shifts less than one of many.
export function sigmas(steps, { base_image_seq_len: least, max_image_seq_len: most, base_shift: from, max_shift: to }) {
  const slope = (to - from) / (most - least);
  const mu = PACKED[1] * slope + (from - slope * least);
  const shifted = Array.from({ length: steps }, (_, at) => {
    const even = Math.fround(steps === 1 ? 1 : 1 + (at * (1 / steps - 1)) / (steps - 1));
    return Math.fround(Math.exp(mu) / (Math.exp(mu) + (1 / even - 1)));
  });
  return [...shifted, 0];
}

const tensor = (dtype, dims, data) => ({ dtype, dims, data });
const floats = (dims, data) => tensor("float32", dims, data);

// As `run` in pipeline.mjs says, for this pipeline. Its velocity points from the picture to the noise; `guess` is what is left
// when all of it is taken away.
export async function* runFlux(model, { caption, steps, guidance, seed }) {
  const { config } = model;
  let began = performance.now();
  const boundary = (name, inputs, outputs, more = {}) => ({ name, step: null, t: null, ms: performance.now() - began, inputs, outputs, ...more });
  const ids = (found) => tensor("int64", [1, found.length], BigInt64Array.from(found, BigInt));
  const decoded = async (latents) => {
    const { dims, data } = unpacked({ data: latents });
    const z = floats(dims, data.map((value) => value / config.scaling_factor));
    return [{ z }, await model.run("vae_decoder", { z })];
  };

  let input_ids = ids(model.tokenize(caption).ids);
  yield boundary("tokenizer", {}, { input_ids }, { text: caption });
  began = performance.now();
  const { pooler_output } = await model.run("text_encoder", { input_ids });
  yield boundary("text_encoder", { input_ids }, { pooler_output }, { text: caption });
  began = performance.now();
  input_ids = ids(model.tokenize2(caption).ids);
  yield boundary("tokenizer_2", {}, { input_ids }, { text: caption });
  began = performance.now();
  const { last_hidden_state } = await model.run("text_encoder_2", { input_ids });
  yield boundary("text_encoder_2", { input_ids }, { last_hidden_state }, { text: caption });

  began = performance.now();
  let latents = packed(randn(CHANNELS * SIDE * SIDE, seed));
  yield boundary("prepare_latents", {}, { latents: floats(PACKED, latents) });

  const levels = sigmas(steps, config.families.flux.scheduler);
  for (let step = 0; step < steps; step++) {
    const [sigma, next] = [levels[step], levels[step + 1]];
    const at = { step: step + 1, t: Math.round(1000 * sigma) };
    began = performance.now();
    const inputs = {
      hidden_states: floats(PACKED, latents),
      timestep: floats([1], Float32Array.of(Math.fround(Math.fround(1000 * sigma) / 1000))),
      guidance: floats([1], Float32Array.of(guidance)),
      pooled_projections: pooler_output,
      encoder_hidden_states: last_hidden_state,
    };
    const { noise_pred, ...blocks } = await model.run("transformer", inputs);
    yield boundary("transformer", inputs, { noise_pred }, { ...at, blocks });

    began = performance.now();
    const velocity = noise_pred.data;
    const used = { model_output: noise_pred, timestep: floats([], Float32Array.of(Math.fround(1000 * sigma))), sample: floats(PACKED, latents) };
    const guess = latents.map((value, n) => value - sigma * velocity[n]);
    const change = Math.fround(next - sigma);
    latents = latents.map((value, n) => value + Math.fround(change * velocity[n]));
    yield boundary("scheduler.step", used, { prev_sample: floats(PACKED, latents) }, at);

    began = performance.now();
    yield boundary("vae.decode", ...await decoded(guess), { ...at, guess: true });
  }
  began = performance.now();
  yield boundary("vae.decode", ...await decoded(latents));
}
