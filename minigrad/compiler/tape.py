"""Tape: a graph of Values flattened to arrays, with one kernel for the forward pass and one for the backward pass.

A graph can be inspected, whereas a tape is fast: it avoids allocations and Python dispatch, so a node takes
nanoseconds. The kernels are generated from the formula and the rules in the declaration of each operation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

import minigrad.backends.arrays  # noqa: F401 -- registers the devices
from minigrad.compiler.tape_arguments import (
    Leaves,
    check_array,
    check_float,
    check_outputs,
    check_samples,
    check_tape_device,
)
from minigrad.compiler.tape_program import FlatGraph, TapeProgram
from minigrad.core.dispatch import dispatch
from minigrad.core.errors import ArgumentError, DeviceError, DTypeError, GraphError, ShapeError, describe_type
from minigrad.core.graph import Node
from minigrad.core.storage import get_allocator
from minigrad.core.value import Value

__all__ = ["Tape"]

MAX_PRINTED_ROWS = 24  # maximum number of rows in a printed tape


class _Batch(NamedTuple):
    """Most recent computation over many samples."""

    program: TapeProgram
    columns: Any
    """Values of the leaves that differ between samples, an array of shape (leaves, samples) on the device."""


class Tape:
    """A compiled graph of Values with its own copy of their data: a training loop takes nanoseconds per node.

    `outputs` is the Value to compute, or a sequence of Values. `parameters` are the leaves that `step` updates, such as
    ``model.parameters()``; by default all leaves that require a gradient. A tape copies the current graph and does not
    modify it until `write`. Control flow of the Python code that built the graph, such as an ``if`` or a ``max`` of
    Python scalars, is fixed. Results equal those of the graph up to rounding, in float64. `device` is "cpu", where
    Taichi compiles the program, or "numpy", which computes runs of nodes as arrays; by default it is the available
    device.

    Operations, including custom ones, are computed from their formulas and rules. Raises DeviceError for an operation
    without a usable formula or rule, DTypeError for outputs that are not Values, and ArgumentError for a parameter that
    is not a leaf of the graph.

    >>> import minigrad as mg
    >>> w, x = mg.Value(3.0, "w"), mg.Value(2.0, "x")
    >>> tape = mg.Tape((w * x - 5.0) ** 2, parameters=[w])
    >>> tape.forward({"x": 4.0})
    49.0
    >>> tape.backward()
    >>> tape.gradients[w]
    56.0
    >>> for _ in range(3):              # a training loop: the graph is not rebuilt
    ...     tape.backward()
    ...     tape.step(0.03125)
    >>> tape.forward()
    0.0
    >>> tape.write()                    # copy the values to the graph
    >>> w.data
    1.25

    Printing it shows a table of its rows:

    >>> print(mg.Tape(w * x + 1.0, device="numpy"))
    Tape(2 leaves, 1 constant, 2 operations in 2 runs, on numpy)
    row  name    op        reads  value  grad
      0  w       leaf              1.25
      1  x       leaf                 4
      2          constant             1
      3          mul       0 1        5
      4  output  add       3 2        6
    """

    def __init__(
        self, outputs: Value | Sequence[Value], parameters: Iterable[Value] | None = None, device: str | None = None
    ) -> None:
        self._outputs = check_outputs(outputs)
        self._has_single_output = isinstance(outputs, Value)
        self.device = check_tape_device(device)
        self._flat_graph = flat = FlatGraph(self._outputs)
        self._program = flat.program()
        self._program.check(self.device)
        self.inputs = Leaves(flat.leaves)
        row_values: list[Any] = [*flat.leaves, *flat.constants, *self._program.nodes]
        self._rows: dict[Value, int] = {x: k for k, x in enumerate(row_values) if x.__class__ is not float}
        self._fixed_row_count = len(flat.fixed_rows)  # number of rows of leaves and constants
        self._value, self._grad = self._allocate(len(row_values)), self._allocate(len(row_values))
        self._host_values = self._value.view(np.ndarray)
        self._host_values[:] = [float(x) for x in row_values]
        self._writes = Node.writes
        self._batch: _Batch | None = None  # the last computation, if it was over many samples
        self._batch_programs: dict[tuple[int, ...], TapeProgram] = {}
        self._leaf_gradients: Any = None  # the gradients of all leaves
        self._is_current = self._has_run = (
            False  # whether results are up to date with the leaves; whether any were computed
        )
        self._has_gradients = False  # whether `_grad` is from the last backward pass
        if parameters is None:
            self.parameters = tuple([leaf for leaf in flat.leaves if leaf._requires_grad])
        else:
            self.parameters = tuple([leaf for leaf in parameters if self._leaf_row(leaf, "parameters") >= 0])
        parameter_rows = [self._rows[leaf] for leaf in self.parameters if leaf in flat.reached_by_gradient]
        self._parameter_rows = np.array(parameter_rows, dtype=np.int64)

    # --- running ---

    def forward(self, values: Mapping[Any, float] | Iterable[float] | None = None) -> Any:
        """Compute the outputs: a float, or a list of floats if the tape has several outputs.

        `values` are new values for leaves: a mapping from Values or labels, or a sequence with one for each of
        `inputs`. The tape stores them. Raises ShapeError for another length, ArgumentError for an unknown label,
        DTypeError for a value that is not a real number, and GraphError if a leaf of the graph was modified since the
        tape copied it. After an error the tape is unchanged.
        """
        rows = self._values_by_row(values)
        self._check_copy(rows)
        self._writes = Node.writes
        for row, value in rows.items():
            self._host_values[row] = value
        self._run()
        results = self._host_values[[self._rows[x] for x in self._outputs]].tolist()
        return results[0] if self._has_single_output else results

    def batch(self, samples: Any, inputs: Sequence[Any] | None = None) -> Any:
        """Compute the outputs for many samples: an array (samples,), or (samples, outputs) if the tape has several.

        `samples` is a mapping from leaves or labels to arrays (samples,), or an array (samples, columns) with a column
        for each of `inputs`, which are leaves or labels; by default all leaves that are not `parameters`, in order.
        Other leaves keep their values. A later `backward` sums gradients over the samples. Raises like `forward`.

        >>> import minigrad as mg
        >>> w, x = mg.Value(3.0, "w"), mg.Value(2.0, "x")
        >>> tape = mg.Tape(w * x, parameters=[w])
        >>> tape.batch([[1.0], [2.0], [5.0]])
        array([ 3.,  6., 15.])
        >>> tape.backward()
        >>> tape.gradients
        {Value(3.0, label='w'): 8.0, Value(2.0, label='x'): 9.0}
        """
        columns = self._columns_by_row(samples, inputs)
        self._check_copy(columns)
        fed = tuple(sorted(columns))
        if fed not in self._batch_programs:
            self._batch_programs[fed] = self._flat_graph.program(fed)
        program = self._batch_programs[fed]
        table = np.array([columns[row] for row in fed])
        columns_on_device = get_allocator(self.device).copy(table)
        outputs = self._allocate(len(self._outputs), table.shape[1])
        dispatch("tape_batch", self.device, (self._value, columns_on_device), {"program": program}, outputs)
        result = outputs.view(np.ndarray)
        for k, x in enumerate(self._outputs):
            if x._op is None:
                result[k] = columns.get(self._rows[x], self._host_values[self._rows[x]])
        self._batch = _Batch(program, columns_on_device)
        return result[0].copy() if self._has_single_output else result.T.copy()

    def backward(self, gradient: Any = None) -> None:
        """Compute `gradients`: the derivatives of ``gradient * output``, summed over the samples after `batch`.

        `gradient` defaults to 1; a tape of several outputs needs one for each. After `batch` it may be an array with
        the shape of its result. Unlike `backward` of a Value, a second call does not accumulate. It differentiates the
        last computation, which is repeated if `step` or `read` has changed values since. Raises GraphError if no output
        requires a gradient, ShapeError for a gradient of another shape.
        """
        if not any(x in self._flat_graph.reached_by_gradient for x in self._outputs):
            raise GraphError(
                "backward: the outputs of this tape do not require grad: they were computed with detach(), inside "
                "no_grad(), or only from such Values.\n  Compute them from Values that require grad."
            )
        seeds = self._seeds(gradient)
        if self._batch is not None:
            self._leaf_gradients, self._has_gradients = self._sum_gradients(self._batch, seeds), False
            return
        if not self._is_current:
            self._run()
        grad = self._grad.view(np.ndarray)
        grad.fill(0.0)
        for x, seed in zip(self._outputs, seeds[:, 0].tolist(), strict=True):
            if x in self._flat_graph.reached_by_gradient:
                grad[self._rows[x]] += seed
        dispatch("tape_backward", self.device, (self._value,), {"program": self._program}, self._grad)
        self._leaf_gradients, self._has_gradients = grad[: len(self.inputs)].copy(), True

    def _sum_gradients(self, batch: _Batch, seeds: Any) -> Any:
        """Return the gradients of all leaves, summed over the samples."""
        sums = self._allocate(self._fixed_row_count)
        operands = (self._value, batch.columns, get_allocator(self.device).copy(np.ascontiguousarray(seeds)))
        dispatch("tape_batch_backward", self.device, operands, {"program": batch.program}, sums)
        gradients = sums.view(np.ndarray)[: len(self.inputs)].copy()
        for x, seed in zip(self._outputs, seeds, strict=True):
            if x._op is None:
                gradients[self._rows[x]] += seed.sum()
        return gradients

    @property
    def gradients(self) -> dict[Value, float]:
        """The gradients computed by the last `backward`, for leaves that require a gradient and that the outputs depend
        on."""
        if self._leaf_gradients is None:
            raise GraphError("gradients: no gradients have been computed.\n  Call tape.backward() first.")
        pairs = zip(self.inputs, self._leaf_gradients.tolist(), strict=True)
        return {leaf: total for leaf, total in pairs if leaf in self._flat_graph.reached_by_gradient}

    def step(self, lr: float) -> None:
        """Subtract `lr` times its gradient from each of `parameters` in the tape: a gradient descent step.

        Raises GraphError before the first `backward`.
        """
        if self._leaf_gradients is None:
            raise GraphError("step: no gradients have been computed.\n  Call tape.backward() first.")
        attrs = {"rows": self._parameter_rows, "lr": float(lr)}
        dispatch("tape_step", self.device, (self._leaf_gradients[self._parameter_rows],), attrs, self._value)
        self._is_current = False

    # --- the graph ---

    def read(self) -> None:
        """Copy the values of the graph's leaves to the tape again, after they were changed in the graph."""
        self._host_values[: len(self.inputs)] = [leaf._data for leaf in self.inputs]
        self._writes, self._is_current = Node.writes, False

    def write(self) -> None:
        """Copy the tape's values to the graph: the data of the leaves, updated by `step`, and their gradients.

        The data and gradients of other nodes are copied too, unless the last computation was a `batch`, which has one
        value per sample. In that case these nodes keep their data and are marked as stale.
        """
        before = Node.writes
        for leaf, value in zip(self.inputs, self._host_values.tolist(), strict=False):
            leaf.data = value
        for leaf, gradient in self.gradients.items() if self._leaf_gradients is not None else ():
            leaf.grad = gradient
        if self._has_run and self._batch is None:
            write_count = Node.writes if self._is_current else before
            values, grads = (x.view(np.ndarray)[self._fixed_row_count :].tolist() for x in (self._value, self._grad))
            for node, value, gradient in zip(self._program.nodes, values, grads, strict=True):
                node._data, node._write_count = value, write_count
                if self._has_gradients:
                    node.grad = gradient if node in self._flat_graph.reached_by_gradient else None
        self._writes = Node.writes

    # --- printing ---

    def __len__(self) -> int:
        return len(self._host_values)

    def __repr__(self) -> str:
        leaves, constants = _pluralize(len(self.inputs), "leaf", "leaves"), self._fixed_row_count - len(self.inputs)
        nodes, runs = _pluralize(len(self._program.nodes), "operation"), _pluralize(len(self._program.runs), "run")
        return f"Tape({leaves}, {_pluralize(constants, 'constant')}, {nodes} in {runs}, on {self.device})"

    def __str__(self) -> str:
        """Return a table of the rows (index, name, operation, operand rows, value, gradient), truncated if long."""
        printed_rows = list(range(len(self)))
        if len(printed_rows) > MAX_PRINTED_ROWS:
            printed_rows[MAX_PRINTED_ROWS // 2 : -MAX_PRINTED_ROWS // 2] = [-1]
        table = [["row", "name", "op", "reads", "value", "grad"]]
        named = {row: x for x, row in self._rows.items()}
        table += [["…"] * 6 if row < 0 else self._format_row(row, named.get(row)) for row in printed_rows]
        widths = [max(len(line[k]) for line in table) for k in range(6)]
        sides = [str.rjust, str.ljust, str.ljust, str.ljust, str.rjust, str.rjust]
        lines = [
            "  ".join(side(x, width) for side, x, width in zip(sides, line, widths, strict=True)) for line in table
        ]
        return "\n".join([repr(self), *[line.rstrip() for line in lines]])

    @property
    def source(self) -> str:
        """The source of the forward and backward kernels that Taichi compiles for ``cpu``, for a single sample."""
        if self.device != "cpu":
            raise DeviceError(f"source: {self.device} has no kernel source; it runs the operations' rules on arrays.")
        kernel_source = import_module("minigrad.backends.taichi.kernels.tape").generate_source
        return "\n\n".join(kernel_source(name, self._program.snippets) for name in ("tape_forward", "tape_backward"))

    # --- helpers ---

    def _allocate(self, *shape: int) -> Any:
        return get_allocator(self.device).full(shape, np.dtype(np.float64), 0.0)

    def _run(self) -> None:
        fixed_values = self._value[: self._fixed_row_count]
        dispatch("tape_forward", self.device, (fixed_values,), {"program": self._program}, self._value)
        self._batch, self._is_current, self._has_run = None, True, True

    def _leaf_row(self, key: Any, caller: str) -> int:
        """Return the row of a leaf, given as a Value or a label."""
        leaf = self.inputs[key] if isinstance(key, str) else key
        if not isinstance(leaf, Value):
            raise DTypeError(f"{caller}: expected a leaf as a Value or a label, but got {key!r}, {describe_type(key)}.")
        row = self._rows.get(leaf)
        if row is None:
            raise ArgumentError(f"{caller}: {leaf!r} is not on this tape: the outputs were not computed from it.")
        if leaf._op is not None:
            raise GraphError(
                f"{caller}: {leaf!r} was computed by {leaf._op.name}, and only the values of leaves can be set."
            )
        return row

    def _values_by_row(self, values: Mapping[Any, float] | Iterable[float] | None) -> dict[int, float]:
        """Validate the new values of leaves and return them by row."""
        if values is None:
            return {}
        if isinstance(values, Mapping):
            return {self._leaf_row(key, "forward"): check_float(x) for key, x in values.items()}
        if not isinstance(values, Iterable):
            raise DTypeError(f"forward: expected a mapping or a sequence with one value per leaf, but got {values!r}.")
        floats = [check_float(x) for x in values]
        if len(floats) != len(self.inputs):
            raise ShapeError(
                f"forward: got {len(floats)} values for {len(self.inputs)} leaves (tape.inputs).\n"
                "  Pass one for each, or a mapping with those that change: tape.forward({leaf: value})."
            )
        return dict(enumerate(floats))

    def _columns_by_row(self, samples: Any, inputs: Sequence[Any] | None) -> dict[int, Any]:
        """Validate the samples and return a column of values for each leaf, by row."""
        if isinstance(samples, Mapping):
            columns = {self._leaf_row(key, "batch"): check_samples(x, 1) for key, x in samples.items()}
            counts = sorted({len(x) for x in columns.values()})
            if len(counts) != 1:
                raise ShapeError(
                    f"batch: expected columns of equal length, one value per sample, but got {counts or 'none'}."
                )
        else:
            parameters = set(self.parameters)
            fed_leaves = [leaf for leaf in self.inputs if leaf not in parameters] if inputs is None else inputs
            rows, table = [self._leaf_row(key, "batch") for key in fed_leaves], check_samples(samples, 2)
            if table.shape[1] != len(rows) or not rows:
                names = ", ".join([str(self.inputs[row].label) for row in rows[:MAX_PRINTED_ROWS]])
                raise ShapeError(
                    f"batch: samples of shape {table.shape} have {table.shape[1]} columns for {len(rows)} leaves"
                    f"{f' ({names})' if rows else ': all are parameters'}.\n  Name them: tape.batch(X, inputs=[…])."
                )
            columns = dict(zip(rows, table.T, strict=True))
        if not len(next(iter(columns.values()))):
            raise ShapeError("batch: expected at least one sample, but got none.")
        return columns

    def _seeds(self, gradient: Any) -> Any:
        """Return the gradient of each output, for each sample."""
        if gradient is None and self._has_single_output:
            gradient = 1.0
        elif gradient is None:
            raise GraphError(
                f"backward: this tape has {len(self._outputs)} outputs; pass a gradient for each: tape.backward([…])."
            )
        seeds = check_array(gradient, "backward")
        count = 1 if self._batch is None else self._batch.columns.shape[1]
        samples = [] if self._batch is None else [count]
        shape = tuple(samples if self._has_single_output else [*samples, len(self._outputs)])
        if seeds.shape not in ((), shape, shape[-1:]):
            raise ShapeError(f"backward: gradient has shape {seeds.shape}, but the outputs have shape {shape}.")
        return np.broadcast_to(seeds, shape).reshape(count, len(self._outputs)).T

    def _check_copy(self, changed_rows: Mapping[int, Any]) -> None:
        """Raise GraphError if a leaf of the graph, other than those set now, was modified since it was copied."""
        if Node.writes == self._writes:
            return
        for row, (leaf, value) in enumerate(zip(self.inputs, self._host_values.tolist(), strict=False)):
            if row not in changed_rows and leaf._get_extra("written", 0) > self._writes and leaf._data != value:
                raise GraphError(
                    f"Tape: {leaf!r} was modified after the tape copied the graph; the tape still has {value!r}.\n"
                    f"  Copy the graph's values with tape.read(), or pass one: tape.forward({{leaf: …}})."
                )

    def _format_row(self, row: int, x: Value | None) -> list[str]:
        """Return the cells of a row of the printed table."""
        value, grad = f"{self._host_values[row]:.6g}", ""
        if x in self._flat_graph.reached_by_gradient and (
            self._has_gradients or (row < self._fixed_row_count and self._leaf_gradients is not None)
        ):
            grad = f"{self._grad.view(np.ndarray)[row] if self._has_gradients else self._leaf_gradients[row]:.6g}"
        name = "" if x is None else x.label or ("output" if any(x is output for output in self._outputs) else "")
        if row < self._fixed_row_count:
            return [str(row), name, "constant" if x is None else "leaf", "", value, grad]
        kind_index, first, _, offset = self._program.runs[
            np.searchsorted(self._program.runs[:, 1], row, "right") - 1
        ].tolist()
        kind = self._program.kinds[kind_index]
        offset += (row - first) * kind.width
        reads = " ".join(map(str, self._program.operands[offset : offset + kind.width]))
        return [str(row), name, kind.op.name, reads, value, grad]


def _pluralize(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"
