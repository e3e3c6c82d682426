"""Numbers put together, spread, turned and cut out: copies, with PyTorch's signatures. For views, see `views`.

`dim` counts from either end. ShapeError for a dimension that is not there, and for sizes that do not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from minigrad import ops
from minigrad.core.dtypes import result_type
from minigrad.core.errors import ShapeError
from minigrad.core.op import OPS
from minigrad.core.registry import register, register_method
from minigrad.core.shapes import dim_of, dims_of
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import (
    check_option,
    dim_of_some,
    flat,
    line,
    listed_ints,
    shaped,
    tensor_of,
    two_dims_of,
)
from minigrad.functional.views import flatten, narrow, unsqueeze

# --- put together ---


@register
def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """The tensors one after another along `dim`, in the type that holds all; their other sizes must be equal.

    A tensor of shape (0,) goes with any others. Raises ShapeError where sizes differ, for single numbers, and for none.

    >>> import minigrad as mg
    >>> mg.cat([mg.tensor([1, 2]), mg.tensor([3.0])]).tolist()
    [1.0, 2.0, 3.0]
    """
    given = [tensor_of(x, "cat", "one of tensors") for x in tensors]
    if not given:
        raise ShapeError("cat: there is nothing to put together.")
    if any(x.ndim == 0 for x in given):
        raise ShapeError("cat: single numbers have no dimension to stand along.\n  Write stack([a, b]).")
    target = result_type([x.dtype for x in given])
    like = next((x.shape for x in given if x.shape != (0,)), (0,))
    k = dim_of(dim, len(like), "cat")
    none = (*like[:k], 0, *like[k + 1 :])
    kept = [
        x if x.shape != (0,) or x.shape == none else ops.reshape(x, shape=none) for x in (x.to(target) for x in given)
    ]
    rests = [(*x.shape[:k], *x.shape[k + 1 :]) for x in kept]
    if any(x.ndim != kept[0].ndim or rest != rests[0] for x, rest in zip(kept, rests, strict=True)):
        shapes = ", ".join(str(x.shape) for x in given)
        raise ShapeError(f"cat: shapes {shapes} must be equal in all dimensions but {k}.")
    return cast(Tensor, ops.cat(*kept, dim=k, sizes=tuple([x.shape[k] for x in kept])))


@register
def concat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """`cat`."""
    return cat(tensors, dim)


@register
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """The tensors, of one shape, one after another along a new dimension `dim`; types as in `cat`."""
    shapes = sorted({tensor_of(x, "stack", "one of tensors").shape for x in tensors})
    if len(shapes) != 1:
        raise ShapeError(f"stack: it takes tensors of one shape, not {' and '.join(map(str, shapes)) or 'none'}.")
    return cat([unsqueeze(x, dim) for x in tensors], dim_of(dim, len(shapes[0]) + 1, "stack"))


@register
def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """`cat` along dimension 1, of lines and single numbers along 0."""
    given = [line(tensor_of(x, "hstack", "one of tensors")) for x in tensors]
    return cat(given, 0 if given and given[0].ndim == 1 else 1)


@register
def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """`cat` along dimension 0, of lines and single numbers as rows."""
    given = [tensor_of(x, "vstack", "one of tensors") for x in tensors]
    return cat([x if x.ndim > 1 else flat(x)[None] for x in given])


# --- spread ---


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


# --- turned and moved ---


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


# --- cut out ---


@register(method=True)
def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """A copy of the last two dimensions' matrices with 0 above the diagonal that is `diagonal` above the main one."""
    return _triangle("tril", input, diagonal)


@register(method=True)
def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """A copy of the last two dimensions' matrices with 0 below the diagonal that is `diagonal` above the main one."""
    return _triangle("triu", input, diagonal)


def _triangle(name: str, x: Tensor, diagonal: int) -> Tensor:
    if tensor_of(x, name).ndim < 2:
        raise ShapeError(f"{name}: shape {x.shape} has no matrices: it takes two dimensions or more.")
    rows, columns = x.shape[-2:]
    return cast(Tensor, OPS[name](x, diagonal=max(-rows, min(diagonal, columns))))  # as a kernel can count


@register(method=True)
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """Of a line, the matrix with it on the diagonal, `diagonal` above the main one; of a matrix, that diagonal, copied.

    Raises ShapeError for other dimensions.
    """
    x = tensor_of(input, "diag")
    if x.ndim == 1:
        return diag_embed(x, diagonal)
    if x.ndim != 2:
        raise ShapeError(f"diag: it takes a line or a matrix, not shape {x.shape}.\n  Write diagonal, or diag_embed.")
    return cast(Tensor, ops.contiguous(ops.diagonal(x, offset=diagonal, dim1=0, dim2=1)))


