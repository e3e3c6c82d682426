"""Pooling over windows of the last dimensions of (N, C, L) or (N, C, H, W), with PyTorch's signatures.

The batch dimension N is optional. Sizes are in pixels, one int or one int per dimension. ``data_format="NHWC"``, which
PyTorch does not have, takes channels-last input. Invalid arguments raise ShapeError, DTypeError or ArgumentError.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

from minigrad import ops
from minigrad.core.errors import ArgumentError, ShapeError
from minigrad.core.op import Op
from minigrad.core.registry import register
from minigrad.core.shapes import numel
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import (
    DATA_FORMATS,
    Ints,
    check_floating,
    check_tensor,
    reshape_to,
    to_channels_first,
    to_data_format,
    to_int_tuple,
)
from minigrad.functional.elementwise import where
from minigrad.functional.scattering import scatter
from minigrad.functional.windows import Windows, adaptive_windows, apply_rows, averaging_rows, sliding_windows


@register
def max_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the maximum of each window of a (N, C, L) or (C, L) tensor; see `max_pool2d`."""
    sizes = (kernel_size, stride, padding, dilation)
    return _extreme_pool("max_pool1d", ops.max_pool, 1, input, sizes, ceil_mode, return_indices, "NCL")


@register
def max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
    *,
    data_format: str = "NCHW",
) -> Any:
    """Return the maximum of each window of a (N, C, H, W) or (C, H, W) tensor; `stride` defaults to `kernel_size`.

    A size n becomes (n + 2 padding - dilation (kernel_size - 1) - 1) / stride + 1, rounded down, or up with `ceil_mode`
    if the last window still starts inside the image. Padding is ignored, nan propagates, and the first of equal maxima
    gets the gradient. `return_indices` also returns flat int64 indices into each channel.

    Raises ShapeError for a window that covers only padding; PyTorch returns -inf there.

    >>> import minigrad as mg
    >>> x = mg.tensor([[[1.0, 5.0, 2.0, 0.0], [3.0, 4.0, 8.0, 6.0]]])
    >>> mg.functional.max_pool2d(x, 2).tolist()
    [[[5.0, 8.0]]]
    """
    sizes = (kernel_size, stride, padding, dilation)
    return _extreme_pool("max_pool2d", ops.max_pool, 2, input, sizes, ceil_mode, return_indices, data_format)


@register
def min_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
    *,
    data_format: str = "NCHW",
) -> Any:
    """Return the minimum of each window, equal to PyTorch's ``-max_pool2d(-input, …)``; see `max_pool2d`."""
    sizes = (kernel_size, stride, padding, dilation)
    return _extreme_pool("min_pool2d", ops.min_pool, 2, input, sizes, ceil_mode, return_indices, data_format)


@register
def avg_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Return the mean of each window of a (N, C, L) or (C, L) tensor; see `avg_pool2d`."""
    sizes = (kernel_size, stride, padding, 1)
    return _average_pool("avg_pool1d", 1, input, sizes, ceil_mode, count_include_pad, None, "NCL")


@register
def avg_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    data_format: str = "NCHW",
) -> Tensor:
    """Return the mean of each window; sizes are as in `max_pool2d`.

    Padding counts as zeros, unless `count_include_pad` is False. `divisor_override` replaces the divisor.
    Raises DTypeError for integers, whose means PyTorch rounds down.
    """
    sizes = (kernel_size, stride, padding, 1)
    return _average_pool("avg_pool2d", 2, input, sizes, ceil_mode, count_include_pad, divisor_override, data_format)


@register
def adaptive_avg_pool1d(input: Tensor, output_size: Ints) -> Tensor:
    """Return the means of `output_size` windows that cover the length of a (N, C, L) or (C, L) tensor."""
    return _adaptive_average_pool("adaptive_avg_pool1d", 1, input, output_size, "NCL")


@register
def adaptive_avg_pool2d(input: Tensor, output_size: int | Sequence[int | None], *, data_format: str = "NCHW") -> Tensor:
    """Average-pool to `output_size`, (height, width), where None keeps the size of the input.

    Window j of m over n pixels goes from floor(j n / m) to ceil((j + 1) n / m), so windows may overlap.
    """
    return _adaptive_average_pool("adaptive_avg_pool2d", 2, input, output_size, data_format)


@register
def adaptive_max_pool1d(input: Tensor, output_size: Ints, return_indices: bool = False) -> Any:
    """Return the maxima of the windows of `adaptive_avg_pool1d`; with `return_indices` also their indices."""
    return _adaptive_max_pool("adaptive_max_pool1d", 1, input, output_size, return_indices)


@register
def adaptive_max_pool2d(input: Tensor, output_size: int | Sequence[int | None], return_indices: bool = False) -> Any:
    """Return the maxima of the windows of `adaptive_avg_pool2d`; with `return_indices` also their indices."""
    return _adaptive_max_pool("adaptive_max_pool2d", 2, input, output_size, return_indices)


@register
def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: Ints, stride: Ints | None = None, ceil_mode: bool = False
) -> Tensor:
    """Compute ``sum(x ** norm_type) ** (1 / norm_type)`` for each window of (N, C, L); see `lp_pool2d`."""
    return _lp_pool("lp_pool1d", 1, input, norm_type, (kernel_size, stride), ceil_mode)


@register
def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Ints, stride: Ints | None = None, ceil_mode: bool = False
) -> Tensor:
    """Compute ``sum(x ** norm_type) ** (1 / norm_type)`` for each window of (N, C, H, W).

    A `norm_type` of inf gives the largest absolute value, -inf the smallest. Otherwise elements keep their signs, as in
    PyTorch, and the root of a negative sum is nan. The gradient of a sum of 0 is 0. Raises ArgumentError for 0.

    >>> import minigrad as mg
    >>> x = mg.tensor([[[1.0, -3.0, 2.0, 4.0]]])
    >>> mg.nn.functional.lp_pool1d(x, 1, 2).tolist(), mg.nn.functional.lp_pool1d(x, math.inf, 2).tolist()
    ([[[-2.0, 6.0]]], [[[3.0, 4.0]]])
    """
    return _lp_pool("lp_pool2d", 2, input, norm_type, (kernel_size, stride), ceil_mode)


@register
def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Compute a partial inverse of `max_pool1d`, with 0 for all elements that are not maxima; see `max_unpool2d`."""
    return _max_unpool("max_unpool1d", 1, input, indices, (kernel_size, stride, padding), output_size)


