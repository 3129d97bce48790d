// The trace player: the table (only the lines in sight are in the page), the timeline, bytes over time, two traces.
import { differences, linesOf, ownWords, pairsOf, readTrace, said as text } from "./read.mjs";

const LINE = 30;
const BAR = 22;
const MOST_CALLS = 160;
const BOUND = { host: "had caught up with Python when the call ended", device: "still busy when Python's call had ended" };
const place = document.querySelector("#player");
const get = (name) => place.querySelector(name);
const [scroller, inside, said, detail] = [".lines", ".lines > div", ".said", ".detail"].map(get);
const state = { trace: null, second: null, pairs: null, differing: new Set(), files: {}, open: new Set(), unfold: false, chosen: null, hovered: null,
  lines: [], view: [0, 1] };

const time = (us) => (us >= 1e6 ? `${(us / 1e6).toPrecision(3)} s` : us >= 1000 ? `${(us / 1000).toPrecision(3)} ms` : `${Math.round(us)} µs`);
const bytes = (value) => {
  if (value === null) return "";
  const step = value < 1000 ? 0 : Math.min(4, Math.floor(Math.log10(value) / 3));
  return `${(value / 1000 ** step).toLocaleString("en-US", { maximumSignificantDigits: 4 })} ${["B", "kB", "MB", "GB", "TB"][step]}`;
};
const count = (number) => number.toLocaleString("en-US");
const color = (name) => getComputedStyle(place).getPropertyValue(name);
const nameOf = (trace) => trace.label || trace.file || trace.title;

function made(tag, attributes = {}, ...children) {
  const { dataset = {}, ...rest } = attributes;
  const element = Object.assign(document.createElement(tag), rest);
  Object.assign(element.dataset, dataset);
  element.append(...children);
  return element;
}

// The table

const cell = (kind, words, title = "") => made("span", { className: kind, title }, String(words));

// A long name that has no room loses letters in its middle: its last part says what is called.
function nameParts(name) {
  const dot = name.lastIndexOf(".") + 1;
  return dot && name.length > 20 ? [made("span", {}, name.slice(0, dot)), made("span", {}, name.slice(dot))] : [name];
}

// A name that may go on in the next line after each of its words.
const wrapped = (name) => (name.match(/[^._]*[._]?/g) ?? []).flatMap((part) => [part, made("wbr")]);

const stands = ({ boundary, times, last }, number) => number === boundary.number
  || (times > 1 && number > boundary.number && number <= last && state.trace.boundaries[number].name === boundary.name
    && state.trace.boundaries[number].parent === boundary.parent);

function lineOf(line, index) {
  const { times, inner, isOpen } = line;
  const chosen = state.chosen !== null && stands(line, state.chosen);
  const boundary = chosen ? state.trace.boundaries[state.chosen] : line.boundary;
  const row = made("div", { className: `row${chosen ? " chosen" : ""}${line.differs ? " differs" : ""}${boundary.error ? " error" : ""}`,
    role: "row", dataset: { number: line.boundary.number } });
  row.setAttribute("aria-rowindex", index + 2);
  row.style.top = `${index * LINE}px`;
  const name = cell("name", "");
  name.style.paddingLeft = `${boundary.level * 1.1}rem`;
  if (inner) {
    const fold = made("button", { type: "button", className: "fold" }, isOpen ? "▾" : "▸");
    fold.setAttribute("aria-label", `${isOpen ? "Fold" : "Unfold"} ${boundary.name}`);
    fold.setAttribute("aria-expanded", String(isOpen));
    name.append(fold);
  } else name.append(cell("nofold", ""));
  name.append(made("a", { href: `#boundary-${boundary.number}`, title: boundary.name }, ...nameParts(boundary.name)));
  if (times > 1) name.append(cell("times", `× ${times}`));
  const cells = [name, cell("step", boundary.step ?? ""), cell("in", boundary.inputs, boundary.inputs),
    cell("out", boundary.inferred || boundary.outputs, boundary.outputs), cell("bytes", bytes(boundary.bytes)), cell("time", boundary.dur ? time(boundary.dur) : ""), cell("device", boundary.device ? time(boundary.device.dur) : "")];
  for (const one of cells) one.setAttribute("role", "cell");
  row.append(...cells);
  return row;
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
  if (state.second) for (const line of state.lines) {
    line.differs = state.differing.has(line.boundary.number)
      || (line.times > 1 && [...state.differing].some((number) => stands(line, number)));
  }
  inside.style.height = `${state.lines.length * LINE}px`;
  get(".table").setAttribute("aria-rowcount", state.lines.length + 1);
  get(".count").textContent = `${count(state.lines.length)} lines of ${count(state.trace.boundaries.length)} boundaries`;
  drawLines();
}

