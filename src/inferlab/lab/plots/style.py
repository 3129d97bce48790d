"""The labs' pictures: one look, labelled axes, colors that survive grey-scale print."""

from __future__ import annotations

import base64
import functools
import io
import re
from html import escape
from pathlib import Path

from matplotlib import pyplot as plt
from matplotlib.figure import Figure

DARK, MID, ACCENT = "#1b3a5c", "#5b8db8", "#d55e00"
"""Dark blue, mid blue and orange-red. In print (23%, 52% and 45% grey) markers and lines tell them apart."""

LINES = ({"ls": "-", "marker": "o"}, {"ls": "--", "marker": "s"},
         {"ls": ":", "marker": "^"}, {"ls": "-.", "marker": "D"})
STYLE = str(Path(__file__).with_name("labs.mplstyle"))
"""One look for all pictures, for `plt.style.context(STYLE)`."""


_CARD = ("display:inline-block;box-sizing:border-box;max-width:100%;overflow-x:auto;"
         "background:#fff;padding:6px;border-radius:8px")
SHRINKS_TO = 0.6
"""On a narrow page a figure shrinks to this share of its width; below that it scrolls and stays readable."""


def finished(fig: Figure) -> Figure:
    """The figure, ready to be shown: once, as the value of its cell, with a text for whoever cannot see it.

    It is taken out of pyplot's list. In a notebook it lies on a white card, since its colors are chosen for
    white.
    """
    plt.close(fig)
    fig._ipython_display_ = functools.partial(_show, fig)  # type: ignore[attr-defined]
    return fig


def alt_text(fig: Figure) -> str:
    """What a figure shows, in words: its title, the titles of its axes, and what their axes measure."""
    titles = [fig.get_suptitle(), *(axis.get_title(loc) for axis in fig.axes for loc in ("left", "center"))]
    measured = [f"{axis.get_ylabel()} over {axis.get_xlabel()}" for axis in fig.axes
                if axis.get_xlabel() and axis.get_ylabel()]
    words = dict.fromkeys(" ".join(text.split()) for text in [*titles, *measured] if text.strip())
    return "; ".join(words) or "a figure"


def _show(fig: Figure) -> None:
    from IPython.core.pylabtools import print_figure
    from IPython.display import publish_display_data

    alt = alt_text(fig)
    png = print_figure(fig)
    width = int.from_bytes(png[16:20], "big")  # where a PNG says how wide it is
    picture = (f'<img alt="{escape(alt)}" style="max-width:100%;min-width:{SHRINKS_TO * width:.0f}px" '
               f'src="data:image/png;base64,{base64.b64encode(png).decode()}">')
    publish_display_data({"text/plain": alt, "text/html": f'<div style="{_CARD}">{picture}</div>'})


def save_svg(fig: Figure, path: Path, *, tight: bool = True) -> None:
    """Write a handbook's diagram to `path`, the same bytes at every run, and close it.

    Text stays text: it can be selected and read aloud, and a picture takes a third of the bytes. Neither a
    date nor a random id is written. Coordinates are kept to a hundredth of a point.

    Args:
        fig: the figure; it is closed.
        path: where the SVG goes.
        tight: cut the margins to what is drawn.
    """
    drawn = io.StringIO()
    with plt.rc_context({"svg.hashsalt": "inferlab", "svg.fonttype": "none"}):
        fig.savefig(drawn, format="svg", bbox_inches="tight" if tight else None, metadata={"Date": None})
    plt.close(fig)
    path.write_text(compact_svg(drawn.getvalue()), encoding="utf-8")


def compact_svg(text: str) -> str:
    """matplotlib's SVG, less than two thirds as long: no layout, no metadata, no id that nothing refers to,
    coordinates to two decimals, and the font named once instead of at every word.

    Scales stay as they are.
    """
    def shorter(number: re.Match[str]) -> str:
        if number[0].startswith("scale"):
            return number[0]
        return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")

    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"; font-family: 'DejaVu Sans'[^;\"]*", "", text)
    text = text.replace("*{stroke-", "*{font-family: 'DejaVu Sans', Verdana, sans-serif; stroke-")
    text = re.sub(r"scale\([^)]*\)|-?\d+\.\d{3,}", shorter, text)
    text = re.sub(r' transform="rotate\(-0 [^)]*\)"', "", text)
    used = set(re.findall(r"#([\w-]+)", text))
    text = re.sub(r' id="([^"]*)"', lambda found: found[0] if found[1] in used else "", text)
    text = re.sub(r'(?<= d=")[^"]*', lambda path: re.sub(r"\s*\b([MLCQz])\s*", r"\1", path[0]).strip(), text)
    return re.sub(r" ?\n\s*", "\n", text)
