"""What of a graph is visible: the blocks that are open at first, and the items and wires that are seen then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from minigrad_viz.trace.blocks import MOST
from minigrad_viz.trace.rows import TraceBlock
from minigrad_viz.trace.titles import generic_name

__all__ = ["Item", "Wire", "start_expanded", "visible"]


def start_expanded(blocks: Sequence[TraceBlock], where: Sequence[int], budget: int = MOST) -> set[int]:
    """The blocks to show opened at first: from the outside in, while at most `budget` items are visible.

    Blocks that are called alike, but for digits, and lie in blocks that are so, are opened together or not at all; a
    fold only with what it holds.

    >>> blocks = [TraceBlock("graph", -1, "graph"), *[TraceBlock(name, 0, "scope") for name in ("a", "b₁", "b₂")]]
    >>> start_expanded(blocks, [1, 1, 1, 2, 2, 3], 5)
    {0, 1}
    >>> start_expanded(blocks, [1, 1, 1, 2, 2, 3], 6)
    {0, 1, 2, 3}
    """
    inside = Counter(where)
    inside.update(block.outer for block in blocks)
    numbers: dict[tuple[int, str], int] = {}
    group = [0] * len(blocks)
    more = Counter[int]()
    for k, block in enumerate(blocks):
        if k:
            group[k] = group[block.outer]
            if blocks[block.outer].kind != "fold":
                group[k] = numbers.setdefault((group[k], generic_name(block.name)), len(numbers) + 1)
            more[group[k]] += inside[k] - 1
    opened, closed, visible = {0}, set[int](), inside[0]
    for k, block in enumerate(blocks):
        if k and block.outer in opened and group[k] not in closed:
            if visible + more[group[k]] > budget:
                closed.add(group[k])
            else:
                opened.add(k)
                visible += more.pop(group[k], 0)  # of all of them
    return opened


class Item(NamedTuple):
    """A node, or a closed block, or the frame of an open one; of `node` and `block` one is -1. `outer` is the number of
    the frame around it among the items, or -1.
    """

    node: int
    block: int
    framed: bool
    outer: int


@dataclass(slots=True)
class Wire:
    """An arrow between two items, for all of `edges`; `value` is the node whose number goes over it, -1: several do."""

    start: int
    end: int
    value: int
    edges: list[int]


def visible(
    blocks: Sequence[TraceBlock], where: Sequence[int], edges: Sequence[tuple[int, int]], opened: Collection[int]
) -> tuple[list[Item], list[Wire]]:
    """What is seen while the blocks `opened` are open: items in tape order, but frames before what lies in them; wires.

    Into a node each edge has a wire, so that of a*a both are seen. Into a closed block each value goes once, and
    from another closed one all values together: the boxes say how much that is.

    >>> blocks = [TraceBlock("graph", -1, "graph"), TraceBlock("a", 0, "scope")]
    >>> items, wires = visible(blocks, [0, 1, 1], [(0, 1), (0, 2), (1, 2)], {0})
    >>> items, [(wire.start, wire.end, wire.edges) for wire in wires]
    ([Item(node=0, block=-1, framed=False, outer=-1), Item(node=-1, block=1, framed=False, outer=-1)], [(0, 1, [0, 1])])
    """
    cover = [-1] * len(blocks)  # the outermost closed block around each
    for k, block in enumerate(blocks):
        if k:
            around = cover[block.outer]
            cover[k] = around if around >= 0 else -1 if k in opened else k
    items: list[Item] = []
    places = {0: -1}

    def place_of(k: int) -> int:
        missing = []
        while k not in places:
            missing.append(k)
            k = blocks[k].outer
        for k in reversed(missing):
            items.append(Item(-1, k, cover[k] < 0, places[blocks[k].outer]))
            places[k] = len(items) - 1
        return places[k]

    at = []
    for node, k in enumerate(where):
        outer = place_of(k if cover[k] < 0 else cover[k])
        if cover[k] < 0:
            items.append(Item(node, -1, False, outer))
        at.append(len(items) - 1 if cover[k] < 0 else outer)
    return items, _wires(edges, at, items)


def _wires(edges: Sequence[tuple[int, int]], at: Sequence[int], items: Sequence[Item]) -> list[Wire]:
    wires: list[Wire] = []
    merged: dict[tuple[int, int], Wire] = {}
    for number, (operand, result) in enumerate(edges):
        start, end = at[operand], at[result]
        if start == end:
            continue
        closed = items[end].node < 0
        bundled = closed and items[start].node < 0
        key = (-1 - start if bundled else operand, end)
        wire = merged.get(key) if closed else None
        if wire is None:
            wire = merged[key] = Wire(start, end, -1 if bundled else operand, [])
            wires.append(wire)
        wire.edges.append(number)
    return wires
