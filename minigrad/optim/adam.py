"""Rates for each number, by the running means of its gradient and of its square: Adam and those made of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from minigrad import ops
from minigrad.core.tensor import Tensor
from minigrad.optim.optimizer import RATE, SHARE, Limits, Optimizer, options

__all__ = ["Adam", "AdamW", "Adamax", "NAdam", "RAdam"]

Betas = tuple[float, float]


class _Moments(Optimizer):
    """What remembers two means: counts the steps of each parameter."""

    limits: ClassVar[Limits] = {"lr": RATE, "betas": SHARE, "eps": RATE, "weight_decay": RATE}
    traceable: ClassVar[bool] = True

    def _count(self, state: dict[str, Any], group: dict[str, Any]) -> dict[str, Any]:
        state["step"] = step = state.get("step", 0) + 1
        beta1, beta2 = group["betas"]
        return {"beta1": beta1, "beta2": beta2, "step": step}


class Adam(_Moments):
    """A rate for each number: the mean of its gradient by the root of the mean of its square.

    Kingma, Ba 2015, "Adam: a method for stochastic optimization", algorithm 1; β₁, β₂ are `betas`, t counts from 1:

    - g = gradient + `weight_decay` · p, the gradient's sign turned round if `maximize`
    - m = β₁ m + (1 − β₁) g, v = β₂ v + (1 − β₂) g²
    - p = p − `lr` · m / (1 − β₁ᵗ) / (√(v / (1 − β₂ᵗ)) + `eps`)

    With `amsgrad` the largest v that ever was is in place of v (Reddi, Kale, Kumar 2018, "On the convergence of Adam
    and beyond", algorithm 2). `lr` is about how far a number moves a step, in its own units. With
    `decoupled_weight_decay` it is AdamW. Raises ArgumentError for a negative `lr`, `eps` or `weight_decay` and for a
    beta outside [0, 1); and as `Optimizer`.

    >>> import minigrad as mg
    >>> x = mg.tensor([1.0, 200.0], requires_grad=True)
    >>> optimizer = mg.optim.Adam([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x  # each number has moved by the rate, however steep
    tensor([  0.5000, 199.5000], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        super().__init__(params, options(locals()))

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """One step of `p`."""
        how = self._count(state, group)
        names = ["exp_avg", "exp_avg_sq", *["max_exp_avg_sq"] * group["amsgrad"]]
        op = ops.amsgrad_step if group["amsgrad"] else ops.adam_step
        kept = self.memory(state, p, *names)
        self.apply(op, p, grad, kept, group, decoupled=group["decoupled_weight_decay"], **how)


class AdamW(Adam):
    """Adam whose weight decay leaves the means alone: p = p · (1 − `lr` · `weight_decay`), then Adam's step.

    Loshchilov, Hutter 2019, "Decoupled weight decay regularization", algorithm 2. Arguments and errors are those of
    `Adam`.

    >>> import minigrad as mg
    >>> x = mg.tensor([1.0, 200.0], requires_grad=True)
    >>> optimizer = mg.optim.AdamW([x], lr=0.5, weight_decay=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([  0.4500, 189.5000], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, **options(locals()), decoupled_weight_decay=True)


class Adamax(_Moments):
    """Adam by the largest gradient that there was lately, in place of the mean of its square.

    Kingma, Ba 2015, "Adam: a method for stochastic optimization", algorithm 2; g as in `Adam`:

    - m = β₁ m + (1 − β₁) g, u = max(β₂ u, |g| + `eps`)
    - p = p − `lr` · m / (1 − β₁ᵗ) / u

    Arguments and errors are those of `Adam`.

    >>> import minigrad as mg
    >>> x = mg.tensor([1.0, 200.0], requires_grad=True)
    >>> optimizer = mg.optim.Adamax([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([  0.5000, 199.5000], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 2e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, options(locals()))

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """One step of `p`."""
        how = self._count(state, group)
        self.apply(ops.adamax_step, p, grad, self.memory(state, p, "exp_avg", "exp_inf"), group, **how)


class NAdam(_Moments):
    """Adam with Nesterov's look ahead.

    Dozat 2016, "Incorporating Nesterov momentum into Adam", algorithm 2, with its schedule of momenta; g, m, v as in
    `Adam`, and Π the product of all μ so far:

    - μₜ = β₁ (1 − 0.96^(t · `momentum_decay`) / 2)
    - p = p − `lr` · (μₜ₊₁ m / (1 − Π μₜ₊₁) + (1 − μₜ) g / (1 − Π)) / (√(v / (1 − β₂ᵗ)) + `eps`)

    Arguments and errors are those of `Adam`; `momentum_decay` is 0 or more.

    >>> import minigrad as mg
    >>> x = mg.tensor([1.0, 200.0], requires_grad=True)
    >>> optimizer = mg.optim.NAdam([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> bool((x < mg.tensor([1.0, 200.0])).all())
    True
    """

    limits: ClassVar[Limits] = {**_Moments.limits, "momentum_decay": RATE}
    traceable: ClassVar[bool] = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 2e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, options(locals()))

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """One step of `p`."""
        how = self._count(state, group)
        now, then = [
            how["beta1"] * (1 - 0.5 * 0.96 ** (k * group["momentum_decay"])) for k in (how["step"], how["step"] + 1)
        ]
        state["mu_product"] = product = state.get("mu_product", 1.0) * now
        kept = self.memory(state, p, "exp_avg", "exp_avg_sq")
        how |= {"mu": now, "next_mu": then, "mu_product": product, "decoupled": group["decoupled_weight_decay"]}
        self.apply(ops.nadam_step, p, grad, kept, group, **how)


class RAdam(_Moments):
    """Adam whose first steps, when the mean of the square is of few numbers, are without it, and later ones smaller.

    Liu, Jiang, He, Chen, Liu, Gao, Han 2020, "On the variance of the adaptive learning rate and beyond", algorithm 2;
    g, m, v as in `Adam`:

    - ρ∞ = 2 / (1 − β₂) − 1, ρ = ρ∞ − 2 t β₂ᵗ / (1 − β₂ᵗ)
    - p = p − `lr` · m / (1 − β₁ᵗ) while ρ ≤ 5; then that times r √(1 − β₂ᵗ) / (√v + `eps`), where
      r² = (ρ − 4)(ρ − 2) ρ∞ / ((ρ∞ − 4)(ρ∞ − 2) ρ)

    Arguments and errors are those of `Adam`.

    >>> import minigrad as mg
    >>> x = mg.tensor([1.0, 200.0], requires_grad=True)
    >>> optimizer = mg.optim.RAdam([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0., 0.], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, options(locals()))

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """One step of `p`."""
        how = self._count(state, group)
        kept = self.memory(state, p, "exp_avg", "exp_avg_sq")
        self.apply(ops.radam_step, p, grad, kept, group, decoupled=group["decoupled_weight_decay"], **how)
