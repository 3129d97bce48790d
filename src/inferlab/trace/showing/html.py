"""The HTML of the table: for JupyterLab, Colab and pages, light and dark, wide and narrow, no scripts."""

import re
from html import escape

from inferlab.trace.reading import specs
from inferlab.trace.reading.changes import main_tensor

from .lines import (
    Line,
    brief,
    human_bytes,
    human_ms,
    is_data,
    remarks,
    shown_inputs,
    shown_outputs,
    without_device,
)

# Colors are mixed with the page's own (currentColor), so that light and dark themes both work. Where the
# table has less than 720 pixels, each row becomes a block of its own: name first, then inputs and outputs,
# each with its label.
_STYLE = """<style>
.il-trace{container:il/inline-size;font:12px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;
 color:inherit}
.il-trace table{border-collapse:collapse;table-layout:auto;width:100%;margin:0;border:0;color:inherit;
 background:none;font-size:12px}
.il-trace caption{caption-side:top;text-align:left;font-weight:600;color:inherit;padding:2px 0 6px}
.il-trace th,.il-trace td{text-align:left!important;padding:2px 12px 2px 0;border:0;vertical-align:top;
 color:inherit;background:none;font-weight:400;max-width:none}
.il-trace thead th{border-bottom:1px solid color-mix(in srgb,currentColor 45%,transparent);font-weight:600}
.il-trace tbody tr{border-bottom:1px solid color-mix(in srgb,currentColor 12%,transparent);
 background:none!important}
.il-trace tbody tr:hover{background:color-mix(in srgb,currentColor 7%,transparent)!important}
.il-trace th[scope=row]{min-width:13em;overflow-wrap:anywhere}
.il-trace .il-n{text-align:right!important;font-variant-numeric:tabular-nums;white-space:nowrap}
.il-trace .il-s{width:3em}
.il-trace .il-d{min-width:12em;overflow-wrap:anywhere}
.il-trace .il-a{display:inline-block;max-width:100%;margin-right:1em}
.il-trace tr.il-hero{background:color-mix(in srgb,var(--il) 16%,transparent)!important}
.il-trace tr.il-hero>:first-child{box-shadow:inset 4px 0 var(--il)}
.il-trace tr.il-hero>th>b{font-weight:700}
.il-trace .il-denoiser,.il-trace .il-model{--il:royalblue}
.il-trace .il-guidance{--il:darkorange}
.il-trace .il-decode{--il:seagreen}
.il-trace .il-k{opacity:.7}
.il-trace b{font-weight:400}
.il-trace .il-x{font-weight:700;border-bottom:2px solid;white-space:nowrap}
.il-trace .il-r{margin:0 0 2px 1.2em;font-style:italic}
.il-trace .il-r::before{content:"▸ "}
.il-trace .il-e{font-weight:700}
.il-trace details{margin:0}
.il-trace .il-a details{display:inline-block;max-width:100%;vertical-align:top}
.il-trace summary{cursor:pointer}
.il-trace ul{margin:6px 0 0;padding-left:1.4em}
@container il (max-width:720px){
.il-trace table,.il-trace tbody,.il-trace tr,.il-trace tbody th,.il-trace td,.il-trace caption{display:block}
.il-trace thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
.il-trace tbody tr{padding:4px 0 4px 8px}
.il-trace tr.il-hero{box-shadow:inset 4px 0 var(--il)}
.il-trace tr.il-hero>:first-child{box-shadow:none}
.il-trace td,.il-trace tbody th{padding:0;min-width:0!important}
.il-trace td:empty{display:none}
.il-trace .il-a{display:inline}
.il-trace .il-n{display:inline-block;text-align:left!important;width:auto;margin-right:1.2em}
.il-trace td[data-h]::before{content:attr(data-h) " ";opacity:.7}
}
</style>"""

LINES = 1000  # lines that a notebook shows at most
# Shown and folded lines together that a page holds. Folded lines beyond this number are only counted: a page
# of many thousands would be slow.
WITH_FOLDED = 500
SETTINGS = 5  # inputs that carry no data and are shown without a click


def html_table(heading: str, notes: list[str], device: str, lines: list[Line]) -> str:
    """The whole table as one HTML fragment.

    `device` is the one that all tensors share and that no line repeats, "" where there are several.
    """
    rows = _Rows(any(line.gpu_ms is not None for line in lines), device, max(0, WITH_FOLDED - len(lines)))
    said = [f"note: {note}" for note in notes]
    if len(lines) > LINES:
        said.append(f"{len(lines) - LINES} more lines: t.table(level=1) or t.frame()")
    below = f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in said)}</ul>" if said else ""
    return framed(rows.table(lines[:LINES], heading) + below)


def framed(inside: str) -> str:
    """A fragment in the tracer's own type and colors."""
    return f'{_STYLE}<div class="il-trace">{inside}</div>'


