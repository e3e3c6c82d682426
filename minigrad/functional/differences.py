"""Finite differences along a dimension, and the trapezoidal rule, with PyTorch's signatures."""

from __future__ import annotations

from minigrad.core.errors import ShapeError
from minigrad.core.registry import register
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import check_nonscalar_dim, check_number, check_single_dim, check_tensor, reshape_to
from minigrad.functional.joining import cat
from minigrad.functional.reduce import sum
from minigrad.functional.views import narrow


@register(method=True)
def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """Compute the `n`-th difference of consecutive elements along `dim`; for bools, the XOR.

    `prepend` and `append` are first concatenated to `input`; their shapes must match except along `dim`. Raises
    ShapeError for a 0-d `input` or a negative `n`.

    >>> import minigrad as mg
    >>> mg.diff(mg.tensor([1, 4, 9]), prepend=mg.tensor([0])).tolist()
    [1, 3, 5]
    """
    k = check_single_dim(dim, check_tensor(input, "diff"), "diff")
    check_number(n, "diff", "n", integer=True)
    if not input.ndim or n < 0:
        raise ShapeError(
            f"diff: expected input of at least one dimension and n >= 0, but got shape {input.shape} and n={n}."
        )
    parts = {"prepend": prepend, "input": input, "append": append}
    tensors = [check_tensor(x, "diff", name) for name, x in parts.items() if x is not None]
    input = cat(tensors, k) if n and len(tensors) > 1 else input
    for _ in range(n):
        size = input.shape[k]
        length = max(size - 1, 0)
        upper, lower = input.narrow(k, size - length, length), input.narrow(k, 0, length)
        input = upper - lower if input.dtype.kind else upper != lower
    return input


@register
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """Integrate `y` along `dim` by the trapezoidal rule. The sample points are `x`, or have spacing `dx`."""
    k = check_nonscalar_dim(y, dim, "trapezoid")
    count = max(y.shape[k] - 1, 0)
    pairs = narrow(y, k, min(1, y.shape[k]), count) + narrow(y, k, 0, count)
    if x is None:
        return sum(pairs, k) * (dx / 2.0)
    check_tensor(x, "trapezoid", "x")
    points = x if x.ndim == y.ndim else reshape_to(x, (*x.shape, *(1,) * (y.ndim - k - 1)))
    points_dim = k - y.ndim + points.ndim
    if points.shape[points_dim] != y.shape[k]:
        raise ShapeError(
            f"trapezoid: there must be one x value for each sample of y, but got {points.shape[points_dim]} and "
            f"{y.shape[k]}."
        )
    return sum(pairs * (narrow(points, points_dim, 1, count) - narrow(points, points_dim, 0, count)), k) / 2.0


@register
def trapz(y: Tensor, x: Tensor | None = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """Alias of `trapezoid`."""
    return trapezoid(y, x, dx=dx, dim=dim)
