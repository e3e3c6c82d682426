"""Flatten gradients into one NumPy array for communication, and write them back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minigrad.core.tensor import Tensor
from minigrad.functional import cat
from minigrad.functional.creation import zeros_like

__all__ = ["Array", "flatten_gradients", "weighted_sum", "write_gradients"]

Array = np.ndarray[Any, Any]


def flatten_gradients(params: Sequence[Tensor]) -> Tensor:
    """Concatenate the flattened gradients of `params` on their device, with zeros for missing gradients.

    >>> import minigrad as mg
    >>> a, b = mg.ones(2, requires_grad=True), mg.ones(1, requires_grad=True)
    >>> (3 * a).sum().backward()
    >>> flatten_gradients([a, b])
    tensor([3., 3., 0.])
    """
    grads = [zeros_like(x.detach()) if x.grad is None else x.grad.detach() for x in params]
    return cat([grad.reshape(-1) for grad in grads])


def write_gradients(params: Sequence[Tensor], flat: Tensor, has_gradient: Sequence[bool]) -> None:
    """Assign slices of `flat` to the `grad` of the parameters selected by `has_gradient`, and None to the others.

    >>> import minigrad as mg
    >>> a, b = mg.ones(1, 2, requires_grad=True), mg.ones(1, requires_grad=True)
    >>> write_gradients([a, b], mg.tensor([3.0, 4.0, 0.0]), [True, False])
    >>> a.grad.tolist(), b.grad
    ([[3.0, 4.0]], None)
    """
    start = 0
    for x, present in zip(params, has_gradient, strict=True):
        x.grad = flat[start : start + x.numel()].view(x.shape).to(x.dtype) if present else None
        start += x.numel()


def weighted_sum(arrays: Sequence[Array], weights: Sequence[float]) -> Array:
    """Return the sum of `arrays` weighted by `weights`, accumulated in order, so that it is deterministic.

    >>> weighted_sum([np.array([1.0, 2.0]), np.array([3.0, 6.0])], [0.25, 0.75]).tolist()
    [2.5, 5.0]
    """
    if len(arrays) == 1 and weights[0] == 1:
        return arrays[0]
    total: Array = arrays[0] * arrays[0].dtype.type(weights[0])
    for array, weight in zip(arrays[1:], weights[1:], strict=True):
        total += array * array.dtype.type(weight)
    return total
