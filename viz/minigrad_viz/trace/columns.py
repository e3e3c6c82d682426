"""The columns of a trace: the plain data from which every picture of a graph is drawn.

    nodes    in tape order, operands first; a constant is a separate node for each use
    edges    one per operand of each operation, so a*a has two, with the local derivative
    passes   the events of a backward pass from each output, in order: the chain rule step by step
    blocks   the tree of collapsible parts, such as scopes; block 0 is the entire graph
    notes    warnings for the user: the first NaN, a value modified since

A node is identified by its index in `nodes`, never by its address, so the same graph gives the same trace. Columns are
fast to fill and to serialise; `nodes`, `edges` and a pass's `steps` present them as rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import minigrad as mg
from minigrad.backends.formula import Formula
from minigrad_viz.trace.notation import (
    for_formula,
    formula_of,
    handle,
    local_formula,
    plain,
    pretty,
    readable,
    shorten_name,
)
from minigrad_viz.trace.rows import About, Edge, Note, PassStep, Rows, Shaped, TourStop, TraceBlock, TraceNode

__all__ = ["FULL", "Columns", "Pass", "attributes", "count", "finite", "same"]

FULL = 400  # nodes up to which a picture shows every node with its text; above it most blocks are closed
KINDS: dict[str, Any] = {"l": "leaf", "o": "op", "c": "constant", "x": "broken"}
STATES: dict[str, Any] = {"n": "none", "f": "final", "b": "blocked", "p": "unknown"}
_SAID = {"n": "—", "b": "blocked", "p": "not kept"}


@dataclass(slots=True)
class Pass:
    """The steps of a backward pass from node `root`, by column."""

    root: int
    trace: Columns = field(repr=False)
    edge: list[int] = field(default_factory=list)
    upstream: list[Any] = field(default_factory=list)
    contribution: list[Any] = field(default_factory=list)
    total: list[Any] = field(default_factory=list)

    @property
    def steps(self) -> Rows[PassStep]:
        """The steps as rows."""
        return Rows(len(self.edge), self._step)

    def _step(self, at: int) -> PassStep:
        edge = self.edge[at]
        return PassStep(edge, self.upstream[at], self.trace.local[edge], self.contribution[at], self.total[at])


@dataclass(slots=True)
class Columns:
    """The columns of a trace, and text derived from them."""

    # By node. Sparse columns are dicts; `late` lists the operands of a node that were modified after it was computed.
    kinds: list[str] = field(default_factory=list)
    op: list[int] = field(default_factory=list)
    names: list[str | None] = field(default_factory=list)
    values: list[float | None] = field(default_factory=list)
    states: list[str] = field(default_factory=list)
    grads: dict[int, Any] = field(default_factory=dict)
    block: list[int] = field(default_factory=list)
    lines: dict[int, str] = field(default_factory=dict)
    late: dict[int, list[int]] = field(default_factory=dict)
    attrs: dict[int, dict[str, Any]] = field(default_factory=dict)
    tensors: dict[int, Shaped] = field(default_factory=dict)
    # By edge; those into node i have indices start[i] … start[i + 1] - 1.
    operand: list[int] = field(default_factory=list)
    result: list[int] = field(default_factory=list)
    slot: list[int] = field(default_factory=list)
    flows: list[bool] = field(default_factory=list)
    local: list[float | None] = field(default_factory=list)
    start: list[int] = field(default_factory=lambda: [0])

    ops: list[mg.Op] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    passes: list[Pass] = field(default_factory=list)
    blocks: list[TraceBlock] = field(default_factory=lambda: [TraceBlock("graph", -1, "graph")])
    scopes: list[str] = field(default_factory=lambda: [""])
    """The path of scopes of each block, separated by slashes."""
    short: dict[int, str] = field(default_factory=dict)
    """The names of parameters within their block: "weight" in "blocks.0.linear"."""
    modules: dict[int, About] = field(default_factory=dict)
    """Information about blocks that are module calls, or folds of them."""
    notes: list[Note] = field(default_factory=list)
    tours: list[TourStop] = field(default_factory=list)
    how: str = ""
    """How a captured step is run; it has shapes and no values."""

    @property
    def nodes(self) -> Rows[TraceNode]:
        """The nodes as rows."""
        return Rows(len(self.kinds), self._node)

    @property
    def edges(self) -> Rows[Edge]:
        """The edges as rows."""
        return Rows(len(self.operand), self._edge)

    @property
    def into(self) -> Rows[range]:
        """The edges into each node, in slot order, as a range of indices."""
        return Rows(len(self.kinds), lambda index: range(self.start[index], self.start[index + 1]))

    def _node(self, index: int) -> TraceNode:
        kind, op, block = self.kinds[index], self.op[index], self.block[index]
        return TraceNode(
            KINDS[kind],
            None if op < 0 else self.ops[op],
            self.names[index],
            self.values[index],
            STATES[self.states[index]],
            self.grads.get(index),
            self.scopes[block],
            self.lines.get(index),
            index in self.late,
            block,
            attributes(self.attrs.get(index, {})),
            *self.tensors.get(index, (None, None, None)),
        )

    def _edge(self, index: int) -> Edge:
        return Edge(self.operand[index], self.result[index], self.slot[index], self.flows[index], self.local[index])

    @property
    def full(self) -> bool:
        """Whether the graph is small enough to show every node with its text."""
        return len(self.kinds) <= FULL

    # --- text ---

    def title(self, index: int, limit: int = 24, near: bool = False) -> str:
        """Return the display name of a node: its name, the value of a constant, or else v and its tape index. With
        `near`, next to the node's block, a parameter's name omits the name of the block.
        """
        name, value = self.names[index], self.values[index]
        name = self.short.get(index, name) if near else name
        if self.kinds[index] == "c":
            return "?" if value is None else pretty(value)
        return handle(index) if name is None else shorten_name(name, limit)

    def amount(self, index: int, show: Callable[[float], str] = pretty) -> str:
        """Format the value of a node, or the shape of a tensor with several elements."""
        shaped = self.tensors.get(index)
        value = self.values[index]
        if shaped is None:
            return "?" if value is None else show(value)
        if shaped.array is not None and shaped.array.size == 1:
            return show(float(shaped.array.reshape(-1)[0]))
        return " × ".join(map(str, shaped.shape)) or "scalar"

    def gradient(self, index: int, show: Callable[[float], str] = pretty) -> str:
        """Format the gradient of a node: a number, a dash before it is computed, or why there is none."""
        grad: Any = self.grads.get(index)
        if self.states[index] in _SAID:
            return _SAID[self.states[index]]
        if index not in self.tensors:
            return show(math.nan if grad is None else grad)
        return show(float(grad.reshape(-1)[0])) if grad.size == 1 else " × ".join(map(str, grad.shape))

    def alarming(self, index: int) -> bool:
        """Whether a node is marked: it is not finite, or stale."""
        shaped, value, grad = self.tensors.get(index), self.values[index], self.grads.get(index)
        held = value if shaped is None else shaped.array
        return index in self.late or not finite(held) or not finite(grad)

    def not_finite(self) -> list[int]:
        """Return the nodes that contain a NaN or an infinity."""
        wild = [at for at, x in enumerate(self.values) if x is not None and not math.isfinite(x)]
        if self.tensors:
            wild = [at for at in wild if at not in self.tensors]
            wild += [at for at, shaped in self.tensors.items() if not finite(shaped.array)]
        return sorted(wild)

    def symbols(self, index: int, limit: int = 24, near: bool = False) -> list[str | float]:
        """Return the operands of a node for a formula: names, and numbers for constants."""
        operands = self.operand[self.start[index] : self.start[index + 1]]
        constants = [self.values[i] if self.kinds[i] == "c" else None for i in operands]
        pairs = zip(operands, constants, strict=True)
        return [self.title(i, limit, near) if x is None else x for i, x in pairs]

    def formula(self, index: int, limit: int = 24, near: bool = False) -> Formula | str | None:
        """Return the formula that computed a node, in names; None for a leaf."""
        op = self.op[index]
        attrs = for_formula(self.attrs.get(index, {}))
        return None if op < 0 else formula_of(self.ops[op], self.symbols(index, limit, near), attrs)

    def local_formula(self, edge: int, limit: int = 24, near: bool = False) -> Formula | None:
        """Return the local derivative of an edge, in names; None for tensors, or if no gradient flows."""
        result, op = self.result[edge], self.op[self.result[edge]]
        if op < 0 or not self.flows[edge] or result in self.tensors:
            return None
        title, symbols = self.title(result, limit, near), self.symbols(result, limit, near)
        return local_formula(self.ops[op], self.slot[edge], title, symbols)

    def local_text(self, edge: int, limit: int = 24, show: Callable[[float], str] = pretty, near: bool = False) -> str:
        """Format the local derivative as ``b = −3.0``, or one side if both are the same or one is unknown."""
        local = self.local[edge]
        formula = self.local_formula(edge, limit, near)
        rule = "" if formula is None else plain(formula)
        if local is None:
            return rule
        same = formula is None or (isinstance(formula.value, float) and formula.op is None)
        return show(local) if same else f"{rule} = {show(local)}"

    def contributions(self) -> list[int]:
        """Return the number of edges over which each node's gradient arrives: several are summed."""
        counts = [0] * len(self.kinds)
        for operand, flows in zip(self.operand, self.flows, strict=True):
            counts[operand] += flows
        return counts

    def fresh(self) -> bool:
        """Whether the stored gradients are those of exactly one backward pass from the only output."""
        if len(self.passes) != 1 or len(self.outputs) != 1:
            return False
        totals = self.totals(self.passes[0])
        return all(index in totals and same(grad, totals[index]) for index, grad in self.grads.items())

    def totals(self, run: Pass) -> dict[int, Any]:
        """Return the accumulated gradients of a pass, by node."""
        last = zip(map(self.operand.__getitem__, run.edge), run.total, strict=True)
        return {run.root: 1.0, **dict(last)}

    def sentence(self, show: Callable[[float], str] = pretty) -> str:
        """Describe the graph in one sentence."""
        parts = [("l", "leaf", "leaves"), ("o", "operation", "operations"), ("c", "constant", "constants")]
        counts = [count(self.kinds.count(kind), one, many) for kind, one, many in parts]
        names = [f"{self.title(i)}{self._said(i, show)}" for i in self.outputs[:3]]
        more = ", …" if len(self.outputs) > 3 else ""
        what = "Captured step" if self.how else "Graph"
        return f"{what} of {', '.join(names)}{more}: {', '.join(count for count in counts if count)}."

    def _said(self, index: int, show: Callable[[float], str]) -> str:
        if self.kinds[index] == "x":
            return ", which raised an error"
        shaped, amount = self.tensors.get(index), self.amount(index, show)
        one = shaped is None or (shaped.array is not None and shaped.array.size == 1)
        return f" = {amount}" if one else f" ({amount})"


def attributes(attrs: Mapping[str, Any]) -> dict[str, str]:
    """Format the attributes of an operation."""
    return {name: readable(name, x) for name, x in attrs.items()}


def finite(x: Any) -> bool:
    """Whether a number, or every element of an array, is finite; None counts as finite."""
    if x is None or x.__class__ is float:
        return x is None or math.isfinite(x)
    import numpy as np

    return bool(np.isfinite(x).all())


def same(x: Any, y: Any) -> bool:
    """Whether two gradients are equal up to rounding."""
    if x.__class__ is float and y.__class__ is float:
        return math.isclose(x, y, rel_tol=1e-9) or (math.isnan(x) and math.isnan(y))
    import numpy as np

    x, y = np.asarray(x), np.asarray(y)
    return x.size == y.size and np.allclose(x.reshape(-1), y.reshape(-1), rtol=1e-5, atol=0.0, equal_nan=True)


def count(n: int, one: str, many: str) -> str:
    """Return ``3 leaves``, or "" for none."""
    return "" if not n else f"{n} {one if n == 1 else many}"
