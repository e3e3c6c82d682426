"""The rows of a tape as arrays on ``cpu`` or ``numpy``, whose kernels compute runs of operations of one kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from minigrad.compiler.tape_arguments import conversion_error
from minigrad.compiler.tape_program import FlatGraph, TapeProgram
from minigrad.core.dispatch import dispatch
from minigrad.core.storage import get_allocator

__all__ = ["ArrayRows"]


class ArrayRows:
    """The values and gradients of a tape's rows, sorted into runs. `FloatRows` stores them in lists."""

    def __init__(self, flat: FlatGraph, device: str) -> None:
        self._flat, self._device = flat, device
        self.program = flat.program()
        self.program.check(device)
        self.nodes, self.run_count = self.program.nodes, len(self.program.runs)
        self._leaf_count, self._fixed_count = len(flat.leaves), len(flat.fixed_rows)  # leaves; leaves and constants
        row_values = [*flat.leaves, *flat.constants, *self.nodes]
        self._value, self._grad = self._allocate(len(row_values)), self._allocate(len(row_values))
        self._host_values = self._value.view(np.ndarray)
        self._host_values[:] = [float(x) for x in row_values]
        self._output_rows = self.program.outputs[:-1]
        self._leaf_gradients: Any = None
        self._columns: Any = None  # of the last batch, an array (leaves, samples) on the device
        self._batch_programs: dict[tuple[int, ...], TapeProgram] = {}

    def values(self) -> list[float]:
        """Return the values of all rows."""
        values: list[float] = self._host_values.tolist()
        return values

    def outputs(self) -> list[float]:
        """Return the values of the outputs."""
        outputs: list[float] = self._host_values[self._output_rows].tolist()
        return outputs

    def set_values(self, values: Mapping[int, float]) -> None:
        """Set the values of rows."""
        for row, x in values.items():
            self._host_values[row] = x

    def gradients(self) -> list[float]:
        """Return the gradients of all rows from the last `backward`."""
        gradients: list[float] = self._grad.view(np.ndarray).tolist()
        return gradients

    def leaf_gradients(self) -> list[float]:
        """Return the gradients of the leaves from the last `backward` or `batch_backward`."""
        gradients: list[float] = self._leaf_gradients.tolist()
        return gradients

    def instruction(self, row: int) -> tuple[str, list[int]]:
        """Return the operation that computes a row, and the rows that it reads."""
        runs = self.program.runs
        kind_index, first, _, offset = runs[np.searchsorted(runs[:, 1], row, "right") - 1].tolist()
        kind = self.program.kinds[kind_index]
        offset += (row - first) * kind.width
        return kind.op.name, self.program.operands[offset : offset + kind.width].tolist()

    # --- computing ---

    def forward(self) -> None:
        """Compute all operations from the values of the leaves."""
        fixed_values = self._value[: self._fixed_count]
        dispatch("tape_forward", self._device, (fixed_values,), {"program": self.program}, self._value)

    def backward(self, seeds: Any) -> None:
        """Compute all gradients. `seeds` are those of the outputs, (1, outputs)."""
        grad = self._grad.view(np.ndarray)
        grad.fill(0.0)
        for row, x, seed in zip(self.program.outputs.tolist(), self._flat.outputs, seeds[0].tolist(), strict=False):
            if x in self._flat.reached_by_gradient:
                grad[row] += seed
        dispatch("tape_backward", self._device, (self._value,), {"program": self.program}, self._grad)
        self._leaf_gradients = grad[: self._leaf_count].copy()

    def batch(self, columns: Mapping[int, Any], is_single: bool) -> Any:
        """Compute the outputs for many samples, as an array (samples, outputs), or (samples,) if `is_single`.

        `columns` are the values of the leaves that differ between samples, by row.
        """
        fed = tuple(sorted(columns))
        table = np.array([columns[row] for row in fed])
        self._columns = get_allocator(self._device).copy(table)
        outputs = self._allocate(len(self._flat.outputs), table.shape[1])
        program = self._program_for(fed)
        dispatch("tape_batch", self._device, (self._value, self._columns), {"program": program}, outputs)
        self._batch_program = program
        result = outputs.view(np.ndarray)
        for k, x in enumerate(self._flat.outputs):
            if x._op is None:
                row = self._flat.fixed_rows[x]
                result[k] = columns.get(row, self._host_values[row])
        return result[0].copy() if is_single else result.T.copy()

    def batch_backward(self, seeds: Any) -> None:
        """Compute the gradients of the leaves, summed over the samples of the last batch.

        `seeds` are those of the outputs, (samples, outputs).
        """
        sums = self._allocate(self._fixed_count)
        operands = (self._value, self._columns, get_allocator(self._device).copy(np.ascontiguousarray(seeds.T)))
        dispatch("tape_batch_backward", self._device, operands, {"program": self._batch_program}, sums)
        self._leaf_gradients = sums.view(np.ndarray)[: self._leaf_count].copy()
        for x, seed in zip(self._flat.outputs, seeds.T, strict=True):
            if x._op is None:
                self._leaf_gradients[self._flat.fixed_rows[x]] += seed.sum()

    def step(self, rows: Any, lr: float) -> None:
        """Subtract `lr` times its gradient from each leaf in `rows`."""
        dispatch("tape_step", self._device, (self._leaf_gradients[rows],), {"rows": rows, "lr": lr}, self._value)

    def _allocate(self, *shape: int) -> Any:
        return get_allocator(self._device).full(shape, np.dtype(np.float64), 0.0)

    def _program_for(self, fed: tuple[int, ...]) -> TapeProgram:
        if fed not in self._batch_programs:
            self._batch_programs[fed] = self._flat.program(fed)
        return self._batch_programs[fed]

    # --- arguments ---

    @staticmethod
    def index(rows: Sequence[int]) -> Any:
        """Return an index of rows for `step`."""
        return np.array(rows, dtype=np.int64)

    @staticmethod
    def convert(x: Any, caller: str) -> Any:
        """Return `x` as an array of float64. Raises DTypeError if it cannot be converted."""
        try:
            return np.asarray(x, dtype=np.float64)
        except (TypeError, ValueError):
            raise conversion_error(x, caller) from None

    @staticmethod
    def columns(table: Any) -> Any:
        """Return the columns of a table."""
        return table.T

    @staticmethod
    def broadcast(gradient: Any, shape: tuple[int, ...], output_count: int) -> Any:
        """Broadcast gradients to `shape`, and return them as an array (samples, outputs)."""
        return np.broadcast_to(gradient, shape).reshape(-1, output_count)
