"""Linear algebra, with PyTorch's signatures: matrix and vector products."""

from __future__ import annotations

from typing import cast

from minigrad import ops
from minigrad.core.errors import ShapeError
from minigrad.core.modes import modes
from minigrad.core.registry import register
from minigrad.core.shapes import Shape, broadcast_shapes, check_equal_shapes
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import (
    check_broadcastable,
    check_nonscalar_dim,
    check_same_dtype,
    check_tensor,
    reshape_to,
    scale_operand,
)
from minigrad.functional.creation import arange
from minigrad.functional.einsum import tensordot
from minigrad.functional.joining import stack
from minigrad.functional.shape import flip
from minigrad.functional.views import broadcast_tensors


@register(method=True, operator="matmul")
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """Return the matrix product over the last two dimensions; the leading batch dimensions are broadcast.

    (…, n, k) @ (…, k, m) has shape (…, n, m). A 1-d `input` is treated as a row, a 1-d `other` as a column, and that
    dimension is removed from the result; two vectors give their dot product. Raises ShapeError if the inner sizes
    differ and DTypeError if the dtypes differ.

    >>> from minigrad.functional.creation import tensor
    >>> matmul(tensor([[1.0, 2.0]]), tensor([3.0, 4.0]))
    tensor([11.])
    """
    check_same_dtype("matmul", input=check_tensor(input, "matmul"), other=check_tensor(other, "matmul", "other"))
    if not input.ndim or not other.ndim:
        raise ShapeError(
            f"matmul: both arguments need to be at least 1-d, but they are {input.ndim}-d and {other.ndim}-d.\n"
            "  Write input * other."
        )
    inner = other.shape[-2] if other.ndim > 1 else other.shape[0]
    if input.shape[-1] != inner:
        raise ShapeError(_mismatch_message("matmul", input.shape, other.shape, input.shape[-1], inner))
    broadcast_shapes(input.shape[:-2], other.shape[:-2], op="matmul")
    if modes.strict and input.ndim > 2 and other.ndim > 2:
        check_equal_shapes({"batches of input": input.shape[:-2], "batches of other": other.shape[:-2]}, "matmul")
    a = input if input.ndim > 1 else input[None]
    b = other if other.ndim > 1 else other[:, None]
    product: Tensor = ops.matmul(a, b)
    if input.ndim == 1:
        product = product[..., 0, :]
    return product[..., 0] if other.ndim == 1 else product


@register(method=True)
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """Multiply two matrices, (n, k) @ (k, m), without broadcasting. Raises ShapeError unless both are 2-d."""
    _check_dims("mm", 2, input, mat2)
    return matmul(input, mat2)


@register(method=True)
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """Multiply batches of matrices, (b, n, k) @ (b, k, m), without broadcasting. Raises ShapeError for other shapes."""
    _check_dims("bmm", 3, input, mat2)
    if input.shape[0] != mat2.shape[0]:
        raise ShapeError(
            f"bmm: expected equal batch sizes, but got {input.shape[0]} and {mat2.shape[0]}; matmul broadcasts them."
        )
    return matmul(input, mat2)


@register(method=True)
def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """Return the dot product of two vectors of equal length, as a 0-d tensor. Raises ShapeError otherwise."""
    _check_dims("dot", 1, input, tensor)
    return matmul(input, tensor)


@register(method=True)
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """Return the outer product of two vectors: (n,) and (m,) give (n, m)."""
    _check_dims("outer", 1, input, vec2)
    return input[:, None] * vec2


@register(method=True)
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """Multiply a matrix by a vector, (n, k) @ (k,). Raises ShapeError for other shapes."""
    _check_dims("mv", 2, input)
    _check_dims("mv", 1, vec)
    return matmul(input, vec)


@register(method=True)
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """Return the dot product of two vectors, which equals `dot` because all dtypes are real."""
    _check_dims("vdot", 1, input, other)
    return matmul(input, other)


