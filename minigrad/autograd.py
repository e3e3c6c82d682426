"""Gradients as a function: `grad` returns what ``backward`` would add, and writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minigrad.errors import DTypeError, GraphError
from minigrad.graph import Event, propagate
from minigrad.value import Value, gradients_of

__all__ = ["events", "grad"]


def grad(
    output: Value,
    inputs: Value | Sequence[Value],
    gradient: Value | float = 1.0,
    *,
    create_graph: bool = False,
    allow_unused: bool = False,
) -> tuple[Any, ...]:
    """The derivatives of ``gradient * output`` by each of `inputs`, in their order, as PyTorch's ``autograd.grad``.

    Floats; with `create_graph` Values, which can be differentiated in turn, to any order. No ``.grad`` is touched.
    Raises GraphError if `output` needs no gradient or was not computed from one of `inputs`; with `allow_unused` that
    one's derivative is None instead.

    >>> x = Value(3.0)
    >>> slope, = grad(x ** 3, x, create_graph=True)      # 3 x^2
    >>> curvature, = grad(slope, x)                      # 6 x
    >>> slope.data, curvature
    (27.0, 18.0)
    """
    wanted = (inputs,) if isinstance(inputs, Value) else tuple(inputs)
    for x in (output, *wanted):
        if not isinstance(x, Value):
            raise DTypeError(f"grad: {x!r} is a {type(x).__name__}, not a Value.\n  Write mg.grad(output, [input, …]).")
    totals = gradients_of(output, gradient, create_graph)
    for position, x in enumerate(wanted):
        if x not in totals and not allow_unused:
            raise GraphError(
                f"grad: input {position}, {x!r}, has no part in the output: no path of operations leads there.\n"
                "  Leave it out, or pass allow_unused=True to get None for it."
            )
    return tuple([totals.get(x) for x in wanted])


def events(output: Value, gradient: float = 1.0) -> list[Event]:
    """The events of a backward pass from `output`, run only to be looked at: no ``.grad`` is written, nothing is kept.

    >>> a = Value(3.0, "a")
    >>> [(event.slot, event.upstream, event.local, event.contribution) for event in events(a * a)]
    [(0, 1.0, 3.0, 3.0), (1, 1.0, 3.0, 3.0)]
    >>> a.grad is None
    True
    """
    seen: list[Event] = []
    if output.requires_grad:
        propagate({output: float(gradient)}, listeners=(seen.append,))
    return seen
