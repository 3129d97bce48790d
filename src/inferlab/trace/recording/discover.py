"""Finds what can be recorded in a pipeline, a model or any object, from its own parts and methods.

Nothing here knows a pipeline by name. A pipeline is an object that is called and holds modules; its
components are the modules it holds; every other object with methods that it holds is a worker (a scheduler, a
tokenizer, an image processor); its own methods are steps.
"""

import dis
import inspect
import sys
import types
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from operator import is_
from typing import Any

import torch
from torch.nn import Module, ModuleDict, ModuleList, Sequential

# Packages whose objects are data or plumbing: no methods of theirs are steps of a pipeline.
# fmt: off
_PLUMBING = frozenset((
    "builtins", "torch", "numpy", "collections", "types", "functools", "PIL", "logging", "tqdm", "enum",
    "pathlib", "threading", "abc", "re", "typing", "inspect", "weakref", "random", "datetime",
    "accelerate", "tokenizers", "huggingface_hub", "os", "io", "warnings", "contextlib", "copy", "pandas",
))
# fmt: on
# Modules whose classes give every model or pipeline the same housekeeping.
_HOUSEKEEPING = (
    "torch.",
    "transformers.modeling_utils",
    "transformers.generation",
    "transformers.utils",
    "transformers.integrations",
    "diffusers.models.modeling_utils",
    "diffusers.models.attention",
    "diffusers.models.cache_utils",
    "diffusers.loaders",
    "diffusers.configuration_utils",
    "diffusers.utils",
    "huggingface_hub",
    "peft",
    "accelerate",
)
# fmt: off
_NEVER = frozenset((
    "from_pretrained", "save_pretrained", "from_config", "save_config", "load_config", "push_to_hub",
    "to_dict", "to_json_string", "to_json_file", "register_to_config", "progress_bar",
    "set_progress_bar_config", "register_modules",
))
# fmt: on
_GENERATOR_FLAGS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def is_pipeline(value: object) -> bool:
    """Whether an object is called and holds modules, without being one."""
    if isinstance(value, (Module, type, types.ModuleType)) or not callable(value):
        return False
    return any(isinstance(part, Module) for part in getattr(value, "__dict__", {}).values())


def is_worker(value: object) -> bool:
    """Whether an object that a pipeline holds may do a step of its work."""
    cls = type(value)
    if isinstance(
        value, (Module, type, str, bytes, int, float, Mapping, types.ModuleType, types.FunctionType)
    ):
        return False
    if cls.__module__.partition(".")[0] in _PLUMBING or cls.__name__.endswith("Config"):
        return False
    return not isinstance(value, BaseException) and hasattr(value, "__dict__")


def is_scheduler(value: object) -> bool:
    """Whether an object sets timesteps and steps along them."""
    return hasattr(value, "set_timesteps") and hasattr(value, "step") and not isinstance(value, Module)


def is_block(value: object) -> bool:
    """Whether an object is a step of a modular pipeline; it may hold further steps."""
    return hasattr(value, "sub_blocks") and is_worker(value)


def parts(pipe: object) -> dict:
    """name -> object for everything that a pipeline holds and that can be recorded, modules first.

    Lists, tuples and dicts are looked into (`controlnet[0]`); an object with two names keeps its first.
    """
    found: dict = {}
    seen: set = set()

    def offer(name: str, value: object) -> None:
        if id(value) not in seen and (isinstance(value, Module) or is_pipeline(value) or is_worker(value)):
            seen.add(id(value))
            found[name] = value

    held = dict(getattr(pipe, "__dict__", {}))
    for name, value in _registered(pipe, held).items():
        held.setdefault(name, value)
    for name, value in held.items():
        if isinstance(value, (list, tuple)):
            for index, part in enumerate(value[:32]):
                offer(f"{name}[{index}]", part)
        elif isinstance(value, Mapping) and len(value) <= 64:
            for key, part in value.items():
                offer(f"{name}[{key}]", part)
        else:
            if is_block(value):
                _blocks(name.lstrip("_"), value, offer)
            else:
                offer(name, value)
    return dict(sorted(found.items(), key=lambda item: not isinstance(item[1], Module)))


