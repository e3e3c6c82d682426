"""Steps 1 and 2 of `layout`: assign nodes to columns, and assign a lane to each long-range value.

An *outlet* is a point on the right side of a vertex where links leave. A node has one for each of its wires, from top
to bottom; the index of the first is that of the node. A dummy is its own outlet.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

__all__ = ["LayeredGraph", "Ports", "rank_nodes", "split_into_links"]

Edges = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Ports:
    """The heights at which edges leave and arrive.

    By default edges leave at the middle of the right side, and arrive on the left side in slot order. A *wire* carries
    one value: its edges leave one node at one height, and share a lane. Nodes in `first` have no inputs and are alone
    in the first column; nodes in `last` have no consumers and are alone in the last column.
    """

    wires: Sequence[int] | None = None
    """For each edge, an id that distinguishes the wires of a node. None: all edges out of a node are one wire."""
    leave_offset: Sequence[float | None] | None = None
    """For each edge, the offset below its source's centre at which the edge leaves. None: around the centre."""
    arrive_offset: Sequence[float | None] | None = None
    """For each edge, the offset below its target's centre at which it arrives, for all inputs of a node or none."""
    first: Mapping[int, int] = field(default_factory=dict)
    """Maps each of these nodes to the depth of its value: the longest path to it from a leaf, in edges."""
    last: Collection[int] = ()


@dataclass(slots=True)
class LayeredGraph:
    """A graph whose edges are divided into links. Vertices with index below `nodes` are nodes, others dummies."""

    nodes: int
    edges: Edges
    rank: list[int]  # by vertex: its column
    depth: list[int]  # by outlet: the longest path from a leaf to its node, in edges
    inputs: list[list[int]]  # by node: the edges that arrive, from top to bottom
    given_arrival: list[float | None]  # by edge: the given offset below its target's centre at which it arrives
    wire: list[int]  # by edge: its wire
    lane: list[list[int]]  # by wire: its outlets from left to right
    outlets: list[list[int]]  # by vertex: its outlets, from top to bottom
    owner: list[int]  # by outlet: its vertex
    free_nodes: set[int]  # nodes whose wires have no given offsets
    leave_offset: list[float]  # by outlet: its offset below the centre of its vertex
    feeder: list[int] = field(default_factory=list)  # by edge: its last outlet before the target, or -1
    incoming: list[list[int]] = field(default_factory=list)  # by vertex: the outlets whose links arrive, in order
    outgoing: list[list[int]] = field(default_factory=list)  # by outlet: the vertices where its links end
    half_height: list[float] = field(default_factory=list)  # by vertex: half its height
    columns: list[list[int]] = field(default_factory=list)  # from top to bottom
    # By vertex: the outlet in the previous column that is level with it, or -1.
    level_outlet: list[int] = field(default_factory=list)
    # By edge: the offset below its target's centre at which it arrives.
    arrival: list[float] = field(default_factory=list)

    def consumers(self, vertex: int) -> list[int]:
        """Return the vertices of the next column that `vertex` is linked to."""
        outlets = self.outlets[vertex]
        return (
            self.outgoing[vertex] if len(outlets) == 1 else [to for outlet in outlets for to in self.outgoing[outlet]]
        )


def rank_nodes(nodes: int, edges: Edges, ports: Ports) -> tuple[list[int], list[int]]:
    """Return the column of each node, and its depth.

    A node starts in the column of its depth, then moves right as long as that lengthens no more edges than it shortens;
    so a leaf ends up just before its first consumer. Gansner et al. (1993) find the optimum by network simplex; this
    function makes a single pass, which is optimal for trees of inputs.
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
    # The number of edges that become longer if the node moves right together with the inputs that only it uses. Such an
    # edge costs more than one from a shared value, which often already has a lane there.
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
    """Divide every edge into links along the lane of its wire; all lanes together have at most `dummies` dummies."""
    wire, wires = _number_wires(edges, ports)
    nodes, last = len(rank), [-1] * len(wires)  # the column of each wire's last consumer
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
    """Return the wire of each edge; and for each wire its node and leaving offset, from top to bottom."""
    names = ports.wires if ports.wires is not None else [source for source, _ in edges]
    leave = ports.leave_offset if ports.leave_offset is not None else [None] * len(edges)
    keys = [(source, leave[edge] or 0.0, names[edge]) for edge, (source, _) in enumerate(edges)]
    wires = sorted(set(keys))
    wire_index = {key: at for at, key in enumerate(wires)}
    return [wire_index[key] for key in keys], [(node, offset) for node, offset, _ in wires]


def _build_links(graph: LayeredGraph) -> None:
    """Compute the inputs and neighbours of each vertex."""
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
