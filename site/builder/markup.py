"""Mends what the theme and the notebooks' extension write, so that screen readers and
keyboards get along with it."""

from __future__ import annotations

from pathlib import Path

MENDED = {
    '<p class="caption" role="heading">': '<p class="caption">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="All pages">',
    '<aside class="toc-drawer">': '<aside class="toc-drawer" aria-label="On this page">',
    '<summary aria-label="Toggle hidden content">': "<summary>",
    '<th class="head"><p></p></th>': "<td></td>",
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
    '<div id="search-results">': '<h1>Search</h1>\n<div id="search-results">',
    "<pre>": '<pre tabindex="0">',
}
"""A heading without a level, and a page without one; two landmarks of one name; a name that hides what is
written; a column's heading without words; tables and code that scroll but that no keyboard reaches."""


def mend(out: Path) -> None:
    """Mend every page of the site."""
    for path in out.rglob("*.html"):
        text = path.read_text("utf-8")
        for wrong, right in MENDED.items():
            text = text.replace(wrong, right)
        path.write_text(text, "utf-8")
