"""Place a computation graph in columns: time flows to the right, and straight lines are preferred.

The layered method of Sugiyama, Tagawa and Toda (1981), in five steps:

1. `_ranks`   every node gets a column, each edge goes to the right, and edges are kept short;
2. `_layers`  a value used far away gets a *lane*: one dummy in each column that it crosses;
3. `_order`   each column is permuted until few edges cross;
4. `_straighten`, `_heights`  choose the links that shall be level, and a height for everything;
5. `_routes`  each edge becomes a list of points.

A vertex is a node or a dummy; a link joins vertices of neighbouring columns. All edges out of one node share
its lane, like the taps of one wire: they carry one value, and a weight used 3,000 times costs one lane, not
3,000. Nothing recurses or depends on hash order: a chain of 100,000 nodes is fine, and the same graph gives
the same bytes.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

__all__ = ["Layout", "layout"]

Point = tuple[float, float]
Edges = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything goes, in the unit of the sizes: x to the right, y down, (0, 0) the top left corner.

    `centers` are the centres of the boxes and `ranks` their columns, by node. `routes` are, by edge, the
    points from the source's right side to the target's left side; a route is level inside columns and slants
    only between them.
    """

    width: float
    height: float
    centers: list[Point]
    routes: list[list[Point]]
    ranks: list[int]


def layout(sizes: Sequence[Point], edges: Edges, *, gap_x: float = 48.0, gap_y: float = 16.0) -> Layout:
    """Lay out nodes 0, 1, ... with boxes `sizes` (width, height), joined by `edges` (from, to).

    Nodes are in tape order, so an edge goes to a larger number. The edges into one node are its inputs, in
    slot order; they arrive at separate ports from top to bottom, and may repeat, as in a*a. Columns are
    `gap_x` apart, the boxes of a column `gap_y`. Coordinates are rounded to 0.01. Raises ValueError for an
    edge that does not go forward or names a node that is not there, and for a size that is negative or not
    finite.
    """
    for node, (width, height) in enumerate(sizes):
        if not (0 <= width < float("inf") and 0 <= height < float("inf")):
            raise ValueError(f"node {node} has size ({width}, {height}): need finite numbers, at least 0")
    for source, target in edges:
        if not (0 <= source < len(sizes) and 0 <= target < len(sizes)):
            raise ValueError(f"edge ({source}, {target}) names a node that is not there: {len(sizes)} nodes")
        if source >= target:
            raise ValueError(f"edge ({source}, {target}) goes back: number nodes in tape order, inputs first")
    graph = _layers(edges, *_ranks(len(sizes), edges))
    sweeps, swaps, moves = _effort(graph)
    graph.half = [height / 2 for _, height in sizes] + [0.0] * (len(graph.rank) - len(sizes))
    _order(graph, sweeps, swaps)
    _straighten(graph)
    _place_ports(graph)
    return _routes(graph, sizes, _heights(graph, gap_y, moves), gap_x, gap_y)


@dataclass(slots=True)
class _Graph:
    """The graph cut into links. Vertices below `nodes` are nodes, the others dummies."""

    nodes: int
    edges: Edges
    rank: list[int]  # by vertex: its column
    depth: list[int]  # by vertex: the longest way to it from a leaf, in edges; a dummy has its source's
    lane: list[list[int]]  # by node: the node itself, then its dummies from left to right
    inputs: list[list[int]]  # by node: the edges that arrive, in slot order
    feeder: list[int] = field(default_factory=list)  # by edge: its last vertex before the target, or -1
    before: list[list[int]] = field(default_factory=list)  # by vertex: the links that arrive, in slot order
    after: list[list[int]] = field(default_factory=list)  # by vertex: the links that leave
    half: list[float] = field(default_factory=list)  # by vertex: half its height
    columns: list[list[int]] = field(default_factory=list)  # from top to bottom
    mate: list[int] = field(default_factory=list)  # by vertex: the one before that is level with it, or -1
    port: list[float] = field(default_factory=list)  # by edge: how far below its target's centre it arrives


_DUMMIES = 20_000  # lanes may have this many dummies, or one for each node; longer ones become express edges


