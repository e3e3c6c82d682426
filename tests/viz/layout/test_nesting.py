"""Frames around the parts of open blocks: guarantees for every graph."""

import re
from itertools import combinations, pairwise

import pytest

from minigrad_viz.layout import Ports, layout
from minigrad_viz.layout.nesting import Nested, nest
from nested_graphs import Graph, nested_graph
from tiers import NIGHTLY

Point = tuple[float, float]
Box = tuple[float, float, float, float]
BOX = (40.0, 30.0)
SLACK = 0.03  # rounding error


def frames_around(graph: Graph, item: int) -> list[int]:
    """Return the frames around an item, from the innermost outwards."""
    frames = []
    while graph.parents[item] >= 0:
        item = graph.parents[item]
        frames.append(item)
    return frames


def height_at(route: list[Point], x: float) -> float:
    """Return the y of a route at x."""
    for (x0, y0), (x1, y1) in pairwise(route):
        if x0 - SLACK <= x <= x1 + SLACK:
            return y0 + (y1 - y0) * min(max((x - x0) / (x1 - x0), 0.0), 1.0) if x1 > x0 else y0
    raise AssertionError(f"the route {route} does not pass {x}")


def heights_inside(route: list[Point], box: Box) -> list[float]:
    """Return the heights of a route between the left and the right side of a box, at the ends of each segment."""
    left, right = box[0], box[0] + box[2]
    heights = []
    for (x0, _), (x1, _) in pairwise(route):
        begin, end = max(x0, left), min(x1, right)
        if end - begin > SLACK:
            heights += [height_at(route, begin), height_at(route, end)]
    return heights


def assert_clear(graph: Graph, drawn: Nested) -> None:
    """Assert that frames contain their parts, other boxes do not overlap, and edges cross borders at ports only."""
    frames = set(graph.parents) - {-1}
    rings = [frames_around(graph, item) for item in range(len(graph.sizes))]
    assert drawn.depths == [len(ring) for ring in rings]
    for item, (left, top, width, height) in enumerate(drawn.boxes):
        x, y, box_width, high, header = 0.0, 0.0, drawn.width, drawn.height, 0.0
        if rings[item]:
            (x, y, box_width, high), header = drawn.boxes[rings[item][0]], graph.sizes[rings[item][0]][1]
        assert x - SLACK <= left
        assert left + width <= x + box_width + SLACK
        assert y + header - SLACK <= top
        assert top + height <= y + high + SLACK
        if item in frames:
            assert width >= graph.sizes[item][0] - SLACK
        else:
            assert (width, height) == pytest.approx(graph.sizes[item], abs=SLACK)
    for (one, a), (two, b) in combinations(enumerate(drawn.boxes), 2):
        if graph.parents[one] == graph.parents[two]:
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
            heights = heights_inside(route, box)
            if item not in rings[source] and item not in rings[target]:
                # Next to the box: above it throughout, or below. Segments are level along boxes and frames.
                assert all(y <= box[1] + SLACK for y in heights) or all(y >= box[1] + box[3] - SLACK for y in heights)
                continue
            assert all(box[1] + graph.sizes[item][1] < y < box[1] + box[3] for y in heights)
            if item not in rings[target]:
                ports.setdefault((item, True), {}).setdefault(source, height_at(route, box[0] + box[2]))
                assert ports[item, True][source] == pytest.approx(height_at(route, box[0] + box[2]), abs=SLACK)
            if item not in rings[source]:
                ports.setdefault((item, False), {}).setdefault(source, height_at(route, box[0]))
                assert ports[item, False][source] == pytest.approx(height_at(route, box[0]), abs=SLACK)
    for heights_by_wire in ports.values():  # one port per value, well separated
        assert all(lower - upper > 5 for upper, lower in pairwise(sorted(heights_by_wire.values())))


@pytest.mark.parametrize("part", range(8 if NIGHTLY else 2))
def test_frames_contain_their_parts_and_edges_cross_at_ports_only(part: int) -> None:
    for seed in range(50 * part, 50 * part + 50):
        graph = nested_graph(seed)
        assert_clear(graph, nest(*graph))


def test_without_blocks_the_drawing_is_that_of_layout() -> None:
    for seed in range(30):
        sizes, _, edges = nested_graph(seed)
        flat, drawn = layout(sizes, edges), nest(sizes, [-1] * len(sizes), edges)
        assert drawn.routes == flat.routes
        for (left, top, width, height), center in zip(drawn.boxes, flat.centers, strict=True):
            assert (left + width / 2, top + height / 2) == pytest.approx(center, abs=0.02)
        assert (drawn.width, drawn.height) == (flat.width, flat.height)


