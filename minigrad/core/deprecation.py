"""Deprecated names. Each works for one release, and emits a warning with the new name."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["DeprecatedAlias", "deprecated_names"]


class DeprecatedAlias:
    """Descriptor for the old name of an attribute or method that is now called `new_name`. Each access emits a warning.

    >>> class Layer:
    ...     def reset(self):
    ...         return "reset"
    ...     restart = DeprecatedAlias("reset")
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # Layer.restart is deprecated …; use reset.
    ...     Layer().restart()
    'reset'
    """

    __slots__ = ("_name", "_new_name")

    def __init__(self, new_name: str) -> None:
        self._name, self._new_name = "", new_name

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = f"{owner.__name__}.{name}"

    def __get__(self, x: Any, owner: type | None = None) -> Any:
        if x is None:
            return self
        _warn_deprecated(self._name, self._new_name)
        return getattr(x, self._new_name)


def deprecated_names(module: str, new_names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for `module` that maps the deprecated names in `new_names` to their new names."""

    def getattr_deprecated(name: str) -> Any:
        if name not in new_names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        _warn_deprecated(f"{module}.{name}", new_names[name])
        return getattr(sys.modules[module], new_names[name])

    return getattr_deprecated


def _warn_deprecated(name: str, new_name: str) -> None:
    message = f"{name} is deprecated and will be removed in the next release; use {new_name}."
    warnings.warn(message, DeprecationWarning, stacklevel=3)
