"""The rows of a tape as Python floats: the kernels and gradient rules that Values use, in the order of the graph.

It needs neither NumPy nor Taichi, and its results equal those of the graph bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple

from minigrad.compiler.tape_arguments import conversion_error, shape_of
from minigrad.compiler.tape_program import FlatGraph
from minigrad.core.dispatch import PYTHON, dispatch, get_kernels, is_tapped
from minigrad.core.op import Op
from minigrad.core.value import Value

__all__ = ["FloatRows"]


class _Instruction(NamedTuple):
    """How the value in a row is computed."""

    row: int
    op: Op
    kernels: Mapping[str, Callable[..., float]]
    """The kernels of the operation by device, in which a later registration appears."""
    operands: Sequence[int]
    attrs: Mapping[str, Any]
    rules: Sequence[tuple[int, Callable[..., float]]]
    """The row and the gradient rule of each operand that receives a gradient."""
    static: Mapping[str, Any]
    """The keyword arguments of the rules: attributes and shapes."""


class FloatRows:
    """The values and gradients of a tape's rows, in the order of the graph. `ArrayRows` stores them in arrays."""

    run_count = None  # operations are computed one by one

    def __init__(self, flat: FlatGraph) -> None:
        self.nodes: Sequence[Value] = flat.nodes
        rows = {x: k for k, x in enumerate([*flat.fixed_rows, *flat.nodes])}
        self._reads = [[rows[x] for x in read] for read in flat.reads]
        self._output_rows = [rows[x] for x in flat.outputs]
        self._leaf_count, self._fixed_count = len(flat.leaves), len(flat.fixed_rows)
        self._instructions = []
        for node, kind, reads in zip(flat.nodes, flat.kinds, self._reads, strict=True):
            static = node._get_extra("static", {})
            attrs = {name: static[name] for name in kind.op.attrs}
            operands = reads[: kind.operand_count]
            triples = zip(operands, kind.op.rules, kind.needs_grad, strict=True)
            rules = [(operand, rule) for operand, rule, needs_grad in triples if rule is not None and needs_grad]
            kernels = get_kernels(kind.op.name)
            self._instructions.append(_Instruction(rows[node], kind.op, kernels, operands, attrs, rules, static))
        self._values = [float(x) for x in (*flat.leaves, *flat.constants, *flat.nodes)]
        self._gradients: list[float | None] = [None] * len(self._values)  # of the last single sample
        self._leaf_gradients: list[float] = []
        self._samples: list[dict[int, float]] = []  # of the last batch: the values of the leaves that differ, by row

    def values(self) -> list[float]:
        """Return the values of all rows."""
        return list(self._values)

    def outputs(self) -> list[float]:
        """Return the values of the outputs."""
        return [self._values[row] for row in self._output_rows]

    def set_values(self, values: Mapping[int, float]) -> None:
        """Set the values of rows."""
        for row, x in values.items():
            self._values[row] = x

    def gradients(self) -> list[float]:
        """Return the gradients of all rows from the last `backward`."""
        return [0.0 if x is None else x for x in self._gradients]

    def leaf_gradients(self) -> list[float]:
        """Return the gradients of the leaves from the last `backward` or `batch_backward`."""
        return self._leaf_gradients

    def instruction(self, row: int) -> tuple[str, list[int]]:
        """Return the operation that computes a row, and the rows that it reads."""
        k = row - self._fixed_count
        return self._instructions[k].op.name, self._reads[k]

    # --- computing ---

    def forward(self) -> None:
        """Compute all operations from the values of the leaves."""
        self._forward(self._values)

    def backward(self, seeds: Sequence[Sequence[float]]) -> None:
        """Compute all gradients. `seeds` are those of the outputs, (1, outputs)."""
        self._gradients = self._backward(self._values, seeds[0])
        self._leaf_gradients = self.gradients()[: self._leaf_count]

    def batch(self, columns: Mapping[int, Sequence[float]], is_single: bool) -> list[Any]:
        """Compute the outputs for many samples, as a list (samples, outputs), or (samples,) if `is_single`.

        `columns` are the values of the leaves that differ between samples, by row.
        """
        self._samples = [dict(zip(columns, sample, strict=True)) for sample in zip(*columns.values(), strict=True)]
        outputs = [[values[row] for row in self._output_rows] for values in self._compute_samples()]
        return [values[0] for values in outputs] if is_single else outputs

    def batch_backward(self, seeds: Sequence[Sequence[float]]) -> None:
        """Compute the gradients of the leaves, summed over the samples of the last batch.

        `seeds` are those of the outputs, (samples, outputs).
        """
        totals = [0.0] * self._leaf_count
        for values, seed in zip(self._compute_samples(), seeds, strict=True):
            gradients = self._backward(values, seed)[: self._leaf_count]
            totals = [total + (x or 0.0) for total, x in zip(totals, gradients, strict=True)]
        self._leaf_gradients = totals

    def step(self, rows: Sequence[int], lr: float) -> None:
        """Subtract `lr` times its gradient from each leaf in `rows`."""
        for row in rows:
            self._values[row] -= lr * self._leaf_gradients[row]

    def _compute_samples(self) -> Iterator[list[float]]:
        """Yield the values of all rows for each sample of the last batch."""
        for sample in self._samples:
            values = [sample.get(row, x) for row, x in enumerate(self._values)]
            self._forward(values)
            yield values

    def _forward(self, values: list[float]) -> None:
        tapped = is_tapped()
        for row, op, kernels, operands, attrs, _, _ in self._instructions:
            raw = [values[k] for k in operands]
            values[row] = dispatch(op.name, PYTHON, tuple(raw), attrs) if tapped else kernels[PYTHON](*raw, **attrs)

    def _backward(self, values: Sequence[float], seeds: Sequence[float]) -> list[float | None]:
        """Return the gradient of each row, or None if none arrives, since adding -0.0 to 0.0 would lose its sign."""
        totals: list[float | None] = [None] * len(values)
        for row, seed in zip(self._output_rows, seeds, strict=True):
            totals[row] = seed if (total := totals[row]) is None else total + seed
        for row, _, _, operands, _, rules, static in reversed(self._instructions):
            if rules and (upstream := totals[row]) is not None:
                y, raw = values[row], [values[k] for k in operands]
                for operand, rule in rules:
                    gradient = rule(upstream, y, *raw, **static)
                    totals[operand] = gradient if (total := totals[operand]) is None else total + gradient
        return totals

    # --- arguments ---

    @staticmethod
    def index(rows: Sequence[int]) -> Sequence[int]:
        """Return an index of rows for `step`."""
        return rows

    @staticmethod
    def convert(x: Any, caller: str) -> Any:
        """Return `x`, a number or nested sequences of numbers, as a float or nested lists. Raises DTypeError."""
        try:
            nested = _nested_floats(x)
            shape_of(nested)
        except (TypeError, ValueError):
            raise conversion_error(x, caller) from None
        return nested

    @staticmethod
    def columns(table: Sequence[Sequence[float]]) -> list[Sequence[float]]:
        """Return the columns of a table."""
        return [list(column) for column in zip(*table, strict=True)]

    @staticmethod
    def broadcast(gradient: Any, shape: tuple[int, ...], output_count: int) -> list[list[float]]:
        """Broadcast gradients to `shape`, and return them as a list (samples, outputs)."""
        for size in reversed(shape[: len(shape) - len(shape_of(gradient))]):
            gradient = [gradient] * size
        flat = [gradient]
        for _ in shape:
            flat = [x for part in flat for x in part]
        return [flat[k : k + output_count] for k in range(0, len(flat), output_count)]


def _nested_floats(x: Any) -> Any:
    if isinstance(x, Value | str):
        raise TypeError
    return float(x) if isinstance(x, Real) else [_nested_floats(item) for item in x]
