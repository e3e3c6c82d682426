"""Lay out a computation graph in columns: time flows to the right, and straight lines are preferred.

The layered method of Sugiyama, Tagawa and Toda (1981), in five steps:

1. `rank_nodes`      assigns a column to each node; edges point right and are kept short;
2. `cut_into_links`  gives a long-range value a *lane*: one dummy in each column that it crosses;
3. `order_columns`   permutes each column until few edges cross;
4. `straighten`, `settle_heights`  choose the level links, and the y of every vertex;
5. `_route_edges`    converts each edge to a list of points.

A vertex is a node or a dummy; a link connects vertices of adjacent columns. All edges out of one node share its lane,
like the taps of one wire: they carry one value, and a weight used 3,000 times costs one lane, not 3,000. `Ports`
describes boxes with several wires. Nothing recurses or depends on hash order: a chain of 100,000 nodes is fine, and the
same graph gives the same bytes, here and in `frontend/src/layout/layered.js`, which mirrors these files.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from minigrad_viz.layout.graph import Edges, Layered, Ports, cut_into_links, rank_nodes
from minigrad_viz.layout.heights import place_ports, settle_heights, straighten
from minigrad_viz.layout.order import order_columns

__all__ = ["Layout", "Ports", "arrange", "check_sizes", "layout", "tidy_route"]

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Layout:
    """The positions of boxes and edges, in the unit of the sizes: x to the right, y down, (0, 0) the top left corner.

    `centers` are the centres of the boxes and `ranks` their columns, by node. `routes` are, by edge, the points from
    the source's right side to the target's left side; a route is level inside columns and slants only between them.
    """

    width: float
    height: float
    centers: list[Point]
    routes: list[list[Point]]
    ranks: list[int]


def layout(
    sizes: Sequence[Point], edges: Edges, *, gap_x: float = 48.0, gap_y: float = 16.0, ports: Ports | None = None
) -> Layout:
    """Lay out nodes 0, 1, ... with boxes of `sizes` (width, height), connected by `edges` (from, to).

    Nodes are in tape order, so an edge leads to a larger index. The edges into one node are its inputs, in slot order;
    they arrive at separate ports from top to bottom, and may repeat, as in a*a. Columns are `gap_x` apart, the boxes of
    a column `gap_y`. Coordinates are rounded to 0.01. Raises ValueError for an edge that does not point forward or
    names a missing node, and for a size that is negative or not finite.

    >>> layout([(40, 30), (40, 30)], [(0, 1)]).routes
    [[(40.0, 15.0), (88.0, 15.0)]]
    """
    check_sizes(sizes)
    for source, target in edges:
        if not (0 <= source < len(sizes) and 0 <= target < len(sizes)):
            raise ValueError(f"edge ({source}, {target}) names a missing node: there are {len(sizes)} nodes")
        if source >= target:
            raise ValueError(f"edge ({source}, {target}) points backward: expected nodes in tape order, inputs first")
    drawn = arrange(sizes, edges, gap_x, gap_y, ports or Ports())
    centers = [(round(x, 2), round(y, 2)) for x, y in drawn.centers]
    routes = [tidy_route(route) for route in drawn.routes]
    return Layout(round(drawn.width, 2), round(drawn.height, 2), centers, routes, drawn.ranks)


def check_sizes(sizes: Sequence[Point]) -> None:
    """Raise ValueError for a size that is negative or not finite."""
    for node, (width, height) in enumerate(sizes):
        if not (0 <= width < float("inf") and 0 <= height < float("inf")):
            raise ValueError(f"node {node} has size ({width}, {height}); expected finite, non-negative values")


def arrange(sizes: Sequence[Point], edges: Edges, gap_x: float, gap_y: float, ports: Ports) -> Layout:
    """Lay out as `layout` does, but without checks and rounding; routes may have redundant points on level segments."""
    rank, depth = rank_nodes(len(sizes), edges, ports)
    graph = cut_into_links(edges, rank, depth, ports, max(_DUMMIES, len(sizes)))
    sweeps, swaps, moves = _effort(graph)
    graph.half = [height / 2 for _, height in sizes] + [0.0] * (len(graph.rank) - len(sizes))
    order_columns(graph, sweeps, swaps)
    straighten(graph)
    place_ports(graph)
    return _route_edges(graph, sizes, settle_heights(graph, gap_y, moves), gap_x, gap_y)


_DUMMIES = 20_000  # budget of dummies in lanes, or one per node if larger; longer lanes become express edges


def _effort(graph: Layered) -> tuple[int, tuple[int, ...], int]:
    """Return the effort to spend, less as the graph grows: the only place that enforces the viewer's time budgets.

    Returns the sweeps from each start; for each start, the steps of `_swap_neighbours` per vertex; and the iterations
    of `settle_heights`.
    """
    work = len(graph.rank) + sum(map(len, graph.before)) + 1
    if work > 40_000:
        return 2, (0,), 4
    return 3 + min(20, 10_000 // work), (2, 10), 10 + min(30, 10_000 // work)


def _route_edges(graph: Layered, sizes: Sequence[Point], y: list[float], gap_x: float, gap_y: float) -> Layout:
    """Place the columns from left to right, the top at 0, and route each edge along its lane."""
    sides, right = [], -gap_x
    for column in graph.columns:
        left = right + gap_x
        right = left + max((sizes[vertex][0] for vertex in column if vertex < graph.nodes), default=0.0)
        sides.append((left, right))
    top = min((at - half for at, half in zip(y, graph.half, strict=True)), default=0.0)
    bottom = max((at + half for at, half in zip(y, graph.half, strict=True)), default=0.0)
    express = sorted({graph.wire[edge] for edge, feeder in enumerate(graph.feeder) if feeder < 0})
    lift = {wire: top - gap_y * (1 + 0.6 * at) for at, wire in enumerate(express)}
    top = min(lift.values(), default=top)
    x = [sum(sides[graph.rank[node]]) / 2 for node in range(graph.nodes)]
    out = [y[vertex] + below for vertex, below in zip(graph.owner, graph.leave, strict=True)]  # by outlet
    bends = [_lane_bends(graph, lane, sides, out) for lane in graph.lane]
    routes = []
    for edge, (source, target) in enumerate(graph.edges):
        wire, feeder, rank, port = (
            graph.wire[edge],
            graph.feeder[edge],
            graph.rank[target],
            y[target] + graph.port[edge],
        )
        leave, enter, start = sides[graph.rank[source]][1], sides[rank][0], out[graph.lane[wire][0]]
        points = [(x[source] + sizes[source][0] / 2, start)]
        if feeder >= 0:
            points += bends[wire][0][: bends[wire][1][rank - graph.rank[source] - 1]]
            points.append((sides[rank - 1][1], out[feeder]))
        else:
            high = lift[wire]
            points += [(leave, start), (leave + gap_x / 2, high), (enter - gap_x / 2, high)]
        points += [(enter, port), (x[target] - sizes[target][0] / 2, port)]
        routes.append([(at, height - top) for at, height in points])
    centers = [(x[node], y[node] - top) for node in range(graph.nodes)]
    return Layout(max(right, 0.0), bottom - top, centers, routes, graph.rank[: graph.nodes])


def _lane_bends(graph: Layered, lane: list[int], sides: list[Point], out: list[float]) -> tuple[list[Point], list[int]]:
    """Return the points between which a lane slants, and how many of them precede each of its outlets."""
    points: list[Point] = []
    counts = [0]
    for one, two in pairwise(lane):
        if out[one] != out[two]:
            points += [(sides[graph.rank[graph.owner[one]]][1], out[one]), (sides[graph.rank[two]][0], out[two])]
        counts.append(len(points))
    return points, counts


def tidy_route(points: list[Point]) -> list[Point]:
    """Round points to 0.01, and drop points that repeat or lie in the middle of a level segment."""
    tidy: list[Point] = []
    for x, y in points:
        point = (round(x, 2), round(y, 2))
        if len(tidy) > 1 and tidy[-2][1] == tidy[-1][1] == point[1]:
            tidy.pop()
        if not tidy or tidy[-1] != point:
            tidy.append(point)
    return tidy
