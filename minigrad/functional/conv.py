"""Convolution and its kin: PyTorch's functions, which check shapes and bring operands to images (N, C, H, W).

A setting is an int, or one for each dimension that the window moves along. Raises ShapeError where shapes and settings
do not fit together, DTypeError where types differ, ArgumentError for options.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

from minigrad import ops
from minigrad.core.errors import ArgumentError, DTypeError, ShapeError
from minigrad.core.registry import register
from minigrad.core.shapes import Shape
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import (
    FORMATS,
    Ints,
    channels_first,
    channels_given,
    check_images,
    check_same_type,
    ints_of,
)
from minigrad.ops.conv import Window


@register
def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: int = 1,
    *,
    data_format: str = "NCL",
) -> Tensor:
    """`conv2d` along one dimension: `input` (N, C, L) or (C, L), `weight` (out, C / groups, k), `bias` (out,).

    With ``data_format="NLC"`` the channels of input and result stand last.

    >>> from minigrad.functional.creation import tensor
    >>> conv1d(tensor([[1.0, 2.0, 4.0, 8.0]]), tensor([[[-1.0, 1.0]]])).tolist()
    [[1.0, 2.0, 4.0]]
    """
    return _correlate("conv1d", input, weight, bias, stride, padding, dilation, groups, data_format)


@register
def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: int = 1,
    *,
    data_format: str = "NCHW",
) -> Tensor:
    """Slide windows of weights over images: each place of the result is the sum of ``weight * window``, plus bias.

    `input` (N, C, H, W), or (C, H, W) for one image; `weight` (out, C / groups, kH, kW), `bias` (out,). The result is
    (N, out, oH, oW) with oH = (H + 2 padding - dilation (kH - 1) - 1) // stride + 1. `stride` is how far the window
    moves, `dilation` how far apart the numbers are that it sees, `padding` how many zeros are put around: "valid" is
    none, "same" as many as keep the size, the odd one after. Channels and outputs are cut into `groups`, of which each
    sees its own. With ``data_format="NHWC"`` the channels of input and result stand last; weights are as they were.

    Raises ShapeError for channels or groups that do not fit, and a window larger than the padded image; DTypeError for
    operands of different types; ArgumentError for "same" with a stride.

    >>> from minigrad.functional.creation import ones
    >>> conv2d(ones(1, 3, 8, 8), ones(4, 3, 3, 3), stride=2, padding=1).shape
    (1, 4, 4, 4)
    """
    return _correlate("conv2d", input, weight, bias, stride, padding, dilation, groups, data_format)


@register
def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
    *,
    data_format: str = "NCL",
) -> Tensor:
    """`conv_transpose2d` along one dimension: `input` (N, C, L) or (C, L), `weight` (C, out / groups, k)."""
    settings = (stride, padding, output_padding, dilation)
    return _spread("conv_transpose1d", input, weight, bias, settings, groups, data_format)


@register
def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
    *,
    data_format: str = "NCHW",
) -> Tensor:
    """Spread each number over a window, times the weights: what `conv2d` gives its input as a gradient, plus bias.

    `input` (N, C, H, W) or (C, H, W), `weight` (C, out / groups, kH, kW), `bias` (out,). The result has
    oH = (H - 1) stride - 2 padding + dilation (kH - 1) + output_padding + 1 rows. As a conv2d with a stride gives
    several sizes the same size, `output_padding` says which of them is meant. Raises as `conv2d` does, and ShapeError
    where output_padding is neither below stride nor below dilation.

    >>> from minigrad.functional.creation import ones
    >>> conv_transpose2d(ones(1, 4, 4, 4), ones(4, 3, 3, 3), stride=2, padding=1, output_padding=1).shape
    (1, 3, 8, 8)
    """
    settings = (stride, padding, output_padding, dilation)
    return _spread("conv_transpose2d", input, weight, bias, settings, groups, data_format)


@register
def unfold(input: Tensor, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1) -> Tensor:
    """The windows of an image as columns: (N, C, H, W) gives (N, C kH kW, oH oW), places row by row. Known as im2col.

    Without N for one image. Raises ShapeError where the window is larger than the padded image.

    >>> from minigrad.functional.creation import tensor
    >>> unfold(tensor([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]), (2, 2)).tolist()
    [[1.0, 2.0], [2.0, 3.0], [4.0, 5.0], [5.0, 6.0]]
    """
    window = _window("unfold", ints_of(kernel_size, 2, "unfold", "kernel_size", 1), stride, padding, dilation)
    check_images(input, "NCHW", "unfold")
    _places("unfold", input.shape[-2:], window)
    columns: Tensor = ops.im2col(input if input.ndim == 4 else input[None], window=window)
    return columns if input.ndim == 4 else columns[0]


@register
def fold(
    input: Tensor, output_size: Ints, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
) -> Tensor:
    """Images of `output_size` (H, W) in which columns, as `unfold` makes them, are added up where their windows lie.

    (N, C kH kW, oH oW) gives (N, C, H, W), without N for one. Raises ShapeError where the number of columns, or their
    length, does not fit.
    """
    window = _window("fold", ints_of(kernel_size, 2, "fold", "kernel_size", 1), stride, padding, dilation)
    size, count = ints_of(output_size, 2, "fold", "output_size", 1), prod(window.size)
    check_images(input, ("N", "C kH kW", "places"), "fold")
    rows, columns = _places("fold", size, window)
    if input.shape[-2] % count or input.shape[-1] != rows * columns:
        raise ShapeError(
            f"fold: a window of {window.size} has {rows} x {columns} places in an image of {size}, so that the input "
            f"is (…, C x {count}, {rows * columns}), not {input.shape}.\n"
            "  Give the settings that unfold was called with."
        )
    batch = input if input.ndim == 3 else input[None]
    images: Tensor = ops.col2im(batch, shape=(len(batch), input.shape[-2] // count, *size), window=window)
    return images if input.ndim == 3 else images[0]


# --- what they share ---


def _correlate(
    name: str,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Ints,
    padding: Ints | str,
    dilation: Ints,
    groups: int,
    data_format: str,
) -> Tensor:
    x, w = _images(name, input, weight, bias, groups, data_format)
    window = _window(name, weight.shape[2:], stride, padding, dilation)
    _places(name, x.shape[-2:], window)
    return _as_given(ops.conv2d(x, w, bias, window=window, groups=groups), weight.ndim, input, data_format)


def _spread(
    name: str,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    settings: tuple[Ints, Ints, Ints, Ints],
    groups: int,
    data_format: str,
) -> Tensor:
    stride, padding, output_padding, dilation = settings
    x, w = _images(name, input, weight, bias, groups, data_format, transposed=True)
    n = weight.ndim - 2
    window = _window(name, weight.shape[2:], stride, ints_of(padding, n, name, "padding", 0), dilation)
    more = _each(name, "output_padding", output_padding, n, 0)
    if any(m >= max(s, d) for m, s, d in zip(more, window.stride, window.dilation, strict=True)):
        raise ShapeError(
            f"{name}: output_padding={output_padding} is neither below stride={stride} nor below dilation={dilation}: "
            "it only says which of the sizes is meant that a stride makes one."
        )
    # What is added at the end is what the window going over the result would not reach: padding that is taken away.
    around = tuple((before, after - m) for (before, after), m in zip(window.padding, more, strict=True))
    lines = zip(x.shape[2:], window.size, window.stride, around, window.dilation, strict=True)
    size = tuple((n - 1) * s - sum(pad) + d * (k - 1) + 1 for n, k, s, pad, d in lines)
    if min(size) < 0:
        raise ShapeError(f"{name}: padding={padding} takes more away than there is: the result would be {size}.")
    shape, window = (len(x), w.shape[1] * groups, *size), window._replace(padding=around)
    y = ops.conv2d_input(x, w, shape=shape, window=window, groups=groups)
    return _as_given(y if bias is None else y + bias[:, None, None], weight.ndim, input, data_format)


def _images(
    name: str,
    input: Tensor,
    weight: Any,
    bias: Any,
    groups: int,
    data_format: str,
    transposed: bool = False,
) -> tuple[Tensor, Tensor]:
    """`input` as images (N, C, H, W), which have one row if there is one dimension, and `weight` to go with them."""
    space = 1 if name.endswith("1d") else 2
    first, last = FORMATS[space]
    x = channels_first(input, space, data_format, name)
    check_same_type(name, input=input, weight=weight, bias=bias)
    if not input.dtype.kind:
        raise DTypeError(f"{name}: operands of bool: they must be numbers.\n  Write x.to(mg.float32).")
    ints_of(groups, 1, name, "groups", 1)
    n = space + 2
    if weight.ndim != n or not weight.shape[0] or weight.shape[0] % groups:
        sides = ("in, out" if transposed else "out, in") + " / groups, " + ", ".join(f"k{c}" for c in first[2:])
        raise ShapeError(
            f"{name}: weight is ({sides}), its first size a multiple of groups={groups}; given is {weight.shape}."
        )
    x = x if x.ndim == n else x[None]
    takes, out = (len(weight), weight.shape[1] * groups) if transposed else (weight.shape[1] * groups, len(weight))
    if x.shape[1] != takes:
        text = f"{name}: input {input.shape} has {x.shape[1]} channels, but weight {weight.shape} takes {takes}"
        text += f" with groups={groups}."
        if data_format == first and input.shape[-1] == takes:
            text += f'\n  Do the channels stand last? Write data_format="{last}".'
        raise ShapeError(text)
    if bias is not None and bias.shape != (out,):
        raise ShapeError(f"{name}: bias is ({out},), a number for each channel of the result; given is {bias.shape}.")
    return (x[:, :, None], weight[:, :, None]) if n == 3 else (x, weight)


def _as_given(y: Tensor, ndim: int, input: Tensor, data_format: str) -> Tensor:
    """Images `y` in the layout of `input`."""
    y = channels_given(y[:, :, 0] if ndim == 3 else y, data_format)
    return y if input.ndim == ndim else y[0]


def _window(name: str, size: Shape, stride: Ints, padding: Ints | str, dilation: Ints) -> Window:
    """The settings of `name` as a Window, remembered where each is an int or an option."""
    plain = stride.__class__ is int and dilation.__class__ is int and padding.__class__ in (int, str)
    return (_known if plain else _found)(name, size, stride, padding, dilation)


def _found(name: str, size: Shape, stride: Ints, padding: Ints | str, dilation: Ints) -> Window:
    """Along one dimension a window has one row."""
    n = len(size)
    size = (1,) * (2 - n) + size
    steps, apart = _each(name, "stride", stride, n, 1), _each(name, "dilation", dilation, n, 1)
    if padding == "same":
        if steps != (1, 1):
            raise ArgumentError(f'{name}: padding="same" keeps the size, which stride={stride} does not: give numbers.')
        reach = [d * (k - 1) for d, k in zip(apart, size, strict=True)]
        around = tuple((r // 2, r - r // 2) for r in reach)
    else:
        around = tuple((p, p) for p in _each(name, "padding", 0 if padding == "valid" else padding, n, 0))
    return Window(size, steps, around, apart)


_known = lru_cache(maxsize=1024)(_found)


@lru_cache(maxsize=1024)
def _places(name: str, size: Shape, window: Window) -> Shape:
    """How many places the window has, in rows and columns of images of `size`."""
    padded = tuple(n + sum(pad) for n, pad in zip(size, window.padding, strict=True))
    reach = tuple(d * (k - 1) + 1 for d, k in zip(window.dilation, window.size, strict=True))
    if not all(0 < r <= n for r, n in zip(reach, padded, strict=True)):
        wide = f", which reaches over {reach} with dilation {window.dilation}," if reach != window.size else ""
        around = f", which is {padded} with its padding" if padded != tuple(size) else ""
        raise ShapeError(
            f"{name}: a window of {window.size}{wide} does not fit an image of {size}{around}.\n"
            "  Take a smaller kernel, or pad more."
        )
    return tuple((n - r) // s + 1 for n, r, s in zip(padded, reach, window.stride, strict=True))


def _each(name: str, what: str, value: Any, n: int, least: int) -> tuple[int, ...]:
    """A setting for rows and for columns, of which there are only these where `n` is 1."""
    return (least,) * (2 - n) + ints_of(value, n, name, what, least)
