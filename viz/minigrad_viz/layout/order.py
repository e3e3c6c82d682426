"""Step 3 of `layout`: permute each column until few links cross."""

from bisect import bisect_left
from itertools import pairwise

from minigrad_viz.layout.graph import Layered

__all__ = ["count_crossings", "order_columns"]


def order_columns(graph: Layered, sweeps: int, swaps: tuple[int, ...]) -> None:
    """Permute the columns to reduce crossings: sweep left and right alternately, and use the best order found.

    A vertex moves to the mean position of its neighbours, as in Sugiyama et al. (1981); then adjacent vertices are
    swapped, as in Gansner et al. (1993). No single start suits all graphs: a walk back from the outputs has no
    crossings for an expression tree, tape order suits many equal samples. Each start ends after six sweeps without
    progress.
    """
    walk = _walk_back(graph)
    results = []
    for turn, (start, steps) in enumerate(zip([walk, [sorted(column) for column in walk]], swaps, strict=False)):
        graph.columns = start
        best = (count_crossings(graph), turn, 0, [column.copy() for column in start])
        for sweep in range(1, sweeps + 1):
            if best[0] == 0 or sweep > best[2] + 6:
                break
            _sweep_columns(graph, (sweep + turn) % 2 == 1, turn == 0 and sweep % 4 > 1, steps)
            found = count_crossings(graph)
            if found < best[0]:
                best = (found, turn, sweep, [column.copy() for column in graph.columns])
        results.append(best)
        if best[0] == 0:
            break
    graph.columns = min(results)[3]


def _walk_back(graph: Layered) -> list[list[int]]:
    """Return the columns in the order in which a walk back from the outputs visits their vertices."""
    columns: list[list[int]] = [[] for _ in range(max(graph.rank, default=-1) + 1)]
    seen = bytearray(len(graph.rank))
    stack = [vertex for vertex in range(len(graph.rank) - 1, -1, -1) if not graph.consumers(vertex)]
    while stack:
        vertex = stack.pop()
        if not seen[vertex]:
            seen[vertex] = 1
            columns[graph.rank[vertex]].append(vertex)
            stack.extend(graph.owner[outlet] for outlet in reversed(graph.before[vertex]))
    return columns


def count_crossings(graph: Layered) -> int:
    """Count the pairs of links that cross, in O(E log V): Barth, Jünger and Mutzel (2002).

    List the origins of the links of a column from top to bottom, port by port: a crossing is a pair in the wrong order.
    So inputs of one node that arrive at each other's port cross too.
    """
    total = 0
    for left, right in pairwise(graph.columns):
        outlets = [outlet for vertex in left for outlet in graph.outlets[vertex]]
        place = {outlet: at for at, outlet in enumerate(outlets, 1)}
        origins = [place[outlet] for vertex in right for outlet in graph.before[vertex]] if len(place) > 1 else []
        if origins == sorted(origins):
            continue
        tree = [0] * (len(place) + 1)  # a Fenwick tree: counts of the origins met so far
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


def _ends_before(graph: Layered, fixed: list[int]) -> dict[int, list[int]]:
    """Return, by vertex linked to the previous column `fixed`, the positions of its outlets there, in order."""
    ends: dict[int, list[int]] = {}
    at = 0
    for vertex in fixed:
        for outlet in graph.outlets[vertex]:
            for other in graph.after[outlet]:
                ends.setdefault(other, []).append(at)
            at += 1
    return ends


def _ends_after(graph: Layered, fixed: list[int]) -> dict[int, list[int]]:
    """Return, by vertex linked to the next column `fixed`, the positions of its ports there, in order."""
    ends: dict[int, list[int]] = {}
    at = 0
    for vertex in fixed:
        for outlet in graph.before[vertex]:
            at += 1
            ends.setdefault(graph.owner[outlet], []).append(at)
        at += 1
    return ends


def _sweep_columns(graph: Layered, leftward: bool, flip: bool, steps: int) -> None:
    """Sort each column by its links into the previously sorted one; `flip` reverses ties."""
    columns = graph.columns
    for at in range(len(columns) - 2, -1, -1) if leftward else range(1, len(columns)):
        column = columns[at]
        if len(column) == 1:
            continue
        left = _ends_before(graph, columns[at - 1]) if at and (steps or not leftward) else {}
        right = _ends_after(graph, columns[at + 1]) if at + 1 < len(columns) and (steps or leftward) else {}
        ends = right if leftward else left
        key = {vertex: sum(ends[vertex]) / len(ends[vertex]) for vertex in column if vertex in ends}
        _follow_fellows(graph, column, key)
        if flip:
            column.reverse()
        column.sort(key=key.__getitem__)
        _swap_neighbours(column, left, right, steps * len(column))


def _follow_fellows(graph: Layered, column: list[int], key: dict[int, float]) -> None:
    """Give a vertex without a key, such as a leaf, the key of its fellow inputs, or of the vertex above it."""
    fellows: dict[int, list[float]] = {}
    if len(key) < len(column):
        for vertex, at in key.items():
            for consumer in graph.consumers(vertex):
                fellows.setdefault(consumer, []).append(at)
    above = min(key.values(), default=0.0)
    for vertex in column:
        if vertex not in key:
            means = [_mean(ats) for ats in map(fellows.get, graph.consumers(vertex)) if ats]
            key[vertex] = _mean(means) if means else above
        above = key[vertex]


def _mean(numbers: list[float]) -> float:
    """Return the mean, added in order: the rounding of `sum` changed in Python 3.12, and the drawing must not."""
    total = 0.0
    for number in numbers:
        total += number
    return total / len(numbers)


def _swap_neighbours(column: list[int], left: dict[int, list[int]], right: dict[int, list[int]], steps: int) -> None:
    """Swap adjacent vertices if that removes crossings, stepping back after each swap."""
    at = 0
    while at < len(column) - 1 and steps > 0:
        steps -= 1
        upper, lower = column[at], column[at + 1]
        gain = 0
        for ends in (left, right):
            if upper in ends and lower in ends:
                gain += _pairs_below(ends[upper], ends[lower]) - _pairs_below(ends[lower], ends[upper])
        if gain > 0:
            column[at], column[at + 1] = lower, upper
        at = max(at - 1, 0) if gain > 0 else at + 1


def _pairs_below(some: list[int], others: list[int]) -> int:
    """Return the number of pairs with the end from `some` below the end from `others`; both are sorted."""
    return 0 if some[-1] <= others[0] else sum(bisect_left(others, end) for end in some)
