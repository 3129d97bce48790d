"""Markdown as HTML without behavior: what learners wrote is shown in formgrader and in feedback, in the reader's own session.

nbgrader's templates render Markdown cells themselves, past nbconvert's `sanitize_html`. This is their filter instead
(`c.HTMLExporter.filters` in `nbgrader_config.py`): the same rendering, then only tags and attributes of a short list.
"""

from functools import lru_cache

from bleach.css_sanitizer import CSSSanitizer
from bleach.sanitizer import Cleaner
from jinja2 import pass_context
from jinja2.runtime import Context
from nbconvert.exporters import HTMLExporter

TAGS = frozenset((
    "a", "abbr", "b", "blockquote", "br", "code", "dd", "del", "details", "div", "dl", "dt", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "img", "kbd", "li",
    "ol", "p", "pre", "s", "small", "span", "strong", "sub", "summary", "sup", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "u", "ul",
))
ATTRIBUTES = {"*": ["class", "id", "title", "style"], "a": ["href"], "img": ["src", "alt", "width", "height"], "td": ["colspan", "rowspan"], "th": ["colspan", "rowspan"],
              "ol": ["start"], "details": ["open"]}
STYLES = ("text-align", "padding", "margin", "font-weight", "font-style", "white-space", "width")
PROTOCOLS = frozenset(("http", "https", "mailto"))


@lru_cache(maxsize=1)
def _exporter() -> HTMLExporter:
    return HTMLExporter()


def clean(html: str) -> str:
    """`html` with every tag, attribute, style and address that is not on the lists escaped or left out."""
    return Cleaner(tags=TAGS, attributes=ATTRIBUTES, protocols=PROTOCOLS, css_sanitizer=CSSSanitizer(allowed_css_properties=STYLES)).clean(html)


@pass_context
def markdown2html(context: Context, source: str) -> str:
    """nbconvert's `markdown2html`, cleaned."""
    return clean(_exporter().markdown2html(context, source))
