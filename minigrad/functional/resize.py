"""Image resizing: PyTorch's `interpolate`, as one matrix product per dimension."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import floor, inf
from typing import Any

from minigrad.core.dtypes import float32, uint8
from minigrad.core.errors import ArgumentError, ShapeError
from minigrad.core.registry import register
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import Ints, check_floating, check_tensor, to_int_tuple
from minigrad.functional.windows import SparseRows, adaptive_windows, apply_rows, averaging_rows

# The values of `ndim` that each mode supports.
_MODE_NDIMS = {
    "nearest": (3, 4, 5),
    "nearest-exact": (3, 4, 5),
    "area": (3, 4, 5),
    "linear": (3,),
    "bilinear": (4,),
    "bicubic": (4,),
    "trilinear": (5,),
}


@register
def interpolate(
    input: Tensor,
    size: Ints | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resize (N, C, …) to `size` or by `scale_factor`, each one value, or one per spatial dimension.

    `mode` is "nearest"; "nearest-exact", which rounds to the pixel nearest to the new centre; "linear", "bilinear" or
    "trilinear" (3-d, 4-d, 5-d input); "bicubic" (4-d), with Keys' kernel for a = -0.75, IEEE Trans. ASSP 29, 1981; or
    "area", adaptive average pooling. `align_corners` aligns the centres of the corner pixels, else the image edges.
    `antialias` ("bilinear" and "bicubic") widens the kernel when downsampling and uses a = -0.5. With `scale_factor`,
    sizes are rounded down and the sampling step is 1 / scale_factor, or old size / new size if
    `recompute_scale_factor`. "bilinear" and "bicubic" accept uint8 and round after each dimension. Raises ArgumentError
    for unknown modes, and for options that a mode does not support.

    "nearest" is exact, whereas PyTorch's float32 arithmetic may pick the neighbour (39 pixels to 33, for example).

    >>> import minigrad as mg
    >>> mg.functional.interpolate(mg.tensor([[[0.0, 4.0]]]), scale_factor=2, mode="linear").tolist()
    [[[0.0, 1.0, 3.0, 4.0]]]
    """
    _check_mode(check_tensor(input, "interpolate"), mode, align_corners, antialias)
    if (size is None) == (scale_factor is None) or (recompute_scale_factor and scale_factor is None):
        raise ArgumentError(
            "interpolate: either size or scale_factor should be defined; recompute_scale_factor requires scale_factor."
        )
    input_size = input.shape[2:]
    if scale_factor is None:
        output_size = to_int_tuple(size, len(input_size), "interpolate", "size")
        factors: tuple[float, ...] = output_size
    else:
        factors = _check_scale_factor(scale_factor, len(input_size))
        output_size = tuple(int(n * factor) for n, factor in zip(input_size, factors, strict=True))
    if min(input_size) < 1 or (min(output_size) < 1 and mode != "area") or not input.shape[1]:
        raise ShapeError(
            f"interpolate: input and output sizes should be greater than 0, but got input {input.shape} and size "
            f"{output_size}."
        )
    align, is_uint8 = bool(align_corners), input.dtype is uint8 and not mode.startswith("nearest")
    for k in reversed(range(len(input_size))):  # last dimension first, since upsampling adds elements at every step
        n, m = input_size[k], output_size[k]
        legacy_sizes = (n,) if "linear" in mode else (n, 2 * n) if (mode, input.ndim) == ("nearest", 4) else ()
        # For `legacy_sizes`, PyTorch uses the ratio of sizes even with a scale factor.
        use_size_ratio = scale_factor is None or recompute_scale_factor or m in legacy_sizes
        step = (n, m) if use_size_ratio else (1, factors[k])
        rows = (
            _antialias_matrix(n, m, *step, mode, align)
            if antialias
            else _interpolation_matrix(n, m, *step, mode, align)
        )
        input = (
            _round_to_uint8(apply_rows(input.to(float32), k + 2, rows)) if is_uint8 else apply_rows(input, k + 2, rows)
        )
    return input