// The chosen boundary

// Show a boundary: open what it lies in, and bring its line into sight.
function choose(number, { scroll = true, address = true } = {}) {
  const boundary = state.trace.boundaries[number];
  if (!boundary) return;
  state.chosen = number;
  for (let up = boundary.parent; up !== null; up = state.trace.boundaries[up].parent) state.open.add(up);
  refold();
  const find = () => state.lines.findIndex((line) => stands(line, number));
  let at = find();
  if (at < 0) {
    state.unfold = get("[name=unfold]").checked = true;
    refold();
    at = find();
  }
  const top = at * LINE;
  const inSight = top >= scroller.scrollTop && top + LINE <= scroller.scrollTop + scroller.clientHeight;
  if (scroll && !inSight) scroller.scrollTop = Math.max(0, top - scroller.clientHeight / 2);
  if (address) {
    history.replaceState(null, "", `#boundary-${number}`);
    place.classList.add("asked");
  }
  showDetail(boundary);
  drawLines();
  drawTimelines();
}

// Two values of the same thing: one of them if they are equal, both with what is their own if not.
function values(one, two) {
  if (!state.second || one === two) return [made("span", {}, one)];
  if (two === undefined) return [made("span", {}, one)];
  return ownWords(one, two).flatMap((runs, side) => (runs.length ? [made("span", { className: side ? "other" : "" },
    ...runs.map(([same, words]) => (same ? words : made("mark", {}, words))))] : []));
}

function showDetail(boundary) {
  const other = state.pairs?.second.get(boundary.number);
  const term = (name, one, two) => (one || two ? [made("dt", {}, name), made("dd", {}, ...values(one, two))] : []);
  const given = (of) => (of?.given && typeof of.given === "object" ? of.given : {});
  const [mine, its] = [given(boundary), given(other)];
  const names = [...new Set([...Object.keys(mine), ...Object.keys(its)])];
  const ins = names.length ? names.flatMap((name) => term(name, text(mine[name]), other && text(its[name]))) : term("", boundary.inputs, other?.inputs);
  const part = (title, terms) => (terms.length ? [made("h3", {}, title), made("dl", {}, ...terms)] : []);
  const numbers = [["time", boundary.dur && time(boundary.dur), other?.dur && time(other.dur)],
    ["device", boundary.device && time(boundary.device.dur), other?.device && time(other.device.dur)],
    ["bytes out", bytes(boundary.bytes), other && bytes(other.bytes)]];
  const facts = [boundary.step === null ? "" : `step ${boundary.step}`, boundary.kind, `number ${boundary.number}`].filter(Boolean).join(" · ");
  const close = made("button", { type: "button", className: "close" }, "×");
  close.setAttribute("aria-label", "Close");
  detail.replaceChildren(close, made("h2", {}, ...wrapped(boundary.name)), made("p", { className: "facts" }, facts),
    ...(state.second && !other ? [made("p", { className: "only" }, "only in the first")] : []),
    made("div", { className: "numbers" }, ...numbers.filter(([, one]) => one).map(([name, one, two]) => made("p", {},
      made("small", {}, name), made("b", {}, one), ...(two ? [made("b", { className: "other" }, two)] : [])))),
    ...callsOf(boundary),
    ...part("in", ins), ...part("out", term("", boundary.outputs, other?.outputs)),
    ...part("also", [...term("device", boundary.device ? BOUND[boundary.device.bound] ?? "" : ""), ...term("changes", boundary.changes.join(", ")),
      ...term("inferred", boundary.inferred), ...term("error", boundary.error)]));
}

