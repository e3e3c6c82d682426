"""Tape: a graph of Values flattened to rows, with one kernel for the forward pass and one for the backward pass.

A graph can be inspected, whereas a tape is fast: it avoids allocations and Python dispatch, so a node takes
nanoseconds. The kernels are generated from the formula and the rules in the declaration of each operation. Without
NumPy, the rows are Python floats.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

from minigrad.compiler.tape_arguments import (
    Leaves,
    check_float,
    check_outputs,
    check_samples_shape,
    check_tape_device,
    shape_of,
)
from minigrad.compiler.tape_floats import FloatRows
from minigrad.compiler.tape_program import FlatGraph
from minigrad.core.dispatch import PYTHON
from minigrad.core.errors import ArgumentError, DeviceError, DTypeError, GraphError, ShapeError, describe_type
from minigrad.core.graph import leaf_writes
from minigrad.core.value import Value

__all__ = ["Tape"]

MAX_PRINTED_ROWS = 24  # maximum number of rows in a printed tape


class Tape:
    """A compiled graph of Values with its own copy of their data: a training loop takes nanoseconds per node.

    `outputs` is the Value to compute, or a sequence of Values. `parameters` are the leaves that `step` updates, such as
    ``model.parameters()``; by default all leaves that require a gradient. A tape copies the current graph and does not
    modify it until `write`. Control flow of the Python code that built the graph, such as an ``if`` or a ``max`` of
    Python scalars, is fixed. Results equal those of the graph up to rounding, in float64.

    `device` is "cpu", where Taichi compiles the program, "numpy", which computes runs of nodes as arrays, or "python",
    which computes node by node, needs no other package, and equals the graph bit for bit. By default it is the first
    of these that is available.

    Operations, including custom ones, are computed from their formulas and rules, on "python" by their kernels and
    rules. Raises DeviceError for an operation without a usable formula or rule, DTypeError for outputs that are not
    Values, and ArgumentError for a parameter that is not a leaf of the graph.

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
        self._storage = _make_rows(flat, self.device)
        self.inputs = Leaves(flat.leaves)
        row_values: list[Any] = [*flat.leaves, *flat.constants, *self._storage.nodes]
        self._rows: dict[Value, int] = {x: k for k, x in enumerate(row_values) if x.__class__ is not float}
        self._fixed_row_count = len(flat.fixed_rows)  # number of rows of leaves and constants
        self._writes = leaf_writes.count
        self._sample_count: int | None = None  # of the last computation, if it was over many samples
        self._is_current = self._has_run = False  # are results up to date with the leaves; were any computed?
        # Are there gradients of leaves; are those of all rows from the last backward pass?
        self._has_leaf_gradients = self._has_gradients = False
        if parameters is None:
            self.parameters = tuple([leaf for leaf in flat.leaves if leaf._requires_grad])
        else:
            self.parameters = tuple([leaf for leaf in parameters if self._leaf_row(leaf, "parameters") >= 0])
        parameter_rows = [self._rows[leaf] for leaf in self.parameters if leaf in flat.reached_by_gradient]
        self._parameter_rows = self._storage.index(parameter_rows)

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
        self._writes = leaf_writes.count
        self._storage.set_values(rows)
        self._run()
        results = self._storage.outputs()
        return results[0] if self._has_single_output else results

    def batch(self, samples: Any, inputs: Sequence[Any] | None = None) -> Any:
        """Compute the outputs for many samples: an array (samples,), or (samples, outputs) if the tape has several.

        `samples` is a mapping from leaves or labels to arrays (samples,), or an array (samples, columns) with a column
        for each of `inputs`, which are leaves or labels; by default all leaves that are not `parameters`, in order.
        Other leaves keep their values. A later `backward` sums gradients over the samples. The device "python" needs no
        NumPy, and the result is a list there, with a list for each sample if the tape has several outputs. Raises like
        `forward`.

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
        outputs = self._storage.batch(columns, self._has_single_output)
        self._sample_count = len(next(iter(columns.values())))
        return outputs

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
        if self._sample_count is not None:
            self._storage.batch_backward(seeds)
        else:
            if not self._is_current:
                self._run()
            self._storage.backward(seeds)
        self._has_leaf_gradients, self._has_gradients = True, self._sample_count is None

    @property
    def gradients(self) -> dict[Value, float]:
        """The gradients computed by the last `backward`, for leaves that require a gradient and that the outputs depend
        on."""
        if not self._has_leaf_gradients:
            raise GraphError("gradients: no gradients have been computed.\n  Call tape.backward() first.")
        pairs = zip(self.inputs, self._storage.leaf_gradients(), strict=True)
        return {leaf: total for leaf, total in pairs if leaf in self._flat_graph.reached_by_gradient}

    def step(self, lr: float) -> None:
        """Subtract `lr` times its gradient from each of `parameters` in the tape: a gradient descent step.

        Raises GraphError before the first `backward`.
        """
        if not self._has_leaf_gradients:
            raise GraphError("step: no gradients have been computed.\n  Call tape.backward() first.")
        self._storage.step(self._parameter_rows, float(lr))
        self._is_current = False

    # --- the graph ---

    def read(self) -> None:
        """Copy the values of the graph's leaves to the tape again, after they were changed in the graph."""
        self._storage.set_values({row: leaf._data for row, leaf in enumerate(self.inputs)})
        self._writes, self._is_current = leaf_writes.count, False

    def write(self) -> None:
        """Copy the tape's values to the graph: the data of the leaves, updated by `step`, and their gradients.

        The data and gradients of other nodes are copied too, unless the last computation was a `batch`, which has one
        value per sample. In that case these nodes keep their data and are marked as stale.
        """
        before = leaf_writes.count
        for leaf, value in zip(self.inputs, self._storage.values(), strict=False):
            leaf.data = value
        for leaf, gradient in self.gradients.items() if self._has_leaf_gradients else ():
            leaf.grad = gradient
        if self._has_run and self._sample_count is None:
            write_count = leaf_writes.count if self._is_current else before
            values, grads = (x[self._fixed_row_count :] for x in (self._storage.values(), self._storage.gradients()))
            for node, value, gradient in zip(self._storage.nodes, values, grads, strict=True):
                node._data, node._write_count = value, write_count
                if self._has_gradients:
                    node.grad = gradient if node in self._flat_graph.reached_by_gradient else None
        self._writes = leaf_writes.count

    # --- printing ---

    def __len__(self) -> int:
        return self._fixed_row_count + len(self._storage.nodes)

    def __repr__(self) -> str:
        leaves, constants = _pluralize(len(self.inputs), "leaf", "leaves"), self._fixed_row_count - len(self.inputs)
        nodes, count = _pluralize(len(self._storage.nodes), "operation"), self._storage.run_count
        runs = "" if count is None else f" in {_pluralize(count, 'run')}"
        return f"Tape({leaves}, {_pluralize(constants, 'constant')}, {nodes}{runs}, on {self.device})"

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
            raise DeviceError(f"source: {self.device} has no kernel source; it runs the operations' rules.")
        kernel_source = import_module("minigrad.backends.taichi.kernels.tape").generate_source
        snippets = self._storage.program.snippets
        return "\n\n".join(kernel_source(name, snippets) for name in ("tape_forward", "tape_backward"))

    # --- helpers ---

    def _run(self) -> None:
        self._storage.forward()
        self._sample_count, self._is_current, self._has_run = None, True, True

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
            columns = {self._leaf_row(key, "batch"): self._storage.convert(x, "batch") for key, x in samples.items()}
            counts = sorted({check_samples_shape(x, 1)[0] for x in columns.values()})
            if len(counts) != 1:
                raise ShapeError(
                    f"batch: expected columns of equal length, one value per sample, but got {counts or 'none'}."
                )
            count = counts[0]
        else:
            parameters = set(self.parameters)
            fed_leaves = [leaf for leaf in self.inputs if leaf not in parameters] if inputs is None else inputs
            rows, table = [self._leaf_row(key, "batch") for key in fed_leaves], self._storage.convert(samples, "batch")
            count, width = check_samples_shape(table, 2)
            if width != len(rows) or not rows:
                names = ", ".join([str(self.inputs[row].label) for row in rows[:MAX_PRINTED_ROWS]])
                raise ShapeError(
                    f"batch: samples of shape {(count, width)} have {width} columns for {len(rows)} leaves"
                    f"{f' ({names})' if rows else ': all are parameters'}.\n  Name them: tape.batch(X, inputs=[…])."
                )
            columns = dict(zip(rows, self._storage.columns(table), strict=True)) if count else {}
        if not count:
            raise ShapeError("batch: expected at least one sample, but got none.")
        return columns

    def _seeds(self, gradient: Any) -> Any:
        """Return the gradients of the outputs, (samples, outputs)."""
        if gradient is None and self._has_single_output:
            gradient = 1.0
        elif gradient is None:
            raise GraphError(
                f"backward: this tape has {len(self._outputs)} outputs; pass a gradient for each: tape.backward([…])."
            )
        seeds = self._storage.convert(gradient, "backward")
        samples = () if self._sample_count is None else (self._sample_count,)
        shape = samples if self._has_single_output else (*samples, len(self._outputs))
        if shape_of(seeds) not in ((), shape, shape[-1:]):
            raise ShapeError(f"backward: gradient has shape {shape_of(seeds)}, but the outputs have shape {shape}.")
        return self._storage.broadcast(seeds, shape, len(self._outputs))

    def _check_copy(self, changed_rows: Mapping[int, Any]) -> None:
        """Raise GraphError if a leaf of the graph, other than those set now, was modified since it was copied."""
        if leaf_writes.count == self._writes:
            return
        for row, (leaf, value) in enumerate(zip(self.inputs, self._storage.values(), strict=False)):
            if row not in changed_rows and leaf._get_extra("written", 0) > self._writes and leaf._data != value:
                raise GraphError(
                    f"Tape: {leaf!r} was modified after the tape copied the graph; the tape still has {value!r}.\n"
                    f"  Copy the graph's values with tape.read(), or pass one: tape.forward({{leaf: …}})."
                )

    def _format_row(self, row: int, x: Value | None) -> list[str]:
        """Return the cells of a row of the printed table."""
        value, grad = f"{self._storage.values()[row]:.6g}", ""
        is_leaf = row < self._fixed_row_count
        if x in self._flat_graph.reached_by_gradient and (
            self._has_gradients or (is_leaf and self._has_leaf_gradients)
        ):
            grad = f"{(self._storage.leaf_gradients() if is_leaf else self._storage.gradients())[row]:.6g}"
        name = "" if x is None else x.label or ("output" if any(x is output for output in self._outputs) else "")
        if is_leaf:
            return [str(row), name, "constant" if x is None else "leaf", "", value, grad]
        op, reads = self._storage.instruction(row)
        return [str(row), name, op, " ".join(map(str, reads)), value, grad]


def _make_rows(flat: FlatGraph, device: str) -> Any:
    if device == PYTHON:
        return FloatRows(flat)
    from minigrad.compiler.tape_arrays import ArrayRows  # imports NumPy

    return ArrayRows(flat, device)


def _pluralize(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"
