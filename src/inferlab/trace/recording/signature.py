"""Turns the values that cross a boundary into small hashable keys, without keeping any tensor.

A key is a nested tuple: it costs about a microsecond to make, equal values share one entry in the trace's
table of signatures, and `reading.specs` turns it into something readable only when somebody looks.
"""

import dataclasses
from collections import UserDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, TypeAlias

import torch
from torch import Tensor

MAX_ITEMS = 48  # longer sequences keep their length and their first items
HEAD_ITEMS = 4
MAX_TEXT = 96
MAX_NESTING = 8


Value: TypeAlias = Any  # whatever a model was given or returned
Key: TypeAlias = Any  # a nested tuple (see below), or None for the value None
Describe: TypeAlias = Callable[[Value, int], Key]  # (value, how deep it is nested) -> its key


class Tag:
    """What a key describes: its first item. Compared by identity, so no value is taken for it."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


# A tensor has no tag: its key is the tuple (torch.Size, torch.dtype, torch.device). It is the
# most frequent one.
SCALAR, TEXT, BYTES, TUPLE, LIST, RECORD = map(Tag, ("scalar", "text", "bytes", "tuple", "list", "record"))
ARRAY, IMAGE, CACHE, OPAQUE, LONG, MODULE = map(Tag, ("array", "image", "cache", "opaque", "long", "module"))


def _scalar(value: Value, _level: int) -> Key:
    return (SCALAR, type(value), value)


def _text(value: Value, _level: int) -> Key:
    return (TEXT, value if len(value) <= MAX_TEXT else value[:MAX_TEXT] + "…", len(value))


def _bytes(value: Value, _level: int) -> Key:
    return (BYTES, len(value))


def _sequence(tag: Tag) -> Describe:
    def describe(value: Sequence, level: int) -> Key:
        if len(value) > MAX_ITEMS:
            return (
                LONG,
                type(value).__name__,
                len(value),
                tuple(key_of(v, level + 1) for v in value[:HEAD_ITEMS]),
            )
        if level > MAX_NESTING:
            return (OPAQUE, type(value).__name__)
        return (tag, tuple([key_of(v, level + 1) for v in value]))

    return describe


def _mapping(value: Value, level: int) -> Key:
    name = "" if type(value) is dict else type(value).__name__
    if level > MAX_NESTING:
        return (OPAQUE, name or "dict")
    items = list(value.items())
    if len(items) > MAX_ITEMS:
        return (LONG, name or "dict", len(items), tuple(key_of(v, level + 1) for _, v in items[:HEAD_ITEMS]))
    return (
        RECORD,
        name,
        tuple([k if isinstance(k, (str, int)) else repr(k)[:MAX_TEXT] for k, _ in items]),
        tuple([key_of(v, level + 1) for _, v in items]),
    )


def _named_tuple(value: Value, level: int) -> Key:
    return (RECORD, type(value).__name__, value._fields, tuple([key_of(v, level + 1) for v in value]))


def _dataclass(value: Value, level: int) -> Key:
    if level > MAX_NESTING:
        return (OPAQUE, type(value).__name__)
    names = [f.name for f in dataclasses.fields(value)]
    if not names:
        return _object(value, level)
    values = [getattr(value, n, None) for n in names]
    kept = [(n, v) for n, v in zip(names, values, strict=True) if v is not None]
    return (
        RECORD,
        type(value).__name__,
        tuple(n for n, _ in kept),
        tuple([key_of(v, level + 1) for _, v in kept]),
    )


def _array(value: Value, _level: int) -> Key:
    return (ARRAY, tuple(value.shape), str(value.dtype), int(value.nbytes))


def _image(value: Value, _level: int) -> Key:
    return (IMAGE, type(value).__name__, value.mode, value.size)


def _printed(value: Value, _level: int) -> Key:
    return (OPAQUE, str(value)[:MAX_TEXT])


def _generator(value: Value, _level: int) -> Key:
    return (OPAQUE, f"Generator({value.device})")


def _module(value: Value, _level: int) -> Key:
    return (MODULE, type(value).__name__)


def _opaque(value: Value, _level: int) -> Key:
    return (OPAQUE, type(value).__name__)


def _object(value: Value, level: int) -> Key:
    """An object of no known kind: its attributes that carry data, if any (a pipeline's state, say)."""
    held = getattr(value, "__dict__", None)
    if (
        not held
        or level > 2
        or len(held) > 2 * MAX_ITEMS
        or any(isinstance(v, torch.nn.Module) for v in held.values())
    ):
        return (OPAQUE, type(value).__name__)
    keys = [(name, key_of(part, level + 1)) for name, part in held.items() if type(name) is str]
    kept = [(name, key) for name, key in keys if has_data(key)]
    if not kept:
        return (OPAQUE, type(value).__name__)
    return (RECORD, type(value).__name__, tuple([n for n, _ in kept]), tuple([k for _, k in kept]))


def _callable(value: Value, _level: int) -> Key:
    return (OPAQUE, f"{getattr(value, '__qualname__', type(value).__name__)}()")


def _elements(value: Value, _level: int) -> Key:
    return (LONG, type(value).__name__, len(value), ())


def _cache(value: Value, level: int) -> Key:
    """A KV cache: its class, its length now (never read from a device) and the first layer's keys."""
    length = value.get_seq_length()
    if isinstance(length, Tensor):  # a static cache counts in a tensor: reading it could wait for the device
        length = None
    layers = getattr(value, "layers", None)
    first = getattr(layers[0], "keys", None) if layers else None
    return (
        CACHE,
        type(value).__name__,
        length,
        0 if layers is None else len(layers),
        key_of(first, level + 1) if isinstance(first, Tensor) else None,
    )


def _lengthless_cache(value: Value, _level: int) -> Key:
    return (CACHE, type(value).__name__, None, 0, None)


def tensor_key(value: Tensor, _level: int = 0) -> Key:
    """The key of a tensor: (shape, dtype, device)."""
    return (value.shape, value.dtype, value.device)


def _safe_cache(value: Value, level: int) -> Key:
    try:
        return _cache(value, level)
    except (TypeError, IndexError, AttributeError, ValueError, NotImplementedError):
        # e.g. a cache of another layout, or one with no attention layer to take a length from
        return _lengthless_cache(value, level)


def is_cache(value: Value) -> bool:
    """Whether an object looks like a KV cache: it can be updated and asked for its length."""
    cls = type(value)
    return hasattr(cls, "get_seq_length") and (
        hasattr(cls, "update") or hasattr(value, "self_attention_cache")
    )


def _choose(value: Value) -> Describe:
    """The describing function for a type seen for the first time."""
    cls = type(value)
    if isinstance(value, Tensor):
        return tensor_key
    if isinstance(value, torch.nn.Module):
        return _module
    if isinstance(value, (bool, int, float, complex)):
        return lambda v, _: (SCALAR, cls.__base__ if cls.__base__ in (int, float) else cls, v)
    if isinstance(value, str):
        return lambda v, level: _text(str.__str__(v), level)
    if isinstance(value, (bytes, bytearray)):
        return _bytes
    if isinstance(value, (torch.dtype, torch.device, torch.Size)):
        return _printed
    if isinstance(value, torch.Generator):
        return _generator
    if is_cache(value):
        return _safe_cache
    if isinstance(value, tuple):
        return _named_tuple if hasattr(cls, "_fields") else _sequence(TUPLE)
    if isinstance(value, list):
        return _sequence(LIST)
    if isinstance(value, (Mapping, UserDict)):
        return _mapping
    if isinstance(value, AbstractSet):
        return _elements
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _dataclass
    if hasattr(value, "__array_interface__") and hasattr(value, "mode") and hasattr(value, "size"):
        return _image  # PIL
    if hasattr(value, "dtype") and hasattr(value, "shape") and hasattr(value, "nbytes"):
        return _array  # numpy, jax
    if callable(value) and not isinstance(value, type) and hasattr(value, "__qualname__"):
        return _callable
    return _opaque if isinstance(value, type) else _object


_BY_TYPE: dict[type, Describe] = {
    type(None): lambda v, _: None,
    bool: _scalar,
    int: _scalar,
    float: _scalar,
    complex: _scalar,
    str: _text,
    tuple: _sequence(TUPLE),
    list: _sequence(LIST),
    dict: _mapping,
}


def key_of(value: Value, level: int = 0) -> Key:
    """A hashable description of any value; tensors give shape, dtype and device and are not kept."""
    cls = type(value)
    if cls is Tensor:
        return (value.shape, value.dtype, value.device)
    describe = _BY_TYPE.get(cls)
    if describe is None:
        describe = _choose(value)
        if len(_BY_TYPE) < 4096:
            _BY_TYPE[cls] = describe
    return describe(value, level)


_TRUTH = {value: (SCALAR, bool, value) for value in (True, False)}


def call_key(args: tuple, kwargs: dict) -> Key:
    """The key of a call's arguments: (positional keys, keyword names, keyword keys).

    Each key is the one that `key_of` makes. Tensors, None and truth values, which come in every call of a
    module, are written out here, because that is faster.
    """
    positional = tuple(
        [
            None
            if v is None
            else (v.shape, v.dtype, v.device)
            if type(v) is Tensor
            else _TRUTH[v]
            if v is True or v is False
            else key_of(v)
            for v in args
        ]
    )
    if not kwargs:
        return (positional, (), ())
    named = tuple(
        [
            None
            if v is None
            else (v.shape, v.dtype, v.device)
            if type(v) is Tensor
            else _TRUTH[v]
            if v is True or v is False
            else key_of(v)
            for v in kwargs.values()
        ]
    )
    return (positional, tuple(kwargs), named)


def coarse(key: Key) -> Key:
    """The same key with the values of numbers and strings left out (used when too many values were seen)."""
    if type(key) is not tuple or not key:
        return key
    if key[0] is SCALAR:
        return (SCALAR, key[1], None)
    if key[0] is TEXT:
        return (TEXT, None, None)
    return tuple([coarse(part) if type(part) is tuple else part for part in key])


def shared(key: Key, leaves: dict) -> Key:
    """The same key with each tensor's key in it replaced by the first equal one, which `leaves` holds.

    Many modules compare their arguments with these keys; few distinct objects stay in the processor's cache.
    """
    if type(key) is not tuple:
        return key
    if is_tensor_key(key):
        return leaves.setdefault(key, key)
    return tuple([shared(part, leaves) if type(part) is tuple else part for part in key])


def is_tensor_key(key: Key) -> bool:
    """Whether a key describes one tensor."""
    return type(key) is tuple and len(key) == 3 and isinstance(key[0], torch.Size)


def has_data(key: Key) -> bool:
    """Whether a key holds a tensor, an array or an image anywhere inside."""
    if type(key) is not tuple or not key:
        return False
    if is_tensor_key(key) or key[0] is ARRAY or key[0] is IMAGE:
        return True
    return any(has_data(part) for part in key if type(part) is tuple)


def devices_in(key: Key) -> Iterator[torch.device]:
    """The devices of the tensors inside a key."""
    if is_tensor_key(key):
        yield key[2]
    elif type(key) is tuple:
        for part in key:
            if type(part) is tuple:
                yield from devices_in(part)
