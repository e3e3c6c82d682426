"""Guards for modules and optimizers."""

from __future__ import annotations

from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

from minigrad.compiler.jit.classes import instance_dict, library_attribute_names, origin_of
from minigrad.compiler.jit.guards import Guard, guard_attribute, guard_entries, guard_entry, guard_length
from minigrad.compiler.jit.links import Link, ReachableObject, entry_guard_factory, guard_class, guard_dict
from minigrad.compiler.jit.watch import names_in

__all__ = ["describe_module", "describe_optimizer", "is_module"]

_TABLES = ("_parameters", "_buffers", "_modules", "_transient", "_hooks")


def describe_optimizer(node: ReachableObject) -> None:
    """Guard the attributes that an optimizer subclass adds. Groups, state and hooks are guarded when the optimizer
    steps; scalars are symbolic."""
    x = node.object
    node.add_guards(guard_class(x, node.path))
    node.links.append(Link(None, type(x), type(x).__name__))
    builtin_names = {"defaults", "param_groups", "state", "steps", "_hooks", "_place"}
    node.add_guards(guard_dict(x, f"attributes of {x.name}"))
    node.tables.append(
        (entry_guard_factory(vars(x), node.path), [name for name in tuple(vars(x)) if name not in builtin_names])
    )


def is_module(x: Any) -> bool:
    return instance_dict(x) is not None and "_parameters" in x.__dict__ and "_modules" in x.__dict__


def describe_module(node: ReachableObject) -> None:
    module = node.object
    kind = type(module)
    class_name, table = kind.__name__, vars(module)
    node.add_guards(guard_class(module, node.path), guard_attribute(kind, "forward", f"{class_name}.forward"))
    node.add_guards(guard_dict(module, f"attributes of {class_name}"))
    for name in ("parameters", "buffers", "modules"):
        children = table[f"_{name}"]
        node.add_guards(
            guard_entry(table, f"_{name}", f"the table of {name} of {class_name}"),
            guard_length(children, f"{name} in {class_name}"),
        )
        for child_name in tuple(children):  # a copy, since another thread may add an entry
            guard = guard_entry(children, child_name, f"{child_name} of {class_name}")
            node.links.append(Link(guard, guard.value, f"{child_name} of {class_name}"))
    hooks = guard_entry(table, "_hooks", f"the table of hooks of {class_name}")
    node.add_guards(hooks)
    for registry in tuple(vars(hooks.value).values()) if hooks.value is not None else ():
        node.add_guards(guard_entries(registry, f"the hooks of {class_name}"))
        node.links += [Link(None, hook[0], f"a hook of {class_name}") for hook in tuple(registry.values())]
    node.links.append(Link(None, kind, class_name))
    if origin_of(kind) == "engine" and isinstance(kind.forward, FunctionType):
        node.add_guards(*_guard_patched_functions(kind.forward, getattr(kind, "applies", "")))
    other_names = [name for name in tuple(table) if name not in _TABLES]
    read_names = (
        {"training", *other_names} if origin_of(kind) == "engine" else library_attribute_names(kind) & set(other_names)
    )
    for name in sorted(read_names):
        guard = guard_entry(table, name, f"{class_name}.{name}")
        node.links.append(Link(guard, guard.value, f"{class_name}.{name}"))
    node.tables.append(
        (entry_guard_factory(table, class_name), [name for name in other_names if name not in read_names])
    )


def _guard_patched_functions(forward: FunctionType, function_name: str) -> Iterator[Guard]:
    """Guard the functions that a layer's `forward` looks up in Python modules, such as ``F.relu``, and the function
    named by the class attribute `applies`. A user may patch these functions."""
    names = names_in(forward.__code__) | {function_name}
    for module in [x for name, x in tuple(forward.__globals__.items()) if name in names and isinstance(x, ModuleType)]:
        table = vars(module)
        yield from [guard_entry(table, name, f"{module.__name__}.{name}") for name in sorted(names & table.keys())]