@register
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Apply a linear transformation, x Wᵀ + b.

    `input` is (…, in), `weight` (out, in) and `bias` (out,); the result is (…, out), or (…,) for a `weight` (in,).
    Raises ShapeError if these sizes do not match and DTypeError if the dtypes differ.
    """
    check_tensor(input, "linear"), check_tensor(weight, "linear", "weight")
    if weight.ndim == 1 and bias is None:
        return matmul(input, weight)
    if weight.ndim != 2 or not input.ndim or input.shape[-1] != weight.shape[1]:
        raise ShapeError(
            f"linear: input and weight shapes cannot be multiplied ({input.shape} and {weight.shape}).\n"
            "  Expected an input of shape (…, in) and a weight of shape (out, in)."
        )
    check_same_dtype("linear", input=input, weight=weight, bias=bias)
    if bias is not None and bias.shape not in ((), (1,), weight.shape[:1]):
        raise ShapeError(f"linear: expected bias of shape {weight.shape[:1]}, but got {bias.shape}.")
    return cast(Tensor, ops.linear(input, weight, bias))


@register
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute ``input1 @ weight[k] @ input2 + bias[k]`` for each output feature k.

    `input1` is (…, n), `input2` (…, m), `weight` (out, n, m) and `bias` (out,); the result is (…, out). Raises
    ShapeError if these sizes do not match and DTypeError if the dtypes differ.
    """
    for name, x in (("input1", input1), ("input2", input2), ("weight", weight)):
        check_tensor(x, "bilinear", name)
    n, m = input1.shape[-1:], input2.shape[-1:]
    if weight.ndim != 3 or (*n, *m) != weight.shape[1:] or input1.shape[:-1] != input2.shape[:-1]:
        raise ShapeError(
            f"bilinear: expected inputs (…, n) and (…, m) with equal leading sizes and weight (out, n, m), but got "
            f"inputs {input1.shape} and {input2.shape} and weight {weight.shape}."
        )
    products = (input1[..., :, None] * input2[..., None, :]).flatten(-2)
    return linear(products, weight.flatten(1), bias)


@register(method=True, in_place=True)
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Return ``beta * input + alpha * (mat1 @ mat2)``; `input` is broadcast, and ignored if `beta` is 0.

    Raises DTypeError for a float `beta` or `alpha` with integer tensors, where PyTorch truncates them.
    """
    return _add_scaled("addmm", input, mm(mat1, mat2), beta, alpha)


@register(method=True, in_place=True)
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Return ``beta * input + alpha * (mat @ vec)``; see `addmm`."""
    return _add_scaled("addmv", input, mv(mat, vec), beta, alpha)


@register(method=True, in_place=True)
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Return ``beta * input + alpha * bmm(batch1, batch2)``; see `addmm`."""
    return _add_scaled("baddbmm", input, bmm(batch1, batch2), beta, alpha)


@register(method=True, in_place=True)
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Return ``beta * input + alpha * sum(batch1 @ batch2)``, summed over the batch: (b, n, k) @ (b, k, m)."""
    product = cast(Tensor, ops.sum(bmm(batch1, batch2), dim=(0,), keepdim=False))
    return _add_scaled("addbmm", input, product.to(batch1.dtype), beta, alpha)


