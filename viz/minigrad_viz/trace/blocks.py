"""Blocks: the parts of a graph that are drawn as one box each until a user opens them.

`divide` builds the tree of blocks: the entered scopes, *folds* of similar neighbours among them, and *runs* if a block
has more than `MOST` items. The items inside each block form no cycle, hence collapsing any set of blocks creates none.
Proof: in the innermost block around such a cycle, the cycle would pass through at least two items.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate, groupby, pairwise

from minigrad_viz.trace.names import told_apart
from minigrad_viz.trace.rows import TraceBlock
from minigrad_viz.trace.titles import generic_name, joint_name, title_of_run

__all__ = ["MOST", "divide"]

MOST = 150  # items in one block, and items visible at the start
_RUN, _RUNS = 100, 20  # target items per run, and runs per longer run; cuts are where the fewest values cross
_MANY = 40  # more runs than this in a block are grouped
_ALIKE = 3  # neighbours needed for a fold

Edge = tuple[int, int]


class _Tree:
    """Blocks under construction. Among the items of a block, a node is its index and block k is ~k."""

    def __init__(
        self, scopes: Sequence[TraceBlock], where: Sequence[int], ops: Sequence[str | None], edges: Sequence[Edge]
    ) -> None:
        self.blocks = list(scopes)
        self.where = list(where)
        self.ops = ops
        self.edges, self.pairs = edges, set(edges)
        self.inside: list[list[int]] = []  # the items of each block, in topological order
        self.links: list[list[Edge]] = []  # the edges between items of each block
        self.depth: list[int] = []
        self.first: list[int] = []  # first node of each block; `last` its last
        self.last: list[int] = []

    def measure(self) -> None:
        """Compute the depth of each block."""
        self.depth = [0] * len(self.blocks)
        for k, block in enumerate(self.blocks[1:], 1):
            self.depth[k] = self.depth[block.outer] + 1

    def common(self, a: int, b: int) -> int:
        """Return the innermost block around blocks a and b."""
        while a != b:
            if self.depth[a] < self.depth[b]:
                a, b = b, a
            a = self.blocks[a].outer
        return a

    def add(self, block: TraceBlock, items: list[int], links: list[Edge]) -> int:
        """Create a block around `items`, and return it as an item."""
        self.blocks.append(block)
        self.inside.append(items)
        self.links.append(links)
        first, last = self.first, self.last
        first.append(min([item if item >= 0 else first[~item] for item in items]))
        last.append(max([item if item >= 0 else last[~item] for item in items]))
        for item in items:
            if item < 0:
                self.blocks[~item] = self.blocks[~item]._replace(outer=len(self.blocks) - 1)
        return ~(len(self.blocks) - 1)

    def beginning(self, item: int) -> int:
        """Return the first node of an item."""
        return item if item >= 0 else self.first[~item]

    def end(self, item: int) -> int:
        """Return the last node of an item."""
        return item if item >= 0 else self.last[~item]


def divide(
    scopes: Sequence[TraceBlock],
    where: Sequence[int],
    ops: Sequence[str | None],
    edges: Sequence[Edge],
    inputs: Collection[int] = (),
) -> tuple[list[TraceBlock], list[int]]:
    """Return the blocks of a graph, and the block of each node.

    `scopes` are the entered scopes, after block 0, which is the graph, each after its outer one; `where` is the scope
    of each node, `ops` the name of its op, None for leaves and constants; `edges` are pairs (operand, result). Leaves
    are moved to the block that uses them, but `inputs` stay where they were created.

    >>> chain = [(i, i + 1) for i in range(199)]
    >>> blocks, where = divide([TraceBlock("graph", -1, "graph")], [0] * 200, [None, *["neg"] * 199], chain)
    >>> [(block.name, block.outer) for block in blocks], where[99:101]
    ([('graph', -1), ('99 × neg', 0), ('100 × neg', 0)], [1, 2])
    """
    tree = _Tree(scopes, where, ops, edges)
    tree.measure()
    if len(tree.blocks) > 1:
        _place_leaves(tree, inputs)
    while cyclic := _fill(tree):
        _dissolve(tree, cyclic)
    _name(tree)
    if len(tree.blocks) > _ALIKE:
        _fold(tree)
    for k in range(len(tree.blocks)):
        if len(tree.inside[k]) > MOST:
            _cut(tree, k)
    return _numbered(tree)


# --- scopes ----------------------------------------------------------------------------------------------------------


def _place_leaves(tree: _Tree, inputs: Collection[int]) -> None:
    """Move each leaf to the innermost block around its uses, unless it was created further inside.

    All its edges stay in that block and start at the leaf, so this creates no cycle.
    """
    where, ops, homes = tree.where, tree.ops, dict[int, int]()
    for operand, result in tree.edges:
        if ops[operand] is None and operand not in inputs:
            block = where[result]
            home = homes.setdefault(operand, block)
            if home != block:
                homes[operand] = tree.common(home, block)
    for leaf, block in homes.items():
        if where[leaf] != block and tree.common(where[leaf], block) != block:
            where[leaf] = block


def _fill(tree: _Tree) -> set[int]:
    """Assign items and links to their blocks, in order, and return the blocks on cycles.

    Scopes of one thread form no cycle; if threads alternate, their scopes may.
    """
    blocks, where, nodes = tree.blocks, tree.where, len(tree.where)
    tree.measure()
    tree.inside = [[] for _ in blocks]
    for node, k in enumerate(where):
        tree.inside[k].append(node)
    tree.first = [items[0] if items else nodes for items in tree.inside]
    tree.last = [items[-1] if items else -1 for items in tree.inside]
    parts: list[list[int]] = [[] for _ in blocks]
    for k in range(len(blocks) - 1, 0, -1):
        if tree.first[k] < nodes:
            outer = blocks[k].outer
            tree.first[outer] = min(tree.first[outer], tree.first[k])
            tree.last[outer] = max(tree.last[outer], tree.last[k])
            parts[outer].append(~k)
    _link(tree)
    cyclic: set[int] = set()
    for k, found in enumerate(parts):
        if found:
            items = sorted([*found, *tree.inside[k]], key=tree.beginning)
            tree.inside[k] = _ordered(items, tree.links[k], cyclic)
    return cyclic


def _link(tree: _Tree) -> None:
    """Assign each edge to the innermost block around it, between the two items there that contain its ends."""
    blocks, where, depth = tree.blocks, tree.where, tree.depth
    tree.links = [[] for _ in blocks]
    for edge in tree.edges:
        a, b = edge
        k, m = where[a], where[b]
        while k != m:
            if depth[k] >= depth[m]:
                a, k = ~k, blocks[k].outer
            else:
                b, m = ~m, blocks[m].outer
        tree.links[k].append((a, b) if a < 0 or b < 0 else edge)


def _ordered(items: list[int], links: Iterable[Edge], cyclic: set[int]) -> list[int]:
    """Sort `items` topologically, otherwise stably. Blocks on cycles are added to `cyclic`."""
    before: dict[int, list[int]] = {}
    for a, b in links:
        before.setdefault(b, []).append(a)
    order: list[int] = []
    open_: dict[int, None] = {}  # the current path
    done: set[int] = set()
    for start in items:
        stack = [start]
        while stack:
            item = stack[-1]
            if item in done:
                stack.pop()
            elif item in open_:
                stack.pop()
                del open_[item]
                done.add(item)
                order.append(item)
            else:
                open_[item] = None
                for other in reversed(before.get(item, ())):
                    if other in open_:
                        path = list(open_)
                        cyclic.update(~x for x in path[path.index(other) :] if x < 0)
                    elif other not in done:
                        stack.append(other)
    return order


def _dissolve(tree: _Tree, cyclic: set[int]) -> None:
    """Move the contents of these blocks to the blocks around them."""
    kept = [k for k in range(len(tree.blocks)) if k not in cyclic]
    number = {k: place for place, k in enumerate(kept)}
    for k in sorted(cyclic):
        number[k] = number[tree.blocks[k].outer]
    tree.blocks = [block._replace(outer=number.get(block.outer, -1)) for block in map(tree.blocks.__getitem__, kept)]
    tree.where = [number[k] for k in tree.where]


def _name(tree: _Tree) -> None:
    """Number the scopes of the same name within a block."""
    for items in tree.inside:
        parts = [~item for item in items if item < 0]
        for k, name in zip(parts, told_apart([tree.blocks[k].name for k in parts], ()), strict=True):
            tree.blocks[k] = tree.blocks[k]._replace(name=name or "")


# --- folds -----------------------------------------------------------------------------------------------------------


def _fold(tree: _Tree) -> None:
    """Group neighbours that are equal, except for digits in their names, into a block of their own.

    If a block contains nothing else but leaves, it already is that group.
    """
    shapes = _shapes(tree)

    def looks(item: int) -> tuple[str, int]:
        return generic_name(tree.blocks[~item].name), shapes[~item]

    for k in range(len(tree.inside)):
        parts = [item for item in tree.inside[k] if item < 0]
        alike = [list(same) for _, same in groupby(parts, looks)]
        others = sum(item < 0 or tree.ops[item] is not None for item in tree.inside[k])
        folds = [same for same in alike if len(same) >= _ALIKE and (len(same) < others or others > MOST)]
        if folds:
            _fold_inside(tree, k, folds)


def _shapes(tree: _Tree) -> list[int]:
    """Return an id for each block, equal if the ops and edges inside are, whatever leaves they use."""
    ops, numbers = tree.ops, dict[object, int]()
    shapes = [0] * len(tree.blocks)
    for k in range(len(tree.blocks) - 1, 0, -1):
        items = [item for item in tree.inside[k] if item < 0 or ops[item] is not None]
        place = {item: at for at, item in enumerate(items)}
        kinds = tuple(ops[item] if item >= 0 else shapes[~item] for item in items)
        links = tuple(sorted((place[b], place[a]) for a, b in tree.links[k] if a in place))
        shapes[k] = numbers.setdefault((kinds, links), len(numbers))
    return shapes


def _fold_inside(tree: _Tree, k: int, folds: list[list[int]]) -> None:
    """Create those folds of block k that create no cycle."""
    into: dict[int, list[int]] = {}
    for a, b in tree.links[k]:
        into.setdefault(b, []).append(a)
    items, made = tree.inside[k], dict[int, int]()
    place = {item: at for at, item in enumerate(items)}
    for same in folds:
        start, end = place[same[0]], place[same[-1]] + 1
        members, after, before, free = set(same), set[int](), [], True
        for item in items[start:end]:
            reached = any(a in after for a in into.get(item, ()))
            if item in members:
                free = free and not reached  # otherwise it depends indirectly on the fold
            elif reached or any(a in members for a in into.get(item, ())):
                after.add(item)
            else:
                before.append(item)
        if free:
            behind = [item for item in items[start:end] if item in after]
            items[start:end] = [*before, *same, *behind]
            for at, item in enumerate(items[start:end], start):
                place[item] = at
            names = [tree.blocks[~item].name for item in (same[0], same[-1])]
            fold = tree.add(TraceBlock(joint_name(*names), k, "fold", len(same)), same, [])
            made |= dict.fromkeys(same, fold)
    _move(tree, k, made)


def _move(tree: _Tree, k: int, made: dict[int, int]) -> None:
    """Move items of block k, and the links between them, into the new blocks in `made`."""
    links: dict[Edge, None] = {}
    new, inside = made.get, tree.links
    for edge in tree.links[k]:
        a, b = edge
        a, b = new(a, a), new(b, b)
        if a == b:
            inside[~a].append(edge)
        else:
            links[a, b] = None
    tree.links[k] = list(links)
    tree.inside[k] = list(dict.fromkeys(made.get(item, item) for item in tree.inside[k]))


# --- runs ------------------------------------------------------------------------------------------------------------


def _cut(tree: _Tree, k: int) -> None:
    """Split the items of block k into runs, and these into longer runs, until few are left."""
    size = _RUN
    while len(items := tree.inside[k]) > (MOST if size == _RUN else _MANY):
        crossing = _crossing(items, tree.links[k])
        made: dict[int, int] = {}
        start = 0
        while start < len(items):
            end = _end(crossing, start, size)
            part = items[start:end]
            reach = f"nodes {min(map(tree.beginning, part))}–{max(map(tree.end, part))}"
            run = tree.add(TraceBlock(_called(tree, part), k, "run", note=reach), part, [])
            made |= dict.fromkeys(part, run)
            start = end
        _move(tree, k, made)
        size = _RUNS


def _crossing(items: list[int], links: Iterable[Edge]) -> list[int]:
    """Return for each position how many earlier items are used at or after it."""
    place = {item: at for at, item in enumerate(items)}
    last = list(range(len(items)))
    for a, b in links:
        at = place[a]
        last[at] = max(last[at], place[b])
    steps = [0] * (len(items) + 2)
    for at, end in enumerate(last):
        steps[at + 1] += 1
        steps[end + 1] -= 1
    return list(accumulate(steps[: len(items) + 1]))


def _end(crossing: list[int], start: int, size: int) -> int:
    """Return the end of a run of about `size` items (± 40%) that begins at `start`."""
    shortest, longest = size * 3 // 5, size * 7 // 5
    left = len(crossing) - 1 - start
    if left <= longest:
        return start + left
    ends = range(start + shortest, start + min(longest, left - shortest) + 1)
    return min(ends, key=lambda at: (crossing[at], abs(at - start - size), at))


def _called(tree: _Tree, items: list[int]) -> str:
    """Name a run by its blocks, from the first to the last, or else by what its operations do."""
    nodes, blocks, stack = [], [], items[::-1]
    while stack:
        item = stack.pop()
        if item >= 0:
            nodes.append(item)
        elif tree.blocks[~item].kind == "run":
            stack += tree.inside[~item][::-1]
        else:
            blocks.append(tree.blocks[~item].name)
    if blocks:
        return blocks[0] if len(blocks) == 1 else joint_name(blocks[0], blocks[-1])
    nodes = [node for node in nodes if tree.ops[node] is not None]
    ops = [tree.ops[node] or "" for node in nodes]
    return title_of_run(ops, len(set(ops)) == 1 and tree.pairs.issuperset(pairwise(nodes)))


# --- the result ------------------------------------------------------------------------------------------------------


def _numbered(tree: _Tree) -> tuple[list[TraceBlock], list[int]]:
    """Return the blocks in breadth-first order, without empty scopes, and the block of each node."""
    found, blocks, where = [0], [tree.blocks[0]], [0] * len(tree.where)
    for place, k in enumerate(found):
        for item in tree.inside[k]:
            if item >= 0:
                where[item] = place
            else:
                found.append(~item)
                blocks.append(tree.blocks[~item]._replace(outer=place))
    return blocks, where
