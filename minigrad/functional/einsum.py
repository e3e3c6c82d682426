"""`einsum` and `tensordot`, with PyTorch's signatures: tensor contractions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from string import ascii_letters
from typing import Any

from minigrad import ops
from minigrad.core.errors import DTypeError, ShapeError, describe_type
from minigrad.core.registry import register
from minigrad.core.shapes import normalize_dim
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import check_same_dtype, check_tensor


@register
def einsum(*args: Any) -> Tensor:
    """Sum products of operands by Einstein's summation convention: ``einsum("ij,jk->ik", a, b)`` is ``a @ b``.

    Each letter (subscript) labels a dimension; commas separate operands. Letters missing from the output are summed
    over; a letter repeated in an operand takes its diagonal. "..." covers the remaining dimensions, which broadcast.
    Without "->" the output has the dimensions of "...", then the letters that occur once, in alphabetical order. Lists
    of ints may replace letters: ``einsum(a, [0, 1], b, [1, 2], [0, 2])``. Operands are contracted from left to right.

    Raises ShapeError for an equation that does not match the operands, and DTypeError for operands of different dtypes.

    >>> import minigrad as mg
    >>> einsum("ij->j", mg.tensor([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [4.0, 6.0]
    """
    equation, *operands = args if isinstance(args[0], str) else _parse_sublists(args)
    if len(operands) == 1 and isinstance(operands[0], Sequence):
        operands = list(operands[0])
    left, arrow, right = equation.replace(" ", "").partition("->")
    names = left.split(",")
    if len(names) != len(operands):
        raise ShapeError(f"einsum: {equation!r} specifies {len(names)} operands, but {len(operands)} were provided.")
    check_same_dtype("einsum", **{f"operand {k}": x for k, x in enumerate(operands)})
    ellipses = [_ellipsis_labels(name, x, equation) for name, x in zip(names, operands, strict=True)]
    longest_ellipsis = max(ellipses, key=len)
    names = [name.replace("...", labels) for name, labels in zip(names, ellipses, strict=True)]
    letters = "".join(names)
    unique_letters = "".join(sorted(k for k in set(letters) - set(longest_ellipsis) if letters.count(k) == 1))
    output = right.replace("...", longest_ellipsis) if arrow else longest_ellipsis + unique_letters
    invalid = [k for k in output if k not in letters or output.count(k) > 1]
    if invalid:
        raise ShapeError(
            f"einsum: {equation!r}: output subscript {invalid[0]!r} appears more than once in the output, or does not "
            "appear in the equation for any input operand."
        )
    return _contract(operands, names, output, f"einsum: {equation!r}")


def _parse_sublists(args: Sequence[Any]) -> list[Any]:
    """Convert alternating operands and lists of ints, and an optional output list, to an equation and operands."""
    count = len(args) // 2

    def to_subscripts(sublist: Sequence[Any]) -> str:
        if not isinstance(sublist, list | tuple) or any(k is not Ellipsis and not isinstance(k, int) for k in sublist):
            raise DTypeError(
                f"einsum: expected a list of ints as subscripts of an operand, but got {sublist!r:.100}.\n"
                '  Pass an equation first: einsum("ij,jk->ik", a, b).'
            )
        if any(k is not Ellipsis and not 0 <= k < 52 for k in sublist):
            raise ShapeError(f"einsum: subscripts in {sublist} must be in the valid range [0, 52), or `...`.")
        return "".join("..." if k is Ellipsis else ascii_letters[k] for k in sublist)

    equation = ",".join(to_subscripts(args[2 * k + 1]) for k in range(count))
    return [equation + "->" + to_subscripts(args[-1]) if len(args) % 2 else equation, *args[0 : 2 * count : 2]]


def _ellipsis_labels(name: str, x: Tensor, equation: str) -> str:
    """Return a label, different from all letters, for each dimension of `x` that "..." covers in `name`."""
    letters = name.replace("...", "", 1)
    invalid = [k for k in letters if k not in ascii_letters]
    if invalid:
        raise ShapeError(f"einsum: {equation!r}: invalid subscript {invalid[0]!r}, subscripts must be in [a-zA-Z].")
    count = x.ndim - len(letters)
    if count < 0 or (count and "..." not in name):
        raise ShapeError(
            f"einsum: {equation!r}: the number of subscripts in {name!r} ({len(letters)}) does not match the number of "
            f"dimensions of its operand, {x.shape}.\n  Add a letter per dimension, or an ellipsis (...)."
        )
    return "".join(chr(ord("0") + k) for k in reversed(range(count)))  # numbered from the right, as in broadcasting


def _contract(operands: Sequence[Tensor], names: Sequence[str], output: str, error_prefix: str) -> Tensor:
    """Sum the products of operands of one dtype over all labels not in `output`. Dimensions of size 1 broadcast."""
    sizes: dict[str, int] = {}
    for x, name in zip(operands, names, strict=True):
        for k, size in zip(name, x.shape, strict=True):
            seen_size = sizes.get(k, 1)
            if 1 != seen_size != size != 1:
                shapes, is_letter = " and ".join(str(x.shape) for x in operands), k in ascii_letters
                raise ShapeError(
                    f"{error_prefix}: {f'subscript {k!r}' if is_letter else 'a dimension of ...'} has size {size}, "
                    "which does not "
                    f"broadcast with previously seen size {seen_size}.\n  The operands have shapes {shapes}."
                )
            sizes[k] = size if seen_size == 1 else seen_size
    pairs = [_take_diagonals(x, name, sizes, error_prefix) for x, name in zip(operands, names, strict=True)]
    (x, name), rest = pairs[0], pairs[1:]
    for position, (y, other_name) in enumerate(rest):
        needed_later = {*output, *chain(*(name for _, name in rest[position + 1 :]))}
        x, name = _sum_out(x, name, {*other_name, *needed_later})
        y, other_name = _sum_out(y, other_name, {*name, *needed_later})
        is_last = position == len(rest) - 1
        result = output if is_last else "".join(k for k in dict.fromkeys(name + other_name) if k in needed_later)
        x, name = ops.contract(x, y, name, other_name, result), result
    x, name = _sum_out(x, name, set(output))
    # Never return an operand itself.
    return x if name == output and x is not operands[0] else x.permute(*[name.index(k) for k in output])


def _take_diagonals(x: Tensor, name: str, sizes: dict[str, int], error_prefix: str) -> tuple[Tensor, str]:
    """Take diagonals over repeated labels, and remove broadcast dimensions. Return the result and its labels."""
    for k in dict.fromkeys(name):
        while name.count(k) > 1:
            i = name.index(k)
            j = name.index(k, i + 1)
            if x.shape[i] != x.shape[j]:
                raise ShapeError(
                    f"{error_prefix}: subscript {k!r} is repeated for shape {x.shape}, but the sizes don't match."
                )
            x, name = ops.diagonal(x, offset=0, dim1=i, dim2=j), name[:i] + name[i + 1 : j] + name[j + 1 :] + k
    kept_dims = [i for i, k in enumerate(name) if x.shape[i] == sizes[k]]
    if len(kept_dims) < x.ndim:
        x = ops.reshape(x, shape=tuple([x.shape[i] for i in kept_dims]))
    return x, "".join(name[i] for i in kept_dims)


def _sum_out(x: Tensor, name: str, kept_dims: set[str]) -> tuple[Tensor, str]:
    """Sum `x` over the dimensions with labels not in `kept_dims`. Return the sum and its labels."""
    dims = tuple([i for i, k in enumerate(name) if k not in kept_dims])
    if dims:
        x = ops.sum(x, dim=dims, keepdim=False)
    return x, "".join(k for k in name if k in kept_dims)


@register
def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """Contract the last `dims` dimensions of `a` with the first `dims` of `b`, in order.

    If `dims` is a pair of lists, contract the dimensions of `a` in the first with those of `b` in the second. The
    result has the remaining dimensions of `a`, followed by those of `b`. Raises ShapeError if sizes differ, unless one
    is 1, and DTypeError if dtypes differ.
    """
    check_same_dtype("tensordot", a=check_tensor(a, "tensordot", "a"), b=check_tensor(b, "tensordot", "b"))
    if isinstance(dims, int):
        if not 0 <= dims <= min(a.ndim, b.ndim):
            raise ShapeError(
                f"tensordot: expected 0 <= dims <= {min(a.ndim, b.ndim)}, the dimensions of both, but got dims={dims}."
            )
        dims = (range(a.ndim - dims, a.ndim), range(dims))
    if not isinstance(dims, Sequence):
        raise DTypeError(
            f"tensordot: expected dims to be an int or a pair of lists, but got {describe_type(dims)}, {dims!r}."
        )
    a_dims, b_dims = (
        [normalize_dim(k, x.ndim, "tensordot") for k in dim_list] for dim_list, x in zip(dims, (a, b), strict=True)
    )
    if len(a_dims) != len(b_dims) or len(set(a_dims)) < len(a_dims) or len(set(b_dims)) < len(b_dims):
        raise ShapeError(f"tensordot: both lists in dims={dims} should have the same length and no duplicates.")
    for i, j in zip(a_dims, b_dims, strict=True):
        if 1 != a.shape[i] != b.shape[j] != 1:
            raise ShapeError(
                f"tensordot: contracted dimensions need to match, but got {i} of {a.shape} and {j} of {b.shape}."
            )
    left = ascii_letters[: a.ndim]
    right = "".join(left[a_dims[b_dims.index(k)]] if k in b_dims else ascii_letters[a.ndim + k] for k in range(b.ndim))
    output = "".join(k for k in left + right if (k in left) != (k in right))
    return _contract([a, b], [left, right], output, "tensordot").to(a.dtype)