def _blocks(name: str, block: object, offer: Callable) -> None:
    """A modular pipeline's blocks, and the blocks inside them."""
    offer(name, block)
    for key, part in getattr(block, "sub_blocks", {}).items():
        _blocks(f"{name}.{key}", part, offer)


def _registered(pipe: object, held: dict) -> dict:
    """Components that a pipeline registers without storing them under their own name."""
    names: Any = getattr(pipe, "_internal_dict", None) or {}
    extra = {}
    for name in names:
        if isinstance(name, str) and not name.startswith("_") and name not in held:
            if isinstance(names, Mapping) and isinstance(names[name], (bool, int, float, str)):
                continue  # a setting
            value = inspect.getattr_static(type(pipe), name, None)
            if value is not None and not isinstance(value, property):
                continue
            try:
                with warnings.catch_warnings():
                    # Reading a config entry as an attribute is deprecated in diffusers.
                    warnings.simplefilter("ignore", FutureWarning)
                    extra[name] = getattr(pipe, name)
            except AttributeError:
                continue  # an optional component that is not loaded
    return extra


def lasts(cls: type) -> bool:
    """Whether a class is a name of its module: it lives as long as the process, and may be remembered."""
    module = sys.modules.get(cls.__module__)
    return module is not None and vars(module).get(cls.__name__) is cls


# (class, private, skip_housekeeping) -> (its bases, those looked into, their attributes, the methods)
_methods: dict[tuple, tuple] = {}


def own_methods(cls: type, private: bool, skip_housekeeping: bool) -> list[tuple]:
    """(name, function, is static) of the methods that a class and its bases define, most derived first.

    private            whether methods whose name begins with one underscore count
    skip_housekeeping  whether the libraries' base classes are left out

    Dunders other than `__call__`, properties, class methods, generators and coroutines never count. The
    answer is kept for the next trace, and used as long as no attribute of these classes has changed.
    """
    key = (cls, private, skip_housekeeping)
    bases, classes, attributes, found = _methods.get(key, (None, (), (), ()))
    if bases is cls.__mro__ and _same(classes, attributes):
        return found
    classes = [
        klass
        for klass in cls.__mro__
        if (klass.__module__.partition(".")[0] not in _PLUMBING or klass.__module__ == cls.__module__)
        and not (skip_housekeeping and f"{klass.__module__}.".startswith(_HOUSEKEEPING))
    ]
    attributes = list(chain.from_iterable(chain.from_iterable(vars(klass).items() for klass in classes)))
    found = list(_methods_in(classes, private))
    if lasts(cls):
        _methods[key] = (cls.__mro__, classes, attributes, found)
    return found


def _same(classes: Iterable, attributes: list) -> bool:
    now = list(chain.from_iterable(chain.from_iterable(vars(klass).items() for klass in classes)))
    return len(now) == len(attributes) and all(map(is_, now, attributes))


def _methods_in(classes: Iterable, private: bool) -> Iterator[tuple]:
    seen = set()
    for klass in classes:
        for name, attribute in vars(klass).items():
            if name in seen:
                continue
            seen.add(name)
            static = isinstance(attribute, staticmethod)
            function = attribute.__func__ if static else attribute
            if not isinstance(function, types.FunctionType) or name in _NEVER or name.startswith("check_"):
                continue
            if name != "__call__" and (name.startswith("__") or (name.startswith("_") and not private)):
                continue
            inner = inspect.unwrap(function) if hasattr(function, "__wrapped__") else function
            if isinstance(inner, types.FunctionType) and inner.__code__.co_flags & _GENERATOR_FLAGS:
                continue
            yield name, function, static


_HANDS_BACK = {
    dis.opmap[name]
    for name in [
        "RESUME",
        "NOP",
        "LOAD_FAST",
        "LOAD_FAST_BORROW",
        "LOAD_CONST",
        "RETURN_VALUE",
        "RETURN_CONST",
    ]
    if name in dis.opmap
}


def hands_back(function: types.FunctionType) -> bool:
    """Whether a function only returns an argument or a constant, as many a `scale_model_input` does.

    Such a call launches, allocates and frees nothing on a device.
    """
    code = function.__code__
    return not code.co_names and len(code.co_code) <= 24 and set(code.co_code[::2]) <= _HANDS_BACK


