// The page of the model: asks the worker for a run, and shows each boundary that comes back.
import { missing } from "./files.mjs";
import { unpacked } from "./flux.mjs";
import { randn } from "./noise.mjs";
import { LATENTS } from "./pipeline.mjs";
import { indexAt, layoutOf, paintColors, paintMap, paintValues, summary } from "./paint.mjs";
import { makeTokenizer } from "./tokenizer.mjs";
import { makeUnigram } from "./unigram.mjs";

const place = document.querySelector("#model");
const get = (selector) => place.querySelector(selector);
const all = (selector) => [...place.querySelectorAll(selector)];
const form = get("form");
const folder = new URL(place.dataset.folder, document.baseURI).href;
const state = { config: null, tokenize: null, tokenize2: null, worker: null, loaded: new Set(), drawing: false, paused: false, number: 0,
  asked: null, boundaries: [], follow: true, references: {}, farthest: 0, from: "" };

const made = (tag, attributes = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), attributes);
  element.append(...children);
  return element;
};
const shapeOf = ({ dims }) => (dims.length === 1 ? `(${dims[0]},)` : `(${dims.join(", ")})`);
const short = (value) => (Number.isInteger(value) ? String(value) : value.toPrecision(4)).replace("-", "−");
const seconds = (ms) => (ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);
const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;

const NOTES = {
  tokenizer: "One number a token. CLIP reads 16: a start, the caption, and ends up to the last place.",
  tokenizer_2: "The same caption in T5's tokens, with pads behind its end.",
  text_encoder_2: "A row a token, 128 numbers each, by T5. The transformer reads them beside the tokens of the picture.",
  transformer: "The velocity that the model believes in: from the picture to the noise, a row of 16 numbers for each of 64 picture tokens. Guidance is one of its inputs: it has learned what two predictions would make of it.",
  text_encoder: "A row a token, 192 numbers each. Every number may depend on the tokens before it.",
  prepare_latents: "Pure noise, from the seed alone: the numbers that torch draws on a CPU.",
  unet: "The noise that the model believes is in its sample. With guidance on, row 0 is the prediction without the caption, row 1 the one with it.",
  guidance: "noise_pred = noise_pred_uncond + guidance × (noise_pred_text − noise_pred_uncond).",
  "scheduler.step": "pred_original_sample is what would be left without the predicted noise. prev_sample, less noisy by one step, goes on.",
  "vae.decode": "Each place of 4 numbers becomes 8 × 8 pixels.",
};

// What is asked

const family = () => form.elements.model.value;
const asked = () => ({ model: family(), caption: form.caption.value, steps: form.steps.valueAsNumber, guidance: form.guidance.valueAsNumber, seed: form.seed.valueAsNumber });

function fill(values) {
  for (const [name, value] of Object.entries(values)) if (form.elements[name] && value !== null) form.elements[name].value = value;
  showAsked();
}

function showAsked() {
  for (const name of ["steps", "guidance"]) {
    const slider = form[name];
    slider.parentElement.querySelector(".set").textContent = slider.value;
    slider.style.setProperty("--share", (slider.value - slider.min) / (slider.max - slider.min));
  }
  if (family() === "sd" && form.guidance.valueAsNumber <= 1) form.guidance.parentElement.querySelector(".set").textContent = "off";
  if (!state.tokenize) return;
  if (!state.drawing && !state.boundaries.length && form.seed.checkValidity()) showNoise(form.seed.value);
  const chips = ({ ids, tokens, used, cut }, ends) => [
    ...ids.slice(0, used + ends).map((id, at) => made("span", { className: "token", title: `token ${at}` }, tokens[at].replace("</w>", ""), made("small", {}, String(id)))),
    ...(cut ? [made("em", {}, `${cut} more do not fit`)] : []),
  ];
  const clip = chips(state.tokenize(form.caption.value), 2);
  const reader = (name) => made("b", { className: "reader" }, name);
  get(".tokens").replaceChildren(...(family() === "sd" ? clip
    : [reader("CLIP"), ...clip, reader("T5"), ...chips(state.tokenize2(form.caption.value), 1)]));
}

