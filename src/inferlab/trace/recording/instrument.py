"""Decides what of a trace's targets is recorded: which modules, methods and functions get which point."""

import types
from collections.abc import Callable, Iterable
from typing import Any

from torch.nn import Module

from . import device_moves as moves
from . import discover, patches
from .placement import Placement, fits
from .points import (
    DATA,
    OPEN,
    OUTSIDE,
    RESULT,
    AssignmentPoint,
    CachePoint,
    PipelinePoint,
    Point,
    StatefulPoint,
)
from .unseen import CompiledCallPoint, may_fuse

_CALLERS = ("pipeline", "method", "block")  # kinds of boundaries whose code may call a copy of a component


def worker_kind(part: object) -> str:
    """What a worker is, by what it can do: scheduler, block, tokenizer, or processor for anything else."""
    if discover.is_scheduler(part):
        return "scheduler"
    if discover.is_block(part):
        return "block"
    return "tokenizer" if hasattr(part, "convert_tokens_to_ids") else "processor"


class Instrument(Placement):
    """Puts points on a trace's targets, on all that they hold, and on what comes in later."""

    # -- targets ---------------------------------------------------------------------------------------------

    def add_target(self, target: Any, prefix: str = "") -> None:
        """Adds a pipeline, a module, a worker, a bound method, a function, or a pair (object, "method name").

        `prefix` comes before the names of its parts. Raises TypeError for anything else.
        """
        if isinstance(target, tuple) and len(target) == 2 and isinstance(target[1], str):
            self.add_named(*target)
        elif isinstance(target, Module):
            self.add_model(target, prefix)
        elif isinstance(target, types.MethodType):
            self.add_named(target.__self__, target.__func__.__name__)
        elif isinstance(target, types.FunctionType):
            self.add_function(target)
        elif discover.is_pipeline(target):
            self.add_pipeline(target, prefix.rstrip("."), prefix + type(target).__name__)
        elif discover.is_worker(target):
            name = "scheduler" if discover.is_scheduler(target) else type(target).__name__
            self.add_component(prefix + name, target)
        else:
            raise TypeError(
                f"cannot trace a {type(target).__name__}: give a pipeline, a module, a function, "
                "a bound method, or a pair (object, 'method name')"
            )

    def add_pipeline(self, pipe: Any, name: str = "", label: str = "") -> None:
        """Adds a pipeline: its call, its own methods, and everything that it holds.

        `name` is "" for the outermost, else it comes before the names of its parts; `label` names its call.
        """
        if id(pipe) in self._known:
            return
        cls = type(pipe)
        owner = f"pipeline:{name}"
        self._remember(pipe)
        self.pipelines.append((pipe, name))
        prefix = f"{name}." if name else ""
        for method, function, static in discover.own_methods(cls, private=True, skip_housekeeping=False):
            module = function.__module__ or ""
            if module.startswith("diffusers.loaders"):
                continue
            parameters = self._parameters_of(function, bound=not static)
            if method == "__call__":
                point: Point = PipelinePoint(
                    self.recorder, label or name or cls.__name__, owner, parameters, self.refresh
                )
            else:
                rule = (DATA if module.endswith("pipeline_utils") else 0) | (OPEN if static else 0)
                full = prefix + method
                point = Point(
                    self.recorder,
                    full,
                    "method",
                    owner,
                    rule,
                    parameters,
                    int(not static),
                    keep=self._keeps(full),
                )
            self._place_method(pipe, method, point, static)
        self._watch_assignments(pipe)
        self.scan(pipe, prefix)

    def scan(self, pipe: Any, prefix: str) -> None:
        """Adds the parts of a pipeline that have no points yet: at first all, later what was swapped in."""
        for name, part in discover.parts(pipe).items():
            if id(part) in self._known:
                continue
            if discover.is_pipeline(part):
                self.add_pipeline(part, prefix + name)
            else:
                self.add_component(prefix + name, part)
        self._add_library_points()

    def refresh(self) -> None:
        """Adds what the pipelines hold by now and did not when they were last looked at."""
        for pipe, name in list(self.pipelines):
            self.scan(pipe, f"{name}." if name else "")

    def add_component(self, name: str, part: Any) -> None:
        """Adds a module or worker that a pipeline holds under this name."""
        if isinstance(part, Module):
            self._add_module_component(name, part)
        else:
            self._add_worker(name, part)
        self.components[name] = part

    def add_model(self, model: Module, prefix: str = "") -> None:
        """Adds a bare model: its forward, `generate`, its methods, and its parts as far as the depth says."""
        root = prefix.rstrip(".") or type(discover.original(model)).__name__
        self.components[root] = model
        self._add_module_component(root, model, path=prefix)
        self._add_library_points()

    # -- components ------------------------------------------------------------------------------------------

    def _add_module_component(
        self, name: str, module: Module, path: str | None = None, copy: int = 0
    ) -> None:
        """A module with its methods and inner modules.

        `path` is what comes before the names of a bare model's parts, None for a pipeline's component; `copy`
        is the number of a copy of the component `name`, 0 for the component itself.
        """
        bare = path is not None
        owner = f"component:{name}#{copy}" if copy else f"component:{name}"
        prefix = name if path is None else path.rstrip(".")
        self._remember(module)
        self._classes.add(type(module))
        self._place_module(module, self._module_point(name, module, owner, 0))
        self._place_forward(module, name, owner)
        self._add_module_methods(name, module, owner, "" if bare else f"{name}.")
        if not bare and not copy and type(module) not in self._copied:
            self._adopt_copies(name, module, [patches.acquire(type(module), "__call__", "module")])
        self.watch.component(name, module)
        # A pipeline calls its components by their own names. Inside one, a module can have two names.
        if discover.is_compiled(module):
            self.watch.say_compiled(name)
            self._name_modules(module, prefix, late=not bare)
            return
        tree = None if self.depth == "components" else discover.named_modules(module, prefix)
        self._name_modules(module, prefix, tree, late=not bare)
        self._add_inner(module, owner, prefix, bare, tree)

    def _add_inner(self, module: Module, owner: str, prefix: str, bare: bool, tree: list | None) -> None:
        """Adds the inner modules that the depth asks for, and those that a pipeline may call directly."""
        chosen: set[int] = set()

        def add(name: str, part: Module, rule: int) -> None:
            chosen.add(id(part))
            self._remember(part)
            self._place_module(part, self._module_point(name, part, owner, rule))

        if self.depth == "all":
            inner = ((name, part) for name, part, known in tree or () if not known and part is not module)
            chosen = self._place_modules(inner, owner)
        for name, part, known in tree if tree and self.depth != "all" else ():
            if known or part is module or discover.never_called(part) or not fits(name, self.depth):
                continue
            if discover.is_compiled(part):
                self.watch.say_compiled(name)
            if may_fuse(part):
                self.watch.fusable.add(name)
            add(name, part, 0)
        for rule, found in (
            (0, discover.sections(module, prefix) if bare else ()),
            (OUTSIDE, discover.doors(module, prefix)),
        ):
            for name, part in found:
                if id(part) not in chosen and id(part) not in self._known:
                    add(name, part, rule)

    def _add_module_methods(self, name: str, module: Module, owner: str, prefix: str) -> None:
        cls: Any = type(module)
        methods = {
            method: function
            for method, function, static in discover.own_methods(cls, private=False, skip_housekeeping=True)
            if not static and method not in ("forward", "__call__") and method not in moves.MOVERS
        }
        if hasattr(cls, "generate") and hasattr(cls.generate, "__code__"):
            methods["generate"] = cls.generate
        base = owner.removeprefix("component:")
        for method, function in methods.items():
            full, parameters = prefix + method, self._parameters_of(function)
            rule = OUTSIDE | DATA
            point = Point(
                self.recorder, full, "method", owner, rule, parameters, base=base, keep=self._keeps(full)
            )
            self._place_method(module, method, point)
        for method in moves.MOVERS:
            if hasattr(cls, method):
                parameters = self._parameters_of(getattr(cls, method))
                rule = OUTSIDE | DATA
                move = moves.MovePoint(
                    self.recorder, f"{name}.{method}", rule, parameters, moved=name, base=name
                )
                self._place(patches.acquire(cls, method, "method"), id(module), move)

    def _add_worker(self, name: str, part: Any, copy: int = 0) -> None:
        """An object with methods: recorded when they are called from outside it.

        A processor's methods are recorded when it calls them itself, too: `postprocess_video` calls
        `postprocess` for each frame. `copy` is the number of a copy of the component `name`, 0 for the
        component itself.
        """
        self._remember(part)
        cls, base = type(part), f"{name}#{copy}" if copy else name
        kind = worker_kind(part)
        rule = {"scheduler": 0, "block": 0, "tokenizer": RESULT}.get(kind, DATA)
        if kind != "processor" and (self.depth != "all" or kind != "scheduler"):
            rule |= OUTSIDE
        methods = [
            (method, function)
            for method, function, static in discover.own_methods(cls, private=False, skip_housekeeping=True)
            if not static and (kind != "block" or method == "__call__")
        ]
        for method, function in methods:
            full = name if method == "__call__" else f"{name}.{method}"
            point = StatefulPoint(
                self.recorder,
                full,
                kind,
                f"component:{base}",
                rule,
                self._parameters_of(function),
                base=base,
                keep=self._keeps(full),
            )
            point.idle = discover.hands_back(function)
            self._place_method(part, method, point)
        if kind == "scheduler":
            self._classes.add(cls)
        if not copy and cls not in self._copied:
            patched = [patches.acquire(cls, method, "method") for method, _ in methods]
            self._adopt_copies(name, part, patched)

    def _adopt_copies(self, name: str, part: Any, patched: list) -> None:
        """Records the copies of a component that a traced call makes, under the component's name.

        A copy is an object of the component's class that this trace does not know yet. The trace takes it up
        when a traced call uses it from outside the component. A module is taken up only where a pipeline, a
        method or a block calls it: a module that another module calls is a part of that one.
        """
        cls, module = type(part), isinstance(part, Module)
        self._copied.add(cls)  # copies are named after the first component of a class

        def adopt(instance: Any) -> None:
            if id(instance) in self._known or type(instance) is not cls:
                return
            above = self.recorder.open_point()
            if (
                above is None
                or above.base.partition("#")[0] == name
                or (module and above.kind not in _CALLERS)
            ):
                return
            number = self._copies[name] = self._copies.get(name, 1) + 1
            if module:
                self._add_module_component(name, instance, copy=number)
            else:
                self._add_worker(name, instance, number)

        for patch in patched:
            patch.adopters.append(adopt)
            self._placed.append((patch, None, adopt))

    # -- further callables, caches, hooks --------------------------------------------------------------------

    def add_named(self, holder: Any, method: str) -> None:
        """Adds what the caller named: `(object, "method")`, `(class, "method")` or `(module, "function")`."""
        function = getattr(holder, method)
        if isinstance(holder, Module) and method in ("__call__", "forward"):
            owner = f"named:{id(holder)}"
            self._remember(holder)
            self._place_module(holder, self._module_point(method, holder, owner, 0))
            self._place_forward(holder, method, owner)
        elif isinstance(holder, type):  # every instance's calls
            point = self._function_point(f"{holder.__name__}.{method}", function, skip=1)
            self._place_everywhere(patches.acquire(holder, method, "method"), point)
        elif isinstance(holder, types.ModuleType) or method in getattr(holder, "__dict__", {}):
            label = f"{holder.__name__}.{method}" if isinstance(holder, types.ModuleType) else method
            point = self._function_point(label, function, skip=0)
            self._place_everywhere(patches.acquire(holder, method, "attribute"), point)
        else:
            owner = next((n for n, part in self.components.items() if part is holder), type(holder).__name__)
            self._remember(holder)
            point = self._function_point(f"{owner}.{method}", getattr(type(holder), method), skip=1)
            self._place_method(holder, method, point)

    def add_function(self, function: types.FunctionType) -> None:
        """Adds a plain function, wherever it is called from."""
        point = self._function_point(function.__qualname__.rpartition("<locals>.")[2], function, skip=0)
        self._place_everywhere(patches.acquire(function, "__code__", "code"), point)

    def _function_point(self, label: str, function: Callable, skip: int) -> Point:
        # Read now: a closure may hold a model.
        parameters = tuple(self._parameters_of(function, bound=bool(skip)))
        keep = self._keeps(label)
        return Point(self.recorder, label, "function", f"function:{label}", 0, parameters, skip, keep=keep)

    def _add_library_points(self) -> None:
        """Watches the classes of KV caches and offloading hooks, and the compiler."""
        state = moves.libraries(self._classes)
        if state == self._libraries:
            return
        self._libraries = state
        placed = {(patch.holder, patch.name) for patch in self._shared}
        watched: Iterable[tuple] = [
            *((cls, method, None, None) for cls, method in moves.cache_methods(self._classes)),
            *moves.hook_methods(),
        ]
        for cls, method, point_class, module_of in watched:
            if (cls, method) in placed:
                continue
            parameters = self._parameters_of(vars(cls)[method])
            if point_class is None:
                rule = OUTSIDE | OPEN | DATA
                point: Any = CachePoint(self.recorder, f"cache.{method}", "cache", "cache", rule, parameters)
            else:
                point = moves.HookDispatcher(
                    self.recorder,
                    self.components,
                    lambda: self.module_names,
                    method.rstrip("_"),
                    parameters,
                    point_class,
                    module_of,
                )
            self._place_everywhere(patches.acquire(cls, method, "method"), point)
        compiler = self.watch.compiler()
        if compiler is not None:
            self._place_everywhere(compiler, CompiledCallPoint(self.watch))

    def _watch_assignments(self, pipe: Any) -> None:
        """`pipe.scheduler = other` during a trace: what was swapped in is recorded too."""
        self._place(
            patches.acquire(type(pipe), "__setattr__", "method"), id(pipe), AssignmentPoint(self.refresh)
        )
