"""Guards for the values that a step can read from each kind of Python object.

========================  ==============================================================================================
a value                   a scalar, a string, a tuple of those: guarded by the link to it
a function                code, defaults, closure variables, globals named in its code; for libraries only closures
a wrapper                 the wrapped object of `partial`, bound method, `property`, `lru_cache`
an object                 its class, and attributes named in the step's code, in its `__dict__` or slots
a class                   attributes named in the step's code, in each class of its `__mro__`
a Python module           attributes named in the step's code
a container               its entries and their order
memory                    the bytes of NumPy arrays, `bytearray` and `array`
an `nn.Module`            parameters, buffers, submodules, hooks, and attributes: all if the class is minigrad's
an iterator or file       refused: its next item is unknown
========================  ==============================================================================================
"""

from __future__ import annotations

import gc
import io
import os
import pickle
import queue
import random
import sys
import threading
import types
import weakref
from array import array
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextvars import ContextVar
from enum import Enum
from functools import cached_property, lru_cache, partial, partialmethod
from operator import attrgetter, methodcaller
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from minigrad.compiler.jit.classes import instance_dict, library_attribute_names, origin_of, slot_names
from minigrad.compiler.jit.functions import describe_function
from minigrad.compiler.jit.guards import (
    MISSING,
    Guard,
    guard_attribute,
    guard_bytes,
    guard_entries,
    guard_entry,
    guard_identity,
    guard_result,
    is_value,
)
from minigrad.compiler.jit.links import Link, ReachableObject, entry_guard_factory, guard_class, guard_dict
from minigrad.compiler.jit.modules import describe_module, describe_optimizer, is_module
from minigrad.core.op import Op
from minigrad.core.storage import Storage
from minigrad.core.tensor import Tensor
from minigrad.optim import Optimizer
from minigrad.random import Generator

__all__ = ["LRU_CACHE_TYPE", "describe"]

MAX_COMPARED_BYTES = 2**20  # maximum bytes of an array compared at each call
MAX_ENTRIES = 10_000  # maximum number of entries of a container
LRU_CACHE_TYPE = type(lru_cache(lambda: None))


def describe(node: ReachableObject) -> None:
    """Add the guards and links of an object."""
    x = node.object
    if x is sys.modules:  # thousands of entries: guard only those named in the step's code
        node.tables.append((partial(guard_entry, x, name="a Python module"), x))
        return
    kind = type(x)
    if kind is list or kind is dict:  # fast path; a class may be unhashable, so no table of classes
        _describe_container(node)
        return
    for kinds, function in _DESCRIBERS:
        if isinstance(x, kinds):
            function(node)
            return
    origin = origin_of(kind)
    if is_module(x):
        describe_module(node)
    elif type(x).__module__.startswith("numpy.random") and hasattr(x, "__setstate__"):
        _describe_random_state(node)
    elif origin != "user" and isinstance(x, Iterator):
        node.unguardable_reason = f"{_with_article(x)}: its next item cannot be guarded"
    elif (isinstance(x, Collection) and origin == "standard") or (isinstance(x, Mapping) and origin != "user"):
        _describe_container(node)
    else:
        _describe_instance(node)


def _describe_wrapper(*names: str) -> Callable[[ReachableObject], None]:
    """Return a function that describes a wrapper whose wrapped objects are stored in these attributes."""

    def describe(node: ReachableObject) -> None:
        for name in names:
            inner = getattr(node.object, name, None)
            if inner is not None:
                node.links.append(Link(None, inner, node.path))

    return describe


def _describe_partial(node: ReachableObject) -> None:
    partial_object = node.object
    node.links.append(Link(None, partial_object.func, node.path))
    node.links += [Link(None, x, f"an argument of the partial {node.path}") for x in partial_object.args]
    node.add_guards(guard_entries(partial_object.keywords, f"the keywords of {node.path}"))
    node.links += [Link(None, x, f"{name} of the partial {node.path}") for name, x in partial_object.keywords.items()]


def _describe_python_module(node: ReachableObject) -> None:
    node.absence_table = node.object.__dict__
    node.tables.append((entry_guard_factory(node.object.__dict__, node.path), node.object.__dict__))


def _describe_class(node: ReachableObject) -> None:
    kind: type = node.object
    if origin_of(kind) in ("user", "installed"):
        node.add_guards(guard_attribute(kind, "__mro__", f"the bases of {kind.__name__}"))
        node.absence_table = kind.__dict__
        node.tables.append((entry_guard_factory(kind.__dict__, kind.__name__), kind.__dict__))
        node.links += [Link(None, base, base.__name__) for base in (*kind.__mro__[1:], type(kind))]


