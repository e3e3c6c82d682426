"""Gradients as a function: `grad` returns what ``backward`` would add, and writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minigrad.errors import DTypeError, GraphError
from minigrad.graph import Event, modes, propagate
from minigrad.kernels import untapped
from minigrad.value import Value, as_value, seed_of

__all__ = ["events", "grad"]


def grad(
    outputs: Value | Sequence[Value],
    inputs: Value | Sequence[Value],
    grad_outputs: Value | float | Sequence[Value | float | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool = False,
) -> tuple[Any, ...]:
    """The derivatives of the sum of ``grad_outputs * outputs`` by each of `inputs`, in their order. PyTorch's function.

    `grad_outputs` are 1 unless given. The results are floats; with `create_graph` Values, which can be differentiated
    in turn, to any order. Only what leads to `inputs` is computed, and no ``.grad`` is touched. `retain_graph` is there
    for code written for PyTorch: Values always keep their graph.

    Raises GraphError if an output or an input needs no gradient, or if no output was computed from one of `inputs`;
    with `allow_unused` that one's derivative is None instead.

    >>> x = Value(3.0)
    >>> slope, = grad(x ** 3, x, create_graph=True)      # 3 x^2
    >>> curvature, = grad(slope, x)                      # 6 x
    >>> slope.data, curvature
    (27.0, 18.0)
    """
    roots, wanted = _values(outputs), _values(inputs)
    weights = grad_outputs if isinstance(grad_outputs, Sequence) else [grad_outputs] * len(roots)
    if len(weights) != len(roots):
        raise DTypeError(f"grad: {len(weights)} grad_outputs were given for {len(roots)} outputs.")
    seeds: dict[Any, Any] = {}
    for root, weight in zip(roots, weights, strict=True):
        seed = seed_of(root, weight, create_graph)
        seeds[root] = seeds[root] + seed if root in seeds else seed
    recorders = [recording.events.append for recording in modes.recordings]
    totals = propagate(seeds, create_graph=create_graph, wanted=set(wanted), listeners=recorders)
    if not allow_unused:
        for position, x in enumerate(wanted):
            if x not in totals:
                raise GraphError(_unused(position, x))
    found = [totals.get(x) for x in wanted]
    return tuple([as_value(total) if create_graph and total is not None else total for total in found])


def events(output: Value, gradient: float = 1.0) -> list[Event]:
    """The events of a backward pass from `output`, run only to be looked at: nothing is written, recorded or tapped.

    >>> a = Value(3.0, "a")
    >>> [(event.slot, event.upstream, event.local, event.contribution) for event in events(a * a)]
    [(0, 1.0, 3.0, 3.0), (1, 1.0, 3.0, 3.0)]
    >>> a.grad is None
    True
    """
    seen: list[Event] = []
    if output.requires_grad:
        with untapped():
            propagate({output: float(gradient)}, listeners=[seen.append])
    return seen


def _values(given: Value | Sequence[Value]) -> tuple[Value, ...]:
    values: tuple[Any, ...] = tuple(given) if isinstance(given, Sequence) else (given,)
    for x in values:
        if not isinstance(x, Value):
            raise DTypeError(f"grad: {x!r} is a {type(x).__name__}, not a Value.\n  Write mg.grad(output, [input, …]).")
    return values


def _unused(position: int, x: Value) -> str:
    if not x.requires_grad:
        return (
            f"grad: input {position}, {x!r}, needs no gradient: it was made by detach() or inside no_grad().\n"
            "  Ask for the Value that it was made from, or set requires_grad = True before computing with it."
        )
    return (
        f"grad: input {position}, {x!r}, has no part in the output: no path of operations leads there.\n"
        "  Leave it out, or pass allow_unused=True to get None for it."
    )
