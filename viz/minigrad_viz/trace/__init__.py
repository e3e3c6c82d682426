"""Traces: plain data that contain everything that a picture or a player shows of a graph.

`build` creates a trace from the user's objects, `columns` defines its contents, and `wire` serialises it to JSON.
"""

from minigrad.core.deprecation import deprecated_names
from minigrad_viz.trace.build import to_trace, trace_with_indices
from minigrad_viz.trace.builder import Builder
from minigrad_viz.trace.columns import MAX_DETAILED_NODES, Pass
from minigrad_viz.trace.rows import Edge, Note, PassStep, TensorData, TourStop, TraceBlock, TraceNode
from minigrad_viz.trace.trace import Trace

__all__ = [
    "MAX_DETAILED_NODES",
    "Builder",
    "Edge",
    "Note",
    "Pass",
    "PassStep",
    "TensorData",
    "TourStop",
    "Trace",
    "TraceBlock",
    "TraceNode",
    "to_trace",
    "trace_with_indices",
]

__getattr__ = deprecated_names(
    __name__, {"Block": "TraceBlock", "Node": "TraceNode", "Step": "PassStep", "Stop": "TourStop"}
)
