// The sentence on the first page plays once, when half of it is in sight; without motion it is whole from the start.
const film = document.querySelector(".sentence");
const near = new IntersectionObserver(([seen]) => {
  if (seen.intersectionRatio < 0.5 && seen.intersectionRect.height < 0.6 * innerHeight) return;
  film.classList.replace("waits", "plays");
  near.disconnect();
}, { threshold: [0, 0.1, 0.2, 0.3, 0.4, 0.5] });

if (matchMedia("(prefers-reduced-motion: reduce)").matches) film.classList.remove("waits");
else near.observe(film);
