"""Recorded launches as elementwise loops over vectors of float32; on a GPU over single elements.

Row reductions, whose results have one element per row, and loops over such results are loops too.
"""

from __future__ import annotations

from itertools import accumulate
from math import prod
from operator import mul
from typing import Any, NamedTuple

from minigrad.backends.taichi.codegen.source import WIDE, Work
from minigrad.backends.taichi.codegen.tiles import Tiles
from minigrad.backends.taichi.codegen.windows import Convolution
from minigrad.backends.taichi.runtime.recording import Launch, Place, Region
from minigrad.core.symbolic import Traced

__all__ = ["Key", "Loop", "Lying", "Product", "flattened", "key_of", "loop_of", "product_of", "reshaped"]

Key = tuple[Any, int]  # identity of a memory region


class Lying(NamedTuple):
    """The layout of an operand: a place, and strides in vectors. With one element per `row`, the last stride is 0."""

    place: Place
    strides: tuple[int, ...]
    row: bool

    @property
    def key(self) -> Any:
        """The identity of the layout."""
        return key_of(self.place.part), self.place.offset, self.strides, self.row


class Loop(NamedTuple):
    """The computation of a launch: its results, mostly one, and the operands of its snippet, over rows of vectors."""

    launch: Launch
    sizes: tuple[int, ...]
    results: tuple[Lying, ...]
    given: tuple[Any, ...]

    @property
    def work(self) -> Work:
        """The snippet with its operands."""
        work: Work = self.launch.kernel.work
        return work

    @property
    def y(self) -> Lying:
        """The first result."""
        return self.results[0]

    @property
    def reads(self) -> list[Lying]:
        """The operands that are arrays."""
        return [x for x in self.given if isinstance(x, Lying)]

    @property
    def arrays(self) -> list[Lying]:
        """All arrays, results first."""
        return [*self.results, *self.reads]

    def lying(self, sizes: tuple[int, ...], strides: tuple[int, ...], row: bool) -> Loop:
        """Return the loop with this layout for all arrays."""
        along = {x.key: x._replace(strides=strides, row=row) for x in self.arrays}
        given = [along[x.key] if isinstance(x, Lying) else x for x in self.given]
        return self._replace(sizes=sizes, results=tuple([along[x.key] for x in self.results]), given=tuple(given))

    @property
    def ends(self) -> dict[str, Any]:
        """The scalars in the final expression of a reduction."""
        begin = 1 + len(self.work.takes)
        return dict(zip(self.work.numbers, self.launch.args[begin:], strict=False))


def key_of(part: Region) -> Key:
    """Return the identity of a memory region."""
    return part.what, part.start


def loop_of(launch: Launch) -> Loop | None:
    """Return a launch as a loop over vectors; None if it is none."""
    work = launch.kernel.work
    if not isinstance(work, Work):
        return None
    count = len(work.takes) + (not work.writes)
    operands, numbers = launch.args[:count], launch.args[count:]
    if work.join:
        return _joining(launch, work, operands, numbers[len(work.numbers) :])
    arrays = [x for x in operands if isinstance(x, Place)]
    ndim, *along = work.along or (1, *[1] * (len(arrays) - 1))
    sizes = numbers[-ndim:]
    lying: list[Any] = []
    for k, (place, goes) in enumerate(zip(arrays, [1, *along], strict=True)):
        strides = *(numbers[k * ndim : k * ndim + ndim - 1] if work.along else ()), goes
        lying.append(Lying(place, strides, not goes))
    left = iter(lying)
    given = [next(left) if isinstance(x, Place) else x for x in operands]
    results = [x for one, x in zip(work.takes, given, strict=False) if one.name in work.writes] or [given.pop(0)]
    return Loop(launch, tuple(sizes), tuple(results), tuple(given))


class Product(NamedTuple):
    """A launch of a matrix product or convolution, whose result is contiguous vectors; it is computed in vectors of
    `lanes` elements."""

    launch: Launch
    sizes: tuple[int]
    y: Lying
    lanes: int


def product_of(launch: Launch) -> Product | None:
    """Return a launch as a product or convolution whose result is a multiple of full vectors; None if it is none."""
    work = launch.kernel.work
    if not isinstance(work, Tiles | Convolution) or launch.kernel is not work.kernel():
        return None
    table, *tiles = launch.args[work.table :]
    if table.part.holds is None or any(type(x) is Traced for x in tiles):
        return None
    count = work.items(table.part.holds.reshape(-1)[table.offset // 4 :], *tiles)
    if count % WIDE:
        return None
    return Product(launch, (count // WIDE,), Lying(launch.args[0], (1,), False), work.lanes)


def _joining(launch: Launch, work: Work, operands: tuple[Any, ...], numbers: tuple[Any, ...]) -> Loop | None:
    """Return a reduction of entire rows as a loop."""
    if any(type(x) is Traced for x in numbers):
        return None
    count, stretches, _, size = numbers
    if stretches > 1 or size % WIDE:
        return None
    full, one = ((size // WIDE, 1), False), ((1, 0), True)
    y, *given = [Lying(x, *(full if goes else one)) for x, goes in zip(operands, (0, *work.along), strict=True)]
    return Loop(launch, (count, size // WIDE), (y,), tuple(given))


def reshaped(loop: Loop, sizes: tuple[int, ...]) -> Loop | None:
    """Return a loop with contiguous arrays in rows of other sizes; None if that is impossible.

    One vector per sixteen rows is one element per row.
    """
    if loop.sizes == sizes:
        return loop
    if len(loop.sizes) > 1 or any(x.row or x.strides != (1,) for x in loop.arrays):
        return None
    if loop.sizes[0] == prod(sizes):
        return loop.lying(sizes, _row_by_row(sizes), False)
    if len(sizes) == 2 and loop.sizes[0] * WIDE == sizes[0] and not loop.work.writes:
        return loop.lying(sizes, (1, 0), True)
    return None


def flattened(loop: Loop, sizes: tuple[int, ...]) -> Loop | None:
    """Return a loop with contiguous arrays as a single row."""
    strides = _row_by_row(loop.sizes)
    if (prod(loop.sizes),) != sizes or any(x.row or x.strides != strides for x in loop.arrays):
        return None
    return loop.lying(sizes, (1,), False)


def _row_by_row(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a contiguous array."""
    return tuple(accumulate(sizes[:0:-1], mul, initial=1))[::-1]
