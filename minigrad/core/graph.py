"""The graph: nodes, their topological order, and the backward pass.

Applying an `Op` to a `Node` (a `Value`, say) creates a new node, which stores the op and its operands. `propagate`
traverses the graph in reverse topological order and applies the ops' derivative rules. Each contribution to a
gradient is an `Event`, which callbacks can receive.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple, cast

from minigrad.core.dispatch import accept_raw_values, disable_taps, dispatch, is_tapped
from minigrad.core.effects import Effects, listen
from minigrad.core.modes import ModeContext, modes
from minigrad.core.op import Op, Operand
from minigrad.core.storage import DEVICE_BY_ARRAY_TYPE, device_of, to_numpy

__all__ = [
    "Event",
    "Node",
    "Pending",
    "Recording",
    "copy_to_host",
    "global_grad_listeners",
    "grad_lock",
    "leaf_writes",
    "propagate",
    "raw_value",
    "record",
    "topological",
]

grad_lock = threading.RLock()
"""Lock for gradient accumulation and assignment to a leaf's value, since threads share leaves.
It is reentrant, because a tap is notified of the additions and may itself run a backward pass."""
global_grad_listeners: list[Effects] = []
"""Listeners that are notified of `grad` changes in all threads, rather than only in their own thread."""


class _LeafWrites:
    """The number of assignments to any leaf's value so far. A class attribute would be slower to read and to change."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


leaf_writes = _LeafWrites()


@contextmanager
def record(*, lines: bool = False) -> Iterator[Recording]:
    """Context manager that records each `Event` of every backward pass in a `Recording`.

    Inside the block, the node of a tensor also stores its result, ``grad_fn.output``, and its gradient,
    ``grad_fn.grad``, as NumPy arrays; Values always store both. The graph is retained by default. With `lines`, each
    node also stores its source line.

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
    with ModeContext(lambda: {"lines": lines or modes.lines}), listen(recording):
        yield recording


class Event(NamedTuple):
    """One term of the chain rule: the gradient of `source` flows to `target`, one of its operands.

    For scalars ``contribution = upstream * local``, where `local` is the derivative of `source` with respect to operand
    `slot`. For tensors, `local` is None. `total` is the gradient accumulated in `target` so far, including this
    contribution. Gradients of tensors are NumPy arrays.
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

    # One or two operands are stored in `_left` and `_right`, without a tuple: the garbage collector would traverse it,
    # which takes most of the time on large graphs. Three or more operands are stored as a tuple in `_left`. Where there
    # is no operand, `_right` is a constant.
    __slots__ = ("_extras", "_left", "_op", "_requires_grad", "_right", "_write_count", "grad")

    _op: Op | None
    _left: Any
    _right: Any
    _write_count: int  # leaf_writes.count (Storage.writes for a Step) at the creation of this node
    _requires_grad: Any  # False or True, or for a Value, the truthy mark of a pass; see `value_gradient`
    _extras: Any  # a dict of rare fields: label, scope, line, attributes, module calls; None or unset on most nodes
    grad: Any

    @property
    def _inputs(self) -> tuple[Any, ...]:
        if self._op is None:
            return ()
        arity = len(self._op.inputs)
        if isinstance(self._left, Pending):
            return self._left.operands()
        return (self._left, self._right) if arity == 2 else (self._left,) if arity == 1 else self._left

    def _get_extra(self, key: str, default: Any = None) -> Any:
        extras: dict[str, Any] | None = getattr(self, "_extras", None)
        return default if extras is None else extras.get(key, default)

    def _set_extra(self, key: str, item: Any) -> None:
        self._extras = {**(getattr(self, "_extras", None) or {}), key: item}

    def _operands(self, as_nodes: bool, slots: Sequence[int]) -> tuple[Any, ...]:
        """Return the output and the operands, as nodes or raw values, for the derivative rules of `slots`.

        Raises GraphError if a value that these rules read was modified.
        """
        raise NotImplementedError

    def _static(self, as_nodes: bool) -> Mapping[str, Any]:
        """Return the keyword arguments of the rules, which are attributes, auxiliary results and shapes."""
        return self._get_extra("static", {})  # type: ignore[no-any-return]

    def _contributions(
        self, upstream: Any, as_nodes: bool, on_path: Collection[Node] | None = None
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
            and (on_path is None or target in on_path)
        ]
        if not slots:
            return []
        # `_operands` comes last, since it raises if another thread has freed this node meanwhile
        static, operands = self._static(as_nodes), self._operands(as_nodes, slots)
        products = op.vjps(slots, rules, upstream, *operands, **static)
        pairs = [(slot, targets[slot], product) for slot, product in zip(slots, products, strict=True)]
        return [
            (slot, target, target._reduce_gradient(product)) for slot, target, product in pairs if product is not None
        ]

    def _pass_gradient(self, gradient: Any, totals: dict[Node, Any], allocated: set[Node], retain_graph: bool) -> bool:
        """Move `gradient` of this node to its operands, in `totals`. Return False if the general way is needed."""
        return False

    def _reduce_gradient(self, gradient: Any) -> Any:
        """Sum `gradient` over the broadcast dimensions, to the shape of this node."""
        return gradient

    def _accumulate_gradient(self, total: Any, contribution: Any) -> Any:
        """Add `contribution` to `total`, the gradient accumulated for this node."""
        return total + contribution

    def _add_slice_gradient(self, total: Any, upstream: Any) -> None:
        """Add `upstream`, the gradient of a slice of the operand, in-place to `total`, the gradient of the operand."""
        self._operands(False, (0,))  # raises if the node was freed
        op, static = cast(Op, self._op), self._static(False)
        slice_gradient = dispatch(op.name, device_of(total), (total,), {name: static[name] for name in op.attrs})
        dispatch("add", device_of(total), (slice_gradient, upstream), out=slice_gradient)

    def _edge(self) -> Node | None:
        """Return the node that receives this node's gradient; None if it does not require one."""
        return self

    def _initial_gradient(self, gradient: Any, create_graph: bool) -> Any:
        """Return the initial gradient of a backward pass from this node. A `gradient` of None means 1.

        Raises GraphError if no backward pass can start at this node.
        """
        raise NotImplementedError

    def _apply_hooks(self, gradient: Any) -> Any:
        """Call the user's hooks with the accumulated gradient, and return the result."""
        for listener in modes.hooks_read:
            listener.hooks_read(self)
        for hook in tuple(self._get_extra("hooks", {}).values()):
            replaced = hook(gradient)
            gradient = gradient if replaced is None else replaced
        return gradient

    def _export_gradient(self, gradient: Any, create_graph: bool) -> Any:
        """Convert a gradient from its internal type to the type that users receive."""
        return gradient

    @property
    def _keeps_gradient(self) -> bool:
        """Whether the gradient is kept after it has been propagated to the operands."""
        return True

    def free(self) -> None:
        """Free the values saved for the backward pass."""

    def _local_derivative(self, slot: int) -> float | None:
        """Return the derivative with respect to operand `slot` for scalars, None for tensors."""
        raise NotImplementedError

    def _raw_value(self) -> Any:
        """Return the float or array of this node."""
        raise NotImplementedError


