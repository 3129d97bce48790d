"""Finds the loops in a trace and numbers their steps, from the order of the boundaries alone.

A denoising loop is a run of `scheduler.step...` calls; a generation loop is a run of the model's forwards.
These calls are the loop's anchors, one a step. What lies between two anchors tells which boundaries belong to
one step.
"""

from collections.abc import Iterator

from .boundary import Boundary


def number_steps(boundaries: list[Boundary]) -> None:
    """Sets `step` (1-based) on every boundary inside a loop, and on everything nested in it."""
    siblings = _siblings(boundaries)
    for group in _scheduler_groups(boundaries):
        parent, anchors = _common_level(group)
        line = siblings[_key(parent, group[0])]
        if all(anchor.step is None for anchor in anchors):
            _number(line, anchors, leading=True)
    for line, anchors in _model_groups(boundaries, siblings):
        if all(anchor.step is None for anchor in anchors):
            _number(line, anchors, leading=False)
    for boundary in boundaries:
        if boundary.step is None and boundary.parent is not None:
            boundary.step = boundary.parent.step


def _key(parent: Boundary | None, boundary: Boundary) -> object:
    return ("root", boundary.thread) if parent is None else id(parent)


def _siblings(boundaries: list[Boundary]) -> dict:
    lines: dict = {}
    for boundary in boundaries:
        lines.setdefault(_key(boundary.parent, boundary), []).append(boundary)
    return lines


def method_of(boundary: Boundary) -> str:
    """The last part of a boundary's name: `scheduler.step` -> `"step"`."""
    return boundary.name.rpartition(".")[2]


def _root(boundary: Boundary) -> Boundary:
    while boundary.parent is not None:
        boundary = boundary.parent
    return boundary


def _scheduler_groups(boundaries: list[Boundary]) -> list[list[Boundary]]:
    """Runs of one scheduler's step calls; `set_timesteps` and a new outermost call begin a new run."""
    open_groups: dict = {}
    finished: list[list[Boundary]] = []
    for boundary in boundaries:
        if boundary.kind != "scheduler" or (
            boundary.parent is not None and boundary.parent.base == boundary.base
        ):
            continue
        root = _root(boundary)
        key = (boundary.base, boundary.thread, None if root is boundary else id(root))
        if method_of(boundary).startswith("set_timesteps"):
            finished.append(open_groups.pop(key, []))
        elif method_of(boundary).startswith("step"):
            open_groups.setdefault(key, []).append(boundary)
    groups = [g for g in [*finished, *open_groups.values()] if g]
    chosen = []
    for group in sorted(groups, key=lambda g: g[0].start_ns):
        # A predictor-corrector scheduler ends a step with one of its step methods.
        last = method_of(group[-1])
        chosen.append([b for b in group if method_of(b) == last])
    return chosen


def _path(boundary: Boundary) -> list[Boundary]:
    path = [boundary]
    while path[-1].parent is not None:
        path.append(path[-1].parent)
    return path[::-1]


def _common_level(group: list[Boundary]) -> tuple:
    """The deepest boundary that contains the whole group, and its children that contain one member each."""
    paths = [_path(boundary) for boundary in group]
    depth = 0
    shortest = min(map(len, paths)) - 1
    while depth < shortest and all(path[depth] is paths[0][depth] for path in paths):
        depth += 1
    anchors: list[Boundary] = []
    for path in paths:
        if not anchors or anchors[-1] is not path[depth]:
            anchors.append(path[depth])
    return (paths[0][depth - 1] if depth else None), anchors


def _model_groups(boundaries: list[Boundary], siblings: dict) -> Iterator[tuple]:
    """Runs of one model's forwards: inside `generate`, or one after another at the outermost level."""
    for boundary in boundaries:
        if method_of(boundary) == "generate":
            inside = [
                b
                for b in boundaries
                if b.name == boundary.base and b.kind == "module" and _within(b, boundary)
            ]
            if len(inside) > 1:
                parent, anchors = _common_level(inside)
                yield siblings[_key(parent, inside[0])], anchors
    for key, line in siblings.items():
        if isinstance(key, tuple):
            names = [b.name for b in line if b.kind == "module"]
            repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
            if repeated and not any(b.step for b in line):
                yield line, [b for b in line if b.name == repeated[0] and b.kind == "module"]


def _within(boundary: Boundary, outer: Boundary) -> bool:
    return any(holder is outer for holder in _path(boundary))


def _number(line: list[Boundary], anchors: list[Boundary], leading: bool) -> None:
    """Numbers the steps among siblings; `leading` says that an anchor ends its step, else it begins it."""
    places = {id(boundary): index for index, boundary in enumerate(line)}
    at = [places[id(anchor)] for anchor in anchors]
    names = [boundary.name for boundary in line]
    if len(at) > 1:
        between = names[at[0] + 1 : at[1]]
        trailing = _common_prefix(between, names[at[-1] + 1 :]) if leading else len(between)
        if leading and trailing == len(between):
            trailing = 0
        first = at[0]
        if leading:
            allowed = set(between[trailing:])
            while first > 0 and names[first - 1] in allowed:
                first -= 1
        last_trailing = trailing if leading else _common_prefix(between, names[at[-1] + 1 :])
    else:
        first, trailing, last_trailing = _alone(line, at[0]), 0, 0
    start = first
    for number, place in enumerate(at, 1):
        if number == len(at):
            end = place + 1 + last_trailing
        elif leading:
            end = place + 1 + trailing
        else:
            end = at[number]
        for boundary in line[start:end]:
            if boundary.step is None:
                boundary.step = number
        start = end


def _alone(line: list[Boundary], place: int) -> int:
    """Where the only step of a loop begins: at the modules and scheduler calls right before its step."""
    first = place
    while first > 0:
        before = line[first - 1]
        belongs = before.kind == "module" or (
            before.kind == "scheduler" and method_of(before).startswith("scale")
        )
        if not belongs:
            break
        first -= 1
    return first


def _common_prefix(one: list, other: list) -> int:
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count
