"""Hooks: user functions that receive a gradient and may replace it, and the handles that remove them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad.core.graph import Node
from minigrad.core.modes import modes
from minigrad.core.step import check_gradient
from minigrad.core.storage import copy_array

__all__ = ["RemovableHandle", "apply_hook"]


class RemovableHandle:
    """A handle that removes a hook. As a context manager it removes the hook on exit."""

    def __init__(self, hooks: dict[Any, Any], hook: Callable[..., Any]) -> None:
        self._hooks, self._key = hooks, object()  # `self` as the key would create a reference cycle
        hooks[self._key] = hook

    def remove(self) -> None:
        """Remove the hook."""
        self._hooks.pop(self._key, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def apply_hook(hook: Callable[[Any], Any], gradient: Any, wrap: Callable[[Any], Any]) -> Any:
    """Call `hook` with a gradient, which `wrap` converts to a tensor if it is raw.

    Return the result of the hook, or the gradient if the hook returns None.
    """
    tensor: Any = gradient if isinstance(gradient, Node) else wrap(np.asanyarray(gradient))
    result = hook(tensor)
    if result is None:
        result = tensor
    else:
        check_gradient(result, tensor._array, "register_hook: the result of the hook", "the gradient")
    if modes.grad:  # with create_graph, the result can be differentiated again
        return result
    copy = copy_array(result._array)  # copied, since the hook may store it and gradients accumulate in-place
    return wrap(copy) if tensor is gradient else copy
