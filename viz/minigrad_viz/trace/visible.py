"""The visible part of a graph: which blocks start open, and the items and wires that are drawn then."""

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
    """Return the blocks that start open, from the outermost inwards, with at most `budget` visible items.

    Blocks with the same name (except digits) in equally named blocks are opened together or not at all, a fold only
    with its contents.

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
                visible += more.pop(group[k], 0)
    return opened


class Item(NamedTuple):
    """A node, a closed block, or the frame of an open one; either `node` or `block` is -1. `outer` is the item index of
    the frame around it, or -1.
    """

    node: int
    block: int
    framed: bool
    outer: int


@dataclass(slots=True)
class Wire:
    """An arrow between two items for all of `edges`; `value` is the node whose value it carries, -1 for several."""

    start: int
    end: int
    value: int
    edges: list[int]


def visible(
    blocks: Sequence[TraceBlock], where: Sequence[int], edges: Sequence[tuple[int, int]], opened: Collection[int]
) -> tuple[list[Item], list[Wire]]:
    """Return the visible items and wires while the blocks `opened` are open. Items are in tape order, each frame before
    its contents.

    Each edge into a node has its own wire, so a*a shows two. A closed block receives each value once, and all values
    from another closed block on one wire: the boxes state how many there are.

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
