"""The state of modules, read and written in PyTorch's format; loading checks all of it before writing any.

Subclasses and hooks take part as in PyTorch: `get_extra_state`, `set_extra_state`, `_save_to_state_dict`,
`_load_from_state_dict`, `_version`, and overridden `state_dict` methods of submodules.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from minigrad.core.errors import ArgumentError, DTypeError, MinigradError, ShapeError, a_kind
from minigrad.core.grad_mode import no_grad
from minigrad.core.tensor import Tensor
from minigrad.functional.creation import as_tensor
from minigrad.nn.parameter import Parameter

__all__ = [
    "IncompatibleKeys",
    "StateDict",
    "get_extra_state",
    "has_own_way",
    "hooks_of",
    "load",
    "load_one",
    "save",
    "save_one",
    "set_extra_state",
    "slots",
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
    """A state dict with versions: `_metadata` maps the path of each module to its version."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._metadata: dict[str, dict[str, Any]] = {}


def slots(module: Any) -> dict[str, Tensor]:
    """Return the parameters and persistent buffers of `module` alone, in PyTorch's order."""
    named = [*module._parameters.items(), *[x for x in module._buffers.items() if x[0] not in module._transient]]
    return {name: x for name, x in named if x is not None}


def save(module: Any, into: Any, prefix: str, keep_vars: bool) -> Any:
    """Add the state of `module` and its descendants to `into`, running their hooks and overridden methods."""
    metadata = {"version": module._version}
    if hasattr(into, "_metadata"):
        into._metadata[prefix[:-1]] = metadata
    for hook, _ in hooks_of(module, "saving"):
        hook(module, prefix, keep_vars)
    module._save_to_state_dict(into, prefix, keep_vars)
    for name, child in module._modules.items():
        if child is not None:
            child.state_dict(destination=into, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    for hook, may_replace in hooks_of(module, "saved"):
        found = hook(module, into, prefix, metadata)
        if found is not None and not may_replace:
            raise DTypeError(f"state_dict: expected a post hook to return None, but got {a_kind(found)}.")
        into = into if found is None else found
    return into


def save_one(self: Any, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
    """Add the state of this module alone to `destination`. Override it to save more, or in another format."""
    for name, x in slots(self).items():
        destination[prefix + name] = x if keep_vars else x.detach()
    if type(self).get_extra_state is not get_extra_state:
        destination[f"{prefix}_extra_state"] = self.get_extra_state()


def get_extra_state(self: Any) -> Any:
    """Return additional state for `state_dict` to store as "_extra_state". Override it together with `set_extra_state`.

    `load_state_dict` passes the value to `set_extra_state`. `mg.save` supports tensors, Python scalars, strings, and
    dicts, lists and tuples of them.
    """
    raise RuntimeError(f"{type(self).__name__} overrides set_extra_state, so it must override get_extra_state too.")


def set_extra_state(self: Any, state: Any) -> None:
    """Restore the value that `get_extra_state` returned. Override it together with that."""
    raise RuntimeError(f"{type(self).__name__} overrides get_extra_state, so it must override set_extra_state too.")


def hooks_of(module: Any, kind: str) -> list[tuple[Any, bool]]:
    """Return the state hooks of one kind, each with the flag of its registration."""
    return list(module.__dict__.get("_state_hooks", {}).get(kind, {}).values())


def load(module: Any, state: Mapping[str, Any], strict: bool, assign: bool = False) -> IncompatibleKeys:
    """Copy `state` into `module`. Raises, before writing anything, if it does not match.

    Modules with hooks or overridden methods are written as they are visited, as in PyTorch; if the state does not
    match, parameters and buffers are restored.
    """
    if not isinstance(state, Mapping):
        raise DTypeError(
            f"load_state_dict: expected state_dict to be dict-like, but got {a_kind(state)}.\n"
            "  Write load_state_dict(other.state_dict())."
        )
    own = any(has_own_way(part) for part in module.modules())
    plan = _Plan(getattr(state, "_metadata", {}), assign, own)
    undo = [write for part in module.modules() for write in _undoing(part)] if own else []
    try:
        plan.load(module, dict(state), "")
        if plan.errors or (strict and (plan.keys.missing_keys or plan.keys.unexpected_keys)):
            raise _misfit(module, plan, strict)
    except BaseException:
        for write in undo:
            write()
        raise
    for write in plan.writes:
        write()
    return plan.keys


def _undoing(module: Any) -> list[Callable[[], Any]]:
    """Return callables that restore the current state of `module` alone."""
    writes: list[Callable[[], Any]] = []
    for name, x in slots(module).items():
        table = module._parameters if name in module._parameters else module._buffers
        writes += [partial(table.__setitem__, name, x), partial(_copy, x, x.detach().clone())]
    if type(module).set_extra_state is not set_extra_state and type(module).get_extra_state is not get_extra_state:
        writes.append(partial(module.set_extra_state, copy.deepcopy(module.get_extra_state())))
    return writes


def has_own_way(module: Any) -> bool:
    """Whether hooks or an overridden method take part in loading `module`."""
    own = type(module)._load_from_state_dict is not load_one
    return own or bool(hooks_of(module, "loading") or hooks_of(module, "loaded"))


class _Shapes(str):
    """An error message about a size mismatch."""


class _Plan:
    """One `load_state_dict` call: keys, errors, and the writes to run once everything has been checked."""

    def __init__(self, metadata: Mapping[str, Any], assign: bool, own: bool) -> None:
        self.metadata, self.assign, self.own = metadata, assign, own
        self.keys = IncompatibleKeys([], [])
        self.errors: list[str] = []
        self.writes: list[Callable[[], Any]] = []

    def load(self, module: Any, state: dict[str, Any], prefix: str) -> None:
        metadata = {**self.metadata.get(prefix[:-1], {}), "assign_to_params_buffers": self.assign}
        if not self.own:
            metadata["_writes"] = self.writes
        module._load_from_state_dict(
            state, prefix, metadata, True, self.keys.missing_keys, self.keys.unexpected_keys, self.errors
        )
        for name, child in module._modules.items():
            if child is not None:
                inner = f"{prefix}{name}."
                self.load(child, {key: x for key, x in state.items() if key.startswith(inner)}, inner)
        for hook, _ in hooks_of(module, "loaded"):
            if hook(module, self.keys) is not None:
                raise DTypeError(
                    "load_state_dict: a post hook must return None; it may modify the lists of keys in place."
                )


def load_one(
    self: Any,
    state_dict: dict[str, Any],
    prefix: str,
    local_metadata: dict[str, Any],
    strict: bool,
    missing_keys: list[str],
    unexpected_keys: list[str],
    error_msgs: list[str],
) -> None:
    """Check and load the entries of `state_dict` under `prefix` for this module alone, appending errors to the lists.

    Override it, as PyTorch's, to read states of another format.
    """
    for hook, with_module in hooks_of(self, "loading"):
        whose = (self,) if with_module else ()
        hook(*whose, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
    writes: list[Callable[[], Any]] = []
    known: dict[str, Any] = slots(self)
    for name, x in known.items():
        if (key := prefix + name) in state_dict:
            value = _tensor(key, state_dict[key])
            value = value[0] if x.shape == () and value.shape == (1,) else value  # PyTorch 0.3 saved scalars so
            if value.shape != x.shape:
                error_msgs.append(
                    _Shapes(f"size mismatch for {key}: {value.shape} in state_dict, {x.shape} in the module")
                )
            elif local_metadata.get("assign_to_params_buffers"):
                writes.append(partial(_assign, self, name, x, value))
            else:
                writes.append(partial(_copy, x, value.detach().to(dtype=x.dtype, device=x.device)))
        elif strict:
            missing_keys.append(key)
    extra = f"{prefix}_extra_state"
    if type(self).set_extra_state is not set_extra_state:
        if extra in state_dict:
            writes.append(partial(self.set_extra_state, state_dict[extra]))
        elif strict:
            missing_keys.append(extra)
        known |= {"_extra_state": None}
    if strict:
        inside = {name for name, child in self._modules.items() if child is not None}
        for key in state_dict:
            first, dot, _ = key.removeprefix(prefix).partition(".")
            if key.startswith(prefix) and first not in (inside if dot else known):
                unexpected_keys.append(key)
    deferred = local_metadata.get("_writes")
    if deferred is not None:
        deferred.extend(writes)
        return
    for write in writes:
        write()


def _copy(x: Tensor, value: Tensor) -> None:
    with no_grad():
        x.copy_(value)


def _assign(module: Any, name: str, x: Tensor, value: Tensor) -> None:
    if isinstance(x, Parameter):
        given = value if isinstance(value, Parameter) else Parameter(value, x.requires_grad)
        value = given.requires_grad_(x.requires_grad)
    setattr(module, name, value)


def _tensor(name: str, x: Any) -> Tensor:
    """Convert `x`, a tensor of either library or an array, to a tensor."""
    if isinstance(x, Tensor):
        return x
    try:
        return as_tensor(x.detach().cpu().numpy() if hasattr(x, "detach") else x)
    except (MinigradError, TypeError, ValueError):
        raise DTypeError(f"load_state_dict: expected a tensor for {name}, but got {a_kind(x)}.") from None


def _misfit(module: Any, plan: _Plan, strict: bool) -> MinigradError:
    missing, unexpected = plan.keys if strict else ([], [])
    wrong = plan.errors
    lines = [f"load_state_dict: error(s) in loading state_dict for {type(module).__name__}; nothing was changed."]
    if missing:
        lines.append(f"  Missing key(s) in state_dict: {_listed(missing)}.")
    if unexpected:
        lines.append(f"  Unexpected key(s) in state_dict: {_listed([_guessed(name, missing) for name in unexpected])}.")
    if shapes := [text for text in wrong if isinstance(text, _Shapes)]:
        lines.append(f"  {_listed(shapes)}.")
    lines += [f"  {text}" for text in wrong if not isinstance(text, _Shapes)]
    prefix = _prefix(missing, unexpected)
    if prefix:
        lines.append(f"  All keys in state_dict begin with {prefix!r}: remove it by key.removeprefix({prefix!r}).")
    elif missing or unexpected:
        lines.append("  strict=False ignores missing and unexpected keys.")
    return (ArgumentError if missing or unexpected else ShapeError)("\n".join(lines))


def _guessed(name: str, missing: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, missing, 1, 0.8)
    return f"{name} (did you mean {near[0]}?)" if near else name


def _prefix(missing: Sequence[str], unexpected: Sequence[str]) -> str:
    """Return the prefix of all unexpected keys, if removing it yields exactly the missing ones; else ""."""
    if not missing or len(missing) != len(unexpected) or not unexpected[0].endswith(missing[0]):
        return ""
    prefix = unexpected[0].removesuffix(missing[0])
    return prefix if [prefix + name for name in missing] == list(unexpected) else ""


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:8])
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"
