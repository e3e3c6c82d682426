"""Value: one float with a place in the graph. The face of the engine on which every number can be looked at."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any, cast

from minigrad import ops
from minigrad.backends.python import DEVICE
from minigrad.errors import DTypeError, GraphError
from minigrad.graph import Node, contributions, modes, propagate, topological
from minigrad.kernels import detour, dispatch, kernels_of
from minigrad.op import Op

__all__ = ["Value", "constant", "gradients_of"]


Number = int | float


def _unary(op: Op) -> Callable[[Value], Value]:
    """The method that applies `op`: inline while nobody listens, by way of `dispatch` otherwise."""
    kernel = kernels_of(op.name)[DEVICE]

    def method(self: Value) -> Value:
        if detour.depth:
            applied: Value = Value._apply(op, (self,), {})
            return applied
        out = _new(Value)
        out._data = kernel(self._data)
        out.grad = None
        out._op = op
        out._left = self
        out._right = ()
        out._made = Node.writes
        out._requires_grad = self._requires_grad
        return out

    return method


def _binary(op: Op, *, reflected: bool = False) -> Callable[[Value, Value | Number], Value]:
    """The operator that applies `op`, as `_unary`; `reflected` when the Value stands on the right."""
    kernel = kernels_of(op.name)[DEVICE]

    def method(self: Value, other: Value | Number) -> Value:
        if other.__class__ is Value:
            data, needs = other._data, self._requires_grad or other._requires_grad
        elif other.__class__ is float or other.__class__ is int:
            other = data = float(other)
            needs = self._requires_grad
        else:
            return _apply_to_other(op, self, other, reflected)
        if detour.depth:
            applied: Value = Value._apply(op, (other, self) if reflected else (self, other), {})
            return applied
        out = _new(Value)
        if reflected:
            out._data = kernel(data, self._data)
            out._left = other
            out._right = self
        else:
            out._data = kernel(self._data, data)
            out._left = self
            out._right = other
        out.grad = None
        out._op = op
        out._made = Node.writes
        out._requires_grad = needs
        return out

    return method


def _apply_to_other(op: Op, value: Value, other: Any, reflected: bool) -> Value:
    if not isinstance(other, Real) and hasattr(other, "__radd__") and not hasattr(other, "dtype"):
        return cast(Value, NotImplemented)  # a type of its own, which may know what to do with a Value
    applied: Value = Value._apply(op, (other, value) if reflected else (value, other), {})
    return applied


def _comparison(op: Op) -> Callable[[Value, object], bool]:
    def method(self: Value, other: object) -> bool:
        if not isinstance(other, Value | Real):
            return cast(bool, NotImplemented)
        result: bool = Value._apply(op, (self, other), {})
        return result

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
        self._data = _real(data, "data")
        Node.writes += 1
        self._remember("written", Node.writes)

    @property
    def label(self) -> str | None:
        """The name that pictures give to this Value, or None."""
        label: str | None = self._note("label")
        return label

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
        scope: str = self._note("scope", "")
        return scope

    @property
    def line(self) -> str | None:
        """The source line that made it, as ``file:number: text``, where ``mg.record(lines=True)`` was on; else None."""
        line: str | None = self._note("line")
        return line

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

    def __float__(self) -> float:
        return self._data

    def __bool__(self) -> bool:
        return self._data != 0.0

    def __repr__(self) -> str:
        grad = "" if self.grad is None else f", grad={float(self.grad)!r}"
        label = "" if self.label is None else f", label={self.label!r}"
        return f"Value({self._data!r}{grad}{label})"

    def __format__(self, spec: str) -> str:
        return format(self._data, spec) if spec else repr(self)

    # --- operations ---

    __add__ = _binary(ops.add)
    __radd__ = _binary(ops.add, reflected=True)
    __sub__ = _binary(ops.sub)
    __rsub__ = _binary(ops.sub, reflected=True)
    __mul__ = _binary(ops.mul)
    __rmul__ = _binary(ops.mul, reflected=True)
    __truediv__ = _binary(ops.div)
    __rtruediv__ = _binary(ops.div, reflected=True)
    __pow__ = _binary(ops.pow)
    __rpow__ = _binary(ops.pow, reflected=True)
    __neg__ = _unary(ops.neg)
    __lt__ = _comparison(ops.lt)
    __le__ = _comparison(ops.le)
    __gt__ = _comparison(ops.gt)
    __ge__ = _comparison(ops.ge)
    __eq__ = _comparison(ops.eq)
    __ne__ = _comparison(ops.ne)
    __hash__ = object.__hash__

    def exp(self) -> Value:
        """e to the power of this."""
        return _exp(self)

    def log(self) -> Value:
        """The natural logarithm: -inf at 0, nan below."""
        return _log(self)

    def sqrt(self) -> Value:
        """The square root: nan below 0; its derivative at 0 is inf."""
        return _sqrt(self)

    def sin(self) -> Value:
        """The sine of this, in radians."""
        return _sin(self)

    def cos(self) -> Value:
        """The cosine of this, in radians."""
        return _cos(self)

    def tanh(self) -> Value:
        """The hyperbolic tangent."""
        return _tanh(self)

    def sigmoid(self) -> Value:
        """The logistic function, 1 / (1 + exp(-x)), without overflow at either end."""
        return _sigmoid(self)

    def relu(self) -> Value:
        """The larger of this and 0; its derivative at 0 is 0, as in PyTorch."""
        return _relu(self)

    def __abs__(self) -> Value:
        return _abs(self)

    def abs(self) -> Value:
        """The distance from 0; its derivative at 0 is 0, as in PyTorch."""
        return _abs(self)

    def max(self, other: Value | float) -> Value:
        """The larger of the two; where they tie, each gets half the gradient, as in PyTorch; nan if either is."""
        return _maximum(self, other)

    def min(self, other: Value | float) -> Value:
        """The smaller of the two; where they tie, each gets half the gradient, as in PyTorch; nan if either is."""
        return _minimum(self, other)

    # --- gradients ---

    def backward(self, gradient: float | Value = 1.0, *, create_graph: bool = False) -> None:
        """Add to `grad`, here and in everything this was computed from, the derivative of ``gradient * self`` by it.

        So a second call adds exactly once more; `zero_grad` starts afresh. With `create_graph` the gradients are Values
        that can be differentiated in turn. Raises GraphError if nothing here needs a gradient, or if a number that a
        derivative needs was replaced since; then no `grad` has changed.
        """
        for node, total in gradients_of(self, gradient, create_graph).items():
            node.grad = total if node.grad is None else node.grad + total

    def zero_grad(self) -> None:
        """Forget the gradients of this Value and of everything it was computed from: they are None again."""
        for node in topological((self,)):
            node.grad = None

    def detach(self) -> Value:
        """A new leaf with the same number, through which no gradient flows."""
        return constant(self._data)

    # --- what the graph asks of a face ---

    @classmethod
    def _apply(cls, op: Op, inputs: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
        operands = tuple([x if isinstance(x, Value) else _real(x, op.name) for x in inputs])
        raw = tuple([x._data if isinstance(x, Value) else x for x in operands])
        result = dispatch(op.name, DEVICE, raw, attrs)
        if not op.differentiable:
            return result
        data, *aux = result if op.aux else (result,)
        if not modes.grad:
            return constant(data)
        out = _new(Value)
        out._data = data
        out.grad = None
        out._op = op
        if len(operands) > 2:
            out._left, out._right = operands, ()
        else:
            out._left, out._right = (*operands, ())[:2]
        out._made = Node.writes
        out._requires_grad = any(x._requires_grad for x in operands if isinstance(x, Value))
        if op.attrs or op.aux:
            out._remember("static", {**attrs, **dict(zip(op.aux, aux, strict=True))})
        if modes.scope:
            out._remember("scope", modes.scope)
        if modes.lines:
            out._remember("line", _caller())
        return out

    def _operands(self, as_nodes: bool) -> tuple[Any, ...]:
        if self._made != Node.writes and self._op is not None:
            _refuse_overwritten(self, self._op)
        if as_nodes:
            return (self, *self._inputs)
        return (self._data, *[x._data if isinstance(x, Value) else x for x in self._inputs])

    def _local(self, slot: int) -> float | None:
        rule = self._op.rules[slot] if self._op is not None else None
        if rule is None:
            return None
        static = self._note("static", {})
        local: float = rule(1.0, *self._operands(False), **static)
        return local

    def _raw(self) -> float:
        return self._data

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self._op is not None:
            raise GraphError(
                f"copy or pickle: this Value was computed by {self._op.name} and carries its graph with it.\n"
                "  Take its number along with detach(), or copy the leaves and compute again."
            )
        return _restore, (self._data, self.label, self.grad, self._requires_grad)


def _refuse_overwritten(value: Value, op: Op) -> None:
    """Raise if an operand that a rule of `value` will read was replaced after `value` was computed from it."""
    for name, operand in zip(op.inputs, value._inputs, strict=True):
        if not isinstance(operand, Value) or operand._note("written", 0) <= value._made:
            continue
        for names, target in zip(op.reads, value._inputs, strict=True):
            if name in names and isinstance(target, Value) and target._requires_grad:
                raise GraphError(
                    f"backward: {operand!r} was given another number after {op.name} had used it, and the derivative "
                    f"of {op.name} needs the number of then.\n  Compute the expression again after changing `data`."
                )


_new = Value.__new__
_exp, _log, _sqrt, _sin, _cos = map(_unary, (ops.exp, ops.log, ops.sqrt, ops.sin, ops.cos))
_tanh, _sigmoid, _relu, _abs = map(_unary, (ops.tanh, ops.sigmoid, ops.relu, ops.abs))
_maximum, _minimum = map(_binary, (ops.maximum, ops.minimum))


def constant(data: float) -> Value:
    """A leaf that needs no gradient."""
    out = Value(data)
    out._requires_grad = False
    return out


def _restore(data: float, label: str | None, grad: Any, requires_grad: bool) -> Value:
    out = Value(data, label)
    out.grad, out._requires_grad = grad, requires_grad
    return out


def _real(x: Any, who: str) -> float:
    """`x` as a float, if it is a real number; a Value is not: it would lose its graph."""
    if isinstance(x, Real) or (getattr(x, "shape", None) == () and not isinstance(x, Value)):
        return float(x)
    advice = (
        "  Use it as it is, or detach() it."
        if isinstance(x, Value)
        else "  A Value holds one number: give an int or a float."
    )
    raise DTypeError(f"{who}: {x!r} is a {type(x).__name__}, not a real number.\n{advice}")


def gradients_of(output: Value, gradient: Value | float, create_graph: bool) -> dict[Any, Any]:
    """The derivatives of ``gradient * output`` by `output` and by all it was computed from. Writes nothing."""
    if not output._requires_grad:
        raise GraphError(
            "backward: this Value needs no gradient: it was made by detach(), inside no_grad(), or only from such "
            "Values.\n  Build it from Values that require a gradient."
        )
    seed = gradient if isinstance(gradient, Value) else _real(gradient, "gradient")
    if create_graph:
        totals = propagate({output: seed}, create_graph=True)
        return {node: total if isinstance(total, Value) else constant(total) for node, total in totals.items()}
    return (propagate if detour.depth else _propagate_floats)({output: float(seed)})


def _propagate_floats(gradients: dict[Any, float]) -> dict[Any, float]:
    """`graph.propagate` on bare floats, unrolled: what runs while nobody listens. Tests hold the two to equal bits."""
    totals = dict(gradients)
    get, writes = totals.get, Node.writes
    node: Any
    for node in reversed(topological(totals)):
        op, upstream = node._op, get(node)
        if op is None or upstream is None:
            continue
        if op.plain is None or node._made != writes:
            for _, target, product in contributions(node, upstream, False):
                total = get(target)
                totals[target] = product if total is None else total + product
            continue
        left, right = node._left, node._right
        a = left._data if left.__class__ is Value else left
        b = right._data if right.__class__ is Value else right
        if left.__class__ is Value and left._requires_grad:
            rule = op.plain[0]
            product = rule(upstream, node._data, a) if b == () else rule(upstream, node._data, a, b)
            total = get(left)
            totals[left] = product if total is None else total + product
        if right.__class__ is Value and right._requires_grad:
            product = op.plain[1](upstream, node._data, a, b)
            total = get(right)
            totals[right] = product if total is None else total + product
    return totals


def _caller() -> str:
    """The line outside minigrad that is being run, as ``file:number: text``."""
    import linecache

    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("minigrad"):
        frame = frame.f_back
    file, number = frame.f_code.co_filename, frame.f_lineno
    return f"{file}:{number}: {linecache.getline(file, number).strip()}"
