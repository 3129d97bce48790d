"""The table of boundaries: folded lines, as aligned text for a terminal and as HTML for a notebook."""

import re
import shutil
from dataclasses import dataclass

from . import html, view
from .fold import Folder, Group


@dataclass
class Line:
    """One line of the table: a boundary, or a summary of folded ones (`boundary` None)."""

    level: int
    step: str
    name: str
    boundary: object = None
    text: str = ""
    ms: float | None = None
    gpu_ms: float | None = None
    bytes_out: int | None = None
    folded: list | None = None
    count: int = 1


def lines_of(trace, unfold: bool = False, level: int | None = None) -> list:
    """The lines of a trace's table in order; a folded line carries the lines that it stands for."""
    groups, folder = trace.groups()
    return _lines(groups, folder, 0, unfold, level)


def _lines(groups: list, folder: Folder, depth: int, unfold: bool, level: int | None) -> list:
    found = []
    for group in groups:
        if unfold:
            for boundary in (*group.boundaries, *group.others):
                found.extend(_boundary_lines(boundary, folder, depth, unfold, level))
            continue
        if group.steps is None:
            found.extend(_boundary_lines(group.boundaries[0], folder, depth, unfold, level, group))
            continue
        for boundary in group.boundaries:
            found.extend(_boundary_lines(boundary, folder, depth, unfold, level))
        if group.count > 1:
            found.append(_summary(group, folder, depth, level))
    return found


def _boundary_lines(boundary, folder, depth, unfold, level, group: Group | None = None) -> list:
    several = group is not None and group.count > 1
    layers = several and boundary.kind == "move" and boundary.moved_name != boundary.base
    line = Line(
        depth,
        "" if boundary.step is None else str(boundary.step),
        f"moves of {boundary.base}'s layers" if layers else boundary.name,
        boundary,
        ms=group.ms if several else boundary.ms,
        gpu_ms=_sum_gpu([boundary, *(group.others if several else ())]),
        bytes_out=boundary.bytes_out,
        count=group.count if several else 1,
    )
    if several:
        line.folded = [
            Line(depth, _step(b), b.name, b, ms=b.ms, gpu_ms=b.gpu_ms, bytes_out=b.bytes_out)
            for b in group.others
        ]
    found = [line]
    if level is None or depth < level:
        found.extend(_lines(folder.groups(boundary.children), folder, depth + 1, unfold, level))
    return found


def _step(boundary) -> str:
    return "" if boundary.step is None else str(boundary.step)


def _summary(group: Group, folder, depth, level) -> Line:
    first, last = group.steps[0] + 1, group.steps[1]
    steps = str(first) if first == last else f"{first}–{last}"
    names = ", ".join(b.name for b in group.boundaries)
    times = group.count - 1
    same = (
        "the same boundary" if len(group.boundaries) == 1 else f"the same {len(group.boundaries)} boundaries"
    )
    folded = [line for b in group.others for line in _boundary_lines(b, folder, depth, False, level)]
    return Line(
        depth,
        steps,
        f"{same} ×{times}",
        None,
        names,
        ms=sum(b.ms or 0.0 for b in group.others),
        gpu_ms=_sum_gpu(group.others),
        folded=folded,
        count=times,
    )


def _sum_gpu(boundaries) -> float | None:
    values = [b.gpu_ms for b in boundaries if b.gpu_ms is not None]
    return sum(values) if values else None


def human_bytes(count: int | None) -> str:
    if not count:
        return ""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return ""


def human_ms(ms: float | None) -> str:
    return "" if ms is None else f"{ms:.2f}" if ms < 100 else f"{ms:.0f}"


def inputs_text(boundary, limit: int = 120) -> str:
    """Tensors and caches first, then numbers and strings; None left out, and switches where there is data."""
    shown = {k: v for k, v in boundary.inputs.items() if v is not None}
    weighty = {k: v for k, v in shown.items() if view.tensors(v) or hasattr(v, "length")}
    rest = {k: v for k, v in shown.items() if k not in weighty and not (weighty and isinstance(v, bool))}
    return _listed(weighty | rest, limit)


def outputs_text(boundary, limit: int = 120) -> str:
    outputs = boundary.outputs
    if isinstance(outputs, view.Items) and len(outputs) == 1:
        outputs = outputs[0]
    if outputs is None:
        return ""
    return _listed(outputs, limit) if isinstance(outputs, dict) else view.show(outputs, limit)


def _listed(fields: dict, limit: int) -> str:
    text = ", ".join(f"{name}={view.show(part, limit)}" for name, part in fields.items())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def only_device(trace) -> str:
    """The device of every tensor in a trace when there is just one, else ""; it is then said once, in the heading."""
    devices = {str(device) for device in trace.devices}
    return devices.pop() if len(devices) == 1 else ""


