"""The trace: everything that a picture of a graph shows, as plain data. Every output of this package is drawn from it.

    nodes    in tape order, each after its operands; a number that took part as a constant is a node for each use
    edges    one for each operand of each operation, so a*a has two, with the local derivative
    passes   for each output the events of a backward pass, in order: the chain rule step by step
    notes    what a reader should be told: the first NaN, a number overwritten since

A node is known by its place in `nodes`, never by its address, so the same graph gives the same trace.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import minigrad as mg
from minigrad.backends.formula import Formula
from minigrad.errors import DTypeError, GraphError
from minigrad.graph import Scope, propagate
from minigrad.kernels import untapped
from minigrad_viz import wire
from minigrad_viz.blocks import Block, divide
from minigrad_viz.names import Namespaces, callers, names_of, told_apart
from minigrad_viz.notation import (
    clean,
    formula_of,
    handle,
    local_formula,
    plain,
    pretty,
    shorten,
    shorten_name,
)

__all__ = ["FULL", "Block", "Edge", "Held", "Node", "Note", "Pass", "Step", "Stop", "Trace", "placed", "to_trace"]

FULL = 400  # up to here a picture shows every node with its text; larger graphs are drawn small, and say so
_FOLDER = re.compile(r"^.*?[/\\](?=[^/\\]*:\d+: )")  # of a source line: the same file lies elsewhere on each machine
_MOST_STEPS = 50_000  # of all backward passes together: thousands of outputs would take thousands of passes
_STATES = {"none": "—", "blocked": "blocked"}


class Held(NamedTuple):
    """A tensor that a node holds; `value` and `grad` are places in `Trace.arrays`, None for what is not kept."""

    shape: tuple[int, ...]
    dtype: str
    value: int | None = None
    grad: int | None = None


class Node(NamedTuple):
    """A number in the graph. What `grad` is, `state` says: "none" (not computed yet), "final" or "blocked" (never)."""

    kind: Literal["leaf", "op", "constant", "broken"]
    op: mg.Op | None
    name: str | None
    value: float
    state: Literal["none", "final", "blocked", "freed"]
    grad: float | None
    scope: str
    line: str | None
    stale: bool = False
    """Whether an operand was given another number after this was computed."""
    block: int = 0
    """Its place in `Trace.blocks`: the innermost one that it lies in."""
    attrs: dict[str, str] | None = None
    """The op's attributes, in text."""
    tensor: Held | None = None
    """What it holds, if that is a tensor; its `value` and `grad` here are no numbers then."""


class Edge(NamedTuple):
    """`operand` is operand number `slot` of the operation that made `result`; both are places in `nodes`.

    `local` is the derivative of result by operand; None where no gradient flows (`flows` is False) or it is unknown.
    """

    operand: int
    result: int
    slot: int
    flows: bool
    local: float | None


class Step(NamedTuple):
    """One event of a backward pass: over edge number `edge`, ``upstream * local = contribution``; `total` so far."""

    edge: int
    upstream: float
    local: float | None
    contribution: float
    total: float


class Pass(NamedTuple):
    """The steps of a backward pass from node number `root`."""

    root: int
    steps: list[Step]


class Note(NamedTuple):
    """Something to be told about the graph; `node` is where, or None."""

    kind: Literal["overwritten", "nan", "gradient", "partial", "error"]
    node: int | None
    text: str


class Stop(NamedTuple):
    """A stop of a tour: a position of the player, and what is said there."""

    at: int
    text: str


