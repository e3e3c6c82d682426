"""Objects: what a step can read from a Python object of each kind, with a guard for each link.

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

from minigrad.compiler.jit.classes import library_names, origin_of, slots, variables
from minigrad.compiler.jit.functions import describe_function
from minigrad.compiler.jit.guards import (
    MISSING,
    Guard,
    attribute,
    calls,
    computed,
    contents,
    entries,
    entry,
    is_value,
)
from minigrad.compiler.jit.links import Link, Object, from_table, of_class, table_of
from minigrad.compiler.jit.modules import describe_module, describe_optimizer, is_module
from minigrad.core.op import Op
from minigrad.core.storage import Storage
from minigrad.core.tensor import Tensor
from minigrad.optim import Optimizer
from minigrad.random import Generator

__all__ = ["CACHED", "describe"]

LARGEST = 2**20  # maximum bytes of an array compared at each call
MOST_ENTRIES = 10_000  # maximum number of entries of a container
CACHED = type(lru_cache(lambda: None))


def describe(found: Object) -> None:
    """Add the guards and links of an object."""
    x = found.x
    if x is sys.modules:  # it has thousands of entries: guard only those named in the step's code
        found.tables.append((partial(entry, x, what="a Python module"), x))
        return
    kind = type(x)
    if kind is list or kind is dict:  # fast path; a class may be unhashable, so no table of classes
        _container(found)
        return
    for kinds, function in _KINDS:
        if isinstance(x, kinds):
            function(found)
            return
    whose = origin_of(kind)
    if is_module(x):
        describe_module(found)
    elif type(x).__module__.startswith("numpy.random") and hasattr(x, "__setstate__"):
        _random_state(found)
    elif whose != "user" and isinstance(x, Iterator):
        found.refused = f"{_a(x)}: its next item cannot be guarded"
    elif (isinstance(x, Collection) and whose == "standard") or (isinstance(x, Mapping) and whose != "user"):
        _container(found)
    else:
        _instance(found)


def _wrapped(*names: str) -> Callable[[Object], None]:
    """Return a function that describes a wrapper whose wrapped objects are these attributes."""

    def describe(found: Object) -> None:
        for name in names:
            inner = getattr(found.x, name, None)
            if inner is not None:
                found.links.append(Link(None, inner, found.path))

    return describe


def _partial(found: Object) -> None:
    given = found.x
    found.links.append(Link(None, given.func, found.path))
    found.links += [Link(None, x, f"an argument of the partial {found.path}") for x in given.args]
    found.own(entries(given.keywords, f"the keywords of {found.path}"))
    found.links += [Link(None, x, f"{name} of the partial {found.path}") for name, x in given.keywords.items()]


def _python_module(found: Object) -> None:
    found.absent = found.x.__dict__
    found.tables.append((from_table(found.x.__dict__, found.path), found.x.__dict__))


def _class(found: Object) -> None:
    kind: type = found.x
    if origin_of(kind) in ("user", "installed"):
        found.own(attribute(kind, "__mro__", f"the bases of {kind.__name__}"))
        found.absent = kind.__dict__
        found.tables.append((from_table(kind.__dict__, kind.__name__), kind.__dict__))
        found.links += [Link(None, base, base.__name__) for base in (*kind.__mro__[1:], type(kind))]


def _container(found: Object) -> None:
    x, path = found.x, found.path
    if len(x) > MOST_ENTRIES:
        found.refused = f"{_a(x)} of {len(x):,} entries: comparing them would take longer than a step"
        return
    found.own(entries(x, path))
    pairs = dict.items(x) if isinstance(x, dict) else x.items() if isinstance(x, Mapping) else enumerate(x)
    items = tuple(pairs)  # a copy, since another thread may change it
    found.links += [Link(None, y, f"{path}[{key!r:.40}]") for key, y in items]
    found.links += [Link(None, key, f"a key of {path}") for key, _ in items if not is_value(key)]
    _attributes_of(found)


def _set(found: Object) -> None:
    x = found.x

    def read() -> tuple[int, ...]:
        return tuple(sorted(map(id, x)))

    found.own(Guard("{0}() == {1}", (read, read()), read, read(), found.path))
    found.links += [Link(None, y, f"an entry of {found.path}") for y in tuple(x)]
    _attributes_of(found)


def _tuple(found: Object) -> None:
    fields = getattr(found.x, "_fields", None)
    for k, y in enumerate(found.x):
        found.links.append(Link(None, y, f"{found.path}.{fields[k]}" if fields else f"{found.path}[{k}]"))
    _attributes_of(found)


def _memory(found: Object) -> None:
    x = found.x
    bytes_in = x.nbytes if hasattr(x, "nbytes") else len(x) * getattr(x, "itemsize", 1)
    if bytes_in > LARGEST:
        found.refused = (
            f"{_a(x)} of {bytes_in:,} bytes: comparing them would take longer than a step; make it a tensor outside"
        )
    elif isinstance(x, np.ndarray) and x.dtype.hasobject:
        found.own(calls(lambda: tuple(x.flat), found.path))
    else:
        found.own(contents(x, found.path))


def _context_variable(found: Object) -> None:

    def read() -> Any:
        try:
            return found.x.get()
        except LookupError:  # neither a value nor a default
            return MISSING

    guard = calls(read, f"the context variable {found.x.name}")
    found.links.append(Link(guard, guard.value, found.path))


def _weak(found: Object) -> None:
    """Guard the attributes of the referent in its `__dict__`, without keeping the referent alive."""
    reference, path = found.x, f"{found.path}()"
    found.own(calls(lambda: reference() is None, f"whether {path} was collected"))
    x = reference()
    if isinstance(table := variables(x), dict) and not isinstance(x, Tensor | type):
        found.tables.append((from_table(table, path), table))
        found.links.append(Link(None, type(x), type(x).__name__))
    elif x is not None:
        found.links.append(Link(None, x, path))


def _environment(found: Object) -> None:
    table = os.environ._data  # type: ignore[attr-defined]
    found.own(
        Guard("{0} == {1}", (table, dict(table)), lambda: tuple(table.items()), tuple(table.items()), "os.environ")
    )


def _view(found: Object) -> None:
    found.links.append(Link(None, found.x.mapping, found.path))


def _mapping_proxy(found: Object) -> None:
    (table,) = gc.get_referents(found.x)
    found.links.append(Link(None, table, found.path))


def _random_state(found: Object) -> None:
    x = found.x
    found.own(computed(lambda: _state_of(x), f"the state of {found.path}, {_a(x)},"))


def _state_of(x: Any) -> bytes:
    if hasattr(x, "bit_generator"):
        return pickle.dumps(x.bit_generator.state)
    return pickle.dumps(x.getstate() if isinstance(x, random.Random) else x.get_state())


def _file(found: Object) -> None:
    if found.x.closed or found.x.readable():
        found.refused = f"{_a(found.x)}: its contents cannot be guarded"


def _thread_local(found: Object) -> None:
    found.tables.append((lambda name: attribute(found.x, name, f"{found.path}.{name}"), found.x.__dict__))
    found.links.append(Link(None, type(found.x), type(found.x).__name__))


def _tensor(found: Object) -> None:
    """Guard attributes that a user set on a tensor, and its patched methods; `trace_guards` guards the rest."""
    x = found.x
    found.tables.append((lambda name: attribute(x, name, f"{found.path}.{name}"), ("label",)))
    if isinstance(table := variables(x), dict):
        found.own(attribute(x, "__dict__", f"the attributes of {found.path}"))
        found.tables.append((from_table(table, found.path), table))


def _enum_member(found: Object) -> None:
    table = found.x.__dict__
    guard = entry(table, "_value_", f"the value of {found.path}")
    found.links += [Link(guard, guard.value, found.path), Link(None, type(found.x), type(found.x).__name__)]
    found.tables.append((from_table(table, found.path), [name for name in tuple(table) if name != "_value_"]))


def _getter(found: Object) -> None:
    names = [name for name in found.x.__reduce__()[1] if isinstance(name, str)]
    found.names = frozenset(part for name in names for part in name.split("."))


def _builtin(found: Object) -> None:
    if not isinstance(found.x.__self__, ModuleType):
        found.links.append(Link(None, found.x.__self__, found.path))


def _leaf(found: Object) -> None:
    """Add nothing: a step can read nothing else from the object."""


def _instance(found: Object) -> None:
    """Guard an instance's class, and the attributes named in the step's code."""
    x = found.x
    kind = type(x)
    owner = (
        x.__self__ if hasattr(kind, "__self__") else None
    )  # the owner of a Cython function, such as those of `numpy.random`
    if owner is not None and not isinstance(owner, ModuleType):
        found.links.append(Link(None, owner, found.path))
    if (table := variables(x)) and {"captures", "__wrapped__"} <= table.keys():  # a jitted function
        found.links.append(Link(None, x.__wrapped__, found.path))
        return
    if origin_of(kind) == "standard" and variables(x) is None:
        return
    found.own(of_class(x, found.path))
    found.links.append(Link(None, kind, kind.__name__))
    _attributes_of(found)


def _attributes_of(found: Object) -> None:
    """Guard attributes by name; for instances of minigrad's classes all, since its own code reads them."""
    x = found.x
    kind = type(x)
    if kind is list or kind is dict or kind is tuple:  # no attributes
        return
    table = variables(x)
    fields = [name for base in kind.__mro__ for name in slots(base)]
    if isinstance(table, dict):
        if origin_of(kind) != "engine":
            found.own(table_of(x, f"attributes of {found.path}"))
        found.tables.append((from_table(table, found.path), table))
    if fields:
        found.tables.append((lambda name: attribute(x, name, f"{found.path}.{name}"), fields))
    for name in library_names(kind) & ({*(table or ()), *fields}):
        guard = entry(table, name, f"{found.path}.{name}") if table and name in table else attribute(x, name, name)
        found.links.append(Link(guard, guard.value, f"{found.path}.{name}"))


