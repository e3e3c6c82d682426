"""Linear algebra: PyTorch's functions, which check shapes and bring operands to matrices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from string import ascii_letters
from typing import Any, cast

from minigrad import ops
from minigrad.core.errors import DTypeError, ShapeError, a_kind
from minigrad.core.modes import modes
from minigrad.core.registry import register
from minigrad.core.shapes import Shape, broadcast_shapes, check_equal_shapes, dim_of
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import check_same_type, check_stretches, scaled, tensor_of


@register(method=True, operator="matmul")
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The matrix product, over the last two dimensions; those before them are batches, and broadcast.

    (…, n, k) @ (…, k, m) has shape (…, n, m). A vector on the left counts as a row, on the right as a column, and that
    dimension is gone from the result; of two vectors it is their dot product. Raises ShapeError where sizes differ, and
    DTypeError where types do.

    >>> from minigrad.functional.creation import tensor
    >>> matmul(tensor([[1.0, 2.0]]), tensor([3.0, 4.0]))
    tensor([11.])
    """
    check_same_type("matmul", input=tensor_of(input, "matmul"), other=tensor_of(other, "matmul", "other"))
    if not input.ndim or not other.ndim:
        raise ShapeError("matmul: a number has no rows; multiply with * instead.")
    inner = other.shape[-2] if other.ndim > 1 else other.shape[0]
    if input.shape[-1] != inner:
        raise ShapeError(_unequal("matmul", input.shape, other.shape, input.shape[-1], inner))
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
    """The product of two matrices, (n, k) @ (k, m), without broadcasting. Raises ShapeError for other than matrices."""
    _check_dims("mm", 2, input, mat2)
    return matmul(input, mat2)


@register(method=True)
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The products of two batches of matrices, (b, n, k) @ (b, k, m), without broadcasting. Raises ShapeError."""
    _check_dims("bmm", 3, input, mat2)
    if input.shape[0] != mat2.shape[0]:
        raise ShapeError(
            f"bmm: batches of {input.shape[0]} and {mat2.shape[0]} matrices; use matmul to broadcast them."
        )
    return matmul(input, mat2)


@register(method=True)
def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """The dot product of two vectors of one length, a number. Raises ShapeError otherwise."""
    _check_dims("dot", 1, input, tensor)
    return matmul(input, tensor)


@register(method=True)
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """The products of each number of one vector with each of another: (n,) and (m,) give (n, m)."""
    _check_dims("outer", 1, input, vec2)
    return input[:, None] * vec2


@register(method=True)
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """The product of a matrix and a vector, (n, k) @ (k,). Raises ShapeError for anything else."""
    _check_dims("mv", 2, input)
    _check_dims("mv", 1, vec)
    return matmul(input, vec)


@register(method=True)
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """`dot`: numbers here are real, so that there is nothing to conjugate."""
    _check_dims("vdot", 1, input, other)
    return matmul(input, other)


@register
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x Wᵀ + b: `input` (…, in), `weight` (out, in), `bias` (out,); gives (…, out). A `weight` (in,) gives (…,).

    Raises ShapeError where these sizes differ, and DTypeError where types do.
    """
    tensor_of(input, "linear"), tensor_of(weight, "linear", "weight")
    if weight.ndim == 1 and bias is None:
        return matmul(input, weight)
    if weight.ndim != 2 or not input.ndim or input.shape[-1] != weight.shape[1]:
        raise ShapeError(
            f"linear: the input, {input.shape}, is (…, in), but weight, {weight.shape}, is not (out, in).\n"
            "  Each row of weight has a number for each number in the last dimension of the input."
        )
    check_same_type("linear", input=input, weight=weight, bias=bias)
    if bias is not None and bias.shape not in ((), (1,), weight.shape[:1]):
        raise ShapeError(f"linear: bias has shape {bias.shape}, but there are {weight.shape[0]} outputs.")
    return cast(Tensor, ops.linear(input, weight, bias))


