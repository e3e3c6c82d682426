"""Activation kernels. They preserve float32, since Python scalars do not promote arrays."""

from __future__ import annotations

import math

import numpy as np

from minigrad.backends.numpy.arrays import DEVICE, Array
from minigrad.backends.numpy.elementwise import erf
from minigrad.core.dispatch import kernel

__all__: list[str] = []


@kernel("sigmoid", DEVICE)
def sigmoid(a: Array) -> Array:
    small = np.exp(-np.abs(a))  # at most 1, so that it does not overflow
    numerator = np.maximum(
        small, np.greater_equal(a, 0).astype(small.dtype)
    )  # 1 or `small`, several times faster than np.where
    return numerator / (1 + small)


@kernel("softplus", DEVICE)
def softplus(a: Array) -> Array:
    return np.maximum(a, 0) + np.log1p(np.exp(-np.abs(a)))


@kernel("silu", DEVICE)
def silu(a: Array) -> Array:
    return a * sigmoid(a)


@kernel("mish", DEVICE)
def mish(a: Array) -> Array:
    return a * np.tanh(softplus(a))


@kernel("softsign", DEVICE)
def softsign(a: Array) -> Array:
    return a / (1 + np.abs(a))


@kernel("relu", DEVICE)
def relu(a: Array) -> Array:
    return np.maximum(a, 0)


@kernel("relu_backward", DEVICE)
def relu_backward(a: Array, b: Array) -> Array:
    return np.where(b <= 0, 0.0, a)


@kernel("relu6", DEVICE)
def relu6(a: Array) -> Array:
    return np.clip(a, 0, 6)


@kernel("hardtanh", DEVICE)
def hardtanh(a: Array, *, min_val: float, max_val: float) -> Array:
    return np.clip(a, min_val, max_val).astype(a.dtype, copy=False)


@kernel("selu", DEVICE)
def selu(a: Array) -> Array:
    scale, alpha = 1.0507009873554805, 1.6732632423543772
    return np.where(a < 0, scale * alpha * np.expm1(np.minimum(a, 0)), scale * a)


@kernel("elu", DEVICE)
def elu(a: Array, *, alpha: float) -> Array:
    return np.where(a < 0, alpha * np.expm1(np.minimum(a, 0)), a)


@kernel("leaky_relu", DEVICE)
def leaky_relu(a: Array, *, negative_slope: float) -> Array:
    return np.where(a > 0, a, a * negative_slope)


@kernel("prelu", DEVICE)
def prelu(a: Array, b: Array) -> Array:
    return np.where(a > 0, a, a * b)


@kernel("step", DEVICE)
def step(a: Array, *, alpha: float) -> Array:
    result = np.full_like(a, alpha)
    result[a > 0] = 1
    result[np.isnan(a)] = np.nan
    return result


@kernel("gelu", DEVICE)
def gelu(a: Array) -> Array:
    return a * (0.5 * (1 + erf(a * math.sqrt(0.5))))


@kernel("gelu_tanh", DEVICE)
def gelu_tanh(a: Array) -> Array:
    return a * sigmoid(2 * math.sqrt(2 / math.pi) * (a + 0.044715 * (a * a * a)))  # also accurate for a < 0


@kernel("gelu_backward", DEVICE)
def gelu_backward(a: Array, b: Array) -> Array:
    density = np.exp(-0.5 * (b * b)) * (1 / math.sqrt(2 * math.pi))
    return a * (0.5 * (1 + erf(b * math.sqrt(0.5))) + b * density)


@kernel("gelu_tanh_backward", DEVICE)
def gelu_tanh_backward(a: Array, b: Array) -> Array:
    root, cubic = math.sqrt(2 / math.pi), 0.044715
    bent = 2 * root * (b + cubic * (b * b * b))
    s = sigmoid(bent)
    return a * (s + b * ((s * sigmoid(-bent)) * (2 * root * (1 + 3 * cubic * (b * b)))))