function showPicture(tensor, label, words, { low = -1, high = 1, smooth = false } = {}) {
  const canvas = get(".picture canvas");
  paintColors(canvas, tensor, low, high);
  canvas.classList.toggle("smooth", smooth);
  canvas.setAttribute("aria-label", label);
  get(".picture figcaption").textContent = words;
}

const asPlanes = (tensor) => (tensor.dims.length === 3 ? unpacked(tensor) : tensor);
const showLatents = (tensor, words) => showPicture(asPlanes(tensor), words, words, { low: -3, high: 3 });
const showNoise = (seed) => showPicture({ dims: LATENTS, data: randn(1024, seed) }, `The noise of seed ${seed}`,
  `The noise of seed ${seed}. The picture comes out of it.`, { low: -3, high: 3 });

// The boundaries and the words that belong to the chosen model, and what its first run would load.
async function showModel() {
  for (const part of all("[data-of]")) part.hidden = part.dataset.of !== family();
  const { files } = state.config.families[family()];
  const names = new Map(files.map((name) => [`${folder}${name}`, state.config.files[name]]));
  const left = await missing([...names.keys()]);
  state.size = left.length ? megabytes(left.reduce((sum, url) => sum + names.get(url), 0)) : "from this browser's cache";
  showState();
}

// What is shown

function tensorFigure(name, tensor) {
  const figure = made("figure", { className: "tensor" });
  const head = made("figcaption", {}, made("b", {}, name), " ", made("code", {}, `${shapeOf(tensor)} ${tensor.dtype}`));
  figure.append(head);
  if (tensor.data.length === 1) {
    figure.append(made("p", { className: "value" }, String(tensor.data[0])));
    return figure;
  }
  if (tensor.dtype === "int64") {
    figure.append(made("p", { className: "value" }, `[${[...tensor.data].join(", ")}]`));
    return figure;
  }
  const { min, max, mean, std } = summary(tensor);
  const canvas = made("canvas");
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `Values of ${name}, ${shapeOf(tensor)}`);
  const under = made("output", { className: "under" }, `first values: ${[...tensor.data.slice(0, 3)].map(short).join(", ")}, …`);
  const picture = tensor.dims.length === 4 && tensor.dims[1] === 3;
  if (picture) paintColors(canvas, tensor, -1, 1);
  else {
    paintValues(canvas, tensor);
    canvas.addEventListener("pointermove", (event) => {
      const scale = canvas.width / canvas.clientWidth;
      const found = indexAt(tensor, Math.floor(event.offsetX * scale), Math.floor(event.offsetY * scale));
      if (found) under.textContent = `${name}[${found.index.join(", ")}] = ${short(tensor.data[found.flat])}`;
    });
  }
  canvas.style.width = `${canvas.width * Math.max(1, Math.floor(Math.min(520 / canvas.width, layoutOf(tensor).width > 100 ? 3 : 6)))}px`;
  figure.append(canvas, made("p", { className: "numbers" },
    `min ${short(min)} · max ${short(max)} · mean ${short(mean)} · std ${short(std)}`), under);
  return figure;
}

const titleOf = (boundary) => (boundary.guess ? `${boundary.name} of the guess` : boundary.name);

function choose(at) {
  const boundary = state.boundaries[at];
  if (!boundary) return;
  const lines = all(".boundaries button");
  lines.forEach((line, index) => line.setAttribute("aria-current", String(index === at)));
  const list = get(".boundaries");
  const line = lines[at].parentElement;
  list.scrollTop = Math.max(0, line.offsetTop - list.clientHeight / 2);
  const facts = [boundary.step === null ? "" : `step ${boundary.step} of ${state.asked.steps}, t = ${boundary.t}`, boundary.text === undefined ? "" : `“${boundary.text}”`, seconds(boundary.ms)];
  if (boundary.cross_attention) showAttention(boundary);
  const folded = (title, tensors = {}) => {
    const named = Object.entries(tensors);
    if (!named.length) return [];
    const details = made("details", {}, made("summary", {}, `${title}: ${named.map(([name]) => name).join(", ")}`));
    details.addEventListener("toggle", () => details.append(...named.map(([name, tensor]) => tensorFigure(name, tensor))), { once: true });
    return [details];
  };
  get(".detail").replaceChildren(
    made("h2", {}, titleOf(boundary)),
    made("p", { className: "facts" }, facts.filter(Boolean).join(" · ")),
    made("p", {}, NOTES[boundary.name] + (boundary.guess ? " The course's pipeline decodes once, at the end; this page decodes every guess, to show it." : "")),
    ...Object.entries(boundary.outputs).map(([name, tensor]) => tensorFigure(name, tensor)),
    ...folded("What went in", boundary.inputs),
    ...folded("Inside", boundary.blocks),
  );
}

