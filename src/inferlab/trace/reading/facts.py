"""The facts of a run by name: what an explanation or a test may quote."""

from .boundary import Boundary
from .specs import ArraySpec, CacheSpec, Described, ImageSpec, TensorSpec, leaves, short_dtype


def facts(boundaries: list[Boundary]) -> dict:
    """name -> value, in order of first appearance.

    For a boundary "unet": "unet.calls" (int), "unet.bytes_out" (bytes of one call's output), and for every
    leaf of its first call "unet.inputs.sample.shape" (tuple), ".dtype" and ".device" (strings), or the plain
    value of a number or string ("scheduler.set_timesteps.inputs.num_inference_steps"). The only tensor of an
    output is also "unet.outputs.shape". Where later calls differ in shape, "....shapes" lists the distinct
    ones in order.
    """
    found: dict = {}
    seen: set[tuple] = set()
    for boundary in boundaries:
        key = (boundary.name, boundary.input_signature, boundary.output_signature, boundary.inferred)
        found[f"{boundary.name}.calls"] = found.get(f"{boundary.name}.calls", 0) + 1
        if key in seen:
            continue
        seen.add(key)
        found.setdefault(f"{boundary.name}.bytes_out", boundary.bytes_out)
        found.setdefault(f"{boundary.name}.bytes_in", boundary.bytes_in)
        for side, described in (("inputs", boundary.inputs), ("outputs", boundary.outputs)):
            listed = list(leaves(described))
            single = [leaf for _, leaf in listed if isinstance(leaf, (TensorSpec, ArraySpec))]
            if len(single) == 1 and side == "outputs":
                listed.append(("", single[0]))
            for path, leaf in listed:
                _add(found, f"{boundary.name}.{side}" + _joined(path), leaf)
    return found


def _joined(path: str) -> str:
    return f".{path}" if path and not path.startswith("[") else path


def _add(found: dict, name: str, leaf: Described) -> None:
    if isinstance(leaf, TensorSpec):
        values: dict = {
            "shape": tuple(leaf.shape),
            "dtype": short_dtype(leaf.dtype),
            "device": str(leaf.device),
        }
    elif isinstance(leaf, ArraySpec):
        values = {"shape": tuple(leaf.shape), "dtype": leaf.dtype}
    elif isinstance(leaf, ImageSpec):
        values = {"size": tuple(leaf.size), "mode": leaf.mode}
    elif isinstance(leaf, CacheSpec):
        values = {"length": leaf.length, "layers": leaf.layers}
    elif isinstance(leaf, (bool, int, float, str)):
        found.setdefault(name, leaf)
        return
    else:
        return
    for kind, value in values.items():
        full = f"{name}.{kind}"
        if full not in found:
            found[full] = value
        elif found[full] != value:
            several = found.setdefault(f"{full}s" if kind != "device" else f"{name}.devices", [found[full]])
            if value not in several:
                several.append(value)
