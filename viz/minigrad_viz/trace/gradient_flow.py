"""Gradient flow: the root mean square of each layer's gradient at the measured steps of training, and its alarms.

There are at most `MAX_COLUMNS` columns. When all are used, pairs of adjacent columns are merged, keeping the larger
sizes. Adding a step therefore takes constant time, and no peak is lost.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from minigrad.core.deprecation import deprecated_names

__all__ = ["MAX_COLUMNS", "Alarm", "Column", "Flow", "StepMeasurement"]

__getattr__ = deprecated_names(__name__, {"Measured": "StepMeasurement"})

MAX_COLUMNS = 200
# Largest accepted ratio, in either direction, between a layer's gradient size and the size near the loss.
MAX_RATIO = 1e3
MAX_GROWTH = 1e3  # largest accepted ratio of a gradient's size to its running average
WARMUP_STEPS = 5  # number of measured steps before the running average is used
AVERAGE_DECAY = 0.9  # decay of the running average
MAX_DEAD_FRACTION = 0.5  # fraction of dead units that raises an alarm

Kind = Literal["nan", "inf", "vanishing", "exploding", "grown", "dead", "stale"]


class Alarm(NamedTuple):
    """A problem that was detected in layer `row` for the first time at `step`.

    `size` is the size of the gradient, or the fraction of dead units. It is compared with `reference_size`: the size in
    layer `reference_row`, or the layer's own earlier size if `reference_row` is None. For NaN and infinity,
    `reference_row` is None if the gradient contains the value.
    """

    kind: Kind
    step: int
    row: int
    size: float = math.nan
    reference_size: float = math.nan
    reference_row: int | None = None


class StepMeasurement(NamedTuple):
    """The measurements of a step by layer: the root mean square of the gradient, a NaN or infinity in the output, the
    fraction of dead units, and the layers whose gradient was accumulated into an old one. Also contains the layers in
    call order.
    """

    sizes: Mapping[int, float]
    order: Sequence[int] = ()
    non_finite: Mapping[int, float] = {}
    dead: Mapping[int, float] = {}
    stale: Collection[int] = ()


@dataclass(slots=True)
class Column:
    """A column of measured steps: the first and the last step, the number of steps, and the largest size by layer."""

    first: int
    last: int
    count: int
    sizes: dict[int, float]

    def merge(self, later: Column) -> Column:
        """Merge two adjacent columns."""
        sizes = {row: _larger(self.sizes.get(row), later.sizes.get(row)) for row in self.sizes | later.sizes}
        return Column(self.first, later.last, self.count + later.count, sizes)


def _larger(first: float | None, second: float | None) -> float:
    """Return the larger of two sizes, one of which may be missing; NaN is the largest."""
    sizes = [x for x in (first, second) if x is not None]
    return next((x for x in sizes if math.isnan(x)), max(sizes))


@dataclass
class Flow:
    """The columns of a training run, and the alarms in the order in which they were raised.

    >>> flow = Flow()
    >>> for step in range(1, 4):
    ...     flow.add(step, StepMeasurement({0: 1e-5, 1: 0.1}, order=[0, 1]))
    >>> [(column.first, column.sizes[1]) for column in flow.columns]
    [(1, 0.1), (2, 0.1), (3, 0.1)]
    >>> [(alarm.kind, alarm.step, alarm.row, alarm.reference_row) for alarm in flow.alarms]
    [('vanishing', 1, 0, 1)]
    """

    columns: list[Column] = field(default_factory=list)
    alarms: list[Alarm] = field(default_factory=list)
    every: int = 1
    """Measured steps per column; the last one may have fewer."""
    _averages: dict[int, tuple[int, float]] = field(default_factory=dict)
    _raised: set[tuple[str, int]] = field(default_factory=set)

    def add(self, step: int, measured: StepMeasurement) -> None:
        """Add the measurements of a step."""
        if measured.sizes:
            self._append_column(Column(step, step, 1, dict(measured.sizes)))
        self._check(step, measured)

    def column_of(self, step: int) -> int:
        """Return the index of the column of a measured step."""
        return max(0, bisect_right(self.columns, step, key=lambda column: column.first) - 1)

    def rows(self) -> list[int]:
        """Return the layers that have sizes or alarms, in order."""
        return sorted({row for column in self.columns for row in column.sizes} | {alarm.row for alarm in self.alarms})

    def _append_column(self, column: Column) -> None:
        if self.columns and self.columns[-1].count < self.every:
            self.columns[-1] = self.columns[-1].merge(column)
            return
        if len(self.columns) == MAX_COLUMNS:
            pairs = zip(self.columns[::2], self.columns[1::2], strict=True)
            self.columns = [left.merge(right) for left, right in pairs]
            self.every *= 2
        self.columns.append(column)

    # --- alarms ---

    def _check(self, step: int, measured: StepMeasurement) -> None:
        if not self._check_finite(step, measured):
            self._check_ratio(step, measured)
            for row, size in measured.sizes.items():
                self._check_growth(step, row, size)
        for row, fraction in measured.dead.items():
            if fraction >= MAX_DEAD_FRACTION:
                self._raise_once(Alarm("dead", step, row, fraction))
        for row in sorted(measured.stale):
            self._raise_once(Alarm("stale", step, row))

    def _raise_once(self, alarm: Alarm) -> None:
        if (alarm.kind, alarm.row) not in self._raised:
            self._raised.add((alarm.kind, alarm.row))
            self.alarms.append(alarm)

    def _check_finite(self, step: int, measured: StepMeasurement) -> bool:
        """Raise an alarm for the first non-finite output, or else for the first non-finite gradient of the backward
        pass. Return whether there was any. Infinite outputs are ignored if all gradients are finite, as with a mask.
        """
        all_rows = [*measured.order, *(row for row in measured.sizes if row not in measured.order)]
        gradients_in_order = [(row, measured.sizes[row]) for row in reversed(all_rows) if row in measured.sizes]
        bad_gradients = [(row, size, None) for row, size in gradients_in_order if not math.isfinite(size)]
        bad_outputs = [(row, measured.non_finite[row], row) for row in all_rows if row in measured.non_finite]
        outputs = [entry for entry in bad_outputs if bad_gradients or math.isnan(entry[1])]
        if not (outputs or bad_gradients):
            return False
        if not any(alarm.kind in ("nan", "inf") for alarm in self.alarms):
            row, size, near = (outputs or bad_gradients)[0]
            self._raise_once(Alarm("nan" if math.isnan(size) else "inf", step, row, size, reference_row=near))
        return True

    def _check_ratio(self, step: int, measured: StepMeasurement) -> None:
        """Compare the gradient size of each layer with that of the layer nearest to the loss that has a gradient."""
        rows_with_gradient = [row for row in measured.order if measured.sizes.get(row)]
        if not rows_with_gradient:
            return
        reference_row = rows_with_gradient[-1]
        reference_size = measured.sizes[reference_row]
        for row in measured.order:
            size = measured.sizes.get(row, reference_size)
            if size * MAX_RATIO < reference_size:
                self._raise_once(Alarm("vanishing", step, row, size, reference_size, reference_row))
            elif size > reference_size * MAX_RATIO:
                self._raise_once(Alarm("exploding", step, row, size, reference_size, reference_row))

    def _check_growth(self, step: int, row: int, size: float) -> None:
        """Compare the gradient size of a layer with its running average, which excludes zeros."""
        if not size:
            return
        count, average = self._averages.get(row, (0, math.log(size)))
        if count >= WARMUP_STEPS and math.log(size) > average + math.log(MAX_GROWTH):
            self._raise_once(Alarm("grown", step, row, size, math.exp(average)))
        self._averages[row] = count + 1, AVERAGE_DECAY * average + (1 - AVERAGE_DECAY) * math.log(size)
