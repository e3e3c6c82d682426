"""Lay out a graph with open blocks, which are drawn as nested frames around their parts.

An open block is laid out separately, and is then a single box of the enclosing layout. A value crosses the border of a
block at a port: at an entry on the left, or at an exit on the right. It has one port regardless of the number of its
uses. In the layout of the block the ports are boxes of size 0, ordered to reduce crossings, and edges outside follow
this order.

A *hop* is the part of an edge inside one frame: from a part or an entry to a part or an exit. Edges with the same value
share hops along their common path. `frontend/src/layout/nesting.js` mirrors this file.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from minigrad_viz.layout.layered import Layout, Point, Ports, check_sizes, compute_layout, simplify_route

__all__ = ["Nested", "nest"]

Edges = Sequence[tuple[int, int]]
Box = tuple[float, float, float, float]
_ROOT = -1  # pseudo-block of the entire drawing, which contains the items outside of blocks
_PORT = -2  # start of a hop at an entry of its frame, or end of a hop at an exit


@dataclass(frozen=True, slots=True)
class Nested:
    """The positions of boxes and edges, in the unit of the sizes, relative to the top left corner, with y downwards.

    `boxes` contains (left, top, width, height) of each item, and `depths` the number of frames around it. `routes`
    contains the points of each edge, from the source's right side to the target's left side, through the ports of all
    frames between them; a route is horizontal inside columns and slants between them.
    """

    width: float
    height: float
    boxes: list[Box]
    depths: list[int]
    routes: list[list[Point]]


def nest(
    sizes: Sequence[Point],
    outer: Sequence[int],
    edges: Edges,
    *,
    gap_x: float = 48.0,
    gap_y: float = 16.0,
    padding: float = 12.0,
    ports: Ports | None = None,
) -> Nested:
    """Lay out items 0, 1, ..., where item i is inside item ``outer[i]``, or outside of all items if that is -1.

    An item that contains others is an open block, drawn as a frame. Its size is that of its header, the strip on top in
    which nothing else is drawn; the frame is at least that wide. The size of any other item is that of its box. A block
    precedes its parts. `edges` (from, to) connect items that are not frames; the edges into one item are its inputs, in
    slot order. Of `ports`, only `wires`, `leave_offset` and `arrive_offset` are used. Coordinates are rounded to 0.01.

    Raises ValueError for an item that precedes its block, for an edge to or from a frame or a missing item, for edges
    that form a cycle between blocks, and for a size that is negative or not finite.

    >>> result = nest([(40.0, 30.0), (60.0, 18.0), (40.0, 30.0)], [-1, -1, 1], [(0, 2)])
    >>> result.boxes[1], result.boxes[2]
    ((88.0, 0.0, 100.0, 72.0), (136.0, 30.0, 40.0, 30.0))
    >>> result.routes  # through the port at (88, 45)
    [[(40.0, 45.0), (136.0, 45.0)]]
    """
    ports = ports or Ports()
    check_sizes(sizes)
    frames, depths = _open_frames(outer)
    hops = _split_edges(outer, edges, frames, depths, ports)
    for item in sorted(frames, reverse=True):
        _layout_frame(frames, item, sizes, ports, (gap_x, gap_y, padding))
    boxes = _place_items(sizes, outer, frames)
    routes = [_join_hops(path, frames) for path in hops]
    rounded = [(round(x, 2), round(y, 2), round(width, 2), round(height, 2)) for x, y, width, height in boxes]
    return Nested(round(frames[_ROOT].width, 2), round(frames[_ROOT].height, 2), rounded, depths, routes)


class _Hop(NamedTuple):
    wire: int
    start: int  # part at which the hop starts, or _PORT
    end: int  # part at which the hop ends, or _PORT
    edge: int  # an edge that contains the hop; the only one if the end is an item other than a frame


@dataclass(slots=True)
class _Frame:
    """An open block. The nodes of its layout are its entries, followed by its parts and its exits."""

    parts: list[int] = field(default_factory=list)  # items directly inside the block, in tape order
    node_of_part: dict[int, int] = field(default_factory=dict)  # index of each part in the layout
    hops: list[_Hop] = field(default_factory=list)
    # Maps (wire, start, end) to the index of the hop that edges share.
    shared_hops: dict[tuple[int, int, int], int] = field(default_factory=dict)
    entries: dict[int, int] = field(default_factory=dict)  # maps a wire to the depth of the entering value
    # Maps a wire to the vertical offset, from the frame's centre, at which it enters.
    entry_offset: dict[int, float] = field(default_factory=dict)
    # Maps a wire to the vertical offset, from the frame's centre, at which it leaves.
    exit_offset: dict[int, float] = field(default_factory=dict)
    layout: Layout | None = None
    origin: Point = (0.0, 0.0)  # origin of the layout, relative to the frame's corner; later relative to the drawing's
    width: float = 0.0
    height: float = 0.0


def _open_frames(outer: Sequence[int]) -> tuple[dict[int, _Frame], list[int]]:
    """Return the frame of each open block, outer blocks first, and the nesting depth of each item."""
    frames = {_ROOT: _Frame()}
    depths: list[int] = []
    for item, block in enumerate(outer):
        if not _ROOT <= block < item:
            raise ValueError(f"item {item} is inside item {block}; expected an earlier item, or -1")
        depths.append(depths[block] + 1 if block != _ROOT else 0)
        frames.setdefault(block, _Frame()).parts.append(item)
    return frames, depths


# -- Split edges into hops -------------------------------------------------------------------------


def _split_edges(
    outer: Sequence[int], edges: Edges, frames: Mapping[int, _Frame], depths: list[int], ports: Ports
) -> list[list[tuple[int, int]]]:
    """Add the hops of all edges to their frames. Return the hops of each edge in order, as (frame, index)."""
    wires: dict[tuple[int, float, int], int] = {}
    depth_of_value = _value_depths(len(outer), edges, frames)
    paths = []
    for edge, (source, target) in enumerate(edges):
        leave = ports.leave_offset[edge] if ports.leave_offset is not None else None
        wire = wires.setdefault(
            (source, leave or 0.0, ports.wires[edge] if ports.wires is not None else source), len(wires)
        )
        source_item, target_item = source, target
        leaving_hops: list[tuple[int, _Hop]] = []
        entering_hops: list[tuple[int, _Hop]] = []
        while outer[source_item] != outer[target_item]:
            if depths[source_item] >= depths[target_item]:
                leaving_hops.append((outer[source_item], _Hop(wire, source_item, _PORT, edge)))
                source_item = outer[source_item]
            else:
                entering_hops.append((outer[target_item], _Hop(wire, _PORT, target_item, edge)))
                target_item = outer[target_item]
        path = [
            *leaving_hops,
            (outer[source_item], _Hop(wire, source_item, target_item, edge)),
            *reversed(entering_hops),
        ]
        paths.append([(item, _add_hop(frames, item, hop, depth_of_value[source])) for item, hop in path])
    return paths


def _add_hop(frames: Mapping[int, _Frame], item: int, hop: _Hop, depth: int) -> int:
    """Return the index of an existing equal hop in frame `item` if it can be shared; otherwise add the hop."""
    frame = frames[item]
    if hop.start == _PORT:
        frame.entries.setdefault(hop.wire, depth)
    if hop.end == _PORT:
        frame.exit_offset.setdefault(hop.wire, 0.0)
    index = len(frame.hops)
    if hop.end == _PORT or hop.end in frames:
        index = frame.shared_hops.setdefault((hop.wire, hop.start, hop.end), index)
    if index == len(frame.hops):
        frame.hops.append(hop)
    return index


def _value_depths(items: int, edges: Edges, frames: Mapping[int, _Frame]) -> list[int]:
    """Return, for each item, the length of the longest path to it from a leaf, in edges."""
    inputs: dict[int, list[int]] = {item: [] for item in range(items) if item not in frames}
    for source, target in edges:
        if source not in inputs or target not in inputs:
            raise ValueError(f"edge ({source}, {target}) must connect two of {items} items that are not frames")
        inputs[target].append(source)
    depth = [0] * items
    for item in _topological_order(inputs):
        depth[item] = max((depth[source] + 1 for source in inputs[item]), default=0)
    return depth


def _topological_order(inputs: Mapping[int, Iterable[int]]) -> list[int]:
    """Sort items topologically; ties are broken by key."""
    order: list[int] = []
    state = dict.fromkeys(inputs, "new")
    for item in inputs:
        stack = [item]
        while stack:
            top = stack[-1]
            if state[top] == "new":
                state[top] = "open"
                for source in inputs[top]:
                    if state[source] == "open":
                        raise ValueError(
                            f"the edges form a cycle through item {source}; expected blocks without cycles"
                        )
                    stack.append(source)
            else:
                stack.pop()
                if state[top] == "open":
                    state[top] = "done"
                    order.append(top)
    return order


# -- Lay out the frames, from the innermost outwards --------------------------------------------


def _layout_frame(
    frames: Mapping[int, _Frame], item: int, sizes: Sequence[Point], ports: Ports, gaps: tuple[float, float, float]
) -> None:
    """Lay out the parts of a frame whose inner frames are laid out, and set its size and the heights of its ports."""
    frame, (gap_x, gap_y, padding) = frames[item], gaps
    inputs: dict[int, list[int]] = {part: [] for part in frame.parts}
    for hop in frame.hops:
        if hop.start != _PORT and hop.end != _PORT:
            inputs[hop.end].append(hop.start)
    frame.node_of_part = {part: at for at, part in enumerate(_topological_order(inputs), len(frame.entries))}
    entry_nodes = {wire: at for at, wire in enumerate(frame.entries)}
    exit_nodes = {wire: at for at, wire in enumerate(frame.exit_offset, len(entry_nodes) + len(frame.node_of_part))}
    parts = [
        (frames[part].width, frames[part].height) if part in frames else sizes[part] for part in frame.node_of_part
    ]
    result = frame.layout = compute_layout(
        [*[(0.0, 0.0)] * len(entry_nodes), *parts, *[(0.0, 0.0)] * len(exit_nodes)],
        [
            (
                entry_nodes[hop.wire] if hop.start == _PORT else frame.node_of_part[hop.start],
                exit_nodes[hop.wire] if hop.end == _PORT else frame.node_of_part[hop.end],
            )
            for hop in frame.hops
        ],
        gap_x,
        gap_y,
        _inner_ports(frames, frame, ports),
    )
    if item == _ROOT:
        frame.width, frame.height = result.width, result.height
        return
    header = sizes[item]
    frame.origin = (0.0 if entry_nodes else padding, header[1] + padding)
    frame.width = max(frame.origin[0] + result.width + (0.0 if exit_nodes else padding), header[0])
    frame.height = frame.origin[1] + result.height + padding
    for heights, nodes in ((frame.entry_offset, entry_nodes), (frame.exit_offset, exit_nodes)):
        for wire, node in nodes.items():
            heights[wire] = frame.origin[1] + result.centers[node][1] - frame.height / 2


def _inner_ports(frames: Mapping[int, _Frame], frame: _Frame, ports: Ports) -> Ports:
    """Return the ports of the hops of a frame, which are those of inner frames, or as specified by `ports`."""
    leave: list[float | None] = []
    arrive: list[float | None] = []
    for hop in frame.hops:
        if hop.start in frames:
            leave.append(frames[hop.start].exit_offset[hop.wire])
        else:
            leave.append(None if hop.start == _PORT or ports.leave_offset is None else ports.leave_offset[hop.edge])
        if hop.end in frames:
            arrive.append(frames[hop.end].entry_offset[hop.wire])
        else:
            arrive.append(None if hop.end == _PORT or ports.arrive_offset is None else ports.arrive_offset[hop.edge])
    first = dict(enumerate(frame.entries.values()))
    inside = len(first) + len(frame.node_of_part)
    return Ports([hop.wire for hop in frame.hops], leave, arrive, first, range(inside, inside + len(frame.exit_offset)))


# -- Combine the frames ---------------------------------------------------------------------


def _place_items(sizes: Sequence[Point], outer: Sequence[int], frames: Mapping[int, _Frame]) -> list[Box]:
    """Return the boxes of all items, from the outermost inwards."""
    boxes = []
    for item, block in enumerate(outer):
        outer_frame = frames[block]
        assert outer_frame.layout is not None
        x, y = outer_frame.layout.centers[outer_frame.node_of_part[item]]
        width, height = sizes[item]
        if item in frames:
            width, height = frames[item].width, frames[item].height
        left, top = outer_frame.origin[0] + x - width / 2, outer_frame.origin[1] + y - height / 2
        if item in frames:
            frame = frames[item]
            frame.origin = (left + frame.origin[0], top + frame.origin[1])
        boxes.append((left, top, width, height))
    return boxes


def _join_hops(path: list[tuple[int, int]], frames: Mapping[int, _Frame]) -> list[Point]:
    """Concatenate the hops of an edge into one route, and equalise heights that differ by rounding errors.

    If the header of a frame is wider than its contents, the edge continues horizontally to the border.
    """
    points: list[Point] = []
    for item, hop_index in path:
        frame = frames[item]
        assert frame.layout is not None
        route = [(frame.origin[0] + x, frame.origin[1] + y) for x, y in frame.layout.routes[hop_index]]
        for x, y in route[1:] if points else route:
            points.append((x, points[-1][1] if points and abs(y - points[-1][1]) < 1e-6 else y))
    return simplify_route(points)
