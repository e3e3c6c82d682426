"""What is called beside `Optimizer.step`, `state_dict` and `load_state_dict`: hooks, with PyTorch's names."""

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
_NONE: Mapping[str, dict[Any, Hook]] = {name: {} for name in KINDS}  # those of an optimizer that never had one
everywhere: dict[str, dict[Any, Hook]] = {"before": {}, "after": {}}  # the hooks of all optimizers


class _Here(threading.local):
    def __init__(self) -> None:
        self.stepping: set[int] = set()  # ids of the optimizers whose step this thread runs


_here = _Here()


def _registered(hooks: dict[Any, Hook], hook: Hook, prepend: bool = False) -> RemovableHandle:
    """Add a hook after the others, or before them. Raises DTypeError for what cannot be called."""
    check_function(hook, "hook")
    others = dict(hooks)
    if prepend:
        hooks.clear()
    handle = RemovableHandle(hooks, hook)
    hooks.update(others)
    return handle


def register_optimizer_step_pre_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` before each step of every optimizer, as `register_step_pre_hook`."""
    return _registered(everywhere["before"], hook)


def register_optimizer_step_post_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` after each step of every optimizer."""
    return _registered(everywhere["after"], hook)


class Hooked:
    """The hooks of an optimizer: each is registered by a method, whose handle removes it."""

    _hooks: Mapping[str, dict[Any, Hook]] = _NONE

    def _table(self, kind: str) -> dict[Any, Hook]:
        if self._hooks is _NONE:
            self._hooks = {name: {} for name in KINDS}
        return self._hooks[kind]

    def register_step_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step; it may return other ``(args, kwargs)``."""
        return _registered(self._table("before"), hook)

    def register_step_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return _registered(self._table("after"), hook)

    def register_state_dict_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` before `state_dict` gathers what is remembered."""
        return _registered(self._table("saving"), hook, prepend)

    def register_state_dict_post_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` on what `state_dict` returns; it may return another."""
        return _registered(self._table("saved"), hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` before a state is loaded; it may return another."""
        return _registered(self._table("loading"), hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` after a state was loaded."""
        return _registered(self._table("loaded"), hook, prepend)

    def _called(self, kind: str, *state: Any) -> Any:
        """The state after the hooks of this kind, each of which may return another."""
        for hook in tuple(self._hooks[kind].values()):
            found = hook(self, *state)
            if state and found is not None:
                state = (found,)
        return state[0] if state else None


def hooked(step: Callable[..., Any]) -> Callable[..., Any]:
    """`step`, the method of an optimizer, with the hooks that were registered called around it, once a step."""

    before, after = everywhere["before"], everywhere["after"]

    @wraps(step)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if id(self) in _here.stepping or (self._hooks is _NONE and not before and not after):
            return step(self, *args, **kwargs)
        own = self._hooks
        _here.stepping.add(id(self))  # a step that calls super().step() is one
        try:
            for hook in (*before.values(), *own["before"].values()):
                found = hook(self, args, kwargs)
                if found is not None:
                    if not isinstance(found, tuple) or len(found) != 2:
                        raise DTypeError(
                            f"{type(self).__name__}.step: a hook before it returned {a_kind(found)}, and it returns "
                            "None or a tuple (args, kwargs)."
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
