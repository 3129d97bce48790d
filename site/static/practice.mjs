// Which questions were opened: a tick on each, and how many of a group. Kept in this browser, nowhere else.
const KEY = `inferlab-opened:${new URL("..", import.meta.url).pathname}`;
let opened;
try {
  opened = new Set(JSON.parse(localStorage.getItem(KEY)) ?? []);
} catch {
  opened = new Set(); // what is kept there is none of ours
}

function show(group) {
  const questions = [...group.querySelectorAll(".question")];
  for (const one of questions) one.classList.toggle("opened", opened.has(one.dataset.card));
  const seen = questions.filter((one) => opened.has(one.dataset.card)).length;
  group.querySelector(":scope > summary span").textContent = seen ? `${seen} of ${questions.length} opened` : questions.length;
}

for (const group of document.querySelectorAll("details.group")) {
  show(group);
  for (const one of group.querySelectorAll(".question")) one.addEventListener("toggle", () => {
    if (!one.open) return;
    opened.add(one.dataset.card);
    try { localStorage.setItem(KEY, JSON.stringify([...opened])); } catch { /* then it is forgotten */ }
    show(group);
  });
}
