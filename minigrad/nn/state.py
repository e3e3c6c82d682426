"""What a module has learned, by name: read all of it, check all of it, and only then write it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from minigrad._tensor import Tensor
from minigrad.creation import as_tensor
from minigrad.errors import ArgumentError, DTypeError, MinigradError, ShapeError, a_kind
from minigrad.graph import no_grad

__all__ = ["IncompatibleKeys", "load", "slots"]


class IncompatibleKeys(NamedTuple):
    """What a state lacked, and what it had too much."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


def slots(module: Any, prefix: str = "") -> dict[str, Tensor]:
    """The parameters and persistent buffers of a module and of those in it, by their keys, in PyTorch's order."""
    found = {f"{prefix}{name}": x for name, x in module._parameters.items() if x is not None}
    for name, x in module._buffers.items():
        if x is not None and name not in module._transient:
            found[f"{prefix}{name}"] = x
    for name, child in module._modules.items():
        if child is not None:
            found |= slots(child, f"{prefix}{name}.")
    return found


def load(module: Any, state: Mapping[str, Any], strict: bool) -> IncompatibleKeys:
    """Write `state` into `module`; raise, before anything is written, where it does not fit."""
    if not isinstance(state, Mapping):
        raise DTypeError(
            f"load_state_dict: it takes a dict of names and tensors, not {a_kind(state)}.\n"
            "  Another module's is other.state_dict()."
        )
    here = slots(module)
    missing = [name for name in here if name not in state]
    unexpected = [name for name in state if name not in here]
    new, wrong = {}, []
    for name, x in here.items():
        if name in state:
            new[name] = value = _tensor(name, state[name])
            if value.shape != x.shape:
                wrong.append(f"{name} is {x.shape}, and the state has {value.shape}")
    if wrong or (strict and (missing or unexpected)):
        raise _misfit(module, missing if strict else [], unexpected if strict else [], wrong)
    with no_grad():
        for name, value in new.items():
            new[name] = value.detach().to(dtype=here[name].dtype, device=here[name].device)
        for name, value in new.items():
            here[name].copy_(value)
    return IncompatibleKeys(missing, unexpected)


def _tensor(name: str, x: Any) -> Tensor:
    """`x`, a tensor of ours or of who shares its numbers."""
    if isinstance(x, Tensor):
        return x
    try:
        return as_tensor(x.detach().cpu().numpy() if hasattr(x, "detach") else x)
    except (MinigradError, TypeError, ValueError):
        raise DTypeError(f"load_state_dict: {name} is {a_kind(x)} in the state, not a tensor.") from None


def _misfit(module: Any, missing: list[str], unexpected: list[str], wrong: list[str]) -> MinigradError:
    lines = [f"load_state_dict: this state does not fit {type(module).__name__}; nothing was changed."]
    if missing:
        lines.append(f"  The state lacks {_listed(missing)}.")
    if unexpected:
        lines.append(f"  The module has no {_listed([_guessed(name, missing) for name in unexpected])}.")
    if wrong:
        lines.append(f"  Shapes differ: {_listed(wrong)}.")
    prefix = _prefix(missing, unexpected)
    if prefix:
        lines.append(f"  All names in the state begin with {prefix!r}: take it off with name.removeprefix({prefix!r}).")
    elif missing or unexpected:
        lines.append("  With strict=False what is missing stays as it is, and what is too much is left out.")
    return (ArgumentError if missing or unexpected else ShapeError)("\n".join(lines))


def _guessed(name: str, missing: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, missing, 1, 0.8)
    return f"{name} (did you mean {near[0]}?)" if near else name


def _prefix(missing: Sequence[str], unexpected: Sequence[str]) -> str:
    """What stands in front of each name of the state, where that is all that is wrong."""
    if not missing or len(missing) != len(unexpected) or not unexpected[0].endswith(missing[0]):
        return ""
    prefix = unexpected[0].removesuffix(missing[0])
    return prefix if [prefix + name for name in missing] == list(unexpected) else ""


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:8])
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"
