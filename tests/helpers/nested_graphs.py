"""Random nested graphs for the layout tests."""

import random
from typing import NamedTuple

Point = tuple[float, float]


class Graph(NamedTuple):
    """The arguments of `nest`."""

    sizes: list[Point]
    parents: list[int]
    edges: list[tuple[int, int]]


def nested_graph(seed: int, max_steps: int = 30) -> Graph:
    """Return a graph whose blocks are contiguous in tape order, up to five deep. Edges may repeat; sizes vary."""
    generator = random.Random(seed)
    sizes: list[Point] = []
    parents: list[int] = []
    tape: list[int] = []
    path = [-1]
    for _ in range(generator.randint(1, max_steps)):
        while len(path) < 6 and generator.random() < 0.25:  # open a block that is not empty
            parents.append(path[-1])
            path.append(len(sizes))
            sizes.append((round(generator.uniform(0, 200), 1), 18.0))
        parents.append(path[-1])
        tape.append(len(sizes))
        sizes.append((round(generator.uniform(0, 90), 1), round(generator.uniform(1, 70), 2)))
        while len(path) > 1 and generator.random() < 0.3:
            path.pop()
    max_distance = generator.choice([2, 5, 30])
    edges = []
    for index in range(1, len(tape)):
        for _ in range(generator.choice([0, 1, 1, 2, 2, 3])):
            edges.append((tape[max(0, index - generator.randint(1, max_distance))], tape[index]))
    return Graph(sizes, parents, edges)
