"""Step 4 of `layout`: choose the level links, and the y coordinate of every vertex."""

from bisect import bisect_left
from itertools import pairwise

from minigrad_viz.layout.graph import Layered

__all__ = ["place_ports", "settle_heights", "straighten"]


def straighten(graph: Layered) -> None:
    """Choose the links that are drawn level: no two of them cross, or share an end on the same side.

    Lanes come first, then the link from each node's deepest input, which carries the main line of the computation. With
    inputs of equal depth, a node is free to lie between them; so is the source of several consumers in one column.
    """
    graph.mate = [-1] * len(graph.rank)
    for left, right in pairwise(graph.columns):
        place = {vertex: at for at, vertex in enumerate(left)}
        wanted = []
        for at, vertex in enumerate(right):
            deepest = max((graph.depth[source] for source in graph.before[vertex]), default=0)
            main = {source for source in graph.before[vertex] if graph.depth[source] == deepest}
            outlet = main.pop() if len(main) == 1 else -1
            if outlet >= 0 and (vertex >= graph.nodes or _has_one_consumer(graph, outlet)):
                source = graph.owner[outlet]
                dummies = (source >= graph.nodes) + (vertex >= graph.nodes)
                wanted.append(((1, 2, 0)[dummies], place[source], at, outlet))
        kept: list[tuple[int, int]] = []
        for _, one, two, outlet in sorted(wanted):
            at = bisect_left(kept, (one, two))
            clear_above = at == 0 or (kept[at - 1][0] < one and kept[at - 1][1] < two)
            if clear_above and (at == len(kept) or (one < kept[at][0] and two < kept[at][1])):
                kept.insert(at, (one, two))
                graph.mate[right[two]] = outlet


def _has_one_consumer(graph: Layered, outlet: int) -> bool:
    """Whether the links from `outlet` end at a single node, ignoring dummies."""
    return len({to for to in graph.after[outlet] if to < graph.nodes}) == 1


def place_ports(graph: Layered) -> None:
    """Place the ports of each node in slot order, a level input's at the centre, otherwise all around the centre.

    Several outlets are ordered by where their links end, around the centre. Given offsets are unchanged.
    """
    _place_outlets(graph)
    graph.port = [0.0] * len(graph.edges)
    for node, inputs in enumerate(graph.inputs):
        level = [slot for slot, edge in enumerate(inputs) if graph.feeder[edge] == graph.mate[node] >= 0]
        centre = sum(level) / len(level) if level else (len(inputs) - 1) / 2
        reach = max(centre, len(inputs) - 1 - centre)
        step = min(12.0, 0.8 * graph.half[node] / reach) if reach else 0.0
        for slot, edge in enumerate(inputs):
            given = graph.arrive[edge]
            graph.port[edge] = (slot - centre) * step if given is None else given


def _place_outlets(graph: Layered) -> None:
    goes: dict[int, list[int]] = {}  # by outlet: the positions where its links end
    arrivals = (outlet for column in graph.columns for vertex in column for outlet in graph.before[vertex])
    if len(graph.owner) > len(graph.rank):
        for at, outlet in enumerate(arrivals):
            goes.setdefault(outlet, []).append(at)
    for node in range(graph.nodes):
        outlets = graph.outlets[node]
        if len(outlets) > 1 and node in graph.loose:
            middle = (len(outlets) - 1) / 2
            step = min(12.0, 0.8 * graph.half[node] / middle)
            means = {outlet: sum(goes[outlet]) / len(goes[outlet]) if outlet in goes else -1.0 for outlet in outlets}
            for at, outlet in enumerate(sorted(outlets, key=means.__getitem__)):
                graph.leave[outlet] = (at - middle) * step


def settle_heights(graph: Layered, gap: float, moves: int) -> list[float]:
    """Return the y of each vertex. Vertices connected by level links form a row, like the blocks of Brandes and Köpf
    (2002).

    Each iteration moves every row halfway to where its links would be level on average, an input counting as much as
    three consumers so that a node lies between its inputs, as in a tree. Then rows are pushed apart, both down and up:
    the mean of two placements that respect all distances respects them too, and so do their maximum and minimum, which
    bounds the height of the drawing.
    """
    row, shift = _form_rows(graph)
    count = max(row, default=-1) + 1
    apart = _row_distances(graph, row, shift, count, gap)
    pulls = _row_pulls(graph, row, shift, count)
    order = _top_down(apart)
    highest, lowest = _row_bounds(graph, row, shift, apart, order)
    y = [(one + two) / 2 for one, two in zip(highest, lowest, strict=True)]
    for _ in range(moves):
        wish = [(at + _pull(some, y)) / 2 if some else at for at, some in zip(y, pulls, strict=True)]
        down, up = _push_down(apart, order, wish), _push_up(apart, order, wish)
        y = [min(max((down[at] + up[at]) / 2, highest[at]), lowest[at]) for at in range(count)]
    return [y[at] + below for at, below in zip(row, shift, strict=True)]


