"""Guards for the code, defaults and closure variables of a function, and for the globals that it names."""

from __future__ import annotations

import builtins
import dis
import sys
from collections.abc import Callable
from types import CodeType, FunctionType, ModuleType
from typing import Any

from minigrad.compiler.jit.guards import (
    Guard,
    guard_absence,
    guard_cell,
    guard_entries,
    guard_entry,
)
from minigrad.compiler.jit.links import Link, ReachableObject, entry_guard_factory
from minigrad.compiler.jit.watch import cache_by_id, is_user_code, names_in

__all__ = ["describe_function"]


def describe_function(node: ReachableObject) -> None:
    """Add the guards and links of a Python function; for a library function, only those of its closure and defaults."""
    f: FunctionType = node.object
    node.code = code = f.__code__
    description = f"the code of {node.path}"
    read = _attribute_reader(f, "__code__", "__defaults__", "__kwdefaults__")
    values = read()
    node.add_guards(
        Guard(
            "{0}.__code__ is {1} and {0}.__defaults__ is {2} and {0}.__kwdefaults__ is {3}",
            (f, *values),
            read,
            values,
            f"{description} or its defaults",
        )
    )
    for name, x in zip(code.co_freevars, f.__closure__ or (), strict=False):
        guard = guard_cell(x, name)
        node.links.append(Link(guard, guard.value, name))
    positional = code.co_varnames[: code.co_argcount][-len(f.__defaults__ or ()) or None :]
    for name, x in [*zip(positional, f.__defaults__ or (), strict=False), *(f.__kwdefaults__ or {}).items()]:
        node.links.append(Link(None, x, f"the default {name} of {f.__name__}"))
    if f.__kwdefaults__:
        node.add_guards(guard_entries(f.__kwdefaults__, f"the defaults of {f.__name__}"))
    if f.__dict__:
        node.tables.append((entry_guard_factory(f.__dict__, node.path), f.__dict__))
    if is_user_code(code, f.__globals__):
        _guard_globals(node, f.__globals__, code)


def _guard_globals(node: ReachableObject, table: dict[str, Any], code: CodeType) -> None:
    names = _global_names(code)
    if names & {"globals", "eval", "exec"}:
        names |= table.keys()
    for name in sorted(names & table.keys()):
        guard = guard_entry(table, name, name)
        node.links.append(Link(guard, guard.value, name))
    if builtin := names - table.keys():
        node.add_guards(guard_absence(table, builtin, "a global that hides a builtin"))
        builtin_table = vars(builtins)
        guards = [
            guard_entry(builtin_table, name, f"the builtin {name}") for name in sorted(builtin & builtin_table.keys())
        ]
        node.links += [Link(guard, guard.value, guard.name) for guard in guards]
    for name in sorted(names_in(code)):  # imports inside the function
        if name not in table and isinstance(module := _imported_module(name), ModuleType):
            node.links.append(Link(None, module, name))


@cache_by_id
def _global_names(code: CodeType) -> frozenset[str]:
    """Return the globals that a function and its nested functions read or write."""
    # `dis` reads constants, some of which are symbolic
    stripped = code.replace(co_consts=tuple([None for _ in code.co_consts]))
    names = {
        x.argval for x in dis.get_instructions(stripped) if x.opname in ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL")
    }
    return frozenset(names.union(*[_global_names(x) for x in code.co_consts if isinstance(x, CodeType)]))


def _imported_module(name: str) -> Any:
    return sys.modules.get(name)


def _attribute_reader(x: Any, *names: str) -> Callable[[], tuple[Any, ...]]:
    return lambda: tuple([getattr(x, name) for name in names])
