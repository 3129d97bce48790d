// Brings a calculator's form to life: inputs and units live in the address, results and pictures follow them.
import { format } from "./format.mjs";
import { formulas } from "./formulas.mjs";

const SVG = "http://www.w3.org/2000/svg";

// By attribute: `form.elements` has outputs, too, and some are called as an input is.
const input = (form, name) => form.querySelector(`[data-input][name="${name}"]`);

function values(form) {
  const found = {};
  for (const field of form.querySelectorAll("[data-input]")) found[field.name] = Number(field.value);
  return found;
}

function valid(form) {
  return [...form.querySelectorAll("[data-input]")].every((field) => field.checkValidity());
}

function readAddress(form) {
  const asked = new URLSearchParams(location.search);
  for (const field of form.querySelectorAll("[data-input], [data-view]")) {
    const value = asked.get(field.name);
    if (value === null) continue;
    const before = field.value;
    field.value = value;
    if (!field.value || !field.checkValidity()) field.value = before;
  }
}

function writeAddress(form) {
  const kept = new URLSearchParams();
  for (const field of form.querySelectorAll("[data-input], [data-view]")) {
    if (field.value !== field.dataset.first) kept.set(field.name, field.value);
  }
  const query = kept.toString();
  history.replaceState(null, "", `${location.pathname}${query ? `?${query}` : ""}${location.hash}`);
}

function drawBars(form, results, binary) {
  const bars = [...form.querySelectorAll("[data-bar]")];
  const most = Math.max(...bars.map((bar) => results[bar.dataset.bar]));
  for (const bar of bars) {
    const value = results[bar.dataset.bar];
    bar.querySelector("i").style.width = `${most > 0 ? Math.max(0.4, (100 * value) / most) : 0}%`;
    bar.querySelector("b").textContent = format(value, bar.dataset.kind, binary);
  }
}

function element(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// The values at which the curve is computed: from next to nothing to four times what is asked, within the limits.
function places(field) {
  const here = Number(field.value);
  const [least, most] = [Number(field.min), Number(field.max)];
  const whole = field.step === "1";
  const high = most <= 1.5 ? most : Math.min(most, Math.max(here * 4, least + 8));
  const found = new Set();
  for (let n = 0; n <= 100; n++) {
    const at = least + ((high - least) * n) / 100;
    found.add(whole ? Math.round(at) : at);
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

function drawCurve(form, compute, given, binary) {
  const svg = form.querySelector(".curve svg");
  const field = input(form, form.elements.against.value);
  const out = form.elements.shown.selectedOptions[0];
  const xs = places(field);
  const points = xs.map((x) => [x, compute({ ...given, [field.name]: x })[out.value]]).filter(([, y]) => Number.isFinite(y));
  const [width, height, left, right, top, bottom] = [svg.clientWidth || 640, 260, 78, 14, 16, 46];
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const most = Math.max(...points.map(([, y]) => y)) || 1;
  const low = xs[0];
  const high = xs.at(-1) > low ? xs.at(-1) : low + 1;
  const toX = (x) => left + ((width - left - right) * (x - low)) / (high - low);
  const toY = (y) => height - bottom - ((height - top - bottom) * y) / most;
  const parts = [];
  const unit = unitOf(most, out.dataset.kind, binary);
  const upStep = roundStep(most / unit, 4) * unit;
  for (let at = 0; at <= most * 1.001; at += upStep) {
    const y = toY(at);
    parts.push(element("line", { x1: left, x2: width - right, y1: y, y2: y, class: at ? "grid" : "axis" }));
    parts.push(element("text", { x: left - 8, y: y + 4, "text-anchor": "end" }, at ? format(at, out.dataset.kind, binary) : "0"));
  }
  const step = roundStep(high - low, width < 420 ? 3 : 6);
  for (let at = Math.ceil(low / step) * step; at <= high + step / 1000; at += step) {
    parts.push(element("text", { x: toX(at), y: height - 26, "text-anchor": "middle" }, format(Number(at.toPrecision(12)), "ratio")));
  }
  parts.push(element("text", { x: width - right, y: height - 6, "text-anchor": "end" }, form.elements.against.selectedOptions[0].textContent));
  parts.push(element("path", { d: points.map(([x, y], n) => `${n ? "L" : "M"}${toX(x).toFixed(1)} ${toY(y).toFixed(1)}`).join(""), class: "line" }));
  const now = given[field.name];
  if (now >= low && now <= high) parts.push(element("circle", { cx: toX(now), cy: toY(compute(given)[out.value]), r: 5, class: "now" }));
  svg.replaceChildren(...parts);
  svg.setAttribute("aria-label", `${out.textContent} against ${field.labels[0].textContent}`);
}

function start(form) {
  const compute = formulas[form.dataset.calculator];
  const update = () => {
    form.classList.toggle("wrong", !valid(form));
    if (!valid(form)) return;
    const given = values(form);
    const results = compute(given);
    const binary = form.elements.units?.value === "binary";
    for (const output of form.querySelectorAll("output")) {
      output.value = format(results[output.name], output.dataset.kind, binary);
      output.dataset.value = results[output.name];
    }
    drawBars(form, results, binary);
    if (form.elements.against) drawCurve(form, compute, given, binary);
    writeAddress(form);
  };
  for (const preset of form.querySelectorAll("[data-preset]")) {
    preset.addEventListener("change", () => {
      const chosen = preset.selectedOptions[0].dataset.values;
      for (const [name, value] of Object.entries(JSON.parse(chosen ?? "{}"))) {
        const field = input(form, name);
        if (field) field.value = value;
      }
      update();
    });
  }
  addEventListener("resize", update);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", (event) => {
    if (event.target.matches("[data-input]")) for (const preset of form.querySelectorAll("[data-preset]")) preset.value = "";
    if (!event.target.matches("[data-preset]")) update();
  });
  readAddress(form);
  for (const live of form.querySelectorAll("[data-live]")) live.hidden = false;
  update();
}

for (const form of document.querySelectorAll("form[data-calculator]")) start(form);
