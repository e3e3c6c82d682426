"""Steps 1 and 2 of `layout`: assign nodes to columns, and assign a lane to each long-range value.

An *outlet* is a point on the right side of a vertex from which links start. A node has an outlet for each of its wires,
from top to bottom; the first has the index of the node. A dummy has a single outlet, with the index of the dummy.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

__all__ = ["LayeredGraph", "Ports", "rank_nodes", "split_into_links"]

Edges = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Ports:
    """The heights at which edges start and end.

    By default edges start at the middle of the right side, and end on the left side in slot order. A *wire* is the set
    of edges with the same value, which start at the same height of a node and share a lane. Nodes in `first` have no
    inputs and are alone in the first column; nodes in `last` have no consumers and are alone in the last column.
    """

    wires: Sequence[int] | None = None
    """The id of each edge's wire, unique within the source. If None, all edges from a node belong to one wire."""
    leave_offset: Sequence[float | None] | None = None
    """The vertical offset of each edge's start from its source's centre, or None for the default."""
    arrive_offset: Sequence[float | None] | None = None
    """The vertical offset of each edge's end from its target's centre, for either all inputs of a node or none."""
    first: Mapping[int, int] = field(default_factory=dict)
    """Maps each node of the first column to the length, in edges, of the longest path from a leaf to its value."""
    last: Collection[int] = ()


@dataclass(slots=True)
class LayeredGraph:
    """A graph whose edges are divided into links. Vertices with an index below `nodes` are nodes, others dummies."""

    nodes: int
    edges: Edges
    rank: list[int]  # column of each vertex
    depth: list[int]  # for each outlet, the length of the longest path from a leaf to its node, in edges
    inputs: list[list[int]]  # edges that end at each node, from top to bottom
    given_arrival: list[float | None]  # `arrive_offset` of each edge
    wire: list[int]  # wire of each edge
    lane: list[list[int]]  # outlets of each wire, from left to right
    outlets: list[list[int]]  # outlets of each vertex, from top to bottom
    owner: list[int]  # vertex of each outlet
    free_nodes: set[int]  # nodes for which `Ports` specifies no `leave_offset`
    leave_offset: list[float]  # vertical offset of each outlet from the centre of its vertex
    feeder: list[int] = field(default_factory=list)  # last outlet of each edge before its target, or -1
    incoming: list[list[int]] = field(default_factory=list)  # outlets linked to each vertex, in order
    outgoing: list[list[int]] = field(default_factory=list)  # vertices at which the links of each outlet end
    half_height: list[float] = field(default_factory=list)  # half the height of each vertex
    columns: list[list[int]] = field(default_factory=list)  # vertices of each column, from top to bottom
    # For each vertex, the outlet in the previous column that is drawn at the same height, or -1.
    level_outlet: list[int] = field(default_factory=list)
    # The vertical offset of each edge's end from its target's centre.
    arrival: list[float] = field(default_factory=list)

    def consumers(self, vertex: int) -> list[int]:
        """Return the vertices of the next column to which `vertex` is linked."""
        outlets = self.outlets[vertex]
        return (
            self.outgoing[vertex] if len(outlets) == 1 else [to for outlet in outlets for to in self.outgoing[outlet]]
        )


def rank_nodes(nodes: int, edges: Edges, ports: Ports) -> tuple[list[int], list[int]]:
    """Return the column of each node, and its depth, the length of the longest path to it from a leaf.

    A node is first assigned the column of its depth, then moved to the right if this lengthens no more edges than it
    shortens; so a leaf is placed just before its first consumer. Gansner et al. (1993) compute the optimum by network
    simplex; this function makes a single pass, which is optimal for trees of inputs.
    """
    sources_of: list[list[int]] = [[] for _ in range(nodes)]
    targets_of: list[list[int]] = [[] for _ in range(nodes)]
    for source, target in edges:
        sources_of[target].append(source)
        targets_of[source].append(target)
    is_shared = [len(set(targets)) > 1 for targets in targets_of]
    depth = [ports.first.get(node, 0) for node in range(nodes)]
    first_column = 1 if ports.first else 0
    rank = [0 if node in ports.first else first_column for node in range(nodes)]
    # The number of edges that become longer if the node moves right together with the inputs of which it is the only
    # consumer. Such an edge costs more than an edge from a shared value, which often already has a lane there.
    lengthened = [0.0] * nodes
    for node, sources in enumerate(sources_of):
        if sources:
            depth[node] = 1 + max(depth[source] for source in sources)
            rank[node] = max(first_column, 1 + max(rank[source] for source in sources))
            lengthened[node] = sum(1 if is_shared[at] else min(1.5, lengthened[at]) for at in sources)
    last = 1 + max((rank[node] for node in range(nodes) if node not in ports.last), default=-1)
    for node in ports.last:
        rank[node] = last
    for node in range(nodes - 1, -1, -1):
        if targets_of[node] and len(targets_of[node]) >= lengthened[node] and node not in ports.first:
            rank[node] = min(rank[target] for target in targets_of[node]) - 1
    return rank, depth


