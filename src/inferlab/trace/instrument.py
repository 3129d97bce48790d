"""Puts recording points on everything that a trace's targets hold, and takes them all away again."""

import fnmatch
import re
import types
import weakref

from torch.nn import Module

from . import discover, moves, patches
from .record import DATA, OPEN, OUTSIDE, RESULT, FullPoint, Point, Recorder, StatefulPoint


class Instrument:
    """The points that one trace has placed, on which objects, under which names."""

    def __init__(self, recorder: Recorder, depth="components", keep=None):
        self.recorder = recorder
        self.depth = depth
        self.keep = keep
        self.module_names: dict = {}  # id(module) -> its name, for moves
        self.aliases: dict = {}  # name -> further names of the same module
        self.components: dict = {}  # name -> object, as found
        self.pipelines: list = []
        self._placed: list = []  # (patch, id or None, point)
        self._known: dict = {}  # id(object) -> reference that empties the tables when the object dies
        self._held: list = []  # objects that cannot be referenced weakly
        self._copies: dict = {}  # component name -> how many unknown instances of its class were adopted
        self._parameters: dict = {}
        self._classes: set = set()
        self._originals: list = []

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
        if discover.is_compiled(module):
            self._say_compiled(name)
            self._module_names(module, path.rstrip(".") if bare else name)
            return
        self._module_names(module, path.rstrip(".") if bare else name)
        self._add_inner(name, module, owner, path.rstrip(".") if bare else name, bare)

    def _say_compiled(self, name: str) -> None:
        self.recorder.note(
            f"{name} is compiled: its call is one boundary, what happens inside its graph is not seen"
        )

    def _add_inner(self, name, module, owner, prefix, bare) -> None:
        whole = self.depth == "all"
        chosen = set()
        if whole or self.depth != "components":
            for inner, part, known in discover.named_modules(module, prefix):
                if known or part is module or discover.never_called(part):
                    continue
                if whole or self._matches(inner):
                    if discover.is_compiled(part):
                        self._say_compiled(inner)
                    chosen.add(id(part))
                    self._remember(part)
                    self._place_module(
                        part, self._module_point(inner, part, owner, 0, coarse=not whole), inner
                    )
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
        for method, function, static in discover.own_methods(cls, private=False, skip_housekeeping=True):
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
            self._place_method(part, method, point, static=False)
        if kind == "scheduler" and cls not in self._classes:
            self._classes.add(cls)
            self._adopt_copies(name, part)

    def _adopt_copies(self, name: str, part) -> None:
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

        for method, _, static in discover.own_methods(cls, private=False, skip_housekeeping=True):
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
        placed = {(patch.holder, patch.name) for patch, key, _ in self._placed if key is None}
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

    # -- placing and removing ----------------------------------------------------------------------------------

    def _module_point(self, name, module, owner, rule, coarse=True):
        base = owner.partition(":")[2] if owner.startswith("component:") else name
        parameters = self._signature(discover.forward_of(module))
        if coarse or self._keeps(name):
            return FullPoint(
                self.recorder, name, "module", owner, rule, parameters, base=base, keep=self._keeps(name)
            )
        return Point(self.recorder, name, "module", owner, rule, parameters, coarse=False, base=base)

    def _place_module(self, module, point, name) -> None:
        self._place(patches.acquire(type(module), "__call__", "module"), id(module), point)
        patches.originals[id(module._forward_hooks)] = id(module)
        self._originals.append(id(module._forward_hooks))

    def _place_method(self, part, method, point, static) -> None:
        if static:
            point.skip = 0
            self._place_everywhere(patches.acquire(type(part), method, "static"), point)
            return
        self._place(patches.acquire(type(part), method, "method"), id(part), point)
        if method in vars(part):  # a callable stored on the instance hides the class's method
            if hasattr(vars(part)[method], "_torchdynamo_orig_callable"):
                self._say_compiled(point.name)
            twin = type(point)(
                self.recorder,
                point.name,
                point.kind,
                point.owner,
                point.rule,
                point.parameters,
                0,
                base=point.base,
            )
            self._place_everywhere(patches.acquire(part, method, "attribute"), twin)

    def _place(self, patch, key, point) -> None:
        patch.entries[key] = (*patch.entries.get(key, ()), point)
        self._placed.append((patch, key, point))

    def _place_everywhere(self, patch, point) -> None:
        patch.everywhere = (*patch.everywhere, point)
        self._placed.append((patch, None, point))

    def remove(self) -> None:
        """Takes every point away; the last trace of a class puts the class back as it was."""
        with patches.LOCK:
            for patch, key, point in reversed(self._placed):
                if key is not None:
                    left = tuple(p for p in patch.entries.get(key, ()) if p is not point)
                    if left:
                        patch.entries[key] = left
                    else:
                        patch.entries.pop(key, None)
                patch.everywhere = tuple(p for p in patch.everywhere if p is not point)
                patch.adopters[:] = [a for a in patch.adopters if a is not point]
                patches.release(patch)
            self._placed.clear()
            for key in self._originals:
                patches.originals.pop(key, None)
            self._originals.clear()
            self._parameters.clear()
            self._known.clear()
            self._held.clear()
            self.components = {name: type(part).__name__ for name, part in self.components.items()}
            self.pipelines = []
            self.module_names = {}

    def _remember(self, part) -> None:
        key = id(part)
        if key in self._known:
            return

        def forget(_):
            self._known.pop(key, None)
            for patch, placed, point in self._placed:
                if placed == key:
                    patch.entries[key] = tuple(p for p in patch.entries.get(key, ()) if p is not point)

        try:
            self._known[key] = weakref.ref(part, forget)
        except TypeError:
            self._known[key] = None
            self._held.append(part)

    def _module_names(self, module, prefix) -> None:
        first: dict = {}
        for name, part, known in discover.named_modules(module, prefix):
            if known:
                self.aliases.setdefault(first[id(part)], []).append(name)
            else:
                first[id(part)] = name
                self.module_names.setdefault(id(part), name or type(module).__name__)

    def _signature(self, function, bound=True):
        key = (function, bound)
        if key not in self._parameters:
            self._parameters[key] = discover.Parameters(function, bound)
        return self._parameters[key]

    def _matches(self, name: str) -> bool:
        patterns = self.depth if isinstance(self.depth, (list, tuple)) else (self.depth,)
        return any(matches(name, pattern) for pattern in patterns)

    def _keeps(self, name: str) -> bool:
        if not self.keep:
            return False
        if self.keep is True:
            return True
        patterns = self.keep if isinstance(self.keep, (list, tuple)) else (self.keep,)
        return any(matches(name, pattern) for pattern in patterns)


