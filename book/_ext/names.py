"""The public names of minigrad: what they name, which of several names of an object is shown, and types of methods."""

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

# Modules whose names are public. Of the names of one object the first here is shown, the others are told beside it.
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
    """What a module gives to its users, but for modules."""
    module = import_module(room)
    listed = dir(mg) if module is mg else getattr(module, "__all__", dir(module))
    return [name for name in listed if not isinstance(getattr(module, name), ModuleType) and name != "__all__"]


def found(name: str) -> Any:
    """The object of a whole name, as ``minigrad.nn.Linear``."""
    room, _, rest = name.rpartition(".")
    if not room:
        raise AttributeError(name)
    try:
        return getattr(import_module(room), rest)
    except ModuleNotFoundError:
        return getattr(found(room), rest)


def is_object(x: Any) -> bool:
    """Whether `x` is known by identity: a function, a class or an operation, and not a number."""
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
    """The name under which an object is shown; None if it is not public."""
    return next(iter(_names().get(id(thing), [])), None) if is_object(thing) else None


def others(thing: Any) -> list[str]:
    """Its other names."""
    return _names().get(id(thing), [])[1:] if is_object(thing) else []


# --- the methods of Tensor -------------------------------------------------------------------------------------------


@cache
def methods() -> dict[str, list[str]]:
    """The methods that modules register, a module each; operators and what is private left out."""
    listed: dict[str, list[str]] = {}
    for module, topic in TOPICS.items():
        name = module.removeprefix("minigrad.").removeprefix("functional.").partition(".")[0]
        listed[name] = sorted(method for method in topic.methods if not method.startswith("_"))
    return listed


def own() -> list[str]:
    """The public attributes that the class Tensor has of its own."""
    given = {name for names in methods().values() for name in names}
    return [name for name in vars(mg.Tensor) if not name.startswith("_") and name not in given and _told(name)]


def _told(name: str) -> bool:
    thing = inspect.getattr_static(mg.Tensor, name)
    return inspect.isroutine(thing) or isinstance(thing, property)


@cache
def typed() -> dict[str, list[str]]:
    """The signatures of Tensor's methods as type checkers know them: those of overloads one after another."""
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
