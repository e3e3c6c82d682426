"""Records of the recent cache misses of a step, and a single warning about their cause."""

from __future__ import annotations

import warnings
from collections import Counter, deque
from typing import Any, NamedTuple

from minigrad.compiler.jit.arguments import Arguments
from minigrad.core.symbolic import SymbolicScalar
from minigrad.core.tensor import Tensor

__all__ = ["CacheMisses"]


class _CacheMiss(NamedTuple):
    """Cache miss, with the (kind, description) of each argument leaf by path, and the reason for tracing."""

    leaves: dict[str, tuple[str, str]]
    reason: str


class CacheMisses:
    """The last cache misses of the step `name`, stored as strings so that no argument is kept alive."""

    def __init__(self, name: str, max_traces: int) -> None:
        self._name, self._max_traces = name, max_traces
        self._last: deque[_CacheMiss] = deque(maxlen=max_traces + 1)
        self._warned = False

    def add(self, call: Arguments, reason: str) -> None:
        """Record that the step was traced for this call, and why."""
        if not self._warned:
            leaves = {path: _describe_leaf(x) for path, x in zip(call.paths, call.leaves, strict=True)}
            self._last.append(_CacheMiss(leaves, reason))

    def warn(self) -> None:
        """Warn, once, that the cache of traces is full, and name the argument or guard that keeps changing."""
        if not self._warned:
            self._warned = True
            message = (
                f"jit: {self._name} was traced {self._describe_cause()}\n"
                f"  The cache holds the last {self._max_traces} traces used (max_traces={self._max_traces}); a retrace "
                "takes longer than to call the function."
            )
            self._last.clear()
            warnings.warn(message, UserWarning, stacklevel=5)

    def _describe_cause(self) -> str:
        guards = Counter([miss.reason for miss in self._last if not miss.reason.startswith("the first call")])
        paths = dict.fromkeys([path for miss in self._last for path in miss.leaves])
        values = {path: dict.fromkeys([miss.leaves.get(path, _ABSENT) for miss in self._last]) for path in paths}
        changing = {
            path: leaf_values
            for path, leaf_values in values.items()
            if next(iter(leaf_values))[0] != "float" or any(f"`{path}`" in reason for reason in guards)
        }
        path = max(changing, key=lambda path: len(changing[path]), default="")
        count = len(changing.get(path, ()))
        if count > sum(guards.values()):
            kinds = [kind for kind, _ in changing[path]]
            kind = next((kind for kind in _ADVICE if kind in kinds), "value")
            examples = ", ".join([value for _, value in changing[path]][-3:])
            noun, advice = _ADVICE[kind]
            return f"for {count} different {noun} of the argument `{path}` (…, {examples}). {advice}"
        last = self._last[-1].reason
        frequency = f"{len(self._last)} times, the last time because "
        return f"{frequency}{last}. Keep it unchanged between calls, or make it an argument, a float or a tensor."


_ABSENT = "structure", "absent"
_ADVICE = {
    "structure": ("structures", "Use containers of one structure."),
    "shape": ("shapes", "Pad tensors to a few shapes; a data loader drops a smaller last batch with drop_last=True."),
    "object": ("objects", "Pass the same object each time, or the tensors and floats that the step needs from it."),
    "float": (
        "values",
        "The step reads the value, by `if`, float() or math: use mg.where or operators, or pass a tensor.",
    ),
    "value": ("values", "A float or a tensor does not retrace; pass one if the step computes with the value."),
}


def _describe_leaf(x: Any) -> tuple[str, str]:
    if isinstance(x, Tensor):
        return "shape", f"{x.dtype.name}{list(x.shape)}{' that requires grad' if x.requires_grad else ''}"
    if type(x) is SymbolicScalar:
        return "float", repr(x.value)
    kind: Any = type(x)
    if hasattr(x, "__dict__") or kind.__repr__ is object.__repr__:
        return "object", f"<{type(x).__name__} at {id(x):#x}>"
    return "value", f"{x!r:.60}"
