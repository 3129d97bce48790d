// A trace out of the file that `trace.perfetto("run.json")` wrote: boundaries in order, each with what it lies in.

// "torch.float32 (2, 4, 16, 16)" and the like, of one side of a boundary, as one line.
export const said = (value) => (value === null || value === undefined ? "" : typeof value === "object"
  ? Object.entries(value).map(([name, one]) => `${name} ${said(one)}`).join(", ") : String(value));

export function readTrace(text, name = "") {
  let data;
  try {
    data = JSON.parse(text);
  } catch {
    throw new Error(`${name || "This file"} is not JSON.`);
  }
  if (!Array.isArray(data?.traceEvents)) throw new Error(`${name || "This file"} is no trace: write one with trace.perfetto("run.json").`);
  const host = data.traceEvents.filter((event) => event.pid === 1 && (event.ph === "X" || event.ph === "i"));
  if (!host.length) throw new Error(`${name || "This file"} holds no boundary.`);
  // What the device did in a boundary stands behind it in the file, under the same name.
  const device = new Map();
  let last = null;
  for (const event of data.traceEvents) {
    if (event.ph !== "X") continue;
    if (event.pid === 1) last = event;
    else if (event.pid === 2 && last?.name === event.name) device.set(last, { start: event.ts, dur: event.dur ?? 0, bound: event.args?.bound ?? "" });
  }
  const memory = data.traceEvents.filter((event) => event.ph === "C").map((event) => [event.ts, event.args.bytes]).sort((a, b) => a[0] - b[0]);
  // The outer one of two that begin together is the longer one.
  const order = host.map((event, index) => ({ event, index }))
    .sort((a, b) => a.event.ts - b.event.ts || (b.event.dur ?? 0) - (a.event.dur ?? 0) || a.index - b.index);
  const open = new Map();
  const before = new Map();
  const boundaries = order.map(({ event }, number) => {
    const stack = open.get(event.tid) ?? [];
    open.set(event.tid, stack);
    // In whole nanoseconds, as the tracer's clock counts: 0.1 + 0.2 is not before what begins at 0.3 otherwise.
    const end = Math.round((event.ts + (event.dur ?? 0)) * 1e3) / 1e3;
    while (stack.length && stack.at(-1).end < end) stack.pop();
    while (stack.length && stack.at(-1).end <= event.ts && stack.at(-1).dur > 0) stack.pop();
    const args = event.args ?? {};
    const made = {
      number, name: event.name, kind: event.cat, start: event.ts, dur: event.dur ?? 0, end, thread: event.tid,
      level: stack.length, parent: stack.length ? stack.at(-1).number : null, step: args.step ?? null,
      given: args.inputs ?? null, inputs: said(args.inputs), outputs: said(args.outputs), bytes: args.bytes_out ?? null, changes: args.changes ?? [],
      inferred: args.inferred ?? "", error: args.error ?? "", device: device.get(event) ?? null,
    };
    // What is inferred has no step of its own in the file: it stands in that of the boundary before it.
    if (made.inferred) made.step = before.get(made.parent) ?? null;
    before.set(made.parent, made.step);
    if (event.ph === "X") stack.push(made);
    return made;
  });
  const other = data.otherData ?? {};
  return { title: other.title ?? name, file: name, steps: other.steps ?? 0, notes: other.notes ?? [], boundaries, memory, hasDevice: device.size > 0 };
}

// What must be the same for two steps to be the same: names, and the shapes and dtypes on both sides. Values may differ.
const shapes = (text) => (text.match(/\([\d, ]+\) \w+/g) ?? []).join();
const shape = (boundary) => `${boundary.level}|${boundary.name}|${shapes(boundary.inputs)}|${shapes(boundary.outputs)}`;

