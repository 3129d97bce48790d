"""Puts recording points on everything that a trace's targets hold, and takes them all away again."""

import types

from torch.nn import Module

from . import discover, moves, patches
from .placing import Placing
from .points import AssignmentPoint, CachePoint, PipelinePoint, worker_kind
from .record import DATA, OPEN, OUTSIDE, RESULT, FullPoint, StatefulPoint


class Instrument(Placing):
    """Decides which objects and methods of a trace's targets get a point, and of which kind."""

    # -- targets -----------------------------------------------------------------------------------------------

    def add_target(self, target, prefix: str = "") -> None:
        """Instruments a pipeline, a module, a worker, a bound method, a function, or an (object, name) pair."""
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
                f"cannot trace a {type(target).__name__}: give a pipeline, a module, a function, a bound method, "
                "or a pair (object, 'method name')"
            )

    def add_pipeline(self, pipe, name: str = "", label: str = "") -> None:
        """A pipeline: its call, its own methods, and everything that it holds.

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
            base = function.__module__.endswith("pipeline_utils")
            if (function.__module__ or "").startswith("diffusers.loaders"):
                continue
            if method == "__call__":
                point = PipelinePoint(
                    self.recorder,
                    label or name or cls.__name__,
                    "pipeline",
                    owner,
                    0,
                    self._signature(function),
                    instrument=self,
                )
            else:
                rule = (DATA if base else 0) | (OPEN if static else 0)
                parameters = self._signature(function, bound=not static)
                full = prefix + method
                point = FullPoint(
                    self.recorder,
                    full,
                    "method",
                    owner,
                    rule,
                    parameters,
                    0 if static else 1,
                    keep=self._keeps(full),
                )
            self._place_method(pipe, method, point, static)
        self._watch_assignments(pipe)
        self.scan(pipe, prefix)

    def scan(self, pipe, prefix: str) -> None:
        """Adds the parts of a pipeline that are not instrumented yet: at first all, later what was swapped in."""
        for name, part in discover.parts(pipe).items():
            if id(part) in self._known:
                continue
            if discover.is_pipeline(part):
                self.add_pipeline(part, prefix + name)
            else:
                self.add_component(prefix + name, part)
        self._add_library_points()

    def refresh(self) -> None:
        for pipe, name in list(self.pipelines):
            self.scan(pipe, f"{name}." if name else "")

    def add_component(self, name: str, part) -> None:
        if isinstance(part, Module):
            self._add_module_component(name, part)
        else:
            self._add_worker(name, part)
        self.components[name] = part

    def add_model(self, model: Module, prefix: str = "") -> None:
        """A bare model: its forward, `generate`, its methods, and its parts as far as the depth says."""
        root = prefix.rstrip(".") or type(discover.original(model)).__name__
        self.components[root] = model
        self._add_module_component(root, model, path=prefix)
        self._add_library_points()

    # -- components --------------------------------------------------------------------------------------------

    def _add_module_component(self, name: str, module: Module, path: str | None = None) -> None:
        bare = path is not None
        owner = f"component:{name}"
        self._remember(module)
        self._classes.add(type(module))
        self._place_module(module, self._module_point(name, module, owner, 0), name)
        self._add_module_methods(name, module, owner, "" if bare else f"{name}.")
        prefix = path.rstrip(".") if bare else name
        if discover.is_compiled(module):
            self._say_compiled(name)
            self._module_names(module, prefix, late=not bare)
            return
        tree = None if self.depth == "components" else discover.named_modules(module, prefix)
        # What a pipeline calls it calls by its own name; only inside a component has a module the name of who holds it there.
        self._module_names(module, prefix, tree, late=not bare)
        self._add_inner(name, module, owner, prefix, bare, tree)

    def _say_compiled(self, name: str) -> None:
        self.recorder.note(
            f"{name} is compiled: its call is one boundary, what happens inside its graph is not seen"
        )

    def _add_inner(self, name, module, owner, prefix, bare, tree) -> None:
        chosen = set()
        if self.depth == "all":
            chosen = self._place_modules([(n, part) for n, part, known in tree if not known and part is not module], owner)
        elif tree is not None:
            for inner, part, known in tree:
                if known or part is module or discover.never_called(part) or not self._matches(inner):
                    continue
                if discover.is_compiled(part):
                    self._say_compiled(inner)
                chosen.add(id(part))
                self._remember(part)
                self._place_module(part, self._module_point(inner, part, owner, 0), inner)
        for inner, part in discover.sections(module, prefix) if bare else ():
            if id(part) not in chosen and id(part) not in self._known:
                self._remember(part)
                self._place_module(part, self._module_point(inner, part, owner, 0), inner)
                chosen.add(id(part))
        for inner, part in discover.doors(module, prefix):
            if id(part) not in chosen and id(part) not in self._known:
                self._remember(part)
                self._place_module(part, self._module_point(inner, part, owner, OUTSIDE), inner)

    def _add_module_methods(self, name, module, owner, prefix) -> None:
        cls = type(module)
        for method, function, static in discover.own_methods(cls, private=False, skip_housekeeping=True):
            if static or method in ("forward", "__call__") or method in moves.MOVERS:
                continue
            self._add_method(module, prefix + method, method, function, owner, OUTSIDE | DATA, "method", name)
        if hasattr(cls, "generate") and hasattr(cls.generate, "__code__"):
            self._add_method(
                module, f"{prefix}generate", "generate", cls.generate, owner, OUTSIDE | DATA, "method", name
            )
        for method in moves.MOVERS:
            if hasattr(cls, method):
                point = moves.MovePoint(
                    self.recorder,
                    f"{name}.{method}",
                    "move",
                    f"move:{name}",
                    OUTSIDE | DATA,
                    self._signature(getattr(cls, method)),
                    moved=name,
                    base=name,
                )
                self._place(patches.acquire(cls, method, "method"), id(module), point)

    def _add_method(self, part, full, method, function, owner, rule, kind, base) -> None:
        point = FullPoint(
            self.recorder,
            full,
            kind,
            owner,
            rule,
            self._signature(function),
            base=base,
            keep=self._keeps(full),
        )
        self._place_method(part, method, point, static=False)

    def _add_worker(self, name: str, part) -> None:
        """An object with methods: recorded when they are called from outside it."""
        self._remember(part)
        cls, owner = type(part), f"component:{name}"
        kind = worker_kind(part)
        methods = discover.own_methods(cls, private=False, skip_housekeeping=True)
        for method, function, static in methods:
            if static:
                continue
            full = name if method == "__call__" else f"{name}.{method}"
            rule = {"scheduler": 0, "tokenizer": RESULT}.get(kind, DATA)
            if kind == "block":
                rule = 0
                if method != "__call__":
                    continue
            if self.depth != "all" or kind != "scheduler":
                rule |= OUTSIDE
            point = StatefulPoint(
                self.recorder,
                full,
                kind,
                owner,
                rule,
                self._signature(function),
                base=name,
                keep=self._keeps(full),
            )
            point.still = discover.hands_back(function)
            self._place_method(part, method, point, static=False)
        if kind == "scheduler" and cls not in self._classes:
            self._classes.add(cls)
            self._adopt_copies(name, part, methods)

    def _adopt_copies(self, name: str, part, methods: list) -> None:
        """Unknown instances of a scheduler's class that a traced pipeline uses are copies of it: record them too."""
        cls, owner = type(part), f"component:{name}"

        def adopt(instance):
            if id(instance) in self._known or type(instance) is not cls:
                return
            above = self.recorder.open_point()
            if above is None or above.owner == owner:
                return
            number = self._copies[name] = self._copies.get(name, 1) + 1
            self._add_worker(f"{name}#{number}", instance)

        for method, _, static in methods:
            if not static:
                patch = patches.acquire(cls, method, "method")
                patch.adopters.append(adopt)
                self._placed.append((patch, None, adopt))

    # -- further callables, caches, hooks ----------------------------------------------------------------------

    def add_named(self, holder, method: str) -> None:
        """A callable that the caller named: `(object, "method")` or `(module, "function")`."""
        function = getattr(holder, method)
        if isinstance(holder, Module) and method in ("__call__", "forward"):
            return self._place_module(
                holder, self._module_point(method, holder, f"named:{id(holder)}", 0), method
            )
        if isinstance(holder, type):  # a class: every instance's calls
            point = self._function_point(f"{holder.__name__}.{method}", function, skip=1)
            self._place_everywhere(patches.acquire(holder, method, "method"), point)
            return None
        if isinstance(holder, types.ModuleType) or method in getattr(holder, "__dict__", {}):
            label = f"{holder.__name__}.{method}" if isinstance(holder, types.ModuleType) else method
            point = self._function_point(label, function, skip=0)
            self._place_everywhere(patches.acquire(holder, method, "attribute"), point)
            return None
        owner = next((n for n, part in self.components.items() if part is holder), None)
        label = f"{owner}.{method}" if owner else f"{type(holder).__name__}.{method}"
        self._remember(holder)
        point = self._function_point(label, getattr(type(holder), method), skip=1)
        self._place_method(holder, method, point, static=False)
        return None

    def add_function(self, function: types.FunctionType) -> None:
        point = self._function_point(function.__qualname__.rpartition("<locals>.")[2], function, skip=0)
        self._place_everywhere(patches.acquire(function, "__code__", "code"), point)

    def _function_point(self, label, function, skip):
        return FullPoint(
            self.recorder,
            label,
            "function",
            f"function:{label}",
            0,
            tuple(self._signature(function, bound=bool(skip))),  # now: a closure may hold a model
            skip,
            keep=self._keeps(label),
        )

    def _add_library_points(self) -> None:
        """KV caches and offloading hooks: made inside calls, so their classes are watched."""
        state = moves.libraries(self._classes)
        if state == self._libraries:
            return
        self._libraries = state
        placed = {(patch.holder, patch.name) for patch in self._shared}
        for cls, method in moves.cache_methods(self._classes):
            if (cls, method) not in placed:
                function = vars(cls)[method]
                point = CachePoint(
                    self.recorder,
                    f"cache.{method}",
                    "cache",
                    "cache",
                    OUTSIDE | OPEN | DATA,
                    self._signature(function),
                )
                self._place_everywhere(patches.acquire(cls, method, "method"), point)
        for cls, method, point_class, module_of in moves.hook_methods():
            if (cls, method) not in placed:
                parameters = self._signature(vars(cls)[method])
                dispatcher = moves.HookDispatcher(
                    self, method.rstrip("_"), parameters, point_class, module_of
                )
                self._place_everywhere(patches.acquire(cls, method, "method"), dispatcher)

    def _watch_assignments(self, pipe) -> None:
        """`pipe.scheduler = other` during a trace: what was swapped in is recorded too."""
        point = AssignmentPoint(self)
        self._place(patches.acquire(type(pipe), "__setattr__", "method"), id(pipe), point)
