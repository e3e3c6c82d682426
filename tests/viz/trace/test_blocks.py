"""Blocks: collapsing any of them creates no cycle, each has few items, and folds group equal blocks."""

import random
from collections import Counter, defaultdict
from collections.abc import Iterator

import pytest

from cases import merge_cases
from minigrad_viz.trace.blocks import MOST, divide
from minigrad_viz.trace.rows import TraceBlock
from scoped_programs import GRAPH, Maker, network, random_program, widths


def paths(blocks: list[TraceBlock]) -> list[list[int]]:
    """Return the blocks around each block, from the graph to itself."""
    found: list[list[int]] = []
    for k, block in enumerate(blocks):
        found.append([*(found[block.outer] if k else []), k])
    return found


def collapsed(blocks, where, edges, opened) -> Iterator[tuple[object, object]]:
    """Return the wires between the visible items."""
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
        scopes.append(TraceBlock("turn", rng.randrange(k), "scope"))
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


def test_alike_neighbours_become_a_fold_with_their_number():
    blocks, where = divide(*network(4))
    assert blocks[1] == TraceBlock("layer0 … layer3", 0, "fold", 4)
    assert [(block.name, block.outer) for block in blocks[2:]] == [(f"layer{i}", 1) for i in range(4)]
    assert where[0] == 2, "the input, used in layer0 only, is there"


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
    assert len(crossings) == len(blocks) - 2, "one value passes from run to run"


def test_hundred_thousand_nodes_are_divided_and_few_lie_side_by_side():
    size = 100_000
    edges = [(operand, i) for i in range(2, size) for operand in (i - 1, max(0, i - 1 - i * 7919 % 50))]
    ops = [None, None, *["add"] * (size - 2)]
    blocks, where = divide([GRAPH], [0] * size, ops, edges)
    assert max(widths(blocks, where).values()) <= MOST
    assert where == sorted(where), "runs follow the tape"
    assert max(Counter(block.outer for block in blocks).values()) <= 40, "runs of runs of runs"
