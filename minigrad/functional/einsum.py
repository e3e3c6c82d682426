"""`einsum` and `tensordot`, with PyTorch's signatures: tensor contractions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from string import ascii_letters
from typing import Any

from minigrad import ops
from minigrad.core.errors import DTypeError, ShapeError, a_kind
from minigrad.core.registry import register
from minigrad.core.shapes import dim_of
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import check_same_type, tensor_of


@register
def einsum(*args: Any) -> Tensor:
    """Sum products of operands by Einstein's summation convention: ``einsum("ij,jk->ik", a, b)`` is ``a @ b``.

    Each letter (subscript) labels a dimension; commas separate operands. Letters missing from the output are summed
    over; a letter repeated in an operand takes its diagonal. "..." covers the remaining dimensions, which broadcast.
    Without "->" the output has the dimensions of "...", then the letters that occur once, in alphabetical order. Lists
    of ints may replace letters: ``einsum(a, [0, 1], b, [1, 2], [0, 2])``. Operands are contracted from left to right.

    Raises ShapeError for an equation that does not match the operands, and DTypeError for operands of several dtypes.

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
        raise ShapeError(f"einsum: {equation!r} specifies {len(names)} operands, but {len(operands)} were provided.")
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
            f"einsum: {equation!r}: output subscript {strange[0]!r} appears more than once in the output, or does not "
            "appear in the equation for any input operand."
        )
    return _contracted(operands, names, out, f"einsum: {equation!r}")


def _lettered(args: Sequence[Any]) -> list[Any]:
    """Return equation and operands of alternating tensors and lists of ints; a last unpaired list is the output."""
    count = len(args) // 2

    def named(sublist: Sequence[Any]) -> str:
        if not isinstance(sublist, list | tuple) or any(k is not Ellipsis and not isinstance(k, int) for k in sublist):
            raise DTypeError(
                f"einsum: expected a list of ints as subscripts of an operand, but got {sublist!r:.100}.\n"
                '  Pass an equation first: einsum("ij,jk->ik", a, b).'
            )
        if any(k is not Ellipsis and not 0 <= k < 52 for k in sublist):
            raise ShapeError(f"einsum: subscripts in {sublist} must be in the valid range [0, 52), or `...`.")
        return "".join("..." if k is Ellipsis else ascii_letters[k] for k in sublist)

    equation = ",".join(named(args[2 * k + 1]) for k in range(count))
    return [equation + "->" + named(args[-1]) if len(args) % 2 else equation, *args[0 : 2 * count : 2]]


def _dots(name: str, x: Tensor, equation: str) -> str:
    """Return labels, which a user cannot write, for the dimensions of `x` that "..." covers in `name`."""
    letters = name.replace("...", "", 1)
    wrong = [k for k in letters if k not in ascii_letters]
    if wrong:
        raise ShapeError(f"einsum: {equation!r}: invalid subscript {wrong[0]!r}, subscripts must be in [a-zA-Z].")
    count = x.ndim - len(letters)
    if count < 0 or (count and "..." not in name):
        raise ShapeError(
            f"einsum: {equation!r}: the number of subscripts in {name!r} ({len(letters)}) does not match the number of "
            f"dimensions of its operand, {x.shape}.\n  Add a letter per dimension, or an ellipsis (...)."
        )
    return "".join(chr(ord("0") + k) for k in reversed(range(count)))  # from the right, for broadcasting


def _contracted(operands: Sequence[Tensor], names: Sequence[str], out: str, asked: str) -> Tensor:
    """Return the sum of products over labelled dimensions, of one dtype; sizes of 1 broadcast."""
    sizes: dict[str, int] = {}
    for x, name in zip(operands, names, strict=True):
        for k, size in zip(name, x.shape, strict=True):
            known = sizes.get(k, 1)
            if 1 != known != size != 1:
                shapes, named = " and ".join(str(x.shape) for x in operands), k in ascii_letters
                raise ShapeError(
                    f"{asked}: {f'subscript {k!r}' if named else 'a dimension of ...'} has size {size}, which does not "
                    f"broadcast with previously seen size {known}.\n  The operands have shapes {shapes}."
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
    return (
        x if name == out and x is not operands[0] else x.permute(*[name.index(k) for k in out])
    )  # never return an operand itself


def _plain(x: Tensor, name: str, sizes: dict[str, int], asked: str) -> tuple[Tensor, str]:
    """Return `x` with each letter once, and without dimensions of size 1 that would broadcast."""
    for k in dict.fromkeys(name):
        while name.count(k) > 1:
            i = name.index(k)
            j = name.index(k, i + 1)
            if x.shape[i] != x.shape[j]:
                raise ShapeError(
                    f"{asked}: subscript {k!r} is repeated for shape {x.shape}, but the sizes don't match."
                )
            x, name = ops.diagonal(x, offset=0, dim1=i, dim2=j), name[:i] + name[i + 1 : j] + name[j + 1 :] + k
    kept = [i for i, k in enumerate(name) if x.shape[i] == sizes[k]]
    if len(kept) < x.ndim:
        x = ops.reshape(x, shape=tuple([x.shape[i] for i in kept]))
    return x, "".join(name[i] for i in kept)


def _summed(x: Tensor, name: str, kept: set[str]) -> tuple[Tensor, str]:
    """Sum `x` over the letters that are not in `kept`."""
    dims = tuple([i for i, k in enumerate(name) if k not in kept])
    if dims:
        x = ops.sum(x, dim=dims, keepdim=False)
    return x, "".join(k for k in name if k in kept)


@register
def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """Contract the last `dims` dimensions of `a` with the first `dims` of `b`, in order.

    If `dims` is a pair of lists, contract those of `a` in the first with those of `b` in the second. The result has the
    other dimensions of `a`, then those of `b`. Raises ShapeError if sizes differ, unless one is 1, and DTypeError if
    dtypes differ.
    """
    check_same_type("tensordot", a=tensor_of(a, "tensordot", "a"), b=tensor_of(b, "tensordot", "b"))
    if isinstance(dims, int):
        if not 0 <= dims <= min(a.ndim, b.ndim):
            raise ShapeError(
                f"tensordot: expected 0 <= dims <= {min(a.ndim, b.ndim)}, the dimensions of both, but got dims={dims}."
            )
        dims = (range(a.ndim - dims, a.ndim), range(dims))
    if not isinstance(dims, Sequence):
        raise DTypeError(f"tensordot: expected dims to be an int or a pair of lists, but got {a_kind(dims)}, {dims!r}.")
    mine, its = ([dim_of(k, x.ndim, "tensordot") for k in one] for one, x in zip(dims, (a, b), strict=True))
    if len(mine) != len(its) or len(set(mine)) < len(mine) or len(set(its)) < len(its):
        raise ShapeError(f"tensordot: both lists in dims={dims} should have the same length and no duplicates.")
    for i, j in zip(mine, its, strict=True):
        if 1 != a.shape[i] != b.shape[j] != 1:
            raise ShapeError(
                f"tensordot: contracted dimensions need to match, but got {i} of {a.shape} and {j} of {b.shape}."
            )
    left = ascii_letters[: a.ndim]
    right = "".join(left[mine[its.index(k)]] if k in its else ascii_letters[a.ndim + k] for k in range(b.ndim))
    out = "".join(k for k in left + right if (k in left) != (k in right))
    return _contracted([a, b], [left, right], out, "tensordot").to(a.dtype)
