"""Frames around the parts of open blocks: what a reader can count on, whatever the graph."""

import random
from itertools import combinations, pairwise
from typing import NamedTuple

import pytest

from minigrad_viz.layout import layout
from minigrad_viz.nesting import Nested, nest

Point = tuple[float, float]
Box = tuple[float, float, float, float]
BOX = (40.0, 30.0)
SLACK = 0.03  # of rounding


class Graph(NamedTuple):
    """The arguments of `nest`."""

    sizes: list[Point]
    outer: list[int]
    edges: list[tuple[int, int]]


def nested_graph(seed: int, most: int = 30) -> Graph:
    """A graph whose blocks are contiguous in tape order, up to five deep; some edges repeat, some boxes are large."""
    generator = random.Random(seed)
    sizes: list[Point] = []
    outer: list[int] = []
    tape: list[int] = []
    path = [-1]
    for _ in range(generator.randint(1, most)):
        while len(path) < 6 and generator.random() < 0.25:  # open a block, and put something in it
            outer.append(path[-1])
            path.append(len(sizes))
            sizes.append((round(generator.uniform(0, 200), 1), 18.0))
        outer.append(path[-1])
        tape.append(len(sizes))
        sizes.append((round(generator.uniform(0, 90), 1), round(generator.uniform(1, 70), 2)))
        while len(path) > 1 and generator.random() < 0.3:
            path.pop()
    near = generator.choice([2, 5, 30])
    edges = []
    for at in range(1, len(tape)):
        for _ in range(generator.choice([0, 1, 1, 2, 2, 3])):
            edges.append((tape[max(0, at - generator.randint(1, near))], tape[at]))
    return Graph(sizes, outer, edges)


def around(graph: Graph, item: int) -> list[int]:
    """The frames around an item, from the inside to the outside."""
    found = []
    while graph.outer[item] >= 0:
        item = graph.outer[item]
        found.append(item)
    return found


def height_at(route: list[Point], x: float) -> float:
    """The y of a route where it passes x."""
    for (x0, y0), (x1, y1) in pairwise(route):
        if x0 - SLACK <= x <= x1 + SLACK:
            return y0 + (y1 - y0) * min(max((x - x0) / (x1 - x0), 0.0), 1.0) if x1 > x0 else y0
    raise AssertionError(f"the route {route} does not pass {x}")


def inside(route: list[Point], box: Box) -> list[float]:
    """The heights at which a route runs between the left and the right side of a box, at the ends of each stretch."""
    left, right = box[0], box[0] + box[2]
    heights = []
    for (x0, _), (x1, _) in pairwise(route):
        begin, end = max(x0, left), min(x1, right)
        if end - begin > SLACK:
            heights += [height_at(route, begin), height_at(route, end)]
    return heights


def assert_clear(graph: Graph, drawn: Nested) -> None:
    """Frames hold their parts, boxes that do not hold each other are apart, edges cross borders at ports only."""
    frames = set(graph.outer) - {-1}
    rings = [around(graph, item) for item in range(len(graph.sizes))]
    assert drawn.depths == [len(ring) for ring in rings]
    for item, (left, top, width, height) in enumerate(drawn.boxes):
        x, y, wide, high, header = 0.0, 0.0, drawn.width, drawn.height, 0.0
        if rings[item]:
            (x, y, wide, high), header = drawn.boxes[rings[item][0]], graph.sizes[rings[item][0]][1]
        assert x - SLACK <= left
        assert left + width <= x + wide + SLACK
        assert y + header - SLACK <= top
        assert top + height <= y + high + SLACK
        if item in frames:
            assert width >= graph.sizes[item][0] - SLACK
        else:
            assert (width, height) == pytest.approx(graph.sizes[item], abs=SLACK)
    for (one, a), (two, b) in combinations(enumerate(drawn.boxes), 2):
        if graph.outer[one] == graph.outer[two]:
            across = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
            assert min(across, min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])) <= SLACK
    ports: dict[tuple[int, bool], dict[int, float]] = {}
    for (source, target), route in zip(graph.edges, drawn.routes, strict=True):
        assert all(x0 <= x1 for (x0, _), (x1, _) in pairwise(route))
        left, top, width, height = drawn.boxes[source]
        assert route[0] == pytest.approx((left + width, top + height / 2), abs=SLACK)
        left, top, width, height = drawn.boxes[target]
        assert route[-1][0] == pytest.approx(left, abs=SLACK)
        assert top - SLACK <= route[-1][1] <= top + height + SLACK
        for item, box in enumerate(drawn.boxes):
            heights = inside(route, box)
            if item not in rings[source] and item not in rings[target]:
                # Beside the box: above it all the time, or below. A stretch is level along boxes, frames or not.
                assert all(y <= box[1] + SLACK for y in heights) or all(y >= box[1] + box[3] - SLACK for y in heights)
                continue
            assert all(box[1] + graph.sizes[item][1] < y < box[1] + box[3] for y in heights)
            if item not in rings[target]:
                ports.setdefault((item, True), {}).setdefault(source, height_at(route, box[0] + box[2]))
                assert ports[item, True][source] == pytest.approx(height_at(route, box[0] + box[2]), abs=SLACK)
            if item not in rings[source]:
                ports.setdefault((item, False), {}).setdefault(source, height_at(route, box[0]))
                assert ports[item, False][source] == pytest.approx(height_at(route, box[0]), abs=SLACK)
    for heights_by_wire in ports.values():  # one port for each value, well apart from the next
        assert all(below - above > 5 for above, below in pairwise(sorted(heights_by_wire.values())))


@pytest.mark.parametrize("part", range(8))
def test_frames_hold_their_parts_and_edges_cross_their_borders_at_ports_only(part: int) -> None:
    for seed in range(50 * part, 50 * part + 50):
        graph = nested_graph(seed)
        assert_clear(graph, nest(*graph))


def test_without_blocks_the_drawing_is_that_of_layout() -> None:
    for seed in range(30):
        sizes, _, edges = nested_graph(seed)
        flat, drawn = layout(sizes, edges), nest(sizes, [-1] * len(sizes), edges)
        assert drawn.routes == flat.routes
        assert [(x + w / 2, y + h / 2) for x, y, w, h in drawn.boxes] == pytest.approx(flat.centers, abs=0.02)
        assert (drawn.width, drawn.height) == (flat.width, flat.height)
