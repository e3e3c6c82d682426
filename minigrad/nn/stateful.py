"""Stateful: how subclasses and hooks of a module take part when its state is saved and loaded. Names are PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minigrad.core.tensor import RemovableHandle
from minigrad.nn.hooks import added
from minigrad.nn.state import get_extra_state, load_one, save_one, set_extra_state

__all__ = ["Stateful"]


class Stateful:
    """What a module may write of its own, and the hooks that it may have, for `state_dict` and `load_state_dict`."""

    _version: int = 1
    """The version of the form of its state, which a subclass that changes the form counts up."""

    get_extra_state, set_extra_state = get_extra_state, set_extra_state
    _save_to_state_dict, _load_from_state_dict = save_one, load_one

    def _state_hook(self, kind: str, hook: Callable[..., Any], flag: bool) -> RemovableHandle:
        return added(self.__dict__.setdefault("_state_hooks", {}).setdefault(kind, {}), hook, flag, False)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before `state_dict` gathers what is in the module."""
        return self._state_hook("saving", hook, False)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after `state_dict`; it may change that in place."""
        return self._state_hook("saved", hook, False)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        return self._state_hook("saved", hook, True)  # it may return another dict

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)``
        before the module is loaded; it may change `state_dict` in place, to rename keys, say."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        return self._state_hook("loading", hook, with_module)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after the module was loaded; it may change the lists of keys."""
        return self._state_hook("loaded", hook, False)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over the attributes of a copy or a pickle; a subclass may complete those of an older one."""
        self.__dict__.update(state)
