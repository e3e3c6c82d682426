"""Conversion of recorded launches to elementwise loops over vectors of float32, or over single elements on a GPU.

Row reductions, whose results have one element per row, and computations with such results are also loops.
"""

from __future__ import annotations

from itertools import accumulate
from math import prod
from operator import mul
from typing import Any, NamedTuple

from minigrad.backends.taichi.codegen.conv_source import TiledConvolution
from minigrad.backends.taichi.codegen.source import VECTOR_SIZE, Computation
from minigrad.backends.taichi.codegen.tiles import TiledProduct
from minigrad.backends.taichi.runtime.launch_recording import ArrayArgument, Launch, Region
from minigrad.core.symbolic import SymbolicScalar

__all__ = [
    "ElementwiseLoop",
    "MatrixProduct",
    "OperandLayout",
    "RegionKey",
    "as_loop",
    "as_product",
    "flatten_loop",
    "region_key",
    "reshape_loop",
]

RegionKey = tuple[Any, int]  # owner and start of a memory region


class OperandLayout(NamedTuple):
    """Layout of an operand: its memory, and strides in vectors. With one element per `row`, the last stride is 0."""

    place: ArrayArgument
    strides: tuple[int, ...]
    row: bool

    @property
    def key(self) -> Any:
        """The identity of the layout."""
        return region_key(self.place.region), self.place.offset, self.strides, self.row


class ElementwiseLoop(NamedTuple):
    """The computation of a launch over rows of vectors: its results, usually one, and the operands of its snippet."""

    launch: Launch
    sizes: tuple[int, ...]
    results: tuple[OperandLayout, ...]
    operands: tuple[Any, ...]

    @property
    def work(self) -> Computation:
        """The snippet with its operands."""
        work: Computation = self.launch.kernel.work
        return work

    @property
    def y(self) -> OperandLayout:
        """The first result."""
        return self.results[0]

    @property
    def reads(self) -> list[OperandLayout]:
        """The operands that are arrays."""
        return [x for x in self.operands if isinstance(x, OperandLayout)]

    @property
    def arrays(self) -> list[OperandLayout]:
        """All arrays, results first."""
        return [*self.results, *self.reads]

    def with_layout(self, sizes: tuple[int, ...], strides: tuple[int, ...], row: bool) -> ElementwiseLoop:
        """Return the loop with this layout for all arrays."""
        layouts = {x.key: x._replace(strides=strides, row=row) for x in self.arrays}
        given = [layouts[x.key] if isinstance(x, OperandLayout) else x for x in self.operands]
        return self._replace(sizes=sizes, results=tuple([layouts[x.key] for x in self.results]), operands=tuple(given))

    @property
    def end_scalars(self) -> dict[str, Any]:
        """The scalars in the final expression of a reduction."""
        begin = 1 + len(self.work.arguments)
        return dict(zip(self.work.scalars, self.launch.args[begin:], strict=False))


def region_key(part: Region) -> RegionKey:
    """Return the identity of a memory region."""
    return part.owner, part.start


def as_loop(launch: Launch) -> ElementwiseLoop | None:
    """Convert a launch to a loop over vectors, or return None if this is impossible."""
    work = launch.kernel.work
    if not isinstance(work, Computation):
        return None
    count = len(work.arguments) + (not work.written)
    operands, numbers = launch.args[:count], launch.args[count:]
    if work.reduction:
        return _as_reduction(launch, work, operands, numbers[len(work.scalars) :])
    arrays = [x for x in operands if isinstance(x, ArrayArgument)]
    ndim, *last_strides = work.last_strides or (1, *[1] * (len(arrays) - 1))
    sizes = numbers[-ndim:]
    layouts: list[Any] = []
    for k, (place, stride) in enumerate(zip(arrays, [1, *last_strides], strict=True)):
        strides = *(numbers[k * ndim : k * ndim + ndim - 1] if work.last_strides else ()), stride
        layouts.append(OperandLayout(place, strides, not stride))
    remaining = iter(layouts)
    snippet_operands = [next(remaining) if isinstance(x, ArrayArgument) else x for x in operands]
    results = [x for one, x in zip(work.arguments, snippet_operands, strict=False) if one.name in work.written] or [
        snippet_operands.pop(0)
    ]
    return ElementwiseLoop(launch, tuple(sizes), tuple(results), tuple(snippet_operands))


class MatrixProduct(NamedTuple):
    """A launch of a matrix product or convolution, computed in vectors of `lanes` elements. The result consists of
    contiguous vectors."""

    launch: Launch
    sizes: tuple[int]
    y: OperandLayout
    lanes: int


def as_product(launch: Launch) -> MatrixProduct | None:
    """Convert the launch of a product or convolution whose result consists of full vectors. Return None for others."""
    work = launch.kernel.work
    if not isinstance(work, TiledProduct | TiledConvolution) or launch.kernel is not work.kernel():
        return None
    table, *tiles = launch.args[work.table :]
    if table.region.memory is None or any(type(x) is SymbolicScalar for x in tiles):
        return None
    count = work.items(table.region.memory.reshape(-1)[table.offset // 4 :], *tiles)
    if count % VECTOR_SIZE:
        return None
    return MatrixProduct(launch, (count // VECTOR_SIZE,), OperandLayout(launch.args[0], (1,), False), work.lanes)


def _as_reduction(
    launch: Launch, work: Computation, operands: tuple[Any, ...], numbers: tuple[Any, ...]
) -> ElementwiseLoop | None:
    """Convert a reduction of entire rows to a loop, or return None if rows are split or are not full vectors."""
    if any(type(x) is SymbolicScalar for x in numbers):
        return None
    count, chunks, _, size = numbers
    if chunks > 1 or size % VECTOR_SIZE:
        return None
    full, one = ((size // VECTOR_SIZE, 1), False), ((1, 0), True)
    y, *snippet_operands = [
        OperandLayout(x, *(full if is_full else one))
        for x, is_full in zip(operands, (0, *work.last_strides), strict=True)
    ]
    return ElementwiseLoop(launch, (count, size // VECTOR_SIZE), (y,), tuple(snippet_operands))


def reshape_loop(loop: ElementwiseLoop, sizes: tuple[int, ...]) -> ElementwiseLoop | None:
    """Reshape a loop over contiguous arrays to rows of other sizes, or return None if this is impossible.

    An array with one vector per sixteen rows has one element per row.
    """
    if loop.sizes == sizes:
        return loop
    if len(loop.sizes) > 1 or any(x.row or x.strides != (1,) for x in loop.arrays):
        return None
    if loop.sizes[0] == prod(sizes):
        return loop.with_layout(sizes, _contiguous_strides(sizes), False)
    if len(sizes) == 2 and loop.sizes[0] * VECTOR_SIZE == sizes[0] and not loop.work.written:
        return loop.with_layout(sizes, (1, 0), True)
    return None


def flatten_loop(loop: ElementwiseLoop, sizes: tuple[int, ...]) -> ElementwiseLoop | None:
    """Flatten a loop over contiguous arrays to a single row, or return None if this is impossible."""
    strides = _contiguous_strides(loop.sizes)
    if (prod(loop.sizes),) != sizes or any(x.row or x.strides != strides for x in loop.arrays):
        return None
    return loop.with_layout(sizes, (1,), False)


def _contiguous_strides(sizes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(accumulate(sizes[:0:-1], mul, initial=1))[::-1]