class Parameters:
    """(name, kind) of a function's parameters, without `self` if bound.

    Kinds: positional, both, keyword, rest, others. The signature is read when somebody first asks: reading
    hundreds of them would take most of the time in which a trace begins.
    """

    __slots__ = ("_bound", "_found", "_function")

    def __init__(self, function: Callable | None, bound: bool = True) -> None:
        self._function, self._bound = function, bound
        self._found: tuple | None = None

    def __iter__(self) -> Iterator[tuple]:
        if self._found is None:
            self._found = _parameters_of(self._function, self._bound)
            self._function = None
        return iter(self._found)


def _parameters_of(function: Any, bound: bool) -> tuple:
    try:
        found = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return ()  # a builtin without a signature
    kinds = {
        inspect.Parameter.POSITIONAL_ONLY: "positional",
        inspect.Parameter.POSITIONAL_OR_KEYWORD: "both",
        inspect.Parameter.KEYWORD_ONLY: "keyword",
        inspect.Parameter.VAR_POSITIONAL: "rest",
        inspect.Parameter.VAR_KEYWORD: "others",
    }
    listed = tuple((p.name, kinds[p.kind]) for p in found)
    return listed[1:] if bound and listed and listed[0][1] != "rest" else listed


def named_modules(root: Module, prefix: str = "") -> list[tuple]:
    """(name, module, whether the module had a name before) of a tree; `root` has the name `prefix`."""
    seen: set = set()
    found = []
    waiting = [(prefix, root)]
    while waiting:
        name, module = waiting.pop()
        count = len(seen)
        seen.add(id(module))
        known = len(seen) == count
        found.append((name, module, known))
        parts = module._modules
        if parts and not known:
            stem = f"{name}." if name else ""
            named = reversed(list(parts.items()))
            waiting += [(stem + child, part) for child, part in named if part is not None]
    return found


def shares(root: Module) -> bool:
    """Whether some module of a tree can be reached in two ways; a tenth of the time of `named_modules`."""
    level, seen, count = [root], {id(root)}, 1
    while level:
        level = [part for module in level for part in module._modules.values() if part is not None]
        count += len(level)
        seen.update(map(id, level))
        if len(seen) != count:
            return True
    return False


def sections(root: Module, prefix: str = "") -> Iterator[tuple]:
    """(name, module) that the default depth records of a bare model: children, and the items of its lists."""
    for name, module in root._modules.items():
        if module is None:
            continue
        path = f"{prefix}.{name}" if prefix else name
        if isinstance(module, (ModuleList, ModuleDict)):
            yield from sections(module, path)
        else:
            yield path, module


def doors(root: Module, prefix: str) -> Iterator[tuple]:
    """(name, module) of a component's children that a pipeline may call directly (`vae.decoder`).

    Plain torch layers are left out.
    """
    for name, module in root._modules.items():
        if module is not None and not type(module).__module__.startswith("torch."):
            yield f"{prefix}.{name}", module


def original(module: Module) -> Module:
    """The module itself, or the one inside a torch.compile wrapper."""
    held = vars(module).get("_modules")  # not getattr: a miss would build an error's text
    return held.get("_orig_mod", module) if type(held) is dict else module


def forward_of(module: Module) -> Callable:
    """The function whose parameters a module's call has."""
    found = inspect.getattr_static(type(original(module)), "forward", None)
    return found if isinstance(found, types.FunctionType) else Module.__call__


def is_compiled(module: Module) -> bool:
    """Whether calling a module runs compiled code: torch.compile, module.compile(), TorchScript."""
    return (
        isinstance(module, torch.jit.ScriptModule)
        or "_orig_mod" in getattr(module, "_modules", {})
        or getattr(module, "_compiled_call_impl", None) is not None
        or hasattr(vars(module).get("forward"), "_torchdynamo_orig_callable")
    )


def never_called(module: Module) -> bool:
    """Containers that have no forward of their own."""
    return type(module) is Module or (
        isinstance(module, (ModuleList, ModuleDict)) and not isinstance(module, Sequential)
    )
