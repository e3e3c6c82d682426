"""Convolution, transposed convolution, unfold and fold, with PyTorch's signatures.

Settings such as `stride` are a single int, or one int per spatial dimension. The functions raise ShapeError for shapes
and settings that do not match, DTypeError for dtypes that differ, and ArgumentError for invalid options. They convert
1-d input to images (N, C, 1, W).
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
    DATA_FORMATS,
    Ints,
    check_images,
    check_same_dtype,
    to_channels_first,
    to_data_format,
    to_int_tuple,
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
    """Apply a 1-d convolution: `input` (N, C, L) or (C, L), `weight` (out, C / groups, k), `bias` (out,).

    With ``data_format="NLC"`` input and result are channels last. See `conv2d`.

    >>> from minigrad.functional.creation import tensor
    >>> conv1d(tensor([[1.0, 2.0, 4.0, 8.0]]), tensor([[[-1.0, 1.0]]])).tolist()
    [[1.0, 2.0, 4.0]]
    """
    return _convolve("conv1d", input, weight, bias, stride, padding, dilation, groups, data_format)


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
    """Apply a 2-d convolution (cross-correlation): each output element is the sum of ``weight * window``, plus bias.

    `input` is (N, C, H, W), or (C, H, W) unbatched; `weight` (out, C / groups, kH, kW), `bias` (out,). The result is
    (N, out, oH, oW) with oH = (H + 2 padding - dilation (kH - 1) - 1) // stride + 1. `stride` is the window's step,
    `dilation` the spacing of its elements, `padding` the zeros added on each side: "valid" adds none, "same" preserves
    the size, with any odd zero added at the end. `groups` splits input and output channels into groups that are
    convolved separately. With ``data_format="NHWC"`` input and result are channels last; `weight` is unchanged.

    Raises ShapeError for channels or groups that do not match, or a window larger than the padded image; DTypeError for
    operands of different dtypes; ArgumentError for "same" with a stride.

    >>> from minigrad.functional.creation import ones
    >>> conv2d(ones(1, 3, 8, 8), ones(4, 3, 3, 3), stride=2, padding=1).shape
    (1, 4, 4, 4)
    """
    return _convolve("conv2d", input, weight, bias, stride, padding, dilation, groups, data_format)


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
    """Apply a 1-d transposed convolution: `input` (N, C, L) or (C, L), `weight` (C, out / groups, k)."""
    settings = (stride, padding, output_padding, dilation)
    return _conv_transpose("conv_transpose1d", input, weight, bias, settings, groups, data_format)


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
    """Apply a 2-d transposed convolution, the gradient of `conv2d` with respect to its input, plus bias.

    `input` is (N, C, H, W) or (C, H, W), `weight` (C, out / groups, kH, kW), `bias` (out,). The result has oH = (H - 1)
    stride - 2 padding + dilation (kH - 1) + output_padding + 1 rows. A strided conv2d maps several input sizes to the
    same output size; `output_padding` selects one of them. Raises the same errors as `conv2d`, and ShapeError unless
    `output_padding` is smaller than either stride or dilation.

    >>> from minigrad.functional.creation import ones
    >>> conv_transpose2d(ones(1, 4, 4, 4), ones(4, 3, 3, 3), stride=2, padding=1, output_padding=1).shape
    (1, 3, 8, 8)
    """
    settings = (stride, padding, output_padding, dilation)
    return _conv_transpose("conv_transpose2d", input, weight, bias, settings, groups, data_format)


@register
def unfold(input: Tensor, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1) -> Tensor:
    """Extract sliding windows as columns (im2col): (N, C, H, W) to (N, C kH kW, oH oW), in row-major order.

    N is optional. Raises ShapeError if the window is larger than the padded image.

    >>> from minigrad.functional.creation import tensor
    >>> unfold(tensor([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]), (2, 2)).tolist()
    [[1.0, 2.0], [2.0, 3.0], [4.0, 5.0], [5.0, 6.0]]
    """
    window = _make_window("unfold", to_int_tuple(kernel_size, 2, "unfold", "kernel_size", 1), stride, padding, dilation)
    check_images(input, "NCHW", "unfold")
    _output_size("unfold", input.shape[-2:], window)
    columns: Tensor = ops.im2col(input if input.ndim == 4 else input[None], window=window)
    return columns if input.ndim == 4 else columns[0]


@register
def fold(
    input: Tensor, output_size: Ints, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
) -> Tensor:
    """Sum columns, as returned by `unfold`, into images of `output_size` (H, W) at the positions of their windows.

    The input (N, C kH kW, oH oW) becomes (N, C, H, W); N is optional. Raises ShapeError if the number of columns, or
    their length, does not match.
    """
    window = _make_window("fold", to_int_tuple(kernel_size, 2, "fold", "kernel_size", 1), stride, padding, dilation)
    size, window_size = to_int_tuple(output_size, 2, "fold", "output_size", 1), prod(window.size)
    check_images(input, ("N", "C kH kW", "oH oW"), "fold")
    rows, columns = _output_size("fold", size, window)
    if input.shape[-2] % window_size or input.shape[-1] != rows * columns:
        raise ShapeError(
            f"fold: with output_size={size} and kernel_size={window.size}, expected input (…, C * {window_size}, "
            f"{rows} * {columns} = {rows * columns} sliding blocks), but got {input.shape}.\n"
            "  Pass the settings of the unfold call."
        )
    batch = input if input.ndim == 3 else input[None]
    images: Tensor = ops.col2im(batch, shape=(len(batch), input.shape[-2] // window_size, *size), window=window)
    return images if input.ndim == 3 else images[0]


# --- helpers ---


def _convolve(
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
    x, w = _prepare_operands(name, input, weight, bias, groups, data_format)
    window = _make_window(name, weight.shape[2:], stride, padding, dilation)
    _output_size(name, x.shape[-2:], window)
    return _restore_layout(ops.conv2d(x, w, bias, window=window, groups=groups), weight.ndim, input, data_format)


def _conv_transpose(
    name: str,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    settings: tuple[Ints, Ints, Ints, Ints],
    groups: int,
    data_format: str,
) -> Tensor:
    stride, padding, output_padding, dilation = settings
    x, w = _prepare_operands(name, input, weight, bias, groups, data_format, transposed=True)
    n = weight.ndim - 2
    window = _make_window(name, weight.shape[2:], stride, to_int_tuple(padding, n, name, "padding", 0), dilation)
    extra_padding = _per_axis(name, "output_padding", output_padding, n, 0)
    if any(m >= max(s, d) for m, s, d in zip(extra_padding, window.stride, window.dilation, strict=True)):
        raise ShapeError(
            f"{name}: output_padding must be smaller than either stride or dilation, but got output_padding="
            f"{output_padding}, stride={stride} and dilation={dilation}."
        )
    # output_padding extends the output at its end, which is equivalent to less padding there.
    reduced_padding = tuple(
        (before, after - m) for (before, after), m in zip(window.padding, extra_padding, strict=True)
    )
    axes = zip(x.shape[2:], window.size, window.stride, reduced_padding, window.dilation, strict=True)
    size = tuple((n - 1) * s - sum(pad) + d * (k - 1) + 1 for n, k, s, pad, d in axes)
    if min(size) < 0:
        raise ShapeError(f"{name}: calculated output size {size} is too small for padding={padding}.")
    shape, window = (len(x), w.shape[1] * groups, *size), window._replace(padding=reduced_padding)
    y = ops.conv2d_input(x, w, shape=shape, window=window, groups=groups)
    return _restore_layout(y if bias is None else y + bias[:, None, None], weight.ndim, input, data_format)


def _prepare_operands(
    name: str,
    input: Tensor,
    weight: Any,
    bias: Any,
    groups: int,
    data_format: str,
    transposed: bool = False,
) -> tuple[Tensor, Tensor]:
    """Check the operands. Return `input` as images (N, C, H, W), where H = 1 for 1-d input, and a 4-d `weight`."""
    spatial_dims = 1 if name.endswith("1d") else 2
    first_format, last_format = DATA_FORMATS[spatial_dims]
    x = to_channels_first(input, spatial_dims, data_format, name)
    check_same_dtype(name, input=input, weight=weight, bias=bias)
    if not input.dtype.kind:
        raise DTypeError(f"{name}: not implemented for bool tensors.\n  Write x.to(mg.float32).")
    to_int_tuple(groups, 1, name, "groups", 1)
    n = spatial_dims + 2
    if weight.ndim != n or not weight.shape[0] or weight.shape[0] % groups:
        layout = ("in, out" if transposed else "out, in") + " / groups, " + ", ".join(f"k{c}" for c in first_format[2:])
        raise ShapeError(
            f"{name}: expected weight of shape ({layout}) with its first size divisible by groups={groups}, but got "
            f"{weight.shape}."
        )
    x = x if x.ndim == n else x[None]
    in_channels, out_channels = (
        (len(weight), weight.shape[1] * groups) if transposed else (weight.shape[1] * groups, len(weight))
    )
    if x.shape[1] != in_channels:
        message = (
            f"{name}: given groups={groups} and weight of shape {weight.shape}, expected input {input.shape} to have"
        )
        message += f" {in_channels} channels, but got {x.shape[1]} channels instead."
        if data_format == first_format and input.shape[-1] == in_channels:
            message += f'\n  If the input is channels last, write data_format="{last_format}".'
        raise ShapeError(message)
    if bias is not None and bias.shape != (out_channels,):
        raise ShapeError(
            f"{name}: expected bias to be 1-dimensional with {out_channels} elements, but got {bias.shape}."
        )
    return (x[:, :, None], weight[:, :, None]) if n == 3 else (x, weight)


def _restore_layout(y: Tensor, ndim: int, input: Tensor, data_format: str) -> Tensor:
    """Convert the 4-d result `y` to `data_format` and to the number of dimensions of `input`."""
    y = to_data_format(y[:, :, 0] if ndim == 3 else y, data_format)
    return y if input.ndim == ndim else y[0]


def _make_window(name: str, size: Shape, stride: Ints, padding: Ints | str, dilation: Ints) -> Window:
    """Build a Window, cached if each setting is an int or a string. `name` is used in error messages."""
    is_cacheable = stride.__class__ is int and dilation.__class__ is int and padding.__class__ in (int, str)
    return (_build_window_cached if is_cacheable else _build_window)(name, size, stride, padding, dilation)


def _build_window(name: str, size: Shape, stride: Ints, padding: Ints | str, dilation: Ints) -> Window:
    """Build a Window from the settings of a convolution. A 1-d window has a single row."""
    n = len(size)
    size = (1,) * (2 - n) + size
    strides, dilations = _per_axis(name, "stride", stride, n, 1), _per_axis(name, "dilation", dilation, n, 1)
    if padding == "same":
        if strides != (1, 1):
            raise ArgumentError(f'{name}: padding="same" is not supported for strided convolutions (stride={stride}).')
        spans = [d * (k - 1) for d, k in zip(dilations, size, strict=True)]
        paddings = tuple((r // 2, r - r // 2) for r in spans)
    else:
        paddings = tuple((p, p) for p in _per_axis(name, "padding", 0 if padding == "valid" else padding, n, 0))
    return Window(size, strides, paddings, dilations)


_build_window_cached = lru_cache(maxsize=1024)(_build_window)


@lru_cache(maxsize=1024)
def _output_size(name: str, size: Shape, window: Window) -> Shape:
    """Return the output size for images of `size`: the number of window positions vertically and horizontally."""
    padded = tuple(n + sum(pad) for n, pad in zip(size, window.padding, strict=True))
    extent = tuple(d * (k - 1) + 1 for d, k in zip(window.dilation, window.size, strict=True))
    if not all(0 < r <= n for r, n in zip(extent, padded, strict=True)):
        dilation_note = f", {extent} with dilation {window.dilation}," if extent != window.size else ""
        padding_note = f", {padded} with padding" if padded != tuple(size) else ""
        raise ShapeError(
            f"{name}: kernel size {window.size}{dilation_note} can't be greater than input size {size}{padding_note}.\n"
            "  Use a smaller kernel or more padding."
        )
    return tuple((n - r) // s + 1 for n, r, s in zip(padded, extent, window.stride, strict=True))


def _per_axis(name: str, argument: str, value: Any, n: int, minimum: int) -> tuple[int, ...]:
    """Return a setting as two ints, for rows and columns. For 1-d functions (`n` = 1), the first is `minimum`."""
    return (minimum,) * (2 - n) + to_int_tuple(value, n, name, argument, minimum)
