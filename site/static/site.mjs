// What every page runs: it loads the part that the page has a place for, and nothing else.
const parts = {
  "form[data-calculator]": "./calculators/ui.mjs",
  ".sentence": "./film.mjs",
  ".map": "./map.mjs",
  "#player": "./player/ui.mjs",
  "#model": "./model/ui.mjs",
  "#deck": "./cards.mjs",
  "article div.highlight": "./copy.mjs",
  "details.group .question": "./practice.mjs",
  ".live": "./live.mjs",
  ".filter": "./filter.mjs",
  "nav.steps, .progress": "./progress.mjs",
};

for (const [place, script] of Object.entries(parts)) if (document.querySelector(place)) import(script);
