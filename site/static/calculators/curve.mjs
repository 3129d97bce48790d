// A calculator's curve as the inside of an SVG. The build draws the first one, the page every other.
import { format } from "./format.mjs";

const POINTS = 140;

// The values between which a number moves, and how: by its factors where it spans many sizes, else evenly.
export function rangeOf({ least, most, whole }) {
  if (!whole && most <= 1.5) return { low: least, high: most, log: false, zero: false };
  const low = least > 0 ? least : 1;
  return { low, high: most, log: most / low >= 20, zero: least <= 0 };
}

// A share from 0 to 1 of a range as a number that people would write, and back. The first 4% are 0 where 0 may be.
export function numberAt(share, field) {
  const { low, high, log, zero } = rangeOf(field);
  if (zero && log) {
    if (share < 0.04) return 0;
    share = (share - 0.04) / 0.96;
  }
  return share >= 1 ? high : written(log ? low * (high / low) ** share : low + share * (high - low), field);
}

export function shareOf(value, field) {
  const { low, high, log, zero } = rangeOf(field);
  if (!log) return (value - low) / (high - low);
  const share = value < low ? 0 : Math.log(value / low) / Math.log(high / low);
  return zero ? (value < low ? 0 : 0.04 + 0.96 * share) : share;
}

// Whole numbers in eighths of a power of two (8192, 9216, …), others with two digits.
export function written(value, { least, most, whole }) {
  let near = value;
  if (whole) {
    const base = 2 ** Math.floor(Math.log2(Math.max(value, 1)));
    near = value < 16 ? Math.round(value) : (Math.round((value / base) * 8) / 8) * base;
  } else near = most <= 1.5 ? Math.round(value * 100) / 100 : Number(value.toPrecision(2));
  return Math.min(most, Math.max(least, near));
}

// The values at which the curve is computed: all that may be asked for on a log scale, else from next to nothing to four times
// what is asked.
function placesOf(field, here, log) {
  const { low } = rangeOf(field);
  const high = log || field.most <= 1.5 ? field.most : Math.min(field.most, Math.max(here * 4, field.least + 8));
  const from = log ? low : field.least;
  const found = new Set();
  for (let n = 0; n <= POINTS; n++) {
    const at = log ? from * (high / from) ** (n / POINTS) : from + ((high - from) * n) / POINTS;
    found.add(field.whole ? Math.round(at) : at);
  }
  return [...found];
}

// A round distance between marks, 1, 2 or 5 times a power of ten, for about so many of them up to `most`.
function roundStep(most, count) {
  const least = most / count;
  const power = 10 ** Math.floor(Math.log10(least));
  return power * [1, 2, 5, 10].find((times) => times * power >= least * 0.999);
}

// One of the unit in which a number is written.
function unitOf(value, kind, binary) {
  if (kind === "share") return 0.01;
  const base = kind === "bytes" && binary ? 1024 : 1000;
  return base ** Math.floor(Math.log(value) / Math.log(base) + 1e-9);
}

function evenMarks(low, high, count, unit = 1) {
  const step = roundStep((high - low) / unit, count) * unit;
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step / 1000; at += step) found.push(Number(at.toPrecision(12)));
  return found;
}

function logMarks(low, high, count, base = 10) {
  const most = Math.floor(Math.log(high) / Math.log(base) + 1e-9);
  const least = Math.ceil(Math.log(low) / Math.log(base) - 1e-9);
  if (most - least < 1) return evenMarks(low, high, 3).filter((at) => at > 0);
  const step = Math.ceil((most - least + 1) / count);
  const found = [];
  for (let power = least; power <= most; power += step) found.push(base ** power);
  return found;
}

// Where one output begins to be larger than another: "all" or "none" of the way, or the first number from which it is.
export function kneeOf(compute, given, field, [one, two], log) {
  const above = (x) => {
    const got = compute({ ...given, [field.name]: x });
    return got[one] > got[two];
  };
  const xs = placesOf(field, given[field.name], log);
  if (above(xs[0])) return "all";
  const next = xs.findIndex(above);
  if (next < 0) return "none";
  let [low, high] = [xs[next - 1], xs[next]];
  for (let n = 0; n < 40 && (field.whole ? high - low > 1 : high - low > 1e-3 * high); n++) {
    const middle = field.whole ? Math.floor((low + high) / 2) : (low + high) / 2;
    if (above(middle)) high = middle;
    else low = middle;
  }
  return high;
}

