"""Resizing images: PyTorch's `interpolate`, a matrix for each dimension."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import floor, inf
from typing import Any

from minigrad.core.dtypes import float32, uint8
from minigrad.core.errors import ArgumentError, ShapeError
from minigrad.core.registry import register
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import Ints, floats_of, ints_of, tensor_of
from minigrad.functional.windows import Rows, mean_rows, resampled, window_shares

# In which numbers of dimensions there is each mode.
_MODES = {
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
    """Resize (batch, channels, …) to `size`, or by `scale_factor`, one for each dimension after the second.

    mode "nearest" takes one pixel, "nearest-exact" that nearest to the new pixel's centre; "linear", "bilinear" and
    "trilinear" (of 3, 4 and 5 dimensions) mix two in each; "bicubic" (4) mixes four, by Keys' kernel with a = -0.75,
    IEEE Trans. ASSP 29, 1981; "area" is adaptive_avg_pool. With `align_corners` the centres of the corner pixels stay
    in place, else the edges of the image do. `antialias`, of "bilinear" and "bicubic", widens the kernel where the
    image shrinks, and takes a = -0.5. `scale_factor` gives sizes rounded down, and distances between new pixels of
    1 / scale_factor; with `recompute_scale_factor` of old size / new size instead. Raises ArgumentError for other
    modes, and options that do not go with a mode. Images of uint8, in "bilinear" and "bicubic", are rounded after each
    dimension.

    "nearest" is exact, where PyTorch in float32 may round to the neighbour (39 pixels to 33, for example).

    >>> import minigrad as mg
    >>> mg.functional.interpolate(mg.tensor([[[0.0, 4.0]]]), scale_factor=2, mode="linear").tolist()
    [[[0.0, 1.0, 3.0, 4.0]]]
    """
    _check_mode(tensor_of(input, "interpolate"), mode, align_corners, antialias)
    if (size is None) == (scale_factor is None) or (recompute_scale_factor and scale_factor is None):
        raise ArgumentError(
            "interpolate: give either size or scale_factor; recompute_scale_factor goes with the latter."
        )
    old = input.shape[2:]
    if scale_factor is None:
        new = ints_of(size, len(old), "interpolate", "size")
        factors: tuple[float, ...] = new
    else:
        factors = _factors(scale_factor, len(old))
        new = tuple(int(n * factor) for n, factor in zip(old, factors, strict=True))
    if min(old) < 1 or (min(new) < 1 and mode != "area") or not input.shape[1]:
        raise ShapeError(f"interpolate: from {input.shape} to {new}: sizes and channels must be 1 or more.")
    corners, pixels = bool(align_corners), input.dtype is uint8 and not mode.startswith("nearest")
    for k in reversed(range(len(old))):  # along rows first, while there are fewest elements: they mostly become more
        n, m = old[k], new[k]
        rounded = (n,) if "linear" in mode else (n, 2 * n) if (mode, input.ndim) == ("nearest", 4) else ()
        by_size = scale_factor is None or recompute_scale_factor or m in rounded  # the latter as in PyTorch
        pitch = (n, m) if by_size else (1, factors[k])
        rows = _filter_rows(n, m, *pitch, mode, corners) if antialias else _pixel_rows(n, m, *pitch, mode, corners)
        input = _rounded(resampled(input.to(float32), k + 2, rows)) if pixels else resampled(input, k + 2, rows)
    return input


def _check_mode(input: Tensor, mode: str, align_corners: bool | None, antialias: bool) -> None:
    if input.ndim not in _MODES.get(mode, ()):
        raise ArgumentError(
            f"interpolate: there is no mode={mode!r} of {input.ndim} dimensions.\n  There are nearest, nearest-exact "
            "and area (3 to 5 dimensions), linear (3), bilinear and bicubic (4) and trilinear (5), with batch and "
            "channels counted."
        )
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ArgumentError(f"interpolate: antialias goes with bilinear and bicubic, not with {mode!r}: leave it out.")
    if align_corners is not None and "linear" not in mode and mode != "bicubic":
        raise ArgumentError(
            f"interpolate: align_corners goes with the linear modes and bicubic, not with {mode!r}: leave it out."
        )
    if not mode.startswith("nearest") and not (input.dtype is uint8 and mode in ("bilinear", "bicubic")):
        floats_of(input, "interpolate")


def _rounded(x: Tensor) -> Tensor:
    return (x + 0.5).floor().clamp(0, 255).to(uint8)


# --- the matrices ---


@lru_cache(maxsize=256)
def _pixel_rows(n: int, m: int, over: float, under: float, mode: str, align_corners: bool) -> Rows:
    """The matrix that resizes `n` pixels to `m`, which are over / under apart."""
    if mode.startswith("nearest"):
        shift = 0.5 if mode == "nearest-exact" else 0.0
        nearest = [min(int((j + shift) * over / under), n - 1) for j in range(m)]
        return tuple((range(k, k + 1), (1.0,)) for k in nearest)
    if mode == "area":
        shares = window_shares(n, m)
        return mean_rows(shares, tuple(map(len, shares)))
    if align_corners:
        centres = [j * (n - 1) / max(m - 1, 1) for j in range(m)]
    else:
        centres = [(j + 0.5) * over / under - 0.5 for j in range(m)]
    if mode == "bicubic":
        return tuple(_cubic_row(n, centre) for centre in centres)
    centres = [max(centre, 0.0) for centre in centres]
    lefts = [min(int(centre), n - 1) for centre in centres]
    return tuple(
        (range(k, k + 2), (1 - (centre - k), centre - k)) if k < min(centre, n - 1) else (range(k, k + 1), (1.0,))
        for k, centre in zip(lefts, centres, strict=True)
    )


def _cubic(x: float, a: float) -> float:
    """Keys' kernel (1981, eq. 8, of any `a`) at distance `x`."""
    x = abs(x)
    if x <= 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return (((x - 5) * x + 8) * x - 4) * a if x < 2 else 0.0


