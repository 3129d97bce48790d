// The trace player: the table (only the lines in sight are in the page), the timeline, bytes over time, two traces.
import { differences, linesOf, readTrace } from "./read.mjs";

const LINE = 30;
const BAR = 22;
const BOUND = { host: "had caught up with Python when the call ended", device: "still busy when Python's call had ended" };
const place = document.querySelector("#player");
const get = (name) => place.querySelector(name);
const [scroller, inside, said, detail] = [".lines", ".lines > div", ".said", ".detail"].map(get);
const state = { trace: null, second: null, open: new Set(), unfold: false, chosen: null, lines: [], view: [0, 1] };

const time = (us) => (us >= 1e6 ? `${(us / 1e6).toPrecision(3)} s` : us >= 1000 ? `${(us / 1000).toPrecision(3)} ms` : `${Math.round(us)} µs`);
const bytes = (value) => {
  if (value === null) return "";
  const step = value < 1000 ? 0 : Math.min(4, Math.floor(Math.log10(value) / 3));
  return `${(value / 1000 ** step).toLocaleString("en-US", { maximumSignificantDigits: 4 })} ${["B", "kB", "MB", "GB", "TB"][step]}`;
};
const color = (name) => getComputedStyle(place).getPropertyValue(name);

function cell(kind, text, title) {
  const made = document.createElement("span");
  made.className = kind;
  made.textContent = text;
  if (title) made.title = title;
  return made;
}

function lineOf(line, index) {
  const { boundary, times, inner, isOpen } = line;
  const made = document.createElement("div");
  made.className = `row${state.chosen === boundary.number ? " chosen" : ""}${boundary.error ? " error" : ""}`;
  made.setAttribute("role", "row");
  made.setAttribute("aria-rowindex", index + 2);
  made.style.top = `${index * LINE}px`;
  made.dataset.number = boundary.number;
  const name = cell("name", "");
  name.setAttribute("role", "cell");
  name.style.paddingLeft = `${boundary.level * 1.1}rem`;
  if (inner) {
    const fold = document.createElement("button");
    fold.type = "button";
    fold.className = "fold";
    fold.textContent = isOpen ? "▾" : "▸";
    fold.setAttribute("aria-label", `${isOpen ? "Fold" : "Unfold"} ${boundary.name}`);
    fold.setAttribute("aria-expanded", String(isOpen));
    name.append(fold);
  } else name.append(cell("nofold", ""));
  const link = document.createElement("a");
  link.href = `#boundary-${boundary.number}`;
  link.textContent = boundary.name;
  name.append(link);
  if (times > 1) name.append(cell("times", `× ${times}`));
  const cells = [name, cell("step", boundary.step ?? ""), cell("in", boundary.inputs, boundary.inputs),
    cell("out", boundary.inferred || boundary.outputs, boundary.outputs), cell("bytes", bytes(boundary.bytes)), cell("time", boundary.dur ? time(boundary.dur) : ""), cell("device", boundary.device ? time(boundary.device.dur) : "")];
  for (const one of cells) one.setAttribute("role", "cell");
  made.append(...cells);
  return made;
}

function drawLines() {
  const first = Math.max(0, Math.floor(scroller.scrollTop / LINE) - 8);
  const last = Math.min(state.lines.length, first + Math.ceil(scroller.clientHeight / LINE) + 16);
  const rows = [];
  for (let at = first; at < last; at++) rows.push(lineOf(state.lines[at], at));
  inside.replaceChildren(...rows);
}

function refold() {
  state.lines = linesOf(state.trace, state);
  inside.style.height = `${state.lines.length * LINE}px`;
  get(".table").setAttribute("aria-rowcount", state.lines.length + 1);
  get(".count").textContent = `${state.lines.length.toLocaleString("en-US")} lines of ${state.trace.boundaries.length.toLocaleString("en-US")} boundaries`;
  drawLines();
}

// Show a boundary: open what it lies in, and bring its line into sight.
function choose(number, { scroll = true, address = true } = {}) {
  const boundary = state.trace.boundaries[number];
  if (!boundary) return;
  state.chosen = number;
  for (let up = boundary.parent; up !== null; up = state.trace.boundaries[up].parent) state.open.add(up);
  refold();
  let at = state.lines.findIndex((line) => line.boundary.number === number);
  if (at < 0) {
    state.unfold = get("[name=unfold]").checked = true;
    refold();
    at = state.lines.findIndex((line) => line.boundary.number === number);
  }
  if (scroll) scroller.scrollTop = Math.max(0, at * LINE - scroller.clientHeight / 2);
  if (address) history.replaceState(null, "", `#boundary-${number}`);
  const rows = [["boundary", `${boundary.name} (number ${number}${boundary.step === null ? "" : `, step ${boundary.step}`})`], ["kind", boundary.kind],
    ["inputs", boundary.inputs], ["outputs", boundary.outputs], ["bytes out", bytes(boundary.bytes)], ["time", boundary.dur ? time(boundary.dur) : ""],
    ["device", boundary.device ? `${time(boundary.device.dur)}, ${BOUND[boundary.device.bound] ?? ""}` : ""],
    ["changes", boundary.changes.join(", ")], ["inferred", boundary.inferred], ["error", boundary.error]];
  detail.replaceChildren(...rows.filter(([, value]) => value).flatMap(([name, value]) => {
    const [term, text] = [document.createElement("dt"), document.createElement("dd")];
    term.textContent = name;
    text.textContent = value;
    return [term, text];
  }));
  drawLines();
  drawTimeline();
}

