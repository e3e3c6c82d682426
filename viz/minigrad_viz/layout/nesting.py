"""Lay out a graph with open blocks: nested frames around their parts.

An open block is laid out first, alone; then it is one box of the layout around it. A value that crosses its border does
so at a port: it enters on the left and leaves on the right, and has one port however many uses it has. In the layout of
the block the ports are pinned boxes of size 0. So their order gives few crossings, and edges outside follow it.

A *hop* is the part of an edge inside one frame: from a part or an entry to a part or an exit. Edges with the same value
share hops along their common path. `frontend/src/layout/nesting.js` mirrors this file.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from minigrad_viz.layout.layered import Layout, Point, Ports, arrange, check_sizes, tidy_route

__all__ = ["Nested", "nest"]

Edges = Sequence[tuple[int, int]]
Box = tuple[float, float, float, float]
_ROOT = -1  # the frame of items in no block: the entire drawing
_PORT = -2  # start of a hop at an entry of its frame, or end at an exit


@dataclass(frozen=True, slots=True)
class Nested:
    """The positions of boxes and edges, in the unit of the sizes: x to the right, y down, (0, 0) the top left corner.

    `boxes` are, by item, (left, top, width, height); `depths` are the numbers of frames around the items. `routes` are,
    by edge, the points from the source's right side to the target's left side, through the ports of all frames between
    them: level inside columns, slanting only between them.
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
    """Lay out items 0, 1, ..., where item i is inside item ``outer[i]``, or in none if that is -1.

    An item that contains others is an open block, drawn as a frame. Its size is that of its header, the strip on top in
    which nothing else is drawn; the frame is at least that wide. The size of any other item is that of its box. A block
    precedes its parts. `edges` (from, to) connect items that are not frames; the edges into one item are its inputs, in
    slot order. Of `ports`, only `wires`, `leave` and `arrive` are used. Coordinates are rounded to 0.01.

    Raises ValueError for an item that precedes its block, for an edge that ends at a frame or at no item, for edges
    that form a cycle between blocks, and for sizes as `layout` does.

    >>> drawn = nest([(40.0, 30.0), (60.0, 18.0), (40.0, 30.0)], [-1, -1, 1], [(0, 2)])
    >>> drawn.boxes[1], drawn.boxes[2]
    ((88.0, 0.0, 100.0, 72.0), (136.0, 30.0, 40.0, 30.0))
    >>> drawn.routes  # through the port at (88, 45)
    [[(40.0, 45.0), (136.0, 45.0)]]
    """
    ports = ports or Ports()
    check_sizes(sizes)
    frames, depths = _open_frames(outer)
    hops = _split_edges(outer, edges, frames, depths, ports)
    for item in sorted(frames, reverse=True):
        _arrange_frame(frames, item, sizes, ports, (gap_x, gap_y, padding))
    boxes = _place_items(sizes, outer, frames)
    routes = [_join_hops(path, frames) for path in hops]
    rounded = [(round(x, 2), round(y, 2), round(width, 2), round(height, 2)) for x, y, width, height in boxes]
    return Nested(round(frames[_ROOT].width, 2), round(frames[_ROOT].height, 2), rounded, depths, routes)


class _Hop(NamedTuple):
    wire: int
    begin: int  # the part where it starts, or _PORT
    end: int  # the part where it ends, or _PORT
    edge: int  # one of its edges; the only one if it ends at an item that is not a frame


@dataclass(slots=True)
class _Frame:
    """An open block. Its nodes in the layout are its entries, its parts, then its exits."""

    parts: list[int] = field(default_factory=list)  # its direct items, in tape order
    node: dict[int, int] = field(default_factory=dict)  # by part
    hops: list[_Hop] = field(default_factory=list)
    shared: dict[tuple[int, int, int], int] = field(
        default_factory=dict
    )  # by wire, begin and end: the hop of many edges
    entries: dict[int, int] = field(default_factory=dict)  # by wire: the depth of the entering value
    entry: dict[int, float] = field(default_factory=dict)  # by wire: the offset of its entry below the frame's centre
    exit: dict[int, float] = field(default_factory=dict)  # by wire: the offset of its exit below the frame's centre
    drawn: Layout | None = None
    inner: Point = (0.0, 0.0)  # origin of the layout, relative to the frame's corner; later to the drawing's
    width: float = 0.0
    height: float = 0.0


