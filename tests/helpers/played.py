"""Random graphs for tests of the player, and the engine's results at each position.

The values come from the Values and tensors themselves and from `mg.events`, never from a trace, which only supplies
the nodes' indices, names and formulas.
"""

from __future__ import annotations

import math
import random
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

import minigrad as mg
from minigrad.backends.formula.javascript import javascript
from minigrad_viz.trace import placed
from strategies import ATTRS, ELEMENTWISE, points

F = mg.functional
SCALAR = [op for op in ELEMENTWISE if javascript(op)["js"] is not None]


class Event(NamedTuple):
    """An event of the engine with node indices: contribution number `met` of `of` to its operand."""

    result: int
    operand: int
    slot: int
    upstream: Any
    local: float | None
    contribution: Any
    before: Any
    total: Any
    met: int
    of: int


class Played:
    """The expected playback of the graph that ends in `root`; `others` are further roots of the same drawing."""

    def __init__(self, root: Any, *others: Any) -> None:
        self.root = root
        self.trace, self._places = placed(root, *others, namespaces=())
        self.nodes: list[Any] = mg.topological([_node(x) for x in (root, *others)])

    def place(self, x: Any) -> int:
        return self._places[_node(x)]

    @cached_property
    def values(self) -> dict[int, Any]:
        """The value of each node: a float or an array."""
        found: dict[int, Any] = {}
        for node, place in self._places.items():
            found[place] = _held(node)
        for node in self.nodes:
            first = self.trace.start[self._places[node]]
            for k, x in enumerate(_constants(node)):
                if isinstance(x, float | int):
                    found[self.trace.operand[first + k]] = float(x)
        return found

    @cached_property
    def blocked(self) -> set[int]:
        """The nodes that never receive a gradient: constants, and nodes that do not require grad."""
        free = {self._places[x] for x in self._places if getattr(x, "requires_grad", True)}
        return set(range(len(self.trace.kinds))) - free

    @cached_property
    def order(self) -> list[int]:
        """The operations in trace order, in which each comes after its operands."""
        return sorted(self._places[x] for x in self.nodes if _is_op(x))

    @cached_property
    def events(self) -> list[Event]:
        """The backward pass from the root, event by event."""
        found = mg.events(self.root, None if _size(self.root) == 1 else mg.ones_like(self.root))
        targets = [self.place(event.target) for event in found]
        totals: dict[int, list[Any]] = {place: [] for place in targets}
        made = []
        for event, place in zip(found, targets, strict=True):
            before = totals[place][-1] if totals[place] else None
            totals[place].append(_number(event.total))
            up, down = _number(event.upstream), _number(event.contribution)
            way = (self.place(event.source), place, event.slot, up, event.local, down, before, totals[place][-1])
            made.append(Event(*way, met=len(totals[place]), of=targets.count(place)))
        return made

    @cached_property
    def locals(self) -> dict[tuple[int, int], float]:
        """The local derivatives of Values, by result and slot, along differentiable edges."""
        found = {}
        for x in self.nodes:
            if isinstance(x, mg.Value) and x.requires_grad:
                for slot, operand in enumerate(x.inputs):
                    local = x._local(slot) if isinstance(operand, mg.Value) and operand.requires_grad else None
                    if local is not None:
                        found[self._places[x], slot] = local
        return found

    @property
    def seed(self) -> int:
        return len(self.order) + 1

    @property
    def last(self) -> int:
        """The last position. A root that does not require grad has only a forward pass."""
        return self.seed + len(self.events) if self.place(self.root) not in self.blocked else len(self.order)


def _node(x: Any) -> Any:
    step = getattr(x, "grad_fn", None)
    return x if step is None else step


def _held(node: Any) -> Any:
    if isinstance(node, mg.Value):
        return node.data
    return np.array(node.output if hasattr(node, "next_functions") else node.detach().numpy())


def _is_op(node: Any) -> bool:
    return node.op is not None if isinstance(node, mg.Value) else hasattr(node, "next_functions")


def _constants(node: Any) -> Any:
    if isinstance(node, mg.Value):
        return node.inputs
    return getattr(node, "constants", None) or ()


def _size(x: Any) -> int:
    return 1 if isinstance(x, mg.Value) else int(x.numel())


def _number(x: Any) -> Any:
    return float(x) if isinstance(x, float | int | mg.Value) else np.array(x)


# --- random graphs ---------------------------------------------------------------------------------------------------


