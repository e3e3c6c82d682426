"""A graph of Values flattened to arrays: the rows that each node reads, and runs of nodes of the same kind.

Each row stores a scalar. The leaves come first, then the constants, then the operations, each after its operands. For a
batch, a row stores a scalar for each sample, unless all samples share it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from functools import cached_property
from numbers import Real
from typing import Any, NamedTuple

from minigrad.backends.formula import snippets
from minigrad.backends.formula.codegen import Unwritable, check_scalar_op
from minigrad.core.errors import DeviceError
from minigrad.core.graph import topological
from minigrad.core.op import Op
from minigrad.core.value import Value

__all__ = ["FlatGraph", "NodeKind", "TapeProgram"]


class NodeKind(NamedTuple):
    """Kind of a node: its operation, its `fixed` attributes, and `needs_grad`, which states for each operand whether
    its gradient is computed.

    The other attributes are scalars in rows, like operands. `shared` states for each row whether all samples share it;
    it is empty for a single sample.
    """

    op: Op
    fixed: tuple[tuple[str, Any], ...]
    needs_grad: tuple[bool, ...]
    shared: tuple[bool, ...] = ()

    @property
    def operand_count(self) -> int:
        return len(self.op.inputs)

    @property
    def row_attrs(self) -> list[str]:
        """Names of the attributes that are stored in rows."""
        return [name for name in self.op.attrs if name not in dict(self.fixed)]

    @property
    def width(self) -> int:
        """The number of rows that a node of this kind reads."""
        return self.operand_count + len(self.row_attrs)

    def attributes_of(self, rows: Sequence[Any]) -> dict[str, Any]:
        """Return the attributes of a node that reads `rows`."""
        return {**dict(self.fixed), **dict(zip(self.row_attrs, rows[self.operand_count :], strict=True))}


class TapeProgram:
    """Input of the tape kernels. `runs` lists the runs of nodes of one kind, as (kind, first row, count, offset in
    `operands`).

    `operands` are the rows that the nodes read, concatenated, `nodes` the computed Values in the order of their rows,
    and `outputs` the rows of the outputs. For a batch, `fed` are the leaves that differ between samples: their rows
    come first, followed by those of the nodes. Shared rows are read from the single-sample program, and the row of an
    output that is a leaf is given as -1.
    """

    def __init__(
        self,
        kinds: Sequence[NodeKind],
        runs: Sequence[Sequence[int]],
        operands: Sequence[int],
        nodes: Sequence[Value],
        outputs: Sequence[int],
        fed: Sequence[int],
    ) -> None:
        import numpy as np  # not at import, since a tape on ``python`` has no program

        self.kinds, self.nodes = tuple(kinds), tuple(nodes)
        self.runs = np.array(runs, dtype=np.int32).reshape(-1, 4)
        # An extra element is appended, since Taichi has no empty arrays.
        self.operands, self.outputs, self.fed = (np.array([*x, -1], np.int32) for x in (operands, outputs, fed))
        self.rows = len(fed) + len(nodes)
        """The number of rows per sample of a batch."""
        self.backend_cache: dict[str, Any] = {}
        """Data that a backend caches for this program."""

    @cached_property
    def snippets(self) -> tuple[tuple[str, int, str, tuple[str | None, ...], tuple[bool, ...]], ...]:
        """For each kind: the operation's name, the number of rows it reads, the source of its value and of each wanted
        gradient, and which rows are shared."""
        return tuple([(kind.op.name, kind.width, _value(kind), _rules(kind), kind.shared) for kind in self.kinds])

    def check(self, device: str) -> None:
        """Raise DeviceError for an operation without usable source; ``numpy`` needs only its rules."""
        for kind in self.kinds:
            _rules(kind)
            if device == "cpu":
                _value(kind)


def _value(kind: NodeKind) -> str:
    try:
        return snippets.forward_code(kind.op, dict(kind.fixed))
    except Unwritable as error:
        raise _unsupported(
            kind.op, f'{error}\n  NumPy can compute it by its own kernel: mg.Tape(…, device="numpy").'
        ) from None


def _rules(kind: NodeKind) -> tuple[str | None, ...]:
    try:
        sources = snippets.gradient_codes(kind.op, dict(kind.fixed))
    except Unwritable as error:
        raise _unsupported(kind.op, f"{error}\n  Differentiate the graph itself: y.backward().") from None
    return tuple([rule if needs_grad else None for rule, needs_grad in zip(sources, kind.needs_grad, strict=True)])


def _unsupported(op: Op, reason: str) -> DeviceError:
    return DeviceError(f"Tape: {op.name} is not supported on a tape. {reason}")


# --- from the graph to arrays ----------------------------------------------------------------------------------------


class FlatGraph:
    """Flattened graph of the given outputs. Its `leaves` and `constants` are stored in the first rows.

    `nodes` are the operations in the order of the graph, `kinds` their kinds, and `reads` the operands and attributes
    of each, with constants as hexadecimal strings. `reached_by_gradient` are the Values that receive a gradient from
    the outputs. Raises DeviceError for an operation that is not defined on scalars.
    """

    def __init__(self, outputs: Sequence[Value]) -> None:
        order: list[Any] = topological(outputs)
        self.outputs = outputs
        self.leaves = [x for x in order if x._op is None]
        self.nodes = [x for x in order if x._op is not None]
        for op in {node._op: None for node in self.nodes}:
            _check_scalar_op(op)
        self.reached_by_gradient = _find_reached(outputs, order)
        self.kinds: list[NodeKind] = []
        self.reads: list[list[Any]] = []
        constants: dict[str, float] = {}
        for node in self.nodes:
            kind, attrs = _kind_of(node, self.reached_by_gradient)
            self.kinds.append(kind)
            constants_of_node = {x.hex(): x for x in (*node._inputs, *attrs) if x.__class__ is float}
            constants.update(constants_of_node)
            self.reads.append([x.hex() if x.__class__ is float else x for x in (*node._inputs, *attrs)])
        self.constants = list(constants.values())
        self.fixed_rows: dict[Any, int] = {x: k for k, x in enumerate([*self.leaves, *constants])}
        """The rows of leaves, and of constants by their hexadecimal strings."""
        position = {node: k for k, node in enumerate(self.nodes)}
        self._dependencies = [[position[x] for x in read if x in position] for read in self.reads]

    def program(self, fed: Sequence[int] = ()) -> TapeProgram:
        """Return the program for one sample, or for a batch if leaves are `fed`."""
        kinds, rows = self.kinds, dict(self.fixed_rows)
        if fed:
            shared = {x for x, row in rows.items() if row not in fed}
            kinds = [
                kind._replace(shared=tuple([x in shared for x in read]))
                for kind, read in zip(kinds, self.reads, strict=True)
            ]
            rows.update({self.leaves[row]: k for k, row in enumerate(fed)})
        # Sorted, so that graphs with the same kinds share a kernel.
        ordered = sorted(set(kinds), key=lambda kind: (kind.op.name, kind.needs_grad, kind.shared, str(kind.fixed)))
        kind_index = {kind: k for k, kind in enumerate(ordered)}
        runs: list[tuple[int, int, int, int]] = []
        operands: list[int] = []
        scheduled: list[Value] = []
        first = len(fed) or len(rows)
        for kind, run in _schedule_runs([kind_index[kind_of_node] for kind_of_node in kinds], self._dependencies):
            runs.append((kind, first + len(scheduled), len(run), len(operands)))
            for k in run:
                rows[self.nodes[k]] = first + len(scheduled)
                scheduled.append(self.nodes[k])
                operands += [rows[x] for x in self.reads[k]]
        outputs = [-1 if fed and x._op is None else rows[x] for x in self.outputs]
        return TapeProgram(ordered, runs, operands, scheduled, outputs, fed)


def _check_scalar_op(op: Op) -> None:
    try:
        check_scalar_op(op)
    except Unwritable as error:
        raise _unsupported(op, f"{error}\n  Differentiate the graph itself: y.backward().") from None


def _find_reached(outputs: Sequence[Value], order: Sequence[Any]) -> set[Value]:
    reached = {x for x in outputs if x._requires_grad}
    for node in reversed(order):
        if node in reached and node._op is not None:
            for x, rule in zip(node._inputs, node._op.rules, strict=False):
                if x.__class__ is not float and rule is not None and x._requires_grad:
                    reached.add(x)
    return reached


def _kind_of(node: Any, reached: set[Value]) -> tuple[NodeKind, list[float]]:
    """Return the kind of a node, and those of its attributes that are stored in rows."""
    op: Op = node._op
    attrs: list[float] = []
    fixed: list[tuple[str, Any]] = []
    for name in op.attrs:
        x = node._get_extra("static")[name]
        if isinstance(x, Real) and not isinstance(x, bool):
            attrs.append(float(x))
        elif isinstance(x, bool | str | None):
            fixed.append((name, x))
        else:
            raise _unsupported(op, f"Its attribute {name}={x!r} is not a number.")
    has_gradient = node in reached
    needs_grad = [
        has_gradient and x.__class__ is not float and rule is not None and x.requires_grad
        for x, rule in zip(node._inputs, op.rules, strict=True)
    ]
    return NodeKind(op, tuple(fixed), tuple(needs_grad)), attrs


def _schedule_runs(kinds: Sequence[int], reads: Sequence[Sequence[int]]) -> Iterator[tuple[int, list[int]]]:
    """Yield runs of nodes of one kind. Each run contains all ready nodes of the most frequent kind, and those of this
    kind that become ready during the run.

    Ready nodes are processed first in, first out, so that neighbours in a run rarely depend on each other.
    """
    users: list[list[int]] = [[] for _ in kinds]
    pending = [len(read) for read in reads]
    ready: dict[int, deque[int]] = {}
    for k, read in enumerate(reads):
        for operand in read:
            users[operand].append(k)
        if not read:
            ready.setdefault(kinds[k], deque()).append(k)
    while ready:
        kind = max(ready, key=lambda one: len(ready[one]))
        queue, run = ready[kind], []
        while queue:
            k = queue.popleft()
            run.append(k)
            for user in users[k]:
                pending[user] -= 1
                if not pending[user]:
                    ready.setdefault(kinds[user], deque()).append(user)
        del ready[kind]
        yield kind, run