// For each token of the caption, which places take from it: in the last row, which is the one with the caption.
function showAttention({ cross_attention: attention, step }) {
  const { tokens, used } = state.tokenize(state.asked.caption);
  const row = attention.dims[0] - 1;
  const maps = tokens.slice(0, used + 2).map((token, word) => {
    const canvas = made("canvas");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `Places that take from ${token.replace("</w>", "")}`);
    const share = paintMap(canvas, attention, row, word);
    const name = token.replace("</w>", "").replace(/^<\|(start|end)oftext\|>$/, "$1");
    return made("figure", {}, canvas, made("figcaption", {}, made("span", {}, name), made("small", {}, `${(100 * share).toFixed(1)}%`)));
  });
  get(".attention .maps").replaceChildren(...maps);
  get(".attention .which").textContent = `step ${step}`;
  get(".attention").hidden = false;
}

function emptyFilm(steps) {
  const columns = Array.from({ length: steps + 1 }, (_, at) => {
    const column = made("div", { className: "column" });
    for (const kind of ["latents", "prediction", "guess"]) {
      const button = made("button", { type: "button", className: kind, disabled: true }, made("canvas", { width: 16, height: 16 }));
      button.setAttribute("aria-label", `${kind} of step ${at + 1}`);
      if (at === steps) button.setAttribute("aria-label", kind === "guess" ? "the picture" : `last ${kind}`);
      if (at < steps || kind !== "prediction") column.append(button);
      else column.append(made("span", { className: "blank" }));
    }
    column.append(made("span", { className: "when" }, at === steps ? "result" : "…"));
    return column;
  });
  get(".columns").replaceChildren(...columns);
  get(".film").hidden = false;
}

function frame(column, kind, at, paint) {
  const button = get(".columns").children[column].querySelector(`.${kind}`);
  button.disabled = false;
  button.dataset.boundary = at;
  paint(button.querySelector("canvas"));
}

function showInFilm(boundary, at) {
  const { name, step, inputs, outputs, guess } = boundary;
  const column = step === null ? state.asked.steps : step - 1;
  const columns = get(".columns");
  const denoiser = name === "unet" || name === "transformer";
  if (denoiser && state.follow) columns.scrollLeft = columns.children[column].offsetLeft - columns.clientWidth / 2;
  const noise = (tensor) => (canvas) => paintColors(canvas, asPlanes(tensor), -3, 3);
  const next = name === "vae.decode" ? column + 1 : step === null ? 0 : column;
  showRunning(next);
  place.style.setProperty("--done", next / (state.asked.steps + 1));
  if (denoiser) {
    columns.children[column].querySelector(".when").textContent = `t = ${boundary.t}`;
    frame(column, "latents", at, noise(inputs.sample ?? inputs.hidden_states));
    if (outputs.noise_pred.dims[0] === 1) frame(column, "prediction", at, noise(outputs.noise_pred));
  }
  if (name === "guidance") frame(column, "prediction", at, noise(outputs.noise_pred));
  if (name === "scheduler.step" && step === state.asked.steps) frame(step, "latents", at, noise(outputs.prev_sample));
  if (name !== "vae.decode") return;
  const image = outputs.image;
  frame(column, "guess", at, (canvas) => paintColors(canvas, image, -1, 1));
  if (guess) showPicture(image, `The guess at step ${step}`, `What step ${step} of ${state.asked.steps} believes, at t = ${boundary.t}`, { smooth: true });
  else showPicture(image, `The picture: ${state.asked.caption}`, `“${state.asked.caption}”`, { smooth: true });
}

