"""The Lion optimizer, which steps along the sign of a moving average of the gradient."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from minigrad import ops
from minigrad.core.tensor import Tensor
from minigrad.optim.optimizer import NON_NEGATIVE, UNIT_INTERVAL, Limits, Optimizer, constructor_options

__all__ = ["Lion"]


class Lion(Optimizer):
    """Implements Lion, with steps of ± `lr` by the sign of an averaged gradient. The state is half as large as Adam's.

    Chen et al. 2023, "Symbolic discovery of optimization algorithms", algorithm 2; β₁, β₂ are `betas`, and the gradient
    g is negated if `maximize`:

    - p = p − `lr` · (sign(β₁ m + (1 − β₁) g) + `weight_decay` · p)
    - m = β₂ m + (1 − β₂) g

    `lr` is in units of the parameter; the paper uses 3 to 10 times smaller values than for AdamW, and a `weight_decay`
    larger by the same factor. Not in PyTorch. Raises ArgumentError for a negative `lr` or `weight_decay`, or a beta
    outside [0, 1); see also `Optimizer`.

    >>> import minigrad as mg
    >>> x = mg.tensor([1.0, -200.0], requires_grad=True)
    >>> optimizer = mg.optim.Lion([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([   0.5000, -199.5000], requires_grad=True)
    """

    limits: ClassVar[Limits] = {"lr": NON_NEGATIVE, "betas": UNIT_INTERVAL, "weight_decay": NON_NEGATIVE}
    traceable: ClassVar[bool] = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, constructor_options(locals()))

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Perform one step of `p`."""
        beta1, beta2 = group["betas"]
        self.apply(ops.lion_step, p, grad, self.memory(state, p, "exp_avg"), group, beta1=beta1, beta2=beta2)
