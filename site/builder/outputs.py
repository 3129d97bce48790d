"""Puts what a notebook's cells put out below them: prints, tables and figures in the site's colors, pictures
as small files."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any

import nbformat
from PIL import Image

from .figures import inlined
from .recorded import STRIP, TITLE, Outputs, waits

SAID = (
    '<p class="recorded">Outputs are recorded with the bundled model, while this page is built. Cells that'
    " wait for your answer show none.</p>"
)
STYLE = re.compile(r"<style>\s*\.il-trace.*?</style>", re.S)
DATA = re.compile(r'(?P<name>src|xlink:href)="data:image/png;base64,\s*(?P<data>[^"]+)"')
PICTURE = re.compile(r"<img |<svg ")
TABLE = re.compile(r"<table.*?</table>", re.S)
WAITING = re.compile(r"^Once .+ written, run this cell again to see it at work\.\n?", re.M)
SPOILS = "What this shows: look after you have written your answer"
"""What stands over numbers and tables that answer the exercise before them."""
LINES = 24
"""A text of more lines opens on a click."""


def with_outputs(cells: list[nbformat.NotebookNode], recorded: Outputs, static: Path, up: str) -> None:
    """Give the cells of a page what they put out, as HTML.

    Args:
        cells: of the released notebook.
        recorded: what its cells put out, by their ids.
        static: folder of the site's files, where pictures go.
        up: the way to this folder from the page.
    """
    asked, styled = "", False
    for cell in cells:
        told = cell.metadata.get("inferlab", {})
        if "exercise" in told:
            asked = told["exercise"]
        elif told.get("check") and told.get("of") == asked:
            asked = ""
        pieces = [] if waits(cell) else pieces_of(recorded.get(cell.get("id", ""), []), cell.source)
        if asked:
            pieces = [piece if PICTURE.search(piece) else _folded(SPOILS, piece) for piece in pieces]
        if not (shown := "".join(pieces)):
            continue
        if style := STYLE.search(shown):
            shown = STYLE.sub("", shown) if styled else shown
            styled = styled or bool(style)
        shown = DATA.sub(lambda found: _as_file(found, static / "recorded", f"{up}recorded/"), shown)
        html = f'<div class="shown">{shown}</div>'
        cell.outputs = [nbformat.v4.new_output("display_data", {"text/html": html})]


def pieces_of(outputs: list[dict[str, Any]], source: str) -> list[str]:
    """Those of a cell's outputs that can be shown on a page, as HTML."""
    if "show_cards(" in source or re.search(r"\bstart\(", source):
        return []
    return [html for html in map(_one, outputs) if html]


def _one(output: dict[str, Any]) -> str:
    if output["output_type"] == "stream":
        return _printed(output["text"]) if output["name"] == "stdout" else ""
    data = output.get("data", {})
    plain = data.get("text/plain", "")
    if "application/vnd.jupyter.widget-view+json" in data:
        return ""
    title = f'<p class="finding">{escape(data[TITLE])}</p>' if data.get(TITLE) else ""
    if strip := data.get(STRIP):
        return title + _strip(json.loads(strip))
    if svg := data.get("image/svg+xml"):
        return title + inlined(svg, escape(plain))
    if png := data.get("image/png"):
        return f'<img alt="{escape(plain[:200])}" src="data:image/png;base64,{png}">'
    if html := data.get("text/html"):
        if plain.startswith("words of "):
            return _folded("The words of this explanation", html)
        return html if "il-trace" in html else TABLE.sub(_scrolling, html)
    return _printed(plain)


def _strip(pictures: list[dict[str, str]]) -> str:
    """Pictures in a row, which breaks where the page is narrow; the label over each says what it is."""
    frames = "".join(
        f'<figure><figcaption>{escape(one["label"])}</figcaption>'
        f'<img alt="{escape(one["label"]) or "a picture"}" src="data:image/png;base64,{one["png"]}"></figure>'
        for one in pictures
    )
    return f'<div class="strip">{frames}</div>'


def _printed(text: str) -> str:
    text = WAITING.sub("", text).strip("\n")
    if not text.strip():
        return ""
    pre = f'<div class="printed"><pre>{escape(text)}</pre></div>'
    return _folded("The whole output", pre) if text.count("\n") > LINES else pre


def _folded(name: str, html: str) -> str:
    return f"<details><summary>{name}</summary>{html}</details>"


def _scrolling(found: re.Match[str]) -> str:
    return f'<div class="table-wrapper">{found[0]}</div>'


def _as_file(found: re.Match[str], folder: Path, address: str) -> str:
    """A picture in a page's text as a file beside it, which is loaded when it comes into view."""
    png = base64.b64decode(found["data"])
    name = f"{hashlib.sha256(png).hexdigest()[:12]}.webp"
    folder.mkdir(parents=True, exist_ok=True)
    with Image.open(BytesIO(png)) as picture:
        width, height = picture.size
        if not (folder / name).exists():
            picture.save(folder / name, quality=80, method=6, lossless=width * height <= 32 * 32)
    if found["name"] == "src":
        return f'loading="lazy" width="{width}" height="{height}" src="{address}{name}"'
    return f'href="{address}{name}"'
