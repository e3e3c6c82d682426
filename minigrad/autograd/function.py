"""Function: an operation whose forward and backward pass are written by hand, as in PyTorch.

Where a rule can be written for each operand, declare an `Op` instead: it also serves Values, prints its derivative and
runs on every device. A Function is for code that needs more: state between the passes, several results at once.
"""

from __future__ import annotations

import weakref
from copy import copy
from functools import cache
from typing import Any

from minigrad.core.errors import DTypeError, GraphError, ShapeError, a_kind
from minigrad.core.grad_mode import no_grad
from minigrad.core.graph import Node, number
from minigrad.core.modes import modes
from minigrad.core.op import Op
from minigrad.core.step import Step, constant, written_since
from minigrad.core.storage import Storage

__all__ = ["Context", "Function"]

_PLAIN = (bool, int, float, complex, str, bytes, type(None))


class Context:
    """What a forward pass hands to the backward pass: tensors by `save_for_backward`, anything else as attributes."""

    needs_input_grad: tuple[bool, ...] = ()

    def __init__(self) -> None:
        self._saved: tuple[Any, ...] = ()
        self._constant: set[int] = set()
        self._materialize = True

    def _bind(self, function: type[Function], step: Any, results: tuple[Any, ...], shapes: tuple[Any, ...]) -> None:
        self._function, self._name = function, function.__name__
        self._step, self._results, self._shapes = weakref.ref(step), results, shapes

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors, operands or results, for `saved_tensors`. An overwritten one is refused there."""
        self._saved, self._made = tensors, Storage.writes

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors that were saved. Raises GraphError if one was overwritten since."""
        for place, x in enumerate(self._saved):
            if written_since((x,), self._made):
                raise GraphError(
                    f"backward: {self._name} saved a tensor, number {place}, of shape {x.shape}, which has since been "
                    f"overwritten by {x._storage.last_write}\n"
                    "  Write out of place there (x = x + 1, not x += 1), or save a clone()."
                )
        step = self._step()
        if step is None:
            return self._saved
        links = dict(zip(map(id, self._results), step.relinked(self._results), strict=True))
        return tuple([links.get(id(x), x) for x in self._saved])

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Say which results have no gradient."""
        self._constant = {id(x) for x in tensors}

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` gets zeros, as it does unless this is False, or None for a result that was not used."""
        self._materialize = value

    def _passed_back(self, gradient: Any) -> tuple[Any, ...]:
        """What `backward`, which takes and returns tensors, makes of `gradient`.

        It may keep what it is given and return what it kept, so that it gets, and passes on, copies: gradients are
        written in place. Those that will be differentiated in turn are not.
        """
        gradients = gradient if isinstance(gradient, tuple) else (gradient,)
        raw = not any(isinstance(g, Node) for g in gradients)
        pairs = list(zip(gradients, self._results, strict=True))
        gradients = tuple([None if g is None else x._handed(copy(g) if raw else g, not raw) for g, x in pairs])
        if self._materialize:
            pairs = list(zip(gradients, self._results, strict=True))
            gradients = tuple([x.detach().clone().zero_() if g is None else g for g, x in pairs])
        found = self._function.backward(self, *gradients)
        found = found if isinstance(found, tuple) else (found,)
        self._check(found)
        if not modes.grad:
            found = tuple([None if x is None else copy(number(x)) if raw else x.clone() for x in found])
        return found

    def _check(self, found: tuple[Any, ...]) -> None:
        for place, x in enumerate(found):
            if x is not None and not hasattr(x, "_array"):
                raise DTypeError(
                    f"backward: {self._name}.backward returned {a_kind(x)} for operand {place}.\n"
                    "  Return a tensor, or None for what has no gradient; a tuple of these for several operands."
                )
        if len(found) < len(self._shapes) or any(x is not None for x in found[len(self._shapes) :]):
            raise GraphError(
                f"backward: {self._name}.backward returned {len(found)} gradients for {len(self._shapes)} operands of "
                "forward.\n  Return one for each, in their order; None for what has no gradient."
            )
        for place, (x, shape) in enumerate(zip(found, self._shapes, strict=False)):
            if x is not None and shape is not None and x.shape != shape:
                raise ShapeError(
                    f"backward: {self._name}.backward returned a gradient of shape {x.shape} for operand {place}, "
                    f"whose shape is {shape}."
                )


