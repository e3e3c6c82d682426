"""Utilities for the gradients and parameters of a model: PyTorch's `nn.utils`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from minigrad.core.errors import ArgumentError, ShapeError
from minigrad.core.grad_mode import no_grad
from minigrad.core.tensor import Tensor
from minigrad.functional import cat, norm, stack
from minigrad.functional.checks import check_number
from minigrad.functional.creation import tensor
from minigrad.nn.utils import rnn
from minigrad.nn.utils.weight_norms import remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
    "parameters_to_vector",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "spectral_norm",
    "vector_to_parameters",
    "weight_norm",
]


def _as_list(parameters: Any) -> list[Tensor]:
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


def get_total_norm(
    tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """Return the norm of all elements of `tensors` as one vector, or 0 if there are none. See `clip_grad_norm_`."""
    with no_grad():
        tensor_list = _as_list(tensors)
        if not tensor_list:
            return tensor(0.0)
        total: Tensor = norm(stack([norm(x, norm_type) for x in tensor_list]), norm_type)
        if error_if_nonfinite and not math.isfinite(total.item()):
            raise ArgumentError(
                f"clip_grad_norm_: the total norm of the gradients is non-finite, {total.item()}, so it cannot be "
                "clipped.\n  Write error_if_nonfinite=False to disable this error."
            )
        return total


def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the gradients of all parameters, in place, so that their total norm is at most `max_norm`.

    Returns the norm before clipping, a 0-D tensor on the device. The factor is max_norm / (norm + 1e-6), as in PyTorch.
    Pascanu, Mikolov and Bengio, "On the difficulty of training recurrent neural networks", 2013, algorithm 1. Call it
    between ``backward`` and ``step``. With `error_if_nonfinite` it raises ArgumentError if the norm is inf or nan.
    `foreach`, PyTorch's choice of implementation, has no effect.

    >>> import minigrad as mg
    >>> w = mg.zeros(2, requires_grad=True)
    >>> (w * mg.tensor([3.0, 4.0])).sum().backward()
    >>> mg.nn.utils.clip_grad_norm_([w], max_norm=1.0).item(), [round(g, 3) for g in w.grad.tolist()]
    (5.0, [0.6, 0.8])
    """
    check_number(max_norm, "clip_grad_norm_", "max_norm")
    with no_grad():
        parameter_list = _as_list(parameters)  # a generator can only be consumed once
        total = get_total_norm([p.grad for p in parameter_list if p.grad is not None], norm_type, error_if_nonfinite)
        clip_grads_with_norm_(parameter_list, max_norm, total)
        return total


def clip_grads_with_norm_(parameters: Any, max_norm: float, total_norm: Tensor, foreach: bool | None = None) -> None:
    """Scale the gradients in place by min(1, max_norm / (total_norm + 1e-6)); see `clip_grad_norm_`.

    >>> import minigrad as mg
    >>> w = mg.zeros(2, requires_grad=True)
    >>> (w * mg.tensor([3.0, 4.0])).sum().backward()
    >>> mg.nn.utils.clip_grads_with_norm_([w], 1.0, mg.nn.utils.get_total_norm([w.grad]))
    >>> [round(g, 3) for g in w.grad.tolist()]
    [0.6, 0.8]
    """
    with no_grad():
        factor = (max_norm / (total_norm + 1e-6)).clamp(max=1.0)
        for parameter in _as_list(parameters):
            if parameter.grad is not None:
                parameter.grad.mul_(factor.to(parameter.grad.dtype))


def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """Clamp the elements of the gradients to [-clip_value, clip_value], in place. `foreach` has no effect."""
    with no_grad():
        if clip_value < 0:
            raise ArgumentError(f"clip_grad_value_: clip_value must not be negative, but got {clip_value}.")
        for parameter in _as_list(parameters):
            if parameter.grad is not None:
                parameter.grad.clamp_(-clip_value, clip_value)


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Flatten and concatenate parameters into one differentiable vector."""
    return cat([parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Copy slices of `vec`, as returned by `parameters_to_vector`, into parameters.

    Raises ShapeError if the total sizes differ.
    """
    with no_grad():
        parameter_list = list(parameters)
        count = sum(parameter.numel() for parameter in parameter_list)
        if vec.shape != (count,):
            raise ShapeError(
                f"vector_to_parameters: the parameters have {count} elements, but vec has shape {vec.shape}."
            )
        start = 0
        for parameter in parameter_list:
            end = start + parameter.numel()
            parameter.copy_(vec.detach()[start:end].reshape(parameter.shape))
            start = end


def __getattr__(name: str) -> Any:
    from minigrad.pytorch.import_hooks import resolve_missing

    return resolve_missing(__name__, name)
