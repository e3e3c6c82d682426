"""Guards for modules and optimizers."""

from __future__ import annotations

from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

from minigrad.compiler.jit.classes import library_names, origin_of, variables
from minigrad.compiler.jit.guards import Guard, attribute, entries, entry, size
from minigrad.compiler.jit.links import Link, Object, from_table, of_class, table_of
from minigrad.compiler.jit.watch import names_in

__all__ = ["describe_module", "describe_optimizer", "is_module"]

_TABLES = ("_parameters", "_buffers", "_modules", "_transient", "_hooks")


def describe_optimizer(found: Object) -> None:
    """Guard the attributes a subclass adds. Groups, state and hooks are guarded when it steps; scalars are symbolic."""
    x = found.x
    found.own(of_class(x, found.path))
    found.links.append(Link(None, type(x), type(x).__name__))
    own = {"defaults", "param_groups", "state", "steps", "_hooks", "_place"}
    found.own(table_of(x, f"attributes of {x.name}"))
    found.tables.append((from_table(vars(x), found.path), [name for name in tuple(vars(x)) if name not in own]))


def is_module(x: Any) -> bool:
    return variables(x) is not None and "_parameters" in x.__dict__ and "_modules" in x.__dict__


def describe_module(found: Object) -> None:
    module = found.x
    kind = type(module)
    of, table = kind.__name__, vars(module)
    found.own(of_class(module, found.path), attribute(kind, "forward", f"{of}.forward"))
    found.own(table_of(module, f"attributes of {of}"))
    for name in ("parameters", "buffers", "modules"):
        parts = table[f"_{name}"]
        found.own(entry(table, f"_{name}", f"the table of {name} of {of}"), size(parts, f"{name} in {of}"))
        for part in tuple(parts):  # a copy, since another thread may add an entry
            guard = entry(parts, part, f"{part} of {of}")
            found.links.append(Link(guard, guard.value, f"{part} of {of}"))
    hooks = entry(table, "_hooks", f"the table of hooks of {of}")
    found.own(hooks)
    for registry in tuple(vars(hooks.value).values()) if hooks.value is not None else ():
        found.own(entries(registry, f"the hooks of {of}"))
        found.links += [Link(None, hook[0], f"a hook of {of}") for hook in tuple(registry.values())]
    found.links.append(Link(None, kind, of))
    if origin_of(kind) == "engine" and isinstance(kind.forward, FunctionType):
        found.own(*_calls_of(kind.forward, getattr(kind, "applies", "")))
    rest = [name for name in tuple(table) if name not in _TABLES]
    read = {"training", *rest} if origin_of(kind) == "engine" else library_names(kind) & set(rest)
    for name in sorted(read):
        guard = entry(table, name, f"{of}.{name}")
        found.links.append(Link(guard, guard.value, f"{of}.{name}"))
    found.tables.append((from_table(table, of), [name for name in rest if name not in read]))


def _calls_of(forward: FunctionType, applied: str) -> Iterator[Guard]:
    """Guard the functions that a layer's `forward` looks up in a Python module, such as ``F.relu``, as a user may patch
    them, and the function named by its class attribute `applies`."""
    names = names_in(forward.__code__) | {applied}
    for module in [x for name, x in tuple(forward.__globals__.items()) if name in names and isinstance(x, ModuleType)]:
        table = vars(module)
        yield from [entry(table, name, f"{module.__name__}.{name}") for name in sorted(names & table.keys())]
