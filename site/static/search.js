// Sphinx's search in this site's words: without what stands on every page, and with titles that are headings.
Object.assign(Documentation.TRANSLATIONS, {
  "Searching": "Looking",
  "Search Results": "Results",
  "Your search did not match any documents. Please make sure that all words are spelled correctly and that you've selected enough categories.": "No page has all of these words. Fewer words find more.",
  "Search finished, found one page matching the search query.": ["In one place.", "In ${resultCount} places."],
});

const plainText = Search.htmlToText;
Search.htmlToText = (html, anchor) => {
  const page = new DOMParser().parseFromString(html, "text/html");
  for (const one of page.querySelectorAll('[role="main"] :is(nav, .steps, h1, h2, h3, .katex-mathml, svg, noscript, template)')) one.remove();
  return plainText(page.documentElement.outerHTML, anchor);
};

new MutationObserver((changes) => {
  for (const { addedNodes } of changes) for (const item of addedNodes) {
    if (item.parentElement !== Search.output) continue;
    const link = item.querySelector("a");
    const title = document.createElement("h3");
    link.replaceWith(title);
    title.append(link);
  }
}).observe(document.getElementById("search-results"), { childList: true, subtree: true });
