"""Tape: a graph of Values flattened to arrays, which one kernel runs forward and another backward.

A graph is for looking, a tape for running: nothing is made and nothing is asked while it runs, so a node takes
nanoseconds. What is computed at a node is said by the declaration of its operation, its formula and its rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

import minigrad.backends.arrays  # noqa: F401 -- makes the devices
from minigrad.compiler.tape_arguments import Leaves, array_of, device_of, number_of, outputs_of, samples_of
from minigrad.compiler.tape_program import Flat, TapeProgram
from minigrad.core.dispatch import dispatch
from minigrad.core.errors import ArgumentError, DeviceError, DTypeError, GraphError, ShapeError, a_kind
from minigrad.core.graph import Node
from minigrad.core.storage import memory
from minigrad.core.value import Value

__all__ = ["Tape"]

SHOWN = 24  # rows that a printed tape has at most


class _Batch(NamedTuple):
    """What was computed for many samples."""

    program: TapeProgram
    columns: Any
    """The numbers of the fed leaves, (leaves, samples), on the device."""


class Tape:
    """A graph of Values as a program, with numbers of its own: a loop over it takes nanoseconds a node.

    `outputs` is the Value to compute, or several. `parameters` are the leaves that `step` may change, as
    ``model.parameters()``; all that require a gradient, if None. A tape is a copy: it takes the graph as it is now, and
    changes nothing there until `write`. What Python chose while the graph was built, by an ``if`` or a ``max`` of plain
    numbers, stays so. Results are those of the graph, up to rounding, in float64. `device` is "cpu", where Taichi
    compiles the program, or "numpy", where arrays are computed run by run; None for the one there is.

    Operations, those too that a reader declares, are computed by their formulas and rules. Raises DeviceError for one
    of which they cannot be computed, DTypeError for what is no Value, ArgumentError for a parameter that is no leaf of
    the graph.

    >>> import minigrad as mg
    >>> w, x = mg.Value(3.0, "w"), mg.Value(2.0, "x")
    >>> tape = mg.Tape((w * x - 5.0) ** 2, parameters=[w])
    >>> tape.forward({"x": 4.0})
    49.0
    >>> tape.backward()
    >>> tape.gradients[w]
    56.0
    >>> for _ in range(3):              # a training: the graph is not built again
    ...     tape.backward()
    ...     tape.step(0.03125)
    >>> tape.forward()
    0.0
    >>> tape.write()                    # now the graph has the numbers
    >>> w.data
    1.25

    Printed, it is a table of its rows:

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
        self._outputs = outputs_of(outputs)
        self._single = isinstance(outputs, Value)
        self.device = device_of(device)
        self._flat = flat = Flat(self._outputs)
        self._program = flat.program()
        self._program.check(self.device)
        self.inputs = Leaves(flat.leaves)
        every: list[Any] = [*flat.leaves, *flat.constants, *self._program.nodes]
        self._rows: dict[Value, int] = {x: k for k, x in enumerate(every) if x.__class__ is not float}
        self._known = len(flat.known)  # rows that are not computed
        self._value, self._grad = self._room(len(every)), self._room(len(every))
        self._numbers = self._value.view(np.ndarray)
        self._numbers[:] = [float(x) for x in every]
        self._writes = Node.writes
        self._batch: _Batch | None = None  # what was computed last, if that was many samples
        self._batched: dict[tuple[int, ...], TapeProgram] = {}
        self._sums: Any = None  # the gradients of all leaves
        self._computed = self._ran = False  # whether what was computed is of the leaves' numbers; whether any was
        self._graded = False  # whether `_grad` is of the last backward
        if parameters is None:
            self.parameters = tuple([leaf for leaf in flat.leaves if leaf._requires_grad])
        else:
            self.parameters = tuple([leaf for leaf in parameters if self._leaf(leaf, "parameters") >= 0])
        trained = [self._rows[leaf] for leaf in self.parameters if leaf in flat.reached]
        self._trained = np.array(trained, dtype=np.int64)

    # --- running ---

    def forward(self, values: Mapping[Any, float] | Iterable[float] | None = None) -> Any:
        """Compute the outputs: a float, or a list of them if the tape has several.

        `values` are new numbers for leaves: a mapping by Value or by label, for some; or a sequence, one for each of
        `inputs`. The tape keeps them. Raises ShapeError for another count, ArgumentError for an unknown label,
        DTypeError for what is no number, and GraphError if a leaf of the graph was given another number since the tape
        was made, which is a copy. Then nothing has changed.
        """
        rows = self._given(values)
        self._check_copy(rows)
        self._writes = Node.writes
        for row, number in rows.items():
            self._numbers[row] = number
        self._run()
        found = self._numbers[[self._rows[x] for x in self._outputs]].tolist()
        return found[0] if self._single else found

    def batch(self, samples: Any, inputs: Sequence[Any] | None = None) -> Any:
        """Compute the outputs for many samples: an array (samples,), or (samples, outputs) if the tape has several.

        `samples` is a mapping from leaves or labels to arrays (samples,), or an array (samples, columns), whose columns
        are for `inputs`, leaves or labels; for all leaves that are not `parameters`, in their order, if None. All other
        leaves have the numbers of the tape. `backward` then adds up gradients over the samples. Raises as `forward`.

        >>> import minigrad as mg
        >>> w, x = mg.Value(3.0, "w"), mg.Value(2.0, "x")
        >>> tape = mg.Tape(w * x, parameters=[w])
        >>> tape.batch([[1.0], [2.0], [5.0]])
        array([ 3.,  6., 15.])
        >>> tape.backward()
        >>> tape.gradients
        {Value(3.0, label='w'): 8.0, Value(2.0, label='x'): 9.0}
        """
        columns = self._columns(samples, inputs)
        self._check_copy(columns)
        fed = tuple(sorted(columns))
        if fed not in self._batched:
            self._batched[fed] = self._flat.program(fed)
        program = self._batched[fed]
        table = np.array([columns[row] for row in fed])
        numbers = memory(self.device).copied(table)
        found = self._room(len(self._outputs), table.shape[1])
        dispatch("tape_batch", self.device, (self._value, numbers), {"program": program}, found)
        result = found.view(np.ndarray)
        for k, x in enumerate(self._outputs):
            if x._op is None:
                result[k] = columns.get(self._rows[x], self._numbers[self._rows[x]])
        self._batch = _Batch(program, numbers)
        return result[0].copy() if self._single else result.T.copy()

    def backward(self, gradient: Any = None) -> None:
        """Compute `gradients`: the derivatives of ``gradient * output``, after a `batch` added up over the samples.

        `gradient` is 1 unless given; a tape of several outputs needs one for each. After `batch` it may differ between
        samples: an array in the shape of what that returned. Unlike that of a Value, a second call starts afresh. It is
        of what was computed last; if `step` or `read` changed numbers since, they are computed first. Raises GraphError
        if no output needs a gradient, ShapeError for a gradient of another shape.
        """
        if not any(x in self._flat.reached for x in self._outputs):
            raise GraphError(
                "backward: the outputs of this tape need no gradient: they were made by detach(), inside no_grad(), or "
                "only from such Values.\n  Build them from Values that require a gradient."
            )
        seeds = self._seeds(gradient)
        if self._batch is not None:
            self._sums, self._graded = self._summed(self._batch, seeds), False
            return
        if not self._computed:
            self._run()
        grad = self._grad.view(np.ndarray)
        grad.fill(0.0)
        for x, seed in zip(self._outputs, seeds[:, 0].tolist(), strict=True):
            if x in self._flat.reached:
                grad[self._rows[x]] += seed
        dispatch("tape_backward", self.device, (self._value,), {"program": self._program}, self._grad)
        self._sums, self._graded = grad[: len(self.inputs)].copy(), True

    def _summed(self, batch: _Batch, seeds: Any) -> Any:
        """The gradients of all leaves, added up over the samples."""
        sums = self._room(self._known)
        given = (self._value, batch.columns, memory(self.device).copied(np.ascontiguousarray(seeds)))
        dispatch("tape_batch_backward", self.device, given, {"program": batch.program}, sums)
        found = sums.view(np.ndarray)[: len(self.inputs)].copy()
        for x, seed in zip(self._outputs, seeds, strict=True):
            if x._op is None:
                found[self._rows[x]] += seed.sum()
        return found

    @property
    def gradients(self) -> dict[Value, float]:
        """The gradient of each leaf that the outputs depend on and that requires one, by the last `backward`."""
        if self._sums is None:
            raise GraphError("gradients: there are none yet.\n  Compute them first: tape.backward().")
        pairs = zip(self.inputs, self._sums.tolist(), strict=True)
        return {leaf: total for leaf, total in pairs if leaf in self._flat.reached}

    def step(self, lr: float) -> None:
        """Gradient descent: subtract `lr` times its gradient from each of `parameters`, in the tape.

        Raises GraphError before the first `backward`.
        """
        if self._sums is None:
            raise GraphError("step: there are no gradients yet.\n  Compute them first: tape.backward().")
        attrs = {"rows": self._trained, "lr": float(lr)}
        dispatch("tape_step", self.device, (self._sums[self._trained],), attrs, self._value)
        self._computed = False

    # --- the graph ---

    def read(self) -> None:
        """Take the numbers of the graph's leaves again, after some were changed there."""
        self._numbers[: len(self.inputs)] = [leaf._data for leaf in self.inputs]
        self._writes, self._computed = Node.writes, False

    def write(self) -> None:
        """Give the Values of the graph the tape's numbers: the leaves theirs, after `step` too, and their gradients.

        What was computed gets its number and gradient too, unless a `batch` was computed last: then there is one for
        each sample, and the graph keeps the old ones, which know that they are stale.
        """
        before = Node.writes
        for leaf, number in zip(self.inputs, self._numbers.tolist(), strict=False):
            leaf.data = number
        for leaf, total in self.gradients.items() if self._sums is not None else ():
            leaf.grad = total
        if self._ran and self._batch is None:
            made = Node.writes if self._computed else before
            values, grads = (x.view(np.ndarray)[self._known :].tolist() for x in (self._value, self._grad))
            for node, number, total in zip(self._program.nodes, values, grads, strict=True):
                node._data, node._made = number, made
                if self._graded:
                    node.grad = total if node in self._flat.reached else None
        self._writes = Node.writes

    # --- what a reader sees ---

    def __len__(self) -> int:
        return len(self._numbers)

    def __repr__(self) -> str:
        leaves, constants = _count(len(self.inputs), "leaf", "leaves"), self._known - len(self.inputs)
        nodes, runs = _count(len(self._program.nodes), "operation"), _count(len(self._program.runs), "run")
        return f"Tape({leaves}, {_count(constants, 'constant')}, {nodes} in {runs}, on {self.device})"

    def __str__(self) -> str:
        """A table of the rows: number, name, operation, rows that it reads, value, gradient. A long one is cut."""
        shown = list(range(len(self)))
        if len(shown) > SHOWN:
            shown[SHOWN // 2 : -SHOWN // 2] = [-1]
        table = [["row", "name", "op", "reads", "value", "grad"]]
        named = {row: x for x, row in self._rows.items()}
        table += [["…"] * 6 if row < 0 else self._shown(row, named.get(row)) for row in shown]
        widths = [max(len(line[k]) for line in table) for k in range(6)]
        sides = [str.rjust, str.ljust, str.ljust, str.ljust, str.rjust, str.rjust]
        lines = [
            "  ".join(side(x, width) for side, x, width in zip(sides, line, widths, strict=True)) for line in table
        ]
        return "\n".join([repr(self), *[line.rstrip() for line in lines]])

    @property
    def source(self) -> str:
        """The text of the kernels that Taichi compiles for ``cpu``, forward and backward, for one sample at a time."""
        if self.device != "cpu":
            raise DeviceError(f"source: on {self.device} there is no text, the operations' own rules run on arrays.")
        text = import_module("minigrad.backends.taichi.kernels.tape").text
        return "\n\n".join(text(name, self._program.snippets) for name in ("tape_forward", "tape_backward"))

    # --- what the above are made of ---

    def _room(self, *shape: int) -> Any:
        return memory(self.device).full(shape, np.dtype(np.float64), 0.0)

    def _run(self) -> None:
        known = self._value[: self._known]
        dispatch("tape_forward", self.device, (known,), {"program": self._program}, self._value)
        self._batch, self._computed, self._ran = None, True, True

    def _leaf(self, key: Any, asked: str) -> int:
        """The row of a leaf, given by itself or by its label."""
        leaf = self.inputs[key] if isinstance(key, str) else key
        if not isinstance(leaf, Value):
            raise DTypeError(f"{asked}: {key!r} is {a_kind(key)}; a leaf is named by its Value or its label.")
        row = self._rows.get(leaf)
        if row is None:
            raise ArgumentError(f"{asked}: {leaf!r} is not on this tape: the outputs were not computed from it.")
        if leaf._op is not None:
            raise GraphError(
                f"{asked}: {leaf!r} was computed by {leaf._op.name}, and only leaves have numbers to choose."
            )
        return row

    def _given(self, values: Mapping[Any, float] | Iterable[float] | None) -> dict[int, float]:
        """New numbers by row."""
        if values is None:
            return {}
        if isinstance(values, Mapping):
            return {self._leaf(key, "forward"): number_of(x) for key, x in values.items()}
        if not isinstance(values, Iterable):
            raise DTypeError(f"forward: {values!r} is neither a mapping nor a sequence of numbers, one for each leaf.")
        found = [number_of(x) for x in values]
        if len(found) != len(self.inputs):
            raise ShapeError(
                f"forward: {len(found)} numbers were given, and the tape has {len(self.inputs)} leaves (tape.inputs).\n"
                "  Give one for each, or a mapping with those that change: tape.forward({leaf: number})."
            )
        return dict(enumerate(found))

    def _columns(self, samples: Any, inputs: Sequence[Any] | None) -> dict[int, Any]:
        """The numbers of the samples by row of their leaf."""
        if isinstance(samples, Mapping):
            columns = {self._leaf(key, "batch"): samples_of(x, 1) for key, x in samples.items()}
            counts = sorted({len(x) for x in columns.values()})
            if len(counts) != 1:
                raise ShapeError(
                    f"batch: columns of {counts or 'no'} numbers were given; each has one for each sample."
                )
        else:
            trained = set(self.parameters)
            free = [leaf for leaf in self.inputs if leaf not in trained] if inputs is None else inputs
            rows, table = [self._leaf(key, "batch") for key in free], samples_of(samples, 2)
            if table.shape[1] != len(rows) or not rows:
                names = ", ".join([str(self.inputs[row].label) for row in rows[:SHOWN]])
                raise ShapeError(
                    f"batch: samples of shape {table.shape} have {table.shape[1]} columns, for {len(rows)} leaves"
                    f"{f' ({names})' if rows else ': all are parameters'}.\n  Name them: tape.batch(X, inputs=[…])."
                )
            columns = dict(zip(rows, table.T, strict=True))
        if not len(next(iter(columns.values()))):
            raise ShapeError("batch: there are no samples; give at least one.")
        return columns

    def _seeds(self, gradient: Any) -> Any:
        """The gradient of each output, for each sample."""
        if gradient is None and self._single:
            gradient = 1.0
        elif gradient is None:
            raise GraphError(
                f"backward: this tape has {len(self._outputs)} outputs, and each needs a gradient: tape.backward([…])."
            )
        found = array_of(gradient, "backward")
        count = 1 if self._batch is None else self._batch.columns.shape[1]
        samples = [] if self._batch is None else [count]
        shape = tuple(samples if self._single else [*samples, len(self._outputs)])
        if found.shape not in ((), shape, shape[-1:]):
            raise ShapeError(f"backward: gradient has shape {found.shape}; what was computed has shape {shape}.")
        return np.broadcast_to(found, shape).reshape(count, len(self._outputs)).T

    def _check_copy(self, given: Mapping[int, Any]) -> None:
        """Raise if a leaf of the graph, none of those that are given now, was changed since."""
        if Node.writes == self._writes:
            return
        for row, (leaf, number) in enumerate(zip(self.inputs, self._numbers.tolist(), strict=False)):
            if row not in given and leaf._note("written", 0) > self._writes and leaf._data != number:
                raise GraphError(
                    f"Tape: {leaf!r} was given that number after the tape was made, which is a copy and still has "
                    f"{number!r}.\n  Take the graph's numbers, tape.read(), or choose one: tape.forward({{leaf: …}})."
                )

    def _shown(self, row: int, x: Value | None) -> list[str]:
        """A row as texts."""
        value, grad = f"{self._numbers[row]:.6g}", ""
        if x in self._flat.reached and (self._graded or (row < self._known and self._sums is not None)):
            grad = f"{self._grad.view(np.ndarray)[row] if self._graded else self._sums[row]:.6g}"
        name = "" if x is None else x.label or ("output" if any(x is one for one in self._outputs) else "")
        if row < self._known:
            return [str(row), name, "constant" if x is None else "leaf", "", value, grad]
        number, first, _, at = self._program.runs[np.searchsorted(self._program.runs[:, 1], row, "right") - 1].tolist()
        kind = self._program.kinds[number]
        at += (row - first) * kind.width
        reads = " ".join(map(str, self._program.operands[at : at + kind.width]))
        return [str(row), name, kind.op.name, reads, value, grad]


def _count(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"
