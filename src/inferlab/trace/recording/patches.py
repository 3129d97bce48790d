"""Replaces methods and functions by wrappers while traces need them, and puts them back afterwards.

A wrapper sits on the class, so instances stay clean: a deep copy, a pickle or a DataParallel replica that is
made during a trace holds no trace of it. Instances are told apart by a table in which the wrapper looks
`self` up. All open traces share the patches, and the last one removes them; traces may end in any order.
"""

import copy
import functools
import threading
import types
from collections.abc import Callable
from typing import Any

import torch

from . import discover, short_call

LOCK = threading.RLock()
_MISSING = object()
in_place: dict[tuple, "Patch"] = {}  # (id(holder), name) -> its patch
_spare: dict[tuple, "Patch"] = {}  # patches of methods that are not in place: the next trace takes them again
# id(module._forward_hooks) -> id(module). A DataParallel replica is a new object, but shares that dict.
originals: dict[int, int] = {}


def _identity(value: object) -> object:
    return value


def _dressed(wrapper: Any, original: Callable) -> Callable:
    """As `functools.wraps(original)(wrapper)`, but faster: a trace wraps 150 functions when it begins."""
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

    def __init__(self, original: Callable, call: Callable) -> None:
        functools.update_wrapper(self, original, updated=())
        self.__wrapped__ = original
        self._call = call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the wrapper."""
        return self._call(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["__wrapped__"], name)

    def __deepcopy__(self, memo: dict) -> Callable:
        return copy.deepcopy(self.__wrapped__, memo)

    def __copy__(self) -> Callable:
        return self.__wrapped__

    def __reduce__(self) -> tuple:
        return _identity, (self.__wrapped__,)


class Patch:
    """One replaced attribute of a class, an instance, a Python module or a function.

    entries     id(instance) -> the recording points of the open traces
    everywhere  points for calls whose instance nobody registered: functions, caches, hooks
    adopters    called with an instance that nobody registered; they may register it
    short       the table of the short call, where the calls take it, else None
    """

    def __init__(self, holder: Any, name: str, flavour: str) -> None:
        self.holder, self.name, self.flavour = holder, name, flavour
        self.entries: dict[int, tuple] = {}
        self.short: dict | None = None
        self.adopters: list[Callable] = []
        self.everywhere: tuple = ()
        self.users = 0
        self.original: Any = None
        self.lasts = flavour == "method" and discover.lasts(holder)
        self.install()

    # -- how each flavour is put in place and taken away -----------------------------------------------------

    def install(self) -> None:
        """Puts the wrapper in the attribute's place."""
        getattr(self, f"_install_{self.flavour}")()

    def again(self) -> bool:
        """Puts a method's patch in place again; False, and nothing done, where the method changed."""
        if getattr(self.holder, self.name, None) is not self.original:
            return False
        self._place(self.installed)
        return True

    def remove(self) -> bool:
        """Takes the wrapper away; False, and nothing done, where somebody replaced it in the meantime."""
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

    def _place(self, wrapper: object) -> None:
        self.previous = vars(self.holder).get(self.name, _MISSING)
        self.installed = wrapper
        setattr(self.holder, self.name, wrapper)

    def _install_method(self) -> None:
        original = self.original = getattr(self.holder, self.name)
        entries, adopt, is_compiling = self.entries, self.adopt, torch.compiler.is_compiling

        def traced(self: object, *args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return original(self, *args, **kwargs)
            points = entries.get(id(self)) or adopt(self)
            if points is None:
                return original(self, *args, **kwargs)
            return points[0].run(points, 0, original, (self, *args), kwargs)

        self._place(_dressed(traced, original))

    def _install_module(self) -> None:
        """`__call__` of a module class, see short_call.py."""
        self._place(short_call.recorded_call(self))

    def _caller(self, original: Callable) -> Callable:
        """A function that calls `original` and records it at the points for calls of any instance."""
        is_compiling = torch.compiler.is_compiling

        def call(*args: Any, **kwargs: Any) -> Any:
            points = self.everywhere
            if is_compiling() or not points:
                return original(*args, **kwargs)
            return points[0].run(points, 0, original, args, kwargs)

        return call

    def _install_static(self) -> None:
        original = getattr(self.holder, self.name)
        self._place(staticmethod(functools.wraps(original)(self._caller(original))))

    def _install_attribute(self) -> None:
        """A callable stored on one instance or in a Python module's namespace."""
        original = vars(self.holder)[self.name]
        call = self._caller(original)
        module = isinstance(self.holder, types.ModuleType)
        self._place(functools.wraps(original)(call) if module else InstanceWrap(original, call))

    def _install_code(self) -> None:
        """Replaces a plain function's code object: whoever holds the function calls the wrapper."""
        function = self.holder
        self.code = function.__code__
        original = types.FunctionType(
            self.code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
        )
        original.__kwdefaults__ = function.__kwdefaults__
        original.__qualname__, original.__doc__ = function.__qualname__, function.__doc__
        original.__annotations__ = function.__annotations__
        call = self._caller(original)
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
        if self.short is not None:
            if len(points) == 1 and getattr(points[0], "short", False):
                self.short[key] = points[0]
            else:
                self.short.pop(key, None)

    # -- which points a call belongs to ----------------------------------------------------------------------

    def adopt(self, instance: Any) -> tuple | None:
        """The points of an instance that is in no table yet, or None where its calls are not recorded."""
        for adopter in self.adopters:
            adopter(instance)
        if originals and getattr(instance, "_is_replica", False):
            return self.entries.get(originals.get(id(instance._forward_hooks), 0))
        return self.entries.get(id(instance)) or self.everywhere or None


_PLACE = "the traced function goes here"


def _stub(*args: Any, **kwargs: Any) -> Any:
    call: Any = "the traced function goes here"  # replaced in the code object by the function to call
    return call(*args, **kwargs)


def acquire(holder: Any, name: str, flavour: str) -> Patch:
    """The patch of `holder.name`, put in place if it is not there yet; `release` gives it up again.

    flavour   "method" (of a class), "module" (a module class's `__call__`), "static", "attribute" (of an
              instance or a Python module) or "code" (a function, wherever it is referenced from)
    """
    with LOCK:
        patch = in_place.get((id(holder), name))
        if patch is None:
            patch = _spare.pop((id(holder), name), None)
            if patch is None or patch.flavour != flavour or not patch.again():
                patch = Patch(holder, name, flavour)
            in_place[(id(holder), name)] = patch
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
        if patch.short is not None:
            short_call.forget(patch)
        patch.entries.clear()
        patch.adopters.clear()
        patch.everywhere = ()
        key = (id(patch.holder), patch.name)
        in_place.pop(key, None)
        if clean and patch.lasts:
            _spare[key] = patch
