"""Value: a scalar in the autograd graph, with which every step of a computation can be inspected."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any, cast

from minigrad.core.dispatch import PYTHON, dispatch
from minigrad.core.errors import DTypeError, GraphError, describe_type, user_source_line
from minigrad.core.graph import grad_lock, leaf_writes, propagate, topological
from minigrad.core.modes import modes, slow_path
from minigrad.core.op import OPS, Op, forward_declared
from minigrad.core.value_gradient import ASSIGNED, NO_GRADIENT, GradientNode

__all__ = ["Value", "constant"]


def _operator(op: Op, *, reflected: bool = False) -> Callable[[Value, Value | float], Value]:
    """Return a method that applies `op`. If `reflected`, the Value is the right operand."""

    def method(self: Value, other: Value | float) -> Value:
        foreign = not isinstance(other, Value | Real) and not _is_array_like(other)
        if foreign and hasattr(other, "__radd__"):
            return cast(Value, NotImplemented)  # a type with its own operators, which may support Values
        return cast(Value, Value._apply(op, (other, self) if reflected else (self, other), {}))

    return method


def _comparison(op: Op) -> Callable[[Value, object], bool]:
    def method(self: Value, other: object) -> bool:
        if not isinstance(other, Value | Real) and not hasattr(getattr(other, "dtype", None), "is_floating_point"):
            return cast(bool, NotImplemented)  # NumPy arrays then compare elementwise
        return cast(bool, Value._apply(op, (self, other), {}))

    return method


class Value(GradientNode):
    """A scalar that records how it was computed.

    `data` is the float and `label` its name in drawings. Operators and methods return new Values; Python scalars are
    constants. A Value retains its graph and its gradients after `backward`, for inspection.

    `grad` is None before `backward`, then a float (a Value after ``backward(create_graph=True)``). Raises DTypeError
    if `data` is not a real scalar.

    >>> a, b = Value(2.0, "a"), Value(-3.0, "b")
    >>> c = a * b + a
    >>> c.backward()
    >>> c.data, a.grad, b.grad
    (-4.0, -2.0, 2.0)
    """

    __slots__ = ("_data",)

    _data: float

    def __init__(self, data: float, label: str | None = None) -> None:
        self._data = _to_float(data, "Value")
        self._op = None
        self._write_count = leaf_writes.count
        self._requires_grad = True
        if label is not None:
            self._set_extra("label", label)
        if modes.scope:
            self._set_extra("scope", modes.scope)

    # --- attributes ---

    @property
    def data(self) -> float:
        """The value as a float. It can be assigned on a leaf, as optimisers do, but not on a computed Value."""
        return self._data

    @data.setter
    def data(self, data: float) -> None:
        if self._op is not None:
            raise GraphError(
                f"data: cannot assign to a Value computed by {self._op.name}; only a leaf's data can be assigned.\n"
                "  Change the leaves it was computed from and recompute, or detach() it."
            )
        new_value = _to_float(data, "data")
        if new_value != self._data:
            self._data = new_value
            with grad_lock:
                leaf_writes.count += 1
                self._set_extra("written", leaf_writes.count)

    @property
    def label(self) -> str | None:
        """The name of this Value in drawings, or None."""
        return cast(str | None, self._get_extra("label"))

    @label.setter
    def label(self, label: str | None) -> None:
        self._set_extra("label", label)

    @property
    def op(self) -> Op | None:
        """The operation that computed this Value; None for a leaf."""
        return self._op

    @property
    def inputs(self) -> tuple[Value | float, ...]:
        """The operands in order, with repeats: ``(a * a).inputs`` is ``(a, a)``. Constants are floats."""
        return self._inputs

    @property
    def scope(self) -> str:
        """The `mg.scope` in which it was created, such as ``"layer1/neuron0"``; empty outside any scope."""
        return cast(str, self._get_extra("scope", ""))

    @property
    def line(self) -> str | None:
        """The source line of the operation, as ``file:line: code``, inside ``mg.record(lines=True)``; else None."""
        return cast(str | None, self._get_extra("line"))

    @property
    def stale(self) -> tuple[Value, ...]:
        """The operands whose `data` was assigned after this Value was computed."""
        if self._write_count == leaf_writes.count:
            return ()
        return tuple(x for x in self._inputs if isinstance(x, Value) and x._get_extra("written", 0) > self._write_count)

    @property
    def requires_grad(self) -> bool:
        """Whether `backward` computes a gradient for this Value. True for a new Value and its results."""
        return bool(self._requires_grad)

    @requires_grad.setter
    def requires_grad(self, flag: bool) -> None:
        if self._op is not None:
            raise GraphError(
                "requires_grad: you can only change requires_grad of a leaf; "
                f"this Value was computed by {self._op.name}.\n  Use detach()."
            )
        gradient, self._requires_grad = self.grad, bool(flag)  # without the mark of a pass
        self.grad = gradient

    def item(self) -> float:
        """Return the value as a Python float."""
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

    __add__ = _operator(forward_declared("add"))
    __radd__ = _operator(forward_declared("add"), reflected=True)
    __sub__ = _operator(forward_declared("sub"))
    __rsub__ = _operator(forward_declared("sub"), reflected=True)
    __mul__ = _operator(forward_declared("mul"))
    __rmul__ = _operator(forward_declared("mul"), reflected=True)
    __truediv__ = _operator(forward_declared("div"))
    __rtruediv__ = _operator(forward_declared("div"), reflected=True)
    __pow__ = _operator(forward_declared("pow"))
    __rpow__ = _operator(forward_declared("pow"), reflected=True)
    __lt__ = _comparison(forward_declared("lt"))
    __le__ = _comparison(forward_declared("le"))
    __gt__ = _comparison(forward_declared("gt"))
    __ge__ = _comparison(forward_declared("ge"))
    __eq__ = _comparison(forward_declared("eq"))
    __ne__ = _comparison(forward_declared("ne"))
    __hash__ = object.__hash__

    def exp(self) -> Value:
        """Return the exponential."""
        return self._apply_named("exp")

    def log(self) -> Value:
        """Return the natural logarithm, which is -inf at 0 and nan for negative input."""
        return self._apply_named("log")

    def sqrt(self) -> Value:
        """Return the square root, which is nan for negative input. The derivative at 0 is inf."""
        return self._apply_named("sqrt")

    def sin(self) -> Value:
        """Return the sine of this angle in radians."""
        return self._apply_named("sin")

    def cos(self) -> Value:
        """Return the cosine of this angle in radians."""
        return self._apply_named("cos")

    def tanh(self) -> Value:
        """Return the hyperbolic tangent."""
        return self._apply_named("tanh")

    def sigmoid(self) -> Value:
        """Return the logistic function 1 / (1 + exp(-x)), computed without overflow."""
        return self._apply_named("sigmoid")

    def relu(self) -> Value:
        """Return max(x, 0). The derivative at 0 is 0, as in PyTorch."""
        return self._apply_named("relu")

    def __pos__(self) -> Value:
        return self

    def __neg__(self) -> Value:
        return self._apply_named("neg")

    def abs(self) -> Value:
        """Return the absolute value. The derivative at 0 is 0, as in PyTorch."""
        return self._apply_named("abs")

    __abs__ = abs

    def max(self, other: Value | float) -> Value:
        """Return the maximum, or nan if either operand is nan. A tie splits the gradient evenly, as in PyTorch."""
        return self._apply_named("maximum", other)

    def min(self, other: Value | float) -> Value:
        """Return the minimum, or nan if either operand is nan. A tie splits the gradient evenly, as in PyTorch."""
        return self._apply_named("minimum", other)

    # --- gradients ---

    def backward(
        self, gradient: float | Value | None = None, retain_graph: bool | None = None, create_graph: bool = False
    ) -> None:
        """Accumulate the derivative of ``gradient * self`` into `grad` of this Value and all it was computed from.

        `gradient` defaults to 1. Repeated calls accumulate; `zero_grad` resets. With `create_graph` the gradients are
        differentiable Values, else floats. `retain_graph` exists for PyTorch compatibility: a Value always retains its
        graph. Raises GraphError if this Value does not require grad, or if `data` that a derivative reads was assigned
        since the forward pass. No `grad` changes when an error is raised.
        """
        self._accumulate({self: self._initial_gradient(gradient, create_graph)}, retain_graph, create_graph, None)

    _propagate_floats: Any = staticmethod(lambda seeds: False)  # replaced by `install_fast_path`

    @staticmethod
    def _accumulate(seeds: Mapping[Any, Any], retain_graph: bool | None, create_graph: bool, inputs: Any) -> None:
        if not (slow_path.reasons or create_graph or inputs) and Value._propagate_floats(seeds):
            return
        gradients = propagate(seeds, create_graph=create_graph)
        totals = {node: node._export_gradient(total, create_graph) for node, total in gradients.items()}
        selected = totals if inputs is None else {x: totals[x] for x in inputs if x in totals}
        with grad_lock:
            for node, total in selected.items():
                old_grad = node.grad
                node.grad = total if old_grad is None else (old_grad if create_graph else float(old_grad)) + total

    def zero_grad(self) -> None:
        """Set `grad` of this Value and of everything it was computed from to None."""
        for node in topological((self,)):
            node.grad = None

    def detach(self) -> Value:
        """Return a new leaf with the same `data` that does not require grad."""
        return constant(self._data)

    # --- the `Node` interface ---

    def _apply_named(self, name: str, *operands: Any) -> Value:
        return cast(Value, Value._apply(OPS[name], (self, *operands), {}))

    @classmethod
    def _apply(cls, op: Op, inputs: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
        if op.outputs > 1:
            raise DTypeError(f"{op.name}: it returns {op.outputs} outputs, but a Value holds a single scalar.")
        operands = tuple([x if isinstance(x, Value) else _to_float(x, op.name) for x in inputs])
        raw = tuple([x._data if isinstance(x, Value) else x for x in operands])
        result = dispatch(op.name, PYTHON, raw, attrs)
        data, *aux = result if op.aux else (result,)
        if isinstance(data, bool):  # a comparison
            return data
        if not modes.grad or not op.differentiable:
            return constant(data)
        out = Value.__new__(Value)
        out._data = data
        out._op = op
        out._left, out._right = (operands, 0.0) if len(operands) > 2 else (*operands, 0.0)[:2]
        out._write_count = leaf_writes.count
        needs_grad = any(x._requires_grad for x in operands if isinstance(x, Value))
        out._requires_grad, out._gradient = needs_grad and (ASSIGNED if len(operands) > 2 else True), NO_GRADIENT
        if op.attrs or op.aux or op.shapes:
            shapes = dict.fromkeys(op.shapes, ())
            out._set_extra("static", {**attrs, **dict(zip(op.aux, aux, strict=True)), **shapes})
        if modes.scope:
            out._set_extra("scope", modes.scope)
        if modes.lines:
            out._set_extra("line", user_source_line())
        return out

    def _operands(self, as_nodes: bool, slots: Sequence[int]) -> tuple[Any, ...]:
        if self.stale:
            _check_not_modified(self, slots)
        if as_nodes:
            return (self, *self._inputs)
        return (self._data, *[x._data if isinstance(x, Value) else x for x in self._inputs])

    def _local_derivative(self, slot: int) -> float | None:
        rule = self._op.rules[slot] if self._op is not None else None
        if rule is None:
            return None
        return cast(float, rule(1.0, *self._operands(False, [slot]), **self._get_extra("static", {})))

    def _raw_value(self) -> float:
        return self._data

    _array: Any = property(lambda self: _to_float(self, "an operation on tensors"))  # tensor operations read `_array`

    def _initial_gradient(self, gradient: Any, create_graph: bool) -> Any:
        if not self._requires_grad:
            raise GraphError(
                "backward: this Value does not require grad and does not have a grad_fn: it was created by detach(), "
                "inside no_grad(), or only from such Values.\n  Compute it from Values that require grad."
            )
        if isinstance(gradient, Value):
            return gradient if create_graph else gradient._data
        return 1.0 if gradient is None else _to_float(gradient, "gradient")

    def _export_gradient(self, gradient: Any, create_graph: bool) -> Any:
        if not create_graph:
            return gradient._data if isinstance(gradient, Value) else gradient
        return gradient if isinstance(gradient, Value) else constant(gradient)

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self._op is not None:
            raise GraphError(
                f"copy or pickle: this Value was computed by {self._op.name} and is not a leaf.\n"
                "  Only leaves support copying and pickling. Use detach(), or copy the leaves and recompute."
            )
        if isinstance(self.grad, Value) and self.grad._op is not None:
            raise GraphError(
                "copy or pickle: the gradient of this Value has a graph, from backward(create_graph=True).\n"
                "  Set grad = None, or grad = float(grad), first."
            )
        return _restore, (type(self), self._data, self.label, self.scope, self.grad, self.requires_grad)


def _check_not_modified(value: Value, slots: Sequence[int]) -> None:
    """Raise GraphError if a rule of `slots` reads an operand whose `data` was assigned after the forward pass."""
    op = value._op
    assert op is not None  # a leaf is never stale
    stale = set(value.stale)
    for name, operand in zip(op.inputs, value._inputs, strict=True):
        if operand in stale and any(name in op.reads[slot] for slot in slots):
            raise GraphError(
                f"backward: {operand!r}, an operand of {op.name} that its derivative reads, was modified since the "
                "forward pass.\n  Recompute the expression after changing `data`."
            )


def constant(data: float) -> Value:
    """Return a leaf that does not require grad."""
    out = Value(data)
    out._requires_grad = False
    return out


def _restore(cls: type[Value], data: float, label: str | None, scope: str, grad: Any, requires_grad: bool) -> Value:
    out = cls.__new__(cls)
    Value.__init__(out, data, label)
    out._requires_grad = requires_grad
    out.grad = grad
    if scope:
        out._set_extra("scope", scope)
    return out


def _is_array_like(x: Any) -> bool:
    """Return whether `x` is an array or tensor of any library."""
    return hasattr(x, "dtype") and hasattr(x, "shape")


def _to_float(x: Any, func_name: str) -> float:
    """Return the real scalar `x` as a float. Values are rejected, since the result would lose the graph."""
    is_real = isinstance(x, Real) or (_is_array_like(x) and x.shape == () and getattr(x.dtype, "kind", 0) in {*"biuf"})
    if is_real and not isinstance(x, Value):
        try:
            return float(x)
        except OverflowError:
            raise DTypeError(
                f"{func_name}: the integer is too large to convert to float; the maximum is 1.8e308."
            ) from None
    if isinstance(x, Value):
        raise DTypeError(f"{func_name}: {x!r} is a Value; expected a real scalar.\n  Pass x.data or float(x).")
    raise DTypeError(f"{func_name}: {x!r} is {describe_type(x)}; expected a real scalar, an int or a float.")
