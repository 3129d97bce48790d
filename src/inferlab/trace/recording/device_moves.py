"""Records the moves of weights: `.to()` and its kin, accelerate's hooks, and diffusers' group offloading."""

import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

import torch
from torch.nn import Module

from . import signature
from .points import DATA, Point
from .recorder import Log, Recorder

MOVERS = ("to", "cpu", "cuda", "half", "float", "double", "bfloat16", "to_empty")


def device_and_dtype(module: Module) -> tuple:
    """(device, dtype) of a module's first weight as strings, or (None, None) when it has none."""
    for tensor in chain(module.parameters(), module.buffers()):
        return str(tensor.device), str(tensor.dtype).removeprefix("torch.")
    return None, None


def weight_bytes(module: Module) -> int:
    """Bytes of a module's parameters and buffers, wherever they are."""
    return sum(t.numel() * t.element_size() for t in (*module.parameters(), *module.buffers()))


class MovePoint(Point):
    """A call that may move a module's weights to another device or dtype; recorded only when it did.

    `moved` is the module's name, `module_at` its place among the call's arguments.
    """

    __slots__ = ("module_at", "moved", "weights")

    def __init__(
        self,
        recorder: Recorder,
        name: str,
        rule: int,
        parameters: Iterable,
        moved: str,
        base: str,
        module_at: int = 0,
    ) -> None:
        super().__init__(recorder, name, "move", f"move:{moved}", rule, parameters, base=base)
        self.moved, self.module_at = moved, module_at
        self.weights: int | None = None

    def modules(self, args: tuple) -> list[Module]:
        """The modules that the call may move."""
        return [args[self.module_at]]

    def before(self, args: tuple, kwargs: dict) -> tuple:
        """(device, dtype) of the weights before the call."""
        return next((device_and_dtype(module) for module in self.modules(args)), (None, None))

    def drops(self, log: Log, seq: int, inputs: int, outputs: int, output: signature.Value) -> bool:
        """Without a move of weights, only a call that sent its data to another device counts."""
        keys = self.recorder.keys
        return log.count == seq + 1 and _first_device(keys[inputs]) == _first_device(keys[outputs])

    def after(self, before: tuple, args: tuple, output: signature.Value, outputs: int) -> tuple:
        """Adds the record's "move": (module's name, from, to, bytes)."""
        now = self.before(args, {})
        if now == before:
            return outputs, None
        if self.weights is None:
            self.weights = sum(weight_bytes(module) for module in self.modules(args))
        return outputs, {"move": (self.moved, before, now, self.weights)}


def _first_device(key: signature.Key) -> torch.device | None:
    return next(signature.devices_in(key), None)


class GroupPoint(MovePoint):
    """`ModuleGroup.onload_()` and `offload_()`: the group's modules move, one layer or block at a time."""

    __slots__ = ()

    def modules(self, args: tuple) -> list[Module]:
        """The group's modules."""
        return args[0].modules


class HookDispatcher:
    """Finds which module a hook object is working on, and records under that module's name.

    recorder, components   the trace's
    names                  gives the names of its modules, id(module) -> name
    module_of              finds the module among the arguments of the hook's method
    """

    def __init__(
        self,
        recorder: Recorder,
        components: dict,
        names: Callable[[], dict[int, str]],
        method: str,
        parameters: Iterable,
        point_class: type[MovePoint],
        module_of: Callable,
    ) -> None:
        self.recorder, self.components, self.names = recorder, components, names
        self.method, self.parameters = method, parameters
        self.point_class, self.module_of = point_class, module_of
        self.points: dict[str, MovePoint] = {}

    def run(
        self, points: tuple, index: int, original: Callable, args: tuple, kwargs: dict
    ) -> signature.Value:
        """Calls the hook's method, and records it if the module is one of this trace's."""
        module = self.module_of(args)
        name = self.names().get(id(module)) if module is not None else None
        if name is None:
            if index + 1 < len(points):
                return points[index + 1].run(points, index + 1, original, args, kwargs)
            return original(*args, **kwargs)
        point = self.points.get(name)
        if point is None:
            component = next((c for c in self.components if name == c or name.startswith(f"{c}.")), name)
            point = self.points[name] = self.point_class(
                self.recorder,
                f"{name}.{self.method}",
                DATA,
                self.parameters,
                moved=name,
                base=component,
                module_at=1,
            )
        return point.run(points, index, original, args, kwargs)


def _subclasses(cls: type) -> Iterator[type]:
    sub: type
    for sub in cls.__subclasses__():
        yield sub
        yield from _subclasses(sub)


def libraries(component_classes: Iterable[type]) -> tuple:
    """A value that stays equal as long as `hook_methods` and `cache_methods` would find the same methods."""
    hooks: Any = sys.modules.get("accelerate.hooks")
    caches: Any = sys.modules.get("transformers.cache_utils")
    return (
        [] if hooks is None else list(_subclasses(hooks.ModelHook)),
        [*_subclasses(caches.Cache)] if hasattr(caches, "Cache") else [],
        "diffusers.hooks.group_offloading" in sys.modules,
        {cls.__module__: len(vars(sys.modules.get(cls.__module__, signature))) for cls in component_classes},
    )


def hook_methods() -> Iterator[tuple]:
    """(class, method name, point class, how to find the module) of the offloading hooks that are loaded."""
    hooks: Any = sys.modules.get("accelerate.hooks")
    if hooks is not None:
        for cls in _subclasses(hooks.ModelHook):
            if cls.__name__ == "SequentialHook":
                continue  # it only passes on to the hooks that it holds
            for method in ("pre_forward", "post_forward"):
                if method in vars(cls):
                    yield cls, method, MovePoint, _second_argument
    offloading: Any = sys.modules.get("diffusers.hooks.group_offloading")
    if offloading is not None:
        for method in ("onload_", "offload_"):
            if method in vars(offloading.ModuleGroup):
                yield offloading.ModuleGroup, method, GroupPoint, _first_of_group


def _second_argument(args: tuple) -> Module | None:
    return args[1] if len(args) > 1 and isinstance(args[1], Module) else None


def _first_of_group(args: tuple) -> Module | None:
    modules = getattr(args[0], "modules", None)
    return modules[0] if modules else None


def cache_methods(component_classes: Iterable[type]) -> Iterator[tuple]:
    """(class, method name) of every KV cache: transformers' classes and those beside the components'."""
    modules = {cls.__module__ for cls in component_classes}
    found: dict[type, None] = {}
    library: Any = sys.modules.get("transformers.cache_utils")
    if library is not None and hasattr(library, "Cache"):
        for cls in (library.Cache, *_subclasses(library.Cache)):
            found[cls] = None
    for name in modules:
        for cls in vars(sys.modules.get(name, signature)).values():
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
