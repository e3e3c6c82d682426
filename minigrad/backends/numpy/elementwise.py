"""Elementwise kernels: mostly NumPy's own functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.kernels import Kernel, kernel

__all__: list[str] = []

Array = Any

DEVICE = "numpy"

_FUNCTIONS: dict[str, Kernel] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "neg": np.negative,
    "abs": np.abs,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "where": np.where,
    "pow": np.power,
}
for _op, _function in _FUNCTIONS.items():
    kernel(_op, DEVICE)(_function)


@kernel("sigmoid", DEVICE)
def sigmoid(a: Array) -> Array:
    small = np.exp(-np.abs(a))  # at most 1, so that neither end overflows
    return np.where(a >= 0, 1, small) / (1 + small)


@kernel("relu", DEVICE)
def relu(a: Array) -> Array:
    return np.maximum(a, 0)


@kernel("sign", DEVICE)
def sign(a: Array) -> Array:
    return np.nan_to_num(np.sign(a))  # the sign of nan is 0, as in PyTorch
