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
OVER_LINES = ("lab01", "lab02", "lab04", "lab12", "lab14", "lab21")
"""Labs whose figures have words over lines: paper lies behind their letters."""
POINT = 1.45
"""Pixels: a figure's letters of 9 points are 13 pixels high."""
TITLE = re.compile(
    r"<g>\s*<text style=\"(?P<style>[^\"]*font-weight: (?:700|bold)[^\"]*)\"[^>]*? y=\"(?P<y>[\d.]+)\"[^>]*>"
    r"(?P<words>[^<]+)</text>\s*</g>"
)
PLACE = re.compile(r"<text style=\"(?P<style>[^\"]*)\"[^>]*? y=\"(?P<y>[\d.]+)\"")
SIZE = re.compile(r"font-size: ([\d.]+)px|(?:^|[ ;])font: (?:\w+ )*([\d.]+)px")


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


def inlined(svg: str, alt: str, kind: str = "figure") -> str:
    """A figure that matplotlib wrote, as part of a page, with its classes. `alt` is HTML.

    Raises:
        ValueError: it does not begin as matplotlib's figures do.
    """
    head = HEAD.search(svg)
    if head is None:
        raise ValueError(f"a figure begins with {svg[:200]!r}: expected a width in pt and a viewBox")
    inside, title, box = _titled(svg[head.end() :], head["box"])
    inside = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", inside, count=1, flags=re.S)
    pixels = round(float(head["width"]) * POINT)
    return (
        f'{title}<div class="{kind}" tabindex="0"><svg role="img" aria-label="{alt}" viewBox="{box}"'
        f' style="--width: {pixels}px">{COLOR.sub(of_the_site, inside).strip()}</div>'
    )


def _titled(inside: str, box: str) -> tuple[str, str, str]:
    """A figure without its title, the title as a page's text, and the box without the title's band. A
    title is bold, and all other words stand below it."""
    found = TITLE.search(inside)
    if found is None or "start" not in found["style"] or inside.count("font-weight: 700") > 1:
        return inside, "", box
    rest = inside[: found.start()] + inside[found.end() :]
    tops = [float(one["y"]) - _size(one["style"]) for one in PLACE.finditer(rest)]
    below = float(found["y"]) + 2
    if not tops or min(tops) < below:
        return inside, "", box
    left, top, width, height = map(float, box.split())
    cut = min(min(tops), below + 12) - top - 2
    return (
        rest,
        f'<div class="finding">{found["words"].strip()}</div>',
        f"{left:g} {top + cut:.2f} {width:g} {height - cut:.2f}",
    )


def _size(style: str) -> float:
    found = SIZE.search(style)
    return float(found[1] or found[2]) if found else 10.0


def put_in(out: Path) -> None:
    """Replace every page's figures by their drawings, and take the files away that no page asks for now."""
    images = out / "_images"
    for path in out.rglob("*.html"):
        text = path.read_text("utf-8")
        drawn = IMG.sub(
            lambda found: inlined(
                (images / found["name"]).read_text("utf-8"),
                found["alt"],
                "figure halo" if found["name"].startswith(OVER_LINES) else "figure",
            ),
            text,
        )
        if drawn != text:
            path.write_text(drawn, "utf-8")
    for image in images.glob("*.svg"):
        image.unlink()
