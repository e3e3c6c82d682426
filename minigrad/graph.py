"""The graph: operations, nodes, the order to visit them in, and the one chain rule.

Read it top down. An `Op` is declared once, with one derivative rule per input. Applying it to a `Node` (a `Value`, say)
makes a new node that remembers the op and its inputs. `propagate` walks such a graph from its end to its leaves and
applies the rules; each contribution to a gradient is an `Event` that can be listened to.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple

from minigrad.errors import DeclarationError, GraphError
from minigrad.kernels import detour, dispatch, tapped

__all__ = [
    "ANY",
    "OPS",
    "POSITIVE",
    "Domain",
    "Event",
    "Node",
    "Op",
    "Operand",
    "Recording",
    "contributions",
    "enable_grad",
    "is_grad_enabled",
    "modes",
    "no_grad",
    "number",
    "propagate",
    "record",
    "scope",
    "topological",
]

Rule = Callable[..., Any]

# --- operations -----------------------------------------------------------------------------------------------------

OPS: dict[str, Op] = {}
"""Every declared operation by name. What is not in this table does not exist; what is in it gets tested."""


class Domain(NamedTuple):
    """Where tests may sample an operand: the interval [low, high], but not within 0.01 of a point in `kinks`."""

    low: float
    high: float
    kinks: tuple[float, ...] = ()


ANY = Domain(-3.0, 3.0)
POSITIVE = Domain(0.25, 3.0)


class Op:
    """One operation, declared once.

    `formula` is LaTeX in which ``{a}``, ``{b}``, … stand for the operands. `vjp` holds one rule per operand: a function
    that returns what the operand's gradient receives (a vector-Jacobian product), written in differentiable operations,
    so that gradients have gradients; None where there is no derivative.

    A rule's parameter names are its declaration. It may name, in any order,

    - ``g``, the gradient of the output, and ``y``, the output (tuples where ``outputs`` > 1),
    - its operands, called a, b, c, … unless `inputs` names them,
    - the results in `aux`, which the kernel returns beside the output and the graph keeps,
    - the static attributes in `attrs`.

    What no rule names is not kept: `saves` is read off the rules and cannot drift from them. A rule that wants only a
    shape names it as an attribute. `domain` says where tests may sample each operand, and `precedence` how tightly the
    formula binds. `shown` are rules for print, where the true ones guard corner cases that would clutter a formula.

    Raises DeclarationError where these contradict each other, or when the name is taken.

    >>> import minigrad as mg
    >>> cube = Op("cube", "{a}^3", vjp=(lambda g, a: g * (3.0 * a * a),), domain=(ANY,), precedence=Op.POWER)
    >>> @mg.kernel("cube", "python")
    ... def _(a):
    ...     return a * a * a
    >>> x = mg.Value(2.0)
    >>> cube(x).backward()
    >>> x.grad, sorted(cube.saves)
    (12.0, ['a'])
    """

    COMPARISON, SUM, PREFIX, PRODUCT, POWER, ATOM = range(6)  # precedences, loosest first

    def __init__(
        self,
        name: str,
        formula: str,
        *,
        vjp: Sequence[Rule | None],
        domain: Sequence[Domain] = (),
        inputs: Sequence[str] = (),
        aux: Sequence[str] = (),
        attrs: Sequence[str] = (),
        outputs: int = 1,
        precedence: int = ATOM,
        shown: Sequence[Rule | None] | None = None,
    ) -> None:
        self.name = name
        self.formula = formula
        self.vjp = tuple(vjp)
        self.domain = tuple(domain)
        self.inputs = tuple(inputs) or tuple("abcdefgh"[: len(self.vjp)])
        self.aux = tuple(aux)
        self.attrs = tuple(attrs)
        self.outputs = outputs
        self.precedence = precedence
        if name in OPS:
            raise DeclarationError(f"Op {name!r} is declared already; take another name, or use mg.OPS[{name!r}].")
        if len(self.inputs) != len(self.vjp):
            raise DeclarationError(
                f"Op {name!r} names {len(self.inputs)} inputs and has {len(self.vjp)} rules: write one rule per input."
            )
        self.reads = tuple(self._names_read(rule) for rule in self.vjp)
        self.saves = frozenset().union(*self.reads) - {"g"} - set(self.attrs)
        self.rules = tuple(self._adapt(rule) for rule in self.vjp)
        self.shown = tuple(self._adapt(rule) for rule in (shown or self.vjp))
        self.differentiable = any(rule is not None for rule in self.vjp)
        static = self.aux or self.attrs or self.outputs > 1
        self.plain = None if static or None in self.vjp or len(self.vjp) > 2 else self.rules
        OPS[name] = self

    def _names_read(self, rule: Rule | None) -> frozenset[str]:
        if rule is None:
            return frozenset()
        names = frozenset(inspect.signature(rule).parameters)
        known = {"g", "y", *self.inputs, *self.aux, *self.attrs}
        if not names <= known:
            raise DeclarationError(
                f"Op {self.name!r}: a rule asks for {sorted(names - known)}, but there is only {sorted(known)}.\n"
                "  Name an operand, a result in aux=, or an attribute in attrs=."
            )
        return names

    def _adapt(self, rule: Rule | None) -> Rule | None:
        """The same rule under one signature, (g, y, *operands, **static), so that the chain rule looks no names up."""
        if rule is None:
            return None
        static = ", ".join(("", "*", *self.aux, *self.attrs)) if self.aux or self.attrs else ""
        text = f"lambda g, y, {', '.join(self.inputs)}{static}: rule({', '.join(inspect.signature(rule).parameters)})"
        adapted: Rule = eval(text, {"rule": rule})
        return adapted

    def __call__(self, *inputs: Any, **attrs: Any) -> Any:
        """Apply to operands of any one face: floats give a float, a `Value` a `Value`, a formula a formula."""
        for operand in inputs:
            if isinstance(operand, Operand):
                return operand._apply(self, inputs, attrs)
        return dispatch(self.name, "python", inputs, attrs)

    def __repr__(self) -> str:
        return f"<Op {self.name}({', '.join((*self.inputs, *self.attrs))})>"


class Operand:
    """What an op can be applied to besides plain numbers. It brings Python's operators, by way of the op table."""

    __slots__ = ()

    @classmethod
    def _apply(cls, op: Op, inputs: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
        raise NotImplementedError

    def __add__(self, other: Any) -> Any:
        return OPS["add"](self, other)

    def __radd__(self, other: Any) -> Any:
        return OPS["add"](other, self)

    def __sub__(self, other: Any) -> Any:
        return OPS["sub"](self, other)

    def __rsub__(self, other: Any) -> Any:
        return OPS["sub"](other, self)

    def __mul__(self, other: Any) -> Any:
        return OPS["mul"](self, other)

    def __rmul__(self, other: Any) -> Any:
        return OPS["mul"](other, self)

    def __truediv__(self, other: Any) -> Any:
        return OPS["div"](self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return OPS["div"](other, self)

    def __pow__(self, other: Any) -> Any:
        return OPS["pow"](self, other)

    def __rpow__(self, other: Any) -> Any:
        return OPS["pow"](other, self)

    def __neg__(self) -> Any:
        return OPS["neg"](self)

    def __abs__(self) -> Any:
        return OPS["abs"](self)

    def __lt__(self, other: Any) -> Any:
        return OPS["lt"](self, other)

    def __le__(self, other: Any) -> Any:
        return OPS["le"](self, other)

    def __gt__(self, other: Any) -> Any:
        return OPS["gt"](self, other)

    def __ge__(self, other: Any) -> Any:
        return OPS["ge"](self, other)

    def __eq__(self, other: Any) -> Any:
        return OPS["eq"](self, other)

    def __ne__(self, other: Any) -> Any:
        return OPS["ne"](self, other)

    __hash__ = object.__hash__  # == compares numbers, as in PyTorch; in sets and dicts an operand is itself


# --- modes: what this thread is doing beside computing ---------------------------------------------------------------


class _Modes(threading.local):
    grad: bool = True
    scope: str = ""
    lines: bool = False
    recordings: tuple[Recording, ...] = ()


modes = _Modes()


@contextmanager
def _mode(**changes: Any) -> Iterator[None]:
    before = {name: getattr(modes, name) for name in changes}
    with detour:
        modes.__dict__.update(changes)
        try:
            yield
        finally:
            modes.__dict__.update(before)


def no_grad() -> Any:
    """Inside this block, or a function it decorates, nothing is recorded: results are leaves that need no gradient."""
    return _mode(grad=False)


def enable_grad() -> Any:
    """Record again, inside a `no_grad` block."""
    return _mode(grad=True)


def is_grad_enabled() -> bool:
    """Whether operations are being recorded in this thread."""
    return modes.grad


def scope(name: str) -> Any:
    """Name what is built inside the block, as in ``with mg.scope("layer1")``; scopes nest, joined by slashes."""
    return _mode(scope=f"{modes.scope}/{name}" if modes.scope else name)


@contextmanager
def record(*, lines: bool = False) -> Iterator[Recording]:
    """Keep, in the `Recording` it gives, each `Event` of every backward pass inside the block.

    With `lines` each node also remembers the source line that made it.

    >>> import minigrad as mg
    >>> a = mg.Value(3.0, "a")
    >>> with mg.record() as seen:
    ...     (a * a).backward()
    >>> [(event.slot, event.contribution, event.total) for event in seen.events]
    [(0, 3.0, 3.0), (1, 3.0, 6.0)]
    """
    recording = Recording()
    with _mode(recordings=(*modes.recordings, recording), lines=lines or modes.lines):
        yield recording


class Event(NamedTuple):
    """One product of the chain rule: `source`'s gradient reaches `target`, one of its operands.

    ``contribution = upstream * local`` for scalars, where `local` is the derivative of source by its operand number
    `slot` (None where it is not a single number). `total` is what target has received so far, this included.
    """

    source: Node
    target: Node
    slot: int
    upstream: Any
    local: Any
    contribution: Any
    total: Any


class Recording:
    """The events of the backward passes that ran while it was recording, in order."""

    def __init__(self) -> None:
        self.events: list[Event] = []

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
    _made: int  # Node.writes when this node was made
    _requires_grad: bool
    _more: dict[str, Any]  # what few nodes have: label, scope, line, attributes; unset on most
    grad: Any

    @property
    def _inputs(self) -> tuple[Any, ...]:
        if self._op is None:
            return ()
        arity = len(self._op.inputs)
        return (self._left, self._right) if arity == 2 else (self._left,) if arity == 1 else self._left

    def _note(self, key: str, default: Any = None) -> Any:
        """What `_more` holds under `key`."""
        try:
            return self._more.get(key, default)
        except AttributeError:
            return default

    def _remember(self, key: str, item: Any) -> None:
        try:
            self._more[key] = item
        except AttributeError:
            self._more = {key: item}

    def _operands(self, as_nodes: bool) -> tuple[Any, ...]:
        """What a rule is given after g: the output and the operands, as nodes or as raw numbers."""
        raise NotImplementedError

    def _local(self, slot: int) -> float | None:
        """The derivative of this node by its operand number `slot`, where that is a single number."""
        raise NotImplementedError

    def _raw(self) -> Any:
        """The number or array in this node."""
        raise NotImplementedError


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
        if node is None:  # below this marker waits a node whose operands are all in `order` now
            order.append(pop())
        elif isinstance(node, Node):
            if node not in seen:
                seen.add(node)
                if node._op is None:
                    order.append(node)
                else:
                    push(node)
                    push(None)
                    if node._right not in seen:
                        push(node._right)
                    if node._left not in seen:
                        push(node._left)
        elif node.__class__ is tuple:
            stack.extend(reversed(node))
    return order


# --- the chain rule --------------------------------------------------------------------------------------------------


def propagate(
    gradients: Mapping[Node, Any],
    *,
    create_graph: bool = False,
    listeners: Sequence[Callable[[Event], None]] = (),
) -> dict[Node, Any]:
    """The chain rule: from the gradients of some nodes to those of all the nodes they were computed from.

    Going from the last node back to the leaves, each node has its whole gradient before it passes any on; a node that
    is used several times adds up what it receives. Nothing is written to any node. With `create_graph` the rules run on
    nodes instead of numbers, so that what comes back can be differentiated again.

    Raises GraphError if a number that a rule needs was replaced since the forward pass.
    """
    listeners = (*listeners, *(recording.events.append for recording in modes.recordings))
    as_nodes = create_graph or tapped()  # on nodes even the rules' arithmetic passes `dispatch`
    totals = dict(gradients)
    with _mode(grad=create_graph):
        for node in reversed(topological(gradients)):
            upstream = totals.get(node)
            if upstream is None or node._op is None:
                continue
            for slot, target, contribution in contributions(node, upstream, as_nodes):
                totals[target] = totals[target] + contribution if target in totals else contribution
                if listeners:
                    numbers = map(number, (upstream, node._local(slot), contribution, totals[target]))
                    event = Event(node, target, slot, *numbers)
                    for listener in listeners:
                        listener(event)
    return totals if create_graph or not as_nodes else {node: number(total) for node, total in totals.items()}


def contributions(node: Node, upstream: Any, as_nodes: bool) -> Iterator[tuple[int, Node, Any]]:
    """What `node`, whose gradient is `upstream`, passes on to operands that need a gradient: slot, operand, product."""
    op = node._op
    assert op is not None  # a leaf passes nothing on
    if node._made != Node.writes:
        _refuse_overwritten(node, op)
    operands = node._operands(as_nodes)
    static = node._note("static", {})
    for slot, (target, rule) in enumerate(zip(node._inputs, op.rules, strict=True)):
        if rule is not None and isinstance(target, Node) and target._requires_grad:
            yield slot, target, rule(upstream, *operands, **static)


def number(gradient: Any) -> Any:
    """The bare number or array in a gradient, which may be a node."""
    return gradient._raw() if isinstance(gradient, Node) else gradient


def _refuse_overwritten(node: Node, op: Op) -> None:
    """Raise if an operand that a rule of `node` will read was replaced after `node` was computed from it."""
    for name, operand in zip(op.inputs, node._inputs, strict=True):
        if not isinstance(operand, Node) or operand._note("written", 0) <= node._made:
            continue
        for names, target in zip(op.reads, node._inputs, strict=True):
            if name in names and isinstance(target, Node) and target._requires_grad:
                raise GraphError(
                    f"backward: {operand!r} was given another number after {op.name} had used it, and the derivative "
                    f"of {op.name} needs the number of then.\n  Compute the expression again after changing `data`."
                )