@register
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input1 @ weight[k] @ input2 + bias[k]`` for each k: (…, n), (…, m), (out, n, m) and (out,) give (…, out).

    Raises ShapeError where these sizes differ, and DTypeError where types do.
    """
    for name, x in (("input1", input1), ("input2", input2), ("weight", weight)):
        tensor_of(x, "bilinear", name)
    n, m = input1.shape[-1:], input2.shape[-1:]
    if weight.ndim != 3 or (*n, *m) != weight.shape[1:] or input1.shape[:-1] != input2.shape[:-1]:
        raise ShapeError(
            f"bilinear: the inputs, {input1.shape} and {input2.shape}, are (…, n) and (…, m) with the same …, and "
            f"weight (out, n, m), not {weight.shape}."
        )
    products = (input1[..., :, None] * input2[..., None, :]).flatten(-2)
    return linear(products, weight.flatten(1), bias)


@register(method=True, in_place=True)
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta input + alpha (mat1 @ mat2); `input` broadcasts to the product, and is not read where `beta` is 0.

    Of ints, `beta` and `alpha` must be ints too: DTypeError, where PyTorch cuts them off.
    """
    return _added("addmm", input, mm(mat1, mat2), beta, alpha)


@register(method=True, in_place=True)
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta input + alpha (mat @ vec), as `addmm`."""
    return _added("addmv", input, mv(mat, vec), beta, alpha)


@register(method=True, in_place=True)
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta input + alpha (batch1 @ batch2), of batches of matrices as `bmm`, and else as `addmm`."""
    return _added("baddbmm", input, bmm(batch1, batch2), beta, alpha)


@register(method=True, in_place=True)
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """``beta * input + alpha * sum(batch1 @ batch2)``, the sum over the matrices (b, n, k) @ (b, k, m)."""
    product = cast(Tensor, ops.sum(bmm(batch1, batch2), dim=(0,), keepdim=False))
    return _added("addbmm", input, product.to(batch1.dtype), beta, alpha)


@register(method=True, in_place=True)
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """``beta * input + alpha * outer(vec1, vec2)``."""
    return _added("addr", input, outer(vec1, vec2), beta, alpha)


def _added(name: str, input: Tensor, product: Tensor, beta: float, alpha: float) -> Tensor:
    check_same_type(name, input=input, product=product)
    check_stretches(input, product.shape, name, "input")
    product = scaled(alpha, product, product, name)
    if beta == 0:
        return ops.where(False, input, product) if input.requires_grad and modes.grad else product
    return cast(Tensor, scaled(beta, input, input, name, "beta") + product)


@register(method=True)
def trace(input: Tensor) -> Tensor:
    """The sum of the diagonal of a matrix."""
    _check_dims("trace", 2, input)
    side = min(input.shape)
    return cast(Tensor, ops.sum(ops.diagonal(input[:side, :side], offset=0, dim1=0, dim2=1), dim=(0,), keepdim=False))


# --- einsum ---


@register
def einsum(*args: Any) -> Tensor:
    """Sums of products, by Einstein's convention: ``einsum("ij,jk->ik", a, b)`` is ``a @ b``.

    A letter names a dimension of each operand, by comma; letters that are not in the output are summed over, and one
    that stands twice in an operand takes its diagonal. "..." stands for any further dimensions, which broadcast.
    Without "->" the output has what "..." stands for, then the letters that stand once, in alphabetical order. Ints in
    lists may replace letters: ``einsum(a, [0, 1], b, [1, 2], [0, 2])``. Several operands are multiplied from the left.

    Raises ShapeError for an equation that does not fit the operands, and DTypeError for operands of several types.

    >>> import minigrad as mg
    >>> einsum("ij->j", mg.tensor([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [4.0, 6.0]
    """
    equation, *operands = args if isinstance(args[0], str) else _lettered(args)
    if len(operands) == 1 and isinstance(operands[0], Sequence):
        operands = list(operands[0])
    left, arrow, right = equation.replace(" ", "").partition("->")
    names = left.split(",")
    if len(names) != len(operands):
        raise ShapeError(f"einsum: {equation!r} names {len(names)} operands, but {len(operands)} were given.")
    check_same_type("einsum", **{f"operand {k}": x for k, x in enumerate(operands)})
    rest = [_dots(name, x, equation) for name, x in zip(names, operands, strict=True)]
    dots = max(rest, key=len)
    names = [name.replace("...", own) for name, own in zip(names, rest, strict=True)]
    letters = "".join(names)
    once = "".join(sorted(k for k in set(letters) - set(dots) if letters.count(k) == 1))
    out = right.replace("...", dots) if arrow else dots + once
    strange = [k for k in out if k not in letters or out.count(k) > 1]
    if strange:
        raise ShapeError(
            f"einsum: {equation!r}: {strange[0]!r} stands in the output, but not just once, or in no operand.\n"
            "  Each letter of the output names one dimension of the result, and comes from an operand."
        )
    return _contracted(operands, names, out, f"einsum: {equation!r}")


