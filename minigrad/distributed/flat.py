"""Many tensors as one flat array of NumPy's, which is what travels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minigrad._tensor import Tensor
from minigrad.storage import host

__all__ = ["Array", "flattened", "mean", "write_gradients"]

Array = np.ndarray[Any, Any]


def flattened(params: Sequence[Tensor]) -> tuple[Array, list[bool]]:
    """The gradients of parameters one after another, 0 where there is none, and which there are.

    >>> import minigrad as mg
    >>> a, b = mg.ones(2, requires_grad=True), mg.ones(1, requires_grad=True)
    >>> (3 * a).sum().backward()
    >>> flattened([a, b])
    (array([3., 3., 0.], dtype=float32), [True, False])
    """
    kind = np.result_type(*[x.dtype.name for x in params])
    out = np.zeros(sum(x.numel() for x in params), kind)
    start = 0
    for x in params:
        if x.grad is not None:
            out[start : start + x.numel()] = host(x.grad._array).reshape(-1)
        start += x.numel()
    return out, [x.grad is not None for x in params]


def write_gradients(params: Sequence[Tensor], flat: Tensor, there: Sequence[bool]) -> None:
    """Make the parts of `flat` the gradients of the parameters that have one, and None those of the others.

    >>> import minigrad as mg
    >>> a, b = mg.ones(1, 2, requires_grad=True), mg.ones(1, requires_grad=True)
    >>> write_gradients([a, b], mg.tensor([3.0, 4.0, 0.0]), [True, False])
    >>> a.grad.tolist(), b.grad
    ([[3.0, 4.0]], None)
    """
    start = 0
    for x, has in zip(params, there, strict=True):
        x.grad = flat[start : start + x.numel()].view(x.shape).to(x.dtype) if has else None
        start += x.numel()


def mean(arrays: Sequence[Array], shares: Sequence[float]) -> Array:
    """The sum of arrays times their shares, in their order: the same bits each time.

    >>> mean([np.array([1.0, 2.0]), np.array([3.0, 6.0])], [0.25, 0.75]).tolist()
    [2.5, 5.0]
    """
    if len(arrays) == 1 and shares[0] == 1:
        return arrays[0]
    total: Array = arrays[0] * arrays[0].dtype.type(shares[0])
    for array, share in zip(arrays[1:], shares[1:], strict=True):
        total += array * array.dtype.type(share)
    return total
