// Brings a calculator's form to life: inputs and units live in the address, results and pictures follow them.
import { drawn, numberAt, shareOf } from "./curve.mjs";
import { format } from "./format.mjs";
import { formulas } from "./formulas.mjs";

// By attribute: `form.elements` has outputs, too, and some are called as an input is.
const input = (form, name) => form.querySelector(`[data-input][name="${name}"]`);
const inputs = (form) => [...form.querySelectorAll("[data-input]")];
const limits = (field) => ({ name: field.name, label: field.labels[0].firstChild.textContent.trim(), least: Number(field.min), most: Number(field.max), whole: field.step === "1" });
const values = (form) => Object.fromEntries(inputs(form).map((field) => [field.name, Number(field.value)]));

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

// Below each wrong field, what may stand in it. Returns whether all are right.
function showReasons(form) {
  let right = true;
  for (const field of inputs(form)) {
    const wrong = !field.checkValidity();
    right &&= !wrong;
    const id = `why-${field.name}`;
    document.getElementById(id)?.remove();
    field.toggleAttribute("aria-invalid", wrong);
    field.removeAttribute("aria-describedby");
    if (!wrong) continue;
    const [least, most] = [field.min, field.max].map((value) => Number(value).toLocaleString("en-US"));
    const reason = Object.assign(document.createElement("small"), { id, className: "reason",
      textContent: `${field.step === "1" ? "A whole number" : "A number"} from ${least} to ${most}` });
    reason.setAttribute("role", "status");
    field.setAttribute("aria-describedby", id);
    field.after(reason);
  }
  form.classList.toggle("wrong", !right);
  return right;
}

// A preset is chosen as long as its numbers stand in the fields.
function showPresets(form, given) {
  for (const preset of form.querySelectorAll("[data-preset]")) {
    const fits = (option) => Object.entries(JSON.parse(option.dataset.values)).every(([name, value]) => !(name in given) || given[name] === value);
    preset.value = [...preset.options].filter((option) => option.dataset.values).find(fits)?.value ?? "";
  }
}

function drawBars(form, results, binary) {
  const bars = [...form.querySelectorAll("[data-bar]")];
  const most = Math.max(...bars.map((bar) => results[bar.dataset.bar]));
  for (const bar of bars) {
    const value = results[bar.dataset.bar];
    bar.querySelector("i").style.width = `${most > 0 ? Math.max(0.4, (100 * value) / most) : 0}%`;
    const said = bar.querySelector("b");
    if (said) said.textContent = format(value, bar.dataset.kind, binary);
  }
}

// Returns what number a place of the curve stands for.
function drawCurve(form, compute, given, binary) {
  const svg = form.querySelector(".curve svg");
  const { log = "", knee = null, against } = JSON.parse(form.dataset.curve);
  const field = limits(input(form, form.elements.against.value));
  const named = (option) => ({ name: option.value, kind: option.dataset.kind, label: option.textContent });
  const options = [...form.elements.shown.options].map(named);
  const shown = named(form.elements.shown.selectedOptions[0]);
  const bars = [...form.querySelectorAll("[data-bar]")].map((bar, series) => ({ name: bar.dataset.bar, kind: bar.dataset.kind, series }));
  const together = shown.name === options[0].name;
  const [width, height] = [svg.clientWidth || 440, 250];
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const { svg: inside, fromX, said } = drawn({ compute, given, field, shown, log, width, height, binary,
    beside: together ? bars.filter((bar) => bar.name !== shown.name && bar.kind === shown.kind) : [],
    knee: together && (knee?.of || field.name === against) ? knee : null });
  svg.innerHTML = inside;
  svg.setAttribute("aria-label", `${shown.label} against ${field.label}${said ? `: ${said}` : ""}`);
  return fromX;
}

function start(form) {
  const compute = formulas[form.dataset.calculator];
  const svg = form.querySelector(".curve svg");
  let fromX = null;
  const update = () => {
    if (!showReasons(form)) return;
    const given = values(form);
    const results = compute(given);
    const binary = form.elements.units?.value === "binary";
    for (const output of form.querySelectorAll("output")) {
      output.value = format(results[output.name], output.dataset.kind, binary);
      output.dataset.value = results[output.name];
    }
    for (const slider of form.querySelectorAll("[data-for]")) {
      const field = input(form, slider.dataset.for);
      if (slider !== document.activeElement || numberAt(slider.valueAsNumber, limits(field)) !== given[field.name]) slider.value = shareOf(given[field.name], limits(field));
      slider.style.setProperty("--share", slider.value);
      slider.setAttribute("aria-valuetext", field.value);
    }
    showPresets(form, given);
    drawBars(form, results, binary);
    fromX = drawCurve(form, compute, given, binary);
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
  const put = (name, value) => {
    input(form, name).value = value;
    update();
  };
  svg.addEventListener("pointerdown", (event) => {
    svg.setPointerCapture(event.pointerId);
    put(form.elements.against.value, fromX(event.offsetX));
  });
  svg.addEventListener("pointermove", (event) => {
    if (svg.hasPointerCapture(event.pointerId)) put(form.elements.against.value, fromX(event.clientX - svg.getBoundingClientRect().left));
  });
  addEventListener("resize", update);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", ({ target }) => {
    if (target.dataset.for) put(target.dataset.for, numberAt(target.valueAsNumber, limits(input(form, target.dataset.for))));
    else if (!target.matches("[data-preset]")) update();
  });
  readAddress(form);
  for (const live of form.querySelectorAll("[data-live]")) live.hidden = false;
  update();
}

for (const form of document.querySelectorAll("form[data-calculator]")) start(form);
