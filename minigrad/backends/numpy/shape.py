"""Kernels that arrange numbers anew. Those of view operations return views."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.kernels import kernel, kernels_of

__all__: list[str] = []

DEVICE = "numpy"
Array = Any
Shape = tuple[int, ...]


@kernel("sum_to", DEVICE)
def sum_to(a: Array, *, shape: Shape) -> Array:
    extra = a.ndim - len(shape)
    stretched = tuple(k for k in range(a.ndim) if k < extra or (shape[k - extra] == 1 and a.shape[k] != 1))
    return np.add.reduce(a, axis=stretched, keepdims=True).reshape(shape)


@kernel("expand", DEVICE)
def expand(a: Array, *, shape: Shape) -> Array:
    return np.lib.stride_tricks.as_strided(np.broadcast_to(a, shape), writeable=True)


@kernel("reshape", DEVICE)
def reshape(a: Array, *, shape: Shape) -> Array:
    return a.reshape(shape)


@kernel("permute", DEVICE)
def permute(a: Array, *, dims: Shape) -> Array:
    return a.transpose(dims)


@kernel("index", DEVICE)
def index(a: Array, *, key: Any) -> Array:
    return a[key if ... in key else (*key, ...)]  # the … keeps a single number an array, and a view


@kernel("index_backward", DEVICE)
def index_backward(a: Array, *, shape: Shape, key: Any) -> Array:
    out = np.zeros(shape, a.dtype)
    out[key] = a
    return out


@kernel("to", DEVICE)
def to(a: Array, *, dtype: Any) -> Array:
    return a.astype(dtype.name)


@kernel("copy", DEVICE)
def copy(a: Array, b: Array) -> Array:
    out = np.empty_like(a)
    out[...] = b
    return out


@kernel("overwrite", DEVICE)
def overwrite(a: Array, b: Array, *, chain: Any) -> Array:
    out = view = a.copy()
    for op, attrs in chain:
        view = kernels_of(op.name)[DEVICE](view, **attrs)
    view[...] = b
    return out
