"""Whole sequences of one direction of an LSTM, GRU or RNN layer, from the projected inputs of all time steps.

L is the sequence length, N the batch size, H the hidden size. ``x`` contains W_ih x + b_ih for all time steps, (L, N,
gates · H); ``h`` and ``c`` the initial states, (N, H); ``w`` is W_hh, (gates · H, H), and ``b`` is b_hh or None. The
gates are those of PyTorch: input, forget, cell, output for an LSTM; reset, update, new for a GRU. If `reverse`, time
runs from the end of the sequence.

The activated gates are outputs rather than auxiliary results, so that gradients flow through them: the gradient, which
reads them, is differentiable. A first derivative is computed by one operation, a higher one step by step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from minigrad.core.modes import modes
from minigrad.core.op import Op, adjoint_formula
from minigrad.ops.activation import relu_backward
from minigrad.ops.elementwise import tanh
from minigrad.ops.reduce import sum
from minigrad.ops.shape import cat, index, permute, reshape

__all__ = [
    "gru_sequence",
    "gru_sequence_backward",
    "lstm_sequence",
    "lstm_sequence_backward",
    "rnn_sequence",
    "rnn_sequence_backward",
]


# --- gradients step by step, in differentiable operations ---


def _add(*terms: Any) -> Any:
    """Add the terms that are not None."""
    present = [term for term in terms if term is not None]
    total = present[0] if present else None
    for term in present[1:]:
        total = total + term
    return total


def _times(length: int, reverse: bool) -> Iterator[tuple[int, int | None]]:
    """Yield each time index and the one before it, None for the first step, from the last step to the first."""
    order = range(length - 1, -1, -1) if reverse else range(length)
    for k in range(length - 1, -1, -1):
        yield order[k], order[k - 1] if k else None


def _at(x: Any, t: int | None) -> Any:
    return None if x is None else index(x, key=(t,))


def _gates_at(x: Any, t: int, count: int) -> list[Any]:
    """Return the `count` gates at time `t`, or Nones if `x` is None."""
    if x is None:
        return [None] * count
    size = x.shape[-1] // count
    return [index(x, key=(t, slice(None), slice(k * size, (k + 1) * size))) for k in range(count)]


def _join(parts: Sequence[Any]) -> Any:
    return cat(*parts, dim=1, sizes=tuple([part.shape[1] for part in parts]))


def _stack(steps: dict[int, Any]) -> Any:
    """Stack the arrays of all time steps along a new first dimension."""
    rows = [reshape(steps[t], shape=(1, *steps[t].shape)) for t in range(len(steps))]
    return cat(*rows, dim=0, sizes=(1,) * len(rows))


def _lstm_steps(g: tuple[Any, ...], gates: Any, cells: Any, c: Any, w: Any, reverse: bool) -> tuple[Any, ...]:
    u, grad_h, grad_c, grad_gates, grad_cells = g
    steps = {}
    for t, before in _times(gates.shape[0], reverse):
        i, f, n, o = _gates_at(gates, t, 4)
        u_i, u_f, u_n, u_o = _gates_at(grad_gates, t, 4)
        squashed = tanh(_at(cells, t))
        grad_h = _add(_at(u, t), grad_h)
        if grad_h is not None:
            grad_c = _add(grad_c, grad_h * o * (1.0 - squashed * squashed))
            u_o = _add(u_o, grad_h * squashed)
        grad_c = _add(grad_c, _at(grad_cells, t))
        if grad_c is None:  # only the gates have gradients so far
            grad_c = o * 0.0
        previous = c if before is None else _at(cells, before)
        steps[t] = _join(
            [
                _add(u_i, grad_c * n) * (i * (1.0 - i)),
                _add(u_f, grad_c * previous) * (f * (1.0 - f)),
                _add(u_n, grad_c * i) * (1.0 - n * n),
                (o * 0.0 if u_o is None else u_o) * (o * (1.0 - o)),
            ]
        )
        grad_h, grad_c = steps[t] @ w, grad_c * f
    return _stack(steps), grad_h, grad_c


def _gru_steps(
    g: tuple[Any, ...], y: Any, gates: Any, projected: Any, h: Any, w: Any, reverse: bool
) -> tuple[Any, ...]:
    u, grad_h, grad_gates, grad_projected = g
    steps, hidden_steps = {}, {}
    for t, before in _times(gates.shape[0], reverse):
        r, z, n = _gates_at(gates, t, 3)
        u_r, u_z, u_n = _gates_at(grad_gates, t, 3)
        grad_h = _add(_at(u, t), grad_h)
        if grad_h is None:
            grad_h = z * 0.0
        previous = h if before is None else _at(y, before)
        grad_n = _add(u_n, grad_h * (1.0 - z)) * (1.0 - n * n)
        grad_r = _add(u_r, grad_n * _at(projected, t)) * (r * (1.0 - r))
        grad_z = _add(u_z, grad_h * (previous - n)) * (z * (1.0 - z))
        steps[t] = _join([grad_r, grad_z, grad_n])
        hidden_steps[t] = _join([grad_r, grad_z, _add(_at(grad_projected, t), grad_n * r)])
        grad_h = grad_h * z + hidden_steps[t] @ w
    return _stack(steps), grad_h, _stack(hidden_steps)


def _rnn_steps(g: tuple[Any, ...], y: Any, w: Any, activation: str, reverse: bool) -> tuple[Any, ...]:
    u, grad_h = g
    steps = {}
    for t, _ in _times(y.shape[0], reverse):
        state = _at(y, t)
        grad_h = _add(_at(u, t), grad_h)
        steps[t] = relu_backward(grad_h, state) if activation == "relu" else grad_h * (1.0 - state * state)
        grad_h = steps[t] @ w
    return _stack(steps), grad_h


# --- rules ---


def _parameter_grads(grad: Any, y: Any, h: Any, b_shape: Any, reverse: bool) -> tuple[Any, Any]:
    """Return the gradients of w and b, from the gradient (L, N, gates · H) of the products of all time steps."""

    def transposed_product(left: Any, right: Any) -> Any:
        rows = [reshape(x, shape=(x.shape[0] * x.shape[1], x.shape[2])) for x in (left, right)]
        return permute(rows[0], dims=(1, 0)) @ rows[1]

    length = grad.shape[0]
    early, late = slice(length - 1), slice(1, length)
    later, earlier, first = (early, late, length - 1) if reverse else (late, early, 0)
    grad_w = permute(index(grad, key=(first,)), dims=(1, 0)) @ h
    if length > 1:  # the state before a step is the output of the previous step
        grad_w = transposed_product(index(grad, key=(later,)), index(y, key=(earlier,))) + grad_w
    return grad_w, None if b_shape is None else sum(grad, dim=(0, 1), keepdim=False)


def _lstm_rule(g: Any, y0: Any, y3: Any, y4: Any, h: Any, c: Any, w: Any, b_shape: Any, reverse: bool) -> Any:
    if modes.grad or g[3] is not None or g[4] is not None:
        grad, grad_h, grad_c = _lstm_steps(g, y3, y4, c, w, reverse)
    else:
        grad, grad_h, grad_c = lstm_sequence_backward(*g[:3], y3, y4, c, w, reverse=reverse)
    return (grad, grad_h, grad_c, *_parameter_grads(grad, y0, h, b_shape, reverse))


def _gru_rule(g: Any, y0: Any, y2: Any, y3: Any, h: Any, w: Any, b_shape: Any, reverse: bool) -> Any:
    if modes.grad or g[2] is not None or g[3] is not None:
        grad, grad_h, hidden_grad = _gru_steps(g, y0, y2, y3, h, w, reverse)
    else:
        grad, grad_h, hidden_grad = gru_sequence_backward(*g[:2], y0, y2, y3, h, w, reverse=reverse)
    return (grad, grad_h, *_parameter_grads(hidden_grad, y0, h, b_shape, reverse))


def _rnn_rule(g: Any, y0: Any, h: Any, w: Any, b_shape: Any, activation: str, reverse: bool) -> Any:
    if modes.grad:
        grad, grad_h = _rnn_steps(g, y0, w, activation, reverse)
    else:
        grad, grad_h = rnn_sequence_backward(*g, y0, w, activation=activation, reverse=reverse)
    return (grad, grad_h, *_parameter_grads(grad, y0, h, b_shape, reverse))


# --- operations ---

# Returns h of all time steps, the final h and c, and what the gradient reads: gates (L, N, 4 H) and cells (L, N, H).
lstm_sequence: Op = Op(
    "lstm_sequence",
    r"\operatorname{LSTM}\left({x}, {h}, {c}, {w}, {b}\right)",
    vjp=_lstm_rule,
    shown=tuple([adjoint_formula(name) for name in ("x", "h", "c", "w", "b")]),
    inputs=("x", "h", "c", "w", "b"),
    attrs=("reverse",),
    outputs=5,
)

# Returns h of all time steps, the final h, and what the gradient reads: gates (L, N, 3 H) and W_hn h + b_hn (L, N, H).
gru_sequence: Op = Op(
    "gru_sequence",
    r"\operatorname{GRU}\left({x}, {h}, {w}, {b}\right)",
    vjp=_gru_rule,
    shown=tuple([adjoint_formula(name) for name in ("x", "h", "w", "b")]),
    inputs=("x", "h", "w", "b"),
    attrs=("reverse",),
    outputs=4,
)

# Returns h of all time steps, and the final h. `activation` is "tanh" or "relu".
rnn_sequence: Op = Op(
    "rnn_sequence",
    r"\operatorname{RNN}\left({x}, {h}, {w}, {b}\right)",
    vjp=_rnn_rule,
    shown=tuple([adjoint_formula(name) for name in ("x", "h", "w", "b")]),
    inputs=("x", "h", "w", "b"),
    attrs=("activation", "reverse"),
    outputs=2,
)

# The gradients of x and the initial states, from the gradients u of all h, uh and uc of the final states, each possibly
# None. Rules call these operations only where no derivative of the gradient is needed; see `_lstm_rule`.
lstm_sequence_backward: Op = Op(
    "lstm_sequence_backward",
    r"\operatorname{lstmBackward}\left({u}, {uh}, {uc}, {gates}, {cells}, {c}, {w}\right)",
    vjp=(None,) * 7,
    inputs=("u", "uh", "uc", "gates", "cells", "c", "w"),
    attrs=("reverse",),
    outputs=3,
)

# As well as these gradients, it returns that of W_hh h + b_hh, (L, N, 3 H), which differs from that of x.
gru_sequence_backward: Op = Op(
    "gru_sequence_backward",
    r"\operatorname{gruBackward}\left({u}, {uh}, {states}, {gates}, {q}, {h}, {w}\right)",
    vjp=(None,) * 7,
    inputs=("u", "uh", "states", "gates", "q", "h", "w"),
    attrs=("reverse",),
    outputs=3,
)
rnn_sequence_backward: Op = Op(
    "rnn_sequence_backward",
    r"\operatorname{rnnBackward}\left({u}, {uh}, {states}, {w}\right)",
    vjp=(None,) * 4,
    inputs=("u", "uh", "states", "w"),
    attrs=("activation", "reverse"),
    outputs=2,
)