def matches(name: str, pattern) -> bool:
    """Whether a boundary's name fits a pattern: a compiled regular expression, or a glob such as `unet.*attn*`."""
    if isinstance(pattern, re.Pattern):
        return pattern.search(name) is not None
    return fnmatch.fnmatchcase(name, pattern)


def worker_kind(part) -> str:
    """What a worker is, by what it can do: scheduler, block, tokenizer, or processor for anything else."""
    if discover.is_scheduler(part):
        return "scheduler"
    if discover.is_block(part):
        return "block"
    if hasattr(part, "convert_tokens_to_ids"):
        return "tokenizer"
    return "processor"


class PipelinePoint(FullPoint):
    """A pipeline's call: looks first for parts that were swapped in or given new hooks since the last one."""

    __slots__ = ("instrument",)

    def __init__(self, *args, instrument, **kwargs):
        super().__init__(*args, **kwargs)
        self.instrument = instrument

    def before(self, args, kwargs):
        self.instrument.refresh()


class CachePoint(FullPoint):
    """A method of a KV cache: recorded when tensors go in, or when it changes the cache and returns nothing."""

    __slots__ = ()

    def drops(self, log, seq, inputs, outputs, output) -> bool:
        if log.count != seq + 1:
            return False
        return output is not None and not self.recorder.carries_data(inputs)


class AssignmentPoint:
    """`__setattr__` of a traced pipeline: nothing is recorded, but new parts are found."""

    def __init__(self, instrument):
        self.instrument = instrument

    def run(self, points, index, original, args, kwargs):
        if index + 1 < len(points):
            points[index + 1].run(points, index + 1, original, args, kwargs)
        else:
            original(*args, **kwargs)
        value = args[2] if len(args) > 2 else None
        if isinstance(value, Module) or discover.is_worker(value) or discover.is_pipeline(value):
            self.instrument.refresh()
