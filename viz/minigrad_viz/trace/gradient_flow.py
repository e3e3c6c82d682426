"""Gradient flow: how large the gradient of each layer was at the measured steps of a training, and where it went wrong.

However long the training, there are at most `MOST` columns: when they are full, neighbours become one, which keeps the
larger of their sizes. So adding a step takes a constant time, and a peak is never lost.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

__all__ = ["MOST", "Alarm", "Column", "Flow", "Measured"]

MOST = 200  # columns
_APART = (
    1e3  # how many times as large, or as small, as near the loss a gradient may be: as it is, a layer hardly learns
)
_GROWN = 1e3  # how many times as large as it mostly was a gradient may be
_KNOWN = 5  # measured steps after which it is known how large it mostly is
_KEEP = 0.9  # of that knowledge at each step
_DYING = 0.5  # share of units that is worth an alarm

Kind = Literal["nan", "inf", "vanishing", "exploding", "grown", "dead", "stale"]


class Alarm(NamedTuple):
    """What went wrong in a layer, `row`, for the first time at `step`.

    `size` is the gradient's, or the share of dead units. `other` is what it was compared with: the size in layer
    `near`, or, where that is None, in the layer itself before. Of a NaN or Inf `near` is None for one in the gradient.
    """

    kind: Kind
    step: int
    row: int
    size: float = math.nan
    other: float = math.nan
    near: int | None = None


class Measured(NamedTuple):
    """What is known of a step, by layer: the root mean square of its gradient, the NaN or infinity in its output, the
    share of its units that are dead, and which had the gradient of the step before when a new one came.

    `order` are the layers in the order of their calls.
    """

    sizes: Mapping[int, float]
    order: Sequence[int] = ()
    wild: Mapping[int, float] = {}
    dead: Mapping[int, float] = {}
    stale: Collection[int] = ()


@dataclass(slots=True)
class Column:
    """Measured steps that stand in one column: the first and last, how many, and the largest size by layer."""

    first: int
    last: int
    count: int
    sizes: dict[int, float]

    def join(self, later: Column) -> Column:
        """The column of both."""
        sizes = {row: _larger(self.sizes.get(row), later.sizes.get(row)) for row in self.sizes | later.sizes}
        return Column(self.first, later.last, self.count + later.count, sizes)


def _larger(one: float | None, other: float | None) -> float:
    """The larger of two sizes, of which one may be missing; NaN is the largest."""
    there = [x for x in (one, other) if x is not None]
    return next((x for x in there if math.isnan(x)), max(there))


@dataclass
class Flow:
    """The columns, and the alarms in the order in which they began.

    >>> flow = Flow()
    >>> for step in range(1, 4):
    ...     flow.add(step, Measured({0: 1e-5, 1: 0.1}, order=[0, 1]))
    >>> [(column.first, column.sizes[1]) for column in flow.columns]
    [(1, 0.1), (2, 0.1), (3, 0.1)]
    >>> [(alarm.kind, alarm.step, alarm.row, alarm.near) for alarm in flow.alarms]
    [('vanishing', 1, 0, 1)]
    """

    columns: list[Column] = field(default_factory=list)
    alarms: list[Alarm] = field(default_factory=list)
    every: int = 1
    """How many measured steps stand in a column; in the last one there may be fewer."""
    _mostly: dict[int, tuple[int, float]] = field(default_factory=dict)
    _begun: set[tuple[str, int]] = field(default_factory=set)

    def add(self, step: int, measured: Measured) -> None:
        """A step was measured."""
        if measured.sizes:
            self._append(Column(step, step, 1, dict(measured.sizes)))
        self._look(step, measured)

    def column_of(self, step: int) -> int:
        """The column in which a measured step stands."""
        return max(0, bisect_right(self.columns, step, key=lambda column: column.first) - 1)

    def rows(self) -> list[int]:
        """The layers of which there is something to show, in order."""
        return sorted({row for column in self.columns for row in column.sizes} | {alarm.row for alarm in self.alarms})

    def _append(self, column: Column) -> None:
        if self.columns and self.columns[-1].count < self.every:
            self.columns[-1] = self.columns[-1].join(column)
            return
        if len(self.columns) == MOST:
            pairs = zip(self.columns[::2], self.columns[1::2], strict=True)
            self.columns = [one.join(other) for one, other in pairs]
            self.every *= 2
        self.columns.append(column)

    # --- alarms ---

    def _look(self, step: int, measured: Measured) -> None:
        if not self._wild(step, measured):
            self._compare(step, measured)
            for row, size in measured.sizes.items():
                self._grow(step, row, size)
        for row, share in measured.dead.items():
            if share >= _DYING:
                self._begin(Alarm("dead", step, row, share))
        for row in sorted(measured.stale):
            self._begin(Alarm("stale", step, row))

    def _begin(self, alarm: Alarm) -> None:
        if (alarm.kind, alarm.row) not in self._begun:
            self._begun.add((alarm.kind, alarm.row))
            self.alarms.append(alarm)

    def _wild(self, step: int, measured: Measured) -> bool:
        """Whether something is not finite: the first time, in the first output, or else in the first gradient on the
        way back; from there it is everywhere soon. An infinity that harms no gradient was meant, as in a mask."""
        order = [*measured.order, *(row for row in measured.sizes if row not in measured.order)]
        back = [(row, measured.sizes[row]) for row in reversed(order) if row in measured.sizes]
        gradients = [(row, size, None) for row, size in back if not math.isfinite(size)]
        wild = [(row, measured.wild[row], row) for row in order if row in measured.wild]
        outputs = [one for one in wild if gradients or math.isnan(one[1])]
        if not (outputs or gradients):
            return False
        if not any(alarm.kind in ("nan", "inf") for alarm in self.alarms):
            row, size, near = (outputs or gradients)[0]
            self._begin(Alarm("nan" if math.isnan(size) else "inf", step, row, size, near=near))
        return True

    def _compare(self, step: int, measured: Measured) -> None:
        """Compare the layers with that nearest the loss which has a gradient."""
        called = [row for row in measured.order if measured.sizes.get(row)]
        if not called:
            return
        near = called[-1]
        other = measured.sizes[near]
        for row in measured.order:
            size = measured.sizes.get(row, other)
            if size * _APART < other:
                self._begin(Alarm("vanishing", step, row, size, other, near))
            elif size > other * _APART:
                self._begin(Alarm("exploding", step, row, size, other, near))

    def _grow(self, step: int, row: int, size: float) -> None:
        """Compare a layer with itself before; zeros say nothing of how large it mostly is."""
        if not size:
            return
        count, mostly = self._mostly.get(row, (0, math.log(size)))
        if count >= _KNOWN and math.log(size) > mostly + math.log(_GROWN):
            self._begin(Alarm("grown", step, row, size, math.exp(mostly)))
        self._mostly[row] = count + 1, _KEEP * mostly + (1 - _KEEP) * math.log(size)
