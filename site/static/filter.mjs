// Shows the rows of the page's tables that have the words which are asked for.
const label = document.querySelector(".filter");
const rows = [...document.querySelectorAll("table.docutils tbody tr")].map((row) => [row, row.textContent.toLowerCase()]);

label.querySelector("input").addEventListener("input", (event) => {
  const asked = event.target.value.trim().toLowerCase();
  for (const [row, text] of rows) row.hidden = !text.includes(asked);
});
label.hidden = false;
