"""A recorded launch as a loop that computes each number from those in its place, in rows of vectors of float32; on a
GPU these vectors are single numbers.

So are sums and extremes of rows, whose results have one number for a row, and what is computed of such numbers.
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

Key = tuple[Any, int]  # of a part of memory


class Lying(NamedTuple):
    """An operand: a place, and its strides in vectors; where it has one number for a `row`, in numbers, the last 0."""

    place: Place
    strides: tuple[int, ...]
    row: bool

    @property
    def key(self) -> Any:
        """What tells it from others."""
        return key_of(self.place.part), self.place.offset, self.strides, self.row


class Loop(NamedTuple):
    """What a launch computes: its results, mostly one, and the operands of its snippet, in so many rows of vectors."""

    launch: Launch
    sizes: tuple[int, ...]
    results: tuple[Lying, ...]
    given: tuple[Any, ...]

    @property
    def work(self) -> Work:
        """The snippet, and what it is of."""
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
        """All arrays of it, the results first."""
        return [*self.results, *self.reads]

    def lying(self, sizes: tuple[int, ...], strides: tuple[int, ...], row: bool) -> Loop:
        """The same with all arrays lying so."""
        along = {x.key: x._replace(strides=strides, row=row) for x in self.arrays}
        given = [along[x.key] if isinstance(x, Lying) else x for x in self.given]
        return self._replace(sizes=sizes, results=tuple([along[x.key] for x in self.results]), given=tuple(given))

    @property
    def ends(self) -> dict[str, Any]:
        """The numbers that the end of a sum names."""
        begin = 1 + len(self.work.takes)
        return dict(zip(self.work.numbers, self.launch.args[begin:], strict=False))


def key_of(part: Region) -> Key:
    """What tells a part of memory from others."""
    return part.what, part.start


def loop_of(launch: Launch) -> Loop | None:
    """A launch as a loop over vectors; None if it is none."""
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
    """A launch that multiplies matrices or convolves, and its result as vectors that lie one after the other; it
    computes them in vectors of `lanes`."""

    launch: Launch
    sizes: tuple[int]
    y: Lying
    lanes: int


def product_of(launch: Launch) -> Product | None:
    """A launch as a product of matrices or a convolution whose result has whole vectors; None if it is none."""
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
    """A sum, or the like, of whole rows."""
    if any(type(x) is Traced for x in numbers):
        return None
    count, stretches, _, size = numbers
    if stretches > 1 or size % WIDE:
        return None
    full, one = ((size // WIDE, 1), False), ((1, 0), True)
    y, *given = [Lying(x, *(full if goes else one)) for x, goes in zip(operands, (0, *work.along), strict=True)]
    return Loop(launch, (count, size // WIDE), (y,), tuple(given))


def reshaped(loop: Loop, sizes: tuple[int, ...]) -> Loop | None:
    """The same numbers in rows of other sizes, where all lie row by row; None where that cannot be.

    One vector for sixteen rows is one number for each.
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
    """The same in one row, where all lie one after the other."""
    strides = _row_by_row(loop.sizes)
    if (prod(loop.sizes),) != sizes or any(x.row or x.strides != strides for x in loop.arrays):
        return None
    return loop.lying(sizes, (1,), False)


def _row_by_row(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of what lies one after the other."""
    return tuple(accumulate(sizes[:0:-1], mul, initial=1))[::-1]
