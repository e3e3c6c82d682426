"""`step`, `play`, `tour`: a graph as a player in the notebook, which goes through it forward and backward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from minigrad.errors import ArgumentError
from minigrad.graph import Node
from minigrad_viz.notation import clean, handle, shorten
from minigrad_viz.trace import Stop, Trace, placed

if TYPE_CHECKING:
    from minigrad_viz.widget import Player

__all__ = ["find", "node_of", "play", "step", "stops", "tour"]


def step(x: Any, *more: Any, **state: Any) -> Player:
    """The graph that ends in `x`, or in several, as a player that waits before the first operation.

    In a notebook → goes one step on and ← one back; the numbers of leaves can be changed. The backward pass that is
    shown is one of its own: no ``grad`` is written and no hook is called. `state` are traits of the player, such as
    ``position=3`` or ``granularity="op"``.

    >>> import minigrad as mg
    >>> a = mg.Value(3.0, "a")
    >>> player = step(a * a)
    >>> player, player.position, player.leaf_a, a.grad
    (Player(Graph of v₁ = 9.0: 1 leaf, 1 operation.), 0, 3.0, None)
    """
    from minigrad_viz.widget import Player

    return Player(placed(x, *more)[0], **state)


def play(x: Any, *more: Any, speed: float = 1.0, **state: Any) -> Player:
    """As `step`, and it starts by itself, at `speed` from 0.25 to 4."""
    from minigrad_viz.widget import Player

    return Player(placed(x, *more)[0], playing=True, speed=speed, **state)


def tour(x: Any, captions: Sequence[tuple[Any, str]], **state: Any) -> Player:
    """The graph of `x` as a player with a tour: the space bar goes from one stop to the next, each with its caption.

    Each of `captions` is a pair (where, text), and `where` a position of the player, or a node of the graph or its
    name: the moment at which it is computed; with "backward", as in ``(("a", "backward"), "…")``, at which its
    gradient is complete. Raises ArgumentError for a place that is not in the graph.

    >>> import minigrad as mg
    >>> a = mg.Value(3.0, "a")
    >>> y = a * a
    >>> tour(y, [(y, "a times a"), (("a", "backward"), "two paths, added")]).trace.tours
    [Stop(at=1, text='a times a'), Stop(at=4, text='two paths, added')]
    """
    from minigrad_viz.widget import Player

    trace, places = placed(x)
    return Player(replace(trace, tours=stops(trace, places, captions)), **state)


def stops(trace: Trace, places: Mapping[Any, int], captions: Sequence[tuple[Any, str]]) -> list[Stop]:
    """The stops of a tour through `trace`, whose nodes lie at `places`."""
    return [Stop(_position(trace, places, where), text) for where, text in captions]


def _position(trace: Trace, places: Mapping[Any, int], where: Any) -> int:
    """The position of a moment: 0 is the start, then one for each operation, one for the seed, one for each event."""
    computed = [index for index, node in enumerate(trace.nodes) if node.op is not None]
    events = [trace.edges[event.edge].operand for event in trace.passes[0].steps] if trace.passes else []
    seed = len(computed) + 1
    if isinstance(where, int) and not isinstance(where, bool):
        last = seed + len(events) if trace.passes else len(computed)
        if 0 <= where <= last:
            return where
        raise ArgumentError(f"tour: there is no position {where}.\n  They go from 0, before everything, to {last}.")
    direction = "forward"
    if isinstance(where, tuple) and len(where) == 2:
        where, direction = where
    if direction not in ("forward", "backward"):
        raise ArgumentError(f'tour: {direction!r} is no direction.\n  Write "forward" or "backward" after a node.')
    node = find(trace, places, where, "tour")
    if direction == "forward":
        return 1 + computed.index(node) if node in computed else 0
    if trace.passes and trace.passes[0].root == node:
        return seed
    if node not in events:
        raise ArgumentError(f"tour: no gradient arrives at {trace.title(node)}.\n  Stop where one does, or go forward.")
    return seed + len(events) - events[::-1].index(node)


def find(trace: Trace, places: Mapping[Any, int], node: Any, who: str) -> int:
    """The place in `trace` of a node, given as such or by name. Raises ArgumentError, for `who`, if it has none."""
    if isinstance(node, str):
        for index, known in enumerate(trace.nodes):
            if known.kind != "constant" and node == (known.name or handle(index)):
                return index
    else:
        for key in (node, node_of(node)) if isinstance(node, Node) else ():
            if key in places:
                return places[key]
    raise ArgumentError(
        f"{who}: {shorten(clean(repr(node)), 60)} is not in this graph.\n"
        "  Give a node that the result was computed from, or its name as the drawing shows it."
    )


def node_of(x: Node) -> Node:
    """The place of a Value or a tensor in the graph: that of a computed tensor is its step."""
    edge = x._edge()
    return x if edge is None else edge
