"""Linear algebra: PyTorch's functions, which check shapes and bring operands to matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from minigrad import ops
from minigrad._tensor import Tensor
from minigrad.errors import DTypeError, ShapeError
from minigrad.graph import strict_shapes
from minigrad.layout import Shape, broadcast_shapes

__all__ = ["METHODS", "bmm", "dot", "linear", "matmul", "mm", "outer"]


def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The matrix product, over the last two dimensions; those before them are batches, and broadcast.

    (…, n, k) @ (…, k, m) has shape (…, n, m). A vector on the left counts as a row, on the right as a column, and that
    dimension is gone from the result; of two vectors it is their dot product. Raises ShapeError where sizes differ, and
    DTypeError where types do.

    >>> from minigrad.creation import tensor
    >>> matmul(tensor([[1.0, 2.0]]), tensor([3.0, 4.0]))
    tensor([11.])
    """
    if not input.ndim or not other.ndim:
        raise ShapeError("matmul: a number has no rows; multiply with * instead.")
    inner = other.shape[-2] if other.ndim > 1 else other.shape[0]
    if input.shape[-1] != inner:
        raise ShapeError(_unequal("matmul", input.shape, other.shape, input.shape[-1], inner))
    broadcast_shapes(input.shape[:-2], other.shape[:-2], op="matmul")
    if input.dtype is not other.dtype:
        one, two = input.dtype.name, other.dtype.name
        raise DTypeError(f"matmul: {one} @ {two}: both must be of one type; convert one: x.to(mg.{two}).")
    a = input if input.ndim > 1 else input[None]
    b = other if other.ndim > 1 else other[:, None]
    product: Tensor = ops.matmul(a, b)
    if input.ndim == 1:
        product = product[..., 0, :]
    return product[..., 0] if other.ndim == 1 else product


def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices, (n, k) @ (k, m), without broadcasting. Raises ShapeError for other than matrices."""
    _check_dims("mm", 2, input, mat2)
    return matmul(input, mat2)


def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The products of two batches of matrices, (b, n, k) @ (b, k, m), without broadcasting. Raises ShapeError."""
    _check_dims("bmm", 3, input, mat2)
    if input.shape[0] != mat2.shape[0]:
        raise ShapeError(
            f"bmm: batches of {input.shape[0]} and {mat2.shape[0]} matrices; use matmul to broadcast them."
        )
    return matmul(input, mat2)


def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """The dot product of two vectors of one length, a number. Raises ShapeError otherwise."""
    _check_dims("dot", 1, input, tensor)
    return matmul(input, tensor)


def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """The products of each number of one vector with each of another: (n,) and (m,) give (n, m)."""
    _check_dims("outer", 1, input, vec2)
    product: Tensor = input[:, None] * vec2
    return product


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x Wᵀ + b: `input` (…, in), `weight` (out, in) or (in,), `bias` (out,); gives (…, out). Raises ShapeError."""
    product = matmul(input, weight.T)
    if bias is None:
        return product
    with strict_shapes(False):  # a bias for each output is what a layer is known for
        return cast(Tensor, product + bias)


def _check_dims(name: str, ndim: int, *operands: Tensor) -> None:
    if any(x.ndim != ndim for x in operands):
        shapes = " and ".join(str(x.shape) for x in operands)
        raise ShapeError(f"{name}: it takes operands of {ndim} dimensions, not {shapes}; matmul takes any.")


def _unequal(name: str, a: Shape, b: Shape, left: int, right: int) -> str:
    text = f"{name}: {a} @ {b}: the inner sizes {left} and {right} differ."
    if len(b) == 2 and a[-1] == b[1]:
        text += f"\n  Did you mean x @ w.T, which gives {(*a[:-1], b[0])}?"
    elif len(a) == 2 and a[0] == right:
        text += f"\n  Did you mean x.T @ w, which gives {(a[1], *b[:-2], b[-1])}?"
    return text


METHODS: dict[str, Callable[..., Any]] = {"bmm": bmm, "dot": dot, "matmul": matmul, "mm": mm, "outer": outer}
METHODS["__matmul__"] = matmul