@register(method=True)
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Square matrices, in dimensions `dim1` and `dim2` of the result, with the last dimension on their diagonal.

    `offset` is how far above the main one that is; all else is 0.
    """
    x, size = tensor_of(input, "diag_embed"), input.shape[dim_of_some(input, -1, "diag_embed")] + abs(offset)
    first, second = two_dims_of(dim1, dim2, x.ndim + 1, "diag_embed")
    rest = iter(x.shape)
    shape = tuple([size if k in (first, second) else next(rest) for k in range(x.ndim + 1)])
    return cast(Tensor, ops.diagonal_backward(x, shape=shape, offset=offset, dim1=first, dim2=second))


# --- edges ---


@register
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Pad the edges of `input`: `pad` is (before, after) for the last dimension, then for the one before it, ….

    ``mode="constant"`` fills with `value`, by default 0. "reflect" mirrors at the element of the edge, "replicate"
    repeats it, "circular" takes up at the other edge; these three pad the last one to three dimensions, of which there
    must be one or two more. A negative pad crops: what is mirrored or repeated is that of the whole, what wraps around
    that of the rest. Raises ShapeError for pads that are not pairs, that crop more than there is, and that mirror or
    wrap around more than once.

    >>> import minigrad as mg
    >>> mg.pad(mg.tensor([[1, 2, 3]]), (2, 1), mode="reflect").tolist()
    [[3, 2, 1, 2, 3, 2]]
    """
    x, given = tensor_of(input, "pad"), listed_ints("pad", (pad,))
    check_option(mode, ("constant", "reflect", "replicate", "circular"), "pad", "mode")
    count = len(given) // 2
    if len(given) % 2 or count > x.ndim:
        raise ShapeError(f"pad: {given} must be pairs, the last dimension's first, and fit shape {x.shape}.")
    pairs = ((0, 0),) * (x.ndim - count) + tuple(zip(given[::2], given[1::2], strict=True))[::-1]
    if any(max(-before, 0) + max(-after, 0) > n for n, (before, after) in zip(x.shape, pairs, strict=True)):
        raise ShapeError(f"pad: {given} cuts off more than there is in shape {x.shape}.")
    if mode == "constant":
        return cast(Tensor, ops.pad(x, pads=pairs, value=0.0 if value is None else value))
    if value is not None or count not in (1, 2, 3) or x.ndim - count not in (1, 2):
        raise ShapeError(
            f"pad: mode={mode!r} takes no value, and pads the last 1 to 3 dimensions of a tensor that has one or two "
            f"more, not {count} of shape {x.shape}.\n  unsqueeze(0) adds a dimension."
        )
    if mode != "circular" and 0 in x.shape[-count - 1 :]:
        raise ShapeError(f"pad: mode={mode!r} needs numbers at the edges, and shape {x.shape} has none.")
    crops = tuple([(min(before, 0), min(after, 0)) for before, after in pairs])
    copies = crops if max(given) <= 0 or min(given) < 0 else ()  # the result never shares the input's memory
    if copies and mode == "circular":
        x = cast(Tensor, ops.pad(x, pads=copies, value=0.0))
    for k, (before, after) in enumerate(pairs):
        x = _edged(x, k, max(before, 0), max(after, 0), mode) if max(before, after) > 0 else x
    return cast(Tensor, ops.pad(x, pads=copies, value=0.0)) if copies and mode != "circular" else x


def _edged(x: Tensor, k: int, before: int, after: int, mode: str) -> Tensor:
    """`x` with the places that `mode` puts before and after it along dimension `k`."""
    size = x.shape[k]
    most = {"reflect": size - 1, "circular": size, "replicate": max(before, after) if size else 0}[mode]
    if max(before, after) > most:
        raise ShapeError(
            f"pad: mode={mode!r} puts 0 to {most} places at either end of the {size} of dimension {k}, not "
            f"{before} and {after}."
        )
    if mode == "replicate":
        counts = [1] * size
        counts[0] += before
        counts[-1] += after
        return cast(Tensor, ops.repeat_interleave(x, repeats=tuple(counts), dim=k))
    if mode == "circular":
        return cat([narrow(x, k, size - before, before), x, narrow(x, k, 0, after)], k)
    return cat([flip(narrow(x, k, 1, before), k), x, flip(narrow(x, k, size - 1 - after, after), k)], k)


@register
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Channels as pixels: (…, C r², H, W) as (…, C, H r, W r), r the `upscale_factor`. Shi et al. 2016, eq. 4.

    Raises ShapeError where the channels are not a multiple of r².
    """
    r = _factor("pixel_shuffle", "upscale_factor", input, upscale_factor)
    *batch, channels, height, width = input.shape
    if channels % (r * r):
        raise ShapeError(f"pixel_shuffle: the {channels} channels of shape {input.shape} are no multiple of {r * r}.")
    x = input.reshape(*batch, channels // (r * r), r, r, height, width)
    return x.movedim((-4, -3), (-3, -1)).reshape(*batch, channels // (r * r), height * r, width * r)


@register
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Pixels as channels: (…, C, H r, W r) as (…, C r², H, W): what undoes `pixel_shuffle`. Raises ShapeError."""
    r = _factor("pixel_unshuffle", "downscale_factor", input, downscale_factor)
    *batch, channels, height, width = input.shape
    if height % r or width % r:
        raise ShapeError(f"pixel_unshuffle: height and width of shape {input.shape} are not multiples of {r}.")
    x = input.reshape(*batch, channels, height // r, r, width // r, r)
    return x.movedim((-3, -1), (-4, -3)).reshape(*batch, channels * r * r, height // r, width // r)


def _factor(name: str, argument: str, input: Tensor, factor: int) -> int:
    if tensor_of(input, name).ndim < 3 or factor < 1:
        raise ShapeError(f"{name}: input is (…, C, H, W), and {argument} 1 or more; here {input.shape} and {factor}.")
    return factor