// Every call of the same boundary as a bar as high as it took; each leads to its call.
function callsOf(boundary) {
  const took = (one) => one.device?.dur ?? one.dur;
  const calls = state.trace.boundaries.filter((one) => one.name === boundary.name && one.level === boundary.level);
  const most = calls.reduce((high, one) => Math.max(high, took(one)), 0);
  if (calls.length < 2 || calls.length > MOST_CALLS || !most) return [];
  const bars = calls.map((one, at) => {
    const bar = made("button", { type: "button", title: `${one.step === null ? `call ${at + 1}` : `step ${one.step}`}: ${time(took(one))}`, dataset: { call: one.number } }, made("i"));
    bar.setAttribute("aria-label", bar.title);
    bar.setAttribute("aria-pressed", String(one === boundary));
    bar.firstChild.style.height = `${Math.max(4, (100 * took(one)) / most)}%`;
    return bar;
  });
  const together = calls.reduce((sum, one) => sum + took(one), 0);
  return [made("h3", {}, `${calls.length} calls, ${time(together)}`), made("div", { className: "calls" }, ...bars)];
}

// The timelines: all traces begin together, on the axis of the longest one.

const ends = new WeakMap();
function span(trace) {
  if (!ends.has(trace)) {
    let [low, high] = [Infinity, 0];
    for (const one of trace.boundaries) {
      low = Math.min(low, one.start);
      high = Math.max(high, one.end);
    }
    ends.set(trace, { low, long: Math.max(high - low, 1) });
  }
  return ends.get(trace);
}
const longest = () => Math.max(span(state.trace).long, state.second ? span(state.second).long : 0);
const placeOf = (trace, width) => {
  const [{ low }, all, [from, to]] = [span(trace), longest(), state.view];
  return (at) => (((at - low) / all - from) / (to - from)) * width;
};

function canvasOf(canvas) {
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  canvas.width = width * devicePixelRatio;
  canvas.height = height * devicePixelRatio;
  const pen = canvas.getContext("2d");
  pen.scale(devicePixelRatio, devicePixelRatio);
  return [pen, width, height];
}

// How many levels of boundaries a timeline shows: of the host, and again of the device below them.
const levels = (trace) => Math.min(4, 1 + trace.boundaries.reduce((most, one) => Math.max(most, one.level), 0));

function drawTimeline(canvas, trace, chosenOne, lit) {
  const shown = levels(trace);
  canvas.style.height = `${(trace.hasDevice ? 2 * shown * BAR + 34 : Math.max(2, shown) * BAR + 4)}px`;
  const [pen, width] = canvasOf(canvas);
  const toX = placeOf(trace, width);
  const [plain, other, accent, ink] = ["--color-brand-content", "--color-blue-soft", "--color-accent", "--color-foreground-primary"].map(color);
  const [paper, muted, stack] = ["--color-background-primary", "--color-foreground-muted", "--font-stack"].map(color);
  const drawnTo = [];
  pen.font = `600 11px ${stack}`;
  const draw = (one, start, end, row) => {
    const [from, to] = [toX(start), toX(end)];
    if (one.level >= shown || to < 0 || from > width) return;
    const chosen = one.number === chosenOne;
    if (!chosen && to - from < 0.7 && from - (drawnTo[row] ?? -9) < 0.7) return;
    drawnTo[row] = to;
    const top = row * BAR + (row >= shown ? 30 : 0);
    const wide = Math.max(1, to - from - 1);
    pen.fillStyle = chosen ? accent : one.level % 2 ? plain : other;
    pen.beginPath();
    pen.roundRect(from, top, wide, BAR - 3, Math.min(3, wide / 3));
    pen.fill();
    if (lit?.(one) && !chosen) {
      pen.fillStyle = accent;
      pen.fillRect(from, top + BAR - 6, wide, 3);
    }
    if (wide > 36) {
      pen.fillStyle = chosen || one.level % 2 ? paper : ink;
      const left = Math.max(from, 0) + 5;
      const room = Math.floor((Math.min(to, width) - left) / 6.4);
      if (room > 3) pen.fillText(one.name.length > room ? `${one.name.slice(0, room - 1)}…` : one.name, left, top + 14);
    }
  };
  for (const one of trace.boundaries) draw(one, one.start, one.end, one.level);
  if (!trace.hasDevice) return;
  pen.fillStyle = muted;
  pen.fillText("on the device", 0, shown * BAR + 20);
  for (const one of trace.boundaries) {
    if (one.device) draw(one, one.device.start, one.device.start + one.device.dur, shown + one.level);
  }
}

