"""Public names of minigrad: the objects, the primary name of each, and the signatures of methods."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import minigrad as mg
import minigrad.functional
from minigrad.core.op import Op
from minigrad.core.registry import TOPICS

__all__ = ["ROOMS", "found", "is_object", "methods", "others", "own", "primary", "public", "typed"]

# Public modules. An object with several names is documented in the first of them; its entry lists the aliases.
ROOMS = (
    "minigrad",
    "minigrad.autograd",
    "minigrad.nn",
    "minigrad.nn.init",
    "minigrad.nn.utils",
    "minigrad.nn.utils.rnn",
    "minigrad.nn.scalar",
    "minigrad.nn.functional",
    "minigrad.optim",
    "minigrad.optim.lr_scheduler",
    "minigrad.data",
    "minigrad.data.transforms",
    "minigrad.utils.data",
    "minigrad.distributions",
    "minigrad.linalg",
    "minigrad.random",
    "minigrad.random.generators",
    "minigrad.training",
    "minigrad.distributed",
    "minigrad.io",
    "minigrad.cuda",
    "minigrad.errors",
    "minigrad.lessons",
    "minigrad_viz",
)


def public(room: str) -> list[str]:
    """Return the public names of a module, except submodules."""
    module = import_module(room)
    listed = dir(mg) if module is mg else getattr(module, "__all__", dir(module))
    return [name for name in listed if not isinstance(getattr(module, name), ModuleType) and name != "__all__"]


def found(name: str) -> Any:
    """Return the object with a qualified name such as ``minigrad.nn.Linear``."""
    room, _, rest = name.rpartition(".")
    if not room:
        raise AttributeError(name)
    try:
        return getattr(import_module(room), rest)
    except ModuleNotFoundError:
        return getattr(found(room), rest)


def is_object(x: Any) -> bool:
    """Return whether `x` is identified by identity: a function, a class or an operation."""
    return isinstance(x, type | Op) or inspect.isroutine(x)


@cache
def _names() -> dict[int, list[str]]:
    names: dict[int, list[str]] = {}
    for room in ROOMS:
        for name in public(room):
            thing = getattr(import_module(room), name)
            if is_object(thing):
                names.setdefault(id(thing), []).append(f"{room}.{name}")
    for given in names.values():
        given.sort(key=lambda name: (ROOMS.index(name.rpartition(".")[0]), name.rpartition(".")[2] != _own_name(name)))
    return names


def _own_name(name: str) -> str:
    thing = found(name)
    return thing.name if isinstance(thing, Op) else getattr(thing, "__name__", "")


def primary(thing: Any) -> str | None:
    """Return the qualified name under which an object is documented, or None if it is not public."""
    return next(iter(_names().get(id(thing), [])), None) if is_object(thing) else None


def others(thing: Any) -> list[str]:
    """Return the aliases of an object."""
    return _names().get(id(thing), [])[1:] if is_object(thing) else []


# --- the methods of Tensor -------------------------------------------------------------------------------------------


@cache
def methods() -> dict[str, list[str]]:
    """Return the public methods that each module registers, without operators."""
    listed: dict[str, list[str]] = {}
    for module, topic in TOPICS.items():
        name = module.removeprefix("minigrad.").removeprefix("functional.").partition(".")[0]
        listed[name] = sorted(method for method in topic.methods if not method.startswith("_"))
    return listed


def own() -> list[str]:
    """Return the public attributes that the class Tensor itself defines."""
    given = {name for names in methods().values() for name in names}
    return [name for name in vars(mg.Tensor) if not name.startswith("_") and name not in given and _told(name)]


def _told(name: str) -> bool:
    thing = inspect.getattr_static(mg.Tensor, name)
    return inspect.isroutine(thing) or isinstance(thing, property)


@cache
def typed() -> dict[str, list[str]]:
    """Return the signatures of Tensor's methods in the type stub; overloads have several."""
    path = Path(minigrad.functional.__file__).parent / "_stubs.pyi"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    body = next(x for x in tree.body if isinstance(x, ast.ClassDef) and x.name == "Methods").body
    signatures: dict[str, list[str]] = {}
    for statement in _functions(body):
        arguments = ast.unparse(statement.args).removeprefix("self").removeprefix(", ")
        result = f" -> {ast.unparse(statement.returns)}" if statement.returns else ""
        signatures.setdefault(statement.name, []).append(f"({arguments}){result}".replace("builtins.", ""))
    return signatures


def _functions(body: list[ast.stmt]) -> Iterator[ast.FunctionDef]:
    return (statement for statement in body if isinstance(statement, ast.FunctionDef))
