"""Deprecated names of a module's attributes: each works for one release and warns with the new name."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["renamed"]


def renamed(module: str, now: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for `module` that maps the deprecated names in `now` to their new names."""

    def find(name: str) -> Any:
        if name not in now:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        said = f"{module}.{name} is deprecated and will be removed in the next release; use {now[name]}."
        warnings.warn(said, DeprecationWarning, stacklevel=2)
        return getattr(sys.modules[module], now[name])

    return find
