"""Where a node lies in a trace, and at which position a moment is, given as a user gives them: as such or by name."""

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
  Give a node that the result was computed from, or its name as the drawing shows it."""
_NO_END = """is neither "forward" nor "backward", nor a node of this graph.
  After a node write a direction, or the node at the other end of an edge."""


def stops(trace: Trace, places: Mapping[Any, int], captions: Sequence[tuple[Any, ...]]) -> list[TourStop]:
    """The stops of a tour through `trace`, whose nodes lie at `places`."""
    return [_stop(trace, places, caption, f"tour, stop {number}") for number, caption in enumerate(captions, 1)]


def _stop(trace: Trace, places: Mapping[Any, int], caption: Any, who: str) -> TourStop:
    if not (isinstance(caption, tuple | list) and len(caption) in (2, 3) and isinstance(caption[1], str)):
        raise ArgumentError(
            f"{who}: {short_repr(caption)} is not a place and a text.\n"
            "  Write (where, text), or (where, text, look) with a node or a scope to look at."
        )
    where, text, *look = caption
    return TourStop(
        position_of(trace, places, where, who), clean(text), _look(trace, places, look[0], who) if look else None
    )


def position_of(trace: Trace, places: Mapping[Any, int], where: Any, who: str) -> int:
    """The position of a moment, given as in a tour. Raises ArgumentError, for `who`, if the graph has none such."""
    timeline = Timeline(trace)
    words = {"start": 0, **({"seed": timeline.seed} if timeline.run else {}), "end": timeline.last}
    if isinstance(where, str) and where in words and _index(trace, places, where) is None:
        return words[where]
    if isinstance(where, int) and not isinstance(where, bool):
        if 0 <= where <= timeline.last:
            return where
        raise ArgumentError(
            f"{who}: there is no position {where}.\n  They go from 0, before everything, to {timeline.last}."
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
            f"{who}: no gradient arrives at {trace.title(index)}.\n  Stop where one does, or go forward."
        )
    return timeline.arrivals[index][-1]


def _over_edge(timeline: Timeline, one: int, other: int, who: str) -> int:
    """The first position at which a gradient goes over an edge between two nodes."""
    trace, ends = timeline.trace, (min(one, other), max(one, other))
    for edge, position in timeline.passed.items():
        if (trace.operand[edge], trace.result[edge]) == ends:
            return position
    names = " to ".join(map(trace.title, ends))
    raise ArgumentError(
        f"{who}: no gradient goes over an edge from {names}.\n  Give the two ends of one where it does."
    )


def _look(trace: Trace, places: Mapping[Any, int], look: Any, who: str) -> str:
    """What a player calls a node, "n3", or a scope, "b2"."""
    if isinstance(look, str) and _index(trace, places, look) is None:
        for at, block in enumerate(trace.blocks):
            if block.kind == "scope" and look in (block.name, trace.scopes[at]):
                return f"b{at}"
    return f"n{find(trace, places, look, who)}"


def find(trace: Trace, places: Mapping[Any, int], node: Any, who: str, why: str = _NOWHERE) -> int:
    """The place in `trace` of a node, given as such or by name. Raises ArgumentError, for `who`, if it has none."""
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
    """`x` in a few letters, for a message."""
    return shorten(clean(repr(x)), 60)