def _open_frames(outer: Sequence[int]) -> tuple[dict[int, _Frame], list[int]]:
    """Return the frames by item, each after its outer one, and the number of frames around each item."""
    frames = {_ROOT: _Frame()}
    depths: list[int] = []
    for item, block in enumerate(outer):
        if not _ROOT <= block < item:
            raise ValueError(f"item {item} is inside item {block}; expected an earlier item, or -1")
        depths.append(depths[block] + 1 if block != _ROOT else 0)
        frames.setdefault(block, _Frame()).parts.append(item)
    return frames, depths


# -- Edges are split into hops ---------------------------------------------------------------------


def _split_edges(
    outer: Sequence[int], edges: Edges, frames: Mapping[int, _Frame], depths: list[int], ports: Ports
) -> list[list[tuple[int, int]]]:
    """Add the hops of all edges to their frames. Return by edge its hops in order: the frame, and the index there."""
    wires: dict[tuple[int, float, int], int] = {}
    far = _value_depths(len(outer), edges, frames)
    paths = []
    for edge, (source, target) in enumerate(edges):
        leave = ports.leave[edge] if ports.leave is not None else None
        wire = wires.setdefault(
            (source, leave or 0.0, ports.wires[edge] if ports.wires is not None else source), len(wires)
        )
        one, two = source, target
        way_out: list[tuple[int, _Hop]] = []
        way_in: list[tuple[int, _Hop]] = []
        while outer[one] != outer[two]:
            if depths[one] >= depths[two]:
                way_out.append((outer[one], _Hop(wire, one, _PORT, edge)))
                one = outer[one]
            else:
                way_in.append((outer[two], _Hop(wire, _PORT, two, edge)))
                two = outer[two]
        way = [*way_out, (outer[one], _Hop(wire, one, two, edge)), *reversed(way_in)]
        paths.append([(item, _add_hop(frames, item, hop, far[source])) for item, hop in way])
    return paths


def _add_hop(frames: Mapping[int, _Frame], item: int, hop: _Hop, far: int) -> int:
    """Return the index of the hop in frame `item`; a new one unless it is shared."""
    frame = frames[item]
    if hop.begin == _PORT:
        frame.entries.setdefault(hop.wire, far)
    if hop.end == _PORT:
        frame.exit.setdefault(hop.wire, 0.0)
    number = len(frame.hops)
    if hop.end == _PORT or hop.end in frames:
        number = frame.shared.setdefault((hop.wire, hop.begin, hop.end), number)
    if number == len(frame.hops):
        frame.hops.append(hop)
    return number


def _value_depths(items: int, edges: Edges, frames: Mapping[int, _Frame]) -> list[int]:
    """Return by item the longest path to it from a leaf, in edges."""
    inputs: dict[int, list[int]] = {item: [] for item in range(items) if item not in frames}
    for source, target in edges:
        if source not in inputs or target not in inputs:
            raise ValueError(f"edge ({source}, {target}) must connect two of {items} items that are not frames")
        inputs[target].append(source)
    far = [0] * items
    for item in _inputs_first(inputs):
        far[item] = max((far[source] + 1 for source in inputs[item]), default=0)
    return far


def _inputs_first(inputs: Mapping[int, Iterable[int]]) -> list[int]:
    """Return the items in topological order, otherwise in key order."""
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


# -- Frames are laid out from the innermost outwards --------------------------------------------


