"""Place a graph in which some blocks are open: frames around their parts, as deep as the blocks lie in each other.

An open block is laid out first, alone; then it is one box of the layout around it. A value that crosses its border
does so at a port: it enters on the left side and leaves on the right one, and has one port however many uses it has.
In the layout of the block the ports are pinned boxes without size. So they come in an order in which few edges
cross, and outside the edges follow them.

A *hop* is the part of an edge that lies in one frame: from a part or an entry to a part or an exit. Edges with the
same value share their hops as far as they go the same way. `frontend/src/layout/nesting.js` mirrors this
file.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from minigrad_viz.layout.layered import Layout, Point, Ports, arrange, check_sizes, tidy_route

__all__ = ["Nested", "nest"]

Edges = Sequence[tuple[int, int]]
Box = tuple[float, float, float, float]
_ROOT = -1  # the frame of what lies in no block: the whole drawing
_PORT = -2  # begin of a hop at an entry of its frame, or end at an exit


@dataclass(frozen=True, slots=True)
class Nested:
    """Where everything goes, in the unit of the sizes: x to the right, y down, (0, 0) the top left corner.

    `boxes` are, by item, (left, top, width, height); `depths` say how many frames lie around an item. `routes` are,
    by edge, the points from the source's right side to the target's left side, through the ports of all frames
    between them: level inside columns, slanting only between them.
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
    """Lay out items 0, 1, ..., of which item i lies in item ``outer[i]``, or in none if that is -1.

    An item in which others lie is an open block, drawn as a frame. Its size is that of its header, the strip on top
    in which nothing else is drawn; the frame is at least that wide. The size of any other item is that of its box.
    A block comes before its parts. `edges` (from, to) join items that are no frames; the edges into one item are its
    inputs, in slot order. Of `ports` there are `wires`, `leave` and `arrive`. Coordinates are rounded to 0.01.

    Raises ValueError for an item that comes before its block, for an edge that ends at a frame or at no item, for
    edges that make a cycle where a block is taken as one, and for sizes as `layout` does.

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
    begin: int  # the part where it begins, or _PORT
    end: int  # the part where it ends, or _PORT
    edge: int  # an edge to which it belongs; if it ends at an item that is no frame, the only one


@dataclass(slots=True)
class _Frame:
    """An open block. Its nodes in the layout are its entries, its parts, then its exits."""

    parts: list[int] = field(default_factory=list)  # the items that lie in it directly, in tape order
    node: dict[int, int] = field(default_factory=dict)  # by part
    hops: list[_Hop] = field(default_factory=list)
    shared: dict[tuple[int, int, int], int] = field(
        default_factory=dict
    )  # by wire, begin and end: the hop of many edges
    entries: dict[int, int] = field(default_factory=dict)  # by wire: the depth of the value that enters
    entry: dict[int, float] = field(default_factory=dict)  # by wire: how far its entry is below the frame's centre
    exit: dict[int, float] = field(default_factory=dict)  # by wire: how far its exit is below the frame's centre
    drawn: Layout | None = None
    inner: Point = (0.0, 0.0)  # where the layout begins, from the frame's corner; then from the drawing's
    width: float = 0.0
    height: float = 0.0


def _open_frames(outer: Sequence[int]) -> tuple[dict[int, _Frame], list[int]]:
    """The frames, by item, each after the one around it; and how many frames lie around each item."""
    frames = {_ROOT: _Frame()}
    depths: list[int] = []
    for item, block in enumerate(outer):
        if not _ROOT <= block < item:
            raise ValueError(f"item {item} lies in item {block}: need a block that comes before it, or -1")
        depths.append(depths[block] + 1 if block != _ROOT else 0)
        frames.setdefault(block, _Frame()).parts.append(item)
    return frames, depths


# -- Edges are split into hops ---------------------------------------------------------------------


def _split_edges(
    outer: Sequence[int], edges: Edges, frames: Mapping[int, _Frame], depths: list[int], ports: Ports
) -> list[list[tuple[int, int]]]:
    """Write down the hops in their frames. Returns by edge its hops in order: the frame, and the number there."""
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
    """The number of the hop in frame `item`; a new one, unless it ends at a port and is there already."""
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
    """By item, the longest way to it from a leaf, in edges."""
    inputs: dict[int, list[int]] = {item: [] for item in range(items) if item not in frames}
    for source, target in edges:
        if source not in inputs or target not in inputs:
            raise ValueError(f"edge ({source}, {target}) must join two of {items} items that are no frames")
        inputs[target].append(source)
    far = [0] * items
    for item in _inputs_first(inputs):
        far[item] = max((far[source] + 1 for source in inputs[item]), default=0)
    return far


def _inputs_first(inputs: Mapping[int, Iterable[int]]) -> list[int]:
    """The items, each after its inputs: in the order of the keys, as far as that may be."""
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
                        raise ValueError(f"the edges make a cycle through item {source}: need blocks without cycles")
                    stack.append(source)
            else:
                stack.pop()
                if state[top] == "open":
                    state[top] = "done"
                    order.append(top)
    return order


# -- Frames are laid out from the inside to the outside --------------------------------------------


def _arrange_frame(
    frames: Mapping[int, _Frame], item: int, sizes: Sequence[Point], ports: Ports, gaps: tuple[float, float, float]
) -> None:
    """Lay out the parts of a frame, after the frames in it, and so find its size and the heights of its ports."""
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
    """Where the hops of a frame leave and arrive: at the ports of the frames in it, or as `ports` says."""
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


# -- Then all is put in one picture ----------------------------------------------------------------


def _place_items(sizes: Sequence[Point], outer: Sequence[int], frames: Mapping[int, _Frame]) -> list[Box]:
    """The boxes of all items, from the outside to the inside."""
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
    """One route along all hops of an edge. Heights that differ by less than an error of rounding are made equal.

    Where a title makes a frame wider than what is in it, the edge runs on level to the border: hops begin level.
    """
    points: list[Point] = []
    for item, number in path:
        frame = frames[item]
        assert frame.drawn is not None
        route = [(frame.inner[0] + x, frame.inner[1] + y) for x, y in frame.drawn.routes[number]]
        for x, y in route[1:] if points else route:
            points.append((x, points[-1][1] if points and abs(y - points[-1][1]) < 1e-6 else y))
    return tidy_route(points)
