"""Kernels of whole sequences of recurrent layers: a loop over time with one product per step.

The arithmetic of a step is that of the layers' composition of operations, in the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad.backends.numpy.activation import sigmoid
from minigrad.backends.numpy.arrays import DEVICE, Array
from minigrad.backends.numpy.linalg import linear
from minigrad.core.dispatch import kernel

__all__ = ["initial_grad", "time_order"]


def time_order(length: int, reverse: bool) -> range:
    """Return the time indices in the order in which a layer visits them."""
    return range(length - 1, -1, -1) if reverse else range(length)


def initial_grad(gradient: Any, like: Any) -> Any:
    """Return a copy of `gradient`, or zeros of the shape of `like` if it is None."""
    return np.zeros_like(like) if gradient is None else gradient.copy()


def _derivatives(gates: Array, count: int, reverse: bool) -> tuple[range, Array, Array, list[Array]]:
    """Return the order of a backward pass, the derivatives s (1 - s) of the gates, a view (L, N, count, H) of these,
    and the gates one by one.

    The loop over time multiplies the derivatives in place by the gradients of each step.
    """
    grad, shape = gates * (1 - gates), (*gates.shape[:2], count, gates.shape[2] // count)
    separate = gates.reshape(shape)
    return time_order(len(gates), not reverse), grad, grad.reshape(shape), [separate[:, :, k] for k in range(count)]


def _previous(states: Array, first: Array, reverse: bool) -> Array:
    """Return the state before each time step."""
    return np.concatenate([states[1:], first[None]] if reverse else [first[None], states[:-1]])


@kernel("lstm_sequence", DEVICE)
def lstm_sequence(x: Array, h: Array, c: Array, w: Array, b: Array | None, *, reverse: bool) -> tuple[Array, ...]:
    size = h.shape[-1]
    gates, y = np.empty(x.shape, x.dtype), np.empty((len(x), *h.shape), x.dtype)
    cells = np.empty_like(y)
    for t in time_order(len(x), reverse):
        step, total = gates[t], linear(h, w, b)
        total += x[t]
        step[:, : 2 * size] = sigmoid(total[:, : 2 * size])
        np.tanh(total[:, 2 * size : 3 * size], out=step[:, 2 * size : 3 * size])
        step[:, 3 * size :] = sigmoid(total[:, 3 * size :])
        c = np.multiply(step[:, size : 2 * size], c, out=cells[t])
        c += step[:, :size] * step[:, 2 * size : 3 * size]
        h = np.multiply(step[:, 3 * size :], np.tanh(c), out=y[t])
    return y, h.copy(), c.copy(), gates, cells


@kernel("lstm_sequence_backward", DEVICE)
def lstm_sequence_backward(
    u: Array | None,
    grad_final: Array | None,
    grad_final_cell: Array | None,
    gates: Array,
    cells: Array,
    c: Array,
    w: Array,
    *,
    reverse: bool,
) -> tuple[Array, ...]:
    order, grad, factors, (i, f, n, o) = _derivatives(gates, 4, reverse)
    bounded = np.tanh(cells)
    factors[:, :, 0] *= n
    factors[:, :, 1] *= _previous(cells, c, reverse)
    factors[:, :, 2] = i * (1 - n * n)
    factors[:, :, 3] *= bounded
    output_factors = o * (1 - bounded * bounded)
    grad_h, grad_c = initial_grad(grad_final, c), initial_grad(grad_final_cell, c)
    for t in order:
        if u is not None:
            grad_h += u[t]
        grad_c += grad_h * output_factors[t]
        factors[t][:, :3] *= grad_c[:, None]
        factors[t][:, 3] *= grad_h
        grad_h = grad[t] @ w
        grad_c *= f[t]
    return grad, grad_h, grad_c


@kernel("gru_sequence", DEVICE)
def gru_sequence(x: Array, h: Array, w: Array, b: Array | None, *, reverse: bool) -> tuple[Array, ...]:
    size = h.shape[-1]
    gates, y = np.empty(x.shape, x.dtype), np.empty((len(x), *h.shape), x.dtype)
    projected = np.empty_like(y)
    for t in time_order(len(x), reverse):
        step, total = gates[t], linear(h, w, b)
        projected[t] = total[:, 2 * size :]
        step[:, : 2 * size] = sigmoid(x[t][:, : 2 * size] + total[:, : 2 * size])
        np.tanh(x[t][:, 2 * size :] + step[:, :size] * projected[t], out=step[:, 2 * size :])
        h = np.add(step[:, 2 * size :], step[:, size : 2 * size] * (h - step[:, 2 * size :]), out=y[t])
    return y, h.copy(), gates, projected


@kernel("gru_sequence_backward", DEVICE)
def gru_sequence_backward(
    u: Array | None,
    grad_final: Array | None,
    y: Array,
    gates: Array,
    projected: Array,
    h: Array,
    w: Array,
    *,
    reverse: bool,
) -> tuple[Array, ...]:
    order, grad, factors, (r, z, n) = _derivatives(gates, 3, reverse)
    factors[:, :, 1] *= _previous(y, h, reverse) - n
    factors[:, :, 2] = (1 - z) * (1 - n * n)
    factors[:, :, 0] *= factors[:, :, 2] * projected
    hidden_grad, grad_h = grad.copy(), initial_grad(grad_final, h)
    hidden_factors = hidden_grad.reshape(factors.shape)
    hidden_factors[:, :, 2] *= r
    for t in order:
        if u is not None:
            grad_h += u[t]
        factors[t] *= grad_h[:, None]
        hidden_factors[t] *= grad_h[:, None]
        grad_h = grad_h * z[t] + hidden_grad[t] @ w
    return grad, grad_h, hidden_grad


_ACTIVATIONS: dict[str, Callable[..., Any]] = {"tanh": np.tanh, "relu": lambda a, out: np.maximum(a, 0, out=out)}


@kernel("rnn_sequence", DEVICE)
def rnn_sequence(
    x: Array, h: Array, w: Array, b: Array | None, *, activation: str, reverse: bool
) -> tuple[Array, Array]:
    y = np.empty((len(x), *h.shape), x.dtype)
    for t in time_order(len(x), reverse):
        total = linear(h, w, b)
        total += x[t]
        h = _ACTIVATIONS[activation](total, out=y[t])
    return y, h.copy()


@kernel("rnn_sequence_backward", DEVICE)
def rnn_sequence_backward(
    u: Array | None, grad_final: Array | None, y: Array, w: Array, *, activation: str, reverse: bool
) -> tuple[Array, Array]:
    grad, grad_h = np.empty_like(y), initial_grad(grad_final, y[0])
    for t in time_order(len(y), not reverse):
        if u is not None:
            grad_h = grad_h + u[t]
        grad[t] = np.where(y[t] <= 0, 0, grad_h) if activation == "relu" else grad_h * (1 - y[t] * y[t])
        grad_h = grad[t] @ w
    return grad, grad_h
