"""Hooks that capture the outputs and gradients of layers, and the ReLUs after the layers, in one training step."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from minigrad_viz.trace.calls import instances_in
from minigrad_viz.trace.library import AutogradLibrary

__all__ = ["Probe"]

MAX_SAMPLED_ELEMENTS = 256  # maximum number of elements sampled per tensor for its histogram
# Operations whose units may all be 0, so that no gradient flows through them.


class Probe:
    """Captures the outputs of `layers` and their gradients in the next step with hooks, and the weights before that
    step. If the optimizer `has_stepped`, also captures the gradients that it has used.
    """

    def __init__(
        self, library: AutogradLibrary, model: Any, layers: Sequence[tuple[str, Any]], has_stepped: bool = False
    ) -> None:
        self._library = library
        self.stale: set[int] = set()
        """Rows of the layers whose gradients are accumulated into those of the previous step."""
        self._handles: list[Any] = []
        self._captured: dict[tuple[int, str], Any] = {}
        self._weights_before: dict[int, Any] = {}
        self._used_gradients: dict[
            int, list[tuple[Any, Any, int]]
        ] = {}  # gradients of the previous step, with their versions
        self._calls = _ReluTracker(self._library)
        rows = {module: k for k, (_, module) in enumerate(layers)}
        submodules = {part for module in rows for part in module.modules()} - set(rows)
        with library.module.no_grad(), library.unobserved():
            for module in set(model.modules()) - submodules:
                self._handles.append(module.register_forward_hook(self._calls.make_hook(rows.get(module))))
            for k, (_, module) in enumerate(layers):
                self._handles.append(module.register_forward_hook(self._make_hook(k)))
                parameters = [p for p in module._parameters.values() if p is not None]
                self._weights_before[k] = [(p, p.detach().clone()) for p in parameters]
                if has_stepped:
                    self._used_gradients[k] = [(p, p.grad, p.grad._version) for p in parameters if p.grad is not None]

    def remove(self) -> None:
        """Remove the hooks, and release the captured tensors, since an output's hook exists as long as its graph."""
        for handle in self._handles:
            handle.remove()
        self._captured.clear()
        self._weights_before.clear()
        self._used_gradients.clear()
        self._calls = _ReluTracker(self._library)

    def _make_hook(self, k: int) -> Callable[..., None]:
        def capture(module: Any, args: Any, output: Any) -> None:
            y = output[0] if isinstance(output, tuple) and output else output
            lib = self._library.module
            if isinstance(y, lib.Tensor) and y.requires_grad and y.dtype.is_floating_point and lib.is_grad_enabled():
                self._captured[k, "values"] = y.detach()
                y.register_hook(lambda gradient: self._capture_gradient(k, gradient))

        return capture

    def _capture_gradient(self, k: int, gradient: Any) -> None:
        """Capture the gradient of an output, before the gradients of the layer's parameters are accumulated."""
        self._captured[k, "gradients"] = gradient.detach()
        if any(
            p.grad is gradient_before and gradient_before._version == version
            for p, gradient_before, version in self._used_gradients.get(k, ())
        ):
            self.stale.add(k)

    @property
    def relu_outputs(self) -> dict[int, Any]:
        """The output of the last ReLU in or after each layer, by row."""
        return self._calls.relu_outputs

    @property
    def order(self) -> list[int]:
        """The rows of the layers in call order."""
        return [k for k, kind in self._captured if kind == "values"]

    def measurements(self) -> tuple[list[tuple[int, str, Any]], dict[int, int]]:
        """Return the measurements, each as (row, kind, vector), and the number of gradient elements by row."""
        parts: list[tuple[int, str, Any]] = []
        counts: dict[int, int] = {}
        for (k, kind), x in self._captured.items():
            parts += [(k, kind, x.reshape(-1)[:: _sampling_stride(x.numel())])] if x.numel() else []
        for k, y in self.relu_outputs.items():
            units = y.amax(tuple(d for d in range(y.ndim) if d != (1 if y.ndim == 4 else y.ndim - 1)))
            parts.append((k, "dead", (units == 0).to(y.dtype).mean().reshape(1)))
        for k, weights in self._weights_before.items():
            for p, old in weights:
                if p.grad is not None:
                    squares = ("gradient", p.grad), ("update", p - old), ("weight", old)
                    parts += [(k, name, (x * x).sum().reshape(1)) for name, x in squares]
                    counts[k] = counts.get(k, 0) + p.numel()
        return parts, counts


class _ReluTracker:
    """Tracks which layer each ReLU of one step follows.

    A ReLU is detected as an operation, regardless of its caller. When a module call ends, the steps created since the
    previous call are visited, each once.
    """

    def __init__(self, library: AutogradLibrary) -> None:
        self._library = library
        self.relu_outputs: dict[int, Any] = {}
        """The output of the last ReLU in or after each layer, by row."""
        self._rows: list[int] = []  # row of the layer, by call
        self._last_call: dict[Any, int] = {}  # maps a step to the last call before it, or -1

    def make_hook(self, row: int | None) -> Callable[..., None]:
        """Return a forward hook for a module. `row` is the module's row in the picture, or None if it has none."""

        def track(module: Any, args: Any, output: Any) -> None:
            if row is None:
                self._visit(self._creator_steps(output))
                return
            self._visit(self._creator_steps(args))
            self._rows.append(row)
            call, ends = len(self._rows) - 1, self._creator_steps(output)
            self._visit(ends, call)
            self._last_call.update(dict.fromkeys(ends, call))  # necessary if a layer returns its input

        return track

    def _visit(self, ends: list[Any], call: int | None = None) -> None:
        """Visit the new steps that lead to `ends`. They were created by `call`, or between calls if `call` is None."""
        stack = [(step, False) for step in ends]
        while stack:
            step, is_expanded = stack.pop()
            if step in self._last_call:
                continue
            if not is_expanded:
                stack.append((step, True))
                stack += [(source, False) for source in self._library.previous_nodes(step)]
                continue
            last_call = max((self._last_call.get(x, -1) for x in self._library.previous_nodes(step)), default=-1)
            self._last_call[step] = last_call if call is None else call
            self._record_relu(step)

    def _record_relu(self, step: Any) -> None:
        y = self._library.relu_output(step) if self._last_call[step] >= 0 else None
        if y is not None and y.ndim > 1:
            self.relu_outputs[self._rows[self._last_call[step]]] = y.detach()

    def _creator_steps(self, x: Any) -> list[Any]:
        """Return the steps that computed the tensors in a module's arguments or output."""
        tensors = instances_in(x, self._library.module.Tensor)
        return [tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None]


def _sampling_stride(size: int) -> int:
    """Return a sampling stride coprime to `size`, so that every index along each side of the tensor is sampled.

    >>> _sampling_stride(100), _sampling_stride(32 * 16 * 64)
    (1, 129)
    """
    step = -(-size // MAX_SAMPLED_ELEMENTS)
    while math.gcd(step, size) > 1:
        step += 1
    return step
