"""Modules that PyTorch has and minigrad has no file for: imported with those of their names that are here.

``from minigrad.nn.modules.linear import Linear`` is `minigrad.nn.Linear`. Where nothing of a module is here, importing
it raises ModuleNotFoundError with the advice that ``mg.amp`` gives; importing a name that is not here, ImportError.
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
    """How to import ``minigrad.…``, for which there is no file: as a module with what is here of PyTorch's; None if
    PyTorch has no such name either, or it is here. Raises ImportError with advice if it is a name that is not here."""
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
    """A module of PyTorch's that is asked for as an attribute of the module `home`. Raises AttributeError, with advice,
    for any other name."""
    asked = f"{home.replace('minigrad', 'torch', 1)}.{name}"
    if _here(asked):
        return import_module(f"{home}.{name}")
    family = asked.rpartition(".")[0]
    said = missing(family, name, always=name in names().get(family, {}) or name in names("+").get(family, {}))
    raise AttributeError(f"module {home!r} has no attribute {name!r}{said}", name=name, obj=sys.modules[home])


def _here(module: str) -> dict[str, str]:
    """The names of a module of PyTorch's that are here, each with the family that has it.

    None of one that lies beside a function of its name, which it would stand in place of: ``nn.utils.weight_norm``.
    """
    family, _, last = module.rpartition(".")
    if names().get(family, {}).get(last):
        return {}
    homes = {name: home for name, home in names("+").get(module, {}).items() if home.strip(".")}
    return {name: home for name, home in homes.items() if hasattr(place_of(home), name)}


class _Loader(Loader):
    """Makes a module of what is here."""

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave that to Python."""

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its names."""
        asked = module.__name__.replace("minigrad", "torch", 1)
        found = {name: getattr(place_of(home), name) for name, home in _here(asked).items()}
        module.__doc__ = f"What is here of PyTorch's ``{asked}``."
        vars(module).update(found, __all__=sorted(found), __getattr__=lambda name: absent(module.__name__, name))
