"""Activation functions with PyTorch's signatures. Single operations, such as `relu`, are registered in `operations`."""

from __future__ import annotations

from typing import Any, cast

from minigrad import ops
from minigrad.backends.limits import convert_scalar
from minigrad.core.errors import ArgumentError, ShapeError
from minigrad.core.registry import register
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import check_floating, check_nonscalar_dim, check_option, check_tensor
from minigrad.functional.elementwise import where


@register
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return ``alpha * elu(input / alpha)``, with a continuous derivative. Barron 2017.

    Raises ArgumentError if `alpha` is 0.
    """
    if alpha == 0:
        raise ArgumentError("celu: alpha cannot be 0, since the input is divided by it.")
    return _write_result(input, ops.elu(check_floating(input, "celu") / alpha, 1.0) * alpha, inplace)


@register
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Return the first half of `input` along `dim` times the sigmoid of the second half. Dauphin et al. 2017.

    Raises ShapeError if the size along `dim` is odd.

    >>> import minigrad as mg
    >>> mg.functional.glu(mg.tensor([4.0, 6.0, 0.0, 0.0])).tolist()
    [2.0, 3.0]
    """
    k = check_nonscalar_dim(check_floating(input, "glu"), dim, "glu")
    if input.shape[k] % 2:
        raise ShapeError(f"glu: halving dimension must be even, but got dimension {dim} of shape {input.shape}.")
    values, gates = input.chunk(2, k)
    return values * gates.sigmoid()


@register
def gumbel_softmax(logits: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """Sample from the Gumbel-softmax distribution: return softmax((logits + noise) / `tau`) along `dim`.

    The Gumbel noise is -log of exponential samples, so the argmax is a sample from softmax(logits). With `hard` the
    result is one-hot and has the gradient of the soft sample. `eps` is ignored, as in PyTorch. Jang et al. 2017, eq. 2;
    Maddison et al. 2017.
    """
    noise = -check_floating(logits, "gumbel_softmax").detach().new_empty(logits.shape).exponential_().log()
    soft: Tensor = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    one_hot = soft.detach().new_zeros(logits.shape).scatter_(dim, soft.detach().argmax(dim, keepdim=True), 1.0)
    return one_hot - soft.detach() + soft


@register
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Return `input` with values from -lambd to lambd set to 0."""
    x = check_floating(input, "hardshrink")
    return where((x >= -lambd) & (x <= lambd), 0.0, x)


@register
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``relu6(input + 3) / 6``, a piecewise linear sigmoid."""
    return _write_result(input, ops.relu6(check_floating(input, "hardsigmoid") + 3.0) / 6.0, inplace)


@register
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``input * relu6(input + 3) / 6``. Howard et al. 2019."""
    x = input.clone() if inplace else input  # the gradient needs the original values
    return _write_result(input, x * ops.relu6(check_floating(x, "hardswish") + 3.0) / 6.0, inplace)


@register
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Move each element toward 0 by `lambd`, without crossing 0. Raises ArgumentError if `lambd` is negative."""
    if lambd < 0:
        raise ArgumentError(f"softshrink: lambd must be greater than or equal to 0, but got {lambd}.")
    x = check_floating(input, "softshrink")
    return where(x > lambd, x - lambd, where(x < -lambd, x + lambd, x * 0.0))


@register
def tanhshrink(input: Tensor) -> Tensor:
    """Return ``input - tanh(input)``."""
    return check_tensor(input, "tanhshrink") - input.tanh()


@register
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Return `input`, with elements that do not exceed `threshold` replaced by `value`.

    Raises DTypeError if the dtype of `input` cannot represent `value`.
    """
    x = check_tensor(input, "threshold")
    value = value if x.dtype.is_floating_point else convert_scalar("threshold", value, x.dtype)
    return _write_result(x, where(x <= threshold, value, x), inplace)


def _write_result(input: Tensor, result: Tensor, inplace: bool) -> Tensor:
    return input.copy_(result) if inplace else result


@register
def gelu(input: Any, approximate: str = "none") -> Any:
    """Return x Φ(x), with Φ the normal CDF; `approximate` "tanh" approximates Φ (Hendrycks, Gimpel 2016)."""
    check_option(approximate, ("none", "tanh"), "gelu", "approximate")
    return ops.gelu(input) if approximate == "none" else ops.gelu_tanh(input)


@register
def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """Return ``log(1 + exp(beta * input)) / beta``, a smooth ReLU, or `input` where ``beta * input > threshold``.

    Where ``beta * input`` is at least 20, both results differ by less than 1e-8. Hence a `threshold` of at least 20,
    which PyTorch needs to avoid overflow, has no effect here.
    """
    scaled = input if beta == 1 else input * beta
    soft = ops.softplus(scaled) if beta == 1 else ops.softplus(scaled) / beta
    return soft if threshold >= 20 else ops.where(scaled > threshold, input, soft)


@register
def logsigmoid(input: Any) -> Any:
    """Return the logarithm of `sigmoid` without underflow. Raises DTypeError for an integer tensor."""
    if isinstance(input, Tensor):
        check_floating(input, "logsigmoid")
    return -ops.softplus(-input)


@register
def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Any:
    """Clamp `input` to [`min_val`, `max_val`]. Raises ArgumentError if `min_val` is greater."""
    result = ops.hardtanh(input, min_val=min_val, max_val=max_val)
    if min_val > max_val:
        raise ArgumentError(f"hardtanh: min_val={min_val} cannot be greater than max_val={max_val}.")
    return input.copy_(result) if inplace else result


@register(method=True)
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Apply `leaky_relu` with a learned slope: `weight` has one element, or one per channel (dimension 1 of `input`).

    He et al. 2015, eq. 1. Raises ShapeError for any other size.
    """
    channels = input.shape[1] if check_tensor(input, "prelu").ndim > 1 else 1
    if check_tensor(weight, "prelu", "weight").ndim > 1 or weight._array.size not in (1, channels):
        raise ShapeError(
            f"prelu: expected weight of shape (1,) or ({channels},), the channels of input, but got {weight.shape}."
        )
    if input.ndim > 1 and weight._array.size > 1:
        weight = cast(Tensor, ops.reshape(weight, shape=(channels, *[1] * (input.ndim - 2))))
    elif not input.ndim:
        weight = cast(Tensor, ops.reshape(weight, shape=()))
    return cast(Tensor, ops.prelu(input, weight))
