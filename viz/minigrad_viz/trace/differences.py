"""Two runs of one graph: which values and gradients differ, and where the first difference comes from.

Nodes are matched by their places in tape order. A value is wrong where it differs though its operands agree; a gradient
where it differs though everything agrees that it is computed from: the gradients that come in, and the values that the
rules may read.
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
_LONGEST = 60  # letters of a name in a sentence


@dataclass
class Differences:
    """Where two traces of one graph differ: `values` and `grads` by node, `edges` by edge, of the local derivative or
    of what goes back over it. `common` is the graph, with the numbers of the first.
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
    """The nodes whose values one of the runs did not keep."""
    gradients: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    """The gradients that were compared, by node; None in a run where none gets there."""

    @property
    def nodes(self) -> list[int]:
        """The nodes of which the value or the gradient differs."""
        return sorted(self.values.keys() | self.grads.keys())

    def held(self, node: int) -> tuple[Any, Any]:
        """The values of a node in the two runs: floats, arrays, or None."""
        return _held(self.first, node), _held(self.second, node)

    def gradient(self, node: int) -> tuple[Any, Any]:
        """The gradients of a node in the two runs; if they were not compared, what ``.grad`` holds."""
        return self.gradients.get(node, (self.first.grads.get(node), self.second.grads.get(node)))

    def tolerance(self, node: int) -> Tolerance:
        """Beyond what the numbers of a node differ: of two dtypes the coarser counts."""
        usual = max(TOLERANCES.get(_dtype(trace, node), _EXACT) for trace in (self.first, self.second))
        given = self.rtol, self.atol
        return Tolerance(*(x if x is not None else by_dtype for x, by_dtype in zip(given, usual, strict=True)))

    # --- where the first difference comes from ---

    @property
    def first_value(self) -> int | None:
        """The first node in tape order whose value differs."""
        return min(self.values, default=None)

    @property
    def first_operation(self) -> int | None:
        """The first operation whose value differs though its operands agree."""
        made = (node for node in sorted(self.values) if self.common.op[node] >= 0)
        return next((node for node in made if self._agree(self._operands(node))), None)

    @property
    def first_gradient(self) -> int | None:
        """The first node in backward order whose gradient differs though all agrees that it is computed from."""
        return next((node for node in sorted(self.grads, reverse=True) if not self._follows(node)), None)

    @cached_property
    def ways(self) -> dict[int, list[int]]:
        """For each node the edges over which its gradient arrives, in one run at least."""
        found: dict[int, list[int]] = {}
        for edge, operand in enumerate(self.common.operand):
            if self.first.flows[edge] or self.second.flows[edge]:
                found.setdefault(operand, []).append(edge)
        return found

    def blamed(self, node: int) -> list[int]:
        """The nodes whose rules brought the gradient of a node other contributions."""
        return list(dict.fromkeys(self.common.result[edge] for edge in self.ways.get(node, ()) if edge in self.edges))

    def _operands(self, node: int) -> list[int]:
        return self.common.operand[self.common.start[node] : self.common.start[node + 1]]

    def _agree(self, nodes: Iterable[int]) -> bool:
        """Whether it is known that the values of these nodes agree."""
        return not any(node in self.values or node in self.unknown for node in nodes)

    def _follows(self, node: int) -> bool:
        """Whether something differs that the gradient of a node is computed from."""
        results = [self.common.result[edge] for edge in self.ways.get(node, ())]
        return any(at in self.grads or not self.values.keys().isdisjoint((at, *self._operands(at))) for at in results)

    # --- in words ---

    def headline(self) -> str:
        """How many nodes differ, and beyond which tolerance."""
        within, nodes, count = self._within(), len(self.common.kinds), len(self.nodes)
        if not count:
            compared = f"{_count(nodes - len(self.unknown), 'value')} and {_count(len(self.gradients), 'gradient')}"
            return f"No difference: {compared} agree{f' within {within}' if within else ''}."
        what = [_count(len(gaps), name) for gaps, name in ((self.values, "value"), (self.grads, "gradient")) if gaps]
        beyond = f", beyond {within}" if within else ""
        return f"{count:,} of {_count(nodes, 'node')} differ{'s' if count == 1 else ''}: {' and '.join(what)}{beyond}."

    def _within(self) -> str:
        """The tolerance, for each dtype if there are several."""
        found = {}
        for node in self.common.tensors or range(len(self.common.kinds)):  # beside tensors, constants are of no dtype
            dtypes = [_dtype(trace, node) for trace in (self.first, self.second)]
            found[max(dtypes, key=lambda name: TOLERANCES.get(name, _EXACT))] = self.tolerance(node)
        floats = {dtype: tolerance for dtype, tolerance in found.items() if tolerance != _EXACT}
        if len(set(floats.values())) < 2:
            return "".join(map(str, list(floats.values())[:1]))
        return "; ".join(f"{tolerance} of {dtype}" for dtype, tolerance in floats.items())

    def findings(self) -> list[str]:
        """What a user should look at next, a sentence or two each; and what could not be compared."""
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
            yield f"The first that differs though its operands agree: {made}.{self._attributes(operation)}"

    def _about_gradients(self) -> Iterator[str]:
        if not self.grads:
            return
        node = self.first_gradient
        if node is None:
            yield "Each gradient that differs follows from values or gradients before it that differ."
            return
        said = f"{self.common.title(node, _LONGEST)}: {self._both(self.gradients[node], self.grads[node])}"
        if any(self.common.result[edge] not in self.gradients for edge in self.ways.get(node, ())):
            yield f"The first gradient that differs, in backward order: {said}. Those before it were not kept."
            return
        lead = "The first gradient, in backward order, that differs although all that it is computed from agrees"
        yield f"{lead}: {said}. {self._why(node)}"

    def _why(self, node: int) -> str:
        blocked = [run.states[node] == "b" for run in (self.first, self.second)]
        if blocked[0] != blocked[1]:
            which = "first" if blocked[0] else "second"
            return f"In the {which} run no gradient gets there: look for requires_grad, detach() and no_grad()."
        if results := self.blamed(node):
            rules = " and ".join(f"{self._rule(at)}, which made {self.common.title(at, _LONGEST)}" for at in results)
            return f"Look at the gradient rule of {rules}."
        if not self.ways.get(node):
            return "The backward pass began there, with another gradient or more than once."
        return "One backward pass brings it the same in both: something else was added. Is a zero_grad() missing?"

    def _about_the_unknown(self) -> Iterator[str]:
        if self.unknown:
            which = f"{_count(len(self.unknown), 'value')} could not be compared, being kept by one run or none"
            yield f"{which}: build both inside `with mg.record():`."
        if not self.gradients and any(state != "b" for trace in (self.first, self.second) for state in trace.states):
            yield "No gradient was compared: both runs need a .grad, or a graph that backward() did not free."

    def _made(self, node: int) -> str:
        formula = self.common.formula(node, _LONGEST)
        return self.common.title(node, _LONGEST) + ("" if formula is None else f" = {plain(formula)}")

    def _rule(self, node: int) -> str:
        """The operations whose rules they are."""
        one, other = (trace.ops[trace.op[node]].name for trace in (self.first, self.second))
        return one if one == other else f"{one} (first run) or {other} (second run)"

    def _attributes(self, node: int) -> str:
        """Attributes of the operation that are not the same in both runs."""
        one, other = self.first.nodes[node].attrs, self.second.nodes[node].attrs
        said = [
            f"{k} = {one.get(k, '—')} | {other.get(k, '—')}" for k in {**one, **other} if one.get(k) != other.get(k)
        ]
        return f" It was called with {', '.join(said)}." if said else ""

    def _both(self, pair: tuple[Any, Any], gap: Gap) -> str:
        """Two numbers side by side, or how far two arrays are apart."""
        if pair[0] is None or pair[1] is None:
            return f"only in the {'second' if pair[0] is None else 'first'} run"
        said = f"{gap.cells:,} of {gap.size:,} elements, by {compact(gap.amount)} at most"
        if gap.size == 1:
            said = " | ".join(pretty(scalar(x)) for x in pair)
        return f"{said} (≠ {', '.join(filter(None, [share(gap), times(gap)]))})"


