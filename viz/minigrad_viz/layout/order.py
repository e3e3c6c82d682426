"""Step 3 of `layout`: permute the vertices of each column to reduce the number of crossings."""

from bisect import bisect_left
from itertools import pairwise

from minigrad_viz.layout.graph import LayeredGraph

__all__ = ["count_crossings", "order_columns"]


def order_columns(graph: LayeredGraph, sweeps: int, swap_steps: tuple[int, ...]) -> None:
    """Permute each column to reduce crossings, by sweeping left and right alternately, and use the best order found.

    A vertex moves to the mean position of its neighbours, as in Sugiyama et al. (1981); then adjacent vertices are
    swapped, as in Gansner et al. (1993). Two initial orders are tried: a traversal from the outputs, which has no
    crossings for an expression tree, and tape order, which suits many equal samples. Sweeps from an initial order stop
    after six sweeps without progress.
    """
    walk_order = _backward_walk(graph)
    results = []
    for start_index, (start, steps) in enumerate(
        zip([walk_order, [sorted(column) for column in walk_order]], swap_steps, strict=False)
    ):
        graph.columns = start
        best = (count_crossings(graph), start_index, 0, [column.copy() for column in start])
        for sweep in range(1, sweeps + 1):
            if best[0] == 0 or sweep > best[2] + 6:
                break
            _sweep_columns(graph, (sweep + start_index) % 2 == 1, start_index == 0 and sweep % 4 > 1, steps)
            crossings = count_crossings(graph)
            if crossings < best[0]:
                best = (crossings, start_index, sweep, [column.copy() for column in graph.columns])
        results.append(best)
        if best[0] == 0:
            break
    graph.columns = min(results)[3]


def _backward_walk(graph: LayeredGraph) -> list[list[int]]:
    """Return the columns, each in the order in which a traversal from the outputs visits its vertices."""
    columns: list[list[int]] = [[] for _ in range(max(graph.rank, default=-1) + 1)]
    visited = bytearray(len(graph.rank))
    stack = [vertex for vertex in range(len(graph.rank) - 1, -1, -1) if not graph.consumers(vertex)]
    while stack:
        vertex = stack.pop()
        if not visited[vertex]:
            visited[vertex] = 1
            columns[graph.rank[vertex]].append(vertex)
            stack.extend(graph.owner[outlet] for outlet in reversed(graph.incoming[vertex]))
    return columns


def count_crossings(graph: LayeredGraph) -> int:
    """Count the pairs of links that cross, in O(E log V), as in Barth, Jünger and Mutzel (2002).

    If the origins of the links to a column are listed in the order of their ports, from top to bottom, each inversion
    is a crossing. Crossings between the inputs of one node are therefore also counted.
    """
    total = 0
    for left, right in pairwise(graph.columns):
        outlets = [outlet for vertex in left for outlet in graph.outlets[vertex]]
        position = {outlet: at for at, outlet in enumerate(outlets, 1)}
        origins = (
            [position[outlet] for vertex in right for outlet in graph.incoming[vertex]] if len(position) > 1 else []
        )
        if origins == sorted(origins):
            continue
        tree = [0] * (len(position) + 1)  # Fenwick tree with the number of links from each origin so far
        for count, at in enumerate(origins):
            total += count
            index = at
            while index:
                total -= tree[index]
                index &= index - 1
            while at < len(tree):
                tree[at] += 1
                at += at & -at
    return total


def _positions_before(graph: LayeredGraph, fixed: list[int]) -> dict[int, list[int]]:
    """Map each vertex linked to the previous column `fixed` to the sorted positions of the outlets it is linked to."""
    ends: dict[int, list[int]] = {}
    at = 0
    for vertex in fixed:
        for outlet in graph.outlets[vertex]:
            for target in graph.outgoing[outlet]:
                ends.setdefault(target, []).append(at)
            at += 1
    return ends


def _positions_after(graph: LayeredGraph, fixed: list[int]) -> dict[int, list[int]]:
    """Map each vertex linked to the next column `fixed` to the sorted positions of the ports it is linked to."""
    ends: dict[int, list[int]] = {}
    at = 0
    for vertex in fixed:
        for outlet in graph.incoming[vertex]:
            at += 1
            ends.setdefault(graph.owner[outlet], []).append(at)
        at += 1
    return ends


def _sweep_columns(graph: LayeredGraph, is_leftward: bool, reverse_ties: bool, steps: int) -> None:
    """Sort each column by the mean position of the links to the previously sorted column."""
    columns = graph.columns
    for at in range(len(columns) - 2, -1, -1) if is_leftward else range(1, len(columns)):
        column = columns[at]
        if len(column) == 1:
            continue
        left = _positions_before(graph, columns[at - 1]) if at and (steps or not is_leftward) else {}
        right = _positions_after(graph, columns[at + 1]) if at + 1 < len(columns) and (steps or is_leftward) else {}
        ends = right if is_leftward else left
        key = {vertex: sum(ends[vertex]) / len(ends[vertex]) for vertex in column if vertex in ends}
        _assign_missing_keys(graph, column, key)
        if reverse_ties:
            column.reverse()
        column.sort(key=key.__getitem__)
        _swap_neighbours(column, left, right, steps * len(column))


def _assign_missing_keys(graph: LayeredGraph, column: list[int], key: dict[int, float]) -> None:
    """Assign to each vertex without a key, such as a leaf, the mean key of its consumers' inputs, or the key above."""
    fellow_positions: dict[int, list[float]] = {}
    if len(key) < len(column):
        for vertex, at in key.items():
            for consumer in graph.consumers(vertex):
                fellow_positions.setdefault(consumer, []).append(at)
    previous = min(key.values(), default=0.0)
    for vertex in column:
        if vertex not in key:
            means = [_mean(positions) for positions in map(fellow_positions.get, graph.consumers(vertex)) if positions]
            key[vertex] = _mean(means) if means else previous
        previous = key[vertex]


def _mean(values: list[float]) -> float:
    """Return the mean. It does not use `sum`, whose rounding changed in Python 3.12."""
    total = 0.0
    for value in values:
        total += value
    return total / len(values)


def _swap_neighbours(column: list[int], left: dict[int, list[int]], right: dict[int, list[int]], steps: int) -> None:
    """Swap adjacent vertices if this reduces crossings, stepping back after each swap, in at most `steps` steps."""
    at = 0
    while at < len(column) - 1 and steps > 0:
        steps -= 1
        upper, lower = column[at], column[at + 1]
        gain = 0
        for ends in (left, right):
            if upper in ends and lower in ends:
                gain += _count_pairs_below(ends[upper], ends[lower]) - _count_pairs_below(ends[lower], ends[upper])
        if gain > 0:
            column[at], column[at + 1] = lower, upper
        at = max(at - 1, 0) if gain > 0 else at + 1


def _count_pairs_below(first: list[int], second: list[int]) -> int:
    """Return the number of pairs of an element of `first` and a smaller element of `second`. Both lists are sorted."""
    return 0 if first[-1] <= second[0] else sum(bisect_left(second, end) for end in first)
