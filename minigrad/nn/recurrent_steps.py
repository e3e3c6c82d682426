"""The time steps of recurrent layers: each as a composition of small operations, or all as one operation.

The composition defines a step, and is what ``mg.record()`` and the player show. Otherwise the layers call one operation
for a whole sequence. The outputs of both are equal on ``numpy`` and in float64. On ``cpu``, float32 results differ in
the last digits: the kernel of a sequence evaluates exp and tanh in vectors, and adds products in another order. So do
gradients of weights, which are one product over all time steps rather than a sum of products.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minigrad import functional as F
from minigrad import ops
from minigrad.core.modes import modes
from minigrad.core.tensor import Tensor
from minigrad.nn.layer_utils import split_with_concat_grad

__all__ = [
    "SequenceFunction",
    "State",
    "StepFunction",
    "can_fuse",
    "gru_sequence",
    "gru_step",
    "lstm_sequence",
    "lstm_step",
    "rnn_sequence",
    "rnn_step",
]

State = tuple[Tensor, ...]


# --- functions for one time step, of the projected input x and the previous state ---


def rnn_step(activation: str, x: Tensor, state: State, weight: Any, bias: Any) -> State:
    return (getattr(x + F.linear(state[0], weight, bias), activation)(),)


def lstm_step(_: str, x: Tensor, state: State, weight: Any, bias: Any) -> State:
    hidden, cell = state
    i, f, g, o = split_with_concat_grad(x + F.linear(hidden, weight, bias), 4)
    cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
    return o.sigmoid() * cell.tanh(), cell


def gru_step(_: str, x: Tensor, state: State, weight: Any, bias: Any) -> State:
    (hidden,) = state
    x_r, x_z, x_n = split_with_concat_grad(x, 3)
    h_r, h_z, h_n = split_with_concat_grad(F.linear(hidden, weight, bias), 3)
    z = (x_z + h_z).sigmoid()
    new = (x_n + (x_r + h_r).sigmoid() * h_n).tanh()
    return (new + z * (hidden - new),)


StepFunction = Callable[[str, Tensor, State, Any, Any], State]


# --- functions for a whole sequence, as one operation; they return h at each time step and the final state ---


def rnn_sequence(activation: str, x: Tensor, state: State, weight: Any, bias: Any, reverse: bool) -> State:
    y, last = ops.rnn_sequence(x, state[0], weight, bias, activation=activation, reverse=reverse)
    return y, last


def lstm_sequence(_: str, x: Tensor, state: State, weight: Any, bias: Any, reverse: bool) -> State:
    y, hidden, cell, *_saved = ops.lstm_sequence(x, *state, weight, bias, reverse=reverse)
    return y, hidden, cell


def gru_sequence(_: str, x: Tensor, state: State, weight: Any, bias: Any, reverse: bool) -> State:
    y, last, *_saved = ops.gru_sequence(x, state[0], weight, bias, reverse=reverse)
    return y, last


SequenceFunction = Callable[[str, Tensor, State, Any, Any, bool], State]


def can_fuse(gates: Tensor, state: State, weight: Tensor, bias: Tensor | None) -> bool:
    """Return whether the steps may run as one operation.

    Inside ``mg.record()`` and in the viewer's cells, they run as small operations, which the player can step through.
    """
    operands = [gates, *state, weight, *([] if bias is None else [bias])]
    return not modes.gradient_passed and all(
        x.dtype is gates.dtype and x.device == gates.device and x.numel() for x in operands
    )