@dataclass(slots=True)
class Trace:
    """The data of a picture: see the top of this module.

    >>> a = mg.Value(3.0, "a")
    >>> trace = to_trace(a * a)
    >>> [(edge.operand, edge.result, edge.slot, edge.local) for edge in trace.edges]
    [(0, 1, 0, 3.0), (0, 1, 1, 3.0)]
    """

    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    passes: list[Pass] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=lambda: [Block("graph", -1, "graph")])
    tours: list[Stop] = field(default_factory=list)
    arrays: list[dict[str, Any]] = field(default_factory=list)
    """Summaries of the tensors' values and gradients: see arrays.py."""
    into: list[range] = field(default_factory=list)
    """For each node, the numbers of the edges that lead to it, in slot order."""

    @property
    def full(self) -> bool:
        """Whether the graph is small enough to show every node with its text."""
        return len(self.nodes) <= FULL

    def title(self, index: int, limit: int = 24) -> str:
        """What to call a node: its name, its number if it is a constant, or else v and its place on the tape."""
        node = self.nodes[index]
        if node.kind == "constant":
            return pretty(node.value)
        return handle(index) if node.name is None else shorten_name(node.name, limit)

    def gradient(self, index: int, show: Callable[[float], str] = pretty) -> str:
        """What to write for the gradient of a node: a number, a dash before there is one, or that there is none."""
        node = self.nodes[index]
        return _STATES.get(node.state) or show(math.nan if node.grad is None else node.grad)

    def alarming(self, index: int) -> bool:
        """Whether a node is to be marked: it is not finite, or does not agree with its operands any more."""
        value, grad = self.nodes[index].value, self.nodes[index].grad
        if self.nodes[index].kind == "broken":
            return True
        return self.nodes[index].stale or not math.isfinite(value) or (grad is not None and not math.isfinite(grad))

    def symbols(self, index: int, limit: int = 24) -> list[str | float]:
        """The operands of a node as formulas take them: names, and numbers for constants."""
        operands = [self.edges[edge].operand for edge in self.into[index]]
        return [x.value if (x := self.nodes[i]).kind == "constant" else self.title(i, limit) for i in operands]

    def formula(self, index: int, limit: int = 24) -> Formula | str | None:
        """How a node was computed, in names; None for a leaf."""
        op = self.nodes[index].op
        return None if op is None else formula_of(op, self.symbols(index, limit))

    def local_formula(self, edge: int, limit: int = 24) -> Formula | None:
        """The rule for the local derivative on an edge, in names; None where no gradient flows."""
        _, result, slot, flows, _ = self.edges[edge]
        op = self.nodes[result].op
        if op is None or not flows:
            return None
        return local_formula(op, slot, self.title(result, limit), self.symbols(result, limit))

    def local_text(self, edge: int, limit: int = 24, show: Callable[[float], str] = pretty) -> str:
        """The rule and the number, as ``b = −3.0``; one of them where they are the same or the other is unknown."""
        local = self.edges[edge].local
        formula = self.local_formula(edge, limit)
        rule = "" if formula is None else plain(formula)
        if local is None:
            return rule
        same = formula is None or (isinstance(formula.value, float) and formula.op is None)
        return show(local) if same else f"{rule} = {show(local)}"

    def contributions(self) -> list[int]:
        """For each node, over how many edges its gradient arrives: more than one are added up."""
        counts = [0] * len(self.nodes)
        for edge in self.edges:
            counts[edge.operand] += edge.flows
        return counts

    def fresh(self) -> bool:
        """Whether the stored gradients are those of one backward pass from the one output, not of two."""
        if len(self.passes) != 1 or len(self.outputs) != 1:
            return False
        totals = {self.edges[step.edge].operand: step.total for step in self.passes[0].steps}
        totals[self.outputs[0]] = 1.0
        for index, node in enumerate(self.nodes):
            if node.grad is not None and not _same(node.grad, totals.get(index, math.nan)):
                return False
        return True

    def sentence(self, show: Callable[[float], str] = pretty) -> str:
        """What is drawn, in one sentence."""
        kinds: list[str] = [node.kind for node in self.nodes]
        parts = [("leaf", "leaves"), ("op", "operations"), ("constant", "constants")]
        counts = [_count(kinds.count(one), "operation" if one == "op" else one, many) for one, many in parts]
        names = [
            f"{self.title(i)}, which raised an error" if x.kind == "broken" else f"{self.title(i)} = {show(x.value)}"
            for i in self.outputs[:3]
            for x in [self.nodes[i]]
        ]
        more = ", …" if len(self.outputs) > 3 else ""
        return f"Graph of {', '.join(names)}{more}: {', '.join(count for count in counts if count)}."

    def data(self, full: bool = False) -> dict[str, Any]:
        """The trace as JSON has it, numbers rounded unless `full`: see `minigrad_viz.wire`."""
        return wire.data(self, full)

    def json(self, full: bool = False) -> str:
        """`data` as one line of JSON."""
        return wire.text(self, full)


def to_trace(x: Any, *more: mg.Value, namespaces: Namespaces | None = None) -> Trace:
    """The trace of the graph that ends in `x`, a Value or several; a Trace is its own trace.

    Names come from labels, or else from `namespaces`, the variables of the caller if None. Nothing in the graph is
    changed. Raises DTypeError for what is not a Value.
    """
    return placed(x, *more, namespaces=namespaces)[0]


