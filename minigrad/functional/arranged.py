"""Tensors put together, cut and paired: more of PyTorch's functions that are a line or two of others."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from minigrad import ops
from minigrad.core.dtypes import get_default_dtype, int64
from minigrad.core.errors import ArgumentError, DTypeError, ShapeError
from minigrad.core.registry import register
from minigrad.core.shapes import Shape, numel
from minigrad.core.shapes import broadcast_shapes as common_shape
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import check_number, dim_of_some, flat, one_dim_of, shaped, tensor_of
from minigrad.functional.creation import arange, tensor
from minigrad.functional.linalg import matmul, outer
from minigrad.functional.reduce import mean, norm, sum
from minigrad.functional.shape import cat, diag, flip, stack, vstack
from minigrad.functional.views import broadcast_tensors, meshgrid, narrow, split, tensor_split


@register
def atleast_3d(*tensors: Any) -> Any:
    """A tensor, or each of several, with three dimensions or more: a row (n,) becomes (1, n, 1), (m, n) (m, n, 1)."""
    listed = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors
    found = []
    for x in listed:
        sizes = tensor_of(x, "atleast_3d").shape
        found.append(shaped(x, (*(1,) * (2 - len(sizes)), *sizes, 1) if len(sizes) < 3 else sizes))
    return found[0] if listed is tensors and len(found) == 1 else tuple(found)


@register
def broadcast_shapes(*shapes: int | Sequence[int]) -> Shape:
    """The shape that tensors of these shapes broadcast to together; an int is a shape of one. Raises ShapeError.

    >>> broadcast_shapes((3, 1), (2,), 1)
    (3, 2)
    """
    return common_shape(*[(s,) if isinstance(s, int) else tuple(s) for s in shapes], op="broadcast_shapes")


@register
def row_stack(tensors: Sequence[Tensor]) -> Tensor:
    """`vstack` by its other name."""
    return vstack(tensors)


@register
def block_diag(*tensors: Tensor) -> Tensor:
    """Matrices along the diagonal of one that is 0 elsewhere; a row is a matrix of one row, a number one of one.

    >>> import minigrad as mg
    >>> mg.block_diag(mg.tensor([[1, 2]]), mg.tensor(3)).tolist()
    [[1, 2, 0], [0, 0, 3]]
    """
    if any(tensor_of(x, "block_diag").ndim > 2 for x in tensors):
        raise ShapeError("block_diag: its operands are matrices, rows or numbers.")
    blocks = [shaped(x, (*(1,) * (2 - x.ndim), *x.shape)) for x in tensors]
    ends = list(itertools.accumulate([x.shape[1] for x in blocks], initial=0))
    rows = []
    for x, start, end in zip(blocks, ends, ends[1:], strict=False):
        before, after = (x.new_zeros((x.shape[0], n)) for n in (start, ends[-1] - end))
        rows.append(cat([before, x, after], 1))
    return cat(rows, 0)


@register
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All ways to take one number of each line (n,), the last varying first: a row a way. Of one line itself."""
    if any(tensor_of(x, "cartesian_prod").ndim != 1 for x in tensors):
        raise ShapeError("cartesian_prod: its operands are lines of numbers, (n,).")
    return tensors[0] if len(tensors) == 1 else stack([flat(x) for x in meshgrid(*tensors, indexing="ij")], 1)


@register
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of `r` numbers of a line (n,), in its order, a row a choice; `with_replacement` the same again."""
    if tensor_of(input, "combinations").ndim != 1 or r < 0:
        raise ShapeError(f"combinations: input is a line of numbers and r not below 0, here {input.shape} and {r}.")
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = list(choose(range(input.shape[0]), r))
    return input[tensor(places, dtype=int64, device=input.device).reshape(len(places), r)] if r else input[:0]


@register(method=True)
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """A matrix with all numbers of `input` along its diagonal, or `offset` above it."""
    return diag(flat(tensor_of(input, "diagflat")), offset)


@register
def vander(x: Tensor, N: int | None = None, *, increasing: bool = False) -> Tensor:
    """The powers of each number of a line, a row for each: from `N` - 1, by default its length, down to 0, or up."""
    if tensor_of(x, "vander").ndim != 1:
        raise ShapeError(f"vander: x is a line of numbers, and has shape {x.shape}; linalg.vander takes batches.")
    powers = arange(x.shape[0] if N is None else N, device=x.device)
    found: Tensor = x[:, None] ** (powers if increasing else flip(powers, [0]))
    return found


@register
def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Of places counted row by row in a tensor of `shape` the place along each dimension."""
    if tensor_of(indices, "unravel_index", "indices").dtype.kind != 1:
        raise DTypeError(f"unravel_index: indices of {indices.dtype.name} are not integers, which count places.")
    sizes, left, found = ((shape,) if isinstance(shape, int) else tuple(shape)), indices.to(int64), []
    for size in sizes[::-1]:
        found.append(left % size)
        left = left // size
    return tuple(found[::-1])


