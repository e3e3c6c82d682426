"""Save and load the state of modules in PyTorch's format. Loading checks all entries before it writes any.

Subclasses and hooks can customise both as in PyTorch: `get_extra_state`, `set_extra_state`, `_save_to_state_dict`,
`_load_from_state_dict`, `_version`, and overridden `state_dict` methods of submodules.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from minigrad.core.errors import ArgumentError, DTypeError, MinigradError, ShapeError, describe_type
from minigrad.core.grad_mode import no_grad
from minigrad.core.tensor import Tensor
from minigrad.functional.creation import as_tensor
from minigrad.nn.parameter import Parameter

__all__ = [
    "IncompatibleKeys",
    "StateDict",
    "collect_state",
    "get_extra_state",
    "load_own_state",
    "load_state",
    "overrides_loading",
    "save_own_state",
    "set_extra_state",
    "state_hooks",
    "state_tensors",
]


class IncompatibleKeys(NamedTuple):
    """The missing and unexpected keys of a `load_state_dict` call."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


class StateDict(dict[str, Any]):
    """A state dict with module versions. `_metadata` maps the path of each module to its version."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._metadata: dict[str, dict[str, Any]] = {}


def state_tensors(module: Any) -> dict[str, Tensor]:
    """Return the parameters and persistent buffers of `module`, without its children, in PyTorch's order."""
    tensors = [*module._parameters.items(), *[x for x in module._buffers.items() if x[0] not in module._transient]]
    return {name: x for name, x in tensors if x is not None}


def collect_state(module: Any, destination: Any, prefix: str, keep_vars: bool) -> Any:
    """Add the state of `module` and its descendants to `destination`, running their hooks and overridden methods."""
    metadata = {"version": module._version}
    if hasattr(destination, "_metadata"):
        destination._metadata[prefix[:-1]] = metadata
    for hook, _ in state_hooks(module, "saving"):
        hook(module, prefix, keep_vars)
    module._save_to_state_dict(destination, prefix, keep_vars)
    for name, child in module._modules.items():
        if child is not None:
            child.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    for hook, may_replace in state_hooks(module, "saved"):
        result = hook(module, destination, prefix, metadata)
        if result is not None and not may_replace:
            raise DTypeError(f"state_dict: expected a post hook to return None, but got {describe_type(result)}.")
        destination = destination if result is None else result
    return destination


