"""Functions: guards for a function's code, defaults and closure variables, and for the globals it names."""

from __future__ import annotations

import builtins
import dis
import sys
from collections.abc import Callable
from types import CodeType, FunctionType, ModuleType
from typing import Any

from minigrad.compiler.jit.guards import (
    Guard,
    absence,
    cell,
    entries,
    entry,
)
from minigrad.compiler.jit.links import Link, Object, from_table
from minigrad.compiler.jit.watch import by_identity, is_user_code, names_in

__all__ = ["describe_function"]


def describe_function(found: Object) -> None:
    """Add guards and links of a Python function; for library functions only those of closure and defaults."""
    f: FunctionType = found.x
    found.code = code = f.__code__
    what = f"the code of {found.path}"
    read = _attributes(f, "__code__", "__defaults__", "__kwdefaults__")
    values = read()
    found.own(
        Guard(
            "{0}.__code__ is {1} and {0}.__defaults__ is {2} and {0}.__kwdefaults__ is {3}",
            (f, *values),
            read,
            values,
            f"{what} or its defaults",
        )
    )
    for name, x in zip(code.co_freevars, f.__closure__ or (), strict=False):
        guard = cell(x, name)
        found.links.append(Link(guard, guard.value, name))
    positional = code.co_varnames[: code.co_argcount][-len(f.__defaults__ or ()) or None :]
    for name, x in [*zip(positional, f.__defaults__ or (), strict=False), *(f.__kwdefaults__ or {}).items()]:
        found.links.append(Link(None, x, f"the default {name} of {f.__name__}"))
    if f.__kwdefaults__:
        found.own(entries(f.__kwdefaults__, f"the defaults of {f.__name__}"))
    if f.__dict__:
        found.tables.append((from_table(f.__dict__, found.path), f.__dict__))
    if is_user_code(code, f.__globals__):
        _globals(found, f.__globals__, code)


def _globals(found: Object, table: dict[str, Any], code: CodeType) -> None:
    named = _globals_in(code)
    if named & {"globals", "eval", "exec"}:
        named |= table.keys()
    for name in sorted(named & table.keys()):
        guard = entry(table, name, name)
        found.links.append(Link(guard, guard.value, name))
    if builtin := named - table.keys():
        found.own(absence(table, builtin, "a global that hides a builtin"))
        known = vars(builtins)
        guards = [entry(known, name, f"the builtin {name}") for name in sorted(builtin & known.keys())]
        found.links += [Link(guard, guard.value, guard.what) for guard in guards]
    for name in sorted(names_in(code)):  # imports inside the function
        if name not in table and isinstance(module := _imported(name), ModuleType):
            found.links.append(Link(None, module, name))


@by_identity
def _globals_in(code: CodeType) -> frozenset[str]:
    """Return the globals that a function and its nested functions read or write."""
    blank = code.replace(co_consts=tuple([None for _ in code.co_consts]))  # `dis` reads them, and some are symbolic
    found = {x.argval for x in dis.get_instructions(blank) if x.opname in ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL")}
    return frozenset(found.union(*[_globals_in(x) for x in code.co_consts if isinstance(x, CodeType)]))


def _imported(name: str) -> Any:
    return sys.modules.get(name)


def _attributes(x: Any, *names: str) -> Callable[[], tuple[Any, ...]]:
    return lambda: tuple([getattr(x, name) for name in names])
