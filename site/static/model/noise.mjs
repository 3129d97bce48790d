// The noise that `torch.randn(..., generator=torch.Generator().manual_seed(seed))` draws on the CPU.

// Mersenne Twister 19937, as torch seeds it: the low 32 bits of the seed. Returns a function that gives 32 random bits.
function twister(seed) {
  const state = new Uint32Array(624);
  state[0] = Number(BigInt.asUintN(32, BigInt(seed)));
  for (let at = 1; at < 624; at++) state[at] = Math.imul(1812433253, state[at - 1] ^ (state[at - 1] >>> 30)) + at;
  let next = 624;
  return () => {
    if (next === 624) {
      for (let at = 0; at < 624; at++) {
        const mixed = (state[at] & 0x80000000) | (state[(at + 1) % 624] & 0x7fffffff);
        state[at] = state[(at + 397) % 624] ^ (mixed >>> 1) ^ (mixed & 1 ? 0x9908b0df : 0);
      }
      next = 0;
    }
    let y = state[next++];
    y ^= y >>> 11;
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    return (y ^ (y >>> 18)) >>> 0;
  };
}

// `count` normal numbers. torch first fills the tensor with uniform numbers of 24 bits, then turns each block of 16 by the
// Box-Muller transform: numbers 0 to 7 give the radii, numbers 8 to 15 the angles. Fewer than 16 numbers, or a rest, it draws
// in another way, which no latents of this model need.
export function randn(count, seed) {
  if (count < 16 || count % 16) throw new RangeError(`${count} numbers: expected a multiple of 16`);
  const random = twister(seed);
  const values = Float32Array.from({ length: count }, () => (random() & 0xffffff) / 2 ** 24);
  for (let block = 0; block < count; block += 16) {
    for (let at = block; at < block + 8; at++) {
      const radius = Math.sqrt(-2 * Math.log(1 - values[at]));
      const angle = Math.fround(Math.fround(2 * Math.PI) * values[at + 8]);
      values[at] = radius * Math.cos(angle);
      values[at + 8] = radius * Math.sin(angle);
    }
  }
  return values;
}
