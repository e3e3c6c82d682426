"""Functions that repeat, flip, roll and rotate tensors, returning copies, with PyTorch's signatures; see also `views`.

A negative `dim` counts from the end. A `dim` out of range or mismatched sizes raise ShapeError.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from minigrad import ops
from minigrad.core.dtypes import int64
from minigrad.core.errors import DTypeError, ShapeError
from minigrad.core.registry import register, register_method
from minigrad.core.shapes import Shape, normalize_dims
from minigrad.core.shapes import broadcast_shapes as common_shape
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import check_nonscalar_dim, check_tensor, parse_int_args, reshape_to
from minigrad.functional.views import flatten, transpose


@register_method("repeat")
def _repeat(input: Tensor, *repeats: Any) -> Tensor:
    """Repeat the tensor `repeats` times along each dimension; new dimensions are prepended."""
    times = parse_int_args("repeat", repeats)
    new_dims = len(times) - input.ndim
    if new_dims < 0 or min(times, default=0) < 0:
        raise ShapeError(
            f"repeat: expected a non-negative count for each dimension of shape {input.shape}, but got {times}."
        )
    shape = (1,) * new_dims + input.shape
    interleaved = reshape_to(input, tuple([n for size in shape for n in (1, size)]))
    expanded = interleaved.expand(*[n for pair in zip(times, shape, strict=True) for n in pair])
    return reshape_to(ops.contiguous(expanded), tuple([n * size for n, size in zip(times, shape, strict=True)]))


@register(method=True)
def tile(input: Tensor, *dim_args: Any, dims: Sequence[int] | None = None) -> Tensor:
    """Repeat `input` like `repeat`, with `dims` padded with 1 on the left."""
    x, times = check_tensor(input, "tile"), parse_int_args("tile", dim_args, dims)
    return _repeat(x, (1,) * (x.ndim - len(times)) + times)


@register(method=True)
def repeat_interleave(
    input: Tensor, repeats: int | Tensor, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Repeat each element `repeats` times along `dim`, by default of the flattened tensor.

    `repeats` is one count, or one per element. `output_size`, which avoids a synchronisation in PyTorch, is checked if
    given.
    """
    x = check_tensor(input, "repeat_interleave")
    x, k = (flatten(x), 0) if dim is None else (x, check_nonscalar_dim(x, dim, "repeat_interleave"))
    counts = repeats.tolist() if isinstance(repeats, Tensor) else repeats
    times = (counts,) if isinstance(counts, int) else parse_int_args("repeat_interleave", (counts,))
    if min(times, default=0) < 0 or len(times) not in (1, x.shape[k]):
        raise ShapeError(
            f"repeat_interleave: repeats must be non-negative and have the same size as input along dim, "
            f"{x.shape[k]}, but got repeats={counts}."
        )
    out = ops.repeat_interleave(x, repeats=times[0] if len(times) == 1 else times, dim=k)
    if output_size not in (None, out.shape[k]):
        raise ShapeError(f"repeat_interleave: output_size={output_size}, but the repeats sum to {out.shape[k]}.")
    return cast(Tensor, out)


@register(method=True)
def flip(input: Tensor, *dim_args: Any, dims: int | Sequence[int] | None = None) -> Tensor:
    """Return a copy reversed along `dims`."""
    x = check_tensor(input, "flip")
    return cast(Tensor, ops.flip(x, dims=normalize_dims(parse_int_args("flip", dim_args, dims), x.ndim, "flip")))


@register(method=True)
def fliplr(input: Tensor) -> Tensor:
    """Flip along dimension 1. Raises ShapeError for fewer than two dimensions."""
    if check_tensor(input, "fliplr").ndim < 2:
        raise ShapeError(f"fliplr: input must be at least 2-d, but got shape {input.shape}.\n  Write x.flip(0).")
    return flip(input, 1)


@register(method=True)
def flipud(input: Tensor) -> Tensor:
    """Flip along dimension 0. Raises ShapeError for a 0-d tensor."""
    return flip(input, check_nonscalar_dim(input, 0, "flipud"))


