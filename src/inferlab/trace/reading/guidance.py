"""Finds each step's denoiser, and infers the guidance arithmetic, which runs inline and calls nothing."""

from .boundary import Boundary
from .specs import Described, Fields, tensors
from .steps import method_of


def infer(boundaries: list[Boundary]) -> list[Boundary]:
    """The boundaries with the inferred guidance before each scheduler step; also fills every `role`.

    Guidance is recognised in two forms: one call of the denoiser whose batch is k times the step's (k = 2, 3,
    4), and two or three calls of one denoiser, with equal shapes, before one step.
    """
    result: list[Boundary] = []
    by_step: dict[tuple, list] = {}
    for boundary in boundaries:
        result.append(boundary)
        if method_of(boundary).startswith("decode") and boundary.kind == "method":
            boundary.role = "decode"
        if boundary.step is None:
            continue
        if boundary.kind == "processor" or (boundary.kind == "module" and _is_component(boundary)):
            by_step.setdefault((boundary.thread, boundary.step), []).append(boundary)
        elif boundary.kind == "scheduler" and method_of(boundary).startswith("step"):
            key = (boundary.thread, boundary.step)
            before = [m for m in by_step.get(key, ()) if m.end_ns <= boundary.start_ns]
            modules = [m for m in before if m.kind == "module"]
            for module in modules:
                if module.name == modules[-1].name:
                    module.role = "denoiser"
            if before and before[-1].kind == "processor":
                before[-1].role = "guidance"  # a guider did it, and is a boundary of its own
                continue
            note = _guided(modules, boundary)
            if note:
                result.insert(len(result) - 1, _inferred(modules[-1], boundary, note))
                by_step[key] = []
    if not any(boundary.role == "denoiser" for boundary in boundaries):
        for boundary in boundaries:
            if boundary.step is not None and boundary.kind == "module" and _is_component(boundary):
                boundary.role = "model"
    return result


def _is_component(boundary: Boundary) -> bool:
    return boundary.name == boundary.base.partition("#")[0]


def _guided(modules: list[Boundary], step: Boundary) -> str:
    """How guidance shows between a step's modules and the scheduler's step, or "" where it does not."""
    if not modules:
        return ""
    denoiser = modules[-1]
    wanted, given = _first_shape(step.inputs), _first_shape(denoiser.outputs)
    if not wanted or not given:
        return ""
    several = wanted[0] and given[0] in [k * wanted[0] for k in (2, 3, 4)]
    if several and len(given) == len(wanted) > 1 and given[2:] == wanted[2:]:
        return f"batch {given[0]} → {wanted[0]} between {denoiser.name} and {step.name}"
    calls = [m for m in modules if m.name == denoiser.name]
    if len(calls) in (2, 3) and all(_first_shape(m.outputs) == given for m in calls):
        return f"{len(calls)} calls of {denoiser.name} for one {step.name}"
    return ""


def _inferred(denoiser: Boundary, step: Boundary, note: str) -> Boundary:
    """The boundary of guidance, between a denoiser's call and the scheduler's step."""
    end = denoiser.end_ns
    made = Boundary("guidance", "inferred", "guidance", end, end, step.thread, step.signatures)
    made.views = (Fields(noise_pred=denoiser.outputs), step.inputs[next(iter(step.inputs))])
    made.inferred, made.role, made.step, made.note = True, "guidance", step.step, note
    made.parent, made.level = step.parent, step.level
    return made


def _first_shape(described: Described) -> tuple:
    found = tensors(described)
    return tuple(found[0].shape) if found else ()
