"""Step 4 of `layout`: choose the links to draw horizontally, and the y coordinate of every vertex."""

from bisect import bisect_left
from itertools import pairwise

from minigrad_viz.layout.graph import LayeredGraph

__all__ = ["choose_level_links", "place_ports", "settle_heights"]


def choose_level_links(graph: LayeredGraph) -> None:
    """Choose the links that are drawn level, that is, horizontally. They do not cross or share a start or an end.

    Links of lanes have priority, followed by the link from each node's deepest input, which is the main path of the
    computation. A node with several deepest inputs has no level link to them, so that it can be placed between them.
    The same applies to a node with several consumers in the next column.
    """
    graph.level_outlet = [-1] * len(graph.rank)
    for left, right in pairwise(graph.columns):
        left_position = {vertex: at for at, vertex in enumerate(left)}
        candidates = []
        for at, vertex in enumerate(right):
            deepest = max((graph.depth[source] for source in graph.incoming[vertex]), default=0)
            deepest_outlets = {source for source in graph.incoming[vertex] if graph.depth[source] == deepest}
            outlet = deepest_outlets.pop() if len(deepest_outlets) == 1 else -1
            if outlet >= 0 and (vertex >= graph.nodes or _has_one_consumer(graph, outlet)):
                source = graph.owner[outlet]
                dummies = (source >= graph.nodes) + (vertex >= graph.nodes)
                candidates.append(((1, 2, 0)[dummies], left_position[source], at, outlet))
        chosen: list[tuple[int, int]] = []
        for _, left_at, right_at, outlet in sorted(candidates):
            at = bisect_left(chosen, (left_at, right_at))
            is_clear_above = at == 0 or (chosen[at - 1][0] < left_at and chosen[at - 1][1] < right_at)
            if is_clear_above and (at == len(chosen) or (left_at < chosen[at][0] and right_at < chosen[at][1])):
                chosen.insert(at, (left_at, right_at))
                graph.level_outlet[right[right_at]] = outlet


def _has_one_consumer(graph: LayeredGraph, outlet: int) -> bool:
    """Return whether the links from `outlet` end at a single node, ignoring dummies."""
    return len({to for to in graph.outgoing[outlet] if to < graph.nodes}) == 1


def place_ports(graph: LayeredGraph) -> None:
    """Place the ports of each node in slot order, around its centre or with the port of a level link at the centre.

    The outlets of a node are placed around its centre, ordered by the positions at which their links end. Offsets
    specified by `Ports` are unchanged.
    """
    _place_outlets(graph)
    graph.arrival = [0.0] * len(graph.edges)
    for node, inputs in enumerate(graph.inputs):
        level_slots = [slot for slot, edge in enumerate(inputs) if graph.feeder[edge] == graph.level_outlet[node] >= 0]
        centre = sum(level_slots) / len(level_slots) if level_slots else (len(inputs) - 1) / 2
        max_distance = max(centre, len(inputs) - 1 - centre)
        step = min(12.0, 0.8 * graph.half_height[node] / max_distance) if max_distance else 0.0
        for slot, edge in enumerate(inputs):
            given_offset = graph.given_arrival[edge]
            graph.arrival[edge] = (slot - centre) * step if given_offset is None else given_offset


def _place_outlets(graph: LayeredGraph) -> None:
    end_positions: dict[int, list[int]] = {}  # positions at which the links of each outlet end
    arrivals = (outlet for column in graph.columns for vertex in column for outlet in graph.incoming[vertex])
    if len(graph.owner) > len(graph.rank):
        for at, outlet in enumerate(arrivals):
            end_positions.setdefault(outlet, []).append(at)
    for node in range(graph.nodes):
        outlets = graph.outlets[node]
        if len(outlets) > 1 and node in graph.free_nodes:
            middle = (len(outlets) - 1) / 2
            step = min(12.0, 0.8 * graph.half_height[node] / middle)
            means = {
                outlet: sum(end_positions[outlet]) / len(end_positions[outlet]) if outlet in end_positions else -1.0
                for outlet in outlets
            }
            for at, outlet in enumerate(sorted(outlets, key=means.__getitem__)):
                graph.leave_offset[outlet] = (at - middle) * step


def settle_heights(graph: LayeredGraph, gap: float, iterations: int) -> list[float]:
    """Return the y of each vertex.

    Vertices connected by level links form a row, like the blocks of Brandes and Köpf (2002).

    Each iteration moves every row halfway to the y at which its links would be level on average. An input is weighted
    like three consumers, to place a node between its inputs, as in a tree. Then rows are moved apart, once down and
    once up. The mean of two placements that satisfy all minimum distances also satisfies them, and so do their maximum
    and minimum, which are used to limit the height of the drawing.
    """
    row, shift = _form_rows(graph)
    count = max(row, default=-1) + 1
    distances = _row_distances(graph, row, shift, count, gap)
    pulls = _row_pulls(graph, row, shift, count)
    order = _top_down(distances)
    highest, lowest = _row_bounds(graph, row, shift, distances, order)
    y = [(highest_y + lowest_y) / 2 for highest_y, lowest_y in zip(highest, lowest, strict=True)]
    for _ in range(iterations):
        targets = [(at + _average_pull(some, y)) / 2 if some else at for at, some in zip(y, pulls, strict=True)]
        pushed_down, pushed_up = _push_down(distances, order, targets), _push_up(distances, order, targets)
        y = [min(max((pushed_down[at] + pushed_up[at]) / 2, highest[at]), lowest[at]) for at in range(count)]
    return [y[at] + offset for at, offset in zip(row, shift, strict=True)]