function canvasOf(selector) {
  const canvas = get(selector);
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  canvas.width = width * devicePixelRatio;
  canvas.height = height * devicePixelRatio;
  const pen = canvas.getContext("2d");
  pen.scale(devicePixelRatio, devicePixelRatio);
  pen.clearRect(0, 0, width, height);
  return [pen, width, height];
}

const span = () => {
  const all = state.trace.boundaries;
  if (state.ends?.trace !== state.trace) {
    let [low, high] = [Infinity, 0];
    for (const one of all) {
      low = Math.min(low, one.start);
      high = Math.max(high, one.end);
    }
    state.ends = { trace: state.trace, low, high: Math.max(high, low + 1) };
  }
  return state.ends;
};

// How many levels of boundaries the timeline shows: of the host, and again of the device below them.
const levels = () => Math.min(4, 1 + state.trace.boundaries.reduce((most, one) => Math.max(most, one.level), 0));

function drawTimeline() {
  const shown = levels();
  get(".timeline").style.height = `${(state.trace.hasDevice ? 2 * shown * BAR + 34 : Math.max(2, shown) * BAR + 4)}px`;
  const [pen, width] = canvasOf(".timeline");
  const { low, high } = span();
  const toX = (at) => (((at - low) / (high - low) - state.view[0]) / (state.view[1] - state.view[0])) * width;
  const [plain, other, accent, ink] = ["--color-brand-content", "--color-blue-soft", "--color-accent", "--color-foreground-primary"].map(color);
  const [paper, muted, stack] = ["--color-background-primary", "--color-foreground-muted", "--font-stack"].map(color);
  const drawnTo = [];
  pen.font = `600 11px ${stack}`;
  const draw = (one, start, end, row) => {
    const [from, to] = [toX(start), toX(end)];
    if (one.level >= shown || to < 0 || from > width) return;
    const chosen = one.number === state.chosen;
    if (!chosen && to - from < 0.7 && from - (drawnTo[row] ?? -9) < 0.7) return;
    drawnTo[row] = to;
    const top = row * BAR + (row >= shown ? 30 : 0);
    const wide = Math.max(1, to - from - 1);
    pen.fillStyle = chosen ? accent : one.level % 2 ? plain : other;
    pen.fillRect(from, top, wide, BAR - 3);
    if (wide > 50) {
      pen.fillStyle = chosen || one.level % 2 ? paper : ink;
      const left = Math.max(from, 0) + 5;
      const room = Math.floor((Math.min(to, width) - left) / 6.4);
      if (room > 5) pen.fillText(one.name.length > room ? `${one.name.slice(0, room - 1)}…` : one.name, left, top + 14);
    }
  };
  for (const one of state.trace.boundaries) draw(one, one.start, one.end, one.level);
  if (!state.trace.hasDevice) return;
  pen.fillStyle = muted;
  pen.fillText("on the device", 0, shown * BAR + 20);
  for (const one of state.trace.boundaries) {
    if (one.device) draw(one, one.device.start, one.device.start + one.device.dur, shown + one.level);
  }
}

function drawMemory() {
  const canvas = get(".memory");
  canvas.parentElement.hidden = !state.trace.memory.length;
  if (!state.trace.memory.length) return;
  const [pen, width, height] = canvasOf(".memory");
  const { low, high } = span();
  const most = Math.max(...state.trace.memory.map(([, value]) => value));
  const toX = (at) => (((at - low) / (high - low) - state.view[0]) / (state.view[1] - state.view[0])) * width;
  pen.beginPath();
  let before = height;
  for (const [at, value] of state.trace.memory) {
    const y = height - (value / most) * (height - 16);
    pen.lineTo(toX(at), before);
    pen.lineTo(toX(at), y);
    before = y;
  }
  pen.strokeStyle = color("--color-accent");
  pen.lineWidth = 1.8;
  pen.stroke();
  get(".most").textContent = bytes(most);
}