def _describe_container(node: ReachableObject) -> None:
    x, path = node.object, node.path
    if len(x) > MAX_ENTRIES:
        node.unguardable_reason = (
            f"{_with_article(x)} of {len(x):,} entries: comparing them would take longer than a step"
        )
        return
    node.add_guards(guard_entries(x, path))
    pairs = dict.items(x) if isinstance(x, dict) else x.items() if isinstance(x, Mapping) else enumerate(x)
    items = tuple(pairs)  # a copy, since another thread may change it
    node.links += [Link(None, y, f"{path}[{key!r:.40}]") for key, y in items]
    node.links += [Link(None, key, f"a key of {path}") for key, _ in items if not is_value(key)]
    _describe_attributes(node)


def _describe_set(node: ReachableObject) -> None:
    x = node.object

    def read() -> tuple[int, ...]:
        return tuple(sorted(map(id, x)))

    node.add_guards(Guard("{0}() == {1}", (read, read()), read, read(), node.path))
    node.links += [Link(None, y, f"an entry of {node.path}") for y in tuple(x)]
    _describe_attributes(node)


def _describe_tuple(node: ReachableObject) -> None:
    fields = getattr(node.object, "_fields", None)
    for k, y in enumerate(node.object):
        node.links.append(Link(None, y, f"{node.path}.{fields[k]}" if fields else f"{node.path}[{k}]"))
    _describe_attributes(node)


def _describe_memory(node: ReachableObject) -> None:
    x = node.object
    byte_count = x.nbytes if hasattr(x, "nbytes") else len(x) * getattr(x, "itemsize", 1)
    if byte_count > MAX_COMPARED_BYTES:
        node.unguardable_reason = (
            f"{_with_article(x)} of {byte_count:,} bytes: comparing them would take longer than a step; make it a "
            "tensor outside"
        )
    elif isinstance(x, np.ndarray) and x.dtype.hasobject:
        node.add_guards(guard_identity(lambda: tuple(x.flat), node.path))
    else:
        node.add_guards(guard_bytes(x, node.path))


def _describe_context_variable(node: ReachableObject) -> None:

    def read() -> Any:
        try:
            return node.object.get()
        except LookupError:  # neither a value nor a default
            return MISSING

    guard = guard_identity(read, f"the context variable {node.object.name}")
    node.links.append(Link(guard, guard.value, node.path))


def _describe_weak_reference(node: ReachableObject) -> None:
    """Guard the attributes of the referent in its `__dict__`, without keeping the referent alive."""
    reference, path = node.object, f"{node.path}()"
    node.add_guards(guard_identity(lambda: reference() is None, f"whether {path} was collected"))
    x = reference()
    if isinstance(table := instance_dict(x), dict) and not isinstance(x, Tensor | type):
        node.tables.append((entry_guard_factory(table, path), table))
        node.links.append(Link(None, type(x), type(x).__name__))
    elif x is not None:
        node.links.append(Link(None, x, path))


def _describe_environment(node: ReachableObject) -> None:
    table = os.environ._data  # type: ignore[attr-defined]
    node.add_guards(
        Guard("{0} == {1}", (table, dict(table)), lambda: tuple(table.items()), tuple(table.items()), "os.environ")
    )


def _describe_dict_view(node: ReachableObject) -> None:
    node.links.append(Link(None, node.object.mapping, node.path))


def _describe_mapping_proxy(node: ReachableObject) -> None:
    (table,) = gc.get_referents(node.object)
    node.links.append(Link(None, table, node.path))


def _describe_random_state(node: ReachableObject) -> None:
    x = node.object
    node.add_guards(guard_result(lambda: _pickled_state(x), f"the state of {node.path}, {_with_article(x)},"))


def _pickled_state(x: Any) -> bytes:
    if hasattr(x, "bit_generator"):
        return pickle.dumps(x.bit_generator.state)
    return pickle.dumps(x.getstate() if isinstance(x, random.Random) else x.get_state())


def _describe_file(node: ReachableObject) -> None:
    if node.object.closed or node.object.readable():
        node.unguardable_reason = f"{_with_article(node.object)}: its contents cannot be guarded"


def _describe_thread_local(node: ReachableObject) -> None:
    node.tables.append((lambda name: guard_attribute(node.object, name, f"{node.path}.{name}"), node.object.__dict__))
    node.links.append(Link(None, type(node.object), type(node.object).__name__))


def _describe_tensor(node: ReachableObject) -> None:
    """Guard attributes that a user set on a tensor, and its patched methods; `trace_guards` guards the rest."""
    x = node.object
    node.tables.append((lambda name: guard_attribute(x, name, f"{node.path}.{name}"), ("label",)))
    if isinstance(table := instance_dict(x), dict):
        node.add_guards(guard_attribute(x, "__dict__", f"the attributes of {node.path}"))
        node.tables.append((entry_guard_factory(table, node.path), table))


