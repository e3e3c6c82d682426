"""Hooks: functions of the user's that see a gradient and may replace it, and the handles that remove them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad.core.graph import Node
from minigrad.core.modes import modes
from minigrad.core.step import check_gradient
from minigrad.core.storage import copy_of

__all__ = ["RemovableHandle", "replaced_by"]


class RemovableHandle:
    """A hook that was registered, and how to remove it; as a context manager, at the end of the block."""

    def __init__(self, hooks: dict[Any, Any], hook: Callable[..., Any]) -> None:
        self._hooks, self._key = hooks, object()  # not itself: that would be a cycle, which keeps what a hook holds
        hooks[self._key] = hook

    def remove(self) -> None:
        """Never call the hook again."""
        self._hooks.pop(self._key, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def replaced_by(hook: Callable[[Any], Any], gradient: Any, wrap: Callable[[Any], Any]) -> Any:
    """What `hook` makes of a gradient, a tensor or a bare array, which `wrap` makes one; None: no change."""
    given: Any = gradient if isinstance(gradient, Node) else wrap(np.asanyarray(gradient))
    found = hook(given)
    if found is None:
        found = given
    else:
        check_gradient(found, given._array, "register_hook: what the hook returned", "the gradient")
    if modes.grad:  # it will be differentiated in turn
        return found
    fresh = copy_of(found._array)  # the hook may keep what it saw, and gradients are added to in place
    return wrap(fresh) if given is gradient else fresh
