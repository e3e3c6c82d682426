"""Visibility: the initially open blocks fit a budget, and the player shows the same items and wires."""

import json
import random
import subprocess
from pathlib import Path

import pytest

from minigrad_viz.trace.blocks import MAX_ITEMS, divide
from minigrad_viz.trace.visibility import initially_open, visible_items
from scoped_programs import network, random_program, widths


def test_blocks_open_from_the_outermost_while_the_budget_allows():
    blocks, block_of = divide(*network(4))
    assert initially_open(blocks, block_of, 1000) == set(range(len(blocks)))
    sizes = widths(blocks, block_of)
    item_count = sum(sizes[k] - 1 for k in sizes) + 1
    assert initially_open(blocks, block_of, item_count) == {0, 1, 2, 3, 4, 5}
    assert initially_open(blocks, block_of, item_count - 1) == {0}, "the fold and all its layers, or neither"


@pytest.mark.parametrize("seed", range(10))
def test_initial_items_fit_the_budget(seed):
    scopes, block_of, ops, edges = random_program(seed, 1500)
    blocks, block_of = divide(scopes, block_of, ops, edges)
    opened = initially_open(blocks, block_of)
    sizes = widths(blocks, block_of)
    assert 1 + sum(sizes[k] - 1 for k in opened) <= MAX_ITEMS
    assert all(k == 0 or blocks[k].outer in opened for k in opened)


def run_player(code: str, cases: object) -> object:
    """Run the player's blocks.js on `cases` with `code`, and return its output."""
    player = (Path(__file__).parents[3] / "viz" / "frontend" / "src" / "model" / "blocks.js").as_uri()
    script = f"""
import {{ readFileSync }} from "node:fs";
import {{ startExpanded, visibleItems }} from "{player}";
const cases = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(cases.map((one) => {code})));
"""
    command = ["node", "--input-type=module", "--eval", script]
    done = subprocess.run(command, input=json.dumps(cases), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def graph_data(blocks, block_of, edges) -> dict[str, object]:
    """Return the input of blocks.js for a graph."""
    return {
        "count": len(block_of),
        "edgeCount": len(edges),
        "block": block_of,
        "operand": [a for a, _ in edges],
        "result": [b for _, b in edges],
        "blocks": [{"name": block.name, "outer": block.outer, "kind": block.kind} for block in blocks],
    }


needs_node = pytest.mark.needs("node")


@needs_node
def test_player_opens_the_same_blocks_initially():
    cases, opened = [], []
    for seed in range(30):
        scopes, block_of, ops, edges = random_program(seed, 1500)
        blocks, block_of = divide(scopes, block_of, ops, edges)
        for budget in (1, 20, 60, 150, 400):
            cases.append({"graph": graph_data(blocks, block_of, edges), "budget": budget})
            opened.append(sorted(initially_open(blocks, block_of, budget)))
    assert run_player("[...startExpanded(one.graph, one.budget)].sort((a, b) => a - b)", cases) == opened


@needs_node
def test_player_shows_the_same_items_and_wires():
    cases, shown = [], []
    for seed in range(30):
        scopes, block_of, ops, edges = random_program(seed, 300)
        blocks, block_of = divide(scopes, block_of, ops, edges)
        opened = [k for k in range(len(blocks)) if random.Random(seed + k).random() < 0.6]
        cases.append({"graph": graph_data(blocks, block_of, edges), "opened": opened})
        items, wires = visible_items(blocks, block_of, edges, {0, *opened})
        names = [f"n{item.node}" if item.block < 0 else f"b{item.block}" for item in items]
        visible = [[names[at], open_block_of(items, at)] for at, item in enumerate(items) if not item.is_frame]
        shown.append([visible, [[names[wire.start], names[wire.end], wire.value, wire.edges] for wire in wires]])
    code = """((shown) => [
        shown.items.map((item) => [item.id, item.parent]),
        shown.wires.map((wire) => [shown.items[wire.from].id, shown.items[wire.to].id, wire.value, wire.edges]),
    ])(visibleItems(one.graph, new Set(one.opened)))"""
    assert run_player(code, cases) == shown


def open_block_of(items, at: int) -> int:
    """Return the open block of an item."""
    outer = items[at].outer
    return 0 if outer < 0 else items[outer].block