def _form_rows(graph: Layered) -> tuple[list[int], list[float]]:
    """Return the row of each vertex, and its offset below the row's y: 0 unless port offsets are given."""
    row, shift = [-1] * len(graph.rank), [0.0] * len(graph.rank)
    count = 0
    for column in graph.columns:
        for vertex in column:
            outlet = graph.mate[vertex]
            if outlet < 0:
                row[vertex], count = count, count + 1
                continue
            source = graph.owner[outlet]
            row[vertex], shift[vertex] = row[source], shift[source] + graph.leave[outlet]
            if vertex < graph.nodes:
                level = next(edge for edge in graph.inputs[vertex] if graph.feeder[edge] == outlet)
                shift[vertex] -= graph.arrive[level] or 0.0
    return row, shift


def _row_distances(
    graph: Layered, row: list[int], shift: list[float], count: int, gap: float
) -> list[dict[int, float]]:
    """Return by row the rows directly below, with their minimum distances."""
    apart: list[dict[int, float]] = [{} for _ in range(count)]
    for column in graph.columns:
        for upper, lower in pairwise(column):
            space = gap if upper < graph.nodes and lower < graph.nodes else 0.6 * gap
            far = graph.half[upper] + graph.half[lower] + space + (shift[upper] - shift[lower])
            below, under = apart[row[upper]], row[lower]
            below[under] = max(far, below.get(under, far))
    return apart


def _row_pulls(graph: Layered, row: list[int], shift: list[float], count: int) -> list[list[tuple[int, float]]]:
    """Return by row each row linked to it, and the distance below it at which the link is level."""
    pulls: list[list[tuple[int, float]]] = [[] for _ in range(count)]
    links = [(graph.feeder[edge], target, graph.port[edge]) for edge, (_, target) in enumerate(graph.edges)]
    links += [(one, two, 0.0) for lane in graph.lane for one, two in pairwise(lane)]
    for outlet, vertex, port in links:
        source = graph.owner[outlet]
        if outlet >= 0 and row[source] != row[vertex]:
            down = port + (shift[vertex] - shift[source] - graph.leave[outlet])
            pulls[row[vertex]] += [(row[source], -down)] * 3
            pulls[row[source]].append((row[vertex], down))
    return pulls


def _pull(some: list[tuple[int, float]], y: list[float]) -> float:
    """Return where the links of a row would be level on average. Not by `sum`, whose rounding changed in Python
    3.12.
    """
    total = 0.0
    for other, down in some:
        total += y[other] + down
    return total / len(some)


def _row_bounds(
    graph: Layered, row: list[int], shift: list[float], apart: list[dict[int, float]], order: list[int]
) -> tuple[list[float], list[float]]:
    """Return the minimum and maximum y of each row, with enough room to centre nodes and little more.

    Next to a box with given ports, which may be tall, others may use its full height.
    """
    tall = max(
        (half for node, half in enumerate(graph.half[: graph.nodes]) if _has_given_ports(graph, node)), default=0.0
    )
    rise = [min(0.0, half - tall) for half in graph.half]
    highest, lowest = [-float("inf")] * len(apart), [float("inf")] * len(apart)
    for vertex, at in enumerate(row):
        highest[at] = max(highest[at], rise[vertex] - shift[vertex])
    highest = _push_down(apart, order, highest)
    room = 1.3 * max((highest[at] + shift[vertex] + rise[vertex] for vertex, at in enumerate(row)), default=0.0)
    for vertex, at in enumerate(row):
        lowest[at] = min(lowest[at], room - rise[vertex] - shift[vertex])
    return highest, _push_up(apart, order, lowest)


def _has_given_ports(graph: Layered, node: int) -> bool:
    return any(graph.leave[outlet] for outlet in graph.outlets[node]) or any(
        graph.arrive[edge] is not None for edge in graph.inputs[node]
    )


def _top_down(apart: list[dict[int, float]]) -> list[int]:
    """Return all rows in top-down order. Level links never cross, so "above" has no cycles."""
    waiting = [0] * len(apart)
    for lowers in apart:
        for lower in lowers:
            waiting[lower] += 1
    order = [block for block, count in enumerate(waiting) if not count]
    for block in order:
        for lower in apart[block]:
            waiting[lower] -= 1
            if not waiting[lower]:
                order.append(lower)
    return order


def _push_down(apart: list[dict[int, float]], order: list[int], wish: list[float]) -> list[float]:
    """Return the smallest y, none above `wish`, that respect all distances."""
    y = wish.copy()
    for block in order:
        for lower, far in apart[block].items():
            y[lower] = max(y[lower], y[block] + far)
    return y


def _push_up(apart: list[dict[int, float]], order: list[int], wish: list[float]) -> list[float]:
    """Return the largest y, none below `wish`, that respect all distances."""
    y = wish.copy()
    for block in reversed(order):
        y[block] = min([y[block], *(y[lower] - far for lower, far in apart[block].items())])
    return y
