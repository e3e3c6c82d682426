"""The columns of a trace: the plain data from which every picture of a graph is drawn.

    nodes    in tape order, operands first; a constant is a separate node for each use
    edges    one per operand of each operation, so a*a has two, with the local derivative
    passes   the events of a backward pass from each output, in order: the chain rule step by step
    blocks   the tree of collapsible parts, such as scopes; block 0 is the entire graph
    notes    warnings for the user, such as the first NaN or a modified operand

A node is identified by its index in `nodes`, never by its address, so the same graph always has the same trace. Columns
are fast to fill and to serialise; `nodes`, `edges` and a pass's `steps` present them as rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import minigrad as mg
from minigrad.backends.formula import Formula
from minigrad_viz.trace.array_summary import ArraySummary
from minigrad_viz.trace.notation import (
    format_attribute,
    format_pretty,
    formula_attributes,
    formula_text,
    handle,
    local_formula,
    make_formula,
    shorten_name,
)
from minigrad_viz.trace.rows import Edge, ModuleInfo, Note, PassStep, Rows, TensorData, TourStop, TraceBlock, TraceNode

__all__ = ["MAX_DETAILED_NODES", "Columns", "Pass", "count_phrase", "format_attributes", "is_close", "is_finite"]

# Maximum number of nodes of a graph that is shown with the text of every node; a larger graph has most blocks closed.
MAX_DETAILED_NODES = 400
KIND_NAMES: dict[str, Any] = {"l": "leaf", "o": "op", "c": "constant", "x": "broken"}
STATE_NAMES: dict[str, Any] = {"n": "none", "f": "final", "b": "blocked", "p": "unknown"}
STATE_TEXTS = {"n": "—", "b": "blocked", "p": "not kept"}


@dataclass(slots=True)
class Pass:
    """The steps of a backward pass from node `root`, as columns."""

    root: int
    trace: Columns = field(repr=False)
    edge: list[int] = field(default_factory=list)
    upstream: list[Any] = field(default_factory=list)
    contribution: list[Any] = field(default_factory=list)
    total: list[Any] = field(default_factory=list)

    @property
    def steps(self) -> Rows[PassStep]:
        """The steps as rows."""
        return Rows(len(self.edge), self._row)

    def _row(self, at: int) -> PassStep:
        edge = self.edge[at]
        return PassStep(edge, self.upstream[at], self.trace.local[edge], self.contribution[at], self.total[at])


@dataclass(slots=True)
class Columns:
    """The columns of a trace, and text derived from them."""

    # Columns by node. Sparse columns are dicts; `modified_operands` are the operands of a node that were modified after
    # the node was computed.
    kinds: list[str] = field(default_factory=list)
    op: list[int] = field(default_factory=list)
    names: list[str | None] = field(default_factory=list)
    values: list[float | None] = field(default_factory=list)
    states: list[str] = field(default_factory=list)
    grads: dict[int, Any] = field(default_factory=dict)
    block: list[int] = field(default_factory=list)
    lines: dict[int, str] = field(default_factory=dict)
    modified_operands: dict[int, list[int]] = field(default_factory=dict)
    attrs: dict[int, dict[str, Any]] = field(default_factory=dict)
    tensors: dict[int, TensorData] = field(default_factory=dict)
    # Columns by edge. The incoming edges of node i have indices start[i] … start[i + 1] - 1.
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
    modules: dict[int, ModuleInfo] = field(default_factory=dict)
    """Information about blocks that are module calls, or folds of such calls."""
    notes: list[Note] = field(default_factory=list)
    tours: list[TourStop] = field(default_factory=list)
    execution: str = ""
    """How a captured step is run; empty for other graphs. A captured step has shapes but no values."""

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
            KIND_NAMES[kind],
            None if op < 0 else self.ops[op],
            self.names[index],
            self.values[index],
            STATE_NAMES[self.states[index]],
            self.grads.get(index),
            self.scopes[block],
            self.lines.get(index),
            index in self.modified_operands,
            block,
            format_attributes(self.attrs.get(index, {})),
            *self.tensors.get(index, (None, None, None)),
        )

    def _edge(self, index: int) -> Edge:
        return Edge(self.operand[index], self.result[index], self.slot[index], self.flows[index], self.local[index])

    @property
    def is_fully_shown(self) -> bool:
        """Whether the graph is small enough to show every node with its text."""
        return len(self.kinds) <= MAX_DETAILED_NODES

    # --- text ---

    def title(self, index: int, limit: int = 24, in_block: bool = False) -> str:
        """Return the display name of a node: its name, the value of a constant, or else v and its tape index. With
        `in_block`, a parameter's name omits the name of the block that contains it.
        """
        name, value = self.names[index], self.values[index]
        name = self.short.get(index, name) if in_block else name
        if self.kinds[index] == "c":
            return "?" if value is None else format_pretty(value)
        return handle(index) if name is None else shorten_name(name, limit)

    def value_text(self, index: int, formatter: Callable[[float], str] = format_pretty) -> str:
        """Format the value of a node, or the shape of a tensor with several elements."""
        shaped = self.tensors.get(index)
        value = self.values[index]
        if shaped is None:
            return "?" if value is None else formatter(value)
        if shaped.array is not None and shaped.array.size == 1:
            return formatter(float(shaped.array.reshape(-1)[0]))
        return " × ".join(map(str, shaped.shape)) or "scalar"

    def gradient_text(self, index: int, formatter: Callable[[float], str] = format_pretty) -> str:
        """Format the gradient of a node: a number, a dash before it is computed, or why there is none."""
        grad: Any = self.grads.get(index)
        if self.states[index] in STATE_TEXTS:
            return STATE_TEXTS[self.states[index]]
        if index not in self.tensors:
            return formatter(math.nan if grad is None else grad)
        return formatter(float(grad.reshape(-1)[0])) if grad.size == 1 else " × ".join(map(str, grad.shape))

    def is_alarming(self, index: int) -> bool:
        """Whether a node has a non-finite value or gradient, or is stale."""
        shaped, value, grad = self.tensors.get(index), self.values[index], self.grads.get(index)
        data = value if shaped is None else shaped.array
        return index in self.modified_operands or not is_finite(data) or not is_finite(grad)

    def non_finite_nodes(self) -> list[int]:
        """Return the nodes that contain a NaN or an infinity."""
        nodes = [at for at, x in enumerate(self.values) if x is not None and not math.isfinite(x)]
        if self.tensors:
            nodes = [at for at in nodes if at not in self.tensors]
            nodes += [at for at, shaped in self.tensors.items() if not is_finite(shaped.array)]
        return sorted(nodes)

    def symbols(self, index: int, limit: int = 24, in_block: bool = False) -> list[str | float]:
        """Return the operands of a node for a formula: names, and numbers for constants."""
        operands = self.operand[self.start[index] : self.start[index + 1]]
        constants = [self.values[i] if self.kinds[i] == "c" else None for i in operands]
        pairs = zip(operands, constants, strict=True)
        return [self.title(i, limit, in_block) if x is None else x for i, x in pairs]

    def formula(self, index: int, limit: int = 24, in_block: bool = False) -> Formula | str | None:
        """Return the formula of a node in terms of names; None for a leaf."""
        op = self.op[index]
        attrs = formula_attributes(self.attrs.get(index, {}))
        return None if op < 0 else make_formula(self.ops[op], self.symbols(index, limit, in_block), attrs)

    def local_formula(self, edge: int, limit: int = 24, in_block: bool = False) -> Formula | None:
        """Return the local derivative of an edge in terms of names; None for tensors, or if no gradient flows."""
        result, op = self.result[edge], self.op[self.result[edge]]
        if op < 0 or not self.flows[edge] or result in self.tensors:
            return None
        title, symbols = self.title(result, limit, in_block), self.symbols(result, limit, in_block)
        return local_formula(self.ops[op], self.slot[edge], title, symbols)

    def local_text(
        self, edge: int, limit: int = 24, formatter: Callable[[float], str] = format_pretty, in_block: bool = False
    ) -> str:
        """Format the local derivative as ``b = −3.0``, or only one side if both are equal or the other is unknown."""
        local = self.local[edge]
        formula = self.local_formula(edge, limit, in_block)
        rule = "" if formula is None else formula_text(formula)
        if local is None:
            return rule
        is_single = formula is None or (isinstance(formula.value, float) and formula.op is None)
        return formatter(local) if is_single else f"{rule} = {formatter(local)}"

    def contributions(self) -> list[int]:
        """Return the number of contributions to each node's gradient, one per edge over which a gradient flows."""
        counts = [0] * len(self.kinds)
        for operand, flows in zip(self.operand, self.flows, strict=True):
            counts[operand] += flows
        return counts

    def is_fresh(self) -> bool:
        """Whether the stored gradients are those of exactly one backward pass from the only output."""
        if len(self.passes) != 1 or len(self.outputs) != 1:
            return False
        totals = self.totals(self.passes[0])
        return all(index in totals and is_close(grad, totals[index]) for index, grad in self.grads.items())

    def totals(self, run: Pass) -> dict[int, Any]:
        """Return the accumulated gradients of a pass, by node."""
        last = zip(map(self.operand.__getitem__, run.edge), run.total, strict=True)
        return {run.root: 1.0, **dict(last)}

    def sentence(self, show: Callable[[float], str] = format_pretty) -> str:
        """Describe the graph in one sentence."""
        parts = [("l", "leaf", "leaves"), ("o", "operation", "operations"), ("c", "constant", "constants")]
        counts = [count_phrase(self.kinds.count(kind), singular, plural) for kind, singular, plural in parts]
        names = [f"{self.title(i)}{self._value_phrase(i, show)}" for i in self.outputs[:3]]
        ellipsis = ", …" if len(self.outputs) > 3 else ""
        subject = "Captured step" if self.execution else "Graph"
        return f"{subject} of {', '.join(names)}{ellipsis}: {', '.join(count for count in counts if count)}."

    def _value_phrase(self, index: int, show: Callable[[float], str]) -> str:
        if self.kinds[index] == "x":
            return ", which raised an error"
        shaped, amount = self.tensors.get(index), self.value_text(index, show)
        is_scalar = shaped is None or (shaped.array is not None and shaped.array.size == 1)
        return f" = {amount}" if is_scalar else f" ({amount})"


