"""Resolve nodes and timeline positions that a user gives as objects or by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from minigrad.core.errors import ArgumentError
from minigrad.core.graph import Node
from minigrad.core.snapshot import node_of
from minigrad_viz.trace.history import Timeline
from minigrad_viz.trace.notation import clean, handle, shorten
from minigrad_viz.trace.rows import TourStop
from minigrad_viz.trace.trace import Trace

__all__ = ["find", "position_of", "short_repr", "stops"]

_DIRECTIONS = ("forward", "backward")
_NOWHERE = """is not in this graph.
  Pass a node that the result was computed from, or its name as the drawing shows it."""
_NO_END = """is neither "forward" nor "backward", nor a node of this graph.
  After a node, pass a direction or the node at the other end of an edge."""


def stops(trace: Trace, places: Mapping[Any, int], captions: Sequence[tuple[Any, ...]]) -> list[TourStop]:
    """Return the stops of a tour through `trace`, whose nodes have the indices `places`."""
    return [_stop(trace, places, caption, f"tour, stop {number}") for number, caption in enumerate(captions, 1)]


def _stop(trace: Trace, places: Mapping[Any, int], caption: Any, who: str) -> TourStop:
    if not (isinstance(caption, tuple | list) and len(caption) in (2, 3) and isinstance(caption[1], str)):
        raise ArgumentError(
            f"{who}: {short_repr(caption)} is not a (where, text) tuple.\n"
            "  Write (where, text), or (where, text, look) with a node or a scope to look at."
        )
    where, text, *look = caption
    return TourStop(
        position_of(trace, places, where, who), clean(text), _look(trace, places, look[0], who) if look else None
    )


def position_of(trace: Trace, places: Mapping[Any, int], where: Any, who: str) -> int:
    """Return the timeline position of `where`, given as in a tour. Raises ArgumentError, prefixed with `who`, if there
    is none.
    """
    timeline = Timeline(trace)
    words = {"start": 0, **({"seed": timeline.seed} if timeline.run else {}), "end": timeline.last}
    if isinstance(where, str) and where in words and _index(trace, places, where) is None:
        return words[where]
    if isinstance(where, int) and not isinstance(where, bool):
        if 0 <= where <= timeline.last:
            return where
        raise ArgumentError(
            f"{who}: position {where} is out of range.\n"
            f"  Positions go from 0, before the first operation, to {timeline.last}."
        )
    node, direction = where if isinstance(where, tuple) and len(where) == 2 else (where, "forward")
    index = find(trace, places, node, who)
    if direction not in _DIRECTIONS:
        return _over_edge(timeline, index, find(trace, places, direction, who, _NO_END), who)
    if direction == "forward":
        return timeline.computed.get(index, 0)
    if timeline.root == index:
        return timeline.seed
    if index not in timeline.arrivals:
        raise ArgumentError(
            f"{who}: no gradient arrives at {trace.title(index)}.\n  Choose another node, or its forward position."
        )
    return timeline.arrivals[index][-1]


def _over_edge(timeline: Timeline, one: int, other: int, who: str) -> int:
    """Return the first position at which a gradient flows over an edge between two nodes."""
    trace, ends = timeline.trace, (min(one, other), max(one, other))
    for edge, position in timeline.passed.items():
        if (trace.operand[edge], trace.result[edge]) == ends:
            return position
    names = " to ".join(map(trace.title, ends))
    raise ArgumentError(
        f"{who}: no gradient flows over an edge from {names}.\n  Pass the two ends of an edge with a gradient."
    )


def _look(trace: Trace, places: Mapping[Any, int], look: Any, who: str) -> str:
    """Return the player's id of a node, "n3", or a scope, "b2"."""
    if isinstance(look, str) and _index(trace, places, look) is None:
        for at, block in enumerate(trace.blocks):
            if block.kind == "scope" and look in (block.name, trace.scopes[at]):
                return f"b{at}"
    return f"n{find(trace, places, look, who)}"


def find(trace: Trace, places: Mapping[Any, int], node: Any, who: str, why: str = _NOWHERE) -> int:
    """Return the index in `trace` of a node, given as an object or by name. Raises ArgumentError, prefixed with `who`,
    if it is not found.
    """
    index = _index(trace, places, node)
    if index is None:
        raise ArgumentError(f"{who}: {short_repr(node)} {why}")
    return index


def _index(trace: Trace, places: Mapping[Any, int], node: Any) -> int | None:
    if isinstance(node, str):
        for index, (kind, name) in enumerate(zip(trace.kinds, trace.names, strict=True)):
            if kind != "c" and node == (name or handle(index)):
                return index
        return None
    keys = (node, node_of(node)) if isinstance(node, Node) else ()
    return next((places[key] for key in keys if key in places), None)


def short_repr(x: Any) -> str:
    """Return a shortened repr of `x` for a message."""
    return shorten(clean(repr(x)), 60)