# --- parts ---


@register(method=True)
def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """`split` by a list of sizes."""
    return split(input, list(split_sizes), dim)


@register(method=True)
def hsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """`tensor_split` along the columns; of one dimension along that."""
    return _equal_parts("hsplit", input, indices_or_sections, 1 if tensor_of(input, "hsplit").ndim > 1 else 0, 1)


@register(method=True)
def vsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """`tensor_split` along the rows. Raises ShapeError for fewer than two dimensions."""
    return _equal_parts("vsplit", input, indices_or_sections, 0, 2)


@register(method=True)
def dsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """`tensor_split` along the third dimension. Raises ShapeError for fewer."""
    return _equal_parts("dsplit", input, indices_or_sections, 2, 3)


def _equal_parts(name: str, x: Tensor, parts: int | Sequence[int], k: int, ndim: int) -> tuple[Tensor, ...]:
    if tensor_of(x, name).ndim < ndim or (isinstance(parts, int) and (parts < 1 or x.shape[k] % parts)):
        raise ShapeError(
            f"{name}: shape {x.shape} has no {parts!r} equal parts along dimension {k}.\n"
            "  tensor_split allows parts that are not equal."
        )
    return tensor_split(x, parts, k)


# --- products and distances ---


@register(method=True)
def ger(input: Tensor, vec2: Tensor) -> Tensor:
    """`outer` by its other name."""
    return outer(input, vec2)


@register
def chain_matmul(*matrices: Tensor) -> Tensor:
    """The product of several matrices, from the left to the right."""
    found = tensor_of(matrices[0], "chain_matmul")
    for x in matrices[1:]:
        found = matmul(found, x)
    return found


@register(method=True)
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """The vector that stands upright on two, as long as their parallelogram is large, along `dim` of size 3.

    Without `dim` the first dimension of that size. They broadcast. Raises ShapeError where there is none.

    >>> import minigrad as mg
    >>> mg.cross(mg.tensor([1.0, 0.0, 0.0]), mg.tensor([0.0, 1.0, 0.0])).tolist()
    [0.0, 0.0, 1.0]
    """
    if tensor_of(input, "cross").ndim != tensor_of(other, "cross", "other").ndim:
        raise ShapeError(f"cross: {input.shape} and {other.shape} do not have the same number of dimensions.")
    if dim is not None and {x.shape[dim_of_some(x, dim, "cross")] for x in (input, other)} != {3}:
        raise ShapeError(f"cross: {input.shape} and {other.shape} are not vectors of three elements along dim={dim}.")
    a, b = broadcast_tensors(input, other)
    k = next((k for k, n in enumerate(a.shape) if n == 3), None) if dim is None else dim_of_some(a, dim, "cross")
    if k is None or a.shape[k] != 3:
        raise ShapeError(f"cross: vectors of three numbers have a product, and shape {a.shape} has none along {dim=}.")
    (a0, a1, a2), (b0, b1, b2) = a.unbind(k), b.unbind(k)
    return stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], k)


