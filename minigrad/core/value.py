"""Value: one float with a place in the graph. The face of the engine on which every number can be looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any, cast

from minigrad.core.dispatch import PYTHON, dispatch
from minigrad.core.errors import DTypeError, GraphError, a_kind, caller_line
from minigrad.core.graph import Node, grad_lock, propagate, topological
from minigrad.core.modes import detour, modes
from minigrad.core.op import OPS, Op, forward
from minigrad.core.unrolled import propagate_floats, unroll

__all__ = ["Value", "constant"]


def _operator(op: Op, *, reflected: bool = False) -> Callable[[Value, Value | float], Value]:
    """The operator that applies `op`; `reflected` when the Value stands on the right."""

    def method(self: Value, other: Value | float) -> Value:
        foreign = not isinstance(other, Value | Real) and not _is_array(other)
        if foreign and hasattr(other, "__radd__"):
            return cast(Value, NotImplemented)  # a type with operators of its own, which may know of Values
        return cast(Value, Value._apply(op, (other, self) if reflected else (self, other), {}))

    return method


def _comparison(op: Op) -> Callable[[Value, object], bool]:
    def method(self: Value, other: object) -> bool:
        if not isinstance(other, Value | Real) and not hasattr(getattr(other, "dtype", None), "is_floating_point"):
            return cast(bool, NotImplemented)  # also for NumPy's arrays, which compare each of their elements
        return cast(bool, Value._apply(op, (self, other), {}))

    return method


class Value(Node):
    """One float, which remembers how it was computed.

    `data` is the number, `label` a name for pictures. Operators and methods make new Values; an operand that is a plain
    number takes part as a constant. A Value keeps its graph and its gradients: the graph is the lesson.

    `grad` is None until `backward` has computed it, then a float (a Value after ``backward(create_graph=True)``).
    Raises DTypeError if `data` is not a real number.

    >>> a, b = Value(2.0, "a"), Value(-3.0, "b")
    >>> c = a * b + a
    >>> c.backward()
    >>> c.data, a.grad, b.grad
    (-4.0, -2.0, 2.0)
    """

    __slots__ = ("_data",)

    _data: float

    def __init__(self, data: float, label: str | None = None) -> None:
        self._data = _real(data, "Value")
        self.grad = None
        self._op = None
        self._made = Node.writes
        self._requires_grad = True
        if label is not None:
            self._remember("label", label)
        if modes.scope:
            self._remember("scope", modes.scope)

    # --- what a reader sees ---

    @property
    def data(self) -> float:
        """The number. A leaf's can be replaced, by training for one; a computed one's cannot."""
        return self._data

    @data.setter
    def data(self, data: float) -> None:
        if self._op is not None:
            raise GraphError(
                f"data: this Value was computed by {self._op.name}, so it cannot be given a number.\n"
                "  Change the leaves it came from and compute again, or detach() it."
            )
        number = _real(data, "data")
        if number != self._data:
            self._data = number
            with grad_lock:
                Node.writes += 1
                self._remember("written", Node.writes)

    @property
    def label(self) -> str | None:
        """The name that pictures give to this Value, or None."""
        return cast(str | None, self._note("label"))

    @label.setter
    def label(self, label: str | None) -> None:
        self._remember("label", label)

    @property
    def op(self) -> Op | None:
        """The operation that made this Value; None for a leaf."""
        return self._op

    @property
    def inputs(self) -> tuple[Value | float, ...]:
        """What it was made from, in order and with repeats: ``(a * a).inputs`` is ``(a, a)``. A float is a constant."""
        return self._inputs

    @property
    def scope(self) -> str:
        """The `mg.scope` it was made in, such as ``"layer1/neuron0"``; empty outside of any."""
        return cast(str, self._note("scope", ""))

    @property
    def line(self) -> str | None:
        """The source line that made it, as ``file:number: text``, where ``mg.record(lines=True)`` was on; else None."""
        return cast(str | None, self._note("line"))

    @property
    def stale(self) -> tuple[Value, ...]:
        """The operands that were given another number after this was computed from them; so usually none."""
        if self._made == Node.writes:
            return ()
        return tuple(x for x in self._inputs if isinstance(x, Value) and x._note("written", 0) > self._made)

    @property
    def requires_grad(self) -> bool:
        """Whether backward computes a gradient here: True for a new Value and what is computed from it."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, flag: bool) -> None:
        if self._op is not None:
            raise GraphError(
                f"requires_grad: only a leaf's can be set, and this Value was computed by {self._op.name}.\n"
                "  Take its number along with detach()."
            )
        self._requires_grad = bool(flag)

    def item(self) -> float:
        """The number, as `float` gives it."""
        return self._data

    __float__ = item

    def __int__(self) -> int:
        return int(self._data)

    def __bool__(self) -> bool:
        return self._data != 0.0

    def __repr__(self) -> str:
        grad = "" if self.grad is None else f", grad={float(self.grad)!r}"
        label = "" if self.label is None else f", label={self.label!r}"
        return f"Value({self._data!r}{grad}{label})"

    def __format__(self, spec: str) -> str:
        return format(self._data, spec) if spec else repr(self)

    # --- operations ---

    __add__ = _operator(forward("add"))
    __radd__ = _operator(forward("add"), reflected=True)
    __sub__ = _operator(forward("sub"))
    __rsub__ = _operator(forward("sub"), reflected=True)
    __mul__ = _operator(forward("mul"))
    __rmul__ = _operator(forward("mul"), reflected=True)
    __truediv__ = _operator(forward("div"))
    __rtruediv__ = _operator(forward("div"), reflected=True)
    __pow__ = _operator(forward("pow"))
    __rpow__ = _operator(forward("pow"), reflected=True)
    __lt__ = _comparison(forward("lt"))
    __le__ = _comparison(forward("le"))
    __gt__ = _comparison(forward("gt"))
    __ge__ = _comparison(forward("ge"))
    __eq__ = _comparison(forward("eq"))
    __ne__ = _comparison(forward("ne"))
    __hash__ = object.__hash__

    def exp(self) -> Value:
        """e to the power of this."""
        return self._applied("exp")

    def log(self) -> Value:
        """The natural logarithm: -inf at 0, nan below."""
        return self._applied("log")

    def sqrt(self) -> Value:
        """The square root: nan below 0; its derivative at 0 is inf."""
        return self._applied("sqrt")

    def sin(self) -> Value:
        """The sine of this, in radians."""
        return self._applied("sin")

    def cos(self) -> Value:
        """The cosine of this, in radians."""
        return self._applied("cos")

    def tanh(self) -> Value:
        """The hyperbolic tangent."""
        return self._applied("tanh")

    def sigmoid(self) -> Value:
        """The logistic function, 1 / (1 + exp(-x)), without overflow at either end."""
        return self._applied("sigmoid")

    def relu(self) -> Value:
        """The larger of this and 0; its derivative at 0 is 0, as in PyTorch."""
        return self._applied("relu")

    def __pos__(self) -> Value:
        return self

    def __neg__(self) -> Value:
        return self._applied("neg")

    def abs(self) -> Value:
        """The distance from 0; its derivative at 0 is 0, as in PyTorch."""
        return self._applied("abs")

    __abs__ = abs

    def max(self, other: Value | float) -> Value:
        """The larger of the two; where they tie, each gets half the gradient, as in PyTorch; nan if either is."""
        return self._applied("maximum", other)

    def min(self, other: Value | float) -> Value:
        """The smaller of the two; where they tie, each gets half the gradient, as in PyTorch; nan if either is."""
        return self._applied("minimum", other)

    # --- gradients ---

    def backward(
        self, gradient: float | Value | None = None, retain_graph: bool | None = None, create_graph: bool = False
    ) -> None:
        """Add to `grad`, here and in everything this was computed from, the derivative of ``gradient * self`` by it.

        `gradient` is 1 unless given. A second call adds exactly once more; `zero_grad` starts afresh. With
        `create_graph` the gradients are Values that can be differentiated in turn, else floats. `retain_graph` is there
        for code written for PyTorch: a Value always keeps its graph. Raises GraphError if nothing here needs a
        gradient, or if a number that a derivative needs was replaced since; then no `grad` has changed.
        """
        self._accumulate({self: self._seed(gradient, create_graph)}, retain_graph, create_graph, None)

    @staticmethod
    def _accumulate(seeds: Mapping[Any, Any], retain_graph: bool | None, create_graph: bool, inputs: Any) -> None:
        if detour.reasons or create_graph:
            found = propagate(seeds, create_graph=create_graph)
            totals = {node: node._handed(total, create_graph) for node, total in found.items()}
        else:
            totals = propagate_floats(seeds)
        chosen = totals if inputs is None else {x: totals[x] for x in inputs if x in totals}
        with grad_lock:
            for node, total in chosen.items():
                before = node.grad
                node.grad = total if before is None else (before if create_graph else float(before)) + total

    def zero_grad(self) -> None:
        """Forget the gradients of this Value and of everything it was computed from: they are None again."""
        for node in topological((self,)):
            node.grad = None

    def detach(self) -> Value:
        """A new leaf with the same number, through which no gradient flows."""
        return constant(self._data)

    # --- what the graph asks of a face ---

    def _applied(self, name: str, *others: Any) -> Value:
        return cast(Value, Value._apply(OPS[name], (self, *others), {}))

    @classmethod
    def _apply(cls, op: Op, inputs: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
        if op.outputs > 1:
            raise DTypeError(f"{op.name}: it returns {op.outputs} results, and a Value holds one number.")
        operands = tuple([x if isinstance(x, Value) else _real(x, op.name) for x in inputs])
        raw = tuple([x._data if isinstance(x, Value) else x for x in operands])
        result = dispatch(op.name, PYTHON, raw, attrs)
        data, *aux = result if op.aux else (result,)
        if isinstance(data, bool):  # a comparison
            return data
        if not modes.grad or not op.differentiable:
            return constant(data)
        out = Value.__new__(Value)
        out._data = data
        out.grad = None
        out._op = op
        out._left, out._right = (operands, ()) if len(operands) > 2 else (*operands, ())[:2]
        out._made = Node.writes
        out._requires_grad = any(x._requires_grad for x in operands if isinstance(x, Value))
        if op.attrs or op.aux or op.shapes:
            shapes = dict.fromkeys(op.shapes, ())
            out._remember("static", {**attrs, **dict(zip(op.aux, aux, strict=True)), **shapes})
        if modes.scope:
            out._remember("scope", modes.scope)
        if modes.lines:
            out._remember("line", caller_line())
        return out

    def _operands(self, as_nodes: bool, slots: Sequence[int]) -> tuple[Any, ...]:
        if self.stale:
            _refuse_overwritten(self, slots)
        if as_nodes:
            return (self, *self._inputs)
        return (self._data, *[x._data if isinstance(x, Value) else x for x in self._inputs])

    def _local(self, slot: int) -> float | None:
        rule = self._op.rules[slot] if self._op is not None else None
        if rule is None:
            return None
        return cast(float, rule(1.0, *self._operands(False, [slot]), **self._note("static", {})))

    def _raw(self) -> float:
        return self._data

    _array: Any = property(lambda self: _real(self, "an operation on tensors"))  # which ask an operand for its array

    def _seed(self, gradient: Any, create_graph: bool) -> Any:
        if not self._requires_grad:
            raise GraphError(
                "backward: this Value needs no gradient: it was made by detach(), inside no_grad(), or only from such "
                "Values.\n  Build it from Values that require a gradient."
            )
        if isinstance(gradient, Value):
            return gradient if create_graph else gradient._data
        return 1.0 if gradient is None else _real(gradient, "gradient")

    def _handed(self, gradient: Any, create_graph: bool) -> Any:
        if not create_graph:
            return gradient._data if isinstance(gradient, Value) else gradient
        return gradient if isinstance(gradient, Value) else constant(gradient)

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self._op is not None:
            raise GraphError(
                f"copy or pickle: this Value was computed by {self._op.name} and carries its graph with it.\n"
                "  Take its number along with detach(), or copy the leaves and compute again."
            )
        if isinstance(self.grad, Value) and self.grad._op is not None:
            raise GraphError(
                "copy or pickle: the gradient of this Value carries a graph, from backward(create_graph=True).\n"
                "  Set grad = None, or grad = float(grad), first."
            )
        return _restore, (type(self), self._data, self.label, self.scope, self.grad, self._requires_grad)


def _refuse_overwritten(value: Value, slots: Sequence[int]) -> None:
    """Raise if a rule of `slots` will read an operand that was replaced after `value` was computed from it."""
    op = value._op
    assert op is not None  # a leaf is never stale
    stale = set(value.stale)
    for name, operand in zip(op.inputs, value._inputs, strict=True):
        if operand in stale and any(name in op.reads[slot] for slot in slots):
            raise GraphError(
                f"backward: {operand!r} was given another number after {op.name} had used it, and the derivative "
                f"of {op.name} needs the number of then.\n  Compute the expression again after changing `data`."
            )


def constant(data: float) -> Value:
    """A leaf that needs no gradient."""
    out = Value(data)
    out._requires_grad = False
    return out


def _restore(kind: type[Value], data: float, label: str | None, scope: str, grad: Any, requires_grad: bool) -> Value:
    out = kind.__new__(kind)
    Value.__init__(out, data, label)
    out.grad, out._requires_grad = grad, requires_grad
    if scope:
        out._remember("scope", scope)
    return out


def _is_array(x: Any) -> bool:
    """Whether `x` is an array or a tensor, of whatever library."""
    return hasattr(x, "dtype") and hasattr(x, "shape")


def _real(x: Any, who: str) -> float:
    """`x` as a float, if it is a real number; a Value is not: it would lose its graph."""
    number = isinstance(x, Real) or (_is_array(x) and x.shape == () and getattr(x.dtype, "kind", 0) in {*"biuf"})
    if number and not isinstance(x, Value):
        try:
            return float(x)
        except OverflowError:
            raise DTypeError(f"{who}: the number is too large for a float, which ends at 1.8e308.") from None
    if isinstance(x, Value):
        raise DTypeError(f"{who}: {x!r} is a Value, not a real number.\n  Give its number: x.data, or float(x).")
    raise DTypeError(
        f"{who}: {x!r} is {a_kind(x)}, not a real number.\n  A Value holds one number: give an int or a float."
    )


unroll(Value)
