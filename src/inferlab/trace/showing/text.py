"""The table and the tree as aligned text for a terminal."""

import shutil

from inferlab.trace.reading.boundary import Boundary

from .fold import Folder, Group
from .lines import (
    Line,
    fields_line,
    human_bytes,
    human_ms,
    remarks,
    shown_inputs,
    shown_outputs,
    without_device,
)


def text_table(
    heading: str, notes: list[str], device: str, lines: list[Line], width: int | None = None
) -> str:
    """The table in at most `width` columns (None: the terminal's, at least 80).

    `device` is the one that all tensors share and that no line repeats, "" where there are several.
    """
    width = width or max(80, shutil.get_terminal_size((140, 40)).columns)
    gpu = any(line.gpu_ms is not None for line in lines)
    name_width = min(max([len(_label(line)) for line in lines] + [8]), max(24, width // 3))
    step_width = max([len(line.step) for line in lines] + [4])
    data_width = max(24, width - (step_width + name_width + 9 + (16 if gpu else 0) + 11 + 3))
    head = f"{'step':>{step_width}} {'boundary':<{name_width}} {'ms':>8} "
    head += f"{'gpu ms':>8} {'bound':<6} " if gpu else ""
    head += f"{'bytes out':>10} {'inputs → outputs':<{data_width}}"
    out = [heading, head.rstrip(), "─" * min(width, len(head))]
    for line in lines:
        boundary = line.boundary
        name = _clip(_label(line), name_width)
        row = f"{line.step:>{step_width}} {name:<{name_width}} {human_ms(line.ms):>8} "
        row += f"{human_ms(line.gpu_ms):>8} {(boundary and boundary.bound) or '':<6} " if gpu else ""
        row += f"{human_bytes(line.bytes_out):>10} "
        if boundary is None:
            out.append((row + _clip(line.text, data_width)).rstrip())
            continue
        out.append((row + _data(boundary, device, data_width)).rstrip())
        if remarks(boundary):
            pad = " " * (step_width + 1) + "  " * (line.level + 1)
            out.append(_clip(f"{pad}! {'; '.join(remarks(boundary))}", width))
    out.extend(f"note: {note}" for note in notes)
    return "\n".join(out)


def _data(boundary: Boundary, device: str, width: int) -> str:
    given = without_device(fields_line(shown_inputs(boundary)), device)
    made = without_device(fields_line(shown_outputs(boundary)), device)
    if len(given) + len(made) + 3 > width:
        half = max(12, (width - 3) // 2)
        given = _clip(given, max(half, width - 3 - len(made)))
        made = _clip(made, max(half, width - 3 - len(given)))
    return f"{given} → {made}" if made else given


def _label(line: Line) -> str:
    count = f" ×{line.count}" if line.count > 1 and line.boundary is not None else ""
    mark = "~ " if line.boundary is not None and line.boundary.inferred else ""
    return "  " * line.level + mark + line.name + count


def _clip(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(1, width - 1)] + "…"


def text_tree(heading: str, boundaries: list[Boundary], unfold: bool = False) -> str:
    """Names only, nested as they were called, drawn with lines."""
    folder = Folder()
    out = [heading]

    def draw(groups: list[Group], indent: str) -> None:
        entries = []
        for group in groups:
            if unfold:
                entries += [(b, "") for b in (*group.boundaries, *group.others)]
            elif group.steps is None:
                entries.append((group.boundaries[0], f" ×{group.count}" if group.count > 1 else ""))
            else:
                first, last = group.steps
                label = f"step {first}" if first == last else f"steps {first}–{last}"
                entries += [(b, f"  [{label}]") for b in group.boundaries]
        for number, (boundary, suffix) in enumerate(entries, 1):
            final = number == len(entries)
            mark = "~" if boundary.inferred else ""
            out.append(f"{indent}{'└─ ' if final else '├─ '}{mark}{boundary.name}{suffix}")
            draw(folder.groups(boundary.children), indent + ("   " if final else "│  "))

    draw(folder.groups([boundary for boundary in boundaries if boundary.parent is None]), "")
    return "\n".join(out)