def _cubic_row(n: int, centre: float) -> tuple[range, tuple[float, ...]]:
    """The four pixels around `centre` and their weights; beyond the edge the pixel there is repeated."""
    left = floor(centre)
    weights: dict[int, float] = {}
    for k in range(left - 1, left + 3):
        at = min(max(k, 0), n - 1)
        weights[at] = weights.get(at, 0.0) + _cubic(centre - k, -0.75)
    return range(min(weights), max(weights) + 1), tuple(weights.values())


@lru_cache(maxsize=256)
def _filter_rows(n: int, m: int, over: float, under: float, mode: str, align_corners: bool) -> Rows:
    """The matrix that resizes `n` pixels to `m` by a kernel as wide as the distance of new pixels, at least one."""
    pitch = over / under if not align_corners else (n - 1) / (m - 1) if m > 1 else 0.0
    width = max(pitch, 1.0)
    reach = width * (2 if mode == "bicubic" else 1)
    rows = []
    for j in range(m):
        centre = pitch * (j + 0.5)
        pixels = range(max(int(centre - reach + 0.5), 0), min(int(centre + reach + 0.5), n))
        distances = [(k + 0.5 - centre) / width for k in pixels]
        weights = [_cubic(x, -0.5) if mode == "bicubic" else max(1.0 - abs(x), 0.0) for x in distances]
        total = sum(weights)
        rows.append((pixels, tuple(weight / total for weight in weights)))
    return tuple(rows)


def _factors(given: Any, dims: int) -> tuple[float, ...]:
    factors = tuple(given) if isinstance(given, Sequence) else (given,) * dims
    if len(factors) != dims or not all(isinstance(f, int | float) and 0 < f < inf for f in factors):
        raise ArgumentError(
            f"interpolate: scale_factor={given!r} is not a positive number, nor one for each of {dims}."
        )
    return factors