class Function:
    """A differentiable operation in two static methods, ``forward(ctx, …)`` and ``backward(ctx, …)``; see `apply`.

    `forward` gets the operands (tensors, and anything else) and returns a tensor or a tuple of them; nothing that it
    computes is recorded. A result that shares the memory of an operand is copied, so that a write into it stays there.
    `backward` gets the gradient of each result and returns one for each operand, or None. It is differentiated in turn
    where it is written in operations on tensors. `forward` may also be written without `ctx`, with a
    ``setup_context(ctx, inputs, output)`` beside it.

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
        raise DTypeError(f"{type(self).__name__}: a Function is not made, but applied: {type(self).__name__}.apply(x).")

    @staticmethod
    def forward(*args: Any, **keywords: Any) -> Any:
        """The results, from the operands. To be written."""
        raise NotImplementedError("forward: write it as a static method of your Function.")

    @staticmethod
    def backward(ctx: Context, *gradients: Any) -> Any:
        """The gradients of the operands, from those of the results. To be written."""
        raise NotImplementedError("backward: write it as a static method of your Function.")

    @classmethod
    def apply(cls, *args: Any, **keywords: Any) -> Any:
        """Run `forward` and record it. Raises GraphError, in the backward pass, where `backward` returns too little."""
        from minigrad.core.tensor import Tensor, linked

        ctx = Context()
        edges = tuple([x._edge() if isinstance(x, Tensor) else None for x in args])
        ctx.needs_input_grad = tuple([edge is not None for edge in edges])
        setup = getattr(cls, "setup_context", None)
        with no_grad():
            returned = cls.forward(*args, **keywords) if setup else cls.forward(ctx, *args, **keywords)
            if setup:
                setup(ctx, args, returned)
        results = returned if isinstance(returned, tuple) else (returned,)
        if any(not isinstance(x, Tensor) for x in results):
            raise GraphError(f"{cls.__name__}.forward returned {returned!r:.200}, not a tensor or a tuple of tensors.")
        operands = [x for x in args if isinstance(x, Tensor)]
        results = tuple([x.detach() if any(x is operand for operand in operands) else x for x in results])
        outputs = tuple([x.detach() for x in results])
        if modes.grad and any(edge is not None for edge in edges):
            op, left = _op(cls.__name__, len(results)), tuple(map(_kept, args, edges))
            step = Step(op, left, {"ctx": ctx}, results[0]._array, (None,))
            if not keywords:  # else what was called is not known once backward has freed `ctx`
                step._remember("function", cls)
            shared = [x.storage for x in operands]  # a write would reach the operand, and no gradient would follow
            outputs = tuple([x.clone() if x.storage in shared else x for x in outputs])
            ctx._bind(cls, step, results, tuple([x.shape if isinstance(x, Tensor) else None for x in args]))
            step.observe(outputs[0])
            linked(step, outputs)
            for x, output in zip(results, outputs, strict=True):
                if id(x) in ctx._constant:
                    output._step, output._requires_grad = None, False
        return outputs if isinstance(returned, tuple) else outputs[0]


def _kept(x: Any, edge: Any) -> Any:
    """What the graph keeps of an argument: its node, or a constant; ... of one that might keep tensors alive."""
    plain = all(isinstance(part, _PLAIN) for part in (x if x.__class__ is tuple else (x,)))
    return edge if edge is not None else constant(x) if plain or isinstance(x, Node) else ...


@cache
def _op(name: str, outputs: int) -> Op:
    name = "".join([c if f"_{c}".isidentifier() else "_" for c in name]).lstrip("_") or "Function"  # `type` makes <b>
    return Op(
        name,
        rf"\operatorname{{{name}}}\left({{a}}\right)",
        vjp=lambda g, ctx: ctx._passed_back(g),
        aux=("ctx",),  # given up with what the graph saved
        outputs=outputs,
        variadic=True,
        listed=False,
    )
