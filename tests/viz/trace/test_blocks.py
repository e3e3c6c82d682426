"""Blocks: whichever are collapsed no cycle appears, few things lie side by side, and folds are what they say."""

import json
import random
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from cases import merge_cases
from minigrad_viz.trace.blocks import MOST, Block, divide, start_expanded, visible

GRAPH = Block("graph", -1, "graph")


class Maker:
    """Makes a graph as code does, inside scopes, and returns it in tape order: depth-first from the last node."""

    def __init__(self) -> None:
        self.scopes, self.open, self.made = [GRAPH], [0], list[tuple[int, str | None, list[int]]]()

    def enter(self, name: str) -> None:
        self.scopes.append(Block(name, self.open[-1], "scope"))
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
    """Scopes opened and closed at random, in which operations take any earlier nodes, or leaves made anywhere."""
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


def paths(blocks: list[Block]) -> list[list[int]]:
    """The blocks around each block, from the graph to itself."""
    found: list[list[int]] = []
    for k, block in enumerate(blocks):
        found.append([*(found[block.outer] if k else []), k])
    return found


def collapsed(blocks, where, edges, opened) -> Iterator[tuple[object, object]]:
    """The wires between what is visible."""
    shown = [next((k for k in path if k not in opened), None) for path in paths(blocks)]
    items = [("node", i) if shown[k] is None else ("block", shown[k]) for i, k in enumerate(where)]
    return ((items[a], items[b]) for a, b in edges if items[a] != items[b])


def acyclic(wires) -> bool:
    after, waiting = defaultdict(list), Counter()
    for a, b in wires:
        after[a].append(b)
        waiting[b] += 1
    ready = [a for a in after if not waiting[a]]
    for a in ready:
        for b in after[a]:
            waiting[b] -= 1
            if not waiting[b]:
                ready.append(b)
    return not +waiting


def widths(blocks, where) -> Counter:
    return Counter(where) + Counter(block.outer for block in blocks[1:])


@merge_cases
@pytest.mark.parametrize("seed", range(60))
def test_no_cycle_whichever_blocks_are_collapsed(seed):
    scopes, where, ops, edges = random_program(seed, [30, 300, 1500][seed % 3])
    blocks, where = divide(scopes, where, ops, edges)
    assert max(widths(blocks, where).values()) <= MOST
    rng = random.Random(seed)
    for _ in range(8):
        opened = {k for k in range(len(blocks)) if rng.random() < 0.6} | {0}
        assert acyclic(collapsed(blocks, where, edges, opened))