def _lettered(args: Sequence[Any]) -> list[Any]:
    """The equation and the operands that tensors and lists of ints, in turn, stand for; an odd list is the output."""
    count = len(args) // 2

    def named(sublist: Sequence[Any]) -> str:
        if not isinstance(sublist, list | tuple) or any(k is not Ellipsis and not isinstance(k, int) for k in sublist):
            raise DTypeError(
                f"einsum: {sublist!r:.100} stands where the dimensions of an operand are listed, as ints.\n"
                '  An equation comes first: einsum("ij,jk->ik", a, b).'
            )
        if any(k is not Ellipsis and not 0 <= k < 52 for k in sublist):
            raise ShapeError(f"einsum: {sublist}: dimensions are numbered from 0 to 51, or `...`.")
        return "".join("..." if k is Ellipsis else ascii_letters[k] for k in sublist)

    equation = ",".join(named(args[2 * k + 1]) for k in range(count))
    return [equation + "->" + named(args[-1]) if len(args) % 2 else equation, *args[0 : 2 * count : 2]]


def _dots(name: str, x: Tensor, equation: str) -> str:
    """The names, which no reader can have given, of the dimensions of `x` that "..." stands for in `name`."""
    letters = name.replace("...", "", 1)
    wrong = [k for k in letters if k not in ascii_letters]
    if wrong:
        raise ShapeError(f"einsum: {equation!r}: {wrong[0]!r} is no letter; use a-z, A-Z, commas, ... and one ->.")
    count = x.ndim - len(letters)
    if count < 0 or (count and "..." not in name):
        raise ShapeError(
            f"einsum: {equation!r}: {name!r} names {len(letters)} dimensions, but its operand has shape {x.shape}.\n"
            "  Give each dimension a letter, or write ... for those that come along."
        )
    return "".join(chr(ord("0") + k) for k in reversed(range(count)))  # from the right, where they broadcast


def _contracted(operands: Sequence[Tensor], names: Sequence[str], out: str, asked: str) -> Tensor:
    """The sum of products, one letter a dimension, of one type; sizes of 1 stretch."""
    sizes: dict[str, int] = {}
    for x, name in zip(operands, names, strict=True):
        for k, size in zip(name, x.shape, strict=True):
            known = sizes.get(k, 1)
            if 1 != known != size != 1:
                shapes, named = " and ".join(str(x.shape) for x in operands), k in ascii_letters
                raise ShapeError(
                    f"{asked}: {repr(k) if named else 'a dimension of ...'} has sizes {known} and {size}; a letter has "
                    f"one size, or 1.\n  The operands have shapes {shapes}."
                )
            sizes[k] = size if known == 1 else known
    pairs = [_plain(x, name, sizes, asked) for x, name in zip(operands, names, strict=True)]
    (x, name), rest = pairs[0], pairs[1:]
    for place, (y, its) in enumerate(rest):
        later = {*out, *chain(*(name for _, name in rest[place + 1 :]))}
        x, name = _summed(x, name, {*its, *later})
        y, its = _summed(y, its, {*name, *later})
        last = place == len(rest) - 1
        result = out if last else "".join(k for k in dict.fromkeys(name + its) if k in later)
        x, name = ops.contract(x, y, name, its, result), result
    x, name = _summed(x, name, set(out))
    return x if name == out and x is not operands[0] else x.permute(*[name.index(k) for k in out])  # never an operand


