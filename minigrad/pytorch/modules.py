"""Import hooks for modules of PyTorch that have no file in minigrad, with their available names.

``from minigrad.nn.modules.linear import Linear`` is `minigrad.nn.Linear`. If nothing in a module is available, the
import raises ModuleNotFoundError with the advice of ``mg.amp``; importing a missing name raises ImportError.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from minigrad.pytorch.advice import missing
from minigrad.pytorch.coverage import names, place_of

__all__ = ["absent", "spec_of"]


def spec_of(name: str) -> ModuleSpec | None:
    """Return a spec for the module ``minigrad.…`` without a file, with the available names of PyTorch's module; None
    if PyTorch has no such name, or it is available. Raises ImportError with advice for a missing name."""
    asked = name.replace("minigrad", "torch", 1)
    family, _, last = asked.rpartition(".")
    if _here(asked):
        return ModuleSpec(name, _Loader(), is_package=True)
    known, parent = names("+").get(family, {}), name.rpartition(".")[0]
    if asked in names("+") or known.get(last) == ".":
        raise ModuleNotFoundError(f"No module named {name!r}{missing(family, last, always=True)}")
    if (last in known or last in names().get(family, {})) and not hasattr(place_of(family), last):
        raise ImportError(f"cannot import name {last!r} from {parent!r}{missing(family, last, always=True)}")
    return None


def absent(home: str, name: str) -> Any:
    """Return a submodule of `home` that corresponds to one of PyTorch. Raises AttributeError, with advice, for any
    other name."""
    asked = f"{home.replace('minigrad', 'torch', 1)}.{name}"
    if _here(asked):
        return import_module(f"{home}.{name}")
    family = asked.rpartition(".")[0]
    said = missing(family, name, always=name in names().get(family, {}) or name in names("+").get(family, {}))
    raise AttributeError(f"module {home!r} has no attribute {name!r}{said}", name=name, obj=sys.modules[home])


def _here(module: str) -> dict[str, str]:
    """Return the available names of a module of PyTorch, each with the family that defines it.

    A module named like a function, which it would hide, has none: ``nn.utils.weight_norm``.
    """
    family, _, last = module.rpartition(".")
    if names().get(family, {}).get(last):
        return {}
    homes = {name: home for name, home in names("+").get(module, {}).items() if home.strip(".")}
    return {name: home for name, home in homes.items() if hasattr(place_of(home), name)}


class _Loader(Loader):
    """Loader that fills a module with the available names."""

    def create_module(self, spec: ModuleSpec) -> None:
        """Use Python's default module creation."""

    def exec_module(self, module: ModuleType) -> None:
        """Add the names to the module."""
        asked = module.__name__.replace("minigrad", "torch", 1)
        found = {name: getattr(place_of(home), name) for name, home in _here(asked).items()}
        module.__doc__ = f"The available names of PyTorch's ``{asked}``."
        vars(module).update(found, __all__=sorted(found), __getattr__=lambda name: absent(module.__name__, name))