function drawAxis() {
  const [pen, width] = canvasOf(get(".axis"));
  const [all, [from, to]] = [longest(), state.view];
  const least = ((to - from) * all * 90) / width;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = power * [1, 2, 5, 10].find((times) => times * power >= least);
  pen.font = `500 11px ${color("--font-stack")}`;
  [pen.fillStyle, pen.strokeStyle] = [color("--color-foreground-muted"), color("--color-foreground-border")];
  for (let at = Math.ceil((from * all) / step) * step; at <= to * all; at += step) {
    const x = ((at / all - from) / (to - from)) * width;
    pen.fillRect(Math.min(x, width - 1), 0, 1, 5);
    const words = at ? time(at).replace(/\.0+(?= )/, "") : "0";
    pen.textAlign = x < 20 ? "left" : x > width - 24 ? "right" : "center";
    pen.fillText(words, x, 16);
  }
}

function drawTimelines() {
  const line = state.lines.find(({ boundary }) => boundary.number === state.hovered);
  drawTimeline(get(".one"), state.trace, state.chosen, line ? (one) => stands(line, one.number) : null);
  get(".two").hidden = !state.second;
  for (const [selector, trace] of [[".of.first", state.trace], [".of.second", state.second]]) {
    get(selector).hidden = !state.second;
    if (state.second) get(selector).replaceChildren(made("b", {}, nameOf(trace)), ` ${time(span(trace).long)}`);
  }
  if (state.second) drawTimeline(get(".two"), state.second, state.pairs.second.get(state.chosen)?.number);
  drawAxis();
}

function drawMemory() {
  const canvas = get(".memory");
  canvas.parentElement.hidden = !state.trace.memory.length;
  if (!state.trace.memory.length) return;
  const [pen, width, height] = canvasOf(canvas);
  const traces = [state.trace, ...(state.second?.memory.length ? [state.second] : [])];
  const peaks = traces.map((trace) => trace.memory.reduce((most, [, value]) => Math.max(most, value), 0));
  const most = Math.max(...peaks);
  for (const [which, trace] of [...traces.entries()].reverse()) {
    const toX = placeOf(trace, width);
    pen.beginPath();
    pen.moveTo(toX(trace.memory[0][0]), height);
    let before = height;
    for (const [at, value] of trace.memory) {
      const y = height - (value / most) * (height - 16);
      pen.lineTo(toX(at), before);
      pen.lineTo(toX(at), y);
      before = y;
    }
    pen.strokeStyle = pen.fillStyle = color(which ? "--color-pictures" : "--color-accent");
    pen.lineWidth = 1.8;
    pen.stroke();
    pen.lineTo(toX(trace.memory.at(-1)[0]), height);
    pen.globalAlpha = 0.1;
    pen.fill();
    pen.globalAlpha = 1;
  }
  get(".most").textContent = bytes(peaks[0]);
  get(".most-second").textContent = peaks.length > 1 ? `beside it ${bytes(peaks[1])}` : "";
}

const drawTime = () => {
  drawTimelines();
  drawMemory();
};