def test_value_with_many_uses_has_one_port() -> None:
    # 0 -> both parts of block 1, one of them twice; 2 -> two items outside
    drawn = nest([BOX] * 6, [-1, -1, 1, 1, -1, -1], [(0, 2), (0, 3), (0, 3), (2, 4), (2, 5)])
    left, _, width, _ = drawn.boxes[1]
    assert len({height_at(route, left) for route in drawn.routes[:3]}) == 1
    assert len({height_at(route, left + width) for route in drawn.routes[3:]}) == 1
    assert drawn.routes[1] != drawn.routes[2]


def test_the_main_line_runs_straight_through_frames() -> None:
    # 0 -> [2 with weight 3 -> [5 with weight 6]] -> 7: the weights are leaves, the rest is the main line
    outer = [-1, -1, 1, 1, 1, 4, 4, -1, -1]
    drawn = nest([BOX] * 9, outer, [(8, 0), (0, 2), (3, 2), (2, 5), (6, 5), (5, 7)])
    heights = {point[1] for edge in (0, 1, 3, 5) for point in drawn.routes[edge]}
    assert max(heights) - min(heights) <= 12  # the distance of two ports of one box


def test_ports_are_in_the_order_of_their_consumers() -> None:
    # Four values enter a block of four chains, in reverse order: no edges cross, inside the frame or outside.
    outer = [-1] * 4 + [-1] + [4] * 4
    drawn = nest([BOX] * 9, outer, [(0, 8), (1, 7), (2, 6), (3, 5)])
    sides = [[route[0][1] for route in drawn.routes], [height_at(route, drawn.boxes[4][0]) for route in drawn.routes]]
    sides.append([route[-1][1] for route in drawn.routes])
    assert len({tuple(sorted(range(4), key=heights.__getitem__)) for heights in sides}) == 1


def test_wires_leave_a_closed_block_in_arrival_order() -> None:
    sizes = [(60.0, 60.0), *[BOX] * 3]
    drawn = nest(sizes, [-1] * 4, [(0, 1), (0, 2), (0, 3)], ports=Ports(wires=[7, 5, 6]))
    leave = [route[0][1] for route in drawn.routes]
    assert sorted(range(3), key=leave.__getitem__) == sorted(range(3), key=lambda at: drawn.boxes[at + 1][1])
    middle = drawn.boxes[0][1] + 30
    assert sorted(leave) == [middle - 12, middle, middle + 12]


def test_parts_may_be_listed_before_their_inputs() -> None:
    drawn = nest([BOX] * 4, [-1, 0, 0, -1], [(3, 1), (2, 1), (3, 2)])
    assert drawn.boxes[2][0] < drawn.boxes[1][0]
    assert drawn.boxes[3][0] < drawn.boxes[0][0]


def test_a_frame_has_room_for_its_title() -> None:
    drawn = nest([(500.0, 20.0), BOX, BOX], [-1, 0, -1], [(1, 2)])
    assert drawn.boxes[0] == (0.0, 0.0, 500.0, 74.0)
    assert drawn.routes == [[(52.0, 47.0), (548.0, 47.0)]]


def test_hundred_nested_frames_need_no_recursion() -> None:
    depth = 100
    outer = [*range(-1, depth - 1), depth - 1, -1]
    drawn = nest([(60.0, 18.0)] * depth + [BOX, BOX], outer, [(depth, depth + 1)])
    assert drawn.depths[depth] == depth
    assert drawn.routes[0][0][1] == drawn.routes[0][-1][1]
    chain = nest([BOX] * 5000, [-1, -1, *[1] * 4998], [(at, at + 1) for at in range(2, 4999)])
    assert len(chain.routes) == 4997


@pytest.mark.parametrize(
    ("outer", "edges", "message"),
    [
        ([-1, 2, -1], [], "item 1 is inside item 2; expected an earlier item, or -1"),
        ([0, -1, -1], [], "item 0 is inside item 0; expected an earlier item, or -1"),
        ([-1, 0, -1], [(0, 2)], "edge (0, 2) must connect two of 3 items that are not frames"),
        ([-1, -1, -1], [(0, 3)], "edge (0, 3) must connect two of 3 items that are not frames"),
        ([-1, -1, -1], [(1, 1)], "the edges form a cycle through item 1; expected blocks without cycles"),
        # 1 -> 2 -> 3, where 1 and 3 are in block 0
        ([-1, 0, -1, 0], [(1, 2), (2, 3)], "the edges form a cycle through item 0; expected blocks without cycles"),
    ],
)
def test_invalid_nesting_is_rejected(outer: list[int], edges: list[tuple[int, int]], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        nest([BOX] * len(outer), outer, edges)