@register(method=True, in_place=True)
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Return ``beta * input + alpha * outer(vec1, vec2)``."""
    return _add_scaled("addr", input, outer(vec1, vec2), beta, alpha)


@register(method=True)
def inner(input: Tensor, other: Tensor) -> Tensor:
    """Sum the products over the last dimensions, which must have equal sizes. Multiply if either tensor is 0-d."""
    if not check_tensor(input, "inner").ndim or not check_tensor(other, "inner", "other").ndim:
        return input * other
    if input.shape[-1] != other.shape[-1]:
        raise ShapeError(f"inner: the last dimensions must match, but got shapes {input.shape} and {other.shape}.")
    return tensordot(input, other, ([-1], [-1]))


@register
def vander(x: Tensor, N: int | None = None, *, increasing: bool = False) -> Tensor:
    """Return the Vandermonde matrix of `x` (n,): columns x**(N-1) … x**0, or `increasing` powers. `N` defaults to n."""
    if check_tensor(x, "vander").ndim != 1:
        raise ShapeError(f"vander: expected a 1-d tensor, but got shape {x.shape}; linalg.vander takes batches.")
    exponents = arange(x.shape[0] if N is None else N, device=x.device)
    matrix: Tensor = x[:, None] ** (exponents if increasing else flip(exponents, [0]))
    return matrix


@register(method=True)
def ger(input: Tensor, vec2: Tensor) -> Tensor:
    """Alias of `outer`."""
    return outer(input, vec2)


@register
def chain_matmul(*matrices: Tensor) -> Tensor:
    """Multiply several matrices, from left to right."""
    product = check_tensor(matrices[0], "chain_matmul")
    for x in matrices[1:]:
        product = matmul(product, x)
    return product


@register(method=True)
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """Return the cross product of vectors along `dim`, which has size 3; the operands are broadcast.

    `dim` defaults to the first dimension of size 3. Raises ShapeError if there is none.

    >>> import minigrad as mg
    >>> mg.cross(mg.tensor([1.0, 0.0, 0.0]), mg.tensor([0.0, 1.0, 0.0])).tolist()
    [0.0, 0.0, 1.0]
    """
    if check_tensor(input, "cross").ndim != check_tensor(other, "cross", "other").ndim:
        raise ShapeError(f"cross: {input.shape} and {other.shape} do not have the same number of dimensions.")
    if dim is not None and {x.shape[check_nonscalar_dim(x, dim, "cross")] for x in (input, other)} != {3}:
        raise ShapeError(f"cross: {input.shape} and {other.shape} are not vectors of three elements along dim={dim}.")
    a, b = broadcast_tensors(input, other)
    k = (
        next((k for k, n in enumerate(a.shape) if n == 3), None)
        if dim is None
        else check_nonscalar_dim(a, dim, "cross")
    )
    if k is None or a.shape[k] != 3:
        raise ShapeError(f"cross: expected a dimension of size 3, but got shape {a.shape} with {dim=}.")
    (a0, a1, a2), (b0, b1, b2) = a.unbind(k), b.unbind(k)
    return stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], k)


@register(method=True)
def kron(input: Tensor, other: Tensor) -> Tensor:
    """Return the Kronecker product: `input` with each element replaced by its product with `other`."""
    ndim = max(check_tensor(input, "kron").ndim, check_tensor(other, "kron", "other").ndim)
    a, b = (reshape_to(x, (*(1,) * (ndim - x.ndim), *x.shape)) for x in (input, other))
    expanded = reshape_to(a, tuple(n for size in a.shape for n in (size, 1)))
    tiles = reshape_to(b, tuple(n for size in b.shape for n in (1, size)))
    return reshape_to(expanded * tiles, tuple(m * n for m, n in zip(a.shape, b.shape, strict=True)))


@register(method=True)
def trace(input: Tensor) -> Tensor:
    """Return the sum of the diagonal elements of a matrix."""
    _check_dims("trace", 2, input)
    side = min(input.shape)
    return cast(Tensor, ops.sum(ops.diagonal(input[:side, :side], offset=0, dim1=0, dim2=1), dim=(0,), keepdim=False))


# --- helpers ---


def _add_scaled(name: str, input: Tensor, product: Tensor, beta: float, alpha: float) -> Tensor:
    check_same_dtype(name, input=input, product=product)
    check_broadcastable(input, product.shape, name, "input")
    product = scale_operand(alpha, product, product, name)
    if beta == 0:
        return ops.where(False, input, product) if input.requires_grad and modes.grad else product
    return cast(Tensor, scale_operand(beta, input, input, name, "beta") + product)


def _check_dims(name: str, ndim: int, *tensors: Tensor) -> None:
    for k, x in enumerate(tensors):
        check_tensor(x, name, f"operand {k}")
    if any(x.ndim != ndim for x in tensors):
        shapes = " and ".join(str(x.shape) for x in tensors)
        raise ShapeError(f"{name}: each operand must be a {ndim}D tensor, but got {shapes}; matmul takes any.")


def _mismatch_message(name: str, a: Shape, b: Shape, left: int, right: int) -> str:
    message = (
        f"{name}: mat1 and mat2 shapes cannot be multiplied ({a} @ {b}): the inner sizes {left} and {right} differ."
    )
    if len(b) == 2 and a[-1] == b[1]:
        message += f"\n  Did you mean x @ w.T, which gives {(*a[:-1], b[0])}?"
    elif len(a) == 2 and a[0] == right:
        message += f"\n  Did you mean x.T @ w, which gives {(a[1], *b[:-2], b[-1])}?"
    return message
