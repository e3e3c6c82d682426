"""Hooks of `Optimizer.step`, `state_dict` and `load_state_dict`, with PyTorch's names."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from minigrad.core.errors import DTypeError, a_kind, check_function
from minigrad.core.tensor import RemovableHandle

__all__ = [
    "Hooked",
    "everywhere",
    "hooked",
    "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
]

Hook = Callable[..., Any]
KINDS = ("before", "after", "saving", "saved", "loading", "loaded")
_NONE: Mapping[str, dict[Any, Hook]] = {name: {} for name in KINDS}  # the hooks of an optimizer without any
everywhere: dict[str, dict[Any, Hook]] = {"before": {}, "after": {}}  # the hooks of all optimizers


class _Here(threading.local):
    def __init__(self) -> None:
        self.stepping: set[int] = set()  # ids of the optimizers whose step this thread runs


_here = _Here()


def _registered(hooks: dict[Any, Hook], hook: Hook, prepend: bool = False) -> RemovableHandle:
    """Add `hook` after the existing ones, or before them if `prepend`. Raises DTypeError unless it is callable."""
    check_function(hook, "hook")
    others = dict(hooks)
    if prepend:
        hooks.clear()
    handle = RemovableHandle(hooks, hook)
    hooks.update(others)
    return handle


def register_optimizer_step_pre_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` before each step of every optimizer; see `register_step_pre_hook`."""
    return _registered(everywhere["before"], hook)


def register_optimizer_step_post_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` after each step of every optimizer."""
    return _registered(everywhere["after"], hook)


class Hooked:
    """Mixin of `Optimizer` with its hooks. Each method registers one and returns a handle that removes it."""

    _hooks: Mapping[str, dict[Any, Hook]] = _NONE

    def _table(self, kind: str) -> dict[Any, Hook]:
        if self._hooks is _NONE:
            self._hooks = {name: {} for name in KINDS}
        return self._hooks[kind]

    def register_step_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step; it may return modified ``(args, kwargs)``."""
        return _registered(self._table("before"), hook)

    def register_step_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return _registered(self._table("after"), hook)

    def register_state_dict_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` before `state_dict` collects the state."""
        return _registered(self._table("saving"), hook, prepend)

    def register_state_dict_post_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` with the result of `state_dict`; it may return a replacement."""
        return _registered(self._table("saved"), hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` before loading; it may return a replacement."""
        return _registered(self._table("loading"), hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` after loading."""
        return _registered(self._table("loaded"), hook, prepend)

    def _called(self, kind: str, *state: Any) -> Any:
        """Run the hooks of one kind, each of which may replace the state, and return it."""
        for hook in tuple(self._hooks[kind].values()):
            found = hook(self, *state)
            if state and found is not None:
                state = (found,)
        return state[0] if state else None


def hooked(step: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the `step` method of an optimizer to run the registered hooks, once per step."""

    before, after = everywhere["before"], everywhere["after"]

    @wraps(step)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if id(self) in _here.stepping or (self._hooks is _NONE and not before and not after):
            return step(self, *args, **kwargs)
        own = self._hooks
        _here.stepping.add(id(self))  # a step that calls super().step() counts once
        try:
            for hook in (*before.values(), *own["before"].values()):
                found = hook(self, args, kwargs)
                if found is not None:
                    if not isinstance(found, tuple) or len(found) != 2:
                        raise DTypeError(
                            f"{type(self).__name__}.step: a pre hook must return None or a tuple of (new_args, "
                            f"new_kwargs), but got {a_kind(found)}."
                        )
                    args, kwargs = found
                    args = args[1:] if args[:1] == (self,) else args
            result = step(self, *args, **kwargs)
            for hook in (*own["after"].values(), *after.values()):
                hook(self, args, kwargs)
            return result
        finally:
            _here.stepping.remove(id(self))

    return run
