"""Finds the loops in a trace and numbers their steps, from the order of the boundaries alone.

A denoising loop is a run of `scheduler.step...` calls; a generation loop is a run of the model's forwards. What
belongs to one turn of a loop is read off what lies between two such anchors.
"""


def number_steps(boundaries: list) -> None:
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


def _key(parent, boundary):
    return ("root", boundary.thread) if parent is None else id(parent)


def _siblings(boundaries) -> dict:
    lines: dict = {}
    for boundary in boundaries:
        lines.setdefault(_key(boundary.parent, boundary), []).append(boundary)
    return lines


def method_of(boundary) -> str:
    return boundary.name.rpartition(".")[2]


def _root(boundary):
    while boundary.parent is not None:
        boundary = boundary.parent
    return boundary


def _scheduler_groups(boundaries):
    """Runs of one scheduler's step calls; `set_timesteps` and a new outermost call begin a new run."""
    open_groups: dict = {}
    finished = []
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
        last = method_of(
            group[-1]
        )  # a predictor-corrector scheduler ends a turn with one of its step methods
        chosen.append([b for b in group if method_of(b) == last])
    return chosen


def _path(boundary) -> list:
    path = [boundary]
    while path[-1].parent is not None:
        path.append(path[-1].parent)
    return path[::-1]


def _common_level(group):
    """The deepest boundary that contains the whole group, and its children that contain one member each."""
    paths = [_path(boundary) for boundary in group]
    depth = 0
    shortest = min(map(len, paths)) - 1
    while depth < shortest and all(path[depth] is paths[0][depth] for path in paths):
        depth += 1
    anchors = []
    for path in paths:
        if not anchors or anchors[-1] is not path[depth]:
            anchors.append(path[depth])
    return (paths[0][depth - 1] if depth else None), anchors


def _model_groups(boundaries, siblings):
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


def _within(boundary, outer) -> bool:
    while boundary is not None:
        if boundary is outer:
            return True
        boundary = boundary.parent
    return False


def _number(line: list, anchors: list, leading: bool) -> None:
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


def _alone(line, place) -> int:
    """Where the only turn of a loop begins: at the modules and scheduler calls right before its step."""
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
    for a, b in zip(one, other):
        if a != b:
            break
        count += 1
    return count


def infer_guidance(boundaries: list, make) -> list:
    """Adds the guidance arithmetic, which runs inline: seen as a denoiser's batch that shrinks before the step.

    Two forms are recognised: one denoiser call whose batch is k times the step's (k = 2, 3, 4), and k calls of one
    denoiser, with equal shapes, before one step. `make(after, inputs, outputs, note)` builds the boundary.
    """
    result = []
    by_step: dict = {}
    for boundary in boundaries:
        result.append(boundary)
        if boundary.step is None:
            continue
        if boundary.kind == "module" and boundary.name == boundary.base or boundary.kind == "processor":
            by_step.setdefault((boundary.thread, boundary.step), []).append(boundary)
        elif boundary.kind == "scheduler" and method_of(boundary).startswith("step"):
            key = (boundary.thread, boundary.step)
            modules = [m for m in by_step.get(key, ()) if m.end_ns <= boundary.start_ns]
            if modules and modules[-1].kind == "processor":
                continue  # a guider did it, and is a boundary of its own
            modules = [m for m in modules if m.kind == "module"]
            inferred = _guidance(modules, boundary, make)
            if inferred is not None:
                result.insert(len(result) - 1, inferred)
                by_step[key] = []
    return result


def _guidance(modules: list, step, make):
    if not modules:
        return None
    wanted = _first_shape(step.inputs)
    denoiser = modules[-1]
    given = _first_shape(denoiser.outputs)
    if wanted is None or given is None:
        return None
    same = [m for m in modules if m.name == denoiser.name and _first_shape(m.outputs) == given]
    if (
        given[1:]
        and len(given) == len(wanted)
        and wanted[0]
        and given[0] > wanted[0]
        and given[0] % wanted[0] == 0
    ):
        ratio = given[0] // wanted[0]
        if ratio in (2, 3, 4) and given[2:] == wanted[2:]:
            return make(
                denoiser, step, f"batch {given[0]} → {wanted[0]} between {denoiser.name} and {step.name}"
            )
    if len(same) in (2, 3) and len(same) == len([m for m in modules if m.name == denoiser.name]):
        return make(denoiser, step, f"{len(same)} calls of {denoiser.name} for one {step.name}")
    return None


def _first_shape(described):
    from .view import tensors

    found = tensors(described)
    return tuple(found[0].shape) if found else None