@merge_cases
@pytest.mark.parametrize("seed", range(20))
def test_scopes_that_are_no_stretches_of_time_make_no_cycle_either(seed):
    rng = random.Random(seed)
    scopes = [GRAPH]
    for k in range(1, 12):
        scopes.append(Block("turn", rng.randrange(k), "scope"))
    where = [rng.randrange(12) for _ in range(200)]
    edges = [(rng.randrange(b), b) for b in range(1, 200) for _ in range(2)]
    ops = [None if b == 0 else "add" for b in range(200)]
    blocks, where = divide(scopes, where, ops, edges)
    for k in range(12):
        assert acyclic(collapsed(blocks, where, edges, set(rng.sample(range(len(blocks)), len(blocks) // 2)) | {0}))
        assert acyclic(collapsed(blocks, where, edges, set(range(k)) | {0}))


@pytest.mark.parametrize("seed", range(20))
def test_scope_holds_the_operations_that_were_made_in_it(seed):
    scopes, made_in, ops, edges = random_program(seed, 400)
    blocks, where = divide(scopes, made_in, ops, edges)
    inside = paths(blocks)
    groups = defaultdict(set)
    for i, op in enumerate(ops):
        if op is not None and made_in[i]:
            (innermost,) = [k for k in inside[where[i]] if blocks[k].kind == "scope"][-1:]
            groups[made_in[i]].add(innermost)
    assert {len(group) for group in groups.values()} == {1}
    assert len(set.union(*groups.values())) == len(groups)


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


def test_alike_neighbours_become_a_fold_with_their_number():
    blocks, where = divide(*network(4))
    assert blocks[1] == Block("layer0 … layer3", 0, "fold", 4)
    assert [(block.name, block.outer) for block in blocks[2:]] == [(f"layer{i}", 1) for i in range(4)]
    assert where[0] == 2, "the input, used in layer0 only, lies there"


def test_fold_that_would_make_a_cycle_is_not_made():
    blocks, _ = divide(*network(4, between=True))
    assert [block.name for block in blocks] == ["graph", "layer0", "layer1", "layer2", "layer3"]


def test_two_are_no_fold_and_different_structures_are_none():
    assert [block.kind for block in divide(*network(2))[0]] == ["graph", "scope", "scope"]
    maker = Maker()
    x = maker.node(None)
    for layer, op in enumerate(["exp", "exp", "sin", "exp"]):
        maker.enter(f"layer{layer}")
        x = maker.node(op, x)
        maker.leave()
    assert {block.kind for block in divide(*maker.graph(x))[0]} == {"graph", "scope"}


def test_equal_names_side_by_side_are_numbered():
    maker = Maker()
    x = maker.node(None)
    for op in ["exp", "sin"]:
        maker.enter("turn")
        x = maker.node(op, x)
        maker.leave()
    assert [block.name for block in divide(*maker.graph(x))[0]] == ["graph", "turn₁", "turn₂"]


def test_leaf_lies_in_the_innermost_block_around_what_uses_it():
    maker = Maker()
    w, b = maker.node(None), maker.node(None)
    maker.enter("outer")
    maker.enter("first")
    x = maker.node("mul", w, b)
    maker.leave()
    maker.enter("second")
    y = maker.node("add", x, b)
    maker.leave()
    maker.leave()
    blocks, where = divide(*maker.graph(y))
    assert [blocks[k].name for k in where] == ["first", "outer", "first", "second"]


def test_runs_are_cut_where_few_values_cross():
    maker = Maker()
    x = maker.node(None)
    for _ in range(4):
        wide = [maker.node("neg", x) for _ in range(45)]
        x = maker.node("sum", *wide)
        for _ in range(44):
            x = maker.node("neg", x)
    scopes, where, ops, edges = maker.graph(x)
    blocks, where = divide(scopes, where, ops, edges)
    crossings = {(a, where[a], where[b]) for a, b in edges if where[a] != where[b]}
    assert [block.kind for block in blocks] == ["graph", *["run"] * (len(blocks) - 1)]
    assert len(crossings) == len(blocks) - 2, "one value goes from run to run"


def test_start_opens_from_the_outside_in_while_there_is_room():
    blocks, where = divide(*network(4))
    assert start_expanded(blocks, where, 1000) == set(range(len(blocks)))
    sizes = widths(blocks, where)
    most = sum(sizes[k] - 1 for k in sizes) + 1
    assert start_expanded(blocks, where, most) == {0, 1, 2, 3, 4, 5}
    assert start_expanded(blocks, where, most - 1) == {0}, "the fold and all its layers, or nothing"


@pytest.mark.parametrize("seed", range(10))
def test_start_shows_no_more_than_its_budget(seed):
    scopes, where, ops, edges = random_program(seed, 1500)
    blocks, where = divide(scopes, where, ops, edges)
    opened = start_expanded(blocks, where)
    sizes = widths(blocks, where)
    assert 1 + sum(sizes[k] - 1 for k in opened) <= MOST
    assert all(k == 0 or blocks[k].outer in opened for k in opened)


def test_hundred_thousand_nodes_are_divided_and_few_lie_side_by_side():
    size = 100_000
    edges = [(operand, i) for i in range(2, size) for operand in (i - 1, max(0, i - 1 - i * 7919 % 50))]
    ops = [None, None, *["add"] * (size - 2)]
    blocks, where = divide([GRAPH], [0] * size, ops, edges)
    assert max(widths(blocks, where).values()) <= MOST
    assert where == sorted(where), "runs follow the tape"
    assert max(Counter(block.outer for block in blocks).values()) <= 40, "runs of runs of runs"


def played(code: str, cases: object) -> object:
    """What the player's blocks.js makes of `cases`, in `code`."""
    player = (Path(__file__).parents[3] / "viz" / "frontend" / "src" / "model" / "blocks.js").as_uri()
    script = f"""
import {{ readFileSync }} from "node:fs";
import {{ startExpanded, visible }} from "{player}";
const cases = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(cases.map((one) => {code})));
"""
    command = ["node", "--input-type=module", "--eval", script]
    done = subprocess.run(command, input=json.dumps(cases), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def graph_data(blocks, where, edges) -> dict[str, object]:
    """What blocks.js reads of a graph."""
    return {
        "count": len(where),
        "edgeCount": len(edges),
        "block": where,
        "operand": [a for a, _ in edges],
        "result": [b for _, b in edges],
        "blocks": [{"name": block.name, "outer": block.outer, "kind": block.kind} for block in blocks],
    }


needs_node = pytest.mark.needs("node")


@needs_node
def test_player_opens_the_same_blocks_at_the_start():
    cases, opened = [], []
    for seed in range(30):
        scopes, where, ops, edges = random_program(seed, 1500)
        blocks, where = divide(scopes, where, ops, edges)
        for budget in (1, 20, 60, 150, 400):
            cases.append({"graph": graph_data(blocks, where, edges), "budget": budget})
            opened.append(sorted(start_expanded(blocks, where, budget)))
    assert played("[...startExpanded(one.graph, one.budget)].sort((a, b) => a - b)", cases) == opened


@needs_node
def test_player_shows_the_same_items_and_wires():
    cases, shown = [], []
    for seed in range(30):
        scopes, where, ops, edges = random_program(seed, 300)
        blocks, where = divide(scopes, where, ops, edges)
        opened = [k for k in range(len(blocks)) if random.Random(seed + k).random() < 0.6]
        cases.append({"graph": graph_data(blocks, where, edges), "opened": opened})
        items, wires = visible(blocks, where, edges, {0, *opened})
        names = [f"n{item.node}" if item.block < 0 else f"b{item.block}" for item in items]
        seen = [[names[at], blocks_around(items, at)] for at, item in enumerate(items) if not item.framed]
        shown.append([seen, [[names[wire.start], names[wire.end], wire.value, wire.edges] for wire in wires]])
    code = """((shown) => [
        shown.items.map((item) => [item.id, item.parent]),
        shown.wires.map((wire) => [shown.items[wire.from].id, shown.items[wire.to].id, wire.value, wire.edges]),
    ])(visible(one.graph, new Set(one.opened)))"""
    assert played(code, cases) == shown


def blocks_around(items, at: int) -> int:
    """The open block that an item lies in."""
    outer = items[at].outer
    return 0 if outer < 0 else items[outer].block
