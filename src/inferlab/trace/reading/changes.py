"""Marks where data changes device, dtype or an axis: across a boundary, and from one boundary to the next."""

from .boundary import Boundary
from .specs import Described, TensorSpec, short_dtype, tensors


def main_tensor(described: Described) -> TensorSpec | None:
    """The tensor that carries the data: the first floating one with at least one axis."""
    for found in tensors(described):
        if isinstance(found, TensorSpec) and found.ndim and found.dtype.is_floating_point:
            return found
    return None


def mark(boundaries: list[Boundary]) -> None:
    """Fills `changes`, `axes_in` and `axes_out` of every boundary.

    `changes` are sentences such as "device cpu → cuda:0" and "dtype float32 → float16"; "on entry" is added
    where the change came between the boundary before and this one.
    """
    last: dict[tuple, TensorSpec] = {}
    cache: dict[tuple, TensorSpec | None] = {}

    def main_of(boundary: Boundary, side: str) -> TensorSpec | None:
        number = boundary.input_signature if side == "in" else boundary.output_signature
        if number < 0:
            return main_tensor(boundary.inputs if side == "in" else boundary.outputs)
        if (side, number) not in cache:
            cache[side, number] = main_tensor(boundary.inputs if side == "in" else boundary.outputs)
        return cache[side, number]

    for boundary in boundaries:
        found = _moves(boundary)
        given, made = main_of(boundary, "in"), main_of(boundary, "out")
        line = boundary.thread, None if boundary.parent is None else boundary.parent.index
        before = last.get(line)
        if before is not None and given is not None and boundary.kind != "move":
            found += [f"{text} on entry" for text in _differences(before, given)]
            axes = _axes(before.shape, given.shape)
            boundary.axes_in = axes if len(axes) == 1 else {}  # more axes differ where other data goes in
        if given is not None and made is not None:
            found += _differences(given, made)
            boundary.axes_out = _axes(given.shape, made.shape)
        if made is not None and boundary.kind not in ("move", "cache"):
            last[line] = made
        boundary.changes = found


def _moves(boundary: Boundary) -> list[str]:
    move = boundary.moved
    pairs = [(move["from"], move["to"]), (move["dtype_from"], move["dtype_to"])] if move else []
    return [f"weights {before} → {after}" for before, after in pairs if before != after]


def _differences(before: TensorSpec, after: TensorSpec) -> list[str]:
    found = []
    if before.device != after.device:
        found.append(f"device {before.device} → {after.device}")
    if before.dtype != after.dtype:
        found.append(f"dtype {short_dtype(before.dtype)} → {short_dtype(after.dtype)}")
    return found


def _axes(before: tuple, after: tuple) -> dict[int, int]:
    """axis -> its size before, for those axes that differ, where the numbers of axes are equal."""
    if len(before) != len(after):
        return {}
    return {axis: old for axis, (old, new) in enumerate(zip(before, after, strict=True)) if old != new}
