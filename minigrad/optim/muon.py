"""Muon: orthogonalised momentum for matrices."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, ClassVar

from minigrad.core.errors import ArgumentError, ShapeError
from minigrad.core.tensor import Tensor
from minigrad.optim.optimizer import NON_NEGATIVE, Limits, Optimizer, constructor_options

__all__ = ["Muon", "orthogonalize"]

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # Jordan 2024 maximises the derivative at 0 subject to results near 1.


def orthogonalize(
    x: Tensor, coefficients: tuple[float, float, float] = _COEFFICIENTS, steps: int = 5, eps: float = 1e-7
) -> Tensor:
    """Approximate U Vᵀ of a matrix U S Vᵀ: singular values become 0.7 to 1.2, except those near 0.

    The Newton-Schulz iteration with a polynomial of degree 5: X = X / max(‖X‖, eps), then `steps` times X = a X + (b A
    + c A²) X, where A = X Xᵀ and a, b, c are the `coefficients`. It maps a singular value s to a s + b s³ + c s⁵.
    Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural networks".

    `x` is (m, n). The result has the same shape and dtype. The dtype is also used internally, where PyTorch's Muon uses
    bfloat16.

    >>> import minigrad as mg
    >>> orthogonalize(mg.tensor([[3.0, 0.0], [0.0, 4.0]])).shape
    (2, 2)
    """
    a, b, c = coefficients
    is_tall = x.shape[0] > x.shape[1]
    x = x.T if is_tall else x
    x = x / (x * x).sum().sqrt().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = a * x + (b * gram + c * (gram @ gram)) @ x
    return x.T if is_tall else x


class Muon(Optimizer):
    """Implements Muon: orthogonalised momentum steps for (m, n) matrices of hidden layers. Use AdamW for others.

    Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural networks", as in PyTorch:

    - b = `momentum` · b + (1 − `momentum`) · g; o = g + `momentum` · (b − g) with `nesterov`, else b
    - p = p · (1 − `lr` · `weight_decay`) − `lr` · s · orthogonalized(o)

    where s is √max(1, m / n) (`adjust_lr_fn` "original", or None) or 0.2 √max(m, n) ("match_rms_adamw", which suits a
    rate tuned for AdamW; Liu et al. 2025, "Muon is scalable for LLM training"). It computes in the parameter's dtype,
    where PyTorch rounds to bfloat16. Each update runs several operations, including matrix products.

    Raises ShapeError unless parameters are matrices, ArgumentError for a negative `lr`, `momentum`, `weight_decay` or
    `eps`, 100 or more `ns_steps` or an unknown `adjust_lr_fn`; see also `Optimizer`.

    >>> import minigrad as mg
    >>> w = mg.tensor([[1.0, 0.0], [0.0, 1.0]], requires_grad=True)
    >>> optimizer = mg.optim.Muon([w], lr=0.1)
    >>> w.sum().backward()
    >>> optimizer.step()
    >>> bool(w[0, 0] < 1.0), w.requires_grad
    (True, True)
    """

    limits: ClassVar[Limits] = {
        "lr": NON_NEGATIVE,
        "weight_decay": NON_NEGATIVE,
        "momentum": NON_NEGATIVE,
        "eps": NON_NEGATIVE,
        "ns_steps": (0, 100),
    }

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = _COEFFICIENTS,
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        super().__init__(params, constructor_options(locals()))

    def _check_group(self, group: dict[str, Any]) -> None:
        super()._check_group(group)
        if group["adjust_lr_fn"] not in (None, "original", "match_rms_adamw"):
            raise ArgumentError(
                f'Muon: adjust_lr_fn must be "original" or "match_rms_adamw", but got {group["adjust_lr_fn"]!r}.'
            )
        for p in group["params"]:
            if p.ndim != 2:
                raise ShapeError(
                    f"Muon: only supports 2D parameters, but found a parameter of shape {p.shape}.\n"
                    "  Pass the others to another optimizer: AdamW([p for p in model.parameters() if p.ndim != 2])."
                )

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Perform one step of `p`."""
        (momentum_buffer,) = self.memory(state, p, "momentum_buffer")
        momentum_buffer.lerp_(grad, 1 - group["momentum"])
        direction = grad.lerp(momentum_buffer, group["momentum"]) if group["nesterov"] else momentum_buffer
        direction = orthogonalize(direction, group["ns_coefficients"], group["ns_steps"], group["eps"])
        m, n = p.shape
        scale = 0.2 * math.sqrt(max(m, n)) if group["adjust_lr_fn"] == "match_rms_adamw" else math.sqrt(max(1, m / n))
        p.mul_(1 - group["lr"] * group["weight_decay"])
        p.add_(direction, alpha=-group["lr"] * scale)
