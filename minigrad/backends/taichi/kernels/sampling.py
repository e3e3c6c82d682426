"""Grid sampling: interpolation of images at points between pixels. Images are 0 outside their bounds."""

from __future__ import annotations

from typing import Any

from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.codegen.functions import required_functions
from minigrad.backends.taichi.kernels.elementwise import array_argument
from minigrad.backends.taichi.kernels.shape import as_contiguous
from minigrad.backends.taichi.runtime.array import TAICHI, empty
from minigrad.backends.taichi.runtime.kernel import get_kernel
from minigrad.backends.taichi.runtime.vector_functions import cast_literals
from minigrad.core.dispatch import kernel

__all__: list[str] = []

Shape = tuple[int, ...]

# Compute, for each pixel around a point, whether it is `inside` the image, and its interpolation `weight`.
_CORNERS = """{indent}x = b_[point]
{indent}y = c_[point]
{indent}left = {low}(x)
{indent}top = {low}(y)
{indent}for corner in ti.static(range({corners})):
{indent}    column = left + ti.cast(corner % 2, ti.{type})
{indent}    row = top + ti.cast(corner // 2, ti.{type})
{indent}    inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
{indent}    weight = {weight}
"""
_WEIGHT = (
    """ti.select(corner % 2 == 1, x - left, 1.0 - (x - left)) * ti.select(corner // 2 == 1, y - top, 1.0 - (y - top))"""
)
_PIXEL = "plane * height * width + ti.cast(row, ti.i32) * width + ti.cast(column, ti.i32)"

# Each output element is sampled at one point of a plane, which is one channel of one image.
_SAMPLE = f"""    for i in range(images * channels * points):
        plane = i // points
        point = plane // channels * points + i % points
        s = 0.0
{{corners}}            value = 0.0
            if inside:
                value = a_[{_PIXEL}]
            s += value * weight
        y_[i] = s
"""
# Each plane is written by one thread, so that the scatter-add needs no atomics and is deterministic.
_SCATTER = f"""    for plane in range(images * channels):
        for k in range(height * width):
            y_[plane * height * width + k] = 0.0
        for k in range(points):
            point = plane // channels * points + k
            value = a_[plane * points + k]
{{corners}}                if inside:
                    pixel = {_PIXEL}
                    y_[pixel] = y_[pixel] + value * weight
"""


def _run_sampling(
    name: str, body: str, out: Any, inputs: tuple[Any, ...], image: Shape, nearest: bool, indent: int
) -> Any:
    points = inputs[1].size // max(image[0], 1)
    dtype, serial = out.dtype.name, image[0] * image[1] * points <= source.SERIAL_LIMIT
    low, weight = ("rounded", "1.0") if nearest else ("ti.floor", _WEIGHT)
    kind = source.TAICHI_NAMES[dtype]
    corners = _CORNERS.format(indent=" " * indent, low=low, corners=1 if nearest else 4, type=kind, weight=weight)
    body = body.format(corners=corners)
    name = f"{name}_nearest" if nearest else name
    params = ", ".join(f"{x}_: {source.array_annotation(dtype)}" for x in "yabc")
    size_names = ", ".join(f"{x}: ti.i32" for x in ("images", "channels", "height", "width", "points"))
    loop = f"    ti.loop_config(serialize={serial})\n"
    code = (
        f"{required_functions(body, kind)}@ti.kernel\ndef {name}_kernel({params}, {size_names}):\n"
        f"{loop}{cast_literals(body, kind)}"
    )
    if out.size:
        arrays = [out, *map(as_contiguous, inputs)]
        get_kernel(name, code, "aaaaiiiii")(*map(array_argument, arrays), *image, points)
    return out


@kernel("grid_sample", TAICHI)
def grid_sample(a: Any, b: Any, c: Any, *, nearest: bool) -> Any:
    out = empty((a.shape[0], a.shape[1], *b.shape[1:]), a.dtype)
    return _run_sampling("grid_sample", _SAMPLE, out, (a, b, c), a.shape, nearest, 8)


@kernel("grid_put", TAICHI)
def grid_put(a: Any, b: Any, c: Any, *, shape: Shape, nearest: bool) -> Any:
    return _run_sampling("grid_put", _SCATTER, empty(shape, a.dtype), (a, b, c), shape, nearest, 12)
