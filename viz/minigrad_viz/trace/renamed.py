"""Old names of what a module has: each works for one release, and says what it is called now."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["renamed"]


def renamed(module: str, now: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of `module`, in which what had a name in `now` is called otherwise."""

    def find(name: str) -> Any:
        if name not in now:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        said = f"{module}.{name} is {now[name]} now; the old name goes with the next release."
        warnings.warn(said, DeprecationWarning, stacklevel=2)
        return getattr(sys.modules[module], now[name])

    return find
