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


def table(trace, lines: list) -> str:
    """The whole table as one HTML fragment."""
    from .table import _heading

    gpu = any(line.gpu_ms is not None for line in lines)
    notes = "".join(f'<div class="il-note">note: {escape(note)}</div>' for note in trace.notes)
    return (
        f'{_STYLE}<div class="il-trace"><div class="il-head">{escape(_heading(trace))}</div>'
        f"{_table(lines, gpu, head=True)}{notes}</div>"
    )


def _table(lines: list, gpu: bool, head: bool) -> str:
    columns = (
        ["step", "boundary", "ms"]
        + (["gpu ms", "bound"] if gpu else [])
        + ["out", "inputs", "outputs", "notes"]
    )
    right = {"step", "ms", "gpu ms", "out"}
    cells = "".join(f'<th class="il-n">{c}</th>' if c in right else f"<th>{c}</th>" for c in columns)
    thead = f"<thead><tr>{cells}</tr></thead>" if head else ""
    return f"<table>{thead}<tbody>{''.join(_row(line, gpu) for line in lines)}</tbody></table>"


def _row(line, gpu: bool) -> str:
    from .table import human_bytes, human_ms, inputs_text, outputs_text

    boundary = line.boundary
    indent = f'style="padding-left:{line.level * 14}px"'
    name = escape(line.name) + (f" ×{line.count}" if line.count > 1 and boundary is not None else "")
    numbers = f'<td class="il-n">{human_ms(line.ms)}</td>'
    if gpu:
        numbers += (
            f'<td class="il-n">{human_ms(line.gpu_ms)}</td><td>{(boundary and boundary.bound) or ""}</td>'
        )
    numbers += f'<td class="il-n">{human_bytes(line.bytes_out)}</td>'
    start = f'<tr><td class="il-n">{escape(line.step)}</td>'
    if boundary is None or line.folded:
        label = name if boundary is None else f"{name} <span class='il-k'>{escape(boundary.kind)}</span>"
        inside = _table(line.folded, gpu, head=False) if line.folded else ""
        folded = f"<td {indent}><details><summary>{label}</summary>{inside}</details></td>"
        if boundary is None:
            return f'{start}{folded}{numbers}<td class="il-d" colspan="3">{escape(line.text)}</td></tr>'
        start += folded
    else:
        style = ' class="il-i"' if boundary.inferred else ""
        kind = "" if boundary.kind == "module" else f' <span class="il-k">{escape(boundary.kind)}</span>'
        start += f"<td {indent}><span{style}>{name}</span>{kind}</td>"
    return (
        f'{start}{numbers}<td class="il-d">{escape(inputs_text(boundary, 300))}</td>'
        f'<td class="il-d">{escape(outputs_text(boundary, 300))}</td><td class="il-d">{_notes(boundary)}</td></tr>'
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