def _a(x: Any) -> str:
    name = type(x).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


_KINDS: list[tuple[Any, Callable[[Object], None]]] = [
    (FunctionType, describe_function),
    (partial, _partial),
    (partialmethod, _partial),
    (MethodType, _wrapped("__func__", "__self__")),
    ((staticmethod, classmethod), _wrapped("__func__")),
    (property, _wrapped("fget", "fset")),
    (cached_property, _wrapped("func")),
    (Tensor, _tensor),
    (Enum, _enum_member),
    ((attrgetter, methodcaller), _getter),
    (type, _class),
    (ModuleType, _python_module),
    (tuple, _tuple),
    ((list, deque, dict), _container),
    (type(os.environ), _environment),
    ((set, frozenset), _set),
    ((type({}.keys()), type({}.values()), type({}.items())), _view),
    (types.MappingProxyType, _mapping_proxy),
    ((np.ndarray, bytearray, array, memoryview), _memory),
    (ContextVar, _context_variable),
    (weakref.ref, _weak),
    (io.IOBase, _file),
    (random.SystemRandom, _leaf),
    (random.Random, _random_state),
    (queue.Queue, _wrapped("queue")),
    (threading.local, _thread_local),
    (CACHED, _wrapped("__wrapped__")),
    ((Generator, Op, Storage), _leaf),
    (Optimizer, describe_optimizer),
    (types.BuiltinFunctionType, _builtin),
    ((np.ufunc, type(threading.Lock()), types.CellType), _leaf),
]
