// Draws the lines between the boxes, and again whenever the boxes move. Points at a box: what it rests on, all the way up,
// and what rests on it, all the way down, stay; the rest steps back.
const maps = [...document.querySelectorAll(".map")];
const boxes = new Map([...document.querySelectorAll(".map [data-concept]")].map((box) => [box.dataset.concept, box]));
const needs = (name) => boxes.get(name).dataset.needs.split(" ").filter(Boolean);
const neededBy = (name) => [...boxes.keys()].filter((other) => needs(other).includes(name));

function reached(name, next, found = new Set()) {
  if (found.has(name)) return found;
  found.add(name);
  for (const other of next(name)) reached(other, next, found);
  return found;
}

// From the middle of a box's lower edge to the middle of the other's upper edge; in one row, from side to side.
function pathOf(map, from, to) {
  const own = map.getBoundingClientRect();
  const [a, b] = [from, to].map((box) => box.getBoundingClientRect());
  const [left, top] = [own.left + map.clientLeft, own.top + map.clientTop];
  if (Math.abs(a.top - b.top) < 4) {
    const y = a.top + a.height / 2 - top;
    const [x1, x2] = a.left < b.left ? [a.right, b.left] : [a.left, b.right];
    return `M${x1 - left} ${y}L${x2 - left} ${y}`;
  }
  const [x1, x2] = [a, b].map((box) => box.left + box.width / 2 - left);
  const down = b.top > a.top;
  const [y1, y2] = [(down ? a.bottom : a.top) - top, (down ? b.top : b.bottom) - top];
  const bend = (down ? 1 : -1) * Math.min(70, Math.max(18, Math.abs(y2 - y1) / 2));
  return `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`;
}

function draw(map) {
  const paths = [...map.querySelectorAll("[data-concept]")].flatMap((box) => needs(box.dataset.concept)
    .filter((need) => map.contains(boxes.get(need)))
    .map((need) => {
      const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
      path.setAttribute("d", pathOf(map, boxes.get(need), box));
      path.classList.toggle("far", box.getBoundingClientRect().top - boxes.get(need).getBoundingClientRect().top > 160);
      Object.assign(path.dataset, { from: need, to: box.dataset.concept });
      return path;
    }));
  map.querySelector("svg").replaceChildren(...paths);
}

function show(name) {
  const kept = name ? new Set([...reached(name, needs), ...reached(name, neededBy)]) : null;
  for (const [concept, box] of boxes) box.classList.toggle("kept", Boolean(kept?.has(concept)));
  for (const map of maps) map.classList.toggle("asked", Boolean(kept && map.querySelector(".kept")));
  for (const line of document.querySelectorAll(".map path")) {
    line.classList.toggle("kept", Boolean(kept?.has(line.dataset.from) && kept.has(line.dataset.to)));
  }
}

for (const map of maps) new ResizeObserver(() => draw(map)).observe(map);
document.fonts.ready.then(() => maps.forEach(draw));
for (const [name, box] of boxes) {
  for (const event of ["pointerenter", "focus"]) box.addEventListener(event, () => show(name));
  for (const event of ["pointerleave", "blur"]) box.addEventListener(event, () => show(null));
}