def save_own_state(self: Any, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
    """Add the state of this module, without its children, to `destination`.

    Override this method to save more state, or to use another format.
    """
    for name, x in state_tensors(self).items():
        destination[prefix + name] = x if keep_vars else x.detach()
    if type(self).get_extra_state is not get_extra_state:
        destination[f"{prefix}_extra_state"] = self.get_extra_state()


def get_extra_state(self: Any) -> Any:
    """Return additional state for `state_dict` to store as "_extra_state". Override it together with `set_extra_state`.

    `load_state_dict` passes the value to `set_extra_state`. `mg.collect_state` supports tensors, Python scalars,
    strings, and dicts, lists and tuples of them.
    """
    raise RuntimeError(f"{type(self).__name__} overrides set_extra_state, so it must override get_extra_state too.")


def set_extra_state(self: Any, state: Any) -> None:
    """Restore the value that `get_extra_state` returned. Override both methods together."""
    raise RuntimeError(f"{type(self).__name__} overrides get_extra_state, so it must override set_extra_state too.")


def state_hooks(module: Any, kind: str) -> list[tuple[Any, bool]]:
    """Return the state hooks of one kind, each with the flag passed at its registration."""
    return list(module.__dict__.get("_state_hooks", {}).get(kind, {}).values())


def load_state(module: Any, state: Mapping[str, Any], strict: bool, assign: bool = False) -> IncompatibleKeys:
    """Copy `state` into `module`. If the state does not match, raise before writing anything.

    With hooks or overridden methods, modules are written as they are visited, as in PyTorch. If the state then does
    not match, parameters and buffers are restored.
    """
    if not isinstance(state, Mapping):
        raise DTypeError(
            f"load_state_dict: expected state_dict to be dict-like, but got {describe_type(state)}.\n"
            "  Write load_state_dict(other.state_dict())."
        )
    has_overrides = any(overrides_loading(submodule) for submodule in module.modules())
    plan = _LoadPlan(getattr(state, "_metadata", {}), assign, has_overrides)
    undo_writes = [write for part in module.modules() for write in _undo_writes(part)] if has_overrides else []
    try:
        plan.load(module, dict(state), "")
        if plan.errors or (strict and (plan.keys.missing_keys or plan.keys.unexpected_keys)):
            raise _mismatch_error(module, plan, strict)
    except BaseException:
        for write in undo_writes:
            write()
        raise
    for write in plan.writes:
        write()
    return plan.keys


def _undo_writes(module: Any) -> list[Callable[[], Any]]:
    """Return callables that restore the current state of `module`, without its children."""
    writes: list[Callable[[], Any]] = []
    for name, x in state_tensors(module).items():
        registry = module._parameters if name in module._parameters else module._buffers
        writes += [partial(registry.__setitem__, name, x), partial(_copy_value, x, x.detach().clone())]
    if type(module).set_extra_state is not set_extra_state and type(module).get_extra_state is not get_extra_state:
        writes.append(partial(module.set_extra_state, copy.deepcopy(module.get_extra_state())))
    return writes


def overrides_loading(module: Any) -> bool:
    """Return whether `module` has load hooks or overrides `_load_from_state_dict`."""
    overrides = type(module)._load_from_state_dict is not load_own_state
    return overrides or bool(state_hooks(module, "loading") or state_hooks(module, "loaded"))


class _SizeMismatch(str):
    """An error message about a size mismatch."""


class _LoadPlan:
    """State of a `load_state_dict` call: mismatched keys, errors, and the writes to run after all checks."""

    def __init__(self, metadata: Mapping[str, Any], assign: bool, has_overrides: bool) -> None:
        self.metadata, self.assign, self.has_overrides = metadata, assign, has_overrides
        self.keys = IncompatibleKeys([], [])
        self.errors: list[str] = []
        self.writes: list[Callable[[], Any]] = []

    def load(self, module: Any, state: dict[str, Any], prefix: str) -> None:
        metadata = {**self.metadata.get(prefix[:-1], {}), "assign_to_params_buffers": self.assign}
        if not self.has_overrides:
            metadata["_writes"] = self.writes
        module._load_from_state_dict(
            state, prefix, metadata, True, self.keys.missing_keys, self.keys.unexpected_keys, self.errors
        )
        for name, child in module._modules.items():
            if child is not None:
                child_prefix = f"{prefix}{name}."
                self.load(child, {key: x for key, x in state.items() if key.startswith(child_prefix)}, child_prefix)
        for hook, _ in state_hooks(module, "loaded"):
            if hook(module, self.keys) is not None:
                raise DTypeError(
                    "load_state_dict: a post hook must return None; it may modify the lists of keys in place."
                )


def load_own_state(
    self: Any,
    state_dict: dict[str, Any],
    prefix: str,
    local_metadata: dict[str, Any],
    strict: bool,
    missing_keys: list[str],
    unexpected_keys: list[str],
    error_msgs: list[str],
) -> None:
    """Check and load the entries of `state_dict` with `prefix` for this module, without its children.

    Errors are appended to the lists. Override this method, as in PyTorch, to load states in another format.
    """
    for hook, with_module in state_hooks(self, "loading"):
        module_args = (self,) if with_module else ()
        hook(*module_args, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
    writes: list[Callable[[], Any]] = []
    own_keys: dict[str, Any] = state_tensors(self)
    for name, x in own_keys.items():
        if (key := prefix + name) in state_dict:
            value = _as_state_tensor(key, state_dict[key])
            value = value[0] if x.shape == () and value.shape == (1,) else value  # PyTorch 0.3 saved scalars as (1,)
            if value.shape != x.shape:
                error_msgs.append(
                    _SizeMismatch(f"size mismatch for {key}: {value.shape} in state_dict, {x.shape} in the module")
                )
            elif local_metadata.get("assign_to_params_buffers"):
                writes.append(partial(_assign, self, name, x, value))
            else:
                writes.append(partial(_copy_value, x, value.detach().to(dtype=x.dtype, device=x.device)))
        elif strict:
            missing_keys.append(key)
    extra_key = f"{prefix}_extra_state"
    if type(self).set_extra_state is not set_extra_state:
        if extra_key in state_dict:
            writes.append(partial(self.set_extra_state, state_dict[extra_key]))
        elif strict:
            missing_keys.append(extra_key)
        own_keys |= {"_extra_state": None}
    if strict:
        child_names = {name for name, child in self._modules.items() if child is not None}
        for key in state_dict:
            top_name, dot, _ = key.removeprefix(prefix).partition(".")
            if key.startswith(prefix) and top_name not in (child_names if dot else own_keys):
                unexpected_keys.append(key)
    deferred = local_metadata.get("_writes")
    if deferred is not None:
        deferred.extend(writes)
        return
    for write in writes:
        write()


def _copy_value(x: Tensor, value: Tensor) -> None:
    with no_grad():
        x.copy_(value)


def _assign(module: Any, name: str, x: Tensor, value: Tensor) -> None:
    if isinstance(x, Parameter):
        parameter = value if isinstance(value, Parameter) else Parameter(value, x.requires_grad)
        value = parameter.requires_grad_(x.requires_grad)
    setattr(module, name, value)


def _as_state_tensor(name: str, x: Any) -> Tensor:
    """Convert `x`, a minigrad or PyTorch tensor or an array, to a tensor."""
    if isinstance(x, Tensor):
        return x
    try:
        return as_tensor(x.detach().cpu().numpy() if hasattr(x, "detach") else x)
    except (MinigradError, TypeError, ValueError):
        raise DTypeError(f"load_state_dict: expected a tensor for {name}, but got {describe_type(x)}.") from None


def _mismatch_error(module: Any, plan: _LoadPlan, strict: bool) -> MinigradError:
    missing, unexpected = plan.keys if strict else ([], [])
    errors = plan.errors
    lines = [f"load_state_dict: error(s) in loading state_dict for {type(module).__name__}; nothing was changed."]
    if missing:
        lines.append(f"  Missing key(s) in state_dict: {_join_names(missing)}.")
    if unexpected:
        lines.append(
            "  Unexpected key(s) in state_dict: "
            f"{_join_names([_with_suggestion(name, missing) for name in unexpected])}."
        )
    if size_mismatches := [message for message in errors if isinstance(message, _SizeMismatch)]:
        lines.append(f"  {_join_names(size_mismatches)}.")
    lines += [f"  {text}" for text in errors if not isinstance(text, _SizeMismatch)]
    prefix = _extra_prefix(missing, unexpected)
    if prefix:
        lines.append(f"  All keys in state_dict begin with {prefix!r}: remove it by key.removeprefix({prefix!r}).")
    elif missing or unexpected:
        lines.append("  strict=False ignores missing and unexpected keys.")
    return (ArgumentError if missing or unexpected else ShapeError)("\n".join(lines))


def _with_suggestion(name: str, missing: Sequence[str]) -> str:
    matches = difflib.get_close_matches(name, missing, 1, 0.8)
    return f"{name} (did you mean {matches[0]}?)" if matches else name


def _extra_prefix(missing: Sequence[str], unexpected: Sequence[str]) -> str:
    """Return the prefix that the unexpected keys have in addition to the missing keys, or "" if there is none."""
    if not missing or len(missing) != len(unexpected) or not unexpected[0].endswith(missing[0]):
        return ""
    prefix = unexpected[0].removesuffix(missing[0])
    return prefix if [prefix + name for name in missing] == list(unexpected) else ""


def _join_names(names: Sequence[str]) -> str:
    text = ", ".join(names[:8])
    return text if len(names) <= 8 else f"{text} and {len(names) - 8} more"
