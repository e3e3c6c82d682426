"""`einsum` and `tensordot`, with PyTorch's signatures: contractions over named or numbered dimensions."""

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
