"""Snapshots: strings that describe an object, so that two worlds can be compared."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import minigrad as mg
from adversary import Probe

__all__ = ["difference", "snapshot"]

ATOMS = (bool, int, float, complex, str, bytes, bytearray, type(None), range, slice, mg.DType, mg.device)


def snapshot(x: Any, *, state: bool) -> dict[str, str]:
    """Return a string for each part of `x`, by its path: type, dtype, shape and elements bit for bit.

    Tensors that are `state` include `requires_grad` and `grad`; the results of a step have no graph and no gradients.
    """
    entries: dict[str, str] = {}
    _add(entries, x, "", state, {})
    return entries


def difference(plain: Mapping[str, str], jitted: Mapping[str, str]) -> str:
    """Describe the first difference of two snapshots; return "" if there is none."""
    if plain == jitted:
        return ""
    for path in [*plain, *jitted]:
        a, b = plain.get(path, "nothing"), jitted.get(path, "nothing")
        if a != b:
            return f"{path or 'the result'}: {b[:160]}, but {a[:160]} in the plain function"
    return ""


def _add(entries: dict[str, str], x: Any, path: str, state: bool, paths_by_id: dict[int, str]) -> None:
    if isinstance(x, ATOMS):
        entries[path] = f"{type(x).__name__} {x!r}"
    elif isinstance(x, mg.Tensor):
        entries[path] = f"tensor {x.dtype.name} {tuple(x.shape)} on {x.device}: {x.detach().tolist()!r}"
        if state:
            entries[f"{path}.requires_grad"] = repr(x.requires_grad)
            _add(entries, x._grad, f"{path}.grad", False, paths_by_id)
    elif isinstance(x, np.ndarray | np.generic):
        entries[path] = f"{type(x).__name__} {x.dtype} {x.shape} {x.tolist()!r}"
    elif id(x) in paths_by_id:
        entries[path] = f"the same as {paths_by_id[id(x)]}"
    else:
        paths_by_id[id(x)] = path
        entries[path] = f"{type(x).__name__} {getattr(x, '__qualname__', '')}".strip()
        for key, part in _parts(x).items():
            _add(entries, part, f"{path}[{key}]" if isinstance(key, int) else f"{path}.{key}", state, paths_by_id)
        if not state:  # for results only the values matter, not whether parts are the same object
            del paths_by_id[id(x)]


def _parts(x: Any) -> Mapping[Any, Any]:
    """Return the parts of an object, by name or by position."""
    if isinstance(x, Probe):
        return {"now": x.read()}
    if isinstance(x, mg.Value):
        return {"data": x.data, "grad": x.grad}
    if isinstance(x, mg.nn.Module):
        return vars(x)
    if isinstance(x, mg.Generator):
        return {"seed": x._seed, "drawn": x._offset}
    if isinstance(x, mg.optim.Optimizer):
        parameters = [p for group in x.param_groups for p in group["params"]]
        states = {f"state[{k}]": x.state.get(p) for k, p in enumerate(parameters)}
        return {"groups": x.param_groups, "steps": x.steps, **states, "defaults": x.defaults}
    if isinstance(x, Mapping):
        return {repr(key) if isinstance(key, ATOMS) else f"key {k}": one for k, (key, one) in enumerate(x.items())}
    if isinstance(x, set | frozenset):
        return dict(enumerate(sorted(x, key=repr)))
    if isinstance(x, Sequence | deque):
        return dict(enumerate(x))
    if callable(x):
        return {}
    slots = [one for kind in type(x).__mro__ for one in getattr(kind, "__slots__", ())]
    return {one: getattr(x, one) for one in slots if hasattr(x, one)} | getattr(x, "__dict__", {})
