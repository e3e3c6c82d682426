"""Compare two runs of one graph: which values and gradients differ, and where the first difference originates.

Nodes are matched in tape order. A value is wrong if it differs although its operands agree. A gradient is wrong if it
differs although everything it depends on agrees: the incoming gradients and the values that the rules read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from minigrad.core.errors import ArgumentError
from minigrad_viz.trace.gaps import TOLERANCES, Gap, Tolerance, gap, share, times
from minigrad_viz.trace.matching import matched
from minigrad_viz.trace.notation import compact, plain, pretty
from minigrad_viz.trace.trace import Trace

__all__ = ["Differences", "differences", "scalar"]

_EXACT = Tolerance(0.0, 0.0)
_LONGEST = 60  # characters of a name in a sentence


@dataclass
class Differences:
    """The differences between two traces of one graph: `values` and `grads` by node, `edges` by edge, for the local
    derivative or the contribution. `common` is the graph with the values of the first run.
    """

    first: Trace
    second: Trace
    common: Trace
    rtol: float | None
    atol: float | None
    values: dict[int, Gap] = field(default_factory=dict)
    grads: dict[int, Gap] = field(default_factory=dict)
    edges: dict[int, Gap] = field(default_factory=dict)
    unknown: set[int] = field(default_factory=set)
    """The nodes whose values one of the runs did not save."""
    gradients: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    """The compared gradients by node; None in a run that has none."""

    @property
    def nodes(self) -> list[int]:
        """The nodes whose value or gradient differs."""
        return sorted(self.values.keys() | self.grads.keys())

    def held(self, node: int) -> tuple[Any, Any]:
        """Return the values of a node in both runs: floats, arrays, or None."""
        return _held(self.first, node), _held(self.second, node)

    def gradient(self, node: int) -> tuple[Any, Any]:
        """Return the gradients of a node in both runs, or the ``.grad`` of each if they were not compared."""
        return self.gradients.get(node, (self.first.grads.get(node), self.second.grads.get(node)))

    def tolerance(self, node: int) -> Tolerance:
        """Return the tolerance for the elements of a node: of two dtypes, that of the coarser one."""
        usual = max(TOLERANCES.get(_dtype(trace, node), _EXACT) for trace in (self.first, self.second))
        given = self.rtol, self.atol
        return Tolerance(*(x if x is not None else by_dtype for x, by_dtype in zip(given, usual, strict=True)))

    # --- the origin of the first difference ---

    @property
    def first_value(self) -> int | None:
        """The first node in tape order whose value differs."""
        return min(self.values, default=None)

    @property
    def first_operation(self) -> int | None:
        """The first operation whose value differs although its operands agree."""
        made = (node for node in sorted(self.values) if self.common.op[node] >= 0)
        return next((node for node in made if self._agree(self._operands(node))), None)

    @property
    def first_gradient(self) -> int | None:
        """The first node in backward order whose gradient differs although everything it depends on agrees."""
        return next((node for node in sorted(self.grads, reverse=True) if not self._follows(node)), None)

    @cached_property
    def ways(self) -> dict[int, list[int]]:
        """By node, the edges over which its gradient arrives in at least one run."""
        found: dict[int, list[int]] = {}
        for edge, operand in enumerate(self.common.operand):
            if self.first.flows[edge] or self.second.flows[edge]:
                found.setdefault(operand, []).append(edge)
        return found

    def blamed(self, node: int) -> list[int]:
        """Return the nodes whose rules contributed differing gradients to a node."""
        return list(dict.fromkeys(self.common.result[edge] for edge in self.ways.get(node, ()) if edge in self.edges))

    def _operands(self, node: int) -> list[int]:
        return self.common.operand[self.common.start[node] : self.common.start[node + 1]]

    def _agree(self, nodes: Iterable[int]) -> bool:
        """Whether the values of these nodes are known and agree."""
        return not any(node in self.values or node in self.unknown for node in nodes)

    def _follows(self, node: int) -> bool:
        """Whether the gradient of a node depends on a value or gradient that differs."""
        results = [self.common.result[edge] for edge in self.ways.get(node, ())]
        return any(at in self.grads or not self.values.keys().isdisjoint((at, *self._operands(at))) for at in results)

    # --- sentences ---

    def headline(self) -> str:
        """Return how many nodes differ, and beyond which tolerance."""
        within, nodes, count = self._within(), len(self.common.kinds), len(self.nodes)
        if not count:
            compared = f"{_count(nodes - len(self.unknown), 'value')} and {_count(len(self.gradients), 'gradient')}"
            return f"No difference: {compared} agree{f' within {within}' if within else ''}."
        what = [_count(len(gaps), name) for gaps, name in ((self.values, "value"), (self.grads, "gradient")) if gaps]
        beyond = f", beyond {within}" if within else ""
        return f"{count:,} of {_count(nodes, 'node')} differ{'s' if count == 1 else ''}: {' and '.join(what)}{beyond}."

    def _within(self) -> str:
        """Return the tolerance, for each dtype if there are several."""
        found = {}
        for node in self.common.tensors or range(len(self.common.kinds)):  # constants have no dtype
            dtypes = [_dtype(trace, node) for trace in (self.first, self.second)]
            found[max(dtypes, key=lambda name: TOLERANCES.get(name, _EXACT))] = self.tolerance(node)
        floats = {dtype: tolerance for dtype, tolerance in found.items() if tolerance != _EXACT}
        if len(set(floats.values())) < 2:
            return "".join(map(str, list(floats.values())[:1]))
        return "; ".join(f"{tolerance} of {dtype}" for dtype, tolerance in floats.items())

    def findings(self) -> list[str]:
        """Return the findings that the user should look at next, in a sentence or two each, and what could not be
        compared.
        """
        return [*self._about_values(), *self._about_gradients(), *self._about_the_unknown()]

    def _about_values(self) -> Iterator[str]:
        first, operation = self.first_value, self.first_operation
        if first is None:
            return
        made = f"{self._made(first)}: {self._both(self.held(first), self.values[first])}"
        if self.common.op[first] >= 0:
            yield f"The first value that differs, in tape order: {made}.{self._attributes(first)}"
            return
        yield f"The first value that differs, in tape order, is an input: {made}."
        if operation is not None:
            gap = self.values[operation]
            made = f"{self._made(operation)}: {self._both(self.held(operation), gap)}"
            yield f"The first that differs although its operands agree: {made}.{self._attributes(operation)}"

    def _about_gradients(self) -> Iterator[str]:
        if not self.grads:
            return
        node = self.first_gradient
        if node is None:
            yield "Each gradient that differs follows from values or gradients before it that differ."
            return
        said = f"{self.common.title(node, _LONGEST)}: {self._both(self.gradients[node], self.grads[node])}"
        if any(self.common.result[edge] not in self.gradients for edge in self.ways.get(node, ())):
            yield f"The first gradient that differs, in backward order: {said}. The gradients before it were not saved."
            return
        lead = "The first gradient, in backward order, that differs although everything it is computed from agrees"
        yield f"{lead}: {said}. {self._why(node)}"

    def _why(self, node: int) -> str:
        blocked = [run.states[node] == "b" for run in (self.first, self.second)]
        if blocked[0] != blocked[1]:
            which = "first" if blocked[0] else "second"
            return f"In the {which} run no gradient arrives there: look for requires_grad, detach() and no_grad()."
        if results := self.blamed(node):
            rules = " and ".join(
                f"{self._rule(at)}, which computed {self.common.title(at, _LONGEST)}" for at in results
            )
            return f"Look at the gradient rule of {rules}."
        if not self.ways.get(node):
            return "The backward pass started there, with another gradient or more than once."
        return (
            "One backward pass gives it the same gradient in both: something else was added. Is a zero_grad() missing?"
        )

    def _about_the_unknown(self) -> Iterator[str]:
        if self.unknown:
            which = f"{_count(len(self.unknown), 'value')} could not be compared (not saved by both runs)"
            yield f"{which}: build both inside `with mg.record():`."
        if not self.gradients and any(state != "b" for trace in (self.first, self.second) for state in trace.states):
            yield "No gradient was compared: both runs need a .grad, or a graph that backward() did not free."

    def _made(self, node: int) -> str:
        formula = self.common.formula(node, _LONGEST)
        return self.common.title(node, _LONGEST) + ("" if formula is None else f" = {plain(formula)}")

    def _rule(self, node: int) -> str:
        """Return the names of the operations whose rules these are."""
        one, other = (trace.ops[trace.op[node]].name for trace in (self.first, self.second))
        return one if one == other else f"{one} (first run) or {other} (second run)"

    def _attributes(self, node: int) -> str:
        """Describe the attributes of an operation that differ between the runs."""
        one, other = self.first.nodes[node].attrs, self.second.nodes[node].attrs
        said = [
            f"{k} = {one.get(k, '—')} | {other.get(k, '—')}" for k in {**one, **other} if one.get(k) != other.get(k)
        ]
        return f" It was called with {', '.join(said)}." if said else ""

    def _both(self, pair: tuple[Any, Any], gap: Gap) -> str:
        """Format two numbers, or the distance of two arrays."""
        if pair[0] is None or pair[1] is None:
            return f"only in the {'second' if pair[0] is None else 'first'} run"
        said = f"{gap.cells:,} of {gap.size:,} elements, by {compact(gap.amount)} at most"
        if gap.size == 1:
            said = " | ".join(pretty(scalar(x)) for x in pair)
        return f"{said} (≠ {', '.join(filter(None, [share(gap), times(gap)]))})"


def scalar(x: Any) -> float | None:
    """Return `x` if it is a float, or the element of a one-element array; None otherwise."""
    if x is None or isinstance(x, float):
        return x
    return float(x.reshape(-1)[0]) if x.size == 1 else None


def _count(n: int, name: str) -> str:
    return f"{n:,} {name}{'' if n == 1 else 's'}"


# --- from two traces -------------------------------------------------------------------------------------------------


def differences(first: Trace, second: Trace, rtol: float | None = None, atol: float | None = None) -> Differences:
    """Return the differences between two runs of one graph.

    Raises ArgumentError if the graphs differ, for steps of `mg.jit`, and for negative tolerances.

    >>> import minigrad as mg
    >>> from minigrad_viz import to_trace
    >>> runs = [to_trace(mg.Value(2.0, "a") * mg.Value(b, "b")) for b in (3.0, 4.0)]
    >>> found = differences(*runs)
    >>> found.nodes, found.first_value, found.values[2].amount
    ([0, 1, 2], 1, 2.0)
    """
    for name, x in (("rtol", rtol), ("atol", atol)):
        if x is not None and not x >= 0:
            raise ArgumentError(f"compare: {name}={x!r} is not a tolerance.\n  Pass 0 or more, or omit it.")
    if first.how or second.how:
        raise ArgumentError("compare: a captured step saves no values.\n  Compare its results of two runs.")
    second = matched(first, second)
    taken = set(first.names)
    pairs = zip(first.names, second.names, strict=True)
    names = [one or (other if other not in taken else None) for one, other in pairs]
    found = Differences(first, second, replace(first, names=names), rtol, atol)
    for node in range(len(first.kinds)):
        one, other = found.held(node)
        if one is None or other is None:
            found.unknown.add(node)
        elif (apart := gap(one, other, found.tolerance(node))) is not None:
            found.values[node] = apart
    _compare_gradients(found)
    _compare_edges(found)
    return found


def _compare_gradients(found: Differences) -> None:
    """Compare the ``.grad`` of each node in both runs, or else the gradients of one pass from each output."""
    first, second = found.first, found.second
    one, other = _totals(first), _totals(second)
    for node in range(len(first.kinds)):
        pair = first.grads.get(node), second.grads.get(node)
        if pair[0] is None or pair[1] is None:
            pair = (None, None) if one is None or other is None else (one.get(node), other.get(node))
        if pair[0] is None and pair[1] is None:
            continue
        found.gradients[node] = pair
        if (apart := gap(*pair, found.tolerance(node))) is not None:
            found.grads[node] = apart


def _totals(trace: Trace) -> dict[int, Any] | None:
    """Return the gradients accumulated by one pass from each output; None if one of these passes is unknown."""
    if {run.root for run in trace.passes} != set(trace.outputs):
        return None
    found: dict[int, Any] = {}
    for run in trace.passes:
        if trace.states[run.root] == "b":
            continue
        begin = run.upstream[0] if run.edge else 1.0
        for node, total in (trace.totals(run) | {run.root: begin}).items():
            found[node] = total if node not in found else found[node] + total
    return found


def _compare_edges(found: Differences) -> None:
    """Compare the local derivative of each edge, and its contributions in the passes that both runs have."""
    first, second = found.first, found.second
    for edge, (one, other) in enumerate(zip(first.local, second.local, strict=True)):
        apart = gap(one, other, found.tolerance(first.result[edge])) if one is not None and other is not None else None
        if apart is not None:
            found.edges[edge] = apart
    others = {run.root: run for run in second.passes}
    for run in first.passes:
        if run.root in others:
            ways = [dict(zip(way.edge, way.contribution, strict=True)) for way in (run, others[run.root])]
            for edge in ways[0] | ways[1]:
                apart = gap(ways[0].get(edge), ways[1].get(edge), found.tolerance(first.operand[edge]))
                if apart is not None:
                    found.edges[edge] = apart


def _held(trace: Trace, node: int) -> Any:
    shaped = trace.tensors.get(node)
    if shaped is None or (shaped.array is None and trace.values[node] is not None):
        return trace.values[node]
    return shaped.array


def _dtype(trace: Trace, node: int) -> str:
    shaped = trace.tensors.get(node)
    return "float64" if shaped is None else shaped.dtype