def _describe_enum_member(node: ReachableObject) -> None:
    table = node.object.__dict__
    guard = guard_entry(table, "_value_", f"the value of {node.path}")
    node.links += [Link(guard, guard.value, node.path), Link(None, type(node.object), type(node.object).__name__)]
    node.tables.append((entry_guard_factory(table, node.path), [name for name in tuple(table) if name != "_value_"]))


def _describe_getter(node: ReachableObject) -> None:
    names = [name for name in node.object.__reduce__()[1] if isinstance(name, str)]
    node.names = frozenset(part for name in names for part in name.split("."))


def _describe_builtin(node: ReachableObject) -> None:
    if not isinstance(node.object.__self__, ModuleType):
        node.links.append(Link(None, node.object.__self__, node.path))


def _describe_leaf(node: ReachableObject) -> None:
    """Add no guards, since a step can read nothing else from the object."""


def _describe_instance(node: ReachableObject) -> None:
    """Guard an instance's class, and the attributes named in the step's code."""
    x = node.object
    kind = type(x)
    # A Cython function, such as those of `numpy.random`, stores its owner in `__self__`.
    owner = x.__self__ if hasattr(kind, "__self__") else None
    if owner is not None and not isinstance(owner, ModuleType):
        node.links.append(Link(None, owner, node.path))
    if (table := instance_dict(x)) and {"captures", "__wrapped__"} <= table.keys():  # a jitted function
        node.links.append(Link(None, x.__wrapped__, node.path))
        return
    if origin_of(kind) == "standard" and instance_dict(x) is None:
        return
    node.add_guards(guard_class(x, node.path))
    node.links.append(Link(None, kind, kind.__name__))
    _describe_attributes(node)


def _describe_attributes(node: ReachableObject) -> None:
    """Guard attributes by name. For instances of minigrad's classes, all attributes are guarded, since minigrad's code
    reads them."""
    x = node.object
    kind = type(x)
    if kind is list or kind is dict or kind is tuple:  # no attributes
        return
    table = instance_dict(x)
    fields = [name for base in kind.__mro__ for name in slot_names(base)]
    if isinstance(table, dict):
        if origin_of(kind) != "engine":
            node.add_guards(guard_dict(x, f"attributes of {node.path}"))
        node.tables.append((entry_guard_factory(table, node.path), table))
    if fields:
        node.tables.append((lambda name: guard_attribute(x, name, f"{node.path}.{name}"), fields))
    for name in library_attribute_names(kind) & ({*(table or ()), *fields}):
        guard = (
            guard_entry(table, name, f"{node.path}.{name}")
            if table and name in table
            else guard_attribute(x, name, name)
        )
        node.links.append(Link(guard, guard.value, f"{node.path}.{name}"))


def _with_article(x: Any) -> str:
    name = type(x).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


_DESCRIBERS: list[tuple[Any, Callable[[ReachableObject], None]]] = [
    (FunctionType, describe_function),
    (partial, _describe_partial),
    (partialmethod, _describe_partial),
    (MethodType, _describe_wrapper("__func__", "__self__")),
    ((staticmethod, classmethod), _describe_wrapper("__func__")),
    (property, _describe_wrapper("fget", "fset")),
    (cached_property, _describe_wrapper("func")),
    (Tensor, _describe_tensor),
    (Enum, _describe_enum_member),
    ((attrgetter, methodcaller), _describe_getter),
    (type, _describe_class),
    (ModuleType, _describe_python_module),
    (tuple, _describe_tuple),
    ((list, deque, dict), _describe_container),
    (type(os.environ), _describe_environment),
    ((set, frozenset), _describe_set),
    ((type({}.keys()), type({}.values()), type({}.items())), _describe_dict_view),
    (types.MappingProxyType, _describe_mapping_proxy),
    ((np.ndarray, bytearray, array, memoryview), _describe_memory),
    (ContextVar, _describe_context_variable),
    (weakref.ref, _describe_weak_reference),
    (io.IOBase, _describe_file),
    (random.SystemRandom, _describe_leaf),
    (random.Random, _describe_random_state),
    (queue.Queue, _describe_wrapper("queue")),
    (threading.local, _describe_thread_local),
    (LRU_CACHE_TYPE, _describe_wrapper("__wrapped__")),
    ((Generator, Op, Storage), _describe_leaf),
    (Optimizer, describe_optimizer),
    (types.BuiltinFunctionType, _describe_builtin),
    ((np.ufunc, type(threading.Lock()), types.CellType), _describe_leaf),
]