@register
def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Compute a partial inverse of `max_pool2d`: write `input` (N, C, H, W) at the pool's `indices`, and 0 elsewhere.

    `output_size` (or its last two sizes) selects among the input sizes that pool to (H, W). Zeiler and Fergus 2014.
    Raises ShapeError unless `indices` and `input` have the same shape.

    >>> import minigrad as mg
    >>> F = mg.nn.functional
    >>> y, indices = F.max_pool2d(mg.tensor([[[[1.0, 2.0], [4.0, 3.0]]]]), 2, return_indices=True)
    >>> F.max_unpool2d(y, indices, 2).tolist()
    [[[[0.0, 0.0], [4.0, 0.0]]]]
    """
    return _max_unpool("max_unpool2d", 2, input, indices, (kernel_size, stride, padding), output_size)


# --- helpers ---


def _extreme_pool(
    name: str, op: Op, dims: int, input: Any, sizes: Any, ceil_mode: bool, return_indices: bool, data_format: str
) -> Any:
    x = to_channels_first(input, dims, data_format, name)
    windows, _ = _sliding_windows(name, dims, x, sizes, ceil_mode)
    if any(not window for dim_windows in windows for window in dim_windows):
        raise ShapeError(
            f"{name}: with padding={sizes[2]} and dilation={sizes[3]} a window over shape {x.shape} covers only "
            "padding.\n  Reduce padding or dilation."
        )
    values, indices = [to_data_format(y, data_format) for y in op(x, windows=windows)]
    return (values, indices) if return_indices else values


def _average_pool(
    name: str,
    dims: int,
    input: Any,
    sizes: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: int | None,
    data_format: str,
) -> Tensor:
    x = to_channels_first(input, dims, data_format, name)
    windows, window_lengths = _sliding_windows(name, dims, x, sizes, ceil_mode)
    check_floating(x, name)
    if divisor == 0:
        raise ArgumentError(f"{name}: divisor_override=0: the divisor must not be zero.")
    for k, (dim_windows, lengths) in enumerate(zip(windows, window_lengths, strict=True)):
        counts = lengths if count_include_pad else tuple(map(len, dim_windows))
        if divisor is not None:
            counts = (divisor if k == 0 else 1,) * len(dim_windows)
        x = apply_rows(x, x.ndim - dims + k, averaging_rows(dim_windows, counts))
    return to_data_format(x, data_format)


def _adaptive_average_pool(name: str, dims: int, input: Any, output_size: Any, data_format: str) -> Tensor:
    x = to_channels_first(input, dims, data_format, name, empty="NC")
    windows = _adaptive_windows(name, dims, x, output_size)
    check_floating(x, name)
    for k, dim_windows in enumerate(windows):
        x = apply_rows(x, x.ndim - dims + k, averaging_rows(dim_windows, tuple(map(len, dim_windows))))
    return to_data_format(x, data_format)


def _adaptive_max_pool(name: str, dims: int, input: Any, output_size: Any, return_indices: bool) -> Any:
    x = to_channels_first(input, dims, DATA_FORMATS[dims][0], name, empty="NC")
    pooled = ops.max_pool(x, windows=_adaptive_windows(name, dims, x, output_size))
    return pooled if return_indices else pooled[0]


def _sliding_windows(
    name: str, dims: int, x: Tensor, sizes: Any, ceil_mode: bool
) -> tuple[tuple[Windows, ...], tuple[tuple[int, ...], ...]]:
    """Return the windows over each of the last `dims` dimensions of `x`, and their lengths including padding."""
    kernel, stride, padding, dilation = sizes
    kernels = to_int_tuple(kernel, dims, name, "kernel_size", 1)
    strides = kernels if stride is None or stride == () else to_int_tuple(stride, dims, name, "stride", 1)
    paddings = to_int_tuple(padding, dims, name, "padding")
    dilations = to_int_tuple(dilation, dims, name, "dilation", 1)
    windows, lengths = [], []
    for n, k, s, p, d in zip(x.shape[-dims:], kernels, strides, paddings, dilations, strict=True):
        if p > k // 2:
            raise ShapeError(
                f"{name}: padding should be at most half of the kernel size, but got padding={p} and kernel_size={k}."
            )
        m = (n + 2 * p - d * (k - 1) - 1 + (s - 1 if ceil_mode else 0)) // s + 1
        if ceil_mode and (m - 1) * s >= n + p:
            m -= 1  # drop a last window that starts in the padding
        if m < 1:
            raise ShapeError(
                f"{name}: output size is too small: a window of {d * (k - 1) + 1} is larger than the size {n} in "
                f"shape {x.shape}{f', with padding {p}' if p else ''}."
            )
        windows.append(sliding_windows(n, m, k, s, p, d))
        lengths.append(tuple(min(k, n + 2 * p - j * s) for j in range(m)))
    return tuple(windows), tuple(lengths)


def _adaptive_windows(name: str, dims: int, x: Tensor, output_size: Any) -> tuple[Windows, ...]:
    target_size = output_size
    if dims > 1 and isinstance(target_size, Sequence):
        if len(target_size) != dims:
            raise ShapeError(f"{name}: expected an output_size of {dims} sizes, but got {output_size!r}.")
        target_size = [n if size is None else size for n, size in zip(x.shape[-dims:], target_size, strict=True)]
    sizes = to_int_tuple(target_size, dims, name, "output_size")
    return tuple(adaptive_windows(n, m) for n, m in zip(x.shape[-dims:], sizes, strict=True))


def _lp_pool(name: str, dims: int, x: Any, power: float, sizes: tuple[Any, Any], ceil_mode: bool) -> Tensor:
    kernel = to_int_tuple(sizes[0], dims, name, "kernel_size", 1)
    if power == 0:
        raise ArgumentError(f"{name}: norm_type=0: the exponent 1 / norm_type is undefined.")
    if abs(power) == math.inf:
        max_pool = (max_pool1d, max_pool2d)[dims - 1]
        result: Tensor = max_pool(ops.abs(x) if power > 0 else -ops.abs(x), kernel, sizes[1], ceil_mode=ceil_mode)
        return result if power > 0 else -result
    means = (avg_pool1d, avg_pool2d)[dims - 1](x**power, kernel, sizes[1], 0, ceil_mode)
    # The derivative of the root is infinite at 0, so block the gradient there.
    return cast(Tensor, (ops.where(means == 0, 0.0, means) * numel(kernel)) ** (1.0 / power))


def _max_unpool(
    name: str, dims: int, input: Any, indices: Any, window_sizes: tuple[Any, Any, Any], output_size: Any
) -> Tensor:
    x, index = check_tensor(input, name), check_tensor(indices, name, "indices")
    if x.shape != index.shape or x.ndim <= dims:
        raise ShapeError(
            f"{name}: expected shape of indices to be same as that of the input, (N, C, …) or (C, …), but got "
            f"{index.shape} and {x.shape}."
        )
    size = to_int_tuple(window_sizes[0], dims, name, "kernel_size", 1)
    stride = size if window_sizes[1] is None else to_int_tuple(window_sizes[1], dims, name, "stride", 1)
    padding = to_int_tuple(window_sizes[2], dims, name, "padding")
    default = [(n - 1) * s - 2 * p + k for n, s, p, k in zip(x.shape[-dims:], stride, padding, size, strict=True)]
    output_shape = tuple(default if output_size is None else output_size[-dims:])
    leading_shape = x.shape[:-dims]
    flat_values, flat_indices = (reshape_to(t, (*leading_shape, numel(x.shape[-dims:]))) for t in (x.detach(), index))
    output = reshape_to(
        scatter(x.new_zeros((*leading_shape, numel(output_shape))), len(leading_shape), flat_indices, flat_values),
        (*leading_shape, *output_shape),
    )
    if not x.requires_grad:
        return output
    # Where windows overlap, the last element is kept, but all receive the gradient of their sum, as in PyTorch.
    total = ops.put_at(x, index, shape=(*leading_shape, *output_shape), dims=dims)
    return cast(Tensor, where(total.detach() == output, total, total + (output - total.detach())))
