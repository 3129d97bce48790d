// Shows the terms and the rows of the page's tables that have the words which are asked for; opens what holds them.
const label = document.querySelector(".filter");
const rows = [...document.querySelectorAll(".terms > div, table.docutils tbody tr")].map((row) => [row, row.textContent.toLowerCase()]);
const groups = [...document.querySelectorAll("details.group")];

label.querySelector("input").addEventListener("input", (event) => {
  const asked = event.target.value.trim().toLowerCase();
  for (const [row, text] of rows) row.hidden = !text.includes(asked);
  for (const group of groups) {
    group.open = Boolean(asked) && Boolean(group.querySelector("tbody tr:not([hidden])"));
    group.hidden = Boolean(asked) && !group.open;
  }
});
label.hidden = false;
