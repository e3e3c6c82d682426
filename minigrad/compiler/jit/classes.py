"""Attributes of classes: where instances store them, and which library code reads them."""

from __future__ import annotations

import sys
from collections.abc import Hashable
from functools import cache
from types import FunctionType
from typing import Any

from minigrad.compiler.jit.watch import names_in, origin

__all__ = ["instance_dict", "library_attribute_names", "origin_of", "slot_names"]


def instance_dict(x: Any) -> dict[str, Any] | None:
    """Return the `__dict__` of an object without calling `__getattr__`, None if it has none."""
    try:
        table = object.__getattribute__(x, "__dict__")
    except AttributeError:
        return None
    return table if isinstance(table, dict) else None


def slot_names(base: type) -> tuple[str, ...]:
    """Return the mangled names of the slots of a class."""
    slots = base.__dict__.get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(
        f"_{base.__name__.lstrip('_')}{name}" if name.startswith("__") and not name.endswith("__") else name
        for name in names
        if name not in ("__dict__", "__weakref__")
    )


def library_attribute_names(kind: type) -> frozenset[str]:
    """Return the attribute names used by methods that a class inherits from minigrad or another library."""
    bases = [base for base in kind.__mro__ if origin_of(base) in ("engine", "installed")]
    return frozenset().union(*map(_names_in_methods, bases))


@cache
def _names_in_methods(kind: Hashable) -> frozenset[str]:
    functions = [getattr(x, "fget", None) or getattr(x, "__func__", x) for x in tuple(vars(kind).values())]
    return frozenset().union(*[names_in(f.__code__) for f in functions if isinstance(f, FunctionType)])


def origin_of(kind: type) -> str:
    """Return where a class is defined, as `watch.origin` does for code."""
    module = sys.modules.get(kind.__module__)
    file = getattr(module, "__file__", None)
    if file is None:
        return "user" if kind.__module__ in ("__main__", "__mp_main__") or module is None else "standard"
    return origin(file)
