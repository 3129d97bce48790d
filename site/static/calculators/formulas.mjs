// The calculators' arithmetic, one pure function each: an object of numbers in, an object of numbers out.
// tests/site holds each of them against the Python function that the course itself uses.

const llama = (x) => {
  const queries = x.heads * x.head_dim;
  const keys = x.kv_heads * x.head_dim;
  return {
    layers: x.layers * (2 * x.hidden * (queries + keys) + 3 * x.hidden * x.intermediate),
    head: x.hidden * x.vocab,
    norms: (2 * x.layers + 1) * x.hidden,
  };
};

const decoded = (batch, side, bytes, channels) => 3 * batch * channels * side * side * bytes;

const kept = (share, drafted) => {
  let sum = 0;
  for (let n = 0; n <= drafted; n++) sum += share ** n;
  return sum;
};

export const formulas = {
  "kv-cache": (x) => {
    const tokens = x.window > 0 ? Math.min(x.tokens, x.window) : x.tokens;
    const numbers = x.latent > 0 ? x.latent : 2 * x.kv_heads * x.head_dim;
    const token = x.layers * numbers * x.bytes;
    const total = token * tokens * x.batch;
    const unshared = x.layers * 2 * x.heads * x.head_dim * x.bytes * x.tokens * x.batch;
    return { token, sequence: token * tokens, total, unshared, smaller: unshared / total };
  },

  weights: (x) => {
    const parts = llama(x);
    const tables = (x.tied ? 1 : 2) * parts.head;
    const perWeight = x.bits + (x.group > 0 ? 16 / x.group : 0);
    const linear = (parts.layers * perWeight) / 8;
    const rest = (tables + parts.norms) * 2;
    const parameters = parts.layers + tables + parts.norms;
    return { parameters, half: parameters * 2, bits: perWeight, linear, rest, total: linear + rest,
      smaller: (parameters * 2) / (linear + rest) };
  },

  attention: (x) => {
    const rows = x.batch * x.heads;
    const scores = rows * x.queries * x.keys * x.bytes;
    const operands = rows * x.head_dim * (2 * x.queries + 2 * x.keys) * x.bytes;
    const fused = rows * x.queries * 4;
    return { scores, operands, fused, flops: 4 * rows * x.queries * x.keys * x.head_dim,
      ratio: (scores + operands) / (fused + operands) };
  },

  tokens: (x) => {
    const height = Math.floor(x.height / x.vae);
    const width = Math.floor(x.width / x.vae);
    const frames = Math.floor((x.frames - 1) / x.vae_time) + 1;
    const picture = frames * Math.floor(height / x.patch) * Math.floor(width / x.patch);
    const tokens = picture + x.text;
    return { height, width, frames, picture, tokens, pairs: tokens * tokens, text_share: tokens ? x.text / tokens : 0 };
  },

  roofline: (x) => {
    const parts = llama(x);
    const rows = x.batch * x.new_tokens;
    const flops = 2 * (rows * parts.layers + x.batch * parts.head)
      + 4 * x.layers * rows * (x.context + x.new_tokens) * x.heads * x.head_dim;
    const position = 2 * x.layers * x.kv_heads * x.head_dim * x.bytes;
    const weights = (parts.layers + parts.norms + parts.head) * x.bytes;
    const cache = position * (x.batch * x.context + rows);
    const bytes = weights + cache;
    const compute = flops / (x.tflops * 1e12);
    const memory = bytes / (x.tbytes * 1e12);
    return { flops, weights, cache, bytes, intensity: flops / bytes, ridge: x.tflops / x.tbytes, compute, memory,
      least: Math.max(compute, memory), rate: x.batch / Math.max(compute, memory) };
  },

  "vae-tiling": (x) => {
    const latents = Math.floor(x.side / 8);
    const stride = Math.floor(x.tile * (1 - x.overlap));
    const tiled = latents > x.tile;
    let starts = 0;
    let covered = 0;
    for (let at = 0; tiled && at < latents; at += stride) {
      starts += 1;
      covered += Math.min(x.tile, latents - at);
    }
    const plain = decoded(x.batch, x.side, x.bytes, x.channels);
    return { tiles: tiled ? starts ** 2 : 1, work: tiled ? (covered / latents) ** 2 : 1, plain,
      slicing: decoded(1, x.side, x.bytes, x.channels),
      tiling: tiled ? decoded(x.batch, x.tile * 8, x.bytes, x.channels) : plain };
  },

  paging: (x) => {
    const pool = x.pool * 1e9;
    const blocks = Math.floor(pool / (x.page * x.position));
    const pages = Math.ceil(x.length / x.page);
    const shared = Math.min(Math.floor(x.prefix / x.page), pages - 1);
    return { reserved: Math.floor(pool / (x.reserve * x.position)), blocks, paged: Math.floor(blocks / pages),
      sharing: Math.max(0, Math.floor((blocks - shared) / (pages - shared))), reserved_empty: 1 - x.length / x.reserve,
      paged_empty: 1 - x.length / (pages * x.page) };
  },

  speculation: (x) => {
    const speed = (drafted) => kept(x.accept, drafted) / (drafted * x.cost + 1 + x.slope * drafted);
    let best = 0;
    for (let drafted = 1; drafted <= 30; drafted++) {
      if (speed(drafted) > (best ? speed(best) : 1)) best = drafted;
    }
    return { tokens: kept(x.accept, x.drafted), time: x.drafted * x.cost + 1 + x.slope * x.drafted,
      speedup: speed(x.drafted), best, best_speedup: best ? speed(best) : 1 };
  },

  "tensor-parallel": (x) => {
    const exchanges = 2 * x.layers;
    const payload = exchanges * x.hidden * x.rows * x.bytes;
    const sent = Math.floor((2 * (x.ranks - 1) * payload) / x.ranks);
    const steps = exchanges * 2 * (x.ranks - 1);
    const wire = sent / (x.link * 1e9);
    const waiting = steps * x.latency * 1e-6;
    return { exchanges, payload, sent, steps, wire, waiting, seconds: wire + waiting };
  },

  pipeline: (x) => {
    const ticks = x.microbatches + x.stages - 1;
    return { ticks, bubble: (x.stages - 1) / ticks, speedup: (x.stages * x.microbatches) / ticks };
  },

  zero: (x) => {
    const share = (from) => (x.stage >= from ? x.ranks : 1);
    const parameters = x.billions * 1e9;
    const weights = (parameters * x.weight_bytes) / share(3);
    const gradients = (parameters * x.gradient_bytes) / share(2);
    const optimizer = (parameters * x.optimizer_bytes) / share(1);
    const traffic = ((x.ranks - 1) / x.ranks) * parameters * x.weight_bytes * (x.stage >= 3 ? 3 : 2);
    return { weights, gradients, optimizer, total: weights + gradients + optimizer, traffic };
  },

  guidance: (x) => {
    const guided = x.guided ? Math.round(x.steps * x.share) : 0;
    const rows = x.pictures * x.evaluations * (x.steps + guided);
    return { guided, calls: x.evaluations * x.steps, separate: x.evaluations * (x.steps + guided), rows,
      batch: x.pictures * (guided > 0 ? 2 : 1), cost: (x.steps + guided) / x.steps };
  },
};
