"""The JavaScript layout gives the same coordinates as the Python layout; one node process answers for many graphs."""

import json
import random
import subprocess
from typing import Any

from minigrad_viz.layout import Ports, layout
from minigrad_viz.layout.nesting import nest
from needs import FRONTEND, needs
from nested_graphs import nested_graph
from tiers import NIGHTLY

PROGRAM = """
import { readFileSync } from "node:fs";
const { layout } = await import(process.argv[1] + "/layout/layered.js");
const { nest } = await import(process.argv[1] + "/layout/nesting.js");
const toPorts = ({ wires, first, last, ...offsets }) => ({
  wires, leaveOffset: offsets.leave_offset, arriveOffset: offsets.arrive_offset, first: new Map(first),
  last: new Set(last),
});
const answers = JSON.parse(readFileSync(0, "utf8")).map(({ sizes, outer, edges, ports, gaps }) => {
  const [gapX, gapY] = gaps;
  if (outer) return nest(sizes, outer, edges, { gapX, gapY, padding: 10.5, ports });
  return layout(sizes, edges, { gapX, gapY, ports: ports && toPorts(ports) });
});
process.stdout.write(JSON.stringify(answers));
"""


def flat_graph(seed: int, nodes: int) -> dict[str, Any]:
    """Return boxes of one size or of many, tangled or in a long line, with leaves far from their consumers and repeated
    edges.
    """
    generator = random.Random(seed)
    edges = []
    near = generator.choice([2, 10, nodes])
    for target in range(1, nodes):
        sources = [generator.randrange(max(0, target - near), target) for _ in range(generator.choice([0, 1, 2, 2, 3]))]
        edges += [(source, target) for source in sources]
        if generator.random() < 0.1:
            edges.append((0, target))
    side = generator.choice([lambda: 40.0, lambda: generator.randint(0, 999) / 8, lambda: generator.uniform(0, 90)])
    return {
        "sizes": [(side(), side()) for _ in range(nodes)],
        "edges": edges,
        "gaps": (48.0, generator.choice([16, 7.3])),
    }


def with_ports(graph: dict[str, Any], seed: int) -> dict[str, Any]:
    """Return the same graph with wires at given heights, and some leaves and results pinned."""
    generator = random.Random(seed)
    targets = {target for _, target in graph["edges"]}
    sources = {source for source, _ in graph["edges"]}
    wires = [generator.randrange(3) for _ in graph["edges"]]
    fixed = {node for node in targets if generator.random() < 0.4}
    nodes = range(len(graph["sizes"]))
    ports = {
        "wires": wires,
        "leave_offset": [
            9.7 * wire - 8 if source % 3 else None for wire, (source, _) in zip(wires, graph["edges"], strict=True)
        ],
        "arrive_offset": [generator.randint(-30, 30) / 3 if target in fixed else None for _, target in graph["edges"]],
        "first": [(node, generator.randrange(4)) for node in nodes if node not in targets and generator.random() < 0.5],
        "last": [node for node in nodes if node in targets - sources and generator.random() < 0.7],
    }
    return {**graph, "ports": ports}


def framed_graph(seed: int, max_items: int) -> dict[str, Any]:
    sizes, outer, edges = nested_graph(seed, max_items)
    graph: dict[str, Any] = {"sizes": sizes, "outer": outer, "edges": edges, "gaps": (40.0, 12.5)}
    return {**graph, "ports": {"wires": [seed * edge % 3 for edge in range(len(edges))]}} if seed % 2 else graph


def graphs() -> list[dict[str, Any]]:
    flat = [
        flat_graph(seed, nodes)
        for seed, nodes in enumerate([0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144] * (3 if NIGHTLY else 1))
    ]
    framed = [
        framed_graph(seed, frame_count) for seed, frame_count in enumerate([1, 4, 9, 30, 60] * (10 if NIGHTLY else 3))
    ]
    square = {"sizes": [(40.0, 30.0)] * 2, "edges": [(0, 1), (0, 1)], "gaps": (48.0, 16.0)}
    express = {"sizes": [(4.0, 3.0)] * 21_002, "edges": [(0, 21_001), *((at, at + 1) for at in range(21_001))]}
    return [
        *flat,
        *(with_ports(graph, seed) for seed, graph in enumerate(flat)),
        *framed,
        square,
        {**express, "gaps": (48.0, 16.0)},
        flat_graph(7, 2000),
        framed_graph(5, 400),
    ]


def python_layout(graph: dict[str, Any]) -> Any:
    """Return Python's layout as JSON data."""
    sizes, edges, (gap_x, gap_y) = graph["sizes"], graph["edges"], graph["gaps"]
    port_options = dict(graph.get("ports", {}))
    if "first" in port_options:
        port_options["first"] = dict(port_options["first"])
    ports = Ports(**port_options)
    if "outer" in graph:
        nested = nest(sizes, graph["outer"], edges, gap_x=gap_x, gap_y=gap_y, padding=10.5, ports=ports)
        answer = {name: getattr(nested, name) for name in nested.__slots__}
    else:
        drawn = layout(sizes, edges, gap_x=gap_x, gap_y=gap_y, ports=ports)
        answer = {name: getattr(drawn, name) for name in drawn.__slots__}
    return json.loads(json.dumps(answer))


def test_javascript_gives_the_coordinates_of_python() -> None:
    needs("node")
    inputs = graphs()
    node = subprocess.run(
        ["node", "--input-type=module", "-e", PROGRAM, str(FRONTEND / "src")],
        input=json.dumps(inputs),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert node.returncode == 0, node.stderr
    answers = json.loads(node.stdout)
    assert len(answers) == len(inputs)
    wrong = [
        at for at, (graph, answer) in enumerate(zip(inputs, answers, strict=True)) if answer != python_layout(graph)
    ]
    assert wrong == []  # bit for bit: both compute and round in the same order
