"""Where a trace's points are: which patches of which objects, and how all of them are taken away again."""

import fnmatch
import re
import weakref
from collections import Counter

import torch

from . import discover, patches
from .record import FullPoint, ModulePoint, Recorder


class Placing:
    """The points that one trace has placed, on which objects, under which names."""

    def __init__(self, recorder: Recorder, depth="components", keep=None):
        self.recorder = recorder
        self.depth = depth
        self.keep = keep
        self._names: dict = {}  # id(module) -> its name, for moves
        self._unnamed: list = []  # (weak reference to a component, its prefix): not walked yet
        self.aliases: dict = {}  # name -> further names of the same module
        self.components: dict = {}  # name -> object, as found
        self.pipelines: list = []
        self._placed: list = []  # (patch, id or None, point)
        self._shared: set = set()  # patches that record calls of any instance
        self._known: dict = {}  # id(object) -> reference that empties the tables when the object dies
        self._held: list = []  # objects that cannot be referenced weakly
        self._copies: dict = {}  # component name -> how many unknown instances of its class were adopted
        self._parameters: dict = {}
        self._forwards: dict = {}  # class of module -> its forward's parameters
        self._classes: set = set()
        self._libraries = None  # what of the libraries was there when their classes were last looked through
        self._originals: list = []

    def _module_point(self, name, module, owner, rule, coarse=True):
        base = owner.partition(":")[2] if owner.startswith("component:") else name
        cls = type(discover.original(module))
        if cls not in self._forwards:
            self._forwards[cls] = self._signature(discover.forward_of(module))
        parameters = self._forwards[cls]
        if coarse or self._keeps(name):
            return FullPoint(
                self.recorder, name, "module", owner, rule, parameters, base=base, keep=self._keeps(name)
            )
        return ModulePoint(self.recorder, name, owner, parameters, base)

    def _place_module(self, module, point, name) -> None:
        self._place(patches.acquire(type(module), "__call__", "module"), id(module), point)
        patches.originals[id(module._forward_hooks)] = id(module)
        self._originals.append(id(module._forward_hooks))

    def _place_modules(self, named, owner) -> set:
        """Points for many modules, and the ids of those that have one. A model has a thousand modules of thirty classes:
        what depends on the class alone is found out once."""
        plans: dict = {}  # class -> its patch, or None where its modules are never called
        scripts: set = set()
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
                held = vars(part)
                compiled = cls in scripts or "forward" in held or "_compiled_call_impl" in held or "_orig_mod" in part._modules
                if compiled and discover.is_compiled(part):
                    self._say_compiled(name)
                parameters = None if self.keep else self._forwards.get(cls)
                if parameters is None:
                    point = self._module_point(name, part, owner, 0, coarse=False)
                else:
                    point = ModulePoint(recorder, name, owner, parameters, base)
                key, shared = id(part), id(part._forward_hooks)
                chosen.add(key)
                if key not in known:
                    known[key] = weakref.ref(part, forget)
                if key in patch.entries or not point.lean or patch.lean is None:
                    patch.set_points(key, (*patch.entries.get(key, ()), point))
                else:  # as that would, for a thousand modules
                    patch.entries[key] = (point,)
                    patch.lean[key] = point
                placed.append((patch, key, point))
                originals[shared] = key
                hooks.append(shared)
        return chosen

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
        patch.set_points(key, (*patch.entries.get(key, ()), point))
        self._placed.append((patch, key, point))

    def _place_everywhere(self, patch, point) -> None:
        patch.everywhere = (*patch.everywhere, point)
        self._placed.append((patch, None, point))
        self._shared.add(patch)

    def remove(self) -> None:
        """Takes every point away; the last trace of a class puts the class back as it was."""
        with patches.LOCK:
            ours = Counter([patch for patch, _, _ in self._placed])
            mine = {patch for patch, count in ours.items() if patch.users == count}  # no other trace uses them
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
            self._placed.clear()
            self._shared.clear()
            for key in self._originals:
                patches.originals.pop(key, None)
            self._originals.clear()
            self._parameters.clear()
            self._forwards.clear()
            self._known.clear()
            self._held.clear()
            self._libraries = None
            self.components = {name: type(part).__name__ for name, part in self.components.items()}
            self.pipelines = []
            self._names, self._unnamed = {}, []

    def _remember(self, part) -> None:
        key = id(part)
        if key in self._known:
            return

        try:
            self._known[key] = weakref.ref(part, self._forget)
        except TypeError:
            self._known[key] = None
            self._held.append(part)

    def _forget(self, reference) -> None:
        """Takes the points of an object away that has died: another one may get its id."""
        key = next((key for key, known in self._known.items() if known is reference), None)
        self._known.pop(key, None)
        for patch, placed, point in self._placed:
            if placed == key and key is not None:
                patch.set_points(key, tuple(p for p in patch.entries.get(key, ()) if p is not point))

    @property
    def module_names(self) -> dict:
        """id(module) -> its name. Trees whose names only moves would ask for are walked when one does."""
        while self._unnamed:
            held, prefix = self._unnamed.pop(0)
            module = held()
            if module is not None:
                self._name_tree(discover.named_modules(module, prefix), module)
        return self._names

    def _module_names(self, module, prefix, tree=None, late=False) -> None:
        """Names the modules of a component; `tree` is what `discover.named_modules` found, if that was asked already.

        `late` says that no boundary can need a second name: then nothing looks for modules that have one.
        """
        if tree is None and (late or not discover.shares(module)):
            self._unnamed.append((weakref.ref(module), prefix))
        else:
            self._name_tree(tree or discover.named_modules(module, prefix), module)

    def _name_tree(self, tree, module) -> None:
        first = {id(part): name for name, part, known in tree if not known}
        if len(first) < len(tree):
            for name, part, known in tree:
                if known:
                    self.aliases.setdefault(first[id(part)], []).append(name)
        if "" in first.values():
            first[id(module)] = type(module).__name__
        self._names = first | self._names

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
