"""Puts the handbook's figures into their pages, in the site's own colors and letters: they follow light and
dark, and their words can be selected."""

from __future__ import annotations

import re
from pathlib import Path

IMG = re.compile(r'<img alt="(?P<alt>[^"]*)" src="(?:\.\./)*_images/(?P<name>[\w-]+\.svg)" ?/?>')
HEAD = re.compile(r'<svg [^>]*?width="(?P<width>[\d.]+)pt"[^>]*?viewBox="(?P<box>[^"]+)"[^>]*>')
COLOR = re.compile(r"#[0-9a-fA-F]{6}\b")
NAMED = {
    "#1b3a5c": "dark",
    "#35607f": "dark",
    "#5b8db8": "mid",
    "#7a8b99": "mid",
    "#9fc0da": "pale",
    "#a9c6de": "pale",
    "#d55e00": "accent",
    "#f0a35e": "accent-pale",
}
"""The colors of `inferlab.lab.plots.style` and their tints -> their names in `site.css`."""
POINT = 4 / 3
"""Pixels."""


def of_the_site(found: re.Match[str]) -> str:
    """A figure's color as the site's: by name, or for a gray the same share of ink on paper."""
    color = found[0].lower()
    if color in NAMED:
        return f"var(--figure-{NAMED[color]})"
    red, green, blue = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    if max(red, green, blue) - min(red, green, blue) > 8:
        return color
    ink = round(100 * (1 - green / 255))
    return f"color-mix(in srgb, var(--figure-ink) {ink}%, var(--figure-paper))"


def inlined(svg: str, alt: str) -> str:
    """A figure that matplotlib wrote, as part of a page. `alt` is HTML.

    Raises:
        ValueError: it does not begin as matplotlib's figures do.
    """
    head = HEAD.search(svg)
    if head is None:
        raise ValueError(f"a figure begins with {svg[:200]!r}: expected a width in pt and a viewBox")
    inside = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", svg[head.end() :], count=1, flags=re.S)
    pixels = round(float(head["width"]) * POINT)
    return (
        f'<div class="figure" tabindex="0"><svg role="img" aria-label="{alt}" viewBox="{head["box"]}"'
        f' style="--width: {pixels}px">{COLOR.sub(of_the_site, inside).strip()}</div>'
    )


def put_in(out: Path) -> None:
    """Replace every page's figures by their drawings, and take the files away that no page asks for now."""
    images = out / "_images"
    for path in out.rglob("*.html"):
        text = path.read_text("utf-8")
        drawn = IMG.sub(
            lambda found: inlined((images / found["name"]).read_text("utf-8"), found["alt"]), text
        )
        if drawn != text:
            path.write_text(drawn, "utf-8")
    for image in images.glob("*.svg"):
        image.unlink()
