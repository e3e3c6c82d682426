"""Pooling and upsampling layers. The computations are in `minigrad.functional.pool`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minigrad import functional as F
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import Ints, to_int_tuple
from minigrad.nn.function_module import FunctionModule, UnaryFunctionModule

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AvgPool1d",
    "AvgPool2d",
    "LPPool1d",
    "LPPool2d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MinPool2d",
    "Upsample",
    "UpsamplingBilinear2d",
    "UpsamplingNearest2d",
]


class _MaxPoolNd(UnaryFunctionModule):
    _repr_settings = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")

    def __init__(
        self,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        dilation: Ints = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        stride = kernel_size if stride is None else stride
        options: Any = {"dilation": dilation, "return_indices": return_indices, "ceil_mode": ceil_mode}
        super().__init__(kernel_size=kernel_size, stride=stride, padding=padding, **options)


class MaxPool1d(_MaxPoolNd, of="max_pool1d"):
    """Takes the maximum of each window of (N, C, L): see `functional.max_pool1d`."""


class MaxPool2d(_MaxPoolNd, of="max_pool2d"):
    """Takes the maximum of each window of (N, C, H, W): see `functional.max_pool2d`.

    >>> import minigrad as mg
    >>> mg.nn.MaxPool2d(2)(mg.ones(1, 3, 8, 8)).shape
    (1, 3, 4, 4)
    """


class MinPool2d(_MaxPoolNd, of="min_pool2d"):
    """Takes the minimum of each window of (N, C, H, W): see `functional.min_pool2d`. Not in PyTorch."""


class AvgPool1d(UnaryFunctionModule, of="avg_pool1d"):
    """Averages each window of (N, C, L): see `functional.avg_pool1d`."""

    _repr_settings = ("kernel_size", "stride", "padding")

    def __init__(
        self,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        size = to_int_tuple(kernel_size, 1, "AvgPool1d", "kernel_size", 1)
        stride = size if stride is None else to_int_tuple(stride, 1, "AvgPool1d", "stride", 1)
        padding = to_int_tuple(padding, 1, "AvgPool1d", "padding")
        options: Any = {"ceil_mode": ceil_mode, "count_include_pad": count_include_pad}
        super().__init__(kernel_size=size, stride=stride, padding=padding, **options)


class AvgPool2d(UnaryFunctionModule, of="avg_pool2d"):
    """Averages each window of (N, C, H, W): see `functional.avg_pool2d`."""

    _repr_settings = ("kernel_size", "stride", "padding")

    def __init__(
        self,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        stride = kernel_size if stride is None else stride
        options: Any = {"count_include_pad": count_include_pad, "divisor_override": divisor_override}
        super().__init__(kernel_size=kernel_size, stride=stride, padding=padding, ceil_mode=ceil_mode, **options)


class _LPPoolNd(UnaryFunctionModule):
    def __init__(
        self, norm_type: float, kernel_size: Ints, stride: Ints | None = None, ceil_mode: bool = False
    ) -> None:
        super().__init__(norm_type=norm_type, kernel_size=kernel_size, stride=stride, ceil_mode=ceil_mode)


class LPPool1d(_LPPoolNd, of="lp_pool1d"):
    """Takes the `norm_type`-norm of each window of (N, C, L): see `functional.lp_pool1d`."""


class LPPool2d(_LPPoolNd, of="lp_pool2d"):
    """Takes the `norm_type`-norm of each window of (N, C, H, W): see `functional.lp_pool2d`."""


class _MaxUnpoolNd(FunctionModule):
    dims = 1

    def __init__(self, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0) -> None:
        sizes = {"kernel_size": kernel_size, "stride": kernel_size if stride is None else stride, "padding": padding}
        super().__init__(**{name: to_int_tuple(x, self.dims, type(self).__name__, name) for name, x in sizes.items()})

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Any:
        return getattr(F, self.applies)(input, indices, output_size=output_size, **self._kwargs())


class MaxUnpool1d(_MaxUnpoolNd, of="max_unpool1d"):
    """Computes a partial inverse of `MaxPool1d`, given its indices: see `functional.max_unpool1d`."""


class MaxUnpool2d(_MaxUnpoolNd, of="max_unpool2d"):
    """Computes a partial inverse of `MaxPool2d`, given its indices: see `functional.max_unpool2d`."""

    dims = 2


class _AdaptiveAvgPoolNd(UnaryFunctionModule):
    def __init__(self, output_size: Any) -> None:
        super().__init__(output_size=output_size)


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd, of="adaptive_avg_pool1d"):
    """Averages `output_size` windows that cover (N, C, L)."""


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd, of="adaptive_avg_pool2d"):
    """Averages `output_size` windows, (height, width), that cover (N, C, H, W). None keeps the input size."""


class _AdaptiveMaxPoolNd(UnaryFunctionModule):
    _repr_settings = ("output_size",)

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size=output_size, return_indices=return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd, of="adaptive_max_pool1d"):
    """Takes the maxima of `output_size` windows that cover (N, C, L)."""


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd, of="adaptive_max_pool2d"):
    """Takes the maxima of `output_size` windows, (height, width), that cover (N, C, H, W)."""


class Upsample(UnaryFunctionModule, of="interpolate"):
    """Resizes (N, C, …) to `size`, or by `scale_factor`: see `functional.interpolate`.

    >>> import minigrad as mg
    >>> mg.nn.Upsample(scale_factor=2, mode="bilinear")(mg.ones(1, 3, 4, 4)).shape
    (1, 3, 8, 8)
    """

    def __init__(
        self,
        size: Ints | None = None,
        scale_factor: float | Sequence[float] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        if isinstance(scale_factor, Sequence):
            factor: Any = tuple(map(float, scale_factor))
        else:
            factor = float(scale_factor) if scale_factor else None
        options: Any = {"align_corners": align_corners, "recompute_scale_factor": recompute_scale_factor}
        super().__init__(size=size, scale_factor=factor, mode=mode, **options)

    def extra_repr(self) -> str:
        size = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"
        return f"{size}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Resizes (N, C, H, W) by nearest-neighbour interpolation."""

    def __init__(self, size: Ints | None = None, scale_factor: float | Sequence[float] | None = None) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """Resizes (N, C, H, W) by bilinear interpolation with aligned corners."""

    def __init__(self, size: Ints | None = None, scale_factor: float | Sequence[float] | None = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)
