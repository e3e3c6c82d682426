"""Blocks: the parts of a graph that are drawn as one box each until a user opens them.

`divide` builds the tree of blocks. It consists of the entered scopes, of *folds*, which group similar adjacent blocks,
and of *runs*, which divide blocks with more than `MAX_ITEMS` items. The items inside each block form no cycle, hence
collapsing any set of blocks creates none. Proof: in the innermost block around such a cycle, the cycle would pass
through at least two items.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate, groupby, pairwise

from minigrad_viz.trace.names import disambiguate
from minigrad_viz.trace.rows import TraceBlock
from minigrad_viz.trace.titles import generic_name, joint_name, title_of_run

__all__ = ["MAX_ITEMS", "divide"]

MAX_ITEMS = 150  # maximum number of items in one block, and of items visible at the start
# Target numbers of items per run, and of runs per longer run. Runs are cut where the fewest values cross.
RUN_LENGTH, GROUP_LENGTH = 100, 20
MAX_RUNS = 40  # maximum number of runs in a block before they are grouped
MIN_FOLD = 3  # minimum number of adjacent blocks in a fold

Edge = tuple[int, int]


class _BlockTree:
    """Blocks under construction. In the items of a block, a node is represented by its index, and block k by ~k."""

    def __init__(
        self,
        scopes: Sequence[TraceBlock],
        block_of_node: Sequence[int],
        ops: Sequence[str | None],
        edges: Sequence[Edge],
    ) -> None:
        self.blocks = list(scopes)
        self.block_of_node = list(block_of_node)
        self.ops = ops
        self.edges, self.pairs = edges, set(edges)
        self.items: list[list[int]] = []  # the items of each block, in topological order
        self.links: list[list[Edge]] = []  # the edges between items of each block
        self.depth: list[int] = []
        self.first: list[int] = []  # first node of each block
        self.last: list[int] = []

    def compute_depths(self) -> None:
        self.depth = [0] * len(self.blocks)
        for k, block in enumerate(self.blocks[1:], 1):
            self.depth[k] = self.depth[block.outer] + 1

    def common_ancestor(self, a: int, b: int) -> int:
        """Return the innermost block around blocks a and b."""
        while a != b:
            if self.depth[a] < self.depth[b]:
                a, b = b, a
            a = self.blocks[a].outer
        return a

    def add(self, block: TraceBlock, items: list[int], links: list[Edge]) -> int:
        """Create a block around `items`, and return it as an item."""
        self.blocks.append(block)
        self.items.append(items)
        self.links.append(links)
        first, last = self.first, self.last
        first.append(min([item if item >= 0 else first[~item] for item in items]))
        last.append(max([item if item >= 0 else last[~item] for item in items]))
        for item in items:
            if item < 0:
                self.blocks[~item] = self.blocks[~item]._replace(outer=len(self.blocks) - 1)
        return ~(len(self.blocks) - 1)

    def first_node(self, item: int) -> int:
        return item if item >= 0 else self.first[~item]

    def last_node(self, item: int) -> int:
        return item if item >= 0 else self.last[~item]


def divide(
    scopes: Sequence[TraceBlock],
    scope_of_node: Sequence[int],
    ops: Sequence[str | None],
    edges: Sequence[Edge],
    inputs: Collection[int] = (),
) -> tuple[list[TraceBlock], list[int]]:
    """Return the blocks of a graph, and the block of each node.

    `scopes` are the entered scopes, outer ones first; block 0 is the graph. `scope_of_node` is the
    scope of each node, `ops` the name of its op, None for leaves and constants; `edges` are pairs (operand, result).
    Leaves are moved to the block that uses them, but `inputs` stay where they were created.

    >>> chain = [(i, i + 1) for i in range(199)]
    >>> blocks, block_of_node = divide([TraceBlock("graph", -1, "graph")], [0] * 200, [None, *["neg"] * 199], chain)
    >>> [(block.name, block.outer) for block in blocks], block_of_node[99:101]
    ([('graph', -1), ('99 × neg', 0), ('100 × neg', 0)], [1, 2])
    """
    tree = _BlockTree(scopes, scope_of_node, ops, edges)
    tree.compute_depths()
    if len(tree.blocks) > 1:
        _move_leaves(tree, inputs)
    while cyclic := _assign_items(tree):
        _dissolve(tree, cyclic)
    _number_names(tree)
    if len(tree.blocks) > MIN_FOLD:
        _fold_neighbours(tree)
    for k in range(len(tree.blocks)):
        if len(tree.items[k]) > MAX_ITEMS:
            _split_into_runs(tree, k)
    return _renumber(tree)


# --- scopes ----------------------------------------------------------------------------------------------------------


def _move_leaves(tree: _BlockTree, inputs: Collection[int]) -> None:
    """Move each leaf to the innermost block around its uses, unless it was created further inside.

    All edges of the leaf stay in that block and start at the leaf, so this creates no cycle.
    """
    block_of_node, ops, target_block = tree.block_of_node, tree.ops, dict[int, int]()
    for operand, result in tree.edges:
        if ops[operand] is None and operand not in inputs:
            block = block_of_node[result]
            home = target_block.setdefault(operand, block)
            if home != block:
                target_block[operand] = tree.common_ancestor(home, block)
    for leaf, block in target_block.items():
        if block_of_node[leaf] != block and tree.common_ancestor(block_of_node[leaf], block) != block:
            block_of_node[leaf] = block


def _assign_items(tree: _BlockTree) -> set[int]:
    """Assign items and links to their blocks, in topological order, and return the blocks on cycles.

    Scopes of one thread form no cycle, but scopes of alternating threads may.
    """
    blocks, block_of_node, nodes = tree.blocks, tree.block_of_node, len(tree.block_of_node)
    tree.compute_depths()
    tree.items = [[] for _ in blocks]
    for node, k in enumerate(block_of_node):
        tree.items[k].append(node)
    tree.first = [items[0] if items else nodes for items in tree.items]
    tree.last = [items[-1] if items else -1 for items in tree.items]
    child_blocks: list[list[int]] = [[] for _ in blocks]
    for k in range(len(blocks) - 1, 0, -1):
        if tree.first[k] < nodes:
            outer = blocks[k].outer
            tree.first[outer] = min(tree.first[outer], tree.first[k])
            tree.last[outer] = max(tree.last[outer], tree.last[k])
            child_blocks[outer].append(~k)
    _assign_links(tree)
    cyclic: set[int] = set()
    for k, children in enumerate(child_blocks):
        if children:
            items = sorted([*children, *tree.items[k]], key=tree.first_node)
            tree.items[k] = _sort_items(items, tree.links[k], cyclic)
    return cyclic


def _assign_links(tree: _BlockTree) -> None:
    """Assign each edge to the innermost block around it, as a link between the two items that contain its ends."""
    blocks, block_of_node, depth = tree.blocks, tree.block_of_node, tree.depth
    tree.links = [[] for _ in blocks]
    for edge in tree.edges:
        a, b = edge
        k, m = block_of_node[a], block_of_node[b]
        while k != m:
            if depth[k] >= depth[m]:
                a, k = ~k, blocks[k].outer
            else:
                b, m = ~m, blocks[m].outer
        tree.links[k].append((a, b) if a < 0 or b < 0 else edge)


def _sort_items(items: list[int], links: Iterable[Edge], cyclic: set[int]) -> list[int]:
    """Sort `items` topologically; ties keep their order. Blocks on cycles are added to `cyclic`."""
    operands: dict[int, list[int]] = {}
    for a, b in links:
        operands.setdefault(b, []).append(a)
    order: list[int] = []
    current_path: dict[int, None] = {}
    done: set[int] = set()
    for start in items:
        stack = [start]
        while stack:
            item = stack[-1]
            if item in done:
                stack.pop()
            elif item in current_path:
                stack.pop()
                del current_path[item]
                done.add(item)
                order.append(item)
            else:
                current_path[item] = None
                for operand in reversed(operands.get(item, ())):
                    if operand in current_path:
                        path = list(current_path)
                        cyclic.update(~x for x in path[path.index(operand) :] if x < 0)
                    elif operand not in done:
                        stack.append(operand)
    return order


def _dissolve(tree: _BlockTree, cyclic: set[int]) -> None:
    """Dissolve the blocks `cyclic`: move their contents to the blocks around them."""
    remaining = [k for k in range(len(tree.blocks)) if k not in cyclic]
    new_index = {k: position for position, k in enumerate(remaining)}
    for k in sorted(cyclic):
        new_index[k] = new_index[tree.blocks[k].outer]
    tree.blocks = [
        block._replace(outer=new_index.get(block.outer, -1)) for block in map(tree.blocks.__getitem__, remaining)
    ]
    tree.block_of_node = [new_index[k] for k in tree.block_of_node]


def _number_names(tree: _BlockTree) -> None:
    """Number the scopes of the same name within a block."""
    for items in tree.items:
        parts = [~item for item in items if item < 0]
        for k, name in zip(parts, disambiguate([tree.blocks[k].name for k in parts], ()), strict=True):
            tree.blocks[k] = tree.blocks[k]._replace(name=name or "")


# --- folds -----------------------------------------------------------------------------------------------------------


def _fold_neighbours(tree: _BlockTree) -> None:
    """Group adjacent blocks that are equal, except for digits in their names, into folds.

    No fold is created in a block that contains only such blocks and leaves.
    """
    shapes = _structure_ids(tree)

    def appearance(item: int) -> tuple[str, int]:
        return generic_name(tree.blocks[~item].name), shapes[~item]

    for k in range(len(tree.items)):
        parts = [item for item in tree.items[k] if item < 0]
        groups = [list(group) for _, group in groupby(parts, appearance)]
        other_count = sum(item < 0 or tree.ops[item] is not None for item in tree.items[k])
        folds = [
            group
            for group in groups
            if len(group) >= MIN_FOLD and (len(group) < other_count or other_count > MAX_ITEMS)
        ]
        if folds:
            _create_folds(tree, k, folds)


def _structure_ids(tree: _BlockTree) -> list[int]:
    """Return an id for each block. Blocks with the same ops and edges have equal ids, regardless of their leaves."""
    ops, ids = tree.ops, dict[object, int]()
    structure = [0] * len(tree.blocks)
    for k in range(len(tree.blocks) - 1, 0, -1):
        items = [item for item in tree.items[k] if item < 0 or ops[item] is not None]
        position = {item: at for at, item in enumerate(items)}
        kinds = tuple(ops[item] if item >= 0 else structure[~item] for item in items)
        links = tuple(sorted((position[b], position[a]) for a, b in tree.links[k] if a in position))
        structure[k] = ids.setdefault((kinds, links), len(ids))
    return structure


def _create_folds(tree: _BlockTree, k: int, folds: list[list[int]]) -> None:
    """Create the folds of block k, except those that would create a cycle."""
    operands_of: dict[int, list[int]] = {}
    for a, b in tree.links[k]:
        operands_of.setdefault(b, []).append(a)
    items, fold_of = tree.items[k], dict[int, int]()
    position = {item: at for at, item in enumerate(items)}
    for fold_items in folds:
        start, end = position[fold_items[0]], position[fold_items[-1]] + 1
        members, dependents, independent, is_acyclic = set(fold_items), set[int](), [], True
        for item in items[start:end]:
            reached = any(a in dependents for a in operands_of.get(item, ()))
            if item in members:
                is_acyclic = is_acyclic and not reached  # an item that is reached depends indirectly on the fold
            elif reached or any(a in members for a in operands_of.get(item, ())):
                dependents.add(item)
            else:
                independent.append(item)
        if is_acyclic:
            trailing = [item for item in items[start:end] if item in dependents]
            items[start:end] = [*independent, *fold_items, *trailing]
            for at, item in enumerate(items[start:end], start):
                position[item] = at
            names = [tree.blocks[~item].name for item in (fold_items[0], fold_items[-1])]
            fold = tree.add(TraceBlock(joint_name(*names), k, "fold", len(fold_items)), fold_items, [])
            fold_of |= dict.fromkeys(fold_items, fold)
    _move_items(tree, k, fold_of)


def _move_items(tree: _BlockTree, k: int, block_of_item: dict[int, int]) -> None:
    """Move items of block k, and the links between them, into the new blocks in `block_of_item`."""
    links: dict[Edge, None] = {}
    new, inside = block_of_item.get, tree.links
    for edge in tree.links[k]:
        a, b = edge
        a, b = new(a, a), new(b, b)
        if a == b:
            inside[~a].append(edge)
        else:
            links[a, b] = None
    tree.links[k] = list(links)
    tree.items[k] = list(dict.fromkeys(block_of_item.get(item, item) for item in tree.items[k]))


# --- runs ------------------------------------------------------------------------------------------------------------


def _split_into_runs(tree: _BlockTree, k: int) -> None:
    """Split the items of block k into runs, and group these into longer runs until few are left."""
    size = RUN_LENGTH
    while len(items := tree.items[k]) > (MAX_ITEMS if size == RUN_LENGTH else MAX_RUNS):
        crossing = _crossing_counts(items, tree.links[k])
        run_of_item: dict[int, int] = {}
        start = 0
        while start < len(items):
            end = _run_end(crossing, start, size)
            part = items[start:end]
            range_note = f"nodes {min(map(tree.first_node, part))}–{max(map(tree.last_node, part))}"
            run = tree.add(TraceBlock(_run_name(tree, part), k, "run", note=range_note), part, [])
            run_of_item |= dict.fromkeys(part, run)
            start = end
        _move_items(tree, k, run_of_item)
        size = GROUP_LENGTH


def _crossing_counts(items: list[int], links: Iterable[Edge]) -> list[int]:
    """Return, for each position in `items`, the number of earlier items that are used at or after that position."""
    position = {item: at for at, item in enumerate(items)}
    last = list(range(len(items)))
    for a, b in links:
        at = position[a]
        last[at] = max(last[at], position[b])
    steps = [0] * (len(items) + 2)
    for at, end in enumerate(last):
        steps[at + 1] += 1
        steps[end + 1] -= 1
    return list(accumulate(steps[: len(items) + 1]))


def _run_end(crossing: list[int], start: int, size: int) -> int:
    """Return the end of a run of about `size` items (± 40%) that begins at `start`."""
    shortest, longest = size * 3 // 5, size * 7 // 5
    remaining = len(crossing) - 1 - start
    if remaining <= longest:
        return start + remaining
    ends = range(start + shortest, start + min(longest, remaining - shortest) + 1)
    return min(ends, key=lambda at: (crossing[at], abs(at - start - size), at))


def _run_name(tree: _BlockTree, items: list[int]) -> str:
    """Name a run after its first and last block, or after its operations if it contains no block."""
    nodes, blocks, stack = [], [], items[::-1]
    while stack:
        item = stack.pop()
        if item >= 0:
            nodes.append(item)
        elif tree.blocks[~item].kind == "run":
            stack += tree.items[~item][::-1]
        else:
            blocks.append(tree.blocks[~item].name)
    if blocks:
        return blocks[0] if len(blocks) == 1 else joint_name(blocks[0], blocks[-1])
    nodes = [node for node in nodes if tree.ops[node] is not None]
    ops = [tree.ops[node] or "" for node in nodes]
    return title_of_run(ops, len(set(ops)) == 1 and tree.pairs.issuperset(pairwise(nodes)))


# --- the result ------------------------------------------------------------------------------------------------------


def _renumber(tree: _BlockTree) -> tuple[list[TraceBlock], list[int]]:
    """Return the blocks in breadth-first order, without empty scopes, and the block of each node."""
    order, blocks, block_of_node = [0], [tree.blocks[0]], [0] * len(tree.block_of_node)
    for new_index, k in enumerate(order):
        for item in tree.items[k]:
            if item >= 0:
                block_of_node[item] = new_index
            else:
                order.append(~item)
                blocks.append(tree.blocks[~item]._replace(outer=new_index))
    return blocks, block_of_node
