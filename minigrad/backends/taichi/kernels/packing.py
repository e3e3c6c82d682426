"""Packing of the operands of matrix products into panels, in the order in which tiles access them."""

from __future__ import annotations

from typing import Any, NamedTuple

from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.codegen.tiles import LANES, packing_kernel, vector_unit
from minigrad.backends.taichi.runtime.array import CACHE_LINE, address_argument, empty
from minigrad.backends.taichi.runtime.caches import arch_cache
from minigrad.backends.taichi.runtime.kernel import Kernel
from minigrad.backends.taichi.runtime.muladd import FUSED

__all__ = ["K_STEP", "NO_BATCH", "BatchStrides", "Panels", "pack", "pack_columns"]

K_STEP = 4  # the depth of panels is padded to a multiple of this


class BatchStrides(NamedTuple):
    """The strides of a batch of two dimensions, the second of size `heads`: of the first and of the second."""

    heads: int
    outer: int
    inner: int

    @property
    def is_broadcast(self) -> bool:
        """Whether all elements of the batch are the same matrix."""
        return not (self.outer or self.inner)

    def __floordiv__(self, unit: int) -> BatchStrides:
        return BatchStrides(self.heads, self.outer // unit, self.inner // unit)


NO_BATCH = BatchStrides(1, 0, 0)


class Panels(NamedTuple):
    """A packed operand: x[batch + l * width_stride + k * depth_stride] in panels of `width`, l < `size`, k < `depth`.

    If `repeats_last`, the last panel is filled with the last elements, otherwise with any.
    """

    batches: int
    width: int
    size: int
    depth: int
    batch: BatchStrides
    width_stride: int
    depth_stride: int
    repeats_last: bool


def pack(x: Any, panels: Panels) -> Any:
    """Return the operand `x` of a product in panels."""
    compiled_kernel, count, scalars = _packing_plan(x.dtype, address_argument(x)[0] % CACHE_LINE, panels)
    out = empty((count,), x.dtype)
    compiled_kernel.launch(address_argument(out), address_argument(x), *scalars)
    return out


def pack_columns(x: Any) -> Any:
    """Pack float32 matrices, (batch, depth, size), into panels of `LANES` columns."""
    (batches, depth, size), itemsize = x.shape, x.itemsize
    batch_stride, depth_stride, width_stride = [step // itemsize for step in x.strides]
    batch = BatchStrides(1, batch_stride, 0)
    return pack(x, Panels(batches, LANES[x.dtype], size, depth, batch, width_stride, depth_stride, False))


@arch_cache(4096)
def _packing_plan(dtype: Any, misalignment: int, operand: Panels) -> tuple[Kernel, int, tuple[int, ...]]:
    """Return the packing kernel, the size of its output and its scalar arguments; `misalignment` is the address modulo
    `CACHE_LINE`."""
    batches, width, size, depth, batch, width_stride, depth_stride, repeats_last = operand
    panels, padded_depth, itemsize = -(-size // width), -(-depth // K_STEP) * K_STEP, dtype.itemsize
    count = batches * panels * padded_depth * width
    layout, unit = "strided", 1
    if depth == padded_depth:
        vector_size = vector_unit(width)
        if width_stride == 1 and not (
            size % width
            or batch.outer % vector_size
            or batch.inner % vector_size
            or depth_stride % vector_size
            or misalignment % (vector_size * itemsize)
        ):
            layout, unit = "contiguous", vector_size
        elif depth_stride == 1 and not (
            batch.outer % 4 or batch.inner % 4 or width_stride % 4 or misalignment % (4 * itemsize)
        ):
            layout, unit = "transposed", 4
    if layout == "strided" and width_stride == 1 and width == LANES[dtype] and FUSED and not repeats_last:
        layout = "masked"
    compiled_kernel = packing_kernel(layout, dtype, width, count <= 4 * source.SERIAL_LIMIT)
    return (
        compiled_kernel,
        count,
        (batches, panels, size, depth, padded_depth, *(batch // unit), width_stride // unit, depth_stride // unit),
    )
