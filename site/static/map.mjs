// Draws the lines between the boxes, in the gutters between the rows and in one at the left, and says what a box is that is pointed at,
// focused or tapped: a sentence, the places that teach it, its neighbours. Those stand out; what lies further up and down is faint.
const maps = [...document.querySelectorAll(".map")];
const boxes = new Map([...document.querySelectorAll(".map [data-concept]")].map((box) => [box.dataset.concept, box]));
const needs = (name) => boxes.get(name).dataset.needs.split(" ").filter(Boolean);
const neededBy = (name) => [...boxes.keys()].filter((other) => needs(other).includes(name));
const narrow = matchMedia("(max-width: 46rem)");
const SVG = "http://www.w3.org/2000/svg";
const [ROUND, STEP, ASIDE] = [6, 4, 7];

function reached(name, next, found = new Set()) {
  if (found.has(name)) return found;
  found.add(name);
  for (const other of next(name)) reached(other, next, found);
  return found;
}

// A line through these corners, with an arrow at its end.
function lineOf(corners) {
  const points = corners.filter(([x, y], at) => !at || x !== corners[at - 1][0] || y !== corners[at - 1][1]);
  const [x, y] = points.at(-1);
  let path = `M${points[0]}`;
  for (let at = 1; at < points.length - 1; at++) {
    const [before, here, after] = [points[at - 1], points[at], points[at + 1]];
    const [back, on] = [before, after].map((other) => {
      const far = Math.hypot(other[0] - here[0], other[1] - here[1]);
      const share = Math.min(ROUND, far / 2) / far;
      return [here[0] + (other[0] - here[0]) * share, here[1] + (other[1] - here[1]) * share];
    });
    path += `L${back}Q${here} ${on}`;
  }
  const [dx, dy] = [Math.sign(x - points.at(-2)[0]), Math.sign(y - points.at(-2)[1])];
  const wing = (side) => [x - 4 * dx + 3.5 * side * dy, y - 4 * dy + 3.5 * side * dx];
  return `${path}L${[x, y]}M${wing(1)}L${[x, y]}L${wing(-1)}`;
}

// Where the boxes of a map are: for each its edges, its row and its place there; for each row its edges.
function placesIn(map) {
  const own = map.getBoundingClientRect();
  const [left, top] = [own.left + map.clientLeft, own.top + map.clientTop];
  const [places, rows] = [new Map(), []];
  for (const box of map.querySelectorAll("[data-concept]")) {
    const at = box.getBoundingClientRect();
    const place = { left: at.left - left, right: at.right - left, top: at.top - top, bottom: at.bottom - top, middle: at.left + at.width / 2 - left };
    if (!rows.length || Math.abs(rows.at(-1).top - place.top) > 4) rows.push({ top: place.top, bottom: place.bottom, count: 0 });
    places.set(box.dataset.concept, Object.assign(place, { row: rows.length - 1, at: rows.at(-1).count++ }));
  }
  const first = Math.min(...[...places.values()].map((place) => place.left));
  return { places, rows, trunk: first - 20 };
}

// The gutters that a line between two boxes runs through; none where they stand side by side.
function guttersOf(a, b) {
  if (a.row === b.row) return Math.abs(a.at - b.at) === 1 ? [] : [a.row - 1];
  return a.row < b.row ? [a.row, b.row - 1] : [a.row - 1, b.row];
}

const isNear = (a, b) => new Set(guttersOf(a, b)).size < 2;

// The line from one box to another; `shift` moves it aside in a gutter, and in the one at the left.
function route({ rows, trunk }, a, b, shift, aside = shift) {
  const gutters = guttersOf(a, b);
  if (!gutters.length) {
    const y = (a.top + a.bottom) / 2;
    return lineOf(a.at < b.at ? [[a.right, y], [b.left - 1, y]] : [[a.left, y], [b.right + 1, y]]);
  }
  const level = (row) => shift + (row < 0 ? rows[0].top - 12 : row === rows.length - 1 ? rows[row].bottom + 12 : (rows[row].bottom + rows[row + 1].top) / 2);
  const [from, to] = [a.middle + ASIDE, b.middle - ASIDE];
  const [y1, y2] = [a.row < b.row ? a.bottom : a.top, a.row < b.row || a.row === b.row ? b.top - 1 : b.bottom + 1];
  const levels = gutters.map(level);
  if (isNear(a, b)) return lineOf([[from, y1], [from, levels[0]], [to, levels[0]], [to, y2]]);
  const x = trunk + aside;
  return lineOf([[from, y1], [from, levels[0]], [x, levels[0]], [x, levels[1]], [to, levels[1]], [to, y2]]);
}

