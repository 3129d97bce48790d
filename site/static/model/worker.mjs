// Runs the model away from the page. A run is a generator of boundaries, and a pause is not asking it for the next one.
import { fetchAll } from "./files.mjs";
import { open } from "./networks.mjs";
import { run } from "./pipeline.mjs";

const loading = {}; // family -> a promise of its model, from its first run on
const sessions = new Map(); // the networks, by name: some are of both families
let current = null; // the run: { stops: names to stop at, once: stop at the next boundary, goOn: ends the pause }

async function load(family, folder, config) {
  const began = performance.now();
  const url = (name) => new URL(name, folder).href;
  const files = config.families[family].files.map((name) => ({ name, bytes: config.files[name], url: url(name) }));
  const current = new Set(Object.keys(config.files).map(url));
  const { data, asked, unkept } = await fetchAll(files, current, (got, of) => postMessage({ is: "progress", got, of }));
  postMessage({ is: "starting" });
  const model = await open(await import("./ort.mjs"), config, data, sessions);
  postMessage({ is: "loaded", family, asked, unkept, reference: data.get(`reference-${family}.f32`), ms: performance.now() - began });
  return model;
}

async function draw({ number, asked, stops, once, folder, config }) {
  current?.goOn?.(); // a run that is paused sees that it is not the current one any more
  const mine = (current = { stops: new Set(stops), once, goOn: null });
  const family = asked.model;
  loading[family] ??= load(family, folder, config).catch((error) => {
    delete loading[family];
    throw error;
  });
  const model = await loading[family];
  let ms = 0;
  for await (const boundary of run(model, asked)) {
    // The page's messages are heard here only: a network's run does not end before its time.
    await new Promise((heard) => setTimeout(heard));
    if (current !== mine) return;
    ms += boundary.ms;
    const paused = mine.once || mine.stops.has(boundary.name);
    postMessage({ is: "boundary", number, boundary, paused });
    if (!paused) continue;
    mine.once = false;
    await new Promise((goOn) => (mine.goOn = goOn));
    if (current !== mine) return;
  }
  current = null;
  postMessage({ is: "done", number, ms });
}

const doing = {
  draw,
  stops: ({ stops }) => current && (current.stops = new Set(stops)),
  pause: () => current && (current.once = true),
  next: () => {
    if (!current) return;
    current.once = true;
    current.goOn?.();
  },
  go: () => current?.goOn?.(),
};

addEventListener("message", async ({ data }) => {
  try {
    await doing[data.do](data);
  } catch (error) {
    postMessage({ is: "failed", message: error.message });
  }
});
