"""Graphs of scoped programs, for tests of blocks."""

import random
from collections import Counter

from minigrad_viz.trace.rows import TraceBlock

GRAPH = TraceBlock("graph", -1, "graph")


class Maker:
    """Builds a graph as a program does, inside scopes, and returns it in tape order: depth-first from the last node."""

    def __init__(self) -> None:
        self.scopes, self.open, self.made = [GRAPH], [0], list[tuple[int, str | None, list[int]]]()

    def enter(self, name: str) -> None:
        self.scopes.append(TraceBlock(name, self.open[-1], "scope"))
        self.open.append(len(self.scopes) - 1)

    def leave(self) -> None:
        self.open.pop()

    def node(self, op: str | None, *operands: int) -> int:
        self.made.append((self.open[-1], op, list(operands)))
        return len(self.made) - 1

    def graph(self, root: int):
        place, stack = dict[int, int](), [root]
        while stack:
            node = stack[-1]
            waiting = [x for x in self.made[node][2] if x not in place]
            if waiting:
                stack += reversed(waiting)
            elif stack.pop() not in place:
                place[node] = len(place)
        nodes = [self.made[node] for node in place]
        edges = [(place[x], i) for i, (_, _, operands) in enumerate(nodes) for x in operands]
        return self.scopes, [where for where, _, _ in nodes], [op for _, op, _ in nodes], edges


def random_program(seed: int, size: int):
    """Open and close scopes at random; operations use any earlier nodes or leaves."""
    rng, maker = random.Random(seed), Maker()
    heads = [maker.node(None)]
    for _ in range(size):
        turn = rng.random()
        if turn < 0.15 and len(maker.open) < 6:
            maker.enter(rng.choice(["layer", "neuron0", "neuron1", "a"]))
        elif turn < 0.3 and len(maker.open) > 1:
            maker.leave()
        elif turn < 0.4:
            heads.append(maker.node(None))
        else:
            heads.append(maker.node(rng.choice("+*"), *rng.choices(heads[-20:], k=2)))
    return maker.graph(maker.node("sum", *heads))


def network(layers: int, between: bool = False):
    maker = Maker()
    x = maker.node(None)
    for layer in range(layers):
        w = maker.node(None)
        maker.enter(f"layer{layer}")
        h = maker.node("relu", maker.node("matmul", x, w))
        maker.leave()
        x = maker.node("add", x, h) if between else h
    return maker.graph(maker.node("sum", x))


def widths(blocks, where) -> Counter:
    return Counter(where) + Counter(block.outer for block in blocks[1:])