def scalar_graph(seed: int, most: int = 9) -> tuple[mg.Value, list[mg.Value]]:
    """Return a random graph over every scalar operation, and its leaves.

    Its nodes include constants, a detached leaf, nodes used many times, and a*a. Unused nodes are summed at the end, so
    that the graph contains all of them.
    """
    generator = random.Random(seed)
    leaves = [mg.Value(generator.uniform(-2.0, 2.0), f"x{k}") for k in range(generator.randint(1, 4))]
    blocked = mg.Value(generator.uniform(0.5, 2.0), "still").detach()
    blocked.label = "still"
    pool = [*leaves, blocked]
    used: set[mg.Value] = set()
    wanted = len(pool) + generator.randint(2, most)
    first = SCALAR[seed % len(SCALAR)]  # so that each operation occurs
    while len(pool) < wanted:
        op, first = first or generator.choice(SCALAR), None
        operands: list[Any] = [generator.choice(pool) for _ in op.inputs]
        if len(operands) > 1 and generator.random() < 0.2:
            operands = [operands[0]] * len(operands)  # a*a
        elif len(operands) > 1 and generator.random() < 0.2:
            operands[generator.randrange(len(operands))] = generator.choice([-1.0, 0.5, 2.0, 3.0])
        made = _tame(op, operands)
        if made is None:  # outside its domain: use new leaves
            made = _tame(op, [mg.Value(x) for x in generator.choice(points(op, 8))])
        if made is None:
            continue
        made.label = generator.choice([None, f"n{len(pool)}"])
        pool.append(made)
        used.update(x for x in made.inputs if isinstance(x, mg.Value))
    total = pool[-1]
    for value in pool[:-1]:
        if value not in used and value is not total:
            total = total + value
    return total if total.inputs else total * 2.0, leaves


def _tame(op: mg.Op, operands: list[Any]) -> mg.Value | None:
    """Return the operation's result; None if a value or derivative is huge or not finite, or the result a bool."""
    try:
        made = op(*operands, **ATTRS.get(op.name, {}))
        if not isinstance(made, mg.Value):
            return None
        slopes = [made._local(slot) or 0.0 for slot in range(len(operands))]
    except (ArithmeticError, ValueError):
        return None
    return made if all(math.isfinite(x) and abs(x) < 1e4 for x in (made.data, *slopes)) else None


def tensor_graph(seed: int, steps: int = 4) -> Any:
    """Return a random graph of float64 tensors that ends in a scalar or, for some seeds, in an array."""
    generator, random_ = random.Random(seed), np.random.default_rng(seed)

    def leaf(*shape: int, grad: bool = True) -> Any:
        return mg.tensor(random_.normal(size=shape), dtype=mg.float64, requires_grad=grad)

    with mg.record():
        x = leaf(3, 4)
        x.label = "x"
        pool = [x]
        for _ in range(generator.randint(2, steps)):
            a = generator.choice(pool[-3:])
            pool.append(generator.choice(_MOVES)(a, leaf, generator))
        end = pool[-1] if seed % 10 == 9 else _ENDS[seed % len(_ENDS)](pool[-1])
        return end + x.mean()


_MOVES = (
    lambda a, leaf, _: a * leaf(4) + leaf(3, 1),
    lambda a, leaf, _: a - leaf(1, 4, grad=False),
    lambda a, leaf, _: a / (leaf(3, 4).exp() + 1.0),
    lambda a, leaf, _: a * leaf(),
    lambda a, leaf, _: a * a,
    lambda a, leaf, _: a @ leaf(4, 4),
    lambda a, leaf, _: (a @ leaf(4, 3)) @ leaf(3, 4, grad=False),
    lambda a, leaf, _: a.tanh(),
    lambda a, leaf, _: F.softmax(a, 1),
    lambda a, leaf, _: F.layer_norm(a, (4,), leaf(4), leaf(4)),
    lambda a, leaf, _: a - a.mean(0, keepdim=True),
    lambda a, leaf, _: a + a.sum(1, keepdim=True),
    lambda a, leaf, _: a.reshape(4, 3).T * 0.5,
    lambda a, leaf, _: a[1] * a,
    lambda a, leaf, pick: a + a[:, pick.randrange(4)].reshape(3, 1),
    lambda a, leaf, _: a[[2, 0, 1]] * leaf(3, 4),
    lambda a, leaf, _: F.relu(a) + a.detach(),
)
_ENDS = (
    lambda a: a.sum(),
    lambda a: (a * a).mean(),
    lambda a: F.cross_entropy(a, mg.tensor([0, 3, 1])),
    lambda a: F.log_softmax(a, 1)[1, 2],
    lambda a: a.sum(0).max(),
)
