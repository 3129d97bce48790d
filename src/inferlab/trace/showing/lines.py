"""The lines of a trace's table, folded, and the words in their cells, for the text and the HTML."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from inferlab.trace.reading import specs
from inferlab.trace.reading.boundary import Boundary

from .fold import Folder, Group

# Characters of an object's description that are shown; a longer one is its class's name alone.
FOLD_OBJECT = 60
FOLD_DATA = 160  # the same for tuples, lists and dicts of tensors


@dataclass
class Line:
    """One line of the table: a boundary, or a summary of folded ones (`boundary` None).

    level     how deep it is nested
    count     a boundary's line: how many identical neighbours it stands for, itself included; a summary: how
              many steps it stands for, without the first one, which has lines of its own
    ms        milliseconds of all that it stands for, together; `gpu_ms` likewise
    bytes_out   bytes of the first of them alone; None on a summary
    folded    the lines of a boundary's other neighbours, or of a summary's steps
    """

    level: int
    step: str
    name: str
    boundary: Boundary | None = None
    text: str = ""
    ms: float | None = None
    gpu_ms: float | None = None
    bytes_out: int | None = None
    folded: list["Line"] | None = None
    count: int = 1


def lines_of(boundaries: list[Boundary], unfold: bool = False, level: int | None = None) -> list[Line]:
    """The lines of a table in order; `unfold` and `level` as in `Trace.table`."""
    folder = Folder()
    outermost = [boundary for boundary in boundaries if boundary.parent is None]
    return _lines(folder.groups(outermost), folder, 0, unfold, level)


def _lines(groups: list[Group], folder: Folder, depth: int, unfold: bool, level: int | None) -> list[Line]:
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


def _boundary_lines(
    boundary: Boundary,
    folder: Folder,
    depth: int,
    unfold: bool,
    level: int | None,
    group: Group | None = None,
) -> list[Line]:
    others = group.others if group is not None else []
    layers = others and boundary.kind == "move" and boundary.moved_name != boundary.base
    line = Line(
        depth,
        _step(boundary),
        f"moves of {boundary.base}'s layers" if layers else boundary.name,
        boundary,
        ms=boundary.ms if group is None or not others else group.ms,
        gpu_ms=_sum_gpu([boundary, *others]),
        bytes_out=boundary.bytes_out,
        count=1 + len(others),
    )
    if others:
        line.folded = [
            Line(depth, _step(b), b.name, b, ms=b.ms, gpu_ms=b.gpu_ms, bytes_out=b.bytes_out) for b in others
        ]
    found = [line]
    if level is None or depth < level:
        found.extend(_lines(folder.groups(boundary.children), folder, depth + 1, unfold, level))
    return found


def _step(boundary: Boundary) -> str:
    return "" if boundary.step is None else str(boundary.step)


def _summary(group: Group, folder: Folder, depth: int, level: int | None) -> Line:
    """The line for the further steps of a loop that repeat its first one."""
    first, last = group.others[0].step, group.others[-1].step
    size, times = len(group.boundaries), group.count - 1
    return Line(
        depth,
        str(first) if first == last else f"{first}–{last}",
        f"the same {f'{size} boundaries' if size > 1 else 'boundary'} ×{times}",
        text=", ".join(b.name for b in group.boundaries),
        ms=sum(b.ms or 0.0 for b in group.others),
        gpu_ms=_sum_gpu(group.others),
        folded=[line for b in group.others for line in _boundary_lines(b, folder, depth, False, level)],
        count=times,
    )


def _sum_gpu(boundaries: Iterable[Boundary]) -> float | None:
    values = [b.gpu_ms for b in boundaries if b.gpu_ms is not None]
    return sum(values) if values else None


# -- words of the cells --------------------------------------------------------------------------------------


def heading(title: str, count: int, steps: int, ms: float, device: str) -> str:
    """What stands above a table; `device` is the one of all tensors, "" where there are several."""
    loop = f", {steps} steps" if steps else ""
    place = f", all tensors on {device}" if device else ""
    return f"{title}: {count} boundaries{loop}, {ms:.0f} ms{place}"


def human_bytes(count: int | None) -> str:
    """`2048` -> `"2.0 KiB"`; "" for none."""
    size = float(count or 0)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return "" if not count else f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return ""


def human_ms(ms: float | None) -> str:
    """Milliseconds with two digits after the point, without them from 100 on."""
    return "" if ms is None else f"{ms:.2f}" if ms < 100 else f"{ms:.0f}"


def brief(value: specs.Described) -> str:
    """A described value; in one word where that would be long: `GenerationConfig(…)`, `tuple of 12`."""
    text = specs.show(value, 10_000)
    container = isinstance(value, (specs.Items, specs.Fields)) and not getattr(value, "cls", "")
    if len(text) <= (FOLD_DATA if container and specs.tensors(value) else FOLD_OBJECT):
        return text
    if isinstance(value, specs.Fields):
        return f"{value.cls}(…)" if value.cls else f"dict of {len(value)}"
    if isinstance(value, specs.Items):
        return f"{value.kind} of {len(value)}"
    if isinstance(value, specs.Long):
        return f"{value.cls} of {value.length}"
    return text[: FOLD_OBJECT - 1] + "…"


def shown_inputs(boundary: Boundary) -> dict:
    """name -> value of the inputs worth a place: data first, then settings.

    None is left out, and so are switches where there is data.
    """
    given = {k: v for k, v in boundary.inputs.items() if v is not None}
    data = {k: v for k, v in given.items() if is_data(v)}
    rest = {k: v for k, v in given.items() if k not in data and not (data and isinstance(v, bool))}
    return data | rest


def is_data(value: specs.Described) -> bool:
    """Whether a value carries data, and is no settings object that happens to hold a tensor."""
    settings = isinstance(value, specs.Fields) and value.cls.endswith("Config")
    return not settings and (bool(specs.tensors(value)) or hasattr(value, "length"))


def shown_outputs(boundary: Boundary) -> dict:
    """name -> value of the outputs; the name is "" where the one output has none."""
    outputs = boundary.outputs
    if isinstance(outputs, specs.Items) and len(outputs) == 1:
        outputs = outputs[0]
    if outputs is None:
        return {}
    return dict(outputs) if isinstance(outputs, specs.Fields) else {"": outputs}


def fields_line(fields: dict) -> str:
    """`{"sample": ...}` -> `"sample=(2, 4, 16, 16) float32 cpu"`."""
    return ", ".join(f"{name}={brief(part)}" if name else brief(part) for name, part in fields.items())


def without_device(text: str, device: str) -> str:
    """A described value without the device that all tensors share."""
    # After a shape stands a dtype; all but `bool` have a digit. Words after a bracket in a prompt have none.
    return re.sub(rf"(\) (?:bool|[a-z]+\d\w*)) {re.escape(device)}\b", r"\1", text) if device else text


def remarks(boundary: Boundary) -> list[str]:
    """What stands under a boundary: its changes, why it was inferred, its error, the bytes that moved."""
    found = list(boundary.changes)
    if boundary.note:
        found.append(f"inferred: {boundary.note}" if boundary.inferred else boundary.note)
    if boundary.error:
        found.append(f"raised {boundary.error}")
    move = boundary.moved
    if move and move["bytes"]:
        found.append(f"{human_bytes(move['bytes'])} of weights")
    return found