// Two traces

function compare() {
  const panel = get(".differences");
  panel.hidden = get(".found").hidden = !state.second;
  place.classList.toggle("compared", Boolean(state.second));
  state.pairs = state.second && pairsOf(state.trace, state.second);
  const all = state.second ? differences(state.trace, state.second) : [];
  state.differing = new Set(all.flatMap(({ boundary }) => (boundary ? [boundary.number] : [])));
  if (!state.second) return;
  const found = new Map();
  for (const row of all) { // what differs in the same way in every step is one line
    const same = [row.key.replace(/ #\d+$/, ""), row.what, row.first, row.second].join("\n");
    if (found.has(same)) found.get(same).times += 1;
    else found.set(same, { ...row, times: 1 });
  }
  const words = `${count(all.length)} ${all.length === 1 ? "difference" : "differences"}`;
  get(".found").textContent = `${words} ↓`;
  get(".differences h2").textContent = `${words} to ${nameOf(state.second)}`;
  get(".differences tbody").replaceChildren(...[...found.values()].slice(0, 500).map((row) => {
    const name = wrapped(row.times > 1 ? `${row.key} and ${row.times - 1} more` : row.key);
    const first = row.boundary ? [made("a", { href: `#boundary-${row.boundary.number}`, dataset: { call: row.boundary.number } }, ...name)] : name;
    const sides = ownWords(row.first, row.second).map((runs) => runs.map(([same, one]) => (same || !row.first || !row.second ? one : made("mark", {}, one))));
    return made("tr", {}, ...[first, [row.what], ...sides].map((parts) => made("td", {}, ...parts)));
  }));
}

function show(trace, second = false) {
  said.textContent = "";
  if (second) state.second = trace;
  else {
    Object.assign(state, { trace, open: new Set(), chosen: null, hovered: null, view: [0, 1] });
    const roots = trace.boundaries.filter((one) => one.parent === null);
    if (roots.length < 5) for (const one of roots) state.open.add(one.number);
    place.classList.add("loaded");
    place.classList.remove("asked");
    place.dataset.file = trace.file;
    place.classList.toggle("has-device", trace.hasDevice);
    get(".title").textContent = `${trace.title} · ${trace.steps} steps`;
    scroller.scrollTop = 0;
    detail.replaceChildren();
  }
  compare();
  refold();
  if (state.chosen === null) { // where most of the time goes
    const took = ({ boundary, times, isOpen }) => (isOpen ? -1 : boundary.dur * times);
    const most = state.lines.reduce((best, line) => (took(line) > took(best) ? line : best), state.lines[0]);
    choose(most.boundary.number, { scroll: false, address: false });
  } else choose(state.chosen, { address: false });
  drawMemory();
}

// A file of the reader's is one more choice of its list.
function keep(trace, select) {
  let option = select.querySelector("[value=file]");
  if (!option) select.append(option = made("option", { value: "file" }));
  option.textContent = trace.file;
  select.value = "file";
  state.files[select.name] = trace;
}

async function take(files, second) {
  for (const [at, file] of [...files].slice(0, 2).entries()) {
    try {
      const trace = readTrace(await file.text(), file.name);
      keep(trace, get(second || at ? "[name=beside]" : "[name=recorded]"));
      show(trace, second || at > 0);
      place.classList.add("own");
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

// What the reader does

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
  inside.querySelector(`[data-number="${number}"] a`)?.focus({ preventScroll: true });
});
place.querySelector(".table").addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const at = step && state.lines.findIndex((line) => stands(line, state.chosen)) + step;
  if (at === undefined || !state.lines[at]) return;
  event.preventDefault();
  choose(state.lines[at].boundary.number);
  scroller.focus({ preventScroll: true });
});
const hover = (number) => {
  if (number === state.hovered) return;
  state.hovered = number;
  requestAnimationFrame(drawTimelines);
};
inside.addEventListener("pointermove", (event) => {
  const row = event.target.closest(".row");
  hover(row ? Number(row.dataset.number) : null);
});
inside.addEventListener("pointerleave", () => hover(null));
place.addEventListener("click", (event) => {
  const call = event.target.closest("[data-call]");
  if (event.target.closest(".close")) place.classList.remove("asked");
  if (!call) return;
  event.preventDefault();
  choose(Number(call.dataset.call));
  if (call.matches(".differences a")) get(".times-of").scrollIntoView({ block: "start" });
  else detail.querySelector(`[data-call="${call.dataset.call}"]`)?.focus({ preventScroll: true });
});
get("[name=unfold]").addEventListener("change", (event) => {
  state.unfold = event.target.checked;
  refold();
});

// The boundary of a trace at a place of its timeline.
function at(trace, event) {
  const toX = placeOf(trace, event.target.clientWidth);
  const shown = levels(trace);
  const below = event.offsetY >= shown * BAR;
  const level = Math.floor((below ? event.offsetY - shown * BAR - 30 : event.offsetY) / BAR);
  let [best, nearest] = [null, Infinity];
  for (const one of trace.boundaries) {
    if (one.level !== level || (below && !one.device)) continue;
    const [start, end] = (below ? [one.device.start, one.device.start + one.device.dur] : [one.start, one.end]).map(toX);
    const far = Math.abs((start + end) / 2 - event.offsetX);
    if (far < nearest && start <= event.offsetX + 1 && end >= event.offsetX - 1) [best, nearest] = [one, far];
  }
  return best;
}

for (const [selector, which] of [[".one", "trace"], [".two", "second"]]) {
  const canvas = get(selector);
  canvas.addEventListener("click", (event) => {
    const found = at(state[which], event);
    const mine = found && (which === "trace" ? found : state.pairs.first.get(found.number));
    if (mine) choose(mine.number);
  });
  canvas.addEventListener("pointermove", (event) => {
    const found = at(state[which], event);
    canvas.title = found ? `${found.name}, ${time(found.dur)}` : "";
  });
  // The page scrolls below the pointer; sideways, and with Ctrl or two fingers, it is the time that moves.
  canvas.addEventListener("wheel", (event) => {
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (!sideways && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    if (sideways) look(state.view[0] + (event.deltaX / canvas.clientWidth) * (state.view[1] - state.view[0]));
    else zoom(event.deltaY > 0 ? 1.25 : 0.8, event.offsetX / canvas.clientWidth);
  }, { passive: false });
}

function look(from, wide = state.view[1] - state.view[0]) {
  const left = Math.min(Math.max(0, from), 1 - wide);
  state.view = [left, left + wide];
  drawTime();
}

function zoom(factor, share = 0.5) {
  const [from, to] = state.view;
  const wide = Math.min(1, (to - from) * factor);
  look(from + share * (to - from - wide), wide);
}

get(".closer").addEventListener("click", () => zoom(0.6));
get(".farther").addEventListener("click", () => zoom(1 / 0.6));
for (const [selector, second] of [["[name=file]", false], ["[name=second]", true]]) {
  get(selector).addEventListener("change", (event) => take(event.target.files, second));
}
for (const [selector, second] of [["[name=recorded]", false], ["[name=beside]", true]]) {
  get(selector).addEventListener("change", ({ target }) => {
    if (!second) history.replaceState(null, "", location.pathname);
    if (target.value === "file") show(state.files[target.name], second);
    else if (target.value) fetchRecorded(target.value, second);
    else show(null, true);
  });
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
const redraw = () => {
  if (!state.trace) return;
  drawLines();
  drawTime();
};
addEventListener("resize", redraw);
// What is drawn has the colors of its scheme.
new MutationObserver(redraw).observe(document.body, { attributeFilter: ["data-theme"] });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
place.hidden = false;
const wanted = new URLSearchParams(location.search).get("run"); // a link may ask for a recorded run
if ([...get("[name=recorded]").options].some(({ value }) => value === wanted)) get("[name=recorded]").value = wanted;
fetchRecorded(get("[name=recorded]").value);
