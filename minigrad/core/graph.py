"""The graph: nodes, the order to visit them in, and the one chain rule.

Applying an `Op` to a `Node` (a `Value`, say) makes a new node, which remembers the op and its operands. `propagate`
walks such a graph from its end to its leaves and applies the ops' derivative rules; each contribution to a gradient is
an `Event` that can be listened to.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, ClassVar, NamedTuple, cast

from minigrad.core.dispatch import dispatch, on_raw_numbers, tapped, untapped
from minigrad.core.effects import Effects, listen
from minigrad.core.modes import Block, modes
from minigrad.core.op import Op, Operand
from minigrad.core.storage import PLACES, host, place_of

__all__ = [
    "Event",
    "Node",
    "Recording",
    "copied",
    "grad_listeners",
    "grad_lock",
    "number",
    "propagate",
    "record",
    "topological",
]

grad_lock = threading.RLock()
"""Held while gradients are accumulated, and while the value of a leaf is replaced, since threads share leaves.
Reentrant, since a tap is notified of the additions and may run a backward pass itself."""
grad_listeners: list[Effects] = []
"""Notified of changes of `grad` in all threads; listeners of `minigrad.core.effects` hear those of their own thread."""


@contextmanager
def record(*, lines: bool = False) -> Iterator[Recording]:
    """Keep, in the `Recording` it gives, each `Event` of every backward pass inside the block.

    Of tensors it keeps what Values always have, as NumPy's arrays: ``grad_fn.output``, a copy of the result, and
    ``grad_fn.grad``; a pass frees nothing unless asked to. With `lines` each node also knows the line that made it.

    >>> import minigrad as mg
    >>> a = mg.Value(3.0, "a")
    >>> with mg.record() as seen:
    ...     (a * a).backward()
    >>> [(event.slot, event.contribution, event.total) for event in seen.events]
    [(0, 3.0, 3.0), (1, 3.0, 6.0)]
    >>> x = mg.tensor([1.0, 2.0], requires_grad=True)
    >>> with mg.record():
    ...     y = x * x
    ...     y.sum().backward()
    >>> y.grad_fn.output, y.grad_fn.grad
    (array([1., 4.], dtype=float32), array([1., 1.], dtype=float32))
    """
    recording = Recording()
    with Block(lambda: {"lines": lines or modes.lines}), listen(recording):
        yield recording


class Event(NamedTuple):
    """One product of the chain rule: `source`'s gradient reaches `target`, one of its operands.

    ``contribution = upstream * local`` for scalars, where `local` is the derivative of source by its operand number
    `slot`, or None. `total` is what target has received so far, this included. Those of tensors are NumPy's arrays.
    """

    source: Node
    target: Node
    slot: int
    upstream: Any
    local: Any
    contribution: Any
    total: Any


class Recording(Effects):
    """The events of the backward passes that ran while it was recording, in order."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def gradient_passed(self, event: Event) -> None:
        """Append the event."""
        self.events.append(event)

    def __repr__(self) -> str:
        return f"Recording({len(self.events)} events)"


# --- nodes and the order to visit them in ----------------------------------------------------------------------------