def placed(x: Any, *more: mg.Value, namespaces: Namespaces | None = None) -> tuple[Trace, dict[Any, int]]:
    """`to_trace`, and for each node of the graph its place in the trace; no places where `x` was a trace before."""
    made = x if isinstance(x, Trace) else getattr(x, "trace", None)
    if isinstance(made, Trace) and not more:
        return made, {}
    roots = _roots([*x, *more] if isinstance(x, list | tuple) else [x, *more])
    order = [value for value in mg.topological(roots) if isinstance(value, mg.Value)]
    names = names_of(order, callers() if namespaces is None else namespaces)
    trace = Trace()
    places: dict[Any, int] = {}
    scopes: dict[Any, int] = {}
    for value in order:
        _add(trace, places, scopes, value, names.get(value))
    handles = {handle(at) for at, node in enumerate(trace.nodes) if node.name is None and node.kind != "constant"}
    apart = told_apart([node.name for node in trace.nodes], handles)
    ops = [None if node.op is None else node.op.name for node in trace.nodes]
    edges = [(edge.operand, edge.result) for edge in trace.edges]
    trace.blocks, where = divide(trace.blocks, [node.block for node in trace.nodes], ops, edges)
    parts = zip(trace.nodes, apart, where, strict=True)
    trace.nodes = [node._replace(name=name, block=block) for node, name, block in parts]
    trace.outputs = list(dict.fromkeys(places[root] for root in roots))
    _run_backward(trace, places, list(dict.fromkeys(roots)))
    _raise_alarms(trace)
    return trace, places


def _roots(values: Iterable[Any]) -> list[mg.Value]:
    roots = list(values)
    for value in roots:
        if not isinstance(value, mg.Value):
            raise DTypeError(
                f"draw: {shorten(clean(repr(value)), 60)} is a {type(value).__name__}, not a Value.\n"
                "  Draw the result of a computation with mg.Value(…), or a list of such results."
            )
    if not roots:
        raise DTypeError("draw: there is nothing in this list.\n  Draw a Value, or a list of Values.")
    return roots


def _add(trace: Trace, places: dict[Any, int], scopes: dict[Any, int], value: mg.Value, name: str | None) -> None:
    """Append `value`, after the constants it was computed from, and its edges."""
    operands = []
    block = _block(trace, scopes, value.scope)
    for x in value.inputs:
        if isinstance(x, mg.Value):
            operands.append(places[x])
        else:
            operands.append(len(trace.nodes))
            trace.nodes.append(Node("constant", None, None, x, "blocked", None, clean(value.scope), None, block=block))
            trace.into.append(range(0))
    place = places[value] = len(trace.nodes)
    grad = None if value.grad is None else float(value.grad)
    state: Any = "blocked" if not value.requires_grad else "none" if grad is None else "final"
    kind: Any = "leaf" if value.op is None else "op"
    line = None if value.line is None else clean(_FOLDER.sub("", value.line))
    stale = bool(value.stale)
    static = value._note("static", {})
    attrs = {name: clean(static[name]) for name in value.op.attrs if name in static} if value.op and static else None
    scope = clean(value.scope)
    trace.nodes.append(Node(kind, value.op, name, value.data, state, grad, scope, line, stale, block, attrs))
    start = len(trace.edges)
    for slot, operand in enumerate(operands):
        flows = value.op is not None and value.op.vjp[slot] is not None and trace.nodes[operand].state != "blocked"
        trace.edges.append(Edge(operand, place, slot, flows, None))
    trace.into.append(range(start, len(trace.edges)))


def _block(trace: Trace, scopes: dict[Any, int], scope: Any) -> int:
    """The number of the block of `scope`, which is new if no node of it was seen yet."""
    way = []
    while scope and scopes.get(_key(scope)) is None:
        way.append(scope)
        scope = scope.outer if isinstance(scope, Scope) else None
    at = scopes[_key(scope)] if scope else 0
    for inner in reversed(way):
        trace.blocks.append(Block(clean(inner.name if isinstance(inner, Scope) else inner), at, "scope"))
        at = scopes[_key(inner)] = len(trace.blocks) - 1
    return at


