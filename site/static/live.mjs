// A figure whose states stand in the page: shows one at a time, by a slider or step by step.
for (const figure of document.querySelectorAll(".live")) {
  const states = [...figure.querySelectorAll(".state")];
  const slider = figure.querySelector("input");
  const buttons = [...figure.querySelectorAll("[data-by]")];
  const show = () => {
    const at = Number(slider.value);
    states.forEach((state, number) => { state.hidden = number !== at; });
    slider.setAttribute("aria-valuetext", `${at + 1} of ${states.length}`);
    for (const button of buttons) button.disabled = !states[at + Number(button.dataset.by)];
  };
  slider.addEventListener("input", show);
  for (const button of buttons) button.addEventListener("click", () => {
    slider.value = Number(slider.value) + Number(button.dataset.by);
    show();
  });
  show();
  figure.querySelector(".controls").hidden = false;
}
