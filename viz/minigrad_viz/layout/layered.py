"""Lay out a computation graph in columns, from left to right, with preference for straight lines.

The layered method of Sugiyama, Tagawa and Toda (1981), in five steps:

1. `rank_nodes`      assigns a column to each node; edges point right and are kept short;
2. `split_into_links`  assigns a *lane* to a long-range value: one dummy in each column that it crosses;
3. `order_columns`   permutes each column until few edges cross;
4. `choose_level_links`, `settle_heights`  choose the level links, and the y of every vertex;
5. `_route_edges`    converts each edge to a list of points.

A vertex is a node or a dummy; a link connects vertices of adjacent columns. All edges out of one node share its lane,
since they carry the same value: a weight used 3,000 times needs one lane, not 3,000. `Ports` describes boxes with
several wires. The code does not recurse or depend on hash order: it supports a chain of 100,000 nodes, and the same
graph gives the same bytes here and in `frontend/src/layout/layered.js`, which mirrors these files.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from minigrad_viz.layout.graph import Edges, LayeredGraph, Ports, rank_nodes, split_into_links
from minigrad_viz.layout.heights import choose_level_links, place_ports, settle_heights
from minigrad_viz.layout.order import order_columns

__all__ = ["Layout", "Ports", "check_sizes", "compute_layout", "layout", "simplify_route"]

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Layout:
    """The positions of boxes and edges, in the unit of the sizes, relative to the top left corner, with y downwards.

    `centers` contains the centre of each box, and `ranks` its column. `routes` contains the points of each edge, from
    the source's right side to the target's left side; a route is horizontal inside columns and slants between them.
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

    Nodes are in tape order, so that the target of an edge has a larger index than its source. The edges to one node are
    its inputs, in slot order; they end at separate ports from top to bottom, and may repeat, as in a*a. The distance
    between columns is `gap_x`, and between the boxes of a column `gap_y`. Coordinates are rounded to 0.01.

    Raises ValueError for an edge that does not point forward or whose node does not exist, and for a size that is
    negative or not finite.

    >>> layout([(40, 30), (40, 30)], [(0, 1)]).routes
    [[(40.0, 15.0), (88.0, 15.0)]]
    """
    check_sizes(sizes)
    for source, target in edges:
        if not (0 <= source < len(sizes) and 0 <= target < len(sizes)):
            raise ValueError(f"edge ({source}, {target}) names a missing node: there are {len(sizes)} nodes")
        if source >= target:
            raise ValueError(f"edge ({source}, {target}) points backward: expected nodes in tape order, inputs first")
    result = compute_layout(sizes, edges, gap_x, gap_y, ports or Ports())
    centers = [(round(x, 2), round(y, 2)) for x, y in result.centers]
    routes = [simplify_route(route) for route in result.routes]
    return Layout(round(result.width, 2), round(result.height, 2), centers, routes, result.ranks)


def check_sizes(sizes: Sequence[Point]) -> None:
    """Raise ValueError for a size that is negative or not finite."""
    for node, (width, height) in enumerate(sizes):
        if not (0 <= width < float("inf") and 0 <= height < float("inf")):
            raise ValueError(f"node {node} has size ({width}, {height}); expected finite, non-negative values")


def compute_layout(sizes: Sequence[Point], edges: Edges, gap_x: float, gap_y: float, ports: Ports) -> Layout:
    """Compute the `layout` without checks and rounding. Routes may have redundant points on horizontal segments."""
    rank, depth = rank_nodes(len(sizes), edges, ports)
    graph = split_into_links(edges, rank, depth, ports, max(MAX_DUMMIES, len(sizes)))
    sweeps, swap_steps, iterations = _effort(graph)
    graph.half_height = [height / 2 for _, height in sizes] + [0.0] * (len(graph.rank) - len(sizes))
    order_columns(graph, sweeps, swap_steps)
    choose_level_links(graph)
    place_ports(graph)
    return _route_edges(graph, sizes, settle_heights(graph, gap_y, iterations), gap_x, gap_y)


MAX_DUMMIES = 20_000  # Maximum number of dummies, or the number of nodes if larger. Other edges have none.


def _effort(graph: LayeredGraph) -> tuple[int, tuple[int, ...], int]:
    """Return iteration counts, which decrease with the size of the graph to keep layout within its time budget.

    The counts are the number of sweeps from each initial order, the number of steps of `_swap_neighbours` per vertex
    for each initial order, and the number of iterations of `settle_heights`.
    """
    work = len(graph.rank) + sum(map(len, graph.incoming)) + 1
    if work > 40_000:
        return 2, (0,), 4
    return 3 + min(20, 10_000 // work), (2, 10), 10 + min(30, 10_000 // work)


def _route_edges(graph: LayeredGraph, sizes: Sequence[Point], y: list[float], gap_x: float, gap_y: float) -> Layout:
    """Place the columns from left to right, route each edge along its lane, and return the `Layout`."""
    column_sides, right = [], -gap_x
    for column in graph.columns:
        left = right + gap_x
        right = left + max((sizes[vertex][0] for vertex in column if vertex < graph.nodes), default=0.0)
        column_sides.append((left, right))
    top = min((at - half for at, half in zip(y, graph.half_height, strict=True)), default=0.0)
    bottom = max((at + half for at, half in zip(y, graph.half_height, strict=True)), default=0.0)
    express = sorted({graph.wire[edge] for edge, feeder in enumerate(graph.feeder) if feeder < 0})
    express_y = {wire: top - gap_y * (1 + 0.6 * at) for at, wire in enumerate(express)}
    top = min(express_y.values(), default=top)
    x = [sum(column_sides[graph.rank[node]]) / 2 for node in range(graph.nodes)]
    outlet_y = [y[vertex] + offset for vertex, offset in zip(graph.owner, graph.leave_offset, strict=True)]
    bends = [_lane_bends(graph, lane, column_sides, outlet_y) for lane in graph.lane]
    routes = []
    for edge, (source, target) in enumerate(graph.edges):
        wire, feeder, rank, port = (
            graph.wire[edge],
            graph.feeder[edge],
            graph.rank[target],
            y[target] + graph.arrival[edge],
        )
        leave, enter, start = column_sides[graph.rank[source]][1], column_sides[rank][0], outlet_y[graph.lane[wire][0]]
        points = [(x[source] + sizes[source][0] / 2, start)]
        if feeder >= 0:
            points += bends[wire][0][: bends[wire][1][rank - graph.rank[source] - 1]]
            points.append((column_sides[rank - 1][1], outlet_y[feeder]))
        else:
            express_height = express_y[wire]
            points += [(leave, start), (leave + gap_x / 2, express_height), (enter - gap_x / 2, express_height)]
        points += [(enter, port), (x[target] - sizes[target][0] / 2, port)]
        routes.append([(at, height - top) for at, height in points])
    centers = [(x[node], y[node] - top) for node in range(graph.nodes)]
    return Layout(max(right, 0.0), bottom - top, centers, routes, graph.rank[: graph.nodes])


def _lane_bends(
    graph: LayeredGraph, lane: list[int], column_sides: list[Point], outlet_y: list[float]
) -> tuple[list[Point], list[int]]:
    """Return the endpoints of the slanting segments of a lane, and the number of them before each of its outlets."""
    points: list[Point] = []
    counts = [0]
    for start, end in pairwise(lane):
        if outlet_y[start] != outlet_y[end]:
            points += [
                (column_sides[graph.rank[graph.owner[start]]][1], outlet_y[start]),
                (column_sides[graph.rank[end]][0], outlet_y[end]),
            ]
        counts.append(len(points))
    return points, counts


def simplify_route(points: list[Point]) -> list[Point]:
    """Round points to 0.01, and remove duplicates and the inner points of horizontal segments."""
    simplified: list[Point] = []
    for x, y in points:
        point = (round(x, 2), round(y, 2))
        if len(simplified) > 1 and simplified[-2][1] == simplified[-1][1] == point[1]:
            simplified.pop()
        if not simplified or simplified[-1] != point:
            simplified.append(point)
    return simplified