def _key(scope: Any) -> Any:
    """What tells blocks apart: the entry of the scope, or, of a leaf from another process, its text."""
    return id(scope) if isinstance(scope, Scope) else scope


def _run_backward(trace: Trace, places: dict[Any, int], roots: list[mg.Value]) -> None:
    """Fill in the passes and the local derivatives; where the engine refuses, a note says so."""
    steps, refused = 0, False
    for at, root in enumerate(roots):
        if steps > _MOST_STEPS:
            text = f"The backward steps of the first {at:,} outputs are kept, of {len(roots):,}."
            trace.notes.append(Note("partial", None, text))
            refused |= not _run_together(trace, places, roots[at:])
            break
        try:
            events = mg.events(root)
        except GraphError:
            refused = True
            continue
        rows = []
        for event in events:
            index = _fill_in(trace, places, event)
            rows.append(Step(index, event.upstream, event.local, event.contribution, event.total))
        steps += len(rows)
        trace.passes.append(Pass(places[root], rows))
    _note_stale(trace, places, refused)


def _run_together(trace: Trace, places: dict[Any, int], roots: list[mg.Value]) -> bool:
    """Fill in the local derivatives on the way to `roots` by one pass from them all; whether the engine did."""

    def hear(event: mg.Event) -> None:
        _fill_in(trace, places, event)

    try:
        with untapped():
            propagate(dict.fromkeys(roots, 1.0), listeners=[hear])
    except GraphError:
        return False
    return True


def _fill_in(trace: Trace, places: dict[Any, int], event: mg.Event) -> int:
    """The number of the edge that `event` went over, which now has its local derivative."""
    index = trace.into[places[event.source]][event.slot]
    trace.edges[index] = trace.edges[index]._replace(local=event.local)
    return index


def _note_stale(trace: Trace, places: dict[Any, int], refused: bool) -> None:
    """Say which number was replaced too late, and what that did to the first node that had been computed from it."""
    stale = [value for value in places if value.stale]
    if not stale:
        return
    first = stale[0]
    at, late = places[first], dict.fromkeys(places[x] for x in first.stale)
    names = " and ".join(trace.title(place) for place in late)
    more = "" if len(stale) == 1 else f"; so it is with {_count(len(stale) - 1, 'more node', 'more nodes')}"
    text = (
        f"{names} {'was' if len(late) == 1 else 'were'} given another number after {trace.title(at)} was computed: "
        f"{_with_numbers(trace, at)} now, and {trace.title(at)} is still {pretty(first.data)}{more}. Compute again."
    )
    text += " Until then local derivatives are missing." if refused else ""
    trace.notes.append(Note("overwritten", at, text))


def _raise_alarms(trace: Trace) -> None:
    """Note the first number on the tape, and the first step back, that is not finite."""
    for index, node in enumerate(trace.nodes):
        if not math.isfinite(node.value):
            formula = trace.formula(index)
            origin = "a number that was put in" if formula is None else _with_numbers(trace, index)
            text = f"{trace.title(index)} is the first {_what(node.value)}: {origin}."
            trace.notes.append(Note("nan", index, text))
            break
    for root, steps in trace.passes:
        for step in steps:
            if not math.isfinite(step.contribution):
                edge = trace.edges[step.edge]
                product = f"{pretty(step.upstream)} × {pretty(step.local)} = {pretty(step.contribution)}"
                way = f"∂{trace.title(root)}/∂{trace.title(edge.operand)}, through {trace.title(edge.result)}"
                text = f"The first {_what(step.contribution)} on the way back is in {way}: {product}."
                trace.notes.append(Note("gradient", edge.operand, text))
                return


def _with_numbers(trace: Trace, index: int) -> str:
    op = trace.nodes[index].op
    assert op is not None
    values = [trace.nodes[trace.edges[edge].operand].value for edge in trace.into[index]]
    formula, numbers = plain(formula_of(op, trace.symbols(index))), plain(formula_of(op, values))
    return formula if formula == numbers else f"{formula} = {numbers}"


def _same(x: float, y: float) -> bool:
    return math.isclose(x, y, rel_tol=1e-9) or (math.isnan(x) and math.isnan(y))


def _what(x: float) -> str:
    return "NaN" if math.isnan(x) else "infinity"


def _count(n: int, one: str, many: str) -> str:
    return "" if not n else f"{n} {one if n == 1 else many}"
