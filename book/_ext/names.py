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

__all__ = [
    "PUBLIC_MODULES",
    "aliases",
    "has_identity",
    "methods_by_topic",
    "own_attributes",
    "primary_name",
    "public_names",
    "resolve",
    "stub_signatures",
]

# Public modules. An object with several names is documented in the first of them; its entry lists the aliases.
PUBLIC_MODULES = (
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


def public_names(module_name: str) -> list[str]:
    """Return the public names of a module, except submodules."""
    module = import_module(module_name)
    names = dir(mg) if module is mg else getattr(module, "__all__", dir(module))
    return [name for name in names if not isinstance(getattr(module, name), ModuleType) and name != "__all__"]


def resolve(name: str) -> Any:
    """Return the object with a qualified name such as ``minigrad.nn.Linear``."""
    module_name, _, attribute = name.rpartition(".")
    if not module_name:
        raise AttributeError(name)
    try:
        return getattr(import_module(module_name), attribute)
    except ModuleNotFoundError:
        return getattr(resolve(module_name), attribute)


def has_identity(x: Any) -> bool:
    """Return whether `x` is looked up by identity: a function, a class or an operation."""
    return isinstance(x, type | Op) or inspect.isroutine(x)


@cache
def _names_by_id() -> dict[int, list[str]]:
    names: dict[int, list[str]] = {}
    for module_name in PUBLIC_MODULES:
        for name in public_names(module_name):
            obj = getattr(import_module(module_name), name)
            if has_identity(obj):
                names.setdefault(id(obj), []).append(f"{module_name}.{name}")
    for aliases in names.values():
        aliases.sort(
            key=lambda name: (
                PUBLIC_MODULES.index(name.rpartition(".")[0]),
                name.rpartition(".")[2] != _defined_name(name),
            )
        )
    return names


def _defined_name(name: str) -> str:
    obj = resolve(name)
    return obj.name if isinstance(obj, Op) else getattr(obj, "__name__", "")


def primary_name(obj: Any) -> str | None:
    """Return the qualified name under which an object is documented, or None if it is not public."""
    return next(iter(_names_by_id().get(id(obj), [])), None) if has_identity(obj) else None


def aliases(obj: Any) -> list[str]:
    """Return the aliases of an object."""
    return _names_by_id().get(id(obj), [])[1:] if has_identity(obj) else []


# --- the methods of Tensor -------------------------------------------------------------------------------------------


@cache
def methods_by_topic() -> dict[str, list[str]]:
    """Return the public methods that each module registers, without operators."""
    by_topic: dict[str, list[str]] = {}
    for module, topic in TOPICS.items():
        name = module.removeprefix("minigrad.").removeprefix("functional.").partition(".")[0]
        by_topic[name] = sorted(method for method in topic.methods if not method.startswith("_"))
    return by_topic


def own_attributes() -> list[str]:
    """Return the public attributes that the class Tensor itself defines."""
    registered = {name for names in methods_by_topic().values() for name in names}
    return [
        name for name in vars(mg.Tensor) if not name.startswith("_") and name not in registered and _is_documented(name)
    ]


def _is_documented(name: str) -> bool:
    attribute = inspect.getattr_static(mg.Tensor, name)
    return inspect.isroutine(attribute) or isinstance(attribute, property)


@cache
def stub_signatures() -> dict[str, list[str]]:
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
