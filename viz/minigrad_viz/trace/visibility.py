"""The visible part of a graph: the blocks that start open, and the items and wires that are then drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from minigrad_viz.trace.blocks import MAX_ITEMS
from minigrad_viz.trace.rows import TraceBlock
from minigrad_viz.trace.titles import generic_name

__all__ = ["Item", "Wire", "initially_open", "visible_items"]


def initially_open(blocks: Sequence[TraceBlock], block_of_node: Sequence[int], budget: int = MAX_ITEMS) -> set[int]:
    """Return the blocks that start open. Blocks are opened from the outermost inwards, up to `budget` visible items.

    Blocks with the same name (except digits) in equally named blocks are either all opened or all closed. A fold is
    opened only together with its contents.

    >>> blocks = [TraceBlock("graph", -1, "graph"), *[TraceBlock(name, 0, "scope") for name in ("a", "b₁", "b₂")]]
    >>> initially_open(blocks, [1, 1, 1, 2, 2, 3], 5)
    {0, 1}
    >>> initially_open(blocks, [1, 1, 1, 2, 2, 3], 6)
    {0, 1, 2, 3}
    """
    item_counts = Counter(block_of_node)
    item_counts.update(block.outer for block in blocks)
    group_ids: dict[tuple[int, str], int] = {}
    group = [0] * len(blocks)
    added_items = Counter[int]()
    for k, block in enumerate(blocks):
        if k:
            group[k] = group[block.outer]
            if blocks[block.outer].kind != "fold":
                group[k] = group_ids.setdefault((group[k], generic_name(block.name)), len(group_ids) + 1)
            added_items[group[k]] += item_counts[k] - 1
    opened, closed, visible_count = {0}, set[int](), item_counts[0]
    for k, block in enumerate(blocks):
        if k and block.outer in opened and group[k] not in closed:
            if visible_count + added_items[group[k]] > budget:
                closed.add(group[k])
            else:
                opened.add(k)
                visible_count += added_items.pop(group[k], 0)
    return opened


class Item(NamedTuple):
    """A node, a closed block, or the frame of an open block. Either `node` or `block` is -1; both are -1 for a mention.
    `outer` is the index of the enclosing frame, or -1.
    """

    node: int
    block: int
    is_frame: bool
    outer: int


@dataclass(slots=True)
class Wire:
    """An arrow between two items, for all of `edges`. `value` is the node whose value it carries; -1 if several."""

    start: int
    end: int
    value: int
    edges: list[int]


def visible_items(
    blocks: Sequence[TraceBlock],
    block_of_node: Sequence[int],
    edges: Sequence[tuple[int, int]],
    opened: Collection[int],
) -> tuple[list[Item], list[Wire]]:
    """Return the visible items and wires if the blocks `opened` are open. Items are in tape order; each frame precedes
    its contents.

    Each edge into a node has its own wire, so a*a shows two. A closed block receives each value over one wire, and all
    values from another closed block over a single wire; the boxes state their number.

    >>> blocks = [TraceBlock("graph", -1, "graph"), TraceBlock("a", 0, "scope")]
    >>> items, wires = visible_items(blocks, [0, 1, 1], [(0, 1), (0, 2), (1, 2)], {0})
    >>> [(item.node, item.block) for item in items], [(wire.start, wire.end, wire.edges) for wire in wires]
    ([(0, -1), (-1, 1)], [(0, 1, [0, 1])])
    """
    closed_ancestor = [-1] * len(blocks)  # outermost closed block around each block, or -1
    for k, block in enumerate(blocks):
        if k:
            ancestor = closed_ancestor[block.outer]
            closed_ancestor[k] = ancestor if ancestor >= 0 else -1 if k in opened else k
    items: list[Item] = []
    item_of_block = {0: -1}

    def item_index(k: int) -> int:
        missing = []
        while k not in item_of_block:
            missing.append(k)
            k = blocks[k].outer
        for k in reversed(missing):
            items.append(Item(-1, k, closed_ancestor[k] < 0, item_of_block[blocks[k].outer]))
            item_of_block[k] = len(items) - 1
        return item_of_block[k]

    item_of_node = []
    for node, k in enumerate(block_of_node):
        outer = item_index(k if closed_ancestor[k] < 0 else closed_ancestor[k])
        if closed_ancestor[k] < 0:
            items.append(Item(node, -1, False, outer))
        item_of_node.append(len(items) - 1 if closed_ancestor[k] < 0 else outer)
    return items, _wires(edges, item_of_node, items)


def _wires(edges: Sequence[tuple[int, int]], item_of_node: Sequence[int], items: Sequence[Item]) -> list[Wire]:
    wires: list[Wire] = []
    merged: dict[tuple[int, int], Wire] = {}
    for edge, (operand, result) in enumerate(edges):
        start, end = item_of_node[operand], item_of_node[result]
        if start == end:
            continue
        closed = items[end].node < 0
        is_bundled = closed and items[start].node < 0
        key = (-1 - start if is_bundled else operand, end)
        wire = merged.get(key) if closed else None
        if wire is None:
            wire = merged[key] = Wire(start, end, -1 if is_bundled else operand, [])
            wires.append(wire)
        wire.edges.append(edge)
    return wires
