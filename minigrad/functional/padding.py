"""`pad`, with PyTorch's signature: constant, reflect, replicate and circular padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from minigrad import ops
from minigrad.core.errors import ShapeError
from minigrad.core.registry import register
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import check_option, check_tensor, parse_int_args
from minigrad.functional.joining import cat
from minigrad.functional.shape import flip
from minigrad.functional.views import narrow


@register
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Pad `input`: `pad` is (before, after) for the last dimension, then for the second last, and so on.

    "constant" `mode` fills with `value`, by default 0. "reflect" mirrors the input at the edge element, "replicate"
    repeats the edge element, and "circular" wraps around. These modes pad the last 1, 2 or 3 dimensions and require
    one or two more. Negative padding crops, before "circular" but after "reflect" and "replicate" padding. Raises
    ShapeError for padding that is not in pairs, crops more than the size, or mirrors or wraps around more than once.

    >>> import minigrad as mg
    >>> mg.pad(mg.tensor([[1, 2, 3]]), (2, 1), mode="reflect").tolist()
    [[3, 2, 1, 2, 3, 2]]
    """
    x, flat_pads = check_tensor(input, "pad"), parse_int_args("pad", (pad,))
    check_option(mode, ("constant", "reflect", "replicate", "circular"), "pad", "mode")
    count = len(flat_pads) // 2
    if len(flat_pads) % 2 or count > x.ndim:
        raise ShapeError(
            f"pad: padding length must be divisible by 2 and at most twice the number of dimensions, but got "
            f"pad={flat_pads} for shape {x.shape}."
        )
    pairs = ((0, 0),) * (x.ndim - count) + tuple(zip(flat_pads[::2], flat_pads[1::2], strict=True))[::-1]
    if any(max(-before, 0) + max(-after, 0) > n for n, (before, after) in zip(x.shape, pairs, strict=True)):
        raise ShapeError(f"pad: pad={flat_pads} crops more elements than shape {x.shape} has.")
    if mode == "constant":
        return cast(Tensor, ops.pad(x, pads=pairs, value=0.0 if value is None else value))
    if value is not None or count not in (1, 2, 3) or x.ndim - count not in (1, 2):
        raise ShapeError(
            f"pad: mode={mode!r} takes no value and pads the last 1 to 3 dimensions of a tensor with one or two more, "
            f"but got {count} of shape {x.shape}.\n  unsqueeze(0) adds a dimension."
        )
    if mode != "circular" and 0 in x.shape[-count - 1 :]:
        raise ShapeError(f"pad: mode={mode!r} needs elements at the edges, but shape {x.shape} has none.")
    crops = tuple([(min(before, 0), min(after, 0)) for before, after in pairs])
    late_crops = crops if max(flat_pads) <= 0 or min(flat_pads) < 0 else ()  # the result must not alias the input
    if late_crops and mode == "circular":
        x = cast(Tensor, ops.pad(x, pads=late_crops, value=0.0))
    for k, (before, after) in enumerate(pairs):
        x = _pad_edges(x, k, max(before, 0), max(after, 0), mode) if max(before, after) > 0 else x
    return cast(Tensor, ops.pad(x, pads=late_crops, value=0.0)) if late_crops and mode != "circular" else x


def _pad_edges(x: Tensor, k: int, before: int, after: int, mode: str) -> Tensor:
    size = x.shape[k]
    max_padding = {"reflect": size - 1, "circular": size, "replicate": max(before, after) if size else 0}[mode]
    if max(before, after) > max_padding:
        raise ShapeError(
            f"pad: mode={mode!r} allows a padding size of at most {max_padding} for dimension {k} of size {size}, but "
            f"got padding ({before}, {after})."
        )
    if mode == "replicate":
        counts = [1] * size
        counts[0] += before
        counts[-1] += after
        return cast(Tensor, ops.repeat_interleave(x, repeats=tuple(counts), dim=k))
    if mode == "circular":
        return cat([narrow(x, k, size - before, before), x, narrow(x, k, 0, after)], k)
    return cat([flip(narrow(x, k, 1, before), k), x, flip(narrow(x, k, size - 1 - after, after), k)], k)