class _Rows:
    """Makes the rows of a table.

    gpu      whether there are columns of the device's times
    device   the one that all tensors share, which no cell repeats
    left     how many folded lines may still be put on the page
    """

    def __init__(self, gpu: bool, device: str, left: int) -> None:
        self.gpu, self.device, self.left = gpu, device, left
        self.columns = ["step", "boundary", "inputs", "outputs", "bytes out", "ms"]
        self.columns += ["gpu ms", "bound"] if gpu else []

    def table(self, lines: list[Line], caption: str) -> str:
        right = {"step": "il-n il-s", "bytes out": "il-n", "ms": "il-n", "gpu ms": "il-n"}
        heads = "".join(f'<th scope="col" class="{right.get(name, "")}">{name}</th>' for name in self.columns)
        rows = "".join(self.row(line) for line in lines)
        return (
            f"<table><caption>{escape(caption)}</caption><thead><tr>{heads}</tr></thead>"
            f"<tbody>{rows}</tbody></table>"
        )

    def row(self, line: Line) -> str:
        boundary = line.boundary
        if boundary is None:
            return self.summary(line, line.name, f"{line.text} · {human_ms(line.ms)} ms together")
        role = f' class="il-hero il-{boundary.role}"' if boundary.role else ""
        count = f" ×{line.count}" if line.count > 1 else ""
        what = boundary.role if boundary.role and boundary.role != boundary.name else ""
        said = boundary.kind in ("module", "inferred") or line.name.startswith(boundary.kind)
        what = what or ("" if said else boundary.kind)
        kind = f' <span class="il-k">{what}</span>' if what else ""
        under = "".join(f'<div class="{_remark_class(r)}">{escape(r)}</div>' for r in remarks(boundary))
        text = f'<tr{role}><td class="il-n il-s"{_label("step", line.step)}>{line.step}</td>'
        indent = f'style="padding-left:{line.level * 14}px"'
        text += f'<th scope="row" {indent}><b>{escape(line.name)}{count}</b>{kind}{under}</th>'
        text += self.data("in", shown_inputs(boundary), main_tensor(boundary.inputs), boundary.axes_in)
        text += self.data("out", shown_outputs(boundary), main_tensor(boundary.outputs), boundary.axes_out)
        cells = [("bytes out", human_bytes(line.bytes_out)), ("ms", human_ms(line.ms))]
        cells += [("gpu ms", human_ms(line.gpu_ms)), ("bound", boundary.bound or "")] if self.gpu else []
        text += "".join(f'<td class="il-n"{_label(name, cell)}>{cell}</td>' for name, cell in cells)
        return f"{text}</tr>" + (self.summary(line, f"the other {line.count - 1}", "") if line.folded else "")

    def data(self, label: str, fields: dict, main: specs.TensorSpec | None, axes: dict[int, int]) -> str:
        """The cell of the inputs or outputs; the axes of the main tensor that changed are marked."""
        shown: list[str] = []
        settings: list[str] = []
        for name, value in fields.items():
            text = self.value(value, main, axes)
            prefix = f"{escape(name)}=" if name else ""
            item = prefix + text
            if brief(value) != specs.show(value, 4000):
                full = self.words(specs.show(value, 4000))
                item = f"<details><summary>{item}</summary>{full}</details>"
            (shown if is_data(value) else settings).append(f'<span class="il-a">{item}</span>')
        more = settings[SETTINGS:]
        if len(more) > 1:
            settings = settings[:SETTINGS]
            settings.append(f"<details><summary>{len(more)} more settings</summary>{''.join(more)}</details>")
        return f'<td class="il-d"{_label(label, fields)}>{"".join(shown + settings)}</td>'

    def value(self, value: specs.Described, main: specs.TensorSpec | None, axes: dict[int, int]) -> str:
        """A described value; where it is the main tensor, an axis that changed is shown as `2 → 1`."""
        if value is main and isinstance(value, specs.TensorSpec) and axes:
            sizes = [
                f'<b class="il-x">{axes[axis]} → {size}</b>' if axis in axes else str(size)
                for axis, size in enumerate(value.shape)
            ]
            shape = f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"
            return shape.replace(", ", ",&nbsp;") + escape(
                without_device(str(value), self.device).partition(")")[2]
            )
        if isinstance(value, specs.Items) and main is not None and any(part is main for part in value):
            return f"({', '.join(self.value(part, main, axes) for part in value)})"
        return self.words(brief(value))

    def words(self, text: str) -> str:
        """Escaped text without the device that all share; a shape stays in one line."""
        text = escape(without_device(text, self.device))
        return re.sub(r"\([\d, ]+\)", lambda shape: shape[0].replace(" ", "&nbsp;"), text)

    def summary(self, line: Line, label: str, text: str) -> str:
        """A line that stands for several: opens on a click."""
        step = line.step if line.boundary is None else ""
        folded = line.folded or []
        inside = folded[: self.left]
        self.left -= len(inside)
        rest = len(folded) - len(inside)
        more = f"<p>{rest} more lines: t.table(unfold=True) or t.frame()</p>" if rest else ""
        shown = self.table(inside, label) if inside else ""
        detail = f' <span class="il-k">{escape(text)}</span>' if text else ""
        return (
            f'<tr><td class="il-n il-s"{_label("step", step)}>{step}</td>'
            f'<td colspan="{len(self.columns) - 1}" style="padding-left:{line.level * 14}px"><details>'
            f"<summary>{escape(label)}{detail}</summary>{shown}{more}</details></td></tr>"
        )


def _label(name: str, cell: object) -> str:
    """The attribute from which the narrow form takes a cell's label."""
    return f' data-h="{name}"' if cell else ""


def _remark_class(text: str) -> str:
    return "il-r il-e" if text.startswith("raised ") else "il-r"
