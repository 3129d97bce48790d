"""Fills the HTML templates of `site/templates`."""

from __future__ import annotations

import re
from html import escape
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from . import SITE

_TEMPLATES = Environment(
    loader=FileSystemLoader(SITE / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def filled(template: str, /, **values: Any) -> str:
    """The template with these values, as HTML. Raises `jinja2.UndefinedError` where one is missing."""
    return _TEMPLATES.get_template(f"{template}.html").render(**values)


def code(text: str) -> str:
    """The text as HTML, with what stands in backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))


def raw(html: str) -> str:
    """HTML as a block of a Markdown page."""
    return f"```{{raw}} html\n{html}\n```\n"


def wide_page(title: str, intro: str, html: str, more: str = "") -> str:
    """A Markdown page without a list of its sections at the side: title, words, HTML, and what follows it."""
    return f"---\nhide-toc: true\n---\n\n# {title}\n\n{intro}\n\n{raw(html)}\n{more}"


def tree(pages: dict[str, str], caption: str = "") -> str:
    """Sphinx's list of the pages below a page, title -> page; it shows in the side bar only."""
    listed = "\n".join(f"{title} <{page}>" for title, page in pages.items())
    headed = f":caption: {caption}\n" if caption else ""
    return f"```{{toctree}}\n:hidden:\n{headed}\n{listed}\n```\n\n"
