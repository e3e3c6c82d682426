"""Stateful: how subclasses and hooks of a module take part when its state is saved and loaded. Names are PyTorch's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from minigrad.core.tensor import RemovableHandle, Tensor
from minigrad.nn.hooks import added
from minigrad.nn.state import (
    IncompatibleKeys,
    StateDict,
    get_extra_state,
    load,
    load_one,
    save,
    save_one,
    set_extra_state,
)

__all__ = ["Stateful"]


class Stateful:
    """What a module may write of its own, and the hooks that it may have, for `state_dict` and `load_state_dict`."""

    _version: int = 1
    """The version of the form of its state, which a subclass that changes the form counts up."""

    get_extra_state, set_extra_state = get_extra_state, set_extra_state
    _save_to_state_dict, _load_from_state_dict = save_one, load_one

    def state_dict(
        self, *, destination: dict[str, Any] | None = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Tensor]:
        """The parameters and persistent buffers by name. They share memory with the module: copy what is to stay.

        They are outside the graph unless `keep_vars`; they are put into `destination` if given. What a module returns
        from `get_extra_state` is there as "_extra_state". Where one has a `_version` other than 1, `_metadata` of the
        dict has the versions.
        """
        module: Any = self
        versions = destination is None and any(part._version != Stateful._version for part in module.modules())
        into: dict[str, Any] = (StateDict() if versions else {}) if destination is None else destination
        found: dict[str, Any] = save(self, into, prefix, keep_vars)
        return found

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Overwrite parameters and buffers by the tensors of `state_dict`, converted to their types and devices.

        Everything is checked before anything is written: ArgumentError tells, all at once, of names that are missing or
        too many (left alone without `strict`) and shapes that differ, ShapeError where shapes alone do, and DTypeError
        of what is no tensor. Arrays of NumPy and tensors of PyTorch will do.

        With `assign` they are not overwritten but exchanged: each tensor of `state_dict` becomes the parameter or
        buffer, with its own type, device and memory. An optimizer that was made before has the old ones.

        >>> import minigrad as mg
        >>> mg.nn.Linear(2, 1).load_state_dict(mg.nn.Linear(2, 1).state_dict())
        <All keys matched successfully>
        """
        return load(self, state_dict, strict, assign)

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
