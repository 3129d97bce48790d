// Runs the model away from the page. A run is a generator of boundaries, and a pause is not asking it for the next one.
import { fetchAll } from "./files.mjs";
import { open } from "./networks.mjs";
import { run } from "./pipeline.mjs";

let loading = null; // a promise of the model, from the first run on
let current = null; // the run: { stops: names to stop at, once: stop at the next boundary, goOn: ends the pause }

async function load(folder, config) {
  const began = performance.now();
  const files = Object.entries(config.files).map(([name, bytes]) => ({ name, bytes, url: new URL(name, folder).href }));
  const { data, asked, unkept } = await fetchAll(files, (got, of) => postMessage({ is: "progress", got, of }));
  postMessage({ is: "starting" });
  const model = await open(await import("./ort.mjs"), config, data);
  postMessage({ is: "loaded", asked, unkept, reference: data.get("reference.f32"), ms: performance.now() - began });
  return model;
}

async function draw({ number, asked, stops, once, folder, config }) {
  current?.goOn?.(); // a run that is paused sees that it is not the current one any more
  const mine = (current = { stops: new Set(stops), once, goOn: null });
  loading ??= load(folder, config).catch((error) => {
    loading = null;
    throw error;
  });
  const model = await loading;
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
