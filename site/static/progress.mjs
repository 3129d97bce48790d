// What the reader has read, done and learned: kept in this browser, nowhere else.

const ROOT = new URL("..", import.meta.url).pathname;
const KEY = `inferlab:${ROOT}`;
export const DAYS = [1, 3, 7, 14, 30]; // Leitner's boxes, as in inferlab.lab.cards.progress
const EMPTY = { read: {}, done: {}, cards: {} };

export const today = () => {
  const now = new Date();
  return new Date(now.getTime() - now.getTimezoneOffset() * 60000).toISOString().slice(0, 10);
};

const later = (days) => new Date(Date.parse(today()) + days * 86400000).toISOString().slice(0, 10);
const isDay = (value) => typeof value === "string" && /^\d{4}-\d\d-\d\d$/.test(value);
const isBox = (value) => Array.isArray(value) && value.length === 2 && Number.isInteger(value[0]) && value[0] >= 0 && isDay(value[1]);

// The parts of anything that claims to be progress which really are; throws when it is none.
export function cleaned(value) {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error("This file holds no progress.");
  const kept = structuredClone(EMPTY);
  for (const part of Object.keys(EMPTY)) {
    const fits = part === "cards" ? isBox : isDay;
    for (const [name, entry] of Object.entries(value[part] ?? {})) if (fits(entry)) kept[part][name] = entry;
  }
  if (!Object.keys(EMPTY).some((part) => part in value)) throw new Error("This file holds no progress.");
  return kept;
}

export function load() {
  try {
    return cleaned(JSON.parse(localStorage.getItem(KEY)));
  } catch {
    return structuredClone(EMPTY); // nothing kept yet, or nothing that can be read
  }
}

export function save(progress) {
  localStorage.setItem(KEY, JSON.stringify(progress));
}

export function answer(id, known) {
  const progress = load();
  const box = known ? (progress.cards[id]?.[0] ?? 0) + 1 : 0;
  progress.cards[id] = [box, known ? later(DAYS[Math.min(box, DAYS.length) - 1]) : today()];
  save(progress);
  return progress.cards[id];
}

export const isDue = (id, progress = load()) => !(id in progress.cards) || progress.cards[id][1] <= today();

function markButton(steps) {
  const part = steps.querySelector("[aria-current]").dataset.step;
  const lab = steps.dataset.lab;
  const button = document.createElement("button");
  button.className = "mark";
  const words = { read: ["Mark as read", "Read"], done: ["Mark as done", "Done"] }[part];
  const show = () => {
    const day = load()[part][lab];
    button.setAttribute("aria-pressed", String(Boolean(day)));
    button.textContent = day ? `✓ ${words[1]} on ${day}` : words[0];
  };
  button.addEventListener("click", () => {
    const progress = load();
    if (progress[part][lab]) delete progress[part][lab];
    else progress[part][lab] = today();
    save(progress);
    show();
  });
  show();
  steps.append(button);
}

function onHome(place) {
  const cards = JSON.parse(place.dataset.cards);
  const stops = [...document.querySelectorAll(".track a[data-lab]")];
  const show = () => {
    const progress = load();
    for (const stop of stops) {
      stop.classList.toggle("read", stop.dataset.lab in progress.read);
      stop.classList.toggle("done", stop.dataset.lab in progress.done);
    }
    const count = (part) => stops.filter((stop) => stop.dataset.lab in progress[part]).length;
    const due = cards.filter((id) => isDue(id, progress)).length;
    place.querySelector(".so-far").textContent = `${count("read")} of ${stops.length} sections read · `
      + `${count("done")} of ${stops.length} labs done · ${due} of ${cards.length} cards due`;
  };
  place.querySelector(".export").addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([JSON.stringify(load(), null, 1)], { type: "application/json" }));
    link.download = `inferlab-progress-${today()}.json`;
    link.click();
    URL.revokeObjectURL(link.href);
  });
  const file = place.querySelector("input[type=file]");
  file.addEventListener("change", async () => {
    const said = place.querySelector(".said");
    try {
      save(cleaned(JSON.parse(await file.files[0].text())));
      said.textContent = "Your progress is here now.";
    } catch (error) {
      said.textContent = error instanceof SyntaxError ? "This file holds no progress." : error.message;
    }
    file.value = "";
    show();
  });
  place.hidden = false;
  show();
}

for (const steps of document.querySelectorAll("nav.steps")) markButton(steps);
for (const place of document.querySelectorAll(".progress")) onHome(place);
