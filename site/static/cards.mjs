// Asks the cards that are due: turn with space, 1 for "again", 2 for "I knew it", s to shuffle.
import { answer, isDue } from "./progress.mjs";

const place = document.querySelector("#deck");
const all = JSON.parse(document.querySelector("#cards-data").textContent);
const [front, back, see, count, left] = ["front", "back", "see", "count", "left"].map((name) => place.querySelector(`.${name}`));
const buttons = Object.fromEntries([...place.querySelectorAll("button")].map((button) => [button.dataset.do, button]));
const choice = place.querySelector("select");
let queue = [];
let turned = false;

const chosen = () => all.filter((card) => choice.value === "" || card.deck === choice.value);

function show() {
  const card = queue[0];
  turned = turned && Boolean(card);
  place.classList.toggle("turned", turned);
  place.classList.toggle("empty", !card);
  front.innerHTML = card ? card.question : "Nothing is due today.";
  back.innerHTML = card && turned ? card.answer : "";
  see.innerHTML = card && turned && card.see ? `<a href="handbook/${card.see}.html">Read the section</a>` : "";
  count.textContent = card ? `${queue.length} to go` : "";
  left.textContent = `${chosen().filter((one) => isDue(one.id)).length} of ${chosen().length} due`;
  buttons.turn.hidden = turned || !card;
  buttons.again.hidden = buttons.knew.hidden = !turned;
  buttons.all.hidden = Boolean(card);
}

function begin(cards) {
  queue = cards;
  turned = false;
  show();
}

const actions = {
  turn: () => {
    turned = queue.length > 0;
    show();
  },
  again: () => {
    answer(queue[0].id, false);
    queue.push(queue.shift());
    turned = false;
    show();
  },
  knew: () => {
    answer(queue[0].id, true);
    queue.shift();
    turned = false;
    show();
  },
  shuffle: () => {
    for (let at = queue.length - 1; at > 0; at--) {
      const other = Math.floor(Math.random() * (at + 1));
      [queue[at], queue[other]] = [queue[other], queue[at]];
    }
    turned = false;
    show();
  },
  all: () => begin(chosen()),
  print: () => window.print(),
};

for (const [name, button] of Object.entries(buttons)) button.addEventListener("click", actions[name]);
choice.addEventListener("change", () => {
  begin(chosen().filter((card) => isDue(card.id)));
  for (const card of document.querySelectorAll(".paper section")) card.hidden = choice.value !== "" && card.dataset.deck !== choice.value;
});
document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, select, button, a, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === " ") event.preventDefault();
  if (event.key === " " && !turned) actions.turn();
  if (event.key === "1" && turned) actions.again();
  if (event.key === "2" && turned) actions.knew();
  if (event.key === "s") actions.shuffle();
});
place.hidden = false;
begin(all.filter((card) => isDue(card.id)));
