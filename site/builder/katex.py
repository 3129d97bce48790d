"""A Sphinx extension: formulas are drawn by KaTeX while the site is built, so that a page needs no script
for them."""

from __future__ import annotations

import json
import os
import subprocess
from functools import cache
from html import escape
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from . import SITE
from .npm import NODE


@cache
def _process(pid: int) -> subprocess.Popen[str]:
    """The KaTeX process of this process: Sphinx writes pages in several, and a pipe has one reader."""
    return subprocess.Popen(
        [NODE, SITE / "katex.mjs"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def drawn(tex: str, *, display: bool) -> str:
    """A formula as HTML, with MathML beside it for screen readers.

    Raises:
        ExtensionError: KaTeX does not know something in the formula.
    """
    process = _process(os.getpid())
    assert process.stdin and process.stdout
    process.stdin.write(json.dumps({"tex": tex, "display": display}) + "\n")
    process.stdin.flush()
    answer = json.loads(process.stdout.readline())
    if "error" in answer:
        raise ExtensionError(f"a formula cannot be drawn: {answer['error']}\n{tex}")
    return str(answer["html"])


def _inline(writer: Any, node: nodes.Element) -> None:
    writer.body.append(drawn(node.astext(), display=False))
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.Element) -> None:
    label = escape(node.astext().strip(), quote=True)
    writer.body.append(
        f'<div class="formula" tabindex="0" role="group" aria-label="Formula: {label}">'
        f"{drawn(node.astext(), display=True)}</div>\n"
    )
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.add_html_math_renderer("katex", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
