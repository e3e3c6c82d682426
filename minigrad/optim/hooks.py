"""Hooks of `Optimizer.step`, `state_dict` and `load_state_dict`, with PyTorch's names."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from minigrad.core.errors import DTypeError, check_callable, describe_type
from minigrad.core.tensor import RemovableHandle

__all__ = [
    "OptimizerHooksMixin",
    "global_hooks",
    "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
    "with_step_hooks",
]

Hook = Callable[..., Any]
HOOK_KINDS = ("before", "after", "saving", "saved", "loading", "loaded")
_NO_HOOKS: Mapping[str, dict[Any, Hook]] = {name: {} for name in HOOK_KINDS}  # for an optimizer without hooks
global_hooks: dict[str, dict[Any, Hook]] = {"before": {}, "after": {}}  # hooks that run for every optimizer


class _ActiveSteps(threading.local):
    def __init__(self) -> None:
        self.stepping: set[int] = set()  # ids of the optimizers whose `step` is running in this thread


_active_steps = _ActiveSteps()


def _add_hook(hooks: dict[Any, Hook], hook: Hook, prepend: bool = False) -> RemovableHandle:
    """Add `hook` after the existing ones, or before them if `prepend`. Raises DTypeError unless it is callable."""
    check_callable(hook, "hook")
    existing = dict(hooks)
    if prepend:
        hooks.clear()
    handle = RemovableHandle(hooks, hook)
    hooks.update(existing)
    return handle


def register_optimizer_step_pre_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` before each step of every optimizer; see `register_step_pre_hook`."""
    return _add_hook(global_hooks["before"], hook)


def register_optimizer_step_post_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` after each step of every optimizer."""
    return _add_hook(global_hooks["after"], hook)


class OptimizerHooksMixin:
    """Mixin that adds hooks to `Optimizer`. Each method registers a hook and returns a handle that removes the hook."""

    _hooks: Mapping[str, dict[Any, Hook]] = _NO_HOOKS

    def _hooks_of_kind(self, kind: str) -> dict[Any, Hook]:
        if self._hooks is _NO_HOOKS:
            self._hooks = {name: {} for name in HOOK_KINDS}
        return self._hooks[kind]

    def register_step_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step. The hook may return new ``(args, kwargs)``."""
        return _add_hook(self._hooks_of_kind("before"), hook)

    def register_step_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return _add_hook(self._hooks_of_kind("after"), hook)

    def register_state_dict_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` before `state_dict` collects the state."""
        return _add_hook(self._hooks_of_kind("saving"), hook, prepend)

    def register_state_dict_post_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` with the result of `state_dict`. The hook may return a new dict."""
        return _add_hook(self._hooks_of_kind("saved"), hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` before loading. The hook may return a new dict."""
        return _add_hook(self._hooks_of_kind("loading"), hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` after loading."""
        return _add_hook(self._hooks_of_kind("loaded"), hook, prepend)

    def _run_hooks(self, kind: str, *state: Any) -> Any:
        """Run the hooks of one kind, each of which may replace the state, and return the resulting state."""
        for hook in tuple(self._hooks[kind].values()):
            result = hook(self, *state)
            if state and result is not None:
                state = (result,)
        return state[0] if state else None


def with_step_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the `step` method of an optimizer to run the registered hooks, once per step."""

    before, after = global_hooks["before"], global_hooks["after"]

    @wraps(step)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        if id(self) in _active_steps.stepping or (self._hooks is _NO_HOOKS and not before and not after):
            return step(self, *args, **kwargs)
        own_hooks = self._hooks
        _active_steps.stepping.add(id(self))  # hooks run only once if `step` calls super().step()
        try:
            for hook in (*before.values(), *own_hooks["before"].values()):
                replacement = hook(self, args, kwargs)
                if replacement is not None:
                    if not isinstance(replacement, tuple) or len(replacement) != 2:
                        raise DTypeError(
                            f"{type(self).__name__}.step: a pre hook must return None or a tuple of (new_args, "
                            f"new_kwargs), but got {describe_type(replacement)}."
                        )
                    args, kwargs = replacement
                    args = args[1:] if args[:1] == (self,) else args
            result = step(self, *args, **kwargs)
            for hook in (*own_hooks["after"].values(), *after.values()):
                hook(self, args, kwargs)
            return result
        finally:
            _active_steps.stepping.remove(id(self))

    return wrapper
