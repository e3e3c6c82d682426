"""From a graph to its trace: which nodes there are, what they are called, and the backward passes through them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import minigrad as mg
from minigrad.core import graph
from minigrad.core.dispatch import untapped
from minigrad.core.errors import DTypeError
from minigrad.core.graph import Scope
from minigrad_viz.trace.alarms import raise_alarms
from minigrad_viz.trace.blocks import divide
from minigrad_viz.trace.calls import scopes_in
from minigrad_viz.trace.columns import Pass
from minigrad_viz.trace.modules import called, modules_of, paths_of, short_names
from minigrad_viz.trace.names import Namespaces, callers, names_of, told_apart
from minigrad_viz.trace.notation import clean, handle, shorten
from minigrad_viz.trace.rows import Block, Note
from minigrad_viz.trace.trace import Trace

__all__ = ["Builder", "placed", "to_trace"]

_FOLDER = re.compile(r"^.*?[/\\](?=[^/\\]*:\d+: )")  # of a source line: the same file lies elsewhere on each machine
_LIKE_HANDLE = re.compile("v[₀-₉]*")
_MOST_STEPS = 50_000  # of all backward passes together: thousands of outputs would take thousands of passes


def to_trace(x: Any, *more: Any, namespaces: Namespaces | None = None) -> Trace:
    """The trace of the graph that ends in `x`, a Value or a tensor or several of one kind; a Trace is its own trace.

    If `x` is a model, of what it computes when it is called with `more`; see `minigrad_viz.trace.models`.
    Names come from labels, or else from `namespaces`, the variables of the caller if None. Nothing in the graph is
    changed. Raises DTypeError for what is neither a Value nor a tensor.
    """
    return placed(x, *more, namespaces=namespaces)[0]


def placed(x: Any, *more: Any, namespaces: Namespaces | None = None) -> tuple[Trace, dict[Any, int]]:
    """`to_trace`, and for each node of the graph its place in the trace; no places where `x` was a trace before."""
    if hasattr(x, "named_modules"):  # a model, and what it is called with
        from minigrad_viz.trace.models import of_model

        return of_model(x, more, callers() if namespaces is None else namespaces)
    if hasattr(x, "captures"):  # a step of `mg.jit`
        from minigrad_viz.trace.recorded import of_step

        return of_step(x, callers() if namespaces is None else namespaces), {}
    made = x if isinstance(x, Trace) else getattr(x, "trace", None)
    if isinstance(made, Trace) and not more:
        return made, {}
    roots = _roots([*x, *more] if isinstance(x, list | tuple) else [x, *more])
    spaces = callers() if namespaces is None else namespaces
    if isinstance(roots[0], mg.Value):
        return _of_values(roots, spaces)
    from minigrad_viz.trace.tensors import of_tensors  # which needs NumPy

    return of_tensors(roots, spaces)


def _roots(values: Iterable[Any]) -> list[Any]:
    roots = list(values)
    for value in roots:
        if not (isinstance(value, mg.Value) or (isinstance(value, graph.Node) and hasattr(value, "grad_fn"))):
            kind = type(value).__name__
            article = "an" if kind[0].lower() in "aeiou" else "a"
            raise DTypeError(
                f"draw: {shorten(clean(repr(value)), 60)} is {article} {kind}, not a Value or a tensor.\n"
                "  Draw the result of a computation with mg.Value(…) or mg.tensor(…), or a list of such results."
            )
    if not roots:
        raise DTypeError("draw: there is nothing in this list.\n  Draw a Value or a tensor, or a list of them.")
    if len({isinstance(value, mg.Value) for value in roots}) > 1:
        raise DTypeError("draw: there are Values and tensors in this list, which no graph joins.\n  Draw them apart.")
    return list(dict.fromkeys(roots))


class Builder:
    """A trace in the making: its places by node, by op and by scope."""

    def __init__(self) -> None:
        self.trace = Trace()
        self.places: dict[Any, int] = {}
        self.ops: dict[mg.Op, int] = {}
        self._scopes: dict[Any, int] = {}
        self._lines: dict[str, str] = {}

    def add(self, kind: str, op: mg.Op | None, value: float | None, state: str, block: int) -> int:
        """Append a node whose edges are there; where it is."""
        trace = self.trace
        trace.kinds.append(kind)
        trace.op.append(-1 if op is None else self.ops[op] if op in self.ops else self.new_op(op))
        trace.values.append(value)
        trace.states.append(state)
        trace.block.append(block)
        trace.start.append(len(trace.operand))
        return len(trace.kinds) - 1

    def lead(self, operands: dict[int, int], flows: Sequence[bool]) -> None:
        """Append the edges from `operands`, by slot, to the node that is added next."""
        trace, count = self.trace, len(operands)
        trace.operand.extend(operands.values())
        trace.result.extend([len(trace.kinds)] * count)
        trace.slot.extend(operands)
        trace.flows.extend(flows)
        trace.local.extend([None] * count)

    def line(self, place: int, line: str) -> None:
        """Note the source line of a node, without its folder."""
        if line not in self._lines:
            self._lines[line] = clean(_FOLDER.sub("", line))
        self.trace.lines[place] = self._lines[line]

    def new_op(self, op: mg.Op) -> int:
        """Append an operation that no node had yet; where it is."""
        self.trace.ops.append(op)
        self.ops[op] = len(self.ops)
        return self.ops[op]

    def block(self, scope: Any) -> int:
        """The number of the block of `scope`, which is new if no node of it was seen yet."""
        way = []
        while scope and _key(scope) not in self._scopes:
            way.append(scope)
            scope = scope.outer if isinstance(scope, Scope) else None
        at = self._scopes[_key(scope)] if scope else 0
        for inner in reversed(way):
            name = inner.name if isinstance(inner, Scope) else inner
            module = inner.module if isinstance(inner, Scope) else None
            name = name if module is None else name.lstrip("_")  # of a private class
            at = self._scopes[_key(inner)] = self.enter(name, "", at, module)
        return at

    def enter(self, name: str, note: str, outer: int, module: Any = None) -> int:
        """The number of a new block in block `outer`."""
        self.trace.blocks.append(Block(clean(name), outer, "scope", module=module, note=note))
        return len(self.trace.blocks) - 1

    def names(self, known: Mapping[Any, str], namespaces: Namespaces) -> list[str | None]:
        """What each node is called: as `known` says, or a parameter of a module by its path in that; and outermost
        modules as their variables are."""
        self.trace.blocks = called(self.trace.blocks, namespaces)
        names: list[str | None] = [None] * len(self.trace.kinds)
        for node, name in {**known, **paths_of(self.trace.blocks, known)}.items():
            if node in self.places:
                names[self.places[node]] = name
        return names

    def finish(
        self, names: Sequence[str | None], outputs: Sequence[int], inputs: Collection[int] | None = None
    ) -> None:
        """Give the nodes their names, and say where the outputs are, and which leaves are given from outside."""
        trace = self.trace
        handles = set()
        if any(name and _LIKE_HANDLE.fullmatch(name) for name in names):
            handles = {handle(at) for at, name in enumerate(names) if name is None and trace.kinds[at] != "c"}
        trace.names = told_apart(names, handles)
        trace.outputs = list(dict.fromkeys(outputs))
        ops = [None if at < 0 else trace.ops[at].name for at in trace.op]
        edges = list(zip(trace.operand, trace.result, strict=True))
        given = self._inputs(names) if inputs is None else inputs
        trace.blocks, trace.block = divide(trace.blocks, trace.block, ops, edges, given)
        trace.modules = modules_of(trace.blocks)
        trace.short = short_names(trace)
        trace.scopes = [""]
        for block in trace.blocks[1:]:
            parts = (trace.scopes[block.outer], block.name if block.kind == "scope" else "")
            trace.scopes.append("/".join(filter(None, parts)))

    def _inputs(self, names: Sequence[str | None]) -> set[int]:
        """The leaves that are given from outside: those with a name that need no gradient, and, where there are
        modules, all that have a name and are no parameters of these."""
        modules = {id(block.module): block.module for block in self.trace.blocks if block.module is not None}.values()
        own = {self.places.get(x) for module in modules for x in module.parameters()}
        kinds, states = self.trace.kinds, self.trace.states
        named = [at for at, name in enumerate(names) if name and kinds[at] == "l"]
        return {at for at in named if states[at] == "b" or (modules and at not in own)}


def _key(scope: Any) -> Any:
    """What tells blocks apart: the entry of the scope, or, of a leaf from another process, its text."""
    return id(scope) if isinstance(scope, Scope) else scope


# --- Values ----------------------------------------------------------------------------------------------------------


def _of_values(roots: list[mg.Value], namespaces: Namespaces) -> tuple[Trace, dict[Any, int]]:
    builder = Builder()
    order: list[Any] = mg.topological(roots)
    static: dict[int, Any] = {}
    _add_values(builder, order, static)
    trace = builder.trace
    builder.finish(builder.names(names_of(order, namespaces), namespaces), [builder.places[root] for root in roots])
    with untapped():
        refused = _fill_locals(trace, static)
        _run_backward(trace, static, refused)
    raise_alarms(trace)
    return trace, builder.places


def _add_values(builder: Builder, order: Sequence[Any], static: dict[int, Any]) -> None:
    """Append each Value, after the constants it was computed from, and its edges: `Builder.add` in one loop."""
    trace, places, ops = builder.trace, builder.places, builder.ops
    kinds, states, start, scopes = trace.kinds, trace.states, trace.start, scopes_in(order)
    operand, flows, slots, result = trace.operand, trace.flows, trace.slot, trace.result
    for value in order:
        op, needs = value._op, value._requires_grad
        more = getattr(value, "_more", None)
        block = builder.block(scopes[value]) if value in scopes else 0
        if op is not None:
            inputs = value._inputs
            sources = [builder.add("c", None, x, "b", block) if x.__class__ is float else places[x] for x in inputs]
            operand += sources
            slots += range(len(sources))
            rules = op.rules_for(len(sources))
            flows += [needs and rule is not None and states[at] != "b" for at, rule in zip(sources, rules, strict=True)]
            place = len(kinds)
            result += [place] * len(inputs)
            at = ops.get(op)
            trace.op.append(builder.new_op(op) if at is None else at)
            kinds.append("o")
        else:
            place = len(kinds)
            trace.op.append(-1)
            kinds.append("l")
        places[value] = place
        grad = value.grad
        states.append("b" if not needs else "n" if grad is None else "f")
        trace.values.append(value._data)
        trace.block.append(block)
        start.append(len(operand))
        if grad is not None:
            trace.grads[place] = float(grad)
        if more:
            _add_more(builder, place, more, static)
        if op is not None and (late := value.stale):
            trace.late[place] = [places[x] for x in dict.fromkeys(late)]
    trace.local = [None] * len(operand)


def _add_more(builder: Builder, place: int, more: Mapping[str, Any], static: dict[int, Any]) -> None:
    """What few Values have: the line that made it, attributes."""
    if "line" in more:
        builder.line(place, more["line"])
    if "static" in more:
        kept = static[place] = more["static"]
        op = builder.trace.ops[builder.trace.op[place]]
        if op.attrs:
            builder.trace.attrs[place] = {name: kept[name] for name in op.attrs}


def _fill_locals(trace: Trace, static: dict[int, Any]) -> set[int]:
    """Compute the local derivatives; which edges have none, since their rule reads a number that was replaced."""
    refused = set()
    values, local, start = trace.values, trace.local, trace.start
    for node, at in enumerate(trace.op):
        if at < 0:
            continue
        op, first, last = trace.ops[at], start[node], start[node + 1]
        y, given = values[node], [values[x] for x in trace.operand[first:last]]
        rules, kept = op.rules_for(last - first), static.get(node, {})
        plain: tuple[Any, ...] = op.plain or ()
        replaced = trace.late.get(node, ())
        late = (
            [op.inputs[trace.slot[e]] for e in range(first, last) if trace.operand[e] in replaced] if replaced else ()
        )
        for edge in range(first, last):
            if not trace.flows[edge]:
                continue
            slot = trace.slot[edge]
            if late and not op.reads[slot].isdisjoint(late):
                refused.add(edge)
            else:
                local[edge] = (
                    plain[slot](1.0, y, *given) if plain else op.products([slot], rules, 1.0, y, *given, **kept)[0]
                )
    return refused


def _run_backward(trace: Trace, static: dict[int, Any], refused: set[int]) -> None:
    """Fill in a pass from each output; where a rule needs a number that was replaced, there is none."""
    steps = 0
    for done, root in enumerate(trace.outputs):
        if steps > _MOST_STEPS:
            text = f"The backward steps of the first {done:,} outputs are kept, of {len(trace.outputs):,}."
            trace.notes.append(Note("partial", None, text))
            return
        if trace.states[root] == "b":
            trace.passes.append(Pass(root, trace))
        elif (run := _pass_from(trace, root, static, refused)) is not None:
            trace.passes.append(run)
            steps += len(run.edge)


def _pass_from(trace: Trace, root: int, static: dict[int, Any], refused: set[int]) -> Pass | None:
    """The backward pass from `root`, in reverse tape order: `graph.propagate` unrolled on the columns, for speed.

    Tests hold it to the numbers of the engine. None where it has to go over an edge in `refused`.
    """
    run = Pass(root, trace)
    totals: list[float | None] = [None] * (root + 1)
    totals[root] = 1.0
    values, start, operand, flows, slots = trace.values, trace.start, trace.operand, trace.flows, trace.slot
    for node in range(root, -1, -1):
        upstream, at = totals[node], trace.op[node]
        if upstream is None or at < 0:
            continue
        op, first, last = trace.ops[at], start[node], start[node + 1]
        y, given = values[node], [values[x] for x in operand[first:last]]
        rules, kept = op.rules_for(last - first), static.get(node, {})
        plain: tuple[Any, ...] = op.plain or ()
        for edge in range(first, last):
            if not flows[edge]:
                continue
            if edge in refused:
                return None
            if not plain:
                product = op.products([slots[edge]], rules, upstream, y, *given, **kept)[0]
            else:
                product = plain[slots[edge]](upstream, y, *given)
            if product is None:
                continue
            target = operand[edge]
            total = totals[target]
            totals[target] = total = product if total is None else total + product
            run.edge.append(edge)
            run.upstream.append(upstream)
            run.contribution.append(product)
            run.total.append(total)
    return run