function drawDifferences() {
  const panel = get(".differences");
  panel.hidden = !state.second;
  if (!state.second) return;
  const all = differences(state.trace, state.second);
  const found = new Map();
  for (const row of all) { // what differs in the same way in every step is one line
    const same = [row.key.replace(/ #\d+$/, ""), row.what, row.first, row.second].join("\n");
    if (found.has(same)) found.get(same).times += 1;
    else found.set(same, { ...row, times: 1 });
  }
  const rows = [...found.values()];
  get(".differences h2").textContent = `${all.length.toLocaleString("en-US")} differences to ${state.second.label || state.second.file || state.second.title}`;
  const body = get(".differences tbody");
  body.replaceChildren(...rows.slice(0, 500).map((row) => {
    const line = document.createElement("tr");
    for (const text of [row.times > 1 ? `${row.key} and ${row.times - 1} more` : row.key, row.what, row.first, row.second]) {
      const one = document.createElement("td");
      one.textContent = text;
      line.append(one);
    }
    return line;
  }));
}

function show(trace, second = false) {
  said.textContent = "";
  if (second) {
    state.second = trace;
    drawDifferences();
    return;
  }
  Object.assign(state, { trace, second: null, open: new Set(), chosen: null, view: [0, 1] });
  const roots = trace.boundaries.filter((one) => one.parent === null);
  if (roots.length < 5) for (const one of roots) state.open.add(one.number);
  place.classList.add("loaded");
  place.dataset.file = trace.file;
  place.classList.toggle("has-device", trace.hasDevice);
  get(".title").textContent = `${trace.title} · ${trace.steps} steps`;
  scroller.scrollTop = 0;
  detail.replaceChildren();
  refold();
  drawTimeline();
  drawMemory();
  drawDifferences();
}

async function take(files, second) {
  for (const [at, file] of [...files].slice(0, 2).entries()) {
    try {
      show(readTrace(await file.text(), file.name), second || at > 0);
    } catch (error) {
      said.textContent = error.message;
    }
  }
}

async function fetchRecorded(name, second = false) {
  const answer = await fetch(new URL(`../traces/${name}.json`, import.meta.url));
  const trace = readTrace(await answer.text(), `${name}.json`);
  trace.label = get("[name=recorded]").querySelector(`[value="${name}"]`)?.textContent;
  show(trace, second);
  const asked = location.hash.match(/^#boundary-(\d+)$/);
  if (asked && !second) choose(Number(asked[1]));
}

scroller.addEventListener("scroll", () => requestAnimationFrame(drawLines));
inside.addEventListener("click", (event) => {
  const row = event.target.closest(".row");
  if (!row) return;
  const number = Number(row.dataset.number);
  if (event.target.closest(".fold")) {
    if (!state.open.delete(number)) state.open.add(number);
    refold();
    inside.querySelector(`[data-number="${number}"] .fold`)?.focus();
    return;
  }
  event.preventDefault();
  choose(number, { scroll: false });
});
get("[name=unfold]").addEventListener("change", (event) => {
  state.unfold = event.target.checked;
  refold();
});
get(".timeline").addEventListener("click", (event) => {
  const { low, high } = span();
  const share = event.offsetX / event.target.clientWidth;
  const at = low + (state.view[0] + share * (state.view[1] - state.view[0])) * (high - low);
  const shown = levels();
  const below = event.offsetY >= shown * BAR;
  const level = Math.floor((below ? event.offsetY - shown * BAR - 30 : event.offsetY) / BAR);
  let [best, nearest] = [null, Infinity];
  for (const one of state.trace.boundaries) {
    if (one.level !== level || (below && !one.device)) continue;
    const [start, end] = below ? [one.device.start, one.device.start + one.device.dur] : [one.start, one.end];
    const far = Math.abs((start + end) / 2 - at);
    if (far < nearest && start <= at + 1 && end >= at - 1) [best, nearest] = [one, far];
  }
  if (best) choose(best.number);
});
get(".timeline").addEventListener("wheel", (event) => {
  event.preventDefault();
  zoom(event.deltaY > 0 ? 1.25 : 0.8, event.offsetX / event.target.clientWidth);
}, { passive: false });

function zoom(factor, share = 0.5) {
  const [from, to] = state.view;
  const at = from + share * (to - from);
  const wide = Math.min(1, (to - from) * factor);
  const left = Math.min(Math.max(0, at - share * wide), 1 - wide);
  state.view = [left, left + wide];
  drawTimeline();
  drawMemory();
}

get(".closer").addEventListener("click", () => zoom(0.6));
get(".farther").addEventListener("click", () => zoom(1 / 0.6));
for (const [selector, second] of [["[name=file]", false], ["[name=second]", true]]) {
  get(selector).addEventListener("change", (event) => take(event.target.files, second));
}
for (const [selector, second] of [["[name=recorded]", false], ["[name=beside]", true]]) {
  get(selector).addEventListener("change", (event) => event.target.value && fetchRecorded(event.target.value, second));
}
place.addEventListener("dragover", (event) => {
  event.preventDefault();
  place.classList.add("over");
});
place.addEventListener("dragleave", () => place.classList.remove("over"));
place.addEventListener("drop", (event) => {
  event.preventDefault();
  place.classList.remove("over");
  take(event.dataTransfer.files, false);
});
addEventListener("resize", () => {
  if (!state.trace) return;
  drawLines();
  drawTimeline();
  drawMemory();
});
place.hidden = false;
fetchRecorded(get("[name=recorded]").value);