def scalar(x: Any) -> float | None:
    """The float that is given, or the one in an array of one element; None for other arrays, and for None."""
    if x is None or isinstance(x, float):
        return x
    return float(x.reshape(-1)[0]) if x.size == 1 else None


def _count(n: int, name: str) -> str:
    return f"{n:,} {name}{'' if n == 1 else 's'}"


# --- from two traces -------------------------------------------------------------------------------------------------


def differences(first: Trace, second: Trace, rtol: float | None = None, atol: float | None = None) -> Differences:
    """Where two runs of one graph differ.

    Raises ArgumentError where they are not of one graph, for recorded steps, and for tolerances below 0.

    >>> import minigrad as mg
    >>> from minigrad_viz import to_trace
    >>> runs = [to_trace(mg.Value(2.0, "a") * mg.Value(b, "b")) for b in (3.0, 4.0)]
    >>> found = differences(*runs)
    >>> found.nodes, found.first_value, found.values[2].amount
    ([0, 1, 2], 1, 2.0)
    """
    for name, x in (("rtol", rtol), ("atol", atol)):
        if x is not None and not x >= 0:
            raise ArgumentError(f"compare: {name}={x!r} is not a tolerance.\n  Give 0 or more, or leave it out.")
    if first.how or second.how:
        raise ArgumentError("compare: a recorded step keeps no numbers.\n  Compare what it returns in two runs.")
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
    """Of each node what ``.grad`` holds in both runs; or else what one pass from each output brings in both."""
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
    """The gradients that one pass from each output brings together; None where one of these passes is not known."""
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
    """Of each edge the local derivative; and what goes back over it in the passes that both runs have."""
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
