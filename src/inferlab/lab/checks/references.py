"""Computes a check's reference values once for the same lab, code and arguments, for all learners."""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from . import wire

_memory: dict[str, Any] = {}
_folder: Path | None = None
_salt = ""


def keep_in(folder: Path | None, salt: str = "") -> None:
    """Share values between grader processes through files in `folder` (only the grader itself writes there).

    `salt` names what else the values depend on: the lab, the package's version.
    """
    global _folder, _salt
    _folder, _salt = folder, salt
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)


def reference(function: Callable) -> Callable:
    """Decorator: the function's value is computed once for the same lab, code and arguments, then kept.

    Every call returns a fresh copy of wire data, so that one test cannot spoil another's reference; a value
    that is no wire data (a pipeline, say) is kept in this process only, and is the same object each time.

    Raises:
        ValueError: if the function uses variables of an enclosing function, which the key could not see.
        wire.WireError: if an argument is not wire data.
    """
    if function.__closure__:
        raise ValueError(f"@reference {function.__name__} must not use variables of an enclosing function")

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        key = _key(function, args, kwargs)
        if key not in _memory:
            _memory[key] = _load(key, lambda: function(*args, **kwargs))
        packed, value = _memory[key]
        return wire.decode(packed, keep_device=True) if packed is not None else value

    return call


def _key(function: Callable, args: tuple, kwargs: dict) -> str:
    digest = hashlib.sha256(f"{_salt}\0{function.__qualname__}\0".encode())
    _add_function(digest, function, set())
    digest.update(wire.encode((args, dict(sorted(kwargs.items())))))
    return digest.hexdigest()


def _add_function(digest: Any, function: Any, seen: set[int]) -> None:
    """Add a function's code, its defaults, and the helpers and constants of the same cell that it uses."""
    function = inspect.unwrap(function)
    if id(function) in seen:
        return
    seen.add(id(function))
    digest.update(wire.encode((function.__defaults__, function.__kwdefaults__)))
    for name in sorted(_add_code(digest, function.__code__)):
        value = function.__globals__.get(name)
        of_this_cell = isinstance(value, FunctionType) and value.__globals__ is function.__globals__
        decorated = hasattr(value, "__wrapped__") and isinstance(inspect.unwrap(value), FunctionType)
        if of_this_cell or decorated:
            _add_function(digest, value, seen)
        elif isinstance(value, bool | int | float | str | bytes | list | tuple | dict | set):
            digest.update(name.encode() + wire.encode(value))


def _add_code(digest: Any, code: CodeType) -> set[str]:
    """Add a code object and those inside it; returns the global names that they use."""
    digest.update(code.co_code)
    digest.update(repr((code.co_names, code.co_varnames, code.co_freevars)).encode())
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _add_code(digest, constant)
        else:
            digest.update(repr(constant).encode())
    return names


def _load(key: str, compute: Callable[[], Any]) -> tuple[bytes | None, Any]:
    if _folder is None:
        return _pack(compute())
    import fcntl  # not on Windows, where learners may work but nobody grades

    path = _folder / key
    with (_folder / f"{key}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # whoever needs the same value waits instead of computing it, too
        if path.exists():
            return path.read_bytes(), None
        packed, value = _pack(compute())
        if packed is not None:
            handle, temporary = tempfile.mkstemp(dir=_folder)
            with os.fdopen(handle, "wb") as file:
                file.write(packed)
            os.replace(temporary, path)
    return packed, value


def _pack(value: Any) -> tuple[bytes | None, Any]:
    try:
        return wire.encode(value), None
    except wire.WireError:
        return None, value