function pathOf(d, need, name) {
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", d);
  Object.assign(path.dataset, { from: need, to: name });
  return path;
}

function group(name, paths) {
  const made = document.createElementNS(SVG, "g");
  made.setAttribute("class", name);
  made.append(...paths);
  return made;
}

// At rest: the lines to a neighbour, in one row or to the next. In a gutter, lines that would lie on each other lie side by side.
function draw(map) {
  const where = placesIn(map);
  const taken = new Map();
  const lines = [...where.places].flatMap(([name, b]) => needs(name).filter((need) => where.places.has(need))
    .map((need) => ({ need, name, a: where.places.get(need), b })))
    .filter(({ a, b }) => isNear(a, b));
  for (const line of lines) {
    const [gutter] = guttersOf(line.a, line.b);
    const [low, high] = [line.a.middle, line.b.middle].sort((one, other) => one - other);
    if (!taken.has(gutter)) taken.set(gutter, []);
    const ends = taken.get(gutter);
    let slot = ends.findIndex((spans) => spans.every(([from, to]) => high + 10 < from || low - 10 > to));
    if (slot < 0) slot = ends.push([]) - 1;
    ends[slot].push([low, high]);
    Object.assign(line, { gutter, slot });
  }
  const paths = narrow.matches ? [] : lines.map(({ need, name, a, b, gutter, slot }) => pathOf(route(where, a, b, (slot - (taken.get(gutter).length - 1) / 2) * STEP), need, name));
  map.querySelector("svg").replaceChildren(group("rest", paths));
}

// What a concept rests on and what rests on it, of its map. The lines of one kind share their way.
function point(name) {
  for (const map of maps) {
    const asked = Boolean(name && map.contains(boxes.get(name)));
    map.classList.toggle("asked", asked);
    map.querySelectorAll("g:not(.rest)").forEach((old) => old.remove());
    if (!asked || narrow.matches) continue;
    const where = placesIn(map);
    const paths = (pairs, shift) => pairs.filter(([need, to]) => where.places.has(need) && where.places.has(to))
      .map(([need, to]) => pathOf(route(where, where.places.get(need), where.places.get(to), shift), need, to));
    const [up, down] = [reached(name, needs), reached(name, neededBy)];
    const further = [...up].flatMap((to) => needs(to).map((need) => [need, to]))
      .concat([...down].flatMap((need) => neededBy(need).map((to) => [need, to])))
      .filter((pair) => !pair.includes(name));
    map.querySelector("svg").append(group("further", paths(further, 0)),
      group("direct", [...paths(needs(name).map((need) => [need, name]), -4), ...paths(neededBy(name).map((to) => [name, to]), 4)]));
  }
  const direct = name ? new Set([...needs(name), ...neededBy(name)]) : new Set();
  const kept = name ? new Set([...reached(name, needs), ...reached(name, neededBy)]) : new Set();
  for (const [concept, box] of boxes) {
    box.classList.toggle("kept", kept.has(concept));
    box.classList.toggle("direct", direct.has(concept));
    box.classList.toggle("chosen", concept === name);
  }
}

const panel = document.createElement("div");
panel.className = "concept";
panel.setAttribute("role", "group");
let shown = null, waiting = 0, held = false;

function neighbours(label, names) {
  if (!names.length) return [];
  const line = document.createElement("p");
  line.className = "neighbours";
  const links = document.createElement("span");
  links.append(...names.flatMap((other) => {
    const link = document.createElement("a");
    Object.assign(link, { href: `#concept-${other}`, textContent: boxes.get(other).textContent });
    link.addEventListener("click", (event) => {
      event.preventDefault();
      event.stopPropagation(); // this link is gone by then
      open(other, true);
      boxes.get(other).scrollIntoView({ block: "center" });
      boxes.get(other).focus({ preventScroll: true });
    });
    return [link, " "];
  }));
  const head = document.createElement("small");
  head.textContent = label;
  line.append(head, links);
  return [line];
}

