// Points at a box: what it rests on, all the way up, stays; the rest steps back.
const maps = [...document.querySelectorAll(".map")];
const boxes = new Map([...document.querySelectorAll(".map a[data-concept]")].map((box) => [box.dataset.concept, box]));

function restsOn(name, found = new Set()) {
  if (found.has(name)) return found;
  found.add(name);
  for (const need of boxes.get(name).dataset.needs.split(" ").filter(Boolean)) restsOn(need, found);
  return found;
}

function show(name) {
  const kept = name ? restsOn(name) : null;
  for (const [concept, box] of boxes) box.classList.toggle("kept", Boolean(kept?.has(concept)));
  for (const map of maps) map.classList.toggle("asked", Boolean(kept && map.querySelector(`[data-concept="${name}"]`)));
  for (const line of document.querySelectorAll(".map path")) {
    line.classList.toggle("kept", Boolean(kept?.has(line.dataset.from) && kept.has(line.dataset.to)));
  }
}

for (const map of maps) map.scrollLeft = map.querySelector("[data-needs=''] rect").x.baseVal.value - map.clientWidth / 2;
for (const [name, box] of boxes) {
  for (const event of ["pointerenter", "focus"]) box.addEventListener(event, () => show(name));
  for (const event of ["pointerleave", "blur"]) box.addEventListener(event, () => show(null));
}
