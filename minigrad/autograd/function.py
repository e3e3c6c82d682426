"""Custom autograd Functions with a hand-written forward and backward pass, as in PyTorch.

If a derivative rule can be written for each operand, declare an `Op` instead: it also supports Values, displays its
derivative and runs on every device. A Function supports more general code, such as state shared by the two passes.
"""

from __future__ import annotations

import weakref
from copy import copy
from functools import cache
from typing import Any

from minigrad.core.errors import DTypeError, GraphError, ShapeError, describe_type
from minigrad.core.grad_mode import no_grad
from minigrad.core.graph import Node, raw_value
from minigrad.core.modes import modes
from minigrad.core.op import Op
from minigrad.core.step import Step, constant, is_modified_since
from minigrad.core.storage import Storage

__all__ = ["Context", "Function"]

_PLAIN_TYPES = (bool, int, float, complex, str, bytes, type(None))


class Context:
    """State saved for the backward pass: tensors by `save_for_backward`, and other objects as attributes."""

    needs_input_grad: tuple[bool, ...] = ()

    def __init__(self) -> None:
        self._saved: tuple[Any, ...] = ()
        self._non_differentiable: set[int] = set()
        self._materialize = True

    def _bind(self, function: type[Function], step: Any, results: tuple[Any, ...], shapes: tuple[Any, ...]) -> None:
        self._function, self._name = function, function.__name__
        self._step, self._results, self._shapes = weakref.ref(step), results, shapes

    def save_for_backward(self, *tensors: Any) -> None:
        """Save operands or results for `saved_tensors`, which raises an error if they were modified in-place."""
        self._saved, self._write_count = tensors, Storage.writes

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The saved tensors. Raises GraphError if one was modified in-place."""
        for index, x in enumerate(self._saved):
            if is_modified_since((x,), self._write_count):
                raise GraphError(
                    f"backward: {self._name} saved tensor {index}, of shape {x.shape}, which has been modified by an "
                    f"inplace operation: {x._storage.last_write}\n"
                    "  Use an out-of-place operation there (x = x + 1, not x += 1), or save a clone()."
                )
        step = self._step()
        if step is None:
            return self._saved
        by_id = dict(zip(map(id, self._results), step.with_grad_fn(self._results), strict=True))
        return tuple([by_id.get(id(x), x) for x in self._saved])

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Mark outputs as non-differentiable."""
        self._non_differentiable = {id(x) for x in tensors}

    def set_materialize_grads(self, value: bool) -> None:
        """Set whether `backward` receives zeros (the default) or None for the gradients of unused outputs."""
        self._materialize = value

    def _run_backward(self, gradient: Any) -> tuple[Any, ...]:
        """Call the user's `backward` on the gradients of the outputs, and return the gradients of the operands.

        Gradients accumulate in-place, and the user may store an argument or return a stored tensor. Arguments and
        results are therefore copied unless they will be differentiated.
        """
        gradients = gradient if isinstance(gradient, tuple) else (gradient,)
        is_raw = not any(isinstance(g, Node) for g in gradients)
        pairs = list(zip(gradients, self._results, strict=True))
        gradients = tuple(
            [None if g is None else x._export_gradient(copy(g) if is_raw else g, not is_raw) for g, x in pairs]
        )
        if self._materialize:
            pairs = list(zip(gradients, self._results, strict=True))
            gradients = tuple([x.detach().clone().zero_() if g is None else g for g, x in pairs])
        results = self._function.backward(self, *gradients)
        results = results if isinstance(results, tuple) else (results,)
        self._check_gradients(results)
        if not modes.grad:
            results = tuple([None if x is None else copy(raw_value(x)) if is_raw else x.clone() for x in results])
        return results

    def _check_gradients(self, gradients: tuple[Any, ...]) -> None:
        for index, x in enumerate(gradients):
            if x is not None and not hasattr(x, "_array"):
                raise DTypeError(
                    f"backward: function {self._name} returned an invalid gradient at index {index}: expected a "
                    f"tensor or None, but got {describe_type(x)}.\n  For several operands, return a tuple of these."
                )
        if len(gradients) < len(self._shapes) or any(x is not None for x in gradients[len(self._shapes) :]):
            raise GraphError(
                f"backward: function {self._name} returned an incorrect number of gradients (expected "
                f"{len(self._shapes)}, got {len(gradients)}).\n"
                "  Return one per operand of forward, None if it has none."
            )
        for index, (x, shape) in enumerate(zip(gradients, self._shapes, strict=False)):
            if x is not None and shape is not None and x.shape != shape:
                raise ShapeError(
                    f"backward: function {self._name} returned an invalid gradient at index {index}: got shape "
                    f"{x.shape}, but expected {shape}."
                )


