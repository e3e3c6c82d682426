"""Optimizer updates, written as in the papers that `minigrad.optim` cites.

A kernel takes the parameter, its gradient and the optimizer state, and returns the new parameter and state, in the
order of the declaration. `step` counts from 1.
"""

from __future__ import annotations

import numpy as np

from minigrad.backends.numpy.arrays import DEVICE, Array
from minigrad.core.dispatch import kernel
from minigrad.core.symbolic import apply

__all__ = ["rectification"]

Arrays = tuple[Array, ...]


def effective_gradient(p: Array, grad: Array, weight_decay: float, maximize: bool) -> Array:
    """Return the gradient, negated if `maximize`, plus the gradient of the L2 penalty weight_decay / 2 * p**2."""
    g = -grad if maximize else grad
    return g + weight_decay * p if weight_decay else g


def apply_weight_decay(
    p: Array, grad: Array, lr: float, weight_decay: float, decoupled: bool, maximize: bool
) -> Arrays:
    """Apply weight decay to the gradient or, if `decoupled`, the parameter. Return the parameter and the gradient."""
    if decoupled:
        return p * (1 - lr * weight_decay), effective_gradient(p, grad, 0.0, maximize)
    return p, effective_gradient(p, grad, weight_decay, maximize)


def update_moments(g: Array, m: Array, v: Array, beta1: float, beta2: float) -> Arrays:
    """Return the updated exponential moving averages of the gradient and of its square."""
    return beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g


@kernel("sgd_step", DEVICE)
def sgd_step(p: Array, grad: Array, *, lr: float, weight_decay: float, maximize: bool) -> Array:
    return p - lr * effective_gradient(p, grad, weight_decay, maximize)


@kernel("momentum_step", DEVICE)
def momentum_step(
    p: Array,
    grad: Array,
    b: Array,
    *,
    lr: float,
    momentum: float,
    dampening: float,
    nesterov: bool,
    weight_decay: float,
    maximize: bool,
) -> Arrays:
    g = effective_gradient(p, grad, weight_decay, maximize)
    b = momentum * b + (1 - dampening) * g
    return p - lr * (g + momentum * b if nesterov else b), b


@kernel("adam_step", DEVICE)
def adam_step(
    p: Array, grad: Array, m: Array, v: Array, *, lr: float, beta1: float, beta2: float, eps: float, decoupled: bool,
    step: int, weight_decay: float, maximize: bool,
) -> Arrays:  # fmt: skip
    p, g = apply_weight_decay(p, grad, lr, weight_decay, decoupled, maximize)
    m, v = update_moments(g, m, v, beta1, beta2)
    return p - lr * (m / (1 - beta1**step)) / (np.sqrt(v / (1 - beta2**step)) + eps), m, v


@kernel("amsgrad_step", DEVICE)
def amsgrad_step(
    p: Array, grad: Array, m: Array, v: Array, w: Array, *, lr: float, beta1: float, beta2: float, eps: float,
    decoupled: bool, step: int, weight_decay: float, maximize: bool,
) -> Arrays:  # fmt: skip
    p, g = apply_weight_decay(p, grad, lr, weight_decay, decoupled, maximize)
    m, v = update_moments(g, m, v, beta1, beta2)
    w = np.maximum(w, v)
    return p - lr * (m / (1 - beta1**step)) / (np.sqrt(w / (1 - beta2**step)) + eps), m, v, w


@kernel("nadam_step", DEVICE)
def nadam_step(
    p: Array, grad: Array, m: Array, v: Array, *, lr: float, beta1: float, beta2: float, eps: float, decoupled: bool,
    step: int, mu: float, next_mu: float, mu_product: float, weight_decay: float, maximize: bool,
) -> Arrays:  # fmt: skip
    p, g = apply_weight_decay(p, grad, lr, weight_decay, decoupled, maximize)
    m, v = update_moments(g, m, v, beta1, beta2)
    lookahead = next_mu / (1 - mu_product * next_mu) * m + (1 - mu) / (1 - mu_product) * g
    return p - lr * lookahead / (np.sqrt(v / (1 - beta2**step)) + eps), m, v


def _root(x: float) -> float:
    return float(np.sqrt(x))