class Node(Operand):
    """A place in the graph: the op that made it (None for a leaf), the operands it was made from, and its gradient.

    An operand that is not a Node is a constant. Which numbers a rule is given is the business of the face, `Value`.
    """

    # Two operands have slots of their own. A tuple would be one more object for the cycle collector to walk, and on
    # large graphs its walks take most of the time. Three operands and more share a tuple, in `_left`.
    __slots__ = ("_left", "_made", "_more", "_op", "_requires_grad", "_right", "grad")

    writes: ClassVar[int] = 0  # how often, so far, the number in a leaf was replaced, anywhere

    _op: Op | None
    _left: Any
    _right: Any
    _made: int  # Node.writes when this node was made; of a Step, Storage.writes
    _requires_grad: bool
    _more: dict[Any, Any]  # what few nodes have: label, scope, line, attributes, calls of modules; unset on most
    grad: Any

    @property
    def _inputs(self) -> tuple[Any, ...]:
        if self._op is None:
            return ()
        arity = len(self._op.inputs)
        return (self._left, self._right) if arity == 2 else (self._left,) if arity == 1 else self._left

    def _note(self, key: str, default: Any = None) -> Any:
        """What `_more` holds under `key`."""
        more: dict[str, Any] | None = getattr(self, "_more", None)
        return default if more is None else more.get(key, default)

    def _remember(self, key: str, item: Any) -> None:
        try:
            self._more[key] = item
        except AttributeError:
            self._more = {key: item}

    def _operands(self, as_nodes: bool, slots: Sequence[int]) -> tuple[Any, ...]:
        """What the rules of `slots` are given after g: the output and the operands, as nodes or as raw numbers.

        Raises GraphError if one that they need was overwritten.
        """
        raise NotImplementedError

    def _static(self, as_nodes: bool) -> Mapping[str, Any]:
        """What a rule is given by name: attributes, auxiliary results, shapes."""
        return self._note("static", {})  # type: ignore[no-any-return]

    def _contributions(
        self, upstream: Any, as_nodes: bool, leads: Collection[Node] | None = None
    ) -> list[tuple[int, Node, Any]]:
        """What this node, whose gradient is `upstream`, passes on to operands that need one: slot, operand, product."""
        op, targets = self._op, self._inputs
        assert op is not None  # a leaf passes nothing on
        rules = op.rules_for(len(targets)) if op.variadic else op.rules
        slots = [
            slot
            for slot, target in enumerate(targets)
            if isinstance(target, Node)
            and rules[slot] is not None
            and target._requires_grad
            and (leads is None or target in leads)
        ]
        if not slots:
            return []
        # in this order: if another thread frees this node in between, `_operands` raises
        static, operands = self._static(as_nodes), self._operands(as_nodes, slots)
        products = op.products(slots, rules, upstream, *operands, **static)
        pairs = [(slot, targets[slot], product) for slot, product in zip(slots, products, strict=True)]
        return [(slot, target, target._fitted(product)) for slot, target, product in pairs if product is not None]

    def _fitted(self, gradient: Any) -> Any:
        """`gradient` in the shape of this node: the place where broadcasting is undone."""
        return gradient

    def _sum(self, total: Any, contribution: Any) -> Any:
        """What this node has received when `contribution` is added to `total`."""
        return total + contribution

    def _add_part(self, total: Any, upstream: Any) -> None:
        """Add `upstream`, of a part of its operand, to what the operand has received so far, in place."""
        self._operands(False, (0,))  # which refuses what was freed
        op, how = cast(Op, self._op), self._static(False)
        part = dispatch(op.name, place_of(total), (total,), {name: how[name] for name in op.attrs})
        dispatch("add", place_of(total), (part, upstream), out=part)

    def _edge(self) -> Node | None:
        """The node that a gradient of this goes to; None where none is needed."""
        return self

    def _seed(self, gradient: Any, create_graph: bool) -> Any:
        """The gradient that a backward pass from here starts with; None stands for 1. Raises GraphError if none can."""
        raise NotImplementedError

    def _arrived(self, gradient: Any) -> Any:
        """What the reader's hooks make of the whole gradient of this node."""
        for hook in tuple(self._note("hooks", {}).values()):
            replaced = hook(gradient)
            gradient = gradient if replaced is None else replaced
        return gradient

    def _handed(self, gradient: Any, create_graph: bool) -> Any:
        """The gradient that the rules found for this, as readers get it."""
        return gradient

    @property
    def _keeps(self) -> bool:
        """Whether its gradient is still wanted once it has been passed on."""
        return True

    def free(self) -> None:
        """Forget what was saved for the backward pass."""

    def _local(self, slot: int) -> float | None:
        """The derivative of this node by its operand number `slot`, where that is a single number."""
        raise NotImplementedError

    def _raw(self) -> Any:
        """The number or array in this node."""
        raise NotImplementedError


_READY = object()


def topological(roots: Iterable[Node]) -> list[Node]:
    """The nodes that `roots` were computed from, and the roots: each after all its operands, first operand first.

    A loop with a stack of its own, because Python's call stack ends near 1,000 calls and a chain of additions does not.
    """
    order: list[Node] = []
    seen: set[Node] = set()
    stack: list[Any] = list(roots)[::-1]
    pop, push = stack.pop, stack.append
    while stack:
        node = pop()
        if node is _READY:  # below this marker waits a node whose operands are all in `order` now
            order.append(pop())
        elif isinstance(node, Node) and node not in seen:
            seen.add(node)
            if node._op is None:
                order.append(node)
            else:
                push(node)
                push(_READY)
                right, left = node._right, node._left
                if right is not None and right not in seen:
                    push(right)
                if left.__class__ is tuple:
                    stack.extend(reversed(left))
                elif left not in seen:
                    push(left)
    return order