class Function:
    """Base class of custom differentiable operations; subclass it and call `apply`.

    ``forward(ctx, …)`` receives the operands (tensors and other objects) and returns a tensor or a tuple of tensors. It
    runs in no-grad mode. An output that shares memory with an operand is copied, so that in-place writes do not affect
    the operand. ``backward(ctx, …)`` receives the gradient of each output and returns one per operand, or None; if it
    consists of tensor operations, it can be differentiated again. `forward` may also omit `ctx` if
    ``setup_context(ctx, inputs, output)`` is defined.

    >>> import minigrad as mg
    >>> class Cube(mg.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x * x
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return g * 3.0 * x * x
    >>> x = mg.tensor(2.0, requires_grad=True)
    >>> y = Cube.apply(x)
    >>> y.backward()
    >>> y, x.grad
    (tensor(8., grad_fn=<CubeBackward>), tensor(12.))
    """

    def __init__(self, *_: Any) -> None:
        raise DTypeError(
            f"{type(self).__name__}: Functions should not be instantiated; use {type(self).__name__}.apply(x)."
        )

    @staticmethod
    def forward(*args: Any, **keywords: Any) -> Any:
        """Compute the outputs from the operands. Subclasses must override this."""
        raise NotImplementedError("forward: you must implement the forward function as a static method.")

    @staticmethod
    def backward(ctx: Context, *gradients: Any) -> Any:
        """Compute the gradients of the operands from those of the outputs. Subclasses must override this."""
        raise NotImplementedError("backward: you must implement the backward function as a static method.")

    @classmethod
    def apply(cls, *args: Any, **keywords: Any) -> Any:
        """Run `forward` and record the call. Too few gradients raise GraphError in the backward pass."""
        from minigrad.core.tensor import Tensor, set_grad_fn

        ctx = Context()
        edges = tuple([x._edge() if isinstance(x, Tensor) else None for x in args])
        ctx.needs_input_grad = tuple([edge is not None for edge in edges])
        setup_context = getattr(cls, "setup_context", None)
        with no_grad():
            returned = cls.forward(*args, **keywords) if setup_context else cls.forward(ctx, *args, **keywords)
            if setup_context:
                setup_context(ctx, args, returned)
        results = returned if isinstance(returned, tuple) else (returned,)
        if any(not isinstance(x, Tensor) for x in results):
            raise GraphError(
                f"{cls.__name__}.forward returned {returned!r:.200}; expected a tensor or tuple of tensors."
            )
        operands = [x for x in args if isinstance(x, Tensor)]
        results = tuple([x.detach() if any(x is operand for operand in operands) else x for x in results])
        outputs = tuple([x.detach() for x in results])
        if modes.grad and any(edge is not None for edge in edges):
            op, operands_or_edges = _make_op(cls.__name__, len(results)), tuple(map(_stored_argument, args, edges))
            step = Step(op, operands_or_edges, {"ctx": ctx}, results[0]._array, (None,))
            if not keywords:  # keyword arguments are lost when backward frees `ctx`
                step._set_extra("function", cls)
            operand_storages = [
                x.storage for x in operands
            ]  # an in-place write would modify the operand without a gradient
            outputs = tuple([x.clone() if x.storage in operand_storages else x for x in outputs])
            ctx._bind(cls, step, results, tuple([x.shape if isinstance(x, Tensor) else None for x in args]))
            step.observe(outputs[0])
            set_grad_fn(step, outputs)
            for x, output in zip(results, outputs, strict=True):
                if id(x) in ctx._non_differentiable:
                    output._step, output._requires_grad = None, False
        return outputs if isinstance(returned, tuple) else outputs[0]


def _stored_argument(x: Any, edge: Any) -> Any:
    """Return the argument as stored in the graph: a node, a constant, or ``...`` if it may contain tensors."""
    is_plain = all(isinstance(item, _PLAIN_TYPES) for item in (x if x.__class__ is tuple else (x,)))
    return edge if edge is not None else constant(x) if is_plain or isinstance(x, Node) else ...


@cache
def _make_op(name: str, outputs: int) -> Op:
    name = "".join([c if f"_{c}".isidentifier() else "_" for c in name]).lstrip("_") or "Function"  # may be <b>
    return Op(
        name,
        rf"\operatorname{{{name}}}\left({{a}}\right)",
        vjp=lambda g, ctx: ctx._run_backward(g),
        aux=("ctx",),  # freed together with the saved tensors
        outputs=outputs,
        variadic=True,
        listed=False,
    )