def _arrange_frame(
    frames: Mapping[int, _Frame], item: int, sizes: Sequence[Point], ports: Ports, gaps: tuple[float, float, float]
) -> None:
    """Lay out the parts of a frame, after the frames inside it, and compute its size and the heights of its ports."""
    frame, (gap_x, gap_y, padding) = frames[item], gaps
    inputs: dict[int, list[int]] = {part: [] for part in frame.parts}
    for hop in frame.hops:
        if hop.begin != _PORT and hop.end != _PORT:
            inputs[hop.end].append(hop.begin)
    frame.node = {part: at for at, part in enumerate(_inputs_first(inputs), len(frame.entries))}
    entry = {wire: at for at, wire in enumerate(frame.entries)}
    leaving = {wire: at for at, wire in enumerate(frame.exit, len(entry) + len(frame.node))}
    parts = [(frames[part].width, frames[part].height) if part in frames else sizes[part] for part in frame.node]
    drawn = frame.drawn = arrange(
        [*[(0.0, 0.0)] * len(entry), *parts, *[(0.0, 0.0)] * len(leaving)],
        [
            (
                entry[hop.wire] if hop.begin == _PORT else frame.node[hop.begin],
                leaving[hop.wire] if hop.end == _PORT else frame.node[hop.end],
            )
            for hop in frame.hops
        ],
        gap_x,
        gap_y,
        _inner_ports(frames, frame, ports),
    )
    if item == _ROOT:
        frame.width, frame.height = drawn.width, drawn.height
        return
    header = sizes[item]
    frame.inner = (0.0 if entry else padding, header[1] + padding)
    frame.width = max(frame.inner[0] + drawn.width + (0.0 if leaving else padding), header[0])
    frame.height = frame.inner[1] + drawn.height + padding
    for heights, nodes in ((frame.entry, entry), (frame.exit, leaving)):
        for wire, node in nodes.items():
            heights[wire] = frame.inner[1] + drawn.centers[node][1] - frame.height / 2


def _inner_ports(frames: Mapping[int, _Frame], frame: _Frame, ports: Ports) -> Ports:
    """Return where the hops of a frame leave and arrive: at the ports of inner frames, or as `ports` says."""
    leave: list[float | None] = []
    arrive: list[float | None] = []
    for hop in frame.hops:
        if hop.begin in frames:
            leave.append(frames[hop.begin].exit[hop.wire])
        else:
            leave.append(None if hop.begin == _PORT or ports.leave is None else ports.leave[hop.edge])
        if hop.end in frames:
            arrive.append(frames[hop.end].entry[hop.wire])
        else:
            arrive.append(None if hop.end == _PORT or ports.arrive is None else ports.arrive[hop.edge])
    first = dict(enumerate(frame.entries.values()))
    inside = len(first) + len(frame.node)
    return Ports([hop.wire for hop in frame.hops], leave, arrive, first, range(inside, inside + len(frame.exit)))


# -- The frames are combined ----------------------------------------------------------------


def _place_items(sizes: Sequence[Point], outer: Sequence[int], frames: Mapping[int, _Frame]) -> list[Box]:
    """Return the boxes of all items, from the outermost inwards."""
    boxes = []
    for item, block in enumerate(outer):
        around = frames[block]
        assert around.drawn is not None
        x, y = around.drawn.centers[around.node[item]]
        width, height = sizes[item]
        if item in frames:
            width, height = frames[item].width, frames[item].height
        left, top = around.inner[0] + x - width / 2, around.inner[1] + y - height / 2
        if item in frames:
            frame = frames[item]
            frame.inner = (left + frame.inner[0], top + frame.inner[1])
        boxes.append((left, top, width, height))
    return boxes


def _join_hops(path: list[tuple[int, int]], frames: Mapping[int, _Frame]) -> list[Point]:
    """Concatenate the hops of an edge to one route. Heights that differ by a rounding error are made equal.

    If a title makes a frame wider than its contents, the edge continues level to the border.
    """
    points: list[Point] = []
    for item, number in path:
        frame = frames[item]
        assert frame.drawn is not None
        route = [(frame.inner[0] + x, frame.inner[1] + y) for x, y in frame.drawn.routes[number]]
        for x, y in route[1:] if points else route:
            points.append((x, points[-1][1] if points and abs(y - points[-1][1]) < 1e-6 else y))
    return tidy_route(points)