def rectification(beta2: float, step: int) -> float:
    """Return RAdam's variance rectification term r, or 0 while the variance is intractable."""
    rho_inf = 2 / (1 - beta2) - 1
    rho = rho_inf - 2 * step * beta2**step / (1 - beta2**step)
    if rho <= 5:
        return 0.0
    numerator = (rho - 4) * (rho - 2) * rho_inf
    root: float = apply(_root, numerator / ((rho_inf - 4) * (rho_inf - 2) * rho))
    return root


@kernel("radam_step", DEVICE)
def radam_step(
    p: Array, grad: Array, m: Array, v: Array, *, lr: float, beta1: float, beta2: float, eps: float, decoupled: bool,
    step: int, weight_decay: float, maximize: bool,
) -> Arrays:  # fmt: skip
    p, g = apply_weight_decay(p, grad, lr, weight_decay, decoupled, maximize)
    m, v = update_moments(g, m, v, beta1, beta2)
    mean, r = m / (1 - beta1**step), rectification(beta2, step)
    if not r:
        return p - lr * mean, m, v
    return p - lr * r * mean * apply(_root, 1 - beta2**step) / (np.sqrt(v) + eps), m, v


@kernel("adamax_step", DEVICE)
def adamax_step(
    p: Array, grad: Array, m: Array, u: Array, *, lr: float, beta1: float, beta2: float, eps: float, step: int,
    weight_decay: float, maximize: bool,
) -> Arrays:  # fmt: skip
    g = effective_gradient(p, grad, weight_decay, maximize)
    m, u = beta1 * m + (1 - beta1) * g, np.maximum(beta2 * u, np.abs(g) + eps)
    return p - lr / (1 - beta1**step) * m / u, m, u


@kernel("adagrad_step", DEVICE)
def adagrad_step(
    p: Array, grad: Array, s: Array, *, lr: float, eps: float, weight_decay: float, maximize: bool
) -> Arrays:
    g = effective_gradient(p, grad, weight_decay, maximize)
    s = s + g * g
    return p - lr * g / (np.sqrt(s) + eps), s


@kernel("adadelta_step", DEVICE)
def adadelta_step(
    p: Array, grad: Array, s: Array, d: Array, *, lr: float, rho: float, eps: float, weight_decay: float, maximize: bool
) -> Arrays:
    g = effective_gradient(p, grad, weight_decay, maximize)
    s = rho * s + (1 - rho) * g * g
    delta = np.sqrt(d + eps) / np.sqrt(s + eps) * g
    return p - lr * delta, s, rho * d + (1 - rho) * delta * delta


def rmsprop_step(
    p: Array, grad: Array, *state: Array, centered: bool, has_momentum: bool, lr: float, alpha: float, eps: float,
    momentum: float, weight_decay: float, maximize: bool,
) -> Arrays:  # fmt: skip
    g, (s, *rest) = effective_gradient(p, grad, weight_decay, maximize), state
    s = alpha * s + (1 - alpha) * g * g
    variance, new_state = s, [s]
    if centered:
        a = alpha * rest[0] + (1 - alpha) * g
        variance, new_state = s - a * a, [s, a]
    b = g / (np.sqrt(variance) + eps)
    if has_momentum:
        b = momentum * rest[-1] + b
        new_state.append(b)
    return p - lr * b, *new_state


for _centered in (False, True):
    for _has_momentum in (False, True):

        def _run(
            *arrays: Array, centered: bool = _centered, has_momentum: bool = _has_momentum, **attrs: float
        ) -> Arrays:
            return rmsprop_step(*arrays, centered=centered, has_momentum=has_momentum, **attrs)  # type: ignore[arg-type]

        kernel(f"rmsprop_{'centered_' * _centered}{'momentum_' * _has_momentum}step", DEVICE)(_run)


@kernel("lion_step", DEVICE)
def lion_step(
    p: Array, grad: Array, m: Array, *, lr: float, beta1: float, beta2: float, weight_decay: float, maximize: bool
) -> Arrays:
    p, g = apply_weight_decay(p, grad, lr, weight_decay, True, maximize)
    lookahead = beta1 * m + (1 - beta1) * g
    return p - lr * ((lookahead > 0).astype(p.dtype) - (lookahead < 0)), beta2 * m + (
        1 - beta2
    ) * g  # nan takes no step