@register(method=True)
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The `p`-norm of all numbers of ``input - other``."""
    return norm(tensor_of(input, "dist") - tensor_of(other, "dist", "other"), p)


@register(method=True)
def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """The covariances of variables, a row each, over their observations, the columns: ``X Xᵀ / (n - correction)``.

    X has its mean taken off, and below 0 the divisor is 0. Of one variable, a row or a line, it is a number, the
    variance. `fweights` (n,) says how often each observation counts, in ints, and `aweights` (n,) how much, in floats;
    with them n is the sum of the weights, and for `aweights` the correction is multiplied by their weighted mean.
    Raises ArgumentError for weights below 0, or all 0.
    """
    x = tensor_of(input, "cov")
    x = x if x.dtype.is_floating_point else x.to(get_default_dtype())
    if x.ndim > 2:
        raise ShapeError(
            f"cov: a row a variable, a column an observation; shape {x.shape} has more than two dimensions."
        )
    rows = x if x.ndim == 2 else shaped(x, (1, numel(x.shape)))
    given = {"fweights": fweights, "aweights": aweights}
    weights = [_weights(name, w, rows) for name, w in given.items() if w is not None]
    if not weights:
        centred = rows - mean(rows, 1, keepdim=True)
        found = matmul(centred, centred.mT) / max(rows.shape[1] - correction, 0)
        return found if rows.shape[0] != 1 else shaped(found, ())
    weight = weights[0] * weights[-1] if len(weights) == 2 else weights[0]
    total = sum(weight)
    if not bool(total > 0):
        raise ArgumentError("cov: all weights are 0, so that there is nothing to take a mean of.")
    centred = rows - sum(rows * weight, 1, keepdim=True) / total
    less = correction if aweights is None else correction * sum(weight * weights[-1]) / total
    found = matmul(centred * weight, centred.mT) / ops.clamp(total - less, min=0.0, max=None)
    return found if rows.shape[0] != 1 else shaped(found, ())


def _weights(name: str, given: Tensor, rows: Tensor) -> Tensor:
    """`fweights` or `aweights` of `cov`, one for each column of `rows`, in their type."""
    w = tensor_of(given, "cov", name)
    if w.dtype.is_floating_point is (name == "fweights") or not w.dtype.kind:
        raise DTypeError(f"cov: fweights holds ints and aweights floats, and {name} is of {w.dtype.name}.")
    if w.shape != rows.shape[1:]:
        raise ShapeError(f"cov: {name} has shape {w.shape}, and there are {rows.shape[1]} observations, a weight each.")
    if bool((w < 0).any()):
        raise ArgumentError(f"cov: {name} holds numbers below 0, and nothing counts less often than never.")
    return w.to(rows.dtype)


@register(method=True)
def corrcoef(input: Tensor) -> Tensor:
    """The correlations of variables, a row each: `cov` by the roots of both variances, brought into -1 … 1."""
    found = cov(input)
    if not found.ndim:
        return found / found
    spread = found.diagonal() ** 0.5
    return (found / spread[:, None] / spread).clamp(-1.0, 1.0)


@register(method=True)
def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """Return each element less the one before it along `dim`, `n` times over; of bools, whether the two differ.

    `prepend` and `append` go before and after `input` first: of its shape but along `dim`. Raises ShapeError for a 0-d
    `input`, and `n` below 0.

    >>> import minigrad as mg
    >>> mg.diff(mg.tensor([1, 4, 9]), prepend=mg.tensor([0])).tolist()
    [1, 3, 5]
    """
    k = one_dim_of(dim, tensor_of(input, "diff"), "diff")
    check_number(n, "diff", "n", whole=True)
    if not input.ndim or n < 0:
        raise ShapeError(f"diff: there is nothing before a number in shape {input.shape}, n={n} times over.")
    ends = {"prepend": prepend, "input": input, "append": append}
    given = [tensor_of(x, "diff", name) for name, x in ends.items() if x is not None]
    input = cat(given, k) if n and len(given) > 1 else input
    for _ in range(n):
        size = input.shape[k]
        less = max(size - 1, 0)
        after, before = input.narrow(k, size - less, less), input.narrow(k, 0, less)
        input = after - before if input.dtype.kind else after != before
    return input


@register
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """The area under `y` along `dim`, by straight lines between its numbers, which are `dx` apart or stand at `x`."""
    k = dim_of_some(y, dim, "trapezoid")
    count = max(y.shape[k] - 1, 0)
    pairs = narrow(y, k, min(1, y.shape[k]), count) + narrow(y, k, 0, count)
    if x is None:
        return sum(pairs, k) * (dx / 2.0)
    tensor_of(x, "trapezoid", "x")
    at = x if x.ndim == y.ndim else shaped(x, (*x.shape, *(1,) * (y.ndim - k - 1)))
    j = k - y.ndim + at.ndim
    if at.shape[j] != y.shape[k]:
        raise ShapeError(
            f"trapezoid: x has {at.shape[j]} places, and y {y.shape[k]} numbers along dimension {k}: one at each."
        )
    return sum(pairs * (narrow(at, j, 1, count) - narrow(at, j, 0, count)), k) / 2.0


@register
def trapz(y: Tensor, x: Tensor | None = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """`trapezoid` by its other name."""
    return trapezoid(y, x, dx=dx, dim=dim)


# --- questions ---


@register(method=True)
def is_nonzero(input: Tensor) -> bool:
    """Whether the one number in `input` is not 0. Raises ArgumentError where there are several, or none."""
    if numel(tensor_of(input, "is_nonzero").shape) != 1:
        raise ArgumentError(f"is_nonzero: shape {input.shape} is not that of one number.\n  Write x.any() or x.all().")
    return bool(input)


@register(method=True)
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have one shape."""
    return tensor_of(input, "is_same_size").shape == tensor_of(other, "is_same_size", "other").shape
