// The sentence on the first page plays once, when half of it is in sight.
const film = document.querySelector(".sentence");
const near = new IntersectionObserver(([seen]) => {
  const shown = seen.intersectionRatio >= 0.5 || seen.intersectionRect.height > 0.6 * innerHeight;
  film.classList.toggle("waits", !shown);
  if (!shown) return;
  film.classList.add("plays");
  near.disconnect();
}, { threshold: [0, 0.1, 0.2, 0.3, 0.4, 0.5] });

if (!matchMedia("(prefers-reduced-motion: reduce)").matches) near.observe(film);
