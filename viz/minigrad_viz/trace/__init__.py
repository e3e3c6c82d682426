"""The trace: all that a picture or a player shows of a graph, as plain data.

`build` makes it of what a user gives, `columns` says what is in it, `wire` writes it as JSON.
"""

from minigrad_viz.trace.build import placed, to_trace
from minigrad_viz.trace.builder import Builder
from minigrad_viz.trace.columns import FULL, Pass
from minigrad_viz.trace.rows import Block, Edge, Node, Note, Shaped, Step, Stop
from minigrad_viz.trace.trace import Trace

__all__ = [
    "FULL",
    "Block",
    "Builder",
    "Edge",
    "Node",
    "Note",
    "Pass",
    "Shaped",
    "Step",
    "Stop",
    "Trace",
    "placed",
    "to_trace",
]
