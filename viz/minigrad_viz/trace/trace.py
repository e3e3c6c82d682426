"""`Trace`: the columns of a graph and their JSON serialisation."""

from __future__ import annotations

from typing import Any

from minigrad_viz.trace import wire
from minigrad_viz.trace.columns import Columns

__all__ = ["Trace"]


class Trace(Columns):
    """The trace of a graph, from which pictures are drawn; see `minigrad_viz.trace.columns`.

    >>> import minigrad as mg
    >>> from minigrad_viz import to_trace
    >>> a = mg.Value(3.0, "a")
    >>> trace = to_trace(a * a)
    >>> [(edge.operand, edge.result, edge.slot, edge.local) for edge in trace.edges]
    [(0, 1, 0, 3.0), (0, 1, 1, 3.0)]
    """

    __slots__ = ()

    def data(self, full: bool = False) -> dict[str, Any]:
        """Return the trace as JSON-serialisable data, rounded unless `full`; see `minigrad_viz.trace.wire`."""
        return wire.to_data(self, full)

    def json(self, full: bool = False) -> str:
        """Return the JSON data of the trace as one line of text."""
        return wire.to_json(self, full)
