"""The timeline of a graph: each value as it is computed, then each product of the backward pass.

Position 0 is before the first operation. It is followed by a position for each operation, one for the seed of the
backward pass, and one for each event of the backward pass. The state depends only on the position.
`frontend/src/model/history.js` mirrors this module.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from minigrad.core.deprecation import deprecated_names
from minigrad_viz.trace.trace import Trace

__all__ = ["Arrival", "Gradient", "Moment", "Timeline"]

__getattr__ = deprecated_names(__name__, {"Event": "Arrival", "History": "Timeline"})


class Gradient(NamedTuple):
    """The gradient of a node: the sum of the first `met` of its `of` contributions, or None if `met` is 0."""

    state: Literal["none", "partial", "final", "blocked"]
    met: int
    of: int
    value: Any


class Arrival(NamedTuple):
    """One event of the backward pass: ``upstream * local = contribution``, and ``before + contribution = total``.

    The contribution is number `met` of `of`. `before` is None for the first contribution; `local` is None for tensors.
    """

    upstream: Any
    local: float | None
    contribution: Any
    before: Any
    total: Any
    met: int
    of: int


class Timeline:
    """The moments of a trace: the forward pass, and the backward pass of its first output.

    `forward` is the last position of the forward pass, `seed` the position where the backward pass begins, and `last`
    the last position. If no gradient flows, there is only the forward pass.

    >>> import minigrad as mg
    >>> from minigrad_viz import to_trace
    >>> a = mg.Value(3.0, "a")
    >>> timeline = Timeline(to_trace(a * a))
    >>> timeline.forward, timeline.seed, timeline.last
    (1, 2, 4)
    >>> [timeline.at(position).gradient(0).value for position in range(5)]
    [None, None, None, 3.0, 6.0]
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.backward_pass = next((run for run in trace.passes[:1] if run.edge or trace.states[run.root] != "b"), None)
        self.order = [node for node, kind in enumerate(trace.kinds) if kind in "ox"]
        self.forward = len(self.order)
        self.seed = self.forward + 1
        edges: Sequence[int] = self.backward_pass.edge if self.backward_pass else ()
        self.last = self.seed + len(edges) if self.backward_pass else self.forward
        self.position_of_node = {node: position for position, node in enumerate(self.order, 1)}
        self.position_of_edge = {edge: position for position, edge in enumerate(edges, self.seed + 1)}
        self.arrivals: dict[int, list[int]] = {}
        """Maps a node to the positions at which contributions to its gradient arrive."""
        for position, edge in enumerate(edges, self.seed + 1):
            self.arrivals.setdefault(trace.operand[edge], []).append(position)

    @property
    def root(self) -> int:
        """The node where the backward pass begins; -1 if there is none."""
        return self.backward_pass.root if self.backward_pass else -1

    def at(self, position: int) -> Moment:
        """Return the moment at a position."""
        if self.backward_pass and position > self.seed:
            edge = self.backward_pass.edge[position - self.seed - 1]
            return Moment(self, position, "edge", self.trace.operand[edge], edge)
        if position == self.seed:
            return Moment(self, position, "seed", self.root)
        return Moment(self, position, "forward", self.order[position - 1]) if position else Moment(self, 0, "start", -1)

    def next(self, position: int, unit: Literal["edge", "op"] = "edge") -> int:
        """Return the next position. If `unit` is "op", all contributions of an operation are one step."""
        target = min(position + 1, self.last)
        while (
            unit == "op" and self.seed < target < self.last and self._result_at(target) == self._result_at(target + 1)
        ):
            target += 1
        return target

    def _result_at(self, position: int) -> int:
        return self.trace.result[self.at(position).edge]

    def gradients(self, node: int) -> list[Any]:
        """Return all partial sums of a node's gradient, in order."""
        if node == self.root:
            return [self.seed_gradient()]
        return [self.total(position) for position in self.arrivals.get(node, ())]

    def total(self, position: int) -> Any:
        """Return the partial sum of the gradient after the contribution at a position."""
        assert self.backward_pass is not None
        return self.backward_pass.total[position - self.seed - 1]

    def seed_gradient(self) -> Any:
        """Return the seed gradient of the root: 1, or an array of ones for a tensor."""
        return self.backward_pass.upstream[0] if self.backward_pass and self.backward_pass.edge else 1.0


@dataclass(frozen=True, slots=True)
class Moment:
    """The state and the event at a position: `node` is computed or seeded, or receives a contribution over `edge`. Each
    is -1 if there is none.
    """

    timeline: Timeline
    position: int
    kind: Literal["start", "forward", "seed", "edge"]
    node: int
    edge: int = -1

    def is_computed(self, node: int) -> bool:
        """Whether a node has its value at this position; leaves and constants always do."""
        return self.timeline.position_of_node.get(node, 0) <= self.position

    def value(self, node: int) -> Any:
        """Return the value of a node, a float or an array; None before it is computed, or if it was not saved."""
        trace = self.timeline.trace
        if not self.is_computed(node):
            return None
        return trace.tensors[node].array if node in trace.tensors else trace.values[node]

    def gradient(self, node: int) -> Gradient:
        """Return the gradient of a node, as accumulated so far."""
        timeline = self.timeline
        if node == timeline.root:
            is_seeded = self.position >= timeline.seed
            return Gradient("final" if is_seeded else "none", 0, 0, timeline.seed_gradient() if is_seeded else None)
        arrivals = timeline.arrivals.get(node, ())
        met, of = bisect_right(arrivals, self.position), len(arrivals)
        if not met:
            blocked = not of and timeline.trace.states[node] == "b"
            return Gradient("blocked" if blocked else "none", 0, of, None)
        return Gradient("partial" if met < of else "final", met, of, timeline.total(arrivals[met - 1]))

    def edge_state(self, edge: int) -> Literal["idle", "active", "done"]:
        """Return "active" if an edge is used at this position, "done" if a gradient has passed it, otherwise "idle"."""
        timeline = self.timeline
        if self.position > timeline.forward:
            passed = timeline.position_of_edge.get(edge, self.position + 1)
            return "active" if passed == self.position else "done" if passed < self.position else "idle"
        result = timeline.position_of_node.get(timeline.trace.result[edge])
        return "active" if self.position and result == self.position else "idle"

    @property
    def event(self) -> Arrival | None:
        """The event of the backward pass at this position, or None."""
        timeline, run = self.timeline, self.timeline.backward_pass
        if self.edge < 0 or run is None:
            return None
        step = run.steps[self.position - timeline.seed - 1]
        arrivals = timeline.arrivals[self.node]
        met = arrivals.index(self.position) + 1
        before = timeline.total(arrivals[met - 2]) if met > 1 else None
        return Arrival(step.upstream, step.local, step.contribution, before, step.total, met, len(arrivals))
