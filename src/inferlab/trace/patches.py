"""Replaces attributes of classes, instances and functions while traces need them, and puts them back afterwards.

Wrapping on the class leaves nothing in an instance: a deep copy, a pickle or a DataParallel replica made during a
trace holds no trace of it, and every instance is still told apart, because the wrapper looks `self` up in a table.
Patches are shared by all open traces and removed with the last of them, in any order.
"""

import copy
import functools
import threading
import types

import torch

from . import discover, lean

LOCK = threading.RLock()
_MISSING = object()
_patches: dict = {}  # (id(holder), name) -> Patch
_spare: dict = {}  # the same for patches of methods that are not in place: the next trace takes them again
# id(module._forward_hooks) -> id(module): a DataParallel replica is a new object that shares its original's dicts.
originals: dict = {}


def _identity(value):
    return value


def _dressed(wrapper, original):
    """As `functools.wraps(original)(wrapper)`, in less time where `original` is a plain function: a trace that
    starts wraps a hundred and fifty."""
    if type(original) is not types.FunctionType or hasattr(original, "__annotate__"):
        return functools.update_wrapper(wrapper, original)
    wrapper.__module__, wrapper.__name__ = original.__module__, original.__name__
    wrapper.__qualname__, wrapper.__doc__ = original.__qualname__, original.__doc__
    wrapper.__annotations__ = original.__annotations__
    if original.__dict__:
        wrapper.__dict__.update(original.__dict__)
    wrapper.__wrapped__ = original
    return wrapper


class InstanceWrap:
    """Stands in for a callable that was stored on one instance (e.g. `pipe.vae.decode = torch.compile(...)`).

    Copies and pickles of the instance made during a trace get the original callable, not this.
    """

    def __init__(self, original, call):
        functools.update_wrapper(self, original, updated=())
        self.__wrapped__ = original
        self._call = call

    def __call__(self, *args, **kwargs):
        return self._call(*args, **kwargs)

    def __getattr__(self, name):
        return getattr(self.__dict__["__wrapped__"], name)

    def __deepcopy__(self, memo):
        return copy.deepcopy(self.__wrapped__, memo)

    def __copy__(self):
        return self.__wrapped__

    def __reduce__(self):
        return _identity, (self.__wrapped__,)


