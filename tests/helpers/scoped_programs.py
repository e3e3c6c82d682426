"""Graphs of scoped programs, for tests of blocks."""

import random
from collections import Counter

from minigrad_viz.trace.rows import TraceBlock

GRAPH = TraceBlock("graph", -1, "graph")


class ScopedGraphBuilder:
    """Builds a graph as a program does, inside scopes, and returns it in tape order: depth-first from the last node."""

    def __init__(self) -> None:
        self.scopes, self.open_scopes, self.nodes = [GRAPH], [0], list[tuple[int, str | None, list[int]]]()

    def enter(self, name: str) -> None:
        self.scopes.append(TraceBlock(name, self.open_scopes[-1], "scope"))
        self.open_scopes.append(len(self.scopes) - 1)

    def leave(self) -> None:
        self.open_scopes.pop()

    def node(self, op: str | None, *operands: int) -> int:
        self.nodes.append((self.open_scopes[-1], op, list(operands)))
        return len(self.nodes) - 1

    def graph(self, root: int):
        position, stack = dict[int, int](), [root]
        while stack:
            node = stack[-1]
            unvisited = [x for x in self.nodes[node][2] if x not in position]
            if unvisited:
                stack += reversed(unvisited)
            elif stack.pop() not in position:
                position[node] = len(position)
        nodes = [self.nodes[node] for node in position]
        edges = [(position[x], i) for i, (_, _, operands) in enumerate(nodes) for x in operands]
        return self.scopes, [block for block, _, _ in nodes], [op for _, op, _ in nodes], edges


def random_program(seed: int, size: int):
    """Open and close scopes at random; operations use any earlier nodes or leaves."""
    rng, builder = random.Random(seed), ScopedGraphBuilder()
    nodes = [builder.node(None)]
    for _ in range(size):
        choice = rng.random()
        if choice < 0.15 and len(builder.open_scopes) < 6:
            builder.enter(rng.choice(["layer", "neuron0", "neuron1", "a"]))
        elif choice < 0.3 and len(builder.open_scopes) > 1:
            builder.leave()
        elif choice < 0.4:
            nodes.append(builder.node(None))
        else:
            nodes.append(builder.node(rng.choice("+*"), *rng.choices(nodes[-20:], k=2)))
    return builder.graph(builder.node("sum", *nodes))


def network(layers: int, residual: bool = False):
    builder = ScopedGraphBuilder()
    x = builder.node(None)
    for layer in range(layers):
        w = builder.node(None)
        builder.enter(f"layer{layer}")
        h = builder.node("relu", builder.node("matmul", x, w))
        builder.leave()
        x = builder.node("add", x, h) if residual else h
    return builder.graph(builder.node("sum", x))


def widths(blocks, block_of) -> Counter:
    return Counter(block_of) + Counter(block.outer for block in blocks[1:])
