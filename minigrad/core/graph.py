"""The graph: nodes, their topological order, and the backward pass.

Applying an `Op` to a `Node` (a `Value`, say) creates a new node, which stores the op and its operands. `propagate`
traverses the graph in reverse topological order and applies the ops' derivative rules. Each contribution to a
gradient is an `Event`, which callbacks can receive.
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
"""Guards gradient accumulation and assignment to a leaf's value, since threads share leaves.
Reentrant, because a tap is called for the additions and may run a backward pass itself."""
grad_listeners: list[Effects] = []
"""Notified of `grad` changes in all threads; `minigrad.core.effects` listeners receive their own thread's only."""


@contextmanager
def record(*, lines: bool = False) -> Iterator[Recording]:
    """Context manager that records each `Event` of every backward pass in a `Recording`.

    Inside the block tensors also store what Values always store, as NumPy arrays: ``grad_fn.output``, a copy of the
    result, and ``grad_fn.grad``. The graph is retained by default. With `lines` each node also stores its source line.

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
    """One term of the chain rule: the gradient of `source` flows to `target`, one of its operands.

    For scalars ``contribution = upstream * local``, where `local` is the derivative of `source` with respect to operand
    `slot`; it is None for tensors. `total` is the gradient accumulated in `target` so far, including this contribution.
    Gradients of tensors are NumPy arrays.
    """

    source: Node
    target: Node
    slot: int
    upstream: Any
    local: Any
    contribution: Any
    total: Any


class Recording(Effects):
    """The events of the backward passes inside a `record` block, in order."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def gradient_passed(self, event: Event) -> None:
        """Append the event."""
        self.events.append(event)

    def __repr__(self) -> str:
        return f"Recording({len(self.events)} events)"


# --- nodes and topological order --------------------------------------------------------------------------------------


class Node(Operand):
    """A node of the graph: its op (None for a leaf), its operands, and its gradient.

    Operands that are not Nodes are constants. Subclasses decide which values the derivative rules receive.
    """

    # Two operands have their own slots: a tuple is one more object for the cycle collector to traverse, and that takes
    # most of the time on large graphs. Three or more operands share a tuple, in `_left`.
    __slots__ = ("_left", "_made", "_more", "_op", "_requires_grad", "_right", "grad")

    writes: ClassVar[int] = 0  # number of assignments to any leaf's value so far

    _op: Op | None
    _left: Any
    _right: Any
    _made: int  # Node.writes, or for a Step Storage.writes, when this node was created
    _requires_grad: bool
    _more: dict[Any, Any]  # rare fields: label, scope, line, attributes, module calls; unset on most nodes
    grad: Any

    @property
    def _inputs(self) -> tuple[Any, ...]:
        if self._op is None:
            return ()
        arity = len(self._op.inputs)
        return (self._left, self._right) if arity == 2 else (self._left,) if arity == 1 else self._left

    def _note(self, key: str, default: Any = None) -> Any:
        """Return the entry of `_more` under `key`."""
        more: dict[str, Any] | None = getattr(self, "_more", None)
        return default if more is None else more.get(key, default)

    def _remember(self, key: str, item: Any) -> None:
        try:
            self._more[key] = item
        except AttributeError:
            self._more = {key: item}

    def _operands(self, as_nodes: bool, slots: Sequence[int]) -> tuple[Any, ...]:
        """Return what the rules of `slots` receive after g: the output and the operands, as nodes or raw values.

        Raises GraphError if one that they read was modified.
        """
        raise NotImplementedError

    def _static(self, as_nodes: bool) -> Mapping[str, Any]:
        """Return the keyword arguments of the rules: attributes, auxiliary results, shapes."""
        return self._note("static", {})  # type: ignore[no-any-return]

    def _contributions(
        self, upstream: Any, as_nodes: bool, leads: Collection[Node] | None = None
    ) -> list[tuple[int, Node, Any]]:
        """Return (slot, operand, vector-Jacobian product) for each operand that requires a gradient."""
        op, targets = self._op, self._inputs
        assert op is not None  # a leaf has no operands
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
        # the order matters: if another thread frees this node in between, `_operands` raises
        static, operands = self._static(as_nodes), self._operands(as_nodes, slots)
        products = op.products(slots, rules, upstream, *operands, **static)
        pairs = [(slot, targets[slot], product) for slot, product in zip(slots, products, strict=True)]
        return [(slot, target, target._fitted(product)) for slot, target, product in pairs if product is not None]

    def _fitted(self, gradient: Any) -> Any:
        """Reduce `gradient` to the shape of this node, which undoes broadcasting."""
        return gradient

    def _sum(self, total: Any, contribution: Any) -> Any:
        """Add `contribution` to `total`, the gradient accumulated for this node."""
        return total + contribution

    def _add_part(self, total: Any, upstream: Any) -> None:
        """Add `upstream`, the gradient of a slice of the operand, to `total`, the operand's gradient, in-place."""
        self._operands(False, (0,))  # raises if the node was freed
        op, how = cast(Op, self._op), self._static(False)
        part = dispatch(op.name, place_of(total), (total,), {name: how[name] for name in op.attrs})
        dispatch("add", place_of(total), (part, upstream), out=part)

    def _edge(self) -> Node | None:
        """Return the node that receives this node's gradient; None if it does not require one."""
        return self

    def _seed(self, gradient: Any, create_graph: bool) -> Any:
        """Return the initial gradient of a backward pass from here; None means 1. Raises GraphError if it cannot."""
        raise NotImplementedError

    def _arrived(self, gradient: Any) -> Any:
        """Return the accumulated gradient after the user's hooks."""
        for hook in tuple(self._note("hooks", {}).values()):
            replaced = hook(gradient)
            gradient = gradient if replaced is None else replaced
        return gradient

    def _handed(self, gradient: Any, create_graph: bool) -> Any:
        """Return `gradient` in the form that users receive."""
        return gradient

    @property
    def _keeps(self) -> bool:
        """Whether the gradient is kept after it has been propagated to the operands."""
        return True

    def free(self) -> None:
        """Free what was saved for the backward pass."""

    def _local(self, slot: int) -> float | None:
        """Return the derivative with respect to operand `slot` if it is a scalar, else None."""
        raise NotImplementedError

    def _raw(self) -> Any:
        """Return the float or array of this node."""
        raise NotImplementedError