class Patch:
    """One replaced attribute. `entries` maps id(instance) to the recording points of the open traces."""

    def __init__(self, holder, name: str, flavour: str):
        self.holder, self.name, self.flavour = holder, name, flavour
        self.entries: dict = {}
        self.lean = None  # the table of the short way, where calls take it
        self.adopters: list = []  # called with an instance that nobody registered; may return points
        self.everywhere: tuple = ()  # points for calls whose instance nobody registered: functions, caches, hooks
        self.users = 0
        self.lasts = flavour == "method" and discover.lasts(holder)
        self.install()

    # -- how each flavour is put in place and taken away -------------------------------------------------------

    def install(self):
        getattr(self, f"_install_{self.flavour}")()

    def again(self) -> bool:
        """Puts a patch of a method in place that was taken away, if what it wraps is still what it would find there."""
        if getattr(self.holder, self.name, None) is not self.original:
            return False
        self._place(self.installed)
        return True

    def remove(self) -> bool:
        """Whether the attribute is again what it was; not where somebody replaced it."""
        if self.flavour == "code":
            self.holder.__code__ = self.code
            if self.previous is _MISSING:
                vars(self.holder).pop("__wrapped__", None)
            else:
                self.holder.__wrapped__ = self.previous
            return True
        current = vars(self.holder).get(self.name, _MISSING)
        if current is not self.installed:
            return False  # somebody replaced the attribute during the trace: theirs stays
        if self.previous is _MISSING:
            delattr(self.holder, self.name)
        else:
            setattr(self.holder, self.name, self.previous)
        return True

    def _place(self, wrapper):
        self.previous = vars(self.holder).get(self.name, _MISSING)
        self.installed = wrapper
        setattr(self.holder, self.name, wrapper)

    def _install_method(self):
        original = self.original = getattr(self.holder, self.name)
        entries, adopt, is_compiling = self.entries, self.adopt, torch.compiler.is_compiling

        def traced(self, *args, **kwargs):
            if is_compiling():
                return original(self, *args, **kwargs)
            points = entries.get(id(self)) or adopt(self)
            if points is None:
                return original(self, *args, **kwargs)
            return points[0].run(points, 0, original, (self, *args), kwargs)

        self._place(_dressed(traced, original))

    def _install_module(self):
        """`__call__` of a module class, see lean.py."""
        self._place(lean.recorded_call(self))

    def _install_static(self):
        original = getattr(self.holder, self.name)
        patch, is_compiling = self, torch.compiler.is_compiling

        @functools.wraps(original)
        def traced(*args, **kwargs):
            points = patch.everywhere
            if is_compiling() or not points:
                return original(*args, **kwargs)
            return points[0].run(points, 0, original, args, kwargs)

        self._place(staticmethod(traced))

    def _install_attribute(self):
        """A callable stored on one instance or in a Python module's namespace."""
        original = vars(self.holder)[self.name]
        patch, is_compiling = self, torch.compiler.is_compiling

        def call(*args, **kwargs):
            points = patch.everywhere
            if is_compiling() or not points:
                return original(*args, **kwargs)
            return points[0].run(points, 0, original, args, kwargs)

        if isinstance(self.holder, types.ModuleType):
            self._place(functools.wraps(original)(call))
        else:
            self._place(InstanceWrap(original, call))

    def _install_code(self):
        """A plain function, wherever it is referenced from: its code object is replaced, its identity stays."""
        function, patch = self.holder, self
        self.code = function.__code__
        original = types.FunctionType(
            self.code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
        )
        original.__kwdefaults__ = function.__kwdefaults__
        original.__qualname__, original.__doc__ = function.__qualname__, function.__doc__
        original.__annotations__ = function.__annotations__
        is_compiling = torch.compiler.is_compiling

        def call(*args, **kwargs):
            points = patch.everywhere
            if is_compiling() or not points:
                return original(*args, **kwargs)
            return points[0].run(points, 0, original, args, kwargs)

        stub = _stub.__code__
        constants = tuple(call if constant == _PLACE else constant for constant in stub.co_consts)
        self.previous = vars(function).get("__wrapped__", _MISSING)
        function.__wrapped__ = original
        function.__code__ = stub.replace(
            co_consts=constants, co_freevars=self.code.co_freevars, co_name=self.code.co_name
        )

    def set_points(self, key: int, points: tuple) -> None:
        """Says which points record the calls of the instance with this id; none: its calls are left alone."""
        if points:
            self.entries[key] = points
        else:
            self.entries.pop(key, None)
        if self.lean is not None:
            if len(points) == 1 and getattr(points[0], "lean", False):
                self.lean[key] = points[0]
            else:
                self.lean.pop(key, None)

    # -- which points a call belongs to ------------------------------------------------------------------------

    def adopt(self, instance):
        for adopter in self.adopters:
            adopter(instance)
        if originals and getattr(instance, "_is_replica", False):
            return self.entries.get(originals.get(id(instance._forward_hooks)))
        return self.entries.get(id(instance)) or self.everywhere or None


_PLACE = "the traced function goes here"


def _stub(*args, **kwargs):
    call = "the traced function goes here"  # replaced in the code object by the function to call
    return call(*args, **kwargs)


def acquire(holder, name: str, flavour: str) -> Patch:
    """The patch of `holder.name`, installed if it is not there yet. Flavours: method, module, static, attribute, code."""
    with LOCK:
        patch = _patches.get((id(holder), name))
        if patch is None:
            patch = _spare.pop((id(holder), name), None)
            if patch is None or patch.flavour != flavour or not patch.again():
                patch = Patch(holder, name, flavour)
            _patches[(id(holder), name)] = patch
        patch.users += 1
        return patch


def release(patch: Patch) -> None:
    """Gives up one use of a patch; the last one puts the original attribute back."""
    with LOCK:
        patch.users -= 1
        if patch.users == 0:
            discard(patch)


def discard(patch: Patch) -> None:
    """Puts the original attribute back; a wrapper that somebody still holds passes its calls on."""
    with LOCK:
        patch.users = 0
        clean = patch.remove()
        if patch.lean is not None:
            lean.forget(patch)
        patch.entries.clear()
        patch.adopters.clear()
        patch.everywhere = ()
        key = (id(patch.holder), patch.name)
        _patches.pop(key, None)
        if clean and patch.lasts:
            _spare[key] = patch
