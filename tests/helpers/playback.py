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
from minigrad_viz.trace import trace_with_indices
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


class Playback:
    """The expected playback of the graph that ends in `root`; `others` are further roots of the same drawing."""

    def __init__(self, root: Any, *others: Any) -> None:
        self.root = root
        self.trace, self._indices = trace_with_indices(root, *others, namespaces=())
        self.nodes: list[Any] = mg.topological([_graph_node(x) for x in (root, *others)])

    def index_of(self, x: Any) -> int:
        return self._indices[_graph_node(x)]

    @cached_property
    def values(self) -> dict[int, Any]:
        """The value of each node: a float or an array."""
        values_by_index: dict[int, Any] = {}
        for node, index in self._indices.items():
            values_by_index[index] = _value_of(node)
        for node in self.nodes:
            first = self.trace.start[self._indices[node]]
            for k, x in enumerate(_constants(node)):
                if isinstance(x, float | int):
                    values_by_index[self.trace.operand[first + k]] = float(x)
        return values_by_index

    @cached_property
    def blocked(self) -> set[int]:
        """The nodes that never receive a gradient: constants, and nodes that do not require grad."""
        differentiable = {self._indices[x] for x in self._indices if getattr(x, "requires_grad", True)}
        return set(range(len(self.trace.kinds))) - differentiable

    @cached_property
    def order(self) -> list[int]:
        """The operations in trace order, in which each comes after its operands."""
        return sorted(self._indices[x] for x in self.nodes if _is_op(x))

    @cached_property
    def events(self) -> list[Event]:
        """The backward pass from the root, event by event."""
        engine_events = mg.events(self.root, None if _size(self.root) == 1 else mg.ones_like(self.root))
        targets = [self.index_of(event.target) for event in engine_events]
        totals: dict[int, list[Any]] = {index: [] for index in targets}
        converted = []
        for event, target in zip(engine_events, targets, strict=True):
            before = totals[target][-1] if totals[target] else None
            totals[target].append(_to_array(event.total))
            up, down = _to_array(event.upstream), _to_array(event.contribution)
            fields = (
                self.index_of(event.source),
                target,
                event.slot,
                up,
                event.local,
                down,
                before,
                totals[target][-1],
            )
            converted.append(Event(*fields, met=len(totals[target]), of=targets.count(target)))
        return converted

    @cached_property
    def locals(self) -> dict[tuple[int, int], float]:
        """The local derivatives of Values, by result and slot, along differentiable edges."""
        derivatives = {}
        for x in self.nodes:
            if isinstance(x, mg.Value) and x.requires_grad:
                for slot, operand in enumerate(x.inputs):
                    local = (
                        x._local_derivative(slot) if isinstance(operand, mg.Value) and operand.requires_grad else None
                    )
                    if local is not None:
                        derivatives[self._indices[x], slot] = local
        return derivatives

    @property
    def seed(self) -> int:
        return len(self.order) + 1

    @property
    def last(self) -> int:
        """The last position. A root that does not require grad has only a forward pass."""
        return self.seed + len(self.events) if self.index_of(self.root) not in self.blocked else len(self.order)


def _graph_node(x: Any) -> Any:
    node = getattr(x, "grad_fn", None)
    return x if node is None else node


def _value_of(node: Any) -> Any:
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


def _to_array(x: Any) -> Any:
    return float(x) if isinstance(x, float | int | mg.Value) else np.array(x)


# --- random graphs ---------------------------------------------------------------------------------------------------


def scalar_graph(seed: int, max_operations: int = 9) -> tuple[mg.Value, list[mg.Value]]:
    """Return a random graph over every scalar operation, and its leaves.

    Its nodes include constants, a detached leaf, nodes used many times, and a*a. Unused nodes are summed at the end, so
    that the graph contains all of them.
    """
    generator = random.Random(seed)
    leaves = [mg.Value(generator.uniform(-2.0, 2.0), f"x{k}") for k in range(generator.randint(1, 4))]
    blocked = mg.Value(generator.uniform(0.5, 2.0), "still").detach()
    blocked.label = "still"
    pool = [*leaves, blocked]
    used_values: set[mg.Value] = set()
    target_size = len(pool) + generator.randint(2, max_operations)
    next_op = SCALAR[seed % len(SCALAR)]  # so that each operation occurs
    while len(pool) < target_size:
        op, next_op = next_op or generator.choice(SCALAR), None
        operands: list[Any] = [generator.choice(pool) for _ in op.inputs]
        if len(operands) > 1 and generator.random() < 0.2:
            operands = [operands[0]] * len(operands)  # a*a
        elif len(operands) > 1 and generator.random() < 0.2:
            operands[generator.randrange(len(operands))] = generator.choice([-1.0, 0.5, 2.0, 3.0])
        result = _apply_if_moderate(op, operands)
        if result is None:  # outside its domain: use new leaves
            result = _apply_if_moderate(op, [mg.Value(x) for x in generator.choice(points(op, 8))])
        if result is None:
            continue
        result.label = generator.choice([None, f"n{len(pool)}"])
        pool.append(result)
        used_values.update(x for x in result.inputs if isinstance(x, mg.Value))
    total = pool[-1]
    for value in pool[:-1]:
        if value not in used_values and value is not total:
            total = total + value
    return total if total.inputs else total * 2.0, leaves


def _apply_if_moderate(op: mg.Op, operands: list[Any]) -> mg.Value | None:
    """Return the operation's result; None if a value or derivative is huge or not finite, or the result a bool."""
    try:
        result = op(*operands, **ATTRS.get(op.name, {}))
        if not isinstance(result, mg.Value):
            return None
        derivatives = [result._local_derivative(slot) or 0.0 for slot in range(len(operands))]
    except (ArithmeticError, ValueError):
        return None
    return result if all(math.isfinite(x) and abs(x) < 1e4 for x in (result.data, *derivatives)) else None


def tensor_graph(seed: int, steps: int = 4) -> Any:
    """Return a random graph of float64 tensors that ends in a scalar or, for some seeds, in an array."""
    generator, rng = random.Random(seed), np.random.default_rng(seed)

    def leaf(*shape: int, grad: bool = True) -> Any:
        return mg.tensor(rng.normal(size=shape), dtype=mg.float64, requires_grad=grad)

    with mg.record():
        x = leaf(3, 4)
        x.label = "x"
        pool = [x]
        for _ in range(generator.randint(2, steps)):
            a = generator.choice(pool[-3:])
            pool.append(generator.choice(_STEPS)(a, leaf, generator))
        output = pool[-1] if seed % 10 == 9 else _ENDS[seed % len(_ENDS)](pool[-1])
        return output + x.mean()


_STEPS = (
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
