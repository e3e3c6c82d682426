"""float32 kernels of batch normalisation on the CPU: one launch for each op, which reads an image channel by channel.

Each core processes some channels. It passes over the elements of a channel, which stay in the cache, once for each
statistic and once for the result. Statistics are accumulated in float64.
"""

from __future__ import annotations

from typing import Any

from minigrad.backends.taichi.codegen import simd, source
from minigrad.backends.taichi.kernels import simd_lines
from minigrad.backends.taichi.runtime.array import CACHE_LINE, array_argument, empty
from minigrad.backends.taichi.runtime.caches import arch_cache
from minigrad.backends.taichi.runtime.kernel import Kernel, get_kernel
from minigrad.backends.taichi.runtime.types import FLOAT

__all__ = ["normalise_channels", "normalise_channels_backward", "sum_to_channels"]

MIN_SIZE = 4  # minimum number of elements of a channel of an image, since a core reads them one channel at a time

_PASS = """        for n in range(images):
            for k in range(size):
                index = (n * channels + i) * size + k
"""
_STATISTICS = f"""        sums = {{zeros}}
{_PASS}                x = a_[index]
                sums = sums + {{x64}}
        mean = ti.cast({{total}} / count, ti.f32)
        sums = {{zeros}}
{_PASS}                x = a_[index] - mean
                sums = sums + {{x64}} * {{x64}}
        var = {{total}} / count
        rstd = ti.cast(1.0 / ti.sqrt(var + eps), ti.f32)
        mean_[i] = mean
        var_[i] = ti.cast(var, ti.f32)
        rstd_[i] = rstd
{_PASS}                y_[index] = (a_[index] - mean) * rstd{{affine}}
"""
_DOT = f"""        mean = mean_[i]
        rstd = rstd_[i]
        sums = {{zeros}}
        grads = {{zeros}}
{_PASS}                x = u_[index] * ((a_[index] - mean) * rstd)
                sums = sums + {{x64}}
                x = u_[index]
                grads = grads + {{x64}}
"""
_BACKWARD = f"""{_DOT}        dot = ti.cast({{total}} / count, ti.f32)
        mean_grad = ti.cast({{grad_total}} / count, ti.f32)
        scale = rstd{{affine}}
{_PASS}                y_[index] = (u_[index] - (a_[index] - mean) * rstd * dot - mean_grad) * scale
"""
_WEIGHT = f"{_DOT}        y_[i] = ti.cast({{total}}, ti.f32)\n".replace("        grads = {zeros}\n", "").replace(
    "                x = u_[index]\n                grads = grads + {x64}\n", ""
)


@arch_cache(64)
def _channel_kernel(name: str, body: str, names: str, outs: tuple[str, ...], lanes: int, serial: bool) -> Kernel:
    """Return a kernel that runs `body` for each channel. The elements of images (`names`) are vectors of `lanes`;
    arrays `outs` have one element a channel."""
    image, total = source.array_annotation("float32", lanes), "{s}" if lanes == 1 else "{s}.sum()"
    parts = {
        "zeros": "ti.cast(0, ti.f64)" if lanes == 1 else f"ti.Vector([ti.cast(0, ti.f64) for j in range({lanes})])",
        "x64": "ti.cast(x, ti.f64)" if lanes == 1 else f"ti.Vector([ti.cast(x[j], ti.f64) for j in range({lanes})])",
        "total": total.format(s="sums"),
        "grad_total": total.format(s="grads"),
        "affine": "".join(f" {sign} {x}_[i]" for x, sign in (("weight", "*"), ("bias", "+")) if x in outs),
    }
    arguments = [(f"{x}_", image) for x in names] + [(f"{x}_", simd.NUMBER) for x in outs]
    arguments += [(x, "ti.f64") for x in ("count", "eps")]
    arguments += [(x, "ti.i32") for x in ("channels", "images", "size")]
    return get_kernel(name, *simd.kernel_source(name, arguments, "channels", body.format(**parts), serial))


def _are_contiguous(*arrays: Any) -> bool:
    return all(x is None or (x.dtype == FLOAT and x.flags.c_contiguous) for x in arrays)


def _lanes(norm: Any, *images: Any) -> int:
    """Return the number of elements that are loaded at a time, or 0 if these kernels do not apply."""
    if len(norm.shape) != 3 or norm.dim != (0, 2) or norm.along != (1,) or not norm.centred or not source.VECTORIZED:
        return 0
    if (
        norm.shape[2] < MIN_SIZE
        or not images[0].size
        or any(x.dtype != FLOAT or not x.flags.c_contiguous for x in images)
    ):
        return 0
    is_aligned = all(array_argument(x)[0] % CACHE_LINE == 0 for x in images)
    return next((n for n in (16, 4) if is_aligned and norm.shape[2] % n == 0), 1)


def _launch(name: str, body: str, names: str, images: Any, channels: dict[str, Any], norm: Any, lanes: int) -> None:
    outs = {k: x for k, x in channels.items() if x is not None}
    n, count, size = norm.shape
    kernel = _channel_kernel(name, body, names, tuple(outs), lanes, images[-1].size <= simd_lines.MAX_SERIAL)
    pointers = map(array_argument, (*images, *outs.values()))
    kernel.launch(*pointers, float(n * size), norm.eps, count, n, size // lanes)


def normalise_channels(a: Any, weight: Any, bias: Any, norm: Any) -> tuple[Any, Any, Any, Any] | None:
    """Normalise each channel over the batch. Return the output, mean, variance and reciprocal standard deviation, or
    None for any other norm, dtype or layout."""
    lanes = _lanes(norm, a)
    if not lanes or not _are_contiguous(weight, bias):
        return None
    y, shape = empty(a.shape, a.dtype), (1, norm.shape[1], 1)
    mean, var, rstd = (empty(shape, a.dtype) for _ in range(3))
    channels = {"mean": mean, "var": var, "rstd": rstd, "weight": weight, "bias": bias}
    _launch("normalize_channels", _STATISTICS, "ya", (y, a), channels, norm, lanes)
    return y, mean, var, rstd


def normalise_channels_backward(u: Any, a: Any, weight: Any, mean: Any, rstd: Any, norm: Any) -> Any:
    """Return the gradient for the input of `normalise_channels`, or None for any other norm, dtype or layout."""
    lanes = _lanes(norm, u, a)
    if not lanes or not _are_contiguous(weight, mean, rstd):
        return None
    y = empty(a.shape, a.dtype)
    channels = {"mean": mean, "rstd": rstd, "weight": weight}
    _launch("normalize_channels_backward", _BACKWARD, "yua", (y, u, a), channels, norm, lanes)
    return y


def sum_to_channels(u: Any, a: Any, mean: Any, rstd: Any, to: tuple[int, ...], norm: Any) -> Any:
    """Return the gradient for the weight of `normalise_channels`, or None for any other norm, dtype or layout."""
    lanes = _lanes(norm, u, a)
    if not lanes or not _are_contiguous(mean, rstd):
        return None
    y = empty(to, a.dtype)
    _launch("normalize_channels_weight", _WEIGHT, "ua", (u, a), {"y": y, "mean": mean, "rstd": rstd}, norm, lanes)
    return y
