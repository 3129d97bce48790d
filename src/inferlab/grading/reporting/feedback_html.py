"""Turns texts, answers and outputs into HTML for a page that needs no network.

Formulas become MathML, and nothing is fetched. What a learner wrote or displayed is escaped or cleaned.
"""

import re
from html import escape

from latex2mathml.converter import convert
from markupsafe import Markup
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from inferlab.lab.explain.cell import parse

from .clean_html import clean


def mathml(formula: str, display: str = "inline") -> str:
    """A LaTeX formula of an author's as MathML, `display` being "inline" or "block".

    Never a learner's: the converter neither escapes texts nor refuses addresses of scripts.
    """
    # the converter leaves this escape as it is inside of a text
    plain = re.sub(r"\\text\{[^{}]*\}", lambda text: text[0].replace(r"\_", "_"), formula.strip())
    return convert(plain, display=display)


class _OfflineRenderer(IPythonRenderer):
    """nbconvert's renderer without what a browser would have to fetch or to compute."""

    def block_math(self, body: str) -> str:
        return mathml(body, "block")

    multiline_math = block_math

    def latex_environment(self, name: str, body: str) -> str:
        return mathml(rf"\begin{{{name}}}{body}\end{{{name}}}", "block")

    def inline_math(self, body: str) -> str:
        return mathml(body)

    def image(self, text: str, url: str, title: str | None = None) -> str:
        return f"<em>[picture: {escape(text)}]</em>"

    def link(self, text: str, url: str, title: str | None = None) -> str:
        if url.startswith(("http://", "https://")):
            return f'<a href="{escape(url)}">{text}</a>'
        return text  # the page is read outside of the course's folder


def markdown(source: str) -> Markup:
    """Markdown that an author of the course wrote, as HTML. Raw HTML in it stays as it is."""
    return Markup(MarkdownWithMath(renderer=_OfflineRenderer(escape=False)).render(source))


def inline(text: str) -> Markup:
    """One line of plain text from anybody as HTML: escaped, with code between backticks."""
    return Markup(re.sub(r"`([^`\n]+)`", r"<code>\1</code>", escape(text)))


def code_html(source: str) -> Markup:
    """Python source as HTML, with colours for light and dark pages."""
    coloured = highlight(source, PythonLexer(), HtmlFormatter(nowrap=True))
    return Markup(f'<pre class="code">{coloured}</pre>')  # pygments escapes it


def fields_html(source: str) -> Markup:
    """The fields of an explanation as a list."""
    rows = "".join(f"<dt>{escape(label)}</dt><dd>{escape(text) or '&mdash;'}</dd>"
                   for label, text in parse(source).fields().items())
    return Markup(f"<dl>{rows}</dl>")


def outputs_html(cell: NotebookNode, title: str) -> list[str]:
    """What a learner's cell showed, without behaviour: pictures with a text for them, tables, plain text."""
    shown = []
    for number, output in enumerate(cell.get("outputs", []), start=1):
        data = output.get("data", {})
        picture = next((kind for kind in ("image/png", "image/jpeg") if kind in data), None)
        if picture:
            alt = escape(f"Output {number} of your cell for: {title}")
            source = escape(f"data:{picture};base64,{''.join(data[picture].split())}")
            shown.append(f'<img alt="{alt}" src="{source}">')
        elif "text/html" in data:
            shown.append(f'<div class="scroll">{clean(data["text/html"])}</div>')
        elif output.output_type == "error":
            shown.append(f"<pre>{escape(f'{output.ename}: {output.evalue}')}</pre>")
        else:
            shown.append(f"<pre>{escape(output.get('text') or data.get('text/plain', ''))}</pre>")
    return [Markup(html) for html in shown]  # escaped or cleaned above
