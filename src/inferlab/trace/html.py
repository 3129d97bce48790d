"""The HTML of the table: readable in JupyterLab and Colab, light and dark, without scripts."""

from html import escape

# Colors come from the page (currentColor with opacity), so that light and dark themes both work.
_STYLE = """<style>
.il-trace{font:12px/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;color:inherit;overflow-x:auto;
 max-width:100%;max-height:48em;overflow-y:auto}
.il-trace .il-head{font-weight:600;margin:2px 0 6px}
.il-trace table{border-collapse:collapse;margin:0;border:0;color:inherit;background:none;width:auto}
.il-trace th,.il-trace td{text-align:left!important;padding:1px 10px 1px 0;border:0;vertical-align:top;
 color:inherit;background:none;font-size:12px;white-space:nowrap}
.il-trace thead th{border-bottom:1px solid color-mix(in srgb,currentColor 40%,transparent);font-weight:600}
.il-trace tbody tr{border-bottom:1px solid color-mix(in srgb,currentColor 10%,transparent);background:none!important}
.il-trace tbody tr:hover{background:color-mix(in srgb,currentColor 8%,transparent)!important}
.il-trace td.il-n,.il-trace th.il-n{text-align:right!important;font-variant-numeric:tabular-nums}
.il-trace td.il-d{white-space:normal;min-width:12em;max-width:38em;overflow-wrap:anywhere}
.il-trace .il-k{opacity:.6}
.il-trace .il-i{font-style:italic;opacity:.85}
.il-trace .il-c{display:inline-block;border:1px solid currentColor;border-radius:3px;padding:0 4px;margin:0 4px 1px 0;
 font-weight:600}
.il-trace .il-e{font-weight:700;text-decoration:underline}
.il-trace details{margin:0}.il-trace summary{cursor:pointer}
.il-trace .il-note{margin:4px 0 0;opacity:.8;white-space:normal}
</style>"""


LINES = 1000  # lines that a notebook shows at most
FOLDED_LINES = 500  # lines in all that can be unfolded by a click: a page of many thousands would be slow


def table(trace, lines: list) -> str:
    """The whole table as one HTML fragment."""
    from .table import _heading, only_device

    notes = "".join(f'<div class="il-note">note: {escape(note)}</div>' for note in trace.notes)
    gpu = any(line.gpu_ms is not None for line in lines)
    view = _View(gpu, only_device(trace), max(0, FOLDED_LINES - len(lines)))
    shown = view.table(lines[:LINES], head=True)
    if len(lines) > LINES:
        notes += f'<div class="il-note">{len(lines) - LINES} more lines: t.table(level=1) or t.frame()</div>'
    return framed(f'<div class="il-head">{escape(_heading(trace))}</div>{shown}{notes}')


def framed(inside: str) -> str:
    """A fragment in the tracer's own type and colors."""
    return f'{_STYLE}<div class="il-trace">{inside}</div>'


class _View:
    """Rows of the table; `device` is the one that all tensors share, left out of every cell.

    `left` is how many folded lines may still be put on the page.
    """

    def __init__(self, gpu: bool, device: str, left: int):
        self.gpu, self.device, self.left = gpu, device, left
        self.columns = [
            "step",
            "boundary",
            "ms",
            *(["gpu ms", "bound"] if gpu else []),
            "out",
            "inputs",
            "outputs",
            "notes",
        ]

    def table(self, lines: list, head: bool) -> str:
        right = {"step", "ms", "gpu ms", "out"}
        cells = "".join(f'<th class="il-n">{c}</th>' if c in right else f"<th>{c}</th>" for c in self.columns)
        thead = f"<thead><tr>{cells}</tr></thead>" if head else ""
        return f"<table>{thead}<tbody>{''.join(self.row(line) for line in lines)}</tbody></table>"

    def row(self, line) -> str:
        boundary = line.boundary
        if boundary is None:
            return self.summary(line, escape(line.name), escape(line.text))
        from .table import human_bytes, human_ms, inputs_text, outputs_text, without_device

        kind = "" if boundary.kind == "module" else f' <span class="il-k">{escape(boundary.kind)}</span>'
        count = f" ×{line.count}" if line.count > 1 else ""
        style = ' class="il-i"' if boundary.inferred else ""
        gpu = (
            f'<td class="il-n">{human_ms(line.gpu_ms)}</td><td>{boundary.bound or ""}</td>'
            if self.gpu
            else ""
        )
        given = without_device(inputs_text(boundary, 300), self.device)
        made = without_device(outputs_text(boundary, 300), self.device)
        text = (
            f'<tr><td class="il-n">{escape(line.step)}</td><td style="padding-left:{line.level * 14}px">'
            f'<span{style}>{escape(line.name)}{count}</span>{kind}</td><td class="il-n">{human_ms(line.ms)}</td>{gpu}'
            f'<td class="il-n">{human_bytes(line.bytes_out)}</td><td class="il-d">{escape(given)}</td>'
            f'<td class="il-d">{escape(made)}</td><td class="il-d">{_notes(boundary)}</td></tr>'
        )
        return text + (self.summary(line, f"the other {line.count - 1}", "") if line.folded else "")

    def summary(self, line, label: str, text: str) -> str:
        """A line that stands for several: opens on a click."""
        from .table import human_ms

        time = f" · {human_ms(line.ms)} ms together" if line.boundary is None else ""
        step = escape(line.step) if line.boundary is None else ""
        folded = line.folded or []
        inside = folded[: self.left]
        self.left -= len(inside)
        rest = len(folded) - len(inside)
        more = (
            f'<div class="il-note">{rest} more lines: t.table(unfold=True) or t.frame()</div>' if rest else ""
        )
        detail = f' <span class="il-k">{text}{time}</span>'
        return (
            f'<tr><td class="il-n">{step}</td><td colspan="{len(self.columns) - 1}" '
            f'style="padding-left:{line.level * 14}px"><details><summary>{label}{detail}</summary>'
            f"{self.table(inside, head=False) if inside else ''}{more}</details></td></tr>"
        )


def _notes(boundary) -> str:
    from .table import human_bytes

    marks = "".join(f'<span class="il-c">{escape(change)}</span>' for change in boundary.changes)
    if boundary.inferred:
        marks += f'<span class="il-i">inferred: {escape(boundary.note)}</span>'
    if boundary.error:
        marks += f'<span class="il-e">raised {escape(boundary.error)}</span>'
    if boundary.moved and boundary.moved["bytes"]:
        marks += f"{human_bytes(boundary.moved['bytes'])} of weights"
    return marks