def _check_mode(input: Tensor, mode: str, align_corners: bool | None, antialias: bool) -> None:
    if input.ndim not in _MODE_NDIMS.get(mode, ()):
        raise ArgumentError(
            f"interpolate: mode={mode!r} does not support {input.ndim}-d input.\n  The modes are nearest, "
            "nearest-exact and area (3-d to 5-d), linear (3-d), bilinear and bicubic (4-d) and trilinear (5-d), "
            "including batch and channels."
        )
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ArgumentError(f"interpolate: antialias is only supported for bilinear and bicubic, but got {mode!r}.")
    if align_corners is not None and "linear" not in mode and mode != "bicubic":
        raise ArgumentError(
            f"interpolate: align_corners can only be set with the linear modes and bicubic, but got {mode!r}."
        )
    if not mode.startswith("nearest") and not (input.dtype is uint8 and mode in ("bilinear", "bicubic")):
        check_floating(input, "interpolate")


def _round_to_uint8(x: Tensor) -> Tensor:
    return (x + 0.5).floor().clamp(0, 255).to(uint8)


# --- interpolation matrices ---


@lru_cache(maxsize=256)
def _interpolation_matrix(
    n: int, m: int, step_numerator: float, step_denominator: float, mode: str, align_corners: bool
) -> SparseRows:
    """Return the matrix that resizes `n` pixels to `m`, with a step of ``step_numerator / step_denominator``."""
    if mode.startswith("nearest"):
        shift = 0.5 if mode == "nearest-exact" else 0.0
        nearest = [min(int((j + shift) * step_numerator / step_denominator), n - 1) for j in range(m)]
        return tuple((range(k, k + 1), (1.0,)) for k in nearest)
    if mode == "area":
        windows = adaptive_windows(n, m)
        return averaging_rows(windows, tuple(map(len, windows)))
    if align_corners:
        centres = [j * (n - 1) / max(m - 1, 1) for j in range(m)]
    else:
        centres = [(j + 0.5) * step_numerator / step_denominator - 0.5 for j in range(m)]
    if mode == "bicubic":
        return tuple(_cubic_row(n, centre) for centre in centres)
    centres = [max(centre, 0.0) for centre in centres]
    lefts = [min(int(centre), n - 1) for centre in centres]
    return tuple(
        (range(k, k + 2), (1 - (centre - k), centre - k)) if k < min(centre, n - 1) else (range(k, k + 1), (1.0,))
        for k, centre in zip(lefts, centres, strict=True)
    )


def _cubic_kernel(x: float, a: float) -> float:
    """Evaluate Keys' kernel (1981, eq. 8, for any `a`) at distance `x`."""
    x = abs(x)
    if x <= 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return (((x - 5) * x + 8) * x - 4) * a if x < 2 else 0.0


def _cubic_row(n: int, centre: float) -> tuple[range, tuple[float, ...]]:
    """Return the four pixels around `centre` and their cubic weights. Outside the image, the edge pixel is repeated."""
    left = floor(centre)
    weights: dict[int, float] = {}
    for k in range(left - 1, left + 3):
        pixel = min(max(k, 0), n - 1)
        weights[pixel] = weights.get(pixel, 0.0) + _cubic_kernel(centre - k, -0.75)
    return range(min(weights), max(weights) + 1), tuple(weights.values())


@lru_cache(maxsize=256)
def _antialias_matrix(
    n: int, m: int, step_numerator: float, step_denominator: float, mode: str, align_corners: bool
) -> SparseRows:
    """Return the matrix that resizes `n` pixels to `m` with antialiasing. The kernel width is max(sampling step, 1)."""
    step = step_numerator / step_denominator if not align_corners else (n - 1) / (m - 1) if m > 1 else 0.0
    width = max(step, 1.0)
    radius = width * (2 if mode == "bicubic" else 1)
    rows = []
    for j in range(m):
        centre = step * (j + 0.5)
        pixels = range(max(int(centre - radius + 0.5), 0), min(int(centre + radius + 0.5), n))
        distances = [(k + 0.5 - centre) / width for k in pixels]
        weights = [_cubic_kernel(x, -0.5) if mode == "bicubic" else max(1.0 - abs(x), 0.0) for x in distances]
        total = sum(weights)
        rows.append((pixels, tuple(weight / total for weight in weights)))
    return tuple(rows)


def _check_scale_factor(scale_factor: Any, dims: int) -> tuple[float, ...]:
    factors = tuple(scale_factor) if isinstance(scale_factor, Sequence) else (scale_factor,) * dims
    if len(factors) != dims or not all(isinstance(f, int | float) and 0 < f < inf for f in factors):
        raise ArgumentError(
            f"interpolate: expected scale_factor to be a positive scalar or a sequence of {dims}, but got "
            f"{scale_factor!r}."
        )
    return factors