// Lines of the folded table: what repeats from step to step stands once, with how often and with the last one that it stands for.
// `open` holds the numbers of boundaries whose inside is shown; `unfold` shows every step.
export function linesOf(trace, { open = new Set(), unfold = false } = {}) {
  const children = new Map([[null, []]]);
  for (const boundary of trace.boundaries) {
    if (!children.has(boundary.parent)) children.set(boundary.parent, []);
    children.get(boundary.parent).push(boundary);
  }
  const inner = (boundary) => (children.get(boundary.number)?.length ?? 0) > 0;
  const lines = [];
  const put = (boundary, times, last = boundary.number) => {
    const isOpen = open.has(boundary.number);
    lines.push({ boundary, times, last, inner: inner(boundary), isOpen });
    if (isOpen) walk(children.get(boundary.number) ?? []);
  };
  const walk = (list) => {
    let at = 0;
    while (at < list.length) {
      if (unfold || list[at].step === null) {
        put(list[at], 1);
        at += 1;
        continue;
      }
      const groups = [];
      let to = at;
      while (to < list.length && list[to].step !== null) {
        const from = to;
        while (to < list.length && list[to].step === list[from].step) to += 1;
        const group = list.slice(from, to);
        groups.push({ group, key: group.map(shape).join("\n") });
      }
      for (let n = 0; n < groups.length;) {
        let same = n;
        while (same < groups.length && groups[same].key === groups[n].key) same += 1;
        for (const [at, boundary] of groups[n].group.entries()) put(boundary, same - n, groups[same - 1].group[at].number);
        n = same;
      }
      at = to;
    }
  };
  walk(children.get(null));
  return lines;
}

// Boundaries by name and the how-manieth call of it.
export function keyed(trace) {
  const seen = new Map();
  const found = new Map();
  for (const boundary of trace.boundaries) {
    const count = (seen.get(boundary.name) ?? 0) + 1;
    seen.set(boundary.name, count);
    found.set(`${boundary.name} #${count}`, boundary);
  }
  return found;
}

// The same boundary in two traces, by its number in each.
export function pairsOf(one, two) {
  const b = keyed(two);
  const pairs = { second: new Map(), first: new Map() };
  for (const [key, boundary] of keyed(one)) {
    const other = b.get(key);
    if (!other) continue;
    pairs.second.set(boundary.number, other);
    pairs.first.set(other.number, boundary);
  }
  return pairs;
}

// Two texts as runs of [same, text] each, word by word: what they share, and what is the text's own.
export function ownWords(one, two) {
  const [a, b] = [one, two].map((text) => text.match(/[\w.]+|\s+|[^\w\s]/g) ?? []);
  if (a.length * b.length > 250_000) return [[[false, one]], [[false, two]]];
  const longest = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--) {
    longest[i][j] = a[i] === b[j] ? longest[i + 1][j + 1] + 1 : Math.max(longest[i + 1][j], longest[i][j + 1]);
  }
  const runs = [[], []];
  const add = (side, same, word) => {
    if (runs[side].at(-1)?.[0] === same) runs[side].at(-1)[1] += word;
    else runs[side].push([same, word]);
  };
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      add(0, true, a[i]);
      add(1, true, b[j]);
      i += 1;
      j += 1;
    } else if (j >= b.length || (i < a.length && longest[i + 1][j] >= longest[i][j + 1])) add(0, false, a[i++]);
    else add(1, false, b[j++]);
  }
  return runs;
}

// What differs between two traces.
export function differences(one, two) {
  const [a, b] = [keyed(one), keyed(two)];
  const rows = [];
  for (const [key, boundary] of a) {
    const other = b.get(key);
    if (!other) rows.push({ key, what: "only in the first", first: boundary.outputs, second: "", boundary });
    else for (const side of ["inputs", "outputs"]) {
      if (boundary[side] !== other[side]) rows.push({ key, what: side, first: boundary[side], second: other[side], boundary });
    }
  }
  for (const [key, boundary] of b) {
    if (!a.has(key)) rows.push({ key, what: "only in the second", first: "", second: boundary.outputs, boundary: null });
  }
  return rows;
}