def split_into_links(edges: Edges, rank: list[int], depth: list[int], ports: Ports, dummies: int) -> LayeredGraph:
    """Divide every edge into links along the lane of its wire. The total number of dummies is at most `dummies`."""
    wire, wires = _number_wires(edges, ports)
    nodes, last = len(rank), [-1] * len(wires)  # column of the last consumer of each wire
    for edge, (_, target) in enumerate(edges):
        last[wire[edge]] = max(last[wire[edge]], rank[target])
    lane = [[node] for node, _ in wires]
    length = [last[wire_index] - rank[node] - 1 for wire_index, (node, _) in enumerate(wires)]
    for at in sorted(range(len(wires)), key=length.__getitem__):
        if 0 < length[at] <= dummies:
            node = wires[at][0]
            dummies -= length[at]
            lane[at] += range(len(rank), len(rank) + length[at])
            rank += range(rank[node] + 1, last[at])
            depth += [depth[node]] * length[at]
    owner, leave = list(range(len(rank))), [0.0] * len(rank)
    outlets = [[vertex] for vertex in owner]
    for at, (node, offset) in enumerate(wires):
        if at and wires[at - 1][0] == node:
            lane[at][0] = len(owner)
            outlets[node].append(len(owner))
            owner.append(node)
            depth.append(depth[node])
            leave.append(offset)
        else:
            leave[node] = offset
    arrive: list[float | None] = [None] * len(edges) if ports.arrive_offset is None else list(ports.arrive_offset)
    inputs: list[list[int]] = [[] for _ in range(nodes)]
    free_nodes = {
        node for edge, (node, _) in enumerate(edges) if ports.leave_offset is None or ports.leave_offset[edge] is None
    }
    graph = LayeredGraph(nodes, edges, rank, depth, inputs, arrive, wire, lane, outlets, owner, free_nodes, leave)
    _build_links(graph)
    return graph


def _number_wires(edges: Edges, ports: Ports) -> tuple[list[int], list[tuple[int, float]]]:
    """Return the wire of each edge, and the (node, offset) of each wire, numbered from top to bottom of a node."""
    names = ports.wires if ports.wires is not None else [source for source, _ in edges]
    leave = ports.leave_offset if ports.leave_offset is not None else [None] * len(edges)
    keys = [(source, leave[edge] or 0.0, names[edge]) for edge, (source, _) in enumerate(edges)]
    wires = sorted(set(keys))
    wire_index = {key: at for at, key in enumerate(wires)}
    return [wire_index[key] for key in keys], [(node, offset) for node, offset, _ in wires]


def _build_links(graph: LayeredGraph) -> None:
    """Set the attributes `inputs`, `feeder`, `incoming` and `outgoing`."""
    graph.incoming = [[] for _ in graph.rank]
    for lane in graph.lane:
        for outlet, next_vertex in pairwise(lane):
            graph.incoming[next_vertex].append(outlet)
    for edge, (source, target) in enumerate(graph.edges):
        distance, lane = graph.rank[target] - graph.rank[source], graph.lane[graph.wire[edge]]
        graph.feeder.append(lane[distance - 1] if distance <= len(lane) else -1)
        graph.inputs[target].append(edge)
    for node, inputs in enumerate(graph.inputs):
        if inputs and graph.given_arrival[inputs[0]] is not None:
            inputs.sort(key=lambda edge: graph.given_arrival[edge] or 0.0)
        graph.incoming[node] += [graph.feeder[edge] for edge in inputs if graph.feeder[edge] >= 0]
    graph.outgoing = [[] for _ in graph.owner]
    for vertex, feeders in enumerate(graph.incoming):
        for feeder in feeders:
            graph.outgoing[feeder].append(vertex)
