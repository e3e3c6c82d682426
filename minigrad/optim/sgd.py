"""Stochastic gradient descent with momentum."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from minigrad import ops
from minigrad.core.errors import ArgumentError
from minigrad.core.tensor import Tensor
from minigrad.optim.optimizer import NON_NEGATIVE, Limits, Optimizer, constructor_options

__all__ = ["SGD"]


class SGD(Optimizer):
    r"""Implements gradient descent with step size `lr`, optionally with momentum.

    - g = gradient + `weight_decay` · p, with the gradient negated if `maximize`
    - b = `momentum` · b + (1 − `dampening`) · g; in the first step b = g (Polyak 1964, "Some methods of speeding up
      the convergence of iteration methods", with the learning rate applied outside of b)
    - p = p − `lr` · b; with `nesterov` p = p − `lr` · (g + `momentum` · b) (Sutskever, Martens, Dahl, Hinton 2013, "On
      the importance of initialization and momentum in deep learning")

    `lr` is in units of the parameter per unit of its gradient. Raises ArgumentError for negative `lr`, `momentum` or
    `weight_decay`, and for `nesterov` without momentum or with dampening; see also `Optimizer`.

    >>> import minigrad as mg
    >>> x = mg.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = mg.optim.SGD([x], lr=0.25)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.5000, 1.0000], requires_grad=True)
    """

    limits: ClassVar[Limits] = {"lr": NON_NEGATIVE, "momentum": NON_NEGATIVE, "weight_decay": NON_NEGATIVE}
    traceable: ClassVar[bool] = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, constructor_options(locals()))

    def _check_group(self, group: dict[str, Any]) -> None:
        super()._check_group(group)
        if group["nesterov"] and (group["momentum"] == 0 or group["dampening"] != 0):
            raise ArgumentError(
                f"SGD: Nesterov momentum requires a momentum and zero dampening, but got momentum="
                f"{group['momentum']!r}, dampening={group['dampening']!r}.\n  Write momentum=0.9, dampening=0."
            )

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Perform one step of `p`."""
        if not group["momentum"]:
            return self.apply(ops.sgd_step, p, grad, [], group)
        dampening = 0.0 if state.get("momentum_buffer") is None else group["dampening"]
        buffers = self.memory(state, p, "momentum_buffer")
        self.apply(ops.momentum_step, p, grad, buffers, group, dampening=dampening)