@register(method=True)
def roll(input: Tensor, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Tensor:
    """Roll the tensor by `shifts` along `dims`; elements shifted past the end wrap around to the start.

    Without `dims`, the flattened tensor is rolled by a single shift. Raises ShapeError unless each dim has one shift.
    """
    x, shift_list = check_tensor(input, "roll"), parse_int_args("roll", (shifts,))
    dim_list = (
        () if dims is None else tuple([check_nonscalar_dim(x, k, "roll") for k in parse_int_args("roll", (dims,))])
    )
    if not dim_list and len(shift_list) == 1:
        return reshape_to(ops.roll(flatten(x), shifts=shift_list, dims=(0,)), x.shape)
    if not dim_list or len(shift_list) != len(dim_list):
        raise ShapeError(f"roll: shifts and dims must have equal length, but got shifts={shifts} and dims={dims}.")
    return cast(Tensor, ops.roll(x, shifts=shift_list, dims=dim_list))


@register
def atleast_3d(*tensors: Any) -> Any:
    """Reshape each tensor to at least 3-d: (n,) becomes (1, n, 1), and (m, n) becomes (m, n, 1)."""
    tensor_list = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors
    results = []
    for x in tensor_list:
        sizes = check_tensor(x, "atleast_3d").shape
        results.append(reshape_to(x, (*(1,) * (2 - len(sizes)), *sizes, 1) if len(sizes) < 3 else sizes))
    return results[0] if tensor_list is tensors and len(results) == 1 else tuple(results)


@register
def broadcast_shapes(*shapes: int | Sequence[int]) -> Shape:
    """Return the shape that `shapes` broadcast to; an int n stands for (n,).

    Raises ShapeError if they cannot be broadcast.

    >>> broadcast_shapes((3, 1), (2,), 1)
    (3, 2)
    """
    return common_shape(*[(s,) if isinstance(s, int) else tuple(s) for s in shapes], op="broadcast_shapes")


@register
def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Convert indices of the flattened elements of a tensor of `shape` to one index tensor per dimension."""
    if check_tensor(indices, "unravel_index", "indices").dtype.kind != 1:
        raise DTypeError(f"unravel_index: expected indices to be integer dtype, but got {indices.dtype.name}.")
    sizes, remainder, coordinates = ((shape,) if isinstance(shape, int) else tuple(shape)), indices.to(int64), []
    for size in sizes[::-1]:
        coordinates.append(remainder % size)
        remainder = remainder // size
    return tuple(coordinates[::-1])


@register
def atleast_1d(*tensors: Any) -> Any:
    """Reshape each tensor to at least 1-d: a 0-d tensor becomes (1,)."""
    return _map_tensors(tensors, lambda x: x if x.ndim else reshape_to(x, (1,)))


@register
def atleast_2d(*tensors: Any) -> Any:
    """Reshape each tensor to at least 2-d: (n,) becomes (1, n)."""
    return _map_tensors(tensors, lambda x: x if x.ndim > 1 else reshape_to(x, (1, x.shape[0] if x.ndim else 1)))


def _map_tensors(tensors: Sequence[Any], function: Callable[[Tensor], Tensor]) -> Any:
    tensor_list = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors
    results = tuple(function(check_tensor(x, "atleast")) for x in tensor_list)
    return results[0] if tensor_list is tensors and len(results) == 1 else results


@register(method=True)
def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Rotate `k` times by 90 degrees in the plane of two `dims`, from the first towards the second.

    Raises ShapeError for fewer than two dimensions and for invalid `dims`.
    """
    if check_tensor(input, "rot90").ndim < 2:
        raise ShapeError(f"rot90: expected at least 2 dimensions, but got shape {input.shape}.")
    if len(dims) != 2:
        raise ShapeError(f"rot90: expected 2 rotation dims, but got dims={dims!r}.")
    first, second = dims
    if first % input.ndim == second % input.ndim:
        raise ShapeError(f"rot90: expected rotation dims to be different, but got dims={dims!r}.")
    flipped = flip(input, [first, second]) if k % 4 >= 2 else input
    return flip(transpose(flipped, first, second), [first]) if k % 2 else flipped.clone()