// On a phone below the box's row, which makes room; else beside the box, where it hides the fewest of those that stand out.
function put(box) {
  panel.style.cssText = "";
  if (narrow.matches) {
    const row = [...box.parentElement.children].filter((other) => other !== panel && Math.abs(other.offsetTop - box.offsetTop) < 4);
    row.at(-1).after(panel);
    panel.style.setProperty("--tip", `${box.offsetLeft + box.offsetWidth / 2}px`);
    return;
  }
  box.after(panel);
  const [own, at, map] = [panel, box, box.closest(".map")].map((one) => one.getBoundingClientRect());
  const others = [...box.closest(".map").querySelectorAll("[data-concept]")].filter((other) => other !== box);
  const choices = [at.left, at.right - own.width].flatMap((x) => [at.bottom + 7, at.top - own.height - 7].map((y) => {
    const left = Math.max(map.left + 8, Math.min(x, map.right - own.width - 8));
    const hidden = others.map((other) => [other, other.getBoundingClientRect()])
      .filter(([, b]) => b.left < left + own.width && b.right > left && b.top < y + own.height && b.bottom > y)
      .reduce((sum, [other]) => sum + (other.matches(".direct") ? 8 : other.matches(".kept") ? 2 : 1), 0);
    const outside = y < 0 || y + own.height > innerHeight ? 50 : 0;
    return { left, y, cost: hidden + outside + (left < box.parentElement.getBoundingClientRect().left - 1 ? 4 : 0) };
  }));
  const best = choices.reduce((one, other) => (other.cost < one.cost ? other : one));
  const base = box.parentElement.getBoundingClientRect();
  Object.assign(panel.style, { left: `${best.left - base.left}px`, top: `${best.y - base.top}px` });
}

function open(name, keep = false) {
  clearTimeout(waiting);
  held = keep;
  if (shown === name) return;
  shown = name;
  panel.remove();
  document.querySelector(".lane.open")?.classList.remove("open");
  point(name);
  if (!name) return;
  const box = boxes.get(name);
  const told = document.getElementById(`concept-${name}`);
  const says = document.createElement("p");
  says.append(...[...told.querySelector(".says").cloneNode(true).childNodes]);
  panel.setAttribute("aria-label", box.textContent);
  panel.replaceChildren(says, ...neighbours("Builds on", needs(name)), ...neighbours("Leads to", neededBy(name)), told.querySelector(".go").cloneNode(true));
  box.closest(".lane").classList.add("open");
  put(box);
}

function later(name, after) {
  clearTimeout(waiting);
  waiting = setTimeout(() => open(name), after);
}

const redraw = (map) => {
  draw(map);
  if (shown && !narrow.matches && map.contains(panel)) point(shown);
};
for (const map of maps) new ResizeObserver(() => redraw(map)).observe(map);
document.fonts.ready.then(() => maps.forEach(redraw));
for (const [name, box] of boxes) {
  box.removeAttribute("title"); // the panel says it
  box.addEventListener("pointerenter", ({ pointerType }) => pointerType === "mouse" && later(name, shown ? 120 : 60));
  box.addEventListener("pointerleave", ({ pointerType }) => pointerType === "mouse" && !held && later(null, 260));
  box.addEventListener("focus", () => box.matches(":focus-visible") && open(name, true));
  box.addEventListener("click", (event) => {
    if (!narrow.matches && event.pointerType !== "touch") return;
    event.preventDefault();
    open(shown === name ? null : name, true);
  });
}
panel.addEventListener("pointerenter", () => clearTimeout(waiting));
panel.addEventListener("pointerleave", ({ pointerType }) => pointerType === "mouse" && !held && later(null, 260));
document.addEventListener("focusin", ({ target }) => held && shown && !target.closest(".map") && open(null));
document.addEventListener("click", ({ target }) => shown && !target.closest(".map [data-concept], .concept") && open(null));
document.addEventListener("keydown", ({ key }) => key === "Escape" && open(null));
