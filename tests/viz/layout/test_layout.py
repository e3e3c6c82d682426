"""The layered layout: guarantees for every graph."""

import json
import re
import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minigrad_viz.layout import Layout, Ports, layout
from minigrad_viz.layout import layered as module
from minigrad_viz.layout.graph import LayeredGraph, rank_nodes, split_into_links
from minigrad_viz.layout.order import count_crossings, order_columns
from tiers import NIGHTLY

Graph = tuple[list[tuple[float, float]], list[tuple[int, int]]]
BOX = (40.0, 30.0)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Generate up to 24 boxes of many sizes, connected forward by edges that may repeat."""
    side = st.floats(0, 120).map(lambda value: round(value, 1))
    sizes = draw(st.lists(st.tuples(side, side), max_size=24))
    if len(sizes) < 2:
        return sizes, []
    targets = st.integers(1, len(sizes) - 1)
    edge = targets.flatmap(lambda target: st.tuples(st.integers(0, target - 1), st.just(target)))
    return sizes, draw(st.lists(edge, max_size=40))


def chain_with_leaves(length: int) -> Graph:
    """x + b1 + b2 + ...: nodes 0, 2, 4, ... are the main line, the odd ones leaves."""
    edges = []
    for at in range(length):
        edges += [(2 * at, 2 * at + 2), (2 * at + 1, 2 * at + 2)]
    return [BOX] * (2 * length + 1), edges


def split_graph(nodes: int, edges: list[tuple[int, int]]) -> LayeredGraph:
    """Return the graph divided into links, its columns not ordered yet."""
    return split_into_links(edges, *rank_nodes(nodes, edges, Ports()), Ports(), 1000)


def assert_clear(sizes: list[tuple[float, float]], edges: list[tuple[int, int]], drawn: Layout) -> None:
    """Assert that no two boxes overlap, no route enters a box, and everything is inside the drawing."""
    boxes = [(x - w / 2, y - h / 2, x + w / 2, y + h / 2) for (x, y), (w, h) in zip(drawn.centers, sizes, strict=True)]
    for at, (left, top, right, bottom) in enumerate(boxes):
        assert min(left, top) >= -0.02
        assert right <= drawn.width + 0.02
        assert bottom <= drawn.height + 0.02
        for other in boxes[:at]:
            assert min(right, other[2]) <= max(left, other[0]) or min(bottom, other[3]) <= max(top, other[1])
    for (source, target), route in zip(edges, drawn.routes, strict=True):
        x, y = drawn.centers[source]
        assert route[0] == pytest.approx((x + sizes[source][0] / 2, y), abs=0.02)
        assert route[-1][0] == pytest.approx(boxes[target][0], abs=0.02)
        assert boxes[target][1] - 0.02 <= route[-1][1] <= boxes[target][3] + 0.02
        for (x0, y0), (x1, y1) in pairwise(route):
            assert x0 <= x1
            for left, top, right, bottom in boxes:
                if min(x1, right) - max(x0, left) > 0.03:  # they overlap in x by more than rounding
                    assert y0 == y1
                    assert not top + 0.03 < y0 < bottom - 0.03


@settings(derandomize=True, deadline=None, max_examples=150)
@given(graphs())
def test_boxes_never_overlap_and_routes_never_enter_a_box(graph: Graph) -> None:
    sizes, edges = graph
    assert_clear(sizes, edges, layout(sizes, edges))


@settings(derandomize=True, deadline=None)
@given(graphs())
def test_edges_point_right_and_leaves_precede_their_first_consumer(graph: Graph) -> None:
    sizes, edges = graph
    ranks = layout(sizes, edges).ranks
    assert all(ranks[source] < ranks[target] for source, target in edges)
    for leaf in set(range(len(sizes))) - {target for _, target in edges}:
        consumers = [ranks[target] for source, target in edges if source == leaf]
        assert ranks[leaf] == min(consumers, default=1) - 1


@settings(derandomize=True, deadline=None)
@given(graphs())
def test_inputs_arrive_from_top_to_bottom_in_slot_order(graph: Graph) -> None:
    sizes = [(width, height + 1) for width, height in graph[0]]
    edges = graph[1]
    routes = layout(sizes, edges).routes
    for node in range(len(sizes)):
        ports = [route[-1][1] for (_, target), route in zip(edges, routes, strict=True) if target == node]
        assert ports == sorted(ports)


@settings(derandomize=True, deadline=None, max_examples=50)
@given(graphs())
def test_express_edges_avoid_boxes(graph: Graph) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_DUMMIES", 0)
        assert_clear(*graph, layout(*graph))


def test_empty_graph_has_no_size() -> None:
    assert layout([], []) == Layout(0.0, 0.0, [], [], [])


def test_single_node_fills_the_drawing() -> None:
    assert layout([BOX], []) == Layout(40.0, 30.0, [(20.0, 15.0)], [], [0])


def test_both_edges_of_a_square_are_separate() -> None:
    drawn = layout([BOX, BOX], [(0, 1), (0, 1)], gap_x=50.0)
    assert drawn.routes == [[(40.0, 15.0), (90.0, 9.0)], [(40.0, 15.0), (90.0, 21.0)]]


def test_main_line_of_a_chain_with_leaves_is_straight() -> None:
    drawn = layout(*chain_with_leaves(50))
    assert len({drawn.centers[node][1] for node in range(2, 101, 2)}) == 1
    assert drawn.height <= 100


def test_parent_is_between_two_leaves() -> None:
    (_, first), (_, second), (_, parent) = layout([BOX] * 3, [(0, 2), (1, 2)]).centers
    assert parent == pytest.approx((first + second) / 2, abs=0.1)


def test_an_expression_tree_has_no_crossings() -> None:
    edges = [
        (0, 2),
        (1, 2),
        (3, 5),
        (4, 5),
        (2, 6),
        (5, 6),
        (7, 9),
        (8, 9),
        (6, 10),
        (9, 10),
        (10, 12),
        (11, 12),
    ]
    graph = split_graph(13, edges)
    order_columns(graph, 4, (2,))
    assert count_crossings(graph) == 0


def test_count_crossings_counts_pairs_in_the_wrong_order() -> None:
    edges = [(source, target) for target in (3, 4, 5) for source in (0, 1, 2)]
    graph = split_graph(6, edges)
    graph.columns = [[0, 1, 2], [3, 4, 5]]
    assert count_crossings(graph) == 9  # the complete graph K(3, 3): (3 * 2 / 2) squared


def test_one_leaf_used_by_3000_nodes_has_one_straight_lane() -> None:
    edges = [edge for node in range(2, 3002) for edge in ((max(node - 1, 1), node), (0, node))]
    drawn = layout([BOX] * 3002, edges)
    assert drawn.height <= 100
    assert max(map(len, drawn.routes)) <= 6


@pytest.mark.parametrize("length", [100_000 if NIGHTLY else 20_000])
def test_a_long_chain_is_level_and_needs_no_recursion(length: int) -> None:
    drawn = layout([BOX] * length, list(pairwise(range(length))))
    assert drawn.height == 30.0
    assert drawn.ranks == list(range(length))
    assert all(len(route) == 2 for route in drawn.routes)


def test_coordinates_do_not_depend_on_the_hash_seed() -> None:
    program = (
        "import json, random; from minigrad_viz.layout import layout; r = random.Random(0);"
        "e = [(r.randrange(v), v) for v in range(1, 200) for _ in range(r.randrange(3))];"
        "d = layout([(40, 30)] * 200, e); print(json.dumps([d.centers, d.routes, d.width, d.height]))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "77")
    }
    assert len(outputs) == 1
    assert len(json.loads(outputs.pop())[0]) == 200


@pytest.mark.parametrize(
    ("sizes", "edges", "message"),
    [
        ([BOX] * 2, [(1, 0)], "edge (1, 0) points backward: expected nodes in tape order, inputs first"),
        ([BOX] * 2, [(0, 0)], "edge (0, 0) points backward: expected nodes in tape order, inputs first"),
        ([BOX] * 2, [(0, 2)], "edge (0, 2) names a missing node: there are 2 nodes"),
        ([(-1.0, 3.0)], [], "node 0 has size (-1.0, 3.0); expected finite, non-negative values"),
        ([(float("nan"), 3.0)], [], "node 0 has size (nan, 3.0); expected finite, non-negative values"),
    ],
)
def test_invalid_graph_is_rejected(
    sizes: list[tuple[float, float]], edges: list[tuple[int, int]], message: str
) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        layout(sizes, edges)


def test_two_wires_of_one_box_leave_and_arrive_at_their_own_heights() -> None:
    ports = Ports(wires=[0, 1, 1], leave_offset=[-20.0, 30.0, 30.0], arrive_offset=[None, -5.0, 40.0])
    drawn = layout([(60.0, 100.0), BOX, (60.0, 120.0)], [(0, 1), (0, 2), (0, 2)], ports=ports)
    (_, one), (_, two), (_, three) = drawn.centers
    assert [route[0][1] for route in drawn.routes] == [one - 20, one + 30, one + 30]
    assert [route[-1][1] for route in drawn.routes] == [two, three - 5, three + 40]


def test_link_between_fixed_ports_is_level_without_other_links() -> None:
    ports = Ports(leave_offset=[35.0], arrive_offset=[-40.0])
    drawn = layout([(60.0, 100.0), (60.0, 120.0)], [(0, 1)], ports=ports)
    assert drawn.routes == [[(60.0, 85.0), (108.0, 85.0)]]
    assert drawn.height == 185.0


def test_wires_that_leave_a_box_in_the_order_in_which_they_arrive_do_not_cross() -> None:
    edges = [(0, 1), (0, 2), (0, 3), (0, 4)]
    ports = Ports(wires=[0, 1, 2, 3], leave_offset=[10.0, -30.0, 30.0, -10.0])
    heights = [y for _, y in layout([(60.0, 100.0), *[BOX] * 4], edges, ports=ports).centers[1:]]
    assert sorted(range(4), key=heights.__getitem__) == [1, 3, 0, 2]


def test_pinned_nodes_have_the_outer_columns_to_themselves() -> None:
    edges = [(0, 3), (2, 3), (1, 4), (3, 4), (3, 5), (4, 6)]
    drawn = layout([BOX] * 7, edges, ports=Ports(first={0: 7, 1: 0}, last={5, 6}))
    assert drawn.ranks == [0, 0, 1, 2, 3, 4, 4]
    assert drawn.centers[0][1] == drawn.centers[3][1]  # the entry represents the deepest value, hence the main line


def test_boxes_are_next_to_the_ports_of_a_tall_box() -> None:
    ports = Ports(arrive_offset=[-180.0, 0.0, 180.0])
    drawn = layout([*[BOX] * 3, (60.0, 400.0)], [(0, 3), (1, 3), (2, 3)], ports=ports)
    assert all(abs(route[0][1] - route[-1][1]) < 1 for route in drawn.routes)
    assert drawn.height == 400.0
