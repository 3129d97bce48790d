// DDIM as diffusers' `DDIMScheduler` does it with the bundled model's config: epsilon prediction, eta = 0, "leading" timesteps.

// The share of signal that is left at each of the training timesteps: the running product of 1 - beta.
export function alphasCumprod({ beta_start, beta_end, num_train_timesteps: count }) {
  const [from, to] = [Math.sqrt(beta_start), Math.sqrt(beta_end)];
  let product = 1;
  return Float32Array.from({ length: count }, (_, at) => {
    const root = Math.fround(from + ((to - from) * at) / (count - 1));
    product *= Math.fround(1 - Math.fround(root * root));
    return product;
  });
}

// The timesteps of a run with `steps` steps, from the noisiest on, each with the one that follows it (below 0: the end).
export function timesteps(steps, { num_train_timesteps: count, steps_offset: offset }) {
  const stride = Math.floor(count / steps);
  return Array.from({ length: steps }, (_, at) => {
    const t = (steps - 1 - at) * stride + offset;
    return { t, next: t - stride };
  });
}

// Guidance: from the prediction without the caption towards the one with it, and `scale` times as far.
export function guided(without, withCaption, scale) {
  return without.map((value, at) => value + scale * (withCaption[at] - value));
}

// One step. `alpha` is the share of signal in `latents`, `alphaNext` in what comes out; `noise` is the prediction.
// Returns the clean latents that the prediction promises, and the latents of the next step.
export function ddimStep(latents, noise, alpha, alphaNext) {
  const [signal, rest] = [Math.sqrt(alpha), Math.sqrt(1 - alpha)];
  const [signalNext, restNext] = [Math.sqrt(alphaNext), Math.sqrt(1 - alphaNext)];
  const guess = latents.map((value, at) => (value - rest * noise[at]) / signal);
  return { guess, latents: guess.map((value, at) => signalNext * value + restNext * noise[at]) };
}
