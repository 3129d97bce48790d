"""HTML without behaviour: what learners wrote and displayed is shown in the session of whoever reads it.

Two filters for `c.HTMLExporter.filters` in `nbgrader_config.py`, both with the same short lists of tags,
attributes and styles: `markdown2html`, because nbgrader's templates render Markdown cells past nbconvert's
`sanitize_html`, and `clean` for outputs, because the list of nbconvert's own `clean_html` is fixed and
escapes what reports and tables are made of.
"""

import re
from functools import lru_cache

from bleach.css_sanitizer import CSSSanitizer
from bleach.sanitizer import Cleaner
from jinja2 import pass_context
from jinja2.runtime import Context
from nbconvert.exporters import HTMLExporter

TAGS = frozenset((
    "a", "abbr", "b", "blockquote", "br", "code", "dd", "del", "details", "div", "dl", "dt", "em", "h1",
    "h2", "h3", "h4", "h5", "h6", "hr", "i", "img", "kbd", "li", "ol", "p", "pre", "s", "small", "span",
    "strong", "sub", "summary", "sup", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "u", "ul",
))
ATTRIBUTES = {
    "*": ["class", "id", "title", "style"], "a": ["href"], "img": ["src", "alt", "width", "height"],
    "td": ["colspan", "rowspan"], "th": ["colspan", "rowspan"], "ol": ["start"], "details": ["open"],
}
# None of these takes an address.
STYLES = (
    "border", "border-collapse", "border-left", "border-radius", "color", "font-size", "font-style",
    "font-weight", "line-height", "list-style-type", "margin", "opacity", "overflow-wrap", "padding",
    "padding-left", "text-align", "vertical-align", "white-space", "width", "word-break",
)
PROTOCOLS = frozenset(("http", "https", "mailto"))
_SHEET_OR_SCRIPT = re.compile(r"(</?(?:style|script)\b[^<>]*>)", re.IGNORECASE)


@lru_cache(maxsize=1)
def _exporter() -> HTMLExporter:
    return HTMLExporter()


def clean(html: str | bytes) -> str:
    """`html` with every tag, attribute, style and address that is not on the lists escaped or left out."""
    text = html.decode("utf-8") if isinstance(html, bytes) else str(html)
    cleaner = Cleaner(tags=TAGS, attributes=ATTRIBUTES, protocols=PROTOCOLS,
                      css_sanitizer=CSSSanitizer(allowed_css_properties=STYLES))
    return cleaner.clean(_without_sheets_and_scripts(text))


def _without_sheets_and_scripts(html: str) -> str:
    """`html` without its `<style>` and `<script>` elements: escaped, their text would be read as content.

    For looks only, and before cleaning: what this lets through, the cleaner escapes.
    """
    kept: list[str] = []
    held: list[str] = []
    inside = ""
    for place, piece in enumerate(_SHEET_OR_SCRIPT.split(html)):
        tag = piece.lower() if place % 2 else ""
        if inside and tag.startswith(f"</{inside}"):
            held, inside = [], ""
        elif not inside and tag.startswith(("<style", "<script")):
            held, inside = [piece], "style" if tag.startswith("<style") else "script"
        else:
            (held if inside else kept).append(piece)
    return "".join(kept + held)  # an element that is never closed is not dropped


@pass_context
def markdown2html(context: Context, source: str) -> str:
    """nbconvert's `markdown2html`, cleaned."""
    return clean(_exporter().markdown2html(context, source))
