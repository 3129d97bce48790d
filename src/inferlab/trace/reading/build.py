"""Turns a recorder's integers into boundaries: linked, named, numbered, and with what can be inferred."""

from inferlab.trace.recording.recorder import COLUMNS, Recorder

from . import changes, guidance, packing, steps
from .boundary import Boundary, Signatures


def boundaries(recorder: Recorder, signatures: Signatures, aliases: dict[str, list]) -> list[Boundary]:
    """Every boundary in the order in which it began, inferred ones in their place.

    aliases   module's name -> its further names. A call of a module with several names gets the name under
              which its caller holds the module.
    """
    found = _recorded(recorder, signatures)
    if aliases:
        _name_shared(found, aliases)
    steps.number_steps(found)
    found = guidance.infer(found)
    for index, boundary in enumerate(found):
        boundary.index = index
    for boundary in found:
        if boundary.inferred and boundary.parent is not None:
            boundary.parent.children.append(boundary)
            boundary.parent.children.sort(key=lambda b: b.index)
    changes.mark(found)
    packing.note_packing(found)
    return found


def _recorded(recorder: Recorder, signatures: Signatures) -> list[Boundary]:
    """The boundaries of all threads in the order in which they began, linked to their parents."""
    found = []
    for log in list(recorder.logs.values()):
        by_seq = {}
        rows = log.records()
        for at in range(0, len(rows), COLUMNS):
            seq, number, parent, inputs, outputs, start, end, status = rows[at : at + COLUMNS]
            point = recorder.points[number]
            boundary = Boundary(
                point.name, point.kind, point.base, start, end, log.thread, signatures, point.parameters
            )
            boundary.input_signature, boundary.output_signature = inputs, outputs
            boundary.error = recorder.errors[status - 1] if status else None
            boundary.extra = recorder.extras.get((log.thread, seq)) or {}
            original, _, copy = point.base.partition("#")
            boundary.note = f"on copy {copy} of {original}" if copy else ""
            by_seq[seq] = (boundary, parent)
        for seq in sorted(by_seq):
            boundary, parent = by_seq[seq]
            # Without a parent it is outermost, or the trace is read early and its parent is still running.
            if parent in by_seq:
                boundary.parent = by_seq[parent][0]
                boundary.level = boundary.parent.level + 1
                boundary.parent.children.append(boundary)
            found.append(boundary)
    found.sort(key=lambda boundary: boundary.start_ns)
    return found


def _name_shared(found: list[Boundary], aliases: dict[str, list]) -> None:
    """Gives calls of a shared module the name under which their caller holds it."""
    renamed: dict[int, str] = {}
    for boundary in found:
        parent = boundary.parent
        if parent is None:
            continue
        first = boundary.name
        inside = renamed.get(id(parent))
        if inside is not None and first.startswith(f"{inside}."):
            boundary.name = parent.name + first[len(inside) :]
        elif first in aliases:
            holder = f"{parent.name}." if parent.level or "." in parent.name else ""
            fitting = [name for name in (first, *aliases[first]) if name.startswith(holder)]
            boundary.name = fitting[0] if fitting else first
        if boundary.name != first:
            renamed[id(boundary)] = first