class Pending:
    """Operands whose nodes are created when somebody reads the graph. It is the `_left` of the node that has them.

    The fast backward pass of Values treats it as a node that passes its gradient on to the operands.
    """

    __slots__ = ("_gradient", "_left", "_op", "_requires_grad", "_right")

    _gradient: Any
    _op: Op | None

    def operands(self) -> tuple[Any, ...]:
        """Return the operands, which are created at the first call."""
        raise NotImplementedError

    def enter(self, token: Any, order: list[Any], visit: Callable[[Any], None] | None) -> bool:
        """Append entries (self, start, stop) for ranges of operands to `order`, the order of a backward pass.

        Return False if the pass has to visit the operands itself. ``visit(x)`` appends the nodes that `x` depends on;
        it is None if visits are nested too deeply.
        """
        raise NotImplementedError

    def propagate(self, start: int, stop: int) -> None:
        """Add the contributions of `_gradient` to the gradients that the operands from `start` to `stop` depend on."""
        raise NotImplementedError


_OPERANDS_DONE = object()


def topological(roots: Iterable[Node]) -> list[Node]:
    """Return `roots` and all nodes they were computed from in topological order, visiting the first operand first.

    It uses an explicit stack, since long chains of operations exceed Python's recursion limit of about 1,000.
    """
    order: list[Node] = []
    visited: set[Node] = set()
    stack: list[Any] = list(roots)[::-1]
    pop, push = stack.pop, stack.append
    while stack:
        node = pop()
        if node is _OPERANDS_DONE:  # all operands of the node below this marker are in `order`
            order.append(pop())
        elif isinstance(node, Node) and node not in visited:
            visited.add(node)
            if node._op is None:
                order.append(node)
            else:
                push(node)
                push(_OPERANDS_DONE)
                right_operand, left_operand = node._right, node._left
                if right_operand is not None and right_operand not in visited:
                    push(right_operand)
                if left_operand.__class__ is tuple:
                    stack.extend(reversed(left_operand))
                elif left_operand not in visited:
                    push(left_operand)
        elif isinstance(node, Pending):
            stack.extend(reversed(node.operands()))
    return order


