"""Turns the values that cross a boundary into small hashable keys, without keeping any tensor.

A key is a nested tuple: it costs about a microsecond to make, equal values share one entry in the trace's table
of signatures, and `view.py` turns it into something readable only when somebody looks.
"""

import dataclasses
from collections import UserDict
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

import torch
from torch import Tensor

MAX_ITEMS = 48  # longer sequences keep their length and their first items
HEAD_ITEMS = 4
MAX_TEXT = 96
MAX_NESTING = 8


class Tag:
    """What a key describes, in its position 0; compared by identity, so no value of a model can be mistaken for it."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self):
        return self.name


# A tensor has no tag: its key is the tuple (torch.Size, torch.dtype, torch.device), because it is the most frequent.
SCALAR, TEXT, BYTES, TUPLE, LIST, RECORD = map(Tag, ("scalar", "text", "bytes", "tuple", "list", "record"))
ARRAY, IMAGE, CACHE, OPAQUE, LONG, MODULE = map(Tag, ("array", "image", "cache", "opaque", "long", "module"))


def _scalar(value, _level):
    return (SCALAR, type(value), value)


def _text(value, _level):
    return (TEXT, value if len(value) <= MAX_TEXT else value[:MAX_TEXT] + "…", len(value))


def _bytes(value, _level):
    return (BYTES, len(value))


def _sequence(tag):
    def describe(value, level):
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


def _mapping(value, level):
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


def _named_tuple(value, level):
    return (RECORD, type(value).__name__, value._fields, tuple([key_of(v, level + 1) for v in value]))


def _dataclass(value, level):
    if level > MAX_NESTING:
        return (OPAQUE, type(value).__name__)
    names = [f.name for f in dataclasses.fields(value)]
    if not names:
        return _object(value, level)
    values = [getattr(value, n, None) for n in names]
    kept = [(n, v) for n, v in zip(names, values) if v is not None]
    return (
        RECORD,
        type(value).__name__,
        tuple(n for n, _ in kept),
        tuple([key_of(v, level + 1) for _, v in kept]),
    )


def _array(value, _level):
    return (ARRAY, tuple(value.shape), str(value.dtype), int(value.nbytes))


def _image(value, _level):
    return (IMAGE, type(value).__name__, value.mode, value.size)


def _printed(value, _level):
    return (OPAQUE, str(value)[:MAX_TEXT])


def _generator(value, _level):
    return (OPAQUE, f"Generator({value.device})")


def _module(value, _level):
    return (MODULE, type(value).__name__)


def _opaque(value, _level):
    return (OPAQUE, type(value).__name__)


def _object(value, level):
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


def _callable(value, _level):
    return (OPAQUE, f"{getattr(value, '__qualname__', type(value).__name__)}()")


def _elements(value, _level):
    return (LONG, type(value).__name__, len(value), ())


def _cache(value, level):
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


def _lengthless_cache(value, _level):
    return (CACHE, type(value).__name__, None, 0, None)


def tensor_key(value, _level=0):
    return (value.shape, value.dtype, value.device)


def _safe_cache(value, level):
    try:
        return _cache(value, level)
    except (TypeError, IndexError, AttributeError, ValueError, NotImplementedError):
        # e.g. a cache of another layout, or one with no attention layer to take a length from
        return _lengthless_cache(value, level)


def is_cache(value) -> bool:
    """Whether an object looks like a KV cache: it can be updated and asked for its length."""
    cls = type(value)
    return hasattr(cls, "get_seq_length") and (
        hasattr(cls, "update") or hasattr(value, "self_attention_cache")
    )


def _choose(value):
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


_BY_TYPE: dict = {
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


def key_of(value, level: int = 0):
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


def call_key(args: tuple, kwargs: dict):
    """The key of a call's arguments: (positional keys, keyword names, keyword keys).

    Each of them as `key_of` has it; written out for what comes in each call of a module, tensors, None and truth values.
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


def coarse(key):
    """The same key with the values of numbers and strings left out (used when too many values were seen)."""
    if type(key) is not tuple or not key:
        return key
    if key[0] is SCALAR:
        return (SCALAR, key[1], None)
    if key[0] is TEXT:
        return (TEXT, None, None)
    return tuple([coarse(part) if type(part) is tuple else part for part in key])


def shared(key, leaves: dict):
    """The same key with each tensor's key in it replaced by the first that was equal: keys that many modules compare
    with are then few, and stay in the processor's cache."""
    if type(key) is not tuple:
        return key
    if is_tensor_key(key):
        return leaves.setdefault(key, key)
    return tuple([shared(part, leaves) if type(part) is tuple else part for part in key])


def is_tensor_key(key) -> bool:
    return type(key) is tuple and len(key) == 3 and isinstance(key[0], torch.Size)


def has_data(key) -> bool:
    """Whether a key holds a tensor, an array or an image anywhere inside."""
    if type(key) is not tuple or not key:
        return False
    if is_tensor_key(key) or key[0] is ARRAY or key[0] is IMAGE:
        return True
    return any(has_data(part) for part in key if type(part) is tuple)


def devices_in(key):
    """The devices of the tensors inside a key."""
    if is_tensor_key(key):
        yield key[2]
    elif type(key) is tuple:
        for part in key:
            if type(part) is tuple:
                yield from devices_in(part)