const escaped = (words) => String(words).replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`);
const tag = (name, attributes, inside = "") => `<${name} ${Object.entries(attributes).map(([key, value]) => `${key}="${typeof value === "number" ? Number(value.toFixed(1)) : escaped(value)}"`).join(" ")}>${inside}</${name}>`;
const compact = (value) => (Math.abs(value) < 10_000 ? format(value, "ratio") : value.toLocaleString("en-US", { notation: "compact" }).replace("K", "k"));

// `shown` and `beside` are outputs {name, kind, label}; `knee` is {of, said, all, none} or {at, said}. `bare` has lines only.
export function drawn({ compute, given, field, shown, beside = [], log = "", knee = null, width, height, binary = false, bare = false }) {
  const logX = log.includes("x") && rangeOf(field).log;
  const logY = log.includes("y") && shown.kind !== "share" && logX;
  const xs = placesOf(field, given[field.name], logX);
  const rows = xs.map((x) => [x, compute({ ...given, [field.name]: x })]);
  const lineOf = ({ name }) => rows.map(([x, got]) => [x, got[name]]).filter(([, y]) => Number.isFinite(y) && (!logY || y > 0));
  const thick = lineOf(shown);
  const thin = beside.map(lineOf);
  const [left, right, top, bottom] = bare ? [2, 4, 5, 4] : [64, 14, 14, 42];
  const heights = [thick, ...thin].flat().map(([, y]) => y);
  const most = Math.max(...heights) || 1;
  const least = logY ? Math.max(Math.min(...heights), most / 1e7) : 0;
  const [low, high] = [xs[0], xs.at(-1) > xs[0] ? xs.at(-1) : xs[0] + 1];
  const share = (value, from, to, isLog) => (isLog ? Math.log(value / from) / Math.log(to / from) : (value - from) / (to - from));
  const toX = (x) => left + (width - left - right) * share(Math.max(x, logX ? low : x), low, high, logX);
  const toY = (y) => height - bottom - (height - top - bottom) * Math.max(0, logY && most > least ? share(y, least, most, true) : y / most);
  const path = (points, name) => tag("path", { d: points.filter(([, y]) => y >= least).map(([x, y], n) => `${n ? "L" : "M"}${toX(x).toFixed(1)} ${toY(y).toFixed(1)}`).join(""), class: name });
  const parts = [];
  if (!bare) {
    const kind = shown.kind.split(" ")[0];
    const upMarks = logY ? logMarks(least, most, 5, binary && kind === "bytes" ? 32 : 10) : evenMarks(0, most, 4, unitOf(most, kind, binary));
    for (const at of upMarks) {
      const y = toY(at);
      parts.push(tag("line", { x1: left, x2: width - right, y1: y, y2: y, class: at ? "grid" : "axis" }),
        tag("text", { x: left - 8, y: y + 4, "text-anchor": "end" }, at ? format(at, kind, binary) : "0"));
    }
    for (const at of logX ? logMarks(low, high, width < 420 ? 4 : 7) : evenMarks(low, high, width < 420 ? 3 : 5)) {
      parts.push(tag("line", { x1: toX(at), x2: toX(at), y1: height - bottom, y2: height - bottom + 4, class: "axis" }),
        tag("text", { x: toX(at), y: height - bottom + 17, "text-anchor": toX(at) > width - right - 14 ? "end" : "middle" }, compact(at)));
    }
    parts.push(tag("line", { x1: left, x2: width - right, y1: height - bottom, y2: height - bottom, class: "axis" }),
      tag("text", { x: width - right, y: height - 6, "text-anchor": "end", class: "title" }, escaped(field.label)));
  }
  let at = knee?.of ? kneeOf(compute, given, field, knee.of, logX) : knee ? compute(given)[knee.at] : null;
  let said = typeof at === "string" ? knee[at] : at && knee.said.replace("{x}", format(at, "ratio"));
  if (typeof at === "number" && !(at >= low && at <= high)) [at, said] = [null, null];
  const [above, below] = [[], []];
  if (typeof at === "number") {
    const [x, y] = [toX(at), toY(compute({ ...given, [field.name]: at })[shown.name])];
    below.push(tag("line", { x1: x, x2: x, y1: top, y2: height - bottom, class: "at" }));
    if (!bare) above.push(tag("circle", { cx: x, cy: y, r: 3.5, class: "knee" }));
    const start = x < left + (width - left - right) * 0.55;
    if (!bare) above.push(tag("text", { x: x + (start ? 7 : -7), y: start || knee.at ? height - bottom - 10 : top + 4, "text-anchor": start ? "start" : "end", class: "said" }, escaped(said)));
  } else if (said && !bare) above.push(tag("text", { x: left + 8, y: top + 4, class: "said" }, escaped(said)));
  parts.push(...below, ...thin.map((points, n) => path(points, `thin series-${beside[n].series ?? n}`)), path(thick, "line"));
  const now = given[field.name];
  if (now >= low && now <= high) parts.push(tag("circle", { cx: toX(now), cy: toY(compute(given)[shown.name]), r: bare ? 3.5 : 5.5, class: "now" }));
  const fromX = (x) => {
    const part = Math.min(1, Math.max(0, (x - left) / (width - left - right)));
    return written(logX ? low * (high / low) ** part : low + part * (high - low), field);
  };
  return { svg: [...parts, ...above].join(""), fromX, said };
}
