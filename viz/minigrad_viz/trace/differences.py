"""Compare two runs of one graph: which values and gradients differ, and where the first difference originates.

Nodes are matched in tape order. A value is wrong if it differs although its operands agree. A gradient is wrong if it
differs although everything it depends on agrees: the incoming gradients and the values that the gradient rules read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from minigrad.core.errors import ArgumentError
from minigrad_viz.trace.gaps import TOLERANCES, Gap, Tolerance, describe_factor, format_ratio, gap
from minigrad_viz.trace.matching import match_traces
from minigrad_viz.trace.notation import format_compact, format_pretty, formula_text
from minigrad_viz.trace.trace import Trace

__all__ = ["Differences", "differences", "scalar"]

_EXACT = Tolerance(0.0, 0.0)
MAX_NAME_LENGTH = 60  # maximum length of a name in a sentence


@dataclass
class Differences:
    """The differences between two traces of one graph.

    `values` and `grads` contain the differences by node, and `edges` those of local derivatives or contributions by
    edge. `common` is the graph with the values of the first run.
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
    """The compared gradients by node; None for a run without a gradient."""

    @property
    def nodes(self) -> list[int]:
        """The nodes whose value or gradient differs."""
        return sorted(self.values.keys() | self.grads.keys())

    def values_of(self, node: int) -> tuple[Any, Any]:
        """Return the values of a node in both runs: floats, arrays, or None."""
        return _value_of(self.first, node), _value_of(self.second, node)

    def gradient(self, node: int) -> tuple[Any, Any]:
        """Return the gradients of a node in both runs, or the ``.grad`` of each if they were not compared."""
        return self.gradients.get(node, (self.first.grads.get(node), self.second.grads.get(node)))

    def tolerance(self, node: int) -> Tolerance:
        """Return the tolerance for the elements of a node. If the dtypes differ, it is that of the less precise one."""
        default = max(TOLERANCES.get(_dtype(trace, node), _EXACT) for trace in (self.first, self.second))
        overrides = self.rtol, self.atol
        return Tolerance(*(x if x is not None else by_dtype for x, by_dtype in zip(overrides, default, strict=True)))

    # --- the origin of the first difference ---

    @property
    def first_value(self) -> int | None:
        """The first node in tape order whose value differs."""
        return min(self.values, default=None)

    @property
    def first_operation(self) -> int | None:
        """The first operation whose value differs although its operands agree."""
        operations = (node for node in sorted(self.values) if self.common.op[node] >= 0)
        return next((node for node in operations if self._values_agree(self._operands(node))), None)

    @property
    def first_gradient(self) -> int | None:
        """The first node in backward order whose gradient differs although everything it depends on agrees."""
        return next((node for node in sorted(self.grads, reverse=True) if not self._has_differing_input(node)), None)

    @cached_property
    def gradient_edges(self) -> dict[int, list[int]]:
        """Maps a node to the edges over which its gradient arrives in at least one run."""
        edges_by_node: dict[int, list[int]] = {}
        for edge, operand in enumerate(self.common.operand):
            if self.first.flows[edge] or self.second.flows[edge]:
                edges_by_node.setdefault(operand, []).append(edge)
        return edges_by_node

    def suspect_nodes(self, node: int) -> list[int]:
        """Return the nodes whose gradient rules contributed differing gradients to `node`."""
        return list(
            dict.fromkeys(self.common.result[edge] for edge in self.gradient_edges.get(node, ()) if edge in self.edges)
        )

    def _operands(self, node: int) -> list[int]:
        return self.common.operand[self.common.start[node] : self.common.start[node + 1]]

    def _values_agree(self, nodes: Iterable[int]) -> bool:
        """Whether the values of these nodes are known and agree."""
        return not any(node in self.values or node in self.unknown for node in nodes)

    def _has_differing_input(self, node: int) -> bool:
        """Whether the gradient of a node depends on a value or gradient that differs."""
        results = [self.common.result[edge] for edge in self.gradient_edges.get(node, ())]
        return any(at in self.grads or not self.values.keys().isdisjoint((at, *self._operands(at))) for at in results)

    # --- sentences ---

    def headline(self) -> str:
        """Return a sentence that states how many nodes differ, and the tolerance."""
        tolerance, nodes, count = self._tolerance_phrase(), len(self.common.kinds), len(self.nodes)
        if not count:
            compared = f"{_count(nodes - len(self.unknown), 'value')} and {_count(len(self.gradients), 'gradient')}"
            return f"No difference: {compared} agree{f' within {tolerance}' if tolerance else ''}."
        counts = [_count(len(gaps), name) for gaps, name in ((self.values, "value"), (self.grads, "gradient")) if gaps]
        tolerance_phrase = f", beyond {tolerance}" if tolerance else ""
        return (
            f"{count:,} of {_count(nodes, 'node')} differ{'s' if count == 1 else ''}: "
            f"{' and '.join(counts)}{tolerance_phrase}."
        )

    def _tolerance_phrase(self) -> str:
        """Return the tolerance in words, for each dtype if there are several."""
        tolerances = {}
        for node in self.common.tensors or range(len(self.common.kinds)):  # constants have no dtype
            dtypes = [_dtype(trace, node) for trace in (self.first, self.second)]
            tolerances[max(dtypes, key=lambda name: TOLERANCES.get(name, _EXACT))] = self.tolerance(node)
        floats = {dtype: tolerance for dtype, tolerance in tolerances.items() if tolerance != _EXACT}
        if len(set(floats.values())) < 2:
            return "".join(map(str, list(floats.values())[:1]))
        return "; ".join(f"{tolerance} of {dtype}" for dtype, tolerance in floats.items())

    def findings(self) -> list[str]:
        """Return sentences about the first differences and their likely origins, and about missing comparisons."""
        return [*self._value_findings(), *self._gradient_findings(), *self._unknown_findings()]

    def _value_findings(self) -> Iterator[str]:
        first, operation = self.first_value, self.first_operation
        if first is None:
            return
        description = f"{self._describe(first)}: {self._format_both(self.values_of(first), self.values[first])}"
        if self.common.op[first] >= 0:
            yield f"The first value that differs, in tape order: {description}.{self._describe_attributes(first)}"
            return
        yield f"The first value that differs, in tape order, is an input: {description}."
        if operation is not None:
            gap = self.values[operation]
            description = f"{self._describe(operation)}: {self._format_both(self.values_of(operation), gap)}"
            yield (
                "The first that differs although its operands agree: "
                f"{description}.{self._describe_attributes(operation)}"
            )

    def _gradient_findings(self) -> Iterator[str]:
        if not self.grads:
            return
        node = self.first_gradient
        if node is None:
            yield "Each gradient that differs follows from values or gradients before it that differ."
            return
        description = (
            f"{self.common.title(node, MAX_NAME_LENGTH)}: {self._format_both(self.gradients[node], self.grads[node])}"
        )
        if any(self.common.result[edge] not in self.gradients for edge in self.gradient_edges.get(node, ())):
            yield (
                f"The first gradient that differs, in backward order: {description}. The gradients before it were not "
                "saved."
            )
            return
        prefix = "The first gradient, in backward order, that differs although everything it is computed from agrees"
        yield f"{prefix}: {description}. {self._explain_gradient(node)}"

    def _explain_gradient(self, node: int) -> str:
        blocked = [run.states[node] == "b" for run in (self.first, self.second)]
        if blocked[0] != blocked[1]:
            ordinal = "first" if blocked[0] else "second"
            return f"In the {ordinal} run no gradient arrives there: look for requires_grad, detach() and no_grad()."
        if results := self.suspect_nodes(node):
            rules = " and ".join(
                f"{self._rule_names(at)}, which computed {self.common.title(at, MAX_NAME_LENGTH)}" for at in results
            )
            return f"Look at the gradient rule of {rules}."
        if not self.gradient_edges.get(node):
            return "The backward pass started there, with another gradient or more than once."
        return (
            "One backward pass gives it the same gradient in both: something else was added. Is a zero_grad() missing?"
        )

    def _unknown_findings(self) -> Iterator[str]:
        if self.unknown:
            count_phrase = f"{_count(len(self.unknown), 'value')} could not be compared (not saved by both runs)"
            yield f"{count_phrase}: build both inside `with mg.record():`."
        if not self.gradients and any(state != "b" for trace in (self.first, self.second) for state in trace.states):
            yield "No gradient was compared: both runs need a .grad, or a graph that backward() did not free."

    def _describe(self, node: int) -> str:
        formula = self.common.formula(node, MAX_NAME_LENGTH)
        return self.common.title(node, MAX_NAME_LENGTH) + ("" if formula is None else f" = {formula_text(formula)}")

    def _rule_names(self, node: int) -> str:
        """Return the name of the operation of a node, or both names if the runs differ."""
        first_name, second_name = (trace.ops[trace.op[node]].name for trace in (self.first, self.second))
        return first_name if first_name == second_name else f"{first_name} (first run) or {second_name} (second run)"

    def _describe_attributes(self, node: int) -> str:
        """Describe the attributes of an operation that differ between the runs."""
        first_attrs, second_attrs = self.first.nodes[node].attrs, self.second.nodes[node].attrs
        changes = [
            f"{k} = {first_attrs.get(k, '—')} | {second_attrs.get(k, '—')}"
            for k in {**first_attrs, **second_attrs}
            if first_attrs.get(k) != second_attrs.get(k)
        ]
        return f" It was called with {', '.join(changes)}." if changes else ""

    def _format_both(self, pair: tuple[Any, Any], gap: Gap) -> str:
        """Format two numbers, or the difference between two arrays."""
        if pair[0] is None or pair[1] is None:
            return f"only in the {'second' if pair[0] is None else 'first'} run"
        description = f"{gap.cells:,} of {gap.size:,} elements, by {format_compact(gap.amount)} at most"
        if gap.size == 1:
            description = " | ".join(format_pretty(scalar(x)) for x in pair)
        return f"{description} (≠ {', '.join(filter(None, [format_ratio(gap), describe_factor(gap)]))})"


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
    >>> result = differences(*runs)
    >>> result.nodes, result.first_value, result.values[2].amount
    ([0, 1, 2], 1, 2.0)
    """
    for name, x in (("rtol", rtol), ("atol", atol)):
        if x is not None and not x >= 0:
            raise ArgumentError(f"compare: {name}={x!r} is not a tolerance.\n  Pass 0 or more, or omit it.")
    if first.execution or second.execution:
        raise ArgumentError("compare: a captured step saves no values.\n  Compare its results of two runs.")
    second = match_traces(first, second)
    first_names = set(first.names)
    pairs = zip(first.names, second.names, strict=True)
    names = [
        first_value or (second_value if second_value not in first_names else None)
        for first_value, second_value in pairs
    ]
    result = Differences(first, second, replace(first, names=names), rtol, atol)
    for node in range(len(first.kinds)):
        one, other = result.values_of(node)
        if one is None or other is None:
            result.unknown.add(node)
        elif (difference := gap(one, other, result.tolerance(node))) is not None:
            result.values[node] = difference
    _compare_gradients(result)
    _compare_edges(result)
    return result


def _compare_gradients(result: Differences) -> None:
    """Compare the ``.grad`` of each node in both runs, or else the gradients of one pass from each output."""
    first, second = result.first, result.second
    first_totals, second_totals = _accumulated_gradients(first), _accumulated_gradients(second)
    for node in range(len(first.kinds)):
        pair = first.grads.get(node), second.grads.get(node)
        if pair[0] is None or pair[1] is None:
            pair = (
                (None, None)
                if first_totals is None or second_totals is None
                else (first_totals.get(node), second_totals.get(node))
            )
        if pair[0] is None and pair[1] is None:
            continue
        result.gradients[node] = pair
        if (difference := gap(*pair, result.tolerance(node))) is not None:
            result.grads[node] = difference


def _accumulated_gradients(trace: Trace) -> dict[int, Any] | None:
    """Return the gradients accumulated by one pass from each output; None if any of these passes is unknown."""
    if {run.root for run in trace.passes} != set(trace.outputs):
        return None
    totals: dict[int, Any] = {}
    for run in trace.passes:
        if trace.states[run.root] == "b":
            continue
        begin = run.upstream[0] if run.edge else 1.0
        for node, total in (trace.totals(run) | {run.root: begin}).items():
            totals[node] = total if node not in totals else totals[node] + total
    return totals


def _compare_edges(result: Differences) -> None:
    """Compare the local derivative of each edge, and its contributions in the passes that both runs have."""
    first, second = result.first, result.second
    for edge, (first_local, second_local) in enumerate(zip(first.local, second.local, strict=True)):
        difference = (
            gap(first_local, second_local, result.tolerance(first.result[edge]))
            if first_local is not None and second_local is not None
            else None
        )
        if difference is not None:
            result.edges[edge] = difference
    second_passes = {run.root: run for run in second.passes}
    for run in first.passes:
        if run.root in second_passes:
            contributions = [
                dict(zip(side.edge, side.contribution, strict=True)) for side in (run, second_passes[run.root])
            ]
            for edge in contributions[0] | contributions[1]:
                difference = gap(
                    contributions[0].get(edge), contributions[1].get(edge), result.tolerance(first.operand[edge])
                )
                if difference is not None:
                    result.edges[edge] = difference


def _value_of(trace: Trace, node: int) -> Any:
    shaped = trace.tensors.get(node)
    if shaped is None or (shaped.array is None and trace.values[node] is not None):
        return trace.values[node]
    return shaped.array


def _dtype(trace: Trace, node: int) -> str:
    shaped = trace.tensors.get(node)
    return "float64" if shaped is None else shaped.dtype