def _effort(graph: _Graph) -> tuple[int, tuple[int, ...], int]:
    """How hard to try, less as the graph grows: the one place that keeps to the viewer's time budgets.

    Returns the sweeps from each start; for each start, the steps of `_swap` per vertex; the moves of `_heights`.
    """
    work = len(graph.rank) + sum(map(len, graph.before)) + 1
    if work > 40_000:
        return 2, (0,), 4
    return 3 + min(20, 10_000 // work), (2, 10), 10 + min(30, 10_000 // work)


# -- 1. Columns and 2. lanes -----------------------------------------------------------------------


def _ranks(nodes: int, edges: Edges) -> tuple[list[int], list[int]]:
    """The column of each node, and its depth.

    A node starts in the column of its depth, then moves right as long as that stretches no more edges than it
    shortens; so a leaf stands just before its first consumer. Gansner et al. (1993) find the optimum by
    network simplex; this is one pass, exact where inputs form a tree.
    """
    before: list[list[int]] = [[] for _ in range(nodes)]
    after: list[list[int]] = [[] for _ in range(nodes)]
    for source, target in edges:
        before[target].append(source)
        after[source].append(target)
    shared = [len(set(targets)) > 1 for targets in after]
    depth = [0] * nodes
    # How many edges grow if the node moves right and takes along what only it uses. An edge of its own costs
    # more than one from a shared value, which often has a lane there already.
    stretch = [0.0] * nodes
    for node, sources in enumerate(before):
        if sources:
            depth[node] = 1 + max(depth[source] for source in sources)
            stretch[node] = sum(1 if shared[at] else min(1.5, stretch[at]) for at in sources)
    rank = depth.copy()
    for node in range(nodes - 1, -1, -1):
        if after[node] and len(after[node]) >= stretch[node]:
            rank[node] = min(rank[target] for target in after[node]) - 1
    return rank, depth


def _layers(edges: Edges, rank: list[int], depth: list[int]) -> _Graph:
    """Cut every edge into links, by way of its source's lane."""
    nodes = len(rank)
    last = rank.copy()  # the column of each node's last consumer
    for source, target in edges:
        last[source] = max(last[source], rank[target])
    graph = _Graph(nodes, edges, rank, depth, [[node] for node in range(nodes)], [[] for _ in rank])
    budget = max(_DUMMIES, nodes)
    for node in sorted(range(nodes), key=lambda node: last[node] - rank[node]):
        length = last[node] - rank[node] - 1
        if 0 < length <= budget:
            budget -= length
            graph.lane[node] += range(len(rank), len(rank) + length)
            rank += range(rank[node] + 1, last[node])
            depth += [depth[node]] * length
    graph.before = [[] for _ in rank]
    for lane in graph.lane:
        for one, two in pairwise(lane):
            graph.before[two].append(one)
    for index, (source, target) in enumerate(edges):
        step = rank[target] - rank[source]
        graph.feeder.append(graph.lane[source][step - 1] if step <= len(graph.lane[source]) else -1)
        graph.inputs[target].append(index)
        if graph.feeder[index] >= 0:
            graph.before[target].append(graph.feeder[index])
    graph.after = [[] for _ in rank]
    for vertex, feeders in enumerate(graph.before):
        for feeder in feeders:
            graph.after[feeder].append(vertex)
    return graph


# -- 3. Order --------------------------------------------------------------------------------------


def _order(graph: _Graph, sweeps: int, swaps: tuple[int, ...]) -> None:
    """Permute the columns so that few links cross: sweep left and right by turns, keep the best order met.

    A vertex goes to the mean place of its neighbours, as in Sugiyama et al. (1981); then neighbours in a
    column change places, as in Gansner et al. (1993). No one start suits all graphs: a walk back from the
    outputs has no crossings for an expression tree, tape order suits many like samples. Each start ends
    after six sweeps without progress.
    """
    walk = _walk_back(graph)
    results = []
    for turn, (start, steps) in enumerate(zip([walk, [sorted(column) for column in walk]], swaps, strict=False)):
        graph.columns = start
        best = (_crossings(graph), turn, 0, [column.copy() for column in start])
        for sweep in range(1, sweeps + 1):
            if best[0] == 0 or sweep > best[2] + 6:
                break
            _sweep(graph, (sweep + turn) % 2 == 1, turn == 0 and sweep % 4 > 1, steps)
            found = _crossings(graph)
            if found < best[0]:
                best = (found, turn, sweep, [column.copy() for column in graph.columns])
        results.append(best)
        if best[0] == 0:
            break
    graph.columns = min(results)[3]


def _walk_back(graph: _Graph) -> list[list[int]]:
    """The columns in the order in which a walk from the outputs back meets their vertices."""
    columns: list[list[int]] = [[] for _ in range(max(graph.rank, default=-1) + 1)]
    seen = bytearray(len(graph.rank))
    stack = [vertex for vertex in range(len(graph.rank) - 1, -1, -1) if not graph.after[vertex]]
    while stack:
        vertex = stack.pop()
        if not seen[vertex]:
            seen[vertex] = 1
            columns[graph.rank[vertex]].append(vertex)
            stack.extend(reversed(graph.before[vertex]))
    return columns


def _crossings(graph: _Graph) -> int:
    """How many pairs of links cross, in O(E log V): Barth, Jünger and Mutzel (2002).

    Read a column from top to bottom, port by port, and write down where each link comes from: a crossing is a
    pair in the wrong order. So inputs of one node that arrive at each other's port cross too.
    """
    total = 0
    for left, right in pairwise(graph.columns):
        place = {vertex: at for at, vertex in enumerate(left, 1)}
        origins = [place[source] for vertex in right for source in graph.before[vertex]] if len(left) > 1 else []
        if origins == sorted(origins):
            continue
        tree = [0] * (len(left) + 1)  # a Fenwick tree: counts of the origins met so far
        for met, at in enumerate(origins):
            total += met
            below = at
            while below:
                total -= tree[below]
                below &= below - 1
            while at < len(tree):
                tree[at] += 1
                at += at & -at
    return total


def _ends(fixed: list[int], links: list[list[int]], per_port: int) -> dict[int, list[int]]:
    """For each vertex linked to the column `fixed`: the places where its links end there, in order."""
    ends: dict[int, list[int]] = {}
    at = 0
    for vertex in fixed:
        for other in links[vertex]:
            at += per_port
            ends.setdefault(other, []).append(at)
        at += 1
    return ends


def _sweep(graph: _Graph, leftward: bool, flip: bool, steps: int) -> None:
    """Sort each column by where its links end in the one sorted before it; `flip` turns ties over."""
    columns = graph.columns
    for at in range(len(columns) - 2, -1, -1) if leftward else range(1, len(columns)):
        column = columns[at]
        if len(column) == 1:
            continue
        left = _ends(columns[at - 1], graph.after, 0) if at and (steps or not leftward) else {}
        right = _ends(columns[at + 1], graph.before, 1) if at + 1 < len(columns) and (steps or leftward) else {}
        ends = right if leftward else left
        key = {vertex: sum(ends[vertex]) / len(ends[vertex]) for vertex in column if vertex in ends}
        _follow(graph, column, key)
        if flip:
            column.reverse()
        column.sort(key=key.__getitem__)
        _swap(column, left, right, steps * len(column))


def _follow(graph: _Graph, column: list[int], key: dict[int, float]) -> None:
    """Let a vertex without a key, such as a leaf, go with its fellow inputs, or with the one above it."""
    fellows: dict[int, list[float]] = {}
    if len(key) < len(column):
        for vertex, at in key.items():
            for consumer in graph.after[vertex]:
                fellows.setdefault(consumer, []).append(at)
    above = min(key.values(), default=0.0)
    for vertex in column:
        if vertex not in key:
            means = [sum(ats) / len(ats) for ats in map(fellows.get, graph.after[vertex]) if ats]
            key[vertex] = sum(means) / len(means) if means else above
        above = key[vertex]


def _swap(column: list[int], left: dict[int, list[int]], right: dict[int, list[int]], steps: int) -> None:
    """Exchange vertices next to each other where that removes crossings; step back after each exchange."""
    at = 0
    while at < len(column) - 1 and steps > 0:
        steps -= 1
        upper, lower = column[at], column[at + 1]
        gain = 0
        for ends in (left, right):
            if upper in ends and lower in ends:
                gain += _below(ends[upper], ends[lower]) - _below(ends[lower], ends[upper])
        if gain > 0:
            column[at], column[at + 1] = lower, upper
        at = max(at - 1, 0) if gain > 0 else at + 1


def _below(some: list[int], others: list[int]) -> int:
    """The number of pairs with the end from `some` below the end from `others`; both are sorted."""
    return 0 if some[-1] <= others[0] else sum(bisect_left(others, end) for end in some)


# -- 4. Heights ------------------------------------------------------------------------------------


def _straighten(graph: _Graph) -> None:
    """Choose the links that shall be level: no two of them cross, or share an end on the same side.

    First come lanes, then the link from each node's deepest input, which carries the main line of the
    computation. Inputs of equal depth leave their node free to stand between them, and so do several
    consumers in one column their source.
    """
    graph.mate = [-1] * len(graph.rank)
    for left, right in pairwise(graph.columns):
        place = {vertex: at for at, vertex in enumerate(left)}
        single = {vertex: len({to for to in graph.after[vertex] if to < graph.nodes}) == 1 for vertex in left}
        wanted = []
        for at, vertex in enumerate(right):
            deepest = max((graph.depth[source] for source in graph.before[vertex]), default=0)
            main = {source for source in graph.before[vertex] if graph.depth[source] == deepest}
            source = main.pop() if len(main) == 1 else -1
            if source >= 0 and (vertex >= graph.nodes or single[source]):
                dummies = (source >= graph.nodes) + (vertex >= graph.nodes)
                wanted.append(((1, 2, 0)[dummies], place[source], at))
        kept: list[tuple[int, int]] = []
        for _, one, two in sorted(wanted):
            at = bisect_left(kept, (one, two))
            clear_above = at == 0 or (kept[at - 1][0] < one and kept[at - 1][1] < two)
            if clear_above and (at == len(kept) or (one < kept[at][0] and two < kept[at][1])):
                kept.insert(at, (one, two))
                graph.mate[right[two]] = left[one]


def _place_ports(graph: _Graph) -> None:
    """Put the ports of each node in slot order, a level input's at the centre, else all about the centre."""
    graph.port = [0.0] * len(graph.edges)
    for node, inputs in enumerate(graph.inputs):
        level = [slot for slot, edge in enumerate(inputs) if graph.feeder[edge] == graph.mate[node] >= 0]
        centre = sum(level) / len(level) if level else (len(inputs) - 1) / 2
        reach = max(centre, len(inputs) - 1 - centre)
        step = min(12.0, 0.8 * graph.half[node] / reach) if reach else 0.0
        for slot, edge in enumerate(inputs):
            graph.port[edge] = (slot - centre) * step


def _heights(graph: _Graph, gap: float, moves: int) -> list[float]:
    """The y of each vertex. Vertices joined by level links form a block, as in Brandes and Köpf (2002).

    Again and again each block moves halfway to where its links would be level on average, an input counting
    as much as three consumers so that a node stands between its inputs, as in a tree. Then blocks are pushed
    apart, both down and up: the mean of two placements that keep all distances keeps them too, and so does
    the larger or smaller of two, which bounds the height of the drawing.
    """
    block: list[int] = [-1] * len(graph.rank)
    count = 0
    for column in graph.columns:
        for vertex in column:
            if graph.mate[vertex] >= 0:
                block[vertex] = block[graph.mate[vertex]]
            else:
                block[vertex], count = count, count + 1
    apart: list[dict[int, float]] = [{} for _ in range(count)]  # the blocks next below, and how far at least
    for column in graph.columns:
        for upper, lower in pairwise(column):
            space = gap if upper < graph.nodes and lower < graph.nodes else 0.6 * gap
            one, two = block[upper], block[lower]
            apart[one][two] = max(graph.half[upper] + graph.half[lower] + space, apart[one].get(two, 0.0))
    # By block: each block linked to it, and how far below that one the link is level.
    pulls: list[list[tuple[int, float]]] = [[] for _ in range(count)]
    links = [(graph.feeder[edge], target, graph.port[edge]) for edge, (_, target) in enumerate(graph.edges)]
    links += [(one, two, 0.0) for lane in graph.lane for one, two in pairwise(lane)]
    for source, vertex, port in links:
        if source >= 0 and block[source] != block[vertex]:
            pulls[block[vertex]] += [(block[source], -port)] * 3
            pulls[block[source]].append((block[vertex], port))
    order = _top_down(apart)
    highest = _push_down(apart, order, [0.0] * count)
    room = 1.3 * max(highest, default=0.0)  # to leave parents centred, and little more
    lowest = _push_up(apart, order, [room] * count)
    y = [(one + two) / 2 for one, two in zip(highest, lowest, strict=True)]
    for _ in range(moves):
        mean = [sum(y[other] + down for other, down in some) / len(some) if some else None for some in pulls]
        wish = [at if to is None else (at + to) / 2 for at, to in zip(y, mean, strict=True)]
        down, up = _push_down(apart, order, wish), _push_up(apart, order, wish)
        y = [min(max((down[at] + up[at]) / 2, highest[at]), lowest[at]) for at in range(count)]
    return [y[at] for at in block]


def _top_down(apart: list[dict[int, float]]) -> list[int]:
    """All blocks, each after those above it. Level links never cross, so "above" has no cycles."""
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
    """The least heights, none above `wish`, that keep all distances."""
    y = wish.copy()
    for block in order:
        for lower, far in apart[block].items():
            y[lower] = max(y[lower], y[block] + far)
    return y


def _push_up(apart: list[dict[int, float]], order: list[int], wish: list[float]) -> list[float]:
    """The greatest heights, none below `wish`, that keep all distances."""
    y = wish.copy()
    for block in reversed(order):
        y[block] = min([y[block], *(y[lower] - far for lower, far in apart[block].items())])
    return y


# -- 5. Routes -------------------------------------------------------------------------------------


def _routes(graph: _Graph, sizes: Sequence[Point], y: list[float], gap_x: float, gap_y: float) -> Layout:
    """Put the columns side by side, the top at 0, and lead each edge along its lane."""
    sides, right = [], -gap_x
    for column in graph.columns:
        left = right + gap_x
        right = left + max((sizes[vertex][0] for vertex in column if vertex < graph.nodes), default=0.0)
        sides.append((left, right))
    top = min((at - half for at, half in zip(y, graph.half, strict=True)), default=0.0)
    bottom = max((at + half for at, half in zip(y, graph.half, strict=True)), default=0.0)
    express = sorted({source for edge, (source, _) in enumerate(graph.edges) if graph.feeder[edge] < 0})
    lift = {source: top - gap_y * (1 + 0.6 * at) for at, source in enumerate(express)}
    top = min(lift.values(), default=top)
    x = [sum(sides[graph.rank[node]]) / 2 for node in range(graph.nodes)]
    bends = [_bends(graph.lane[node], graph.rank, sides, y) for node in range(graph.nodes)]
    routes = []
    for edge, (source, target) in enumerate(graph.edges):
        rank, port = graph.rank[target], y[target] + graph.port[edge]
        leave, enter = sides[graph.rank[source]][1], sides[rank][0]
        points = [(x[source] + sizes[source][0] / 2, y[source])]
        if graph.feeder[edge] >= 0:
            points += bends[source][0][: bends[source][1][rank - graph.rank[source] - 1]]
            points.append((sides[rank - 1][1], y[graph.feeder[edge]]))
        else:
            high = lift[source]
            points += [(leave, y[source]), (leave + gap_x / 2, high), (enter - gap_x / 2, high)]
        points += [(enter, port), (x[target] - sizes[target][0] / 2, port)]
        routes.append(_tidy(points, top))
    centers = [(round(x[node], 2), round(y[node] - top, 2)) for node in range(graph.nodes)]
    return Layout(round(max(right, 0.0), 2), round(bottom - top, 2), centers, routes, graph.rank[: graph.nodes])


def _bends(lane: list[int], rank: list[int], sides: list[Point], y: list[float]) -> tuple[list[Point], list[int]]:
    """The points between which a lane slants, and how many of them come before each of its vertices."""
    points: list[Point] = []
    counts = [0]
    for one, two in pairwise(lane):
        if y[one] != y[two]:
            points += [(sides[rank[one]][1], y[one]), (sides[rank[two]][0], y[two])]
        counts.append(len(points))
    return points, counts


def _tidy(points: list[Point], top: float) -> list[Point]:
    """Points rounded, y from `top`, without those that repeat or lie in the middle of a level stretch."""
    tidy: list[Point] = []
    for x, y in points:
        point = (round(x, 2), round(y - top, 2))
        if len(tidy) > 1 and tidy[-2][1] == tidy[-1][1] == point[1]:
            tidy.pop()
        if not tidy or tidy[-1] != point:
            tidy.append(point)
    return tidy
