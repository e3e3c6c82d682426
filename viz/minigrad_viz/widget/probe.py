"""Hooks on a model for one training step: they capture layer outputs and gradients, and the ReLUs after the layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import minigrad as mg
from minigrad.core.dispatch import untapped
from minigrad.core.snapshot import record_of
from minigrad.core.step import Step
from minigrad_viz.trace.calls import instances_in

__all__ = ["Probe"]

_SAMPLE = 256  # elements sampled per tensor, for its histogram
_DEAD = ("ReluBackward", "Relu6Backward")  # operations with entire units at 0, through which no gradient flows


class Probe:
    """Captures the next step: outputs of `layers` and their gradients by hooks, and the weights before it; if the
    optimizer `stepped`, also the gradients it has used.
    """

    def __init__(self, model: Any, layers: Sequence[tuple[str, Any]], stepped: bool = False) -> None:
        self.stale: set[int] = set()
        """Rows of the layers whose gradients accumulate into those of the previous step."""
        self._handles: list[Any] = []
        self._caught: dict[tuple[int, str], Any] = {}
        self._old: dict[int, Any] = {}
        self._kept: dict[int, list[tuple[Any, Any, int]]] = {}  # gradients of the previous step, with their versions
        self._calls = _Calls()
        rows = {module: k for k, (_, module) in enumerate(layers)}
        inside = {part for module in rows for part in module.modules()} - set(rows)
        with mg.no_grad(), untapped():
            for module in set(model.modules()) - inside:
                self._handles.append(module.register_forward_hook(self._calls.hook(rows.get(module))))
            for k, (_, module) in enumerate(layers):
                self._handles.append(module.register_forward_hook(self._hook(k)))
                own = [p for p in module._parameters.values() if p is not None]
                self._old[k] = [(p, p.detach().clone()) for p in own]
                if stepped:
                    self._kept[k] = [(p, p.grad, p.grad._version) for p in own if p.grad is not None]

    def remove(self) -> None:
        """Remove the hooks, and release what they captured: an output's hook lives as long as its graph."""
        for handle in self._handles:
            handle.remove()
        self._caught.clear()
        self._old.clear()
        self._kept.clear()
        self._calls = _Calls()

    def _hook(self, k: int) -> Callable[..., None]:
        def caught(module: Any, args: Any, output: Any) -> None:
            y = output[0] if isinstance(output, tuple) and output else output
            if isinstance(y, mg.Tensor) and y.requires_grad and y.dtype.is_floating_point and mg.is_grad_enabled():
                self._caught[k, "values"] = y.detach()
                y.register_hook(lambda gradient: self._arrive(k, gradient))

        return caught

    def _arrive(self, k: int, gradient: Any) -> None:
        """Capture the gradient of an output, before the gradients of the layer's parameters are accumulated."""
        self._caught[k, "gradients"] = gradient.detach()
        if any(p.grad is kept and kept._version == version for p, kept, version in self._kept.get(k, ())):
            self.stale.add(k)

    @property
    def rectified(self) -> dict[int, Any]:
        """By row, the output of the last ReLU in that layer, or after it."""
        return self._calls.rectified

    @property
    def order(self) -> list[int]:
        """The rows of the layers in call order."""
        return [k for k, what in self._caught if what == "values"]

    def parts(self) -> tuple[list[tuple[int, str, Any]], dict[int, int]]:
        """Return the measurements, each as row, kind and vector; and by row the element count of the gradients."""
        parts: list[tuple[int, str, Any]] = []
        counts: dict[int, int] = {}
        for (k, what), x in self._caught.items():
            parts += [(k, what, x.reshape(-1)[:: _stride(x.numel())])] if x.numel() else []
        for k, y in self.rectified.items():
            units = y.amax(tuple(d for d in range(y.ndim) if d != (1 if y.ndim == 4 else y.ndim - 1)))
            parts.append((k, "dead", (units == 0).to(y.dtype).mean().reshape(1)))
        for k, known in self._old.items():
            for p, old in known:
                if p.grad is not None:
                    moved = ("gradient", p.grad), ("update", p - old), ("weight", old)
                    parts += [(k, what, (x * x).sum().reshape(1)) for what, x in moved]
                    counts[k] = counts.get(k, 0) + p.numel()
        return parts, counts


class _Calls:
    """Tracks which layer each ReLU of one step follows.

    A ReLU is detected as an operation, whoever calls it. When a module call ends, the steps created since the previous
    call are visited, each once.
    """

    def __init__(self) -> None:
        self.rectified: dict[int, Any] = {}
        """By row, the output of the last ReLU in that layer, or after it."""
        self._rows: list[int] = []  # by call of a layer
        self._after: dict[Any, int] = {}  # by step, the last call before it, or -1

    def hook(self, row: int | None) -> Callable[..., None]:
        """Return a forward hook for a module, which has a `row` in the picture or None."""

        def called(module: Any, args: Any, output: Any) -> None:
            if row is None:
                self._go_through(_steps_of(output))
                return
            self._go_through(_steps_of(args))
            self._rows.append(row)
            here, ends = len(self._rows) - 1, _steps_of(output)
            self._go_through(ends, here)
            self._after.update(dict.fromkeys(ends, here))  # also if a layer returns its input

        return called

    def _go_through(self, ends: list[Any], call: int | None = None) -> None:
        """Visit the new steps that lead to `ends`: created by this `call`, or between calls."""
        stack = [(step, False) for step in ends]
        while stack:
            step, ready = stack.pop()
            if step in self._after:
                continue
            if not ready:
                stack.append((step, True))
                stack += [(one, False) for one in step.next_functions if isinstance(one, Step)]
                continue
            before = max((self._after.get(one, -1) for one in step.next_functions), default=-1)
            self._after[step] = before if call is None else call
            self._look(step)

    def _look(self, step: Any) -> None:
        if step.name in _DEAD and self._after[step] >= 0 and (saved := record_of(step).saved) is not None:
            y = saved[0]
            if y.ndim > 1:
                self.rectified[self._rows[self._after[step]]] = y.detach()


def _steps_of(x: Any) -> list[Any]:
    """Return the steps that computed the tensors in a module's arguments or output."""
    return [one.grad_fn for one in instances_in(x, mg.Tensor) if one.grad_fn is not None]


def _stride(size: int) -> int:
    """Return a sampling step coprime to `size`, so that every index along each side of the tensor is sampled.

    >>> _stride(100), _stride(32 * 16 * 64)
    (1, 129)
    """
    step = -(-size // _SAMPLE)
    while math.gcd(step, size) > 1:
        step += 1
    return step