// The column whose frames come next.
function showRunning(column) {
  for (const [at, one] of [...get(".columns").children].entries()) one.classList.toggle("running", at === column);
}

// Where a run has stopped, the picture is of the latents as they are there.
function showStopped({ name, step, inputs, outputs }) {
  const of = `of ${state.asked.steps}`;
  if (name === "prepare_latents") showLatents(outputs.latents, "The latents before step 1: noise");
  if (name === "unet" || name === "transformer") showLatents(inputs.sample ?? inputs.hidden_states, `The latents that step ${step} ${of} begins with`);
  if (name === "scheduler.step") showLatents(outputs.prev_sample, `The latents after step ${step} ${of}`);
}

// The run that the build recorded from Python, too: the largest difference of its latents, step by step.
function compare({ name, step, outputs }) {
  const { reference } = state.config.families[state.asked.model];
  if (name !== "scheduler.step" || Object.keys(reference).some((key) => reference[key] !== state.asked[key])) return;
  const size = LATENTS.reduce((a, b) => a * b);
  const python = new Float32Array(state.references[state.asked.model], 4 * step * size, size);
  state.farthest = outputs.prev_sample.data.reduce((far, value, at) => Math.max(far, Math.abs(value - python[at])), state.farthest);
  const line = get(".agrees");
  line.dataset.farthest = state.farthest;
  line.textContent = `This run was also recorded in Python. The largest difference of the latents, after ${step} ${step === 1 ? "step" : "steps"}: ${state.farthest.toExponential(1)}.`;
}

function showBoundary(boundary) {
  const at = state.boundaries.push(boundary) - 1;
  const output = Object.values(boundary.outputs)[0];
  const button = made("button", { type: "button" }, made("b", {}, titleOf(boundary)), made("span", {}, boundary.step === null ? "" : `step ${boundary.step}`), made("code", {}, shapeOf(output)));
  button.dataset.boundary = at;
  get(".boundaries").append(made("li", {}, button));
  get(".look").hidden = false;
  for (const chip of all(".places button")) {
    const here = chip.dataset.place === boundary.name;
    chip.classList.toggle("now", here);
    if (here) chip.querySelector("small").textContent = shapeOf(output);
  }
  showInFilm(boundary, at);
  if (boundary.cross_attention) showAttention(boundary);
  compare(boundary);
  if (state.follow || state.paused) choose(at);
}

function showState() {
  const loaded = state.loaded.has(family());
  const show = { slow: loaded && !state.drawing, pause: state.drawing && !state.paused, next: state.paused, go: state.paused };
  for (const [name, shown] of Object.entries(show)) get(`[data-do=${name}]`).hidden = !shown;
  if (loaded) get("[data-do=draw]").textContent = state.drawing ? "Draw anew" : "Draw";
  else get("[data-do=draw]").replaceChildren("Load the model and draw ", made("small", {}, state.size));
  place.classList.toggle("drawing", state.drawing && !state.paused);
  place.classList.toggle("paused", state.paused);
}

const say = (text, wrong = false) => {
  get(".said").textContent = text;
  get(".said").classList.toggle("wrong", wrong);
};

// What the worker says

const heard = {
  progress: ({ got, of }) => {
    get("progress").value = got / of;
    say(`Loading: ${megabytes(got)} of ${megabytes(of)}`);
  },
  starting: () => say("All is here. The networks start."),
  loaded: ({ family: which, asked: files, unkept, reference, ms }) => {
    state.loaded.add(which);
    state.references[which] = reference;
    get(".loading").hidden = true;
    state.from = `The model came from ${files ? "the site" : "this browser's cache"} in ${seconds(ms)}.${unkept ? ` It was not kept: ${unkept}.` : ""}`;
    place.dataset.asked = files;
  },
  boundary: ({ number, boundary, paused }) => {
    if (number !== state.number) return;
    state.paused = paused;
    showBoundary(boundary);
    if (paused) showStopped(boundary);
    showState();
    say(paused ? `Stopped after ${titleOf(boundary)}.` : `Step ${boundary.step ?? 0} of ${state.asked.steps}`);
  },
  done: ({ number, ms }) => {
    if (number !== state.number) return;
    Object.assign(state, { drawing: false, paused: false });
    const spent = (name) => state.boundaries.reduce((sum, one) => sum + (one.name === name ? one.ms : 0), 0);
    say(`${state.asked.steps} steps in ${seconds(ms)}: ${state.asked.model === "sd" ? "unet" : "transformer"} ${seconds(spent("unet") + spent("transformer"))}, vae.decode ${seconds(spent("vae.decode"))}. ${state.from}`);
    state.from = "";
    place.classList.add("done");
    showRunning(-1);
    showState();
  },
  failed: ({ message }) => {
    Object.assign(state, { drawing: false, paused: false });
    get(".loading").hidden = true;
    say(message, true);
    showState();
  },
};

