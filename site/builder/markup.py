"""Mends what the theme and the notebooks' extension write, so that screen readers and
keyboards get along with it, and folds the side bar's parts."""

from __future__ import annotations

import re
from pathlib import Path

SEARCH = (
    '<form class="search-again" action="search.html"><input type="search" name="q" aria-label="Words"'
    ' placeholder="Words" required> <button>Search</button></form>'
)
"""The side bar's own one is out of sight on a phone."""
MENDED = {
    '<p class="caption" role="heading">': '<p class="caption">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="All pages">',
    '<aside class="toc-drawer">': '<aside class="toc-drawer" aria-label="On this page">',
    '<summary aria-label="Toggle hidden content">': "<summary>",
    '<th class="head"><p></p></th>': "<td></td>",
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
    '<div id="search-results">': f"<h1>Search</h1>\n{SEARCH}\n" + '<div id="search-results">',
    '<script src="_static/searchtools.js"></script>': '<script src="_static/searchtools.js"></script>'
    '<script src="_static/search.js"></script>',
    "<pre>": '<pre tabindex="0">',
    '<a href="#" class="back-to-top muted-link">': '<nav aria-label="Top of the page">'
    '<a href="#" class="back-to-top muted-link">',
    "<span>Back to top</span>\n        </a>": "<span>Back to top</span>\n        </a></nav>",
}
"""A heading without a level, and a page without one; two landmarks of one name; a name that hides what is
written; a column's heading without words; tables and code that scroll but that no keyboard reaches; a link
outside of all landmarks."""


CODE = re.compile(r'<code class="(docutils literal notranslate)">(?=(?:<[^>]+>|&\w+;|[^<&]){1,24}</code>)')
"""A few letters of code, which stay on one line."""
NUMBER = re.compile(r"<td>(?=<p>[-+−–≈<>~]?\d[\d.,  ]*(?:[%×]|[A-Za-z/µ]{1,6})?</p></td>)")

PART = re.compile(
    r'<p class="caption"><span class="caption-text">(?P<name>[^<]+)</span></p>\n(?P<pages><ul.*?)'
    r'(?=\n<p class="caption">|\n\n</div>)',
    re.S,
)
"""A part of the side bar: its name, and the list of its pages."""
SIDEBAR = re.compile(r'<div class="sidebar-tree">.*?\n\n</div>', re.S)


def _folded(found: re.Match[str]) -> str:
    """A part with more than a few pages opens on a click; the one that is read now is open."""
    name, pages = found["name"], found["pages"]
    count = len(re.findall('class="toctree-l1', pages))
    if count < 10:
        return found[0]
    opened = " open" if "current" in pages else ""
    head = f'<summary class="caption">{name} <span>{count}</span></summary>'
    return f"<details{opened}>{head}\n{pages}</details>"


def mend(out: Path) -> None:
    """Mend every page of the site."""
    for path in out.rglob("*.html"):
        text = path.read_text("utf-8")
        for wrong, right in MENDED.items():
            text = text.replace(wrong, right)
        text = CODE.sub(r'<code class="\1 short">', text)
        text = NUMBER.sub('<td class="number">', text)
        text = SIDEBAR.sub(lambda found: PART.sub(_folded, found[0]), text)
        path.write_text(text, "utf-8")