def without_device(text: str, device: str) -> str:
    """A described value without the device that all tensors share."""
    return re.sub(rf"(\) [a-z]+\d+\w*) {re.escape(device)}\b", r"\1", text) if device else text


def notes_text(boundary) -> str:
    notes = list(boundary.changes)
    if boundary.inferred:
        notes.append(f"inferred: {boundary.note}")
    if boundary.error:
        notes.append(f"raised {boundary.error}")
    move = boundary.moved
    if move and move["bytes"]:
        notes.append(f"{human_bytes(move['bytes'])} of weights")
    return "; ".join(notes)


class Table:
    """A trace's table. `print(table)` gives text; a notebook shows the HTML."""

    def __init__(self, trace, unfold=False, level=None, width=None):
        self.trace, self.width = trace, width
        self.lines = lines_of(trace, unfold, level)

    def __str__(self) -> str:
        return text_table(self.trace, self.lines, self.width)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html.table(self.trace, self.lines)


def text_table(trace, lines: list, width: int | None = None) -> str:
    width = width or max(80, shutil.get_terminal_size((140, 40)).columns)
    gpu = any(line.gpu_ms is not None for line in lines)
    name_width = min(max([len(_label(line)) for line in lines] + [8]), max(24, width // 3))
    step_width = max([len(line.step) for line in lines] + [4])
    fixed = step_width + name_width + 9 + (16 if gpu else 0) + 11 + 3
    data_width = max(24, width - fixed)
    head = f"{'step':>{step_width}} {'boundary':<{name_width}} {'ms':>8} "
    head += f"{'gpu ms':>8} {'bound':<6} " if gpu else ""
    head += f"{'out':>10} {'inputs → outputs':<{data_width}}"
    device = only_device(trace)
    out = [_heading(trace), head.rstrip(), "─" * min(width, len(head))]
    for line in lines:
        row = f"{line.step:>{step_width}} {_clip(_label(line), name_width):<{name_width}} {human_ms(line.ms):>8} "
        row += (
            f"{human_ms(line.gpu_ms):>8} {(line.boundary and line.boundary.bound) or '':<6} " if gpu else ""
        )
        row += f"{human_bytes(line.bytes_out):>10} "
        boundary = line.boundary
        if boundary is None:
            out.append((row + _clip(line.text, data_width)).rstrip())
            continue
        half = max(12, (data_width - 3) // 2)
        given = without_device(inputs_text(boundary, 400), device)
        made = without_device(outputs_text(boundary, 400), device)
        if len(given) + len(made) + 3 > data_width:
            given = _clip(given, max(half, data_width - 3 - len(made)))
            made = _clip(made, max(half, data_width - 3 - len(given)))
        out.append((row + (f"{given} → {made}" if made else given)).rstrip())
        notes = notes_text(boundary)
        if notes:
            pad = " " * (step_width + 1) + "  " * (line.level + 1)
            out.append(_clip(f"{pad}! {notes}", width))
    out.extend(f"note: {note}" for note in trace.notes)
    return "\n".join(out)


def _heading(trace) -> str:
    loop = f", {trace.steps} steps" if trace.steps else ""
    device = only_device(trace)
    place = f", all tensors on {device}" if device else ""
    return f"{trace.title}: {len(trace)} boundaries{loop}, {trace.ms:.0f} ms{place}"


def _label(line: Line) -> str:
    count = f" ×{line.count}" if line.count > 1 and line.boundary is not None else ""
    mark = "~ " if line.boundary is not None and line.boundary.inferred else ""
    return "  " * line.level + mark + line.name + count


def _clip(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(1, width - 1)] + "…"


def tree_text(trace, unfold: bool = False) -> str:
    """Names only, nested as they were called, drawn with lines."""
    groups, folder = trace.groups()
    out = [_heading(trace)]

    def draw(groups, indent):
        entries = []
        for group in groups:
            if unfold:
                entries += [(b, "", True) for b in (*group.boundaries, *group.others)]
            elif group.steps is None:
                entries.append((group.boundaries[0], f" ×{group.count}" if group.count > 1 else "", True))
            else:
                first, last = group.steps
                label = f"step {first}" if first == last else f"steps {first}–{last}"
                entries += [(b, f"  [{label}]", True) for b in group.boundaries]
        for number, (boundary, suffix, _) in enumerate(entries):
            final = number == len(entries) - 1
            mark = "~" if boundary.inferred else ""
            out.append(f"{indent}{'└─ ' if final else '├─ '}{mark}{boundary.name}{suffix}")
            draw(folder.groups(boundary.children), indent + ("   " if final else "│  "))

    draw(groups, "")
    return "\n".join(out)
