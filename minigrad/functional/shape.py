"""Numbers put together, spread, turned and cut out: copies, with PyTorch's signatures. For views, see `views`.

`dim` counts from either end. ShapeError for a dimension that is not there, and for sizes that do not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from minigrad import ops
from minigrad.core.dtypes import int64
from minigrad.core.errors import DTypeError, ShapeError
from minigrad.core.registry import register, register_method
from minigrad.core.shapes import Shape, dims_of
from minigrad.core.shapes import broadcast_shapes as common_shape
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import dim_of_some, listed_ints, shaped, tensor_of
from minigrad.functional.views import flatten, transpose


@register_method("repeat")
def _repeat(input: Tensor, *repeats: Any) -> Tensor:
    """A copy of the whole, `repeats` times along each dimension; new dimensions come at the left."""
    times = listed_ints("repeat", repeats)
    new = len(times) - input.ndim
    if new < 0 or min(times, default=0) < 0:
        raise ShapeError(f"repeat: {times} must give a count, 0 or more, for each dimension of shape {input.shape}.")
    shape = (1,) * new + input.shape
    between = shaped(input, tuple([n for size in shape for n in (1, size)]))
    spread = between.expand(*[n for pair in zip(times, shape, strict=True) for n in pair])
    return shaped(ops.contiguous(spread), tuple([n * size for n, size in zip(times, shape, strict=True)]))


@register(method=True)
def tile(input: Tensor, *given: Any, dims: Sequence[int] | None = None) -> Tensor:
    """`repeat`, where `dims` that are left out, at the left, are 1."""
    x, times = tensor_of(input, "tile"), listed_ints("tile", given, dims)
    return _repeat(x, (1,) * (x.ndim - len(times)) + times)


@register(method=True)
def repeat_interleave(
    input: Tensor, repeats: int | Tensor, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Each number along `dim`, by default of the flattened tensor, `repeats` times: one count, or one for each.

    `output_size`, which saves PyTorch a look at the counts, must be right where it is given.
    """
    x = tensor_of(input, "repeat_interleave")
    x, k = (flatten(x), 0) if dim is None else (x, dim_of_some(x, dim, "repeat_interleave"))
    counts = repeats.tolist() if isinstance(repeats, Tensor) else repeats
    times = (counts,) if isinstance(counts, int) else listed_ints("repeat_interleave", (counts,))
    if min(times, default=0) < 0 or len(times) not in (1, x.shape[k]):
        raise ShapeError(
            f"repeat_interleave: repeats={counts} must be one count, 0 or more, or one for each of {x.shape[k]} places."
        )
    out = ops.repeat_interleave(x, repeats=times[0] if len(times) == 1 else times, dim=k)
    if output_size not in (None, out.shape[k]):
        raise ShapeError(f"repeat_interleave: output_size={output_size}, but the repeats make {out.shape[k]}.")
    return cast(Tensor, out)


@register(method=True)
def flip(input: Tensor, *given: Any, dims: int | Sequence[int] | None = None) -> Tensor:
    """A copy in reverse along `dims`."""
    x = tensor_of(input, "flip")
    return cast(Tensor, ops.flip(x, dims=dims_of(listed_ints("flip", given, dims), x.ndim, "flip")))


@register(method=True)
def fliplr(input: Tensor) -> Tensor:
    """`flip` along dimension 1. Raises ShapeError where there is none."""
    if tensor_of(input, "fliplr").ndim < 2:
        raise ShapeError(f"fliplr: shape {input.shape} has no dimension 1.\n  Write x.flip(0).")
    return flip(input, 1)


@register(method=True)
def flipud(input: Tensor) -> Tensor:
    """`flip` along dimension 0. Raises ShapeError where there is none."""
    return flip(input, dim_of_some(input, 0, "flipud"))


@register(method=True)
def roll(input: Tensor, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Tensor:
    """A copy moved on by `shifts` along `dims`; what leaves at one end comes in at the other.

    Without `dims` the flattened numbers move by one shift. Raises ShapeError unless each of `dims` has a shift.
    """
    x, by = tensor_of(input, "roll"), listed_ints("roll", (shifts,))
    along = () if dims is None else tuple([dim_of_some(x, k, "roll") for k in listed_ints("roll", (dims,))])
    if not along and len(by) == 1:
        return shaped(ops.roll(flatten(x), shifts=by, dims=(0,)), x.shape)
    if not along or len(by) != len(along):
        raise ShapeError(f"roll: shifts={shifts} and dims={dims} must be as many.")
    return cast(Tensor, ops.roll(x, shifts=by, dims=along))


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
def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Of places counted row by row in a tensor of `shape` the place along each dimension."""
    if tensor_of(indices, "unravel_index", "indices").dtype.kind != 1:
        raise DTypeError(f"unravel_index: indices of {indices.dtype.name} are not integers, which count places.")
    sizes, left, found = ((shape,) if isinstance(shape, int) else tuple(shape)), indices.to(int64), []
    for size in sizes[::-1]:
        found.append(left % size)
        left = left // size
    return tuple(found[::-1])


@register
def atleast_1d(*tensors: Any) -> Any:
    """A tensor, or each of several, with one dimension or more: a number becomes (1,)."""
    return _each(tensors, lambda x: x if x.ndim else shaped(x, (1,)))


@register
def atleast_2d(*tensors: Any) -> Any:
    """A tensor, or each of several, with two dimensions or more: a row (n,) becomes (1, n)."""
    return _each(tensors, lambda x: x if x.ndim > 1 else shaped(x, (1, x.shape[0] if x.ndim else 1)))


def _each(tensors: Sequence[Any], made: Callable[[Tensor], Tensor]) -> Any:
    listed = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors
    found = tuple(made(tensor_of(x, "atleast")) for x in listed)
    return found[0] if listed is tensors and len(found) == 1 else found


@register(method=True)
def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """`input` turned `k` times by a right angle, from the first of two `dims` to the second, or raises ShapeError."""
    if tensor_of(input, "rot90").ndim < 2:
        raise ShapeError(f"rot90: shape {input.shape} has no two dimensions to turn between.")
    if len(dims) != 2:
        raise ShapeError(f"rot90: dims={dims!r}: a turn is between two dimensions.")
    first, second = dims
    if first % input.ndim == second % input.ndim:
        raise ShapeError(f"rot90: dims={dims!r} are one dimension, and a turn is between two.")
    turned = flip(input, [first, second]) if k % 4 >= 2 else input
    return flip(transpose(turned, first, second), [first]) if k % 2 else turned.clone()
