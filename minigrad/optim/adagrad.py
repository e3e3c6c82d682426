"""Optimizers with per-element learning rates from the sum or a moving average of squared gradients."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from minigrad import ops
from minigrad.core.tensor import Tensor
from minigrad.optim.optimizer import NON_NEGATIVE, UNIT_INTERVAL, Limits, Optimizer, constructor_options

__all__ = ["Adadelta", "Adagrad", "RMSprop"]

_RMSPROP_OPS = {
    (False, False): ops.rmsprop_step,
    (False, True): ops.rmsprop_momentum_step,
    (True, False): ops.rmsprop_centered_step,
    (True, True): ops.rmsprop_centered_momentum_step,
}  # keyed by (centered, momentum > 0)


class Adagrad(Optimizer):
    """Implements Adagrad: the learning rate of each element decays with the sum of its squared gradients.

    Duchi, Hazan, Singer 2011, "Adaptive subgradient methods for online learning and stochastic optimization", figure 1
    with a diagonal matrix; t counts from 1:

    - g = gradient + `weight_decay` · p, with the gradient negated if `maximize`
    - s = s + g², from `initial_accumulator_value`
    - p = p − `lr` / (1 + (t − 1) · `lr_decay`) · g / (√s + `eps`)

    `lr` is the size of the first step, in units of the parameter. Raises ArgumentError for a negative option; see also
    `Optimizer`.

    >>> import minigrad as mg
    >>> x = mg.tensor([1.0, 200.0], requires_grad=True)
    >>> optimizer = mg.optim.Adagrad([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([  0.5000, 199.5000], requires_grad=True)
    """

    limits: ClassVar[Limits] = {
        "lr": NON_NEGATIVE,
        "lr_decay": NON_NEGATIVE,
        "weight_decay": NON_NEGATIVE,
        "initial_accumulator_value": NON_NEGATIVE,
        "eps": NON_NEGATIVE,
    }
    traceable: ClassVar[bool] = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, constructor_options(locals()))

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Perform one step of `p`."""
        buffers = self.memory(state, p, "sum", value=group["initial_accumulator_value"])
        rate = group["lr"] / (1 + state.get("step", 0) * group["lr_decay"])
        state["step"] = state.get("step", 0) + 1
        self.apply(ops.adagrad_step, p, grad, buffers, group, lr=rate)


class Adadelta(Optimizer):
    """Implements Adadelta: each step is scaled by the ratio of root mean squares of past steps and gradients.

    Zeiler 2012, "ADADELTA: an adaptive learning rate method", algorithm 1, multiplied by a learning rate; g as in
    `Adagrad`:

    - s = ρ s + (1 − ρ) g²
    - Δ = √(d + `eps`) / √(s + `eps`) · g, p = p − `lr` · Δ
    - d = ρ d + (1 − ρ) Δ²

    `lr` and `rho` have no unit; `eps` is in squared units of the gradient. Raises ArgumentError for a negative option
    or a `rho` outside [0, 1); see also `Optimizer`.

    >>> import minigrad as mg
    >>> x = mg.tensor([1.0, 200.0], requires_grad=True)
    >>> optimizer = mg.optim.Adadelta([x])
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([  0.9968, 199.9968], requires_grad=True)
    """

    limits: ClassVar[Limits] = {
        "lr": NON_NEGATIVE,
        "rho": UNIT_INTERVAL,
        "eps": NON_NEGATIVE,
        "weight_decay": NON_NEGATIVE,
    }
    traceable: ClassVar[bool] = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, constructor_options(locals()))

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Perform one step of `p`."""
        state["step"] = state.get("step", 0) + 1
        self.apply(ops.adadelta_step, p, grad, self.memory(state, p, "square_avg", "acc_delta"), group)


class RMSprop(Optimizer):
    """Implements RMSprop: the learning rate of each element decays with a moving average of its squared gradients.

    Tieleman, Hinton 2012, "Neural networks for machine learning", lecture 6.5; `centered` and `momentum` as in Graves
    2013, "Generating sequences with recurrent neural networks", equations 38 to 41; g as in `Adagrad`:

    - s = α s + (1 − α) g²; if `centered`, a = α a + (1 − α) g, and s − a² replaces s below
    - p = p − `lr` · g / (√s + `eps`); with `momentum` b = μ b + g / (√s + `eps`), p = p − `lr` · b

    `lr` is in units of the parameter. Raises ArgumentError for a negative option or an `alpha` outside [0, 1); see also
    `Optimizer`.

    >>> import minigrad as mg
    >>> x = mg.tensor([1.0, 200.0], requires_grad=True)
    >>> optimizer = mg.optim.RMSprop([x], lr=0.05)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([  0.5000, 199.5000], requires_grad=True)
    """

    limits: ClassVar[Limits] = {
        "lr": NON_NEGATIVE,
        "alpha": UNIT_INTERVAL,
        "eps": NON_NEGATIVE,
        "weight_decay": NON_NEGATIVE,
        "momentum": NON_NEGATIVE,
    }
    traceable: ClassVar[bool] = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, constructor_options(locals()))

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Perform one step of `p`."""
        state["step"] = state.get("step", 0) + 1
        buffer_names = ["square_avg"]
        if group["centered"]:
            buffer_names.append("grad_avg")
        if group["momentum"] > 0:
            buffer_names.append("momentum_buffer")
        op = _RMSPROP_OPS[bool(group["centered"]), group["momentum"] > 0]
        self.apply(op, p, grad, self.memory(state, p, *buffer_names), group)
