// A button on every piece of code that copies it, without what it printed.
for (const box of document.querySelectorAll("article div.highlight")) {
  const button = document.createElement("button");
  Object.assign(button, { type: "button", className: "copy", textContent: "Copy" });
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(box.querySelector("pre").textContent.trimEnd());
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not allowed"; // the browser keeps its clipboard to itself
    }
    button.classList.add("done");
    setTimeout(() => { button.textContent = "Copy"; button.classList.remove("done"); }, 1500);
  });
  box.append(button);
}