def _plain(x: Tensor, name: str, sizes: dict[str, int], asked: str) -> tuple[Tensor, str]:
    """`x` with each letter once, and without dimensions of size 1 that would stretch."""
    for k in dict.fromkeys(name):
        while name.count(k) > 1:
            i = name.index(k)
            j = name.index(k, i + 1)
            if x.shape[i] != x.shape[j]:
                raise ShapeError(f"{asked}: {k!r} stands twice in shape {x.shape}, for unequal sizes: no diagonal.")
            x, name = ops.diagonal(x, offset=0, dim1=i, dim2=j), name[:i] + name[i + 1 : j] + name[j + 1 :] + k
    kept = [i for i, k in enumerate(name) if x.shape[i] == sizes[k]]
    if len(kept) < x.ndim:
        x = ops.reshape(x, shape=tuple([x.shape[i] for i in kept]))
    return x, "".join(name[i] for i in kept)


def _summed(x: Tensor, name: str, kept: set[str]) -> tuple[Tensor, str]:
    """`x` summed over the letters that are not kept."""
    dims = tuple([i for i, k in enumerate(name) if k not in kept])
    if dims:
        x = ops.sum(x, dim=dims, keepdim=False)
    return x, "".join(k for k in name if k in kept)


@register
def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """The sum over products along pairs of dimensions: the last `dims` of `a` with the first of `b`, in order.

    Or, of two lists, those in the first, of `a`, with those in the second, of `b`. The result has the other dimensions
    of `a`, then those of `b`. Raises ShapeError where sizes differ, unless one is 1, and DTypeError where types do.
    """
    check_same_type("tensordot", a=tensor_of(a, "tensordot", "a"), b=tensor_of(b, "tensordot", "b"))
    if isinstance(dims, int):
        if not 0 <= dims <= min(a.ndim, b.ndim):
            raise ShapeError(f"tensordot: dims={dims}, but there are {a.ndim} dimensions and {b.ndim}.")
        dims = (range(a.ndim - dims, a.ndim), range(dims))
    if not isinstance(dims, Sequence):
        raise DTypeError(f"tensordot: dims={dims!r} is {a_kind(dims)}, neither an int nor a pair of lists.")
    mine, its = ([dim_of(k, x.ndim, "tensordot") for k in one] for one, x in zip(dims, (a, b), strict=True))
    if len(mine) != len(its) or len(set(mine)) < len(mine) or len(set(its)) < len(its):
        raise ShapeError(f"tensordot: dims={dims} does not pair dimensions, each at most once.")
    for i, j in zip(mine, its, strict=True):
        if 1 != a.shape[i] != b.shape[j] != 1:
            raise ShapeError(f"tensordot: dimensions {i} of {a.shape} and {j} of {b.shape} differ in size.")
    left = ascii_letters[: a.ndim]
    right = "".join(left[mine[its.index(k)]] if k in its else ascii_letters[a.ndim + k] for k in range(b.ndim))
    out = "".join(k for k in left + right if (k in left) != (k in right))
    return _contracted([a, b], [left, right], out, "tensordot").to(a.dtype)


@register(method=True)
def inner(input: Tensor, other: Tensor) -> Tensor:
    """The sum over products along the last dimensions, of one size; of numbers, their product."""
    if not tensor_of(input, "inner").ndim or not tensor_of(other, "inner", "other").ndim:
        return input * other
    if input.shape[-1] != other.shape[-1]:
        raise ShapeError(f"inner: {input.shape} and {other.shape}: the last sizes differ.")
    return tensordot(input, other, ([-1], [-1]))


# --- checks ---


def _check_dims(name: str, ndim: int, *operands: Tensor) -> None:
    for k, x in enumerate(operands):
        tensor_of(x, name, f"operand {k}")
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
