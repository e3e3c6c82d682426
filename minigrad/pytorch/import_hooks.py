"""Import hooks that emulate PyTorch's modules that have no file in minigrad.

``from minigrad.nn.modules.linear import Linear`` imports `minigrad.nn.Linear`. If nothing in a module is available, the
import raises ModuleNotFoundError with the same advice as ``mg.amp``; importing a missing name raises ImportError.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from minigrad.pytorch.advice import missing_name_message
from minigrad.pytorch.coverage import minigrad_counterpart, names

__all__ = ["find_spec", "resolve_missing"]


def find_spec(name: str) -> ModuleSpec | None:
    """Return the spec of a module without a file, which contains the available names of PyTorch's module.

    Return None if PyTorch has no such module, or if `name` is available. Raises ImportError, with a replacement, for a
    missing name.
    """
    torch_name = name.replace("minigrad", "torch", 1)
    family, _, last = torch_name.rpartition(".")
    if _available_names(torch_name):
        return ModuleSpec(name, _Loader(), is_package=True)
    names_of_parent, parent = names("+").get(family, {}), name.rpartition(".")[0]
    if torch_name in names("+") or names_of_parent.get(last) == ".":
        raise ModuleNotFoundError(f"No module named {name!r}{missing_name_message(family, last, always=True)}")
    if (last in names_of_parent or last in names().get(family, {})) and not hasattr(minigrad_counterpart(family), last):
        raise ImportError(
            f"cannot import name {last!r} from {parent!r}{missing_name_message(family, last, always=True)}"
        )
    return None


def resolve_missing(home: str, name: str) -> Any:
    """Import the submodule `name` of `home` if PyTorch has it. Raises AttributeError, with a replacement, otherwise."""
    torch_name = f"{home.replace('minigrad', 'torch', 1)}.{name}"
    if _available_names(torch_name):
        return import_module(f"{home}.{name}")
    family = torch_name.rpartition(".")[0]
    advice = missing_name_message(
        family, name, always=name in names().get(family, {}) or name in names("+").get(family, {})
    )
    raise AttributeError(f"module {home!r} has no attribute {name!r}{advice}", name=name, obj=sys.modules[home])


def _available_names(module: str) -> dict[str, str]:
    """Return the available names of a PyTorch module, each with the module or class that defines it.

    Return no names for a module that would hide a function of the same name, such as ``nn.utils.weight_norm``.
    """
    family, _, last = module.rpartition(".")
    if names().get(family, {}).get(last):
        return {}
    homes = {name: home for name, home in names("+").get(module, {}).items() if home.strip(".")}
    return {name: home for name, home in homes.items() if hasattr(minigrad_counterpart(home), name)}


class _Loader(Loader):
    """Loader that adds the available names to a module."""

    def create_module(self, spec: ModuleSpec) -> None:
        """Use Python's default module creation."""

    def exec_module(self, module: ModuleType) -> None:
        """Add the names to the module."""
        torch_name = module.__name__.replace("minigrad", "torch", 1)
        available = {
            name: getattr(minigrad_counterpart(home), name) for name, home in _available_names(torch_name).items()
        }
        module.__doc__ = f"The available names of PyTorch's ``{torch_name}``."
        vars(module).update(
            available, __all__=sorted(available), __getattr__=lambda name: resolve_missing(module.__name__, name)
        )
