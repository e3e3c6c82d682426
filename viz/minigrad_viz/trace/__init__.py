"""The trace: plain data that holds everything that a picture or a player shows of a graph.

`build` creates it from the user's objects, `columns` defines its contents, `wire` serialises it to JSON.
"""

from minigrad_viz.trace.build import placed, to_trace
from minigrad_viz.trace.builder import Builder
from minigrad_viz.trace.columns import FULL, Pass
from minigrad_viz.trace.renamed import renamed
from minigrad_viz.trace.rows import Edge, Note, PassStep, Shaped, TourStop, TraceBlock, TraceNode
from minigrad_viz.trace.trace import Trace

__all__ = [
    "FULL",
    "Builder",
    "Edge",
    "Note",
    "Pass",
    "PassStep",
    "Shaped",
    "TourStop",
    "Trace",
    "TraceBlock",
    "TraceNode",
    "placed",
    "to_trace",
]

__getattr__ = renamed(__name__, {"Block": "TraceBlock", "Node": "TraceNode", "Step": "PassStep", "Stop": "TourStop"})
