"""Adam and its variants, with per-element learning rates from moving averages of the gradient and its square."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from minigrad import ops
from minigrad.core.tensor import Tensor
from minigrad.optim.optimizer import NON_NEGATIVE, UNIT_INTERVAL, Limits, Optimizer, constructor_options

__all__ = ["Adam", "AdamW", "Adamax", "NAdam", "RAdam"]

Betas = tuple[float, float]


class _MomentOptimizer(Optimizer):
    """Base class of optimizers that estimate two moments of the gradient. Counts the steps of each parameter."""

    limits: ClassVar[Limits] = {
        "lr": NON_NEGATIVE,
        "betas": UNIT_INTERVAL,
        "eps": NON_NEGATIVE,
        "weight_decay": NON_NEGATIVE,
    }
    traceable: ClassVar[bool] = True

    def _advance_step(self, state: dict[str, Any], group: dict[str, Any]) -> dict[str, Any]:
        state["step"] = step = state.get("step", 0) + 1
        beta1, beta2 = group["betas"]
        return {"beta1": beta1, "beta2": beta2, "step": step}


class Adam(_MomentOptimizer):
    """Implements Adam: steps along the mean of the gradient, divided by the root of the mean of its square.

    Kingma, Ba 2015, "Adam: a method for stochastic optimization", algorithm 1; β₁, β₂ are `betas`, t counts from 1:

    - g = gradient + `weight_decay` · p, with the gradient negated if `maximize`
    - m = β₁ m + (1 − β₁) g, v = β₂ v + (1 − β₂) g²
    - p = p − `lr` · m / (1 − β₁ᵗ) / (√(v / (1 − β₂ᵗ)) + `eps`)

    `amsgrad` replaces v by its maximum so far (Reddi, Kale, Kumar 2018, "On the convergence of Adam and beyond",
    algorithm 2). `lr` is roughly the size of a step, in units of the parameter. `decoupled_weight_decay` yields AdamW.
    Raises ArgumentError for a negative `lr`, `eps` or `weight_decay`, or a beta outside [0, 1); see also `Optimizer`.

    >>> import minigrad as mg
    >>> x = mg.tensor([1.0, 200.0], requires_grad=True)
    >>> optimizer = mg.optim.Adam([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x  # each element changes by lr, whatever its gradient
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
        super().__init__(params, constructor_options(locals()))

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Perform one step of `p`."""
        attrs = self._advance_step(state, group)
        names = ["exp_avg", "exp_avg_sq", *["max_exp_avg_sq"] * group["amsgrad"]]
        op = ops.amsgrad_step if group["amsgrad"] else ops.adam_step
        buffers = self.memory(state, p, *names)
        self.apply(op, p, grad, buffers, group, decoupled=group["decoupled_weight_decay"], **attrs)


class AdamW(Adam):
    """Implements AdamW: weight decay, p = p · (1 − `lr` · `weight_decay`), decoupled from the moments of Adam.

    Loshchilov, Hutter 2019, "Decoupled weight decay regularization", algorithm 2. For arguments and errors see `Adam`.

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
        super().__init__(params, **constructor_options(locals()), decoupled_weight_decay=True)


class Adamax(_MomentOptimizer):
    """Implements Adamax: Adam with a decaying maximum of the gradient instead of the mean of its square.

    Kingma, Ba 2015, "Adam: a method for stochastic optimization", algorithm 2; g as in `Adam`:

    - m = β₁ m + (1 − β₁) g, u = max(β₂ u, |g| + `eps`)
    - p = p − `lr` · m / (1 − β₁ᵗ) / u

    For arguments and errors see `Adam`.

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
        super().__init__(params, constructor_options(locals()))

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Perform one step of `p`."""
        attrs = self._advance_step(state, group)
        self.apply(ops.adamax_step, p, grad, self.memory(state, p, "exp_avg", "exp_inf"), group, **attrs)


class NAdam(_MomentOptimizer):
    """Implements NAdam: Adam with Nesterov momentum.

    Dozat 2016, "Incorporating Nesterov momentum into Adam", algorithm 2, with its momentum schedule; g, m, v as in
    `Adam`, and Π the product of all μ so far:

    - μₜ = β₁ (1 − 0.96^(t · `momentum_decay`) / 2)
    - p = p − `lr` · (μₜ₊₁ m / (1 − Π μₜ₊₁) + (1 − μₜ) g / (1 − Π)) / (√(v / (1 − β₂ᵗ)) + `eps`)

    For arguments and errors see `Adam`; `momentum_decay` must not be negative.

    >>> import minigrad as mg
    >>> x = mg.tensor([1.0, 200.0], requires_grad=True)
    >>> optimizer = mg.optim.NAdam([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> bool((x < mg.tensor([1.0, 200.0])).all())
    True
    """

    limits: ClassVar[Limits] = {**_MomentOptimizer.limits, "momentum_decay": NON_NEGATIVE}
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
        super().__init__(params, constructor_options(locals()))

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Perform one step of `p`."""
        attrs = self._advance_step(state, group)
        mu, next_mu = [
            attrs["beta1"] * (1 - 0.5 * 0.96 ** (k * group["momentum_decay"]))
            for k in (attrs["step"], attrs["step"] + 1)
        ]
        state["mu_product"] = mu_product = state.get("mu_product", 1.0) * mu
        buffers = self.memory(state, p, "exp_avg", "exp_avg_sq")
        attrs |= {"mu": mu, "next_mu": next_mu, "mu_product": mu_product, "decoupled": group["decoupled_weight_decay"]}
        self.apply(ops.nadam_step, p, grad, buffers, group, **attrs)


class RAdam(_MomentOptimizer):
    """Implements RAdam: Adam with a variance rectification, and without adaptive rates in the first steps.

    Liu, Jiang, He, Chen, Liu, Gao, Han 2020, "On the variance of the adaptive learning rate and beyond", algorithm 2;
    g, m, v as in `Adam`:

    - ρ∞ = 2 / (1 − β₂) − 1, ρ = ρ∞ − 2 t β₂ᵗ / (1 − β₂ᵗ)
    - p = p − `lr` · m / (1 − β₁ᵗ) while ρ ≤ 5; afterwards this step is multiplied by r √(1 − β₂ᵗ) / (√v + `eps`), where
      r² = (ρ − 4)(ρ − 2) ρ∞ / ((ρ∞ − 4)(ρ∞ − 2) ρ)

    For arguments and errors see `Adam`.

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
        super().__init__(params, constructor_options(locals()))

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Perform one step of `p`."""
        attrs = self._advance_step(state, group)
        buffers = self.memory(state, p, "exp_avg", "exp_avg_sq")
        self.apply(ops.radam_step, p, grad, buffers, group, decoupled=group["decoupled_weight_decay"], **attrs)
