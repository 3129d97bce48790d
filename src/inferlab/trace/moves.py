"""Records the moves of weights: `.to()` and its kin, accelerate's hooks, and diffusers' group offloading."""

import sys

from torch.nn import Module

from . import spec
from .record import DATA, FullPoint

MOVERS = ("to", "cpu", "cuda", "half", "float", "double", "bfloat16", "to_empty")


def residency(module: Module) -> tuple:
    """(device, dtype) of a module's first weight as strings, or (None, None) when it has none."""
    for tensor in module.parameters():
        return str(tensor.device), str(tensor.dtype).removeprefix("torch.")
    for tensor in module.buffers():
        return str(tensor.device), str(tensor.dtype).removeprefix("torch.")
    return None, None


def weight_bytes(module: Module) -> int:
    """Bytes of a module's parameters and buffers, wherever they are."""
    return sum(t.numel() * t.element_size() for t in (*module.parameters(), *module.buffers()))


class MovePoint(FullPoint):
    """A call that may move a module's weights to another device or dtype; recorded only when it did."""

    __slots__ = ("module_at", "moved", "weights")

    def __init__(self, *args, moved: str, module_at: int = 0, **kwargs):
        super().__init__(*args, **kwargs)
        self.moved, self.module_at, self.weights = moved, module_at, None

    def before(self, args, kwargs):
        return residency(args[self.module_at])

    def drops(self, log, seq, inputs, outputs, output) -> bool:
        """Without a move of weights, only a call that sent its data to another device counts."""
        if log.count != seq + 1:
            return False
        keys = self.recorder.keys
        return _first_device(keys[inputs]) == _first_device(keys[outputs])

    def after(self, before, args, output, inputs, outputs):
        now = residency(args[self.module_at])
        if now == before:
            return outputs, None
        if self.weights is None:
            self.weights = weight_bytes(args[self.module_at])
        return outputs, {"move": (self.moved, before, now, self.weights)}


def _first_device(key):
    if spec.is_tensor_key(key):
        return key[2]
    if type(key) is tuple:
        for part in key:
            found = _first_device(part) if type(part) is tuple else None
            if found is not None:
                return found
    return None


class GroupPoint(MovePoint):
    """`ModuleGroup.onload_()` and `offload_()`: the group's modules move, one layer or block at a time."""

    __slots__ = ()

    def before(self, args, kwargs):
        return residency(args[0].modules[0]) if args[0].modules else (None, None)

    def after(self, before, args, output, inputs, outputs):
        modules = args[0].modules
        now = residency(modules[0]) if modules else (None, None)
        if now == before:
            return outputs, None
        if self.weights is None:
            self.weights = sum(weight_bytes(module) for module in modules)
        return outputs, {"move": (self.moved, before, now, self.weights)}


class HookDispatcher:
    """Finds which module a hook object is working on, and records under that module's name."""

    def __init__(self, instrument, method: str, parameters: tuple, point_class, module_of):
        self.instrument, self.method, self.parameters = instrument, method, parameters
        self.point_class, self.module_of = point_class, module_of
        self.recorder = instrument.recorder
        self.points: dict = {}

    def run(self, points, index, original, args, kwargs):
        module = self.module_of(args)
        name = self.instrument.module_names.get(id(module)) if module is not None else None
        if name is None:
            if index + 1 < len(points):
                return points[index + 1].run(points, index + 1, original, args, kwargs)
            return original(*args, **kwargs)
        point = self.points.get(name)
        if point is None:
            component = next(
                (c for c in self.instrument.components if name == c or name.startswith(f"{c}.")), name
            )
            point = self.points[name] = self.point_class(
                self.recorder,
                f"{name}.{self.method}",
                "move",
                f"move:{name}",
                DATA,
                self.parameters,
                moved=name,
                module_at=1,
                base=component,
            )
        return point.run(points, index, original, args, kwargs)


def _subclasses(cls):
    for sub in cls.__subclasses__():
        yield sub
        yield from _subclasses(sub)


def libraries(component_classes) -> tuple:
    """What decides which methods `hook_methods` and `cache_methods` find; equal as long as they would find the same."""
    hooks, caches = sys.modules.get("accelerate.hooks"), sys.modules.get("transformers.cache_utils")
    return (
        [] if hooks is None else list(_subclasses(hooks.ModelHook)),
        [*_subclasses(caches.Cache)] if hasattr(caches, "Cache") else [],
        "diffusers.hooks.group_offloading" in sys.modules,
        {name: len(vars(sys.modules.get(name, spec))) for name in {cls.__module__ for cls in component_classes}},
    )


def hook_methods():
    """(class, method name, point class, how to find the module) of the offloading hooks that are loaded."""
    hooks = sys.modules.get("accelerate.hooks")
    if hooks is not None:
        for cls in _subclasses(hooks.ModelHook):
            if cls.__name__ == "SequentialHook":
                continue  # it only passes on to the hooks that it holds
            for method in ("pre_forward", "post_forward"):
                if method in vars(cls):
                    yield cls, method, MovePoint, _second_argument
    offloading = sys.modules.get("diffusers.hooks.group_offloading")
    if offloading is not None:
        for method in ("onload_", "offload_"):
            if method in vars(offloading.ModuleGroup):
                yield offloading.ModuleGroup, method, GroupPoint, _first_of_group


def _second_argument(args):
    return args[1] if len(args) > 1 and isinstance(args[1], Module) else None


def _first_of_group(args):
    modules = getattr(args[0], "modules", None)
    return modules[0] if modules else None


def cache_methods(component_classes):
    """(class, method name) of every KV cache class: transformers' and those beside the components' own classes."""
    modules = {cls.__module__ for cls in component_classes}
    found = {}
    library = sys.modules.get("transformers.cache_utils")
    if library is not None and hasattr(library, "Cache"):
        for cls in (library.Cache, *_subclasses(library.Cache)):
            found[cls] = None
    for name in modules:
        for cls in vars(sys.modules.get(name, spec)).values():
            if (
                isinstance(cls, type)
                and cls.__module__ == name
                and cls.__name__.endswith("Cache")
                and not issubclass(cls, (Module, tuple, dict))
            ):
                found[cls] = None
    for cls in found:
        for method, function in vars(cls).items():
            reads = method.startswith(("_", "get_", "is_", "has_"))
            if not reads and type(function).__name__ == "function":
                yield cls, method
