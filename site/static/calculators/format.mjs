// Numbers as people read them. The build uses it, too, so that a page without scripts shows the same.

const DECIMAL = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const PREFIXES = ["", "k", "M", "G", "T", "P", "E", "Z"];
const SMALL = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];

const digits = (value) => value.toLocaleString("en-US", value !== 0 && Math.abs(value) < 1000
  ? { maximumSignificantDigits: 4 } : { maximumFractionDigits: 0 });

function scaled(value, base, units) {
  let step = 0;
  while (Math.abs(value) >= base && step < units.length - 1) {
    value /= base;
    step += 1;
  }
  return [value, units[step]];
}

const kinds = {
  bytes: (value, binary) => {
    const [number, unit] = scaled(value, binary ? 1024 : 1000, binary ? BINARY : DECIMAL);
    return `${digits(number)} ${unit}`;
  },
  count: (value) => (value < 1e15 ? digits(value) : value.toExponential(3)),
  ratio: (value) => digits(value),
  times: (value) => `${digits(value)}×`,
  share: (value) => `${digits(value * 100)}%`,
  seconds: (value) => {
    const [size, unit] = SMALL.find(([least]) => value >= least) ?? SMALL.at(-1);
    return `${digits(value / size)} ${unit}`;
  },
  flops: (value) => {
    const [number, prefix] = scaled(value, 1000, PREFIXES);
    return `${digits(number)} ${prefix}FLOP`;
  },
  intensity: (value) => `${digits(value)} FLOP/byte`,
  rate: (value) => `${digits(value)} /s`,
};

// "times smaller" is "4× smaller"; what is less than once as small is larger.
export function format(value, kind, binary = false) {
  if (!Number.isFinite(value)) return "–";
  const [first, ...words] = kind.split(" ");
  if (words[0] === "smaller" && value < 1) return `${kinds.times(1 / value)} larger`;
  return [kinds[first](value, binary), ...words].join(" ");
}