def _form_rows(graph: LayeredGraph) -> tuple[list[int], list[float]]:
    """Return the row of each vertex, and its vertical offset from the row's y, which is 0 without port offsets."""
    row, offset = [-1] * len(graph.rank), [0.0] * len(graph.rank)
    count = 0
    for column in graph.columns:
        for vertex in column:
            outlet = graph.level_outlet[vertex]
            if outlet < 0:
                row[vertex], count = count, count + 1
                continue
            source = graph.owner[outlet]
            row[vertex], offset[vertex] = row[source], offset[source] + graph.leave_offset[outlet]
            if vertex < graph.nodes:
                level = next(edge for edge in graph.inputs[vertex] if graph.feeder[edge] == outlet)
                offset[vertex] -= graph.given_arrival[level] or 0.0
    return row, offset


def _row_distances(
    graph: LayeredGraph, row: list[int], shift: list[float], count: int, gap: float
) -> list[dict[int, float]]:
    """Return, for each row, a dict of the rows directly below it and their minimum distances."""
    distances: list[dict[int, float]] = [{} for _ in range(count)]
    for column in graph.columns:
        for upper, lower in pairwise(column):
            space = gap if upper < graph.nodes and lower < graph.nodes else 0.6 * gap
            distance = graph.half_height[upper] + graph.half_height[lower] + space + (shift[upper] - shift[lower])
            lower_rows, lower_row = distances[row[upper]], row[lower]
            lower_rows[lower_row] = max(distance, lower_rows.get(lower_row, distance))
    return distances


def _row_pulls(graph: LayeredGraph, row: list[int], shift: list[float], count: int) -> list[list[tuple[int, float]]]:
    """Return, for each row, the linked rows, each with the distance from it at which the link would be level."""
    pulls: list[list[tuple[int, float]]] = [[] for _ in range(count)]
    links = [(graph.feeder[edge], target, graph.arrival[edge]) for edge, (_, target) in enumerate(graph.edges)]
    links += [(start, end, 0.0) for lane in graph.lane for start, end in pairwise(lane)]
    for outlet, vertex, port in links:
        source = graph.owner[outlet]
        if outlet >= 0 and row[source] != row[vertex]:
            offset = port + (shift[vertex] - shift[source] - graph.leave_offset[outlet])
            pulls[row[vertex]] += [(row[source], -offset)] * 3
            pulls[row[source]].append((row[vertex], offset))
    return pulls


def _average_pull(pulls: list[tuple[int, float]], y: list[float]) -> float:
    """Return the mean of the y coordinates at which the links of a row would be level.

    It does not use `sum`, whose rounding changed in Python 3.12.
    """
    total = 0.0
    for row, offset in pulls:
        total += y[row] + offset
    return total / len(pulls)


def _row_bounds(
    graph: LayeredGraph, row: list[int], shift: list[float], distances: list[dict[int, float]], order: list[int]
) -> tuple[list[float], list[float]]:
    """Return the minimum and maximum y of each row, which leave enough space to centre nodes.

    Boxes may use the full height of the tallest box whose ports have fixed offsets.
    """
    tallest_half = max(
        (half for node, half in enumerate(graph.half_height[: graph.nodes]) if _has_fixed_ports(graph, node)),
        default=0.0,
    )
    slack = [min(0.0, half - tallest_half) for half in graph.half_height]
    highest, lowest = [-float("inf")] * len(distances), [float("inf")] * len(distances)
    for vertex, at in enumerate(row):
        highest[at] = max(highest[at], slack[vertex] - shift[vertex])
    highest = _push_down(distances, order, highest)
    max_y = 1.3 * max((highest[at] + shift[vertex] + slack[vertex] for vertex, at in enumerate(row)), default=0.0)
    for vertex, at in enumerate(row):
        lowest[at] = min(lowest[at], max_y - slack[vertex] - shift[vertex])
    return highest, _push_up(distances, order, lowest)


def _has_fixed_ports(graph: LayeredGraph, node: int) -> bool:
    return any(graph.leave_offset[outlet] for outlet in graph.outlets[node]) or any(
        graph.given_arrival[edge] is not None for edge in graph.inputs[node]
    )


def _top_down(distances: list[dict[int, float]]) -> list[int]:
    """Sort the rows topologically from top to bottom. There are no cycles, since level links do not cross."""
    in_degree = [0] * len(distances)
    for lowers in distances:
        for lower in lowers:
            in_degree[lower] += 1
    order = [block for block, count in enumerate(in_degree) if not count]
    for block in order:
        for lower in distances[block]:
            in_degree[lower] -= 1
            if not in_degree[lower]:
                order.append(lower)
    return order


def _push_down(distances: list[dict[int, float]], order: list[int], targets: list[float]) -> list[float]:
    """Return the smallest y coordinates that are at least `targets` and satisfy all minimum distances."""
    y = targets.copy()
    for block in order:
        for lower, distance in distances[block].items():
            y[lower] = max(y[lower], y[block] + distance)
    return y


def _push_up(distances: list[dict[int, float]], order: list[int], targets: list[float]) -> list[float]:
    """Return the largest y coordinates that are at most `targets` and satisfy all minimum distances."""
    y = targets.copy()
    for block in reversed(order):
        y[block] = min([y[block], *(y[lower] - distance for lower, distance in distances[block].items())])
    return y