_READY = object()


def topological(roots: Iterable[Node]) -> list[Node]:
    """Return `roots` and the nodes they were computed from in topological order, first operand first.

    It uses an explicit stack: Python's recursion limit is near 1,000, and chains of additions are longer.
    """
    order: list[Node] = []
    seen: set[Node] = set()
    stack: list[Any] = list(roots)[::-1]
    pop, push = stack.pop, stack.append
    while stack:
        node = pop()
        if node is _READY:  # the node below this marker has all its operands in `order`
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


# --- the backward pass ------------------------------------------------------------------------------------------------


def propagate(
    gradients: Mapping[Node, Any],
    *,
    create_graph: bool = False,
    wanted: Collection[Node] | None = None,
    listeners: Sequence[Effects] | None = None,
    retain_graph: bool = True,
    hooks: bool = True,
) -> dict[Node, Any]:
    """Return the gradients of all nodes that the keys of `gradients` were computed from.

    The traversal is in reverse topological order, so a node's gradient is complete before it is propagated. Nothing is
    written to the nodes. The rules run on raw values, or on nodes with `create_graph` or while a tap is active, so that
    the result can be differentiated again. With `wanted`, only paths to those nodes are followed. `listeners`, by
    default those of this thread, receive each `Event`. Without `retain_graph`, nodes free their saved tensors once
    they have been visited. Without `hooks`, the user's hooks are not called.

    Raises GraphError if a value that a rule reads was modified since the forward pass.
    """
    listeners = modes.gradient_passed if listeners is None else listeners
    as_nodes = create_graph or tapped()  # with nodes the rules' arithmetic goes through `dispatch` too
    order = topological(gradients)
    leads = None if wanted is None else _leading_to(wanted, order)
    totals = {node: gradient if as_nodes else number(gradient) for node, gradient in gradients.items()}
    own: set[Node] = set()  # nodes whose totals were allocated here and can be added to in-place
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
            part = node._op.view == "part" and not (as_nodes or listeners)  # else the full contribution is needed
            # a NumPy scalar does not support in-place addition
            added = part and node._inputs[0] in own and totals[node._inputs[0]].flags.writeable
            if added:
                node._add_part(totals[node._inputs[0]], upstream)
            passed = added or leads is None  # a wanted node that propagates nothing keeps its saved tensors
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
    """Return `wanted` and the nodes that were computed from any of them."""
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
    """Return a copy of the gradient as a float or NumPy array, unaffected by later in-place writes."""
    if isinstance(gradient, tuple):
        return tuple(map(copied, gradient))
    raw = number(gradient)
    return host(raw).copy() if raw.__class__ in PLACES else raw


def number(gradient: Any) -> Any:
    """Return the raw float or array of a gradient, which may be a node."""
    return gradient._raw() if isinstance(gradient, Node) else gradient