def format_attributes(attrs: Mapping[str, Any]) -> dict[str, str]:
    """Format the attributes of an operation."""
    return {name: format_attribute(name, x) for name, x in attrs.items()}


def is_finite(x: Any) -> bool:
    """Whether a number, or every element of an array, is finite; None counts as finite."""
    if x is None or x.__class__ is float:
        return x is None or math.isfinite(x)
    if isinstance(x, ArraySummary):
        return x.is_finite
    import numpy as np

    return bool(np.isfinite(x).all())


def is_close(x: Any, y: Any) -> bool:
    """Whether two gradients are equal up to rounding."""
    if x.__class__ is float and y.__class__ is float:
        return math.isclose(x, y, rel_tol=1e-9) or (math.isnan(x) and math.isnan(y))
    if isinstance(x, ArraySummary) or isinstance(y, ArraySummary):
        return isinstance(x, ArraySummary) and isinstance(y, ArraySummary) and x.is_close(y)
    import numpy as np

    x, y = np.asarray(x), np.asarray(y)
    return x.size == y.size and np.allclose(x.reshape(-1), y.reshape(-1), rtol=1e-5, atol=0.0, equal_nan=True)


def count_phrase(n: int, singular: str, plural: str) -> str:
    """Return a count with its noun, such as ``3 leaves``, or "" if `n` is 0."""
    return "" if not n else f"{n} {singular if n == 1 else plural}"
