"""What a trace is: everything that a picture of a graph shows, as plain data. Every output here is drawn from it.

    nodes    in tape order, each after its operands; a number that took part as a constant is a node for each use
    edges    one for each operand of each operation, so a*a has two, with the local derivative
    passes   for each output the events of a backward pass, in order: the chain rule step by step
    blocks   the tree of parts that can be closed, scopes for one; block 0 is the whole graph
    notes    what a user should be told: the first NaN, a number overwritten since

A node is known by its place in `nodes`, never by its address, so the same graph gives the same trace. It is kept by
columns, which are quick to fill and to write; `nodes`, `edges` and a pass's `steps` show them as rows.
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

FULL = 400  # up to here a picture shows every node with its text; of a larger one most blocks are closed
KINDS: dict[str, Any] = {"l": "leaf", "o": "op", "c": "constant", "x": "broken"}
STATES: dict[str, Any] = {"n": "none", "f": "final", "b": "blocked", "p": "unknown"}
_SAID = {"n": "—", "b": "blocked", "p": "not kept"}


@dataclass(slots=True)
class Pass:
    """The steps of a backward pass from node number `root`, by column."""

    root: int
    trace: Columns = field(repr=False)
    edge: list[int] = field(default_factory=list)
    upstream: list[Any] = field(default_factory=list)
    contribution: list[Any] = field(default_factory=list)
    total: list[Any] = field(default_factory=list)

    @property
    def steps(self) -> Rows[PassStep]:
        """As rows."""
        return Rows(len(self.edge), self._step)

    def _step(self, at: int) -> PassStep:
        edge = self.edge[at]
        return PassStep(edge, self.upstream[at], self.trace.local[edge], self.contribution[at], self.total[at])


@dataclass(slots=True)
class Columns:
    """The columns of a trace, and what they say in words."""

    # By node. Sparse columns are dicts; `late` has, for a node, the operands that were replaced after it was computed.
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
    # By edge; those into node i are start[i] … start[i + 1] - 1.
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
    """The scopes around each block, and itself if it is one, joined by slashes."""
    short: dict[int, str] = field(default_factory=dict)
    """What parameters are called in the block that they lie in: "weight" in "blocks.0.linear"."""
    modules: dict[int, About] = field(default_factory=dict)
    """What is to be said of the blocks that are calls of modules, or folds of such."""
    notes: list[Note] = field(default_factory=list)
    tours: list[TourStop] = field(default_factory=list)
    how: str = ""
    """Of a recorded step, which has shapes and no numbers, how it is run."""

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
        """For each node, the numbers of the edges that lead to it, in slot order."""
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

    # --- in words ---

    def title(self, index: int, limit: int = 24, near: bool = False) -> str:
        """What to call a node: its name, its number if it is a constant, or else v and its place on the tape. Where it
        is seen `near` the block that it lies in, the name of a parameter does not repeat that of the block.
        """
        name, value = self.names[index], self.values[index]
        name = self.short.get(index, name) if near else name
        if self.kinds[index] == "c":
            return "?" if value is None else pretty(value)
        return handle(index) if name is None else shorten_name(name, limit)

    def amount(self, index: int, show: Callable[[float], str] = pretty) -> str:
        """What a node holds, in words: its number; of a tensor of several, its shape."""
        shaped = self.tensors.get(index)
        value = self.values[index]
        if shaped is None:
            return "?" if value is None else show(value)
        if shaped.array is not None and shaped.array.size == 1:
            return show(float(shaped.array.reshape(-1)[0]))
        return " × ".join(map(str, shaped.shape)) or "one number"

    def gradient(self, index: int, show: Callable[[float], str] = pretty) -> str:
        """What to write for the gradient of a node: a number, a dash before there is one, or that there is none."""
        grad: Any = self.grads.get(index)
        if self.states[index] in _SAID:
            return _SAID[self.states[index]]
        if index not in self.tensors:
            return show(math.nan if grad is None else grad)
        return show(float(grad.reshape(-1)[0])) if grad.size == 1 else " × ".join(map(str, grad.shape))

    def alarming(self, index: int) -> bool:
        """Whether a node is to be marked: it is not finite, or does not agree with its operands any more."""
        shaped, value, grad = self.tensors.get(index), self.values[index], self.grads.get(index)
        held = value if shaped is None else shaped.array
        return index in self.late or not finite(held) or not finite(grad)

    def not_finite(self) -> list[int]:
        """The nodes that hold a NaN or an infinity."""
        wild = [at for at, x in enumerate(self.values) if x is not None and not math.isfinite(x)]
        if self.tensors:
            wild = [at for at in wild if at not in self.tensors]
            wild += [at for at, shaped in self.tensors.items() if not finite(shaped.array)]
        return sorted(wild)

    def symbols(self, index: int, limit: int = 24, near: bool = False) -> list[str | float]:
        """The operands of a node as formulas take them: names, and numbers for constants."""
        operands = self.operand[self.start[index] : self.start[index + 1]]
        constants = [self.values[i] if self.kinds[i] == "c" else None for i in operands]
        pairs = zip(operands, constants, strict=True)
        return [self.title(i, limit, near) if x is None else x for i, x in pairs]

    def formula(self, index: int, limit: int = 24, near: bool = False) -> Formula | str | None:
        """How a node was computed, in names; None for a leaf."""
        op = self.op[index]
        attrs = for_formula(self.attrs.get(index, {}))
        return None if op < 0 else formula_of(self.ops[op], self.symbols(index, limit, near), attrs)

    def local_formula(self, edge: int, limit: int = 24, near: bool = False) -> Formula | None:
        """The rule for the local derivative on an edge, in names; None where no gradient flows, and of tensors."""
        result, op = self.result[edge], self.op[self.result[edge]]
        if op < 0 or not self.flows[edge] or result in self.tensors:
            return None
        title, symbols = self.title(result, limit, near), self.symbols(result, limit, near)
        return local_formula(self.ops[op], self.slot[edge], title, symbols)

    def local_text(self, edge: int, limit: int = 24, show: Callable[[float], str] = pretty, near: bool = False) -> str:
        """The rule and the number, as ``b = −3.0``; one of them where they are the same or the other is unknown."""
        local = self.local[edge]
        formula = self.local_formula(edge, limit, near)
        rule = "" if formula is None else plain(formula)
        if local is None:
            return rule
        same = formula is None or (isinstance(formula.value, float) and formula.op is None)
        return show(local) if same else f"{rule} = {show(local)}"

    def contributions(self) -> list[int]:
        """For each node, over how many edges its gradient arrives: more than one are added up."""
        counts = [0] * len(self.kinds)
        for operand, flows in zip(self.operand, self.flows, strict=True):
            counts[operand] += flows
        return counts

    def fresh(self) -> bool:
        """Whether the stored gradients are those of one backward pass from the one output, not of two."""
        if len(self.passes) != 1 or len(self.outputs) != 1:
            return False
        totals = self.totals(self.passes[0])
        return all(index in totals and same(grad, totals[index]) for index, grad in self.grads.items())

    def totals(self, run: Pass) -> dict[int, Any]:
        """The gradients that a pass brings, by node."""
        last = zip(map(self.operand.__getitem__, run.edge), run.total, strict=True)
        return {run.root: 1.0, **dict(last)}

    def sentence(self, show: Callable[[float], str] = pretty) -> str:
        """What is drawn, in one sentence."""
        parts = [("l", "leaf", "leaves"), ("o", "operation", "operations"), ("c", "constant", "constants")]
        counts = [count(self.kinds.count(kind), one, many) for kind, one, many in parts]
        names = [f"{self.title(i)}{self._said(i, show)}" for i in self.outputs[:3]]
        more = ", …" if len(self.outputs) > 3 else ""
        what = "Recorded step" if self.how else "Graph"
        return f"{what} of {', '.join(names)}{more}: {', '.join(count for count in counts if count)}."

    def _said(self, index: int, show: Callable[[float], str]) -> str:
        if self.kinds[index] == "x":
            return ", which raised an error"
        shaped, amount = self.tensors.get(index), self.amount(index, show)
        one = shaped is None or (shaped.array is not None and shaped.array.size == 1)
        return f" = {amount}" if one else f" ({amount})"


def attributes(attrs: Mapping[str, Any]) -> dict[str, str]:
    """The attributes of an operation in text."""
    return {name: readable(name, x) for name, x in attrs.items()}


def finite(x: Any) -> bool:
    """Whether a number, or every number of an array, is neither NaN nor infinite; what is not there is."""
    if x is None or x.__class__ is float:
        return x is None or math.isfinite(x)
    import numpy as np

    return bool(np.isfinite(x).all())


def same(x: Any, y: Any) -> bool:
    """Whether two gradients are equal but for rounding."""
    if x.__class__ is float and y.__class__ is float:
        return math.isclose(x, y, rel_tol=1e-9) or (math.isnan(x) and math.isnan(y))
    import numpy as np

    x, y = np.asarray(x), np.asarray(y)
    return x.size == y.size and np.allclose(x.reshape(-1), y.reshape(-1), rtol=1e-5, atol=0.0, equal_nan=True)


def count(n: int, one: str, many: str) -> str:
    """``3 leaves``, or nothing for none."""
    return "" if not n else f"{n} {one if n == 1 else many}"
