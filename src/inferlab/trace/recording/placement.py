"""Where a trace's points are: on which patches, for which objects; and how all are taken away."""

import fnmatch
import re
import weakref
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.nn import Module

from . import discover, patches, unseen
from .patches import Patch
from .points import OUTSIDE, ForwardPoint, ModulePoint, Point
from .recorder import Recorder


class Placement:
    """The points that one trace has placed.

    depth, keep   as in `trace`
    components    name -> object, as found
    aliases       module's name -> its further names, for modules that are held twice
    """

    def __init__(self, recorder: Recorder, depth: Any = "components", keep: Any = None) -> None:
        self.recorder, self.depth, self.keep = recorder, depth, keep
        self.components: dict[str, Any] = {}
        self.aliases: dict[str, list] = {}
        self.pipelines: list[tuple] = []  # (pipeline, its name)
        self._placed: list[tuple] = []  # (patch, id or None, point)
        self._shared: set[Patch] = set()  # patches that record calls of any instance
        # id(object) -> reference that empties the tables when the object dies
        self._known: dict[int, Any] = {}
        self._held: list = []  # objects that cannot be referenced weakly
        self._originals: list[int] = []
        self._parameters: dict = {}  # (function, bound) -> its parameters
        self._forwards: dict[type, discover.Parameters] = {}  # class of module -> its forward's parameters
        self._classes: set[type] = set()
        self._libraries: tuple | None = None  # which library classes there were at the last look
        self._copies: dict[str, int] = {}  # component name -> the number of its last copy
        self._copied: set[type] = set()  # classes of components whose copies are looked for
        self._names: dict[int, str] = {}  # id(module) -> its name, for moves
        # (weak reference to a component, its prefix): its tree was not walked yet
        self._unnamed: list[tuple] = []
        self.watch = unseen.Watch(recorder)

    # -- points of modules -----------------------------------------------------------------------------------

    def _module_point(self, name: str, module: Module, owner: str, rule: int, coarse: bool = True) -> Point:
        base = owner.partition(":")[2] if owner.startswith("component:") else name
        cls = type(discover.original(module))
        if cls not in self._forwards:
            self._forwards[cls] = self._parameters_of(discover.forward_of(module))
        parameters = self._forwards[cls]
        if coarse or self._keeps(name):
            return Point(
                self.recorder, name, "module", owner, rule, parameters, base=base, keep=self._keeps(name)
            )
        return ModulePoint(self.recorder, name, owner, parameters, base)

    def _place_module(self, module: Module, point: Point) -> None:
        self._place(patches.acquire(type(module), "__call__", "module"), id(module), point)
        shared = id(module._forward_hooks)
        patches.originals[shared] = id(module)
        self._originals.append(shared)

    def _place_forward(self, module: Module, name: str, owner: str) -> None:
        """Also records `module.forward(x)` by name, where `forward` is the class's own function.

        A compiled module's forward is left alone: its compiler would notice the wrapper and compile again.
        """
        function = discover.forward_of(module)
        if "forward" in vars(module) or function is Module.__call__ or discover.is_compiled(module):
            return
        base = owner.removeprefix("component:")
        point = ForwardPoint(
            self.recorder,
            name,
            "module",
            owner,
            OUTSIDE,
            self._parameters_of(function),
            base=base,
            keep=self._keeps(name),
        )
        self._place(patches.acquire(type(module), "forward", "method"), id(module), point)

    def _place_modules(self, named: Iterable[tuple], owner: str) -> set[int]:
        """Points for many modules, (name, module) each, and the ids of those that have one.

        A model has a thousand modules of thirty classes: what depends on the class alone is found out once.
        """
        plans: dict[type, Patch | None] = {}  # class -> its patch, or None where its modules are never called
        scripts: set = set()
        fusable: set = set()
        chosen = set()
        placed, hooks, originals = self._placed, self._originals, patches.originals
        recorder, known, forget = self.recorder, self._known, self._forget
        base = owner.partition(":")[2] if owner.startswith("component:") else None
        with patches.LOCK:
            for name, part in named:
                cls = type(part)
                patch = plans.get(cls)
                if patch is not None:
                    patch.users += 1
                elif cls in plans or discover.never_called(part):
                    plans[cls] = None
                    continue
                else:
                    patch = plans[cls] = patches.acquire(cls, "__call__", "module")
                    if issubclass(cls, torch.jit.ScriptModule):
                        scripts.add(cls)
                    if unseen.may_fuse(part):
                        fusable.add(cls)
                held = vars(part)
                compiled = "forward" in held or "_compiled_call_impl" in held or "_orig_mod" in part._modules
                if (compiled or cls in scripts) and discover.is_compiled(part):
                    self.watch.say_compiled(name)
                if cls in fusable:
                    self.watch.fusable.add(name)
                parameters = None if self.keep else self._forwards.get(cls)
                if parameters is None:
                    point = self._module_point(name, part, owner, 0, coarse=False)
                else:
                    point = ModulePoint(recorder, name, owner, parameters, base)
                key, shared = id(part), id(part._forward_hooks)
                chosen.add(key)
                if key not in known:
                    known[key] = weakref.ref(part, forget)
                if key in patch.entries or not point.short or patch.short is None:
                    patch.set_points(key, (*patch.entries.get(key, ()), point))
                else:  # what `set_points` does, written out for a thousand modules
                    patch.entries[key] = (point,)
                    patch.short[key] = point
                placed.append((patch, key, point))
                originals[shared] = key
                hooks.append(shared)
        return chosen

    # -- points of methods and functions ---------------------------------------------------------------------

    def _place_method(self, part: Any, method: str, point: Point, static: bool = False) -> None:
        if static:
            point.skip = 0
            self._place_everywhere(patches.acquire(type(part), method, "static"), point)
            return
        self._place(patches.acquire(type(part), method, "method"), id(part), point)
        if method in vars(part):  # a callable stored on the instance hides the class's method
            if hasattr(vars(part)[method], "_torchdynamo_orig_callable"):
                self.watch.say_compiled(point.name)
            twin = type(point)(
                self.recorder,
                point.name,
                point.kind,
                point.owner,
                point.rule,
                point.parameters,
                0,
                point.base,
            )
            self._place_everywhere(patches.acquire(part, method, "attribute"), twin)

    def _place(self, patch: Patch, key: int, point: Any) -> None:
        patch.set_points(key, (*patch.entries.get(key, ()), point))
        self._placed.append((patch, key, point))

    def _place_everywhere(self, patch: Patch, point: Any) -> None:
        patch.everywhere = (*patch.everywhere, point)
        self._placed.append((patch, None, point))
        self._shared.add(patch)

    def _parameters_of(self, function: Callable, bound: bool = True) -> discover.Parameters:
        key = (function, bound)
        if key not in self._parameters:
            self._parameters[key] = discover.Parameters(function, bound)
        return self._parameters[key]

    def _keeps(self, name: str) -> bool:
        return bool(self.keep) and (self.keep is True or fits(name, self.keep))

    # -- taking points away ----------------------------------------------------------------------------------

    def remove(self) -> None:
        """Takes every point away; the last trace of a class puts the class back as it was."""
        self.watch.finish()
        with patches.LOCK:
            self._unbind_forwards()
            ours = Counter([patch for patch, _, _ in self._placed])
            # The patches that no other trace uses.
            mine = {patch for patch, count in ours.items() if patch.users == count}
            for patch in reversed(ours):
                if patch in mine:
                    patches.discard(patch)
            for patch, key, point in reversed(self._placed) if len(mine) < len(ours) else ():
                if patch in mine:
                    continue
                if key is None:
                    patch.everywhere = tuple(p for p in patch.everywhere if p is not point)
                    patch.adopters[:] = [a for a in patch.adopters if a is not point]
                else:
                    patch.set_points(key, tuple(p for p in patch.entries.get(key, ()) if p is not point))
                patches.release(patch)
            for key in self._originals:
                patches.originals.pop(key, None)
            for table in (self._placed, self._shared, self._originals, self._parameters, self._forwards):
                table.clear()
            for table in (self._known, self._held, self._names, self._unnamed, self.pipelines):
                table.clear()
            self._libraries = None
            self.components = {name: type(part).__name__ for name, part in self.components.items()}

    def _unbind_forwards(self) -> None:
        """Puts the plain `forward` back where a module stored the bound wrapper, as accelerate's hooks do."""
        for patch, key, point in self._placed:
            reference = self._known.get(key) if isinstance(point, ForwardPoint) else None
            module = reference and reference()
            for name in ("forward", "_old_forward") if module is not None else ():
                if getattr(vars(module).get(name), "__func__", None) is patch.installed:
                    vars(module)[name] = patch.original.__get__(module)

    def _remember(self, part: Any) -> None:
        key = id(part)
        if key in self._known:
            return
        try:
            self._known[key] = weakref.ref(part, self._forget)
        except TypeError:
            self._known[key] = None
            self._held.append(part)

    def _forget(self, reference: weakref.ref) -> None:
        """Takes the points of an object away that has died: another one may get its id."""
        key = next((key for key, known in self._known.items() if known is reference), None)
        if key is None:
            return
        del self._known[key]
        for patch, placed, point in self._placed:
            if placed == key:
                patch.set_points(key, tuple(p for p in patch.entries.get(key, ()) if p is not point))

    # -- names of modules ------------------------------------------------------------------------------------

    @property
    def module_names(self) -> dict[int, str]:
        """id(module) -> its name. A tree that only moves ask for is walked when the first move comes."""
        while self._unnamed:
            held, prefix = self._unnamed.pop(0)
            module = held()
            if module is not None:
                self._name_tree(discover.named_modules(module, prefix), module)
        return self._names

    def _name_modules(
        self, module: Module, prefix: str, tree: list | None = None, late: bool = False
    ) -> None:
        """Names the modules of a component.

        tree   what `discover.named_modules` found, if it was asked already
        late   True for a pipeline's component. No boundary of it needs a second name: without a `tree`, the
               trace walks it only when a move asks for a name.
        """
        if tree is None and (late or not discover.shares(module)):
            self._unnamed.append((weakref.ref(module), prefix))
        else:
            self._name_tree(tree or discover.named_modules(module, prefix), module)

    def _name_tree(self, tree: list, module: Module) -> None:
        first = {id(part): name for name, part, known in tree if not known}
        if len(first) < len(tree):
            for name, part, known in tree:
                if known:
                    self.aliases.setdefault(first[id(part)], []).append(name)
        if "" in first.values():
            first[id(module)] = type(module).__name__
        self._names = first | self._names


def fits(name: str, patterns: Any) -> bool:
    """Whether a boundary's name fits a pattern, or one of a list of patterns.

    A pattern is a compiled regular expression (it may match anywhere) or a glob such as `unet.*attn*`.
    """
    if isinstance(patterns, (list, tuple)):
        return any(fits(name, pattern) for pattern in patterns)
    if isinstance(patterns, re.Pattern):
        return patterns.search(name) is not None
    return fnmatch.fnmatchcase(name, patterns)
