"""Resolve nodes and timeline positions that a user specifies as objects or by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from minigrad.core.errors import ArgumentError
from minigrad.core.graph import Node
from minigrad.core.snapshot import get_node
from minigrad_viz.trace.history import Timeline
from minigrad_viz.trace.notation import handle, sanitize, shorten
from minigrad_viz.trace.rows import TourStop
from minigrad_viz.trace.trace import Trace

__all__ = ["find_node", "make_stops", "position_of", "short_repr"]

_DIRECTIONS = ("forward", "backward")
NODE_ADVICE = """is not in this graph.
  Pass a node that the result was computed from, or its name as the drawing shows it."""
DIRECTION_ADVICE = """is neither "forward" nor "backward", nor a node of this graph.
  After a node, pass a direction or the node at the other end of an edge."""


def make_stops(trace: Trace, indices: Mapping[Any, int], captions: Sequence[tuple[Any, ...]]) -> list[TourStop]:
    """Return the stops of a tour through `trace`, whose nodes have the indices `indices`."""
    return [_make_stop(trace, indices, caption, f"tour, stop {ordinal}") for ordinal, caption in enumerate(captions, 1)]


def _make_stop(trace: Trace, indices: Mapping[Any, int], caption: Any, caller: str) -> TourStop:
    if not (isinstance(caption, tuple | list) and len(caption) in (2, 3) and isinstance(caption[1], str)):
        raise ArgumentError(
            f"{caller}: {short_repr(caption)} is not a (where, text) tuple.\n"
            "  Write (where, text), or (where, text, look) with a node or a scope to look at."
        )
    location, text, *selection = caption
    return TourStop(
        position_of(trace, indices, location, caller),
        sanitize(text),
        _selection_id(trace, indices, selection[0], caller) if selection else None,
    )


def position_of(trace: Trace, indices: Mapping[Any, int], location: Any, caller: str) -> int:
    """Return the timeline position of `location`, specified as in a tour. Raises ArgumentError, prefixed with `caller`,
    if there is no such position.
    """
    timeline = Timeline(trace)
    named_positions = {"start": 0, **({"seed": timeline.seed} if timeline.backward_pass else {}), "end": timeline.last}
    if isinstance(location, str) and location in named_positions and _index_of(trace, indices, location) is None:
        return named_positions[location]
    if isinstance(location, int) and not isinstance(location, bool):
        if 0 <= location <= timeline.last:
            return location
        raise ArgumentError(
            f"{caller}: position {location} is out of range.\n"
            f"  Positions go from 0, before the first operation, to {timeline.last}."
        )
    node, direction = location if isinstance(location, tuple) and len(location) == 2 else (location, "forward")
    index = find_node(trace, indices, node, caller)
    if direction not in _DIRECTIONS:
        return _position_of_edge(
            timeline, index, find_node(trace, indices, direction, caller, DIRECTION_ADVICE), caller
        )
    if direction == "forward":
        return timeline.position_of_node.get(index, 0)
    if timeline.root == index:
        return timeline.seed
    if index not in timeline.arrivals:
        raise ArgumentError(
            f"{caller}: no gradient arrives at {trace.title(index)}.\n  Choose another node, or its forward position."
        )
    return timeline.arrivals[index][-1]


def _position_of_edge(timeline: Timeline, first: int, second: int, caller: str) -> int:
    """Return the first position at which a gradient flows over an edge between two nodes."""
    trace, ends = timeline.trace, (min(first, second), max(first, second))
    for edge, position in timeline.position_of_edge.items():
        if (trace.operand[edge], trace.result[edge]) == ends:
            return position
    names = " to ".join(map(trace.title, ends))
    raise ArgumentError(
        f"{caller}: no gradient flows over an edge from {names}.\n  Pass the two ends of an edge with a gradient."
    )


def _selection_id(trace: Trace, indices: Mapping[Any, int], selection: Any, caller: str) -> str:
    """Return the player's id of a node, such as "n3", or of a scope, such as "b2"."""
    if isinstance(selection, str) and _index_of(trace, indices, selection) is None:
        for at, block in enumerate(trace.blocks):
            if block.kind == "scope" and selection in (block.name, trace.scopes[at]):
                return f"b{at}"
    return f"n{find_node(trace, indices, selection, caller)}"


def find_node(trace: Trace, indices: Mapping[Any, int], node: Any, caller: str, advice: str = NODE_ADVICE) -> int:
    """Return the index in `trace` of a node, given as an object or by name. Raises ArgumentError, prefixed with
    `caller`, if the node is not in the graph.
    """
    index = _index_of(trace, indices, node)
    if index is None:
        raise ArgumentError(f"{caller}: {short_repr(node)} {advice}")
    return index


def _index_of(trace: Trace, indices: Mapping[Any, int], node: Any) -> int | None:
    if isinstance(node, str):
        for index, (kind, name) in enumerate(zip(trace.kinds, trace.names, strict=True)):
            if kind != "c" and node == (name or handle(index)):
                return index
        return None
    keys = (node, get_node(node)) if isinstance(node, Node) else (id(node),)
    return next((indices[key] for key in keys if key in indices), None)


def short_repr(x: Any) -> str:
    """Return a shortened repr of `x` for a message."""
    return shorten(sanitize(repr(x)), 60)
