"""Blocks: collapsing any of them creates no cycle, each has few items, and folds group equal blocks."""

import random
from collections import Counter, defaultdict
from collections.abc import Iterator

import pytest

from cases import merge_cases
from minigrad_viz.trace.blocks import MAX_ITEMS, divide
from minigrad_viz.trace.rows import TraceBlock
from scoped_programs import GRAPH, ScopedGraphBuilder, network, random_program, widths


def paths(blocks: list[TraceBlock]) -> list[list[int]]:
    """Return the blocks around each block, from the graph to itself."""
    paths_of_blocks: list[list[int]] = []
    for k, block in enumerate(blocks):
        paths_of_blocks.append([*(paths_of_blocks[block.outer] if k else []), k])
    return paths_of_blocks


def collapsed(blocks, block_of, edges, opened) -> Iterator[tuple[object, object]]:
    """Return the wires between the visible items."""
    shown = [next((k for k in path if k not in opened), None) for path in paths(blocks)]
    items = [("node", i) if shown[k] is None else ("block", shown[k]) for i, k in enumerate(block_of)]
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
def test_collapsing_any_blocks_creates_no_cycle(seed):
    scopes, block_of, ops, edges = random_program(seed, [30, 300, 1500][seed % 3])
    blocks, block_of = divide(scopes, block_of, ops, edges)
    assert max(widths(blocks, block_of).values()) <= MAX_ITEMS
    rng = random.Random(seed)
    for _ in range(8):
        opened = {k for k in range(len(blocks)) if rng.random() < 0.6} | {0}
        assert acyclic(collapsed(blocks, block_of, edges, opened))


@merge_cases
@pytest.mark.parametrize("seed", range(20))
def test_interleaved_scopes_create_no_cycle(seed):
    rng = random.Random(seed)
    scopes = [GRAPH]
    for k in range(1, 12):
        scopes.append(TraceBlock("turn", rng.randrange(k), "scope"))
    block_of = [rng.randrange(12) for _ in range(200)]
    edges = [(rng.randrange(b), b) for b in range(1, 200) for _ in range(2)]
    ops = [None if b == 0 else "add" for b in range(200)]
    blocks, block_of = divide(scopes, block_of, ops, edges)
    for k in range(12):
        assert acyclic(collapsed(blocks, block_of, edges, set(rng.sample(range(len(blocks)), len(blocks) // 2)) | {0}))
        assert acyclic(collapsed(blocks, block_of, edges, set(range(k)) | {0}))


@pytest.mark.parametrize("seed", range(20))
def test_scope_contains_its_operations(seed):
    scopes, scope_of, ops, edges = random_program(seed, 400)
    blocks, block_of = divide(scopes, scope_of, ops, edges)
    inside = paths(blocks)
    groups = defaultdict(set)
    for i, op in enumerate(ops):
        if op is not None and scope_of[i]:
            (innermost,) = [k for k in inside[block_of[i]] if blocks[k].kind == "scope"][-1:]
            groups[scope_of[i]].add(innermost)
    assert {len(group) for group in groups.values()} == {1}
    assert len(set.union(*groups.values())) == len(groups)


def test_equal_neighbours_become_a_fold_with_their_count():
    blocks, block_of = divide(*network(4))
    assert blocks[1] == TraceBlock("layer0 … layer3", 0, "fold", 4)
    assert [(block.name, block.outer) for block in blocks[2:]] == [(f"layer{i}", 1) for i in range(4)]
    assert block_of[0] == 2, "the input, used in layer0 only, is there"


def test_fold_that_would_create_a_cycle_is_skipped():
    blocks, _ = divide(*network(4, residual=True))
    assert [block.name for block in blocks] == ["graph", "layer0", "layer1", "layer2", "layer3"]


def test_two_blocks_or_different_structures_form_no_fold():
    assert [block.kind for block in divide(*network(2))[0]] == ["graph", "scope", "scope"]
    maker = ScopedGraphBuilder()
    x = maker.node(None)
    for layer, op in enumerate(["exp", "exp", "sin", "exp"]):
        maker.enter(f"layer{layer}")
        x = maker.node(op, x)
        maker.leave()
    assert {block.kind for block in divide(*maker.graph(x))[0]} == {"graph", "scope"}


def test_equal_names_in_a_block_are_numbered():
    maker = ScopedGraphBuilder()
    x = maker.node(None)
    for op in ["exp", "sin"]:
        maker.enter("turn")
        x = maker.node(op, x)
        maker.leave()
    assert [block.name for block in divide(*maker.graph(x))[0]] == ["graph", "turn₁", "turn₂"]


def test_leaf_is_in_the_innermost_block_around_its_uses():
    maker = ScopedGraphBuilder()
    w, b = maker.node(None), maker.node(None)
    maker.enter("outer")
    maker.enter("first")
    x = maker.node("mul", w, b)
    maker.leave()
    maker.enter("second")
    y = maker.node("add", x, b)
    maker.leave()
    maker.leave()
    blocks, block_of = divide(*maker.graph(y))
    assert [blocks[k].name for k in block_of] == ["first", "outer", "first", "second"]


def test_runs_are_cut_where_few_values_cross():
    maker = ScopedGraphBuilder()
    x = maker.node(None)
    for _ in range(4):
        fan = [maker.node("neg", x) for _ in range(45)]
        x = maker.node("sum", *fan)
        for _ in range(44):
            x = maker.node("neg", x)
    scopes, block_of, ops, edges = maker.graph(x)
    blocks, block_of = divide(scopes, block_of, ops, edges)
    crossings = {(a, block_of[a], block_of[b]) for a, b in edges if block_of[a] != block_of[b]}
    assert [block.kind for block in blocks] == ["graph", *["run"] * (len(blocks) - 1)]
    assert len(crossings) == len(blocks) - 2, "one value passes from run to run"


def test_hundred_thousand_nodes_are_divided_into_small_blocks():
    size = 100_000
    edges = [(operand, i) for i in range(2, size) for operand in (i - 1, max(0, i - 1 - i * 7919 % 50))]
    ops = [None, None, *["add"] * (size - 2)]
    blocks, block_of = divide([GRAPH], [0] * size, ops, edges)
    assert max(widths(blocks, block_of).values()) <= MAX_ITEMS
    assert block_of == sorted(block_of), "runs follow the tape"
    assert max(Counter(block.outer for block in blocks).values()) <= 40, "runs of runs of runs"