// What the reader does

const stops = () => all(".places [aria-pressed=true]:not([hidden])").map((button) => button.dataset.place);
const tell = (message) => state.worker.postMessage(message);

function begin(once) {
  if (!form.reportValidity()) return;
  if (!state.worker) {
    state.worker = new Worker(new URL("./worker.mjs", import.meta.url), { type: "module" });
    state.worker.addEventListener("message", ({ data }) => heard[data.is](data));
    state.worker.addEventListener("error", (event) => heard.failed({ message: event.message || "The worker did not start." }));
  }
  get(".loading").hidden = state.loaded.has(family());
  Object.assign(state, { number: state.number + 1, asked: asked(), boundaries: [], follow: true, drawing: true, paused: false, farthest: 0 });
  place.classList.remove("done");
  get(".boundaries").replaceChildren();
  get(".look").hidden = get(".attention").hidden = true;
  for (const chip of all(".places button")) chip.classList.remove("now");
  get(".agrees").textContent = "";
  emptyFilm(state.asked.steps);
  showRunning(0);
  showNoise(state.asked.seed);
  place.style.setProperty("--done", 0);
  const changed = Object.entries(state.asked).filter(([key, value]) => state.config.families[family()].reference[key] !== value);
  const words = new URLSearchParams(changed.length ? state.asked : { model: family() });
  history.replaceState(null, "", changed.length || family() !== "sd" ? `?${words}` : location.pathname);
  tell({ do: "draw", number: state.number, asked: state.asked, stops: stops(), once, folder, config: state.config });
  showState();
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  begin(false);
});
form.addEventListener("input", (event) => {
  if (event.target.name === "model") {
    // Each model begins with the guidance that it was recorded with; what else is asked for stays.
    fill({ guidance: state.config.families[family()].reference.guidance });
    showModel();
  } else showAsked();
});
form.caption.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.isComposing) return;
  event.preventDefault();
  form.requestSubmit();
});
const actions = {
  another: ({ currentTarget }) => {
    const captions = JSON.parse(currentTarget.dataset.captions);
    fill({ caption: captions[(captions.indexOf(form.caption.value) + 1) % captions.length] });
  },
  slow: () => begin(true),
  pause: () => tell({ do: "pause" }),
  next: () => tell({ do: "next" }),
  go: () => {
    state.paused = false;
    tell({ do: "go" });
    showState();
  },
};
for (const [name, action] of Object.entries(actions)) get(`[data-do=${name}]`).addEventListener("click", action);
place.addEventListener("click", (event) => {
  const chip = event.target.closest("[data-place]");
  if (chip) {
    chip.setAttribute("aria-pressed", String(chip.getAttribute("aria-pressed") !== "true"));
    if (state.worker) tell({ do: "stops", stops: stops() });
  }
  const boundary = event.target.closest("[data-boundary]");
  if (boundary) {
    state.follow = false;
    choose(Number(boundary.dataset.boundary));
  }
});

state.config = await (await fetch(`${folder}model.json`)).json();
state.tokenize = makeTokenizer(state.config.tokenizer, state.config.length);
state.tokenize2 = makeUnigram(state.config.tokenizer_2, state.config.length_2);
const wanted = Object.fromEntries(new URLSearchParams(location.search));
if (wanted.model in state.config.families) fill(state.config.families[wanted.model].reference);
else delete wanted.model;
fill(wanted);
await showModel();
place.hidden = false;
place.classList.add("ready");
