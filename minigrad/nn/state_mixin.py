"""Saving and loading of module state, with PyTorch's extension points for subclasses and hooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from minigrad.core.tensor import RemovableHandle, Tensor
from minigrad.nn.hooks import add_hook
from minigrad.nn.state import (
    IncompatibleKeys,
    StateDict,
    collect_state,
    get_extra_state,
    load_own_state,
    load_state,
    save_own_state,
    set_extra_state,
)

__all__ = ["StateMixin"]


class StateMixin:
    """Mixin of `Module` with `state_dict`, `load_state_dict` and their hooks."""

    _version: int = 1
    """Version of the format of the state. A subclass that changes the format increments the version."""

    get_extra_state, set_extra_state = get_extra_state, set_extra_state
    _save_to_state_dict, _load_from_state_dict = save_own_state, load_own_state

    def state_dict(
        self, *, destination: dict[str, Any] | None = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Tensor]:
        """Return the parameters and persistent buffers by name. They share memory with the module.

        Clone the tensors to take a snapshot. They are detached unless `keep_vars`, and added to `destination` if given.
        The return value of a module's `get_extra_state` is stored as "_extra_state". If any module has a `_version`
        other than 1, the dict records the versions in `_metadata`.
        """
        module: Any = self
        versions = destination is None and any(
            submodule._version != StateMixin._version for submodule in module.modules()
        )
        result_dict: dict[str, Any] = (StateDict() if versions else {}) if destination is None else destination
        state: dict[str, Any] = collect_state(self, result_dict, prefix, keep_vars)
        return state

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy the tensors of `state_dict` into the parameters and buffers, converting their dtypes and devices.

        All keys are checked before anything is written. Raises ArgumentError for missing or unexpected keys (ignored
        unless `strict`), ShapeError if only sizes mismatch, DTypeError for a value that is not a tensor. NumPy arrays
        and PyTorch tensors are accepted.

        With `assign` each tensor of `state_dict` becomes the parameter or buffer itself, with its own dtype, device and
        memory. An existing optimizer still refers to the old parameters.

        >>> import minigrad as mg
        >>> mg.nn.Linear(2, 1).load_state_dict(mg.nn.Linear(2, 1).state_dict())
        <All keys matched successfully>
        """
        return load_state(self, state_dict, strict, assign)

    def _register_state_hook(self, kind: str, hook: Callable[..., Any], flag: bool) -> RemovableHandle:
        return add_hook(self.__dict__.setdefault("_state_hooks", {}).setdefault(kind, {}), hook, flag, False)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before `state_dict` collects the state."""
        return self._register_state_hook("saving", hook, False)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after `state_dict`. It may modify the dict."""
        return self._register_state_hook("saved", hook, False)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        return self._register_state_hook("saved", hook, True)  # the hook may return a replacement

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook` before loading; it may modify `state_dict` in place, for example to rename keys.

        ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)``
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        return self._register_state_hook("loading", hook, with_module)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after loading; it may modify the lists of keys in place."""
        return self._register_state_hook("loaded", hook, False)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the attributes of a copy or pickle. Override this method to upgrade older versions."""
        self.__dict__.update(state)
