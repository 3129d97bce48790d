"""Marks where data changes device or dtype: across a boundary, and between one boundary and the next."""

from .view import TensorSpec, short_dtype, tensors


def _main(described):
    """The tensor that carries the data: the first floating one with at least one dimension."""
    for found in tensors(described):
        if isinstance(found, TensorSpec) and found.ndim and found.dtype.is_floating_point:
            return found
    return None


def mark_changes(boundaries: list) -> None:
    """Fills `changes` of every boundary: "device cpu → cuda:0", "dtype float32 → float16", "(on entry)" if between."""
    last: dict = {}
    cache: dict = {}

    def main_of(boundary, side):
        key = (side, boundary._in if side == "in" else boundary._out)
        if key not in cache or key[1] < 0:
            cache[key] = _main(boundary.inputs if side == "in" else boundary.outputs)
        return cache[key]

    for boundary in boundaries:
        notes = []
        move = boundary.moved
        if move:
            if move["from"] != move["to"]:
                notes.append(f"weights {move['from']} → {move['to']}")
            if move["dtype_from"] != move["dtype_to"]:
                notes.append(f"weights {move['dtype_from']} → {move['dtype_to']}")
        given, made = main_of(boundary, "in"), main_of(boundary, "out")
        line = boundary.thread, None if boundary.parent is None else boundary.parent.index
        before = last.get(line)
        if before is not None and given is not None and boundary.kind != "move":
            notes.extend(f"{text} on entry" for text in differences(before, given))
        if given is not None and made is not None:
            notes.extend(differences(given, made))
        if made is not None and boundary.kind not in ("move", "cache"):
            last[line] = made
        boundary.changes = notes


def differences(before: TensorSpec, after: TensorSpec) -> list:
    found = []
    if before.device != after.device:
        found.append(f"device {before.device} → {after.device}")
    if before.dtype != after.dtype:
        found.append(f"dtype {short_dtype(before.dtype)} → {short_dtype(after.dtype)}")
    return found
