"""Gradient flow: the gradient size of each layer at the measured steps of training, and its alarms.

There are at most `MOST` columns: when all are used, adjacent columns are merged into one with the larger sizes. So
adding a step takes constant time, and no peak is lost.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

__all__ = ["MOST", "Alarm", "Column", "Flow", "Measured"]

MOST = 200  # columns
_APART = 1e3  # tolerated ratio to the gradient near the loss: a layer hardly learns beyond it
_GROWN = 1e3  # tolerated ratio of a gradient to its running average
_KNOWN = 5  # measured steps before the running average is used
_KEEP = 0.9  # decay of the running average
_DYING = 0.5  # fraction of dead units that raises an alarm

Kind = Literal["nan", "inf", "vanishing", "exploding", "grown", "dead", "stale"]


class Alarm(NamedTuple):
    """A problem that appeared in a layer, `row`, for the first time at `step`.

    `size` is that of the gradient, or the fraction of dead units. `other` is the reference: the size in layer `near`,
    or the layer's own earlier size if that is None. For NaN and Inf, `near` is None if it is in the gradient.
    """

    kind: Kind
    step: int
    row: int
    size: float = math.nan
    other: float = math.nan
    near: int | None = None


class Measured(NamedTuple):
    """The measurements of a step, by layer: the root mean square of its gradient, a NaN or infinity in its output, the
    fraction of dead units, and the layers whose old gradient was accumulated into.

    `order` lists the layers in call order.
    """

    sizes: Mapping[int, float]
    order: Sequence[int] = ()
    wild: Mapping[int, float] = {}
    dead: Mapping[int, float] = {}
    stale: Collection[int] = ()


@dataclass(slots=True)
class Column:
    """The measured steps of one column: first and last, their count, and the largest size by layer."""

    first: int
    last: int
    count: int
    sizes: dict[int, float]

    def join(self, later: Column) -> Column:
        """Merge two adjacent columns."""
        sizes = {row: _larger(self.sizes.get(row), later.sizes.get(row)) for row in self.sizes | later.sizes}
        return Column(self.first, later.last, self.count + later.count, sizes)


def _larger(one: float | None, other: float | None) -> float:
    """Return the larger of two sizes, one of which may be missing; NaN is the largest."""
    there = [x for x in (one, other) if x is not None]
    return next((x for x in there if math.isnan(x)), max(there))


@dataclass
class Flow:
    """The columns, and the alarms in the order in which they were raised.

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
    """Measured steps per column; the last one may have fewer."""
    _mostly: dict[int, tuple[int, float]] = field(default_factory=dict)
    _begun: set[tuple[str, int]] = field(default_factory=set)

    def add(self, step: int, measured: Measured) -> None:
        """Add the measurements of a step."""
        if measured.sizes:
            self._append(Column(step, step, 1, dict(measured.sizes)))
        self._look(step, measured)

    def column_of(self, step: int) -> int:
        """Return the index of the column of a measured step."""
        return max(0, bisect_right(self.columns, step, key=lambda column: column.first) - 1)

    def rows(self) -> list[int]:
        """Return the layers that have sizes or alarms, in order."""
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
        """Raise an alarm for the first non-finite output, or else the first non-finite gradient of the backward pass,
        and return whether there was any. An infinity that leaves all gradients finite is ignored, as in a mask.
        """
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
        """Compare the layers with the layer nearest to the loss that has a gradient."""
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
        """Compare a layer with its own running average, which skips zeros."""
        if not size:
            return
        count, mostly = self._mostly.get(row, (0, math.log(size)))
        if count >= _KNOWN and math.log(size) > mostly + math.log(_GROWN):
            self._begin(Alarm("grown", step, row, size, math.exp(mostly)))
        self._mostly[row] = count + 1, _KEEP * mostly + (1 - _KEEP) * math.log(size)