# --- the chain rule --------------------------------------------------------------------------------------------------


def propagate(
    gradients: Mapping[Node, Any],
    *,
    create_graph: bool = False,
    wanted: Collection[Node] | None = None,
    listeners: Sequence[Effects] | None = None,
    retain_graph: bool = True,
    hooks: bool = True,
) -> dict[Node, Any]:
    """The chain rule: from the gradients of some nodes to those of all the nodes they were computed from.

    Going from the last node back to the leaves, each node has its whole gradient before it passes any on; a node that
    is used several times adds up what it receives. Nothing is written to any node. The rules run on raw numbers; with
    `create_graph`, or where a tap listens, on nodes, so that what comes back can be differentiated again. With
    `wanted` only the paths that lead there are followed. Each `Event` is reported to `listeners`, by default to
    those of this thread. Without `retain_graph` a node frees what it saved as soon as it is passed; without `hooks` the
    user's hooks are not called.

    Raises GraphError if a number that a rule needs was replaced since the forward pass.
    """
    listeners = modes.gradient_passed if listeners is None else listeners
    as_nodes = create_graph or tapped()  # on nodes even the rules' arithmetic passes `dispatch`
    order = topological(gradients)
    leads = None if wanted is None else _leading_to(wanted, order)
    totals = {node: gradient if as_nodes else number(gradient) for node, gradient in gradients.items()}
    own: set[Node] = set()  # whose totals were made here, so that nobody else has them: parts are added into those
    changes = {"grad": create_graph, "passing": None, "strict": False}
    hook_listeners = modes.hooks_read if hooks else ()
    with Block(lambda: changes), nullcontext() if as_nodes else on_raw_numbers():
        for node in reversed(order):
            upstream = totals.get(node)
            if upstream is None:
                continue
            for listener in hook_listeners:
                listener.hooks_read(node)
            if hooks and getattr(node, "_more", None):
                upstream = totals[node] = node._arrived(upstream)
            if node._op is None:
                continue
            if as_nodes:
                modes.passing = node
            part = node._op.view == "part" and not (as_nodes or listeners)  # else what it passes on is seen, as a whole
            # a sum that is a number of NumPy's, and no array, cannot be added to
            added = part and node._inputs[0] in own and totals[node._inputs[0]].flags.writeable
            if added:
                node._add_part(totals[node._inputs[0]], upstream)
            passed = added or leads is None  # a node that is only asked for, and passes nothing on, keeps what it saved
            for slot, target, contribution in () if added else node._contributions(upstream, as_nodes, leads):
                passed = True
                if part or target in totals:
                    own.add(target)
                totals[target] = target._sum(totals[target], contribution) if target in totals else contribution
                if listeners:
                    _report(listeners, node, target, slot, upstream, contribution, totals[target])
            if not node._keeps and (wanted is None or node not in wanted):
                del totals[node]
            if passed and not retain_graph:
                node.free()
    return totals


def _leading_to(wanted: Collection[Node], order: Sequence[Node]) -> set[Node]:
    """The nodes that were computed from one of `wanted`, and those."""
    leads = set(wanted)
    for node in order:
        if any(isinstance(operand, Node) and operand in leads for operand in node._inputs):
            leads.add(node)
    return leads


def _report(listeners: Sequence[Effects], node: Node, target: Node, slot: int, *products: Any) -> None:
    upstream, contribution, total = map(copied, products)
    with untapped() if tapped() else nullcontext():
        event = Event(node, target, slot, upstream, node._local(slot), contribution, total)
        for listener in listeners:
            listener.gradient_passed(event)


def copied(gradient: Any) -> Any:
    """A copy of the number in a gradient, or of its numbers as an array of NumPy's: it stays when they are written."""
    if isinstance(gradient, tuple):
        return tuple(map(copied, gradient))
    raw = number(gradient)
    return host(raw).copy() if raw.__class__ in PLACES else raw


def number(gradient: Any) -> Any:
    """The bare number or array in a gradient, which may be a node."""
    return gradient._raw() if isinstance(gradient, Node) else gradient