# --- the backward pass ------------------------------------------------------------------------------------------------


def propagate(
    gradients: Mapping[Node, Any],
    *,
    create_graph: bool = False,
    targets: Collection[Node] | None = None,
    listeners: Sequence[Effects] | None = None,
    retain_graph: bool = True,
    hooks: bool = True,
) -> dict[Node, Any]:
    """Return the gradients of all nodes that the keys of `gradients` were computed from.

    The traversal is in reverse topological order, so a node's gradient is complete before it is propagated. Nothing is
    written to the nodes. The rules run on raw values, unless `create_graph` is true or a tap is active: then they run
    on nodes, so that the result can be differentiated again. With `targets`, only paths to these nodes are followed.
    `listeners`, by default those of this thread, receive each `Event`. Without `retain_graph`, nodes free their saved
    tensors once they have been visited. Without `hooks`, the user's hooks are not called.

    Raises GraphError if a value that a rule reads was modified since the forward pass.
    """
    listeners = modes.gradient_passed if listeners is None else listeners
    as_nodes = create_graph or is_tapped()  # if the rules run on nodes, their arithmetic is dispatched too
    order = topological(gradients)
    on_path = None if targets is None else _ancestors_of(targets, order)
    totals = {node: gradient if as_nodes else raw_value(gradient) for node, gradient in gradients.items()}
    allocated: set[Node] = set()  # nodes whose totals were allocated here and can be added to in-place
    is_observed = as_nodes or bool(listeners or modes.hooks_read) or on_path is not None
    changes = {"grad": create_graph, "passing": None, "strict": False}
    with ModeContext(lambda: changes), nullcontext() if as_nodes else accept_raw_values():
        for node in reversed(order):
            if (upstream := totals.get(node)) is None:
                continue
            if not is_observed and node._pass_gradient(upstream, totals, allocated, retain_graph):
                continue
            if hooks:
                upstream = totals[node] = node._apply_hooks(upstream)
            if node._op is None:
                continue
            if as_nodes:
                modes.passing = node
            is_slice = node._op.view == "part" and not (as_nodes or listeners)  # else the full gradient is needed
            # a NumPy scalar does not support in-place addition
            added_inplace = is_slice and node._inputs[0] in allocated and totals[node._inputs[0]].flags.writeable
            if added_inplace:
                node._add_slice_gradient(totals[node._inputs[0]], upstream)
            # A target from which nothing is propagated keeps its saved tensors.
            propagated = added_inplace or on_path is None
            for slot, target, contribution in () if added_inplace else node._contributions(upstream, as_nodes, on_path):
                propagated = True
                if is_slice or target in totals:
                    allocated.add(target)
                total = target._accumulate_gradient(totals[target], contribution) if target in totals else contribution
                totals[target] = total
                if listeners:
                    _report(listeners, node, target, slot, upstream, contribution, total)
            if not node._keeps_gradient and (targets is None or node not in targets):
                del totals[node]
            if propagated and not retain_graph:
                node.free()
    return totals


def _ancestors_of(targets: Collection[Node], order: Sequence[Node]) -> set[Node]:
    """Return `targets` and the nodes of `order` that were computed from any of them."""
    on_path = set(targets)
    for node in order:
        if any(isinstance(operand, Node) and operand in on_path for operand in node._inputs):
            on_path.add(node)
    return on_path


def _report(listeners: Sequence[Effects], node: Node, target: Node, slot: int, *products: Any) -> None:
    upstream, contribution, total = map(copy_to_host, products)
    with disable_taps() if is_tapped() else nullcontext():
        event = Event(node, target, slot, upstream, node._local_derivative(slot), contribution, total)
        for listener in listeners:
            listener.gradient_passed(event)


def copy_to_host(gradient: Any) -> Any:
    """Return a copy of the gradient as a float or NumPy array, unaffected by later in-place writes."""
    if isinstance(gradient, tuple):
        return tuple(map(copy_to_host, gradient))
    raw = raw_value(gradient)
    return to_numpy(raw).copy() if raw.__class__ in DEVICE_BY_ARRAY_TYPE else raw


def raw_value(gradient: Any) -> Any:
    """Return the raw float or array of a gradient, which may be a node."""
    return gradient._raw_value() if isinstance(gradient, Node) else gradient
